// SPDX-License-Identifier: Apache-2.0
#include "hlo/eval/evaluator.h"

#include <chrono>
#include <mutex>
#include <new>
#include <stdexcept>
#include <thread>
#include <unordered_map>

#include "hlo/base/no_memory.h"
#include "hlo/eval/dynamic.h"
#include "hlo/eval/group.h"
#include "hlo/ops/eval/strided.h"
#include "hlo/ops/evaluate.h"

namespace collet::hlo {
namespace {

constexpr int kMaxDepth = 400;  // nesting of computation calls

/// A computation that is prepared for evaluation: for each value, its last use.
struct CompPlan {
  struct Step {
    InstrId id;
    std::vector<uint32_t> operands;  // positions of the operands' values
    std::vector<bool> dies;          // by operand: this is its last use
    bool takes_element = false;      // this get-tuple-element is the last use of its element
    bool live = true;
  };
  std::vector<Step> steps;
  uint32_t root = 0;
};

bool has_effect(const Instruction& instr, const std::vector<bool>& effects) {
  if (has_side_effect(instr.op)) return true;
  if (instr.op == Op::CUSTOM_CALL && instr.as<CustomCallAttrs>().has_side_effect) return true;
  for (CompId called : instr.called)
    if (effects[index_of(called)]) return true;
  return false;
}

}  // namespace

struct Evaluator::Plan {
  const Module& module;
  EvalOptions options;
  std::vector<std::unique_ptr<CompPlan>> computations;  // by CompId; created at the first use
  std::mutex mutex;
  std::vector<bool> effects;  // by CompId

  const CompPlan& of(CompId id) {
    std::lock_guard lock(mutex);
    auto& slot = computations[index_of(id)];
    if (!slot) slot = make(id);
    return *slot;
  }
  std::unique_ptr<CompPlan> make(CompId id) const;
};

namespace {

/// Returns which computations have side effects. Instructions of other computations whose result is not needed are not
/// computed.
std::vector<bool> find_side_effects(const Module& module) {
  std::vector<bool> effects(module.computation_limit(), false);
  for (CompId id : module.computations())  // callees come before callers
    for (InstrId i : module[id].order) effects[index_of(id)] = effects[index_of(id)] || has_effect(module[i], effects);
  return effects;
}

std::vector<bool> find_live(const Module& module, CompId id, const std::vector<bool>& effects,
                            const std::unordered_map<uint32_t, uint32_t>& position) {
  const Computation& computation = module[id];
  std::vector<bool> live(computation.order.size(), false);
  live[position.at(index_of(computation.root))] = true;
  for (size_t i = computation.order.size(); i-- > 0;) {
    const Instruction& instr = module[computation.order[i]];
    if (has_effect(instr, effects)) live[i] = true;
    if (!live[i]) continue;
    for (InstrId o : instr.operands) live[position.at(index_of(o))] = true;
  }
  return live;
}

}  // namespace

std::unique_ptr<CompPlan> Evaluator::Plan::make(CompId id) const {
  auto plan = std::make_unique<CompPlan>();
  const Computation& computation = module[id];
  std::unordered_map<uint32_t, uint32_t> position;
  std::vector<uint32_t> last_use(computation.order.size(), UINT32_MAX);
  std::vector<bool> only_elements(computation.order.size(), true);  // by instruction: all users are get-tuple-element
  for (size_t i = 0; i < computation.order.size(); ++i)
    position[index_of(computation.order[i])] = static_cast<uint32_t>(i);
  const std::vector<bool> live = find_live(module, id, effects, position);
  for (size_t i = 0; i < computation.order.size(); ++i) {
    const Instruction& instr = module[computation.order[i]];
    CompPlan::Step step{computation.order[i], {}, {}, false, live[i]};
    const auto at = static_cast<uint32_t>(i);
    for (size_t k = 0; live[i] && k < instr.operands.size(); ++k) {
      const uint32_t from = position.at(index_of(instr.operands[k]));
      step.operands.push_back(from);
      last_use[from] = at;
      if (instr.op != Op::GET_TUPLE_ELEMENT) only_elements[from] = false;
    }
    plan->steps.push_back(std::move(step));
  }
  plan->root = position.at(index_of(computation.root));
  last_use[plan->root] = UINT32_MAX;
  only_elements[plan->root] = false;
  std::unordered_map<uint64_t, CompPlan::Step*> last_for_element;
  for (auto& step : plan->steps) {
    const auto at = static_cast<uint32_t>(&step - plan->steps.data());
    for (size_t k = 0; k < step.operands.size(); ++k) {
      bool dies = last_use[step.operands[k]] == at;
      for (size_t later = k + 1; later < step.operands.size(); ++later)
        dies = dies && step.operands[later] != step.operands[k];
      step.dies.push_back(dies);
    }
    const Instruction& instr = module[step.id];
    if (step.live && instr.op == Op::GET_TUPLE_ELEMENT && only_elements[step.operands[0]])
      last_for_element[uint64_t{step.operands[0]} << 32 | static_cast<uint32_t>(instr.as<TupleIndexAttrs>().index)] =
          &step;
  }
  for (auto& [key, step] : last_for_element) step->takes_element = true;
  return plan;
}

namespace {

/// The run of one participant.
class Run final : public EvalContext {
 public:
  using PlanOf = std::function<const CompPlan&(CompId)>;
  Run(const Module& module, const EvalOptions& options, PlanOf plan_of, int64_t participant, Group* group)
      : module_(module),
        options_(options),
        plan_of_(std::move(plan_of)),
        participant_(participant),
        group_(group),
        rng_low_(options.seed),
        deadline_(deadline_of(options.limits)) {}

