// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/program_case.h"

#include <collet/backend.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

#include "conformance/cases/op_case.h"
#include "conformance/runner/judge.h"
#include "conformance/runner/offered_program.h"
#include "conformance/runner/sequence.h"
#include "hlo/eval/evaluator.h"
#include "hlo/passes/rewriter.h"
#include "hlo/testing/corpus.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"

namespace collet::conformance {
namespace {

using hlo::CompId;
using hlo::InstrId;
using hlo::Instruction;
using hlo::Literal;
using hlo::Module;
using Clock = std::chrono::steady_clock;
using Literals = std::vector<Literal>;

// Results of a right device may differ from the evaluator's in f64 by so many units in the last place of the largest
// magnitude, or by kEvaluatorNoise times what the evaluator's own results in the program's types do.
constexpr double kLeastUlps = 256;
// The share of integers that may differ where rounding errors may decide them.
constexpr double kMostIntegers = 0.02;
// An op that a program has more often runs so many times.
constexpr int kMostOfOneOp = 4;
constexpr size_t kMostWrong = 16;                  // ops that are listed
constexpr int kIterations = 2;                     // of each loop
constexpr int64_t kMostBytes = int64_t{4} << 30;   // of a value of the evaluator's run
constexpr double kMostElements = 2e8;              // of the arguments and results of a program
constexpr double kMostEvaluation = 20;             // seconds of one run of the evaluator
constexpr int64_t kMostTapped = int64_t{1} << 30;  // bytes of values that one run returns
// Units in the last place by which a right device's value may be wrong before it is rounded to an integer.
constexpr double kNudge = 8;
// Such a value decides between two integers in few elements; the elements of two devices differ in about so many times as many.
constexpr double kNudgeNoise = 4;
// A program runs this often, as far as the time allows, so that a run that depends on those before it is found.
constexpr int kRuns = 40;
constexpr double kMostRunning = 2;  // seconds of these runs
// Seconds in which the ops are looked for after which another one is wrong, and those that an op may take for that in a process of its
// own.
constexpr double kSecondsForSequence = 10, kSecondsOfOp = 10;
constexpr std::string_view kNextStep = "the cases of --filter 'contract/execute/*' say more";

// Returns the largest distance of elements; infinite where only one of two is finite. `different`: the number of
// elements that are not equal.
double distance(const Literal& a, const Literal& b, int64_t& different) {
  double most = 0;
  different = 0;
  for (int64_t i = 0; i < a.element_count(); ++i) {
    for (const int part : {0, 1}) {
      const double x = part ? a.imaginary(i) : a.as_double(i), y = part ? b.imaginary(i) : b.as_double(i);
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      ++different;
      const double d = std::fabs(x - y);
      most = std::max(most, std::isfinite(d) ? d : std::numeric_limits<double>::infinity());
    }
  }
  return most;
}

// The evaluator's results of one value: in the program's types, with the other choice wherever an op leaves one, and
// with floats as f64. `nudged`: with floats that are a little larger, and a little smaller, before they are rounded to integers; may
// be empty.
struct Expectation {
  Literal plain, other, wide;
  std::vector<Literal> nudged = {};
  bool may_round = true;  // false for integers in whose computation there is no float
};

struct Growth {
  bool agrees = true;
  double error = 0, allowed = 0;
};

Growth compare(const Expectation& expected, const Literal& got) {
  Growth out;
  const Type type = expected.plain.type();
  int64_t by_rounding = 0, by_choice = 0, different = 0;
  const double rounding = distance(expected.plain, expected.wide, by_rounding);
  const double choice = distance(expected.plain, expected.other, by_choice);
  double nudge = 0;
  int64_t by_nudge = 0;
  for (const Literal& nudged : expected.nudged) {
    int64_t count = 0;
    nudge = std::max(nudge, distance(expected.plain, nudged, count));
    by_nudge = std::max(by_nudge, count);
  }
  if (hlo::is_float(type) || hlo::is_complex(type)) {
    out.error = distance(got, expected.wide, different);
    out.allowed = std::max(
        {kEvaluatorNoise * std::max(rounding, choice), kNudgeNoise * nudge,
         kLeastUlps * ulp_at(hlo::is_complex(type) ? hlo::real_type(type) : type, largest_magnitude(expected.plain))});
    out.agrees = out.error <= out.allowed;
    return out;
  }
  distance(got, expected.plain, different);
  const auto count = static_cast<double>(std::max<int64_t>(got.element_count(), 1));
  out.error = static_cast<double>(different) / count;
  out.allowed = std::max({expected.may_round ? kMostIntegers : 0.0,
                          kEvaluatorNoise * static_cast<double>(std::max(by_rounding, by_choice)) / count,
                          kNudgeNoise * static_cast<double>(by_nudge) / count});
  out.agrees = different == 0 || out.error <= out.allowed;
  return out;
}

// True for a type whose values are rounded.
bool is_rounded(const hlo::Shape& shape) {
  if (shape.is_tuple())
    return std::any_of(shape.elements().begin(), shape.elements().end(),
                       [](const hlo::Shape& s) { return is_rounded(s); });
  return shape.is_array() && (hlo::is_float(shape.type()) || hlo::is_complex(shape.type()));
}

// Returns the instructions of the entry on whose values the rounding of floats may have an influence.
std::set<InstrId> by_floats(const Module& module) {
  std::set<CompId> with_floats;
  const auto computes_floats = [&](const Instruction& instr) {
    return is_rounded(instr.shape) || std::any_of(instr.called.begin(), instr.called.end(),
                                                  [&](CompId called) { return with_floats.contains(called); });
  };
  for (const CompId comp : hlo::post_order(module)) {
    const auto& order = module[comp].order;
    if (std::any_of(order.begin(), order.end(), [&](InstrId id) { return computes_floats(module[id]); }))
      with_floats.insert(comp);
  }
  std::set<InstrId> out;
  for (const InstrId id : module.entry_computation().order) {
    const Instruction& instr = module[id];
    const auto takes_part = [&](InstrId operand) {
      if (instr.op != Op::GET_TUPLE_ELEMENT || module[operand].op != Op::TUPLE) return out.contains(operand);
      const auto index = static_cast<size_t>(instr.as<hlo::TupleIndexAttrs>().index);
      return out.contains(module[operand].operand(index));
    };
    if (computes_floats(instr) || std::any_of(instr.operands.begin(), instr.operands.end(), takes_part)) out.insert(id);
  }
  return out;
}

std::string name_of(const Instruction& instr) {
  const std::string_view origin =
      instr.extras && instr.extras->metadata ? instr.extras->metadata->op_name : std::string_view();
  return fmt::format("{} '{}'{}", hlo::op_info(instr.op).text, instr.name,
                     origin.empty() ? "" : fmt::format(" ({})", origin));
}

bool rounds_to_integers(Op op) {
  return op == Op::ROUND_NEAREST_EVEN || op == Op::ROUND_NEAREST_AFZ || op == Op::FLOOR || op == Op::CEIL;
}

// Returns a copy of the program with other operands: operands(builder, instruction) returns those of an instruction, or none if they stay.
// Null if all stay.
template <typename Operands>
Expected<std::unique_ptr<Module>> with_operands(const Module& module, const Operands& operands) {
  std::unique_ptr<Module> out = module.clone();
  bool any = false;
  for (const CompId comp : out->computations()) {
    hlo::Rewriter rewriter(*out, comp);
    for (const InstrId id : rewriter.instructions()) {
      rewriter.enter(id);
      const std::vector<InstrId> now = operands(rewriter.builder(), (*out)[id]);
      rewriter.keep(id);
      std::copy(now.begin(), now.end(), (*out)[id].operands.begin());
      any |= !now.empty();
    }
    (void)rewriter.finish();
    COLLET_TRY(rewriter.builder().status());
  }
  return any ? std::move(out) : nullptr;
}

// Returns the program with each operand of a rounding to integers multiplied by 1 + `times` units in the last place: as far as the
// errors of a right device may move it. Null if there is no rounding.
Expected<std::unique_ptr<Module>> nudged_before_rounding(const Module& module, double times) {
  return with_operands(module, [&](hlo::Builder& b, const Instruction& instr) -> std::vector<InstrId> {
    if (!rounds_to_integers(instr.op) || !instr.shape.is_array()) return {};
    const InstrId x = instr.operand(0);
    return {b.mul(x, b.like(x, 1 + times * ulp_at(instr.shape.type(), 1)))};
  });
}

// Returns the program with the operands of products rounded as their algorithms do it. Null if none does.
Expected<std::unique_ptr<Module>> with_rounded_products(const Module& module) {
  return with_operands(module, [](hlo::Builder& b, const Instruction& instr) -> std::vector<InstrId> {
    const double error = product_error(algorithm_of(instr)).operands / 2;
    if (error == 0) return {};
    std::vector<InstrId> out;
    for (const InstrId x : {instr.operand(0), instr.operand(1)}) {
      const double unit = unit_roundoff(b.type(x));
      out.push_back(x);
      if (unit >= error) continue;
      // Veltkamp's splitting: the first part has the leading bits.
      const InstrId much = b.mul(x, b.like(x, std::exp2(std::ceil(std::log2(error / unit))) + 1));
      out.back() = b.sub(much, b.sub(much, x));
    }
    return out;
  });
}

// Evaluates a module in three ways. Values of the entry are given to `each` where it is not empty.
class Evaluations {
 public:
  static Expected<Evaluations> make(const Module& module) {
    Evaluations out;
    hlo::ParseOptions options;
    options.floats_as_f64 = true;
    COLLET_ASSIGN(out.wide_, hlo::parse_module(hlo::print_module(module), "wide", options));
    return out;
  }

