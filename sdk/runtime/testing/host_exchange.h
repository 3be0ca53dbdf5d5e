// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/tables.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

/// \file
/// For tests: the table "exchange" for a device whose memory the host reads and writes. All data go through collet_group::exchange,
/// so it shows what each kind of exchange does, not how to make it fast.

namespace collet::testing {

/// Returns true for exchanges that run_host_exchange() runs: copies, gathers, and combinations of f32, s32 and u32.
inline bool takes_host_exchange(const collet_exchange& exchange) {
  if (exchange.kind == COLLET_EXCHANGE_COPIES || exchange.kind == COLLET_EXCHANGE_ALL_GATHER) return true;
  if (exchange.kind != COLLET_EXCHANGE_ALL_REDUCE && exchange.kind != COLLET_EXCHANGE_REDUCE_SCATTER) return false;
  if (exchange.element == COLLET_TYPE_F32) return exchange.combine <= COLLET_COMBINE_MAXIMUM;
  return exchange.element == COLLET_TYPE_S32 || exchange.element == COLLET_TYPE_U32;
}

namespace detail {

template <typename T>
T combine_two(uint32_t how, T a, T b) {
  switch (how) {
    case COLLET_COMBINE_ADD:
      return a + b;
    case COLLET_COMBINE_MULTIPLY:
      return a * b;
    case COLLET_COMBINE_MINIMUM:
      return b < a || b != b ? b : a;
    case COLLET_COMBINE_MAXIMUM:
      return a < b || b != b ? b : a;
    default:
      break;
  }
  if constexpr (T(0.5) == T(0)) {
    if (how == COLLET_COMBINE_AND) return a & b;
    if (how == COLLET_COMBINE_OR) return a | b;
    if (how == COLLET_COMBINE_XOR) return a ^ b;
  }
  return a;
}

/// Combines `count` elements of all operands from element `first` on.
template <typename T>
void combine_all(const collet_exchange& e, const std::vector<const char*>& operands, uint64_t first, char* out) {
  for (uint64_t i = 0; i < e.count; ++i) {
    T sum{};
    for (size_t m = 0; m < operands.size(); ++m) {
      T x{};
      std::memcpy(&x, operands[m] + (first + i) * sizeof(T), sizeof x);
      sum = m == 0 ? x : combine_two<T>(e.combine, sum, x);
    }
    std::memcpy(out + i * sizeof(T), &sum, sizeof sum);
  }
}

}  // namespace detail

/// Runs an exchange that takes_host_exchange() takes. `at(place)` returns the address of a place in a buffer.
template <typename Address>
collet_status run_host_exchange(const collet_exchange& e, const Address& at, collet_error* error) {
  const uint64_t element = collet_type_bytes(e.element);
  const bool copies = e.kind == COLLET_EXCHANGE_COPIES, scatters = e.kind == COLLET_EXCHANGE_REDUCE_SCATTER;
  uint64_t bytes = e.count * element * (scatters ? e.member_count : 1);  // of an operand
  for (uint32_t i = 0; i < e.copy_count; ++i) bytes = std::max(bytes, e.copies[i].from_offset + e.copies[i].bytes);
  // The operands of a process stand behind each other; all processes send as much as the one with the most members.
  std::vector<uint32_t> place(e.member_count), counts(e.group->size);
  for (uint32_t m = 0; m < e.member_count; ++m) place[m] = counts[e.members[m].process]++;
  const uint64_t most = *std::max_element(counts.begin(), counts.end()) * bytes;
  std::vector<char> mine(most), all(most * e.group->size);
  std::vector<uint64_t> given(e.member_count, copies ? 0 : bytes);
  for (uint32_t i = 0; i < e.copy_count; ++i)
    given[e.copies[i].from] = std::max(given[e.copies[i].from], e.copies[i].from_offset + e.copies[i].bytes);
  for (uint32_t m = 0; m < e.member_count; ++m)
    if (e.members[m].process == e.group->rank && given[m] > 0)
      std::memcpy(&mine[place[m] * bytes], at(e.members[m].from), given[m]);
  const collet_status status = e.group->exchange(e.group->user, mine.data(), most, all.data(), error);
  if (status != COLLET_OK) return status;
  std::vector<const char*> operands;
  for (uint32_t m = 0; m < e.member_count; ++m)
    operands.push_back(&all[e.members[m].process * most + place[m] * bytes]);
  for (uint32_t m = 0; m < e.member_count && !copies; ++m) {
    if (e.members[m].process != e.group->rank) continue;
    char* const out = at(e.members[m].to);
    const uint64_t first = scatters ? m * e.count : 0;
    if (e.kind == COLLET_EXCHANGE_ALL_GATHER)
      for (uint32_t k = 0; k < e.member_count; ++k) std::memcpy(out + k * bytes, operands[k], bytes);
    else if (e.element == COLLET_TYPE_F32)
      detail::combine_all<float>(e, operands, first, out);
    else if (e.element == COLLET_TYPE_S32)
      detail::combine_all<int32_t>(e, operands, first, out);
    else
      detail::combine_all<uint32_t>(e, operands, first, out);
  }
  for (uint32_t i = 0; i < e.copy_count; ++i) {
    const collet_exchange_copy& copy = e.copies[i];
    if (e.members[copy.to].process == e.group->rank)
      std::memcpy(at(e.members[copy.to].to) + copy.to_offset, operands[copy.from] + copy.from_offset, copy.bytes);
  }
  return COLLET_OK;
}

}  // namespace collet::testing
