// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/importer.h"

namespace collet::hlo {
using mlir::Attr;
using mlir::AttrRef;

Expected<Dims> Importer::ints(const mlir::Op& op, std::string_view name) {
  const AttrRef attr = op.attr(name);
  if (!attr) return fail(op, "lacks its attribute " + std::string(name));
  if (attr->kind == Attr::Kind::Ints || attr->kind == Attr::Kind::Bools) return module_.dims(attr->ints);
  if (attr->kind == Attr::Kind::Array) {
    std::vector<int64_t> values;
    for (AttrRef item : attr->items) {
      if (!item || (item->kind != Attr::Kind::Int && item->kind != Attr::Kind::Bool))
        return fail(op, "attribute " + std::string(name) + " is no list of integers");
      values.push_back(item->integer);
    }
    return module_.dims(values);
  }
  return fail(op, "attribute " + std::string(name) + " is no list of integers");
}

Dims Importer::ints_or_empty(const mlir::Op& op, std::string_view name) {
  if (!op.attr(name)) return {};
  auto got = ints(op, name);
  return got.ok() ? *got : Dims();
}

Expected<int64_t> Importer::integer(const mlir::Op& op, std::string_view name) {
  const AttrRef attr = op.attr(name);
  if (!attr) return fail(op, "lacks its attribute " + std::string(name));
  if (attr->kind != Attr::Kind::Int && attr->kind != Attr::Kind::Bool)
    return fail(op, "attribute " + std::string(name) + " is no integer");
  return attr->integer;
}

int64_t Importer::integer_or(const mlir::Op& op, std::string_view name, int64_t otherwise) const {
  const AttrRef attr = op.attr(name);
  if (!attr) return otherwise;
  if (attr->kind == Attr::Kind::Unit) return 1;
  return attr->kind == Attr::Kind::Int || attr->kind == Attr::Kind::Bool ? attr->integer : otherwise;
}

std::string_view Importer::text(const mlir::Op& op, std::string_view name) const {
  const AttrRef attr = op.attr(name);
  if (!attr) return {};
  switch (attr->kind) {
    case Attr::Kind::String:
    case Attr::Kind::Symbol:
    case Attr::Kind::Enum:
      return attr->text;
    default:
      return {};
  }
}

Expected<size_t> Importer::word(const mlir::Op& op, std::string_view name, std::span<const std::string_view> words,
                                int otherwise) const {
  if (!op.attr(name)) {
    if (otherwise < 0) return fail(op, "lacks its " + std::string(name));
    return static_cast<size_t>(otherwise);
  }
  const std::string_view wanted = text(op, name);
  for (size_t i = 0; i < words.size(); ++i)
    if (words[i] == wanted && !wanted.empty()) return i;
  return fail(op, "there is no " + std::string(name) + " " + std::string(wanted));
}

Dims Importer::precisions(const mlir::Op& op) {
  const AttrRef attr = op.attr("precision_config");
  if (!attr || attr->kind != Attr::Kind::Array) return {};
  std::vector<int64_t> values;
  bool all_default = true;
  for (AttrRef item : attr->items) {
    const int64_t value = item && item->text == "HIGHEST" ? 2 : item && item->text == "HIGH" ? 1 : 0;
    all_default &= value == 0;
    values.push_back(value);
  }
  return all_default ? Dims() : module_.dims(values);
}

Expected<Groups> Importer::groups(const mlir::Op& op) {
  Groups out;
  const AttrRef attr = op.attr("replica_groups");
  if (!attr) return out;
  const bool no_items = attr->kind == Attr::Kind::Array && attr->items.empty();
  const bool no_elements = attr->kind == Attr::Kind::Dense && attr->bytes.empty();
  if (attr->kind != Attr::Kind::Ints && !no_items && !no_elements) {
    // Without groups all would take part, which is another program.
    const Status why = fail(op, "replica_groups are no table of numbers (groups by a mesh's axes are not known)");
    return unimplemented(why.message());
  }
  if (attr->ints.empty()) return out;
  if (attr->dims.size() != 2) return fail(op, "replica_groups are no table of rows");
  const auto width = static_cast<size_t>(attr->dims[1]);
  std::vector<Dims> lists;
  for (size_t i = 0; i + width <= attr->ints.size(); i += width) {
    std::vector<int64_t> ids;
    for (size_t j = 0; j < width; ++j)
      if (attr->ints[i + j] >= 0) ids.push_back(attr->ints[i + j]);  // -1 fills rows up
    lists.push_back(module_.dims(ids));
  }
  out.groups = module_.arena().list(lists);
  return out;
}

namespace {

/// The field of a dictionary; null when there is none.
AttrRef field_of(AttrRef dictionary, std::string_view name) {
  if (dictionary && dictionary->kind == Attr::Kind::Dict)
    for (const mlir::NamedAttr& field : dictionary->fields)
      if (field.name == name) return field.value;
  return nullptr;
}

}  // namespace

Status Importer::read_aliases(const mlir::Op& root) {
  const AttrRef list = root.attr("mhlo.input_output_alias");
  if (!list || list->kind != Attr::Kind::Array) return {};
  for (AttrRef item : list->items) {
    const AttrRef output = field_of(item, "output_index"), inside = field_of(item, "alias");
    const AttrRef kind = field_of(inside, "kind"), index = field_of(inside, "parameter_index");
    const AttrRef number = field_of(inside, "parameter_number");
    const bool lists = output && output->kind == Attr::Kind::Ints && index && index->kind == Attr::Kind::Ints;
    if (!lists || !kind || !number || number->kind != Attr::Kind::Int)
      return fail(root, "mhlo.input_output_alias is not understood");
    InputOutputAlias alias;
    alias.output_index = module_.dims(output->ints);
    alias.parameter = number->integer;
    alias.parameter_index = module_.dims(index->ints);
    alias.must = kind->text == "must_alias";
    module_.header().aliases.push_back(alias);
  }
  return {};
}

Expected<Literal> Importer::literal(AttrRef dense, bool* splat) {
  const auto known = literals_.find(dense);
  if (known != literals_.end()) {
    *splat = dense->splat;
    return known->second;
  }
  COLLET_ASSIGN(Literal made, literal_of(*dense, splat));
  literals_.emplace(dense, made);
  return made;
}

Expected<Literal> literal_of(const mlir::Attr& dense, bool* splat) {
  if (dense.kind != Attr::Kind::Dense || !dense.type || dense.type->kind != mlir::Type::Kind::Tensor)
    return invalid_argument("a constant's value is no dense array");
  const Type element = mlir::element_type(dense.type->element);
  const int64_t count = mlir::element_count(dense.type);
  const auto bytes = static_cast<int64_t>(type_info(element).bytes());
  if (element == Type::Invalid || count < 0)
    return invalid_argument("a constant of type " + mlir::to_string(dense.type));
  *splat = dense.splat;
  if (dense.type->dims.size() > kMostDimensions) return invalid_argument("a constant of too many dimensions");
  const Shape shape = dense.splat ? Shape::scalar(element) : Shape::array(element, dense.type->dims);
  if (static_cast<int64_t>(dense.bytes.size()) != (dense.splat ? bytes : count * bytes))
    return invalid_argument("a constant's data does not fit " + mlir::to_string(dense.type));
  return Literal::from_bytes(shape, dense.bytes.data());
}

}  // namespace collet::hlo
