// SPDX-License-Identifier: Apache-2.0
#include "hlo/testing/corpus.h"

#include <algorithm>
#include <filesystem>

#include <boost/json.hpp>
#include <cstdio>
#include <sstream>

#include "hlo/base/files.h"

namespace collet::hlo::testing {
namespace {

namespace json = boost::json;

constexpr uint64_t kMostIndexBytes = uint64_t{1} << 30;

Expected<std::string> contents(const std::string& path) {
  Expected<std::string> bytes = read_file(path, kMostIndexBytes);
  if (!bytes.ok()) return not_found(bytes.status().message());
  return bytes;
}

Expected<std::string> part_of(const std::string& path, int64_t offset, int64_t bytes) {
  if (offset < 0 || bytes < 0) return invalid_argument(path + " has no such place");
  const Expected<InputFile> file = InputFile::open(path);
  if (!file.ok()) return not_found(file.status().message());
  return file->read(static_cast<uint64_t>(offset), static_cast<uint64_t>(bytes));
}

Expected<json::object> parse_object(std::string_view text, const std::string& where) {
  boost::system::error_code error;
  json::value value = json::parse(json::string_view(text.data(), text.size()), error);
  if (error || !value.is_object()) return invalid_argument(where + ": no JSON object: " + error.message());
  return std::move(value.as_object());
}

std::string text_of(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->as_string().c_str()) : std::string();
}

double number_of(const json::object& object, const char* key, double otherwise) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr) return otherwise;
  boost::system::error_code error;
  const double number = value->to_number<double>(error);
  return error ? otherwise : number;
}

int64_t integer_of(const json::object& object, const char* key, int64_t otherwise) {
  return static_cast<int64_t>(number_of(object, key, static_cast<double>(otherwise)));
}

const json::array& array_of(const json::object& object, const char* key) {
  static const json::array kNone;
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_array() ? value->as_array() : kNone;
}

Expected<std::vector<Shape>> shapes_of(const json::object& object, const char* key) {
  std::vector<Shape> shapes;
  for (const json::value& value : array_of(object, key)) {
    if (!value.is_string()) return invalid_argument("a shape must be a string");
    COLLET_ASSIGN(Shape shape, plain_shape(std::string_view(value.as_string().data(), value.as_string().size())));
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

Expected<IndexEntry> entry_of(const json::object& object) {
  IndexEntry entry;
  entry.file = text_of(object, "file");
  if (entry.file.empty()) return invalid_argument("an entry needs a file");
  entry.read = text_of(object, "xla") == "read";
  entry.line = integer_of(object, "line", 0);
  entry.column = integer_of(object, "column", 0);
  entry.message = text_of(object, "message");
  entry.stopped_at = text_of(object, "stopped_at");
  entry.bytes = integer_of(object, "bytes", 0);
  entry.offset = object.contains("bytes") ? integer_of(object, "offset", 0) : -1;
  if (!entry.has_result()) return entry;
  COLLET_ASSIGN(entry.inputs, shapes_of(object, "inputs"));
  COLLET_ASSIGN(entry.outputs, shapes_of(object, "outputs"));
  return entry;
}

Expected<ModelInput> input_of(const json::object& object) {
  ModelInput input;
  COLLET_ASSIGN(input.shape, plain_shape(text_of(object, "shape")));
  const std::string rule = text_of(object, "rule");
  if (rule == "unit") {
    input.rule.kind = InputRule::Kind::Unit;
  } else if (rule == "integer") {
    input.rule.kind = InputRule::Kind::Integer;
  } else if (rule == "bit") {
    input.rule.kind = InputRule::Kind::Bit;
  } else {
    return invalid_argument("there is no input rule '" + rule + "'");
  }
  input.rule.scale = number_of(object, "scale", 1);
  input.rule.offset = number_of(object, "offset", 0);
  input.rule.modulo = std::max<int64_t>(integer_of(object, "modulo", 1), 1);
  input.rule.low = integer_of(object, "low", 0);
  const json::value* donated = object.if_contains("donated");
  input.donated = donated != nullptr && donated->is_bool() && donated->as_bool();
  return input;
}

Expected<ModelOutput> output_of(const json::object& object, const std::string& expected) {
  ModelOutput output;
  COLLET_ASSIGN(output.shape, plain_shape(text_of(object, "shape")));
  output.stride = integer_of(object, "stride", 1);
  output.count = integer_of(object, "count", 0);
  output.exact = !object.contains("xla_max_abs_error");
  output.xla_max_abs_error = number_of(object, "xla_max_abs_error", 0);
  output.max_abs = number_of(object, "max_abs", 0);
  const std::optional<Type> stored = type_from_text(text_of(object, "stored"));
  const int64_t elements = output.shape.element_count();
  if (!stored || output.stride < 1 || output.count < 0 ||
      (output.count > 0 && (output.count - 1) * output.stride >= elements)) {
    return invalid_argument("the sample of an output does not fit its shape");
  }
  const Shape shape = Shape::array(*stored, {output.count});
  COLLET_ASSIGN(const std::string bytes, part_of(expected, integer_of(object, "offset", 0), shape.byte_size()));
  output.sample = Literal::from_bytes(shape, bytes.data());
  return output;
}

}  // namespace

Expected<Index> read_index(const std::string& path) {
  Index index;
  index.folder = path.substr(0, path.size() - std::string_view(".jsonl").size());
  index.expected = index.folder + ".expected.bin";
  COLLET_ASSIGN(const std::string text, contents(path));
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string where = path + ":" + std::to_string(number);
    COLLET_ASSIGN(const json::object object, parse_object(line, where));
    Expected<IndexEntry> entry = entry_of(object);
    if (!entry.ok()) return entry.status().with_prefix(where + ": ");
    index.entries.push_back(*std::move(entry));
  }
  return index;
}

