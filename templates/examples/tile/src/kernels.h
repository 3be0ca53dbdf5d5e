// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/kernel_backend.hpp>
#include <vector>

namespace tile {

// Returns the kernels of the machine.
std::vector<collet::kernel::Kernel> kernels();
// Rearranges words within a machine. Returns false for elements of other sizes.
bool move_words(collet::kernel::Device& device, const collet::kernel::Move& move, const collet::kernel::Array& from,
                const collet::kernel::Array& to);

}  // namespace tile
