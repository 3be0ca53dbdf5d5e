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
  /// Makes the folder if need be.
  static Expected<Dump> open(const char* folder);
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

}  // namespace collet::runtime
