/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_RUN_HPP
#define COLLET_KERNEL_RUN_HPP

/** \file
 * Runs one launch of a planned program: starts the steps in order, and interprets loops and branches. Included by
 * kernel_backend.hpp.
 */

#include <tuple>

#include "kernel_queue.hpp"
#include "kernel_rendezvous.hpp"
#include "kernel_scalars.hpp"

namespace collet {
namespace kernel {
namespace detail {

/** The state of an executable on one device. */
struct OnDevice {
  std::vector<OwnedMemory> constants;                  // the memory of the constants, if there are any
  std::vector<std::pair<size_t, OwnedMemory>> packed;  // packed operands by step
  std::vector<std::any> states;                        // results of Kernel::prepare by step
  std::map<size_t, std::vector<std::any>> combiners;   // results of Kernel::prepare for the combiners of each step
  std::unique_ptr<DeviceProgram> program;              // the loaded program, if it was compiled as a whole
};

/** The inputs of a run. All of them outlive the run. */
struct RunParts {
  const collet_program* program;
  const Plan& plan;
  const std::vector<Array>& arrays;
  const std::vector<size_t>& first_array;
  const HostScalars& scalars;
  const OnDevice& here;
  Device& device;
  const collet_launch& launch;
  uint64_t run_id;
  const std::atomic<bool>* stop;  // null, or set when the run should end early
  bool* spoilt;                   // set when an argument may have been overwritten
  const Backend& backend;
  Rendezvous* rendezvous;                     // null if no participants wait for each other
  std::unique_lock<std::mutex>* serial_lock;  // held while devices are called
};

/** A run. An object is used once. */
class Run {
 public:
  explicit Run(const RunParts& parts)
      : c_(parts), device_(parts.device), launch_(parts.launch), arrays_(parts.arrays), slots_(parts.plan.slots) {
    context_.run_id = c_.run_id;
    if (c_.plan.scratch_bytes != 0) {
      std::tie(context_.scratch.memory, context_.scratch.offset) =
          locate(Place{Place::kWorkspace, 0, c_.plan.scratch_offset});
      context_.scratch.bytes = c_.plan.scratch_bytes;
    }
    if (!c_.scalars.is_empty()) states_ = c_.scalars.begin(launch_.arguments);
  }

  /** Starts all steps. */
  void all() {
    write_immediates();
    run(0, c_.plan.steps.size());
    if (is_stopped()) return;
    copy_results();
    if (pace_mark_ != 0) device_.wait(pace_mark_);
  }

 private:
  using Where = std::pair<Memory, uint64_t>;

  bool is_stopped() const { return c_.stop && *c_.stop; }
  const collet_op* op_of(const Step& step) const { return collet_op_at(c_.program, step.op); }
  uint64_t bytes_of(uint32_t value) const { return collet_value_type(c_.program, value)->bytes; }

  void run(size_t begin, size_t end) {
    for (size_t s = begin; s < end && !is_stopped();) {
      const Step& step = c_.plan.steps[s];
      if (step.kind == Step::kLoop) {
        loop(s);
      } else if (step.kind == Step::kBranch) {
        branch(s);
      } else if (step.is_launch()) {
        start(s);
      }
      s = std::max(s + 1, step.end);
    }
  }

  void loop(size_t s) {
    const Step& step = c_.plan.steps[s];
    const size_t body = step.parts[0], repeat = step.end - 1;
    transfer(step, step.transfers);
    for (int64_t trip = 0; step.trips < 0 || trip < step.trips; ++trip) {
      run(s + 1, body - 1);
      if (is_stopped() || (step.trips < 0 && number(c_.plan.steps[body - 1].operands[0]) == 0)) return;
      run(body, repeat);
      if (is_stopped()) return;
      exchange(c_.plan.steps[repeat]);
      pace();
    }
  }

  void branch(size_t s) {
    const Step& step = c_.plan.steps[s];
    const uint32_t value = step.operands[0];
    const auto chosen = static_cast<int64_t>(number(value));
    const auto last = static_cast<int64_t>(step.parts.size()) - 1;
    int64_t part = chosen < 0 || chosen > last ? last : chosen;
    if (collet_value_type(c_.program, value)->element == COLLET_TYPE_PRED) part = chosen != 0 ? 0 : 1;
    const auto at = static_cast<size_t>(part);
    const size_t join = (at + 1 < step.parts.size() ? step.parts[at + 1] : step.end) - 1;
    run(step.parts[at], join);
    if (!is_stopped()) exchange(c_.plan.steps[join]);
  }

