// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <optional>

#include "hlo/stablehlo/importer.h"

// Quantized types become plain arithmetic. Values are carried in their storage type.
//
// The specification defines an op on quantized values as dequantize, the op on the expressed type, quantize
// (dequantize_op_quantize), and most ops become that. Ops whose result is the same integers for every input keep the
// integers: movement, comparisons among values of one quantization, sums of accumulators, and products. A product of
// integers is exact where the product of dequantized values is rounded once per term; the specification leaves the
// rounding of sums to the implementation, so that the exact sum is one of its results, and the one that all
// implementations in integers share.

namespace collet::hlo {
namespace {

using mlir::Quantization;
using mlir::TypeRef;

const Quantization* quantization(TypeRef type) {
  if (!type || type->kind != mlir::Type::Kind::Tensor || !type->element) return nullptr;
  return type->element->kind == mlir::Type::Kind::Quantized ? type->element->quantization : nullptr;
}

/// Spreads an array of values for blocks, whose sizes divide those of `shape`, over `shape`.
InstrId spread_blocks(Importer& m, ImportScope& scope, InstrId values, const Shape& shape) {
  const Shape grid = m.shape_of(values);
  std::vector<int64_t> blocks, dims;  // two dimensions for each that has blocks of more than one element
  for (int d = 0; d < shape.rank(); ++d) {
    dims.push_back(static_cast<int64_t>(blocks.size()));
    blocks.push_back(grid.dim(d));
    if (grid.dim(d) != shape.dim(d)) blocks.push_back(grid.dim(d) == 0 ? 0 : shape.dim(d) / grid.dim(d));
  }
  auto* attrs = m.module().make<BroadcastAttrs>();
  attrs->dimensions = m.module().dims(dims);
  const InstrId out = m.emit(scope, Op::BROADCAST, Shape::array(grid.type(), blocks), {values}, attrs);
  return blocks.size() == dims.size() ? out : m.emit(scope, Op::RESHAPE, shape.with_type(grid.type()), {out});
}

/// Returns the scales or zero points as `type`: a per-axis list broadcast along its axis of `shape`, values for blocks
/// spread over these, or the single value broadcast to `shape`.
InstrId parameter(Importer& m, ImportScope& scope, const Shape& shape, const Quantization& q, Type type, bool scales) {
  const auto at = [&](size_t i) { return scales ? q.scales[i] : static_cast<double>(q.zero_points[i]); };
  const auto& values = q.scales;
  const bool one =
      values.size() == 1 || (!scales && std::all_of(q.zero_points.begin(), q.zero_points.end(),
                                                    [&](int64_t zero) { return zero == q.zero_points[0]; }));
  if (one) return m.emit_splat(scope, shape, type, at(0));
  std::vector<int64_t> sizes = {static_cast<int64_t>(values.size())};
  if (!q.grid.empty()) sizes.assign(q.grid.begin(), q.grid.end());
  Literal list = Literal::zeros(Shape::array(type, sizes));
  for (size_t i = 0; i < values.size(); ++i) list.set_double(static_cast<int64_t>(i), at(i));
  const InstrId constant = m.emit_constant(scope, std::move(list));
  if (!q.grid.empty()) return spread_blocks(m, scope, constant, shape);
  auto* attrs = m.module().make<BroadcastAttrs>();
  attrs->dimensions = m.module().dims({q.axis});
  return m.emit(scope, Op::BROADCAST, shape.with_type(type), {constant}, attrs);
}

bool axis_fits(const Quantization& q, const Shape& shape) {
  if (q.scales.empty()) return false;
  if (!q.grid.empty()) {
    if (static_cast<int>(q.grid.size()) != shape.rank() || shape.has_dynamic()) return false;
    for (size_t d = 0; d < q.grid.size(); ++d) {
      const int64_t size = shape.dim(static_cast<int>(d));
      const int64_t block = q.block_sizes[d] == 0 ? size : q.block_sizes[d];
      if (block != 0 && (size % block != 0 || size / block != q.grid[d])) return false;
    }
    return true;
  }
  if (q.axis < 0 || q.scales.size() == 1) return true;
  return q.axis < shape.rank() && shape.dim(static_cast<int>(q.axis)) == static_cast<int64_t>(q.scales.size());
}

/// True for ops that only move elements, or whose regions are quantized themselves.
bool keeps_storage(std::string_view name) {
  for (std::string_view n : {"stablehlo.constant",
                             "stablehlo.return",
                             "stablehlo.while",
                             "stablehlo.if",
                             "stablehlo.case",
                             "func.call",
                             "stablehlo.composite",
                             "stablehlo.reduce",
                             "stablehlo.reduce_window",
                             "stablehlo.select_and_scatter",
                             "stablehlo.sort",
                             "stablehlo.map",
                             "stablehlo.scatter",
                             "stablehlo.bitcast_convert",
                             "stablehlo.tuple",
                             "stablehlo.get_tuple_element",
                             "stablehlo.optimization_barrier",
                             "stablehlo.custom_call",
                             "stablehlo.infeed",
                             "stablehlo.outfeed",
                             "stablehlo.send",
                             "stablehlo.recv",
                             "stablehlo.all_reduce",
                             "stablehlo.reduce_scatter",
                             "stablehlo.get_dimension_size"})
    if (n == name) return true;
  return false;
}

/// True for ops that only move elements: they are the same on stored values, if the quantization stays.
bool is_movement(std::string_view name) {
  for (std::string_view n :
       {"stablehlo.reshape", "stablehlo.transpose", "stablehlo.broadcast_in_dim", "stablehlo.slice",
        "stablehlo.concatenate", "stablehlo.reverse", "stablehlo.pad", "stablehlo.select", "stablehlo.gather",
        "stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice"})
    if (n == name) return true;
  return false;
}

/// True for ops whose result is one of their operands, by order. A scale is positive, so that the order of stored values
/// is that of the values.
bool is_choice(std::string_view name) {
  return name == "stablehlo.maximum" || name == "stablehlo.minimum" || name == "stablehlo.clamp";
}

/// True if the two have the same scales, zero points and types; the axis may differ.
bool alike(const Quantization& a, const Quantization& b) {
  return a.storage == b.storage && a.expressed == b.expressed && a.storage_min == b.storage_min &&
         a.storage_max == b.storage_max && (a.axis < 0) == (b.axis < 0) &&
         std::equal(a.grid.begin(), a.grid.end(), b.grid.begin(), b.grid.end()) &&
         std::equal(a.scales.begin(), a.scales.end(), b.scales.begin(), b.scales.end()) &&
         std::equal(a.zero_points.begin(), a.zero_points.end(), b.zero_points.begin(), b.zero_points.end());
}

bool is_symmetric(const Quantization& q) {
  return std::all_of(q.zero_points.begin(), q.zero_points.end(), [](int64_t zero) { return zero == 0; });
}

/// Returns scale number `i` as a number of the expressed type, which is what the specification computes with.
double scale_of(const Quantization& q, size_t i) {
  Literal rounded = Literal::zeros(Shape::scalar(q.expressed));
  rounded.set_double(0, q.scales[q.scales.size() == 1 ? 0 : i]);
  return rounded.as_double(0);
}

/// Returns the quantization that all quantized operands and results of the op share, but for the axis; null if they
/// differ, and if a result has none.
const Quantization* common_quantization(const mlir::Op& op) {
  const Quantization* common = nullptr;
  for (const mlir::Value* value : op.results)
    if (!quantization(value->type)) return nullptr;
  for (const auto* list : {&op.operands, &op.results})
    for (const mlir::Value* value : *list) {
      const Quantization* q = quantization(value->type);
      if (!q) continue;
      if (common && !alike(*common, *q)) return nullptr;
      common = q;
    }
  return common;
}

/// True if movement takes each element of a quantization along an axis to a place with the same scale.
bool axis_moves_along(Importer& m, const mlir::Op& op) {
  if (op.operands.size() != 1 || op.results.size() != 1) return false;
  const Quantization *from = quantization(op.operands[0]->type), *to = quantization(op.results[0]->type);
  if (!from || !to) return false;
  const auto before = [](TypeRef type, int64_t axis) {
    return std::accumulate(type->dims.begin(), type->dims.begin() + axis, int64_t{1}, std::multiplies<>());
  };
  const auto size = [](TypeRef type, int64_t axis) {
    return axis < static_cast<int64_t>(type->dims.size()) ? type->dims[static_cast<size_t>(axis)] : -1;
  };
  const auto count = static_cast<int64_t>(from->scales.size());
  if (size(op.operands[0]->type, from->axis) != count || size(op.results[0]->type, to->axis) != count) return false;
  if (op.name == "stablehlo.reshape")
    return before(op.operands[0]->type, from->axis) == before(op.results[0]->type, to->axis);
  if (op.name == "stablehlo.transpose") {
    const Dims order = m.ints_or_empty(op, "permutation");
    return to->axis < static_cast<int64_t>(order.size()) && order[static_cast<size_t>(to->axis)] == from->axis;
  }
  if (op.name == "stablehlo.broadcast_in_dim") {
    const Dims places = m.ints_or_empty(op, "broadcast_dimensions");
    return from->axis < static_cast<int64_t>(places.size()) && places[static_cast<size_t>(from->axis)] == to->axis;
  }
  return false;
}

/// A copy of an op whose operands and results have other element types.
struct Retyped {
  mlir::Op op;
  std::vector<mlir::Value> values;
  std::vector<mlir::Type> types, elements;

