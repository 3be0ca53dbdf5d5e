// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "conformance/contract/samples.h"

namespace collet::conformance {

/// A fusion of lines over operands x, y, z, u, v, w of these shapes; the last line is its root.
struct Fusion {
  std::string name, lines, result;
  std::vector<std::string> shapes;
  const char* kind = "kLoop";
  std::string computations = {};
  Bound bound = {};
};

/// Fusions of two and three ops of each kind that the SDK proposes: elementwise ops in both operand positions, with a number,
/// a scalar, a row or a column; before and after a reduction; after a product or a convolution; with several results.
std::vector<Fusion> fusion_shapes();
/// The program that calls the fusion.
Sample sample_of(const Fusion& fusion);

}  // namespace collet::conformance
