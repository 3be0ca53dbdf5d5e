// SPDX-License-Identifier: Apache-2.0
#include <collet/collet.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "sdk/runtime/testing/session.h"

// Tests donation: a donated buffer may be overwritten by the step that uses the donation, and no later step may read
// it.

namespace collet::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kDonates[] = R"(HloModule d, replica_count=2, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  ROOT s = f32[4] add(x, y)
})";

// An op of the fallback is between two clusters of the device; all three read the donated argument.
constexpr char kTwice[] = R"(HloModule twice, input_output_alias={ {0}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }
ENTRY e {
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  p = f32[4] multiply(a, b)
  s = f32[4] sine(p)
  t = f32[4] add(s, b)
  u = f32[4] add(t, a)
  v = f32[4] cosine(u)
  w = f32[4] multiply(v, b)
  ROOT r = (f32[4], f32[4]) tuple(u, w)
})";

constexpr uint32_t kTaken[] = {COLLET_OP_ADD, COLLET_OP_MULTIPLY, COLLET_OP_FUSION};

class Donation : public ::testing::Test, public Session {
 protected:
  BufferPtr vector(collet_client* client, const std::vector<float>& values, uint32_t device = 0) {
    return upload(client, kVector, values.data(), device);
  }
  Control control_;
};

TEST_F(Donation, IsToldOfTheLastLaunchThatReads) {
  control_.scribble = true;
  control_.only = kTaken;
  control_.only_count = 3;
  const ClientPtr client = open(test_backend("wrapper"), "interpreter", &control_);
  const ExecutablePtr e = compile(client.get(), kTwice);
  ASSERT_TRUE(e) << failure.message;
  ASSERT_GT(facts(e.get()).fallback_ops, 0u);
  std::vector<float> expected[2];
  for (const uint32_t keep : {1u, 0u}) {
    std::vector<BufferPtr> in;
    in.push_back(vector(client.get(), {1, 2, 3, 4}));
    in.push_back(vector(client.get(), {5, 6, 7, 8}));
    collet_execute_options options{};
    options.keep_donated = keep;
    const auto out = run(e.get(), in, options);
    ASSERT_EQ(out.size(), 2u) << failure.message;
    for (size_t i = 0; i < 2; ++i) {
      const auto values = download<float>(out[i]);
      if (keep) expected[i] = values;
      EXPECT_EQ(values, expected[i]) << "result " << i;
    }
    EXPECT_EQ(control_.donated.load(), keep ? 0 : 1);
  }
}

// An array without elements has no memory, and is donated all the same.
TEST_F(Donation, WhatHasNoBytesIsDeleted) {
  const ClientPtr client = open("interpreter");
  const ExecutablePtr e = compile(client.get(), R"(HloModule d, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e {
  x = f32[0,4] parameter(0)
  ROOT s = f32[0,4] add(x, x)
})");
  ASSERT_TRUE(e) << failure.message;
  constexpr int64_t kDims[] = {0, 4};
  std::vector<BufferPtr> in;
  in.push_back(upload(client.get(), {COLLET_TYPE_F32, 2, kDims}, nullptr));
  EXPECT_EQ(run(e.get(), in).size(), 1u) << failure.message;
  EXPECT_EQ(collet_buffer_is_deleted(in[0].get()), 1u);
  EXPECT_TRUE(run(e.get(), in).empty());
  EXPECT_EQ(failure.code, COLLET_FAILED_PRECONDITION) << failure.message;
}

// If one participant fails after the argument of another has been overwritten, the argument is not restored.
TEST_F(Donation, WhatWasOverwrittenIsNotGivenBack) {
  control_.remove_traits = COLLET_TRAIT_COLLECTIVES;
  const ClientPtr client = open(test_backend("wrapper"), "interpreter", &control_, 2);
  const ExecutablePtr e = compile(client.get(), kDonates);
  ASSERT_TRUE(e) << failure.message;
  for (const uint32_t broken : {1u, 0u}) {
    control_.broken_device = broken;
    std::vector<BufferPtr> in;
    for (const uint32_t device : {0u, 1u})
      for (int i = 0; i < 2; ++i) in.push_back(vector(client.get(), {1, 2, 3, 4}, device));
    collet_execute_options options{};
    options.synchronous = 1;
    EXPECT_TRUE(run(e.get(), in, options).empty());
    EXPECT_THAT(failure.message, HasSubstr("injected: execute failed"));
    const bool ran = broken == 1;
    EXPECT_EQ(collet_buffer_is_deleted(in[0].get()), ran ? 1u : 0u);
    if (!ran) {
      EXPECT_THAT(download<float>(in[0]), ElementsAre(1, 2, 3, 4));
      EXPECT_THAT(download<float>(in[2]), ElementsAre(1, 2, 3, 4));
    }
    EXPECT_THAT(download<float>(in[1]), ElementsAre(1, 2, 3, 4));
  }
}

