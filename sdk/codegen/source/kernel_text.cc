// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/source/kernel_text.h"

#include <collet/program.h>
#include <collet/types.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/kernel/elementwise.h"

namespace collet::codegen::source {
namespace {

/// Most additions to one accumulator before it is added to the sum of blocks: the error of a block is as many roundings.
constexpr int64_t kBlock = 32;

bool is_complex(uint32_t type) {
  return collet_type_kind(type) == COLLET_KIND_COMPLEX;
}
bool is_float(uint32_t type) {
  return collet_type_kind(type) == COLLET_KIND_FLOAT || is_complex(type);
}
std::string text(int64_t x) {
  return text_of_integer(x);
}
/// Returns an element of a table as C text, or its two parts.
std::string table_elements(const Expr& e) {
  std::string out;
  const size_t bytes = collet_type_bytes(half_type(e.type));
  const std::string type = memory_type(e.type);
  for (size_t at = 0; at + bytes <= e.table.size(); at += bytes) {
    uint64_t raw = 0;
    std::memcpy(&raw, e.table.data() + at, bytes);
    if (!out.empty()) out += ", ";
    if (type == "float" || type == "double") {
      double x = 0;
      float narrow = 0;
      if (type == "float") {
        std::memcpy(&narrow, &raw, sizeof narrow);
        x = narrow;
      } else {
        std::memcpy(&x, &raw, sizeof x);
      }
      out += text_of_number(x, type);
    } else {
      const int unused = 64 - 8 * static_cast<int>(bytes);
      out += type[0] == 'u' ? std::to_string(raw) + "u" : text(static_cast<int64_t>(raw << unused) >> unused);
    }
  }
  return out;
}

constexpr const char* kStartSigned =
    "static inline int64_t start(int64_t x, int64_t limit) {\n  return x < 0 ? 0 : x > limit ? limit : x;\n}\n";
constexpr const char* kStartUnsigned =
    "static inline int64_t start_unsigned(uint64_t x, uint64_t limit) {\n  return (int64_t)(x > limit ? limit : "
    "x);\n}\n";
constexpr const char* kFloorQuotient =
    "static inline int64_t floor_quotient(int64_t x, int64_t y) {\n  return x / y - (x % y < 0);\n}\n";
constexpr const char* kFloorRemainder =
    "static inline int64_t floor_remainder(int64_t x, int64_t y) {\n  return x % y + (x % y < 0 ? y : 0);\n}\n";

}  // namespace

KernelWriter::KernelWriter(Function& f, const Kernel& kernel)
    : f_(f), k_(kernel), passes_(kernel), vals_(kernel.exprs.size()) {
  for (size_t l = 0; l < k_.loops.size(); ++l) loops_.push_back("i" + std::to_string(l));
  reduced_.resize(k_.reductions.size());
  find_used();
  accumulators_.resize(k_.reductions.size());
}

void KernelWriter::find_used() {
  std::vector<ExprId> open;
  const auto add_index = [&](const Index& x) {
    for (const auto& term : x.terms) open.push_back(term.first);
  };
  for (const Store& s : k_.stores) {
    open.insert(open.end(), {s.value, s.mask});
    add_index(s.index);
  }
  for (const Update& u : k_.updates) {
    open.insert(open.end(), u.values.begin(), u.values.end());
    open.push_back(u.mask);
    add_index(u.index);
  }
  used_.assign(k_.reductions.size(), false);
  std::vector<bool> seen(k_.exprs.size(), false);
  while (!open.empty()) {
    const ExprId id = open.back();
    open.pop_back();
    if (id == kNoExpr || seen[static_cast<size_t>(id)]) continue;
    seen[static_cast<size_t>(id)] = true;
    const Expr& e = at(id);
    open.insert(open.end(), e.args.begin(), e.args.end());
    open.push_back(e.mask);
    add_index(e.index);
    if (e.op != ExprOp::kReduced || used_[static_cast<size_t>(e.b)]) continue;
    used_[static_cast<size_t>(e.b)] = true;
    const Reduction& r = k_.reductions[static_cast<size_t>(e.b)];
    open.insert(open.end(), r.inputs.begin(), r.inputs.end());
    open.insert(open.end(), r.inits.begin(), r.inits.end());
    open.push_back(r.condition);
  }
}

void KernelWriter::run() {
  open("buffers");
  if (k_.buffers == 0) f_.statement("(void)buffers;");
  if (k_.outer == 0) {
    f_.statement("(void)begin;");
    f_.statement("(void)end;");
  }
  compute(0, 0);
  nest(0);
}

void KernelWriter::compare(const ScalarBody& b, const std::vector<uint32_t>& types) {
  std::vector<Val> arguments;
  for (size_t k = 0; k < types.size(); ++k) {
    const std::string n = std::to_string(k), pointee = f_.unit.pointer("const " + memory_type(types[k]));
    const Id array = f_.named("b" + n, pointee, "(" + pointee + ")buffers[" + n + "]");
    for (const char* const side : {"i", "j"})
      arguments.push_back(element(types[k], array, f_.constant("int64_t", side), kNoId));
  }
  f_.statement("return $a0;", {body(b, arguments)[0].v});
}

void KernelWriter::open(const std::string& buffers) {
  declare_buffers([&](uint32_t number) { return buffers + "[" + std::to_string(number) + "]"; });
}

Id KernelWriter::point(const std::vector<std::string>& loops, uint32_t product, Id value, ExprId wanted) {
  loops_ = loops;
  given_[product] = {value};
  for (size_t k = 0; k < k_.exprs.size(); ++k) vals_[k] = expr(k_.exprs, k, vals_, nullptr);
  return val(wanted).v;
}

// Expressions.

void KernelWriter::compute(size_t level, int stage) {
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    const auto id = static_cast<ExprId>(k);
    if (k_.exprs[k].op == ExprOp::kScanned || passes_.level_of(id) != level || passes_.stage_of(id) != stage) continue;
    vals_[k] = expr(k_.exprs, k, vals_, nullptr);
  }
}

