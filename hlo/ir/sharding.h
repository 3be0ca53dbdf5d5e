// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace collet::hlo {

/// How a value is divided over devices, with the fields of a sharding in HLO text.
struct Sharding {
  enum class Kind : uint8_t { Replicated, Manual, Unknown, Unreduced, Maximal, Tiled, Tuple, Named };
  Kind kind = Kind::Replicated;
  int64_t device = 0;  ///< for Maximal: the device that has the value

  // Tiled: the tile assignment, either listed or as iota over `reshape` transposed by `permutation`.
  std::vector<int64_t> tile_dims;
  std::vector<int64_t> devices;
  bool iota = false;
  std::vector<int64_t> reshape, permutation;
  bool last_tile_dim_replicate = false;
  std::vector<Kind> last_tile_dims;

  std::vector<Sharding> elements;  ///< for Tuple

  enum class Group : uint8_t { None, As, Like };
  Group group = Group::None;
  int64_t group_id = 0;
  std::string metadata;  ///< the text after metadata=, with braces, verbatim; empty: none
  std::string named;     ///< for Named, on a mesh of named axes: the text inside of the braces, verbatim

  /// Returns the sharding as HLO text, with braces.
  std::string to_string() const;

  bool operator==(const Sharding&) const = default;
};

}  // namespace collet::hlo
