// SPDX-License-Identifier: Apache-2.0
// Tests compilation for a target by its name, without hardware, and host memory that devices access directly.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sdk/pjrt/testing/plugin.h"
#include "sdk/runtime/testing/queued.h"
#include "sdk/runtime/testing/session.h"

namespace collet::pjrt {
namespace {

using namespace collet::pjrt::testing;

// A client of the test device "queued".
class TopologyTest : public Plugin {
 protected:
  TopologyTest() {
    backend_name = collet::testing::test_backend("queued");
    control_.host_memory = true;
    more_options = {{"control", std::to_string(reinterpret_cast<uintptr_t>(&control_))}};
  }

  // A client is destroyed when the last thread has released it.
  void TearDown() override {
    Plugin::TearDown();
    control_.wait_until_closed();
    EXPECT_EQ(control_.instances.load(), 0);
  }

  PJRT_Error* create(const std::string& name, PJRT_TopologyDescription** out,
                     const std::vector<std::pair<std::string, std::string>>& more = {}) {
    std::vector<std::pair<std::string, std::string>> all = {{"backend", backend_name}, more_options[0]};
    all.insert(all.end(), more.begin(), more.end());
    NamedOptions options(all);
    auto args = args_of<PJRT_TopologyDescription_Create_Args>();
    args.topology_name = name.data();
    args.topology_name_size = name.size();
    args.create_options = options.values().data();
    args.num_options = options.values().size();
    PJRT_Error* error = api()->PJRT_TopologyDescription_Create(&args);
    *out = args.topology;
    return error;
  }

  std::string serialized(PJRT_TopologyDescription* topology) {
    auto args = args_of<PJRT_TopologyDescription_Serialize_Args>();
    args.topology = topology;
    expect_ok(api()->PJRT_TopologyDescription_Serialize(&args));
    std::string bytes(args.serialized_bytes, args.serialized_bytes_size);
    args.serialized_topology_deleter(args.serialized_topology);
    return bytes;
  }

  uint64_t fingerprint(PJRT_TopologyDescription* topology) {
    auto args = args_of<PJRT_TopologyDescription_Fingerprint_Args>();
    args.topology = topology;
    expect_ok(api()->PJRT_TopologyDescription_Fingerprint(&args));
    return args.fingerprint;
  }

  size_t device_count(PJRT_TopologyDescription* topology) {
    auto args = args_of<PJRT_TopologyDescription_GetDeviceDescriptions_Args>();
    args.topology = topology;
    expect_ok(api()->PJRT_TopologyDescription_GetDeviceDescriptions(&args));
    return args.num_descriptions;
  }

  void destroy_topology(PJRT_TopologyDescription* topology) {
    auto args = args_of<PJRT_TopologyDescription_Destroy_Args>();
    args.topology = topology;
    expect_ok(api()->PJRT_TopologyDescription_Destroy(&args));
  }

  // Returns the bytes of an executable that was compiled for a topology.
  std::string compile_for(PJRT_TopologyDescription* topology) {
    std::string code = kDouble;
    const std::string format = "mlir";
    PJRT_Program program = program_of(code, format);
    auto args = args_of<PJRT_Compile_Args>();
    args.topology = topology;
    args.program = &program;
    expect_ok(api()->PJRT_Compile(&args));
    destroy_topology(topology);  // the executable keeps the objects that it needs
    auto serialize = args_of<PJRT_Executable_Serialize_Args>();
    serialize.executable = args.executable;
    expect_ok(api()->PJRT_Executable_Serialize(&serialize));
    std::string bytes(serialize.serialized_bytes, serialize.serialized_bytes_size);
    serialize.serialized_executable_deleter(serialize.serialized_executable);
    auto free = args_of<PJRT_Executable_Destroy_Args>();
    free.executable = args.executable;
    expect_ok(api()->PJRT_Executable_Destroy(&free));
    return bytes;
  }

