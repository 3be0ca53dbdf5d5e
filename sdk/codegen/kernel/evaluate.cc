// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/kernel_evaluate.h>

#include <collet/codegen/kernel_text.h>
#include <collet/codegen/kernel_verify.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include "sdk/codegen/kernel/elementwise.h"
#include "sdk/codegen/kernel/scalar.h"

namespace collet::codegen {
namespace {

using Elements = std::vector<Element>;

bool is_inexact(uint32_t type) {
  const uint32_t kind = collet_type_kind(type);
  return kind == COLLET_KIND_FLOAT || kind == COLLET_KIND_COMPLEX;
}

/// Values of the expressions of a kernel or body, and the final values of its kWhile expressions.
struct Scope {
  explicit Scope(const std::vector<Expr>& all) : exprs(all), values(all.size()) {}

  const std::vector<Expr>& exprs;
  Elements values;
  std::map<size_t, Elements> whiles;
  const Elements* arguments = nullptr;
  const std::vector<int64_t>* point = nullptr;
};

class Evaluator {
 public:
  Evaluator(const Kernel& kernel, std::span<const std::span<std::byte>> buffers, const EvaluateOptions& options)
      : k_(kernel), buffers_(buffers), options_(options), scope_(kernel.exprs), point_(kernel.loops.size(), 0) {
    scope_.point = &point_;
    reduced_.resize(k_.reductions.size());
  }

  Status run();

 private:
  /// A set of expressions: true for those that it contains, by their numbers.
  using Cone = std::vector<bool>;
  /// The accumulator of a known combination. It holds floats with more bits than their type, so that the result is
  /// rounded once.
  struct Accumulator {
    std::complex<long double> wide;
    Element exact{};
  };

  // Returns `wanted` and all expressions on which they depend. Results of reductions have been computed already, so
  // their operands are not included.
  Cone cone_of(const std::vector<ExprId>& wanted) const;
  static void add_index(const Index& index, std::vector<ExprId>& wanted);
  std::vector<ExprId> wanted_by(const Reduction& r) const;
  void order_reductions();
  bool is_inner(const Store& s) const;

  /// Calls `visit` at every point of loops [first, last), in order.
  Status each_point(size_t first, size_t last, const std::function<Status()>& visit);
  Status outer_point();
  Status store_all(bool inner, const Cone& cone);
  Status reduce(size_t r);
  Status scan();
  Status scan_step(const Scan& s, std::vector<Accumulator>& held, bool& begun, Elements& results);

  Status compute(const Cone& cone);
  Status compute(Scope& scope, size_t k);
  Status while_loop(Scope& scope, size_t k);
  Status body(const ScalarBody& b, const Elements& arguments, Elements& results);
  static int64_t place(const Scope& scope, const Index& index);
  static bool holds(const Scope& scope, ExprId mask) {
    return mask == kNoExpr || scope.values[static_cast<size_t>(mask)][0] != 0;
  }
  static Element read(std::span<const std::byte> bytes, uint32_t type, int64_t at);
  /// Checks that an access is inside its buffer. `what` is called for the error message only, and describes the access.
  template <typename What>
  Status check_place(uint32_t buffer, uint32_t type, int64_t at, const What& what) const;
  Status store(const Store& s);
  Status update(const Update& u);
  static Element combine(uint32_t combine, uint32_t type, const Element& x, const Element& y);

  static Accumulator identity(uint32_t combine, uint32_t type);
  static void accumulate(uint32_t combine, uint32_t type, Accumulator& held, const Element& x);
  static Element result(uint32_t combine, uint32_t type, const Accumulator& held);
  static bool is_wide(uint32_t combine, uint32_t type) {
    return is_inexact(type) && combine >= COLLET_COMBINE_ADD && combine <= COLLET_COMBINE_MAXIMUM;
  }

  std::string where() const;

