// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/status.h>

#include <cstddef>
#include <cstdint>
#include <string>

/// \file
/// Describes the machines for which code is generated: this machine, other processors of its architecture, other
/// architectures and GPUs.

namespace collet::codegen {

/// The ops that libraries of a device compute, see GridDevice::prepare and GridDevice::launch_collective.
struct GridLibraries {
  bool products = false;  ///< matrix products; the device's measurements choose between kernels and the library
  /// Least number of multiplications of a product or convolution for which a library is considered: below it the time
  /// to start the work dominates.
  int64_t least_product = int64_t{1} << 15;
  bool convolutions = false;  ///< convolutions, chosen in the same way
  bool fft = false;           ///< fft, for which there are no kernels: without a library, the SDK expands the op
  /// cholesky, triangular-solve and the factorizations that programs call by name (lu, qr, eigh, svd; docs/patterns.md)
  /// of f32, f64, c64 and c128. Without a library, the SDK expands them.
  bool factorizations = false;
  /// Collectives that combine arrays by add or multiply or, for integers, by minimum or maximum. Without a library,
  /// the devices exchange the arrays and kernels combine them.
  bool collectives = false;
};

/// A machine that runs a kernel as a grid of blocks of threads, such as a GPU. The threads of a block share memory and wait for each
/// other; those of a warp, which run one instruction at a time, read each other's registers.
struct GridLimits {
  int warp = 0;              ///< threads per warp: 32, or 0 if the machine runs no grids
  int block_threads = 1024;  ///< most threads of a block, at least 512, or 64 if `neutral`
  /// Bytes of shared memory that a block may use. With half of the memory that a processor has, two blocks can run on
  /// it at a time.
  int64_t shared_bytes = int64_t{48} << 10;
  /// Most bytes of shared memory that a block can get if no second one runs beside it.
  int64_t block_shared_bytes = int64_t{48} << 10;
  /// Most bytes of shared memory that a kernel declares. A kernel that uses more declares none: it gets all of its
  /// shared memory when it is started, see GridDevice::Launch.
  int64_t declared_bytes = int64_t{48} << 10;
  /// Whether four warps together multiply matrices in shared memory, and the device copies boxes of arrays there by
  /// itself: NVIDIA's compute capability 9.0 has both (wgmma, cp.async.bulk.tensor).
  bool warpgroups = false;
  /// Whether no more is known of the machine than these limits: a group of threads shares memory, and waits for each other, and that is
  /// all. Then grouped updates are not kernels, devices do not exchange arrays, and there are no matrix instructions. See grid_machine.
  bool neutral = false;
  int processors = 100;                     ///< number of processors, each of which runs several blocks at a time
  int processor_threads = 2048;             ///< threads that one processor runs at a time
  int64_t cache_bytes = int64_t{32} << 20;  ///< bytes of the last cache before the device's memory
  /// Whether matrix instructions round f32 factors to tf32 if the precision attribute of the product is default. If the program
  /// asks for tf32, they always do.
  bool tf32_by_default = false;
  GridLibraries libraries;
};

/// The numbers by which the rules of schedules and of matrix products decide what pays, beside the other fields of Target: see tuning.def.
struct Tuning {
#define COLLET_TUNING(type, name, value, unit, text) type name = value; /* in unit: text */
#include <collet/codegen/tuning.def>
};

/// Most arrays of a kernel of OpenCL C: every device takes 1,024 bytes of parameters, and an array is an address and an offset.
inline constexpr int kMostOpenClArrays = 64;

/// Describes a machine, as plain data. To fill one in by hand, start from cross_target, which fills in what LLVM knows
/// of a processor, and then set the fields that LLVM does not know: caches, speeds, threads.
struct Target {
  std::string triple;
  std::string cpu;
  std::string features;       ///< LLVM's list: "+avx2,-avx512f"
  std::string abi;            ///< calling convention, if the architecture has several: "lp64d"
  int vector_bits = 128;      ///< width of the vectors that Collet emits; LLVM may use every instruction of `cpu`
  int vector_registers = 16;  ///< registers that hold vectors: 32 with AVX-512, on AArch64 and on RISC-V
  /// If not 0, vectors are scalable, and their length is a multiple of this many bits (64 in RISC-V's V, 128 in SVE).
  /// vector_bits is then the least length that the processor has, and loops process as many elements at a time as the
  /// vectors really hold. Kernels that rearrange lanes use vectors of vector_bits instead.
  int scalable_bits = 0;
  bool masks = false;            ///< masked loads and stores of all element widths are cheap
  bool fma = false;              ///< fused multiply-add is one instruction
  bool scales = false;           ///< multiplying by a power of two is one instruction (AVX-512)
  bool half_conversion = false;  ///< the processor converts f16 in hardware
  bool bf16_dot = false;         ///< one instruction adds two products of bf16 to an f32, in full vectors (AVX512-BF16)
  /// One instruction adds four products of u8 by s8 to an s32, in full vectors (AVX-VNNI, AVX512-VNNI).
  bool int8_dot = false;
  /// Most arrays that a kernel can have as parameters; 0 if there is no limit, or that of PTX.
  int kernel_arrays = 0;
  /// Whether sorts are kernels that are written with the program, although other ops of RoutineCall are not: see CodeForm::kOpenCl.
  bool sort_kernels = false;
  bool routines = true;                     ///< whether the program that runs the launch plan implements RoutineCall
  int threads = 1;                          ///< number of threads that share the work of one program
  int64_t first_cache = int64_t{32} << 10;  ///< bytes of one core's first-level cache
  int64_t second_cache = int64_t{1} << 20;  ///< bytes of one core's second-level cache
  int64_t cache_line = 64;                  ///< bytes of a line of all caches
  /// Bytes of one way of the first-level cache: lines that are so far apart have the same few places in it.
  int64_t cache_way = int64_t{4} << 10;
  int64_t page = int64_t{4} << 10;  ///< bytes of a page of virtual memory
  /// Peak f32 operations per ns of one core; f64 has half of it. It decides how many threads a step uses. host_target
  /// derives it from vectors and clock.
  double flops_per_ns = 60;
  double memory_bytes_per_ns = 20;  ///< memory bandwidth of one core; a default, since no system reports it
  /// Least duration in ns of work that is shared while the other threads are spinning.
  double awake_ns = 6000;
  double wake_ns = 20000;  ///< least duration in ns of work for which sleeping threads are woken

