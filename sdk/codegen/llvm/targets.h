// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace collet::codegen {

/// Registers LLVM's code generators, so that targets can be looked up. Later calls do nothing. May be called from any
/// thread.
void initialize_targets();

}  // namespace collet::codegen
