// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "hlo/program/leaves.h"
#include "sdk/runtime/backend/caught.h"
#include "sdk/runtime/memory/copy.h"
#include "sdk/runtime/memory/memory_pool.h"
#include "sdk/runtime/run/collective.h"
#include "sdk/runtime/run/executable.h"
#include "sdk/runtime/run/launch.h"
#include "sdk/runtime/run/run_state.h"
#include "sdk/runtime/trace.h"

namespace collet::runtime {
namespace {

// Runs a plan for all participants step by step, on one thread: so a collective has the operands of all participants,
// and none waits for another. If participants take different ways in control flow that the host runs, those that take
// the same way continue together.
//
// On devices with queues launches are put on the compute queue of each participant's device, where they run in order. The
// host waits for them only before it reads or copies memory itself.
//
// A collective over several processes runs on another thread if the plan has steps that do not need it; see StartedExchanges.
class Runner {
 public:
  Runner(Client& client, const ExecutableCore& core, uint64_t run_id, const RunOrder& order)
      : run_(client, core, run_id, order), core_(core), plan_(core.plan), count_(core.participants()) {
    if (!core.across) return;
    exchange_.emplace(*core.across, order.launch);
    started_.emplace(core.across->workers);
  }

  Status run(const RunMemory& memory) {
    Status status = caught([&] { return run_here(memory); });
    if (status.ok()) return status;
    hold_core();
    if (!exchange_) return status;
    started_->drop();
    exchange_->abandon(status);
    return status;
  }

 private:
  // Keeps the executable until what was put on queues before the failure has ended.
  void hold_core() {
    for (uint32_t p = 0; p < count_; ++p) {
      const Point point = run_.end(p);
      if (!point) continue;
      core_.client.retain_for_work();
      const Status held = caught([&] {
        point.queue->then(point.value, [core = core_.shared_from_this()](const Status&) mutable {
          Client& client = core->client;
          core.reset();
          client.release_after_work();
        });
        return ok_status();
      });
      if (held.ok()) continue;
      (void)point.queue->wait(point.value);
      core_.client.release_after_work();
    }
  }

  Status run_here(const RunMemory& memory) {
    COLLET_TRY(run_.begin());
    const Sequence& entry = plan_.sequences[0];
    const size_t arguments = core_.arguments.size(), results = core_.results.size();
    run_.overwritten = memory.overwritten;
    Frame frame(entry, count_);
    Small<uint32_t, 16> all(count_);
    for (uint32_t p = 0; p < count_; ++p) {
      all[p] = p;
      for (size_t i = 0; i < arguments; ++i)
        frame.at(p, entry.arguments[i]) = std::move(memory.arguments[p * arguments + i]);
      for (size_t i = 0; i < results; ++i) frame.at(p, entry.results[i]) = std::move(memory.results[p * results + i]);
    }
    Status status = steps(entry, frame, {all.data(), all.size()});
    if (status.ok() && started_) status = started_->finish();
    for (uint32_t p = 0; p < count_ && status.ok(); ++p) {
      // A caller that does not ask for end points gets results that are complete when the call returns.
      if (!run_.end(p) || run_.order.ends.empty()) status = run_.settle(p);
      if (!run_.order.ends.empty()) run_.order.ends[p] = run_.end(p);
    }
    for (uint32_t p = 0; p < count_; ++p)
      for (size_t i = 0; i < results; ++i) memory.results[p * results + i] = std::move(frame.at(p, entry.results[i]));
    return status;
  }

  Status steps(const Sequence& sequence, Frame& frame, Who who) {
    for (const Step& step : sequence.steps) {
      if (started_ && !started_->empty()) COLLET_TRY(wait_for_started(step, frame, who));
      COLLET_TRY(one(sequence, step, frame, who));
      for (uint32_t slot : step.dead)
        for (uint32_t p : who) frame.at(p, slot).reset();
    }
    return ok_status();
  }

