/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_ROWS_HPP
#define COLLET_KERNEL_ROWS_HPP

/** \file
 * Makes kernel rows for memory that the caller can address: for a simulated device, a device that is a processor, or a
 * first version of a backend. The rows are correct and simple, not fast; replace those that matter by your own.
 *
 *     collet::kernel::Rows rows([](Device& device, const Array& array) { return static_cast<Mine&>(device).at(array);
 *     });
 *     rows.arithmetic<float>().arithmetic<bfloat16>().arithmetic<int32_t>();
 *     rows.functions<float>().compare<float>().select(all).convert<float, bfloat16, int32_t>();
 *     rows.product<bfloat16, float, float>();  // bf16 x bf16 -> f32
 *     rows.binary<float>(COLLET_OP_ATAN2, [](float x, float y) { return std::atan2(x, y); });
 *     backend.kernels = rows.take();
 *
 * Rows that move elements have a Kernel::prepare. Who runs rows without a table calls it first, and passes its result as
 * OpContext::state; command_rows.hpp does so for command lists.
 *
 * They compute synchronously, in the caller's thread, and find all data by `address`. For a device that computes later,
 * on a thread of its own, kernel_later.hpp makes rows of them that do so there.
 */

#include <utility>

#include "kernel_choice.hpp"
#include "kernel_floats.hpp"
#include "kernel_index.hpp"
#include "kernel_loops.hpp"
#include "kernel_moves.hpp"

