/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_BACKEND_HPP
#define COLLET_KERNEL_BACKEND_HPP

/** \file
 * A backend that is a table of kernels. The vendor writes a Device (memory, copies) and a list of Kernel rows (opcode, element
 * types, function); this header makes of them the whole of backend.h: it answers `supports`, plans a program, launches the
 * kernels in order, keeps handles, catches exceptions. C++17, header only, nothing to link.
 *
 *     collet::kernel::Backend describe() {
 *       collet::kernel::Backend backend;
 *       backend.name = "acme";
 *       backend.types = {{COLLET_TYPE_F32, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE}};
 *       backend.kernels = {{COLLET_OP_ADD, f32, f32, run_add}, {COLLET_OP_DOT, f32, f32, run_dot, is_plain_product}};
 *       backend.open_device = [](uint32_t) { return std::make_unique<AcmeDevice>(); };
 *       return backend;
 *     }
 *     COLLET_KERNEL_BACKEND(describe)
 *
 * What needs no kernel: constants, copies, reshape. What it leaves to the SDK: control flow, collectives, queues.
 */

#include <cstring>
#include <memory>
#include <new>
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

/** Makes one Move between two arrays of a device. */
using MoveFunction = std::function<void(Device& device, const Move& move, const Array& from, const Array& to)>;

/** Rows for broadcast, concatenate, dynamic-slice, dynamic-update-slice, pad, reverse, slice and transpose on `types`: all of
 * them from one kernel that makes a Move. */
inline void add_moves(std::vector<Kernel>* kernels, TypeSet types, const MoveFunction& run_move) {
  for (uint32_t opcode :
       {COLLET_OP_BROADCAST, COLLET_OP_CONCATENATE, COLLET_OP_DYNAMIC_SLICE, COLLET_OP_DYNAMIC_UPDATE_SLICE,
        COLLET_OP_PAD, COLLET_OP_REVERSE, COLLET_OP_SLICE, COLLET_OP_TRANSPOSE}) {
    const bool dynamic = opcode == COLLET_OP_DYNAMIC_SLICE || opcode == COLLET_OP_DYNAMIC_UPDATE_SLICE;
    const auto run = [run_move](Device& device, const Op& op) {
      for (const Move& move : moves_of(device, op)) run_move(device, move, op.operand(move.operand), op.result());
    };
    kernels->push_back({opcode, dynamic ? types | index_types : types, types, run});
  }
}

namespace detail {

inline void set_error(collet_error* error, collet_status code, const char* message) noexcept {
  error->code = code;
  error->reserved = 0;
  size_t size = std::strlen(message);
  if (size >= sizeof error->message) {
    size = sizeof error->message - 1;
    while (size > 0 && (static_cast<unsigned char>(message[size]) & 0xC0) == 0x80) --size;
  }
  std::memcpy(error->message, message, size);
  error->message[size] = 0;
}

/** Runs `body`; an exception becomes a status. */
template <class Body>
collet_status guarded(collet_error* error, const Body& body) noexcept {
  try {
    body();
    return COLLET_OK;
  } catch (const Error& failure) {
    set_error(error, failure.code(), failure.what());
  } catch (const std::bad_alloc&) {
    set_error(error, COLLET_RESOURCE_EXHAUSTED, "out of memory");
  } catch (const std::exception& failure) {
    set_error(error, COLLET_INTERNAL, failure.what());
  } catch (...) {
    set_error(error, COLLET_INTERNAL, "an exception of unknown type");
  }
  return error->code;
}

/** A struct of the SDK's as this header knows it; what the SDK's lacks is zero. */
template <class T>
T read_sized(const T* from) {
  T out;
  std::memset(static_cast<void*>(&out), 0, sizeof out);
  std::memcpy(static_cast<void*>(&out), from, std::min<size_t>(from->struct_size, sizeof out));
  return out;
}

/** The other way: no more than the SDK has room for; its struct_size stays. */
template <class T>
void write_sized(T* to, T from) {
  const uint32_t size = to->struct_size;
  from.struct_size = size;
  std::memcpy(static_cast<void*>(to), &from, std::min<size_t>(size, sizeof from));
}

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

/** The functions of the core table. `describe` is the vendor's. */
template <Backend (*describe)()>
struct Table {
  static const Backend& backend() {
    static const Backend* const made = new Backend(describe());  // lives as long as the process, as the table does
    return *made;
  }

  static collet_status open(const collet_open_options* options, collet_backend_instance** out,
                            collet_instance_info* info, collet_error* error) {
    return guarded(error, [&] {
      const collet_open_options wanted = read_sized(options);
      if (wanted.target) throw Error(COLLET_NOT_FOUND, backend().name + " has no target '" + wanted.target + "'");
      if (wanted.pairs)
        throw Error(COLLET_INVALID_ARGUMENT, backend().name + " has no option '" + wanted.keys[0] + "'");
      auto instance = std::make_unique<Instance>();
      instance->backend = &backend();
      for (const collet_type_support& type : backend().types) instance->known = instance->known | TypeSet{type.type};
      instance->space.bytes = backend().memory_bytes;
      instance->space.alignment = backend().alignment;
      instance->space.flags = COLLET_SPACE_DEFAULT;
      std::memcpy(instance->space.kind, "device", sizeof "device");
      for (uint32_t i = 0; i < backend().device_count; ++i) instance->devices.push_back(backend().open_device(i));
      collet_instance_info said{};
      said.opset = COLLET_OPSET;
      said.device_count = backend().device_count;
      said.name = backend().name.c_str();
      said.version = backend().version.c_str();
      write_sized(info, said);
      *out = reinterpret_cast<collet_backend_instance*>(instance.release());
    });
  }

