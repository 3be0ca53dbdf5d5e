// SPDX-License-Identifier: Apache-2.0
#include <collet/collet.h>
#include <collet/error.h>
#include <gmock/gmock.h>

#include <array>

#include <chrono>
#include <future>
#include <thread>

#include "sdk/runtime/testing/programs.h"
#include "sdk/runtime/testing/queued.h"
#include "sdk/runtime/testing/session.h"

/// \file
/// Tests of the runtime on a device with queues. The runtime must queue work without waiting for it, must order work that
/// uses the same memory, and must not wait for work that is independent.

namespace collet::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr char kIncrementEntry[] = R"(
ENTRY e {
  x = f32[4] parameter(0)
  one = f32[] constant(1)
  ones = f32[4] broadcast(one), dimensions={}
  ROOT y = f32[4] add(x, ones)
})";
const std::string kIncrement = std::string("HloModule increment") + kIncrementEntry;
const std::string kIncrementInPlace =
    std::string("HloModule increment, input_output_alias={ {}: (0, {}, must-alias) }") + kIncrementEntry;

constexpr char kLarge[] = R"(HloModule large
ENTRY e {
  x = f32[1048576] parameter(0)
  ROOT y = f32[1048576] add(x, x)
})";

const std::string kLoop = "HloModule loop\n" + loop_computations(5, "y = f32[4] add(x, x)") + R"(ENTRY e {
  i = s32[] parameter(0)
  x = f32[4] parameter(1)
  s = (s32[], f32[4]) tuple(i, x)
  ROOT r = (s32[], f32[4]) while(s), condition=cond, body=body
})";

class Queues : public ::testing::Test, public Session {
 protected:
  void TearDown() override {
    client_.reset();
    control_.wait_until_closed();
    EXPECT_EQ(control_.instances.load(), 0);
    EXPECT_EQ(control_.buffers.load(), 0);
    EXPECT_EQ(control_.executables.load(), 0);
    EXPECT_EQ(control_.queues.load(), 0);
    EXPECT_THAT(control_.broken_rules(), IsEmpty());
  }
  collet_client* start(uint32_t devices = 0, const char* fallback = "none", uint32_t runs_in_flight = 0) {
    client_ = open(test_backend("queued"), fallback, &control_, devices, runs_in_flight);
    EXPECT_TRUE(client_) << failure.message;
    return client_.get();
  }
  BufferPtr vector(const std::vector<float>& values, uint32_t device = 0) {
    const std::vector<int64_t> dims = {static_cast<int64_t>(values.size())};
    return upload(client_.get(), {COLLET_TYPE_F32, 1, dims.data()}, values.data(), device);
  }
  // One result of a program with one argument.
  BufferPtr call(const ExecutablePtr& e, const BufferPtr& x, collet_execute_options options = {}) {
    options.struct_size = sizeof options;
    collet_buffer *in[] = {x.get()}, *out[] = {nullptr};
    collet_error error{};
    failure.code = collet_execute(e.get(), &options, in, out, &error);
    failure.message = error.message;
    return BufferPtr(out[0]);
  }
  static int64_t ms(Clock::duration d) { return std::chrono::duration_cast<milliseconds>(d).count(); }
  collet_status outcome(const BufferPtr& buffer) {
    const EventPtr ready(collet_buffer_ready(buffer.get()));
    collet_error error{};
    const collet_status code = collet_event_wait(ready.get(), &error);
    failure = {code, error.message};
    return code;
  }

  QueueControl control_;
  ClientPtr client_;
};

