// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/emulator/launch.h"

#include <condition_variable>
#include <memory>
#include <thread>

#include "reference_backends/gpu/emulator/block.h"

namespace collet::gpu::emulator {
namespace {

constexpr uint32_t kTags = 4095;
constexpr uint64_t kWorthThreads = 2048;  ///< least threads of a launch for which further host threads are woken

}  // namespace

void Launch::fail(CUresult code, const std::string& text) {
  {
    std::lock_guard lock(mutex);
    if (result == CUDA_SUCCESS) {
      result = code;
      message = text;
    }
  }
  stop.store(true, std::memory_order_relaxed);
}

bool Launch::out_of_time() const {
  const unsigned seconds = machine->options.timeout;
  return seconds && std::chrono::steady_clock::now() - begin > std::chrono::seconds(seconds);
}

struct Pool::State {
  std::mutex mutex;
  std::condition_variable wake, done;
  Launch* launch = nullptr;
  uint64_t turn = 0;
  unsigned running = 0;
  bool ends = false;
  uint32_t tag = 0;
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<std::thread> threads;
};

Pool::Pool(unsigned threads) : state_(new State) {
  State& s = *state_;
  for (unsigned i = 0; i < threads; ++i) s.workers.push_back(std::make_unique<Worker>());
  for (unsigned i = 1; i < threads; ++i) {
    s.threads.emplace_back([&s, worker = s.workers[i].get()] {
      uint64_t turn = 0;
      std::unique_lock lock(s.mutex);
      for (;;) {
        s.wake.wait(lock, [&] { return s.ends || s.turn != turn; });
        if (s.ends) return;
        turn = s.turn;
        Launch* const launch = s.launch;
        if (!launch) continue;
        ++s.running;
        lock.unlock();
        worker->run(*launch);
        lock.lock();
        if (--s.running == 0) s.done.notify_all();
      }
    });
  }
}

Pool::~Pool() {
  {
    std::lock_guard lock(state_->mutex);
    state_->ends = true;
  }
  state_->wake.notify_all();
  for (std::thread& t : state_->threads) t.join();
  delete state_;
}

void Pool::run(Launch& launch) {
  State& s = *state_;
  s.tag = s.tag % kTags + 1;
  if (s.tag == 1) launch.machine->memory->clear_records();
  launch.tag = s.tag;
  launch.begin = std::chrono::steady_clock::now();
  const uint64_t blocks = launch.blocks();
  const bool together = blocks > 1 && blocks * launch.threads() >= kWorthThreads && !s.threads.empty();
  if (together) {
    {
      std::lock_guard lock(s.mutex);
      s.launch = &launch;
      ++s.turn;
    }
    s.wake.notify_all();
  }
  s.workers[0]->run(launch);
  if (together) {
    std::unique_lock lock(s.mutex);
    s.launch = nullptr;
    s.done.wait(lock, [&] { return s.running == 0; });
  }
}

}  // namespace collet::gpu::emulator
