/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_EXECUTABLE_HPP
#define COLLET_KERNEL_EXECUTABLE_HPP

/** \file
 * A planned program that runs on devices that are a table of kernels. Included by kernel_backend.hpp.
 */

#include <tuple>

#include "kernel_queue.hpp"
#include "kernel_scalars.hpp"

namespace collet {
namespace kernel {
namespace detail {

/** A launch that outlives the call that brought it. */
struct OwnedLaunch {
  explicit OwnedLaunch(const collet_launch& from)
      : launch(from),
        arguments(from.arguments, from.arguments + from.argument_count),
        results(from.results, from.results + from.result_count) {
    launch.arguments = arguments.data();
    launch.results = results.data();
    launch.sync = nullptr;
  }
  OwnedLaunch(const OwnedLaunch&) = delete;
  OwnedLaunch& operator=(const OwnedLaunch&) = delete;

  collet_launch launch;
  std::vector<collet_argument> arguments, results;
};

/** A program, planned, with its constants on each device that it may run on. */
class Executable {
 public:
  Executable(Instance* instance, const collet_program* program, const collet_compile_options& options,
             std::vector<uint32_t>* rejected)
      : instance_(instance), block_((program->total_bytes + 7) / 8) {
    std::memcpy(block_.data(), program, program->total_bytes);
    const Chooser chooser(instance->backend, instance->known);
    plan_ = Planner(this->program(), chooser, instance->backend.alignment).make(rejected);
    if (!rejected->empty()) return;
    make_arrays();
    scalars_ = HostScalars(this->program(), plan_);
    if (options.intermediate_check != 0) write_text();
    // Shared code may come to any device.
    const bool everywhere = (backend().traits & COLLET_TRAIT_SHARED_CODE) != 0 || !options.assignment;
    if (!everywhere) {
      for (uint32_t i = 0; i < options.participants; ++i) instance->device(options.assignment[i]);
    }
    on_devices_.resize(instance->devices.size());
    for (uint32_t number = 0; number < on_devices_.size(); ++number) {
      const bool used = everywhere || std::count(options.assignment, options.assignment + options.participants, number);
      if (used) on_devices_[number] = std::make_unique<OnDevice>(prepared_for(number));
    }
  }

  const Plan& plan() const { return plan_; }
  const Backend& backend() const { return instance_->backend; }
  Instance* instance() const { return instance_; }
  const std::vector<uint64_t>& block() const { return block_; }
  const collet_program* program() const { return reinterpret_cast<const collet_program*>(block_.data()); }

  /** The plan, for people; empty where nobody asked for it. */
  const std::string& text() const { return text_; }

  /** Runs, or puts on queues. */
  void execute(const collet_launch* launches, uint32_t count, uint64_t run_id) const {
    for (uint32_t i = 0; i < count; ++i) check(launches[i]);
    for (uint32_t i = 0; i < count; ++i) {
      if ((launches[i].sync != nullptr) != (launches[0].sync != nullptr)) {
        throw Error(COLLET_INVALID_ARGUMENT, "an execution of which only some launches are on queues");
      }
    }
    if (count == 0) return;
    if (launches[0].sync) return enqueue(launches, count, run_id);
    bool spoilt = false;
    try {
      for (uint32_t i = 0; i < count; ++i) run(launches[i], run_id, nullptr, &spoilt);
      for (uint32_t i = 0; i < count; ++i) complete(instance_->devices[launches[i].device].get());
    } catch (...) {
      collet_error error{};
      describe_exception(&error);
      for (uint32_t i = 0; i < count; ++i) settle(instance_->devices[launches[i].device].get());
      if (!spoilt) throw;
      throw Error(COLLET_DATA_LOSS, std::string(error.message) + "; donated arguments were overwritten before that");
    }
  }

  /** Does it want entry argument `index` in a form of its own? */
  bool wants_packed(uint32_t index) const { return find_packed(index) != nullptr; }

  /** The form of its own that it wants of an argument; null where it wants none. */
  const Packed* find_packed(uint32_t index) const {
    for (const Packed& one : plan_.packed) {
      if (one.argument == index && index != COLLET_NONE) return &one;
    }
    return nullptr;
  }