TEST_F(Queues, EverythingIsPutThereAndComesOutRight) {
  const ExecutablePtr e = compile(start(), kIncrement);
  ASSERT_TRUE(e) << failure.message;
  const int64_t before = control_.blocking;
  EXPECT_THAT(download<float>(call(e, vector({1, 2, 3, 4}))), ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(control_.blocking.load(), before);
  EXPECT_EQ(control_.pieces.load(), 3);
}

TEST_F(Queues, ExecuteReturnsBeforeTheDeviceHasBegun) {
  const ExecutablePtr e = compile(start(), kIncrement);
  control_.hold = true;
  const BufferPtr x = vector({1, 2, 3, 4});
  const BufferPtr y = call(e, x), z = call(e, y);
  ASSERT_TRUE(z) << failure.message;
  const EventPtr ready(collet_buffer_ready(z.get()));
  EXPECT_FALSE(collet_event_is_ready(ready.get()));
  EXPECT_EQ(collet_event_wait_for(ready.get(), 1000000, nullptr), COLLET_DEADLINE_EXCEEDED);
  EXPECT_EQ(control_.pieces.load(), 3);
  control_.hold = false;
  EXPECT_THAT(download<float>(z), ElementsAre(3, 4, 5, 6));
}

// The thread that reports the end of work may be late; a caller that has waited must not see that.
TEST_F(Queues, AnEventIsReadyAfterAWaitForIt) {
  const ExecutablePtr e = compile(start(), kIncrement);
  const BufferPtr x = vector({1, 2, 3, 4});
  control_.hold = true;
  const BufferPtr y = call(e, x), z = call(e, y);
  ASSERT_TRUE(z) << failure.message;
  const EventPtr first(collet_buffer_ready(y.get())), last(collet_buffer_ready(z.get()));
  std::promise<void> go_on;
  std::future<void> may_go_on = go_on.get_future();
  collet_event_on_ready(
      first.get(), [](void* user, collet_status, const char*) { static_cast<std::future<void>*>(user)->wait(); },
      &may_go_on);
  EXPECT_FALSE(collet_event_is_ready(last.get()));
  control_.hold = false;
  EXPECT_EQ(collet_event_wait(last.get(), nullptr), COLLET_OK);
  EXPECT_TRUE(collet_event_is_ready(last.get()));
  go_on.set_value();
}

// Random delays change the order in which the queues do their work; the results must not change.
TEST_F(Queues, ManyRunsUnderRandomDelaysKeepTheirOrder) {
  control_.jitter_ns = 100000;
  const ExecutablePtr e = compile(start(0, "none", 8), kIncrement),
                      in_place = compile(client_.get(), kIncrementInPlace);
  for (int round = 0; round < 20; ++round) {
    const auto first = static_cast<float>(round);
    BufferPtr x = vector({first, 0, 0, 0});
    std::vector<BufferPtr> kept;
    for (int i = 0; i < 20; ++i) {
      BufferPtr y = call(i % 3 ? in_place : e, x);
      ASSERT_TRUE(y) << failure.message;
      if (i % 3 == 0) kept.push_back(std::move(x));
      x = std::move(y);
    }
    for (size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(download<float>(kept[i])[0], first + 3 * static_cast<float>(i));
    EXPECT_EQ(download<float>(x)[0], first + 20);
  }
}

// A later run that would overwrite donated memory must wait for a download of it that has not begun.
TEST_F(Queues, DonatedMemoryIsNotOverwrittenWhileItIsCopied) {
  const ExecutablePtr e = compile(start(), kIncrementInPlace);
  const BufferPtr x = vector({1, 2, 3, 4});
  EXPECT_EQ(outcome(x), COLLET_OK);
  control_.jitter_ns = 3000000;
  float out[4] = {};
  collet_event* raw = nullptr;
  ASSERT_EQ(collet_buffer_to_host(x.get(), out, sizeof out, &raw, nullptr), COLLET_OK);
  const EventPtr copied(raw);
  const BufferPtr y = call(e, x);
  ASSERT_TRUE(y) << failure.message;
  EXPECT_EQ(collet_event_wait(copied.get(), nullptr), COLLET_OK);
  EXPECT_THAT(out, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(download<float>(y), ElementsAre(2, 3, 4, 5));
}

TEST_F(Queues, ADonatedResultInFlightIsOverwrittenInPlace) {
  const ExecutablePtr e = compile(start(), kIncrementInPlace);
  BufferPtr x = vector({1, 2, 3, 4});
  control_.hold = true;
  const int64_t before = control_.buffers;
  for (int i = 0; i < 20; ++i) x = call(e, x);
  EXPECT_EQ(control_.buffers.load(), before);
  control_.hold = false;
  EXPECT_THAT(download<float>(x), ElementsAre(21, 22, 23, 24));
}

TEST_F(Queues, RunsInFlightAreBounded) {
  const ExecutablePtr e = compile(start(0, "none", 4), kLarge);
  BufferPtr x = vector(std::vector<float>(1048576, 1));
  control_.duration_ns = 200000;
  for (int i = 0; i < 100; ++i) {
    x = call(e, x);
    ASSERT_TRUE(x) << failure.message;
  }
  EXPECT_EQ(outcome(x), COLLET_OK);
  EXPECT_LE(control_.most_pending.load(), 5);
  EXPECT_LE(control_.most_bytes.load(), int64_t{8} * 4 * 1048576);
}

// The limit of runs in flight does not hold for runs that wait for a promise: the thread that starts them may be the one
// that fulfils it, and would block itself.
TEST_F(Queues, RunsBehindAPromiseDoNotBlock) {
  const ExecutablePtr e = compile(start(0, "none", 2), kIncrement);
  const int64_t four[] = {4};
  const collet_array_type type = {COLLET_TYPE_F32, 1, four};
  collet_buffer* raw = nullptr;
  ASSERT_EQ(collet_buffer_promise(client_.get(), 0, COLLET_NONE, &type, &raw, nullptr), COLLET_OK);
  const BufferPtr promise(raw);
  BufferPtr x = call(e, promise);
  for (int i = 0; i < 9; ++i) x = call(e, x);
  ASSERT_TRUE(x) << failure.message;
  const BufferPtr source = vector({1, 2, 3, 4});
  ASSERT_EQ(collet_buffer_fulfil(raw, source.get(), nullptr), COLLET_OK);
  EXPECT_THAT(download<float>(x), ElementsAre(11, 12, 13, 14));
}

TEST_F(Queues, ControlFlowOfTheRuntimeWaitsForItsDecisionsAlone) {
  control_.jitter_ns = 50000;
  control_.without_traits = COLLET_TRAIT_CONTROL_FLOW;
  const ExecutablePtr e = compile(start(0, "interpreter"), kLoop);
  ASSERT_TRUE(e) << failure.message;
  const int32_t zero = 0;
  std::vector<BufferPtr> in;
  in.push_back(upload(client_.get(), {COLLET_TYPE_S32, 0, nullptr}, &zero));
  in.push_back(vector({1, 2, 3, 4}));
  for (int i = 0; i < 10; ++i) {
    const auto out = run(e.get(), in);
    ASSERT_EQ(out.size(), 2u) << failure.message;
    EXPECT_THAT(download<int32_t>(out[0]), ElementsAre(5));
    EXPECT_THAT(download<float>(out[1]), ElementsAre(32, 64, 96, 128));
  }
}

// The host runs this loop. Its arguments are ready, so the caller's thread begins it.
TEST_F(Queues, ASynchronousRunHasEndedWhenTheCallReturns) {
  control_.without_traits = COLLET_TRAIT_CONTROL_FLOW;
  const ExecutablePtr e = compile(start(), kLoop);
  ASSERT_TRUE(e) << failure.message;
  const int32_t zero = 0;
  const BufferPtr i = upload(client_.get(), {COLLET_TYPE_S32, 0, nullptr}, &zero), x = vector({1, 2, 3, 4});
  ASSERT_EQ(outcome(i), COLLET_OK);
  ASSERT_EQ(outcome(x), COLLET_OK);
  control_.duration_ns = 1000000;
  collet_execute_options options{};
  options.struct_size = sizeof options;
  options.synchronous = 1;
  options.keep_donated = 1;
  collet_buffer *in[] = {i.get(), x.get()}, *out[] = {nullptr, nullptr};
  collet_error error{};
  ASSERT_EQ(collet_execute(e.get(), &options, in, out, &error), COLLET_OK) << error.message;
  EXPECT_EQ(control_.pending.load(), 0);
  const BufferPtr count(out[0]), y(out[1]);
  EXPECT_THAT(download<float>(y), ElementsAre(32, 64, 96, 128));
}

TEST_F(Queues, CopiesBetweenDevicesAndPromisesAreOrdered) {
  control_.jitter_ns = 200000;
  const ExecutablePtr e = compile(start(2), kIncrement);
  const BufferPtr x = vector({1, 2, 3, 4});
  const BufferPtr y = call(e, x);
  collet_buffer* raw = nullptr;
  ASSERT_EQ(collet_buffer_copy(y.get(), 1, COLLET_NONE, &raw, nullptr), COLLET_OK);
  const BufferPtr there(raw);
  ASSERT_EQ(collet_buffer_copy(there.get(), 0, COLLET_NONE, &raw, nullptr), COLLET_OK);
  const BufferPtr back(raw);
  EXPECT_THAT(download<float>(call(e, back)), ElementsAre(3, 4, 5, 6));
}

TEST_F(Queues, AFailureReachesWhatWaitsForItAndNothingElse) {
  const ExecutablePtr e = compile(start(), kIncrement);
  const BufferPtr x = vector({1, 2, 3, 4});
  EXPECT_EQ(outcome(x), COLLET_OK);
  control_.hold = true;
  control_.fail_at = control_.pieces.load();
  const BufferPtr broken = call(e, x), after = call(e, broken);
  ASSERT_TRUE(after) << failure.message;
  control_.hold = false;
  EXPECT_EQ(outcome(after), COLLET_INTERNAL);
  EXPECT_THAT(failure.message, HasSubstr("injected: work failed on the device"));
  EXPECT_THAT(failure.message, HasSubstr("backend 'queued'"));
  EXPECT_EQ(outcome(broken), COLLET_INTERNAL);
  // A run that uses a failed buffer fails with that buffer's message; the device still runs other programs.
  EXPECT_FALSE(call(e, broken));
  EXPECT_THAT(failure.message, HasSubstr("injected: work failed on the device"));
  EXPECT_THAT(download<float>(call(e, x)), ElementsAre(2, 3, 4, 5));
}

// Nobody has waited for the first run when the second one fails.
TEST_F(Queues, WhatWasDoneBeforeAFailureStaysDone) {
  const ExecutablePtr e = compile(start(), kIncrement);
  const BufferPtr x = vector({1, 2, 3, 4});
  EXPECT_EQ(outcome(x), COLLET_OK);
  // Keeps the thread that waits for the ends of runs.
  struct Gate {
    std::promise<void> reached, open;
  } gate;
  control_.hold = true;
  const BufferPtr first = call(e, x);
  const EventPtr ready(collet_buffer_ready(first.get()));
  collet_event_on_ready(
      ready.get(),
      [](void* user, collet_status, const char*) {
        static_cast<Gate*>(user)->reached.set_value();
        static_cast<Gate*>(user)->open.get_future().wait();
      },
      &gate);
  control_.hold = false;
  gate.reached.get_future().wait();
  const BufferPtr done = call(e, x);
  control_.fail_at = control_.pieces.load();
  const BufferPtr broken = call(e, x);
  EXPECT_EQ(outcome(broken), COLLET_INTERNAL);
  EXPECT_EQ(outcome(done), COLLET_OK) << failure.message;
  gate.open.set_value();
  EXPECT_THAT(download<float>(done), ElementsAre(2, 3, 4, 5)) << failure.message;
}

// The host runs a loop, of which the third launch is refused while the device still runs the first two.
TEST_F(Queues, AnExecutableStaysUntilWhatWasPutBeforeAFailureHasEnded) {
  control_.without_traits = COLLET_TRAIT_CONTROL_FLOW;
  const ModulePtr module = read(kLoop);
  collet_compile_request request{};
  request.no_cache = 1;
  request.ignore_costs = 1;
  ExecutablePtr e = compile(start(0, "interpreter"), module.get(), request);
  ASSERT_TRUE(e) << failure.message;
  const int32_t zero = 0;
  std::vector<BufferPtr> in;
  in.push_back(upload(client_.get(), {COLLET_TYPE_S32, 0, nullptr}, &zero));
  in.push_back(vector({1, 2, 3, 4}));
  for (const BufferPtr& one : in) EXPECT_EQ(outcome(one), COLLET_OK);
  control_.duration_ns = 50000000;
  control_.refuse_at = control_.pieces + 2;
  collet_execute_options options{};
  options.synchronous = 1;
  EXPECT_TRUE(run(e.get(), in, options).empty()) << control_.pieces << " refuse " << control_.refuse_at;
  EXPECT_EQ(failure.code, COLLET_RESOURCE_EXHAUSTED) << failure.message;
  e.reset();
}

TEST_F(Queues, AFailedUploadDoesNotStopTheDevice) {
  const ExecutablePtr e = compile(start(), kIncrement);
  control_.fail_at = control_.pieces.load();
  const BufferPtr x = vector({1, 2, 3, 4});
  ASSERT_TRUE(x) << failure.message;
  EXPECT_EQ(outcome(x), COLLET_INTERNAL);
  EXPECT_FALSE(call(e, x));
  EXPECT_THAT(download<float>(call(e, vector({1, 2, 3, 4}))), ElementsAre(2, 3, 4, 5));
}

TEST_F(Queues, ALostDeviceIsUnavailableFromThenOn) {
  const ExecutablePtr e = compile(start(), kIncrement);
  const BufferPtr x = vector({1, 2, 3, 4});
  EXPECT_EQ(outcome(x), COLLET_OK);
  control_.hold = true;
  const BufferPtr y = call(e, x);
  control_.lost = true;
  control_.hold = false;
  EXPECT_EQ(outcome(y), COLLET_UNAVAILABLE);
  EXPECT_FALSE(call(e, x));
  EXPECT_EQ(failure.code, COLLET_UNAVAILABLE);
}

TEST_F(Queues, CloseCancelsWhatNobodyCanObserve) {
  const ExecutablePtr e = compile(start(), kIncrement);
  BufferPtr x = vector({1, 2, 3, 4});
  control_.duration_ns = 20000000;
  for (int i = 0; i < 30; ++i) x = call(e, x);
  x.reset();
  const_cast<ExecutablePtr&>(e).reset();
  const auto start = Clock::now();
  client_.reset();
  control_.wait_until_closed();
  EXPECT_LT(ms(Clock::now() - start), 400);
}

// What has begun cannot be cancelled, and what waits calls back with CANCELLED: both before close returns.
TEST_F(Queues, CloseReturnsAfterTheLastCallback) {
  struct Calls {
    std::atomic<int> all{0}, cancelled{0};
  } calls;
  ExecutablePtr e = compile(start(), kIncrement);
  BufferPtr x = vector({1, 2, 3, 4});
  ASSERT_EQ(outcome(x), COLLET_OK);
  control_.duration_ns = 300000000;
  for (int i = 0; i < 3; ++i) {
    x = call(e, x);
    const EventPtr ready(collet_buffer_ready(x.get()));
    collet_event_on_ready(
        ready.get(),
        [](void* user, collet_status code, const char*) {
          std::this_thread::sleep_for(milliseconds(20));
          auto& to = *static_cast<Calls*>(user);
          to.cancelled += code == COLLET_CANCELLED;
          ++to.all;
        },
        &calls);
  }
  x.reset();
  e.reset();
  client_.reset();
  EXPECT_EQ(calls.all, 3);
  EXPECT_GE(calls.cancelled, 2);
  EXPECT_EQ(control_.instances.load(), 0);
}

TEST_F(Queues, CloseInACallbackDoesNotWaitForIt) {
  ExecutablePtr e = compile(start(), kIncrement);
  BufferPtr x = vector({1, 2, 3, 4});
  control_.duration_ns = 20000000;
  x = call(e, x);
  const EventPtr ready(collet_buffer_ready(x.get()));
  x.reset();
  e.reset();
  collet_event_on_ready(
      ready.get(),
      [](void* user, collet_status, const char*) { collet_client_close(static_cast<collet_client*>(user)); },
      client_.release());
  control_.wait_until_closed();
  EXPECT_EQ(control_.instances.load(), 0);
}

// Many runs and copies end while the client is closed.
TEST_F(Queues, CloseWhileWorkEnds) {
  for (int round = 0; round < 50; ++round) {
    start(2);
    control_.jitter_ns = 100000;
    ExecutablePtr e = compile(client_.get(), kIncrement);
    BufferPtr x = vector({1, 2, 3, 4});
    for (int i = 0; i < 5; ++i) {
      x = call(e, x);
      collet_buffer* copy = nullptr;
      ASSERT_EQ(collet_buffer_copy(x.get(), 1, COLLET_NONE, &copy, nullptr), COLLET_OK);
      collet_buffer_release(copy);
    }
    x.reset();
    e.reset();
    client_.reset();
    EXPECT_EQ(control_.instances.load(), 0);
  }
}

TEST_F(Queues, ResultsOutliveTheClientsClose) {
  const ExecutablePtr e = compile(start(), kIncrement);
  BufferPtr x = vector({1, 2, 3, 4});
  control_.duration_ns = 20000000;
  x = call(e, x);
  client_.reset();
  EXPECT_EQ(outcome(x), COLLET_OK);
}

TEST_F(Queues, SerialDevicesAreWaitedForWithoutTheLock) {
  control_.traits = COLLET_TRAIT_SERIAL;
  const ExecutablePtr e = compile(start(), kIncrement);
  control_.duration_ns = 5000000;
  const BufferPtr x = vector({1, 2, 3, 4}), y = call(e, x);
  std::thread waits([&] {
    std::array<float, 4> out{};
    EXPECT_EQ(collet_buffer_to_host(y.get(), out.data(), sizeof out, nullptr, nullptr), COLLET_OK);
    EXPECT_THAT(out, ElementsAre(2, 3, 4, 5));
  });
  const auto begin = Clock::now();
  const BufferPtr z = call(e, x);
  EXPECT_LT(ms(Clock::now() - begin), 5);
  waits.join();
  EXPECT_THAT(download<float>(z), ElementsAre(2, 3, 4, 5));
}

const std::string kSoftmax =
    "HloModule softmax\n" + combiner("add", "add", "f32") + combiner("max", "maximum", "f32") + R"(ENTRY e {
  x = f32[2,4] parameter(0)
  zero = f32[] constant(0)
  least = f32[] constant(-inf)
  most = f32[2] reduce(x, least), dimensions={1}, to_apply=max
  mosts = f32[2,4] broadcast(most), dimensions={0}
  d = f32[2,4] subtract(x, mosts)
  e = f32[2,4] exponential(d)
  sum = f32[2] reduce(e, zero), dimensions={1}, to_apply=add
  sums = f32[2,4] broadcast(sum), dimensions={0}
  ROOT y = f32[2,4] divide(e, sums)
})";

TEST_F(Queues, PatternsAreOfferedAsOneOp) {
  const char* const names[] = {"softmax", "attention", nullptr};
  control_.patterns = names;
  const ExecutablePtr e = compile(start(), kSoftmax);
  ASSERT_TRUE(e) << failure.message;
  EXPECT_EQ(facts(e.get()).device_ops, 1u) << explain(e.get());
  const int64_t dims[] = {2, 4};
  const float zeros[8] = {};
  const BufferPtr x = upload(client_.get(), {COLLET_TYPE_F32, 2, dims}, zeros);
  EXPECT_THAT(download<float>(call(e, x)), Each(0.25F));
}

constexpr char kShift[] = R"(HloModule shift
ENTRY e {
  x = f32[2,3] parameter(0)
  y = f32[2,3] parameter(1)
  ROOT z = f32[2,3] add(x, y)
})";
constexpr char kScale[] = R"(HloModule scale
ENTRY e {
  x = f32[2,3] parameter(0)
  s = f32[] parameter(1)
  b = f32[2,3] broadcast(s), dimensions={}
  ROOT z = f32[2,3] multiply(x, b)
})";

