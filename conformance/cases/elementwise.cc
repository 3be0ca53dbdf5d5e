// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "conformance/cases/case.h"
#include "conformance/cases/types.h"
#include "hlo/base/float_format.h"
#include "hlo/ops/properties.h"

namespace collet::conformance {

InputSpec operand_domain(Op op, size_t operand, Type type) {
  const bool integer = hlo::is_integer(type);
  InputSpec spec;
  if (integer) {
    spec.low = -9;
    spec.high = 9;
    if (op == Op::POWER) spec = {.low = -3, .high = 4};
    if (op == Op::SHIFT_LEFT || op == Op::SHIFT_RIGHT_ARITHMETIC || op == Op::SHIFT_RIGHT_LOGICAL) {
      spec = {.values = operand == 0 ? Values::Large : Values::Unit, .low = 0, .high = hlo::type_info(type).bits - 1.0};
    }
    return spec;
  }
  if (op == Op::POWER) return operand == 0 ? InputSpec{.low = 0.0625, .high = 4} : InputSpec{.low = -3, .high = 3};
  const hlo::OpProperties& properties = hlo::op_properties(op);
  return properties.low < properties.high ? InputSpec{.low = properties.low, .high = properties.high} : spec;
}

namespace {

using hlo::Family;
using hlo::op_info;
using hlo::OpInfo;

using Dims = std::vector<int64_t>;

// Sizes around vector widths, and unusual shapes.
const std::vector<Dims>& sweep() {
  static const std::vector<Dims> kSweep = {{},
                                           {0},
                                           {1},
                                           {15},
                                           {16},
                                           {17},
                                           {63},
                                           {64},
                                           {65},
                                           {127},
                                           {129},
                                           {3, 0, 2},
                                           {1, 1, 1},
                                           {5, 7, 11},
                                           {2, 3, 1, 5, 2},
                                           {4099},
                                           {1, 2051},
                                           {2051, 1},
                                           {70001},
                                           {2, 3, 1, 2, 3, 2},
                                           {1, 2, 1, 1, 3, 1, 2, 1}};
  return kSweep;
}
const std::vector<Dims>& few() {
  static const std::vector<Dims> kFew = {{}, {0}, {17}, {3, 5, 7}};
  return kFew;
}

// True for types that are tested with every shape; the others are tested with a few shapes.
bool is_usual(Type type) {
  return type == Type::F32 || type == Type::S32;
}

// True for complex functions whose results are in range for operands of all magnitudes, although squares of the parts
// are not.
bool is_homogeneous(Op op) {
  return op == Op::ABS || op == Op::SQRT || op == Op::RSQRT || op == Op::LOG || op == Op::SIGN;
}

// The properties of an elementwise program that differ between ops.
struct Form {
  Op op;
  std::string label;       // first part of the name
  std::string attributes;  // text after the operands
  std::vector<Type> operands;
  Type result;
  Type type;  // type in the name of the case
};

// How a case uses its operands and its result: plain parameters, one parameter as all operands, a constant as an operand, or a
// result that is returned twice.
enum class Use : uint8_t { Plain, Same, Constant, Twice };
constexpr std::string_view kUses[] = {"", "_same", "_constant", "_twice"};

void add_one(CaseList& list, const Form& form, const Dims& dims, Values values, std::string_view prefix = "",
             Use use = Use::Plain) {
  Text text;
  Case one;
  std::string operands;
  one.name = fmt::format("{}/{}/{}{}{}/{}", form.label, type_name(form.type), prefix, dims_name(dims),
                         kUses[static_cast<size_t>(use)], values_name(values));
  one.op = form.op;
  one.type = form.type;
  if (list.names_only()) return list.add(std::move(one));
  for (size_t i = 0; i < form.operands.size(); ++i) {
    if (use == Use::Same && i > 0) {
      operands += ", p0";
      continue;
    }
    if (use == Use::Constant && i + 1 == form.operands.size()) {
      const char* number = hlo::is_complex(form.operands[i]) ? "(2, 1)" : "1";
      const std::string c = text.line(Shape::scalar(form.operands[i]), fmt::format("constant({})", number));
      operands +=
          ", " + text.line(Shape::array(form.operands[i], dims), fmt::format("broadcast({}), dimensions={{}}", c));
      continue;
    }
    operands += (i ? ", " : "") + text.parameter(Shape::array(form.operands[i], dims));
    InputSpec spec = operand_domain(form.op, i, form.operands[i]);
    if (values != Values::Unit) spec.values = values;
    one.inputs.push_back(spec);
  }
  const Shape shape = Shape::array(form.result, dims);
  const std::string expression = fmt::format("{}({}){}", op_info(form.op).text, operands, form.attributes);
  if (use == Use::Twice) {
    const std::string y = text.line(shape, expression);
    one.text = text.root(Shape::tuple({shape, shape}), fmt::format("tuple({0}, {0})", y));
  } else {
    one.text = text.root(shape, expression);
  }
  one.bound = function_bound(form.op, form.type);
  list.add(std::move(one));
}

void add_form(CaseList& list, const Form& form) {
  const bool complex = hlo::is_complex(form.type);
  for (const Dims& dims : is_usual(form.type) || list.full() ? sweep() : few()) add_one(list, form, dims, Values::Unit);
  if (complex) {
    // Values around poles, zeros and the unit circle; sums and comparisons have none.
    if (form.op != Op::COMPARE && form.op != Op::SELECT && function_bound(form.op, form.type).ulps > 0)
      add_one(list, form, {1009}, Values::Critical);
    // Parts over the whole range, whose squares overflow or underflow.
    if (is_homogeneous(form.op)) add_one(list, form, {257}, Values::Large);
    return;
  }
  const bool integer_power = form.op == Op::POWER && hlo::is_integer(form.type);
  if (!integer_power) add_one(list, form, {edge_count(form.operands.back(), form.operands.size())}, Values::Edges);
  if (form.type == Type::PRED) return;
  if (!integer_power) {
    // With one operand, each critical value occurs; with several, about a thousand combinations are drawn.
    const int64_t count = form.operands.size() == 1 ? critical_count(form.operands[0]) : 1009;
    add_one(list, form, {count}, Values::Critical);
    add_one(list, form, {257}, Values::Large);
  }
  if (integer_power && hlo::is_signed(form.type)) add_one(list, form, {129}, Values::Ties);
  if (hlo::op_properties(form.op).has_ties) add_one(list, form, {129}, Values::Ties);
}

Type result_type(Op op, Type type) {
  switch (op) {
    case Op::COMPARE:
    case Op::IS_FINITE:
      return Type::PRED;
    case Op::ABS:
    case Op::REAL:
    case Op::IMAG:
      return hlo::real_type(type);
    default:
      return type;
  }
}

bool has_type(Op op, Type type) {
  if (op == Op::COMPLEX) return type == Type::F32 || type == Type::F64;
  if (op == Op::REAL || op == Op::IMAG) return hlo::is_complex(type) || type == Type::F32;
  if (op == Op::ABS || op == Op::SIGN || op == Op::NEGATE) return !hlo::is_unsigned(type) || op == Op::NEGATE;
  // The branch of a complex atan2 is not specified, so there is no case for it.
  return op != Op::ATAN2 || !hlo::is_complex(type);
}

Form plain_form(Op op, Type type) {
  const OpInfo& info = op_info(op);
  Form form{op, std::string(info.text), "", {}, result_type(op, type), type};
  form.operands.assign(static_cast<size_t>(info.min_operands), type);
  if (op == Op::COMPLEX) form.result = type == Type::F32 ? Type::C64 : Type::C128;
  return form;
}

std::vector<Form> compare_forms(Type type) {
  std::vector<Form> forms;
  for (const std::string direction : {"EQ", "NE", "GE", "GT", "LE", "LT"}) {
    if (hlo::is_complex(type) && direction != "EQ" && direction != "NE") continue;
    Form form{Op::COMPARE, "compare-" + direction, ", direction=" + direction, {type, type}, Type::PRED, type};
    forms.push_back(form);
    if (!hlo::is_float(type)) continue;
    form.label += "-total";
    form.attributes += ", type=TOTALORDER";
    forms.push_back(std::move(form));
  }
  return forms;
}

std::vector<Form> forms_of(Op op, Type type) {
  if (op == Op::COMPARE) return compare_forms(type);
  if (op == Op::SELECT) return {{Op::SELECT, "select", "", {Type::PRED, type, type}, type, type}};
  return {plain_form(op, type)};
}

void add_plain(CaseList& list, Op op) {
  const OpInfo& info = op_info(op);
  // Functions of formats with few values are in the grid.
  const bool narrow = info.op_class != hlo::OpClass::MATH;
  for (const Type type : types_of(info.types, narrow)) {
    if (has_type(op, type)) add_form(list, plain_form(op, type));
  }
}

void add_compare(CaseList& list) {
  for (const Type type : types_of(hlo::TypeSet::ANY, true))
    for (const Form& form : compare_forms(type)) add_form(list, form);
}

void add_select(CaseList& list) {
  for (const Type type : types_of(hlo::TypeSet::ANY, true)) {
    add_form(list, {Op::SELECT, "select", "", {Type::PRED, type, type}, type, type});
  }
}

// Tests clamp with bounds of the operand's shape, and with scalar bounds; some bounds have low > high.
void add_clamp(CaseList& list) {
  for (const Type type : types_of(op_info(Op::CLAMP).types)) {
    if (type == Type::PRED) continue;
    add_form(list, {Op::CLAMP, "clamp", "", {type, type, type}, type, type});
    Text text;
    const Shape scalar = Shape::scalar(type), array = Shape::array(type, {129});
    const std::string low = text.parameter(scalar), x = text.parameter(array), high = text.parameter(scalar);
    Case one{fmt::format("clamp/{}/129_scalar_bounds/unit", type_name(type)), Op::CLAMP, type, "", {}, {}};
    one.text = text.root(array, fmt::format("clamp({}, {}, {})", low, x, high));
    one.inputs = {{.values = Values::Fixed, .fixed = {hlo::is_unsigned(type) ? 2.0 : -0.5}},
                  operand_domain(Op::FLOOR, 1, type),
                  {.values = Values::Fixed, .fixed = {hlo::is_float(type) ? 0.75 : 5.0}}};
    list.add(std::move(one));
  }
}

// Shapes of rank 0 to 8; empty, single, odd, prime, powers of two and their neighbours, long and thin, and more than
// 2^16 elements.
const std::vector<Dims>& grid_shapes() {
  static const std::vector<Dims> kShapes = {{},
                                            {0},
                                            {1},
                                            {2},
                                            {3},
                                            {5},
                                            {7},
                                            {8},
                                            {13},
                                            {15},
                                            {16},
                                            {17},
                                            {31},
                                            {32},
                                            {33},
                                            {63},
                                            {64},
                                            {65},
                                            {127},
                                            {128},
                                            {129},
                                            {255},
                                            {256},
                                            {257},
                                            {511},
                                            {512},
                                            {513},
                                            {1021},
                                            {1024},
                                            {1025},
                                            {4093},
                                            {1, 1},
                                            {1, 129},
                                            {129, 1},
                                            {17, 16},
                                            {3, 0, 2},
                                            {7, 5, 3},
                                            {1, 64, 1},
                                            {2, 3, 4, 5},
                                            {2, 2, 2, 2, 3},
                                            {1, 2, 3, 1, 2, 3},
                                            {2, 1, 2, 1, 2, 1, 3},
                                            {1, 2, 1, 2, 1, 2, 1, 2},
                                            {65537},
                                            {2, 65537}};
  return kShapes;
}

constexpr char kGrid[] = "grid_";

}  // namespace

void add_elementwise_grid(CaseList& list, Op op, Type type) {
  if (!has_type(op, type)) return;
  const bool complex = hlo::is_complex(type), integer_power = op == Op::POWER && hlo::is_integer(type);
  const bool has_same = op != Op::SELECT && op_info(op).min_operands > 1;
  for (const Form& form : forms_of(op, type)) {
    // These formats have a single NaN without a sign, so its position in the total order is not determined; formats
    // without NaN have no defined remainder by zero.
    const FloatSpecials specials = float_format(static_cast<uint32_t>(type)).specials;
    if (hlo::is_float(type) && specials == FloatSpecials::FNUZ && form.label.ends_with("-total")) continue;
    if (hlo::is_float(type) && specials == FloatSpecials::FINITE && op == Op::REMAINDER) continue;
    for (const Dims& dims : grid_shapes()) {
      const int64_t count = Shape::array(type, dims).element_count();
      for (const Values values : {Values::Unit, Values::Edges, Values::Large, Values::Ties, Values::Critical}) {
        const bool plain = complex || integer_power || count > 65536;
        if (values != Values::Unit && (plain || count == 0)) continue;
        if (type == Type::PRED && values != Values::Unit && values != Values::Edges) continue;
        add_one(list, form, dims, values, kGrid);
      }
    }
    for (const Dims& dims : {Dims{}, Dims{17}, Dims{129}, Dims{3, 5, 7}, Dims{1025}}) {
      if (has_same) add_one(list, form, dims, Values::Unit, kGrid, Use::Same);
      if (has_same && !complex && !integer_power) add_one(list, form, dims, Values::Critical, kGrid, Use::Same);
      if (has_same) add_one(list, form, dims, Values::Unit, kGrid, Use::Constant);
      add_one(list, form, dims, Values::Unit, kGrid, Use::Twice);
    }
    const int64_t all = op == Op::SELECT || integer_power ? 0 : all_count(type, form.operands.size());
    if (all > 0) add_one(list, form, {all}, Values::All, kGrid);
  }
}

void add_elementwise_cases(CaseList& list) {
  for (int id = 1; id <= hlo::kLastOp; ++id) {
    const Op op = static_cast<Op>(id);
    if (op_info(op).family != Family::elementwise) continue;
    if (op == Op::COMPARE) {
      add_compare(list);
    } else if (op == Op::SELECT) {
      add_select(list);
    } else if (op == Op::CLAMP) {
      add_clamp(list);
    } else {
      add_plain(list, op);
    }
  }
}

}  // namespace collet::conformance
