// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/kernel_backend.hpp>

#include <string>

namespace npu {

// The engines of a command list.
enum Engine : uint32_t { kLoad, kStore, kMatrix, kTable, kAlu };
inline const std::vector<std::string> kEngines = {"dma in", "dma out", "matrix", "table", "alu"};

// The types that the machine holds and computes.
constexpr collet::kernel::TypeSet kTypes{COLLET_TYPE_S8,  COLLET_TYPE_U8,  COLLET_TYPE_S32,
                                         COLLET_TYPE_F32, COLLET_TYPE_F16, COLLET_TYPE_PRED};
constexpr uint32_t kTile = 16;  // rows and columns of a tile of the matrix engine

// Returns the function of the unit that computes `op`; null, and why, if none does. Its arrays have addresses as memory.
const collet::kernel::Kernel* find_row(const collet::kernel::Op& op, std::string* reason);
// Returns the function that combines two arrays of a type by COLLET_COMBINE_*; null if there is none.
const collet::kernel::Kernel* row_of_combine(uint32_t combine, uint32_t type);
// Returns the engine of an op, and the cycles that it takes there.
Engine engine_of(const collet::kernel::Op& op, uint64_t* cycles);

}  // namespace npu
