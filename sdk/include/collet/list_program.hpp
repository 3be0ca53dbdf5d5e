/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_LIST_PROGRAM_HPP
#define COLLET_LIST_PROGRAM_HPP

/** \file
 * Writes one command list of a whole program, for a compiler of whole programs (kernel_compiler.hpp) whose device has a
 * scratchpad and DMA. The vendor says which command computes an op; this header joins ops to groups, cuts these into pieces
 * (tiling.hpp), gives everything a place in the scratchpad and in device memory (memory_planner.hpp), packs constants, and
 * adds the commands of the DMA engines (command_list.hpp):
 *
 *     collet::commands::ListOptions options;
 *     options.limits.scratchpad_bytes = 1 << 20;
 *     options.engines = {"dma in", "dma out", "matrix", "alu"};
 *     const collet::commands::ProgramList made(p, options, units);  // units derives from collet::commands::Units
 *     if (made.rejected().empty()) use(made.list(), made.resident());
 *
 * Header only; nothing is global. An object is used by one thread at a time.
 */

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "command_list.hpp"
#include "kernel_later.hpp"
#include "kernel_loops.hpp"
#include "kernel_match.hpp"
#include "kernel_plan.hpp"
#include "memory_planner.hpp"
#include "tiling.hpp"

namespace collet {
namespace commands {

/** An op of a piece, for which Units::command makes a command. */
struct PieceOp {
  kernel::OwnedOp op;                /**< its arrays have the sizes of the piece, and no memory */
  std::shared_ptr<const void> keeps; /**< keeps alive what `op` points to; but for `ends_layer`, see there */
  /** For each operand of the command that is read, the number of the op's operand that it is. One more is behind them if
   * `combine` is set, the accumulator, and if `has_sums` is, the sums. */
  std::vector<uint32_t> reads;
  uint32_t combine =
      COLLET_COMBINE_OTHER; /**< COLLET_COMBINE_*: the result is combined with the accumulator, and written there */
  /** The op is a call of a pattern that Units::ends knows: the command does what follows its product, or all of it if it has
   * none. The op's arrays that this does not read are those of the whole. The op is one of the program, which must stay alive. */
  bool ends_layer = false;
  bool has_sums = false; /**< of `ends_layer`: the product has been computed */
};

/** What a device computes. The vendor derives from it. */
class Units {
 public:
  virtual ~Units() = default;
  /** Returns why no unit computes `op`, whose arrays have no memory; empty if one does. It is asked about ops of the program,
   * constants and reshapes among them, those inside of calls that it takes, and those of pieces, which are the same ops with smaller
   * arrays. A constant that it takes gets no command of its own; a reshape does, which copies bytes. */
  virtual std::string refusal(const kernel::Op& op) const = 0;
  /** Returns the command that computes an op: its name, engine and values. Operands and dependencies are filled in by the caller:
   * `reads` as PieceOp::reads says, `writes` the op's results. Pieces of one shape share the command. */
  virtual Command command(const PieceOp& what) = 0;
  /** True if calls of this pattern are done by PieceOp::ends_layer. Where the region has a product, that and what it needs is
   * computed first, op by op, and one command does the rest; a call without a product, as integer_add, is one command. */
  virtual bool ends(const std::string& pattern) const {
    static_cast<void>(pattern);
    return false;
  }
};

/** How ProgramList works. */
struct ListOptions {
  /** The scratchpad, and the sizes that the units like. `keeps_intermediates` is set in any case. */
  tiling::Limits limits;
  std::vector<std::string> engines;      /**< names, for List */
  uint32_t load = 0, store = 1;          /**< numbers of the engines that copy to and from the scratchpad; may be one */
  uint32_t alignment = 64;               /**< of arrays in the workspace and of constants, in bytes */
  size_t most_ops = 24;                  /**< of a group */
  uint32_t opset = kernel::header_opset; /**< that of the backend: newer ops are refused */
  /** Numbers of arguments that come in the form that ProgramList::packing makes. Groups, pieces and places are the same
   * whatever is packed. */
  std::set<uint32_t> packed = {};
};

namespace detail {

/** Memory in the scratchpad for an array of the pieces: one place, or two that take turns if it changes. */
struct ArraySpace {
  uint64_t offset = 0, bytes = 0;
  bool changes = false, filled = false;
  uint32_t slot = 0;
  std::vector<int64_t> begins, sizes;

