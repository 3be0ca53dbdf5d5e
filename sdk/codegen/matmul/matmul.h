// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Matrix products. A kernel that sums products of two loads is a matrix product, whatever op it came from. Rows,
/// columns and the depth are derived from how the loops index the operands. Operands whose layout does not suit the
/// micro-kernel are packed by kernels of their own, into which their producers are fused.

#include <collet/codegen/target.h>
#include <collet/types.h>

#include <compare>
#include <memory>
#include <string>
#include <vector>

#include "sdk/codegen/base/functions.h"
#include "sdk/codegen/kernel/kernel_plan.h"

namespace collet::codegen {

/// The initial values of the sums of a tile.
enum class Starts : uint8_t {
  kZero,     ///< zero
  kColumns,  ///< Tile::start has one for each column
  kRows,     ///< Tile::start has one for each row
};

inline constexpr int kMostTileRows = 14;    ///< most rows of a tile on any target
inline constexpr int kMostTileVectors = 8;  ///< most vectors of a row of a tile
/// Most terms of one accumulator: the rounding error of a sum grows with its terms.
inline constexpr int64_t kMostDepthBlock = 1024;

/// The blocking of a product that is given by hand; 0: the rules decide.
struct ProductSchedule {
  int tile_rows = 0;
  int vectors = 0;          ///< MicroKernel::vectors; not 0 if tile_rows is not
  int64_t depth_block = 0;  ///< where takes_depth_block is false it is ignored
  int64_t chunks = 0;       ///< BlockedProduct::chunks; at most the number of tiles
  int64_t column_parts = 0;
};

/// The parameters of a micro-kernel, the innermost function: it computes rows x (vectors * lanes) elements of the
/// result in registers.
struct MicroKernel {
  uint32_t type = 0;  ///< element type of the sums: COLLET_TYPE_F32, F64 or S32
  /// Number of neighbours along the depth that are packed into one element of a or b. The element is as large as one of
  /// the sums, and its first part is in the lowest bits. F32: 1, or 2 of bf16. S32: 2 of s16; or 4, of s8 in one operand
  /// and u8 in the other.
  int packs = 1;
  bool signed_a = false;  ///< for 4 parts: true if those of a are s8 and those of b u8; false for the reverse
  int rows = 1;           ///< 0: a function for the stored sums of a tile, see MicroSource
  int vectors = 1;
  int lanes = 1;        ///< lanes of a vector
  bool masked = false;  ///< the last vector may be partial
  /// true: the rows of a are adjacent, and its depth steps are a_step apart; false: the reverse
  bool by_depth = false;
  bool accumulates = false;       ///< true if the depth may be computed in several blocks
  bool segmented = false;         ///< true if a is read in segments of `depth` steps each, at arbitrary addresses
  bool streams = false;           ///< b is not prefetched by instructions: ProductOperand::streams or unhinted
  bool fetches = false;           ///< true if Tile::ahead is prefetched
  Starts starts = Starts::kZero;  ///< what the first block of the depth is added to
  auto operator<=>(const MicroKernel&) const = default;
};

/// Returns a name that no other micro-kernel has.
std::string name_of(const MicroKernel& kernel);

/// The computation on each element of a product before it is stored: a kernel over its batches, rows and columns.
struct Epilogue {
  Kernel kernel;  ///< its loops are those of the batch, then rows, then columns
  uint32_t product = 0;
  ExprId value = kNoExpr;
  std::vector<ValueId> buffers;
  ValueId target = kNone;
};

/// Describes where an operand of a product is read from. Fields marked "packed" or "direct" are used for operands that
/// are, or are not, packed.
struct ProductOperand {
  bool packed = false;
  /// Writes the packed rows or panels one after the other; loop 0 counts them over all batches. It has at most
  /// kMostPackBuffers buffers.
  KernelPlan pack;
  uint32_t pack_output = 0;  ///< number of the buffer with the packed memory
  ValueId value = kNone;     ///< direct: the value that is read, and the offset of its first element
  int64_t offset = 0;
  int64_t row = 0;  ///< a: distance in elements from one row to the next; 1 if rows are adjacent. b: 1
  /// Distance in elements from one step of the depth to the next; for a, 1 unless `row` is 1.
  int64_t depth = 0;
  int64_t tile = 0;         ///< a: distance in elements from one tile of rows to the next
  int64_t depth_block = 0;  ///< a, packed: steps of the depth that are packed at a time; 0 for all
  int64_t pack_rows = 1;    ///< a, packed: rows that one iteration of loop 0 writes
  /// a, direct: offsets of the segments of the depth, each of `run` steps; empty if the depth is one segment.
  std::vector<int64_t> segments;
  int64_t run = 0;
  /// a: the parts [first, end) of the depth outside of which a tile of rows is zero, for each batch, or for each tile; empty if nothing is
  /// known to be zero. They count steps, or segments if there are any.
  std::vector<std::pair<int64_t, int64_t>> parts_of_batches, parts_of_tiles;
  std::vector<std::pair<int64_t, int64_t>> batch;  ///< direct: (extent, step) of each batch loop, outermost first
  int64_t batches = 1;                             ///< packed, or with `start`: number of different matrices
  int64_t matrix = 0;                              ///< b, packed: elements of one matrix
  /// b, packed: true if it consists of panels, each ordered by depth; false if it consists of rows.
  bool panels = false;
  /// b, direct: a job of at least so many tiles of rows copies panels to scratch memory, because they are slow to read in
  /// place; 0: none does.
  int64_t copied_for = 0;
  bool streams = false;  ///< b, direct: true if it is read from memory, a few whole rows at a time
  /// b, direct: true if instructions should not prefetch it, because few rows are multiplied, or because the rows would be evicted
  /// from the first cache before they are used.
  bool unhinted = false;
  /// The kernel that writes the initial values of the sums, see Product::starts; without buffers if they do not depend on this operand.
  /// b, packed in panels: a row after each panel. a, direct: the rows of all matrices, one after the other.
  KernelPlan start;
  /// packed, or with `start`: (extent, step in matrices) of each batch loop
  std::vector<std::pair<int64_t, int64_t>> batch_of;
};

/// Returns, for each batch, `first` plus the sum of index * step over the loops of the batch, which are (extent, step), outermost first.
std::vector<int64_t> offsets_of(const std::vector<std::pair<int64_t, int64_t>>& batch, int64_t first);

/// A product of matrices for each batch.
struct Product {
  uint32_t type = 0;      ///< type in which it is computed
  int packs = 1;          ///< MicroKernel::packs; `depth` and all steps count packed elements
  bool signed_a = false;  ///< MicroKernel::signed_a
  /// True if the result has another type: the product is computed in temporary memory and converted.
  bool converts = false;
  ValueId result = kNone;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  int64_t ldc = 0;
  int64_t c_offset = 0;
  std::vector<std::pair<int64_t, int64_t>> batch;  ///< (extent, step in the result) of each batch loop, outermost first
  ProductOperand a;
  ProductOperand b;
  int tile_rows = 1;
  int vectors = 1;
  int lanes = 1;
  ProductSchedule by_hand;  ///< what find_product was given
  /// The loops of the result that form the batch, the rows and the columns, outermost first, and the sizes of all
  /// loops.
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
  /// Returns the initial values of the sums. They correct the sums if 128 is added to the elements of the other operand to make s8 u8.
  Starts starts() const {
    return !a.start.buffers.empty() ? Starts::kRows : !b.start.buffers.empty() ? Starts::kColumns : Starts::kZero;
  }
  /// Returns the micro-kernel for a tile of that many rows and columns.
  MicroKernel micro(int64_t tile, int64_t tile_columns) const;
};

/// Returns the kernel that copies a panel of b, which is read in place, so that its rows are contiguous. Loop 0 runs over the steps of the
/// depth. Buffers: the first element of the panel; the copy.
Kernel panel_copy(const Product& product);

/// Finds the product in a kernel whose loops have not been collapsed. The first `batch_loops` loops become loops of the
/// batch even if they could be rows. Returns false if there is none, or if a plain kernel is faster; `why_not`, unless it is null,
/// gets the reason if the kernel is a sum of products, and null if it is none.
bool find_product(const KernelPlan& plan, const Graph& graph, const Target& target, Product& out,
                  size_t batch_loops = 0, const ProductSchedule& by_hand = {}, const char** why_not = nullptr);

/// True if the blocks of the depth are not those in which an operand is packed, or in which it comes from memory.
bool takes_depth_block(const Product& product);

/// Makes `plan`, a kernel that reads the product's result at each point and stores one value there, the product's
/// epilogue. Returns false if that is not possible.
bool make_epilogue(const KernelPlan& plan, const Product& product, Epilogue& out);

/// True if an epilogue should be applied to the registers of a tile: if it is short and the depth is small. Otherwise
/// it runs on the stored tile, which takes less code.
bool fits_registers(const Epilogue& epilogue, const Product& product, const Tuning& tuning);

/// Like make_epilogue, for a product that is a plain kernel over `dims` and the summed loops: appends `plan` to that
/// kernel. Returns false and changes nothing if that is not possible.
bool append_epilogue(const KernelPlan& plan, ValueId result, const Dims& dims, KernelPlan& product);

}  // namespace collet::codegen
