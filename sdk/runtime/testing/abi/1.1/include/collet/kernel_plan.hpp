/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_PLAN_HPP
#define COLLET_KERNEL_PLAN_HPP

/** \file
 * The plan of a program: which kernel runs each op, and where every value is stored. Included by kernel_backend.hpp.
 */

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "kernel_check.hpp"
#include "kernel_collective.hpp"
#include "kernel_shapes.hpp"

namespace collet {
namespace kernel {

namespace detail {

/** The place of a value. A slot is a place that changes in a loop; the run stores which memory it stands for at each
 * time. */
struct Place {
  enum Kind : uint32_t { kNowhere, kArgument, kResult, kWorkspace, kConstant, kSlot };
  Kind kind = kNowhere;
  uint32_t index = 0;  /**< number of the argument, result or slot */
  uint64_t offset = 0; /**< offset in the workspace or in the constants */
  bool operator==(const Place& o) const { return kind == o.kind && index == o.index && offset == o.offset; }
};

/** A value that receives the contents of another one, in a loop or branch. */
struct Transfer {
  uint32_t to;
  uint32_t from;
};

/** One launch, or a loop or branch, which the steps of its regions follow:
 *
 *     kCopy        the first operand's bytes become the first result's
 *     kScalar      the host computes it
 *     kCollective  participants do it together
 *
 *     kLoop     transfers: operands to carried values. Then the condition's steps,
 *     kTest     operands: the predicate. Then the body's steps,
 *     kRepeat     transfers: results of the body to carried values. Then what comes behind the loop.
 *
 *     kBranch   operands: the index or predicate. Then, for each branch, its steps,
 *     kJoin     transfers: results of the branch to those of the conditional. */
struct Step {
  enum Kind : uint32_t { kKernel, kCopy, kScalar, kCollective, kLoop, kTest, kRepeat, kBranch, kJoin };
  Kind kind = kKernel;
  const Kernel* kernel = nullptr;
  uint32_t op = COLLET_NONE;
  std::vector<uint32_t> operands; /**< ids of values */
  std::vector<uint32_t> results;
  size_t end = 0; /**< for a loop or branch: the first step after it */
  /** For a branch: the first step of each alternative; for a loop: the first step of the body. */
  std::vector<size_t> parts = {};
  std::vector<Transfer> transfers = {}; /**< values that are transferred, all at the same time */
  /** The transfers that need a copy, because neither cycles nor shared memory implement them. */
  std::vector<Transfer> copies = {};
  /** For a kRepeat: groups of slots, each of which receives the memory of the next one. */
  std::vector<std::vector<uint32_t>> cycles = {};
  int64_t trips = -1; /**< trip count of a loop; -1: the condition decides */
  /** True for a launch, which reads and writes arrays. */
  bool is_launch() const { return kind <= kCollective; }
};

/** A copy at the end, for results that no step writes in place. */
struct FinalCopy {
  uint32_t value;
  uint32_t result;
  bool staged = false; /**< copied through `stage`, because other final copies may overwrite the source */
  uint64_t stage = 0;
};

/** A constant that is copied to the device once. */
struct Resident {
  uint64_t offset;
  uint64_t bytes;
  const void* data; /**< address in the program block */
};

/** An operand of a step that is kept in a packed form. */
struct Packed {
  size_t step;
  uint32_t argument; /**< number of the entry argument; COLLET_NONE for a constant of the program */
  uint64_t bytes;    /**< bytes of the packed form */
};

/** The data of a collective in addition to its step. */
struct CollectiveStep {
  CollectiveSpec spec;
  std::vector<Combiner> combiners; /**< for reductions: one for each operand */
};

/** The result of compile, which execute interprets. */
struct Plan {
  std::vector<Step> steps;
  std::vector<Place> places;     /**< one for each value of the program */
  std::vector<Place> slots;      /**< what each slot stands for when a run begins */
  std::vector<uint32_t> results; /**< ids of the values that are results */
  std::vector<FinalCopy> final_copies;
  std::vector<Resident> residents;
  std::vector<std::pair<uint32_t, uint64_t>>
      immediates; /**< arguments that may be passed by value, with their places in the workspace */
  std::vector<Packed> packed;
  std::map<size_t, CollectiveStep> collectives; /**< data of collectives by step */
  /** Layouts of entry arguments and results; `bytes` is 0 for a dense one. Empty if all are dense. */
  std::vector<collet_layout> argument_layouts, result_layouts;
  uint64_t workspace_bytes = 0;
  uint64_t resident_bytes = 0;
  uint64_t scratch_offset = 0;
  uint64_t scratch_bytes = 0;
  uint64_t traffic_bytes = 0;
  double estimated_ns = 0; /**< sum of the rows' cost_ns; 0: no row has one */
  double energy_nj = 0;    /**< of a compiler of whole programs; 0: unknown */
  uint64_t cycles = 0;     /**< of a compiler of whole programs; 0: unknown */
  uint32_t kernels = 0;

