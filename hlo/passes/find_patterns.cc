// SPDX-License-Identifier: Apache-2.0
#include <collet/program.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "hlo/ops/rules.h"
#include "hlo/passes/fuse_groups.h"
#include "hlo/passes/passes.h"
#include "hlo/passes/pattern_graph.h"
#include "hlo/passes/rewriter.h"

/// \file
/// Finds groups of ops that some devices compute as one op (softmax, attention, ...); docs/patterns.md says what each
/// computes. A match is a root and its operands; the instructions between them become the body of a call that replaces
/// the root.

namespace collet::hlo {
namespace {

// A constant that a pattern writes once may stand in a program once per use.
constexpr size_t kLargestBody = 4 * kLargestPattern;

int64_t last_dim(const Graph& g, InstrId id) {
  return g.shape(id).rank() - 1;
}

// exp(x - max(x)) / sum(exp(x - max(x))) along the last dimension.
std::optional<InstrId> softmax_of(const Graph& g, InstrId root) {
  if (!g.is(root, Op::DIVIDE) || g.shape(root).rank() == 0) return std::nullopt;
  const int64_t dim = last_dim(g, root);
  const InstrId e = g[root].operand(0);
  const auto sum = g.broadcast_along(g[root].operand(1), dim);
  if (!sum || !g.is(e, Op::EXPONENTIAL)) return std::nullopt;
  // Sums of bf16 and f16 are computed in f32, so there are conversions around the reduction.
  const auto terms = g.row_reduction(g.before_narrowing(*sum), COLLET_COMBINE_ADD);
  if (!terms || g.before_widening(*terms) != e) return std::nullopt;
  const InstrId shifted = g[e].operand(0);
  if (!g.is(shifted, Op::SUBTRACT)) return std::nullopt;
  const InstrId x = g[shifted].operand(0);
  const auto most = g.broadcast_along(g[shifted].operand(1), dim);
  if (!most) return std::nullopt;
  if (g.row_reduction(*most, COLLET_COMBINE_MAXIMUM) == x) return x;
  // jax.nn.softmax also takes the maximum with -inf.
  InstrId reduced = InstrId::None;
  g.either(*most, Op::MAXIMUM, [&](InstrId a, InstrId b) {
    const auto bound = g.splat(a);
    if (bound && std::isinf(*bound) && *bound < 0) reduced = b;
    return reduced != InstrId::None;
  });
  if (reduced != InstrId::None && g.row_reduction(reduced, COLLET_COMBINE_MAXIMUM) == x) return x;
  return std::nullopt;
}

std::optional<Match> softmax(const Graph& g, InstrId root) {
  const auto x = softmax_of(g, root);
  if (!x) return std::nullopt;
  return Match{"softmax", {*x}, ""};
}

// Matches the mean over the last dimension of an array; returns that array.
std::optional<InstrId> row_mean(const Graph& g, InstrId id) {
  const auto sum_of = [&](InstrId sum, double divisor) -> std::optional<InstrId> {
    const auto x = g.row_reduction(sum, COLLET_COMBINE_ADD);
    if (!x) return std::nullopt;
    const auto n = static_cast<double>(g.shape(*x).dim(static_cast<int>(last_dim(g, *x))));
    return std::abs(divisor / n - 1) < 1e-5 ? x : std::nullopt;
  };
  if (g.is(id, Op::DIVIDE))
    if (const auto n = g.splat(g[id].operand(1))) return sum_of(g[id].operand(0), *n);
  std::optional<InstrId> out;
  g.either(id, Op::MULTIPLY, [&](InstrId a, InstrId b) {
    const auto factor = g.splat(a);
    if (factor && *factor != 0) out = sum_of(b, 1 / *factor);
    return out.has_value();
  });
  return out;
}

bool is_square_of(const Graph& g, InstrId id, InstrId x) {
  return g.is(id, Op::MULTIPLY) && g[id].operand(0) == x && g[id].operand(1) == x;
}

// Matches rsqrt(v + eps); returns v and sets `eps`.
std::optional<InstrId> rsqrt_of(const Graph& g, InstrId id, double& eps) {
  if (!g.is(id, Op::RSQRT)) return std::nullopt;
  std::optional<InstrId> out;
  g.either(g[id].operand(0), Op::ADD, [&](InstrId a, InstrId b) {
    if (const auto value = g.splat(a)) {
      eps = *value;
      out = b;
    }
    return out.has_value();
  });
  return out;
}

// Matches x times a factor per row; returns x if `row` accepts the factor (and x).
template <typename Row>
std::optional<InstrId> scaled_rows(const Graph& g, InstrId id, const Row& row) {
  std::optional<InstrId> out;
  if (g.shape(id).rank() == 0) return out;
  g.either(id, Op::MULTIPLY, [&](InstrId a, InstrId b) {
    const auto r = g.broadcast_along(a, last_dim(g, id));
    if (r && row(*r, b)) out = b;
    return out.has_value();
  });
  return out;
}

// Matches a normalisation with or without scale and shift; `core` matches the part before them.
template <typename Core>
std::optional<Match> norm(const Graph& g, InstrId root, std::string_view name, bool shifted, const Core& core) {
  if (g.shape(root).rank() == 0) return std::nullopt;
  const int64_t dim = last_dim(g, root);
  double eps = 0;
  const auto with_scale = [&](InstrId id, std::vector<InstrId> more) -> std::optional<Match> {
    std::optional<Match> out;
    g.either(id, Op::MULTIPLY, [&](InstrId a, InstrId b) {
      const auto scale = g.broadcast_of_vector(a, dim);
      const auto x = scale ? core(b, eps) : std::nullopt;
      if (x) {
        more.insert(more.begin(), {*x, *scale});
        out = Match{name, more, "{epsilon = " + number(eps) + " : f64}"};
      }
      return out.has_value();
    });
    return out;
  };
  if (shifted) {
    std::optional<Match> out;
    g.either(root, Op::ADD, [&](InstrId a, InstrId b) {
      if (const auto shift = g.broadcast_of_vector(a, dim)) out = with_scale(b, {*shift});
      return out.has_value();
    });
    return out;
  }
  return with_scale(root, {});
}

std::optional<InstrId> rms_core(const Graph& g, InstrId id, double& eps) {
  return scaled_rows(g, id, [&](InstrId r, InstrId x) {
    const auto mean = rsqrt_of(g, r, eps);
    const auto squares = mean ? row_mean(g, *mean) : std::nullopt;
    return squares && is_square_of(g, *squares, x);
  });
}

// (x - mean) * rsqrt(variance + eps), the variance as the mean of the squared differences.
std::optional<InstrId> layer_core(const Graph& g, InstrId id, double& eps) {
  const auto centred = scaled_rows(g, id, [&](InstrId r, InstrId d) {
    const auto variance = rsqrt_of(g, r, eps);
    const auto squares = variance ? row_mean(g, *variance) : std::nullopt;
    return squares && is_square_of(g, *squares, d);
  });
  if (!centred || !g.is(*centred, Op::SUBTRACT)) return std::nullopt;
  const InstrId x = g[*centred].operand(0);
  const auto mean = g.broadcast_along(g[*centred].operand(1), last_dim(g, id));
  return mean && row_mean(g, *mean) == x ? std::optional(x) : std::nullopt;
}

std::optional<Match> rms_norm(const Graph& g, InstrId root) {
  return norm(g, root, "rms_norm", false, [&](InstrId id, double& eps) { return rms_core(g, id, eps); });
}
std::optional<Match> layer_norm(const Graph& g, InstrId root) {
  return norm(g, root, "layer_norm", true, [&](InstrId id, double& eps) { return layer_core(g, id, eps); });
}

// Evaluates the elementwise ops between `input` and `id` for an input element with the value `x`; nothing if there is
// another op among them.
std::optional<double> value_at(const Graph& g, InstrId id, InstrId input, double x, int& steps) {
  if (id == input) return x;
  if (++steps > 64) return std::nullopt;
  if (const auto constant = g.splat(id)) return constant;
  const Instruction& instr = g[id];
  const auto of = [&](uint32_t i) { return value_at(g, instr.operand(i), input, x, steps); };
  if (instr.operands.empty() || instr.operands.size() > 2) return std::nullopt;
  const auto a = of(0);
  const auto b = instr.operands.size() == 2 ? of(1) : std::optional(0.0);
  if (!a || !b) return std::nullopt;
  switch (instr.op) {
    case Op::ADD:
      return *a + *b;
    case Op::SUBTRACT:
      return *a - *b;
    case Op::MULTIPLY:
      return *a * *b;
    case Op::DIVIDE:
      return *a / *b;
    case Op::POWER:
      return std::pow(*a, *b);
    case Op::NEGATE:
      return -*a;
    case Op::EXPONENTIAL:
      return std::exp(*a);
    case Op::TANH:
      return std::tanh(*a);
    case Op::ERF:
      return std::erf(*a);
    case Op::LOGISTIC:
      return 1 / (1 + std::exp(-*a));
    default:
      return std::nullopt;
  }
}

double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double gelu_erf(double x) {
  return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
}
double silu(double x) {
  return x / (1 + std::exp(-x));
}

// True if `root` computes `f` of `input`. The function is recognised by its values at sample points, so the ops and
// their order do not matter.
bool is_function(const Graph& g, InstrId root, InstrId input, double (*f)(double)) {
  // In a narrow type only the constants are rounded, which moves gelu by less than 3e-4. x * sigmoid(1.702 * x) differs by 8e-3.
  const double bits = type_info(g.shape(root).type()).bits;
  const double tolerance = bits >= 32 ? 1e-5 : 2e-3;
  for (const double x : {-6.0, -3.1, -1.7, -0.9, -0.31, 0.0, 0.17, 0.8, 1.3, 2.9, 5.5}) {
    int steps = 0;
    const auto y = value_at(g, root, input, x, steps);
    if (!y || !(std::abs(*y - f(x)) <= tolerance * std::max(1.0, std::abs(x)))) return false;
  }
  return true;
}

// Collects values that `root` uses through few elementwise ops: candidates for the argument of a function that root
// computes.
void inputs_near(const Graph& g, InstrId root, int depth, std::vector<InstrId>& out) {
  for (InstrId o : g[root].operands) {
    if (g.splat(o) || std::find(out.begin(), out.end(), o) != out.end()) continue;
    if (g.shape(o) == g.shape(root)) out.push_back(o);
    if (depth > 0 && is_elementwise(g[o].op)) inputs_near(g, o, depth - 1, out);
  }
}

std::optional<InstrId> input_of_function(const Graph& g, InstrId root, double (*f)(double)) {
  if (!g.is(root, Op::MULTIPLY) && !g.is(root, Op::DIVIDE)) return std::nullopt;
  if (!is_float(g.shape(root).type())) return std::nullopt;
  std::vector<InstrId> inputs;
  inputs_near(g, root, 2, inputs);
  for (InstrId x : inputs)
    if (is_function(g, root, x, f)) return x;
  return std::nullopt;
}

bool reaches_op(const Graph& g, InstrId id, InstrId input, Op op, int depth) {
  if (id == input || depth == 0) return false;
  if (g.is(id, op)) return true;
  return std::any_of(g[id].operands.begin(), g[id].operands.end(),
                     [&](InstrId o) { return reaches_op(g, o, input, op, depth - 1); });
}

std::optional<Match> gelu(const Graph& g, InstrId root) {
  for (const auto& [f, op, form] : {std::tuple(&gelu_tanh, Op::TANH, "tanh"), std::tuple(&gelu_erf, Op::ERF, "erf")}) {
    const auto x = input_of_function(g, root, f);
    if (x && reaches_op(g, root, *x, op, 12)) return Match{"gelu", {*x}, std::string("{form = \"") + form + "\"}"};
  }
  return std::nullopt;
}

// silu(x) * y.
std::optional<Match> silu_gate(const Graph& g, InstrId root) {
  std::optional<Match> out;
  g.either(root, Op::MULTIPLY, [&](InstrId a, InstrId b) {
    if (g.splat(b) || g.uses(a) != 1) return false;
    const auto x = input_of_function(g, a, silu);
    if (x) out = Match{"silu_gate", {*x, b}, ""};
    return out.has_value();
  });
  return out;
}

// Matches softmax(q k * scale + mask) v. The dimension numbers of the two products are part of the call's body.
std::optional<Match> attention(const Graph& g, InstrId root) {
  if (!g.is(root, Op::DOT)) return std::nullopt;
  for (int side = 0; side < 2; ++side) {
    const InstrId weights = g[root].operand(static_cast<uint32_t>(side)),
                  v = g[root].operand(static_cast<uint32_t>(1 - side));
    const auto softmax = softmax_of(g, weights);
    if (!softmax) continue;
    // The second product must contract the keys, which are the last dimension of the attention weights.
    const DotAttrs& dims = g[root].as<DotAttrs>();
    const Dims contracting = side == 0 ? dims.lhs_contracting : dims.rhs_contracting;
    if (contracting.size() != 1 || contracting[0] != last_dim(g, weights)) continue;
    InstrId scores = *softmax, mask = InstrId::None;
    std::string form = "none";
    if (g.is(scores, Op::ADD)) {
      g.either(scores, Op::ADD, [&](InstrId a, InstrId b) {
        const bool product = g.is(a, Op::DOT) || g.is(a, Op::MULTIPLY) || g.is(a, Op::DIVIDE);
        if (product) scores = a, mask = b, form = "add";
        return product;
      });
    } else if (g.is(scores, Op::SELECT) && g.splat(g[scores].operand(2))) {
      mask = g[scores].operand(0);
      scores = g[scores].operand(1);
      form = "select";
    }
    double scale = 1;
    if (g.is(scores, Op::DIVIDE)) {
      if (const auto by = g.splat(g[scores].operand(1))) {
        scale = 1 / *by;
        scores = g[scores].operand(0);
      }
    } else {
      g.either(scores, Op::MULTIPLY, [&](InstrId a, InstrId b) {
        const auto by = g.splat(a);
        if (by) scale = *by, scores = b;
        return by.has_value();
      });
    }
    if (!g.is(scores, Op::DOT)) continue;
    Match out{"attention", {g[scores].operand(0), g[scores].operand(1), v}, ""};
    if (mask != InstrId::None) out.operands.push_back(mask);
    out.attributes = "{mask = \"" + form + "\", scale = " + number(scale) + " : f64}";
    return out;
  }
  return std::nullopt;
}

// Matches dot(x, convert(w)) * scale with an integer w: weights that were quantised with one scale per column.
std::optional<Match> quantized_dot(const Graph& g, InstrId root) {
  std::optional<Match> out;
  g.either(root, Op::MULTIPLY, [&](InstrId a, InstrId b) {
    if (!g.is(b, Op::DOT) || g.uses(b) != 1) return false;
    const auto scale = g.broadcast_of_vector(a, last_dim(g, root));
    const InstrId w = g[b].operand(1);
    if (!scale || !g.is(w, Op::CONVERT) || !is_integer(g.shape(g[w].operand(0)).type())) return false;
    out = Match{"quantized_dot", {g[b].operand(0), g[w].operand(0), *scale}, ""};
    return true;
  });
  return out;
}

std::optional<Match> quantized_attention(const Graph& g, InstrId root) {
  auto match = attention(g, root);
  return match ? with_quantized_cache(g, *std::move(match)) : std::nullopt;
}

struct Row {
  std::string_view name;
  Matcher matcher;
  /// True if the pattern may end at several places of one chain of ops. Then it ends at the last.
  bool ends_late = false;
};
// Patterns that contain other patterns come first.
constexpr Row kMatchers[] = {
    {"quantized_attention", quantized_attention},
    {"attention", attention},
    {"softmax", softmax},
    {"layer_norm", layer_norm},
    {"rms_norm", rms_norm},
    {"silu_gate", silu_gate},
    {"gelu", gelu},
    {"integer_dot", match_integer_dot, true},
    {"integer_convolution", match_integer_convolution, true},
    {"scaled_dot", match_scaled_dot, true},
    {"scaled_convolution", match_scaled_convolution, true},
    {"quantized_dot", quantized_dot},
    {"dequantized_dot", match_dequantized_dot, true},
    {"integer_add", match_integer_add, true},
    {"requantize", match_requantize, true},
    {"quantize", match_quantize, true},
};

/// Returns the instructions between the results and the operands of a match, operands before users. Returns nullopt if one
/// of them that is no result has other users, or if they are too many.
std::optional<std::vector<InstrId>> body_of(const Graph& g, const Match& match) {
  std::vector<InstrId> body;
  std::unordered_map<uint32_t, uint32_t> used;  // number of uses of each instruction by the body
  std::unordered_set<uint32_t> seen;
  for (InstrId o : match.operands) seen.insert(index_of(o));
  const std::function<bool(InstrId)> visit = [&](InstrId id) {
    if (!seen.insert(index_of(id)).second) return true;
    if (g.is(id, Op::PARAMETER) || body.size() > kLargestBody) return false;
    for (InstrId o : g[id].operands) {
      ++used[index_of(o)];
      if (!visit(o)) return false;
    }
    body.push_back(id);
    return true;
  };
  for (InstrId result : match.results)
    if (!visit(result)) return std::nullopt;
  for (InstrId id : body) {
    const bool is_result = std::find(match.results.begin(), match.results.end(), id) != match.results.end();
    if (is_result || is_repeatable(g.module(), id)) continue;
    if (g.uses(id) != used[index_of(id)]) return std::nullopt;
  }
  return body;
}

/// Returns a call of a new computation that computes `body` from the operands of the match; `now` has what stands in their
/// place by now.
InstrId make_call(Builder& builder, const Match& match, std::span<const InstrId> now, std::span<const InstrId> body) {
  Module& m = builder.module();
  const CompId callee = m.add_computation(m.unique_computation_name(match.name));
  std::unordered_map<uint32_t, InstrId> inside;
  for (size_t i = 0; i < match.operands.size(); ++i) {
    const InstrId o = match.operands[i];
    const InstrId p = m.append_parameter(callee, static_cast<int64_t>(i), m[o].shape);
    // Instructions behind the call still have the operands that were there before.
    inside.try_emplace(index_of(o), p);
    inside.try_emplace(index_of(now[i]), p);
  }
  for (InstrId id : body) {
    std::vector<InstrId> operands;
    for (InstrId o : m[id].operands) operands.push_back(inside.at(index_of(o)));
    const InstrId copy = m.append(callee, m[id].op, m[id].shape, operands, m[id].attrs, m[id].called);
    m[copy].extras = without_predecessors(m, m[id].extras);
    inside[index_of(id)] = copy;
  }
  std::vector<InstrId> results;
  std::vector<Shape> shapes;
  for (InstrId id : match.results) {
    results.push_back(inside.at(index_of(id)));
    shapes.push_back(m[id].shape);
  }
  const Shape shape = results.size() == 1 ? shapes[0] : Shape::tuple(shapes);
  m[callee].root = results.size() == 1 ? results[0] : m.append(callee, Op::TUPLE, shape, results);
  Arena& arena = m.arena();
  auto* attrs = m.make<CallAttrs>();
  attrs->is_composite = true;
  attrs->name = arena.string(std::string(match.name));
  attrs->attributes = arena.string(match.attributes.empty() ? "{}" : match.attributes);
  const CompId called[] = {callee};
  const InstrId call = builder.op(Op::CALL, shape, now, attrs, called);
  if (call == InstrId::None) return call;
  // HLO text keeps the name and attributes of a composite in these frontend attributes.
  std::vector<FrontendAttribute> frontend{{"composite.attributes", attrs->attributes, true},
                                          {"composite.name", attrs->name, false},
                                          {"composite.version", "0", false}};
  Extras extras;
  extras.frontend_attributes = arena.list(frontend);
  m[call].extras = arena.make<Extras>(extras);
  return call;
}

/// The matches of one computation. No instruction is in two of them, but for those that may be repeated.
class PatternGroups {
 public:
  struct Group {
    Match match;
    std::vector<InstrId> body;
    uint32_t place = 0;  ///< the call comes behind the instruction at this place of the order
  };

