// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "hlo/ir/metadata.h"
#include "hlo/ir/shardy.h"
#include "hlo/stablehlo/importer.h"
#include "hlo/text/parser.h"

// Imports Shardy's shardings: those of arguments and results become HLO shardings, and manual computations become
// computations that run on each device's part.

namespace collet::hlo {
namespace {

FrontendAttribute named_text(Importer& m, const mlir::Op& op, std::string_view field) {
  const mlir::AttrRef a = op.attr(field);
  Arena& arena = m.module().arena();
  return {arena.string("xla.sdy." + std::string(field)), arena.string(a ? a->text : std::string_view()), false};
}

/// Emits the custom call that converts whole values into the parts of devices, or back.
InstrId reshaping_call(Importer& m, ImportScope& scope, const mlir::Op& op, std::string_view target,
                       std::string_view field, const Shape& shape, std::span<const InstrId> operands) {
  Arena& arena = m.module().arena();
  auto* attrs = m.module().make<CustomCallAttrs>();
  attrs->target = arena.string(target);
  attrs->has_side_effect = true;
  const InstrId id = m.emit(scope, Op::CUSTOM_CALL, shape, operands, attrs);
  std::vector<FrontendAttribute> frontend{named_text(m, op, field), named_text(m, op, "manual_axes")};
  std::sort(frontend.begin(), frontend.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  Extras extras;
  extras.frontend_attributes = arena.list(frontend);
  m.module()[id].extras = arena.make<Extras>(extras);
  return id;
}

Status manual_computation(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  COLLET_ASSIGN(CompId body, m.region(scope, op, 0));
  const std::vector<InstrId> parameters = m.module()[body].parameters;
  if (parameters.size() != operands.size()) return m.fail(op, "has not as many operands as arguments");
  std::vector<InstrId> parts;
  if (!operands.empty()) {
    std::vector<Shape> local;
    for (InstrId id : parameters) local.push_back(m.shape_of(id));
    const bool alone = local.size() == 1;
    const Shape all = alone ? local[0] : Shape::tuple(local);
    const InstrId entered = reshaping_call(m, scope, op, "xla.sdy.GlobalToLocalShape", "in_shardings", all, operands);
    for (size_t i = 0; i < local.size(); ++i) {
      auto* index = m.module().make<TupleIndexAttrs>();
      index->index = static_cast<int64_t>(i);
      parts.push_back(alone ? entered : m.emit(scope, Op::GET_TUPLE_ELEMENT, local[i], {entered}, index));
    }
  }
  const Shape local_result = m.shape_of(m.module()[body].root);
  const InstrId called =
      m.emit(scope, Op::CALL, local_result, parts, m.module().make<CallAttrs>(), std::span(&body, 1));
  const bool one_tuple = op.results.size() == 1 && shape.is_tuple();
  const size_t count = local_result.is_tuple() && !one_tuple ? local_result.elements().size() : 1;
  if (count != op.results.size()) return m.fail(op, "does not return as many values as it has results");
  if (op.results.empty()) return {};  // kept for its effects only
  std::vector<InstrId> returned;
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (op.results.size() == 1) {
      returned.push_back(called);
      break;
    }
    auto* index = m.module().make<TupleIndexAttrs>();
    index->index = static_cast<int64_t>(i);
    returned.push_back(m.emit(scope, Op::GET_TUPLE_ELEMENT, local_result.element(i), {called}, index));
  }
  return m.define(scope, op,
                  reshaping_call(m, scope, op, "xla.sdy.LocalToGlobalShape", "out_shardings", shape, returned));
}

/// Emits a sharding constraint on `value`; without a partitioner it is the value itself.
InstrId constrained(Importer& m, ImportScope& scope, InstrId value, mlir::AttrRef sharding) {
  auto* attrs = m.module().make<CustomCallAttrs>();
  attrs->target = m.module().arena().string("Sharding");
  const InstrId id = m.emit(scope, Op::CUSTOM_CALL, m.shape_of(value), {value}, attrs);
  m.add_sharding(id, sharding);
  return id;
}

Status sharding_constraint(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  if (operands.size() != 1) return m.fail(op, "takes one operand");
  return m.define(scope, op, constrained(m, scope, operands[0], op.attr("sharding")));
}

}  // namespace

/// Returns the HLO sharding; nullopt if HLO cannot express it, or it does not fit the shape.
std::optional<Sharding> Importer::read_sharding(const NamedSharding& named, const Shape& shape) const {
  std::optional<NamedMesh> mesh = named.inline_mesh;
  if (!mesh)
    for (const mlir::Op* op : program_.module->body()->ops)
      if (op->name == "sdy.mesh" && text(*op, "sym_name") == named.mesh && op->attr("mesh"))
        mesh = parse_mesh(op->attr("mesh")->text);
  if (!mesh || !named.unreduced.empty()) return std::nullopt;
  const auto dimensions = resolve_axes(named, *mesh);
  if (!dimensions) return std::nullopt;
  const bool maximal = mesh->axes.empty() && dimensions->empty();
  if (!maximal && shape.is_array() && static_cast<int>(dimensions->size()) != shape.rank()) return std::nullopt;
  return to_hlo_sharding(*mesh, *dimensions);
}

void Importer::constrain_results(ImportScope& scope, const mlir::Op& function, std::vector<InstrId>& results) {
  const mlir::AttrRef list = function.attr("res_attrs");
  if (!list || list->kind != mlir::Attr::Kind::Array) return;
  for (size_t i = 0; i < std::min(list->items.size(), results.size()); ++i) {
    if (!list->items[i]) continue;
    for (const mlir::NamedAttr& a : list->items[i]->fields)
      if (a.name == "sdy.sharding" && shape_of(results[i]).is_array())
        results[i] = constrained(*this, scope, results[i], a.value);
  }
}

void Importer::set_sharding(InstrId id, Sharding sharding) {
  Extras extras = module_[id].extras ? *module_[id].extras : Extras();
  extras.sharding = module_.keep(std::move(sharding));
  module_[id].extras = module_.arena().make<Extras>(extras);
}

void Importer::add_sharding(InstrId id, mlir::AttrRef attr) {
  if (!attr || attr->kind != mlir::Attr::Kind::Raw || !attr->text.starts_with("#sdy.sharding<")) return;
  Arena& arena = module_.arena();
  Extras extras = module_[id].extras ? *module_[id].extras : Extras();
  std::vector<FrontendAttribute> all(extras.frontend_attributes.begin(), extras.frontend_attributes.end());
  all.push_back({"xla.sdy.sharding", arena.string(attr->text), false});
  extras.frontend_attributes = arena.list(all);
  module_[id].extras = arena.make<Extras>(extras);
  // Shardings that HLO cannot express are kept as text only.
  if (const auto named = parse_named_sharding(attr->text))
    if (auto sharding = read_sharding(*named, shape_of(id))) set_sharding(id, std::move(*sharding));
}

void Importer::add_shardings_per_value(const mlir::Op& op, InstrId id) {
  const mlir::AttrRef attr = op.attr("sdy.sharding");
  if (!attr || attr->kind != mlir::Attr::Kind::Raw) return;
  const auto list = parse_sharding_list(attr->text);
  if (!list || list->size() != std::max<size_t>(op.results.size(), 1)) return;
  if (op.results.empty()) {  // the sharding says where the op runs, though it has no results
    if (auto sharding = read_sharding((*list)[0], shape_of(id))) set_sharding(id, std::move(*sharding));
    return;
  }
  Sharding all;
  all.kind = Sharding::Kind::Tuple;
  for (size_t i = 0; i < op.results.size(); ++i) {
    const auto one = shape(op.results[i]->type);
    if (!one.ok()) return;
    auto sharding = read_sharding((*list)[i], *one);
    if (!sharding) return;
    all.elements.push_back(std::move(*sharding));
  }
  if (op.results.size() == 1) return set_sharding(id, of_state(op, id, std::move(all.elements[0])));
  all = of_state(op, id, std::move(all));
  if (shape_of(id).is_tuple() && shape_of(id).elements().size() == all.elements.size())
    set_sharding(id, std::move(all));
}

Status Importer::add_text_sharding(const mlir::Op& op, InstrId id, mlir::AttrRef attr) {
  if (!attr || attr->kind != mlir::Attr::Kind::String || attr->text.empty()) return {};
  auto sharding = parse_sharding(attr->text);
  if (!sharding.ok()) return fail(op, "mhlo.sharding is no sharding of HLO's: " + std::string(attr->text));
  set_sharding(id, of_state(op, id, std::move(*sharding)));
  return {};
}

Sharding Importer::of_state(const mlir::Op& op, InstrId id, Sharding sharding) const {
  const size_t captured = op.name == "stablehlo.while" ? captures(op).size() : 0;
  if (captured == 0) return sharding;
  if (sharding.kind != Sharding::Kind::Tuple) {
    if (op.results.size() != 1) return sharding;  // one of all values
    Sharding results;
    results.kind = Sharding::Kind::Tuple;
    results.elements.push_back(std::move(sharding));
    sharding = std::move(results);
  }
  const auto add = [&](const auto& self, const Shape& shape, const Sharding* own) -> void {
    if (own && own->kind == Sharding::Kind::Tuple) {
      sharding.elements.insert(sharding.elements.end(), own->elements.begin(), own->elements.end());
    } else if (shape.is_tuple()) {
      for (const Shape& part : shape.elements()) self(self, part, own);
    } else {
      sharding.elements.push_back(own ? *own : Sharding());
    }
  };
  const List<InstrId> state = module_[module_[id].operand(0)].operands;
  for (size_t i = state.size() - captured; i < state.size(); ++i) {
    const Extras* extras = module_[state[i]].extras;
    add(add, shape_of(state[i]), extras ? extras->sharding : nullptr);
  }
  return sharding;
}

/// Adds the stated shardings of the results to the root, if all results have one.
Status Importer::add_result_shardings(const mlir::Op& function) {
  const mlir::AttrRef list = function.attr("res_attrs");
  const InstrId root = module_.entry_computation().root;
  if (!list || list->kind != mlir::Attr::Kind::Array || list->items.empty() || module_[root].op == Op::PARAMETER)
    return {};
  const bool tuple = shape_of(root).is_tuple() && shape_of(root).elements().size() != 1;
  if (list->items.size() != (tuple ? shape_of(root).elements().size() : 1)) return {};
  Sharding all;
  all.kind = Sharding::Kind::Tuple;
  for (mlir::AttrRef item : list->items) {
    const size_t i = all.elements.size();
    const Shape& result = tuple ? shape_of(root).element(i) : shape_of(root);
    std::optional<Sharding> one;
    for (const mlir::NamedAttr& field : item ? item->fields : List<const mlir::NamedAttr>()) {
      if (!field.value) continue;
      if (field.name == "mhlo.sharding" && !field.value->text.empty()) {
        auto parsed = parse_sharding(field.value->text);
        if (!parsed.ok())
          return fail(function, "mhlo.sharding is no sharding of HLO's: " + std::string(field.value->text));
        one = std::move(*parsed);
      } else if (field.name == "sdy.sharding" && field.value->text.starts_with("#sdy.sharding<")) {
        const auto named = parse_named_sharding(field.value->text);
        if (!one && named) one = read_sharding(*named, result);
      }
    }
    if (!one) return {};
    all.elements.push_back(std::move(*one));
  }
  set_sharding(root, tuple ? std::move(all) : std::move(all.elements[0]));
  return {};
}

void Importer::read_meshes() {
  std::string all;
  for (const mlir::Op* op : program_.module->body()->ops)
    if (const mlir::AttrRef mesh = op->attr("mesh"); op->name == "sdy.mesh" && mesh)
      all += (all.empty() ? "" : ", ") + std::string(text(*op, "sym_name")) + " = " + std::string(mesh->text);
  if (all.empty()) return;
  const std::string_view meshes = module_.arena().string("{" + all + "}");
  module_.header().frontend_attributes.push_back({"xla.sdy.meshes", meshes, is_dictionary(meshes)});
}

std::span<const ImportRow> import_sharding_rows() {
  static constexpr ImportRow kRows[] = {{"sdy.manual_computation", manual_computation},
                                        {"sdy.reshard", sharding_constraint},
                                        {"sdy.sharding_constraint", sharding_constraint}};
  return kRows;
}

}  // namespace collet::hlo
