// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/pjrt/api/base.h"

/// \file
/// PJRT's extension that says whether a serialized executable will load: it does on a client of the same backend, by the
/// same version of Collet. Versions are exchanged as messages with the platform's number (field 1) and the version's
/// text (field 2).

namespace collet::pjrt {

/// Returns the extension, followed by `next`.
PJRT_Extension_Base* abi_version_extension(PJRT_Extension_Base* next);

}  // namespace collet::pjrt
