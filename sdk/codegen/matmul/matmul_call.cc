// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/matmul/matmul_call.h"

#include <algorithm>

namespace collet::codegen {
namespace {

constexpr int64_t kDepthBlock = 384;
constexpr int64_t kDeepest = 1024;                   ///< the error of a sum grows with its terms
constexpr int64_t kChunkBytes = int64_t{384} << 10;  ///< of a: stays in the second cache

constexpr int64_t kFirstCache = int64_t{32} << 10;
constexpr int64_t kSecondCache = int64_t{1} << 20;
constexpr int64_t kSegmentBytes = int64_t{24} << 10;  ///< of a tile's segments: they stay in the first cache

int64_t divide_up(int64_t x, int64_t y) {
  return (x + y - 1) / y;
}

/// The sum of index * step over the loops of the batch, for each batch.
std::vector<int64_t> places_of(const std::vector<std::pair<int64_t, int64_t>>& levels, int64_t first) {
  std::vector<int64_t> at{first};
  for (auto [extent, step] : levels) {
    std::vector<int64_t> next;
    next.reserve(at.size() * static_cast<size_t>(extent));
    for (int64_t x : at) {
      for (int64_t i = 0; i < extent; ++i) next.push_back(x + i * step);
    }
    at = std::move(next);
  }
  return at;
}

}  // namespace

MatmulCall::MatmulCall(const Product& p, int threads)
    : bytes_(p.type == COLLET_TYPE_F64 ? 8 : 4),
      rows_(p.rows),
      columns_(p.columns),
      depth_(p.depth),
      ldc_(p.ldc),
      c_offset_(p.c_offset),
      tile_rows_(p.tile_rows),
      tiles_(divide_up(p.rows, p.tile_rows)),
      lanes_(p.lanes),
      panel_(p.panel()),
      panels_(divide_up(p.columns, p.panel())),
      last_rows_(p.rows % p.tile_rows),
      last_columns_(p.columns % p.panel()),
      run_(p.a.run),
      segments_(p.a.segments),
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
  tail_ = last_columns_ % lanes_;
  if (a_packed_) a_buffers_ = static_cast<uint32_t>(p.a.pack.buffers.size()) - 1;
  // One panel of few elements stays in the first cache however deep it is, and a is read once.
  const bool small = panels_ == 1 && depth_ <= kDeepest && depth_ * columns_ * bytes_ <= kFirstCache;
  const int64_t blocks = small ? 1 : divide_up(depth_, kDepthBlock);
  depth_block_ = divide_up(divide_up(depth_, blocks), 4) * 4;
  if (!segments_.empty()) {
    const auto count = static_cast<int64_t>(segments_.size());
    const int64_t reach = ((tile_rows_ - 1) * a_row_ + run_) * bytes_;  // rows overlap
    run_block_ = std::clamp<int64_t>(kSegmentBytes / reach, 1, count);
    run_block_ = divide_up(count, divide_up(count, run_block_));
    depth_block_ = run_block_ * run_;
  }
  a_at_ = places_of(p.a.packed ? p.a.batch_of : p.a.batch, 0);
  b_at_ = places_of(p.b.packed ? p.b.batch_of : p.b.batch, 0);
  c_at_ = places_of(p.batch, c_offset_);
  batch_rank_ = p.batch.size();
  for (int64_t b = 0; b < batches_; ++b) {
    int64_t inside = batches_;
    for (auto& level : p.batch) {
      inside /= level.first;
      positions_.push_back(b / inside % level.first);
    }
  }
  if (!a_packed_) {
    while (shared_ < batches_ && b_at_[static_cast<size_t>(shared_)] == b_at_[0]) ++shared_;
    if (batches_ % shared_ != 0) shared_ = 1;
  }
  packs_b_ = b_packed_ && p.b.batches > 1 && p.b.batches == batches_;
  partition();
  packs_b_ = packs_b_ && chunks_ == 1;
  if (packs_b_) b_buffers_ = static_cast<uint32_t>(p.b.pack.buffers.size()) - 1;
}

int64_t MatmulCall::parts_of_depth() const {
  return segments_.empty() ? divide_up(depth_, depth_block_)
                           : divide_up(static_cast<int64_t>(segments_.size()), run_block_);
}