  void measure(const tiling::Place& place, uint64_t rounded) {
    bytes = std::max(bytes, rounded);
    changes |= filled && !holds(place);
    set(place);
  }
  bool holds(const tiling::Place& place) const { return begins == place.begins && sizes == place.sizes; }
  void set(const tiling::Place& place) { begins = place.begins, sizes = place.sizes, filled = true; }
  void turn() { slot = changes ? 1 - slot : 0; }
  uint64_t end() const { return offset + bytes * (changes ? 2 : 1); }
  uint64_t at() const { return offset + slot * bytes; }
};

/** Where a step finds an array of its piece. */
struct Spot {
  enum Kind { kInput, kOutput, kAccumulator, kTemporary, kConstant } kind = kTemporary;
  uint32_t index = 0;  /**< number of the input, output or constant */
  uint64_t offset = 0; /**< of a temporary */
  uint64_t bytes = 0;
};

/** One command of a piece. */
struct Step {
  std::shared_ptr<const PieceOp> what; /**< null: a constant is loaded */
  std::vector<Spot> reads, writes;
  bool accumulates = false; /**< it writes a part of a sum */
};

/** Returns the loops over the elements of a place, from the whole array to a dense one. */
inline std::vector<kernel::Loop> loops_of(const tiling::Place& place) {
  std::vector<kernel::Loop> loops;
  int64_t dense = 1;
  for (size_t d = place.sizes.size(); d-- > 0; dense *= place.sizes[d]) {
    loops.insert(loops.begin(), {place.sizes[d], place.strides[d], dense});
  }
  return kernel::merged(loops);
}

/** A group that is computed piece by piece, and what lies where in the scratchpad meanwhile. */
class Cut {
 public:
  Cut(tiling::Group group, const ListOptions& options, const Units& units)
      : group_(std::move(group)), p_(group_.program), units_(units), limits_(options.limits) {
    limits_.keeps_intermediates = true;
    limits_.alignment = std::max<uint64_t>(limits_.alignment, 4);
    if (group_.op != COLLET_NONE && collet_op_at(p_, group_.op)->opcode == COLLET_OP_CALL) {
      const kernel::Op call(p_, collet_op_at(p_, group_.op), nullptr);
      is_layer_ = units.ends(call.pattern());
      const kernel::RegionGraph graph(p_, call.raw().regions.first);
      has_product_ = !product_of(graph, nullptr).empty();
      // One command does what follows the product, or all of it: what lies between has no place in the scratchpad.
      if (is_layer_) limits_.keeps_intermediates = false;
      if (is_layer_ && !has_product_) limits_.cuts_sums = false;
    }
    // Tiling does not count broadcasts, and the places of temporaries leave gaps: what is too large after all is cut smaller.
    const uint64_t all = limits_.scratchpad_bytes;
    for (uint64_t left = all; left >= all / 64; left -= left / 4) {
      limits_.scratchpad_bytes = left;
      tiles_ = std::make_unique<tiling::Tiling>(group_, limits_);
      complaint_ = tiles_->complaint();
      if (!complaint_.empty() || lay_out(all) || !complaint_.empty()) return;
    }
    complaint_ = "the scratchpad of " + std::to_string(all) + " bytes is too small for what is between the ops";
  }

  const std::string& complaint() const { return complaint_; }
  const tiling::Group& group() const { return group_; }
  const tiling::Tiling& tiles() const { return *tiles_; }

  std::vector<ArraySpace> inputs, outputs;
  ArraySpace accumulator;
  uint64_t temporaries = 0;              /**< where temporaries begin */
  std::vector<std::vector<Step>> bodies; /**< for each shape of piece */
  std::vector<std::string> constants;    /**< data of constants inside of the group */

 private:
  uint64_t rounded(uint64_t bytes) const {
    return (bytes + limits_.alignment - 1) / limits_.alignment * limits_.alignment;
  }

  /** Gives everything a place in the scratchpad; false if there is not enough of it, or with a complaint. */
  bool lay_out(uint64_t scratchpad_bytes) {
    inputs.assign(group_.inputs.size(), {});
    outputs.assign(group_.outputs.size(), {});
    accumulator = {};
    bodies.assign(tiles_->shape_count(), {});
    constants.clear();
    uint64_t most = 0, end = 0;
    for (const tiling::Piece& piece : tiles_->pieces()) {
      for (const tiling::Place& place : piece.operands) inputs[place.index].measure(place, rounded(place.bytes));
      const bool partial = piece.stage == tiling::Stage::kPartial;
      for (const tiling::Place& place : piece.results) {
        (partial ? accumulator : outputs[place.index]).measure(place, rounded(place.bytes));
      }
      if (bodies[piece.shape].empty()) most = std::max(most, write_body(piece));
      if (!complaint_.empty()) return false;
    }
    for (uint32_t i = 0; i < inputs.size(); ++i) inputs[i].changes &= tiles_->copies(i) > 1;
    const auto place = [&](ArraySpace* space) {
      space->offset = end;
      space->filled = false;
      end = space->end();
    };
    for (ArraySpace& space : inputs) place(&space);
    for (ArraySpace& space : outputs) place(&space);
    place(&accumulator);
    temporaries = end;
    return end + most <= scratchpad_bytes;
  }

