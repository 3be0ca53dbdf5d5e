/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_TABLES_HPP
#define COLLET_KERNEL_TABLES_HPP

/** \file
 * The optional tables (tables.h) of a backend that is a table of kernels. Included by kernel_backend.hpp.
 */

#include "hash.h"
#include "kernel_executable.hpp"

namespace collet {
namespace kernel {
namespace detail {

/** Reads a struct of the SDK as this header defines it; fields that the SDK's struct lacks are zero. */
template <class T>
T read_sized(const T* from) {
  T out;
  std::memset(static_cast<void*>(&out), 0, sizeof out);
  std::memcpy(static_cast<void*>(&out), from, std::min<size_t>(from->struct_size, sizeof out));
  return out;
}

/** Writes a struct of the SDK, not beyond the size that it has there; its struct_size stays. */
template <class T>
void write_sized(T* to, T from) {
  const uint32_t size = to->struct_size;
  from.struct_size = size;
  std::memcpy(static_cast<void*>(to), &from, std::min<size_t>(size, sizeof from));
}

inline const Executable* unwrap(collet_backend_executable* executable) {
  return reinterpret_cast<const Executable*>(executable);
}

/** Writes the facts that compile returns about an executable. */
inline void write_info(const Executable& executable, collet_executable_info* info) {
  collet_executable_info said = read_sized(info);
  const std::vector<uint32_t> absorbed = executable.absorbed();
  const auto count = static_cast<uint32_t>(std::min<size_t>(absorbed.size(), said.absorbed ? said.absorbed_count : 0));
  std::copy(absorbed.begin(), absorbed.begin() + count, said.absorbed);
  said.absorbed_count = count;
  said.workspace_bytes = executable.plan().workspace_bytes;
  said.workspace_alignment = executable.backend().alignment;
  said.resident_bytes = executable.plan().resident_bytes;
  said.code_bytes = executable.code_bytes();
  said.kernels = executable.plan().kernels;
  said.traffic_bytes = executable.plan().traffic_bytes;
  said.estimated_ns = executable.plan().estimated_ns;
  said.energy_nj = executable.plan().energy_nj;
  said.cycles = executable.plan().cycles;
  write_sized(info, said);
}

/** "queue". */
struct QueueFunctions {
  static collet_status create(collet_backend_instance* handle, uint32_t device, uint32_t kind,
                              collet_backend_queue** out, collet_error* error) {
    return guarded(error, [&] {
      unwrap(handle)->device(device);
      if (kind > COLLET_QUEUE_DOWNLOAD) throw Error(COLLET_INVALID_ARGUMENT, "there is no such kind of queue");
      *out = reinterpret_cast<collet_backend_queue*>(std::make_unique<Queue>(unwrap(handle), device, kind).release());
    });
  }
  static void destroy(collet_backend_queue* queue) { delete Queue::from(queue); }
  static collet_status wait(collet_backend_queue* queue, uint64_t value, uint64_t timeout_ns, collet_error* error) {
    return guarded(error, [&] { Queue::from(queue)->wait(value, timeout_ns); });
  }
  static void abort(collet_backend_queue* queue, collet_status status, const char* message) {
    Queue::from(queue)->abort(status, message);
  }
  static const void* table() {
    static const collet_queue_table functions = {sizeof functions, 0, create, destroy, wait, nullptr, nullptr, abort};
    return &functions;
  }
};

/** "memory_stats": counts the SDK's allocations, without the constants and packed forms that executables hold. */
struct MemoryFunctions {
  static collet_status get(collet_backend_instance* handle, uint32_t device, uint32_t space, collet_memory_stats* stats,
                           collet_error* error) {
    return guarded(error, [&] {
      Instance* instance = unwrap(handle);
      instance->device(device);
      if (space >= instance->spaces.size()) throw Error(COLLET_OUT_OF_RANGE, "there is no such memory space");
      const std::lock_guard<std::mutex> lock(instance->usage_mutex);
      const Usage& usage = instance->usage[device][space];
      collet_memory_stats said{};
      said.bytes_in_use = usage.bytes;
      said.peak_bytes_in_use = usage.peak;
      said.bytes_limit = instance->spaces[space].bytes;
      said.allocations = usage.pieces;
      write_sized(stats, said);
    });
  }
  static const void* table() {
    static const collet_memory_stats_table functions = {sizeof functions, 0, get};
    return &functions;
  }
};

/** "artifacts": the plan as text, or the artifacts of a compiler of whole programs. */
struct ArtifactFunctions {
  static collet_status get(collet_backend_executable* handle, uint32_t index, const char** out_name,
                           const void** out_bytes, uint64_t* out_size, collet_error* error) {
    return guarded(error, [&] {
      const auto& all = unwrap(handle)->artifacts();
      if (index >= all.size()) throw Error(COLLET_OUT_OF_RANGE, "there are no more artifacts");
      *out_name = all[index].first.c_str();
      *out_bytes = all[index].second.data();
      *out_size = all[index].second.size();
    });
  }
  static const void* table() {
    static const collet_artifacts_table functions = {sizeof functions, 0, get};
    return &functions;
  }
};

/** "aot": stores the program, which is planned again when it is loaded, or what a compiler of whole programs made of it, and the
 * results of measurements. */
struct AotFunctions {
  struct Head {
    char magic[8];
    uint64_t checksum;  // checksum of all bytes after it
    uint64_t maker_bytes;
    uint64_t tuning_bytes;
    uint64_t code_bytes;
    uint64_t block_bytes;
  };
  static constexpr size_t checked_from = 16;  // magic and checksum stand before
  static constexpr char magic[8] = {'C', 'L', 'T', 'K', 'R', 'N', 'L', '3'};

