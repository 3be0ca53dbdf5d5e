// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <random>

#include "conformance/contract/queues.h"

/// \file
/// Contract cases that put the same work on queues in every order that its dependences allow. Each piece waits for those before
/// it that use the same memory, and for no others, so that all orders must give the same data.

namespace collet::conformance {
namespace {

constexpr uint64_t kBytes = 4096, kSlow = uint64_t{1} << 19;
constexpr size_t kBuffers = 3, kQueuesOfAKind = 2;

/// A copy between buffers, or between the host and a buffer.
struct Work {
  uint32_t kind = COLLET_QUEUE_COMPUTE;  ///< COLLET_QUEUE_UPLOAD and DOWNLOAD: host memory of its own is the other end
  size_t from = 0, to = 0;               ///< numbers of buffers
  size_t queue = 0;                      ///< of its kind

  bool reads(size_t buffer) const { return kind != COLLET_QUEUE_UPLOAD && from == buffer; }
  bool writes(size_t buffer) const { return kind != COLLET_QUEUE_DOWNLOAD && to == buffer; }
  /// True if the two must keep their order.
  bool conflicts(const Work& other) const {
    for (size_t b = 0; b < kBuffers; ++b)
      if ((writes(b) && (other.reads(b) || other.writes(b))) || (reads(b) && other.writes(b))) return true;
    return false;
  }
};

std::vector<Work> draw_work(std::mt19937_64& random, size_t count) {
  std::vector<Work> out;
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (size_t i = 0; i < count; ++i) {
    Work one;
    const size_t kind = below(4);
    one.kind = kind == 0 ? COLLET_QUEUE_UPLOAD : kind == 1 ? COLLET_QUEUE_DOWNLOAD : COLLET_QUEUE_COMPUTE;
    one.from = below(kBuffers);
    one.to = (one.from + 1 + below(kBuffers - 1)) % kBuffers;
    one.queue = below(kQueuesOfAKind);
    out.push_back(one);
  }
  return out;
}

/// The memory of a run, and what it must hold afterwards.
class OrderedRun {
 public:
  OrderedRun(const Setting& s, std::vector<Work> work, uint64_t seed) : s_(s), work_(std::move(work)) {
    for (size_t b = 0; b < kBuffers; ++b) {
      buffers_.push_back(s.instance->alloc(kBytes));
      initial_.push_back(pattern(kBytes, seed + b));
    }
    for (size_t i = 0; i < 2; ++i) slow_.push_back(s.instance->alloc(kSlow));
    slow_host_ = pattern(kSlow, seed + 50);
    for (const uint32_t kind : {COLLET_QUEUE_COMPUTE, COLLET_QUEUE_UPLOAD, COLLET_QUEUE_DOWNLOAD})
      for (size_t i = 0; i < kQueuesOfAKind; ++i) queues_.push_back(s.create(kind));
    expected_ = initial_;
    for (size_t i = 0; i < work_.size(); ++i) {
      const Work& one = work_[i];
      sources_.push_back(pattern(kBytes, seed + 100 + i));
      wanted_.push_back(one.kind == COLLET_QUEUE_DOWNLOAD ? expected_[one.from] : sources_.back());
      if (one.kind == COLLET_QUEUE_UPLOAD) expected_[one.to] = sources_.back();
      if (one.kind == COLLET_QUEUE_COMPUTE) expected_[one.to] = expected_[one.from];
    }
    good_ = std::all_of(buffers_.begin(), buffers_.end(), [](const Buffer& b) { return !!b; }) && slow_[0] &&
            slow_[1] && std::all_of(queues_.begin(), queues_.end(), [](const Queue& q) { return !!q; }) &&
            s.instance->write(slow_[0], slow_host_);
  }
  explicit operator bool() const { return good_; }

  /// Puts the work on its queues in this order, with slow work before piece `late`, and checks the data. False after a failure.
  bool run(const std::vector<size_t>& order, size_t late) {
    for (size_t b = 0; b < kBuffers; ++b)
      if (!s_.instance->write(buffers_[b], initial_[b])) return false;
    host_ = sources_;
    std::vector<collet_point> points(work_.size());
    std::vector<bool> put(work_.size());
    for (const size_t i : order) {
      Queue& queue = queue_of(work_[i]);
      if (i == late && !s_.copy(queue, {slow_region(work_[i].kind)})) return false;
      std::vector<collet_point> waits;
      for (size_t before = 0; before < i; ++before)
        if (work_[i].conflicts(work_[before])) waits.push_back(points[before]);
      const collet_place host = at_host(host_[i].data());
      const collet_place from = work_[i].kind == COLLET_QUEUE_UPLOAD ? host : at(buffers_[work_[i].from]);
      const collet_place to = work_[i].kind == COLLET_QUEUE_DOWNLOAD ? host : at(buffers_[work_[i].to]);
      if (!s_.copy(queue, {region(from, to, kBytes)}, waits)) return false;
      points[i] = queue.point();
    }
    // The points are waited for in another order than that in which they are reached.
    for (size_t k = 0; k < queues_.size(); ++k)
      if (!s_.finish(queues_[(k * 5 + late) % queues_.size()])) return false;
    const std::string what = fmt::format("work that was put on queues in the order {}", fmt::join(order, ", "));
    for (size_t i = 0; i < work_.size(); ++i)
      if (work_[i].kind == COLLET_QUEUE_DOWNLOAD &&
          !same_bytes(s_.contract(), host_[i], wanted_[i], Promise::QUEUE_WAITS,
                      fmt::format("{}: download {}", what, i)))
        return false;
    for (size_t b = 0; b < kBuffers; ++b)
      if (!same_bytes(s_.contract(), s_.instance->read(buffers_[b]), expected_[b], Promise::QUEUE_WAITS,
                      fmt::format("{}: buffer {}", what, b)))
        return false;
    return true;
  }
  const std::vector<Work>& work() const { return work_; }

