// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/case.h"

#include <fmt/format.h>

#include <algorithm>

namespace collet::conformance {

std::vector<Case> all_cases(bool full) {
  CaseList list(full);
#define COLLET_CASE_FAMILY(name) add_##name##_cases(list);
#include "conformance/cases/families.def"
  return std::move(list.cases());
}

std::string_view why_no_case(Op op) {
  switch (op) {
    case Op::ASYNC_START:
    case Op::ASYNC_UPDATE:
    case Op::ASYNC_DONE:
    case Op::COPY_START:
    case Op::COPY_DONE:
    case Op::ALL_GATHER_START:
    case Op::ALL_GATHER_DONE:
    case Op::ALL_REDUCE_START:
    case Op::ALL_REDUCE_DONE:
    case Op::COLLECTIVE_PERMUTE_START:
    case Op::COLLECTIVE_PERMUTE_DONE:
      return "a pair that the SDK makes one op before a backend sees it";
    case Op::INFEED:
    case Op::OUTFEED:
    case Op::SEND:
    case Op::SEND_DONE:
    case Op::RECV:
    case Op::RECV_DONE:
      return "needs a partner on the host";
    case Op::RNG:
    case Op::RNG_GET_AND_UPDATE_STATE:
      return "its numbers are not specified";
    case Op::DYNAMIC_RESHAPE:
      return "its result's size is known at run time alone";
    case Op::CUSTOM_CALL:
    case Op::DOMAIN:
    case Op::FUSION:
    case Op::PARAMETER:
    case Op::RAGGED_ALL_TO_ALL:
    case Op::ADD_DEPENDENCY:
    case Op::AFTER_ALL:
      return "stands in other cases, or has no meaning of its own";
    default:
      return {};
  }
}

Text& Text::computation(std::string_view name, std::string_view body) {
  computations_ += fmt::format("{} {{\n{}}}\n\n", name, body);
  return *this;
}

std::string Text::combiner(std::string_view op, Type type) {
  std::string name = fmt::format("{}_{}", op, type_name(type));
  if (std::find(combiners_.begin(), combiners_.end(), name) != combiners_.end()) return name;
  combiners_.push_back(name);
  const std::string shape = Shape::scalar(type).to_string();
  computation(name,
              fmt::format("  a = {0} parameter(0)\n  b = {0} parameter(1)\n  ROOT r = {0} {1}(a, b)\n", shape, op));
  return name;
}

std::string Text::parameter(const Shape& shape) {
  const int number = parameters_++;
  body_ += fmt::format("  p{0} = {1} parameter({0})\n", number, shape.to_string());
  return fmt::format("p{}", number);
}

std::string Text::line(const Shape& shape, std::string_view expression) {
  const int number = lines_++;
  body_ += fmt::format("  v{} = {} {}\n", number, shape.to_string(), expression);
  return fmt::format("v{}", number);
}

std::string Text::root(const Shape& shape, std::string_view expression) {
  return fmt::format("HloModule conformance\n\n{}ENTRY main {{\n{}  ROOT result = {} {}\n}}\n", computations_, body_,
                     shape.to_string(), expression);
}

std::string braces(std::span<const int64_t> values) {
  return fmt::format("{{{}}}", fmt::join(values, ","));
}

std::string dims_name(std::span<const int64_t> dims) {
  return dims.empty() ? "scalar" : fmt::format("{}", fmt::join(dims, "x"));
}

std::string_view type_name(Type type) {
  return hlo::type_info(type).text;
}

Bound sum_bound(Type type, double terms, bool wide) {
  if (!hlo::is_float(type) && !hlo::is_complex(type)) return {};
  return {.kind = Bound::Kind::Sum, .terms = std::max(terms, 1.0), .wide = wide};
}

ProductError product_error(hlo::Algorithm algorithm) {
  // The unit roundoffs of the shorter types. Tensor cores cut off what tf32 does not have, which is twice as much as rounding.
  constexpr double kF16 = 0x1p-11, kBf16 = 0x1p-8, kTf32 = 0x1p-10;
  // Tensor cores that add products of f8 fast keep 13 bits behind the point of the largest term.
  constexpr double kFastF8 = 0x1p-13;
  // Operands are split into parts, each of which has what the ones before lack. Of three products the one of both second parts is missing,
  // of six those below the square of a second part; nine are all of three parts.
  const auto three = [](double u) { return 4 * u * u; };
  constexpr double kBf16Cubed = kBf16 * kBf16 * kBf16;
  switch (algorithm) {
    case hlo::Algorithm::ANY_F8_ANY_F8_F32_FAST_ACCUM:
      return {.additions = kFastF8};
    case hlo::Algorithm::F16_F16_F16:
      return {.operands = 2 * kF16 + kF16 * kF16, .additions = kF16};
    case hlo::Algorithm::F16_F16_F32:
      return {.operands = 2 * kF16 + kF16 * kF16};
    case hlo::Algorithm::BF16_BF16_BF16:
      return {.operands = 2 * kBf16 + kBf16 * kBf16, .additions = kBf16};
    case hlo::Algorithm::BF16_BF16_F32:
      return {.operands = 2 * kBf16 + kBf16 * kBf16};
    case hlo::Algorithm::BF16_BF16_F32_X3:
      return {.operands = three(kBf16), .operations = 3};
    case hlo::Algorithm::BF16_BF16_F32_X6:
      return {.operands = 8 * kBf16Cubed, .operations = 6};
    case hlo::Algorithm::BF16_BF16_F32_X9:
      return {.operands = 4 * kBf16Cubed, .operations = 9};
    case hlo::Algorithm::TF32_TF32_F32:
      return {.operands = 2 * kTf32 + kTf32 * kTf32};
    case hlo::Algorithm::TF32_TF32_F32_X3:
      return {.operands = three(kTf32), .operations = 3};
    default:
      return {};
  }
}

hlo::Algorithm algorithm_of(const hlo::Instruction& instr) {
  if (instr.op == Op::DOT || instr.op == Op::SCALED_DOT) return instr.as<hlo::DotAttrs>().algorithm;
  return instr.op == Op::RAGGED_DOT ? instr.as<hlo::RaggedDotAttrs>().algorithm : hlo::Algorithm::UNSET;
}

Bound product_bound(Type type, double terms, hlo::Algorithm algorithm) {
  const ProductError error = product_error(algorithm);
  Bound bound = sum_bound(type, terms * error.operations);
  if (bound.kind == Bound::Kind::Sum) bound.operands = error.operands, bound.additions = error.additions;
  return bound;
}

Bound function_bound(Op op, Type type) {
  const int ulp = hlo::op_info(op).ulp;
  if (hlo::is_complex(type)) {
    // Each part of the result is computed from two real functions with an error of `ulp` each, and some sums and
    // products.
    const bool exact = op == Op::ADD || op == Op::SUBTRACT || op == Op::NEGATE || op == Op::REAL || op == Op::IMAG ||
                       op == Op::COMPLEX;
    if (exact) return {};
    // A power is exp(b log a): the exponent is rounded, and exp magnifies that error.
    return {.kind = Bound::Kind::Ulp, .ulps = 8.0 + 2 * std::max(ulp, 0), .conditioned = op == Op::POWER};
  }
  if (!hlo::is_float(type) || ulp == 0) return {};
  if (hlo::type_info(type).bits < 32) return {.kind = Bound::Kind::Ulp, .ulps = 1.0};
  // The op table's errors are those of f32. Of cbrt in f64 the C library of most systems, which XLA:CPU calls, has up to 3.7.
  constexpr double kCbrtOfF64 = 4;
  if (op == Op::CBRT && type == Type::F64) return {.kind = Bound::Kind::Ulp, .ulps = kCbrtOfF64};
  return {.kind = Bound::Kind::Ulp, .ulps = static_cast<double>(ulp)};
}

}  // namespace collet::conformance
