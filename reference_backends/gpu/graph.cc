// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/graph.h"

#include <algorithm>

#include "reference_backends/gpu/tensor_maps.h"

namespace collet::gpu {
namespace {

constexpr size_t kMostCaptured = 4;  ///< most captured graphs of a library call that are kept
constexpr size_t kMostGraphs = 4;    ///< most whole graphs that are kept

}  // namespace

Graph::Graph(const Driver& driver, Check check, Capture capture, CUcontext context,
             const codegen::GridDevice::Sequence& sequence)
    : driver_(driver),
      check_(std::move(check)),
      capture_(std::move(capture)),
      context_(context),
      items_(sequence.items),
      captured_(items_.size()) {
  try {
    add(sequence.arguments);
  } catch (...) {
    destroy();
    throw;
  }
}

void Graph::add(const std::vector<uint64_t>& arguments) {
  if (graphs_.size() == kMostGraphs) {
    destroy(graphs_.front());
    graphs_.erase(graphs_.begin());
  }
  Whole made;
  made.arguments = arguments;
  try {
    check_(driver_.cuGraphCreate(&made.graph, 0), "cuGraphCreate");
    for (size_t i = 0; i < items_.size(); ++i) {
      const Item& item = items_[i];
      CUgraphNode node = nullptr;
      const CUgraphNode* const before = made.nodes.empty() ? nullptr : &made.nodes.back();
      const size_t count = made.nodes.empty() ? 0 : 1;
      if (item.kernel != 0) {
        const CUDA_KERNEL_NODE_PARAMS_v2 what = kernel(item, arguments);
        check_(driver_.cuGraphAddKernelNode_v2(&node, made.graph, before, count, &what), "cuGraphAddKernelNode_v2");
      } else if (item.way != 0) {
        check_(driver_.cuGraphAddChildGraphNode(&node, made.graph, before, count, child(i, arguments)),
               "cuGraphAddChildGraphNode");
      } else {
        const CUDA_MEMCPY3D_v2 what = copy(item, arguments);
        check_(driver_.cuGraphAddMemcpyNode(&node, made.graph, before, count, &what, context_), "cuGraphAddMemcpyNode");
      }
      made.nodes.push_back(node);
    }
    check_(driver_.cuGraphInstantiateWithFlags(&made.executable, made.graph, 0), "cuGraphInstantiateWithFlags");
  } catch (...) {
    destroy(made);
    throw;
  }
  graphs_.push_back(std::move(made));
}

void Graph::destroy(const Whole& one) noexcept {
  if (one.executable) driver_.cuGraphExecDestroy(one.executable);
  if (one.graph) driver_.cuGraphDestroy(one.graph);
}

void Graph::destroy() noexcept {
  for (const Whole& one : graphs_) destroy(one);
  graphs_.clear();
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

bool Graph::has_arguments(const Whole& one, const Item& item, const std::vector<uint64_t>& arguments) const {
  const auto begin = arguments.begin() + item.first_argument;
  return std::equal(begin, begin + item.argument_count, one.arguments.begin() + item.first_argument);
}

bool Graph::has_calls(const Whole& one, const std::vector<uint64_t>& arguments) const {
  return std::all_of(items_.begin(), items_.end(),
                     [&](const Item& item) { return item.way == 0 || has_arguments(one, item, arguments); });
}

bool Graph::change(Whole& one, const std::vector<uint64_t>& arguments) {
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    if (has_arguments(one, item, arguments)) continue;
    if (item.kernel != 0) {
      const CUDA_KERNEL_NODE_PARAMS_v2 what = kernel(item, arguments);
      check_(driver_.cuGraphExecKernelNodeSetParams_v2(one.executable, one.nodes[i], &what),
             "cuGraphExecKernelNodeSetParams_v2");
    } else if (item.way != 0) {
      const CUgraph calls = child(i, arguments);
      if (driver_.cuGraphExecChildGraphNodeSetParams(one.executable, one.nodes[i], calls) != CUDA_SUCCESS) return false;
    } else {
      const CUDA_MEMCPY3D_v2 what = copy(item, arguments);
      check_(driver_.cuGraphExecMemcpyNodeSetParams(one.executable, one.nodes[i], &what, context_),
             "cuGraphExecMemcpyNodeSetParams");
    }
    const auto begin = arguments.begin() + item.first_argument;
    std::copy(begin, begin + item.argument_count, one.arguments.begin() + item.first_argument);
  }
  return true;
}

void Graph::launch(const std::vector<uint64_t>& arguments, CUstream stream) {
  const auto known =
      std::find_if(graphs_.begin(), graphs_.end(), [&](const Whole& one) { return has_calls(one, arguments); });
  if (known != graphs_.end()) std::rotate(known, known + 1, graphs_.end());
  const bool may_change = known != graphs_.end() || (can_change_calls_ && !graphs_.empty());
  if (!may_change) {
    add(arguments);
  } else if (!change(graphs_.back(), arguments)) {
    can_change_calls_ = false;
    add(arguments);
  }
  check_(driver_.cuGraphLaunch(graphs_.back().executable, stream), "cuGraphLaunch");
}

}  // namespace collet::gpu
