// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/spmd/strategy.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace collet::hlo::spmd {
namespace {

constexpr size_t kMostLeaders = 4;  // most operands whose sharding is tried as a starting point
using Kind = ShardingRule::Kind;
using Factors = std::vector<DimensionSharding>;

// True if operand `k` needs a halo when the factor is split; for a convolution only the input does.
bool needs_halo(const Instruction& instr, Kind kind, size_t k) {
  return kind == Kind::Windowed || (kind == Kind::WindowReduced && k == 0 && instr.op == Op::CONVOLUTION);
}

// Returns the operands, the largest first.
std::vector<size_t> by_size(const Module& module, const Instruction& instr) {
  std::vector<size_t> order(instr.operands.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return module[instr.operand(a)].shape.element_count() > module[instr.operand(b)].shape.element_count();
  });
  return order;
}

class StrategySelector {
 public:
  StrategySelector(const Module& module, const Instruction& instr, const ShardingRule& rule,
                   std::span<const ArraySharding> operands, std::span<const ArraySharding> results,
                   const DeviceGroups& groups)
      : m_(module), instr_(instr), rule_(rule), operands_(operands), results_(results), groups_(groups) {}

  OpStrategy run() {
    const std::vector<size_t> order = by_size(m_, instr_);
    // The shardings that each array suggests for the factors: the results first, then operands by size.
    std::vector<Factors> sources;
    Factors of_results(rule_.factors.size());
    for (size_t r = 0; r < results_.size() && r < rule_.results.size(); ++r)
      read(rule_.results[r], results_[r].dimensions, of_results);
    sources.push_back(std::move(of_results));
    for (size_t k : order) {
      Factors f(rule_.factors.size());
      read(rule_.operands[k], operands_[k].dimensions, f);
      sources.push_back(std::move(f));
    }
    find_passing();
    operations_ = operations();
    consider(Factors(rule_.factors.size()));
    for (size_t leader = 0; leader < std::min(sources.size(), kMostLeaders + 1); ++leader) {
      if (leader > 0 && std::find(sources.begin(), sources.begin() + static_cast<std::ptrdiff_t>(leader),
                                  sources[leader]) != sources.begin() + static_cast<std::ptrdiff_t>(leader))
        continue;
      for (const bool partial : {true, false})
        for (const bool follow : {true, false}) {
          Factors f(rule_.factors.size());
          take(sources[leader], partial, f);
          if (follow)
            for (const Factors& source : sources) take(source, partial, f);
          consider(f);
          if (partial && follow) consider(moved(f));
        }
    }
    return std::move(best_);
  }

 private:
  void read(const ShardingRule::Array& array, const std::vector<DimensionSharding>& dims, Factors& out) const {
    for (size_t d = 0; d < array.size() && d < dims.size(); ++d) {
      if (!dims[d].is_split()) continue;
      const Factors parts = shardings_of_factors(rule_, array[d], dims[d]);
      for (size_t i = 0; i < parts.size(); ++i)
        if (parts[i].is_split() && !out[static_cast<size_t>(array[d][i])].is_split())
          out[static_cast<size_t>(array[d][i])] = parts[i];
    }
  }

  void take(const Factors& source, bool partial, Factors& f) const {
    for (size_t i = 0; i < f.size(); ++i) {
      if (f[i].is_split() || !source[i].is_split() || (!partial && rule_.factors[i].is_partial())) continue;
      if (!can_split_factor(m_, instr_, rule_, i, source[i])) continue;
      f[i] = source[i];
      if (!are_independent(f, groups_)) f[i] = DimensionSharding();
    }
  }

  // Moves mesh axes from dimensions that have to be replicated to other dimensions.
  Factors moved(Factors f) const {
    for (size_t k = 0; k < operands_.size(); ++k)
      for (size_t d = 0; d < rule_.operands[k].size(); ++d) {
        const DimensionSharding& lost = operands_[k].dimensions[d];
        if (!lost.is_split()) continue;
        const auto& own = rule_.operands[k][d];
        if (std::any_of(own.begin(), own.end(), [&](int i) { return f[static_cast<size_t>(i)].is_split(); })) continue;
        for (const ShardingRule::Dimension& other : rule_.operands[k]) {
          if (other.size() != 1) continue;
          const auto i = static_cast<size_t>(other[0]);
          if (f[i].is_split() || rule_.factors[i].kind != Kind::Parallel || rule_.factors[i].size % lost.count())
            continue;
          f[i] = lost;
          if (are_independent(f, groups_)) break;
          f[i] = DimensionSharding();
        }
      }
    return f;
  }

