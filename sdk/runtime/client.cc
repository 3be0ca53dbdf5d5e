// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/client.h"

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "sdk/runtime/backend/caught.h"
#include "sdk/runtime/run/executable.h"
#include "sdk/runtime/run/host_call.h"
#include "sdk/runtime/trace.h"

namespace collet::runtime {
namespace {

constexpr std::chrono::seconds kDecayTime(1);

bool is_reference(const std::string& name) {
  return name == "cpu" || name == "interpreter";
}

// Returns the name of the fallback backend; "" if there is none.
std::string fallback_name(const collet_client_options& options, const Backend& backend) {
  const std::string asked = options.fallback ? options.fallback : "";
  if (asked == "none" || (asked.empty() && is_reference(backend.name()))) return {};
  if (!asked.empty()) return asked;
  return library_exists("cpu") ? "cpu" : "interpreter";
}

// A task that waits for late events (see Event), one after another.
struct Waiting {
  Client* client;
  Worker* worker;
  std::vector<Event*> events;
  std::function<void()> task;

  static void go_on(Waiting* w) {
    while (!w->events.empty()) {
      Event* event = w->events.back();
      if (event->is_late()) {
        event->on_placed([](void* user, collet_status, const char*) { go_on(static_cast<Waiting*>(user)); }, w);
        return;
      }
      w->events.pop_back();
    }
    add(*w->client, *w->worker, std::move(w->task));
    delete w;
  }

