// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The blocking of a matrix product as text, like the actions of kernels:
///
///   tile 6 4     a tile in registers has 6 rows and 4 vectors
///   depth 256    steps of the depth (K) in a block
///   chunks 8     parts into which the tiles of rows are cut for threads and caches
///   parts 2      parts into which the columns are cut

#include <collet/codegen/status.h>
#include <collet/codegen/target.h>

#include <string>
#include <string_view>
#include <vector>

#include "sdk/codegen/matmul/blocked_product.h"
#include "sdk/codegen/matmul/matmul.h"

namespace collet::codegen {

/// Returns what choose_blocking decided.
ProductSchedule schedule_of(const Product& product, const BlockedProduct& call);

std::string print_actions(const ProductSchedule& schedule);

/// Reads actions, separated by ';' or ends of lines; what they do not mention is left to the rules. Returns INVALID_ARGUMENT with the action
/// that cannot be read, or with the limit that it exceeds.
Status read_actions(std::string_view actions, ProductSchedule& out);

/// Returns schedules that differ in one number, or in the two of a tile, from that of the call.
std::vector<std::string> neighbour_schedules(const Product& product, const BlockedProduct& call, const Target& target);

}  // namespace collet::codegen
