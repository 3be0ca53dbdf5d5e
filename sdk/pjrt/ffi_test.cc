// SPDX-License-Identifier: Apache-2.0
// Tests handlers of XLA's typed FFI, and the descriptions of memories.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "sdk/pjrt/ffi_abi.h"
#include "sdk/pjrt/testing/plugin.h"

namespace collet::pjrt {
namespace {

using namespace collet::pjrt::testing;
using ::testing::HasSubstr;

const PJRT_FFI_Extension& ffi() {
  return extension_of_library<PJRT_FFI_Extension>(PJRT_Extension_Type_FFI);
}

/// Answers the question for its version as handlers made by XLA's headers do. True if it was one.
bool is_metadata(XLA_FFI_CallFrame* frame, int major = XLA_FFI_API_MAJOR) {
  if (!frame->extension_start) return false;
  auto* extension = reinterpret_cast<XLA_FFI_Metadata_Extension*>(frame->extension_start);
  extension->metadata->api_version.major_version = major;
  extension->metadata->api_version.minor_version = XLA_FFI_API_MINOR;
  return true;
}

XLA_FFI_Error* error_of(XLA_FFI_CallFrame* frame, int code, const char* message) {
  XLA_FFI_Error_Create_Args args{sizeof args, nullptr, message, code};
  return frame->api->Error_Create(&args);
}

/// What the last call got.
struct Seen {
  std::map<std::string, std::string> attributes;
  std::vector<std::string> order;  // the names, as they came
  int64_t rank = -1;
  void* data = nullptr;
  const void* decoded = nullptr;  // where the attributes were
};
Seen seen;

std::string text_of(const XLA_FFI_Attrs& attrs, int64_t i) {
  switch (attrs.types[i]) {
    case XLA_FFI_AttrType_SCALAR: {
      const auto* scalar = static_cast<const XLA_FFI_Scalar*>(attrs.attrs[i]);
      if (scalar->dtype == COLLET_TYPE_F32) return std::to_string(*static_cast<const float*>(scalar->value));
      return std::to_string(scalar->dtype) + ":" + std::to_string(*static_cast<const int32_t*>(scalar->value));
    }
    case XLA_FFI_AttrType_ARRAY: {
      const auto* array = static_cast<const XLA_FFI_Array*>(attrs.attrs[i]);
      std::string out = std::to_string(array->dtype);
      for (size_t k = 0; k < array->size; ++k) out += " " + std::to_string(static_cast<const int64_t*>(array->data)[k]);
      return out;
    }
    case XLA_FFI_AttrType_STRING: {
      const auto* span = static_cast<const XLA_FFI_ByteSpan*>(attrs.attrs[i]);
      return {span->ptr, span->len};
    }
    case XLA_FFI_AttrType_DICTIONARY: {
      const auto* nested = static_cast<const XLA_FFI_Attrs*>(attrs.attrs[i]);
      return "{" + std::string(nested->names[0]->ptr, nested->names[0]->len) + "=" + text_of(*nested, 0) + "}";
    }
  }
  return "?";
}

/// Multiplies by the attribute `scale`.
XLA_FFI_Error* scale(XLA_FFI_CallFrame* frame) {
  if (is_metadata(frame)) return nullptr;
  seen = {};
  seen.decoded = frame->attrs.attrs;
  float factor = 0;
  for (int64_t i = 0; i < frame->attrs.size; ++i) {
    const std::string name(frame->attrs.names[i]->ptr, frame->attrs.names[i]->len);
    seen.attributes[name] = text_of(frame->attrs, i);
    seen.order.push_back(name);
    if (name == "scale") factor = std::stof(seen.attributes[name]);
  }
  if (frame->args.size != 1 || frame->rets.size != 1) return error_of(frame, 3, "one argument, one result");
  if (factor < 0) return error_of(frame, 9, "a negative scale");
  const auto* in = static_cast<const XLA_FFI_Buffer*>(frame->args.args[0]);
  const auto* out = static_cast<const XLA_FFI_Buffer*>(frame->rets.args[0]);
  seen.rank = in->rank;
  int64_t count = 1;
  for (int64_t i = 0; i < in->rank; ++i) count *= in->dims[i];
  for (int64_t i = 0; i < count; ++i)
    static_cast<float*>(out->data)[i] = factor * static_cast<const float*>(in->data)[i];
  XLA_FFI_TypeId type{7};
  XLA_FFI_ExecutionContext_Get_Args get{sizeof get, nullptr, frame->ctx, &type, nullptr};
  if (XLA_FFI_Error* none = frame->api->ExecutionContext_Get(&get)) {
    XLA_FFI_Error_Destroy_Args destroy{sizeof destroy, nullptr, none};
    frame->api->Error_Destroy(&destroy);
  }
  seen.data = get.data;
  return nullptr;
}

/// What the last call of `asks` was told.
struct Told {
  std::vector<int> types;  // of the arguments
  int64_t run_id = 0;
  int32_t device = -1;
  uintptr_t address = 0;  // of memory at a multiple of 4096
  int tasks = 0;
  std::map<int64_t, void*> data;  // of the context, by type
  std::vector<std::string> refusals;
};
Told told;

/// Calls all functions that a handler may call, and fills its result with zeros.
XLA_FFI_Error* asks(XLA_FFI_CallFrame* frame) {
  if (is_metadata(frame)) return nullptr;
  told = {};
  const XLA_FFI_Api& api = *frame->api;
  const auto note = [&](XLA_FFI_Error* error) {
    if (!error) return;
    XLA_FFI_Error_GetMessage_Args message{sizeof message, nullptr, error, nullptr};
    api.Error_GetMessage(&message);
    told.refusals.emplace_back(message.message);
    XLA_FFI_Error_Destroy_Args destroy{sizeof destroy, nullptr, error};
    api.Error_Destroy(&destroy);
  };
  for (int64_t i = 0; i < frame->args.size; ++i)
    told.types.push_back(static_cast<const XLA_FFI_Buffer*>(frame->args.args[i])->dtype);
  XLA_FFI_RunId_Get_Args run{sizeof run, nullptr, frame->ctx, 0};
  note(api.RunId_Get(&run));
  told.run_id = run.run_id;
  XLA_FFI_DeviceOrdinal_Get_Args ordinal{sizeof ordinal, nullptr, frame->ctx, -1};
  note(api.DeviceOrdinal_Get(&ordinal));
  told.device = ordinal.device_ordinal;
  XLA_FFI_DeviceMemory_Allocate_Args memory{sizeof memory, nullptr, frame->ctx, 100, 4096, nullptr};
  note(api.DeviceMemory_Allocate(&memory));
  told.address = reinterpret_cast<uintptr_t>(memory.data);
  if (memory.data) std::memset(memory.data, 1, memory.size);
  XLA_FFI_DeviceMemory_Free_Args end{sizeof end, nullptr, frame->ctx, memory.size, memory.data};
  note(api.DeviceMemory_Free(&end));
  XLA_FFI_ThreadPool_Schedule_Args task{sizeof task, nullptr, frame->ctx,
                                        [](void* data) { ++*static_cast<int*>(data); }, &told.tasks};
  note(api.ThreadPool_Schedule(&task));
  for (const int64_t id : {7, 8}) {
    XLA_FFI_TypeId type{id};
    XLA_FFI_ExecutionContext_Get_Args get{sizeof get, nullptr, frame->ctx, &type, nullptr};
    note(api.ExecutionContext_Get(&get));
    told.data[id] = get.data;
  }
  note(api.Handler_Register(nullptr));
  note(api.Stream_Get(nullptr));
  const auto* out = static_cast<const XLA_FFI_Buffer*>(frame->rets.args[0]);
  std::memset(out->data, 0, 2 * sizeof(float));
  return nullptr;
}

/// Fills its result later, on another thread.
XLA_FFI_Error* late(XLA_FFI_CallFrame* frame) {
  if (is_metadata(frame)) return nullptr;
  XLA_FFI_Future_Create_Args create{sizeof create, nullptr, nullptr};
  if (XLA_FFI_Error* error = frame->api->Future_Create(&create)) return error;
  frame->future = create.future;
  auto* out = static_cast<float*>(static_cast<const XLA_FFI_Buffer*>(frame->rets.args[0])->data);
  std::thread([out, api = frame->api, future = create.future] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    out[0] = out[1] = 5;
    XLA_FFI_Future_SetAvailable_Args done{sizeof done, nullptr, future};
    api->Future_SetAvailable(&done);
  }).detach();
  return nullptr;
}

/// Fails later, on another thread.
XLA_FFI_Error* fails_late(XLA_FFI_CallFrame* frame) {
  if (is_metadata(frame)) return nullptr;
  XLA_FFI_Future_Create_Args create{sizeof create, nullptr, nullptr};
  if (XLA_FFI_Error* error = frame->api->Future_Create(&create)) return error;
  frame->future = create.future;
  XLA_FFI_Error* const error = error_of(frame, 9, "it took too long");
  std::thread([error, api = frame->api, future = create.future] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    XLA_FFI_Future_SetError_Args done{sizeof done, nullptr, future, error};
    api->Future_SetError(&done);
  }).detach();
  return nullptr;
}

