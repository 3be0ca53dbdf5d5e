// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/memory/event.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace collet::runtime {
namespace {

// A queue that is only named: the tests do not wait for it.
char queue_memory = 0;
Queue* const kQueue = reinterpret_cast<Queue*>(&queue_memory);

TEST(Event, DependencyIsItsPointOrItsOutcome) {
  auto* const event = new Event(Point{kQueue, 7});
  Point point;
  EXPECT_TRUE(event->dependency(point).ok());
  EXPECT_EQ(point.queue, kQueue);
  EXPECT_EQ(point.value, 7u);
  event->set(internal_error("the device is lost"));
  point = {};
  EXPECT_EQ(event->dependency(point).message(), "the device is lost");
  EXPECT_FALSE(point);
  event->release();
  point = {};
  EXPECT_TRUE(Event::already()->dependency(point).ok());
  EXPECT_FALSE(point);
}

// Work that depends on an event that fails meanwhile waits for the queue, or hears of the failure.
TEST(Event, FailureIsNotMissed) {
  constexpr int kRounds = 3000;
  std::atomic<Event*> shared = nullptr;
  std::atomic<int> asked = 0;
  std::thread failing([&] {
    for (int round = 0; round < kRounds; ++round) {
      Event* event = nullptr;
      while (!(event = shared.exchange(nullptr))) std::this_thread::yield();
      event->set(internal_error("the device is lost"));
      event->release();
      while (asked.load() <= round) std::this_thread::yield();
    }
  });
  int missed = 0;
  for (int round = 0; round < kRounds; ++round) {
    auto* const event = new Event(Point{kQueue, 1});
    event->retain();
    shared = event;
    for (bool came = false; !came;) {
      came = event->is_ready();
      Point point;
      missed += event->dependency(point).ok() && !point;
    }
    event->release();
    asked = round + 1;
  }
  failing.join();
  EXPECT_EQ(missed, 0);
}

}  // namespace
}  // namespace collet::runtime