  /** Makes it. */
  OwnedMemory pack(uint32_t number, uint32_t index, const collet_argument& value) const {
    const Packed* one = find_packed(index);
    if (!one) throw Error(COLLET_INVALID_ARGUMENT, "this argument is not to be prepared");
    Device* device = instance_->device(number);
    check_array(value, collet_region_at(program(), 0)->arguments.first + index, layout_of(false, index), number);
    const Buffer* buffer = unwrap(value.buffer);
    return pack(device, *one, buffer->memory, value.offset, value.layout ? layout_of(false, index) : nullptr);
  }

  /** The layout of an argument or result; null: dense. */
  const collet_layout* layout_of(bool is_result, uint32_t index) const {
    const std::vector<collet_layout>& all = is_result ? plan_.result_layouts : plan_.argument_layouts;
    return index < all.size() && all[index].bytes != 0 ? &all[index] : nullptr;
  }

 private:
  /** What an executable has on one device. */
  struct OnDevice {
    std::vector<OwnedMemory> constants;                  // none or one
    std::vector<std::pair<size_t, OwnedMemory>> packed;  // by step: its packed operand
    std::vector<std::any> states;                        // by step
  };

  void make_arrays() {
    for (const Step& step : plan_.steps) {
      first_array_.push_back(arrays_.size());
      for (const Array& array : arrays_of(program(), op_of(step))) arrays_.push_back(array);
      for (size_t i = 0; i < step.operands.size(); ++i) {
        const Place& place = plan_.places[step.operands[i]];
        if (place.kind != Place::kConstant) continue;
        for (const Resident& one : plan_.residents) {
          if (one.offset == place.offset) arrays_[first_array_.back() + i].host = one.data;
        }
      }
    }
  }

  /** One line for each step: what runs, and where its arrays lie. */
  void write_text() {
    const char* const kinds[] = {"nowhere", "argument ", "result ", "workspace + ", "constants + "};
    const auto where = [&](uint32_t value) {
      const Place& at = plan_.places[value];
      std::string out = " " + std::string(collet_type_name(collet_value_type(program(), value)->element)) + "[" +
                        std::to_string(collet_value_type(program(), value)->elements) + "] " + kinds[at.kind];
      if (at.kind == Place::kArgument || at.kind == Place::kResult) return out + std::to_string(at.index);
      return at.kind == Place::kNowhere ? out : out + std::to_string(at.offset);
    };
    for (const Step& step : plan_.steps) {
      text_ += record_name(op_of(step)) + (step.kernel ? "" : " (copy)") + ":";
      for (uint32_t value : step.operands) text_ += where(value) + ",";
      text_.back() = ' ';
      text_ += "->";
      for (uint32_t value : step.results) text_ += where(value) + ",";
      text_.back() = '\n';
    }
    for (const FinalCopy& one : plan_.final_copies) {
      text_ += "copy:" + where(one.value) + " -> result " + std::to_string(one.result) + "\n";
    }
    text_ += "workspace: " + std::to_string(plan_.workspace_bytes) + " bytes\n";
  }
  const collet_op* op_of(const Step& step) const { return collet_op_at(program(), step.op); }

  OnDevice prepared_for(uint32_t number) const {
    OnDevice out;
    Device* device = instance_->devices[number].get();
    if (plan_.resident_bytes != 0) {
      out.constants.emplace_back(device, plan_.resident_bytes, backend().alignment);
      for (const Resident& one : plan_.residents) {
        device->write(out.constants[0].memory(), one.offset, one.data, one.bytes);
      }
    }
    for (const Packed& one : plan_.packed) {
      if (one.argument != COLLET_NONE) continue;
      const Step& step = plan_.steps[one.step];
      const Place& place = plan_.places[step.operands[step.kernel->packing.operand]];
      out.packed.emplace_back(one.step, pack(device, one, out.constants[0].memory(), place.offset, nullptr));
    }
    out.states.resize(plan_.steps.size());
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      if (!step.kernel || !step.kernel->prepare) continue;
      try {
        out.states[s] = step.kernel->prepare(*device, Op(program(), op_of(step), &arrays_[first_array_[s]]));
      } catch (...) {
        settle(device);  // what was started uses memory that goes now
        throw;
      }
    }
    return out;
  }

