/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_COLLECTIVE_HPP
#define COLLET_KERNEL_COLLECTIVE_HPP

/** \file
 * Collectives of a backend that is a table of kernels: finds the groups of participants, copies data from one device to
 * another, and combines it with rows of the table. Included by kernel_backend.hpp.
 */

#include <functional>

#include "kernel_describe.hpp"
#include "kernel_shapes.hpp"

namespace collet {
namespace kernel {
namespace detail {

/** Returns true for the collectives that this header runs on behalf of a table of kernels. */
inline bool is_collective(uint32_t opcode) {
  switch (opcode) {
    case COLLET_OP_ALL_REDUCE:
    case COLLET_OP_ALL_GATHER:
    case COLLET_OP_REDUCE_SCATTER:
    case COLLET_OP_ALL_TO_ALL:
    case COLLET_OP_COLLECTIVE_PERMUTE:
    case COLLET_OP_COLLECTIVE_BROADCAST:
      return true;
    default:
      return false;
  }
}

/** The attributes of a collective, in one form for all of them. */
struct CollectiveSpec {
  /** Groups of participants that work together, each in the order of the op's group. Every participant of the program is
   * in one group. */
  std::vector<std::vector<uint32_t>> groups;
  std::vector<uint32_t> group_of; /**< group of each participant */
  std::vector<char> listed;       /**< for each participant: whether the op names it */
  int64_t dimension = -1;         /**< dimension of gather, scatter and all-to-all; -1: none */
  std::vector<int64_t> pairs;     /**< for permute: positions in the group, source and target alternating */
};

/** Reads the attributes of a collective. */
inline CollectiveSpec collective_of(const collet_program* p, const collet_op* op) {
  collet_range ids{};
  int64_t group_size = 0, channel = 0;
  bool global = false, over_both = false;
  CollectiveSpec out;
  if (op->opcode == COLLET_OP_ALL_TO_ALL) {
    collet_all_to_all_attrs a;
    collet_read_attributes(p, op, &a, sizeof a);
    ids = a.groups.ids, group_size = a.groups.group_size, channel = a.channel;
    if (a.dimension.count != 0) out.dimension = collet_integers(p, a.dimension)[0];
  } else if (op->opcode == COLLET_OP_COLLECTIVE_PERMUTE) {
    collet_collective_permute_attrs a;
    collet_read_attributes(p, op, &a, sizeof a);
    channel = a.channel;
    out.pairs.assign(collet_integers(p, a.pairs), collet_integers(p, a.pairs) + a.pairs.count);
  } else if (op->opcode == COLLET_OP_ALL_GATHER || op->opcode == COLLET_OP_REDUCE_SCATTER) {
    collet_collective_dim_attrs a;
    collet_read_attributes(p, op, &a, sizeof a);
    ids = a.groups.ids, group_size = a.groups.group_size, channel = a.channel;
    global = a.global_ids != 0, over_both = true;
    out.dimension = a.dimension;
  } else {
    collet_collective_attrs a;
    collet_read_attributes(p, op, &a, sizeof a);
    ids = a.groups.ids, group_size = a.groups.group_size, channel = a.channel;
    global = a.global_ids != 0, over_both = op->opcode == COLLET_OP_ALL_REDUCE;
  }
  const uint32_t replicas = p->replica_count, partitions = p->partition_count, all = replicas * partitions;
  out.group_of.assign(all, COLLET_NONE);
  out.listed.assign(all, 0);
  const bool flattened = over_both && channel != 0 && global, both = over_both && channel != 0 && !global;
  // Without a channel, the ids are replicas, and there is a group for each partition. With a channel, the ids of an
  // all-reduce are flattened ids or, without global_ids, replicas with all their partitions; the ids of other ops are
  // partitions, and there is a group for each replica.
  const bool by_partition = !over_both && channel != 0;
  const uint32_t lines = flattened || both ? 1 : by_partition ? replicas : partitions;
  const uint32_t numbers = flattened ? all : by_partition ? partitions : replicas;
  const auto add = [&](int64_t number, uint32_t line, std::vector<uint32_t>* group) {
    if (number < 0 || number >= numbers) return;
    const auto n = static_cast<uint32_t>(number);
    if (flattened) group->push_back(n);
    for (uint32_t i = 0; both && i < partitions; ++i) group->push_back(n * partitions + i);
    if (!flattened && !both) group->push_back(by_partition ? line * partitions + n : n * partitions + line);
  };
  std::vector<std::vector<int64_t>> stated;
  const int64_t* list = collet_integers(p, ids);
  for (uint32_t i = 0; i < ids.count; ++i) {
    if (group_size <= 0 || i % static_cast<uint32_t>(group_size) == 0) stated.emplace_back();
    stated.back().push_back(list[i]);
  }
  const bool named = !stated.empty();
  if (!named) {
    stated.emplace_back();
    for (uint32_t n = 0; n < numbers; ++n) stated[0].push_back(n);
  }
  for (uint32_t line = 0; line < lines; ++line) {
    for (const std::vector<int64_t>& numbers_of_group : stated) {
      std::vector<uint32_t> group;
      for (const int64_t number : numbers_of_group) add(number, line, &group);
      for (const uint32_t member : group) {
        out.group_of[member] = static_cast<uint32_t>(out.groups.size());
        out.listed[member] = 1;
      }
      if (!group.empty()) out.groups.push_back(std::move(group));
    }
  }
  for (uint32_t i = 0; i < all; ++i) {
    if (out.group_of[i] != COLLET_NONE) continue;
    out.group_of[i] = static_cast<uint32_t>(out.groups.size());
    out.groups.push_back({i});
  }
  return out;
}

/** Returns the op that a combination COLLET_COMBINE_* applies; COLLET_NONE if there is none. */
inline uint32_t opcode_of_combine(uint32_t combine) {
  switch (combine) {
    case COLLET_COMBINE_ADD:
      return COLLET_OP_ADD;
    case COLLET_COMBINE_MULTIPLY:
      return COLLET_OP_MULTIPLY;
    case COLLET_COMBINE_MINIMUM:
      return COLLET_OP_MINIMUM;
    case COLLET_COMBINE_MAXIMUM:
      return COLLET_OP_MAXIMUM;
    case COLLET_COMBINE_AND:
      return COLLET_OP_AND;
    case COLLET_COMBINE_OR:
      return COLLET_OP_OR;
    case COLLET_COMBINE_XOR:
      return COLLET_OP_XOR;
    default:
      return COLLET_NONE;
  }
}

/** Returns a program of a single op on two arrays, in the form that a row of the table expects. */
inline std::vector<uint64_t> program_of_two(uint32_t opcode, uint32_t type, uint64_t elements) {
  struct Layout {
    collet_program head;
    collet_type type;
    collet_value values[3];
    collet_op op;
    collet_region region;
    uint32_t refs[4];
    int64_t dims[1];
  };
  std::vector<uint64_t> block((sizeof(Layout) + 7) / 8, 0);
  auto* p = reinterpret_cast<Layout*>(block.data());
  const auto place = [&](collet_array* array, const void* at, uint32_t count, size_t stride) {
    array->offset = static_cast<uint64_t>(static_cast<const char*>(at) - reinterpret_cast<const char*>(p));
    array->count = count;
    array->stride = static_cast<uint32_t>(stride);
  };
  p->head.magic = COLLET_PROGRAM_MAGIC;
  p->head.struct_size = sizeof p->head;
  p->head.total_bytes = block.size() * sizeof(uint64_t);
  p->head.opset = header_opset;
  p->head.replica_count = p->head.partition_count = 1;
  place(&p->head.types, &p->type, 1, sizeof p->type);
  place(&p->head.values, p->values, 3, sizeof p->values[0]);
  place(&p->head.ops, &p->op, 1, sizeof p->op);
  place(&p->head.regions, &p->region, 1, sizeof p->region);
  place(&p->head.refs, p->refs, 3, sizeof p->refs[0]);
  place(&p->head.integers, p->dims, 1, sizeof p->dims[0]);
  p->dims[0] = static_cast<int64_t>(elements);
  p->type.element = type;
  p->type.dims = {0, 1};
  p->type.elements = elements;
  p->type.bytes = elements * collet_type_bytes(type);
  for (uint32_t i = 0; i < 3; ++i) {
    p->values[i].flags = i < 2 ? uint32_t{COLLET_VALUE_ARGUMENT} : 0;
    p->values[i].index = i < 2 ? i : 0;
    p->values[i].offset = COLLET_NONE64;
    p->refs[i] = i;
  }
  p->op.opcode = opcode;
  p->op.since = 1;
  p->op.operands = {0, 2};
  p->op.results = {2, 1};
  p->region.ops = {0, 1};
  p->region.arguments = {0, 2};
  p->region.results = {2, 1};
  p->region.op = COLLET_NONE;
  return block;
}

/** A row that combines two arrays of a collective, and the program of that one op. */
struct Combiner {
  std::vector<uint64_t> block;
  const Kernel* kernel = nullptr;

