// SPDX-License-Identifier: Apache-2.0
#include <collet/backend.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <mutex>
#include <vector>

#include "sdk/runtime/testing/remote_protocol.h"

/// \file
/// A backend whose memory lies in another process: its handles are numbers, no addresses. It runs add and dot itself.

namespace collet::remote {
namespace {

struct Instance {
  int socket = -1;
  pid_t child = -1;
  std::mutex mutex;  // of the conversation
};

struct Executable {
  Instance* instance;
  uint64_t number;
};

Instance* of(collet_backend_instance* p) {
  return reinterpret_cast<Instance*>(p);
}
uint64_t number_of(collet_backend_buffer* p) {
  return reinterpret_cast<uintptr_t>(p);
}

collet_status fail(collet_error* error, collet_status code, const char* message) {
  error->code = code;
  std::snprintf(error->message, sizeof error->message, "%s", message);
  return code;
}

// Sends a request with what follows it and takes the answer with what follows that.
bool converse(Instance* i, const Request& r, const void* out, uint64_t out_bytes, Answer& answer, void* in = nullptr,
              uint64_t in_bytes = 0) {
  const std::lock_guard lock(i->mutex);
  return send_all(i->socket, &r, sizeof r) && send_all(i->socket, out, out_bytes) &&
         receive_all(i->socket, &answer, sizeof answer) && receive_all(i->socket, in, in_bytes);
}

collet_status lost(collet_error* error) {
  return fail(error, COLLET_UNAVAILABLE, "the process with the memory is gone");
}

collet_status open(const collet_open_options* options, collet_backend_instance** out, collet_instance_info* info,
                   collet_error* error) {
  if (options->pairs) return fail(error, COLLET_INVALID_ARGUMENT, "remote has no options");
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    return fail(error, COLLET_UNAVAILABLE, "no socket pair");
  const pid_t child = fork();
  if (child == 0) {
    ::close(sockets[0]);
    serve(sockets[1]);
    _exit(0);
  }
  ::close(sockets[1]);
  if (child < 0) {
    ::close(sockets[0]);
    return fail(error, COLLET_UNAVAILABLE, "cannot fork");
  }
  signal(SIGPIPE, SIG_IGN);
  auto* instance = new Instance;
  instance->socket = sockets[0];
  instance->child = child;
  info->opset = COLLET_OPSET;
  info->device_count = 1;
  info->name = "remote";
  info->version = "1";
  *out = reinterpret_cast<collet_backend_instance*>(instance);
  return COLLET_OK;
}

void close(collet_backend_instance* p) {
  shutdown(of(p)->socket, SHUT_RDWR);  // the processes of later instances have inherited it
  ::close(of(p)->socket);
  waitpid(of(p)->child, nullptr, 0);
  delete of(p);
}

collet_status device_info(collet_backend_instance*, uint32_t device, collet_device_info* info, collet_error* error) {
  static const collet_memory_space space = {0, 64, COLLET_SPACE_DEFAULT, "device", {0, 0}};
  static const collet_type_support types[] = {{COLLET_TYPE_F32, COLLET_MAY_STORE | COLLET_MAY_COMPUTE},
                                              {COLLET_TYPE_S32, COLLET_MAY_STORE | COLLET_MAY_COMPUTE}};
  if (device != 0) return fail(error, COLLET_NOT_FOUND, "there is one device");
  info->kind = "Process";
  info->fingerprint = "remote";
  info->spaces = &space;
  info->space_count = 1;
  info->types = types;
  info->type_count = 2;
  return COLLET_OK;
}

collet_status alloc(collet_backend_instance* p, uint32_t, uint32_t, uint64_t bytes, uint64_t,
                    collet_backend_buffer** out, void** out_host, collet_error* error) {
  Request r{Verb::Alloc};
  r.bytes = bytes;
  Answer answer;
  if (!converse(of(p), r, nullptr, 0, answer)) return lost(error);
  if (answer.status != COLLET_OK) return fail(error, answer.status, "there is no room");
  *out_host = nullptr;
  *out = reinterpret_cast<collet_backend_buffer*>(answer.number);
  return COLLET_OK;
}

void free(collet_backend_instance* p, collet_backend_buffer* buffer) {
  Request r{Verb::Free};
  r.buffer = number_of(buffer);
  Answer answer;
  converse(of(p), r, nullptr, 0, answer);
}

bool copy_one(Instance* i, const collet_copy_region& region) {
  Request r{};
  r.bytes = region.bytes;
  Answer answer;
  if (region.from.buffer && region.to.buffer) {
    r.verb = Verb::Copy;
    r.buffer = number_of(region.from.buffer);
    r.offset = region.from.offset;
    r.other = number_of(region.to.buffer);
    r.other_offset = region.to.offset;
    return converse(i, r, nullptr, 0, answer);
  }
  if (region.to.buffer) {
    r.verb = Verb::Write;
    r.buffer = number_of(region.to.buffer);
    r.offset = region.to.offset;
    return converse(i, r, static_cast<const char*>(region.from.host) + region.from.offset, region.bytes, answer);
  }
  r.verb = Verb::Read;
  r.buffer = number_of(region.from.buffer);
  r.offset = region.from.offset;
  return converse(i, r, nullptr, 0, answer, static_cast<char*>(region.to.host) + region.to.offset, region.bytes);
}

collet_status copy(collet_backend_instance* p, const collet_copy_region* regions, uint32_t count, const collet_sync*,
                   collet_error* error) {
  for (uint32_t i = 0; i < count; ++i)
    if (!copy_one(of(p), regions[i])) return lost(error);
  return COLLET_OK;
}

collet_status supports(collet_backend_instance*, uint32_t, const collet_program* p, const uint32_t* ops, uint32_t count,
                       collet_verdict* verdicts, collet_error*) {
  for (uint32_t i = 0; i < count; ++i) {
    const collet_op* op = collet_op_at(p, ops[i]);
    const uint32_t element = op->results.count ? collet_value_type(p, op->results.first)->element : 0;
    const bool is_add = op->opcode == COLLET_OP_ADD && (element == COLLET_TYPE_F32 || element == COLLET_TYPE_S32);
    const bool is_dot = op->opcode == COLLET_OP_DOT && element == COLLET_TYPE_F32 &&
                        collet_value_type(p, collet_operand(p, op, 0))->element == COLLET_TYPE_F32 &&
                        collet_value_type(p, collet_operand(p, op, 1))->element == COLLET_TYPE_F32;
    verdicts[i].answer = is_add || is_dot ? COLLET_ACCEPT : COLLET_DECLINE;
    std::snprintf(verdicts[i].reason, sizeof verdicts[i].reason, "%s",
                  is_add || is_dot ? "" : "there are kernels for add and dot alone");
  }
  return COLLET_OK;
}

bool is_reserved_zero(const collet_program* program) {
  for (uint32_t i = 0; i < program->ops.count; ++i)
    if (collet_op_at(program, i)->flags || collet_op_at(program, i)->reserved) return false;
  return program->flags == 0;
}

collet_status compile(collet_backend_instance* p, const collet_program* program, const collet_compile_options*,
                      collet_backend_executable** out, collet_executable_info* info, collet_rejection* rejection,
                      collet_error* error) {
  if (!is_reserved_zero(program)) return fail(error, COLLET_INVALID_ARGUMENT, "a reserved field is not zero");
  rejection->count = 0;
  info->absorbed_count = 0;
  info->kernels = collet_region_at(program, 0)->ops.count;
  Request r{Verb::Compile};
  r.bytes = program->total_bytes;
  Answer answer;
  if (!converse(of(p), r, program, program->total_bytes, answer)) return lost(error);
  *out = reinterpret_cast<collet_backend_executable*>(new Executable{of(p), answer.number});
  return COLLET_OK;
}

collet_status execute(collet_backend_executable* p, const collet_launch* launches, uint32_t count, uint64_t,
                      collet_error* error) {
  const auto* e = reinterpret_cast<Executable*>(p);
  for (uint32_t l = 0; l < count; ++l) {
    std::vector<Slot> slots;
    for (uint32_t i = 0; i < launches[l].argument_count; ++i)
      slots.push_back({number_of(launches[l].arguments[i].buffer), launches[l].arguments[i].offset});
    for (uint32_t i = 0; i < launches[l].result_count; ++i)
      slots.push_back({number_of(launches[l].results[i].buffer), launches[l].results[i].offset});
    Request r{Verb::Run};
    r.buffer = e->number;
    r.count = static_cast<uint32_t>(slots.size());
    Answer answer;
    if (!converse(e->instance, r, slots.data(), slots.size() * sizeof(Slot), answer)) return lost(error);
  }
  return COLLET_OK;
}

void release(collet_backend_executable* p) {
  auto* e = reinterpret_cast<Executable*>(p);
  Request r{Verb::Release};
  r.buffer = e->number;
  Answer answer;
  converse(e->instance, r, nullptr, 0, answer);
  delete e;
}

const collet_backend kBackend = {
    sizeof(collet_backend),
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
    nullptr,
};

}  // namespace
}  // namespace collet::remote

extern "C" collet_status collet_backend_entry(const collet_host* host, const collet_backend** out,
                                              collet_error* error) {
  if (host->abi_major != COLLET_ABI_MAJOR)
    return collet::remote::fail(error, COLLET_FAILED_PRECONDITION, "another ABI");
  *out = &collet::remote::kBackend;
  return COLLET_OK;
}
