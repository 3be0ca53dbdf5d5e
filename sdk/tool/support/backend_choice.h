// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "conformance/runner/session.h"

namespace CLI {
class App;
}

namespace collet::tool {

/// The help texts of the options that choose the backend: `about` of --backend, `without` of --no-fallback.
struct BackendHelp {
  std::string about, without;
};

/// Declares --backend, --no-fallback and --option; they fill `choice`, which must outlive the parse.
void add_backend_options(CLI::App& verb, const BackendHelp& words, conformance::BackendChoice& choice);

/// Reports that a backend cannot be opened. What it says of its options is wrong usage.
int report_unopened(const Status& status);

}  // namespace collet::tool
