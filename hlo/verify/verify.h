// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/base/diagnostics.h"
#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// Checks that a module satisfies the rules of HLO: those of each op (hlo/ops/rules.h), and those that relate
/// instructions, computations and the module's header. Modules that the verifier refuses can still be read and printed.

namespace collet::hlo {

struct VerifyOptions {
  /// Allows floats of different precision in one instruction; XLA's compilers allow it after some of their passes.
  bool allow_mixed_precision = false;
  /// Allows sizes that are not known (`?`).
  bool allow_unbounded = true;
};

/// Adds errors to `diagnostics`, until it is full; lines are those of the text from which the module was read. Each
/// message names the instruction and the rule. The module may be malformed in any way.
void verify_module(const Module& module, const VerifyOptions& options, Diagnostics& diagnostics);

/// Returns OK, or INVALID_ARGUMENT with all errors.
Status verify_module(const Module& module, const VerifyOptions& options = {});

}  // namespace collet::hlo
