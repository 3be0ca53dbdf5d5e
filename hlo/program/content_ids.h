// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <utility>

#include "hlo/ir/literal.h"
#include "hlo/program/block.h"

namespace collet::hlo {

/// Computes the ids of literals. Hashing takes about half a second for each gigabyte, and one compilation writes the same
/// constants several times, so the ids of large literals are kept. For one thread.
class ContentIds {
 public:
  /// Returns content_id of the bytes of an array.
  ContentId of(const Literal& literal);

 private:
  struct Known {
    Literal literal;  ///< shares the data, which therefore neither changes nor goes
    ContentId id;
  };
  std::map<std::pair<const void*, size_t>, Known> known_;
};

}  // namespace collet::hlo
