// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "hlo/passes/pipeline.h"
#include "hlo/program/print.h"
#include "hlo/program/read.h"
#include "hlo/program/write.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

// Tests real programs, unchanged and after the passes: each is written, copied to another address, read, verified and
// written again.

namespace collet::hlo {
namespace {

std::vector<std::string> models() {
  std::vector<std::string> out;
  const char* corpus = std::getenv("COLLET_CORPUS_DIR");
  if (!corpus) return out;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(corpus) / "models"))
    out.push_back((entry.path() / "program.hlo").string());
  return out;
}

void round_trip(const Module& module) {
  const ProgramOptions options{.inline_limit = SIZE_MAX, .without_names = true};
  auto first = write_program(module, options);
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  const Block moved(first->block.data(), first->block.size());
  std::memset(first->block.data(), 0xA5, first->block.size());
  auto read = read_program(moved.data(), moved.size());
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  const Status verified = verify_module(*read->module);
  EXPECT_TRUE(verified.ok()) << verified.to_string();
  auto second = write_program(*read->module, options);
  ASSERT_TRUE(second.ok()) << second.status().to_string();
  ASSERT_EQ(moved.size(), second->block.size());
  EXPECT_EQ(0, std::memcmp(moved.data(), second->block.data(), moved.size()));
  EXPECT_TRUE(print_program(moved.data(), moved.size()).ok());
}

TEST(ProgramCorpus, RoundTrips) {
  const std::vector<std::string> files = models();
  if (files.empty()) {
    const char* required = std::getenv("COLLET_REQUIRE_CORPUS");
    ASSERT_FALSE(required && *required == '1') << "COLLET_CORPUS_DIR is not set";
    GTEST_SKIP() << "no corpus: 49 models did not run";
  }
  for (const std::string& path : files) {
    SCOPED_TRACE(path);
    std::ifstream file(path);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    Diagnostics diagnostics;
    const auto module = parse_module(text, ParseOptions{}, diagnostics);
    ASSERT_TRUE(module) << diagnostics.to_string();
    round_trip(*module);
    PassContext context;
    const auto prepared = prepare(*module, context);
    ASSERT_TRUE(prepared.ok()) << prepared.status().to_string();
    round_trip(*module);
  }
}

}  // namespace
}  // namespace collet::hlo
