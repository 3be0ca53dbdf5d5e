// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// LAPACK and BLAS of a library that is opened at run time, as CUDA's driver is: nothing needs it to be linked. Matrices are
/// column-major; arguments, work arrays and `info` are as LAPACK's documentation says; 32-bit integers.

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

/// Functions for numbers of type T. The lengths of strings, which Fortran appends, are all 1.
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

  /// Those whose arguments differ between real and complex numbers, with the real work array of the latter. A real number's
  /// `rwork` is ignored. `lwork` of -1 asks for sizes, which come in work[0], rwork[0] and iwork[0].
  void syevd(char jobz, char uplo, int32_t n, T* a, R* w, T* work, int32_t lwork, R* rwork, int32_t lrwork,
             int32_t* iwork, int32_t liwork, int32_t& info) const;
  void gesdd(char jobz, int32_t m, int32_t n, T* a, R* s, T* u, int32_t ldu, T* vt, int32_t ldvt, T* work,
             int32_t lwork, R* rwork, int32_t* iwork, int32_t& info) const;
  /// `w`: n complex numbers, or n real parts and n imaginary parts.
  void geev(char jobvl, char jobvr, int32_t n, T* a, T* w, T* vl, T* vr, T* work, int32_t lwork, R* rwork,
            int32_t& info) const;
  void gees(char jobvs, int32_t n, T* a, T* w, T* vs, T* work, int32_t lwork, R* rwork, int32_t& info) const;

  void* syevd_ = nullptr;
  void* gesdd_ = nullptr;
  void* geev_ = nullptr;
  void* gees_ = nullptr;
};

/// The functions for f32, f64, c64 or c128. Null where there is no library: COLLET_LAPACK names one (a path, or what the loader
/// finds by name; "" for none); else libcollet_lapack.so, in the folder of this code, the one above, or lib in that.
template <typename T>
const Lapack<T>* lapack();

/// Whether there is a library.
bool has_lapack();

/// Lives as long as a call of the library's functions. One at a time, where the library is a serial build of OpenBLAS, which hands
/// out its work memory without a lock, or one that does not say what it is; else as many as such memory is sure to be there for.
class LapackCall {
 public:
  LapackCall();
  ~LapackCall();
  LapackCall(const LapackCall&) = delete;
  LapackCall& operator=(const LapackCall&) = delete;
};

}  // namespace collet::codegen
