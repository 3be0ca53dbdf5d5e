// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cstring>

#include "sdk/runtime/executable.h"

namespace collet::runtime {
namespace {

template <typename T, size_t kInline>
using Small = boost::container::small_vector<T, kInline>;

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

class Runner {
 public:
  // Participants from `first` on, `count` of them, run in step.
  Runner(Client& client, const ExecutableCore& core, uint64_t run_id, uint32_t first, uint32_t count)
      : client_(client), core_(core), plan_(core.plan), run_id_(run_id), first_(first), count_(count) {}

  Status run(const RunMemory& memory) {
    const Sequence& entry = plan_.sequences[0];
    const size_t arguments = core_.arguments.size(), results = core_.results.size();
    Frame frame(entry, count_);
    donated_ = memory.donated;
    for (uint32_t p = 0; p < count_; ++p) {
      for (size_t i = 0; i < arguments; ++i)
        frame.at(p, entry.arguments[i]) = std::move(memory.arguments[(first_ + p) * arguments + i]);
      for (size_t i = 0; i < results; ++i) frame.at(p, entry.results[i]) = memory.results[(first_ + p) * results + i];
    }
    return steps(entry, frame, true);
  }

 private:
  Device& device(uint32_t p, Side side) {
    return side == Side::Fallback ? client_.fallback_device() : client_.device(core_.devices[first_ + p]);
  }

  Status steps(const Sequence& sequence, Frame& frame, bool entry) {
    for (const Step& step : sequence.steps) {
      COLLET_TRY(one(sequence, step, frame, entry));
      for (uint32_t slot : step.dead)
        for (uint32_t p = 0; p < count_; ++p) frame.at(p, slot) = {};
    }
    return ok_status();
  }

  Status one(const Sequence& sequence, const Step& step, Frame& frame, bool entry) {
    switch (step.kind) {
      case Step::Kind::Launch:
        return launch(sequence, step, frame, entry);
      case Step::Kind::Copy:
        return copy(sequence, step, frame);
      case Step::Kind::While:
        return while_loop(step, frame);
      case Step::Kind::Conditional:
        return conditional(step, frame);
      case Step::Kind::Call:
        return call(step.sequence[0], step.in, 0, step.out, frame);
      case Step::Kind::Constant: {
        const PlanConstant& constant = plan_.constants[step.unit];
        for (uint32_t p = 0; p < count_; ++p) frame.at(p, step.out[0]) = constant.memory[first_ + p];
        return ok_status();
      }
      case Step::Kind::ReplicaId:
      case Step::Kind::PartitionId:
        return own_number(sequence, step, frame);
    }
    return internal_error("unknown step");
  }

  Status allocate(const Sequence& sequence, Frame& frame, uint32_t p, uint32_t slot) {
    MemoryRef& memory = frame.at(p, slot);
    const Slot& s = sequence.slots[slot];
    if (memory || s.bytes == 0) return ok_status();
    COLLET_ASSIGN(memory, device(p, s.side).default_pool().take(s.bytes));
    return ok_status();
  }

