// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/processes/sum_across.h"

#include <collet/program.h>
#include <collet/kernel_loops.hpp>

#include <algorithm>
#include <cstring>

#include "hlo/ops/rules.h"

namespace collet::runtime {
namespace {

// Slices are sent in pieces of this size, so that the first can be summed while others are on the way.
constexpr uint64_t kPieceBytes = uint64_t{1} << 19;

template <typename T>
struct Sum {
  static T of(T a, T b) { return a + b; }
};
template <typename T>
struct Product {
  static T of(T a, T b) { return a * b; }
};
template <typename T>
struct Least {
  static T of(T a, T b) { return kernel::minimum(a, b); }
};
template <typename T>
struct Most {
  static T of(T a, T b) { return kernel::maximum(a, b); }
};
template <typename T>
struct And {
  static T of(T a, T b) { return a & b; }
};
template <typename T>
struct Or {
  static T of(T a, T b) { return a | b; }
};
template <typename T>
struct Xor {
  static T of(T a, T b) { return a ^ b; }
};

// Stored is the type in memory, T that of the arithmetic: its result is rounded to Stored.
template <typename Stored, typename T, template <typename> class Op>
void combine(void* to, const void* first, const void* from, uint64_t count) {
  auto* out = static_cast<Stored*>(to);
  const auto *a = static_cast<const Stored*>(first), *b = static_cast<const Stored*>(from);
  for (uint64_t i = 0; i < count; ++i)
    out[i] = static_cast<Stored>(Op<T>::of(static_cast<T>(a[i]), static_cast<T>(b[i])));
}

template <typename Stored, typename T>
CombineFunction arithmetic(uint32_t kind) {
  switch (kind) {
    case COLLET_COMBINE_ADD:
      return combine<Stored, T, Sum>;
    case COLLET_COMBINE_MULTIPLY:
      return combine<Stored, T, Product>;
    case COLLET_COMBINE_MINIMUM:
      return combine<Stored, T, Least>;
    case COLLET_COMBINE_MAXIMUM:
      return combine<Stored, T, Most>;
    default:
      return nullptr;
  }
}

// Unsigned arithmetic has the bits of signed arithmetic that wraps.
template <typename Signed, typename Unsigned>
CombineFunction whole(uint32_t kind) {
  switch (kind) {
    case COLLET_COMBINE_ADD:
      return combine<Unsigned, Unsigned, Sum>;
    case COLLET_COMBINE_MULTIPLY:
      return combine<Unsigned, uint64_t, Product>;
    case COLLET_COMBINE_MINIMUM:
      return combine<Signed, Signed, Least>;
    case COLLET_COMBINE_MAXIMUM:
      return combine<Signed, Signed, Most>;
    case COLLET_COMBINE_AND:
      return combine<Unsigned, Unsigned, And>;
    case COLLET_COMBINE_OR:
      return combine<Unsigned, Unsigned, Or>;
    case COLLET_COMBINE_XOR:
      return combine<Unsigned, Unsigned, Xor>;
    default:
      return nullptr;
  }
}

/// The elements of an array that one process sums.
struct Slice {
  uint64_t begin = 0, end = 0;
};
Slice slice_of(const SummedArray& array, size_t process) {
  return {array.bounds[process], array.bounds[process + 1]};
}

// Calls `each` for the pieces of a slice: number, first element, elements.
template <typename Each>
void for_each_piece(const SummedArray& array, Slice slice, const Each& each) {
  const uint64_t most = std::max<uint64_t>(kPieceBytes / array.element_bytes, 1);
  uint64_t number = 0;
  for (uint64_t at = slice.begin; at < slice.end; at += most, ++number)
    each(number, at, std::min(most, slice.end - at));
}

char* element(void* data, const SummedArray& array, uint64_t i) {
  return static_cast<char*>(data) + i * array.element_bytes;
}
const char* element(const void* data, const SummedArray& array, uint64_t i) {
  return static_cast<const char*>(data) + i * array.element_bytes;
}

/// A piece of an array that came from another process.
struct Arrival {
  const SummedArray* array;
  uint64_t begin, place;  ///< its first element in the operands, and among those that this process sums
  uint64_t count;
  const char* data;
  bool is_first;  ///< nothing has been added to this process's own elements there
};

}  // namespace

CombineFunction combine_function(const hlo::Module& module, hlo::CompId computation, hlo::Type type) {
  using hlo::Type;
  const uint32_t kind = hlo::combine_kind(module, computation);
  switch (type) {
    case Type::F32:
      return arithmetic<float, float>(kind);
    case Type::F64:
      return arithmetic<double, double>(kind);
    case Type::BF16:
      return arithmetic<kernel::bfloat16, float>(kind);
    case Type::F16:
      return arithmetic<kernel::half, float>(kind);
    case Type::S8:
      return whole<int8_t, uint8_t>(kind);
    case Type::U8:
      return whole<uint8_t, uint8_t>(kind);
    case Type::S16:
      return whole<int16_t, uint16_t>(kind);
    case Type::U16:
      return whole<uint16_t, uint16_t>(kind);
    case Type::S32:
      return whole<int32_t, uint32_t>(kind);
    case Type::U32:
      return whole<uint32_t, uint32_t>(kind);
    case Type::S64:
      return whole<int64_t, uint64_t>(kind);
    case Type::U64:
      return whole<uint64_t, uint64_t>(kind);
    case Type::PRED:
      return kind == COLLET_COMBINE_AND || kind == COLLET_COMBINE_OR || kind == COLLET_COMBINE_XOR
                 ? whole<uint8_t, uint8_t>(kind)
                 : nullptr;
    default:
      return nullptr;
  }
}

std::vector<uint64_t> equal_bounds(uint64_t count, size_t processes) {
  std::vector<uint64_t> out;
  for (size_t i = 0; i <= processes; ++i) out.push_back(count / processes * i + count % processes * i / processes);
  return out;
}

ScratchPool::Piece ScratchPool::take(uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    for (auto it = kept_.begin(); it != kept_.end(); ++it) {
      if (it->second < bytes) continue;
      Piece out = std::move(*it);
      kept_.erase(it);
      return out;
    }
    kept_.clear();  // larger memory takes the place of what is too small
  }
  return {std::unique_ptr<char[]>(new (std::nothrow) char[bytes]), bytes};
}

