// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"
#include "hlo/quantize/quantize.h"
#include "hlo/stablehlo/mlir.h"

/// \file
/// Compares a quantized program with the float program, layer by layer.

namespace collet::hlo {

/// A layer is named as the one whose error grows if its ratio of signal to noise is kGrowthDecibels below the lowest one
/// before it, and below kGoodDecibels.
constexpr double kGrowthDecibels = 10, kGoodDecibels = 30;

struct ComparedLayer {
  std::string name;     ///< of the float program's product or sum
  std::string value;    ///< of the float program's instruction that is compared
  std::string op_name;  ///< of the frontend; empty: unknown
  std::string shape;
  ValueError error;
};

struct LayerComparison {
  std::vector<ComparedLayer> layers;  ///< in the order of the program
  bool by_order = false;     ///< the quantized program names no layers: its products were paired by their order
  std::string why_unpaired;  ///< why no layers were compared; empty: they were
  std::optional<size_t> first_growth;  ///< number of the first layer whose error grows
  ValueError results;
};

/// Returns for each parameter of a quantized program the number of the float program's, as quantize() has stated it; nothing if the
/// program does not state it.
std::vector<int64_t> float_parameters(const mlir::Program& quantized);

/// Runs both programs, so that they return the values of their layers. `inputs` are those of the float program, which has
/// not been prepared; the ones that the quantized program does not take become its constants. `quantized` is changed.
Expected<LayerComparison> compare_layers(mlir::Program& quantized, const Module& float_program, const Literals& inputs,
                                         const CompileProgram& compile);

}  // namespace collet::hlo