  // Determines whether partial operands may be passed through to a result that is wanted unreduced.
  void find_passing() {
    if (results_.empty() || !results_[0].unreduced.is_split()) return;
    std::vector<bool> unreduced;
    for (const ArraySharding& s : operands_) {
      unreduced.push_back(s.unreduced.is_split());
      if (!s.unreduced.is_split()) continue;
      if (passing_.is_split() && !same_split(passing_, s.unreduced)) {
        passing_ = DimensionSharding();
        return;
      }
      passing_ = s.unreduced;
    }
    if (!passing_.is_split()) return;
    const auto terms = unreduced_operands(m_, instr_, unreduced);
    if (terms)
      terms_ = *terms;
    else
      passing_ = DimensionSharding();
  }

  // Number of operations of the whole op, before it is split.
  double operations() const {
    double out = 1;
    if (instr_.op == Op::DOT || instr_.op == Op::CONVOLUTION) {
      for (const ShardingRule::Factor& f : rule_.factors) out *= static_cast<double>(f.size);
      if (instr_.op == Op::CONVOLUTION) {  // counts only taps on elements of the input, not on padding
        const auto& a = instr_.as<ConvolutionAttrs>();
        const Shape& input = m_[instr_.operand(0)].shape;
        for (size_t i = 0; i < a.window.rank(); ++i)
          out *= static_cast<double>(std::min(tile_size(a.window.size[i], a.window.base_dilation_at(i)),
                                              input.dim(static_cast<int>(a.labels.input_spatial[i]))));
      }
      return 2 * out;
    }
    double most = 0;
    for (size_t k = 0; k < operands_.size(); ++k)
      most = std::max(most, static_cast<double>(m_[instr_.operand(k)].shape.element_count()));
    if (instr_.shape.is_array()) most = std::max(most, static_cast<double>(instr_.shape.element_count()));
    return most;
  }

  void consider(Factors f) {
    drop_inner_factors(rule_, f);
    if (passing_.is_split()) {
      Factors all = f;
      all.push_back(passing_);
      if (are_independent(all, groups_)) evaluate(f, true);
    }
    evaluate(f, false);
  }

  void evaluate(const Factors& f, bool pass) {
    OpStrategy s;
    s.factors = f;
    double parallel = 1;
    for (size_t i = 0; i < f.size(); ++i) {
      parallel *= static_cast<double>(f[i].count());
      if (rule_.factors[i].is_partial()) s.partial = compose(s.partial, f[i]);
    }
    for (size_t k = 0; k < operands_.size(); ++k) {
      ArraySharding need(sharding_by_factors(rule_.operands[k], f));
      if (pass && std::find(terms_.begin(), terms_.end(), k) != terms_.end()) need.unreduced = passing_;
      const Shape& shape = m_[instr_.operand(k)].shape;
      s.bytes += reshard_bytes(shape, operands_[k], need, groups_) + halo_bytes(k, shape, need, f);
      s.operands.push_back(std::move(need));
    }
    const DimensionSharding unreduced = pass ? compose(passing_, s.partial) : s.partial;
    for (size_t r = 0; r < rule_.results.size(); ++r) {
      ArraySharding has(sharding_by_factors(rule_.results[r], f), unreduced);
      const Shape& shape = instr_.shape.is_tuple() ? instr_.shape.element(r) : instr_.shape;
      if (!results_.empty())
        s.bytes += result_bytes(shape, has, results_[r]);
      else if (unreduced.is_split())
        s.bytes += reshard_bytes(shape, has, ArraySharding(has.dimensions), groups_);
      s.results.push_back(std::move(has));
    }
    s.work = operations_ / parallel / kOperationsPerByte;
    const bool better = best_.factors.size() != f.size() || best_.results.empty() || s.cost() < best_cost_ - 1e-6 ||
                        (s.cost() < best_cost_ + 1e-6 && parallel > best_parallel_);
    if (!better) return;
    best_cost_ = s.cost();
    best_parallel_ = parallel;
    best_ = std::move(s);
  }

  // Partial results that are combined by another op than addition are combined immediately.
  double result_bytes(const Shape& shape, const ArraySharding& has, const ArraySharding& wants) const {
    if (!has.unreduced.is_split() || rule_.adds(m_)) return reshard_bytes(shape, has, wants, groups_);
    const ArraySharding plain(wants.dimensions);
    return reshard_bytes(shape, has, plain, groups_);
  }

