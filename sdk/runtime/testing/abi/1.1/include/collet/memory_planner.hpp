/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_MEMORY_PLANNER_HPP
#define COLLET_MEMORY_PLANNER_HPP

/** \file
 * A memory plan for a list of nodes: what a compiler of whole programs has after its own fusion. The places that a program
 * proposes (collet_value::offset) hold for the order of its ops only; a backend that fuses, reorders or cuts makes its own
 * plan with this header.
 *
 *     collet::memory::Graph graph;
 *     graph.tensors = {{4096, 1}, {4096}, {4096}};                 // the first one lies in level 1 when the program begins
 *     graph.nodes = {{{0}, {1}}, {{1}, {2}}};                      // reads, writes
 *     const std::vector<collet::memory::Level> levels = {{"scratchpad", 1 << 20}, {"memory"}};
 *     const collet::memory::MemoryPlan plan = collet::memory::plan_memory(graph, levels);
 *     if (!plan.complaint.empty()) report(plan.complaint);
 *
 * Header only; nothing is global, so that any thread may call it.
 */

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace collet {
/** Plans of memory for graphs of a backend's own. */
namespace memory {

/** An interval of time, `first` to `last` inclusive, during which `bytes` are needed at `offset`. */
struct PlacedInterval {
  int64_t first = 0, last = 0;
  uint64_t bytes = 0;
  uint64_t offset = 0;
};

namespace detail {

inline uint64_t round_up(uint64_t bytes, uint32_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/** Places the largest intervals first, each at the lowest gap between intervals of overlapping times. The result is compact,
 * but the time is quadratic. */
inline uint64_t place_by_size(std::vector<PlacedInterval>& intervals, uint32_t alignment) {
  std::vector<uint32_t> order(intervals.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return intervals[a].bytes != intervals[b].bytes ? intervals[a].bytes > intervals[b].bytes : a < b;
  });
  std::vector<uint32_t> placed;  // by offset
  uint64_t height = 0;
  for (const uint32_t i : order) {
    PlacedInterval& item = intervals[i];
    uint64_t at = 0;
    for (const uint32_t p : placed) {
      const PlacedInterval& other = intervals[p];
      if (other.last < item.first || item.last < other.first) continue;
      if (other.offset >= at + item.bytes) break;
      at = std::max(at, round_up(other.offset + other.bytes, alignment));
    }
    item.offset = at;
    height = std::max(height, at + item.bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](uint32_t a, uint32_t b) { return intervals[a].offset < intervals[b].offset; }),
                  i);
  }
  return round_up(height, alignment);
}

/** Places intervals in order of time by best fit from a list of free ranges. Used for many intervals, because it is faster
 * than place_by_size. */
inline uint64_t place_by_time(std::vector<PlacedInterval>& intervals, uint32_t alignment) {
  std::vector<uint32_t> order(intervals.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return intervals[a].first != intervals[b].first ? intervals[a].first < intervals[b].first : a < b;
  });
  std::map<uint64_t, uint64_t> free;          // offset -> bytes
  std::multimap<uint64_t, uint64_t> by_size;  // bytes -> offset
  std::multimap<int64_t, uint32_t> active;    // by the time of the last use
  uint64_t height = 0;
  const auto drop_size = [&](uint64_t offset, uint64_t bytes) {
    for (auto range = by_size.equal_range(bytes); range.first != range.second; ++range.first) {
      if (range.first->second != offset) continue;
      by_size.erase(range.first);
      return;
    }
  };
  const auto give_back = [&](uint64_t offset, uint64_t bytes) {
    auto next = free.lower_bound(offset);
    if (next != free.end() && next->first == offset + bytes) {
      bytes += next->second;
      drop_size(next->first, next->second);
      next = free.erase(next);
    }
    if (next != free.begin()) {
      auto previous = std::prev(next);
      if (previous->first + previous->second == offset) {
        offset = previous->first;
        bytes += previous->second;
        drop_size(previous->first, previous->second);
        free.erase(previous);
      }
    }
    free[offset] = bytes;
    by_size.emplace(bytes, offset);
  };
  for (const uint32_t i : order) {
    PlacedInterval& item = intervals[i];
    while (!active.empty() && active.begin()->first < item.first) {
      const PlacedInterval& done = intervals[active.begin()->second];
      give_back(done.offset, round_up(done.bytes, alignment));
      active.erase(active.begin());
    }
    const uint64_t want = round_up(item.bytes, alignment);
    auto fit = by_size.lower_bound(want);
    if (fit != by_size.end()) {
      const std::pair<uint64_t, uint64_t> range = *fit;  // bytes, offset
      by_size.erase(fit);
      free.erase(range.second);
      item.offset = range.second;
      if (range.first > want) give_back(range.second + want, range.first - want);
    } else {
      // Extends the last free range if it touches the end of the arena.
      item.offset = height;
      if (!free.empty() && free.rbegin()->first + free.rbegin()->second == height) {
        const std::pair<uint64_t, uint64_t> range = *free.rbegin();  // offset, bytes
        drop_size(range.first, range.second);
        free.erase(range.first);
        item.offset = range.first;
      }
      height = item.offset + want;
    }
    active.emplace(item.last, i);
  }
  return height;
}

