// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/transfers.h>

#include <span>
#include <vector>

#include "hlo/base/status.h"
#include "sdk/runtime/memory/buffer.h"

/// \file
/// Copies of arrays between devices of several processes. Each array has a thread of its own while it is moved, so that neither the order
/// of calls matters nor that of the arrays in them.

namespace collet::runtime {

/// See collet_buffers_send. `out` gets an event of each buffer, of which the caller owns a reference.
Status send_buffers(Client& client, std::span<Buffer* const> buffers, std::span<const collet_transfer> transfers,
                    std::vector<Event*>& out);
/// See collet_buffers_receive. The caller owns a reference to each buffer in `out`.
Status receive_buffers(Client& client, uint32_t space, std::span<const ArrayType* const> types,
                       std::span<const collet_transfer> transfers, std::vector<Buffer*>& out);

}  // namespace collet::runtime
