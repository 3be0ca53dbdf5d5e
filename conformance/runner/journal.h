// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <unordered_map>

#include "conformance/runner/conform.h"
#include "conformance/runner/workers.h"

namespace collet::conformance {

/// Stores results in a file as they arrive, so that an interrupted run can be continued.
class Journal {
 public:
  /// Reads an existing file, which must begin with `head`, and opens it for appending. Returns an error if it belongs
  /// to another run, or cannot be written. With an empty path nothing is stored.
  static Expected<Journal> open(const std::string& path, const std::string& head);
  /// Returns the line of a case; null if it has not run.
  const Fields* find(const std::string& name) const;
  void note(const std::string& name, const Fields& fields);
  /// Returns why results could not be stored; OK if all were.
  const Status& failure() const { return failure_; }

 private:
  void write(const std::string& line);

  struct FileCloser {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, FileCloser> file_;
  std::unordered_map<std::string, Fields> found_;
  std::string path_;
  Status failure_;
};

}  // namespace collet::conformance
