// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace collet::tensorflow {

/// Registers kernels for operations outside of compiled functions for which TensorFlow would take kernels for host memory, so that
/// the process ends. Operations that change variables in place get TensorFlow's own kernel that compiles one operation and runs
/// it through PJRT; those on lists of tensors are in list_kernels.h; functional loops are refused. Returns false if this
/// TensorFlow does not export what is needed; then some are missing.
bool register_kernels(const std::string& device_type);

}  // namespace collet::tensorflow
