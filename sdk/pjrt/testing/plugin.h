// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "sdk/pjrt/api/extensions.h"
#include "sdk/pjrt/api/table.h"
#include "sdk/pjrt/host_functions.h"

/// \file
/// For tests: uses the plugin as a frontend does, loaded by path and called through its table.

namespace collet::pjrt::testing {

inline const PJRT_Api* api() {
  static const PJRT_Api* const table = [] {
    const char* const other = std::getenv("COLLET_TEST_PJRT_LIBRARY");  // a copy, such as one with a fault
    void* library = dlopen(other ? other : COLLET_PJRT_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    auto* get = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"));
    EXPECT_NE(get, nullptr);
    return get();
  }();
  return table;
}

template <typename Args>
Args args_of() {
  Args args{};
  args.struct_size = sizeof(Args);
  return args;
}

// Returns code and message of an error and destroys it; OK for null.
inline std::pair<int, std::string> outcome(PJRT_Error* error) {
  if (!error) return {PJRT_Error_Code_OK, ""};
  auto code = args_of<PJRT_Error_GetCode_Args>();
  code.error = error;
  EXPECT_EQ(api()->PJRT_Error_GetCode(&code), nullptr);
  auto message = args_of<PJRT_Error_Message_Args>();
  message.error = error;
  api()->PJRT_Error_Message(&message);
  std::pair<int, std::string> out = {code.code, std::string(message.message, message.message_size)};
  EXPECT_EQ(error->vtable->get_code(error), code.code);
  auto destroy = args_of<PJRT_Error_Destroy_Args>();
  destroy.error = error;
  api()->PJRT_Error_Destroy(&destroy);
  return out;
}

inline void expect_ok(PJRT_Error* error) {
  const auto [code, message] = outcome(error);
  EXPECT_EQ(code, PJRT_Error_Code_OK) << message;
}

inline void free_event(PJRT_Event* event) {
  auto destroy = args_of<PJRT_Event_Destroy_Args>();
  destroy.event = event;
  expect_ok(api()->PJRT_Event_Destroy(&destroy));
}

inline void await(PJRT_Event* event) {
  auto wait = args_of<PJRT_Event_Await_Args>();
  wait.event = event;
  expect_ok(api()->PJRT_Event_Await(&wait));
  free_event(event);
}

/// Options of a client, as a frontend passes them.
class NamedOptions {
 public:
  explicit NamedOptions(std::vector<std::pair<std::string, std::string>> options) : options_(std::move(options)) {
    for (const auto& [name, value] : options_) {
      PJRT_NamedValue option{};
      option.struct_size = sizeof option;
      option.name = name.c_str();
      option.name_size = name.size();
      option.type = PJRT_NamedValue_kString;
      option.string_value = value.c_str();
      option.value_size = value.size();
      values_.push_back(option);
    }
  }
  NamedOptions(const NamedOptions&) = delete;
  const std::vector<PJRT_NamedValue>& values() const { return values_; }

 private:
  std::vector<std::pair<std::string, std::string>> options_;
  std::vector<PJRT_NamedValue> values_;
};

/// Refers to both texts.
inline PJRT_Program program_of(std::string& code, const std::string& format) {
  PJRT_Program program{};
  program.struct_size = sizeof program;
  program.code = code.data();
  program.code_size = code.size();
  program.format = format.data();
  program.format_size = format.size();
  return program;
}

/// A layout without tiles. Refers to the order.
inline PJRT_Buffer_MemoryLayout tiled_layout(const std::vector<int64_t>& minor_to_major) {
  PJRT_Buffer_MemoryLayout layout{};
  layout.struct_size = sizeof layout;
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.struct_size = sizeof layout.tiled;
  layout.tiled.minor_to_major = minor_to_major.data();
  layout.tiled.minor_to_major_size = minor_to_major.size();
  return layout;
}

class Plugin : public ::testing::Test {
 protected:
  void SetUp() override {
    auto create = args_of<PJRT_Client_Create_Args>();
    more_options.emplace_back("backend", backend_name);
    const NamedOptions options(more_options);
    create.create_options = options.values().data();
    create.num_options = options.values().size();
    expect_ok(api()->PJRT_Client_Create(&create));
    client = create.client;
    ASSERT_NE(client, nullptr);
    auto devices = args_of<PJRT_Client_AddressableDevices_Args>();
    devices.client = client;
    expect_ok(api()->PJRT_Client_AddressableDevices(&devices));
    ASSERT_GE(devices.num_addressable_devices, 1u);
    device = devices.addressable_devices[0];
  }

  void TearDown() override {
    auto destroy = args_of<PJRT_Client_Destroy_Args>();
    destroy.client = client;
    expect_ok(api()->PJRT_Client_Destroy(&destroy));
  }

  PJRT_Buffer* upload(const float* data, std::vector<int64_t> dims, std::vector<int64_t> strides = {}) {
    auto from = args_of<PJRT_Client_BufferFromHostBuffer_Args>();
    from.client = client;
    from.data = data;
    from.type = PJRT_Buffer_Type_F32;
    from.dims = dims.data();
    from.num_dims = dims.size();
    from.byte_strides = strides.data();
    from.num_byte_strides = strides.size();
    from.device = device;
    expect_ok(api()->PJRT_Client_BufferFromHostBuffer(&from));
    await(from.done_with_host_buffer);
    return from.buffer;
  }

  std::vector<float> download(PJRT_Buffer* buffer) {
    auto to = args_of<PJRT_Buffer_ToHostBuffer_Args>();
    to.src = buffer;
    expect_ok(api()->PJRT_Buffer_ToHostBuffer(&to));
    std::vector<float> out(to.dst_size / sizeof(float));
    if (out.empty()) return out;  // its address is null, which asks for the size
    to.dst = out.data();
    expect_ok(api()->PJRT_Buffer_ToHostBuffer(&to));
    await(to.event);
    return out;
  }

  void destroy(PJRT_Buffer* buffer) {
    auto args = args_of<PJRT_Buffer_Destroy_Args>();
    args.buffer = buffer;
    expect_ok(api()->PJRT_Buffer_Destroy(&args));
  }

  PJRT_Error* compile(std::string code, const std::string& format, const std::string& options,
                      PJRT_LoadedExecutable** out) {
    PJRT_Program program = program_of(code, format);
    auto args = args_of<PJRT_Client_Compile_Args>();
    args.client = client;
    args.program = &program;
    args.compile_options = options.data();
    args.compile_options_size = options.size();
    PJRT_Error* error = api()->PJRT_Client_Compile(&args);
    *out = args.executable;
    return error;
  }

  PJRT_Memory* memory() {
    auto args = args_of<PJRT_Device_DefaultMemory_Args>();
    args.device = device;
    expect_ok(api()->PJRT_Device_DefaultMemory(&args));
    return args.memory;
  }

  PJRT_Error* run(PJRT_LoadedExecutable* executable, PJRT_Buffer* argument, PJRT_Buffer** result,
                  PJRT_ExecuteContext* context = nullptr) {
    PJRT_ExecuteOptions options{};
    options.struct_size = sizeof options;
    options.context = context;
    PJRT_Buffer* const* arguments[] = {&argument};
    PJRT_Buffer** results[] = {result};
    auto args = args_of<PJRT_LoadedExecutable_Execute_Args>();
    args.executable = executable;
    args.options = &options;
    args.argument_lists = arguments;
    args.num_devices = 1;
    args.num_args = 1;
    args.output_lists = results;
    return api()->PJRT_LoadedExecutable_Execute(&args);
  }

  void destroy_executable(PJRT_LoadedExecutable* executable) {
    auto args = args_of<PJRT_LoadedExecutable_Destroy_Args>();
    args.executable = executable;
    expect_ok(api()->PJRT_LoadedExecutable_Destroy(&args));
  }

  std::string backend_name = "interpreter";
  std::vector<std::pair<std::string, std::string>> more_options;  ///< options of the client in addition to its backend
  PJRT_Client* client = nullptr;
  PJRT_Device* device = nullptr;
};

/// Returns an extension of the library, which must have it.
template <typename Extension>
const Extension& extension_of_library(int type) {
  const PJRT_Extension_Base* extension = api()->extension_start;
  while (extension->type != static_cast<PJRT_Extension_Type>(type)) extension = extension->next;
  return *reinterpret_cast<const Extension*>(extension);
}

inline const HostFunctionsExtension& host_functions_of_library() {
  return extension_of_library<HostFunctionsExtension>(kHostFunctionsExtension);
}

inline constexpr const char* kDouble = R"(
module @twice {
  func.func public @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %y = stablehlo.add %x, %x : tensor<2x3xf32>
    return %y : tensor<2x3xf32>
  }
})";

}  // namespace collet::pjrt::testing