  /** Writes the steps of pieces of one shape, and returns the bytes of their temporaries. */
  uint64_t write_body(const tiling::Piece& piece) {
    const auto block = std::make_shared<const std::vector<uint64_t>>(tiles_->program(piece.shape));
    const auto* program = reinterpret_cast<const collet_program*>(block->data());
    const collet_op* whole = collet_op_at(program, 0);
    const bool wrapped = whole->opcode == COLLET_OP_FUSION || whole->opcode == COLLET_OP_CALL;
    const kernel::RegionGraph graph(program, wrapped ? whole->regions.first : 0);
    const uint32_t first = collet_region_at(program, wrapped ? whole->regions.first : 0)->arguments.first;
    const bool partial = piece.stage == tiling::Stage::kPartial, epilogue = piece.stage == tiling::Stage::kEpilogue;
    std::map<uint32_t, Spot> spots;
    for (uint32_t i = 0; i < graph.argument_count(); ++i) {
      const bool sums = i == piece.operands.size();
      spots[first + i] = {sums ? Spot::kAccumulator : Spot::kInput, sums ? 0 : piece.operands[i].index, 0,
                          graph.array(first + i).bytes};
    }
    // The accumulator is as large as its largest part.
    if (partial) accumulator.bytes = std::max(accumulator.bytes, rounded(graph.array(graph.result()).bytes));
    if (is_layer_ && !has_product_) {
      add_end(piece, nullptr, {});
      return 0;
    }
    if (epilogue && is_layer_) {
      add_end(piece, &spots.at(first + graph.argument_count() - 1), {});
      return 0;
    }
    std::vector<const collet_op*> ops;
    const bool ends = is_layer_ && !partial;
    for (uint32_t i = 0; i < graph.op_count(); ++i) ops.push_back(graph.op(i));
    std::set<uint32_t> unread;  // arguments that the end of a layer does not read
    if (ends) ops = product_of(graph, &unread);
    for (uint32_t r = 0; r < graph.result_count() && !ends; ++r) {
      const bool second = !spots
                               .emplace(graph.result(r), Spot{partial ? Spot::kAccumulator : Spot::kOutput,
                                                              partial ? 0 : r, 0, graph.array(graph.result(r)).bytes})
                               .second;
      if (second) complaint_ = "a group of which two results, or an argument and a result, are the same";
    }
    const uint64_t height = place_temporaries(graph, ops, &spots);
    for (const collet_op* op : ops) add_step(piece, block, graph, op, spots);
    if (ends) add_end(piece, &spots.at(ops.back()->results.first), unread);
    return height;
  }

  /** Returns the ops of a region that its product needs, and the product as the last one; none if there is no product.
   * `unread` may be null; else it gets the arguments that only these ops read. */
  static std::vector<const collet_op*> product_of(const kernel::RegionGraph& graph, std::set<uint32_t>* unread) {
    std::vector<const collet_op*> out;
    std::set<uint32_t> needed, others;
    for (uint32_t i = graph.op_count(); i-- > 0;) {
      const collet_op* op = graph.op(i);
      const bool product = op->opcode == COLLET_OP_DOT || op->opcode == COLLET_OP_CONVOLUTION;
      const bool mine = out.empty() ? product : needed.count(op->results.first) != 0;
      if (mine) out.insert(out.begin(), op);
      for (uint32_t k = 0; k < op->operands.count; ++k) {
        (mine ? needed : others).insert(collet_operand(graph.program(), op, k));
      }
    }
    for (const uint32_t value : needed) {
      if (unread && graph.argument(value) != COLLET_NONE && others.count(value) == 0)
        unread->insert(graph.argument(value));
    }
    return out;
  }

  /** Gives values between the ops places, from the op that writes them to the last one that reads them. */
  uint64_t place_temporaries(const kernel::RegionGraph& graph, const std::vector<const collet_op*>& ops,
                             std::map<uint32_t, Spot>* spots) const {
    std::map<uint32_t, size_t> numbers;
    std::vector<memory::PlacedInterval> lives;
    for (size_t i = 0; i < ops.size(); ++i) {
      const auto now = static_cast<int64_t>(i);
      for (uint32_t k = 0; k < ops[i]->operands.count; ++k) {
        const auto found = numbers.find(collet_operand(graph.program(), ops[i], k));
        if (found != numbers.end()) lives[found->second].last = now;
      }
      for (uint32_t k = 0; k < ops[i]->results.count; ++k) {
        const uint32_t value = ops[i]->results.first + k;
        if (spots->count(value) != 0) continue;
        numbers[value] = lives.size();
        lives.push_back({now, now, graph.array(value).bytes, 0});
      }
    }
    const uint64_t height = memory::place_intervals(lives, static_cast<uint32_t>(limits_.alignment));
    for (const auto& one : numbers) {
      (*spots)[one.first] = {Spot::kTemporary, 0, lives[one.second].offset, lives[one.second].bytes};
    }
    return height;
  }

  void add_step(const tiling::Piece& piece, const std::shared_ptr<const std::vector<uint64_t>>& block,
                const kernel::RegionGraph& graph, const collet_op* op, const std::map<uint32_t, Spot>& spots) {
    const collet_program* program = graph.program();
    Step step;
    for (uint32_t k = 0; k < op->results.count; ++k) step.writes.push_back(spots.at(op->results.first + k));
    if (op->opcode == COLLET_OP_CONSTANT) {
      const auto a = tiling::detail::attributes_of<collet_constant_attrs>(program, op);
      const auto* data =
          static_cast<const char*>(collet_constant_data(program, collet_constant_at(program, a.constant)));
      step.reads = {{Spot::kConstant, static_cast<uint32_t>(constants.size()), 0, step.writes[0].bytes}};
      constants.emplace_back(data, step.writes[0].bytes);
      bodies[piece.shape].push_back(std::move(step));
      return;
    }
    const std::vector<kernel::Array> arrays = graph.arrays(op);
    const kernel::Op view(program, op, arrays.data());
    const std::string refusal = units_.refusal(view);
    if (complaint_.empty()) complaint_ = refusal;
    PieceOp what{kernel::OwnedOp(view), block, {}};
    for (uint32_t k = 0; k < op->operands.count; ++k) {
      step.reads.push_back(spots.at(collet_operand(program, op, k)));
      what.reads.push_back(k);
    }
    step.accumulates = !step.writes.empty() && step.writes[0].kind == Spot::kAccumulator;
    step.what = std::make_shared<const PieceOp>(std::move(what));
    bodies[piece.shape].push_back(std::move(step));
  }

