// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/spmd/sharding_rule.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "hlo/ops/constraint.h"
#include "hlo/ops/eval/body.h"
#include "hlo/ops/properties.h"
#include "hlo/passes/rewriter.h"

namespace collet::hlo::spmd {
namespace {

using Kind = ShardingRule::Kind;

// Builds the rule of one instruction.
class RuleBuilder {
 public:
  RuleBuilder(const Module& module, const Instruction& instr) : m_(module), instr_(instr) {
    for (InstrId id : instr.operands) rule.operands.emplace_back(rank_of(m_[id].shape));
    if (instr.shape.is_tuple())
      for (const Shape& element : instr.shape.elements()) rule.results.emplace_back(rank_of(element));
    else
      rule.results.emplace_back(rank_of(instr.shape));
  }

  const Module& module() const { return m_; }
  const Instruction& instr() const { return instr_; }
  const Shape& operand(size_t k) const { return m_[instr_.operand(k)].shape; }
  int64_t size(size_t k, int64_t d) const { return operand(k).dim(static_cast<int>(d)); }
  int64_t result_size(int64_t d) const {
    const Shape& shape = instr_.shape.is_tuple() ? instr_.shape.element(0) : instr_.shape;
    return shape.dim(static_cast<int>(d));
  }

  int factor(int64_t size, Kind kind = Kind::Parallel) {
    rule.factors.push_back({size, kind, false});
    return static_cast<int>(rule.factors.size() - 1);
  }
  void in_operand(size_t k, int64_t d, int factor) { rule.operands[k][static_cast<size_t>(d)].push_back(factor); }
  void in_result(size_t r, int64_t d, int factor) { rule.results[r][static_cast<size_t>(d)].push_back(factor); }
  void in_results(int64_t d, int factor) {
    for (size_t r = 0; r < rule.results.size(); ++r) in_result(r, d, factor);
  }
  /// Dimension `from` of operand 0 is dimension `to` of the result.
  void pass(int64_t from, int64_t to) {
    const int f = factor(size(0, from));
    in_operand(0, from, f);
    in_result(0, to, f);
  }
  /// Dimension `d` of the operands in [first, last) and of the results is a windowed factor.
  void window(int64_t d, size_t first, size_t last) {
    int64_t least = result_size(d);
    for (size_t k = first; k < last; ++k) least = std::min(least, size(k, d));
    const int f = factor(least, Kind::Windowed);
    for (size_t k = first; k < last; ++k) in_operand(k, d, f);
    in_results(d, f);
  }

  ShardingRule rule;

 private:
  static size_t rank_of(const Shape& shape) { return shape.is_array() ? static_cast<size_t>(shape.rank()) : 0; }

  const Module& m_;
  const Instruction& instr_;
};

// The result and the operands have the same dimensions; scalar operands are replicated.
void elementwise(RuleBuilder& r, const Instruction& instr) {
  const Shape& shape = instr.shape.is_tuple() ? instr.shape.element(0) : instr.shape;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    const int f = r.factor(shape.dim(static_cast<int>(d)));
    r.in_results(d, f);
    for (size_t k = 0; k < instr.operands.size(); ++k)
      if (r.operand(k).rank() == shape.rank()) r.in_operand(k, d, f);
  }
}

// Adds a parallel factor for each dimension, which is the same in all operands and results, except those for which `stays` holds.
template <typename Stays>
void alike(RuleBuilder& r, const Instruction& instr, size_t first, size_t last, const Stays& stays) {
  const Shape& shape = r.operand(first);
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (stays(d)) continue;
    const int f = r.factor(shape.dim(static_cast<int>(d)));
    for (size_t k = first; k < last; ++k) r.in_operand(k, d, f);
    for (size_t i = 0; i < r.rule.results.size(); ++i) {
      const Shape& result = instr.shape.is_tuple() ? instr.shape.element(i) : instr.shape;
      if (result.rank() == shape.rank()) r.in_result(i, d, f);
    }
  }
}

