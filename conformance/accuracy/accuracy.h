// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/runner/session.h"
#include "hlo/base/status.h"
#include "hlo/ir/ops.h"
#include "hlo/ir/types.h"

/// \file
/// Measures the largest error of each elementary function of one argument over every value of a type.

namespace collet::conformance {

/// The errors of one function in one type.
struct AccuracyRow {
  hlo::Op op = hlo::Op::INVALID;
  hlo::Type type = hlo::Type::Invalid;
  std::string error;                ///< if not empty, the function did not run, and the other fields are zero
  uint64_t arguments = 0;           ///< number of arguments that were tested
  double worst = 0;                 ///< the largest error in ULP, by MPFR; infinite for a wrong special value
  double argument = 0, result = 0;  ///< its argument and the computed result
  uint64_t wrong = 0;               ///< number of wrong special values: NaN, infinities, signs of zero
  uint64_t nearest = 0;             ///< number of errors of at most half a ULP
  bool on_device = true;            ///< true if nothing ran on the fallback backend
};

struct AccuracyOptions {
  BackendChoice backend = {};
  std::vector<hlo::Op> ops = {};        ///< ops, out of near_functions()
  std::vector<hlo::Type> types = {};    ///< f32, f16, bf16
  uint64_t step = 1;                    ///< tests every `step`-th bit pattern; 1 tests all
  uint32_t jobs = 1;                    ///< number of threads that evaluate and compare
  std::vector<AccuracyRow> known = {};  ///< rows of an earlier run, which are not measured again
  /// Called with each row that was measured.
  std::function<void(const AccuracyRow&)> measured = {};
  /// Called at intervals, by one thread at a time: the numbers of patterns that are done and in total, and the current
  /// function.
  std::function<void(uint64_t done, uint64_t total, const std::string& what)> progress = {};
};

/// Returns a row for each op and type. Returns an error if the backend cannot be opened.
Expected<std::vector<AccuracyRow>> measure_accuracy(const AccuracyOptions& options);

/// Converts a row to one line of JSON, and back; an error if the text is not such a line.
std::string row_json(const AccuracyRow& row);
Expected<AccuracyRow> row_from_json(std::string_view text);

}  // namespace collet::conformance
