// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/kernel_verify.h>

#include <collet/codegen/kernel_text.h>

#include <algorithm>
#include <string>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/kernel/elementwise.h"
#include "sdk/codegen/kernel/legality.h"
#include "sdk/codegen/kernel/literal.h"
#include "sdk/codegen/kernel/names.h"
#include "sdk/codegen/kernel/passes.h"

namespace collet::codegen {
namespace {

constexpr size_t kMostLoops = 64;
constexpr int kMostLanes = 4096;

using Types = std::vector<uint32_t>;

std::string type_name(uint32_t type) {
  return collet_type_name(type);
}

bool is_integer(uint32_t type) {
  const uint32_t kind = collet_type_kind(type);
  return kind == COLLET_KIND_SIGNED || kind == COLLET_KIND_UNSIGNED;
}

bool is_float(uint32_t type) {
  return collet_type_kind(type) == COLLET_KIND_FLOAT;
}

bool is_complex(uint32_t type) {
  return collet_type_kind(type) == COLLET_KIND_COMPLEX;
}

/// Checks the types of an elementwise op; returns an empty string if they are right.
std::string check_op_types(const Expr& e, const Types& types) {
  const uint32_t x = types[0];
  const auto all = [&](size_t from) {
    return std::all_of(types.begin() + static_cast<int64_t>(from), types.end(),
                       [&](uint32_t t) { return t == types[from]; });
  };
  const auto gives = [&](uint32_t t) {
    return e.type == t ? "" : "its result is " + type_name(t) + ", not " + type_name(e.type);
  };
  switch (e.opcode) {
    case COLLET_OP_CONVERT:
      return "";
    case COLLET_OP_BITCAST_CONVERT:
      return collet_type_bytes(x) == collet_type_bytes(e.type) ? "" : "its types have different sizes";
    case COLLET_OP_STOCHASTIC_CONVERT:
      if (collet_type_kind(types[1]) != COLLET_KIND_UNSIGNED) return "its random bits are no unsigned integers";
      return is_integer(e.type) || is_float(e.type) ? "" : "its result is neither integer nor float";
    case COLLET_OP_SELECT:
      return !all(1) ? "its two values have different types" : gives(types[1]);
    case COLLET_OP_COMPARE:
      if (!all(0)) return "its operands have different types";
      if (is_complex(x) && e.a != COLLET_DIRECTION_EQ && e.a != COLLET_DIRECTION_NE)
        return "complex numbers have no order";
      return gives(COLLET_TYPE_PRED);
    case COLLET_OP_IS_FINITE:
      return gives(COLLET_TYPE_PRED);
    case COLLET_OP_COMPLEX:
      if (!all(0) || (x != COLLET_TYPE_F32 && x != COLLET_TYPE_F64)) return "its operands are not both f32 or f64";
      return gives(x == COLLET_TYPE_F32 ? COLLET_TYPE_C64 : COLLET_TYPE_C128);
    case COLLET_OP_ABS:
    case COLLET_OP_REAL:
    case COLLET_OP_IMAG:
      return gives(half_type(x));
    default:
      return !all(0) ? "its operands have different types" : gives(x);
  }
}

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : k_(kernel) {}

  Status run() {
    if (!loops() || !kernel_exprs() || !reductions() || !levels() || !stores() || !scan() || !lanes() || !schedule()) {
      return {COLLET_INVALID_ARGUMENT, "kernel: " + error_};
    }
    return {};
  }

 private:
  bool loops();
  bool kernel_exprs();
  bool reductions();
  bool stores();
  bool levels();
  bool scan();
  bool lanes();
  bool schedule();
  bool kinds_of_loops();
  bool interleaves(size_t loop);

  // Checks that kernels and bodies share. `exprs` are the expressions of one of them.
  bool expr(const std::vector<Expr>& exprs, size_t k, const Types* arguments);
  bool fields(const Expr& e);
  bool operation(const std::vector<Expr>& exprs, const Expr& e);
  bool while_loop(const std::vector<Expr>& exprs, const Expr& e);
  bool part(const std::vector<Expr>& exprs, const Expr& e);
  bool constant(const Expr& e);
  bool body(const ScalarBody& b, const Types& arguments, const Types& results);
  bool index(const std::vector<Expr>& exprs, size_t before, const Index& i, bool in_body);
  /// Checks that expression `id` is defined before number `before` and has a value. A kWhile has none; its results are
  /// kPart expressions.
  bool value(const std::vector<Expr>& exprs, size_t before, ExprId id);
  bool is_pred(const std::vector<Expr>& exprs, size_t before, ExprId id);
  bool reduction(const Reduction& r);
  /// Checks that an index that is accessed unconditionally is never negative.
  bool not_negative(const Index& i);
  bool uses_inner(ExprId id) const { return id != kNoExpr && (deps_[static_cast<size_t>(id)] & inner_) != 0; }
  bool uses_inner(const Index& i) const;
  bool is_scanned(ExprId id) const { return id != kNoExpr && k_.exprs[static_cast<size_t>(id)].op == ExprOp::kScanned; }

