// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/op_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "conformance/cases/exact_answer.h"
#include "conformance/cases/plain_answer.h"
#include "conformance/cases/special_cases.h"
#include "conformance/cases/types.h"
#include "conformance/oracle/functions.h"
#include "hlo/eval/evaluator.h"
#include "hlo/ops/flops.h"
#include "hlo/ops/properties.h"
#include "hlo/text/printer.h"

namespace collet::conformance {
namespace {

using hlo::CompId;
using hlo::InstrId;
using hlo::Instruction;
using hlo::Module;

constexpr hlo::PrintOptions kPrint = {.style = hlo::PrintStyle::Short};
constexpr int64_t kMostConstant = 64;  // elements of a constant that stays one
// The evaluator gives the expected results of ops for which exact arithmetic would take longer than this.
constexpr double kMostExactSeconds = 0.25;

bool is_small_constant(const Instruction& instr) {
  return instr.op == Op::CONSTANT && instr.shape.is_array() && instr.shape.element_count() <= kMostConstant;
}

// Adds the computations that `id` calls, callees before callers, and then itself.
void add_computations(const Module& module, CompId id, std::vector<CompId>& out) {
  if (std::find(out.begin(), out.end(), id) != out.end()) return;
  for (const InstrId instr : module[id].order)
    for (const CompId called : module[instr].called) add_computations(module, called, out);
  out.push_back(id);
}

bool is_group(const Instruction& instr) {
  return instr.op == Op::FUSION || instr.op == Op::CALL;
}

// True if every device computes the same result: the op moves, compares or selects values, or works on integers.
bool is_exact(const Instruction& instr) {
  if (instr.shape.is_tuple() || !instr.shape.is_array()) return true;
  if (!hlo::is_float(instr.shape.type()) && !hlo::is_complex(instr.shape.type())) return instr.op != Op::CONVERT;
  switch (instr.op) {
    case Op::PARAMETER:
    case Op::CONSTANT:
    case Op::IOTA:
    case Op::SELECT:
    case Op::NEGATE:
    case Op::ABS:
    case Op::MAXIMUM:
    case Op::MINIMUM:
    case Op::CLAMP:
    case Op::COPY:
    case Op::BITCAST:
    case Op::BITCAST_CONVERT:
      return true;
    default:
      return is_move(instr.op);
  }
}

double product(hlo::Dims dims) {
  double out = 1;
  for (const int64_t dim : dims) out *= static_cast<double>(dim);
  return out;
}

// Returns the number of terms of each element of the result of an op that adds up; 1 for other ops.
double terms_of(const Module& module, const Instruction& instr) {
  const auto elements = [&](const Shape& shape) {
    return std::max(1.0, static_cast<double>(shape.is_array() ? shape.element_count() : 1));
  };
  const Shape& shape = instr.shape.is_tuple() && !instr.shape.elements().empty() ? instr.shape.element(0) : instr.shape;
  switch (instr.op) {
    case Op::DOT:
    case Op::SCALED_DOT:
    case Op::RAGGED_DOT:
    case Op::CONVOLUTION:
      return std::max(1.0, hlo::flops_of(module, instr) / (2 * elements(instr.shape)));
    case Op::REDUCE:
      return elements(module[instr.operand(0)].shape) / elements(shape) + 1;
    case Op::REDUCE_WINDOW:
    case Op::SELECT_AND_SCATTER:
      return product(instr.as<hlo::WindowAttrs>().window.size) + 1;
    case Op::SCATTER:
      return elements(module[instr.operand(instr.operands.size() / 2)].shape) + 1;
    default:
      return 1;
  }
}

Bound scaled(double ulps) {
  return {.kind = Bound::Kind::Scaled, .ulps = ulps, .exact = true};
}

// The bound of a program of several ops, where its answer has no bound of its own (bounded_answer.h).
Bound bound_of_body(const Module& module, CompId id) {
  double ulps = 0;
  const auto add = [&](const auto& self, CompId comp) -> void {
    for (const InstrId at : module[comp].order) {
      const Instruction& instr = module[at];
      if (is_group(instr)) {
        self(self, instr.called[0]);
      } else if (!is_exact(instr)) {
        const ProductError error = product_error(algorithm_of(instr));
        ulps += 4 + terms_of(module, instr) * error.operations;
        if (error.operands > 0) ulps += error.operands / unit_roundoff(instr.shape.type());
      }
    }
  };
  add(add, id);
  return ulps > 0 ? scaled(12 + ulps) : Bound{};
}

Bound reduction_bound(const Module& module, const Instruction& instr, CompId body) {
  const Op op = combiner_of(module, body);
  if (instr.shape.is_array() && (op == Op::ADD || op == Op::MULTIPLY))
    return sum_bound(instr.shape.type(), terms_of(module, instr), false);
  const Bound inside = bound_of_body(module, body);
  return inside.kind == Bound::Kind::Exact ? inside : scaled(inside.ulps * terms_of(module, instr));
}

// The range of indices of a dimension, with some outside of it, which are clamped or ignored.
InputSpec indices_within(int64_t size, Type type) {
  return {.low = hlo::is_unsigned(type) ? 0.0 : -1.0, .high = static_cast<double>(size)};
}

// Returns the numbers of `count` index vectors that rise, so that they are sorted and, if there are so many, unique.
InputSpec rising_indices(const Shape& indices, int64_t vector_dim, std::span<const int64_t> sizes) {
  InputSpec spec{.values = Values::Fixed};
  const auto parts = static_cast<int64_t>(sizes.size());
  const int64_t count = indices.element_count() / std::max<int64_t>(parts, 1);
  double all = 1;
  for (const int64_t size : sizes) all *= static_cast<double>(size);
  if (parts != 1 && vector_dim != indices.rank() - 1) return {.values = Values::Fixed, .fixed = {0}};
  const double step = std::max(1.0, all / static_cast<double>(std::max<int64_t>(count, 1)));
  for (int64_t i = 0; i < count; ++i) {
    auto rest = static_cast<int64_t>(std::min(all - 1, std::floor(static_cast<double>(i) * step)));
    std::vector<double> vector(sizes.size());
    for (size_t d = sizes.size(); d-- > 0;) {
      vector[d] = static_cast<double>(rest % sizes[d]);
      rest /= sizes[d];
    }
    spec.fixed.insert(spec.fixed.end(), vector.begin(), vector.end());
  }
  return spec;
}

InputSpec gather_indices(const Module& module, const Instruction& instr) {
  const auto& attrs = instr.as<hlo::GatherAttrs>();
  const Shape& operand = module[instr.operand(0)].shape;
  const Shape& indices = module[instr.operand(1)].shape;
  std::vector<int64_t> sizes;
  for (const int64_t d : attrs.start_index_map) sizes.push_back(operand.dim(static_cast<int>(d)));
  if (attrs.sorted) return rising_indices(indices, attrs.index_vector_dim, sizes);
  return indices_within(sizes.empty() ? 1 : *std::min_element(sizes.begin(), sizes.end()), indices.type());
}

InputSpec scatter_indices(const Module& module, const Instruction& instr) {
  const auto& attrs = instr.as<hlo::ScatterAttrs>();
  const Shape& operand = module[instr.operand(0)].shape;
  const Shape& indices = module[instr.operand(instr.operands.size() / 2)].shape;
  std::vector<int64_t> sizes;
  for (const int64_t d : attrs.scatter_dims_to_operand_dims) sizes.push_back(operand.dim(static_cast<int>(d)));
  if (attrs.sorted || attrs.unique) return rising_indices(indices, attrs.index_vector_dim, sizes);
  return indices_within(sizes.empty() ? 1 : *std::min_element(sizes.begin(), sizes.end()), indices.type());
}

// Numbers of the type for which most ops are defined.
InputSpec usual(Type type) {
  if (type == Type::PRED || !hlo::is_integer(type)) return {};
  return {.low = hlo::is_unsigned(type) ? 0.0 : -9.0, .high = 9};
}

InputSpec operand_spec(const Module& module, const Instruction& instr, size_t operand);

bool is_reduction(Op op) {
  return op == Op::REDUCE || op == Op::REDUCE_WINDOW;
}

// Returns inputs of a parameter for which the ops that read it are defined: follows the value through moves, conversions
// and sums with constants to the first op that needs a range.
InputSpec spec_of_parameter(const Module& module, CompId comp, InstrId parameter) {
  std::set<InstrId> same = {parameter}, shifted;  // the value itself; the value after arithmetic with a constant
  for (const InstrId id : module[comp].order) {
    const Instruction& instr = module[id];
    for (size_t i = 0; i < instr.operands.size(); ++i) {
      const bool is_same = same.contains(instr.operand(i)), is_shifted = shifted.contains(instr.operand(i));
      if (!is_same && !is_shifted) continue;
      const hlo::OpProperties& properties = hlo::op_properties(instr.op);
      const bool needs_range =
          properties.low < properties.high || (instr.op == Op::DIVIDE && i == 1) || (instr.op == Op::POWER && i == 0);
      if (needs_range && hlo::is_float(module[parameter].shape.type()))
        return instr.op == Op::DIVIDE ? InputSpec{.low = 0.5, .high = 2} : operand_domain(instr.op, i, Type::F32);
      if (!is_same && !is_shifted) continue;
      const bool is_index =
          (instr.op == Op::GATHER && i == 1) || (instr.op == Op::SCATTER && i == instr.operands.size() / 2) ||
          (instr.op == Op::DYNAMIC_SLICE && i >= 1) || (instr.op == Op::DYNAMIC_UPDATE_SLICE && i >= 2);
      const bool is_start = is_reduction(instr.op) && i >= instr.operands.size() / 2;
      if ((is_index || is_start) && is_same) return operand_spec(module, instr, i);
      if (is_group(instr)) {
        const InputSpec inside = spec_of_parameter(module, instr.called[0], module[instr.called[0]].parameters[i]);
        if (inside.values != Values::Unit || inside.low != -1 || inside.high != 1) return inside;
      }
      const bool moves =
          is_move(instr.op) || instr.op == Op::CONVERT || instr.op == Op::COPY || instr.op == Op::BITCAST;
      if (moves) (is_same ? same : shifted).insert(id);
      const bool arithmetic = instr.op == Op::ADD || instr.op == Op::MULTIPLY || instr.op == Op::MAXIMUM ||
                              (instr.op == Op::DIVIDE && i == 0);
      if (arithmetic) shifted.insert(id);
    }
  }
  return usual(module[parameter].shape.type());
}

// True if a comparator puts no element before an equal one, which is tried with zeros.
bool is_strict(const Module& module, CompId comparator) {
  std::vector<hlo::Literal> zeros;
  for (const InstrId parameter : module[comparator].parameters)
    zeros.push_back(hlo::Literal::zeros(module[parameter].shape));
  const auto is_before = hlo::Evaluator(module).run_computation(comparator, std::move(zeros));
  return is_before.ok() && is_before->as_int(0) == 0;
}

InputSpec reduced_spec(const Module& module, const Instruction& instr, size_t operand) {
  const Type type = module[instr.operand(operand)].shape.type();
  const Op combiner = combiner_of(module, instr.called.back());
  // Initial values: a device may combine them with the elements any number of times, so they are neutral, or the op is idempotent.
  const bool is_idempotent =
      combiner == Op::MAXIMUM || combiner == Op::MINIMUM || combiner == Op::AND || combiner == Op::OR;
  const bool is_start = is_reduction(instr.op) && operand >= instr.operands.size() / 2;
  if (is_start && !is_idempotent) return {.values = Values::Fixed, .fixed = {combiner == Op::MULTIPLY ? 1.0 : 0.0}};
  if (combiner == Op::MULTIPLY && !hlo::is_integer(type)) return {.low = 0.75, .high = 1.25};
  return usual(type);
}

// The inputs of one operand, as the suite's own cases of the op have them.
InputSpec operand_spec(const Module& module, const Instruction& instr, size_t operand) {
  const Shape& shape = module[instr.operand(operand)].shape;
  const Type type = shape.type();
  switch (instr.op) {
    case Op::FUSION:
    case Op::CALL:
    case Op::MAP:
      return spec_of_parameter(module, instr.called[0], module[instr.called[0]].parameters[operand]);
    case Op::GATHER:
      return operand == 1 ? gather_indices(module, instr) : InputSpec{.values = moving_values(type)};
    case Op::SCATTER:
      if (operand == instr.operands.size() / 2) return scatter_indices(module, instr);
      return reduced_spec(module, instr, operand);
    case Op::DYNAMIC_SLICE:
    case Op::DYNAMIC_UPDATE_SLICE: {
      const size_t first = instr.op == Op::DYNAMIC_SLICE ? 1 : 2;
      if (operand < first) return {.values = moving_values(type)};
      const Shape& whole = module[instr.operand(0)].shape;
      const int64_t size = shape.rank() == 1 || whole.rank() == 0 ? 3 : whole.dim(static_cast<int>(operand - first));
      return indices_within(size, type);
    }
    case Op::REDUCE:
    case Op::REDUCE_WINDOW:
      return reduced_spec(module, instr, operand);
    case Op::SELECT_AND_SCATTER:
      return operand == 0 ? InputSpec{.values = Values::Distinct} : usual(type);
    case Op::SORT:
      if (instr.operands.size() > 1 && (!instr.as<hlo::SortAttrs>().stable || !is_strict(module, instr.called[0])))
        return {.values = Values::Distinct};
      return operand == 0 ? usual(type) : InputSpec{.values = moving_values(type)};
    case Op::TOPK:
      return {.values = Values::Distinct};
    case Op::RNG_BIT_GENERATOR:
      return {.values = Values::Large};
    case Op::CHOLESKY:
      return {.definite = true};
    case Op::TRIANGULAR_SOLVE:
      return {.definite = operand == 0};
    case Op::BATCH_NORM_TRAINING:
    case Op::BATCH_NORM_INFERENCE:
    case Op::BATCH_NORM_GRAD: {
      const bool is_positive = operand == 1 || (instr.op == Op::BATCH_NORM_INFERENCE && operand == 4) ||
                               (instr.op == Op::BATCH_NORM_GRAD && operand == 3);
      return is_positive ? InputSpec{.low = 0.5, .high = 2} : InputSpec{};
    }
    case Op::RAGGED_DOT:
      if (operand == 2) {
        const Shape& lhs = module[instr.operand(0)].shape;
        const auto dim = static_cast<int>(instr.as<hlo::RaggedDotAttrs>().lhs_ragged[0]);
        const double share = std::floor(static_cast<double>(lhs.dim(dim)) / static_cast<double>(shape.element_count()));
        return {.values = Values::Fixed, .fixed = {share, 0, share}};
      }
      return usual(type);
    case Op::SCALED_DOT:
      return operand < 2 ? usual(type) : InputSpec{.values = Values::Fixed, .fixed = {1, 2, 0.5}};
    case Op::CONVERT:
    case Op::STOCHASTIC_CONVERT:
      return hlo::is_float(type) ? InputSpec{.low = -100, .high = 100} : usual(type);
    default:
      if (hlo::is_elementwise(instr.op)) {
        const InputSpec spec = operand_domain(instr.op, operand, type);
        return hlo::is_unsigned(type) && spec.low < 0 ? usual(type) : spec;
      }
      return is_move(instr.op) ? InputSpec{.values = moving_values(type)} : usual(type);
  }
}

std::string safe_name(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    const bool keeps =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-';
    if (!keeps) c = '_';
  }
  return out;
}

// The element type in the name: that of the first operand, or of the result.
Type type_of(const Module& module, const Instruction& instr) {
  for (const InstrId id : instr.operands)
    if (module[id].shape.is_array()) return module[id].shape.type();
  const Shape& shape = instr.shape.is_tuple() && !instr.shape.elements().empty() ? instr.shape.element(0) : instr.shape;
  return shape.is_array() ? shape.type() : Type::Invalid;
}

}  // namespace

