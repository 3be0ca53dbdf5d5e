// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/compile_options.h"

#include "sdk/pjrt/error.h"
#include "sdk/pjrt/wire.h"

namespace collet::pjrt {
namespace {

constexpr uint64_t kMostParticipants = 4096;
constexpr uint64_t kLargestDevice = 0x7FFFFFFF;

// The numbers of the fields that are read.
enum { kBuildOptions = 3, kPortable = 4, kOverrides = 7 };
enum { kDeviceOrdinal = 1, kNumReplicas = 4, kNumPartitions = 5, kUseSpmd = 6, kDeviceAssignment = 9 };
enum { kReplicaCount = 1, kComputationCount = 2, kComputationDevices = 3 };

PJRT_Error* malformed() {
  return invalid_argument("the compile options are not a CompileOptionsProto");
}

bool read_devices(std::string_view bytes, std::vector<uint64_t>& out) {
  WireReader reader(bytes);
  while (reader.next()) {
    if (reader.field() != 1) continue;
    if (reader.wire_type() == 0) {
      out.push_back(reader.number());
      continue;
    }
    std::string_view packed = reader.bytes();
    for (uint64_t id; !packed.empty(); out.push_back(id))
      if (!take_varint(packed, id)) return false;
  }
  return reader.ok();
}

PJRT_Error* read_assignment(std::string_view bytes, CompileOptions& out) {
  uint64_t replicas = 0, partitions = 0;
  std::vector<std::vector<uint64_t>> devices;
  WireReader reader(bytes);
  while (reader.next()) {
    if (reader.field() == kReplicaCount) replicas = reader.number();
    if (reader.field() == kComputationCount) partitions = reader.number();
    if (reader.field() == kComputationDevices && !read_devices(reader.bytes(), devices.emplace_back()))
      return malformed();
  }
  if (!reader.ok()) return malformed();
  if (replicas > kMostParticipants || partitions > kMostParticipants || devices.size() != partitions)
    return invalid_argument("the device assignment does not fit its counts");
  for (const std::vector<uint64_t>& ids : devices) {
    if (ids.size() != replicas) return invalid_argument("the device assignment does not fit its counts");
    for (const uint64_t id : ids)
      if (id > kLargestDevice) return invalid_argument("there is no device " + std::to_string(id));
  }
  out.assignment.assign(replicas * partitions, 0);
  for (uint64_t p = 0; p < partitions; ++p)
    for (uint64_t r = 0; r < replicas; ++r) out.assignment[r * partitions + p] = static_cast<uint32_t>(devices[p][r]);
  return nullptr;
}

PJRT_Error* read_count(uint64_t number, uint32_t& out) {
  if (number > kMostParticipants)
    return invalid_argument("more than " + std::to_string(kMostParticipants) + " replicas or partitions");
  out = number ? static_cast<uint32_t>(number) : 1;
  return nullptr;
}

PJRT_Error* read_build_options(std::string_view bytes, CompileOptions& out) {
  WireReader reader(bytes);
  while (reader.next()) switch (reader.field()) {
      case kDeviceOrdinal:
        out.device_ordinal = static_cast<int64_t>(reader.number());
        break;
      case kNumReplicas:
        COLLET_PJRT_CHECK(read_count(reader.number(), out.replicas));
        break;
      case kNumPartitions:
        COLLET_PJRT_CHECK(read_count(reader.number(), out.partitions));
        break;
      case kUseSpmd:
        out.partition = reader.number() != 0;
        break;
      case kDeviceAssignment:
        COLLET_PJRT_CHECK(read_assignment(reader.bytes(), out));
        break;
    }
  return reader.ok() ? nullptr : malformed();
}

// Options that users set for XLA have no meaning here and are ignored; any other unknown option is an error.
PJRT_Error* check_override(std::string_view bytes) {
  WireReader reader(bytes);
  std::string name;
  while (reader.next())
    if (reader.field() == 1) name = reader.bytes();
  if (!reader.ok()) return malformed();
  if (name.starts_with("xla_")) return nullptr;
  return invalid_argument("No such compile option: '" + name + "'");
}

}  // namespace

PJRT_Error* read_compile_options(std::string_view bytes, CompileOptions& out) {
  WireReader reader(bytes);
  while (reader.next()) {
    if (reader.field() == kBuildOptions) COLLET_PJRT_CHECK(read_build_options(reader.bytes(), out));
    if (reader.field() == kPortable) out.portable = reader.number() != 0;
    if (reader.field() == kOverrides) COLLET_PJRT_CHECK(check_override(reader.bytes()));
  }
  if (!reader.ok()) return malformed();
  if (!out.assignment.empty() && out.assignment.size() != uint64_t{out.replicas} * out.partitions)
    return invalid_argument("the device assignment does not fit " + std::to_string(out.replicas) + " replicas of " +
                            std::to_string(out.partitions) + " partitions");
  if (out.assignment.empty() && out.device_ordinal >= 0 && out.replicas * out.partitions == 1) {
    if (static_cast<uint64_t>(out.device_ordinal) > kLargestDevice)
      return invalid_argument("there is no device " + std::to_string(out.device_ordinal));
    out.assignment.push_back(static_cast<uint32_t>(out.device_ordinal));
  }
  return nullptr;
}

std::string write_assignment(const CompileOptions& options) {
  std::string out;
  put_number(out, kReplicaCount, options.replicas);
  put_number(out, kComputationCount, options.partitions);
  for (uint32_t p = 0; p < options.partitions; ++p) {
    std::string ids, device;
    for (uint32_t r = 0; r < options.replicas; ++r) put_varint(ids, options.assignment[r * options.partitions + p]);
    put_bytes(device, 1, ids);
    put_bytes(out, kComputationDevices, device);
  }
  return out;
}

}  // namespace collet::pjrt
