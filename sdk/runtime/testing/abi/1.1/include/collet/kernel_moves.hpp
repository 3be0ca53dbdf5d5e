/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_MOVES_HPP
#define COLLET_KERNEL_MOVES_HPP

/** \file
 * Makes kernel rows for all ops that only move elements, from a single kernel. Included by kernel_backend.hpp. */

#include "kernel_describe.hpp"
#include "kernel_shapes.hpp"

namespace collet {
namespace kernel {

/** A kernel that makes one Move between two arrays of a device. */
using MoveFunction = std::function<void(Device& device, const Move& move, const Array& from, const Array& to)>;

/** Adds rows for broadcast, concatenate, dynamic-slice, dynamic-update-slice, pad, reverse, slice and transpose on
 * `types`. All of them use one kernel that makes a Move. Everything that does not depend on start indices is computed
 * during compile. */
inline void add_moves(std::vector<Kernel>* kernels, TypeSet types, const MoveFunction& run_move) {
  for (uint32_t opcode :
       {COLLET_OP_BROADCAST, COLLET_OP_CONCATENATE, COLLET_OP_DYNAMIC_SLICE, COLLET_OP_DYNAMIC_UPDATE_SLICE,
        COLLET_OP_PAD, COLLET_OP_REVERSE, COLLET_OP_SLICE, COLLET_OP_TRANSPOSE}) {
    const bool dynamic = opcode == COLLET_OP_DYNAMIC_SLICE || opcode == COLLET_OP_DYNAMIC_UPDATE_SLICE;
    Kernel row{opcode, dynamic ? types | index_types : types, types, nullptr};
    row.run = [run_move, dynamic](Device& device, const Op& op) {
      if (dynamic) {
        for (const Move& move : moves_of(device, op)) run_move(device, move, op.operand(move.operand), op.result());
        return;
      }
      for (const Move& move : op.state<std::vector<Move>>()) {
        run_move(device, move, op.operand(move.operand), op.result());
      }
    };
    if (!dynamic) row.prepare = [](Device& device, const Op& op) -> std::any { return moves_of(device, op); };
    kernels->push_back(std::move(row));
  }
}

}  // namespace kernel
}  // namespace collet

#endif