  const collet_program* program() const { return reinterpret_cast<const collet_program*>(block.data()); }
};

/** A part of an array: `rows` pieces of `bytes` bytes, each `pitch` bytes after the one before. */
struct Part {
  uint64_t start, rows, bytes, pitch;
  bool is_dense() const { return rows <= 1 || pitch == bytes; }
};

/** Returns part `index` of `count` parts along a dimension. */
inline Part part_of(const Array& whole, int64_t dimension, uint64_t index, uint64_t count) {
  uint64_t rows = 1, bytes = collet_type_bytes(whole.type);
  for (uint32_t d = 0; d < whole.rank; ++d) {
    (d < static_cast<uint32_t>(dimension) ? rows : bytes) *= static_cast<uint64_t>(whole.dims[d]);
  }
  const uint64_t piece = bytes / count;
  return {index * piece, rows, piece, bytes};
}

/** Runs a collective for one group. One thread calls the devices of all members, while the members' own threads wait. */
class GroupRun {
 public:
  /** `states` has, for each member, the result of Kernel::prepare for each combiner. */
  GroupRun(const Backend& backend, const CollectiveSpec& spec, const std::vector<Combiner>& combiners,
           const std::vector<uint32_t>& numbers, const std::vector<Member>& members,
           const std::vector<const std::vector<std::any>*>& states)
      : backend_(backend), spec_(spec), combiners_(combiners), numbers_(numbers), members_(members), states_(states) {}

