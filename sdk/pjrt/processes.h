// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/pjrt/client.h"

/// \file
/// A client as one of several processes, which find each other through the frontend's key-value store.

namespace collet::pjrt {

/// Joins the processes that the options node_id and num_nodes state, if there are several. FAILED_PRECONDITION if the caller
/// passes no store.
PJRT_Error* join_processes(PJRT_Client& client, const PJRT_Client_Create_Args& args);

}  // namespace collet::pjrt
