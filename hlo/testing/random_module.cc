// SPDX-License-Identifier: Apache-2.0
#include "hlo/testing/random_module.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "hlo/testing/inputs.h"

namespace collet::hlo::testing {
namespace {

using Sizes = std::vector<int64_t>;

enum class Kind : uint8_t { Pred, Signed, Unsigned, Float, Complex };

struct TypeRow {
  std::string_view name;
  Kind kind;
};
constexpr TypeRow kTypes[] = {{"f32", Kind::Float},  {"s32", Kind::Signed},  {"pred", Kind::Pred},
                              {"f64", Kind::Float},  {"bf16", Kind::Float},  {"f16", Kind::Float},
                              {"s8", Kind::Signed},  {"u8", Kind::Unsigned}, {"u32", Kind::Unsigned},
                              {"s64", Kind::Signed}, {"c64", Kind::Complex}};

struct Value {
  std::string name;
  const TypeRow* type = nullptr;
  Sizes dims;
  bool exact = true;  ///< every implementation gives these bits

  bool like(const Value& other) const { return type == other.type && dims == other.dims; }
  size_t rank() const { return dims.size(); }
  int64_t count() const {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    return n;
  }
};

constexpr int64_t kMostElements = 200;

std::string list(const Sizes& values) {
  std::string out;
  for (int64_t v : values) out += (out.empty() ? "" : ",") + std::to_string(v);
  return "{" + out + "}";
}
std::string shape(const TypeRow& type, const Sizes& dims) {
  std::string inner = list(dims);
  inner.front() = '[';
  inner.back() = ']';
  return std::string(type.name) + inner;
}
std::string shape(const Value& v) {
  return shape(*v.type, v.dims);
}
const TypeRow& type(std::string_view name) {
  return *std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeRow& t) { return t.name == name; });
}

/// What all computations of a module share.
struct Draw {
  uint64_t state;
  int names = 0;
  std::string computations;  ///< callees, printed before the entry
  std::vector<int64_t> dimensions;

  uint64_t next() { return mix(state += 0x9e3779b97f4a7c15ull); }
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool one_in(int64_t n) { return below(n) == 0; }
  std::string name(std::string_view stem) { return std::string(stem) + "." + std::to_string(names++); }
  template <typename T>
  const T& of(const std::vector<T>& values) {
    return values[static_cast<size_t>(below(static_cast<int64_t>(values.size())))];
  }
  Sizes sizes() {
    Sizes dims(static_cast<size_t>(below(4)));
    for (int64_t& d : dims) d = one_in(20) ? 0 : of(dimensions);
    return dims;
  }
};

std::string number(Draw& draw, const TypeRow& t) {
  static const std::vector<std::string> kFloats = {"0", "-0", "1", "-1", "0.5", "2", "-3", "0.25", "4"};
  static const std::vector<std::string> kInts = {"0", "1", "2", "3", "7", "-1", "-2", "5"};
  if (t.kind == Kind::Pred) return draw.one_in(2) ? "true" : "false";
  if (t.kind == Kind::Complex) return "(" + draw.of(kFloats) + ", " + draw.of(kFloats) + ")";
  if (t.kind == Kind::Float) return draw.of(kFloats);
  std::string n = draw.of(kInts);
  if (t.kind == Kind::Unsigned && n[0] == '-') n = n.substr(1);
  return n;
}

/// One computation as it grows.
class Writer {
 public:
  Writer(Draw& draw, bool control_flow) : draw_(draw), control_flow_(control_flow) {}

  std::vector<Value>& pool() { return pool_; }
  std::string& text() { return text_; }
  void grow(int steps);

  Value emit(const TypeRow& t, const Sizes& dims, const std::string& call, bool exact = true) {
    Value v{draw_.name("v"), &t, dims, exact};
    text_ += "  " + v.name + " = " + shape(v) + " " + call + "\n";
    pool_.push_back(v);
    return v;
  }
  Value constant(const TypeRow& t) { return emit(t, {}, "constant(" + number(draw_, t) + ")"); }
  Value splat(const TypeRow& t, const Sizes& dims) {
    const Value c = constant(t);
    return dims.empty() ? c : emit(t, dims, "broadcast(" + c.name + "), dimensions={}");
  }
  // An index that may lie outside.
  Value index() {
    const TypeRow& s32 = type("s32");
    for (int i = 0; i < 4; ++i)
      if (const Value& v = draw_.of(pool_); v.type == &s32 && v.dims.empty()) return v;
    return emit(s32, {}, "constant(" + std::to_string(draw_.between(-2, 4)) + ")");
  }

