// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

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

}  // namespace collet::codegen
