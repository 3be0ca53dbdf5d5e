// SPDX-License-Identifier: Apache-2.0
// Runs contract cases in this process, for debuggers and sanitizers: run_contract LIBRARY [KEY=VALUE ...] [GLOB ...]. A word
// with a slash is a glob of case names. Exit code 1: a case failed.
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "conformance/contract/contract.h"

int main(int argc, char** argv) {
  using namespace collet::conformance;
  Plugin::Options options;
  std::vector<std::string> globs;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = word.find('=');
    if (equals == std::string::npos) {
      globs.push_back(word);
    } else {
      options.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    }
  }
  if (argc < 2) {
    fmt::print(stderr, "run_contract LIBRARY [KEY=VALUE ...] [GLOB ...]\n");
    return 2;
  }
  auto plugin = Plugin::load(argv[1], options);
  if (!plugin.ok()) {
    fmt::print(stderr, "{}\n", plugin.status().to_string());
    return 2;
  }
  int passed = 0, failed = 0, skipped = 0;
  for (const ContractCase& one : contract_cases()) {
    const bool wanted = globs.empty() || std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
                          return fnmatch(glob.c_str(), one.name.c_str(), 0) == 0;
                        });
    if (!wanted) continue;
    Contract contract(**plugin);
    one.run(contract);
    const bool pass = contract.outcome() == "pass", skip = contract.outcome() == "unsupported";
    ++(pass ? passed : skip ? skipped : failed);
    if (!pass && !skip) fmt::print("{} {}\n  {}\n", contract.outcome(), one.name, contract.text());
    std::fflush(stdout);
  }
  fmt::print("{} passed, {} failed, {} unsupported\n", passed, failed, skipped);
  return failed > 0 || passed == 0 ? 1 : 0;
}