Op combiner_of(const Module& module, CompId id) {
  const Instruction& root = module[module[id].root];
  if (root.operands.size() != 2 || module[id].parameters.size() != 2) return Op::INVALID;
  const auto is_parameter = [&](size_t i) { return module[root.operand(i)].op == Op::PARAMETER; };
  return is_parameter(0) && is_parameter(1) && root.operand(0) != root.operand(1) ? root.op : Op::INVALID;
}

AloneOp stand_alone(const Module& module, InstrId id) {
  const Instruction& instr = module[id];
  AloneOp out;
  std::string lines;
  std::set<InstrId> seen;
  for (const InstrId operand : instr.operands) {
    const Instruction& value = module[operand];
    if (!seen.insert(operand).second) continue;
    if (!value.shape.is_array()) {
      out.why_not = "an operand is not an array";
      return out;
    }
    if (is_small_constant(value)) {
      std::string text = hlo::print_instruction(module, operand, kPrint);
      if (text.starts_with("ROOT ")) text.erase(0, 5);
      lines += "  " + text + "\n";
      continue;
    }
    lines += fmt::format("  {} = {} parameter({})\n", value.name,
                         Shape::array(value.shape.type(), value.shape.dims()).to_string(), out.parameters.size());
    out.parameters.push_back(operand);
  }
  std::vector<CompId> called;
  for (const CompId comp : instr.called) add_computations(module, comp, called);
  out.text = fmt::format("HloModule {}\n\n", safe_name(instr.name));
  for (const CompId comp : called) out.text += hlo::print_computation(module, comp, kPrint) + "\n";
  std::string root = hlo::print_instruction(module, id, kPrint);
  if (!root.starts_with("ROOT ")) root = "ROOT " + root;
  out.text += fmt::format("ENTRY {} {{\n{}  {}\n}}\n", "conform_entry", lines, root);
  return out;
}

