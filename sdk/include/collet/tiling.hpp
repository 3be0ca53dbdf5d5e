/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_TILING_HPP
#define COLLET_TILING_HPP

/** \file
 * Cuts an op, or a group of ops (a fusion, a pattern, ops of a vendor's own choice), into pieces whose arrays fit into a
 * scratchpad:
 *
 *     collet::tiling::Limits limits;
 *     limits.scratchpad_bytes = 1 << 20;
 *     limits.rows = limits.columns = limits.depth = 16;
 *     const collet::tiling::Tiling tiles(collet::tiling::group_of_op(p, 0), limits);
 *     if (!tiles.complaint().empty()) report(tiles.complaint());
 *     for (const collet::tiling::Piece& piece : tiles.pieces()) {
 *       for (const collet::tiling::Place& place : piece.operands) use(place.index, place.begins, place.sizes);
 *     }
 *
 * Every dimension is cut that may be: rows, columns and batches of products, output features, positions (with the halo
 * that the window needs) and batches of convolutions, the sum of one product, convolution or reduce, kept dimensions of
 * reductions, all dimensions of element-wise ops. A dimension over which a softmax sums is not cut, since its elements are read
 * again after the sum. What an unknown op reads or writes is not cut.
 *
 * The sizes are those that move the fewest bytes between memory and scratchpad. Header only; nothing of it is global, so
 * that threads may use different objects at the same time, and one object if they only read it.
 */

#include <cmath>
#include <limits>

#include "tiling_axes.hpp"
#include "tiling_program.hpp"

namespace collet {
namespace tiling {

/** What a device can hold, and the sizes that it likes. */
struct Limits {
  uint64_t scratchpad_bytes = 0; /**< for operands, accumulators and results of a piece together */
  uint64_t operand_bytes = 0;    /**< for operands alone; 0: only the sum is limited */
  uint64_t result_bytes = 0;     /**< for accumulators and results alone; 0: only the sum is limited */
  uint64_t alignment = 1;        /**< of each array in the scratchpad, in bytes */
  /** 2: the scratchpad holds the operands of a piece and of the next one (double buffering). Operands that stay for eight pieces or
   * more have one copy all the same: waiting for their load costs less than larger pieces save. See Tiling::copies. */
  uint32_t operand_copies = 1;
  uint32_t result_copies = 1; /**< 2: the scratchpad also holds the results of the previous piece */
  int64_t rows = 1;           /**< of a product: pieces are multiples of it along its rows, but for the last one */
  int64_t columns = 1;        /**< the same for columns, and output features of convolutions */
  int64_t depth = 1;          /**< the same for the dimension of the sum, and input features */
  int64_t lanes = 1;          /**< without a product: the same for the last dimension of the first result */
  uint32_t rank = 0;          /**< most dimensions of more than one element that an array of a piece has; 0: any */
  bool cuts_sums = true;      /**< false: the device keeps no accumulator from piece to piece */
  bool keeps_intermediates = false;         /**< true: values between the ops of a group need memory, too */
  uint64_t most_pieces = UINT64_C(1) << 20; /**< more of them are an error */
};

/** Where an array of a piece lies in an array of the group, both row-major. Counts elements. */
struct Place {
  uint32_t index = 0;  /**< number of the input or output of the group */
  uint64_t offset = 0; /**< from the start of the whole array to the first element */
  std::vector<int64_t> begins, sizes, strides;
  uint64_t bytes = 0; /**< of the piece's array, dense */
};

/** What a piece computes. */
enum class Stage {
  kWhole,   /**< the group */
  kPartial, /**< a part of the main op's sum, with the ops before it; it is combined with the accumulator */
  kEpilogue /**< the rest of the group; the accumulator is the last operand */
};

/** A piece. Its op has the operands of `operands`, in their order. */
struct Piece {
  Stage stage = Stage::kWhole;
  bool first = true; /**< of kPartial: the accumulator is set, else combined with the result */
  bool last = true;  /**< of kPartial: it is complete. If there are results, they are the accumulator */
  std::vector<Place> operands, results;
  uint32_t shape = 0; /**< pieces of one shape have equal programs */
};

/** The pieces of a group. */
class Tiling {
 public:
  /** Cuts `group`, whose program must outlive this object. If that cannot be done, complaint() says why. */
  Tiling(Group group, const Limits& limits)
      : group_(std::move(group)), limits_(limits), axes_(group_, limits.cuts_sums), p_(group_.program) {
    if (limits.scratchpad_bytes == 0) {
      complaint_ = "the scratchpad has no bytes";
      return;
    }
    if (!check_ops() || is_empty()) return;
    split_stages();
    set_multiples();
    if (!choose_sizes()) return;
    make_pieces();
  }
  Tiling(const Tiling&) = delete;
  Tiling& operator=(const Tiling&) = delete;

