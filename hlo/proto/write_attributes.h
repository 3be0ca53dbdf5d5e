// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/proto/wire.h"

/// \file
/// Writes an instruction's own attributes to its message.

namespace collet::hlo::proto {

/// Writes every field of the op's record; an error for text that was kept verbatim and has no field in the message.
Status to_wire(const Module& module, const Instruction& instr, wire::HloInstructionProto* out);

}  // namespace collet::hlo::proto