namespace collet {
namespace kernel {

/** A set of element types, by their C++ types: types_of<float, int32_t>(). */
template <class... T>
constexpr TypeSet types_of() {
  return TypeSet{Element<T>::type...};
}

namespace detail {

/** Integer arithmetic that wraps around. */
template <class T, class F>
T wrapped(T x, T y, const F& f) {
  if constexpr (std::is_same_v<T, bool>) {
    return f(static_cast<unsigned>(x), static_cast<unsigned>(y)) != 0;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(f(static_cast<uint64_t>(x), static_cast<uint64_t>(y)));
  } else {
    return f(x, y);
  }
}

/** Integer division. Division by zero gives all ones, and its remainder is the dividend; the least number divided by -1
 * is itself. */
template <class T>
T divide(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    if (y == 0) return static_cast<T>(-1);
    if (std::is_signed_v<T> && y == static_cast<T>(-1)) return static_cast<T>(UINT64_C(0) - static_cast<uint64_t>(x));
  }
  return static_cast<T>(x / y);
}
template <class T>
T remainder(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    if (y == 0) return x;
    if (std::is_signed_v<T> && y == static_cast<T>(-1)) return 0;
    return static_cast<T>(x % y);
  } else {
    return std::fmod(x, y);
  }
}

/** Returns x shifted by y, which is unsigned. Shifts by the width or more give 0, or copies of the sign for an arithmetic
 * shift. */
template <class T>
T shifted(uint32_t opcode, T x, T y) {
  using U = std::make_unsigned_t<T>;
  constexpr unsigned width = sizeof(T) * 8;
  const bool is_short = static_cast<U>(y) < width;
  if (opcode == COLLET_OP_SHIFT_RIGHT_ARITHMETIC) {
    const auto value = static_cast<int64_t>(static_cast<std::make_signed_t<T>>(x));
    return static_cast<T>(value >> (is_short ? static_cast<unsigned>(y) : width - 1));
  }
  const auto bits = static_cast<uint64_t>(static_cast<U>(x));
  if (!is_short) return 0;
  return static_cast<T>(opcode == COLLET_OP_SHIFT_LEFT ? bits << static_cast<unsigned>(y)
                                                       : bits >> static_cast<unsigned>(y));
}

/** Returns the number of ones in x. */
template <class T>
T popcount(T x) {
  T count = 0;
  for (auto bits = static_cast<std::make_unsigned_t<T>>(x); bits != 0; bits &= bits - 1) ++count;
  return count;
}

/** Returns the number of zeros above the highest one of x. */
template <class T>
T leading_zeros(T x) {
  T count = sizeof(T) * 8;
  for (auto bits = static_cast<std::make_unsigned_t<T>>(x); bits != 0; bits >>= 1) --count;
  return count;
}

/** Applies one of COLLET_COMBINE_ADD to COLLET_COMBINE_SECOND. */
template <class T>
T combined(uint32_t combine, T x, T y) {
  switch (combine) {
    case COLLET_COMBINE_ADD:
      return wrapped(x, y, [](auto a, auto b) { return a + b; });
    case COLLET_COMBINE_MULTIPLY:
      return wrapped(x, y, [](auto a, auto b) { return a * b; });
    case COLLET_COMBINE_MINIMUM:
      return minimum(x, y);
    case COLLET_COMBINE_MAXIMUM:
      return maximum(x, y);
    case COLLET_COMBINE_FIRST:
      return x;
    case COLLET_COMBINE_SECOND:
      return y;
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    if (combine == COLLET_COMBINE_AND) return static_cast<T>(x & y);
    if (combine == COLLET_COMBINE_OR) return static_cast<T>(x | y);
    if (combine == COLLET_COMBINE_XOR) return static_cast<T>(x ^ y);
  }
  throw Error(COLLET_INTERNAL, "a combination that this type has not");
}

/** True if elements of type T have this combination. */
template <class T>
bool has_combination(uint32_t combine) {
  const bool bitwise = combine == COLLET_COMBINE_AND || combine == COLLET_COMBINE_OR || combine == COLLET_COMBINE_XOR;
  return combine >= COLLET_COMBINE_ADD && combine <= COLLET_COMBINE_SECOND && (!bitwise || std::is_integral_v<Wide<T>>);
}

/** Compares by one of the six directions. */
template <class T>
bool holds(uint32_t direction, T x, T y) {
  switch (direction) {
    case COLLET_DIRECTION_EQ:
      return x == y;
    case COLLET_DIRECTION_NE:
      return x != y;
    case COLLET_DIRECTION_LT:
      return x < y;
    case COLLET_DIRECTION_LE:
      return x <= y;
    case COLLET_DIRECTION_GT:
      return x > y;
    default:
      return x >= y;
  }
}

/** Returns an integer whose order is IEEE 754's total order: -NaN < -Inf < ... < -0 < +0 < ... < NaN. */
template <class T>
int64_t total_order(T x) {
  using Bits = std::conditional_t<sizeof(T) == 8, int64_t, std::conditional_t<sizeof(T) == 4, int32_t, int16_t>>;
  Bits bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits < 0 ? static_cast<int64_t>(static_cast<Bits>(bits ^ std::numeric_limits<Bits>::max())) : bits;
}

/** Returns element `at` of an array of indices, saturated to 64-bit signed integers. */
inline int64_t index_at(uint32_t type, const void* indices, int64_t at) {
  const auto load = [&](auto zero) {
    std::memcpy(&zero, static_cast<const char*>(indices) + at * static_cast<int64_t>(sizeof zero), sizeof zero);
    return zero;
  };
  switch (type) {
    case COLLET_TYPE_S8:
      return load(int8_t{});
    case COLLET_TYPE_S16:
      return load(int16_t{});
    case COLLET_TYPE_S32:
      return load(int32_t{});
    case COLLET_TYPE_U8:
      return load(uint8_t{});
    case COLLET_TYPE_U16:
      return load(uint16_t{});
    case COLLET_TYPE_U32:
      return load(uint32_t{});
    case COLLET_TYPE_U64:
      return static_cast<int64_t>(std::min<uint64_t>(load(uint64_t{}), INT64_MAX));
    default:
      return load(int64_t{});
  }
}

/** Calls visit(starts, indices, slices, array) for each index vector, with the offsets of its batch. */
template <class Visit>
void for_each_window(const IndexedWindows& windows, const Visit& visit) {
  std::vector<Loop> indices, array;
  for (const IndexedWindows::Batch& one : windows.batch) {
    indices.push_back({one.extent, one.indices, one.slices});
    array.push_back({one.extent, one.array, 0});
  }
  std::vector<int64_t> array_offsets;
  for_each_index(array, [&](int64_t from, int64_t) { array_offsets.push_back(from); });
  size_t next = 0;
  for_each_index(indices, [&](int64_t from, int64_t to) { visit(from, to, array_offsets[next++]); });
}

}  // namespace detail

/** Collects rows. Every function that adds rows returns the collector. */
class Rows {
 public:
  /** Returns the address of an array on the host; null for one without elements. */
  using Address = std::function<void*(Device& device, const Array& array)>;

  /** `address` returns the addresses of arrays. */
  explicit Rows(Address address) : address_(std::move(address)) {}

  /** Returns the rows, and empties the collector. */
  std::vector<Kernel> take() { return std::move(rows_); }
  /** Adds a row of the caller. */
  Rows& add(Kernel row) {
    rows_.push_back(std::move(row));
    return *this;
  }

