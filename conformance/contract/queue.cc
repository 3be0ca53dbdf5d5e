// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <thread>

#include "conformance/contract/queues.h"

namespace collet::conformance {
namespace {

constexpr uint64_t kBytes = 4096;

void kinds(Contract& c) {
  const Setting s = start_queues(c);
  if (!s) return;
  for (uint32_t d = 0; d < std::min<size_t>(s.instance->devices().size(), 2); ++d) {
    std::vector<Queue> queues;
    for (const uint32_t kind : {COLLET_QUEUE_COMPUTE, COLLET_QUEUE_UPLOAD, COLLET_QUEUE_DOWNLOAD}) {
      for (int i = 0; i < 3; ++i) {
        queues.push_back(s.create(kind, d));
        if (!queues.back()) return;
        const collet_status status = s.wait(queues.back(), 0, 0);
        c.check(status == COLLET_OK, Promise::QUEUE_COUNTER, "wait for point 0 of a new queue gave status {}", status);
      }
    }
  }
}

// Checks a chain of copies on one queue, each of which reads the result of the one before.
void order(Contract& c) {
  const Setting s = start_queues(c);
  if (!s) return;
  Queue queue = s.create(COLLET_QUEUE_COMPUTE);
  constexpr size_t kSteps = 60;
  Buffer a = s.instance->alloc(kSteps * 64 + kBytes), b = s.instance->alloc(kSteps * 64 + kBytes);
  const Bytes data = pattern(kBytes, 1);
  if (!queue || !a || !b || !s.instance->write(a, 0, data.data(), kBytes)) return;
  for (size_t i = 0; i < kSteps; ++i) {
    const Buffer &from = i % 2 ? b : a, &to = i % 2 ? a : b;
    if (!c.check(s.copy(queue, {region(at(from, i * 64), at(to, (i + 1) * 64), kBytes)}), Promise::QUEUE_ORDER,
                 "a copy on a queue failed"))
      return;
  }
  if (!s.finish(queue)) return;
  Bytes got(kBytes);
  if (s.instance->read(kSteps % 2 ? b : a, kSteps * 64, got.data(), kBytes))
    same_bytes(c, got, data, Promise::QUEUE_ORDER, "sixty copies, each of what the one before wrote");
}

// Uploads a value, copies it on the device and downloads it, repeatedly, on three queues that wait for each other.
void across_queues(Contract& c) {
  const Setting s = start_queues(c);
  if (!s) return;
  Queue up = s.create(COLLET_QUEUE_UPLOAD), compute = s.create(COLLET_QUEUE_COMPUTE),
        down = s.create(COLLET_QUEUE_DOWNLOAD);
  Buffer a = s.instance->alloc(kBytes), b = s.instance->alloc(kBytes);
  if (!up || !compute || !down || !a || !b) return;
  constexpr size_t kRounds = 40;
  std::vector<Bytes> host(kRounds + 1, Bytes(kBytes));
  host[0] = pattern(kBytes, 2);
  for (size_t i = 0; i < kRounds; ++i) {
    // The upload must wait until the device copy of the last round has read the buffer; the value to upload is there
    // once the download of the last round has ended.
    std::vector<collet_point> waits;
    if (i > 0) waits = {compute.point(), down.point()};
    if (!s.copy(up, {region(at_host(host[i].data()), at(a), kBytes)}, waits, i % 3 + 1)) break;
    waits = {up.point()};
    if (i > 0) waits.push_back(down.point());
    if (!s.copy(compute, {region(at(a), at(b, 64), kBytes - 64), region(at(a, kBytes - 64), at(b), 64)}, waits)) break;
    if (!s.copy(down, {region(at(b), at_host(host[i + 1].data()), kBytes)}, {compute.point()}, 7)) break;
  }
  if (!s.finish(down) || !s.finish(compute) || !s.finish(up)) return;
  Bytes expected = host[0];
  for (size_t i = 0; i < kRounds; ++i) {
    std::rotate(expected.begin(), expected.end() - 64, expected.end());
    if (!same_bytes(c, host[i + 1], expected, Promise::QUEUE_WAITS, fmt::format("round {} over three queues", i)))
      return;
  }
}

// Checks that work on other queues, for which nothing waits, does not disturb a chain of copies.
void many_queues(Contract& c) {
  const Setting s = start_queues(c);
  if (!s) return;
  constexpr size_t kQueues = 6, kSteps = 90;
  std::vector<Queue> queues;
  for (size_t i = 0; i < kQueues; ++i) {
    queues.push_back(s.create(COLLET_QUEUE_COMPUTE));
    if (!queues.back()) return;
  }
  Buffer a = s.instance->alloc(kBytes), b = s.instance->alloc(kBytes), other = s.instance->alloc(2 * kBytes);
  const Bytes data = pattern(kBytes, 3);
  if (!a || !b || !other || !s.instance->write(a, data)) return;
  collet_point before{};
  for (size_t i = 0; i < kSteps; ++i) {
    Queue& queue = queues[i * 5 % kQueues];
    const Buffer &from = i % 2 ? b : a, &to = i % 2 ? a : b;
    std::vector<collet_point> waits;
    if (i > 0) waits = {before, before};
    if (!s.copy(queue, {region(at(from), at(to, 1), kBytes - 1), region(at(from, kBytes - 1), at(to), 1)}, waits))
      return;
    before = queue.point();
  }
  for (const Queue& queue : queues)
    if (!s.finish(queue)) return;
  Bytes expected = data;
  std::rotate(expected.begin(), expected.end() - kSteps, expected.end());
  same_bytes(c, s.instance->read(kSteps % 2 ? b : a), expected, Promise::QUEUE_WAITS,
             "a chain of ninety copies over six queues");
}

void launches(Contract& c) {
  const Setting s = start_queues(c);
  if (!s) return;
  const std::string body = accepted_sum(*s.instance);
  if (body.empty()) return;
  const PreparedProgram ready = prepare(*s.instance, body);
  if (!ready) return;
  Queue compute = s.create(COLLET_QUEUE_COMPUTE), down = s.create(COLLET_QUEUE_DOWNLOAD);
  if (!compute || !down) return;
  std::vector<std::unique_ptr<GuardedLaunch>> guarded_launches;
  std::vector<std::vector<hlo::Literal>> inputs;
  for (uint64_t i = 0; i < 8; ++i) {
    guarded_launches.push_back(std::make_unique<GuardedLaunch>(*s.instance, *ready.program, ready.executable,
                                                               Placement{.one_buffer = i % 2 == 1}));
    inputs.push_back(ready.program->draw(i));
    if (!guarded_launches.back()->fill(inputs.back(), i)) return;
  }
  for (const auto& guarded : guarded_launches) {
    if (!c.check(s.launch(compute, ready.executable, *guarded), Promise::EXECUTE, "execute on a queue failed")) return;
  }
  if (!s.finish(compute)) return;
  for (size_t i = 0; i < guarded_launches.size(); ++i)
    if (!guarded_launches[i]->judge(inputs[i], "a launch on a queue")) return;
}

void waiting(Contract& c) {
  constexpr uint64_t kLarge = 1 << 20;
  const Setting s = start_queues(c);
  if (!s) return;
  Queue queue = s.create(COLLET_QUEUE_COMPUTE);
  Buffer a = s.instance->alloc(kLarge), other = s.instance->alloc(kLarge), b = s.instance->alloc(kLarge);
  if (!queue || !a || !b || !other || !s.instance->write(other, pattern(kLarge, 4))) return;
  for (uint64_t round = 0; round < 6; ++round) {
    const Bytes mark = pattern(kBytes, 50 + round);
    if (!s.instance->write(a, kLarge - kBytes, mark.data(), kBytes)) return;
    // Only the last of many copies writes the value that is checked.
    for (int i = 0; i < 60; ++i)
      if (!s.copy(queue, {region(at(i == 59 ? a : other), at(b), kLarge)}, {}, 10)) return;
    const uint64_t last = queue.last();
    collet_status status = COLLET_DEADLINE_EXCEEDED;
    for (int tries = 0; status == COLLET_DEADLINE_EXCEEDED && tries < 100000; ++tries)
      status = s.wait(queue, last - (round % 2) * 5, tries % 2 ? 200000 : 0);
    if (!c.check(status == COLLET_OK, Promise::QUEUE_WAIT_TIME, "wait with a limit gave status {}", status)) return;
    // A point that was reached stays reached, so waits for earlier points succeed.
    status = s.wait(queue, last - 15, 0);
    c.check(status == COLLET_OK, Promise::QUEUE_WAIT_REACHED, "wait for an earlier point gave status {}", status);
    Bytes got(kBytes);
    if (s.instance->read(b, kLarge - kBytes, got.data(), kBytes) &&
        !same_bytes(c, got, mark, Promise::QUEUE_POINT, "when the point was reached"))
      return;
  }
}

// A point that no work signals is not reached, however long a wait may take.
void deadline(Contract& c) {
  const Setting s = start_queues(c);
  if (!s) return;
  const Queue queue = s.create(COLLET_QUEUE_COMPUTE);
  if (!queue) return;
  for (const uint64_t timeout_ns : {uint64_t{0}, uint64_t{1000000}}) {
    const collet_status status = s.wait(queue, 1, timeout_ns);
    c.check(status == COLLET_DEADLINE_EXCEEDED, Promise::QUEUE_WAIT_TIME,
            "wait of {} ns for a point of a queue without work gave status {}", timeout_ns, status);
  }
}

constexpr char kMessage[] = "given up by the case";

// Aborts with a message that is overwritten after the call.
void abort_queue(const Setting& s, const Queue& queue, collet_status status) {
  std::string message = kMessage;
  s.table->abort(queue.handle(), status, message.c_str());
  std::fill(message.begin(), message.end(), '?');
}

// One thread waits for a point that is never reached, and another one aborts the queue.
void abort_while_waiting(Contract& c) {
  const Setting s = start_queues(c);
  if (!s) return;
  const Queue queue = s.create(COLLET_QUEUE_COMPUTE);
  if (!queue) return;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    abort_queue(s, queue, COLLET_ABORTED);
  });
  std::string message;
  const collet_status status = s.wait(queue, 1, kForever, &message);
  other.join();
  c.check(status == COLLET_ABORTED && message == kMessage, Promise::QUEUE_ANY_THREAD,
          "a wait during which another thread aborted the queue gave status {} and '{}'", status, message);
}

