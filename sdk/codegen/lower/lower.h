// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lowers ops to kernels: builds the loop nest of each kind of op, including the ops that are fused into it.

#include <collet/codegen/target.h>

#include <vector>

#include "sdk/codegen/graph/graph.h"
#include "sdk/codegen/kernel/kernel_plan.h"

namespace collet::codegen {

/// Returns the number of vectors for a row of elements, for decisions that are made before kernels are scheduled. It
/// assumes vectors of 16 elements.
constexpr int64_t assumed_vectors(int64_t elements) {
  return (elements + 15) / 16;
}

/// Returns the kernel that computes `roots`: values of one shape, computed by elementwise ops and ops that only move
/// elements.
KernelPlan loop_kernel(const Graph& graph, const std::vector<ValueId>& roots, const InputTest& is_input);

/// Values that one kernel computes together. Its loops are the dimensions of `shape`, and its inner loops those for
/// which `inner` is true. The values may include reductions over the inner dimensions. A root has the whole shape or
/// only its outer dimensions.
struct FusedValues {
  Dims shape;
  std::vector<bool> inner;
  std::vector<ValueId> own;    ///< values that are computed in the kernel even if is_input is true for them
  std::vector<ValueId> roots;  ///< those of `own` that are stored
};
/// Builds the kernel of fused values. Returns false if they cannot be computed together.
bool fused_kernel(const Graph& graph, const FusedValues& values, const InputTest& is_input, KernelPlan& out);

/// True for a dot whose contracted dimensions have one element: each element of the result is a product of two
/// elements.
bool is_outer_product(const Graph& graph, const Node& node);

/// A conditional update: a select between the result of a dynamic-update-slice or scatter and the array that it
/// updates. It writes only those elements of the update for which the predicate holds.
struct GuardedUpdate {
  NodeId update = kNone;
  ValueId predicate = kNone;
  bool inverted = false;  ///< true if the update applies where the predicate is false
};
/// Returns the guarded update that a node is; `update` is kNone if it is none. Other readers of the update are not
/// checked.
GuardedUpdate guarded_update(const Graph& graph, const Node& node);

/// True if all variables of a while are scalars, and a kernel with a single point can run the whole loop.
bool is_scalar_loop(const Graph& graph, const Node& node);
/// Returns the kernel of a loop for which is_scalar_loop is true.
KernelPlan scalar_loop_kernel(const Graph& graph, const Node& node, const InputTest& is_input);

/// Which scans of long rows are cut into blocks, whose totals are scanned first. The results of sums of floats depend on the
/// blocks, so these depend only on the shape.
struct LongScans {
  int64_t most_rows = 2;           ///< more rows occupy the machine by themselves
  int64_t least_length = 1 << 17;  ///< of a row
  int64_t least_block = 1;         ///< least elements of a block
  int64_t fewest_blocks = 16;
  int64_t most_blocks = 64;           ///< of a row
  bool contiguous_rows_only = false;  ///< whether scans along other dimensions than the last are not cut
};

/// What the kernels of a node depend on besides the program.
struct NodeLimits {
  bool masks = false;  ///< whether masked loads and stores of all element widths are cheap
  /// Whether convolutions may be computed with their features as the last dimension of copies of the operands.
  bool moves_features = false;
  bool widens_products = false;  ///< whether long prefix products of f32 or narrower numbers are computed in f64
  LongScans scans;
  Tuning tuning = {};
};

/// Builds the kernels of a node that loop_kernel does not support. Returns false if there are none for it, as for
/// library calls and control flow.
bool node_kernels(const Graph& graph, const Node& node, const InputTest& is_input, const MakeValue& make,
                  const NodeLimits& limits, std::vector<KernelPlan>& out);

/// Returns the kernel that converts `from` to the type of `to`, which has the same shape.
KernelPlan convert_kernel(const Graph& graph, ValueId from, ValueId to);

/// Returns the kernel that transposes `from` to `to`, and converts it to the type of `to`: dimension i of `to` is
/// dimension order[i] of `from`.
KernelPlan permute_kernel(const Graph& graph, ValueId from, const std::vector<size_t>& order, ValueId to);

/// How a library reads an operand of a convolution.
struct LibraryOrder {
  std::vector<size_t> order;     ///< the operand's dimensions, outermost first; empty: as they are
  std::vector<size_t> reversed;  ///< dimensions along which it is read backwards
  /// With more than one group, dimension `grouped` is divided into groups, whose number is the first dimension.
  int64_t groups = 1;
  size_t grouped = 0;
  /// Zeros before and behind each dimension of the operand, in elements; negative numbers cut elements off. Empty: none.
  std::vector<int64_t> low{}, high{};
  bool is_plain() const { return order.empty() && reversed.empty() && groups == 1 && low.empty(); }
};
/// Makes the kernel that computes an operand of a convolution, or copies it if it is in memory, in the order in which a
/// library reads it. Returns false if it cannot be computed element by element.
bool operand_kernel(const Graph& graph, const InputTest& is_input, ValueId operand, const LibraryOrder& how,
                    const MakeValue& make, KernelPlan& out);

/// Returns the kernel that copies what a library has written, an array whose dimension i is dimension order[i] of `to`.
/// Its dimensions may be larger than those of `to`, which then receives its first elements.
KernelPlan result_kernel(const Graph& graph, ValueId from, const std::vector<size_t>& order, ValueId to);

/// Returns the kernel that copies the operand of an inverse transform to real numbers, with Hermitian symmetry:
/// elements that must be conjugates of each other are replaced by their mean. The innermost `transformed` dimensions
/// are transformed, and the last of them has `length` real points.
KernelPlan hermitian_kernel(const Graph& graph, ValueId from, size_t transformed, int64_t length, ValueId to);

/// Returns the kernel that multiplies `from`, floats or complex numbers, by a real number. `to` has the same type and
/// may share memory with `from`.
KernelPlan scale_kernel(const Graph& graph, ValueId from, double factor, ValueId to);

/// Returns the kernel that combines the rows of `from`, an array of few rows, element by element with `block`, from the
/// first row to the last one.
KernelPlan combine_rows_kernel(const Graph& graph, const Block& block, ValueId from, ValueId to);

/// True if node_kernels supports the node.
bool has_node_kernel(const Graph& graph, const Node& node);

}  // namespace collet::codegen
