// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

/// \file
/// Kernels for lists of tensors (tf.TensorArray) outside of compiled functions.

namespace collet::tensorflow {

/// Registers kernels for the operations on lists that read or write elements. TensorFlow has kernels of its own for these operations
/// on any device, which take device memory for host memory, so that the process ends. Returns false if this is not
/// TensorFlow 2.21, or lacks a function that is needed.
bool register_list_kernels(const std::string& device_type);

}  // namespace collet::tensorflow
