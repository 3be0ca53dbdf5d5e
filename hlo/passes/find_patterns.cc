// SPDX-License-Identifier: Apache-2.0
#include <collet/program.h>

#include <algorithm>
#include <cmath>
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

constexpr size_t kLargestBody = 64;

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
  const double bits = type_info(g.shape(root).type()).bits;
  const double tolerance = bits >= 32 ? 1e-5 : 2e-2;
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
    {"requantize", match_requantize, true},
    {"quantize", match_quantize, true},
};

/// Returns the instructions between a root and the operands of its match, operands before users. Returns nullopt if one of
/// them has other users, or if they are too many.
std::optional<std::vector<InstrId>> body_of(const Graph& g, InstrId root, const Match& match) {
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
  if (!visit(root)) return std::nullopt;
  for (InstrId id : body) {
    if (id == root || is_repeatable(g.module(), id)) continue;
    if (g.uses(id) != used[index_of(id)]) return std::nullopt;
  }
  return body;
}

/// Returns a call of a new computation that computes `body` from the operands of the match.
InstrId make_call(Builder& builder, InstrId root, const Match& match, std::span<const InstrId> body) {
  Module& m = builder.module();
  const CompId callee = m.add_computation(fresh_computation_name(m, match.name));
  std::unordered_map<uint32_t, InstrId> inside;
  for (size_t i = 0; i < match.operands.size(); ++i) {
    const InstrId o = match.operands[i];
    const InstrId p = m.append_parameter(callee, static_cast<int64_t>(i), m[o].shape);
    inside.try_emplace(index_of(o), p);
  }
  for (InstrId id : body) {
    std::vector<InstrId> operands;
    for (InstrId o : m[id].operands) operands.push_back(inside.at(index_of(o)));
    const InstrId copy = m.append(callee, m[id].op, m[id].shape, operands, m[id].attrs, m[id].called);
    m[copy].extras = without_predecessors(m, m[id].extras);
    inside[index_of(id)] = copy;
  }
  m[callee].root = inside.at(index_of(root));
  Arena& arena = m.arena();
  auto* attrs = m.make<CallAttrs>();
  attrs->is_composite = true;
  attrs->name = arena.string(std::string(match.name));
  attrs->attributes = arena.string(match.attributes.empty() ? "{}" : match.attributes);
  const CompId called[] = {callee};
  const InstrId call = builder.op(Op::CALL, m[root].shape, match.operands, attrs, called);
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

}  // namespace

std::vector<std::string_view> pattern_names() {
  std::vector<std::string_view> names;
  for (const Row& row : kMatchers) names.push_back(row.name);
  return names;
}

Expected<bool> find_patterns(Module& module, PassContext& context) {
  bool changed = false;
  for (CompId c : flow_computations(module)) {
    const Graph graph(module, c);
    std::unordered_map<uint32_t, std::pair<Match, std::vector<InstrId>>> found;  // by root of the match
    std::unordered_set<uint32_t> taken;
    std::vector<InstrId> order = module[c].order, reversed(order.rbegin(), order.rend());
    for (const auto& [name, matcher, ends_late] : kMatchers) {
      if (context.wants_pattern && !context.wants_pattern(name)) continue;
      for (InstrId id : ends_late ? reversed : order) {
        if (taken.contains(index_of(id)) || !module[id].shape.is_array()) continue;
        const auto match = matcher(graph, id);
        const auto body = match ? body_of(graph, id, *match) : std::nullopt;
        if (!body) continue;
        const bool overlaps =
            std::any_of(body->begin(), body->end(), [&](InstrId member) { return taken.contains(index_of(member)); });
        if (overlaps) continue;
        for (InstrId member : *body)
          if (!is_repeatable(module, member)) taken.insert(index_of(member));
        found.try_emplace(index_of(id), *match, *body);
      }
    }
    if (found.empty()) continue;
    Rewriter rewriter(module, c);
    for (InstrId id : rewriter.instructions()) {
      rewriter.enter(id);
      const auto it = found.find(index_of(id));
      if (it == found.end()) {
        rewriter.keep(id);
        continue;
      }
      for (InstrId& o : it->second.first.operands) o = rewriter.now(o);
      rewriter.replace(id, make_call(rewriter.builder(), id, it->second.first, it->second.second));
    }
    changed |= rewriter.finish();
    COLLET_TRY(rewriter.builder().status());
  }
  if (changed) order_computations(module);
  return changed;
}

}  // namespace collet::hlo
