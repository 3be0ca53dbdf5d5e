// SPDX-License-Identifier: Apache-2.0
// The table "exchange" of the faulty backend.
#include <algorithm>
#include <atomic>
#include <vector>

#include "conformance/mutants/faulty.h"
#include "sdk/runtime/testing/host_exchange.h"

namespace collet::mutants {
namespace {

uint32_t takes(collet_backend_instance*, const collet_exchange* exchange) {
  static std::atomic<uint32_t> questions{0};
  if (is(Fault::exchange_refuses)) return 0;
  if (is(Fault::exchange_takes_any)) return 1;
  if (is(Fault::exchange_takes_wavers) && questions++ % 2) return 0;
  return testing::takes_host_exchange(*exchange) ? 1 : 0;
}

// Returns the bytes that an exchange writes of a member's result, from its start.
uint64_t result_bytes(const collet_exchange& e, uint32_t member) {
  uint64_t bytes = e.count * collet_type_bytes(e.element) * (e.kind == COLLET_EXCHANGE_ALL_GATHER ? e.member_count : 1);
  for (uint32_t i = 0; i < e.copy_count; ++i)
    if (e.copies[i].to == member) bytes = std::max(bytes, e.copies[i].to_offset + e.copies[i].bytes);
  return bytes;
}

uint64_t operand_bytes(const collet_exchange& e, uint32_t member) {
  uint64_t bytes =
      e.count * collet_type_bytes(e.element) * (e.kind == COLLET_EXCHANGE_REDUCE_SCATTER ? e.member_count : 1);
  for (uint32_t i = 0; i < e.copy_count; ++i)
    if (e.copies[i].from == member) bytes = std::max(bytes, e.copies[i].from_offset + e.copies[i].bytes);
  return bytes;
}

// Changes what an exchange does as the fault says.
void spoil(collet_exchange& e, std::vector<collet_exchange_copy>& copies) {
  if (is(Fault::exchange_adds_always) && e.combine) e.combine = COLLET_COMBINE_ADD;
  if (is(Fault::exchange_adds_bits) && e.combine > COLLET_COMBINE_MAXIMUM) e.combine = COLLET_COMBINE_ADD;
  if (is(Fault::exchange_is_short)) e.count = std::min<uint64_t>(e.count, 65536);
  if (is(Fault::exchange_misses_last)) e.member_count = std::max<uint32_t>(e.member_count - 1, 1);
  for (collet_exchange_copy& copy : copies) {
    if (is(Fault::exchange_source_offset_ignored)) copy.from_offset = 0;
    if (is(Fault::exchange_copies_too_much)) copy.bytes += 1;
  }
  if (is(Fault::exchange_own_copies_missing))
    copies.erase(std::remove_if(copies.begin(), copies.end(), [](const auto& c) { return c.from == c.to; }),
                 copies.end());
  e.copies = copies.data();
  e.copy_count = static_cast<uint32_t>(copies.size());
}

collet_status run(collet_backend_instance* p, const collet_exchange* what, collet_error* error) {
  Instance* const self = of(p);
  collet_exchange e = *what;
  std::vector<collet_exchange_copy> copies(e.copies, e.copies + e.copy_count);
  if (e.kind != COLLET_EXCHANGE_COPIES || !is(Fault::exchange_misses_last)) spoil(e, copies);
  // The arrays of the members here, in memory of the host.
  std::vector<collet_exchange_member> members(what->members, what->members + what->member_count);
  std::vector<Bytes> operands(members.size()), results(members.size());
  const auto place = [](const collet_place& of_array) {
    return is(Fault::exchange_place_offset_ignored) ? 0 : of_array.offset;
  };
  for (uint32_t m = 0; m < members.size(); ++m) {
    if (members[m].process != e.group->rank) continue;
    operands[m].resize(std::max(operand_bytes(*what, m), operand_bytes(e, m)));
    results[m].resize(std::max(result_bytes(*what, m), result_bytes(e, m)));
    if (members[m].from.buffer)
      get(self, members[m].from.buffer, place(members[m].from), operands[m].data(), operands[m].size());
    if (members[m].to.buffer)
      get(self, members[m].to.buffer, place(members[m].to), results[m].data(), results[m].size());
    members[m].from = {nullptr, operands[m].data(), 0};
    members[m].to = {nullptr, results[m].data(), 0};
  }
  if (is(Fault::exchange_by_device))
    std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) {
      return std::pair(a.process, a.device) < std::pair(b.process, b.device);
    });
  e.members = members.data();
  const auto at = [](const collet_place& of_array) { return static_cast<char*>(of_array.host); };
  const collet_status code = testing::run_host_exchange(e, at, error);
  if (code != COLLET_OK) return code;
  // Bytes of each sum that are lost: the upper half of an integer, or the lower half of a float.
  const bool is_cut = is(Fault::exchange_adds_in_16_bits) && e.combine && e.element == COLLET_TYPE_S32,
             is_rounded = is(Fault::exchange_adds_f32_as_bf16) && e.combine && e.element == COLLET_TYPE_F32;
  for (Bytes& result : results)
    for (size_t i = is_cut ? 2 : 0; (is_cut || is_rounded) && i < result.size(); i += 4)
      std::fill_n(result.begin() + static_cast<ptrdiff_t>(i), 2, uint8_t{0});
  for (uint32_t m = 0; m < what->member_count; ++m) {
    const collet_exchange_member& member = what->members[m];
    if (member.to.buffer) put(self, member.to.buffer, place(member.to), results[m].data(), results[m].size());
    if (is(Fault::exchange_spoils_operand) && member.from.buffer && !results[m].empty())
      put(self, member.from.buffer, place(member.from), results[m].data(),
          std::min(results[m].size(), operands[m].size()));
  }
  return COLLET_OK;
}

}  // namespace

const void* exchange_table() {
  static const collet_exchange_table table = {sizeof(collet_exchange_table), 0, takes, run};
  return &table;
}

}  // namespace collet::mutants
