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

#include <new>

#include "kernel_executable.hpp"

namespace collet {
namespace kernel {

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
