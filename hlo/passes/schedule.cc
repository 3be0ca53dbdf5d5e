// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <queue>
#include <set>
#include <unordered_map>

#include "hlo/passes/passes.h"
#include "hlo/passes/plan_buffers.h"
#include "hlo/passes/rewriter.h"
#include "hlo/program/leaves.h"

// Tries three orders for each computation and takes the one with the lowest peak of memory: the original order, a
// greedy order that always runs the instruction that frees most, and a depth-first order from the root that visits the
// operand with the larger memory need first. None of them is the best for all programs, and all are fast. In the end
// plan_buffers decides between the new and the old order of the module, because its result is exact and the peak here
// is an estimate.

namespace collet::hlo {
namespace {

/// A computation as a graph of integers: dependences between instructions, and the memory that each allocates.
struct Graph {
  std::vector<InstrId> ids;                    // by position in the old order
  std::vector<std::vector<uint32_t>> before;   // instructions that must run before
  std::vector<std::vector<uint32_t>> after;    // the reverse of the line above
  std::vector<std::vector<uint32_t>> reads;    // instructions whose memory it reads; a tuple counts as its elements
  std::vector<std::vector<uint32_t>> readers;  // the reverse of the line above
  std::vector<int64_t> bytes;                  // bytes allocated when it runs
  std::vector<std::vector<uint32_t>> reused;   // operands that it may overwrite if they are not used afterwards
  std::vector<bool> kept;                      // live from the beginning or to the end: never freed
};

void link(Graph& g, uint32_t first, uint32_t then) {
  if (first == then) return;
  g.before[then].push_back(first);
  g.after[first].push_back(then);
}

int64_t allocated(const Instruction& instr) {
  if (instr.op == Op::PARAMETER || instr.op == Op::CONSTANT || is_transparent(instr)) return 0;
  return instr.shape.byte_size();
}

bool works_in_place(Op op) {
  return (is_elementwise(op) && op != Op::MAP) || op == Op::DYNAMIC_UPDATE_SLICE || op == Op::WHILE;
}

Graph make_graph(const Module& module, CompId computation, const std::vector<bool>& effects) {
  Graph g;
  g.ids = module[computation].order;
  const size_t n = g.ids.size();
  g.before.resize(n);
  g.after.resize(n);
  g.reads.resize(n);
  g.readers.resize(n);
  g.bytes.resize(n);
  g.reused.resize(n);
  g.kept.resize(n);
  std::unordered_map<uint32_t, uint32_t> place;
  for (uint32_t i = 0; i < n; ++i) place[index_of(g.ids[i])] = i;  // a control predecessor may come later in the order
  uint32_t last_effect = UINT32_MAX;
  for (uint32_t i = 0; i < n; ++i) {
    const Instruction& instr = module[g.ids[i]];
    for (InstrId o : instr.operands) link(g, place.at(index_of(o)), i);
    if (instr.extras)
      for (InstrId p : instr.extras->control_predecessors) link(g, place.at(index_of(p)), i);
    if (has_effect(module, instr, effects)) {
      if (last_effect != UINT32_MAX) link(g, last_effect, i);
      last_effect = i;
    }
    g.bytes[i] = allocated(instr);
    if (!is_transparent(instr)) {
      for (const Leaf& leaf : operand_leaves(module, instr)) g.reads[i].push_back(place.at(index_of(leaf.instr)));
      std::sort(g.reads[i].begin(), g.reads[i].end());
      g.reads[i].erase(std::unique(g.reads[i].begin(), g.reads[i].end()), g.reads[i].end());
      for (uint32_t r : g.reads[i]) {
        g.readers[r].push_back(i);
        if (works_in_place(instr.op) && g.bytes[r] == g.bytes[i]) g.reused[i].push_back(r);
      }
    }
  }
  for (const Leaf& leaf : leaves_of(module, module[computation].root)) {
    const uint32_t i = place.at(index_of(leaf.instr));
    g.kept[i] = true;
    if (computation == module.entry() && module[leaf.instr].called.empty()) g.bytes[i] = 0;  // the caller's memory
  }
  return g;
}

int64_t peak(const Graph& g, const std::vector<uint32_t>& order) {
  std::vector<size_t> waiting(g.ids.size());
  for (size_t i = 0; i < waiting.size(); ++i) waiting[i] = g.readers[i].size();
  int64_t now = 0, most = 0;
  for (uint32_t i : order) {
    uint32_t handed_on = UINT32_MAX;  // the operand whose memory is reused
    for (uint32_t r : g.reused[i])
      if (waiting[r] == 1 && !g.kept[r] && g.bytes[r] > 0) handed_on = r;
    if (handed_on == UINT32_MAX) now += g.bytes[i];
    most = std::max(most, now);
    if (waiting[i] == 0 && !g.kept[i]) now -= g.bytes[i];
    for (uint32_t r : g.reads[i])
      if (--waiting[r] == 0 && !g.kept[r] && r != handed_on) now -= g.bytes[r];
  }
  return most;
}

std::vector<uint32_t> greedy(const Graph& g) {
  const size_t n = g.ids.size();
  std::vector<size_t> missing(n), waiting(n);
  for (size_t i = 0; i < n; ++i) {
    missing[i] = g.before[i].size();
    waiting[i] = g.readers[i].size();
  }
  // The bytes by which memory use grows when instruction i runs.
  const auto growth = [&](uint32_t i) {
    int64_t sum = g.bytes[i];
    for (uint32_t r : g.reads[i])
      if (waiting[r] == 1 && !g.kept[r]) sum -= g.bytes[r];
    return sum;
  };
  std::set<std::pair<int64_t, uint32_t>> ready;
  std::vector<int64_t> key(n);
  std::vector<bool> is_ready(n);
  const auto put = [&](uint32_t i) {
    key[i] = growth(i);
    is_ready[i] = true;
    ready.emplace(key[i], i);
  };
  for (uint32_t i = 0; i < n; ++i)
    if (missing[i] == 0) put(i);
  std::vector<uint32_t> out;
  out.reserve(n);
  while (!ready.empty()) {
    const uint32_t i = ready.begin()->second;
    ready.erase(ready.begin());
    is_ready[i] = false;
    out.push_back(i);
    for (uint32_t r : g.reads[i])
      if (--waiting[r] == 1)
        for (uint32_t reader : g.readers[r])
          if (is_ready[reader]) {
            ready.erase({key[reader], reader});
            put(reader);
          }
    for (uint32_t a : g.after[i])
      if (--missing[a] == 0) put(a);
  }
  return out;
}

std::vector<uint32_t> depth_first(const Graph& g) {
  const size_t n = g.ids.size();
  std::vector<uint32_t> out;
  std::vector<uint8_t> state(n);
  struct Frame {
    uint32_t i;
    std::vector<uint32_t> before;
    size_t next = 0;
  };
  const auto frame = [&](uint32_t i) {
    std::vector<uint32_t> before = g.before[i];
    std::stable_sort(before.begin(), before.end(), [&](uint32_t a, uint32_t b) { return g.bytes[a] > g.bytes[b]; });
    return Frame{i, std::move(before)};
  };
  std::vector<Frame> stack;
  const auto visit = [&](uint32_t start) {
    if (state[start]) return;
    state[start] = 1;
    stack.push_back(frame(start));
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.next == top.before.size()) {
        out.push_back(top.i);
        stack.pop_back();
        continue;
      }
      const uint32_t next = top.before[top.next++];
      if (state[next]) continue;
      state[next] = 1;
      stack.push_back(frame(next));
    }
  };
  for (uint32_t i = 0; i < n; ++i)
    if (g.after[i].empty()) visit(i);
  return out;
}

}  // namespace