void KernelWriter::compute_for_pass(size_t level, int pass) {
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    if (passes_.level_of(static_cast<ExprId>(k)) != level || !passes_.needs(pass, k) ||
        k_.exprs[k].op == ExprOp::kScanned)
      continue;
    if (passes_.is_loaded(pass, k)) {
      vals_[k] = {
          f_.value(value_type(k_.exprs[k].type), kept_.at(k) + "[$a0]", {place_in_row()}, Level::kPrimary, true)};
      continue;
    }
    vals_[k] = expr(k_.exprs, k, vals_, nullptr);
    if (passes_.is_kept(k)) f_.statement(kept_.at(k) + "[$a0] = $v1;", {place_in_row(), vals_[k].v});
  }
}

Id KernelWriter::place_in_row() {
  Index place;
  int64_t stride = 1;
  for (size_t l = k_.loops.size(); l-- > k_.outer;) {
    place = add_scaled(place, loop_index(l), stride);
    stride *= k_.loops[l].size;
  }
  return index(place);
}

Val KernelWriter::expr(const std::vector<Expr>& exprs, size_t k, std::vector<Val>& vals,
                       const std::vector<Val>* arguments) {
  const Expr& e = exprs[k];
  const auto value = [&](ExprId id) { return vals[static_cast<size_t>(id)]; };
  switch (e.op) {
    case ExprOp::kConstant:
      return literal(f_, e.type, e.bits);
    case ExprOp::kLoad:
      if (const auto given = given_.find(e.buffer); given != given_.end()) return given->second;
      return element(e.type, buffer(e.buffer, e.type), index(e.index, exprs, vals),
                     e.mask == kNoExpr ? kNoId : value(e.mask).v);
    case ExprOp::kLookup: {
      const std::string table = f_.unit.table(memory_type(e.type), table_elements(e));
      return element(e.type, f_.constant("table", table), index(e.index, exprs, vals),
                     e.mask == kNoExpr ? kNoId : value(e.mask).v);
    }
    case ExprOp::kIndex:
      return {index(e.index, exprs, vals)};
    case ExprOp::kDivide:
    case ExprOp::kModulo:
      return {quotient(e, exprs, vals, e.op == ExprOp::kModulo)};
    case ExprOp::kStart:
      return {start(e, exprs, vals)};
    case ExprOp::kInRange:
      return {f_.value("bool", "(uint64_t)$u0 < " + text(e.a) + "u", {index(e.index, exprs, vals)}, Level::kCompare)};
    case ExprOp::kOp: {
      std::vector<Val> args;
      std::vector<uint32_t> types;
      for (const ExprId a : e.args) {
        args.push_back(value(a));
        types.push_back(exprs[static_cast<size_t>(a)].type);
      }
      return scalar_op(f_, e, args, types);
    }
    case ExprOp::kArgument:
      return (*arguments)[static_cast<size_t>(e.a)];
    case ExprOp::kWhile:
      return while_loop(e, vals);
    case ExprOp::kPart:
      return whiles_.at(&exprs[static_cast<size_t>(e.args[0])])[static_cast<size_t>(e.a)];
    case ExprOp::kReduced:
      if (!used_[static_cast<size_t>(e.b)]) return identity(f_, COLLET_COMBINE_ADD, e.type);  // nothing uses it
      return reduced_[static_cast<size_t>(e.b)][static_cast<size_t>(e.a)];
    case ExprOp::kScanned:
      return scanned_[static_cast<size_t>(e.a)];
  }
  return {};
}

std::vector<Val> KernelWriter::body(const ScalarBody& b, const std::vector<Val>& arguments) {
  std::vector<Val> vals(b.exprs.size());
  for (size_t k = 0; k < b.exprs.size(); ++k) vals[k] = expr(b.exprs, k, vals, &arguments);
  std::vector<Val> results;
  for (const ExprId id : b.results) results.push_back(vals[static_cast<size_t>(id)]);
  return results;
}

Val KernelWriter::while_loop(const Expr& e, const std::vector<Val>& vals) {
  std::vector<Val> first, now;
  for (const ExprId a : e.args) first.push_back(vals[static_cast<size_t>(a)]);
  const size_t carried = e.bodies[1].results.size();
  std::vector<std::vector<std::string>> names(carried);
  for (size_t i = 0; i < carried; ++i) {
    for (const Id part : {first[i].v, first[i].im}) {
      if (part == kNoId) continue;
      names[i].push_back(f_.fresh("w"));
      f_.statement(f_.type_of(part) + " " + names[i].back() + " = $a0;", {part});
    }
  }
  const auto state = [&] {
    std::vector<Val> all = first;
    for (size_t i = 0; i < carried; ++i) {
      all[i].v = f_.variable(f_.type_of(first[i].v), names[i][0]);
      if (names[i].size() > 1) all[i].im = f_.variable(f_.type_of(first[i].im), names[i][1]);
    }
    return all;
  };
  if (e.mask != kNoExpr) f_.open("if ($a0)", {vals[static_cast<size_t>(e.mask)].v});
  f_.open("for (;;)");
  f_.statement("if (!$p0) break;", {body(e.bodies[0], state())[0].v});
  const std::vector<Val> next = body(e.bodies[1], state());
  // All results are computed before the first variable changes.
  std::vector<std::pair<std::string, Id>> changes;
  for (size_t i = 0; i < carried; ++i) {
    changes.emplace_back(names[i][0], next[i].v);
    if (names[i].size() > 1) changes.emplace_back(names[i][1], next[i].im);
  }
  for (const auto& [name, part] : changes) f_.statement(name + " = $v0;", {part});
  f_.close();
  if (e.mask != kNoExpr) f_.close();
  whiles_[&e] = state();
  return {};
}

