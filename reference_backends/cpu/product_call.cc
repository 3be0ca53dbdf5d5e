// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/cpu/product_call.h"

#include <algorithm>

namespace collet::cpu {
namespace {

constexpr int64_t kDepthBlock = 384;
constexpr int64_t kChunkBytes = int64_t{384} << 10;  ///< of a: stays in the second cache

int64_t divide_up(int64_t x, int64_t y) {
  return (x + y - 1) / y;
}

std::vector<int64_t> steps_of(const codegen::ProductOperand& o) {
  std::vector<int64_t> steps;
  for (auto& level : o.packed ? o.batch_of : o.batch) steps.push_back(level.second);
  return steps;
}

}  // namespace

ProductCall::ProductCall(const codegen::Product& p, int threads)
    : bytes_(p.type == COLLET_TYPE_F64 ? 8 : 4),
      rows_(p.rows),
      columns_(p.columns),
      depth_(p.depth),
      ldc_(p.ldc),
      c_offset_(p.c_offset),
      tile_rows_(p.tile_rows),
      panel_(p.panel()),
      panels_(divide_up(p.columns, p.panel())),
      last_rows_(p.rows % p.tile_rows),
      last_columns_(p.columns % p.panel()),
      batches_(p.batches()),
      a_packed_(p.a.packed),
      b_packed_(p.b.packed),
      b_in_panels_(p.b.panels),
      b_matrix_(p.b.matrix),
      a_offset_(p.a.offset),
      a_row_(p.a.row),
      a_depth_(p.a.depth),
      a_tile_(p.a.tile),
      a_pack_rows_(p.a.pack_rows),
      b_offset_(p.b.offset),
      b_depth_(p.b.depth),
      threads_(threads) {
  tail_ = last_columns_ % p.lanes;
  if (a_packed_) a_buffers_ = static_cast<uint32_t>(p.a.pack.buffers.size()) - 1;
  const int64_t blocks = divide_up(depth_, kDepthBlock);
  depth_block_ = divide_up(divide_up(depth_, blocks), 4) * 4;
  const int64_t line = (a_packed_ ? depth_ : std::min(depth_block_, depth_)) * bytes_;
  const int64_t tiles = std::clamp<int64_t>(kChunkBytes / std::max<int64_t>(line * tile_rows_, 1), 1, 64);
  chunk_rows_ = std::min(tiles * tile_rows_, rows_);
  // Enough pieces for all threads, by rows first.
  const int64_t wanted = 2 * threads;
  if (threads > 1 && cost_ns() > Threads::kWorthwhileNs) {
    while (batches_ * divide_up(rows_, chunk_rows_) < wanted && chunk_rows_ > 2 * tile_rows_) {
      chunk_rows_ = divide_up(divide_up(chunk_rows_, tile_rows_), 2) * tile_rows_;
    }
    const int64_t pieces = batches_ * divide_up(rows_, chunk_rows_);
    if (pieces < wanted) column_parts_ = std::min(divide_up(wanted, pieces), panels_);
  }
  chunks_ = divide_up(rows_, chunk_rows_);
  for (auto& level : p.batch) {
    extents_.push_back(level.first);
    c_steps_.push_back(level.second);
  }
  // One matrix a batch, and all rows at once: then it is packed where it stays in the cache.
  packs_b_ = b_packed_ && p.b.batches > 1 && p.b.batches == batches_ && chunks_ == 1;
  if (packs_b_) b_buffers_ = static_cast<uint32_t>(p.b.pack.buffers.size()) - 1;
  a_steps_ = steps_of(p.a);
  b_steps_ = steps_of(p.b);
}

double ProductCall::cost_ns() const {
  return 2.0 * static_cast<double>(rows_) * static_cast<double>(columns_) * static_cast<double>(depth_) *
         static_cast<double>(batches_) / (bytes_ == 8 ? 30.0 : 60.0);
}

int64_t ProductCall::a_room() const {
  return a_packed_ ? (divide_up(chunk_rows_, tile_rows_) * a_tile_ * bytes_ + 127) / 64 * 64 : 0;
}

int64_t ProductCall::b_room() const {
  return packs_b_ ? (b_matrix_ * bytes_ + 127) / 64 * 64 : 0;
}

uint64_t ProductCall::scratch_bytes() const {
  return static_cast<uint64_t>(threads_ * (a_room() + b_room()));
}

const char* ProductCall::packed_rows(char* const* buffers, int64_t matrix, int64_t first, int64_t rows,
                                     char* scratch) const {
  char* places[codegen::kMostPackBuffers];
  const int64_t units = divide_up(rows_, a_pack_rows_);
  const int64_t begin = matrix * units + first / a_pack_rows_;
  for (uint32_t i = 0; i < a_buffers_; ++i) places[i] = buffers[i];
  places[a_buffers_] = scratch - begin * (a_pack_rows_ == 1 ? a_row_ : a_tile_) * bytes_;
  pack_a_(places, begin, begin + divide_up(rows, a_pack_rows_));
  return scratch;
}

const char* ProductCall::packed_panels(char* const* buffers, int64_t matrix, int64_t first, int64_t last,
                                       char* scratch) const {
  char* places[codegen::kMostPackBuffers];
  for (uint32_t i = 0; i < b_buffers_; ++i) places[i] = buffers[a_buffers_ + i];
  places[b_buffers_] = scratch - matrix * b_matrix_ * bytes_;
  if (b_in_panels_) {
    pack_b_(places, matrix * panels_ + first, matrix * panels_ + last);
  } else {
    pack_b_(places, matrix, matrix + 1);
  }
  return scratch;
}

/// All columns of the panels for some rows of one matrix.
void ProductCall::block(const Where& at, int64_t rows, int64_t first_panel, int64_t last_panel) const {
  for (int64_t k = 0; k < depth_; k += depth_block_) {
    const int64_t depth = std::min(depth_block_, depth_ - k);
    for (int64_t j = first_panel; j < last_panel; ++j) {
      const bool last_column = last_columns_ != 0 && j + 1 == panels_;
      const int64_t b_at = b_in_panels_ ? (j * depth_ + k) * panel_ : k * b_depth_ + j * panel_;
      const char* b = at.b + b_at * bytes_;
      char* c = at.c + j * panel_ * bytes_;
      for (int64_t i = 0; i < rows; i += tile_rows_) {
        const bool last_row = rows - i < tile_rows_;
        micro_[last_row ? 1 : 0][last_column ? 1 : 0](at.a + (i / tile_rows_ * a_tile_ + k * a_depth_) * bytes_, b,
                                                      c + i * ldc_ * bytes_, depth, a_depth_ == 1 ? a_row_ : a_depth_,
                                                      b_depth_, ldc_, tail_, k != 0);
      }
    }
  }
}

void ProductCall::part(char* const* buffers, int64_t job, int worker) const {
  const int64_t piece = job % column_parts_;
  const int64_t chunk = job / column_parts_ % chunks_;
  int64_t batch = job / column_parts_ / chunks_;
  int64_t a_batch = 0;
  int64_t b_batch = 0;
  int64_t c_batch = c_offset_;
  for (size_t d = extents_.size(); d-- > 0;) {
    const int64_t i = batch % extents_[d];
    batch /= extents_[d];
    a_batch += i * a_steps_[d];
    b_batch += i * b_steps_[d];
    c_batch += i * c_steps_[d];
  }
  const int64_t first = chunk * chunk_rows_;
  const int64_t rows = std::min(chunk_rows_, rows_ - first);
  Where at;
  const int64_t first_panel = panels_ * piece / column_parts_;
  const int64_t last_panel = panels_ * (piece + 1) / column_parts_;
  char* scratch = buffers[a_buffers_ + b_buffers_ + 1] + worker * (a_room() + b_room());
  at.a = a_packed_ ? packed_rows(buffers, a_batch, first, rows, scratch)
                   : buffers[0] + (a_offset_ + a_batch + first * a_row_) * bytes_;
  if (packs_b_) {
    at.b = packed_panels(buffers, b_batch, first_panel, last_panel, scratch + a_room());
  } else {
    const int64_t matrix = b_packed_ ? b_batch * b_matrix_ : b_offset_ + b_batch;
    at.b = buffers[a_buffers_] + matrix * bytes_;
  }
  at.c = buffers[a_buffers_ + b_buffers_] + (c_batch + first * ldc_) * bytes_;
  block(at, rows, first_panel, last_panel);
  if (!epilogue_) return;
  const int64_t done = c_batch + first * ldc_;
  epilogue_(buffers + a_buffers_ + b_buffers_ + 2, done / epilogue_elements_,
            (done + rows * columns_) / epilogue_elements_);
}

void ProductCall::run(char* const* buffers, Threads& threads) const {
  const int64_t jobs = batches_ * chunks_ * column_parts_;
  struct Work {
    const ProductCall* call;
    char* const* buffers;
  } work{this, buffers};
  auto body = [](void* context, int64_t begin, int64_t end, int worker) {
    const Work* w = static_cast<const Work*>(context);
    for (int64_t job = begin; job < end; ++job) w->call->part(w->buffers, job, worker);
  };
  if (threads_ > 1 && cost_ns() > Threads::kWorthwhileNs) {
    threads.loop(jobs, 1, body, &work);
  } else {
    body(&work, 0, jobs, 0);
  }
}

}  // namespace collet::cpu
