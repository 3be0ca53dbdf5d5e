/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_EXECUTABLE_HPP
#define COLLET_KERNEL_EXECUTABLE_HPP

/** \file
 * What a kernel table is told of a device, and a planned program that runs on it. Included by kernel_backend.hpp.
 */

#include <cstring>
#include <memory>
#include <tuple>

#include "backend.h"
#include "kernel_plan.hpp"

namespace collet {
namespace kernel {

/** Everything that the SDK needs to know of a device maker's work. Zeros mean "unknown", and the SDK then estimates. */
struct Backend {
  std::string name;          /**< short, lower case: "acme" */
  std::string version = "0"; /**< part of every cache key: change it with the code */
  std::string device_kind;   /**< the model: "Acme T1" */
  std::string fingerprint;   /**< what compiled code depends on: revision, firmware */
  uint32_t device_count = 1; /**< devices present */
  uint32_t traits = 0; /**< COLLET_TRAIT_SERIAL, ..._FLUSHES_DENORMALS; control flow and collectives are the SDK's */
  std::vector<collet_type_support> types; /**< what is not listed is never offered */
  uint64_t memory_bytes = 0;
  uint32_t alignment = 64; /**< of every array; a power of two */
  double link_latency_ns = 0;
  double link_bytes_per_ns = 0;
  double launch_ns = 0;
  double memory_bytes_per_ns = 0;
  double flops_per_ns = 0;
  uint32_t smallest_cluster = 0;
  bool fusions = false; /**< take a fusion whose ops all have kernels, and run them one by one */
  std::vector<Kernel> kernels;
  /** Makes device number `number`, from 0 to device_count - 1. */
  std::function<std::unique_ptr<Device>(uint32_t number)> open_device;
};

namespace detail {

/** A device with its memory. */
struct Instance {
  const Backend* backend = nullptr;
  std::vector<std::unique_ptr<Device>> devices;
  TypeSet known;
  collet_memory_space space{};
};

struct Buffer {
  Instance* instance;
  Device* device;
  Memory memory;
  uint64_t bytes;
};

/** Memory that goes when its owner goes. */
class OwnedMemory {
 public:
  OwnedMemory(Device* device, uint64_t bytes, uint64_t alignment)
      : device_(device), memory_(device->allocate(bytes, alignment)) {}
  OwnedMemory(OwnedMemory&& other) noexcept : device_(other.device_), memory_(other.memory_) {
    other.memory_ = no_memory;
  }
  OwnedMemory& operator=(OwnedMemory&&) = delete;
  ~OwnedMemory() {
    if (memory_ != no_memory) device_->free(memory_);
  }
  Device* device() const { return device_; }
  Memory memory() const { return memory_; }

 private:
  Device* device_;
  Memory memory_;
};

inline Buffer* unwrap(collet_backend_buffer* buffer) {
  return reinterpret_cast<Buffer*>(buffer);
}
inline Instance* unwrap(collet_backend_instance* instance) {
  return reinterpret_cast<Instance*>(instance);
}

/** A program, planned, with its constants on each device that it may run on. */
class Executable {
 public:
  Executable(Instance* instance, const collet_program* program, const collet_compile_options& options,
             std::vector<uint32_t>* rejected)
      : instance_(instance), block_((program->total_bytes + 7) / 8) {
    std::memcpy(block_.data(), program, program->total_bytes);
    const Chooser chooser(instance->backend->kernels, instance->known, instance->backend->fusions);
    plan_ = Planner(this->program(), chooser, instance->backend->alignment).make(rejected);
    if (!rejected->empty()) return;
    for (const Step& step : plan_.steps) {
      for (const Array& array : arrays_of(this->program(), collet_op_at(this->program(), step.op))) {
        arrays_.push_back(array);
      }
    }
    constants_on(instance->devices[0].get());
    for (uint32_t i = 0; i < options.participants && options.assignment; ++i) {
      if (options.assignment[i] >= instance->devices.size()) throw Error(COLLET_OUT_OF_RANGE, "no such device");
      constants_on(instance->devices[options.assignment[i]].get());
    }
  }

  const Plan& plan() const { return plan_; }
  const Backend& backend() const { return *instance_->backend; }

  void execute(const collet_launch* launches, uint32_t count) const {
    for (uint32_t i = 0; i < count; ++i) check(launches[i]);
    for (uint32_t i = 0; i < count; ++i) run(launches[i]);
    for (uint32_t i = 0; i < count; ++i) instance_->devices[launches[i].device]->finish();
  }

 private:
  const collet_program* program() const { return reinterpret_cast<const collet_program*>(block_.data()); }

  /** The memory of the constants on `device`, filled when first asked for; none where the program has none. */
  void constants_on(Device* device) {
    if (plan_.resident_bytes == 0 || find_constants(device) != no_memory) return;
    OwnedMemory memory(device, plan_.resident_bytes, backend().alignment);
    for (const Resident& one : plan_.residents) device->write(memory.memory(), one.offset, one.data, one.bytes);
    constants_.push_back(std::move(memory));
  }

  Memory find_constants(const Device* device) const {
    for (const OwnedMemory& one : constants_) {
      if (one.device() == device) return one.memory();
    }
    return no_memory;
  }

