// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/wire.h"

namespace collet::pjrt {

bool take_varint(std::string_view& bytes, uint64_t& out) {
  out = 0;
  for (uint32_t shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    out |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool WireReader::varint(uint64_t& out) {
  return take_varint(rest_, out);
}

bool WireReader::take(size_t count, std::string_view& out) {
  if (rest_.size() < count) return false;
  out = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return true;
}

bool WireReader::next() {
  if (!ok_ || rest_.empty()) return false;
  uint64_t key = 0, length = 0;
  ok_ = varint(key);
  field_ = static_cast<uint32_t>(key >> 3);
  wire_type_ = static_cast<uint32_t>(key & 7);
  number_ = 0;
  bytes_ = {};
  switch (wire_type_) {
    case 0:
      ok_ = ok_ && varint(number_);
      break;
    case 1:
      ok_ = ok_ && take(8, bytes_);
      break;
    case 2:
      ok_ = ok_ && varint(length) && take(length, bytes_);
      break;
    case 5:
      ok_ = ok_ && take(4, bytes_);
      break;
    default:
      ok_ = false;
  }
  return ok_;
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void put_number(std::string& out, uint32_t field, uint64_t value) {
  put_varint(out, uint64_t{field} << 3);
  put_varint(out, value);
}

void put_bytes(std::string& out, uint32_t field, std::string_view value) {
  put_varint(out, uint64_t{field} << 3 | 2);
  put_varint(out, value.size());
  out += value;
}

}  // namespace collet::pjrt
