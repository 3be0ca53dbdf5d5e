// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hlo/testing/inputs.h"

/// \file
/// The implementation of random_module: writers that add random instructions to computations.

namespace collet::hlo::testing::random {

using Sizes = std::vector<int64_t>;

enum class Kind : uint8_t { Pred, Signed, Unsigned, Float, Complex };

struct TypeRow {
  std::string_view name;
  Kind kind;
};
inline constexpr TypeRow kTypes[] = {
    {"f32", Kind::Float},    {"s32", Kind::Signed},     {"pred", Kind::Pred},    {"f64", Kind::Float},
    {"bf16", Kind::Float},   {"f16", Kind::Float},      {"s8", Kind::Signed},    {"u8", Kind::Unsigned},
    {"u32", Kind::Unsigned}, {"s64", Kind::Signed},     {"c64", Kind::Complex},  {"s4", Kind::Signed},
    {"u4", Kind::Unsigned},  {"s16", Kind::Signed},     {"u16", Kind::Unsigned}, {"u64", Kind::Unsigned},
    {"c128", Kind::Complex}, {"f8e4m3fn", Kind::Float}, {"f8e5m2", Kind::Float}};
// The number of types, from the beginning of the table, that are used unless RandomModule::everything is set.
inline constexpr int64_t kUsualTypes = 11;

inline int64_t count(const Sizes& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

struct Value {
  std::string name;
  const TypeRow* type = nullptr;
  Sizes dims;
  bool exact = true;  ///< whether every right implementation computes the same bits

  bool like(const Value& other) const { return type == other.type && dims == other.dims; }
  size_t rank() const { return dims.size(); }
  int64_t count() const { return random::count(dims); }
};

inline std::string list(const Sizes& values) {
  std::string out;
  for (int64_t v : values) out += (out.empty() ? "" : ",") + std::to_string(v);
  return "{" + out + "}";
}
inline std::string shape(const TypeRow& type, const Sizes& dims) {
  std::string inner = list(dims);
  inner.front() = '[';
  inner.back() = ']';
  return std::string(type.name) + inner;
}
inline std::string shape(const Value& v) {
  return shape(*v.type, v.dims);
}
inline const TypeRow& type(std::string_view name) {
  return *std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeRow& t) { return t.name == name; });
}

/// The state that all writers of a module share: the random generator, the names, and the finished computations.
struct WriterState {
  uint64_t state;
  int names = 0;
  std::string computations;  ///< callees, printed before the entry
  std::vector<int64_t> dimensions;
  int64_t most_elements = 0;
  bool everything = false;
  bool effects = false;

  uint64_t next() { return mix(state += 0x9e3779b97f4a7c15ull); }
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool one_in(int64_t n) { return below(n) == 0; }
  std::string name(std::string_view stem) { return std::string(stem) + "." + std::to_string(names++); }
  template <typename T>
  const T& of(const std::vector<T>& values) {
    return values[static_cast<size_t>(below(static_cast<int64_t>(values.size())))];
  }
  const TypeRow& any_type() {
    return kTypes[below(everything ? static_cast<int64_t>(std::size(kTypes)) : kUsualTypes)];
  }
  Sizes sizes() {
    Sizes dims(static_cast<size_t>(below(4)));
    int64_t elements = 1;
    for (int64_t& d : dims) {
      d = one_in(20) ? 0 : size(most_elements / std::max<int64_t>(elements, 1));
      elements *= d;
    }
    return dims;
  }
  /// Draws the size of a dimension. It is at most `most`, but at least one.
  int64_t size(int64_t most) {
    int64_t d = of(dimensions);
    while (d > 1 && d > most) d = (d + 1) / 2;
    return d;
  }
  /// Draws a size that is often small.
  int64_t small_or_any(int64_t small, int64_t most) { return one_in(2) ? between(1, small) : size(most); }
};

/// Draws a number of the type, as HLO text.
std::string number(WriterState& draw, const TypeRow& t);

/// Writes one computation. Each step appends random instructions whose operands are drawn from the pool of earlier values.
class Writer {
 public:
  /// `sends`: the computation may send values to the host, if RandomModule::effects is set.
  Writer(WriterState& draw, bool control_flow, bool sends = false)
      : state_(draw), control_flow_(control_flow), sends_(sends && draw.effects) {}