Val KernelWriter::element(uint32_t type, Id array, Id at, Id mask) {
  const auto part = [&](Id place) {
    const std::string stored = memory_type(type), x = "$p1[$a0]";
    const Id loaded = mask == kNoId
                          ? f_.value(stored, x, {place, array}, Level::kPrimary, true)
                          : f_.value(stored, "$c2 ? " + x + " : 0", {place, array, mask}, Level::kConditional, true);
    return from_memory(f_, loaded, type);
  };
  if (!is_complex(type)) return {part(at)};
  return {part(part_of_complex(at, 0)), part(part_of_complex(at, 1))};
}

Id KernelWriter::part_of_complex(Id at, int64_t part) {
  // The compiler would compute a product of two constants as int.
  const std::string known = f_.text_of_constant(at);
  int64_t constant = 0;
  const auto [end, error] = std::from_chars(known.data(), known.data() + known.size(), constant);
  if (error == std::errc() && end == known.data() + known.size()) return f_.integer(2 * constant + part);
  return part == 0 ? f_.value("int64_t", "2 * $u0", {at}, Level::kProduct)
                   : f_.value("int64_t", "2 * $u0 + " + std::to_string(part), {at}, Level::kSum);
}

bool KernelWriter::is_bounded(const Index& x, const std::vector<Expr>& exprs) const {
  return std::all_of(x.terms.begin(), x.terms.end(), [&](const auto& term) {
    const Expr& e = exprs[static_cast<size_t>(term.first)];
    if (e.op == ExprOp::kStart || e.op == ExprOp::kModulo) return true;
    return (e.op == ExprOp::kIndex || e.op == ExprOp::kDivide) && is_bounded(e.index, exprs);
  });
}

bool KernelWriter::is_positive(const Index& x, const std::vector<Expr>& exprs) const {
  int64_t least = x.constant;
  for (size_t l = 0; l < x.coefficients.size(); ++l)
    least += std::min<int64_t>(x.coefficients[l] * (k_.loops[l].size - 1), 0);
  return least >= 0 && is_bounded(x, exprs) && std::all_of(x.terms.begin(), x.terms.end(), [&](const auto& term) {
           const Expr& e = exprs[static_cast<size_t>(term.first)];
           const bool is_slice = e.op == ExprOp::kStart || e.op == ExprOp::kModulo;
           return term.second >= 0 && (is_slice || is_positive(e.index, exprs));
         });
}

Id KernelWriter::index(const Index& x, const std::vector<Expr>& exprs, const std::vector<Val>& vals) {
  std::string sum;
  Level level = Level::kSum;
  int parts = 0;
  const auto add = [&](int64_t c, const std::string& factor) {
    const bool is_negative = c < 0;
    const uint64_t size = is_negative ? 0 - static_cast<uint64_t>(c) : static_cast<uint64_t>(c);
    sum += parts == 0 ? (is_negative ? "-" : "") : is_negative ? " - " : " + ";
    sum += factor.empty() ? std::to_string(size) : size == 1 ? factor : std::to_string(size) + " * " + factor;
    level = parts++ > 0 || is_negative ? Level::kSum : !factor.empty() && size != 1 ? Level::kProduct : Level::kPrimary;
  };
  for (size_t l = 0; l < x.coefficients.size(); ++l) {
    if (x.coefficients[l] != 0 && loops_[l] != "0") add(x.coefficients[l], loops_[l]);
  }
  constexpr size_t kMostTerms = 9;  // a format names an operand by one digit
  const bool bounded = is_bounded(x, exprs) && x.terms.size() <= kMostTerms;
  std::vector<Id> args;
  for (const auto& [id, c] : x.terms) {
    if (!bounded || c == 0) continue;
    args.push_back(vals[static_cast<size_t>(id)].v);
    add(c, "$u" + std::to_string(args.size() - 1));
  }
  if (x.constant != 0 || parts == 0) add(x.constant, "");
  if (sum == "$u0") return args[0];
  if (level == Level::kPrimary && sum.starts_with("(")) {  // a sum in place of a variable
    sum = sum.substr(1, sum.size() - 2);
    level = Level::kSum;
  }
  const Id whole =
      args.empty() && level == Level::kPrimary ? f_.constant("int64_t", sum) : f_.value("int64_t", sum, args, level);
  if (bounded) return whole;
  // What is computed may be any number, so the sum may wrap around. Sums of many terms are added in the same way.
  Id wrapped = f_.cast("uint64_t", whole);
  for (const auto& [id, c] : x.terms) {
    const Id term = f_.cast("uint64_t", vals[static_cast<size_t>(id)].v);
    const Id by = f_.constant("uint64_t", std::to_string(static_cast<uint64_t>(c)) + "u");
    wrapped = f_.binary("uint64_t", "+", wrapped, c == 1 ? term : f_.binary("uint64_t", "*", by, term));
  }
  return f_.cast("int64_t", wrapped);
}

Id KernelWriter::start(const Expr& e, const std::vector<Expr>& exprs, const std::vector<Val>& vals) {
  const bool has_sign = collet_type_kind(exprs[static_cast<size_t>(e.args[0])].type) == COLLET_KIND_SIGNED;
  const std::string& name = has_sign ? f_.unit.helper("start", [] { return std::string(kStartSigned); })
                                     : f_.unit.helper("start_unsigned", [] { return std::string(kStartUnsigned); });
  return f_.call("int64_t", name, {vals[static_cast<size_t>(e.args[0])].v, f_.integer(e.a)});
}

Id KernelWriter::quotient(const Expr& e, const std::vector<Expr>& exprs, const std::vector<Val>& vals, bool rest) {
  const Id x = index(e.index, exprs, vals);
  const Id by = f_.integer(e.a);
  if (is_positive(e.index, exprs)) return f_.binary("int64_t", rest ? "%" : "/", x, by);
  const std::string& name = rest ? f_.unit.helper("floor_remainder", [] { return std::string(kFloorRemainder); })
                                 : f_.unit.helper("floor_quotient", [] { return std::string(kFloorQuotient); });
  return f_.call("int64_t", name, {x, by});
}