  Status launch(const Sequence& sequence, const Step& step, Frame& frame, bool entry) {
    const Unit& unit = plan_.units[step.unit];
    const size_t arguments = unit.argument_bytes.size(), results = unit.result_bytes.size();
    Small<collet_argument, 24> all(count_ * (arguments + results));
    Small<collet_launch, 2> launches(count_);
    Small<MemoryRef, 2> workspaces(count_);
    for (uint32_t p = 0; p < count_; ++p) {
      const Unit::Local& local = unit.locals[unit.locals.size() == 1 ? 0 : first_ + p];
      collet_argument* a = all.data() + p * (arguments + results);
      collet_argument* r = a + arguments;
      for (size_t i = 0; i < results; ++i) {
        COLLET_TRY(allocate(sequence, frame, p, step.out[i]));
        fill(r[i], frame.at(p, step.out[i]), unit.result_bytes[i]);
      }
      for (size_t i = 0; i < step.in.size(); ++i) {
        fill(a[i], frame.at(p, step.in[i]), unit.argument_bytes[i]);
        // Donated by the caller, and nobody else's: slots of the entry's arguments come first.
        if (entry && step.in[i] < donated_.size() / core_.participants() &&
            donated_[(first_ + p) * core_.arguments.size() + step.in[i]])
          a[i].flags |= COLLET_ARG_DONATED;
      }
      for (size_t i = 0; i < local.constants.size(); ++i) {
        collet_argument& c = a[step.in.size() + i];
        if (unit.absorbed[i])
          c.flags = COLLET_ARG_ABSENT;
        else
          fill(c, local.constants[i], unit.argument_bytes[step.in.size() + i]);
      }
      COLLET_TRY(honour_aliases(unit, frame, p, step, a, r));
      COLLET_TRY(workspace(unit, local, p, launches[p], workspaces[p]));
      collet_launch& l = launches[p];
      l.device = unit.side == Side::Fallback ? 0 : core_.devices[first_ + p];
      l.participant = unit.locals.size() == 1 && unit.side == Side::Device ? first_ + p : 0;
      l.arguments = a;
      l.results = r;
      l.argument_count = static_cast<uint32_t>(arguments);
      l.result_count = static_cast<uint32_t>(results);
    }
    // The fallback, and participants that run apart, get a launch each.
    if (unit.side == Side::Device && core_.together) {
      const CompiledProgram& program = *unit.locals[0].program;
      return program.backend().execute(program.handle(), {launches.data(), launches.size()}, run_id_);
    }
    for (uint32_t p = 0; p < count_; ++p) {
      const CompiledProgram& program = *unit.locals[unit.locals.size() == 1 ? 0 : first_ + p].program;
      COLLET_TRY(program.backend().execute(program.handle(), {&launches[p], 1}, run_id_));
    }
    return ok_status();
  }

  static void fill(collet_argument& a, const MemoryRef& memory, uint64_t bytes) {
    a.buffer = memory ? memory->handle : nullptr;
    a.bytes = bytes;
  }

  // A must-alias whose argument was not given away: the result's memory gets a copy of it, and serves as both.
  Status honour_aliases(const Unit& unit, Frame& frame, uint32_t p, const Step& step, collet_argument* arguments,
                        const collet_argument* results) {
    for (const hlo::ProgramAlias& alias : unit.aliases) {
      collet_argument& a = arguments[alias.argument];
      const collet_argument& r = results[alias.result];
      if (!alias.must || a.buffer == r.buffer || a.bytes == 0) continue;
      Backend& backend = device(p, unit.side).backend();
      COLLET_TRY(copy_memory(backend, frame.at(p, step.in[alias.argument]).get(), backend,
                             frame.at(p, step.out[alias.result]).get(), a.bytes));
      a.buffer = r.buffer;
      a.flags |= COLLET_ARG_DONATED;
    }
    return ok_status();
  }

  Status workspace(const Unit& unit, const Unit::Local& local, uint32_t p, collet_launch& launch, MemoryRef& memory) {
    const uint64_t bytes = local.program->facts().workspace_bytes;
    if (bytes == 0) return ok_status();
    COLLET_ASSIGN(memory, device(p, unit.side).default_pool().take(bytes));
    fill(launch.workspace, memory, bytes);
    return ok_status();
  }

  Status copy(const Sequence& sequence, const Step& step, Frame& frame) {
    const Slot& from = sequence.slots[step.in[0]];
    const Slot& to = sequence.slots[step.out[0]];
    for (uint32_t p = 0; p < count_; ++p) {
      COLLET_TRY(allocate(sequence, frame, p, step.out[0]));
      COLLET_TRY(copy_memory(device(p, from.side).backend(), frame.at(p, step.in[0]).get(),
                             device(p, to.side).backend(), frame.at(p, step.out[0]).get(), to.bytes));
    }
    return ok_status();
  }