  static collet_status serialize(collet_backend_executable* handle, void* out, uint64_t capacity, uint64_t* out_bytes,
                                 collet_error* error) {
    return guarded(error, [&] {
      const Executable& executable = *unwrap(handle);
      const std::string maker = maker_of(executable.backend());
      const uint64_t block_bytes = executable.block().size() * sizeof(uint64_t);
      const std::string &tuning = executable.tuning(), code = executable.code();
      std::string bytes(sizeof(Head), '\0');
      bytes += maker;
      bytes += tuning;
      bytes += code;
      bytes.append(reinterpret_cast<const char*>(executable.block().data()), block_bytes);
      Head head{{}, 0, maker.size(), tuning.size(), code.size(), block_bytes};
      std::memcpy(head.magic, magic, sizeof magic);
      std::memcpy(&bytes[0], &head, sizeof head);
      head.checksum = checksum_of(bytes);
      std::memcpy(&bytes[0], &head, sizeof head);
      *out_bytes = bytes.size();
      if (bytes.size() <= capacity) std::memcpy(out, bytes.data(), bytes.size());
    });
  }

  static collet_status load(collet_backend_instance* handle, const void* from, uint64_t size,
                            const collet_compile_options* options, collet_backend_executable** out,
                            collet_executable_info* info, collet_error* error) {
    return guarded(error, [&] {
      const std::string bytes(static_cast<const char*>(from), size);
      Head head{};
      if (size >= sizeof head) std::memcpy(&head, bytes.data(), sizeof head);
      const uint64_t rest = size - std::min<uint64_t>(size, sizeof head);
      const bool whole = std::memcmp(head.magic, magic, sizeof magic) == 0 && head.maker_bytes <= rest &&
                         head.tuning_bytes <= rest - head.maker_bytes &&
                         head.code_bytes <= rest - head.maker_bytes - head.tuning_bytes &&
                         head.block_bytes == rest - head.maker_bytes - head.tuning_bytes - head.code_bytes &&
                         head.block_bytes >= sizeof(collet_program) && head.checksum == checksum_of(bytes);
      if (!whole) throw Error(COLLET_DATA_LOSS, "these bytes are no executable, or were damaged");
      Instance* instance = unwrap(handle);
      if (bytes.compare(sizeof head, head.maker_bytes, maker_of(instance->backend)) != 0) {
        throw Error(COLLET_FAILED_PRECONDITION, "an executable of another version or device");
      }
      std::vector<uint64_t> block((head.block_bytes + 7) / 8);
      const size_t tuning_at = sizeof head + head.maker_bytes;
      const std::string tuning = bytes.substr(tuning_at, head.tuning_bytes);
      const std::string code = bytes.substr(tuning_at + head.tuning_bytes, head.code_bytes);
      std::memcpy(block.data(), bytes.data() + tuning_at + head.tuning_bytes + head.code_bytes, head.block_bytes);
      const auto* program = reinterpret_cast<const collet_program*>(block.data());
      if (program->total_bytes > head.block_bytes)
        throw Error(COLLET_DATA_LOSS, "a program of which a part is missing");
      const std::string complaint = program_complaint(program);
      if (!complaint.empty()) throw Error(COLLET_DATA_LOSS, complaint);
      const auto serial_lock = instance->lock_serial();
      std::vector<uint32_t> rejected;
      auto executable = std::make_unique<Executable>(instance, program, read_sized(options), &rejected, tuning, code);
      if (!rejected.empty()) throw Error(COLLET_FAILED_PRECONDITION, "an executable of another table of kernels");
      write_info(*executable, info);
      *out = reinterpret_cast<collet_backend_executable*>(executable.release());
    });
  }

