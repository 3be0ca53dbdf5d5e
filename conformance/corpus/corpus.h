// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/runner/conform.h"

/// \file
/// Runs a corpus: programs from other sources with known results. A corpus is an index of HLO texts (PATH ends in
/// .jsonl), a folder of models (PATH/NAME/case.json), or a folder of self-checking modules (PATH/*.mlir,
/// PATH/*.mlirbc).

namespace collet::conformance {

struct CorpusOptions {
  BackendChoice backend;
  std::string path;
  std::vector<std::string> filters;  ///< glob patterns for names
  unsigned jobs = 1;
  double timeout = 0;  ///< seconds per entry; 0: 120 for a model, 20 for a module
  uint64_t memory_bytes = 0;
  ProgressFunction progress;
};

/// The expectation of an entry: that it is read, is refused, or has a result that agrees.
enum class Expectation : uint8_t { Read, Refuse, Result };
std::string_view expectation_name(Expectation expectation);

enum class CorpusStatus : uint8_t { Pass, Fail, Crash, Timeout, NotRun };
std::string_view corpus_status_name(CorpusStatus status);

/// Returns the expectation for a file of StableHLO: a self-checking module has results; an artifact X.mlirbc has the
/// expectation of the text X.mlir in the same folder.
Expectation expectation_of_module(const std::string& path);

struct CorpusEntry {
  std::string name;
  Expectation expect = Expectation::Read;
};

struct CorpusResult {
  CorpusEntry entry;
  CorpusStatus status = CorpusStatus::NotRun;
  std::string detail = {};
  double seconds = 0;
};

struct CorpusReport {
  std::string path, backend;
  double seconds = 0;
  std::vector<CorpusResult> results = {};

  size_t count(Expectation expect, CorpusStatus status) const;
  size_t count(Expectation expect) const;
  bool passed() const;
};

/// Returns every entry. An error means that PATH is not a corpus.
Expected<std::vector<CorpusEntry>> list_corpus(const std::string& path);
/// Runs all entries that match the filters.
Expected<CorpusReport> run_corpus(const CorpusOptions& options);
/// Runs the worker process; returns its exit code.
int serve_corpus(const CorpusOptions& options);

/// Returns the report as JSON: {"cases": [{"name", "expect", "status", "detail", "seconds"}], ...}.
std::string corpus_json(const CorpusReport& report);
/// Returns the report as text for people.
std::string corpus_text(const CorpusReport& report, size_t most_failures);

}  // namespace collet::conformance
