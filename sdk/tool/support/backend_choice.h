// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "conformance/runner/session.h"

namespace CLI {
class App;
}

namespace collet::tool {

/// The help texts of the options that choose the backend: `about` is that of --backend, `without` that of
/// --no-fallback.
struct BackendHelp {
  std::string about, without;
};

/// Declares --backend, --no-fallback and --option; they fill `choice`, which must outlive the parse.
void add_backend_options(CLI::App& verb, const BackendHelp& words, conformance::BackendChoice& choice);

/// Reports that a backend cannot be opened. If it refused its options, that is wrong usage.
int report_unopened(const Status& status);

}  // namespace collet::tool
