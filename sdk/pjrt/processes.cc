// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/processes.h"

#include <collet/error.h>
#include <collet/processes.h>

#include <algorithm>
#include <climits>
#include <memory>

#include "sdk/pjrt/call.h"

namespace collet::pjrt {
namespace {

// The caller makes errors with this function; they are then this library's.
PJRT_Error* error_of_caller(PJRT_Error_Code code, const char* message, size_t size) {
  return make_error(code, std::string(message, size));
}

// Fills `error` with an error of the caller, which it destroys.
collet_status to_c(PJRT_Error* failure, collet_error* error) {
  const std::unique_ptr<Error> owned(static_cast<Error*>(failure));
  const bool known = owned->code <= PJRT_Error_Code_DATA_LOSS;  // the codes up to here are equal
  return collet_set_error(error, known ? static_cast<collet_status>(owned->code) : COLLET_UNKNOWN,
                          owned->message.c_str());
}

collet_status put(void* user, const char* key, const void* value, uint64_t bytes, collet_error* error) {
  const auto& caller = *static_cast<const PJRT_Client_Create_Args*>(user);
  PJRT_CallbackError make = error_of_caller;
  PJRT_KeyValuePutCallback_Args args{};
  args.struct_size = sizeof args;
  args.key = key;
  args.key_size = std::strlen(key);
  args.value = static_cast<const char*>(value);
  args.value_size = bytes;
  args.callback_error = &make;
  args.user_arg = caller.kv_put_user_arg;
  PJRT_Error* const failure = caller.kv_put_callback(&args);
  return failure ? to_c(failure, error) : COLLET_OK;
}

collet_status get(void* user, const char* key, uint32_t timeout_ms,
                  void (*take)(void* out, const void* value, uint64_t bytes), void* out, collet_error* error) {
  const auto& caller = *static_cast<const PJRT_Client_Create_Args*>(user);
  PJRT_CallbackError make = error_of_caller;
  PJRT_KeyValueGetCallback_Args args{};
  args.struct_size = sizeof args;
  args.key = key;
  args.key_size = std::strlen(key);
  args.timeout_in_ms = static_cast<int>(std::min<uint32_t>(timeout_ms, INT_MAX));
  args.callback_error = &make;
  args.user_arg = caller.kv_get_user_arg;
  if (PJRT_Error* const failure = caller.kv_get_callback(&args)) return to_c(failure, error);
  take(out, args.value, args.value_size);
  if (args.value_deleter_callback) args.value_deleter_callback(args.value);
  return COLLET_OK;
}

}  // namespace

PJRT_Error* join_processes(PJRT_Client& client, const PJRT_Client_Create_Args& args) {
  const Settings& s = client.settings;
  if (s.processes <= 1) return nullptr;
  if (s.process >= s.processes)
    return invalid_argument("option node_id is " + std::to_string(s.process) + "; it is below num_nodes, " +
                            std::to_string(s.processes));
  if (!args.kv_get_callback || !args.kv_put_callback)
    return failed_precondition(
        "the option num_nodes says " + std::to_string(s.processes) +
        " processes, but the caller passes no key-value store through which they find each other");
  PJRT_Client_Create_Args caller = args;
  const collet_store store = {sizeof(collet_store), 0, &caller, put, get};
  collet_processes group{};
  group.struct_size = sizeof group;
  group.rank = s.process;
  group.size = s.processes;
  group.store = &store;
  COLLET_PJRT_TRY(collet_client_join(client.handle, &group, &failure));
  return nullptr;
}

}  // namespace collet::pjrt
