// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/spmd/traffic.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "hlo/passes/loops.h"
#include "hlo/passes/rewriter.h"

namespace collet::hlo::spmd {
namespace {

// Returns the size of the largest group; the number of all participants if no groups are listed.
double group_size(const Module& module, const Groups& groups) {
  size_t size = 0;
  for (const Dims& group : groups.groups) size = std::max(size, group.size());
  const ModuleHeader& header = module.header();
  const int64_t all = std::max<int64_t>(header.replica_count, 1) * std::max<int64_t>(header.num_partitions, 1);
  return size ? static_cast<double>(size) : static_cast<double>(all);
}

double operand_bytes(const Module& module, const Instruction& instr) {
  double bytes = 0;
  for (InstrId id : instr.operands)
    if (module[id].shape.is_array()) bytes += static_cast<double>(module[id].shape.byte_size());
  return bytes;
}

// Adds the bytes that one collective sends; does nothing for another op.
void add_collective(const Module& module, const Instruction& instr, CollectiveTraffic& out) {
  const auto ring = [&](const Groups& groups) {
    const double n = group_size(module, groups);
    return (n - 1) / n;
  };
  const double bytes = operand_bytes(module, instr);
  switch (instr.op) {
    case Op::ALL_REDUCE:
    case Op::ALL_REDUCE_START:
      out.all_reduce += 2 * ring(instr.as<CollectiveAttrs>().groups) * bytes;
      break;
    case Op::ALL_GATHER:
    case Op::ALL_GATHER_START: {
      const double n = group_size(module, instr.as<CollectiveDimAttrs>().groups);
      out.all_gather += (n - 1) * bytes;  // (n-1)/n of the result, which is n times as large
      break;
    }
    case Op::REDUCE_SCATTER:
      out.reduce_scatter += ring(instr.as<CollectiveDimAttrs>().groups) * bytes;
      break;
    case Op::ALL_TO_ALL:
      out.all_to_all += ring(instr.as<AllToAllAttrs>().groups) * bytes;
      break;
    case Op::COLLECTIVE_PERMUTE:
    case Op::COLLECTIVE_PERMUTE_START:
      out.permute += bytes;
      break;
    case Op::COLLECTIVE_BROADCAST:
      out.broadcast += ring(instr.as<CollectiveAttrs>().groups) * bytes;
      break;
    default:
      return;
  }
  ++out.collectives;
}

}  // namespace

void CollectiveTraffic::add(const CollectiveTraffic& other, double times) {
  all_reduce += times * other.all_reduce;
  all_gather += times * other.all_gather;
  reduce_scatter += times * other.reduce_scatter;
  all_to_all += times * other.all_to_all;
  permute += times * other.permute;
  broadcast += times * other.broadcast;
  collectives += other.collectives;
}

int64_t trip_count_or_one(const Module& module, InstrId id) {
  const Instruction& instr = module[id];
  if (const int64_t known = instr.as<WhileAttrs>().trip_count_plus_one; known > 0) return known - 1;
  LoopFinder finder(module);
  if (const auto loop = finder.find(id))
    if (const auto found = find_trip_count(module, *loop)) return found->trips;
  if (!instr.extras) return 1;
  constexpr std::string_view kKnown = "\"known_trip_count\":{\"n\":\"";
  const std::string_view config = instr.extras->backend_config;
  const size_t at = config.find(kKnown);
  if (at == std::string_view::npos) return 1;
  int64_t trips = 1;
  std::from_chars(config.data() + at + kKnown.size(), config.data() + config.size(), trips);
  return trips;
}

CollectiveTraffic collective_traffic(const Module& module) {
  std::vector<CollectiveTraffic> of(module.computation_limit());
  for (CompId c : post_order(module)) {
    CollectiveTraffic& sum = of[index_of(c)];
    for (InstrId id : module[c].order) {
      const Instruction& instr = module[id];
      add_collective(module, instr, sum);
      if (instr.op == Op::WHILE) {
        for (CompId called : instr.called)
          sum.add(of[index_of(called)], static_cast<double>(trip_count_or_one(module, id)));
      } else if (instr.op == Op::CONDITIONAL) {
        const auto most = std::max_element(instr.called.begin(), instr.called.end(), [&](CompId a, CompId b) {
          return of[index_of(a)].total() < of[index_of(b)].total();
        });
        if (most != instr.called.end()) sum.add(of[index_of(*most)], 1);
      } else {
        for (CompId called : instr.called) sum.add(of[index_of(called)], 1);
      }
    }
  }
  return of[index_of(module.entry())];
}

}  // namespace collet::hlo::spmd
