// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/launch_plan.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "reference_backends/gpu/library/libraries.h"
#include "reference_backends/gpu/library/library_way.h"
#include "reference_backends/gpu/library/matrix_kernels.h"
#include "reference_backends/gpu/library/work_areas.h"

namespace collet::gpu {

/// Calls cuBLAS and cuSOLVER for factorizations and triangular systems on one stream of a device. May be used from any
/// thread with the device's context current. Throws kernel::Error.
class MatrixCalls {
 public:
  /// `libraries`, which have factorizations, and `driver` must outlive this object.
  MatrixCalls(const Libraries& libraries, const Driver& driver, MatrixKernels::Check check, CUstream stream,
              const WorkAreas::Allocate& allocate);
  MatrixCalls(const MatrixCalls&) = delete;
  MatrixCalls& operator=(const MatrixCalls&) = delete;
  ~MatrixCalls();

  /// Returns the ways to compute a factorization, the one expected to be fastest first. None if the libraries do not have
  /// it. They must not outlive this object.
  std::vector<std::unique_ptr<LibraryWay>> prepare(const codegen::LibraryFactorization& what);
  /// Returns the memory that was allocated. The owner of this object frees it afterwards.
  std::vector<CUdeviceptr> areas() const;

 private:
  template <class T>
  class Maker;
  class Way;

  void close() noexcept;
  void set_stream(CUstream stream);

  const Libraries& libraries_;
  const MatrixKernels kernels_;
  mutable std::mutex mutex_;  ///< guards the fields below; held while a thread uses the handles
  CUstream stream_;           ///< the stream of both handles
  cublasHandle_t blas_ = nullptr;
  cusolverDnHandle_t solver_ = nullptr;
  syevjInfo_t syevj_ = nullptr;
  gesvdjInfo_t gesvdj_ = nullptr;
  cusolverDnParams_t params_ = nullptr;
  CUdeviceptr blas_workspace_ = 0;
  WorkAreas areas_;  ///< other memory
};

}  // namespace collet::gpu
