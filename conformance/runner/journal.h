// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <unordered_map>

#include "conformance/runner/conform.h"
#include "conformance/runner/workers.h"

namespace collet::conformance {

/// Results as they come, in a file: a run that was cut off goes on where it stopped.
class Journal {
 public:
  /// Reads what the file has, where it begins with `head`, and adds to it; the error is that it belongs to another run, or cannot
  /// be written. An empty path keeps nothing.
  static Expected<Journal> open(const std::string& path, const std::string& head);
  /// Returns the line of a case; null if it has not run.
  const Fields* find(const std::string& name) const;
  void note(const std::string& name, const Fields& fields);

 private:
  struct FileCloser {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, FileCloser> file_;
  std::unordered_map<std::string, Fields> found_;
};

}  // namespace collet::conformance
