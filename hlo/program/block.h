// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/program.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace collet::hlo {

/// The bytes of a program, aligned to 64 bytes.
class Block {
 public:
  static constexpr std::align_val_t kAlignment{64};

  Block() = default;
  /// Makes a block of zeros.
  explicit Block(size_t size) : data_(static_cast<char*>(::operator new(size ? size : 1, kAlignment))), size_(size) {
    std::memset(data_.get(), 0, size);
  }
  /// Copies the bytes.
  Block(const void* bytes, size_t size) : Block(size) {
    if (size > 0) std::memcpy(data_.get(), bytes, size);
  }
  Block(Block&& other) noexcept : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}
  Block& operator=(Block&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  char* data() { return data_.get(); }
  const char* data() const { return data_.get(); }
  size_t size() const { return size_; }
  std::span<const char> bytes() const { return {data_.get(), size_}; }
  const collet_program* program() const { return reinterpret_cast<const collet_program*>(data_.get()); }

 private:
  struct Free {
    void operator()(char* p) const { ::operator delete(p, kAlignment); }
  };
  std::unique_ptr<char[], Free> data_;
  size_t size_ = 0;
};

/// The SHA-256 of data. Equal ids mean equal data, also if somebody looks for data with equal ids.
struct ContentId {
  uint64_t words[4] = {0, 0, 0, 0};
  bool operator==(const ContentId&) const = default;
};

/// Returns the id of `bytes`.
ContentId content_id(std::span<const char> bytes);

struct ContentIdHash {
  size_t operator()(const ContentId& id) const { return id.words[0]; }
};

}  // namespace collet::hlo
