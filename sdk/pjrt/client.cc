// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/client.h"

#include <algorithm>
#include <utility>

#include "sdk/pjrt/call.h"
#include "sdk/pjrt/processes.h"

namespace collet::pjrt {
namespace {

const char* text_or_null(const std::string& text) {
  return text.empty() ? nullptr : text.c_str();
}

PJRT_Error* open(PJRT_Client& client) {
  const Settings& s = client.settings;
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : s.others) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  collet_client_options options{};
  options.struct_size = sizeof options;
  options.device_count = s.device_count;
  options.backend = text_or_null(s.backend);
  options.fallback = text_or_null(s.fallback);
  options.target = text_or_null(s.target);
  options.keys = keys.data();
  options.values = values.data();
  options.pairs = static_cast<uint32_t>(keys.size());
  COLLET_PJRT_TRY(collet_client_open(&options, &client.handle, &failure));
  return nullptr;
}

PJRT_NamedValue coordinates_attribute(const std::vector<int64_t>& coordinates) {
  PJRT_NamedValue value{};
  value.struct_size = sizeof value;
  value.name = "coords";
  value.name_size = 6;
  value.type = PJRT_NamedValue_kInt64List;
  value.int64_array_value = coordinates.data();
  value.value_size = coordinates.size();
  return value;
}

void describe(PJRT_DeviceDescription& d, uint32_t process, const char* kind, const int32_t* coordinates,
              uint32_t number, const std::string& platform) {
  d.id = static_cast<int>(number);
  d.process = static_cast<int>(process);
  d.kind = kind && *kind ? kind : platform;
  d.text = platform + ":" + std::to_string(number);
  d.debug_text = platform + ":" + std::to_string(number) + " (" + d.kind + ")";
  d.coordinates.assign(coordinates, coordinates + 3);
  d.attributes.push_back(coordinates_attribute(d.coordinates));
}

// Adds a device of this process; `id` is its number among those of all processes.
PJRT_Error* add_device(PJRT_Client& client, uint32_t id, uint32_t number) {
  collet_client_device_info info{};
  info.struct_size = sizeof info;
  COLLET_PJRT_TRY(collet_client_device_info_get(client.handle, number, &info, &failure));
  auto device = std::make_unique<PJRT_Device>();
  device->client = &client;
  device->number = number;
  describe(device->description, client.settings.process, info.kind, info.coordinates, id, client.settings.platform);
  for (uint32_t space = 0; const char* kind = collet_client_space_kind(client.handle, number, space); ++space) {
    auto memory = std::make_unique<Memory>(device.get(), space, static_cast<int>(client.memories.size()), kind);
    client.memories.push_back(memory.get());
    device->memories.push_back(memory.get());
    PJRT_DeviceDescription& described = device->description;
    described.memories.push_back({memory->kind, memory->kind_id});
    described.memory_pointers.push_back(&described.memories.back());
    if (space == info.default_space) {
      device->default_memory = memory.get();
      described.default_memory = space;
    }
    device->owned.push_back(std::move(memory));
  }
  if (!device->default_memory) return make_error(PJRT_Error_Code_INTERNAL, "a device without memory");
  client.devices.push_back(device.get());
  client.own_devices.push_back(device.get());
  client.owned.push_back(std::move(device));
  return nullptr;
}

// Adds the devices of all processes.
PJRT_Error* add_devices(PJRT_Client& client) {
  for (uint32_t id = 0;; ++id) {
    collet_global_device global{};
    global.struct_size = sizeof global;
    collet_error failure{};
    const collet_status status = collet_client_global_device_get(client.handle, id, &global, &failure);
    if (status == COLLET_OUT_OF_RANGE) return nullptr;
    if (status != COLLET_OK) return from_collet(status, failure.message);
    if (global.process == client.settings.process) {
      COLLET_PJRT_CHECK(add_device(client, id, global.device));
      continue;
    }
    auto device = std::make_unique<PJRT_Device>();
    device->client = &client;
    device->number = global.device;
    device->is_own = false;
    describe(device->description, global.process, global.kind, global.coordinates, id, client.settings.platform);
    client.devices.push_back(device.get());
    client.owned.push_back(std::move(device));
  }
}

PJRT_Error* look_around(PJRT_Client& client) {
  collet_client_info info{};
  info.struct_size = sizeof info;
  COLLET_PJRT_TRY(collet_client_info_get(client.handle, &info, &failure));
  client.version = std::string("Collet ") + collet_version() + ", backend " + info.backend + " " +
                   info.backend_version + (*info.fallback ? std::string(", fallback ") + info.fallback : "");
  if (client.settings.processes > 1) {
    COLLET_PJRT_CHECK(add_devices(client));
  } else {
    for (uint32_t d = 0; d < info.device_count; ++d) COLLET_PJRT_CHECK(add_device(client, d, d));
  }
  PJRT_TopologyDescription& topology = client.topology;
  topology.client = &client;
  topology.platform = client.settings.platform;
  topology.version = client.version;
  for (PJRT_Device* d : client.devices) topology.descriptions.push_back(&d->description);
  return nullptr;
}

}  // namespace