  Expected<Literal> call(CompId computation, std::span<Literal> arguments) override;
  /// Like call(), but an error after the deadline becomes DEADLINE_EXCEEDED.
  Expected<Literal> run(CompId computation, std::span<Literal> arguments) {
    Expected<Literal> result = call(computation, arguments);
    if (!result.ok() && result.status().code() == Code::Cancelled && expired())
      return Status(Code::DeadlineExceeded, "the run took longer than its limit of " +
                                                std::to_string(options_.limits.seconds) +
                                                " s: " + result.status().message());
    return result;
  }

  int64_t replica() const override { return participant_ / options_.partitions; }
  int64_t partition() const override { return participant_ % options_.partitions; }
  int64_t replica_count() const override { return options_.replicas; }
  int64_t partition_count() const override { return options_.partitions; }
  int threads() const override { return group_ ? 1 : options_.threads; }
  bool other_choices() const override { return options_.other_choices; }
  bool cancelled() const override {
    return (options_.cancel && options_.cancel->load(std::memory_order_relaxed)) || expired();
  }

  Expected<std::vector<std::vector<Literal>>> exchange(const Instruction& instr, std::span<const int64_t> group,
                                                       std::span<const Literal> operands) override {
    if (!group_ || group.size() == 1) return EvalContext::exchange(instr, group, operands);
    for (int64_t id : group)
      if (id < 0 || id >= options_.replicas * options_.partitions)
        return failed_precondition("'" + std::string(instr.name) + "' names participant " + std::to_string(id) +
                                   ", which this run does not have");
    return group_->exchange(participant_, instr, group, operands);
  }
  Status send(int64_t channel, int64_t target, Literal value) override {
    if (group_) return group_->send(channel, target, std::move(value));
    mail_[channel].push_back(std::move(value));
    return ok_status();
  }
  Expected<Literal> receive(int64_t channel) override {
    if (group_) return group_->receive(channel, participant_);
    auto& queue = mail_[channel];
    if (queue.empty())
      return failed_precondition("recv on channel " + std::to_string(channel) + ", where nothing was sent");
    Literal value = std::move(queue.front());
    queue.erase(queue.begin());
    return value;
  }
  Expected<Literal> custom_call(const Instruction& instr, std::span<const Literal> operands) override {
    const auto found = options_.custom_calls.find(instr.as<CustomCallAttrs>().target);
    if (found == options_.custom_calls.end()) return EvalContext::custom_call(instr, operands);
    return found->second(module_, instr, operands);
  }
  Expected<Literal> infeed(const Shape& shape) override {
    return options_.infeed ? options_.infeed(shape) : EvalContext::infeed(shape);
  }
  Status outfeed(const Literal& value) override {
    return options_.outfeed ? options_.outfeed(value) : EvalContext::outfeed(value);
  }
  std::pair<uint64_t, uint64_t> next_rng_state(uint64_t delta) override {
    const std::pair state{rng_low_, rng_high_};
    rng_low_ += delta;
    rng_high_ += rng_low_ < delta;
    return state;
  }

 private:
  using Clock = std::chrono::steady_clock;

