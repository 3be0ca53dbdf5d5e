// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

namespace collet::runtime {

/// Writes numbered files into a folder; does nothing without one.
class Dump {
 public:
  /// Makes the folder if need be. Null or empty: a folder for the program in the one that the environment's COLLET_DUMP names,
  /// if it names one.
  static Expected<Dump> open(const char* folder, std::string_view program);
  bool on() const { return !folder_.empty(); }
  void text(std::string_view name, std::string_view contents);
  void module(std::string_view name, const hlo::Module& module);
  /// The first failure to write.
  const Status& status() const { return status_; }

 private:
  std::string folder_;
  int number_ = 0;
  Status status_;
};

/// Appends to the file that the environment's COLLET_EXPLAIN names, if it names one: `json` where the name ends so, else `text`.
/// Several processes may append to one file.
Status append_explanation(const std::string& text, const std::string& json);

}  // namespace collet::runtime
