// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/compare_float.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "hlo/base/diagnostics.h"
#include "hlo/formats/formats.h"
#include "hlo/stablehlo/bytecode.h"
#include "hlo/stablehlo/text.h"
#include "hlo/text/printer.h"
#include "sdk/tool/support/inputs.h"
#include "sdk/tool/support/read_module.h"
#include "sdk/tool/support/task.h"

namespace collet::tool {

using conformance::Program;
using conformance::Session;
using hlo::Literal;
using hlo::Literals;

hlo::CompileProgram compile_by(const Session& session) {
  return [&session](const hlo::Module& module) -> Expected<hlo::RunProgram> {
    COLLET_ASSIGN(Program program, session.compile(hlo::print_module(module), {.file = std::string(module.name())}));
    const auto shared = std::make_shared<Program>(std::move(program));
    return hlo::RunProgram([shared](const Literals& inputs) { return shared->run(inputs); });
  };
}

Expected<std::unique_ptr<hlo::mlir::Program>> read_stablehlo(std::string_view bytes, const std::string& file) {
  const hlo::Format format = hlo::format_of(bytes);
  if (format == hlo::Format::Artifact) {
    auto program = hlo::mlir::read_bytecode(bytes);
    return program.ok() ? std::move(program) : program.status().with_prefix(file + ": ");
  }
  if (format == hlo::Format::StablehloText) return hlo::mlir::read_text(bytes, file);
  return invalid_argument(file + " is " + std::string(hlo::format_name(format)) +
                          ", which has no quantized types: StableHLO is needed");
}

Expected<FloatComparison> FloatComparison::prepare(std::string_view quantized, const std::string& quantized_file,
                                                   const std::string& float_file, const std::vector<std::string>& words,
                                                   const ElidedChoice& elided) {
  FloatComparison out;
  out.float_file_ = float_file;
  COLLET_ASSIGN(out.quantized_, read_stablehlo(quantized, quantized_file));
  COLLET_ASSIGN(out.float_program_, read_module(float_file, elided));
  std::vector<hlo::Shape> shapes;
  std::vector<std::string> names;
  for (const hlo::InstrId id : out.float_program_->entry_computation().parameters) {
    shapes.push_back((*out.float_program_)[id].shape.without_layout());
    names.emplace_back((*out.float_program_)[id].name);
  }
  COLLET_ASSIGN(out.inputs_, make_inputs(words, float_file, shapes, names));
  return out;
}

Expected<Literals> FloatComparison::inputs(const std::vector<hlo::Shape>& parameters) const {
  std::vector<int64_t> numbers = hlo::float_parameters(*quantized_);
  if (numbers.empty())
    for (size_t i = 0; i < parameters.size(); ++i) numbers.push_back(static_cast<int64_t>(i));
  Literals out;
  for (size_t i = 0; i < numbers.size() && i < parameters.size(); ++i) {
    const auto number = static_cast<size_t>(numbers[i]);
    if (number >= inputs_.size())
      return invalid_argument(fmt::format("the quantized program takes parameter {} of the float program; {} has {}",
                                          number, float_file_, inputs_.size()));
    if (!inputs_[number].shape().same_without_layout(parameters[i]))
      return invalid_argument(fmt::format("parameter {} of the quantized program is {}; of the float program {}", i,
                                          parameters[i].to_string(), inputs_[number].shape().to_string()));
    out.push_back(inputs_[number]);
  }
  return out;
}

Status FloatComparison::run(const Session& session) {
  begin_task("comparing with '" + float_file_ + "' layer by layer");
  COLLET_ASSIGN(result_, hlo::compare_layers(*quantized_, *float_program_, inputs_, compile_by(session)));
  return ok_status();
}

std::string decibels_text(const hlo::ValueError& error) {
  const double db = error.decibels();
  if (std::isinf(db)) return db > 0 ? "exact" : "-inf dB";
  return fmt::format("{:.1f} dB", db);
}

std::string FloatComparison::text() const {
  std::string out;
  const auto row = [&](const std::string& name, const std::string& shape, const hlo::ValueError& error, size_t width,
                       size_t shape_width) {
    out += fmt::format("{:<{}}  {:<{}}  {:>9}  {:>11.4g}  {:>9.6f}\n", name, width, shape, shape_width,
                       decibels_text(error), error.largest, error.cosine);
  };
  size_t width = 7, shape_width = 5;
  for (const hlo::ComparedLayer& layer : result_.layers) {
    width = std::max(width, layer.name.size());
    shape_width = std::max(shape_width, layer.shape.size());
  }
  out += fmt::format("{:<{}}  {:<{}}  {:>9}  {:>11}  {:>9}\n", "layer", width, "shape", shape_width, "SNR", "max error",
                     "cosine");
  for (const hlo::ComparedLayer& layer : result_.layers) row(layer.name, layer.shape, layer.error, width, shape_width);
  row("results", "", result_.results, width, shape_width);
  if (result_.results.not_finite > 0)
    out += fmt::format(
        "{} elements of the results are NaN or infinite in both programs; the error is that of the others\n",
        result_.results.not_finite);
  if (!result_.why_unpaired.empty()) return out + "layers were not compared: " + result_.why_unpaired + "\n";
  if (result_.by_order) out += "the quantized program names no layers: products were paired by their order\n";
  if (!result_.first_growth) return out + "no layer's error grows much\n";
  const hlo::ComparedLayer& first = result_.layers[*result_.first_growth];
  out += fmt::format("{} is the first layer whose error grows: {}", first.name, decibels_text(first.error));
  return out + (first.op_name.empty() ? "\n" : fmt::format("; its op is {}\n", first.op_name));
}

void write_error(JsonWriter& json, const hlo::ValueError& error) {
  json.field("relative_error", error.relative).field("snr_db", error.decibels());
  json.field("max_abs_error", error.largest).field("cosine", error.cosine).field("not_finite", error.not_finite);
}

void FloatComparison::write(JsonWriter& json) const {
  json.begin_object().field("program", float_file_).key("layers").begin_array();
  for (const hlo::ComparedLayer& layer : result_.layers) {
    json.begin_object().field("name", layer.name).field("value", layer.value).field("op_name", layer.op_name);
    json.field("shape", layer.shape);
    write_error(json, layer.error);
    json.end_object();
  }
  json.end_array().key("results").begin_object();
  write_error(json, result_.results);
  json.end_object().field("paired_by_order", result_.by_order).field("unpaired", result_.why_unpaired);
  json.key("first_growth");
  if (result_.first_growth)
    json.value(result_.layers[*result_.first_growth].name);
  else
    json.null();
  json.end_object();
}

}  // namespace collet::tool
