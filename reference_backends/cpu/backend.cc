// SPDX-License-Identifier: Apache-2.0
#include <collet/backend_table.hpp>

#include <collet/codegen/compile.h>
#include <collet/codegen/host.h>
#include <collet/error.h>
#include <collet/hash.h>
#include <collet/ranges.h>
#include <collet/tables.h>
#include <collet/kernel_records.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

#include "reference_backends/cpu/aot.h"
#include "reference_backends/cpu/memory.h"
#include "reference_backends/cpu/open_options.h"

struct collet_backend_buffer {
  char* data;
  uint64_t bytes;
  uint32_t device = 0;
  bool is_wrapped = false;  ///< the memory is the caller's
};

struct collet_backend_instance {
  collet::codegen::Target target;
  std::unique_ptr<collet::codegen::HostCompiler> compiler;  ///< null if code is only compiled for another machine
  std::unique_ptr<collet::codegen::Threads> threads;
  collet::cpu::Memory memory;
  std::string fingerprint;
  std::string kind;
  std::vector<collet_type_support> types;
  collet_memory_space space{};
  bool fuse = true;
  bool is_virtual = false;  ///< compiles only; the processor need not be this machine's
  bool is_ahead = false;    ///< compiles functions for C programs ahead of time; there is no JIT
  bool is_source = false;   ///< what it makes ahead of time is C
  bool as_function = false;
  bool verify = false;
  collet::Subnormals subnormals = collet::Subnormals::kKeep;
  std::vector<std::string> rules_off;
  std::string schedules;
  std::string tuning;
  bool list_schedules = false;
  collet::cpu::OpenOptions::Ahead ahead;
  uint32_t devices = 1;
  std::vector<uint32_t> peers;
  std::vector<std::unique_ptr<collet::kernel::detail::Records>> records;  ///< by device
};

struct collet_backend_executable {
  collet_backend_instance* instance;
  std::unique_ptr<collet::codegen::HostProgram> program;  ///< null if the program was compiled for another machine
  collet::codegen::LaunchPlan plan;                       ///< launch plan of a program for another machine
  /// The stages of the compilation, if they were requested, or the files that are compiled ahead of time.
  collet::codegen::Artifacts artifacts;
  collet::cpu::ProgramBlock block;  ///< the program from which it was compiled
};