  // Waits for those started exchanges that a step depends on. Memory that a step allocates is in no exchange; what its outputs have
  // already is memory of results, which may be that of donated arguments.
  Status wait_for_started(const Step& step, Frame& frame, Who who) {
    COLLET_TRY(started_->failure());
    for (const uint32_t p : who) {
      for (const uint32_t slot : step.in) COLLET_TRY(started_->before_read(frame.at(p, slot).get()));
      for (const uint32_t slot : step.out) COLLET_TRY(started_->before_write(frame.at(p, slot).get()));
    }
    return ok_status();
  }

  Status one(const Sequence& sequence, const Step& step, Frame& frame, Who who) {
    switch (step.kind) {
      case Step::Kind::Launch:
        return launch(run_, step, frame, who);
      case Step::Kind::Copy:
        return copy(sequence, step, frame, who);
      case Step::Kind::While:
        return while_loop(step, frame, who);
      case Step::Kind::Conditional:
        return conditional(step, frame, who);
      case Step::Kind::Call:
        return call(step, step.sequence[0], 0, frame, who);
      case Step::Kind::Constant: {
        const PlanConstant& constant = plan_.constants[step.unit];
        for (uint32_t p : who) frame.at(p, step.out[0]) = constant.memory[p];
        return ok_status();
      }
      case Step::Kind::ReplicaId:
      case Step::Kind::PartitionId:
        return own_number(sequence, step, frame, who);
      case Step::Kind::Collective:
      case Step::Kind::HostCall:
        return on_host(sequence, step, frame, who);
    }
    return internal_error("unknown step");
  }

  Status copy(const Sequence& sequence, const Step& step, Frame& frame, Who who) {
    const Slot& from = sequence.slots[step.in[0]];
    const Slot& to = sequence.slots[step.out[0]];
    for (uint32_t p : who) {
      if (to.bytes == 0) continue;
      MemoryRef& source = frame.at(p, step.in[0]);
      COLLET_TRY(run_.change_layout(p, from.side, source, nullptr));
      if (from.side == to.side) {
        COLLET_TRY(run_.allocate(frame, p, step.out[0], to.side, to.bytes, run_.queue(p, to.side)));
        COLLET_TRY(run_.copy_within(p, to.side, source.get(), frame.at(p, step.out[0]).get(), to.bytes));
        continue;
      }
      if (from.side == Side::Device) COLLET_TRY(run_.of_participant(run_.settle(p), p));
      COLLET_TRY(run_.allocate(frame, p, step.out[0], to.side, to.bytes, nullptr));
      COLLET_TRY(copy_memory(run_.device(p, from.side).backend(), source.get(), run_.device(p, to.side).backend(),
                             frame.at(p, step.out[0]).get(), to.bytes));
    }
    return ok_status();
  }

  // Returns input `i` of a step. At its last use it is moved out of the frame, so that it may be overwritten.
  static MemoryRef take(const Step& step, Frame& frame, uint32_t p, size_t i) {
    MemoryRef& memory = frame.at(p, step.in[i]);
    return step.is_last_use[i] ? std::move(memory) : memory;
  }

  // Runs a sequence on the step's inputs from index `at` on, and stores its results in the step's output slots.
  Status call(const Step& step, uint32_t number, size_t at, Frame& frame, Who who) {
    const Sequence& sequence = plan_.sequences[number];
    const size_t n = sequence.arguments.size();
    Frame inner(sequence, count_);
    for (uint32_t p : who)
      for (size_t i = 0; i < n; ++i) inner.at(p, sequence.arguments[i]) = take(step, frame, p, at + i);
    COLLET_TRY(steps(sequence, inner, who));
    for (uint32_t p : who)
      for (size_t i = 0; i < step.out.size(); ++i) frame.at(p, step.out[i]) = inner.at(p, sequence.results[i]);
    return ok_status();
  }

  Status read(const MemoryRef& memory, void* out, uint64_t bytes) {
    if (!memory) return internal_error("a value that decides about control flow is not there");
    if (memory->host) {
      std::memcpy(out, memory->host, bytes);
      return ok_status();
    }
    collet_copy_region region{};
    region.from.buffer = memory->handle;
    region.to.host = out;
    region.bytes = bytes;
    return memory->pool->backend().copy({&region, 1});
  }

