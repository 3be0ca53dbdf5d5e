// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/codegen/launch/launch_plan.h"
#include "sdk/codegen/launch/threads.h"
#include "sdk/codegen/matmul/matmul.h"

namespace collet::codegen {

/// Runs a product of matrices with compiled micro-kernels. Buffers: a and b, or what their packing reads, the result,
/// scratch; then the target and the buffers of the epilogue, where there is one.
///
/// The batches that share b and lie next to each other are one matrix of many lines: their tiles are walked together, so
/// that each part of b is read once for all of them.
class MatmulCall : public LibraryCall {
 public:
  MatmulCall(const Product& product, int threads);

  void run(char* const* buffers, Threads& threads) const override;
  uint64_t scratch_bytes() const override;

  /// The micro-kernel for full or last rows and columns.
  MicroFunction* micro(bool last_row, bool last_column) { return &micro_[last_row ? 1 : 0][last_column ? 1 : 0]; }
  KernelFunction* pack_a() { return &pack_a_; }
  KernelFunction* pack_b() { return &pack_b_; }
  /// Whether b is packed here, matrix by matrix, and not by a step before.
  bool packs_b() const { return packs_b_; }
  bool has_rows(bool last) const { return last ? last_rows_ != 0 : rows_ >= tile_rows_; }
  bool has_columns(bool last) const { return last ? last_columns_ != 0 : columns_ >= panel_; }
  int64_t last_rows() const { return last_rows_; }
  int64_t last_columns() const { return last_columns_; }
  double cost_ns() const;
  /// In how many parts the depth is taken.
  int64_t parts_of_depth() const;

  /// There is an epilogue, whether in the micro-kernels or in functions of its own.
  void add_epilogue() { epilogue_ = true; }
  MicroFunction* after(bool last_column) { return &after_[last_column ? 1 : 0]; }

 private:
  /// Where the tiles of a part are.
  struct Where {
    Tile tile;  ///< what all of them share
    const char* a;
    const char* b;
    char* c;
    char* d;
    int64_t batch;  ///< number of the first
    int64_t first_tile;
    int64_t last_tile;
    int64_t first_panel;
    int64_t last_panel;
  };
  void partition();
  void part(char* const* buffers, int64_t job, int worker) const;
  void blocks(Where& at) const;
  void panel(Where& at, int64_t column, int64_t a_at, bool last) const;
  const char* packed_rows(char* const* buffers, int64_t matrix, int64_t first, int64_t rows, char* scratch) const;
  const char* packed_panels(char* const* buffers, int64_t matrix, int64_t first, int64_t last, char* scratch) const;
  int64_t a_room() const;
  int64_t b_room() const;

  MicroFunction micro_[2][2] = {};
  MicroFunction after_[2] = {};
  KernelFunction pack_a_ = nullptr;
  KernelFunction pack_b_ = nullptr;
  bool epilogue_ = false;
  int64_t bytes_;  ///< of an element
  int64_t rows_;
  int64_t columns_;
  int64_t depth_;
  int64_t ldc_;
  int64_t c_offset_;
  int64_t tile_rows_;
  int64_t tiles_;  ///< of one matrix, in rows
  int64_t lanes_;
  int64_t panel_;
  int64_t panels_;
  int64_t last_rows_;
  int64_t last_columns_;
  int64_t tail_;
  int64_t depth_block_;    ///< where not segmented
  int64_t run_;            ///< the length of a segment
  int64_t run_block_ = 0;  ///< segments at a time
  std::vector<int64_t> segments_;
  int64_t chunks_ = 1;  ///< of the tiles of one set of batches
  int64_t column_parts_ = 1;
  int64_t batches_;
  int64_t shared_ = 1;  ///< batches that use the same b, one after the other
  bool a_packed_;
  bool b_packed_;
  bool b_in_panels_;
  int64_t b_matrix_;  ///< elements of a packed one
  bool packs_b_ = false;
  uint32_t a_buffers_ = 1;
  uint32_t b_buffers_ = 1;
  int64_t a_offset_;
  int64_t a_row_;
  int64_t a_depth_;
  int64_t a_tile_;
  int64_t a_pack_rows_;
  int64_t b_offset_;
  int64_t b_depth_;
  int threads_;
  /// Of each batch: elements, or matrices where packed.
  std::vector<int64_t> a_at_;
  std::vector<int64_t> b_at_;
  std::vector<int64_t> c_at_;
  std::vector<int64_t> positions_;  ///< in each loop of the batch
  size_t batch_rank_ = 0;
};

}  // namespace collet::codegen
