// SPDX-License-Identifier: Apache-2.0
// LLVM's archives of Debian 12 ask for arc4random, which older systems' C libraries lack: with this, what links them statically
// loads there. LLVM uses it for names of temporary files.
#include <cstdint>
#include <random>

extern "C" uint32_t arc4random() noexcept {
  static thread_local std::random_device device;
  return device();
}