  using Each = std::function<void(const Instruction&, const Literal&)>;
  static Expected<Literals> run(const Module& module, const Literals& inputs, bool other, const Each& each) {
    hlo::EvalOptions options;
    options.other_choices = other;
    options.on_value = each;
    options.limits.value_bytes = kMostBytes;
    options.limits.seconds = kMostEvaluation;
    COLLET_ASSIGN(const Literal result, hlo::Evaluator(module, options).run(inputs));
    return hlo::flatten(result);
  }
  Expected<Literals> run_wide(const Literals& inputs, const Each& each) const {
    Literals converted;
    const auto& parameters = wide_->entry_computation().parameters;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const hlo::Shape& shape = (*wide_)[parameters[i]].shape;
      converted.push_back(
          shape.is_array() && shape.type() != inputs[i].type() ? hlo::testing::converted(inputs[i], shape) : inputs[i]);
    }
    return run(*wide_, converted, false, each);
  }

 private:
  std::unique_ptr<Module> wide_;
};

// True if the meaning of a sort or a factorization leaves more than one result with these values: equal elements in either order, a
// matrix that is not positive definite.
bool is_open(const Case& one, const Literals& inputs) {
  if (one.op != Op::SORT && one.op != Op::CHOLESKY) return false;
  const auto module = hlo::parse_module(one.text, "op");
  if (!module.ok()) return false;
  const Expected<Literals> plain = Evaluations::run(**module, inputs, false, {}),
                           other = Evaluations::run(**module, inputs, true, {});
  if (!plain.ok() || !other.ok()) return false;
  for (size_t i = 0; i < plain->size(); ++i) {
    int64_t different = 0;
    distance((*plain)[i], (*other)[i], different);
    if (different > 0) return true;
  }
  return false;
}

// True if a group that rounds floats to integers gives integers which differ from the expected ones by one, in few elements: the
// errors of the floats decide on which side of a half they are.
bool is_by_rounding(const Module& module, const Instruction& instr, const Answer& answer, const Literals& got) {
  if (instr.op != Op::FUSION && instr.op != Op::CALL) return false;
  const auto& order = module[instr.called[0]].order;
  const bool rounds =
      std::any_of(order.begin(), order.end(), [&](InstrId id) { return rounds_to_integers(module[id].op); });
  if (!rounds || got.size() != answer.outputs.size()) return false;
  for (size_t i = 0; i < got.size(); ++i) {
    const Literal& expected = answer.outputs[i].value;
    if (!got[i].shape().is_array() || !hlo::is_integer(got[i].type())) return false;
    int64_t different = 0;
    if (distance(expected, got[i], different) > 1) return false;
    if (static_cast<double>(different) > kMostIntegers * static_cast<double>(got[i].element_count())) return false;
  }
  return true;
}

// Runs single ops on the device with operands of the evaluator's run.
class OpByOp {
 public:
  OpByOp(const Session& session, Clock::time_point end, const std::vector<std::string>& worker)
      : session_(session),
        end_(end),
        worker_(worker),
        flushes_((session.traits() & COLLET_TRAIT_FLUSHES_DENORMALS) != 0) {}

