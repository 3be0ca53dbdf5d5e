// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "reference_backends/gpu/driver/driver.h"

namespace collet::gpu {

/// Kernels that prepare arguments of cuBLAS and cuSOLVER, or complete results, on the device. May be used from any thread
/// with the device's context current, in which it was made.
class MatrixKernels {
 public:
  /// Throws kernel::Error unless the result of the named function of the driver is success.
  using Check = std::function<void(CUresult result, const char* function)>;

  /// Loads the kernels. `driver` must outlive this object.
  MatrixKernels(const Driver& driver, Check check);
  MatrixKernels(const MatrixKernels&) = delete;
  MatrixKernels& operator=(const MatrixKernels&) = delete;
  ~MatrixKernels();

  /// Writes the addresses of `count` matrices to the array of pointers `to`: the first is at `first`, each other one
  /// `distance` bytes behind the one before it.
  void write_pointers(CUdeviceptr to, CUdeviceptr first, uint64_t distance, uint64_t count, CUstream stream) const;

  /// Writes the order of rows that exchanges give, s32 from 0 on, for each matrix of a batch: row i has been exchanged
  /// with row pivots[i] - 1, for i from 0 to `exchanges` - 1.
  void write_orders(CUdeviceptr pivots, CUdeviceptr orders, uint64_t rows, uint64_t exchanges, uint64_t batches,
                    CUstream stream) const;

 private:
  void launch(CUfunction kernel, uint64_t threads, void** parameters, CUstream stream) const;

  const Driver& driver_;
  const Check check_;
  CUmodule module_ = nullptr;
  CUfunction pointers_ = nullptr;
  CUfunction orders_ = nullptr;
};

}  // namespace collet::gpu
