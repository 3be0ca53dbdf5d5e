// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "hlo/proto/wire.h"

/// \file
/// Converts an instruction's own attributes to HLO text, so that binary modules are read by the same code, with the
/// same checks, as text.

namespace collet::hlo::proto {

/// Appends ", name=value" for every field of the op's record that the message has. `operands`: their shapes.
Status write_attributes(const wire::HloInstructionProto& in, Op op, std::span<const Shape> operands, std::string& out);

}  // namespace collet::hlo::proto