  using Filter = bool (*)(const Value&);
  std::optional<Value> pick(Filter filter = nullptr) {
    std::vector<size_t> fit;
    for (size_t i = 0; i < pool_.size(); ++i)
      if (!filter || filter(pool_[i])) fit.push_back(i);
    if (fit.empty()) return std::nullopt;
    // What is new is more often used, or there would be few long chains.
    const size_t from = draw_.one_in(2) ? fit.size() - std::min<size_t>(fit.size(), 4) : 0;
    return pool_[fit[from + static_cast<size_t>(draw_.below(static_cast<int64_t>(fit.size() - from)))]];
  }
  // A value like `v`, exact: made if there is none.
  Value mate(const Value& v) {
    std::vector<Value> fit;
    for (const Value& other : pool_)
      if (other.exact && other.like(v)) fit.push_back(other);
    return fit.empty() || draw_.one_in(4) ? splat(*v.type, v.dims) : draw_.of(fit);
  }

 private:
  using Step = void (Writer::*)();
  static const std::vector<Step> kSteps;
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
  void dynamic_slice();
  void dynamic_update_slice();
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
  void loop();
  void conditional();
  void call();

  std::string combiner(std::string_view op, const TypeRow& t);
  std::string result_tuple(const std::vector<Value>& values, std::string_view name);

  Draw& draw_;
  bool control_flow_;
  std::string text_;
  std::vector<Value> pool_;
};

bool is_exact(const Value& v) {
  return v.exact;
}
bool is_plain(const Value& v) {
  return v.exact && v.type->kind != Kind::Complex;
}
bool is_ranked(const Value& v) {
  return v.rank() > 0;
}
// Sums in few bits lie far apart in another order.
bool is_narrow(const Value& v) {
  return v.type->name == "bf16" || v.type->name == "f16";
}
bool is_filled(const Value& v) {
  return v.rank() > 0 && v.count() > 0;
}

void Writer::unary() {
  const auto v = pick(is_exact);
  if (!v) return;
  static const std::vector<std::string> kOps[] = {
      {"not"},
      {"negate", "abs", "sign", "not", "popcnt", "count-leading-zeros", "copy"},
      {"not", "popcnt", "count-leading-zeros", "negate"},
      {"negate", "abs", "sign", "floor", "ceil", "round-nearest-afz", "round-nearest-even", "copy"},
      {"negate", "copy"}};
  emit(*v->type, v->dims, draw_.of(kOps[static_cast<size_t>(v->type->kind)]) + "(" + v->name + ")");
}

void Writer::inexact_unary() {
  static const std::vector<std::string> kOps = {"exponential",  "log",    "tanh", "sqrt",     "rsqrt",
                                                "sine",         "cosine", "tan",  "logistic", "exponential-minus-one",
                                                "log-plus-one", "cbrt",   "erf"};
  const auto v = pick([](const Value& x) { return x.exact && x.type->kind == Kind::Float; });
  if (v) emit(*v->type, v->dims, draw_.of(kOps) + "(" + v->name + ")", false);
}

void Writer::binary() {
  const auto v = pick(is_exact);
  if (!v) return;
  static const std::vector<std::string> kOps[] = {
      {"and", "or", "xor", "add", "multiply", "maximum", "minimum"},
      {"add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor", "shift-left",
       "shift-right-logical", "shift-right-arithmetic", "power"},
      {"add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor", "shift-left",
       "shift-right-logical"},
      {"add", "subtract", "multiply", "maximum", "minimum"},
      {"add", "subtract"}};
  const Value w = mate(*v);
  std::string a = v->name, b = w.name;
  if (draw_.one_in(2)) std::swap(a, b);
  emit(*v->type, v->dims, draw_.of(kOps[static_cast<size_t>(v->type->kind)]) + "(" + a + ", " + b + ")");
}

