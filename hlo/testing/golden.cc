// SPDX-License-Identifier: Apache-2.0
#include "hlo/testing/golden.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace collet::hlo::testing {
namespace {

constexpr std::string_view kRule = "// ----";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  while (!out.empty() && out.back().empty()) out.pop_back();
  return out;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

}  // namespace

Expected<GoldenCase> read_golden(const std::string& path) {
  std::ifstream in(path);
  if (!in) return not_found("cannot read " + path);
  GoldenCase out;
  out.path = path;
  bool after = false, head = true;
  for (std::string line; std::getline(in, line);) {
    if (!after && line == kRule) {
      after = true;
      continue;
    }
    const bool comment = line.rfind("// ", 0) == 0;
    if (head && comment) {
      const size_t colon = line.find(": ");
      if (colon != std::string::npos) out.directives[line.substr(3, colon - 3)] = line.substr(colon + 2);
    }
    head &= comment;
    (after ? out.expected : out.input) += line + "\n";
  }
  return out;
}

std::vector<std::string> golden_files(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".hlo") out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

std::string line_difference(const std::string& before, const std::string& after) {
  const auto a = lines_of(before), b = lines_of(after);
  // Longest common subsequence; golden texts are short.
  std::vector<std::vector<size_t>> length(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = a.size(); i-- > 0;)
    for (size_t j = b.size(); j-- > 0;)
      length[i][j] = a[i] == b[j] ? length[i + 1][j + 1] + 1 : std::max(length[i + 1][j], length[i][j + 1]);
  std::string out;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j])
      out += "  " + a[i++] + "\n", ++j;
    else if (j == b.size() || (i < a.size() && length[i + 1][j] >= length[i][j + 1]))
      out += "- " + a[i++] + "\n";
    else
      out += "+ " + b[j++] + "\n";
  }
  return out;
}

std::string check_golden(const std::string& path,
                         const std::function<Expected<std::string>(const GoldenCase&)>& apply) {
  const auto golden = read_golden(path);
  if (!golden.ok()) return golden.status().to_string();
  const auto actual = apply(*golden);
  if (!actual.ok()) return path + ": " + actual.status().to_string();
  const std::string text = joined(lines_of(*actual)), expected = joined(lines_of(golden->expected));
  if (text == expected) return {};
  const char* update = std::getenv("COLLET_UPDATE_GOLDENS");
  if (update && std::string_view(update) == "1") {
    std::ofstream(path) << golden->input << kRule << "\n" << text;
    return {};
  }
  return path + ": not what it should become (COLLET_UPDATE_GOLDENS=1 takes it over):\n" +
         line_difference(expected, text);
}

}  // namespace collet::hlo::testing