Bound bound_of_op(const Module& module, const Instruction& instr) {
  const Type type = instr.shape.is_array() ? instr.shape.type() : type_of(module, instr);
  switch (instr.op) {
    case Op::FUSION:
    case Op::CALL:
    case Op::MAP:
      return bound_of_body(module, instr.called[0]);
    case Op::DOT:
    case Op::SCALED_DOT:
    case Op::RAGGED_DOT:
    case Op::CONVOLUTION:
      return product_bound(type, terms_of(module, instr), algorithm_of(instr));
    case Op::REDUCE:
    case Op::REDUCE_WINDOW:
    case Op::SCATTER:
      return reduction_bound(module, instr, instr.called[0]);
    case Op::SELECT_AND_SCATTER: {
      Bound bound = sum_bound(type, terms_of(module, instr), false);
      bound.signed_data = true;
      return bound;
    }
    case Op::FFT:
      return {.kind = Bound::Kind::Scaled,
              .ulps = 8 + 4 * std::log2(std::max(2.0, product(instr.as<hlo::FftAttrs>().length)))};
    case Op::CHOLESKY:
    case Op::TRIANGULAR_SOLVE: {
      const Shape& matrix = module[instr.operand(0)].shape;
      Bound bound{.kind = Bound::Kind::Scaled, .ulps = 16.0 + 4 * static_cast<double>(matrix.dim(matrix.rank() - 1))};
      if (instr.op == Op::CHOLESKY) bound.triangle = instr.as<hlo::CholeskyAttrs>().lower ? -1 : 1;
      return bound;
    }
    case Op::BATCH_NORM_TRAINING:
    case Op::BATCH_NORM_INFERENCE:
    case Op::BATCH_NORM_GRAD:
      return {.kind = Bound::Kind::Scaled, .ulps = 64};
    default:
      if (is_move(instr.op) || instr.op == Op::COPY || instr.op == Op::BITCAST_CONVERT)
        return {.kind = Bound::Kind::Bits};
      return hlo::is_elementwise(instr.op) ? function_bound(instr.op, type) : Bound{};
  }
}

