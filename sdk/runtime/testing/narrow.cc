// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/testing/wrapper.h"

namespace collet::testing {

/// A device that supports bf16, f32 and s32, and no control flow.
Control* default_control() {
  static Control control;
  control.types = uint64_t{1} << COLLET_TYPE_BF16 | uint64_t{1} << COLLET_TYPE_F32 | uint64_t{1} << COLLET_TYPE_S32;
  control.remove_traits = COLLET_TRAIT_CONTROL_FLOW | COLLET_TRAIT_COLLECTIVES;
  return &control;
}

const char* default_name() {
  return "narrow";
}

}  // namespace collet::testing