// True if a wait on an aborted queue returns a correct status: success if the point was reached, or the failure.
bool reached_or_failed(const Setting& s, const Queue& queue, uint64_t value, collet_status failure) {
  std::string message;
  const collet_status status = s.wait(queue, value, kForever, &message);
  if (status == COLLET_OK) return true;
  return s.contract().check(status == failure && message == kMessage, Promise::QUEUE_ABORT,
                            "after abort with {} and '{}' a wait gave status {} and '{}'", failure, kMessage, status,
                            message);
}

void abort(Contract& c) {
  const Setting s = start_queues(c);
  if (!s) return;
  Queue queue = s.create(COLLET_QUEUE_COMPUTE), other = s.create(COLLET_QUEUE_COMPUTE);
  Buffer a = s.instance->alloc(1 << 20), b = s.instance->alloc(1 << 20), untouched = s.instance->alloc(kBytes);
  const Bytes data = pattern(1 << 20, 5), still = pattern(kBytes, 6);
  if (!queue || !other || !a || !b || !untouched || !s.instance->write(a, data) || !s.instance->write(untouched, still))
    return;
  if (!s.copy(queue, {region(at(a), at(b), 100)}) || !s.finish(queue)) return;
  const uint64_t reached = queue.last();
  for (int i = 0; i < 20; ++i)
    if (!s.copy(queue, {region(at(a), at(b), 1 << 20)})) return;
  abort_queue(s, queue, COLLET_ABORTED);
  s.table->abort(queue.handle(), COLLET_INTERNAL, "a second failure, which comes too late");
  if (!reached_or_failed(s, queue, queue.last(), COLLET_ABORTED)) return;
  collet_status status = s.wait(queue, reached, 0);
  c.check(status == COLLET_OK, Promise::QUEUE_WAIT_REACHED,
          "a point that was reached before the failure gave status {}", status);
  // Nothing may run after the queue was closed, even if its work had not ended.
  if (s.copy(queue, {region(at(a), at(untouched), kBytes)})) {
    std::string message;
    status = s.wait(queue, queue.last(), kForever, &message);
    c.check(status == COLLET_ABORTED && message == kMessage, Promise::QUEUE_FAILED,
            "work that was put on a failed queue ended with status {} and '{}'", status, message);
  }
  const Bytes first = s.instance->read(b);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  same_bytes(c, s.instance->read(b), first, Promise::QUEUE_REPORTS, "after the failure was reported");
  same_bytes(c, s.instance->read(untouched), still, Promise::QUEUE_FAILED, "what was put on a failed queue");
  if (s.copy(other, {region(at(a), at(untouched), kBytes)}) && s.finish(other))
    same_bytes(c, s.instance->read(untouched), Bytes(data.begin(), data.begin() + kBytes), Promise::QUEUE_FAILED,
               "another queue after the failure of one");
}

