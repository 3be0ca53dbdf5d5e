// SPDX-License-Identifier: Apache-2.0
#include <collet/memory_planner.hpp>

#include <gtest/gtest.h>

#include <array>
#include <iostream>
#include <random>
#include <set>

namespace collet::memory {
namespace {

TEST(MemoryPlanner, IntervalsOfOneTimeDoNotOverlap) {
  for (size_t count : {10u, 300u, 5000u}) {  // 5000 intervals are placed by place_by_time
    std::vector<PlacedInterval> intervals;
    uint64_t state = count;
    const auto draw = [&](uint64_t n) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      return (state >> 33) % n;
    };
    for (size_t i = 0; i < count; ++i) {
      const auto first = static_cast<int64_t>(draw(count));
      intervals.push_back({first, first + static_cast<int64_t>(draw(20)), 1 + draw(5000), 0});
    }
    const uint64_t height = place_intervals(intervals, 64);
    std::sort(intervals.begin(), intervals.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(intervals[i].offset % 64, 0u);
      EXPECT_LE(intervals[i].offset + intervals[i].bytes, height);
      for (size_t k = i + 1; k < count && intervals[k].first <= intervals[i].last; ++k)
        EXPECT_TRUE(intervals[i].offset + intervals[i].bytes <= intervals[k].offset ||
                    intervals[k].offset + intervals[k].bytes <= intervals[i].offset);
    }
  }
}

/// Runs a plan on memories whose bytes are numbers of tensors, and expects that each node finds what it reads. Copies run as
/// soon as they may, or as late as they may.
class Simulation {
 public:
  Simulation(const Graph& graph, const std::vector<Level>& levels, const MemoryPlan& plan)
      : graph_(graph), levels_(levels), plan_(plan), outputs_(graph.tensors.size(), 0) {
    for (const LevelUse& use : plan.levels) memories_.emplace_back(use.height, UINT32_MAX);
  }

  void run(bool early) {
    size_t next = 0;
    for (int64_t n = 0; n <= static_cast<int64_t>(graph_.nodes.size()); ++n) {
      while (next < plan_.copies.size() && (plan_.copies[next].end <= n || (early && plan_.copies[next].start <= n))) {
        const Copy& copy = plan_.copies[next++];
        ASSERT_GE(copy.end, n) << "a copy comes too late";
        ASSERT_LE(copy.start, copy.end);
        ASSERT_NO_FATAL_FAILURE(move(copy));
      }
      if (n == static_cast<int64_t>(graph_.nodes.size())) break;
      const Node& node = graph_.nodes[static_cast<size_t>(n)];
      for (const uint32_t t : node.reads) ASSERT_NO_FATAL_FAILURE(expect(place(t, n), t)) << "read by node " << n;
      for (const uint32_t t : node.writes) fill(place(t, n), t);
      for (const uint32_t t : node.writes) ASSERT_NO_FATAL_FAILURE(expect(place(t, n), t)) << "written by node " << n;
      for (const uint32_t t : node.reads) {
        const bool over = std::any_of(node.in_place.begin(), node.in_place.end(), [&](const auto& pair) {
          return pair.second == t && place(pair.first, n).offset == place(t, n).offset;
        });
        if (over) continue;
        ASSERT_NO_FATAL_FAILURE(expect(place(t, n), t)) << "overwritten by node " << n;
      }
    }
    EXPECT_EQ(next, plan_.copies.size());
    for (size_t t = 0; t < outputs_.size(); ++t) EXPECT_EQ(outputs_[t], graph_.tensors[t].is_output ? 1 : 0);
  }

 private:
  const Residence& place(uint32_t tensor, int64_t n) const {
    const uint32_t i = plan_.at(tensor, n);
    EXPECT_NE(i, UINT32_MAX) << "tensor " << tensor << " has no place at node " << n;
    return plan_.residences[i == UINT32_MAX ? 0 : i];
  }
  void fill(const Residence& to, uint32_t tensor) {
    auto& memory = memories_[to.level];
    std::fill_n(memory.begin() + static_cast<std::ptrdiff_t>(to.offset), graph_.tensors[tensor].bytes, tensor);
  }
  void expect(const Residence& at, uint32_t tensor) const {
    ASSERT_EQ(at.offset % levels_[at.level].alignment, 0u);
    const auto& memory = memories_[at.level];
    ASSERT_LE(at.offset + graph_.tensors[tensor].bytes, memory.size());
    for (uint64_t i = 0; i < graph_.tensors[tensor].bytes; ++i) ASSERT_EQ(memory[at.offset + i], tensor);
  }
  void move(const Copy& copy) {
    if (copy.from == UINT32_MAX) {
      ASSERT_NE(graph_.tensors[copy.tensor].input_level, UINT32_MAX);
    } else {
      ASSERT_NO_FATAL_FAILURE(expect(plan_.residences[copy.from], copy.tensor)) << "copied before node " << copy.end;
    }
    if (copy.to == UINT32_MAX) {
      ++outputs_[copy.tensor];
    } else {
      fill(plan_.residences[copy.to], copy.tensor);
    }
  }