XLA_FFI_Error* of_another_version(XLA_FFI_CallFrame* frame) {
  is_metadata(frame, 99);
  return nullptr;
}

std::pair<int, std::string> add(const std::string& target, XLA_FFI_Handler* handler) {
  auto args = args_of<PJRT_FFI_Register_Handler_Args>();
  args.target_name = target.data();
  args.target_name_size = target.size();
  args.handler = reinterpret_cast<void*>(handler);
  args.platform_name = "collet";
  args.platform_name_size = 6;
  // As callers state it: without the padding at the end.
  args.struct_size = offsetof(PJRT_FFI_Register_Handler_Args, traits) + sizeof args.traits;
  return outcome(ffi().register_handler(&args));
}

/// As callers of version 1 of the extension do it, with or without the padding at the end of the struct.
std::pair<int, std::string> add_as_version_1(const std::string& target, XLA_FFI_Handler* handler, int api_version,
                                             bool padding) {
  auto args = args_of<PJRT_FFI_Register_Handler_Args_V1>();
  args.target_name = target.data();
  args.target_name_size = target.size();
  args.api_version = api_version;
  args.handler = reinterpret_cast<void*>(handler);
  args.platform_name = "collet";
  args.platform_name_size = 6;
  if (!padding) args.struct_size = offsetof(PJRT_FFI_Register_Handler_Args_V1, traits) + sizeof args.traits;
  return outcome(ffi().register_handler(reinterpret_cast<PJRT_FFI_Register_Handler_Args*>(&args)));
}

