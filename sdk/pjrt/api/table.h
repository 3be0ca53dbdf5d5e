// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/pjrt/api/basics.h"
#include "sdk/pjrt/api/buffer.h"
#include "sdk/pjrt/api/client.h"
#include "sdk/pjrt/api/device.h"
#include "sdk/pjrt/api/executable.h"
#include "sdk/pjrt/api/topology.h"
#include "sdk/pjrt/api/transfer.h"

/// \file
/// PJRT_Api, the table that GetPjrtApi returns.

namespace collet::pjrt {

/// The type of a table entry. All functions return an error or null, except for the first two, which cannot fail.
template <typename Args>
struct Signature {
  using type = PJRT_Error* (*)(Args*);
};
template <>
struct Signature<PJRT_Error_Destroy_Args> {
  using type = void (*)(PJRT_Error_Destroy_Args*);
};
template <>
struct Signature<PJRT_Error_Message_Args> {
  using type = void (*)(PJRT_Error_Message_Args*);
};

}  // namespace collet::pjrt

struct PJRT_Api {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Api_Version pjrt_api_version;
#define PJRT_FUNCTION(name, last, least, size) collet::pjrt::Signature<PJRT_##name##_Args>::type PJRT_##name;
#include "sdk/pjrt/api/functions.def"
};
