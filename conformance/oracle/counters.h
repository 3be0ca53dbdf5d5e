// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

/// \file
/// Counter-based random numbers as Salmon, Moraes, Dror and Shaw publish them: Parallel random numbers: as easy as 1, 2, 3 (SC 2011). Each word
/// of a block follows from a key and a counter.

namespace collet::conformance {

/// Threefry-2x32 with 20 rounds.
std::array<uint32_t, 2> threefry(std::array<uint32_t, 2> counter, std::array<uint32_t, 2> key);
/// Philox-4x32 with 10 rounds.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

}  // namespace collet::conformance