  static const void* table() {
    static const collet_aot_table functions = {sizeof functions, 0, serialize, load};
    return &functions;
  }

 private:
  static std::string maker_of(const Backend& backend) {
    return backend.name + '\n' + backend.version + '\n' + backend.fingerprint + '\n' +
           std::to_string(opset_of(backend)) + '\n';
  }
  /** Returns the hash of the bytes after the checksum. */
  static uint64_t checksum_of(const std::string& bytes) {
    return collet_hash_bytes(0, bytes.data() + checked_from, bytes.size() - checked_from);
  }
};

/** "layout". */
struct LayoutFunctions {
  static collet_status of(collet_backend_executable* handle, uint32_t is_result, uint32_t index, collet_layout* layout,
                          collet_error* error) {
    return guarded(error, [&] {
      const collet_layout* wanted = unwrap(handle)->layout_of(is_result != 0, index);
      if (wanted) *layout = *wanted;
    });
  }
  static const void* table() {
    static const collet_layout_table functions = {sizeof functions, 0, of, nullptr};
    return &functions;
  }
};

/** "residency". */
struct ResidencyFunctions {
  static uint32_t wants(collet_backend_executable* handle, uint32_t index) {
    return unwrap(handle)->wants_packed(index) ? 1 : 0;
  }
  static collet_status prepare(collet_backend_executable* handle, uint32_t device, uint32_t index,
                               const collet_argument* value, collet_backend_buffer** out, collet_error* error) {
    return guarded(error, [&] {
      const Executable& executable = *unwrap(handle);
      Instance* instance = executable.instance();
      const auto serial_lock = instance->lock_serial();
      auto buffer = std::make_unique<Buffer>();
      OwnedMemory memory = executable.pack(device, index, *value);
      *buffer = {instance, device, 0, memory.device(), no_memory, executable.find_packed(index)->bytes};
      buffer->memory = memory.release();
      instance->add_usage(device, 0, buffer->bytes, true);
      *out = reinterpret_cast<collet_backend_buffer*>(buffer.release());
    });
  }
  static const void* table() {
    static const collet_residency_table functions = {sizeof functions, 0, wants, prepare};
    return &functions;
  }
};

/** "patterns". */
struct PatternFunctions {
  static const char* name(collet_backend_instance* handle, uint32_t, uint32_t index) {
    const Backend& backend = unwrap(handle)->backend;
    if (backend.compiler) return backend.compiler->pattern(index);
    std::vector<std::string> seen;
    for (const Kernel& kernel : backend.kernels) {
      if (kernel.pattern.empty() || std::count(seen.begin(), seen.end(), kernel.pattern)) continue;
      if (seen.size() == index) return kernel.pattern.c_str();
      seen.push_back(kernel.pattern);
    }
    return nullptr;
  }
  static const char* text(collet_backend_instance* handle, uint32_t device, uint32_t index) {
    const Backend& backend = unwrap(handle)->backend;
    if (backend.compiler) return backend.compiler->pattern_text(index);
    const char* const pattern = name(handle, device, index);
    if (!pattern) return nullptr;
    for (const Kernel& kernel : backend.kernels) {
      if (kernel.pattern == pattern && !kernel.pattern_text.empty()) return kernel.pattern_text.c_str();
    }
    return nullptr;
  }
  static uint32_t features(collet_backend_instance* handle, uint32_t device, uint32_t index) {
    const Backend& backend = unwrap(handle)->backend;
    if (backend.compiler) return backend.compiler->pattern_features(index);
    const char* const pattern = name(handle, device, index);
    uint32_t out = 0;
    for (const Kernel& kernel : backend.kernels) {
      if (pattern && kernel.pattern == pattern) out |= kernel.features;
    }
    return out;
  }
  static const void* table() {
    static const collet_patterns_table functions = {sizeof functions, 0, name, text, features};
    return &functions;
  }
};

/** "profile". */
struct ProfileFunctions {
  static collet_status enable(collet_backend_instance* handle, uint32_t device, uint32_t on, collet_error* error) {
    return guarded(error, [&] {
      unwrap(handle)->device(device);
      unwrap(handle)->records[device]->enable(on != 0);
    });
  }
  static collet_status read(collet_backend_instance* handle, uint32_t device, collet_profile_record* records,
                            uint32_t capacity, uint32_t* out_count, collet_error* error) {
    return guarded(error, [&] {
      unwrap(handle)->device(device);
      *out_count = unwrap(handle)->records[device]->read(records, capacity);
    });
  }
  static const void* table() {
    static const collet_profile_table functions = {sizeof functions, 0, enable, read};
    return &functions;
  }
};

/** "host_memory": each device of the instance is told. */
struct HostMemoryFunctions {
  static collet_status add(collet_backend_instance* handle, void* host, uint64_t bytes, collet_error* error) {
    return guarded(error, [&] {
      Instance* instance = unwrap(handle);
      const std::lock_guard<std::mutex> lock(instance->host_mutex);
      const auto begin = reinterpret_cast<uintptr_t>(host);
      const auto after = instance->host_memory.lower_bound(begin);
      const bool taken =
          (after != instance->host_memory.end() && after->first - begin < std::max<uint64_t>(bytes, 1)) ||
          (after != instance->host_memory.begin() && begin - std::prev(after)->first < std::prev(after)->second);
      if (taken) throw Error(COLLET_ALREADY_EXISTS, "a part of this host memory is registered");
      const auto serial_lock = instance->lock_serial();
      size_t done = 0;
      try {
        for (; done < instance->devices.size(); ++done) instance->devices[done]->add_host_memory(host, bytes);
        instance->host_memory[begin] = bytes;
      } catch (...) {
        while (done-- > 0) instance->devices[done]->remove_host_memory(host);
        throw;
      }
    });
  }
  static collet_status remove(collet_backend_instance* handle, void* host, collet_error* error) {
    return guarded(error, [&] {
      Instance* instance = unwrap(handle);
      const std::lock_guard<std::mutex> lock(instance->host_mutex);
      if (instance->host_memory.erase(reinterpret_cast<uintptr_t>(host)) == 0) {
        throw Error(COLLET_NOT_FOUND, "this host memory is not registered");
      }
      const auto serial_lock = instance->lock_serial();
      for (const auto& device : instance->devices) device->remove_host_memory(host);
    });
  }
  static const void* table() {
    static const collet_host_memory_table functions = {sizeof functions, 0, add, remove};
    return &functions;
  }
};

/** "host_buffers". */
struct HostBufferFunctions {
  static collet_status wrap(collet_backend_instance* handle, uint32_t device, uint32_t space, const void* host,
                            uint64_t bytes, collet_backend_buffer** out, collet_error* error) {
    return guarded(error, [&] {
      Instance* instance = unwrap(handle);
      auto buffer = std::make_unique<Buffer>();
      *buffer = {instance, device, space, instance->device(device), no_memory, bytes, true};
      if (space != 0) throw Error(COLLET_UNIMPLEMENTED, "host memory is wrapped in the default memory space alone");
      if (bytes == 0 || reinterpret_cast<uintptr_t>(host) % instance->spaces[0].alignment != 0) {
        throw Error(COLLET_INVALID_ARGUMENT, "host memory without bytes, or without the alignment of its space");
      }
      const auto serial_lock = instance->lock_serial();
      buffer->memory = buffer->device->wrap(host, bytes);
      *out = reinterpret_cast<collet_backend_buffer*>(buffer.release());
    });
  }
  static const void* table() {
    static const collet_host_buffers_table functions = {sizeof functions, 0, wrap};
    return &functions;
  }
};

/** "links". */
struct LinkFunctions {
  static collet_status between(collet_backend_instance* handle, uint32_t from, uint32_t to, collet_link* link,
                               collet_error* error) {
    return guarded(error, [&] {
      const Instance* instance = unwrap(handle);
      instance->device(from);
      instance->device(to);
      if (from == to) throw Error(COLLET_INVALID_ARGUMENT, "a link from a device to itself");
      collet_link said{};
      instance->backend.link(from, to, &said);
      write_sized(link, said);
    });
  }
  static const void* table() {
    static const collet_links_table functions = {sizeof functions, 0, between, nullptr};
    return &functions;
  }
};

/** "exchange". */
struct ExchangeFunctions {
  static uint32_t takes(collet_backend_instance* handle, const collet_exchange* exchange) {
    try {
      return unwrap(handle)->backend.exchanger->takes(read_sized(exchange)) ? 1 : 0;
    } catch (const std::exception&) {
      return 0;
    }
  }
  static collet_status run(collet_backend_instance* handle, const collet_exchange* exchange, collet_error* error) {
    return guarded(error, [&] {
      Instance* instance = unwrap(handle);
      std::vector<ExchangeMember> members;
      for (uint32_t i = 0; i < exchange->member_count; ++i) {
        const collet_exchange_member& member = exchange->members[i];
        const bool is_here = member.process == exchange->group->rank;
        members.push_back({member.process, member.device, is_here ? instance->device(member.device) : nullptr,
                           piece(instance, member.from), piece(instance, member.to)});
      }
      instance->backend.exchanger->run(read_sized(exchange), members);
    });
  }
  static const void* table() {
    static const collet_exchange_table functions = {sizeof functions, 0, takes, run};
    return &functions;
  }

