// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/dot_algorithms.h"

namespace collet::hlo {
namespace {

constexpr AlgorithmParts kAlgorithms[] = {
    {Algorithm::ANY_F8_ANY_F8_F32, Type::F8E5M2, Type::F32, 1, false},
    {Algorithm::ANY_F8_ANY_F8_F32_FAST_ACCUM, Type::F8E5M2, Type::F32, 1, true},
    {Algorithm::F16_F16_F16, Type::F16, Type::F16, 1, false},
    {Algorithm::F16_F16_F32, Type::F16, Type::F32, 1, false},
    {Algorithm::BF16_BF16_BF16, Type::BF16, Type::BF16, 1, false},
    {Algorithm::BF16_BF16_F32, Type::BF16, Type::F32, 1, false},
    {Algorithm::BF16_BF16_F32_X3, Type::BF16, Type::F32, 3, false},
    {Algorithm::BF16_BF16_F32_X6, Type::BF16, Type::F32, 6, false},
    {Algorithm::BF16_BF16_F32_X9, Type::BF16, Type::F32, 9, false},
    {Algorithm::TF32_TF32_F32, Type::Invalid, Type::F32, 1, false},
    {Algorithm::TF32_TF32_F32_X3, Type::Invalid, Type::F32, 3, false},
    {Algorithm::F32_F32_F32, Type::F32, Type::F32, 1, false},
    {Algorithm::F64_F64_F64, Type::F64, Type::F64, 1, false},
};

}  // namespace

const AlgorithmParts* parts_of(Algorithm algorithm) {
  for (const AlgorithmParts& row : kAlgorithms)
    if (row.algorithm == algorithm) return &row;
  return nullptr;
}

Algorithm algorithm_of(const AlgorithmParts& parts) {
  const bool f8 = is_float(parts.operand) && type_info(parts.operand).bits == 8;
  const Type operand = f8 ? Type::F8E5M2 : parts.operand;
  for (const AlgorithmParts& row : kAlgorithms)
    if (row.operand == operand && row.accumulation == parts.accumulation && row.operations == parts.operations &&
        row.imprecise == parts.imprecise)
      return row.algorithm;
  return Algorithm::UNSET;
}

}  // namespace collet::hlo
