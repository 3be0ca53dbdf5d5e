// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hlo/base/status.h"

namespace collet::tool {

/// The result of a command: exit code or signal, and its output.
struct CommandOutcome {
  int code = 0;  ///< the exit code; 128 + the signal if a signal ended the command
  /// True if it exceeded the time limit and was killed, with all processes that it had started.
  bool timed_out = false;
  bool stopped = false;  ///< true if `stop` ended it
  std::string output;    ///< stdout and stderr together, the first megabyte
};

/// Runs a command in its own process group, without stdin and with a time limit. `environment` has variables,
/// "NAME=value", in addition to those of this process.
Expected<CommandOutcome> try_command(const std::vector<std::string>& arguments, double seconds,
                                     const std::function<bool()>& stop,
                                     const std::vector<std::string>& environment = {});

}  // namespace collet::tool
