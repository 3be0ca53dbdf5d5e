// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What generated code calls.

#include <cstdint>

extern "C" {

/// Reduces `count` doubles modulo pi / 2, whatever their size: x = quarter * pi / 2 + high + low.
void collet_reduce_quarter(const double* x, int64_t count, double* high, double* low, int64_t* quarter);
}