  /** Limits how much work is queued: a loop of many iterations would otherwise fill the memory with it. Also ends a loop
   * whose work has failed. */
  void pace() {
    constexpr uint32_t kIterations = 64;
    if (++iterations_ % kIterations != 0) return;
    const uint64_t mark = device_.mark();
    const uint64_t before = pace_mark_;
    pace_mark_ = mark;
    if (before != 0) device_.wait(before);
  }

  /** Returns the bits of a scalar, which are read from the device if the host does not know them. */
  uint64_t number(uint32_t value) {
    const ScalarState* state = c_.scalars.find(value, &states_);
    if (state && state->known) return state->bits;
    complete(&device_);
    char data[16] = {};
    const Where at = locate(value);
    device_.read(at.first, at.second, data, bytes_of(value));
    return HostScalars::load(collet_value_type(c_.program, value)->element, data);
  }

  /** Exchanges or copies variables at the end of an iteration or a branch. */
  void exchange(const Step& step) {
    for (const std::vector<uint32_t>& cycle : step.cycles) {
      const Place first = slots_[cycle[0]];
      for (size_t i = 0; i + 1 < cycle.size(); ++i) slots_[cycle[i]] = slots_[cycle[i + 1]];
      slots_[cycle.back()] = first;
    }
    transfer(step, step.copies);
  }

  /** Moves the scalars that the host knows with all transfers of the step, at the same time; `copies` are copied on the
   * device. */
  void transfer(const Step& step, const std::vector<Transfer>& copies) {
    moved_.clear();
    for (const Transfer& one : step.transfers) {
      const ScalarState* from = c_.scalars.find(one.from, &states_);
      moved_.push_back(from ? *from : ScalarState{});
    }
    for (const Transfer& one : copies) {
      const ScalarState* to = c_.scalars.find(one.to, &states_);
      const ScalarState* from = to ? source(step, one.to) : nullptr;
      if (!from || from->on_device) copy(locate(one.from), locate_for_writing(one.to), bytes_of(one.to));
    }
    for (size_t i = 0; i < step.transfers.size(); ++i) {
      if (ScalarState* to = c_.scalars.find(step.transfers[i].to, &states_)) *to = moved_[i];
    }
  }

  const ScalarState* source(const Step& step, uint32_t to) const {
    for (size_t i = 0; i < step.transfers.size(); ++i) {
      if (step.transfers[i].to == to) return &moved_[i];
    }
    return nullptr;
  }

  void start(size_t s) {
    const Step& step = c_.plan.steps[s];
    if (step.kind == Step::kScalar) return compute(step);
    Array* const first = &arrays_[c_.first_array[s]];
    Array* next = first;
    for (uint32_t value : step.operands) {
      place(next, value);
      if (ScalarState* state = c_.scalars.find(value, &states_)) show(next, state);
      ++next;
    }
    for (uint32_t value : step.results) place_for_writing(next++, value);
    if (step.kind == Step::kCollective) {
      together(s, first);
    } else if (step.kind == Step::kCopy) {
      copy({first[0].memory, first[0].offset}, {first[1].memory, first[1].offset}, first[1].bytes);
    } else {
      for (const auto& packed : c_.here.packed) {
        if (packed.first == s) place_packed(&first[step.kernel->packing.operand], packed.second.memory());
      }
      context_.state = &c_.here.states[s];
      const collet_op* op = op_of(step);
      const auto bytes = [&] {
        uint64_t all = 0;
        for (const Array* array = first; array != next; ++array) all += array->bytes;
        return all;
      };
      const std::string name = device_.wants_records() ? record_name(c_.program, op) : std::string();
      recorded(device_, name.c_str(), "compute", c_.run_id, name.empty() ? 0 : bytes(),
               [&] { step.kernel->run(device_, Op(c_.program, op, first, context_)); });
    }
    for (uint32_t value : step.results) {
      if (ScalarState* state = c_.scalars.find(value, &states_)) follow(step, state);
    }
  }

