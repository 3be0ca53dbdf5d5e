// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/processes/started_exchanges.h"

#include <algorithm>
#include <utility>

#include "sdk/runtime/backend/caught.h"

namespace collet::runtime {
namespace {

bool holds(const std::vector<MemoryRef>& all, const Memory* memory) {
  return std::any_of(all.begin(), all.end(), [&](const MemoryRef& one) { return one.get() == memory; });
}

}  // namespace

StartedExchanges::~StartedExchanges() {
  drop();
  if (worker_) workers_.give_back(std::move(worker_));
}

void StartedExchanges::start(std::vector<MemoryRef> reads, std::vector<MemoryRef> writes,
                             std::function<Status()> exchange) {
  if (!worker_) worker_ = workers_.take();
  entries_.push_back({std::move(reads), std::move(writes)});
  try {
    worker_->add([this, exchange = std::move(exchange)]() mutable {
      bool runs = false;
      {
        const std::lock_guard lock(mutex_);
        runs = !drops_ && failure_.ok();
      }
      Status outcome = runs ? caught(exchange) : ok_status();
      exchange = nullptr;  // it holds memory
      // The run may end, and this object with it, as soon as the lock is released.
      const std::lock_guard lock(mutex_);
      ++done_;
      if (!outcome.ok()) {
        failure_ = std::move(outcome);
        failed_.store(true, std::memory_order_release);
      }
      ended_.notify_all();
    });
  } catch (...) {
    entries_.pop_back();
    worker_.reset();  // the task may still be in it, but no thread to run it
    throw;
  }
}

Status StartedExchanges::before_read(const Memory* memory) {
  if (!memory) return ok_status();
  for (size_t k = entries_.size(); k-- > 0;)
    if (holds(entries_[k].writes, memory)) return wait(k + 1);
  return ok_status();
}

Status StartedExchanges::before_write(const Memory* memory) {
  if (!memory) return ok_status();
  for (size_t k = entries_.size(); k-- > 0;)
    if (holds(entries_[k].writes, memory) || holds(entries_[k].reads, memory)) return wait(k + 1);
  return ok_status();
}

Status StartedExchanges::finish() {
  return wait(entries_.size());
}

void StartedExchanges::drop() {
  if (entries_.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    drops_ = true;
  }
  (void)wait(entries_.size());
}

Status StartedExchanges::failure() {
  if (!failed_.load(std::memory_order_acquire)) return ok_status();
  const std::lock_guard lock(mutex_);
  return failure_;
}

Status StartedExchanges::wait(size_t count) {
  Status out;
  {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return done_ >= first_ + count; });
    out = failure_;
  }
  first_ += count;
  entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(count));
  return out;
}

}  // namespace collet::runtime
