// SPDX-License-Identifier: Apache-2.0
#include <collet/calling.h>
#include <collet/collet.h>
#include <collet/transfers.h>
#include <collet/float_modes.hpp>

#include <algorithm>
#include <cstring>
#include <source_location>

#include "hlo/base/utf8.h"
#include "sdk/runtime/backend/calling.h"
#include "sdk/runtime/backend/caught.h"
#include "sdk/runtime/backend/loader.h"
#include "sdk/runtime/client.h"
#include "sdk/runtime/memory/buffer.h"
#include "sdk/runtime/memory/event.h"
#include "sdk/runtime/module.h"
#include "sdk/runtime/plan/compiler.h"
#include "sdk/runtime/plan/serialize.h"
#include "sdk/runtime/processes/transfers.h"
#include "sdk/runtime/run/executable.h"
#include "sdk/runtime/trace.h"

/// \file
/// Implements the functions of collet.h: checks arguments, and calls the classes of the runtime.

using namespace collet;
using namespace collet::runtime;

struct collet_blob {
  std::string text;
};

namespace {

// Converts C handles to the classes that they stand for.
Client* of(collet_client* p) {
  return reinterpret_cast<Client*>(p);
}
ProgramModule* of(collet_module* p) {
  return reinterpret_cast<ProgramModule*>(p);
}
const ProgramModule* of(const collet_module* p) {
  return reinterpret_cast<const ProgramModule*>(p);
}
Executable* of(collet_executable* p) {
  return reinterpret_cast<Executable*>(p);
}
const Executable* of(const collet_executable* p) {
  return reinterpret_cast<const Executable*>(p);
}
Buffer* of(collet_buffer* p) {
  return reinterpret_cast<Buffer*>(p);
}
const Buffer* of(const collet_buffer* p) {
  return reinterpret_cast<const Buffer*>(p);
}
Event* of(collet_event* p) {
  return reinterpret_cast<Event*>(p);
}
template <typename C, typename T>
C* give(T* p) {
  return reinterpret_cast<C*>(p);
}

// Copies a caller's struct, whose size depends on the caller's version; missing fields are zero.
template <typename T>
Status read_struct(const T* from, T& out) {
  std::memset(&out, 0, sizeof out);
  if (!from) return ok_status();
  if (from->struct_size < sizeof(uint32_t)) return invalid_argument("struct_size is not set");
  std::memcpy(&out, from, std::min<size_t>(from->struct_size, sizeof out));
  return ok_status();
}

// Fills a caller's struct up to the size in the caller's version.
template <typename T>
Status write_struct(const T& from, T* out) {
  if (!out || out->struct_size < sizeof(uint32_t)) return invalid_argument("struct_size is not set");
  const uint32_t size = out->struct_size;
  std::memcpy(out, &from, std::min<size_t>(size, sizeof from));
  out->struct_size = size;
  return ok_status();
}

template <typename Body>
collet_status guarded(collet_error* error, const Body& body,
                      const std::source_location& place = std::source_location::current()) {
  const LogScope messages;
  const ScopedFloatModes modes;
  const Status status = caught(body, place);
  return status.ok() ? COLLET_OK : to_c(status, error);
}

const collet_array_type kNoType = {COLLET_TYPE_INVALID, 0, nullptr};

collet_array_type type_at(const std::vector<const ArrayType*>& list, uint32_t index) {
  return index < list.size() ? list[index]->to_c() : kNoType;
}

// Returns the text at `index`; null if there is none.
const char* text_at(const std::vector<std::string>& list, uint32_t index) {
  return index < list.size() && !list[index].empty() ? list[index].c_str() : nullptr;
}

Status missing(const char* what) {
  return invalid_argument(std::string("no ") + what);
}

}  // namespace