  OwnedMemory pack(Device* device, const Packed& one, Memory memory, uint64_t offset,
                   const collet_layout* layout) const {
    const Step& step = plan_.steps[one.step];
    const auto begin = arrays_.begin() + static_cast<std::ptrdiff_t>(first_array_[one.step]);
    std::vector<Array> arrays(begin, begin + static_cast<std::ptrdiff_t>(step.operands.size() + step.results.size()));
    Array& from = arrays[step.kernel->packing.operand];
    from.memory = memory;
    from.offset = offset;
    from.layout = layout;
    OwnedMemory out(device, one.bytes, backend().alignment);
    Array to = from;
    to.memory = out.memory();
    to.offset = 0;
    to.bytes = one.bytes;
    to.packed = true;
    step.kernel->packing.make(*device, Op(program(), op_of(step), arrays.data()), to);
    complete(device);
    return out;
  }

  void check(const collet_launch& launch) const {
    const collet_region* entry = collet_region_at(program(), 0);
    instance_->device(launch.device);
    if (!on_devices_[launch.device]) {
      throw Error(COLLET_INVALID_ARGUMENT, "the program was not compiled for this device");
    }
    if (launch.argument_count != entry->arguments.count || launch.result_count != entry->results.count) {
      throw Error(COLLET_INVALID_ARGUMENT, "a launch with another number of arguments or results than the program has");
    }
    for (uint32_t i = 0; i < launch.argument_count; ++i) check_argument(launch, i);
    for (uint32_t i = 0; i < launch.result_count; ++i) {
      check_array(launch.results[i], collet_ref_at(program(), entry->results.first + i), layout_of(true, i),
                  launch.device);
    }
    if (launch.workspace.bytes < plan_.workspace_bytes) {
      throw Error(COLLET_INVALID_ARGUMENT, "a workspace of " + std::to_string(launch.workspace.bytes) +
                                               " bytes, where " + std::to_string(plan_.workspace_bytes) +
                                               " are needed");
    }
    check_range(launch.workspace, plan_.workspace_bytes, launch.device);
    if (!launch.sync) return;
    const Queue* queue = Queue::from(launch.sync->queue);
    if (!backend().queues || !queue) throw Error(COLLET_UNIMPLEMENTED, "this backend has no queues");
    if (queue->instance() != instance_ || queue->device() != launch.device) {
      throw Error(COLLET_INVALID_ARGUMENT, "a launch on a queue of another device");
    }
    queue->check(*launch.sync);
  }

  void check_argument(const collet_launch& launch, uint32_t i) const {
    const uint32_t value = collet_region_at(program(), 0)->arguments.first + i;
    const collet_argument& argument = launch.arguments[i];
    if ((argument.flags & COLLET_ARG_IMMEDIATE) != 0) {
      if ((collet_value_at(program(), value)->flags & COLLET_VALUE_SCALAR) == 0) {
        throw Error(COLLET_INVALID_ARGUMENT, "an argument by value that is no scalar");
      }
    } else if ((argument.flags & COLLET_ARG_PREPARED) != 0) {
      const Packed* one = find_packed(i);
      if (!one) throw Error(COLLET_INVALID_ARGUMENT, "a prepared argument that was not asked for");
      check_range(argument, one->bytes, launch.device);
    } else {
      check_array(argument, value, layout_of(false, i), launch.device);
    }
  }

  void check_array(const collet_argument& argument, uint32_t value, const collet_layout* layout,
                   uint32_t device) const {
    if (argument.layout > 1 || (argument.layout == 1 && !layout)) {
      throw Error(COLLET_INVALID_ARGUMENT, "an argument or result with a layout that was not asked for");
    }
    const uint64_t bytes = argument.layout == 1 ? layout->bytes : collet_value_type(program(), value)->bytes;
    if (argument.bytes < bytes) {
      throw Error(COLLET_INVALID_ARGUMENT, "an argument or result of " + std::to_string(argument.bytes) +
                                               " bytes, where " + std::to_string(bytes) + " are needed");
    }
    check_range(argument, bytes, device);
  }

