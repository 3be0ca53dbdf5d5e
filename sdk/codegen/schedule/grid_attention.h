// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Schedules attention for the blocks of a grid, in one pass over the keys.

#include <collet/codegen/target.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "sdk/codegen/lower/attention.h"
#include "sdk/codegen/schedule/grid_tiles.h"
#include "sdk/codegen/schedule/grid_warpgroups.h"

namespace collet::codegen {

struct AttentionSchedule;

/// Keys that a mask hides from whole tiles of queries, as those behind the diagonal of a causal mask. Their logits are one
/// constant, and their weights are 0 unless all logits of a query are that small. So a block first leaves out these tiles
/// of keys. If the constant is finite, each warp then looks at its maxima, and the tiles of queries for which the weights
/// may not be 0 are computed again, with all keys.
struct HiddenKeys {
  /// The tiles of keys outside of which keys are hidden from a tile of queries.
  struct Range {
    int64_t first = 0;
    int64_t end = 0;
    bool operator==(const Range&) const = default;
  };
  float logit = 0;          ///< the constant
  std::vector<Range> keys;  ///< by tile of queries of a product
  /// The tiles of each block, so that all blocks take about as long. They are those of the first `period` products, and
  /// are numbered product by product; the blocks compute the same tiles of the next products, and so on.
  std::vector<std::vector<int64_t>> tiles;
  int64_t period = 1;

  int64_t most_tiles() const;                          ///< of a block
  bool is_exact() const { return std::isinf(logit); }  ///< whether hidden keys never have a weight
  bool operator==(const HiddenKeys&) const = default;
};

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
  std::optional<HiddenKeys> hidden;
  int64_t flags = 0;  ///< see flag_bytes

  int rows() const { return consumers * WarpgroupSchedule::kGroupRows; }
  int block_threads() const { return (consumers + 1) * WarpgroupSchedule::kGroupThreads; }
  int64_t tiles(const AttentionSchedule& of) const;
  int64_t query_bytes() const { return int64_t{rows()} * depth * 2; }
  int64_t place_bytes() const { return int64_t{keys} * std::max(depth, columns) * 2; }
  /// Returns the bytes of shared memory: places for keys and values, the queries, what row_bytes() says, chunks of results,
  /// and two barriers for each place.
  int64_t shared_bytes() const {
    return places * (place_bytes() + 16) + query_bytes() + row_bytes() +
           4 * consumers * WarpgroupSchedule::chunk_bytes();
  }
  /// Returns the bytes of the sums of the weights of all rows, of three barriers, and of flags.
  int64_t row_bytes() const { return int64_t{rows()} * 4 + 32 + flag_bytes(); }
  /// Returns the bytes of flags, one for each consumer's warp and each tile of a block: whether its queries are computed
  /// again.
  int64_t flag_bytes() const { return (flags + 15) / 16 * 16; }

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
