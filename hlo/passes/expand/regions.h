// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "hlo/passes/builder.h"

namespace collet::hlo {

/// Writes the body of a scalar computation over arrays: each argument is an array, all of one size, and each scalar op in
/// the body becomes the same op on arrays. Gives what the root gives, a tuple as its elements; nothing when the body holds
/// what is not elementwise.
std::optional<std::vector<InstrId>> inline_elementwise(Builder& b, CompId computation,
                                                       std::span<const InstrId> arguments);

}  // namespace collet::hlo
