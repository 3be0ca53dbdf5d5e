// SPDX-License-Identifier: Apache-2.0
#include "device.h"
#include "kernels.h"

namespace acme {

collet::kernel::Backend describe() {
  collet::kernel::Backend backend;
  backend.name = "acme";
  backend.version = "0.1.0";
  backend.opset = 1;  // raise it once every row has been checked against what newer opsets added
  backend.device_kind = "Acme stand-in";
  backend.fingerprint = "acme-0";
  backend.types = {{COLLET_TYPE_F32, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE},
                   {COLLET_TYPE_S32, COLLET_MAY_STORE | COLLET_MAY_MOVE},
                   {COLLET_TYPE_PRED, COLLET_MAY_STORE | COLLET_MAY_MOVE}};
  backend.kernels = kernels();
  backend.open_device = [](uint32_t) { return std::make_unique<Device>(); };
  return backend;
}

}  // namespace acme

COLLET_KERNEL_BACKEND(acme::describe)
