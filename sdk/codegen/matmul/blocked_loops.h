// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The loop nest of a BlockedProduct, as a template, so that it is written only once: emit_product generates LLVM IR from it,
/// and write_product source text.

#include "sdk/codegen/base/functions.h"
#include "sdk/codegen/matmul/blocked_product.h"

namespace collet::codegen {

/// A `Machine` defines the types Number, Address and Flag, with the operators of int64_t, char* and bool that this
/// class uses; how to set the fields of a Tile and call functions with it; access to tables, which are members of
/// BlockedProduct; loops and branches; and a word in which the bits of elements are collected.
template <typename Machine>
class BlockedLoops {
 public:
  using Number = typename Machine::Number;
  using Address = typename Machine::Address;
  using Flag = typename Machine::Flag;

  BlockedLoops(const BlockedProduct& call, Machine& machine) : c_(call), m_(machine) {}

  /// Runs jobs [begin, end) of call.jobs(). `worker` selects the scratch memory.
  void jobs(Number begin, Number end, Number worker) {
    m_.put(&Tile::a_step, m_.number(c_.a_depth == 1 ? c_.a_row : c_.a_depth));
    m_.put(&Tile::b_step, m_.number(c_.copies_b ? c_.panel : c_.b_depth));
    m_.put(&Tile::c_step, m_.number(c_.ldc));
    m_.put(&Tile::tail, m_.number(c_.tail));
    if (c_.group_blocks != 0) m_.put(&Tile::total_step, m_.number(c_.total_columns()));
    const uint32_t operands = c_.a_buffers + c_.b_buffers;
    a_scratch_ = m_.buffer(operands + 1) + worker * c_.own_scratch();
    c_base_ = m_.buffer(operands);
    uint32_t next = operands + 2;
    if (c_.row_starts) starts_ = m_.buffer(next++);
    if (c_.checks_parts) is_finite_ = m_.flag(next++);
    if (c_.epilogue) {
      d_base_ = m_.buffer(next);
      m_.put(&Tile::buffers, m_.buffers(next + 1));
    }
    if (c_.jobs() == 1) return job(m_.number(0));
    m_.loop(begin, end, [&](Number number) { job(number); });
  }

 private:
  /// Returns x / y, without a division if y is 1: most products are not cut into parts, and a small product takes no
  /// longer than a few divisions.
  static Number quotient(Number x, int64_t y) { return y == 1 ? x : x / y; }

  void job(Number number) {
    const Number rest = quotient(number, c_.column_parts);
    const Number piece = number - rest * c_.column_parts;
    const Number set = quotient(rest, c_.chunks);
    const Number chunk = rest - set * c_.chunks;
    const int64_t all = c_.tiles * c_.shared;
    batch_ = set * c_.shared;
    if (c_.checks_parts) check_parts();
    first_tile_ = quotient(chunk * all, c_.chunks);
    last_tile_ = quotient((chunk + 1) * all, c_.chunks);
    first_panel_ = quotient(piece * c_.panels, c_.column_parts);
    last_panel_ = quotient((piece + 1) * c_.panels, c_.column_parts);
    m_.when(first_tile_ < last_tile_, [&] {
      m_.when(first_panel_ < last_panel_, [&] {
        a_ = c_.a_packed ? a_scratch_ : m_.buffer(0) + c_.a_offset * c_.element_bytes;
        if (c_.a_packed && c_.a_blocks == 1) pack_rows(m_.number(0));
        b_ = c_.packs_b ? packed_panels(a_scratch_ + c_.a_scratch()) : matrix_of_b();
        depth_blocks();
      });
    });
  }

  Address matrix_of_b() {
    const Number at = m_.element(&BlockedProduct::b_at, batch_);
    const Number matrix = c_.b_packed ? at * c_.b_matrix : at + c_.b_offset;
    return m_.buffer(c_.a_buffers) + matrix * c_.element_bytes;
  }

