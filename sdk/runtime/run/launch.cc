// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/run/launch.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "sdk/runtime/memory/copy.h"
#include "sdk/runtime/run/residency.h"
#include "sdk/runtime/trace.h"

namespace collet::runtime {
namespace {

void fill(collet_argument& a, const MemoryRef& memory, uint64_t bytes) {
  a.buffer = memory ? memory->handle : nullptr;
  a.bytes = bytes;
}

// Fills an argument of a program with layouts.
void fill(collet_argument& a, const MemoryRef& memory, uint64_t bytes, const Layout* layout) {
  fill(a, memory, layout ? layout->bytes() : bytes);
  a.layout = layout ? 1 : 0;
}

// The launches of one step.
class Launcher {
 public:
  Launcher(RunState& run, const Step& step, Frame& frame, Who who)
      : run_(run),
        step_(step),
        unit_(run.plan.units[step.unit]),
        frame_(frame),
        who_(who),
        arguments_(unit_.argument_bytes.size()),
        results_(unit_.result_bytes.size()),
        all_(who.size() * (arguments_ + results_)),
        launches_(who.size()) {
    if (run.has_queues()) waits_.resize(who.size());
  }

  Status launch() {
    for (size_t k = 0; k < who_.size(); ++k) COLLET_TRY(prepare(k));
    Span span(COLLET_SPAN_LAUNCH, unit_.label);
    span.facts().run_id = run_.run_id;
    span.facts().device = launches_[0].device;
    span.facts().on_fallback = unit_.side == Side::Fallback;
    // The fallback, and participants that are launched separately, get one launch each.
    const bool together = unit_.side == Side::Device && run_.core.together;
    const size_t width = together ? who_.size() : 1;
    for (size_t k = 0; k < who_.size(); k += width) {
      Status status = run_.queue(who_[k], unit_.side) ? put(k, width) : execute(k, width);
      if (!status.ok()) return together ? status : run_.of_participant(std::move(status), who_[k]);
    }
    return ok_status();
  }

 private:
  const CompiledCluster::Local& local(size_t k) const { return unit_.locals[unit_.locals.size() == 1 ? 0 : who_[k]]; }

  // The number of a participant's device, in the fallback or in the backend.
  uint32_t device_of(uint32_t p) const { return unit_.side == Side::Fallback ? 0 : run_.core.devices[p]; }

  // Prepares the launch of participant number `k`.
  Status prepare(size_t k) {
    const uint32_t p = who_[k];
    const CompiledCluster::Local& local = this->local(k);
    const CompiledFacts& facts = local.program->facts();
    collet_argument* a = all_.data() + k * (arguments_ + results_);
    collet_argument* r = a + arguments_;
    // In most programs all arguments are dense buffers.
    const bool plain = unit_.by_value.empty() && facts.argument_layouts.empty() && facts.wants_prepared.empty();
    for (size_t i = 0; i < step_.in.size(); ++i) {
      const MemoryRef& memory = frame_.at(p, step_.in[i]);
      if (plain && (!memory || !memory->layout))
        fill(a[i], memory, unit_.argument_bytes[i]);
      else
        COLLET_TRY(argument(k, i, a[i]));
    }
    const std::vector<MemoryRef>& constants = local.constants_of(p);
    for (size_t i = 0; i < constants.size(); ++i) {
      collet_argument& c = a[step_.in.size() + i];
      if (local.absorbed[i])
        c.flags = COLLET_ARG_ABSENT;
      else
        fill(c, constants[i], unit_.argument_bytes[step_.in.size() + i]);
    }
    for (size_t i = 0; i < results_; ++i) {
      const Layout* const layout = facts.result_layout(i);
      const uint64_t bytes = layout ? layout->bytes() : unit_.result_bytes[i];
      if (!take_over(p, i, layout, a))
        COLLET_TRY(run_.allocate(frame_, p, step_.out[i], unit_.side, bytes, run_.queue(p, unit_.side)));
      fill(r[i], frame_.at(p, step_.out[i]), unit_.result_bytes[i], layout);
    }
    COLLET_TRY(honour_aliases(p, a, r));
    collet_launch& l = launches_[k];
    if (const uint64_t bytes = facts.workspace_bytes) {
      workspaces_.resize(who_.size());
      COLLET_ASSIGN(workspaces_[k], run_.device(p, unit_.side).default_pool().take(bytes, run_.queue(p, unit_.side)));
      fill(l.workspace, workspaces_[k], bytes);
    }
    l.device = device_of(p);
    l.participant = run_.core.together && unit_.side == Side::Device ? p : 0;
    l.arguments = a;
    l.results = r;
    l.argument_count = static_cast<uint32_t>(arguments_);
    l.result_count = static_cast<uint32_t>(results_);
    if (const Queue* q = run_.queue(p, unit_.side)) {
      COLLET_TRY(run_.of_participant(add_waits(run_.before_next(p), *q, waits_[k]), p));
      for (const uint32_t slot : step_.out)
        if (const MemoryRef& memory = frame_.at(p, slot)) memory->uses.add_waits(*q, waits_[k]);
      if (k < workspaces_.size() && workspaces_[k]) workspaces_[k]->uses.add_waits(*q, waits_[k]);
    }
    return ok_status();
  }