double exact_seconds(const Module& module, const Instruction& instr) {
  // Measured on one core: MPFR's functions, terms of an exact sum, and elements that are stored one by one.
  constexpr double kFunction = 2e-6, kTerm = 5e-8, kElement = 1e-7;
  double elements = 0;
  for (const Shape* shape : {&instr.shape}) {
    if (shape->is_array()) elements += static_cast<double>(shape->element_count());
    for (const Shape& element : shape->is_tuple() ? shape->elements() : std::span<const Shape>())
      elements += element.is_array() ? static_cast<double>(element.element_count()) : 0;
  }
  if (is_group(instr)) {
    double all = 0;
    for (const InstrId id : module[instr.called[0]].order) all += exact_seconds(module, module[id]);
    return all;
  }
  const bool is_math = hlo::op_info(instr.op).op_class == hlo::OpClass::MATH;
  const double terms = std::max(hlo::flops_of(module, instr) / 2, 0.0);
  return elements * (is_math ? kFunction : kElement) + (terms > elements ? terms * kTerm : 0);
}

// True for a group that subtracts a maximum before it takes the exponential, as a softmax does: exp(x) alone overflows.
bool shifts_exponents(const Module& module, const Instruction& instr) {
  if (!is_group(instr)) return false;
  bool exponential = false, maximum = false;
  for (const InstrId id : module[instr.called[0]].order) {
    const Instruction& inner = module[id];
    // The errors of a product's sums would be magnified.
    if (inner.op == Op::DOT || inner.op == Op::CONVOLUTION) return false;
    exponential |= inner.op == Op::EXPONENTIAL;
    maximum |= inner.op == Op::REDUCE && combiner_of(module, inner.called[0]) == Op::MAXIMUM;
  }
  return exponential && maximum;
}