  /** Returns the bytes of scratch memory that each member needs. */
  static uint64_t scratch_bytes(const collet_op* op, const std::vector<Array>& arrays, uint64_t members,
                                uint64_t alignment) {
    if (members == 1) return 0;
    uint64_t most = 0;
    for (uint32_t i = 0; i < op->operands.count; ++i) most = std::max(most, arrays[i].bytes);
    const uint64_t slot = (most + alignment - 1) / alignment * alignment;
    return (op->opcode == COLLET_OP_ALL_REDUCE || op->opcode == COLLET_OP_REDUCE_SCATTER ? members + 1 : 2) * slot;
  }

  void run() {
    const Op& op = members_[0].op;
    if (op.opcode() == COLLET_OP_ALL_TO_ALL && spec_.dimension < 0) {
      settle_all();
      for (uint32_t to = 0; to < count(); ++to) {
        for (uint32_t from = 0; from < count(); ++from) {
          copy_whole(from, members_[from].op.operand(to), to, members_[to].op.result(from));
        }
      }
      return;
    }
    for (uint32_t k = 0; k < op.operand_count(); ++k) {
      settle_all();  // operands are complete, and the scratch memory is no longer read
      if (op.result(k).bytes == 0) continue;
      for (uint32_t to = 0; to < count(); ++to) give(k, to);
    }
  }

 private:
  uint32_t count() const { return static_cast<uint32_t>(members_.size()); }

  void settle_all() {
    for (const Member& member : members_) {
      const uint64_t mark = member.device.mark();
      if (mark != 0) member.device.wait(mark);
    }
  }

