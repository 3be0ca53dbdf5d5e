// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>

#include "sdk/runtime/caught.h"
#include "sdk/runtime/executable.h"
#include "sdk/runtime/spare.h"
#include "sdk/runtime/trace.h"

namespace collet::runtime {
namespace {

constexpr double kInlineNs = 50000;  // longer runs go to the device's worker

uint64_t now_ns() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

// Runs, and now and then looks at the clock.
Status run_timed(Client& client, const ExecutableCore& core, uint64_t run_id, const RunMemory& memory) {
  Span span(COLLET_SPAN_RUN, core.name);
  span.facts().run_id = run_id;
  span.facts().device = core.devices[0];
  const uint32_t n = core.runs.fetch_add(1, std::memory_order_relaxed);
  if (n >= 4 && n % 64 != 0) return run_plan(client, core, run_id, memory);
  const uint64_t start = now_ns();
  Status status = run_plan(client, core, run_id, memory);
  const uint64_t took = now_ns() - start;
  const uint64_t before = core.seen_ns.load(std::memory_order_relaxed);
  core.seen_ns.store(before && before < 8 * took ? (3 * before + took) / 4 : took, std::memory_order_relaxed);
  return status;
}

// A run that waits for its turn.
struct Queued {
  Client* client;
  std::shared_ptr<ExecutableCore> core;
  uint64_t run_id;
  std::vector<MemoryRef> arguments, results;
  std::vector<Event*> before;
  Event* done;
  bool* overwritten;  // of a caller who waits; null otherwise

  Status run() {
    Status outcome;
    for (Event* event : before) {
      Status one = event->wait();
      if (outcome.ok()) outcome = std::move(one);
      event->release();
    }
    if (!outcome.ok()) return outcome;
    return caught([&] { return run_timed(*client, *core, run_id, {arguments, results, overwritten}); });
  }
};

// The state of one call, until its results are handed out. What is left of it at the end is undone.
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
    for (size_t i = 0; i < given_.size(); ++i)
      if (given_[i] && !(overwritten_ && donated_[i])) buffers_[i]->give_back(std::move(given_[i]));
  }

  Status execute(Buffer** results) {
    COLLET_TRY(take_arguments());
    COLLET_TRY(take_results());
    const uint64_t run_id = options_.run_id ? options_.run_id : client_.next_run_id();
    Worker& worker = client_.device(core_.devices[0]).compute();
    Event* done = nullptr;
    // Functions of the embedder's that are called for several participants are called by our threads.
    const bool here = (core_.host_functions.empty() || total_ == 1) && (options_.synchronous || is_short());
    if (before_.empty() && here && worker.idle()) {
      COLLET_TRY(
          run_timed(client_, core_, run_id,
                    {{arguments_.data(), arguments_.size()}, {results_.data(), results_.size()}, &overwritten_}));
    } else {
      done = enqueue(worker, run_id);
      if (options_.synchronous) {
        Status outcome = done->wait();
        if (!outcome.ok()) {
          done->release();
          return outcome;
        }
      }
    }
    if (options_.out_done) {
      Event* event = done ? done : Event::already();
      event->retain();
      *options_.out_done = reinterpret_cast<collet_event*>(event);
    }
    hand_out(results, done);
    return ok_status();
  }

 private:
  bool is_short() const {
    const uint64_t seen = core_.seen_ns.load(std::memory_order_relaxed);
    return (seen ? static_cast<double>(seen) : core_.plan.cost_ns) < kInlineNs;
  }

  bool is_donated(size_t index) const {
    if (!core_.donates[index] || options_.keep_donated) return false;
    for (uint32_t i = 0; i < options_.non_donatable_count; ++i)
      if (options_.non_donatable[i] == index) return false;
    return true;
  }

  Status take_arguments() {
    arguments_.resize(total_ * argument_count_);
    bool any_donated = false;
    for (size_t k = 0; k < arguments_.size(); ++k) {
      const size_t i = k % argument_count_, p = k / argument_count_;
      Buffer* b = buffers_[k];
      if (!b) return invalid_argument("argument " + std::to_string(k) + " is missing");
      if (&b->type() != core_.arguments[i])
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

  // Takes donated buffers from their owner; who else holds their memory keeps it unchanged.
  void give_away() {
    given_.resize(arguments_.size());
    donated_.resize(arguments_.size());
    for (size_t k = 0; k < arguments_.size(); ++k) {
      if (!is_donated(k % argument_count_) || !arguments_[k]) continue;
      MemoryRef memory = buffers_[k]->give();
      if (!memory) continue;  // given twice in one call
      given_[k] = std::move(memory);
      donated_[k] = given_[k].count() == 2;
    }
  }

  Status take_results() {
    results_.resize(total_ * result_count_);
    if (!donated_.empty())
      for (const Plan::Donation& d : core_.plan.donations)
        for (uint32_t p = 0; p < total_; ++p)
          if (const size_t a = p * argument_count_ + d.argument; donated_[a])
            results_[p * result_count_ + d.result] = arguments_[a];
    for (size_t k = 0; k < results_.size(); ++k) {
      if (results_[k]) continue;
      const uint64_t bytes = core_.results[k % result_count_]->bytes;
      if (bytes == 0) continue;
      Pool& pool = client_.device(core_.devices[k / result_count_]).default_pool();
      COLLET_ASSIGN(results_[k], pool.take(bytes));
    }
    return ok_status();
  }

  Event* enqueue(Worker& worker, uint64_t run_id) {
    auto queued = std::make_shared<Queued>();
    queued->client = &client_;
    queued->core = shared_;
    queued->run_id = run_id;
    queued->arguments.assign(std::make_move_iterator(arguments_.begin()), std::make_move_iterator(arguments_.end()));
    queued->results.assign(results_.begin(), results_.end());
    queued->before.assign(before_.begin(), before_.end());
    before_.clear();
    const std::vector<Event*> before = queued->before;
    auto* done = new Event(std::any_of(before.begin(), before.end(), [](Event* e) { return e->is_late(); }));
    done->retain();
    queued->done = done;
    queued->overwritten = options_.synchronous ? &overwritten_ : nullptr;
    client_.add_after(worker, before, [queued = std::move(queued)]() mutable {
      Status outcome = queued->run();
      Event* event = queued->done;
      queued.reset();
      event->set(std::move(outcome));
      event->release();
    });
    return done;
  }

  // Takes over the reference to `done`, which may be null.
  void hand_out(Buffer** results, Event* done) {
    for (size_t k = 0; k < results_.size(); ++k) {
      const size_t device = core_.devices[k / result_count_];
      Device& d = client_.device(static_cast<uint32_t>(device));
      if (done) done->retain();
      results[k] = Buffer::make(client_, static_cast<uint32_t>(device), d.facts().default_space,
                                core_.results[k % result_count_], std::move(results_[k]), done);
    }
    if (done) done->release();
    for (MemoryRef& memory : given_) memory = {};
  }

  Client& client_;
  const std::shared_ptr<ExecutableCore>& shared_;
  const ExecutableCore& core_;
  const collet_execute_options& options_;
  Buffer* const* buffers_;
  size_t argument_count_, result_count_;
  uint32_t total_;
  bool overwritten_ = false;  // donated memory is no longer what it was
  Small<MemoryRef, 16> arguments_, results_, given_;
  Small<uint8_t, 32> donated_;
  Small<Event*, 4> before_;
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
