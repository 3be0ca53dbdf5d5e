// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hlo/ops/evaluate.h"

/// \file
/// Declares one evaluation function per family of ops.def; each is defined in <family>_eval.cc.

namespace collet::hlo {

Expected<Literal> evaluate_elementwise(const EvalInput& in);
Expected<Literal> evaluate_convert(const EvalInput& in);
Expected<Literal> evaluate_movement(const EvalInput& in);
Expected<Literal> evaluate_dot(const EvalInput& in);
Expected<Literal> evaluate_convolution(const EvalInput& in);
Expected<Literal> evaluate_reduce(const EvalInput& in);
Expected<Literal> evaluate_window(const EvalInput& in);
Expected<Literal> evaluate_indexing(const EvalInput& in);
Expected<Literal> evaluate_sort(const EvalInput& in);
Expected<Literal> evaluate_rng(const EvalInput& in);
Expected<Literal> evaluate_linalg(const EvalInput& in);
Expected<Literal> evaluate_fft(const EvalInput& in);
Expected<Literal> evaluate_batch_norm(const EvalInput& in);
Expected<Literal> evaluate_control_flow(const EvalInput& in);
Expected<Literal> evaluate_structure(const EvalInput& in);
Expected<Literal> evaluate_custom_call(const EvalInput& in);
Expected<Literal> evaluate_collective(const EvalInput& in);
Expected<Literal> evaluate_asynchronous(const EvalInput& in);
Expected<Literal> evaluate_host_io(const EvalInput& in);
Expected<Literal> evaluate_dynamic_shape(const EvalInput& in);

/// Returns the k largest (or smallest) elements of the last dimension and their indices; `shape` is a tuple of both.
Expected<Literal> evaluate_topk_of(const Literal& operand, int64_t k, bool smallest, const Shape& shape);

}  // namespace collet::hlo
