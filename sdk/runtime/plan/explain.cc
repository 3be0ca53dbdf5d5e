// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/plan/explain.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <limits>
#include <map>
#include <set>

#include "hlo/base/json.h"
#include "hlo/base/utf8.h"
#include "sdk/runtime/plan/cost.h"
#include "sdk/runtime/run/collective.h"

namespace collet::runtime {
namespace {

using hlo::InstrId;
using hlo::Op;

// True if the steps after a collective run while it waits for other processes.
bool runs_beside(const ExecutableCore& core, const Step& step) {
  return core.across && step.overlaps;
}

std::string bytes_text(uint64_t bytes) {
  char out[32];
  if (bytes < 10000)
    std::snprintf(out, sizeof out, "%" PRIu64 " B", bytes);
  else if (bytes < 10000000)
    std::snprintf(out, sizeof out, "%.1f kB", static_cast<double>(bytes) / 1e3);
  else
    std::snprintf(out, sizeof out, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return out;
}

std::string time_text(double ns) {
  char out[32];
  if (ns < 10000)
    std::snprintf(out, sizeof out, "%.0f ns", ns);
  else if (ns < 1e7)
    std::snprintf(out, sizeof out, "%.1f us", ns / 1e3);
  else
    std::snprintf(out, sizeof out, "%.1f ms", ns / 1e6);
  return out;
}

// Shortens a text that is too long for a line.
std::string shortened(std::string text) {
  constexpr size_t kMost = 100;
  if (text.size() > kMost) text.replace(text.find_last_of("+ ", kMost), std::string::npos, " ...");
  return text;
}

uint64_t sum(const std::vector<uint64_t>& list) {
  uint64_t out = 0;
  for (uint64_t v : list) out += v;
  return out;
}

bool crosses(const Sequence& s, const Step& step) {
  return step.kind == Step::Kind::Copy && s.slots[step.in[0]].side != s.slots[step.out[0]].side;
}

// Estimated times of one execution.
struct Times {
  double device = 0, all = 0;  ///< ns; `all` is of the device and the fallback
};

// Returns the times; the body of a loop counts once per iteration, if the trip count is known.
Times times_of(const ExplainInput& in, uint32_t number) {
  Times out;
  for (const Step& step : in.core.plan.sequences[number].steps) {
    if (step.kind == Step::Kind::Launch) {
      const CompiledCluster& unit = in.core.plan.units[step.unit];
      out.all += unit.cost_ns;
      if (unit.side == Side::Device) out.device += unit.cost_ns;
    }
    const double turns = step.kind == Step::Kind::While ? trips_of(in.module[step.instr]) : 1;
    for (uint32_t inner : step.sequence) {
      const Times one = times_of(in, inner);
      out.device += turns * one.device;
      out.all += turns * one.all;
    }
  }
  return out;
}

// Returns the share of the estimated time that the device computes, from 0 to 1; 0 if there are no estimates.
double device_time_share(const ExplainInput& in) {
  const Times times = times_of(in, 0);
  return times.all > 0 ? times.device / times.all : 0;
}

// Returns a readable name of an op: that of a pattern, or the ops of a fusion.
std::string kind_of(const hlo::Module& m, const hlo::Instruction& instr) {
  std::string out(op_info(instr.op).text);
  if (instr.op == Op::CALL && instr.as<hlo::CallAttrs>().is_composite)
    return out + " '" + std::string(std::string_view(instr.as<hlo::CallAttrs>().name)) + "'";
  if (instr.op == Op::FUSION) return out + " " + shortened(ops_of_fusion(m, instr, "+"));
  return out;
}

constexpr size_t kMostDeclined = 8;  // most lines for each kind of question

// Returns the questions that the device declined, the most frequent first.
std::vector<const Question*> declined(const ExecutableCore& core, uint32_t kind) {
  std::vector<const Question*> out;
  for (const Question& one : core.questions)
    if (one.kind == kind && one.declined) out.push_back(&one);
  std::stable_sort(out.begin(), out.end(),
                   [](const Question* a, const Question* b) { return a->declined > b->declined; });
  return out;
}

std::string times_text(uint64_t n) {
  return n == 1 ? "once" : std::to_string(n) + " times";
}

// What the backends' compilers estimate; empty where they do not.
std::string estimates(double ns, uint64_t cycles, double nj) {
  std::string out;
  if (ns > 0) out += ", estimated " + time_text(ns);
  if (cycles > 0) out += ", " + std::to_string(cycles) + " cycles";
  if (nj <= 0) return out;
  char energy[40];
  std::snprintf(energy, sizeof energy,
                nj < 1e3   ? ", %.3g nJ"
                : nj < 1e6 ? ", %.3g uJ"
                : nj < 1e9 ? ", %.3g mJ"
                           : ", %.4g J",
                nj < 1e3   ? nj
                : nj < 1e6 ? nj * 1e-3
                : nj < 1e9 ? nj * 1e-6
                           : nj * 1e-9);
  return out + energy;
}

// Writes the sequences as an indented list.
class Text {
 public:
  explicit Text(const ExplainInput& input) : in_(input), m_(input.module) {}

  std::string print() {
    const collet_executable_facts& f = in_.core.facts;
    out_ = "plan for '" + std::string(m_.name()) + "' on " + in_.backend + " (" + in_.device_kind + "), " +
           (in_.fallback.empty() ? "no fallback" : "fallback " + in_.fallback);
    out_ = printable(out_, Lines::One) + '\n';
    line(0, std::to_string(f.device_ops) + " ops on the device, " + std::to_string(f.fallback_ops) +
                " on the fallback, " + std::to_string(f.host_ops) + " by the runtime; " + std::to_string(f.clusters) +
                " programs, " + (f.kernels ? std::to_string(f.kernels) : std::string("?")) + " kernels, " +
                bytes_text(f.traffic_bytes) + " traffic, " + bytes_text(f.workspace_bytes) + " workspace, " +
                bytes_text(f.crossing_bytes) + " cross" + estimates(f.estimated_ns, f.cycles, f.energy_nj));
    char share[80];
    std::snprintf(share, sizeof share, "%.1f %% of the estimated computing time on the device",
                  100 * device_time_share(in_));
    line(0, share);
    if (in_.core.total() > 1)
      line(0, std::to_string(in_.core.total()) + " participants, " +
                  (in_.core.together ? "launched together" : "each on its own"));
    sequence(0, 1);
    for (const Plan::Donation& d : in_.core.plan.donations)
      line(1, "result " + std::to_string(d.result) + (d.must ? " must" : " may") + " take over argument " +
                  std::to_string(d.argument));
    list_declined(COLLET_QUESTION_PATTERN, "patterns");
    list_declined(COLLET_QUESTION_FUSION, "fusions");
    return std::move(out_);
  }

 private:
  void line(int indent, const std::string& text) {
    out_.append(static_cast<size_t>(indent) * 2, ' ');
    out_ += printable(text, Lines::One);
    out_ += '\n';
  }

  void list_declined(uint32_t kind, const char* name) {
    const std::vector<const Question*> all = declined(in_.core, kind);
    if (all.empty()) return;
    line(0, std::string(name) + " that " + in_.backend + " declined:");
    uint64_t more = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i >= kMostDeclined)
        more += all[i]->declined;
      else
        line(1, "'" + shortened(all[i]->name) + "' of " + std::string(collet_type_name(all[i]->element)) + ", " +
                    times_text(all[i]->declined) + (all[i]->reason.empty() ? "" : " (" + all[i]->reason + ")"));
    }
    if (more) line(1, "and " + std::to_string(all.size() - kMostDeclined) + " other kinds, " + times_text(more));
  }

