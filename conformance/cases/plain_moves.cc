// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "conformance/cases/indices.h"
#include "conformance/cases/plain_answer.h"

namespace collet::conformance {
namespace {

int64_t place_of(const Indices& index, const Indices& strides) {
  int64_t place = 0;
  for (size_t d = 0; d < index.size(); ++d) place += index[d] * strides[d];
  return place;
}

// Calls `each(index, number)` for each element of the result.
template <typename Each>
void for_each_index(const hlo::Shape& shape, Each each) {
  const Indices sizes = sizes_of(shape);
  Indices index(sizes.size());
  for (int64_t i = 0; i < shape.element_count(); ++i, advance(index, sizes)) each(index, i);
}

// Makes a result whose element at `index` is the operand's element at `source(index)`.
template <typename Source>
Literal moved(const Instruction& instr, const Literal& from, Source source) {
  Literal out = Literal::zeros(instr.shape);
  const Indices strides = strides_of(from.shape());
  for_each_index(instr.shape, [&](const Indices& index, int64_t i) {
    copy_element(out, i, from, place_of(source(index), strides));
  });
  return out;
}

Literal padded(const Instruction& instr, const Literal& from, const Literal& filling) {
  const hlo::Padding& padding = instr.as<hlo::PadAttrs>().padding;
  Literal out = Literal::zeros(instr.shape);
  const Indices strides = strides_of(from.shape());
  for_each_index(instr.shape, [&](const Indices& index, int64_t i) {
    int64_t place = 0;
    for (size_t d = 0; d < index.size() && place >= 0; ++d) {
      const int64_t position = index[d] - padding.low[d], step = padding.interior[d] + 1;
      const bool inside =
          position >= 0 && position % step == 0 && position / step < from.shape().dim(static_cast<int>(d));
      place = inside ? place + position / step * strides[d] : -1;
    }
    copy_element(out, i, place < 0 ? filling : from, std::max<int64_t>(place, 0));
  });
  return out;
}

Literal joined(const Instruction& instr, std::span<const Literal* const> operands) {
  const auto d = static_cast<size_t>(instr.as<hlo::DimensionAttrs>().dimension);
  Literal out = Literal::zeros(instr.shape);
  for_each_index(instr.shape, [&](Indices index, int64_t i) {
    size_t which = 0;
    while (index[d] >= operands[which]->shape().dim(static_cast<int>(d)))
      index[d] -= operands[which++]->shape().dim(static_cast<int>(d));
    copy_element(out, i, *operands[which], place_of(index, strides_of(operands[which]->shape())));
  });
  return out;
}

// Clamps start index `i` of `starts` so that `size` elements fit in a dimension of `all` elements. A u64 above INT64_MAX reads
// as a negative number here, and is clamped to the upper end.
int64_t clamped_start(const Literal& starts, int64_t i, int64_t all, int64_t size) {
  const int64_t start = starts.as_int(i);
  if (starts.type() == hlo::Type::U64 && start < 0) return all - size;
  return std::clamp<int64_t>(start, 0, all - size);
}

Literal slice_at(const Instruction& instr, std::span<const Literal* const> operands) {
  const Literal& from = *operands[0];
  Indices starts;
  for (int d = 0; d < from.shape().rank(); ++d)
    starts.push_back(clamped_start(*operands[static_cast<size_t>(d) + 1], 0, from.shape().dim(d), instr.shape.dim(d)));
  return moved(instr, from, [&](Indices index) {
    for (size_t d = 0; d < index.size(); ++d) index[d] += starts[d];
    return index;
  });
}

Literal updated_slice(const Instruction& instr, std::span<const Literal* const> operands) {
  const Literal &from = *operands[0], &update = *operands[1];
  Literal out = Literal::from_bytes(from.shape(), from.bytes());
  const Indices strides = strides_of(instr.shape);
  for_each_index(update.shape(), [&](Indices index, int64_t i) {
    for (size_t d = 0; d < index.size(); ++d)
      index[d] += clamped_start(*operands[d + 2], 0, instr.shape.dim(static_cast<int>(d)),
                                update.shape().dim(static_cast<int>(d)));
    copy_element(out, place_of(index, strides), update, i);
  });
  return out;
}

// The windows of a gather's result or of a scatter's updates. Maps an element to the start of its window and to its place in it.
struct Windows {
  Indices offset, collapsed, map, operand_batching, indices_batching;
  int64_t vector_dim = 0;

