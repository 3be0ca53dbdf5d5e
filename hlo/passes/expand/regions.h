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

/// Inlines the body of a reduction over two lists of arrays, all of one size. Returns the combined values; nothing if the body holds
/// an op that is not elementwise. With `masked`, the last array of each list is a predicate that says where its values exist:
/// where one side has none, the result is the other side, and the last array of the result says where either exists.
std::optional<std::vector<InstrId>> inline_combination(Builder& b, CompId body, std::span<const InstrId> left,
                                                       std::span<const InstrId> right, bool masked);

}  // namespace collet::hlo
