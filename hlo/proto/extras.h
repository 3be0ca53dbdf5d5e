// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "hlo/proto/wire.h"

/// \file
/// Reads the attributes that any instruction may have from their messages.

namespace collet::hlo::proto {

/// Reads the frontend attributes, sorted by name.
std::vector<FrontendAttribute> read_frontend(const wire::FrontendAttributes& in, Module& module);
/// Reads metadata; null if it is empty.
const Metadata* read_metadata(const wire::OpMetadata& in, Module& module);
/// Reads the accuracy; null if it is the default.
const ResultAccuracy* read_accuracy(const wire::ResultAccuracy& in, Module& module);

}  // namespace collet::hlo::proto
