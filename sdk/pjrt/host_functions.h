// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "sdk/pjrt/api/basics.h"

/// \file
/// Functions of the frontend's that programs may call: how Python callbacks get into a program. They are the process's,
/// not a client's, and are added through an extension of our own.

namespace collet::pjrt {

/// Extension type: a number that nobody else has; callers pass over what they do not know.
inline constexpr int kHostFunctionsExtension = 0x436F6C;

/// The extension, as ctypes see it too.
struct HostFunctionsExtension {
  PJRT_Extension_Base base;
  /// From here on, programs that are compiled may call `call` by `target`, a name that is never used again. 0, or 1 where
  /// the name is there.
  int (*add)(const char* target, void* user, decltype(collet_host_function::call) call);
  /// Removes a function. Programs compiled later cannot call it; those that are compiled still can.
  void (*remove)(const char* target);
  /// 1, and the `user` of a removed function that nothing calls any more, each one once; 0 where there is none.
  int (*take_unused)(void** user);
};

/// Held by what may call a function.
using HostFunctionUse = std::shared_ptr<const void>;

/// The functions that there are while this is looked at.
struct HostFunctions {
  std::deque<std::string> targets;
  std::vector<collet_host_function> list;
  std::vector<HostFunctionUse> uses;
};
HostFunctions host_functions();

/// The extension, followed by `next`.
PJRT_Extension_Base* host_functions_extension(PJRT_Extension_Base* next);

}  // namespace collet::pjrt
