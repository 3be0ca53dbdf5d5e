// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <string>

#include "hlo/program/leaves.h"
#include "sdk/runtime/collective.h"
#include "sdk/runtime/copy.h"
#include "sdk/runtime/executable.h"
#include "sdk/runtime/spare.h"
#include "sdk/runtime/trace.h"

namespace collet::runtime {
namespace {

// Memory of a sequence's slots, participant after participant.
class Frame {
 public:
  Frame(const Sequence& sequence, uint32_t participants)
      : width_(sequence.slots.size()), slots_(width_ * participants) {}
  MemoryRef& at(uint32_t participant, uint32_t slot) { return slots_[participant * width_ + slot]; }

 private:
  size_t width_;
  Small<MemoryRef, 24> slots_;
};

// Numbers of participants that do something together, rising.
using Who = std::span<const uint32_t>;

// All participants go through the plan step by step, on one thread: so a collective finds all that came to it, and no
// participant waits for another one. Where their ways part, in control flow that the host runs, those of each way go on
// together.
//
// On devices with queues launches are put on the compute queue of each participant's device, where they run in order. The
// host waits for them only before it reads or copies memory itself.
class Runner {
 public:
  Runner(Client& client, const ExecutableCore& core, uint64_t run_id, const RunOrder& order)
      : client_(client),
        core_(core),
        plan_(core.plan),
        run_id_(run_id),
        count_(core.participants()),
        order_(order),
        queues_(count_),
        last_(count_) {}

  Status run(const RunMemory& memory) {
    for (uint32_t p = 0; p < count_; ++p) {
      COLLET_ASSIGN(queues_[p], client_.device(core_.devices[p]).queue(COLLET_QUEUE_COMPUTE));
    }
    const Sequence& entry = plan_.sequences[0];
    const size_t arguments = core_.arguments.size(), results = core_.results.size();
    overwritten_ = memory.overwritten;
    Frame frame(entry, count_);
    Small<uint32_t, 16> all(count_);
    for (uint32_t p = 0; p < count_; ++p) {
      all[p] = p;
      for (size_t i = 0; i < arguments; ++i)
        frame.at(p, entry.arguments[i]) = std::move(memory.arguments[p * arguments + i]);
      for (size_t i = 0; i < results; ++i) frame.at(p, entry.results[i]) = std::move(memory.results[p * results + i]);
    }
    Status status = steps(entry, frame, {all.data(), all.size()});
    for (uint32_t p = 0; p < count_ && status.ok(); ++p) {
      if (!last_[p]) status = settle(p);
      if (!order_.ends.empty()) order_.ends[p] = last_[p];
    }
    for (uint32_t p = 0; p < count_; ++p)
      for (size_t i = 0; i < results; ++i) memory.results[p * results + i] = std::move(frame.at(p, entry.results[i]));
    return status;
  }

 private:
  Device& device(uint32_t p, Side side) {
    return side == Side::Fallback ? client_.fallback_device() : client_.device(core_.devices[p]);
  }

  Status steps(const Sequence& sequence, Frame& frame, Who who) {
    for (const Step& step : sequence.steps) {
      COLLET_TRY(one(sequence, step, frame, who));
      for (uint32_t slot : step.dead)
        for (uint32_t p : who) frame.at(p, slot) = {};
    }
    return ok_status();
  }

