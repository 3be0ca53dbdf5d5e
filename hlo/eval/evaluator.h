// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// The evaluator, which is the reference for all backends: runs a module op by op, as hlo/ops/evaluate.h defines the
/// ops.

namespace collet::hlo {

/// Computes a custom call from its operands.
using CustomCallFunction =
    std::function<Expected<Literal>(const Module&, const Instruction&, std::span<const Literal>)>;

/// Limits of a run; 0 means no limit. If a limit is exceeded, the error names the instruction.
struct EvalLimits {
  double seconds = 0;        ///< maximum time; after that DEADLINE_EXCEEDED
  uint64_t steps = 0;        ///< most executed instructions of one participant; after that RESOURCE_EXHAUSTED
  uint64_t value_bytes = 0;  ///< largest result of one instruction; RESOURCE_EXHAUSTED before it is computed
};

struct EvalOptions {
  /// Simulated devices: replicas * partitions.
  int64_t replicas = 1;
  int64_t partitions = 1;
  /// Initial value of the hidden state of rng.
  uint64_t seed = 42;
  /// Custom calls by target. They take precedence over those that the evaluator knows.
  std::map<std::string, CustomCallFunction, std::less<>> custom_calls;
  /// Host queues; without them infeed and outfeed are errors. They may be called from several threads.
  std::function<Expected<Literal>(const Shape&)> infeed;
  std::function<Status(const Literal&)> outfeed;
  /// Any thread may set this flag to stop the run.
  const std::atomic<bool>* cancel = nullptr;
  EvalLimits limits;
  /// Number of threads that one op may use.
  int threads = 2;
  /// Makes the other choice wherever an op leaves one (see EvalContext::other_choices). Elements in which runs with and
  /// without it differ are not determined by the program.
  bool other_choices = false;
  /// Called with each value of the entry computation, for tests and tracing. May be empty.
  std::function<void(const Instruction&, const Literal&)> on_value;
};

/// Runs a verified module. Several runs may be active at once; the module must not be changed meanwhile.
class Evaluator {
 public:
  explicit Evaluator(const Module& module, EvalOptions options = {});
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  /// Runs the entry computation with the same arguments for every participant, and returns the result of participant 0. Shapes
  /// of arguments may differ from the parameters' in dynamic dimensions only.
  Expected<Literal> run(std::vector<Literal> arguments) const;
  /// Runs the entry computation with separate arguments for each participant, and returns all results. Participants are
  /// numbered replica * partitions + partition.
  Expected<std::vector<Literal>> run_all(std::vector<std::vector<Literal>> arguments) const;
  /// Runs any computation of the module, as one participant.
  Expected<Literal> run_computation(CompId computation, std::vector<Literal> arguments) const;

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
};

/// Returns the leaves of `value`, with tuples flattened.
std::vector<Literal> flatten(const Literal& value);

}  // namespace collet::hlo
