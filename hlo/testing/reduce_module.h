// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// Reduces a module to a small one that shows the same fault: instructions are removed or replaced by operands,
/// parameters and zeros, bodies are inlined, results and parameters dropped, and sizes and constants made small, as
/// long as the fault shows. The search is deterministic: the same module and the same answers give the same result.

namespace collet::hlo::testing {

/// The progress of a reduction.
struct ReduceProgress {
  std::string_view step;  ///< the kind of edit that is being tried
  size_t tried = 0, kept = 0;
  size_t instructions = 0;  ///< number of instructions of the smallest module so far
};

struct ReduceOptions {
  /// Returns whether a module shows the fault. It is called for verified modules only, and never twice for the same
  /// module.
  std::function<bool(const Module&)> fails;
  /// Called after each call of `fails`. May be empty.
  std::function<void(const ReduceProgress&)> progress;
  /// Called with each module that is smaller than the last one. May be empty.
  std::function<void(const Module&)> smaller;
  /// Called before each call of `fails`; true ends the search with the smallest module so far. May be empty.
  std::function<bool()> stop;
};

struct ReduceResult {
  std::unique_ptr<Module> module;
  size_t tried = 0, kept = 0;
  bool stopped = false;
};

/// Returns an error if the module itself is not valid, or does not show the fault.
Expected<ReduceResult> reduce_module(const Module& module, const ReduceOptions& options);

/// Replaces each size `from` by `to`, in shapes and attributes; with `multiples`, also k * `from` by k * `to`.
/// Dependent shapes are inferred again. Returns false if the result is not valid; the module must then be discarded.
bool resize_dimensions(Module& module, int64_t from, int64_t to, bool multiples);

}  // namespace collet::hlo::testing
