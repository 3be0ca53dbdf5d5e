// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <chrono>

#include "conformance/contract/queues.h"

/// \file
/// Contract cases for the order of work on queues. Each puts work on a queue that waits for slow work on another queue and uses
/// the same memory. A backend that starts work before the points that it waits for, or signals a point before the work has
/// ended, reads data that is not written yet or overwrites data that is still needed.

namespace collet::conformance {
namespace {

constexpr uint64_t kBytes = 4096, kLarge = 1 << 20;
constexpr double kDelaySeconds = 0.03;
using Clock = std::chrono::steady_clock;

/// How queued work uses the buffer under test.
enum class Does : uint8_t { CopyFrom, CopyTo, Download, Upload };

uint32_t kind_of(Does does) {
  return does == Does::Upload     ? COLLET_QUEUE_UPLOAD
         : does == Does::Download ? COLLET_QUEUE_DOWNLOAD
                                  : COLLET_QUEUE_COMPUTE;
}
bool writes(Does does) {
  return does == Does::CopyTo || does == Does::Upload;
}
const char* name_of(Does does) {
  constexpr const char* kNames[] = {"copy_from", "copy_to", "download", "upload"};
  return kNames[static_cast<size_t>(does)];
}

/// One piece of work on the buffer under test, with its own queue and its own source or destination.
class Piece {
 public:
  Piece(const Setting& s, Does does, uint64_t seed, uint32_t device = 0)
      : s_(s), does_(does), queue_(s.create(kind_of(does), device)), host_(pattern(kBytes, seed)) {
    if (does == Does::CopyFrom || does == Does::CopyTo) other_ = s.instance->alloc(kBytes, device);
    slow_host_ = pattern(kLarge, seed + 1);
    for (Buffer& one : slow_) one = s.instance->alloc(kLarge, device);
    good_ = queue_ && slow_[0] && slow_[1] && (other_ || (does != Does::CopyFrom && does != Does::CopyTo)) &&
            s.instance->write(slow_[0], slow_host_) && (!other_ || s.instance->write(other_, host_));
  }
  explicit operator bool() const { return good_; }
  Queue& queue() { return queue_; }

  /// Puts unrelated copies on the queue that take about kDelaySeconds, so that work on another queue begins before later
  /// work on this one if it does not wait.
  bool delay() {
    // The shortest of several times: a copy that another process delays would make the delay of the queue too short.
    double each = kDelaySeconds;
    for (int i = 0; i < 4; ++i) {
      const auto start = Clock::now();
      if (!put_slow(1) || !s_.finish(queue_)) return false;
      each = std::min(each, std::chrono::duration<double>(Clock::now() - start).count());
    }
    return put_slow(static_cast<int>(std::clamp(kDelaySeconds / each, 2.0, 200.0)));
  }
  bool put(const Buffer& buffer, const std::vector<collet_point>& waits, uint64_t offset = 0) {
    const collet_place here = at(buffer, offset), there = other_ ? at(other_) : at_host(host_.data());
    return s_.copy(queue_, {writes(does_) ? region(there, here, kBytes) : region(here, there, kBytes)}, waits);
  }
  /// The data that the work writes to the buffer or, after it has ended, has read from the buffer.
  Bytes bytes() { return other_ ? s_.instance->read(other_) : host_; }

 private:
  bool put_slow(int times) {
    const collet_place device = at(slow_[0]), host = at_host(slow_host_.data());
    const collet_copy_region one = does_ == Does::Upload     ? region(host, at(slow_[1]), kLarge)
                                   : does_ == Does::Download ? region(device, host, kLarge)
                                                             : region(device, at(slow_[1]), kLarge);
    for (int i = 0; i < times; ++i)
      if (!s_.copy(queue_, {one, one, one, one})) return false;
    return true;
  }

