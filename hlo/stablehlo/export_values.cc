// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/exporter.h"

// Builds types, values, ops and attributes for all export_*.cc files.

namespace collet::hlo {

using mlir::Attr;
using mlir::TypeRef;
using mlir::Value;
using TypeKind = mlir::Type::Kind;

namespace {
// Longer lists whose elements are all equal are written as a splat.
constexpr int64_t kLongestList = 64;
}  // namespace

Expected<TypeRef> Exporter::type(const Shape& shape) {
  if (shape.is_token()) return TypeRef(program_.make_type(TypeKind::Token));
  if (shape.is_tuple()) {
    std::vector<TypeRef> elements;
    for (const Shape& element : shape.elements()) {
      COLLET_ASSIGN(TypeRef one, type(element));
      elements.push_back(one);
    }
    mlir::Type* out = program_.make_type(TypeKind::Tuple);
    out->inputs = program_.arena().list(elements);
    return TypeRef(out);
  }
  const bool buffer = shape.is_buffer() && shape.elements().size() == 1;
  const Shape& array = buffer ? shape.element(0) : shape;
  if (!array.is_array() || array.type() == Type::S1 || array.type() == Type::U1)
    return unimplemented("it has no type for " + shape.to_string());
  mlir::Type* out = program_.make_type(buffer ? TypeKind::Buffer : TypeKind::Tensor);
  out->element = program_.scalar(array.type());
  std::vector<int64_t> dims(array.dims().begin(), array.dims().end()), bounds(dims.size(), kUnbounded);
  bool bounded = false;
  for (int i = 0; i < array.rank(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (!array.is_dynamic(i)) continue;
    bounded |= dims[at] != kUnbounded;
    bounds[at] = dims[at];
    dims[at] = kUnbounded;
  }
  out->dims = program_.arena().list(dims);
  if (bounded) out->bounds = program_.arena().list(bounds);
  return TypeRef(out);
}

Expected<Value*> Exporter::whole(ExportScope& scope, const ExportNode& node) {
  if (node.value) return node.value;
  std::vector<Value*> elements;
  std::vector<TypeRef> types;
  for (const ExportNode& each : node.parts) {
    COLLET_ASSIGN(Value * value, whole(scope, each));
    elements.push_back(value);
    types.push_back(value->type);
  }
  mlir::Type* tuple = program_.make_type(TypeKind::Tuple);
  tuple->inputs = program_.arena().list(types);
  mlir::Op* const main = last_;
  Value* out = emit(scope, "stablehlo.tuple", elements, {tuple})->results[0];
  last_ = main;
  return out;
}

Expected<ExportNode> Exporter::part(ExportScope& scope, const ExportNode& node, size_t index) {
  if (!node.value) {
    if (index >= node.parts.size()) return invalid_argument("an element lies outside of its tuple");
    return node.parts[index];
  }
  if (node.value->type->kind != TypeKind::Tuple || index >= node.value->type->inputs.size())
    return invalid_argument("an element is taken of what is no tuple");
  Value* operand = node.value;
  mlir::Op* const main = last_;
  mlir::Op* op = emit(scope, "stablehlo.get_tuple_element", {&operand, 1}, {operand->type->inputs[index]});
  set_int(op, "index", static_cast<int64_t>(index), Type::S32);
  last_ = main;
  ExportNode out;
  out.value = op->results[0];
  return out;
}

Status Exporter::leaves(ExportScope& scope, const ExportNode& node, std::vector<Value*>& out) {
  const bool tuple = node.value && node.value->type->kind == TypeKind::Tuple;
  if (node.value && !tuple) {
    out.push_back(node.value);
    return {};
  }
  const size_t count = tuple ? node.value->type->inputs.size() : node.parts.size();
  for (size_t i = 0; i < count; ++i) {
    COLLET_ASSIGN(ExportNode each, part(scope, node, i));
    COLLET_TRY(leaves(scope, each, out));
  }
  return {};
}

Expected<Value*> Exporter::operand(ExportScope& scope, const Instruction& instr, size_t i) {
  if (i >= instr.operands.size()) return fail(instr, "it has too few operands");
  COLLET_ASSIGN(Value * out, whole(scope, node(scope, instr, i)));
  const bool tuple = module_[instr.operand(i)].shape.is_tuple();
  if (tuple != (out->type->kind == TypeKind::Tuple)) return fail(instr, kUnfinished);
  return out;
}

Expected<std::vector<Value*>> Exporter::operands(ExportScope& scope, const Instruction& instr) {
  std::vector<Value*> out;
  for (size_t i = 0; i < instr.operands.size(); ++i) {
    COLLET_ASSIGN(Value * value, operand(scope, instr, i));
    out.push_back(value);
  }
  return out;
}

Status Exporter::leaf_types(const Shape& shape, std::vector<TypeRef>& out) {
  if (shape.is_tuple()) {
    for (const Shape& element : shape.elements()) COLLET_TRY(leaf_types(element, out));
    return {};
  }
  COLLET_ASSIGN(TypeRef one, type(shape));
  out.push_back(one);
  return {};
}

ExportNode Exporter::from_leaves(const Shape& shape, std::span<Value* const> values, size_t* next) {
  ExportNode out;
  if (!shape.is_tuple()) {
    out.value = values[(*next)++];
    return out;
  }
  for (const Shape& element : shape.elements()) out.parts.push_back(from_leaves(element, values, next));
  return out;
}

Expected<std::vector<TypeRef>> Exporter::result_types(const Shape& shape) {
  std::vector<TypeRef> out;
  if (!shape.is_tuple() || shape.elements().size() == 1) {
    COLLET_ASSIGN(TypeRef one, type(shape));
    out.push_back(one);
    return out;
  }
  for (const Shape& element : shape.elements()) {
    COLLET_ASSIGN(TypeRef one, type(element));
    out.push_back(one);
  }
  return out;
}

ExportNode Exporter::from_results(const mlir::Op& op) {
  ExportNode out;
  if (op.results.size() == 1) {
    out.value = op.results[0];
    return out;
  }
  for (Value* v : op.results) out.parts.emplace_back().value = v;
  return out;
}

mlir::Op* Exporter::emit(ExportScope& scope, std::string_view name, std::span<Value* const> operands,
                         std::span<const TypeRef> results) {
  mlir::Op* op = program_.make_op(name);
  op->operands.assign(operands.begin(), operands.end());
  for (TypeRef type : results) program_.add_result(op, type);
  scope.block->ops.push_back(op);
  last_ = op;
  return op;
}

Expected<mlir::Op*> Exporter::emit_like(ExportScope& scope, std::string_view name, const Instruction& instr) {
  COLLET_ASSIGN(std::vector<Value*> inputs, operands(scope, instr));
  auto types = result_types(instr.shape);
  if (!types.ok()) return fail(instr, types.status().message());
  return emit(scope, name, inputs, *types);
}

Value* Exporter::emit_constant(ExportScope& scope, const Literal& literal, TypeRef type) {
  Attr* value = program_.make_attr(Attr::Kind::Dense);
  value->type = type;
  value->splat = literal.element_count() > kLongestList && literal.is_splat();
  const int64_t count = value->splat ? literal.byte_size() / literal.element_count() : literal.byte_size();
  const std::string_view bytes(reinterpret_cast<const char*>(literal.bytes()), static_cast<size_t>(count));
  program_.set_bytes(value, bytes);
  mlir::Op* op = emit(scope, "stablehlo.constant", {}, {type});
  set(op, "value", value);
  return op->results[0];
}

Value* Exporter::emit_ints(ExportScope& scope, hlo::Type type, std::span<const int64_t> values) {
  const Shape shape = Shape::array(type, {static_cast<int64_t>(values.size())});
  Literal literal = Literal::zeros(shape);
  for (size_t i = 0; i < values.size(); ++i) literal.set_int(static_cast<int64_t>(i), values[i]);
  return emit_constant(scope, literal, program_.tensor(program_.scalar(type), shape.dims()));
}

Expected<Value*> Exporter::emit_reshape(ExportScope& scope, Value* value, std::span<const int64_t> dims) {
  return emit(scope, "stablehlo.reshape", {&value, 1}, {program_.tensor(value->type->element, dims)})->results[0];
}

Value* Exporter::emit_convert(ExportScope& scope, Value* value, hlo::Type type) {
  if (value->type->kind != TypeKind::Tensor || mlir::element_type(value->type->element) == type) return value;
  mlir::Type* to = program_.make_type(TypeKind::Tensor);
  *to = *value->type;
  to->element = program_.scalar(type);
  return emit(scope, "stablehlo.convert", {&value, 1}, {to})->results[0];
}

void Exporter::set_ints(mlir::Op* op, std::string_view name, std::span<const int64_t> values) {
  Attr* out = program_.make_attr(Attr::Kind::Ints);
  out->ints = program_.arena().list<const int64_t>(values);
  set(op, name, out);
}

void Exporter::set_table(mlir::Op* op, std::string_view name, std::span<const int64_t> values, int64_t columns) {
  Attr* out = program_.make_attr(Attr::Kind::Ints);
  out->ints = program_.arena().list<const int64_t>(values);
  const int64_t rows = columns ? static_cast<int64_t>(values.size()) / columns : 0;
  out->dims = program_.arena().list(std::vector<int64_t>{rows, columns});
  set(op, name, out);
}

mlir::AttrRef Exporter::int_attr(int64_t value, hlo::Type type) {
  Attr* out = program_.make_attr(Attr::Kind::Int);
  out->integer = value;
  out->type = program_.scalar(type);
  return out;
}

mlir::AttrRef Exporter::bool_attr(bool value) {
  Attr* out = program_.make_attr(Attr::Kind::Bool);
  out->integer = value;
  return out;
}

mlir::AttrRef Exporter::text_attr(std::string_view value) {
  Attr* out = program_.make_attr(Attr::Kind::String);
  out->text = program_.arena().string(value);
  return out;
}

mlir::AttrRef Exporter::type_attr(TypeRef type) {
  Attr* out = program_.make_attr(Attr::Kind::Type);
  out->type = type;
  return out;
}

void Exporter::set_int(mlir::Op* op, std::string_view name, int64_t value, hlo::Type type) {
  set(op, name, int_attr(value, type));
}

void Exporter::set_bool(mlir::Op* op, std::string_view name, bool value) {
  set(op, name, bool_attr(value));
}

void Exporter::set_text(mlir::Op* op, std::string_view name, std::string_view value) {
  set(op, name, text_attr(value));
}

void Exporter::set_enum(mlir::Op* op, std::string_view name, std::string_view value) {
  Attr* out = program_.make_attr(Attr::Kind::Enum);
  out->text = program_.arena().string(value);
  set(op, name, out);
}

void Exporter::set_precisions(mlir::Op* op, Dims precision) {
  if (precision.empty()) return;
  static constexpr std::string_view kTexts[] = {"DEFAULT", "HIGH", "HIGHEST"};
  std::vector<mlir::AttrRef> items;
  for (int64_t value : precision) {
    Attr* item = program_.make_attr(Attr::Kind::Enum);
    item->text = kTexts[value >= 0 && value < 3 ? value : 0];
    items.push_back(item);
  }
  Attr* out = program_.make_attr(Attr::Kind::Array);
  out->items = program_.arena().list(items);
  set(op, "precision_config", out);
}

}  // namespace collet::hlo
