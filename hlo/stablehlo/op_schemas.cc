// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/op_schemas.h"

#include <algorithm>
#include <unordered_map>

namespace collet::hlo::mlir {
namespace {

struct Row {
  std::string_view name;
  uint64_t from, to;
  std::string_view attributes;
};

#define VHLO_VERSION(major, minor, patch) vhlo_version(major, minor, patch)
#define VHLO_CURRENT UINT64_MAX
#define VHLO_OP(name, from, to, attributes) {name, from, to, attributes},
constexpr Row kVhlo[] = {
#include "hlo/stablehlo/vhlo.def"
};

// Ops of other dialects that occur in artifacts; `?` marks an attribute that may be missing.
constexpr Row kOthers[] = {
    {"builtin.module", 0, UINT64_MAX, "sym_name?,sym_visibility?"},
    {"builtin.unrealized_conversion_cast", 0, UINT64_MAX, ""},
    {"func.func", 0, UINT64_MAX, "arg_attrs?,function_type,res_attrs?,sym_name,sym_visibility?"},
    {"func.call", 0, UINT64_MAX, "arg_attrs?,callee,no_inline?,res_attrs?"},
    {"func.return", 0, UINT64_MAX, ""},
    {"chlo.acos", 0, UINT64_MAX, ""},
    {"chlo.acosh", 0, UINT64_MAX, ""},
    {"chlo.asin", 0, UINT64_MAX, ""},
    {"chlo.asinh", 0, UINT64_MAX, ""},
    {"chlo.atan", 0, UINT64_MAX, ""},
    {"chlo.atanh", 0, UINT64_MAX, ""},
    {"chlo.bessel_i1e", 0, UINT64_MAX, ""},
    {"chlo.conj", 0, UINT64_MAX, ""},
    {"chlo.constant", 0, UINT64_MAX, "value"},
    {"chlo.constant_like", 0, UINT64_MAX, "value"},
    {"chlo.cosh", 0, UINT64_MAX, ""},
    {"chlo.digamma", 0, UINT64_MAX, ""},
    {"chlo.erf", 0, UINT64_MAX, ""},
    {"chlo.erf_inv", 0, UINT64_MAX, ""},
    {"chlo.erfc", 0, UINT64_MAX, ""},
    {"chlo.is_inf", 0, UINT64_MAX, ""},
    {"chlo.is_neg_inf", 0, UINT64_MAX, ""},
    {"chlo.is_pos_inf", 0, UINT64_MAX, ""},
    {"chlo.lgamma", 0, UINT64_MAX, ""},
    {"chlo.mulhi", 0, UINT64_MAX, ""},
    {"chlo.next_after", 0, UINT64_MAX, ""},
    {"chlo.polygamma", 0, UINT64_MAX, ""},
    {"chlo.ragged_dot", 0, UINT64_MAX, "precision_config?,ragged_dot_dimension_numbers"},
    {"chlo.sinh", 0, UINT64_MAX, ""},
    {"chlo.square", 0, UINT64_MAX, ""},
    {"chlo.tan", 0, UINT64_MAX, ""},
    {"chlo.top_k", 0, UINT64_MAX, "is_stable?,k"},
    {"chlo.zeta", 0, UINT64_MAX, ""},
    {"sdy.constant", 0, UINT64_MAX, "value"},
    {"sdy.manual_computation", 0, UINT64_MAX, "in_shardings,manual_axes,out_shardings"},
    {"sdy.mesh", 0, UINT64_MAX, "mesh,sym_name"},
    {"sdy.named_computation", 0, UINT64_MAX, "in_shardings?,name,out_shardings?"},
    {"sdy.propagation_barrier", 0, UINT64_MAX, "allowed_direction"},
    {"sdy.reshard", 0, UINT64_MAX, "sharding"},
    {"sdy.return", 0, UINT64_MAX, ""},
    {"sdy.sharding_constraint", 0, UINT64_MAX, "sharding"},
    {"sdy.sharding_group", 0, UINT64_MAX, "group_id"},
};

/// Converts "add_v1" to "stablehlo.add"; functions, calls and returns to their names in text.
std::string normal_name(std::string_view vhlo) {
  std::string_view stem = vhlo.substr(0, vhlo.rfind("_v"));
  if (stem == "func" || stem == "call") return "func." + std::string(stem);
  return "stablehlo." + std::string(stem);
}

OpSchema make_schema(const Row& row, std::string normal) {
  OpSchema out{row.name, std::move(normal), row.from, row.to, {}};
  std::string_view rest = row.attributes;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    std::string_view name = rest.substr(0, comma);
    const bool optional = name.ends_with('?');
    if (optional) name.remove_suffix(1);
    out.properties.push_back({name, optional});
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return out;
}

const std::vector<OpSchema>& schemas() {
  static const auto* const all = [] {
    auto* out = new std::vector<OpSchema>;
    for (const Row& row : kVhlo) out->push_back(make_schema(row, normal_name(row.name)));
    for (const Row& row : kOthers)
      out->push_back(make_schema(
          row, row.name == "func.return" || row.name == "sdy.return" ? "stablehlo.return" : std::string(row.name)));
    return out;
  }();
  return *all;
}

}  // namespace

const OpSchema* find_schema(std::string_view dialect, std::string_view op) {
  static const auto* const map = [] {
    auto* out = new std::unordered_map<std::string_view, const OpSchema*>;
    for (const OpSchema& schema : schemas()) out->emplace(schema.name, &schema);
    return out;
  }();
  // The keys of VHLO's ops have no dialect.
  const auto it = dialect == "vhlo" ? map->find(op) : map->find(std::string(dialect) + "." + std::string(op));
  return it == map->end() ? nullptr : it->second;
}

bool is_own_attribute(std::string_view normal, std::string_view attribute) {
  static const auto* const map = [] {
    auto* out = new std::unordered_map<std::string_view, std::vector<std::string_view>>;
    for (const OpSchema& schema : schemas())
      for (const OpSchema::Property& property : schema.properties) (*out)[schema.normal].push_back(property.name);
    // The fields of structured attributes, which text has under other names.
    (*out)["chlo.ragged_dot"] = {"lhs_batching_dimensions",
                                 "rhs_batching_dimensions",
                                 "lhs_contracting_dimensions",
                                 "rhs_contracting_dimensions",
                                 "lhs_ragged_dimensions",
                                 "rhs_group_dimensions",
                                 "precision_config"};
    return out;
  }();
  const auto it = map->find(normal);
  return it != map->end() && std::find(it->second.begin(), it->second.end(), attribute) != it->second.end();
}

const OpSchema* find_schema_for(std::string_view normal, uint64_t version) {
  static const auto* const map = [] {
    auto* out = new std::unordered_map<std::string_view, std::vector<const OpSchema*>>;
    for (const OpSchema& schema : schemas()) (*out)[schema.normal].push_back(&schema);
    return out;
  }();
  const auto it = map->find(normal);
  if (it == map->end()) return nullptr;
  for (const OpSchema* schema : it->second)
    if (schema->from <= version && version <= schema->to) return schema;
  return nullptr;
}

}  // namespace collet::hlo::mlir
