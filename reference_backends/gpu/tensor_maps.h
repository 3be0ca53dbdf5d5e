// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/launch_plan.h>

#include <cstdint>
#include <vector>

#include "reference_backends/gpu/driver/driver.h"

namespace collet::gpu {

/// Appends the driver's descriptor of each array to `out`. `arguments` are the addresses of the kernel's buffers. Returns
/// the driver's error for an array that it does not describe.
CUresult append_tensor_maps(const Driver& driver, const std::vector<codegen::TensorMap>& maps,
                            const uint64_t* arguments, std::vector<CUtensorMap>* out);

}  // namespace collet::gpu