// Finds the factors that the dimensions of operand and result have in common, from the major dimension on.
void reshape(RuleBuilder& r, const Instruction& instr) {
  const Shape &in = r.operand(0), &out = instr.shape;
  if (in.element_count() == 0) return;
  int i = 0, j = 0;
  int64_t a = 0, b = 0;  // remaining sizes of the current dimension of each side; 0: take the next dimension
  while (true) {
    while (i < in.rank() && a == 0 && in.dim(i) == 1) ++i;
    while (j < out.rank() && b == 0 && out.dim(j) == 1) ++j;
    if (i >= in.rank() || j >= out.rank()) return;
    if (a == 0) a = in.dim(i);
    if (b == 0) b = out.dim(j);
    const int64_t common = std::gcd(a, b);
    if (common == 1) {  // skip dimensions on both sides until their products are equal
      while (a != b) {
        if (a < b)
          a *= in.dim(++i);
        else
          b *= out.dim(++j);
      }
      ++i, ++j;
      a = b = 0;
      continue;
    }
    const int f = r.factor(common);
    r.in_operand(0, i, f);
    r.in_result(0, j, f);
    // In larger dimensions, tiles of the factor are tiles of the dimension only if they have no padding.
    r.rule.factors[static_cast<size_t>(f)].even = common != in.dim(i) || common != out.dim(j);
    a /= common;
    b /= common;
    if (a == 1) ++i, a = 0;
    if (b == 1) ++j, b = 0;
  }
}

// True if combining the initial value several times has the same result as combining it once.
bool begins_neutral(const Module& module, const Instruction& init, CompId computation) {
  if (init.op != Op::CONSTANT || init.shape.rank() != 0) return false;
  const Literal& value = module.literal(init);
  const Type type = init.shape.type();
  switch (eval::single_op(module, computation)) {
    case Op::ADD:
    case Op::OR:
    case Op::XOR:
      return value.as_double(0) == 0 && value.imaginary(0) == 0;
    case Op::MULTIPLY:
      return value.as_double(0) == 1 && value.imaginary(0) == 0;
    case Op::AND:
      return type == Type::PRED && value.as_int(0) != 0;
    case Op::MAXIMUM:
    case Op::MINIMUM:
      return true;  // combining an initial value several times has the same result
    default:
      return false;
  }
}

void reduce(RuleBuilder& r, const Module& module, const Instruction& instr) {
  const Dims dims = instr.as<DimensionsAttrs>().dimensions;
  const size_t n = instr.operands.size() / 2;
  const bool splits = n == 1 && begins_neutral(module, module[instr.operand(1)], instr.called[0]);
  if (splits) r.rule.combine = instr.called[0];
  int64_t to = 0;
  for (int64_t d = 0; d < r.operand(0).rank(); ++d) {
    const bool gone = contains(dims, d);
    if (gone && !splits) continue;
    const int f = r.factor(r.size(0, d), gone ? Kind::Reduced : Kind::Parallel);
    for (size_t k = 0; k < n; ++k) r.in_operand(k, d, f);
    if (!gone) r.in_results(to++, f);
  }
}

void dot(RuleBuilder& r, const Instruction& instr) {
  const auto& a = instr.as<DotAttrs>();
  int64_t to = 0;
  for (size_t i = 0; i < a.lhs_batch.size(); ++i) {
    const int f = r.factor(r.size(0, a.lhs_batch[i]));
    r.in_operand(0, a.lhs_batch[i], f);
    r.in_operand(1, a.rhs_batch[i], f);
    r.in_result(0, to++, f);
  }
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const Dims batch = side ? a.rhs_batch : a.lhs_batch, contracting = side ? a.rhs_contracting : a.lhs_contracting;
    for (int64_t d = 0; d < r.operand(side).rank(); ++d) {
      if (contains(batch, d) || contains(contracting, d)) continue;
      const int f = r.factor(r.size(side, d));
      r.in_operand(side, d, f);
      r.in_result(0, to++, f);
    }
  }
  for (size_t i = 0; i < a.lhs_contracting.size(); ++i) {
    const int f = r.factor(r.size(0, a.lhs_contracting[i]), Kind::Reduced);
    r.in_operand(0, a.lhs_contracting[i], f);
    r.in_operand(1, a.rhs_contracting[i], f);
  }
}

