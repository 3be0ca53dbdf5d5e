// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>

#include "sdk/runtime/backend/caught.h"
#include "sdk/runtime/memory/memory_pool.h"
#include "sdk/runtime/run/executable.h"
#include "sdk/runtime/trace.h"

namespace collet::runtime {
namespace {

constexpr double kInlineNs = 50000;  // runs longer than this are done by the device's worker thread
constexpr uint32_t kKnownRuns = 64;  // number of runs after which the time of a run is known

uint64_t now_ns() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

// Smooths the measured times of runs. After some runs, a run that takes much longer than earlier ones may have been
// interrupted: then the next run is measured as well, and decides.
void note_time(const ExecutableCore& core, uint32_t runs, uint64_t took) {
  const uint64_t before = core.seen_ns.load(std::memory_order_relaxed);
  const bool unusual = runs >= kKnownRuns && took > 4 * before;
  if (unusual && !core.time_again.load(std::memory_order_relaxed)) {
    core.time_again.store(true, std::memory_order_relaxed);
    return;
  }
  core.time_again.store(false, std::memory_order_relaxed);
  core.seen_ns.store(before && before < 8 * took ? (3 * before + took) / 4 : took, std::memory_order_relaxed);
}

// Runs the plan, and measures the time of some runs.
Status run_timed(Client& client, const ExecutableCore& core, uint64_t run_id, const RunMemory& memory,
                 const RunOrder& order) {
  Span span(COLLET_SPAN_RUN, core.name);
  span.facts().run_id = run_id;
  span.facts().device = core.devices[0];
  const uint32_t n = core.runs.load(std::memory_order_relaxed);
  core.runs.store(n + 1, std::memory_order_relaxed);  // concurrent runs may be counted as one
  if (n >= 4 && n % 64 != 0 && !core.time_again.load(std::memory_order_relaxed))
    return run_plan(client, core, run_id, memory, order);
  const uint64_t start = now_ns();
  Status status = run_plan(client, core, run_id, memory, order);
  note_time(core, n, now_ns() - start);
  return status;
}

// A run that was started and has not ended: holds the objects that it needs until then, and reports its end.
class StartedRun {
 public:
  // `counted`: counts the runs of the device; null if the run is not counted.
  StartedRun(Client& client, std::shared_ptr<ExecutableCore> core, InFlight* counted)
      : client_(client), core_(std::move(core)), counted_(counted), left_(core_->participants()) {
    client.retain_for_work();
  }
  ~StartedRun() {
    for (Event* event : events_) event->release();
    if (all_) all_->release();
    if (counted_ && left_ > 0) counted_->end();  // the run was not started
    core_.reset();
    client_.release_after_work();
  }
  StartedRun(const StartedRun&) = delete;
  StartedRun& operator=(const StartedRun&) = delete;

  const ExecutableCore& core() const { return *core_; }

  // Creates pending events for the participants. `late`: see Event.
  void make_pending(bool late) {
    for (uint32_t p = 0; p < core_->participants(); ++p) events_.push_back(new Event(late));
    make_all(late);
  }
  // Creates events for participants whose work is on queues.
  void make_placed(std::span<const Point> ends) {
    for (const Point& end : ends) events_.push_back(end ? new Event(end) : new Event);
    make_all(false);
  }
  // The event at which the results of a participant are complete.
  Event* of(uint32_t participant) const { return events_[participant]; }
  // The event at which the run has ended for all participants.
  Event* of_all() const { return all_ ? all_ : events_[0]; }

  // Waits for the work of the run on queues; `self` is held until it ends. `place`: the events are pending and are
  // placed here.
  static void wait_for_ends(const std::shared_ptr<StartedRun>& self, std::span<const Point> ends, bool place) {
    for (uint32_t p = 0; p < ends.size(); ++p) {
      if (!ends[p]) {
        self->end(p, ok_status());
        continue;
      }
      if (place) self->events_[p]->place(ends[p]);
      ends[p].queue->then(ends[p].value, [self, p](const Status& outcome) { self->end(p, outcome); });
    }
  }
  // Ends the run for all participants.
  void end_all(const Status& outcome) {
    for (uint32_t p = 0; p < events_.size(); ++p) end(p, outcome);
  }

 private:
  void make_all(bool late) {
    if (events_.size() > 1) all_ = new Event(late);
  }
  // Memory that the run holds is released before its end is reported.
  void end(uint32_t p, const Status& outcome) {
    if (all_ && !outcome.ok()) {
      const std::lock_guard lock(mutex_);
      if (failure_.ok()) failure_ = outcome;
    }
    const bool last = left_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    if (last) {
      core_.reset();
      if (counted_) counted_->end();
    }
    events_[p]->set(outcome);
    if (last && all_) all_->set(failure_);
  }

