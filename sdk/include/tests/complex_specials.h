// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <vector>

/// \file
/// Special values of complex functions: those of annex G of the C standard (C17, G.5.1 and G.6), those of XLA for powers.

namespace collet::testing {

/// The value of a function for special operands.
struct ComplexSpecial {
  const char* op;  ///< as in HLO text
  std::complex<double> x, y;
  std::complex<double> value;
};

/// Returns the table. `y` matters for divide and power only.
inline std::vector<ComplexSpecial> complex_specials() {
  using C = std::complex<double>;
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const double pi = std::acos(-1.0), quarter = pi / 2;
  std::vector<ComplexSpecial> all{
      {"power", {inf, 0}, {1, 0}, {inf, 0}},
      {"power", {inf, 0}, {-1, 0}, {0, 0}},
      {"power", {inf, 0}, {0, 0}, {1, 0}},
      {"power", {inf, -0.0}, {inf, 0}, {inf, 0}},
      {"power", {inf, inf}, {1, 0}, {inf, inf}},
      {"power", {inf, 2}, {-0.5, 0}, {0, 0}},
      {"power", {-inf, 0.5}, {-2, 0}, {0, 0}},
      {"power", {0, 0}, {1, 0}, {0, 0}},
      {"power", {0, 0}, {2, 3}, {0, 0}},
      {"power", {0, 0}, {0, 0}, {1, 0}},
      {"power", {0, 0}, {-1, 0}, {inf, 0}},
      {"power", {0, 0}, {-inf, 0}, {inf, 0}},
      {"power", {-0.0, 0}, {inf, 0}, {0, 0}},
      {"power", {0, 0}, {0, 1}, {nan, nan}},
      {"power", {1, 0}, {inf, 0}, {1, 0}},
      {"power", {1, 0}, {-inf, 2}, {1, 0}},
      {"power", {1, 0}, {0, inf}, {1, 0}},
      {"power", {2, 0}, {inf, 0}, {inf, 0}},
      {"power", {2, 0}, {-inf, 0}, {0, 0}},
      {"power", {0.5, 0}, {inf, 0}, {0, 0}},
      {"power", {0.5, 0}, {-inf, 0}, {inf, 0}},
      {"power", {0.5, 0.5}, {inf, 0}, {0, 0}},
      {"power", {nan, 0}, {0, 0}, {1, 0}},
      {"power", {nan, nan}, {0, 0}, {1, 0}},
      {"divide", {1, 0}, {0, 0}, {inf, nan}},
      {"divide", {1, 2}, {-0.0, 0}, {-inf, -inf}},
      {"divide", {inf, inf}, {1, 0}, {inf, inf}},
      {"divide", {inf, nan}, {1, -1}, {inf, inf}},
      {"divide", {nan, -inf}, {2, 0}, {nan, -inf}},
      {"divide", {1, 2}, {inf, nan}, {0, 0}},
      {"divide", {1, 2}, {-inf, inf}, {0, -0.0}},
      {"exponential", {-inf, 2}, {}, {-0.0, 0}},
      {"exponential", {-inf, inf}, {}, {0, 0}},
      {"exponential", {-inf, nan}, {}, {0, 0}},
      {"exponential", {inf, 0}, {}, {inf, 0}},
      {"exponential", {inf, 2}, {}, {-inf, inf}},
      {"exponential", {inf, inf}, {}, {inf, nan}},
      {"exponential", {inf, nan}, {}, {inf, nan}},
      {"exponential", {nan, 0}, {}, {nan, 0}},
      {"exponential", {1, inf}, {}, {nan, nan}},
      {"exponential-minus-one", {-inf, inf}, {}, {-1, 0}},
      {"exponential-minus-one", {inf, nan}, {}, {inf, nan}},
      {"log", {-0.0, 0}, {}, {-inf, pi}},
      {"log", {0, 0}, {}, {-inf, 0}},
      {"log", {1, inf}, {}, {inf, quarter}},
      {"log", {-inf, 1}, {}, {inf, pi}},
      {"log", {-inf, inf}, {}, {inf, 0.75 * pi}},
      {"log", {nan, inf}, {}, {inf, nan}},
      {"log-plus-one", {-1, 0}, {}, {-inf, 0}},
      {"sqrt", {nan, inf}, {}, {inf, inf}},
      {"sqrt", {-inf, 1}, {}, {0, inf}},
      {"sqrt", {inf, 1}, {}, {inf, 0}},
      {"sqrt", {-4, -0.0}, {}, {0, -2}},
      {"sqrt", {inf, nan}, {}, {inf, nan}},
      {"sinh", {0, inf}, {}, {0, nan}},
      {"sinh", {inf, 0}, {}, {inf, 0}},
      {"sinh", {inf, 2}, {}, {-inf, inf}},
      {"sinh", {inf, inf}, {}, {inf, nan}},
      {"sinh", {inf, nan}, {}, {inf, nan}},
      {"sinh", {nan, 0}, {}, {nan, 0}},
      {"cosh", {0, inf}, {}, {nan, 0}},
      {"cosh", {inf, 0}, {}, {inf, 0}},
      {"cosh", {inf, 2}, {}, {-inf, inf}},
      {"cosh", {inf, inf}, {}, {inf, nan}},
      {"cosh", {nan, 0}, {}, {nan, 0}},
      {"tanh", {inf, 2}, {}, {1, -0.0}},
      {"tanh", {inf, inf}, {}, {1, 0}},
      {"tanh", {inf, nan}, {}, {1, 0}},
      {"tanh", {0, inf}, {}, {0, nan}},
      {"tanh", {30, inf}, {}, {nan, nan}},
      {"tanh", {nan, 0}, {}, {nan, 0}},
      {"sine", {inf, 0}, {}, {nan, 0}},
      {"sine", {0, inf}, {}, {0, inf}},
      {"cosine", {0, inf}, {}, {inf, 0}},
      {"cosine", {inf, 0}, {}, {nan, 0}},
      {"tan", {2, inf}, {}, {-0.0, 1}},
      {"tan", {inf, inf}, {}, {0, 1}},
      {"tan", {inf, 0}, {}, {nan, 0}},
      {"asin", {0, nan}, {}, {0, nan}},
      {"asin", {inf, 1}, {}, {quarter, inf}},
      {"acos", {0, nan}, {}, {quarter, nan}},
      {"acos", {-inf, inf}, {}, {0.75 * pi, -inf}},
      {"asinh", {nan, 0}, {}, {nan, 0}},
      {"acosh", {-inf, 1}, {}, {inf, pi}},
      {"atanh", {1, 0}, {}, {inf, 0}},
      {"atanh", {2, inf}, {}, {0, quarter}},
      {"atanh", {inf, 1}, {}, {0, quarter}},
      {"atanh", {-inf, -1}, {}, {-0.0, -quarter}},
      {"atanh", {inf, inf}, {}, {0, quarter}},
      {"atanh", {inf, nan}, {}, {0, nan}},
      {"atanh", {0, nan}, {}, {0, nan}},
      {"logistic", {-inf, 1}, {}, {0, 0}},
      {"logistic", {inf, nan}, {}, {1, 0}},
      {"sign", {3e38, 3e38}, {}, {std::sqrt(0.5), std::sqrt(0.5)}},
  };
  // f(conj z) = conj f(z), on both sides of every branch cut.
  for (size_t i = 0, n = all.size(); i < n; ++i) {
    ComplexSpecial turned = all[i];
    for (C* z : {&turned.x, &turned.y, &turned.value}) *z = std::conj(*z);
    all.push_back(turned);
  }
  return all;
}

/// Returns whether both parts are equal within 1e-6. A zero has any sign: annex G leaves many open.
inline bool same_special(std::complex<double> got, std::complex<double> want) {
  const auto same = [](double p, double q) {
    if (std::isnan(q)) return std::isnan(p);
    return p == q || std::fabs(p - q) <= 1e-6;
  };
  return same(got.real(), want.real()) && same(got.imag(), want.imag());
}

/// Returns a number as HLO text has it.
inline std::string special_text(std::complex<double> z) {
  const auto part = [](double v) {
    return std::isnan(v) ? std::string("nan") : std::isinf(v) ? (v > 0 ? "inf" : "-inf") : std::to_string(v);
  };
  return "(" + part(z.real()) + ", " + part(z.imag()) + ")";
}

}  // namespace collet::testing