  Tuning tuning;
  GridLimits grid;  ///< limits of a machine that runs kernels as grids; warp is 0 for others

  /// Whether kernels are launched as grids. Such a program consists of assembly text for the device's driver and a host launch plan.
  bool has_grid() const { return grid.warp != 0; }
  /// Returns a string of everything that generated code depends on; it is part of cache keys.
  std::string fingerprint() const;
};

/// One of the numbers of Tuning.
struct TuningEntry {
  const char* name;
  int64_t value;     ///< the usual value
  const char* unit;  ///< "rows", "bytes"
  const char* text;  ///< what it decides
};

/// Returns an entry of tuning.def; null past the last one.
const TuningEntry* tuning_entry(size_t index);

/// Sets a number of `tuning` by its name. Returns NOT_FOUND for another name, and INVALID_ARGUMENT for a value below 1 or above 2^31 - 1.
Status set_tuning(Tuning& tuning, const std::string& name, int64_t value);

/// Return machines of which no more is said than that they have `registers` registers of one f32, or of `lanes`, a power of two.
/// For code that the compiler of a vendor makes of source text: see CodeForm::kSource. Set the fields that are known: fma, caches,
/// speeds; and `routines` if the code runs in this process, see host_routines.h.
Target scalar_machine();
Target vector_machine(int lanes, int registers = 16);

/// Returns a grid of which no more is said than the number of its processors, the bytes of memory that the work-items of a group share,
/// and how many work-items a group may have, at least 64. For CodeForm::kOpenCl, with or without `sort_kernels`, and for kKernels.
Target grid_machine(int processors, int64_t local_bytes, int group = 256);

/// Describes such a machine by a name: "c" for scalar_machine, "c:8" for vector_machine(8). Returns NOT_FOUND for other names.
Status source_target(const std::string& name, Target& out);

/// Checks a list of feature changes for host_target: features that LLVM reports for this machine's processor, each
/// after + or -. Returns OK for an empty list, and INVALID_ARGUMENT for an unknown feature, for one to be switched on
/// that the processor lacks, and for one to be switched off that every processor of the architecture has.
Status check_features(const std::string& changes);

/// Describes a processor by LLVM's name ("x86-64-v3", "znver4"). It has this machine's architecture, but may be another
/// processor. NOT_FOUND for a name that LLVM does not know.
Status named_target(const std::string& name, Target& out);

/// Returns FAILED_PRECONDITION, with the name of a missing feature, unless code for `target` runs on this machine.
Status check_runs_here(const Target& target);

/// Returns the target of the machine that this process runs on. `changes` is a comma-separated list such as "-avx512f";
/// switching a feature off also switches off what needs it: "-avx512f" leaves AVX2, "-sse3" leaves SSE2.
Target host_target(const std::string& changes = {});

/// Describes a target for code that runs elsewhere. `name` is "x86_64", "aarch64", "riscv64" or "nvptx64", optionally
/// followed by ":" and a processor by LLVM's name. Without a processor, it is the least that such hosts have today
/// (x86-64-v2, ARMv8-A, RV64GCV), or sm_80 for GPUs. The target has one thread. Its caches and speeds do not depend on
/// the processor: set those that you know. Returns NOT_FOUND for other names, and UNIMPLEMENTED if this build of LLVM
/// generates no such code.
Status cross_target(const std::string& name, Target& out);

}  // namespace collet::codegen