  bool fail(const std::string& why) {
    if (error_.empty()) error_ = where_ + why;
    return false;
  }
  bool check(bool holds, const std::string& why) { return holds || fail(why); }
  void at(std::string where) { where_ = std::move(where) + ": "; }

  const Kernel& k_;
  std::string error_;
  std::string where_;
  std::vector<uint64_t> deps_;
  uint64_t inner_ = 0;
  int depth_ = 0;
};

bool Verifier::loops() {
  if (!check(k_.loops.size() <= kMostLoops, "more than 64 loops")) return false;
  if (!check(k_.outer <= k_.loops.size(), "more outer loops than loops")) return false;
  for (const Loop& l : k_.loops) {
    if (!check(l.size >= 0, "a loop of negative size")) return false;
  }
  for (size_t l = k_.outer; l < k_.loops.size(); ++l) inner_ |= uint64_t{1} << l;
  return true;
}

bool Verifier::value(const std::vector<Expr>& exprs, size_t before, ExprId id) {
  if (id < 0 || static_cast<size_t>(id) >= before)
    return fail("it uses %" + std::to_string(id) + ", which is not defined before");
  const Expr& e = exprs[static_cast<size_t>(id)];
  return check(e.op != ExprOp::kWhile, "the results of a while are its parts, not %" + std::to_string(id));
}

bool Verifier::is_pred(const std::vector<Expr>& exprs, size_t before, ExprId id) {
  if (id == kNoExpr) return true;
  if (!value(exprs, before, id)) return false;
  return check(exprs[static_cast<size_t>(id)].type == COLLET_TYPE_PRED, "its condition is no pred");
}

bool Verifier::index(const std::vector<Expr>& exprs, size_t before, const Index& i, bool in_body) {
  const size_t loops = in_body ? 0 : k_.loops.size();
  if (!check(i.coefficients.size() <= loops, "its index names a loop that is not there")) return false;
  if (!check(i.coefficients.empty() || i.coefficients.back() != 0, "its index ends with a coefficient of zero")) {
    return false;
  }
  for (auto [id, c] : i.terms) {
    if (!value(exprs, before, id)) return false;
    if (!check(exprs[static_cast<size_t>(id)].type == COLLET_TYPE_S64, "a term of its index is no s64")) return false;
  }
  return true;
}

bool Verifier::fields(const Expr& e) {
  const bool has_index = e.op == ExprOp::kLoad || e.op == ExprOp::kIndex || e.op == ExprOp::kDivide ||
                         e.op == ExprOp::kModulo || e.op == ExprOp::kInRange || e.op == ExprOp::kLookup;
  const bool has_mask = e.op == ExprOp::kLoad || e.op == ExprOp::kLookup || e.op == ExprOp::kWhile;
  const bool has_args =
      e.op == ExprOp::kOp || e.op == ExprOp::kStart || e.op == ExprOp::kWhile || e.op == ExprOp::kPart;
  const bool parametric = e.opcode == COLLET_OP_COMPARE || e.opcode == COLLET_OP_REDUCE_PRECISION;
  const bool has_a = e.op == ExprOp::kDivide || e.op == ExprOp::kModulo || e.op == ExprOp::kStart ||
                     e.op == ExprOp::kInRange || e.op == ExprOp::kArgument || e.op == ExprOp::kPart ||
                     e.op == ExprOp::kReduced || e.op == ExprOp::kScanned || (e.op == ExprOp::kOp && parametric);
  const bool has_b = e.op == ExprOp::kPart || e.op == ExprOp::kReduced || (e.op == ExprOp::kOp && parametric);
  if (!check(collet_type_bytes(e.type) != 0, "it has no element type")) return false;
  if (!check(has_index || e.index == Index{}, "it has no index")) return false;
  if (!check(has_mask || e.mask == kNoExpr, "it has no mask")) return false;
  if (!check(has_args || e.args.empty(), "it has no operands")) return false;
  if (!check((has_a || e.a == 0) && (has_b || e.b == 0), "it has no parameters")) return false;
  if (!check(e.op == ExprOp::kOp || e.opcode == 0, "it has no opcode")) return false;
  if (!check(e.op == ExprOp::kLoad || e.buffer == 0, "it has no buffer")) return false;
  if (!check(e.op == ExprOp::kLookup || e.table.empty(), "it has no table")) return false;
  if (!check(e.op == ExprOp::kWhile || e.bodies.empty(), "it has no bodies")) return false;
  return check(e.op == ExprOp::kConstant || e.bits == decltype(e.bits){}, "it has no bits");
}

bool Verifier::constant(const Expr& e) {
  const size_t bytes = collet_type_bytes(e.type);
  const uint64_t above0 = bytes >= 8 ? 0 : e.bits[0] >> (8 * bytes);
  return check(above0 == 0 && (bytes == 16 || e.bits[1] == 0), "it has bits beyond its type");
}

bool Verifier::operation(const std::vector<Expr>& exprs, const Expr& e) {
  if (!check(!e.args.empty(), "it has no operands")) return false;
  Types types;
  for (ExprId a : e.args) types.push_back(exprs[static_cast<size_t>(a)].type);
  const std::string name = collet_op_name(e.opcode);
  if (!has_elementwise(e.opcode, types[0]))
    return fail("there is no elementwise " + name + " of " + type_name(types[0]));
  if (!check(e.args.size() == operands_of(e.opcode), name + " with a wrong number of operands")) return false;
  if (e.opcode == COLLET_OP_COMPARE) {
    const bool known = e.a >= 0 && e.a < static_cast<int64_t>(kDirectionNames.size()) && e.b >= 0 &&
                       e.b < static_cast<int64_t>(kCompareNames.size());
    if (!check(known, "it compares in an unknown way")) return false;
  }
  if (e.opcode == COLLET_OP_REDUCE_PRECISION) {
    if (!check(e.a >= 1 && e.a <= 11 && e.b >= 0 && e.b <= 52, "there is no float with these bits")) return false;
  }
  const std::string why = check_op_types(e, types);
  return check(why.empty(), name + ": " + why);
}

bool Verifier::body(const ScalarBody& b, const Types& arguments, const Types& results) {
  if (!check(b.arguments == arguments.size(), "a body with a wrong number of arguments")) return false;
  if (!check(b.results.size() == results.size(), "a body with a wrong number of results")) return false;
  if (++depth_ > kDeepestBody) return fail("bodies are nested too deeply");
  const std::string around = where_;
  for (size_t k = 0; k < b.exprs.size(); ++k) {
    where_ = around + "in its body %" + std::to_string(k) + ": ";
    if (!expr(b.exprs, k, &arguments)) return false;
  }
  where_ = around;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!value(b.exprs, b.exprs.size(), b.results[i])) return false;
    const uint32_t type = b.exprs[static_cast<size_t>(b.results[i])].type;
    if (type != results[i])
      return fail("a body gives " + type_name(type) + " where " + type_name(results[i]) + " is due");
  }
  --depth_;
  return true;
}