  /** Returns why the group cannot be cut; empty if it was. */
  const std::string& complaint() const { return complaint_; }
  /** Returns the pieces, in an order in which they can be computed. None if no result has an element. */
  const std::vector<Piece>& pieces() const { return pieces_; }
  /** Returns the group. */
  const Group& group() const { return group_; }
  /** Returns how the results of partial pieces are combined: COLLET_COMBINE_*; COLLET_COMBINE_OTHER if no sum is cut. */
  uint32_t combine() const { return combine_; }
  /** Returns the element type of the accumulator of partial pieces. */
  uint32_t accumulator_type() const { return accumulator_; }
  /** Returns how many programs pieces have; Piece::shape is less. */
  uint32_t shape_count() const { return static_cast<uint32_t>(shapes_.size()); }
  /** Returns the most bytes that a piece needs, with copies and alignment. */
  uint64_t scratchpad_bytes() const { return needed_bytes_; }
  /** Returns the bytes that move between memory and scratchpad, if an operand stays for the next piece where its place is
   * the same. */
  uint64_t moved_bytes() const { return moved_bytes_; }
  /** Returns how many copies of input `i` of the group the scratchpad holds at a time: 1, or Limits::operand_copies. */
  uint32_t copies(uint32_t i) const { return copies_of(group_.inputs[i], sizes_, order(inner_)); }
  /** Returns a number of bytes that no order of pieces can go below on this scratchpad.
   *
   * For a product of M x N x K whose operands have elements of a and b bytes and whose accumulator has c bytes:
   * max(operands, 2 * M * N * K * sqrt(a * b * c / S) - 2 * S - M * N * c) + results. While 2 * S bytes are loaded or
   * accumulators of so many bytes begun, at most 3 * S are at hand; by the inequality of Loomis and Whitney these serve at
   * most S^1.5 / sqrt(a * b * c) multiplications. For all other groups, the bytes of operands and results. */
  double least_bytes() const { return least_bytes_; }

  /** Returns the program of pieces of shape `shape`: its entry has one op, with the operands and results of the piece.
   * For a whole piece that is the op of the group, of smaller arrays; else a fusion, or the op itself if it is the only
   * one. The program is the block, which is aligned to 8 bytes. */
  std::vector<uint64_t> program(uint32_t shape) const {
    const Shape& what = shapes_[shape];
    const std::vector<Range> ranges = axes_.ranges(what.loops);
    return detail::PieceWriter(p_, axes_, ranges).write(bodies_[static_cast<size_t>(what.stage)]);
  }

 private:
  struct Shape {
    Stage stage;
    std::vector<Range> loops;
  };
  /** An array that is moved. */
  struct Moved {
    uint32_t value;
    bool in_partial, is_result;
  };

  uint64_t element_bytes(uint32_t value) const { return collet_type_bytes(collet_value_type(p_, value)->element); }
  std::string name_of(uint32_t id) const {
    const collet_op* op = collet_op_at(p_, id);
    return std::string(collet_op_name(op->opcode)) + " " + std::string(collet_string(p_, op->name), op->name.count);
  }

  bool check_ops() {
    for (const uint32_t id : group_.ops) {
      const uint32_t opcode = collet_op_at(p_, id)->opcode;
      if ((collet_op_traits(opcode) & COLLET_OP_SIDE_EFFECT) != 0) {
        complaint_ = name_of(id) + " has an effect, so that it cannot be done piece by piece";
      }
    }
    for (const uint32_t value : all_values()) {
      if (collet_value_type(p_, value)->layout != 0) complaint_ = "an array has a layout";
    }
    if (group_.outputs.empty()) complaint_ = "the group has no results";
    return complaint_.empty();
  }

  std::vector<uint32_t> all_values() const {
    std::vector<uint32_t> out = group_.inputs;
    for (const uint32_t id : group_.ops) {
      const collet_op* op = collet_op_at(p_, id);
      for (uint32_t i = 0; i < op->results.count; ++i) out.push_back(op->results.first + i);
    }
    return out;
  }

  bool is_empty() const {
    return std::all_of(group_.outputs.begin(), group_.outputs.end(),
                       [&](uint32_t value) { return collet_value_type(p_, value)->elements == 0; });
  }

