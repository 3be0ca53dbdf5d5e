// SPDX-License-Identifier: Apache-2.0
#include <collet/collet.h>
#include <gmock/gmock.h>

#include "sdk/runtime/testing/session.h"

// Tests loops and branches that the host runs: an array of which each iteration changes a few elements is updated in
// place.

namespace collet::testing {
namespace {

constexpr size_t kLength = 1000;

constexpr char kBefore[] = R"(HloModule loop
take {
  x = f32[1000] parameter(0)
  ROOT k = f32[1000] copy(x)
}
put {
  x = f32[1000] parameter(0)
  c = f32[1] constant({7})
  z = s32[] constant(1)
  ROOT k = f32[1000] dynamic-update-slice(x, c, z)
}
body {
  s = (s32[], f32[1000], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[1000] get-tuple-element(s), index=1
  t = f32[] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
)";
constexpr char kBetween[] = R"(
  ROOT r = (s32[], f32[1000], f32[]) tuple(j, y, u)
}
condition {
  s = (s32[], f32[1000], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(6)
  ROOT p = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[1000] parameter(0)
  i = s32[] constant(1)
  t = f32[] constant(0)
  s = (s32[], f32[1000], f32[]) tuple(i, x, t)
  w = (s32[], f32[1000], f32[]) while(s), condition=condition, body=body
  y = f32[1000] get-tuple-element(w), index=1
  u = f32[] get-tuple-element(w), index=2
)";
constexpr char kAfter[] = R"(
})";

class Updates : public ::testing::Test, public Session {
 protected:
  void SetUp() override {
    control_.remove_traits = COLLET_TRAIT_CONTROL_FLOW;
    control_.scribble = true;  // counts arguments that launches may overwrite
    client_ = open(test_backend("wrapper"), "none", &control_);
    ASSERT_TRUE(client_) << failure.message;
  }

  /// Runs five iterations of `body`, which computes a new x (and t, a number) from i, x and t; `results` is returned.
  void check(const char* body, const char* results, const std::vector<std::vector<float>>& want, int64_t updates) {
    const std::string text = std::string(kBefore) + body + kBetween + results + kAfter;
    const ExecutablePtr e = compile(client_.get(), text);
    ASSERT_TRUE(e) << failure.message;
    ASSERT_GT(facts(e.get()).host_ops, 0u);
    std::vector<float> in(kLength);
    for (size_t k = 0; k < in.size(); ++k) in[k] = static_cast<float>(k % 17);
    constexpr int64_t kDims[] = {kLength};
    std::vector<BufferPtr> arguments;
    arguments.push_back(upload(client_.get(), {COLLET_TYPE_F32, 1, kDims}, in.data()));
    for (int repeat = 0; repeat < 2; ++repeat) {
      control_.donated = 0;
      const auto out = run(e.get(), arguments);
      ASSERT_EQ(out.size(), want.size()) << failure.message;
      for (size_t k = 0; k < out.size(); ++k) EXPECT_EQ(download<float>(out[k]), want[k]) << k;
      EXPECT_EQ(control_.donated.load(), updates);
    }
    EXPECT_EQ(download<float>(arguments[0]), in);
  }

  static std::vector<float> start() {
    std::vector<float> v(kLength);
    for (size_t k = 0; k < v.size(); ++k) v[k] = static_cast<float>(k % 17);
    return v;
  }

  Control control_;
  ClientPtr client_;
};

constexpr char kUpdate[] = R"(
  h = s32[] subtract(i, one)
  c = f32[1] dynamic-slice(x, h), dynamic_slice_sizes={1}
  d = f32[1] add(c, c)
  y = f32[1000] dynamic-update-slice(x, d, i)
  u = f32[] add(t, t))";