  // The branch that each participant takes. Participants that are launched together must agree.
  using Choices = Small<int32_t, 16>;
  Status decide(Frame& frame, uint32_t slot, uint32_t bytes, Who who, Choices& out) {
    out.assign(who.size(), 0);
    if (started_)
      for (const uint32_t p : who) COLLET_TRY(started_->before_read(frame.at(p, slot).get()));
    COLLET_TRY(run_.settle(who));
    for (size_t k = 0; k < who.size(); ++k) {
      COLLET_TRY(read(frame.at(who[k], slot), &out[k], bytes));
      if (core_.together && out[k] != out[0])
        return unimplemented("participants take different ways through control flow, which the runtime runs for all");
    }
    return ok_status();
  }

  Status while_loop(const Step& step, Frame& frame, Who who) {
    const Sequence& condition = plan_.sequences[step.sequence[0]];
    const Sequence& body = plan_.sequences[step.sequence[1]];
    const size_t n = step.in.size();
    Small<MemoryRef, 16> state(n * count_);
    for (uint32_t p : who)
      for (size_t i = 0; i < n; ++i) state[p * n + i] = take(step, frame, p, i);
    Small<uint32_t, 16> still(who.begin(), who.end());
    Choices again;
    while (true) {
      const Who now{still.data(), still.size()};
      {
        Frame inner(condition, count_);
        for (uint32_t p : now)
          for (size_t i = 0; i < n; ++i) inner.at(p, condition.arguments[i]) = state[p * n + i];
        COLLET_TRY(steps(condition, inner, now));
        COLLET_TRY(decide(inner, condition.results[0], 1, now, again));
      }
      size_t kept = 0;
      for (size_t k = 0; k < still.size(); ++k)
        if (again[k]) still[kept++] = still[k];
      still.resize(kept);
      if (kept == 0) break;
      const Who going{still.data(), still.size()};
      Frame inner(body, count_);
      for (uint32_t p : going)
        for (size_t i = 0; i < n; ++i) inner.at(p, body.arguments[i]) = std::move(state[p * n + i]);
      COLLET_TRY(steps(body, inner, going));
      for (uint32_t p : going)
        for (size_t i = 0; i < n; ++i) state[p * n + i] = inner.at(p, body.results[i]);
    }
    for (uint32_t p : who)
      for (size_t i = 0; i < n; ++i) frame.at(p, step.out[i]) = std::move(state[p * n + i]);
    return ok_status();
  }

  Status conditional(const Step& step, Frame& frame, Who who) {
    Choices choices;
    COLLET_TRY(decide(frame, step.in[0], step.choice_bytes, who, choices));
    const auto branches = static_cast<int32_t>(step.sequence.size());
    size_t at = 1;
    for (int32_t b = 0; b < branches; ++b) {
      Small<uint32_t, 16> mine;
      for (size_t k = 0; k < who.size(); ++k) {
        int32_t choice = choices[k];
        if (step.choice_bytes == 1)
          choice = choice ? 0 : 1;  // branch 0 is taken for true
        else if (choice < 0 || choice >= branches)
          choice = branches - 1;
        if (choice == b) mine.push_back(who[k]);
      }
      const uint32_t number = step.sequence[static_cast<size_t>(b)];
      if (!mine.empty()) COLLET_TRY(call(step, number, at, frame, {mine.data(), mine.size()}));
      at += plan_.sequences[number].arguments.size();
    }
    return ok_status();
  }

  Status own_number(const Sequence& sequence, const Step& step, Frame& frame, Who who) {
    for (uint32_t p : who) {
      uint32_t value =
          step.kind == Step::Kind::ReplicaId ? core_.number(p) / core_.partitions : core_.number(p) % core_.partitions;
      COLLET_TRY(run_.allocate(frame, p, step.out[0], Side::Device, sequence.slots[step.out[0]].bytes, nullptr));
      Memory* const memory = frame.at(p, step.out[0]).get();
      COLLET_TRY(upload(memory->pool->backend(), memory, &value, sizeof value));
      memory->is_known = true;
      std::memcpy(memory->value, &value, sizeof value);
    }
    return ok_status();
  }