void Writer::inexact_binary() {
  const auto v = pick([](const Value& x) { return x.exact && x.type->kind == Kind::Float; });
  if (!v) return;
  static const std::vector<std::string> kOps = {"divide", "atan2"};
  emit(*v->type, v->dims, draw_.of(kOps) + "(" + v->name + ", " + mate(*v).name + ")", false);
}

void Writer::compare() {
  const auto v = pick(is_plain);
  if (!v) return;
  static const std::vector<std::string> kDirections = {"EQ", "NE", "LT", "LE", "GT", "GE"};
  emit(type("pred"), v->dims, "compare(" + v->name + ", " + mate(*v).name + "), direction=" + draw_.of(kDirections));
}

void Writer::select() {
  const auto v = pick();
  if (!v) return;
  const Value w = mate(*v);
  const Value p = mate({"", &type("pred"), v->dims});
  emit(*v->type, v->dims, "select(" + p.name + ", " + v->name + ", " + w.name + ")", v->exact);
}

void Writer::clamp() {
  const auto v = pick([](const Value& x) { return is_plain(x) && x.type->kind != Kind::Pred; });
  if (!v) return;
  const Value low = constant(*v->type), high = constant(*v->type);
  emit(*v->type, v->dims, "clamp(" + low.name + ", " + v->name + ", " + high.name + ")");
}

void Writer::convert() {
  const auto v = pick(is_plain);
  if (!v) return;
  const TypeRow& to = kTypes[static_cast<size_t>(draw_.below(std::size(kTypes)))];
  emit(to, v->dims, "convert(" + v->name + ")");
}

void Writer::complex_parts() {
  const auto v = pick([](const Value& x) { return x.type->name == "f32" || x.type->name == "c64"; });
  if (!v) return;
  if (v->type->kind == Kind::Complex)
    emit(type("f32"), v->dims, (draw_.one_in(2) ? "real(" : "imag(") + v->name + ")", v->exact);
  else
    emit(type("c64"), v->dims, "complex(" + v->name + ", " + mate(*v).name + ")", v->exact);
}

// One of the last lines once more.
void Writer::again() {
  const auto v = pick();
  if (!v) return;
  const std::string head = "  " + v->name + " = ";
  const size_t at = text_.find(head);
  if (at == std::string::npos) return;
  const std::string line = text_.substr(at + head.size(), text_.find('\n', at) - at - head.size());
  if (line.find(" parameter(") != std::string::npos) return;
  Value copy = *v;
  copy.name = draw_.name("v");
  text_ += "  " + copy.name + " = " + line + "\n";
  pool_.push_back(copy);
}

void Writer::broadcast() {
  const auto v = pick([](const Value& x) { return x.rank() < 3; });
  if (!v) return;
  Sizes dims = v->dims, mapping;
  for (size_t i = 0; i < dims.size(); ++i) mapping.push_back(static_cast<int64_t>(i));
  const int64_t at = draw_.between(0, static_cast<int64_t>(dims.size()));
  dims.insert(dims.begin() + at, draw_.between(1, 3));
  for (int64_t& m : mapping) m += m >= at;
  if (v->count() * 3 <= kMostElements)
    emit(*v->type, dims, "broadcast(" + v->name + "), dimensions=" + list(mapping), v->exact);
}

void Writer::reshape() {
  const auto v = pick();
  if (!v) return;
  Sizes dims = v->dims;
  const int64_t how = draw_.below(3);
  if (how == 0 && dims.size() < 4) {
    dims.insert(dims.begin() + draw_.between(0, static_cast<int64_t>(dims.size())), 1);
  } else if (how == 1 && !dims.empty()) {
    const size_t at = static_cast<size_t>(draw_.below(static_cast<int64_t>(dims.size())));
    if (dims[at] % 2 == 0 && dims[at] > 0) {
      dims[at] /= 2;
      dims.insert(dims.begin() + static_cast<int64_t>(at), 2);
    }
  } else {
    dims = {v->count()};
  }
  if (dims.size() < 5) emit(*v->type, dims, "reshape(" + v->name + ")", v->exact);
}

