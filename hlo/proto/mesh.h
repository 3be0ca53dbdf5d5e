// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "hlo/proto/wire.h"

/// \file
/// Converts attributes that modules keep as HLO text and that messages store in separate fields: shardings and groups
/// on named meshes, the metadata of shardings, and domains.

namespace collet::hlo::proto {

/// Converts text such as "mesh['x'=2], [{'x'}, {?}]".
Status named_to_wire(std::string_view text, wire::NamedShardingProto* out);
Expected<std::string> named_text(const wire::NamedShardingProto& in);

/// Converts text such as "mesh['x'=2,'y'=4] {'x'}".
Status mesh_groups_to_wire(std::string_view text, wire::MeshAxesReplicaGroupListProto* out);
Expected<std::string> mesh_groups_text(const wire::MeshAxesReplicaGroupListProto& in);

using MetadataList = google::protobuf::RepeatedPtrField<wire::OpMetadata>;
/// Converts "{op_name=\"a\"}", or several: "{{...}, {...}}".
Status metadata_to_wire(std::string_view text, MetadataList* out);
std::string metadata_text(const MetadataList& in, bool always_a_list);

/// Converts text such as "{kind=\"sharding\", entry={...}, exit={...}}".
Status domain_to_wire(std::string_view text, wire::HloInstructionProto& out);

}  // namespace collet::hlo::proto
