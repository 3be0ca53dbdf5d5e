// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/stablehlo/byte_reader.h"
#include "hlo/stablehlo/mlir.h"

/// \file
/// Reads the container format of MLIR bytecode: sections, strings, names of dialects and ops, and the offset of each
/// attribute and type.

namespace collet::hlo::mlir {

/// The position of an attribute or type, which is decoded on demand.
struct BytecodeEntry {
  uint32_t dialect = 0;
  bool custom = false;  ///< true: in the dialect's own encoding; false: as MLIR text
  std::string_view data;
  uint64_t offset = 0;  ///< offset in the file
};

struct BytecodeOpName {
  uint32_t dialect = 0;
  std::string_view name;
};

struct BytecodeFile {
  uint32_t version = 0;
  std::string_view producer;
  std::vector<std::string_view> strings;
  std::vector<std::string_view> dialects;
  std::vector<BytecodeOpName> op_names;
  std::vector<BytecodeEntry> attrs, types;
  std::vector<std::string_view> properties;
  std::string_view ir;
  uint64_t ir_offset = 0;
};

/// Splits the file into its parts; the views in the result point into `bytes`.
Expected<BytecodeFile> open_bytecode(std::string_view bytes);

/// The head and payload of one section.
struct BytecodeSection {
  uint8_t id = 0;
  std::string_view payload;
  uint64_t offset = 0;
};
bool read_section(ByteReader& reader, BytecodeSection* section);

/// Returns INVALID_ARGUMENT with the message "artifact, byte N: message".
Status bytecode_error(uint64_t offset, const std::string& message);

}  // namespace collet::hlo::mlir
