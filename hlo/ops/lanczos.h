// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

/// \file
/// The constants of Lanczos' approximation of the gamma function with g = 7 and nine terms:
/// gamma(1 + z) = sqrt(2 pi) t^(z + 1/2) e^-t (base + sum over i of terms[i] / (z + i + 1)), with t = z + g + 1/2.
/// StableHLO and XLA expand lgamma and digamma with these.

namespace collet::hlo::lanczos {

inline constexpr double kG = 7;
inline constexpr double kBase = 0.99999999999980993227684700473478;
inline constexpr std::array<double, 8> kTerms = {
    676.520368121885098567009190444019, -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,   -176.61502916214059906584551354,
    12.507343278686904814458936853,     -0.13857109526572011689554707,
    9.984369578019570859563e-6,         1.50563273514931155834e-7};

}  // namespace collet::hlo::lanczos