// Loops.

void KernelWriter::declare_buffers(const std::function<std::string(uint32_t)>& place) {
  std::map<uint32_t, std::set<std::string>> types;
  std::set<uint32_t> written;
  for (const Expr& e : k_.exprs) {
    if (e.op == ExprOp::kLoad) types[e.buffer].insert(memory_type(e.type));
  }
  for (const Store& s : k_.stores) {
    types[s.buffer].insert(memory_type(at(s.value).type));
    written.insert(s.buffer);
  }
  for (const Update& u : k_.updates) {
    for (size_t i = 0; i < u.buffers.size(); ++i) {
      types[u.buffers[i]].insert(memory_type(u.types[i]));
      written.insert(u.buffers[i]);
    }
  }
  for (const auto& [number, all] : types) {
    for (const std::string& type : all) {
      const std::string name = "b" + std::to_string(number) + (type == *all.begin() ? "" : "_" + type);
      const std::string pointee = f_.unit.pointer((written.contains(number) ? "" : "const ") + type);
      buffers_[{number, type}] = f_.named(name, pointee, "(" + pointee + ")" + place(number));
    }
  }
}

Id KernelWriter::buffer(uint32_t number, uint32_t type) const {
  return buffers_.at({number, memory_type(type)});
}

void KernelWriter::open_loop(size_t l, const std::string& from, const std::string& to) {
  const std::string i = "i" + std::to_string(l);
  loops_[l] = i;
  f_.open("for (int64_t " + i + " = " + from + "; " + i + " < " + to + "; ++" + i + ")");
}

bool KernelWriter::is_independent() const {
  return !k_.sequential && k_.updates.empty() && !k_.scan;
}

void KernelWriter::nest(size_t l) {
  if (l == k_.outer) return point();
  const bool is_part = l == 0 && !in_grid_;
  const std::string from = is_part ? "begin" : "0", to = is_part ? "end" : text(k_.loops[l].size);
  if ((parallel_ >> l & 1) != 0) {
    compute(l + 1, 0);
    return nest(l + 1);
  }
  if (!is_part && k_.loops[l].size == 1) {
    loops_[l] = "0";
    compute(l + 1, 0);
    return nest(l + 1);
  }
  if (l + 1 == k_.outer && outer_strips_pay()) return outer_strips(l, from, to);
  if (tests_strips(l)) return tested_strips(l, from, to);
  loop_over(l, from, to, l + 1 == k_.outer && k_.outer == k_.loops.size() && is_independent());
}

void KernelWriter::loop_over(size_t l, const std::string& from, const std::string& to, bool independent) {
  if (independent) f_.statement(f_.unit.independent(k_.loops[l].size));
  open_loop(l, from, to);
  compute(l + 1, 0);
  nest(l + 1);
  f_.close();
}

bool KernelWriter::tests_strips(size_t l) const {
  if (l + 1 != k_.loops.size() || k_.outer != k_.loops.size() || k_.lanes < 2 || k_.lane_loop != l ||
      k_.loops[l].size < kStrip)
    return false;
  if (!is_independent()) return false;
  bool found = false;
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    const Expr& e = k_.exprs[k];
    if (e.op == ExprOp::kWhile) return false;
    const bool reduces = e.opcode == COLLET_OP_SINE || e.opcode == COLLET_OP_COSINE || e.opcode == COLLET_OP_TAN;
    found = found || (e.op == ExprOp::kOp && reduces && !is_complex(e.type) &&
                      passes_.level_of(static_cast<ExprId>(k)) == l + 1);
  }
  return found;
}

void KernelWriter::tested_strips(size_t l, const std::string& from, const std::string& to) {
  const std::string j = "j" + std::to_string(l), strip = text(kStrip);
  std::string whole = text(k_.loops[l].size / kStrip * kStrip);
  if (l == 0) {
    whole = "whole";
    f_.statement("const int64_t whole = begin + (end - begin) / " + strip + " * " + strip + ";");
  }
  const auto each = [&](bool independent, const std::function<void()>& inside) {
    if (independent) f_.statement(f_.unit.strip());
    f_.open("for (int64_t l = 0; l < " + strip + "; ++l)");
    loops_[l] = "(" + j + " + l)";
    inside();
    f_.close();
  };
  const auto points = [&] {
    compute(l + 1, 0);
    point();
  };
  f_.open("for (int64_t " + j + " = " + from + "; " + j + " < " + whole + "; " + j + " += " + strip + ")");
  f_.statement("bool large = false;");
  each(false, [&] {
    std::vector<Id> tests;
    f_.large.tests = &tests;
    compute(l + 1, 0);
    f_.large.tests = nullptr;
    for (const Id test : tests) f_.statement("large |= $a0;", {test});
  });
  f_.open("if (large)");
  each(false, points);
  f_.close();
  f_.open("else");
  f_.large.unlikely = true;
  each(true, points);
  f_.large.unlikely = false;
  f_.close();
  f_.close();
  if (l == 0 || k_.loops[l].size % kStrip != 0) loop_over(l, whole, to, false);
}

bool KernelWriter::outer_strips_pay() const {
  const size_t l = k_.outer - 1;
  if (k_.lanes < 2 || k_.lane_loop != l || k_.loops[l].size < kStrip || k_.reductions.empty() || !is_independent())
    return false;
  if (passes_.last() > 1) return false;
  for (const Reduction& r : k_.reductions) {
    for (const ExprId init : r.inits) {
      if (passes_.level_of(init) == k_.outer) return false;
    }
  }
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    const Expr& e = k_.exprs[k];
    // What depends on the loop in lanes alone is computed at each step of the inner loops.
    const bool again =
        passes_.level_of(static_cast<ExprId>(k)) == k_.outer && passes_.stage_of(static_cast<ExprId>(k)) == 0;
    if (e.op == ExprOp::kWhile || (again && e.op == ExprOp::kOp && is_expensive(e.opcode))) return false;
  }
  return std::none_of(k_.stores.begin(), k_.stores.end(), [&](const Store& s) { return passes_.is_inner(s); });
}

