// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/spmd/rules.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "hlo/ops/eval/body.h"

namespace collet::hlo::spmd {
namespace {

bool contains(Dims dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

// Builds the rule of one instruction.
class Maker {
 public:
  Maker(const Module& module, const Instruction& instr) : m_(module), instr_(instr) {
    for (InstrId id : instr.operands) rule.operands.emplace_back(rank_of(m_[id].shape));
    if (instr.shape.is_tuple())
      for (const Shape& element : instr.shape.elements()) rule.results.emplace_back(rank_of(element));
    else
      rule.results.emplace_back(rank_of(instr.shape));
  }

  const Shape& operand(size_t k) const { return m_[instr_.operand(k)].shape; }
  int64_t size(size_t k, int64_t d) const { return operand(k).dim(static_cast<int>(d)); }

  int factor(int64_t size, bool reduced = false) {
    rule.factors.push_back({size, reduced});
    return static_cast<int>(rule.factors.size() - 1);
  }
  void of_operand(size_t k, int64_t d, int factor) { rule.operands[k][static_cast<size_t>(d)].push_back(factor); }
  void of_result(size_t r, int64_t d, int factor) { rule.results[r][static_cast<size_t>(d)].push_back(factor); }
  void of_results(int64_t d, int factor) {
    for (size_t r = 0; r < rule.results.size(); ++r) of_result(r, d, factor);
  }
  /// Dimension `from` of operand 0 is dimension `to` of the result.
  void pass(int64_t from, int64_t to) {
    const int f = factor(size(0, from));
    of_operand(0, from, f);
    of_result(0, to, f);
  }

  Rule rule;

 private:
  static size_t rank_of(const Shape& shape) { return shape.is_array() ? static_cast<size_t>(shape.rank()) : 0; }

  const Module& m_;
  const Instruction& instr_;
};

// Result and operands have the same dimensions; scalars among operands go to everybody.
void elementwise(Maker& r, const Instruction& instr) {
  const Shape& shape = instr.shape.is_tuple() ? instr.shape.element(0) : instr.shape;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    const int f = r.factor(shape.dim(static_cast<int>(d)));
    r.of_results(d, f);
    for (size_t k = 0; k < instr.operands.size(); ++k)
      if (r.operand(k).rank() == shape.rank()) r.of_operand(k, d, f);
  }
}

// Dimensions of all operands and results alike, but for those that `stays` names.
template <typename Stays>
void alike(Maker& r, const Instruction& instr, size_t first, size_t last, const Stays& stays) {
  const Shape& shape = r.operand(first);
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (stays(d)) continue;
    const int f = r.factor(shape.dim(static_cast<int>(d)));
    for (size_t k = first; k < last; ++k) r.of_operand(k, d, f);
    for (size_t i = 0; i < r.rule.results.size(); ++i) {
      const Shape& result = instr.shape.is_tuple() ? instr.shape.element(i) : instr.shape;
      if (result.rank() == shape.rank()) r.of_result(i, d, f);
    }
  }
}

// Factors that the dimensions on both sides have in common, from the left.
void reshape(Maker& r, const Instruction& instr) {
  const Shape &in = r.operand(0), &out = instr.shape;
  if (in.element_count() == 0) return;
  int i = 0, j = 0;
  int64_t a = 0, b = 0;  // what is left of the two dimensions at hand; 0: none is begun
  while (true) {
    while (i < in.rank() && a == 0 && in.dim(i) == 1) ++i;
    while (j < out.rank() && b == 0 && out.dim(j) == 1) ++j;
    if (i >= in.rank() || j >= out.rank()) return;
    if (a == 0) a = in.dim(i);
    if (b == 0) b = out.dim(j);
    const int64_t common = std::gcd(a, b);
    if (common == 1) {  // nothing more in common until both sides have come to the same place
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
    r.of_operand(0, i, f);
    r.of_result(0, j, f);
    a /= common;
    b /= common;
    if (a == 1) ++i, a = 0;
    if (b == 1) ++j, b = 0;
  }
}

// The computation's op leaves everything as it is with the initial value.
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
      return true;  // once or many times is the same
    default:
      return false;
  }
}

void reduce(Maker& r, const Module& module, const Instruction& instr) {
  const Dims dims = instr.as<DimensionsAttrs>().dimensions;
  const size_t n = instr.operands.size() / 2;
  const bool splits = n == 1 && begins_neutral(module, module[instr.operand(1)], instr.called[0]);
  if (splits) r.rule.combine = instr.called[0];
  int64_t to = 0;
  for (int64_t d = 0; d < r.operand(0).rank(); ++d) {
    const bool gone = contains(dims, d);
    if (gone && !splits) continue;
    const int f = r.factor(r.size(0, d), gone);
    for (size_t k = 0; k < n; ++k) r.of_operand(k, d, f);
    if (!gone) r.of_results(to++, f);
  }
}

