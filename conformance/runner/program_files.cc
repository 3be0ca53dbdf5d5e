// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/program_files.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>

namespace collet::conformance {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 6> kEndings = {".hlo", ".mlir", ".mlirbc", ".pb", ".collet", ".txt"};

// Returns the place of the file's ending in kEndings; its size for a file that is no program.
size_t form_of(const fs::path& path) {
  const std::string ending = path.extension().string(), name = path.filename().string();
  const auto form = static_cast<size_t>(std::find(kEndings.begin(), kEndings.end(), ending) - kEndings.begin());
  if (form == kEndings.size()) return form;
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  // XLA writes a program before and after its passes, and this library after each: 000.read.hlo, 001.after.simplify.hlo, ...
  const bool is_stage = name.size() > 4 &&
                        std::all_of(name.begin(), name.begin() + 3, [](char c) { return c >= '0' && c <= '9'; }) &&
                        name[3] == '.' && ending == ".hlo";
  if (is_stage && !name.ends_with(".read.hlo")) return kEndings.size();
  if (has("_optimizations") && !has("before_optimizations")) return kEndings.size();
  if (ending != ".txt") return form;
  std::string start(9, '\0');
  std::ifstream(path, std::ios::binary).read(start.data(), static_cast<std::streamsize>(start.size()));
  return start == "HloModule" ? form : kEndings.size();
}

// Names of cases stand in lines, in globs, and before ": ".
std::string plain(std::string name) {
  for (char& c : name) {
    const bool is_control = static_cast<unsigned char>(c) < ' ' || c == 0x7f;
    if (is_control || std::string_view("*?[]{}\\:'\"").find(c) != std::string_view::npos) c = '_';
  }
  return name;
}

// A folder that holds one program under a general name gives the program its name. `within`: the part of the path that
// may be in the name.
std::string name_of(const fs::path& file, fs::path within) {
  within.replace_extension();
  if (within.filename() != "program" && within.filename() != "000.read") return plain(within.string());
  return plain(within.has_parent_path() ? within.parent_path().string()
                                        : fs::absolute(file).lexically_normal().parent_path().filename().string());
}

// True for a folder of which this process may not read the content.
bool is_closed(const fs::directory_entry& entry) {
  std::error_code error;
  return entry.is_directory(error) && access(entry.path().c_str(), R_OK | X_OK) != 0;
}

}  // namespace

Expected<std::vector<ProgramFile>> find_programs(const std::vector<std::string>& paths) {
  std::vector<ProgramFile> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      if (!fs::exists(path, error)) return not_found(path + ": there is no such file");
      files.push_back({path, name_of(path, fs::path(path).filename()), path});
      continue;
    }
    std::map<std::string, std::pair<size_t, std::string>> found;  // by name: the form and the path
    for (fs::recursive_directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
      if (is_closed(*it)) {
        it.disable_recursion_pending();
        files.push_back({it->path().string(), plain(it->path().lexically_relative(path).string()), path});
        continue;
      }
      if (!it->is_regular_file(error)) continue;
      const size_t form = form_of(it->path());
      if (form == kEndings.size()) continue;
      const auto [place, is_new] =
          found.try_emplace(name_of(it->path(), it->path().lexically_relative(path)), form, it->path().string());
      if (!is_new && form < place->second.first) place->second = {form, it->path().string()};
    }
    if (error) return invalid_argument(path + " cannot be read: " + error.message());
    if (found.empty()) return invalid_argument(path + " has no program in it: no .hlo, .mlir, .mlirbc, .pb, .collet");
    for (auto& [name, file] : found) files.push_back({std::move(file.second), name, path});
  }
  std::map<std::string, int> seen;
  for (ProgramFile& file : files) {
    if (const int before = seen[file.name]++; before > 0) {
      file.name += "." + std::to_string(before + 1);
      file.argument.clear();
    }
  }
  return files;
}

}  // namespace collet::conformance