  /** Adds the command that does with the sums of a layer what follows them, or all of a call if `sums` is null. Arrays of the
   * piece stand in the places of the operands of the call. */
  void add_end(const tiling::Piece& piece, const Spot* sums, const std::set<uint32_t>& unread) {
    const collet_op* call = collet_op_at(p_, group_.op);
    std::vector<kernel::Array> arrays = kernel::detail::arrays_of(p_, call);
    const auto dims = std::make_shared<std::vector<std::vector<int64_t>>>();
    dims->reserve(arrays.size());
    Step step;
    std::vector<uint32_t> reads;
    const auto put = [&](size_t number, const tiling::Place& place) {
      kernel::Array& array = arrays[number];
      dims->push_back(place.sizes);
      array.dims = dims->back().data();
      array.bytes = place.bytes;
      array.elements = place.bytes / collet_type_bytes(array.type);
    };
    for (const tiling::Place& place : piece.operands) {
      if (unread.count(place.index) != 0) continue;
      put(place.index, place);
      reads.push_back(place.index);
      step.reads.push_back({Spot::kInput, place.index, 0, place.bytes});
    }
    put(call->operands.count, piece.results[0]);
    step.writes.push_back({Spot::kOutput, 0, 0, piece.results[0].bytes});
    if (sums) step.reads.push_back(*sums);
    const kernel::OwnedOp op(kernel::Op(p_, call, arrays.data()));
    step.what = std::make_shared<const PieceOp>(
        PieceOp{op, dims, std::move(reads), COLLET_COMBINE_OTHER, true, sums != nullptr});
    bodies[piece.shape].push_back(std::move(step));
  }

  tiling::Group group_;
  const collet_program* p_;
  const Units& units_;
  tiling::Limits limits_;
  bool is_layer_ = false, has_product_ = false;
  std::unique_ptr<tiling::Tiling> tiles_;
  std::string complaint_;
};

}  // namespace detail

/** The command list of a program. Its arrays are, by number: the arguments, the results, the workspace, and the resident data. The
 * first three are those of DeviceProgram::launch, in their order. */
class ProgramList {
 public:
  /** Writes the list. The program must stay alive as long as the commands of `units` are used. */
  ProgramList(const collet_program* program, const ListOptions& options, Units& units)
      : p_(program),
        entry_(collet_region_at(program, 0)),
        graph_(program),
        is_result_(program->values.count, false),
        options_(options),
        units_(units),
        list_(options.engines) {
    for (uint32_t r = 0; r < entry_->results.count; ++r)
      is_result_[collet_ref_at(p_, entry_->results.first + r)] = true;
    is_overwritten_.assign(entry_->arguments.count, false);
    for (uint32_t i = 0; i < p_->aliases.count; ++i) is_overwritten_[collet_alias_at(p_, i)->argument] = true;
    form_groups();
    if (!rejected_.empty()) return;
    place_arrays();
    for (const std::unique_ptr<detail::Cut>& cut : cuts_) write_group(cut.get());
    store_results();
    array_bytes_.push_back(resident_.size());
    for (const uint32_t argument : options_.packed) array_bytes_[argument] = parts_[argument].bytes;
  }

  /** Returns why op `id` of the program's entry cannot be computed; empty if it can: what Units says, and where its pieces do not fit, the
   * array. For ProgramCompiler::answer. */
  static std::string refusal(const collet_program* program, uint32_t id, const ListOptions& options,
                             const Units& units) {
    const std::string said = refusal_of_units(program, id, options, units);
    if (!said.empty() || collet_op_at(program, id)->opcode == COLLET_OP_CONSTANT) return said;
    return detail::Cut(tiling::group_of_op(program, id), options, units).complaint();
  }

  /** Returns the ops that cannot be computed. If there are any, there is no list. */
  const std::vector<uint32_t>& rejected() const { return rejected_; }
  /** Returns the list. */
  const List& list() const { return list_; }
  /** Returns the constants, each part as the pieces read it: dense, and once, however often it is read. The device keeps them. */
  const std::string& resident() const { return resident_; }
  /** Returns the bytes of each array, by number. */
  const std::vector<uint64_t>& array_bytes() const { return array_bytes_; }
  /** Returns the bytes of the workspace. */
  uint64_t workspace_bytes() const { return array_bytes_[workspace()]; }
  /** Returns the bytes that the DMA engines copy. */
  uint64_t traffic_bytes() const {
    uint64_t out = 0;
    for (const Command& one : list_.commands()) {
      if (one.engine == options_.load || one.engine == options_.store) out += one.reads[0].bytes * one.reads[0].rows;
    }
    return out;
  }
  /** Returns the number of groups. */
  size_t group_count() const { return cuts_.size(); }

