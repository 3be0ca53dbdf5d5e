// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/element_types.h"

#include <collet/types.h>

#include <array>

namespace collet::pjrt {
namespace {

struct Pair {
  PJRT_Buffer_Type pjrt;
  uint32_t collet;
};

#define SAME(NAME) {PJRT_Buffer_Type_##NAME, COLLET_TYPE_##NAME}
constexpr Pair kPairs[] = {SAME(PRED),   SAME(S8),       SAME(S16),           SAME(S32),        SAME(S64),
                           SAME(U8),     SAME(U16),      SAME(U32),           SAME(U64),        SAME(F16),
                           SAME(F32),    SAME(F64),      SAME(BF16),          SAME(C64),        SAME(C128),
                           SAME(F8E5M2), SAME(F8E4M3FN), SAME(F8E4M3B11FNUZ), SAME(F8E5M2FNUZ), SAME(F8E4M3FNUZ),
                           SAME(S4),     SAME(U4),       SAME(TOKEN),         SAME(S2),         SAME(U2),
                           SAME(F8E4M3), SAME(F8E3M4),   SAME(F8E8M0FNU),     SAME(F4E2M1FN),   SAME(S1),
                           SAME(U1)};
#undef SAME

constexpr auto kToCollet = [] {
  std::array<uint8_t, 64> table{};
  for (const Pair& p : kPairs) table[p.pjrt] = static_cast<uint8_t>(p.collet);
  return table;
}();

constexpr auto kFromCollet = [] {
  std::array<uint8_t, COLLET_TYPE_LIMIT> table{};
  for (const Pair& p : kPairs) table[p.collet] = static_cast<uint8_t>(p.pjrt);
  return table;
}();

constexpr auto kDescending = [] {
  std::array<int64_t, kMaxRank> table{};
  for (size_t i = 0; i < kMaxRank; ++i) table[i] = static_cast<int64_t>(kMaxRank - 1 - i);
  return table;
}();

}  // namespace

uint32_t to_collet(PJRT_Buffer_Type type) {
  const auto index = static_cast<uint32_t>(type);
  return index < kToCollet.size() ? kToCollet[index] : uint32_t{COLLET_TYPE_INVALID};
}

PJRT_Buffer_Type from_collet(uint32_t type) {
  return type < kFromCollet.size() ? static_cast<PJRT_Buffer_Type>(kFromCollet[type]) : PJRT_Buffer_Type_INVALID;
}

const int64_t* descending(size_t rank) {
  return rank <= kMaxRank ? kDescending.data() + (kMaxRank - rank) : nullptr;
}

}  // namespace collet::pjrt
