/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_LOOPS_HPP
#define COLLET_KERNEL_LOOPS_HPP

/** \file
 * Plain loops over memory that the caller can address: for a simulated device, a device that is a processor, or a first
 * version of a kernel. Nothing here is fast; everything here is short and right.
 */

#include <cstring>

#include "kernel_shapes.hpp"

namespace collet {
namespace kernel {

/** Calls visit(from, to) with the offsets of every index of `loops`, in row-major order. */
template <class Visit>
void for_each_index(const std::vector<Loop>& loops, const Visit& visit) {
  for (const Loop& loop : loops) {
    if (loop.extent <= 0) return;
  }
  std::vector<int64_t> index(loops.size(), 0);
  int64_t from = 0, to = 0;
  for (;;) {
    visit(from, to);
    size_t d = loops.size();
    for (;; --d) {
      if (d == 0) return;
      const Loop& loop = loops[d - 1];
      from += loop.from;
      to += loop.to;
      if (++index[d - 1] < loop.extent) break;
      index[d - 1] = 0;
      from -= loop.from * loop.extent;
      to -= loop.to * loop.extent;
    }
  }
}

namespace detail {

/** The move, for one size of element. Elements are copied as bytes: their type does not matter. */
template <size_t element_bytes>
void move_elements(const Move& move, const char* from, char* to) {
  std::vector<Loop> outer = move.loops;
  Loop inner{1, 0, 0};
  if (!outer.empty()) {
    inner = outer.back();
    outer.pop_back();
  }
  constexpr auto size = static_cast<int64_t>(element_bytes);
  for_each_index(outer, [&](int64_t from_offset, int64_t to_offset) {
    const char* source = from + (move.from_base + from_offset) * size;
    char* target = to + (move.to_base + to_offset) * size;
    if (inner.from == 1 && inner.to == 1) {
      std::memcpy(target, source, static_cast<size_t>(inner.extent * size));
      return;
    }
    for (int64_t i = 0; i < inner.extent; ++i) {
      std::memcpy(target + i * inner.to * size, source + i * inner.from * size, element_bytes);
    }
  });
}

}  // namespace detail

/** Makes the move between two arrays, each given by the address of its first element. */
inline void loop_move(const Move& move, const void* from, void* to) {
  const auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(to);
  switch (move.element_bytes) {
    case 1:
      return detail::move_elements<1>(move, source, target);
    case 2:
      return detail::move_elements<2>(move, source, target);
    case 4:
      return detail::move_elements<4>(move, source, target);
    case 8:
      return detail::move_elements<8>(move, source, target);
    case 16:
      return detail::move_elements<16>(move, source, target);
    default:
      throw Error(COLLET_INTERNAL, "a move of elements of " + std::to_string(move.element_bytes) + " bytes");
  }
}

/** out[i] = f(x[i]). */
template <class In, class Out, class F>
void loop_unary(uint64_t elements, const In* x, Out* out, const F& f) {
  for (uint64_t i = 0; i < elements; ++i) out[i] = f(x[i]);
}

/** out[i] = f(x[i], y[i]). */
template <class In, class Out, class F>
void loop_binary(uint64_t elements, const In* x, const In* y, Out* out, const F& f) {
  for (uint64_t i = 0; i < elements; ++i) out[i] = f(x[i], y[i]);
}

/** out[kept] = f(... f(f(init, x), x) ..., x), accumulated as Sum. */
template <class Sum, class T, class F>
void loop_reduce(const Reduction& reduction, const T* x, T init, T* out, const F& f) {
  for_each_index(reduction.kept, [&](int64_t from, int64_t to) {
    Sum sum = static_cast<Sum>(init);
    for_each_index(reduction.reduced,
                   [&](int64_t offset, int64_t) { sum = f(sum, static_cast<Sum>(x[from + offset])); });
    out[to] = static_cast<T>(sum);
  });
}

/** The product, accumulated as Sum. */
template <class Sum, class T>
void loop_product(const MatrixProduct& p, const T* lhs, const T* rhs, T* out) {
  std::vector<Sum> row(static_cast<size_t>(p.n));
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t m = 0; m < p.m; ++m) {
      std::fill(row.begin(), row.end(), Sum(0));
      for (int64_t k = 0; k < p.k; ++k) {
        const Sum left = static_cast<Sum>(lhs[b * p.lhs_b + m * p.lhs_m + k * p.lhs_k]);
        const T* right = rhs + b * p.rhs_b + k * p.rhs_k;
        for (int64_t n = 0; n < p.n; ++n) row[static_cast<size_t>(n)] += left * static_cast<Sum>(right[n * p.rhs_n]);
      }
      T* target = out + b * p.out_b + m * p.out_m;
      for (int64_t n = 0; n < p.n; ++n) target[n * p.out_n] = static_cast<T>(row[static_cast<size_t>(n)]);
    }
  }
}

}  // namespace kernel
}  // namespace collet

#endif
