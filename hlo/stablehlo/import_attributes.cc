// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "hlo/stablehlo/attribute_rules.h"
#include "hlo/stablehlo/importer.h"
#include "hlo/stablehlo/op_schemas.h"
#include "hlo/stablehlo/write.h"

#include <algorithm>
#include <vector>

#include "hlo/text/parser.h"

namespace collet::hlo {
using mlir::Attr;
using mlir::AttrRef;

namespace {

/// True if `value` is a number of that type; fields of structured attributes have no type.
bool is_number(const Attr& value, Type type) {
  return value.kind == Attr::Kind::Int &&
         (!value.type || (value.type->kind == mlir::Type::Kind::Scalar && value.type->scalar == type));
}

/// True if an attribute names a function: in text by a symbol @name, in artifacts by a string.
bool names_function(const Attr& value) {
  return value.kind == Attr::Kind::Symbol || value.kind == Attr::Kind::String;
}

/// Returns what is wrong with a result_accuracy; null if nothing is.
const char* wrong_accuracy(const Attr& value) {
  const auto is_negative = [](double x) { return x < 0; };
  const auto is_zero = [](double x) { return x == 0; };
  if (value.integer < 0 || std::any_of(value.floats.begin(), value.floats.end(), is_negative))
    return "has a negative tolerance";
  const bool none = value.integer == 0 && std::all_of(value.floats.begin(), value.floats.end(), is_zero);
  if (!none && value.text != "TOLERANCE") return "has a tolerance, but a mode other than TOLERANCE";
  return nullptr;
}

/// True if `value` can be read in the form of `rule`: numbers, booleans, strings and lists of them. The values of
/// enumerations are checked where they are read.
bool fits_form(const mlir::AttrRule& rule, const Attr& value, bool of_record) {
  using F = mlir::AttrForm;
  const Attr::Kind kind = value.kind;
  switch (rule.form) {
    case F::I64:
      return is_number(value, Type::S64) || (of_record && kind == Attr::Kind::Int);
    case F::I32:
      return is_number(value, Type::S32);
    case F::ApiVersion:
      return kind == Attr::Kind::Enum || is_number(value, Type::S32);
    case F::Text:
      return kind == Attr::Kind::String;
    case F::Symbol:
      return names_function(value);
    case F::Symbols:
      return kind == Attr::Kind::Array && std::all_of(value.items.begin(), value.items.end(),
                                                      [](AttrRef item) { return item && names_function(*item); });
    case F::Bool:
      return kind == Attr::Kind::Bool;
    case F::Flag:
      return kind == Attr::Kind::Bool || kind == Attr::Kind::Unit;
    case F::Table:
      // Replica groups may also be given by the axes of a mesh; the reader of that form checks them.
      if (rule.name == "replica_groups") return kind != Attr::Kind::Ints || !value.type;
      [[fallthrough]];
    case F::Ints:
      return (kind == Attr::Kind::Ints && !value.type) || kind == Attr::Kind::Array;
    case F::Bools:
      return kind == Attr::Kind::Bools || kind == Attr::Kind::Ints || kind == Attr::Kind::Array;
    case F::Precisions:
      return kind == Attr::Kind::Array;
    case F::Accuracy:
      return kind == Attr::Kind::Accuracy;
    default:
      return true;
  }
}

}  // namespace

Status Importer::check_attributes(const mlir::Op& op) const {
  for (const mlir::NamedAttr& a : op.attrs) {
    if (a.name == "result_accuracy" && a.value && a.value->kind == Attr::Kind::Accuracy)
      if (const char* wrong = wrong_accuracy(*a.value)) return fail(op, std::string("result_accuracy ") + wrong);
    const mlir::AttrRule* rule = mlir::find_attr_rule(a.name);
    if (!rule || !a.value || !mlir::is_own_attribute(op.name, a.name) ||
        fits_form(*rule, *a.value, mlir::find_attr_record(op.name, a.name)))
      continue;
    return fail(
        op, "attribute " + std::string(a.name) + " is " + mlir::attr_to_string(a.value) + ", which is of another kind");
  }
  return {};
}

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

Expected<Dims> Importer::precisions(const mlir::Op& op) {
  static constexpr std::string_view kWords[] = {"DEFAULT", "HIGH", "HIGHEST"};
  const AttrRef attr = op.attr("precision_config");
  if (!attr) return Dims();
  if (attr->kind != Attr::Kind::Array || attr->items.size() > 2)
    return fail(op, "precision_config holds a precision for each of two operands");
  std::vector<int64_t> values;
  bool all_default = true;
  for (AttrRef item : attr->items) {
    const std::string_view wanted = item && item->kind == Attr::Kind::Enum ? item->text : std::string_view();
    const auto* const found = std::find(std::begin(kWords), std::end(kWords), wanted);
    if (found == std::end(kWords)) return fail(op, "there is no precision " + std::string(wanted));
    values.push_back(found - kWords);
    all_default &= values.back() == 0;
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
    // An empty list of groups would mean all participants, which is a different program, so this is an error.
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

/// Returns the field of a dictionary; null if there is none.
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
    alias.line = root.line;
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
  return dense.data ? dense.data->reshaped(shape) : Literal::from_bytes(shape, dense.bytes.data());
}

namespace {

/// True if the shape has a layout that names each dimension once, and no tiles.
bool is_order_of_dimensions(const Shape& shape) {
  const Layout* layout = shape.layout();
  if (!layout || !layout->tiles.empty()) return false;
  std::vector<int64_t> order = layout->minor_to_major;
  std::sort(order.begin(), order.end());
  for (size_t d = 0; d < order.size(); ++d)
    if (order[d] != static_cast<int64_t>(d)) return false;
  return order.size() == static_cast<size_t>(shape.rank());
}

/// Returns the layout that the program requests for a value by a custom call with a layout constraint; empty if there
/// is none.
std::string constrained_layout(const mlir::Value* value) {
  while (value && value->op) {
    const mlir::Op& op = *value->op;
    const mlir::AttrRef target = op.name == "stablehlo.custom_call" ? op.attr("call_target_name") : nullptr;
    const bool passes_on = op.name == "sdy.sharding_constraint" || (target && target->text == "Sharding");
    if (target && target->text == "LayoutConstraint") {
      const mlir::AttrRef list = op.attr("result_layouts");
      bool splat = false;
      if (!list || list->items.size() != 1 || !list->items[0]) return {};
      const auto order = literal_of(*list->items[0], &splat);
      if (!order.ok()) return {};
      std::string text;
      for (int64_t i = 0; i < element_count(list->items[0]->type); ++i)
        text += (text.empty() ? "{" : ",") + std::to_string(order->as_int(splat ? 0 : i));
      return text.empty() ? text : text + "}";
    }
    if (!passes_on || op.operands.empty()) return {};
    value = op.operands[0];
  }
  return {};
}

}  // namespace

/// Reads the layouts of parameters and results that the frontend requests for the entry function.
Status Importer::read_entry_layouts(const mlir::Op& function) {
  std::vector<Shape> parameters, results;
  const mlir::Block* body = function.body();
  const std::span<mlir::Value* const> returned = body && !body->ops.empty()
                                                     ? std::span<mlir::Value* const>(body->ops.back()->operands)
                                                     : std::span<mlir::Value* const>();
  bool any = false;
  const auto read = [&](std::string_view field, std::vector<Shape>& shapes) -> Status {
    const mlir::AttrRef list = function.attr(field);
    if (!list || list->kind != mlir::Attr::Kind::Array) return {};
    for (size_t i = 0; i < std::min(list->items.size(), shapes.size()); ++i) {
      if (!list->items[i]) continue;
      for (const mlir::NamedAttr& a : list->items[i]->fields) {
        if (a.name != "mhlo.layout_mode" || !a.value) continue;
        std::string text(a.value->text);
        if (text == "auto" && &shapes == &results && i < returned.size()) text = constrained_layout(returned[i]);
        if (!text.starts_with('{') || (text == "{}" && shapes[i].rank() == 0)) continue;
        const auto with = parse_shape(shapes[i].to_string() + text);
        if (!with.ok() || !is_order_of_dimensions(*with))
          return fail(function,
                      "mhlo.layout_mode is no order of the dimensions of " + shapes[i].to_string() + ": " + text);
        shapes[i] = *with;
        any = true;
      }
    }
    return {};
  };
  for (InstrId id : module_.entry_computation().parameters) parameters.push_back(shape_of(id).without_layout());
  const Shape result = shape_of(module_.entry_computation().root).without_layout();
  if (result.is_tuple())
    results = {result.elements().begin(), result.elements().end()};
  else
    results.push_back(result);
  COLLET_TRY(read("arg_attrs", parameters));
  COLLET_TRY(read("res_attrs", results));
  if (!any) return {};
  module_.header().has_entry_layout = true;
  module_.header().entry_parameters = std::move(parameters);
  module_.header().entry_result = result.is_tuple() ? Shape::tuple(results) : results[0];
  return {};
}

}  // namespace collet::hlo
