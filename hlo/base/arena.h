// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace collet {

/// A list in an arena: a view of elements that live as long as the arena does.
template <typename T>
class List {
 public:
  List() = default;
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) const { return data_[i]; }
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }
  T* data() const { return data_; }
  T& back() const { return data_[size_ - 1]; }
  operator std::span<const std::remove_const_t<T>>() const { return {data_, size_}; }
  std::span<T> span() const { return {data_, size_}; }
  friend bool operator==(List a, List b) {
    if (a.size_ != b.size_) return false;
    for (size_t i = 0; i < a.size_; ++i)
      if (!(a.data_[i] == b.data_[i])) return false;
    return true;
  }

 private:
  friend class Arena;
  List(T* data, size_t size) : data_(data), size_(static_cast<uint32_t>(size)) {}
  T* data_ = nullptr;
  uint32_t size_ = 0;
};

/// Bump allocator; frees everything at once and runs no destructors, so it takes only trivially destructible types.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* allocate(size_t bytes, size_t alignment) {
    uintptr_t at = (next_ + alignment - 1) & ~(uintptr_t{alignment} - 1);
    if (at + bytes > end_ || next_ == 0) {
      grow(bytes + alignment);
      at = (next_ + alignment - 1) & ~(uintptr_t{alignment} - 1);
    }
    next_ = at + bytes;
    return reinterpret_cast<void*>(at);
  }

  template <typename T, typename... Args>
  T* make(Args&&... args) {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (allocate(sizeof(T), alignof(T))) T{std::forward<Args>(args)...};
  }

  /// Copies `items` into the arena. T may be const: list<const int64_t>(...).
  template <typename T>
  List<T> list(std::span<const std::remove_const_t<T>> items) {
    using Item = std::remove_const_t<T>;
    static_assert(std::is_trivially_destructible_v<Item>);
    if (items.empty()) return {};
    Item* data = static_cast<Item*>(allocate(items.size() * sizeof(Item), alignof(Item)));
    std::uninitialized_copy(items.begin(), items.end(), data);
    return {data, items.size()};
  }
  template <typename Vector>
    requires requires { typename Vector::allocator_type; }
  List<const typename Vector::value_type> list(const Vector& items) {
    using Item = typename Vector::value_type;
    return list<const Item>(std::span<const Item>(items));
  }

  /// Copies `text` into the arena.
  std::string_view string(std::string_view text) {
    if (text.empty()) return {};
    char* data = static_cast<char*>(allocate(text.size(), 1));
    std::memcpy(data, text.data(), text.size());
    return {data, text.size()};
  }

  size_t bytes() const { return total_; }

 private:
  void grow(size_t at_least) {
    const size_t size = block_bytes_ < at_least ? at_least : block_bytes_;
    if (block_bytes_ < (size_t{1} << 20)) block_bytes_ *= 2;
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(size));
    next_ = reinterpret_cast<uintptr_t>(blocks_.back().get());
    end_ = next_ + size;
    total_ += size;
  }

  std::vector<std::unique_ptr<char[]>> blocks_;
  uintptr_t next_ = 0, end_ = 0;
  size_t block_bytes_ = 4096, total_ = 0;
};

}  // namespace collet
