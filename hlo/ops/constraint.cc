// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/constraint.h"

#include <algorithm>
#include <tuple>

#include "hlo/base/float_format.h"

namespace collet::hlo {

namespace detail {

void append_part(std::string& out, std::string_view text) {
  out += text;
}
void append_part(std::string& out, int64_t number) {
  out += std::to_string(number);
}
void append_part(std::string& out, Size size) {
  out += size.value == kUnbounded ? "?" : std::to_string(size.value);
}
void append_part(std::string& out, const Shape& shape) {
  out += shape.to_string();
}
void append_part(std::string& out, Type type) {
  out += type == Type::Tuple ? "tuple" : type == Type::Buffer ? "buffer" : type_info(type).text;
}
void append_part(std::string& out, std::span<const int64_t> numbers) {
  constexpr size_t kShown = 16;
  out += '{';
  for (size_t i = 0; i < numbers.size() && i < kShown; ++i) {
    if (i) out += ',';
    out += std::to_string(numbers[i]);
  }
  if (numbers.size() > kShown) out += ",...";
  out += '}';
}

}  // namespace detail

bool dims_agree(const Shape& a, const Shape& b) {
  if (!a.is_array() || !b.is_array() || a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i)
    if (!sizes_agree(a.dim(i), b.dim(i))) return false;
  return true;
}

Type wider_type(Type a, Type b) {
  const auto rank = [](Type t) {
    const Type part = real_type(t);
    const FloatFormat format = float_format(static_cast<uint32_t>(part));
    const bool floating = is_float(part);
    return std::make_tuple(floating ? (1 << std::max(format.exponent_bits - 1, 0)) - 1 : -1,
                           floating ? format.mantissa_bits + 1 : -1, static_cast<int>(type_info(part).bits),
                           is_signed(part) ? 1 : 0);
  };
  return rank(b) > rank(a) ? b : a;
}

DimList DimList::of(const Shape& shape) {
  DimList list;
  for (int i = 0; i < shape.rank(); ++i) list.push(shape, i);
  return list;
}

Shape with_dims_of(const Shape& shape, Type type) {
  const Shape plain = shape.without_layout();
  return plain.type() == type ? plain : plain.with_type(type);
}

Shape join_dims(const Shape& a, const Shape& b, Type type) {
  DimList dims;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dim(i) == kUnbounded)
      dims.push(b, i);
    else if (b.dim(i) == kUnbounded)
      dims.push(a, i);
    else
      dims.push(a.dim(i), a.is_dynamic(i) || b.is_dynamic(i));
  }
  return dims.shape(type);
}

int64_t first_outside(std::span<const int64_t> numbers, int64_t limit) {
  for (size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] < 0 || numbers[i] >= limit) return static_cast<int64_t>(i);
  return -1;
}

bool has_repeats(std::span<const int64_t> numbers) {
  std::vector<int64_t> sorted(numbers.begin(), numbers.end());
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
}

bool contains(std::span<const int64_t> numbers, int64_t number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

bool ascending(std::span<const int64_t> numbers) {
  return std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) == numbers.end();
}

Expected<Signature> signature(const Module& module, Op op, CompId id) {
  if (index_of(id) >= module.computation_limit()) return broken(op, "", "calls a computation that does not exist");
  const Computation& computation = module[id];
  Signature out;
  out.name = computation.name;
  if (index_of(computation.root) >= module.instruction_limit())
    return broken(op, "", "calls ", computation.name, ", which has no root");
  out.result = &module[computation.root].shape;
  out.parameters.reserve(computation.parameters.size());
  for (size_t i = 0; i < computation.parameters.size(); ++i) {
    const InstrId parameter = computation.parameters[i];
    if (index_of(parameter) >= module.instruction_limit())
      return broken(op, "", "calls ", computation.name, ", which has no parameter ", i);
    out.parameters.push_back(&module[parameter].shape);
  }
  return out;
}

