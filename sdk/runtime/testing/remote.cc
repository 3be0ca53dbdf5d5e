// SPDX-License-Identifier: Apache-2.0
#include <collet/backend.h>
#include <collet/tables.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "sdk/runtime/testing/remote_protocol.h"

/// \file
/// A backend whose memory lies in another process: its handles are numbers, no addresses. It runs add and dot itself. Its queues
/// are threads of that process; one thread here hears when their work has ended.

namespace collet::remote {
namespace {

// What the other process has said of a queue.
struct Queue {
  uint64_t counter = 0;
  collet_status status = COLLET_OK;
  std::string message;
};

// A call that waits for its answer.
struct Call {
  Answer answer;
  void* into = nullptr;  ///< where the data of a Read go
  bool done = false;
};

struct Instance {
  int socket = -1;
  pid_t child = -1;
  std::mutex sending;
  std::thread receiver;
  std::mutex mutex;  // of what follows
  std::condition_variable changed;
  bool lost = false;
  uint64_t next = 1;
  std::map<uint64_t, Call*> calls;
  std::map<uint64_t, void*> reads;  ///< of queues: where the data go
  std::map<uint64_t, Queue> queues;
  std::unordered_map<uint64_t, uint64_t> sizes;  ///< of buffers, by number

  bool has_range(const collet_backend_buffer* buffer, uint64_t offset, uint64_t bytes) {
    const std::lock_guard lock(mutex);
    const auto it = sizes.find(reinterpret_cast<uintptr_t>(buffer));
    return it != sizes.end() && offset <= it->second && bytes <= it->second - offset;
  }
  void receive();
  bool receive_one();
};

struct Executable {
  Instance* instance;
  uint64_t number;
  std::vector<uint64_t> argument_bytes, result_bytes;
};

// A queue as the SDK holds it.
struct Handle {
  Instance* instance;
  uint64_t number;
};

Instance* of(collet_backend_instance* p) {
  return reinterpret_cast<Instance*>(p);
}
Handle* of(collet_backend_queue* p) {
  return reinterpret_cast<Handle*>(p);
}
uint64_t number_of(collet_backend_buffer* p) {
  return reinterpret_cast<uintptr_t>(p);
}

constexpr char kLost[] = "the process with the memory is gone";

collet_status fail(collet_error* error, collet_status code, const char* message) {
  error->code = code;
  std::snprintf(error->message, sizeof error->message, "%s", message);
  return code;
}

collet_status lost(collet_error* error) {
  return fail(error, COLLET_UNAVAILABLE, kLost);
}

bool Instance::receive_one() {
  Answer answer;
  if (!receive_all(socket, &answer, sizeof answer)) return false;
  std::string message;
  void* into = nullptr;
  {
    const std::lock_guard lock(mutex);
    if (const auto it = reads.find(answer.id); it != reads.end()) {
      into = it->second;
      reads.erase(it);
    } else if (const auto call = calls.find(answer.id); call != calls.end()) {
      into = call->second->into;
    }
  }
  if (!into) {
    message.resize(answer.bytes);
    into = message.data();
  }
  if (!receive_all(socket, into, answer.bytes)) return false;
  const std::lock_guard lock(mutex);
  if (const auto it = calls.find(answer.id); answer.id && it != calls.end()) {
    it->second->answer = answer;
    it->second->done = true;
    calls.erase(it);
  }
  if (const auto it = queues.find(answer.queue); answer.queue && it != queues.end()) {
    if (answer.status == COLLET_OK) {
      it->second.counter = answer.value;
    } else {
      it->second.status = answer.status;
      it->second.message = message;
    }
  }
  changed.notify_all();
  return true;
}

// The receiver's thread.
void Instance::receive() {
  while (receive_one()) {
  }
  const std::lock_guard lock(mutex);
  lost = true;
  for (auto& [number, queue] : queues) {
    if (queue.status != COLLET_OK) continue;
    queue.status = COLLET_UNAVAILABLE;
    queue.message = kLost;
  }
  changed.notify_all();
}

bool send(Instance* i, const Request& r, const std::vector<Wait>& waits, const void* payload, uint64_t bytes) {
  const std::lock_guard lock(i->sending);
  return send_all(i->socket, &r, sizeof r) && send_all(i->socket, waits.data(), waits.size() * sizeof(Wait)) &&
         send_all(i->socket, payload, bytes);
}

// Sends a request and waits for its answer.
bool converse(Instance* i, Request r, const void* payload, uint64_t bytes, Answer& answer, void* into = nullptr) {
  Call call;
  call.into = into;
  {
    const std::lock_guard lock(i->mutex);
    if (i->lost) return false;
    r.id = i->next++;
    i->calls[r.id] = &call;
  }
  const bool sent = send(i, r, {}, payload, bytes);
  std::unique_lock lock(i->mutex);
  if (sent) i->changed.wait(lock, [&] { return call.done || i->lost; });
  i->calls.erase(r.id);
  answer = call.answer;
  return call.done;
}

// Puts a request on the queue of a sync, behind its waits. The last request of several signals its point.
bool put(Instance* i, Request r, const collet_sync& sync, bool first, bool last, const void* payload, uint64_t bytes,
         void* into = nullptr) {
  r.queue = of(sync.queue)->number;
  r.signal = last ? sync.signals[0].value : 0;
  std::vector<Wait> waits;
  for (uint32_t w = 0; first && w < sync.wait_count; ++w)
    waits.push_back({of(sync.waits[w].queue)->number, sync.waits[w].value});
  r.waits = waits.size();
  if (into) {
    const std::lock_guard lock(i->mutex);
    r.id = i->next++;
    i->reads[r.id] = into;
  }
  return send(i, r, waits, payload, bytes);
}

collet_status open(const collet_open_options* options, collet_backend_instance** out, collet_instance_info* info,
                   collet_error* error) {
  if (options->target) return fail(error, COLLET_NOT_FOUND, "remote has no targets");
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
  instance->receiver = std::thread([instance] { instance->receive(); });
  info->opset = COLLET_OPSET;
  info->device_count = 1;
  info->name = "remote";
  info->version = "1";
  *out = reinterpret_cast<collet_backend_instance*>(instance);
  return COLLET_OK;
}

void close(collet_backend_instance* p) {
  shutdown(of(p)->socket, SHUT_RDWR);  // the processes of later instances have inherited it
  of(p)->receiver.join();
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

collet_status alloc(collet_backend_instance* p, uint32_t device, uint32_t space, uint64_t bytes, uint64_t alignment,
                    collet_backend_buffer** out, void** out_host, collet_error* error) {
  if (device != 0 || space != 0) return fail(error, COLLET_NOT_FOUND, "no such device or memory space");
  if (alignment & (alignment - 1)) return fail(error, COLLET_INVALID_ARGUMENT, "an alignment that is no power of two");
  Request r{Verb::Alloc};
  r.bytes = bytes;
  Answer answer;
  if (!converse(of(p), r, nullptr, 0, answer)) return lost(error);
  if (answer.status != COLLET_OK) return fail(error, answer.status, "there is no room");
  *out_host = nullptr;
  {
    const std::lock_guard lock(of(p)->mutex);
    of(p)->sizes[answer.number] = bytes;
  }
  *out = reinterpret_cast<collet_backend_buffer*>(answer.number);
  return COLLET_OK;
}

void free(collet_backend_instance* p, collet_backend_buffer* buffer) {
  Request r{Verb::Free};
  r.buffer = number_of(buffer);
  {
    const std::lock_guard lock(of(p)->mutex);
    of(p)->sizes.erase(r.buffer);
  }
  Answer answer;
  converse(of(p), r, nullptr, 0, answer);
}

// One region; at once where `sync` is null.
bool copy_one(Instance* i, const collet_copy_region& region, const collet_sync* sync, bool first, bool last) {
  Request r{};
  r.bytes = region.bytes;
  const void* payload = nullptr;
  uint64_t bytes = 0;
  void* into = nullptr;
  if (region.from.buffer && region.to.buffer) {
    r.verb = Verb::Copy;
    r.buffer = number_of(region.from.buffer);
    r.offset = region.from.offset;
    r.other = number_of(region.to.buffer);
    r.other_offset = region.to.offset;
  } else if (region.to.buffer) {
    r.verb = Verb::Write;
    r.buffer = number_of(region.to.buffer);
    r.offset = region.to.offset;
    payload = static_cast<const char*>(region.from.host) + region.from.offset;
    bytes = region.bytes;
  } else {
    r.verb = Verb::Read;
    r.buffer = number_of(region.from.buffer);
    r.offset = region.from.offset;
    into = static_cast<char*>(region.to.host) + region.to.offset;
  }
  if (sync) return put(i, r, *sync, first, last, payload, bytes, into);
  Answer answer;
  return converse(i, r, payload, bytes, answer, into);
}

collet_status copy(collet_backend_instance* p, const collet_copy_region* regions, uint32_t count,
                   const collet_sync* sync, collet_error* error) {
  for (uint32_t i = 0; i < count; ++i)
    for (const collet_place& place : {regions[i].from, regions[i].to})
      if (place.buffer && !of(p)->has_range(place.buffer, place.offset, regions[i].bytes))
        return fail(error, COLLET_OUT_OF_RANGE, "a copy that is not inside its buffer");
  for (uint32_t i = 0; i < count; ++i)
    if (!copy_one(of(p), regions[i], sync, i == 0, i + 1 == count) && !sync) return lost(error);
  return COLLET_OK;  // a queue fails when the process is gone
}

collet_status supports(collet_backend_instance*, uint32_t device, const collet_program* p, const uint32_t* ops,
                       uint32_t count, collet_verdict* verdicts, collet_error* error) {
  if (device != 0) return fail(error, COLLET_NOT_FOUND, "there is one device");
  for (uint32_t i = 0; i < count; ++i) {
    if (ops[i] >= p->ops.count) return fail(error, COLLET_OUT_OF_RANGE, "no such op");
    const collet_op* op = collet_op_at(p, ops[i]);
    const uint32_t element = op->results.count ? collet_value_type(p, op->results.first)->element : 0;
    const bool is_known = op->since <= COLLET_OPSET;
    const bool is_add =
        is_known && op->opcode == COLLET_OP_ADD && (element == COLLET_TYPE_F32 || element == COLLET_TYPE_S32);
    const bool is_dot = is_known && op->opcode == COLLET_OP_DOT && element == COLLET_TYPE_F32 &&
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
  auto* executable = new Executable{of(p), answer.number, {}, {}};
  const collet_region* entry = collet_region_at(program, 0);
  for (uint32_t i = 0; i < entry->arguments.count; ++i)
    executable->argument_bytes.push_back(collet_value_type(program, entry->arguments.first + i)->bytes);
  for (uint32_t i = 0; i < entry->results.count; ++i)
    executable->result_bytes.push_back(
        collet_value_type(program, collet_ref_at(program, entry->results.first + i))->bytes);
  *out = reinterpret_cast<collet_backend_executable*>(executable);
  return COLLET_OK;
}

bool are_there(Instance* i, const collet_argument* given, uint32_t count, const std::vector<uint64_t>& bytes) {
  if (count != bytes.size()) return false;
  for (uint32_t k = 0; k < count; ++k)
    if (bytes[k] && (given[k].bytes != bytes[k] || !i->has_range(given[k].buffer, given[k].offset, bytes[k])))
      return false;
  return true;
}

collet_status execute(collet_backend_executable* p, const collet_launch* launches, uint32_t count, uint64_t,
                      collet_error* error) {
  const auto* e = reinterpret_cast<Executable*>(p);
  for (uint32_t l = 0; l < count; ++l) {
    const collet_launch& launch = launches[l];
    if (launch.device != 0) return fail(error, COLLET_NOT_FOUND, "there is one device");
    if (!are_there(e->instance, launch.arguments, launch.argument_count, e->argument_bytes) ||
        !are_there(e->instance, launch.results, launch.result_count, e->result_bytes))
      return fail(error, COLLET_INVALID_ARGUMENT, "an argument or result is not inside its buffer with its bytes");
  }
  for (uint32_t l = 0; l < count; ++l) {
    std::vector<Slot> slots;
    for (uint32_t i = 0; i < launches[l].argument_count; ++i)
      slots.push_back({number_of(launches[l].arguments[i].buffer), launches[l].arguments[i].offset});
    for (uint32_t i = 0; i < launches[l].result_count; ++i)
      slots.push_back({number_of(launches[l].results[i].buffer), launches[l].results[i].offset});
    Request r{Verb::Run};
    r.buffer = e->number;
    r.count = static_cast<uint32_t>(slots.size());
    const uint64_t bytes = slots.size() * sizeof(Slot);
    if (launches[l].sync) {
      (void)put(e->instance, r, *launches[l].sync, true, true, slots.data(), bytes);
      continue;
    }
    Answer answer;
    if (!converse(e->instance, r, slots.data(), bytes, answer)) return lost(error);
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

collet_status create_queue(collet_backend_instance* p, uint32_t device, uint32_t kind, collet_backend_queue** out,
                           collet_error* error) {
  if (device != 0) return fail(error, COLLET_NOT_FOUND, "there is one device");
  if (kind > COLLET_QUEUE_DOWNLOAD) return fail(error, COLLET_INVALID_ARGUMENT, "there is no such kind of queue");
  Answer answer;
  if (!converse(of(p), {Verb::MakeQueue}, nullptr, 0, answer)) return lost(error);
  const std::lock_guard lock(of(p)->mutex);
  of(p)->queues[answer.number] = {};
  *out = reinterpret_cast<collet_backend_queue*>(new Handle{of(p), answer.number});
  return COLLET_OK;
}

void destroy_queue(collet_backend_queue* p) {
  Request r{Verb::EndQueue};
  r.queue = of(p)->number;
  Answer answer;
  (void)converse(of(p)->instance, r, nullptr, 0, answer);
  {
    const std::lock_guard lock(of(p)->instance->mutex);
    of(p)->instance->queues.erase(of(p)->number);
  }
  delete of(p);
}

collet_status wait(collet_backend_queue* p, uint64_t value, uint64_t timeout_ns, collet_error* error) {
  Instance* i = of(p)->instance;
  std::unique_lock lock(i->mutex);
  const Queue& queue = i->queues.at(of(p)->number);
  const auto has_ended = [&] { return queue.counter >= value || queue.status != COLLET_OK; };
  constexpr uint64_t kLongest = uint64_t{1} << 60;
  if (timeout_ns == UINT64_MAX) {
    i->changed.wait(lock, has_ended);
  } else if (!i->changed.wait_for(lock, std::chrono::nanoseconds(std::min(timeout_ns, kLongest)), has_ended)) {
    return fail(error, COLLET_DEADLINE_EXCEEDED, "not yet");
  }
  return queue.counter >= value ? COLLET_OK : fail(error, queue.status, queue.message.c_str());
}

void abort_queue(collet_backend_queue* p, collet_status status, const char* message) {
  Request r{Verb::Abort};
  r.queue = of(p)->number;
  r.other = static_cast<uint64_t>(status);
  r.bytes = std::strlen(message);
  (void)send(of(p)->instance, r, {}, message, r.bytes);
}

const void* query(collet_backend_instance*, const char* name, uint32_t version) {
  static const collet_queue_table queues = {
      sizeof(collet_queue_table), 0, create_queue, destroy_queue, wait, nullptr, nullptr, abort_queue,
  };
  return version == 1 && std::strcmp(name, "queue") == 0 ? &queues : nullptr;
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
    query,
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