// Returns the dimensions 0 ... rank-1 that are not in the lists, in ascending order.
std::vector<int64_t> others(int64_t rank, Dims a, Dims b = {}) {
  std::vector<int64_t> out;
  for (int64_t d = 0; d < rank; ++d)
    if (!contains(a, d) && !contains(b, d)) out.push_back(d);
  return out;
}

bool is_trivial(const Window& w, int64_t d) {
  const auto i = static_cast<size_t>(d);
  return w.size[i] == 1 && w.stride_at(i) == 1 && w.low_at(i) == 0 && w.high_at(i) == 0 && w.base_dilation_at(i) == 1;
}

bool takes_all(const SliceRanges& s, size_t d, int64_t size) {
  return s.start[d] == 0 && s.limit[d] == size && (s.stride.empty() || s.stride[d] == 1);
}

bool adds_nothing(const Padding& p, size_t d) {
  return p.low[d] == 0 && p.high[d] == 0 && (p.interior.empty() || p.interior[d] == 0);
}

// True if terms of this type, all but one of which are zero, can be added without changing that one. The sum is
// computed on their bits, so there must be an integer type of the same width.
bool sums_exactly(Type type) {
  const int bits = type_info(type).bits;
  return type == Type::PRED || (!is_complex(type) && (bits == 8 || bits == 16 || bits == 32 || bits == 64));
}

void convolution(RuleBuilder& r) {
  const auto& a = r.instr().as<ConvolutionAttrs>();
  const DimLabels& l = a.labels;
  if (a.batch_groups > 1) return;
  r.pass(l.input_batch, l.output_batch);
  for (size_t i = 0; i < l.input_spatial.size() && i < a.window.rank(); ++i) {
    const int64_t in = l.input_spatial[i], kernel = l.kernel_spatial[i], out = l.output_spatial[i];
    if (r.size(1, kernel) > r.result_size(out) && !a.window.reversed_at(i)) {
      const int f = r.factor(std::min(r.size(1, kernel), r.size(0, in)), Kind::WindowReduced);
      r.in_operand(0, in, f);
      r.in_operand(1, kernel, f);
    } else {
      const int f = r.factor(std::min(r.size(0, in), r.result_size(out)), Kind::Windowed);
      r.in_operand(0, in, f);
      r.in_result(0, out, f);
    }
  }
  if (a.feature_groups > 1) return;
  const int out = r.factor(r.size(1, l.kernel_output_feature));
  r.in_operand(1, l.kernel_output_feature, out);
  r.in_result(0, l.output_feature, out);
  const int in = r.factor(r.size(0, l.input_feature), Kind::Reduced);
  r.in_operand(0, l.input_feature, in);
  r.in_operand(1, l.kernel_input_feature, in);
}

void gather(RuleBuilder& r) {
  const auto& a = r.instr().as<GatherAttrs>();
  const std::vector<int64_t> windows = others(r.operand(0).rank(), a.collapsed_slice_dims, a.operand_batching_dims);
  for (size_t i = 0; i < windows.size() && i < a.offset_dims.size(); ++i)
    if (a.slice_sizes[static_cast<size_t>(windows[i])] == r.size(0, windows[i])) r.pass(windows[i], a.offset_dims[i]);
  const std::vector<int64_t> batch = others(r.instr().shape.rank(), a.offset_dims);
  size_t to = 0;
  for (int64_t d = 0; d < r.operand(1).rank(); ++d) {
    if (d == a.index_vector_dim) continue;
    const int f = r.factor(r.size(1, d));
    r.in_operand(1, d, f);
    r.in_result(0, batch[to++], f);
    for (size_t i = 0; i < a.start_indices_batching_dims.size(); ++i)
      if (a.start_indices_batching_dims[i] == d) r.in_operand(0, a.operand_batching_dims[i], f);
  }
  if (!sums_exactly(r.instr().shape.type())) return;
  for (int64_t d : a.collapsed_slice_dims)
    if (contains(a.start_index_map, d) && a.slice_sizes[static_cast<size_t>(d)] == 1)
      r.in_operand(0, d, r.factor(r.size(0, d), Kind::Selected));
}