/// The caller's array is copied in the first iteration.
TEST_F(Updates, ALoopWritesOverWhatOnlyItHas) {
  std::vector<float> want = start();
  for (size_t i = 1; i < 6; ++i) want[i] = want[i - 1] + want[i - 1];
  check(kUpdate, "  ROOT r = (f32[1000], f32[]) tuple(y, u)", {want, {0}}, 4);
}

TEST_F(Updates, WhatIsReturnedTooIsKept) {
  std::vector<float> want = start();
  for (size_t i = 1; i < 6; ++i) want[i] = want[i - 1] + want[i - 1];
  check(kUpdate, "  ROOT r = (f32[1000], f32[1000]) tuple(y, x)", {want, start()}, 4);
}

/// The old array is read by a separate launch after the update.
TEST_F(Updates, WhatIsReadLaterIsKept) {
  std::vector<float> want = start();
  float sum = 0;
  for (size_t i = 1; i < 6; ++i) {
    sum += want[i];
    want[i] = 1;
  }
  control_.reject = COLLET_OP_RESHAPE;
  check(R"(
  c = f32[1] constant({1})
  y = f32[1000] dynamic-update-slice(x, c, i)
  a = f32[1] dynamic-slice(x, i), dynamic_slice_sizes={1}
  b = f32[] reshape(a)
  u = f32[] add(t, b))",
        "  ROOT r = (f32[1000], f32[]) tuple(y, u)", {want, {sum}}, 4);
}

/// A branch gets the array of the surrounding loop: in the third iteration it is the caller's array, in the two
/// iterations after that the loop's own.
TEST_F(Updates, ABranchWritesOverWhatItIsGiven) {
  std::vector<float> want = start();
  want[1] = 7;
  check(R"(
  three = s32[] constant(3)
  p = pred[] compare(i, three), direction=LT
  y = f32[1000] conditional(p, x, x), true_computation=take, false_computation=put
  u = f32[] add(t, t))",
        "  ROOT r = (f32[1000], f32[]) tuple(y, u)", {want, {0}}, 2);
}

// Both operands of each select come from the one before. Tracing must visit each value once only, else the time would
// be exponential.
TEST_F(Updates, ChainOfMaskedUpdates_Compiles) {
  std::string text =
      "HloModule m\nENTRY e {\n  x0 = f32[64] parameter(0)\n  p = pred[64] parameter(1)\n"
      "  v = f32[1] parameter(2)\n";
  constexpr int kLevels = 300;
  for (int i = 0; i < kLevels; ++i) {
    const std::string n = std::to_string(i), next = std::to_string(i + 1);
    text += "  i" + n + " = s32[] constant(" + std::to_string(i % 64) + ")\n  d" + n +
            " = f32[64] dynamic-update-slice(x" + n + ", v, i" + n + ")\n  " + (i + 1 == kLevels ? "ROOT " : "") + "x" +
            next + " = f32[64] select(p, d" + n + ", x" + n + ")\n";
  }
  const ExecutablePtr e = compile(client_.get(), text + "}");
  ASSERT_TRUE(e) << failure.message;
  constexpr int64_t kDims[] = {64}, kOne[] = {1};
  std::vector<float> x(64, 1), v(1, 7);
  std::vector<uint8_t> mask(64);
  for (size_t i = 0; i < mask.size(); i += 2) mask[i] = 1;
  std::vector<BufferPtr> arguments;
  arguments.push_back(upload(client_.get(), {COLLET_TYPE_F32, 1, kDims}, x.data()));
  arguments.push_back(upload(client_.get(), {COLLET_TYPE_PRED, 1, kDims}, mask.data()));
  arguments.push_back(upload(client_.get(), {COLLET_TYPE_F32, 1, kOne}, v.data()));
  const auto out = run(e.get(), arguments);
  ASSERT_EQ(out.size(), 1u) << failure.message;
  for (size_t i = 0; i < x.size(); i += 2) x[i] = 7;
  EXPECT_EQ(download<float>(out[0]), x);
}

}  // namespace
}  // namespace collet::testing