  std::vector<Value>& pool() { return pool_; }
  std::string& text() { return text_; }
  void grow(int steps);

  Value emit(const TypeRow& t, const Sizes& dims, const std::string& call, bool exact = true) {
    Value v{state_.name("v"), &t, dims, exact};
    text_ += "  " + v.name + " = " + shape(v) + " " + call + "\n";
    pool_.push_back(v);
    return v;
  }
  /// With some probability, writes a send of these values to the host.
  void send(const std::vector<Value>& values);
  Value constant(const TypeRow& t) { return emit(t, {}, "constant(" + number(state_, t) + ")"); }
  Value splat(const TypeRow& t, const Sizes& dims) {
    const Value c = constant(t);
    return dims.empty() ? c : emit(t, dims, "broadcast(" + c.name + "), dimensions={}");
  }
  // Returns an index that may be out of bounds.
  Value index() {
    const TypeRow& s32 = type("s32");
    for (int i = 0; i < 4; ++i)
      if (const Value& v = state_.of(pool_); v.type == &s32 && v.dims.empty()) return v;
    const int64_t at = state_.one_in(3) ? state_.below(state_.of(state_.dimensions)) : state_.between(-2, 4);
    return emit(s32, {}, "constant(" + std::to_string(at) + ")");
  }

  using Filter = bool (*)(const Value&);
  std::optional<Value> pick(Filter filter = nullptr) {
    std::vector<size_t> fit;
    for (size_t i = 0; i < pool_.size(); ++i)
      if (!filter || filter(pool_[i])) fit.push_back(i);
    if (fit.empty()) return std::nullopt;
    // New values are chosen more often, so that there are long chains.
    const size_t from = state_.one_in(2) ? fit.size() - std::min<size_t>(fit.size(), 4) : 0;
    return pool_[fit[from + static_cast<size_t>(state_.below(static_cast<int64_t>(fit.size() - from)))]];
  }
  // Returns an exact value with the shape of `v`; creates one if there is none.
  Value mate(const Value& v) {
    std::vector<Value> fit;
    for (const Value& other : pool_)
      if (other.exact && other.like(v)) fit.push_back(other);
    return fit.empty() || state_.one_in(4) ? splat(*v.type, v.dims) : state_.of(fit);
  }

 private:
  using Step = void (Writer::*)();
  static const std::vector<Step> kSteps;
  static const std::vector<Step> kMore;
  static const std::vector<Step> kFlow;

  void unary();
  void inexact_unary();
  void binary();
  void inexact_binary();
  void compare();
  void select();
  void clamp();
  void convert();
  void complex_parts();
  void again();
  void broadcast();
  void reshape();
  void transpose();
  void slice();
  void pad();
  void concatenate();
  void reverse();
  /// Returns the sizes of a random slice of `v`, and operands with its start indices: ", %i, %j".
  std::pair<Sizes, std::string> random_slice(const Value& v);
  void dynamic_slice();
  void dynamic_update_slice();
  Value many_indices(const Sizes& dims);
  void gather();
  void scatter();
  void iota();
  void array_constant();
  void reduce();
  void reduce_window();
  void dot();
  void sort();
  void tuples();
  void barrier();
  void map();
  void is_finite();
  void reduce_precision();
  void bitcast_convert();
  void complex_product();
  void convolution();
  void fft();
  void select_and_scatter();
  void topk();
  void random_bits();
  void reduce_pairs();
  void loop();
  void conditional();
  void call();

  std::string combiner(std::string_view op, const TypeRow& t);
  std::string result_tuple(const std::vector<Value>& values, std::string_view name);

  WriterState& state_;
  bool control_flow_;
  bool sends_;
  std::string text_;
  std::vector<Value> pool_;
};

inline bool is_exact(const Value& v) {
  return v.exact;
}
inline bool is_plain(const Value& v) {
  return v.exact && v.type->kind != Kind::Complex;
}
inline bool is_ranked(const Value& v) {
  return v.rank() > 0;
}
// True for float types with few bits, whose sums differ much if the order of addition changes.
inline bool is_narrow(const Value& v) {
  return v.type->kind == Kind::Float && v.type->name != "f32" && v.type->name != "f64";
}
inline bool is_filled(const Value& v) {
  return v.rank() > 0 && v.count() > 0;
}

}  // namespace collet::hlo::testing::random