  /** Finds the ops of each stage. */
  void split_stages() {
    detail::PieceBody& whole = body(Stage::kWhole);
    whole.op = group_.op;
    whole.ops = group_.ops;
    whole.inputs = group_.inputs;
    whole.outputs = group_.outputs;
    for (const uint32_t id : group_.ops) {
      const uint32_t opcode = collet_op_at(p_, id)->opcode;
      if (opcode == COLLET_OP_DOT || opcode == COLLET_OP_CONVOLUTION) product_ = id;
    }
    if (axes_.main() == COLLET_NONE) return;
    const collet_op* main = collet_op_at(p_, axes_.main());
    if (main->opcode == COLLET_OP_DOT || main->opcode == COLLET_OP_CONVOLUTION) product_ = axes_.main();
    const uint32_t value = main->results.first;
    main_value_ = value;
    accumulator_ = collet_value_type(p_, value)->element;
    const bool floats = collet_type_kind(accumulator_) == COLLET_KIND_FLOAT;
    if (floats && collet_type_bytes(accumulator_) < 4) accumulator_ = COLLET_TYPE_F32;
    const auto fill = [&](Stage stage, const std::vector<uint32_t>& ops) {
      detail::PieceBody& out = body(stage);
      out.ops = ops;
      out.main = value;
      out.accumulator = accumulator_;
      std::set<uint32_t> seen;
      for (const uint32_t id : ops) {
        const collet_op* op = collet_op_at(p_, id);
        for (uint32_t i = 0; i < op->operands.count; ++i) seen.insert(collet_operand(p_, op, i));
      }
      if (stage == Stage::kEpilogue) seen.insert(group_.outputs.begin(), group_.outputs.end());
      for (const uint32_t input : distinct_inputs()) {
        if (seen.count(input) != 0) out.inputs.push_back(input);
      }
    };
    fill(Stage::kPartial, axes_.needed({value}));
    body(Stage::kPartial).outputs = {value};
    fill(Stage::kEpilogue, axes_.needed(group_.outputs, value));
    body(Stage::kEpilogue).outputs = group_.outputs;
    body(Stage::kEpilogue).finishes = true;
  }

  detail::PieceBody& body(Stage stage) { return bodies_[static_cast<size_t>(stage)]; }
  const detail::PieceBody& body(Stage stage) const { return bodies_[static_cast<size_t>(stage)]; }

  std::vector<uint32_t> distinct_inputs() const {
    std::vector<uint32_t> out;
    for (const uint32_t value : group_.inputs) {
      if (std::find(out.begin(), out.end(), value) == out.end()) out.push_back(value);
    }
    return out;
  }

  /** True if the main op's value is the only result, so that its accumulator is the result. A narrow float is none: it is
   * rounded at the end. */
  bool accumulates_result() const {
    return body(Stage::kEpilogue).ops.empty() && accumulator_ == collet_value_type(p_, main_value_)->element;
  }

  void set_multiples() {
    const auto set = [&](uint32_t value, int64_t d, int64_t multiple) {
      detail::Axis& axis = axes_.all()[axes_.at(value, static_cast<size_t>(d))];
      axis.multiple = std::max(axis.multiple, std::max<int64_t>(multiple, 1));
    };
    if (product_ == COLLET_NONE) {
      const uint32_t value = group_.outputs[0];
      if (axes_.rank(value) != 0) set(value, axes_.rank(value) - 1, limits_.lanes);
      return;
    }
    const collet_op* op = collet_op_at(p_, product_);
    const uint32_t lhs = collet_operand(p_, op, 0), rhs = collet_operand(p_, op, 1), to = op->results.first;
    if (op->opcode == COLLET_OP_CONVOLUTION) {
      const auto a = detail::attributes_of<collet_convolution_attrs>(p_, op);
      set(to, a.labels.output_feature, limits_.columns);
      set(lhs, a.labels.input_feature, a.feature_groups > 1 ? 1 : limits_.depth);
      const collet_range spatial = a.labels.output_spatial;
      if (spatial.count != 0) set(to, collet_integers(p_, spatial)[spatial.count - 1], limits_.rows);
      return;
    }
    const auto a = detail::attributes_of<collet_dot_attrs>(p_, op);
    const uint32_t left = axes_.rank(lhs) - a.lhs_batch.count - a.lhs_contracting.count;
    const uint32_t right = axes_.rank(rhs) - a.rhs_batch.count - a.rhs_contracting.count;
    if (left != 0) set(to, a.lhs_batch.count + left - 1, limits_.rows);
    if (right != 0) set(to, axes_.rank(to) - 1, limits_.columns);
    if (a.lhs_contracting.count != 0) {
      set(lhs, collet_integers(p_, a.lhs_contracting)[a.lhs_contracting.count - 1], limits_.depth);
    }
  }