  /// Packs the rows of a, for one block of the depth.
  void pack_rows(Number block) {
    const int64_t units = divide_up(c_.rows, c_.a_pack_rows);
    const Number first = first_tile_ * c_.tile_rows;
    const Number rows = m_.least(last_tile_ * c_.tile_rows, m_.number(c_.rows)) - first;
    const Number matrix = m_.element(&BlockedProduct::a_at, batch_) * c_.a_blocks + block;
    const Number begin = matrix * units + first / c_.a_pack_rows;
    const int64_t step = (c_.a_pack_rows == 1 ? c_.a_row : c_.a_tile) * c_.element_bytes;
    // Numbers are named, so that the code has one order with each compiler of ours.
    const Number end = begin + (rows + (c_.a_pack_rows - 1)) / c_.a_pack_rows;
    const Address base = a_scratch_ - begin * step;
    m_.pack(c_.pack_a, 0, c_.a_buffers, base, begin, end);
  }

  Address packed_panels(Address scratch) {
    const Number matrix = m_.element(&BlockedProduct::b_at, batch_);
    const Address base = scratch - matrix * (c_.b_matrix * c_.element_bytes);
    if (c_.b_in_panels) {
      const Number panels = matrix * c_.panels;
      const Number end = panels + last_panel_;
      const Number begin = panels + first_panel_;
      m_.pack(c_.pack_b, c_.a_buffers, c_.b_buffers, base, begin, end);
    } else {
      m_.pack(c_.pack_b, c_.a_buffers, c_.b_buffers, base, matrix, matrix + 1);
    }
    return scratch;
  }

  void depth_blocks() {
    const auto count = static_cast<int64_t>(c_.segments.size());
    const int64_t blocks = c_.depth_blocks();
    m_.loop(m_.number(0), m_.number(blocks), [&](Number k) {
      const Number first = k * c_.depth_block;
      Number steps{};  // of the depth, in this block
      if (count != 0) {
        const Number segments = m_.least(m_.number(c_.run_block), m_.number(count) - k * c_.run_block);
        steps = segments * c_.run;
        m_.put(&Tile::depth, m_.number(c_.run));
        m_.put(&Tile::segments, segments);
        m_.put(&Tile::offsets, m_.elements(&BlockedProduct::segments, k * c_.run_block));
        block_ = {k * c_.run_block, segments};
      } else {
        steps = m_.least(m_.number(c_.depth_block), m_.number(c_.depth) - first);
        m_.put(&Tile::depth, steps);
        block_ = {first, steps};
      }
      m_.put(&Tile::accumulate, m_.choose(k == 0, 0, 1));
      const bool own_rows = c_.a_packed && c_.a_blocks > 1;
      if (own_rows) pack_rows(k);
      const Flag is_last = k == blocks - 1;
      if (c_.group_blocks != 0) begin_block(k, is_last);
      const Number a_at = count != 0 || own_rows ? m_.number(0) : first * c_.a_depth;
      m_.loop(first_panel_, last_panel_, [&](Number j) {
        const Number at =
            c_.b_in_panels ? (j * (c_.depth + c_.b_starts) + first) * c_.panel : first * c_.b_depth + j * c_.panel;
        panel_of_b(j, b_ + at * c_.element_bytes, steps);
        if (c_.b_starts != 0) m_.put(&Tile::start, b_ + (j * (c_.depth + 1) + c_.depth) * c_.panel * c_.element_bytes);
        panel(j * c_.panel, a_at, is_last);
      });
    });
  }

