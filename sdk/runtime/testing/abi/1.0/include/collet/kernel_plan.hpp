/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_PLAN_HPP
#define COLLET_KERNEL_PLAN_HPP

/** \file
 * From a program to a list of launches: which kernel runs each op, and where every value lies. The SDK's schedule is kept,
 * and its places in the arena are used where they hold what they promise. Included by kernel_backend.hpp.
 */

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "kernel_describe.hpp"
#include "kernel_shapes.hpp"

namespace collet {
namespace kernel {

namespace detail {

/** Where a value lies. */
struct Place {
  enum Kind : uint32_t { kNowhere, kArgument, kResult, kWorkspace, kConstant };
  Kind kind = kNowhere;
  uint32_t index = 0;  /**< of the argument or result */
  uint64_t offset = 0; /**< in the workspace or among the constants */
  bool operator==(const Place& o) const { return kind == o.kind && index == o.index && offset == o.offset; }
};

/** One launch. No kernel: the first operand's bytes become the first result's. */
struct Step {
  const Kernel* kernel = nullptr;
  uint32_t op = COLLET_NONE;
  std::vector<uint32_t> operands; /**< values */
  std::vector<uint32_t> results;
};

/** A copy at the end, for results that no step writes in place. */
struct FinalCopy {
  uint32_t value;
  uint32_t result;
  bool staged = false; /**< by way of `stage`, since other final copies may overwrite the source */
  uint64_t stage = 0;
};

/** A constant to be put on the device once. */
struct Resident {
  uint64_t offset;
  uint64_t bytes;
  const void* data; /**< in the program block */
};

/** An operand of a step that is kept in a form of its own. */
struct Packed {
  size_t step;
  uint32_t argument; /**< the entry argument that it is; COLLET_NONE: a constant of the program */
  uint64_t bytes;    /**< of the packed form */
};

/** What compile works out and execute follows. */
struct Plan {
  std::vector<Step> steps;
  std::vector<Place> places; /**< one per value of the program */
  std::vector<FinalCopy> final_copies;
  std::vector<Resident> residents;
  std::vector<std::pair<uint32_t, uint64_t>>
      immediates; /**< argument, and its place in the workspace if it comes by value */
  std::vector<Packed> packed;
  /** Of entry arguments and results; `bytes` 0: dense. Empty where all are. */
  std::vector<collet_layout> argument_layouts, result_layouts;
  uint64_t workspace_bytes = 0;
  uint64_t resident_bytes = 0;
  uint64_t scratch_offset = 0;
  uint64_t scratch_bytes = 0;
  uint64_t traffic_bytes = 0;
  uint32_t kernels = 0;
};

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

/** Operands, then results. */
inline std::vector<Array> arrays_of(const collet_program* program, const collet_op* op) {
  std::vector<Array> arrays;
  for (uint32_t i = 0; i < op->operands.count; ++i) arrays.push_back(array_of(program, collet_operand(program, op, i)));
  for (uint32_t i = 0; i < op->results.count; ++i) arrays.push_back(array_of(program, op->results.first + i));
  return arrays;
}

/** Ops that are a copy of bytes, or nothing at all. */
inline bool keeps_bytes(uint32_t opcode) {
  return opcode == COLLET_OP_COPY || opcode == COLLET_OP_BITCAST || opcode == COLLET_OP_RESHAPE ||
         opcode == COLLET_OP_OPT_BARRIER;
}

inline bool is_elementwise(uint32_t opcode) {
  switch (opcode) {
#define COLLET_OP(id, NAME, text, CLASS, family, min, max, Record, REGIONS, TYPES, traits, ulp, since) \
  case id:                                                                                             \
    return ((traits) & COLLET_OP_ELEMENTWISE) != 0;
#include "ops.def"
    default:
      return false;
  }
}

/** Why a program cannot be read at all; empty when it can. */
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
    if (one.array.stride != one.size || one.array.offset > p->total_bytes ||
        bytes > p->total_bytes - one.array.offset) {
      return "an array of the program does not lie inside it";
    }
  }
  return p->regions.count == 0 ? "the program has no entry" : "";
}

/** What is said of an op. */
struct Answer {
  const Kernel* kernel = nullptr;
  bool taken = false;
  std::string reason = {};
};

/** The opset of a backend: what both the vendor and this header know. */
inline uint32_t opset_of(const Backend& backend) {
  return std::min(backend.opset, header_opset);
}

/** Asks the table. `known`: the device's types. A fusion whose ops all have kernels is run op by op where the backend wants
 * that. */
class Chooser {
 public:
  Chooser(const Backend& backend, TypeSet known)
      : kernels_(backend.kernels), known_(known), fusions_(backend.fusions), opset_(opset_of(backend)) {}