// A launch that failed after it had started has overwritten its donated arguments.
TEST_F(Donation, WhatALaunchLostIsNotGivenBack) {
  const ClientPtr client = open(test_backend("wrapper"), "interpreter", &control_);
  std::string program = kDonates;
  program.erase(program.find(", replica_count=2"), strlen(", replica_count=2"));
  const ExecutablePtr e = compile(client.get(), program.c_str());
  ASSERT_TRUE(e) << failure.message;
  control_.broken_device = 0;
  for (const collet_status code : {COLLET_DATA_LOSS, COLLET_UNAVAILABLE}) {
    control_.failure = code;
    std::vector<BufferPtr> in;
    for (int i = 0; i < 2; ++i) in.push_back(vector(client.get(), {1, 2, 3, 4}));
    collet_execute_options options{};
    options.synchronous = 1;
    EXPECT_TRUE(run(e.get(), in, options).empty());
    EXPECT_EQ(failure.code, code);
    EXPECT_EQ(collet_buffer_is_deleted(in[0].get()), code == COLLET_DATA_LOSS ? 1u : 0u);
    EXPECT_THAT(download<float>(in[1]), ElementsAre(1, 2, 3, 4));
  }
}

// The plan has several steps and none has run, so the arguments are restored.
TEST_F(Donation, WhatWasNotOverwrittenIsGivenBack) {
  control_.only = kTaken;
  control_.only_count = 3;
  const ClientPtr client = open(test_backend("wrapper"), "interpreter", &control_);
  const ExecutablePtr e = compile(client.get(), kTwice);
  ASSERT_TRUE(e) << failure.message;
  collet_execute_options options{};
  options.synchronous = 1;
  std::vector<BufferPtr> in;
  in.push_back(vector(client.get(), {1, 2, 3, 4}));
  in.push_back(vector(client.get(), {5, 6, 7, 8}));
  control_.counted = kExecute;
  control_.fail_at = 0;
  EXPECT_TRUE(run(e.get(), in, options).empty());
  EXPECT_THAT(failure.message, HasSubstr("injected: execute failed"));
  EXPECT_THAT(download<float>(in[0]), ElementsAre(1, 2, 3, 4));

  collet_buffer* raw = nullptr;
  ASSERT_EQ(collet_buffer_promise(client.get(), 0, COLLET_NONE, &kVector, &raw, nullptr), COLLET_OK);
  in[1].reset(raw);
  ASSERT_EQ(collet_buffer_fail(raw, COLLET_ABORTED, "it never comes", nullptr), COLLET_OK);
  EXPECT_TRUE(run(e.get(), in, options).empty());
  EXPECT_THAT(failure.message, HasSubstr("it never comes"));
  EXPECT_THAT(download<float>(in[0]), ElementsAre(1, 2, 3, 4));
}