  /** Adds an elementwise op of one operand: out = f(x), computed as Wide<T>. */
  template <class T, class F>
  Rows& unary(uint32_t opcode, F f) {
    return add({opcode, types_of<T>(), types_of<T>(), [f, at = address_](Device& device, const Op& op) {
                  loop_unary(op.result().elements, in<T>(at, device, op, 0), out<T>(at, device, op),
                             [&](Wide<T> x) { return narrow<T>(f(x)); });
                }});
  }
  /** Adds an elementwise op of two operands: out = f(x, y), computed as Wide<T>. */
  template <class T, class F>
  Rows& binary(uint32_t opcode, F f) {
    return add({opcode, types_of<T>(), types_of<T>(), [f, at = address_](Device& device, const Op& op) {
                  loop_binary(op.result().elements, in<T>(at, device, op, 0), in<T>(at, device, op, 1),
                              out<T>(at, device, op), [&](Wide<T> x, Wide<T> y) { return narrow<T>(f(x, y)); });
                }});
  }

  /** Adds add, subtract, multiply, divide, remainder, maximum, minimum, negate, abs, sign and clamp; for integers also
   * and, or, xor, not, shifts, popcnt and count-leading-zeros. For pred it adds those that are defined for pred. */
  template <class T>
  Rows& arithmetic() {
    using W = Wide<T>;
    binary<T>(COLLET_OP_ADD, [](W x, W y) { return detail::combined(COLLET_COMBINE_ADD, x, y); });
    binary<T>(COLLET_OP_MULTIPLY, [](W x, W y) { return detail::combined(COLLET_COMBINE_MULTIPLY, x, y); });
    binary<T>(COLLET_OP_MAXIMUM, [](W x, W y) { return kernel::maximum(x, y); });
    binary<T>(COLLET_OP_MINIMUM, [](W x, W y) { return kernel::minimum(x, y); });
    if constexpr (std::is_integral_v<W>) {
      binary<T>(COLLET_OP_AND, [](W x, W y) { return detail::combined(COLLET_COMBINE_AND, x, y); });
      binary<T>(COLLET_OP_OR, [](W x, W y) { return detail::combined(COLLET_COMBINE_OR, x, y); });
      binary<T>(COLLET_OP_XOR, [](W x, W y) { return detail::combined(COLLET_COMBINE_XOR, x, y); });
      unary<T>(COLLET_OP_NOT, [](W x) {
        if constexpr (std::is_same_v<W, bool>) {
          return !x;
        } else {
          return static_cast<W>(~x);
        }
      });
    }
    if constexpr (std::is_integral_v<W> && !std::is_same_v<T, bool>) {
      for (uint32_t opcode : {COLLET_OP_SHIFT_LEFT, COLLET_OP_SHIFT_RIGHT_LOGICAL, COLLET_OP_SHIFT_RIGHT_ARITHMETIC}) {
        binary<T>(opcode, [opcode](W x, W y) { return detail::shifted(opcode, x, y); });
      }
      unary<T>(COLLET_OP_POPCNT, [](W x) { return detail::popcount(x); });
      unary<T>(COLLET_OP_COUNT_LEADING_ZEROS, [](W x) { return detail::leading_zeros(x); });
    }
    if constexpr (!std::is_same_v<T, bool>) {
      binary<T>(COLLET_OP_SUBTRACT,
                [](W x, W y) { return detail::wrapped(x, y, [](auto a, auto b) { return a - b; }); });
      binary<T>(COLLET_OP_DIVIDE, [](W x, W y) { return detail::divide(x, y); });
      binary<T>(COLLET_OP_REMAINDER, [](W x, W y) { return detail::remainder(x, y); });
      unary<T>(COLLET_OP_NEGATE, [](W x) {
        if constexpr (is_float<T>) return -x;
        return detail::wrapped(W(0), x, [](auto a, auto b) { return a - b; });
      });
      unary<T>(COLLET_OP_SIGN, [](W x) {
        if constexpr (is_float<T>) return x != x || x == 0 ? x : std::copysign(W(1), x);
        return static_cast<W>((x > 0) - (std::is_signed_v<W> && x < 0));
      });
      unary<T>(COLLET_OP_ABS, [](W x) {
        if constexpr (is_float<T>) return std::fabs(x);
        if constexpr (std::is_signed_v<W>) {
          if (x < 0) return detail::wrapped(W(0), x, [](auto a, auto b) { return a - b; });
        }
        return x;
      });
      clamp<T>();
    }
    return *this;
  }

