// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// What happens to a float program before it is quantized, and before it is compared with a quantized one: afterwards both have
/// the same names for the same values.

namespace collet::hlo {

/// Replaces parameters of the entry, by number, by constants of their shape; the other ones are numbered anew.
Status bind_parameters(Module& module, const std::map<int64_t, Literal>& values);

/// Simplifies the program as every backend gets it, and makes factors and offsets of channels behind a product part of its
/// weights and of one bias, batch norms among them. The result depends on nothing but the program.
Status prepare_for_quantization(Module& module);

/// If the elements of a constant, or of a broadcast of one, differ along dimension `dim` at most, returns them: one for each
/// index of that dimension, or one for all. Returns nothing for other values.
std::optional<std::vector<double>> channel_values(const Module& module, InstrId id, int64_t dim);

/// A product (dot or convolution) of the entry, and which of its operands is a constant: the weights.
struct ProductForm {
  int weights = -1;      ///< number of the operand; -1: neither
  int64_t axis = -1;     ///< dimension of the weights that is alone in not being summed over; -1: none, or several
  int64_t channel = -1;  ///< dimension of the result along which that dimension runs
};
ProductForm product_form(const Module& module, const Instruction& product);

}  // namespace collet::hlo
