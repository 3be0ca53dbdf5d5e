// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/emulator/scheduler.h"

#include <algorithm>
#include <cstdio>

#include "reference_backends/gpu/emulator/random.h"

namespace collet::gpu::emulator {

Scheduler::Scheduler(uint64_t seed) : seed_(seed), random_(seed) {
  // The threads run until the process ends.
  std::thread([this] { run(); }).detach();
  std::thread([this] { run_host_functions(); }).detach();
}

uint64_t Scheduler::draw() {
  return seed_ ? next_random(random_) : 0;
}

std::shared_ptr<StreamState> Scheduler::create_stream(int device, bool is_null, bool is_blocking) {
  auto stream = std::make_shared<StreamState>();
  stream->device = device;
  stream->is_null = is_null;
  stream->is_blocking = is_blocking;
  streams_.push_back(stream);
  return stream;
}

void Scheduler::remove_stream(const std::shared_ptr<StreamState>& stream) {
  // The operations of the stream still run.
  if (!stream->operations.empty()) {
    enqueue(stream, [this, stream] {
      std::lock_guard lock(mutex);
      streams_.erase(std::remove(streams_.begin(), streams_.end(), stream), streams_.end());
    });
    return;
  }
  streams_.erase(std::remove(streams_.begin(), streams_.end(), stream), streams_.end());
}

void Scheduler::enqueue(const std::shared_ptr<StreamState>& stream, std::function<void()> run, bool on_host) {
  if (stream->capture) {
    stream->capture->nodes.push_back({std::move(run), stream->tail});
    stream->tail = {stream->capture->nodes.size() - 1};
    return;
  }
  StreamState::Operation op;
  op.run = std::move(run);
  op.on_host = on_host;
  op.events = std::move(stream->waits);
  stream->waits.clear();
  // The null stream and the device's blocking streams wait for each other.
  for (const auto& other : streams_) {
    if (other == stream || other->device != stream->device || other->operations.empty()) continue;
    if ((stream->is_null && other->is_blocking) || (other->is_null && stream->is_blocking)) {
      op.after.emplace_back(other, other->enqueued);
    }
  }
  stream->operations.push_back(std::move(op));
  ++stream->enqueued;
  work_.notify_all();
}

void Scheduler::record(const std::shared_ptr<StreamState>& stream, const std::shared_ptr<EventState>& event) {
  if (stream->capture) {
    event->capture = stream->capture;
    event->nodes = stream->tail;
    return;
  }
  event->capture = nullptr;
  const uint64_t turn = ++event->recorded;
  enqueue(stream, [this, event, turn] {
    std::lock_guard lock(mutex);
    event->completed = std::max(event->completed, turn);
    event->time = std::chrono::steady_clock::now();
  });
}

void Scheduler::complete(const std::shared_ptr<EventState>& event) {
  event->completed = event->recorded;
  work_.notify_all();
  done_.notify_all();
}

bool Scheduler::wait_event(const std::shared_ptr<StreamState>& stream, const std::shared_ptr<EventState>& event) {
  if (event->capture) {
    if (stream->capture && stream->capture != event->capture) return false;
    if (!stream->capture) {
      stream->capture = event->capture;
      stream->capture->streams.push_back(stream);
    }
    stream->tail.insert(stream->tail.end(), event->nodes.begin(), event->nodes.end());
    std::sort(stream->tail.begin(), stream->tail.end());
    stream->tail.erase(std::unique(stream->tail.begin(), stream->tail.end()), stream->tail.end());
    return true;
  }
  // The event has completed, so there is nothing to wait for.
  if (stream->capture) return event->completed == event->recorded;
  if (event->completed < event->recorded) stream->waits.emplace_back(event, event->recorded);
  return true;
}

void Scheduler::add_wait_operation(const std::shared_ptr<StreamState>& stream) {
  if (!stream->waits.empty()) enqueue(stream, [] {});
}

void Scheduler::wait_for(std::unique_lock<std::mutex>& lock, const std::shared_ptr<StreamState>& stream) {
  add_wait_operation(stream);
  const uint64_t until = stream->enqueued;
  done_.wait(lock, [&] { return stream->completed >= until; });
}

void Scheduler::wait_for(std::unique_lock<std::mutex>& lock, const std::shared_ptr<EventState>& event) {
  const uint64_t until = event->recorded;
  done_.wait(lock, [&] { return event->completed >= until; });
}

void Scheduler::wait_for_device(std::unique_lock<std::mutex>& lock, int device) {
  std::vector<std::pair<std::shared_ptr<StreamState>, uint64_t>> all;
  for (const auto& s : std::vector<std::shared_ptr<StreamState>>(streams_)) {
    if (s->device != device || s->capture) continue;
    add_wait_operation(s);
    all.emplace_back(s, s->enqueued);
  }
  done_.wait(lock, [&] {
    return std::all_of(all.begin(), all.end(), [](const auto& s) { return s.first->completed >= s.second; });
  });
}

bool Scheduler::is_idle(const StreamState& stream) const {
  return stream.operations.empty() && std::all_of(stream.waits.begin(), stream.waits.end(),
                                                  [](const auto& e) { return e.first->completed >= e.second; });
}

bool Scheduler::is_ready(const StreamState& stream) const {
  if (stream.busy || stream.operations.empty()) return false;
  const StreamState::Operation& op = stream.operations.front();
  return std::all_of(op.after.begin(), op.after.end(), [](const auto& a) { return a.first->completed >= a.second; }) &&
         std::all_of(op.events.begin(), op.events.end(), [](const auto& e) { return e.first->completed >= e.second; });
}

void Scheduler::finish(const std::shared_ptr<StreamState>& stream) {
  stream->operations.pop_front();
  ++stream->completed;
  stream->busy = false;
  done_.notify_all();
  work_.notify_all();
}

void Scheduler::run() {
  std::unique_lock lock(mutex);
  std::vector<std::shared_ptr<StreamState>> ready;
  for (;;) {
    ready.clear();
    for (const auto& s : streams_) {
      if (is_ready(*s)) ready.push_back(s);
    }
    if (ready.empty()) {
      work_.wait(lock);
      continue;
    }
    const std::shared_ptr<StreamState> stream = ready[draw() % ready.size()];
    stream->busy = true;
    StreamState::Operation& op = stream->operations.front();
    if (op.on_host) {
      host_functions_.emplace_back(stream, std::move(op.run));
      host_work_.notify_all();
      continue;
    }
    const std::function<void()> function = std::move(op.run);
    lock.unlock();
    function();
    lock.lock();
    finish(stream);
  }
}

void Scheduler::run_host_functions() {
  std::unique_lock lock(mutex);
  for (;;) {
    host_work_.wait(lock, [&] { return !host_functions_.empty(); });
    auto [stream, function] = std::move(host_functions_.front());
    host_functions_.pop_front();
    lock.unlock();
    function();
    function = nullptr;
    lock.lock();
    finish(stream);
  }
}

std::vector<size_t> Scheduler::order_of(const std::vector<Capture::Node>& nodes, uint64_t draw) const {
  std::vector<size_t> missing(nodes.size()), ready, order;
  std::vector<std::vector<size_t>> followers(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    missing[i] = nodes[i].after.size();
    for (const size_t before : nodes[i].after) followers[before].push_back(i);
    if (nodes[i].after.empty()) ready.push_back(i);
  }
  while (!ready.empty()) {
    draw = draw * 6364136223846793005u + (draw ? 1442695040888963407u : 0);
    const size_t pick = (draw >> 33) % ready.size();
    const size_t node = ready[pick];
    ready.erase(ready.begin() + static_cast<ptrdiff_t>(pick));
    order.push_back(node);
    for (const size_t next : followers[node]) {
      if (--missing[next] == 0) ready.push_back(next);
    }
  }
  return order;
}

}  // namespace collet::gpu::emulator