  // Returns the value in a slot: a view if the host can access the memory, else a copy.
  Expected<hlo::Literal> fetch(const MemoryRef& memory, const hlo::Shape& shape) {
    if (!memory) return hlo::Literal::zeros(shape);
    if (memory->host) return hlo::Literal::borrow(shape, memory->host);
    hlo::Literal out = hlo::Literal::uninitialized(shape);
    COLLET_TRY(read(memory, out.mutable_bytes(), static_cast<uint64_t>(out.byte_size())));
    return out;
  }

  // A collective or a call of a host function whose operands are complete, and whose results have memory.
  struct HostWork {
    const Step* step;
    std::vector<uint32_t> who;
    std::vector<std::vector<MemoryRef>> in, out;  // by participant
    std::vector<uint64_t> out_bytes;
  };

  // Runs a collective or a host function. Returns results per participant, with tuples flattened.
  // `targets`: see Exchange::run.
  Expected<std::vector<std::vector<hlo::Literal>>> results_of(const HostWork& work, const hlo::Instruction& instr,
                                                              std::vector<std::vector<hlo::Literal>> operands,
                                                              std::span<const std::vector<void*>> targets) {
    const Step& step = *work.step;
    if (step.kind == Step::Kind::Collective && exchange_) {
      Small<uint32_t, 16> numbers;
      for (const uint32_t p : work.who) numbers.push_back(core_.number(p));
      return exchange_->run(*core_.module, instr, step.instr, {numbers.data(), numbers.size()}, std::move(operands),
                            targets);
    }
    if (step.kind == Step::Kind::Collective)
      return run_collective(*core_.module, instr, {core_.replicas, core_.partitions, work.who, {}, nullptr},
                            std::move(operands));
    std::vector<std::vector<hlo::Literal>> results(work.who.size());
    for (size_t k = 0; k < work.who.size(); ++k) {
      COLLET_ASSIGN(results[k], call_host(core_.host_functions[step.unit], instr, operands[k],
                                          core_.number(work.who[k]), run_.run_id));
    }
    return results;
  }

  Status on_host(const Sequence& sequence, const Step& step, Frame& frame, Who who) {
    HostWork work{&step, {who.begin(), who.end()}, {}, {}, {}};
    for (const uint32_t p : who)
      for (const uint32_t slot : step.in)
        COLLET_TRY(run_.change_layout(p, sequence.slots[slot].side, frame.at(p, slot), nullptr));
    COLLET_TRY(run_.settle(who));
    for (const uint32_t slot : step.out) work.out_bytes.push_back(sequence.slots[slot].bytes);
    for (const uint32_t p : who) {
      std::vector<MemoryRef>& in = work.in.emplace_back();
      for (const uint32_t slot : step.in) in.push_back(frame.at(p, slot));
      std::vector<MemoryRef>& out = work.out.emplace_back();
      for (const uint32_t slot : step.out) {
        if (const uint64_t bytes = sequence.slots[slot].bytes) {
          COLLET_TRY(run_.allocate(frame, p, slot, Side::Device, bytes, nullptr));
          frame.at(p, slot)->uses.wait();
        }
        out.push_back(frame.at(p, slot));
      }
    }
    // What has been started before ends before: the exchanges of a run keep their order.
    if (step.kind != Step::Kind::Collective || !started_ || (!step.overlaps && started_->empty())) return on_host(work);
    std::vector<MemoryRef> reads, writes;
    for (const std::vector<MemoryRef>& in : work.in) reads.insert(reads.end(), in.begin(), in.end());
    for (const std::vector<MemoryRef>& out : work.out) writes.insert(writes.end(), out.begin(), out.end());
    started_->start(std::move(reads), std::move(writes), [this, work = std::move(work)] { return on_host(work); });
    return ok_status();
  }

  // Returns an operand as memory of the default space of the participant's device: a copy if it is elsewhere.
  Expected<MemoryRef> on_device(const MemoryRef& memory, uint32_t p, uint64_t bytes) {
    Pool& pool = run_.device(p, Side::Device).default_pool();
    if (!memory || memory->pool == &pool) return memory;
    COLLET_ASSIGN(MemoryRef out, pool.take(bytes));
    COLLET_TRY(copy_memory(memory->pool->backend(), memory.get(), pool.backend(), out.get(), bytes));
    return out;
  }

