// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/properties.h"

#include <array>

namespace collet::hlo {
namespace {

constexpr auto kProperties = [] {
  std::array<OpProperties, kLastOp + 1> out{};
#define COLLET_OP_PROPERTIES(NAME, ...) out[static_cast<size_t>(Op::NAME)] = {__VA_ARGS__};
#include "hlo/ops/properties.def"
  return out;
}();

}  // namespace

const OpProperties& op_properties(Op op) {
  return kProperties[static_cast<int>(op) <= kLastOp ? static_cast<size_t>(op) : 0];
}

}  // namespace collet::hlo
