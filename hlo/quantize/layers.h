// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"
#include "hlo/quantize/prepare.h"

/// \file
/// The layers of a program that can be computed on integers, and which values are stored as integers when some of them
/// are.

namespace collet::hlo {

/// A product and the bias behind it.
struct Layer {
  InstrId product = InstrId::None;
  InstrId result = InstrId::None;  ///< the product, or its sum with the bias
  ProductForm form;
  std::vector<double> bias;  ///< one for each channel, or one for all; empty: none
  /// Operands that are no constants must have the zero point 0: the sum over the other operand, which the zero point is
  /// multiplied with, would be no vector.
  bool symmetric = false;
  bool weights_only = false;  ///< it can be computed with quantized weights, but not on integers
  std::string why_float;      ///< why it cannot be computed on integers; empty: it can
};

/// Which values are stored as integers.
struct Placement {
  std::vector<bool> stored;     ///< by instruction: the value is stored as integers
  std::vector<bool> integer;    ///< by instruction: the op, which is no product, is computed on stored values
  std::vector<uint32_t> group;  ///< by instruction: values of one group have the same quantization
  std::vector<bool> symmetric;  ///< by group: the zero point is 0
  /// By instruction: the range of the group has to hold the value. It need not hold what a maximum, a clamp or a slice behind it
  /// is going to drop.
  std::vector<bool> decides;
};

/// The layers of a prepared program's entry. The module must outlive it and stay as it is.
class LayerGraph {
 public:
  static Expected<LayerGraph> make(const Module& module);

  const Module& module() const { return *module_; }
  const std::vector<Layer>& layers() const { return layers_; }
  /// Products that stand in loops, branches or other computations, which stay float: by name.
  const std::vector<std::string>& inner_products() const { return inner_; }
  /// Makes a layer the product alone; the sum with the bias becomes an op on floats, or on integers.
  void leave_out_bias(size_t layer) {
    layers_[layer].result = layers_[layer].product;
    layers_[layer].bias.clear();
  }
  /// Returns the placement if the layers with true in `chosen` are computed on integers.
  Placement place(const std::vector<bool>& chosen) const;
  /// Returns the value that is compared with the float program's for the result of a layer or of a sum: this value, or what
  /// the maximum, minimum or clamp behind it gives where these are computed on integers, since it is that value which the
  /// range holds.
  InstrId compared_value(InstrId result, const Placement& placement) const;
  /// True for an op that gives the same on integers of one quantization as on the real numbers they stand for.
  bool keeps_quantization(InstrId id) const { return roles_[index_of(id)] == Role::Same; }
  /// True for a pad with minus infinity in front of a pooling of maxima. Integers have none: the least one stands for it.
  bool pads_with_infinity(InstrId id) const;
  /// The operands of an op, computed on integers, that are stored values; the other ones are constants.
  std::vector<InstrId> data_operands(InstrId id) const;

 private:
  enum class Role : uint8_t { Float, Same, Sum };
  explicit LayerGraph(const Module& module) : module_(&module), users_(module, module.entry()) {}
  Role role_of(InstrId id) const;
  Layer layer_of(InstrId id) const;
  /// Sets `stored` and `integer`. Values with true in `kept_float` are computed as floats.
  void place_integers(const std::vector<bool>& chosen, const std::vector<bool>& kept_float, Placement& out) const;

  const Module* module_;
  UserMap users_;
  std::vector<Layer> layers_;
  std::vector<std::string> inner_;
  std::vector<Role> roles_;  // by instruction
};

}  // namespace collet::hlo
