// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/memory/buffer_planner.h"

#include <algorithm>
#include <map>

namespace collet::codegen {
namespace {

/// Intervals of time, indexed for overlap queries. An interval is stored at the shortest aligned stretch of time that
/// contains it, whose length is a power of two. A query searches only the few stretches that can overlap it.
class LiveIntervals {
 public:
  void add(int def, int last, uint32_t storage) {
    unsigned level = 0;
    while ((place(def) >> level) != (place(last) >> level)) ++level;
    if (levels_.size() <= level) levels_.resize(level + 1);
    levels_[level][place(def) >> level].push_back({def, last, storage});
  }

  template <typename Visit>
  void each(int def, int last, const Visit& visit) const {
    for (unsigned level = 0; level < levels_.size(); ++level) {
      const auto end = levels_[level].upper_bound(place(last) >> level);
      for (auto it = levels_[level].lower_bound(place(def) >> level); it != end; ++it) {
        for (const Interval& interval : it->second) {
          if (interval.def <= last && def <= interval.last) visit(interval.storage);
        }
      }
    }
  }

 private:
  struct Interval {
    int def;
    int last;
    uint32_t storage;
  };
  static uint64_t place(int time) { return static_cast<uint64_t>(static_cast<int64_t>(time) - INT32_MIN); }
  std::vector<std::map<uint64_t, std::vector<Interval>>> levels_;
};

}  // namespace

RangeId BufferPlanner::add(uint64_t bytes, int def, Kind kind, uint32_t slot, uint64_t offset) {
  auto range = static_cast<RangeId>(ranges_.size());
  ranges_.push_back({def, def, static_cast<uint32_t>(buffers_.size()), {}});
  buffers_.push_back({kind, slot, offset, bytes, {range}, {}});
  return range;
}

RangeId BufferPlanner::add_in(RangeId like, int def) {
  auto range = static_cast<RangeId>(ranges_.size());
  const uint32_t storage = ranges_[like].storage;
  ranges_.push_back({def, def, storage, {}});
  buffers_[storage].ranges.push_back(range);
  return range;
}

void BufferPlanner::use(RangeId range, int time) {
  ranges_[range].last = std::max(ranges_[range].last, time);
}

void BufferPlanner::may_alias(RangeId result, RangeId argument) {
  buffers_[ranges_[result].storage].aliases.push_back(ranges_[argument].storage);
}

bool BufferPlanner::clash(RangeId a, RangeId b) const {
  const LiveRange& x = ranges_[a];
  const LiveRange& y = ranges_[b];
  if (x.last < y.def || y.last < x.def) return false;
  if (x.last == y.def && allowed_.count({a, b, y.def})) return false;
  if (y.last == x.def && allowed_.count({b, a, x.def})) return false;
  return !in_gap(a, b) && !in_gap(b, a);
}

bool BufferPlanner::in_gap(RangeId outer, RangeId inner) const {
  const LiveRange& x = ranges_[outer];
  const LiveRange& y = ranges_[inner];
  return std::any_of(x.gaps.begin(), x.gaps.end(), [&](const Gap& g) {
    const bool after = y.def > g.from || (y.def == g.from && allowed_.count({outer, inner, y.def}));
    return x.last <= g.end && after && y.last < g.to;
  });
}

bool BufferPlanner::buffers_clash(uint32_t a, uint32_t b) const {
  for (RangeId x : buffers_[a].ranges) {
    for (RangeId y : buffers_[b].ranges) {
      if (clash(x, y)) return true;
    }
  }
  return false;
}

bool BufferPlanner::coalesce(RangeId a, RangeId b) {
  uint32_t from = ranges_[a].storage;
  uint32_t to = ranges_[b].storage;
  if (from == to) return true;
  if (buffers_[from].kind != Kind::kWorkspace && buffers_[to].kind != Kind::kWorkspace) return false;
  if (buffers_[from].kind == Kind::kConstant || buffers_[to].kind == Kind::kConstant) return false;
  if (buffers_[from].kind == Kind::kArgument || buffers_[to].kind == Kind::kArgument) return false;
  if (buffers_[from].bytes != buffers_[to].bytes) return false;
  if (buffers_clash(from, to)) return false;
  for (auto [one, other] : {std::pair{from, to}, std::pair{to, from}}) {
    for (uint32_t alias : buffers_[one].aliases) {
      if (buffers_clash(other, alias)) return false;
    }
  }
  if (buffers_[from].kind != Kind::kWorkspace) std::swap(from, to);
  for (RangeId w : buffers_[from].ranges) {
    ranges_[w].storage = to;
    buffers_[to].ranges.push_back(w);
  }
  buffers_[to].aliases.insert(buffers_[to].aliases.end(), buffers_[from].aliases.begin(), buffers_[from].aliases.end());
  buffers_[from].ranges.clear();
  return true;
}

uint64_t BufferPlanner::assign_offsets(uint64_t first) {
  struct Interval {
    uint32_t storage;
    int def;
    int last;
  };
  std::vector<Interval> intervals;
  for (uint32_t s = 0; s < buffers_.size(); ++s) {
    if (buffers_[s].kind != Kind::kWorkspace || buffers_[s].ranges.empty()) continue;
    Interval interval{s, INT32_MAX, INT32_MIN};
    for (RangeId w : buffers_[s].ranges) {
      interval.def = std::min(interval.def, ranges_[w].def);
      interval.last = std::max(interval.last, ranges_[w].last);
    }
    intervals.push_back(interval);
  }
  std::stable_sort(intervals.begin(), intervals.end(), [&](const Interval& x, const Interval& y) {
    return buffers_[x.storage].bytes > buffers_[y.storage].bytes;
  });
  LiveIntervals placed;
  uint64_t end = first;
  for (const Interval& interval : intervals) {
    // Gaps between the memory of buffers that are live at the same time, lowest first.
    std::vector<std::pair<uint64_t, uint64_t>> busy;
    placed.each(interval.def, interval.last, [&](uint32_t other) {
      busy.emplace_back(buffers_[other].offset, buffers_[other].offset + buffers_[other].bytes);
    });
    std::sort(busy.begin(), busy.end());
    Buffer& s = buffers_[interval.storage];
    uint64_t at = first;
    for (auto [from, to] : busy) {
      if (at + s.bytes <= from) break;
      at = std::max(at, (to + 63) / 64 * 64);
    }
    s.offset = at;
    end = std::max(end, at + s.bytes);
    placed.add(interval.def, interval.last, interval.storage);
  }
  return end;
}

Place BufferPlanner::place(RangeId range, const LaunchPlan& plan) const {
  const Buffer& s = buffers_[ranges_[range].storage];
  switch (s.kind) {
    case Kind::kArgument:
      return {s.slot, s.offset, s.bytes};
    case Kind::kResult:
      return {result_slot(plan, s.slot), s.offset, s.bytes};
    case Kind::kConstant:
      return {constant_slot(plan), s.offset, s.bytes};
    case Kind::kWorkspace:
      break;
  }
  return {workspace_slot(plan), s.offset, s.bytes};
}

}  // namespace collet::codegen
