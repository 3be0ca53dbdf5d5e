// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/matmul/blocking.h"

#include <algorithm>

namespace collet::codegen {
namespace {

class Maker {
 public:
  Maker(const Target& target, bool by_batch) : target_(target), by_batch_(by_batch) {}

  BlockedProduct run(const Product& p) {
    c_.element_bytes = p.type == COLLET_TYPE_F64 ? 8 : 4;
    c_.rows = p.rows;
    c_.columns = p.columns;
    c_.depth = p.depth;
    c_.ldc = p.ldc;
    c_.c_offset = p.c_offset;
    c_.tile_rows = p.tile_rows;
    c_.tiles = divide_up(p.rows, p.tile_rows);
    c_.lanes = p.lanes;
    c_.panel = p.panel();
    c_.panels = divide_up(p.columns, p.panel());
    c_.last_rows = p.rows % p.tile_rows;
    c_.last_columns = p.columns % p.panel();
    c_.run = p.a.run;
    c_.segments = p.a.segments;
    c_.batches = p.batches();
    c_.a_packed = p.a.packed;
    c_.b_packed = p.b.packed;
    c_.b_in_panels = p.b.panels;
    c_.b_matrix = p.b.matrix;
    c_.b_starts = p.starts() == Starts::kColumns ? 1 : 0;
    c_.row_starts = p.starts() == Starts::kRows;
    c_.a_offset = p.a.offset;
    c_.a_row = p.a.row;
    c_.a_depth = p.a.depth;
    c_.a_tile = p.a.tile;
    c_.a_pack_rows = p.a.pack_rows;
    c_.b_offset = p.b.offset;
    c_.b_depth = p.b.depth;
    c_.threads = target_.threads;
    c_.cost_ns = std::max(arithmetic_ns(), memory_ns(p));
    c_.tail = c_.last_columns % c_.lanes;
    if (c_.a_packed) c_.a_buffers = static_cast<uint32_t>(p.a.pack.buffers.size()) - 1;
    // A single small panel stays in the first-level cache without being cut into depth blocks, and a is read only once.
    const bool small = c_.panels == 1 && c_.depth <= kMostDepthBlock &&
                       c_.depth * c_.columns * c_.element_bytes <= target_.first_cache;
    c_.copies_b = p.b.copied_for != 0 && !small;
    const int64_t blocks = small ? 1 : divide_up(c_.depth, target_.tuning.depth_block);
    c_.depth_block = divide_up(divide_up(c_.depth, blocks), 4) * 4;
    if (p.by_hand.depth_block != 0 && takes_depth_block(p))
      c_.depth_block = std::min(p.by_hand.depth_block, divide_up(c_.depth, 4) * 4);
    if (p.a.depth_block != 0) {
      c_.depth_block = p.a.depth_block;
      c_.a_blocks = c_.depth_blocks();
    }
    if (p.b.streams) {
      // With more rows, loading and storing the result takes longer, so a block needs more depth.
      const int64_t streams = target_.tuning.prefetched_streams;
      const int64_t least = c_.rows > streams ? 2 : 1;
      // A single row takes so little time that calls count, unless b comes from memory.
      const bool is_near =
          c_.depth * c_.columns * c_.element_bytes <= target_.tuning.near_caches * target_.second_cache;
      const int64_t rows_of_b = c_.rows == 1 && is_near ? 3 * streams : streams;
      c_.depth_block = least * rows_of_b;
      c_.column_parts = divide_up(c_.rows * c_.columns * c_.element_bytes * 4, target_.second_cache);
    }
    if (!c_.segments.empty()) {
      const auto count = static_cast<int64_t>(c_.segments.size());
      // Bytes of `a` from the first to the last element that a tile reads for one segment of the depth. The rows of a tile overlap there.
      const int64_t reach = ((c_.tile_rows - 1) * c_.a_row + c_.run) * c_.element_bytes;
      const int64_t most = std::min(target_.first_cache * 3 / 4 / reach, kMostDepthBlock / c_.run);
      c_.run_block = std::clamp<int64_t>(most, 1, count);
      c_.run_block = divide_up(count, divide_up(count, c_.run_block));
      c_.depth_block = c_.run_block * c_.run;
    }
    const bool is_float = p.type == COLLET_TYPE_F32 || p.type == COLLET_TYPE_F64;
    if (is_float && c_.depth_blocks() > target_.tuning.depth_groups) c_.group_blocks = target_.tuning.depth_groups;
    c_.a_at = offsets_of(p.a.packed ? p.a.batch_of : p.a.batch, 0);
    c_.b_at = offsets_of(p.b.packed ? p.b.batch_of : p.b.batch, 0);
    c_.c_at = offsets_of(p.batch, c_.c_offset);
    if (c_.row_starts) {
      c_.start_at = offsets_of(p.a.batch_of, 0);
      for (int64_t& at : c_.start_at) at *= c_.rows;
    }
    c_.batch_rank = p.batch.size();
    for (int64_t b = 0; b < c_.batches; ++b) {
      int64_t inside = c_.batches;
      for (auto& level : p.batch) {
        inside /= level.first;
        c_.positions.push_back(b / inside % level.first);
      }
    }
    if (!c_.a_packed && !by_batch_) {
      while (c_.shared < c_.batches && c_.b_at[static_cast<size_t>(c_.shared)] == c_.b_at[0]) ++c_.shared;
      if (c_.batches % c_.shared != 0) c_.shared = 1;
    }
    c_.packs_b = c_.b_packed && p.b.batches > 1 && p.b.batches == c_.batches && c_.b_starts == 0;
    set_parts(p.a);
    if (by_batch_) {
      c_.column_parts = 1;
    } else {
      partition();
      if (p.by_hand.chunks != 0) c_.chunks = std::min(p.by_hand.chunks, c_.tiles * c_.shared);
      if (p.by_hand.column_parts != 0) c_.column_parts = std::min(p.by_hand.column_parts, c_.panels);
    }
    c_.packs_b = c_.packs_b && c_.chunks == 1;
    c_.copies_b = c_.copies_b && c_.tiles * c_.shared >= p.b.copied_for * c_.chunks;
    if (c_.copies_b) c_.first_step = c_.end_step = {};  // a panel is copied, and fetched, as a whole
    if (c_.packs_b) c_.b_buffers = static_cast<uint32_t>(p.b.pack.buffers.size()) - 1;
    return std::move(c_);
  }

