// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/memory/copy.h"

#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "sdk/runtime/backend/caught.h"

namespace collet::runtime {
namespace {

// Puts the copy on the queue after `before`, which is placed or null.
Expected<Point> put(Queue& queue, const QueuedCopy& copy, Event* before) {
  Point after;
  if (before) COLLET_TRY(before->dependency(after));
  return put_copy(queue, copy.region, copy.from.get(), copy.to.get(), {&after, 1});
}

// Sets the event when the copy ends; takes over a reference to it. If there is no thread that could do so later, waits for the end.
void finish_later(Client& client, Queue& queue, Point point, QueuedCopy copy, Event* event) {
  client.retain_for_work();
  const auto end = [&client, host = std::move(copy.host), done = std::move(copy.done), event](const Status& outcome) {
    if (done) done();
    event->set(outcome);
    event->release();
    client.release_after_work();
  };
  const Status given = caught([&] {
    queue.then(point.value, end);
    return ok_status();
  });
  if (!given.ok()) end(queue.wait(point.value));
}

}  // namespace

Expected<Point> put_copy(Queue& queue, const collet_copy_region& region, Memory* from, Memory* to,
                         std::span<const Point> after) {
  Points waits;
  COLLET_TRY(add_waits(after, queue, waits));
  if (to) to->uses.add_waits(queue, waits);
  Queue* const queues[] = {&queue};
  Submission submission(queues);
  submission.wait_for(0, std::move(waits));
  COLLET_TRY(queue.backend().copy({&region, 1}, submission.sync(0)));
  const Point point = submission.commit(0);
  if (from) from->uses.add(point);
  if (to) to->uses.add(point);
  return point;
}

Status upload(Backend& backend, Memory* memory, const void* data, uint64_t bytes, uint64_t offset) {
  memory->uses.wait();
  if (memory->host) {
    std::memcpy(static_cast<char*>(memory->host) + offset, data, bytes);
    return ok_status();
  }
  collet_copy_region region{};
  region.from.host = const_cast<void*>(data);
  region.to.buffer = memory->handle;
  region.to.offset = offset;
  region.bytes = bytes;
  return backend.copy({&region, 1});
}

Status download(Backend& backend, const Memory* memory, uint64_t offset, void* out, uint64_t bytes) {
  if (bytes == 0) return ok_status();
  if (memory->host) {
    std::memcpy(out, static_cast<const char*>(memory->host) + offset, bytes);
    return ok_status();
  }
  collet_copy_region region{};
  region.from.buffer = memory->handle;
  region.from.offset = offset;
  region.to.host = out;
  region.bytes = bytes;
  return backend.copy({&region, 1});
}

Status copy_memory(Backend& from_backend, const Memory* from, Backend& to_backend, Memory* to, uint64_t bytes) {
  if (bytes == 0) return ok_status();
  if (&from_backend == &to_backend) {
    to->uses.wait();
    collet_copy_region region{};
    region.bytes = bytes;
    region.from.buffer = from->handle;
    region.to.buffer = to->handle;
    return from_backend.copy({&region, 1});
  }
  if (from->host) return upload(to_backend, to, from->host, bytes);
  if (to->host) {
    to->uses.wait();
    return download(from_backend, from, 0, to->host, bytes);
  }
  const std::unique_ptr<char[]> bounce(new (std::nothrow) char[bytes]);
  if (!bounce) return resource_exhausted("no host memory for a copy of " + std::to_string(bytes) + " bytes");
  COLLET_TRY(download(from_backend, from, 0, bounce.get(), bytes));
  return upload(to_backend, to, bounce.get(), bytes);
}

void start_copy_for(Client& client, Queue& queue, QueuedCopy copy, Event* before, Event* event) {
  Point point;
  Status status = caught([&]() -> Status {
    if (before) COLLET_TRY(before->wait_placed());
    COLLET_ASSIGN(point, put(queue, copy, before));
    return ok_status();
  });
  if (before) before->release();
  if (status.ok()) {
    event->place(point);
    return finish_later(client, queue, point, std::move(copy), event);
  }
  if (copy.done) copy.done();
  event->set(std::move(status));
  event->release();
}

Expected<Event*> start_copy(Client& client, Worker& worker, Queue& queue, QueuedCopy copy, Event* before) {
  if (before && !before->is_placed()) {
    auto* event = new Event(before->is_late());
    event->retain();
    Event* const after[] = {before};
    client.add_after(worker, after, [&client, &queue, copy = std::move(copy), before, event]() mutable {
      start_copy_for(client, queue, std::move(copy), before, event);
    });
    return event;
  }
  auto point = put(queue, copy, before);
  if (before) before->release();
  if (!point.ok()) return point.status();
  auto* event = new Event(*point);
  event->retain();
  finish_later(client, queue, *point, std::move(copy), event);
  return event;
}

}  // namespace collet::runtime