bool Verifier::while_loop(const std::vector<Expr>& exprs, const Expr& e) {
  if (!check(e.bodies.size() == 2, "it has no condition and body") || !check(!e.args.empty(), "it carries nothing")) {
    return false;
  }
  Types types;
  for (ExprId a : e.args) types.push_back(exprs[static_cast<size_t>(a)].type);
  const ScalarBody& condition = e.bodies[0];
  const ScalarBody& repeated = e.bodies[1];
  if (!check(condition.arguments <= types.size() && repeated.arguments <= types.size(),
             "its bodies read more than it is given") ||
      !check(!repeated.results.empty() && repeated.results.size() <= types.size(),
             "its body gives more than it carries")) {
    return false;
  }
  const auto first = [&types](size_t n) { return Types(types.begin(), types.begin() + static_cast<int64_t>(n)); };
  return body(condition, first(condition.arguments), {COLLET_TYPE_PRED}) &&
         body(repeated, first(repeated.arguments), first(repeated.results.size()));
}

bool Verifier::part(const std::vector<Expr>& exprs, const Expr& e) {
  const Expr& loop = exprs[static_cast<size_t>(e.args[0])];
  if (!check(loop.op == ExprOp::kWhile, "it is part of no while")) return false;
  const auto carried = static_cast<int64_t>(loop.bodies[1].results.size());
  if (!check(e.a >= 0 && e.a < carried, "the while has no such result")) return false;
  int64_t field = 0;
  for (int64_t i = 0; i < e.a; ++i) {
    field += is_complex(exprs[static_cast<size_t>(loop.args[static_cast<size_t>(i)])].type) ? 2 : 1;
  }
  const uint32_t type = exprs[static_cast<size_t>(loop.args[static_cast<size_t>(e.a)])].type;
  return check(e.b == field, "its field is " + std::to_string(field)) &&
         check(e.type == type, "the while gives " + type_name(type));
}

