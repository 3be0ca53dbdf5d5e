// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/program.h>

#include <string>

#include "hlo/base/status.h"

namespace collet::hlo {

/// A program as text for people: one line per op, regions indented below the op that calls them. Checks it first.
Expected<std::string> print_program(const void* bytes, size_t size);

}  // namespace collet::hlo
