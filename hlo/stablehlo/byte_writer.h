// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace collet::hlo::mlir {

/// Writes numbers and strings in the encoding that ByteReader reads.
class ByteWriter {
 public:
  void byte(uint8_t value) { bytes_ += static_cast<char>(value); }
  void append(std::string_view bytes) { bytes_ += bytes; }

  /// Writes MLIR's prefix varint.
  void varint(uint64_t value) {
    int extra = 0;
    while (extra < 8 && (extra == 7 ? value >> 56 : value >> (7 * (extra + 1)))) ++extra;
    if (extra == 8) {
      byte(0);
      return raw(value, 8);
    }
    // The marker bit is below the value's bits.
    raw((value << (extra + 1)) | (uint64_t{1} << extra), extra + 1);
  }
  /// Writes a signed number in zigzag encoding.
  void svarint(int64_t value) { varint((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63)); }
  void flagged_varint(uint64_t value, bool flag) { varint(value << 1 | static_cast<uint64_t>(flag)); }

  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  void raw(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) byte(static_cast<uint8_t>(value >> (8 * i)));
  }
  std::string bytes_;
};

}  // namespace collet::hlo::mlir