  /** Copies to member `to` the parts of operand `k` that it receives. */
  void give(uint32_t k, uint32_t to) {
    const Op& op = members_[to].op;
    switch (op.opcode()) {
      case COLLET_OP_ALL_GATHER:
        for (uint32_t from = 0; from < count(); ++from) {
          const Array& source = members_[from].op.operand(k);
          copy_part(from, source, {0, 1, source.bytes, 0}, to, op.result(k),
                    part_of(op.result(k), spec_.dimension, from, count()));
        }
        return;
      case COLLET_OP_ALL_TO_ALL:
        for (uint32_t from = 0; from < count(); ++from) {
          const Array& source = members_[from].op.operand(k);
          copy_part(from, source, part_of(source, spec_.dimension, to, count()), to, op.result(k),
                    part_of(op.result(k), spec_.dimension, from, count()));
        }
        return;
      case COLLET_OP_COLLECTIVE_PERMUTE: {
        uint32_t source = COLLET_NONE;
        for (size_t i = 0; i + 1 < spec_.pairs.size(); i += 2) {
          const int64_t from = spec_.pairs[i];
          if (spec_.pairs[i + 1] == to && from >= 0 && from < count()) source = static_cast<uint32_t>(from);
        }
        return give_whole(k, source, to);
      }
      case COLLET_OP_COLLECTIVE_BROADCAST:
        return give_whole(k, spec_.listed[numbers_[to]] ? 0 : COLLET_NONE, to);
      default:
        return reduce(k, to);
    }
  }

  void give_whole(uint32_t k, uint32_t from, uint32_t to) {
    const Array& result = members_[to].op.result(k);
    if (from != COLLET_NONE) return copy_whole(from, members_[from].op.operand(k), to, result);
    const std::vector<char> zeros(result.bytes, 0);
    members_[to].device.write(result.memory, result.offset, zeros.data(), zeros.size());
  }

  /** Copies the operands of the other members, and combines all of them in the order of the group. */
  void reduce(uint32_t k, uint32_t to) {
    const Member& me = members_[to];
    const Array& result = me.op.result(k);
    if (count() == 1) return copy_whole(0, me.op.operand(k), 0, result);
    const bool whole = me.op.opcode() == COLLET_OP_ALL_REDUCE;
    std::vector<Array> arrays(count(), result);
    for (uint32_t from = 0; from < count(); ++from) {
      const Array& source = members_[from].op.operand(k);
      if (whole && from == to) {
        arrays[from] = source;
        continue;
      }
      arrays[from].memory = me.op.scratch().memory;
      arrays[from].offset = me.op.scratch().offset + (from + 1) * slot_bytes(me.op);
      const Part part = whole ? Part{0, 1, source.bytes, 0} : part_of(source, spec_.dimension, to, count());
      copy_part(from, source, part, to, arrays[from], {0, 1, result.bytes, 0});
    }
    const Combiner& combiner = combiners_[k];
    OpContext context;
    context.run_id = me.op.run_id();
    context.state = &(*states_[to])[k];
    const collet_program* program = combiner.program();
    Array shape = result;
    shape.rank = 1;
    shape.dims = collet_integers(program, collet_type_at(program, 0)->dims);
    shape.host = nullptr;
    const auto at = [&](const Array& where) {
      Array out = shape;
      out.memory = where.memory;
      out.offset = where.offset;
      return out;
    };
    for (uint32_t from = 1; from < count(); ++from) {
      const Array operands[] = {at(from == 1 ? arrays[0] : result), at(arrays[from]), at(result)};
      combiner.kernel->run(me.device, Op(program, collet_op_at(program, 0), operands, context));
    }
  }

  static uint64_t largest(const Op& op) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < op.operand_count(); ++i) most = std::max(most, op.operand(i).bytes);
    return most;
  }
  uint64_t slot_bytes(const Op& op) const {
    return (largest(op) + backend_.alignment - 1) / backend_.alignment * backend_.alignment;
  }

  void copy_whole(uint32_t from, const Array& source, uint32_t to, const Array& target) {
    copy_part(from, source, {0, 1, source.bytes, 0}, to, target, {0, 1, target.bytes, 0});
  }

