// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/testing/wrapper.h"

#include <collet/error.h>
#include <collet/backend_table.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sdk/runtime/testing/inner.h"

namespace collet::testing {
namespace {

struct Instance {
  const collet_backend* inner = nullptr;
  collet_backend_instance* instance = nullptr;
  Control* control = nullptr;
  std::string name;
  std::vector<collet_type_support> types;
  std::vector<collet_memory_space> spaces;
  std::mutex mutex;
  std::map<collet_backend_buffer*, uint64_t> sizes;
};

struct Executable {
  Instance* owner;
  collet_backend_executable* inner;
  bool absorbs;
};

const collet_host* host = nullptr;

Instance* of(collet_backend_instance* p) {
  return reinterpret_cast<Instance*>(p);
}
Executable* of(collet_backend_executable* p) {
  return reinterpret_cast<Executable*>(p);
}

collet_status fail(collet_error* error, collet_status code, const char* message) {
  return collet_set_error(error, code, message);
}

bool fails_now(Control* c, uint32_t kind) {
  if (!(c->counted & kind)) return false;
  const int64_t call = c->calls.fetch_add(1), at = c->fail_at.load();
  return call == at || (c->for_good && at >= 0 && call > at);
}

// Fails in the call's own way, or as a lost device.
collet_status inject(const Control* c, collet_error* error, collet_status own, const char* message) {
  return fail(error, c->loses ? collet_status{COLLET_UNAVAILABLE} : own, message);
}

void take_longer(const std::atomic<int64_t>& ns) {
  if (const int64_t n = ns.load()) std::this_thread::sleep_for(std::chrono::nanoseconds(n));
}

collet_status open(const collet_open_options* options, collet_backend_instance** out, collet_instance_info* info,
                   collet_error* error) {
  std::string path = beside(&host, "interpreter");
  Control* control = default_control();
  for (uint32_t i = 0; i < options->pairs; ++i) {
    if (!std::strcmp(options->keys[i], "inner")) path = options->values[i];
    if (!std::strcmp(options->keys[i], "control"))
      control = reinterpret_cast<Control*>(std::strtoull(options->values[i], nullptr, 10));
  }
  if (!control) return fail(error, COLLET_INVALID_ARGUMENT, "needs the option control");
  auto instance = new Instance;
  instance->control = control;
  collet_status code = load_inner(path, host, &instance->inner, error);
  if (code == COLLET_OK) {
    collet_open_options inner = *options;
    inner.pairs = 0;
    code = instance->inner->open(&inner, &instance->instance, info, error);
  }
  if (code != COLLET_OK) {
    delete instance;
    return code;
  }
  instance->name = default_name() ? default_name() : std::string("wrapped_") + info->name;
  info->name = instance->name.c_str();
  ++control->instances;
  *out = reinterpret_cast<collet_backend_instance*>(instance);
  return COLLET_OK;
}

void close(collet_backend_instance* p) {
  Instance* i = of(p);
  i->inner->close(i->instance);
  --i->control->instances;
  delete i;
}

collet_status device_info(collet_backend_instance* p, uint32_t device, collet_device_info* info, collet_error* error) {
  Instance* i = of(p);
  const collet_status code = i->inner->device_info(i->instance, device, info, error);
  if (code != COLLET_OK) return code;
  info->traits &= ~i->control->remove_traits;
  info->link_latency_ns = i->control->link_latency_ns;
  info->link_bytes_per_ns = i->control->link_bytes_per_ns;
  info->smallest_cluster = i->control->smallest_cluster;
  info->memory_bytes_per_ns = 0;  // speed unknown
  info->flops_per_ns = 0;
  info->launch_ns = 0;
  if (i->types.empty())
    for (uint32_t t = 0; t < info->type_count; ++t)
      if (i->control->types >> info->types[t].type & 1) i->types.push_back(info->types[t]);
  if (i->spaces.empty()) {
    i->spaces.assign(info->spaces, info->spaces + info->space_count);
    for (collet_memory_space& s : i->spaces)
      if (i->control->hide_memory) s.flags &= ~uint32_t{COLLET_SPACE_HOST_VISIBLE};
  }
  info->spaces = i->spaces.data();
  info->types = i->types.data();
  info->type_count = static_cast<uint32_t>(i->types.size());
  return COLLET_OK;
}

collet_status alloc(collet_backend_instance* p, uint32_t device, uint32_t space, uint64_t bytes, uint64_t alignment,
                    collet_backend_buffer** out, void** out_host, collet_error* error) {
  Instance* i = of(p);
  Control* c = i->control;
  if (fails_now(c, kAlloc) || c->memory + static_cast<int64_t>(bytes) > c->memory_limit)
    return inject(i->control, error, COLLET_RESOURCE_EXHAUSTED, "injected: no memory");
  const collet_status code = i->inner->alloc(i->instance, device, space, bytes, alignment, out, out_host, error);
  if (code != COLLET_OK) return code;
  ++c->buffers;
  c->memory += static_cast<int64_t>(bytes);
  const std::lock_guard lock(i->mutex);
  i->sizes[*out] = bytes;
  return code;
}

void free(collet_backend_instance* p, collet_backend_buffer* buffer) {
  --of(p)->control->buffers;
  {
    const std::lock_guard lock(of(p)->mutex);
    of(p)->control->memory -= static_cast<int64_t>(of(p)->sizes.extract(buffer).mapped());
  }
  of(p)->inner->free(of(p)->instance, buffer);
}

collet_status copy(collet_backend_instance* p, const collet_copy_region* regions, uint32_t count,
                   const collet_sync* sync, collet_error* error) {
  Instance* i = of(p);
  if (fails_now(i->control, kCopy)) return inject(i->control, error, COLLET_INTERNAL, "injected: copy failed");
  take_longer(i->control->copy_delay_ns);
  return i->inner->copy(i->instance, regions, count, sync, error);
}

bool wanted(const Control* c, uint32_t opcode) {
  if (c->only_count == 0) return true;
  return std::find(c->only, c->only + c->only_count, opcode) != c->only + c->only_count;
}

collet_status supports(collet_backend_instance* p, uint32_t device, const collet_program* program, const uint32_t* ops,
                       uint32_t count, collet_verdict* verdicts, collet_error* error) {
  Instance* i = of(p);
  if (fails_now(i->control, kSupports)) return inject(i->control, error, COLLET_INTERNAL, "injected: supports failed");
  const collet_status code = i->inner->supports(i->instance, device, program, ops, count, verdicts, error);
  if (code != COLLET_OK) return code;
  for (uint32_t k = 0; k < count; ++k) {
    verdicts[k].group = i->control->group;
    if (i->control->cost_ns > 0) verdicts[k].cost_ns = i->control->cost_ns;
    if (wanted(i->control, collet_op_at(program, ops[k])->opcode)) continue;
    verdicts[k].answer = COLLET_DECLINE;
    std::snprintf(verdicts[k].reason, sizeof verdicts[k].reason, "not one of its ops");
  }
  return COLLET_OK;
}

collet_status compile(collet_backend_instance* p, const collet_program* program, const collet_compile_options* options,
                      collet_backend_executable** out, collet_executable_info* info, collet_rejection* rejection,
                      collet_error* error) {
  Instance* i = of(p);
  rejection->count = 0;
  if (fails_now(i->control, kCompile)) return inject(i->control, error, COLLET_INTERNAL, "injected: compile failed");
  ++i->control->compiles;
  if (i->control->reject) {
    const collet_region* entry = collet_region_at(program, 0);
    bool others = false;
    for (uint32_t k = 0; k < entry->ops.count; ++k) {
      const uint32_t number = entry->ops.first + k;
      const uint32_t opcode = collet_op_at(program, number)->opcode;
      if (opcode == i->control->reject && others) {
        rejection->ops[0] = number;
        rejection->count = 1;
        return fail(error, COLLET_UNIMPLEMENTED, "injected: too much at once");
      }
      others |= opcode != COLLET_OP_CONSTANT;
    }
  }
  collet_backend_executable* inner = nullptr;
  const collet_status code = i->inner->compile(i->instance, program, options, &inner, info, rejection, error);
  if (code != COLLET_OK) return code;
  ++i->control->executables;
  const bool absorbs = options->assignment[0] == i->control->absorbs_on && program->constants.count > 0;
  if (absorbs) {
    info->absorbed_count = 1;
    info->absorbed[0] = 0;
  }
  *out = reinterpret_cast<collet_backend_executable*>(new Executable{i, inner, absorbs});
  return COLLET_OK;
}

bool is_result(const collet_launch& launch, const collet_backend_buffer* buffer) {
  return std::any_of(launch.results, launch.results + launch.result_count,
                     [&](const collet_argument& r) { return r.buffer == buffer; });
}

// Overwrites the donated arguments of a launch, as an executable may, except those whose buffers are results.
collet_status scribble(Instance* i, const collet_launch& launch, collet_error* error) {
  for (uint32_t k = 0; k < launch.argument_count; ++k) {
    const collet_argument& a = launch.arguments[k];
    if (!(a.flags & COLLET_ARG_DONATED)) continue;
    ++i->control->donated;
    if (is_result(launch, a.buffer)) continue;
    std::vector<char> garbage(a.bytes, '\x5a');
    collet_copy_region region{};
    region.from.host = garbage.data();
    region.to.buffer = a.buffer;
    region.to.offset = a.offset;
    region.bytes = a.bytes;
    if (const collet_status code = i->inner->copy(i->instance, &region, 1, nullptr, error); code != COLLET_OK)
      return code;
  }
  return COLLET_OK;
}

int64_t absent(const collet_launch& launch) {
  return std::count_if(launch.arguments, launch.arguments + launch.argument_count,
                       [](const collet_argument& a) { return (a.flags & COLLET_ARG_ABSENT) != 0; });
}

collet_status execute(collet_backend_executable* p, const collet_launch* launches, uint32_t count, uint64_t run_id,
                      collet_error* error) {
  Instance* i = of(p)->owner;
  Control* c = i->control;
  if (fails_now(c, kExecute) || launches[0].device == c->broken_device)
    return inject(c, error, c->failure, "injected: execute failed");
  ++c->executes;
  take_longer(c->delay_ns);
  if (of(p)->absorbs) return COLLET_OK;
  for (uint32_t k = 0; k < count; ++k) c->wrongly_absent += absent(launches[k]);
  const collet_status code = i->inner->execute(of(p)->inner, launches, count, run_id, error);
  for (uint32_t k = 0; k < count && code == COLLET_OK && c->scribble; ++k)
    if (const collet_status wrong = scribble(i, launches[k], error); wrong != COLLET_OK) return wrong;
  return code;
}

void release(collet_backend_executable* p) {
  --of(p)->owner->control->executables;
  of(p)->owner->inner->release(of(p)->inner);
  delete of(p);
}

constexpr collet_backend kBackend =
    backend_table(open, close, device_info, alloc, free, copy, supports, compile, execute, release, nullptr);

}  // namespace
}  // namespace collet::testing

extern "C" collet_status collet_backend_entry(const collet_host* the_host, const collet_backend** out, collet_error*) {
  collet::testing::host = the_host;
  *out = &collet::testing::kBackend;
  return COLLET_OK;
}
