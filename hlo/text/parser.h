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
/// HLO text to Module. Reads what XLA's parser reads and refuses what it refuses; what only XLA's verifier refuses is
/// read.

namespace collet::hlo {

/// The treatment of constants whose value was left out of the text: constant({...}).
enum class ElidedConstants : uint8_t {
  Refuse,   ///< an error that names the constant
  Zeros,    ///< all zeros
  Random,   ///< drawn from ParseOptions::seed: floats in [-1, 1), integers in [-4, 4] or [0, 8], pred a coin
  Counter,  ///< as XLA fills them: a running counter of 32-bit words, from 0 in each module
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

/// The module, or null after errors, which are in `diagnostics` then.
std::unique_ptr<Module> parse_module(std::string_view text, const ParseOptions& options, Diagnostics& diagnostics);

/// The module, or INVALID_ARGUMENT with every complaint, its place, source line and caret.
Expected<std::unique_ptr<Module>> parse_module(std::string_view text, std::string_view file_name = {},
                                               const ParseOptions& options = {});

/// "f32[2,3]{1,0}", "(s32[], pred[4])" to a shape.
Expected<Shape> parse_shape(std::string_view text);
/// Some records hold what attributes of any instruction say: a custom call its configuration, a composite its name,
/// attributes and version. Readers call this for an instruction whose extras are complete.
void copy_extras_into_record(Module& module, InstrId id);

/// "{devices=[2,1]0,1}", "{{replicated}, {maximal device=0}}" to a sharding.
Expected<Sharding> parse_sharding(std::string_view text);

}  // namespace collet::hlo
