// SPDX-License-Identifier: Apache-2.0
#include <collet/hash.h>

#include <utility>

#include "sdk/pjrt/call.h"
#include "sdk/pjrt/client.h"

namespace collet::pjrt {
namespace {

void* get_user_data(PJRT_Memory* memory, const void* key) {
  auto* m = static_cast<Memory*>(memory);
  const std::lock_guard lock(m->mutex);
  const auto found = m->user_data.find(key);
  return found == m->user_data.end() ? nullptr : found->second.data;
}

void set_user_data(PJRT_Memory* memory, const void* key, void* data, void (*destroy)(void*)) {
  auto* m = static_cast<Memory*>(memory);
  Memory::UserData old{};
  {
    const std::lock_guard lock(m->mutex);
    old = std::exchange(m->user_data[key], Memory::UserData{data, destroy});
  }
  if (old.data && old.destroy) old.destroy(old.data);
}

constexpr PJRT_Memory_FunctionTable kTable = {sizeof(PJRT_Memory_FunctionTable), nullptr, sizeof(Memory), get_user_data,
                                              set_user_data};

// Returns a number for a kind of device, which is equal in all processes.
int number_of_kind(const std::string& kind) {
  return static_cast<int>(collet_hash_bytes(0, kind.data(), kind.size()) & 0x7fffffff);
}

}  // namespace

Memory::Memory(PJRT_Device* of_device, uint32_t space_number, int number, const char* kind_name)
    : PJRT_Memory{&kTable},
      device(of_device),
      space(space_number),
      id(number),
      kind_id(number_of_kind(kind_name)),
      kind(kind_name),
      text(of_device->description.text + "/" + kind_name) {}

PJRT_Error* of_another_process(const PJRT_Device& device) {
  return failed_precondition("device " + device.description.text + " belongs to process " +
                             std::to_string(device.description.process) + "; its memory cannot be used here");
}

Memory::~Memory() {
  for (const auto& [key, value] : user_data)
    if (value.data && value.destroy) value.destroy(value.data);
}

PJRT_Error* call(PJRT_DeviceDescription_Id_Args& args) {
  args.id = args.device_description->id;
  return nullptr;
}

PJRT_Error* call(PJRT_DeviceDescription_ProcessIndex_Args& args) {
  args.process_index = args.device_description->process;
  return nullptr;
}

PJRT_Error* call(PJRT_DeviceDescription_Attributes_Args& args) {
  return lend(args.device_description->attributes, args.attributes, args.num_attributes);
}

PJRT_Error* call(PJRT_DeviceDescription_Kind_Args& args) {
  return lend(args.device_description->kind, args.device_kind, args.device_kind_size);
}

PJRT_Error* call(PJRT_DeviceDescription_DebugString_Args& args) {
  return lend(args.device_description->debug_text, args.debug_string, args.debug_string_size);
}

PJRT_Error* call(PJRT_DeviceDescription_ToString_Args& args) {
  return lend(args.device_description->text, args.to_string, args.to_string_size);
}

PJRT_Error* call(PJRT_Device_GetDescription_Args& args) {
  args.device_description = &args.device->description;
  return nullptr;
}

PJRT_Error* call(PJRT_Device_IsAddressable_Args& args) {
  args.is_addressable = args.device->is_own;
  return nullptr;
}

PJRT_Error* call(PJRT_Device_LocalHardwareId_Args& args) {
  args.local_hardware_id = static_cast<int>(args.device->number);
  return nullptr;
}

PJRT_Error* call(PJRT_Device_AddressableMemories_Args& args) {
  return lend(args.device->memories, args.memories, args.num_memories);
}

PJRT_Error* call(PJRT_Device_DefaultMemory_Args& args) {
  if (!args.device->is_own) return of_another_process(*args.device);
  args.memory = args.device->default_memory;
  return nullptr;
}

PJRT_Error* call(PJRT_Device_MemoryStats_Args& args) {
  if (!args.device->is_own) return of_another_process(*args.device);
  collet_client_device_info info{};
  info.struct_size = sizeof info;
  COLLET_PJRT_TRY(collet_client_device_info_get(args.device->client->handle, args.device->number, &info, &failure));
  PJRT_Device_MemoryStats_Args out{};  // unknown values are not set
  out.struct_size = args.struct_size;
  out.extension_start = args.extension_start;
  out.device = args.device;
  args = out;
  args.bytes_in_use = static_cast<int64_t>(info.bytes_in_use);
  args.peak_bytes_in_use = static_cast<int64_t>(info.peak_bytes);
  args.peak_bytes_in_use_is_set = true;
  const uint64_t limit = info.device_bytes_limit ? info.device_bytes_limit : info.capacity;
  args.bytes_limit = static_cast<int64_t>(limit);
  args.bytes_limit_is_set = limit != 0;
  const bool told = info.device_allocations || info.device_bytes_in_use || info.device_peak_bytes;
  args.num_allocs = static_cast<int64_t>(info.device_allocations);
  args.bytes_reserved = static_cast<int64_t>(info.device_bytes_in_use);
  args.peak_bytes_reserved = static_cast<int64_t>(info.device_peak_bytes);
  args.num_allocs_is_set = args.bytes_reserved_is_set = args.peak_bytes_reserved_is_set = told;
  return nullptr;
}

PJRT_Error* call(PJRT_Device_ClearMemoryStats_Args&) {
  return unimplemented("memory statistics cannot be cleared");
}

PJRT_Error* call(PJRT_Device_GetAttributes_Args& args) {
  args.attributes = args.device->description.attributes.data();
  args.num_attributes = args.device->description.attributes.size();
  args.device_attributes = nullptr;
  args.attributes_deleter = [](PJRT_Device_Attributes*) {};
  return nullptr;
}

PJRT_Error* call(PJRT_Memory_Id_Args& args) {
  args.id = static_cast<Memory*>(args.memory)->id;
  return nullptr;
}

PJRT_Error* call(PJRT_Memory_Kind_Args& args) {
  return lend(static_cast<Memory*>(args.memory)->kind, args.kind, args.kind_size);
}

PJRT_Error* call(PJRT_Memory_Kind_Id_Args& args) {
  args.kind_id = static_cast<Memory*>(args.memory)->kind_id;
  return nullptr;
}

PJRT_Error* call(PJRT_Memory_DebugString_Args& args) {
  return lend(static_cast<Memory*>(args.memory)->text, args.debug_string, args.debug_string_size);
}

PJRT_Error* call(PJRT_Memory_ToString_Args& args) {
  return lend(static_cast<Memory*>(args.memory)->text, args.to_string, args.to_string_size);
}

PJRT_Error* call(PJRT_Memory_AddressableByDevices_Args& args) {
  args.devices = &static_cast<Memory*>(args.memory)->device;
  args.num_devices = 1;
  return nullptr;
}

}  // namespace collet::pjrt
