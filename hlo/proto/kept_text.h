// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "hlo/proto/wire.h"

/// \file
/// Converts information that describes instructions without affecting what they compute, and that modules keep as HLO
/// text: the origin of values, statistics, and the tables of source locations.

namespace collet::hlo::proto {

/// Converts text such as "{({\"a\"}, {\"b\" {0}})}"; the positions of the names in the brackets are indices into the
/// value.
Status origin_to_wire(std::string_view text, wire::OriginalValueProto* out);
/// Returns the text of an origin for a value of `shape`; empty if the message is empty.
std::string origin_text(const wire::OriginalValueProto& in, const Shape& shape);

/// Converts text such as "{visualizing_index=0,flops=3.5}".
Status statistics_to_wire(std::string_view text, wire::StatisticsViz* out);
/// Returns the text of statistics; empty if there are none, or if text cannot express them.
std::string statistics_text(const wire::StatisticsViz& in);

/// Converts FileNames, FunctionNames, FileLocations and StackFrames; returns false if a line is not part of them.
bool source_tables_to_wire(std::string_view text, wire::StackFrameIndexProto* out);

}  // namespace collet::hlo::proto
