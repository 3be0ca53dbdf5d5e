// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "hlo/ir/attributes.h"

namespace collet::hlo {

/// A field of an attribute record that is passed across the ABI boundary: its position in the C++ record and in the C
/// record.
struct AbiField {
  std::string_view name;
  FieldKind kind;
  uint16_t since = 1;
  uint16_t ir_offset = 0;
  uint16_t offset = 0;  ///< offset in the C struct
  uint16_t bytes = 0;   ///< size in the C struct
  std::span<const EnumValue> values;
};

/// Returns the fields of `record` that are passed across the ABI boundary, in the order of the C struct.
std::span<const AbiField> abi_fields(Record record);
/// Returns the size of the C struct; 0 for None.
size_t joint_record_size(Record record);

}  // namespace collet::hlo
