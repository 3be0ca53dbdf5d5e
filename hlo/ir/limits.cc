// SPDX-License-Identifier: Apache-2.0
#include "hlo/ir/limits.h"

#include <algorithm>
#include <string>

namespace collet::hlo {
namespace {

/// Counts the parts of a shape up to the limit; stores the nesting depth in `*depth`.
int64_t count_parts(const Shape& shape, int at, int* depth) {
  *depth = std::max(*depth, at);
  int64_t parts = 1;
  if (at > kDeepestShape) return parts;
  for (const Shape& element : shape.elements()) {
    if (parts > kMostParts) break;
    parts += count_parts(element, at + 1, depth);
  }
  return parts;
}

}  // namespace

Status ShapeBudget::charge(const Shape& shape) {
  if (shape.elements().empty()) return charge(1, 0);
  int depth = 0;
  const int64_t parts = count_parts(shape, 0, &depth);
  return charge(parts, depth);
}

Status ShapeBudget::charge(int64_t parts, int depth, int64_t most) {
  if (depth > kDeepestShape) return resource_exhausted("parts are nested deeper than " + std::to_string(kDeepestShape));
  if (parts > most) return resource_exhausted("there are more than " + std::to_string(most) + " parts");
  if (parts > left_) return resource_exhausted("the program has more parts than it may name");
  left_ -= parts;
  return {};
}

}  // namespace collet::hlo