 private:
  static Piece piece(const Instance* instance, const collet_place& place) {
    Piece out;
    if (!place.buffer) return out;
    check_place(instance, place, 0);
    out.memory = unwrap(place.buffer)->memory;
    out.offset = place.offset;
    return out;
  }
};

/** Returns a table for `query`, if the description has what the table needs; else null. */
inline const void* find_table(const Backend& backend, const char* name, uint32_t version) {
  const auto any = [&](const auto& has) { return std::any_of(backend.kernels.begin(), backend.kernels.end(), has); };
  const std::string wanted = name;
  if (version != 1) return nullptr;
  if (wanted == "memory_stats") return MemoryFunctions::table();
  if (wanted == "artifacts") return ArtifactFunctions::table();
  if (wanted == "aot") return AotFunctions::table();
  if (wanted == "queue") return backend.queues ? QueueFunctions::table() : nullptr;
  if (wanted == "profile") return backend.profile ? ProfileFunctions::table() : nullptr;
  if (wanted == "host_memory") return backend.host_memory ? HostMemoryFunctions::table() : nullptr;
  if (wanted == "host_buffers") return backend.host_buffers ? HostBufferFunctions::table() : nullptr;
  if (wanted == "exchange") return backend.exchanger ? ExchangeFunctions::table() : nullptr;
  if (wanted == "links") return backend.link ? LinkFunctions::table() : nullptr;
  const ProgramCompiler* compiler = backend.compiler.get();
  if (wanted == "layout") {
    const bool has = compiler ? compiler->has_layouts() : any([](const Kernel& k) { return !!k.layout; });
    return has ? LayoutFunctions::table() : nullptr;
  }
  if (wanted == "residency") {
    const bool has = compiler ? compiler->packs_arguments() : any([](const Kernel& k) { return !!k.packing.bytes; });
    return has ? ResidencyFunctions::table() : nullptr;
  }
  if (wanted == "patterns") {
    const bool compiles = compiler && compiler->pattern(0);
    return compiles || any([](const Kernel& k) { return !k.pattern.empty(); }) ? PatternFunctions::table() : nullptr;
  }
  return nullptr;
}

}  // namespace detail
}  // namespace kernel
}  // namespace collet

#endif
