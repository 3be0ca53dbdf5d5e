// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include "sdk/codegen/compile/pipeline.h"

namespace collet::codegen {

Status Compiler::child(BlockId id, Drafts& drafts, std::vector<RangeId>& results) {
  COLLET_CODEGEN_TRY(block(id, drafts));
  for (ValueId v : graph_.blocks[id].results) results.push_back(range(v));
  return {};
}

Status Compiler::while_loop(const Node& n, Drafts& drafts) {
  const size_t count = n.operands.size();
  const Block& condition = graph_.blocks[n.blocks[0]];
  const Block& body = graph_.blocks[n.blocks[1]];
  LoopScope scope;
  std::vector<RangeId> state;
  scope.begin = ++time_;
  scope.before = &drafts;
  for (size_t i = 0; i < count; ++i) {
    if (body.results[i] == body.arguments[i]) {  // the body only reads it: no copy is needed
      scope.fixed.push_back(body.arguments[i]);
      state.push_back(read(n.operands[i]));
      continue;
    }
    RangeId s = buffers_.add(bytes_of(n.operands[i]), time_);
    state.push_back(s);
    copy_ranges(range(n.operands[i]), s, bytes_of(n.operands[i]), drafts);
  }
  Draft d;
  d.step.kind = StepKind::kWhile;
  d.children.resize(2);
  for (size_t i = 0; i < count; ++i) range_[condition.arguments[i]] = range_[body.arguments[i]] = state[i];
  const int64_t trips = attributes<collet_while_attrs>(graph_, n).trip_count_plus_one - 1;
  const bool is_counted = pipeline_.counts_on_host && trips >= 0;
  std::vector<RangeId> go_on;
  if (is_counted) {
    d.step.trips = trips;
  } else {
    COLLET_CODEGEN_TRY(child(n.blocks[0], d.children[0], go_on));
    ++time_;
    buffers_.use(go_on[0], time_);
    d.ranges = go_on;
  }
  std::vector<RangeId> next;
  LoopScope* around = std::exchange(scope_, &scope);
  const Status compiled = child(n.blocks[1], d.children[1], next);
  scope_ = around;
  COLLET_CODEGEN_TRY(compiled);
  save_permuted(state, next, n.operands, d.children[1]);
  std::vector<RangeId> after = state;
  ++time_;
  for (size_t i = 0; i < count; ++i) {
    if (next[i] == state[i]) continue;
    ++time_;
    after[i] = buffers_.add_in(state[i], time_);
    copy_ranges(next[i], after[i], bytes_of(n.operands[i]), d.children[1]);
  }
  ++time_;
  for (size_t i = 0; i < count; ++i) {
    buffers_.use(after[i], time_);
    range_[n.results[i]] = after[i];
    // A variable that the body leaves unchanged must stay live until the loop ends.
    if (after[i] == state[i]) buffers_.use(state[i], time_);
  }
  for (RangeId w : scope.kept) buffers_.use(w, time_);
  for (RangeId w : go_on) buffers_.use(w, time_);
  drafts.push_back(std::move(d));
  return {};
}

void Compiler::save_permuted(const std::vector<RangeId>& state, std::vector<RangeId>& next,
                             const std::vector<ValueId>& values, Drafts& drafts) {
  ++time_;
  for (size_t i = 0; i < next.size(); ++i) {
    bool other = next[i] != state[i] && std::find(state.begin(), state.end(), next[i]) != state.end();
    if (!other) continue;
    RangeId saved = buffers_.add(bytes_of(values[i]), time_);
    Draft d;
    d.step.kind = StepKind::kCopy;
    d.step.bytes = bytes_of(values[i]);
    d.ranges = {next[i], saved};
    buffers_.use(next[i], time_);
    drafts.push_back(std::move(d));
    next[i] = saved;
  }
}

Status Compiler::conditional(const Node& n, Drafts& drafts) {
  /// Times at which a branch begins, and at which it uses a value for the last time.
  struct BranchTimes {
    int begin;
    int last;
  };
  Draft d;
  d.step.kind = StepKind::kConditional;
  const auto& selector = graph_.type(n.operands[0]);
  d.step.index_bytes = selector.element == COLLET_TYPE_PRED ? 0 : 4;
  ++time_;
  RangeId choice = read(n.operands[0]);
  std::vector<RangeId> ranges;
  size_t operand = 1;
  std::map<RangeId, std::vector<BranchTimes>> lives;
  for (size_t i = 1; i < n.operands.size(); ++i) lives[range(n.operands[i])];
  for (size_t k = 0; k < n.blocks.size(); ++k) {
    const Block& b = graph_.blocks[n.blocks[k]];
    for (ValueId v : b.arguments) range_[v] = range(n.operands[operand++]);
    const int begin = ++time_;
    Drafts branch;
    std::vector<RangeId> results;
    COLLET_CODEGEN_TRY(child(n.blocks[k], branch, results));
    std::vector<RangeId> written;
    for (size_t i = 0; i < results.size(); ++i) {
      ++time_;
      RangeId to = k == 0 ? buffers_.add(bytes_of(n.results[i]), time_) : buffers_.add_in(ranges[i], time_);
      if (k == 0) ranges.push_back(to);
      written.push_back(to);
      copy_ranges(results[i], to, bytes_of(n.results[i]), branch);
    }
    for (RangeId w : written) buffers_.use(w, time_);
    d.children.push_back(std::move(branch));
    for (auto& [w, used] : lives) {
      if (buffers_.last_use(w) >= begin) used.push_back({begin, buffers_.last_use(w)});
    }
  }
  ++time_;
  for (const auto& [w, used] : lives) {
    for (size_t k = 1; k < used.size(); ++k) buffers_.add_gap(w, used[k - 1].last, used[k].begin, time_);
  }
  for (size_t i = 0; i < n.results.size(); ++i) range_[n.results[i]] = buffers_.add_in(ranges[i], time_);
  d.ranges = {choice};
  drafts.push_back(std::move(d));
  return {};
}

void Compiler::finish_entry(Drafts& drafts) {
  const Block& entry = graph_.blocks[0];
  std::vector<RangeId> results;
  std::vector<RangeId> sources;
  for (ValueId v : entry.results) sources.push_back(range(v));
  // An argument that is returned in the memory of another argument is copied first, because that memory may be
  // overwritten.
  ++time_;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!buffers_.is_argument(sources[i]) || program_->aliases.count == 0) continue;
    RangeId saved = buffers_.add(bytes_of(entry.results[i]), time_);
    Draft d;
    d.step.kind = StepKind::kCopy;
    d.step.bytes = bytes_of(entry.results[i]);
    d.ranges = {sources[i], saved};
    buffers_.use(sources[i], time_);
    drafts.push_back(std::move(d));
    sources[i] = saved;
  }
  for (uint32_t i = 0; i < entry.results.size(); ++i) {
    plan_->result_bytes.push_back(bytes_of(entry.results[i]));
    ++time_;
    results.push_back(buffers_.add(bytes_of(entry.results[i]), time_, BufferPlanner::Kind::kResult, i));
    copy_ranges(sources[i], results[i], bytes_of(entry.results[i]), drafts);
  }
  for (uint32_t i = 0; i < program_->aliases.count; ++i) {
    const collet_alias* a = collet_alias_at(program_, i);
    buffers_.may_alias(results[a->result], range_[entry.arguments[a->argument]]);
  }
  ++time_;
  for (RangeId r : results) buffers_.use(r, time_);
}

}  // namespace collet::codegen
