// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sdk/codegen/status.h"

namespace collet::codegen {

/// What code is generated for.
struct Target {
  std::string triple;
  std::string cpu;
  std::string features;          ///< LLVM's list: "+avx2,-avx512f"
  int vector_bits = 128;         ///< of the widest registers used
  bool masks = false;            ///< masked loads and stores of all element widths are cheap
  bool fma = false;              ///< fused multiply-add is one instruction
  bool scales = false;           ///< AVX-512: multiplying by a power of two is one instruction
  bool half_conversion = false;  ///< f16 converts in hardware
  bool bf16_dot = false;         ///< dot products of bf16 pairs
  bool int8_dot = false;         ///< dot products of four int8

  /// All that generated code depends on.
  std::string fingerprint() const { return triple + ";" + cpu + ";" + features; }
};

/// INVALID_ARGUMENT unless `changes` is empty or what host_target takes: features that LLVM tells of this machine's
/// processor, each behind + or -. What the processor lacks cannot be switched on, nor what every processor of its kind has
/// be switched off.
Status check_features(const std::string& changes);

/// Describes a processor by LLVM's name ("x86-64-v3", "znver4"). It has this machine's architecture, but need not be its own.
/// NOT_FOUND for a name that LLVM does not know.
Status named_target(const std::string& name, Target& out);

/// FAILED_PRECONDITION unless code for `target` runs on this machine: it names a feature that is missing.
Status check_runs_here(const Target& target);

/// The machine that this runs on. `changes` is a comma-separated list such as "-avx512f"; switching a feature off
/// also switches off what needs it: "-avx512f" leaves AVX2, "-sse3" leaves SSE2.
Target host_target(const std::string& changes);

}  // namespace collet::codegen
