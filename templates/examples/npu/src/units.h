// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/command_rows.hpp>
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

// Returns the functions of the units.
std::shared_ptr<const std::vector<collet::kernel::Kernel>> all_rows();
// Returns the engine of an op, and the cycles that it takes there.
Engine engine_of(const collet::kernel::Op& op, uint64_t* cycles);

}  // namespace npu