// Checks that a queue that waits for a point of a failed queue fails with the same status; other queues continue.
void poison(Contract& c) {
  const Setting s = start_queues(c);
  if (!s) return;
  Queue failed = s.create(COLLET_QUEUE_UPLOAD), second = s.create(COLLET_QUEUE_COMPUTE),
        third = s.create(COLLET_QUEUE_DOWNLOAD), good = s.create(COLLET_QUEUE_COMPUTE);
  Buffer a = s.instance->alloc(kBytes), b = s.instance->alloc(kBytes);
  const Bytes data = pattern(kBytes, 7), still = pattern(kBytes, 8);
  Bytes host = pattern(kBytes, 9), host_before = host;
  if (!failed || !second || !third || !good || !a || !b || !s.instance->write(a, data) || !s.instance->write(b, still))
    return;
  abort_queue(s, failed, COLLET_CANCELLED);
  if (!s.copy(failed, {region(at_host(data.data()), at(a), kBytes)})) return c.skip("a failed queue takes no work");
  if (!s.copy(second, {region(at(a), at(b), kBytes)}, {failed.point()})) return;
  if (!s.copy(third, {region(at(b), at_host(host.data()), kBytes)}, {second.point()})) return;
  for (const Queue* queue : {&second, &third}) {
    std::string message;
    const collet_status status = s.wait(*queue, queue->last(), kForever, &message);
    if (!c.check(status == COLLET_CANCELLED && message == kMessage, Promise::QUEUE_POISON,
                 "work that waited for a failed queue ended with status {} and '{}'", status, message))
      return;
  }
  same_bytes(c, s.instance->read(b), still, Promise::QUEUE_POISON, "memory of work that waited for a failed queue");
  same_bytes(c, host, host_before, Promise::QUEUE_POISON, "host memory of work that waited for a failed queue");
  if (s.copy(good, {region(at(a), at(b), kBytes)}) && s.finish(good))
    same_bytes(c, s.instance->read(b), data, Promise::QUEUE_FAILED, "a queue that waited for none");
}