constexpr size_t most_for_quadratic = 4000;

}  // namespace detail

/** Sets `offset` of each interval to a multiple of `alignment` so that intervals with overlapping times do not overlap in
 * memory, and returns the height of the arena. Intervals of no bytes get some offset. */
inline uint64_t place_intervals(std::vector<PlacedInterval>& intervals, uint32_t alignment) {
  const uint64_t swept = detail::place_by_time(intervals, alignment);
  if (intervals.size() > detail::most_for_quadratic) return swept;
  std::vector<PlacedInterval> other = intervals;
  const uint64_t sorted = detail::place_by_size(other, alignment);
  if (sorted > swept) return swept;
  intervals = std::move(other);
  return sorted;
}

/** A memory. Level 0 is the one on which nodes work. */
struct Level {
  std::string name;
  uint64_t bytes = UINT64_MAX; /**< its capacity */
  uint32_t alignment = 64;     /**< of each place, in bytes; at least 1 */
};

/** An array of a graph. */
struct Tensor {
  uint64_t bytes = 0;
  uint32_t input_level = UINT32_MAX; /**< the level in which it lies, outside of the plan, when the program begins */
  bool is_output = false;            /**< it is copied to a place outside of the plan at the end */
};

/** A step that works on tensors in level 0. */
struct Node {
  std::vector<uint32_t> reads = {}, writes = {};
  /** Pairs (written, read): the node may write the first one over the second one, which has the same size and is not read
   * afterwards. */
  std::vector<std::pair<uint32_t, uint32_t>> in_place = {};
};

/** The nodes in the order in which they run. A tensor is written by one node, before others read it, or is an input. */
struct Graph {
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
};

/** The time that a tensor has a place in a level: from node `first` to node `last` inclusive. */
struct Residence {
  uint32_t tensor = 0;
  uint32_t level = 0;
  int64_t first = 0, last = 0;
  uint64_t offset = 0;
};

/** A copy of a tensor that the plan needs. Copies start in the order of MemoryPlan::copies; one waits for those before it
 * whose places overlap its own. */
struct Copy {
  uint32_t tensor = 0;
  int64_t start = 0;                           /**< it may start when node `start - 1` has ended */
  int64_t end = 0;                             /**< it must have ended before node `end` starts */
  uint32_t from = UINT32_MAX, to = UINT32_MAX; /**< residences; UINT32_MAX: the place outside of the plan */
  bool is_load = false;                        /**< it goes to level 0; else it comes from there */
};

/** What a level is used for. */
struct LevelUse {
  uint64_t height = 0;    /**< bytes that the plan needs of it */
  uint64_t peak_live = 0; /**< the most bytes, each rounded up to the alignment, that have a place at a time */
  /** The part of the height that no order of places could save: 0 is a perfect packing. */
  double fragmentation() const {
    return height == 0 ? 0 : 1 - static_cast<double>(peak_live) / static_cast<double>(height);
  }
};