bool Verifier::expr(const std::vector<Expr>& exprs, size_t k, const Types* arguments) {
  const Expr& e = exprs[k];
  if (!fields(e) || !index(exprs, k, e.index, arguments != nullptr) || !is_pred(exprs, k, e.mask)) return false;
  for (ExprId a : e.args) {
    if (e.op == ExprOp::kPart) {
      if (!check(a >= 0 && static_cast<size_t>(a) < k, "its operand is not defined before")) return false;
    } else if (!value(exprs, k, a)) {
      return false;
    }
  }
  const bool one_operand = e.args.size() == 1;
  const bool is_index = e.type == COLLET_TYPE_S64;
  switch (e.op) {
    case ExprOp::kConstant:
      return constant(e);
    case ExprOp::kLoad:
      return check(!arguments, "a body reads no buffers") && check(e.buffer < k_.buffers, "there is no such buffer");
    case ExprOp::kIndex:
      return check(is_index, "an index is an s64");
    case ExprOp::kDivide:
    case ExprOp::kModulo:
      return check(is_index, "an index is an s64") && check(e.a > 0, "it divides by a number that is not positive");
    case ExprOp::kStart:
      if (!check(one_operand, "a start has one operand") || !check(is_index, "an index is an s64")) return false;
      return check(is_integer(exprs[static_cast<size_t>(e.args[0])].type), "a start is an integer") &&
             check(e.a >= 0, "its limit is negative");
    case ExprOp::kInRange:
      return check(e.type == COLLET_TYPE_PRED, "it is a pred") && check(e.a >= 0, "a range of negative size");
    case ExprOp::kOp:
      return operation(exprs, e);
    case ExprOp::kArgument:
      if (!check(arguments != nullptr, "a kernel has no arguments")) return false;
      if (!check(e.a >= 0 && static_cast<size_t>(e.a) < arguments->size(), "there is no such argument")) return false;
      return check(e.type == (*arguments)[static_cast<size_t>(e.a)],
                   "the argument is " + type_name((*arguments)[static_cast<size_t>(e.a)]));
    case ExprOp::kLookup:
      return check(!e.table.empty() && e.table.size() % collet_type_bytes(e.type) == 0,
                   "its table holds no whole elements");
    case ExprOp::kWhile:
      return while_loop(exprs, e);
    case ExprOp::kPart:
      return check(one_operand, "a part has one operand") && part(exprs, e);
    case ExprOp::kReduced: {
      if (!check(!arguments, "a body has no reductions")) return false;
      if (!check(e.b >= 0 && static_cast<size_t>(e.b) < k_.reductions.size(), "there is no such reduction"))
        return false;
      const Reduction& r = k_.reductions[static_cast<size_t>(e.b)];
      if (!check(e.a >= 0 && static_cast<size_t>(e.a) < r.types.size(), "the reduction has no such result"))
        return false;
      if (!check(e.type == r.types[static_cast<size_t>(e.a)], "the result has another type")) return false;
      const auto is_before = [k](ExprId id) { return id < static_cast<ExprId>(k); };
      return check(std::all_of(r.inputs.begin(), r.inputs.end(), is_before) &&
                       std::all_of(r.inits.begin(), r.inits.end(), is_before) && is_before(r.condition),
                   "its reduction uses what is defined later");
    }
    case ExprOp::kScanned: {
      if (!check(!arguments, "a body has no scan") || !check(k_.scan.has_value(), "there is no scan")) return false;
      const Types& types = k_.scan->reduction.types;
      if (!check(e.a >= 0 && static_cast<size_t>(e.a) < types.size(), "the scan has no such result")) return false;
      return check(e.type == types[static_cast<size_t>(e.a)], "the result has another type");
    }
  }
  return fail("it is of no kind");
}