Expected<bool> schedule(Module& module, PassContext&) {
  const std::vector<bool> effects = computations_with_effects(module);
  const auto bytes_now = [&] {
    const auto plan = plan_buffers(module);
    return plan.ok() ? plan->bytes : 0;
  };
  const uint64_t before = bytes_now();
  std::vector<std::pair<CompId, std::vector<InstrId>>> old;
  for (CompId computation : flow_computations(module)) {
    const Graph g = make_graph(module, computation, effects);
    std::vector<uint32_t> best(g.ids.size());
    for (uint32_t i = 0; i < best.size(); ++i) best[i] = i;
    int64_t least = peak(g, best);
    bool better = false;
    for (auto make : {&greedy, &depth_first}) {
      std::vector<uint32_t> order = make(g);
      const int64_t bytes = peak(g, order);
      if (order.size() != best.size() || bytes >= least) continue;
      least = bytes;
      best = std::move(order);
      better = true;
    }
    if (!better) continue;
    old.emplace_back(computation, module[computation].order);
    for (size_t i = 0; i < best.size(); ++i) module[computation].order[i] = g.ids[best[i]];
  }
  if (!old.empty() && bytes_now() > before) {
    for (auto& [computation, order] : old) module[computation].order = std::move(order);
    return false;
  }
  return !old.empty();
}

}  // namespace collet::hlo
