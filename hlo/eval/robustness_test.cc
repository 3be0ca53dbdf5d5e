// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>

#include "hlo/eval/evaluator.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

// Cuts the texts of a corpus off, flips bits or changes digits, and passes them to reader, verifier and evaluator: none
// of these may crash or hang. COLLET_CORPUS_DIR names the corpus; COLLET_ROBUSTNESS_ALL=1 uses all its texts instead of
// a sample; COLLET_ROBUSTNESS_SEED changes the random positions.

namespace collet::hlo {
namespace {

constexpr size_t kSampleOf = 40;
constexpr int kMutantsOfText = 4;
constexpr int64_t kMaxBytes = 1 << 18;
constexpr double kSeconds = 0.5, kHangs = 20;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::vector<std::string> texts_of(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& item : std::filesystem::directory_iterator(folder))
    if (item.path().extension() == ".hlo") paths.push_back(item.path().string());
  std::sort(paths.begin(), paths.end());
  if (environment("COLLET_ROBUSTNESS_ALL") == "1") return paths;
  std::vector<std::string> sample;
  for (size_t i = 0; i < paths.size(); i += kSampleOf) sample.push_back(paths[i]);
  return sample;
}

std::string mutated(std::string text, std::mt19937_64& random) {
  if (text.empty()) return text;
  const uint64_t kind = random() % 4;
  if (kind == 0) return text.substr(0, random() % text.size());
  // A text with other digits can mostly be read, but its sizes and indices are inconsistent.
  if (kind >= 2) {
    for (uint64_t tries = 1 + random() % 200, changed = 0; tries > 0 && changed < 3; --tries) {
      char& c = text[random() % text.size()];
      if (c < '0' || c > '9') continue;
      c = static_cast<char>('0' + random() % 10);
      ++changed;
    }
    return text;
  }
  for (uint64_t flips = 1 + random() % 3; flips > 0; --flips)
    text[random() % text.size()] ^= static_cast<char>(1u << random() % 8);
  return text;
}

enum class Outcome { Unread, Refused, Unbounded, Failed, Ran };

Outcome push_through(const std::string& text) {
  const auto module = parse_module(text);
  if (!module.ok()) return Outcome::Unread;
  if (!verify_module(**module).ok()) return Outcome::Refused;
  std::vector<Literal> arguments;
  for (InstrId p : (*module)->entry_computation().parameters) {
    if ((**module)[p].shape.byte_size() > kMaxBytes) return Outcome::Unbounded;
    arguments.push_back(Literal::zeros((**module)[p].shape));
  }
  EvalOptions options;
  options.limits = {.seconds = kSeconds, .steps = 100'000, .value_bytes = kMaxBytes};
  return Evaluator(**module, options).run(std::move(arguments)).ok() ? Outcome::Ran : Outcome::Failed;
}

TEST(Robustness, BrokenTextsNeitherCrashNorHang) {
  const std::string corpus = environment("COLLET_CORPUS_DIR"), seed = environment("COLLET_ROBUSTNESS_SEED");
  if (corpus.empty()) {
    EXPECT_NE(environment("COLLET_REQUIRE_CORPUS"), "1") << "COLLET_CORPUS_DIR is not set";
    std::cout << "not run: broken texts of the corpus (COLLET_CORPUS_DIR is not set)\n";
    GTEST_SKIP();
  }
  std::mt19937_64 random(seed.empty() ? 1 : std::strtoull(seed.c_str(), nullptr, 10));
  int counts[5] = {};
  for (const std::string& path : texts_of(corpus + "/xla-tests")) {
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    for (int k = 0; k < kMutantsOfText; ++k) {
      const std::string mutant = mutated(text, random);
      SCOPED_TRACE(path + ", mutant " + std::to_string(k));
      // Saves the current text, so that it is available after a crash of the process.
      if (const std::string kept = environment("COLLET_ROBUSTNESS_KEEP"); !kept.empty())
        std::ofstream(kept, std::ios::binary) << mutant;
      const auto begin = std::chrono::steady_clock::now();
      ++counts[static_cast<int>(push_through(mutant))];
      EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), kHangs);
    }
  }
  std::cout << counts[0] << " not read, " << counts[1] << " refused by the verifier, " << counts[2]
            << " with large inputs, " << counts[3] << " failed to run, " << counts[4] << " ran\n";
  EXPECT_GT(counts[0], 0);
  EXPECT_GT(counts[4], 0) << "nothing reached the evaluator";
}

}  // namespace
}  // namespace collet::hlo
