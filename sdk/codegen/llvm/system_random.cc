// SPDX-License-Identifier: Apache-2.0
// Defines arc4random. LLVM's archives of Debian 12 need it for names of temporary files, but C libraries of older
// systems lack it; with this definition a library that links LLVM statically loads on them.
#include <cstdint>
#include <random>

extern "C" uint32_t arc4random() noexcept {
  static thread_local std::random_device device;
  return device();
}
