// SPDX-License-Identifier: Apache-2.0
#include <collet/tables.h>
#include <collet/backend_table.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/program/check.h"
#include "reference_backends/interpreter/executable.h"

/// \file
/// The evaluator as a backend. It supports every op and type and computes with more precision, rounding once at the
/// end. Other backends are compared with it; it is not meant to be fast.

namespace collet::interpreter {
namespace {

constexpr uint32_t kAlignment = 64;
constexpr uint32_t kMostDevices = 64;

struct Instance {
  uint32_t devices = 1;
  hlo::EvalOptions options;
};

Instance* of(collet_backend_instance* p) {
  return reinterpret_cast<Instance*>(p);
}
Buffer* of(collet_backend_buffer* p) {
  return reinterpret_cast<Buffer*>(p);
}
Executable* of(collet_backend_executable* p) {
  return reinterpret_cast<Executable*>(p);
}

template <typename T>
Status read_number(std::string_view key, std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(static_cast<double>(out)) || out < 0)
    return invalid_argument("the interpreter's option '" + std::string(key) + "' is to be a number from 0 on, not '" +
                            std::string(text) + "'");
  return ok_status();
}

Status set_option(std::string_view key, std::string_view value, hlo::EvalOptions& options) {
  hlo::EvalLimits& limits = options.limits;
  if (key == "max_seconds") return read_number(key, value, limits.seconds);
  if (key == "max_steps") return read_number(key, value, limits.steps);
  if (key == "max_value_bytes") return read_number(key, value, limits.value_bytes);
  if (key == "other_choices" && (value == "0" || value == "1")) {
    options.other_choices = value == "1";
    return ok_status();
  }
  if (key == "other_choices")
    return invalid_argument("the interpreter's option 'other_choices' is to be 0 or 1, not '" + std::string(value) +
                            "'");
  return invalid_argument("the interpreter has no option '" + std::string(key) +
                          "'; it has max_seconds, max_steps, max_value_bytes and other_choices");
}

collet_status open(const collet_open_options* options, collet_backend_instance** out, collet_instance_info* info,
                   collet_error* error) {
  hlo::EvalOptions chosen;
  for (uint32_t i = 0; i < options->pairs; ++i) {
    const Status status = set_option(options->keys[i], options->values[i], chosen);
    if (!status.ok()) return to_c(status, error);
  }
  if (options->target) return to_c(not_found("the interpreter has no target but the host"), error);
  if (options->device_count > kMostDevices) return to_c(invalid_argument("at most 64 devices"), error);
  auto* instance = new (std::nothrow) Instance;
  if (!instance) return to_c(resource_exhausted("out of memory"), error);
  instance->options = std::move(chosen);
  instance->devices = options->device_count ? options->device_count : 1;
  info->opset = COLLET_OPSET;
  info->device_count = instance->devices;
  info->name = "interpreter";
  info->version = COLLET_VERSION_TEXT;
  *out = reinterpret_cast<collet_backend_instance*>(instance);
  return COLLET_OK;
}

void close(collet_backend_instance* instance) {
  delete of(instance);
}

const collet_type_support kTypes[] = {
#define COLLET_TYPE(NAME, text, value, bits, kind, since) \
  {value, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE},
#include <collet/types.def>
};

collet_status device_info(collet_backend_instance* instance, uint32_t device, collet_device_info* info,
                          collet_error* error) {
  static const collet_memory_space space = {
      0, kAlignment, COLLET_SPACE_HOST_VISIBLE | COLLET_SPACE_DEFAULT, "device", {0, 0}};
  static const std::vector<uint32_t> all = [] {
    std::vector<uint32_t> out(kMostDevices);
    for (uint32_t i = 0; i < kMostDevices; ++i) out[i] = i;
    return out;
  }();
  if (device >= of(instance)->devices) return to_c(invalid_argument("no such device"), error);
  info->traits = COLLET_TRAIT_CONTROL_FLOW | COLLET_TRAIT_COLLECTIVES | COLLET_TRAIT_SHARED_CODE;
  info->kind = "reference interpreter";
  info->fingerprint = "any";
  info->spaces = &space;
  info->space_count = 1;
  info->types = kTypes;
  info->type_count = std::size(kTypes);
  info->peers = all.data();
  info->peer_count = of(instance)->devices;
  info->coordinates[0] = static_cast<int32_t>(device);
  info->compute_units = 1;
  info->launch_ns = 1000;
  info->memory_bytes_per_ns = 0.1;
  info->flops_per_ns = 0.05;
  return COLLET_OK;
}

collet_status alloc(collet_backend_instance* instance, uint32_t device, uint32_t space, uint64_t bytes,
                    uint64_t alignment, collet_backend_buffer** out, void** out_host, collet_error* error) {
  if (device >= of(instance)->devices || space != 0) return to_c(not_found("no such device or memory space"), error);
  if (alignment & (alignment - 1)) return to_c(invalid_argument("an alignment that is no power of two"), error);
  auto* buffer = new (std::nothrow) Buffer;
  const uint64_t wanted = std::max<uint64_t>(alignment, kAlignment);
  const uint64_t rounded = (bytes + wanted - 1) / wanted * wanted;
  void* data = rounded >= bytes ? std::aligned_alloc(wanted, rounded) : nullptr;
  if (!buffer || !data) {
    delete buffer;
    std::free(data);
    return to_c(resource_exhausted("no memory for " + std::to_string(bytes) + " bytes"), error);
  }
  buffer->data = static_cast<char*>(data);
  buffer->bytes = bytes;
  *out = reinterpret_cast<collet_backend_buffer*>(buffer);
  *out_host = data;
  return COLLET_OK;
}

void free(collet_backend_instance*, collet_backend_buffer* buffer) {
  std::free(of(buffer)->data);
  delete of(buffer);
}

char* address(const collet_place& place) {
  return (place.buffer ? of(place.buffer)->data : static_cast<char*>(place.host)) + place.offset;
}

collet_status copy(collet_backend_instance*, const collet_copy_region* regions, uint32_t count, const collet_sync* sync,
                   collet_error* error) {
  if (sync) return to_c(unimplemented("the interpreter has no queues"), error);
  for (uint32_t i = 0; i < count; ++i)
    for (const collet_place& place : {regions[i].from, regions[i].to})
      if (place.buffer && !of(place.buffer)->has_range(place.offset, regions[i].bytes))
        return to_c(Status(Code::OutOfRange, "region " + std::to_string(i) + " of a copy is not inside its buffer"),
                    error);
  for (uint32_t i = 0; i < count; ++i)
    if (regions[i].bytes) std::memcpy(address(regions[i].to), address(regions[i].from), regions[i].bytes);
  return COLLET_OK;
}

// Infeed and outfeed exchange data with a program on the host, for which the interface has no queues.
bool runs(uint32_t opcode) {
  return opcode != COLLET_OP_INFEED && opcode != COLLET_OP_OUTFEED;
}

collet_status supports(collet_backend_instance* instance, uint32_t device, const collet_program* program,
                       const uint32_t* ops, uint32_t count, collet_verdict* verdicts, collet_error* error) {
  if (device >= of(instance)->devices) return to_c(not_found("no such device"), error);
  for (uint32_t i = 0; i < count; ++i) {
    if (ops[i] >= program->ops.count) return to_c(Status(Code::OutOfRange, "no such op"), error);
    const collet_op* op = collet_op_at(program, ops[i]);
    const char* reason = op->since > COLLET_OPSET ? "an op of a newer opset"
                         : !runs(op->opcode)      ? "the interface has no queues for infeed and outfeed"
                                                  : nullptr;
    verdicts[i].answer = reason ? COLLET_DECLINE : COLLET_ACCEPT;
    if (reason) std::snprintf(verdicts[i].reason, sizeof verdicts[i].reason, "%s", reason);
  }
  return COLLET_OK;
}

collet_status compile(collet_backend_instance* instance, const collet_program* program, const collet_compile_options*,
                      collet_backend_executable** out, collet_executable_info* info, collet_rejection* rejection,
                      collet_error* error) {
  rejection->count = 0;
  auto made = Executable::make(program, of(instance)->options, of(instance)->devices);
  if (!made.ok()) return to_c(made.status(), error);
  info->absorbed_count = 0;
  info->kernels = program->ops.count;
  *out = reinterpret_cast<collet_backend_executable*>(made->release());
  return COLLET_OK;
}

collet_status execute(collet_backend_executable* executable, const collet_launch* launches, uint32_t count, uint64_t,
                      collet_error* error) {
  for (uint32_t i = 0; i < count; ++i)
    if (launches[i].sync) return to_c(unimplemented("the interpreter has no queues"), error);
  return to_c(of(executable)->run({launches, count}), error);
}

void release(collet_backend_executable* executable) {
  delete of(executable);
}

// The serialized form of an executable is the program block from which it was made.
collet_status serialize(collet_backend_executable* executable, void* out, uint64_t capacity, uint64_t* out_bytes,
                        collet_error*) {
  const hlo::Block& program = of(executable)->program();
  *out_bytes = program.size();
  if (capacity >= program.size()) std::memcpy(out, program.data(), program.size());
  return COLLET_OK;
}

collet_status load(collet_backend_instance* instance, const void* bytes, uint64_t size, const collet_compile_options*,
                   collet_backend_executable** out, collet_executable_info* info, collet_error* error) {
  const hlo::Block program(bytes, size);
  const Status status = hlo::check_program(program.data(), program.size());
  if (!status.ok()) return to_c(Status(Code::DataLoss, status.message()), error);
  auto made = Executable::make(program.program(), of(instance)->options, of(instance)->devices);
  if (!made.ok()) return to_c(made.status(), error);
  info->absorbed_count = 0;
  info->kernels = program.program()->ops.count;
  *out = reinterpret_cast<collet_backend_executable*>(made->release());
  return COLLET_OK;
}

const void* query(collet_backend_instance*, const char* name, uint32_t version) {
  static const collet_aot_table aot = {sizeof(collet_aot_table), 0, serialize, load};
  return version == 1 && std::string_view(name) == "aot" ? &aot : nullptr;
}

constexpr collet_backend kBackend =
    backend_table(open, close, device_info, alloc, free, copy, supports, compile, execute, release, query);

}  // namespace
}  // namespace collet::interpreter

extern "C" collet_status collet_backend_entry(const collet_host* host, const collet_backend** out,
                                              collet_error* error) {
  if (host->abi_major != COLLET_ABI_MAJOR)
    return collet::to_c(collet::failed_precondition("the interpreter was built for another ABI"), error);
  *out = &collet::interpreter::kBackend;
  return COLLET_OK;
}
