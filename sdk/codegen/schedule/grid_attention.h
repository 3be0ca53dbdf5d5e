// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How the blocks of a grid compute attention in one pass over the keys.

#include <collet/codegen/target.h>

#include <cstdint>

#include "sdk/codegen/lower/attention.h"
#include "sdk/codegen/schedule/grid_tiles.h"

namespace collet::codegen {

/// Each block computes the results of some queries. It takes the keys a tile at a time, and keeps the maximum of each row's logits, the sum
/// of the exponentials and the sums of the results so far. If a tile has a larger maximum, both sums are scaled (M. Milakov and N.
/// Gimelshein, "Online normalizer calculation for softmax", 2018; T. Dao et al., "FlashAttention", 2022).
struct AttentionSchedule {
  TileOperand query;  ///< its loops are the rows
  TileOperand key;    ///< its loop is that of the keys
  TileOperand weight;
  TileOperand value;  ///< its loops are the columns of the result
  uint64_t batch = 0;
  int64_t batch_count = 1;
  uint32_t score_type = 0;   ///< that matrix instructions multiply in the first product, or 0; see TileSchedule
  uint32_t result_type = 0;  ///< in the second
  TileShape scores;          ///< rows x keys of a tile
  TileShape results;         ///< rows x columns
  int score_steps = 0;       ///< of the depth of the first product
  ExprId logit = kNoExpr;
  ExprId exponential = kNoExpr;
  /// Keys and values have memory of their own: copies of the next keys run while the results of a tile are multiplied, and those of the
  /// values while its scores are. Otherwise the values take the memory of the keys.
  bool copies_ahead = false;

  int block_threads() const { return scores.threads(score_type); }
  int64_t row_tiles() const { return (query.count + scores.rows - 1) / scores.rows; }
  int64_t tiles() const { return row_tiles() * batch_count; }
  int64_t key_tiles() const { return (key.count + scores.columns - 1) / scores.columns; }
  TileStorage query_storage() const;
  TileStorage key_storage() const;
  TileStorage weight_storage() const;
  TileStorage value_storage() const;
  /// Whether the logits of a tile, in f32, have memory of their own. Otherwise weights of the same type take their place.
  bool has_own_logits() const { return result_type != 0; }
  int64_t logit_pitch() const { return scores.columns + 4; }
  /// Bytes of the results of a tile on their way to memory. They take the place of all but the factors.
  int64_t result_bytes() const { return int64_t{results.rows} * results.columns * 4; }
  /// Bytes of shared memory that a block uses: the queries, the keys, the values, the weights, and the logits, or the results; and a
  /// factor of each row.
  int64_t shared_bytes() const;

  bool operator==(const AttentionSchedule&) const = default;
};

/// Chooses how attention is computed. Returns false if it has too few queries, or rows that are too long for shared memory.
bool choose_attention(const AttentionKernel& attention, const GridLimits& limits, AttentionSchedule& out);

}  // namespace collet::codegen
