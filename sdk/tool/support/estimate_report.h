// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "hlo/estimate/step.h"

namespace collet::tool {

/// An estimate, and its projections onto more devices.
struct Estimate {
  hlo::estimate::Machine machine;
  hlo::estimate::Step step;
  std::vector<hlo::estimate::Step> projected;
  double measured_ns = 0;  ///< time of a step that was measured; 0: none
};

/// Returns the report for a terminal; `most` is the number of ops that it lists.
std::string estimate_text(const Estimate& estimate, size_t most);
std::string estimate_json(const Estimate& estimate);
/// Returns a page without external files, with pictures of the step and of its projections.
std::string estimate_page(const Estimate& estimate, size_t most);

}  // namespace collet::tool
