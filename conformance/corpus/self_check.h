// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "conformance/corpus/run_entry.h"

namespace collet::conformance {

/// Runs one file of StableHLO, text or artifact: each program in it is read, translated, verified and printed. If
/// `checks` is set, each function without arguments runs on the backend, and its checks are compared. The results of an
/// artifact without checks are compared with the expectations in the text of the same stem, X.mlir. A file passes only
/// if something was compared.
EntryOutcome run_self_checking(const std::string& path, bool checks, LazySession& session);

}  // namespace collet::conformance