  Answer ask(const collet_program* program, uint32_t id) const {
    const collet_op* op = collet_op_at(program, id);
    if (op->flags != 0 || op->reserved != 0 || op->since > opset_) {
      return {nullptr, false, "newer than this backend"};
    }
    const std::vector<Array> arrays = arrays_of(program, op);
    if (const char* complaint = array_complaint(program, op, arrays)) return {nullptr, false, complaint};
    const Op view(program, op, arrays.data());
    std::string reason = "no kernel";
    const std::string pattern = view.pattern();
    for (const Kernel& kernel : kernels_) {
      if (kernel.opcode != op->opcode || !is_pattern(kernel, view, pattern)) continue;
      if (!have_types(kernel, view)) {
        if (reason == "no kernel") reason = "no kernel for these element types";
        continue;
      }
      const Taken answer = kernel.takes ? kernel.takes(view) : op->regions.count == 0 || !pattern.empty();
      if (answer) return {&kernel, true, {}};
      reason = answer.reason().empty() ? "no kernel for these attributes or shapes" : answer.reason();
    }
    if (keeps_bytes(op->opcode) && op->operands.count == 1 && op->results.count == 1 &&
        arrays[0].type == arrays[1].type && arrays[0].bytes == arrays[1].bytes) {
      return {nullptr, true, {}};
    }
    if (op->opcode == COLLET_OP_CONSTANT) return {nullptr, true, {}};
    if (op->opcode == COLLET_OP_FUSION && fusions_) return ask_region(program, op->regions.first);
    return {nullptr, false, reason};
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

  /** A row for a call is one for a pattern, by its name, or its name, "@" and its version. */
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

  Answer ask_region(const collet_program* program, uint32_t id) const {
    const collet_region* region = collet_region_at(program, id);
    for (uint32_t i = 0; i < region->ops.count; ++i) {
      const Answer answer = ask(program, region->ops.first + i);
      if (!answer.taken) {
        return {nullptr, false,
                std::string(collet_op_name(collet_op_at(program, region->ops.first + i)->opcode)) +
                    " of the fusion: " + answer.reason};
      }
    }
    return {nullptr, true, {}};
  }

  const std::vector<Kernel>& kernels_;
  TypeSet known_;
  bool fusions_;
  uint32_t opset_;
};

/** Makes a Plan. One use. */
class Planner {
 public:
  Planner(const collet_program* program, const Chooser& chooser, uint64_t alignment)
      : p_(program), chooser_(chooser), alignment_(alignment), same_(program->values.count) {
    plan_.places.resize(program->values.count);
    for (uint32_t i = 0; i < same_.size(); ++i) same_[i] = i;
  }

  /** Ops that no kernel takes are added to `rejected`, and then there is no plan. */
  Plan make(std::vector<uint32_t>* rejected) {
    const collet_region* entry = collet_region_at(p_, 0);
    for (uint32_t i = 0; i < entry->arguments.count; ++i) {
      plan_.places[entry->arguments.first + i] = {Place::kArgument, i, 0};
    }
    lower(entry, rejected);
    if (!rejected->empty()) return {};
    measure_lives(entry);
    place_results(entry);
    place_intermediates();
    place_immediates(entry);
    choose_forms(entry);
    for (FinalCopy& copy : plan_.final_copies) {
      if (copy.staged) copy.stage = take(collet_value_type(p_, copy.value)->bytes);
    }
    plan_.scratch_offset = take(plan_.scratch_bytes);
    return std::move(plan_);
  }

 private:
  static constexpr size_t kNever = SIZE_MAX;
  struct Life {
    size_t first = kNever;  // the step that writes it
    size_t last = 0;        // the last step that reads it
    bool read = false;
  };

  /** Room at the end of the workspace. */
  uint64_t take(uint64_t bytes) {
    const uint64_t offset = aligned(plan_.workspace_bytes, alignment_);
    if (bytes != 0) plan_.workspace_bytes = offset + bytes;
    return offset;
  }

  bool is_placed(uint32_t value) const { return plan_.places[value].kind != Place::kNowhere; }

