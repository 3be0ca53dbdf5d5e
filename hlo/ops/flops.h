// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/ir/module.h"

namespace collet::hlo {

/// Arithmetic operations of one execution of an instruction, estimated: of floats and integers alike, a multiply-add as
/// two. What only moves data has none. The bodies of loops, branches, calls and fusions are not part of it.
double flops_of(const Module& module, const Instruction& instr);

}  // namespace collet::hlo
