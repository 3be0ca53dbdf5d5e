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
/// The reference: runs a module op by op, as hlo/ops/evaluate.h says what each means.

namespace collet::hlo {

/// What a custom call computes from its operands.
using CustomCallFunction =
    std::function<Expected<Literal>(const Module&, const Instruction&, std::span<const Literal>)>;

/// What a run may use before it gives up; the error names the instruction. 0: no limit.
struct EvalLimits {
  double seconds = 0;        ///< then DEADLINE_EXCEEDED
  uint64_t steps = 0;        ///< instructions, each time they run, of one participant; then RESOURCE_EXHAUSTED
  uint64_t value_bytes = 0;  ///< of the result of one instruction; RESOURCE_EXHAUSTED before it is computed
};

struct EvalOptions {
  /// Simulated devices: replicas * partitions.
  int64_t replicas = 1;
  int64_t partitions = 1;
  /// Where the hidden state of rng starts.
  uint64_t seed = 42;
  /// By target; asked before the ones that the evaluator knows itself.
  std::map<std::string, CustomCallFunction, std::less<>> custom_calls;
  /// Host queues; without them infeed and outfeed are errors. They may be called from several threads.
  std::function<Expected<Literal>(const Shape&)> infeed;
  std::function<Status(const Literal&)> outfeed;
  /// Set from any thread to stop.
  const std::atomic<bool>* cancel = nullptr;
  EvalLimits limits;
  /// Threads that one op may use.
  int threads = 2;
  /// Take the other choice wherever the meaning of an op leaves one: what two runs do not agree on is not determined.
  bool other_choices = false;
  /// Asked for each value of the entry computation; for tests and tracing. May be empty.
  std::function<void(const Instruction&, const Literal&)> on_value;
};

/// Runs a verified module. Any number of runs may go on at once; the module must not change meanwhile.
class Evaluator {
 public:
  explicit Evaluator(const Module& module, EvalOptions options = {});
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  /// The entry computation's result; every participant gets the same arguments, participant 0 answers. Arguments whose
  /// shape differs from the parameter's may only do so in dynamic dimensions.
  Expected<Literal> run(std::vector<Literal> arguments) const;
  /// Arguments and result per participant, numbered replica * partitions + partition.
  Expected<std::vector<Literal>> run_all(std::vector<std::vector<Literal>> arguments) const;
  /// Any computation of the module, as one participant.
  Expected<Literal> run_computation(CompId computation, std::vector<Literal> arguments) const;

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
};

/// Leaves of `value`, tuples flattened.
std::vector<Literal> flatten(const Literal& value);

}  // namespace collet::hlo