// Makes blocking calls while queues work on other memory.
void beside_blocking_calls(Contract& c) {
  const Setting s = start_queues(c);
  if (!s) return;
  Queue queue = s.create(COLLET_QUEUE_COMPUTE);
  Buffer a = s.instance->alloc(1 << 18), b = s.instance->alloc(1 << 18);
  const Bytes data = pattern(1 << 18, 10);
  if (!queue || !a || !b || !s.instance->write(a, data)) return;
  for (uint64_t i = 0; i < 30; ++i) {
    if (!s.copy(queue, {region(at(a), at(b), 1 << 18)})) return;
    Buffer own = s.instance->alloc(kBytes);
    const Bytes mine = pattern(kBytes, 11 + i);
    if (!own || !s.instance->write(own, mine) ||
        !same_bytes(c, s.instance->read(own), mine, Promise::COPY_DONE, "a copy that blocks, beside a queue"))
      return;
  }
  if (s.finish(queue))
    same_bytes(c, s.instance->read(b), data, Promise::QUEUE_ORDER, "copies on a queue beside ones that block");
}

void much_work(Contract& c) {
  const Setting s = start_queues(c);
  if (!s) return;
  constexpr uint64_t kPieces = 3000;
  Queue queue = s.create(COLLET_QUEUE_UPLOAD);
  Buffer a = s.instance->alloc(kPieces * 4);
  const Bytes data = pattern(kPieces * 4, 12);
  if (!queue || !a) return;
  for (uint64_t i = 0; i < kPieces; ++i)
    if (!c.check(s.copy(queue, {region(at_host(data.data(), i * 4), at(a, i * 4), 4)}), Promise::QUEUE_ORDER,
                 "piece {} of {} was refused", i, kPieces))
      return;
  if (s.finish(queue)) same_bytes(c, s.instance->read(a), data, Promise::QUEUE_POINT, "three thousand pieces of work");
}