  // Checks the ops of a computation, and those of the computations that it calls.
  Status check(const Module& module, CompId comp, const Literals& arguments) {
    const std::unique_ptr<Module> alone = module.clone();
    alone->set_entry(comp);
    alone->header() = {};
    std::unordered_map<std::string_view, Literal> values;  // by the name of the instruction
    Status status;
    const auto each = [&](const Instruction& value, const Literal& result) {
      if (status.ok() && !late()) status = check_op(*alone, comp, value, values);
      values[value.name] = result;
    };
    COLLET_TRY(Evaluations::run(*alone, arguments, false, each).status());
    return status;
  }

  bool late() const { return Clock::now() >= end_; }
  size_t ran() const { return ran_; }
  size_t skipped() const { return skipped_; }
  const std::vector<std::string>& wrong() const { return wrong_; }

 private:
  Status check_op(const Module& module, CompId comp, const Instruction& instr,
                  const std::unordered_map<std::string_view, Literal>& values) {
    const auto value_of = [&](InstrId id) -> const Literal* {
      const auto found = values.find(module[id].name);
      return found == values.end() ? nullptr : &found->second;
    };
    Literals operands;
    for (const InstrId id : instr.operands) {
      const Literal* value = value_of(id);
      if (!value) return ok_status();
      operands.push_back(*value);
    }
    if (hlo::is_flow(instr)) return check_flow(module, instr, std::move(operands));
    const auto& order = module[comp].order;
    const auto at = std::find_if(order.begin(), order.end(), [&](InstrId id) { return &module[id] == &instr; });
    if (at == order.end() || hlo::op_info(instr.op).op_class == hlo::OpClass::EXECUTOR) {
      const bool group = instr.op == Op::FUSION || (instr.op == Op::CALL && instr.as<hlo::CallAttrs>().is_composite);
      if (at == order.end() || !group) return ok_status();
    }
    const OpCases cases = cases_of_op(module, *at, "program");
    if (cases.cases.empty()) return ok_status();
    const Case& one = cases.cases[0];
    Compiled& compiled = programs_[one.text];
    if (compiled.times++ >= kMostOfOneOp) return ok_status();
    if (!compiled.program && compiled.times == 1) {
      Expected<Program> program = session_.compile(one.text, {.file = std::string(instr.name), .ignore_costs = true});
      if (program.ok()) compiled.program = std::make_unique<Program>(*std::move(program));
      if (!program.ok() && program.status().code() != Code::Unimplemented)
        note(instr, "does not compile alone: " + program.status().to_string());
    }
    if (!compiled.program) {
      ++skipped_;
      return ok_status();
    }
    Literals inputs;
    for (const InstrId parameter : stand_alone(module, *at).parameters) inputs.push_back(*value_of(parameter));
    const Expected<Answer> answer = answer_for(one, std::move(inputs), flushes_);
    if (!answer.ok()) {
      ++skipped_;
      return ok_status();
    }
    if (is_open(one, answer->inputs)) {
      ++skipped_;
      return ok_status();
    }
    ++ran_;
    const Expected<Literals> got = compiled.program->run(answer->inputs);
    remember(instr, one, answer->inputs);
    if (!got.ok()) {
      note(instr, "fails alone: " + got.status().to_string());
      return got.status().code() == Code::Unavailable ? got.status() : ok_status();
    }
    const Judgement judgement = judge(one, *answer, *got, flushes_);
    if (judgement.pass || is_by_rounding(module, instr, *answer, *got)) return ok_status();
    const std::string after = dependence();
    if (after.empty()) return note_wrong(module, instr, judgement.detail, operands);
    note(instr, judgement.detail + after);
    return ok_status();
  }