  void lower(const collet_region* region, std::vector<uint32_t>* rejected) {
    for (uint32_t i = 0; i < region->ops.count; ++i) {
      const uint32_t id = region->ops.first + i;
      const Answer answer = chooser_.ask(p_, id);
      const collet_op* op = collet_op_at(p_, id);
      if (!answer.taken) {
        rejected->push_back(id);
      } else if (answer.kernel || keeps_bytes(op->opcode)) {
        add_step(answer.kernel, id);
      } else if (op->opcode == COLLET_OP_CONSTANT) {
        add_constant(op);
      } else {
        lower_fusion(op, rejected);
      }
    }
  }

  void add_step(const Kernel* kernel, uint32_t id) {
    const collet_op* op = collet_op_at(p_, id);
    const std::vector<Array> arrays = arrays_of(p_, op);
    Step step;
    step.kernel = kernel;
    step.op = id;
    for (uint32_t i = 0; i < op->operands.count; ++i) step.operands.push_back(same_[collet_operand(p_, op, i)]);
    uint64_t elements = 0;
    for (uint32_t i = 0; i < op->results.count; ++i) {
      step.results.push_back(op->results.first + i);
      elements += arrays[op->operands.count + i].elements;
    }
    if (elements == 0) return;  // nothing to write
    if (kernel && kernel->scratch) {
      plan_.scratch_bytes = std::max(plan_.scratch_bytes, kernel->scratch(Op(p_, op, arrays.data())));
    }
    for (const Array& array : arrays) plan_.traffic_bytes += array.bytes;
    ++plan_.kernels;
    plan_.steps.push_back(std::move(step));
  }

  void add_constant(const collet_op* op) {
    collet_constant_attrs attributes;
    collet_read_attributes(p_, op, &attributes, sizeof attributes);
    const collet_constant* constant = collet_constant_at(p_, attributes.constant);
    const uint64_t offset = aligned(plan_.resident_bytes, alignment_);
    plan_.places[op->results.first] = {Place::kConstant, 0, offset};
    if (constant->bytes == 0) return;
    plan_.residents.push_back({offset, constant->bytes, collet_constant_data(p_, constant)});
    plan_.resident_bytes = offset + constant->bytes;
  }

  void lower_fusion(const collet_op* op, std::vector<uint32_t>* rejected) {
    const collet_region* region = collet_region_at(p_, op->regions.first);
    for (uint32_t i = 0; i < region->arguments.count; ++i) {
      same_[region->arguments.first + i] = same_[collet_operand(p_, op, i)];
    }
    lower(region, rejected);
    for (uint32_t i = 0; i < op->results.count; ++i) {
      same_[op->results.first + i] = same_[collet_ref_at(p_, region->results.first + i)];
    }
  }

  void measure_lives(const collet_region* entry) {
    lives_.resize(p_->values.count);
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      for (uint32_t value : plan_.steps[s].operands) lives_[value].last = s, lives_[value].read = true;
      for (uint32_t value : plan_.steps[s].results) lives_[value] = {s, s, false};
    }
    for (uint32_t r = 0; r < entry->results.count; ++r) {
      Life& life = lives_[same_[collet_ref_at(p_, entry->results.first + r)]];
      life.last = kNever - 1;  // read after the last step
      life.read = true;
    }
  }

  /** May step `s` write over `value`, which it reads, where both begin at the same place and have as many bytes? */
  bool may_overwrite(const Step& step, uint32_t value) const {
    const uint32_t opcode = collet_op_at(p_, step.op)->opcode;
    if (!step.kernel || is_elementwise(opcode)) {
      return collet_value_type(p_, value)->bytes == collet_value_type(p_, step.results[0])->bytes;
    }
    return opcode == COLLET_OP_DYNAMIC_UPDATE_SLICE && step.operands[0] == value &&
           std::count(step.operands.begin(), step.operands.end(), value) == 1;
  }

  /** Results that a step can write at once get their place; the others are copied at the end. */
  void place_results(const collet_region* entry) {
    for (uint32_t r = 0; r < entry->results.count; ++r) {
      const uint32_t value = same_[collet_ref_at(p_, entry->results.first + r)];
      const bool by_step = lives_[value].first != kNever && !is_placed(value);
      if (by_step && may_write_early(entry, r, value)) {
        plan_.places[value] = {Place::kResult, r, 0};
      } else if (collet_value_type(p_, value)->bytes != 0) {
        plan_.final_copies.push_back({value, r});
      }
    }
    for (FinalCopy& copy : plan_.final_copies) {
      const Place& place = plan_.places[copy.value];
      copy.staged = place.kind == Place::kArgument && is_aliased_elsewhere(place.index, copy.result);
    }
  }

