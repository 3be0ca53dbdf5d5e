// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The kernels that pack the operands of a product.

#include "sdk/codegen/lower/kernel_builder.h"
#include "sdk/codegen/matmul/matmul.h"
#include "sdk/codegen/matmul/product_loops.h"

namespace collet::codegen {

/// The order in which `a` is packed.
struct PackedRows {
  bool by_depth = false;    ///< true: in tiles of rows, ordered by depth; false: row by row
  bool in_lines = false;    ///< by_depth: tiles are parts of the innermost loop of the rows, whose size they divide
  int64_t depth_block = 0;  ///< ProductOperand::depth_block
};

/// Makes the kernels that pack the operands of a product and that write the initial values of its sums. The producers of the operands are
/// part of these kernels.
class OperandPacker {
 public:
  /// All arguments must outlive this. `product` has its tiles already. `raised` is the factor to whose elements 128 is added, or null.
  OperandPacker(const ProductLoops& loops, const Graph& graph, const Target& target, const Product& product,
                const Factor* raised)
      : l_(loops), graph_(graph), target_(target), p_(product), raised_(raised) {}

  void pack_a(const PackedRows& order, ProductOperand& a) const;
  /// Packs b with all columns of a row side by side.
  void pack_rows_of_b(ProductOperand& b) const;
  /// Packs b in panels of columns, as wide as a tile, each ordered by depth.
  void pack_panels_of_b(ProductOperand& b) const;
  /// Adds the kernel that writes the initial values of the result's rows: -128 times the sum of each row of a, because 128 is added to b.
  void start_rows(ProductOperand& a) const;

 private:
  void start_panels(const LoopGroup& used, ProductOperand& b) const;
  void store_starts(KernelPlan& plan, KernelBuilder& builder, const Factor& f, std::vector<Index> loops,
                    const Index& to) const;
  void spread(KernelBuilder& builder, const LoopGroup& group, Index linear, std::vector<Index>& loops) const;
  void count_matrices(ProductOperand& o, const Factor& f) const;
  ExprId pack_parts(KernelBuilder& builder, const Factor& f, std::vector<Index> loops, Kernel& to) const;
  void finish(ProductOperand& o, KernelBuilder& builder, const Factor& f, std::vector<Index> loops, const Index& to,
              ExprId mask) const;
  int64_t line() const { return target_.cache_line / l_.element_bytes(); }  ///< elements of a cache line

  const ProductLoops& l_;
  const Graph& graph_;
  const Target& target_;
  const Product& p_;
  const Factor* raised_;
};

}  // namespace collet::codegen
