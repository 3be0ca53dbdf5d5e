// SPDX-License-Identifier: Apache-2.0
#include "hlo/text/corpus.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "hlo/text/lexer.h"

namespace collet::hlo {

std::string corpus_dir() {
  const char* dir = std::getenv("COLLET_CORPUS_DIR");
  return dir ? dir : "";
}

bool corpus_required() {
  const char* required = std::getenv("COLLET_REQUIRE_CORPUS");
  return required && std::string_view(required) == "1";
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string json_member(std::string_view object, std::string_view key) {
  const auto string_end = [&](size_t open) {
    size_t i = open + 1;
    while (i < object.size() && object[i] != '"') i += object[i] == '\\' ? 2 : 1;
    return std::min(i, object.size());
  };
  int depth = 0;
  for (size_t i = 0; i < object.size(); ++i) {
    const char c = object[i];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != '"') continue;
    const size_t end = string_end(i);
    const bool found = depth == 1 && object.substr(i + 1, end - i - 1) == key;
    i = end;
    size_t value = end + 1;
    if (!found || value >= object.size() || object[value] != ':') continue;
    ++value;
    while (value < object.size() && object[value] == ' ') ++value;
    if (value == object.size()) return {};
    if (object[value] != '"') {
      const size_t stop = object.find_first_of(",}", value);
      return std::string(object.substr(value, stop == std::string_view::npos ? stop : stop - value));
    }
    std::string out;
    text::unescape(object.substr(value + 1, string_end(value) - value - 1), out);
    return out;
  }
  return {};
}

std::vector<CorpusEntry> read_corpus_index(const std::string& path) {
  std::vector<CorpusEntry> entries;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    CorpusEntry entry;
    entry.file = json_member(line, "file");
    entry.refused = json_member(line, "xla") == "refused";
    if (entry.refused) {
      entry.line = std::atoll(json_member(line, "line").c_str());
      entry.column = std::atoll(json_member(line, "column").c_str());
      entry.message = json_member(line, "message");
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<std::string> corpus_models(const std::string& dir) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& folder : std::filesystem::directory_iterator(dir + "/models", error)) {
    const std::filesystem::path program = folder.path() / "program.hlo";
    if (std::filesystem::exists(program)) paths.push_back(program.string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace collet::hlo
