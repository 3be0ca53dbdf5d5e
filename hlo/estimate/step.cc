// SPDX-License-Identifier: Apache-2.0
#include "hlo/estimate/step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "hlo/ops/collective.h"
#include "hlo/ops/flops.h"
#include "hlo/passes/pipeline.h"
#include "hlo/passes/plan_buffers.h"
#include "hlo/passes/rewriter.h"
#include "hlo/passes/spmd/traffic.h"
#include "hlo/program/leaves.h"

namespace collet::hlo::estimate {
namespace {

constexpr int kDeepest = 64;

double bytes_of(const Shape& shape) {
  return static_cast<double>(shape.byte_size());
}

bool is_free(Op op) {
  return op == Op::PARAMETER || op == Op::CONSTANT || op == Op::TUPLE || op == Op::GET_TUPLE_ELEMENT ||
         op == Op::BITCAST || op == Op::RESHAPE || op == Op::AFTER_ALL || op == Op::OPT_BARRIER ||
         op == Op::PARTITION_ID || op == Op::REPLICA_ID;
}

bool is_collective(Op op) {
  return op_info(op).op_class == OpClass::COMMUNICATION;
}

bool is_product(Op op) {
  return op == Op::DOT || op == Op::CONVOLUTION || op == Op::RAGGED_DOT || op == Op::SCALED_DOT;
}

// The element type in which a device reads the operands of a product: that before a conversion to more bits.
Type product_type(const Module& m, const Instruction& product) {
  const Instruction& lhs = m[product.operand(0)];
  if (lhs.op == Op::CONVERT && is_float(m[lhs.operand(0)].shape.type())) {
    const Type before = m[lhs.operand(0)].shape.type();
    if (type_info(before).bits < type_info(lhs.shape.type()).bits) return before;
  }
  return lhs.shape.type();
}

// The bytes that an op alone reads of operand `i`.
double read_bytes(const Module& m, const Instruction& instr, size_t i) {
  switch (instr.op) {
    case Op::SLICE:
    case Op::DYNAMIC_SLICE:
    case Op::GATHER:
      if (i == 0) return bytes_of(instr.shape);
      break;
    case Op::DYNAMIC_UPDATE_SLICE:
    case Op::SCATTER:
      if (i == 0) return 0;  // it is updated in place
      break;
    default:
      break;
  }
  return bytes_of(m[instr.operand(i)].shape);
}

double written_bytes(const Module& m, const Instruction& instr) {
  if (instr.op == Op::DYNAMIC_UPDATE_SLICE) return bytes_of(m[instr.operand(1)].shape);
  if (instr.op == Op::SCATTER) return bytes_of(m[instr.operands.back()].shape);
  return bytes_of(instr.shape);
}

/// The cost of the ops inside a fusion or a call of one kernel.
struct Inside {
  double product_ns = 0, arithmetic = 0, flops = 0, bytes = 0;
  std::map<std::string_view, double> weights;  // by op, for people
};

class Walk {
 public:
  Walk(const Module& m, const Machine& machine, const StepOptions& options, Step& out)
      : m_(m), machine_(machine), options_(options), out_(out) {}

  void computation(CompId c, double times, int depth) {
    if (depth > kDeepest) return;
    for (const InstrId id : m_[c].order) instruction(id, times, depth);
  }

 private:
  void instruction(InstrId id, double times, int depth) {
    const Instruction& instr = m_[id];
    if (is_free(instr.op)) return;
    if (instr.op == Op::WHILE) {
      const double trips = trips_of(id);
      for (const CompId c : instr.called) computation(c, times * trips, depth + 1);
      return;
    }
    if (instr.op == Op::CONDITIONAL) return conditional(instr, times, depth);
    if (instr.op == Op::CALL && !instr.as<CallAttrs>().is_composite) {
      for (const CompId c : instr.called) computation(c, times, depth + 1);
      return;
    }
    if (is_collective(instr.op)) return collective(instr, times);
    kernel(instr, times);
  }

  double trips_of(InstrId id) {
    const int64_t known = m_[id].as<WhileAttrs>().trip_count_plus_one;
    if (known > 0) return static_cast<double>(known - 1);
    const int64_t found = spmd::trip_count_or_one(m_, id);
    if (found > 1) return static_cast<double>(found);
    out_.notes.push_back("loop '" + std::string(m_[id].name) + "' has an unknown number of iterations; " +
                         std::to_string(static_cast<int64_t>(options_.unknown_trips)) + " taken");
    return options_.unknown_trips;
  }