  /** Adds elementary functions on floats: exponential, log, roots, rounding, tanh, sine, cosine, power and similar ops. */
  template <class T>
  Rows& functions() {
    using W = Wide<T>;
    static_assert(is_float<T>, "functions of floats");
    unary<T>(COLLET_OP_EXPONENTIAL, [](W x) { return std::exp(x); });
    unary<T>(COLLET_OP_EXPONENTIAL_MINUS_ONE, [](W x) { return std::expm1(x); });
    unary<T>(COLLET_OP_LOG, [](W x) { return std::log(x); });
    unary<T>(COLLET_OP_LOG_PLUS_ONE, [](W x) { return std::log1p(x); });
    unary<T>(COLLET_OP_SQRT, [](W x) { return std::sqrt(x); });
    unary<T>(COLLET_OP_RSQRT, [](W x) { return W(1) / std::sqrt(x); });
    // Computed as long double, because the C library's cbrt of double has an error of up to 4 units in the last place.
    unary<T>(COLLET_OP_CBRT, [](W x) { return static_cast<W>(std::cbrt(static_cast<long double>(x))); });
    unary<T>(COLLET_OP_TANH, [](W x) { return std::tanh(x); });
    unary<T>(COLLET_OP_LOGISTIC, [](W x) {
      const W e = std::exp(-std::fabs(x));  // does not overflow
      return (x < 0 ? e : W(1)) / (W(1) + e);
    });
    unary<T>(COLLET_OP_SINE, [](W x) { return std::sin(x); });
    unary<T>(COLLET_OP_COSINE, [](W x) { return std::cos(x); });
    unary<T>(COLLET_OP_FLOOR, [](W x) { return std::floor(x); });
    unary<T>(COLLET_OP_CEIL, [](W x) { return std::ceil(x); });
    unary<T>(COLLET_OP_ROUND_NEAREST_AFZ, [](W x) { return std::round(x); });
    unary<T>(COLLET_OP_ROUND_NEAREST_EVEN, [](W x) { return std::nearbyint(x); });
    // Defined also for a signalling NaN, which std::pow would return.
    binary<T>(COLLET_OP_POWER, [](W x, W y) { return x == 1 || y == 0 ? W(1) : std::pow(x, y); });
    return add({COLLET_OP_IS_FINITE, types_of<T>(), types_of<bool>(), [at = address_](Device& device, const Op& op) {
                  loop_unary(op.result().elements, in<T>(at, device, op, 0), out<bool>(at, device, op),
                             [](W x) { return std::isfinite(x); });
                }});
  }

  /** Adds clamp; the bounds may be scalars. */
  template <class T>
  Rows& clamp() {
    return add({COLLET_OP_CLAMP, types_of<T>(), types_of<T>(), [at = address_](Device& device, const Op& op) {
                  const T *low = in<T>(at, device, op, 0), *x = in<T>(at, device, op, 1),
                          *high = in<T>(at, device, op, 2);
                  const uint64_t low_step = step_of(op, 0), high_step = step_of(op, 2);
                  T* to = out<T>(at, device, op);
                  for (uint64_t i = 0; i < op.result().elements; ++i) {
                    const Wide<T> least = low[i * low_step], most = high[i * high_step];
                    to[i] = narrow<T>(kernel::minimum(kernel::maximum<Wide<T>>(least, x[i]), most));
                  }
                }});
  }

  /** Adds compare; for floats also by the total order. */
  template <class T>
  Rows& compare() {
    return add({COLLET_OP_COMPARE, types_of<T>(), types_of<bool>(), [at = address_](Device& device, const Op& op) {
                  const auto how = op.attributes<collet_compare_attrs>();
                  const T *x = in<T>(at, device, op, 0), *y = in<T>(at, device, op, 1);
                  bool* to = out<bool>(at, device, op);
                  for (uint64_t i = 0; i < op.result().elements; ++i) {
                    if constexpr (is_float<T>) {
                      if (how.type == COLLET_COMPARE_TOTALORDER) {
                        to[i] = detail::holds(how.direction, detail::total_order(x[i]), detail::total_order(y[i]));
                        continue;
                      }
                    }
                    to[i] = detail::holds<Wide<T>>(how.direction, x[i], y[i]);
                  }
                }});
  }

  /** Adds select among elements of any of `types`; the predicate may be a scalar. */
  Rows& select(TypeSet types) {
    return add({COLLET_OP_SELECT, types | types_of<bool>(), types, [at = address_](Device& device, const Op& op) {
                  const bool* choice = in<bool>(at, device, op, 0);
                  const char *yes = in<char>(at, device, op, 1), *no = in<char>(at, device, op, 2);
                  char* to = out<char>(at, device, op);
                  const uint64_t size = collet_type_bytes(op.result().type), step = step_of(op, 0);
                  for (uint64_t i = 0; i < op.result().elements; ++i) {
                    std::memcpy(to + i * size, (choice[i * step] ? yes : no) + i * size, size);
                  }
                }});
  }

