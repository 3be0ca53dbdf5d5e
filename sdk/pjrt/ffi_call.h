// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "sdk/pjrt/ffi_abi.h"

/// \file
/// Calls handlers of XLA's typed FFI. They run on the host: their arguments and results are dense arrays in host memory.

namespace collet::pjrt {

/// The data of an execute context, by type; null pointers are none.
using UserData = std::map<int64_t, void*>;

/// Returns the id of the type with this name, which is `wanted` unless that is 0; 0 if the name has another id.
int64_t ffi_type_id(const std::string& name, int64_t wanted);

/// Makes `data` what handlers get during the run with this id, until `end_user_data`.
void begin_user_data(uint64_t run_id, std::shared_ptr<const UserData> data);
void end_user_data(uint64_t run_id);

/// Returns why a handler cannot be called, from the metadata that it states; empty if it can.
std::string ffi_complaint(XLA_FFI_Handler* handler);

/// A host function whose `user` is an XLA_FFI_Handler: the attributes of the custom call are read from its
/// configuration, which must be a dictionary or empty; a configuration is decoded once. Waits for handlers that return a future.
collet_status call_ffi_handler(void* user, const collet_host_call* call, collet_error* error);

}  // namespace collet::pjrt
