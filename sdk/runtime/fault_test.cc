// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <set>

#include "sdk/runtime/testing/programs.h"
#include "sdk/runtime/testing/session.h"

// Tests that any call into the backend may fail, once or from then on: the caller gets an error, nothing leaks, and the
// next program runs.

namespace collet::testing {
namespace {

using ::testing::HasSubstr;

// A program with clusters on both sides, a loop on the host, a constant that is an argument, and a donated argument.
const std::string kProgram = loop_program(3, "y = f32[4] sine(x)", R"(  big = f32[2048] iota(), iota_dimension=0
  part = f32[4] slice(big), slice={[8:12]}
  s = f32[4] add(y, part)
  p = f32[4] multiply(s, x)
  ROOT t = (f32[4], f32[4]) tuple(p, s))",
                                          ", input_output_alias={ {0}: (0, {}, must-alias) }");

constexpr uint32_t kTaken[] = {COLLET_OP_SINE, COLLET_OP_ADD, COLLET_OP_MULTIPLY, COLLET_OP_COMPARE};

class Fault : public ::testing::Test, public Session {
 protected:
  Fault() {
    control.only = kTaken;
    control.only_count = 4;
    control.remove_traits = COLLET_TRAIT_CONTROL_FLOW;
    control.hide_memory = true;
  }

  bool use(collet_client* client) {
    collet_compile_request request{};
    request.no_cache = 1;
    const ModulePtr module = read(kProgram);
    const ExecutablePtr e = compile(client, module.get(), request);
    if (!e) return false;
    std::vector<BufferPtr> in;
    in.push_back(upload<float>(client, COLLET_TYPE_F32, {4}, {1, 2, 3, 4}));
    if (!in[0]) return false;
    auto out = run(e.get(), in);
    if (out.empty()) return false;
    const std::vector<float> sum = download<float>(out[1]);
    if (failure.code != COLLET_OK) return false;
    EXPECT_NEAR(sum[0], 8.678, 0.01);
    EXPECT_GT(facts(e.get()).device_ops, 0u);
    EXPECT_GT(facts(e.get()).fallback_ops, 0u);
    return true;
  }

  // Repeats for every n: the n-th call fails or, with `for_good`, all calls from the n-th on.
  void fail_each(uint32_t kind, const char* message, bool for_good = false) {
    control.for_good = for_good;
    int64_t n = 0;
    for (;; ++n) {
      ASSERT_LT(n, 1000);
      control.counted = 0;
      const ClientPtr client = open(test_backend("wrapper"), "interpreter", &control);
      ASSERT_TRUE(client) << failure.message;
      control.counted = kind;
      control.calls = 0;
      control.fail_at = n;
      const bool went_well = use(client.get());
      const bool met = control.calls.load() > n;
      control.fail_at = -1;
      if (!met) {
        EXPECT_TRUE(went_well) << failure.message;
        break;
      }
      EXPECT_FALSE(went_well) << "call " << n << " failed unnoticed";
      EXPECT_THAT(failure.message, HasSubstr(message));
      EXPECT_THAT(failure.message, HasSubstr("wrapped_interpreter"));
      EXPECT_TRUE(use(client.get())) << "after call " << n << " had failed: " << failure.message;
      EXPECT_EQ(control.executables.load(), 0);
      collet_client_device_info info{};
      info.struct_size = sizeof info;
      EXPECT_EQ(collet_client_device_info_get(client.get(), 0, &info, nullptr), COLLET_OK);
      collet_client_trim(client.get());
      EXPECT_EQ(collet_client_device_info_get(client.get(), 0, &info, nullptr), COLLET_OK);
      EXPECT_EQ(info.bytes_in_use, 0u);
      EXPECT_EQ(control.buffers.load(), 0);
    }
    EXPECT_GT(n, 0);
    EXPECT_EQ(control.buffers.load(), 0);
    EXPECT_EQ(control.executables.load(), 0);
    EXPECT_EQ(control.instances.load(), 0);
  }

