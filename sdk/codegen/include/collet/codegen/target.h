// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/status.h>

#include <cstdint>
#include <string>

/// \file
/// Targets: the machines for which code is generated. They are this machine, others of its architecture, and other architectures.

namespace collet::codegen {

/// What libraries of a device compute: see GridDevice::prepare.
struct GridLibraries {
  bool products = false;  ///< matrix products. They are an alternative to kernels, for GridDevice to choose.
  /// Multiplications of a product or convolution for which a library is asked: with fewer, starting it is all that counts.
  int64_t least_product = int64_t{1} << 15;
  bool convolutions = false;  ///< convolutions, likewise
  bool fft = false;           ///< fft, of which there are no kernels: without a library, the SDK expands it
};

/// A machine that runs a kernel as a grid of blocks of threads, such as a GPU. The threads of a block share memory and wait for each
/// other; those of a warp, which run one instruction at a time, read each other's registers.
struct GridLimits {
  int warp = 0;              ///< threads per warp: 32, or 0 if the machine runs no grids
  int block_threads = 1024;  ///< most threads of a block, at least 512
  /// Shared memory that a block may use. Half of a processor's lets two blocks run on it at a time.
  int64_t shared_bytes = int64_t{48} << 10;
  /// Most shared memory that a kernel declares. A kernel that uses more declares none: it gets all of its shared memory when it is
  /// started, see GridDevice::Launch.
  int64_t declared_bytes = int64_t{48} << 10;
  int processors = 100;          ///< number of processors, each of which runs several blocks at a time
  int processor_threads = 2048;  ///< threads that one processor runs at a time
  /// Whether matrix instructions round f32 factors to tf32 if the precision attribute of the product is default. If the program
  /// asks for tf32, they always do.
  bool tf32_by_default = false;
  GridLibraries libraries;
};

/// Describes a machine, as plain data. To fill one in by hand, start from cross_target, which fills in what LLVM knows of a
/// processor, and then set what LLVM does not know: caches, speeds, threads.
struct Target {
  std::string triple;
  std::string cpu;
  std::string features;   ///< LLVM's list: "+avx2,-avx512f"
  std::string abi;        ///< calling convention, if the architecture has several: "lp64d"
  int vector_bits = 128;  ///< width of the vectors that Collet emits; LLVM may use every instruction of `cpu`
  /// Not 0: vectors are scalable, in multiples of so many bits (64 in RISC-V's V, 128 in SVE). vector_bits is then the least length
  /// that the processor has; loops take as many elements at a time as it really has. Kernels that rearrange lanes do not.
  int scalable_bits = 0;
  bool masks = false;            ///< masked loads and stores of all element widths are cheap
  bool fma = false;              ///< fused multiply-add is one instruction
  bool scales = false;           ///< AVX-512: multiplying by a power of two is one instruction
  bool half_conversion = false;  ///< f16 converts in hardware
  bool bf16_dot = false;  ///< AVX512-BF16: two products of bf16 are added to an f32 by one instruction, in full vectors
  bool int8_dot = false;  ///< AVX-VNNI, AVX512-VNNI: four products of u8 by s8 are added to an s32, likewise
  bool routines = true;   ///< whether the runner of the launch plan has the routines of RoutineCall
  int threads = 1;        ///< number of threads that share the work of one program
  int64_t first_cache = int64_t{32} << 10;  ///< bytes, of one core
  int64_t second_cache = int64_t{1} << 20;  ///< bytes, of one core
  /// Peak f32 rate of one core; f64 has half of it. It decides how many threads pay. host_target derives it from vectors and clock.
  double flops_per_ns = 60;
  double memory_bytes_per_ns = 20;  ///< memory bandwidth of one core; a default, since no system reports it
  double awake_ns = 6000;           ///< least time of work that is shared with threads that are spinning for work
  double wake_ns = 20000;           ///< least time of work for which sleeping threads are woken

  GridLimits grid;  ///< limits of a machine that runs kernels as grids; warp is 0 for others

  /// Whether kernels are launched as grids. Such a program consists of assembly text for the device's driver and a host launch plan.
  bool has_grid() const { return grid.warp != 0; }
  /// Everything that generated code depends on, as a string; part of cache keys.
  std::string fingerprint() const;
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
Target host_target(const std::string& changes = {});

/// A target for code that runs elsewhere: "x86_64", "aarch64", "riscv64" or "nvptx64", and perhaps ":" and a processor by LLVM's
/// name. Without one: the least that hosts of that architecture have today, x86-64-v2, ARMv8-A, RV64GCV; of GPUs, sm_80. One thread.
/// Caches and speeds are the same whatever the processor: set those that you know. NOT_FOUND for other names, UNIMPLEMENTED where
/// this build of LLVM makes no such code.
Status cross_target(const std::string& name, Target& out);

}  // namespace collet::codegen