  const Setting& s_;
  Does does_;
  Queue queue_;
  Bytes host_, slow_host_;
  Buffer other_;
  std::array<Buffer, 2> slow_;
  bool good_ = false;
};

// The first piece of work is delayed, and the second waits for it.
void two_pieces(Contract& c, Does first_does, Does second_does) {
  const Setting s = start_queues(c);
  if (!s) return;
  for (uint64_t round = 0; round < 2; ++round) {
    Buffer buffer = s.instance->alloc(kBytes);
    const Bytes before = pattern(kBytes, 900 + round);
    Piece first(s, first_does, 10 + round), second(s, second_does, 20 + round);
    if (!buffer || !first || !second || !s.instance->write(buffer, before)) return;
    const Bytes first_data = first.bytes(), second_data = second.bytes();
    if (!first.delay() || !first.put(buffer, {}) || !second.put(buffer, {first.queue().point()})) return;
    if (!s.finish(second.queue()) || !s.finish(first.queue())) return;
    const Bytes& between = writes(first_does) ? first_data : before;
    const Bytes& last = writes(second_does) ? second_data : between;
    const std::string what =
        fmt::format("{} that waits for a late {} of the same buffer", name_of(second_does), name_of(first_does));
    if (!writes(first_does) &&
        !same_bytes(c, first.bytes(), before, Promise::QUEUE_WAITS, what + ": what the first one read"))
      return;
    if (!writes(second_does) &&
        !same_bytes(c, second.bytes(), between, Promise::QUEUE_WAITS, what + ": what the second one read"))
      return;
    if (!same_bytes(c, s.instance->read(buffer), last, Promise::QUEUE_WAITS, what + ": the buffer")) return;
  }
}

// A download waits for work on three queues. Each of the three is the delayed one in turn.
void several_waits(Contract& c) {
  constexpr size_t kWriters = 3;
  const Setting s = start_queues(c);
  if (!s) return;
  for (size_t late = 0; late < kWriters; ++late) {
    Buffer buffer = s.instance->alloc(kBytes * kWriters);
    Queue down = s.create(COLLET_QUEUE_DOWNLOAD);
    std::vector<std::unique_ptr<Piece>> writers;
    Bytes expected, got(kBytes * kWriters);
    std::vector<collet_point> waits;
    if (!buffer || !down || !s.instance->write(buffer, pattern(buffer.bytes(), 30))) return;
    for (size_t i = 0; i < kWriters; ++i) {
      writers.push_back(std::make_unique<Piece>(s, i == 1 ? Does::Upload : Does::CopyTo, 40 + i));
      Piece& writer = *writers.back();
      if (!writer) return;
      const Bytes data = writer.bytes();
      expected.insert(expected.end(), data.begin(), data.end());
    }
    for (size_t i = 0; i < kWriters; ++i) {
      if ((i == late && !writers[i]->delay()) || !writers[i]->put(buffer, {}, i * kBytes)) return;
      waits.push_back(writers[i]->queue().point());
    }
    if (!s.copy(down, {region(at(buffer), at_host(got.data()), got.size())}, waits) || !s.finish(down)) return;
    for (const auto& writer : writers)
      if (!s.finish(writer->queue())) return;
    if (!same_bytes(c, got, expected, Promise::QUEUE_WAITS,
                    fmt::format("a download that waits for three queues, of which number {} is late", late)))
      return;
  }
}

// A launch waits for uploads of its arguments, of which each in turn is delayed. Further uploads wait for the launch and
// overwrite the arguments.
void launch_between(Contract& c) {
  const Setting s = start_queues(c);
  if (!s) return;
  const std::string body = accepted_sum(*s.instance);
  if (body.empty()) return;
  const PreparedProgram ready = prepare(*s.instance, body);
  if (!ready) return;
  for (uint64_t round = 0; round < 6; ++round) {
    const size_t late = round % 3;
    Queue compute = s.create(COLLET_QUEUE_COMPUTE);
    std::array<std::unique_ptr<Piece>, 2> uploads;
    for (size_t i = 0; i < 2; ++i) uploads[i] = std::make_unique<Piece>(s, Does::Upload, 60 + i);
    Piece slow(s, Does::CopyTo, 70);
    if (!compute || !*uploads[0] || !*uploads[1] || !slow) return;
    GuardedLaunch guarded(*s.instance, *ready.program, ready.executable, {});
    const std::vector<hlo::Literal> garbage = ready.program->draw(100 + round),
                                    inputs = ready.program->draw(200 + round);
    if (!guarded.fill(garbage, 1)) return;
    const std::vector<collet_argument> arguments = guarded.arguments();
    std::vector<collet_point> waits;
    for (size_t i = 0; i < 2; ++i) {
      if (i == late && !uploads[i]->delay()) return;
      const collet_copy_region up{{nullptr, const_cast<void*>(static_cast<const void*>(inputs[i].bytes())), 0},
                                  {arguments[i].buffer, nullptr, arguments[i].offset},
                                  arguments[i].bytes};
      if (!s.copy(uploads[i]->queue(), {up})) return;
      waits.push_back(uploads[i]->queue().point());
    }
    // In every third round the launch itself is delayed, since it waits for a slow copy.
    if (late == 2) {
      if (!slow.delay()) return;
      waits.push_back(slow.queue().point());
    }
    if (!c.check(s.launch(compute, ready.executable, guarded, waits), Promise::EXECUTE, "execute on a queue failed"))
      return;
    for (size_t i = 0; i < 2; ++i) {
      const collet_copy_region up{{nullptr, const_cast<void*>(static_cast<const void*>(garbage[i].bytes())), 0},
                                  {arguments[i].buffer, nullptr, arguments[i].offset},
                                  arguments[i].bytes};
      if (!s.copy(uploads[i]->queue(), {up}, {compute.point()})) return;
    }
    // The results are checked as soon as the launch has signalled.
    if (!s.finish(compute)) return;
    const std::string what = late < 2 ? fmt::format("a launch whose argument {} came late", late)
                                      : "a launch that came late, whose arguments were to be overwritten after it";
    const bool good = guarded.judge_results(inputs, what);
    for (size_t i = 0; i < 2; ++i)
      if (!s.finish(uploads[i]->queue())) return;
    if (!s.finish(slow.queue())) return;
    if (!c.check(good, Promise::QUEUE_WAITS, "{}", what)) return;
    for (size_t i = 0; i < 2; ++i) {
      Bytes now(arguments[i].bytes);
      const collet_copy_region down{
          {arguments[i].buffer, nullptr, arguments[i].offset}, {nullptr, now.data(), 0}, now.size()};
      const auto* expected = reinterpret_cast<const uint8_t*>(garbage[i].bytes());
      if (!s.instance->copy({&down, 1}) ||
          !same_bytes(c, now, Bytes(expected, expected + now.size()), Promise::QUEUE_WAITS,
                      "an argument that was overwritten after the launch"))
        return;
    }
  }
}

// When a long launch has signalled its point, all elements of the result must be written.
void launch_signals_last(Contract& c) {
  const Setting s = start_queues(c);
  if (!s) return;
  for (const char* type : {"f32", "s32", "bf16", "f64", "s8"}) {
    const PreparedProgram ready =
        prepare(*s.instance,
                fmt::format("ENTRY main {{\n  a = {0}[600000] parameter(0)\n  b = {0}[600000] "
                            "parameter(1)\n  ROOT r = {0}[600000] add(a, b)\n}}\n",
                            type),
                {}, {}, false);
    if (!ready) continue;
    Queue compute = s.create(COLLET_QUEUE_COMPUTE);
    if (!compute) return;
    GuardedLaunch guarded(*s.instance, *ready.program, ready.executable, {});
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const std::vector<hlo::Literal> inputs = ready.program->draw(seed);
      if (!guarded.fill(inputs, seed) ||
          !c.check(s.launch(compute, ready.executable, guarded), Promise::EXECUTE, "execute on a queue failed") ||
          !s.finish(compute) ||
          !c.check(guarded.judge_results(inputs, "a long launch, when its point was reached"), Promise::QUEUE_POINT,
                   "a long launch had not ended"))
        return;
    }
    return;
  }
  c.skip("the backend takes no long addition");
}

// The point of a copy of several regions may be signalled only when all regions are copied. The large region comes first or
// second in turn.
void last_region(Contract& c) {
  const Setting s = start_queues(c);
  if (!s) return;
  for (const uint32_t kind : {COLLET_QUEUE_UPLOAD, COLLET_QUEUE_COMPUTE, COLLET_QUEUE_DOWNLOAD}) {
    Queue queue = s.create(kind);
    Buffer a = s.instance->alloc(2 * kLarge), b = s.instance->alloc(2 * kLarge);
    if (!queue || !a || !b) return;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      const Bytes data = pattern(2 * kLarge, seed);
      Bytes host = pattern(2 * kLarge, 50 + seed);
      if (!s.instance->write(a, data) || !s.instance->write(b, host)) return;
      const uint64_t first = seed % 2 ? 64 : 2 * kLarge - 64;
      std::vector<collet_copy_region> regions;
      for (const auto& [offset, bytes] :
           {std::pair<uint64_t, uint64_t>{0, first}, {first, 2 * kLarge - first - 8}, {2 * kLarge - 8, 8}}) {
        const collet_place from = kind == COLLET_QUEUE_UPLOAD ? at_host(data.data(), offset) : at(a, offset);
        const collet_place to = kind == COLLET_QUEUE_DOWNLOAD ? at_host(host.data(), offset) : at(b, offset);
        regions.push_back(region(from, to, bytes));
      }
      if (!s.copy(queue, regions) || !s.finish(queue)) return;
      // The last bytes are read first, before a region that is still being copied can arrive.
      Bytes end(8);
      if (kind == COLLET_QUEUE_DOWNLOAD) {
        end.assign(host.end() - 8, host.end());
      } else if (!s.instance->read(b, 2 * kLarge - 8, end.data(), 8)) {
        return;
      }
      if (!same_bytes(c, end, Bytes(data.end() - 8, data.end()), Promise::QUEUE_POINT,
                      "the last of three regions, when the point was reached") ||
          !same_bytes(c, kind == COLLET_QUEUE_DOWNLOAD ? host : s.instance->read(b), data, Promise::QUEUE_POINT,
                      "three regions, when the point was reached"))
        return;
    }
  }
}