  // Of several branches the one that takes longest.
  void conditional(const Instruction& instr, double times, int depth) {
    Step longest;
    for (const CompId c : instr.called) {
      Step branch;
      branch.devices = out_.devices;
      Walk(m_, machine_, options_, branch).computation(c, times, depth + 1);
      if (branch.total_ns() >= longest.total_ns()) longest = std::move(branch);
    }
    out_.flops += longest.flops;
    out_.bytes += longest.bytes;
    out_.network_bytes += longest.network_bytes;
    out_.launches += longest.launches;
    out_.peak_ns += longest.peak_ns;
    out_.compute_ns += longest.compute_ns;
    out_.memory_ns += longest.memory_ns;
    out_.launch_ns += longest.launch_ns;
    out_.network_ns += longest.network_ns;
    std::move(longest.ops.begin(), longest.ops.end(), std::back_inserter(out_.ops));
    std::move(longest.notes.begin(), longest.notes.end(), std::back_inserter(out_.notes));
  }

  // Adds the arithmetic of an op to that of its kernel.
  void add_arithmetic(const Instruction& instr, Inside& all) {
    if (is_free(instr.op)) return;
    if (instr.op == Op::FUSION || instr.op == Op::CALL) {
      for (const InstrId id : m_[instr.called[0]].order) add_arithmetic(m_[id], all);
      return;
    }
    const double flops = flops_of(m_, instr);
    all.flops += flops;
    all.weights[op_info(instr.op).text] += flops;
    if (is_product(instr.op))
      all.product_ns += flops / (machine_.product_peak(product_type(m_, instr)) * machine_.product_efficiency);
    else
      all.arithmetic += flops;
  }

  // What a fusion reads: of an argument that only slices read, these.
  double fusion_bytes(const Instruction& fusion) {
    const Computation& body = m_[fusion.called[0]];
    double bytes = 0;
    const auto result_bytes = [&](InstrId id) {
      const Instruction& result = m_[id];
      return result.op == Op::DYNAMIC_UPDATE_SLICE ? written_bytes(m_, result) : bytes_of(result.shape);
    };
    const Instruction& root = m_[body.root];
    if (root.op == Op::TUPLE)
      for (const InstrId id : root.operands) bytes += result_bytes(id);
    else
      bytes += result_bytes(body.root);
    const UserMap users(m_, fusion.called[0]);
    for (const InstrId parameter : body.parameters) {
      double read = 0;
      const double whole = bytes_of(m_[parameter].shape);
      for (const InstrId user : users.users(parameter)) {
        const Instruction& instr = m_[user];
        for (size_t i = 0; i < instr.operands.size(); ++i)
          if (instr.operand(i) == parameter) read = std::min(whole, read + read_bytes(m_, instr, i));
      }
      bytes += read;
    }
    return bytes;
  }

  void kernel(const Instruction& instr, double times) {
    Inside inside;
    add_arithmetic(instr, inside);
    if (instr.op == Op::FUSION && !instr.called.empty()) {
      inside.bytes = fusion_bytes(instr);
    } else {
      inside.bytes = written_bytes(m_, instr);
      for (size_t i = 0; i < instr.operands.size(); ++i) inside.bytes += read_bytes(m_, instr, i);
    }
    if (instr.op == Op::CUSTOM_CALL) custom_call(instr, times, inside);
    const double computing = inside.product_ns + inside.arithmetic / machine_.arithmetic_per_ns;
    const double moving = inside.bytes / (machine_.memory_bytes_per_ns * machine_.memory_efficiency);
    OpTime one;
    one.name = instr.name;
    one.what = what_of(instr, inside);
    if (instr.extras && instr.extras->metadata) one.where = instr.extras->metadata->op_name;
    one.times = times;
    one.flops = inside.flops;
    one.bytes = inside.bytes;
    one.ns = std::max(computing, moving) + machine_.launch_ns;
    one.bound = machine_.launch_ns > std::max(computing, moving) ? Bound::Launch
                : computing > moving                             ? Bound::Compute
                                                                 : Bound::Memory;
    out_.flops += times * one.flops;
    out_.bytes += times * one.bytes;
    out_.launches += times;
    out_.launch_ns += times * machine_.launch_ns;
    out_.peak_ns += times * inside.product_ns * machine_.product_efficiency;
    (computing > moving ? out_.compute_ns : out_.memory_ns) += times * std::max(computing, moving);
    out_.ops.push_back(std::move(one));
  }

