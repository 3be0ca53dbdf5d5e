// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How a backend opens libraries that neither see those of the process nor are seen by them. Processes of TensorFlow, for
/// example, have symbols of LLVM and protobuf that are visible to all. Collet opens backends in this way.

#include <dlfcn.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define COLLET_SANITIZED_ 1
#endif
#endif

namespace collet {

/// Returns the flags with which dlopen opens such a library. By RTLD_DEEPBIND, its references are bound to the libraries that
/// it was linked with, even if the process has loaded others before that define the same names. Sanitizers do not allow it,
/// and a program that replaces a function of the C library, as the tool `collet` does with _exit, wants it to be called.
inline int private_library() {
#if defined(COLLET_SANITIZED_) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    !defined(RTLD_DEEPBIND)
  return RTLD_NOW | RTLD_LOCAL;
#else
  Dl_info exit{}, libc{};
  const bool is_replaced = dladdr(dlsym(RTLD_DEFAULT, "_exit"), &exit) != 0 &&
                           dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &libc) != 0 &&
                           exit.dli_fbase != libc.dli_fbase;
  return RTLD_NOW | RTLD_LOCAL | (is_replaced ? 0 : RTLD_DEEPBIND);
#endif
}

#undef COLLET_SANITIZED_

}  // namespace collet