// A read that has an event does not wait for the run: its host function may need a lock that the reader holds. The device has layouts, and
// which one the result has is known when the run has begun.
TEST_F(Queues, ReadsDoNotWaitForHostFunctions) {
  const auto wait = [](void* user, const collet_host_call* call, collet_error* error) -> collet_status {
    const auto& go = *static_cast<std::atomic<bool>*>(user);
    for (int i = 0; i < 10000 && !go; ++i) std::this_thread::sleep_for(milliseconds(1));
    std::memcpy(call->results[0], call->operands[0], 4 * sizeof(float));
    return go ? COLLET_OK : collet_set_error(error, COLLET_DEADLINE_EXCEEDED, "the reader waits");
  };
  std::atomic<bool> go{false};
  control_.column_major = true;
  ASSERT_TRUE(start());
  const collet_host_function function = {"wait", &go, wait};
  collet_compile_request request{};
  request.host_functions = &function;
  request.host_function_count = 1;
  const ModulePtr module = read(
      "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n"
      "  ROOT y = f32[4] custom-call(x), custom_call_target=\"wait\"\n}\n");
  const ExecutablePtr e = compile(client_.get(), module.get(), request);
  ASSERT_TRUE(e) << failure.message;
  const BufferPtr result = call(e, vector({1, 2, 3, 4}));
  ASSERT_TRUE(result) << failure.message;
  float out[4] = {};
  collet_event* done = nullptr;
  ASSERT_EQ(collet_buffer_to_host(result.get(), out, sizeof out, &done, nullptr), COLLET_OK);
  go = true;
  collet_error error{};
  EXPECT_EQ(collet_event_wait(done, &error), COLLET_OK) << error.message;
  collet_event_release(done);
  EXPECT_THAT(out, ElementsAre(1, 2, 3, 4));
}

