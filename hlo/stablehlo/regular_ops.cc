// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/regular_ops.h"

#include <unordered_map>

#include "hlo/ops/properties.h"

namespace collet::hlo {

Op regular_op(std::string_view name) {
  static const auto* const map = [] {
    auto* out =
        // An older name of after_all.
        new std::unordered_map<std::string_view, Op>{{"stablehlo.create_token", Op::AFTER_ALL}};
    for (int i = 1; i <= kLastOp; ++i) {
      const Op op = static_cast<Op>(i);
      if (const std::string_view known = regular_name(op); !known.empty()) out->emplace(known, op);
    }
    return out;
  }();
  const auto it = map->find(name);
  return it == map->end() ? Op::INVALID : it->second;
}

std::string_view regular_name(Op op) {
  return op_properties(op).stablehlo;
}

}  // namespace collet::hlo
