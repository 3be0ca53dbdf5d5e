// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hlo/ir/sharding.h"

/// \file
/// Parses Shardy's attributes from text: meshes of named axes, and which axes split which dimension. HLO keeps the text
/// as frontend attributes.

namespace collet::hlo {

/// A mesh, written <["x"=4, "y"=2]>, optionally with device_ids: a permutation of the devices, or for a mesh without
/// axes a single device with any number.
struct NamedMesh {
  std::vector<std::pair<std::string, int64_t>> axes;
  std::vector<int64_t> device_ids;  ///< empty: 0, 1, 2, ...
  int64_t devices() const;
  /// Returns the index of an axis; the size() of axes if there is none.
  size_t find(std::string_view name) const;
};

/// An axis, or a part of it: if an axis is viewed as a grid [before, size, ...] in row-major order, the part is the
/// second dimension.
struct AxisPart {
  size_t axis = 0;
  int64_t before = 1;
  int64_t size = 1;
  bool operator==(const AxisPart&) const = default;
};

/// A sharding, written <@mesh, [{"x"}, {"y", ?}]>.
struct NamedSharding {
  std::string mesh;  ///< its name; empty if the mesh is written inline, in `inline_mesh`
  std::optional<NamedMesh> inline_mesh;
  struct Axis {
    std::string name;
    int64_t before = 1, size = 0;  ///< size 0: the whole axis
  };
  struct Dimension {
    std::vector<Axis> axes;  ///< from major to minor
    bool open = false;       ///< further axes may split it
  };
  std::vector<Dimension> dimensions;
  std::vector<Axis> unreduced;  ///< axes along which the value is the sum over the devices
};

/// Parses "#sdy.mesh<...>"; nothing if the text is not a mesh.
std::optional<NamedMesh> parse_mesh(std::string_view text);
/// Finds and parses a mesh in "{a = #sdy.mesh<...>, b = ...}", the form of the frontend attribute xla.sdy.meshes.
std::optional<NamedMesh> find_mesh(std::string_view meshes, std::string_view name);
/// Parses "#sdy.sharding<...>", or only the part from the < on.
std::optional<NamedSharding> parse_named_sharding(std::string_view text);
/// Parses "#sdy.sharding_per_value<[<...>, <...>]>".
std::optional<std::vector<NamedSharding>> parse_sharding_list(std::string_view text);
/// Parses "#sdy<manual_axes{"x", "y"}>".
std::optional<std::vector<std::string>> parse_axis_names(std::string_view text);

/// Returns the parts of axes along which `sharding` is unreduced; nothing if an axis is unknown.
std::optional<std::vector<AxisPart>> resolve_unreduced(const NamedSharding& sharding, const NamedMesh& mesh);
/// Returns the parts of axes of each dimension; nothing if an axis is unknown or used twice.
std::optional<std::vector<std::vector<AxisPart>>> resolve_axes(const NamedSharding& sharding, const NamedMesh& mesh);
/// Converts to an HLO sharding; nothing if a dimension is split by a part of an axis that HLO cannot express.
std::optional<Sharding> to_hlo_sharding(const NamedMesh& mesh, const std::vector<std::vector<AxisPart>>& dimensions);
/// Returns, for each device number, its row-major position in the grid of the mesh.
std::vector<int64_t> places_of_devices(const NamedMesh& mesh);

}  // namespace collet::hlo