bool is_positive_zero(const Module& module, InstrId id) {
  const Literal* value = splat_value(module, id);
  if (!value || value->element_count() == 0) return false;
  const auto bytes = static_cast<size_t>(value->byte_size() / value->element_count());
  return std::all_of(value->bytes(), value->bytes() + bytes, [](uint8_t b) { return b == 0; });
}

void scatter(RuleBuilder& r, bool terms) {
  const Instruction& instr = r.instr();
  const auto& a = instr.as<ScatterAttrs>();
  const size_t n = (instr.operands.size() - 1) / 2, indices = n, update = n + 1;
  const std::vector<int64_t> windows = others(r.operand(0).rank(), a.inserted_window_dims, a.input_batching_dims);
  const auto in_operands = [&](int64_t d, int f) {
    for (size_t k = 0; k < n; ++k) r.in_operand(k, d, f);
    r.in_results(d, f);
  };
  for (size_t i = 0; i < windows.size() && i < a.update_window_dims.size(); ++i) {
    if (r.size(update, a.update_window_dims[i]) != r.size(0, windows[i])) continue;
    const int f = r.factor(r.size(0, windows[i]));
    in_operands(windows[i], f);
    for (size_t k = 0; k < n; ++k) r.in_operand(update + k, a.update_window_dims[i], f);
  }
  // A tile drops the updates of other tiles, as a scatter drops those outside of the array.
  for (int64_t d : a.inserted_window_dims)
    if (contains(a.scatter_dims_to_operand_dims, d)) in_operands(d, r.factor(r.size(0, d)));
  const std::vector<int64_t> batch = others(r.operand(update).rank(), a.update_window_dims);
  const bool zero = is_positive_zero(r.module(), instr.operand(0));
  const bool splits = (terms || zero) && n == 1 && eval::single_op(r.module(), instr.called[0]) == Op::ADD;
  if (splits && !zero) r.rule.once = {0};
  size_t to = 0;
  for (int64_t d = 0; d < r.operand(indices).rank(); ++d) {
    if (d == a.index_vector_dim) continue;
    const int64_t at = batch[to++];
    if (splits &&
        !contains(a.scatter_indices_batching_dims, d)) {  // updates may be applied in any order, by any partition
      const int f = r.factor(r.size(indices, d), Kind::Reduced);
      r.in_operand(indices, d, f);
      r.in_operand(update, at, f);
    }
    for (size_t i = 0; i < a.scatter_indices_batching_dims.size(); ++i) {
      if (a.scatter_indices_batching_dims[i] != d) continue;
      const int f = r.factor(r.size(indices, d));
      r.in_operand(indices, d, f);
      in_operands(a.input_batching_dims[i], f);
      for (size_t k = 0; k < n; ++k) r.in_operand(update + k, at, f);
    }
  }
}

void movement(RuleBuilder& r) {
  const Instruction& instr = r.instr();
  if (instr.op == Op::BROADCAST) {
    const Dims dims = instr.as<BroadcastAttrs>().dimensions;
    for (size_t d = 0; d < dims.size(); ++d) r.pass(static_cast<int64_t>(d), dims[d]);
    for (int64_t d = 0; d < instr.shape.rank(); ++d)
      if (!contains(dims, d)) r.in_result(0, d, r.factor(r.result_size(d)));
    return;
  }
  if (instr.op == Op::TRANSPOSE) {
    const Dims dims = instr.as<DimensionsAttrs>().dimensions;
    for (size_t d = 0; d < dims.size(); ++d) r.pass(dims[d], static_cast<int64_t>(d));
    return;
  }
  for (int64_t d = 0; d < r.operand(0).rank(); ++d) {
    const auto i = static_cast<size_t>(d);
    switch (instr.op) {
      case Op::SLICE:
        takes_all(instr.as<SliceAttrs>().slice, i, r.size(0, d)) ? r.pass(d, d) : r.window(d, 0, 1);
        break;
      case Op::PAD:
        adds_nothing(instr.as<PadAttrs>().padding, i) ? r.pass(d, d) : r.window(d, 0, 1);
        break;
      case Op::REVERSE:
        contains(instr.as<DimensionsAttrs>().dimensions, d) ? r.window(d, 0, 1) : r.pass(d, d);
        break;
      case Op::DYNAMIC_SLICE:
        if (instr.as<DynamicSliceAttrs>().sizes[i] == r.size(0, d))
          r.pass(d, d);
        else if (sums_exactly(instr.shape.type()))
          r.in_operand(0, d, r.factor(r.size(0, d), Kind::Selected));
        break;
      default: {  // dynamic-update-slice: each tile is overwritten by the part of the update that is inside of it
        const int f = r.factor(r.size(0, d));
        r.in_operand(0, d, f);
        r.in_result(0, d, f);
        if (r.size(1, d) == r.size(0, d)) r.in_operand(1, d, f);
      }
    }
  }
}

