// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/testing/queued.h"

#include <collet/error.h>
#include <collet/tables.h>
#include <sys/prctl.h>
#include <collet/backend_table.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>

#include "sdk/runtime/testing/host_exchange.h"
#include "sdk/runtime/testing/inner.h"

namespace collet::testing {
namespace {

using Clock = std::chrono::steady_clock;

const collet_host* host = nullptr;

collet_status fail(collet_error* error, collet_status code, const std::string& message) {
  return collet_set_error(error, code, message.c_str());
}

struct Queue;
struct Executable;

// For each queue, the last point that precedes some event.
using Clocks = std::map<const Queue*, uint64_t>;

void join(Clocks& into, const Clocks& other) {
  for (const auto& [queue, value] : other) into[queue] = std::max(into[queue], value);
}

struct Buffer {
  collet_backend_buffer* inner;
  void* host;
  uint64_t bytes;
  Clocks writes, reads;  // the last write and read by each queue
};

struct Instance {
  const collet_backend* inner = nullptr;
  collet_backend_instance* instance = nullptr;
  QueueControl* control = nullptr;
  std::vector<collet_memory_space> spaces;
  uint32_t default_space = 0;
  std::mutex mutex;  // guards the following members, and those of buffers and queues
  std::set<Buffer*> buffers;
  std::set<Queue*> queues;
  std::set<Executable*> executables;
  Clocks known;  // points that the host knows are reached
  bool recording = false;
  std::deque<collet_profile_record> records;
  std::map<uintptr_t, uint64_t> host_memory;  // sizes by address
  uint32_t devices = 0;
  bool is_virtual = false;

  // Wakes all threads that wait for work of a queue.
  void tell_of_change(Queue& queue);
  void record(std::chrono::nanoseconds start, int64_t took, const char* name, uint32_t kind) {
    collet_profile_record out{};
    out.start_ns = static_cast<uint64_t>(start.count());
    out.duration_ns = static_cast<uint64_t>(took);
    std::snprintf(out.name, sizeof out.name, "%s", name);
    std::snprintf(out.engine, sizeof out.engine, "%s",
                  kind == COLLET_QUEUE_COMPUTE  ? "compute"
                  : kind == COLLET_QUEUE_UPLOAD ? "upload"
                                                : "download");
    records.push_back(out);
  }
  void violation(const std::string& what) const {
    const std::lock_guard lock(control->mutex);
    control->violations.push_back(what);
  }
};

// A column-major matrix.
struct Matrix {
  int64_t rows = 0, columns = 0;
};

struct Executable {
  Instance* owner;
  collet_backend_executable* inner;
  Clocks uses;
  std::vector<Matrix> arguments, results;  // matrices with 0 rows are dense arrays
};

struct Work {
  uint64_t value = 0;
  int64_t number = 0;
  std::vector<std::pair<Queue*, uint64_t>> waits;
  Clock::time_point put;
  const char* name = nullptr;
  std::function<collet_status(collet_error*)> run;
};

struct Queue {
  Instance* owner;
  uint32_t kind;
  uint64_t counter = 0, last = 0;
  collet_status status = COLLET_OK;
  std::string message;
  bool aborted = false, running = false, stop = false;
  std::deque<Work> work;
  std::condition_variable changed;    // notifies its thread
  std::condition_variable ended;      // notifies threads of the host
  bool blocked = false;               // true while it waits for points of other queues
  std::map<uint64_t, Clocks> before;  // by value: the points that precede the end of each piece of work on this queue
  std::thread thread;

