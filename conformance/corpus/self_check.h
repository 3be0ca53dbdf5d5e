// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "conformance/corpus/run_entry.h"

namespace collet::conformance {

/// One file of StableHLO, text or artifact: each program in it is read, translated, verified and printed; where `checks`
/// says that it checks itself, each function without arguments runs on the backend and its checks are compared here. An
/// artifact without checks is compared with what the checks of the text of its stem, X.mlir, expect of its results. A
/// file for which nothing was compared has not passed.
EntryOutcome run_self_checking(const std::string& path, bool checks, LazySession& session);

}  // namespace collet::conformance
