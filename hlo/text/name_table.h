// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace collet::hlo::text {

inline uint64_t hash_text(std::string_view text) {
  constexpr uint64_t kFactor = 0x9E3779B97F4A7C15ull;
  uint64_t h = text.size() * kFactor;
  const char* p = text.data();
  size_t n = text.size();
  uint64_t word;
  for (; n >= 8; p += 8, n -= 8) {
    std::memcpy(&word, p, 8);
    h = (h ^ word) * kFactor;
    h ^= h >> 32;
  }
  word = 0;
  for (size_t i = 0; i < n; ++i) word = word << 8 | static_cast<unsigned char>(p[i]);
  h = (h ^ word) * kFactor;
  return h ^ h >> 29;
}

/// Views of text to numbers. The text must outlive the table. clear() costs nothing.
class NameTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  NameTable() : slots_(16) {}

  /// The number of `name`, or kNone.
  uint32_t find(std::string_view name) const {
    const Slot& slot = slots_[slot_of(name, static_cast<uint32_t>(hash_text(name)))];
    return slot.generation == generation_ ? slot.value : kNone;
  }
  /// Enters `name`; false when it is there already (the old number stays).
  bool insert(std::string_view name, uint32_t value) {
    if (count_ * 2 >= slots_.size()) grow();
    const auto hash = static_cast<uint32_t>(hash_text(name));
    Slot& slot = slots_[slot_of(name, hash)];
    if (slot.generation == generation_) return false;
    slot = {name.data(), static_cast<uint32_t>(name.size()), hash, value, generation_};
    ++count_;
    return true;
  }
  void clear() {
    ++generation_;
    count_ = 0;
  }
  /// Calls f(name, number) for every entry.
  template <typename F>
  void for_each(F f) const {
    for (const Slot& s : slots_)
      if (s.generation == generation_) f(std::string_view(s.data, s.size), s.value);
  }

 private:
  struct Slot {
    const char* data = nullptr;
    uint32_t size = 0;
    uint32_t hash = 0;
    uint32_t value = 0;
    uint32_t generation = 0;
  };

  size_t slot_of(std::string_view name, uint32_t hash) const {
    const size_t mask = slots_.size() - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
      const Slot& s = slots_[i];
      if (s.generation != generation_) return i;
      if (s.hash == hash && s.size == name.size() && std::memcmp(s.data, name.data(), name.size()) == 0) return i;
    }
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    const size_t mask = slots_.size() - 1;
    for (const Slot& s : old) {
      if (s.generation != generation_) continue;
      size_t i = s.hash & mask;
      while (slots_[i].generation == generation_) i = (i + 1) & mask;
      slots_[i] = s;
    }
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
  uint32_t generation_ = 1;
};

}  // namespace collet::hlo::text