  Client& client_;
  std::shared_ptr<ExecutableCore> core_;
  InFlight* counted_;
  Small<Event*, 2> events_;
  Event* all_ = nullptr;  // for several participants
  std::atomic<uint32_t> left_;
  std::mutex mutex_;
  Status failure_;  // guarded by mutex_
};

// A donated argument that others still hold when the program is called, as the run does that computes it. When the run
// starts, nobody may hold it any more; then its memory becomes that of the result.
struct LateDonation {
  size_t argument, result;
  const Layout* layout;  // of the result
};

// A run that waits to be started by a worker.
struct QueuedRun {
  Client* client;
  std::shared_ptr<StartedRun> started;
  uint64_t run_id;
  std::vector<MemoryRef> arguments, results;
  std::vector<LateDonation> donations;
  std::vector<Event*> before;
  std::vector<Point> after;  // points of arguments whose work is on queues
  uint64_t launch;           // see RunOrder
  bool* overwritten;         // set for a caller that waits; null otherwise

  Status run(std::span<Point> ends) {
    Status outcome = wait();
    const ExecutableCore& core = started->core();
    if (!outcome.ok()) {
      if (core.across) Exchange(*core.across, launch).abandon(outcome);
      return outcome;
    }
    return caught(
        [&] { return run_timed(*client, core, run_id, {arguments, results, overwritten}, {after, ends, launch}); });
  }

 private:
  // Waits for the arguments, and allocates the results.
  Status wait() {
    Status outcome;
    for (Event* event : before) {
      Status one = event->wait_placed();
      Point point;
      if (one.ok()) one = event->dependency(point);
      if (point) after.push_back(point);
      if (outcome.ok()) outcome = std::move(one);
      event->release();
    }
    if (!outcome.ok()) return outcome;
    for (const LateDonation& d : donations) {
      MemoryRef &from = arguments[d.argument], &to = results[d.result];
      if (from.count() == 1 && from->layout == d.layout && to->pool->move(*from.get(), *to.get())) from = to;
    }
    return caught([&] {
      for (const MemoryRef& result : results)
        if (result) COLLET_TRY(result->pool->allocate(*result.get()));
      return ok_status();
    });
  }
};

// The state of one call. If it fails, its destructor reverses what has been done so far.
class Call {
 public:
  Call(Client& client, const std::shared_ptr<ExecutableCore>& shared, const collet_execute_options& options,
       Buffer* const* arguments)
      : client_(client),
        shared_(shared),
        core_(*shared),
        options_(options),
        buffers_(arguments),
        argument_count_(core_.arguments.size()),
        result_count_(core_.results.size()),
        total_(core_.participants()) {}

  ~Call() {
    for (Event* event : before_) event->release();
    for (size_t i = 0; i < gave_.size(); ++i)
      if (gave_[i] && !(overwritten_ && donated_[i])) buffers_[i]->give_back(std::move(given_[i]));
  }

  Status execute(Buffer** results) {
    Status status = start(results);
    // The other processes count the launch, and must not wait for it.
    if (!status.ok() && core_.across && !is_started_) {
      if (!is_launched_) launch_ = core_.across->processes->next_launch(core_.across->members);
      Exchange(*core_.across, launch_).abandon(status);
    }
    return status;
  }

 private:
  Status start(Buffer** results) {
    Device& device = client_.device(core_.devices[0]);
    COLLET_TRY(check_runs(device.facts()));
    COLLET_TRY(take_arguments());
    const uint64_t run_id = options_.run_id ? options_.run_id : client_.next_run_id();
    // Host functions that are called for several participants are called on threads of the library.
    const bool here = core_.host_functions.empty() || total_ == 1;
    const bool idle = device.compute().idle();
    const bool puts = device.has_queues() && core_.plan.device_only && all_placed() && idle;
    // A run that waits for other processes is not done on the thread of an asynchronous caller.
    const bool alone = !core_.across || options_.synchronous;
    const bool runs = !puts && alone && before_.empty() && here && (options_.synchronous || is_short(device)) && idle;
    // A queue needs the memory of results in the order in which work is put on it.
    COLLET_TRY(take_results(!puts && !runs && !device.has_queues()));
    if (core_.across) launch_ = core_.across->processes->next_launch(core_.across->members);
    is_launched_ = true;
    std::shared_ptr<StartedRun> started;
    if (puts) {
      COLLET_ASSIGN(started, put(device, run_id));
    } else if (runs) {
      is_started_ = true;
      COLLET_TRY(run_timed(client_, core_, run_id, memory(), {{}, {}, launch_}));
    } else {
      started = enqueue(device, run_id);
    }
    if (started && options_.synchronous) COLLET_TRY(started->of_all()->wait());
    if (options_.out_done) {
      Event* event = started ? started->of_all() : Event::already();
      event->retain();
      *options_.out_done = reinterpret_cast<collet_event*>(event);
    }
    hand_out(results, started.get());
    return ok_status();
  }

