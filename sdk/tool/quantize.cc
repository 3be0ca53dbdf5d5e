// SPDX-License-Identifier: Apache-2.0
#include "hlo/quantize/quantize.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/runner/session.h"
#include "hlo/base/diagnostics.h"
#include "hlo/base/json.h"
#include "hlo/quantize/prepare.h"
#include "hlo/stablehlo/write.h"
#include "sdk/tool/support/backend_choice.h"
#include "sdk/tool/support/calibration_data.h"
#include "sdk/tool/support/compare_float.h"
#include "sdk/tool/support/elided.h"
#include "sdk/tool/support/files.h"
#include "sdk/tool/support/option_types.h"
#include "sdk/tool/support/read_module.h"
#include "sdk/tool/support/task.h"
#include "sdk/tool/support/terminal.h"
#include "sdk/tool/support/watchdog.h"
#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

using conformance::BackendChoice;
using conformance::Session;
using hlo::Literal;

struct Options {
  std::string file, scheme, method = "min-max", output = "-", emit = "stablehlo", json;
  std::vector<std::string> calibrate, weights, keep_float;
  double percentile = 99.99, max_error = 0, timeout = 0;
  unsigned mixed = 0, block = 0;
  bool has_max_error = false, has_mixed = false, no_layer_errors = false;
  BackendChoice backend;
  ElidedChoice elided;
};

