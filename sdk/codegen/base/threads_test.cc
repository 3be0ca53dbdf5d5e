// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/threads.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

namespace collet::codegen {
namespace {

class ThreadsTest : public ::testing::Test {
 protected:
  static Target target() {
    Target t;
    t.threads = 2;
    t.awake_ns = 6000;
    t.wake_ns = 20000;
    return t;
  }

  /// Waits until the worker sleeps. That is so when worthwhile() refuses work that it would share with a spinning
  /// worker.
  bool wait_for_sleep() {
    for (int i = 0; i < 1000; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      if (!threads_.worthwhile(kSmall)) return true;
    }
    return false;
  }

  static constexpr double kSmall = 10000;
  Threads threads_{target()};
};

TEST_F(ThreadsTest, LargeWorkIsSharedAndTinyWorkIsNot) {
  EXPECT_TRUE(threads_.worthwhile(20001));
  EXPECT_FALSE(threads_.worthwhile(6000));
}

TEST_F(ThreadsTest, WorkThatComesRarelyDoesNotWake) {
  ASSERT_EQ(threads_.count(), 2);
  ASSERT_TRUE(wait_for_sleep());
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(threads_.worthwhile(kSmall));
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

// Small work in quick succession adds up to more than waking costs. If this thread is interrupted between two calls,
// the sum starts again.
TEST_F(ThreadsTest, WorkThatComesOftenWakes) {
  ASSERT_EQ(threads_.count(), 2);
  ASSERT_TRUE(wait_for_sleep());
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  int first = 0;
  for (int calls = 1; calls <= 1000 && first == 0; ++calls) {
    if (threads_.worthwhile(kSmall)) first = calls;
  }
  EXPECT_GE(first, 5);
  EXPECT_LE(first, 1000);
}

#ifdef __linux__

/// Restores the affinity of this thread, and skips a test where the process may use one core only.
class ThreadsCoresTest : public ThreadsTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(sched_getaffinity(0, sizeof before_, &before_), 0);
    if (CPU_COUNT(&before_) < 2) GTEST_SKIP() << "this process may use one core only";
    while (!CPU_ISSET(static_cast<size_t>(first_), &before_)) ++first_;
    second_ = first_ + 1;
    while (!CPU_ISSET(static_cast<size_t>(second_), &before_)) ++second_;
  }
  void TearDown() override { sched_setaffinity(0, sizeof before_, &before_); }

  static void move_to(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(core), &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
  }

  /// Runs loops until the worker has taken part in one, and calls `body` in the worker.
  template <class F>
  void in_worker(F body) {
    struct Context {
      F& body;
      std::atomic<bool> ran{false};
    } context{body};
    for (int tries = 0; tries < 1000 && !context.ran; ++tries) {
      threads_.loop(
          2, 1,
          [](void* c, int64_t, int64_t, int worker) {
            auto& job = *static_cast<Context*>(c);
            if (worker == 1) {
              job.body();
              job.ran = true;
            } else {
              std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
          },
          &context);
    }
    ASSERT_TRUE(context.ran);
  }

  cpu_set_t before_;
  int first_ = 0;
  int second_ = 0;
};

TEST_F(ThreadsCoresTest, TheWorkerLeavesTheCallersCore) {
  for (const int core : {first_, second_, first_}) {
    move_to(core);
    cpu_set_t workers;
    in_worker([&] { sched_getaffinity(0, sizeof workers, &workers); });
    EXPECT_FALSE(CPU_ISSET(static_cast<size_t>(core), &workers));
    EXPECT_EQ(CPU_COUNT(&workers), CPU_COUNT(&before_) - 1);
  }
}

TEST_F(ThreadsCoresTest, AnAffinityThatTheUserSetStays) {
  move_to(first_);  // the worker's affinity then leaves out this core
  in_worker([&] { move_to(first_); });
  for (const int core : {second_, first_, second_}) {
    move_to(core);
    cpu_set_t workers;
    in_worker([&] { sched_getaffinity(0, sizeof workers, &workers); });
    EXPECT_TRUE(CPU_ISSET(static_cast<size_t>(first_), &workers));
    EXPECT_EQ(CPU_COUNT(&workers), 1);
  }
}

#endif

}  // namespace
}  // namespace collet::codegen
