// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/ops/evaluate.h"

namespace collet::hlo {

/// evaluate(), also where run-time sizes differ from the shapes that the module states: operands are cut to their sizes,
/// the op is evaluated on what is there, and the result is padded to its bound again, with its sizes noted.
Expected<Literal> evaluate_with_sizes(const EvalInput& input);

/// `value` without the padding of dynamic dimensions; its shape is static.
Literal cut_to_sizes(const Literal& value);
/// `value` in the bounded shape `shape`, padded with zeros; its own sizes are noted where a dimension is dynamic.
Literal pad_to_bounds(const Literal& value, const Shape& shape);

}  // namespace collet::hlo
