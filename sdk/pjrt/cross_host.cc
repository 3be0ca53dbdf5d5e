// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/cross_host.h"

#include <collet/transfers.h>

#include <memory>
#include <string>
#include <vector>

#include "sdk/pjrt/api/extensions.h"
#include "sdk/pjrt/buffer.h"
#include "sdk/pjrt/call.h"
#include "sdk/pjrt/client.h"
#include "sdk/pjrt/element_types.h"
#include "sdk/pjrt/event.h"
#include "sdk/pjrt/host_layout.h"

namespace collet::pjrt {
namespace {

// The older interface is not called by frontends that know the newer one.
PJRT_Error* make_receive_buffers(void* args) {
  (void)args;
  return unimplemented("PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers; CrossHostReceiveBuffers does it");
}

PJRT_Error* send(PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args* caller) {
  using Args = PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args;
  return guarded(caller, "PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args", sizeof(Args), sizeof(Args),
                 [](Args& args) -> PJRT_Error* {
                   std::vector<collet_buffer*> buffers;
                   std::vector<collet_transfer> transfers;
                   for (size_t i = 0; i < args.num_buffers; ++i) {
                     const PJRT_Buffer& buffer = *args.buffers[i];
                     if (buffer.is_deleted()) return deleted_error();
                     if (!buffer.is_as_told()) return reordered_error();
                     buffers.push_back(buffer.handle);
                     transfers.push_back({static_cast<uint64_t>(args.transfer_keys[i]),
                                          static_cast<uint32_t>(buffer.memory->device->description.id),
                                          static_cast<uint32_t>(args.dst_global_device_ids[i])});
                   }
                   std::vector<collet_event*> events(buffers.size());
                   COLLET_PJRT_TRY(collet_buffers_send(args.client->handle, static_cast<uint32_t>(buffers.size()),
                                                       buffers.data(), transfers.data(), events.data(), &failure));
                   for (size_t i = 0; i < events.size(); ++i) args.send_events[i] = event_of(events[i]);
                   return nullptr;
                 });
}

PJRT_Error* receive(PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args* caller) {
  using Args = PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args;
  return guarded(
      caller, "PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args", sizeof(Args), sizeof(Args),
      [](Args& args) -> PJRT_Error* {
        if (!args.device) return invalid_argument("no device is named");
        if (!args.device->is_own) return of_another_process(*args.device);
        Memory& memory = *args.device->default_memory;
        std::vector<collet_array_type> types;
        std::vector<collet_transfer> transfers;
        for (size_t i = 0; i < args.num_shapes; ++i) {
          const uint32_t element = to_collet(args.element_types[i]);
          if (element == COLLET_TYPE_INVALID)
            return unimplemented("element type " + std::to_string(args.element_types[i]) + " is not supported");
          types.push_back({element, static_cast<uint32_t>(args.shape_num_dims[i]), args.num_dims[i]});
          if (args.layouts && args.layouts[i]) COLLET_PJRT_CHECK(require_row_major(args.layouts[i], types.back()));
          transfers.push_back({static_cast<uint64_t>(args.transfer_keys[i]),
                               static_cast<uint32_t>(args.src_global_device_ids[i]),
                               static_cast<uint32_t>(args.device->description.id)});
        }
        std::vector<collet_buffer*> buffers(types.size());
        COLLET_PJRT_TRY(collet_buffers_receive(args.client->handle, memory.space, static_cast<uint32_t>(types.size()),
                                               types.data(), transfers.data(), buffers.data(), &failure));
        for (size_t i = 0; i < buffers.size(); ++i) args.buffers[i] = new PJRT_Buffer(buffers[i], &memory);
        return nullptr;
      });
}

}  // namespace

PJRT_Extension_Base* cross_host_transfers_extension(PJRT_Extension_Base* next) {
  static PJRT_CrossHostTransfers_Extension extension = {
      {sizeof(PJRT_CrossHostTransfers_Extension), PJRT_Extension_Type_CrossHostTransfers, nullptr},
      make_receive_buffers,
      nullptr,
      receive,
      send};
  extension.base.next = next;
  return &extension.base;
}

}  // namespace collet::pjrt