  // True if the failure is final: no work is running any more.
  bool has_failed() const { return status != COLLET_OK && !running; }
  void fail_with(collet_status code, const std::string& text) {
    if (status != COLLET_OK) return;
    status = code;
    message = text;
    owner->control->pending -= static_cast<int64_t>(work.size());
    work.clear();
  }
  void loop();
};

void Instance::tell_of_change(Queue& queue) {
  for (Queue* other : queues)
    if (other->blocked) other->changed.notify_one();
  queue.ended.notify_all();
}

void sleep_until(Clock::time_point time) {
  if (time > Clock::now()) std::this_thread::sleep_until(time);
}

void Queue::loop() {
  prctl(PR_SET_TIMERSLACK, 1UL);
  std::mt19937_64 random(reinterpret_cast<uintptr_t>(this));
  QueueControl& control = *owner->control;
  std::unique_lock lock(owner->mutex);
  while (true) {
    changed.wait(lock, [&] { return stop || !work.empty(); });
    while (control.hold && !stop) changed.wait_for(lock, std::chrono::milliseconds(1));
    if (stop) return;
    if (work.empty()) continue;  // the queue failed
    Work piece = std::move(work.front());
    work.pop_front();
    running = true;
    const Queue* broken = nullptr;
    blocked = true;
    changed.wait(lock, [&] {
      if (status != COLLET_OK) return true;
      return std::all_of(piece.waits.begin(), piece.waits.end(), [&](const auto& wait) {
        if (wait.first->counter >= wait.second) return true;
        if (wait.first->has_failed()) broken = wait.first;
        return broken != nullptr;
      });
    });
    blocked = false;
    if (broken) fail_with(broken->status, broken->message);
    collet_error error{};
    if (status == COLLET_OK) {
      const int64_t jitter = control.jitter_ns, latency = control.latency_ns, duration = control.duration_ns;
      const int64_t extra = jitter ? static_cast<int64_t>(random() % static_cast<uint64_t>(jitter)) : 0;
      lock.unlock();
      sleep_until(piece.put + std::chrono::nanoseconds(latency));
      const Clock::time_point begin = Clock::now();
      const auto start = std::chrono::system_clock::now().time_since_epoch();
      if (duration + extra) sleep_until(Clock::now() + std::chrono::nanoseconds(duration + extra));
      collet_status code = COLLET_OK;
      if (control.lost)
        code = fail(&error, COLLET_UNAVAILABLE, "injected: the device is lost");
      else if (piece.number == control.fail_at)
        code = fail(&error, COLLET_INTERNAL, "injected: work failed on the device");
      else
        code = piece.run(&error);
      const int64_t took = std::chrono::nanoseconds(Clock::now() - begin).count();
      control.busy_ns[kind] += took;
      lock.lock();
      if (owner->recording) owner->record(start, took, piece.name, kind);
      if (code != COLLET_OK)
        fail_with(code, error.message);
      else if (status == COLLET_OK)
        counter = piece.value;
    }
    running = false;
    --control.pending;
    owner->tell_of_change(*this);
  }
}

Instance* of(collet_backend_instance* p) {
  return reinterpret_cast<Instance*>(p);
}
Buffer* of(collet_backend_buffer* p) {
  return reinterpret_cast<Buffer*>(p);
}
Executable* of(collet_backend_executable* p) {
  return reinterpret_cast<Executable*>(p);
}
Queue* of(collet_backend_queue* p) {
  return reinterpret_cast<Queue*>(p);
}

bool covers(const Clocks& known, const Clocks& uses, const Queue* own) {
  return std::all_of(uses.begin(), uses.end(), [&](const auto& use) {
    if (use.first == own || use.first->has_failed()) return true;
    const auto it = known.find(use.first);
    return it != known.end() && it->second >= use.second;
  });
}

// The buffers that a piece of work or a blocking call reads and writes.
struct Access {
  std::vector<Buffer*> reads, writes;
};

// Checks that an access is ordered after earlier conflicting ones. The caller holds the instance's mutex. `own`: the
// queue of the work; null for blocking calls.
void check_access(Instance& i, const Access& access, const Clocks& before, const Queue* own, const char* what) {
  const std::string who = std::string(what) + (own ? " on a queue" : " that blocks");
  for (Buffer* b : access.reads)
    if (!i.buffers.count(b))
      i.violation(who + " reads memory that was freed");
    else if (!covers(before, b->writes, own))
      i.violation(who + " reads memory that other work may still write to");
  for (Buffer* b : access.writes)
    if (!i.buffers.count(b))
      i.violation(who + " writes to memory that was freed");
    else if (!covers(before, b->writes, own) || !covers(before, b->reads, own))
      i.violation(who + " writes to memory that other work may still use");
}

// Puts work on its queue. The caller holds the instance's mutex.
collet_status put(Instance& i, const collet_sync& sync, const Access& access, Clocks* uses, const char* what,
                  std::function<collet_status(collet_error*)> run) {
  Queue* queue = of(sync.queue);
  if (!i.queues.count(queue)) {
    i.violation("work for a queue that is not there");
    return COLLET_OK;
  }
  if (sync.signal_count != 1 || of(sync.signals[0].queue) != queue || sync.signals[0].value <= queue->last)
    i.violation("signals of a sync that are not one later point of its queue");
  Clocks before = queue->before.empty() ? Clocks() : queue->before.rbegin()->second;
  join(before, i.known);
  Work work;
  for (uint32_t w = 0; w < sync.wait_count; ++w) {
    Queue* other = of(sync.waits[w].queue);
    if (!i.queues.count(other)) {
      i.violation("a wait for a queue that is not there");
      continue;
    }
    if (sync.waits[w].value > other->last) i.violation("a wait for work that was not put on its queue");
    work.waits.emplace_back(other, sync.waits[w].value);
    const auto it = other->before.lower_bound(sync.waits[w].value);
    if (it != other->before.end()) join(before, it->second);
    before[other] = std::max(before[other], sync.waits[w].value);
  }
  check_access(i, access, before, queue, what);
  const uint64_t value = sync.signal_count ? sync.signals[0].value : queue->last + 1;
  before[queue] = value;
  for (Buffer* b : access.reads)
    if (i.buffers.count(b)) b->reads[queue] = value;
  for (Buffer* b : access.writes)
    if (i.buffers.count(b)) b->writes[queue] = value;
  if (uses) (*uses)[queue] = value;
  queue->before[value] = std::move(before);
  queue->last = value;
  QueueControl& control = *i.control;
  work.value = value;
  work.number = control.pieces++;
  work.put = Clock::now();
  work.name = what;
  work.run = std::move(run);
  if (queue->status != COLLET_OK) return COLLET_OK;  // the work fails with the queue
  const int64_t pending = ++control.pending;
  int64_t most = control.most_pending;
  while (most < pending && !control.most_pending.compare_exchange_weak(most, pending)) {
  }
  queue->work.push_back(std::move(work));
  queue->changed.notify_one();
  return COLLET_OK;
}

collet_status open(const collet_open_options* options, collet_backend_instance** out, collet_instance_info* info,
                   collet_error* error) {
  std::string path = beside(&host, "interpreter");
  QueueControl* control = nullptr;
  static QueueControl usual;
  for (uint32_t i = 0; i < options->pairs; ++i) {
    const std::string key = options->keys[i];
    if (key == "inner") {
      path = options->values[i];
    } else if (key == "control") {
      control = reinterpret_cast<QueueControl*>(std::strtoull(options->values[i], nullptr, 10));
    } else if (key == "jitter") {
      usual.jitter_ns = std::atoll(options->values[i]);
    } else {
      return fail(error, COLLET_INVALID_ARGUMENT, "there is no option '" + key + "'");
    }
  }
  if (!control) control = &usual;
  auto instance = std::make_unique<Instance>();
  instance->control = control;
  collet_status code = load_inner(path, host, &instance->inner, error);
  if (code != COLLET_OK) return code;
  collet_open_options inner = *options;
  inner.pairs = 0;
  instance->is_virtual = options->target && std::strcmp(options->target, "queued") == 0;
  if (instance->is_virtual) inner.target = nullptr;
  code = instance->inner->open(&inner, &instance->instance, info, error);
  if (code != COLLET_OK) return code;
  info->name = "queued";
  instance->devices = info->device_count;
  ++control->instances;
  *out = reinterpret_cast<collet_backend_instance*>(instance.release());
  return COLLET_OK;
}

void close(collet_backend_instance* p) {
  Instance* i = of(p);
  {
    const std::lock_guard lock(i->mutex);
    if (!i->queues.empty()) i->violation("close of an instance that has queues");
    if (!i->buffers.empty()) i->violation("close of an instance that has buffers");
  }
  i->inner->close(i->instance);
  --i->control->instances;
  delete i;
}

collet_status device_info(collet_backend_instance* p, uint32_t device, collet_device_info* info, collet_error* error) {
  Instance* i = of(p);
  const collet_status code = i->inner->device_info(i->instance, device, info, error);
  if (code != COLLET_OK) return code;
  info->traits = (info->traits & ~i->control->without_traits) | i->control->traits;
  if (i->is_virtual) info->traits |= COLLET_TRAIT_VIRTUAL;
  if (i->spaces.empty()) {
    i->spaces.assign(info->spaces, info->spaces + info->space_count);
    for (collet_memory_space& s : i->spaces)
      if (!i->control->host_visible) s.flags &= ~uint32_t{COLLET_SPACE_HOST_VISIBLE};
  }
  info->spaces = i->spaces.data();
  for (uint32_t s = 0; s < info->space_count; ++s)
    if (info->spaces[s].flags & COLLET_SPACE_DEFAULT) i->default_space = s;
  return COLLET_OK;
}

collet_status alloc(collet_backend_instance* p, uint32_t device, uint32_t space, uint64_t bytes, uint64_t alignment,
                    collet_backend_buffer** out, void** out_host, collet_error* error) {
  Instance* i = of(p);
  if (i->control->lost) return fail(error, COLLET_UNAVAILABLE, "injected: the device is lost");
  auto buffer = std::make_unique<Buffer>();
  buffer->bytes = bytes;
  const collet_status code =
      i->inner->alloc(i->instance, device, space, bytes, alignment, &buffer->inner, &buffer->host, error);
  if (code != COLLET_OK) return code;
  *out_host = i->control->host_visible ? buffer->host : nullptr;
  // New memory is filled with a pattern, so that reads of uninitialized memory show.
  if (buffer->host) std::memset(buffer->host, 0x5a, bytes);
  ++i->control->buffers;
  const int64_t now = i->control->bytes += static_cast<int64_t>(bytes);
  int64_t most = i->control->most_bytes;
  while (most < now && !i->control->most_bytes.compare_exchange_weak(most, now)) {
  }
  const std::lock_guard lock(i->mutex);
  i->buffers.insert(buffer.get());
  *out = reinterpret_cast<collet_backend_buffer*>(buffer.release());
  return COLLET_OK;
}

void free(collet_backend_instance* p, collet_backend_buffer* handle) {
  Instance* i = of(p);
  Buffer* buffer = of(handle);
  {
    const std::lock_guard lock(i->mutex);
    check_access(*i, {{}, {buffer}}, i->known, nullptr, "a free");
    i->buffers.erase(buffer);
  }
  --i->control->buffers;
  i->control->bytes -= static_cast<int64_t>(buffer->bytes);
  i->inner->free(i->instance, buffer->inner);
  delete buffer;
}

collet_status copy(collet_backend_instance* p, const collet_copy_region* regions, uint32_t count,
                   const collet_sync* sync, collet_error* error) {
  Instance* i = of(p);
  if (i->control->lost) return fail(error, COLLET_UNAVAILABLE, "injected: the device is lost");
  std::vector<collet_copy_region> inner(regions, regions + count);
  Access access;
  for (collet_copy_region& region : inner) {
    if (region.from.buffer) {
      access.reads.push_back(of(region.from.buffer));
      region.from.buffer = of(region.from.buffer)->inner;
    }
    if (region.to.buffer) {
      access.writes.push_back(of(region.to.buffer));
      region.to.buffer = of(region.to.buffer)->inner;
    }
  }
  auto run = [i, inner](collet_error* e) {
    return i->inner->copy(i->instance, inner.data(), static_cast<uint32_t>(inner.size()), nullptr, e);
  };
  if (sync) {
    const std::lock_guard lock(i->mutex);
    return put(*i, *sync, access, nullptr, "a copy", std::move(run));
  }
  ++i->control->blocking;
  {
    const std::lock_guard lock(i->mutex);
    check_access(*i, access, i->known, nullptr, "a copy");
  }
  sleep_until(Clock::now() + std::chrono::nanoseconds(i->control->latency_ns + i->control->duration_ns));
  return run(error);
}

collet_status supports(collet_backend_instance* p, uint32_t device, const collet_program* program, const uint32_t* ops,
                       uint32_t count, collet_verdict* verdicts, collet_error* error) {
  Instance* i = of(p);
  return i->inner->supports(i->instance, device, program, ops, count, verdicts, error);
}

collet_status compile(collet_backend_instance* p, const collet_program* program, const collet_compile_options* options,
                      collet_backend_executable** out, collet_executable_info* info, collet_rejection* rejection,
                      collet_error* error) {
  Instance* i = of(p);
  collet_backend_executable* inner = nullptr;
  const collet_status code = i->inner->compile(i->instance, program, options, &inner, info, rejection, error);
  if (code != COLLET_OK) return code;
  ++i->control->executables;
  auto* executable = new Executable{i, inner, {}, {}, {}};
  {
    const std::lock_guard lock(i->mutex);
    i->executables.insert(executable);
  }
  const collet_region* entry = collet_region_at(program, 0);
  const auto matrix = [&](uint32_t value) -> Matrix {
    const collet_type* type = collet_value_type(program, value);
    const uint32_t opcode = entry->ops.count ? collet_op_at(program, entry->ops.first)->opcode : 0;
    const bool taken = opcode == COLLET_OP_ADD || opcode == COLLET_OP_SUBTRACT;
    if (!i->control->column_major || !taken || type->element != COLLET_TYPE_F32 || type->dims.count != 2) return {};
    const int64_t* dims = collet_integers(program, type->dims);
    return {dims[0], dims[1]};
  };
  for (uint32_t k = 0; k < entry->arguments.count; ++k)
    executable->arguments.push_back(matrix(entry->arguments.first + k));
  for (uint32_t k = 0; k < entry->results.count; ++k)
    executable->results.push_back(matrix(collet_ref_at(program, entry->results.first + k)));
  *out = reinterpret_cast<collet_backend_executable*>(executable);
  return COLLET_OK;
}

// Transposes a matrix in memory of the inner backend.
void transpose(const Matrix& from, void* data) {
  const auto* in = static_cast<const float*>(data);
  std::vector<float> out(static_cast<size_t>(from.rows * from.columns));
  for (int64_t r = 0; r < from.rows; ++r)
    for (int64_t c = 0; c < from.columns; ++c) out[static_cast<size_t>(c * from.rows + r)] = in[r * from.columns + c];
  std::memcpy(data, out.data(), out.size() * sizeof(float));
}
Matrix transposed(const Matrix& m) {
  return {m.columns, m.rows};
}

// A copy of a launch, which outlives the call.
struct Launch {
  const Executable& executable_;
  collet_launch launch;
  std::vector<collet_argument> arguments, results;
  Access access;