  /** \name Sizes
   * @{ */
  /** Returns the bytes of a part of an array, without the gap behind it. */
  uint64_t part_bytes(uint32_t value, const std::vector<int64_t>& sizes, uint64_t width) const {
    uint64_t bytes = width;
    for (uint32_t d = 0; d < axes_.rank(value); ++d) {
      bytes *= static_cast<uint64_t>(axes_.size(axes_.at(value, d), sizes));
    }
    return bytes;
  }
  uint64_t bytes_of(uint32_t value, const std::vector<int64_t>& sizes, uint64_t width) const {
    return (part_bytes(value, sizes, width) + limits_.alignment - 1) / limits_.alignment * limits_.alignment;
  }

  bool is_cut(uint32_t a, const std::vector<int64_t>& sizes) const { return sizes[a] < axes_.all()[a].extent; }
  bool depends(uint32_t value, uint32_t loop) const {
    for (uint32_t d = 0; d < axes_.rank(value); ++d) {
      if (axes_.root(axes_.at(value, d)) == loop) return true;
    }
    return false;
  }
  bool cuts_depth(const std::vector<int64_t>& sizes) const {
    for (const uint32_t a : loops_) {
      if (axes_.all()[a].depth && is_cut(a, sizes)) return true;
    }
    return false;
  }

  /** Returns how many copies of an operand the scratchpad holds at a time, if pieces are computed in the order of `loops`. */
  uint32_t copies_of(uint32_t value, const std::vector<int64_t>& sizes, const std::vector<uint32_t>& loops) const {
    constexpr double few = 8;  // an operand that stays for fewer pieces is loaded ahead
    double stays = 1;
    for (size_t i = loops.size(); i-- > 0;) {
      if (!is_cut(loops[i], sizes)) continue;
      if (depends(value, loops[i])) return stays < few ? std::max<uint32_t>(limits_.operand_copies, 1) : 1;
      stays *= static_cast<double>(trips(loops[i], sizes));
    }
    return 1;
  }

  /** Returns the bytes that a piece needs, where the loop `innermost` is; UINT64_MAX if a limit other than that of the
   * scratchpad is exceeded. */
  uint64_t needed(const std::vector<int64_t>& sizes, uint32_t innermost) const {
    const std::vector<uint32_t> order_of_loops = order(innermost);
    const auto varies = [&](uint32_t value) {
      return std::any_of(loops_.begin(), loops_.end(),
                         [&](uint32_t a) { return is_cut(a, sizes) && depends(value, a); });
    };
    if (limits_.rank != 0) {
      for (const Moved& one : moved_) {
        uint32_t rank = 0;
        for (uint32_t d = 0; d < axes_.rank(one.value); ++d) rank += axes_.size(axes_.at(one.value, d), sizes) > 1;
        if (rank > limits_.rank) return UINT64_MAX;
      }
    }
    uint64_t operands = 0, results = 0;
    const bool depth = cuts_depth(sizes);
    for (const Moved& one : moved_) {
      const uint64_t bytes = bytes_of(one.value, sizes, element_bytes(one.value));
      if (!one.is_result) {
        operands += bytes * copies_of(one.value, sizes, order_of_loops);
      } else if (!(depth && accumulates_result())) {
        results += bytes * (varies(one.value) ? std::max<uint32_t>(limits_.result_copies, 1) : 1);
      }
    }
    if (depth) {
      const uint64_t bytes = bytes_of(main_value_, sizes, collet_type_bytes(accumulator_));
      results += bytes * (accumulates_result() ? std::max<uint32_t>(limits_.result_copies, 1) : 1);
    } else if (product_ != COLLET_NONE) {
      const uint32_t value = collet_op_at(p_, product_)->results.first;
      const bool is_output = std::find(group_.outputs.begin(), group_.outputs.end(), value) != group_.outputs.end();
      if (!is_output) results += bytes_of(value, sizes, element_bytes(value));
    }
    if (limits_.operand_bytes != 0 && operands > limits_.operand_bytes) return UINT64_MAX;
    if (limits_.result_bytes != 0 && results > limits_.result_bytes) return UINT64_MAX;
    return operands + results + (limits_.keeps_intermediates ? intermediates(sizes) : 0);
  }

