// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "hlo/testing/corpus.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"

namespace collet::hlo {
namespace {

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

// Returns true if there is no corpus, and reports that; the test fails if the environment requires the corpus.
bool corpus_missing(std::string_view what) {
  if (!corpus_dir().empty()) return false;
  EXPECT_FALSE(corpus_required()) << "COLLET_CORPUS_DIR is not set";
  std::cout << "not run: " << what << " (COLLET_CORPUS_DIR is not set)\n";
  return true;
}

int64_t literal_bytes(const Module& module) {
  int64_t bytes = 0;
  for (CompId c : module.computations())
    for (InstrId id : module[c].order)
      if (module[id].op == Op::CONSTANT) bytes += module[id].shape.byte_size();
  return bytes;
}

// Checks that print(read(print(module))) equals print(module) for the styles that can be read.
void expect_fixed_point(const Module& module, const std::string& name) {
  for (PrintStyle style : {PrintStyle::Long, PrintStyle::Short}) {
    PrintOptions options;
    options.style = style;
    options.large_constants = literal_bytes(module) < 100000;
    const std::string once = print_module(module, options);
    ParseOptions zeros;
    zeros.elided = ElidedConstants::Zeros;
    const auto again = parse_module(once, name, zeros);
    ASSERT_TRUE(again.ok()) << again.status().message();
    const std::string twice = print_module(**again, options);
    if (twice == once) continue;
    size_t at = 0;
    while (at < once.size() && at < twice.size() && once[at] == twice[at]) ++at;
    ADD_FAILURE() << name << " differs behind:\n"
                  << once.substr(at < 200 ? 0 : at - 200, 300) << "\n---\n"
                  << twice.substr(at < 200 ? 0 : at - 200, 300);
  }
}

TEST(Corpus, JudgesAsXlaDoes) {
  if (corpus_missing("3,175 modules of XLA's tests")) GTEST_SKIP();
  const auto index = testing::read_index(corpus_dir() + "/xla-tests.jsonl");
  ASSERT_TRUE(index.ok()) << index.status().message();
  ASSERT_GT(index->entries.size(), 3000u);
  for (const testing::IndexEntry& entry : index->entries) {
    const std::string text = read_file(index->folder + "/" + entry.file);
    ASSERT_FALSE(text.empty()) << entry.file;
    Diagnostics diagnostics(entry.file);
    ParseOptions options;
    options.elided = ElidedConstants::Zeros;
    const auto module = parse_module(text, options, diagnostics);
    EXPECT_EQ(module == nullptr, !entry.read) << entry.message << '\n' << diagnostics.to_string();
    EXPECT_EQ(module == nullptr, !diagnostics.empty());
    if (module) expect_fixed_point(*module, entry.file);
    if (module || entry.read || diagnostics.empty()) continue;
    const int64_t line = diagnostics.list()[0].line;
    EXPECT_LE(std::abs(line - entry.line), 2) << entry.message << '\n' << diagnostics.to_string();
  }
}

TEST(Corpus, ReadsTheModels) {
  if (corpus_missing("49 models")) GTEST_SKIP();
  int models = 0;
  for (const auto& folder : std::filesystem::directory_iterator(corpus_dir() + "/models")) {
    const std::string path = folder.path() / "program.hlo";
    if (!std::filesystem::exists(path)) continue;
    ++models;
    const auto module = parse_module(read_file(path), path);
    ASSERT_TRUE(module.ok()) << module.status().message();
    expect_fixed_point(**module, path);
  }
  EXPECT_GT(models, 40);
}

}  // namespace
}  // namespace collet::hlo
