// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The functions of LAPACK and BLAS, from a library that is opened at run time, so that nothing is linked with it.
/// Matrices are column-major. Arguments, work arrays and `info` are those of LAPACK's documentation, with 32-bit
/// integers.

#include <complex>
#include <cstddef>
#include <cstdint>

namespace collet::codegen {

template <typename T>
struct RealOf {
  using type = T;
};
template <typename T>
struct RealOf<std::complex<T>> {
  using type = T;
};

/// Functions for numbers of type T. Fortran appends the length of each string argument; it is always 1.
template <typename T>
struct Lapack {
  using R = typename RealOf<T>::type;
  using Int = const int32_t*;
  using Flag = const char*;

  void (*potrf)(Flag uplo, Int n, T* a, Int lda, int32_t* info, size_t);
  void (*trsm)(Flag side, Flag uplo, Flag trans, Flag diag, Int m, Int n, const T* alpha, const T* a, Int lda, T* b,
               Int ldb, size_t, size_t, size_t, size_t);
  void (*getrf)(Int m, Int n, T* a, Int lda, int32_t* pivots, int32_t* info);
  void (*geqrf)(Int m, Int n, T* a, Int lda, T* tau, T* work, Int lwork, int32_t* info);
  void (*orgqr)(Int m, Int n, Int k, T* a, Int lda, const T* tau, T* work, Int lwork, int32_t* info);
  void (*gehrd)(Int n, Int low, Int high, T* a, Int lda, T* tau, T* work, Int lwork, int32_t* info);

  /// These functions have different arguments for real and complex numbers. They are declared with the arguments of the
  /// complex form: for real numbers `rwork` is ignored. `lwork` of -1 asks for the sizes of work arrays, which are
  /// stored in work[0], rwork[0] and iwork[0].
  void syevd(char jobz, char uplo, int32_t n, T* a, R* w, T* work, int32_t lwork, R* rwork, int32_t lrwork,
             int32_t* iwork, int32_t liwork, int32_t& info) const;
  void gesdd(char jobz, int32_t m, int32_t n, T* a, R* s, T* u, int32_t ldu, T* vt, int32_t ldvt, T* work,
             int32_t lwork, R* rwork, int32_t* iwork, int32_t& info) const;
  /// Computes eigenvalues and eigenvectors. `w` holds n complex numbers, or n real parts followed by n imaginary parts.
  void geev(char jobvl, char jobvr, int32_t n, T* a, T* w, T* vl, T* vr, T* work, int32_t lwork, R* rwork,
            int32_t& info) const;
  void gees(char jobvs, int32_t n, T* a, T* w, T* vs, T* work, int32_t lwork, R* rwork, int32_t& info) const;

  void* syevd_ = nullptr;
  void* gesdd_ = nullptr;
  void* geev_ = nullptr;
  void* gees_ = nullptr;
};

/// Returns the functions for f32, f64, c64 or c128, or null if there is no library. The environment variable
/// COLLET_LAPACK names the library: a path, or a name that the loader searches for; "" for none. If it is not set,
/// libcollet_lapack.so is searched for in the folder of this code, in the one above, and in that one's lib folder.
template <typename T>
const Lapack<T>* lapack();

/// True if a LAPACK library has been found.
bool has_lapack();

/// A guard that a caller holds while it calls functions of the library. Its constructor waits until the call may begin.
/// A serial build of OpenBLAS, which hands out work memory without a lock, and an unknown library get one call at a
/// time; others as many as they have work memory for.
class LapackCall {
 public:
  LapackCall();
  ~LapackCall();
  LapackCall(const LapackCall&) = delete;
  LapackCall& operator=(const LapackCall&) = delete;
};

}  // namespace collet::codegen
