// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/launch/matmul_runner.h"

#include <algorithm>

namespace collet::codegen {
namespace {

int64_t divide_up(int64_t x, int64_t y) {
  return (x + y - 1) / y;
}

template <typename Function>
Function at(const std::vector<void*>& addresses, FunctionId id) {
  return id == kNoFunction ? nullptr : reinterpret_cast<Function>(addresses[id]);
}

}  // namespace

int64_t MatmulCall::depth_blocks() const {
  return segments.empty() ? divide_up(depth, depth_block) : divide_up(static_cast<int64_t>(segments.size()), run_block);
}

int64_t MatmulCall::a_scratch() const {
  return a_packed ? (divide_up(tiles, chunks) * a_tile * element_bytes + 127) / 64 * 64 : 0;
}

int64_t MatmulCall::b_scratch() const {
  return packs_b ? (b_matrix * element_bytes + 127) / 64 * 64 : 0;
}

MatmulRunner::MatmulRunner(const MatmulCall& call, const std::vector<void*>& addresses)
    : c_(call),
      pack_a_(at<KernelFunction>(addresses, call.pack_a)),
      pack_b_(at<KernelFunction>(addresses, call.pack_b)) {
  for (int row = 0; row < 2; ++row) {
    for (int column = 0; column < 2; ++column)
      micro_[row][column] = at<MicroFunction>(addresses, call.micro[row][column]);
  }
  for (int column = 0; column < 2; ++column) after_[column] = at<MicroFunction>(addresses, call.after[column]);
}

const char* MatmulRunner::packed_rows(char* const* buffers, int64_t matrix, int64_t first, int64_t rows,
                                      char* scratch) const {
  char* places[kMostPackBuffers];
  const int64_t units = divide_up(c_.rows, c_.a_pack_rows);
  const int64_t begin = matrix * units + first / c_.a_pack_rows;
  for (uint32_t i = 0; i < c_.a_buffers; ++i) places[i] = buffers[i];
  places[c_.a_buffers] = scratch - begin * (c_.a_pack_rows == 1 ? c_.a_row : c_.a_tile) * c_.element_bytes;
  pack_a_(places, begin, begin + divide_up(rows, c_.a_pack_rows));
  return scratch;
}

const char* MatmulRunner::packed_panels(char* const* buffers, int64_t matrix, int64_t first, int64_t last,
                                        char* scratch) const {
  char* places[kMostPackBuffers];
  for (uint32_t i = 0; i < c_.b_buffers; ++i) places[i] = buffers[c_.a_buffers + i];
  places[c_.b_buffers] = scratch - matrix * c_.b_matrix * c_.element_bytes;
  if (c_.b_in_panels) {
    pack_b_(places, matrix * c_.panels + first, matrix * c_.panels + last);
  } else {
    pack_b_(places, matrix, matrix + 1);
  }
  return scratch;
}

/// The tiles of one panel for a part of the depth; after the last they are what they should be.
void MatmulRunner::panel(Where& at, int64_t column, int64_t a_at, bool last) const {
  Tile& t = at.tile;
  const bool last_column = c_.last_columns != 0 && column + c_.panel > c_.columns;
  t.column = column;
  const MicroFunction finish = last ? after_[last_column ? 1 : 0] : nullptr;
  int64_t i = at.first_tile % c_.tiles;
  auto batch = static_cast<size_t>(at.batch + at.first_tile / c_.tiles);
  for (int64_t n = at.first_tile; n < at.last_tile; ++n) {
    const bool last_row = c_.last_rows != 0 && i + 1 == c_.tiles;
    const int64_t c = (c_.c_at[batch] + i * c_.tile_rows * c_.ldc + column) * c_.element_bytes;
    t.a = at.a + (c_.a_packed ? (i - at.first_tile) * c_.a_tile + a_at : c_.a_at[batch] + i * c_.a_tile + a_at) *
                     c_.element_bytes;
    t.c = at.c + c;
    t.d = at.d + c;
    t.row = i * c_.tile_rows;
    t.rows = last_row ? c_.last_rows : c_.tile_rows;
    t.position = c_.positions.data() + batch * c_.batch_rank;
    micro_[last_row ? 1 : 0][last_column ? 1 : 0](&t);
    if (finish) finish(&t);
    if (++i == c_.tiles) {
      i = 0;
      ++batch;
    }
  }
}

void MatmulRunner::blocks(Where& at) const {
  Tile& t = at.tile;
  const bool segmented = !c_.segments.empty();
  const auto count = static_cast<int64_t>(c_.segments.size());
  const int64_t parts = c_.depth_blocks();
  for (int64_t k = 0; k < parts; ++k) {
    const int64_t first = k * c_.depth_block;
    t.depth = segmented ? c_.run : std::min(c_.depth_block, c_.depth - first);
    t.segments = std::min(c_.run_block, count - k * c_.run_block);
    t.offsets = segmented ? c_.segments.data() + k * c_.run_block : nullptr;
    t.accumulate = k != 0;
    for (int64_t j = at.first_panel; j < at.last_panel; ++j) {
      const int64_t b_at = c_.b_in_panels ? (j * c_.depth + first) * c_.panel : first * c_.b_depth + j * c_.panel;
      t.b = at.b + b_at * c_.element_bytes;
      panel(at, j * c_.panel, segmented ? 0 : first * c_.a_depth, k + 1 == parts);
    }
  }
}

void MatmulRunner::part(char* const* buffers, int64_t job, int worker) const {
  const int64_t piece = job % c_.column_parts;
  const int64_t chunk = job / c_.column_parts % c_.chunks;
  Where at{};
  at.batch = job / c_.column_parts / c_.chunks * c_.shared;
  at.first_tile = c_.tiles * c_.shared * chunk / c_.chunks;
  at.last_tile = c_.tiles * c_.shared * (chunk + 1) / c_.chunks;
  at.first_panel = c_.panels * piece / c_.column_parts;
  at.last_panel = c_.panels * (piece + 1) / c_.column_parts;
  if (at.first_tile == at.last_tile || at.first_panel == at.last_panel) return;
  const auto batch = static_cast<size_t>(at.batch);
  char* scratch = buffers[c_.a_buffers + c_.b_buffers + 1] + worker * (c_.a_scratch() + c_.b_scratch());
  if (c_.a_packed) {
    const int64_t first = at.first_tile * c_.tile_rows;
    const int64_t rows = std::min(at.last_tile * c_.tile_rows, c_.rows) - first;
    at.a = packed_rows(buffers, c_.a_at[batch], first, rows, scratch);
  } else {
    at.a = buffers[0] + c_.a_offset * c_.element_bytes;
  }
  if (c_.packs_b) {
    at.b = packed_panels(buffers, c_.b_at[batch], at.first_panel, at.last_panel, scratch + c_.a_scratch());
  } else {
    const int64_t matrix = c_.b_packed ? c_.b_at[batch] * c_.b_matrix : c_.b_offset + c_.b_at[batch];
    at.b = buffers[c_.a_buffers] + matrix * c_.element_bytes;
  }
  at.c = buffers[c_.a_buffers + c_.b_buffers];
  Tile& t = at.tile;
  if (c_.epilogue) {
    at.d = buffers[c_.a_buffers + c_.b_buffers + 2];
    t.buffers = buffers + c_.a_buffers + c_.b_buffers + 3;
  }
  t.a_step = c_.a_depth == 1 ? c_.a_row : c_.a_depth;
  t.b_step = c_.b_depth;
  t.c_step = c_.ldc;
  t.tail = c_.tail;
  blocks(at);
}

void MatmulRunner::run(char* const* buffers, Threads& threads) const {
  const int64_t jobs = c_.batches / c_.shared * c_.chunks * c_.column_parts;
  struct Work {
    const MatmulRunner* call;
    char* const* buffers;
  } work{this, buffers};
  auto body = [](void* context, int64_t begin, int64_t end, int worker) {
    const Work* w = static_cast<const Work*>(context);
    for (int64_t job = begin; job < end; ++job) w->call->part(w->buffers, job, worker);
  };
  if (c_.threads > 1 && threads.worthwhile(c_.cost_ns)) {
    threads.loop(jobs, 1, body, &work);
  } else {
    body(&work, 0, jobs, 0);
  }
}

}  // namespace collet::codegen
