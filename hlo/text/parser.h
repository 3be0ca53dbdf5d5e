// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "hlo/base/diagnostics.h"
#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// Converts HLO text to a Module. It accepts and refuses the same text as XLA's parser. Programs that only XLA's
/// verifier refuses are read.

namespace collet::hlo {

/// The treatment of constants whose value was left out of the text: constant({...}).
enum class ElidedConstants : uint8_t {
  Refuse,  ///< an error that names the constant
  Zeros,   ///< all zeros
  /// Drawn from ParseOptions::seed: floats in [-1, 1), integers in [-4, 4] or [0, 8], pred with equal probability.
  Random,
  Counter,  ///< filled as XLA does: a running counter of 32-bit words, from 0 in each module
};

struct ParseOptions {
  std::string file_name;  ///< for messages
  ElidedConstants elided = ElidedConstants::Counter;
  uint64_t seed = 0;
  /// The most bytes that the elided constants of a module may take together.
  int64_t elided_limit = int64_t{4} << 30;
  /// Reads f16, bf16 and f32 as f64 and c64 as c128 throughout: shapes, literals, layouts of the entry. Decimal
  /// constants are parsed as f64.
  bool floats_as_f64 = false;
  size_t max_errors = 20;
};

/// Returns the module, or null after errors, which are then in `diagnostics`.
std::unique_ptr<Module> parse_module(std::string_view text, const ParseOptions& options, Diagnostics& diagnostics);

/// Returns the module, or INVALID_ARGUMENT with all error messages, each with its position, source line and a caret.
Expected<std::unique_ptr<Module>> parse_module(std::string_view text, std::string_view file_name = {},
                                               const ParseOptions& options = {});

/// Parses a shape such as "f32[2,3]{1,0}" or "(s32[], pred[4])".
Expected<Shape> parse_shape(std::string_view text);
/// Copies information from the common attributes of an instruction into its record: for a custom call its
/// configuration, for a composite its name, attributes and version. Readers call this when the extras of an instruction
/// are complete.
void copy_extras_into_record(Module& module, InstrId id);

/// Parses a sharding such as "{devices=[2,1]0,1}" or "{{replicated}, {maximal device=0}}".
Expected<Sharding> parse_sharding(std::string_view text);

}  // namespace collet::hlo