  // Keeps an op with its operands for dependence(), as far as they are small.
  void remember(const Instruction& instr, const Case& one, const Literals& inputs) {
    constexpr size_t kMostRuns = 32;
    constexpr int64_t kMostOfOne = int64_t{1} << 18;
    int64_t elements = 0;
    bool keeps = true;
    for (const Literal& input : inputs) {
      elements += input.element_count();
      keeps &= !hlo::is_complex(input.type());
    }
    keeps &= elements <= kMostOfOne;
    if (history_.size() == kMostRuns) history_.erase(history_.begin());
    history_.push_back({name_of(instr), one, keeps ? inputs : Literals(), keeps});
  }

  // Says of the last op, which is wrong, after which others it is; empty if it is wrong alone in another process, too.
  std::string dependence() {
    constexpr size_t kMostChecked = 16, kMostSearched = 2;
    if (!history_.back().is_whole || late() || ++checked_ > kMostChecked) return {};
    const double left = std::chrono::duration<double>(end_ - Clock::now()).count();
    const auto fails = [&](const std::vector<size_t>& runs) -> std::optional<bool> {
      std::vector<Case> cases;
      for (const size_t i : runs)
        if (history_[i].is_whole) cases.push_back(history_[i].alone());
      cases.push_back(history_.back().alone());
      return last_fails(worker_, std::move(cases), kSecondsOfOp);
    };
    const size_t count = searched_ < kMostSearched ? history_.size() - 1 : 0;
    const std::optional<Dependence> found = find_dependence(count, fails, std::min(kSecondsForSequence, left));
    if (!found || found->fails_alone) return {};
    ++searched_;
    return dependence_text(*found, [&](size_t i) { return history_[i].name; });
  }