  /// Sets the panel of b that tiles use. A last panel of fewer columns is used in place, since it cannot be copied whole.
  void panel_of_b(Number j, Address from, Number steps) {
    panel_ = from;
    m_.put(&Tile::checked_steps, m_.number(0));
    if (!c_.copies_b) return m_.put(&Tile::b, from);
    m_.put(&Tile::ahead, from + c_.panel * c_.element_bytes);
    m_.put(&Tile::ahead_step, m_.number(c_.b_depth));
    const Address copy = a_scratch_ + c_.a_scratch();
    if (c_.last_columns == 0) {
      m_.copy(from, copy, steps);
      return m_.put(&Tile::b, copy);
    }
    const Flag is_whole = j < m_.number(c_.columns / c_.panel);
    m_.when(is_whole, [&] { m_.copy(from, copy, steps); });
    m_.put(&Tile::b, m_.choose(is_whole, copy, from));
    m_.put(&Tile::b_step, m_.choose(is_whole, c_.panel, c_.b_depth));
  }

  /// Computes the tiles of one panel for a block of the depth. After the last block the results are complete.
  void panel(Number column, Number a_at, Flag is_last_block) {
    const Flag last_column = c_.last_columns == 0 ? m_.no() : column > c_.columns - c_.panel;
    m_.put(&Tile::column, column);
    m_.loop(first_tile_, last_tile_, [&](Number n) {
      const Number i = c_.shared == 1 ? n : n % c_.tiles;
      const Number batch = c_.shared == 1 ? batch_ : batch_ + n / c_.tiles;
      const Flag last_row = c_.last_rows == 0 ? m_.no() : i == c_.tiles - 1;
      const Number row = i * c_.tile_rows;
      const Number c = (m_.element(&BlockedProduct::c_at, batch) + row * c_.ldc + column) * c_.element_bytes;
      const Number a =
          c_.a_packed ? (i - first_tile_) * c_.a_tile : m_.element(&BlockedProduct::a_at, batch) + i * c_.a_tile;
      m_.put(&Tile::a, a_ + (a + a_at) * c_.element_bytes);
      if (c_.row_starts)
        m_.put(&Tile::start, starts_ + (m_.element(&BlockedProduct::start_at, batch) + row) * c_.element_bytes);
      m_.put(&Tile::c, c_base_ + c);
      if (c_.epilogue) m_.put(&Tile::d, d_base_ + c);
      m_.put(&Tile::row, row);
      m_.put(&Tile::rows, m_.choose(last_row, c_.last_rows, c_.tile_rows));
      if (!c_.positions.empty())
        m_.put(&Tile::position, m_.elements(&BlockedProduct::positions, batch * static_cast<int64_t>(c_.batch_rank)));
      const Number tile = batch * c_.tiles + i;
      const auto compute = [&] {
        if (!c_.first_step.empty()) {
          compute_part(tile, a_ + (a + a_at) * c_.element_bytes, last_row, last_column);
        } else {
          m_.compute(last_row, last_column);
        }
        if (c_.group_blocks != 0) end_group(n, column, tile, last_column);
      };
      if (c_.first_column.empty()) {
        compute();
      } else {
        m_.when(column < m_.element(&BlockedProduct::end_column, tile),
                [&] { m_.when(m_.element(&BlockedProduct::first_column, tile) < column + c_.panel, compute); });
      }
      if (c_.copies_b) m_.put(&Tile::ahead_step, m_.number(0));  // the first tile has fetched the panel
      m_.finish(is_last_block, last_column);
    });
  }

  /// Computes a tile for the part of this block of the depth in which its rows are not all zero.
  void compute_part(Number tile, Address a, Flag last_row, Flag last_column) {
    const Number first = first_step(tile);
    const Number begin = m_.most(first - block_.first, m_.number(0));
    const Number end = m_.least(end_step(tile) - block_.first, block_.count);
    m_.when(begin < end, [&] {
      const bool segmented = !c_.segments.empty();
      m_.put(&Tile::b, panel_ + begin * ((segmented ? c_.run : 1) * c_.b_depth * c_.element_bytes));
      if (segmented) {
        m_.put(&Tile::segments, end - begin);
        m_.put(&Tile::offsets, m_.elements(&BlockedProduct::segments, block_.first + begin));
      } else {
        m_.put(&Tile::a, a + begin * (c_.a_depth * c_.element_bytes));
        m_.put(&Tile::depth, end - begin);
      }
      m_.put(&Tile::accumulate, m_.choose(first < block_.first, 1, 0));
      m_.compute(last_row, last_column);
    });
  }