  /** Returns the most bytes that values between ops need at a time. Broadcasts and constants need none. */
  uint64_t intermediates(const std::vector<int64_t>& sizes) const {
    std::map<uint32_t, size_t> last;
    for (size_t i = 0; i < group_.ops.size(); ++i) {
      const collet_op* op = collet_op_at(p_, group_.ops[i]);
      for (uint32_t k = 0; k < op->operands.count; ++k) last[collet_operand(p_, op, k)] = i;
    }
    std::set<uint32_t> counted(group_.outputs.begin(), group_.outputs.end());
    if (product_ != COLLET_NONE) counted.insert(collet_op_at(p_, product_)->results.first);
    uint64_t now = 0, most = 0;
    std::multimap<size_t, uint64_t> ends;
    for (size_t i = 0; i < group_.ops.size(); ++i) {
      const collet_op* op = collet_op_at(p_, group_.ops[i]);
      for (uint32_t k = 0; k < op->results.count; ++k) {
        const uint32_t value = op->results.first + k;
        if (op->opcode == COLLET_OP_BROADCAST || op->opcode == COLLET_OP_CONSTANT || counted.count(value) != 0)
          continue;
        const uint64_t bytes = bytes_of(value, sizes, element_bytes(value));
        now += bytes;
        ends.emplace(last.count(value) != 0 ? last[value] : i, bytes);
      }
      most = std::max(most, now);
      while (!ends.empty() && ends.begin()->first <= i) {
        now -= ends.begin()->second;
        ends.erase(ends.begin());
      }
    }
    return most;
  }

  int64_t trips(uint32_t a, const std::vector<int64_t>& sizes) const {
    return (axes_.all()[a].extent + sizes[a] - 1) / sizes[a];
  }

  /** Returns the loops from the outermost to the innermost. Those of sums are innermost, so that one accumulator is enough. */
  std::vector<uint32_t> order(uint32_t innermost) const {
    std::vector<uint32_t> out;
    for (const uint32_t a : loops_) {
      if (a != innermost && !axes_.all()[a].depth) out.push_back(a);
    }
    if (innermost != detail::no_axis) out.push_back(innermost);
    for (const uint32_t a : loops_) {
      if (axes_.all()[a].depth) out.push_back(a);
    }
    return out;
  }

  /** Returns the bytes moved, nearly: halos at the edges are counted as if they were inside. */
  double traffic(const std::vector<int64_t>& sizes, uint32_t innermost) const {
    const std::vector<uint32_t> loops = order(innermost);
    const bool depth = cuts_depth(sizes);
    double all = 0, count = 1;
    for (const uint32_t a : loops) count *= static_cast<double>(trips(a, sizes));
    for (const Moved& one : moved_) {
      double bytes = static_cast<double>(element_bytes(one.value));
      std::set<uint32_t> mine;
      for (uint32_t d = 0; d < axes_.rank(one.value); ++d) {
        const uint32_t a = axes_.at(one.value, d), root = axes_.root(a);
        const auto extent = static_cast<double>(axes_.all()[a].extent);
        if (root == detail::no_axis || root == a) {
          bytes *= extent;
        } else {
          const auto size = static_cast<double>(axes_.size(a, sizes));
          const auto times = static_cast<double>(trips(root, sizes));
          bytes *= times > 1 ? size * times : std::min(size, extent);
        }
        if (root != detail::no_axis) mine.insert(root);
      }
      double times = 1, pending = 1;
      bool turns = true;
      for (const uint32_t a : loops) {
        if (depth && !one.in_partial && axes_.all()[a].depth) break;
        if (trips(a, sizes) == 1) continue;
        if (mine.count(a) != 0) {
          turns &= !axes_.all()[a].depth;
          times *= pending, pending = 1;
        } else {
          pending *= static_cast<double>(trips(a, sizes));
        }
      }
      all += bytes * times;
      // The loops turn round: what was read last is there when the next pass begins.
      const uint64_t piece = part_bytes(one.value, sizes, element_bytes(one.value));
      if (turns) all -= (times - 1) * static_cast<double>(piece);
    }
    return all + count;  // of equal traffic, fewer pieces are better
  }

  /** Returns the sizes to try for an axis: those of pieces of nearly equal size. */
  std::vector<int64_t> candidates(uint32_t a) const {
    const detail::Axis& axis = axes_.all()[a];
    std::vector<int64_t> out;
    const auto add = [&](int64_t size) {
      size = std::min((size + axis.multiple - 1) / axis.multiple * axis.multiple, axis.extent);
      if (out.empty() || size < out.back()) out.push_back(size);
    };
    for (int64_t parts = 1; parts < axis.extent; parts = std::max(parts + 1, parts + parts / 8)) {
      add((axis.extent + parts - 1) / parts);
    }
    add(1);
    return out;
  }

