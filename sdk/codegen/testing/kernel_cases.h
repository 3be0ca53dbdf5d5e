// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/kernel_evaluate.h>
#include <collet/codegen/kernel_text.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/kernel/float_format.h"
#include "sdk/codegen/kernel/literal.h"
#include "sdk/codegen/kernel/scalar.h"

/// \file
/// Buffers for kernels and their expected contents, which the evaluator computes. For tests of generated code, for any
/// machine.

namespace collet::codegen {

/// The contents of buffers before a kernel runs.
enum class Fill {
  kSmall,  ///< small integers, so that sums and products of floats are exact in any order
  kBits,   ///< random bits, including infinities and NaNs
  kTame,   ///< floats between 1/4 and 4, of both signs
};

/// Buffers between guard bytes, which no kernel may change. They begin `shift` bytes after a multiple of 64.
class Buffers {
 public:
  explicit Buffers(size_t shift = 0) : shift_(shift) {}
  Buffers(Buffers&&) = default;
  Buffers(const Buffers&) = delete;  // a copy would begin elsewhere in its memory

  void add(size_t bytes) {
    bytes_.push_back(bytes);
    data_.emplace_back(bytes + 2 * kRoom + shift_, kGuard);
  }
  std::span<std::byte> operator[](size_t i) { return {data_[i].data() + start(i), bytes_[i]}; }
  size_t size() const { return bytes_.size(); }
  std::vector<std::span<std::byte>> spans() {
    std::vector<std::span<std::byte>> all;
    for (size_t i = 0; i < size(); ++i) all.push_back((*this)[i]);
    return all;
  }
  std::vector<char*> addresses() {
    std::vector<char*> all;
    for (size_t i = 0; i < size(); ++i) all.push_back(reinterpret_cast<char*>((*this)[i].data()));
    return all;
  }
  bool are_guards_unchanged() const {
    const auto is_guard = [](std::byte b) { return b == kGuard; };
    for (size_t i = 0; i < size(); ++i) {
      const auto begin = data_[i].begin() + static_cast<ptrdiff_t>(start(i));
      const auto end = begin + static_cast<ptrdiff_t>(bytes_[i]);
      if (!std::all_of(data_[i].begin(), begin, is_guard) || !std::all_of(end, data_[i].end(), is_guard)) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kLine = 64;
  static constexpr size_t kRoom = 128 + kLine;
  static constexpr std::byte kGuard{0xa5};
  size_t start(size_t i) const {
    const size_t first = reinterpret_cast<uintptr_t>(data_[i].data()) + kRoom - kLine;
    return kRoom - kLine + (kLine - first % kLine) % kLine + shift_;
  }

  size_t shift_;
  std::vector<std::vector<std::byte>> data_;
  std::vector<size_t> bytes_;
};

/// For each buffer the element type, 0 if the kernel does not use it, and the number of elements that its accesses may
/// reach.
struct Extents {
  std::vector<uint32_t> types;
  std::vector<int64_t> elements;
};

inline Extents extents_of(const Kernel& k) {
  constexpr int64_t kUnknown = 64;
  Extents x{std::vector<uint32_t>(k.buffers, 0), std::vector<int64_t>(k.buffers, 1)};
  const auto reach = [&](uint32_t buffer, uint32_t type, const Index& index) {
    int64_t last = index.constant;
    for (size_t l = 0; l < index.coefficients.size(); ++l) {
      last += std::max<int64_t>(index.coefficients[l] * (k.loops[l].size - 1), 0);
    }
    for (auto [id, c] : index.terms) {
      const Expr& e = k.exprs[static_cast<size_t>(id)];
      const bool known = e.op == ExprOp::kStart || e.op == ExprOp::kModulo;
      last += std::max<int64_t>(c * (known ? e.a : kUnknown), 0);
    }
    x.types[buffer] = type;
    x.elements[buffer] = std::max(x.elements[buffer], last + 1);
  };
  for (const Expr& e : k.exprs) {
    if (e.op == ExprOp::kLoad) reach(e.buffer, e.type, e.index);
  }
  for (const Store& s : k.stores) reach(s.buffer, k.exprs[static_cast<size_t>(s.value)].type, s.index);
  for (const Update& u : k.updates) {
    for (size_t i = 0; i < u.buffers.size(); ++i) reach(u.buffers[i], u.types[i], u.index);
  }
  return x;
}

inline Element random_element(uint32_t type, Fill fill, std::mt19937_64& random) {
  const uint32_t kind = collet_type_kind(type);
  const auto number = [&]() -> long double {
    if (fill == Fill::kSmall) return static_cast<long double>(static_cast<int64_t>(random() % 5)) - 2;
    const long double size =
        std::ldexp(1.0L + static_cast<long double>(random() % 1024) / 1024, static_cast<int>(random() % 4) - 2);
    return random() % 2 == 0 ? size : -size;
  };
  switch (kind) {
    case COLLET_KIND_PRED:
      return {random() % 2, 0};
    case COLLET_KIND_SIGNED:
    case COLLET_KIND_UNSIGNED: {
      // The last one is slightly more than the middle of two bf16 numbers, by less than f64 can hold.
      constexpr uint64_t kSpecial[] = {0,    1, ~uint64_t{0},      uint64_t{1} << 63, ~uint64_t{0} >> 1,
                                       0x80, 2, 0x1010000000000001};
      if (fill == Fill::kSmall) return element_of_integer(type, random() % 7);
      return element_of_integer(type, random() % 3 == 0 ? kSpecial[random() % 8] : random() >> random() % 64);
    }
    case COLLET_KIND_FLOAT:
      if (fill != Fill::kBits) return element_of_real(type, number());
      break;
    default:
      if (fill != Fill::kBits) return element_of_complex(type, {number(), number()});
      break;
  }
  Element x{random(), random()};
  if (kind == COLLET_KIND_FLOAT && random() % 8 == 0) {
    constexpr long double kSpecial[] = {0.0L, -0.0L, 1, -1, INFINITY, -INFINITY, NAN, 0.5L};
    return element_of_real(type, kSpecial[random() % 8]);
  }
  const int width = type_bits(type);
  if (width < 64) x[0] &= (uint64_t{1} << width) - 1;
  if (width <= 64) x[1] = 0;
  return x;
}

inline Buffers make_buffers(const Extents& x, Fill fill, uint64_t seed) {
  std::mt19937_64 random(seed);
  Buffers buffers(seed % 2 * 16);
  for (size_t i = 0; i < x.types.size(); ++i) {
    const size_t bytes = collet_type_bytes(x.types[i]);
    buffers.add(bytes * static_cast<size_t>(x.elements[i]));
    for (size_t at = 0; at + bytes <= buffers[i].size() && bytes > 0; at += bytes) {
      const Element e = random_element(x.types[i], fill, random);
      std::memcpy(buffers[i].data() + at, e.data(), bytes);
    }
  }
  return buffers;
}

/// The largest error allowed, relative to the evaluator: 0, or a number of units in the last place of the type, where
/// magnitudes below 1 count as 1.
struct Bound {
  double ulp = 0;
};

inline bool is_near(uint32_t type, const Element& x, const Element& y, Bound bound) {
  if (x == y) return true;
  const uint32_t kind = collet_type_kind(type);
  if (kind != COLLET_KIND_FLOAT && kind != COLLET_KIND_COMPLEX) return false;
  const auto p = complex_of_element(type, x);
  const auto q = complex_of_element(type, y);
  const int mantissa = type == COLLET_TYPE_F64 || type == COLLET_TYPE_C128  ? 52
                       : type == COLLET_TYPE_F32 || type == COLLET_TYPE_C64 ? 23
                                                                            : float_format(type).mantissa_bits;
  const long double size = std::abs(q);
  const auto near = [&](long double a, long double b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    if (a == b) return bound.ulp > 0 || std::signbit(a) == std::signbit(b);
    return std::fabs(a - b) <= bound.ulp * std::ldexp(std::max(1.0L, size), -mantissa);
  };
  return near(p.real(), q.real()) && near(p.imag(), q.imag());
}

/// A kernel and how to test it.
struct KernelCase {
  std::string name;
  Kernel kernel;
  Fill fill = Fill::kSmall;
  Bound bound;
};

/// Runs a kernel by `run`, which receives the number of the case and its buffers, and by the evaluator. Compares the
/// buffers.
inline void compare_with_evaluator(const KernelCase& c, size_t number,
                                   const std::function<void(size_t number, Buffers& buffers)>& run) {
  const Extents extents = extents_of(c.kernel);
  Buffers expected = make_buffers(extents, c.fill, number + 1);
  Buffers actual = make_buffers(extents, c.fill, number + 1);
  const Status evaluated = evaluate_kernel(c.kernel, expected.spans());
  ASSERT_TRUE(evaluated.ok()) << evaluated.message();
  run(number, actual);
  EXPECT_TRUE(actual.are_guards_unchanged()) << "written outside of the buffers";
  for (size_t b = 0; b < extents.types.size(); ++b) {
    const uint32_t type = extents.types[b];
    const size_t bytes = collet_type_bytes(type);
    int wrong = 0;
    for (int64_t at = 0; bytes > 0 && at < extents.elements[b]; ++at) {
      Element x{};
      Element y{};
      std::memcpy(x.data(), actual[b].data() + static_cast<size_t>(at) * bytes, bytes);
      std::memcpy(y.data(), expected[b].data() + static_cast<size_t>(at) * bytes, bytes);
      if (is_near(type, x, y, c.bound) || ++wrong > 3) continue;
      ADD_FAILURE() << "b" << b << "[" << at << "] is " << print_element(type, x) << ", not " << print_element(type, y);
    }
    EXPECT_LE(wrong, 3) << wrong << " elements of b" << b;
  }
}

}  // namespace collet::codegen
