// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Attention as one kernel: a product of queries and keys, the softmax of each row of it, and the product of that with values.

#include <vector>

#include "sdk/codegen/graph/graph.h"
#include "sdk/codegen/lower/lower.h"

namespace collet::codegen {

/// A kernel that computes attention, and what it replaces. The names are those of A. Vaswani et al., "Attention Is All You Need",
/// 2017.
///
/// The outer loops are the dimensions of the result. The first inner loop walks the keys, the others the depth of the first product.
/// Unlike in other kernels, each reduction has loops of its own, so that this is no kernel for other schedules or for the verifier:
///   r0 = sum over the depth of query * key, the score
///   r1 = maximum over the keys of the logit, which is computed from the score
///   r2 = sum over the keys of exp(logit - r1)
///   r3 = sum over the keys of exp(logit - r1) * value
/// The result is computed from r3 / r2.
struct AttentionKernel {
  NodeId scores = kNone;  ///< the first product, a dot
  std::vector<ValueId>
      weights;  ///< the result of the softmax and its conversions, up to the operand of the second product
  KernelPlan plan;
  ExprId query = kNoExpr;
  ExprId key = kNoExpr;
  ExprId logit = kNoExpr;        ///< f32
  ExprId exponential = kNoExpr;  ///< exp(logit - r1), f32
  ExprId weight = kNoExpr;       ///< the same, rounded to the type that is multiplied
  ExprId value = kNoExpr;
};

/// Finds the attention that ends in the dot `product`, and builds its kernel. What leads from the scores to the logits may be anything
/// that is computed element by element; the pattern of that name, which the SDK offers to backends, knows only some of it. Returns false if the dot is not one of softmax weights
/// with values, or if the weights are computed in a way that one pass over the keys cannot follow. The caller checks that nobody else
/// needs the scores and the weights.
bool attention_kernel(const Graph& graph, NodeId product, const InputTest& is_input, AttentionKernel& out);

}  // namespace collet::codegen
