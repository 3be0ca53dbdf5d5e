// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "hlo/ops/eval/families.h"
#include "hlo/ops/eval/lanes.h"
#include "hlo/ops/eval/strided.h"
#include "hlo/ops/windows.h"

namespace collet::hlo {
namespace {

using namespace eval;

int element_bytes(const Literal& literal) {
  return type_info(literal.type()).bytes();
}

Expected<Literal> new_result(const Shape& shape) {
  COLLET_TRY(check_size(shape));
  return Literal::uninitialized(shape);
}

/// Reads the result from operand 0, beginning at element `start`, with one stride of the operand per result dimension.
Expected<Literal> read_strided(const EvalInput& in, int64_t start, const Ints& strides) {
  const Literal& operand = in.operand(0);
  COLLET_ASSIGN(Literal out, new_result(in.instr.shape));
  const int bytes = element_bytes(operand);
  if (out.element_count() > 0)
    copy_strided(out.shape().dims(), operand.bytes() + start * bytes, strides, out.mutable_bytes(),
                 row_major_strides(out.shape().dims()), bytes);
  return out;
}

Expected<Literal> evaluate_broadcast(const EvalInput& in) {
  const Dims dims = in.instr.as<BroadcastAttrs>().dimensions;
  const Literal& operand = in.operand(0);
  Ints strides(static_cast<size_t>(in.instr.shape.rank()), 0);
  const Ints from = row_major_strides(operand.shape().dims());
  for (size_t i = 0; i < dims.size(); ++i)
    if (operand.shape().dim(static_cast<int>(i)) != 1 || in.instr.shape.dim(static_cast<int>(dims[i])) == 1)
      strides[static_cast<size_t>(dims[i])] = from[i];
  return read_strided(in, 0, strides);
}

Expected<Literal> evaluate_transpose(const EvalInput& in) {
  const Ints from = row_major_strides(in.operand(0).shape().dims());
  Ints strides;
  for (int64_t d : in.instr.as<DimensionsAttrs>().dimensions) strides.push_back(from[static_cast<size_t>(d)]);
  return read_strided(in, 0, strides);
}

Expected<Literal> evaluate_reverse(const EvalInput& in) {
  Ints strides = row_major_strides(in.operand(0).shape().dims());
  int64_t start = 0;
  for (int64_t d : in.instr.as<DimensionsAttrs>().dimensions) {
    int64_t& stride = strides[static_cast<size_t>(d)];
    start += stride * (in.operand(0).shape().dim(static_cast<int>(d)) - 1);
    stride = -stride;
  }
  return read_strided(in, start, strides);
}

Expected<Literal> evaluate_slice(const EvalInput& in) {
  const SliceRanges& ranges = in.instr.as<SliceAttrs>().slice;
  Ints strides = row_major_strides(in.operand(0).shape().dims());
  int64_t start = 0;
  for (size_t d = 0; d < strides.size(); ++d) {
    start += ranges.start[d] * strides[d];
    if (!ranges.stride.empty()) strides[d] *= ranges.stride[d];
  }
  return read_strided(in, start, strides);
}

Expected<Literal> evaluate_concatenate(const EvalInput& in) {
  const auto dim = static_cast<size_t>(in.instr.as<DimensionAttrs>().dimension);
  COLLET_ASSIGN(Literal out, new_result(in.instr.shape));
  const int bytes = element_bytes(out);
  const Ints to = row_major_strides(out.shape().dims());
  uint8_t* at = out.mutable_bytes();
  for (const Literal& part : in.operands) {
    copy_strided(part.shape().dims(), part.bytes(), row_major_strides(part.shape().dims()), at, to, bytes);
    at += part.shape().dim(static_cast<int>(dim)) * to[dim] * bytes;
  }
  return out;
}

Expected<Literal> evaluate_pad(const EvalInput& in) {
  const Padding& padding = in.instr.as<PadAttrs>().padding;
  const Literal& operand = in.operand(0);
  COLLET_ASSIGN(Literal out, new_result(in.instr.shape));
  const int bytes = element_bytes(out);
  fill(out.mutable_bytes(), out.element_count(), in.operand(1).bytes(), bytes);
  const Ints from = row_major_strides(operand.shape().dims());
  const Ints to = row_major_strides(out.shape().dims());
  Ints dims(from.size()), steps(from.size());
  int64_t source = 0, target = 0;
  for (size_t d = 0; d < from.size(); ++d) {
    const int64_t interior = padding.interior.empty() ? 0 : padding.interior[d];
    const PaddedDim p = padded_dim(operand.shape().dims()[d], padding.low[d], padding.high[d], interior);
    dims[d] = p.count;
    source += p.first * from[d];
    target += p.low * to[d];
    steps[d] = p.count > 1 ? to[d] * (interior + 1) : to[d];
  }
  if (product(dims) > 0)
    copy_strided(dims, operand.bytes() + source * bytes, from, out.mutable_bytes() + target * bytes, steps, bytes);
  return out;
}

/// Returns start index `i`, read as signed or unsigned according to its type, and clamped to [0, most].
int64_t clamped(const Literal& index, int64_t i, int64_t most) {
  const int64_t value = index.as_int(i);
  if (index.type() == Type::U64 && value < 0) return most;
  return std::clamp<int64_t>(value, 0, std::max<int64_t>(most, 0));
}

/// Returns the start indices of a dynamic slice: one scalar per dimension, or one array with all.
Ints starts_of(const EvalInput& in, size_t first, std::span<const int64_t> dims, std::span<const int64_t> sizes) {
  Ints starts(dims.size());
  const bool is_list = in.operand_count() == first + 1 && in.operand(first).shape().rank() == 1;
  for (size_t d = 0; d < dims.size(); ++d)
    starts[d] = is_list ? clamped(in.operand(first), static_cast<int64_t>(d), dims[d] - sizes[d])
                        : clamped(in.operand(first + d), 0, dims[d] - sizes[d]);
  return starts;
}

int64_t dot_product(const Ints& a, const Ints& b) {
  int64_t sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Expected<Literal> evaluate_dynamic_slice(const EvalInput& in) {
  const Shape& shape = in.operand(0).shape();
  const Ints starts = starts_of(in, 1, shape.dims(), in.instr.shape.dims());
  const Ints strides = row_major_strides(shape.dims());
  return read_strided(in, dot_product(starts, strides), strides);
}

Expected<Literal> evaluate_dynamic_update_slice(const EvalInput& in) {
  const Literal& update = in.operand(1);
  const Ints starts = starts_of(in, 2, in.operand(0).shape().dims(), update.shape().dims());
  Literal out = std::move(in.operands[0]);  // written in place if the data has no other owner
  const Ints strides = row_major_strides(out.shape().dims());
  const int bytes = element_bytes(out);
  if (update.element_count() > 0)
    copy_strided(update.shape().dims(), update.bytes(), row_major_strides(update.shape().dims()),
                 out.mutable_bytes() + dot_product(starts, strides) * bytes, strides, bytes);
  return out.reshaped(in.instr.shape);
}

Expected<Literal> evaluate_iota(const EvalInput& in) {
  const Shape& shape = in.instr.shape;
  COLLET_ASSIGN(Literal out, new_result(shape));
  if (out.element_count() == 0) return out;
  const auto dim = static_cast<size_t>(in.instr.as<IotaAttrs>().dimension);
  const Codec& target = codec(shape.type());
  // Writes the numbers once along their dimension, then broadcasts them along the others.
  const int64_t size = shape.rank() ? shape.dim(static_cast<int>(dim)) : 1;
  std::vector<uint8_t> line(static_cast<size_t>(size * target.bytes));
  for (int64_t at = 0; at < size; at += kLanes) {
    LaneBuffer counts, values;
    const int64_t n = std::min(kLanes, size - at);
    for (int64_t i = 0; i < n; ++i) counts.ints()[i] = at + i;
    if (shape.type() == Type::PRED)
      std::memcpy(values.data(), counts.data(), static_cast<size_t>(n) * 8);
    else
      convert_lanes(Type::S64, shape.type(), counts.data(), values.data(), n);
    target.store(values.data(), line.data() + at * target.bytes, 1, n);
  }
  Ints strides(static_cast<size_t>(shape.rank()), 0);
  if (!strides.empty()) strides[dim] = 1;
  copy_strided(shape.dims(), line.data(), strides, out.mutable_bytes(), row_major_strides(shape.dims()), target.bytes);
  return out;
}

/// Returns the strides, in elements, of a shape according to its layout.
Ints layout_strides(const Shape& shape) {
  const Layout* layout = shape.layout();
  if (!layout || layout->minor_to_major.size() != static_cast<size_t>(shape.rank()))
    return row_major_strides(shape.dims());
  Ints strides(static_cast<size_t>(shape.rank()));
  int64_t step = 1;
  for (int64_t d : layout->minor_to_major) {
    strides[static_cast<size_t>(d)] = step;
    step *= shape.dim(static_cast<int>(d));
  }
  return strides;
}

/// Bitcast keeps the bytes in memory order: reads the operand in the order of its layout, and writes the result in the
/// order of its own.
Expected<Literal> evaluate_bitcast(const EvalInput& in) {
  const Literal& operand = in.operand(0);
  const Shape& to = in.instr.shape;
  if (!to.is_array() || operand.byte_size() != to.byte_size())
    return operand.shape().compatible(to)
               ? Expected<Literal>(operand)
               : unimplemented("bitcast from " + operand.shape().to_string(true) + " to " + to.to_string(true));
  const Shape& from = in.module[in.instr.operand(0)].shape;
  const Ints plain_from = row_major_strides(from.dims()), plain_to = row_major_strides(to.dims());
  const Ints memory_from = layout_strides(from), memory_to = layout_strides(to);
  if (plain_from == memory_from && plain_to == memory_to) return operand.reshaped(to);
  Literal memory = Literal::uninitialized(from), out = Literal::uninitialized(to);
  copy_strided(from.dims(), operand.bytes(), plain_from, memory.mutable_bytes(), memory_from, element_bytes(operand));
  copy_strided(to.dims(), memory.bytes(), memory_to, out.mutable_bytes(), plain_to, element_bytes(out));
  return out;
}

}  // namespace

Expected<Literal> evaluate_movement(const EvalInput& in) {
  switch (in.instr.op) {
    case Op::BROADCAST:
      return evaluate_broadcast(in);
    case Op::TRANSPOSE:
      return evaluate_transpose(in);
    case Op::REVERSE:
      return evaluate_reverse(in);
    case Op::SLICE:
      return evaluate_slice(in);
    case Op::CONCATENATE:
      return evaluate_concatenate(in);
    case Op::PAD:
      return evaluate_pad(in);
    case Op::DYNAMIC_SLICE:
      return evaluate_dynamic_slice(in);
    case Op::DYNAMIC_UPDATE_SLICE:
      return evaluate_dynamic_update_slice(in);
    case Op::IOTA:
      return evaluate_iota(in);
    case Op::BITCAST:
      return evaluate_bitcast(in);
    case Op::COPY:
      return in.operand(0);
    case Op::RESHAPE:
      if (in.operand(0).element_count() != in.instr.shape.element_count())
        return invalid_argument("reshape changes the number of elements");
      return in.operand(0).reshaped(in.instr.shape);
    default:
      return internal_error("no movement");
  }
}

}  // namespace collet::hlo
