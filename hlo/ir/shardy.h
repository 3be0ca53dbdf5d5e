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
/// Shardy's attributes, as its text has them: meshes of named axes, and which axes split which dimension. HLO keeps them
/// as frontend attributes.

namespace collet::hlo {

/// <["x"=4, "y"=2]>, perhaps with device_ids: each device once, or a single one of any number without axes.
struct NamedMesh {
  std::vector<std::pair<std::string, int64_t>> axes;
  std::vector<int64_t> device_ids;  ///< empty: counting up
  int64_t devices() const;
  /// Number of an axis; size() of axes where there is none.
  size_t find(std::string_view name) const;
};

/// An axis, or the part of `size` of it behind the first `before`.
struct AxisPart {
  size_t axis = 0;
  int64_t before = 1;
  int64_t size = 1;
  bool operator==(const AxisPart&) const = default;
};

/// <@mesh, [{"x"}, {"y", ?}]>.
struct NamedSharding {
  std::string mesh;  ///< its name; empty where it stands inline, in `inline_mesh`
  std::optional<NamedMesh> inline_mesh;
  struct Axis {
    std::string name;
    int64_t before = 1, size = 0;  ///< size 0: the whole axis
  };
  struct Dimension {
    std::vector<Axis> axes;  ///< the first one counts most
    bool open = false;       ///< more may split it
  };
  std::vector<Dimension> dimensions;
  std::vector<Axis> unreduced;  ///< along these the value is a sum of what the devices have
};

/// "#sdy.mesh<...>"; nothing where the text is no mesh.
std::optional<NamedMesh> parse_mesh(std::string_view text);
/// One of "{a = #sdy.mesh<...>, b = ...}", as the frontend attribute xla.sdy.meshes has them.
std::optional<NamedMesh> find_mesh(std::string_view meshes, std::string_view name);
/// "#sdy.sharding<...>", or the same without what stands before the <.
std::optional<NamedSharding> parse_named_sharding(std::string_view text);
/// "#sdy.sharding_per_value<[<...>, <...>]>".
std::optional<std::vector<NamedSharding>> parse_sharding_list(std::string_view text);
/// "#sdy<manual_axes{"x", "y"}>".
std::optional<std::vector<std::string>> parse_axis_names(std::string_view text);

/// The parts of axes that `sharding` leaves sums open along; nothing where one is unknown.
std::optional<std::vector<AxisPart>> resolve_unreduced(const NamedSharding& sharding, const NamedMesh& mesh);
/// The parts of axes of each dimension; nothing where an axis is unknown or used twice.
std::optional<std::vector<std::vector<AxisPart>>> resolve_axes(const NamedSharding& sharding, const NamedMesh& mesh);
/// As HLO has it; nothing where parts of axes split dimensions.
std::optional<Sharding> to_hlo_sharding(const NamedMesh& mesh, const std::vector<std::vector<AxisPart>>& dimensions);
/// Place in the mesh's grid, row-major, of each device number.
std::vector<int64_t> places_of_devices(const NamedMesh& mesh);

}  // namespace collet::hlo