// True for a group of exact ops, sums and products: its errors grow as its largest result does.
bool is_linear_group(const Module& module, const Instruction& instr) {
  if (!is_group(instr)) return false;
  const auto& order = module[instr.called[0]].order;
  return std::none_of(order.begin(), order.end(), [&](InstrId id) {
    const Op op = module[id].op;
    return hlo::op_info(op).op_class == hlo::OpClass::MATH || op == Op::CALL || op == Op::FUSION;
  });
}

// Adds what the suite's cases of patterns have as well: values whose exponential overflows, and equal values, which have no variance.
// `types` are those of the inputs.
void add_special_values(const Module& module, const Instruction& instr, const Case& unit,
                        const std::vector<Type>& types, std::string_view stem, std::vector<Case>& out) {
  const bool floats = std::all_of(instr.operands.begin(), instr.operands.end(),
                                  [&](InstrId id) { return hlo::is_float(module[id].shape.type()); });
  // Adds the case if `change` changes one of the inputs that have the usual values of their types.
  const auto with_inputs = [&](std::string_view values, const auto& change) {
    Case one = unit;
    bool any = false;
    for (size_t i = 0; i < one.inputs.size(); ++i)
      if (one.inputs[i].values == Values::Unit && one.inputs[i].high == usual(types[i]).high)
        any |= change(types[i], one.inputs[i]);
    one.name = fmt::format("{}/{}", stem, values);
    if (any) out.push_back(std::move(one));
  };
  const auto all = [](InputSpec spec) {
    return [spec = std::move(spec)](Type, InputSpec& input) {
      input = spec;
      return true;
    };
  };
  const double large = unit.type == Type::F16 ? 60 : 300;  // f16 ends at 65504
  if (floats && shifts_exponents(module, instr)) with_inputs("large", all({.low = -large, .high = large}));
  // Quantized values take all numbers of their type: saturation and zero points are then of consequence.
  if (is_linear_group(module, instr)) {
    with_inputs("stored", [](Type type, InputSpec& input) {
      if (type == Type::S8) input.low = -128, input.high = 127;
      if (type == Type::U8) input.low = 0, input.high = 255;
      return type == Type::S8 || type == Type::U8;
    });
  }
  if (floats && !unit.pattern.empty()) with_inputs("equal", all({.values = Values::Fixed, .fixed = {0.75}}));
}

