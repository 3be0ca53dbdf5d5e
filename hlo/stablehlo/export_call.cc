// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/stablehlo/exporter.h"
#include "hlo/stablehlo/op_schemas.h"
#include "hlo/stablehlo/text.h"

// Exports calls: of functions, of composites, and custom calls, of which only a name is known.

namespace collet::hlo {
namespace {

using mlir::Attr;
using mlir::AttrRef;
using mlir::TypeRef;
using mlir::Value;

AttrRef symbol_attr(Exporter& e, std::string_view name) {
  Attr* out = e.program().make_attr(Attr::Kind::Symbol);
  out->text = name;
  return out;
}

/// Parses an attribute that HLO keeps as MLIR text; null if the text is not a dictionary.
AttrRef read_dictionary(Exporter& e, std::string_view text) {
  if (!text.starts_with('{')) return nullptr;
  auto read = mlir::read_attribute(text, e.program());
  return read.ok() && (*read)->kind == Attr::Kind::Dict ? *read : nullptr;
}

std::string_view frontend_value(const Instruction& instr, std::string_view name) {
  if (instr.extras)
    for (const FrontendAttribute& a : instr.extras->frontend_attributes)
      if (a.name == name) return a.value;
  return {};
}

Expected<ExportNode> composite(Exporter& e, ExportScope& scope, const Instruction& instr) {
  const auto& attrs = instr.as<CallAttrs>();
  COLLET_ASSIGN(std::string_view callee, e.function(instr.called[0]));
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.composite", instr));
  e.set_text(op, "name", attrs.name.empty() ? frontend_value(instr, "composite.name") : attrs.name);
  std::string_view fields = attrs.attributes;
  if (fields.empty()) fields = frontend_value(instr, "composite.attributes");
  if (!fields.empty() && fields != "{}") {
    AttrRef dictionary = read_dictionary(e, fields);
    if (!dictionary) return e.fail(instr, "its composite attributes are no dictionary of MLIR's");
    e.set(op, "composite_attributes", dictionary);
  }
  e.set(op, "decomposition", symbol_attr(e, callee));
  if (attrs.version) e.set_int(op, "version", attrs.version, Type::S32);
  return Exporter::from_results(*op);
}

Expected<ExportNode> call(Exporter& e, ExportScope& scope, const Instruction& instr) {
  if (instr.as<CallAttrs>().is_composite) return composite(e, scope, instr);
  COLLET_ASSIGN(std::string_view callee, e.function(instr.called[0]));
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "func.call", instr));
  e.set(op, "callee", symbol_attr(e, callee));
  return Exporter::from_results(*op);
}

std::string_view config_of(const Instruction& instr) {
  const std::string_view config = instr.as<CustomCallAttrs>().config;
  return config.empty() && instr.extras ? instr.extras->backend_config : config;
}

/// Exports a custom call that stands for an op that the importer kept under its own name.
Expected<ExportNode> kept_op(Exporter& e, ExportScope& scope, const Instruction& instr, const Attr& fields) {
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, instr.as<CustomCallAttrs>().target, instr));
  op->attrs.assign(fields.fields.begin(), fields.fields.end());
  return Exporter::from_results(*op);
}

Status refuse_lost_attributes(Exporter& e, const Instruction& instr, const CustomCallAttrs& attrs) {
  const auto lost = [&](std::string_view name) { return e.fail(instr, "calls have no " + std::string(name)); };
  if (attrs.window.rank() > 0) return lost("window");
  if (!attrs.labels.text.empty() || attrs.labels.input_batch >= 0) return lost("dim_labels");
  if (attrs.literal) return lost("literal");
  if (attrs.feature_groups > 1) return lost("feature_group_count");
  if (attrs.batch_groups > 1) return lost("batch_group_count");
  return {};
}

bool contains_buffer(const Shape& shape) {
  if (shape.is_tuple()) return std::any_of(shape.elements().begin(), shape.elements().end(), contains_buffer);
  return shape.is_buffer();
}

void set_aliases(Exporter& e, mlir::Op* op, List<const AliasEntry> aliasing) {
  std::vector<AttrRef> items;
  for (const AliasEntry& entry : aliasing) {
    std::vector<int64_t> numbers{static_cast<int64_t>(entry.output_index.size())};
    numbers.insert(numbers.end(), entry.output_index.begin(), entry.output_index.end());
    numbers.push_back(entry.operand);
    numbers.insert(numbers.end(), entry.operand_index.begin(), entry.operand_index.end());
    Attr* item = e.program().make_attr(Attr::Kind::Alias);
    item->ints = e.program().arena().list(numbers);
    items.push_back(item);
  }
  if (items.empty()) return;
  Attr* list = e.program().make_attr(Attr::Kind::Array);
  list->items = e.program().arena().list(items);
  e.set(op, "output_operand_aliases", list);
}

