// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/memory/worker.h"

#include <collet/float_modes.hpp>

#include <utility>

#include "sdk/runtime/backend/loader.h"

namespace collet::runtime {
namespace {
thread_local bool on_worker = false;
}  // namespace

bool Worker::is_current_thread() {
  return on_worker;
}

void Worker::finish() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  more_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Worker::add(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    tasks_.push_back(std::move(task));
    pending_.fetch_add(1, std::memory_order_acq_rel);
  }
  more_.notify_one();
}

void Worker::run() {
  on_worker = true;
  FloatModes::usual().set();
  std::unique_lock lock(mutex_);
  while (true) {
    more_.wait(lock, [&] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    {
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      const LogScope messages;
      task();
    }
    pending_.fetch_sub(1, std::memory_order_acq_rel);
    lock.lock();
  }
}

std::unique_ptr<Worker> WorkerPool::take() {
  const std::lock_guard lock(mutex_);
  if (kept_.empty()) return std::make_unique<Worker>();
  std::unique_ptr<Worker> out = std::move(kept_.back());
  kept_.pop_back();
  return out;
}

void WorkerPool::give_back(std::unique_ptr<Worker> worker) {
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(worker));
}

}  // namespace collet::runtime
