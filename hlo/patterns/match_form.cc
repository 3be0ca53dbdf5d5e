// SPDX-License-Identifier: Apache-2.0
#include "hlo/patterns/match_form.h"

#include <collet/program.h>

#include <algorithm>
#include <utility>

#include "hlo/ops/rules.h"

namespace collet::hlo::patterns {
namespace {

// Commutative ops double the alternatives, so that the steps are limited.
constexpr int kMostSteps = 100000;

bool same_attributes(const Module& a, const Instruction& x, const Module& b, const Instruction& y) {
  if (x.op == Op::CONSTANT) return a.literal(x) == b.literal(y);
  return equal_records(op_info(x.op).record, x.attrs, y.attrs);
}

bool same_body(const Module& a, CompId x, const Module& b, CompId y);

bool same_calls(const Module& a, const Instruction& x, const Module& b, const Instruction& y) {
  if (x.called.size() != y.called.size()) return false;
  for (size_t i = 0; i < x.called.size(); ++i)
    if (!same_body(a, x.called[i], b, y.called[i])) return false;
  return true;
}

// True if two computations are the same op by op, in the order of their definitions from the root.
bool same_body(const Module& a, CompId x, const Module& b, CompId y) {
  const uint32_t combine = combine_kind(a, x);
  if (combine != COLLET_COMBINE_OTHER) return combine == combine_kind(b, y);
  if (a[x].order.size() != b[y].order.size() || a[x].parameters.size() != b[y].parameters.size()) return false;
  std::vector<std::pair<InstrId, InstrId>> open{{a[x].root, b[y].root}}, done;
  while (!open.empty()) {
    const auto [i, j] = open.back();
    open.pop_back();
    if (std::find(done.begin(), done.end(), std::pair(i, j)) != done.end()) continue;
    done.emplace_back(i, j);
    const Instruction &one = a[i], &other = b[j];
    if (one.op != other.op || one.shape != other.shape || one.operands.size() != other.operands.size() ||
        !same_attributes(a, one, b, other) || !same_calls(a, one, b, other))
      return false;
    for (size_t k = 0; k < one.operands.size(); ++k) open.emplace_back(one.operands[k], other.operands[k]);
  }
  return true;
}

class FormMatch {
 public:
  FormMatch(const Graph& graph, const Module& form, Agreement agreement,
            const std::function<bool(const std::vector<InstrId>& match)>& accept, NearestMiss* miss)
      : graph_(graph), form_(form), agreement_(agreement), accept_(accept), miss_(miss), results_(results_of(form)) {}

  bool run(InstrId root) {
    State state;
    state.match.assign(form_.instruction_limit(), InstrId::None);
    state.open.emplace_back(results_[0], root);
    return solve(std::move(state));
  }

 private:
  struct State {
    std::vector<InstrId> match;
    std::vector<std::pair<InstrId, InstrId>> open;  // of the form, and of the program
    size_t matched = 0;
  };

  // Matches what is open, and then the results that nothing has reached yet.
  bool solve(State state) {
    while (!state.open.empty()) {
      if (++steps_ > kMostSteps) return false;
      const auto [f, p] = state.open.back();
      state.open.pop_back();
      InstrId& known = state.match[index_of(f)];
      if (known != InstrId::None) {
        if (known != p) return fails(state, f, p, "is another value than where it was matched before");
        continue;
      }
      const Instruction &form = form_[f], &instr = graph_[p];
      if (const char* why = differs(form, instr)) return fails(state, f, p, why);
      known = p;
      ++state.matched;
      if (form.op == Op::PARAMETER) continue;
      for (size_t i = 0; i < form.operands.size(); ++i) state.open.emplace_back(form.operand(i), instr.operand(i));
      if (form.operands.size() == 2 && op_info(form.op).has(COLLET_OP_COMMUTES) && form.operand(0) != form.operand(1)) {
        State swapped = state;
        const size_t last = swapped.open.size() - 1;
        std::swap(swapped.open[last].second, swapped.open[last - 1].second);
        return solve(std::move(state)) || solve(std::move(swapped));
      }
    }
    for (const InstrId result : results_)
      if (state.match[index_of(result)] == InstrId::None) return solve_result(state, result);
    return accept_(state.match);
  }

