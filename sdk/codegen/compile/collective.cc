// SPDX-License-Identifier: Apache-2.0
// Compiles collectives, and other values that depend on the participant, for targets with grids.
#include "sdk/codegen/lower/collective.h"

#include <utility>

#include "sdk/codegen/compile/compiler.h"

namespace collet::codegen {
namespace {

/// Arrays of at most this many bytes are sent to all members of an all-reduce as a whole, since the time of a second
/// exchange would exceed what shorter messages save.
constexpr uint64_t kSmallBytes = uint64_t{16} << 10;

/// True if a library of the device combines such arrays as the op does. Its minimum and maximum of floats ignore NaN.
bool library_combines(uint32_t type, uint32_t combine) {
  const uint32_t kind = collet_type_kind(type);
  const bool is_sum = combine == COLLET_COMBINE_ADD;
  if (kind == COLLET_KIND_COMPLEX) return is_sum;
  if (kind == COLLET_KIND_FLOAT)
    return (is_sum || combine == COLLET_COMBINE_MULTIPLY) &&
           (type == COLLET_TYPE_F16 || type == COLLET_TYPE_BF16 || type == COLLET_TYPE_F32 || type == COLLET_TYPE_F64);
  switch (type) {
    case COLLET_TYPE_S8:
    case COLLET_TYPE_U8:
    case COLLET_TYPE_S32:
    case COLLET_TYPE_U32:
    case COLLET_TYPE_S64:
    case COLLET_TYPE_U64:
      return is_sum || combine == COLLET_COMBINE_MULTIPLY || combine == COLLET_COMBINE_MINIMUM ||
             combine == COLLET_COMBINE_MAXIMUM;
    default:
      return false;
  }
}

/// The dimensions of an array around dimension `d`, whose size is `members` times a rest: [before, members, rest and
/// what comes after].
Dims around(const Dims& dims, int64_t d, int64_t members) {
  Dims out{1, members, 1};
  for (size_t i = 0; i < dims.size(); ++i) out[static_cast<int64_t>(i) < d ? 0 : 2] *= dims[i];
  out[2] /= members;
  return out;
}

}  // namespace

void Compiler::add_host_value(const Node& n, Drafts& drafts) {
  ++time_;
  Draft d;
  d.step.kind = StepKind::kHostValue;
  d.step.call = static_cast<uint32_t>(plan_->host_values.size());
  d.step.bytes = bytes_of(n.results[0]);
  d.ranges = {write(n.results[0])};
  plan_->host_values.push_back(host_value_of(graph_, n));
  drafts.push_back(std::move(d));
}

ValueId Compiler::view(ValueId v, Dims dims) {
  if (range_[v] == kNone && !graph_.value(v).constant) write(v);
  const ValueId out = temporary(graph_.type(v).element, std::move(dims));
  range_[out] = range(v);
  return out;
}

void Compiler::exchange_outer_dims(ValueId from, const Dims& dims, ValueId to, Drafts& drafts) {
  const ValueId source = view(from, dims);
  const ValueId target = view(to, {dims[1], dims[0], dims[2]});
  KernelPlan kernel = permute_kernel(graph_, source, {1, 0, 2}, target);
  add_kernel(kernel, drafts);
}

void Compiler::add_exchange(CollectiveCall call, CollectiveCall::Kind kind, const std::vector<CollectiveArrays>& arrays,
                            Drafts& drafts) {
  if (arrays.empty()) return;
  ++time_;
  Draft d;
  d.step.kind = StepKind::kCollective;
  d.step.call = static_cast<uint32_t>(plan_->collectives.size());
  call.kind = kind;
  for (const CollectiveArrays& one : arrays) {
    d.ranges.push_back(read(one.source));
    d.ranges.push_back(write(one.target));
    call.parts.push_back(one.part);
    plan_->traffic_bytes += bytes_of(one.source) + bytes_of(one.target);
  }
  ++plan_->kernels;
  plan_->collectives.push_back(std::move(call));
  drafts.push_back(std::move(d));
}

void Compiler::add_combination(const Node& n, const CollectiveCall& call, const std::vector<CollectiveArrays>& arrays,
                               Drafts& drafts) {
  using Kind = CollectiveCall::Kind;
  const bool is_whole = n.opcode == COLLET_OP_ALL_REDUCE;
  const int64_t members = members_of(call);
  const Block block = graph_.blocks[n.blocks[0]];
  std::vector<CollectiveArrays> by_library, gathered, scattered, combined;
  struct Sum {
    ValueId rows, result;
  };
  std::vector<Sum> sums;
  for (const CollectiveArrays& one : arrays) {
    const uint32_t type = one.part.type;
    const int64_t elements = one.part.target_elements;
    if (members == 1) {
      copy(range(one.source), one.target, drafts);
    } else if (target_.grid.libraries.collectives && library_combines(type, block.combine)) {
      by_library.push_back(one);
      by_library.back().part.combine = block.combine;
    } else if (is_whole && bytes_of(one.source) <= kSmallBytes) {
      const ValueId rows = temporary(type, {members, elements});
      gathered.push_back({one.source, rows, {type, elements, elements, members * elements, 0}});
      sums.push_back({rows, view(one.target, {elements})});
    } else {
      // Each member combines one block of all sources. For an all-reduce, all blocks are gathered afterwards.
      const int64_t own = is_whole ? (elements + members - 1) / members : elements;
      const ValueId rows = temporary(type, {members, own});
      const ValueId sum = is_whole ? temporary(type, {own}) : view(one.target, {own});
      scattered.push_back({one.source, rows, {type, own, one.part.source_elements, members * own, 0}});
      sums.push_back({rows, sum});
      if (is_whole) combined.push_back({sum, one.target, {type, own, own, elements, 0}});
    }
  }
  add_exchange(call, is_whole ? Kind::kAllReduce : Kind::kReduceScatter, by_library, drafts);
  add_exchange(call, Kind::kAllGather, gathered, drafts);
  add_exchange(call, Kind::kAllToAll, scattered, drafts);
  for (const Sum& sum : sums) {
    KernelPlan kernel = combine_rows_kernel(graph_, block, sum.rows, sum.result);
    add_kernel(kernel, drafts);
  }
  add_exchange(call, Kind::kAllGather, combined, drafts);
}

void Compiler::add_collective(const Node& n, Drafts& drafts) {
  using Kind = CollectiveCall::Kind;
  const CollectiveCall call = collective_call(graph_, n);
  const int64_t members = members_of(call);
  int64_t dimension = -1;
  if (n.opcode == COLLET_OP_ALL_GATHER || n.opcode == COLLET_OP_REDUCE_SCATTER) {
    dimension = attributes<collet_collective_dim_attrs>(graph_, n).dimension;
  } else if (n.opcode == COLLET_OP_ALL_TO_ALL) {
    const Dims split = integers(graph_, attributes<collet_all_to_all_attrs>(graph_, n).dimension);
    if (!split.empty()) dimension = split[0];
  }
  std::vector<CollectiveArrays> arrays;
  struct Turned {
    ValueId from, to;
    Dims dims;  ///< dimensions of `from`
  };
  std::vector<Turned> after;
  for (size_t i = 0; i < n.operands.size(); ++i) {
    ArrayType from = graph_.type(n.operands[i]);
    const ArrayType to = graph_.type(n.results[i]);
    if (to.elements == 0) {
      write(n.results[i]);
      continue;
    }
    ValueId source = n.operands[i];
    if (from.element != to.element) {  // values are combined in the type of the result
      source = temporary(to.element, from.dims);
      KernelPlan kernel = convert_kernel(graph_, n.operands[i], source);
      add_kernel(kernel, drafts);
      from = graph_.type(source);
    }
    CollectiveArrays one{source, n.results[i], {to.element, from.elements, from.elements, to.elements, 0}};
    const bool splits = n.opcode == COLLET_OP_REDUCE_SCATTER || (n.opcode == COLLET_OP_ALL_TO_ALL && dimension >= 0);
    if (splits) {
      one.part.block = from.elements / members;
      const Dims dims = around(from.dims, dimension, members);
      if (dims[0] != 1) {
        one.source = temporary(from.element, {dims[1], dims[0], dims[2]});
        exchange_outer_dims(source, dims, one.source, drafts);
      }
    }
    if (dimension >= 0 && n.opcode != COLLET_OP_REDUCE_SCATTER) {
      const Dims dims = around(to.dims, dimension, members);
      if (dims[0] != 1) {
        one.target = temporary(to.element, {dims[1], dims[0], dims[2]});
        after.push_back({one.target, n.results[i], {dims[1], dims[0], dims[2]}});
      }
    }
    arrays.push_back(one);
  }
  switch (n.opcode) {
    case COLLET_OP_ALL_GATHER:
      add_exchange(call, Kind::kAllGather, arrays, drafts);
      break;
    case COLLET_OP_ALL_TO_ALL:
      add_exchange(call, dimension < 0 ? Kind::kAllToAllArrays : Kind::kAllToAll, arrays, drafts);
      break;
    case COLLET_OP_COLLECTIVE_PERMUTE:
      add_exchange(call, Kind::kPermute, arrays, drafts);
      break;
    case COLLET_OP_COLLECTIVE_BROADCAST:
      add_exchange(call, Kind::kBroadcast, arrays, drafts);
      break;
    default:
      add_combination(n, call, arrays, drafts);
  }
  for (const Turned& one : after) exchange_outer_dims(one.from, one.dims, one.to, drafts);
}

}  // namespace collet::codegen
