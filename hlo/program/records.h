// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "hlo/ir/attributes.h"

namespace collet::hlo {

/// A field of an attribute record that crosses the ABI boundary: where it lies in the C++ record and in the C one.
struct AbiField {
  std::string_view name;
  FieldKind kind;
  uint16_t since = 1;
  uint16_t ir_offset = 0;
  uint16_t offset = 0;  ///< in the C struct
  uint16_t bytes = 0;   ///< in the C struct
  std::span<const EnumValue> values;
};

/// The fields of `record` that cross, in the C struct's order.
std::span<const AbiField> abi_fields(Record record);
/// sizeof the C struct; 0 for None.
size_t joint_record_size(Record record);

}  // namespace collet::hlo
