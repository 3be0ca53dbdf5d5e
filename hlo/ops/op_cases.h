// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

/// \file
/// For tests: checks the rules of an op with a table of instructions written as text.

namespace collet::hlo {

/// One instruction as text, for example "f32[2,4] dot(f32[2,3], f32[3,4]), lhs_contracting_dims={1}, ...". Its operands
/// are parameters of the given shapes. It may call the computations of op_cases_test.cc by name. `error` is a part of
/// the expected message; null if the instruction is valid.
struct OpCase {
  const char* text;
  const char* error = nullptr;
};

/// Verifies each case. If an instruction is valid and its op does not require a declared result shape, the inferred
/// shape must also equal the one in the text, including dynamic bounds.
void check_cases(std::span<const OpCase> cases);

}  // namespace collet::hlo
