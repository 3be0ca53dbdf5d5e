// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

namespace collet::conformance {

/// The questions to a device in some cases, by kind (COLLET_QUESTION_*), name and element type.
class Uses {
 public:
  struct Key {
    uint32_t kind = COLLET_QUESTION_OP;
    std::string name = {};
    uint32_t element = 0;
    auto operator<=>(const Key&) const = default;
  };
  struct Use {
    bool asked = false;     ///< some case asked `supports` about one
    bool accepted = false;  ///< the answer was yes, at least once
    bool ran = false;       ///< one stood in a program that the device has executed
  };

  /// Adds to what is known of the key.
  void note(const Key& key, const Use& use);
  void add(const Uses& other);
  const std::map<Key, Use>& all() const { return all_; }
  /// Writes the uses as text, one line each; the other direction skips lines that are no use.
  std::string text() const;
  static Uses from_text(std::string_view text);

 private:
  std::map<Key, Use> all_;
};

}  // namespace collet::conformance