void dot(Maker& r, const Instruction& instr) {
  const auto& a = instr.as<DotAttrs>();
  int64_t to = 0;
  for (size_t i = 0; i < a.lhs_batch.size(); ++i) {
    const int f = r.factor(r.size(0, a.lhs_batch[i]));
    r.of_operand(0, a.lhs_batch[i], f);
    r.of_operand(1, a.rhs_batch[i], f);
    r.of_result(0, to++, f);
  }
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const Dims batch = side ? a.rhs_batch : a.lhs_batch, contracting = side ? a.rhs_contracting : a.lhs_contracting;
    for (int64_t d = 0; d < r.operand(side).rank(); ++d) {
      if (contains(batch, d) || contains(contracting, d)) continue;
      const int f = r.factor(r.size(side, d));
      r.of_operand(side, d, f);
      r.of_result(0, to++, f);
    }
  }
  for (size_t i = 0; i < a.lhs_contracting.size(); ++i) {
    const int f = r.factor(r.size(0, a.lhs_contracting[i]), true);
    r.of_operand(0, a.lhs_contracting[i], f);
    r.of_operand(1, a.rhs_contracting[i], f);
  }
}

void convolution(Maker& r, const Instruction& instr) {
  const auto& a = instr.as<ConvolutionAttrs>();
  const DimLabels& l = a.labels;
  if (a.batch_groups > 1) return;
  r.pass(l.input_batch, l.output_batch);
  if (a.feature_groups > 1) return;
  const int out = r.factor(r.size(1, l.kernel_output_feature));
  r.of_operand(1, l.kernel_output_feature, out);
  r.of_result(0, l.output_feature, out);
  const int in = r.factor(r.size(0, l.input_feature), true);
  r.of_operand(0, l.input_feature, in);
  r.of_operand(1, l.kernel_input_feature, in);
}

// Dimensions of `rank`, those in the lists aside, in order.
std::vector<int64_t> others(int64_t rank, Dims a, Dims b = {}) {
  std::vector<int64_t> out;
  for (int64_t d = 0; d < rank; ++d)
    if (!contains(a, d) && !contains(b, d)) out.push_back(d);
  return out;
}

void gather(Maker& r, const Instruction& instr) {
  const auto& a = instr.as<GatherAttrs>();
  const std::vector<int64_t> windows = others(r.operand(0).rank(), a.collapsed_slice_dims, a.operand_batching_dims);
  for (size_t i = 0; i < windows.size() && i < a.offset_dims.size(); ++i)
    if (a.slice_sizes[static_cast<size_t>(windows[i])] == r.size(0, windows[i])) r.pass(windows[i], a.offset_dims[i]);
  const std::vector<int64_t> batch = others(instr.shape.rank(), a.offset_dims);
  size_t to = 0;
  for (int64_t d = 0; d < r.operand(1).rank(); ++d) {
    if (d == a.index_vector_dim) continue;
    const int f = r.factor(r.size(1, d));
    r.of_operand(1, d, f);
    r.of_result(0, batch[to++], f);
    for (size_t i = 0; i < a.start_indices_batching_dims.size(); ++i)
      if (a.start_indices_batching_dims[i] == d) r.of_operand(0, a.operand_batching_dims[i], f);
  }
}

