// SPDX-License-Identifier: Apache-2.0
#include "hlo/testing/compare_modules.h"

#include <algorithm>
#include <deque>
#include <set>
#include <unordered_map>

#include "hlo/ir/fields.h"
#include "hlo/testing/module_hash.h"

namespace collet::hlo::testing {
namespace {

constexpr size_t kMostCandidates = 64;

/// A one-to-one matching between instructions of two computations.
struct Matching {
  std::unordered_map<uint32_t, InstrId> of_a, of_b;
  std::vector<std::pair<InstrId, InstrId>> pairs;

  bool add(InstrId x, InstrId y) {
    if (of_a.contains(index_of(x)) || of_b.contains(index_of(y))) return false;
    of_a[index_of(x)] = y;
    of_b[index_of(y)] = x;
    pairs.emplace_back(x, y);
    return true;
  }
  InstrId with(InstrId x) const {
    auto it = of_a.find(index_of(x));
    return it == of_a.end() ? InstrId::None : it->second;
  }
};

class Comparer {
 public:
  Comparer(const Module& a, const Module& b, const CompareOptions& options)
      : a_(a), b_(b), options_(options), hash_a_(a, options), hash_b_(b, options) {}

  std::vector<Difference> run() {
    if (options_.header) compare_headers();
    if (a_.entry() == CompId::None || b_.entry() == CompId::None) return std::move(out_);
    want(a_.entry(), b_.entry());
    while (!work_.empty()) {
      const auto [x, y] = work_.front();
      work_.pop_front();
      compare_computations(x, y);
    }
    compare_unreached();
    return std::move(out_);
  }

 private:
  void want(CompId x, CompId y) {
    if (seen_.emplace(x, y).second) work_.emplace_back(x, y);
  }

  // ---- headers ----

  void compare_headers() {
    const ModuleHeader &x = a_.header(), &y = b_.header();
    Difference d{.kind = Difference::Kind::Header};
    const auto number = [&](std::string_view what, int64_t p, int64_t q) {
      if (p != q) d.details.push_back({std::string(what), std::to_string(p), std::to_string(q)});
    };
    number("replica_count", x.replica_count, y.replica_count);
    number("num_partitions", x.num_partitions, y.num_partitions);
    number("is_scheduled", x.is_scheduled, y.is_scheduled);
    number("alias_passthrough_params", x.alias_passthrough_params, y.alias_passthrough_params);
    const auto text = [&](std::string_view what, std::string p, std::string q) {
      if (p != q) d.details.push_back({std::string(what), std::move(p), std::move(q)});
    };
    text("input_output_alias", aliases(x), aliases(y));
    text("buffer_donor", donors(x), donors(y));
    if (!d.details.empty()) out_.push_back(std::move(d));
  }

  static std::string index(Dims dims) {
    std::string out;
    for (int64_t i : dims) out += (out.empty() ? "" : ",") + std::to_string(i);
    return "{" + out + "}";
  }
  static std::string aliases(const ModuleHeader& header) {
    std::set<std::string> lines;
    for (const InputOutputAlias& alias : header.aliases)
      lines.insert(index(alias.output_index) + ": (" + std::to_string(alias.parameter) + ", " +
                   index(alias.parameter_index) + (alias.must ? ", must" : "") + ")");
    std::string out;
    for (const std::string& line : lines) out += (out.empty() ? "" : ", ") + line;
    return out;
  }
  static std::string donors(const ModuleHeader& header) {
    std::set<std::string> lines;
    for (const BufferDonor& donor : header.donors)
      lines.insert("(" + std::to_string(donor.parameter) + ", " + index(donor.parameter_index) + ")");
    std::string out;
    for (const std::string& line : lines) out += (out.empty() ? "" : ", ") + line;
    return out;
  }

  // ---- two computations ----