void ScratchPool::give_back(Piece piece) {
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(piece));
}

Status sum_across(Rendezvous& rendezvous, uint32_t rank, ScratchPool& scratch, std::span<const SumGroup> groups,
                  const std::string& what) {
  const auto own_place = [&](const SumGroup& group) {
    return static_cast<size_t>(std::find(group.processes.begin(), group.processes.end(), rank) -
                               group.processes.begin());
  };
  // The participants here are summed first, unless there is one.
  uint64_t bytes = 0;
  for (const SumGroup& group : groups) {
    for (const SummedArray& array : group.arrays) {
      const Slice own = slice_of(array, own_place(group));
      bytes += (own.end - own.begin) * array.element_bytes * (group.processes.size() - 1);
      for (size_t i = 1; i < array.mine.size(); ++i)
        array.combine(array.total, i == 1 ? array.mine[0] : array.total, array.mine[i], array.count());
      const char* from = element(array.mine.size() > 1 ? array.total : array.mine[0], array, own.begin);
      if (group.processes.size() == 1 && array.own != from)
        std::memmove(array.own, from, (own.end - own.begin) * array.element_bytes);
    }
  }
  ScratchPool::Piece memory = scratch.take(std::max<uint64_t>(bytes, 1));
  if (!memory.first) return resource_exhausted(what + ": no host memory for " + std::to_string(bytes) + " bytes");

  // Each process gets its slice from the others, piece by piece.
  std::vector<DataMessage> sends, receives;
  std::vector<Arrival> arrivals;
  char* next = memory.first.get();
  for (const SumGroup& group : groups) {
    const size_t own = own_place(group), members = group.processes.size();
    for (size_t a = 0; a < group.arrays.size(); ++a) {
      const SummedArray& array = group.arrays[a];
      const void* sum = array.mine.size() > 1 ? array.total : array.mine[0];
      for (size_t k = 0; k < members; ++k) {
        if (k == own) continue;
        for_each_piece(array, slice_of(array, k), [&](uint64_t number, uint64_t at, uint64_t count) {
          const uint64_t parts[] = {1, a, number, own, k};
          sends.push_back({{group.processes[k], 0, group.tag(parts), const_cast<char*>(element(sum, array, at)),
                            count * array.element_bytes},
                           group.unit});
        });
      }
      for_each_piece(array, slice_of(array, own), [&](uint64_t number, uint64_t at, uint64_t count) {
        bool is_first = true;
        for (size_t k = 0; k < members; ++k) {
          if (k == own) continue;
          const uint64_t parts[] = {1, a, number, k, own};
          receives.push_back(
              {{group.processes[k], 0, group.tag(parts), next, count * array.element_bytes}, group.unit});
          arrivals.push_back({&array, at, at - array.bounds[own], count, next, is_first});
          is_first = false;
          next += count * array.element_bytes;
        }
      });
    }
  }
  const auto add = [&](size_t i) {
    const Arrival& one = arrivals[i];
    const SummedArray& array = *one.array;
    char* to = element(array.own, array, one.place);
    const void* sum = array.mine.size() > 1 ? array.total : array.mine[0];
    array.combine(to, one.is_first ? element(sum, array, one.begin) : to, one.data, one.count);
  };
  Status status = rendezvous.exchange(sends, receives, add);
  scratch.give_back(std::move(memory));
  COLLET_TRY(status);

  // The sums go to all.
  sends.clear();
  receives.clear();
  for (const SumGroup& group : groups) {
    const size_t own = own_place(group), members = group.processes.size();
    for (size_t a = 0; a < group.arrays.size(); ++a) {
      const SummedArray& array = group.arrays[a];
      for (size_t k = 0; k < members && array.result; ++k) {
        if (k == own) continue;
        const Slice mine = slice_of(array, own), other = slice_of(array, k);
        const uint64_t out[] = {2, a, 0, own, k}, in[] = {2, a, 0, k, own};
        if (mine.end > mine.begin)
          sends.push_back({{group.processes[k], 0, group.tag(out), element(array.result, array, mine.begin),
                            (mine.end - mine.begin) * array.element_bytes},
                           group.unit});
        if (other.end > other.begin)
          receives.push_back({{group.processes[k], 0, group.tag(in), element(array.result, array, other.begin),
                               (other.end - other.begin) * array.element_bytes},
                              group.unit});
      }
    }
  }
  return rendezvous.exchange(sends, receives);
}

}  // namespace collet::runtime
