// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/ops/evaluate.h"

namespace collet::hlo {

/// Like evaluate(), but also handles run-time sizes that differ from the shapes in the module: operands are cut to
/// their sizes, the op is evaluated on the rest, and the result is padded to its bound, with its sizes recorded.
Expected<Literal> evaluate_with_sizes(const EvalInput& input);

/// Returns `value` without the padding of dynamic dimensions; its shape is static.
Literal cut_to_sizes(const Literal& value);
/// Returns `value` padded with zeros to the bounded shape `shape`; its own sizes are recorded for the dynamic
/// dimensions.
Literal pad_to_bounds(const Literal& value, const Shape& shape);

}  // namespace collet::hlo
