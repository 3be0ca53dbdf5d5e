// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/graph.h"

#include <algorithm>

#include "reference_backends/gpu/tensor_maps.h"

namespace collet::gpu {
namespace {

constexpr size_t kMostCaptured = 4;  ///< most captured graphs of a library call that are kept

}  // namespace

Graph::Graph(const Driver& driver, Check check, Capture capture, CUcontext context,
             const codegen::GridDevice::Sequence& sequence)
    : driver_(driver),
      check_(std::move(check)),
      capture_(std::move(capture)),
      context_(context),
      items_(sequence.items),
      arguments_(sequence.arguments),
      captured_(items_.size()) {
  try {
    make();
  } catch (...) {
    destroy();
    throw;
  }
}

void Graph::make() {
  check_(driver_.cuGraphCreate(&graph_, 0), "cuGraphCreate");
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    CUgraphNode node = nullptr;
    const CUgraphNode* const before = nodes_.empty() ? nullptr : &nodes_.back();
    const size_t count = nodes_.empty() ? 0 : 1;
    if (item.kernel != 0) {
      const CUDA_KERNEL_NODE_PARAMS_v2 what = kernel(item, arguments_);
      check_(driver_.cuGraphAddKernelNode_v2(&node, graph_, before, count, &what), "cuGraphAddKernelNode_v2");
    } else if (item.way != 0) {
      check_(driver_.cuGraphAddChildGraphNode(&node, graph_, before, count, child(i, arguments_)),
             "cuGraphAddChildGraphNode");
    } else {
      const CUDA_MEMCPY3D_v2 what = copy(item, arguments_);
      check_(driver_.cuGraphAddMemcpyNode(&node, graph_, before, count, &what, context_), "cuGraphAddMemcpyNode");
    }
    nodes_.push_back(node);
  }
  check_(driver_.cuGraphInstantiateWithFlags(&executable_, graph_, 0), "cuGraphInstantiateWithFlags");
}

void Graph::destroy_graph() noexcept {
  if (executable_) driver_.cuGraphExecDestroy(executable_);
  if (graph_) driver_.cuGraphDestroy(graph_);
  executable_ = nullptr;
  graph_ = nullptr;
  nodes_.clear();
}

void Graph::destroy() noexcept {
  destroy_graph();
  for (const Captured& all : captured_) {
    for (const auto& [addresses, graph] : all) driver_.cuGraphDestroy(graph);
  }
  captured_.clear();
}

CUDA_KERNEL_NODE_PARAMS_v2 Graph::kernel(const Item& item, const std::vector<uint64_t>& arguments) {
  pointers_.clear();
  for (uint32_t i = 0; i < item.argument_count; ++i) {
    pointers_.push_back(const_cast<uint64_t*>(&arguments[item.first_argument + i]));
  }
  maps_.clear();
  check_(append_tensor_maps(driver_, item.maps, &arguments[item.first_argument], &maps_), "cuTensorMapEncodeTiled");
  for (CUtensorMap& map : maps_) pointers_.push_back(&map);
  CUDA_KERNEL_NODE_PARAMS_v2 what;
  what.func = reinterpret_cast<CUfunction>(item.kernel);
  what.gridDimX = item.blocks;
  what.blockDimX = item.block_threads;
  what.sharedMemBytes = item.shared_bytes;
  what.kernelParams = pointers_.data();
  return what;
}

CUDA_MEMCPY3D_v2 Graph::copy(const Item& item, const std::vector<uint64_t>& arguments) {
  CUDA_MEMCPY3D_v2 what;
  what.srcMemoryType = what.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  what.dstDevice = arguments[item.first_argument];
  what.srcDevice = arguments[item.first_argument + 1];
  what.WidthInBytes = what.srcPitch = what.dstPitch = arguments[item.first_argument + 2];
  what.Height = what.Depth = 1;
  return what;
}

CUgraph Graph::child(size_t i, const std::vector<uint64_t>& arguments) {
  const Item& item = items_[i];
  const auto begin = arguments.begin() + item.first_argument;
  std::vector<uint64_t> addresses(begin, begin + item.argument_count);
  Captured& all = captured_[i];
  const auto known = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.first == addresses; });
  if (known != all.end()) {
    std::rotate(known, known + 1, all.end());
    return all.back().second;
  }
  if (all.size() == kMostCaptured) {
    driver_.cuGraphDestroy(all.front().second);
    all.erase(all.begin());
  }
  const CUgraph made = capture_(item.way, addresses.data());
  all.emplace_back(std::move(addresses), made);
  return made;
}

bool Graph::change(size_t i, const std::vector<uint64_t>& arguments) {
  const Item& item = items_[i];
  if (item.kernel != 0) {
    const CUDA_KERNEL_NODE_PARAMS_v2 what = kernel(item, arguments);
    check_(driver_.cuGraphExecKernelNodeSetParams_v2(executable_, nodes_[i], &what),
           "cuGraphExecKernelNodeSetParams_v2");
    return true;
  }
  // A library may start other kernels for other addresses. Such a child graph cannot take the place of the one before.
  if (item.way != 0)
    return driver_.cuGraphExecChildGraphNodeSetParams(executable_, nodes_[i], child(i, arguments)) == CUDA_SUCCESS;
  const CUDA_MEMCPY3D_v2 what = copy(item, arguments);
  check_(driver_.cuGraphExecMemcpyNodeSetParams(executable_, nodes_[i], &what, context_),
         "cuGraphExecMemcpyNodeSetParams");
  return true;
}

void Graph::launch(const std::vector<uint64_t>& arguments, CUstream stream) {
  bool is_usable = executable_ != nullptr;
  for (size_t i = 0; is_usable && i < items_.size(); ++i) {
    const Item& item = items_[i];
    const auto begin = arguments.begin() + item.first_argument, end = begin + item.argument_count;
    const auto known = arguments_.begin() + item.first_argument;
    if (std::equal(begin, end, known)) continue;
    is_usable = change(i, arguments);
    if (is_usable) std::copy(begin, end, known);
  }
  if (!is_usable) {
    destroy_graph();
    arguments_ = arguments;
    try {
      make();
    } catch (...) {
      destroy_graph();
      throw;
    }
  }
  check_(driver_.cuGraphLaunch(executable_, stream), "cuGraphLaunch");
}

}  // namespace collet::gpu
