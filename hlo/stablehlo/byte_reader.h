// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace collet::hlo::mlir {

/// Reads untrusted bytes. Reading past the end, or a malformed number, sets failed() and returns zeros from then on, so
/// a caller may check once after several reads.
class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(std::string_view bytes, uint64_t base = 0) : bytes_(bytes), base_(base) {}

  bool failed() const { return failed_; }
  bool done() const { return at_ >= bytes_.size(); }
  uint64_t remaining() const { return bytes_.size() - at_; }
  /// Returns the offset from the start of the file.
  uint64_t position() const { return base_ + at_; }
  void fail() {
    failed_ = true;
    at_ = bytes_.size();
  }

  uint8_t byte() {
    if (done()) {
      fail();
      return 0;
    }
    return static_cast<uint8_t>(bytes_[at_++]);
  }

  /// Reads MLIR's prefix varint: the number of trailing zero bits of the first byte is the number of bytes that follow.
  uint64_t varint() {
    const uint8_t first = byte();
    if (failed_) return 0;
    if (first & 1) return first >> 1;
    const int extra = first ? __builtin_ctz(first) : 8;
    if (remaining() < static_cast<uint64_t>(extra)) {
      fail();
      return 0;
    }
    uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + at_, static_cast<size_t>(extra));
    at_ += static_cast<uint64_t>(extra);
    if (first == 0) return value;
    // The bits of the first byte above the marker bit are the lowest bits of the value.
    return (value << (7 - extra)) | (first >> (extra + 1));
  }

  /// Reads a signed number in zigzag encoding.
  int64_t svarint() {
    const uint64_t v = varint();
    return static_cast<int64_t>(v >> 1) ^ -static_cast<int64_t>(v & 1);
  }

  /// Reads a number whose lowest bit is a flag; stores the flag in `*flag`.
  uint64_t flagged_varint(bool* flag) {
    const uint64_t v = varint();
    *flag = v & 1;
    return v >> 1;
  }

  /// Reads the number of items of which each takes at least one byte. A number larger than the remaining bytes is an
  /// error, so that malformed input cannot cause large allocations.
  uint64_t count() {
    const uint64_t n = varint();
    if (n > remaining()) {
      fail();
      return 0;
    }
    return n;
  }

  std::string_view take(uint64_t n) {
    if (n > remaining()) {
      fail();
      return {};
    }
    std::string_view out = bytes_.substr(at_, n);
    at_ += n;
    return out;
  }

  /// Reads a string that ends with a zero byte, and skips that byte.
  std::string_view c_string() {
    const size_t end = bytes_.find('\0', at_);
    if (end == std::string_view::npos) {
      fail();
      return {};
    }
    std::string_view out = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }

  /// Skips padding bytes so that position() is a multiple of `alignment`.
  void align(uint64_t alignment) {
    if (alignment == 0 || (alignment & (alignment - 1)) || alignment > (1u << 20)) return fail();
    while (!failed_ && position() % alignment != 0)
      if (byte() != 0xCB) fail();
  }

 private:
  std::string_view bytes_;
  uint64_t base_ = 0;
  uint64_t at_ = 0;
  bool failed_ = false;
};

}  // namespace collet::hlo::mlir