void Writer::transpose() {
  const auto v = pick(is_ranked);
  if (!v) return;
  Sizes permutation, dims;
  for (size_t i = 0; i < v->rank(); ++i)
    permutation.insert(permutation.begin() + draw_.between(0, static_cast<int64_t>(i)), static_cast<int64_t>(i));
  for (int64_t p : permutation) dims.push_back(v->dims[static_cast<size_t>(p)]);
  emit(*v->type, dims, "transpose(" + v->name + "), dimensions=" + list(permutation), v->exact);
}

void Writer::slice() {
  const auto v = pick(is_ranked);
  if (!v) return;
  std::string ranges;
  Sizes dims;
  for (int64_t n : v->dims) {
    const int64_t low = draw_.one_in(2) ? 0 : draw_.between(0, n), high = draw_.one_in(2) ? n : draw_.between(low, n);
    const int64_t step = draw_.one_in(3) ? 2 : 1;
    dims.push_back((high - low + step - 1) / step);
    ranges += (ranges.empty() ? "[" : ", [") + std::to_string(low) + ":" + std::to_string(high) + ":" +
              std::to_string(step) + "]";
  }
  emit(*v->type, dims, "slice(" + v->name + "), slice={" + ranges + "}", v->exact);
}

void Writer::pad() {
  const auto v = pick(is_ranked);
  if (!v) return;
  std::string config;
  Sizes dims;
  for (int64_t n : v->dims) {
    const int64_t low = draw_.between(-1, 2), high = draw_.between(-1, 2), inside = draw_.one_in(3) ? 1 : 0;
    const int64_t size = low + n + std::max<int64_t>(n - 1, 0) * inside + high;
    if (size < 0) return;
    dims.push_back(size);
    config +=
        (config.empty() ? "" : "x") + std::to_string(low) + "_" + std::to_string(high) + "_" + std::to_string(inside);
  }
  const Value fill = constant(*v->type);
  emit(*v->type, dims, "pad(" + v->name + ", " + fill.name + "), padding=" + config, v->exact);
}

void Writer::concatenate() {
  const auto v = pick(is_ranked);
  if (!v || v->count() * 2 > kMostElements) return;
  const auto at = static_cast<size_t>(draw_.below(static_cast<int64_t>(v->rank())));
  Sizes dims = v->dims;
  dims[at] *= 2;
  emit(*v->type, dims, "concatenate(" + v->name + ", " + mate(*v).name + "), dimensions={" + std::to_string(at) + "}",
       v->exact);
}

void Writer::reverse() {
  const auto v = pick(is_ranked);
  if (!v) return;
  Sizes dims;
  for (size_t i = 0; i < v->rank(); ++i)
    if (draw_.one_in(2)) dims.push_back(static_cast<int64_t>(i));
  emit(*v->type, v->dims, "reverse(" + v->name + "), dimensions=" + list(dims), v->exact);
}

void Writer::dynamic_slice() {
  const auto v = pick(is_filled);
  if (!v) return;
  Sizes sizes;
  std::string starts;
  for (int64_t n : v->dims) {
    sizes.push_back(draw_.between(0, n));
    starts += ", " + index().name;
  }
  emit(*v->type, sizes, "dynamic-slice(" + v->name + starts + "), dynamic_slice_sizes=" + list(sizes), v->exact);
}

void Writer::dynamic_update_slice() {
  const auto v = pick(is_filled);
  if (!v) return;
  Sizes sizes;
  std::string starts;
  for (int64_t n : v->dims) {
    sizes.push_back(draw_.between(0, n));
    starts += ", " + index().name;
  }
  const Value update = mate({"", v->type, sizes});
  emit(*v->type, v->dims, "dynamic-update-slice(" + v->name + ", " + update.name + starts + ")", v->exact);
}

// Rows by number.
void Writer::gather() {
  const auto v = pick(is_filled);
  if (!v) return;
  const Value rows = mate({"", &type("s32"), {draw_.between(0, 3), 1}});
  Sizes dims = {rows.dims[0]}, sizes = {1}, offsets;
  for (size_t i = 1; i < v->rank(); ++i) {
    dims.push_back(v->dims[i]);
    sizes.push_back(v->dims[i]);
    offsets.push_back(static_cast<int64_t>(i));
  }
  emit(*v->type, dims,
       "gather(" + v->name + ", " + rows.name + "), offset_dims=" + list(offsets) +
           ", collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes=" + list(sizes),
       v->exact);
}