  PatternGroups(const Module& module, CompId computation)
      : module_(module), graph_(module, computation), order_(module[computation].order) {
    for (uint32_t i = 0; i < order_.size(); ++i) place_[index_of(order_[i])] = i;
  }

  /// Looks for groups with `matcher`, from the last instruction to the first if `backwards`.
  template <typename Find>
  void find(const Find& matcher, bool backwards) {
    for (size_t i = 0; i < order_.size(); ++i) {
      const InstrId id = order_[backwards ? order_.size() - 1 - i : i];
      if (taken_.contains(index_of(id)) || !module_[id].shape.is_array()) continue;
      if (std::optional<Match> match = matcher(graph_, id)) take(id, *std::move(match));
    }
  }
  const std::vector<Group>& groups() const { return groups_; }

  /// True for a group that is not offered, if no larger one that is not offered either was seen before: groups of one product
  /// end at several instructions.
  bool is_withheld(InstrId root, Match match) {
    if (match.results.empty()) match.results = {root};
    const std::optional<std::vector<InstrId>> body = body_of(graph_, match);
    if (!body) return false;
    bool is_new = true;
    for (InstrId member : *body)
      if (!is_repeatable(module_, member)) is_new &= withheld_.insert(index_of(member)).second;
    return is_new;
  }