void concatenate(RuleBuilder& r) {
  const int64_t along = r.instr().as<DimensionAttrs>().dimension;
  alike(r, r.instr(), 0, r.instr().operands.size(), [&](int64_t d) { return d == along; });
  r.window(along, 0, r.instr().operands.size());
}

void reduce_window(RuleBuilder& r) {
  const Instruction& instr = r.instr();
  const Window& w = instr.as<WindowAttrs>().window;
  const size_t n = instr.operands.size() / 2;
  alike(r, instr, 0, n, [&](int64_t d) { return !is_trivial(w, d); });
  // Elements outside of the array have the initial value in a halo. The op does not combine them, so that value must be neutral.
  if (n != 1 || !begins_neutral(r.module(), r.module()[instr.operand(1)], instr.called[0])) return;
  for (int64_t d = 0; d < r.operand(0).rank(); ++d)
    if (!is_trivial(w, d)) r.window(d, 0, n);
}

bool make_rule(RuleBuilder& r, bool terms) {
  const Instruction& instr = r.instr();
  const Module& module = r.module();
  switch (instr.op) {
    case Op::BROADCAST:
    case Op::TRANSPOSE:
    case Op::SLICE:
    case Op::PAD:
    case Op::REVERSE:
      movement(r);
      return true;
    case Op::DYNAMIC_SLICE:
    case Op::DYNAMIC_UPDATE_SLICE:
      if (position_of_starts(module, instr) != 0) return false;
      movement(r);
      return true;
    case Op::CONCATENATE:
      concatenate(r);
      return true;
    case Op::IOTA:
    case Op::CONSTANT:
      if (!instr.shape.is_array()) return false;
      for (int64_t d = 0; d < instr.shape.rank(); ++d) r.in_result(0, d, r.factor(r.result_size(d)));
      return true;
    case Op::RESHAPE:
      reshape(r, instr);
      return true;
    case Op::REDUCE:
      reduce(r, module, instr);
      return true;
    case Op::DOT:
      dot(r, instr);
      return true;
    case Op::CONVOLUTION:
      convolution(r);
      return true;
    case Op::GATHER:
      gather(r);
      return true;
    case Op::SCATTER:
      scatter(r, terms);
      return true;
    case Op::SORT:
      alike(r, instr, 0, instr.operands.size(), [&](int64_t d) { return d == instr.as<SortAttrs>().dimension; });
      return true;
    case Op::TOPK:
      alike(r, instr, 0, 1, [&](int64_t d) { return d == r.operand(0).rank() - 1; });
      return true;
    case Op::REDUCE_WINDOW:
      reduce_window(r);
      return true;
    case Op::SELECT_AND_SCATTER:
      alike(r, instr, 0, 2, [&](int64_t d) { return !is_trivial(instr.as<WindowAttrs>().window, d); });
      return true;
    case Op::FFT:
      alike(r, instr, 0, 1, [&](int64_t d) {
        return d >= r.operand(0).rank() - static_cast<int64_t>(instr.as<FftAttrs>().length.size());
      });
      return true;
    case Op::CHOLESKY:
    case Op::TRIANGULAR_SOLVE:
      alike(r, instr, 0, instr.operands.size(), [&](int64_t d) { return d >= r.operand(0).rank() - 2; });
      return true;
    case Op::MAP:
    case Op::COPY:
      if (!instr.shape.is_array()) return false;
      elementwise(r, instr);
      return true;
    case Op::BITCAST_CONVERT:
      if (r.operand(0).rank() != instr.shape.rank()) return false;
      elementwise(r, instr);
      return true;
    default:
      if (!op_info(instr.op).has(COLLET_OP_ELEMENTWISE) || !instr.shape.is_array()) return false;
      elementwise(r, instr);
      return true;
  }
}