void Writer::scatter() {
  const auto v = pick([](const Value& x) { return is_filled(x) && is_plain(x); });
  if (!v) return;
  const Value rows = mate({"", &type("s32"), {draw_.between(0, 3), 1}});
  Sizes dims = {rows.dims[0]}, windows;
  for (size_t i = 1; i < v->rank(); ++i) {
    dims.push_back(v->dims[i]);
    windows.push_back(static_cast<int64_t>(i));
  }
  const Value updates = mate({"", v->type, dims});
  emit(*v->type, v->dims,
       "scatter(" + v->name + ", " + rows.name + ", " + updates.name + "), update_window_dims=" + list(windows) +
           ", inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=" +
           combiner("maximum", *v->type));
}

void Writer::iota() {
  static const std::vector<std::string> kNames = {"s32", "f32", "u8", "s64"};
  const Sizes dims = draw_.sizes();
  if (dims.empty()) return;
  const TypeRow& t = type(draw_.of(kNames));
  emit(t, dims, "iota(), iota_dimension=" + std::to_string(draw_.below(static_cast<int64_t>(dims.size()))));
}

void Writer::array_constant() {
  const TypeRow& t = kTypes[static_cast<size_t>(draw_.below(std::size(kTypes)))];
  const int64_t n = draw_.between(0, 4);
  std::string values;
  for (int64_t i = 0; i < n; ++i) values += (i ? ", " : "") + number(draw_, t);
  emit(t, {n}, "constant({" + values + "})");
}

std::string Writer::combiner(std::string_view op, const TypeRow& t) {
  const std::string name = draw_.name("combine"), scalar = shape(t, {});
  draw_.computations += name + " {\n  a = " + scalar + " parameter(0)\n  b = " + scalar +
                        " parameter(1)\n  ROOT c = " + scalar + " " + std::string(op) + "(a, b)\n}\n\n";
  return name;
}

void Writer::reduce() {
  const auto v = pick([](const Value& x) { return is_ranked(x) && is_plain(x); });
  if (!v) return;
  static const std::vector<std::string> kOps = {"add", "maximum", "minimum", "multiply"};
  const std::string op = is_narrow(*v) ? "maximum" : draw_.of(kOps);
  Sizes over, dims;
  for (size_t i = 0; i < v->rank(); ++i)
    if (draw_.one_in(2))
      over.push_back(static_cast<int64_t>(i));
    else
      dims.push_back(v->dims[i]);
  const Value init = constant(*v->type);
  const bool rounds = v->type->kind == Kind::Float && (op == "add" || op == "multiply");
  emit(*v->type, dims,
       "reduce(" + v->name + ", " + init.name + "), dimensions=" + list(over) + ", to_apply=" + combiner(op, *v->type),
       !rounds);
}

void Writer::reduce_window() {
  const auto v = pick([](const Value& x) { return is_filled(x) && is_plain(x); });
  if (!v) return;
  static const std::vector<std::string> kOps = {"add", "maximum", "minimum"};
  const std::string op = is_narrow(*v) ? "maximum" : draw_.of(kOps);
  std::string sizes, strides, pads;
  Sizes dims;
  for (int64_t n : v->dims) {
    const int64_t size = draw_.between(1, std::min<int64_t>(n, 3)), stride = draw_.between(1, 2);
    const int64_t low = draw_.below(2), high = draw_.below(2);
    dims.push_back((low + n + high - size) / stride + 1);
    const std::string x = sizes.empty() ? "" : "x";
    sizes += x + std::to_string(size);
    strides += x + std::to_string(stride);
    pads += x + std::to_string(low) + "_" + std::to_string(high);
  }
  const Value init = constant(*v->type);
  emit(*v->type, dims,
       "reduce-window(" + v->name + ", " + init.name + "), window={size=" + sizes + " stride=" + strides +
           " pad=" + pads + "}, to_apply=" + combiner(op, *v->type),
       v->type->kind != Kind::Float || op != "add");
}