  /** Adds convert between all pairs of the types. */
  template <class... T>
  Rows& convert() {
    (convert_from<T, T...>(), ...);
    return *this;
  }

  /** Adds bitcast-convert between any of `types`, whose elements must not be narrower than a byte. */
  Rows& bitcast(TypeSet types) {
    return add({COLLET_OP_BITCAST_CONVERT, types, types, [at = address_](Device& device, const Op& op) {
                  if (op.result().bytes == 0) return;
                  std::memmove(out<char>(at, device, op), in<char>(at, device, op, 0), op.result().bytes);
                }});
  }

  /** Adds iota. */
  template <class T>
  Rows& iota() {
    return add({COLLET_OP_IOTA, TypeSet{}, types_of<T>(), [at = address_](Device& device, const Op& op) {
                  const auto d = static_cast<size_t>(op.attributes<collet_iota_attrs>().dimension);
                  const Array& result = op.result();
                  T* to = out<T>(at, device, op);
                  if (result.elements == 0) return;
                  const auto inner = static_cast<uint64_t>(strides_of(result)[d]);
                  const auto extent = static_cast<uint64_t>(result.dims[d]);
                  for (uint64_t i = 0; i < result.elements; ++i) {
                    to[i] = converted<T>(static_cast<int64_t>(i / inner % extent));
                  }
                }});
  }

  /** Adds the ops that only move elements, on `types`: see add_moves. Start indices are read by `address`. */
  Rows& moves(TypeSet types) {
    std::vector<Kernel> made;
    add_moves(&made, types, [at = address_](Device& device, const Move& move, const Array& from, const Array& to) {
      loop_move(move, at(device, from), at(device, to));
    });
    for (Kernel& row : made) {
      if (row.opcode == COLLET_OP_DYNAMIC_SLICE || row.opcode == COLLET_OP_DYNAMIC_UPDATE_SLICE) {
        row.run = with_indices(std::move(row.run));
      }
      add(std::move(row));
    }
    return *this;
  }

  /** Adds reduce of one array by a simple combination, accumulated as Sum. */
  template <class T, class Sum = Wide<T>>
  Rows& reduce() {
    Kernel row{COLLET_OP_REDUCE, types_of<T>(), types_of<T>(), [at = address_](Device& device, const Op& op) {
                 const Reduction reduction = reduction_of(op);
                 const T *x = in<T>(at, device, op, 0), init = *in<T>(at, device, op, 1);
                 T* to = out<T>(at, device, op);
                 for_each_index(reduction.kept, [&](int64_t from, int64_t target) {
                   Sum sum = static_cast<Sum>(static_cast<Wide<T>>(init));
                   for_each_index(reduction.reduced, [&](int64_t offset, int64_t) {
                     sum = detail::combined<Sum>(reduction.combine, sum,
                                                 static_cast<Sum>(static_cast<Wide<T>>(x[from + offset])));
                   });
                   to[target] = narrow<T>(sum);
                 });
               }};
    row.takes = [](const Op& op) -> Verdict {
      if (!is_simple_reduction(op)) return "only sums, products, extremes and bitwise reductions of one array";
      return detail::has_combination<T>(op.combine());
    };
    return add(std::move(row));
  }

  /** Adds reduce of an array of T and one of Index whose body chooses between elements, as argmax and argmin do. */
  template <class T, class Index>
  Rows& choose() {
    Kernel row{
        COLLET_OP_REDUCE, types_of<T, Index>(), types_of<T, Index>(), [at = address_](Device& device, const Op& op) {
          const Reduction reduction = reduction_of(op);
          ChoiceBody body(op);
          const auto pair = [](T value, Index index) {
            return ChoiceBody::Pair{static_cast<double>(static_cast<Wide<T>>(value)), static_cast<double>(index)};
          };
          const T* x = in<T>(at, device, op, 0);
          const Index* i = in<Index>(at, device, op, 1);
          const ChoiceBody::Pair init = pair(*in<T>(at, device, op, 2), *in<Index>(at, device, op, 3));
          T* value = out<T>(at, device, op);
          Index* index = out<Index>(at, device, op, 1);
          for_each_index(reduction.kept, [&](int64_t from, int64_t to) {
            ChoiceBody::Pair chosen = init;
            for_each_index(reduction.reduced, [&](int64_t offset, int64_t) {
              body.combine(&chosen, pair(x[from + offset], i[from + offset]));
            });
            value[to] = narrow<T>(static_cast<Wide<T>>(chosen[0]));
            index[to] = static_cast<Index>(chosen[1]);
          });
        }};
    row.takes = [](const Op& op) -> Verdict {
      const bool fits = op.operand(0).type == Element<T>::type && op.operand(1).type == Element<Index>::type;
      if (op.operand_count() != 4) return "only choices between elements of two arrays";
      if (!fits) {
        return std::string("only choices between elements of ") + collet_type_name(Element<T>::type) + " and " +
               collet_type_name(Element<Index>::type);
      }
      const ChoiceBody body(op);
      return body.refusal().empty() ? Verdict(true) : Verdict(body.refusal());
    };
    return add(std::move(row));
  }