  Retyped(const Retyped&) = delete;
  Retyped& operator=(const Retyped&) = delete;
  /// `scalar_of(q, result)` gives the type in place of the quantization q of an operand or result.
  template <typename ScalarOf>
  Retyped(const mlir::Op& from, const ScalarOf& scalar_of)
      : op(from), values(from.operands.size() + from.results.size()), types(values.size()), elements(values.size()) {
    const auto place = [&](const mlir::Value& value, size_t slot, bool result) {
      values[slot] = value;
      if (const Quantization* q = quantization(value.type)) {
        elements[slot].kind = mlir::Type::Kind::Scalar;
        elements[slot].scalar = scalar_of(*q, result);
        types[slot] = *value.type;
        types[slot].element = &elements[slot];
        values[slot].type = &types[slot];
      }
      return &values[slot];
    };
    for (size_t i = 0; i < from.operands.size(); ++i) op.operands[i] = place(*from.operands[i], i, false);
    for (size_t i = 0; i < from.results.size(); ++i)
      op.results[i] = place(*from.results[i], from.operands.size() + i, true);
  }
};

Type storage_type(const Quantization& q, bool) {
  return q.storage;
}

/// Translates the op on stored values.
Status translate_stored(Importer& m, ImportScope& scope, const mlir::Op& op) {
  const Retyped plain(op, storage_type);
  ImportScope inner;
  inner.computation = scope.computation;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    COLLET_ASSIGN(inner.values[plain.op.operands[i]], m.value(scope, op, i));
  }
  COLLET_TRY(m.translate(inner, plain.op));
  for (size_t i = 0; i < op.results.size(); ++i) scope.values[op.results[i]] = inner.values.at(plain.op.results[i]);
  return {};
}

/// An interval of integers.
struct Range {
  double low = 0, high = 0;  // doubles, so that sums of products cannot overflow
};

bool fits(const Range& range, double low, double high) {
  return range.low >= low && range.high <= high;
}

/// Returns bounds of a sum of `count` products of a value of `a`, less its zero point, and a value of `b`.
Range product_range(const Range& a, const Range& b, double count) {
  const auto [low, high] = std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  return {std::min(low * count, 0.0), std::max(high * count, 0.0)};
}

/// Returns the bounds of the elements of an integer array, as far as its constants and products show them; else those of
/// its type.
Range range_of(const Module& m, InstrId id, int depth = 6) {
  const Instruction& instr = m[id];
  const TypeInfo& type = type_info(instr.shape.type());
  const bool negative = is_signed(instr.shape.type());
  const Range all = {negative ? -std::ldexp(1.0, type.bits - 1) : 0,
                     std::ldexp(1.0, negative ? type.bits - 1 : type.bits) - 1};
  if (depth == 0) return all;
  const auto operand = [&](uint32_t i) { return range_of(m, instr.operand(i), depth - 1); };
  switch (instr.op) {
    case Op::CONSTANT: {
      const Literal& value = m.literal(instr);
      if (value.shape().element_count() == 0) return {};
      Range out = {all.high, all.low};
      for (int64_t i = 0; i < value.shape().element_count(); ++i) {
        const auto x = static_cast<double>(value.as_int(i));
        out = {std::min(out.low, x), std::max(out.high, x)};
      }
      return out;
    }
    case Op::BROADCAST:
    case Op::RESHAPE:
    case Op::TRANSPOSE:
    case Op::SLICE:
      return operand(0);
    case Op::CONVERT: {
      if (!is_integer(m[instr.operand(0)].shape.type())) return all;
      const Range from = operand(0);
      return fits(from, all.low, all.high) ? from : all;
    }
    case Op::ADD:
    case Op::SUBTRACT: {
      const Range a = operand(0), b = operand(1);
      const Range sum =
          instr.op == Op::ADD ? Range{a.low + b.low, a.high + b.high} : Range{a.low - b.high, a.high - b.low};
      return fits(sum, all.low, all.high) ? sum : all;
    }
    case Op::DOT:
    case Op::CONVOLUTION: {
      const Shape& kernel = m[instr.operand(1)].shape;
      double count = 1;
      if (instr.op == Op::DOT) {
        for (int64_t d : instr.as<DotAttrs>().rhs_contracting)
          count *= static_cast<double>(kernel.dim(static_cast<int>(d)));
      } else {
        const auto out = static_cast<int>(instr.as<ConvolutionAttrs>().labels.kernel_output_feature);
        count =
            static_cast<double>(kernel.element_count()) / static_cast<double>(std::max<int64_t>(1, kernel.dim(out)));
      }
      const Range sum = product_range(operand(0), operand(1), count);
      return fits(sum, all.low, all.high) ? sum : all;
    }
    default:
      return all;
  }
}

constexpr double kLeastS32 = std::numeric_limits<int32_t>::min(), kMostS32 = std::numeric_limits<int32_t>::max();

/// Returns the vector `id` broadcast along dimension `dim` of `like`.
InstrId along(Importer& m, ImportScope& scope, InstrId id, const Shape& like, int64_t dim) {
  auto* attrs = m.module().make<BroadcastAttrs>();
  if (m.shape_of(id).rank() == 1) attrs->dimensions = m.module().dims({dim});
  return m.emit(scope, Op::BROADCAST, like.with_type(m.shape_of(id).type()), {id}, attrs);
}

/// If `id` is a vector, broadcast along one dimension, returns it, and that dimension in `dim`.
std::optional<InstrId> vector_along(Importer& m, InstrId id, int64_t& dim) {
  const Instruction& instr = m.module()[id];
  if (instr.op != Op::BROADCAST || instr.as<BroadcastAttrs>().dimensions.size() != 1) return std::nullopt;
  dim = instr.as<BroadcastAttrs>().dimensions[0];
  return instr.operand(0);
}

/// Adds integers. (x + v) + w with vectors v and w along one dimension becomes x + (v + w), so that a product has one
/// bias.
InstrId add_integers(Importer& m, ImportScope& scope, InstrId a, InstrId b) {
  const Shape shape = m.shape_of(a);
  int64_t first_dim = -1, second_dim = -1;
  for (const auto& [sum, other] : {std::pair(a, b), std::pair(b, a)}) {
    if (m.module()[sum].op != Op::ADD) continue;
    const InstrId x = m.module()[sum].operand(0);
    const auto first = vector_along(m, m.module()[sum].operand(1), first_dim),
               second = vector_along(m, other, second_dim);
    if (!first || !second || first_dim != second_dim) continue;
    const InstrId both = m.emit(scope, Op::ADD, m.shape_of(*first), {*first, *second});
    return m.emit(scope, Op::ADD, shape, {x, along(m, scope, both, shape, first_dim)});
  }
  return m.emit(scope, Op::ADD, shape, {a, b});
}

/// Adds two accumulators: values of one scale, without zero points. Not if the sum may leave the storage type, where
/// quantize clamps.
Expected<std::optional<InstrId>> add_stored(Importer& m, ImportScope& scope, const mlir::Op& op) {
  const Quantization* q = op.operands.size() == 2 && op.results.size() == 1 ? common_quantization(op) : nullptr;
  if (!q || !is_symmetric(*q)) return std::optional<InstrId>();
  for (const mlir::Value* v : {op.operands[0], op.operands[1], op.results[0]}) {
    const Quantization* one = quantization(v->type);
    if (!one || one->axis != q->axis) return std::optional<InstrId>();
  }
  COLLET_ASSIGN(const InstrId a, m.value(scope, op, 0));
  COLLET_ASSIGN(const InstrId b, m.value(scope, op, 1));
  if (!m.shape_of(a).is_array() || m.shape_of(a) != m.shape_of(b)) return std::optional<InstrId>();
  const Range x = range_of(m.module(), a), y = range_of(m.module(), b);
  const auto low = static_cast<double>(q->storage_min), high = static_cast<double>(q->storage_max);
  if (!fits({x.low + y.low, x.high + y.high}, low, high)) return std::optional<InstrId>();
  return std::optional(add_integers(m, scope, a, b));
}

/// The padding of a convolution's input as that of a pad op.
struct InputPadding {
  std::vector<int64_t> low, high, interior, sizes;  ///< for each dimension; sizes: of the padded input
  bool none = true;
};

/// What a product of quantized operands needs to be computed in integers.
struct IntegerProduct {
  const Quantization* lhs = nullptr;
  const Quantization* rhs = nullptr;
  bool convolves = false;
  Dims reduced;           // dimensions of rhs that are summed over, ascending
  int64_t kept = -1;      // dimension of rhs that its scales run along; -1: there is one scale
  int64_t channels = -1;  // dimension of the result that the free elements of rhs run along
  /// The zero points are subtracted from the operands, as s32, before the product. Else weights (rhs) have none, and that
  /// of the input is a term of each channel, so that the product is one of stored values.
  bool subtracts = false;
  InputPadding padding;  // of the input of a convolution, if it has a zero point that is not subtracted
  Range range;           // of the result
};

/// The largest padded input that takes memory.
constexpr double kMostPadded = 0x1p30;

/// Returns the padding and dilation of the input by a convolution's window; nothing if it is damaged, or too large.
std::optional<InputPadding> input_padding(Importer& m, const mlir::Op& op, const Shape& shape) {
  const auto rank = static_cast<size_t>(shape.rank());
  const Dims spatial = m.ints_or_empty(op, "input_spatial_dimensions"), padding = m.ints_or_empty(op, "padding"),
             dilation = m.ints_or_empty(op, "lhs_dilation");
  InputPadding out;
  out.low.resize(rank);
  out.high.resize(rank);
  out.interior.resize(rank);
  out.sizes.assign(shape.dims().begin(), shape.dims().end());
  for (size_t i = 0; i < spatial.size(); ++i) {
    if (spatial[i] < 0 || spatial[i] >= shape.rank()) return std::nullopt;
    const auto d = static_cast<size_t>(spatial[i]);
    if (2 * i + 1 < padding.size()) {
      out.low[d] = padding[2 * i];
      out.high[d] = padding[2 * i + 1];
    }
    if (i < dilation.size()) out.interior[d] = dilation[i] - 1;
    constexpr int64_t kMost = int64_t{1} << 30;  // so that sizes do not overflow
    if (out.interior[d] < 0 || out.interior[d] > kMost || std::abs(out.low[d]) > kMost ||
        std::abs(out.high[d]) > kMost || out.sizes[d] > kMost)
      return std::nullopt;
    const int64_t dilated = out.sizes[d] == 0 ? 0 : (out.sizes[d] - 1) * (out.interior[d] + 1) + 1;
    out.sizes[d] = std::max<int64_t>(0, dilated + out.low[d] + out.high[d]);
    out.none &= out.low[d] == 0 && out.high[d] == 0 && out.interior[d] == 0;
  }
  double elements = 1;
  for (const int64_t size : out.sizes) elements *= static_cast<double>(size);
  return elements <= kMostPadded ? std::optional(out) : std::nullopt;
}

/// Returns the range of the zero points.
Range zero_range(const Quantization& q) {
  const auto [low, high] = std::minmax_element(q.zero_points.begin(), q.zero_points.end());
  return {static_cast<double>(*low), static_cast<double>(*high)};
}

/// Returns the product if integers can compute it exactly: the operands have one storage type, and no sum leaves s32.
std::optional<IntegerProduct> integer_product(Importer& m, const mlir::Op& op, const Shape& lhs, const Shape& rhs) {
  IntegerProduct out;
  out.convolves = op.name == "stablehlo.convolution";
  const bool general = op.name == "stablehlo.dot_general";
  if ((!out.convolves && !general && op.name != "stablehlo.dot") || op.operands.size() != 2 || op.results.size() != 1)
    return std::nullopt;
  if (op.attr("accumulation_type")) {
    const mlir::AttrRef accumulation = op.attr("accumulation_type");
    if (accumulation->type && accumulation->type->kind != mlir::Type::Kind::None) return std::nullopt;
  }
  out.lhs = quantization(op.operands[0]->type);
  out.rhs = quantization(op.operands[1]->type);
  if (!out.lhs || !out.rhs || out.lhs->scales.size() != 1 || !out.rhs->grid.empty()) return std::nullopt;
  const Type storage = out.lhs->storage, expressed = out.lhs->expressed;
  if (storage != out.rhs->storage || type_info(storage).bits > 8 || expressed != out.rhs->expressed ||
      (expressed != Type::F32 && expressed != Type::F64 && expressed != Type::F16 && expressed != Type::BF16))
    return std::nullopt;
  if (!lhs.is_array() || !rhs.is_array() || lhs.has_dynamic() || rhs.has_dynamic() || rhs.rank() == 0 ||
      !quantization(op.results[0]->type) || !axis_fits(*out.rhs, rhs))
    return std::nullopt;
  const auto result_rank = static_cast<int64_t>(op.results[0]->type->dims.size());
  const bool shifted = out.lhs->zero_points[0] != 0;
  out.subtracts = !is_symmetric(*out.rhs);
  std::vector<int64_t> reduced, free;
  if (out.convolves) {
    const int64_t feature = m.integer_or(op, "kernel_output_feature_dimension", -1);
    out.channels = m.integer_or(op, "output_feature_dimension", -1);
    if (feature < 0 || feature >= rhs.rank()) return std::nullopt;
    free = {feature};
    for (int64_t d = 0; d < rhs.rank(); ++d)
      if (d != feature) reduced.push_back(d);
  } else {
    const Dims batch = m.ints_or_empty(op, "rhs_batching_dimensions");
    const Dims summed = general ? m.ints_or_empty(op, "rhs_contracting_dimensions") : m.module().dims({0});
    for (int64_t d = 0; d < rhs.rank(); ++d) {
      if (std::find(summed.begin(), summed.end(), d) != summed.end())
        reduced.push_back(d);
      else if (std::find(batch.begin(), batch.end(), d) == batch.end())
        free.push_back(d);
    }
    // The sums of rhs that a zero point needs are a vector only if one dimension is left.
    out.subtracts |= shifted && (free.size() != 1 || !batch.empty());
    out.channels = result_rank - 1;  // free dimensions of rhs are the last of the result
  }
  if (out.rhs->axis >= 0 && out.rhs->scales.size() > 1) {
    if (free.size() != 1 || out.rhs->axis != free[0]) return std::nullopt;
    out.kept = out.rhs->axis;
  }
  const bool along_channels = (shifted && !out.subtracts) || out.kept >= 0;
  if (along_channels && (out.channels < 0 || out.channels >= result_rank)) return std::nullopt;
  if (out.convolves && shifted && !out.subtracts) {
    auto padding = input_padding(m, op, lhs);
    if (!padding) return std::nullopt;
    out.padding = *std::move(padding);
  }
  out.reduced = m.module().dims(reduced);
  double count = 1;
  for (int64_t d : reduced) count *= static_cast<double>(rhs.dim(static_cast<int>(d)));
  const auto range = [](const Quantization& q) {
    const Range zero = zero_range(q);
    return Range{static_cast<double>(q.storage_min) - zero.high, static_cast<double>(q.storage_max) - zero.low};
  };
  for (const Quantization* q : {out.lhs, out.rhs}) {
    const Range zero = zero_range(*q);
    if (!fits(zero, kLeastS32, kMostS32)) return std::nullopt;  // there may be no term at all
  }
  out.range = product_range(range(*out.lhs), range(*out.rhs), count);
  // Integers wrap around, so that only the result must be in range, not the sum and the zero point's term.
  return fits(out.range, kLeastS32, kMostS32) ? std::optional(out) : std::nullopt;
}

/// Returns -zero times the sums of rhs over `reduced`: s32, one for each channel.
InstrId zero_point_term(Importer& m, ImportScope& scope, InstrId rhs, const IntegerProduct& product) {
  const Shape shape = m.shape_of(rhs);
  const int64_t zero = product.lhs->zero_points[0];
  int64_t kept = 0;
  for (int64_t d = 0; d < shape.rank(); ++d)
    if (std::find(product.reduced.begin(), product.reduced.end(), d) == product.reduced.end()) kept = d;
  const int64_t channels = shape.dim(static_cast<int>(kept));
  const Shape sums = Shape::array(Type::S32, {channels});
  Module& module = m.module();
  // Weights are larger than what the passes fold. Constants of equal elements are broadcast scalars.
  const bool equal = module[rhs].op == Op::BROADCAST && module[module[rhs].operand(0)].op == Op::CONSTANT &&
                     module[module[rhs].operand(0)].shape.is_scalar();
  if (equal || module[rhs].op == Op::CONSTANT) {
    std::vector<int64_t> total(static_cast<size_t>(channels), 0);
    int64_t inner = 1;
    for (int64_t d = kept + 1; d < shape.rank(); ++d) inner *= shape.dim(static_cast<int>(d));
    const Literal& weights = module.literal(module[equal ? module[rhs].operand(0) : rhs]);
    if (equal && channels > 0) total.assign(total.size(), shape.element_count() / channels * weights.as_int(0));
    for (int64_t i = 0; !equal && i < shape.element_count(); ++i)
      total[static_cast<size_t>(i / inner % channels)] += weights.as_int(i);
    Literal list = Literal::zeros(sums);
    for (int64_t c = 0; c < channels; ++c) list.set_int(c, -zero * total[static_cast<size_t>(c)]);
    return m.emit_constant(scope, std::move(list));
  }
  const Shape scalar = Shape::scalar(Type::S32);
  const CompId add = module.add_computation(module.unique_name("add"));
  const InstrId both[] = {module.append_parameter(add, 0, scalar), module.append_parameter(add, 1, scalar)};
  module[add].root = module.append(add, Op::ADD, scalar, both);
  auto* attrs = module.make<DimensionsAttrs>();
  attrs->dimensions = product.reduced;
  const InstrId wide = m.emit(scope, Op::CONVERT, shape.with_type(Type::S32), {rhs});
  const InstrId none = m.emit_constant(scope, Literal::scalar(Type::S32, 0));
  const InstrId sum = m.emit(scope, Op::REDUCE, sums, {wide, none}, attrs, std::span(&add, 1));
  return m.emit(scope, Op::MULTIPLY, sums, {sum, m.emit_splat(scope, sums, Type::S32, static_cast<double>(-zero))});
}

/// Pads the input of a convolution with its zero point where the window is padded or the input dilated: zero stands for
/// the zero point, not for 0. Returns the input itself where neither is the case.
InstrId padded_input(Importer& m, ImportScope& scope, InstrId input, const InputPadding& padding, int64_t zero) {
  if (padding.none) return input;
  auto* attrs = m.module().make<PadAttrs>();
  attrs->padding = {m.module().dims(padding.low), m.module().dims(padding.high), m.module().dims(padding.interior)};
  const Type type = m.shape_of(input).type();
  const InstrId value = m.emit_constant(scope, Literal::scalar(type, static_cast<double>(zero)));
  return m.emit(scope, Op::PAD, Shape::array(type, padding.sizes), {input, value}, attrs);
}

/// Emits stored values, less their zero points, as s32.
InstrId without_zero_points(Importer& m, ImportScope& scope, InstrId stored, const Quantization& q) {
  const Shape shape = m.shape_of(stored), wide = shape.with_type(Type::S32);
  const InstrId value = m.emit(scope, Op::CONVERT, wide, {stored});
  if (is_symmetric(q)) return value;
  return m.emit(scope, Op::SUBTRACT, wide, {value, parameter(m, scope, shape, q, Type::S32, false)});
}

/// Emits the exact sum of products of stored values, less their zero points, as s32.
Expected<InstrId> accumulate(Importer& m, ImportScope& scope, const mlir::Op& op, const IntegerProduct& product) {
  if (product.subtracts) {
    const Retyped wide(op, [](const Quantization&, bool) { return Type::S32; });
    ImportScope inner;
    inner.computation = scope.computation;
    for (size_t i = 0; i < 2; ++i) {
      COLLET_ASSIGN(const InstrId stored, m.value(scope, op, i));
      inner.values[wide.op.operands[i]] = without_zero_points(m, scope, stored, i == 0 ? *product.lhs : *product.rhs);
    }
    COLLET_TRY(m.translate(inner, wide.op));
    return inner.values.at(wide.op.results[0]);
  }
  const Retyped plain(op, [](const Quantization& q, bool result) { return result ? Type::S32 : q.storage; });
  COLLET_ASSIGN(const InstrId lhs, m.value(scope, op, 0));
  COLLET_ASSIGN(const InstrId rhs, m.value(scope, op, 1));
  const int64_t zero = product.lhs->zero_points[0];
  const InstrId input = padded_input(m, scope, lhs, product.padding, zero);
  ImportScope inner;
  inner.computation = scope.computation;
  inner.values[plain.op.operands[0]] = input;
  inner.values[plain.op.operands[1]] = rhs;
  COLLET_TRY(m.translate(inner, plain.op));
  const InstrId sum = inner.values.at(plain.op.results[0]);
  if (zero == 0) return sum;
  if (input != lhs) {
    auto* attrs = m.module().make<ConvolutionAttrs>();
    *attrs = m.module()[sum].as<ConvolutionAttrs>();
    attrs->window.padding_low = attrs->window.padding_high = attrs->window.base_dilation = {};
    m.module()[sum].attrs = attrs;
  }
  const InstrId term = zero_point_term(m, scope, rhs, product);
  return add_integers(m, scope, sum, along(m, scope, term, m.shape_of(sum), product.channels));
}

/// Translates a product of quantized operands in integers. NotFound: it is to be computed on dequantized values.
Status translate_product(Importer& m, ImportScope& scope, const mlir::Op& op) {
  if (op.operands.size() != 2) return not_found("");
  COLLET_ASSIGN(const InstrId lhs, m.value(scope, op, 0));
  COLLET_ASSIGN(const InstrId rhs, m.value(scope, op, 1));
  const auto product = integer_product(m, op, m.shape_of(lhs), m.shape_of(rhs));
  if (!product) return not_found("");
  COLLET_ASSIGN(const InstrId sum, accumulate(m, scope, op, *product));
  const Shape shape = m.shape_of(sum);
  // A sum may be beyond the range of f16, and it has more digits than bf16: it is multiplied in f32, and rounded once.
  const Type expressed = product->lhs->expressed, multiplied = type_info(expressed).bits < 32 ? Type::F32 : expressed;
  const size_t channels = product->kept < 0 ? 1 : product->rhs->scales.size();
  Literal scales = Literal::zeros(channels == 1 ? Shape::scalar(multiplied)
                                                : Shape::array(multiplied, {static_cast<int64_t>(channels)}));
  for (size_t i = 0; i < channels; ++i)
    scales.set_double(static_cast<int64_t>(i), scale_of(*product->lhs, 0) * scale_of(*product->rhs, i));
  const TypeRef type = op.results[0]->type;
  // The usual result: an accumulator whose scale is the product of the operands' scales. It is the sum itself.
  const Quantization& q = *quantization(type);
  bool same = is_symmetric(q) && q.storage == Type::S32 && q.expressed == expressed &&
              (q.scales.size() == 1 || (q.scales.size() == channels && q.axis == product->channels)) &&
              q.grid.empty() &&
              fits(product->range, static_cast<double>(q.storage_min), static_cast<double>(q.storage_max));
  // All three scales were rounded to the expressed type, and so was their product.
  const double tolerance = expressed == Type::F64    ? 0x1p-51
                           : expressed == Type::F32  ? 0x1p-22
                           : expressed == Type::BF16 ? 0x1p-7
                                                     : 0x1p-10;
  for (size_t i = 0; same && i < std::max(channels, q.scales.size()); ++i)
    same = std::abs(scales.as_double(channels == 1 ? 0 : static_cast<int64_t>(i)) / scale_of(q, i) - 1) <= tolerance;
  if (same) {
    scope.values[op.results[0]] = sum;
    return {};
  }
  const Shape wide = shape.with_type(multiplied);
  const InstrId value = m.emit(scope, Op::CONVERT, wide, {sum});
  const InstrId factors = m.emit_constant(scope, std::move(scales));
  InstrId real = m.emit(scope, Op::MULTIPLY, wide, {value, along(m, scope, factors, wide, product->channels)});
  if (multiplied != expressed) real = m.emit(scope, Op::CONVERT, shape.with_type(expressed), {real});
  auto narrow = quantize(m, scope, real, type);
  if (!narrow.ok()) return m.fail(op, narrow.status().message());
  scope.values[op.results[0]] = *narrow;
  return {};
}

}  // namespace

