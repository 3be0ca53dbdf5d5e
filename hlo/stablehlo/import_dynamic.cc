// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/stablehlo/attribute_rules.h"
#include "hlo/stablehlo/importer.h"
#include "hlo/stablehlo/write.h"

// Imports ops whose shape is an operand. If the type of the result is static, they become the corresponding static ops;
// otherwise they are kept as custom calls under their own names, to be refined when the shapes are known.

namespace collet::hlo {
namespace {

bool is_static(const Shape& shape) {
  return !shape.has_dynamic();
}

/// Returns the integers of an operand that is a constant.
std::optional<std::vector<int64_t>> constant_ints(const mlir::Op& op, size_t operand) {
  if (operand >= op.operands.size()) return std::nullopt;
  const mlir::Op* source = op.operands[operand]->op;
  if (!source || source->name != "stablehlo.constant") return std::nullopt;
  const mlir::AttrRef value = source->attr("value");
  if (!value || value->kind != mlir::Attr::Kind::Dense || !value->type) return std::nullopt;
  const int64_t count = mlir::element_count(value->type);
  if (count < 0 || count > static_cast<int64_t>(kMostDimensions)) return std::nullopt;
  bool splat = false;
  auto literal = literal_of(*value, &splat);
  if (!literal.ok() || !is_integer(literal->type())) return std::nullopt;
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(literal->as_int(splat ? 0 : i));
  return out;
}

/// Checks that the operands from `first` on are lists of integers, all of one type.
Status check_lists(Importer& m, const mlir::Op& op, size_t first, size_t rank = 1) {
  for (size_t i = first; i < op.operands.size(); ++i) {
    const mlir::TypeRef type = op.operands[i]->type;
    const bool integers = type && type->kind == mlir::Type::Kind::Tensor && type->dims.size() == rank &&
                          is_integer(mlir::element_type(type->element));
    if (!integers) return m.fail(op, "operand " + std::to_string(i) + " is no list of integers");
    if (!mlir::same_type(type, op.operands[first]->type))
      return m.fail(op, "its lists of integers are of several types");
  }
  return {};
}

/// Checks that the operands from `first` on, lists of integers, have `count` elements, one for each dimension.
Status check_list_sizes(Importer& m, const mlir::Op& op, size_t first, int64_t count) {
  for (size_t i = first; i < op.operands.size(); ++i)
    if (op.operands[i]->type->dims[0] != count)
      return m.fail(op, "operand " + std::to_string(i) + " is " + mlir::to_string(op.operands[i]->type) +
                            ", but must be a list of " + std::to_string(count) + " integers");
  return {};
}

/// Checks the element types of an op that is imported when its shapes are known.
Status check_types(Importer& m, const mlir::Op& op, const Shape& shape, std::span<const InstrId> operands) {
  for (InstrId id : operands)
    if (m.shape_of(id).type() != shape.type())
      return m.fail(op, "makes " + shape.to_string() + " of " + m.shape_of(id).to_string() + ": element types differ");
  return {};
}

/// Translates the op without its shape operands, under another name.
Status as_static(Importer& m, ImportScope& scope, const mlir::Op& op, std::string_view name, size_t operands,
                 std::vector<mlir::NamedAttr> extra = {}) {
  mlir::Op plain = op;
  plain.name = name;
  plain.operands.resize(std::min(operands, plain.operands.size()));
  // Attributes in `extra` take precedence over those of the same name.
  plain.attrs.insert(plain.attrs.begin(), extra.begin(), extra.end());
  return find_import(name)(m, scope, plain);
}

/// Checks that the two lists of hints name each dimension of the operand at most once.
Status check_hints(Importer& m, const mlir::Op& op, int rank) {
  std::vector<bool> said(static_cast<size_t>(rank));
  for (std::string_view name : {"known_expanding_dimensions", "known_nonexpanding_dimensions"})
    for (int64_t d : m.ints_or_empty(op, name)) {
      if (d < 0 || d >= rank)
        return m.fail(op, std::string(name) + ": the operand has no dimension " + std::to_string(d));
      if (said[static_cast<size_t>(d)])
        return m.fail(op, std::string(name) + ": dimension " + std::to_string(d) + " is named twice");
      said[static_cast<size_t>(d)] = true;
    }
  return {};
}

Status dynamic_broadcast_in_dim(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId operand, m.value(scope, op, 0));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  COLLET_TRY(check_hints(m, op, m.shape_of(operand).rank()));
  COLLET_TRY(check_shape_operand(m, op, 1, shape));
  COLLET_TRY(check_types(m, op, shape, {&operand, 1}));
  if (is_static(shape) && is_static(m.shape_of(operand)))
    return as_static(m, scope, op, "stablehlo.broadcast_in_dim", 1);
  const Shape& from = m.shape_of(operand);
  COLLET_ASSIGN(const Dims dims, m.ints(op, "broadcast_dimensions"));
  bool fits = dims.size() == static_cast<size_t>(from.rank());
  std::vector<bool> named(static_cast<size_t>(shape.rank()));
  for (size_t i = 0; fits && i < dims.size(); ++i) {
    fits = dims[i] >= 0 && dims[i] < shape.rank() && !named[static_cast<size_t>(dims[i])];
    if (!fits) break;
    named[static_cast<size_t>(dims[i])] = true;
    const int64_t a = from.dim(static_cast<int>(i)), b = shape.dim(static_cast<int>(dims[i]));
    fits = a == b || a == 1 || a == kUnbounded || b == kUnbounded;
  }
  if (!fits) return m.fail(op, "broadcast_dimensions do not bring " + from.to_string() + " to " + shape.to_string());
  return keep_op(m, scope, op);
}

Status dynamic_reshape(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId operand, m.value(scope, op, 0));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  COLLET_TRY(check_shape_operand(m, op, 1, shape));
  COLLET_TRY(check_types(m, op, shape, {&operand, 1}));
  if (is_static(shape) && is_static(m.shape_of(operand)))
    return m.define(scope, op, m.emit(scope, Op::RESHAPE, shape, {operand}));
  return keep_op(m, scope, op);
}