  void compare_computations(CompId x, CompId y) {
    const Computation &p = a_[x], &q = b_[y];
    Difference d{.kind = Difference::Kind::Header, .computation_a = x, .computation_b = y};
    if (p.parameters.size() != q.parameters.size())
      d.details.push_back(
          {"number of parameters", std::to_string(p.parameters.size()), std::to_string(q.parameters.size())});
    if (p.execution_thread != q.execution_thread)
      d.details.push_back({"execution_thread", std::string(p.execution_thread), std::string(q.execution_thread)});
    const Matching m = match(x, y);
    if (options_.schedule && a_.header().is_scheduled && b_.header().is_scheduled && !same_order(m, p, q))
      d.details.push_back({"order of instructions", "", ""});
    if (!d.details.empty()) out_.push_back(std::move(d));
    for (InstrId id : p.order) {
      const InstrId other = m.with(id);
      if (other == InstrId::None)
        out_.push_back({.kind = Difference::Kind::OnlyA, .computation_a = x, .computation_b = y, .a = id});
      else
        compare_pair(m, x, y, id, other);
    }
    for (InstrId id : q.order)
      if (!m.of_b.contains(index_of(id)))
        out_.push_back({.kind = Difference::Kind::OnlyB, .computation_a = x, .computation_b = y, .b = id});
  }

  static bool same_order(const Matching& m, const Computation& p, const Computation& q) {
    std::unordered_map<uint32_t, size_t> place;
    for (size_t i = 0; i < q.order.size(); ++i) place[index_of(q.order[i])] = i;
    size_t last = 0;
    for (InstrId id : p.order) {
      const InstrId other = m.with(id);
      if (other == InstrId::None) continue;
      const size_t at = place.at(index_of(other));
      if (at < last) return false;
      last = at;
    }
    return true;
  }

  Matching match(CompId x, CompId y) {
    const Computation &p = a_[x], &q = b_[y];
    Matching m;
    for (size_t i = 0; i < std::min(p.parameters.size(), q.parameters.size()); ++i)
      m.add(p.parameters[i], q.parameters[i]);
    match_equal(m, p, q);
    m.add(p.root, q.root);
    match_downwards(m, 0);
    match_upwards(m, x, y);
    match_alike(m, p, q);
    return m;
  }

  // Matches instructions whose values have the same hash. If several have it, the k-th of one computation is matched with
  // the k-th of the other.
  void match_equal(Matching& m, const Computation& p, const Computation& q) {
    std::unordered_map<uint64_t, std::vector<InstrId>> of;
    for (InstrId id : q.order)
      if (b_[id].op != Op::PARAMETER) of[hash_b_.value(id)].push_back(id);
    std::unordered_map<uint64_t, size_t> next;
    for (InstrId id : p.order) {
      if (a_[id].op == Op::PARAMETER) continue;
      auto it = of.find(hash_a_.value(id));
      if (it == of.end()) continue;
      size_t& k = next[it->first];
      if (k < it->second.size()) m.add(id, it->second[k++]);
    }
  }

  // Matches operands of pairs number `from` and later: leading and trailing operands that correspond are skipped, and those
  // between them are matched in order where their ops agree.
  void match_downwards(Matching& m, size_t from) {
    for (size_t i = from; i < m.pairs.size(); ++i) {
      const auto [id, other] = m.pairs[i];
      const Instruction &x = a_[id], &y = b_[other];
      if (hash_a_.value(id) == hash_b_.value(other)) continue;
      const size_t n = x.operands.size(), k = y.operands.size();
      size_t low = 0;
      while (low < std::min(n, k) && correspond(m, x.operand(low), y.operand(low))) ++low;
      size_t high = 0;
      while (high < std::min(n, k) - low && correspond(m, x.operand(n - 1 - high), y.operand(k - 1 - high))) ++high;
      for (size_t at = low; at < std::min(n, k) - high; ++at)
        if (a_[x.operand(at)].op == b_[y.operand(at)].op) m.add(x.operand(at), y.operand(at));
    }
  }