Status expect_array(const InferInput& in, size_t i, std::string_view role) {
  if (in.operand(i).is_array()) return ok_status();
  if (role.empty()) return broken(in.op, "", "operand ", i, " must be an array, but is ", in.operand(i));
  return broken(in.op, "", role, " must be an array, but is ", in.operand(i));
}

Expected<std::vector<Type>> reduced_types(const InferInput& in, std::string_view count_label,
                                          std::string_view shape_label) {
  if (in.operands.size() % 2)
    return broken(in.op, count_label, "must have an initial value for each input, but has ", in.operands.size(),
                  " operands");
  const Shape& first = in.operand(0);
  std::vector<Type> types;
  for (size_t i = 0; i < in.operands.size() / 2; ++i) {
    COLLET_TRY(expect_array(in, i));
    if (!dims_agree(first, in.operand(i)))
      return broken(in.op, shape_label, "input shapes differ: input 0 is ", first, ", input ", i, " is ",
                    in.operand(i));
    types.push_back(in.operand(i).type());
  }
  return types;
}

bool is_scalar_of(const Shape& shape, Type type) {
  return shape.is_scalar() && (type == Type::Invalid || shape.type() == type);
}

Status check_reducer(const Module& module, Op op, std::string_view label, CompId computation,
                     std::span<const Type> input_types, std::span<const Shape* const> initial) {
  COLLET_ASSIGN(const Signature reducer, signature(module, op, computation));
  const size_t n = input_types.size();
  if (reducer.parameters.size() != 2 * n)
    return broken(op, label, reducer.name, " must take ", 2 * n, " parameters, but takes ", reducer.parameters.size());
  std::vector<const Shape*> results;
  if (reducer.result->is_tuple())
    for (const Shape& element : reducer.result->elements()) results.push_back(&element);
  else
    results.push_back(reducer.result);
  if (results.size() != n)
    return broken(op, label, reducer.name, " must give ", n, " results, but gives ", *reducer.result);
  for (size_t i = 0; i < n; ++i) {
    const Shape& result = *results[i];
    if (!result.is_scalar()) return broken(op, label, reducer.name, " must give scalars, but gives ", *reducer.result);
    if (!result.compatible(*reducer.parameters[i]))
      return broken(op, label, "parameter ", i, " of ", reducer.name, " is ", *reducer.parameters[i],
                    ", but its result is ", result);
    if (!initial[i]->is_scalar() || !types_agree(result.type(), initial[i]->type()))
      return broken(op, label, "the result of ", reducer.name, " is ", result, ", but the initial value is ",
                    *initial[i]);
    const Shape& input = *reducer.parameters[n + i];
    if (!input.is_scalar() || !types_agree(input.type(), input_types[i]) || !types_agree(input.type(), result.type()))
      return broken(op, label, "parameter ", n + i, " of ", reducer.name, " is ", input, ", but must be a scalar of ",
                    input_types[i]);
  }
  return ok_status();
}

namespace {

// Sets `out` to (size - 1) * dilation + 1, or 0 if the size is 0; false on overflow.
bool dilate(int64_t size, int64_t dilation, int64_t& out) {
  if (size == 0) {
    out = 0;
    return true;
  }
  return multiply_fits(size - 1, dilation, out) && add_fits(out, 1, out);
}

bool window_count(int64_t base, const Window& w, size_t i, int64_t& out) {
  int64_t dilated_base, dilated_window, padded;
  if (!dilate(base, w.base_dilation_at(i), dilated_base) ||
      !dilate(w.size[i], w.window_dilation_at(i), dilated_window) ||
      !edges_fit(dilated_base, w.low_at(i), w.high_at(i)) ||
      !add_fits(dilated_base + w.low_at(i), w.high_at(i), padded))
    return false;
  out = padded <= 0 || dilated_window > padded ? 0 : (padded - dilated_window) / w.stride_at(i) + 1;
  return true;
}

// True if each property of the window is omitted or has one entry per dimension.
bool lists_fit(const Window& w) {
  for (const Dims* list :
       {&w.stride, &w.padding_low, &w.padding_high, &w.base_dilation, &w.window_dilation, &w.reversal})
    if (!list->empty() && list->size() != w.size.size()) return false;
  return true;
}

}  // namespace