  // Notes a wrong op; of a group the op in it that is wrong alone, or that none is.
  Status note_wrong(const Module& module, const Instruction& instr, const std::string& what, const Literals& operands) {
    if (instr.op != Op::FUSION && instr.op != Op::CALL) {
      note(instr, what);
      return ok_status();
    }
    OpByOp inside(session_, end_, worker_);
    COLLET_TRY(inside.check(module, instr.called[0], operands));
    const bool is_found = !inside.wrong().empty();
    note(instr,
         is_found ? "in it " + inside.wrong()[0] : what + (inside.ran() > 0 ? "; each of its ops alone is right" : ""));
    return ok_status();
  }

  Status check_flow(const Module& module, const Instruction& instr, Literals operands) {
    if (instr.op == Op::CALL) return check(module, instr.called[0], operands);
    if (instr.op == Op::CONDITIONAL) {
      const bool by_pred = operands[0].type() == Type::PRED;
      const int64_t index = operands[0].as_int(0), last = static_cast<int64_t>(instr.called.size()) - 1;
      const int64_t branch = by_pred ? (index ? 0 : 1) : index < 0 || index > last ? last : index;
      return check(module, instr.called[static_cast<size_t>(branch)], {operands[static_cast<size_t>(branch) + 1]});
    }
    if (instr.op != Op::WHILE) return ok_status();
    const auto& attrs = instr.called;  // condition, body
    const hlo::Evaluator evaluator(module);
    Literal state = operands[0];
    for (int i = 0; i < kIterations && !late(); ++i) {
      COLLET_ASSIGN(const Literal goes_on, evaluator.run_computation(attrs[0], {state}));
      if (goes_on.as_int(0) == 0) break;
      COLLET_TRY(check(module, attrs[1], {state}));
      COLLET_ASSIGN(state, evaluator.run_computation(attrs[1], {state}));
    }
    return ok_status();
  }

  void note(const Instruction& instr, const std::string& what) { wrong_.push_back(name_of(instr) + ": " + what); }

  struct Compiled {
    std::unique_ptr<Program> program;
    int times = 0;
  };
  // An op that has run, with its operands.
  struct Ran {
    std::string name;
    Case one;
    Literals inputs;
    bool is_whole;  // false if its operands were not kept

