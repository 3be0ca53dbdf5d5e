// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <span>
#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

namespace collet::runtime {

/// A function of the embedder's, for custom calls of one target, or for infeed or outfeed.
struct HostFunction {
  std::string target;
  void* user = nullptr;
  decltype(collet_host_function::call) call = nullptr;
};

/// Which of `functions` the instruction calls; null for none.
const collet_host_function* called_function(std::span<const collet_host_function> functions,
                                            const hlo::Instruction& instr);

/// Whether it calls one of them, itself or in what it calls.
bool calls_any(std::span<const collet_host_function> functions, const hlo::Module& module,
               const hlo::Instruction& instr);

/// Targets and functions of all calls in the module, for the caches; empty where there is none.
std::string key_of_calls(std::span<const collet_host_function> functions, const hlo::Module& module);

/// Calls it for one participant; gives the results, tuples flattened.
Expected<std::vector<hlo::Literal>> call_host(const HostFunction& function, const hlo::Instruction& instr,
                                              std::span<const hlo::Literal> operands, uint32_t participant,
                                              uint64_t run_id);

}  // namespace collet::runtime
