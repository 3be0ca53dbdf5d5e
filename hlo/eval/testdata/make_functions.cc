// SPDX-License-Identifier: Apache-2.0
// Writes functions.txt: values of the math functions, computed by MPFR with 400 bits and rounded once to f64. Not part of
// the build; run it again after a change:
//   c++ -O1 -std=c++20 hlo/eval/testdata/make_functions.cc -lmpfr -lgmp -o make_functions
//   ./make_functions > hlo/eval/testdata/functions.txt
#include <mpfr.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

uint64_t state = 20240601;
double uniform() {
  state += 0x9E3779B97F4A7C15u;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1p-53;
}

// Rounds x as if it had been stored in a type of `bits` bits of precision.
double narrowed(double x, int bits) {
  if (x == 0) return x;
  const double step = std::ldexp(1.0, std::ilogb(x) - bits + 1);
  return std::nearbyint(x / step) * step;
}

using Unary = int (*)(mpfr_t, const mpfr_t, mpfr_rnd_t);

int logistic(mpfr_t r, const mpfr_t x, mpfr_rnd_t mode) {
  mpfr_neg(r, x, mode);
  mpfr_exp(r, r, mode);
  mpfr_add_ui(r, r, 1, mode);
  return mpfr_ui_div(r, 1, r, mode);
}

struct Function {
  const char* name;
  Unary of;
  double low, high;  // range of random arguments
  std::vector<double> edges;
};

void write(const char* name, const double* x, int count, const mpfr_t r) {
  std::printf("%s", name);
  for (int i = 0; i < count; ++i) std::printf(" %a", x[i]);
  std::printf(" %a\n", mpfr_get_d(r, MPFR_RNDN));
}

void unary(const Function& f) {
  std::vector<double> arguments = f.edges;
  for (int bits : {8, 8, 8, 8, 8, 8, 24, 24, 24, 24, 24, 24, 24, 24, 53, 53, 53, 53, 53, 53, 53, 53})
    arguments.push_back(narrowed(f.low + (f.high - f.low) * uniform(), bits));
  for (int bits : {8, 24, 24, 53})  // for small arguments
    if (f.low < 0.01) arguments.push_back(narrowed(std::ldexp(1 + uniform(), -static_cast<int>(40 * uniform())), bits));
  mpfr_t x, r;
  mpfr_inits2(400, x, r, static_cast<mpfr_ptr>(nullptr));
  for (double a : arguments) {
    mpfr_set_d(x, a, MPFR_RNDN);
    f.of(r, x, MPFR_RNDN);
    write(f.name, &a, 1, r);
  }
  mpfr_clears(x, r, static_cast<mpfr_ptr>(nullptr));
}

void binary(const char* name, int (*of)(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t), double low, double high,
            double low2, double high2, const std::vector<std::pair<double, double>>& edges) {
  std::vector<std::pair<double, double>> arguments = edges;
  for (int bits : {8, 8, 8, 8, 8, 8, 8, 8, 24, 24, 24, 24, 24, 24, 24, 24, 53, 53, 53, 53, 53, 53, 53, 53})
    arguments.emplace_back(narrowed(low + (high - low) * uniform(), bits),
                           narrowed(low2 + (high2 - low2) * uniform(), bits));
  mpfr_t x, y, r;
  mpfr_inits2(400, x, y, r, static_cast<mpfr_ptr>(nullptr));
  for (auto [a, b] : arguments) {
    mpfr_set_d(x, a, MPFR_RNDN);
    mpfr_set_d(y, b, MPFR_RNDN);
    of(r, x, y, MPFR_RNDN);
    const double both[2] = {a, b};
    write(name, both, 2, r);
  }
  mpfr_clears(x, y, r, static_cast<mpfr_ptr>(nullptr));
}

}  // namespace

