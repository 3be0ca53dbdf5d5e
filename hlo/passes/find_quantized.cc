// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include "hlo/passes/pattern_graph.h"

/// \file
/// Finds the patterns of quantized models: products of integers and what follows them, products of dequantized values,
/// quantization itself. docs/patterns.md says what each computes, and what its attributes mean.

namespace collet::hlo {
namespace {

// Limits of what is looked at for one root, so that the time for a program grows with its size: ops in a row that clamp
// or move, and products of factors inside each other.
constexpr int kMostSteps = 16, kMostFactors = 4;

bool is_narrow(Type type) {
  return type != Type::PRED && type_info(type).bits <= 8 && (is_integer(type) || is_float(type));
}
bool is_narrow_integer(Type type) {
  return is_integer(type) && type_info(type).bits <= 8;
}

/// Returns the value of all elements of a constant of integers or floats, if they are equal.
std::optional<double> splat_number(const Graph& g, InstrId id) {
  const Literal* value = splat_value(g.module(), id);
  if (!value) return std::nullopt;
  const Type type = value->shape().type();
  if (is_float(type)) return value->as_double(0);
  if (is_integer(type) && type_info(type).bits <= 32) return static_cast<double>(value->as_int(0));
  return std::nullopt;
}

/// A number, or an array that is broadcast.
struct Parameter {
  std::optional<double> number;
  InstrId array = InstrId::None;  ///< if there is no number
  std::vector<int64_t> dims;      ///< of the result, along which the array runs
};

/// Returns the value of all elements of a constant, if it can stand in an attribute.
std::optional<double> finite_number(const Graph& g, InstrId id) {
  const auto number = splat_number(g, id);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::optional<Parameter> parameter(const Graph& g, InstrId id) {
  if (const auto number = finite_number(g, id)) return Parameter{number, InstrId::None, {}};
  if (g.is(id, Op::BROADCAST)) {
    const Dims dims = g[id].as<BroadcastAttrs>().dimensions;
    return Parameter{std::nullopt, g[id].operand(0), {dims.begin(), dims.end()}};
  }
  // A vector is reshaped, not broadcast, where all other dimensions have the size 1.
  if (g.is(id, Op::RESHAPE) && g.shape(g[id].operand(0)).rank() == 1)
    for (int64_t d = 0; d < g.shape(id).rank(); ++d)
      if (g.shape(id).dim(static_cast<int>(d)) == g.shape(id).element_count())
        return Parameter{std::nullopt, g[id].operand(0), {d}};
  return std::nullopt;
}

std::string integers(const std::vector<int64_t>& list) {
  std::string out = list.empty() ? "array<i64" : "array<i64: ";
  for (size_t i = 0; i < list.size(); ++i) out += (i ? ", " : "") + std::to_string(list[i]);
  return out + ">";
}

/// An attribute or operand of a quantized pattern, without "_dims", and the COLLET_FEATURE_* for which it stands.
struct AttributeFeature {
  std::string_view name;
  uint32_t feature;
};
constexpr AttributeFeature kAttributes[] = {
    {"activation", 0},
    {"activation_high", 0},
    {"activation_low", 0},
    {"bias", 0},
    {"bias_sign", COLLET_FEATURE_TERMS},
    {"bias_type", 0},
    {"factor", 0},
    {"features", 0},
    {"high", 0},
    {"k", 0},
    {"k_group", 0},
    {"k_scale", 0},
    {"lhs", 0},
    {"lhs_group", 0},
    {"lhs_pad_high", COLLET_FEATURE_PADDING},
    {"lhs_pad_interior", COLLET_FEATURE_PADDING},
    {"lhs_pad_low", COLLET_FEATURE_PADDING},
    {"lhs_pad_value", COLLET_FEATURE_PADDING},
    {"lhs_scale", 0},
    {"lhs_zero_point", COLLET_FEATURE_ZERO_POINTS},
    {"low", 0},
    {"mask", 0},
    {"operands", 0},
    {"q", 0},
    {"result_factor", 0},
    {"result_scale", 0},
    {"rhs", 0},
    {"rhs_group", 0},
    {"rhs_scale", 0},
    {"rhs_sign", COLLET_FEATURE_TERMS},
    {"rhs_zero_point", COLLET_FEATURE_ZERO_POINTS},
    {"rounding", 0},
    {"scale", 0},
    {"scale_type", COLLET_FEATURE_SHORT_FLOATS},
    {"second_bias", COLLET_FEATURE_TERMS},
    {"second_bias_sign", COLLET_FEATURE_TERMS},
    {"second_scale", 0},
    {"step_type", COLLET_FEATURE_SHORT_FLOATS},
    {"v", 0},
    {"v_group", 0},
    {"v_scale", 0},
    {"weights", 0},
    {"weights_group", 0},
    {"weights_scale", 0},
    {"weights_side", 0},
    {"weights_zero_point", COLLET_FEATURE_ZERO_POINTS},
    {"x", 0},
    {"zero_point", 0},
    {"zero_point_added", 0},
};

/// Returns the feature that an attribute or operand needs. One that is not in the table reaches no device that reads
/// attributes: whatever is new needs a feature of its own, or devices that do not know it compute wrong results.
uint32_t feature_of(std::string_view name) {
  if (name.ends_with("_dims")) name.remove_suffix(5);
  for (const AttributeFeature& one : kAttributes)
    if (one.name == name) return one.feature;
  return COLLET_FEATURE_ALL;
}

/// Operands and attributes of a match while it is made.
class Group {
 public:
  void attribute(const std::string& name, std::string value) {
    features_ |= feature_of(name);
    attributes_[name] = std::move(value);
  }
  void number(const std::string& name, double value) { attribute(name, hlo::number(value) + " : f64"); }
  void integer(const std::string& name, int64_t value) { attribute(name, std::to_string(value) + " : i64"); }
  void word(const std::string& name, const std::string& value) { attribute(name, "\"" + value + "\""); }
  void operand(const std::string& name, InstrId id) {
    features_ |= feature_of(name);
    operands_.push_back(id);
    names_ += (names_.empty() ? "" : ",") + name;
  }
  /// Adds a number as an attribute, and an array as an operand, with an attribute for its dimensions.
  void parameter(const std::string& name, const Parameter& value) {
    if (value.number) {
      number(name, *value.number);
      return;
    }
    operand(name, value.array);
    attribute(name + "_dims", integers(value.dims));
    if (!name.ends_with("bias")) needs(COLLET_FEATURE_CHANNELS);
  }

  /// States that the group needs COLLET_FEATURE_* that do not follow from the name of an attribute.
  void needs(uint32_t features) { features_ |= features; }

  Match finish(std::string_view name) {
    word("operands", names_);
    if (features_ != 0) integer("features", features_);
    std::string text;
    for (const auto& [key, value] : attributes_) text += (text.empty() ? "{" : ", ") + key + " = " + value;
    Match out{name, operands_, text + "}"};
    out.features = features_;
    return out;
  }

 private:
  std::vector<InstrId> operands_;
  uint32_t features_ = 0;
  std::string names_;
  std::map<std::string, std::string> attributes_;
};

/// Bounds of a clamp, or of a maximum or minimum with a number.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
};

/// If `id` limits a value by numbers, returns the value and narrows `bounds`: those of what follows are applied later.
std::optional<InstrId> limited(const Graph& g, InstrId id, Bounds& bounds) {
  const auto narrow = [&](std::optional<double> low, std::optional<double> high) {
    if (low) bounds.low = std::min(std::max(bounds.low, *low), bounds.high);
    if (high) bounds.high = std::max(std::min(bounds.high, *high), bounds.low);
  };
  if (g.is(id, Op::CLAMP)) {
    const auto low = splat_number(g, g[id].operand(0)), high = splat_number(g, g[id].operand(2));
    if (!low || !high || !(*low <= *high)) return std::nullopt;
    narrow(low, high);
    return g[id].operand(1);
  }
  if (!g.is(id, Op::MAXIMUM) && !g.is(id, Op::MINIMUM)) return std::nullopt;
  for (uint32_t side = 0; side < 2; ++side) {
    const auto bound = splat_number(g, g[id].operand(side));
    if (!bound || std::isnan(*bound)) continue;
    if (g.is(id, Op::MAXIMUM))
      narrow(bound, std::nullopt);
    else
      narrow(std::nullopt, bound);
    return g[id].operand(1 - side);
  }
  return std::nullopt;
}

/// Does the same with all limits in a row. Returns `id` if there is none.
InstrId all_limited(const Graph& g, InstrId id, Bounds& bounds) {
  for (int step = 0; step < kMostSteps; ++step) {
    const auto before = limited(g, id, bounds);
    if (!before) break;
    id = *before;
  }
  return id;
}

/// The steps from real values to integers: rounding, zero point and clamp.
struct Rounding {
  Bounds bounds;  ///< of the result
  double zero = 0;
  bool zero_first = false;   ///< the zero point is added before rounding
  bool away = false;         ///< ties are rounded away from zero
  bool in_integers = false;  ///< the zero point is added to s32, which wraps around where the real value is large
  Type type = Type::F32;     ///< in which it is computed
};

/// True for the types in which groups may compute what follows a sum. Each step is rounded to the type.
bool is_step_type(Type type) {
  return type == Type::F32 || type == Type::BF16 || type == Type::F16;
}

bool is_whole(double x) {
  return std::isinf(x) || x == std::floor(x);
}

/// A value to which a whole number is added.
struct WithZeroPoint {
  InstrId before;
  double number;
};
std::optional<WithZeroPoint> with_zero_point(const Graph& g, InstrId id) {
  const bool plus = g.is(id, Op::ADD);
  if (!plus && !g.is(id, Op::SUBTRACT)) return std::nullopt;
  const auto right = splat_number(g, g[id].operand(1)), left = plus ? splat_number(g, g[id].operand(0)) : std::nullopt;
  const auto number = right ? right : left;
  if (!number || !is_whole(*number) || !(std::abs(*number) <= 0x1p31)) return std::nullopt;
  return WithZeroPoint{g[id].operand(right ? 0 : 1), plus ? *number : -*number};
}

/// If `root` is integers of at most 8 bits that were rounded, returns the value before zero point, rounding and clamps.
std::optional<InstrId> rounded(const Graph& g, InstrId root, Rounding& out) {
  const Type type = g.shape(root).type();
  if (!is_narrow_integer(type)) return std::nullopt;
  const int bits = type_info(type).bits;
  Bounds stored{is_signed(type) ? -std::ldexp(1.0, bits - 1) : 0,
                std::ldexp(1.0, is_signed(type) ? bits - 1 : bits) - 1};
  const Bounds whole_type = stored;
  InstrId id = all_limited(g, root, stored);
  if (!g.is(id, Op::CONVERT)) return std::nullopt;
  id = g[id].operand(0);
  // A conversion from floats saturates. One from integers of a wider type does not: then there must be a clamp.
  Bounds before_narrowing;
  const bool wraps = is_integer(g.shape(id).type());
  if (wraps) {
    id = all_limited(g, id, before_narrowing);
    // Other types than s32 would saturate or wrap around before the zero point is added.
    if (const auto zero = with_zero_point(g, id); zero && g.shape(id).type() == Type::S32) {
      out.zero = zero->number;
      out.in_integers = true;
      id = zero->before;
    }
    if (!g.is(id, Op::CONVERT)) return std::nullopt;
    id = g[id].operand(0);
  }
  if (!is_step_type(g.shape(id).type())) return std::nullopt;
  out.type = g.shape(id).type();
  bool round = false, zero = out.in_integers;
  for (int step = 0; step < kMostSteps; ++step) {
    if (!zero) {
      // A clamp to whole numbers may come before or after rounding. Below the zero point it is another.
      Bounds bounds = before_narrowing;
      if (const auto before = limited(g, id, bounds); before && is_whole(bounds.low) && is_whole(bounds.high)) {
        before_narrowing = bounds;
        id = *before;
        continue;
      }
    }
    if (!round && (g.is(id, Op::ROUND_NEAREST_EVEN) || g.is(id, Op::ROUND_NEAREST_AFZ))) {
      round = true;
      out.away = g.is(id, Op::ROUND_NEAREST_AFZ);
      id = g[id].operand(0);
      continue;
    }
    const auto added = zero ? std::nullopt : with_zero_point(g, id);
    if (!added) break;
    zero = true;
    out.zero = added->number;
    out.zero_first = round;
    id = added->before;
  }
  if (!round) return std::nullopt;
  if (wraps && (before_narrowing.low < whole_type.low || before_narrowing.high > whole_type.high)) return std::nullopt;
  const auto inside = [&](double x) { return std::clamp(x, stored.low, stored.high); };
  out.bounds = {inside(before_narrowing.low), inside(before_narrowing.high)};
  return id;
}

void add_rounding(Group& group, const Rounding& r) {
  group.integer("low", static_cast<int64_t>(r.bounds.low));
  group.integer("high", static_cast<int64_t>(r.bounds.high));
  group.integer("zero_point", static_cast<int64_t>(r.zero));
  if (r.zero != 0) group.word("zero_point_added", r.zero_first ? "before_rounding" : "after_rounding");
  group.word("rounding", r.away ? "away" : "even");
  if (r.type != Type::F32) group.word("step_type", std::string(type_info(r.type).text));
}

/// The last scaling before rounding: a division by the result's scale, or a product with its inverse.
struct ResultScale {
  std::string name;  ///< "result_scale", a divisor, or "result_factor"; empty: none
  Parameter value;
};

/// Returns the value before the scaling; nothing if `id` is none.
std::optional<InstrId> result_scaled(const Graph& g, InstrId id, ResultScale& out) {
  if (g.is(id, Op::DIVIDE)) {
    const auto by = parameter(g, g[id].operand(1));
    if (!by) return std::nullopt;
    out = {"result_scale", *by};
    return g[id].operand(0);
  }
  if (!g.is(id, Op::MULTIPLY)) return std::nullopt;
  for (uint32_t side = 0; side < 2; ++side)
    if (const auto by = parameter(g, g[id].operand(side)); by && !parameter(g, g[id].operand(1 - side))) {
      out = {"result_factor", *by};
      return g[id].operand(1 - side);
    }
  return std::nullopt;
}

/// The least and the largest magnitude of a parameter whose elements are all positive, or all of any sign.
struct Magnitudes {
  double least = 0, most = std::numeric_limits<double>::infinity();
  bool positive = false;
};

/// Returns what is known of a parameter when the program is compiled.
Magnitudes magnitudes(const Graph& g, const Parameter& one) {
  if (one.number) return {std::abs(*one.number), std::abs(*one.number), *one.number > 0};
  const Literal* value = constant_value(g.module(), one.array);
  if (!value || value->element_count() == 0) return {};
  Magnitudes out{std::numeric_limits<double>::infinity(), 0, true};
  for (int64_t i = 0; i < value->element_count(); ++i) {
    const double x = value->as_double(i);
    if (!std::isfinite(x)) return {};
    out = {std::min(out.least, std::abs(x)), std::max(out.most, std::abs(x)), out.positive && x > 0};
  }
  return out;
}

/// True if max(x, 0) may be computed before or after products with these, with the same result.
bool keep_sign(const Graph& g, const std::vector<Parameter>& factors) {
  constexpr double kLeast = 1e-30;  // products of integers with it are not zero in any of the step types
  return std::all_of(factors.begin(), factors.end(), [&](const Parameter& one) {
    const Magnitudes known = magnitudes(g, one);
    return known.positive && known.least >= kLeast;
  });
}

/// True if the zero point is added after rounding, or if it is the same because no element before the rounding has a larger
/// magnitude than `most` times the factors.
bool adds_zero_point(const Graph& g, const Rounding& r, double most, const std::vector<Parameter>& factors,
                     const ResultScale& scale, const std::optional<Parameter>& bias = {}) {
  if (!r.in_integers) return true;
  // An infinity of a shorter type is not ruled out by the limit.
  if (r.type != Type::F32) return false;
  for (const Parameter& one : factors) most *= magnitudes(g, one).most;
  if (bias) most += magnitudes(g, *bias).most;
  if (scale.name == "result_factor") most *= magnitudes(g, scale.value).most;
  if (scale.name == "result_scale") most /= magnitudes(g, scale.value).least;
  return most + std::abs(r.zero) <= 0x1p30;  // far below the limit of s32, so that rounding errors do not matter
}

/// Matches products of parameters.
bool factors_of(const Graph& g, InstrId id, std::vector<Parameter>& out, int depth) {
  if (const auto one = parameter(g, id)) {
    out.push_back(*one);
    return true;
  }
  return depth > 0 && g.is(id, Op::MULTIPLY) && factors_of(g, g[id].operand(0), out, depth - 1) &&
         factors_of(g, g[id].operand(1), out, depth - 1);
}

/// If `id` is integers, converted to floats and multiplied by parameters, returns the integers.
std::optional<InstrId> scaled_integers(const Graph& g, InstrId id, std::vector<Parameter>& factors,
                                       int depth = kMostFactors) {
  if (g.is(id, Op::CONVERT)) {
    const InstrId from = g[id].operand(0);
    if (is_step_type(g.shape(id).type()) && is_integer(g.shape(from).type())) return from;
    return std::nullopt;
  }
  if (depth == 0 || !g.is(id, Op::MULTIPLY)) return std::nullopt;
  for (uint32_t side = 0; side < 2; ++side) {
    const size_t before = factors.size();
    if (const auto x = scaled_integers(g, g[id].operand(side), factors, depth - 1))
      if (factors_of(g, g[id].operand(1 - side), factors, depth - 1)) return x;
    factors.resize(before);
  }
  return std::nullopt;
}

/// Adds the factors: one number and at most two arrays.
bool add_factors(Group& group, const std::vector<Parameter>& factors) {
  int numbers = 0, arrays = 0;
  for (const Parameter& one : factors)
    if (one.number && ++numbers == 1)
      group.parameter("factor", one);
    else if (!one.number && ++arrays <= 2)
      group.parameter(arrays == 1 ? "scale" : "second_scale", one);
    else
      return false;
  return true;
}

/// An operand of an integer product: (stored - zero), widened.
struct IntegerOperand {
  InstrId stored = InstrId::None;
  std::optional<Parameter> zero;  ///< its dims are of the operand
};

/// Returns the operand of a product before it was widened, and what is subtracted from it then.
IntegerOperand integer_operand(const Graph& g, InstrId id) {
  IntegerOperand out{id, {}};
  const bool plus = g.is(id, Op::ADD);
  if ((plus || g.is(id, Op::SUBTRACT)) && g.shape(id).type() == Type::S32)
    for (uint32_t side = plus ? 0 : 1; side < 2 && !out.zero; ++side) {
      auto zero = parameter(g, g[id].operand(side));
      if (!zero || !g.is(g[id].operand(1 - side), Op::CONVERT) || (plus && !zero->number)) continue;
      if (plus) zero->number = -*zero->number;
      out = {g[id].operand(1 - side), zero};
    }
  if (g.is(out.stored, Op::CONVERT) && is_narrow_integer(g.shape(g[out.stored].operand(0)).type())) {
    out.stored = g[out.stored].operand(0);
    return out;
  }
  return {id, {}};
}

/// Changes dimensions of an operand of a product to those of its result; false where one is summed over.
bool to_result_dims(const Graph& g, InstrId product, uint32_t side, std::vector<int64_t>& dims) {
  const Instruction& instr = g[product];
  if (instr.op == Op::CONVOLUTION) {
    const auto& labels = instr.as<ConvolutionAttrs>().labels;
    for (int64_t& d : dims) {
      if (side != 1 || d != labels.kernel_output_feature) return false;
      d = labels.output_feature;
    }
    return true;
  }
  const auto& attrs = instr.as<DotAttrs>();
  const auto place = [](const Dims& list, int64_t d) { return std::find(list.begin(), list.end(), d) - list.begin(); };
  const Dims &batch = side == 0 ? attrs.lhs_batch : attrs.rhs_batch,
             &summed = side == 0 ? attrs.lhs_contracting : attrs.rhs_contracting;
  const auto lists = [](const Dims& a, const Dims& b) { return static_cast<int64_t>(a.size() + b.size()); };
  const int64_t lhs_free = g.shape(instr.operand(0)).rank() - lists(attrs.lhs_batch, attrs.lhs_contracting);
  for (int64_t& d : dims) {
    if (place(summed, d) != static_cast<int64_t>(summed.size())) return false;
    if (const int64_t at = place(batch, d); at != static_cast<int64_t>(batch.size())) {
      d = at;
      continue;
    }
    int64_t before = 0;  // free dimensions of the operand before this one
    for (int64_t other = 0; other < d; ++other)
      before += place(batch, other) == static_cast<int64_t>(batch.size()) &&
                place(summed, other) == static_cast<int64_t>(summed.size());
    d = static_cast<int64_t>(batch.size()) + (side == 0 ? 0 : lhs_free) + before;
  }
  return true;
}

/// The part of a product's group from the product to the root.
struct Epilogue {
  std::optional<Rounding> rounding;  ///< if the result is integers
  ResultScale result_scale;
  std::optional<Bounds> activation;
  std::optional<Parameter> bias;  ///< added to the floats
  Type type = Type::F32;          ///< in which all of it is computed
};

/// Integers that are added to the sum of an integer product, or subtracted from it.
struct IntegerTerm {
  Parameter value;
  bool subtracted = false;
};

/// If `id` is a sum or difference of a value and a parameter, returns the value and adds the parameter.
std::optional<InstrId> without_term(const Graph& g, InstrId id, std::vector<IntegerTerm>& terms) {
  if (g.is(id, Op::ADD) || g.is(id, Op::SUBTRACT))
    for (uint32_t side = g.is(id, Op::ADD) ? 0 : 1; side < 2; ++side)
      if (auto value = parameter(g, g[id].operand(side))) {
        terms.push_back({*std::move(value), g.is(id, Op::SUBTRACT)});
        return g[id].operand(1 - side);
      }
  return std::nullopt;
}

void add_epilogue(Group& group, const Epilogue& e, const std::vector<IntegerTerm>& terms = {}) {
  if (e.bias) group.parameter("bias", *e.bias);
  for (size_t i = terms.size(); i-- > 0;) {
    const std::string name = i + 1 == terms.size() ? "bias" : "second_bias";  // in the order of the program
    group.parameter(name, terms[i].value);
    if (terms[i].subtracted) group.word(name + "_sign", "minus");
  }
  group.word("bias_type", !terms.empty() ? "integer" : e.bias ? "float" : "none");
  if (e.activation) {
    const bool relu = e.activation->low == 0 && std::isinf(e.activation->high);
    group.word("activation", relu ? "relu" : "clamp");
    if (!relu && std::isfinite(e.activation->low)) group.number("activation_low", e.activation->low);
    if (!relu && std::isfinite(e.activation->high)) group.number("activation_high", e.activation->high);
  } else {
    group.word("activation", "none");
  }
  if (!e.result_scale.name.empty()) group.parameter(e.result_scale.name, e.result_scale.value);
  if (e.rounding) add_rounding(group, *e.rounding);
}

/// Matches an epilogue from `root` upwards, and what `core` matches before it. `core` is called with the value before
/// the epilogue, until it returns true.
bool with_epilogue(const Graph& g, InstrId root, const std::function<bool(InstrId, const Epilogue&)>& core) {
  Epilogue e;
  InstrId id = root;
  if (is_narrow_integer(g.shape(root).type())) {
    Rounding rounding;
    const auto before = rounded(g, root, rounding);
    if (!before) return false;
    e.rounding = rounding;
    e.type = rounding.type;
    id = *before;
  } else if (!is_float(g.shape(root).type())) {
    return false;
  } else {
    id = g.before_narrowing(id);
    e.type = g.shape(id).type();
  }
  const auto from_activation = [&](InstrId at) {
    Bounds bounds;
    const InstrId before = all_limited(g, at, bounds);
    e.activation = before == at ? std::nullopt : std::optional(bounds);
    at = before;
    e.bias.reset();
    if (g.is(at, Op::ADD))
      for (uint32_t side = 0; side < 2; ++side)
        if (const auto bias = parameter(g, g[at].operand(side))) {
          e.bias = bias;
          if (core(g[at].operand(1 - side), e)) return true;
        }
    e.bias.reset();
    return core(at, e);
  };
  if (e.rounding) {
    ResultScale scale;
    if (const auto before = result_scaled(g, id, scale)) {
      e.result_scale = scale;
      if (from_activation(*before)) return true;
      e.result_scale = {};
    }
  }
  return from_activation(id);
}

/// Matches (x w + bias) * scale with integers x and w, and what follows.
std::optional<Match> integer_product(const Graph& g, InstrId root, Op op, std::string_view name) {
  std::optional<Match> out;
  with_epilogue(g, root, [&](InstrId id, const Epilogue& e) {
    std::vector<Parameter> factors;
    // A sum may be scaled in f32 before it is rounded to the type of what follows.
    const bool narrowed = e.type != Type::F32 && g.is(id, Op::CONVERT) && g.shape(g[id].operand(0)).type() == Type::F32;
    const Type scaled_in = narrowed ? Type::F32 : e.type;
    if (!is_step_type(e.type)) return false;
    auto sum = scaled_integers(g, narrowed ? g[id].operand(0) : id, factors);
    if (!sum) return false;
    Epilogue epilogue = e;
    // A single factor is the scale of the product, not the inverse of the result's.
    if (factors.empty() && e.result_scale.name == "result_factor" && !e.activation && !e.bias) {
      factors.push_back(e.result_scale.value);
      epilogue.result_scale = {};
    }
    if (factors.empty() && !e.rounding) return false;
    if (e.rounding && !adds_zero_point(g, *e.rounding, 0x1p31, factors, epilogue.result_scale, e.bias)) return false;
    Bounds of_integers;
    if (const InstrId before = all_limited(g, *sum, of_integers); before != *sum) {
      const bool is_relu = of_integers.low == 0 && std::isinf(of_integers.high);
      if (!is_relu || e.activation || e.bias || !keep_sign(g, factors)) return false;
      epilogue.activation = of_integers;
      sum = before;
    }
    std::vector<IntegerTerm> terms;
    while (terms.size() < 2 && !e.bias) {
      const auto before = without_term(g, *sum, terms);
      if (!before) break;
      sum = before;
    }
    if (!g.is(*sum, op) || g.shape(*sum).type() != Type::S32) return false;
    IntegerOperand operands[] = {integer_operand(g, g[*sum].operand(0)), integer_operand(g, g[*sum].operand(1))};
    InstrId lhs = operands[0].stored;
    const InstrId rhs = operands[1].stored;
    if (!is_narrow_integer(g.shape(lhs).type()) || !is_narrow_integer(g.shape(rhs).type())) return false;
    for (uint32_t side = 0; side < 2; ++side)
      if (operands[side].zero && !to_result_dims(g, *sum, side, operands[side].zero->dims)) return false;
    Group group;
    if (op == Op::CONVOLUTION && g.is(lhs, Op::PAD))
      if (const auto value = splat_number(g, g[lhs].operand(1))) {
        const Padding& padding = g[lhs].as<PadAttrs>().padding;
        group.integer("lhs_pad_value", static_cast<int64_t>(*value));
        group.attribute("lhs_pad_low", integers({padding.low.begin(), padding.low.end()}));
        group.attribute("lhs_pad_high", integers({padding.high.begin(), padding.high.end()}));
        group.attribute("lhs_pad_interior", integers({padding.interior.begin(), padding.interior.end()}));
        lhs = g[lhs].operand(0);
      }
    group.operand("lhs", lhs);
    group.operand("rhs", rhs);
    if (operands[0].zero) group.parameter("lhs_zero_point", *operands[0].zero);
    if (operands[1].zero) group.parameter("rhs_zero_point", *operands[1].zero);
    if (!add_factors(group, factors)) return false;
    if (scaled_in != Type::F32) group.word("scale_type", std::string(type_info(scaled_in).text));
    if (e.type != Type::F32 && !e.rounding) group.word("step_type", std::string(type_info(e.type).text));
    add_epilogue(group, epilogue, terms);
    out = group.finish(name);
    return true;
  });
  return out;
}

/// Integers or short floats with a scale, as a product reads them.
struct Dequantized {
  InstrId stored = InstrId::None;
  Parameter scale;                ///< without dims: the region shows how its elements are spread
  std::optional<Parameter> zero;  ///< subtracted before the scale
  int64_t shared = 0;             ///< the number of elements of `stored` for each scale
  bool in_blocks = false;         ///< scales or zero points differ along the dimensions that are summed over
};

/// Returns the dimensions of the operand of a reshape whose elements are those of dimensions `dims` of its result.
std::vector<int64_t> before_reshape(const Shape& from, const Shape& to, const std::vector<int64_t>& dims) {
  std::vector<int64_t> out;
  int from_end = 0, to_end = 0;
  // Each step takes the fewest dimensions of both shapes that have equally many elements.
  while (from_end < from.rank() && from.element_count() != 0) {
    const int first = from_end;
    int64_t before = from.dim(from_end++), after = 1;
    bool wanted = false;
    const auto take = [&] {
      wanted |= std::find(dims.begin(), dims.end(), to_end) != dims.end();
      after *= to.dim(to_end++);
    };
    if (to_end < to.rank()) take();
    while (before != after)
      if (before < after)
        before *= from.dim(from_end++);
      else
        take();
    for (int d = first; wanted && d < from_end; ++d) out.push_back(d);
  }
  return out;
}

/// If `id` moves or converts elements, changes `dims` to those of its operand and returns that.
std::optional<InstrId> before_move(const Graph& g, InstrId id, std::vector<int64_t>& dims) {
  const bool reshapes = g.is(id, Op::RESHAPE), transposes = g.is(id, Op::TRANSPOSE);
  if (!reshapes && !transposes && !g.is(id, Op::CONVERT)) return std::nullopt;
  const InstrId from = g[id].operand(0);
  if (reshapes) dims = before_reshape(g.shape(from), g.shape(id), dims);
  for (int64_t& d : dims)
    if (transposes) d = g[id].as<DimensionsAttrs>().dimensions[static_cast<size_t>(d)];
  return from;
}

/// True if the elements of a value may differ along one of the dimensions.
bool varies(const Graph& g, InstrId id, std::vector<int64_t> dims) {
  while (true) {
    std::erase_if(dims, [&](int64_t d) { return g.shape(id).dim(static_cast<int>(d)) == 1; });
    if (dims.empty() || splat_number(g, id)) return false;
    if (g.is(id, Op::BROADCAST)) {
      const Dims mapping = g[id].as<BroadcastAttrs>().dimensions;
      std::vector<int64_t> before;
      for (size_t i = 0; i < mapping.size(); ++i)
        if (std::find(dims.begin(), dims.end(), mapping[i]) != dims.end()) before.push_back(static_cast<int64_t>(i));
      dims = std::move(before);
      id = g[id].operand(0);
    } else if (const auto from = before_move(g, id, dims)) {
      id = *from;
    } else {
      return true;
    }
  }
}

/// Returns the dimensions of an operand of a product that it sums over.
std::vector<int64_t> summed_dims(const Graph& g, InstrId product, uint32_t side) {
  if (g.is(product, Op::DOT)) {
    const auto& attrs = g[product].as<DotAttrs>();
    const Dims dims = side == 0 ? attrs.lhs_contracting : attrs.rhs_contracting;
    return {dims.begin(), dims.end()};
  }
  const auto& labels = g[product].as<ConvolutionAttrs>().labels;
  const Dims window = side == 0 ? labels.input_spatial : labels.kernel_spatial;
  std::vector<int64_t> out(window.begin(), window.end());
  out.push_back(side == 0 ? labels.input_feature : labels.kernel_input_feature);
  return out;
}

/// Returns the number, or the array from which reshapes, broadcasts and conversions make `id`, if it has fewer elements.
std::optional<Parameter> spread(const Graph& g, InstrId id) {
  InstrId from = id;
  for (int step = 0;; ++step) {
    if (const auto number = finite_number(g, from)) return Parameter{number, InstrId::None, {}};
    const bool spreads =
        g.is(from, Op::BROADCAST) || g.is(from, Op::RESHAPE) || g.is(from, Op::CONVERT) || g.is(from, Op::TRANSPOSE);
    if (!spreads || step == kMostSteps) break;
    from = g[from].operand(0);
  }
  if (g.shape(from).element_count() >= g.shape(id).element_count()) return std::nullopt;
  return Parameter{std::nullopt, from, {}};
}

/// Returns the narrow array from which reshapes, transposes, conversions and one subtraction make `id`. `summed` are the
/// dimensions of `id` that a product sums over.
std::optional<InstrId> stored(const Graph& g, InstrId id, std::vector<int64_t> summed, Dequantized& out) {
  bool converted = false;
  for (int step = 0; step < kMostSteps && !is_narrow(g.shape(id).type()); ++step) {
    converted |= g.is(id, Op::CONVERT);
    if (g.is(id, Op::SUBTRACT) && !out.zero) {
      out.zero = spread(g, g[id].operand(1));
      if (!out.zero) return std::nullopt;
      out.in_blocks |= varies(g, g[id].operand(1), summed);
      id = g[id].operand(0);
    } else if (const auto from = before_move(g, id, summed)) {
      id = *from;
    } else {
      return std::nullopt;
    }
  }
  return converted && is_narrow(g.shape(id).type()) ? std::optional(id) : std::nullopt;
}

/// If `id` is dequantized, returns what it is made of. `summed` are its dimensions that a product sums over.
std::optional<Dequantized> dequantized(const Graph& g, InstrId id, std::vector<int64_t> summed) {
  for (int step = 0; step < kMostSteps; ++step) {
    std::vector<int64_t> dims = summed;
    const auto from = before_move(g, id, dims);
    if (!from || !is_float(g.shape(*from).type()) || is_narrow(g.shape(*from).type())) break;
    id = *from;
    summed = std::move(dims);
  }
  if (!g.is(id, Op::MULTIPLY)) return std::nullopt;
  for (uint32_t side = 0; side < 2; ++side) {
    Dequantized out;
    const auto scale = spread(g, g[id].operand(1 - side));
    const auto numbers = scale ? stored(g, g[id].operand(side), summed, out) : std::nullopt;
    if (!numbers) continue;
    out.stored = *numbers;
    out.scale = *scale;
    out.in_blocks |= varies(g, g[id].operand(1 - side), summed);
    const int64_t scales = scale->number ? 1 : std::max<int64_t>(1, g.shape(scale->array).element_count());
    out.shared = g.shape(id).element_count() / scales;
    return out;
  }
  return std::nullopt;
}

/// Adds scale and zero point of an operand, and how many of its elements share them.
void add_scale(Group& group, const std::string& side, const Dequantized& one) {
  const auto add = [&](const std::string& name, const Parameter& value) {
    if (value.number) {
      group.number(name, *value.number);
      return;
    }
    group.operand(name, value.array);
    group.needs(COLLET_FEATURE_CHANNELS);
  };
  add(side + "_scale", one.scale);
  if (one.zero) add(side + "_zero_point", *one.zero);
  group.integer(side + "_group", one.shared);
  if (one.in_blocks) group.needs(COLLET_FEATURE_BLOCKS);
}

/// If `id` is (stored - zero) * scale, element by element, with a whole number as zero point, returns the parts.
std::optional<Dequantized> dequantized_elements(const Graph& g, InstrId id) {
  if (!g.is(id, Op::MULTIPLY)) return std::nullopt;
  for (uint32_t side = 0; side < 2; ++side) {
    auto scale = parameter(g, g[id].operand(1 - side));
    if (!scale) continue;
    Dequantized out;
    out.scale = *std::move(scale);
    InstrId x = g[id].operand(side);
    const bool plus = g.is(x, Op::ADD);
    for (uint32_t other = plus ? 0 : 1; other < 2 && !out.zero && (plus || g.is(x, Op::SUBTRACT)); ++other)
      if (const auto zero = finite_number(g, g[x].operand(other)); zero && is_whole(*zero)) {
        out.zero = Parameter{plus ? -*zero : *zero, InstrId::None, {}};
        x = g[x].operand(1 - other);
      }
    if (!g.is(x, Op::CONVERT) || !is_narrow_integer(g.shape(g[x].operand(0)).type())) continue;
    out.stored = g[x].operand(0);
    return out;
  }
  return std::nullopt;
}

std::optional<Match> scaled_product(const Graph& g, InstrId root, Op op, std::string_view name) {
  std::optional<Match> out;
  with_epilogue(g, root, [&](InstrId id, const Epilogue& e) {
    if (!g.is(id, op)) return false;
    const auto lhs = dequantized(g, g[id].operand(0), summed_dims(g, id, 0)),
               rhs = dequantized(g, g[id].operand(1), summed_dims(g, id, 1));
    if (!lhs || !rhs || (e.rounding && e.rounding->in_integers)) return false;
    Group group;
    group.operand("lhs", lhs->stored);
    group.operand("rhs", rhs->stored);
    add_scale(group, "lhs", *lhs);
    add_scale(group, "rhs", *rhs);
    add_epilogue(group, e);
    out = group.finish(name);
    return true;
  });
  return out;
}

}  // namespace

std::optional<Match> match_integer_dot(const Graph& g, InstrId root) {
  return integer_product(g, root, Op::DOT, "integer_dot");
}

std::optional<Match> match_integer_convolution(const Graph& g, InstrId root) {
  return integer_product(g, root, Op::CONVOLUTION, "integer_convolution");
}

std::optional<Match> match_scaled_dot(const Graph& g, InstrId root) {
  return scaled_product(g, root, Op::DOT, "scaled_dot");
}

std::optional<Match> match_scaled_convolution(const Graph& g, InstrId root) {
  return scaled_product(g, root, Op::CONVOLUTION, "scaled_convolution");
}

std::optional<Match> match_dequantized_dot(const Graph& g, InstrId root) {
  std::optional<Match> out;
  if (!is_float(g.shape(root).type())) return out;
  with_epilogue(g, root, [&](InstrId id, const Epilogue& e) {
    if (!g.is(id, Op::DOT)) return false;
    for (uint32_t side = 0; side < 2; ++side) {
      const auto weights = dequantized(g, g[id].operand(side), summed_dims(g, id, side));
      if (!weights) continue;
      Group group;
      group.operand("x", g[id].operand(1 - side));
      group.operand("weights", weights->stored);
      add_scale(group, "weights", *weights);
      group.word("weights_side", side == 0 ? "lhs" : "rhs");
      add_epilogue(group, e);
      out = group.finish("dequantized_dot");
      return true;
    }
    return false;
  });
  return out;
}

std::optional<Match> match_integer_add(const Graph& g, InstrId root) {
  std::optional<Match> out;
  if (!is_narrow_integer(g.shape(root).type())) return out;
  with_epilogue(g, root, [&](InstrId id, const Epilogue& e) {
    const bool minus = g.is(id, Op::SUBTRACT);
    if (e.bias || (!minus && !g.is(id, Op::ADD))) return false;
    Group group;
    const std::optional<Dequantized> sides[] = {dequantized_elements(g, g[id].operand(0)),
                                                dequantized_elements(g, g[id].operand(1))};
    if (!sides[0] || !sides[1]) return false;
    double most = 0;
    for (const auto& side : sides)
      most += (0x1p8 + (side->zero ? std::abs(*side->zero->number) : 0)) * magnitudes(g, side->scale).most;
    if (!adds_zero_point(g, *e.rounding, most, {}, e.result_scale)) return false;
    group.operand("lhs", sides[0]->stored);
    group.operand("rhs", sides[1]->stored);
    for (size_t i = 0; i < 2; ++i) {
      const std::string name = i == 0 ? "lhs" : "rhs";
      group.parameter(name + "_scale", sides[i]->scale);
      if (sides[i]->zero) group.parameter(name + "_zero_point", *sides[i]->zero);
    }
    if (minus) group.word("rhs_sign", "minus");
    add_epilogue(group, e);
    out = group.finish("integer_add");
    return true;
  });
  return out;
}

std::optional<Match> match_requantize(const Graph& g, InstrId root) {
  Rounding rounding;
  const auto real = rounded(g, root, rounding);
  if (!real) return std::nullopt;
  ResultScale scale;
  std::vector<Parameter> factors;
  auto x = scaled_integers(g, *real, factors);
  if (!x) {
    const auto before = result_scaled(g, *real, scale);
    x = before ? scaled_integers(g, *before, factors) : std::nullopt;
  }
  if (!x || (factors.empty() && scale.name.empty())) return std::nullopt;
  if (!adds_zero_point(g, rounding, std::ldexp(1.0, type_info(g.shape(*x).type()).bits), factors, scale))
    return std::nullopt;
  Group group;
  group.operand("x", *x);
  if (!add_factors(group, factors)) return std::nullopt;
  if (!scale.name.empty()) group.parameter(scale.name, scale.value);
  if (rounding.type != Type::F32) group.word("scale_type", std::string(type_info(rounding.type).text));
  add_rounding(group, rounding);
  return group.finish("requantize");
}

std::optional<Match> match_quantize(const Graph& g, InstrId root) {
  Rounding rounding;
  const auto real = rounded(g, root, rounding);
  ResultScale scale;
  const auto x = real ? result_scaled(g, *real, scale) : std::nullopt;
  if (!x || parameter(g, *x) || rounding.in_integers) return std::nullopt;
  Group group;
  group.operand("x", *x);
  group.parameter(scale.name, scale.value);
  add_rounding(group, rounding);
  return group.finish("quantize");
}

std::optional<Match> with_quantized_cache(const Graph& g, Match attention) {
  const auto keys = dequantized(g, attention.operands[1], {}), values = dequantized(g, attention.operands[2], {});
  if (!keys || !values || keys->zero || values->zero) return std::nullopt;
  Group group;
  group.operand("q", attention.operands[0]);
  group.operand("k", keys->stored);
  group.operand("v", values->stored);
  add_scale(group, "k", *keys);
  add_scale(group, "v", *values);
  if (attention.operands.size() > 3) group.operand("mask", attention.operands[3]);
  const std::string more = attention.attributes.substr(1);  // those of attention follow
  Match out = group.finish("quantized_attention");
  out.attributes = out.attributes.substr(0, out.attributes.size() - 1) + ", " + more;
  return out;
}

}  // namespace collet::hlo