extern "C" {

uint32_t collet_calling(const char** function, const char** library) {
  const collet::runtime::Calling::Place place = collet::runtime::Calling::present();
  *function = place.function;
  *library = place.library;
  return place.function ? 1 : 0;
}

const char* collet_version(void) {
  return COLLET_VERSION_TEXT;
}

const char* collet_blob_data(const collet_blob* blob) {
  return blob->text.c_str();
}
uint64_t collet_blob_size(const collet_blob* blob) {
  return blob->text.size();
}
void collet_blob_release(collet_blob* blob) {
  delete blob;
}

collet_status collet_client_open(const collet_client_options* options, collet_client** out_client,
                                 collet_error* error) {
  return guarded(error, [&]() -> Status {
    if (!out_client) return missing("out_client");
    collet_client_options o;
    COLLET_TRY(read_struct(options, o));
    COLLET_ASSIGN(Client * client, Client::open(o));
    *out_client = give<collet_client>(client);
    return ok_status();
  });
}

collet_status collet_client_join(collet_client* client, const collet_processes* processes, collet_error* error) {
  return guarded(error, [&]() -> Status {
    collet_processes group;
    COLLET_TRY(read_struct(processes, group));
    return of(client)->join(group);
  });
}

collet_status collet_client_global_device_get(collet_client* client, uint32_t number, collet_global_device* device,
                                              collet_error* error) {
  return guarded(error, [&]() -> Status {
    const collet::runtime::Processes* const processes = of(client)->processes();
    if (!processes) return failed_precondition("the client has joined no processes");
    if (number >= processes->devices().size())
      return Status(Code::OutOfRange, "the processes have " + std::to_string(processes->devices().size()) + " devices");
    const collet::runtime::GlobalDevice& d = processes->devices()[number];
    collet_global_device out{};
    out.process = d.process;
    out.device = d.device;
    out.kind = d.kind.c_str();
    std::copy(std::begin(d.coordinates), std::end(d.coordinates), out.coordinates);
    return write_struct(out, device);
  });
}

void collet_client_close(collet_client* client) {
  const LogScope messages;
  if (client) of(client)->close();
}

collet_status collet_client_info_get(collet_client* client, collet_client_info* info, collet_error* error) {
  return guarded(error, [&]() -> Status {
    Backend& b = of(client)->backend();
    collet_client_info out{};
    out.device_count = static_cast<uint32_t>(b.devices().size());
    out.backend = b.name().c_str();
    out.backend_version = b.version().c_str();
    out.backend_path = b.library().path.c_str();
    out.fallback = of(client)->fallback() ? of(client)->fallback()->name().c_str() : "";
    out.opset = b.opset();
    out.functions = static_cast<uint32_t>(b.library().functions);
    out.abi_major = b.library().table.abi_major;
    out.abi_minor = b.library().table.abi_minor;
    return write_struct(out, info);
  });
}

collet_status collet_client_device_info_get(collet_client* client, uint32_t device, collet_client_device_info* info,
                                            collet_error* error) {
  return guarded(error, [&]() -> Status {
    COLLET_TRY(of(client)->check_device(device));
    Device& d = of(client)->device(device);
    const DeviceFacts& f = d.facts();
    collet_client_device_info out{};
    out.traits = f.traits;
    out.kind = f.kind.c_str();
    out.fingerprint = f.fingerprint.c_str();
    out.space_count = static_cast<uint32_t>(f.spaces.size());
    out.default_space = f.default_space;
    std::copy(std::begin(f.coordinates), std::end(f.coordinates), out.coordinates);
    for (uint32_t s = 0; s < f.spaces.size(); ++s) {
      out.bytes_in_use += d.pool(s).bytes_in_use();
      out.peak_bytes += d.pool(s).peak_bytes();
    }
    out.capacity = f.spaces[f.default_space].bytes;
    if (const auto stats = of(client)->backend().memory_stats(device, f.default_space)) {
      out.device_bytes_in_use = stats->bytes_in_use;
      out.device_peak_bytes = stats->peak_bytes_in_use;
      out.device_bytes_limit = stats->bytes_limit;
      out.device_allocations = stats->allocations;
    }
    return write_struct(out, info);
  });
}

const char* collet_client_pattern(collet_client* client, uint32_t device, uint32_t index, const char** text) {
  const LogScope messages;
  if (text) *text = nullptr;
  if (device >= of(client)->backend().devices().size()) return nullptr;
  const std::vector<Backend::Pattern>& patterns = of(client)->backend().patterns(device);
  if (index >= patterns.size()) return nullptr;
  if (text && !patterns[index].text.empty()) *text = patterns[index].text.c_str();
  return patterns[index].name.c_str();
}

const char* collet_client_space_kind(collet_client* client, uint32_t device, uint32_t space) {
  const auto& devices = of(client)->backend().devices();
  if (device >= devices.size() || space >= devices[device].spaces.size()) return nullptr;
  return devices[device].spaces[space].kind;
}

uint32_t collet_client_type_flags(collet_client* client, uint32_t device, uint32_t element) {
  const auto& devices = of(client)->backend().devices();
  return device < devices.size() && element < COLLET_TYPE_LIMIT ? devices[device].type_flags[element] : 0;
}

void collet_client_trim(collet_client* client) {
  of(client)->trim();
}

collet_status collet_client_register_host_memory(collet_client* client, void* host, uint64_t bytes,
                                                 collet_error* error) {
  return guarded(error, [&]() -> Status {
    if (!host) return missing("host");
    if (bytes == 0) return invalid_argument("no bytes to register");
    return of(client)->backend().add_host_memory(host, bytes);
  });
}

collet_status collet_client_unregister_host_memory(collet_client* client, void* host, collet_error* error) {
  return guarded(error, [&]() -> Status { return of(client)->backend().remove_host_memory(host); });
}

collet_status collet_client_link_get(collet_client* client, uint32_t from, uint32_t to, collet_client_link* link,
                                     collet_error* error) {
  return guarded(error, [&]() -> Status {
    COLLET_TRY(of(client)->check_device(from));
    COLLET_TRY(of(client)->check_device(to));
    if (from == to) return invalid_argument("a link is between two different devices");
    COLLET_ASSIGN(const collet_link said, of(client)->backend().link(from, to));
    collet_client_link out{};
    out.hops = said.hops;
    out.latency_ns = said.latency_ns;
    out.bytes_per_ns = said.bytes_per_ns;
    return write_struct(out, link);
  });
}

collet_status collet_module_read(const void* bytes, uint64_t size, const collet_read_options* options,
                                 collet_module** out_module, collet_blob** out_messages, collet_error* error) {
  if (out_messages) *out_messages = nullptr;
  return guarded(error, [&]() -> Status {
    if (!out_module) return missing("out_module");
    if (!bytes && size) return missing("bytes");
    collet_read_options o;
    COLLET_TRY(read_struct(options, o));
    std::string messages;
    auto module = read_module({static_cast<const char*>(bytes), size}, o, messages);
    if (!module.ok()) {
      if (out_messages)
        *out_messages = new collet_blob{printable(messages.empty() ? module.status().message() : messages)};
      return module.status();
    }
    *out_module = give<collet_module>(*module);
    return ok_status();
  });
}

void collet_module_retain(collet_module* module) {
  of(module)->retain();
}
void collet_module_release(collet_module* module) {
  if (module) of(module)->release();
}

collet_status collet_module_write(collet_module* module, uint32_t format, collet_blob** out_blob, collet_error* error) {
  return guarded(error, [&]() -> Status {
    if (!out_blob) return missing("out_blob");
    COLLET_ASSIGN(std::string text, write_module(of(module)->module(), format));
    *out_blob = new collet_blob{std::move(text)};
    return ok_status();
  });
}

const char* collet_module_name(const collet_module* module) {
  return of(module)->name().c_str();
}
uint32_t collet_module_parameter_count(const collet_module* module) {
  return static_cast<uint32_t>(of(module)->parameters().size());
}
collet_array_type collet_module_parameter(const collet_module* module, uint32_t index) {
  return type_at(of(module)->parameters(), index);
}
uint32_t collet_module_result_count(const collet_module* module) {
  return static_cast<uint32_t>(of(module)->results().size());
}
collet_array_type collet_module_result(const collet_module* module, uint32_t index) {
  return type_at(of(module)->results(), index);
}

uint32_t collet_module_result_is_dynamic(const collet_module* module, uint32_t index, uint32_t dimension) {
  return of(module)->is_dynamic(index, dimension);
}

const char* collet_module_parameter_sharding(const collet_module* module, uint32_t index) {
  return text_at(of(module)->parameter_shardings(), index);
}
const char* collet_module_result_sharding(const collet_module* module, uint32_t index) {
  return text_at(of(module)->result_shardings(), index);
}

collet_status collet_compile(collet_client* client, collet_module* module, const collet_compile_request* request,
                             collet_executable** out_executable, collet_error* error) {
  return guarded(error, [&]() -> Status {
    if (!client || !module || !out_executable) return missing("client, module or out_executable");
    collet_compile_request r;
    COLLET_TRY(read_struct(request, r));
    COLLET_ASSIGN(Executable * executable, compile(*of(client), *of(module), r));
    *out_executable = give<collet_executable>(executable);
    return ok_status();
  });
}

void collet_executable_retain(collet_executable* executable) {
  of(executable)->retain();
}
void collet_executable_release(collet_executable* executable) {
  if (executable) of(executable)->release();
}

collet_status collet_executable_facts_get(collet_executable* executable, collet_executable_facts* facts,
                                          collet_error* error) {
  return guarded(error, [&] { return write_struct(of(executable)->facts(), facts); });
}

collet_status collet_executable_question(collet_executable* executable, uint32_t index, collet_question* question,
                                         collet_error* error) {
  return guarded(error, [&]() -> Status {
    if (!executable || !question) return missing("executable or question");
    const std::vector<Question>& all = of(executable)->core().questions;
    if (index >= all.size())
      return Status(Code::OutOfRange, "the compilation asked " + std::to_string(all.size()) + " questions");
    const Question& one = all[index];
    collet_question out{};
    out.kind = one.kind;
    out.element = one.element;
    out.asked = one.asked;
    out.accepted = one.accepted;
    out.placed = one.placed;
    out.name = one.name.c_str();
    return write_struct(out, question);
  });
}

collet_status collet_executable_serialize(collet_executable* executable, collet_blob** out_bytes, collet_error* error) {
  return guarded(error, [&]() -> Status {
    if (!executable || !out_bytes) return missing("executable or out_bytes");
    COLLET_ASSIGN(std::string bytes, serialize(*of(executable)));
    *out_bytes = new collet_blob{std::move(bytes)};
    return ok_status();
  });
}

collet_status collet_executable_load(collet_client* client, const void* bytes, uint64_t size,
                                     const collet_compile_request* request, collet_executable** out_executable,
                                     collet_error* error) {
  return guarded(error, [&]() -> Status {
    if (!client || (!bytes && size) || !out_executable) return missing("client, bytes or out_executable");
    collet_compile_request r;
    COLLET_TRY(read_struct(request, r));
    COLLET_ASSIGN(Executable * executable, load(*of(client), {static_cast<const char*>(bytes), size}, r));
    *out_executable = give<collet_executable>(executable);
    return ok_status();
  });
}

collet_array_type collet_executable_argument(const collet_executable* executable, uint32_t index) {
  return type_at(of(executable)->core().arguments, index);
}
collet_array_type collet_executable_result(const collet_executable* executable, uint32_t index) {
  return type_at(of(executable)->core().results, index);
}
uint32_t collet_executable_result_space(const collet_executable* executable, uint32_t index) {
  return index < of(executable)->core().results.size() ? of(executable)->result_space() : COLLET_NONE;
}
const char* collet_executable_argument_sharding(const collet_executable* executable, uint32_t index) {
  return text_at(of(executable)->core().argument_shardings, index);
}
const char* collet_executable_result_sharding(const collet_executable* executable, uint32_t index) {
  return text_at(of(executable)->core().result_shardings, index);
}
const char* collet_executable_argument_layout(const collet_executable* executable, uint32_t index) {
  return text_at(of(executable)->source().parameter_layouts(), index);
}
const char* collet_executable_result_layout(const collet_executable* executable, uint32_t index) {
  return text_at(of(executable)->source().result_layouts(), index);
}
const char* collet_executable_host_function(const collet_executable* executable, uint32_t index) {
  const auto& functions = of(executable)->core().host_functions;
  return index < functions.size() ? functions[index].target.c_str() : nullptr;
}
uint32_t collet_executable_donates(const collet_executable* executable, uint32_t index) {
  const auto& donates = of(executable)->core().donates;
  return index < donates.size() ? donates[index] : 0;
}

collet_status collet_executable_program(collet_executable* executable, uint32_t format, collet_blob** out_blob,
                                        collet_error* error) {
  return guarded(error, [&]() -> Status {
    if (!executable || !out_blob) return missing("executable or out_blob");
    COLLET_ASSIGN(std::string text, program_of(*of(executable), format));
    *out_blob = new collet_blob{std::move(text)};
    return ok_status();
  });
}

collet_status collet_executable_explain(collet_executable* executable, uint32_t json, collet_blob** out_text,
                                        collet_error* error) {
  return guarded(error, [&]() -> Status {
    if (!out_text) return missing("out_text");
    const ExecutableCore& core = of(executable)->core();
    *out_text = new collet_blob{json ? core.explanation_json : core.explanation};
    return ok_status();
  });
}

collet_status collet_buffer_from_host(collet_client* client, uint32_t device, uint32_t space,
                                      const collet_host_array* array, collet_buffer** out_buffer, collet_error* error) {
  return guarded(error, [&]() -> Status {
    if (!client || !array || !out_buffer) return missing("client, array or out_buffer");
    collet_host_array a;
    COLLET_TRY(read_struct(array, a));
    COLLET_ASSIGN(Buffer * buffer, Buffer::from_host(*of(client), device, space, a));
    *out_buffer = give<collet_buffer>(buffer);
    return ok_status();
  });
}

collet_status collet_buffer_promise(collet_client* client, uint32_t device, uint32_t space,
                                    const collet_array_type* type, collet_buffer** out_buffer, collet_error* error) {
  return guarded(error, [&]() -> Status {
    if (!client || !type || !out_buffer) return missing("client, type or out_buffer");
    if (type->rank && !type->dims) return missing("dimensions");
    COLLET_ASSIGN(const ArrayType* known, array_type(type->element, {type->dims, type->rank}));
    COLLET_ASSIGN(Buffer * buffer, Buffer::promise(*of(client), device, space, known));
    *out_buffer = give<collet_buffer>(buffer);
    return ok_status();
  });
}

collet_status collet_buffers_send(collet_client* client, uint32_t count, collet_buffer* const* buffers,
                                  const collet_transfer* transfers, collet_event** out_events, collet_error* error) {
  return guarded(error, [&]() -> Status {
    if (!client || (count && (!buffers || !transfers))) return missing("client, buffers or transfers");
    std::vector<Buffer*> sent;
    for (uint32_t i = 0; i < count; ++i) sent.push_back(of(buffers[i]));
    std::vector<collet::runtime::Event*> events;
    COLLET_TRY(send_buffers(*of(client), sent, {transfers, count}, events));
    for (uint32_t i = 0; i < count; ++i) {
      if (out_events)
        out_events[i] = give<collet_event>(events[i]);
      else
        events[i]->release();
    }
    return ok_status();
  });
}

collet_status collet_buffers_receive(collet_client* client, uint32_t space, uint32_t count,
                                     const collet_array_type* types, const collet_transfer* transfers,
                                     collet_buffer** out_buffers, collet_error* error) {
  return guarded(error, [&]() -> Status {
    if (!client || (count && (!types || !transfers || !out_buffers)))
      return missing("client, types, transfers or out_buffers");
    std::vector<const ArrayType*> known;
    for (uint32_t i = 0; i < count; ++i) {
      if (types[i].rank && !types[i].dims) return missing("dimensions");
      COLLET_ASSIGN(const ArrayType* one, array_type(types[i].element, {types[i].dims, types[i].rank}));
      known.push_back(one);
    }
    std::vector<Buffer*> received;
    COLLET_TRY(receive_buffers(*of(client), space, known, {transfers, count}, received));
    for (uint32_t i = 0; i < count; ++i) out_buffers[i] = give<collet_buffer>(received[i]);
    return ok_status();
  });
}

collet_status collet_buffer_write(collet_buffer* buffer, uint64_t offset, uint64_t bytes, const void* data,
                                  collet_error* error) {
  return guarded(error, [&] { return of(buffer)->write(offset, bytes, data); });
}

collet_status collet_buffer_fulfil(collet_buffer* buffer, collet_buffer* source, collet_error* error) {
  return guarded(error, [&] { return of(buffer)->fulfil(of(source)); });
}

collet_status collet_buffer_fail(collet_buffer* buffer, collet_status code, const char* message, collet_error* error) {
  return guarded(error, [&] {
    if (code < COLLET_OK || code > COLLET_DATA_LOSS) return invalid_argument("there is no such code");
    return of(buffer)->fail(Status(static_cast<Code>(code), message ? message : ""));
  });
}

void collet_buffer_retain(collet_buffer* buffer) {
  of(buffer)->retain();
}
void collet_buffer_release(collet_buffer* buffer) {
  if (buffer) of(buffer)->release();
}
collet_array_type collet_buffer_type(const collet_buffer* buffer) {
  return of(buffer)->type().to_c();
}
uint64_t collet_buffer_bytes(const collet_buffer* buffer) {
  return of(buffer)->type().bytes;
}
uint32_t collet_buffer_device(const collet_buffer* buffer) {
  return of(buffer)->device();
}
uint32_t collet_buffer_space(const collet_buffer* buffer) {
  return of(buffer)->space();
}
collet_event* collet_buffer_ready(collet_buffer* buffer) {
  return give<collet_event>(of(buffer)->ready_event());
}
uint32_t collet_buffer_is_deleted(const collet_buffer* buffer) {
  return of(buffer)->is_deleted();
}
void collet_buffer_delete(collet_buffer* buffer) {
  of(buffer)->erase();
}

collet_status collet_buffer_to_host(collet_buffer* buffer, void* out, uint64_t size, collet_event** out_event,
                                    collet_error* error) {
  return guarded(error, [&]() -> Status {
    const uint64_t bytes = of(buffer)->type().bytes;
    if (size < bytes)
      return Status(Code::OutOfRange,
                    "room for " + std::to_string(size) + " bytes; the array has " + std::to_string(bytes));
    return of(buffer)->to_host(0, bytes, out, reinterpret_cast<Event**>(out_event));
  });
}

collet_status collet_buffer_to_host_range(collet_buffer* buffer, uint64_t offset, uint64_t bytes, void* out,
                                          collet_event** out_event, collet_error* error) {
  return guarded(error, [&] { return of(buffer)->to_host(offset, bytes, out, reinterpret_cast<Event**>(out_event)); });
}

collet_status collet_buffer_copy(collet_buffer* buffer, uint32_t device, uint32_t space, collet_buffer** out_buffer,
                                 collet_error* error) {
  return guarded(error, [&]() -> Status {
    if (!out_buffer) return missing("out_buffer");
    COLLET_ASSIGN(Buffer * copy, of(buffer)->copy_to(device, space));
    *out_buffer = give<collet_buffer>(copy);
    return ok_status();
  });
}

const void* collet_buffer_host_pointer(collet_buffer* buffer) {
  return of(buffer)->host_pointer();
}

collet_status collet_execute(collet_executable* executable, const collet_execute_options* options,
                             collet_buffer* const* arguments, collet_buffer** results, collet_error* error) {
  return guarded(error, [&]() -> Status {
    collet_execute_options o;
    COLLET_TRY(read_struct(options, o));
    const ExecutableCore& core = of(executable)->core();
    if ((!arguments && !core.arguments.empty()) || (!results && !core.results.empty()))
      return missing("arguments or results");
    if (o.non_donatable_count && !o.non_donatable) return missing("non_donatable");
    return of(executable)->execute(o, reinterpret_cast<Buffer* const*>(arguments), reinterpret_cast<Buffer**>(results));
  });
}

void collet_event_retain(collet_event* event) {
  of(event)->retain();
}
void collet_event_release(collet_event* event) {
  if (event) of(event)->release();
}
uint32_t collet_event_is_ready(collet_event* event) {
  return of(event)->has_ended();
}
collet_status collet_event_wait(collet_event* event, collet_error* error) {
  return guarded(error, [&] { return of(event)->wait(); });
}
collet_status collet_event_wait_for(collet_event* event, uint64_t timeout_ns, collet_error* error) {
  return guarded(error, [&] { return of(event)->wait_for(timeout_ns); });
}
void collet_event_on_ready(collet_event* event, void (*done)(void* user, collet_status status, const char* message),
                           void* user) {
  of(event)->on_ready(done, user);
}

void collet_trace(collet_trace_fn listener, void* user) {
  const LogScope messages;
  set_trace(listener, user);
}

}  // extern "C"