int main() {
  const double inf = INFINITY, tiny = 0x1p-149, least = 0x1p-1074;
  std::printf("# op, arguments, result. Written by make_functions.cc with MPFR %s.\n", mpfr_get_version());
  const Function functions[] = {
      {"acos", mpfr_acos, -1, 1, {0, 1, -1, 0.5, 1.5, tiny}},
      {"acosh", mpfr_acosh, 1, 50, {1, 0.5, inf, 1e10, 0x1p1000}},
      {"asin", mpfr_asin, -1, 1, {0, -0.0, 1, -1, 1.5, tiny}},
      {"asinh", mpfr_asinh, -50, 50, {0, -0.0, inf, -inf, 1e10, tiny, 0x1p1000}},
      {"atanh", mpfr_atanh, -1, 1, {0, -0.0, 1, -1, 2, tiny}},
      {"cbrt", mpfr_cbrt, -1000, 1000, {0, -0.0, 27, -8, inf, tiny, least, 0x1p1000}},
      {"cosine", mpfr_cos, -20, 20, {0, 1e5, 1e10, 0x1p100, 0x1p1000, inf, 1.5703125}},
      {"cosh", mpfr_cosh, -20, 20, {0, 88.5, 89.5, 710, 711, inf, tiny}},
      {"erf", mpfr_erf, -4, 4, {0, -0.0, 6, -inf, inf, tiny, least}},
      {"exponential", mpfr_exp, -30, 30, {0, 88.5, 89, -103, -104, -150, 709.5, 710, -745, -746, inf, -inf, tiny}},
      {"exponential-minus-one", mpfr_expm1, -30, 30, {0, -0.0, 88.5, -104, 709.5, 710, inf, -inf, tiny, least}},
      {"log", mpfr_log, 0, 100, {0, -1, 1, inf, tiny, least, 0x1p1000, 1.0078125, 0.99609375}},
      {"log-plus-one", mpfr_log1p, -1, 100, {0, -0.0, -1, -2, inf, tiny, least, 0x1p1000}},
      {"logistic", logistic, -30, 30, {0, 40, -88, -104, -700, -746, inf, -inf, tiny}},
      {"rsqrt", mpfr_rec_sqrt, 0, 100, {-1, inf, 4, tiny, least, 0x1p1000}},
      {"sine", mpfr_sin, -20, 20, {0, -0.0, 1e5, 1e10, 0x1p100, 0x1p1000, inf, 3.140625, tiny}},
      {"sinh", mpfr_sinh, -20, 20, {0, -0.0, 88.5, 89.5, -710, -711, inf, tiny}},
      {"sqrt", mpfr_sqrt, 0, 100, {0, -0.0, -1, inf, 2, tiny, least, 0x1p1000}},
      {"tan", mpfr_tan, -20, 20, {0, -0.0, 1e5, 1e10, 0x1p100, inf, 1.5703125, tiny}},
      {"tanh", mpfr_tanh, -10, 10, {0, -0.0, 20, -inf, inf, tiny, least}},
  };
  for (const Function& f : functions) unary(f);
  binary("power", mpfr_pow, 0, 20, -20, 20,
         {{2, 0.5},
          {-2, 3},
          {-2, 0.5},
          {0, -1},
          {-0.0, -1},
          {NAN, 0},
          {1, NAN},
          {-1, inf},
          {0.5, inf},
          {2, 127},
          {2, 128},
          {2, -149},
          {2, -150},
          {1.0078125, 1000},
          {10, 308},
          {10, 309},
          {-inf, 3},
          {-inf, 0.5}});
  binary("atan2", mpfr_atan2, -20, 20, -20, 20,
         {{0, 1},
          {-0.0, 1},
          {0, -1},
          {-0.0, -1},
          {1, 0},
          {-1, 0},
          {0, 0},
          {0, -0.0},
          {-0.0, -0.0},
          {inf, inf},
          {inf, -inf},
          {-inf, inf},
          {1, inf},
          {1, -inf},
          {tiny, 1},
          {tiny, -1}});
  return 0;
}
