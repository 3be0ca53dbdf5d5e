// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/host_routines.h>
#include <collet/codegen/threads.h>
#include <collet/program.h>

#include <mutex>
#include <vector>

#include "sdk/codegen/routines/routine.h"

namespace collet::codegen {

/// Begins as `struct routines` of the text does.
struct HostRoutines::State {
  using Run = void (*)(const State* state, int64_t number, char* const* places, CompareFunction compare);
  Run run = nullptr;
  const LaunchPlan* plan = nullptr;
  Threads threads{Target()};
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<Routine>> routines;  ///< made at their first call, which brings the comparator

  static void call(const State* state, int64_t number, char* const* places, CompareFunction compare) {
    const auto i = static_cast<size_t>(number);
    const Routine* routine = nullptr;
    {
      const std::lock_guard<std::mutex> lock(state->mutex);
      if (!state->routines[i]) state->routines[i] = make_routine(state->plan->routines[i], compare);
      routine = state->routines[i].get();
    }
    routine->run(places, const_cast<Threads&>(state->threads));
  }
};

HostRoutines::HostRoutines() : state_(std::make_unique<State>()) {}
HostRoutines::~HostRoutines() = default;

Status HostRoutines::create(const LaunchPlan& plan, std::unique_ptr<HostRoutines>& out) {
  out.reset(new HostRoutines());
  out->state_->run = State::call;
  out->state_->plan = &plan;
  out->state_->routines.resize(plan.routines.size());
  for (const RoutineCall& call : plan.routines) {
    if (!make_routine(call))
      return {COLLET_UNIMPLEMENTED, std::string("this process has no routine for ") + collet_op_name(call.opcode)};
  }
  return {};
}

const void* HostRoutines::table() const {
  return state_.get();
}

}  // namespace collet::codegen