  /** Adds dot of two arrays of In to one of Out, accumulated as Sum: product<bfloat16, float, float>(), product<int8_t,
   * int32_t, int32_t>(). */
  template <class In, class Out, class Sum>
  Rows& product() {
    Kernel row{COLLET_OP_DOT, types_of<In>(), types_of<Out>(), [at = address_](Device& device, const Op& op) {
                 MatrixProduct p;
                 matrix_product_of(op, &p);
                 const In *x = in<In>(at, device, op, 0), *y = in<In>(at, device, op, 1);
                 Out* to = out<Out>(at, device, op);
                 for (int64_t b = 0; b < p.batch; ++b) {
                   for (int64_t m = 0; m < p.m; ++m) {
                     for (int64_t n = 0; n < p.n; ++n) {
                       Sum sum = 0;
                       for (int64_t k = 0; k < p.k; ++k) {
                         sum = added<Sum, In>(sum, x[b * p.lhs_b + m * p.lhs_m + k * p.lhs_k],
                                              y[b * p.rhs_b + k * p.rhs_k + n * p.rhs_n]);
                       }
                       to[b * p.out_b + m * p.out_m + n * p.out_n] = narrow<Out>(sum);
                     }
                   }
                 }
               }};
    row.takes = [](const Op& op) -> Verdict {
      MatrixProduct product;
      if (op.attributes<collet_dot_attrs>().algorithm != COLLET_ALGORITHM_UNSET) return "an algorithm that is named";
      if (!matrix_product_of(op, &product)) return "dimensions that do not come down to batch, m, n and k";
      return true;
    };
    return add(std::move(row));
  }

  /** Adds convolution of two arrays of In to one of Out, accumulated as Sum. */
  template <class In, class Out, class Sum>
  Rows& convolution() {
    return add({COLLET_OP_CONVOLUTION, types_of<In>(), types_of<Out>(), [at = address_](Device& device, const Op& op) {
                  convolve<In, Out, Sum>(convolution_of(op), in<In>(at, device, op, 0), in<In>(at, device, op, 1),
                                         out<Out>(at, device, op));
                }});
  }

  /** Adds gather from arrays of any of `types`. */
  Rows& gather(TypeSet types) {
    return add({COLLET_OP_GATHER, types | index_types, types, [at = address_](Device& device, const Op& op) {
                  const IndexedWindows windows = gather_of(op);
                  const char *array = in<char>(at, device, op, 0), *indices = in<char>(at, device, op, 1);
                  char* to = out<char>(at, device, op);
                  const auto size = static_cast<int64_t>(collet_type_bytes(op.result().type));
                  if (op.result().elements == 0) return;
                  detail::for_each_window(windows, [&](int64_t vector, int64_t slice, int64_t base) {
                    for (const IndexedWindows::Start& start : windows.starts) {
                      const int64_t index = detail::index_at(op.operand(1).type, indices, vector);
                      base += start.stride * std::max<int64_t>(0, std::min(index, start.extent - start.window));
                      vector += windows.vector_stride;
                    }
                    for_each_index(windows.window, [&](int64_t from, int64_t target) {
                      std::memcpy(to + (slice + target) * size, array + (base + from) * size,
                                  static_cast<size_t>(size));
                    });
                  });
                }});
  }

  /** Adds scatter into one array by a simple combination. */
  template <class T>
  Rows& scatter() {
    Kernel row{COLLET_OP_SCATTER, types_of<T>() | index_types, types_of<T>(),
               [at = address_](Device& device, const Op& op) {
                 const IndexedWindows windows = scatter_of(op);
                 const T *from = in<T>(at, device, op, 0), *updates = in<T>(at, device, op, 2);
                 const char* indices = in<char>(at, device, op, 1);
                 T* to = out<T>(at, device, op);
                 if (to != from && op.result().bytes != 0) std::memcpy(to, from, op.result().bytes);
                 if (op.operand(2).elements == 0) return;
                 detail::for_each_window(windows, [&](int64_t vector, int64_t slice, int64_t base) {
                   for (const IndexedWindows::Start& start : windows.starts) {
                     const int64_t index = detail::index_at(op.operand(1).type, indices, vector);
                     if (index < 0 || index > start.extent - start.window) return;
                     base += start.stride * index;
                     vector += windows.vector_stride;
                   }
                   for_each_index(windows.window, [&](int64_t target, int64_t update) {
                     to[base + target] =
                         narrow<T>(detail::combined<Wide<T>>(op.combine(), to[base + target], updates[slice + update]));
                   });
                 });
               }};
    row.takes = [](const Op& op) -> Verdict {
      if (!is_simple_scatter(op)) return "only scatters into one array by a simple combination";
      return op.operand(0).type == Element<T>::type && op.operand(2).type == Element<T>::type &&
             detail::has_combination<T>(op.combine());
    };
    return add(std::move(row));
  }

