// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/runner/session.h"
#include "hlo/base/json.h"
#include "hlo/base/status.h"
#include "hlo/quantize/compare.h"
#include "hlo/stablehlo/mlir.h"
#include "sdk/tool/support/elided.h"

namespace collet::tool {

/// Returns a function that compiles modules for a backend; the session must outlive it and what it compiles.
hlo::CompileProgram compile_by(const conformance::Session& session);

/// Reads a StableHLO program, as text or as an artifact, with its quantized types. INVALID_ARGUMENT for another form.
Expected<std::unique_ptr<hlo::mlir::Program>> read_stablehlo(std::string_view bytes, const std::string& file);

/// What `--compare-float` needs, and what it finds.
class FloatComparison {
 public:
  /// Reads both programs and makes the inputs of the float program. `words` are those of --inputs.
  static Expected<FloatComparison> prepare(std::string_view quantized, const std::string& quantized_file,
                                           const std::string& float_file, const std::vector<std::string>& words,
                                           const ElidedChoice& elided);
  /// Returns the inputs that the quantized program takes, of those of the float program. `parameters` are its own.
  Expected<hlo::Literals> inputs(const std::vector<hlo::Shape>& parameters) const;
  /// Runs both programs on the backend of the session.
  Status run(const conformance::Session& session);

  const hlo::LayerComparison& result() const { return result_; }
  /// Returns the comparison as a table.
  std::string text() const;
  /// Writes the comparison as an object.
  void write(JsonWriter& json) const;

 private:
  FloatComparison() = default;
  std::string float_file_;
  std::unique_ptr<hlo::mlir::Program> quantized_;
  std::unique_ptr<hlo::Module> float_program_;
  hlo::Literals inputs_;
  hlo::LayerComparison result_;
};

/// Writes an error as the fields relative_error, snr_db, max_abs_error and cosine.
void write_error(JsonWriter& json, const hlo::ValueError& error);
/// Returns a ratio of signal to noise for people: "43.1 dB", or "exact".
std::string decibels_text(const hlo::ValueError& error);

}  // namespace collet::tool
