// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/program.h>

#include <string>

#include "sdk/codegen/launch/launch_plan.h"
#include "sdk/codegen/schedule/target.h"

namespace collet::codegen {

/// How an entry function is made.
struct EntryOptions {
  std::string name;             ///< of the function, in C
  bool embed_constants = true;  ///< false: they are one more slot, after the workspace
};

/// `name` as an identifier of C: other characters become '_'. "program" where nothing is left.
std::string c_identifier(const std::string& name);

/// The header of a program that was compiled ahead of time: structs of its arguments and results, the size of its workspace,
/// and the function. C99 and C++.
std::string c_header(const collet_program* program, const LaunchPlan& plan, const EntryOptions& options,
                     const Target& target);

}  // namespace collet::codegen