// Steps that wait donate what the step before has not computed yet. Each takes over its memory.
TEST_F(Donation, OfWhatAnEarlierRunHasNotComputedYet) {
  control_.scribble = true;
  const ClientPtr client = open(test_backend("wrapper"), "interpreter", &control_);
  std::string program = kDonates;
  program.erase(program.find(", replica_count=2"), strlen(", replica_count=2"));
  const ExecutablePtr e = compile(client.get(), program.c_str());
  ASSERT_TRUE(e) << failure.message;
  collet_buffer* raw = nullptr;
  ASSERT_EQ(collet_buffer_promise(client.get(), 0, COLLET_NONE, &kVector, &raw, nullptr), COLLET_OK);
  const BufferPtr late(raw);
  BufferPtr state = vector(client.get(), {1, 2, 3, 4});
  constexpr int kSteps = 5;
  for (int i = 0; i < kSteps; ++i) {
    collet_buffer *in[] = {state.get(), late.get()}, *out = nullptr;
    ASSERT_EQ(collet_execute(e.get(), nullptr, in, &out, nullptr), COLLET_OK);
    EXPECT_EQ(collet_buffer_is_deleted(state.get()), 1u);
    state.reset(out);
  }
  // Another run that reads it comes first.
  collet_execute_options keeps{};
  keeps.struct_size = sizeof keeps;
  keeps.keep_donated = 1;
  collet_buffer *in[] = {state.get(), late.get()}, *out = nullptr;
  ASSERT_EQ(collet_execute(e.get(), &keeps, in, &out, nullptr), COLLET_OK);
  const BufferPtr beside(out);
  ASSERT_EQ(collet_execute(e.get(), nullptr, in, &out, nullptr), COLLET_OK);
  const BufferPtr last(out);
  const float ones[] = {1, 1, 1, 1};
  ASSERT_EQ(collet_buffer_write(late.get(), 0, sizeof ones, ones, nullptr), COLLET_OK);
  ASSERT_EQ(collet_buffer_fulfil(late.get(), nullptr, nullptr), COLLET_OK);
  EXPECT_THAT(download<float>(last), ElementsAre(7, 8, 9, 10));
  EXPECT_THAT(download<float>(beside), ElementsAre(7, 8, 9, 10));
  EXPECT_EQ(control_.donated.load(), kSteps + 1);
}

// A large constant may be memory that the module holds, which no run may change.
TEST_F(Donation, ConstantsThatAreResultsStay) {
  const char* path = std::getenv("COLLET_BACKEND_PATH");
  if (!path || !std::ifstream(std::string(path) + "/libcollet_backend_cpu.so"))
    GTEST_SKIP() << "the backend cpu is not built";
  constexpr size_t kElements = 20000;
  std::string values;
  for (size_t i = 0; i < kElements; ++i) values += (i == 0 ? "" : ", ") + std::to_string(i % 1000);
  const ModulePtr module =
      read("HloModule c\nENTRY e {\n  x = f32[] parameter(0)\n  c = f32[20000] constant({" + values +
           "})\n  b = f32[20000] broadcast(x), dimensions={}\n  s = f32[20000] add(b, c)\n"
           "  ROOT r = (f32[20000], f32[20000]) tuple(c, s)\n}");
  ASSERT_TRUE(module) << failure.message;
  const ClientPtr client = open("cpu", "interpreter", nullptr, 2);
  ASSERT_TRUE(client) << failure.message;
  const ExecutablePtr doubles = compile(client.get(),
                                        "HloModule d, input_output_alias={ {}: (0, {}, may-alias) }\nENTRY e {\n"
                                        "  x = f32[20000] parameter(0)\n  ROOT s = f32[20000] add(x, x)\n}");
  ASSERT_TRUE(doubles) << failure.message;
  const float zero = 0;
  for (const uint32_t device : {0u, 1u, 0u}) {
    collet_compile_request request{};
    request.assignment = &device;
    request.assignment_count = 1;
    ExecutablePtr e = compile(client.get(), module.get(), request);
    ASSERT_TRUE(e) << failure.message;
    for (int turn = 0; turn < 2; ++turn) {
      std::vector<BufferPtr> in;
      in.push_back(upload(client.get(), {COLLET_TYPE_F32, 0, nullptr}, &zero, device));
      std::vector<BufferPtr> out = run(e.get(), in);
      ASSERT_EQ(out.size(), 2u) << failure.message;
      if (turn == 1) e.reset();
      for (size_t r = 0; r < 2; ++r) {
        const std::vector<float> got = download<float>(out[r]);
        for (size_t i = 0; i < kElements; ++i)
          ASSERT_EQ(got[i], static_cast<float>(i % 1000)) << "element " << i << " of result " << r;
      }
      out.resize(1);
      if (device == 0) run(doubles.get(), out);
    }
  }
}

}  // namespace
}  // namespace collet::testing