    // The case with these operands.
    Case alone() const {
      Case out = one;
      out.inputs.clear();
      for (const Literal& input : inputs) {
        InputSpec& spec = out.inputs.emplace_back(InputSpec{.values = Values::Fixed});
        for (int64_t i = 0; i < input.element_count(); ++i)
          spec.fixed.push_back(hlo::is_float(input.type()) ? input.as_double(i) : static_cast<double>(input.as_int(i)));
        if (spec.fixed.empty()) spec.fixed = {0};
      }
      return out;
    }
  };
  const Session& session_;
  Clock::time_point end_;
  const std::vector<std::string>& worker_;
  bool flushes_;
  std::map<std::string, Compiled> programs_;  // by text
  std::vector<Ran> history_;                  // the last ops that have run
  size_t checked_ = 0, searched_ = 0;         // of wrong ops, for dependence()
  size_t ran_ = 0, skipped_ = 0;
  std::vector<std::string> wrong_;
};

struct FirstGrowth {
  std::string text;  // empty: no value's error is too large
  size_t compared = 0;
};

// Runs the program so that it returns its values, and returns the first whose error is larger than it may be.
Expected<FirstGrowth> first_growth(const Module& module, const Session& session, const Evaluations& evaluations,
                                   const Literals& inputs) {
  FirstGrowth out;
  std::unordered_map<std::string_view, Expectation> values;
  COLLET_TRY(Evaluations::run(module, inputs, false, [&](const Instruction& i, const Literal& v) {
               values[i.name].plain = v;
             }).status());
  COLLET_TRY(Evaluations::run(module, inputs, true, [&](const Instruction& i, const Literal& v) {
               values[i.name].other = v;
             }).status());
  std::unordered_map<std::string, Literal> wide;
  COLLET_TRY(
      evaluations.run_wide(inputs, [&](const Instruction& i, const Literal& v) { wide[std::string(i.name)] = v; })
          .status());
  const std::set<InstrId> rounded = by_floats(module);
  std::vector<InstrId> batch;
  int64_t bytes = 0;
  const auto run_batch = [&]() -> Status {
    if (batch.empty()) return ok_status();
    COLLET_ASSIGN(const Program program, session.compile(hlo::print_module(*hlo::with_results(module, batch)),
                                                         {.file = "values", .ignore_costs = true}));
    COLLET_ASSIGN(const Literals got, program.run(inputs));
    for (size_t i = 0; i < batch.size() && i < got.size() && out.text.empty(); ++i) {
      const Instruction& instr = module[batch[i]];
      Expectation& expected = values[instr.name];
      const auto found = wide.find(std::string(instr.name));
      if (found == wide.end() || !expected.other.valid()) continue;
      expected.wide = found->second;
      expected.may_round = rounded.contains(batch[i]);
      ++out.compared;
      const Growth growth = compare(expected, got[i]);
      if (!growth.agrees)
        out.text = fmt::format("{} is the first value whose error is too large, {:.3g} where {:.3g} is allowed",
                               name_of(instr), growth.error, growth.allowed);
    }
    batch.clear();
    bytes = 0;
    return ok_status();
  };
  for (const InstrId id : module.entry_computation().order) {
    const Instruction& instr = module[id];
    const bool has_value =
        instr.op != Op::PARAMETER && instr.op != Op::CONSTANT && instr.shape.is_array() && values.contains(instr.name);
    if (!has_value) continue;
    batch.push_back(id);
    bytes += instr.shape.byte_size();
    if (bytes >= kMostTapped) COLLET_TRY(run_batch());
    if (!out.text.empty()) return out;
  }
  COLLET_TRY(run_batch());
  return out;
}

Fields with_status(std::string_view status, std::string detail) {
  return {{"status", std::string(status)}, {"detail", std::move(detail)}};
}

Fields of_error(const Status& status) {
  const bool is_declined = status.code() == Code::Unimplemented || status.code() == Code::ResourceExhausted;
  Fields fields = with_status(is_declined ? "unsupported" : "fail", status.to_string());
  if (status.code() == Code::Unavailable) add_retires(fields);
  return fields;
}

// Returns what is wrong with the results of the whole program; empty if nothing is.
std::string compare_results(const Module& module, const Literals& plain, const Literals& other, const Literals& wide,
                            const std::vector<Literals>& nudged, const Literals& got) {
  const std::set<InstrId> rounded = by_floats(module);
  const InstrId root = module.entry_computation().root;
  const bool is_flat = module[root].op == Op::TUPLE && module[root].operands.size() == got.size();
  if (got.size() != plain.size()) return fmt::format("{} results, expected {}", got.size(), plain.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (!got[i].shape().is_array()) continue;
    Expectation expected{plain[i], other[i], wide[i]};
    for (const Literals& one : nudged) expected.nudged.push_back(one[i]);
    expected.may_round = rounded.contains(is_flat ? module[root].operand(i) : root);
    const Growth growth = compare(expected, got[i]);
    if (!growth.agrees)
      return fmt::format("result {} of the program: the error is {:.3g} where {:.3g} is allowed", i, growth.error,
                         growth.allowed);
  }
  return {};
}

// Returns the evaluator's results of the program nudged both ways where floats are rounded to integers, and with rounded operands where
// an algorithm of a product asks for that; none where neither is so.
std::vector<Literals> nudged_results(const Module& module, const Literals& inputs) {
  std::vector<Literals> out;
  for (const double times : {kNudge, -kNudge}) {
    const Expected<std::unique_ptr<Module>> moved = nudged_before_rounding(module, times);
    if (!moved.ok() || !*moved) break;
    Expected<Literals> result = Evaluations::run(**moved, inputs, false, {});
    if (result.ok()) out.push_back(*std::move(result));
  }
  const Expected<std::unique_ptr<Module>> rounded = with_rounded_products(module);
  if (rounded.ok() && *rounded) {
    Expected<Literals> result = Evaluations::run(**rounded, inputs, false, {});
    if (result.ok()) out.push_back(*std::move(result));
  }
  return out;
}

// True if the program has a state of random numbers that lives longer than a run.
bool has_random_state(const Module& module) {
  for (const hlo::CompId comp : hlo::flow_computations(module))
    for (const hlo::InstrId id : module[comp].order)
      if (module[id].op == Op::RNG_GET_AND_UPDATE_STATE) return true;
  return false;
}

// Runs a program with its inputs in another order, and then again and again with the inputs in buffers at other places. Returns the
// results of the first run with `inputs`, and what is wrong with those of a later one.
struct Repeated {
  Literals first;
  std::string wrong;
};
Expected<Repeated> run_repeatedly(const Program& program, const Literals& inputs,
                                  const std::function<std::string(const Literals&)>& check) {
  Literals others;
  for (const Literal& input : inputs) {
    const int64_t count = input.element_count(), bytes = count ? input.byte_size() / count : 0;
    Literal other = Literal::uninitialized(input.shape());
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(other.mutable_bytes() + i * bytes, input.bytes() + (count - 1 - i) * bytes,
                  static_cast<size_t>(bytes));
    others.push_back(std::move(other));
  }
  Repeated out;
  COLLET_ASSIGN(std::vector<BufferHandle> before, program.upload(others));
  COLLET_TRY(program.execute(before).status());
  const auto end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(kMostRunning));
  for (int run = 0; run < kRuns && out.wrong.empty() && (run == 0 || Clock::now() < end); ++run) {
    COLLET_ASSIGN(std::vector<BufferHandle> in, program.upload(inputs));
    COLLET_ASSIGN(const std::vector<BufferHandle> results, program.execute(in));
    Literals got;
    for (const BufferHandle& buffer : results) {
      COLLET_ASSIGN(Literal value, fetch(buffer.get()));
      got.push_back(std::move(value));
    }
    before = std::move(in);  // the next arguments are elsewhere
    if (run == 0) {
      out.first = std::move(got);
    } else if (!std::equal(got.begin(), got.end(), out.first.begin(), out.first.end())) {
      // The order of a sum may differ from run to run.
      const std::string wrong = check(got);
      if (!wrong.empty())
        out.wrong = fmt::format("in execution {} of one executable, {}; {}", run + 2, wrong, kNextStep);
    }
  }
  return out;
}

}  // namespace