  RunMemory memory() {
    return {{arguments_.data(), arguments_.size()}, {results_.data(), results_.size()}, &overwritten_};
  }

  // True if all work on which the arguments depend has been put on queues.
  bool all_placed() const {
    return std::all_of(before_.begin(), before_.end(), [](const Event* e) { return e->is_placed(); });
  }

  // True if the run is short enough for the caller's thread. A run with host steps waits for the device, so it is not
  // done on the thread of an asynchronous caller.
  bool is_short(Device& device) const {
    if (device.has_queues() && !options_.synchronous) return false;
    const uint64_t seen = core_.seen_ns.load(std::memory_order_relaxed);
    return (seen ? static_cast<double>(seen) : core_.plan.cost_ns) < kInlineNs;
  }

  bool is_donated(size_t index) const {
    if (!core_.donates[index] || options_.keep_donated) return false;
    for (uint32_t i = 0; i < options_.non_donatable_count; ++i)
      if (options_.non_donatable[i] == index) return false;
    return true;
  }

  bool can_reshape(const ArrayType& from, const ArrayType& to) const {
    return options_.reshape_arguments && from.element == to.element && from.bytes == to.bytes;
  }

  Status take_arguments() {
    arguments_.resize(total_ * argument_count_);
    bool any_donated = false;
    for (size_t k = 0; k < arguments_.size(); ++k) {
      const size_t i = k % argument_count_, p = k / argument_count_;
      Buffer* b = buffers_[k];
      if (!b) return invalid_argument("argument " + std::to_string(k) + " is missing");
      if (&b->type() != core_.arguments[i] && !can_reshape(b->type(), *core_.arguments[i]))
        return invalid_argument("argument " + std::to_string(i) + " is " + b->type().to_string() +
                                ", but the program takes " + core_.arguments[i]->to_string());
      if (&b->client() != &client_) return invalid_argument("argument " + std::to_string(i) + " is another client's");
      if (b->device() != core_.devices[p])
        return invalid_argument("argument " + std::to_string(i) + " lies on device " + std::to_string(b->device()) +
                                ", but the program runs on device " + std::to_string(core_.devices[p]));
      Buffer::Use use;
      Status status = b->use(use);
      if (!status.ok()) return status.with_prefix("argument " + std::to_string(i) + ": ");
      if (use.ready) before_.push_back(use.ready);
      arguments_[k] = std::move(use.memory);
      any_donated |= is_donated(i);
    }
    if (any_donated) give_away();
    return ok_status();
  }

  // Takes donated buffers from their owner; other holders of their memory keep it unchanged.
  void give_away() {
    given_.resize(arguments_.size());
    gave_.resize(arguments_.size());
    donated_.resize(arguments_.size());
    for (size_t k = 0; k < arguments_.size(); ++k) {
      if (!is_donated(k % argument_count_) || !buffers_[k]->give(given_[k]))
        continue;  // it may occur twice in one call
      gave_[k] = true;
      donated_[k] = given_[k] && given_[k].count() == 2 && !given_[k]->owner;
    }
  }

  // `defer`: memory is allocated when the run starts.
  Status take_results(bool defer) {
    results_.resize(total_ * result_count_);
    if (!donated_.empty())
      for (const Plan::Donation& d : core_.plan.donations)
        for (uint32_t p = 0; p < total_; ++p) {
          const size_t a = p * argument_count_ + d.argument;
          const size_t r = p * result_count_ + d.result;
          const Layout* const layout = core_.plan.result_layout(d.result);
          if (donated_[a] && arguments_[a]->layout == layout)
            results_[r] = arguments_[a];
          else if (defer && given_[a] && !options_.synchronous)
            late_.push_back({a, r, layout});
        }
    for (uint32_t p = 0; p < total_; ++p) {
      Device& device = client_.device(core_.devices[p]);
      Pool& pool = device.default_pool();
      const Queue* order = nullptr;
      if (device.has_queues()) {
        COLLET_ASSIGN(order, device.queue(COLLET_QUEUE_COMPUTE));
      }
      for (size_t r = 0; r < result_count_; ++r) {
        MemoryRef& result = results_[p * result_count_ + r];
        if (result) continue;
        const uint64_t bytes = layout_bytes(*core_.results[r], core_.plan.result_layout(r));
        if (bytes == 0) continue;
        COLLET_ASSIGN(result, defer ? pool.defer(bytes) : pool.take(bytes, order));
      }
    }
    return ok_status();
  }

