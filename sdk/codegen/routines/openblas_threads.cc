// SPDX-License-Identifier: Apache-2.0
// The part of libcollet_lapack.so that is not OpenBLAS.

/// Returns 1: OpenBLAS computes on the calling thread and starts no threads when it is loaded. The linker replaces OpenBLAS's own
/// function, which reads the number from the environment, by this one.
extern "C" int __wrap_openblas_num_threads_env();  // NOLINT: the name is the linker's
extern "C" int __wrap_openblas_num_threads_env() {
  return 1;
}
