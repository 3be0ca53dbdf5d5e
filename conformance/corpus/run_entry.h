// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "conformance/corpus/corpus.h"
#include "hlo/testing/corpus.h"

namespace collet::conformance {

/// The outcome of an entry: whether it passed, and the reason if not; for a pass, additional information.
struct EntryOutcome {
  CorpusStatus status = CorpusStatus::Pass;
  std::string detail;
};

/// Opens the backend when an entry first needs it.
class LazySession {
 public:
  explicit LazySession(BackendChoice choice) : choice_(std::move(choice)) {}
  Expected<const Session*> get();

 private:
  BackendChoice choice_;
  std::unique_ptr<Session> session_;
};

/// Runs one module of a corpus index: checks that its text is refused, is read, or gives the expected results, as the entry states.
EntryOutcome run_index_entry(const hlo::testing::Index& index, const hlo::testing::IndexEntry& entry,
                             LazySession& session);
/// Runs one model.
EntryOutcome run_model(const std::string& folder, LazySession& session);

}  // namespace collet::conformance
