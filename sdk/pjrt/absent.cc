// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/call.h"

/// \file
/// The functions that this plugin does not implement: callers get an error that names the function.

namespace collet::pjrt {

#define ABSENT(name)                                                    \
  PJRT_Error* call(PJRT_##name##_Args&) {                               \
    return unimplemented("PJRT_" #name " is not there in this plugin"); \
  }
ABSENT(CopyToDeviceStream_Destroy)
ABSENT(CopyToDeviceStream_AddChunk)
ABSENT(CopyToDeviceStream_TotalBytes)
ABSENT(CopyToDeviceStream_GranuleSize)
ABSENT(CopyToDeviceStream_CurrentBytes)
ABSENT(Device_PoisonExecution)
ABSENT(Device_CreateAsyncTrackingEvent)
ABSENT(AsyncTrackingEvent_Destroy)
ABSENT(TopologyDescription_MakeCanonicalShapeForMemorySpace)
ABSENT(TopologyDescription_GetMemorySpaceKindIds)
#undef ABSENT

}  // namespace collet::pjrt
