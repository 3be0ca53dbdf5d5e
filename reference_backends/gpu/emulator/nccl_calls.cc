// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/emulator/nccl_calls.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "reference_backends/gpu/emulator/library_elements.h"

namespace collet::gpu::emulator {
namespace {

template <typename T>
T combine_two(ncclRedOp_t combine, T a, T b) {
  switch (combine) {
    case ncclSum:
      return static_cast<T>(a + b);
    case ncclProd:
      return static_cast<T>(a * b);
    case ncclMax:
      return std::max(a, b);
    case ncclMin:
      return std::min(a, b);
  }
  return a;
}
/// Combines floats. The order of the arguments of minimum and maximum decides what becomes of NaN, so both ignore it.
double combine_floats(ncclRedOp_t combine, double a, double b) {
  if (combine == ncclMax) return std::fmax(a, b);
  if (combine == ncclMin) return std::fmin(a, b);
  return combine_two(combine, a, b);
}

template <typename T, typename Wide>
void combine_integers(ncclRedOp_t combine, const std::vector<const uint8_t*>& from, size_t count, uint8_t* to) {
  for (size_t i = 0; i < count; ++i) {
    T sum{};
    for (size_t k = 0; k < from.size(); ++k) {
      T x{};
      std::memcpy(&x, from[k] + i * sizeof(T), sizeof(T));
      const bool is_order = combine == ncclMax || combine == ncclMin;
      // Sums and products wrap around, so they are computed without a sign.
      sum = k == 0     ? x
            : is_order ? combine_two<T>(combine, sum, x)
                       : static_cast<T>(combine_two<Wide>(combine, static_cast<Wide>(sum), static_cast<Wide>(x)));
    }
    std::memcpy(to + i * sizeof(T), &sum, sizeof(T));
  }
}

void combine_arrays(ncclDataType_t type, ncclRedOp_t combine, const std::vector<const uint8_t*>& from, size_t count,
                    uint8_t* to) {
  const auto floats = [&](cudaDataType_t format) {
    const Elements elements(format);
    for (size_t i = 0; i < count; ++i) {
      double sum = elements.load(from[0] + i * elements.bytes()).real();
      for (size_t k = 1; k < from.size(); ++k)
        sum = combine_floats(combine, sum, elements.load(from[k] + i * elements.bytes()).real());
      elements.store(to + i * elements.bytes(), sum);
    }
  };
  switch (type) {
    case ncclInt8:
      return combine_integers<int8_t, uint64_t>(combine, from, count, to);
    case ncclUint8:
      return combine_integers<uint8_t, uint64_t>(combine, from, count, to);
    case ncclInt32:
      return combine_integers<int32_t, uint64_t>(combine, from, count, to);
    case ncclUint32:
      return combine_integers<uint32_t, uint64_t>(combine, from, count, to);
    case ncclInt64:
      return combine_integers<int64_t, uint64_t>(combine, from, count, to);
    case ncclUint64:
      return combine_integers<uint64_t, uint64_t>(combine, from, count, to);
    case ncclFloat16:
      return floats(CUDA_R_16F);
    case ncclBfloat16:
      return floats(CUDA_R_16BF);
    case ncclFloat32:
      return floats(CUDA_R_32F);
    case ncclFloat64:
      return floats(CUDA_R_64F);
  }
}

}  // namespace

const char* name_of(CallKind kind) {
  switch (kind) {
    case CallKind::kAllReduce:
      return "ncclAllReduce";
    case CallKind::kReduceScatter:
      return "ncclReduceScatter";
    case CallKind::kAllGather:
      return "ncclAllGather";
    case CallKind::kBroadcast:
      return "ncclBroadcast";
    case CallKind::kSend:
      return "ncclSend";
    case CallKind::kReceive:
      return "ncclRecv";
  }
  return "";
}

size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
  }
  return 0;
}

uint64_t Call::operand_bytes(size_t rank, size_t members) const {
  const uint64_t bytes = count * bytes_of(type);
  switch (kind) {
    case CallKind::kReduceScatter:
      return members * bytes;
    case CallKind::kBroadcast:
      return static_cast<int>(rank) == peer ? bytes : 0;
    case CallKind::kReceive:
      return 0;
    default:
      return bytes;
  }
}

uint64_t Call::result_bytes(size_t members) const {
  const uint64_t bytes = count * bytes_of(type);
  if (kind == CallKind::kSend) return 0;
  return kind == CallKind::kAllGather ? members * bytes : bytes;
}