  /** The data that a participant brings to a collective. */
  struct Part {
    Member member;
    const std::vector<std::any>* states;
  };

  void together(size_t s, const Array* arrays) {
    const CollectiveStep& what = c_.plan.collectives.at(s);
    const Step& step = c_.plan.steps[s];
    const collet_op* op = op_of(step);
    const std::string name = record_name(c_.program, op);
    static const std::vector<std::any> none;
    const auto states = c_.here.combiners.find(s);
    context_.state = &c_.here.states[s];
    const Part mine{{device_, Op(c_.program, op, arrays, context_)},
                    states == c_.here.combiners.end() ? &none : &states->second};
    const auto act = [&](const std::vector<uint32_t>& group, const std::vector<const Part*>& parts) {
      std::vector<Member> members;
      std::vector<const std::vector<std::any>*> all;
      for (const Part* part : parts) {
        members.push_back(part->member);
        all.push_back(part->states);
      }
      recorded(device_, name.c_str(), "collectives", c_.run_id, 0, [&] {
        if (step.kernel) return step.kernel->run_together(members);
        GroupRun(c_.backend, what.spec, what.combiners, group, members, all).run();
      });
    };
    const uint32_t me = launch_.participant;
    if (me >= what.spec.group_of.size()) throw Error(COLLET_INVALID_ARGUMENT, "there is no such participant");
    const std::vector<uint32_t>& group = what.spec.groups[what.spec.group_of[me]];
    if (group.size() == 1) return act(group, {&mine});
    if (!c_.rendezvous) throw Error(COLLET_FAILED_PRECONDITION, name + ": the other participants are not there");
    c_.rendezvous->meet(s, name, group, me, mine, c_.stop, c_.serial_lock,
                        [&](const std::vector<const Part*>& parts) { act(group, parts); });
  }

  /** Sets an array's host data if the host knows it, and copies scalars to the device that only the host knows. */
  void show(Array* array, ScalarState* state) {
    if (array->host == &state->bits) array->host = nullptr;  // value of the previous iteration
    if (!state->known) return;
    if (!state->on_device) device_.write(array->memory, array->offset, &state->bits, array->bytes);
    state->on_device = true;
    if (!array->host) array->host = &state->bits;
  }

  /** Computes a kernel's result on the host, too, if the host knows the operands. */
  void follow(const Step& step, ScalarState* state) {
    numbers_.clear();
    for (uint32_t value : step.operands) {
      const ScalarState* operand = c_.scalars.find(value, &states_);
      if (!operand || !operand->known) break;
      numbers_.push_back(operand->bits);
    }
    const bool known = numbers_.size() == step.operands.size();
    *state = {known ? c_.scalars.compute(step, numbers_) : 0, known, true};
  }

  /** Computes a step on the host. The device receives the value when a step there reads it. */
  void compute(const Step& step) {
    ScalarState* const result = c_.scalars.find(step.results[0], &states_);
    const uint32_t opcode = op_of(step)->opcode;
    if (is_participant_number(opcode)) {
      const uint32_t partitions = c_.program->partition_count, me = launch_.participant;
      *result = {opcode == COLLET_OP_REPLICA_ID ? me / partitions : me % partitions, true, false};
      return;
    }
    numbers_.clear();
    for (uint32_t value : step.operands) numbers_.push_back(number(value));
    *result = {c_.scalars.compute(step, numbers_), true, false};
  }