std::string scheme_names() {
  std::vector<std::string_view> names;
  for (const hlo::QuantizationScheme& scheme : hlo::quantization_schemes()) names.push_back(scheme.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// Wrong usage that the parser does not see.
std::string wrong_usage(const Options& options) {
  const hlo::QuantizationScheme& scheme = *hlo::find_scheme(options.scheme);
  if (options.file.empty()) return "FILE is required\nSee: collet quantize --help";
  if (options.block != 0 && scheme.integers)
    return fmt::format("--block is for schemes whose products are floats, such as w4, not for {}", scheme.name);
  if (options.block != 0 && options.emit == "artifact")
    return "--emit artifact: artifacts have no types for weights in blocks; write stablehlo";
  if (options.calibrate.empty() && scheme.integers)
    return fmt::format("the scheme {} needs data for the ranges of activations: name it by --calibrate", scheme.name);
  if (options.calibrate.empty() && (options.has_mixed || options.has_max_error))
    return "--mixed and --max-error measure errors with the data of --calibrate";
  if (options.calibrate.empty() && !options.weights.empty())
    return "--weights takes the values of parameters from the data of --calibrate";
  if (options.output == "-" && options.json == "-") return "--output and --json cannot both be stdout";
  return "";
}

// Returns the numbers of the parameters that --weights names.
Expected<std::vector<size_t>> weight_numbers(const Options& options, const std::vector<DataParameter>& parameters,
                                             const CalibrationData& data) {
  std::vector<size_t> out;
  for (const std::string& word : options.weights) {
    const size_t dash = word.find('-');
    const auto first = parse_whole_number(word.substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_whole_number(word.substr(dash + 1));
    const auto named =
        std::find_if(parameters.begin(), parameters.end(), [&](const DataParameter& one) { return one.name == word; });
    if (word == "auto") {
      if (data.batches.size() < 2)
        return invalid_argument(
            "--weights auto takes the parameters that have one value in all batches, and there is one batch: name "
            "them");
      for (size_t i = 0; i < parameters.size(); ++i)
        if (data.same[i]) out.push_back(i);
    } else if (named != parameters.end()) {
      out.push_back(static_cast<size_t>(named - parameters.begin()));
    } else if (first && last && *first <= *last && *last < parameters.size()) {
      for (uint64_t i = *first; i <= *last; ++i) out.push_back(static_cast<size_t>(i));
    } else {
      std::vector<std::string> names;
      for (const DataParameter& one : parameters) names.push_back(one.name);
      return invalid_argument(fmt::format("--weights {}: the program has no such parameter; it has {}, numbers 0 to {}",
                                          word, fmt::join(names, ", "), static_cast<int64_t>(parameters.size()) - 1));
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  for (const size_t i : out)
    if (!data.same[i] && !options.calibrate[0].starts_with("random:"))
      return invalid_argument(
          fmt::format("--weights: parameter {} ({}) has several values in the data", i, parameters[i].name));
  return out;
}

/// The float program, ready to be quantized, and its data.
struct Prepared {
  std::unique_ptr<hlo::Module> module;
  std::vector<hlo::Literals> batches;
  std::vector<int64_t> parameters;  ///< numbers in the float program; empty: all
  std::vector<std::string> notes;
};

Expected<Prepared> prepare(const Options& options) {
  Prepared out;
  COLLET_ASSIGN(out.module, read_module(options.file, options.elided));
  std::vector<DataParameter> parameters;
  for (const hlo::InstrId id : out.module->entry_computation().parameters) {
    const hlo::Instruction& instr = (*out.module)[id];
    if (!instr.shape.is_array() || instr.shape.has_dynamic())
      return invalid_argument(
          fmt::format("parameter {} is {}; arrays of known size are quantized", instr.name, instr.shape.to_string()));
    parameters.push_back({std::string(instr.name), instr.shape.without_layout()});
  }
  begin_task("reading the data");
  COLLET_ASSIGN(CalibrationData data, read_calibration_data(options.calibrate, options.file, parameters));
  out.notes = data.notes;
  COLLET_ASSIGN(const std::vector<size_t> weights, weight_numbers(options, parameters, data));
  std::map<int64_t, Literal> values;
  for (const size_t i : weights) values.emplace(static_cast<int64_t>(i), data.batches[0][i]);
  for (std::vector<Literal>& batch : data.batches) {
    hlo::Literals kept;
    for (size_t i = 0; i < batch.size(); ++i)
      if (!values.contains(static_cast<int64_t>(i))) kept.push_back(std::move(batch[i]));
    out.batches.push_back(std::move(kept));
  }
  if (!weights.empty())
    for (size_t i = 0; i < parameters.size(); ++i)
      if (!values.contains(static_cast<int64_t>(i))) out.parameters.push_back(static_cast<int64_t>(i));
  begin_task("preparing '" + options.file + "'");
  COLLET_TRY(hlo::bind_parameters(*out.module, values));
  COLLET_TRY(hlo::prepare_for_quantization(*out.module));
  return out;
}

hlo::QuantizeOptions quantize_options(const Options& options, const Prepared& prepared) {
  hlo::QuantizeOptions out;
  out.scheme = hlo::find_scheme(options.scheme);
  const auto methods = hlo::calibration_methods();
  out.method =
      static_cast<hlo::CalibrationMethod>(std::find(methods.begin(), methods.end(), options.method) - methods.begin());
  out.percentile = options.percentile;
  out.keep_float = options.keep_float;
  out.block = options.block;
  out.layer_errors = !options.no_layer_errors;
  if (options.has_mixed) out.mixed = options.mixed;
  if (options.has_max_error) out.max_error = options.max_error;
  out.parameters = prepared.parameters;
  return out;
}

// Shows a bar for each kind of work.
class Progresses {
 public:
  void update(std::string_view what, size_t done, size_t total) {
    if (!bar_ || what != what_) {
      bar_.emplace(what, total);
      what_ = what;
      begin_task(what_);
    }
    bar_->update(done);
  }

 private:
  std::string what_;
  std::optional<Progress> bar_;
};

// The report.

std::string_view form_name(hlo::LayerForm form) {
  return form == hlo::LayerForm::Integers ? "integers" : form == hlo::LayerForm::Weights ? "weights" : "float";
}

void write_value(JsonWriter& json, const hlo::ValueReport& value) {
  json.begin_object().field("name", value.name).field("shape", value.shape).field("low", value.low);
  json.field("high", value.high).field("scale", value.uniform.scale).field("zero_point", value.uniform.zero_point);
  json.field("clipped_share", value.clipped).end_object();
}

void write_names(JsonWriter& json, std::string_view key, const std::vector<std::string>& names) {
  json.key(key).begin_array();
  for (const std::string& name : names) json.value(name);
  json.end_array();
}

void write_layer(JsonWriter& json, const hlo::LayerReport& layer) {
  json.begin_object().field("name", layer.name).field("op", layer.op).field("op_name", layer.op_name);
  json.field("shape", layer.shape).field("form", form_name(layer.form)).field("why_float", layer.why_float);
  json.key("inputs").begin_array();
  for (const hlo::ValueReport& input : layer.inputs) write_value(json, input);
  json.end_array();
  if (layer.output) write_value(json.key("output"), *layer.output);
  if (layer.weight_bits > 0) {
    json.key("weights").begin_object().field("bits", layer.weight_bits).field("axis", layer.weight_axis);
    if (layer.weight_block > 0) json.field("block", layer.weight_block);
    json.field("least_scale", layer.least_scale).field("largest_scale", layer.most_scale).end_object();
  }
  if (layer.error) {
    json.key("alone").begin_object();
    write_error(json, *layer.error);
    json.end_object();
  }
  json.end_object();
}

std::string as_json(const Options& options, const Prepared& prepared, const hlo::QuantizeReport& made) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("program", options.file).field("scheme", options.scheme).field("method", options.method);
  if (options.method == "percentile") json.field("percentile", options.percentile);
  json.field("batches", prepared.batches.size()).field("error_batches", made.error_batches);
  json.key("layers").begin_array();
  for (const hlo::LayerReport& layer : made.layers) write_layer(json, layer);
  json.end_array();
  write_names(json, "integer_ops", made.integer_ops);
  write_names(json, "float_ops", made.float_ops);
  write_names(json, "products_in_loops_and_branches", made.inner_products);
  std::vector<std::string> notes = prepared.notes;
  notes.insert(notes.end(), made.notes.begin(), made.notes.end());
  write_names(json, "notes", notes);
  if (made.error) {
    json.key("results").begin_object();
    write_error(json, *made.error);
    json.end_object();
  }
  json.end_object();
  return out + "\n";
}

std::string names_line(const std::vector<std::string>& names) {
  constexpr size_t kMost = 8;
  const std::vector<std::string> first(names.begin(),
                                       names.begin() + static_cast<int64_t>(std::min(kMost, names.size())));
  return fmt::format("{} ({}{})", names.size(), fmt::join(first, ", "), names.size() > kMost ? ", ..." : "");
}

void print_report(std::FILE* file, const Prepared& prepared, const hlo::QuantizeReport& made) {
  const auto range_text = [](const hlo::ValueReport& value) {
    return fmt::format("[{:.4g}, {:.4g}] {:.4g}:{}", value.low, value.high, value.uniform.scale,
                       value.uniform.zero_point);
  };
  std::vector<std::vector<std::string>> rows = {
      {"layer", "op", "weights", "input: range scale:zero", "output", "clipped", "alone"}};
  size_t quantized = 0;
  for (const hlo::LayerReport& layer : made.layers) {
    quantized += layer.form != hlo::LayerForm::Float ? 1 : 0;
    std::vector<std::string> row = {layer.name, layer.op};
    if (layer.form == hlo::LayerForm::Float) {
      row.push_back("float: " + layer.why_float);
      row.resize(6);
    } else {
      row.push_back(layer.weight_bits == 0   ? "none"
                    : layer.weight_block > 0 ? fmt::format("s{}, blocks of {}", layer.weight_bits, layer.weight_block)
                    : layer.weight_axis < 0  ? fmt::format("s{}", layer.weight_bits)
                                             : fmt::format("s{}, axis {}", layer.weight_bits, layer.weight_axis));
      double clipped = 0;
      std::string inputs;
      for (const hlo::ValueReport& input : layer.inputs) {
        inputs += (inputs.empty() ? "" : " ") + range_text(input);
        clipped = std::max(clipped, input.clipped);
      }
      row.push_back(inputs.empty() ? "float" : inputs);
      row.push_back(layer.output ? range_text(*layer.output) : "float");
      row.push_back(fmt::format("{:.2g} %", 100 * clipped));
    }
    row.push_back(layer.error ? decibels_text(*layer.error) : "");
    rows.push_back(std::move(row));
  }
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      if (!row[i].starts_with("float: ")) widths[i] = std::max(widths[i], row[i].size());
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      if (row[i].starts_with("float: ")) {
        line += row[i];
        break;
      }
      line += fmt::format("{:<{}}{}", row[i], widths[i], i + 1 < row.size() ? "  " : "");
    }
    line.erase(line.find_last_not_of(' ') + 1);
    show(file, "{}\n", line);
  }
  show(file, "{} of {} layers quantized", quantized, made.layers.size());
  if (made.error)
    show(file, "; error of the results {:.3g} ({}), of {} batches", made.error->relative, decibels_text(*made.error),
         made.error_batches);
  show(file, "\n");
  if (!made.integer_ops.empty()) show(file, "other ops on integers: {}\n", names_line(made.integer_ops));
  if (!made.float_ops.empty()) show(file, "other ops on floats: {}\n", names_line(made.float_ops));
  if (!made.inner_products.empty())
    show(file, "products in loops and branches stay float: {}\n", names_line(made.inner_products));
  for (const auto* notes : {&prepared.notes, &made.notes})
    for (const std::string& note : *notes) show(file, "note: {}\n", note);
}

Expected<std::string> emitted(const hlo::mlir::Program& program, const std::string& form) {
  if (form == "stablehlo") return hlo::mlir::print_program(program);
  COLLET_ASSIGN(const uint64_t version, hlo::mlir::parse_vhlo_version(hlo::kDefaultArtifactVersion));
  return hlo::mlir::write_bytecode(program, version);
}

int quantize(Options options) {
  // In `quantize --calibrate DATA FILE` the parser takes FILE as the last word of the data.
  if (options.file.empty() && options.calibrate.size() > 1) {
    options.file = options.calibrate.back();
    options.calibrate.pop_back();
  }
  if (const std::string wrong = wrong_usage(options); !wrong.empty()) return report(kUsage, "quantize: " + wrong);
  for (const std::string& path : {options.output, options.json})
    if (const Status status = check_writable(path); !status.ok()) return report(status);
  watch_process(options.timeout);
  const Expected<Prepared> prepared = prepare(options);
  if (!prepared.ok()) return report(prepared.status());
  begin_task("opening " + options.backend.name);
  const Expected<std::unique_ptr<Session>> session = Session::open(options.backend);
  if (!session.ok()) return report_unopened(session.status());
  Expected<hlo::QuantizedProgram> made = [&] {
    Progresses progress;
    return hlo::quantize(*prepared->module, prepared->batches, quantize_options(options, *prepared),
                         compile_by(**session),
                         [&](std::string_view what, size_t done, size_t total) { progress.update(what, done, total); });
  }();
  if (!made.ok()) return report(made.status());
  begin_task("writing '" + options.output + "'");
  const Expected<std::string> text = emitted(*made->program, options.emit);
  if (!text.ok()) return report(text.status());
  if (const Status status = write_file(options.output, *text); !status.ok()) return report(status);
  if (!options.json.empty()) {
    const Status status = write_file(options.json, as_json(options, *prepared, made->report));
    if (!status.ok()) return report(status);
  }
  if (options.json != "-") print_report(options.output == "-" ? stderr : stdout, *prepared, made->report);
  begin_task("closing " + options.backend.name);
  return kDone;
}

constexpr char kFooter[] = R"(Post-training quantization: runs the float program on the data, chooses ranges,
and writes StableHLO with quantized types. Layers are dots and convolutions of
f32, bf16 or f16 with the bias behind them. DATA is .npz or .npy files, folders
of these or of folders with a file for each parameter, or random:SEED for a
trial; an array of several times a parameter's shape is as many batches. Names
of --keep-float are those of instructions, of ops, or the frontend's, with * and
?.

Examples:
  collet quantize model.mlir --calibrate images.npy -o model.int8.mlir
  collet quantize model.mlir --calibrate data.npz --weights auto --method mse
  collet quantize model.mlir --calibrate batches/ --max-error 0.01 --json -
  collet quantize model.mlir --scheme w4 --block 32 -o model.int4.mlir
  collet run model.int8.mlir --compare-float model.mlir --inputs x.npy)";

// Makes a value that is in no list wrong usage, with the nearest one of the list.
template <typename Names>
CLI::Validator one_of(Names names) {
  return CLI::Validator(
      [names](const std::string& word) -> std::string {
        std::vector<std::string_view> known(names.begin(), names.end());
        if (std::find(known.begin(), known.end(), word) != known.end()) return "";
        const std::string_view near = nearest_spelling(word, known);
        return near.empty() ? fmt::format("there is no '{}': there are {}", word, fmt::join(known, ", "))
                            : fmt::format("there is no '{}'; did you mean {}?", word, near);
      },
      "");
}

CLI::Validator number_between(double above, double most, const char* what) {
  return CLI::Validator(
      [=](const std::string& word) -> std::string {
        double number = 0;
        const bool parsed = CLI::detail::lexical_cast(word, number);
        return parsed && number > above && number <= most ? "" : fmt::format("{} is no {}", word, what);
      },
      "");
}

}  // namespace