  void check_range(const collet_argument& argument, uint64_t bytes, uint32_t device) const {
    if (bytes == 0) return;
    const Buffer* buffer = unwrap(argument.buffer);
    if (!buffer || buffer->device != instance_->devices[device].get()) {
      throw Error(COLLET_INVALID_ARGUMENT, "an argument or result that does not lie on the launch's device");
    }
    if (buffer->space != 0) {
      throw Error(COLLET_INVALID_ARGUMENT, "an argument or result that does not lie in the default memory space");
    }
    if (argument.offset % backend().alignment != 0 || argument.offset > buffer->bytes ||
        bytes > buffer->bytes - argument.offset) {
      throw Error(COLLET_INVALID_ARGUMENT, "an argument or result that does not lie inside its buffer");
    }
  }

  /** Puts each launch on its queue. */
  void enqueue(const collet_launch* launches, uint32_t count, uint64_t run_id) const {
    std::vector<std::shared_ptr<const OwnedLaunch>> owned;
    for (uint32_t i = 0; i < count; ++i) owned.push_back(std::make_shared<const OwnedLaunch>(launches[i]));
    for (uint32_t i = 0; i < count; ++i) {
      const std::shared_ptr<const OwnedLaunch> one = owned[i];
      Queue::from(launches[i].sync->queue)->put(*launches[i].sync, [this, one, run_id](const std::atomic<bool>& stop) {
        bool spoilt = false;
        run(one->launch, run_id, &stop, &spoilt);
        return instance_->devices[one->launch.device]->mark();
      });
    }
  }

  /** Where a value of `launch` lies: memory and offset. */
  std::pair<Memory, uint64_t> locate(const Place& place, const collet_launch& launch) const {
    const auto at = [](const collet_argument& argument, uint64_t offset) -> std::pair<Memory, uint64_t> {
      if (!argument.buffer) return {no_memory, 0};
      return {unwrap(argument.buffer)->memory, argument.offset + offset};
    };
    switch (place.kind) {
      case Place::kArgument:
        if ((launch.arguments[place.index].flags & COLLET_ARG_IMMEDIATE) != 0) {
          for (const auto& one : plan_.immediates) {
            if (one.first == place.index) return at(launch.workspace, one.second);
          }
        }
        return at(launch.arguments[place.index], 0);
      case Place::kResult:
        return at(launch.results[place.index], 0);
      case Place::kWorkspace:
        return at(launch.workspace, place.offset);
      case Place::kConstant:
        if (on_devices_[launch.device]->constants.empty()) break;  // all of them have no elements
        return {on_devices_[launch.device]->constants[0].memory(), place.offset};
      case Place::kNowhere:
        break;
    }
    return {no_memory, 0};
  }

  /** Does result `index` of a launch lie where an argument does? */
  static bool overwrites_argument(const collet_launch& launch, uint32_t index) {
    const collet_argument& result = launch.results[index];
    for (uint32_t i = 0; i < launch.argument_count; ++i) {
      if (result.bytes != 0 && launch.arguments[i].buffer == result.buffer &&
          launch.arguments[i].offset == result.offset) {
        return true;
      }
    }
    return false;
  }

  /** Starts all steps. `stop`: null, or set when the rest is not wanted any more. *spoilt: an argument may be overwritten. */
  void run(const collet_launch& launch, uint64_t run_id, const std::atomic<bool>* stop, bool* spoilt) const {
    Device& device = *instance_->devices[launch.device];
    const OnDevice& here = *on_devices_[launch.device];
    write_immediates(device, launch);
    Surroundings around;
    around.run_id = run_id;
    if (plan_.scratch_bytes != 0) {
      std::tie(around.scratch.memory, around.scratch.offset) =
          locate({Place::kWorkspace, 0, plan_.scratch_offset}, launch);
      around.scratch.bytes = plan_.scratch_bytes;
    }
    std::vector<Array> arrays = arrays_;
    KnownScalars known;
    if (!scalars_.is_empty()) known = scalars_.evaluate(launch.arguments);
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      if (stop && *stop) return;
      const Step& step = plan_.steps[s];
      Array* const first = &arrays[first_array_[s]];
      Array* next = first;
      for (uint32_t value : step.operands) {
        place(next, value, launch);
        if (!scalars_.is_empty() && !next->host) next->host = scalars_.find(value, known);
        ++next;
      }
      for (uint32_t value : step.results) {
        const Place& at = plan_.places[value];
        if (at.kind == Place::kResult) *spoilt |= overwrites_argument(launch, at.index);
        place(next++, value, launch);
      }
      if (!step.kernel) {
        copy(device, {first[0].memory, first[0].offset}, {first[1].memory, first[1].offset}, first[1].bytes);
        continue;
      }
      for (const auto& packed : here.packed) {
        if (packed.first == s) place_packed(&first[step.kernel->packing.operand], packed.second.memory());
      }
      around.state = &here.states[s];
      const collet_op* op = op_of(step);
      const auto bytes = [&] {
        uint64_t all = 0;
        for (const Array* array = first; array != next; ++array) all += array->bytes;
        return all;
      };
      const std::string name = device.wants_records() ? record_name(op) : std::string();
      recorded(device, name.c_str(), "compute", run_id, name.empty() ? 0 : bytes(),
               [&] { step.kernel->run(device, Op(program(), op, first, around)); });
    }
    copy_results(device, launch, spoilt);
  }

