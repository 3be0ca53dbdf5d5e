// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/grid_backend.hpp>

#include <functional>
#include <vector>

#include "reference_backends/gpu/driver/driver.h"

namespace collet::gpu {

/// A sequence of kernels and copies as a CUDA graph, which one call starts. Nodes whose arguments differ from those of
/// the previous start are changed first; launches that have not run yet keep their arguments. May be used by one thread
/// at a time, with the context current.
class Graph {
 public:
  using Check = std::function<void(CUresult, const char*)>;

  /// Makes the graph. Errors of the driver are thrown by `check`.
  Graph(const Driver& driver, Check check, CUcontext context, const codegen::GridDevice::Sequence& sequence);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { destroy(); }

  void launch(const std::vector<uint64_t>& arguments, CUstream stream);

 private:
  using Item = codegen::GridDevice::Sequence::Item;
  CUDA_KERNEL_NODE_PARAMS_v2 kernel(const Item& item, const std::vector<uint64_t>& arguments);
  static CUDA_MEMCPY3D_v2 copy(const Item& item, const std::vector<uint64_t>& arguments);
  void destroy() noexcept;

  const Driver& driver_;
  const Check check_;
  const CUcontext context_;
  const std::vector<Item> items_;
  std::vector<uint64_t> arguments_;  ///< current arguments of the nodes
  std::vector<void*> pointers_;      ///< scratch: pointers to the arguments of a kernel
  std::vector<CUtensorMap> maps_;    ///< scratch: its descriptors of arrays
  CUgraph graph_ = nullptr;          ///< kept because it owns the nodes
  CUgraphExec executable_ = nullptr;
  std::vector<CUgraphNode> nodes_;
};

}  // namespace collet::gpu
