// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "conformance/runner/session.h"
#include "conformance/runner/workers.h"

/// \file
/// What a worker replies about the backend.

namespace collet::conformance {

/// The task that asks for it.
constexpr std::string_view kProbe = "?backend";

/// A reply that says that the backend cannot be used.
Fields describe_failure(const Status& status);
/// Name, version and other facts of the opened backend.
Fields describe_backend(const Session& session);

}  // namespace collet::conformance
