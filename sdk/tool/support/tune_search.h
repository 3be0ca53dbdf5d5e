// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sdk/tool/support/tune_files.h"
#include "sdk/tool/support/tune_measure.h"

/// \file
/// Searches for schedules that are faster than those of a backend's rules.

namespace collet::tool {

struct SearchOptions {
  double seconds = 600;          ///< for this program
  double measure_seconds = 0.1;  ///< for each comparison
  double least_gain = 0.03;      ///< a schedule is kept if it is so much faster
  double least_share = 0.01;     ///< kernels that take less of the program's time are left alone
  uint64_t seed = 1;
};

/// A kernel whose schedule was improved.
struct Improvement {
  std::string key, name, schedule;
  double before_ns = 0, after_ns = 0;
};

struct SearchResult {
  std::vector<Improvement> kernels;
  double before_ns = 0,
         after_ns = 0;  ///< of a run of the program, with the rules' schedules and with those that were found
  size_t measured = 0, wrong = 0, refused = 0, crashed = 0;
  bool is_exhausted = false;  ///< no schedule near the best ones is left to be measured
};

/// What a search tells while it runs.
using SearchProgress = std::function<void(double share, const std::string& note)>;

/// Searches the schedules of one program. In each round every kernel that takes time has another schedule near its own, and the program
/// is compared with the one before; of what is faster for a kernel the best is measured again, longer, and kept. That goes on from the
/// schedules that were kept, until none near them is faster or the time is over. A schedule whose program does not agree with the program
/// without schedules is never kept. `tuned` gets what was found; `journal` has what earlier searches measured.
Expected<SearchResult> search_schedules(const TunedProgram& program, const std::vector<hlo::Literal>& inputs,
                                        const SearchOptions& options, Journal& journal, TunedFile& tuned,
                                        const SearchProgress& progress);

}  // namespace collet::tool
