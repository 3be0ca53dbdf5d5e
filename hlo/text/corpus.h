// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// For tests: the corpus of programs, where there is one.

namespace collet::hlo {

/// What is known of a file of xla-tests.
struct CorpusEntry {
  std::string file;
  bool refused = false;  ///< by XLA's parser
  int64_t line = 0, column = 0;
  std::string message;
};

/// The folder that COLLET_CORPUS_DIR names; empty where it names none.
std::string corpus_dir();
/// True when COLLET_REQUIRE_CORPUS=1: without the corpus a test fails.
bool corpus_required();
/// The lines of xla-tests.jsonl.
std::vector<CorpusEntry> read_corpus_index(const std::string& path);
/// A whole file; empty where it cannot be read.
std::string read_file(const std::string& path);
/// The program.hlo of each folder of models/.
std::vector<std::string> corpus_models(const std::string& dir);

/// The value of `key` in an object on one line: a string with its escapes resolved, or a number's text; empty where
/// there is none.
std::string json_member(std::string_view object, std::string_view key);

}  // namespace collet::hlo