Fields run_program_case(const Case& one, const Session& session, uint64_t seed, double seconds,
                        const std::vector<std::string>& worker) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const Expected<OfferedProgram> offered = offer_program(session, one.program);
  if (!offered.ok()) return of_error(offered.status());
  if (!offered->compiled.ok()) return of_error(offered->compiled);
  const Module& module = *offered->module;
  const Program* program = &*offered->program;
  double elements = 0;
  for (const std::vector<hlo::Shape>* shapes : {&program->arguments(), &program->results()})
    for (const hlo::Shape& shape : *shapes)
      elements += static_cast<double>(shape.is_array() ? shape.element_count() : 0);
  if (elements > kMostElements)
    return with_status("unsupported",
                       fmt::format("its arguments and results have {:.0f} million elements", elements * 1e-6));
  const Expected<Literals> inputs =
      hlo::testing::inputs_of_program(one.program, program->arguments(), seed * program->arguments().size());
  if (!inputs.ok()) return with_status("oracle", inputs.status().to_string());
  Fields facts;
  facts.emplace_back("uses", program->uses().text());
  if (const Expected<collet_executable_facts> f = program->facts(); f.ok()) {
    facts.emplace_back("device_ops", std::to_string(f->device_ops));
    facts.emplace_back("fallback_ops", std::to_string(f->fallback_ops));
  }
  const auto finish = [&](Fields fields) {
    fields.insert(fields.end(), facts.begin(), facts.end());
    return fields;
  };
  if (module.entry_computation().parameters.size() != inputs->size())
    return finish(
        with_status("oracle", "the program has other parameters once it is compiled; its results were not compared"));
  const Expected<Evaluations> evaluations = Evaluations::make(module);
  if (!evaluations.ok()) return finish(with_status("oracle", evaluations.status().to_string()));
  const Expected<Literals> plain = Evaluations::run(module, *inputs, false, {}),
                           other = Evaluations::run(module, *inputs, true, {}),
                           wide = evaluations->run_wide(*inputs, {});
  for (const Expected<Literals>* result : {&plain, &other, &wide}) {
    if (result->ok()) continue;
    const Expected<Literals> got = program->run(*inputs);
    if (!got.ok()) return finish(of_error(got.status()));
    return finish(with_status("unsupported", "the evaluator does not run it: " + result->status().to_string()));
  }
  // The evaluator's results with nudged floats take two more runs, which are made where they matter.
  std::optional<std::vector<Literals>> nudged;
  const auto check = [&](const Literals& got) -> std::string {
    // Random numbers go on from run to run, so that the device's are not the evaluator's.
    if (has_random_state(module)) return {};
    std::string wrong = compare_results(module, *plain, *other, *wide, nudged.value_or(std::vector<Literals>()), got);
    if (wrong.empty() || nudged) return wrong;
    nudged = nudged_results(module, *inputs);
    return compare_results(module, *plain, *other, *wide, *nudged, got);
  };
  const Expected<Repeated> runs = run_repeatedly(*program, *inputs, check);
  if (!runs.ok()) return finish(of_error(runs.status()));
  std::string wrong = check(runs->first);
  if (wrong.empty() && !runs->wrong.empty()) return finish(with_status("fail", runs->wrong));
  OpByOp ops(session, end, worker);
  const Status checked = ops.check(module, module.entry(), *inputs);
  if (!checked.ok() && checked.code() == Code::Unavailable) return finish(of_error(checked));
  std::string evidence;
  for (size_t i = 0; i < std::min(ops.wrong().size(), kMostWrong); ++i) evidence += ops.wrong()[i] + "\n";
  if (ops.wrong().size() > kMostWrong) evidence += fmt::format("and {} more\n", ops.wrong().size() - kMostWrong);
  std::string detail = ops.wrong().empty() ? "" : "wrong with this program's values: " + ops.wrong()[0];
  if (!wrong.empty() && ops.wrong().empty()) {
    const Expected<FirstGrowth> growth = first_growth(module, session, *evaluations, *inputs);
    if (!growth.ok()) {
      wrong += "; " + growth.status().to_string();
    } else if (growth->text.empty()) {
      wrong += fmt::format("; each op alone and each of {} values is right: ", growth->compared);
      const Expected<OfferedProgram> unused = offer_program(session, one.program);
      const bool compiles = unused.ok() && unused->compiled.ok();
      const Expected<Literals> got = compiles ? unused->program->run(*inputs) : Status(Code::Unavailable, "");
      const bool depends = got.ok() && check(*got).empty();
      wrong += depends
                   ? "so is the first run of another executable: a run depends on one before it, with other arguments; "
                   : "fusion, memory or aliasing of the whole is wrong";
      if (depends) wrong += kNextStep;
    } else {
      wrong += "; each op alone is right; " + growth->text;
    }
  }
  if (!wrong.empty()) detail += (detail.empty() ? "" : "; ") + wrong;
  const bool passed = detail.empty();
  const std::string count = fmt::format("{} runs of single ops compared{}{}", ops.ran(),
                                        ops.skipped() > 0 ? fmt::format(", {} not", ops.skipped()) : "",
                                        ops.late() ? "; then the time was up" : "");
  Fields fields = with_status(passed ? "pass" : "fail", passed ? count : detail + "; " + count);
  if (!evidence.empty()) fields.emplace_back("evidence", evidence);
  return finish(std::move(fields));
}

}  // namespace collet::conformance