TEST_F(Queues, LayoutsAreKeptBetweenExecutablesAndConvertedElsewhere) {
  control_.column_major = true;
  control_.jitter_ns = 20000;
  for (const bool converts : {false, true}) {
    control_.converts = converts;
    const ExecutablePtr shift = compile(start(), kShift), scale = compile(client_.get(), kScale);
    ASSERT_TRUE(shift && scale) << failure.message;
    const int64_t dims[] = {2, 3};
    const float numbers[6] = {1, 2, 3, 4, 5, 6};
    const BufferPtr x = upload(client_.get(), {COLLET_TYPE_F32, 2, dims}, numbers);
    const float two = 2;
    const BufferPtr s = upload(client_.get(), {COLLET_TYPE_F32, 0, nullptr}, &two);
    const int64_t before = control_.conversions;
    collet_buffer *in[] = {x.get(), x.get()}, *out = nullptr;
    ASSERT_EQ(collet_execute(shift.get(), nullptr, in, &out, nullptr), COLLET_OK);
    const BufferPtr y(out);
    if (converts) {
      EXPECT_EQ(control_.conversions - before, 2);
    }
    in[0] = in[1] = y.get();  // y has the layout that the program wants, so nothing is converted
    ASSERT_EQ(collet_execute(shift.get(), nullptr, in, &out, nullptr), COLLET_OK);
    const BufferPtr z(out);
    if (converts) {
      EXPECT_EQ(control_.conversions - before, 2);
    }
    in[0] = z.get();
    in[1] = s.get();
    ASSERT_EQ(collet_execute(scale.get(), nullptr, in, &out, nullptr), COLLET_OK);
    const BufferPtr scaled(out);
    if (converts) {
      EXPECT_EQ(control_.conversions - before, 3);
    }
    EXPECT_THAT(download<float>(z), ElementsAre(4, 8, 12, 16, 20, 24));
    EXPECT_THAT(download<float>(scaled), ElementsAre(8, 16, 24, 32, 40, 48));
    EXPECT_EQ(collet_buffer_host_pointer(z.get()), nullptr);
  }
  EXPECT_GT(control_.placed.load(), 0);
}