  bool choose_sizes() {
    const std::vector<detail::Axis>& all = axes_.all();
    // The natural order of loops is that of the first result.
    std::vector<uint32_t> natural;
    for (uint32_t d = 0; d < axes_.rank(group_.outputs[0]); ++d) natural.push_back(axes_.at(group_.outputs[0], d));
    for (uint32_t a = 0; a < all.size(); ++a) natural.push_back(a);
    for (const uint32_t a : natural) {
      if (all[a].is_loop() && std::find(loops_.begin(), loops_.end(), a) == loops_.end()) loops_.push_back(a);
    }
    for (const uint32_t a : loops_) {
      if (!all[a].depth) innermost_.push_back(a);
    }
    if (innermost_.empty()) innermost_.push_back(detail::no_axis);
    const std::vector<uint32_t>& partial = body(Stage::kPartial).inputs;
    for (const uint32_t value : distinct_inputs()) {
      moved_.push_back({value, std::find(partial.begin(), partial.end(), value) != partial.end(), false});
    }
    for (const uint32_t value : group_.outputs) moved_.push_back({value, false, true});

    sizes_.assign(all.size(), 1);
    std::vector<int64_t> full(all.size(), 1);
    for (const uint32_t a : loops_) {
      sizes_[a] = std::min(all[a].multiple, all[a].extent);
      full[a] = all[a].extent;
    }
    find_bound(full);
    double best = std::numeric_limits<double>::infinity();
    inner_ = innermost_[0];
    for (const uint32_t a : innermost_) {
      if (needed(sizes_, a) > limits_.scratchpad_bytes) continue;
      const double bytes = traffic(sizes_, a);
      if (bytes < best) best = bytes, inner_ = a;
    }
    if (std::isinf(best)) return refuse();
    std::map<uint32_t, std::vector<int64_t>> tries;
    for (const uint32_t a : loops_) tries[a] = candidates(a);
    // Two axes at a time are set to the best sizes that fit, until nothing becomes better.
    for (bool better = true; better;) {
      better = false;
      for (size_t i = 0; i < loops_.size(); ++i) {
        for (size_t j = i; j < loops_.size(); ++j) {
          if (i == j && loops_.size() > 1) continue;
          std::vector<int64_t> now = sizes_;
          for (const uint32_t inner : innermost_) {
            for (const int64_t x : tries[loops_[i]]) {
              now[loops_[i]] = x;
              for (const int64_t y : tries[loops_[j]]) {
                now[loops_[j]] = i == j ? x : y;
                if (needed(now, inner) > limits_.scratchpad_bytes) continue;
                const double bytes = traffic(now, inner);
                if (bytes < best) best = bytes, sizes_ = now, inner_ = inner, better = true;
                // Smaller sizes of j only move more.
                break;
              }
            }
          }
        }
      }
    }
    needed_bytes_ = needed(sizes_, inner_);
    return true;
  }

  bool refuse() {
    uint32_t largest = moved_[0].value;
    for (const Moved& one : moved_) {
      if (bytes_of(one.value, sizes_, element_bytes(one.value)) > bytes_of(largest, sizes_, element_bytes(largest))) {
        largest = one.value;
      }
    }
    std::string dims;
    for (uint32_t d = 0; d < axes_.rank(largest); ++d) {
      dims += (d == 0 ? "" : ",") + std::to_string(axes_.size(axes_.at(largest, d), sizes_));
    }
    const uint64_t bytes = needed(sizes_, inner_);
    const std::string limit = bytes == UINT64_MAX ? "more than its limits of operands, results or rank allow"
                                                  : std::to_string(bytes) + " bytes of the scratchpad's " +
                                                        std::to_string(limits_.scratchpad_bytes);
    complaint_ = (group_.op != COLLET_NONE ? name_of(group_.op) : "the group") +
                 " cannot be cut further: the smallest piece needs " + limit + "; its largest array is " +
                 collet_type_name(collet_value_type(p_, largest)->element) + "[" + dims + "]";
    return false;
  }

  /** True if each element of `value` is made of one element of an input of at least `*width` bytes. */
  bool is_input(uint32_t value, uint64_t* width) const {
    for (;;) {
      const uint32_t id = axes_.maker(value);
      *width = std::min(*width, element_bytes(value));
      if (id == COLLET_NONE) return true;
      const collet_op* op = collet_op_at(p_, id);
      if (op->operands.count != 1) return false;
      if (op->opcode != COLLET_OP_CONVERT && op->opcode != COLLET_OP_TRANSPOSE && op->opcode != COLLET_OP_RESHAPE) {
        return false;
      }
      value = collet_operand(p_, op, 0);
    }
  }

