// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/portable_ops.h"

#include "hlo/stablehlo/op_schemas.h"
#include "hlo/stablehlo/print_attributes.h"

namespace collet::hlo::mlir {
namespace {

/// Returns chlo.ragged_dot in the form of artifacts, which store its attributes as CHLO's text.
const Op* ragged_dot_form(const Op& op, Program& scratch) {
  Op* out = scratch.make_op(op.name);
  out->operands = op.operands;
  out->results = op.results;
  out->regions = op.regions;
  const auto raw = [&](const std::string& text) {
    Attr* a = scratch.make_attr(Attr::Kind::Raw);
    a->text = scratch.arena().string(text);
    return a;
  };
  std::string numbers;
  for (const NamedAttr& a : op.attrs) {
    if (a.name == "precision_config" && a.value && a.value->kind == Attr::Kind::Array) {
      std::vector<AttrRef> items;
      for (AttrRef item : a.value->items)
        items.push_back(raw("#chlo<precision " + std::string(item ? item->text : "DEFAULT") + ">"));
      Attr* list = scratch.make_attr(Attr::Kind::Array);
      list->items = scratch.arena().list(items);
      out->attrs.push_back({a.name, list});
    } else if (a.value && a.value->kind == Attr::Kind::Ints && is_own_attribute(op.name, a.name)) {
      if (a.value->ints.empty()) continue;
      numbers += (numbers.empty() ? "" : ", ") + std::string(a.name) + " = " + ints_text(a.value->ints);
    } else {
      out->attrs.push_back(a);
    }
  }
  out->attrs.push_back({"ragged_dot_dimension_numbers", raw("#chlo.ragged_dot<" + numbers + ">")});
  return out;
}

}  // namespace

const Op* portable_form(const Op& op, Program& scratch) {
  if (op.name == "chlo.ragged_dot") return ragged_dot_form(op, scratch);
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"chlo.acos", "mhlo.acos"},   {"chlo.acosh", "mhlo.acosh"}, {"chlo.asin", "mhlo.asin"},
      {"chlo.asinh", "mhlo.asinh"}, {"chlo.atanh", "mhlo.atanh"}, {"chlo.cosh", "mhlo.cosh"},
      {"chlo.erf", "mhlo.erf"},     {"chlo.sinh", "mhlo.sinh"},   {"chlo.top_k", "mhlo.topk"}};
  for (const auto& [name, target] : kNames) {
    if (op.name != name) continue;
    Op* out = scratch.make_op("stablehlo.custom_call");
    out->operands = op.operands;
    out->results = op.results;
    const auto text = [&](std::string_view value) {
      Attr* a = scratch.make_attr(Attr::Kind::String);
      a->text = value;
      return a;
    };
    Attr* version = scratch.make_attr(Attr::Kind::Int);
    version->integer = 1;
    version->type = scratch.scalar(hlo::Type::S64);
    Attr* attributes = scratch.make_attr(Attr::Kind::Dict);
    if (AttrRef k = op.attr("k")) {
      Attr* largest = scratch.make_attr(Attr::Kind::Bool);
      largest->integer = 1;
      attributes->fields = scratch.arena().list(std::vector<NamedAttr>{{"k", k}, {"largest", largest}});
    }
    out->attrs = {{"call_target_name", text(target)}, {"mhlo.attributes", attributes}, {"mhlo.version", version}};
    for (const NamedAttr& a : op.attrs)
      if (!is_own_attribute(op.name, a.name)) out->attrs.push_back(a);
    return out;
  }
  return nullptr;
}

}  // namespace collet::hlo::mlir
