// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <span>
#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

namespace collet::runtime {

/// A function of the embedder for custom calls with one target, or for infeed or outfeed.
struct HostFunction {
  std::string target;
  void* user = nullptr;
  decltype(collet_host_function::call) call = nullptr;
};

/// Returns the function that the instruction calls; null if none.
const collet_host_function* called_function(std::span<const collet_host_function> functions,
                                            const hlo::Instruction& instr);

/// True if the instruction, or one in the computations that it calls, calls one of the functions.
bool calls_any(std::span<const collet_host_function> functions, const hlo::Module& module,
               const hlo::Instruction& instr);

/// Returns a text with the targets and functions of all calls in the module, for the keys of caches; empty if there are
/// none.
std::string key_of_calls(std::span<const collet_host_function> functions, const hlo::Module& module);

/// Calls the function for one participant; returns the results with tuples flattened.
Expected<std::vector<hlo::Literal>> call_host(const HostFunction& function, const hlo::Instruction& instr,
                                              std::span<const hlo::Literal> operands, uint32_t participant,
                                              uint64_t run_id);

/// True if call_host is calling a function on this thread.
bool is_in_host_function();

}  // namespace collet::runtime