void Writer::dot() {
  const auto v = pick(
      [](const Value& x) { return x.exact && x.rank() > 0 && x.type->kind != Kind::Pred && x.type->name != "c64"; });
  if (!v) return;
  const auto inner = static_cast<size_t>(draw_.below(static_cast<int64_t>(v->rank())));
  Sizes other = {v->dims[inner]};
  if (draw_.one_in(2)) other.push_back(draw_.between(1, 4));
  const bool batched = v->rank() == 3 && inner != 0 && draw_.one_in(2);
  Sizes dims;
  for (size_t i = 0; i < v->rank(); ++i)
    if (i != inner) dims.push_back(v->dims[i]);
  if (other.size() == 2) dims.push_back(other[1]);
  if (batched) other.insert(other.begin(), v->dims[0]);
  const Value w = mate({"", v->type, other});
  const std::string batch = batched ? "lhs_batch_dims={0}, rhs_batch_dims={0}, " : "";
  int64_t elements = 1;
  for (int64_t d : dims) elements *= d;
  if (elements > kMostElements) return;
  emit(*v->type, dims,
       "dot(" + v->name + ", " + w.name + "), " + batch + "lhs_contracting_dims={" + std::to_string(inner) +
           "}, rhs_contracting_dims={" + (batched ? "1" : "0") + "}",
       v->type->kind != Kind::Float);
}

void Writer::sort() {
  const auto v = pick([](const Value& x) { return is_ranked(x) && is_plain(x) && x.type->kind != Kind::Float; });
  if (!v) return;
  const std::string name = draw_.name("order"), scalar = shape(*v->type, {});
  draw_.computations += name + " {\n  a = " + scalar + " parameter(0)\n  b = " + scalar +
                        " parameter(1)\n  ROOT c = pred[] compare(a, b), direction=" + (draw_.one_in(2) ? "LT" : "GT") +
                        "\n}\n\n";
  emit(*v->type, v->dims,
       "sort(" + v->name + "), dimensions={" + std::to_string(draw_.below(static_cast<int64_t>(v->rank()))) +
           "}, to_apply=" + name);
}

std::string Writer::result_tuple(const std::vector<Value>& values, std::string_view name) {
  std::string shapes, names;
  for (const Value& v : values) {
    shapes += (shapes.empty() ? "" : ", ") + shape(v);
    names += (names.empty() ? "" : ", ") + v.name;
  }
  return std::string(name) + " = (" + shapes + ") tuple(" + names + ")\n";
}

void Writer::tuples() {
  const auto a = pick(), b = pick();
  const std::string name = draw_.name("t");
  text_ += "  " + result_tuple({*a, *b}, name);
  emit(*a->type, a->dims, "get-tuple-element(" + name + "), index=0", a->exact);
  if (draw_.one_in(2)) emit(*b->type, b->dims, "get-tuple-element(" + name + "), index=1", b->exact);
}

void Writer::barrier() {
  const auto v = pick();
  emit(*v->type, v->dims, "opt-barrier(" + v->name + ")", v->exact);
}

void Writer::map() {
  const auto v = pick(is_plain);
  if (!v || v->type->kind == Kind::Pred) return;
  Sizes dims;
  for (size_t i = 0; i < v->rank(); ++i) dims.push_back(static_cast<int64_t>(i));
  emit(*v->type, v->dims,
       "map(" + v->name + ", " + mate(*v).name + "), dimensions=" + list(dims) +
           ", to_apply=" + combiner("maximum", *v->type));
}

// What the computation takes is a tuple of the values; in the pool of `in` are its elements.
std::string open(Draw& draw, Writer& in, const std::vector<Value>& values) {
  std::string shapes;
  for (const Value& v : values) shapes += (shapes.empty() ? "" : ", ") + shape(v);
  const std::string parameter = draw.name("p");
  in.text() += "  " + parameter + " = (" + shapes + ") parameter(0)\n";
  for (size_t i = 0; i < values.size(); ++i)
    in.emit(*values[i].type, values[i].dims, "get-tuple-element(" + parameter + "), index=" + std::to_string(i),
            values[i].exact);
  return "(" + shapes + ")";
}