 private:
  Queue& queue_of(const Work& one) {
    const size_t kind = one.kind == COLLET_QUEUE_COMPUTE ? 0 : one.kind == COLLET_QUEUE_UPLOAD ? 1 : 2;
    return queues_[kind * kQueuesOfAKind + one.queue];
  }
  collet_copy_region slow_region(uint32_t kind) {
    const collet_place host = at_host(slow_host_.data());
    if (kind == COLLET_QUEUE_UPLOAD) return region(host, at(slow_[1]), kSlow);
    return kind == COLLET_QUEUE_DOWNLOAD ? region(at(slow_[0]), host, kSlow)
                                         : region(at(slow_[0]), at(slow_[1]), kSlow);
  }

  const Setting& s_;
  const std::vector<Work> work_;
  std::vector<Buffer> buffers_, slow_;
  std::vector<Queue> queues_;
  Bytes slow_host_;
  std::vector<Bytes> initial_, expected_, sources_, wanted_, host_;
  bool good_ = false;
};

// Calls `each` for every order that keeps conflicting pieces in their order, at most `most` of them, until it returns false.
bool for_each_order(const std::vector<Work>& work, size_t most,
                    const std::function<bool(const std::vector<size_t>&)>& each) {
  std::vector<size_t> order;
  std::vector<bool> taken(work.size());
  size_t orders = 0;
  const std::function<bool()> extend = [&]() -> bool {
    if (order.size() == work.size()) return ++orders > most || each(order);
    for (size_t i = 0; i < work.size() && orders <= most; ++i) {
      if (taken[i]) continue;
      bool ready = true;
      for (size_t before = 0; before < i; ++before) ready &= taken[before] || !work[i].conflicts(work[before]);
      if (!ready) continue;
      taken[i] = true;
      order.push_back(i);
      const bool good = extend();
      order.pop_back();
      taken[i] = false;
      if (!good) return false;
    }
    return true;
  };
  return extend();
}

// All orders of six pieces.
void all_orders(Contract& c) {
  constexpr size_t kPieces = 6, kPrograms = 4, kMostOrders = 720;
  const Setting s = start_queues(c);
  if (!s) return;
  std::mt19937_64 random(1);
  for (size_t p = 0; p < kPrograms; ++p) {
    OrderedRun run(s, draw_work(random, kPieces), 1000 * p);
    if (!run) return;
    size_t number = 0;
    const auto each = [&](const std::vector<size_t>& order) { return run.run(order, number++ % kPieces); };
    if (!for_each_order(run.work(), kMostOrders, each)) return;
  }
}

// Some orders of sixteen pieces.
void some_orders(Contract& c) {
  constexpr size_t kPieces = 16, kPrograms = 4, kOrders = 60;
  const Setting s = start_queues(c);
  if (!s) return;
  std::mt19937_64 random(2);
  for (size_t p = 0; p < kPrograms; ++p) {
    OrderedRun run(s, draw_work(random, kPieces), 5000 + 1000 * p);
    if (!run) return;
    const std::vector<Work>& work = run.work();
    for (size_t k = 0; k < kOrders; ++k) {
      std::vector<size_t> order;
      std::vector<bool> taken(kPieces);
      while (order.size() < kPieces) {
        std::vector<size_t> ready;
        for (size_t i = 0; i < kPieces; ++i) {
          bool free = !taken[i];
          for (size_t before = 0; before < i && free; ++before)
            free = taken[before] || !work[i].conflicts(work[before]);
          if (free) ready.push_back(i);
        }
        order.push_back(ready[random() % ready.size()]);
        taken[order.back()] = true;
      }
      if (!run.run(order, k % kPieces)) return;
    }
  }
}

}  // namespace

void add_order_contracts(std::vector<ContractCase>& list) {
  list.push_back({"queue/all_orders", all_orders});
  list.push_back({"queue/some_orders", some_orders});
}

}  // namespace collet::conformance