  /** Adds sort by keys of type T, ascending or descending; the other operands have any of `types`. */
  template <class T>
  Rows& sort(TypeSet types) {
    Kernel row{COLLET_OP_SORT, types | types_of<T>(), types | types_of<T>(),
               [at = address_](Device& device, const Op& op) { sort_by<T>(at, device, op); }};
    row.takes = [](const Op& op) -> Verdict {
      if (op.operand(0).type != Element<T>::type) return false;
      if (op.combine() != COLLET_COMBINE_LESS && op.combine() != COLLET_COMBINE_GREATER) {
        return "only comparators that compare the first pair";
      }
      return comparison_of(op) != COLLET_COMPARE_DEFAULT;
    };
    return add(std::move(row));
  }

 private:
  template <class T>
  static const T* in(const Address& at, Device& device, const Op& op, uint32_t i) {
    return static_cast<const T*>(at(device, op.operand(i)));
  }
  template <class T>
  static T* out(const Address& at, Device& device, const Op& op, uint32_t i = 0) {
    return static_cast<T*>(at(device, op.result(i)));
  }
  /** Returns a function that runs a dynamic slice and finds its start indices on the host. */
  std::function<void(Device&, const Op&)> with_indices(std::function<void(Device&, const Op&)> run) const {
    return [run = std::move(run), at = address_](Device& device, const Op& op) {
      std::vector<Array> arrays(op.arrays(), op.arrays() + op.operand_count() + op.result_count());
      for (uint32_t i = op.opcode() == COLLET_OP_DYNAMIC_SLICE ? 1 : 2; i < op.operand_count(); ++i) {
        if (!arrays[i].host) arrays[i].host = at(device, arrays[i]);
      }
      run(device, Op(op.program(), &op.raw(), arrays.data(), op.context()));
    };
  }
  /** Returns 0 if operand `i` is a scalar that is used for all elements of the result, else 1. */
  static uint64_t step_of(const Op& op, uint32_t i) { return op.operand(i).rank == op.result().rank ? 1 : 0; }

  /** Returns sum + x * y; integers wrap around. */
  template <class Sum, class In>
  static Sum added(Sum sum, In x, In y) {
    if constexpr (std::is_same_v<Sum, bool>) {
      return sum || (x && y);
    } else {
      const Sum a = static_cast<Sum>(static_cast<Wide<In>>(x)), b = static_cast<Sum>(static_cast<Wide<In>>(y));
      const Sum both = detail::wrapped(a, b, [](auto p, auto q) { return p * q; });
      return detail::wrapped(sum, both, [](auto p, auto q) { return p + q; });
    }
  }

  template <class From, class... To>
  void convert_from() {
    (add({COLLET_OP_CONVERT, types_of<From>(), types_of<To>(),
          [at = address_](Device& device, const Op& op) {
            loop_unary(op.result().elements, in<From>(at, device, op, 0), out<To>(at, device, op),
                       [](From x) { return converted<To>(x); });
          }}),
     ...);
  }