  Launch(const collet_launch& from, const Executable& executable)
      : executable_(executable),
        launch(from),
        arguments(from.arguments, from.arguments + from.argument_count),
        results(from.results, from.results + from.result_count) {
    QueueControl& control = *executable.owner->control;
    for (collet_argument& a : arguments) {
      ++control.passed;
      if (a.flags & COLLET_ARG_IMMEDIATE) ++control.by_value;
      if (a.flags & COLLET_ARG_PREPARED) ++control.as_prepared;
      unwrap(a, false);
    }
    for (collet_argument& r : results) unwrap(r, true);
    check_layouts(arguments, executable.arguments);
    check_layouts(results, executable.results);
    unwrap(launch.workspace, true);
    launch.arguments = arguments.data();
    launch.results = results.data();
    launch.sync = nullptr;
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  void unwrap(collet_argument& a, bool writes) {
    if (!a.buffer) return;
    (writes ? access.writes : access.reads).push_back(of(a.buffer));
    a.buffer = of(a.buffer)->inner;
  }

  void check_layouts(std::vector<collet_argument>& list, const std::vector<Matrix>& matrices) const {
    for (size_t i = 0; i < list.size(); ++i) {
      if ((list[i].layout != 0) != (matrices[i].rows != 0) && !(list[i].flags & COLLET_ARG_PREPARED))
        executable_.owner->violation("an argument or result in another layout than the executable's");
      if (matrices[i].rows) ++executable_.owner->control->placed;
      list[i].layout = 0;
    }
  }

  // Makes arguments dense for the inner backend, and restores them; converts results in the reverse direction.
  void make_dense() const {
    each(arguments, executable_.arguments, [](const Matrix& m) { return transposed(m); });
  }
  void make_placed(bool results_too) const {
    each(arguments, executable_.arguments, [](const Matrix& m) { return m; });
    if (results_too) each(results, executable_.results, [](const Matrix& m) { return m; });
  }
  template <typename Form>
  void each(const std::vector<collet_argument>& list, const std::vector<Matrix>& matrices, const Form& form) const {
    std::set<void*> seen;  // an array may occur twice
    for (size_t i = 0; i < list.size(); ++i)
      if (matrices[i].rows && seen.insert(data_of(list[i])).second) transpose(form(matrices[i]), data_of(list[i]));
  }
  void* data_of(const collet_argument& a) const {
    for (const std::vector<Buffer*>* some : {&access.reads, &access.writes})
      for (Buffer* b : *some)
        if (b->inner == a.buffer) return static_cast<char*>(b->host) + a.offset;
    return nullptr;
  }
};

// The launches of one call, which run together when the queues of all have come to them.
struct LaunchGroup {
  std::mutex mutex;
  std::condition_variable changed;
  size_t arrived = 0;
  bool is_done = false, is_cancelled = false;
  collet_status code = COLLET_OK;
  std::string message;
};

// One launch of a group of `count`. If it is dropped because its queue has failed, the group is cancelled.
struct GroupMember {
  std::shared_ptr<LaunchGroup> group;
  size_t count;
  bool has_arrived = false;

