// SPDX-License-Identifier: Apache-2.0
// Implements graphs, which are captured from streams or built node by node.
#include <algorithm>

#include "reference_backends/gpu/emulator/operations.h"

namespace collet::gpu {

using emulator::Capture;
using emulator::Entry;
using emulator::in_context;

namespace {

/// Makes a copy node of a graph. Only copies of one row of bytes within device memory are supported.
CUresult make_copy(Entry& e, const CUDA_MEMCPY3D_v2& what, std::function<void()>& out) {
  const bool is_row = what.srcMemoryType == CU_MEMORYTYPE_DEVICE && what.dstMemoryType == CU_MEMORYTYPE_DEVICE &&
                      what.Height == 1 && what.Depth == 1 && what.WidthInBytes != 0 && !what.reserved0 &&
                      !what.reserved1 && !what.srcY && !what.srcZ && !what.srcLOD && !what.dstY && !what.dstZ &&
                      !what.dstLOD;
  if (!is_row) {
    e.lock.unlock();
    e.state->report("a copy of a graph that is not one of bytes within device memory");
    return CUDA_ERROR_INVALID_VALUE;
  }
  return emulator::make_copy(e, what.dstDevice + what.dstXInBytes, what.srcDevice + what.srcXInBytes, what.WidthInBytes,
                             out);
}

using Kind = CUgraphNode_st::Kind;

/// Makes a node that runs the nodes of another graph.
CUresult make_child(Entry& e, CUgraph child, std::function<void()>& out) {
  if (!e.state->graphs.count(child)) return CUDA_ERROR_INVALID_HANDLE;
  emulator::Scheduler* const scheduler = e.state->scheduler.get();
  const auto nodes = std::make_shared<const std::vector<Capture::Node>>(child->nodes);
  out = [scheduler, nodes, draw = scheduler->draw()] {
    for (const size_t n : scheduler->order_of(*nodes, draw)) (*nodes)[n].run();
  };
  return CUDA_SUCCESS;
}

/// Returns, for each node of a graph, those before it.
std::vector<std::vector<size_t>> structure_of(CUgraph graph) {
  std::vector<std::vector<size_t>> out;
  for (const Capture::Node& node : graph->nodes) out.push_back(node.after);
  return out;
}

template <typename Make>
CUresult add_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t after_count, Kind kind,
                  const Make& make) {
  return in_context([&](Entry& e) -> CUresult {
    if (!node || (after_count && !after)) return CUDA_ERROR_INVALID_VALUE;
    if (!e.state->graphs.count(graph)) return CUDA_ERROR_INVALID_HANDLE;
    Capture::Node made;
    for (size_t i = 0; i < after_count; ++i) {
      if (!e.state->nodes.count(after[i]) || after[i]->graph != graph) return CUDA_ERROR_INVALID_VALUE;
      made.after.push_back(after[i]->index);
    }
    if (const CUresult result = make(e, made.run); result != CUDA_SUCCESS) return result;
    auto handle = std::make_unique<CUgraphNode_st>();
    *handle = {graph, graph->nodes.size(), kind};
    e.state->nodes.insert(handle.get());
    *node = handle.get();
    graph->nodes.push_back(std::move(made));
    graph->handles.push_back(std::move(handle));
    return CUDA_SUCCESS;
  });
}

template <typename Make>
CUresult change_node(CUgraphExec executable, CUgraphNode node, Kind kind, const Make& make) {
  return in_context([&](Entry& e) -> CUresult {
    if (!e.state->executables.count(executable)) return CUDA_ERROR_INVALID_HANDLE;
    if (!e.state->nodes.count(node) || node->graph != executable->graph || node->kind != kind ||
        node->index >= executable->nodes->size()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    std::function<void()> run;
    if (const CUresult result = make(e, run); result != CUDA_SUCCESS) return result;
    // Launches that have not run yet keep the nodes that they were started with.
    if (executable->nodes.use_count() > 1) {
      executable->nodes = std::make_shared<std::vector<Capture::Node>>(*executable->nodes);
    }
    (*executable->nodes)[node->index].run = std::move(run);
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuGraphCreate(CUgraph* graph, unsigned int flags) {
  return in_context([&](Entry& e) -> CUresult {
    if (!graph || flags) return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_unique<CUgraph_st>();
    made->device = e.index;
    e.state->graphs.insert(made.get());
    *graph = made.release();
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t after_count,
                                 const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
  if (!parameters) return CUDA_ERROR_INVALID_VALUE;
  return add_node(node, graph, after, after_count, Kind::kKernel,
                  [&](Entry& e, std::function<void()>& out) { return emulator::make_launch(e, *parameters, out); });
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t after_count,
                              const CUDA_MEMCPY3D_v2* parameters, CUcontext) {
  if (!parameters) return CUDA_ERROR_INVALID_VALUE;
  return add_node(node, graph, after, after_count, Kind::kCopy,
                  [&](Entry& e, std::function<void()>& out) { return make_copy(e, *parameters, out); });
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
  if (!parameters) return CUDA_ERROR_INVALID_VALUE;
  return change_node(executable, node, Kind::kKernel,
                     [&](Entry& e, std::function<void()>& out) { return emulator::make_launch(e, *parameters, out); });
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode node, const CUDA_MEMCPY3D_v2* parameters,
                                        CUcontext) {
  if (!parameters) return CUDA_ERROR_INVALID_VALUE;
  return change_node(executable, node, Kind::kCopy,
                     [&](Entry& e, std::function<void()>& out) { return make_copy(e, *parameters, out); });
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t after_count,
                                  CUgraph child) {
  const CUresult result = add_node(node, graph, after, after_count, Kind::kChild,
                                   [&](Entry& e, std::function<void()>& out) { return make_child(e, child, out); });
  if (result == CUDA_SUCCESS) {
    in_context([&](Entry&) -> CUresult {
      (*node)->structure = structure_of(child);
      return CUDA_SUCCESS;
    });
  }
  return result;
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec executable, CUgraphNode node, CUgraph child) {
  return change_node(executable, node, Kind::kChild, [&](Entry& e, std::function<void()>& out) -> CUresult {
    if (!e.state->graphs.count(child)) return CUDA_ERROR_INVALID_HANDLE;
    if (structure_of(child) != node->structure) return CUDA_ERROR_INVALID_VALUE;
    return make_child(e, child, out);
  });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long) {
  return in_context([&](Entry& e) -> CUresult {
    if (!executable) return CUDA_ERROR_INVALID_VALUE;
    if (!e.state->graphs.count(graph)) return CUDA_ERROR_INVALID_HANDLE;
    auto made = std::make_unique<CUgraphExec_st>();
    made->nodes = std::make_shared<std::vector<Capture::Node>>(graph->nodes);
    made->graph = graph;
    made->device = graph->device;
    e.state->executables.insert(made.get());
    *executable = made.release();
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream handle) {
  return in_context([&](Entry& e) -> CUresult {
    const auto stream = e.stream(handle);
    if (!stream || !e.state->executables.count(executable)) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    emulator::Scheduler* const scheduler = e.state->scheduler.get();
    const auto nodes = executable->nodes;
    const uint64_t draw = scheduler->draw();
    scheduler->enqueue(stream, [=] {
      for (const size_t n : scheduler->order_of(*nodes, draw)) (*nodes)[n].run();
    });
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecDestroy(CUgraphExec executable) {
  return emulator::destroy(&emulator::State::executables, executable);
}

CUresult cuGraphDestroy(CUgraph graph) {
  return in_context([&](Entry& e) -> CUresult {
    if (!e.state->graphs.erase(graph)) return CUDA_ERROR_INVALID_HANDLE;
    for (const auto& handle : graph->handles) e.state->nodes.erase(handle.get());
    for (CUgraphExec executable : e.state->executables) {
      if (executable->graph == graph) executable->graph = nullptr;
    }
    delete graph;
    return CUDA_SUCCESS;
  });
}

}  // namespace collet::gpu