  void custom_call(const Instruction& instr, double times, Inside& inside) {
    const std::string target(instr.as<CustomCallAttrs>().target);
    const auto known = machine_.calls.find(target);
    if (known != machine_.calls.end()) {
      inside.flops += known->second.flops;
      inside.product_ns +=
          known->second.flops / (machine_.product_peak(known->second.type) * machine_.product_efficiency);
      return;
    }
    calls_[target] += times;
    const std::string note = "custom call '" + target + "' counts with its bytes alone: name its flops in 'calls'";
    if (std::find(out_.notes.begin(), out_.notes.end(), note) == out_.notes.end()) out_.notes.push_back(note);
  }

  std::string what_of(const Instruction& instr, const Inside& inside) const {
    if (instr.op == Op::CUSTOM_CALL) return "custom-call " + std::string(instr.as<CustomCallAttrs>().target);
    if (instr.op != Op::FUSION && instr.op != Op::CALL) return std::string(op_info(instr.op).text);
    std::vector<std::pair<double, std::string_view>> order;
    for (const auto& [op, weight] : inside.weights) order.emplace_back(-weight, op);
    std::sort(order.begin(), order.end());
    std::string out = std::string(op_info(instr.op).text);
    for (size_t i = 0; i < std::min<size_t>(order.size(), 3); ++i)
      out += (i ? "+" : " of ") + std::string(order[i].second);
    return out;
  }

  // Device numbers of a group of the largest size, and of the first one if they have equal sizes.
  std::vector<std::vector<int64_t>> groups_of(const Instruction& instr) const {
    const auto devices = std::max<int64_t>(out_.devices, 1);
    std::vector<std::vector<int64_t>> out;
    const auto from = [&](const Groups& groups) {
      for (const Dims& group : groups.groups) out.emplace_back(group.begin(), group.end());
    };
    switch (op_info(instr.op).record) {
      case Record::Collective:
        from(instr.as<CollectiveAttrs>().groups);
        break;
      case Record::CollectiveDim:
        from(instr.as<CollectiveDimAttrs>().groups);
        break;
      case Record::AllToAll:
        from(instr.as<AllToAllAttrs>().groups);
        break;
      case Record::CollectivePermute:
        for (size_t i = 0; i + 1 < instr.as<CollectivePermuteAttrs>().pairs.size(); i += 2)
          out.push_back({instr.as<CollectivePermuteAttrs>().pairs[i], instr.as<CollectivePermuteAttrs>().pairs[i + 1]});
        break;
      default:
        break;
    }
    std::erase_if(out, [](const auto& group) { return group.empty(); });
    if (out.empty()) {
      out.emplace_back(static_cast<size_t>(devices));
      std::iota(out[0].begin(), out[0].end(), int64_t{0});
    }
    return out;
  }

  // True if the group has more members on more devices.
  bool grows(const std::vector<int64_t>& group) const {
    if (options_.mesh.empty())
      return static_cast<int64_t>(group.size()) == out_.devices || span_of(machine_, group).back() > 1;
    const int64_t below = out_.devices / options_.mesh[0];
    return std::any_of(group.begin(), group.end(), [&](int64_t device) { return device / below != group[0] / below; });
  }

  void collective(const Instruction& instr, double times) {
    Transfer transfer{instr.op, 0};
    for (const InstrId operand : instr.operands)
      if (m_[operand].shape.is_array()) transfer.bytes += bytes_of(m_[operand].shape);
    if (instr.op == Op::ALL_GATHER) transfer.bytes = bytes_of(instr.shape);
    OpTime one;
    CollectiveTime longest;
    // Groups of a kind have few different spans.
    std::vector<Span> seen;
    for (const std::vector<int64_t>& group : groups_of(instr)) {
      one.grows |= grows(group);
      Span span = span_of(machine_, group);
      if (std::find(seen.begin(), seen.end(), span) != seen.end()) continue;
      const CollectiveTime time = collective_time(machine_, span, transfer);
      if (seen.empty() || time.ns > longest.ns) {
        longest = time;
        one.span = span;
      }
      seen.push_back(std::move(span));
    }
    one.name = instr.name;
    one.what = op_info(instr.op).text;
    if (instr.extras && instr.extras->metadata) one.where = instr.extras->metadata->op_name;
    one.times = times;
    one.bytes = transfer.bytes;
    one.ns = longest.ns;
    one.bound = Bound::Network;
    one.level = longest.level;
    out_.network_bytes += times * transfer.bytes;
    out_.network_ns += times * longest.ns;
    out_.ops.push_back(std::move(one));
  }

