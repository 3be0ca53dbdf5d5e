// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/inputs.h"

#include <optional>
#include <utility>

#include "hlo/base/files.h"
#include "hlo/testing/corpus.h"
#include "hlo/testing/inputs.h"
#include "sdk/tool/support/npy.h"
#include "sdk/tool/support/option_types.h"

namespace collet::tool {
namespace {

using hlo::Literal;
using hlo::Shape;
namespace rules = hlo::testing;

constexpr std::string_view kRandom = "random:";

Expected<std::vector<Literal>> random(const std::string& text, const std::vector<Shape>& parameters) {
  const std::optional<uint64_t> seed = parse_whole_number(text);
  if (!seed) return invalid_argument("--inputs random:" + text + ": the seed is a number");
  std::vector<Literal> inputs;
  // The seed replaces the parameter's number, and is mixed so that it differs from small numbers.
  for (size_t i = 0; i < parameters.size(); ++i) {
    const uint64_t parameter = mix(*seed) & 0xFFFFFF;
    inputs.push_back(rules::input_by_rule(rules::rule_of_stored(parameters[i]), parameters[i], parameter + i));
  }
  return inputs;
}

constexpr uint64_t kMostBytes = uint64_t{1} << 36;  // of a file of numpy's

Expected<Literal> from_npy(const std::string& file, const Shape& shape) {
  COLLET_ASSIGN(const std::string bytes, read_file_or_pipe(file, kMostBytes));
  Expected<Literal> array = read_npy(bytes);
  if (!array.ok()) return array.status().with_prefix(file + ": ");
  Expected<Literal> value = as_argument(*array, shape);
  return value.ok() ? std::move(value) : value.status().with_prefix(file + ": ");
}

Expected<std::vector<Literal>> from_npz(const std::string& file, const std::vector<Shape>& parameters,
                                        const std::vector<std::string>& names) {
  COLLET_ASSIGN(const std::string bytes, read_file_or_pipe(file, kMostBytes));
  auto arrays = read_npz(bytes);
  if (!arrays.ok()) return arrays.status().with_prefix(file + ": ");
  auto ordered = in_order_of_parameters(*std::move(arrays), names);
  if (!ordered.ok()) return ordered.status().with_prefix(file + ": ");
  std::vector<Literal> inputs;
  for (size_t i = 0; i < parameters.size(); ++i) {
    Expected<Literal> value = as_argument((*ordered)[i], parameters[i]);
    if (!value.ok()) return value.status().with_prefix(file + ": parameter " + std::to_string(i) + ": ");
    inputs.push_back(*std::move(value));
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
    const Shape& shape = parameters[i];
    if (files[i].ends_with(".npy")) {
      Expected<Literal> value = from_npy(files[i], shape);
      if (!value.ok()) return value.status().with_prefix("parameter " + std::to_string(i) + ": ");
      inputs.push_back(*std::move(value));
      continue;
    }
    const auto needed = static_cast<uint64_t>(shape.byte_size());
    const std::string takes =
        "parameter " + std::to_string(i) + ", " + shape.to_string() + ", takes " + std::to_string(needed) + " bytes: ";
    const Expected<std::string> bytes = read_file_or_pipe(files[i], needed);
    if (!bytes.ok()) return bytes.status().with_prefix(takes);
    if (bytes->size() != needed) return invalid_argument(takes + files[i] + " has " + std::to_string(bytes->size()));
    inputs.push_back(Literal::from_bytes(shape, bytes->data()));
  }
  return inputs;
}

}  // namespace

std::string check_inputs_word(const std::string& word) {
  const bool good = !word.starts_with(kRandom) || parse_whole_number(word.substr(kRandom.size()));
  return good ? "" : word + ": the seed is a number";
}

Expected<std::vector<Literal>> make_inputs(const std::vector<std::string>& how, const std::string& program,
                                           const std::vector<Shape>& parameters, std::vector<std::string> names) {
  names.resize(parameters.size());
  const std::string word = how.size() == 1 ? how[0] : "";
  if (how.empty() || word == "rule") return rules::inputs_of_program(program, parameters);
  if (word.starts_with(kRandom)) return random(word.substr(kRandom.size()), parameters);
  if (word.ends_with(".npz")) return from_npz(word, parameters, names);
  if (word != "zeros") return from_files(how, parameters);
  std::vector<Literal> inputs;
  for (const Shape& shape : parameters) inputs.push_back(Literal::zeros(shape));
  return inputs;
}

}  // namespace collet::tool