void Writer::loop() {
  std::vector<Value> state = {emit(type("s32"), {}, "constant(" + std::to_string(draw_.between(-1, 1)) + ")")};
  for (int64_t n = draw_.between(1, 4); n > 0; --n)
    if (const auto v = pick(is_exact)) state.push_back(*v);
  Writer condition(draw_, false), body(draw_, false);
  const std::string shapes = open(draw_, condition, state);
  const Value limit = condition.emit(type("s32"), {}, "constant(" + std::to_string(draw_.between(-1, 7)) + ")");
  condition.text() +=
      "  ROOT go = pred[] compare(" + condition.pool()[0].name + ", " + limit.name + "), direction=LT\n";
  open(draw_, body, state);
  std::vector<Value> next(body.pool().begin(), body.pool().end());
  const Value one = body.emit(type("s32"), {}, "constant(1)");
  next[0] = body.emit(type("s32"), {}, "add(" + body.pool()[0].name + ", " + one.name + ")");
  body.grow(6);
  for (size_t i = 1; i < next.size(); ++i)
    if (!draw_.one_in(3)) {
      std::vector<Value> fit;
      for (const Value& v : body.pool())
        if (v.exact && v.like(next[i])) fit.push_back(v);
      next[i] = draw_.of(fit);
    }
  const std::string names[] = {draw_.name("condition"), draw_.name("body"), draw_.name("w")};
  draw_.computations += names[0] + " {\n" + condition.text() + "}\n\n" + names[1] + " {\n" + body.text() + "  ROOT " +
                        result_tuple(next, "r") + "}\n\n";
  const std::string init = draw_.name("t");
  text_ += "  " + result_tuple(state, init);
  text_ +=
      "  " + names[2] + " = " + shapes + " while(" + init + "), condition=" + names[0] + ", body=" + names[1] + "\n";
  for (size_t i = 0; i < state.size(); ++i)
    if (!draw_.one_in(3))
      emit(*state[i].type, state[i].dims, "get-tuple-element(" + names[2] + "), index=" + std::to_string(i));
}

void Writer::conditional() {
  const bool binary = draw_.one_in(2);
  const Value which = binary ? mate({"", &type("pred"), {}}) : index();
  const int64_t branches = binary ? 2 : draw_.between(1, 3);
  std::vector<Value> results;
  std::string operands, joined, shapes;
  std::vector<std::string> names;
  for (int64_t branch = 0; branch < branches; ++branch) {
    std::vector<Value> in;
    for (int64_t n = draw_.between(1, 3); n > 0; --n) in.push_back(*pick());
    Writer writer(draw_, false);
    open(draw_, writer, in);
    writer.grow(4);
    if (branch == 0)
      for (int64_t n = draw_.between(1, 2); n > 0; --n) results.push_back(*writer.pick());
    std::vector<Value> out;
    for (Value& result : results) {
      std::optional<Value> found;
      for (const Value& v : writer.pool())
        if (v.like(result)) found = v;
      out.push_back(found ? *found : writer.splat(*result.type, result.dims));
      result.exact = result.exact && out.back().exact;
    }
    const std::string name = draw_.name("branch"), tuple = draw_.name("t");
    draw_.computations += name + " {\n" + writer.text() + "  ROOT " + result_tuple(out, "r") + "}\n\n";
    text_ += "  " + result_tuple(in, tuple);
    operands += ", " + tuple;
    names.push_back(name);
    joined += (joined.empty() ? "" : ", ") + name;
  }
  for (const Value& v : results) shapes += (shapes.empty() ? "" : ", ") + shape(v);
  const std::string name = draw_.name("c");
  text_ += "  " + name + " = (" + shapes + ") conditional(" + which.name + operands + "), " +
           (binary ? "true_computation=" + names[0] + ", false_computation=" + names[1]
                   : "branch_computations={" + joined + "}") +
           "\n";
  for (size_t i = 0; i < results.size(); ++i)
    emit(*results[i].type, results[i].dims, "get-tuple-element(" + name + "), index=" + std::to_string(i),
         results[i].exact);
}

