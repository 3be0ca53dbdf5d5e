// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "hlo/passes/builder.h"

namespace collet::hlo {

/// Inlines the body of a scalar computation over arrays: each argument is an array, all of one size, and each scalar op
/// of the body becomes the same op on arrays. Returns the value of the root, or the elements of a tuple; nothing if the
/// body holds an op that is not elementwise.
std::optional<std::vector<InstrId>> inline_elementwise(Builder& b, CompId computation,
                                                       std::span<const InstrId> arguments);

}  // namespace collet::hlo