  void check(const collet_launch& launch) const {
    const collet_region* entry = collet_region_at(program(), 0);
    if (launch.device >= instance_->devices.size()) throw Error(COLLET_OUT_OF_RANGE, "no such device");
    if (plan_.resident_bytes != 0 && find_constants(instance_->devices[launch.device].get()) == no_memory) {
      throw Error(COLLET_INVALID_ARGUMENT, "the program was not compiled for this device");
    }
    if (launch.sync) throw Error(COLLET_UNIMPLEMENTED, "this backend has no queues");
    if (launch.argument_count != entry->arguments.count || launch.result_count != entry->results.count) {
      throw Error(COLLET_INVALID_ARGUMENT, "a launch with another number of arguments or results than the program has");
    }
    for (uint32_t i = 0; i < launch.argument_count; ++i) {
      const uint32_t value = entry->arguments.first + i;
      if ((launch.arguments[i].flags & COLLET_ARG_IMMEDIATE) != 0) {
        if ((collet_value_at(program(), value)->flags & COLLET_VALUE_SCALAR) == 0) {
          throw Error(COLLET_INVALID_ARGUMENT, "an argument by value that is no scalar");
        }
        continue;
      }
      check(launch.arguments[i], collet_value_type(program(), value)->bytes, launch.device);
    }
    for (uint32_t i = 0; i < launch.result_count; ++i) {
      const uint32_t value = collet_ref_at(program(), entry->results.first + i);
      check(launch.results[i], collet_value_type(program(), value)->bytes, launch.device);
    }
    check(launch.workspace, plan_.workspace_bytes, launch.device);
  }

  void check(const collet_argument& argument, uint64_t bytes, uint32_t device) const {
    if (bytes == 0) return;
    const Buffer* buffer = unwrap(argument.buffer);
    if (argument.layout != 0) throw Error(COLLET_INVALID_ARGUMENT, "an argument with a layout");
    if (!buffer || buffer->device != instance_->devices[device].get()) {
      throw Error(COLLET_INVALID_ARGUMENT, "an argument that does not lie on the launch's device");
    }
    if (argument.offset % backend().alignment != 0 || argument.offset > buffer->bytes ||
        bytes > buffer->bytes - argument.offset) {
      throw Error(COLLET_INVALID_ARGUMENT, "an argument that does not lie inside its buffer");
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
        return {find_constants(instance_->devices[launch.device].get()), place.offset};
      case Place::kNowhere:
        break;
    }
    return {no_memory, 0};
  }

  void run(const collet_launch& launch) const {
    Device& device = *instance_->devices[launch.device];
    for (const auto& one : plan_.immediates) {
      const collet_argument& argument = launch.arguments[one.first];
      if ((argument.flags & COLLET_ARG_IMMEDIATE) == 0) continue;
      const Buffer* workspace = unwrap(launch.workspace.buffer);
      const uint32_t value = collet_region_at(program(), 0)->arguments.first + one.first;
      device.write(workspace->memory, launch.workspace.offset + one.second, argument.immediate,
                   collet_value_type(program(), value)->bytes);
    }
    Array scratch;
    if (plan_.scratch_bytes != 0) {
      std::tie(scratch.memory, scratch.offset) = locate({Place::kWorkspace, 0, plan_.scratch_offset}, launch);
      scratch.bytes = plan_.scratch_bytes;
    }
    std::vector<Array> arrays = arrays_;
    Array* next = arrays.data();
    for (const Step& step : plan_.steps) {
      Array* const first = next;
      for (uint32_t value : step.operands) place(next++, value, launch);
      for (uint32_t value : step.results) place(next++, value, launch);
      if (step.kernel) {
        step.kernel->run(device, Op(program(), collet_op_at(program(), step.op), first, scratch));
      } else {
        copy(device, {first[0].memory, first[0].offset}, {first[1].memory, first[1].offset}, first[1].bytes);
      }
    }
    copy_results(device, launch);
  }

  void place(Array* array, uint32_t value, const collet_launch& launch) const {
    std::tie(array->memory, array->offset) = locate(plan_.places[value], launch);
  }

  static void copy(Device& device, std::pair<Memory, uint64_t> from, std::pair<Memory, uint64_t> to, uint64_t bytes) {
    if (bytes != 0 && from != to) device.copy(to.first, to.second, from.first, from.second, bytes);
  }

  void copy_results(Device& device, const collet_launch& launch) const {
    for (const FinalCopy& one : plan_.final_copies) {
      if (!one.staged) continue;
      copy(device, locate(plan_.places[one.value], launch), locate({Place::kWorkspace, 0, one.stage}, launch),
           collet_value_type(program(), one.value)->bytes);
    }
    for (const FinalCopy& one : plan_.final_copies) {
      const Place from = one.staged ? Place{Place::kWorkspace, 0, one.stage} : plan_.places[one.value];
      copy(device, locate(from, launch), locate({Place::kResult, one.result, 0}, launch),
           collet_value_type(program(), one.value)->bytes);
    }
  }

  Instance* instance_;
  std::vector<uint64_t> block_;  // the program, which is valid during compile alone
  Plan plan_;
  std::vector<Array> arrays_;  // of all steps, operands then results, without memory
  std::vector<OwnedMemory> constants_;
};

}  // namespace detail
}  // namespace kernel
}  // namespace collet

#endif