/** A plan. */
struct MemoryPlan {
  std::string complaint; /**< why there is none; empty if there is */
  std::vector<Residence> residences;
  std::vector<Copy> copies; /**< by `end`, those from level 0 first */
  std::vector<LevelUse> levels;
  uint64_t loaded_bytes = 0;  /**< bytes copied to level 0 */
  uint64_t spilled_bytes = 0; /**< bytes copied from level 0 because it was full; results are not counted */
  /** Returns the residence of a tensor in level 0 at node `node`; UINT32_MAX if it has none. */
  uint32_t at(uint32_t tensor, int64_t node) const {
    for (uint32_t i = 0; i < residences.size(); ++i) {
      const Residence& one = residences[i];
      if (one.tensor == tensor && one.level == 0 && one.first <= node && node <= one.last) return i;
    }
    return UINT32_MAX;
  }
};

/** How plan_memory works. */
struct Options {
  /** True: a copy to level 0 has a place one node earlier than needed, so that it runs beside that node (double buffering). */
  bool early_copies = false;
};

namespace detail {

/** Makes a plan for one capacity of level 0. An object is used once. */
class MemoryPlanner {
 public:
  MemoryPlanner(const Graph& graph, const std::vector<Level>& levels, const Options& options, uint64_t capacity)
      : graph_(graph),
        levels_(levels),
        options_(options),
        capacity_(capacity),
        here_(graph.tensors.size(), UINT32_MAX) {
    uses_.resize(graph.tensors.size());
    stored_.resize(graph.tensors.size(), UINT32_MAX);
    ready_.resize(graph.tensors.size(), 0);
    for (size_t t = 0; t < graph.tensors.size(); ++t) saved_.push_back(graph.tensors[t].input_level != UINT32_MAX);
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      for (const uint32_t t : graph.nodes[n].reads) uses_[t].push_back(static_cast<int64_t>(n));
      for (const uint32_t t : graph.nodes[n].writes) uses_[t].push_back(static_cast<int64_t>(n));
    }
  }

  MemoryPlan make() {
    for (now_ = 0; now_ < count(); ++now_) {
      const Node& node = graph_.nodes[static_cast<size_t>(now_)];
      std::set<uint32_t> needed(node.reads.begin(), node.reads.end());
      needed.insert(node.writes.begin(), node.writes.end());
      for (const uint32_t t : node.reads) {
        if (here_[t] == UINT32_MAX && !load(t, needed)) return std::move(plan_);
      }
      for (const uint32_t t : node.writes) {
        if (here_[t] != UINT32_MAX) continue;
        if (!begin_over(t, node) && !begin(t, now_, needed)) return std::move(plan_);
      }
      used_before_ = used_;
      for (const uint32_t t : needed) {
        if (here_[t] == UINT32_MAX) continue;
        plan_.residences[here_[t]].last = now_;
        if (next_use(t) == INT64_MAX) end(t);
      }
    }
    place();
    return std::move(plan_);
  }

 private:
  int64_t count() const { return static_cast<int64_t>(graph_.nodes.size()); }
  uint64_t size(uint32_t t, uint32_t level) const {
    return round_up(graph_.tensors[t].bytes, levels_[level].alignment);
  }
  /** Returns the first node after now that uses `t`. */
  int64_t next_use(uint32_t t) const {
    const auto next = std::upper_bound(uses_[t].begin(), uses_[t].end(), now_);
    return next == uses_[t].end() ? INT64_MAX : *next;
  }

  uint32_t add_residence(uint32_t t, uint32_t level, int64_t first) {
    plan_.residences.push_back({t, level, first, first, 0});
    slots_.push_back(static_cast<uint32_t>(slots_.size()));
    return static_cast<uint32_t>(plan_.residences.size() - 1);
  }

