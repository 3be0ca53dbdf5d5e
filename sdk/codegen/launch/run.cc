// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "sdk/codegen/launch/launch_plan.h"
#include "sdk/codegen/launch/threads.h"

namespace collet::codegen {
namespace {

struct Call {
  KernelFunction kernel;
  char* const* buffers;
};

void call_kernel(void* context, int64_t begin, int64_t end, int) {
  const Call* call = static_cast<const Call*>(context);
  call->kernel(call->buffers, begin, end);
}

size_t branch_of(const Step& step, const char* index) {
  const size_t last = step.children.size() - 1;
  if (step.index_bytes == 0) return *index ? 0 : last;
  int32_t i = 0;
  std::memcpy(&i, index, sizeof i);
  return i < 0 || static_cast<size_t>(i) > last ? last : static_cast<size_t>(i);
}

void run(const StepList& steps, char* const* addresses, Threads& threads) {
  for (const Step& step : steps) {
    char* const* at = addresses + step.first_place;
    switch (step.kind) {
      case StepKind::kKernel:
        if (step.parallel && threads.count() > 1 && threads.worthwhile(step.cost_ns)) {
          Call call{step.kernel, at};
          threads.loop(step.range, step.grain, call_kernel, &call);
        } else {
          step.kernel(at, 0, step.range);
        }
        if (step.tail) step.tail(at + step.tail_place, 0, step.tail_range);
        break;
      case StepKind::kLibrary:
        step.library->run(at, threads);
        break;
      case StepKind::kCopy:
        if (at[0] != at[1]) std::memcpy(at[1], at[0], step.bytes);
        break;
      case StepKind::kWhile:
        for (;;) {
          run(step.children[0], addresses, threads);
          if (!*at[0]) break;
          run(step.children[1], addresses, threads);
        }
        break;
      case StepKind::kConditional:
        run(step.children[branch_of(step, at[0])], addresses, threads);
        break;
    }
  }
}

}  // namespace

void run(const LaunchPlan& plan, char* const* bases, Threads& threads) {
  char** addresses = reinterpret_cast<char**>(bases[workspace_slot(plan)]);
  for (size_t i = 0; i < plan.places.size(); ++i) addresses[i] = bases[plan.places[i].slot] + plan.places[i].offset;
  run(plan.steps, addresses, threads);
}

}  // namespace collet::codegen