  // Matches an instruction with a user of the partners of its operands. The user has the same op; of several candidates the
  // one with the most corresponding operands is taken.
  void match_upwards(Matching& m, CompId x, CompId y) {
    const UserMap users(b_, y);
    for (InstrId id : a_[x].order) {
      const Instruction& instr = a_[id];
      if (m.of_a.contains(index_of(id))) continue;
      InstrId best = InstrId::None;
      size_t most = 0;
      for (InstrId operand : instr.operands) {
        const InstrId below = m.with(operand);
        if (below == InstrId::None) continue;
        size_t tried = 0;
        for (InstrId user : users.users(below)) {
          if (++tried > kMostCandidates) break;
          if (b_[user].op != instr.op || m.of_b.contains(index_of(user))) continue;
          const size_t score =
              1 + agreeing_operands(m, instr, b_[user]) * 2 + (hash_a_.own(id) == hash_b_.own(user) ? 1 : 0);
          if (score > most) {
            most = score;
            best = user;
          }
        }
      }
      if (best == InstrId::None) continue;
      const size_t from = m.pairs.size();
      m.add(id, best);
      match_downwards(m, from);
    }
  }

  size_t agreeing_operands(const Matching& m, const Instruction& x, const Instruction& y) const {
    size_t count = 0;
    for (size_t i = 0; i < std::min(x.operands.size(), y.operands.size()); ++i)
      count += correspond(m, x.operand(i), y.operand(i));
    return count;
  }

  // Matches the instructions that are still unmatched by op, shape and attributes, without regard to their operands.
  void match_alike(Matching& m, const Computation& p, const Computation& q) {
    std::unordered_map<uint64_t, std::deque<InstrId>> of;
    for (InstrId id : q.order)
      if (!m.of_b.contains(index_of(id)) && b_[id].op != Op::PARAMETER) of[hash_b_.own(id)].push_back(id);
    for (InstrId id : p.order) {
      if (m.of_a.contains(index_of(id)) || a_[id].op == Op::PARAMETER) continue;
      auto it = of.find(hash_a_.own(id));
      if (it == of.end() || it->second.empty()) continue;
      m.add(id, it->second.front());
      it->second.pop_front();
    }
  }

  bool correspond(const Matching& m, InstrId x, InstrId y) const {
    return m.with(x) == y || hash_a_.value(x) == hash_b_.value(y);
  }

  // ---- two instructions ----

  void compare_pair(const Matching& m, CompId in_a, CompId in_b, InstrId id, InstrId other) {
    const Instruction &x = a_[id], &y = b_[other];
    Difference d{.kind = Difference::Kind::Changed, .computation_a = in_a, .computation_b = in_b, .a = id, .b = other};
    std::vector<Difference::Detail>& details = d.details;
    const auto text = [&](std::string_view what, std::string p, std::string q) {
      if (p != q) details.push_back({std::string(what), std::move(p), std::move(q)});
    };
    text("op", std::string(op_info(x.op).text), std::string(op_info(y.op).text));
    if (!hash_a_.same_shape(x.shape, y.shape)) {
      const bool layouts = x.shape.same_without_layout(y.shape);
      text("shape", x.shape.to_string(layouts), y.shape.to_string(layouts));
    }
    if (x.op == y.op) compare_attributes(x, y, details);
    compare_extras(m, x, y, details);
    compare_operands(m, x, y, details);
    if (x.called.size() != y.called.size())
      text("computations called", std::to_string(x.called.size()), std::to_string(y.called.size()));
    for (size_t i = 0; i < std::min(x.called.size(), y.called.size()); ++i) want(x.called[i], y.called[i]);
    if (!details.empty()) out_.push_back(std::move(d));
  }