  // Runs a sequence on the slots `in` from `at` on, and puts its results in `out`.
  Status call(uint32_t number, const std::vector<uint32_t>& in, size_t at, const std::vector<uint32_t>& out,
              Frame& frame) {
    const Sequence& sequence = plan_.sequences[number];
    Frame inner(sequence, count_);
    for (uint32_t p = 0; p < count_; ++p)
      for (size_t i = 0; i < sequence.arguments.size(); ++i)
        inner.at(p, sequence.arguments[i]) = frame.at(p, in[at + i]);
    COLLET_TRY(steps(sequence, inner, false));
    for (uint32_t p = 0; p < count_; ++p)
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

  // The decision, on which all participants that run in step must agree.
  Status decide(Frame& frame, uint32_t slot, uint32_t bytes, int32_t& out) {
    for (uint32_t p = 0; p < count_; ++p) {
      int32_t mine = 0;
      COLLET_TRY(read(frame.at(p, slot), &mine, bytes));
      if (p > 0 && mine != out)
        return unimplemented("participants take different ways through control flow, which the runtime runs for all");
      out = mine;
    }
    return ok_status();
  }

  Status while_loop(const Step& step, Frame& frame) {
    const Sequence& condition = plan_.sequences[step.sequence[0]];
    const Sequence& body = plan_.sequences[step.sequence[1]];
    const size_t n = step.in.size();
    Small<MemoryRef, 16> state(n * count_);
    for (uint32_t p = 0; p < count_; ++p)
      for (size_t i = 0; i < n; ++i) state[p * n + i] = frame.at(p, step.in[i]);
    while (true) {
      int32_t again = 0;
      {
        Frame inner(condition, count_);
        for (uint32_t p = 0; p < count_; ++p)
          for (size_t i = 0; i < n; ++i) inner.at(p, condition.arguments[i]) = state[p * n + i];
        COLLET_TRY(steps(condition, inner, false));
        COLLET_TRY(decide(inner, condition.results[0], 1, again));
      }
      if (!again) break;
      Frame inner(body, count_);
      for (uint32_t p = 0; p < count_; ++p)
        for (size_t i = 0; i < n; ++i) inner.at(p, body.arguments[i]) = std::move(state[p * n + i]);
      COLLET_TRY(steps(body, inner, false));
      for (uint32_t p = 0; p < count_; ++p)
        for (size_t i = 0; i < n; ++i) state[p * n + i] = inner.at(p, body.results[i]);
    }
    for (uint32_t p = 0; p < count_; ++p)
      for (size_t i = 0; i < n; ++i) frame.at(p, step.out[i]) = std::move(state[p * n + i]);
    return ok_status();
  }

  Status conditional(const Step& step, Frame& frame) {
    int32_t choice = 0;
    COLLET_TRY(decide(frame, step.in[0], step.choice_bytes, choice));
    const auto branches = static_cast<int32_t>(step.sequence.size());
    if (step.choice_bytes == 1)
      choice = choice ? 0 : 1;  // the first branch is that of true
    else if (choice < 0 || choice >= branches)
      choice = branches - 1;
    size_t at = 1;
    for (int32_t b = 0; b < choice; ++b) at += plan_.sequences[step.sequence[static_cast<size_t>(b)]].arguments.size();
    return call(step.sequence[static_cast<size_t>(choice)], step.in, at, step.out, frame);
  }

  Status own_number(const Sequence& sequence, const Step& step, Frame& frame) {
    for (uint32_t p = 0; p < count_; ++p) {
      const uint32_t number = first_ + p;
      uint32_t value = step.kind == Step::Kind::ReplicaId ? number / core_.partitions : number % core_.partitions;
      COLLET_TRY(allocate(sequence, frame, p, step.out[0]));
      collet_copy_region region{};
      region.from.host = &value;
      region.to.buffer = frame.at(p, step.out[0])->handle;
      region.bytes = sizeof value;
      COLLET_TRY(device(p, Side::Device).backend().copy({&region, 1}));
    }
    return ok_status();
  }

  Client& client_;
  const ExecutableCore& core_;
  const Plan& plan_;
  uint64_t run_id_;
  uint32_t first_, count_;
  std::span<const uint8_t> donated_;
};

}  // namespace

Status run_plan(Client& client, const ExecutableCore& core, uint64_t run_id, const RunMemory& memory) {
  if (core.together) return Runner(client, core, run_id, 0, core.participants()).run(memory);
  for (uint32_t p = 0; p < core.participants(); ++p) COLLET_TRY(Runner(client, core, run_id, p, 1).run(memory));
  return ok_status();
}

}  // namespace collet::runtime
