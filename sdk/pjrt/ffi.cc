// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/ffi.h"

#include <atomic>
#include <string>
#include <utility>

#include "sdk/pjrt/api/extensions.h"
#include "sdk/pjrt/call.h"
#include "sdk/pjrt/host_functions.h"

namespace collet::pjrt {
namespace {

constexpr int kTyped = 1;  // api_version of handlers that take a call frame

PJRT_Error* register_type(PJRT_FFI_Type_Register_Args* caller) {
  using Args = PJRT_FFI_Type_Register_Args;
  constexpr size_t kLeast = offsetof(Args, type_id) + sizeof(Args::type_id);
  return guarded(caller, "PJRT_FFI_Type_Register_Args", kLeast, sizeof(Args), [](Args& args) -> PJRT_Error* {
    const std::string name(args.type_name, args.type_name_size);
    const int64_t id = ffi_type_id(name, args.type_id);
    if (!id) return make_error(PJRT_Error_Code_ALREADY_EXISTS, "the type '" + name + "' has another id");
    args.type_id = id;
    return nullptr;
  });
}

PJRT_Error* add_user_data(PJRT_FFI_UserData_Add_Args* caller) {
  using Args = PJRT_FFI_UserData_Add_Args;
  constexpr size_t kLeast = offsetof(Args, data) + sizeof(Args::data);
  return guarded(caller, "PJRT_FFI_UserData_Add_Args", kLeast, sizeof(Args), [](Args& args) -> PJRT_Error* {
    if (!args.context) return invalid_argument("there is no execute context");
    if (args.deleter) return unimplemented("user data with a deleter: the caller keeps its data");
    if (args.context->data.emplace(args.type_id, args.data).second) return nullptr;
    return make_error(PJRT_Error_Code_ALREADY_EXISTS, "the execute context has data of this type");
  });
}

PJRT_Error* add_handler(const PJRT_FFI_Register_Handler_Args& args) {
  const std::string target(args.target_name, args.target_name_size);
  if (!args.handler) return invalid_argument("the handler of '" + target + "' is null");
  const std::string complaint = ffi_complaint(reinterpret_cast<XLA_FFI_Handler*>(args.handler));
  if (!complaint.empty()) return invalid_argument("the handler of '" + target + "' cannot be called: " + complaint);
  if (add_host_function(target.c_str(), args.handler, call_ffi_handler)) return nullptr;
  if (has_host_function(target.c_str(), args.handler, call_ffi_handler)) return nullptr;  // registered once more
  return make_error(PJRT_Error_Code_ALREADY_EXISTS, "'" + target + "' has another handler");
}

PJRT_Error* register_handler_of_version_1(PJRT_FFI_Register_Handler_Args_V1* caller) {
  using Args = PJRT_FFI_Register_Handler_Args_V1;
  constexpr size_t kLeast = offsetof(Args, platform_name_size) + sizeof(Args::platform_name_size);
  return guarded(caller, "PJRT_FFI_Register_Handler_Args", kLeast, sizeof(Args), [](Args& args) -> PJRT_Error* {
    if (args.api_version != kTyped)
      return unimplemented("the handler of '" + std::string(args.target_name, args.target_name_size) +
                           "' is for untyped custom calls; only typed ones are called");
    return add_handler({sizeof(PJRT_FFI_Register_Handler_Args), args.target_name, args.target_name_size, args.handler,
                        args.platform_name, args.platform_name_size, args.traits});
  });
}

/// Returns whether a struct is that of version 1. The versions differ in a field in the middle, so the size decides: with the traits,
/// with which both versions end, and with or without padding.
bool is_of_version_1(size_t struct_size) {
  using Args = PJRT_FFI_Register_Handler_Args_V1;
  return struct_size == offsetof(Args, traits) + sizeof(Args::traits) || struct_size == sizeof(Args);
}

PJRT_Error* register_handler(PJRT_FFI_Register_Handler_Args* caller) {
  using Args = PJRT_FFI_Register_Handler_Args;
  if (caller && is_of_version_1(caller->struct_size))
    return register_handler_of_version_1(reinterpret_cast<PJRT_FFI_Register_Handler_Args_V1*>(caller));
  constexpr size_t kLeast = offsetof(Args, platform_name_size) + sizeof(Args::platform_name_size);
  return guarded(caller, "PJRT_FFI_Register_Handler_Args", kLeast, sizeof(Args),
                 [](Args& args) { return add_handler(args); });
}

std::atomic<uint64_t> last_run{uint64_t{1} << 62};

}  // namespace

uint64_t run_id_with_context() {
  return ++last_run;
}

PJRT_Extension_Base* ffi_extension(PJRT_Extension_Base* next) {
  static PJRT_FFI_Extension extension = {
      {sizeof(PJRT_FFI_Extension), PJRT_Extension_Type_FFI, nullptr}, register_type, add_user_data, register_handler};
  extension.base.next = next;
  return &extension.base;
}

PJRT_Error* call(PJRT_ExecuteContext_Create_Args& args) {
  args.context = new PJRT_ExecuteContext;
  return nullptr;
}

PJRT_Error* call(PJRT_ExecuteContext_Destroy_Args& args) {
  delete args.context;
  return nullptr;
}

}  // namespace collet::pjrt
