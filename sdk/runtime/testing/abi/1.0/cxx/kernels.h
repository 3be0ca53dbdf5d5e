// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/kernel_backend.hpp>
#include <vector>

namespace acme {

// The kernel table: what the device computes. Every op that is not in it runs on the fallback.
std::vector<collet::kernel::Kernel> kernels();

}  // namespace acme
