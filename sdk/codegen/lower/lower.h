// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// From ops to kernels: the loop nest of each kind of op, with what is fused into it.

#include <functional>
#include <vector>

#include "sdk/codegen/graph/graph.h"
#include "sdk/codegen/kernel/kernel.h"

namespace collet::codegen {

/// A kernel and what its buffers are.
struct KernelPlan {
  Kernel kernel;
  std::vector<ValueId> buffers;  ///< by buffer number
  std::vector<ValueId> writes;
  /// Pairs (operand, result) that may lie in the same memory.
  std::vector<std::pair<ValueId, ValueId>> in_place;
  /// Values that must be copied into a result before the kernel runs: (operand, result). Dropped where both lie in the
  /// same memory.
  std::vector<std::pair<ValueId, ValueId>> copies;
};

/// Holds for values that are read from memory.
using InputTest = std::function<bool(ValueId)>;

/// Makes a value in memory, for what kernels leave to each other.
using MakeValue = std::function<ValueId(uint32_t element, Dims dims)>;

/// The kernel that computes `roots`, values of the same shape of element-wise ops and movements.
KernelPlan loop_kernel(const Graph& graph, const std::vector<ValueId>& roots, const InputTest& is_input);

/// Values that are computed together: the loops are the dimensions of `shape`, the inner ones those where `inner` holds.
/// Reductions of the inner dimensions may stand between. A root has the whole shape or its outer dimensions.
struct FusedValues {
  Dims shape;
  std::vector<bool> inner;
  std::vector<ValueId> own;    ///< computed in place, whatever the is_input test says
  std::vector<ValueId> roots;  ///< those of them that are stored
};
/// False where these values cannot be computed together.
bool fused_kernel(const Graph& graph, const FusedValues& values, const InputTest& is_input, KernelPlan& out);

/// An update that is taken where a predicate holds: a select between the result of a dynamic-update-slice or scatter and
/// what that updates. It writes the elements that the update would, where the predicate holds there, and no others.
struct GuardedUpdate {
  NodeId update = kNone;
  ValueId predicate = kNone;
  bool inverted = false;  ///< taken where the predicate does not hold
};
/// The guarded update that a node is; `update` is kNone where it is none. Who else reads the update is not looked at.
GuardedUpdate guarded_update(const Graph& graph, const Node& node);

/// Whether a while carries scalars alone, and one kernel of one point can run all of it.
bool is_scalar_loop(const Graph& graph, const Node& node);
/// The kernel of an is_scalar_loop.
KernelPlan scalar_loop_kernel(const Graph& graph, const Node& node, const InputTest& is_input);

/// The kernels of a node that loop_kernel does not cover; false when there is none for it (a library call, control
/// flow). `masks`: masked loads and stores of all element widths are cheap.
bool node_kernels(const Graph& graph, const Node& node, const InputTest& is_input, const MakeValue& make, bool masks,
                  std::vector<KernelPlan>& out);

/// Converts `from` to the type of `to`, of the same shape.
KernelPlan convert_kernel(const Graph& graph, ValueId from, ValueId to);

/// Writes `from` to `to` with its dimensions in another order: dimension i of `to` is dimension order[i] of `from`.
KernelPlan permute_kernel(const Graph& graph, ValueId from, const std::vector<size_t>& order, ValueId to);

/// Copies the operand of a transform of the innermost `transformed` dimensions to real numbers, of which the last has `length` points, so that it is
/// what the transform of real numbers has: the parts that must be conjugates of each other are replaced by their mean.
KernelPlan hermitian_kernel(const Graph& graph, ValueId from, size_t transformed, int64_t length, ValueId to);

/// Multiplies `from`, floats or complex numbers, by a real number. `to`, of the same type, may lie in the same memory.
KernelPlan scale_kernel(const Graph& graph, ValueId from, double factor, ValueId to);

/// Whether node_kernels knows the node, without building anything.
bool has_node_kernel(const Graph& graph, const Node& node);

}  // namespace collet::codegen