  void compare_attributes(const Instruction& x, const Instruction& y, std::vector<Difference::Detail>& details) const {
    if (x.op == Op::CONSTANT) {
      if (options_.literals && !(a_.literal(x) == b_.literal(y))) details.push_back({"value", "", ""});
      return;
    }
    if (x.attrs == nullptr || y.attrs == nullptr) return;
    for (const FieldInfo& field : record_fields(op_info(x.op).record))
      if (!equal_fields(field, x.attrs, y.attrs))
        details.push_back({std::string(field.text.empty() ? field.name : field.text), "", ""});
  }

  void compare_extras(const Matching& m, const Instruction& x, const Instruction& y,
                      std::vector<Difference::Detail>& details) const {
    static const Extras kNone;
    const Extras &p = x.extras ? *x.extras : kNone, &q = y.extras ? *y.extras : kNone;
    const auto sharding = [](const Extras& e) { return e.sharding ? e.sharding->to_string() : std::string(); };
    const auto text = [&](std::string_view what, std::string one, std::string two) {
      if (one != two) details.push_back({std::string(what), std::move(one), std::move(two)});
    };
    if (options_.shardings) text("sharding", sharding(p), sharding(q));
    if (options_.frontend_attributes) text("frontend_attributes", frontend_text(p), frontend_text(q));
    if (options_.backend_configs) text("backend_config", std::string(p.backend_config), std::string(q.backend_config));
    if (p.result_accuracy != q.result_accuracy && accuracy_text(p) != accuracy_text(q))
      text("result_accuracy", accuracy_text(p), accuracy_text(q));
    std::set<InstrId> one, two;
    for (InstrId id : p.control_predecessors) one.insert(m.with(id));
    for (InstrId id : q.control_predecessors) two.insert(id);
    if (one != two) details.push_back({"control_predecessors", "", ""});
  }

  void compare_operands(const Matching& m, const Instruction& x, const Instruction& y,
                        std::vector<Difference::Detail>& details) const {
    if (x.operands.size() != y.operands.size())
      details.push_back({"number of operands", std::to_string(x.operands.size()), std::to_string(y.operands.size())});
    for (size_t i = 0; i < std::min(x.operands.size(), y.operands.size()); ++i)
      if (!correspond(m, x.operand(i), y.operand(i)))
        details.push_back(
            {"operand " + std::to_string(i), std::string(a_[x.operand(i)].name), std::string(b_[y.operand(i)].name)});
  }

  // ---- computations that are not reached from the entries ----

  void compare_unreached() {
    std::set<CompId> left_a(a_.computations().begin(), a_.computations().end());
    std::set<CompId> left_b(b_.computations().begin(), b_.computations().end());
    for (const auto& [x, y] : seen_) {
      left_a.erase(x);
      left_b.erase(y);
    }
    std::unordered_map<uint64_t, std::deque<CompId>> of;
    for (CompId c : b_.computations())
      if (left_b.contains(c)) of[hash_b_.computation(c)].push_back(c);
    for (CompId c : a_.computations()) {
      if (!left_a.contains(c)) continue;
      auto it = of.find(hash_a_.computation(c));
      if (it != of.end() && !it->second.empty()) {
        left_b.erase(it->second.front());
        it->second.pop_front();
      } else {
        out_.push_back({.kind = Difference::Kind::OnlyA, .computation_a = c});
      }
    }
    for (CompId c : b_.computations())
      if (left_b.contains(c)) out_.push_back({.kind = Difference::Kind::OnlyB, .computation_b = c});
  }

  const Module &a_, &b_;
  const CompareOptions& options_;
  const ModuleHash hash_a_, hash_b_;
  std::vector<Difference> out_;
  std::set<std::pair<CompId, CompId>> seen_;
  std::deque<std::pair<CompId, CompId>> work_;
};

}  // namespace

std::vector<Difference> compare_modules(const Module& a, const Module& b, const CompareOptions& options) {
  return Comparer(a, b, options).run();
}

}  // namespace collet::hlo::testing