void KernelWriter::outer_strips(size_t l, const std::string& from, const std::string& to) {
  const std::string i = "i" + std::to_string(l), j = "j" + std::to_string(l), strip = text(kStrip);
  std::string whole = text(k_.loops[l].size / kStrip * kStrip);
  if (l == 0) {
    whole = "whole";
    f_.statement("const int64_t whole = begin + (end - begin) / " + strip + " * " + strip + ";");
  }
  f_.open("for (int64_t " + j + " = " + from + "; " + j + " < " + whole + "; " + j + " += " + strip + ")");
  form_ = Form::kOuterStrips;
  reductions_.clear();
  for (size_t r = 0; r < k_.reductions.size(); ++r) {
    if (used_[r]) reductions_.push_back(r);
  }
  for (const size_t r : reductions_) declare_accumulators(r);
  inner_loops(k_.outer, 0);
  each_lane([&] {
    compute(k_.outer, 0);
    for (const size_t r : reductions_) finish(r);
    compute(k_.outer, 1);
    for (const Store& s : k_.stores) store(s);
  });
  form_ = Form::kPlain;
  f_.close();
  if (l == 0 || k_.loops[l].size % kStrip != 0) loop_over(l, whole, to, false);
}

void KernelWriter::each_lane(const std::function<void()>& body) {
  f_.statement(f_.unit.strip());
  f_.open("for (int64_t l = 0; l < " + text(kStrip) + "; ++l)");
  const size_t lane = form_ == Form::kOuterStrips ? k_.outer - 1 : k_.loops.size() - 1;
  loops_[lane] = "(j" + std::to_string(lane) + " + l)";
  body();
  f_.close();
}

void KernelWriter::point() {
  if (k_.scan) return scan();
  for (const ExprId id : k_.kept) {
    const std::string name = f_.fresh("kept");
    f_.statement(value_type(at(id).type) + " " + name + "[" + text(inner_points(k_)) + "];");
    kept_[static_cast<size_t>(id)] = name;
  }
  for (int p = 0; p <= passes_.last(); ++p) {
    if (p > 0) compute(k_.outer, p);
    pass(p);
  }
  for (const Store& s : k_.stores) {
    if (!passes_.is_inner(s)) store(s);
  }
  for (const Update& u : k_.updates) update(u);
}

void KernelWriter::put(uint32_t number, uint32_t type, Id at, const Val& x, Id mask) {
  const Id array = buffer(number, type);
  if (mask != kNoId) f_.open("if ($a0)", {mask});
  if (is_complex(type)) {
    f_.statement("$p2[$a0] = $v1;", {part_of_complex(at, 0), x.v, array});
    f_.statement("$p2[$a0] = $v1;", {part_of_complex(at, 1), x.im, array});
  } else {
    f_.statement("$p2[$a0] = $a1;", {at, to_memory(f_, x.v, type), array});
  }
  if (mask != kNoId) f_.close();
}

void KernelWriter::store(const Store& s) {
  put(s.buffer, at(s.value).type, index(s.index), val(s.value), s.mask == kNoExpr ? kNoId : val(s.mask).v);
}

void KernelWriter::update(const Update& u) {
  if (u.mask != kNoExpr) f_.open("if ($a0)", {val(u.mask).v});
  const Id place = index(u.index);
  std::vector<Val> arguments;
  for (size_t i = 0; i < u.buffers.size(); ++i)
    arguments.push_back(element(u.types[i], buffer(u.buffers[i], u.types[i]), place, kNoId));
  for (const ExprId id : u.values) arguments.push_back(val(id));
  std::vector<Val> results;
  if (u.combine == COLLET_COMBINE_OTHER) {
    results = body(u.body, arguments);
  } else {
    const Val x = combine(f_, u.combine, u.types[0], arguments[0], arguments[1]);
    const bool computes = u.combine != COLLET_COMBINE_FIRST && u.combine != COLLET_COMBINE_SECOND;
    results = {computes ? rounded(f_, u.types[0], x) : x};
  }
  for (size_t i = 0; i < results.size(); ++i) put(u.buffers[i], u.types[i], place, results[i], kNoId);
  if (u.mask != kNoExpr) f_.close();
}

// Passes over the inner loops.

KernelWriter::Form KernelWriter::form_of(const std::vector<size_t>& reductions, int number) const {
  const size_t last = k_.loops.size() - 1;
  if (k_.lanes < 2 || k_.lane_loop != last || k_.loops[last].size < kStrip) return Form::kPlain;
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    if (k_.exprs[k].op == ExprOp::kWhile && passes_.needs(number, k)) return Form::kPlain;
  }
  const bool known = std::all_of(reductions.begin(), reductions.end(),
                                 [&](size_t r) { return k_.reductions[r].combine != COLLET_COMBINE_OTHER; });
  const bool floats =
      std::any_of(reductions.begin(), reductions.end(), [&](size_t r) { return is_float(k_.reductions[r].types[0]); });
  const bool products =
      std::any_of(reductions.begin(), reductions.end(), [&](size_t r) { return is_float_product(k_.reductions[r]); });
  return known && floats && !products ? Form::kInnerStrips : Form::kPlain;
}

