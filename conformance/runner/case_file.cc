// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/case_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "conformance/runner/workers.h"
#include "hlo/ir/ops.h"
#include "hlo/ir/types.h"

namespace collet::conformance {
namespace {

constexpr std::string_view kHead = "collet cases 1";

std::string numbers_text(const std::vector<double>& numbers) {
  return fmt::format("{}", fmt::join(numbers, " "));
}

// Reads numbers between spaces; false for anything else.
bool read_numbers(std::string_view text, std::vector<double>& out) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    double number = 0;
    const auto [stopped, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || stopped != word.data() + word.size()) return false;
    out.push_back(number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}

Fields fields_of(const Case& one) {
  const Bound& b = one.bound;
  Fields fields = {{"name", one.name}, {"op", std::string(hlo::op_info(one.op).text)}};
  if (one.type != Type::Invalid) fields.emplace_back("type", type_name(one.type));
  if (!one.text.empty()) fields.emplace_back("text", one.text);
  if (!one.pattern.empty()) fields.emplace_back("pattern", one.pattern);
  if (!one.program.empty()) fields.emplace_back("program", one.program);
  if (one.large) fields.emplace_back("large", "1");
  fields.emplace_back("bound", fmt::format("{} {} {} {} {} {} {} {} {} {}", static_cast<int>(b.kind), b.ulps, b.terms,
                                           b.wide ? 1 : 0, b.signed_data ? 1 : 0, b.exact ? 1 : 0,
                                           b.conditioned ? 1 : 0, b.triangle, b.operands, b.additions));
  for (const InputSpec& input : one.inputs)
    fields.emplace_back("input",
                        fmt::format("{} {} {} {}{}{}", static_cast<int>(input.values), input.low, input.high,
                                    input.definite ? 1 : 0, input.fixed.empty() ? "" : " ", numbers_text(input.fixed)));
  return fields;
}

// True for a whole number from `first` to `last`.
bool is_one_of(double number, int first, int last) {
  return number >= first && number <= last && number == std::trunc(number);
}

bool read_bound(std::string_view text, Bound& bound) {
  std::vector<double> n;
  if (!read_numbers(text, n) || (n.size() != 8 && n.size() != 10) ||
      !is_one_of(n[0], 0, static_cast<int>(Bound::Kind::Scaled)) || !is_one_of(n[7], -1, 1))
    return false;
  bound = {.kind = static_cast<Bound::Kind>(static_cast<int>(n[0])),
           .ulps = n[1],
           .terms = n[2],
           .wide = n[3] != 0,
           .signed_data = n[4] != 0,
           .exact = n[5] != 0,
           .conditioned = n[6] != 0,
           .triangle = static_cast<int>(n[7])};
  if (n.size() == 10) bound.operands = n[8], bound.additions = n[9];
  return true;
}

bool read_input(std::string_view text, InputSpec& input) {
  std::vector<double> n;
  if (!read_numbers(text, n) || n.size() < 4 || !is_one_of(n[0], 0, static_cast<int>(Values::Special))) return false;
  input.values = static_cast<Values>(static_cast<int>(n[0]));
  const bool has_numbers = input.values == Values::Fixed || input.values == Values::Special;
  if (has_numbers != (n.size() > 4)) return false;
  input.low = n[1];
  input.high = n[2];
  input.definite = n[3] != 0;
  input.fixed.assign(n.begin() + 4, n.end());
  return true;
}

// Returns what is wrong with a line; empty if nothing is.
std::string read_case(std::string_view line, Case& one) {
  for (const auto& [key, value] : decode_fields(line)) {
    if (key == "name") {
      one.name = value;
    } else if (key == "op") {
      const std::optional<Op> op = hlo::op_from_text(value);
      if (!op) return "there is no op '" + value + "'";
      one.op = *op;
    } else if (key == "type") {
      const std::optional<Type> type = hlo::type_from_text(value);
      if (!type) return "there is no element type '" + value + "'";
      one.type = *type;
    } else if (key == "text") {
      one.text = value;
    } else if (key == "pattern") {
      one.pattern = value;
    } else if (key == "program") {
      one.program = value;
    } else if (key == "large") {
      one.large = true;
    } else if (key == "bound") {
      if (!read_bound(value, one.bound)) return "this is no bound: '" + value + "'";
    } else if (key == "input") {
      if (!read_input(value, one.inputs.emplace_back())) return "this is no input: '" + value + "'";
    } else {
      return "there is no field '" + key + "'";
    }
  }
  if (one.name.empty()) return "it has no name";
  if (one.op == Op::INVALID) return "it has no op";
  return one.text.empty() && one.program.empty() ? "it has no program" : "";
}

}  // namespace

bool is_case_file(std::string_view text) {
  return text.starts_with(kHead);
}

std::string case_file_text(const std::vector<Case>& cases) {
  std::string text = std::string(kHead) + "\n";
  for (const Case& one : cases) text += encode_fields(fields_of(one)) + "\n";
  return text;
}

Expected<std::vector<Case>> read_case_file(const std::string& name, std::string_view text) {
  std::vector<Case> cases;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (++number == 1) {
      if (line != kHead) return invalid_argument(fmt::format("{}:1: a file of cases begins with '{}'", name, kHead));
      continue;
    }
    if (line.empty()) continue;
    const std::string wrong = read_case(line, cases.emplace_back());
    if (!wrong.empty()) return invalid_argument(fmt::format("{}:{}: {}", name, number, wrong));
  }
  return cases;
}

}  // namespace collet::conformance