  /** A result's buffer may be an argument's: then it is written once nobody reads the argument any more. */
  bool may_write_early(const collet_region* entry, uint32_t result, uint32_t value) const {
    for (uint32_t i = 0; i < p_->aliases.count; ++i) {
      const collet_alias* alias = collet_alias_at(p_, i);
      if (alias->result != result) continue;
      const uint32_t argument = entry->arguments.first + alias->argument;
      const size_t read = lives_[argument].last, written = lives_[value].first;
      if (!lives_[argument].read || read < written) continue;
      if (read > written || !may_overwrite(plan_.steps[written], argument)) return false;
    }
    return true;
  }

  bool is_aliased_elsewhere(uint32_t argument, uint32_t result) const {
    for (uint32_t i = 0; i < p_->aliases.count; ++i) {
      const collet_alias* alias = collet_alias_at(p_, i);
      if (alias->argument == argument && alias->result != result) return true;
    }
    return false;
  }

  /** The SDK's places where they hold; else places of our own. */
  void place_intermediates() {
    std::vector<uint32_t> advised, others;
    for (const Step& step : plan_.steps) {
      for (uint32_t value : step.results) {
        if (is_placed(value) || collet_value_type(p_, value)->bytes == 0) continue;
        (collet_value_at(p_, value)->offset == COLLET_NONE64 ? others : advised).push_back(value);
      }
    }
    if (advice_holds(advised)) {
      for (uint32_t value : advised) {
        plan_.places[value] = {Place::kWorkspace, 0, collet_value_at(p_, value)->offset};
      }
      plan_.workspace_bytes = advised.empty() ? 0 : p_->arena_bytes;
    } else {
      others.insert(others.end(), advised.begin(), advised.end());
      std::sort(others.begin(), others.end(),
                [&](uint32_t a, uint32_t b) { return lives_[a].first < lives_[b].first; });
    }
    place_by_lives(others);
  }

  /** No two values that are needed at once may overlap, but where a step may write over what it reads. */
  bool advice_holds(const std::vector<uint32_t>& values) const {
    if (p_->arena_alignment != 0 && alignment_ % p_->arena_alignment != 0 && p_->arena_alignment % alignment_ != 0) {
      return false;
    }
    std::vector<uint32_t> live;
    for (uint32_t value : values) {
      const size_t now = lives_[value].first;
      const uint64_t begin = collet_value_at(p_, value)->offset, bytes = collet_value_type(p_, value)->bytes;
      if (begin % alignment_ != 0 || begin > p_->arena_bytes || bytes > p_->arena_bytes - begin) return false;
      live.erase(std::remove_if(live.begin(), live.end(), [&](uint32_t other) { return lives_[other].last < now; }),
                 live.end());
      for (uint32_t other : live) {
        const uint64_t other_begin = collet_value_at(p_, other)->offset;
        if (begin >= other_begin + collet_value_type(p_, other)->bytes || other_begin >= begin + bytes) continue;
        const Step& step = plan_.steps[now];
        const bool reads = std::find(step.operands.begin(), step.operands.end(), other) != step.operands.end();
        const bool dies = lives_[other].last == now || !step.kernel;
        if (!reads || !dies || begin != other_begin || !may_overwrite(step, other)) return false;
      }
      live.push_back(value);
    }
    return true;
  }

  /** First fit, in order of birth, behind what the workspace holds already. */
  void place_by_lives(const std::vector<uint32_t>& values) {
    const uint64_t base = aligned(plan_.workspace_bytes, alignment_);
    std::multimap<size_t, std::pair<uint64_t, uint64_t>> busy;  // last step -> begin, end
    for (uint32_t value : values) {
      busy.erase(busy.begin(), busy.lower_bound(lives_[value].first));
      std::vector<std::pair<uint64_t, uint64_t>> taken;
      for (const auto& entry : busy) taken.push_back(entry.second);
      std::sort(taken.begin(), taken.end());
      const uint64_t bytes = collet_value_type(p_, value)->bytes;
      uint64_t begin = base;
      for (const auto& piece : taken) {
        if (begin + bytes <= piece.first) break;
        begin = std::max(begin, aligned(piece.second, alignment_));
      }
      plan_.places[value] = {Place::kWorkspace, 0, begin};
      plan_.workspace_bytes = std::max(plan_.workspace_bytes, begin + bytes);
      busy.emplace(lives_[value].last, std::make_pair(begin, begin + bytes));
    }
  }

