// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/base/diagnostics.h"
#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// Whether a module holds to the rules of HLO: that of each op (hlo/ops/rules.h), and those that bind instructions,
/// computations and the module's header together. What only the verifier refuses is still read and printed.

namespace collet::hlo {

struct VerifyOptions {
  /// Floats of different precision may meet in one instruction; XLA's compilers allow it after some of their passes.
  bool allow_mixed_precision = false;
  /// Sizes that are not known (`?`) may occur.
  bool allow_unbounded = true;
};

/// Adds what is wrong to `diagnostics`, until it is full; lines are those of the text that the module was read from.
/// Each message names the instruction and the rule. Never crashes, whatever the module holds.
void verify_module(const Module& module, const VerifyOptions& options, Diagnostics& diagnostics);

/// OK, or INVALID_ARGUMENT with all complaints.
Status verify_module(const Module& module, const VerifyOptions& options = {});

}  // namespace collet::hlo