  static Clock::time_point deadline_of(const EvalLimits& limits) {
    // Limits of more than about a year mean no deadline, because the clock's numbers would overflow.
    if (limits.seconds <= 0 || limits.seconds > 3e7) return Clock::time_point::max();
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits.seconds));
  }
  bool expired() const { return deadline_ != Clock::time_point::max() && Clock::now() >= deadline_; }
  Status check_limits(const Instruction& instr);
  Expected<Literal> step(const CompPlan::Step& step, std::vector<Literal>& values, std::span<Literal> arguments);

  const Module& module_;
  const EvalOptions& options_;
  PlanOf plan_of_;
  int64_t participant_;
  Group* group_;
  int depth_ = 0;
  uint64_t rng_low_, rng_high_ = 0;
  const Clock::time_point deadline_;
  uint64_t steps_ = 0;
  std::map<int64_t, std::vector<Literal>> mail_;
};

Status Run::check_limits(const Instruction& instr) {
  const EvalLimits& limits = options_.limits;
  if (cancelled()) return Status(Code::Cancelled, "cancelled");
  if (limits.steps && ++steps_ > limits.steps)
    return resource_exhausted("the run has more steps than its limit of " + std::to_string(limits.steps));
  const bool makes_nothing = instr.op == Op::PARAMETER || instr.op == Op::TUPLE || instr.op == Op::GET_TUPLE_ELEMENT;
  if (limits.value_bytes && !makes_nothing && static_cast<uint64_t>(instr.shape.byte_size()) > limits.value_bytes)
    return resource_exhausted(instr.shape.to_string() + " needs " + std::to_string(instr.shape.byte_size()) +
                              " bytes; the limit for one value is " + std::to_string(limits.value_bytes));
  return makes_nothing ? ok_status() : eval::check_size(instr.shape);
}

Expected<Literal> Run::step(const CompPlan::Step& step, std::vector<Literal>& values, std::span<Literal> arguments) {
  const Instruction& instr = module_[step.id];
  if (instr.op == Op::PARAMETER) {
    const auto number = static_cast<size_t>(instr.as<ParameterAttrs>().number);
    if (number >= arguments.size()) return invalid_argument("too few arguments");
    return std::move(arguments[number]);
  }
  if (step.takes_element) {
    auto& elements = values[step.operands[0]].mutable_elements();
    const auto index = static_cast<size_t>(instr.as<TupleIndexAttrs>().index);
    if (index >= elements.size()) return invalid_argument("get-tuple-element beyond the tuple");
    Literal element = std::move(elements[index]);
    if (step.dies[0]) values[step.operands[0]] = Literal();
    return element;
  }
  std::vector<Literal> operands;
  operands.reserve(step.operands.size());
  for (size_t k = 0; k < step.operands.size(); ++k) {
    Literal& value = values[step.operands[k]];
    if (step.dies[k])
      operands.push_back(std::move(value));
    else
      operands.push_back(value);
  }
  try {
    return evaluate_with_sizes({module_, instr, operands, *this});
  } catch (const std::bad_alloc& error) {
    return resource_exhausted(memory_message(error));
  }
}

Expected<Literal> Run::call(CompId computation, std::span<Literal> arguments) {
  if (depth_ >= kMaxDepth) return resource_exhausted("computations call each other too deeply");
  ++depth_;
  const CompPlan& plan = plan_of_(computation);
  std::vector<Literal> values(plan.steps.size());
  Status status;
  for (size_t i = 0; i < plan.steps.size() && status.ok(); ++i) {
    if (!plan.steps[i].live) continue;
    const Instruction& instr = module_[plan.steps[i].id];
    Status allowed = check_limits(instr);
    Expected<Literal> value =
        allowed.ok() ? step(plan.steps[i], values, arguments) : Expected<Literal>(std::move(allowed));
    if (!value.ok()) {
      status = value.status().with_prefix("'" + std::string(instr.name) + "': ");
      break;
    }
    if (depth_ == 1 && options_.on_value) options_.on_value(instr, *value);
    values[i] = *std::move(value);
  }
  --depth_;
  if (!status.ok()) return status;
  return std::move(values[plan.root]);
}

/// Runs `work` and converts a failed allocation to an error.
template <typename Work>
Expected<Literal> guarded(const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc& error) {
    return resource_exhausted("there is not enough memory for the values of the module: " + memory_message(error));
  } catch (const std::length_error&) {
    return resource_exhausted("there is not enough memory for the values of the module");
  }
}

