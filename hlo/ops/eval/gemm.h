// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <cstdint>

namespace collet::hlo::eval {

/// Computes c[m, n] += a[m, k] * b[k, n], all row-major and dense.
void gemm(int64_t m, int64_t n, int64_t k, const double* a, const double* b, double* c);
/// Computes the same on 64-bit integers, which wrap around.
void gemm(int64_t m, int64_t n, int64_t k, const uint64_t* a, const uint64_t* b, uint64_t* c);
void gemm(int64_t m, int64_t n, int64_t k, const std::complex<double>* a, const std::complex<double>* b,
          std::complex<double>* c);
/// Computes the sums in long double and rounds once; for f64.
void gemm_wide(int64_t m, int64_t n, int64_t k, const double* a, const double* b, double* c);

/// Computes the sums in float, rounded at each step.
void gemm_narrow(int64_t m, int64_t n, int64_t k, const double* a, const double* b, double* c);
void gemm_narrow(int64_t m, int64_t n, int64_t k, const std::complex<double>* a, const std::complex<double>* b,
                 std::complex<double>* c);

}  // namespace collet::hlo::eval
