// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace collet::codegen {

/// What code is generated for.
struct Target {
  std::string triple;
  std::string cpu;
  std::string features;                     ///< LLVM's list: "+avx2,-avx512f"
  std::string abi;                          ///< of calls, where the architecture has several: "lp64d"
  int vector_bits = 128;                    ///< of the widest registers used
  bool masks = false;                       ///< masked loads and stores of all element widths are cheap
  bool fma = false;                         ///< fused multiply-add is one instruction
  bool scales = false;                      ///< AVX-512: multiplying by a power of two is one instruction
  bool half_conversion = false;             ///< f16 converts in hardware
  bool routines = true;                     ///< whoever runs the launch plan has the routines of RoutineCall
  int threads = 1;                          ///< that share the work of one program
  int64_t first_cache = int64_t{32} << 10;  ///< bytes, of one core
  int64_t second_cache = int64_t{1} << 20;  ///< bytes, of one core
  double flops_per_ns = 60;                 ///< of one core, in f32 products; half of it in f64
  double memory_bytes_per_ns = 20;
  double awake_ns = 6000;  ///< work that pays for sharing it among threads that wait for work
  double wake_ns = 20000;  ///< work that pays for waking threads that sleep

  /// All that generated code depends on.
  std::string fingerprint() const { return triple + ";" + cpu + ";" + features; }
};

}  // namespace collet::codegen
