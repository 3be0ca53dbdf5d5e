// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"
#include "sdk/runtime/processes/rendezvous.h"

/// \file
/// Sums of large arrays over several processes: each process sums one slice of the arrays. For a reduce-scatter that is the
/// result; for an all-reduce it sends the slice to the others, so that every process sends and receives 2 (n - 1) / n of the
/// array. Participants of one process are summed first.

namespace collet::runtime {

/// Combines `count` elements: to = to op from. `first` may be another place than `to`: to = first op from.
using CombineFunction = void (*)(void* to, const void* first, const void* from, uint64_t count);

/// Returns the function for arrays of `type`; null if the computation is no plain sum, product, minimum, maximum or bitwise op, or the
/// type has none.
CombineFunction combine_function(const hlo::Module& module, hlo::CompId computation, hlo::Type type);

/// Memory for data from other processes, kept for the next collective. Thread-safe.
class ScratchPool {
 public:
  using Piece = std::pair<std::unique_ptr<char[]>, uint64_t>;
  /// Returns at least `bytes` bytes; null if there is no memory.
  Piece take(uint64_t bytes);
  void give_back(Piece piece);

 private:
  std::mutex mutex_;
  std::vector<Piece> kept_;
};

/// One array of a group of participants, as one process sees it. Process k of the group sums elements bounds[k] to bounds[k + 1].
struct SummedArray {
  std::vector<const void*> mine;  ///< the operands of this process's participants of the group
  void* total = nullptr;          ///< place for the sum of `mine` if there are several; may be the first of them
  void* own = nullptr;  ///< place for the elements that this process sums; not in `mine`, unless in the first of them
  void* result = nullptr;        ///< place for all sums, `own` among them; null: each process needs its own ones only
  std::vector<uint64_t> bounds;  ///< one more than the group has processes
  uint64_t element_bytes = 1;
  CombineFunction combine = nullptr;

  uint64_t count() const { return bounds.back(); }
};

/// Returns the bounds of nearly equal parts.
std::vector<uint64_t> equal_bounds(uint64_t count, size_t processes);

/// A group of participants whose operands are summed.
struct SumGroup {
  std::vector<uint32_t> processes;  ///< of its members, ascending; this process is among them
  std::vector<SummedArray> arrays;  ///< the same in all processes
  uint32_t unit = 0;                ///< see Rendezvous
  /// Numbers the messages of the group: equal in all of its processes, and different from those of all other messages.
  std::function<uint64_t(std::span<const uint64_t>)> tag;
};

/// Fills the results of all groups that go on after the rendezvous. The processes call it with the same groups, as far as they are members of
/// them. `what` is for messages. After an error the results are undefined.
Status sum_across(Rendezvous& rendezvous, uint32_t rank, ScratchPool& scratch, std::span<const SumGroup> groups,
                  const std::string& what);

}  // namespace collet::runtime