void come_and_go(Contract& c) {
  const Setting s = start_queues(c);
  if (!s) return;
  Buffer a = s.instance->alloc(kBytes), b = s.instance->alloc(kBytes);
  if (!a || !b) return;
  const auto cycle = [&] {
    Queue queue = s.create(COLLET_QUEUE_COMPUTE);
    return queue && s.copy(queue, {region(at(a), at(b), 64)}) && s.finish(queue);
  };
  const Growth growth = measure_growth(60, cycle);
  c.check(growth.heap < 512, Promise::QUEUE_CREATE, "each queue leaves {:.0f} bytes of the heap behind", growth.heap);
}

void between_devices(Contract& c) {
  const Setting s = start_queues(c, 2);
  if (!s) return;
  if (s.instance->devices().size() < 2) return c.skip("there is one device");
  Queue first = s.create(COLLET_QUEUE_UPLOAD, 0), second = s.create(COLLET_QUEUE_UPLOAD, 1);
  Buffer a = s.instance->alloc(kBytes, 0), b = s.instance->alloc(kBytes, 1);
  const Bytes data = pattern(kBytes, 13);
  if (!first || !second || !a || !b) return;
  if (!s.copy(first, {region(at_host(data.data()), at(a), kBytes)}) ||
      !s.copy(second, {region(at(a), at(b), kBytes)}, {first.point()}) || !s.finish(second))
    return;
  same_bytes(c, s.instance->read(b), data, Promise::QUEUE_WAITS, "from one device to another, by their queues");
  s.finish(first);
}

void from_threads(Contract& c) {
  const Setting s = start_queues(c);
  if (!s) return;
  if (s.instance->serial()) return c.skip("the device has COLLET_TRAIT_SERIAL");
  on_threads(3, [&](int thread) {
    Queue up = s.create(COLLET_QUEUE_UPLOAD), down = s.create(COLLET_QUEUE_DOWNLOAD);
    Buffer a = s.instance->alloc(kBytes);
    if (!up || !down || !a) return;
    for (uint64_t i = 0; i < 30; ++i) {
      const Bytes data = pattern(kBytes, i * 3 + static_cast<uint64_t>(thread));
      Bytes got(kBytes);
      std::vector<collet_point> waits;
      if (i > 0) waits = {down.point()};
      if (!s.copy(up, {region(at_host(data.data()), at(a), kBytes)}, waits) ||
          !s.copy(down, {region(at(a), at_host(got.data()), kBytes)}, {up.point()}) || !s.finish(down) ||
          !s.finish(up) || !same_bytes(c, got, data, Promise::THREADS, "queues of three threads"))
        return;
    }
  });
}

}  // namespace

void add_queue_contracts(std::vector<ContractCase>& list) {
  list.push_back({"queue/kinds", kinds});
  list.push_back({"queue/order", order});
  list.push_back({"queue/across_queues", across_queues});
  list.push_back({"queue/many_queues", many_queues});
  list.push_back({"queue/launches", launches});
  list.push_back({"queue/wait", waiting});
  list.push_back({"queue/deadline", deadline});
  list.push_back({"queue/abort", abort});
  list.push_back({"queue/abort_while_waiting", abort_while_waiting});
  list.push_back({"queue/poison", poison});
  list.push_back({"queue/beside_blocking_calls", beside_blocking_calls});
  list.push_back({"queue/much_work", much_work});
  list.push_back({"queue/come_and_go", come_and_go});
  list.push_back({"queue/between_devices", between_devices});
  list.push_back({"queue/threads", from_threads});
}

}  // namespace collet::conformance