// A queue of one device waits for late work on another device.
void other_device(Contract& c) {
  const Setting s = start_queues(c, 2);
  if (!s) return;
  if (s.instance->devices().size() < 2) return c.skip("there is one device");
  for (uint32_t first_device = 0; first_device < 2; ++first_device) {
    Buffer near = s.instance->alloc(kBytes, first_device), far = s.instance->alloc(kBytes, 1 - first_device);
    Piece first(s, Does::CopyTo, 80, first_device);
    Queue second = s.create(COLLET_QUEUE_UPLOAD, 1 - first_device);
    if (!near || !far || !first || !second || !s.instance->write(near, pattern(kBytes, 81)) ||
        !s.instance->write(far, pattern(kBytes, 82)))
      return;
    const Bytes data = first.bytes();
    if (!first.delay() || !first.put(near, {}) ||
        !s.copy(second, {region(at(near), at(far), kBytes)}, {first.queue().point()}) || !s.finish(second) ||
        !s.finish(first.queue()))
      return;
    if (!same_bytes(c, s.instance->read(far), data, Promise::QUEUE_WAITS,
                    fmt::format("a copy from device {} that waits for a queue of that device", first_device)))
      return;
  }
}

// Work reads host memory only after the points that it waits for, and no longer uses it when its own point is reached.
void host_memory(Contract& c) {
  const Setting s = start_queues(c);
  if (!s) return;
  for (uint64_t round = 0; round < 2; ++round) {
    Piece first(s, Does::Download, 90 + round);
    Queue up = s.create(COLLET_QUEUE_UPLOAD);
    Buffer from = s.instance->alloc(kBytes), to = s.instance->alloc(kBytes);
    const Bytes data = pattern(kBytes, 95 + round);
    Bytes host = pattern(kBytes, 97);
    if (!first || !up || !from || !to || !s.instance->write(from, data) || !s.instance->write(to, host)) return;
    // A delayed download fills the host memory, and an upload from that memory waits for it.
    if (!first.delay() || !s.copy(first.queue(), {region(at(from), at_host(host.data()), kBytes)}) ||
        !s.copy(up, {region(at_host(host.data()), at(to), kBytes)}, {first.queue().point()}) || !s.finish(up))
      return;
    std::fill(host.begin(), host.end(), 0xee);
    if (!s.finish(first.queue()) || !same_bytes(c, s.instance->read(to), data, Promise::QUEUE_WAITS,
                                                "an upload of host memory that a late download fills"))
      return;
  }
}

}  // namespace

void add_hazard_contracts(std::vector<ContractCase>& list) {
  const auto all = {Does::CopyFrom, Does::CopyTo, Does::Download, Does::Upload};
  for (const Does first : all) {
    for (const Does second : all) {
      if (!writes(first) && !writes(second)) continue;
      list.push_back({fmt::format("queue/{}_then_{}", name_of(first), name_of(second)),
                      [=](Contract& c) { two_pieces(c, first, second); }});
    }
  }
  list.push_back({"queue/several_waits", several_waits});
  list.push_back({"queue/launch_between", launch_between});
  list.push_back({"queue/launch_signals_last", launch_signals_last});
  list.push_back({"queue/last_region", last_region});
  list.push_back({"queue/waits_for_another_device", other_device});
  list.push_back({"queue/host_memory", host_memory});
}

}  // namespace collet::conformance
