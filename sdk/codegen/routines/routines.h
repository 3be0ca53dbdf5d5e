// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Routines written in C++ for ops that are no loop nests: sort, fft, cholesky and their kind.

#include <memory>
#include <vector>

#include "sdk/codegen/graph/graph.h"
#include "sdk/codegen/kernel/kernel.h"
#include "sdk/codegen/launch/launch_plan.h"
#include "sdk/codegen/launch/threads.h"

namespace collet::codegen {

/// A comparator to be compiled, and where its address goes.
struct Comparator {
  ScalarBody body;
  std::vector<uint32_t> types;
  CompareFunction* target = nullptr;
};

/// Whether rows that would be sorted have more elements than the places of a routine's s32 can name.
bool has_long_rows(const Graph& graph, const Node& node);

/// Whether there is a routine for the node.
bool has_library_call(const Graph& graph, const Node& node);

Status make_library_call(const Graph& graph, const Node& node, std::vector<Comparator>& comparators,
                         std::unique_ptr<LibraryCall>& out);

std::unique_ptr<LibraryCall> make_sort(const Graph& graph, const Node& node, std::vector<Comparator>& comparators);
std::unique_ptr<LibraryCall> make_topk(const Graph& graph, const Node& node);
std::unique_ptr<LibraryCall> make_random_bits(const Graph& graph, const Node& node);
std::unique_ptr<LibraryCall> make_random_state(const Graph& graph, const Node& node);
std::unique_ptr<LibraryCall> make_fft(const Graph& graph, const Node& node);
std::unique_ptr<LibraryCall> make_cholesky(const Graph& graph, const Node& node);
std::unique_ptr<LibraryCall> make_triangular_solve(const Graph& graph, const Node& node);

}  // namespace collet::codegen
