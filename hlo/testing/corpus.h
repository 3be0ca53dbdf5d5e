// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/testing/inputs.h"

/// \file
/// Reads the corpus, programs with known results. It has two forms: an index of HLO texts (one JSON object per line), and
/// folders of models (case.json beside program.hlo). The known results were computed by XLA or by another implementation,
/// which case.json names.

namespace collet::hlo::testing {

/// One line of an index.
struct IndexEntry {
  std::string file;              ///< name of the HLO text in the index's folder
  bool read = true;              ///< whether XLA parses the text
  int64_t line = 0, column = 0;  ///< where XLA reports an error if it does not
  std::string message;           ///< XLA's error message
  std::string stopped_at;        ///< why the entry has no expected result; empty if it has one
  std::vector<Shape> inputs, outputs;
  int64_t offset = -1, bytes = 0;  ///< place of the results in the file of expected results; offset -1: no results
  bool has_result() const { return offset >= 0; }
};

/// An index: the files FOLDER.jsonl and FOLDER.expected.bin beside the folder FOLDER.
struct Index {
  std::string folder;    ///< the folder with the HLO texts
  std::string expected;  ///< path of the file of expected results
  std::vector<IndexEntry> entries;
};
Expected<Index> read_index(const std::string& path);
/// Reads the expected results of an entry that has_result(), one literal for each of its outputs.
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
  double xla_max_abs_error = 0;  ///< largest error of XLA's own result, measured against the reference
  double max_abs = 0;            ///< largest magnitude in the reference
  bool exact = false;            ///< no error is allowed; true for integers
  Literal sample;                ///< expected values, an array of rank 1 with `count` elements
};

struct ModelCase {
  std::string name;
  std::string program;    ///< path of program.hlo
  std::string reference;  ///< the implementation that computed the results; empty: a computation in float64
  std::vector<ModelInput> inputs;
  std::vector<ModelOutput> outputs;
};
/// Reads the model in `folder` and its expected results.
Expected<ModelCase> read_model(const std::string& folder);
/// Reads the shapes and rules of the inputs from a case.json, without program and results.
Expected<std::vector<ModelInput>> read_model_inputs(const std::string& case_json);
/// Returns the inputs of the program in the file `program`: by the rules of a case.json beside it, or else by element
/// type. They count as parameters from `first` on. INVALID_ARGUMENT if that file has another number of inputs than `parameters`.
Expected<std::vector<Literal>> inputs_of_program(const std::string& program, const std::vector<Shape>& parameters,
                                                 uint64_t first = 0);
/// Computes the inputs of a model. With `as_f64` the same numbers, after rounding to their own type, are returned as f64
/// and c128; integers and f8 keep their types.
std::vector<Literal> model_inputs(const std::vector<ModelInput>& inputs, bool as_f64, uint64_t first = 0);

}  // namespace collet::hlo::testing