// True if converted terms are the terms of the converted sum, rounding and the loss of high bits aside.
bool converts_terms(Type from, Type to) {
  if (is_integer(from)) return is_integer(to) && type_info(to).bits <= type_info(from).bits;
  return (is_float(from) && (is_float(to) || is_complex(to))) || (is_complex(from) && is_complex(to));
}

// Returns the input of the windows [step * i - low, step * i - low + length) of an array that is dilated and padded.
std::optional<InputWindow> slide(int64_t low, int64_t dilation, int64_t step, int64_t length) {
  if (step % dilation) return std::nullopt;
  const auto up = [](int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); };
  InputWindow w;
  w.step = step / dilation;
  w.offset = up(-low, dilation);
  w.low = w.offset * dilation + low;
  if (w.low >= length) return std::nullopt;
  w.length = (length - 1 - w.low) / dilation + 1;
  w.high = length - (w.low + (w.length - 1) * dilation + 1);
  return w;
}

}  // namespace

bool ShardingRule::adds(const Module& module) const {
  return combine == CompId::None || eval::single_op(module, combine) == Op::ADD;
}

std::optional<ShardingRule> sharding_rule(const Module& module, const Instruction& instr, bool scatter_terms) {
  for (InstrId id : instr.operands)
    if (!module[id].shape.is_array() || module[id].shape.has_dynamic()) return std::nullopt;
  if (instr.shape.has_dynamic()) return std::nullopt;
  RuleBuilder r(module, instr);
  if (!make_rule(r, scatter_terms)) return std::nullopt;
  for (const auto* arrays : {&r.rule.operands, &r.rule.results})
    for (const ShardingRule::Array& array : *arrays)
      for (const ShardingRule::Dimension& factors : array)
        if (factors.size() > 1)
          for (int f : factors) r.rule.factors[static_cast<size_t>(f)].even = true;
  for (ShardingRule::Factor& f : r.rule.factors)
    if (f.kind == Kind::WindowReduced)
      f.even = true;  // padding of an uneven kernel tile would be multiplied with the input
  return std::move(r.rule);
}