void KernelWriter::declare_accumulators(size_t r) {
  const Reduction& red = k_.reductions[r];
  const bool is_other = red.combine == COLLET_COMBINE_OTHER;
  accumulators_[r].clear();
  // Additions of floats to one accumulator, by loops from the innermost on.
  blocks_ = {};
  int64_t inside = 1;
  if (group_ != 0 && inner_points(k_) > kBlock * group_) blocks_ = {k_.outer, kBlock * group_};
  for (size_t l = k_.loops.size(); group_ == 0 && l-- > k_.outer;) {
    const int64_t width = form_ == Form::kInnerStrips && l + 1 == k_.loops.size() ? kStrip : 1;
    const int64_t steps = (k_.loops[l].size + width - 1) / width;
    if (inside * steps > kBlock) {
      blocks_ = {l, std::max<int64_t>(kBlock / inside, 1) * width};
      break;
    }
    inside *= steps;
  }
  for (size_t i = 0; i < red.types.size(); ++i) {
    Accumulator a;
    a.type = red.types[i];
    a.in_strip = form_ != Form::kPlain;
    a.blocks = red.combine == COLLET_COMBINE_ADD && is_float(a.type) && blocks_.loop != SIZE_MAX;
    const Val first = is_other ? val(red.inits[i]) : identity(f_, red.combine, a.type);
    const std::string type = value_type(a.type);
    for (const Id part : {first.v, first.im}) {
      if (part == kNoId) continue;
      const std::string name = f_.fresh(is_other ? "held" : red.combine == COLLET_COMBINE_ADD ? "sum" : "fold");
      a.names.push_back(name);
      if (!a.in_strip) {
        f_.statement(type + " " + name + " = $a0;", {part});
        if (a.blocks) f_.statement(type + " total_" + name + " = -0.0f, lost_" + name + " = 0;");
        continue;
      }
      const std::string size = "[" + text(kStrip) + "]";
      f_.statement(type + " " + name + size + (a.blocks ? ", total_" + name + size + ", lost_" + name + size : "") +
                   ";");
      each_lane([&] {
        f_.statement(name + "[l] = $a0;", {part});
        if (!a.blocks) return;
        f_.statement("total_" + name + "[l] = -0.0f;");
        f_.statement("lost_" + name + "[l] = 0;");
      });
    }
    accumulators_[r].push_back(std::move(a));
  }
}

Val KernelWriter::read(const Accumulator& a, bool total) {
  std::vector<Id> parts;
  for (const std::string& name : a.names) {
    const std::string type = value_type(a.type);
    Id part = f_.variable(type, place(a, (total ? "total_" : "") + name));
    if (total) {
      // The rounding errors of infinite sums are not numbers; without errors, the sign of a zero stays.
      const Id lost = f_.variable(type, place(a, "lost_" + name));
      const Id all = f_.binary(type, "+", part, lost);
      part = f_.value(type, f_.unit.math("fabs", type == "double") + "($v0) > 0 ? $v1 : $v2", {lost, all, part},
                      Level::kConditional);
    }
    parts.push_back(part);
  }
  return {parts[0], parts.size() > 1 ? parts[1] : kNoId};
}

void KernelWriter::write(const Accumulator& a, const Val& x) {
  // Both parts are computed before the first is written.
  if (a.names.size() == 1) return f_.statement(place(a, a.names[0]) + " = $a0;", {x.v});
  f_.statement(place(a, a.names[0]) + " = $v0;", {x.v});
  f_.statement(place(a, a.names[1]) + " = $v0;", {x.im});
}

void KernelWriter::find_reductions_of(int number) {
  reductions_.clear();
  for (size_t r = 0; r < k_.reductions.size(); ++r) {
    if (passes_.reduction_pass(r) == number && used_[r]) reductions_.push_back(r);
  }
}

bool KernelWriter::stores_in(int number) const {
  return std::any_of(k_.stores.begin(), k_.stores.end(),
                     [&](const Store& s) { return passes_.is_inner(s) && passes_.pass_of(s) == number; });
}

void KernelWriter::pass(int number) {
  find_reductions_of(number);
  if (reductions_.empty() && !stores_in(number)) return;
  form_ = reductions_.empty() || k_.outer == k_.loops.size() ? Form::kPlain : form_of(reductions_, number);
  for (const size_t r : reductions_) declare_accumulators(r);
  inner_loops(k_.outer, number);
  const auto finish_all = [&] {
    for (const size_t r : reductions_) finish(r);
  };
  if (form_ == Form::kInnerStrips) {  // adds the upper half of the accumulators to the lower one
    for (const size_t r : reductions_) {
      for (Accumulator& a : accumulators_[r]) {
        if (!a.blocks) continue;
        each_lane([&] { write(a, read(a, true)); });
        a.blocks = false;
      }
    }
    f_.open("for (int64_t upper = " + text(kStrip / 2) + "; upper > 0; upper /= 2)");
    f_.open("for (int64_t l = 0; l < upper; ++l)");
    for (const size_t r : reductions_) {
      Accumulator& a = accumulators_[r][0];
      Accumulator upper = a;
      upper.in_strip = false;
      for (std::string& name : upper.names) name += "[l + upper]";
      write(a, combine(f_, k_.reductions[r].combine, a.type, read(a), read(upper)));
    }
    f_.close();
    f_.close();
    for (const size_t r : reductions_) {
      Accumulator& a = accumulators_[r][0];
      a.in_strip = false;
      for (std::string& name : a.names) name += "[0]";
    }
  }
  form_ = Form::kPlain;
  finish_all();
}

