// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

namespace collet::runtime {

/// Writes numbered files into a folder; does nothing if there is no folder.
class Dump {
 public:
  /// Creates the folder if necessary. If `folder` is null or empty, uses a folder for the program in the one that
  /// COLLET_DUMP names, if it is set.
  /// `only`: what the names of the files end in that are written; null: all are.
  static Expected<Dump> open(const char* folder, const char* only, std::string_view program);
  bool on() const { return !folder_.empty(); }
  void text(std::string_view name, std::string_view contents);
  void module(std::string_view name, const hlo::Module& module);
  /// The first write error.
  const Status& status() const { return status_; }

 private:
  /// `name` is that of a file without its number.
  bool wants(std::string_view name) const { return on() && ("." + std::string(name)).ends_with(only_); }

  std::string folder_, only_;
  int number_ = 0;
  Status status_;
};

/// Appends to the file that COLLET_EXPLAIN names, if it is set: `json` if the name ends in .json, else `text`. Several
/// processes may append to one file.
Status append_explanation(const std::string& text, const std::string& json);

}  // namespace collet::runtime