  /** Copies a part of an array to another member. Rows that are not adjacent are gathered first, if the backend has a
   * move. */
  void copy_part(uint32_t from, const Array& source, const Part& read, uint32_t to, const Array& target,
                 const Part& write) {
    const uint64_t bytes = read.rows * read.bytes;
    Device &here = members_[from].device, &there = members_[to].device;
    if (bytes == 0) return;
    if (read.is_dense() && write.is_dense()) {
      return copy(here, source.memory, source.offset + read.start, there, target.memory, target.offset + write.start,
                  bytes);
    }
    const uint64_t rows = read.is_dense() ? write.rows : read.rows, row = bytes / rows;
    const uint64_t from_pitch = read.is_dense() ? row : read.pitch, to_pitch = write.is_dense() ? row : write.pitch;
    if (!backend_.move || (&here != &there && members_[to].op.scratch().bytes == 0)) {
      for (uint64_t r = 0; r < rows; ++r) {
        copy(here, source.memory, source.offset + read.start + r * from_pitch, there, target.memory,
             target.offset + write.start + r * to_pitch, row);
      }
      return;
    }
    if (&here == &there) return move(here, source, read.start, from_pitch, target, write.start, to_pitch, rows, row);
    // Slot 0 of the scratch memory holds gathered rows of the source. Slot 1 of the target, or the result itself,
    // receives them.
    Array out = source, in = target;
    uint64_t out_start = read.start, in_start = write.start;
    if (!read.is_dense()) {
      out.memory = members_[from].op.scratch().memory;
      out.offset = members_[from].op.scratch().offset;
      out_start = 0;
      move(here, source, read.start, from_pitch, out, 0, row, rows, row);
    }
    if (!write.is_dense()) {
      in.memory = members_[to].op.scratch().memory;
      in.offset = members_[to].op.scratch().offset + slot_bytes(members_[to].op);
      in_start = 0;
      settle(there);
    }
    copy(here, out.memory, out.offset + out_start, there, in.memory, in.offset + in_start, bytes);
    if (!write.is_dense()) move(there, in, 0, row, target, write.start, to_pitch, rows, row);
  }

  /** Waits until the previous use of a slot has ended. */
  static void settle(Device& device) {
    const uint64_t mark = device.mark();
    if (mark != 0) device.wait(mark);
  }

  void move(Device& device, const Array& source, uint64_t from, uint64_t from_pitch, const Array& target, uint64_t to,
            uint64_t to_pitch, uint64_t rows, uint64_t row) {
    const uint64_t size = collet_type_bytes(source.type);
    const auto elements = [size](uint64_t bytes) { return static_cast<int64_t>(bytes / size); };
    Move move;
    move.element_bytes = static_cast<uint32_t>(size);
    move.from_base = elements(from);
    move.to_base = elements(to);
    move.loops = {{static_cast<int64_t>(rows), elements(from_pitch), elements(to_pitch)}, {elements(row), 1, 1}};
    if (backend_.move && backend_.move(device, move, source, target)) return;
    for (uint64_t r = 0; r < rows; ++r) {
      copy(device, source.memory, source.offset + from + r * from_pitch, device, target.memory,
           target.offset + to + r * to_pitch, row);
    }
  }

  static void copy(Device& from, Memory from_memory, uint64_t from_offset, Device& to, Memory to_memory,
                   uint64_t to_offset, uint64_t bytes) {
    if (&from == &to) {
      if (from_memory != to_memory || from_offset != to_offset) {
        from.copy(to_memory, to_offset, from_memory, from_offset, bytes);
      }
      return;
    }
    if (from.copy_to(to, to_memory, to_offset, from_memory, from_offset, bytes)) return;
    std::vector<char> between(bytes);
    from.read(from_memory, from_offset, between.data(), bytes);
    to.write(to_memory, to_offset, between.data(), bytes);
  }

  const Backend& backend_;
  const CollectiveSpec& spec_;
  const std::vector<Combiner>& combiners_;
  const std::vector<uint32_t>& numbers_;
  const std::vector<Member>& members_;
  const std::vector<const std::vector<std::any>*>& states_;
};

}  // namespace detail
}  // namespace kernel
}  // namespace collet

#endif
