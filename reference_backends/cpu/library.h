// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Routines written in C++ for ops that are no loop nests: sort, fft, cholesky and their kind.

#include <memory>
#include <vector>

#include "reference_backends/cpu/plan.h"
#include "reference_backends/cpu/threads.h"
#include "sdk/codegen/graph.h"
#include "sdk/codegen/tape.h"

namespace collet::cpu {

/// Compares elements i and j of the buffers.
using CompareFunction = uint8_t (*)(char* const* buffers, int64_t i, int64_t j);

/// A comparator to be compiled, and where its address goes.
struct Comparator {
  codegen::ScalarBody body;
  std::vector<uint32_t> types;
  CompareFunction* target = nullptr;
};

/// Whether rows that would be sorted have more elements than the places of a routine's s32 can name.
bool has_long_rows(const codegen::Graph& graph, const codegen::Node& node);

/// Whether there is a routine for the node.
bool has_library_call(const codegen::Graph& graph, const codegen::Node& node);

codegen::Status make_library_call(const codegen::Graph& graph, const codegen::Node& node,
                                  std::vector<Comparator>& comparators, std::unique_ptr<LibraryCall>& out);

std::unique_ptr<LibraryCall> make_sort(const codegen::Graph& graph, const codegen::Node& node,
                                       std::vector<Comparator>& comparators);
std::unique_ptr<LibraryCall> make_topk(const codegen::Graph& graph, const codegen::Node& node);
std::unique_ptr<LibraryCall> make_random_bits(const codegen::Graph& graph, const codegen::Node& node);
std::unique_ptr<LibraryCall> make_random_state(const codegen::Graph& graph, const codegen::Node& node);
std::unique_ptr<LibraryCall> make_fft(const codegen::Graph& graph, const codegen::Node& node);
std::unique_ptr<LibraryCall> make_cholesky(const codegen::Graph& graph, const codegen::Node& node);
std::unique_ptr<LibraryCall> make_triangular_solve(const codegen::Graph& graph, const codegen::Node& node);

}  // namespace collet::cpu
