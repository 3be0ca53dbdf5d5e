// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/grid_backend.hpp>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "reference_backends/gpu/driver/driver.h"

namespace collet::gpu {

/// A sequence of kernels, copies and library calls as a CUDA graph, which one call starts. Nodes whose arguments differ
/// from those of the previous start are changed first; launches that have not run yet keep their arguments. A library call
/// is a child graph, which is captured anew for addresses that have not been seen lately. If a library starts other kernels
/// for other addresses, so that child graphs cannot take each other's place, there is a whole graph for each of the latest
/// sets of addresses. May be used by one thread at a time, with the context current.
class Graph {
 public:
  using Check = std::function<void(CUresult, const char*)>;
  /// Returns a graph of the work of a library call, which the caller destroys.
  using Capture = std::function<CUgraph(codegen::GridDevice::Handle way, const uint64_t* addresses)>;

  /// Makes the graph. Errors of the driver are thrown by `check`.
  Graph(const Driver& driver, Check check, Capture capture, CUcontext context,
        const codegen::GridDevice::Sequence& sequence);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { destroy(); }

  void launch(const std::vector<uint64_t>& arguments, CUstream stream);

 private:
  using Item = codegen::GridDevice::Sequence::Item;
  /// The captured graphs of a library call, by its addresses, those of the latest use last.
  using Captured = std::vector<std::pair<std::vector<uint64_t>, CUgraph>>;

  /// A graph with the current arguments of its nodes.
  struct Whole {
    std::vector<uint64_t> arguments;
    CUgraph graph = nullptr;  ///< kept because it owns the nodes
    CUgraphExec executable = nullptr;
    std::vector<CUgraphNode> nodes{};
  };

  /// Makes a graph, in place of the oldest one if there are many, and adds it to `graphs_`.
  void add(const std::vector<uint64_t>& arguments);
  /// True if the library calls of a graph have the given arguments.
  bool has_calls(const Whole& one, const std::vector<uint64_t>& arguments) const;
  bool has_arguments(const Whole& one, const Item& item, const std::vector<uint64_t>& arguments) const;
  /// Changes the nodes whose arguments differ. Returns false if a child graph cannot be changed.
  bool change(Whole& one, const std::vector<uint64_t>& arguments);
  CUDA_KERNEL_NODE_PARAMS_v2 kernel(const Item& item, const std::vector<uint64_t>& arguments);
  static CUDA_MEMCPY3D_v2 copy(const Item& item, const std::vector<uint64_t>& arguments);
  CUgraph child(size_t i, const std::vector<uint64_t>& arguments);
  void destroy(const Whole& one) noexcept;
  void destroy() noexcept;

  const Driver& driver_;
  const Check check_;
  const Capture capture_;
  const CUcontext context_;
  const std::vector<Item> items_;
  std::vector<void*> pointers_;     ///< scratch: pointers to the arguments of a kernel
  std::vector<CUtensorMap> maps_;   ///< scratch: its descriptors of arrays
  std::vector<Captured> captured_;  ///< by item
  std::vector<Whole> graphs_;       ///< that of the latest start last
  bool can_change_calls_ = true;    ///< false once a child graph could not take another one's place
};

}  // namespace collet::gpu