  const Graph& graph_;
  const std::vector<Level>& levels_;
  const MemoryPlan& plan_;
  std::vector<std::vector<uint32_t>> memories_;
  std::vector<int> outputs_;
};

Graph drawn(std::mt19937_64& random, uint64_t most_bytes) {
  const auto below = [&](uint64_t n) { return random() % n; };
  Graph graph;
  const uint64_t inputs = 1 + below(4), nodes = 2 + below(40);
  for (uint64_t i = 0; i < inputs; ++i)
    graph.tensors.push_back({1 + below(most_bytes), 1 + static_cast<uint32_t>(below(2)), false});
  for (uint64_t n = 0; n < nodes; ++n) {
    Node node;
    for (uint64_t i = 0; i < 1 + below(3); ++i)
      node.reads.push_back(static_cast<uint32_t>(below(graph.tensors.size())));
    for (uint64_t i = 0; i < 1 + below(2); ++i) {
      const auto t = static_cast<uint32_t>(graph.tensors.size());
      uint64_t bytes = 1 + below(most_bytes);
      if (below(2) == 0) {
        bytes = graph.tensors[node.reads[0]].bytes;
        node.in_place.emplace_back(t, node.reads[0]);
      }
      graph.tensors.push_back({bytes, UINT32_MAX, below(6) == 0});
      node.writes.push_back(t);
    }
    graph.nodes.push_back(node);
  }
  return graph;
}

TEST(MemoryPlanner, DrawnGraphs_KeepWhatIsRead) {
  int planned = 0, spilled = 0, farther = 0, refused = 0;
  double worst = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const Graph graph = drawn(random, 1000);
    std::vector<Level> levels = {{"near", 3000 + random() % 12000, 64}, {"middle", random() % 6000, 16}, {"far"}};
    Options options;
    options.early_copies = random() % 2 == 0;
    const MemoryPlan plan = plan_memory(graph, levels, options);
    if (!plan.complaint.empty()) {
      ++refused;
      EXPECT_TRUE(plan.complaint.find("bytes in near") != std::string::npos ||
                  plan.complaint.find("leave gaps") != std::string::npos)
          << plan.complaint;
      continue;
    }
    for (size_t level = 0; level < levels.size(); ++level) {
      EXPECT_LE(plan.levels[level].height, levels[level].bytes);
      EXPECT_LE(plan.levels[level].peak_live, plan.levels[level].height);
    }
    for (const bool early : {false, true}) Simulation(graph, levels, plan).run(early);
    if (HasFailure()) return;
    ++planned;
    spilled += plan.spilled_bytes != 0;
    farther += plan.levels[2].height != 0;
    worst = std::max(worst, plan.levels[0].fragmentation());
  }
  std::cout << planned << " graphs planned, " << spilled << " with spills, " << farther
            << " of them to the third level; " << refused << " do not fit; fragmentation at most " << worst << "\n";
  EXPECT_GT(planned, 400);
  EXPECT_GT(spilled, 50);
  EXPECT_GT(farther, 10);
}

// Places of all alignments leave gaps. Where the largest node needs half of the memory, there is a plan.
TEST(MemoryPlanner, Gaps_LeaveNoGraphOut) {
  int spilled = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const Graph graph = drawn(random, 1000);
    const uint32_t alignment = std::array{1u, 3u, 16u}[random() % 3];
    uint64_t most = 0;
    for (const Node& node : graph.nodes) {
      std::set<uint32_t> needed(node.reads.begin(), node.reads.end());
      needed.insert(node.writes.begin(), node.writes.end());
      uint64_t bytes = 0;
      for (const uint32_t t : needed) bytes += (graph.tensors[t].bytes + alignment - 1) / alignment * alignment;
      most = std::max(most, bytes);
    }
    const std::vector<Level> levels = {{"near", 2 * most, alignment}, {"middle", 3000, 16}, {"far"}};
    const MemoryPlan plan = plan_memory(graph, levels);
    ASSERT_EQ(plan.complaint, "");
    Simulation(graph, levels, plan).run(false);
    spilled += plan.spilled_bytes != 0;
  }
  EXPECT_GT(spilled, 300);
}