 private:
  /// Sets the part of the depth of each tile of each batch.
  void set_parts(const ProductOperand& a) {
    const auto& batches = a.parts_of_batches;
    const auto& tiles = a.parts_of_tiles;
    if ((batches.empty() && tiles.empty()) || c_.batches * c_.tiles > target_.tuning.listed_parts) return;
    for (int64_t b = 0; b < c_.batches; ++b) {
      for (int64_t i = 0; i < c_.tiles; ++i) {
        const auto& [first, end] = tiles.empty() ? batches[static_cast<size_t>(b)] : tiles[static_cast<size_t>(i)];
        c_.first_step.push_back(first);
        c_.end_step.push_back(end);
      }
    }
  }

  /// Cuts the tiles of rows into chunks and the columns into parts, as few as the caches and threads allow. The cost of
  /// packing for each chunk, and of reading b or a again for each chunk or part, is included.
  void partition() {
    const int64_t line =
        (c_.a_packed && c_.a_blocks == 1 ? c_.depth : std::min(c_.depth_block, c_.depth)) * c_.element_bytes;
    const int64_t all = c_.tiles * c_.shared;
    const int64_t most_tiles =
        std::clamp<int64_t>(target_.second_cache * 3 / 8 / std::max<int64_t>(line * c_.tile_rows, 1), 1, 64);
    const int64_t least = divide_up(all, most_tiles);
    c_.chunks = least;
    if (c_.threads == 1 || c_.cost_ns <= target_.awake_ns) return;
    const int64_t sets = c_.batches / c_.shared;
    const double tile = static_cast<double>(c_.tile_rows * (c_.panel / c_.lanes) * c_.depth) / 2;
    const double a_tile = static_cast<double>(c_.tile_rows * c_.depth * c_.element_bytes) / (c_.a_packed ? 4 : 32);
    const bool far = c_.depth * c_.columns * c_.element_bytes > target_.second_cache;
    const double b_panel = static_cast<double>(c_.depth * c_.panel * c_.element_bytes) / (far ? 8 : 32);
    // A matrix b that the call packs itself should not be packed by several threads.
    const bool whole = c_.packs_b && sets >= c_.threads;
    const int64_t enough = 8 * c_.threads;
    const int64_t most = whole ? least : std::min(all, least < enough ? 2 * enough : least + c_.threads);
    double best = 0;
    const int64_t fewest = c_.column_parts;
    for (int64_t parts = fewest; parts <= std::max(fewest, std::min<int64_t>(c_.panels, 4 * c_.threads)); ++parts) {
      for (int64_t chunks = least; chunks <= most; ++chunks) {
        const int64_t jobs = sets * chunks * parts;
        const auto rows = static_cast<double>(divide_up(all, chunks));
        const auto columns = static_cast<double>(divide_up(c_.panels, parts));
        const double job = rows * columns * tile + rows * a_tile + columns * b_panel + 200;
        const double cost = job * static_cast<double>(divide_up(jobs, c_.threads));
        if (best != 0 && cost >= best * 0.99) continue;
        best = cost;
        c_.chunks = chunks;
        c_.column_parts = parts;
      }
    }
  }

  double arithmetic_ns() const {
    const int64_t columns = divide_up(c_.columns, c_.lanes) * c_.lanes;  // unused lanes take the same time
    return 2.0 * static_cast<double>(c_.rows) * static_cast<double>(columns) * static_cast<double>(c_.depth) *
           static_cast<double>(c_.batches) / (target_.flops_per_ns * 4 / static_cast<double>(c_.element_bytes));
  }

  /// Returns the time to move the operands and the result once. A matrix that several batches share is counted once.
  double memory_ns(const Product& p) const {
    const auto matrices = [&](const ProductOperand& o) {
      int64_t n = 1;
      for (auto [extent, step] : o.packed ? o.batch_of : o.batch) n *= step == 0 ? 1 : extent;
      return n;
    };
    const int64_t elements =
        matrices(p.a) * c_.rows * c_.depth + matrices(p.b) * c_.depth * c_.columns + c_.batches * c_.rows * c_.columns;
    const auto bytes = static_cast<double>(elements * c_.element_bytes);
    const bool near = bytes <= static_cast<double>(target_.second_cache);
    return bytes / (target_.memory_bytes_per_ns * (near ? target_.tuning.cache_speed : 1));
  }

  const Target& target_;
  const bool by_batch_;
  BlockedProduct c_;
};

}  // namespace

BlockedProduct choose_blocking(const Product& product, const Target& target, bool by_batch) {
  return Maker(target, by_batch).run(product);
}

}  // namespace collet::codegen