  /** Frees memory in level 0 for `t` from node `first` on. */
  bool begin(uint32_t t, int64_t first, const std::set<uint32_t>& needed) {
    const uint64_t bytes = size(t, 0);
    while (used_ + bytes > capacity_) {
      uint32_t victim = UINT32_MAX;
      int64_t farthest = -1;
      for (uint32_t other = 0; other < here_.size(); ++other) {
        if (here_[other] == UINT32_MAX || needed.count(other) != 0) continue;
        const int64_t next = next_use(other);
        if (next > farthest) farthest = next, victim = other;
      }
      if (victim == UINT32_MAX) {
        uint64_t all = 0;
        for (const uint32_t one : needed) all += size(one, 0);
        plan_.complaint = "node " + std::to_string(now_) + " needs " + std::to_string(all) + " bytes in " +
                          levels_[0].name + ", which has " + std::to_string(levels_[0].bytes);
        return false;
      }
      spill(victim);
      first = now_;  // another tensor had these bytes until the node before
    }
    // Earlier than now, the bytes must have been free, too.
    const bool early = first < now_ && used_before_ + bytes <= capacity_;
    here_[t] = add_residence(t, 0, early ? first : now_);
    if (early) used_before_ += bytes;
    used_ += bytes;
    return true;
  }

  /** Writes `t` over an operand that is not read any more. */
  bool begin_over(uint32_t t, const Node& node) {
    for (const auto& pair : node.in_place) {
      const uint32_t old = pair.second;
      if (pair.first != t || here_[old] == UINT32_MAX || next_use(old) != INT64_MAX) continue;
      if (graph_.tensors[old].is_output || graph_.tensors[old].bytes != graph_.tensors[t].bytes) continue;
      const uint32_t over = here_[old];
      plan_.residences[over].last = now_;
      here_[t] = add_residence(t, 0, now_);
      slots_[here_[t]] = slots_[over];
      here_[old] = UINT32_MAX;
      return true;
    }
    return false;
  }

  bool load(uint32_t t, const std::set<uint32_t>& needed) {
    if (!saved_[t]) {
      plan_.complaint = "node " + std::to_string(now_) + " reads tensor " + std::to_string(t) +
                        ", which is no input and has not been written";
      return false;
    }
    const int64_t earliest = stored_[t] == UINT32_MAX ? 0 : ready_[t];
    const int64_t first = options_.early_copies ? std::max<int64_t>({0, now_ - 1, earliest}) : now_;
    if (!begin(t, std::min(first, now_), needed)) return false;
    const int64_t start = plan_.residences[here_[t]].first;
    plan_.copies.push_back({t, start, now_, stored_[t], here_[t], true});
    plan_.loaded_bytes += graph_.tensors[t].bytes;
    if (stored_[t] != UINT32_MAX) plan_.residences[stored_[t]].last = now_;
    return true;
  }

  /** Takes the place in level 0 from `t`, which is read again later. */
  void spill(uint32_t t) {
    if (!saved_[t]) {
      // The copy ends before the node starts that gets these bytes.
      const int64_t start = plan_.residences[here_[t]].last + 1;
      stored_[t] = add_residence(t, 1, start);
      plan_.residences[stored_[t]].last = now_;
      plan_.copies.push_back({t, start, now_, here_[t], stored_[t], false});
      ready_[t] = now_;
      plan_.spilled_bytes += graph_.tensors[t].bytes;
      saved_[t] = true;
    }
    plan_.residences[here_[t]].last = std::max(plan_.residences[here_[t]].first, now_ - 1);
    used_ -= size(t, 0);
    here_[t] = UINT32_MAX;
  }

  /** Ends the life of `t`: nothing reads it any more. */
  void end(uint32_t t) {
    if (graph_.tensors[t].is_output) plan_.copies.push_back({t, now_ + 1, now_ + 1, here_[t], UINT32_MAX, false});
    used_ -= size(t, 0);
    here_[t] = UINT32_MAX;
  }