  Status one(const Sequence& sequence, const Step& step, Frame& frame, Who who) {
    switch (step.kind) {
      case Step::Kind::Launch:
        return launch(sequence, step, frame, who);
      case Step::Kind::Copy:
        return copy(sequence, step, frame, who);
      case Step::Kind::While:
        return while_loop(step, frame, who);
      case Step::Kind::Conditional:
        return conditional(step, frame, who);
      case Step::Kind::Call:
        return call(step.sequence[0], step.in, 0, step.out, frame, who);
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

  // The queue of a participant's launches; null where they block.
  Queue* queue(uint32_t p, Side side) const { return side == Side::Device ? queues_[p] : nullptr; }

  // Memory for a slot that has none. `order`: the queue of the work that writes to it; null where the host does.
  Status allocate(const Sequence& sequence, Frame& frame, uint32_t p, uint32_t slot, const Queue* order) {
    MemoryRef& memory = frame.at(p, slot);
    const Slot& s = sequence.slots[slot];
    if (memory || s.bytes == 0) return ok_status();
    COLLET_ASSIGN(memory, device(p, s.side).default_pool().take(s.bytes, order));
    return ok_status();
  }

  // Waits until a participant's arguments are there and its launches have ended, so that the host can use its memory.
  Status settle(uint32_t p) {
    if (!queues_[p]) return ok_status();
    if (last_[p]) return wait_for({&last_[p], 1});
    return wait_for(order_.after);
  }
  Status settle(Who who) {
    for (uint32_t p : who) COLLET_TRY(of_participant(settle(p), p));
    return ok_status();
  }

  // What the next work of a participant waits for, apart from its launches before. They have waited for the arguments.
  std::span<const Point> arguments_of_run(uint32_t p) const {
    return last_[p] ? std::span<const Point>() : order_.after;
  }

  // An error of one participant, which is the end of all.
  Status of_participant(Status status, uint32_t p) const {
    if (status.ok() || count_ == 1) return status;
    return status.with_prefix("participant " + std::to_string(p) + ": ");
  }

  Status launch(const Sequence& sequence, const Step& step, Frame& frame, Who who) {
    const Unit& unit = plan_.units[step.unit];
    const size_t arguments = unit.argument_bytes.size(), results = unit.result_bytes.size();
    Small<collet_argument, 24> all(who.size() * (arguments + results));
    Small<collet_launch, 2> launches(who.size());
    Small<MemoryRef, 2> workspaces(who.size());
    Small<Points, 1> waits(who.size());
    gives_away_ = false;
    for (size_t k = 0; k < who.size(); ++k) {
      const uint32_t p = who[k];
      const Unit::Local& local = unit.locals[unit.locals.size() == 1 ? 0 : p];
      collet_argument* a = all.data() + k * (arguments + results);
      collet_argument* r = a + arguments;
      for (size_t i = 0; i < results; ++i) {
        COLLET_TRY(allocate(sequence, frame, p, step.out[i], queue(p, unit.side)));
        fill(r[i], frame.at(p, step.out[i]), unit.result_bytes[i]);
      }
      for (size_t i = 0; i < step.in.size(); ++i) {
        fill(a[i], frame.at(p, step.in[i]), unit.argument_bytes[i]);
      }
      for (size_t i = 0; i < local.constants.size(); ++i) {
        collet_argument& c = a[step.in.size() + i];
        if (local.absorbed[i])
          c.flags = COLLET_ARG_ABSENT;
        else
          fill(c, local.constants[i], unit.argument_bytes[step.in.size() + i]);
      }
      COLLET_TRY(honour_aliases(unit, frame, p, step, a, r));
      COLLET_TRY(workspace(unit, local, p, launches[k], workspaces[k]));
      collet_launch& l = launches[k];
      l.device = unit.side == Side::Fallback ? 0 : core_.devices[p];
      l.participant = core_.together && unit.side == Side::Device ? p : 0;
      l.arguments = a;
      l.results = r;
      l.argument_count = static_cast<uint32_t>(arguments);
      l.result_count = static_cast<uint32_t>(results);
      if (const Queue* q = queue(p, unit.side)) {
        COLLET_TRY(of_participant(add_waits(arguments_of_run(p), *q, waits[k]), p));
        for (const uint32_t slot : step.out)
          if (const MemoryRef& memory = frame.at(p, slot)) memory->uses.add_waits(*q, waits[k]);
        if (workspaces[k]) workspaces[k]->uses.add_waits(*q, waits[k]);
      }
    }
    Span span(COLLET_SPAN_LAUNCH, unit.label);
    span.facts().run_id = run_id_;
    span.facts().device = launches[0].device;
    span.facts().on_fallback = unit.side == Side::Fallback;
    // The fallback, and participants that run apart, get a launch each.
    const bool together = unit.side == Side::Device && core_.together;
    const size_t width = together ? who.size() : 1;
    for (size_t k = 0; k < who.size(); k += width) {
      const CompiledProgram& program = *unit.locals[unit.locals.size() == 1 ? 0 : who[k]].program;
      const std::span<collet_launch> some{launches.data() + k, width};
      Status status = queue(who[k], unit.side) ? put(program, some, who.subspan(k, width), {waits.data() + k, width})
                                               : execute(program, some);
      if (!status.ok()) return together ? status : of_participant(std::move(status), who[k]);
      if (unit.side == Side::Device)
        note_uses(unit, step, frame, who.subspan(k, width), {workspaces.data() + k, width});
    }
    return ok_status();
  }

  Status execute(const CompiledProgram& program, std::span<const collet_launch> launches) {
    COLLET_TRY(program.backend().execute(program.handle(), launches, run_id_));
    if (gives_away_ && overwritten_) *overwritten_ = true;
    return ok_status();
  }

  // Puts launches on the compute queues of their participants.
  Status put(const CompiledProgram& program, std::span<collet_launch> launches, Who who, std::span<Points> waits) {
    Small<Queue*, 4> queues;
    for (const uint32_t p : who) queues.push_back(queues_[p]);
    Submission submission({queues.data(), queues.size()});
    for (size_t k = 0; k < launches.size(); ++k) {
      submission.wait_for(k, std::move(waits[k]));
      launches[k].sync = submission.sync(k);
    }
    COLLET_TRY(execute(program, launches));
    for (size_t k = 0; k < launches.size(); ++k) last_[who[k]] = submission.commit(k);
    return ok_status();
  }

  // The launches of `who` use this memory until their last points.
  void note_uses(const Unit& unit, const Step& step, Frame& frame, Who who, std::span<const MemoryRef> workspaces) {
    for (size_t k = 0; k < who.size(); ++k) {
      const uint32_t p = who[k];
      if (!queues_[p]) continue;
      for (const uint32_t slot : step.in)
        if (const MemoryRef& memory = frame.at(p, slot)) memory->uses.add(last_[p]);
      for (const uint32_t slot : step.out)
        if (const MemoryRef& memory = frame.at(p, slot)) memory->uses.add(last_[p]);
      for (const MemoryRef& memory : unit.locals[unit.locals.size() == 1 ? 0 : p].constants)
        if (memory) memory->uses.add(last_[p]);
      if (workspaces[k]) workspaces[k]->uses.add(last_[p]);
    }
  }

  static void fill(collet_argument& a, const MemoryRef& memory, uint64_t bytes) {
    a.buffer = memory ? memory->handle : nullptr;
    a.bytes = bytes;
  }

  // Overwritten is only what the plan found that nobody reads later: the argument of an alias, where it was given away.
  // Of a must-alias whose argument was not, the result's memory gets a copy, and serves as both.
  Status honour_aliases(const Unit& unit, Frame& frame, uint32_t p, const Step& step, collet_argument* arguments,
                        const collet_argument* results) {
    for (const hlo::ProgramAlias& alias : unit.aliases) {
      collet_argument& a = arguments[alias.argument];
      const collet_argument& r = results[alias.result];
      if (a.bytes == 0) continue;
      if (a.buffer == r.buffer) {
        gives_away_ = true;
      } else {
        if (!alias.must) continue;
        COLLET_TRY(copy_argument(p, unit.side, frame.at(p, step.in[alias.argument]).get(),
                                 frame.at(p, step.out[alias.result]).get(), a.bytes));
        a.buffer = r.buffer;
      }
      a.flags |= COLLET_ARG_DONATED;
    }
    return ok_status();
  }

  Status copy_argument(uint32_t p, Side side, Memory* from, Memory* to, uint64_t bytes) {
    Queue* const q = queue(p, side);
    Backend& backend = device(p, side).backend();
    if (!q) return copy_memory(backend, from, backend, to, bytes);
    collet_copy_region region{};
    region.from.buffer = from->handle;
    region.to.buffer = to->handle;
    region.bytes = bytes;
    COLLET_ASSIGN(last_[p], put_copy(*q, region, from, to, arguments_of_run(p)));
    return ok_status();
  }

  Status workspace(const Unit& unit, const Unit::Local& local, uint32_t p, collet_launch& launch, MemoryRef& memory) {
    const uint64_t bytes = local.program->facts().workspace_bytes;
    if (bytes == 0) return ok_status();
    COLLET_ASSIGN(memory, device(p, unit.side).default_pool().take(bytes, queue(p, unit.side)));
    fill(launch.workspace, memory, bytes);
    return ok_status();
  }

  Status copy(const Sequence& sequence, const Step& step, Frame& frame, Who who) {
    const Slot& from = sequence.slots[step.in[0]];
    const Slot& to = sequence.slots[step.out[0]];
    if (from.side == Side::Device) COLLET_TRY(settle(who));
    for (uint32_t p : who) {
      COLLET_TRY(allocate(sequence, frame, p, step.out[0], nullptr));
      COLLET_TRY(copy_memory(device(p, from.side).backend(), frame.at(p, step.in[0]).get(),
                             device(p, to.side).backend(), frame.at(p, step.out[0]).get(), to.bytes));
    }
    return ok_status();
  }

  // Runs a sequence on the slots `in` from `at` on, and puts its results in `out`.
  Status call(uint32_t number, const std::vector<uint32_t>& in, size_t at, const std::vector<uint32_t>& out,
              Frame& frame, Who who) {
    const Sequence& sequence = plan_.sequences[number];
    Frame inner(sequence, count_);
    for (uint32_t p : who)
      for (size_t i = 0; i < sequence.arguments.size(); ++i)
        inner.at(p, sequence.arguments[i]) = frame.at(p, in[at + i]);
    COLLET_TRY(steps(sequence, inner, who));
    for (uint32_t p : who)
      for (size_t i = 0; i < out.size(); ++i) frame.at(p, out[i]) = inner.at(p, sequence.results[i]);
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

  // Each participant's decision. Those that are launched together must agree.
  using Choices = Small<int32_t, 16>;
  Status decide(Frame& frame, uint32_t slot, uint32_t bytes, Who who, Choices& out) {
    out.assign(who.size(), 0);
    COLLET_TRY(settle(who));
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
      for (size_t i = 0; i < n; ++i) state[p * n + i] = frame.at(p, step.in[i]);
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
          choice = choice ? 0 : 1;  // the first branch is that of true
        else if (choice < 0 || choice >= branches)
          choice = branches - 1;
        if (choice == b) mine.push_back(who[k]);
      }
      const uint32_t number = step.sequence[static_cast<size_t>(b)];
      if (!mine.empty()) COLLET_TRY(call(number, step.in, at, step.out, frame, {mine.data(), mine.size()}));
      at += plan_.sequences[number].arguments.size();
    }
    return ok_status();
  }

  Status own_number(const Sequence& sequence, const Step& step, Frame& frame, Who who) {
    for (uint32_t p : who) {
      uint32_t value = step.kind == Step::Kind::ReplicaId ? p / core_.partitions : p % core_.partitions;
      COLLET_TRY(allocate(sequence, frame, p, step.out[0], nullptr));
      COLLET_TRY(upload(device(p, Side::Device).backend(), frame.at(p, step.out[0]).get(), &value, sizeof value));
    }
    return ok_status();
  }

  // The value in a slot: where it lies if the host sees it, else a copy.
  Expected<hlo::Literal> fetch(const MemoryRef& memory, const hlo::Shape& shape) {
    if (!memory) return hlo::Literal::zeros(shape);
    if (memory->host) return hlo::Literal::borrow(shape, memory->host);
    hlo::Literal out = hlo::Literal::uninitialized(shape);
    COLLET_TRY(read(memory, out.mutable_bytes(), static_cast<uint64_t>(out.byte_size())));
    return out;
  }

  // What is done with the values themselves: results per participant, tuples flattened.
  Expected<std::vector<std::vector<hlo::Literal>>> results_of(const Step& step, const hlo::Instruction& instr, Who who,
                                                              std::vector<std::vector<hlo::Literal>> operands) {
    if (step.kind == Step::Kind::Collective)
      return run_collective(*core_.module, instr, {core_.replicas, core_.partitions, who}, std::move(operands));
    std::vector<std::vector<hlo::Literal>> results(who.size());
    for (size_t k = 0; k < who.size(); ++k) {
      COLLET_ASSIGN(results[k], call_host(core_.host_functions[step.unit], instr, operands[k], who[k], run_id_));
    }
    return results;
  }

  Status on_host(const Sequence& sequence, const Step& step, Frame& frame, Who who) {
    const hlo::Instruction& instr = (*core_.module)[step.instr];
    std::vector<hlo::Shape> shapes;
    for (hlo::InstrId id : instr.operands) hlo::append_leaf_shapes((*core_.module)[id].shape, shapes);
    std::vector<std::vector<hlo::Literal>> operands(who.size());
    COLLET_TRY(settle(who));
    for (size_t k = 0; k < who.size(); ++k)
      for (size_t i = 0; i < shapes.size(); ++i) {
        COLLET_ASSIGN(hlo::Literal value, fetch(frame.at(who[k], step.in[i]), shapes[i]));
        operands[k].push_back(std::move(value));
      }
    Span span(step.kind == Step::Kind::Collective ? COLLET_SPAN_COLLECTIVE : COLLET_SPAN_HOST_CALL, instr.name);
    span.facts().run_id = run_id_;
    COLLET_ASSIGN(const auto results, results_of(step, instr, who, std::move(operands)));
    for (size_t k = 0; k < who.size(); ++k) {
      Small<collet_copy_region, 4> regions;
      for (size_t i = 0; i < step.out.size(); ++i) {
        const uint64_t bytes = sequence.slots[step.out[i]].bytes;
        if (bytes == 0) continue;
        if (i >= results[k].size() || static_cast<uint64_t>(results[k][i].byte_size()) != bytes)
          return internal_error("'" + std::string(instr.name) + "' gives another shape than it states");
        COLLET_TRY(allocate(sequence, frame, who[k], step.out[i], nullptr));
        frame.at(who[k], step.out[i])->uses.wait();
        collet_copy_region region{};
        region.from.host = const_cast<uint8_t*>(results[k][i].bytes());  // only read
        region.to.buffer = frame.at(who[k], step.out[i])->handle;
        region.bytes = bytes;
        regions.push_back(region);
      }
      if (!regions.empty())
        COLLET_TRY(
            of_participant(device(who[k], Side::Device).backend().copy({regions.data(), regions.size()}), who[k]));
    }
    return ok_status();
  }

  Client& client_;
  const ExecutableCore& core_;
  const Plan& plan_;
  uint64_t run_id_;
  uint32_t count_;
  const RunOrder& order_;
  Small<Queue*, 4> queues_;  // compute queue of each participant's device; null where it has none
  Small<Point, 4> last_;     // of each participant: the end of its last work on that queue
  bool* overwritten_ = nullptr;
  bool gives_away_ = false;  // the launch at hand has donated arguments
};

}  // namespace

Status run_plan(Client& client, const ExecutableCore& core, uint64_t run_id, const RunMemory& memory,
                const RunOrder& order) {
  return Runner(client, core, run_id, order).run(memory);
}

}  // namespace collet::runtime
