// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// \file
/// Reads and writes the part of the protobuf wire format that compile options and device assignments need.

namespace collet::pjrt {

/// Iterates over the fields of a message.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  /// Moves to the next field; false at the end, and if the bytes are malformed.
  bool next();
  /// False after an error.
  bool ok() const { return ok_; }

  /// The number of the field, its wire type, and its value (according to the type).
  uint32_t field() const { return field_; }
  uint32_t wire_type() const { return wire_type_; }
  uint64_t number() const { return number_; }
  std::string_view bytes() const { return bytes_; }

 private:
  bool varint(uint64_t& out);
  bool take(size_t count, std::string_view& out);

  std::string_view rest_;
  bool ok_ = true;
  uint32_t field_ = 0, wire_type_ = 0;
  uint64_t number_ = 0;
  std::string_view bytes_;
};

/// Reads one varint from the front of a packed list; false at the end or if it is truncated.
bool take_varint(std::string_view& bytes, uint64_t& out);

/// Appends a varint.
void put_varint(std::string& out, uint64_t value);
/// Appends a field that is a number.
void put_number(std::string& out, uint32_t field, uint64_t value);
/// Appends a field that is text or a message.
void put_bytes(std::string& out, uint32_t field, std::string_view value);

}  // namespace collet::pjrt