// Whether the layout of an argument is known when the program is called depends on whether the run that makes it has begun.
TEST_F(Queues, ReshapedArgumentsMayHaveLayouts) {
  control_.column_major = true;
  for (const bool converts : {false, true}) {
    control_.converts = converts;
    const ExecutablePtr shift = compile(start(), kShift), reshaped = compile(client_.get(), R"(HloModule reshaped
ENTRY e {
  x = f32[3,2] parameter(0)
  y = f32[3,2] parameter(1)
  ROOT z = f32[3,2] add(x, y)
})");
    ASSERT_TRUE(shift && reshaped) << failure.message;
    const int64_t dims[] = {2, 3};
    const collet_array_type type = {COLLET_TYPE_F32, 2, dims};
    const float numbers[6] = {1, 2, 3, 4, 5, 6};
    const BufferPtr x = upload(client_.get(), type, numbers);
    collet_execute_options options{};
    options.struct_size = sizeof options;
    options.reshape_arguments = 1;
    for (const bool is_known : {false, true}) {
      collet_buffer* promise = nullptr;
      ASSERT_EQ(collet_buffer_promise(client_.get(), 0, COLLET_NONE, &type, &promise, nullptr), COLLET_OK);
      const BufferPtr promised(promise);
      collet_buffer *in[] = {promise, promise}, *out = nullptr;
      collet_error error{};
      ASSERT_EQ(collet_execute(shift.get(), nullptr, in, &out, &error), COLLET_OK) << error.message;
      const BufferPtr y(out);
      const auto fulfil = [&] { return collet_buffer_fulfil(promise, x.get(), nullptr); };
      if (is_known) {
        ASSERT_EQ(fulfil(), COLLET_OK);
        ASSERT_EQ(outcome(y), COLLET_OK);
      }
      in[0] = in[1] = y.get();
      ASSERT_EQ(collet_execute(reshaped.get(), &options, in, &out, &error), COLLET_OK) << error.message;
      const BufferPtr z(out);
      if (!is_known) {
        ASSERT_EQ(fulfil(), COLLET_OK);
      }
      EXPECT_THAT(download<float>(z), ElementsAre(4, 8, 12, 16, 20, 24)) << converts << is_known;
    }
  }
  EXPECT_GT(control_.placed.load(), 0);
}