  // The task and its captured objects are destroyed before the client can be destroyed.
  static void add(Client& client, Worker& worker, std::function<void()> task) {
    worker.add([&client, task = std::move(task)]() mutable {
      task();
      task = nullptr;
      client.release_after_work();
    });
  }
};

}  // namespace

Device::Device(std::shared_ptr<Backend> backend, uint32_t index, uint32_t run_limit, const Pool::MakeRoom& make_room,
               const Pool::KeepsMuch& keeps_much)
    : backend_(std::move(backend)), index_(index), runs_(run_limit) {
  for (uint32_t s = 0; s < facts().spaces.size(); ++s)
    pools_.push_back(std::make_unique<Pool>(backend_, index, s, make_room, keeps_much));
}

void Device::trim() {
  for (auto& pool : pools_) pool->trim();
}

uint64_t Device::decay() {
  uint64_t kept = 0;
  for (auto& pool : pools_) kept += pool->decay();
  return kept;
}

Expected<Queue*> Device::queue(uint32_t kind) {
  if (!has_queues()) return nullptr;
  Queue* known = queues_[kind].load(std::memory_order_acquire);
  if (known && !known->has_failed()) return known;
  const std::lock_guard lock(queues_mutex_);
  known = queues_[kind].load(std::memory_order_relaxed);
  if (known && !known->has_failed()) return known;
  COLLET_ASSIGN(std::unique_ptr<Queue> made, Queue::make(backend_, index_, kind));
  Queue* const queue = made.get();
  all_queues_.push_back(std::move(made));
  queues_[kind].store(queue, std::memory_order_release);
  return queue;
}

void Device::abort_queues(const Status& reason) {
  for (auto& current : queues_)
    if (Queue* queue = current.load(std::memory_order_acquire)) queue->abort(reason);
}

namespace {

// Returns the limit of runs in flight: COLLET_RUNS_IN_FLIGHT, or the default.
Expected<uint32_t> run_limit(uint32_t asked) {
  constexpr uint32_t kUsual = 32;
  if (asked) return asked;
  const char* text = std::getenv("COLLET_RUNS_IN_FLIGHT");
  if (!text || !*text) return kUsual;
  char* end = nullptr;
  const unsigned long number = std::strtoul(text, &end, 10);
  if (*end || *text == '-' || number == 0 || number > 1u << 20)
    return invalid_argument(std::string("COLLET_RUNS_IN_FLIGHT='") + text + "': expected a number from 1 to 1048576");
  return static_cast<uint32_t>(number);
}

}  // namespace

Expected<Client*> Client::open(const collet_client_options& options) {
  std::string name = options.backend ? options.backend : "";
  if (name.empty()) {
    const char* chosen = std::getenv("COLLET_BACKEND");
    name = chosen && *chosen ? chosen : "cpu";
  }
  if (options.group)
    return unimplemented("collet_client_options::group is not null; call collet_client_join for several processes");
  if (options.pairs && (!options.keys || !options.values)) return invalid_argument("`pairs` without keys and values");
  struct Release {
    void operator()(Client* c) const { c->release(); }
  };
  std::unique_ptr<Client, Release> client(new Client);
  if (options.log) {
    client->log_ = options.log;
    client->log_user_ = options.log_user;
    set_log(options.log, options.log_user);
  }
  COLLET_ASSIGN(client->run_limit_, run_limit(options.runs_in_flight));
  const BackendOptions backend_options = {options.device_count, options.target, options.keys, options.values,
                                          options.pairs};
  COLLET_ASSIGN(client->backend_, Backend::open(name, backend_options));
  for (uint32_t i = 0; i < client->backend_->devices().size(); ++i)
    client->devices_.push_back(client->make_device(client->backend_, i));
  const std::string fallback = fallback_name(options, *client->backend_);
  if (!fallback.empty()) {
    auto opened = Backend::open(fallback, {});
    if (!opened.ok()) return opened.status().with_prefix("the fallback: ");
    client->fallback_ = *std::move(opened);
    client->fallback_device_ = client->make_device(client->fallback_, 0);
  }
  return client.release();
}

Status Client::join(const collet_processes& group) {
  if (processes_) return failed_precondition("the client has joined its processes before");
  COLLET_ASSIGN(processes_, Processes::join(*backend_, group));
  return ok_status();
}

// Makes a device. If its memory is exhausted, the caches of all devices are emptied, since devices may share their memory.
std::unique_ptr<Device> Client::make_device(const std::shared_ptr<Backend>& backend, uint32_t index) {
  const auto make_room = [this] {
    drop_executables();
    trim();
  };
  return std::make_unique<Device>(backend, index, run_limit_, make_room, [this] { start_decay(); });
}

void Client::start_decay() {
  const std::lock_guard lock(decay_mutex_);
  if (decaying_ || stop_decay_) return;
  if (decay_thread_.joinable()) decay_thread_.join();
  // Called where memory is released, which cannot fail. Without a thread the memory is kept.
  decaying_ = caught([&] {
                decay_thread_ = std::thread([this] { decay(); });
                return ok_status();
              }).ok();
}

void Client::decay() {
  std::unique_lock lock(decay_mutex_);
  while (!decay_changed_.wait_for(lock, kDecayTime, [&] { return stop_decay_; })) {
    lock.unlock();
    uint64_t kept = fallback_device_ ? fallback_device_->decay() : 0;
    for (auto& device : devices_) kept += device->decay();
    lock.lock();
    if (kept == 0) break;
  }
  decaying_ = false;
}

void Client::stop_decay() {
  {
    const std::lock_guard lock(decay_mutex_);
    stop_decay_ = true;
  }
  decay_changed_.notify_all();
  if (decay_thread_.joinable()) decay_thread_.join();
}

Client::~Client() {
  stop_decay();
  {
    std::vector<std::shared_ptr<ExecutableCore>> dropped;
    executables_.clear(dropped);
  }
  constants_.clear();
  for (auto& device : devices_) device->trim();  // memory of one device may have been used by work on queues of another
  devices_.clear();
  fallback_device_.reset();
  if (log_) reset_log(log_, log_user_);
}

void Client::drop(uint64_t references) {
  if (refs_.fetch_sub(references, std::memory_order_acq_rel) != references) return;
  if (const std::shared_ptr<Closing> closing = closing_) {
    const std::lock_guard lock(closing->mutex);
    closing->unreferenced = true;
    closing->changed.notify_all();
  } else if (Worker::is_current_thread()) {
    std::thread([this] { delete this; }).detach();  // a worker cannot wait for itself
  } else {
    delete this;
  }
}

void Client::close() {
  {
    std::vector<std::shared_ptr<ExecutableCore>> dropped;  // destroyed outside of the lock
    const std::lock_guard lock(mutex_);
    executables_.clear(dropped);
  }
  const bool waits = !Worker::is_current_thread() && !is_in_host_function();
  for (auto& device : devices_) {
    for (Worker* worker : {&device->compute(), &device->upload(), &device->download()}) {
      if (!waits || worker->idle()) continue;
      Event* done = new Event;
      done->retain();
      worker->add([done] {
        done->set(ok_status());
        done->release();
      });
      (void)done->wait();
      done->release();
    }
  }
  const uint64_t refs = refs_.load(std::memory_order_acquire);
  const auto left = static_cast<uint32_t>(refs) - 1 - static_cast<uint32_t>(refs >> 32);
  if (left == 0) {
    // No caller can observe the results of work that is still queued.
    for (auto& device : devices_) device->abort_queues(Status(Code::Cancelled, "the client was closed"));
  } else {
    log_message(COLLET_LOG_INFO, "client closed while " + std::to_string(left) +
                                     " of its buffers and executables are in use; it goes with the last of them");
  }
  flush_profile(*backend_);
  if (left > 0 || !waits) return release();
  const auto closing = std::make_shared<Closing>();
  closing_ = closing;
  release();
  {
    std::unique_lock lock(closing->mutex);
    closing->changed.wait(lock, [&] { return closing->unreferenced; });
  }
  delete this;
}

Status Client::check_device(uint32_t device) const {
  if (device < devices_.size()) return ok_status();
  return invalid_argument("there is no device " + std::to_string(device) + ": backend '" + backend_->name() + "' has " +
                          std::to_string(devices_.size()));
}

Expected<uint32_t> Client::check_space(uint32_t device, uint32_t space) const {
  COLLET_TRY(check_device(device));
  const DeviceFacts& facts = backend_->devices()[device];
  if (space == COLLET_NONE) return facts.default_space;
  if (space < facts.spaces.size()) return space;
  return invalid_argument("device " + std::to_string(device) + " has no memory space " + std::to_string(space));
}

void Client::add_after(Worker& worker, std::span<Event* const> events, std::function<void()> task) {
  std::vector<Event*> late;
  for (Event* event : events)
    if (event && event->is_late()) late.push_back(event);
  retain_for_work();
  if (late.empty()) return Waiting::add(*this, worker, std::move(task));
  Waiting::go_on(new Waiting{this, &worker, std::move(late), std::move(task)});
}

void Client::drop_constants() {
  const std::lock_guard lock(mutex_);
  std::erase_if(constants_, [](const auto& entry) { return entry.second.count() == 1; });
}

// Drops executables that are kept only in case they are compiled again.
void Client::drop_executables() {
  std::vector<std::shared_ptr<ExecutableCore>> dropped;  // destroyed outside of the lock
  const std::lock_guard lock(mutex_);
  executables_.drop_unused(dropped);
}

void Client::trim() {
  drop_constants();
  for (auto& device : devices_) device->trim();
  if (fallback_device_) fallback_device_->trim();
}

namespace {

// A large literal becomes the device's memory, where that is possible: then there is no second copy of it, not even for
// the time of the compilation.
Expected<MemoryRef> wrapped_or_copied(Device& device, const hlo::Literal& value) {
  const auto size = static_cast<uint64_t>(value.byte_size());
  if (size >= Client::kLargeConstant && device.backend().has_host_buffers()) {
    if (std::shared_ptr<const void> owner = value.owner()) {
      auto wrapped = device.default_pool().wrap(value.bytes(), size, std::move(owner));
      if (wrapped.ok() || wrapped.status().code() != Code::Unimplemented) return wrapped;
    }
  }
  COLLET_ASSIGN(MemoryRef memory, device.default_pool().take(size));
  collet_copy_region region{};
  region.from.host = const_cast<uint8_t*>(value.bytes());
  region.to.buffer = memory->handle;
  region.bytes = size;
  COLLET_TRY(device.backend().copy({&region, 1}));
  return memory;
}

}  // namespace

Expected<MemoryRef> Client::constant(Device& device, const hlo::ContentId& id, const hlo::Literal& value) {
  const auto size = static_cast<uint64_t>(value.byte_size());
  if (device.facts().has(COLLET_TRAIT_VIRTUAL)) return MemoryRef();
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = constants_.find({&device, id}); it != constants_.end() && it->second->capacity >= size)
      return it->second;
  }
  if (size == 0) return MemoryRef();
  COLLET_ASSIGN(MemoryRef memory, wrapped_or_copied(device, value));
  const std::lock_guard lock(mutex_);
  MemoryRef& known = constants_[{&device, id}];
  if (!known || known->capacity < size) known = std::move(memory);  // otherwise another thread has added it
  return known;
}

