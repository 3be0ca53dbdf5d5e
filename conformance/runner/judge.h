// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "conformance/cases/answer.h"
#include "conformance/cases/case.h"

namespace collet::conformance {

/// How the results of a device compare with the expected ones.
struct Judgement {
  bool pass = true;
  double ulp = 0, share = 0;  ///< the largest error in ULP, and divided by the allowed error
  std::string detail;         ///< where the first wrong result is, and what it is
  ErrorCounts errors = {};
  std::string evidence = {};  ///< one line for each of a few wrong elements, then the inputs
};

/// Compares all results of a case. `flushes`: the device treats denormals as zero.
Judgement judge(const Case& one, const Answer& answer, const std::vector<hlo::Literal>& got, bool flushes);

}  // namespace collet::conformance
