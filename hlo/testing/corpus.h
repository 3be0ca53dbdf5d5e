// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/testing/inputs.h"

/// \file
/// Programs with known results: an index of texts (one JSON object a line), and folders of models (case.json beside
/// program.hlo). What is known of them came from another implementation, which is named there.

namespace collet::hlo::testing {

/// A line of an index.
struct IndexEntry {
  std::string file;
  bool read = true;              ///< the other implementation reads it
  int64_t line = 0, column = 0;  ///< where it refuses it
  std::string message;
  std::string stopped_at;  ///< why there is no result; empty where there is one
  std::vector<Shape> inputs, outputs;
  int64_t offset = -1, bytes = 0;  ///< of the results in the file of expected results
  bool has_result() const { return offset >= 0; }
};

/// An index: FOLDER.jsonl beside the folder FOLDER, and FOLDER.expected.bin.
struct Index {
  std::string folder;    ///< where the texts are
  std::string expected;  ///< the file of results
  std::vector<IndexEntry> entries;
};
Expected<Index> read_index(const std::string& path);
/// The results of an entry, in order.
Expected<std::vector<Literal>> expected_results(const Index& index, const IndexEntry& entry);

struct ModelInput {
  Shape shape;
  InputRule rule;
  bool donated = false;
};

/// A sample of a result: every `stride`-th element in row-major order.
struct ModelOutput {
  Shape shape;
  int64_t stride = 1, count = 0;
  double xla_max_abs_error = 0, max_abs = 0;
  bool exact = false;  ///< integers: no error is allowed
  Literal sample;      ///< rank 1, of the stored type
};

struct ModelCase {
  std::string name;
  std::string program;    ///< path of program.hlo
  std::string reference;  ///< what the results came from; empty: float64
  std::vector<ModelInput> inputs;
  std::vector<ModelOutput> outputs;
};
/// The model in `folder`, with its expected results.
Expected<ModelCase> read_model(const std::string& folder);
/// The rules of a case.json's inputs alone.
Expected<std::vector<ModelInput>> read_model_inputs(const std::string& case_json);
/// Its inputs; `as_f64`: the same rounded numbers as f64 and c128 (integers and f8 stay).
std::vector<Literal> model_inputs(const std::vector<ModelInput>& inputs, bool as_f64);

}  // namespace collet::hlo::testing