bool Verifier::kernel_exprs() {
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    at("%" + std::to_string(k));
    if (!expr(k_.exprs, k, nullptr)) return false;
  }
  deps_ = loop_dependencies(k_);
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    const Expr& e = k_.exprs[k];
    at("%" + std::to_string(k));
    if (e.op == ExprOp::kLoad && e.mask == kNoExpr && !not_negative(e.index)) return false;
    const bool of_scan =
        std::any_of(e.args.begin(), e.args.end(), [this](ExprId a) { return is_scanned(a); }) || is_scanned(e.mask) ||
        std::any_of(e.index.terms.begin(), e.index.terms.end(), [this](const auto& t) { return is_scanned(t.first); });
    if (!check(!of_scan, "results of a scan are stored, not computed with")) return false;
  }
  return true;
}

bool Verifier::not_negative(const Index& i) {
  if (!i.terms.empty()) return true;
  auto least = static_cast<long double>(i.constant);  // long double, so that the sum does not overflow
  for (size_t l = 0; l < i.coefficients.size(); ++l) {
    if (k_.loops[l].size == 0) return true;
    if (i.coefficients[l] >= 0) continue;
    least += static_cast<long double>(i.coefficients[l]) * static_cast<long double>(k_.loops[l].size - 1);
  }
  return check(least >= 0, "its index is negative at some point");
}

bool Verifier::reduction(const Reduction& r) {
  const size_t n = r.types.size();
  const size_t all = k_.exprs.size();
  if (!check(n > 0 && r.inputs.size() == n && r.inits.size() == n,
             "inputs, initial values and types differ in number")) {
    return false;
  }
  for (size_t i = 0; i < n; ++i) {
    if (!value(k_.exprs, all, r.inputs[i])) return false;
    if (!check(k_.exprs[static_cast<size_t>(r.inputs[i])].type == r.types[i], "an input has another type"))
      return false;
    if (r.inits[i] == kNoExpr) {
      if (!check(r.combine != COLLET_COMBINE_OTHER, "a body has no identity to begin with")) return false;
      continue;
    }
    if (!value(k_.exprs, all, r.inits[i])) return false;
    if (!check(k_.exprs[static_cast<size_t>(r.inits[i])].type == r.types[i], "an initial value has another type")) {
      return false;
    }
    if (!check(!uses_inner(r.inits[i]), "an initial value depends on an inner loop")) return false;
  }
  if (!is_pred(k_.exprs, all, r.condition)) return false;
  if (r.combine == COLLET_COMBINE_OTHER) {
    Types arguments = r.types;
    arguments.insert(arguments.end(), r.types.begin(), r.types.end());
    return body(r.body, arguments, r.types);
  }
  if (!check(r.body == ScalarBody{}, "a known combination needs no body")) return false;
  const bool ordered = r.combine == COLLET_COMBINE_MINIMUM || r.combine == COLLET_COMBINE_MAXIMUM;
  const uint32_t opcode = ordered && is_complex(r.types[0]) ? 0 : combine_opcode(r.combine);
  if (!check(n == 1, "a known combination has one input")) return false;
  return check(opcode != 0 && has_elementwise(opcode, r.types[0]), "nothing combines " + type_name(r.types[0]) + " so");
}

bool Verifier::reductions() {
  for (size_t r = 0; r < k_.reductions.size(); ++r) {
    at("r" + std::to_string(r));
    if (!reduction(k_.reductions[r])) return false;
  }
  return true;
}

bool Verifier::uses_inner(const Index& i) const {
  for (size_t l = 0; l < i.coefficients.size(); ++l) {
    if (i.coefficients[l] != 0 && (inner_ >> l & 1) != 0) return true;
  }
  return std::any_of(i.terms.begin(), i.terms.end(), [this](const auto& t) { return uses_inner(t.first); });
}

bool Verifier::levels() {
  for (const Update& u : k_.updates) {
    at("update");
    for (ExprId v : u.values) {
      if (!value(k_.exprs, k_.exprs.size(), v)) return false;
      if (!check(!uses_inner(v), "a value depends on an inner loop")) return false;
    }
    if (!is_pred(k_.exprs, k_.exprs.size(), u.mask)) return false;
    if (!index(k_.exprs, k_.exprs.size(), u.index, false)) return false;
    if (!check(!uses_inner(u.mask) && !uses_inner(u.index), "its place depends on an inner loop")) return false;
  }
  return true;
}

