// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

namespace collet::conformance {

/// Records the questions about ops and groups of ops that cases ask a device, by kind (COLLET_QUESTION_*), name and element
/// type.
class Uses {
 public:
  struct Key {
    uint32_t kind = COLLET_QUESTION_OP;
    std::string name = {};
    uint32_t element = 0;
    auto operator<=>(const Key&) const = default;
  };
  /// Numbers of cases; 0 or 1 in the record of one case.
  struct Use {
    uint64_t asked = 0;        ///< cases that asked `supports` about such an op
    uint64_t accepted = 0;     ///< cases in which the answer was yes at least once
    uint64_t ran = 0;          ///< cases in which the device has executed a program with such an op
    uint64_t not_offered = 0;  ///< cases with a group that needs COLLET_FEATURE_* which the device does not state
  };

  /// Adds a use of the key to the record of one case.
  void note(const Key& key, const Use& use);
  /// Adds the record of another case, or of several.
  void add(const Uses& other);
  const std::map<Key, Use>& all() const { return all_; }
  /// Writes the record of one case as text, one line for each key; the reverse function ignores other lines.
  std::string text() const;
  static Uses from_text(std::string_view text);

 private:
  std::map<Key, Use> all_;
};

}  // namespace collet::conformance
