// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

/// \file
/// For tests: the rules of an op as a table of instructions written as text.

namespace collet::hlo {

/// "f32[2,4] dot(f32[2,3], f32[3,4]), lhs_contracting_dims={1}, ...": an instruction whose operands are parameters of
/// the shapes given. It may call the computations of op_cases_test.cc by name. `error` is a piece of the complaint that must
/// come; null where the instruction is sound.
struct OpCase {
  const char* text;
  const char* error = nullptr;
};

/// Verifies each. Of a sound one whose op does not need its result's shape stated, the inferred shape must also be the
/// one in the text, to the last dynamic bound.
void check_cases(std::span<const OpCase> cases);

}  // namespace collet::hlo
