// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "hlo/base/status.h"
#include "hlo/ir/shape.h"

namespace collet::hlo {

/// True if a custom call with this target is a library routine that the SDK computes: one of those of
/// check_library_call.
bool is_library_target(std::string_view target);
/// Checks that a custom call has the operands and the result of the library routine that `target` names: TopK, Qr,
/// ProductOfElementaryHouseholderReflectors or Eigh, as XLA's frontends call them. Returns OK for any other target.
Status check_library_call(std::string_view target, std::span<const Shape* const> operands, const Shape& result);

}  // namespace collet::hlo
