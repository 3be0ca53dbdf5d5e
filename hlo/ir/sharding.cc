// SPDX-License-Identifier: Apache-2.0
#include "hlo/ir/sharding.h"

namespace collet::hlo {
namespace {

std::string_view kind_text(Sharding::Kind kind) {
  switch (kind) {
    case Sharding::Kind::Replicated:
      return "replicated";
    case Sharding::Kind::Manual:
      return "manual";
    case Sharding::Kind::Unknown:
      return "unknown";
    case Sharding::Kind::Unreduced:
      return "unreduced";
    case Sharding::Kind::Maximal:
      return "maximal";
    default:
      return "";
  }
}

void append_list(const std::vector<int64_t>& list, std::string& out) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) out += ',';
    out += std::to_string(list[i]);
  }
}

void append_tiles(const Sharding& s, std::string& out) {
  out += "devices=[";
  append_list(s.tile_dims, out);
  out += ']';
  if (!s.iota) return append_list(s.devices, out);
  out += "<=[";
  append_list(s.reshape, out);
  out += ']';
  if (s.reshape.size() < 2) return;
  out += "T(";
  append_list(s.permutation, out);
  out += ')';
}

void append(const Sharding& s, std::string& out) {
  out += '{';
  switch (s.kind) {
    case Sharding::Kind::Tuple:
      for (size_t i = 0; i < s.elements.size(); ++i) {
        if (i) out += ", ";
        append(s.elements[i], out);
      }
      break;
    case Sharding::Kind::Named:
      out += s.named;
      break;
    case Sharding::Kind::Tiled:
      append_tiles(s, out);
      break;
    case Sharding::Kind::Maximal:
      out += "maximal device=" + std::to_string(s.device);
      break;
    default:
      out += kind_text(s.kind);
  }
  if (s.last_tile_dim_replicate) out += " last_tile_dim_replicate";
  if (!s.last_tile_dims.empty()) {
    out += " last_tile_dims={";
    for (size_t i = 0; i < s.last_tile_dims.size(); ++i) {
      if (i) out += ", ";
      out += kind_text(s.last_tile_dims[i]);
    }
    out += '}';
  }
  if (s.group != Sharding::Group::None)
    out += (s.group == Sharding::Group::As ? " shard_as " : " shard_like ") + std::to_string(s.group_id);
  if (!s.metadata.empty()) out += " metadata=" + s.metadata;
  out += '}';
}

}  // namespace

std::string Sharding::to_string() const {
  std::string out;
  append(*this, out);
  return out;
}

}  // namespace collet::hlo