  double halo_bytes(size_t k, const Shape& shape, const ArraySharding& need, const Factors& f) const {
    double bytes = 0;
    for (size_t d = 0; d < rule_.operands[k].size(); ++d)
      for (int i : rule_.operands[k][d]) {
        const auto factor = static_cast<size_t>(i);
        if (!needs_halo(instr_, rule_.factors[factor].kind, k) || !f[factor].is_split()) continue;
        const int64_t size = shape.dim(static_cast<int>(d)), n = f[factor].count();
        const auto window = input_window(m_, instr_, k, static_cast<int64_t>(d), n);
        const auto plan = window ? plan_halo(n, *window) : std::nullopt;
        if (!plan) continue;
        const double tile = tile_bytes(shape, need);
        bytes += tile * static_cast<double>(plan->sent) / static_cast<double>(tile_size(size, n));
        if (instr_.op == Op::REVERSE) bytes += tile;
      }
    return bytes;
  }

  const Module& m_;
  const Instruction& instr_;
  const ShardingRule& rule_;
  std::span<const ArraySharding> operands_, results_;
  const DeviceGroups& groups_;
  DimensionSharding passing_;
  std::vector<size_t> terms_;
  OpStrategy best_;
  double operations_ = 0, best_cost_ = 0, best_parallel_ = 0;
};

}  // namespace

std::vector<DimensionSharding> shardings_of_factors(const ShardingRule& rule, const ShardingRule::Dimension& factors,
                                                    const DimensionSharding& sharding) {
  if (factors.size() == 1) return {sharding};
  std::vector<DimensionSharding> out;
  DimensionSharding rest = sharding;
  for (int f : factors) {
    const int64_t size = rule.factors[static_cast<size_t>(f)].size;
    if (!rest.is_split()) {
      out.emplace_back();
    } else if (size % rest.count() == 0) {
      out.push_back(std::exchange(rest, DimensionSharding()));
    } else if (rest.count() % size == 0) {
      out.push_back(major_part(rest, rest.count() / size));
      rest = minor_part(rest, rest.count() / size);
    } else {
      return {};
    }
  }
  return rest.is_split() ? std::vector<DimensionSharding>() : out;
}

std::vector<DimensionSharding> sharding_by_factors(const ShardingRule::Array& array,
                                                   std::span<const DimensionSharding> factors) {
  std::vector<DimensionSharding> out(array.size());
  for (size_t d = 0; d < array.size(); ++d)
    for (int f : array[d]) out[d] = compose(out[d], factors[static_cast<size_t>(f)]);
  return out;
}

void drop_inner_factors(const ShardingRule& rule, std::vector<DimensionSharding>& factors) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto* arrays : {&rule.operands, &rule.results})
      for (const ShardingRule::Array& array : *arrays)
        for (const ShardingRule::Dimension& dimension : array) {
          bool open = true;
          for (int i : dimension) {
            DimensionSharding& f = factors[static_cast<size_t>(i)];
            if (!open && f.is_split()) {
              f = DimensionSharding();
              changed = true;
            }
            open = open && f.count() == rule.factors[static_cast<size_t>(i)].size;
          }
        }
  }
}

bool can_split_factor(const Module& module, const Instruction& instr, const ShardingRule& rule, size_t f,
                      const DimensionSharding& sharding) {
  const ShardingRule::Factor& factor = rule.factors[f];
  if (sharding.count() > factor.size || (factor.even && factor.size % sharding.count())) return false;
  for (size_t k = 0; k < rule.operands.size(); ++k) {
    if (!needs_halo(instr, factor.kind, k)) continue;
    for (size_t d = 0; d < rule.operands[k].size(); ++d) {
      const ShardingRule::Dimension& own = rule.operands[k][d];
      if (own.size() != 1 || static_cast<size_t>(own[0]) != f) continue;
      const auto window = input_window(module, instr, k, static_cast<int64_t>(d), sharding.count());
      if (!window || !plan_halo(sharding.count(), *window)) return false;
    }
  }
  return true;
}

OpStrategy choose_strategy(const Module& module, const Instruction& instr, const ShardingRule& rule,
                           std::span<const ArraySharding> operands, std::span<const ArraySharding> results,
                           const DeviceGroups& groups) {
  return StrategySelector(module, instr, rule, operands, results, groups).run();
}

}  // namespace collet::hlo::spmd
