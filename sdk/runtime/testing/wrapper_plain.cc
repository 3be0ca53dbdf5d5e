// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/testing/wrapper.h"

namespace collet::testing {

Control* default_control() {
  return nullptr;
}

const char* default_name() {
  return nullptr;
}

}  // namespace collet::testing
