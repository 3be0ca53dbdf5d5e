// SPDX-License-Identifier: Apache-2.0
// The backend of 1.0/cxx, with queues: its work runs on threads of the kernel table's helper.
#include "device.h"
#include "kernels.h"

namespace {

collet::kernel::Backend describe() {
  collet::kernel::Backend backend;
  backend.name = "acme_queued";
  backend.version = "0.1.0";
  backend.device_kind = "Acme stand-in with queues";
  backend.fingerprint = "acme-queued-0";
  backend.types = {{COLLET_TYPE_F32, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE},
                   {COLLET_TYPE_S32, COLLET_MAY_STORE | COLLET_MAY_MOVE},
                   {COLLET_TYPE_PRED, COLLET_MAY_STORE | COLLET_MAY_MOVE}};
  backend.kernels = acme::kernels();
  backend.queues = true;
  backend.open_device = [](uint32_t) { return std::make_unique<acme::Device>(); };
  return backend;
}

}  // namespace

COLLET_KERNEL_BACKEND(describe)
