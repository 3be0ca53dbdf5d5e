// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/ops/eval/body.h"
#include "hlo/ops/eval/families.h"
#include "hlo/ops/eval/pack.h"
#include "hlo/ops/eval/strided.h"

namespace collet::hlo {
namespace {

using namespace eval;

bool has(Dims dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

/// The index operand of gather and scatter: a list of index vectors, one per position of its other dimensions.
struct IndexVectors {
  const Literal& indices;
  int64_t vector_dim;
  Ints dims;     // sizes of the other dimensions
  Ints strides;  // strides of the other dimensions in the index operand
  int64_t step;  // stride between the entries of an index vector

  IndexVectors(const Literal& operand, int64_t index_vector_dim) : indices(operand), vector_dim(index_vector_dim) {
    const Ints all = row_major_strides(operand.shape().dims());
    for (int64_t d = 0; d < operand.shape().rank(); ++d) {
      if (d == vector_dim) continue;
      dims.push_back(operand.shape().dims()[static_cast<size_t>(d)]);
      strides.push_back(all[static_cast<size_t>(d)]);
    }
    step = vector_dim < operand.shape().rank() ? all[static_cast<size_t>(vector_dim)] : 0;
  }
  /// Returns the position in `dims` of dimension `d` of the index operand.
  size_t position(int64_t d) const { return static_cast<size_t>(d > vector_dim ? d - 1 : d); }
  int64_t entry(int64_t offset, size_t k) const {
    const int64_t value = indices.as_int(offset + static_cast<int64_t>(k) * step);
    return indices.type() == Type::U64 && value < 0 ? INT64_MAX : value;
  }
};

/// Returns the dimensions 0 ... rank-1 that are not in `list`, in order.
Ints others(int64_t rank, Dims list) {
  Ints out;
  for (int64_t d = 0; d < rank; ++d)
    if (!has(list, d)) out.push_back(d);
  return out;
}

Expected<Literal> evaluate_gather(const EvalInput& in) {
  const auto& attrs = in.instr.as<GatherAttrs>();
  const Literal& operand = in.operand(0);
  const IndexVectors vectors(in.operand(1), attrs.index_vector_dim);
  COLLET_TRY(check_size(in.instr.shape));
  Literal out = Literal::uninitialized(in.instr.shape);
  if (out.element_count() == 0) return out;
  const int bytes = type_info(out.type()).bytes();
  const Ints to = row_major_strides(out.shape().dims()), from = row_major_strides(operand.shape().dims());
  // Strides in the result of the window's dimensions. Collapsed dimensions have size 1, so their stride is not used.
  Ints window_strides(from.size(), 0);
  size_t next = 0;
  for (size_t d = 0; d < from.size(); ++d)
    if (!has(attrs.collapsed_slice_dims, static_cast<int64_t>(d)) &&
        !has(attrs.operand_batching_dims, static_cast<int64_t>(d)))
      window_strides[d] = to[static_cast<size_t>(attrs.offset_dims[next++])];
  const StridedCopy copy(attrs.slice_sizes, from, window_strides, bytes);
  Ints batch_strides;
  for (int64_t d : others(out.shape().rank(), attrs.offset_dims)) batch_strides.push_back(to[static_cast<size_t>(d)]);
  uint8_t* target = out.mutable_bytes();
  for (IndexIterator it(vectors.dims, {vectors.strides, batch_strides}); !it.done(); it.next()) {
    int64_t at = 0;
    for (size_t k = 0; k < attrs.start_index_map.size(); ++k) {
      const auto d = static_cast<size_t>(attrs.start_index_map[k]);
      const int64_t most = operand.shape().dims()[d] - attrs.slice_sizes[d];
      at += std::clamp<int64_t>(vectors.entry(it.offset(0), k), 0, std::max<int64_t>(most, 0)) * from[d];
    }
    for (size_t k = 0; k < attrs.operand_batching_dims.size(); ++k)
      at += it.index()[vectors.position(attrs.start_indices_batching_dims[k])] *
            from[static_cast<size_t>(attrs.operand_batching_dims[k])];
    copy(operand.bytes() + at * bytes, target + it.offset(1) * bytes);
  }
  return out;
}

class Scatter {
 public:
  explicit Scatter(const EvalInput& in)
      : in_(in),
        attrs_(in.instr.as<ScatterAttrs>()),
        arrays_(in.operand_count() / 2),
        shape_(in.operand(0).shape()),
        update_shape_(in.operand(arrays_ + 1).shape()),
        vectors_(in.operand(arrays_), attrs_.index_vector_dim),
        strides_(row_major_strides(shape_.dims())) {
    const Ints update_strides = row_major_strides(update_shape_.dims());
    for (int64_t d : others(update_shape_.rank(), attrs_.update_window_dims))
      batch_strides_.push_back(update_strides[static_cast<size_t>(d)]);
    window_.assign(strides_.size(), 1);
    window_strides_.assign(strides_.size(), 0);
    size_t next = 0;
    for (size_t d = 0; d < strides_.size(); ++d) {
      const auto dim = static_cast<int64_t>(d);
      if (has(attrs_.inserted_window_dims, dim) || has(attrs_.input_batching_dims, dim)) continue;
      const auto u = static_cast<size_t>(attrs_.update_window_dims[next++]);
      window_[d] = update_shape_.dims()[u];
      window_strides_[d] = update_strides[u];
    }
  }

  Expected<Literal> run() {
    if (update_shape_.element_count() == 0 || shape_.element_count() == 0) return operands();
    if (assigns()) return assign();
    Body body(in_.module, in_.instr.called[0], in_.context);
    if (body.argument_count() != 2 * arrays_ || body.result_count() != arrays_)
      return invalid_argument("scatter's computation takes two scalars per operand and returns one");
    for (size_t k = 0; k < arrays_; ++k) {
      values_.push_back(pack(in_.operand(k)));
      updates_.push_back(pack(in_.operand(arrays_ + 1 + k)));
    }
    // A body that is a single op on one array is applied directly. By default each step is rounded; with
    // other_choices() the steps are not rounded in between.
    const Op op = arrays_ == 1 ? single_op(in_.module, in_.instr.called[0]) : Op::INVALID;
    const Type type = in_.operand(0).type();
    const Kernel kernel = op != Op::INVALID && type == updates_type() ? find_kernel(op, type) : nullptr;
    const int bits = type_info(type).bits;
    int64_t windows = 0;
    for (IndexIterator it(vectors_.dims, {vectors_.strides, batch_strides_}); !it.done(); it.next()) {
      if (++windows % 4096 == 0 && in_.context.cancelled()) return Status(Code::Cancelled, "cancelled in a scatter");
      int64_t at;
      if (!locate(it, at)) continue;
      for (IndexIterator inside(window_, {strides_, window_strides_}); !inside.done(); inside.next()) {
        const int64_t to = at + inside.offset(0), from = it.offset(1) + inside.offset(1);
        if (!kernel) {
          COLLET_TRY(combine(body, to, from));
          continue;
        }
        apply(kernel, bits, values_[0].at(to), values_[0].at(to), updates_[0].at(from), 1);
        if (!in_.context.other_choices()) codec(type).round(values_[0].at(to), 1);
      }
    }
    std::vector<Literal> results;
    for (size_t k = 0; k < arrays_; ++k) results.push_back(unpack(values_[k], result_shape(k)));
    return arrays_ == 1 && !in_.instr.shape.is_tuple() ? std::move(results[0]) : Literal::tuple(std::move(results));
  }

 private:
  Type updates_type() const { return in_.operand(arrays_ + 1).type(); }
  const Shape& result_shape(size_t k) const {
    return in_.instr.shape.is_tuple() ? in_.instr.shape.element(k) : in_.instr.shape;
  }
  Expected<Literal> operands() const {
    if (!in_.instr.shape.is_tuple()) return in_.operand(0);
    return Literal::tuple(
        std::vector<Literal>(in_.operands.begin(), in_.operands.begin() + static_cast<long>(arrays_)));
  }

  /// Finds the start of the window of this index vector. Returns false if the window is not completely inside of the array.
  bool locate(const IndexIterator& it, int64_t& at) const {
    at = 0;
    for (size_t k = 0; k < attrs_.scatter_dims_to_operand_dims.size(); ++k) {
      const auto d = static_cast<size_t>(attrs_.scatter_dims_to_operand_dims[k]);
      const int64_t start = vectors_.entry(it.offset(0), k);
      if (start < 0 || start > shape_.dims()[d] - window_[d]) return false;
      at += start * strides_[d];
    }
    for (size_t k = 0; k < attrs_.input_batching_dims.size(); ++k)
      at += it.index()[vectors_.position(attrs_.scatter_indices_batching_dims[k])] *
            strides_[static_cast<size_t>(attrs_.input_batching_dims[k])];
    for (size_t d = 0; d < window_.size(); ++d)
      if (window_[d] > shape_.dims()[d]) return false;
    return true;
  }

  /// True if the body returns the update.
  bool assigns() const {
    const Computation& body = in_.module[in_.instr.called[0]];
    return arrays_ == 1 && body.parameters.size() == 2 && body.root == body.parameters[1] &&
           in_.operand(0).type() == updates_type();
  }

  Expected<Literal> assign() {
    Literal out = std::move(in_.operands[0]);
    const int bytes = type_info(out.type()).bytes();
    uint8_t* to = out.mutable_bytes();
    const StridedCopy copy(window_, window_strides_, strides_, bytes);
    const uint8_t* from = in_.operand(arrays_ + 1).bytes();
    for (IndexIterator it(vectors_.dims, {vectors_.strides, batch_strides_}); !it.done(); it.next())
      if (int64_t at; locate(it, at)) copy(from + it.offset(1) * bytes, to + at * bytes);
    return out;
  }

  Status combine(Body& body, int64_t to, int64_t from) {
    for (size_t k = 0; k < arrays_; ++k) {
      std::memcpy(body.argument(k), values_[k].at(to), lane_bytes(values_[k].wide()));
      std::memcpy(body.argument(arrays_ + k), updates_[k].at(from), lane_bytes(updates_[k].wide()));
    }
    COLLET_TRY(body.run(1));
    for (size_t k = 0; k < arrays_; ++k) std::memcpy(values_[k].at(to), body.result(k), lane_bytes(values_[k].wide()));
    return ok_status();
  }

  const EvalInput& in_;
  const ScatterAttrs& attrs_;
  size_t arrays_;
  Shape shape_, update_shape_;
  IndexVectors vectors_;
  Ints strides_, batch_strides_, window_, window_strides_;
  std::vector<WideArray> values_, updates_;
};

}  // namespace

Expected<Literal> evaluate_indexing(const EvalInput& in) {
  if (in.instr.op == Op::GATHER) return evaluate_gather(in);
  return Scatter(in).run();
}

}  // namespace collet::hlo