bool Verifier::stores() {
  const size_t all = k_.exprs.size();
  for (const Store& s : k_.stores) {
    at("store to b" + std::to_string(s.buffer));
    if (!check(s.buffer < k_.buffers, "there is no such buffer") || !value(k_.exprs, all, s.value)) return false;
    if (!index(k_.exprs, all, s.index, false) || !is_pred(k_.exprs, all, s.mask)) return false;
    if (s.mask == kNoExpr && !not_negative(s.index)) return false;
  }
  for (const Update& u : k_.updates) {
    const size_t n = u.types.size();
    at("update");
    if (!check(n > 0 && u.buffers.size() == n && u.values.size() == n, "buffers, values and types differ in number")) {
      return false;
    }
    for (size_t i = 0; i < n; ++i) {
      if (!check(u.buffers[i] < k_.buffers, "there is no such buffer")) return false;
      if (!check(k_.exprs[static_cast<size_t>(u.values[i])].type == u.types[i], "a value has another type"))
        return false;
    }
    if (u.mask == kNoExpr && !not_negative(u.index)) return false;
    if (u.combine == COLLET_COMBINE_OTHER) {
      Types arguments = u.types;
      arguments.insert(arguments.end(), u.types.begin(), u.types.end());
      if (!body(u.body, arguments, u.types)) return false;
      continue;
    }
    if (!check(u.body == ScalarBody{}, "a known combination needs no body")) return false;
    const bool picks = u.combine == COLLET_COMBINE_FIRST || u.combine == COLLET_COMBINE_SECOND;
    const uint32_t opcode = combine_opcode(u.combine);
    if (!check(n == 1, "a known combination has one value")) return false;
    if (!check(picks || (opcode != 0 && has_elementwise(opcode, u.types[0])),
               "nothing combines " + type_name(u.types[0]) + " so")) {
      return false;
    }
  }
  return true;
}

bool Verifier::scan() {
  if (!k_.scan) return true;
  at("scan");
  const Scan& s = *k_.scan;
  if (!check(k_.loops.size() == k_.outer + 1, "a scan has one inner loop")) return false;
  if (!check(k_.reductions.empty() && k_.updates.empty(), "a kernel with a scan has no reductions and updates")) {
    return false;
  }
  if (!check(!s.fresh || s.reduction.combine == COLLET_COMBINE_OTHER, "a known combination is never fresh"))
    return false;
  if (!reduction(s.reduction)) return false;
  const bool only =
      std::all_of(k_.stores.begin(), k_.stores.end(), [this](const Store& t) { return is_scanned(t.value); });
  if (!check(only, "a kernel with a scan stores its results alone")) return false;
  const auto reads = [this](ExprId id) { return is_scanned(id); };
  const auto& inputs = s.reduction.inputs;
  return check(std::none_of(inputs.begin(), inputs.end(), reads) && !reads(s.reduction.condition),
               "a scan combines its own results");
}

bool Verifier::lanes() {
  at("lanes");
  if (k_.lanes == 1) return check(k_.lane_loop <= k_.loops.size(), "there is no such loop");
  if (!check(k_.lanes > 1 && k_.lanes <= kMostLanes && (k_.lanes & (k_.lanes - 1)) == 0,
             "their number is no power of two")) {
    return false;
  }
  if (!check(k_.lane_loop < k_.loops.size(), "there is no such loop")) return false;
  if (!check(!k_.in_parts || k_.lane_loop != 0, "loop i0 is run in parts of any size")) return false;
  if (k_.lane_loop < k_.outer) {
    if (!k_.sequential) return true;
    // The lanes of a vector are read together and written together, so they must update different elements, or be updated one after
    // the other.
    const bool apart = std::all_of(k_.updates.begin(), k_.updates.end(),
                                   [this](const Update& u) { return updates_neighbours(u, k_.lane_loop, deps_); });
    const bool in_order = k_.lane_loop + 1 == k_.outer && !k_.scalable && may_update_in_order(k_);
    return check(apart || in_order, "lanes of a sequential kernel update the same element");
  }
  if (k_.scan) return check(k_.scan->reduction.combine != COLLET_COMBINE_OTHER, "a body is not reduced across lanes");
  return check(std::all_of(k_.reductions.begin(), k_.reductions.end(),
                           [](const Reduction& r) { return r.combine != COLLET_COMBINE_OTHER; }),
               "a body is not reduced across lanes");
}