  /** Returns the bytes of argument `argument` in the form in which each part that the pieces read is dense; 0 where that saves
   * nothing, or needs more than twice the bytes, and for arguments that are results, or may be overwritten by one. */
  uint64_t packed_bytes(uint32_t argument) const {
    const auto found = parts_.find(argument);
    if (found == parts_.end() || !found->second.has_rows) return 0;
    const uint64_t bytes = bytes_of(entry_->arguments.first + argument);
    return found->second.bytes <= 2 * bytes ? found->second.bytes : 0;
  }
  /** Returns the list that packs an argument whose packed_bytes are not 0: commands of the engine that loads, from array 0, the argument,
   * to array 1. */
  List packing(uint32_t argument) const {
    List out(options_.engines);
    const uint32_t value = entry_->arguments.first + argument;
    for (const Part& part : parts_.at(argument).parts) {
      transfer(&out, "pack " + name_of(value), options_.load, {0, 0}, part.place, width_of(value),
               [&](uint64_t at) { return Operand{1, part.offset + at, 0, 1, 0}; });
    }
    return out;
  }

 private:
  /** Where an array of the program lies. */
  struct Home {
    uint32_t array = 0;
    uint64_t offset = 0;
  };
  /** A part of a packed argument: what some pieces read. */
  struct Part {
    tiling::Place place;
    uint64_t offset;
  };
  /** The packed form of an argument. */
  struct Packed {
    std::vector<Part> parts;
    std::map<std::pair<std::vector<int64_t>, std::vector<int64_t>>, size_t> numbers;  // by begins and sizes
    uint64_t bytes = 0;
    bool has_rows = false;  // packing makes several rows of a part one
  };

  /** Returns why no unit computes an op; empty if one does. */
  static std::string refusal_of_units(const collet_program* program, uint32_t id, const ListOptions& options,
                                      const Units& units) {
    const collet_op* op = collet_op_at(program, id);
    if (op->flags != 0 || op->reserved != 0 || op->since > options.opset) {
      return "an op of opset " + std::to_string(op->since) + ", or with a field that is not zero";
    }
    const std::vector<kernel::Array> arrays = kernel::detail::arrays_of(program, op);
    return units.refusal(kernel::Op(program, op, arrays.data()));
  }

  uint32_t workspace() const { return entry_->arguments.count + entry_->results.count; }
  uint64_t bytes_of(uint32_t value) const { return collet_value_type(p_, value)->bytes; }
  uint32_t width_of(uint32_t value) const { return collet_type_bytes(collet_value_type(p_, value)->element); }
  const collet_op* maker_of(uint32_t value) const {
    const collet_value* what = collet_value_at(p_, value);
    return (what->flags & COLLET_VALUE_ARGUMENT) != 0 ? nullptr : collet_op_at(p_, what->definition);
  }
  const collet_op* constant_of(uint32_t value) const {
    const collet_op* op = maker_of(value);
    return op && op->opcode == COLLET_OP_CONSTANT ? op : nullptr;
  }
  const char* data_of(const collet_op* constant) const {
    const auto a = tiling::detail::attributes_of<collet_constant_attrs>(p_, constant);
    return static_cast<const char*>(collet_constant_data(p_, collet_constant_at(p_, a.constant)));
  }
  std::string name_of(uint32_t value) const {
    const collet_op* op = maker_of(value);
    const collet_range name = op ? op->name : collet_value_at(p_, value)->name;
    return std::string(collet_string(p_, name), name.count);
  }

  /** \name Groups
   * @{ */
  /** True for ops of which tiling cuts dimensions. */
  static bool may_join(const collet_op* op) {
    if ((collet_op_traits(op->opcode) & COLLET_OP_ELEMENTWISE) != 0) return true;
    switch (op->opcode) {
      case COLLET_OP_BROADCAST:
      case COLLET_OP_RESHAPE:
      case COLLET_OP_TRANSPOSE:
      case COLLET_OP_REDUCE:
      case COLLET_OP_SLICE:
      case COLLET_OP_PAD:
        return true;
      default:
        return is_heavy(op);
    }
  }
  /** True for ops of which a group has one at most: with two, pieces would compute elements twice. */
  static bool is_heavy(const collet_op* op) {
    return op->opcode == COLLET_OP_DOT || op->opcode == COLLET_OP_CONVOLUTION || op->opcode == COLLET_OP_REDUCE_WINDOW;
  }

  /** Finds broadcasts of one element. Each group that reads one makes it itself, so that it is in no memory. */
  void find_spreads() {
    for (uint32_t i = 0; i < entry_->ops.count; ++i) {
      const collet_op* op = collet_op_at(p_, entry_->ops.first + i);
      if (op->opcode == COLLET_OP_BROADCAST && collet_value_type(p_, collet_operand(p_, op, 0))->elements == 1) {
        spreads_.insert(op->results.first);
      }
    }
    for (uint32_t i = 0; i < entry_->ops.count; ++i) {
      const collet_op* op = collet_op_at(p_, entry_->ops.first + i);
      for (uint32_t k = 0; k < op->operands.count && !may_join(op); ++k) spreads_.erase(collet_operand(p_, op, k));
      for (uint32_t k = 0; k < op->operands.count && spreads_.count(op->results.first) != 0; ++k) {
        spreads_.erase(collet_operand(p_, op, k));
      }
    }
    for (uint32_t r = 0; r < entry_->results.count; ++r) spreads_.erase(collet_ref_at(p_, entry_->results.first + r));
  }