  Control control;
};

// A failed allocation is tried once more after the pools were emptied, so single failures do no harm.
TEST_F(Fault, Alloc) {
  for (int64_t n = 0;; ++n) {
    ASSERT_LT(n, 1000);
    const ClientPtr client = open(test_backend("wrapper"), "interpreter", &control);
    control.counted = kAlloc;
    control.calls = 0;
    control.fail_at = n;
    EXPECT_TRUE(use(client.get())) << failure.message;
    if (control.calls.load() <= n) break;
  }
  EXPECT_EQ(control.buffers.load(), 0);
}

struct Kind {
  const char* name;
  uint32_t bits;
  const char* message;
};

class FaultOf : public Fault, public ::testing::WithParamInterface<Kind> {};

TEST_P(FaultOf, FailsOnce) {
  const uint32_t bits = GetParam().bits & ~uint32_t{kAlloc};
  if (bits == 0) GTEST_SKIP() << "a single allocation that fails does no harm: see Alloc";
  fail_each(bits, GetParam().message);
}
TEST_P(FaultOf, FailsForGood) {
  fail_each(GetParam().bits, GetParam().message, true);
}

// The call that notices the loss says so to the caller, whichever it is, and the client can be closed at once.
TEST_P(FaultOf, LosesTheDevice) {
  control.for_good = control.loses = true;
  for (int64_t n = 0;; ++n) {
    ASSERT_LT(n, 1000);
    control.counted = 0;
    const ClientPtr client = open(test_backend("wrapper"), "interpreter", &control);
    ASSERT_TRUE(client) << failure.message;
    control.counted = GetParam().bits;
    control.calls = 0;
    control.fail_at = n;
    failure = {};
    const bool went_well = use(client.get());
    const bool met = control.calls.load() > n;
    if (!met) {
      EXPECT_TRUE(went_well) << failure.message;
      break;
    }
    EXPECT_FALSE(went_well) << "the loss at call " << n << " passed unnoticed";
    EXPECT_EQ(failure.code, COLLET_UNAVAILABLE) << "at call " << n << ": " << failure.message;
    EXPECT_THAT(failure.message, HasSubstr(GetParam().message));
    EXPECT_FALSE(use(client.get()));
    EXPECT_EQ(failure.code, COLLET_UNAVAILABLE) << failure.message;
  }
  control.fail_at = -1;
  EXPECT_EQ(control.buffers.load(), 0);
  EXPECT_EQ(control.executables.load(), 0);
  EXPECT_EQ(control.instances.load(), 0);
}

INSTANTIATE_TEST_SUITE_P(Calls, FaultOf,
                         ::testing::Values(Kind{"Alloc", kAlloc, "injected: no memory"},
                                           Kind{"Copy", kCopy, "injected: copy failed"},
                                           Kind{"Compile", kCompile, "injected: compile failed"},
                                           Kind{"Execute", kExecute, "injected: execute failed"},
                                           Kind{"Supports", kSupports, "injected: supports failed"},
                                           Kind{"All", kAlloc | kCopy | kCompile | kExecute | kSupports, "injected: "}),
                         [](const auto& kind) { return std::string(kind.param.name); });

// Work that was queued after the failed work fails too; work after the device has recovered does not.
TEST_F(Fault, QueuedWorkFailsAndTheNextRuns) {
  control.only_count = 0;
  const ClientPtr client = open(test_backend("wrapper"), "interpreter", &control);
  const ExecutablePtr e = compile(client.get(),
                                  "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n"
                                  "  ROOT y = f32[4] add(x, x)\n}\n");
  ASSERT_TRUE(e) << failure.message;
  control.delay_ns = 5000000;
  std::vector<BufferPtr> in;
  in.push_back(upload<float>(client.get(), COLLET_TYPE_F32, {4}, {1, 2, 3, 4}));
  run(e.get(), in);  // the library measures that the run takes long
  control.counted = kExecute;
  control.for_good = true;
  control.calls = 0;
  control.fail_at = 2;
  std::vector<BufferPtr> last;
  last.push_back(std::move(in[0]));
  for (int i = 0; i < 8; ++i) {
    auto out = run(e.get(), last);
    ASSERT_EQ(out.size(), 1u) << failure.message;
    last = std::move(out);
  }
  download<float>(last[0]);
  EXPECT_EQ(failure.code, COLLET_INTERNAL);
  EXPECT_THAT(failure.message, HasSubstr("injected: execute failed"));
  control.fail_at = -1;
  last[0] = upload<float>(client.get(), COLLET_TYPE_F32, {4}, {1, 2, 3, 4});
  const auto out = run(e.get(), last);
  ASSERT_EQ(out.size(), 1u) << failure.message;
  EXPECT_EQ(download<float>(out[0])[3], 8);
}

// The results of a run that waits are allocated when it starts. If that fails, the results fail, and work that uses them.
TEST_F(Fault, ResultsOfWaitingRunsFailWithoutMemory) {
  control.only_count = 0;
  control.hide_memory = false;
  const ClientPtr client = open(test_backend("wrapper"), "none", &control);
  const ExecutablePtr e = compile(client.get(),
                                  "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n"
                                  "  ROOT y = f32[4] add(x, x)\n}\n");
  ASSERT_TRUE(e) << failure.message;
  const int64_t dims[] = {4};
  const collet_array_type vector{COLLET_TYPE_F32, 1, dims};
  collet_buffer* raw = nullptr;
  ASSERT_EQ(collet_buffer_promise(client.get(), 0, COLLET_NONE, &vector, &raw, nullptr), COLLET_OK);
  const BufferPtr x(raw);
  control.counted = kAlloc;
  control.for_good = true;
  control.calls = 0;
  control.fail_at = 0;
  std::vector<BufferPtr> results;
  for (int i = 0; i < 3; ++i) {  // each run takes the result of the one before
    collet_buffer* in[] = {i == 0 ? x.get() : results.back().get()};
    ASSERT_EQ(collet_execute(e.get(), nullptr, in, &raw, nullptr), COLLET_OK);
    results.emplace_back(raw);
  }
  EXPECT_EQ(collet_buffer_host_pointer(results[1].get()), nullptr);
  ASSERT_EQ(collet_buffer_fulfil(x.get(), nullptr, nullptr), COLLET_OK);
  for (const BufferPtr& result : results) {
    download<float>(result);
    EXPECT_EQ(failure.code, COLLET_RESOURCE_EXHAUSTED);
    EXPECT_THAT(failure.message, HasSubstr("injected: no memory"));
    EXPECT_EQ(collet_buffer_host_pointer(result.get()), nullptr);
  }
  control.fail_at = -1;
  std::vector<BufferPtr> next;
  next.push_back(upload<float>(client.get(), COLLET_TYPE_F32, {4}, {1, 2, 3, 4}));
  const auto out = run(e.get(), next);
  ASSERT_EQ(out.size(), 1u) << failure.message;
  EXPECT_EQ(download<float>(out[0])[3], 8);
}

// If the device is lost during a run, every use returns an error, the client can be closed, and another client works.
TEST(DeviceLoss, IsToldAndSurvived) {
  Session s;
  const auto children = [] {
    std::ifstream file("/proc/self/task/" + std::to_string(getpid()) + "/children");
    return std::set<int>(std::istream_iterator<int>(file), {});
  };
  const std::set<int> before = children();
  constexpr char kAdd[] = "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] add(x, x)\n}\n";
  for (int round = 0; round < 2; ++round) {
    const ClientPtr client = s.open(test_backend("remote"));
    ASSERT_TRUE(client) << s.failure.message;
    const ExecutablePtr e = s.compile(client.get(), kAdd);
    std::vector<BufferPtr> in;
    in.push_back(s.upload<float>(client.get(), COLLET_TYPE_F32, {4}, {1, 2, 3, 4}));
    if (round == 1) {
      const auto out = s.run(e.get(), in);
      ASSERT_EQ(out.size(), 1u) << s.failure.message;
      EXPECT_EQ(s.download<float>(out[0])[3], 8);
      break;
    }
    for (int child : children())
      if (!before.contains(child)) {
        EXPECT_EQ(kill(child, SIGKILL), 0);
      }
    const auto out = s.run(e.get(), in);
    if (!out.empty()) s.download<float>(out[0]);
    EXPECT_EQ(s.failure.code, COLLET_UNAVAILABLE);
    EXPECT_THAT(s.failure.message, HasSubstr("the process with the memory is gone"));
    s.download<float>(in[0]);
    EXPECT_EQ(s.failure.code, COLLET_UNAVAILABLE);
    EXPECT_FALSE(s.upload<float>(client.get(), COLLET_TYPE_F32, {64}, std::vector<float>(64)));
    EXPECT_EQ(s.failure.code, COLLET_UNAVAILABLE);
  }
}

}  // namespace
}  // namespace collet::testing
