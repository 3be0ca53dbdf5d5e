// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How libraries are opened that no other library of the process may see.

#include <dlfcn.h>

namespace collet {

/// The flags with which dlopen opens such a library. By RTLD_DEEPBIND, its references are bound to the libraries that it was
/// linked with, even if the process has loaded others before that define the same names. Sanitizers do not allow it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(RTLD_DEEPBIND)
constexpr int kPrivateLibrary = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int kPrivateLibrary = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

}  // namespace collet
