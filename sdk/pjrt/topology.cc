// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string_view>
#include <utility>

#include "hlo/base/sha256.h"
#include "sdk/pjrt/call.h"
#include "sdk/pjrt/client.h"
#include "sdk/pjrt/wire.h"

namespace collet::pjrt {

PJRT_Error* call(PJRT_Client_TopologyDescription_Args& args) {
  args.topology = &args.client->topology;
  return nullptr;
}

namespace {

// The fields of the message to which a topology is serialized.
enum Field : uint32_t {
  kPlatform = 1,
  kBackend = 2,
  kFallback = 3,
  kTarget = 4,
  kDeviceCount = 5,
  kOther = 6,
  // Written only if they differ from the defaults, because older versions refuse fields that they do not know.
  kHostCalls = 7,
  kRealSizes = 8
};
enum OtherField : uint32_t { kKey = 1, kValue = 2 };

// Serialized settings begin with their SHA-256: a changed name would select another device.
std::string digest_of(std::string_view fields) {
  const Sha256::Digest digest = Sha256().add(fields).digest();
  return {digest.begin(), digest.end()};
}

std::string write_settings(const Settings& settings) {
  std::string out;
  put_bytes(out, kPlatform, settings.platform);
  put_bytes(out, kBackend, settings.backend);
  put_bytes(out, kFallback, settings.fallback);
  put_bytes(out, kTarget, settings.target);
  put_number(out, kDeviceCount, settings.device_count);
  if (settings.host_calls != HostCalls::Ready) put_number(out, kHostCalls, static_cast<uint64_t>(settings.host_calls));
  if (settings.real_sizes) put_number(out, kRealSizes, 1);
  for (const auto& [key, value] : settings.others) {
    std::string other;
    put_bytes(other, kKey, key);
    put_bytes(other, kValue, value);
    put_bytes(out, kOther, other);
  }
  return out;
}

bool read_other(std::string_view bytes, Settings& out) {
  WireReader reader(bytes);
  std::string key, value;
  while (reader.next()) {
    if (reader.field() == kKey) key = reader.bytes();
    if (reader.field() == kValue) value = reader.bytes();
  }
  out.others[key] = value;
  return reader.ok() && !key.empty();
}

PJRT_Error* read_settings(std::string_view bytes, Settings& out) {
  WireReader reader(bytes);
  bool good = !bytes.empty();
  while (good && reader.next()) {
    switch (reader.field()) {
      case kPlatform:
        out.platform = reader.bytes();
        break;
      case kBackend:
        out.backend = reader.bytes();
        break;
      case kFallback:
        out.fallback = reader.bytes();
        break;
      case kTarget:
        out.target = reader.bytes();
        break;
      case kDeviceCount:
        out.device_count = static_cast<uint32_t>(reader.number());
        break;
      case kOther:
        good = read_other(reader.bytes(), out);
        break;
      case kHostCalls:
        good = reader.number() <= static_cast<uint64_t>(HostCalls::Queue);
        out.host_calls = static_cast<HostCalls>(reader.number());
        break;
      case kRealSizes:
        out.real_sizes = reader.number() != 0;
        break;
      default:
        good = false;
    }
  }
  return good && reader.ok() ? nullptr : invalid_argument("these bytes are no serialized topology");
}

// Opens the client that compiles for a topology.
PJRT_Error* make(Settings settings, PJRT_TopologyDescription*& out) {
  auto compiler = std::make_shared<PJRT_Client>();
  compiler->settings = std::move(settings);
  COLLET_PJRT_CHECK(open_client(*compiler));
  auto* topology = new PJRT_TopologyDescription(compiler->topology);
  topology->compiler = std::move(compiler);
  out = topology;
  return nullptr;
}

}  // namespace

PJRT_Error* call(PJRT_TopologyDescription_Create_Args& args) {
  Settings settings;
  COLLET_PJRT_CHECK(read_settings(args.create_options, args.num_options, settings));
  if (args.topology_name_size > 0) settings.target.assign(args.topology_name, args.topology_name_size);
  return make(std::move(settings), args.topology);
}

PJRT_Error* call(PJRT_TopologyDescription_Serialize_Args& args) {
  const std::string fields = write_settings(args.topology->client->settings);
  auto* text = new std::string(digest_of(fields) + fields);
  args.serialized_bytes = text->data();
  args.serialized_bytes_size = text->size();
  args.serialized_topology = reinterpret_cast<PJRT_SerializedTopology*>(text);
  args.serialized_topology_deleter = [](PJRT_SerializedTopology* made) { delete reinterpret_cast<std::string*>(made); };
  return nullptr;
}

PJRT_Error* call(PJRT_TopologyDescription_Deserialize_Args& args) {
  Settings settings;
  const std::string_view bytes(args.serialized_topology, args.serialized_topology_size);
  const std::string_view digest = bytes.substr(0, sizeof(Sha256::Digest)), fields = bytes.substr(digest.size());
  if (digest != digest_of(fields)) return invalid_argument("these bytes are no serialized topology, or a damaged one");
  COLLET_PJRT_CHECK(read_settings(fields, settings));
  return make(std::move(settings), args.topology);
}

PJRT_Error* call(PJRT_TopologyDescription_Destroy_Args& args) {
  if (args.topology && args.topology->compiler) delete args.topology;  // other topologies belong to clients
  return nullptr;
}

PJRT_Error* call(PJRT_TopologyDescription_PlatformName_Args& args) {
  return lend(args.topology->platform, args.platform_name, args.platform_name_size);
}

PJRT_Error* call(PJRT_TopologyDescription_PlatformVersion_Args& args) {
  return lend(args.topology->version, args.platform_version, args.platform_version_size);
}

PJRT_Error* call(PJRT_TopologyDescription_GetDeviceDescriptions_Args& args) {
  return lend(args.topology->descriptions, args.descriptions, args.num_descriptions);
}

PJRT_Error* call(PJRT_TopologyDescription_Attributes_Args& args) {
  args.attributes = nullptr;
  args.num_attributes = 0;
  return nullptr;
}

PJRT_Error* call(PJRT_TopologyDescription_Fingerprint_Args& args) {
  // JAX keeps programs by it: whatever compiles to other code has another one.
  std::string text;
  put_bytes(text, kBackend, args.topology->version);
  put_bytes(text, kOther, write_settings(args.topology->client->settings));
  for (const PJRT_DeviceDescription* description : args.topology->descriptions)
    put_bytes(text, kTarget, description->kind);
  const Sha256::Digest digest = Sha256().add(text).digest();
  static_assert(sizeof args.fingerprint <= sizeof digest);
  std::memcpy(&args.fingerprint, digest.data(), sizeof args.fingerprint);
  return nullptr;
}

}  // namespace collet::pjrt