  Status argument(size_t k, size_t i, collet_argument& out) {
    const uint32_t p = who_[k];
    MemoryRef& memory = frame_.at(p, step_.in[i]);
    if (!memory) {
      fill(out, memory, unit_.argument_bytes[i]);
      return ok_status();
    }
    if (!unit_.by_value.empty() && unit_.by_value[i] && memory->is_known) {
      out.bytes = unit_.argument_bytes[i];
      out.flags = COLLET_ARG_IMMEDIATE;
      std::memcpy(out.immediate, memory->value, out.bytes);
      return ok_status();
    }
    const CompiledFacts& facts = local(k).program->facts();
    const Layout* const layout = facts.argument_layout(i);
    const uint64_t contents = memory->contents;  // converted memory has the same contents
    if (!facts.wants_prepared.empty() && facts.wants_prepared[i] && !is_aliased(i)) {
      COLLET_ASSIGN(const bool found, prepared(k, i, contents, out));
      if (found) return ok_status();
    }
    COLLET_TRY(run_.change_layout(p, unit_.side, memory, layout));
    if (memory->contents != contents) memory->contents = contents;
    fill(out, memory, unit_.argument_bytes[i], layout);
    return ok_status();
  }

  bool is_aliased(size_t argument) const {
    const auto names = [&](const hlo::ProgramAlias& alias) { return alias.argument == argument; };
    return std::any_of(unit_.aliases.begin(), unit_.aliases.end(), names) ||
           std::any_of(unit_.updates.begin(), unit_.updates.end(), names);
  }

  // Uses the memory of an argument for a result that updates it, if nothing else holds that memory.
  bool take_over(uint32_t p, size_t result, const Layout* layout, collet_argument* arguments) {
    for (const hlo::ProgramAlias& update : unit_.updates) {
      if (update.result != result) continue;
      MemoryRef& to = frame_.at(p, step_.out[result]);
      const MemoryRef& from = frame_.at(p, step_.in[update.argument]);
      collet_argument& a = arguments[update.argument];
      if (to || from.count() != 1 || from->owner || from->layout != layout || (a.flags & COLLET_ARG_IMMEDIATE) != 0)
        return false;
      to = from;
      a.flags |= COLLET_ARG_DONATED;
      return true;
    }
    return false;
  }

  // Returns whether the argument is passed in the form that the executable has prepared; prepares it if it is time to
  // do so.
  Expected<bool> prepared(size_t k, size_t i, uint64_t contents, collet_argument& out) {
    const uint32_t p = who_[k];
    Residency& residency = *local(k).prepared;
    bool now = false;
    std::shared_ptr<PreparedArgument> found = residency.find(p, static_cast<uint32_t>(i), contents, now);
    if (now) {
      const CompiledProgram& program = *local(k).program;
      const Layout* const layout = program.facts().argument_layout(i);
      MemoryRef& memory = frame_.at(p, step_.in[i]);
      COLLET_TRY(run_.change_layout(p, unit_.side, memory, layout));
      if (memory->contents != contents) memory->contents = contents;
      COLLET_TRY(run_.settle(p));
      collet_argument value{};
      fill(value, memory, unit_.argument_bytes[i], layout);
      auto made = program.backend().prepare(program.handle(), device_of(p), static_cast<uint32_t>(i), value);
      if (!made.ok() && made.status().code() != Code::ResourceExhausted) return made.status();
      if (made.ok()) found = std::make_shared<PreparedArgument>(run_.device(p, unit_.side).shared_backend(), *made);
      residency.keep(p, static_cast<uint32_t>(i), contents, found);
    }
    if (!found) return false;
    out.buffer = found->buffer();
    out.bytes = unit_.argument_bytes[i];
    out.flags = COLLET_ARG_PREPARED;
    prepared_.push_back({k, std::move(found)});
    return true;
  }