  void sequence(uint32_t number, int indent) {
    const Sequence& s = in_.core.plan.sequences[number];
    for (const Step& step : s.steps) this->step(s, step, indent);
  }

  std::string name(InstrId id) const { return id == InstrId::None ? "" : "'" + std::string(m_[id].name) + "'"; }

  void step(const Sequence& s, const Step& step, int indent) {
    switch (step.kind) {
      case Step::Kind::Launch:
        return launch(step, indent);
      case Step::Kind::Copy: {
        const Slot &from = s.slots[step.in[0]], &to = s.slots[step.out[0]];
        return line(indent, "copy " + name(step.instr) + ", " + bytes_text(to.bytes) + ", " +
                                std::string(side_name(from.side)) + " to " + std::string(side_name(to.side)));
      }
      case Step::Kind::Constant:
        return line(indent,
                    "constant " + name(step.instr) + " on the " + std::string(side_name(s.slots[step.out[0]].side)));
      case Step::Kind::While:
        line(indent, "while " + name(step.instr) + reason(step.instr) + ", " + trips(step.instr));
        line(indent + 1, "condition:");
        sequence(step.sequence[0], indent + 2);
        line(indent + 1, "body:");
        return sequence(step.sequence[1], indent + 2);
      case Step::Kind::Conditional:
        line(indent, "conditional " + name(step.instr) + reason(step.instr));
        for (size_t b = 0; b < step.sequence.size(); ++b) {
          line(indent + 1, "branch " + std::to_string(b) + ":");
          sequence(step.sequence[b], indent + 2);
        }
        return;
      case Step::Kind::Call:
        line(indent, "call " + name(step.instr) + reason(step.instr));
        return sequence(step.sequence[0], indent + 1);
      case Step::Kind::ReplicaId:
      case Step::Kind::PartitionId:
        return line(indent, "own number " + name(step.instr));
      case Step::Kind::Collective:
      case Step::Kind::HostCall:
        return line(indent, std::string(op_info(m_[step.instr].op).text) + " " + name(step.instr) + reason(step.instr) +
                                (by_links(step.instr) ? ", by links of the devices" : "") +
                                (runs_beside(in_.core, step) ? ", beside what follows" : ""));
    }
  }

