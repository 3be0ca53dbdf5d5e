// SPDX-License-Identifier: Apache-2.0
#include "hlo/testing/random_writer.h"

namespace collet::hlo::testing::random {

void Writer::unary() {
  const auto v = pick(is_exact);
  if (!v) return;
  static const std::vector<std::string> kOps[] = {
      {"not"},
      {"negate", "abs", "sign", "not", "popcnt", "count-leading-zeros", "copy"},
      {"not", "popcnt", "count-leading-zeros", "negate"},
      {"negate", "abs", "sign", "floor", "ceil", "round-nearest-afz", "round-nearest-even", "copy"},
      {"negate", "copy"}};
  emit(*v->type, v->dims, state_.of(kOps[static_cast<size_t>(v->type->kind)]) + "(" + v->name + ")");
}

void Writer::inexact_unary() {
  static const std::vector<std::string> kOps = {"exponential",  "log",    "tanh", "sqrt",     "rsqrt",
                                                "sine",         "cosine", "tan",  "logistic", "exponential-minus-one",
                                                "log-plus-one", "cbrt",   "erf"};
  const auto v = pick([](const Value& x) { return x.exact && x.type->kind == Kind::Float; });
  if (v) emit(*v->type, v->dims, state_.of(kOps) + "(" + v->name + ")", false);
}

void Writer::binary() {
  const auto v = pick(is_exact);
  if (!v) return;
  static const std::vector<std::string> kOps[] = {
      {"and", "or", "xor", "add", "multiply", "maximum", "minimum"},
      {"add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor", "shift-left",
       "shift-right-logical", "shift-right-arithmetic", "power"},
      {"add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor", "shift-left",
       "shift-right-logical"},
      {"add", "subtract", "multiply", "maximum", "minimum"},
      {"add", "subtract"}};
  const Value w = mate(*v);
  std::string a = v->name, b = w.name;
  if (state_.one_in(2)) std::swap(a, b);
  emit(*v->type, v->dims, state_.of(kOps[static_cast<size_t>(v->type->kind)]) + "(" + a + ", " + b + ")");
}

void Writer::inexact_binary() {
  const auto v = pick([](const Value& x) { return x.exact && x.type->kind == Kind::Float; });
  if (!v) return;
  static const std::vector<std::string> kOps = {"divide", "atan2"};
  emit(*v->type, v->dims, state_.of(kOps) + "(" + v->name + ", " + mate(*v).name + ")", false);
}

void Writer::compare() {
  const auto v = pick(is_plain);
  if (!v) return;
  static const std::vector<std::string> kDirections = {"EQ", "NE", "LT", "LE", "GT", "GE"};
  emit(type("pred"), v->dims, "compare(" + v->name + ", " + mate(*v).name + "), direction=" + state_.of(kDirections));
}

void Writer::select() {
  const auto v = pick();
  if (!v) return;
  const Value w = mate(*v);
  const Value p = mate({"", &type("pred"), v->dims});
  emit(*v->type, v->dims, "select(" + p.name + ", " + v->name + ", " + w.name + ")", v->exact);
}

void Writer::clamp() {
  const auto v = pick([](const Value& x) { return is_plain(x) && x.type->kind != Kind::Pred; });
  if (!v) return;
  const Value low = constant(*v->type), high = constant(*v->type);
  emit(*v->type, v->dims, "clamp(" + low.name + ", " + v->name + ", " + high.name + ")");
}

void Writer::convert() {
  const auto v = pick(is_plain);
  if (!v) return;
  const TypeRow& to = state_.any_type();
  emit(to, v->dims, "convert(" + v->name + ")");
}

void Writer::complex_parts() {
  const auto v = pick([](const Value& x) { return x.type->name == "f32" || x.type->name == "c64"; });
  if (!v) return;
  if (v->type->kind == Kind::Complex)
    emit(type("f32"), v->dims, (state_.one_in(2) ? "real(" : "imag(") + v->name + ")", v->exact);
  else
    emit(type("c64"), v->dims, "complex(" + v->name + ", " + mate(*v).name + ")", v->exact);
}

// Computes an earlier expression again, for common subexpression elimination.
void Writer::again() {
  const auto v = pick();
  if (!v) return;
  const std::string head = "  " + v->name + " = ";
  const size_t at = text_.find(head);
  if (at == std::string::npos) return;
  const std::string line = text_.substr(at + head.size(), text_.find('\n', at) - at - head.size());
  if (line.find(" parameter(") != std::string::npos) return;
  Value copy = *v;
  copy.name = state_.name("v");
  text_ += "  " + copy.name + " = " + line + "\n";
  pool_.push_back(copy);
}

void Writer::map() {
  const auto v = pick(is_plain);
  if (!v || v->type->kind == Kind::Pred) return;
  Sizes dims;
  for (size_t i = 0; i < v->rank(); ++i) dims.push_back(static_cast<int64_t>(i));
  emit(*v->type, v->dims,
       "map(" + v->name + ", " + mate(*v).name + "), dimensions=" + list(dims) +
           ", to_apply=" + combiner("maximum", *v->type));
}

void Writer::is_finite() {
  const auto v = pick([](const Value& x) { return x.exact && x.type->kind == Kind::Float; });
  if (v) emit(type("pred"), v->dims, "is-finite(" + v->name + ")");
}

void Writer::reduce_precision() {
  const auto v = pick([](const Value& x) { return x.exact && x.type->kind == Kind::Float; });
  if (!v) return;
  // With few exponent bits, numbers become infinite, and sums of infinities are not exact.
  const int64_t exponent = state_.between(2, 8);
  emit(*v->type, v->dims,
       "reduce-precision(" + v->name + "), exponent_bits=" + std::to_string(exponent) +
           ", mantissa_bits=" + std::to_string(state_.between(1, 10)),
       exponent > 5);
}

// Only between integers, because the bits of a NaN are not defined.
void Writer::bitcast_convert() {
  static constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
      {"s8", "u8"}, {"s16", "u16"}, {"s32", "u32"}, {"s64", "u64"}};
  const auto v = pick([](const Value& x) {
    return x.exact && (x.type->kind == Kind::Signed || x.type->kind == Kind::Unsigned) && x.type->name != "s4" &&
           x.type->name != "u4";
  });
  if (!v) return;
  for (const auto& [a, b] : kPairs) {
    if (v->type->name != a && v->type->name != b) continue;
    emit(type(v->type->name == a ? b : a), v->dims, "bitcast-convert(" + v->name + ")");
    return;
  }
}

// One factor has powers of two, whose products are exact: the difference of two rounded products may be all rounding.
void Writer::complex_product() {
  const auto v = pick([](const Value& x) { return x.exact && x.type->kind == Kind::Complex; });
  if (!v) return;
  static const std::vector<std::string> kPowers = {"0", "1", "-1", "2", "-2", "0.5", "-4"};
  const Value c = emit(*v->type, {}, "constant((" + state_.of(kPowers) + ", " + state_.of(kPowers) + "))");
  const Value factor = v->dims.empty() ? c : emit(*v->type, v->dims, "broadcast(" + c.name + "), dimensions={}");
  const bool first = state_.one_in(2);
  emit(*v->type, v->dims, "multiply(" + (first ? factor : *v).name + ", " + (first ? *v : factor).name + ")", false);
}

}  // namespace collet::hlo::testing::random