  /** Returns the layout of an argument or result; null if it is dense. */
  const collet_layout* layout_of(bool is_result, uint32_t index) const {
    const std::vector<collet_layout>& all = is_result ? result_layouts : argument_layouts;
    return index < all.size() && all[index].bytes != 0 ? &all[index] : nullptr;
  }
};

/** Returns the name of an op in records and messages. */
inline std::string record_name(const collet_program* program, const collet_op* op) {
  return std::string(collet_op_name(op->opcode)) + " " + std::string(collet_string(program, op->name), op->name.count);
}

inline uint64_t aligned(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

inline Array array_of(const collet_program* program, uint32_t value) {
  const collet_type* type = collet_value_type(program, value);
  Array array;
  array.type = type->element;
  array.rank = type->dims.count;
  array.dims = collet_integers(program, type->dims);
  array.elements = type->elements;
  array.bytes = type->bytes;
  return array;
}

/** Returns the arrays of an op: operands, then results. */
inline std::vector<Array> arrays_of(const collet_program* program, const collet_op* op) {
  std::vector<Array> arrays;
  for (uint32_t i = 0; i < op->operands.count; ++i) arrays.push_back(array_of(program, collet_operand(program, op, i)));
  for (uint32_t i = 0; i < op->results.count; ++i) arrays.push_back(array_of(program, op->results.first + i));
  return arrays;
}

/** True for ops that only copy bytes, or do nothing. */
inline bool keeps_bytes(uint32_t opcode) {
  return opcode == COLLET_OP_COPY || opcode == COLLET_OP_BITCAST || opcode == COLLET_OP_RESHAPE ||
         opcode == COLLET_OP_OPT_BARRIER;
}

/** True for control flow. A call of a pattern is none. */
inline bool is_control_flow(const collet_program* program, const collet_op* op) {
  if (op->opcode == COLLET_OP_WHILE || op->opcode == COLLET_OP_CONDITIONAL) return true;
  if (op->opcode != COLLET_OP_CALL) return false;
  collet_call_attrs attributes;
  collet_read_attributes(program, op, &attributes, sizeof attributes);
  return attributes.name.count == 0;
}

inline bool is_elementwise(uint32_t opcode) {
  return (collet_op_traits(opcode) & COLLET_OP_ELEMENTWISE) != 0;
}

/** Returns why a program cannot be read; empty if it can. */
inline std::string program_complaint(const collet_program* p) {
  if (p->magic != COLLET_PROGRAM_MAGIC) return "this is not a program";
  if (p->struct_size < sizeof(collet_program)) return "the program's head is too short";
  if (p->flags != 0 || p->reserved[0] != 0 || p->reserved[1] != 0 || p->reserved[2] != 0) {
    return "the program says something that this backend does not know: reserved fields are not zero";
  }
  const struct {
    collet_array array;
    size_t size;
  } all[] = {{p->types, sizeof(collet_type)},
             {p->values, sizeof(collet_value)},
             {p->ops, sizeof(collet_op)},
             {p->regions, sizeof(collet_region)},
             {p->constants, sizeof(collet_constant)},
             {p->aliases, sizeof(collet_alias)},
             {p->refs, sizeof(uint32_t)},
             {p->integers, sizeof(int64_t)},
             {p->records, 1},
             {p->bytes, 1},
             {p->data, 1}};
  for (const auto& one : all) {
    if (one.array.count == 0) continue;
    const uint64_t bytes = static_cast<uint64_t>(one.array.count) * one.array.stride;
    if (one.array.stride != one.size || !collet_has_range(p->total_bytes, one.array.offset, bytes)) {
      return "an array of the program does not lie inside it";
    }
  }
  return p->regions.count == 0 ? "the program has no entry" : "";
}

/** The answer about an op: the row that takes it, or why there is none. */
struct Answer {
  const Kernel* kernel = nullptr;
  bool taken = false;
  std::string reason = {};
  bool expand = false; /**< true if the op should be rewritten into simpler ops */
};

/** Returns the opset that both the backend and this header support. */
inline uint32_t opset_of(const Backend& backend) {
  return std::min(backend.opset, header_opset);
}

/** Types of scalars that the host can compute. */
constexpr TypeSet host_scalar_types = index_types | TypeSet{COLLET_TYPE_PRED};

/** True if the host can compute the op when it knows the operands. */
inline bool is_host_scalar(const collet_op* op, const std::vector<Array>& arrays) {
  for (const Array& array : arrays) {
    if (array.elements != 1 || !host_scalar_types.has(array.type)) return false;
  }
  if (op->results.count != 1 || op->operands.count == 0) return false;
  switch (op->opcode) {
    case COLLET_OP_ADD:
    case COLLET_OP_SUBTRACT:
    case COLLET_OP_MULTIPLY:
    case COLLET_OP_AND:
    case COLLET_OP_OR:
    case COLLET_OP_XOR:
    case COLLET_OP_NOT:
    case COLLET_OP_NEGATE:
    case COLLET_OP_MINIMUM:
    case COLLET_OP_MAXIMUM:
    case COLLET_OP_CLAMP:
    case COLLET_OP_SELECT:
    case COLLET_OP_COMPARE:
    case COLLET_OP_CONVERT:
    case COLLET_OP_RESHAPE:
    case COLLET_OP_COPY:
      return true;
    default:
      return false;
  }
}

/** True for ops that return the participant's number, which the host knows. */
inline bool is_participant_number(uint32_t opcode) {
  return opcode == COLLET_OP_REPLICA_ID || opcode == COLLET_OP_PARTITION_ID;
}

/** Selects the row for each op. `known` is the device's types. If the backend allows it, a fusion is taken and run op by
 * op, and control flow is taken, if all ops inside have kernels. */
class KernelSelector {
 public:
  KernelSelector(const Backend& backend, TypeSet known)
      : kernels_(backend.kernels),
        known_(known),
        fusions_(backend.fusions),
        control_flow_(backend.control_flow),
        host_scalars_(backend.host_scalars),
        collectives_(backend.collectives),
        opset_(opset_of(backend)) {}

  Answer ask(const collet_program* program, uint32_t id) const {
    const collet_op* op = collet_op_at(program, id);
    if (op->flags != 0 || op->reserved != 0 || op->since > opset_) {
      return {nullptr, false, "newer than this backend"};
    }
    const std::vector<Array> arrays = arrays_of(program, op);
    if (const char* complaint = array_complaint(program, op, arrays)) return {nullptr, false, complaint};
    const Op view(program, op, arrays.data());
    // The most specific refusal among all rows is reported; the first one with a reason from `takes` wins.
    enum Refusal { kNoRow, kTypes, kUnsaid, kSaid } refusal = kNoRow;
    std::string reason = "no kernel";
    bool expand = false;
    const auto refuse = [&](Refusal kind, const std::string& text) {
      if (kind <= refusal) return;
      refusal = kind;
      reason = text;
    };
    const std::string pattern = view.pattern(), target = view.target();
    const auto needed = pattern.empty() ? 0 : static_cast<uint32_t>(view.pattern_number("features", 0));
    for (const Kernel& kernel : kernels_) {
      if (kernel.opcode != op->opcode || !is_pattern(kernel, view, pattern)) continue;
      if (!kernel.target.empty() && kernel.target != target) continue;
      if (!have_types(kernel, view)) {
        refuse(kTypes, "no kernel for these element types");
        continue;
      }
      if ((needed & ~kernel.features) != 0) {
        refuse(kUnsaid, "a group with attributes that Kernel::features does not state");
        continue;
      }
      const Verdict answer = kernel.takes ? kernel.takes(view) : op->regions.count == 0 || !pattern.empty();
      if (answer) return {&kernel, true, {}};
      expand |= answer.wants_expansion();
      if (answer.reason().empty()) {
        refuse(kUnsaid, "no kernel for these attributes or shapes");
      } else {
        refuse(kSaid, answer.reason());
      }
    }
    if (keeps_bytes(op->opcode) && op->operands.count == 1 && op->results.count == 1 &&
        arrays[0].type == arrays[1].type && arrays[0].bytes == arrays[1].bytes) {
      return {nullptr, true, {}};
    }
    if (op->opcode == COLLET_OP_CONSTANT) return {nullptr, true, {}};
    if (host_scalars_ && is_host_scalar(op, arrays)) return {nullptr, true, {}};
    if (collectives_ && is_participant_number(op->opcode)) return {nullptr, true, {}};
    if (collectives_ && is_collective(op->opcode)) {
      const std::string complaint = collective_complaint(program, op, arrays);
      return {nullptr, complaint.empty(), complaint};
    }
    if (op->opcode == COLLET_OP_FUSION && fusions_) return ask_regions(program, op);
    if (control_flow_ && is_control_flow(program, op)) return ask_regions(program, op);
    return {nullptr, false, reason, expand};
  }

  /** Returns the name of a row of the table in messages. */
  std::string row_name(const Kernel* row) const {
    return detail::row_name(static_cast<size_t>(row - kernels_.data()), *row);
  }

 private:
  const char* array_complaint(const collet_program* program, const collet_op* op,
                              const std::vector<Array>& arrays) const {
    for (uint32_t i = 0; i < op->operands.count; ++i) {
      if (collet_value_type(program, collet_operand(program, op, i))->layout != 0) return "a layout";
    }
    for (uint32_t i = 0; i < op->results.count; ++i) {
      if (collet_value_type(program, op->results.first + i)->layout != 0) return "a layout";
    }
    for (const Array& array : arrays) {
      if (!known_.has(array.type) || collet_type_bytes(array.type) == 0) return "an element type that the device lacks";
    }
    return nullptr;
  }

  /** True if a row for a call is for this pattern, by the pattern's name, or by its name, "@" and its version. */
  static bool is_pattern(const Kernel& kernel, const Op& op, const std::string& name) {
    if (op.opcode() != COLLET_OP_CALL) return true;
    if (name.empty()) return kernel.pattern.empty();
    if (kernel.pattern == name) return true;
    return kernel.pattern == name + "@" + std::to_string(op.attributes<collet_call_attrs>().version);
  }

  static bool have_types(const Kernel& kernel, const Op& op) {
    for (uint32_t i = 0; i < op.operand_count(); ++i) {
      if (!kernel.operands.has(op.operand(i).type)) return false;
    }
    for (uint32_t i = 0; i < op.result_count(); ++i) {
      if (!kernel.results.has(op.result(i).type)) return false;
    }
    return true;
  }

  Answer ask_regions(const collet_program* program, const collet_op* op) const {
    for (uint32_t r = 0; r < op->regions.count; ++r) {
      const collet_region* region = collet_region_at(program, op->regions.first + r);
      for (uint32_t i = 0; i < region->ops.count; ++i) {
        const Answer answer = ask(program, region->ops.first + i);
        if (answer.taken) continue;
        return {nullptr, false,
                std::string(collet_op_name(collet_op_at(program, region->ops.first + i)->opcode)) + " of the " +
                    collet_op_name(op->opcode) + ": " + answer.reason};
      }
    }
    return {nullptr, true, {}};
  }

  /** Returns why the helper cannot run a collective; empty if it can. */
  std::string collective_complaint(const collet_program* program, const collet_op* op,
                                   const std::vector<Array>& arrays) const {
    if (op->operands.count != op->results.count) return "results that are no operands";
    const CollectiveSpec spec = collective_of(program, op);
    const bool cuts = spec.dimension >= 0 && op->opcode == COLLET_OP_ALL_TO_ALL;
    for (const std::vector<uint32_t>& group : spec.groups) {
      const uint64_t size = group.size();
      if (op->opcode == COLLET_OP_ALL_TO_ALL && !cuts && op->operands.count != size) return "a group of another size";
      for (uint32_t k = 0; k < op->operands.count; ++k) {
        const Array &from = arrays[k], &to = arrays[op->operands.count + k];
        if (from.type != to.type) return "a result of another element type";
        const uint64_t times = op->opcode == COLLET_OP_ALL_GATHER ? size : 1;
        const uint64_t parts = op->opcode == COLLET_OP_REDUCE_SCATTER ? size : 1;
        if (from.elements * times != to.elements * parts) return "a group of another size";
        if (cuts && static_cast<uint64_t>(from.dims[spec.dimension]) % size != 0) return "a group of another size";
      }
    }
    std::vector<Combiner> combiners;
    return find_combiners(program, op, arrays, &combiners);
  }

 public:
  /** Finds the rows that combine the operands of a reduction. Returns why there are none; empty if they were found. */
  std::string find_combiners(const collet_program* program, const collet_op* op, const std::vector<Array>& arrays,
                             std::vector<Combiner>* out) const {
    if (op->opcode != COLLET_OP_ALL_REDUCE && op->opcode != COLLET_OP_REDUCE_SCATTER) return {};
    const uint32_t opcode = opcode_of_combine(collet_region_at(program, op->regions.first)->combine);
    if (opcode == COLLET_NONE) return "a reduction that is no single op";
    for (uint32_t k = 0; k < op->results.count; ++k) {
      const Array& to = arrays[op->operands.count + k];
      Combiner one;
      one.block = program_of_two(opcode, to.type, to.elements);
      const Answer answer = ask(one.program(), 0);
      one.kernel = answer.kernel;
      if (!one.kernel || !one.kernel->run || one.kernel->scratch) {
        return std::string("no ") + collet_op_name(opcode) + " of such arrays to combine with";
      }
      out->push_back(std::move(one));
    }
    return {};
  }

 private:
  const std::vector<Kernel>& kernels_;
  TypeSet known_;
  bool fusions_, control_flow_, host_scalars_, collectives_;
  uint32_t opset_;
};

}  // namespace detail
}  // namespace kernel
}  // namespace collet

#endif