namespace collet::cpu {
namespace {

using codegen::CompileOptions;
using codegen::LaunchPlan;
using codegen::Status;
using codegen::Threads;
using kernel::detail::Records;

collet_status fail(collet_error* error, collet_status code, const std::string& message) {
  return collet_set_error(error, code, message.c_str());
}

collet_status fail(collet_error* error, const Status& status) {
  return fail(error, status.code(), status.message());
}

/// Runs `body`, which returns a status code, and converts exceptions to errors.
template <typename Body>
collet_status guarded(collet_error* error, Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(error, COLLET_RESOURCE_EXHAUSTED, "cpu: out of memory");
  } catch (const std::exception& e) {
    return fail(error, COLLET_INTERNAL, std::string("cpu: ") + e.what());
  }
}

constexpr char kVersion[] = COLLET_VERSION_TEXT;
constexpr uint32_t kMostDevices = 1024;  ///< all of them are the same processor

collet_status open(const collet_open_options* options, collet_backend_instance** out, collet_instance_info* info,
                   collet_error* error) {
  return guarded(error, [&]() -> collet_status {
    OpenOptions chosen;
    if (Status s = read_options(options, chosen); !s.ok()) return fail(error, s);
    auto instance = std::make_unique<collet_backend_instance>();
    codegen::Target& target = instance->target;
    Status described;
    if (chosen.is_source) {
      described = codegen::source_target(chosen.cpu, target);
    } else if (chosen.is_ahead) {
      described = codegen::cross_target(chosen.cpu, target);
    } else if (chosen.cpu.empty()) {
      target = codegen::host_target(chosen.features);
    } else {
      described = codegen::named_target(chosen.cpu, target);
    }
    if (!described.ok()) return fail(error, described);
    target.tuning = chosen.numbers;
    instance->is_ahead = chosen.is_ahead;
    instance->is_source = chosen.is_source;
    instance->ahead = chosen.ahead;
    instance->as_function = chosen.as_function || chosen.is_ahead;
    if (instance->as_function) {
      target.routines = false;
    }
    instance->is_virtual = chosen.is_virtual;
    target.threads = instance->as_function ? 1 : chosen.threads;
    instance->threads = std::make_unique<Threads>(target);
    target.threads = chosen.is_ahead ? chosen.threads : instance->threads->count();
    if (!chosen.is_ahead) {
      if (Status s = codegen::HostCompiler::create(target, instance->compiler); !s.ok()) return fail(error, s);
    }
    instance->fuse = chosen.fuse;
    instance->verify = chosen.verify;
    instance->subnormals = chosen.subnormals;
    instance->rules_off = chosen.rules_off;
    instance->schedules = chosen.schedules;
    instance->tuning = chosen.tuning;
    instance->list_schedules = chosen.list_schedules;
    instance->kind = target.cpu;
    instance->fingerprint = target.fingerprint() + (chosen.fuse ? "" : ";unfused") +
                            (chosen.as_function ? ";function" : "") +
                            (target.routines && codegen::routine_composite(0) ? ";lapack" : "");
    for (const std::string& rule : chosen.rules_off) instance->fingerprint += ";without " + rule;
    if (!chosen.schedules.empty()) instance->fingerprint += ";schedules " + chosen.schedules;
    if (!chosen.tuning.empty())
      instance->fingerprint +=
          ";tuning " + std::to_string(collet_hash_bytes(0, chosen.tuning.data(), chosen.tuning.size()));
#define COLLET_TYPE(NAME, text, value, bits, kind, since)                                        \
  if (COLLET_KIND_##kind != COLLET_KIND_OPAQUE || value == COLLET_TYPE_TOKEN) {                  \
    instance->types.push_back({value, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE}); \
  }
#include <collet/types.def>
    instance->space.alignment = 64;
    instance->space.flags = COLLET_SPACE_HOST_VISIBLE | COLLET_SPACE_DEFAULT;
    std::strcpy(instance->space.kind, "device");
    info->opset = COLLET_OPSET;
    instance->devices = options && options->device_count ? options->device_count : 1;
    if (instance->devices > kMostDevices) {
      return fail(error, COLLET_RESOURCE_EXHAUSTED, "cpu: at most " + std::to_string(kMostDevices) + " devices");
    }
    for (uint32_t d = 0; d < instance->devices; ++d) {
      instance->peers.push_back(d);
      instance->records.push_back(std::make_unique<Records>());
    }
    info->device_count = instance->devices;
    info->name = "cpu";
    info->version = kVersion;
    *out = instance.release();
    return COLLET_OK;
  });
}

void close(collet_backend_instance* instance) {
  delete instance;
}

collet_status no_device(collet_error* error, uint32_t device) {
  return fail(error, COLLET_NOT_FOUND, "cpu: there is no device " + std::to_string(device));
}

collet_status device_info(collet_backend_instance* instance, uint32_t device, collet_device_info* info,
                          collet_error* error) {
  if (device >= instance->devices) return no_device(error, device);
  info->traits = COLLET_TRAIT_CONTROL_FLOW | COLLET_TRAIT_SHARED_CODE;
  if (instance->is_virtual) info->traits |= COLLET_TRAIT_VIRTUAL;
  if (instance->subnormals == Subnormals::kFlush) info->traits |= COLLET_TRAIT_FLUSHES_DENORMALS;
  if (instance->is_ahead) info->traits |= COLLET_TRAIT_INLINE_CONSTANTS;
  info->kind = instance->kind.c_str();
  info->fingerprint = instance->fingerprint.c_str();
  info->spaces = &instance->space;
  info->space_count = 1;
  info->types = instance->types.data();
  info->type_count = static_cast<uint32_t>(instance->types.size());
  info->peers = instance->peers.data();
  info->peer_count = instance->devices;
  info->coordinates[0] = static_cast<int32_t>(device);
  info->compute_units = static_cast<uint32_t>(instance->threads->count());
  info->launch_ns = 200;
  info->memory_bytes_per_ns = instance->target.memory_bytes_per_ns;
  info->flops_per_ns = instance->target.flops_per_ns * instance->threads->count();
  return COLLET_OK;
}

collet_status alloc(collet_backend_instance* instance, uint32_t device, uint32_t space, uint64_t bytes,
                    uint64_t alignment, collet_backend_buffer** out_buffer, void** out_host_pointer,
                    collet_error* error) {
  return guarded(error, [&]() -> collet_status {
    if (device >= instance->devices || space != 0) return fail(error, COLLET_NOT_FOUND, "cpu: no such memory space");
    if (alignment & (alignment - 1))
      return fail(error, COLLET_INVALID_ARGUMENT, "cpu: an alignment that is no power of two");
    auto buffer = std::make_unique<collet_backend_buffer>();
    buffer->bytes = bytes;
    buffer->device = device;
    buffer->data = static_cast<char*>(instance->memory.allocate(bytes, alignment, device));
    if (!buffer->data) {
      return fail(error, COLLET_RESOURCE_EXHAUSTED, "cpu: no room for " + std::to_string(bytes) + " bytes");
    }
    *out_host_pointer = buffer->data;
    *out_buffer = buffer.release();
    return COLLET_OK;
  });
}

void free_buffer(collet_backend_instance* instance, collet_backend_buffer* buffer) {
  if (!buffer) return;
  if (!buffer->is_wrapped) instance->memory.release(buffer->data, buffer->bytes, buffer->device);
  delete buffer;
}

collet_status wrap(collet_backend_instance* instance, uint32_t device, uint32_t space, const void* host, uint64_t bytes,
                   collet_backend_buffer** out_buffer, collet_error* error) {
  return guarded(error, [&]() -> collet_status {
    if (device >= instance->devices || space != 0) return fail(error, COLLET_NOT_FOUND, "cpu: no such memory space");
    *out_buffer = new collet_backend_buffer{static_cast<char*>(const_cast<void*>(host)), bytes, device, true};
    return COLLET_OK;
  });
}

char* address(const collet_place& place) {
  return (place.buffer ? place.buffer->data : static_cast<char*>(place.host)) + place.offset;
}

/// True if a buffer has `bytes` bytes from `offset` on.
bool has_range(const collet_backend_buffer* buffer, uint64_t offset, uint64_t bytes) {
  return collet_has_range(buffer->bytes, offset, bytes) != 0;
}

collet_status copy(collet_backend_instance*, const collet_copy_region* regions, uint32_t count, const collet_sync* sync,
                   collet_error* error) {
  if (sync) return fail(error, COLLET_UNIMPLEMENTED, "cpu: has no queues");
  for (uint32_t i = 0; i < count; ++i) {
    for (const collet_place& place : {regions[i].from, regions[i].to}) {
      if (place.buffer && !has_range(place.buffer, place.offset, regions[i].bytes))
        return fail(error, COLLET_OUT_OF_RANGE,
                    "cpu: region " + std::to_string(i) + " of a copy is not inside its buffer");
    }
  }
  for (uint32_t i = 0; i < count; ++i) {
    const collet_copy_region& r = regions[i];
    if (r.bytes == 0) continue;
    std::memcpy(address(r.to), address(r.from), r.bytes);
  }
  return COLLET_OK;
}

collet_status supports(collet_backend_instance* instance, uint32_t device, const collet_program* program,
                       const uint32_t* ops, uint32_t count, collet_verdict* verdicts, collet_error* error) {
  return guarded(error, [&]() -> collet_status {
    if (device >= instance->devices) return no_device(error, device);
    const Status s = codegen::answer_ops(program, instance->target, ops, count, verdicts);
    return s.ok() ? COLLET_OK : fail(error, s.code(), "cpu: " + s.message());
  });
}

const LaunchPlan& plan_of(const collet_backend_executable& executable) {
  return executable.program ? executable.program->plan() : executable.plan;
}

/// Sets a field of a struct if the caller's struct is long enough to have it.
#define COLLET_SET(info, field, value)                                                                      \
  do {                                                                                                      \
    if (info->struct_size >= offsetof(std::remove_pointer_t<decltype(info)>, field) + sizeof info->field) { \
      info->field = (value);                                                                                \
    }                                                                                                       \
  } while (false)

CompileOptions options_of(const collet_backend_instance& instance, const collet_program* program) {
  CompileOptions options;
  options.fuse = instance.fuse;
  options.verify = instance.verify;
  options.rules_off = instance.rules_off;
  options.schedules = instance.schedules;
  options.tuning = instance.tuning;
  options.list_schedules = instance.list_schedules;
  options.form = instance.as_function ? codegen::CodeForm::kOneFunction : codegen::CodeForm::kFunctions;
  if (instance.is_ahead) {
    const std::string said(collet_string(program, program->name), program->name.count);
    options.name = codegen::c_identifier(instance.ahead.name.empty() ? said : instance.ahead.name);
  }
  return options;
}

/// Makes the files for C programs: a header, an object file, a library, and the weights unless they are in the object
/// file.
Status make_files(const collet_backend_instance& instance, const collet_program* program, bool keep_artifacts,
                  collet_backend_executable& executable) {
  for (uint32_t i = 0; i < program->constants.count; ++i) {
    if (collet_constant_at(program, i)->argument != COLLET_NONE)
      return {COLLET_UNIMPLEMENTED, "no code is made ahead of time for constants that are arguments"};
  }
  CompileOptions options = options_of(instance, program);
  options.embed_constants = instance.ahead.embed;
  CompileOptions entry = options;
  entry.name = options.name + "_slots";
  entry.keep_artifacts = keep_artifacts;
  codegen::CompiledProgram made;
  if (instance.is_source) entry.form = codegen::CodeForm::kSource;
  const Status compiled = codegen::compile(program, instance.target, entry, made);
  executable.artifacts = std::move(made.artifacts);
  COLLET_CODEGEN_TRY(compiled);
  executable.artifacts.emplace_back(options.name + ".h",
                                    codegen::c_header(program, made.plan, options, instance.target));
  if (instance.is_source) {
    std::erase_if(executable.artifacts, [](const auto& file) { return file.first == "program.c"; });
    executable.artifacts.emplace_back(options.name + ".c", std::move(made.object));
  } else {
    std::string archive;
    COLLET_CODEGEN_TRY(codegen::make_archive(made.object, options.name + ".o", archive));
    executable.artifacts.emplace_back(options.name + ".o", std::move(made.object));
    executable.artifacts.emplace_back(options.name + ".a", std::move(archive));
  }
  if (!options.embed_constants)
    executable.artifacts.emplace_back(options.name + ".weights",
                                      std::string(made.plan.constants.data(), made.plan.constants.size()));
  executable.plan = std::move(made.plan);
  return {};
}

/// `objects` is object code of an earlier compilation, or null.
collet_status make_executable(collet_backend_instance* instance, const collet_program* program,
                              const collet_compile_options* options, const std::vector<std::string>* objects,
                              collet_backend_executable** out, collet_executable_info* info, collet_error* error) {
  return guarded(error, [&]() -> collet_status {
    const bool keep_artifacts = options && options->intermediate_check != 0;
    auto executable = std::make_unique<collet_backend_executable>();
    executable->instance = instance;
    Status s;
    if (instance->is_ahead) {
      s = make_files(*instance, program, keep_artifacts, *executable);
    } else if (objects) {
      s = instance->compiler->load(program, options_of(*instance, program), *objects, executable->program);
    } else {
      s = instance->compiler->compile(program, options_of(*instance, program),
                                      keep_artifacts ? &executable->artifacts : nullptr, executable->program);
    }
    if (!s.ok()) return fail(error, s.code(), "cpu: " + s.message());
    executable->block.resize((program->total_bytes + 7) / 8);
    std::memcpy(executable->block.data(), program, program->total_bytes);
    const LaunchPlan& plan = plan_of(*executable);
    COLLET_SET(info, absorbed_count, 0u);
    COLLET_SET(info, workspace_bytes, plan.workspace_bytes);
    COLLET_SET(info, workspace_alignment, uint64_t{64});
    COLLET_SET(info, resident_bytes, uint64_t{plan.constants.size()});
    COLLET_SET(info, code_bytes, executable->program ? executable->program->code_bytes() : 0);
    COLLET_SET(info, kernels, plan.kernels);
    COLLET_SET(info, traffic_bytes, plan.traffic_bytes);
    *out = executable.release();
    return COLLET_OK;
  });
}

collet_status compile(collet_backend_instance* instance, const collet_program* program,
                      const collet_compile_options* options, collet_backend_executable** out,
                      collet_executable_info* info, collet_rejection* rejection, collet_error* error) {
  const collet_status refused = guarded(error, [&]() -> collet_status {
    const Status s = codegen::check_program(program, instance->target, rejection);
    return s.ok() ? COLLET_OK : fail(error, s.code(), "cpu: " + s.message());
  });
  return refused != COLLET_OK ? refused : make_executable(instance, program, options, nullptr, out, info, error);
}

/// Returns everything that code depends on except the program.
std::string target_of(const collet_backend_instance& instance) {
  return std::string("cpu ") + kVersion + " " + instance.fingerprint;
}

collet_status serialize(collet_backend_executable* executable, void* out, uint64_t capacity, uint64_t* out_bytes,
                        collet_error* error) {
  return guarded(error, [&]() -> collet_status {
    static const std::vector<std::string> none;
    const std::string bytes = write_executable(target_of(*executable->instance), executable->block,
                                               executable->program ? executable->program->objects() : none);
    *out_bytes = bytes.size();
    if (capacity >= bytes.size()) std::memcpy(out, bytes.data(), bytes.size());
    return COLLET_OK;
  });
}

collet_status load(collet_backend_instance* instance, const void* bytes, uint64_t size,
                   const collet_compile_options* options, collet_backend_executable** out, collet_executable_info* info,
                   collet_error* error) {
  return guarded(error, [&]() -> collet_status {
    StoredExecutable stored;
    const Status s = read_executable({static_cast<const char*>(bytes), size}, target_of(*instance), stored);
    if (!s.ok()) return fail(error, s);
    const auto* program = reinterpret_cast<const collet_program*>(stored.program.data());
    if ((program->total_bytes + 7) / 8 != stored.program.size()) {
      return fail(error, COLLET_DATA_LOSS, "cpu: the bytes of an executable are damaged");
    }
    return make_executable(instance, program, options, &stored.objects, out, info, error);
  });
}

char* base_of(const collet_argument& a) {
  if (a.flags & COLLET_ARG_IMMEDIATE) return const_cast<char*>(reinterpret_cast<const char*>(a.immediate));
  return a.buffer ? a.buffer->data + a.offset : nullptr;
}

/// True if an argument's buffer has at least `bytes` bytes.
bool has_bytes(const collet_argument& a, uint64_t bytes) {
  if (bytes == 0) return true;
  if (a.flags & COLLET_ARG_IMMEDIATE) return bytes <= sizeof a.immediate;
  return a.buffer && has_range(a.buffer, a.offset, bytes);
}

constexpr size_t kStackSlots = 128;

collet_status check_launch(const collet_backend_executable& executable, const collet_launch& launch,
                           collet_error* error) {
  const LaunchPlan& plan = plan_of(executable);
  if (launch.sync) return fail(error, COLLET_UNIMPLEMENTED, "cpu: has no queues");
  if (launch.device >= executable.instance->devices) return no_device(error, launch.device);
  if (launch.argument_count != plan.arguments || launch.result_count != plan.results) {
    return fail(error, COLLET_INVALID_ARGUMENT, "cpu: wrong number of arguments or results");
  }
  for (uint32_t i = 0; i < plan.arguments; ++i) {
    const collet_argument& a = launch.arguments[i];
    if (a.bytes != plan.argument_bytes[i] || !has_bytes(a, a.bytes)) {
      return fail(error, COLLET_INVALID_ARGUMENT, "cpu: argument " + std::to_string(i) + " has no buffer of its size");
    }
  }
  for (uint32_t i = 0; i < plan.results; ++i) {
    const collet_argument& r = launch.results[i];
    if (r.bytes != plan.result_bytes[i] || (r.flags & COLLET_ARG_IMMEDIATE) || !has_bytes(r, r.bytes)) {
      return fail(error, COLLET_INVALID_ARGUMENT, "cpu: result " + std::to_string(i) + " has no buffer of its size");
    }
  }
  if (launch.workspace.bytes < plan.workspace_bytes || !has_bytes(launch.workspace, plan.workspace_bytes)) {
    return fail(error, COLLET_INVALID_ARGUMENT, "cpu: the workspace is too small");
  }
  return COLLET_OK;
}

collet_status execute(collet_backend_executable* executable, const collet_launch* launches, uint32_t count,
                      uint64_t run_id, collet_error* error) {
  if (executable->instance->is_virtual)
    return fail(error, COLLET_FAILED_PRECONDITION, "cpu: a virtual device runs nothing");
  return guarded(error, [&]() -> collet_status {
    const LaunchPlan& plan = plan_of(*executable);
    for (uint32_t l = 0; l < count; ++l) {
      if (collet_status s = check_launch(*executable, launches[l], error); s != COLLET_OK) return s;
    }
    const size_t slots = plan.arguments + plan.results + 2;
    char* few[kStackSlots];
    std::vector<char*> many(slots > kStackSlots ? slots : 0);
    char** bases = slots > kStackSlots ? many.data() : few;
    const ScopedFloatModes modes(FloatModes::usual(executable->instance->subnormals));
    for (uint32_t l = 0; l < count; ++l) {
      const collet_launch& launch = launches[l];
      for (uint32_t i = 0; i < plan.arguments; ++i) bases[i] = base_of(launch.arguments[i]);
      for (uint32_t i = 0; i < plan.results; ++i) bases[codegen::result_slot(plan, i)] = base_of(launch.results[i]);
      bases[codegen::workspace_slot(plan)] = base_of(launch.workspace);
      Records& records = *executable->instance->records[launch.device];
      if (!records.is_on()) {
        executable->program->run(bases, *executable->instance->threads);
        continue;
      }
      const codegen::StepListener listener = [&](const codegen::StepTime& step) {
        records.add({step.name, "compute", step.start_ns, step.duration_ns, run_id});
      };
      executable->program->run(bases, *executable->instance->threads, &listener);
    }
    return COLLET_OK;
  });
}

void release(collet_backend_executable* executable) {
  delete executable;
}

collet_status memory_stats(collet_backend_instance* instance, uint32_t device, uint32_t space,
                           collet_memory_stats* stats, collet_error* error) {
  if (device >= instance->devices || space != 0) return fail(error, COLLET_NOT_FOUND, "cpu: no such memory space");
  const Memory::Statistics s = instance->memory.statistics(device);
  COLLET_SET(stats, bytes_in_use, s.in_use);
  COLLET_SET(stats, peak_bytes_in_use, s.peak);
  COLLET_SET(stats, bytes_limit, uint64_t{0});
  COLLET_SET(stats, allocations, s.allocations);
  return COLLET_OK;
}

collet_status artifact(collet_backend_executable* executable, uint32_t index, const char** out_name,
                       const void** out_bytes, uint64_t* out_size, collet_error* error) {
  const codegen::Artifacts& all = executable->artifacts;
  if (index >= all.size()) return fail(error, COLLET_OUT_OF_RANGE, "cpu: no more artifacts");
  const auto& [name, text] = all[index];
  *out_name = name.c_str();
  *out_bytes = text.data();
  *out_size = text.size();
  return COLLET_OK;
}

collet_status enable_profile(collet_backend_instance* instance, uint32_t device, uint32_t on, collet_error* error) {
  if (device >= instance->devices) return no_device(error, device);
  instance->records[device]->enable(on != 0);
  return COLLET_OK;
}

collet_status read_profile(collet_backend_instance* instance, uint32_t device, collet_profile_record* records,
                           uint32_t capacity, uint32_t* out_count, collet_error* error) {
  return guarded(error, [&]() -> collet_status {
    if (device >= instance->devices) return no_device(error, device);
    *out_count = instance->records[device]->read(records, capacity);
    return COLLET_OK;
  });
}

constexpr collet_aot_table kAot = {sizeof(collet_aot_table), 0, serialize, load};
constexpr collet_memory_stats_table kMemoryStats = {sizeof(collet_memory_stats_table), 0, memory_stats};
constexpr collet_artifacts_table kArtifacts = {sizeof(collet_artifacts_table), 0, artifact};
constexpr collet_profile_table kProfile = {sizeof(collet_profile_table), 0, enable_profile, read_profile};
constexpr collet_host_buffers_table kHostBuffers = {sizeof(collet_host_buffers_table), 0, wrap};

/// Returns the names of the composites that the SDK should offer as patterns.
const char* pattern(collet_backend_instance* instance, uint32_t, uint32_t index) {
  return instance->target.routines ? codegen::routine_composite(index) : nullptr;
}

constexpr collet_patterns_table kPatterns = {sizeof(collet_patterns_table), 0, pattern, nullptr, nullptr};

const void* query(collet_backend_instance*, const char* name, uint32_t version) {
  if (version != 1) return nullptr;
  if (std::strcmp(name, "patterns") == 0) return &kPatterns;
  if (std::strcmp(name, "aot") == 0) return &kAot;
  if (std::strcmp(name, "memory_stats") == 0) return &kMemoryStats;
  if (std::strcmp(name, "artifacts") == 0) return &kArtifacts;
  if (std::strcmp(name, "profile") == 0) return &kProfile;
  if (std::strcmp(name, "host_buffers") == 0) return &kHostBuffers;
  return nullptr;
}

constexpr collet_backend kTable =
    backend_table(open, close, device_info, alloc, free_buffer, copy, supports, compile, execute, release, query);

}  // namespace
}  // namespace collet::cpu

collet_status collet_backend_entry(const collet_host* host, const collet_backend** out_backend, collet_error* error) {
  if (host->abi_major != COLLET_ABI_MAJOR) {
    return collet::cpu::fail(
        error, COLLET_FAILED_PRECONDITION,
        "cpu: built for ABI " + std::to_string(COLLET_ABI_MAJOR) + ", the host has " + std::to_string(host->abi_major));
  }
  *out_backend = &collet::cpu::kTable;
  return COLLET_OK;
}
