// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

/// \file
/// Types with the layout and the calling convention of types of TensorFlow 2.21's C++ functions.

namespace collet::tensorflow {

/// absl::Status. Its word is 1 for success.
struct Status {
  uintptr_t word = 0;
  ~Status() {}  // makes it a type that is returned in memory, as absl's is
};

/// tsl::DeviceType.
struct DeviceType {
  std::string name;
};

}  // namespace collet::tensorflow