  // True for a collective over several processes that the backend runs.
  bool by_links(InstrId id) const {
    Across* const across = in_.core.across.get();
    if (!across || !is_collective(m_[id].op)) return false;
    const auto partners = across->partners_of(m_, m_[id], id);
    return partners.ok() && (*partners)->on_devices.has_value();
  }

  std::string trips(InstrId id) const {
    const int64_t plus_one = m_[id].as<hlo::WhileAttrs>().trip_count_plus_one;
    return plus_one > 0 ? std::to_string(plus_one - 1) + " trips" : "trips unknown";
  }

  std::string reason(InstrId id) const {
    const auto it = in_.partition.placements.find(id);
    if (it == in_.partition.placements.end() || it->second.reason.empty()) return {};
    return " (" + it->second.reason + ")";
  }

  void launch(const Step& step, int indent) {
    const CompiledCluster& unit = in_.core.plan.units[step.unit];
    const CompiledFacts& facts = unit.locals[0].program->facts();
    std::string head = "launch " + std::to_string(step.unit) + " on " +
                       (unit.side == Side::Device ? in_.backend : in_.fallback) + ": " + std::to_string(unit.ops) +
                       " ops, ~" + time_text(unit.cost_ns) + ", in " + bytes_text(sum(unit.argument_bytes)) + ", out " +
                       bytes_text(sum(unit.result_bytes));
    if (facts.kernels) head += ", " + std::to_string(facts.kernels) + " kernels";
    if (facts.traffic_bytes) head += ", traffic " + bytes_text(facts.traffic_bytes);
    if (facts.workspace_bytes) head += ", workspace " + bytes_text(facts.workspace_bytes);
    head += estimates(facts.estimated_ns, facts.cycles, facts.energy_nj);
    if (unit.shared) head += ", same program as one above";
    line(indent, head);
    for (InstrId id : in_.lowered.sources[step.unit].cluster->members) {
      if (m_[id].op == Op::CONSTANT) continue;
      line(indent + 1, kind_of(m_, m_[id]) + " " + name(id) + " " + m_[id].shape.to_string() + reason(id));
    }
  }