TEST_F(Queues, ArgumentsThatStayAreHandedOverPrepared) {
  control_.residency = true;
  control_.jitter_ns = 20000;
  const ExecutablePtr e = compile(start(), kShift);
  const int64_t dims[] = {2, 3};
  const float numbers[6] = {1, 2, 3, 4, 5, 6}, others[6] = {10, 20, 30, 40, 50, 60};
  BufferPtr weights = upload(client_.get(), {COLLET_TYPE_F32, 2, dims}, numbers);
  for (int i = 0; i < 5; ++i) {
    const BufferPtr x = upload(client_.get(), {COLLET_TYPE_F32, 2, dims}, others);
    collet_buffer *in[] = {weights.get(), x.get()}, *out = nullptr;
    ASSERT_EQ(collet_execute(e.get(), nullptr, in, &out, nullptr), COLLET_OK);
    EXPECT_THAT(download<float>(BufferPtr(out)), ElementsAre(11, 22, 33, 44, 55, 66));
  }
  EXPECT_EQ(control_.prepared.load(), 1);
  EXPECT_EQ(control_.as_prepared.load(), 4);
  // New weights may get the memory of the old ones. They must be prepared again, not replaced by the old prepared form.
  weights.reset();
  weights = upload(client_.get(), {COLLET_TYPE_F32, 2, dims}, others);
  for (int i = 0; i < 3; ++i) {
    collet_buffer *in[] = {weights.get(), weights.get()}, *out = nullptr;
    ASSERT_EQ(collet_execute(e.get(), nullptr, in, &out, nullptr), COLLET_OK);
    EXPECT_THAT(download<float>(BufferPtr(out)), ElementsAre(20, 40, 60, 80, 100, 120));
  }
  EXPECT_EQ(control_.prepared.load(), 2);
}