  template <class In, class Out, class Sum>
  static void convolve(const Convolution& c, const In* input, const In* kernel, Out* out) {
    std::vector<Loop> places, window;  // loops over spatial indices only; their steps are computed below
    for (const Convolution::Dimension& d : c.dimensions) {
      places.push_back({d.output, 0, 0});
      window.push_back({d.kernel, 0, 0});
    }
    std::vector<int64_t> p(places.size(), 0), k(window.size(), 0);
    const auto advance = [](const std::vector<Loop>& loops, std::vector<int64_t>* index) {
      for (size_t d = loops.size(); d-- > 0; (*index)[d] = 0) {
        if (++(*index)[d] < loops[d].extent) return true;
      }
      return false;
    };
    const auto none = [](const std::vector<Loop>& loops) {
      return std::any_of(loops.begin(), loops.end(), [](const Loop& loop) { return loop.extent == 0; });
    };
    if (none(places)) return;
    for (int64_t n = 0; n < c.batch; ++n) {
      for (int64_t o = 0; o < c.outputs; ++o) {
        std::fill(p.begin(), p.end(), 0);
        do {
          Sum sum = 0;
          std::fill(k.begin(), k.end(), 0);
          do {
            int64_t from = c.input_batch(n, o) * c.input_batch_step + c.first_input(o) * c.input_feature_step;
            int64_t weight = o * c.kernel_output_step;
            bool inside = !none(window);
            for (size_t d = 0; d < k.size(); ++d) {
              const int64_t at = c.dimensions[d].meets(p[d], k[d]);
              inside &= at >= 0;
              from += at * c.dimensions[d].input_step;
              weight += c.dimensions[d].kernel_index(k[d]) * c.dimensions[d].kernel_step;
            }
            for (int64_t i = 0; inside && i < c.inputs; ++i) {
              sum =
                  added<Sum, In>(sum, input[from + i * c.input_feature_step], kernel[weight + i * c.kernel_input_step]);
            }
          } while (advance(window, &k));
          int64_t to = n * c.output_batch_step + o * c.output_feature_step;
          for (size_t d = 0; d < p.size(); ++d) to += p[d] * c.dimensions[d].output_step;
          out[to] = narrow<Out>(sum);
        } while (advance(places, &p));
      }
    }
  }

  /** Returns how the comparator of a sort compares its first pair; COLLET_COMPARE_DEFAULT if that is not recognised. */
  static uint32_t comparison_of(const Op& op) {
    const collet_region* region = collet_region_at(op.program(), op.raw().regions.first);
    for (uint32_t i = 0; i < region->ops.count; ++i) {
      const collet_op* one = collet_op_at(op.program(), region->ops.first + i);
      if (one->opcode != COLLET_OP_COMPARE) continue;
      collet_compare_attrs how;
      collet_read_attributes(op.program(), one, &how, sizeof how);
      return how.type;
    }
    return COLLET_COMPARE_DEFAULT;
  }

  template <class T>
  static void sort_by(const Address& at, Device& device, const Op& op) {
    if (op.result().elements == 0) return;
    const auto d = static_cast<size_t>(op.attributes<collet_sort_attrs>().dimension);
    const bool descending = op.combine() == COLLET_COMBINE_GREATER;
    const bool total = is_float<T> && comparison_of(op) == COLLET_COMPARE_TOTALORDER;
    const int64_t extent = op.result().dims[d], step = strides_of(op.result())[d];
    const T* keys = in<T>(at, device, op, 0);
    std::vector<Loop> rows;
    for (uint32_t i = 0; i < op.result().rank; ++i) {
      if (i != d) rows.push_back({op.result().dims[i], strides_of(op.result())[i], 0});
    }
    std::vector<int64_t> order(static_cast<size_t>(extent));
    std::vector<char> line;
    for_each_index(rows, [&](int64_t base, int64_t) {
      for (size_t i = 0; i < order.size(); ++i) order[i] = base + static_cast<int64_t>(i) * step;
      // If the comparison is not total, NaN comes last, because sorting needs a total order.
      const auto less = [&](int64_t x, int64_t y) {
        if constexpr (is_float<T>) {
          if (total) return detail::total_order(keys[x]) < detail::total_order(keys[y]);
          if (keys[y] != keys[y]) return keys[x] == keys[x];
        }
        return static_cast<Wide<T>>(keys[x]) < static_cast<Wide<T>>(keys[y]);
      };
      std::sort(order.begin(), order.end(), [&](int64_t x, int64_t y) {
        const int64_t first = descending ? y : x, second = descending ? x : y;
        if (less(first, second)) return true;
        return !less(second, first) && x < y;  // equal elements keep their order
      });
      // The keys are last, because a result may share its operand's memory.
      for (uint32_t i = op.operand_count(); i-- > 0;) {
        const size_t size = collet_type_bytes(op.operand(i).type);
        const char* from = in<char>(at, device, op, i);
        char* to = out<char>(at, device, op, i);
        line.resize(order.size() * size);
        for (size_t e = 0; e < order.size(); ++e) {
          std::memcpy(&line[e * size], from + static_cast<size_t>(order[e]) * size, size);
        }
        for (size_t e = 0; e < order.size(); ++e) {
          std::memcpy(to + (static_cast<size_t>(base) + e * static_cast<size_t>(step)) * size, &line[e * size], size);
        }
      }
    });
  }

  Address address_;
  std::vector<Kernel> rows_;
};

}  // namespace kernel
}  // namespace collet

#endif
