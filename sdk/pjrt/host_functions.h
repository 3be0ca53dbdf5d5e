// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "sdk/pjrt/api/basics.h"

/// \file
/// Host functions of the frontend that programs may call, which is how Python callbacks are implemented. They belong to
/// the process, not to a client, and are added through an extension that only this library has.

namespace collet::pjrt {

/// Extension type: a number that no other extension uses. Callers skip unknown extensions.
inline constexpr int kHostFunctionsExtension = 0x436F6C;

/// The extension; Python accesses it by ctypes.
struct HostFunctionsExtension {
  PJRT_Extension_Base base;
  /// Adds a function: programs that are compiled from now on may call `call` by `target`, a name that must never be
  /// reused. Returns 0, or 1 if the name exists.
  int (*add)(const char* target, void* user, decltype(collet_host_function::call) call);
  /// Removes a function. Programs compiled later cannot call it; those that are compiled still can.
  void (*remove)(const char* target);
  /// Returns 1 and the `user` of a removed function that no program can call any more, each one once; 0 if there is
  /// none.
  int (*take_unused)(void** user);
};

/// A reference that every possible caller of a function holds.
using HostFunctionUse = std::shared_ptr<const void>;

/// The functions that exist while this object holds the lock.
struct HostFunctions {
  std::deque<std::string> targets;
  std::vector<collet_host_function> list;
  std::vector<HostFunctionUse> uses;
};
HostFunctions host_functions();

/// Adds a function as HostFunctionsExtension::add does; false if the name exists.
bool add_host_function(const char* target, void* user, decltype(collet_host_function::call) call);
/// Returns whether the function with this name is this one.
bool has_host_function(const char* target, void* user, decltype(collet_host_function::call) call);

/// Returns the extension, followed by `next`.
PJRT_Extension_Base* host_functions_extension(PJRT_Extension_Base* next);

}  // namespace collet::pjrt
