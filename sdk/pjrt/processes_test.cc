// SPDX-License-Identifier: Apache-2.0
// Tests clients that are one of several processes. The clients of these tests are in one process, each on a thread of its own;
// they find each other through a store in memory and exchange data as processes do.
#include <gmock/gmock.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sdk/pjrt/testing/plugin.h"
#include "sdk/pjrt/wire.h"

namespace collet::pjrt {
namespace {

using namespace collet::pjrt::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A key-value store as frontends pass it.
struct Store {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> values;

  static PJRT_Error* put(PJRT_KeyValuePutCallback_Args* args) {
    auto& self = *static_cast<Store*>(args->user_arg);
    const std::lock_guard lock(self.mutex);
    const bool is_new =
        self.values.emplace(std::string(args->key, args->key_size), std::string(args->value, args->value_size)).second;
    self.changed.notify_all();
    constexpr char kTaken[] = "the key is taken";
    return is_new ? nullptr : (*args->callback_error)(PJRT_Error_Code_ALREADY_EXISTS, kTaken, sizeof kTaken - 1);
  }
  static PJRT_Error* get(PJRT_KeyValueGetCallback_Args* args) {
    auto& self = *static_cast<Store*>(args->user_arg);
    const std::string key(args->key, args->key_size);
    std::unique_lock lock(self.mutex);
    if (!self.changed.wait_for(lock, std::chrono::milliseconds(args->timeout_in_ms),
                               [&] { return self.values.contains(key); }))
      return (*args->callback_error)(PJRT_Error_Code_DEADLINE_EXCEEDED, "late", 4);
    const std::string& value = self.values[key];
    args->value = new char[value.size()];
    std::memcpy(args->value, value.data(), value.size());
    args->value_size = value.size();
    args->value_deleter_callback = [](char* p) { delete[] p; };
    return nullptr;
  }
};

PJRT_NamedValue number(const char* name, int64_t value) {
  PJRT_NamedValue out{};
  out.struct_size = sizeof out;
  out.name = name;
  out.name_size = std::strlen(name);
  out.type = PJRT_NamedValue_kInt64;
  out.int64_value = value;
  out.value_size = 1;
  return out;
}

// Opens client `node` of `nodes`, with two devices; `store` may be null.
PJRT_Error* open(Store* store, int64_t node, int64_t nodes, PJRT_Client*& out) {
  const std::vector<std::pair<std::string, std::string>> backend = {{"backend", "interpreter"}};
  const NamedOptions named(backend);
  std::vector<PJRT_NamedValue> options = named.values();
  options.push_back(number("device_count", 2));
  options.push_back(number("node_id", node));
  options.push_back(number("num_nodes", nodes));
  auto args = args_of<PJRT_Client_Create_Args>();
  args.create_options = options.data();
  args.num_options = options.size();
  if (store) {
    args.kv_get_callback = Store::get;
    args.kv_put_callback = Store::put;
    args.kv_get_user_arg = args.kv_put_user_arg = store;
  }
  PJRT_Error* const error = api()->PJRT_Client_Create(&args);
  out = args.client;
  return error;
}

void close(PJRT_Client* client) {
  auto args = args_of<PJRT_Client_Destroy_Args>();
  args.client = client;
  expect_ok(api()->PJRT_Client_Destroy(&args));
}

// Runs `body` for both of two clients, each on a thread.
void with_two(const std::function<void(PJRT_Client*, int)>& body) {
  Store store;
  std::vector<std::thread> threads;
  for (int node = 0; node < 2; ++node)
    threads.emplace_back([&, node] {
      PJRT_Client* client = nullptr;
      expect_ok(open(&store, node, 2, client));
      if (!client) return;
      body(client, node);
      close(client);
    });
  for (std::thread& thread : threads) thread.join();
}

int id_of(PJRT_Device* device) {
  auto description = args_of<PJRT_Device_GetDescription_Args>();
  description.device = device;
  expect_ok(api()->PJRT_Device_GetDescription(&description));
  auto id = args_of<PJRT_DeviceDescription_Id_Args>();
  id.device_description = description.device_description;
  expect_ok(api()->PJRT_DeviceDescription_Id(&id));
  return id.id;
}

std::vector<PJRT_Device*> own_devices(PJRT_Client* client) {
  auto args = args_of<PJRT_Client_AddressableDevices_Args>();
  args.client = client;
  expect_ok(api()->PJRT_Client_AddressableDevices(&args));
  return {args.addressable_devices, args.addressable_devices + args.num_addressable_devices};
}

TEST(PjrtProcessesTest, ClientsSeeTheDevicesOfAll) {
  with_two([](PJRT_Client* client, int node) {
    auto process = args_of<PJRT_Client_ProcessIndex_Args>();
    process.client = client;
    expect_ok(api()->PJRT_Client_ProcessIndex(&process));
    EXPECT_EQ(process.process_index, node);
    auto all = args_of<PJRT_Client_Devices_Args>();
    all.client = client;
    expect_ok(api()->PJRT_Client_Devices(&all));
    ASSERT_EQ(all.num_devices, 4u);
    for (int i = 0; i < 4; ++i) {
      PJRT_Device* const device = all.devices[i];
      EXPECT_EQ(id_of(device), i);
      auto own = args_of<PJRT_Device_IsAddressable_Args>();
      own.device = device;
      expect_ok(api()->PJRT_Device_IsAddressable(&own));
      EXPECT_EQ(own.is_addressable, i / 2 == node);
      auto description = args_of<PJRT_Device_GetDescription_Args>();
      description.device = device;
      expect_ok(api()->PJRT_Device_GetDescription(&description));
      auto where = args_of<PJRT_DeviceDescription_ProcessIndex_Args>();
      where.device_description = description.device_description;
      expect_ok(api()->PJRT_DeviceDescription_ProcessIndex(&where));
      EXPECT_EQ(where.process_index, i / 2);
      auto hardware = args_of<PJRT_Device_LocalHardwareId_Args>();
      hardware.device = device;
      expect_ok(api()->PJRT_Device_LocalHardwareId(&hardware));
      EXPECT_EQ(hardware.local_hardware_id, i % 2);
      auto found = args_of<PJRT_Client_LookupDevice_Args>();
      found.client = client;
      found.id = i;
      expect_ok(api()->PJRT_Client_LookupDevice(&found));
      EXPECT_EQ(found.device, device);
    }
    ASSERT_EQ(own_devices(client).size(), 2u);
    auto local = args_of<PJRT_Client_LookupAddressableDevice_Args>();
    local.client = client;
    local.local_hardware_id = 1;
    expect_ok(api()->PJRT_Client_LookupAddressableDevice(&local));
    EXPECT_EQ(id_of(local.addressable_device), 2 * node + 1);
    local.local_hardware_id = 2;
    EXPECT_NE(outcome(api()->PJRT_Client_LookupAddressableDevice(&local)).first, PJRT_Error_Code_OK);
  });
}

TEST(PjrtProcessesTest, DefaultAssignmentsStayInAProcessIfTheyFit) {
  with_two([](PJRT_Client* client, int node) {
    const auto assignment = [&](int replicas) {
      std::vector<int> out(static_cast<size_t>(replicas));
      auto args = args_of<PJRT_Client_DefaultDeviceAssignment_Args>();
      args.client = client;
      args.num_replicas = replicas;
      args.num_partitions = 1;
      args.default_assignment = out.data();
      args.default_assignment_size = out.size();
      expect_ok(api()->PJRT_Client_DefaultDeviceAssignment(&args));
      return out;
    };
    EXPECT_THAT(assignment(2), ElementsAre(2 * node, 2 * node + 1));
    EXPECT_THAT(assignment(4), ElementsAre(0, 1, 2, 3));
  });
}

TEST(PjrtProcessesTest, MemoryOfOtherProcessesIsRefused) {
  with_two([](PJRT_Client* client, int node) {
    auto all = args_of<PJRT_Client_Devices_Args>();
    all.client = client;
    expect_ok(api()->PJRT_Client_Devices(&all));
    PJRT_Device* const other = all.devices[2 * (1 - node)];
    auto memory = args_of<PJRT_Device_DefaultMemory_Args>();
    memory.device = other;
    const auto [code, message] = outcome(api()->PJRT_Device_DefaultMemory(&memory));
    EXPECT_EQ(code, PJRT_Error_Code_FAILED_PRECONDITION);
    EXPECT_THAT(message, HasSubstr("process " + std::to_string(1 - node)));
    const float value = 1;
    auto from = args_of<PJRT_Client_BufferFromHostBuffer_Args>();
    from.client = client;
    from.data = &value;
    from.type = PJRT_Buffer_Type_F32;
    from.device = other;
    EXPECT_EQ(outcome(api()->PJRT_Client_BufferFromHostBuffer(&from)).first, PJRT_Error_Code_FAILED_PRECONDITION);
    auto stats = args_of<PJRT_Device_MemoryStats_Args>();
    stats.device = other;
    EXPECT_EQ(outcome(api()->PJRT_Device_MemoryStats(&stats)).first, PJRT_Error_Code_FAILED_PRECONDITION);
  });
}

// Each client sends an array from its second device to the first device of the other one.
TEST(PjrtProcessesTest, ArraysAreCopiedBetweenProcesses) {
  with_two([](PJRT_Client* client, int node) {
    const auto& extension =
        extension_of_library<PJRT_CrossHostTransfers_Extension>(PJRT_Extension_Type_CrossHostTransfers);
    const std::vector<PJRT_Device*> own = own_devices(client);
    const float value = static_cast<float>(node + 1);
    auto from = args_of<PJRT_Client_BufferFromHostBuffer_Args>();
    from.client = client;
    from.data = &value;
    from.type = PJRT_Buffer_Type_F32;
    from.device = own[1];
    expect_ok(api()->PJRT_Client_BufferFromHostBuffer(&from));
    await(from.done_with_host_buffer);

    const int other = 1 - node;
    const int32_t to_device = 2 * other, from_device = 2 * other + 1;
    const int64_t send_key = 7 + node, receive_key = 7 + other;
    PJRT_Event* sent = nullptr;
    auto send = args_of<PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args>();
    send.client = client;
    send.num_buffers = 1;
    send.buffers = &from.buffer;
    send.dst_global_device_ids = &to_device;
    send.transfer_keys = &send_key;
    send.send_events = &sent;
    expect_ok(extension.PJRT_Transfers_PJRT_Client_CrossHostSendBuffers(&send));

    size_t rank = 0;
    const int64_t* dims = nullptr;
    PJRT_Buffer_Type type = PJRT_Buffer_Type_F32;
    PJRT_Buffer* received = nullptr;
    auto receive = args_of<PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args>();
    receive.client = client;
    receive.num_shapes = 1;
    receive.shape_num_dims = &rank;
    receive.num_dims = &dims;
    receive.element_types = &type;
    receive.device = own[0];
    receive.src_global_device_ids = &from_device;
    receive.transfer_keys = &receive_key;
    receive.buffers = &received;
    expect_ok(extension.PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers(&receive));
    ASSERT_NE(received, nullptr);
    float got = 0;
    auto to = args_of<PJRT_Buffer_ToHostBuffer_Args>();
    to.src = received;
    to.dst = &got;
    to.dst_size = sizeof got;
    expect_ok(api()->PJRT_Buffer_ToHostBuffer(&to));
    await(to.event);
    EXPECT_EQ(got, static_cast<float>(other + 1));
    await(sent);
    for (PJRT_Buffer* buffer : {from.buffer, received}) {
      auto destroy = args_of<PJRT_Buffer_Destroy_Args>();
      destroy.buffer = buffer;
      expect_ok(api()->PJRT_Buffer_Destroy(&destroy));
    }
    auto all = args_of<PJRT_Client_Devices_Args>();
    all.client = client;
    expect_ok(api()->PJRT_Client_Devices(&all));
    receive.device = all.devices[2 * other];
    EXPECT_EQ(outcome(extension.PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers(&receive)).first,
              PJRT_Error_Code_FAILED_PRECONDITION);
  });
}

// CompileOptionsProto with four replicas on devices 3, 2, 1, 0.
std::string four_replicas() {
  std::string ids, computation, assignment, build, options;
  for (const uint64_t id : {3, 2, 1, 0}) put_varint(ids, id);
  put_bytes(computation, 1, ids);
  put_number(assignment, 1, 4);
  put_number(assignment, 2, 1);
  put_bytes(assignment, 3, computation);
  put_number(build, 4, 4);
  put_number(build, 5, 1);
  put_bytes(build, 9, assignment);
  put_bytes(options, 3, build);
  return options;
}

TEST(PjrtProcessesTest, ProgramsRunOverTheDevicesOfAll) {
  with_two([](PJRT_Client* client, int node) {
    std::string code = R"(
module @sum attributes {mhlo.num_replicas = 4 : i32} {
  func.func public @main(%x: tensor<f32>) -> tensor<f32> {
    %y = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
})";
    const std::string format = "mlir", options = four_replicas();
    PJRT_Program program = program_of(code, format);
    auto compile = args_of<PJRT_Client_Compile_Args>();
    compile.client = client;
    compile.program = &program;
    compile.compile_options = options.data();
    compile.compile_options_size = options.size();
    expect_ok(api()->PJRT_Client_Compile(&compile));
    ASSERT_NE(compile.executable, nullptr);
    auto own = args_of<PJRT_LoadedExecutable_AddressableDevices_Args>();
    own.executable = compile.executable;
    expect_ok(api()->PJRT_LoadedExecutable_AddressableDevices(&own));
    ASSERT_EQ(own.num_addressable_devices, 2u);
    EXPECT_EQ(id_of(own.addressable_devices[0]), 2 * node + 1);
    auto logical = args_of<PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args>();
    logical.executable = compile.executable;
    expect_ok(api()->PJRT_LoadedExecutable_AddressableDeviceLogicalIds(&logical));
    ASSERT_EQ(logical.num_addressable_device_logical_ids, 2u);
    EXPECT_EQ(logical.addressable_device_logical_ids[0].replica, node == 0 ? 2 : 0);
    EXPECT_EQ(logical.addressable_device_logical_ids[1].replica, node == 0 ? 3 : 1);

    PJRT_Buffer* arguments[2];
    PJRT_Buffer* results[2];
    for (int d = 0; d < 2; ++d) {
      const float value = static_cast<float>(10 * node + d + 1);
      auto from = args_of<PJRT_Client_BufferFromHostBuffer_Args>();
      from.client = client;
      from.data = &value;
      from.type = PJRT_Buffer_Type_F32;
      from.device = own.addressable_devices[d];
      expect_ok(api()->PJRT_Client_BufferFromHostBuffer(&from));
      await(from.done_with_host_buffer);
      arguments[d] = from.buffer;
    }
    PJRT_Buffer* const* const lists[] = {&arguments[0], &arguments[1]};
    PJRT_Buffer** const outputs[] = {&results[0], &results[1]};
    PJRT_ExecuteOptions execute_options{};
    execute_options.struct_size = sizeof execute_options;
    auto run = args_of<PJRT_LoadedExecutable_Execute_Args>();
    run.executable = compile.executable;
    run.options = &execute_options;
    run.argument_lists = lists;
    run.num_devices = 2;
    run.num_args = 1;
    run.output_lists = const_cast<PJRT_Buffer***>(outputs);
    expect_ok(api()->PJRT_LoadedExecutable_Execute(&run));
    for (int d = 0; d < 2; ++d) {
      float value = 0;
      auto to = args_of<PJRT_Buffer_ToHostBuffer_Args>();
      to.src = results[d];
      to.dst = &value;
      to.dst_size = sizeof value;
      expect_ok(api()->PJRT_Buffer_ToHostBuffer(&to));
      await(to.event);
      EXPECT_EQ(value, 1 + 2 + 11 + 12);
      for (PJRT_Buffer* buffer : {arguments[d], results[d]}) {
        auto destroy = args_of<PJRT_Buffer_Destroy_Args>();
        destroy.buffer = buffer;
        expect_ok(api()->PJRT_Buffer_Destroy(&destroy));
      }
    }
    auto destroy = args_of<PJRT_LoadedExecutable_Destroy_Args>();
    destroy.executable = compile.executable;
    expect_ok(api()->PJRT_LoadedExecutable_Destroy(&destroy));
  });
}

TEST(PjrtProcessesTest, SeveralProcessesNeedAStoreAndANumber) {
  PJRT_Client* client = nullptr;
  const auto [code, message] = outcome(open(nullptr, 0, 2, client));
  EXPECT_EQ(code, PJRT_Error_Code_FAILED_PRECONDITION);
  EXPECT_THAT(message, HasSubstr("key-value store"));
  Store store;
  const auto [other, text] = outcome(open(&store, 2, 2, client));
  EXPECT_EQ(other, PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_THAT(text, HasSubstr("node_id is 2"));
}

TEST(PjrtProcessesTest, OneProcessNeedsNoStore) {
  PJRT_Client* client = nullptr;
  expect_ok(open(nullptr, 0, 1, client));
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(own_devices(client).size(), 2u);
  close(client);
}

}  // namespace
}  // namespace collet::pjrt