  // Returns the start of the window in each dimension of the operand, not clamped. Sets `far` if an index is a u64 above
  // INT64_MAX, which is outside of every array.
  Indices starts(const Literal& indices, const Indices& index, size_t rank, bool& far) const {
    Indices batch;
    for (size_t d = 0; d < index.size(); ++d)
      if (!is_in(offset, static_cast<int64_t>(d))) batch.push_back(index[d]);
    const Indices strides = strides_of(indices.shape());
    const bool implied = vector_dim == indices.shape().rank();
    const auto place = [&](int64_t k) {
      Indices at_index = batch;
      if (!implied) at_index.insert(at_index.begin() + vector_dim, k);
      return place_of(at_index, strides);
    };
    Indices out(rank);
    for (size_t k = 0; k < map.size(); ++k) {
      const int64_t at_place = place(static_cast<int64_t>(k));
      const bool beyond = indices.type() == hlo::Type::U64 && indices.as_int(at_place) < 0;
      far |= beyond;
      out[static_cast<size_t>(map[k])] = beyond ? INT64_MAX / 2 : indices.as_int(at_place);
    }
    for (size_t k = 0; k < operand_batching.size(); ++k) {
      const int64_t d = indices_batching[k];
      out[static_cast<size_t>(operand_batching[k])] =
          batch[static_cast<size_t>(d > vector_dim && !implied ? d - 1 : d)];
    }
    return out;
  }