class FfiTest : public Plugin {
 protected:
  /// Compiles and runs a call of `target` with these attributes on {1, 2}.
  std::pair<int, std::string> call(const std::string& target, const std::string& attributes, std::vector<float>* values,
                                   PJRT_ExecuteContext* context = nullptr) {
    const std::string program =
        "module @calls { func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
        "%y = stablehlo.custom_call @" +
        target + "(%x) {api_version = 4 : i32, backend_config = " + attributes +
        "} : (tensor<2xf32>) -> tensor<2xf32>\n return %y : tensor<2xf32> } }";
    PJRT_LoadedExecutable* executable = nullptr;
    const auto compiled = outcome(compile(program, "mlir", "", &executable));
    if (compiled.first != PJRT_Error_Code_OK) return compiled;
    const float data[] = {1, 2};
    PJRT_Buffer *in = upload(data, {2}), *out = nullptr;
    const auto ran = outcome(run(executable, in, &out, context));
    if (ran.first == PJRT_Error_Code_OK) {
      *values = download(out);
      destroy(out);
    }
    destroy(in);
    destroy_executable(executable);
    return ran;
  }
  std::vector<float> result;
};

using Outcome = std::pair<int, std::string>;
const Outcome kOk{PJRT_Error_Code_OK, ""};