bool Verifier::interleaves(size_t loop) {
  if (k_.lanes > 1 && k_.lane_loop >= k_.outer)
    return check(loop + 1 == k_.outer && k_.outer + 1 == k_.loops.size() && !k_.reductions.empty(),
                 "with lanes inside, only the last outer loop of a reduction over one loop is interleaved");
  const bool is_unrolled = k_.outer == k_.loops.size() || k_.loops[k_.outer].kind == LoopKind::kUnroll;
  if (!check(is_unrolled, "with lanes outside, inner loops within an interleaved one are unrolled")) return false;
  const bool stores_inside = std::any_of(k_.stores.begin(), k_.stores.end(), [&](const Store& s) {
    uint64_t d = deps_[static_cast<size_t>(s.value)];
    if (s.mask != kNoExpr) d |= deps_[static_cast<size_t>(s.mask)];
    for (const auto& t : s.index.terms) d |= deps_[static_cast<size_t>(t.first)];
    for (size_t l = k_.outer; l < k_.loops.size(); ++l) {
      if (s.index.coefficient(l) != 0) return true;
    }
    return (d & inner_) != 0;
  });
  return check(!stores_inside, "there are stores in inner loops within an interleaved one");
}

bool Verifier::kinds_of_loops() {
  const bool is_by_rows = k_.lane_loop < k_.loops.size() && k_.loops[k_.lane_loop].strip != 0;
  int interleaved = 0;
  for (size_t l = 0; l < k_.loops.size(); ++l) {
    const Loop& loop = k_.loops[l];
    at("loop i" + std::to_string(l));
    const bool is_inner = l >= k_.outer;
    const bool is_strip = loop.strip == 0 || (l == k_.lane_loop && l + 1 == k_.outer && loop.strip % k_.lanes == 0);
    if (!check(is_strip, "strips are of whole vectors of the last outer loop, which is in lanes")) return false;
    const char* const refusal = loop.strip != 0 ? refusal_of_strips(k_) : nullptr;
    if (!check(!refusal, refusal ? std::string("no strips: ") + refusal : "")) return false;
    int64_t bytes = 0;  // of an iteration: a sum has an accumulator, the sum of blocks, and their rounding errors
    for (const Reduction& r : k_.reductions) bytes += 3 * compute_bytes(r.types[0]);
    if (!check(loop.strip <= kMostStackBytes / std::max<int64_t>(bytes, 1),
               "the accumulators of a strip are too large"))
      return false;
    switch (loop.kind) {
      case LoopKind::kSerial:
        if (!check(loop.factor == 1, "a factor of a serial loop")) return false;
        break;
      case LoopKind::kUnroll:
        if (!check(is_inner && !k_.scan, "only inner loops of a reduction are unrolled")) return false;
        if (!check(k_.lane_loop < k_.outer, "a loop in lanes is unrolled")) return false;
        break;
      case LoopKind::kInterleave:
        if (!check(loop.factor >= 2 && loop.factor <= kMostAtATime, "its factor is not in 2 to 64")) return false;
        if (!check((l != k_.lane_loop || k_.lanes == 1) && !k_.sequential && !k_.scan && k_.updates.empty(),
                   "its iterations have an order, or are in lanes"))
          return false;
        if (!check(!is_inner || is_by_rows, "an inner loop is interleaved only if outer ones run in strips"))
          return false;
        if (!is_inner && !interleaves(l)) return false;
        interleaved += is_inner ? 0 : 1;
        break;
      case LoopKind::kTranspose:
        if (!check(is_plain(k_) && l + 1 == k_.loops.size() && l != 0 && l != k_.lane_loop,
                   "only the last loop of a plain kernel is transposed"))
          return false;
        if (!check(loop.factor == 1, "a factor of a transposed loop")) return false;
        if (!check(k_.lanes > 1, "a loop is transposed, and none is in lanes")) return false;
        if (!check(k_.lanes <= kMostAtATime, "a square has more than 64 rows")) return false;
        break;
    }
  }
  at("loops");
  const bool all_alike = std::all_of(
      k_.loops.begin() + static_cast<ptrdiff_t>(k_.outer), k_.loops.end(),
      [&](const Loop& l) { return (l.kind == LoopKind::kUnroll) == (k_.loops[k_.outer].kind == LoopKind::kUnroll); });
  if (!check(all_alike, "some inner loops are unrolled, and others are not")) return false;
  const bool squares =
      std::any_of(k_.loops.begin(), k_.loops.end(), [](const Loop& l) { return l.kind == LoopKind::kTranspose; });
  const int most = squares ? 0 : k_.lanes > 1 && k_.lane_loop >= k_.outer ? 1 : 2;
  return check(interleaved <= most, "too many loops are interleaved");
}

