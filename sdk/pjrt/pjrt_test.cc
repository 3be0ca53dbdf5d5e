// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "sdk/pjrt/compile_options.h"
#include "sdk/pjrt/testing/plugin.h"
#include "sdk/pjrt/wire.h"

namespace collet::pjrt {
namespace {

using ::testing::HasSubstr;

using namespace testing;

TEST(PjrtTable, EveryFunctionIsThere) {
  EXPECT_EQ(api()->pjrt_api_version.major_version, 0);
  EXPECT_EQ(api()->pjrt_api_version.minor_version, PJRT_API_MINOR);
#define PJRT_FUNCTION(name, last, least, size) EXPECT_NE(api()->PJRT_##name, nullptr) << #name;
#include "sdk/pjrt/api/functions.def"
  EXPECT_EQ(sizeof(PJRT_Api), 40 + 138 * sizeof(void*));
}

TEST(PjrtTable, StructsOfOlderAndNewerCallers) {
  // An older caller's struct ends before newer fields, and a guard is at their position.
  struct Longer {
    PJRT_Plugin_Attributes_Args args;
    uint64_t guard[4];
  } longer{};
  longer.args.struct_size = sizeof longer;
  longer.guard[0] = 42;
  expect_ok(api()->PJRT_Plugin_Attributes(&longer.args));
  EXPECT_EQ(longer.guard[0], 42u);
  EXPECT_GE(longer.args.num_attributes, 1u);

  auto shorter = args_of<PJRT_Client_Create_Args>();
  shorter.struct_size = offsetof(PJRT_Client_Create_Args, kv_try_get_callback);
  shorter.kv_try_get_user_arg = &shorter;
  PJRT_NamedValue name{};
  name.struct_size = sizeof name;
  name.name = "backend";
  name.name_size = 7;
  name.string_value = "interpreter";
  name.value_size = 11;
  shorter.create_options = &name;
  shorter.num_options = 1;
  expect_ok(api()->PJRT_Client_Create(&shorter));
  EXPECT_EQ(shorter.kv_try_get_user_arg, &shorter);
  auto destroy = args_of<PJRT_Client_Destroy_Args>();
  destroy.client = shorter.client;
  expect_ok(api()->PJRT_Client_Destroy(&destroy));

  auto too_short = args_of<PJRT_Client_Create_Args>();
  too_short.struct_size = 16;
  EXPECT_EQ(outcome(api()->PJRT_Client_Create(&too_short)).first, PJRT_Error_Code_INVALID_ARGUMENT);
}

TEST(Options, TheEnvironmentGivesThemToTheBackend) {
  auto create = args_of<PJRT_Client_Create_Args>();
  setenv("COLLET_OPTIONS", "no_such_option=1", 1);
  const auto [unknown, name] = outcome(api()->PJRT_Client_Create(&create));
  setenv("COLLET_OPTIONS", "no_such_option", 1);
  const auto [malformed, pair] = outcome(api()->PJRT_Client_Create(&create));
  unsetenv("COLLET_OPTIONS");
  EXPECT_EQ(unknown, PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_THAT(name, HasSubstr("no_such_option"));
  EXPECT_EQ(malformed, PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_THAT(pair, HasSubstr("KEY=VALUE"));
}

TEST(PjrtTable, WhatIsNotThereSaysSo) {
  auto args = args_of<PJRT_Device_PoisonExecution_Args>();
  const auto [code, message] = outcome(api()->PJRT_Device_PoisonExecution(&args));
  EXPECT_EQ(code, PJRT_Error_Code_UNIMPLEMENTED);
  EXPECT_NE(message.find("PJRT_Device_PoisonExecution"), std::string::npos);
}

TEST(PjrtTable, ExtensionChainEnds) {
  int layouts = 0;
  for (const PJRT_Extension_Base* e = api()->extension_start; e; e = e->next)
    layouts += e->type == PJRT_Extension_Type_Layouts;
  EXPECT_EQ(layouts, 1);
}

TEST_F(Plugin, StridedArraysArriveAndComeBack) {
  const float data[6] = {1, 2, 3, 4, 5, 6};
  PJRT_Buffer* transposed = upload(data, {3, 2}, {4, 12});
  EXPECT_EQ(download(transposed), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  PJRT_Buffer* backwards = upload(data + 5, {6}, {-4});
  EXPECT_EQ(download(backwards), (std::vector<float>{6, 5, 4, 3, 2, 1}));
  destroy(transposed);
  destroy(backwards);
}

TEST_F(Plugin, CompilesAndRuns) {
  PJRT_LoadedExecutable* executable = nullptr;
  expect_ok(compile(kDouble, "mlir", "", &executable));
  ASSERT_NE(executable, nullptr);
  const float data[6] = {1, 2, 3, 4, 5, 6};
  PJRT_Buffer* in = upload(data, {2, 3});
  PJRT_Buffer* const inputs[] = {in};
  PJRT_Buffer* const* const lists[] = {inputs};
  PJRT_Buffer* outputs[1] = {};
  PJRT_Buffer** const output_lists[] = {outputs};
  PJRT_Event* done[1] = {};
  auto run = args_of<PJRT_LoadedExecutable_Execute_Args>();
  PJRT_ExecuteOptions options{};
  options.struct_size = offsetof(PJRT_ExecuteOptions, context);  // an older caller's
  run.executable = executable;
  run.options = &options;
  run.argument_lists = lists;
  run.num_devices = 1;
  run.num_args = 1;
  run.output_lists = output_lists;
  run.device_complete_events = done;
  expect_ok(api()->PJRT_LoadedExecutable_Execute(&run));
  await(done[0]);
  EXPECT_EQ(download(outputs[0]), (std::vector<float>{2, 4, 6, 8, 10, 12}));
  run.num_args = 0;
  EXPECT_EQ(outcome(api()->PJRT_LoadedExecutable_Execute(&run)).first, PJRT_Error_Code_INVALID_ARGUMENT);
  run.num_args = 1;
  options.struct_size = sizeof options;
  options.num_hlo_output_callbacks = 1;
  EXPECT_EQ(outcome(api()->PJRT_LoadedExecutable_Execute(&run)).first, PJRT_Error_Code_UNIMPLEMENTED);
  destroy(outputs[0]);
  destroy(in);
  auto free = args_of<PJRT_LoadedExecutable_Destroy_Args>();
  free.executable = executable;
  expect_ok(api()->PJRT_LoadedExecutable_Destroy(&free));
}

TEST_F(Plugin, BadProgramsAndOptionsAreErrors) {
  PJRT_LoadedExecutable* executable = nullptr;
  EXPECT_EQ(outcome(compile("nonsense", "mlir", "", &executable)).first, PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_EQ(outcome(compile(kDouble, "onnx", "", &executable)).first, PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_EQ(outcome(compile(kDouble, "mlir", "\xff\xff\xff", &executable)).first, PJRT_Error_Code_INVALID_ARGUMENT);
}

TEST_F(Plugin, AViewKeepsADeletedBuffersData) {
  const float data[2] = {7, 8};
  PJRT_Buffer* buffer = upload(data, {2});
  auto hold = args_of<PJRT_Buffer_IncreaseExternalReferenceCount_Args>();
  hold.buffer = buffer;
  expect_ok(api()->PJRT_Buffer_IncreaseExternalReferenceCount(&hold));
  auto pointer = args_of<PJRT_Buffer_UnsafePointer_Args>();
  pointer.buffer = buffer;
  expect_ok(api()->PJRT_Buffer_UnsafePointer(&pointer));
  auto erase = args_of<PJRT_Buffer_Delete_Args>();
  erase.buffer = buffer;
  expect_ok(api()->PJRT_Buffer_Delete(&erase));
  auto is_deleted = args_of<PJRT_Buffer_IsDeleted_Args>();
  is_deleted.buffer = buffer;
  expect_ok(api()->PJRT_Buffer_IsDeleted(&is_deleted));
  EXPECT_TRUE(is_deleted.is_deleted);
  EXPECT_EQ(reinterpret_cast<const float*>(pointer.buffer_pointer)[1], 8);
  auto drop = args_of<PJRT_Buffer_DecreaseExternalReferenceCount_Args>();
  drop.buffer = buffer;
  expect_ok(api()->PJRT_Buffer_DecreaseExternalReferenceCount(&drop));
  EXPECT_EQ(outcome(api()->PJRT_Buffer_DecreaseExternalReferenceCount(&drop)).first, PJRT_Error_Code_INVALID_ARGUMENT);
  destroy(buffer);
}

TEST_F(Plugin, ArraysArriveInPieces) {
  const int64_t dims[] = {4};
  PJRT_ShapeSpec spec{};
  spec.struct_size = sizeof spec;
  spec.dims = dims;
  spec.num_dims = 1;
  spec.element_type = PJRT_Buffer_Type_F32;
  auto create = args_of<PJRT_Client_CreateBuffersForAsyncHostToDevice_Args>();
  create.client = client;
  create.shape_specs = &spec;
  create.num_shape_specs = 1;
  create.memory = memory();
  expect_ok(api()->PJRT_Client_CreateBuffersForAsyncHostToDevice(&create));
  auto retrieve = args_of<PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args>();
  retrieve.transfer_manager = create.transfer_manager;
  expect_ok(api()->PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer(&retrieve));
  PJRT_Buffer* buffer = retrieve.buffer_out;
  retrieve.buffer_index = 1;
  EXPECT_EQ(outcome(api()->PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer(&retrieve)).first,
            PJRT_Error_Code_INVALID_ARGUMENT);
  const float data[] = {1, 2, 3, 4};
  auto transfer = args_of<PJRT_AsyncHostToDeviceTransferManager_TransferData_Args>();
  transfer.transfer_manager = create.transfer_manager;
  transfer.data = data + 2;
  transfer.offset = 8;
  transfer.transfer_size = 8;
  expect_ok(api()->PJRT_AsyncHostToDeviceTransferManager_TransferData(&transfer));
  await(transfer.done_with_h2d_transfer);
  auto ready = args_of<PJRT_Buffer_ReadyEvent_Args>();
  ready.buffer = buffer;
  expect_ok(api()->PJRT_Buffer_ReadyEvent(&ready));
  auto is_ready = args_of<PJRT_Event_IsReady_Args>();
  is_ready.event = ready.event;
  expect_ok(api()->PJRT_Event_IsReady(&is_ready));
  EXPECT_FALSE(is_ready.is_ready);
  transfer.data = data;
  transfer.offset = 0;
  transfer.is_last_transfer = true;
  expect_ok(api()->PJRT_AsyncHostToDeviceTransferManager_TransferData(&transfer));
  await(transfer.done_with_h2d_transfer);
  await(ready.event);
  EXPECT_EQ(download(buffer), (std::vector<float>{1, 2, 3, 4}));
  destroy(buffer);
  auto end = args_of<PJRT_AsyncHostToDeviceTransferManager_Destroy_Args>();
  end.transfer_manager = create.transfer_manager;
  expect_ok(api()->PJRT_AsyncHostToDeviceTransferManager_Destroy(&end));
}

TEST_F(Plugin, AliasesAreFulfilledAndErrorsArrive) {
  const int64_t dims[] = {2};
  auto alias = args_of<PJRT_Client_CreateAliasBuffer_Args>();
  alias.client = client;
  alias.memory = memory();
  alias.shape_dims = dims;
  alias.shape_num_dims = 1;
  alias.shape_element_type = PJRT_Buffer_Type_F32;
  expect_ok(api()->PJRT_Client_CreateAliasBuffer(&alias));
  const float data[] = {5, 6};
  PJRT_Buffer* source = upload(data, {2});
  auto fulfil = args_of<PJRT_Client_FulfillAliasBuffer_Args>();
  fulfil.client = client;
  fulfil.buffer = source;
  fulfil.fulfill_alias_buffer_cb = alias.fulfill_alias_buffer_cb;
  expect_ok(api()->PJRT_Client_FulfillAliasBuffer(&fulfil));
  EXPECT_EQ(download(alias.alias_buffer), (std::vector<float>{5, 6}));
  destroy(alias.alias_buffer);
  destroy(source);

  auto broken = args_of<PJRT_Client_CreateErrorBuffer_Args>();
  broken.client = client;
  broken.memory = memory();
  broken.shape_dims = dims;
  broken.shape_num_dims = 1;
  broken.shape_element_type = PJRT_Buffer_Type_F32;
  broken.error_code = PJRT_Error_Code_DATA_LOSS;
  broken.error_message = "gone";
  broken.error_message_size = 4;
  broken.struct_size = offsetof(PJRT_Client_CreateErrorBuffer_Args, payload);  // an older caller's
  expect_ok(api()->PJRT_Client_CreateErrorBuffer(&broken));
  auto ready = args_of<PJRT_Buffer_ReadyEvent_Args>();
  ready.buffer = broken.buffer;
  expect_ok(api()->PJRT_Buffer_ReadyEvent(&ready));
  auto wait = args_of<PJRT_Event_Await_Args>();
  wait.event = ready.event;
  const auto [code, message] = outcome(api()->PJRT_Event_Await(&wait));
  EXPECT_EQ(code, PJRT_Error_Code_DATA_LOSS);
  EXPECT_NE(message.find("gone"), std::string::npos) << message;
  auto free = args_of<PJRT_Event_Destroy_Args>();
  free.event = ready.event;
  expect_ok(api()->PJRT_Event_Destroy(&free));
  destroy(broken.buffer);
}

TEST_F(Plugin, ViewsOfTheCallersMemoryEnd) {
  alignas(64) static float data[16] = {1, 2};
  static int ended;
  ended = 0;
  const int64_t dims[] = {16};
  auto view = args_of<PJRT_Client_CreateViewOfDeviceBuffer_Args>();
  view.client = client;
  view.device = device;
  view.device_buffer_ptr = data;
  view.dims = dims;
  view.num_dims = 1;
  view.element_type = PJRT_Buffer_Type_F32;
  view.on_delete_callback = [](void* where, void*) { ended += where == data; };
  expect_ok(api()->PJRT_Client_CreateViewOfDeviceBuffer(&view));
  EXPECT_EQ(download(view.buffer)[1], 2);
  const int64_t halves[] = {4, 8};
  auto cast = args_of<PJRT_Buffer_Bitcast_Args>();
  cast.buffer = view.buffer;
  cast.element_type = PJRT_Buffer_Type_S16;
  cast.dims = halves;
  cast.num_dims = 2;
  expect_ok(api()->PJRT_Buffer_Bitcast(&cast));
  destroy(view.buffer);
  auto size = args_of<PJRT_Buffer_OnDeviceSizeInBytes_Args>();
  size.buffer = cast.out_buffer;
  expect_ok(api()->PJRT_Buffer_OnDeviceSizeInBytes(&size));
  EXPECT_EQ(size.on_device_size_in_bytes, sizeof data);
  EXPECT_EQ(reinterpret_cast<const uint16_t*>(download(cast.out_buffer).data())[1], 0x3F80);
  cast.buffer = cast.out_buffer;
  cast.num_dims = 1;
  EXPECT_EQ(outcome(api()->PJRT_Buffer_Bitcast(&cast)).first, PJRT_Error_Code_INVALID_ARGUMENT);
  destroy(cast.buffer);
  EXPECT_EQ(ended, 1);
}

TEST_F(Plugin, DonationsAndReadsWaitForTheirCallbacks) {
  const float data[] = {1, 2, 3};
  PJRT_Buffer* buffer = upload(data, {3});
  auto read = args_of<PJRT_Buffer_CopyRawToHostFuture_Args>();
  read.buffer = buffer;
  read.offset = 4;
  read.transfer_size = 8;
  expect_ok(api()->PJRT_Buffer_CopyRawToHostFuture(&read));
  auto donate = args_of<PJRT_Buffer_DonateWithControlDependency_Args>();
  donate.buffer = buffer;
  expect_ok(api()->PJRT_Buffer_DonateWithControlDependency(&donate));
  EXPECT_EQ(outcome(api()->PJRT_Buffer_DonateWithControlDependency(&donate)).first,
            PJRT_Error_Code_FAILED_PRECONDITION);
  float out[2] = {};
  PJRT_Buffer_CopyRawToHostFuture_Callback_Args place{};
  place.struct_size = sizeof place;
  place.callback_data = read.callback_data;
  place.dst = out;
  read.future_ready_callback(&place);
  await(read.event);
  EXPECT_EQ(out[1], 3);
  PJRT_Buffer_DonateWithControlDependency_Callback_Args come{};
  come.struct_size = sizeof come;
  come.callback_data = donate.callback_data;
  donate.dependency_ready_callback(&come);
  EXPECT_EQ(download(donate.out_buffer), (std::vector<float>{1, 2, 3}));
  destroy(donate.out_buffer);
  destroy(buffer);
}

TEST_F(Plugin, ExecutablesTellTheirCostAndComeBackFromBytes) {
  PJRT_LoadedExecutable* loaded = nullptr;
  expect_ok(compile(kDouble, "mlir", "", &loaded));
  auto get = args_of<PJRT_LoadedExecutable_GetExecutable_Args>();
  get.loaded_executable = loaded;
  expect_ok(api()->PJRT_LoadedExecutable_GetExecutable(&get));
  auto name = args_of<PJRT_Executable_Name_Args>();
  name.executable = get.executable;
  expect_ok(api()->PJRT_Executable_Name(&name));
  EXPECT_EQ(std::string(name.executable_name, name.executable_name_size), "twice");
  auto costs = args_of<PJRT_Executable_GetCostAnalysis_Args>();
  costs.executable = get.executable;
  expect_ok(api()->PJRT_Executable_GetCostAnalysis(&costs));
  ASSERT_GE(costs.num_properties, 1u);
  EXPECT_EQ(std::string(costs.properties[0].name, costs.properties[0].name_size), "flops");
  EXPECT_EQ(costs.properties[0].float_value, 6);
  PJRT_Executable_GetCompiledMemoryStats_Args memory_stats;
  std::memset(&memory_stats, 0x5A, sizeof memory_stats);  // callers do not initialise these fields
  memory_stats.struct_size = sizeof memory_stats;
  memory_stats.extension_start = nullptr;
  memory_stats.executable = get.executable;
  expect_ok(api()->PJRT_Executable_GetCompiledMemoryStats(&memory_stats));
  EXPECT_EQ(memory_stats.argument_size_in_bytes, 24);
  EXPECT_EQ(memory_stats.output_size_in_bytes, 24);
  EXPECT_EQ(memory_stats.host_temp_size_in_bytes, 0);
  PJRT_Device_MemoryStats_Args device_stats;
  std::memset(&device_stats, 0x5A, sizeof device_stats);
  device_stats.struct_size = sizeof device_stats;
  device_stats.extension_start = nullptr;
  device_stats.device = device;
  expect_ok(api()->PJRT_Device_MemoryStats(&device_stats));
  EXPECT_FALSE(device_stats.num_allocs_is_set);
  auto serialize = args_of<PJRT_Executable_Serialize_Args>();
  serialize.executable = get.executable;
  expect_ok(api()->PJRT_Executable_Serialize(&serialize));
  std::string bytes(serialize.serialized_bytes, serialize.serialized_bytes_size);
  serialize.serialized_executable_deleter(serialize.serialized_executable);
  auto load = args_of<PJRT_Executable_DeserializeAndLoad_Args>();
  load.client = client;
  load.serialized_executable = bytes.data();
  load.serialized_executable_size = bytes.size();
  expect_ok(api()->PJRT_Executable_DeserializeAndLoad(&load));
  for (PJRT_LoadedExecutable* e : {loaded, load.loaded_executable}) {
    auto free = args_of<PJRT_LoadedExecutable_Destroy_Args>();
    free.executable = e;
    expect_ok(api()->PJRT_LoadedExecutable_Destroy(&free));
  }
  // Each damaged byte is noticed, wherever it is: in the format, the options, the program, or the compiled part.
  for (char& byte : bytes) {
    byte ^= 1;
    EXPECT_NE(outcome(api()->PJRT_Executable_DeserializeAndLoad(&load)).first, PJRT_Error_Code_OK)
        << &byte - bytes.data();
    byte ^= 1;
  }
  for (size_t n = 0; n < bytes.size(); n += 1 + n / 16) {
    load.serialized_executable_size = n;
    EXPECT_NE(outcome(api()->PJRT_Executable_DeserializeAndLoad(&load)).first, PJRT_Error_Code_OK) << n;
  }
  auto free = args_of<PJRT_Executable_Destroy_Args>();
  free.executable = get.executable;
  expect_ok(api()->PJRT_Executable_Destroy(&free));
}

// The text of a long program is not kept; what is asked of the executable is written again.
TEST_F(Plugin, ProgramsWithLargeConstantsAreWrittenAgain) {
  std::string hex(size_t{8} << 18, '0');
  hex.replace(8, 8, "00000040");  // element 1 is 2
  std::string code =
      "module @large {\n  func.func public @main(%x: tensor<262144xf32>) -> tensor<262144xf32> {\n"
      "    %c = stablehlo.constant dense<\"0x" +
      hex +
      "\"> : tensor<262144xf32>\n    %y = stablehlo.add %x, %c : tensor<262144xf32>\n"
      "    return %y : tensor<262144xf32>\n  }\n}\n";
  PJRT_LoadedExecutable* loaded = nullptr;
  expect_ok(compile(code, "mlir", "", &loaded));
  auto get = args_of<PJRT_LoadedExecutable_GetExecutable_Args>();
  get.loaded_executable = loaded;
  expect_ok(api()->PJRT_LoadedExecutable_GetExecutable(&get));
  PJRT_Program program{};
  program.struct_size = sizeof program;
  auto optimized = args_of<PJRT_Executable_OptimizedProgram_Args>();
  optimized.executable = get.executable;
  optimized.program = &program;
  expect_ok(api()->PJRT_Executable_OptimizedProgram(&optimized));
  EXPECT_EQ(std::string(program.format, program.format_size), "hlo_with_config");
  EXPECT_GT(program.code_size, size_t{1} << 20);
  auto serialize = args_of<PJRT_Executable_Serialize_Args>();
  serialize.executable = get.executable;
  expect_ok(api()->PJRT_Executable_Serialize(&serialize));
  auto load = args_of<PJRT_Executable_DeserializeAndLoad_Args>();
  load.client = client;
  load.serialized_executable = serialize.serialized_bytes;
  load.serialized_executable_size = serialize.serialized_bytes_size;
  expect_ok(api()->PJRT_Executable_DeserializeAndLoad(&load));
  serialize.serialized_executable_deleter(serialize.serialized_executable);
  const std::vector<float> data(262144, 1);
  PJRT_Buffer *argument = upload(data.data(), {262144}), *result = nullptr;
  expect_ok(run(load.loaded_executable, argument, &result));
  EXPECT_EQ(download(result)[1], 3);
  destroy(argument);
  destroy(result);
  destroy_executable(load.loaded_executable);
  destroy_executable(loaded);
  auto free = args_of<PJRT_Executable_Destroy_Args>();
  free.executable = get.executable;
  expect_ok(api()->PJRT_Executable_Destroy(&free));
}

// Clients translate MLIR to HLO themselves, but do not support Shardy's ops.
TEST_F(Plugin, ProgramsWithShardingConstraintsAreShownAsHlo) {
  const std::string constrained =
      "module @twice {\n  sdy.mesh @m = <[\"a\"=1]>\n  func.func public @main(%x: tensor<6xf32>) -> tensor<6xf32> {\n"
      "    %0 = sdy.sharding_constraint %x <@m, [{}]> : tensor<6xf32>\n"
      "    %1 = stablehlo.add %0, %0 : tensor<6xf32>\n    return %1 : tensor<6xf32>\n  }\n}\n";
  for (const auto& [code, format] :
       {std::pair{std::string(kDouble), "mlir"}, std::pair{constrained, "hlo_with_config"}}) {
    PJRT_LoadedExecutable* loaded = nullptr;
    expect_ok(compile(code, "mlir", "", &loaded));
    auto get = args_of<PJRT_LoadedExecutable_GetExecutable_Args>();
    get.loaded_executable = loaded;
    expect_ok(api()->PJRT_LoadedExecutable_GetExecutable(&get));
    PJRT_Program program{};
    program.struct_size = sizeof program;
    auto args = args_of<PJRT_Executable_OptimizedProgram_Args>();
    args.executable = get.executable;
    args.program = &program;
    expect_ok(api()->PJRT_Executable_OptimizedProgram(&args));
    EXPECT_EQ(std::string(program.format, program.format_size), format);
    std::string text(program.code_size, '\0');
    program.code = text.data();
    expect_ok(api()->PJRT_Executable_OptimizedProgram(&args));
    EXPECT_EQ(text.find("sharding_constraint"), std::string::npos);
    auto free = args_of<PJRT_Executable_Destroy_Args>();
    free.executable = get.executable;
    expect_ok(api()->PJRT_Executable_Destroy(&free));
    destroy_executable(loaded);
  }
}

TEST_F(Plugin, CallersEventsCallBackAfterTheirEnd) {
  auto create = args_of<PJRT_Event_Create_Args>();
  expect_ok(api()->PJRT_Event_Create(&create));
  int code = -1;
  auto on_ready = args_of<PJRT_Event_OnReady_Args>();
  on_ready.event = create.event;
  on_ready.user_arg = &code;
  on_ready.callback = [](PJRT_Error* error, void* user) { *static_cast<int*>(user) = outcome(error).first; };
  expect_ok(api()->PJRT_Event_OnReady(&on_ready));
  EXPECT_EQ(code, -1);
  auto set = args_of<PJRT_Event_Set_Args>();
  set.event = create.event;
  set.error_code = PJRT_Error_Code_ABORTED;
  expect_ok(api()->PJRT_Event_Set(&set));
  EXPECT_EQ(code, PJRT_Error_Code_ABORTED);
  auto destroy = args_of<PJRT_Event_Destroy_Args>();
  destroy.event = create.event;
  expect_ok(api()->PJRT_Event_Destroy(&destroy));
}

TEST(PjrtOptions, AssignmentsAreReadAndWritten) {
  CompileOptions options;
  options.replicas = 2;
  options.partitions = 2;
  options.assignment = {0, 1, 200, 3};
  std::string build, message;
  put_number(build, 4, 2);
  put_number(build, 5, 2);
  put_bytes(build, 9, write_assignment(options));
  put_bytes(message, 3, build);
  CompileOptions read;
  EXPECT_EQ(read_compile_options(message, read), nullptr);
  EXPECT_EQ(read.replicas, 2u);
  EXPECT_EQ(read.partitions, 2u);
  EXPECT_EQ(read.assignment, options.assignment);
  for (size_t cut = 1; cut < message.size(); ++cut) {
    CompileOptions any;
    (void)outcome(read_compile_options(std::string_view(message).substr(0, cut), any));
  }
}

// Returns compile options with these fields of the build options.
std::string build_options(uint64_t replicas, uint64_t partitions, const CompileOptions* assigned = nullptr) {
  std::string build, message;
  put_number(build, 4, replicas);
  put_number(build, 5, partitions);
  if (assigned) put_bytes(build, 9, write_assignment(*assigned));
  put_bytes(message, 3, build);
  return message;
}

TEST(PjrtOptions, CountsAreNotCutOff) {
  for (const uint64_t count : {(uint64_t{1} << 32) + 1, uint64_t{1} << 40, uint64_t{4097}}) {
    CompileOptions read;
    EXPECT_EQ(outcome(read_compile_options(build_options(count, 1), read)).first, PJRT_Error_Code_INVALID_ARGUMENT);
    EXPECT_EQ(outcome(read_compile_options(build_options(1, count), read)).first, PJRT_Error_Code_INVALID_ARGUMENT);
  }
  std::string build, message;
  put_number(build, 1, (uint64_t{1} << 32) + 1);  // a device
  put_bytes(message, 3, build);
  CompileOptions read;
  EXPECT_EQ(outcome(read_compile_options(message, read)).first, PJRT_Error_Code_INVALID_ARGUMENT);
}

TEST_F(Plugin, AssignmentsFitTheDevices) {
  PJRT_LoadedExecutable* executable = nullptr;
  EXPECT_EQ(outcome(compile(kDouble, "mlir", build_options(4096, 4096), &executable)).first,
            PJRT_Error_Code_INVALID_ARGUMENT);
  CompileOptions twice;
  twice.replicas = 2;
  twice.assignment = {0, 0};
  EXPECT_EQ(outcome(compile(kDouble, "mlir", build_options(2, 1, &twice), &executable)).first,
            PJRT_Error_Code_INVALID_ARGUMENT);
}

TEST_F(Plugin, ExecutablesStayWithTheirClient) {
  PJRT_LoadedExecutable* loaded = nullptr;
  expect_ok(compile(kDouble, "mlir", "", &loaded));
  auto get = args_of<PJRT_LoadedExecutable_GetExecutable_Args>();
  get.loaded_executable = loaded;
  expect_ok(api()->PJRT_LoadedExecutable_GetExecutable(&get));
  PJRT_Client* const mine = client;
  PJRT_Device* const here = device;
  SetUp();
  auto load = args_of<PJRT_Client_Load_Args>();
  load.client = client;
  load.executable = get.executable;
  EXPECT_EQ(outcome(api()->PJRT_Client_Load(&load)).first, PJRT_Error_Code_INVALID_ARGUMENT);
  TearDown();
  client = mine;
  device = here;
  load.client = client;
  expect_ok(api()->PJRT_Client_Load(&load));
  for (PJRT_LoadedExecutable* e : {loaded, load.loaded_executable}) {
    auto free = args_of<PJRT_LoadedExecutable_Destroy_Args>();
    free.executable = e;
    expect_ok(api()->PJRT_LoadedExecutable_Destroy(&free));
  }
  auto free = args_of<PJRT_Executable_Destroy_Args>();
  free.executable = get.executable;
  expect_ok(api()->PJRT_Executable_Destroy(&free));
}

}  // namespace
}  // namespace collet::pjrt
