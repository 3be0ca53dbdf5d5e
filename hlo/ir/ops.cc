// SPDX-License-Identifier: Apache-2.0
#include "hlo/ir/ops.h"

#include <array>
#include <unordered_map>

namespace collet::hlo {
namespace {

constexpr std::array<OpInfo, COLLET_OP_LIMIT> make_table() {
  std::array<OpInfo, COLLET_OP_LIMIT> table{};
#define COLLET_OP(id, NAME, text, CLASS, family, min, max, Record_, REGIONS, TYPES, traits, ulp, since)          \
  table[id] = {                                                                                                  \
      text, OpClass::CLASS, Family::family, min, max, Record::Record_, Regions::REGIONS, TypeSet::TYPES, traits, \
      ulp,  since};
#include <collet/ops.def>
  return table;
}
constexpr auto kOps = make_table();

constexpr bool ids_have_no_gap() {
  for (int i = 1; i <= kLastOp; ++i)
    if (kOps[i].text.empty()) return false;
  return kOps[kLastOp + 1].text.empty();
}
static_assert(ids_have_no_gap());

constexpr bool names_are_unique() {
  for (int i = 1; i <= kLastOp; ++i)
    for (int j = 1; j < i; ++j)
      if (kOps[i].text == kOps[j].text) return false;
  return true;
}
static_assert(names_are_unique());

}  // namespace

const OpInfo& op_info(Op op) {
  return kOps[static_cast<size_t>(op)];
}

std::optional<Op> op_from_text(std::string_view text) {
  static const auto* const map = [] {
    auto* m = new std::unordered_map<std::string_view, Op>;
    for (int i = 1; i <= kLastOp; ++i) m->emplace(kOps[i].text, static_cast<Op>(i));
    return m;
  }();
  auto it = map->find(text);
  if (it == map->end()) return std::nullopt;
  return it->second;
}

}  // namespace collet::hlo
