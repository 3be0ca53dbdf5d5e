// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/grid_device.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "reference_backends/gpu/library/libraries.h"

namespace collet::gpu {

/// Calls of cuBLASLt, cuDNN and cuFFT on one stream of a device. Any thread, with the device's context current. Throws kernel::Error.
class LibraryCalls {
 public:
  using Handle = codegen::GridDevice::Handle;
  /// Memory of the device; throws where there is not enough.
  using Allocate = std::function<CUdeviceptr(uint64_t bytes)>;

  /// `libraries` must outlive this.
  LibraryCalls(const Libraries& libraries, CUstream stream, Allocate allocate);
  LibraryCalls(const LibraryCalls&) = delete;
  LibraryCalls& operator=(const LibraryCalls&) = delete;
  ~LibraryCalls();

  /// See codegen::GridDevice::prepare, drop_prepared and launch_library.
  std::vector<Handle> prepare(const codegen::LibraryCall& what);
  void drop(Handle way) noexcept;
  void launch(Handle way, const uint64_t* addresses);
  /// Memory that was allocated for the libraries; the owner of this frees it afterwards.
  std::vector<CUdeviceptr> areas() const {
    std::vector<CUdeviceptr> out;
    for (const auto& [bytes, area] : areas_) out.push_back(area);
    return out;
  }

 private:
  /// A way to compute a call.
  class Way {
   public:
    virtual ~Way() = default;
    virtual void launch(const uint64_t* addresses) = 0;
  };
  class ProductWay;
  class ConvolutionWay;
  class FftWay;

  std::vector<Handle> prepare_product(const codegen::LibraryProduct& product);
  std::vector<Handle> prepare_convolution(const codegen::LibraryConvolution& convolution);
  std::vector<Handle> prepare_fft(const codegen::LibraryFft& fft);
  /// The handles of the libraries, and the workspace, made when they are first needed.
  cublasLtHandle_t cublas();
  cudnnHandle_t cudnn();
  void make_workspace();
  /// Memory of at least so many bytes, which all calls use one after the other.
  CUdeviceptr fft_area(uint64_t bytes);

  const Libraries& libraries_;
  const CUstream stream_;
  const Allocate allocate_;
  std::mutex mutex_;  ///< of what follows
  cublasLtHandle_t cublas_ = nullptr;
  cudnnHandle_t cudnn_ = nullptr;
  CUdeviceptr workspace_ = 0;                   ///< of products and convolutions: they run one behind the other
  std::multimap<uint64_t, CUdeviceptr> areas_;  ///< all memory, by bytes
  std::mutex cudnn_mutex_;                      ///< one thread at a time uses cuDNN's handle
};

}  // namespace collet::gpu
