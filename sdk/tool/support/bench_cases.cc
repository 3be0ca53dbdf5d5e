// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/bench_cases.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "conformance/runner/conform.h"
#include "sdk/tool/support/files.h"
#include "sdk/tool/support/inputs.h"

namespace collet::tool {
namespace {

namespace fs = std::filesystem;

bool has_program_ending(const fs::path& path) {
  const std::string ending = path.extension().string();
  return ending == ".hlo" || ending == ".mlir" || ending == ".mlirbc";
}

std::string family_of(const fs::path& name) {
  if (name.has_parent_path()) return name.parent_path().string();
  const std::string text = name.string();
  return text.substr(0, text.find_first_of("_-"));
}

Expected<bench::Case> read_case(const fs::path& file, const fs::path& name, const ElidedChoice& elided) {
  COLLET_ASSIGN(std::string program, read_program(file.string()));
  bench::Case one;
  one.name = name.string();
  one.family = family_of(name);
  one.what = file.string();
  one.entry = {.program = std::move(program),
               .file = file.string(),
               .elided = elided.how,
               .seed = elided.seed,
               .inputs = [path = file.string()](const std::vector<hlo::Shape>& parameters) {
                 return make_inputs({}, path, parameters);
               }};
  return one;
}

Expected<std::vector<fs::path>> programs_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->is_regular_file(error) && has_program_ending(it->path())) files.push_back(it->path());
  }
  if (error) return invalid_argument(folder.string() + " cannot be read: " + error.message());
  if (files.empty()) return invalid_argument(folder.string() + " has no .hlo, .mlir or .mlirbc in it");
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Expected<std::vector<bench::Case>> read_bench_cases(const std::vector<std::string>& paths, const ElidedChoice& elided) {
  std::vector<bench::Case> cases;
  std::set<std::string> names;
  const auto add = [&](const fs::path& file, const fs::path& name) -> Status {
    COLLET_ASSIGN(bench::Case one, read_case(file, name, elided));
    // Results are identified, and compared with those of an earlier run, by name.
    if (!names.insert(one.name).second) return invalid_argument("--cases has two programs named " + one.name);
    cases.push_back(std::move(one));
    return ok_status();
  };
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      COLLET_TRY(add(path, fs::path(path).stem()));
      continue;
    }
    COLLET_ASSIGN(const std::vector<fs::path> files, programs_in(path));
    for (const fs::path& file : files) COLLET_TRY(add(file, file.lexically_relative(path).replace_extension()));
  }
  return cases;
}

Expected<std::vector<bench::Case>> bench_cases_of_programs(const conformance::BackendChoice& backend,
                                                           const std::vector<std::string>& paths,
                                                           const ElidedChoice& elided) {
  conformance::ConformOptions options;
  options.backend = backend;
  COLLET_ASSIGN(conformance::ProgramCases made, conformance::cases_of_programs(options, paths));
  std::vector<bench::Case> cases;
  for (conformance::Case& one : made.cases) {
    if (!one.program.empty()) {
      COLLET_ASSIGN(bench::Case whole, read_case(one.program, one.name, elided));
      cases.push_back(std::move(whole));
      continue;
    }
    if (!one.name.ends_with("/unit")) continue;  // the same program with other values
    bench::Case op;
    op.name = one.name.substr(0, one.name.rfind('/'));
    op.family = op.name.substr(0, op.name.find('/'));
    op.what = "one " + op.family;
    op.entry = {
        .program = one.text,
        .file = op.name,
        .inputs = [specs = std::move(one.inputs),
                   name = op.name](const std::vector<hlo::Shape>& parameters) -> Expected<std::vector<hlo::Literal>> {
          std::vector<hlo::Literal> inputs;
          const uint64_t seed = conformance::case_seed(name, 0);
          for (size_t i = 0; i < parameters.size() && i < specs.size(); ++i)
            inputs.push_back(conformance::make_input(specs[i], parameters[i], i, parameters.size(), seed, false));
          return inputs;
        }};
    cases.push_back(std::move(op));
  }
  return cases;
}

}  // namespace collet::tool
