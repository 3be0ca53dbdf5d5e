// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/kernel_backend.hpp>
#include <vector>

namespace tile {

// What the machine computes.
std::vector<collet::kernel::Kernel> kernels();

}  // namespace tile
