// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference_backends/cpu/library.h"
#include "sdk/codegen/contraction.h"

namespace collet::cpu {

/// Runs a product of matrices with compiled micro-kernels. Buffers: a and b, or what their packing reads, the result,
/// scratch.
class ProductCall : public LibraryCall {
 public:
  ProductCall(const codegen::Product& product, int threads);

  void run(char* const* buffers, Threads& threads) const override;
  uint64_t scratch_bytes() const override;

  /// The micro-kernel for full or last rows and columns.
  codegen::MicroFunction* micro(bool last_row, bool last_column) {
    return &micro_[last_row ? 1 : 0][last_column ? 1 : 0];
  }
  codegen::KernelFunction* pack_a() { return &pack_a_; }
  codegen::KernelFunction* pack_b() { return &pack_b_; }
  /// Whether b is packed here, matrix by matrix, and not by a step before.
  bool packs_b() const { return packs_b_; }
  bool has_last_rows() const { return last_rows_ != 0; }
  bool has_last_columns() const { return last_columns_ != 0; }
  int64_t last_rows() const { return last_rows_; }
  int64_t last_columns() const { return last_columns_; }
  double cost_ns() const;

  /// A kernel over the elements of the result, run on each part as soon as that is done. Its buffers follow scratch; a
  /// step of its first loop is `elements` of them.
  codegen::KernelFunction* epilogue(int64_t elements) {
    epilogue_elements_ = elements;
    return &epilogue_;
  }
  /// Whether each part is some whole rows of a dense result, the rows `elements` apart or a multiple of it.
  bool takes_epilogue(int64_t elements) const {
    return column_parts_ == 1 && ldc_ == columns_ && c_offset_ == 0 && elements > 0 && columns_ % elements == 0;
  }

 private:
  struct Where {
    const char* a;
    const char* b;
    char* c;
  };
  void part(char* const* buffers, int64_t job, int worker) const;
  void block(const Where& at, int64_t rows, int64_t first_panel, int64_t last_panel) const;
  const char* packed_rows(char* const* buffers, int64_t matrix, int64_t first, int64_t rows, char* scratch) const;
  const char* packed_panels(char* const* buffers, int64_t matrix, int64_t first, int64_t last, char* scratch) const;
  int64_t a_room() const;
  int64_t b_room() const;

  codegen::MicroFunction micro_[2][2] = {};
  codegen::KernelFunction pack_a_ = nullptr;
  codegen::KernelFunction pack_b_ = nullptr;
  codegen::KernelFunction epilogue_ = nullptr;
  int64_t epilogue_elements_ = 1;
  int64_t bytes_;  ///< of an element
  int64_t rows_;
  int64_t columns_;
  int64_t depth_;
  int64_t ldc_;
  int64_t c_offset_;
  int64_t tile_rows_;
  int64_t panel_;
  int64_t panels_;
  int64_t last_rows_;
  int64_t last_columns_;
  int64_t tail_;
  int64_t depth_block_;
  int64_t chunk_rows_;
  int64_t chunks_;
  int64_t column_parts_ = 1;
  int64_t batches_;
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
  std::vector<int64_t> extents_;  ///< of the batches
  std::vector<int64_t> c_steps_;
  std::vector<int64_t> a_steps_;  ///< elements, or matrices where packed
  std::vector<int64_t> b_steps_;
};

}  // namespace collet::cpu