  // Runs a collective over several processes by links of the devices.
  Status by_links(const HostWork& work, const hlo::Instruction& instr, std::span<const hlo::Shape> shapes) {
    std::vector<std::vector<MemoryRef>> operands(work.who.size());
    std::vector<ExchangeMemory> memory(work.who.size());
    Small<uint32_t, 16> numbers;
    for (size_t k = 0; k < work.who.size(); ++k) {
      const uint32_t p = work.who[k];
      numbers.push_back(core_.number(p));
      for (size_t i = 0; i < shapes.size(); ++i) {
        COLLET_ASSIGN(MemoryRef here, on_device(work.in[k][i], p, static_cast<uint64_t>(shapes[i].byte_size())));
        memory[k].operands.push_back(here.get());
        operands[k].push_back(std::move(here));
      }
      for (const MemoryRef& out : work.out[k]) memory[k].results.push_back(out.get());
    }
    return exchange_->run_on_devices(*core_.module, instr, work.step->instr, {numbers.data(), numbers.size()}, memory);
  }

  Status on_host(const HostWork& work) {
    const Step& step = *work.step;
    const hlo::Instruction& instr = (*core_.module)[step.instr];
    std::vector<hlo::Shape> shapes;
    for (hlo::InstrId id : instr.operands) hlo::append_leaf_shapes((*core_.module)[id].shape, shapes);
    Span span(step.kind == Step::Kind::Collective ? COLLET_SPAN_COLLECTIVE : COLLET_SPAN_HOST_CALL, instr.name);
    span.facts().run_id = run_.run_id;
    if (step.kind == Step::Kind::Collective && exchange_) {
      COLLET_ASSIGN(const bool by_devices, exchange_->is_on_devices(*core_.module, instr, step.instr));
      if (by_devices) return by_links(work, instr, shapes);
    }
    std::vector<std::vector<hlo::Literal>> operands(work.who.size());
    std::vector<std::vector<void*>> targets(work.who.size());
    for (size_t k = 0; k < work.who.size(); ++k) {
      for (size_t i = 0; i < shapes.size(); ++i) {
        COLLET_ASSIGN(hlo::Literal value, fetch(work.in[k][i], shapes[i]));
        operands[k].push_back(std::move(value));
      }
      for (size_t i = 0; i < work.out_bytes.size(); ++i)
        targets[k].push_back(work.out_bytes[i] ? work.out[k][i]->host : nullptr);
    }
    COLLET_ASSIGN(const auto results, results_of(work, instr, std::move(operands), targets));
    for (size_t k = 0; k < work.who.size(); ++k) {
      Small<collet_copy_region, 4> regions;
      for (size_t i = 0; i < work.out_bytes.size(); ++i) {
        const uint64_t bytes = work.out_bytes[i];
        if (bytes == 0) continue;
        if (i >= results[k].size() || static_cast<uint64_t>(results[k][i].byte_size()) != bytes)
          return internal_error("'" + std::string(instr.name) + "' gives another shape than it states");
        if (targets[k][i] && results[k][i].bytes() == targets[k][i]) continue;
        collet_copy_region region{};
        region.from.host = const_cast<uint8_t*>(results[k][i].bytes());  // only read
        region.to.buffer = work.out[k][i]->handle;
        region.bytes = bytes;
        regions.push_back(region);
      }
      const uint32_t p = work.who[k];
      if (!regions.empty())
        COLLET_TRY(
            run_.of_participant(run_.device(p, Side::Device).backend().copy({regions.data(), regions.size()}), p));
    }
    return ok_status();
  }

  RunState run_;
  const ExecutableCore& core_;
  const Plan& plan_;
  uint32_t count_;
  // If participants are in other processes:
  std::optional<Exchange> exchange_;
  std::optional<StartedExchanges> started_;
};

}  // namespace

Status run_plan(Client& client, const ExecutableCore& core, uint64_t run_id, const RunMemory& memory,
                const RunOrder& order) {
  return Runner(client, core, run_id, order).run(memory);
}

}  // namespace collet::runtime
