// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/kernel_backend.hpp>

#include <memory>
#include <string>

namespace collet::gpu {

/// The compiler `inner` with more artifacts where these are kept: of each PTX text what NVIDIA's ptxas says of its registers and spills, and
/// its machine code as text by nvdisasm or cuobjdump, for `architecture` ("sm_90"). The tools are those of PATH or of
/// /usr/local/cuda/bin; an artifact says which one was missing.
std::shared_ptr<const kernel::ProgramCompiler> with_machine_code(std::shared_ptr<const kernel::ProgramCompiler> inner,
                                                                 const std::string& architecture);

}  // namespace collet::gpu