Status check_argument(const Literal& value, const Shape& shape, const std::string& place) {
  if (shape.is_tuple()) {
    if (!value.shape().is_tuple() || value.elements().size() != shape.elements().size())
      return invalid_argument(place + " must be a tuple of " + std::to_string(shape.elements().size()));
    for (size_t i = 0; i < shape.elements().size(); ++i)
      COLLET_TRY(check_argument(value.element(i), shape.element(i), place + "." + std::to_string(i)));
    return ok_status();
  }
  if (!value.valid() || !value.shape().compatible(shape))
    return invalid_argument(place + " has shape " + (value.valid() ? value.shape().to_string() : "none") + ", not " +
                            shape.to_string());
  return ok_status();
}

}  // namespace

Evaluator::Evaluator(const Module& module, EvalOptions options)
    : plan_(new Plan{module, std::move(options), {}, {}, {}}) {
  plan_->computations.resize(module.computation_limit());
  plan_->effects = find_side_effects(module);
}

Evaluator::~Evaluator() = default;

Expected<Literal> Evaluator::run(std::vector<Literal> arguments) const {
  const int64_t participants = plan_->options.replicas * plan_->options.partitions;
  if (participants == 1) return run_computation(plan_->module.entry(), std::move(arguments));
  std::vector<std::vector<Literal>> all(static_cast<size_t>(participants), arguments);
  COLLET_ASSIGN(std::vector<Literal> results, run_all(std::move(all)));
  return std::move(results[0]);
}

Expected<Literal> Evaluator::run_computation(CompId computation, std::vector<Literal> arguments) const {
  if (computation == CompId::None) return invalid_argument("the module has no entry computation");
  const auto& parameters = plan_->module[computation].parameters;
  if (arguments.size() != parameters.size())
    return invalid_argument("the computation takes " + std::to_string(parameters.size()) + " arguments, not " +
                            std::to_string(arguments.size()));
  for (size_t i = 0; i < parameters.size(); ++i)
    COLLET_TRY(check_argument(arguments[i], plan_->module[parameters[i]].shape, "argument " + std::to_string(i)));
  Run run(plan_->module, plan_->options, [this](CompId id) -> const CompPlan& { return plan_->of(id); }, 0, nullptr);
  return guarded([&] { return run.run(computation, arguments); });
}

Expected<std::vector<Literal>> Evaluator::run_all(std::vector<std::vector<Literal>> arguments) const {
  const EvalOptions& options = plan_->options;
  const int64_t participants = options.replicas * options.partitions;
  if (static_cast<int64_t>(arguments.size()) != participants)
    return invalid_argument("there are " + std::to_string(participants) + " participants, but arguments for " +
                            std::to_string(arguments.size()));
  if (participants == 1) {
    COLLET_ASSIGN(Literal result, run_computation(plan_->module.entry(), std::move(arguments[0])));
    return std::vector<Literal>{std::move(result)};
  }
  const CompId entry = plan_->module.entry();
  if (entry == CompId::None) return invalid_argument("the module has no entry computation");
  const auto& parameters = plan_->module[entry].parameters;
  for (const auto& list : arguments) {
    if (list.size() != parameters.size()) return invalid_argument("wrong number of arguments");
    for (size_t i = 0; i < parameters.size(); ++i)
      COLLET_TRY(check_argument(list[i], plan_->module[parameters[i]].shape, "argument " + std::to_string(i)));
  }
  Group group(participants);
  std::vector<Literal> results(static_cast<size_t>(participants));
  std::vector<Status> errors(static_cast<size_t>(participants));
  std::vector<std::thread> threads;
  for (int64_t p = 0; p < participants; ++p)
    threads.emplace_back([&, p] {
      const auto at = static_cast<size_t>(p);
      Run run(plan_->module, options, [this](CompId id) -> const CompPlan& { return plan_->of(id); }, p, &group);
      Expected<Literal> result = guarded([&] { return run.run(entry, arguments[at]); });
      if (result.ok())
        results[at] = *std::move(result);
      else
        errors[at] = result.status();
      group.leave();
    });
  for (std::thread& thread : threads) thread.join();
  // A participant that waited for one that failed reports FailedPrecondition, so the first other error is the cause.
  const Status* reason = nullptr;
  for (const Status& error : errors)
    if (!error.ok() &&
        (!reason || (reason->code() == Code::FailedPrecondition && error.code() != Code::FailedPrecondition)))
      reason = &error;
  if (reason) return *reason;
  return results;
}

std::vector<Literal> flatten(const Literal& value) {
  if (!value.shape().is_tuple()) return {value};
  std::vector<Literal> leaves;
  for (const Literal& element : value.elements())
    for (Literal& leaf : flatten(element)) leaves.push_back(std::move(leaf));
  return leaves;
}

}  // namespace collet::hlo
