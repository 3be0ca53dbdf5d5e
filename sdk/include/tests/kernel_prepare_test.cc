// SPDX-License-Identifier: Apache-2.0
#include <collet/kernel_prepare.hpp>

#include <atomic>
#include <chrono>
#include <thread>

#include "sdk/include/tests/kernel_fixture.h"

// Backend::prepare, by which the ops of a program are prepared together.

namespace collet::kernel {
namespace {

std::vector<uint64_t> given;                 // elements of the ops of the last call
std::atomic<int> inside{0}, most_inside{0};  // calls of Kernel::prepare that run at the same time
std::atomic<int> begun{0};
int64_t fails_at = -1;  // an op with so many elements

/// Adds, if its state is the number of elements.
Kernel prepared_add() {
  Kernel add = add_kernel();
  add.run = [run = add.run](Device& device, const Op& op) {
    EXPECT_EQ(op.state<uint64_t>(), op.result().elements);
    run(device, op);
  };
  return add;
}

Backend describe_together() {
  Backend backend = describe();
  backend.kernels[0] = prepared_add();
  backend.prepare = [](Device&, const std::vector<Preparation>& all) {
    given.clear();
    for (const Preparation& one : all) {
      EXPECT_FALSE(one.state->has_value());
      given.push_back(one.op.result().elements);
      if (one.row->opcode == COLLET_OP_ADD) *one.state = one.op.result().elements;
    }
  };
  return backend;
}

Backend describe_threads() {
  Backend backend = describe();
  backend.kernels[0] = prepared_add();
  backend.kernels[0].prepare = [](Device&, const Op& op) -> std::any {
    ++begun;
    for (int now = ++inside, most = most_inside; now > most && !most_inside.compare_exchange_weak(most, now);) continue;
    // The others get time to come, so that a call that waits for the one before it shows.
    for (int i = 0; i == 0 || (i < 500 && most_inside < 3); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --inside;
    if (static_cast<int64_t>(op.result().elements) == fails_at) throw Error(COLLET_RESOURCE_EXHAUSTED, "too large");
    return op.result().elements;
  };
  backend.prepare = prepare_by_threads(3);
  return backend;
}

class Prepare : public KernelBackend {
 protected:
  void SetUp() override {
    fails_at = -1;
    inside = most_inside = begun = 0;
  }
  /// Returns a program of additions of vectors of 1, 2, ... elements.
  std::vector<uint64_t> additions(uint32_t count) {
    ProgramWriter writer;
    std::vector<uint32_t> arguments, results;
    for (uint32_t i = 1; i <= count; ++i) arguments.push_back(writer.argument(writer.type(COLLET_TYPE_F32, {i})));
    for (uint32_t i = 1; i <= count; ++i)
      results.push_back(
          writer.op(COLLET_OP_ADD, writer.type(COLLET_TYPE_F32, {i}), {arguments[i - 1], arguments[i - 1]}));
    return writer.finish(count, results);
  }
  std::vector<std::vector<float>> ones(uint32_t count) {
    std::vector<std::vector<float>> out;
    for (uint32_t i = 1; i <= count; ++i) out.emplace_back(i, 1.0f);
    return out;
  }
};

TEST_F(Prepare, TakesAllOpsOfAProgramAtOnce) {
  ASSERT_NO_FATAL_FAILURE(open_instance(detail::enter<describe_together>));
  const auto out = run(additions(4), ones(4));
  EXPECT_EQ(given, (std::vector<uint64_t>{1, 2, 3, 4}));
  ASSERT_EQ(out.size(), 4u);
  EXPECT_EQ(out[3], (std::vector<float>{2, 2, 2, 2}));
}

TEST_F(Prepare, ThreadsPrepareSeveralAtATime) {
  ASSERT_NO_FATAL_FAILURE(open_instance(detail::enter<describe_threads>));
  const auto out = run(additions(9), ones(9));
  EXPECT_EQ(begun, 9);
  EXPECT_EQ(most_inside, 3);
  ASSERT_EQ(out.size(), 9u);
  EXPECT_EQ(out[8], std::vector<float>(9, 2.0f));
}

TEST_F(Prepare, AnErrorOfAThreadIsThatOfTheProgram) {
  ASSERT_NO_FATAL_FAILURE(open_instance(detail::enter<describe_threads>));
  fails_at = 2;
  const int finished = TestDevice::finished;
  EXPECT_EQ(compile(additions(60)), nullptr);
  EXPECT_EQ(status, COLLET_RESOURCE_EXHAUSTED);
  EXPECT_STREQ(error.message, "too large");
  EXPECT_EQ(inside, 0) << "all calls have ended";
  EXPECT_LT(begun, 60) << "no more were started";
  EXPECT_GT(TestDevice::finished, finished) << "the device was waited for";
}

}  // namespace
}  // namespace collet::kernel
