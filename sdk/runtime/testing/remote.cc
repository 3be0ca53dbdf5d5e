// SPDX-License-Identifier: Apache-2.0
#include <collet/error.h>
#include <collet/ranges.h>
#include <collet/tables.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <collet/backend_table.hpp>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sdk/runtime/testing/remote_protocol.h"

/// \file
/// A test backend whose memory is in another process: its handles are numbers, not addresses. It runs add and dot
/// itself.
///
/// One thread sends requests without waiting for answers; another thread receives the answers. The other process
/// handles requests in order, and the work for which a queue waits was queued earlier: so one stream serves all queues
/// of an instance. Work that waits for another queue is held back until that work has ended, because it may fail, and
/// because host memory must not be read before.

namespace collet::remote {
namespace {

// The progress of a queue. The work of other queues that waits for it shares it. Guarded by Instance::mutex.
struct Progress {
  uint64_t counter = 0, unanswered = 0;
  collet_status status = COLLET_OK;
  std::string message;

  void fail(collet_status code, const char* text) {
    if (status != COLLET_OK) return;
    status = code;
    message = text;
  }
  bool has_failed() const { return status != COLLET_OK && unanswered == 0; }
};

using Points = std::vector<std::pair<std::shared_ptr<const Progress>, uint64_t>>;

// A request, with its payload and the memory for its answer.
struct Message {
  Request request{Verb::Nothing};
  std::vector<Slot> slots;
  const void* out = nullptr;
  uint64_t out_bytes = 0;
  void* in = nullptr;
  uint64_t in_bytes = 0;
  Points waits;
  std::shared_ptr<Progress> queue;  // null if a caller waits for the answer
  uint64_t value = 0;               // value that the queue reaches; 0: the work has further messages
  uint64_t number = 0;              // number of the message, counted from 1
  // Called under Instance::mutex with whether an answer was received.
  std::function<void(bool answered, const Answer& answer)> done;
};

struct Instance {
  int socket = -1;
  pid_t child = -1;
  std::mutex mutex;  // guards the following members
  std::condition_variable changed;
  std::deque<Message> outbox, sent;
  uint64_t begun = 0, gone = 0;  ///< numbers of messages that the sender has started and finished writing
  bool is_lost = false, is_closing = false;
  std::unordered_map<uint64_t, uint64_t> sizes;  ///< sizes of buffers, by number
  std::thread sender, receiver;