  void find_bound(const std::vector<int64_t>& full) {
    double operands = 0, results = 0, product = 0;
    for (const Moved& one : moved_) {
      double bytes = static_cast<double>(element_bytes(one.value));
      for (uint32_t d = 0; d < axes_.rank(one.value); ++d) {
        bytes *= static_cast<double>(axes_.size(axes_.at(one.value, d), full));
      }
      (one.is_result ? results : operands) += bytes;
    }
    if (product_ != COLLET_NONE && collet_op_at(p_, product_)->opcode == COLLET_OP_DOT) {
      const collet_op* op = collet_op_at(p_, product_);
      const auto a = detail::attributes_of<collet_dot_attrs>(p_, op);
      const uint32_t lhs = collet_operand(p_, op, 0);
      uint64_t left = 16, right = 16;
      double work = static_cast<double>(collet_value_type(p_, op->results.first)->elements);
      for (uint32_t i = 0; i < a.lhs_contracting.count; ++i) {
        const auto d = static_cast<size_t>(collet_integers(p_, a.lhs_contracting)[i]);
        work *= static_cast<double>(axes_.all()[axes_.at(lhs, d)].extent);
      }
      if (is_input(lhs, &left) && is_input(collet_operand(p_, op, 1), &right)) {
        const auto s = static_cast<double>(limits_.scratchpad_bytes);
        const double widths = static_cast<double>(left * right * element_bytes(op->results.first));
        const uint32_t value = op->results.first;
        const auto accumulators = static_cast<double>(collet_value_type(p_, value)->elements * element_bytes(value));
        product = 2 * work * std::sqrt(widths / s) - 2 * s - accumulators;
      }
    }
    least_bytes_ = std::max(operands, product) + results;
  }
  /** @} */

  /** \name Pieces
   * @{ */
  Place place_of(uint32_t value, uint32_t index, const std::vector<Range>& ranges) const {
    Place out;
    out.index = index;
    const uint32_t rank = axes_.rank(value);
    out.begins.resize(rank), out.sizes.resize(rank), out.strides.resize(rank);
    int64_t stride = 1;
    out.bytes = element_bytes(value);
    for (uint32_t d = rank; d-- > 0;) {
      const uint32_t a = axes_.at(value, d);
      out.begins[d] = ranges[a].begin;
      out.sizes[d] = ranges[a].size;
      out.strides[d] = stride;
      out.offset += static_cast<uint64_t>(stride * ranges[a].begin);
      out.bytes *= static_cast<uint64_t>(ranges[a].size);
      stride *= axes_.all()[a].extent;
    }
    return out;
  }

  /** Returns the number of the shape of a piece. */
  uint32_t shape_of(Stage stage, const std::vector<Range>& loops, const std::vector<Range>& ranges) {
    std::vector<int64_t> key{static_cast<int64_t>(stage)};
    for (size_t a = 0; a < ranges.size(); ++a) {
      key.push_back(ranges[a].size);
      const detail::Axis& axis = axes_.all()[a];
      if (axis.whole || axis.parent == detail::no_axis) continue;
      const Range read = axis.window.read(ranges[axis.parent]);  // the padding at both edges
      key.push_back(ranges[a].begin - read.begin);
    }
    for (const uint32_t a : constant_axes_) key.push_back(ranges[a].begin);
    const auto found = shape_numbers_.emplace(key, static_cast<uint32_t>(shapes_.size()));
    if (found.second) shapes_.push_back({stage, loops});
    return found.first->second;
  }

  /** Finds the axes along which a constant inside of the group is cut: its pieces differ by their contents. */
  void find_constants() {
    for (const uint32_t id : group_.ops) {
      const collet_op* op = collet_op_at(p_, id);
      if (op->opcode != COLLET_OP_CONSTANT) continue;
      for (uint32_t d = 0; d < axes_.rank(op->results.first); ++d) {
        const uint32_t a = axes_.at(op->results.first, d);
        if (axes_.root(a) != detail::no_axis) constant_axes_.push_back(a);
      }
    }
  }