  /// The part of the depth that a tile computes. If a check has failed, it is all of the depth.
  Number first_step(Number tile) {
    const Number first = m_.element(&BlockedProduct::first_step, tile);
    return c_.checks_parts ? m_.choose(is_part_, first, m_.number(0)) : first;
  }
  Number end_step(Number tile) {
    const Number end = m_.element(&BlockedProduct::end_step, tile);
    return c_.checks_parts ? m_.choose(is_part_, end, m_.number(c_.depth)) : end;
  }

  /// Finds out whether b is finite and the elements of a outside of the parts of all tiles of a batch are zero.
  void check_parts() {
    m_.clear_bits();
    m_.when(is_finite_, [&] {
      m_.loop(m_.number(0), m_.number(c_.tiles), [&](Number i) {
        const Number tile = batch_ * c_.tiles + i;
        const Number first = m_.element(&BlockedProduct::first_step, tile);
        const Number end = m_.element(&BlockedProduct::end_step, tile);
        const Number last = m_.least((i + 1) * c_.tile_rows, m_.number(c_.rows));
        const Number matrix = m_.element(&BlockedProduct::a_at, batch_) + c_.a_offset;
        m_.loop(i * c_.tile_rows, last, [&](Number row) {
          const Address from = m_.buffer(0) + (matrix + row * c_.a_row) * c_.element_bytes;
          m_.collect_bits(from, m_.number(0), first);
          m_.collect_bits(from, end, m_.number(c_.depth));
        });
      });
    });
    is_part_ = m_.both(is_finite_, m_.has_no_bits());
  }

  /// Sets what tells tiles whether block `k` of the depth ends a group.
  void begin_block(Number k, Flag is_last_block) {
    const Number in_group = k % c_.group_blocks;
    ends_group_ = m_.either(is_last_block, in_group == c_.group_blocks - 1);
    group_begin_ = block_.first - in_group * (c_.segments.empty() ? c_.depth_block : c_.run_block);
    m_.put(&Tile::is_first, m_.choose(k < m_.number(c_.group_blocks), 1, 0));
    m_.put(&Tile::is_last, m_.choose(is_last_block, 1, 0));
  }

  /// After the last block of a group, adds the sums of a tile to its totals.
  void end_group(Number n, Number column, Number tile, Flag last_column) {
    m_.when(ends_group_, [&] {
      const Number row = (n - first_tile_) * c_.tile_rows;
      const Address totals = a_scratch_ + (c_.a_scratch() + c_.b_scratch());
      const Number at = row * c_.total_columns() + (column - first_panel_ * c_.panel);
      m_.put(&Tile::total, totals + at * c_.element_bytes);
      if (c_.first_step.empty()) return m_.fold(last_column);
      // The sums of a tile begin with the block that has its first step.
      const Number first = first_step(tile);
      m_.put(&Tile::is_first, m_.choose(first < group_begin_, 0, 1));
      m_.when(first < block_.first + block_.count, [&] { m_.fold(last_column); });
    });
  }

  /// A block of the depth, in segments if the depth has segments.
  struct Block {
    Number first{}, count{};
  };

  const BlockedProduct& c_;
  Machine& m_;
  Block block_;
  Flag is_finite_{};      ///< all of b is finite
  Flag is_part_{};        ///< tiles compute the parts of the depth in first_step and end_step
  Flag ends_group_{};     ///< that block is the last one of a group
  Number group_begin_{};  ///< where its group begins, like Block::first
  Address panel_{};       ///< the panel of b, from the block's first step on
  Number batch_{}, first_tile_{}, last_tile_{}, first_panel_{}, last_panel_{};
  Address a_scratch_{}, a_{}, b_{}, c_base_{}, d_base_{}, starts_{};
};

}  // namespace collet::codegen
