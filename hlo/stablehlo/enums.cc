// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/enums.h"

#include <span>

namespace collet::hlo::mlir {
namespace {

// The names of enumeration values, indexed by value; an empty name is an unused value.
constexpr std::string_view kDirection[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
constexpr std::string_view kCompareType[] = {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
constexpr std::string_view kApiVersion[] = {"API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL",
                                            "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED",
                                            "API_VERSION_TYPED_FFI"};
constexpr std::string_view kFftType[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
constexpr std::string_view kPrecision[] = {"DEFAULT", "HIGH", "HIGHEST"};
constexpr std::string_view kRngAlgorithm[] = {"DEFAULT", "THREE_FRY", "PHILOX"};
constexpr std::string_view kDistribution[] = {"", "UNIFORM", "NORMAL"};
constexpr std::string_view kTranspose[] = {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
constexpr std::string_view kAccuracyMode[] = {"DEFAULT", "HIGHEST", "TOLERANCE"};

std::span<const std::string_view> texts(VhloEnum kind) {
  switch (kind) {
    case VhloEnum::ComparisonDirection:
      return kDirection;
    case VhloEnum::ComparisonType:
      return kCompareType;
    case VhloEnum::ApiVersion:
      return kApiVersion;
    case VhloEnum::FftType:
      return kFftType;
    case VhloEnum::Precision:
      return kPrecision;
    case VhloEnum::RngAlgorithm:
      return kRngAlgorithm;
    case VhloEnum::RngDistribution:
      return kDistribution;
    case VhloEnum::Transpose:
      return kTranspose;
    case VhloEnum::ResultAccuracyMode:
      return kAccuracyMode;
  }
  return {};
}

}  // namespace

std::string_view vhlo_enum_text(VhloEnum kind, uint64_t value) {
  const auto list = texts(kind);
  return value < list.size() ? list[value] : std::string_view();
}

int64_t vhlo_enum_value(VhloEnum kind, std::string_view text) {
  const auto list = texts(kind);
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i] == text && !text.empty()) return static_cast<int64_t>(i);
  return -1;
}

}  // namespace collet::hlo::mlir