TEST_F(FfiTest, HandlersGetArraysAndAttributes) {
  ASSERT_EQ(add("ffi_scale", scale), kOk);
  ASSERT_EQ(call("ffi_scale",
                 "{scale = 1.500000e+00 : f32, axis = -1 : i32, name = \"a \\\"b\\\"\", window = array<i64: 3, -4>, "
                 "nested = {depth = 2 : i32}}",
                 &result),
            kOk);
  EXPECT_EQ(result, (std::vector<float>{1.5, 3}));
  const std::map<std::string, std::string> expected = {{"scale", "1.500000"},
                                                       {"axis", std::to_string(COLLET_TYPE_S32) + ":-1"},
                                                       {"name", "a \"b\""},
                                                       {"window", std::to_string(COLLET_TYPE_S64) + " 3 -4"},
                                                       {"nested", "{depth=" + std::to_string(COLLET_TYPE_S32) + ":2}"}};
  EXPECT_EQ(seen.attributes, expected);
  EXPECT_TRUE(std::is_sorted(seen.order.begin(), seen.order.end())) << "handlers search by halves";
  EXPECT_EQ(seen.rank, 1);
  EXPECT_EQ(seen.data, nullptr);
}

// Version 1 has a field more in the middle of the struct.
TEST_F(FfiTest, CallersOfBothVersionsRegisterHandlers) {
  for (const bool padding : {false, true}) {
    const std::string target = padding ? "ffi_padded" : "ffi_first";
    ASSERT_EQ(add_as_version_1(target, scale, 1, padding), kOk);
    ASSERT_EQ(call(target, "{scale = 3.0 : f32}", &result), kOk);
    EXPECT_EQ(result, (std::vector<float>{3, 6}));
  }
  ASSERT_EQ(add("ffi_second", scale), kOk);
  ASSERT_EQ(call("ffi_second", "{scale = 4.0 : f32}", &result), kOk);
  EXPECT_EQ(result, (std::vector<float>{4, 8}));
}

TEST_F(FfiTest, AttributesAreDecodedOnce) {
  ASSERT_EQ(add("ffi_scale", scale), kOk);
  const std::string config = "{scale = 2.0 : f32, of = \"this test\"}";
  ASSERT_EQ(call("ffi_scale", config, &result), kOk);
  const void* const first = seen.decoded;
  ASSERT_EQ(call("ffi_scale", "{scale = 3.0 : f32, of = \"this test\"}", &result), kOk);
  EXPECT_EQ(result[0], 3);
  EXPECT_NE(seen.decoded, first);
  ASSERT_EQ(call("ffi_scale", config, &result), kOk);
  EXPECT_EQ(seen.decoded, first);
  EXPECT_EQ(result[0], 2);
}

