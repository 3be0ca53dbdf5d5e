// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/emulator/library_elements.h"

#include <cstring>

namespace collet::gpu::emulator {

size_t bytes_of(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_8I:
      return 1;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    case CUDA_R_64F:
    case CUDA_C_32F:
      return 8;
    case CUDA_C_64F:
      return 16;
    default:
      return 4;
  }
}

bool is_complex(cudaDataType_t type) {
  return type == CUDA_C_32F || type == CUDA_C_64F;
}

Format format_of(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_16F:
      return Format::kF16;
    case CUDA_R_16BF:
      return Format::kBf16;
    case CUDA_R_64F:
    case CUDA_C_64F:
      return Format::kF64;
    case CUDA_R_8I:
      return Format::kS8;
    case CUDA_R_32I:
      return Format::kS32;
    default:
      return Format::kF32;
  }
}

Elements::Elements(cudaDataType_t type)
    : bytes_(bytes_of(type)), part_(is_complex(type) ? bytes_ / 2 : bytes_), format_(format_of(type)) {}

void Elements::store(uint8_t* at, Complex value) const {
  put(at, value.real());
  if (part_ != bytes_) put(at + part_, value.imag());
}

double Elements::part(const uint8_t* at) const {
  uint64_t bits = 0;
  std::memcpy(&bits, at, part_);
  if (format_ == Format::kS8) return static_cast<int8_t>(bits);
  if (format_ == Format::kS32) return static_cast<int32_t>(bits);
  return to_double(bits, format_);
}

void Elements::put(uint8_t* at, double value) const {
  const bool is_integer = format_ == Format::kS32 || format_ == Format::kS8;
  const uint64_t bits = is_integer ? static_cast<uint64_t>(static_cast<int64_t>(value)) : from_double(value, format_);
  std::memcpy(at, &bits, part_);
}

std::string problem_of(const State& s, const char* what, uint64_t address, uint64_t bytes, bool is_write) {
  const std::string problem = s.machine.memory->problem_of(address, bytes, is_write, s.machine.options.initialised);
  return problem.empty() ? problem : std::string(what) + ": " + problem;
}

void mark_written(State& s, uint64_t address, uint64_t bytes) {
  uint8_t* const states = s.machine.memory->states(address);
  for (uint64_t i = 0; i < bytes; ++i) states[i] |= kByteWritten;
}

}  // namespace collet::gpu::emulator