  /** Adds an op, and the spreads that it reads. */
  std::vector<uint32_t> joined(const std::vector<uint32_t>& ops, uint32_t id) const {
    std::set<uint32_t> out(ops.begin(), ops.end());
    const collet_op* op = collet_op_at(p_, id);
    for (uint32_t k = 0; k < op->operands.count; ++k) {
      const uint32_t value = collet_operand(p_, op, k);
      if (spreads_.count(value) != 0) out.insert(collet_value_at(p_, value)->definition);
    }
    out.insert(id);
    return {out.begin(), out.end()};
  }

  /** As tiling::group_of_ops does, but spreads are no outputs. */
  tiling::Group group_of(const std::vector<uint32_t>& ops) const {
    if (ops.size() == 1) return tiling::group_of_op(p_, ops[0]);
    tiling::Group out;
    out.program = p_;
    out.ops = ops;
    std::set<uint32_t> made, seen;
    for (const uint32_t id : ops) {
      const collet_op* op = collet_op_at(p_, id);
      for (uint32_t k = 0; k < op->operands.count; ++k) {
        const uint32_t value = collet_operand(p_, op, k);
        if (made.count(value) == 0 && seen.insert(value).second) out.inputs.push_back(value);
      }
      for (uint32_t k = 0; k < op->results.count; ++k) made.insert(op->results.first + k);
    }
    for (const uint32_t value : made) {
      const std::vector<uint32_t>& users = graph_.users(value);
      const auto outside = [&](uint32_t id) { return !std::binary_search(ops.begin(), ops.end(), id); };
      const bool is_read = is_result_[value] || std::any_of(users.begin(), users.end(), outside);
      if (is_read && spreads_.count(value) == 0) out.outputs.push_back(value);
    }
    out.sources = out.inputs;
    return out;
  }

  /** Joins ops that follow one another, where that moves no more bytes than they do one by one. */
  void form_groups() {
    find_spreads();
    std::vector<uint32_t> ops;
    for (uint32_t i = 0; i < entry_->ops.count; ++i) {
      const uint32_t id = entry_->ops.first + i;
      const collet_op* op = collet_op_at(p_, id);
      if (op->opcode == COLLET_OP_CONSTANT || spreads_.count(op->results.first) != 0) continue;
      if (!refusal_of_units(p_, id, options_, units_).empty()) {
        rejected_.push_back(id);
        continue;
      }
      const auto heavy = [&](uint32_t one) { return is_heavy(collet_op_at(p_, one)); };
      std::vector<uint32_t> mine = joined({}, id);
      auto alone = std::make_unique<detail::Cut>(group_of(mine), options_, units_);
      if (!alone->complaint().empty() && mine.size() > 1) {
        // Its spreads do not fit: they are stored.
        for (const uint32_t other : mine) {
          if (other == id) continue;
          spreads_.erase(collet_op_at(p_, other)->results.first);
          cuts_.push_back(std::make_unique<detail::Cut>(group_of({other}), options_, units_));
        }
        ops.clear();
        mine = {id};
        alone = std::make_unique<detail::Cut>(group_of(mine), options_, units_);
      }
      if (!alone->complaint().empty()) {
        rejected_.push_back(id);
        continue;
      }
      const bool joins = !ops.empty() && may_join(op) && may_join(collet_op_at(p_, ops.back())) &&
                         ops.size() < options_.most_ops &&
                         !(is_heavy(op) && std::any_of(ops.begin(), ops.end(), heavy));
      if (joins) {
        const std::vector<uint32_t> more = joined(ops, id);
        auto both = std::make_unique<detail::Cut>(group_of(more), options_, units_);
        const uint64_t apart = alone->tiles().moved_bytes() + cuts_.back()->tiles().moved_bytes();
        if (both->complaint().empty() && both->tiles().moved_bytes() <= apart) {
          ops = more;
          cuts_.back() = std::move(both);
          continue;
        }
      }
      ops = std::move(mine);
      cuts_.push_back(std::move(alone));
    }
  }
  /** @} */

  /** \name Device memory
   * @{ */
  /** The number outside of a group of its result `i`. */
  uint32_t result_of(const tiling::Group& group, uint32_t i) const {
    return group.op == COLLET_NONE ? group.outputs[i] : collet_op_at(p_, group.op)->results.first + i;
  }