bool Verifier::schedule() {
  if (!kinds_of_loops()) return false;
  at("schedule");
  const char* const refusal = k_.unordered ? refusal_of_any_order(k_) : nullptr;
  if (!check(!refusal, refusal ? std::string("not in any order: ") + refusal : "")) return false;
  if (k_.passes.empty() && k_.kept.empty()) return true;
  for (const ExprId k : k_.kept) {
    if (!check(k >= 0 && static_cast<size_t>(k) < k_.exprs.size(),
               "%" + std::to_string(k) + " is kept, but is not defined"))
      return false;
  }
  const KernelPasses passes(k_);
  if (!check(k_.passes.empty() || k_.passes.size() == static_cast<size_t>(passes.last()) + 1,
             "it has another number of passes than the kernel"))
    return false;
  for (const PassSchedule& p : k_.passes) {
    const bool fits = p.lanes >= k_.lanes && p.lanes <= kMostLanes && p.lanes % k_.lanes == 0;
    if (!check(fits && (p.lanes & (p.lanes - 1)) == 0, "the lanes of a pass are no multiple of the kernel's"))
      return false;
    if (!check(p.together >= 1 && (p.together & (p.together - 1)) == 0, "vectors together are no power of two"))
      return false;
    if (!check(int64_t{p.together} * p.lanes <= kMostLanes, "too many vectors together")) return false;
    const auto pass = static_cast<int>(&p - k_.passes.data());
    bool reduces = false;
    for (size_t r = 0; r < k_.reductions.size(); ++r) reduces = reduces || passes.reduction_pass(r) == pass;
    const bool widens = passes.lanes_inside() && reduces && !k_.scan;
    if (!check(p.lanes == k_.lanes || widens, "only passes that reduce lanes have more of them than the kernel"))
      return false;
    const bool is_apart = !reduces && !k_.scan && !k_.sequential && k_.updates.empty() && !k_.scalable &&
                          !passes.is_straight() && passes.side_unroll() == 1;
    if (!check(p.together == 1 || (is_apart && k_.lanes > 1 && (passes.lanes_inside() || is_plain(k_))),
               "only passes without a reduction, whose points have no order, compute vectors together"))
      return false;
  }
  if (!check(k_.kept.empty() || k_.lanes == 1 || passes.lanes_inside(), "values of rows in lanes are kept"))
    return false;
  // Interleaved iterations keep rows of their own. Callers promise a stack of twice kMostStackBytes.
  int64_t times = 1, bytes = 0;
  for (size_t l = 0; l < k_.outer; ++l)
    if (k_.loops[l].kind == LoopKind::kInterleave) times *= k_.loops[l].factor;
  const int64_t points = std::min(inner_points(k_), kMostStackBytes);
  ExprId before = kNoExpr;
  for (const ExprId k : k_.kept) {
    if (!check(k > before, "kept expressions are out of order")) return false;
    before = k;
    bytes += points * compute_bytes(k_.exprs[static_cast<size_t>(k)].type);
    if (!check(bytes <= kMostStackBytes && times * bytes <= 2 * kMostStackBytes,
               "the rows that are kept are too large"))
      return false;
    const bool is_of_row = (deps_[static_cast<size_t>(k)] & inner_) == inner_ && inner_ != 0;
    if (!check(is_of_row, "%" + std::to_string(k) + " is kept, but is no value of a row")) return false;
    const uint32_t kind = collet_type_kind(k_.exprs[static_cast<size_t>(k)].type);
    if (!check(kind != COLLET_KIND_COMPLEX && kind != COLLET_KIND_PRED,
               "%" + std::to_string(k) + " is kept, but is no real number"))
      return false;
  }
  return true;
}

}  // namespace

Status verify_kernel(const Kernel& kernel) {
  return Verifier(kernel).run();
}

}  // namespace collet::codegen
