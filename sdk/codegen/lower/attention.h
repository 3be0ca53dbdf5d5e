// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lowers attention to one kernel: a product of queries and keys, the softmax of each of its rows, and the product of
/// the result with values.

#include <vector>

#include "sdk/codegen/graph/graph.h"
#include "sdk/codegen/lower/lower.h"

namespace collet::codegen {

/// A kernel that computes attention, and the nodes that it replaces. The names follow A. Vaswani et al., "Attention Is
/// All You Need", 2017.
///
/// The outer loops are the dimensions of the result. The first inner loop runs over the keys, the others over the depth
/// of the first product. Unlike in other kernels, the reductions run over different loops, so other schedules and the
/// verifier must not be used with it:
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
  ExprId logit = kNoExpr;        ///< expression of the logit, f32
  ExprId exponential = kNoExpr;  ///< expression of exp(logit - r1), f32
  /// Expression of the weight: exp(logit - r1), converted to the type that is multiplied.
  ExprId weight = kNoExpr;
  ExprId value = kNoExpr;
};

/// Finds the attention that ends in the dot `product`, and builds its kernel. Any elementwise computation may lead from
/// the scores to the logits; the pattern "attention" that the SDK offers to backends allows fewer. Returns false if the
/// dot is not a product of softmax weights with values, or if the weights cannot be computed in one pass over the keys.
/// The caller checks that no other node reads the scores and the weights.
bool attention_kernel(const Graph& graph, NodeId product, const InputTest& is_input, AttentionKernel& out);

}  // namespace collet::codegen
