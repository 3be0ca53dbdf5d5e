// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/testing/kernels.h"

namespace {

collet::kernel::Backend describe() {
  return collet::testing::describe_kernels({.name = "kernels_serial", .queues = true, .serial = true});
}

}  // namespace

COLLET_KERNEL_BACKEND(describe)
