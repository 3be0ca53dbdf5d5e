// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/kernel_text.h>

#include <cctype>
#include <charconv>
#include <cstring>
#include <string>
#include <utility>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/kernel/literal.h"
#include "sdk/codegen/kernel/names.h"

namespace collet::codegen {
namespace {

constexpr size_t kMostLoops = 64;  ///< sets of loops are stored as the bits of a 64-bit word

/// A word, a number, a name with its sign, or one character.
struct Token {
  enum Kind : uint8_t { kEnd, kWord, kNumber, kExpr, kSymbol } kind = kEnd;
  std::string_view text;
  int line = 1;
  int column = 1;
};

bool is_word_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_word(char c) {
  return is_word_start(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// True for names such as i7 (a loop), b2 (a buffer) or r0 (a reduction).
bool is_numbered(std::string_view word) {
  if (word.size() < 2 || (word[0] != 'i' && word[0] != 'b' && word[0] != 'r')) return false;
  return word.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Token next() {
    skip();
    Token t;
    t.line = line_;
    t.column = static_cast<int>(at_ - line_start_) + 1;
    if (at_ >= text_.size()) return t;
    const size_t begin = at_;
    const char c = text_[at_++];
    if (is_word_start(c)) {
      t.kind = Token::kWord;
      take_word(begin);
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      t.kind = Token::kNumber;
      take_number();
    } else if (c == '%') {
      t.kind = Token::kExpr;
      while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    } else {
      t.kind = Token::kSymbol;
    }
    t.text = text_.substr(begin, at_ - begin);
    return t;
  }

 private:
  void skip() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ';' || (c == '/' && text_.substr(at_, 2) == "//")) {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '\n') {
        ++at_;
        ++line_;
        line_start_ = at_;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else {
        return;
      }
    }
  }

  /// Reads a word. Names of ops may contain hyphens; names of loops may not, so that i0-1 is a difference.
  void take_word(size_t begin) {
    while (at_ < text_.size()) {
      if (is_word(text_[at_])) {
        ++at_;
        continue;
      }
      const bool hyphen = text_[at_] == '-' && at_ + 1 < text_.size() && is_word_start(text_[at_ + 1]);
      if (!hyphen || is_numbered(text_.substr(begin, at_ - begin))) return;
      ++at_;
    }
  }

  /// Reads a number: digits, and the other characters that floats and hexadecimal numbers contain.
  void take_number() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool exponent_sign = (c == '-' || c == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
      if (!is_word(c) && c != '.' && !exponent_sign) return;
      ++at_;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) { token_ = lexer_.next(); }

  Status run(Kernel& out);

 private:
  // Each function below that returns bool returns false on failure, and then error_ says why.
  bool kernel(Kernel& k);
  bool loops(Kernel& k);
  bool how_loop_runs(Loop& l);
  bool passes(Kernel& k);
  /// Reads an integer of at least 1.
  bool count(int& out, const char* what);
  bool statement(Kernel& k);
  bool reduction(Kernel& k);
  bool reduction(Reduction& r, bool* reverse, bool* fresh);
  bool store(Kernel& k);
  bool update(Kernel& k);
  bool body(ScalarBody& out, const char* name);
  /// Reads "%n = ...", where n is the next number in `exprs`.
  bool expr(std::vector<Expr>& exprs, bool in_body);
  bool expr_of(std::string_view word, const Token& at, Expr& e, bool in_body);
  bool operation(std::string_view word, const Token& at, Expr& e);
  bool while_loop(Expr& e);
  bool lookup(Expr& e);

  bool index(Index& out);
  bool index_term(Index& out, bool negative);
  /// Reads the name of an expression that is defined already.
  bool value(ExprId& out);
  bool values(std::vector<ExprId>& out, bool may_be_identity);
  bool typed_values(std::vector<uint32_t>& types, std::vector<ExprId>& out);
  bool mask(ExprId& out);
  bool type(uint32_t& out);
  bool element(uint32_t type, std::array<uint64_t, 2>& bits);
  bool half(uint32_t type, uint64_t& bits);
  template <size_t N>
  bool one_of(const std::array<std::string_view, N>& names, const char* what, size_t& out);
  bool integer(int64_t& out);
  bool unsigned_number(std::string_view text, uint64_t limit, uint64_t& out) const;
  /// Reads a name such as "i3", "b3" or "r3", and returns its number in `out`.
  bool numbered(char letter, const char* what, uint64_t limit, uint64_t& out);

  bool is(std::string_view text) const { return token_.kind != Token::kEnd && token_.text == text; }
  bool take(std::string_view text) {
    if (!is(text)) return false;
    advance();
    return true;
  }
  bool expect(std::string_view text) { return take(text) || fail("'" + std::string(text) + "'"); }
  void advance() {
    last_ = token_;
    token_ = lexer_.next();
  }
  bool fail(const std::string& expected) {
    std::string found = token_.kind == Token::kEnd ? "the end of the text" : "'" + printable(token_.text) + "'";
    return complain(token_, "expected " + expected + ", found " + found);
  }
  bool complain(const Token& at, const std::string& message) {
    if (error_.empty()) error_ = std::to_string(at.line) + ":" + std::to_string(at.column) + ": " + message;
    return false;
  }
  /// Returns a part of the text for a message: shortened, without unprintable characters.
  static std::string printable(std::string_view text) {
    std::string out;
    for (char c : text.substr(0, 40)) out += std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '?';
    return out;
  }

  Lexer lexer_;
  Token token_;
  Token last_;
  std::string error_;
  size_t loops_ = 0;  ///< number of loops that an index may name; 0 in bodies
  uint64_t buffers_ = 0;
  size_t exprs_ = 0;              ///< number of expressions that are defined so far
  std::vector<bool> reductions_;  ///< by number: whether the reduction is defined so far
  bool scan_ = false;
  int depth_ = 0;
};

template <size_t N>
bool Parser::one_of(const std::array<std::string_view, N>& names, const char* what, size_t& out) {
  out = token_.kind == Token::kWord ? number_of(names, token_.text) : N;
  if (out == N) return fail(what);
  advance();
  return true;
}

bool Parser::unsigned_number(std::string_view text, uint64_t limit, uint64_t& out) const {
  const auto end = std::from_chars(text.data(), text.data() + text.size(), out);
  return end.ec == std::errc() && end.ptr == text.data() + text.size() && out < limit;
}

bool Parser::integer(int64_t& out) {
  const bool negative = take("-");
  uint64_t size = 0;
  const uint64_t limit = (uint64_t{1} << 63) + (negative ? 1 : 0);
  if (token_.kind != Token::kNumber || !unsigned_number(token_.text, limit, size)) return fail("an integer");
  advance();
  out = static_cast<int64_t>(negative ? 0 - size : size);
  return true;
}

bool Parser::numbered(char letter, const char* what, uint64_t limit, uint64_t& out) {
  const bool named = token_.kind == Token::kWord && is_numbered(token_.text) && token_.text[0] == letter;
  if (!named || !unsigned_number(token_.text.substr(1), limit, out)) return fail(what);
  advance();
  return true;
}

bool Parser::value(ExprId& out) {
  uint64_t id = 0;
  if (token_.kind != Token::kExpr || !unsigned_number(token_.text.substr(1), exprs_, id)) {
    return fail("an expression that is defined before");
  }
  advance();
  out = static_cast<ExprId>(id);
  return true;
}

bool Parser::values(std::vector<ExprId>& out, bool may_be_identity) {
  do {
    if (may_be_identity && take("identity")) {
      out.push_back(kNoExpr);
    } else if (!value(out.emplace_back())) {
      return false;
    }
  } while (take(","));
  return true;
}

bool Parser::typed_values(std::vector<uint32_t>& types, std::vector<ExprId>& out) {
  do {
    if (!type(types.emplace_back()) || !value(out.emplace_back())) return false;
  } while (take(","));
  return true;
}

bool Parser::mask(ExprId& out) {
  return !take("if") || value(out);
}

bool Parser::type(uint32_t& out) {
  if (token_.kind == Token::kWord) {
    for (uint32_t t = 1; t < COLLET_TYPE_LIMIT; ++t) {
      if (collet_type_bytes(t) == 0 || token_.text != collet_type_name(t)) continue;
      out = t;
      advance();
      return true;
    }
  }
  return fail("an element type");
}

bool Parser::half(uint32_t type, uint64_t& bits) {
  const Token start = token_;
  std::string text = take("-") ? "-" : "";
  const bool literal = token_.kind == Token::kNumber || is("true") || is("false");
  if (literal) text += token_.text;
  if (!literal || !parse_number(type, text, bits)) {
    return complain(start, "expected a number of type " + std::string(collet_type_name(half_type(type))) + ", found '" +
                               printable(token_.text) + "'");
  }
  advance();
  return true;
}

bool Parser::element(uint32_t type, std::array<uint64_t, 2>& bits) {
  bits = {};
  if (collet_type_kind(type) != COLLET_KIND_COMPLEX) return half(type, bits[0]);
  uint64_t re = 0;
  uint64_t im = 0;
  if (!expect("(") || !half(type, re) || !expect(",") || !half(type, im) || !expect(")")) return false;
  if (type == COLLET_TYPE_C64) {
    bits[0] = re | im << 32;
  } else {
    bits = {re, im};
  }
  return true;
}

bool Parser::index_term(Index& out, bool negative) {
  int64_t factor = negative ? -1 : 1;
  if (token_.kind == Token::kNumber) {
    uint64_t size = 0;
    const uint64_t limit = (uint64_t{1} << 63) + (negative ? 1 : 0);
    if (!unsigned_number(token_.text, limit, size)) return fail("an integer of 64 bits");
    advance();
    factor = static_cast<int64_t>(negative ? 0 - size : size);
    if (!take("*")) {
      return !__builtin_add_overflow(out.constant, factor, &out.constant) || complain(last_, "the sum overflows");
    }
  }
  if (token_.kind == Token::kExpr) {
    ExprId id = kNoExpr;
    if (!value(id)) return false;
    out.terms.emplace_back(id, factor);
    return true;
  }
  uint64_t l = 0;
  if (!numbered('i', loops_ == 0 ? "an expression" : "a loop variable or an expression", loops_, l)) return false;
  if (l >= out.coefficients.size()) out.coefficients.resize(l + 1, 0);
  return !__builtin_add_overflow(out.coefficients[l], factor, &out.coefficients[l]) ||
         complain(last_, "the sum overflows");
}

bool Parser::index(Index& out) {
  bool negative = take("-");
  for (;;) {
    if (!index_term(out, negative)) return false;
    negative = is("-");
    if (!take("+") && !take("-")) break;
  }
  while (!out.coefficients.empty() && out.coefficients.back() == 0) out.coefficients.pop_back();
  return true;
}

bool Parser::body(ScalarBody& out, const char* name) {
  if (!expect(name) || !expect("(")) return false;
  uint64_t arguments = 0;
  if (token_.kind != Token::kNumber || !unsigned_number(token_.text, uint64_t{1} << 20, arguments)) {
    return fail("the number of arguments");
  }
  advance();
  if (!expect(")") || !expect("{")) return false;
  if (++depth_ > kDeepestBody) return complain(last_, "bodies are nested too deeply");
  out.arguments = static_cast<uint32_t>(arguments);
  const size_t loops = std::exchange(loops_, 0);
  const size_t exprs = std::exchange(exprs_, 0);
  while (token_.kind == Token::kExpr) {
    if (!expr(out.exprs, true)) return false;
  }
  if (!is("yield")) return fail("an expression or 'yield'");
  advance();
  if (token_.kind == Token::kExpr && !values(out.results, false)) return false;
  loops_ = loops;
  exprs_ = exprs;
  --depth_;
  return expect("}");
}

bool Parser::operation(std::string_view word, const Token& at, Expr& e) {
  for (uint32_t opcode = 1; opcode < COLLET_OP_LIMIT; ++opcode) {
    if (word == collet_op_name(opcode)) e.opcode = opcode;
  }
  if (e.opcode == 0) return complain(at, "there is no op '" + printable(word) + "'");
  e.op = ExprOp::kOp;
  if (!type(e.type) || !values(e.args, false)) return false;
  if (e.opcode == COLLET_OP_COMPARE) {
    size_t direction = 0;
    size_t how = 0;
    if (!one_of(kDirectionNames, "eq, ne, ge, gt, le or lt", direction)) return false;
    if (!one_of(kCompareNames, "default, float, totalorder, signed or unsigned", how)) return false;
    e.a = static_cast<int64_t>(direction);
    e.b = static_cast<int64_t>(how);
  } else if (e.opcode == COLLET_OP_REDUCE_PRECISION) {
    return expect("exponent") && integer(e.a) && expect("mantissa") && integer(e.b);
  }
  return true;
}

bool Parser::while_loop(Expr& e) {
  e.op = ExprOp::kWhile;
  if (!type(e.type) || !values(e.args, false) || !mask(e.mask) || !expect("{")) return false;
  e.bodies.resize(2);
  return body(e.bodies[0], "condition") && body(e.bodies[1], "body") && expect("}");
}

bool Parser::lookup(Expr& e) {
  e.op = ExprOp::kLookup;
  if (!type(e.type) || !expect("[") || !index(e.index) || !expect("]") || !mask(e.mask)) return false;
  if (!expect("in") || !expect("{")) return false;
  if (take("}")) return true;
  do {
    std::array<uint64_t, 2> bits{};
    if (!element(e.type, bits)) return false;
    char bytes[sizeof bits];
    std::memcpy(bytes, bits.data(), sizeof bits);
    e.table.append(bytes, collet_type_bytes(e.type));
  } while (take(","));
  return expect("}");
}

bool Parser::expr_of(std::string_view word, const Token& at, Expr& e, bool in_body) {
  const auto result_number = [this, &e] { return expect("result") && integer(e.a); };
  if (word == "constant") {
    e.op = ExprOp::kConstant;
    return type(e.type) && element(e.type, e.bits);
  }
  if (word == "index") {
    e.op = ExprOp::kIndex;
    e.type = COLLET_TYPE_S64;
    return index(e.index);
  }
  if (word == "quotient" || word == "modulo") {
    e.op = word == "quotient" ? ExprOp::kDivide : ExprOp::kModulo;
    e.type = COLLET_TYPE_S64;
    return expect("(") && index(e.index) && expect(")") && expect("by") && integer(e.a);
  }
  if (word == "start") {
    e.op = ExprOp::kStart;
    e.type = COLLET_TYPE_S64;
    return value(e.args.emplace_back()) && expect("limit") && integer(e.a);
  }
  if (word == "in_range") {
    e.op = ExprOp::kInRange;
    e.type = COLLET_TYPE_PRED;
    return expect("(") && index(e.index) && expect(")") && expect("below") && integer(e.a);
  }
  if (word == "lookup") return lookup(e);
  if (word == "while") return while_loop(e);
  if (word == "part") {
    e.op = ExprOp::kPart;
    return type(e.type) && value(e.args.emplace_back()) && result_number() && expect("field") && integer(e.b);
  }
  if (in_body && word == "argument") {
    e.op = ExprOp::kArgument;
    return type(e.type) && integer(e.a);
  }
  if (!in_body && word == "load") {
    e.op = ExprOp::kLoad;
    uint64_t buffer = 0;
    if (!type(e.type) || !numbered('b', "a buffer of the kernel", buffers_, buffer)) return false;
    e.buffer = static_cast<uint32_t>(buffer);
    return expect("[") && index(e.index) && expect("]") && mask(e.mask);
  }
  if (!in_body && word == "reduced") {
    e.op = ExprOp::kReduced;
    uint64_t r = 0;
    if (!type(e.type)) return false;
    const Token name = token_;
    if (!numbered('r', "a reduction", INT32_MAX, r)) return false;
    if (r >= reductions_.size() || !reductions_[r]) return complain(name, "this reduction is not defined before");
    e.b = static_cast<int64_t>(r);
    return result_number();
  }
  if (!in_body && word == "scanned") {
    e.op = ExprOp::kScanned;
    if (!scan_) return complain(at, "no scan is defined before");
    return type(e.type) && result_number();
  }
  return operation(word, at, e);
}

bool Parser::expr(std::vector<Expr>& exprs, bool in_body) {
  if (token_.text.substr(1) != std::to_string(exprs.size())) return fail("%" + std::to_string(exprs.size()));
  advance();
  if (!expect("=")) return false;
  if (token_.kind != Token::kWord) return fail("an op");
  const Token at = token_;
  advance();
  Expr e;
  if (!expr_of(at.text, at, e, in_body)) return false;
  exprs.push_back(std::move(e));
  exprs_ = exprs.size();
  return true;
}

bool Parser::reduction(Reduction& r, bool* reverse, bool* fresh) {
  size_t combine = 0;
  if (!one_of(kCombineNames, "how to combine", combine) || !typed_values(r.types, r.inputs)) return false;
  r.combine = static_cast<uint32_t>(combine);
  if (!expect("init") || !values(r.inits, true) || !mask(r.condition)) return false;
  r.contract = take("contract");
  r.tf32 = take("tf32");
  if (reverse) *reverse = take("reverse");
  if (fresh) *fresh = take("fresh");
  return r.combine != COLLET_COMBINE_OTHER || body(r.body, "body");
}

bool Parser::reduction(Kernel& k) {
  uint64_t r = 0;
  // Reductions may be defined in any order, so a higher number may come first. At the end, all numbers up to the
  // highest must be defined.
  if (!numbered('r', "a reduction", k.reductions.size() + 64, r)) return false;
  if (r >= k.reductions.size()) k.reductions.resize(r + 1);
  if (!k.reductions[r].types.empty()) return complain(last_, "r" + std::to_string(r) + " is there already");
  Reduction made;
  if (!expect("=") || !expect("reduce") || !reduction(made, nullptr, nullptr)) return false;
  k.reductions[r] = std::move(made);
  reductions_.resize(k.reductions.size(), false);
  reductions_[r] = true;
  return true;
}

bool Parser::store(Kernel& k) {
  Store s;
  uint64_t buffer = 0;
  if (!numbered('b', "a buffer of the kernel", buffers_, buffer)) return false;
  s.buffer = static_cast<uint32_t>(buffer);
  if (!expect("[") || !index(s.index) || !expect("]") || !expect(",") || !value(s.value) || !mask(s.mask)) return false;
  s.bypasses_caches = take("past");
  if (s.bypasses_caches && !expect("caches")) return false;
  k.stores.push_back(std::move(s));
  return true;
}

bool Parser::update(Kernel& k) {
  Update u;
  size_t combine = 0;
  if (!one_of(kCombineNames, "how to combine", combine)) return false;
  u.combine = static_cast<uint32_t>(combine);
  do {
    uint64_t buffer = 0;
    if (!numbered('b', "a buffer of the kernel", buffers_, buffer)) return false;
    u.buffers.push_back(static_cast<uint32_t>(buffer));
  } while (take(","));
  if (!expect("[") || !index(u.index) || !expect("]") || !typed_values(u.types, u.values) || !mask(u.mask))
    return false;
  if (u.combine == COLLET_COMBINE_OTHER && !body(u.body, "body")) return false;
  k.updates.push_back(std::move(u));
  return true;
}

bool Parser::statement(Kernel& k) {
  if (token_.kind == Token::kExpr) return expr(k.exprs, false);
  if (token_.kind == Token::kWord && is_numbered(token_.text) && token_.text[0] == 'r') return reduction(k);
  if (take("store")) return store(k);
  if (take("update")) return update(k);
  if (is("scan")) {
    if (k.scan) return complain(token_, "a kernel has one scan");
    advance();
    Scan& s = k.scan.emplace();
    scan_ = true;
    return reduction(s.reduction, &s.reverse, &s.fresh);
  }
  return fail("an expression, 'r" + std::to_string(k.reductions.size()) + "', 'scan', 'store', 'update' or '}'");
}

bool Parser::loops(Kernel& k) {
  bool laned = false;
  while (is("outer") || is("inner")) {
    const bool outer = is("outer");
    if (outer && k.outer < k.loops.size()) return complain(token_, "an outer loop within an inner one");
    if (k.loops.size() == kMostLoops) return complain(token_, "more than 64 loops");
    advance();
    const std::string name = "i" + std::to_string(k.loops.size());
    int64_t size = 0;
    if (!expect(name) || !expect(":") || !integer(size)) return false;
    if (is("lanes")) {
      if (laned) return complain(token_, "two loops with lanes");
      laned = true;
      advance();
      if (!count(k.lanes, "lanes")) return false;
      k.lane_loop = k.loops.size();
    }
    k.loops.push_back({size});
    if (!how_loop_runs(k.loops.back())) return false;
    if (outer) k.outer = k.loops.size();
  }
  if (is("no") && !laned && !k.loops.empty()) {
    advance();
    k.lane_loop = k.loops.size();
    if (!expect("lanes")) return false;
  }
  return passes(k);
}

bool Parser::how_loop_runs(Loop& l) {
  if (take("unroll")) {
    l.kind = LoopKind::kUnroll;
  } else if (take("transpose")) {
    l.kind = LoopKind::kTranspose;
  } else if (take("interleave")) {
    l.kind = LoopKind::kInterleave;
    if (!count(l.factor, "iterations at a time")) return false;
  }
  return !take("strip") || (integer(l.strip) && (l.strip > 0 || complain(last_, "a strip has at least 1 iteration")));
}

bool Parser::passes(Kernel& k) {
  while (take("pass")) {
    PassSchedule pass;
    if (!expect(std::to_string(k.passes.size())) || !expect(":") || !expect("lanes") || !count(pass.lanes, "lanes"))
      return false;
    if (!expect("together") || !count(pass.together, "vectors together")) return false;
    k.passes.push_back(pass);
  }
  if (!take("keep")) return true;
  // The expressions follow, so only the verifier can tell whether they exist.
  do {
    uint64_t number = 0;
    if (token_.kind != Token::kExpr || !unsigned_number(token_.text.substr(1), INT32_MAX, number))
      return fail("an expression");
    advance();
    k.kept.push_back(static_cast<ExprId>(number));
  } while (take(","));
  return true;
}

bool Parser::count(int& out, const char* what) {
  int64_t x = 0;
  if (!integer(x)) return false;
  if (x < 1 || x > INT32_MAX) return complain(last_, std::string(what) + " must be at least 1");
  out = static_cast<int>(x);
  return true;
}

bool Parser::kernel(Kernel& k) {
  if (!expect("kernel") || !expect("(")) return false;
  if (token_.kind != Token::kNumber || !unsigned_number(token_.text, uint64_t{1} << 20, buffers_)) {
    return fail("the number of buffers");
  }
  advance();
  k.buffers = static_cast<uint32_t>(buffers_);
  if (!take("buffers") && !take("buffer")) return fail("'buffers'");
  if (!expect(")")) return false;
  k.sequential = take("sequential");
  k.in_parts = take("in_parts");
  k.scalable = take("scalable");
  k.unordered = take("unordered");
  if (!expect("{") || !loops(k)) return false;
  loops_ = k.loops.size();
  while (!is("}")) {
    if (!statement(k)) return false;
  }
  for (size_t r = 0; r < k.reductions.size(); ++r) {
    if (k.reductions[r].types.empty()) return complain(token_, "r" + std::to_string(r) + " is missing");
  }
  advance();
  return token_.kind == Token::kEnd || fail("the end of the text");
}

Status Parser::run(Kernel& out) {
  Kernel k;
  if (!kernel(k)) return {COLLET_INVALID_ARGUMENT, error_};
  out = std::move(k);
  return {};
}

}  // namespace

Status parse_kernel(std::string_view text, Kernel& out) {
  return Parser(text).run(out);
}

}  // namespace collet::codegen
