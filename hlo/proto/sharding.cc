// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/proto/mesh.h"

namespace collet::hlo::proto {
namespace {

using Kind = Sharding::Kind;

// The kinds of shardings, indexed by their numbers in the message.
constexpr Kind kKinds[] = {Kind::Replicated, Kind::Maximal, Kind::Tuple,    Kind::Tiled,
                           Kind::Manual,     Kind::Unknown, Kind::Unreduced};

Expected<Kind> kind_of(int32_t number) {
  if (number < 0 || number >= static_cast<int32_t>(std::size(kKinds)))
    return invalid_argument("field 'type': there is no sharding " + std::to_string(number));
  return kKinds[number];
}

Status read_tiles(const wire::OpSharding& in, Sharding& out) {
  out.tile_dims.assign(in.tile_assignment_dimensions().begin(), in.tile_assignment_dimensions().end());
  out.devices.assign(in.tile_assignment_devices().begin(), in.tile_assignment_devices().end());
  out.reshape.assign(in.iota_reshape_dims().begin(), in.iota_reshape_dims().end());
  out.permutation.assign(in.iota_transpose_perm().begin(), in.iota_transpose_perm().end());
  out.iota = !out.reshape.empty();
  if (out.tile_dims.empty()) return invalid_argument("field 'tile_assignment_dimensions' is empty");
  if (out.iota == !out.devices.empty())
    return invalid_argument("a tiled sharding has either 'tile_assignment_devices' or 'iota_reshape_dims'");
  if (out.reshape.size() != out.permutation.size())
    return invalid_argument("'iota_reshape_dims' and 'iota_transpose_perm' differ in length");
  std::vector<bool> seen(out.reshape.size());
  for (int64_t d : out.permutation) {
    if (d < 0 || d >= static_cast<int64_t>(seen.size()) || seen[static_cast<size_t>(d)])
      return invalid_argument("field 'iota_transpose_perm' is no order of the dimensions");
    seen[static_cast<size_t>(d)] = true;
  }
  return ok_status();
}

}  // namespace

Expected<Sharding> from_wire(const wire::OpSharding& in) {
  Sharding out;
  if (in.has_named_sharding()) {
    out.kind = Kind::Named;
    COLLET_ASSIGN(out.named, named_text(in.named_sharding()));
    return out;
  }
  COLLET_ASSIGN(out.kind, kind_of(in.type()));
  switch (out.kind) {
    case Kind::Tuple:
      for (const wire::OpSharding& element : in.tuple_shardings()) {
        COLLET_ASSIGN(Sharding sharding, from_wire(element));
        if (sharding.kind == Kind::Tuple) return invalid_argument("a sharding of a tuple holds that of a tuple");
        out.elements.push_back(std::move(sharding));
      }
      return out;
    case Kind::Maximal:
      if (in.tile_assignment_devices_size() != 1) return invalid_argument("a maximal sharding has one device");
      out.device = in.tile_assignment_devices(0);
      break;
    case Kind::Tiled:
      COLLET_TRY(read_tiles(in, out));
      break;
    default:
      break;
  }
  out.last_tile_dim_replicate = in.replicate_on_last_tile_dim();
  for (int32_t number : in.last_tile_dims()) {
    COLLET_ASSIGN(const Kind kind, kind_of(number));
    out.last_tile_dims.push_back(kind);
  }
  if (in.metadata_size()) out.metadata = metadata_text(in.metadata(), false);
  if (in.is_shard_group()) {
    out.group = in.shard_group_type() == 1 ? Sharding::Group::Like : Sharding::Group::As;
    out.group_id = in.shard_group_id();
  }
  return out;
}

Status to_wire(const Sharding& sharding, wire::OpSharding* out) {
  if (sharding.kind == Kind::Named) return named_to_wire(sharding.named, out->mutable_named_sharding());
  out->set_type(static_cast<int32_t>(std::find(std::begin(kKinds), std::end(kKinds), sharding.kind) - kKinds));
  for (const Sharding& element : sharding.elements) COLLET_TRY(to_wire(element, out->add_tuple_shardings()));
  if (sharding.kind == Kind::Maximal) {
    out->add_tile_assignment_dimensions(1);
    out->add_tile_assignment_devices(sharding.device);
  }
  if (sharding.kind == Kind::Tiled) {
    for (int64_t size : sharding.tile_dims) out->add_tile_assignment_dimensions(size);
    if (sharding.iota) {
      for (int64_t size : sharding.reshape) out->add_iota_reshape_dims(size);
      for (int64_t d : sharding.permutation) out->add_iota_transpose_perm(static_cast<int32_t>(d));
    } else {
      for (int64_t device : sharding.devices) out->add_tile_assignment_devices(device);
    }
  }
  out->set_replicate_on_last_tile_dim(sharding.last_tile_dim_replicate);
  for (Kind kind : sharding.last_tile_dims)
    out->add_last_tile_dims(static_cast<int32_t>(std::find(std::begin(kKinds), std::end(kKinds), kind) - kKinds));
  if (sharding.group != Sharding::Group::None) {
    out->set_is_shard_group(true);
    out->set_shard_group_type(sharding.group == Sharding::Group::Like);
    out->set_shard_group_id(sharding.group_id);
  }
  return sharding.metadata.empty() ? ok_status() : metadata_to_wire(sharding.metadata, out->mutable_metadata());
}

}  // namespace collet::hlo::proto