std::string contradiction(const GroupCalls& calls_of_members) {
  std::vector<std::vector<const Call*>> together(calls_of_members.size());
  std::map<std::pair<int, int>, std::vector<const Call*>> sends, receives;
  for (size_t i = 0; i < calls_of_members.size(); ++i) {
    const int me = static_cast<int>(i);
    for (const Call& call : calls_of_members[i]) {
      if (call.stream != calls_of_members[i][0].stream) return "a member has calls on several streams";
      if (call.kind == CallKind::kSend) {
        sends[{me, call.peer}].push_back(&call);
      } else if (call.kind == CallKind::kReceive) {
        receives[{call.peer, me}].push_back(&call);
      } else {
        together[i].push_back(&call);
      }
    }
  }
  for (size_t i = 1; i < together.size(); ++i) {
    const std::string member = "member " + std::to_string(i);
    if (together[i].size() != together[0].size())
      return member + " has " + std::to_string(together[i].size()) + " calls, and member 0 " +
             std::to_string(together[0].size()) + ": one would wait for ever";
    for (size_t k = 0; k < together[i].size(); ++k) {
      const Call &a = *together[0][k], &b = *together[i][k];
      if (a.kind != b.kind) return member + " calls " + name_of(b.kind) + ", and member 0 " + name_of(a.kind);
      if (a.count != b.count || a.type != b.type || a.combine != b.combine || a.peer != b.peer)
        return member + " and member 0 call " + name_of(a.kind) + " with different counts, types, operations or roots";
    }
  }
  for (const auto* list : {&sends, &receives}) {
    for (const auto& [pair, calls] : *list) {
      const std::vector<const Call*>& from = sends[pair];
      const std::vector<const Call*>& to = receives[pair];
      const std::string members = "member " + std::to_string(pair.first) + " to member " + std::to_string(pair.second);
      if (from.size() != to.size())
        return std::to_string(from.size()) + " sends and " + std::to_string(to.size()) + " receives from " + members;
      for (size_t k = 0; k < from.size(); ++k) {
        if (from[k]->count != to[k]->count || from[k]->type != to[k]->type)
          return "a send and a receive with different counts or types, from " + members;
      }
    }
  }
  return {};
}

std::vector<std::vector<const Call*>> collectives_of(const GroupCalls& calls) {
  std::vector<std::vector<const Call*>> out;
  for (const std::vector<Call>& mine : calls) {
    size_t at = 0;
    for (const Call& call : mine) {
      if (call.is_between_two()) continue;
      if (at == out.size()) out.emplace_back();
      out[at++].push_back(&call);
    }
  }
  return out;
}

std::vector<Transfer> transfers_of(const GroupCalls& calls) {
  std::vector<Transfer> out;
  for (size_t from = 0; from < calls.size(); ++from) {
    // The receives of each member that are not yet matched to a send of `from`.
    std::map<size_t, std::vector<const Call*>> receives;
    std::map<size_t, size_t> matched;
    for (const Call& send : calls[from]) {
      if (send.kind != CallKind::kSend) continue;
      const auto to = static_cast<size_t>(send.peer);
      if (!receives.count(to)) {
        for (const Call& call : calls[to])
          if (call.kind == CallKind::kReceive && call.peer == static_cast<int>(from)) receives[to].push_back(&call);
      }
      out.push_back({from, to, &send, receives[to].at(matched[to]++)});
    }
  }
  return out;
}

std::vector<std::vector<uint8_t>> results_of(const std::vector<const Call*>& calls,
                                             const std::vector<const uint8_t*>& operands) {
  const Call& first = *calls[0];
  const size_t members = calls.size(), bytes = first.count * bytes_of(first.type);
  const bool scatters = first.kind == CallKind::kReduceScatter, gathers = first.kind == CallKind::kAllGather;
  std::vector<std::vector<uint8_t>> results(members);
  if (bytes == 0) return results;
  for (size_t i = 0; i < members; ++i) {
    std::vector<uint8_t>& out = results[i];
    out.resize(gathers ? members * bytes : bytes);
    if (gathers) {
      for (size_t k = 0; k < members; ++k) std::memcpy(&out[k * bytes], operands[k], bytes);
    } else if (first.kind == CallKind::kBroadcast) {
      std::memcpy(out.data(), operands[static_cast<size_t>(first.peer)], bytes);
    } else {
      std::vector<const uint8_t*> from = operands;
      for (const uint8_t*& one : from) one += scatters ? i * bytes : 0;
      combine_arrays(first.type, first.combine, from, first.count, out.data());
    }
  }
  return results;
}

}  // namespace collet::gpu::emulator