  const Module& m_;
  const Machine& machine_;
  const StepOptions& options_;
  Step& out_;
  std::map<std::string, double> calls_;
};

DeviceMemory memory_of(const Module& m, const BufferPlan& plan) {
  DeviceMemory out;
  for (const InstrId parameter : m.entry_computation().parameters) out.arguments += bytes_of(m[parameter].shape);
  double shared = 0;
  const Shape& result = m[m.entry_computation().root].shape;
  for (const InputOutputAlias& alias : m.header().aliases) {
    const Shape* shape = &result;
    for (const int64_t i : alias.output_index)
      if (shape->is_tuple() && i < static_cast<int64_t>(shape->elements().size()))
        shape = &shape->element(static_cast<size_t>(i));
    shared += bytes_of(*shape);
  }
  out.results = std::max(0.0, bytes_of(result) - shared);
  for (const CompId c : m.computations())
    for (const InstrId id : m[c].order)
      if (m[id].op == Op::CONSTANT) out.constants += bytes_of(m[id].shape);
  out.temporaries = static_cast<double>(plan.bytes);
  return out;
}

}  // namespace

std::string_view bound_name(Bound bound) {
  constexpr std::string_view kNames[] = {"compute", "memory", "launch", "network"};
  return kNames[static_cast<size_t>(bound)];
}

Expected<Step> estimate_step(Module& module, const Machine& machine, const StepOptions& options) {
  ModuleHeader& header = module.header();
  if (options.devices > 0) header.num_partitions = options.devices / std::max<int64_t>(header.replica_count, 1);
  header.num_partitions = std::max<int64_t>(header.num_partitions, 1);
  header.replica_count = std::max<int64_t>(header.replica_count, 1);
  Step out;
  out.name = module.name();
  out.devices = device_product(header.num_partitions, header.replica_count);
  if (out.devices > kMostDevices)
    return invalid_argument("the program runs on more than " + std::to_string(kMostDevices) + " devices");
  if (out.devices > 1 && machine.network.empty())
    return invalid_argument("the program runs on " + std::to_string(out.devices) +
                            " devices, and the machine has no 'network'");
  int64_t capacity = 1;
  for (const NetworkLevel& level : machine.network)
    capacity = device_product(capacity, level.devices > 0 ? level.devices : out.devices);
  if (!machine.network.empty() && out.devices > capacity)
    return invalid_argument("the program runs on " + std::to_string(out.devices) +
                            " devices, the machine's network connects " + std::to_string(capacity));
  if (!options.mesh.empty() &&
      std::accumulate(options.mesh.begin(), options.mesh.end(), int64_t{1}, device_product) != out.devices)
    return invalid_argument("the axes of the mesh do not give the program's " + std::to_string(out.devices) +
                            " devices");
  PassContext context;
  context.replica_count = header.replica_count;
  context.partition_count = header.num_partitions;
  if (options.partition) COLLET_TRY(spmd_partition(module, context).status());
  COLLET_TRY(prepare(module, context).status());
  // The plan's order is that of the ops before they are fused; fused groups need less.
  if (options.fuse) COLLET_TRY(propose_fusions(module, context).status());
  Walk(module, machine, options, out).computation(module.entry(), 1, 0);
  COLLET_ASSIGN(const BufferPlan plan, plan_buffers(module));
  out.memory = memory_of(module, plan);
  return out;
}

Step project(const Step& step, const Machine& machine, int64_t factor) {
  Step out = step;
  out.devices *= factor;
  out.network_ns = 0;
  for (OpTime& one : out.ops) {
    if (one.bound != Bound::Network || one.span.empty()) continue;
    if (one.grows) {
      one.span.back() *= factor;
      const Op op = op_from_text(one.what).value_or(Op::ALL_REDUCE);
      const CollectiveTime time = collective_time(machine, one.span, {op, one.bytes});
      one.ns = time.ns;
      one.level = time.level;
    }
    out.network_ns += one.total_ns();
  }
  return out;
}

}  // namespace collet::hlo::estimate