/// Chunks of tiles, and parts of the columns: as few as the cache and the threads allow. What is packed for a chunk, and
/// what of b or a comes again for another chunk or part, is counted as well.
void MatmulCall::partition() {
  const int64_t line = (a_packed_ ? depth_ : std::min(depth_block_, depth_)) * bytes_;
  const int64_t all = tiles_ * shared_;
  const int64_t room = std::clamp<int64_t>(kChunkBytes / std::max<int64_t>(line * tile_rows_, 1), 1, 64);
  const int64_t least = divide_up(all, room);
  chunks_ = least;
  if (threads_ == 1 || cost_ns() <= Threads::kAwakeNs) return;
  const int64_t sets = batches_ / shared_;
  const double tile = static_cast<double>(tile_rows_ * (panel_ / lanes_) * depth_) / 2;
  const double a_tile = static_cast<double>(tile_rows_ * depth_ * bytes_) / (a_packed_ ? 4 : 32);
  const bool far = depth_ * columns_ * bytes_ > kSecondCache;
  const double b_panel = static_cast<double>(depth_ * panel_ * bytes_) / (far ? 8 : 32);
  // Where each matrix of b is packed where it is used, that is not to be done twice.
  const bool whole = packs_b_ && sets >= threads_;
  const int64_t enough = 8 * threads_;
  const int64_t most = whole ? least : std::min(all, least < enough ? 2 * enough : least + threads_);
  double best = 0;
  for (int64_t parts = 1; parts <= std::min<int64_t>(panels_, 4 * threads_); ++parts) {
    for (int64_t chunks = least; chunks <= most; ++chunks) {
      const int64_t jobs = sets * chunks * parts;
      const auto rows = static_cast<double>(divide_up(all, chunks));
      const auto columns = static_cast<double>(divide_up(panels_, parts));
      const double job = rows * columns * tile + rows * a_tile + columns * b_panel + 200;
      const double cost = job * static_cast<double>(divide_up(jobs, threads_));
      if (best != 0 && cost >= best * 0.99) continue;
      best = cost;
      chunks_ = chunks;
      column_parts_ = parts;
    }
  }
}

double MatmulCall::cost_ns() const {
  const int64_t columns = divide_up(columns_, lanes_) * lanes_;  // lanes that do not count work as well
  return 2.0 * static_cast<double>(rows_) * static_cast<double>(columns) * static_cast<double>(depth_) *
         static_cast<double>(batches_) / (bytes_ == 8 ? 30.0 : 60.0);
}

int64_t MatmulCall::a_room() const {
  return a_packed_ ? (divide_up(tiles_, chunks_) * a_tile_ * bytes_ + 127) / 64 * 64 : 0;
}

int64_t MatmulCall::b_room() const {
  return packs_b_ ? (b_matrix_ * bytes_ + 127) / 64 * 64 : 0;
}

uint64_t MatmulCall::scratch_bytes() const {
  return static_cast<uint64_t>(threads_ * (a_room() + b_room()));
}

const char* MatmulCall::packed_rows(char* const* buffers, int64_t matrix, int64_t first, int64_t rows,
                                    char* scratch) const {
  char* places[kMostPackBuffers];
  const int64_t units = divide_up(rows_, a_pack_rows_);
  const int64_t begin = matrix * units + first / a_pack_rows_;
  for (uint32_t i = 0; i < a_buffers_; ++i) places[i] = buffers[i];
  places[a_buffers_] = scratch - begin * (a_pack_rows_ == 1 ? a_row_ : a_tile_) * bytes_;
  pack_a_(places, begin, begin + divide_up(rows, a_pack_rows_));
  return scratch;
}

const char* MatmulCall::packed_panels(char* const* buffers, int64_t matrix, int64_t first, int64_t last,
                                      char* scratch) const {
  char* places[kMostPackBuffers];
  for (uint32_t i = 0; i < b_buffers_; ++i) places[i] = buffers[a_buffers_ + i];
  places[b_buffers_] = scratch - matrix * b_matrix_ * bytes_;
  if (b_in_panels_) {
    pack_b_(places, matrix * panels_ + first, matrix * panels_ + last);
  } else {
    pack_b_(places, matrix, matrix + 1);
  }
  return scratch;
}

