// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/literal.h"
#include "hlo/ir/module.h"
#include "hlo/quantize/calibrate.h"
#include "hlo/quantize/write.h"
#include "hlo/stablehlo/mlir.h"

/// \file
/// Post-training quantization: finds ranges by running the float program on data, and writes the program with quantized types.

namespace collet::hlo {

/// What is stored as integers.
struct QuantizationScheme {
  std::string_view name, text;
  int weight_bits = 8;
  bool integers = true;    ///< products are computed on integers; false: only weights are stored as integers
  bool symmetric = false;  ///< no value has a zero point
};
/// Returns all schemes; the first one is the default.
std::span<const QuantizationScheme> quantization_schemes();
/// Returns the scheme of that name; null if there is none.
const QuantizationScheme* find_scheme(std::string_view name);

struct QuantizeOptions {
  const QuantizationScheme* scheme = quantization_schemes().data();
  CalibrationMethod method = CalibrationMethod::MinMax;
  double percentile = 99.99;
  /// Layers that stay float: names of instructions, op names of the frontend, or names of ops, with `*` and `?`.
  std::vector<std::string> keep_float;
  /// Weights of a scheme whose products are floats have a scale for each so many elements of what is summed over; 0: for each
  /// channel. Weights that this does not divide keep a scale for each channel, with a note.
  int64_t block = 0;
  bool layer_errors = true;         ///< measure the error of each layer that is quantized alone
  std::optional<size_t> mixed;      ///< so many layers, the most sensitive ones, stay float
  std::optional<double> max_error;  ///< as few of the most sensitive layers stay float as the error allows
  std::vector<int64_t> parameters;  ///< numbers of the float program's parameters; empty: those of the module
};

/// One call of the program: a literal for each parameter, or each result.
using Literals = std::vector<Literal>;
using RunProgram = std::function<Expected<Literals>(const Literals&)>;
/// Compiles a module, so that it can be run several times.
using CompileProgram = std::function<Expected<RunProgram>(const Module&)>;
/// Is told what is being done, and how much of it is.
using ReportProgress = std::function<void(std::string_view what, size_t done, size_t total)>;

/// How far values lie from the right ones.
struct ValueError {
  double relative = 0;  ///< root of the sum of squared errors / sum of squares; infinite if the right values are all 0
  double largest = 0;   ///< largest absolute error
  double cosine = 1;    ///< of the angle between the two
  uint64_t not_finite = 0;  ///< numbers that are NaN, or infinite with one sign, on both sides, and count for nothing
  /// Returns the ratio of signal to noise in dB: -20 log10(relative); infinite without error.
  double decibels() const;
};
/// Adds up errors over arrays and batches.
class ErrorSum {
 public:
  /// Counts arrays of floats, and of complex numbers as two each; of others, each element that differs counts as an error of 1 in a
  /// value of 1. NaN and infinities on one side alone, and arrays of different sizes, count as an infinite error.
  void add(const Literal& right, const Literal& other);
  ValueError error() const;

 private:
  void add(double right, double other);

  double squares_ = 0, other_squares_ = 0, errors_ = 0, products_ = 0, largest_ = 0;
  uint64_t not_finite_ = 0;
};

/// The quantization of a value.
struct ValueReport {
  std::string name;  ///< of the instruction
  std::string shape;
  double low = 0, high = 0;  ///< the range, with 0
  Uniform uniform;
  double clipped = 0;  ///< share of the values seen that is outside of the range
};

struct LayerReport {
  std::string name;     ///< of the product
  std::string op;       ///< "dot" or "convolution"
  std::string op_name;  ///< of the frontend; empty: unknown
  std::string shape;    ///< of the result
  LayerForm form = LayerForm::Float;
  std::string why_float;                   ///< empty if the layer is quantized
  std::vector<ValueReport> inputs;         ///< operands that are no constants, if it is computed on integers
  std::optional<ValueReport> output;       ///< nothing if the result is not stored as integers
  int weight_bits = 0;                     ///< 0: there are no quantized weights
  int64_t weight_axis = -1;                ///< -1: one scale, or blocks
  int64_t weight_block = 0;                ///< elements of what is summed over that share a scale; 0: no blocks
  double least_scale = 0, most_scale = 0;  ///< of the weights
  std::optional<ValueError> error;         ///< of the program's results if this layer alone is quantized
};

struct QuantizeReport {
  std::vector<LayerReport> layers;          ///< in the order of the program
  std::vector<std::string> integer_ops;     ///< names of other ops that are computed on integers
  std::vector<std::string> float_ops;       ///< names of other ops on floats
  std::vector<std::string> inner_products;  ///< products in loops and branches, which stay float
  std::vector<std::string> notes;           ///< what the user should know
  std::optional<ValueError> error;          ///< of the program's results; nothing without data
  size_t batches = 0;                       ///< of the calibration
  size_t error_batches = 0;                 ///< with which errors were measured
};

struct QuantizedProgram {
  std::unique_ptr<mlir::Program> program;
  QuantizeReport report;
};

/// Quantizes a module after prepare_for_quantization. Each batch has a literal for each parameter; a scheme that needs ranges needs
/// one batch at least. Errors: no layer can be quantized; a value is NaN or infinite; a name of keep_float matches nothing.
Expected<QuantizedProgram> quantize(const Module& module, std::span<const Literals> batches,
                                    const QuantizeOptions& options, const CompileProgram& compile,
                                    const ReportProgress& progress = {});

}  // namespace collet::hlo