namespace {

std::optional<InputWindow> window_of_op(const Module& module, const Instruction& instr, size_t k, int64_t d,
                                        int64_t count) {
  const auto i = static_cast<size_t>(d);
  const Shape& in = module[instr.operand(k)].shape;
  const Shape& out = instr.shape.is_tuple() ? instr.shape.element(0) : instr.shape;
  const int64_t size = in.dim(static_cast<int>(d));
  switch (instr.op) {
    case Op::SLICE: {
      const SliceRanges& s = instr.as<SliceAttrs>().slice;
      const int64_t stride = s.stride.empty() ? 1 : s.stride[i], tile = tile_size(out.dim(static_cast<int>(d)), count);
      return InputWindow{tile * stride, s.start[i], (tile - 1) * stride + 1};
    }
    case Op::PAD: {
      const Padding& p = instr.as<PadAttrs>().padding;
      const int64_t tile = tile_size(out.dim(static_cast<int>(d)), count);
      return slide(p.low[i], p.interior.empty() ? 1 : p.interior[i] + 1, tile, tile);
    }
    case Op::REVERSE: {  // the tiles and their order are reversed first; this is the window in that array
      const int64_t tile = tile_size(size, count);
      return InputWindow{tile, count * tile - size, tile, 0, 0, count * tile};
    }
    case Op::CONCATENATE: {
      int64_t before = 0;
      for (size_t j = 0; j < k; ++j) before += module[instr.operand(j)].shape.dim(static_cast<int>(d));
      const int64_t tile = tile_size(out.dim(static_cast<int>(d)), count);
      return InputWindow{tile, -before, tile};
    }
    case Op::REDUCE_WINDOW: {
      const Window& w = instr.as<WindowAttrs>().window;
      const int64_t tile = tile_size(out.dim(static_cast<int>(d)), count);
      const int64_t reach = (w.size[i] - 1) * w.window_dilation_at(i) + 1;
      return slide(w.low_at(i), w.base_dilation_at(i), tile * w.stride_at(i), (tile - 1) * w.stride_at(i) + reach);
    }
    case Op::CONVOLUTION: {
      const auto& a = instr.as<ConvolutionAttrs>();
      const Window& w = a.window;
      size_t s = 0;
      while (s < a.labels.input_spatial.size() && a.labels.input_spatial[s] != d) ++s;
      if (s == a.labels.input_spatial.size()) return std::nullopt;
      const int64_t outputs = out.dim(static_cast<int>(a.labels.output_spatial[s]));
      const int64_t taps = w.size[s], stride = w.stride_at(s), dilation = w.window_dilation_at(s);
      if (taps > outputs && !w.reversed_at(s)) {  // the taps are split
        const int64_t tile = tile_size(taps, count);
        return slide(w.low_at(s), w.base_dilation_at(s), tile * dilation,
                     (outputs - 1) * stride + (tile - 1) * dilation + 1);
      }
      const int64_t tile = tile_size(outputs, count);
      return slide(w.low_at(s), w.base_dilation_at(s), tile * stride, (tile - 1) * stride + (taps - 1) * dilation + 1);
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<InputWindow> input_window(const Module& module, const Instruction& instr, size_t k, int64_t d,
                                        int64_t count) {
  auto out = window_of_op(module, instr, k, d, count);
  if (out && out->size == 0) out->size = module[instr.operand(k)].shape.dim(static_cast<int>(d));
  return out;
}

std::optional<HaloPlan> plan_halo(int64_t count, const InputWindow& window) {
  constexpr int64_t kMostPieces = 8;  // limit, because each piece needs a collective
  const int64_t size = window.size;
  if (size <= 0 || window.length <= 0) return std::nullopt;
  const int64_t tile = tile_size(size, count);
  const auto floor_div = [](int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); };
  // Tiles whose window is outside of the array need no input.
  const auto meets = [&](int64_t i) {
    const int64_t start = window.step * i + window.offset;
    return start < size && start + window.length > 0;
  };
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (int64_t i = 0; i < count; ++i) {
    if (!meets(i)) continue;
    const int64_t start = window.step * i + window.offset;
    first = std::min(first, floor_div(start, tile) - i);
    last = std::max(last, floor_div(start + window.length - 1, tile) - i);
  }
  if (first > last) return std::nullopt;
  HaloPlan out;
  int64_t sends = 0;
  int64_t joined_start = 0;  // start of the joined pieces, relative to the first tile's start
  for (int64_t distance = first; distance <= last; ++distance) {
    HaloPlan::Piece piece{distance, 0, tile, 0, {}};
    if (distance == first || distance == last) {
      int64_t low = tile, high = 0;
      for (int64_t i = 0; i < count; ++i) {
        if (!meets(i)) continue;
        const int64_t begin = (i + distance) * tile, start = window.step * i + window.offset;
        const int64_t from = std::max(start, begin) - begin, to = std::min(start + window.length, begin + tile) - begin;
        if (from >= to) continue;
        low = std::min(low, from);
        high = std::max(high, to);
      }
      if (distance == first) piece.start = low;
      if (distance == last) piece.limit = high;
    }
    if (distance == first) joined_start = piece.start;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t from = i + distance, begin = from * tile, start = window.step * i + window.offset;
      if (from < 0 || from >= count) continue;
      if (std::max(start, begin) >= std::min({start + window.length, begin + tile, size})) continue;
      piece.targets.emplace_back(from, i);
    }
    piece.length = piece.limit - piece.start;
    if (distance != 0 && !piece.targets.empty()) {
      out.sent += piece.length;
      if (++sends > kMostPieces) return std::nullopt;
    }
    if (distance != 0 && piece.targets.empty() && !out.pieces.empty() && out.pieces.back().is_outside())
      out.pieces.back().length += piece.length;
    else
      out.pieces.push_back(std::move(piece));
  }
  for (int64_t i = 0; i < count; ++i)
    out.offsets.push_back(window.step * i + window.offset - (i + first) * tile - joined_start);
  return out;
}

namespace {

std::vector<size_t> linear_operands(const Instruction& instr) {
  std::vector<size_t> all(instr.operands.size());
  switch (op_properties(instr.op).linear) {
    case Linear::kNone:
      return {};
    case Linear::kFirst:
      return {0};
    case Linear::kFirstTwo:
      return {0, 1};
    case Linear::kBranches:
      return {1, 2};
    case Linear::kAll:
      std::iota(all.begin(), all.end(), size_t{0});
      return all;
  }
  return {};
}

}  // namespace

std::optional<std::vector<size_t>> unreduced_operands(const Module& module, const Instruction& instr,
                                                      const std::vector<bool>& unreduced) {
  std::vector<size_t> terms;
  switch (instr.op) {
    case Op::CONVERT:
      if (!converts_terms(module[instr.operand(0)].shape.type(), instr.shape.type())) return std::nullopt;
      terms = {0};
      break;
    case Op::MULTIPLY:  // division is not included: with several terms zero, 0/0 would be added to the sum
      if (unreduced[0] && unreduced[1]) return std::nullopt;
      return std::vector<size_t>{unreduced[0] ? size_t{0} : size_t{1}};
    case Op::REDUCE:
      if (instr.operands.size() != 2 || eval::single_op(module, instr.called[0]) != Op::ADD) return std::nullopt;
      terms = {0, 1};
      break;
    case Op::SCATTER:
      if (instr.operands.size() != 3 || eval::single_op(module, instr.called[0]) != Op::ADD) return std::nullopt;
      terms = {0, 2};
      break;
    default:
      terms = linear_operands(instr);
      if (terms.empty()) return std::nullopt;
  }
  for (size_t k = 0; k < unreduced.size(); ++k)
    if (unreduced[k] && std::find(terms.begin(), terms.end(), k) == terms.end()) return std::nullopt;
  return terms;
}

const void* tile_attributes(Module& module, const Instruction& instr, const Shape& operand, const Shape& result) {
  switch (instr.op) {
    case Op::SLICE: {
      auto* attrs = module.make<SliceAttrs>();
      *attrs = instr.as<SliceAttrs>();
      std::vector<int64_t> limit(attrs->slice.limit.begin(), attrs->slice.limit.end());
      const Shape& was = module[instr.operand(0)].shape;
      for (size_t d = 0; d < limit.size(); ++d)
        if (takes_all(attrs->slice, d, was.dim(static_cast<int>(d)))) limit[d] = operand.dim(static_cast<int>(d));
      attrs->slice.limit = module.dims(limit);
      return attrs;
    }
    case Op::DYNAMIC_SLICE: {
      auto* attrs = module.make<DynamicSliceAttrs>();
      attrs->sizes = module.dims(result.dims());
      return attrs;
    }
    case Op::GATHER: {
      auto* attrs = module.make<GatherAttrs>();
      *attrs = instr.as<GatherAttrs>();
      std::vector<int64_t> sizes(attrs->slice_sizes.begin(), attrs->slice_sizes.end());
      const Shape& was = module[instr.operand(0)].shape;
      for (size_t d = 0; d < sizes.size(); ++d)
        if (sizes[d] == was.dim(static_cast<int>(d))) sizes[d] = operand.dim(static_cast<int>(d));
      attrs->slice_sizes = module.dims(sizes);
      return attrs;
    }
    case Op::RESHAPE:
      return nullptr;  // a dimension that the caller wants inferred is not needed
    default:
      return instr.attrs;
  }
}

}  // namespace collet::hlo::spmd
