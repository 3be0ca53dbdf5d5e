// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "hlo/base/hash.h"

namespace collet::hlo::text {

/// Maps names, which are views of a text, to numbers. The text must outlive the table.
class NameTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  NameTable() : slots_(16) {}

  /// Returns the number of `name`, or kNone.
  uint32_t find(std::string_view name) const {
    const Slot& slot = slots_[slot_of(name, hash_of(name))];
    return slot.hash ? entries_[slot.entry].value : kNone;
  }
  /// Adds `name`; returns false if it exists already (the old number stays).
  bool insert(std::string_view name, uint32_t value) {
    if (entries_.size() * 3 >= slots_.size() * 2) grow();
    const uint32_t hash = hash_of(name);
    Slot& slot = slots_[slot_of(name, hash)];
    if (slot.hash) return false;
    slot = {hash, static_cast<uint32_t>(entries_.size())};
    entries_.push_back({name.data(), static_cast<uint32_t>(name.size()), value});
    return true;
  }
  void clear() {
    if (entries_.empty()) return;
    std::fill(slots_.begin(), slots_.end(), Slot());
    // A large table is freed, because clearing it would cost time for each small computation that follows.
    if (slots_.size() > 1024) {
      slots_.assign(16, Slot());
      slots_.shrink_to_fit();
    }
    entries_.clear();
  }
  /// Calls f(name, number) for every entry, in the order of insertion.
  template <typename F>
  void for_each(F f) const {
    for (const Entry& e : entries_) f(std::string_view(e.data, e.size), e.value);
  }

 private:
  // Probing reads only these slots; the entries of names that were defined recently are close together in memory.
  struct Slot {
    uint32_t hash = 0;  // 0: free
    uint32_t entry = 0;
  };
  struct Entry {
    const char* data;
    uint32_t size;
    uint32_t value;
  };

  static uint32_t hash_of(std::string_view name) { return static_cast<uint32_t>(hash_text(name)) | 1u << 31; }

  size_t slot_of(std::string_view name, uint32_t hash) const {
    const size_t mask = slots_.size() - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
      const Slot& s = slots_[i];
      if (!s.hash) return i;
      if (s.hash != hash) continue;
      const Entry& e = entries_[s.entry];
      if (e.size == name.size() && std::memcmp(e.data, name.data(), name.size()) == 0) return i;
    }
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    const size_t mask = slots_.size() - 1;
    for (const Slot& s : old) {
      if (!s.hash) continue;
      size_t i = s.hash & mask;
      while (slots_[i].hash) i = (i + 1) & mask;
      slots_[i] = s;
    }
  }

  std::vector<Slot> slots_;
  std::vector<Entry> entries_;
};

}  // namespace collet::hlo::text
