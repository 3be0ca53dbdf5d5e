// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/call.h"
#include "sdk/pjrt/client.h"

/// \file
/// Registers host memory, so that devices copy from and to it directly.

namespace collet::pjrt {

PJRT_Error* call(PJRT_Client_DmaMap_Args& args) {
  COLLET_PJRT_TRY(collet_client_register_host_memory(args.client->handle, args.data, args.size, &failure));
  return nullptr;
}

PJRT_Error* call(PJRT_Client_DmaUnmap_Args& args) {
  COLLET_PJRT_TRY(collet_client_unregister_host_memory(args.client->handle, args.data, &failure));
  return nullptr;
}

}  // namespace collet::pjrt
