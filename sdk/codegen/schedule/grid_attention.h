// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Schedules attention for the blocks of a grid, in one pass over the keys.

#include <collet/codegen/target.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "sdk/codegen/lower/attention.h"
#include "sdk/codegen/schedule/grid_tiles.h"
#include "sdk/codegen/schedule/grid_warpgroups.h"

namespace collet::codegen {

struct AttentionSchedule;

/// Describes how warpgroups compute an attention whose factors have 16 bits: a block computes tiles of 64 queries for each
/// of its consumers. Keys and values come in turn to places in shared memory. The weights stay in registers, from where
/// the second product takes them.
struct WarpgroupAttention {
  BoxOperand query;  ///< queries by depth
  BoxOperand key;    ///< keys by depth
  BoxOperand value;  ///< columns of the result by keys
  int consumers = 2;
  int keys = 128;     ///< keys of a tile
  int depth = 64;     ///< depth of the first product, rounded up to whole lines
  int columns = 64;   ///< columns of the result, rounded up to whole lines
  int places = 4;     ///< places in shared memory, for a tile of keys or one of values
  int lanes = 1;      ///< neighbouring results that a thread computes and stores together
  uint32_t type = 0;  ///< type of the factors: BF16 or F16

  int rows() const { return consumers * WarpgroupSchedule::kGroupRows; }
  int block_threads() const { return (consumers + 1) * WarpgroupSchedule::kGroupThreads; }
  int64_t tiles(const AttentionSchedule& of) const;
  int64_t query_bytes() const { return int64_t{rows()} * depth * 2; }
  int64_t place_bytes() const { return int64_t{keys} * std::max(depth, columns) * 2; }
  /// Returns the bytes of shared memory: places for keys and values, the queries with two barriers, the sums of the weights
  /// of each row, chunks of results, and two barriers for each place.
  int64_t shared_bytes() const {
    return places * (place_bytes() + 16) + query_bytes() + row_bytes() +
           4 * consumers * WarpgroupSchedule::chunk_bytes();
  }
  /// Returns the bytes of the sums of the weights of all rows, and of the barriers of the queries.
  int64_t row_bytes() const { return int64_t{rows()} * 4 + 16; }

  bool operator==(const WarpgroupAttention&) const = default;
};

/// Each block computes the results of some queries. It processes the keys tile by tile, and keeps the maximum of each
/// row's logits, the sum of the exponentials and the sums of the results so far. If a tile has a larger maximum, both
/// sums are scaled (M. Milakov and N. Gimelshein, "Online normalizer calculation for softmax", 2018; T. Dao et al.,
/// "FlashAttention", 2022).
struct AttentionSchedule {
  TileOperand query;  ///< its loops are the rows
  TileOperand key;    ///< its loop runs over the keys
  TileOperand weight;
  TileOperand value;  ///< its loops are the columns of the result
  uint64_t batch = 0;
  int64_t batch_count = 1;
  uint32_t score_type = 0;   ///< type that matrix instructions multiply in the first product, or 0; see TileSchedule
  uint32_t result_type = 0;  ///< the same type for the second product
  TileShape scores;          ///< rows x keys of a tile of the first product
  TileShape results;         ///< rows x columns of the second product
  int score_steps = 0;       ///< steps of the first product's depth that are in shared memory at a time
  ExprId logit = kNoExpr;
  ExprId exponential = kNoExpr;
  /// True if keys and values have separate memory: the next keys are copied while the results of a tile are multiplied,
  /// and the values while the scores are. Otherwise the values overwrite the keys.
  bool copies_ahead = false;
  /// Set if warpgroups compute it; then shapes, steps and copies_ahead are not used.
  std::optional<WarpgroupAttention> warpgroups;

  int block_threads() const { return scores.threads(score_type); }
  int64_t row_tiles() const { return (query.count + scores.rows - 1) / scores.rows; }
  int64_t tiles() const { return row_tiles() * batch_count; }
  int64_t key_tiles() const { return (key.count + scores.columns - 1) / scores.columns; }
  TileStorage query_storage() const;
  TileStorage key_storage() const;
  TileStorage weight_storage() const;
  TileStorage value_storage() const;
  /// True if the logits of a tile, in f32, have their own memory. Otherwise the weights, which then have the same type,
  /// overwrite them.
  bool has_own_logits() const { return result_type != 0; }
  int64_t logit_pitch() const { return scores.columns + 4; }
  /// Returns the bytes of shared memory through which the results of a tile are stored. They overwrite everything
  /// except the factors.
  int64_t result_bytes() const { return int64_t{results.rows} * results.columns * 4; }
  /// Returns the bytes of shared memory that a block uses: the queries, keys, values, weights and logits, or the
  /// results if they are larger, and a factor for each row.
  int64_t shared_bytes() const;

  bool operator==(const AttentionSchedule&) const = default;
};

/// Chooses how attention is computed. Returns false if there are too few queries, or if rows are too long for shared
/// memory.
bool choose_attention(const AttentionKernel& attention, const GridLimits& limits, AttentionSchedule& out);

}  // namespace collet::codegen
