// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace collet::codegen {

/// Makes LLVM's code generators known, once.
void initialize_targets();

}  // namespace collet::codegen
