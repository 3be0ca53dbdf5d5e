// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/launch_plan.h>
#include <collet/codegen/step_times.h>
#include <collet/codegen/threads.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sdk/codegen/base/functions.h"
#include "sdk/codegen/routines/routine.h"

namespace collet::codegen {

/// Runs `body`, and tells the listener how long it took.
template <typename Body>
void time_step(const char* name, const StepListener& listener, const Body& body) {
  const auto ns = [](auto duration) {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count());
  };
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  const auto start = std::chrono::steady_clock::now();
  body();
  listener({name, ns(since_1970), ns(std::chrono::steady_clock::now() - start)});
}

/// A launch plan with the addresses of its functions, ready to run on the processor of this process.
class LoadedProgram {
 public:
  /// Returns the address of a function by its name; null if there is none.
  using Find = std::function<void*(const std::string&)>;

  /// Returns null if a function is missing, whose name is stored in `missing`, or if there is no memory for the
  /// constants.
  static std::unique_ptr<LoadedProgram> load(LaunchPlan plan, const Find& find, std::string& missing);
  ~LoadedProgram();
  LoadedProgram(const LoadedProgram&) = delete;
  LoadedProgram& operator=(const LoadedProgram&) = delete;

  const LaunchPlan& plan() const { return plan_; }
  /// Runs the program. `bases` has an address for each slot; the one of the constants is ignored. The first bytes of
  /// the workspace are used for the addresses of all places. May be called by several threads at once if no two calls
  /// share memory. Unless `listener` is null, it hears of each step, and of those of loops at each turn.
  void run(char** bases, Threads& threads, const StepListener* listener = nullptr) const;

 private:
  /// A step of the plan with the addresses that it needs.
  struct Step {
    StepKind kind = StepKind::kKernel;
    uint32_t first_place = 0;
    bool parallel = false;
    uint32_t tail_place = 0;
    KernelFunction kernel = nullptr;
    KernelFunction tail = nullptr;
    int64_t tail_range = 1;
    int64_t range = 1;
    int64_t grain = 1;
    double cost_ns = 0;
    uint64_t bytes = 0;
    uint32_t index_bytes = 0;
    LoopFunction loop = nullptr;
    const Routine* routine = nullptr;
    std::vector<uint64_t> block_bytes;
    std::string name;  ///< StepTime::name
    std::vector<std::vector<Step>> children;
  };
  struct BlockWork {
    const std::vector<Step>& steps;
    char* const* addresses;
  };
  using Steps = std::vector<Step>;
  /// What the steps of a run need.
  struct Run {
    char* const* slots;
    char* const* addresses;
    Threads& threads;
    const StepListener* listener;
  };

  explicit LoadedProgram(LaunchPlan plan) : plan_(std::move(plan)) {}
  Steps resolve(const StepList& steps) const;
  std::string name_of(const codegen::Step& step) const;
  static void run(const Steps& steps, const Run& with);
  static void run(const Step& step, const Run& with);
  /// Runs blocks [begin, end) of a kBlocks, whose BlockWork is `context`.
  static void run_blocks(void* context, int64_t begin, int64_t end, int worker);

  LaunchPlan plan_;
  std::vector<void*> addresses_;  ///< addresses of plan_.functions
  std::vector<std::unique_ptr<Routine>> routines_;
  Steps steps_;
  char* constants_ = nullptr;
};

}  // namespace collet::codegen
