// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace collet::hlo::mlir {

/// Enumerations of portable artifacts.
enum class VhloEnum : uint8_t {
  ComparisonDirection,
  ComparisonType,
  ApiVersion,
  FftType,
  Precision,
  RngAlgorithm,
  RngDistribution,
  Transpose,
  ResultAccuracyMode
};

/// Returns the name of a value; empty if there is no such value.
std::string_view vhlo_enum_text(VhloEnum kind, uint64_t value);
/// Returns the value of a name; -1 if there is none.
int64_t vhlo_enum_value(VhloEnum kind, std::string_view text);

}  // namespace collet::hlo::mlir
