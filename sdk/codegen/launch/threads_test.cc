// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/threads.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

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

}  // namespace
}  // namespace collet::codegen