/// Writes the layouts of operands and results, if the call states them: orders of the dimensions.
Status set_layouts(Exporter& e, mlir::Op* op, const Instruction& instr) {
  const auto& attrs = instr.as<CustomCallAttrs>();
  if (!attrs.constrains_layouts) return {};
  mlir::Program& program = e.program();
  const auto set = [&](std::string_view name, std::span<const Shape> shapes) {
    std::vector<AttrRef> items;
    for (const Shape& shape : shapes) {
      std::vector<int64_t> order;
      for (int d = shape.is_array() ? shape.rank() : 0; d-- > 0;) order.push_back(d);
      if (shape.layout()) order = shape.layout()->minor_to_major;
      const auto rank = static_cast<int64_t>(order.size());
      Attr* item = program.make_attr(Attr::Kind::Dense);
      item->type = program.tensor(program.make_type(mlir::Type::Kind::Index), {&rank, 1});
      program.set_bytes(item, {reinterpret_cast<const char*>(order.data()), order.size() * sizeof(int64_t)});
      items.push_back(item);
    }
    Attr* list = program.make_attr(Attr::Kind::Array);
    list->items = program.arena().list(items);
    e.set(op, name, list);
  };
  std::vector<Shape> operands, results{instr.shape};
  for (const Shape* shape : attrs.operand_layouts) operands.push_back(*shape);
  if (instr.shape.is_tuple()) results.assign(instr.shape.elements().begin(), instr.shape.elements().end());
  for (const auto* list : {&operands, &results})
    if (std::any_of(list->begin(), list->end(), [](const Shape& shape) { return shape.is_tuple(); }))
      return e.fail(instr, "it has the layouts of tuples");
  set("operand_layouts", operands);
  set("result_layouts", results);
  return {};
}

Status set_config(Exporter& e, mlir::Op* op, const Instruction& instr) {
  const std::string_view config = config_of(instr);
  const auto& attrs = instr.as<CustomCallAttrs>();
  if (attrs.api_version != ApiVersion::TYPED_FFI) {
    if (!config.empty()) e.set_text(op, "backend_config", config);
    return {};
  }
  if (config.empty()) return {};
  AttrRef dictionary = read_dictionary(e, config);
  if (!dictionary) return e.fail(instr, "the backend_config of a typed call must be a dictionary of MLIR's");
  e.set(op, "backend_config", dictionary);
  return {};
}

Expected<ExportNode> custom_call(Exporter& e, ExportScope& scope, const Instruction& instr) {
  const auto& attrs = instr.as<CustomCallAttrs>();
  if (attrs.target.starts_with("stablehlo.") && mlir::find_schema_for(attrs.target, mlir::kNewestVhlo))
    if (AttrRef fields = read_dictionary(e, config_of(instr))) return kept_op(e, scope, instr, *fields);
  COLLET_TRY(refuse_lost_attributes(e, instr, attrs));
  std::vector<AttrRef> called;
  for (CompId computation : instr.called) {
    COLLET_ASSIGN(std::string_view name, e.function(computation));
    called.push_back(symbol_attr(e, name));
  }
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.custom_call", instr));
  e.set_text(op, "call_target_name", attrs.target);
  e.set_flag(op, "has_side_effect", attrs.has_side_effect);
  COLLET_TRY(set_layouts(e, op, instr));
  COLLET_TRY(set_config(e, op, instr));
  static constexpr std::string_view kVersions[] = {"API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
                                                   "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"};
  if (attrs.api_version != ApiVersion::ORIGINAL)
    e.set_enum(op, "api_version", kVersions[static_cast<size_t>(attrs.api_version) % 4]);
  if (!called.empty()) {
    Attr* list = e.program().make_attr(Attr::Kind::Array);
    list->items = e.program().arena().list(called);
    e.set(op, "called_computations", list);
  }
  if (!attrs.aliasing.empty() && contains_buffer(instr.shape))
    return e.fail(instr, "a buffer is an alias of an operand");
  set_aliases(e, op, attrs.aliasing);
  return Exporter::from_results(*op);
}

}  // namespace

std::span<const ExportRow> export_call_rows() {
  static constexpr ExportRow kRows[] = {{Op::CALL, call}, {Op::CUSTOM_CALL, custom_call}};
  return kRows;
}

}  // namespace collet::hlo
