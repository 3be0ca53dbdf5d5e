// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <cstdint>
#include <string>

#include "reference_backends/gpu/emulator/numeric.h"
#include "reference_backends/gpu/emulator/state.h"
#include "reference_backends/gpu/library/library_api.h"

/// \file
/// Helpers of the emulated libraries: elements of NVIDIA's data types, and checked accesses to device memory.
namespace collet::gpu::emulator {

using Complex = std::complex<double>;

size_t bytes_of(cudaDataType_t type);
bool is_complex(cudaDataType_t type);
Format format_of(cudaDataType_t type);

/// Reads and writes elements of one type as complex numbers. Integers wrap around; their sums are exact as long as a
/// double can hold them.
class Elements {
 public:
  explicit Elements(cudaDataType_t type);
  Complex load(const uint8_t* at) const { return {part(at), part_ == bytes_ ? 0.0 : part(at + part_)}; }
  void store(uint8_t* at, Complex value) const;
  size_t bytes() const { return bytes_; }

 private:
  double part(const uint8_t* at) const;
  void put(uint8_t* at, double value) const;

  size_t bytes_;
  size_t part_;  ///< bytes of the real part
  Format format_;
};

/// Returns what is wrong with an access that a library function makes; empty if it is valid.
std::string problem_of(const State& s, const char* what, uint64_t address, uint64_t bytes, bool is_write);

/// Marks bytes of device memory as written.
void mark_written(State& s, uint64_t address, uint64_t bytes);

}  // namespace collet::gpu::emulator