/// The tiles of one panel for a part of the depth; after the last they are what they should be.
void MatmulCall::panel(Where& at, int64_t column, int64_t a_at, bool last) const {
  Tile& t = at.tile;
  const bool last_column = last_columns_ != 0 && column + panel_ > columns_;
  t.column = column;
  const MicroFunction finish = last ? after_[last_column ? 1 : 0] : nullptr;
  int64_t i = at.first_tile % tiles_;
  auto batch = static_cast<size_t>(at.batch + at.first_tile / tiles_);
  for (int64_t n = at.first_tile; n < at.last_tile; ++n) {
    const bool last_row = last_rows_ != 0 && i + 1 == tiles_;
    const int64_t c = (c_at_[batch] + i * tile_rows_ * ldc_ + column) * bytes_;
    t.a = at.a + (a_packed_ ? (i - at.first_tile) * a_tile_ + a_at : a_at_[batch] + i * a_tile_ + a_at) * bytes_;
    t.c = at.c + c;
    t.d = at.d + c;
    t.row = i * tile_rows_;
    t.rows = last_row ? last_rows_ : tile_rows_;
    t.position = positions_.data() + batch * batch_rank_;
    micro_[last_row ? 1 : 0][last_column ? 1 : 0](&t);
    if (finish) finish(&t);
    if (++i == tiles_) {
      i = 0;
      ++batch;
    }
  }
}

void MatmulCall::blocks(Where& at) const {
  Tile& t = at.tile;
  const bool segmented = !segments_.empty();
  const auto count = static_cast<int64_t>(segments_.size());
  const int64_t parts = parts_of_depth();
  for (int64_t k = 0; k < parts; ++k) {
    const int64_t first = k * depth_block_;
    t.depth = segmented ? run_ : std::min(depth_block_, depth_ - first);
    t.segments = std::min(run_block_, count - k * run_block_);
    t.offsets = segmented ? segments_.data() + k * run_block_ : nullptr;
    t.accumulate = k != 0;
    for (int64_t j = at.first_panel; j < at.last_panel; ++j) {
      const int64_t b_at = b_in_panels_ ? (j * depth_ + first) * panel_ : first * b_depth_ + j * panel_;
      t.b = at.b + b_at * bytes_;
      panel(at, j * panel_, segmented ? 0 : first * a_depth_, k + 1 == parts);
    }
  }
}

void MatmulCall::part(char* const* buffers, int64_t job, int worker) const {
  const int64_t piece = job % column_parts_;
  const int64_t chunk = job / column_parts_ % chunks_;
  Where at{};
  at.batch = job / column_parts_ / chunks_ * shared_;
  at.first_tile = tiles_ * shared_ * chunk / chunks_;
  at.last_tile = tiles_ * shared_ * (chunk + 1) / chunks_;
  at.first_panel = panels_ * piece / column_parts_;
  at.last_panel = panels_ * (piece + 1) / column_parts_;
  if (at.first_tile == at.last_tile || at.first_panel == at.last_panel) return;
  const auto batch = static_cast<size_t>(at.batch);
  char* scratch = buffers[a_buffers_ + b_buffers_ + 1] + worker * (a_room() + b_room());
  if (a_packed_) {
    const int64_t first = at.first_tile * tile_rows_;
    const int64_t rows = std::min(at.last_tile * tile_rows_, rows_) - first;
    at.a = packed_rows(buffers, a_at_[batch], first, rows, scratch);
  } else {
    at.a = buffers[0] + a_offset_ * bytes_;
  }
  if (packs_b_) {
    at.b = packed_panels(buffers, b_at_[batch], at.first_panel, at.last_panel, scratch + a_room());
  } else {
    const int64_t matrix = b_packed_ ? b_at_[batch] * b_matrix_ : b_offset_ + b_at_[batch];
    at.b = buffers[a_buffers_] + matrix * bytes_;
  }
  at.c = buffers[a_buffers_ + b_buffers_];
  Tile& t = at.tile;
  if (epilogue_) {
    at.d = buffers[a_buffers_ + b_buffers_ + 2];
    t.buffers = buffers + a_buffers_ + b_buffers_ + 3;
  }
  t.a_step = a_depth_ == 1 ? a_row_ : a_depth_;
  t.b_step = b_depth_;
  t.c_step = ldc_;
  t.tail = tail_;
  blocks(at);
}

void MatmulCall::run(char* const* buffers, Threads& threads) const {
  const int64_t jobs = batches_ / shared_ * chunks_ * column_parts_;
  struct Work {
    const MatmulCall* call;
    char* const* buffers;
  } work{this, buffers};
  auto body = [](void* context, int64_t begin, int64_t end, int worker) {
    const Work* w = static_cast<const Work*>(context);
    for (int64_t job = begin; job < end; ++job) w->call->part(w->buffers, job, worker);
  };
  if (threads_ > 1 && threads.worthwhile(cost_ns())) {
    threads.loop(jobs, 1, body, &work);
  } else {
    body(&work, 0, jobs, 0);
  }
}

}  // namespace collet::codegen
