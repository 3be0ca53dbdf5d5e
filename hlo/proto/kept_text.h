// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "hlo/proto/wire.h"

/// \file
/// What describes instructions without changing what they compute, and is kept as HLO text: where values came from,
/// statistics, the tables of source places.

namespace collet::hlo::proto {

/// "{({\"a\"}, {\"b\" {0}})}": the places of the names in the brackets are indices into the value.
Status origin_to_wire(std::string_view text, wire::OriginalValueProto* out);
/// For a value of `shape`; empty where the message says nothing.
std::string origin_text(const wire::OriginalValueProto& in, const Shape& shape);

/// "{visualizing_index=0,flops=3.5}".
Status statistics_to_wire(std::string_view text, wire::StatisticsViz* out);
/// Empty where there are none, or text cannot have them.
std::string statistics_text(const wire::StatisticsViz& in);

/// FileNames, FunctionNames, FileLocations and StackFrames; false for lines that are no part of them.
bool source_tables_to_wire(std::string_view text, wire::StackFrameIndexProto* out);

}  // namespace collet::hlo::proto