  /** Gives each residence a level and an offset. */
  void place() {
    // What was spilled goes to level 1 if all of it fits there; else each array to the first level where it fits.
    std::vector<std::vector<uint32_t>> by_level(levels_.size());
    for (uint32_t i = 0; i < plan_.residences.size(); ++i) {
      if (plan_.residences[i].level == 1) by_level[1].push_back(i);
    }
    const bool all_fit = place_level(by_level[1], 1) <= levels_[1].bytes;
    if (!all_fit) by_level[1].clear();
    for (uint32_t i = 0; i < plan_.residences.size(); ++i) {
      uint32_t level = plan_.residences[i].level;
      if (all_fit && level == 1) continue;
      for (; level != 0 && level < levels_.size(); ++level) {
        by_level[level].push_back(i);
        if (place_level(by_level[level], level) <= levels_[level].bytes) break;
        by_level[level].pop_back();
      }
      if (level == levels_.size()) {
        plan_.complaint = "no level has room for tensor " + std::to_string(plan_.residences[i].tensor) + ", " +
                          std::to_string(graph_.tensors[plan_.residences[i].tensor].bytes) + " bytes, which is spilled";
        return;
      }
      if (level == 0) by_level[0].push_back(i);
      plan_.residences[i].level = level;
    }
    plan_.levels.resize(levels_.size());
    for (uint32_t level = 0; level < levels_.size(); ++level) {
      plan_.levels[level].height = place_level(by_level[level], level);
      plan_.levels[level].peak_live = peak_;
    }
    // What leaves level 0 before a node goes first: it frees the bytes for what comes.
    std::vector<std::tuple<int64_t, bool, int64_t, size_t>> order;
    for (size_t i = 0; i < plan_.copies.size(); ++i) {
      const Copy& copy = plan_.copies[i];
      order.emplace_back(copy.end, copy.is_load, copy.start, i);
    }
    std::sort(order.begin(), order.end());
    std::vector<Copy> copies;
    for (const auto& entry : order) copies.push_back(plan_.copies[std::get<3>(entry)]);
    plan_.copies = std::move(copies);
  }

  /** Places residences in a level, those of one slot at one offset. Returns the height, and sets the peak. */
  uint64_t place_level(const std::vector<uint32_t>& which, uint32_t level) {
    std::map<uint32_t, PlacedInterval> slots;
    for (const uint32_t i : which) {
      const Residence& one = plan_.residences[i];
      const auto found =
          slots.emplace(slots_[i], PlacedInterval{one.first, one.last, graph_.tensors[one.tensor].bytes, 0});
      PlacedInterval& slot = found.first->second;
      slot.first = std::min(slot.first, one.first);
      slot.last = std::max(slot.last, one.last);
    }
    std::vector<PlacedInterval> intervals;
    for (const auto& slot : slots) intervals.push_back(slot.second);
    const uint64_t height = place_intervals(intervals, levels_[level].alignment);
    std::map<int64_t, uint64_t> changes;  // modulo 2^64
    size_t next = 0;
    for (auto& slot : slots) {
      slot.second = intervals[next++];
      const uint64_t bytes = round_up(slot.second.bytes, levels_[level].alignment);
      changes[slot.second.first] += bytes;
      changes[slot.second.last + 1] -= bytes;
    }
    uint64_t live = 0;
    peak_ = 0;
    for (const auto& change : changes) {
      live += change.second;
      peak_ = std::max(peak_, live);
    }
    for (const uint32_t i : which) plan_.residences[i].offset = slots.at(slots_[i]).offset;
    return height;
  }

  const Graph& graph_;
  const std::vector<Level>& levels_;
  Options options_;
  uint64_t capacity_, used_ = 0, used_before_ = 0, peak_ = 0;
  int64_t now_ = 0;
  std::vector<std::vector<int64_t>> uses_;
  std::vector<uint32_t> here_;    // residence in level 0 of each tensor
  std::vector<uint32_t> stored_;  // residence in a farther level
  std::vector<int64_t> ready_;    // the node before which the copy there has ended
  std::vector<bool> saved_;       // a farther level, or a place outside of the plan, has its data
  std::vector<uint32_t> slots_;   // for each residence: those of one slot share their memory
  MemoryPlan plan_;
};

