// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "hlo/base/status.h"

namespace collet::tool {

/// Listens to collet_trace from its construction on, for a file in the format of Chrome's traces.
class Trace {
 public:
  Trace();
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// Stops listening and writes what was heard.
  Status write(const std::string& file);

 private:
  struct Heard;
  std::unique_ptr<Heard> heard_;
};

}  // namespace collet::tool