MemoryRef Client::readable_constant(Device& device, const hlo::ContentId& id) {
  const std::lock_guard lock(mutex_);
  const auto it = constants_.find({&device, id});
  return it != constants_.end() && it->second->host && !it->second->layout ? it->second : MemoryRef();
}

std::shared_ptr<CompiledProgram> Client::find_compiled(const hlo::ContentId& key) {
  const std::lock_guard lock(mutex_);
  const auto it = compiled_.find(key);
  return it == compiled_.end() ? nullptr : it->second.lock();
}

void Client::keep_compiled(const hlo::ContentId& key, const std::shared_ptr<CompiledProgram>& program) {
  const std::lock_guard lock(mutex_);
  std::erase_if(compiled_, [](const auto& entry) { return entry.second.expired(); });
  compiled_[key] = program;
}

std::shared_ptr<ExecutableCore> Client::find_executable(const hlo::ContentId& key) {
  const std::lock_guard lock(mutex_);
  return executables_.find(key);
}

void Client::keep_executable(const hlo::ContentId& key, std::shared_ptr<ExecutableCore> core) {
  const uint64_t bytes = core->held_bytes();
  std::vector<std::shared_ptr<ExecutableCore>> dropped;  // destroyed outside of the lock
  const std::lock_guard lock(mutex_);
  executables_.keep(key, std::move(core), bytes, dropped);
}

void Client::executable_released() {
  std::vector<std::shared_ptr<ExecutableCore>> dropped;  // destroyed outside of the lock
  const std::lock_guard lock(mutex_);
  executables_.shrink(dropped);
}

}  // namespace collet::runtime