  void place_immediates(const collet_region* entry) {
    for (uint32_t i = 0; i < entry->arguments.count; ++i) {
      const uint32_t value = entry->arguments.first + i;
      if ((collet_value_at(p_, value)->flags & COLLET_VALUE_SCALAR) == 0) continue;
      plan_.immediates.emplace_back(i, take(collet_value_type(p_, value)->bytes));
    }
  }

  bool is_aliased(uint32_t argument) const {
    for (uint32_t i = 0; i < p_->aliases.count; ++i) {
      if (collet_alias_at(p_, i)->argument == argument) return true;
    }
    return false;
  }
  bool is_result_aliased(uint32_t result) const {
    for (uint32_t i = 0; i < p_->aliases.count; ++i) {
      if (collet_alias_at(p_, i)->result == result) return true;
    }
    return false;
  }

  /** Arguments and results that one kernel alone reads or writes may have the form that it likes. */
  void choose_forms(const collet_region* entry) {
    std::vector<uint32_t> uses(p_->values.count, 0);
    for (const Step& step : plan_.steps) {
      for (uint32_t value : step.operands) ++uses[value];
    }
    for (uint32_t r = 0; r < entry->results.count; ++r) ++uses[same_[collet_ref_at(p_, entry->results.first + r)]];
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      if (!step.kernel || (!step.kernel->packing.bytes && !step.kernel->layout)) continue;
      const collet_op* op = collet_op_at(p_, step.op);
      const std::vector<Array> arrays = arrays_of(p_, op);
      const Op view(p_, op, arrays.data());
      if (step.kernel->packing.bytes) choose_packing(s, view, uses);
      if (step.kernel->layout) choose_layouts(entry, step, view, uses);
    }
  }

  void choose_packing(size_t s, const Op& view, const std::vector<uint32_t>& uses) {
    const Step& step = plan_.steps[s];
    if (step.kernel->packing.operand >= step.operands.size()) return;
    const uint32_t value = step.operands[step.kernel->packing.operand];
    const Place& place = plan_.places[value];
    const bool argument = place.kind == Place::kArgument && uses[value] == 1 && !is_aliased(place.index) &&
                          (collet_value_at(p_, value)->flags & COLLET_VALUE_SCALAR) == 0;
    if (!argument && place.kind != Place::kConstant) return;
    const uint64_t bytes = step.kernel->packing.bytes(view);
    if (bytes != 0) plan_.packed.push_back({s, argument ? place.index : COLLET_NONE, bytes});
  }

  void choose_layouts(const collet_region* entry, const Step& step, const Op& view, const std::vector<uint32_t>& uses) {
    const auto set = [&](std::vector<collet_layout>* layouts, uint32_t count, uint32_t at, uint32_t index) {
      collet_layout layout{};
      step.kernel->layout(view, index, &layout);
      if (layout.bytes == 0) return;
      layouts->resize(count);
      (*layouts)[at] = layout;
    };
    for (uint32_t i = 0; i < step.operands.size(); ++i) {
      const uint32_t value = step.operands[i];
      const Place& place = plan_.places[value];
      if (place.kind != Place::kArgument || uses[value] != 1 || is_aliased(place.index) || view.operand(i).bytes == 0)
        continue;
      if ((collet_value_at(p_, value)->flags & (COLLET_VALUE_SCALAR | COLLET_VALUE_CONSTANT)) != 0) continue;
      set(&plan_.argument_layouts, entry->arguments.count, place.index, i);
    }
    for (uint32_t i = 0; i < step.results.size(); ++i) {
      const Place& place = plan_.places[step.results[i]];
      if (place.kind != Place::kResult || uses[step.results[i]] != 1 || is_result_aliased(place.index) ||
          view.result(i).bytes == 0)
        continue;
      set(&plan_.result_layouts, entry->results.count, place.index, view.operand_count() + i);
    }
  }

  const collet_program* p_;
  const Chooser& chooser_;
  uint64_t alignment_;
  std::vector<uint32_t> same_;  // value -> the value that it is another name of
  std::vector<Life> lives_;
  Plan plan_;
};

}  // namespace detail
}  // namespace kernel
}  // namespace collet

#endif