TEST_F(Queues, ScalarsThatTheHostKnowsComeByValue) {
  control_.traits = COLLET_TRAIT_SCALARS;
  const ExecutablePtr e = compile(start(), kScale);
  const int64_t dims[] = {2, 3};
  const float numbers[6] = {1, 2, 3, 4, 5, 6}, two = 2;
  const BufferPtr x = upload(client_.get(), {COLLET_TYPE_F32, 2, dims}, numbers);
  const BufferPtr s = upload(client_.get(), {COLLET_TYPE_F32, 0, nullptr}, &two);
  collet_buffer *in[] = {x.get(), s.get()}, *out = nullptr;
  ASSERT_EQ(collet_execute(e.get(), nullptr, in, &out, nullptr), COLLET_OK);
  EXPECT_THAT(download<float>(BufferPtr(out)), ElementsAre(2, 4, 6, 8, 10, 12));
  EXPECT_EQ(control_.by_value.load(), 1);
}

TEST_F(Queues, LargeConstantsStandInTheProgramOfADeviceThatAsksForIt) {
  std::string numbers = "1";
  for (int i = 1; i < 2048; ++i) numbers += ", " + std::to_string(i % 7);
  const std::string text = "HloModule m\nENTRY main {\n  x = f32[2048] parameter(0)\n  w = f32[2048] constant({" +
                           numbers + "})\n  ROOT y = f32[2048] add(x, w)\n}\n";
  for (const bool within : {false, true}) {
    control_.traits = within ? COLLET_TRAIT_INLINE_CONSTANTS : 0;
    client_.reset();
    const ExecutablePtr e = compile(start(), text.c_str());
    const std::vector<float> ones(2048, 1);
    const int64_t dims[] = {2048};
    const BufferPtr x = upload(client_.get(), {COLLET_TYPE_F32, 1, dims}, ones.data());
    const int64_t before = control_.passed;
    collet_buffer *in[] = {x.get()}, *out = nullptr;
    ASSERT_EQ(collet_execute(e.get(), nullptr, in, &out, nullptr), COLLET_OK);
    const std::vector<float> sums = download<float>(BufferPtr(out));
    ASSERT_EQ(sums.size(), 2048u);
    for (int i = 0; i < 2048; ++i) ASSERT_EQ(sums[i], i ? 1 + static_cast<float>(i % 7) : 2) << i;
    EXPECT_EQ(control_.passed - before, within ? 1 : 2);
  }
}

TEST_F(Queues, ThreadsShareTheDevice) {
  control_.jitter_ns = 20000;
  const ExecutablePtr e = compile(start(), kIncrement), in_place = compile(client_.get(), kIncrementInPlace);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        Session session;
        const std::vector<float> values(4, static_cast<float>(t));
        const int64_t four[] = {4};
        BufferPtr x = session.upload(client_.get(), {COLLET_TYPE_F32, 1, four}, values.data());
        for (int i = 0; i < 5; ++i) {
          collet_buffer *in[] = {x.get()}, *out[] = {nullptr};
          ASSERT_EQ(collet_execute((i % 2 ? e : in_place).get(), nullptr, in, out, nullptr), COLLET_OK);
          x.reset(out[0]);
        }
        EXPECT_THAT(session.download<float>(x), Each(static_cast<float>(t + 5)));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace collet::testing