  // Only arguments may be overwritten that the plan found are not read later: those of aliases whose argument was
  // donated. For a must-alias whose argument was not donated, the result's memory gets a copy of the argument, and is
  // passed as both.
  Status honour_aliases(uint32_t p, collet_argument* arguments, const collet_argument* results) {
    for (const hlo::ProgramAlias& alias : unit_.aliases) {
      collet_argument& a = arguments[alias.argument];
      const collet_argument& r = results[alias.result];
      if (a.bytes == 0) continue;
      if (a.buffer == r.buffer) {
        gives_away_ = true;
      } else {
        if (!alias.must) continue;
        COLLET_TRY(run_.copy_within(p, unit_.side, frame_.at(p, step_.in[alias.argument]).get(),
                                    frame_.at(p, step_.out[alias.result]).get(), a.bytes));
        a.buffer = r.buffer;
      }
      a.flags |= COLLET_ARG_DONATED;
    }
    return ok_status();
  }

  [[gnu::always_inline]] inline Status execute(size_t first, size_t count) {
    const CompiledProgram& program = *local(first).program;
    Status status = program.backend().execute(program.handle(), {launches_.data() + first, count}, run_.run_id);
    const bool began = status.ok() || status.code() == Code::DataLoss;
    if (began && gives_away_ && run_.overwritten) *run_.overwritten = true;
    COLLET_TRY(std::move(status));
    for (size_t k = first; k < first + count; ++k) note_contents(k);
    return ok_status();
  }

  // Puts launches on the compute queues of their participants.
  Status put(size_t first, size_t count) {
    Small<Queue*, 4> queues;
    for (size_t k = first; k < first + count; ++k) queues.push_back(run_.queues[who_[k]]);
    Submission submission({queues.data(), queues.size()});
    for (size_t k = 0; k < count; ++k) {
      submission.wait_for(k, std::move(waits_[first + k]));
      launches_[first + k].sync = submission.sync(k);
    }
    COLLET_TRY(execute(first, count));
    for (size_t k = 0; k < count; ++k) {
      run_.last[who_[first + k]] = submission.commit(k);
      note_uses(first + k);
    }
    return ok_status();
  }

  // Marks the contents of results as new, with the layout that the program gives them.
  void note_contents(size_t k) {
    const CompiledFacts& facts = local(k).program->facts();
    for (size_t i = 0; i < results_; ++i) {
      const MemoryRef& memory = frame_.at(who_[k], step_.out[i]);
      if (!memory) continue;
      memory->layout = facts.result_layout(i);
      memory->is_known = false;
      memory->pool->change_contents(*memory.get());
    }
  }

  // Records that the launch uses this memory until its point.
  void note_uses(size_t k) {
    const uint32_t p = who_[k];
    const Point point = run_.last[p];
    const auto note = [&](const MemoryRef& memory) {
      if (memory) memory->uses.add(point);
    };
    for (const uint32_t slot : step_.in) note(frame_.at(p, slot));
    for (const uint32_t slot : step_.out) note(frame_.at(p, slot));
    for (const MemoryRef& memory : local(k).constants_of(who_[k])) note(memory);
    if (k < workspaces_.size()) note(workspaces_[k]);
    for (const auto& [launch, argument] : prepared_)
      if (launch == k) argument->uses.add(point);
  }

  RunState& run_;
  const Step& step_;
  const CompiledCluster& unit_;
  Frame& frame_;
  Who who_;
  const size_t arguments_, results_;
  Small<collet_argument, 24> all_;  // arguments, then results, of one launch after another
  Small<collet_launch, 2> launches_;
  Small<MemoryRef, 2> workspaces_;  // empty if no launch needs workspace
  Small<Points, 1> waits_;          // points to wait for; empty without queues
  // Number of a launch and a prepared argument that it uses.
  Small<std::pair<size_t, std::shared_ptr<PreparedArgument>>, 1> prepared_;
  bool gives_away_ = false;  // true if it has donated arguments
};

}  // namespace

Status launch(RunState& run, const Step& step, Frame& frame, Who who) {
  return Launcher(run, step, frame, who).launch();
}

}  // namespace collet::runtime
