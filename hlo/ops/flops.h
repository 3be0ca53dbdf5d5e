// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/ir/module.h"

namespace collet::hlo {

/// Estimates the arithmetic operations of one execution of an instruction. Float and integer operations count alike; a
/// multiply-add counts as two; data movement counts as none. The bodies of loops, branches, calls and fusions are not
/// included.
double flops_of(const Module& module, const Instruction& instr);

}  // namespace collet::hlo
