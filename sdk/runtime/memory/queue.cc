// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/memory/queue.h"

#include <algorithm>
#include <utility>

#include "sdk/runtime/backend/backend.h"
#include "sdk/runtime/backend/calling.h"

namespace collet::runtime {

Expected<std::unique_ptr<Queue>> Queue::make(std::shared_ptr<Backend> backend, uint32_t device, uint32_t kind) {
  const collet_queue_table* table = backend->queue_table();
  if (!table) return internal_error("the backend has no queues");
  COLLET_ASSIGN(collet_backend_queue * handle, backend->create_queue(device, kind));
  return std::unique_ptr<Queue>(new Queue(std::move(backend), *table, handle));
}

Queue::~Queue() {
  (void)finish();
  completions_.finish();
  backend_->destroy_queue(handle_);
}

Status Queue::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

Status Queue::wait(uint64_t value, uint64_t timeout_ns) {
  if (ended_.load(std::memory_order_acquire) >= value) return ok_status();
  // What was reached before a queue failed stays reached, also if nobody has waited for it yet.
  const bool failed = has_failed();
  collet_error error{};
  const Calling calling("queue.wait", backend_->library().path);
  const collet_status code = table_.wait(handle_, value, failed ? 0 : timeout_ns, &error);
  if (code == COLLET_OK) {
    uint64_t known = ended_.load(std::memory_order_relaxed);
    while (known < value && !ended_.compare_exchange_weak(known, value, std::memory_order_acq_rel)) {
    }
    return ok_status();
  }
  if (failed) return failure();
  Status status = backend_->failure_of(code, error, "a queue");
  if (code == COLLET_DEADLINE_EXCEEDED && timeout_ns != UINT64_MAX) return status;
  const std::lock_guard lock(mutex_);
  if (failure_.ok()) failure_ = status;
  failed_.store(true, std::memory_order_release);
  return failure_;
}

void Queue::then(uint64_t value, std::function<void(const Status&)> done) {
  completions_.add([this, value, done = std::move(done)] { done(wait(value)); });
}

Status Queue::finish() {
  uint64_t last = 0;
  {
    const std::lock_guard lock(put_);
    last = last_;
  }
  return wait(last);
}

void Queue::abort(const Status& reason) {
  if (has_failed()) return;
  const Calling calling("queue.abort", backend_->library().path);
  table_.abort(handle_, static_cast<collet_status>(reason.code()), reason.message().c_str());
}

namespace {

// Adds a point; of several points of one queue only the last is kept.
void add_wait(Point point, Points& out) {
  const auto same = std::find_if(out.begin(), out.end(), [&](const Point& p) { return p.queue == point.queue; });
  if (same == out.end())
    out.push_back(point);
  else
    same->value = std::max(same->value, point.value);
}

}  // namespace

Status add_waits(std::span<const Point> points, const Queue& queue, Points& out) {
  for (const Point& point : points) {
    if (!point || point.queue == &queue) continue;
    if (point.queue->has_ended(point.value))
      COLLET_TRY(point.queue->wait(point.value, 0));
    else
      add_wait(point, out);
  }
  return ok_status();
}

Status wait_for(std::span<const Point> points) {
  Status outcome;
  for (const Point& point : points) {
    if (!point) continue;
    Status one = point.queue->wait(point.value);
    if (outcome.ok()) outcome = std::move(one);
  }
  return outcome;
}

Submission::Submission(std::span<Queue* const> queues) : pieces_(queues.size()) {
  for (size_t i = 0; i < queues.size(); ++i) {
    pieces_[i].queue = queues[i];
    held_.push_back(queues[i]);
  }
  std::sort(held_.begin(), held_.end());
  held_.erase(std::unique(held_.begin(), held_.end()), held_.end());
  for (Queue* queue : held_) queue->put_.lock();
  for (size_t i = 0; i < pieces_.size(); ++i) {
    uint64_t earlier = pieces_[i].queue->last_;
    for (size_t j = 0; j < i; ++j)
      if (pieces_[j].queue == pieces_[i].queue) earlier = pieces_[j].value;
    pieces_[i].value = earlier + 1;
  }
}

Submission::~Submission() {
  for (Queue* queue : held_) queue->put_.unlock();
}

const collet_sync* Submission::sync(size_t i) {
  Piece& piece = pieces_[i];
  piece.c_waits.clear();
  for (const Point& point : piece.waits) piece.c_waits.push_back({point.queue->handle(), point.value});
  piece.signal = {piece.queue->handle(), piece.value};
  piece.sync.queue = piece.queue->handle();
  piece.sync.waits = piece.c_waits.data();
  piece.sync.signals = &piece.signal;
  piece.sync.wait_count = static_cast<uint32_t>(piece.c_waits.size());
  piece.sync.signal_count = 1;
  return &piece.sync;
}

Point Submission::commit(size_t i) {
  const Piece& piece = pieces_[i];
  piece.queue->last_ = std::max(piece.queue->last_, piece.value);
  return {piece.queue, piece.value};
}

void Uses::drop_ended() {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count_; ++i)
    if (!points_[i].queue->has_ended(points_[i].value)) points_[kept++] = points_[i];
  count_ = kept;
  any_.store(kept > 0, std::memory_order_release);
}

void Uses::add(Point point) {
  if (!point) return;
  const std::lock_guard lock(mutex_);
  for (uint32_t i = 0; i < count_; ++i) {
    if (points_[i].queue != point.queue) continue;
    points_[i].value = std::max(points_[i].value, point.value);
    return;
  }
  drop_ended();
  if (count_ == kMost) {
    (void)points_[0].queue->wait(points_[0].value);
    points_[0] = points_[--count_];
  }
  points_[count_++] = point;
  any_.store(true, std::memory_order_release);
}

void Uses::add_waits(const Queue& queue, Points& out) {
  if (!any_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  drop_ended();
  for (uint32_t i = 0; i < count_; ++i)
    if (points_[i].queue != &queue) add_wait(points_[i], out);
}

bool Uses::only(const Queue* order) {
  if (!any_.load(std::memory_order_acquire)) return true;
  const std::lock_guard lock(mutex_);
  drop_ended();
  return std::all_of(points_, points_ + count_, [&](const Point& p) { return p.queue == order; });
}

void Uses::wait() {
  if (!any_.load(std::memory_order_acquire)) return;
  Points points;
  {
    const std::lock_guard lock(mutex_);
    drop_ended();
    points.assign(points_, points_ + count_);
  }
  (void)wait_for(points);
}

}  // namespace collet::runtime