  static void close(collet_backend_instance* instance) { delete unwrap(instance); }

  static collet_status device_info(collet_backend_instance* handle, uint32_t device, collet_device_info* info,
                                   collet_error* error) {
    return guarded(error, [&] {
      const Instance* instance = unwrap(handle);
      if (device >= instance->devices.size()) throw Error(COLLET_OUT_OF_RANGE, "no such device");
      collet_device_info said{};
      said.traits = backend().traits;
      said.kind = backend().device_kind.c_str();
      said.fingerprint = backend().fingerprint.c_str();
      said.coordinates[0] = static_cast<int32_t>(device);
      said.spaces = &instance->space;
      said.space_count = 1;
      said.types = backend().types.data();
      said.type_count = static_cast<uint32_t>(backend().types.size());
      said.link_latency_ns = backend().link_latency_ns;
      said.link_bytes_per_ns = backend().link_bytes_per_ns;
      said.launch_ns = backend().launch_ns;
      said.memory_bytes_per_ns = backend().memory_bytes_per_ns;
      said.flops_per_ns = backend().flops_per_ns;
      said.smallest_cluster = backend().smallest_cluster;
      write_sized(info, said);
    });
  }

  static collet_status alloc(collet_backend_instance* handle, uint32_t device, uint32_t space, uint64_t bytes,
                             uint64_t alignment, collet_backend_buffer** out, void** out_host_pointer,
                             collet_error* error) {
    return guarded(error, [&] {
      Instance* instance = unwrap(handle);
      if (device >= instance->devices.size() || space != 0) throw Error(COLLET_OUT_OF_RANGE, "no such device or space");
      if (alignment & (alignment - 1)) throw Error(COLLET_INVALID_ARGUMENT, "an alignment that is no power of two");
      auto buffer = std::make_unique<Buffer>();
      buffer->instance = instance;
      buffer->device = instance->devices[device].get();
      buffer->bytes = std::max<uint64_t>(bytes, 1);
      buffer->memory = buffer->device->allocate(buffer->bytes, std::max<uint64_t>(alignment, backend().alignment));
      if (out_host_pointer) *out_host_pointer = nullptr;
      *out = reinterpret_cast<collet_backend_buffer*>(buffer.release());
    });
  }

  static void free(collet_backend_instance*, collet_backend_buffer* handle) {
    const std::unique_ptr<Buffer> buffer(unwrap(handle));
    if (buffer) buffer->device->free(buffer->memory);
  }

  static collet_status copy(collet_backend_instance*, const collet_copy_region* regions, uint32_t count,
                            const collet_sync* sync, collet_error* error) {
    return guarded(error, [&] {
      if (sync) throw Error(COLLET_UNIMPLEMENTED, "this backend has no queues");
      for (uint32_t i = 0; i < count; ++i) {
        check_end(regions[i].from, regions[i].bytes);
        check_end(regions[i].to, regions[i].bytes);
      }
      for (uint32_t i = 0; i < count; ++i) copy_region(regions[i]);
      for (uint32_t i = 0; i < count; ++i) {
        if (regions[i].to.buffer) unwrap(regions[i].to.buffer)->device->finish();
      }
    });
  }

  static collet_status supports(collet_backend_instance* handle, uint32_t, const collet_program* program,
                                const uint32_t* ops, uint32_t count, collet_verdict* verdicts, collet_error* error) {
    return guarded(error, [&] {
      const std::string complaint = program_complaint(program);
      if (!complaint.empty()) throw Error(COLLET_INVALID_ARGUMENT, complaint);
      const Chooser chooser(backend().kernels, unwrap(handle)->known, backend().fusions);
      for (uint32_t i = 0; i < count; ++i) {
        if (ops[i] >= program->ops.count) throw Error(COLLET_OUT_OF_RANGE, "no such op");
        const Answer answer = chooser.ask(program, ops[i]);
        verdicts[i].answer = answer.taken ? COLLET_ACCEPT : COLLET_DECLINE;
        std::strncpy(verdicts[i].reason, answer.reason, sizeof verdicts[i].reason - 1);
        if (answer.kernel && answer.kernel->cost_ns) {
          const collet_op* op = collet_op_at(program, ops[i]);
          const std::vector<Array> arrays = arrays_of(program, op);
          verdicts[i].cost_ns = answer.kernel->cost_ns(Op(program, op, arrays.data()));
        }
      }
    });
  }

