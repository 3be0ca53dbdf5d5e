// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "hlo/passes/spmd/materializer.h"

// The materialisation rules of ops that cannot be computed on tiles by the same op with other sizes.

namespace collet::hlo::spmd {
namespace {

using Kind = ShardingRule::Kind;

std::vector<int64_t> dims_of(const Builder& b, InstrId x) {
  const Shape& shape = b.shape(x);
  return {shape.dims().begin(), shape.dims().end()};
}

std::vector<int64_t> dims_of_shape(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

InstrId same_op(TiledOp& op, const void* attrs) {
  const std::vector<CompId> called(op.instr.called.begin(), op.instr.called.end());
  return op.b.op(op.instr.op, op.result, op.operands, attrs, called);
}

InstrId same_op(TiledOp& op) {
  const Shape first = op.operands.empty() ? Shape() : Shape(op.b.shape(op.operands[0]));
  return same_op(op,
                 tile_attributes(op.module, op.instr, first, op.result.is_tuple() ? op.result.element(0) : op.result));
}

// Sets the padding along reduced factors to a value that does not change the result: `fill`, or zero if `fill` is None.
void mask_reduced(TiledOp& op, size_t k, InstrId fill = InstrId::None) {
  for (size_t d = 0; d < op.strategy.operands[k].dimensions.size(); ++d) {
    const DimensionSharding& split = op.strategy.operands[k].dimensions[d];
    const int64_t size = op.whole(k).dim(static_cast<int>(d));
    if (op.split_factor(k, d, Kind::Reduced) < 0 || size % split.count() == 0) continue;
    const InstrId value = fill == InstrId::None ? op.b.scalar_int(op.b.type(op.operands[k]), 0) : fill;
    op.operands[k] = op.tiles.mask_padding(op.operands[k], d, split, size, value);
  }
}

// Exchanges the halos of operand `k`; `use` is called with each windowed dimension and its window.
template <typename Use>
void add_halos(TiledOp& op, size_t k, InstrId fill, const Use& use) {
  const ArraySharding& sharding = op.strategy.operands[k];
  for (size_t d = 0; d < sharding.dimensions.size(); ++d) {
    const bool sliding = op.split_factor(k, d, Kind::WindowReduced) >= 0;
    if (op.split_factor(k, d, Kind::Windowed) < 0 && !sliding) continue;
    const auto window = input_window(op.module, op.instr, k, static_cast<int64_t>(d), sharding.dimensions[d].count());
    if (!window) {
      op.b.fail(internal_error("a window that cannot be had"));
      return;
    }
    op.operands[k] = op.tiles.halo(op.operands[k], sharding, d, *window, fill, op.groups);
    use(d, *window);
  }
}

InstrId reduce(TiledOp& op) {
  const size_t n = op.operands.size() / 2;
  for (size_t k = 0; k < n; ++k) mask_reduced(op, k, op.operands[n + k]);
  return same_op(op);
}

InstrId dot(TiledOp& op) {
  for (size_t k = 0; k < 2; ++k) mask_reduced(op, k);
  return same_op(op);
}

InstrId slice(TiledOp& op) {
  auto* attrs = op.module.make<SliceAttrs>();
  *attrs = op.instr.as<SliceAttrs>();
  const SliceRanges was = attrs->slice;
  std::vector<int64_t> start(was.start.begin(), was.start.end()), limit(was.limit.begin(), was.limit.end());
  std::vector<bool> windowed(start.size());
  add_halos(op, 0, InstrId::None, [&](size_t d, const InputWindow& w) {
    start[d] = 0;
    limit[d] = w.length;
    windowed[d] = true;
  });
  for (size_t d = 0; d < start.size(); ++d)
    if (!windowed[d] && op.is_split(0, d)) limit[d] = op.b.dims(op.operands[0])[d];
  attrs->slice.start = op.module.dims(start);
  attrs->slice.limit = op.module.dims(limit);
  return same_op(op, attrs);
}

InstrId pad(TiledOp& op) {
  auto* attrs = op.module.make<PadAttrs>();
  *attrs = op.instr.as<PadAttrs>();
  const Padding was = attrs->padding;
  std::vector<int64_t> low(was.low.begin(), was.low.end()), high(was.high.begin(), was.high.end());
  add_halos(op, 0, op.operands[1], [&](size_t d, const InputWindow& w) {
    low[d] = w.low;
    high[d] = w.high;
  });
  attrs->padding.low = op.module.dims(low);
  attrs->padding.high = op.module.dims(high);
  return same_op(op, attrs);
}

InstrId reverse(TiledOp& op) {
  for (size_t d = 0; d < op.strategy.operands[0].dimensions.size(); ++d)
    if (op.split_factor(0, d, Kind::Windowed) >= 0)
      op.operands[0] = op.tiles.mirror_tiles(op.operands[0], op.strategy.operands[0], d, op.groups);
  op.operands[0] = same_op(op);
  add_halos(op, 0, InstrId::None, [](size_t, const InputWindow&) {});
  return op.operands[0];
}

// Reshards each operand to tiles of the result; the index of an element then decides from which operand it is selected.
InstrId concatenate(TiledOp& op) {
  const auto along = static_cast<size_t>(op.instr.as<DimensionAttrs>().dimension);
  if (!op.is_split(0, along)) return same_op(op);
  for (size_t k = 0; k < op.operands.size(); ++k) add_halos(op, k, InstrId::None, [](size_t, const InputWindow&) {});
  const std::vector<int64_t> dims = dims_of(op.b, op.operands[0]);
  const Shape indices = Shape::array(op.b.index_type(), dims);
  const DimensionSharding& split = op.strategy.results[0].dimensions[along];
  const InstrId index = op.b.add(op.b.iota(indices, static_cast<int64_t>(along)),
                                 op.b.broadcast(op.tiles.tile_offset(split, dims[along]), dims, {}));
  InstrId out = op.operands[0];
  int64_t before = 0;
  for (size_t k = 1; k < op.operands.size(); ++k) {
    before += op.whole(k - 1).dim(static_cast<int>(along));
    const InstrId here = op.b.compare(index, Direction::GE, op.b.fill_int(indices, before));
    out = op.b.select(here, op.operands[k], out);
  }
  return out;
}

InstrId reduce_window(TiledOp& op) {
  auto* attrs = op.module.make<WindowAttrs>();
  *attrs = op.instr.as<WindowAttrs>();
  std::vector<int64_t> low, high;
  for (size_t i = 0; i < attrs->window.rank(); ++i) {
    low.push_back(attrs->window.low_at(i));
    high.push_back(attrs->window.high_at(i));
  }
  const size_t n = op.operands.size() / 2;
  for (size_t k = 0; k < n; ++k)
    add_halos(op, k, op.operands[n + k], [&](size_t d, const InputWindow& w) {
      low[d] = w.low;
      high[d] = w.high;
    });
  attrs->window.padding_low = op.module.dims(low);
  attrs->window.padding_high = op.module.dims(high);
  return same_op(op, attrs);
}

InstrId convolution(TiledOp& op) {
  auto* attrs = op.module.make<ConvolutionAttrs>();
  *attrs = op.instr.as<ConvolutionAttrs>();
  const Dims spatial = attrs->labels.input_spatial;
  std::vector<int64_t> low, high, size(attrs->window.size.begin(), attrs->window.size.end());
  for (size_t i = 0; i < attrs->window.rank(); ++i) {
    low.push_back(attrs->window.low_at(i));
    high.push_back(attrs->window.high_at(i));
  }
  for (size_t k = 0; k < 2; ++k) mask_reduced(op, k);
  add_halos(op, 0, op.b.scalar_int(op.b.type(op.operands[0]), 0), [&](size_t d, const InputWindow& w) {
    const auto i =
        static_cast<size_t>(std::find(spatial.begin(), spatial.end(), static_cast<int64_t>(d)) - spatial.begin());
    low[i] = w.low;
    high[i] = w.high;
    size[i] = op.b.dims(op.operands[1])[static_cast<size_t>(attrs->labels.kernel_spatial[i])];
  });
  if (attrs->window.rank()) {
    attrs->window.padding_low = op.module.dims(low);
    attrs->window.padding_high = op.module.dims(high);
    attrs->window.size = op.module.dims(size);
  }
  return same_op(op, attrs);
}

// Returns a tile with `margin` zeros on both sides of dimension `d`.
InstrId with_margins(Builder& b, InstrId x, size_t d, int64_t margin) {
  return b.pad_dim(x, b.scalar_int(b.type(x), 0), static_cast<int64_t>(d), margin, margin);
}

// Returns the start, in a tile with margins of `size` elements, of a window of `size` elements that begins at `start`
// of the whole dimension. A window outside of the tile is inside a margin.
InstrId start_in_tile(TiledOp& op, InstrId start, const DimensionSharding& split, int64_t whole, int64_t tile,
                      int64_t size) {
  Builder& b = op.b;
  const InstrId from_tile = b.sub(b.clamped_index(start, whole - size), op.tiles.tile_offset(split, tile, -size));
  return b.min(b.max(from_tile, b.scalar_int(b.index_type(), 0)), b.scalar_int(b.index_type(), tile + size));
}

// Returns the part of the slice that is in the tile, and zeros elsewhere.
InstrId dynamic_slice(TiledOp& op) {
  const Dims sizes = op.instr.as<DynamicSliceAttrs>().sizes;
  std::vector<InstrId> starts(op.operands.begin() + 1, op.operands.end());
  bool selects = false;
  InstrId x = op.operands[0];
  for (size_t d = 0; d < starts.size(); ++d) {
    if (op.split_factor(0, d, Kind::Selected) < 0) {
      starts[d] = op.b.clamped_index(starts[d], op.whole(0).dim(static_cast<int>(d)) - sizes[d]);
      continue;
    }
    const int64_t tile = dims_of(op.b, x)[d];
    starts[d] = start_in_tile(op, starts[d], op.strategy.operands[0].dimensions[d],
                              op.whole(0).dim(static_cast<int>(d)), tile, sizes[d]);
    x = with_margins(op.b, x, d, sizes[d]);
    selects = true;
  }
  if (!selects) return same_op(op);
  return op.b.dynamic_slice(x, starts, dims_of_shape(op.result));
}

// Writes the part of the update that is in the tile.
InstrId dynamic_update_slice(TiledOp& op) {
  std::vector<InstrId> starts(op.operands.begin() + 2, op.operands.end());
  InstrId x = op.operands[0];
  std::vector<size_t> cut;
  for (size_t d = 0; d < starts.size(); ++d) {
    const int64_t tile = dims_of(op.b, x)[d], size = op.whole(1).dim(static_cast<int>(d));
    if (!op.is_split(0, d) || op.is_split(1, d)) {
      starts[d] = op.b.clamped_index(starts[d], op.whole(0).dim(static_cast<int>(d)) - size);
      continue;
    }
    starts[d] = start_in_tile(op, starts[d], op.strategy.operands[0].dimensions[d],
                              op.whole(0).dim(static_cast<int>(d)), tile, size);
    x = with_margins(op.b, x, d, size);
    cut.push_back(d);
  }
  if (cut.empty()) return same_op(op);
  InstrId out = op.b.dynamic_update_slice(x, op.operands[1], starts);
  for (size_t d : cut) {
    const int64_t margin = op.whole(1).dim(static_cast<int>(d));
    out = op.b.slice_dim(out, static_cast<int64_t>(d), margin, dims_of(op.b, out)[d] - margin);
  }
  return out;
}

// Elements that other tiles have are replaced by zeros.
InstrId gather(TiledOp& op) {
  const auto& a = op.instr.as<GatherAttrs>();
  Builder& b = op.b;
  const std::vector<int64_t> local = dims_of(b, op.operands[0]);
  std::vector<InstrId> most, first, limit;
  bool selects = false;
  for (int64_t d : a.start_index_map) {
    const auto i = static_cast<size_t>(d);
    const bool split = op.split_factor(0, i, Kind::Selected) >= 0;
    selects = selects || split;
    const int64_t size = op.whole(0).dim(static_cast<int>(d));
    most.push_back(b.scalar_int(b.index_type(), size - a.slice_sizes[i]));
    first.push_back(split ? op.tiles.tile_offset(op.strategy.operands[0].dimensions[i], local[i])
                          : b.scalar_int(b.index_type(), 0));
    limit.push_back(b.scalar_int(b.index_type(), split ? local[i] : size));
  }
  if (!selects) return same_op(op);
  InstrId index = op.operands[1];
  const Type type = b.type(index);
  if (type_info(type).bits < type_info(b.index_type()).bits) {
    index = b.convert(index, b.index_type());
  } else if (type != b.index_type()) {  // the largest index may not be representable in it
    int64_t largest = 1;
    for (int64_t d : a.start_index_map) largest = std::max(largest, op.whole(0).dim(static_cast<int>(d)));
    index = b.clamped_index(index, largest);
  }
  const std::vector<int64_t> dims = dims_of(b, index);
  index = b.min(b.max(index, b.like_int(index, 0)), b.along_dimension(most, dims, a.index_vector_dim));
  index = b.sub(index, b.along_dimension(first, dims, a.index_vector_dim));
  InstrId inside = b.and_(b.compare(index, Direction::GE, b.like_int(index, 0)),
                          b.compare(index, Direction::LT, b.along_dimension(limit, dims, a.index_vector_dim)));
  if (a.index_vector_dim < static_cast<int64_t>(dims.size())) {
    const std::array<int64_t, 1> over = {a.index_vector_dim};
    inside = b.reduce(inside, over, Op::AND);
  }
  op.operands[1] = index;
  const InstrId out = same_op(op);
  const std::vector<int64_t> all = dims_of(b, out);
  std::vector<int64_t> batch;
  for (int64_t d = 0; d < static_cast<int64_t>(all.size()); ++d)
    if (std::find(a.offset_dims.begin(), a.offset_dims.end(), d) == a.offset_dims.end()) batch.push_back(d);
  return b.select(b.broadcast(inside, all, batch), out, b.fill_int(Shape(b.shape(out)), 0));
}

// Updates of other tiles get indices outside of this tile, so that they are dropped.
InstrId scatter(TiledOp& op) {
  const auto& a = op.instr.as<ScatterAttrs>();
  Builder& b = op.b;
  const size_t n = (op.operands.size() - 1) / 2;
  for (size_t k = 0; k < n; ++k) mask_reduced(op, n + 1 + k);
  std::vector<InstrId> first;
  bool moves = false;
  InstrId index = op.operands[n];
  if (type_info(b.type(index)).bits < type_info(b.index_type()).bits) index = b.convert(index, b.index_type());
  const std::vector<int64_t> local = dims_of(b, op.operands[0]);
  for (int64_t d : a.scatter_dims_to_operand_dims) {
    const auto i = static_cast<size_t>(d);
    const bool own = op.is_split(0, i) && std::find(a.inserted_window_dims.begin(), a.inserted_window_dims.end(), d) !=
                                              a.inserted_window_dims.end();
    moves = moves || own;
    const InstrId offset =
        own ? op.tiles.tile_offset(op.strategy.operands[0].dimensions[i], local[i]) : b.scalar_int(b.index_type(), 0);
    first.push_back(b.convert(offset, b.type(index)));
  }
  if (!moves) return same_op(op);
  op.operands[n] = b.sub(index, b.along_dimension(first, dims_of(b, index), a.index_vector_dim));
  return same_op(op);
}

// The iota is computed in integers: the sum of two rounded floats is not always the rounded sum.
InstrId iota(TiledOp& op) {
  Builder& b = op.b;
  const int64_t along = op.instr.as<IotaAttrs>().dimension;
  const DimensionSharding& split = op.strategy.results[0].dimensions[static_cast<size_t>(along)];
  const Shape shape = op.result;
  if (!split.is_split()) return b.iota(shape, along);
  const std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  const Type type = is_integer(shape.type()) ? shape.type() : b.index_type();
  const InstrId from = b.convert(op.tiles.tile_offset(split, dims[static_cast<size_t>(along)]), type);
  return b.convert(b.add(b.iota(Shape::array(type, dims), along), b.broadcast(from, dims, {})), shape.type());
}

InstrId constant(TiledOp& op) {
  const InstrId whole = op.b.op(Op::CONSTANT, op.instr.shape.without_layout(), {}, op.instr.attrs);
  return op.tiles.reshard(whole, op.instr.shape, ArraySharding(static_cast<size_t>(op.instr.shape.rank())),
                          op.strategy.results[0], op.groups);
}

struct Rule {
  Op op;
  InstrId (*write)(TiledOp&);
};

constexpr Rule kRules[] = {
    {Op::CONCATENATE, &concatenate},
    {Op::CONSTANT, &constant},
    {Op::CONVOLUTION, &convolution},
    {Op::DOT, &dot},
    {Op::DYNAMIC_SLICE, &dynamic_slice},
    {Op::DYNAMIC_UPDATE_SLICE, &dynamic_update_slice},
    {Op::GATHER, &gather},
    {Op::IOTA, &iota},
    {Op::PAD, &pad},
    {Op::REDUCE, &reduce},
    {Op::REDUCE_WINDOW, &reduce_window},
    {Op::REVERSE, &reverse},
    {Op::SCATTER, &scatter},
    {Op::SLICE, &slice},
};

}  // namespace

int TiledOp::split_factor(size_t k, size_t d, ShardingRule::Kind kind) const {
  for (int f : rule.operands[k][d])
    if (rule.factors[static_cast<size_t>(f)].kind == kind && strategy.factors[static_cast<size_t>(f)].is_split())
      return f;
  return -1;
}

InstrId materialize_op(TiledOp& op) {
  for (const Rule& rule : kRules)
    if (rule.op == op.instr.op) return rule.write(op);
  return same_op(op);
}

}  // namespace collet::hlo::spmd
