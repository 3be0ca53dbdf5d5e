// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/pjrt/api/base.h"

/// \file
/// PJRT's extension for copies of arrays between devices of several processes, by which JAX carries out `jax.device_put` to a
/// device of another process.

namespace collet::pjrt {

/// Returns the extension, followed by `next`.
PJRT_Extension_Base* cross_host_transfers_extension(PJRT_Extension_Base* next);

}  // namespace collet::pjrt