Status dynamic_iota(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  COLLET_TRY(check_shape_operand(m, op, 0, shape));
  COLLET_ASSIGN(const int64_t along, m.integer(op, "iota_dimension"));
  if (along < 0 || along >= shape.rank())
    return m.fail(op, "the result " + shape.to_string() + " has no dimension " + std::to_string(along));
  return is_static(shape) ? as_static(m, scope, op, "stablehlo.iota", 0) : keep_op(m, scope, op);
}

mlir::Attr ints_attr(Importer& m, const std::vector<int64_t>& values) {
  mlir::Attr out;
  out.kind = mlir::Attr::Kind::Ints;
  out.ints = m.module().dims(values);
  return out;
}

Status real_dynamic_slice(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId operand, m.value(scope, op, 0));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  COLLET_TRY(check_lists(m, op, 1));
  COLLET_TRY(check_list_sizes(m, op, 1, m.shape_of(operand).rank()));
  COLLET_TRY(check_types(m, op, shape, {&operand, 1}));
  const auto starts = constant_ints(op, 1), limits = constant_ints(op, 2), strides = constant_ints(op, 3);
  if (starts && limits && strides) {
    const mlir::Attr a = ints_attr(m, *starts), b = ints_attr(m, *limits), c = ints_attr(m, *strides);
    return as_static(m, scope, op, "stablehlo.slice", 1,
                     {{"start_indices", &a}, {"limit_indices", &b}, {"strides", &c}});
  }
  // With strides of one and a known size the op is a dynamic-slice.
  const bool unit = strides && std::all_of(strides->begin(), strides->end(), [](int64_t s) { return s == 1; });
  if (!unit || !is_static(shape) || !is_static(m.shape_of(operand))) return keep_op(m, scope, op);
  COLLET_ASSIGN(InstrId start, m.value(scope, op, 1));
  std::vector<InstrId> operands{operand};
  const Type index = m.shape_of(start).type();
  for (int64_t i = 0; i < shape.rank(); ++i) {
    auto* slice = m.module().make<SliceAttrs>();
    slice->slice = {m.module().dims({i}), m.module().dims({i + 1}), m.module().dims({1})};
    const InstrId one = m.emit(scope, Op::SLICE, Shape::array(index, {1}), {start}, slice);
    operands.push_back(m.emit(scope, Op::RESHAPE, Shape::scalar(index), {one}));
  }
  auto* attrs = m.module().make<DynamicSliceAttrs>();
  attrs->sizes = m.module().dims(shape.dims());
  return m.define(scope, op, m.emit(scope, Op::DYNAMIC_SLICE, shape, operands, attrs));
}

