// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/launch/loaded_program.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace collet::codegen {

namespace {

struct Call {
  KernelFunction kernel;
  char* const* buffers;
};

void call_kernel(void* context, int64_t begin, int64_t end, int worker) {
  const Call* call = static_cast<const Call*>(context);
  call->kernel(call->buffers, begin, end, worker);
}

/// Reads the branch that a conditional takes.
size_t read_branch(uint32_t index_bytes, size_t branches, const char* index) {
  int32_t value = *index;
  if (index_bytes != 0) std::memcpy(&value, index, sizeof value);
  return branch_of(branches, index_bytes, value);
}

}  // namespace

std::unique_ptr<LoadedProgram> LoadedProgram::load(LaunchPlan plan, const Find& find, std::string& missing) {
  std::unique_ptr<LoadedProgram> made(new LoadedProgram(std::move(plan)));
  const LaunchPlan& p = made->plan_;
  for (const std::string& name : p.functions) {
    made->addresses_.push_back(find(name));
    if (!made->addresses_.back()) {
      missing = name;
      return nullptr;
    }
  }
  for (const RoutineCall& call : p.routines) {
    void* const compare = call.compare == kNoFunction ? nullptr : made->addresses_[call.compare];
    made->routines_.push_back(make_routine(call, reinterpret_cast<CompareFunction>(compare)));
    if (!made->routines_.back()) {
      missing = "LAPACK";
      return nullptr;
    }
  }
  made->steps_ = made->resolve(p.steps);
  if (!p.constants.empty()) {
    made->constants_ = static_cast<char*>(std::aligned_alloc(64, (p.constants.size() + 63) / 64 * 64));
    if (!made->constants_) return nullptr;
    std::memcpy(made->constants_, p.constants.data(), p.constants.size());
  }
  return made;
}

LoadedProgram::~LoadedProgram() {
  std::free(constants_);
}

std::string LoadedProgram::name_of(const codegen::Step& step) const {
  std::string out;
  const auto add = [&](const std::string& name) { out += (out.empty() ? "" : "+") + name; };
  const auto add_function = [&](FunctionId id) {
    if (id != kNoFunction) add(plan_.functions[id]);
  };
  switch (step.kind) {
    case StepKind::kKernel:
      add_function(step.kernel.function);
      add_function(step.kernel.tail);
      break;
    case StepKind::kRoutine:
      add(collet_op_name(plan_.routines[step.call].opcode));
      break;
    case StepKind::kCopy:
      add("copy");
      break;
    default:
      for (const StepList& child : step.children) {
        for (const codegen::Step& one : child) add(name_of(one));
      }
  }
  return out;
}

LoadedProgram::Steps LoadedProgram::resolve(const StepList& steps) const {
  Steps out;
  out.reserve(steps.size());
  const auto kernel = [&](FunctionId id) {
    return id == kNoFunction ? nullptr : reinterpret_cast<KernelFunction>(addresses_[id]);
  };
  for (const codegen::Step& from : steps) {
    Step& to = out.emplace_back();
    to.kind = from.kind;
    to.name = name_of(from);
    to.first_place = from.first_place;
    to.parallel = from.kernel.parallel;
    to.tail_place = from.kernel.tail_place;
    to.kernel = kernel(from.kernel.function);
    to.tail = kernel(from.kernel.tail);
    to.tail_range = from.kernel.tail_range;
    to.range = from.kernel.range;
    to.grain = from.kernel.grain;
    to.cost_ns = from.kernel.cost_ns;
    to.bytes = from.bytes;
    to.index_bytes = from.index_bytes;
    to.block_bytes = from.block_bytes;
    if (from.loop != kNoFunction) to.loop = reinterpret_cast<LoopFunction>(addresses_[from.loop]);
    if (from.kind == StepKind::kRoutine) to.routine = routines_[from.call].get();
    for (const StepList& child : from.children) to.children.push_back(resolve(child));
  }
  return out;
}

void LoadedProgram::run(const Steps& steps, const Run& with) {
  for (const Step& step : steps) {
    // The listener hears of the steps of loops and branches, or of the one function that they are.
    if (with.listener && (step.children.empty() || step.loop || step.kind == StepKind::kBlocks)) {
      time_step(step.name.c_str(), *with.listener, [&] { run(step, with); });
    } else {
      run(step, with);
    }
  }
}

void LoadedProgram::run(const Step& step, const Run& with) {
  Threads& threads = with.threads;
  char* const* at = with.addresses + step.first_place;
  switch (step.kind) {
    case StepKind::kKernel:
      if (step.parallel && threads.count() > 1 && threads.worthwhile(step.cost_ns)) {
        Call call{step.kernel, at};
        threads.loop(step.range, step.grain, call_kernel, &call);
      } else {
        step.kernel(at, 0, step.range, 0);
      }
      if (step.tail) step.tail(at + step.tail_place, 0, step.tail_range, 0);
      break;
    case StepKind::kRoutine:
      step.routine->run(at, threads);
      break;
    case StepKind::kCopy:
      if (at[0] != at[1]) std::memcpy(at[1], at[0], step.bytes);
      break;
    case StepKind::kWhile:
      if (step.loop) {
        step.loop(with.slots);
        break;
      }
      for (;;) {
        run(step.children[0], with);
        if (!*at[0]) break;
        run(step.children[1], with);
      }
      break;
    case StepKind::kConditional:
      run(step.children[read_branch(step.index_bytes, step.children.size(), at[0])], with);
      break;
    case StepKind::kBlocks: {
      BlockWork work{step.children[0], with.addresses};
      if (step.parallel && threads.count() > 1 && threads.worthwhile(step.cost_ns)) {
        threads.loop(step.range, 1, run_blocks, &work);
      } else {
        run_blocks(&work, 0, step.range, 0);
      }
      break;
    }
    case StepKind::kLibrary:
    case StepKind::kChoice:
    case StepKind::kHostValue:
    case StepKind::kCollective:
      break;  // only launch plans for grids have these steps
  }
}

void LoadedProgram::run_blocks(void* context, int64_t begin, int64_t end, int worker) {
  const BlockWork& work = *static_cast<const BlockWork*>(context);
  char* places[kMostBlockPlaces];
  for (int64_t block = begin; block < end; ++block) {
    for (const Step& step : work.steps) {
      for (size_t i = 0; i < step.block_bytes.size(); ++i) {
        const int64_t shift = (worker - block) * static_cast<int64_t>(step.block_bytes[i]);
        places[i] = work.addresses[step.first_place + i] + shift;
      }
      step.kernel(places, block, block + 1, worker);
    }
  }
}

void LoadedProgram::run(char** bases, Threads& threads, const StepListener* listener) const {
  bases[constant_slot(plan_)] = constants_;
  // The workspace begins with a table of the addresses of all operands of the steps.
  char** addresses = reinterpret_cast<char**>(bases[workspace_slot(plan_)]);
  for (size_t i = 0; i < plan_.places.size(); ++i) addresses[i] = bases[plan_.places[i].slot] + plan_.places[i].offset;
  run(steps_, {bases, addresses, threads, listener});
}

}  // namespace collet::codegen