  /** Gives each array a place: results theirs, unless an argument may have the same memory, all others one in the workspace, by the
   * groups between which they live. */
  void place_arrays() {
    std::set<uint32_t> aliased;
    for (uint32_t i = 0; i < p_->aliases.count; ++i) aliased.insert(collet_alias_at(p_, i)->result);
    for (uint32_t i = 0; i < entry_->arguments.count; ++i) {
      homes_[entry_->arguments.first + i] = {i, 0};
      array_bytes_.push_back(bytes_of(entry_->arguments.first + i));
    }
    const auto last = static_cast<int64_t>(cuts_.size());
    std::map<uint32_t, memory::PlacedInterval> lives;
    for (size_t g = 0; g < cuts_.size(); ++g) {
      const auto now = static_cast<int64_t>(g);
      const tiling::Group& group = cuts_[g]->group();
      for (uint32_t i = 0; i < group.outputs.size(); ++i) {
        lives[result_of(group, i)] = {now, now, bytes_of(result_of(group, i)), 0};
      }
      for (const uint32_t value : group.sources) {
        const auto found = lives.find(value);
        if (found != lives.end()) found->second.last = now;
      }
    }
    for (uint32_t r = 0; r < entry_->results.count; ++r) {
      const uint32_t value = collet_ref_at(p_, entry_->results.first + r);
      const auto found = lives.find(value);
      array_bytes_.push_back(bytes_of(value));
      if (found != lives.end() && aliased.count(r) == 0) {
        homes_[value] = {entry_->arguments.count + r, 0};
        lives.erase(found);
      } else if (found != lives.end()) {
        found->second.last = last;
      } else if (!aliased.empty() && !constant_of(value) && homes_.at(value).array < entry_->arguments.count) {
        // Another result may be written to the argument's memory before it is copied.
        lives[value] = {0, last, bytes_of(value), 0};
      }
    }
    std::vector<memory::PlacedInterval> intervals;
    for (const auto& life : lives) intervals.push_back(life.second);
    array_bytes_.push_back(memory::place_intervals(intervals, options_.alignment));
    size_t next = 0;
    for (const auto& life : lives) {
      const Home home{workspace(), intervals[next++].offset};
      const auto argument = homes_.find(life.first);
      if (argument != homes_.end()) {
        move("keep " + name_of(life.first), options_.load, argument->second, home, bytes_of(life.first), {});
      }
      homes_[life.first] = home;
    }
  }

  void move(const std::string& name, uint32_t engine, Home from, Home to, uint64_t bytes, std::vector<uint32_t> after) {
    if (bytes == 0) return;
    Command command{name, engine, {in_array(from.array, from.offset, bytes)}, {in_array(to.array, to.offset, bytes)}};
    command.after = std::move(after);
    list_.add(std::move(command));
  }

  Home keep(const void* data, uint64_t bytes) {
    resident_.resize((resident_.size() + options_.alignment - 1) / options_.alignment * options_.alignment);
    const Home home{workspace() + 1, resident_.size()};
    resident_.append(static_cast<const char*>(data), bytes);
    return home;
  }

  /** Returns where the part of a constant that a piece reads lies. */
  Home packed(const collet_op* constant, const tiling::Place& place) {
    const auto key = std::make_tuple(constant->results.first, place.begins, place.sizes);
    const auto found = packed_.find(key);
    if (found != packed_.end()) return found->second;
    const uint32_t width = width_of(constant->results.first);
    std::string dense(place.bytes, '\0');
    kernel::Move part;
    part.element_bytes = width;
    part.loops = detail::loops_of(place);
    kernel::loop_move(part, data_of(constant) + place.offset * width, &dense[0]);
    return packed_[key] = keep(dense.data(), dense.size());
  }

  /** Returns where the part of an argument that a piece reads is in its packed form; null if it has none. */
  const Part* packed_part(uint32_t value, const tiling::Place& place) {
    const uint32_t argument = graph_.argument(value);
    if (argument == COLLET_NONE || is_result_[value] || is_overwritten_[argument]) return nullptr;
    Packed& packed = parts_[argument];
    const auto key = std::make_pair(place.begins, place.sizes);
    const auto found = packed.numbers.find(key);
    if (found != packed.numbers.end()) return &packed.parts[found->second];
    packed.numbers[key] = packed.parts.size();
    packed.parts.push_back({place, packed.bytes});
    packed.bytes += (place.bytes + options_.alignment - 1) / options_.alignment * options_.alignment;
    packed.has_rows = packed.has_rows || !is_dense(place);
    return &packed.parts.back();
  }

  /** True if the elements of a place follow one another in the whole array. */
  static bool is_dense(const tiling::Place& place) {
    const std::vector<kernel::Loop> loops = detail::loops_of(place);
    return loops.empty() || (loops.size() == 1 && loops[0].from == 1);
  }

  /** Copies results that lie elsewhere, after everything that reads an argument. */
  void store_results() {
    std::vector<uint32_t> after;
    for (uint32_t i = 0; i < list_.commands().size(); ++i) {
      if (list_.commands()[i].engine == options_.load) after = {i};
    }
    for (uint32_t r = 0; r < entry_->results.count; ++r) {
      const uint32_t value = collet_ref_at(p_, entry_->results.first + r);
      if (const collet_op* constant = constant_of(value)) {
        if (homes_.count(value) == 0) homes_[value] = keep(data_of(constant), bytes_of(value));
      }
      const Home from = homes_.at(value), to{entry_->arguments.count + r, 0};
      if (from.array != to.array) move("store " + name_of(value), options_.store, from, to, bytes_of(value), after);
    }
  }
  /** @} */

