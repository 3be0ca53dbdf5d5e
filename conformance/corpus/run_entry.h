// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "conformance/corpus/corpus.h"
#include "hlo/testing/corpus.h"

namespace collet::conformance {

/// Pass, or not, and why; on a pass what is worth knowing.
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

/// One text of an index: refused, read, or run, as the index expects.
EntryOutcome run_index_entry(const hlo::testing::Index& index, const hlo::testing::IndexEntry& entry,
                             LazySession& session);
/// One model.
EntryOutcome run_model(const std::string& folder, LazySession& session);

}  // namespace collet::conformance