  const ExplainInput& in_;
  const hlo::Module& m_;
  std::string out_;
};

const char* kind_name(Step::Kind kind) {
  switch (kind) {
    case Step::Kind::Launch:
      return "launch";
    case Step::Kind::Copy:
      return "copy";
    case Step::Kind::While:
      return "while";
    case Step::Kind::Conditional:
      return "conditional";
    case Step::Kind::Call:
      return "call";
    case Step::Kind::Constant:
      return "constant";
    case Step::Kind::ReplicaId:
      return "replica-id";
    case Step::Kind::Collective:
      return "collective";
    case Step::Kind::HostCall:
      return "host-call";
    default:
      return "partition-id";
  }
}

void json_launch(const ExplainInput& in, const Step& step, JsonWriter& json) {
  const CompiledCluster& unit = in.core.plan.units[step.unit];
  const CompiledFacts& facts = unit.locals[0].program->facts();
  json.field("side", side_name(unit.side)).field("ops", unit.ops).field("cost_ns", unit.cost_ns);
  json.field("argument_bytes", sum(unit.argument_bytes)).field("result_bytes", sum(unit.result_bytes));
  json.field("kernels", facts.kernels).field("traffic_bytes", facts.traffic_bytes);
  json.field("workspace_bytes", facts.workspace_bytes).field("code_bytes", facts.code_bytes);
  json.field("estimated_ns", facts.estimated_ns).field("cycles", facts.cycles).field("energy_nj", facts.energy_nj);
  json.field("shared", unit.shared);
  json.key("instructions").begin_array();
  for (InstrId id : in.lowered.sources[step.unit].cluster->members) {
    const hlo::Instruction& instr = in.module[id];
    if (instr.op == Op::CONSTANT) continue;
    const auto it = in.partition.placements.find(id);
    json.begin_object().field("name", instr.name).field("op", op_info(instr.op).text);
    if (instr.op == Op::CALL && instr.as<hlo::CallAttrs>().is_composite)
      json.field("pattern", std::string_view(instr.as<hlo::CallAttrs>().name));
    if (instr.op == Op::FUSION) json.field("fusion", ops_of_fusion(in.module, instr, " "));
    json.field("type", instr.shape.to_string());
    if (it != in.partition.placements.end())
      json.field("reason", it->second.reason).field("cost_ns", it->second.cost_ns);
    json.end_object();
  }
  json.end_array();
}

void json_sequence(const ExplainInput& in, uint32_t number, JsonWriter& json) {
  const Sequence& s = in.core.plan.sequences[number];
  json.begin_array();
  for (const Step& step : s.steps) {
    json.begin_object().field("step", kind_name(step.kind));
    if (step.instr != InstrId::None) json.field("instruction", in.module[step.instr].name);
    if (step.kind == Step::Kind::Launch) json_launch(in, step, json);
    if (step.kind == Step::Kind::Copy) {
      json.field("bytes", s.slots[step.out[0]].bytes).field("from", side_name(s.slots[step.in[0]].side));
      json.field("to", side_name(s.slots[step.out[0]].side));
    }
    if (runs_beside(in.core, step)) json.field("runs_beside_next_steps", true);
    if (!step.sequence.empty()) {
      const auto it = in.partition.placements.find(step.instr);
      if (it != in.partition.placements.end()) json.field("reason", it->second.reason);
      json.key("sequences").begin_array();
      for (uint32_t inner : step.sequence) json_sequence(in, inner, json);
      json.end_array();
    }
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string ops_of_fusion(const hlo::Module& module, const hlo::Instruction& fusion, std::string_view between) {
  std::string out;
  for (InstrId inner : module[fusion.called[0]].order) {
    const Op op = module[inner].op;
    if (op == Op::PARAMETER || op == Op::TUPLE || op == Op::CONSTANT) continue;
    if (!out.empty()) out += between;
    out += op_info(op).text;
  }
  return out;
}

std::string explain_text(const ExplainInput& input) {
  return Text(input).print();
}

std::string explain_json(const ExplainInput& input) {
  std::string out;
  JsonWriter json(out);
  const collet_executable_facts& f = input.core.facts;
  json.begin_object().field("module", input.module.name()).field("backend", input.backend);
  json.field("device", input.device_kind).field("fallback", input.fallback);
  json.field("device_ops", f.device_ops).field("fallback_ops", f.fallback_ops).field("host_ops", f.host_ops);
  json.field("clusters", f.clusters).field("kernels", f.kernels).field("traffic_bytes", f.traffic_bytes);
  json.field("workspace_bytes", f.workspace_bytes).field("crossing_bytes", f.crossing_bytes);
  json.field("estimated_ns", f.estimated_ns).field("cycles", f.cycles).field("energy_nj", f.energy_nj);
  json.field("device_time_share", device_time_share(input));
  json.field("participants", input.core.total()).field("cost_ns", input.core.plan.cost_ns);
  json.key("steps");
  json_sequence(input, 0, json);
  json.key("declined").begin_array();
  for (const uint32_t kind : {COLLET_QUESTION_PATTERN, COLLET_QUESTION_FUSION})
    for (const Question* one : declined(input.core, kind)) {
      json.begin_object().field("kind", kind == COLLET_QUESTION_FUSION ? "fusion" : "pattern").field("name", one->name);
      json.field("type", collet_type_name(one->element)).field("count", one->declined).field("reason", one->reason);
      json.end_object();
    }
  json.end_array();
  json.end_object();
  return out + '\n';
}

void count_facts(const ExplainInput& input, collet_executable_facts& facts) {
  const Plan& plan = input.core.plan;
  uint64_t workspace = 0;
  for (const Sequence& s : plan.sequences)
    for (const Step& step : s.steps) {
      if (step.kind == Step::Kind::Launch) {
        const CompiledCluster& unit = plan.units[step.unit];
        const CompiledFacts& compiled = unit.locals[0].program->facts();
        (unit.side == Side::Device ? facts.device_ops : facts.fallback_ops) += unit.ops;
        facts.clusters += !unit.shared;
        facts.kernels += compiled.kernels;
        facts.traffic_bytes += compiled.traffic_bytes;
        facts.estimated_ns += compiled.estimated_ns;
        facts.energy_nj += compiled.energy_nj;
        facts.cycles += compiled.cycles;
        workspace = std::max(workspace, compiled.workspace_bytes);
      }
      if (!step.sequence.empty() || step.kind == Step::Kind::ReplicaId || step.kind == Step::Kind::PartitionId ||
          step.kind == Step::Kind::Collective || step.kind == Step::Kind::HostCall)
        ++facts.host_ops;
      if (crosses(s, step)) facts.crossing_bytes += s.slots[step.out[0]].bytes;
    }
  facts.workspace_bytes = workspace;
  const double flops = arithmetic_of(input.module);
  facts.flops = flops < 1e19 ? static_cast<uint64_t>(flops) : std::numeric_limits<uint64_t>::max();
  std::set<const CompiledProgram*> met;
  for (const CompiledCluster& unit : plan.units)
    for (const CompiledCluster::Local& local : unit.locals)
      if (met.insert(local.program.get()).second) {
        facts.code_bytes += local.program->facts().code_bytes;
        facts.resident_bytes += local.program->facts().resident_bytes;
      }
}

}  // namespace collet::runtime
