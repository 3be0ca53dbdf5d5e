// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Matrix products: a kernel that sums products of two loads is a product of matrices, whatever op it came from. Rows,
/// columns and the depth are found from how the loops move through the operands; operands that do not lie as the
/// micro-kernel wants them are packed by kernels of their own, with their producers fused in.

#include <collet/codegen/target.h>
#include <collet/types.h>

#include <compare>
#include <memory>
#include <string>
#include <vector>

#include "sdk/codegen/launch/functions.h"
#include "sdk/codegen/lower/lower.h"

namespace collet::codegen {

/// The innermost function: rows x (vectors * lanes) elements of the result in registers.
struct MicroKernel {
  uint32_t type = 0;  ///< of the sums: COLLET_TYPE_F32, F64 or S32
  /// Neighbours of the depth that one element of a or b is, as large as an element of the sums, the first one in the lowest bits. F32: 1,
  /// or 2 of bf16. S32: 2 of s16; or 4, of u8 in a and of s8 in b.
  int packs = 1;
  int rows = 1;
  int vectors = 1;
  int lanes = 1;             ///< of a vector
  bool masked = false;       ///< the last vector may be partial
  bool by_depth = false;     ///< a's rows are neighbours, its depth is a_step apart; else the other way round
  bool accumulates = false;  ///< the depth may come in several parts
  bool segmented = false;    ///< the depth is some runs of a, each `depth` long, which lie anywhere
  bool streams = false;      ///< ProductOperand::streams of b: nothing is asked for beforehand
  bool starts = false;       ///< the first part of the depth is added to Tile::start
  auto operator<=>(const MicroKernel&) const = default;
};

/// A name that no other micro-kernel has.
std::string name_of(const MicroKernel& kernel);

/// The computation on each element of a product before it is stored: a kernel over its batches, rows and columns.
struct Epilogue {
  Kernel kernel;  ///< loops: one for each of the batch, then rows, columns
  uint32_t product = 0;
  ExprId value = kNoExpr;
  std::vector<ValueId> buffers;
  ValueId target = kNone;
};

/// An operand of a product: where it is read from.
struct ProductOperand {
  bool packed = false;
  KernelPlan pack;  ///< writes row (or panel) after row; loop 0 is the row or panel over all batches. It has at most
                    ///< kMostPackBuffers buffers
  uint32_t pack_output = 0;  ///< its buffer that is the packed memory
  ValueId value = kNone;     ///< read directly: the value, and where its first element is
  int64_t offset = 0;
  int64_t row = 0;                ///< a: elements from one row to the next; 1 where rows are neighbours. b: 1
  int64_t depth = 0;              ///< elements from one step of the depth to the next; of a, 1 unless `row` is
  int64_t tile = 0;               ///< a: elements from one tile of rows to the next
  int64_t depth_block = 0;        ///< a, packed: by so many steps of the depth at a time; 0: all of it
  int64_t pack_rows = 1;          ///< a, packed: rows that one iteration of loop 0 writes
  std::vector<int64_t> segments;  ///< a, direct: where each run of the depth begins, where it is not one; `run` long
  int64_t run = 0;
  std::vector<std::pair<int64_t, int64_t>> batch;  ///< direct: (extent, step), outermost first
  int64_t batches = 1;                             ///< packed: number of different matrices
  int64_t matrix = 0;                              ///< b, packed: elements of one
  bool panels = false;                             ///< b, packed: panel after panel, each by depth; else row after row
  bool streams = false;  ///< b, direct: it comes from memory, and is read by a few whole rows at a time
  KernelPlan
      start;  ///< b, packed in panels: writes the row behind each panel, see Product::starts. No buffers: there is none
  std::vector<std::pair<int64_t, int64_t>> batch_of;  ///< packed: (extent, step in matrices)
};

/// A product of matrices for each batch.
struct Product {
  uint32_t type = 0;      ///< in which it is computed
  int packs = 1;          ///< MicroKernel::packs; `depth` and all steps are in elements of so many neighbours
  bool converts = false;  ///< the result is of another type: it is computed aside and converted
  ValueId result = kNone;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  int64_t ldc = 0;
  int64_t c_offset = 0;
  std::vector<std::pair<int64_t, int64_t>> batch;  ///< (extent, step in the result), outermost first
  ProductOperand a;
  ProductOperand b;
  int tile_rows = 1;
  int vectors = 1;
  int lanes = 1;
  /// Loops of the result that each is made of, outermost first, and the sizes of them all.
  std::vector<size_t> batch_loops;
  std::vector<size_t> row_loops;
  std::vector<size_t> column_loops;
  Dims dims;
  int64_t panel() const { return static_cast<int64_t>(vectors) * lanes; }
  int64_t batches() const {
    int64_t n = 1;
    for (auto& level : batch) n *= level.first;
    return n;
  }
  /// Whether the result begins with a row of sums that goes with b: where a of s8 is computed with as u8, 128 larger.
  bool starts() const { return !b.start.buffers.empty(); }
  /// The function for a tile of that many rows and columns.
  MicroKernel micro(int64_t tile, int64_t tile_columns) const;
};

/// Finds the product in a kernel whose loops have not been collapsed; false where it is none, or better left as it is.
bool find_product(const KernelPlan& plan, const Graph& graph, const Target& target, Product& out);

/// Whether `plan`, a kernel that reads the product's result at each point and stores one value there, can run with the
/// product.
bool make_epilogue(const KernelPlan& plan, const Product& product, Epilogue& out);

/// Whether an epilogue is best applied to the registers of a tile: it is short, and so is the depth. Else it runs on the
/// tile after that was stored, which is less code.
bool fits_registers(const Epilogue& epilogue, const Product& product);

/// make_epilogue for a product that is a kernel of its own, over `dims` and what is summed: `plan` becomes its last part.
/// False, and nothing is changed, where that is not possible.
bool append_epilogue(const KernelPlan& plan, ValueId result, const Dims& dims, KernelPlan& product);

}  // namespace collet::codegen