bool has_quantized(const mlir::Op& op) {
  for (const mlir::Value* v : op.operands)
    if (quantization(v->type)) return true;
  for (const mlir::Value* v : op.results)
    if (quantization(v->type)) return true;
  return false;
}

Expected<InstrId> dequantize(Importer& m, ImportScope& scope, InstrId stored, TypeRef type) {
  const Quantization& q = *quantization(type);
  const Shape shape = m.shape_of(stored);
  if (!axis_fits(q, shape))
    return invalid_argument("the quantization of " + mlir::to_string(type) + " does not fit it");
  const Shape wide = shape.with_type(q.expressed);
  InstrId value = m.emit(scope, Op::CONVERT, wide, {stored});
  if (!is_symmetric(q))
    value = m.emit(scope, Op::SUBTRACT, wide, {value, parameter(m, scope, shape, q, q.expressed, false)});
  return m.emit(scope, Op::MULTIPLY, wide, {value, parameter(m, scope, shape, q, q.expressed, true)});
}

Expected<InstrId> quantize(Importer& m, ImportScope& scope, InstrId expressed, TypeRef type) {
  const Quantization& q = *quantization(type);
  const Shape from = m.shape_of(expressed);
  if (!axis_fits(q, from)) return invalid_argument("the quantization of " + mlir::to_string(type) + " does not fit it");
  const Shape wide = from.with_type(q.expressed);
  InstrId scaled = m.emit(scope, Op::DIVIDE, wide, {expressed, parameter(m, scope, from, q, q.expressed, true)});
  if (!is_symmetric(q))
    scaled = m.emit(scope, Op::ADD, wide, {scaled, parameter(m, scope, from, q, q.expressed, false)});
  const InstrId low = m.emit_splat(scope, from, q.expressed, static_cast<double>(q.storage_min));
  const InstrId high = m.emit_splat(scope, from, q.expressed, static_cast<double>(q.storage_max));
  const InstrId clamped = m.emit(scope, Op::CLAMP, wide, {low, scaled, high});
  const InstrId rounded = m.emit(scope, Op::ROUND_NEAREST_EVEN, wide, {clamped});
  return m.emit(scope, Op::CONVERT, from.with_type(q.storage), {rounded});
}