void Writer::call() {
  std::vector<Value> in;
  std::string operands;
  Writer writer(draw_, false);
  for (int64_t n = draw_.between(1, 3), i = 0; i < n; ++i) {
    in.push_back(*pick());
    operands += (operands.empty() ? "" : ", ") + in.back().name;
    writer.emit(*in.back().type, in.back().dims, "parameter(" + std::to_string(i) + ")", in.back().exact);
  }
  writer.grow(4);
  // Everything is a result, for nothing in a fusion may be without users.
  const std::vector<Value> out = writer.pool();
  std::string shapes;
  for (const Value& v : out) shapes += (shapes.empty() ? "" : ", ") + shape(v);
  const std::string name = draw_.name("callee"), result = draw_.name("f");
  draw_.computations += name + " {\n" + writer.text() + "  ROOT " + result_tuple(out, "r") + "}\n\n";
  text_ += "  " + result + " = (" + shapes + ") " +
           (draw_.one_in(2) ? "call(" + operands + "), to_apply=" : "fusion(" + operands + "), kind=kLoop, calls=") +
           name + "\n";
  for (size_t i = 0; i < out.size(); ++i)
    if (draw_.one_in(2))
      emit(*out[i].type, out[i].dims, "get-tuple-element(" + result + "), index=" + std::to_string(i), out[i].exact);
}

const std::vector<Writer::Step> Writer::kSteps = {&Writer::unary,
                                                  &Writer::unary,
                                                  &Writer::inexact_unary,
                                                  &Writer::binary,
                                                  &Writer::binary,
                                                  &Writer::binary,
                                                  &Writer::inexact_binary,
                                                  &Writer::compare,
                                                  &Writer::select,
                                                  &Writer::clamp,
                                                  &Writer::convert,
                                                  &Writer::convert,
                                                  &Writer::complex_parts,
                                                  &Writer::again,
                                                  &Writer::broadcast,
                                                  &Writer::broadcast,
                                                  &Writer::reshape,
                                                  &Writer::reshape,
                                                  &Writer::transpose,
                                                  &Writer::transpose,
                                                  &Writer::slice,
                                                  &Writer::pad,
                                                  &Writer::concatenate,
                                                  &Writer::reverse,
                                                  &Writer::dynamic_slice,
                                                  &Writer::dynamic_update_slice,
                                                  &Writer::gather,
                                                  &Writer::scatter,
                                                  &Writer::iota,
                                                  &Writer::array_constant,
                                                  &Writer::reduce,
                                                  &Writer::reduce_window,
                                                  &Writer::dot,
                                                  &Writer::sort,
                                                  &Writer::tuples,
                                                  &Writer::barrier,
                                                  &Writer::map};
const std::vector<Writer::Step> Writer::kFlow = {&Writer::loop, &Writer::conditional, &Writer::call};

void Writer::grow(int steps) {
  for (int i = 0; i < steps; ++i) (this->*draw_.of(control_flow_ && draw_.one_in(8) ? kFlow : kSteps))();
}

}  // namespace

std::string random_module(uint64_t seed, const RandomModule& options) {
  Draw draw{mix(seed), 0, {}, options.sizes};
  Writer entry(draw, options.control_flow);
  const int64_t parameters = draw.between(1, 4);
  for (int64_t i = 0; i < parameters; ++i)
    entry.emit(kTypes[static_cast<size_t>(draw.one_in(2) ? draw.below(2) : draw.below(std::size(kTypes)))],
               draw.sizes(), "parameter(" + std::to_string(i) + ")");
  entry.grow(options.steps);
  std::string shapes, names;
  for (size_t i = 0; i < entry.pool().size(); ++i) {
    const Value& v = entry.pool()[i];
    if (i + 4 < entry.pool().size() && !draw.one_in(6)) continue;
    shapes += (shapes.empty() ? "" : ", ") + shape(v);
    names += (names.empty() ? "" : ", ") + v.name;
  }
  return "HloModule random_" + std::to_string(seed) + "\n\n" + draw.computations + "ENTRY entry {\n" + entry.text() +
         "  ROOT result = (" + shapes + ") tuple(" + names + ")\n}\n";
}

}  // namespace collet::hlo::testing
