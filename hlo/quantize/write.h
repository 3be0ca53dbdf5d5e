// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/literal.h"
#include "hlo/quantize/calibrate.h"
#include "hlo/quantize/layers.h"
#include "hlo/stablehlo/mlir.h"

namespace collet::hlo {

/// Frontend attributes of an op that gives the value of a layer: the layer's name, which is that of the float program's
/// product or sum, and the name of the instruction of the prepared float program that gives the same value.
constexpr std::string_view kLayerAttribute = "collet.layer", kValueAttribute = "collet.value";
/// Frontend attribute of a parameter: the number of the float program's parameter.
constexpr std::string_view kParameterAttribute = "collet.parameter";

/// Weights as integers of 8 or 4 bits, without zero points.
struct QuantizedWeights {
  Literal stored;
  std::vector<double> scales;  ///< one, one for each index of `axis`, or one for each block, row-major
  int64_t axis = -1;
  /// Of blocks: how many there are along each dimension, and of how many elements each is. Else empty.
  std::vector<int64_t> grid, block;
  int64_t low = -127, high = 127;
};

/// How each layer is written.
enum class LayerForm : uint8_t {
  Float,
  Weights,  ///< the weights are stored as integers, and the product is computed on floats
  Integers
};

struct QuantizedForm {
  std::vector<LayerForm> layers;                  ///< in the order of LayerGraph::layers()
  Placement placement;                            ///< of the layers that are Integers
  std::unordered_map<uint32_t, Uniform> uniform;  ///< of each group of stored values, by its number
  std::vector<QuantizedWeights> weights;          ///< of each layer that has weights and is not Float
  std::vector<int64_t> parameters;                ///< numbers of the float program's parameters; empty: the same
};

/// Returns the scale of the accumulator of a layer: the product of the operands' scales, as f32.
double accumulator_scale(double lhs, double rhs);

/// Writes the program with its layers in these forms, as StableHLO with quantized types. Parameters and results keep their
/// types.
Expected<std::unique_ptr<mlir::Program>> write_quantized(const LayerGraph& graph, const QuantizedForm& form);

}  // namespace collet::hlo
