// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/pjrt/api/table.h"
#include "sdk/pjrt/ffi_call.h"

/// \file
/// PJRT's extension for foreign functions: frontends register handlers of XLA's typed FFI, which custom calls of programs
/// name. A backend that implements the target itself comes first; the handler is called where the program would
/// otherwise fail.

/// Data that handlers of a run get: PJRT_ExecuteContext is opaque for callers.
struct PJRT_ExecuteContext {
  collet::pjrt::UserData data;
};

namespace collet::pjrt {

/// Returns the extension, followed by `next`.
PJRT_Extension_Base* ffi_extension(PJRT_Extension_Base* next);

/// Returns an id for a run with a context. The library assigns smaller ones to other runs.
uint64_t run_id_with_context();

}  // namespace collet::pjrt