  // Returns the place of an element in its window, in the dimensions of the operand.
  Indices place_in(const Indices& index, size_t rank) const {
    Indices out(rank);
    size_t k = 0;
    for (size_t d = 0; d < rank; ++d) {
      const auto dim = static_cast<int64_t>(d);
      if (!is_in(collapsed, dim) && !is_in(operand_batching, dim)) out[d] = index[static_cast<size_t>(offset[k++])];
    }
    return out;
  }
};

Indices list(const hlo::Dims& dims) {
  return {dims.begin(), dims.end()};
}

Literal gathered(const Instruction& instr, const Literal& from, const Literal& indices) {
  const auto& attrs = instr.as<hlo::GatherAttrs>();
  const Windows windows{
      list(attrs.offset_dims),           list(attrs.collapsed_slice_dims),        list(attrs.start_index_map),
      list(attrs.operand_batching_dims), list(attrs.start_indices_batching_dims), attrs.index_vector_dim};
  const auto rank = static_cast<size_t>(from.shape().rank());
  return moved(instr, from, [&](const Indices& index) {
    bool far = false;
    Indices start = windows.starts(indices, index, rank, far);
    const Indices inside = windows.place_in(index, rank);
    for (size_t d = 0; d < rank; ++d) {
      start[d] = std::clamp<int64_t>(start[d], 0, from.shape().dim(static_cast<int>(d)) - attrs.slice_sizes[d]);
      start[d] += inside[d];
    }
    return start;
  });
}

}  // namespace

void copy_element(Literal& to, int64_t at, const Literal& from, int64_t index) {
  const auto width = static_cast<size_t>(hlo::type_info(from.type()).bytes());
  std::memcpy(to.mutable_bytes() + static_cast<size_t>(at) * width, from.bytes() + static_cast<size_t>(index) * width,
              width);
}

void for_each_update(const Instruction& instr, std::span<const Literal* const> operands,
                     const std::function<void(int64_t to, int64_t update)>& each) {
  const auto& attrs = instr.as<hlo::ScatterAttrs>();
  const Literal &from = *operands[0], &indices = *operands[1], &updates = *operands[2];
  const Windows windows{list(attrs.update_window_dims),
                        list(attrs.inserted_window_dims),
                        list(attrs.scatter_dims_to_operand_dims),
                        list(attrs.input_batching_dims),
                        list(attrs.scatter_indices_batching_dims),
                        attrs.index_vector_dim};
  const auto rank = static_cast<size_t>(from.shape().rank());
  const Indices strides = strides_of(from.shape());
  // A scatter skips a window that is not completely inside the operand. `last` is the index of a window's last element.
  Indices end(static_cast<size_t>(updates.shape().rank()));
  for (size_t d = 0; d < end.size(); ++d) end[d] = std::max<int64_t>(updates.shape().dim(static_cast<int>(d)) - 1, 0);
  const Indices last = windows.place_in(end, rank);
  for_each_index(updates.shape(), [&](const Indices& index, int64_t i) {
    bool outside = false;
    Indices place = windows.starts(indices, index, rank, outside);
    const Indices inside = windows.place_in(index, rank);
    for (size_t d = 0; d < rank; ++d) {
      outside |= place[d] < 0 || place[d] > from.shape().dim(static_cast<int>(d)) - 1 - last[d];
      place[d] += inside[d];
    }
    if (!outside) each(place_of(place, strides), i);
  });
}

Literal plain_scatter(const Instruction& instr, std::span<const Literal* const> operands, PlainFunction function) {
  const Literal &from = *operands[0], &updates = *operands[2];
  Literal out = Literal::from_bytes(from.shape(), from.bytes());
  for_each_update(instr, operands, [&](int64_t to, int64_t i) {
    if (function == nullptr) {
      copy_element(out, to, updates, i);
    } else {
      function(out, to, out, to, updates, i);
    }
  });
  return out;
}

bool is_move(Op op) {
  switch (op) {
    case Op::TRANSPOSE:
    case Op::REVERSE:
    case Op::BROADCAST:
    case Op::SLICE:
    case Op::RESHAPE:
    case Op::PAD:
    case Op::CONCATENATE:
    case Op::DYNAMIC_SLICE:
    case Op::DYNAMIC_UPDATE_SLICE:
    case Op::GATHER:
      return true;
    default:
      return false;
  }
}

std::optional<Literal> plain_move(const Instruction& instr, std::span<const Literal* const> operands) {
  if (!instr.shape.is_array()) return std::nullopt;
  switch (instr.op) {
    case Op::TRANSPOSE: {
      const auto& dims = instr.as<hlo::DimensionsAttrs>().dimensions;
      return moved(instr, *operands[0], [&](const Indices& index) {
        Indices from(index.size());
        for (size_t d = 0; d < index.size(); ++d) from[static_cast<size_t>(dims[d])] = index[d];
        return from;
      });
    }
    case Op::REVERSE: {
      const auto& dims = instr.as<hlo::DimensionsAttrs>().dimensions;
      return moved(instr, *operands[0], [&](Indices index) {
        for (const int64_t d : dims)
          index[static_cast<size_t>(d)] = instr.shape.dim(static_cast<int>(d)) - 1 - index[static_cast<size_t>(d)];
        return index;
      });
    }
    case Op::BROADCAST: {
      const auto& dims = instr.as<hlo::BroadcastAttrs>().dimensions;
      return moved(instr, *operands[0], [&](const Indices& index) {
        Indices from;
        for (const int64_t d : dims) from.push_back(index[static_cast<size_t>(d)]);
        return from;
      });
    }
    case Op::SLICE: {
      const hlo::SliceRanges& slice = instr.as<hlo::SliceAttrs>().slice;
      return moved(instr, *operands[0], [&](Indices index) {
        for (size_t d = 0; d < index.size(); ++d)
          index[d] = slice.start[d] + index[d] * (slice.stride.empty() ? 1 : slice.stride[d]);
        return index;
      });
    }
    case Op::BITCAST_CONVERT:
      // Elements must have whole bytes. The first part of a wider element is its least significant one.
      if (hlo::type_info(instr.shape.type()).bits < 8 || hlo::type_info(operands[0]->type()).bits < 8 ||
          instr.shape.byte_size() != operands[0]->byte_size())
        return std::nullopt;
      return Literal::from_bytes(instr.shape, operands[0]->bytes());
    case Op::BITCAST:
    case Op::RESHAPE:
      if (hlo::type_info(instr.shape.type()).bytes() * instr.shape.element_count() != operands[0]->byte_size())
        return std::nullopt;
      return Literal::from_bytes(instr.shape, operands[0]->bytes());
    case Op::PAD:
      return padded(instr, *operands[0], *operands[1]);
    case Op::CONCATENATE:
      return joined(instr, operands);
    case Op::DYNAMIC_SLICE:
      if (operands.size() != static_cast<size_t>(instr.shape.rank()) + 1) return std::nullopt;
      return slice_at(instr, operands);
    case Op::DYNAMIC_UPDATE_SLICE:
      if (operands.size() != static_cast<size_t>(instr.shape.rank()) + 2) return std::nullopt;
      return updated_slice(instr, operands);
    case Op::GATHER:
      return gathered(instr, *operands[0], *operands[1]);
    default:
      return std::nullopt;
  }
}

}  // namespace collet::conformance