  // Finds a result by the users of a value that it shares with what is matched.
  bool solve_result(const State& state, InstrId result) {
    std::vector<InstrId> path;
    std::vector<bool> visited(state.match.size());
    if (!path_to_matched(state, result, visited, path)) return false;
    std::vector<InstrId> candidates{state.match[index_of(path.back())]};
    for (size_t i = path.size() - 1; i-- > 0;) {
      std::vector<InstrId> users;
      for (const InstrId at : candidates)
        for (const InstrId user : graph_.users(at))
          if (graph_[user].op == form_[path[i]].op && std::find(users.begin(), users.end(), user) == users.end())
            users.push_back(user);
      candidates = std::move(users);
    }
    for (const InstrId candidate : candidates) {
      State next = state;
      next.open.emplace_back(result, candidate);
      if (solve(std::move(next))) return true;
      if (steps_ > kMostSteps) return false;
    }
    return false;
  }

  // Finds a way from a value of the form to one that is matched, through operands. From `visited` values there is none.
  bool path_to_matched(const State& state, InstrId from, std::vector<bool>& visited, std::vector<InstrId>& path) const {
    if (visited[index_of(from)]) return false;
    visited[index_of(from)] = true;
    path.push_back(from);
    if (state.match[index_of(from)] != InstrId::None) return true;
    for (const InstrId operand : form_[from].operands) {
      if (path_to_matched(state, operand, visited, path)) return true;
    }
    path.pop_back();
    return false;
  }

  const char* differs(const Instruction& form, const Instruction& instr) const {
    const bool exact = agreement_ == Agreement::Exact;
    const bool same_shape = exact ? form.shape == instr.shape
                                  : form.shape.is_array() && instr.shape.is_array() &&
                                        form.shape.type() == instr.shape.type() &&
                                        form.shape.rank() == instr.shape.rank();
    if (form.op == Op::PARAMETER) return same_shape ? nullptr : "has another type or rank";
    if (form.op != instr.op) return "is another op";
    if (!same_shape) return exact ? "has another shape" : "has another type or rank";
    if (form.operands.size() != instr.operands.size() || form.called.size() != instr.called.size())
      return "has another number of operands";
    if (instr.extras && !instr.extras->control_predecessors.empty()) return "waits for other instructions";
    if (!exact) return nullptr;
    if (!same_attributes(form_, form, graph_.module(), instr))
      return form.op == Op::CONSTANT ? "has another value" : "has other attributes";
    return same_calls(form_, form, graph_.module(), instr) ? nullptr : "calls another computation";
  }

  bool fails(const State& state, InstrId f, InstrId p, const char* why) const {
    // Instructions that agree in nothing are no near miss.
    if (!miss_ || state.matched == 0 || state.matched <= miss_->matched) return false;
    miss_->matched = state.matched;
    const Instruction &form = form_[f], &instr = graph_[p];
    miss_->why = std::string(op_info(instr.op).text) + " '" + std::string(instr.name) + "', " +
                 instr.shape.to_string() + ", " + why + ": the pattern has " + std::string(op_info(form.op).text) +
                 " '" + std::string(form.name) + "', " + form.shape.to_string();
    return false;
  }

  const Graph& graph_;
  const Module& form_;
  const Agreement agreement_;
  const std::function<bool(const std::vector<InstrId>& match)>& accept_;
  NearestMiss* miss_;
  const std::vector<InstrId> results_;
  int steps_ = 0;
};

}  // namespace

std::vector<InstrId> results_of(const Module& form) {
  const InstrId root = form.entry_computation().root;
  if (form[root].op != Op::TUPLE) return {root};
  return {form[root].operands.begin(), form[root].operands.end()};
}

bool match_form(const Graph& graph, InstrId root, const Module& form, Agreement agreement,
                const std::function<bool(const std::vector<InstrId>& match)>& accept, NearestMiss* miss) {
  return FormMatch(graph, form, agreement, accept, miss).run(root);
}

}  // namespace collet::hlo::patterns
