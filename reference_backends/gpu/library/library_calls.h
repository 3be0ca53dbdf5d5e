// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/grid_device.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "reference_backends/gpu/library/libraries.h"
#include "reference_backends/gpu/library/library_way.h"
#include "reference_backends/gpu/library/matrix_calls.h"
#include "reference_backends/gpu/library/work_areas.h"

namespace collet::gpu {

/// Calls cuBLAS, cuBLASLt, cuDNN, cuFFT and cuSOLVER on one stream of a device. May be used from any thread with the device's context
/// current. Throws kernel::Error.
class LibraryCalls {
 public:
  using Handle = codegen::GridDevice::Handle;

  /// `libraries` and `driver` must outlive this object. `check` throws kernel::Error for errors of the driver.
  LibraryCalls(const Libraries& libraries, const Driver& driver, MatrixKernels::Check check, CUstream stream,
               WorkAreas::Allocate allocate);
  LibraryCalls(const LibraryCalls&) = delete;
  LibraryCalls& operator=(const LibraryCalls&) = delete;
  ~LibraryCalls();

  /// See codegen::GridDevice::prepare, drop_prepared and launch_library.
  std::vector<Handle> prepare(const codegen::LibraryCall& what);
  void drop(Handle way) noexcept;
  void launch(Handle way, const uint64_t* addresses);
  /// See codegen::GridDevice::may_be_in_sequence.
  bool may_be_captured(Handle way) const { return reinterpret_cast<const LibraryWay*>(way)->may_be_captured(); }
  /// Returns a graph of the work of a call. The caller destroys it.
  CUgraph capture(Handle way, const uint64_t* addresses);
  /// Returns the memory that was allocated for the libraries. The owner of this object frees it afterwards.
  std::vector<CUdeviceptr> areas() const;

 private:
  class ProductWay;
  struct ConvolutionDescriptors;
  class ConvolutionWay;
  class FftWay;

  std::vector<Handle> prepare_product(const codegen::LibraryProduct& product);
  std::vector<Handle> prepare_convolution(const codegen::LibraryConvolution& convolution);
  /// Returns number and bytes of workspace of the algorithms for a convolution, the fastest first. The caller must hold
  /// cudnn_mutex_.
  std::vector<std::pair<uint32_t, uint64_t>> find_algorithms(codegen::LibraryConvolution::Direction direction,
                                                             const ConvolutionDescriptors& convolution);
  std::vector<Handle> prepare_fft(const codegen::LibraryFft& fft);
  std::vector<Handle> prepare_factorization(const codegen::LibraryFactorization& factorization);
  /// Return the handles of the libraries, and the workspace. They are created when they are first needed.
  cublasLtHandle_t cublas();
  cudnnHandle_t cudnn();
  void make_workspace();
  CUdeviceptr area(uint64_t bytes);  ///< see WorkAreas::get

  const Libraries& libraries_;
  const Driver& driver_;
  const MatrixKernels::Check check_;
  const CUstream stream_;
  const WorkAreas::Allocate allocate_;
  std::mutex mutex_;  ///< guards the fields below
  cublasLtHandle_t cublas_ = nullptr;
  cudnnHandle_t cudnn_ = nullptr;
  CUstream cudnn_stream_ = nullptr;  ///< the handle's stream; guarded by cudnn_mutex_
  /// Memory of products and convolutions, which share it because they run one after the other.
  CUdeviceptr workspace_ = 0;
  WorkAreas areas_;                            ///< all allocated memory
  std::unique_ptr<MatrixCalls> matrix_calls_;  ///< made when it is first needed
  std::mutex capture_mutex_;                   ///< held during a capture
  CUstream capture_stream_ = nullptr;          ///< made when it is first needed; nothing runs on it
  std::mutex cudnn_mutex_;                     ///< held while a thread uses cuDNN's handle
};

}  // namespace collet::gpu
