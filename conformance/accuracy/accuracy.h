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
/// The largest error of each elementary function of one argument over every value of a type.

namespace collet::conformance {

/// The errors of one function in one type.
struct AccuracyRow {
  hlo::Op op = hlo::Op::INVALID;
  hlo::Type type = hlo::Type::Invalid;
  std::string error;                ///< not empty: it did not run, and the rest is zero
  uint64_t arguments = 0;           ///< how many were tried
  double worst = 0;                 ///< the largest error in ULP, by MPFR; infinite for a wrong special value
  double argument = 0, result = 0;  ///< where it was found, and what came out
  uint64_t wrong = 0;               ///< wrong special values: NaN, infinities, signs of zero
  uint64_t nearest = 0;             ///< errors of at most half a ULP
  bool on_device = true;            ///< nothing ran on the fallback
};

struct AccuracyOptions {
  BackendChoice backend = {};
  std::vector<hlo::Op> ops = {};        ///< of near_functions()
  std::vector<hlo::Type> types = {};    ///< f32, f16, bf16
  uint64_t step = 1;                    ///< each so many-th bit pattern; 1 is every one
  uint32_t jobs = 1;                    ///< threads that evaluate and compare
  std::vector<AccuracyRow> known = {};  ///< rows of an earlier run, which are taken over
  /// Called with each row that was measured.
  std::function<void(const AccuracyRow&)> measured = {};
  /// Called now and then, by one thread at a time: how many of all patterns are done, and of which function.
  std::function<void(uint64_t done, uint64_t total, const std::string& what)> progress = {};
};

/// A row for each op and type. An error where the backend cannot be opened.
Expected<std::vector<AccuracyRow>> measure_accuracy(const AccuracyOptions& options);

/// A row as one line of JSON, and back; an error where the text is none.
std::string row_json(const AccuracyRow& row);
Expected<AccuracyRow> row_from_json(std::string_view text);

}  // namespace collet::conformance