TEST(MemoryPlanner, Chain_IsComputedInOnePlace) {
  Graph graph;
  graph.tensors = {{1000, 1, false}, {1000}, {1000}, {1000, UINT32_MAX, true}};
  graph.nodes = {{{0}, {1}, {{1, 0}}}, {{1}, {2}, {{2, 1}}}, {{2}, {3}, {{3, 2}}}};
  const MemoryPlan plan = plan_memory(graph, {{"scratchpad", 1024}, {"memory"}});
  ASSERT_EQ(plan.complaint, "");
  EXPECT_EQ(plan.levels[0].height, 1024u);
  EXPECT_EQ(plan.loaded_bytes, 1000u);
  EXPECT_EQ(plan.spilled_bytes, 0u);
  EXPECT_EQ(plan.levels[0].fragmentation(), 0);
}

TEST(MemoryPlanner, EarlyCopies_OverlapTheNodeBefore) {
  Graph graph;  // each node reads a weight of its own
  graph.tensors = {{64, 1, false}, {64, 1, false}, {64}, {64, UINT32_MAX, true}};
  graph.nodes = {{{0}, {2}}, {{1, 2}, {3}}};
  Options options;
  options.early_copies = true;
  const auto start = [&](uint64_t bytes) {
    const MemoryPlan plan = plan_memory(graph, {{"scratchpad", bytes}, {"memory"}}, options);
    EXPECT_EQ(plan.complaint, "");
    for (const Copy& copy : plan.copies) {
      if (copy.tensor == 1) return copy.start;
    }
    return int64_t{-1};
  };
  EXPECT_EQ(start(1024), 0);  // beside node 0
  EXPECT_EQ(start(192), 0);   // three arrays while node 0 runs
}

TEST(MemoryPlanner, BadGraphs_AreNamed) {
  const std::vector<Level> levels = {{"scratchpad", 128}, {"memory"}};
  const auto complaint = [&](const Graph& graph) { return plan_memory(graph, levels).complaint; };
  EXPECT_EQ(complaint({{{64}}, {{{0}, {}}}}), "node 0 reads tensor 0, which is no input and has not been written");
  EXPECT_EQ(complaint({{{64, 1}}, {{{1}, {}}}}), "node 0 reads tensor 1, which does not exist");
  EXPECT_EQ(complaint({{{64, 1}}, {{{}, {0}}}}), "node 0 writes tensor 0, which has a value already");
  EXPECT_EQ(complaint({{{64, 1}, {65}}, {{{0}, {1}}}}), "node 0 needs 192 bytes in scratchpad, which has 128");
  EXPECT_EQ(complaint({{{64, 2}}, {}}), "tensor 0 is an input in level 2, which is none of those beyond level 0");
  EXPECT_EQ(complaint({{{64, 1, true}}, {}}), "tensor 0 is an input and an output");
  EXPECT_EQ(complaint({{{64, UINT32_MAX, true}}, {}}), "tensor 0 is an output and is not written");
  EXPECT_EQ(complaint({{{64}, {64}}, {{{}, {0, 1}, {{1, 0}}}}}),
            "node 0 has a pair of tensors 1 and 0, of which it does not write the first and read the second");
  // Sizes whose sums, or which rounded up, are 2^64.
  EXPECT_EQ(complaint({{{UINT64_MAX - 3}}, {{{}, {0}}}}), "tensor 0 has more than 4611686014132420608 bytes");
  EXPECT_EQ(
      plan_memory({{{uint64_t{1} << 63}, {uint64_t{1} << 63}}, {{{}, {0, 1}}}}, {{"scratchpad"}, {"memory"}}).complaint,
      "tensor 0 has more than 3074457341323291307 bytes");
  EXPECT_EQ(plan_memory({}, {{"scratchpad"}}).complaint, "a plan needs a level to work on and one to spill to");
  EXPECT_EQ(plan_memory({{{64, 1}, {64, 1}, {64}, {64}, {64, UINT32_MAX, true}},
                         {{{0}, {2}}, {{1}, {3}}, {{2, 3}, {}}, {{3}, {4}}}},
                        {{"scratchpad", 128}, {"memory", 0}})
                .complaint,
            "no level has room for tensor 2, 64 bytes, which is spilled");
}

}  // namespace
}  // namespace collet::memory