  std::string record_name(const collet_op* op) const {
    return std::string(collet_op_name(op->opcode)) + " " +
           std::string(collet_string(program(), op->name), op->name.count);
  }

  void write_immediates(Device& device, const collet_launch& launch) const {
    for (const auto& one : plan_.immediates) {
      const collet_argument& argument = launch.arguments[one.first];
      if ((argument.flags & COLLET_ARG_IMMEDIATE) == 0) continue;
      const Buffer* workspace = unwrap(launch.workspace.buffer);
      const uint32_t value = collet_region_at(program(), 0)->arguments.first + one.first;
      device.write(workspace->memory, launch.workspace.offset + one.second, argument.immediate,
                   collet_value_type(program(), value)->bytes);
    }
  }

  void place(Array* array, uint32_t value, const collet_launch& launch) const {
    const Place& at = plan_.places[value];
    std::tie(array->memory, array->offset) = locate(at, launch);
    if (at.kind == Place::kArgument) {
      const collet_argument& argument = launch.arguments[at.index];
      if ((argument.flags & COLLET_ARG_IMMEDIATE) != 0) array->host = argument.immediate;
      if ((argument.flags & COLLET_ARG_PREPARED) != 0) return place_packed(array, array->memory);
      if (argument.layout != 0) array->layout = layout_of(false, at.index);
    } else if (at.kind == Place::kResult && launch.results[at.index].layout != 0) {
      array->layout = layout_of(true, at.index);
    }
  }

  static void place_packed(Array* array, Memory memory) {
    array->memory = memory;
    array->offset = 0;
    array->packed = true;
  }

  static void copy(Device& device, std::pair<Memory, uint64_t> from, std::pair<Memory, uint64_t> to, uint64_t bytes) {
    if (bytes != 0 && from != to) device.copy(to.first, to.second, from.first, from.second, bytes);
  }

  void copy_results(Device& device, const collet_launch& launch, bool* spoilt) const {
    for (const FinalCopy& one : plan_.final_copies) {
      if (!one.staged) continue;
      copy(device, locate(plan_.places[one.value], launch), locate({Place::kWorkspace, 0, one.stage}, launch),
           collet_value_type(program(), one.value)->bytes);
    }
    for (const FinalCopy& one : plan_.final_copies) {
      const Place from = one.staged ? Place{Place::kWorkspace, 0, one.stage} : plan_.places[one.value];
      *spoilt |= overwrites_argument(launch, one.result);
      copy(device, locate(from, launch), locate({Place::kResult, one.result, 0}, launch),
           collet_value_type(program(), one.value)->bytes);
    }
  }

  Instance* instance_;
  std::vector<uint64_t> block_;  // the program, which is valid during compile alone
  Plan plan_;
  std::vector<Array> arrays_;  // of all steps, operands then results, without memory
  std::vector<size_t> first_array_;
  HostScalars scalars_;
  std::string text_;
  std::vector<std::unique_ptr<OnDevice>> on_devices_;  // null where it was not compiled for the device
};

}  // namespace detail
}  // namespace kernel
}  // namespace collet

#endif
