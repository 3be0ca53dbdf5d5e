// SPDX-License-Identifier: Apache-2.0
// Tests what frontends ask of devices and memories.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sdk/pjrt/testing/plugin.h"

namespace collet::pjrt {
namespace {

using namespace collet::pjrt::testing;

class DevicesTest : public Plugin {
 protected:
  PJRT_DeviceDescription* description() {
    auto args = args_of<PJRT_Device_GetDescription_Args>();
    args.device = device;
    expect_ok(api()->PJRT_Device_GetDescription(&args));
    return args.device_description;
  }

  std::vector<PJRT_Memory*> memories() {
    auto args = args_of<PJRT_Device_AddressableMemories_Args>();
    args.device = device;
    expect_ok(api()->PJRT_Device_AddressableMemories(&args));
    return {args.memories, args.memories + args.num_memories};
  }

  int kind_id(PJRT_Memory* memory) {
    auto args = args_of<PJRT_Memory_Kind_Id_Args>();
    args.memory = memory;
    expect_ok(api()->PJRT_Memory_Kind_Id(&args));
    return args.kind_id;
  }

  std::string kind(PJRT_Memory* memory) {
    auto args = args_of<PJRT_Memory_Kind_Args>();
    args.memory = memory;
    expect_ok(api()->PJRT_Memory_Kind(&args));
    return {args.kind, args.kind_size};
  }
};

TEST_F(DevicesTest, DescriptionsNameTheDevice) {
  auto id = args_of<PJRT_DeviceDescription_Id_Args>();
  id.device_description = description();
  expect_ok(api()->PJRT_DeviceDescription_Id(&id));
  EXPECT_EQ(id.id, 0);
  auto process = args_of<PJRT_DeviceDescription_ProcessIndex_Args>();
  process.device_description = description();
  expect_ok(api()->PJRT_DeviceDescription_ProcessIndex(&process));
  EXPECT_EQ(process.process_index, 0);
  auto kind = args_of<PJRT_DeviceDescription_Kind_Args>();
  kind.device_description = description();
  expect_ok(api()->PJRT_DeviceDescription_Kind(&kind));
  EXPECT_GT(kind.device_kind_size, 0u);
  auto text = args_of<PJRT_DeviceDescription_ToString_Args>();
  text.device_description = description();
  expect_ok(api()->PJRT_DeviceDescription_ToString(&text));
  auto debug = args_of<PJRT_DeviceDescription_DebugString_Args>();
  debug.device_description = description();
  expect_ok(api()->PJRT_DeviceDescription_DebugString(&debug));
  EXPECT_GT(text.to_string_size, 0u);
  EXPECT_GT(debug.debug_string_size, 0u);
}

TEST_F(DevicesTest, DevicesOfAClientAreItsOwn) {
  auto own = args_of<PJRT_Device_IsAddressable_Args>();
  own.device = device;
  expect_ok(api()->PJRT_Device_IsAddressable(&own));
  EXPECT_TRUE(own.is_addressable);
  auto number = args_of<PJRT_Device_LocalHardwareId_Args>();
  number.device = device;
  expect_ok(api()->PJRT_Device_LocalHardwareId(&number));
  EXPECT_EQ(number.local_hardware_id, 0);
  auto clear = args_of<PJRT_Device_ClearMemoryStats_Args>();
  clear.device = device;
  EXPECT_EQ(outcome(api()->PJRT_Device_ClearMemoryStats(&clear)).first, PJRT_Error_Code_UNIMPLEMENTED);
}

TEST_F(DevicesTest, DevicesHaveTheAttributesOfTheirDescriptions) {
  auto described = args_of<PJRT_DeviceDescription_Attributes_Args>();
  described.device_description = description();
  expect_ok(api()->PJRT_DeviceDescription_Attributes(&described));
  auto own = args_of<PJRT_Device_GetAttributes_Args>();
  own.device = device;
  expect_ok(api()->PJRT_Device_GetAttributes(&own));
  EXPECT_EQ(own.num_attributes, described.num_attributes);
  EXPECT_EQ(own.attributes, described.attributes);
  own.attributes_deleter(own.device_attributes);
}

TEST_F(DevicesTest, MemoriesHaveKindsAndBelongToTheDevice) {
  std::set<std::string> kinds;
  std::set<int> ids;
  for (PJRT_Memory* memory : memories()) {
    kinds.insert(kind(memory));
    EXPECT_GE(kind_id(memory), 0) << kind(memory);
    auto id = args_of<PJRT_Memory_Id_Args>();
    id.memory = memory;
    expect_ok(api()->PJRT_Memory_Id(&id));
    ids.insert(id.id);
    auto text = args_of<PJRT_Memory_ToString_Args>();
    text.memory = memory;
    expect_ok(api()->PJRT_Memory_ToString(&text));
    auto debug = args_of<PJRT_Memory_DebugString_Args>();
    debug.memory = memory;
    expect_ok(api()->PJRT_Memory_DebugString(&debug));
    EXPECT_TRUE(std::string(text.to_string, text.to_string_size).ends_with(kind(memory)));
    EXPECT_TRUE(std::string(debug.debug_string, debug.debug_string_size).ends_with(kind(memory)));
    auto devices = args_of<PJRT_Memory_AddressableByDevices_Args>();
    devices.memory = memory;
    expect_ok(api()->PJRT_Memory_AddressableByDevices(&devices));
    ASSERT_EQ(devices.num_devices, 1u);
    EXPECT_EQ(devices.devices[0], device);
  }
  EXPECT_EQ(kinds.size(), memories().size());
  EXPECT_EQ(ids.size(), memories().size());
  auto standard = args_of<PJRT_Device_DefaultMemory_Args>();
  standard.device = device;
  expect_ok(api()->PJRT_Device_DefaultMemory(&standard));
  EXPECT_EQ(memories().at(0), standard.memory);
}

// A caller attaches data under a key of its own. It is destroyed when other data takes its place, and with the client.
TEST_F(DevicesTest, MemoriesKeepDataOfTheCaller) {
  static int destroyed = 0;
  destroyed = 0;
  PJRT_Memory* memory = memories().at(0);
  int key = 0, other = 0, first = 1, second = 2;
  const auto destroy = [](void*) { ++destroyed; };
  EXPECT_EQ(memory->vtable->get_user_data(memory, &key), nullptr);
  memory->vtable->set_user_data(memory, &key, &first, destroy);
  EXPECT_EQ(memory->vtable->get_user_data(memory, &key), &first);
  EXPECT_EQ(memory->vtable->get_user_data(memory, &other), nullptr);
  memory->vtable->set_user_data(memory, &key, &second, destroy);
  EXPECT_EQ(destroyed, 1);
  EXPECT_EQ(memory->vtable->get_user_data(memory, &key), &second);
  TearDown();
  EXPECT_EQ(destroyed, 2);
  SetUp();
}

// The numbers of kinds are those of another client.
TEST_F(DevicesTest, KindsHaveTheSameNumbersInEachClient) {
  std::vector<std::pair<std::string, int>> before, after;
  for (PJRT_Memory* memory : memories()) before.emplace_back(kind(memory), kind_id(memory));
  TearDown();
  SetUp();
  for (PJRT_Memory* memory : memories()) after.emplace_back(kind(memory), kind_id(memory));
  EXPECT_EQ(before, after);
}

}  // namespace
}  // namespace collet::pjrt