  void add_piece(Stage stage, bool first, bool last, const std::vector<Range>& loops) {
    const std::vector<Range> ranges = axes_.ranges(loops);
    const detail::PieceBody& what = body(stage);
    Piece piece;
    piece.stage = stage;
    piece.first = first;
    piece.last = last;
    piece.shape = shape_of(stage, loops, ranges);
    for (size_t i = 0; i < what.inputs.size(); ++i) {
      const uint32_t value = what.inputs[i];
      const auto at = std::find(group_.inputs.begin(), group_.inputs.end(), value) - group_.inputs.begin();
      const bool whole = stage == Stage::kWhole;
      const auto index = whole ? static_cast<uint32_t>(i) : static_cast<uint32_t>(at);
      piece.operands.push_back(place_of(value, index, ranges));
      if (whole && static_cast<size_t>(at) != i) continue;  // the same array again
      const Place& place = piece.operands.back();
      auto& before = before_[static_cast<uint32_t>(at)];
      if (before.first == place.begins && before.second == place.sizes) continue;
      before = {place.begins, place.sizes};
      moved_bytes_ += place.bytes;
    }
    if (stage != Stage::kPartial || (last && accumulates_result())) {
      for (uint32_t i = 0; i < group_.outputs.size(); ++i) {
        piece.results.push_back(place_of(group_.outputs[i], i, ranges));
        moved_bytes_ += piece.results.back().bytes;
      }
    }
    pieces_.push_back(std::move(piece));
  }

  void make_pieces() {
    find_constants();
    const std::vector<uint32_t> loops = order(inner_);
    const bool depth = cuts_depth(sizes_);
    double count = 1;
    for (const uint32_t a : loops) count *= static_cast<double>(trips(a, sizes_));
    if (count > static_cast<double>(limits_.most_pieces)) {
      complaint_ = "the group needs more than " + std::to_string(limits_.most_pieces) + " pieces";
      return;
    }
    if (depth) {
      const collet_op* main = collet_op_at(p_, axes_.main());
      combine_ = main->opcode == COLLET_OP_REDUCE ? collet_region_at(p_, main->regions.first)->combine
                                                  : uint32_t{COLLET_COMBINE_ADD};
    }
    std::vector<Range> ranges(axes_.all().size());
    backwards_.assign(axes_.all().size(), false);
    walk(loops, 0, depth, true, true, &ranges);
  }

  /** Makes the pieces of loop `i` and those inside of it. `first` and `last` are about the loops of the sum. Other loops turn
   * round, forwards and backwards, so that one index changes at a time, and operands that do not depend on it stay. Sums keep
   * one order, so that equal numbers are rounded alike everywhere. */
  void walk(const std::vector<uint32_t>& loops, size_t i, bool depth, bool first, bool last,
            std::vector<Range>* ranges) {
    const bool in_sum = i < loops.size() && axes_.all()[loops[i]].depth;
    const bool begins = depth && in_sum && (i == 0 || !axes_.all()[loops[i - 1]].depth);
    if (i == loops.size()) {
      add_piece(depth ? Stage::kPartial : Stage::kWhole, first, last, *ranges);
    } else {
      const uint32_t a = loops[i];
      const int64_t extent = axes_.all()[a].extent, count = trips(a, sizes_);
      const bool backwards = !in_sum && backwards_[a];
      backwards_[a] = !backwards_[a];
      for (int64_t n = 0; n < count; ++n) {
        const int64_t at = (backwards ? count - 1 - n : n) * sizes_[a];
        (*ranges)[a] = {at, std::min(sizes_[a], extent - at)};
        walk(loops, i + 1, depth, first && (!in_sum || at == 0), last && (!in_sum || at + sizes_[a] >= extent), ranges);
      }
    }
    if (begins && !accumulates_result()) add_piece(Stage::kEpilogue, true, true, *ranges);
  }
  /** @} */

  Group group_;
  Limits limits_;
  detail::Axes axes_;
  const collet_program* p_;
  std::string complaint_;
  detail::PieceBody bodies_[3];
  uint32_t product_ = COLLET_NONE, main_value_ = COLLET_NONE, accumulator_ = COLLET_TYPE_S32;
  uint32_t combine_ = COLLET_COMBINE_OTHER;
  std::vector<uint32_t> loops_, innermost_, constant_axes_;
  uint32_t inner_ = detail::no_axis;
  std::vector<Moved> moved_;
  std::vector<int64_t> sizes_;
  std::vector<bool> backwards_;  // by axis: in which direction its loop runs next
  std::vector<Piece> pieces_;
  std::vector<Shape> shapes_;
  std::map<std::vector<int64_t>, uint32_t> shape_numbers_;
  std::map<uint32_t, std::pair<std::vector<int64_t>, std::vector<int64_t>>> before_;
  uint64_t needed_bytes_ = 0, moved_bytes_ = 0;
  double least_bytes_ = 0;
};

}  // namespace tiling
}  // namespace collet

#endif
