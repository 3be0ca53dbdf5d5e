// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace collet {

/// A list that grows at its end and never moves its elements, so references stay valid.
template <typename T>
class Blocks {
 public:
  Blocks() = default;
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  ~Blocks() {
    for (size_t i = 0; i < size_; ++i) (*this)[i].~T();
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return *at(i); }
  const T& operator[](size_t i) const { return *at(i); }
  T& back() { return *at(size_ - 1); }

  template <typename... Args>
  T& emplace_back(Args&&... args) {
    if (size_ % kBlock == 0 && size_ / kBlock == blocks_.size())
      blocks_.push_back(std::make_unique_for_overwrite<Storage[]>(kBlock));
    T* item = new (&blocks_[size_ / kBlock][size_ % kBlock]) T(std::forward<Args>(args)...);
    ++size_;
    return *item;
  }

 private:
  static constexpr size_t kBlock = 256;
  struct Storage {
    alignas(T) std::byte bytes[sizeof(T)];
  };
  T* at(size_t i) const { return std::launder(reinterpret_cast<T*>(&blocks_[i / kBlock][i % kBlock])); }

  std::vector<std::unique_ptr<Storage[]>> blocks_;
  size_t size_ = 0;
};

}  // namespace collet
