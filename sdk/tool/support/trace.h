// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "hlo/base/status.h"

namespace collet::tool {

/// Records all spans of collet_trace from its construction on, for a file in the format of Chrome's traces.
class Trace {
 public:
  Trace();
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// Stops recording and writes the file.
  Status write(const std::string& file);

 private:
  struct Heard;
  std::unique_ptr<Heard> heard_;
};

}  // namespace collet::tool