TEST_F(FfiTest, ErrorsOfHandlersAreTheRuns) {
  ASSERT_EQ(add("ffi_scale", scale), kOk);  // the same handler once more
  const auto [code, message] = call("ffi_scale", "{scale = -1.0 : f32}", &result);
  EXPECT_EQ(code, PJRT_Error_Code_FAILED_PRECONDITION);
  EXPECT_THAT(message, HasSubstr("a negative scale"));
  EXPECT_THAT(message, HasSubstr("ffi_scale"));
  const auto [other_code, other_message] = call("ffi_scale", "{scale = 1.0 : f32, flag}", &result);
  EXPECT_EQ(other_code, PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_THAT(other_message, HasSubstr("'flag'"));
}

TEST_F(FfiTest, ResultsMayComeLater) {
  ASSERT_EQ(add("ffi_late", late), kOk);
  ASSERT_EQ(call("ffi_late", "{}", &result), kOk);
  EXPECT_EQ(result, (std::vector<float>{5, 5}));
  ASSERT_EQ(add("ffi_fails_late", fails_late), kOk);
  const auto [code, message] = call("ffi_fails_late", "{}", &result);
  EXPECT_EQ(code, PJRT_Error_Code_FAILED_PRECONDITION);
  EXPECT_THAT(message, HasSubstr("it took too long"));
}

TEST_F(FfiTest, UnknownTargetsAreRefusedByName) {
  const auto [code, message] = call("ffi_nobody", "{}", &result);
  EXPECT_EQ(code, PJRT_Error_Code_UNIMPLEMENTED);
  EXPECT_THAT(message, HasSubstr("ffi_nobody"));
}

TEST_F(FfiTest, HandlersThatCannotBeCalledAreRefused) {
  const auto [untyped, untyped_message] = add_as_version_1("ffi_untyped", scale, 0, true);
  EXPECT_EQ(untyped, PJRT_Error_Code_UNIMPLEMENTED);
  EXPECT_THAT(untyped_message, HasSubstr("ffi_untyped"));
  const auto [old, old_message] = add("ffi_old", of_another_version);
  EXPECT_EQ(old, PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_THAT(old_message, HasSubstr("99."));
  EXPECT_EQ(add("ffi_null", nullptr).first, PJRT_Error_Code_INVALID_ARGUMENT);
  ASSERT_EQ(add("ffi_taken", scale), kOk);
  EXPECT_EQ(add("ffi_taken", late).first, PJRT_Error_Code_ALREADY_EXISTS);
}

TEST_F(FfiTest, RunsGetTheDataOfTheirContext) {
  ASSERT_EQ(add("ffi_scale", scale), kOk);
  auto create = args_of<PJRT_ExecuteContext_Create_Args>();
  expect_ok(api()->PJRT_ExecuteContext_Create(&create));
  int datum = 0;
  auto data = args_of<PJRT_FFI_UserData_Add_Args>();
  data.context = create.context;
  data.type_id = 7;
  data.data = &datum;
  expect_ok(ffi().user_data_add(&data));
  EXPECT_EQ(outcome(ffi().user_data_add(&data)).first, PJRT_Error_Code_ALREADY_EXISTS);
  ASSERT_EQ(call("ffi_scale", "{scale = 2.0 : f32}", &result, create.context), kOk);
  EXPECT_EQ(seen.data, &datum);
  ASSERT_EQ(call("ffi_scale", "{scale = 2.0 : f32}", &result), kOk);
  EXPECT_EQ(seen.data, nullptr);
  auto destroy = args_of<PJRT_ExecuteContext_Destroy_Args>();
  destroy.context = create.context;
  expect_ok(api()->PJRT_ExecuteContext_Destroy(&destroy));
}

TEST_F(FfiTest, HandlersAreToldWhatTheyAsk) {
  ASSERT_EQ(add("ffi_asks", asks), kOk);
  auto create = args_of<PJRT_ExecuteContext_Create_Args>();
  expect_ok(api()->PJRT_ExecuteContext_Create(&create));
  int datum = 0, other = 0;
  for (const auto& [type, value] : {std::pair(7, &datum), std::pair(8, &other)}) {
    auto data = args_of<PJRT_FFI_UserData_Add_Args>();
    data.context = create.context;
    data.type_id = type;
    data.data = value;
    expect_ok(ffi().user_data_add(&data));
  }
  const std::string program =
      "module @asks { func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
      "%i = stablehlo.convert %x : (tensor<2xf32>) -> tensor<2xi32>\n"
      "%y = stablehlo.custom_call @ffi_asks(%x, %i) {api_version = 4 : i32, backend_config = {}} : (tensor<2xf32>, "
      "tensor<2xi32>) -> tensor<2xf32>\n return %y : tensor<2xf32> } }";
  PJRT_LoadedExecutable* executable = nullptr;
  expect_ok(compile(program, "mlir", "", &executable));
  const float data[] = {1, 2};
  PJRT_Buffer* in = upload(data, {2});
  std::vector<int64_t> runs;
  for (int i = 0; i < 2; ++i) {
    PJRT_Buffer* out = nullptr;
    ASSERT_EQ(outcome(run(executable, in, &out, create.context)), kOk);
    EXPECT_EQ(download(out), (std::vector<float>{0, 0}));
    destroy(out);
    runs.push_back(told.run_id);
  }
  EXPECT_NE(runs[0], runs[1]) << "each run has a number of its own";
  EXPECT_EQ(told.types, (std::vector<int>{COLLET_TYPE_F32, COLLET_TYPE_S32}));
  EXPECT_EQ(told.device, 0);
  EXPECT_NE(told.address, 0u);
  EXPECT_EQ(told.address % 4096, 0u);
  EXPECT_EQ(told.tasks, 1);
  EXPECT_EQ(told.data[7], &datum);
  EXPECT_EQ(told.data[8], &other);
  ASSERT_EQ(told.refusals.size(), 2u);
  EXPECT_THAT(told.refusals[0], HasSubstr("register_ffi_target"));
  EXPECT_THAT(told.refusals[1], HasSubstr("there is no stream"));
  destroy(in);
  destroy_executable(executable);
  auto end = args_of<PJRT_ExecuteContext_Destroy_Args>();
  end.context = create.context;
  expect_ok(api()->PJRT_ExecuteContext_Destroy(&end));
}

TEST_F(FfiTest, TypesHaveOneId) {
  const auto id = [](const std::string& name, int64_t wanted) {
    auto args = args_of<PJRT_FFI_Type_Register_Args>();
    args.type_name = name.data();
    args.type_name_size = name.size();
    args.type_id = wanted;
    const auto [code, message] = outcome(ffi().type_register(&args));
    return code == PJRT_Error_Code_OK ? args.type_id : -1;
  };
  const int64_t first = id("ffi.first", 0);
  EXPECT_GT(first, 0);
  EXPECT_EQ(id("ffi.first", 0), first);
  EXPECT_EQ(id("ffi.first", first), first);
  EXPECT_EQ(id("ffi.first", first + 100), -1);
  EXPECT_NE(id("ffi.second", 0), first);
}

TEST_F(FfiTest, ExecutablesLoadOnClientsOfTheSameVersion) {
  const auto& extension = extension_of_library<PJRT_AbiVersion_Extension>(PJRT_Extension_Type_AbiVersion);
  auto runtime = args_of<PJRT_Client_RuntimeAbiVersion_Args>();
  runtime.client = client;
  expect_ok(extension.client_runtime_abi_version(&runtime));
  PJRT_LoadedExecutable* executable = nullptr;
  expect_ok(compile(kDouble, "mlir", "", &executable));
  auto unloaded = args_of<PJRT_LoadedExecutable_GetExecutable_Args>();
  unloaded.loaded_executable = executable;
  expect_ok(api()->PJRT_LoadedExecutable_GetExecutable(&unloaded));
  auto made = args_of<PJRT_Executable_GetAbiVersion_Args>();
  made.executable = unloaded.executable;
  expect_ok(extension.executable_get_abi_version(&made));
  auto proto = args_of<PJRT_ExecutableAbiVersion_ToProto_Args>();
  proto.abi_version = made.abi_version;
  expect_ok(extension.executable_abi_version_to_proto(&proto));
  std::string bytes(proto.serialized_proto, proto.serialized_proto_size);
  proto.serialized_proto_deleter(proto.serialized_proto_holder);
  const auto compatible = [&](const std::string& of) {
    auto read = args_of<PJRT_ExecutableAbiVersion_FromProto_Args>();
    read.serialized_proto = of.data();
    read.serialized_proto_size = of.size();
    const auto [code, message] = outcome(extension.executable_abi_version_from_proto(&read));
    if (code != PJRT_Error_Code_OK) return code;
    auto is = args_of<PJRT_RuntimeAbiVersion_IsCompatibleWithExecutable_Args>();
    is.abi_version = runtime.abi_version;
    is.executable_abi_version = read.abi_version;
    const int answer = outcome(extension.runtime_abi_version_is_compatible_with_executable(&is)).first;
    auto destroy_it = args_of<PJRT_ExecutableAbiVersion_Destroy_Args>();
    destroy_it.abi_version = read.abi_version;
    expect_ok(extension.executable_abi_version_destroy(&destroy_it));
    return answer;
  };
  EXPECT_EQ(compatible(bytes), PJRT_Error_Code_OK);
  std::string other = bytes;
  other.back() ^= 1;
  EXPECT_EQ(compatible(other), PJRT_Error_Code_FAILED_PRECONDITION);
  EXPECT_EQ(compatible(bytes.substr(0, bytes.size() - 1)), PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_EQ(compatible(""), PJRT_Error_Code_INVALID_ARGUMENT);
  auto end_runtime = args_of<PJRT_RuntimeAbiVersion_Destroy_Args>();
  end_runtime.abi_version = runtime.abi_version;
  expect_ok(extension.runtime_abi_version_destroy(&end_runtime));
  auto end_made = args_of<PJRT_ExecutableAbiVersion_Destroy_Args>();
  end_made.abi_version = made.abi_version;
  expect_ok(extension.executable_abi_version_destroy(&end_made));
  auto end = args_of<PJRT_Executable_Destroy_Args>();
  end.executable = unloaded.executable;
  expect_ok(api()->PJRT_Executable_Destroy(&end));
  destroy_executable(executable);
}

TEST_F(FfiTest, DescribedDevicesHaveTheMemoriesOfOpenOnes) {
  const auto& extension =
      extension_of_library<PJRT_MemoryDescriptions_Extension>(PJRT_Extension_Type_MemoryDescriptions);
  auto description = args_of<PJRT_Device_GetDescription_Args>();
  description.device = device;
  expect_ok(api()->PJRT_Device_GetDescription(&description));
  auto described = args_of<PJRT_DeviceDescription_MemoryDescriptions_Args>();
  described.device_description = description.device_description;
  expect_ok(extension.PJRT_DeviceDescription_MemoryDescriptions(&described));
  auto memories = args_of<PJRT_Device_AddressableMemories_Args>();
  memories.device = device;
  expect_ok(api()->PJRT_Device_AddressableMemories(&memories));
  ASSERT_EQ(described.num_memory_descriptions, memories.num_memories);
  for (size_t i = 0; i < memories.num_memories; ++i) {
    auto kind = args_of<PJRT_MemoryDescription_Kind_Args>();
    kind.memory_description = described.memory_descriptions[i];
    expect_ok(extension.PJRT_MemoryDescription_Kind(&kind));
    auto open_kind = args_of<PJRT_Memory_Kind_Args>();
    auto open_id = args_of<PJRT_Memory_Kind_Id_Args>();
    open_kind.memory = open_id.memory = memories.memories[i];
    expect_ok(api()->PJRT_Memory_Kind(&open_kind));
    expect_ok(api()->PJRT_Memory_Kind_Id(&open_id));
    EXPECT_EQ(std::string(kind.kind, kind.kind_size), std::string(open_kind.kind, open_kind.kind_size));
    EXPECT_EQ(kind.kind_id, open_id.kind_id);
    if (memories.memories[i] == memory()) {
      EXPECT_EQ(described.default_memory_index, i);
    }
  }
}

}  // namespace
}  // namespace collet::pjrt