  ~GroupMember() {
    const std::lock_guard lock(group->mutex);
    group->is_cancelled |= !has_arrived;
    group->changed.notify_all();
  }
  // Waits for the other members. The last one calls `run`, and all return its status.
  template <typename Run>
  collet_status run_with_others(const Run& run, collet_error* problem) {
    std::unique_lock lock(group->mutex);
    has_arrived = true;
    if (++group->arrived == count) {
      group->code = run(problem);
      group->message = problem->message;
      group->is_done = true;
      group->changed.notify_all();
      return group->code;
    }
    group->changed.wait(lock, [&] { return group->is_done || group->is_cancelled; });
    if (!group->is_done) return fail(problem, COLLET_ABORTED, "another participant's queue has failed");
    return group->code == COLLET_OK ? COLLET_OK : fail(problem, group->code, group->message);
  }
};

collet_status execute(collet_backend_executable* p, const collet_launch* launches, uint32_t count, uint64_t run_id,
                      collet_error* error) {
  Executable* e = of(p);
  Instance* i = e->owner;
  if (i->control->lost) return fail(error, COLLET_UNAVAILABLE, "injected: the device is lost");
  for (uint32_t k = 0; k < count; ++k)
    if (launches[k].argument_count != e->arguments.size() || launches[k].result_count != e->results.size())
      return fail(error, COLLET_INVALID_ARGUMENT, "a launch with another number of arguments or results");
  std::vector<std::shared_ptr<Launch>> all;
  for (uint32_t k = 0; k < count; ++k) all.push_back(std::make_shared<Launch>(launches[k], *e));
  const auto run_all = [e, run_id](const std::vector<std::shared_ptr<Launch>>& some, collet_error* problem) {
    std::vector<collet_launch> inner;
    for (const auto& l : some) inner.push_back(l->launch);
    for (const auto& l : some) l->make_dense();
    const collet_status code =
        e->owner->inner->execute(e->inner, inner.data(), static_cast<uint32_t>(inner.size()), run_id, problem);
    for (const auto& l : some) l->make_placed(code == COLLET_OK);
    return code;
  };
  if (!launches[0].sync) {
    ++i->control->blocking;
    {
      const std::lock_guard lock(i->mutex);
      for (const auto& l : all) check_access(*i, l->access, i->known, nullptr, "an execution");
    }
    sleep_until(Clock::now() + std::chrono::nanoseconds(i->control->latency_ns + i->control->duration_ns));
    return run_all(all, error);
  }
  const std::lock_guard lock(i->mutex);
  if (int64_t next = i->control->pieces; i->control->refuse_at.compare_exchange_strong(next, -1))
    return fail(error, COLLET_RESOURCE_EXHAUSTED, "injected: no memory for the work");
  const auto group = std::make_shared<LaunchGroup>();
  for (uint32_t k = 0; k < count; ++k) {
    if (!launches[k].sync) {
      i->violation("an execution of which only some launches are on queues");
      continue;
    }
    const std::shared_ptr<GroupMember> member(new GroupMember{group, count});
    (void)put(*i, *launches[k].sync, all[k]->access, &e->uses, "an execution",
              [run_all, all, member](collet_error* problem) {
                return member->run_with_others([&](collet_error* of_all) { return run_all(all, of_all); }, problem);
              });
  }
  return COLLET_OK;
}

void release(collet_backend_executable* p) {
  Executable* e = of(p);
  {
    const std::lock_guard lock(e->owner->mutex);
    if (!covers(e->owner->known, e->uses, nullptr)) e->owner->violation("release of an executable that is running");
    e->owner->executables.erase(e);
  }
  --e->owner->control->executables;
  e->owner->inner->release(e->inner);
  delete e;
}

collet_status create_queue(collet_backend_instance* p, uint32_t, uint32_t kind, collet_backend_queue** out,
                           collet_error* error) {
  Instance* i = of(p);
  if (i->control->lost) return fail(error, COLLET_UNAVAILABLE, "injected: the device is lost");
  if (kind > COLLET_QUEUE_DOWNLOAD) return fail(error, COLLET_INVALID_ARGUMENT, "there is no such kind of queue");
  auto* queue = new Queue;
  queue->owner = i;
  queue->kind = kind;
  queue->thread = std::thread([queue] { queue->loop(); });
  ++i->control->queues;
  const std::lock_guard lock(i->mutex);
  i->queues.insert(queue);
  *out = reinterpret_cast<collet_backend_queue*>(queue);
  return COLLET_OK;
}

void destroy_queue(collet_backend_queue* p) {
  Queue* queue = of(p);
  Instance* i = queue->owner;
  {
    const std::lock_guard lock(i->mutex);
    if (queue->counter < queue->last && !queue->has_failed()) i->violation("destroy of a queue with pending work");
    queue->stop = true;
    queue->changed.notify_one();
  }
  queue->thread.join();
  const std::lock_guard lock(i->mutex);
  i->queues.erase(queue);
  i->known.erase(queue);
  for (Buffer* b : i->buffers) {
    b->reads.erase(queue);
    b->writes.erase(queue);
  }
  for (Executable* e : i->executables) e->uses.erase(queue);
  for (Queue* other : i->queues)
    for (auto& [value, clocks] : other->before) clocks.erase(queue);
  --i->control->queues;
  delete queue;
}

collet_status wait(collet_backend_queue* p, uint64_t value, uint64_t timeout_ns, collet_error* error) {
  Queue* queue = of(p);
  Instance* i = queue->owner;
  std::unique_lock lock(i->mutex);
  if (value > queue->last) i->violation("a wait for work that was not put on its queue");
  const auto ended = [&] { return queue->counter >= value || queue->has_failed(); };
  if (timeout_ns == UINT64_MAX) {
    queue->ended.wait(lock, ended);
  } else {
    constexpr uint64_t kLongest = uint64_t{1} << 60;
    if (!queue->ended.wait_for(lock, std::chrono::nanoseconds(std::min(timeout_ns, kLongest)), ended))
      return fail(error, COLLET_DEADLINE_EXCEEDED, "not yet");
  }
  if (queue->counter < value) return fail(error, queue->status, queue->message);
  i->known[queue] = std::max(i->known[queue], value);
  if (const auto it = queue->before.lower_bound(value); it != queue->before.end()) join(i->known, it->second);
  return COLLET_OK;
}

void abort_queue(collet_backend_queue* p, collet_status status, const char* message) {
  Queue* queue = of(p);
  const std::lock_guard lock(queue->owner->mutex);
  queue->fail_with(status, message);
  queue->changed.notify_one();
  queue->owner->tell_of_change(*queue);
}

const collet_queue_table kQueues = {
    sizeof(collet_queue_table), 0, create_queue, destroy_queue, wait, nullptr, nullptr, abort_queue,
};

const char* pattern_name(collet_backend_instance* p, uint32_t, uint32_t index) {
  const char* const* names = of(p)->control->patterns;
  for (uint32_t i = 0; i < index && *names; ++i) ++names;
  return *names;
}

collet_status layout_of(collet_backend_executable* p, uint32_t is_result, uint32_t index, collet_layout* out,
                        collet_error*) {
  const Matrix m = (is_result ? of(p)->results : of(p)->arguments)[index];
  if (!m.rows) return COLLET_OK;
  out->rank = 2;
  out->order[0] = 1;
  out->order[1] = 0;
  out->bytes = static_cast<uint64_t>(m.rows * m.columns) * sizeof(float);
  return COLLET_OK;
}

collet_status convert(collet_backend_instance* p, uint32_t, uint32_t, uint32_t, const int64_t* dims,
                      const collet_place* from, const collet_layout* from_layout, const collet_place* to,
                      const collet_layout* to_layout, const collet_sync* sync, collet_error* error) {
  Instance* i = of(p);
  if (!i->control->converts) return fail(error, COLLET_UNIMPLEMENTED, "the host converts");
  ++i->control->conversions;
  Buffer *source = of(from->buffer), *target = of(to->buffer);
  const Matrix shape = {dims[0], dims[1]};
  const bool changes = (from_layout->rank == 0) != (to_layout->rank == 0);
  const Matrix m = from_layout->rank ? transposed(shape) : shape;
  auto run = [source, target, m, changes,
              bytes = static_cast<size_t>(dims[0] * dims[1]) * sizeof(float)](collet_error*) {
    std::memcpy(target->host, source->host, bytes);
    if (changes) transpose(m, target->host);
    return COLLET_OK;
  };
  const Access access = {{source}, {target}};
  const std::lock_guard lock(i->mutex);
  if (sync) return put(*i, *sync, access, nullptr, "a conversion", run);
  check_access(*i, access, i->known, nullptr, "a conversion");
  return run(error);
}

uint32_t wants_prepared(collet_backend_executable*, uint32_t index) {
  return index == 0;
}

collet_status prepare(collet_backend_executable* p, uint32_t device, uint32_t, const collet_argument* value,
                      collet_backend_buffer** out, collet_error* error) {
  Instance* i = of(p)->owner;
  Buffer* from = of(value->buffer);
  {
    const std::lock_guard lock(i->mutex);
    check_access(*i, {{from}, {}}, i->known, nullptr, "a preparation");
  }
  void* host_pointer = nullptr;
  const collet_status code = alloc(reinterpret_cast<collet_backend_instance*>(i), device, i->default_space,
                                   value->bytes, 64, out, &host_pointer, error);
  if (code != COLLET_OK) return code;
  std::memcpy(of(*out)->host, static_cast<char*>(from->host) + value->offset, value->bytes);
  ++i->control->prepared;
  return COLLET_OK;
}

collet_status enable_profile(collet_backend_instance* p, uint32_t, uint32_t on, collet_error*) {
  const std::lock_guard lock(of(p)->mutex);
  of(p)->recording = on != 0;
  return COLLET_OK;
}

// Returns the records of all devices as those of device 0.
collet_status read_profile(collet_backend_instance* p, uint32_t device, collet_profile_record* records,
                           uint32_t capacity, uint32_t* out_count, collet_error*) {
  Instance* i = of(p);
  const std::lock_guard lock(i->mutex);
  *out_count = device == 0 ? static_cast<uint32_t>(std::min<size_t>(capacity, i->records.size())) : 0;
  std::copy_n(i->records.begin(), *out_count, records);
  i->records.erase(i->records.begin(), i->records.begin() + *out_count);
  return COLLET_OK;
}

collet_status add_host_memory(collet_backend_instance* p, void* memory, uint64_t bytes, collet_error* error) {
  Instance* i = of(p);
  const auto start = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard lock(i->mutex);
  const auto next = i->host_memory.lower_bound(start);
  const bool before = next != i->host_memory.begin() && std::prev(next)->first + std::prev(next)->second > start;
  if (before || (next != i->host_memory.end() && next->first < start + bytes))
    return fail(error, COLLET_ALREADY_EXISTS, "a part of this memory is registered");
  i->host_memory[start] = bytes;
  ++i->control->registered;
  return COLLET_OK;
}

collet_status remove_host_memory(collet_backend_instance* p, void* memory, collet_error* error) {
  Instance* i = of(p);
  const std::lock_guard lock(i->mutex);
  if (i->host_memory.erase(reinterpret_cast<uintptr_t>(memory)) == 0)
    return fail(error, COLLET_NOT_FOUND, "no registered memory begins there");
  --i->control->registered;
  return COLLET_OK;
}

collet_status between(collet_backend_instance* p, uint32_t from, uint32_t to, collet_link* link, collet_error* error) {
  if (from >= of(p)->devices || to >= of(p)->devices || from == to)
    return fail(error, COLLET_NOT_FOUND, "there is no such link");
  link->hops = from < to ? to - from : from - to;
  link->latency_ns = 500.0 * link->hops;
  link->bytes_per_ns = 10;
  return COLLET_OK;
}

uint32_t takes_exchange(collet_backend_instance*, const collet_exchange* exchange) {
  return takes_host_exchange(*exchange) ? 1 : 0;
}

collet_status run_exchange(collet_backend_instance* p, const collet_exchange* exchange, collet_error* error) {
  Instance* i = of(p);
  std::vector<Buffer*> from, to;
  for (uint32_t m = 0; m < exchange->member_count; ++m) {
    if (Buffer* b = of(exchange->members[m].from.buffer)) from.push_back(b);
    if (Buffer* b = of(exchange->members[m].to.buffer)) to.push_back(b);
  }
  {
    const std::lock_guard lock(i->mutex);
    check_access(*i, {from, to}, i->known, nullptr, "an exchange");
  }
  ++i->control->exchanges;
  const auto end = Clock::now() + std::chrono::milliseconds(exchange->timeout_ms);
  while (i->control->stuck) {
    if (exchange->is_over(exchange->user)) return fail(error, COLLET_UNAVAILABLE, "another process is lost");
    if (Clock::now() > end) return fail(error, COLLET_DEADLINE_EXCEEDED, "the exchange does not end");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const auto at = [](const collet_place& place) { return static_cast<char*>(of(place.buffer)->host) + place.offset; };
  return run_host_exchange(*exchange, at, error);
}

constexpr collet_exchange_table kExchange = {sizeof(collet_exchange_table), 0, takes_exchange, run_exchange};
constexpr collet_profile_table kProfile = {sizeof(collet_profile_table), 0, enable_profile, read_profile};
constexpr collet_host_memory_table kHostMemory = {sizeof(collet_host_memory_table), 0, add_host_memory,
                                                  remove_host_memory};
constexpr collet_links_table kLinks = {sizeof(collet_links_table), 0, between, nullptr};
constexpr collet_patterns_table kPatterns = {sizeof(collet_patterns_table), 0, pattern_name, nullptr, nullptr};
constexpr collet_layout_table kLayouts = {sizeof(collet_layout_table), 0, layout_of, convert};
constexpr collet_residency_table kResidency = {sizeof(collet_residency_table), 0, wants_prepared, prepare};

const void* query(collet_backend_instance* p, const char* name, uint32_t version) {
  const QueueControl& control = *of(p)->control;
  const auto is = [&](const char* wanted) { return version == 1 && std::strcmp(name, wanted) == 0; };
  if (is("queue")) return control.without_queues ? nullptr : &kQueues;
  if (is("patterns")) return control.patterns ? &kPatterns : nullptr;
  if (is("layout")) return control.column_major ? &kLayouts : nullptr;
  if (is("residency")) return control.residency ? &kResidency : nullptr;
  if (is("profile")) return control.profile ? &kProfile : nullptr;
  if (is("host_memory")) return control.host_memory ? &kHostMemory : nullptr;
  if (is("exchange")) return control.exchange ? &kExchange : nullptr;
  if (is("links")) return control.links ? &kLinks : nullptr;
  return nullptr;
}

constexpr collet_backend kBackend =
    backend_table(open, close, device_info, alloc, free, copy, supports, compile, execute, release, query);

}  // namespace
}  // namespace collet::testing

extern "C" collet_status collet_backend_entry(const collet_host* the_host, const collet_backend** out, collet_error*) {
  collet::testing::host = the_host;
  *out = &collet::testing::kBackend;
  return COLLET_OK;
}
