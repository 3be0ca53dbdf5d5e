// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// Makes a small module of a large one that shows the same fault: instructions are left out or replaced by operands,
/// parameters and zeros, bodies are inlined, results and parameters dropped, sizes and constants made small, as long as
/// the fault stays. The same module and the same answers give the same result.

namespace collet::hlo::testing {

/// The progress of a reduction.
struct ReduceProgress {
  std::string_view step;  ///< what is being tried
  size_t tried = 0, kept = 0;
  size_t instructions = 0;  ///< of the smallest module so far
};

struct ReduceOptions {
  /// Whether the fault shows. Asked about verified modules, about none twice.
  std::function<bool(const Module&)> fails;
  /// Told after each question. May be empty.
  std::function<void(const ReduceProgress&)> progress;
  /// Told of each module that is smaller than the last. May be empty.
  std::function<void(const Module&)> smaller;
  /// Asked before each question; true ends the search with what there is. May be empty.
  std::function<bool()> stop;
};

struct ReduceResult {
  std::unique_ptr<Module> module;
  size_t tried = 0, kept = 0;
  bool stopped = false;
};

/// The error says that the module itself is not valid, or does not show the fault.
Expected<ReduceResult> reduce_module(const Module& module, const ReduceOptions& options);

/// Makes `to` of each size `from`, in shapes and attributes; with `multiples`, also k * `to` of k * `from`. Shapes that
/// follow from others are inferred anew. False where that leads nowhere; the module is of no use then.
bool resize_dimensions(Module& module, int64_t from, int64_t to, bool multiples);

}  // namespace collet::hlo::testing
