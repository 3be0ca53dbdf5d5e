// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/memory_descriptions.h"

#include "sdk/pjrt/api/extensions.h"
#include "sdk/pjrt/call.h"
#include "sdk/pjrt/client.h"

namespace collet::pjrt {
namespace {

PJRT_Error* memories_of(PJRT_DeviceDescription_MemoryDescriptions_Args* caller) {
  using Args = PJRT_DeviceDescription_MemoryDescriptions_Args;
  return guarded(caller, "PJRT_DeviceDescription_MemoryDescriptions_Args", sizeof(Args), sizeof(Args), [](Args& args) {
    args.default_memory_index = args.device_description->default_memory;
    return lend(args.device_description->memory_pointers, args.memory_descriptions, args.num_memory_descriptions);
  });
}

PJRT_Error* kind_of(PJRT_MemoryDescription_Kind_Args* caller) {
  using Args = PJRT_MemoryDescription_Kind_Args;
  constexpr size_t kFull = offsetof(Args, kind_id) + sizeof(Args::kind_id);
  return guarded(caller, "PJRT_MemoryDescription_Kind_Args", kFull, kFull, [](Args& args) {
    args.kind_id = args.memory_description->kind_id;
    return lend(args.memory_description->kind, args.kind, args.kind_size);
  });
}

}  // namespace

PJRT_Extension_Base* memory_descriptions_extension(PJRT_Extension_Base* next) {
  static PJRT_MemoryDescriptions_Extension extension = {
      {sizeof(PJRT_MemoryDescriptions_Extension), PJRT_Extension_Type_MemoryDescriptions, nullptr},
      memories_of,
      kind_of};
  extension.base.next = next;
  return &extension.base;
}

}  // namespace collet::pjrt
