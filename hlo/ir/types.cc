// SPDX-License-Identifier: Apache-2.0
#include "hlo/ir/types.h"

#include <array>

namespace collet::hlo {
namespace {

constexpr std::array<TypeInfo, COLLET_TYPE_LIMIT> make_table() {
  std::array<TypeInfo, COLLET_TYPE_LIMIT> table{};
#define COLLET_TYPE(NAME, text, value, bits, kind, since) \
  table[value] = {text, bits, static_cast<Kind>(COLLET_KIND_##kind), since};
#include <collet/types.def>
  return table;
}
constexpr auto kTypes = make_table();

}  // namespace

const TypeInfo& type_info(Type type) {
  const auto i = static_cast<size_t>(type);
  return kTypes[i < kTypes.size() ? i : 0];
}

std::optional<Type> type_from_text(std::string_view text) {
  for (size_t i = 1; i < kTypes.size(); ++i)
    if (kTypes[i].text == text && !text.empty()) return static_cast<Type>(i);
  return std::nullopt;
}

}  // namespace collet::hlo
