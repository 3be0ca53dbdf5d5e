// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "hlo/ir/module.h"

/// \file
/// Converts a Module to HLO text. Text in the styles Long and Short can be read again as an equal module (Short: except
/// for what it omits), and printing that gives the same text.

namespace collet::hlo {

enum class PrintStyle : uint8_t {
  Long,         ///< names with %, signatures, everything that is known
  Short,        ///< no %, no signatures, no metadata, origin, backend_config, control dependencies
  Canonical,    ///< for comparing: the entry alone, bodies inline, instructions named tmp_0, tmp_1, ..., operand shapes
  Fingerprint,  ///< for hashing: every computation as Canonical has it, sorted, no names, only small constants
};

struct PrintOptions {
  PrintStyle style = PrintStyle::Long;
  /// Prints constants of more than ten elements, and tuple constants; otherwise they are printed as "{...}".
  bool large_constants = true;
  /// If false, metadata is omitted from the long form as well.
  bool metadata = true;
  /// Prints layouts as they were written; if false, none.
  bool layouts = true;
};

std::string print_module(const Module& module, const PrintOptions& options = {});
std::string print_computation(const Module& module, CompId computation, const PrintOptions& options = {});
/// Returns the instruction as one line, without indentation.
std::string print_instruction(const Module& module, InstrId instruction, const PrintOptions& options = {});
/// Returns a value: "{1, 2}", "(f32[] 1, s32[2] {1, 2})".
std::string print_literal(const Literal& literal, bool large = true);

}  // namespace collet::hlo
