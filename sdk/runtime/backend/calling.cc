// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/backend/calling.h"

namespace collet::runtime {

thread_local constinit Calling::Place Calling::current = {};

}  // namespace collet::runtime
