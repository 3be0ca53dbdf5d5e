/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_BACKEND_HPP
#define COLLET_KERNEL_BACKEND_HPP

/** \file
 * A backend that is a table of kernels. The vendor writes a Device (memory, copies) and a list of Kernel rows (opcode,
 * element types, function); this header implements all of backend.h with them: it answers `supports`, plans a program,
 * launches the kernels in order, manages handles and catches exceptions. C++17, header only, nothing to link.
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
 * No kernel is needed for constants, copies and reshape, for loops and branches with Backend::control_flow, and for
 * collectives with Backend::collectives. More than one device, queues, prepared weights, layouts, patterns, options: see
 * the fields of Backend and Kernel.
 */

#include <new>

#include "backend_table.hpp"
#include "kernel_check.hpp"
#include "kernel_later.hpp"
#include "kernel_moves.hpp"
#include "kernel_tables.hpp"

namespace collet {
namespace kernel {

namespace detail {

/** The functions of the core table. The vendor supplies `describe`. */
template <Backend (*describe)()>
struct Table {
  static const Backend& backend() {
    // Never destroyed, because the table may be used until the process ends.
    static const Backend* const made = new Backend(describe());
    return *made;
  }

  static collet_status open(const collet_open_options* options, collet_backend_instance** out,
                            collet_instance_info* info, collet_error* error) {
    return guarded(error, [&] {
      const Options wanted = read_options(read_sized(options));
      auto instance = std::make_unique<Instance>();
      instance->backend = backend();
      if (instance->backend.configure) instance->backend.configure(wanted, &instance->backend);
      check_description(instance->backend);
      fill(instance.get());
      const Backend& mine = instance->backend;
      collet_instance_info said{};
      said.opset = opset_of(mine);
      said.device_count = mine.device_count;
      said.name = mine.name.c_str();
      said.version = mine.version.c_str();
      write_sized(info, said);
      *out = reinterpret_cast<collet_backend_instance*>(instance.release());
    });
  }

  static void close(collet_backend_instance* instance) { delete unwrap(instance); }

  static collet_status device_info(collet_backend_instance* handle, uint32_t device, collet_device_info* info,
                                   collet_error* error) {
    return guarded(error, [&] {
      const Instance* instance = unwrap(handle);
      const Backend& mine = instance->backend;
      instance->device(device);
      collet_device_info said{};
      said.traits = mine.traits | (mine.compiler ? 0 : uint32_t{COLLET_TRAIT_SCALARS}) |
                    (mine.control_flow ? uint32_t{COLLET_TRAIT_CONTROL_FLOW} : 0) |
                    (mine.collectives ? uint32_t{COLLET_TRAIT_COLLECTIVES} : 0);
      said.kind = mine.device_kind.c_str();
      said.fingerprint = mine.fingerprint.c_str();
      said.coordinates[0] = static_cast<int32_t>(device);
      said.spaces = instance->spaces.data();
      said.space_count = static_cast<uint32_t>(instance->spaces.size());
      said.types = mine.types.data();
      said.type_count = static_cast<uint32_t>(mine.types.size());
      said.peers = instance->peers[device].data();
      said.peer_count = static_cast<uint32_t>(instance->peers[device].size());
      said.link_latency_ns = mine.link_latency_ns;
      said.link_bytes_per_ns = mine.link_bytes_per_ns;
      said.launch_ns = mine.launch_ns;
      said.memory_bytes_per_ns = mine.memory_bytes_per_ns;
      said.flops_per_ns = mine.flops_per_ns;
      said.peaks = mine.peaks.data();
      said.peak_count = static_cast<uint32_t>(mine.peaks.size());
      said.smallest_cluster = mine.smallest_cluster;
      write_sized(info, said);
    });
  }

