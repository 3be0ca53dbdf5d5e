// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/proto/wire.h"

/// \file
/// An instruction's own attributes into its message.

namespace collet::hlo::proto {

/// Every field of the op's record; an error for text that was kept verbatim and has no place in the message.
Status to_wire(const Module& module, const Instruction& instr, wire::HloInstructionProto* out);

}  // namespace collet::hlo::proto
