// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "conformance/cases/case.h"
#include "conformance/cases/pairwise.h"

namespace collet::conformance {
namespace {

using Dims = std::vector<int64_t>;

void add_fft(CaseList& list, const char* kind, Type type, const Dims& dims, size_t rank, std::string_view prefix = {}) {
  const std::string_view name = kind;
  const Type complex = type == Type::F32 ? Type::C64 : Type::C128;
  Dims in = dims, out = dims;
  if (name == "RFFT") out.back() = dims.back() / 2 + 1;
  if (name == "IRFFT") in.back() = dims.back() / 2 + 1;
  const Type from = name == "RFFT" ? type : complex, to = name == "IRFFT" ? type : complex;
  const Dims length(dims.end() - static_cast<std::ptrdiff_t>(rank), dims.end());
  double points = 1;
  for (const int64_t n : length) points *= static_cast<double>(n);
  Text text;
  const std::string x = text.parameter(Shape::array(from, in));
  Case one{fmt::format("fft/{}/{}{}_{}_over_{}/unit", type_name(type), prefix, name, dims_name(dims), rank),
           Op::FFT,
           type,
           "",
           {{}},
           {.kind = Bound::Kind::Scaled, .ulps = 8 + 4 * std::log2(std::max(2.0, points))}};
  one.text =
      text.root(Shape::array(to, out), fmt::format("fft({}), fft_type={}, fft_length={}", x, name, braces(length)));
  list.add(std::move(one));
}

struct Pair {
  const char* kind;
  Type type;
  Dims dims;
  size_t rank;
};
Pair choose(Factors& factors) {
  Pair pair{factors.next({"FFT", "IFFT", "RFFT", "IRFFT"}),
            factors.next({Type::F32, Type::F64}),
            {},
            factors.next<size_t>({1, 2, 3})};
  const size_t batches = factors.next<size_t>({0, 1, 2});
  pair.dims = {2, 3};
  pair.dims.resize(batches);
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t length = factors.next<int64_t>({4, 1, 2, 7, 9, 10, 16});
    if (axis < pair.rank) pair.dims.push_back(length);
  }
  return pair;
}

}  // namespace

void add_fft_cases(CaseList& list) {
  for (const char* kind : {"FFT", "IFFT", "RFFT", "IRFFT"}) {
    for (const Type type : {Type::F32, Type::F64}) {
      for (const int64_t n : {1, 2, 3, 5, 8, 12, 16, 17, 60, 64, 127, 128}) add_fft(list, kind, type, {n}, 1);
      add_fft(list, kind, type, {3, 16}, 1);
      add_fft(list, kind, type, {5, 8}, 2);
      add_fft(list, kind, type, {2, 6, 9}, 2);
      add_fft(list, kind, type, {4, 3, 8}, 3);
    }
  }
  for_pairs(choose, [&](const Pair& pair, size_t number) {
    add_fft(list, pair.kind, pair.type, pair.dims, pair.rank, fmt::format("pair{}_", number));
  });
}

}  // namespace collet::conformance