/** Returns what is wrong with a graph; empty if nothing is. */
inline std::string graph_complaint(const Graph& graph, const std::vector<Level>& levels) {
  if (levels.size() < 2) return "a plan needs a level to work on and one to spill to";
  for (const Level& level : levels) {
    if (level.alignment == 0) return "level " + level.name + " has no alignment";
  }
  // Sums of sizes, each rounded up to an alignment, stay below 2^64.
  const uint64_t most = UINT64_MAX / 2 / (graph.tensors.size() + 1) - UINT32_MAX;
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    if (graph.tensors[t].bytes > most)
      return "tensor " + std::to_string(t) + " has more than " + std::to_string(most) + " bytes";
  }
  std::vector<char> written(graph.tensors.size(), 0);
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    const uint32_t level = graph.tensors[t].input_level;
    if (level == UINT32_MAX) continue;
    if (graph.tensors[t].is_output) return "tensor " + std::to_string(t) + " is an input and an output";
    if (level == 0 || level >= levels.size()) {
      return "tensor " + std::to_string(t) + " is an input in level " + std::to_string(level) +
             ", which is none of those beyond level 0";
    }
    written[t] = 1;
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const std::string who = "node " + std::to_string(n);
    const auto check = [&](uint32_t t) { return t < graph.tensors.size(); };
    for (const uint32_t t : graph.nodes[n].reads) {
      if (!check(t)) return who + " reads tensor " + std::to_string(t) + ", which does not exist";
      if (!written[t])
        return who + " reads tensor " + std::to_string(t) + ", which is no input and has not been written";
    }
    for (const uint32_t t : graph.nodes[n].writes) {
      if (!check(t)) return who + " writes tensor " + std::to_string(t) + ", which does not exist";
      if (written[t]) return who + " writes tensor " + std::to_string(t) + ", which has a value already";
      written[t] = 1;
    }
    for (const auto& pair : graph.nodes[n].in_place) {
      if (!check(pair.first) || !check(pair.second)) return who + " has a pair of tensors that do not exist";
      const auto has = [](const std::vector<uint32_t>& list, uint32_t t) {
        return std::find(list.begin(), list.end(), t) != list.end();
      };
      if (!has(graph.nodes[n].writes, pair.first) || !has(graph.nodes[n].reads, pair.second)) {
        return who + " has a pair of tensors " + std::to_string(pair.first) + " and " + std::to_string(pair.second) +
               ", of which it does not write the first and read the second";
      }
    }
  }
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    if (graph.tensors[t].is_output && !written[t])
      return "tensor " + std::to_string(t) + " is an output and is not written";
  }
  return {};
}

}  // namespace detail

/** Plans the memory of a graph: places in level 0 for what nodes read and write, copies from and to farther levels where
 * level 0 does not hold all (what is read last goes first), in-place results, and offsets.
 *
 * `levels` has at least two entries, the nearest one first. Two tensors that have a place in a level at the same node do not
 * overlap there, unless one is written over the other. The time is quadratic in the number of nodes at worst. */
inline MemoryPlan plan_memory(const Graph& graph, const std::vector<Level>& levels, const Options& options = {}) {
  MemoryPlan plan;
  plan.complaint = detail::graph_complaint(graph, levels);
  if (!plan.complaint.empty()) return plan;
  // Places leave gaps. If the height exceeds the capacity, less is kept at a time, in steps that grow until hardly any is
  // left.
  uint64_t capacity = levels[0].bytes, least = UINT64_MAX;
  for (int attempt = 0; attempt < 32; ++attempt) {
    plan = detail::MemoryPlanner(graph, levels, options, capacity).make();
    if (!plan.complaint.empty()) {
      if (attempt == 0) return plan;
      break;
    }
    const uint64_t height = plan.levels[0].height;
    if (height <= levels[0].bytes) return plan;
    least = std::min(least, height);
    const uint64_t step = levels[0].bytes / 512 * static_cast<uint64_t>(attempt);
    const uint64_t above = (height - levels[0].bytes) / 2;
    capacity -= std::min(capacity, std::max({above, step, static_cast<uint64_t>(levels[0].alignment)}));
  }
  plan = MemoryPlan();
  plan.complaint = "the places in " + levels[0].name + " leave gaps: " + std::to_string(least) +
                   " bytes are needed of " + std::to_string(levels[0].bytes);
  return plan;
}

}  // namespace memory
}  // namespace collet

#endif
