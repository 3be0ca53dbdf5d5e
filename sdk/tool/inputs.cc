// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/inputs.h"

#include <charconv>
#include <filesystem>

#include "hlo/testing/corpus.h"
#include "hlo/testing/inputs.h"
#include "sdk/tool/files.h"

namespace collet::tool {
namespace {

using hlo::Literal;
using hlo::Shape;
namespace rules = hlo::testing;

Expected<std::vector<Literal>> by_rule(const std::string& program, const std::vector<Shape>& parameters) {
  namespace fs = std::filesystem;
  const fs::path beside = fs::path(program).parent_path() / "case.json";
  std::error_code error;
  if (program == "-" || !fs::exists(beside, error)) return rules::inputs_by_type(parameters);
  COLLET_ASSIGN(const std::vector<rules::ModelInput> inputs, rules::read_model_inputs(beside.string()));
  if (inputs.size() != parameters.size()) {
    return invalid_argument(beside.string() + " has " + std::to_string(inputs.size()) + " inputs, the program " +
                            std::to_string(parameters.size()) + " parameters");
  }
  return rules::model_inputs(inputs, false);
}

Expected<std::vector<Literal>> random(const std::string& text, const std::vector<Shape>& parameters) {
  uint64_t seed = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, seed).ptr != end || text.empty()) {
    return invalid_argument("--inputs random:" + text + ": the seed is a number");
  }
  std::vector<Literal> inputs;
  // The seed takes the place of the parameter's number, far away from small ones.
  for (size_t i = 0; i < parameters.size(); ++i) {
    const uint64_t parameter = rules::mix(seed) & 0xFFFFFF;
    inputs.push_back(rules::input_by_rule({}, parameters[i], parameter + i));
  }
  return inputs;
}

Expected<std::vector<Literal>> from_files(const std::vector<std::string>& files, const std::vector<Shape>& parameters) {
  if (files.size() != parameters.size()) {
    return invalid_argument("--inputs names " + std::to_string(files.size()) + " files; the program has " +
                            std::to_string(parameters.size()) + " parameters");
  }
  std::vector<Literal> inputs;
  for (size_t i = 0; i < files.size(); ++i) {
    COLLET_ASSIGN(const std::string bytes, read_file(files[i]));
    const Shape& shape = parameters[i];
    if (static_cast<int64_t>(bytes.size()) != shape.byte_size()) {
      return invalid_argument(files[i] + " has " + std::to_string(bytes.size()) + " bytes; parameter " +
                              std::to_string(i) + ", " + shape.to_string() + ", takes " +
                              std::to_string(shape.byte_size()));
    }
    inputs.push_back(Literal::from_bytes(shape, bytes.data()));
  }
  return inputs;
}

}  // namespace

Expected<std::vector<Literal>> make_inputs(const std::vector<std::string>& how, const std::string& program,
                                           const std::vector<Shape>& parameters) {
  const std::string word = how.size() == 1 ? how[0] : "";
  if (how.empty() || word == "rule") return by_rule(program, parameters);
  if (word.starts_with("random:")) return random(word.substr(7), parameters);
  if (word != "zeros") return from_files(how, parameters);
  std::vector<Literal> inputs;
  for (const Shape& shape : parameters) inputs.push_back(Literal::zeros(shape));
  return inputs;
}

}  // namespace collet::tool
