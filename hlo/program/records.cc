// SPDX-License-Identifier: Apache-2.0
#include "hlo/program/records.h"

#include <cstddef>
#include <vector>

namespace collet::hlo {
namespace {

struct Place {
  std::string_view name;
  uint16_t offset;
  uint16_t bytes;
};

// SLICES and PADS are three consecutive fields of the C struct: the offset is that of the first one, the size that of
// all three.
template <typename Struct>
constexpr uint16_t spread_bytes() {
  return 3 * sizeof(collet_range);
}

#define COLLET_RECORD(Name, name) const Place k##Name##Places[] = {
#define COLLET_FIELD(Name, record, field, text, KIND, presence, since)                                     \
  []<typename S>() -> Place {                                                                              \
    if constexpr (requires(S s) { s.field; })                                                              \
      return {#field, static_cast<uint16_t>(offsetof(S, field)), static_cast<uint16_t>(sizeof(S::field))}; \
    else                                                                                                   \
      return {#field, 0, spread_bytes<S>()};                                                               \
  }.template operator()<collet_##record##_attrs>(),
#define COLLET_RECORD_END(Name, name)      \
  { "", sizeof(collet_##name##_attrs), 0 } \
  }                                        \
  ;
#include <collet/attributes.def>

struct Table {
  std::span<const Place> places;  // by field; the offset of an additional last entry is the size of the struct
  std::vector<AbiField> fields;
};

std::vector<Table> make_tables() {
  std::vector<Table> tables(1);
#define COLLET_RECORD(Name, name) tables.push_back({k##Name##Places, {}});
#include <collet/attributes.def>
  for (size_t r = 1; r < tables.size(); ++r) {
    size_t at = 0;
    for (const FieldInfo& f : record_fields(static_cast<Record>(r))) {
      if (!f.crosses) continue;
      const Place& place = tables[r].places[at++];
      tables[r].fields.push_back({f.name, f.kind, f.since, f.offset, place.offset, place.bytes, f.values});
    }
  }
  return tables;
}

const Table& table(Record record) {
  static const std::vector<Table> tables = make_tables();
  return tables[static_cast<size_t>(record)];
}

}  // namespace

std::span<const AbiField> abi_fields(Record record) {
  return table(record).fields;
}

size_t joint_record_size(Record record) {
  const auto& places = table(record).places;
  return places.empty() ? 0 : places.back().offset;
}

}  // namespace collet::hlo