  // Counts the run, and waits if too many are in flight. A run that waits for something late, or that a worker starts,
  // must not wait here, because others wait for it.
  InFlight* count_run(Device& device, bool late) {
    if (late) return nullptr;
    device.runs().begin(options_.synchronous || Worker::is_current_thread());
    return &device.runs();
  }

  // Puts the whole run on queues.
  Expected<std::shared_ptr<StartedRun>> put(Device& device, uint64_t run_id) {
    Points after;
    for (Event* event : before_) {
      Point point;
      COLLET_TRY(event->dependency(point));
      if (point) after.push_back(point);
    }
    auto started = std::make_shared<StartedRun>(client_, shared_, count_run(device, false));
    Small<Point, 4> ends(total_);
    const std::span<Point> all_ends{ends.data(), ends.size()};
    is_started_ = true;
    COLLET_TRY(run_timed(client_, core_, run_id, memory(), {{after.data(), after.size()}, all_ends, launch_}));
    started->make_placed(all_ends);
    StartedRun::wait_for_ends(started, all_ends, false);
    return started;
  }

  std::shared_ptr<StartedRun> enqueue(Device& device, uint64_t run_id) {
    const bool late = std::any_of(before_.begin(), before_.end(), [](Event* e) { return e->is_late(); });
    QueuedRun queued;
    queued.client = &client_;
    queued.started = std::make_shared<StartedRun>(client_, shared_, count_run(device, late));
    queued.started->make_pending(late);
    queued.run_id = run_id;
    queued.launch = launch_;
    queued.arguments.assign(std::make_move_iterator(arguments_.begin()), std::make_move_iterator(arguments_.end()));
    queued.results.assign(results_.begin(), results_.end());
    queued.donations = std::move(late_);
    // What an asynchronous caller has donated is gone, also if the run fails.
    if (!options_.synchronous) forget_given();
    queued.before.assign(before_.begin(), before_.end());
    before_.clear();
    const std::vector<Event*> before = queued.before;
    queued.overwritten = options_.synchronous ? &overwritten_ : nullptr;
    std::shared_ptr<StartedRun> started = queued.started;
    is_started_ = true;
    client_.add_after(device.compute(), before, [run = std::make_shared<QueuedRun>(std::move(queued))]() mutable {
      const std::shared_ptr<StartedRun> self = run->started;
      std::vector<Point> ends(self->core().participants());
      const Status outcome = run->run(ends);
      run.reset();
      if (outcome.ok())
        StartedRun::wait_for_ends(self, ends, true);
      else
        self->end_all(outcome);
    });
    return started;
  }

  // Returns the results to the caller; `started` is null if they are complete.
  void hand_out(Buffer** results, const StartedRun* started) {
    for (uint32_t p = 0; p < total_; ++p) {
      const uint32_t device = core_.devices[p];
      const uint32_t space = client_.device(device).facts().default_space;
      Event* const ready = started ? started->of(p) : nullptr;
      for (size_t r = 0; r < result_count_; ++r) {
        const size_t k = p * result_count_ + r;
        if (ready) ready->retain();
        results[k] = Buffer::make(client_, device, space, core_.results[r], std::move(results_[k]), ready);
      }
    }
    forget_given();
  }

  // From here on nothing is given back.
  void forget_given() {
    for (MemoryRef& memory : given_) memory = {};
    for (uint8_t& gave : gave_) gave = false;
  }

  Client& client_;
  const std::shared_ptr<ExecutableCore>& shared_;
  const ExecutableCore& core_;
  const collet_execute_options& options_;
  Buffer* const* buffers_;
  size_t argument_count_, result_count_;
  uint32_t total_;
  uint64_t launch_ = 0;       // see RunOrder
  bool is_launched_ = false;  // launch_ has been taken
  bool is_started_ = false;   // the run was begun, and tells the other processes itself if it fails
  bool overwritten_ = false;  // true if donated memory may have been overwritten
  Small<MemoryRef, 16> arguments_, results_, given_;
  Small<uint8_t, 32>
      gave_;  // per argument: the buffer was deleted by this call, and given_ has its memory, if it has any
  Small<uint8_t, 32> donated_;  // per argument: a result may take the memory
  Small<Event*, 4> before_;
  std::vector<LateDonation> late_;
};

}  // namespace

ExecutableCore::~ExecutableCore() {
  plan = {};
  client.drop_constants();
}

Status Executable::execute(const collet_execute_options& options, Buffer* const* arguments, Buffer** results) {
  return Call(*client_, core_, options, arguments).execute(results);
}

collet_executable_facts Executable::facts() const {
  collet_executable_facts facts = core_->facts;
  facts.from_cache = from_cache_;
  facts.compile_ns = compile_ns_;
  return facts;
}

}  // namespace collet::runtime