Expected<std::vector<Literal>> expected_results(const Index& index, const IndexEntry& entry) {
  COLLET_ASSIGN(const std::string bytes, part_of(index.expected, entry.offset, entry.bytes));
  std::vector<Literal> results;
  int64_t at = 0;
  for (const Shape& shape : entry.outputs) {
    if (at + shape.byte_size() > entry.bytes) return invalid_argument(entry.file + ": its results are too short");
    results.push_back(Literal::from_bytes(shape, bytes.data() + at));
    at += shape.byte_size();
  }
  if (at != entry.bytes) return invalid_argument(entry.file + ": its results are too long");
  return results;
}

Expected<std::vector<ModelInput>> read_model_inputs(const std::string& case_json) {
  COLLET_ASSIGN(const std::string text, contents(case_json));
  COLLET_ASSIGN(const json::object object, parse_object(text, case_json));
  std::vector<ModelInput> inputs;
  for (const json::value& value : array_of(object, "inputs")) {
    if (!value.is_object()) return invalid_argument(case_json + ": an input is no object");
    Expected<ModelInput> input = input_of(value.as_object());
    if (!input.ok()) return input.status().with_prefix(case_json + ": ");
    inputs.push_back(*std::move(input));
  }
  return inputs;
}

Expected<ModelCase> read_model(const std::string& folder) {
  ModelCase model;
  const std::string case_json = folder + "/case.json";
  COLLET_ASSIGN(const std::string text, contents(case_json));
  COLLET_ASSIGN(const json::object object, parse_object(text, case_json));
  model.name = text_of(object, "name");
  model.program = folder + "/program.hlo";
  model.reference = text_of(object, "reference");
  COLLET_ASSIGN(model.inputs, read_model_inputs(case_json));
  for (const json::value& value : array_of(object, "outputs")) {
    if (!value.is_object()) return invalid_argument(case_json + ": an output is no object");
    Expected<ModelOutput> output = output_of(value.as_object(), folder + "/expected.bin");
    if (!output.ok()) return output.status().with_prefix(case_json + ": ");
    model.outputs.push_back(*std::move(output));
  }
  return model;
}

std::vector<Literal> model_inputs(const std::vector<ModelInput>& inputs, bool as_f64, uint64_t first) {
  std::vector<Literal> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Literal value = input_by_rule(inputs[i].rule, inputs[i].shape, first + i);
    const Type type = value.type();
    const bool widens = type == Type::F32 || type == Type::F16 || type == Type::BF16 || type == Type::C64;
    if (as_f64 && widens) value = converted(value, value.shape().with_type(is_complex(type) ? Type::C128 : Type::F64));
    values.push_back(std::move(value));
  }
  return values;
}

Expected<std::vector<Literal>> inputs_of_program(const std::string& program, const std::vector<Shape>& parameters,
                                                 uint64_t first) {
  namespace fs = std::filesystem;
  const fs::path beside = fs::path(program).parent_path() / "case.json";
  std::error_code error;
  if (program == "-" || !fs::exists(beside, error)) return inputs_by_type(parameters, first);
  COLLET_ASSIGN(const std::vector<ModelInput> inputs, read_model_inputs(beside.string()));
  if (inputs.size() != parameters.size()) {
    return invalid_argument(beside.string() + " has " + std::to_string(inputs.size()) + " inputs, the program " +
                            std::to_string(parameters.size()) + " parameters");
  }
  return model_inputs(inputs, false, first);
}

}  // namespace collet::hlo::testing