  /** \name Commands
   * @{ */
  /** Copies a place of an array to a dense array or, unless `loads`, from there; `dense(offset)` is where the bytes behind `offset` begin.
   * One command copies rows at one distance; more dimensions need several. */
  template <class Dense>
  static void transfer(List* list, const std::string& name, uint32_t engine, Home home, const tiling::Place& place,
                       uint32_t width, const Dense& dense, bool loads = true) {
    std::vector<kernel::Loop> loops = detail::loops_of(place);
    kernel::Loop run{1, 1, 1}, rows{1, 0, 0};
    if (!loops.empty() && loops.back().from == 1) run = loops.back(), loops.pop_back();
    if (!loops.empty()) rows = loops.back(), loops.pop_back();
    const auto bytes = [&](int64_t elements) { return static_cast<uint64_t>(elements) * width; };
    kernel::for_each_index(loops, [&](int64_t from, int64_t to) {
      const auto times = static_cast<uint64_t>(rows.extent);
      const Operand there = in_array(home.array, home.offset + place.offset * width + bytes(from), bytes(run.extent),
                                     times, bytes(rows.from));
      Operand here = dense(bytes(to));
      here.bytes = bytes(run.extent), here.rows = times, here.pitch = bytes(rows.to);
      list->add({name, engine, {loads ? there : here}, {loads ? here : there}});
    });
  }
  void transfer(const std::string& name, bool loads, Home home, const tiling::Place& place, uint32_t width,
                uint64_t scratch) {
    transfer(
        &list_, name, loads ? options_.load : options_.store, home, place, width,
        [&](uint64_t at) { return in_scratchpad(scratch + at, 0); }, loads);
  }

  void write_group(detail::Cut* cut) {
    const tiling::Group& group = cut->group();
    std::vector<Home> constants;
    for (const std::string& data : cut->constants) constants.push_back(keep(data.data(), data.size()));
    std::map<std::pair<const detail::Step*, bool>, Command> commands;
    for (const tiling::Piece& piece : cut->tiles().pieces()) {
      for (const tiling::Place& place : piece.operands) {
        detail::ArraySpace& space = cut->inputs[place.index];
        if (place.bytes == 0 || (space.filled && space.holds(place))) continue;
        space.turn();
        space.set(place);
        const uint32_t value = group.sources[place.index];
        if (const collet_op* constant = constant_of(value)) {
          const Home home = packed(constant, place);
          list_.add({"load " + name_of(value),
                     options_.load,
                     {in_array(home.array, home.offset, place.bytes)},
                     {in_scratchpad(space.at(), place.bytes)}});
          continue;
        }
        const Part* part = packed_part(value, place);
        if (part && options_.packed.count(graph_.argument(value)) != 0) {
          list_.add({"load " + name_of(value),
                     options_.load,
                     {in_array(graph_.argument(value), part->offset, place.bytes)},
                     {in_scratchpad(space.at(), place.bytes)}});
        } else {
          transfer("load " + name_of(value), true, homes_.at(value), place, width_of(value), space.at());
        }
      }
      const bool partial = piece.stage == tiling::Stage::kPartial;
      if (partial && piece.first) cut->accumulator.turn();
      for (const tiling::Place& place : piece.results) {
        if (!partial) cut->outputs[place.index].turn();
      }
      for (const detail::Step& step : cut->bodies[piece.shape]) {
        add_step(step, step.accumulates && !piece.first, *cut, constants, &commands);
      }
      for (const tiling::Place& place : piece.results) {
        const uint32_t value = result_of(group, place.index);
        const uint64_t from = partial ? cut->accumulator.at() : cut->outputs[place.index].at();
        if (place.bytes != 0)
          transfer("store " + name_of(value), false, homes_.at(value), place, width_of(value), from);
      }
    }
  }

  /** Adds the command of a step. The command itself is asked for once. */
  void add_step(const detail::Step& step, bool adds, const detail::Cut& cut, const std::vector<Home>& constants,
                std::map<std::pair<const detail::Step*, bool>, Command>* commands) {
    const auto operand = [&](const detail::Spot& spot) {
      switch (spot.kind) {
        case detail::Spot::kInput:
          return in_scratchpad(cut.inputs[spot.index].at(), spot.bytes);
        case detail::Spot::kOutput:
          return in_scratchpad(cut.outputs[spot.index].at(), spot.bytes);
        case detail::Spot::kAccumulator:
          return in_scratchpad(cut.accumulator.at(), spot.bytes);
        case detail::Spot::kConstant:
          return in_array(constants[spot.index].array, constants[spot.index].offset, spot.bytes);
        default:
          return in_scratchpad(cut.temporaries + spot.offset, spot.bytes);
      }
    };
    const auto made = commands->emplace(std::make_pair(&step, adds), Command());
    Command& command = made.first->second;
    if (made.second && step.what) {
      PieceOp what = *step.what;
      if (adds) what.combine = cut.tiles().combine();
      command = units_.command(what);
    } else if (made.second) {
      command = {"load constant", options_.load};
    }
    Command now = command;
    for (const detail::Spot& spot : step.reads) now.reads.push_back(operand(spot));
    for (const detail::Spot& spot : step.writes) now.writes.push_back(operand(spot));
    if (adds) now.reads.push_back(now.writes[0]);
    list_.add(std::move(now));
  }
  /** @} */

  const collet_program* p_;
  const collet_region* entry_;
  kernel::RegionGraph graph_;
  std::vector<bool> is_result_;
  ListOptions options_;
  Units& units_;
  List list_;
  std::vector<uint32_t> rejected_;
  std::set<uint32_t> spreads_;
  std::vector<std::unique_ptr<detail::Cut>> cuts_;
  std::map<uint32_t, Home> homes_;
  std::map<std::tuple<uint32_t, std::vector<int64_t>, std::vector<int64_t>>, Home> packed_;
  std::map<uint32_t, Packed> parts_;  // by argument
  std::vector<bool> is_overwritten_;  // of arguments: a result may have its memory
  std::string resident_;
  std::vector<uint64_t> array_bytes_;
};

}  // namespace commands
}  // namespace collet

#endif