Action add_quantize(CLI::App& verb) {
  auto options = std::make_shared<Options>();
  options->scheme = hlo::quantization_schemes()[0].name;
  verb.add_option("FILE", options->file, "The float program; - is stdin")->type_name("FILE");
  verb.add_option("--calibrate", options->calibrate, "Data for the ranges of activations")
      ->type_name("DATA")
      ->expected(1, -1);
  std::vector<std::string_view> schemes;
  for (const hlo::QuantizationScheme& scheme : hlo::quantization_schemes()) schemes.push_back(scheme.name);
  verb.add_option("--scheme", options->scheme,
                  fmt::format("What is stored as integers: {} (default: {})", scheme_names(), options->scheme))
      ->check(one_of(schemes))
      ->type_name("NAME");
  const std::vector<std::string_view> methods(hlo::calibration_methods().begin(), hlo::calibration_methods().end());
  verb.add_option("--method", options->method,
                  fmt::format("How ranges are found: {} (default: {})", fmt::join(methods, ", "), options->method))
      ->check(one_of(methods))
      ->type_name("NAME");
  verb.add_option("--percentile", options->percentile,
                  "Share of magnitudes inside of a range, of --method percentile (default: 99.99)")
      ->check(number_between(0, 100, "percentage above 0"))
      ->type_name("P");
  verb.add_option("--weights", options->weights,
                  "Parameters that are weights, by name or number (0-3,7), or auto: their values come from the data "
                  "and become constants")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAMES");
  add_number_option(verb, "--block", options->block,
                    "A scale for each so many weights along the sum, of schemes whose products are floats", 2u,
                    1u << 20);
  verb.add_option("--keep-float", options->keep_float, "Layers that stay float")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAMES");
  auto* mixed = add_number_option(verb, "--mixed", options->mixed, "So many of the most sensitive layers stay float",
                                  1u, 1000000u);
  auto* most = verb.add_option("--max-error", options->max_error,
                               "As few layers stay float as this error of the results allows: root of the sum of "
                               "squared errors / sum of squares")
                   ->check(number_between(0, 1e9, "error above 0"))
                   ->type_name("E");
  mixed->excludes(most);
  verb.add_flag("--no-layer-errors", options->no_layer_errors, "Do not measure the error of each layer alone");
  add_backend_options(verb,
                      {"Where programs run on the data: a backend by name or path",
                       "Do without the fallback: what the backend declines is an error"},
                      options->backend);
  add_elided_option(verb, options->elided);
  verb.add_option("--emit", options->emit, "Form of the output: stablehlo, artifact (default: stablehlo)")
      ->check(one_of(std::vector<std::string_view>{"stablehlo", "artifact"}))
      ->type_name("FORM");
  verb.add_option("-o,--output", options->output, "Where to write it; - is stdout")->type_name("FILE");
  add_seconds_option(verb, "--timeout", options->timeout, "Give up after so many seconds, with exit code 5; 0: never");
  verb.add_option("--json", options->json, "Write the report as JSON to this file; - is stdout")->type_name("FILE");
  verb.footer(kFooter);
  return [options, mixed, most] {
    options->has_mixed = mixed->count() > 0;
    options->has_max_error = most->count() > 0;
    return quantize(*options);
  };
}

}  // namespace collet::tool
