// SPDX-License-Identifier: Apache-2.0
#include "device.h"
#include "units.h"

namespace acme {

collet::kernel::Backend describe() {
  collet::kernel::Backend backend;
  backend.name = "acme";
  backend.version = "0.1.0";
  backend.opset = 1;  // raise it after checking the units against the attributes and types that newer opsets added
  backend.device_kind = "Acme stand-in";
  backend.fingerprint = "acme-0";
  // Constants are packed, and stay on the device. A loop over the layers of a model becomes a part of the list.
  backend.traits = COLLET_TRAIT_INLINE_CONSTANTS | COLLET_TRAIT_UNROLLED_LOOPS;
  for (const uint32_t type : {COLLET_TYPE_F32, COLLET_TYPE_S32, COLLET_TYPE_S8, COLLET_TYPE_PRED}) {
    backend.types.push_back({type, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE});
  }
  backend.compiler = compiler();
  backend.open_device = [](uint32_t) { return std::make_unique<Device>(); };
  return backend;
}

}  // namespace acme

COLLET_KERNEL_BACKEND(acme::describe)
