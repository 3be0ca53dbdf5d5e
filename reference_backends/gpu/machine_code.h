// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/kernel_backend.hpp>

#include <memory>
#include <string>

namespace collet::gpu {

/// Wraps the compiler `inner`: if artifacts are kept, it adds for each PTX text the report of NVIDIA's ptxas on
/// registers and spills, and the machine code as disassembled by nvdisasm or cuobjdump, for `architecture`, such as
/// "sm_90". The tools are searched for in PATH and in /usr/local/cuda/bin; if one is missing, an artifact says so.
std::shared_ptr<const kernel::ProgramCompiler> with_machine_code(std::shared_ptr<const kernel::ProgramCompiler> inner,
                                                                 const std::string& architecture);

}  // namespace collet::gpu