  static collet_status compile(collet_backend_instance* instance, const collet_program* program,
                               const collet_compile_options* options, collet_backend_executable** out,
                               collet_executable_info* info, collet_rejection* rejection, collet_error* error) {
    return guarded(error, [&] {
      const std::string complaint = program_complaint(program);
      if (!complaint.empty()) throw Error(COLLET_INVALID_ARGUMENT, complaint);
      const collet_compile_options wanted = read_sized(options);
      if (wanted.progress && wanted.progress(wanted.user, 0, "plan") != 0) throw Error(COLLET_CANCELLED, "cancelled");
      std::vector<uint32_t> rejected;
      auto executable = std::make_unique<Executable>(unwrap(instance), program, wanted, &rejected);
      if (!rejected.empty()) {
        reject(rejection, rejected);
        const collet_op* op = collet_op_at(program, rejected[0]);
        throw Error(COLLET_UNIMPLEMENTED, std::string("no kernel for ") + collet_op_name(op->opcode) + " '" +
                                              std::string(collet_string(program, op->name), op->name.count) + "'");
      }
      collet_executable_info said = read_sized(info);
      said.absorbed_count = 0;
      said.workspace_bytes = executable->plan().workspace_bytes;
      said.workspace_alignment = backend().alignment;
      said.resident_bytes = executable->plan().resident_bytes;
      said.kernels = executable->plan().kernels;
      said.traffic_bytes = executable->plan().traffic_bytes;
      write_sized(info, said);
      *out = reinterpret_cast<collet_backend_executable*>(executable.release());
    });
  }

  static collet_status execute(collet_backend_executable* handle, const collet_launch* launches, uint32_t count,
                               uint64_t, collet_error* error) {
    return guarded(error, [&] { reinterpret_cast<const Executable*>(handle)->execute(launches, count); });
  }

  static void release(collet_backend_executable* handle) { delete reinterpret_cast<Executable*>(handle); }

  static const collet_backend* table() {
    static const collet_backend functions = {sizeof(collet_backend),
                                             COLLET_ABI_MAJOR,
                                             COLLET_ABI_MINOR,
                                             0,
                                             open,
                                             close,
                                             device_info,
                                             alloc,
                                             free,
                                             copy,
                                             supports,
                                             compile,
                                             execute,
                                             release,
                                             nullptr};
    return &functions;
  }

 private:
  static void check_end(const collet_place& place, uint64_t bytes) {
    if (!place.buffer) return;
    const Buffer* buffer = unwrap(place.buffer);
    if (place.offset > buffer->bytes || bytes > buffer->bytes - place.offset) {
      throw Error(COLLET_OUT_OF_RANGE, "a copy beyond the end of a buffer");
    }
  }

  static void copy_region(const collet_copy_region& region) {
    if (region.bytes == 0) return;
    const Buffer *from = unwrap(region.from.buffer), *to = unwrap(region.to.buffer);
    char* from_host = static_cast<char*>(region.from.host) + (from ? 0 : region.from.offset);
    char* to_host = static_cast<char*>(region.to.host) + (to ? 0 : region.to.offset);
    if (!from && !to) {
      std::memcpy(to_host, from_host, region.bytes);
    } else if (!from) {
      to->device->write(to->memory, region.to.offset, from_host, region.bytes);
    } else if (!to) {
      from->device->read(from->memory, region.from.offset, to_host, region.bytes);
    } else if (from->device == to->device) {
      from->device->copy(to->memory, region.to.offset, from->memory, region.from.offset, region.bytes);
    } else {
      std::vector<char> between(region.bytes);
      from->device->read(from->memory, region.from.offset, between.data(), region.bytes);
      to->device->write(to->memory, region.to.offset, between.data(), region.bytes);
    }
  }

  static void reject(collet_rejection* rejection, const std::vector<uint32_t>& ops) {
    if (!rejection) return;
    const uint32_t room = rejection->ops ? rejection->count : 0;
    rejection->count = std::min(room, static_cast<uint32_t>(ops.size()));
    std::copy_n(ops.begin(), rejection->count, rejection->ops);
  }
};

/** What collet_backend_entry of such a backend does. */
template <Backend (*describe)()>
collet_status enter(const collet_host* host, const collet_backend** out, collet_error* error) {
  return guarded(error, [&] {
    if (host->abi_major != COLLET_ABI_MAJOR) {
      throw Error(COLLET_FAILED_PRECONDITION, "this backend speaks ABI " + std::to_string(COLLET_ABI_MAJOR) +
                                                  ", the host ABI " + std::to_string(host->abi_major));
    }
    Table<describe>::backend();
    *out = Table<describe>::table();
  });
}

}  // namespace detail
}  // namespace kernel
}  // namespace collet

/** Defines collet_backend_entry for the backend that the function `describe` describes. Once in a library, outside of any
 * namespace. */
#define COLLET_KERNEL_BACKEND(describe)                                                                        \
  extern "C" COLLET_EXPORT collet_status collet_backend_entry(                                                 \
      const struct collet_host* host, const struct collet_backend** out_backend, struct collet_error* error) { \
    return ::collet::kernel::detail::enter<describe>(host, out_backend, error);                                \
  }

#endif
