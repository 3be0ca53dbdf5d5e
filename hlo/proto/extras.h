// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "hlo/proto/wire.h"

/// \file
/// Attributes that any instruction may have, out of their messages.

namespace collet::hlo::proto {

/// From a '{' to its '}' with nothing behind it: XLA tells dictionaries from strings so.
bool is_dictionary(std::string_view text);
/// Sorted by name.
std::vector<FrontendAttribute> read_frontend(const wire::FrontendAttributes& in, Module& module);
/// Null where it says nothing.
const Metadata* read_metadata(const wire::OpMetadata& in, Module& module);
/// Null for what is the default.
const ResultAccuracy* read_accuracy(const wire::ResultAccuracy& in, Module& module);

}  // namespace collet::hlo::proto