Expected<Shape> windows_over(Op op, const Shape& base, const Window& w, Type type, const WindowLabels& labels) {
  if (!lists_fit(w)) return broken(op, labels.rank, "the window's properties have different numbers of dimensions");
  if (w.rank() != static_cast<size_t>(base.rank()))
    return broken(op, labels.rank, "the window has ", w.rank(), " dimensions, but the operand is ", base);
  DimList dims;
  for (size_t i = 0; i < w.rank(); ++i) {
    if (w.size[i] <= 0)
      return broken(op, labels.size, "window size ", w.size[i], " of dimension ", i, " is not positive");
    if (w.stride_at(i) <= 0)
      return broken(op, labels.stride, "window stride ", w.stride_at(i), " of dimension ", i, " is not positive");
    if (w.base_dilation_at(i) <= 0)
      return broken(op, labels.base_dilation, "base dilation ", w.base_dilation_at(i), " of dimension ", i,
                    " is not positive");
    if (w.window_dilation_at(i) <= 0)
      return broken(op, labels.window_dilation, "window dilation ", w.window_dilation_at(i), " of dimension ", i,
                    " is not positive");
    const auto d = static_cast<int>(i);
    int64_t size = kUnbounded;
    if (base.dim(d) != kUnbounded && !window_count(base.dim(d), w, i, size))
      return broken(op, "", "the size of dimension ", i, " overflows");
    dims.push(size, base.is_dynamic(d));
  }
  return dims.shape(type);
}

const Shape* subshape(const Shape& shape, std::span<const int64_t> index) {
  const Shape* at = &shape;
  for (int64_t i : index) {
    if (!at->is_tuple() || i < 0 || static_cast<size_t>(i) >= at->elements().size()) return nullptr;
    at = &at->element(static_cast<size_t>(i));
  }
  return at;
}

Status check_aliasing(const Module& module, const Instruction& instr, List<const AliasEntry> aliasing) {
  for (const AliasEntry& entry : aliasing) {
    if (entry.operand < 0 || static_cast<size_t>(entry.operand) >= instr.operands.size())
      return broken(instr.op, "", "output_to_operand_aliasing names operand ", entry.operand, " of ",
                    instr.operands.size());
    const Shape& operand = module[instr.operand(static_cast<size_t>(entry.operand))].shape;
    const Shape* from = subshape(operand, entry.operand_index);
    const Shape* to = subshape(instr.shape, entry.output_index);
    if (!from)
      return broken(instr.op, "", "output_to_operand_aliasing names ", entry.operand_index, " of operand ", operand);
    if (!to)
      return broken(instr.op, "", "output_to_operand_aliasing names ", entry.output_index, " of result ", instr.shape);
    // A buffer and its contents may share memory.
    if (from->is_buffer() && !to->is_buffer()) from = &from->element(0);
    if (to->is_buffer() && !from->is_buffer()) to = &to->element(0);
    if (!from->compatible(*to)) return broken(instr.op, "", "output_to_operand_aliasing joins ", *from, " and ", *to);
  }
  return ok_status();
}

bool shapes_match(const Shape& a, const Shape& b, bool mixed) {
  if (a.compatible(b)) return true;
  if (!mixed) return false;
  if (a.is_tuple() && b.is_tuple()) {
    if (a.elements().size() != b.elements().size()) return false;
    for (size_t i = 0; i < a.elements().size(); ++i)
      if (!shapes_match(a.element(i), b.element(i), mixed)) return false;
    return true;
  }
  return types_agree(a.type(), b.type()) && dims_agree(a, b);
}

}  // namespace collet::hlo