void KernelWriter::inner_loops(size_t l, int number) {
  if (l == k_.loops.size()) {
    if (form_ != Form::kOuterStrips) return inner_point(number);
    return each_lane([&] {
      compute(k_.outer, 0);
      for (size_t level = k_.outer + 1; level <= k_.loops.size(); ++level) compute_for_pass(level, number);
      inner_point(number);
    });
  }
  const bool last = l + 1 == k_.loops.size();
  const bool strips = form_ == Form::kInnerStrips && last;
  const bool blocks =
      l == blocks_.loop && std::any_of(reductions_.begin(), reductions_.end(), [&](size_t r) {
        return std::any_of(accumulators_[r].begin(), accumulators_[r].end(), [](const auto& a) { return a.blocks; });
      });
  const int64_t size = k_.loops[l].size, whole = strips ? size / kStrip * kStrip : size;
  std::string from = "0", to = text(whole);
  const std::string n = std::to_string(l);
  if (blocks) {
    const std::string steps = text(blocks_.steps);
    f_.open("for (int64_t k" + n + " = 0; k" + n + " < " + to + "; k" + n + " += " + steps + ")");
    if (whole % blocks_.steps != 0) {
      f_.statement("const int64_t end" + n + " = k" + n + " + " + steps + " < " + to + " ? k" + n + " + " + steps +
                   " : " + to + ";");
      to = "end" + n;
    } else {
      to = "k" + n + " + " + steps;
    }
    from = "k" + n;
  }
  if (strips) {
    f_.open("for (int64_t j" + n + " = " + from + "; j" + n + " < " + to + "; j" + n + " += " + text(kStrip) + ")");
    each_lane([&] {
      compute_for_pass(l + 1, number);
      inner_point(number);
    });
    f_.close();
  } else {
    if (last && reductions_.empty() && is_independent()) f_.statement(f_.unit.independent(size));
    open_loop(l, from, to);
    if (form_ != Form::kOuterStrips) compute_for_pass(l + 1, number);
    inner_loops(l + 1, number);
    f_.close();
  }
  if (blocks) {
    add_blocks();
    f_.close();
  }
  if (!strips || whole == size) return;
  // The rest of the row: one element for each of the first accumulators.
  f_.open("for (int64_t l = 0; l < " + text(size - whole) + "; ++l)");
  loops_[l] = "(l + " + text(whole) + ")";
  compute_for_pass(l + 1, number);
  inner_point(number);
  f_.close();
  if (blocks) add_blocks();
}

void KernelWriter::add_blocks() {
  const auto all = [&] {
    for (const size_t r : reductions_) {
      for (const Accumulator& a : accumulators_[r]) {
        if (a.blocks) add_block(a);
      }
    }
  };
  if (form_ == Form::kPlain) return all();
  each_lane(all);
}

void KernelWriter::add_block(const Accumulator& a) {
  for (const std::string& own : a.names) {
    const std::string type = value_type(a.type), name = place(a, own), total = place(a, "total_" + own);
    const Id x = f_.variable(type, total), y = f_.variable(type, name);
    const Id s = f_.binary(type, "+", x, y), t = f_.binary(type, "-", s, x);
    const Id lost =
        f_.binary(type, "+", f_.binary(type, "-", x, f_.binary(type, "-", s, t)), f_.binary(type, "-", y, t));
    const std::string kept = place(a, "lost_" + own);
    const Id e = f_.binary(type, "+", f_.variable(type, kept), lost);
    const Id c = f_.binary(type, "+", s, e), u = f_.binary(type, "-", c, s);
    const Id rest =
        f_.binary(type, "+", f_.binary(type, "-", s, f_.binary(type, "-", c, u)), f_.binary(type, "-", e, u));
    // An infinite sum has a NaN for an error.
    f_.statement(total + " = " + f_.unit.math("fabs", type == "double") + "($v0) > 0 ? $v1 : $v2;", {e, c, s});
    f_.statement(kept + " = $a0;", {rest});
    f_.statement(name + " = -0.0f;");
  }
}

void KernelWriter::inner_point(int number) {
  for (const size_t r : reductions_) accumulate(r);
  if (form_ == Form::kOuterStrips) return;
  for (const Store& s : k_.stores) {
    if (passes_.is_inner(s) && passes_.pass_of(s) == number) store(s);
  }
}

void KernelWriter::accumulate(size_t r) {
  const Reduction& red = k_.reductions[r];
  std::vector<Accumulator>& all = accumulators_[r];
  const Id condition = red.condition == kNoExpr ? kNoId : val(red.condition).v;
  if (red.combine != COLLET_COMBINE_OTHER) {
    Val x = val(red.inputs[0]);
    if (condition != kNoId) {
      const Val none = identity(f_, red.combine, red.types[0]);
      x = {f_.select(condition, x.v, none.v), x.im == kNoId ? kNoId : f_.select(condition, x.im, none.im)};
    }
    return write(all[0], combine(f_, red.combine, red.types[0], read(all[0]), x));
  }
  std::vector<Val> arguments;
  for (const Accumulator& a : all) arguments.push_back(read(a));
  for (const ExprId id : red.inputs) arguments.push_back(val(id));
  const std::vector<Val> next = body(red.body, arguments);
  for (size_t i = 0; i < all.size(); ++i) {
    const auto change = [&](const std::string& name, Id x) {
      if (condition == kNoId) return f_.statement(place(all[i], name) + " = $v0;", {x});
      f_.statement(place(all[i], name) + " = $c0 ? $v1 : " + place(all[i], name) + ";", {condition, x});
    };
    change(all[i].names[0], next[i].v);
    if (all[i].names.size() > 1) change(all[i].names[1], next[i].im);
  }
}

void KernelWriter::finish(size_t r) {
  const Reduction& red = k_.reductions[r];
  reduced_[r].clear();
  for (size_t i = 0; i < accumulators_[r].size(); ++i) {
    const Accumulator& a = accumulators_[r][i];
    if (a.blocks) {
      // The last block may not have been added yet.
      Val x = read(a, true);
      const Val y = read(a);
      x = combine(f_, red.combine, a.type, x, y);
      reduced_[r].push_back(x);
    } else {
      reduced_[r].push_back(read(a));
    }
    reduced_[r].back() = finished(red, a.type, reduced_[r].back());
  }
}

Val KernelWriter::finished(const Reduction& r, uint32_t type, Val x) {
  if (r.combine == COLLET_COMBINE_OTHER) return x;
  if (r.inits[0] != kNoExpr) x = combine(f_, r.combine, type, x, val(r.inits[0]));
  return rounded(f_, type, x);
}

