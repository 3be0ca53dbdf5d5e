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

/// The spelling of a value; empty when there is no such value.
std::string_view vhlo_enum_text(VhloEnum kind, uint64_t value);
/// The value of a spelling; -1 when there is none.
int64_t vhlo_enum_value(VhloEnum kind, std::string_view text);

}  // namespace collet::hlo::mlir
