// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/op_table.h"

#include <collet/types.h>
#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "hlo/base/json.h"
#include "hlo/ir/attributes.h"
#include "hlo/ir/ops.h"
#include "hlo/ops/op_docs.h"

namespace collet::tool {
namespace {

using namespace collet::hlo;

// The columns of ops.def that the IR stores as numbers, with their spelling there.
struct Row {
  int id;
  std::string_view name, text, op_class, family, record, regions, types;
  int min, max, traits, ulp, since;
};

constexpr Row kRows[] = {
#define COLLET_OP(id, NAME, text, CLASS, family, min, max, Record, REGIONS, TYPES, traits, ulp, since) \
  {id, #NAME, text, #CLASS, #family, #Record, #REGIONS, #TYPES, min, max, traits, ulp, since},
#include <collet/ops.def>
};

std::string arity(const Row& row) {
  if (row.max < 0) return fmt::format("{}+", row.min);
  return row.min == row.max ? fmt::format("{}", row.min) : fmt::format("{}-{}", row.min, row.max);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c == '_' ? ' ' : static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return out;
}

std::string error_bound(const Row& row) {
  return row.ulp < 0 ? "by size" : row.ulp == 0 ? "exact" : fmt::format("{} ULP", row.ulp);
}

std::vector<std::string_view> trait_names(int traits) {
  constexpr std::pair<int, std::string_view> kNames[] = {
      {COLLET_OP_COMMUTES, "commutes"}, {COLLET_OP_BINARY, "binary"},           {COLLET_OP_ELEMENTWISE, "elementwise"},
      {COLLET_OP_MOVES, "moves"},       {COLLET_OP_SIDE_EFFECT, "side effect"}, {COLLET_OP_SHAPED, "shaped"},
      {COLLET_OP_INDEXED, "indexed"},
  };
  std::vector<std::string_view> names;
  for (const auto& [bit, name] : kNames) {
    if (traits & bit) names.push_back(name);
  }
  return names;
}

std::string as_text() {
  std::string out =
      fmt::format("{:<26} {:<14} {:<13} {:<8} {:<14} {}\n", "op", "class", "family", "operands", "types", "error");
  for (const Row& row : kRows) {
    out += fmt::format("{:<26} {:<14} {:<13} {:<8} {:<14} {}\n", row.text, lower(row.op_class), row.family, arity(row),
                       lower(row.types), error_bound(row));
  }
  return out;
}

std::string as_json() {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("opset", COLLET_OPSET).key("ops").begin_array();
  for (const Row& row : kRows) {
    json.begin_object().field("id", row.id).field("op", row.text).field("class", row.op_class);
    json.field("family", row.family).field("min_operands", row.min).field("max_operands", row.max);
    json.field("record", row.record).field("regions", row.regions).field("types", row.types);
    json.key("traits").begin_array();
    for (const std::string_view name : trait_names(row.traits)) json.value(name);
    json.end_array().key("attributes").begin_array();
    for (const FieldInfo& field : record_fields(op_info(static_cast<Op>(row.id)).record)) {
      if (field.text.empty()) continue;
      json.begin_object().field("name", field.text).field("required", field.required).end_object();
    }
    json.end_array().field("ulp", row.ulp).field("since", row.since).end_object();
  }
  json.end_array().end_object();
  return out += '\n';
}

std::string as_c() {
  std::string out = "#include <collet/types.h>\n\n/* Opcodes of opset " + std::to_string(COLLET_OPSET) + ". */\n";
  for (const Row& row : kRows) {
    out += fmt::format("case COLLET_OP_{}: /* {}: {}, {} operands */\n", row.name, row.text, lower(row.op_class),
                       arity(row));
  }
  return out;
}

}  // namespace

std::string op_table(const std::string& format) {
  if (format == "md") return hlo::op_reference_markdown();
  if (format == "json") return as_json();
  return format == "c" ? as_c() : as_text();
}

}  // namespace collet::tool
