// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "hlo/ir/module.h"

namespace collet::hlo {

/// A while in the form that flatten_tuples produces: it takes one flat tuple, carries it as its state and returns it.
struct Loop {
  InstrId op = InstrId::None;
  CompId condition = CompId::None, body = CompId::None;
  InstrId init = InstrId::None;  ///< the `tuple` with the initial state
  size_t size = 0;               ///< number of state elements
};

/// Finds loops. Each computation is analysed once, however many loops share it.
class LoopFinder {
 public:
  explicit LoopFinder(const Module& module) : module_(module) {}
  /// Returns the loop of instruction `id`; nothing if that is no while loop of this form.
  std::optional<Loop> find(InstrId id);

 private:
  bool reads_elements_only(CompId computation);

  const Module& module_;
  std::unordered_map<uint32_t, bool> known_;
};
/// Returns the state element that `id` reads in a computation of the loop; nothing if it reads none.
std::optional<size_t> state_read(const Module& module, CompId computation, InstrId id);
/// True if the body passes element `i` on unchanged, or returns the small constant that is also its initial value.
bool is_invariant(const Module& module, const Loop& loop, size_t i);
/// The root of `c`, a tuple whose elements may be changed: if another instruction reads it, the root becomes a tuple of
/// its own.
InstrId own_root(Module& module, CompId c);
/// Returns the number of instructions that call each computation, indexed by its number.
std::vector<uint32_t> count_callers(const Module& module);

/// The induction variable and the trip count, if they follow from the instructions of the loop.
struct TripCount {
  int64_t trips = 0;
  size_t induction = 0;  ///< element of the state
  int64_t init = 0, step = 0;
};
std::optional<TripCount> find_trip_count(const Module& module, const Loop& loop);

}  // namespace collet::hlo