PJRT_Error* open_client(PJRT_Client& client, const PJRT_Client_Create_Args* caller) {
  COLLET_PJRT_CHECK(open(client));
  if (caller)
    COLLET_PJRT_CHECK(join_processes(client, *caller));
  else
    client.settings.process = 0, client.settings.processes = 1;
  return look_around(client);
}

PJRT_Error* call(PJRT_Client_Create_Args& args) {
  auto client = std::make_unique<PJRT_Client>();
  COLLET_PJRT_CHECK(read_settings(args.create_options, args.num_options, client->settings));
  COLLET_PJRT_CHECK(open_client(*client, &args));
  args.client = client.release();
  return nullptr;
}

PJRT_Error* call(PJRT_Client_Destroy_Args& args) {
  delete args.client;
  return nullptr;
}

PJRT_Error* call(PJRT_Client_PlatformName_Args& args) {
  return lend(args.client->settings.platform, args.platform_name, args.platform_name_size);
}

PJRT_Error* call(PJRT_Client_PlatformVersion_Args& args) {
  return lend(args.client->version, args.platform_version, args.platform_version_size);
}

PJRT_Error* call(PJRT_Client_ProcessIndex_Args& args) {
  args.process_index = args.client->settings.processes > 1 ? static_cast<int>(args.client->settings.process) : 0;
  return nullptr;
}

PJRT_Error* call(PJRT_Client_Devices_Args& args) {
  return lend(args.client->devices, args.devices, args.num_devices);
}

PJRT_Error* call(PJRT_Client_AddressableDevices_Args& args) {
  return lend(args.client->own_devices, args.addressable_devices, args.num_addressable_devices);
}

static PJRT_Error* look_up(const std::vector<PJRT_Device*>& devices, int number, PJRT_Device*& out) {
  if (number < 0 || static_cast<size_t>(number) >= devices.size())
    return invalid_argument("there is no device " + std::to_string(number) + " among " +
                            std::to_string(devices.size()));
  out = devices[static_cast<size_t>(number)];
  return nullptr;
}

PJRT_Error* call(PJRT_Client_LookupDevice_Args& args) {
  return look_up(args.client->devices, args.id, args.device);
}

PJRT_Error* call(PJRT_Client_LookupAddressableDevice_Args& args) {
  return look_up(args.client->own_devices, args.local_hardware_id, args.addressable_device);
}

PJRT_Error* call(PJRT_Client_AddressableMemories_Args& args) {
  return lend(args.client->memories, args.addressable_memories, args.num_addressable_memories);
}

PJRT_Error* call(PJRT_Client_DefaultDeviceAssignment_Args& args) {
  const int64_t wanted = int64_t{args.num_replicas} * args.num_partitions;
  if (args.num_replicas < 1 || args.num_partitions < 1 || wanted > static_cast<int64_t>(args.client->devices.size()))
    return invalid_argument(std::to_string(args.num_replicas) + " replicas of " + std::to_string(args.num_partitions) +
                            " partitions on " + std::to_string(args.client->devices.size()) + " devices");
  if (static_cast<int64_t>(args.default_assignment_size) < wanted)
    return failed_precondition("room for " + std::to_string(args.default_assignment_size) + " of " +
                               std::to_string(wanted) + " devices");
  // A program that fits into this process stays in it.
  const std::vector<PJRT_Device*>& own = args.client->own_devices;
  const auto& devices = wanted <= static_cast<int64_t>(own.size()) ? own : args.client->devices;
  for (int64_t i = 0; i < wanted; ++i) args.default_assignment[i] = devices[static_cast<size_t>(i)]->description.id;
  return nullptr;
}

PJRT_Error* call(PJRT_Client_UpdateGlobalProcessInfo_Args&) {
  return nullptr;  // the transport notices itself which processes are lost
}

}  // namespace collet::pjrt
