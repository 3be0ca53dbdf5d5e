// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/testing/kernels.h"

namespace {

collet::kernel::Backend describe() {
  return collet::testing::describe_kernels({.name = "kernels"});
}

}  // namespace

COLLET_KERNEL_BACKEND(describe)
