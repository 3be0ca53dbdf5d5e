// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hlo/base/status.h"

namespace collet::tool {

/// The result of a command: exit code or signal, and its output.
struct CommandOutcome {
  int code = 0;            ///< its exit code; 128 + the signal that ended it
  bool timed_out = false;  ///< it ran too long and was ended, with all that it had started
  bool stopped = false;    ///< `stop` said so
  std::string output;      ///< stdout and stderr together, the first megabyte
};

/// Runs a command with its own process group, no stdin and a time limit. `environment`: "NAME=value" besides this process's.
Expected<CommandOutcome> try_command(const std::vector<std::string>& arguments, double seconds,
                                     const std::function<bool()>& stop,
                                     const std::vector<std::string>& environment = {});

}  // namespace collet::tool