 private:
  void take(InstrId root, Match match) {
    if (match.results.empty()) match.results = {root};
    std::optional<std::vector<InstrId>> body = body_of(graph_, match);
    if (!body) return;
    const auto is_taken = [&](InstrId id) { return taken_.contains(index_of(id)); };
    if (std::any_of(body->begin(), body->end(), is_taken)) return;
    Group group{std::move(match), *std::move(body)};
    // One result: nothing that uses it comes before it. Several: the call takes the earliest place, behind its operands,
    // and all users of its results must come behind that.
    if (group.match.results.size() == 1) {
      group.place = place_.at(index_of(root));
    } else {
      for (InstrId o : group.match.operands) group.place = std::max(group.place, place_.at(index_of(o)));
      const std::unordered_set<InstrId> members(group.body.begin(), group.body.end());
      for (InstrId result : group.match.results)
        for (InstrId user : graph_.users(result))
          if (!members.contains(user) && place_.at(index_of(user)) <= group.place) return;
    }
    for (InstrId member : group.body)
      if (!is_repeatable(module_, member)) taken_.insert(index_of(member));
    groups_.push_back(std::move(group));
  }

  const Module& module_;
  const Graph graph_;
  const std::vector<InstrId> order_;
  std::unordered_map<uint32_t, uint32_t> place_;
  std::unordered_set<uint32_t> taken_;
  std::unordered_set<uint32_t> withheld_;
  std::vector<Group> groups_;
};

/// Replaces the results of a group by those of a call.
void replace_group(Rewriter& rewriter, const PatternGroups::Group& group) {
  const std::vector<InstrId>& results = group.match.results;
  std::vector<InstrId> operands;
  for (InstrId o : group.match.operands) operands.push_back(rewriter.now(o));
  Builder& builder = rewriter.builder();
  const InstrId call = make_call(builder, group.match, operands, group.body);
  if (call == InstrId::None) return;
  for (size_t i = 0; i < results.size(); ++i)
    rewriter.replace(results[i], results.size() == 1 ? call : builder.get(call, static_cast<int64_t>(i)));
}

}  // namespace

std::vector<std::string_view> pattern_names() {
  std::vector<std::string_view> names;
  for (const Row& row : kMatchers) names.push_back(row.name);
  return names;
}

Expected<bool> find_patterns(Module& module, PassContext& context) {
  bool changed = false;
  for (CompId c : flow_computations(module)) {
    PatternGroups found(module, c);
    for (const auto& pattern : context.declared_patterns)
      found.find([&](const Graph& graph, InstrId id) { return pattern->match(graph, id); }, false);
    for (const auto& [name, matcher, ends_late] : kMatchers) {
      const auto wants = [&, &name = name](uint32_t features) {
        return !context.wants_pattern || context.wants_pattern(name, features);
      };
      const auto wanted = [&, &name = name, &matches = matcher](const Graph& graph,
                                                                InstrId id) -> std::optional<Match> {
        std::optional<Match> match = matches(graph, id);
        if (!match || wants(match->features)) return match;
        const uint32_t features = match->features;
        if (found.is_withheld(id, *std::move(match)) && context.not_offered)
          context.not_offered(module, id, name, features);
        return std::nullopt;
      };
      if (wants(0)) found.find(wanted, ends_late);
    }
    if (found.groups().empty()) continue;
    std::unordered_multimap<uint32_t, const PatternGroups::Group*> at;
    std::unordered_set<uint32_t> results;
    for (const PatternGroups::Group& group : found.groups()) {
      at.emplace(group.place, &group);
      for (InstrId id : group.match.results) results.insert(index_of(id));
    }
    Rewriter rewriter(module, c);
    for (uint32_t i = 0; i < rewriter.instructions().size(); ++i) {
      const InstrId id = rewriter.instructions()[i];
      rewriter.enter(id);
      if (!results.contains(index_of(id))) rewriter.keep(id);
      const auto [begin, end] = at.equal_range(i);
      for (auto it = begin; it != end; ++it) replace_group(rewriter, *it->second);
    }
    changed |= rewriter.finish();
    COLLET_TRY(rewriter.builder().status());
  }
  if (changed) order_computations(module);
  return changed;
}

}  // namespace collet::hlo
