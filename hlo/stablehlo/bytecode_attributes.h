// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "hlo/stablehlo/bytecode_file.h"

namespace collet::hlo::mlir {

/// Decodes the attributes and types of an artifact on demand, each once.
class BytecodeAttributes {
 public:
  BytecodeAttributes(const BytecodeFile& file, Program& program);

  Expected<AttrRef> attr(uint64_t index) { return attr(index, 0); }
  Expected<TypeRef> type(uint64_t index) { return type(index, 0); }

 private:
  enum class State : uint8_t { Unread, Reading, Done };
  struct Cursor;

  Expected<AttrRef> attr(uint64_t index, int depth);
  Expected<TypeRef> type(uint64_t index, int depth);
  Expected<AttrRef> decode_builtin(Cursor& c);
  Expected<AttrRef> decode_vhlo(Cursor& c);
  Expected<AttrRef> decode_sdy(Cursor& c);
  Expected<TypeRef> decode_builtin_type(Cursor& c);
  Expected<TypeRef> decode_vhlo_type(Cursor& c);
  /// Decodes a type and a number of it, of an attribute that begins at `offset`.
  Expected<AttrRef> decode_float(Cursor& c, uint64_t offset);
  Expected<AttrRef> decode_text(const BytecodeEntry& entry);
  Expected<AttrRef> dense(TypeRef type, std::string_view blob, uint64_t offset);
  /// Makes a list of integers or booleans, or Dense elements of floats; `blob` holds whole elements.
  Expected<AttrRef> dense_array(TypeRef element, std::string_view blob, uint64_t offset);

  const BytecodeFile& file_;
  Program& program_;
  std::vector<AttrRef> attrs_;
  std::vector<TypeRef> types_;
  std::vector<State> attr_states_, type_states_;
};

}  // namespace collet::hlo::mlir
