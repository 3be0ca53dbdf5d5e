// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/passes/passes.h"

namespace collet::hlo::testing {

/// The answers of a device that supports core ops only, for PassContext::claim.
inline Claim claim_core(const Module& module, InstrId id) {
  const OpClass c = op_info(module[id].op).op_class;
  return c == OpClass::CORE || c == OpClass::EXECUTOR || c == OpClass::COMMUNICATION ? Claim::Take : Claim::Expand;
}

/// The answers of a device that supports no op.
inline Claim claim_nothing(const Module&, InstrId) {
  return Claim::Expand;
}

}  // namespace collet::hlo::testing