  static collet_status alloc(collet_backend_instance* handle, uint32_t device, uint32_t space, uint64_t bytes,
                             uint64_t alignment, collet_backend_buffer** out, void** out_host_pointer,
                             collet_error* error) {
    return guarded(error, [&] {
      Instance* instance = unwrap(handle);
      auto buffer = std::make_unique<Buffer>();
      *buffer = {instance, device, space, instance->device(device), no_memory, std::max<uint64_t>(bytes, 1)};
      if (space >= instance->spaces.size()) {
        throw Error(COLLET_OUT_OF_RANGE, "there is no memory space " + std::to_string(space));
      }
      if ((alignment & (alignment - 1)) != 0) {
        throw Error(COLLET_INVALID_ARGUMENT, "an alignment of " + std::to_string(alignment) + ", no power of two");
      }
      const uint64_t aligned_to = std::max<uint64_t>(alignment, instance->spaces[space].alignment);
      const auto serial_lock = instance->lock_serial();
      buffer->memory = space == 0 ? buffer->device->allocate(buffer->bytes, aligned_to)
                                  : buffer->device->allocate_in(space, buffer->bytes, aligned_to);
      const bool visible = (instance->spaces[space].flags & COLLET_SPACE_HOST_VISIBLE) != 0;
      void* const host = visible ? buffer->device->host_pointer(buffer->memory) : nullptr;
      if (out_host_pointer) *out_host_pointer = host;
      instance->add_usage(device, space, buffer->bytes, true);
      *out = reinterpret_cast<collet_backend_buffer*>(buffer.release());
    });
  }

  static void free(collet_backend_instance*, collet_backend_buffer* handle) {
    const std::unique_ptr<Buffer> buffer(unwrap(handle));
    if (!buffer) return;
    const auto serial_lock = buffer->instance->lock_serial();
    if (buffer->is_wrapped) return buffer->device->end_wrap(buffer->memory);
    buffer->device->free(buffer->memory);
    buffer->instance->add_usage(buffer->number, buffer->space, buffer->bytes, false);
  }

  static collet_status copy(collet_backend_instance* handle, const collet_copy_region* regions, uint32_t count,
                            const collet_sync* sync, collet_error* error) {
    return guarded(error, [&] {
      Instance* instance = unwrap(handle);
      check_regions(instance, regions, count);
      std::vector<collet_copy_region> mine(regions, regions + count);
      if (!sync) {
        const auto serial_lock = instance->lock_serial();
        return copy_now(mine);
      }
      Queue* queue = Queue::from(sync->queue);
      if (!instance->backend.queues || !queue) throw Error(COLLET_UNIMPLEMENTED, "this backend has no queues");
      if (queue->instance() != instance) throw Error(COLLET_INVALID_ARGUMENT, "a queue of another instance");
      queue->check(*sync);
      const uint32_t device = queue->device();
      const bool compute = queue->kind() == COLLET_QUEUE_COMPUTE;
      queue->put(*sync,
                 [instance, device, compute, mine](const std::atomic<bool>& stop, std::unique_lock<std::mutex>*) {
                   return begin_copies(instance, device, compute, mine, stop);
                 });
    });
  }

  static collet_status supports(collet_backend_instance* handle, uint32_t device, const collet_program* program,
                                const uint32_t* ops, uint32_t count, collet_verdict* verdicts, collet_error* error) {
    return guarded(error, [&] {
      const Instance* instance = unwrap(handle);
      instance->device(device);
      const std::string complaint = program_complaint(program);
      if (!complaint.empty()) throw Error(COLLET_INVALID_ARGUMENT, complaint);
      for (uint32_t i = 0; i < count; ++i) {
        if (ops[i] >= program->ops.count) throw Error(COLLET_OUT_OF_RANGE, "there is no op " + std::to_string(ops[i]));
      }
      if (instance->backend.compiler) return instance->backend.compiler->answer(program, ops, count, verdicts);
      const KernelSelector selector(instance->backend, instance->known);
      for (uint32_t i = 0; i < count; ++i) {
        const Answer answer = selector.ask(program, ops[i]);
        verdicts[i].answer = answer.taken ? COLLET_ACCEPT : answer.expand ? COLLET_EXPAND : COLLET_DECLINE;
        collet_copy_text(verdicts[i].reason, sizeof verdicts[i].reason, answer.reason.c_str());
        if (answer.kernel && answer.kernel->cost_ns) {
          const collet_op* op = collet_op_at(program, ops[i]);
          const std::vector<Array> arrays = arrays_of(program, op);
          verdicts[i].cost_ns = answer.kernel->cost_ns(Op(program, op, arrays.data()));
        }
      }
    });
  }

