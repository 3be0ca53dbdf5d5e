// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>

#include "hlo/testing/corpus.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

std::string corpus() {
  const char* dir = std::getenv("COLLET_CORPUS_DIR");
  return dir ? dir : "";
}

// Returns true if there is no corpus, and reports what was not run; the test fails if the environment requires the
// corpus.
bool missing(std::string_view what) {
  if (!corpus().empty()) return false;
  const char* required = std::getenv("COLLET_REQUIRE_CORPUS");
  EXPECT_FALSE(required && std::string_view(required) == "1") << "COLLET_CORPUS_DIR is not set";
  std::cout << "not run: " << what << " (COLLET_CORPUS_DIR is not set)\n";
  return true;
}

std::unique_ptr<Module> read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Diagnostics diagnostics(path);
  return parse_module(text, ParseOptions(), diagnostics);
}

// Modules that XLA's corpus run compiled, although XLA's verifier and StableHLO's constraint C3 refuse them: on their
// way to the compiler they were converted to a form that does not store the type of the comparison.
constexpr const char* kRanThough[] = {"service__hlo_verifier.2ecd91d7d5b6.hlo",
                                      "service__hlo_verifier.a06064d31d48.hlo"};

// True for modules that were changed before XLA's verifier got them, so that its verdict is not about this text: fused
// computations made from calls, merged pins, tuples added by asynchronous forms, layouts of other instructions.
bool is_artefact(const testing::IndexEntry& entry) {
  for (const char* sign : {"async-done expects the shape of output", "Non-root instruction", "(or unpins): '%pin1-pw0",
                           "custom element sizes on non-sub-byte types: %convert"})
    if (entry.message.find(sign) != std::string::npos) return true;
  return false;
}

TEST(Corpus, VerifiesWhatRunsAndRefusesWhatXlaRefuses) {
  if (missing("3,053 modules of XLA's tests")) GTEST_SKIP();
  const Expected<testing::Index> index = testing::read_index(corpus() + "/xla-tests.jsonl");
  ASSERT_TRUE(index.ok()) << index.status().message();
  std::map<std::string, std::pair<int, int>> table;  // numbers of modules: accepted, refused
  for (const testing::IndexEntry& entry : index->entries) {
    if (!entry.read) continue;
    const auto module = read(index->folder + "/" + entry.file);
    if (!module) continue;  // too large to create; tests of the reader count these
    const Status status = verify_module(*module);
    const bool by_verifier = entry.message.find("[hlo verifier]") != std::string::npos;
    auto& row = table[entry.stopped_at.empty() ? "ran" : by_verifier ? "refused by the verifier" : entry.stopped_at];
    ++(status.ok() ? row.first : row.second);
    const bool excused = std::find(std::begin(kRanThough), std::end(kRanThough), entry.file) != std::end(kRanThough);
    EXPECT_TRUE(status.ok() || !entry.stopped_at.empty() || excused) << entry.file << ": " << status.message();
    EXPECT_TRUE(!status.ok() || !by_verifier || is_artefact(entry)) << entry.file << ": " << entry.message;
  }
  for (const auto& [what, row] : table)
    std::cout << what << ": " << row.first << " verify, " << row.second << " are refused\n";
  EXPECT_GT(table["ran"].first, 1600);
}

TEST(Corpus, ModelsVerify) {
  if (missing("49 models")) GTEST_SKIP();
  int count = 0;
  for (const auto& folder : std::filesystem::directory_iterator(corpus() + "/models")) {
    const std::string path = folder.path().string() + "/program.hlo";
    if (!std::filesystem::exists(path)) continue;
    const auto module = read(path);
    ASSERT_TRUE(module) << path;
    const Status status = verify_module(*module);
    EXPECT_TRUE(status.ok()) << path << ": " << status.message();
    ++count;
  }
  EXPECT_GT(count, 40);
}

}  // namespace
}  // namespace collet::hlo