Status translate_quantized(Importer& m, ImportScope& scope, const mlir::Op& op) {
  if (keeps_storage(op.name)) return not_found("");
  if (op.name == "stablehlo.uniform_dequantize" && op.operands.size() == 1 && op.results.size() == 1) {
    COLLET_ASSIGN(InstrId stored, m.value(scope, op, 0));
    if (!quantization(op.operands[0]->type)) return m.fail(op, "needs a quantized operand");
    auto out = dequantize(m, scope, stored, op.operands[0]->type);
    if (!out.ok()) return m.fail(op, out.status().message());
    return m.define(scope, op, *out);
  }
  if (is_movement(op.name) || is_choice(op.name)) {
    const Quantization* q = common_quantization(op);
    const auto fits_choice = [&](const mlir::Value* value) {
      const Quantization* one = quantization(value->type);
      return one && one->axis == q->axis;
    };
    const bool same = !is_choice(op.name) ? q && q->grid.empty() && (q->axis < 0 || axis_moves_along(m, op))
                                          : q && std::all_of(op.operands.begin(), op.operands.end(), fits_choice) &&
                                                std::all_of(op.results.begin(), op.results.end(), fits_choice);
    if (same) return translate_stored(m, scope, op);
  }
  if (op.name == "stablehlo.add") {
    COLLET_ASSIGN(const std::optional<InstrId> sum, add_stored(m, scope, op));
    if (sum) return m.define(scope, op, *sum);
  }
  if (Status done = translate_product(m, scope, op); done.code() != Code::NotFound) return done;
  // The same op over values of expressed type, in a scope of its own where operands are dequantized.
  ImportScope inner;
  inner.computation = scope.computation;
  const Retyped expressed(op, [](const Quantization& q, bool) { return q.expressed; });
  const mlir::Op& plain = expressed.op;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    COLLET_ASSIGN(InstrId id, m.value(scope, op, i));
    if (quantization(op.operands[i]->type)) {
      auto wide = dequantize(m, scope, id, op.operands[i]->type);
      if (!wide.ok()) return m.fail(op, wide.status().message());
      id = *wide;
    }
    inner.values[plain.operands[i]] = id;
  }
  if (op.name == "stablehlo.uniform_quantize") {
    if (plain.operands.size() != 1 || plain.results.size() != 1) return m.fail(op, "needs one operand");
    inner.values[plain.results[0]] = inner.values[plain.operands[0]];
  } else {
    COLLET_TRY(m.translate(inner, plain));
  }
  for (size_t i = 0; i < op.results.size(); ++i) {
    InstrId id = inner.values.at(plain.results[i]);
    if (quantization(op.results[i]->type)) {
      auto narrow = quantize(m, scope, id, op.results[i]->type);
      if (!narrow.ok()) return m.fail(op, narrow.status().message());
      id = *narrow;
    }
    scope.values[op.results[i]] = id;
  }
  return {};
}

}  // namespace collet::hlo