  static collet_status compile(collet_backend_instance* handle, const collet_program* program,
                               const collet_compile_options* options, collet_backend_executable** out,
                               collet_executable_info* info, collet_rejection* rejection, collet_error* error) {
    return guarded(error, [&] {
      const std::string complaint = program_complaint(program);
      if (!complaint.empty()) throw Error(COLLET_INVALID_ARGUMENT, complaint);
      const collet_compile_options wanted = read_sized(options);
      if (wanted.progress && wanted.progress(wanted.user, 0, "plan") != 0) throw Error(COLLET_CANCELLED, "cancelled");
      std::vector<uint32_t> rejected;
      const auto serial_lock = unwrap(handle)->lock_serial();
      auto executable = std::make_unique<Executable>(unwrap(handle), program, wanted, &rejected);
      if (!rejected.empty()) {
        reject(rejection, rejected);
        const collet_op* op = collet_op_at(program, rejected[0]);
        throw Error(COLLET_UNIMPLEMENTED, std::string("no kernel for ") + collet_op_name(op->opcode) + " '" +
                                              std::string(collet_string(program, op->name), op->name.count) + "'");
      }
      write_info(*executable, info);
      *out = reinterpret_cast<collet_backend_executable*>(executable.release());
    });
  }

  static collet_status execute(collet_backend_executable* handle, const collet_launch* launches, uint32_t count,
                               uint64_t run_id, collet_error* error) {
    return guarded(error, [&] {
      const bool queued = count != 0 && launches[0].sync;
      auto serial_lock = queued ? std::unique_lock<std::mutex>() : unwrap(handle)->instance()->lock_serial();
      unwrap(handle)->execute(launches, count, run_id, &serial_lock);
    });
  }

  static void release(collet_backend_executable* handle) {
    const auto serial_lock = unwrap(handle)->instance()->lock_serial();
    delete unwrap(handle);
  }

  static const void* query(collet_backend_instance* handle, const char* name, uint32_t version) {
    return name ? find_table(unwrap(handle)->backend, name, version) : nullptr;
  }

  static const collet_backend* table() {
    static const collet_backend functions =
        backend_table(open, close, device_info, alloc, free, copy, supports, compile, execute, release, query);
    return &functions;
  }

 private:
  static Options read_options(const collet_open_options& from) {
    Options out;
    const std::vector<std::string>&keys = backend().options, &targets = backend().targets;
    out.device_count = from.device_count;
    if (from.target) out.target = from.target;
    if (!out.target.empty() && std::find(targets.begin(), targets.end(), out.target) == targets.end()) {
      throw Error(COLLET_NOT_FOUND, backend().name + " has no target '" + out.target + "'");
    }
    for (uint32_t i = 0; i < from.pairs; ++i) {
      if (std::find(keys.begin(), keys.end(), from.keys[i]) == keys.end()) {
        throw Error(COLLET_INVALID_ARGUMENT, backend().name + " has no option '" + from.keys[i] + "'");
      }
      out.values[from.keys[i]] = from.values[i];
    }
    return out;
  }

  /** Opens the devices of an instance whose description is set. */
  static void fill(Instance* instance) {
    const Backend& mine = instance->backend;
    for (const collet_type_support& type : mine.types) instance->known = instance->known | TypeSet{type.type};
    const auto add_space = [&](const std::string& kind, uint64_t bytes, uint32_t alignment, uint32_t flags) {
      collet_memory_space space{};
      space.bytes = bytes;
      space.alignment = alignment;
      space.flags = flags;
      collet_copy_text(space.kind, sizeof space.kind, kind.c_str());
      instance->spaces.push_back(space);
    };
    add_space("device", mine.memory_bytes, mine.alignment,
              COLLET_SPACE_DEFAULT | (mine.host_visible ? uint32_t{COLLET_SPACE_HOST_VISIBLE} : 0));
    for (const Space& one : mine.more_spaces) add_space(one.kind, one.bytes, one.alignment, one.flags);
    for (uint32_t i = 0; i < mine.device_count; ++i) {
      instance->records.push_back(std::make_unique<Records>());
      instance->devices.push_back(mine.open_device(i));
      if (!instance->devices.back()) {
        throw Error(COLLET_FAILED_PRECONDITION, "Backend::open_device returned no device for " + std::to_string(i));
      }
      instance->devices.back()->set_recorder(instance->records.back().get());
      instance->usage.emplace_back(instance->spaces.size());
      instance->peers.emplace_back();
      for (uint32_t other = 0; mine.link && other < mine.device_count; ++other) {
        collet_link link{};
        if (other != i) mine.link(i, other, &link);
        if (link.hops != 0) instance->peers.back().push_back(other);
      }
    }
  }

  static void reject(collet_rejection* rejection, const std::vector<uint32_t>& ops) {
    if (!rejection) return;
    const uint32_t room = rejection->ops ? rejection->count : 0;
    rejection->count = std::min(room, static_cast<uint32_t>(ops.size()));
    std::copy_n(ops.begin(), rejection->count, rejection->ops);
  }
};

/** Implements collet_backend_entry for a backend that `describe` describes. */
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
