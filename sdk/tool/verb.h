// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "hlo/base/status.h"

namespace CLI {
class App;
}

/// \file
/// A verb of the `collet` command is a row of verbs.def and a file of its name with the function `add_<name>`, which
/// declares the options and returns what is to be done once they are parsed.

namespace collet::tool {

/// The exit codes of the command.
enum Exit : int {
  kDone = 0,     ///< it went well
  kFailed = 1,   ///< the thing tested failed
  kUsage = 2,    ///< the command line is wrong
  kRefused = 3,  ///< the input was refused
  kRuntime = 4,  ///< a backend, or the system, failed
  kTimeout = 5   ///< it was not done in the time that it was given
};

/// Runs the verb; one of Exit.
using Action = std::function<int()>;

struct Verb {
  const char* name;
  const char* summary;
  Action (*add)(CLI::App& verb);
};

/// Every verb, in the order of verbs.def.
std::span<const Verb> verbs();

#define COLLET_VERB(name, summary) Action add_##name(CLI::App& verb);
#include "sdk/tool/verbs.def"

/// Prints "collet: message" to stderr and returns the exit code that fits the status' code.
int report(const Status& status);
/// Prints "collet: message" to stderr and returns `code`.
int report(Exit code, std::string_view message);

}  // namespace collet::tool
