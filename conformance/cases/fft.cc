// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "conformance/cases/case.h"

namespace collet::conformance {
namespace {

using Dims = std::vector<int64_t>;

void add_fft(CaseList& list, const char* kind, Type type, const Dims& dims, size_t rank) {
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
  Case one{
      fmt::format("fft/{}/{}_{}_over_{}/unit", type_name(type), name, dims_name(dims), rank), Op::FFT, type, "", {{}},
      {.kind = Bound::Kind::Scaled, .ulps = 8 + 4 * std::log2(std::max(2.0, points))}};
  one.text =
      text.root(Shape::array(to, out), fmt::format("fft({}), fft_type={}, fft_length={}", x, name, braces(length)));
  list.add(std::move(one));
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
}

}  // namespace collet::conformance
