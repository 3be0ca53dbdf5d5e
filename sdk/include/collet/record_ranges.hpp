/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_RECORD_RANGES_HPP
#define COLLET_RECORD_RANGES_HPP

/** \file
 * Finds the lists and texts of an attribute record: for code that copies ops from one program to another.
 */

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <vector>

#include "attributes.h"

namespace collet {

/** A collet_range in an attribute record. */
struct RecordRange {
  size_t offset = 0;    /**< bytes from the start of the record */
  bool is_text = false; /**< of `bytes`; else of `integers` */
};

namespace detail {

/** Adds the ranges of one field. `get` returns the address of the field in a record; for fields that the C struct spreads over three of
 * its own (kinds SLICES and PADS of attributes.def) it cannot be called: these have a record of their own. */
template <class Record, class Get>
void add_ranges(std::vector<RecordRange>* out, const char* kind, const Get& get) {
  const auto add = [&](size_t offset, size_t count) {
    for (size_t i = 0; i < count; ++i)
      out->push_back({offset + i * sizeof(collet_range), std::strcmp(kind, "STRING") == 0});
  };
  if constexpr (std::is_invocable_v<Get, Record*>) {
    Record record{};
    const auto* field = get(&record);
    const auto offset =
        static_cast<size_t>(reinterpret_cast<const char*>(field) - reinterpret_cast<const char*>(&record));
    using Field = std::remove_const_t<std::remove_pointer_t<decltype(field)>>;
    if constexpr (std::is_same_v<Field, collet_range>) add(offset, 1);
    if constexpr (std::is_same_v<Field, collet_window>) add(offset, sizeof(collet_window) / sizeof(collet_range));
    if constexpr (std::is_same_v<Field, collet_dim_labels>) add(offset + offsetof(collet_dim_labels, input_spatial), 3);
    if constexpr (std::is_same_v<Field, collet_groups>) add(offset + offsetof(collet_groups, ids), 1);
  } else {
    add(0, 3);
  }
}

#define COLLET_RECORD(Record, record) inline void add_ranges_of_##record(std::vector<RecordRange>* out) {
#define COLLET_FIELD(Record, record, field, text, KIND, presence, since) \
  add_ranges<collet_##record##_attrs>(out, #KIND, [](auto* r) -> decltype(&r->field) { return &r->field; });
#define COLLET_RECORD_END(Record, record) \
  (void)out;                              \
  }
#include "attributes.def"

inline std::vector<std::vector<RecordRange>> make_ranges() {
  std::vector<std::vector<RecordRange>> records(1);
#define COLLET_RECORD(Record, record) \
  records.emplace_back();             \
  add_ranges_of_##record(&records.back());
#include "attributes.def"
  enum Number : size_t {
    None,
#define COLLET_RECORD(Record, record) Record,
#include "attributes.def"
  };
  std::vector<std::vector<RecordRange>> out;
  const auto put = [&](size_t opcode, size_t record) {
    if (out.size() <= opcode) out.resize(opcode + 1);
    out[opcode] = records[record];
  };
#define COLLET_OP(id, NAME, text, CLASS, family, min_operands, max_operands, Record, REGIONS, TYPES, traits, ulp, \
                  since)                                                                                          \
  put(id, Number::Record);
#include "ops.def"
  return out;
}

}  // namespace detail

/** Returns the ranges in the record of an op; those that this version of the interface knows. */
inline const std::vector<RecordRange>& ranges_of_record(uint32_t opcode) {
  static const auto* const all = new std::vector<std::vector<RecordRange>>(detail::make_ranges());
  static const auto* const none = new std::vector<RecordRange>();
  return opcode < all->size() ? (*all)[opcode] : *none;
}

}  // namespace collet

#endif