  const Kernel& k_;
  std::span<const std::span<std::byte>> buffers_;
  EvaluateOptions options_;
  Scope scope_;
  std::vector<int64_t> point_;
  std::vector<uint64_t> deps_;
  uint64_t inner_ = 0;
  std::vector<size_t> order_;  ///< order in which the reductions are computed
  std::vector<Cone> reduction_cones_;
  std::vector<Elements> reduced_;
  Elements scanned_;
  Cone inner_cone_;
  Cone outer_cone_;
};

std::string Evaluator::where() const {
  std::string out = " at (";
  for (size_t l = 0; l < point_.size(); ++l) {
    out += (l == 0 ? "i" : ", i") + std::to_string(l) + "=" + std::to_string(point_[l]);
  }
  return out + ")";
}

void Evaluator::add_index(const Index& index, std::vector<ExprId>& wanted) {
  for (auto [id, c] : index.terms) wanted.push_back(id);
}

Evaluator::Cone Evaluator::cone_of(const std::vector<ExprId>& wanted) const {
  Cone cone(k_.exprs.size(), false);
  for (ExprId id : wanted) {
    if (id != kNoExpr) cone[static_cast<size_t>(id)] = true;
  }
  for (size_t k = k_.exprs.size(); k-- > 0;) {
    if (!cone[k]) continue;
    const Expr& e = k_.exprs[k];
    std::vector<ExprId> used = e.args;
    used.push_back(e.mask);
    add_index(e.index, used);
    for (ExprId id : used) {
      if (id != kNoExpr) cone[static_cast<size_t>(id)] = true;
    }
  }
  return cone;
}

std::vector<ExprId> Evaluator::wanted_by(const Reduction& r) const {
  std::vector<ExprId> wanted = r.inputs;
  wanted.insert(wanted.end(), r.inits.begin(), r.inits.end());
  wanted.push_back(r.condition);
  return wanted;
}

void Evaluator::order_reductions() {
  for (const Reduction& r : k_.reductions) reduction_cones_.push_back(cone_of(wanted_by(r)));
  std::vector<bool> done(k_.reductions.size(), false);
  while (order_.size() < k_.reductions.size()) {
    for (size_t r = 0; r < k_.reductions.size(); ++r) {
      if (done[r]) continue;
      bool ready = true;
      for (size_t k = 0; k < k_.exprs.size(); ++k) {
        const Expr& e = k_.exprs[k];
        if (reduction_cones_[r][k] && e.op == ExprOp::kReduced) ready = ready && done[static_cast<size_t>(e.b)];
      }
      if (!ready) continue;
      done[r] = true;
      order_.push_back(r);
    }
  }
}

bool Evaluator::is_inner(const Store& s) const {
  std::vector<ExprId> used{s.value, s.mask};
  add_index(s.index, used);
  uint64_t loops = 0;
  for (ExprId id : used) loops |= id == kNoExpr ? 0 : deps_[static_cast<size_t>(id)];
  for (size_t l = 0; l < s.index.coefficients.size(); ++l) {
    if (s.index.coefficients[l] != 0) loops |= uint64_t{1} << l;
  }
  return (loops & inner_) != 0;
}

Status Evaluator::each_point(size_t first, size_t last, const std::function<Status()>& visit) {
  if (first == last) return visit();
  for (int64_t i = 0; i < k_.loops[first].size; ++i) {
    point_[first] = i;
    COLLET_CODEGEN_TRY(each_point(first + 1, last, visit));
  }
  point_[first] = 0;
  return {};
}

Status Evaluator::run() {
  COLLET_CODEGEN_TRY(verify_kernel(k_));
  if (buffers_.size() != k_.buffers) {
    return {COLLET_INVALID_ARGUMENT,
            "the kernel has " + std::to_string(k_.buffers) + " buffers, not " + std::to_string(buffers_.size())};
  }
  deps_ = loop_dependencies(k_);
  for (size_t l = k_.outer; l < k_.loops.size(); ++l) inner_ |= uint64_t{1} << l;
  order_reductions();
  std::vector<ExprId> inner;
  std::vector<ExprId> outer;
  for (const Store& s : k_.stores) {
    auto& wanted = is_inner(s) ? inner : outer;
    wanted.push_back(s.value);
    wanted.push_back(s.mask);
    add_index(s.index, wanted);
  }
  for (const Update& u : k_.updates) {
    outer.insert(outer.end(), u.values.begin(), u.values.end());
    outer.push_back(u.mask);
    add_index(u.index, outer);
  }
  inner_cone_ = cone_of(inner);
  outer_cone_ = cone_of(outer);
  return each_point(0, k_.outer, [this] { return outer_point(); });
}

Status Evaluator::outer_point() {
  if (k_.scan) return scan();
  for (size_t r : order_) COLLET_CODEGEN_TRY(reduce(r));
  COLLET_CODEGEN_TRY(each_point(k_.outer, k_.loops.size(), [this] { return store_all(true, inner_cone_); }));
  COLLET_CODEGEN_TRY(store_all(false, outer_cone_));
  for (const Update& u : k_.updates) COLLET_CODEGEN_TRY(update(u));
  return {};
}

Status Evaluator::store_all(bool inner, const Cone& cone) {
  COLLET_CODEGEN_TRY(compute(cone));
  for (const Store& s : k_.stores) {
    if (is_inner(s) == inner) COLLET_CODEGEN_TRY(store(s));
  }
  return {};
}

Evaluator::Accumulator Evaluator::identity(uint32_t combine, uint32_t type) {
  constexpr long double kInfinity = std::numeric_limits<long double>::infinity();
  Accumulator a;
  switch (combine) {
    case COLLET_COMBINE_ADD:  // adding -0 keeps the sign of a zero
      a.wide = {-0.0L, -0.0L};
      break;
    case COLLET_COMBINE_MULTIPLY:
      a.wide = 1;
      a.exact = element_of_integer(type, 1);
      break;
    case COLLET_COMBINE_MINIMUM:
      a.wide = kInfinity;
      a.exact = type == COLLET_TYPE_PRED ? Element{1, 0} : element_of_real(type, kInfinity);
      break;
    case COLLET_COMBINE_MAXIMUM:
      a.wide = -kInfinity;
      a.exact = type == COLLET_TYPE_PRED ? Element{} : element_of_real(type, -kInfinity);
      break;
    case COLLET_COMBINE_AND:
      a.exact = element_of_integer(type, ~uint64_t{0});
      break;
    default:
      break;
  }
  return a;
}

void Evaluator::accumulate(uint32_t how, uint32_t type, Accumulator& held, const Element& x) {
  if (!is_wide(how, type)) {
    held.exact = combine(how, type, held.exact, x);
    return;
  }
  const std::complex<long double> y = complex_of_element(type, x);
  if (collet_type_kind(type) == COLLET_KIND_COMPLEX) {
    held.wide = how == COLLET_COMBINE_ADD ? held.wide + y : held.wide * y;
    return;
  }
  const long double p = held.wide.real();
  const long double q = y.real();
  switch (how) {
    case COLLET_COMBINE_ADD:
      held.wide = p + q;
      break;
    case COLLET_COMBINE_MULTIPLY:
      held.wide = p * q;
      break;
    case COLLET_COMBINE_MINIMUM:
      held.wide = ieee_minimum(p, q);
      break;
    default:
      held.wide = ieee_maximum(p, q);
      break;
  }
}

Element Evaluator::result(uint32_t how, uint32_t type, const Accumulator& held) {
  return is_wide(how, type) ? element_of_complex(type, held.wide) : held.exact;
}

Element Evaluator::combine(uint32_t how, uint32_t type, const Element& x, const Element& y) {
  if (how == COLLET_COMBINE_FIRST) return x;
  if (how == COLLET_COMBINE_SECOND) return y;
  const uint32_t types[] = {type, type};
  const Element args[] = {x, y};
  Element out{};
  evaluate_element({combine_opcode(how), type, types, args}, out);
  return out;
}

Status Evaluator::reduce(size_t at) {
  const Reduction& r = k_.reductions[at];
  const size_t n = r.types.size();
  // Initial values do not depend on the inner loops, and are the same at each of their points.
  COLLET_CODEGEN_TRY(compute(cone_of(r.inits)));
  const auto value = [this](ExprId id) { return scope_.values[static_cast<size_t>(id)]; };
  Elements held;
  Elements initial;
  std::vector<Accumulator> known;
  for (size_t i = 0; i < n; ++i) {
    initial.push_back(r.inits[i] == kNoExpr ? Element{} : value(r.inits[i]));
    known.push_back(identity(r.combine, r.types[i]));
  }
  held = initial;
  const auto reduce_point = [&]() -> Status {
    COLLET_CODEGEN_TRY(compute(reduction_cones_[at]));
    if (!holds(scope_, r.condition)) return {};
    if (r.combine != COLLET_COMBINE_OTHER) {
      accumulate(r.combine, r.types[0], known[0], value(r.inputs[0]));
      return {};
    }
    Elements arguments = held;
    for (ExprId id : r.inputs) arguments.push_back(value(id));
    return body(r.body, arguments, held);
  };
  COLLET_CODEGEN_TRY(each_point(k_.outer, k_.loops.size(), reduce_point));
  if (r.combine != COLLET_COMBINE_OTHER) {
    if (r.inits[0] != kNoExpr) accumulate(r.combine, r.types[0], known[0], initial[0]);
    held = {result(r.combine, r.types[0], known[0])};
  }
  reduced_[at] = std::move(held);
  return {};
}

Status Evaluator::scan_step(const Scan& s, std::vector<Accumulator>& held, bool& begun, Elements& results) {
  const Reduction& r = s.reduction;
  const size_t n = r.types.size();
  const bool counts = holds(scope_, r.condition);
  if (r.combine != COLLET_COMBINE_OTHER) {
    if (counts) accumulate(r.combine, r.types[0], held[0], scope_.values[static_cast<size_t>(r.inputs[0])]);
    results = {result(r.combine, r.types[0], held[0])};
    return {};
  }
  const auto combined = [&](const Elements& x, const Elements& y, Elements& out) {
    Elements arguments = x;
    arguments.insert(arguments.end(), y.begin(), y.end());
    return body(r.body, arguments, out);
  };
  Elements before;
  Elements input;
  for (size_t i = 0; i < n; ++i) {
    before.push_back(held[i].exact);
    input.push_back(scope_.values[static_cast<size_t>(r.inputs[i])]);
  }
  Elements next = before;
  if (counts && s.fresh && !begun) {
    next = input;
  } else if (counts) {
    COLLET_CODEGEN_TRY(s.reverse ? combined(input, before, next) : combined(before, input, next));
  }
  begun = begun || counts;
  for (size_t i = 0; i < n; ++i) held[i].exact = next[i];
  results = next;
  if (!s.fresh) return {};
  Elements initial;
  for (ExprId id : r.inits) initial.push_back(scope_.values[static_cast<size_t>(id)]);
  results = initial;
  return begun ? combined(initial, next, results) : Status();
}

Status Evaluator::scan() {
  const Scan& s = *k_.scan;
  const Reduction& r = s.reduction;
  COLLET_CODEGEN_TRY(compute(cone_of(r.inits)));
  std::vector<Accumulator> held;
  for (size_t i = 0; i < r.types.size(); ++i) {
    held.push_back(identity(r.combine, r.types[i]));
    if (r.inits[i] == kNoExpr) continue;
    const Element initial = scope_.values[static_cast<size_t>(r.inits[i])];
    held[i].exact = initial;
    if (is_wide(r.combine, r.types[i])) held[i].wide = complex_of_element(r.types[i], initial);
  }
  const Cone cone = cone_of(wanted_by(r));
  const int64_t size = k_.loops[k_.outer].size;
  bool begun = false;
  for (int64_t i = 0; i < size; ++i) {
    point_[k_.outer] = s.reverse ? size - 1 - i : i;
    COLLET_CODEGEN_TRY(compute(cone));
    COLLET_CODEGEN_TRY(scan_step(s, held, begun, scanned_));
    COLLET_CODEGEN_TRY(store_all(true, inner_cone_));
  }
  point_[k_.outer] = 0;
  return {};
}

Status Evaluator::compute(const Cone& cone) {
  for (size_t k = 0; k < cone.size(); ++k) {
    if (cone[k]) COLLET_CODEGEN_TRY(compute(scope_, k));
  }
  return {};
}

int64_t Evaluator::place(const Scope& scope, const Index& index) {
  // The sum wraps around as in the generated code; the caller then finds that the index is out of range.
  auto sum = static_cast<uint64_t>(index.constant);
  for (size_t l = 0; l < index.coefficients.size(); ++l) {
    sum += static_cast<uint64_t>(index.coefficients[l]) * static_cast<uint64_t>((*scope.point)[l]);
  }
  for (auto [id, c] : index.terms) sum += static_cast<uint64_t>(c) * scope.values[static_cast<size_t>(id)][0];
  return static_cast<int64_t>(sum);
}

Element Evaluator::read(std::span<const std::byte> bytes, uint32_t type, int64_t at) {
  Element x{};
  const size_t size = collet_type_bytes(type);
  std::memcpy(x.data(), bytes.data() + static_cast<size_t>(at) * size, size);
  if (type == COLLET_TYPE_PRED) x[0] = x[0] != 0 ? 1 : 0;
  return x;
}

template <typename What>
Status Evaluator::check_place(uint32_t buffer, uint32_t type, int64_t at, const What& what) const {
  const auto count = static_cast<int64_t>(buffers_[buffer].size() / collet_type_bytes(type));
  if (at >= 0 && at < count) return {};
  return {COLLET_OUT_OF_RANGE, what() + where() + ": element " + std::to_string(at) + " of b" + std::to_string(buffer) +
                                   ", which has " + std::to_string(count)};
}

Status Evaluator::compute(Scope& scope, size_t k) {
  const Expr& e = scope.exprs[k];
  Element& out = scope.values[k];
  const auto integer = [](int64_t x) { return Element{static_cast<uint64_t>(x), 0}; };
  const auto quotient = [&e, &scope] {
    const int64_t x = place(scope, e.index);
    const int64_t q = x / e.a;
    return x % e.a < 0 ? q - 1 : q;
  };
  switch (e.op) {
    case ExprOp::kConstant:
      out = e.bits;
      return {};
    case ExprOp::kLoad: {
      out = {};
      if (!holds(scope, e.mask)) return {};
      const int64_t at = place(scope, e.index);
      COLLET_CODEGEN_TRY(check_place(e.buffer, e.type, at, [&] { return print_expr(k_, static_cast<ExprId>(k)); }));
      out = read(buffers_[e.buffer], e.type, at);
      return {};
    }
    case ExprOp::kIndex:
      out = integer(place(scope, e.index));
      return {};
    case ExprOp::kDivide:
      out = integer(quotient());
      return {};
    case ExprOp::kModulo:
      out = integer(place(scope, e.index) - e.a * quotient());
      return {};
    case ExprOp::kStart: {
      const uint32_t type = scope.exprs[static_cast<size_t>(e.args[0])].type;
      const int64_t x = integer_of_element(type, scope.values[static_cast<size_t>(e.args[0])]);
      const bool is_signed = collet_type_kind(type) == COLLET_KIND_SIGNED;
      out = integer(!is_signed && x < 0 ? e.a : std::clamp<int64_t>(x, 0, e.a));
      return {};
    }
    case ExprOp::kInRange: {
      const int64_t x = place(scope, e.index);
      out = {x >= 0 && x < e.a ? uint64_t{1} : 0, 0};
      return {};
    }
    case ExprOp::kOp: {
      std::vector<uint32_t> types;
      Elements args;
      for (ExprId a : e.args) {
        types.push_back(scope.exprs[static_cast<size_t>(a)].type);
        args.push_back(scope.values[static_cast<size_t>(a)]);
      }
      if (evaluate_element({e.opcode, e.type, types, args, e.a, e.b}, out)) return {};
      return {COLLET_UNIMPLEMENTED, std::string("nothing evaluates ") + collet_op_name(e.opcode)};
    }
    case ExprOp::kArgument:
      out = (*scope.arguments)[static_cast<size_t>(e.a)];
      return {};
    case ExprOp::kLookup: {
      out = {};
      if (!holds(scope, e.mask)) return {};
      const int64_t at = place(scope, e.index);
      const auto count = static_cast<int64_t>(e.table.size() / collet_type_bytes(e.type));
      if (at < 0 || at >= count) {
        return {COLLET_OUT_OF_RANGE, "%" + std::to_string(k) + where() + ": element " + std::to_string(at) +
                                         " of a table of " + std::to_string(count)};
      }
      out = read(std::as_bytes(std::span(e.table)), e.type, at);
      return {};
    }
    case ExprOp::kWhile:
      return while_loop(scope, k);
    case ExprOp::kPart:
      out = scope.whiles[static_cast<size_t>(e.args[0])][static_cast<size_t>(e.a)];
      return {};
    case ExprOp::kReduced:
      out = reduced_[static_cast<size_t>(e.b)][static_cast<size_t>(e.a)];
      return {};
    case ExprOp::kScanned:
      out = scanned_[static_cast<size_t>(e.a)];
      return {};
  }
  return {};
}

Status Evaluator::while_loop(Scope& scope, size_t k) {
  const Expr& e = scope.exprs[k];
  Elements state;
  for (ExprId a : e.args) state.push_back(scope.values[static_cast<size_t>(a)]);
  const auto first = [&state](size_t n) { return Elements(state.begin(), state.begin() + static_cast<int64_t>(n)); };
  if (holds(scope, e.mask)) {
    for (int64_t iteration = 0;; ++iteration) {
      Elements go;
      COLLET_CODEGEN_TRY(body(e.bodies[0], first(e.bodies[0].arguments), go));
      if (go[0][0] == 0) break;
      if (iteration == options_.most_iterations) {
        return {COLLET_OUT_OF_RANGE, "%" + std::to_string(k) + where() + ": more than " +
                                         std::to_string(options_.most_iterations) + " iterations"};
      }
      Elements next;
      COLLET_CODEGEN_TRY(body(e.bodies[1], first(e.bodies[1].arguments), next));
      std::copy(next.begin(), next.end(), state.begin());
    }
  }
  scope.whiles[k] = std::move(state);
  return {};
}

Status Evaluator::body(const ScalarBody& b, const Elements& arguments, Elements& results) {
  Scope scope(b.exprs);
  scope.arguments = &arguments;
  for (size_t k = 0; k < b.exprs.size(); ++k) COLLET_CODEGEN_TRY(compute(scope, k));
  results.clear();
  for (ExprId id : b.results) results.push_back(scope.values[static_cast<size_t>(id)]);
  return {};
}

Status Evaluator::store(const Store& s) {
  if (!holds(scope_, s.mask)) return {};
  const uint32_t type = k_.exprs[static_cast<size_t>(s.value)].type;
  const int64_t at = place(scope_, s.index);
  COLLET_CODEGEN_TRY(check_place(s.buffer, type, at, [&] { return "store of %" + std::to_string(s.value); }));
  const size_t size = collet_type_bytes(type);
  std::memcpy(buffers_[s.buffer].data() + static_cast<size_t>(at) * size,
              scope_.values[static_cast<size_t>(s.value)].data(), size);
  return {};
}

Status Evaluator::update(const Update& u) {
  if (!holds(scope_, u.mask)) return {};
  const int64_t at = place(scope_, u.index);
  Elements arguments;
  for (size_t i = 0; i < u.buffers.size(); ++i) {
    COLLET_CODEGEN_TRY(check_place(u.buffers[i], u.types[i], at, [&] { return "update"; }));
    arguments.push_back(read(buffers_[u.buffers[i]], u.types[i], at));
  }
  for (ExprId id : u.values) arguments.push_back(scope_.values[static_cast<size_t>(id)]);
  Elements results;
  if (u.combine == COLLET_COMBINE_OTHER) {
    COLLET_CODEGEN_TRY(body(u.body, arguments, results));
  } else {
    results = {combine(u.combine, u.types[0], arguments[0], arguments[1])};
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const size_t size = collet_type_bytes(u.types[i]);
    std::memcpy(buffers_[u.buffers[i]].data() + static_cast<size_t>(at) * size, results[i].data(), size);
  }
  return {};
}

}  // namespace

Status evaluate_kernel(const Kernel& kernel, std::span<const std::span<std::byte>> buffers,
                       const EvaluateOptions& options) {
  return Evaluator(kernel, buffers, options).run();
}

}  // namespace collet::codegen