OpCases cases_of_op(const Module& module, InstrId id, std::string_view program) {
  const Instruction& instr = module[id];
  OpCases out;
  if (instr.op == Op::RNG || instr.op == Op::CUSTOM_CALL || instr.op == Op::DYNAMIC_RESHAPE ||
      hlo::op_info(instr.op).op_class == hlo::OpClass::COMMUNICATION ||
      hlo::op_info(instr.op).family == hlo::Family::host_io) {
    out.why_not = why_no_case(instr.op).empty() ? "it needs other participants" : std::string(why_no_case(instr.op));
    return out;
  }
  AloneOp alone = stand_alone(module, id);
  out.why_not = alone.why_not;
  if (alone.text.empty()) return out;
  const std::string pattern = instr.op == Op::CALL && instr.as<hlo::CallAttrs>().is_composite
                                  ? std::string(instr.as<hlo::CallAttrs>().name)
                                  : "";
  Case one{.op = instr.op, .type = type_of(module, instr), .text = std::move(alone.text)};
  const std::string_view subject = pattern.empty() ? hlo::op_info(instr.op).text : std::string_view(pattern);
  const std::string stem =
      fmt::format("{}/{}/{}.{}", safe_name(subject), one.type == Type::Invalid ? "none" : type_name(one.type),
                  safe_name(program), safe_name(instr.name));
  one.bound = bound_of_op(module, instr);
  one.pattern = pattern;
  one.large = exact_seconds(module, instr) > kMostExactSeconds;
  for (const InstrId parameter : alone.parameters) {
    const auto at = std::find(instr.operands.begin(), instr.operands.end(), parameter) - instr.operands.begin();
    one.inputs.push_back(operand_spec(module, instr, static_cast<size_t>(at)));
  }
  one.name = stem + "/unit";
  out.cases.push_back(one);
  std::vector<Type> types;
  for (const InstrId parameter : alone.parameters) types.push_back(module[parameter].shape.type());
  add_special_values(module, instr, one, types, stem, out.cases);
  for (Case& special : special_cases(module, instr, one, types, stem)) out.cases.push_back(std::move(special));
  return out;
}

}  // namespace collet::conformance
