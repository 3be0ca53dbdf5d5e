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
/// Verbs of the `collet` command. A verb is a row of verbs.def and a file of its name with the function `add_<name>`,
/// which declares the options and returns the function that runs the verb after parsing.

namespace collet::tool {

/// The exit codes of the command.
enum Exit : int {
  kDone = 0,     ///< success
  kFailed = 1,   ///< the thing tested failed
  kUsage = 2,    ///< the command line is wrong
  kRefused = 3,  ///< the input is invalid
  kRuntime = 4,  ///< a backend or the system failed
  kTimeout = 5   ///< the time limit was exceeded
};

/// Runs the verb; returns one of Exit.
using Action = std::function<int()>;

struct Verb {
  const char* name;
  const char* summary;
  Action (*add)(CLI::App& verb);
};

/// Returns all verbs in the order of verbs.def.
std::span<const Verb> verbs();

#define COLLET_VERB(name, summary) Action add_##name(CLI::App& verb);
#include "sdk/tool/verbs.def"

/// Prints "collet: message" to stderr and returns the exit code for the status' code.
int report(const Status& status);
/// Prints "collet: message" to stderr and returns `code`.
int report(Exit code, std::string_view message);

}  // namespace collet::tool
