// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

namespace collet::conformance {

/// Records the questions about ops that cases ask a device, by kind (COLLET_QUESTION_*), name and element type.
class Uses {
 public:
  struct Key {
    uint32_t kind = COLLET_QUESTION_OP;
    std::string name = {};
    uint32_t element = 0;
    auto operator<=>(const Key&) const = default;
  };
  struct Use {
    bool asked = false;     ///< a case asked `supports` about such an op
    bool accepted = false;  ///< the answer was yes at least once
    bool ran = false;       ///< the device has executed a program with such an op
  };

  /// Adds a use of the key.
  void note(const Key& key, const Use& use);
  void add(const Uses& other);
  const std::map<Key, Use>& all() const { return all_; }
  /// Writes the uses as text, one line each; the reverse function ignores other lines.
  std::string text() const;
  static Uses from_text(std::string_view text);

 private:
  std::map<Key, Use> all_;
};

}  // namespace collet::conformance