  collet::testing::QueueControl control_;
};

TEST_F(TopologyTest, WhatIsCompiledForATargetRunsOnTheDevice) {
  PJRT_TopologyDescription* topology = nullptr;
  expect_ok(create("queued", &topology));
  ASSERT_NE(topology, nullptr);
  EXPECT_EQ(device_count(topology), 1u);
  std::string bytes = compile_for(topology);
  EXPECT_EQ(control_.buffers.load(), 0);
  auto load = args_of<PJRT_Executable_DeserializeAndLoad_Args>();
  load.client = client;
  load.serialized_executable = bytes.data();
  load.serialized_executable_size = bytes.size();
  expect_ok(api()->PJRT_Executable_DeserializeAndLoad(&load));
  const float data[6] = {1, 2, 3, 4, 5, 6};
  PJRT_Buffer* argument = upload(data, {2, 3});
  PJRT_Buffer* result = nullptr;
  expect_ok(run(load.loaded_executable, argument, &result));
  EXPECT_EQ(download(result), (std::vector<float>{2, 4, 6, 8, 10, 12}));
  destroy(argument);
  destroy(result);
  destroy_executable(load.loaded_executable);
}

TEST_F(TopologyTest, ComesBackFromBytes) {
  PJRT_TopologyDescription* topology = nullptr;
  expect_ok(create("queued", &topology));
  std::string bytes = serialized(topology);
  const uint64_t before = fingerprint(topology);
  destroy_topology(topology);
  auto back = args_of<PJRT_TopologyDescription_Deserialize_Args>();
  back.serialized_topology = bytes.data();
  back.serialized_topology_size = bytes.size();
  expect_ok(api()->PJRT_TopologyDescription_Deserialize(&back));
  EXPECT_EQ(fingerprint(back.topology), before);
  EXPECT_FALSE(compile_for(back.topology).empty());
  bytes.resize(bytes.size() / 2);
  for (const std::string& wrong : {bytes, std::string(), std::string("\x3a\x01")}) {
    back.serialized_topology = wrong.data();
    back.serialized_topology_size = wrong.size();
    EXPECT_NE(outcome(api()->PJRT_TopologyDescription_Deserialize(&back)).first, PJRT_Error_Code_OK);
  }
}

TEST_F(TopologyTest, BytesHaveAllOptions) {
  std::vector<std::string> all;
  std::set<uint64_t> fingerprints;
  for (const std::vector<std::pair<std::string, std::string>>& more :
       {std::vector<std::pair<std::string, std::string>>{},
        {{"data_dependent_sizes", "real"}},
        {{"host_calls", "wait"}},
        {{"host_calls", "queue"}}}) {
    PJRT_TopologyDescription* topology = nullptr;
    expect_ok(create("queued", &topology, more));
    ASSERT_NE(topology, nullptr);
    std::string bytes = serialized(topology);
    EXPECT_TRUE(fingerprints.insert(fingerprint(topology)).second);
    destroy_topology(topology);
    auto back = args_of<PJRT_TopologyDescription_Deserialize_Args>();
    back.serialized_topology = bytes.data();
    back.serialized_topology_size = bytes.size();
    expect_ok(api()->PJRT_TopologyDescription_Deserialize(&back));
    ASSERT_NE(back.topology, nullptr);
    EXPECT_EQ(serialized(back.topology), bytes);
    destroy_topology(back.topology);
    for (const std::string& other : all) EXPECT_NE(bytes, other);
    all.push_back(bytes);
  }
}

TEST_F(TopologyTest, UnknownTargetsAreNotFound) {
  PJRT_TopologyDescription* topology = nullptr;
  EXPECT_EQ(outcome(create("no_such_target", &topology)).first, PJRT_Error_Code_NOT_FOUND);
}

TEST_F(TopologyTest, HostMemoryIsMapped) {
  std::vector<char> memory(4096);
  auto map = args_of<PJRT_Client_DmaMap_Args>();
  map.client = client;
  map.data = memory.data();
  map.size = memory.size();
  expect_ok(api()->PJRT_Client_DmaMap(&map));
  EXPECT_EQ(control_.registered.load(), 1);
  EXPECT_EQ(outcome(api()->PJRT_Client_DmaMap(&map)).first, PJRT_Error_Code_ALREADY_EXISTS);
  auto unmap = args_of<PJRT_Client_DmaUnmap_Args>();
  unmap.client = client;
  unmap.data = memory.data();
  expect_ok(api()->PJRT_Client_DmaUnmap(&unmap));
  EXPECT_EQ(control_.registered.load(), 0);
}

}  // namespace
}  // namespace collet::pjrt