  bool has_range(const collet_backend_buffer* buffer, uint64_t offset, uint64_t bytes) {
    const std::lock_guard lock(mutex);
    const auto it = sizes.find(reinterpret_cast<uintptr_t>(buffer));
    return it != sizes.end() && collet_has_range(it->second, offset, bytes) != 0;
  }
};

struct Queue {
  Instance* instance;
  std::shared_ptr<Progress> progress = std::make_shared<Progress>();
};

struct Executable {
  Instance* instance;
  uint64_t number;
  std::vector<uint64_t> argument_bytes, result_bytes;
};

Instance* of(collet_backend_instance* p) {
  return reinterpret_cast<Instance*>(p);
}
uint64_t number_of(collet_backend_buffer* p) {
  return reinterpret_cast<uintptr_t>(p);
}

collet_status fail(collet_error* error, collet_status code, const char* message) {
  return collet_set_error(error, code, message);
}

// Sends the messages in the outbox.
void send(Instance* i) {
  std::unique_lock lock(i->mutex);
  for (;;) {
    i->changed.wait(lock, [&] { return i->is_closing || !i->outbox.empty(); });
    if (i->outbox.empty()) return;
    Message m = std::move(i->outbox.front());
    i->outbox.pop_front();
    const Progress* broken = nullptr;
    i->changed.wait(lock, [&] {
      if (i->is_lost || (m.queue && m.queue->status != COLLET_OK)) return true;
      for (const auto& [queue, point] : m.waits) {
        if (queue->counter >= point) continue;
        if (!queue->has_failed()) return false;
        broken = queue.get();
      }
      return true;
    });
    if (broken) m.queue->fail(broken->status, broken->message.c_str());
    if (i->is_lost || (m.queue && m.queue->status != COLLET_OK)) {
      m.done(!i->is_lost, {});
      i->changed.notify_all();
      continue;
    }
    const Request request = m.request;
    const std::vector<Slot> slots = std::move(m.slots);
    const void* const out = m.out;
    const uint64_t out_bytes = m.out_bytes;
    m.number = ++i->begun;
    i->sent.push_back(std::move(m));
    lock.unlock();
    const bool went = send_all(i->socket, &request, sizeof request) &&
                      send_all(i->socket, slots.data(), slots.size() * sizeof(Slot)) &&
                      send_all(i->socket, out, out_bytes);
    if (!went) shutdown(i->socket, SHUT_RDWR);  // then the receiver sees the end of the answers
    lock.lock();
    ++i->gone;
    i->changed.notify_all();
  }
}

// Receives answers until the other process has ended.
void receive(Instance* i) {
  Answer answer;
  for (;;) {
    const bool came = receive_all(i->socket, &answer, sizeof answer);
    std::unique_lock lock(i->mutex);
    if (!came || i->sent.empty()) break;
    const Message one = std::move(i->sent.front());
    i->sent.pop_front();
    lock.unlock();
    const bool whole = receive_all(i->socket, one.in, one.in_bytes);
    lock.lock();
    // The other process may answer before the sender has finished using the memory.
    i->changed.wait(lock, [&] { return i->gone >= one.number; });
    one.done(whole, answer);
    i->changed.notify_all();
    if (!whole) break;
  }
  std::unique_lock lock(i->mutex);
  i->is_lost = true;
  i->changed.notify_all();
  shutdown(i->socket, SHUT_RDWR);
  i->changed.wait(lock, [&] { return i->gone == i->begun; });
  for (const Message& one : i->sent) one.done(false, {});
  i->sent.clear();
  i->changed.notify_all();
}

// Sends a message and waits for its answer.
bool converse(Instance* i, Message m, Answer& answer) {
  bool ended = false, came = false;
  m.done = [&](bool answered, const Answer& a) {
    ended = true;
    came = answered;
    answer = a;
  };
  std::unique_lock lock(i->mutex);
  if (i->is_lost) return false;
  i->outbox.push_back(std::move(m));
  i->changed.notify_all();
  i->changed.wait(lock, [&] { return ended; });
  return came;
}
bool converse(Instance* i, const Request& r, const void* out, uint64_t out_bytes, Answer& answer) {
  Message m;
  m.request = r;
  m.out = out;
  m.out_bytes = out_bytes;
  return converse(i, std::move(m), answer);
}

collet_status lost(collet_error* error) {
  return fail(error, COLLET_UNAVAILABLE, "the process with the memory is gone");
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
  instance->sender = std::thread([instance] { send(instance); });
  instance->receiver = std::thread([instance] { receive(instance); });
  info->opset = COLLET_OPSET;
  info->device_count = 1;
  info->name = "remote";
  info->version = "1";
  *out = reinterpret_cast<collet_backend_instance*>(instance);
  return COLLET_OK;
}

void close(collet_backend_instance* p) {
  {
    const std::lock_guard lock(of(p)->mutex);
    of(p)->is_closing = true;
    of(p)->changed.notify_all();
  }
  of(p)->sender.join();
  // Shuts down explicitly, because processes of later instances have inherited the socket.
  shutdown(of(p)->socket, SHUT_RDWR);
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

Message message_of(const collet_copy_region& region) {
  Message m;
  Request& r = m.request;
  r.bytes = region.bytes;
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
    m.out = static_cast<const char*>(region.from.host) + region.from.offset;
    m.out_bytes = region.bytes;
  } else {
    r.verb = Verb::Read;
    r.buffer = number_of(region.from.buffer);
    r.offset = region.from.offset;
    m.in = static_cast<char*>(region.to.host) + region.to.offset;
    m.in_bytes = region.bytes;
  }
  return m;
}

// Puts messages whose work is one piece of work on a queue.
collet_status put(Instance* i, std::vector<Message> messages, const collet_sync& sync, collet_error* error) {
  const std::shared_ptr<Progress> progress = reinterpret_cast<Queue*>(sync.queue)->progress;
  const std::lock_guard lock(i->mutex);
  if (i->is_lost) return lost(error);
  if (progress->status != COLLET_OK) return COLLET_OK;  // the work fails with the queue
  for (uint32_t w = 0; w < sync.wait_count; ++w) {
    const auto* other = reinterpret_cast<Queue*>(sync.waits[w].queue);
    if (other->progress != progress) messages.front().waits.emplace_back(other->progress, sync.waits[w].value);
  }
  progress->unanswered += messages.size();
  messages.back().value = sync.signals[0].value;
  for (Message& m : messages) {
    m.queue = progress;
    m.done = [progress, value = m.value](bool answered, const Answer&) {
      --progress->unanswered;
      if (!answered) return progress->fail(COLLET_UNAVAILABLE, "the process with the memory is gone");
      if (value != 0 && progress->status == COLLET_OK) progress->counter = value;
    };
    i->outbox.push_back(std::move(m));
  }
  i->changed.notify_all();
  return COLLET_OK;
}

collet_status copy(collet_backend_instance* p, const collet_copy_region* regions, uint32_t count,
                   const collet_sync* sync, collet_error* error) {
  for (uint32_t k = 0; k < count; ++k)
    for (const collet_place& place : {regions[k].from, regions[k].to})
      if (place.buffer && !of(p)->has_range(place.buffer, place.offset, regions[k].bytes))
        return fail(error, COLLET_OUT_OF_RANGE, "a copy that is not inside its buffer");
  std::vector<Message> messages;
  for (uint32_t k = 0; k < count; ++k) messages.push_back(message_of(regions[k]));
  if (sync) {
    if (messages.empty()) messages.emplace_back();
    return put(of(p), std::move(messages), *sync, error);
  }
  Answer answer;
  for (Message& m : messages)
    if (!converse(of(p), std::move(m), answer)) return lost(error);
  return COLLET_OK;
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
    std::vector<Message> messages(1);
    Message& m = messages[0];
    m.request.verb = Verb::Run;
    m.request.buffer = e->number;
    m.request.count = static_cast<uint32_t>(slots.size());
    m.slots = std::move(slots);
    if (launches[l].sync) {
      const collet_status status = put(e->instance, std::move(messages), *launches[l].sync, error);
      if (status != COLLET_OK) return status;
      continue;
    }
    Answer answer;
    if (!converse(e->instance, std::move(m), answer)) return lost(error);
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
  *out = reinterpret_cast<collet_backend_queue*>(new Queue{of(p)});
  return COLLET_OK;
}

void destroy_queue(collet_backend_queue* p) {
  delete reinterpret_cast<Queue*>(p);
}

collet_status wait(collet_backend_queue* p, uint64_t value, uint64_t timeout_ns, collet_error* error) {
  const auto* queue = reinterpret_cast<Queue*>(p);
  const Progress& progress = *queue->progress;
  std::unique_lock lock(queue->instance->mutex);
  const auto over = [&] { return progress.counter >= value || progress.has_failed(); };
  constexpr uint64_t kForEver = uint64_t{1} << 60;
  if (timeout_ns >= kForEver)
    queue->instance->changed.wait(lock, over);
  else if (!queue->instance->changed.wait_for(lock, std::chrono::nanoseconds(timeout_ns), over))
    return fail(error, COLLET_DEADLINE_EXCEEDED, "not yet");
  return progress.counter >= value ? COLLET_OK : fail(error, progress.status, progress.message.c_str());
}

void abort_queue(collet_backend_queue* p, collet_status status, const char* message) {
  const auto* queue = reinterpret_cast<Queue*>(p);
  const std::lock_guard lock(queue->instance->mutex);
  queue->progress->fail(status, message);
  queue->instance->changed.notify_all();
}

constexpr collet_queue_table kQueues = {
    sizeof(collet_queue_table), 0, create_queue, destroy_queue, wait, nullptr, nullptr, abort_queue,
};

const void* query(collet_backend_instance*, const char* name, uint32_t version) {
  return version == 1 && std::strcmp(name, "queue") == 0 ? &kQueues : nullptr;
}

constexpr collet_backend kBackend =
    backend_table(open, close, device_info, alloc, free, copy, supports, compile, execute, release, query);

}  // namespace
}  // namespace collet::remote

extern "C" collet_status collet_backend_entry(const collet_host* host, const collet_backend** out,
                                              collet_error* error) {
  if (host->abi_major != COLLET_ABI_MAJOR)
    return collet::remote::fail(error, COLLET_FAILED_PRECONDITION, "another ABI");
  *out = &collet::remote::kBackend;
  return COLLET_OK;
}