  /** Returns where a value is stored. */
  Where locate(uint32_t value) const { return locate(c_.plan.places[value]); }
  Where locate(const Place& what) const {
    const Place& place = what.kind == Place::kSlot ? slots_[what.index] : what;
    const auto at = [](const collet_argument& argument, uint64_t offset) -> Where {
      if (!argument.buffer) return {no_memory, 0};
      return {unwrap(argument.buffer)->memory, argument.offset + offset};
    };
    switch (place.kind) {
      case Place::kArgument:
        if ((launch_.arguments[place.index].flags & COLLET_ARG_IMMEDIATE) != 0) {
          for (const auto& one : c_.plan.immediates) {
            if (one.first == place.index) return at(launch_.workspace, one.second);
          }
        }
        return at(launch_.arguments[place.index], 0);
      case Place::kResult:
        return at(launch_.results[place.index], 0);
      case Place::kWorkspace:
        return at(launch_.workspace, place.offset);
      case Place::kConstant:
        if (c_.here.constants.empty()) break;  // all constants have no elements
        return {c_.here.constants[0].memory(), place.offset};
      default:
        break;
    }
    return {no_memory, 0};
  }
  Where locate_for_writing(uint32_t value) {
    const Place& what = c_.plan.places[value];
    const Place& place = what.kind == Place::kSlot ? slots_[what.index] : what;
    if (place.kind == Place::kResult) *c_.spoilt |= overwrites_argument(place.index);
    return locate(place);
  }

  /** True if result `index` of the launch shares memory with an argument. */
  bool overwrites_argument(uint32_t index) const {
    const collet_argument& result = launch_.results[index];
    for (uint32_t i = 0; i < launch_.argument_count; ++i) {
      if (result.bytes != 0 && launch_.arguments[i].buffer == result.buffer &&
          launch_.arguments[i].offset == result.offset) {
        return true;
      }
    }
    return false;
  }

  void write_immediates() {
    for (const auto& one : c_.plan.immediates) {
      const collet_argument& argument = launch_.arguments[one.first];
      if ((argument.flags & COLLET_ARG_IMMEDIATE) == 0) continue;
      const Buffer* workspace = unwrap(launch_.workspace.buffer);
      const uint32_t value = collet_region_at(c_.program, 0)->arguments.first + one.first;
      device_.write(workspace->memory, launch_.workspace.offset + one.second, argument.immediate, bytes_of(value));
    }
  }

  void place(Array* array, uint32_t value) const {
    const Place& at = c_.plan.places[value];
    std::tie(array->memory, array->offset) = locate(at);
    if (at.kind == Place::kArgument) {
      const collet_argument& argument = launch_.arguments[at.index];
      if ((argument.flags & COLLET_ARG_IMMEDIATE) != 0) array->host = argument.immediate;
      if ((argument.flags & COLLET_ARG_PREPARED) != 0) return place_packed(array, array->memory);
      if (argument.layout != 0) array->layout = c_.plan.layout_of(false, at.index);
    } else if (at.kind == Place::kResult && launch_.results[at.index].layout != 0) {
      array->layout = c_.plan.layout_of(true, at.index);
    }
  }
  void place_for_writing(Array* array, uint32_t value) {
    locate_for_writing(value);
    place(array, value);
  }

  static void place_packed(Array* array, Memory memory) {
    array->memory = memory;
    array->offset = 0;
    array->packed = true;
  }

  void copy(Where from, Where to, uint64_t bytes) {
    if (bytes != 0 && from != to) device_.copy(to.first, to.second, from.first, from.second, bytes);
  }

  void copy_results() {
    for (uint32_t value : c_.plan.results) {
      ScalarState* state = c_.scalars.find(value, &states_);
      if (!state || state->on_device) continue;
      const Where to = locate_for_writing(value);
      device_.write(to.first, to.second, &state->bits, bytes_of(value));
      state->on_device = true;
    }
    for (const FinalCopy& one : c_.plan.final_copies) {
      if (one.staged) copy(locate(one.value), locate(Place{Place::kWorkspace, 0, one.stage}), bytes_of(one.value));
    }
    for (const FinalCopy& one : c_.plan.final_copies) {
      const Where from = one.staged ? locate(Place{Place::kWorkspace, 0, one.stage}) : locate(one.value);
      *c_.spoilt |= overwrites_argument(one.result);
      copy(from, locate(Place{Place::kResult, one.result, 0}), bytes_of(one.value));
    }
  }

  const RunParts c_;
  Device& device_;
  const collet_launch& launch_;
  std::vector<Array> arrays_;
  std::vector<Place> slots_;
  std::vector<ScalarState> states_, moved_;
  std::vector<uint64_t> numbers_;
  OpContext context_;
  uint32_t iterations_ = 0;
  uint64_t pace_mark_ = 0;
};

}  // namespace detail
}  // namespace kernel
}  // namespace collet

#endif
