// SPDX-License-Identifier: Apache-2.0
// What libcollet_lapack.so has besides OpenBLAS.

/// The linker puts it in the place of OpenBLAS's own, which reads the environment: how many threads OpenBLAS starts when it is
/// loaded. None: the calling threads are Collet's.
extern "C" int __wrap_openblas_num_threads_env();  // NOLINT: the name is the linker's
extern "C" int __wrap_openblas_num_threads_env() {
  return 1;
}
