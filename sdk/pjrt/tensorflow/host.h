// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <string>

#include "sdk/pjrt/tensorflow/tensorflow_c.h"

/// \file
/// TensorFlow's functions, which are looked up in the process.

namespace collet::tensorflow {

/// Sets a status of TensorFlow.
void set_status(TF_Status* status, TF_Code code, const std::string& message);

/// Returns TensorFlow's version; empty if the process has no TensorFlow.
std::string version();

/// Looks up a function of TensorFlow by its symbol. Returns null if there is none.
void* find_symbol(const char* name);

/// The same, with the function's type.
template <typename Function>
Function* c_function(const char* name) {
  void* const symbol = find_symbol(name);
  Function* out = nullptr;
  static_assert(sizeof out == sizeof symbol);
  std::memcpy(&out, &symbol, sizeof out);
  return out;
}

/// Creates the PJRT client through TensorFlow's wrapper of the C interface, and gives it to TensorFlow as the client of a
/// device type. TensorFlow 2.21 exports no C function for this, so two of its C++ functions are called. Returns an empty
/// text, or why it could not be done.
std::string make_client(const std::string& device_type);

}  // namespace collet::tensorflow
