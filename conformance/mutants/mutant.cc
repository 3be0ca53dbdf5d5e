// SPDX-License-Identifier: Apache-2.0
#include <collet/error.h>
#include <dlfcn.h>
#include <unistd.h>
#include <collet/backend_table.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/mutants/find_op.h"

/// \file
/// A test backend that is wrong on purpose. It forwards every call to another backend, and applies one of the faults
/// below to programs that contain a given op. The suite must detect each of them.
///
/// Options of open, or environment variables: backend (COLLET_MUTANT_BACKEND), the path of the other library; mutant
/// (COLLET_MUTANT), one of the names in kMutants; op (COLLET_MUTANT_OP), the op to which the fault applies, by default
/// the one in the table.

namespace {

enum class Wrong {
  VectorTail,
  AttributeIgnored,
  OneElement,
  Crash,
  Hang,
  HangInCompile,
  HangInOpen,
  CompileRefuses,
  ExecuteRefuses,
  DeclinesAll,
  Lost,
  FreesTwice,
  AfterAnother
};

struct Mutant {
  std::string_view name;
  Wrong wrong;
  uint32_t op;  // op to which the fault applies by default
};

constexpr Mutant kMutants[] = {
    {"vector-tail", Wrong::VectorTail, COLLET_OP_SUBTRACT},  // elements after the last full vector are not written
    // Every permutation is replaced by the reversal.
    {"attribute-ignored", Wrong::AttributeIgnored, COLLET_OP_TRANSPOSE},
    {"one-element", Wrong::OneElement, COLLET_OP_DOT},             // one element in the middle is wrong
    {"crash", Wrong::Crash, COLLET_OP_SORT},                       // the process dies
    {"hang", Wrong::Hang, COLLET_OP_REVERSE},                      // execute does not return
    {"hang-in-compile", Wrong::HangInCompile, COLLET_OP_REVERSE},  // compile does not return
    {"hang-in-open", Wrong::HangInOpen, COLLET_OP_REVERSE},        // open does not return
    // Compile returns UNIMPLEMENTED although supports accepted.
    {"compile-refuses", Wrong::CompileRefuses, COLLET_OP_DOT},
    {"execute-refuses", Wrong::ExecuteRefuses, COLLET_OP_DOT},  // execute returns UNIMPLEMENTED
    {"declines-all", Wrong::DeclinesAll, COLLET_OP_DOT},        // supports declines everything
    {"lost", Wrong::Lost, COLLET_OP_REVERSE},                   // the device is lost, and stays so
    {"frees-twice", Wrong::FreesTwice, COLLET_OP_ADD},          // release frees its state twice
    // One element in the middle is wrong as soon as the process has run a program with kOther.
    {"after-another", Wrong::AfterAnother, COLLET_OP_DOT},
};
constexpr uint32_t kOther = COLLET_OP_SINE;
constexpr uint64_t kVector = 16;

struct Choice {
  const Mutant* mutant = nullptr;
  uint32_t op = 0;
};

const collet_host* host = nullptr;
bool is_lost = false;
bool has_run_other = false;

collet_status fail(collet_error* error, collet_status code, const std::string& message) {
  return collet_set_error(error, code, message.c_str());
}

// The instance that open returns, and that of the other backend.
struct Instance {
  const collet_backend* behind = nullptr;
  collet_backend_instance* instance = nullptr;
  Choice choice;
  std::string name;
};
Instance* instance_of(collet_backend_instance* handle) {
  return reinterpret_cast<Instance*>(handle);
}

struct Result {
  uint64_t elements = 0;
  uint64_t width = 0;
};

struct Executable {
  Instance* owner = nullptr;
  collet_backend_executable* behind = nullptr;
  bool hit = false, has_other = false;
  std::vector<Result> results;
};
Executable* executable_of(collet_backend_executable* handle) {
  return reinterpret_cast<Executable*>(handle);
}

std::string option(const collet_open_options* options, std::string_view key, const char* variable) {
  for (uint32_t i = 0; i < options->pairs; ++i) {
    if (options->keys[i] == key) return options->values[i];
  }
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

uint32_t op_named(std::string_view name) {
  for (uint32_t op = 1; op < COLLET_OP_LIMIT; ++op) {
    if (name == collet_op_name(op)) return op;
  }
  return 0;
}

collet_status choose(const collet_open_options* options, Choice& choice, collet_error* error) {
  const std::string name = option(options, "mutant", "COLLET_MUTANT");
  for (const Mutant& mutant : kMutants) {
    if (mutant.name == name) choice.mutant = &mutant;
  }
  if (choice.mutant == nullptr) {
    std::string names;
    for (const Mutant& mutant : kMutants) names += (names.empty() ? "" : ", ") + std::string(mutant.name);
    return fail(error, COLLET_INVALID_ARGUMENT, "there is no mutant '" + name + "'; there are: " + names);
  }
  const std::string op = option(options, "op", "COLLET_MUTANT_OP");
  choice.op = op.empty() ? choice.mutant->op : op_named(op);
  return choice.op == 0 ? fail(error, COLLET_INVALID_ARGUMENT, "there is no op '" + op + "'") : COLLET_OK;
}

// The library stays loaded, as every plugin does.
collet_status load(const std::string& path, const collet_backend** out, collet_error* error) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fail(error, COLLET_NOT_FOUND, dlerror());
  const auto entry = reinterpret_cast<collet_backend_entry_fn>(dlsym(library, "collet_backend_entry"));
  if (entry == nullptr) return fail(error, COLLET_FAILED_PRECONDITION, path + " is no backend");
  return entry(host, out, error);
}

collet_status open_instance(const collet_open_options* options, collet_backend_instance** out_instance,
                            collet_instance_info* info, collet_error* error) {
  auto self = std::make_unique<Instance>();
  if (const collet_status code = choose(options, self->choice, error)) return code;
  while (self->choice.mutant->wrong == Wrong::HangInOpen) pause();
  if (const collet_status code = load(option(options, "backend", "COLLET_MUTANT_BACKEND"), &self->behind, error))
    return code;
  collet_open_options inner{};
  inner.struct_size = sizeof inner;
  inner.device_count = options->device_count;
  inner.target = options->target;
  if (const collet_status code = self->behind->open(&inner, &self->instance, info, error)) return code;
  self->name = "mutant-" + std::string(self->choice.mutant->name);
  info->name = self->name.c_str();
  *out_instance = reinterpret_cast<collet_backend_instance*>(self.release());
  return COLLET_OK;
}

void close_instance(collet_backend_instance* handle) {
  Instance* self = instance_of(handle);
  self->behind->close(self->instance);
  delete self;
}

collet_status device_info(collet_backend_instance* handle, uint32_t device, collet_device_info* info,
                          collet_error* error) {
  Instance* self = instance_of(handle);
  return self->behind->device_info(self->instance, device, info, error);
}

collet_status alloc_buffer(collet_backend_instance* handle, uint32_t device, uint32_t space, uint64_t bytes,
                           uint64_t alignment, collet_backend_buffer** out_buffer, void** out_host_pointer,
                           collet_error* error) {
  Instance* self = instance_of(handle);
  return self->behind->alloc(self->instance, device, space, bytes, alignment, out_buffer, out_host_pointer, error);
}

void free_buffer(collet_backend_instance* handle, collet_backend_buffer* buffer) {
  Instance* self = instance_of(handle);
  self->behind->free(self->instance, buffer);
}

collet_status copy_regions(collet_backend_instance* handle, const collet_copy_region* regions, uint32_t count,
                           const collet_sync* sync, collet_error* error) {
  Instance* self = instance_of(handle);
  return self->behind->copy(self->instance, regions, count, sync, error);
}

collet_status supports(collet_backend_instance* handle, uint32_t device, const collet_program* program,
                       const uint32_t* ops, uint32_t count, collet_verdict* verdicts, collet_error* error) {
  Instance* self = instance_of(handle);
  if (self->behind->supports == nullptr || self->choice.mutant->wrong == Wrong::DeclinesAll) return COLLET_OK;
  return self->behind->supports(self->instance, device, program, ops, count, verdicts, error);
}

// Replaces each transpose's permutation by n-1 ... 0, if the shapes allow it.
void ignore_permutations(collet_program* program) {
  for (uint32_t i = 0; i < program->ops.count; ++i) {
    const collet_op* op = collet_op_at(program, i);
    if (op->opcode != COLLET_OP_TRANSPOSE) continue;
    collet_dimensions_attrs attrs;
    collet_read_attributes(program, op, &attrs, sizeof attrs);
    const collet_type* in = collet_value_type(program, collet_operand(program, op, 0));
    const collet_type* out = collet_value_type(program, op->results.first);
    const int64_t* from = collet_integers(program, in->dims);
    const int64_t* to = collet_integers(program, out->dims);
    const uint32_t rank = in->dims.count;
    bool fits = attrs.dimensions.count == rank;
    for (uint32_t d = 0; fits && d < rank; ++d) fits = to[d] == from[rank - 1 - d];
    if (!fits) continue;
    auto* permutation = const_cast<int64_t*>(collet_integers(program, attrs.dimensions));
    for (uint32_t d = 0; d < rank; ++d) permutation[d] = rank - 1 - d;
  }
}

std::vector<Result> results_of(const collet_program* program) {
  std::vector<Result> results;
  const collet_region* entry = collet_region_at(program, 0);
  for (uint32_t i = 0; i < entry->results.count; ++i) {
    const collet_type* type = collet_value_type(program, collet_ref_at(program, entry->results.first + i));
    results.push_back({type->elements, collet_type_bytes(type->element)});
  }
  return results;
}

// Returns a writable copy in `storage`, with the alignment that programs need.
collet_program* copied(const collet_program* program, std::vector<uint64_t>& storage) {
  storage.resize((program->total_bytes + 7) / 8 + 8);
  auto* changed = reinterpret_cast<collet_program*>((reinterpret_cast<uintptr_t>(storage.data()) + 63) / 64 * 64);
  std::memcpy(changed, program, program->total_bytes);
  return changed;
}

collet_status compile(collet_backend_instance* handle, const collet_program* program,
                      const collet_compile_options* options, collet_backend_executable** out_executable,
                      collet_executable_info* info, collet_rejection* rejection, collet_error* error) {
  Instance* self = instance_of(handle);
  auto executable = std::make_unique<Executable>();
  executable->owner = self;
  executable->hit = collet::mutants::has_op(program, self->choice.op);
  executable->has_other = collet::mutants::has_op(program, kOther);
  const Wrong wrong = self->choice.mutant->wrong;
  while (executable->hit && wrong == Wrong::HangInCompile) pause();
  if (executable->hit && wrong == Wrong::CompileRefuses) return fail(error, COLLET_UNIMPLEMENTED, "not done yet");
  if (is_lost) return fail(error, COLLET_UNAVAILABLE, "the device is lost");
  executable->results = results_of(program);
  std::vector<uint64_t> storage;
  if (executable->hit && self->choice.mutant->wrong == Wrong::AttributeIgnored) {
    collet_program* changed = copied(program, storage);
    ignore_permutations(changed);
    program = changed;
  }
  const collet_status code =
      self->behind->compile(self->instance, program, options, &executable->behind, info, rejection, error);
  if (code != COLLET_OK) return code;
  *out_executable = reinterpret_cast<collet_backend_executable*>(executable.release());
  return COLLET_OK;
}

// Overwrites elements [first, first + count) of a result.
collet_status overwrite(const Executable& self, const collet_argument& result, const Result& type, uint64_t first,
                        uint64_t count, uint8_t filling, collet_error* error) {
  if (count == 0 || result.buffer == nullptr) return COLLET_OK;
  std::vector<uint8_t> bytes(count * type.width, filling);
  collet_copy_region region{};
  region.from.host = bytes.data();
  region.to.buffer = result.buffer;
  region.to.offset = result.offset + first * type.width;
  region.bytes = bytes.size();
  return self.owner->behind->copy(self.owner->instance, &region, 1, nullptr, error);
}

collet_status spoil(const Executable& self, const collet_launch& launch, collet_error* error) {
  const Wrong wrong = self.owner->choice.mutant->wrong;
  for (uint32_t i = 0; i < launch.result_count && i < self.results.size(); ++i) {
    const Result& type = self.results[i];
    collet_status code = COLLET_OK;
    if (wrong == Wrong::VectorTail) {
      const uint64_t whole = type.elements / kVector * kVector;
      code = overwrite(self, launch.results[i], type, whole, type.elements - whole, 0, error);
    } else if ((wrong == Wrong::OneElement || (wrong == Wrong::AfterAnother && has_run_other)) &&
               type.elements > kVector) {
      code = overwrite(self, launch.results[i], type, type.elements / 2, 1, 0x41, error);
    }
    if (code != COLLET_OK) return code;
  }
  return COLLET_OK;
}

collet_status execute(collet_backend_executable* handle, const collet_launch* launches, uint32_t count, uint64_t run_id,
                      collet_error* error) {
  const Executable& self = *executable_of(handle);
  const Wrong wrong = self.owner->choice.mutant->wrong;
  if (self.hit && wrong == Wrong::Crash) std::abort();
  while (self.hit && wrong == Wrong::Hang) pause();
  if (self.hit && wrong == Wrong::ExecuteRefuses) return fail(error, COLLET_UNIMPLEMENTED, "not done yet");
  is_lost |= self.hit && wrong == Wrong::Lost;
  has_run_other |= self.has_other;
  if (is_lost) return fail(error, COLLET_UNAVAILABLE, "the device is lost");
  const collet_status code = self.owner->behind->execute(self.behind, launches, count, run_id, error);
  if (code != COLLET_OK || !self.hit) return code;
  for (uint32_t i = 0; i < count; ++i) {
    if (const collet_status bad = spoil(self, launches[i], error)) return bad;
  }
  return COLLET_OK;
}

void release(collet_backend_executable* handle) {
  Executable* self = executable_of(handle);
  self->owner->behind->release(self->behind);
  if (self->hit && self->owner->choice.mutant->wrong == Wrong::FreesTwice) {
    // The pointer is volatile, because otherwise the compiler would warn about or remove the second free.
    void* volatile state = std::malloc(24);
    std::free(state);
    std::free(state);
  }
  delete self;
}

// There are no optional tables: the other backend may have queues, and a result that is not computed yet cannot be
// changed.
constexpr collet_backend kTable =
    collet::backend_table(open_instance, close_instance, device_info, alloc_buffer, free_buffer, copy_regions, supports,
                          compile, execute, release, nullptr);

}  // namespace

extern "C" COLLET_EXPORT collet_status collet_backend_entry(const collet_host* with, const collet_backend** out_backend,
                                                            collet_error* error) {
  if (with->abi_major != COLLET_ABI_MAJOR) return fail(error, COLLET_FAILED_PRECONDITION, "another ABI");
  host = with;
  *out_backend = &kTable;
  return COLLET_OK;
}
