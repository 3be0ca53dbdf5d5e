// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace collet::tensorflow {

/// Registers kernels for operations that change variables in place outside of compiled functions. Without them TensorFlow
/// takes kernels for host memory, which end the process. Each kernel is TensorFlow's own that compiles one operation
/// and runs it through PJRT. Returns false, and registers none, if this TensorFlow does not export it.
bool register_kernels(const std::string& device_type);

}  // namespace collet::tensorflow
