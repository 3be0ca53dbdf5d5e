// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>

#include "hlo/ir/metadata.h"
#include "hlo/stablehlo/importer.h"
#include "hlo/stablehlo/regular_ops.h"
#include "hlo/stablehlo/write.h"

// Imports ops whose operands, their order, and result are the same in HLO.

namespace collet::hlo {
using mlir::Attr;

Status translate_regular(Importer& importer, ImportScope& scope, const mlir::Op& op, Op code) {
  COLLET_ASSIGN(std::vector<InstrId> operands, importer.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, importer.result_shape(op));
  const InstrId id = importer.emit(scope, code, shape, operands);
  const mlir::AttrRef accuracy = op.attr("result_accuracy");
  if (accuracy && accuracy->kind == Attr::Kind::Accuracy && accuracy->text != "DEFAULT") {
    Module& m = importer.module();
    ResultAccuracy out;
    out.is_mode = accuracy->text != "TOLERANCE";
    out.mode = "highest";
    if (accuracy->floats.size() == 2) {
      out.atol = accuracy->floats[0];
      out.rtol = accuracy->floats[1];
    }
    out.ulps = accuracy->integer;
    Extras extras;
    extras.result_accuracy = m.arena().make<ResultAccuracy>(out);
    m[id].extras = m.arena().make<Extras>(extras);
  }
  return importer.define(scope, op, id);
}

ImportFunction find_import(std::string_view op_name) {
  static const auto* const map = [] {
    auto* out = new std::unordered_map<std::string_view, ImportFunction>;
    for (auto rows : {import_structured_rows(), import_control_rows(), import_dynamic_rows(), import_chlo_rows(),
                      import_chlo_math_rows(), import_collective_rows(), import_sharding_rows(), import_special_rows()})
      for (const ImportRow& row : rows) out->emplace(row.name, row.function);
    return out;
  }();
  const auto it = map->find(op_name);
  return it == map->end() ? nullptr : it->second;
}

std::vector<FrontendAttribute> Importer::frontend_list(mlir::AttrRef dictionary) {
  std::vector<FrontendAttribute> all;
  if (!dictionary || dictionary->kind != Attr::Kind::Dict) return all;
  Arena& arena = module_.arena();
  for (const mlir::NamedAttr& field : dictionary->fields) {
    if (!field.value) continue;
    const std::string value =
        field.value->kind == Attr::Kind::String ? std::string(field.value->text) : mlir::attr_to_string(field.value);
    all.push_back({arena.string(field.name), arena.string(value), is_dictionary(value)});
  }
  return all;
}

void Importer::add_frontend_attributes(InstrId id, mlir::AttrRef dictionary) {
  const std::vector<FrontendAttribute> added = frontend_list(dictionary);
  if (added.empty()) return;
  Arena& arena = module_.arena();
  Extras extras = module_[id].extras ? *module_[id].extras : Extras();
  std::vector<FrontendAttribute> all(extras.frontend_attributes.begin(), extras.frontend_attributes.end());
  all.insert(all.end(), added.begin(), added.end());
  extras.frontend_attributes = arena.list(all);
  module_[id].extras = arena.make<Extras>(extras);
}

Status Importer::check_results(ImportScope& scope, const mlir::Op& op) const {
  for (const mlir::Value* v : op.results) {
    const auto it = scope.values.find(v);
    if (it == scope.values.end()) return fail(op, "has a result that it does not compute");
    const auto declared = shape(v->type);
    const Shape& computed = shape_of(it->second);
    if (declared.ok() && !declared->compatible(computed))
      return fail(op, "has a result of type " + mlir::to_string(v->type) + ", but it computes " + computed.to_string());
  }
  return {};
}

Status Importer::translate(ImportScope& scope, const mlir::Op& op) {
  if (scope.values.contains(op.results.empty() ? nullptr : op.results[0])) return {};
  const size_t before = module_[scope.computation].order.size();
  COLLET_TRY(translate_plain(scope, op));
  COLLET_TRY(check_results(scope, op));
  return add_annotations(scope, op, before);
}

Status Importer::add_annotations(ImportScope& scope, const mlir::Op& op, size_t before) {
  const mlir::AttrRef frontend = op.attr("mhlo.frontend_attributes"), sharding = op.attr("mhlo.sharding");
  if ((!frontend && !sharding && !op.attr("sdy.sharding")) || module_[scope.computation].order.size() == before)
    return {};
  // Finds the instruction that the op became. If it has several results, they were taken apart by get-tuple-element;
  // so was the only one of an op whose instruction has other results too: a loop has the values that it captures.
  InstrId id = module_[scope.computation].order.back();
  if (op.results.size() == 1) {
    id = scope.values.at(op.results[0]);
    const bool has_more = op.name == "stablehlo.while" || op.name == "stablehlo.recv" || op.name == "stablehlo.infeed";
    if (has_more && module_[id].op == Op::GET_TUPLE_ELEMENT) id = module_[id].operand(0);
  } else if (module_[id].op == Op::GET_TUPLE_ELEMENT && op.results.size() > 1) {
    id = module_[id].operands[0];
  }
  if (module_[id].op == Op::PARAMETER) return {};
  add_frontend_attributes(id, frontend);
  // These attributes name source and target, and both halves of a transfer need them.
  const Op half = module_[id].op;
  if (half == Op::SEND_DONE || half == Op::RECV_DONE) add_frontend_attributes(module_[id].operand(0), frontend);
  add_shardings_per_value(op, id);
  return add_text_sharding(op, id, sharding);
}

namespace {

/// True if the op takes and returns arrays only. Other ops may have tuples, tokens and buffers.
bool is_of_arrays(std::string_view name) {
  if (!name.starts_with("stablehlo.") && !name.starts_with("chlo.")) return false;
  for (std::string_view other :
       {"stablehlo.after_all", "stablehlo.async_done", "stablehlo.async_start", "stablehlo.case", "stablehlo.composite",
        "stablehlo.create_token", "stablehlo.custom_call", "stablehlo.get_tuple_element", "stablehlo.if",
        "stablehlo.infeed", "stablehlo.optimization_barrier", "stablehlo.outfeed", "stablehlo.recv", "stablehlo.return",
        "stablehlo.send", "stablehlo.tuple", "stablehlo.while"})
    if (name == other) return false;
  return true;
}

/// True for ops whose result sizes only their result type states: the sizes must be static, or have a bound.
bool states_sizes(std::string_view name) {
  return name == "stablehlo.broadcast_in_dim" || name == "stablehlo.iota" || name == "stablehlo.reshape";
}

bool is_array(const mlir::Value* value) {
  const auto kind = value->type ? value->type->kind : mlir::Type::Kind::None;
  return kind == mlir::Type::Kind::Tensor || kind == mlir::Type::Kind::Index;
}

}  // namespace

Status Importer::translate_plain(ImportScope& scope, const mlir::Op& op) {
  COLLET_TRY(check_attributes(op));
  if (is_of_arrays(op.name))
    for (const auto* list : {&op.operands, &op.results})
      for (const mlir::Value* value : *list)
        if (!is_array(value)) return fail(op, "is of arrays, not of " + mlir::to_string(value->type));
  if (states_sizes(op.name)) {
    COLLET_ASSIGN(const Shape shape, result_shape(op));
    if (shape.has_unbounded()) return fail(op, "has a result of unknown size, " + shape.to_string());
  }
  const ImportFunction special = find_import(op.name);
  if (has_quantized(op)) {
    if (Status done = translate_quantized(*this, scope, op); done.code() != Code::NotFound) return done;
  }
  if (special) return special(*this, scope, op);
  if (const Op code = regular_op(op.name); code != Op::INVALID) return translate_regular(*this, scope, op, code);
  Status unknown = fail(op, "is not an op that can be translated");
  return unimplemented(unknown.message());
}

}  // namespace collet::hlo