Status dynamic_pad(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_TRY(check_lists(m, op, 2));
  COLLET_ASSIGN(const InstrId operand, m.value(scope, op, 0));
  COLLET_ASSIGN(const InstrId padding, m.value(scope, op, 1));
  COLLET_ASSIGN(const Shape shape, m.result_shape(op));
  const InstrId both[] = {operand, padding};
  COLLET_TRY(check_list_sizes(m, op, 2, m.shape_of(operand).rank()));
  COLLET_TRY(check_types(m, op, shape, both));
  const auto low = constant_ints(op, 2), high = constant_ints(op, 3), interior = constant_ints(op, 4);
  if (!low || !high || !interior) return keep_op(m, scope, op);
  const mlir::Attr a = ints_attr(m, *low), b = ints_attr(m, *high), c = ints_attr(m, *interior);
  return as_static(m, scope, op, "stablehlo.pad", 2,
                   {{"edge_padding_low", &a}, {"edge_padding_high", &b}, {"interior_padding", &c}});
}

Status dynamic_gather(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_TRY(check_lists(m, op, 2));
  COLLET_ASSIGN(const InstrId operand, m.value(scope, op, 0));
  COLLET_ASSIGN(const Shape shape, m.result_shape(op));
  COLLET_TRY(check_list_sizes(m, op, 2, m.shape_of(operand).rank()));
  COLLET_TRY(check_types(m, op, shape, {&operand, 1}));
  const auto sizes = constant_ints(op, 2);
  if (!sizes) return keep_op(m, scope, op);
  const mlir::Attr a = ints_attr(m, *sizes);
  return as_static(m, scope, op, "stablehlo.gather", 2, {{"slice_sizes", &a}});
}

Status dynamic_conv(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_TRY(check_lists(m, op, 2, 2));
  const auto padding = constant_ints(op, 2);
  if (!padding) return keep_op(m, scope, op);
  const mlir::Attr a = ints_attr(m, *padding);
  return as_static(m, scope, op, "stablehlo.convolution", 2, {{"padding", &a}});
}

}  // namespace

Status keep_op(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  Arena& arena = m.module().arena();
  auto* attrs = m.module().make<CustomCallAttrs>();
  attrs->target = arena.string(op.name);
  // Artifacts store default values, and have another order of attributes, so the fields are sorted and defaults
  // dropped.
  std::vector<mlir::NamedAttr> fields;
  for (const mlir::NamedAttr& a : op.attrs) {
    const mlir::AttrRule* rule = mlir::find_attr_rule(a.name);
    if (!rule || !mlir::is_default_attr(*rule, a.value)) fields.push_back(a);
  }
  std::sort(fields.begin(), fields.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  std::string config = "{";
  for (const mlir::NamedAttr& a : fields)
    config += (config.size() > 1 ? ", " : "") + std::string(a.name) + " = " + mlir::attr_to_string(a.value);
  config += "}";
  const InstrId id = m.emit(scope, Op::CUSTOM_CALL, shape, operands, attrs);
  attrs->config = arena.string(config);
  Extras extras;
  extras.backend_config = attrs->config;
  m.module()[id].extras = arena.make<Extras>(extras);
  return m.define(scope, op, id);
}

Status check_shape_operand(Importer& m, const mlir::Op& op, size_t operand, const Shape& shape) {
  if (operand >= op.operands.size()) return m.fail(op, "has too few operands");
  COLLET_TRY(check_lists(m, op, operand));
  const auto sizes = constant_ints(op, operand);
  bool fits = op.operands[operand]->type->dims[0] == shape.rank();
  for (int i = 0; sizes && fits && i < shape.rank(); ++i)
    fits = shape.is_dynamic(i) || (*sizes)[static_cast<size_t>(i)] == shape.dim(i);
  return fits ? ok_status() : m.fail(op, "its operand of sizes is not the result's shape");
}

std::span<const ImportRow> import_dynamic_rows() {
  static constexpr ImportRow kRows[] = {
      {"stablehlo.dynamic_broadcast_in_dim", dynamic_broadcast_in_dim},
      {"stablehlo.dynamic_reshape", dynamic_reshape},
      {"stablehlo.dynamic_iota", dynamic_iota},
      {"stablehlo.real_dynamic_slice", real_dynamic_slice},
      {"stablehlo.dynamic_pad", dynamic_pad},
      {"stablehlo.dynamic_gather", dynamic_gather},
      {"stablehlo.dynamic_conv", dynamic_conv},
  };
  return kRows;
}

}  // namespace collet::hlo