void scatter(Maker& r, const Module& module, const Instruction& instr, bool sums) {
  const auto& a = instr.as<ScatterAttrs>();
  const size_t n = (instr.operands.size() - 1) / 2, indices = n, update = n + 1;
  const std::vector<int64_t> windows = others(r.operand(0).rank(), a.inserted_window_dims, a.input_batching_dims);
  for (size_t i = 0; i < windows.size() && i < a.update_window_dims.size(); ++i) {
    if (r.size(update, a.update_window_dims[i]) != r.size(0, windows[i])) continue;
    const int f = r.factor(r.size(0, windows[i]));
    for (size_t k = 0; k < n; ++k) {
      r.of_operand(k, windows[i], f);
      r.of_operand(update + k, a.update_window_dims[i], f);
    }
    r.of_results(windows[i], f);
  }
  const std::vector<int64_t> batch = others(r.operand(update).rank(), a.update_window_dims);
  const bool splits = sums && n == 1 && eval::single_op(module, instr.called[0]) == Op::ADD;
  if (splits) r.rule.once = {0};
  size_t to = 0;
  for (int64_t d = 0; d < r.operand(indices).rank(); ++d) {
    if (d == a.index_vector_dim) continue;
    const int64_t at = batch[to++];
    if (splits && !contains(a.scatter_indices_batching_dims, d)) {  // updates in any order, by anybody
      const int f = r.factor(r.size(indices, d), true);
      r.of_operand(indices, d, f);
      r.of_operand(update, at, f);
    }
    for (size_t i = 0; i < a.scatter_indices_batching_dims.size(); ++i) {
      if (a.scatter_indices_batching_dims[i] != d) continue;
      const int f = r.factor(r.size(indices, d));
      r.of_operand(indices, d, f);
      for (size_t k = 0; k < n; ++k) {
        r.of_operand(k, a.input_batching_dims[i], f);
        r.of_operand(update + k, at, f);
      }
      r.of_results(a.input_batching_dims[i], f);
    }
  }
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

void movement(Maker& r, const Instruction& instr) {
  const Shape& in = r.operand(0);
  switch (instr.op) {
    case Op::BROADCAST: {
      const Dims dims = instr.as<BroadcastAttrs>().dimensions;
      for (size_t d = 0; d < dims.size(); ++d) r.pass(static_cast<int64_t>(d), dims[d]);
      return;
    }
    case Op::TRANSPOSE: {
      const Dims dims = instr.as<DimensionsAttrs>().dimensions;
      for (size_t d = 0; d < dims.size(); ++d) r.pass(dims[d], static_cast<int64_t>(d));
      return;
    }
    case Op::SLICE:
      for (int64_t d = 0; d < in.rank(); ++d)
        if (takes_all(instr.as<SliceAttrs>().slice, static_cast<size_t>(d), r.size(0, d))) r.pass(d, d);
      return;
    case Op::PAD:
      for (int64_t d = 0; d < in.rank(); ++d)
        if (adds_nothing(instr.as<PadAttrs>().padding, static_cast<size_t>(d))) r.pass(d, d);
      return;
    case Op::REVERSE:
      return alike(r, instr, 0, 1, [&](int64_t d) { return contains(instr.as<DimensionsAttrs>().dimensions, d); });
    case Op::CONCATENATE:
      return alike(r, instr, 0, instr.operands.size(),
                   [&](int64_t d) { return d == instr.as<DimensionAttrs>().dimension; });
    case Op::DYNAMIC_SLICE:
      return alike(r, instr, 0, 1, [&](int64_t d) {
        return instr.as<DynamicSliceAttrs>().sizes[static_cast<size_t>(d)] != r.size(0, d);
      });
    default:  // dynamic-update-slice
      return alike(r, instr, 0, 2, [&](int64_t d) { return r.size(1, d) != r.size(0, d); });
  }
}

}  // namespace

std::optional<Rule> rule_of(const Module& module, const Instruction& instr, bool sums) {
  for (InstrId id : instr.operands)
    if (!module[id].shape.is_array() || module[id].shape.has_dynamic()) return std::nullopt;
  Maker r(module, instr);
  switch (instr.op) {
    case Op::BROADCAST:
    case Op::TRANSPOSE:
    case Op::SLICE:
    case Op::PAD:
    case Op::REVERSE:
    case Op::CONCATENATE:
    case Op::DYNAMIC_SLICE:
    case Op::DYNAMIC_UPDATE_SLICE:
      movement(r, instr);
      break;
    case Op::RESHAPE:
      reshape(r, instr);
      break;
    case Op::REDUCE:
      reduce(r, module, instr);
      break;
    case Op::DOT:
      dot(r, instr);
      break;
    case Op::CONVOLUTION:
      convolution(r, instr);
      break;
    case Op::GATHER:
      gather(r, instr);
      break;
    case Op::SCATTER:
      scatter(r, module, instr, sums);
      break;
    case Op::SORT:
      alike(r, instr, 0, instr.operands.size(), [&](int64_t d) { return d == instr.as<SortAttrs>().dimension; });
      break;
    case Op::TOPK:
      alike(r, instr, 0, 1, [&](int64_t d) { return d == r.operand(0).rank() - 1; });
      break;
    case Op::REDUCE_WINDOW:
      alike(r, instr, 0, instr.operands.size() / 2,
            [&](int64_t d) { return !is_trivial(instr.as<WindowAttrs>().window, d); });
      break;
    case Op::SELECT_AND_SCATTER:
      alike(r, instr, 0, 2, [&](int64_t d) { return !is_trivial(instr.as<WindowAttrs>().window, d); });
      break;
    case Op::FFT:
      alike(r, instr, 0, 1, [&](int64_t d) {
        return d >= r.operand(0).rank() - static_cast<int64_t>(instr.as<FftAttrs>().length.size());
      });
      break;
    case Op::CHOLESKY:
    case Op::TRIANGULAR_SOLVE:
      alike(r, instr, 0, instr.operands.size(), [&](int64_t d) { return d >= r.operand(0).rank() - 2; });
      break;
    case Op::MAP:
    case Op::COPY:
      elementwise(r, instr);
      break;
    case Op::BITCAST_CONVERT:
      if (r.operand(0).rank() != instr.shape.rank()) return std::nullopt;
      elementwise(r, instr);
      break;
    default:
      if (!op_info(instr.op).has(COLLET_OP_ELEMENTWISE) || !instr.shape.is_array()) return std::nullopt;
      elementwise(r, instr);
  }
  return std::move(r.rule);
}

const void* local_attributes(Module& module, const Instruction& instr, const Shape& operand, const Shape& result) {
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
      return nullptr;  // without a dimension that was inferred
    default:
      return instr.attrs;
  }
}

}  // namespace collet::hlo::spmd