void KernelWriter::scan() {
  const Scan& s = *k_.scan;
  const Reduction& r = s.reduction;
  const size_t l = k_.outer;
  std::vector<Accumulator>& held = accumulators_.emplace_back();
  const bool is_other = r.combine == COLLET_COMBINE_OTHER;
  for (size_t i = 0; i < r.types.size(); ++i) {
    Accumulator& a = held.emplace_back();
    a.type = r.types[i];
    a.blocks = r.combine == COLLET_COMBINE_ADD && is_float(a.type);
    const Val first = r.inits[i] == kNoExpr ? identity(f_, r.combine, a.type) : val(r.inits[i]);
    for (const Id part : {first.v, first.im}) {
      if (part == kNoId) continue;
      a.names.push_back(f_.fresh(is_other ? "held" : a.blocks ? "sum" : "fold"));
      f_.statement(value_type(a.type) + " " + (a.blocks ? "total_" : "") + a.names.back() + " = $a0;", {part});
      if (a.blocks) f_.statement(value_type(a.type) + " lost_" + a.names.back() + " = 0;");
    }
  }
  std::string begun;
  if (s.fresh) {
    begun = f_.fresh("begun");
    f_.statement("bool " + begun + " = false;");
  }
  const std::string i = "i" + std::to_string(l), size = text(k_.loops[l].size);
  loops_[l] = i;
  f_.open(s.reverse ? "for (int64_t " + i + " = " + size + " - 1; " + i + " >= 0; --" + i + ")"
                    : "for (int64_t " + i + " = 0; " + i + " < " + size + "; ++" + i + ")");
  compute(l + 1, 0);
  scanned_ = scan_step(s, held, begun);
  for (size_t k = 0; k < k_.exprs.size(); ++k) {
    if (k_.exprs[k].op == ExprOp::kScanned) vals_[k] = scanned_[static_cast<size_t>(k_.exprs[k].a)];
  }
  for (const Store& one : k_.stores) store(one);
  f_.close();
  accumulators_.pop_back();
}

std::vector<Val> KernelWriter::scan_step(const Scan& s, const std::vector<Accumulator>& held,
                                         const std::string& begun) {
  const Reduction& r = s.reduction;
  const Id condition = r.condition == kNoExpr ? kNoId : val(r.condition).v;
  if (r.combine != COLLET_COMBINE_OTHER) {
    const Accumulator& a = held[0];
    Val x = val(r.inputs[0]);
    if (condition != kNoId) {
      const Val none = identity(f_, r.combine, a.type);
      x = {f_.select(condition, x.v, none.v), x.im == kNoId ? kNoId : f_.select(condition, x.im, none.im)};
    }
    if (!a.blocks) {
      write(a, combine(f_, r.combine, a.type, read(a), x));
      return {rounded(f_, a.type, read(a))};
    }
    for (size_t part = 0; part < a.names.size(); ++part) {  // each element is a block
      const std::string type = value_type(a.type);
      f_.statement(type + " " + a.names[part] + " = $a0;", {part == 0 ? x.v : x.im});
    }
    add_block(a);
    return {rounded(f_, a.type, read(a, true))};
  }
  std::vector<Val> before, input;
  for (size_t i = 0; i < held.size(); ++i) {
    before.push_back(read(held[i]));
    input.push_back(val(r.inputs[i]));
  }
  const auto combined = [&](const std::vector<Val>& x, const std::vector<Val>& y) {
    std::vector<Val> arguments = x;
    arguments.insert(arguments.end(), y.begin(), y.end());
    return body(r.body, arguments);
  };
  const auto choose = [&](Id p, const std::vector<Val>& x, const std::vector<Val>& y) {
    std::vector<Val> out;
    for (size_t i = 0; i < x.size(); ++i)
      out.push_back({f_.select(p, x[i].v, y[i].v), x[i].im == kNoId ? kNoId : f_.select(p, x[i].im, y[i].im)});
    return out;
  };
  std::vector<Val> next = s.reverse ? combined(input, before) : combined(before, input);
  Id started = kNoId;
  if (s.fresh) {
    const Id was = f_.variable("bool", begun);
    next = choose(was, next, input);
    started = condition == kNoId ? f_.constant("bool", "true") : f_.binary("bool", "|", was, condition);
  }
  if (condition != kNoId) next = choose(condition, next, before);
  std::vector<Val> results = next;
  if (s.fresh) {
    std::vector<Val> initial;
    for (const ExprId id : r.inits) initial.push_back(val(id));
    results = choose(started, combined(initial, next), initial);
  }
  std::vector<std::pair<std::string, Id>> changes;
  for (size_t i = 0; i < held.size(); ++i) {
    changes.emplace_back(held[i].names[0], next[i].v);
    if (held[i].names.size() > 1) changes.emplace_back(held[i].names[1], next[i].im);
  }
  if (s.fresh) changes.emplace_back(begun, started);
  for (const auto& [name, x] : changes) f_.statement(name + " = $v0;", {x});
  return results;
}

void write_comparator(Unit& unit, const ScalarBody& body, const std::vector<uint32_t>& types, const std::string& name) {
  Function f(unit);
  KernelWriter(f, Kernel()).compare(body, types);
  unit.add(f.print("static uint8_t " + name + "(" + unit.places("*buffers") + ", int64_t i, int64_t j)"));
}

std::string comment(std::string text) {
  for (size_t at = text.find("*/"); at != std::string::npos; at = text.find("*/", at)) text.replace(at, 2, "* ");
  // A question mark or a backslash may begin what is no part of the comment.
  for (char& c : text) {
    if (c == '?' || c == '\\' || c == '\n') c = ' ';
  }
  for (size_t at = text.find("/*"); at != std::string::npos; at = text.find("/*", at)) text.replace(at, 2, "/ ");
  return "/* " + text + " */\n";
}

void write_kernel(Unit& unit, const Kernel& kernel, const std::string& name, const std::string& ops) {
  Function f(unit);
  KernelWriter(f, kernel).run();
  const std::string head =
      "static void " + unit.part(name) + "(" + unit.places("*buffers") + ", int64_t begin, int64_t end)";
  unit.add((ops.empty() ? "" : comment(ops)) + f.print(head));
}

}  // namespace collet::codegen::source
