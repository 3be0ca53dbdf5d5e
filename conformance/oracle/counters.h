// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

/// \file
/// Counter-based random number generators, implemented from their publication: Salmon, Moraes, Dror and Shaw, "Parallel
/// random numbers: as easy as 1, 2, 3" (SC 2011). Each block of words is a function of a key and a counter.

namespace collet::conformance {

/// Returns a block of Threefry-2x32 with 20 rounds.
std::array<uint32_t, 2> threefry(std::array<uint32_t, 2> counter, std::array<uint32_t, 2> key);
/// Returns a block of Philox-4x32 with 10 rounds.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

}  // namespace collet::conformance
