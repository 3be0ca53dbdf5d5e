// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cstring>
#include <functional>
#include <string>

#include "reference_backends/gpu/emulator/lexer.h"
#include "reference_backends/gpu/emulator/ptx.h"

namespace collet::gpu::emulator {
namespace {

struct TypeInfo {
  const char* name;
  unsigned bits;
  bool is_float;
  bool is_signed;
};
constexpr TypeInfo kTypes[] = {
    {"", 0, false, false},      {"pred", 1, false, false},  {"b8", 8, false, false},     {"b16", 16, false, false},
    {"b32", 32, false, false},  {"b64", 64, false, false},  {"b128", 128, false, false}, {"u8", 8, false, false},
    {"u16", 16, false, false},  {"u32", 32, false, false},  {"u64", 64, false, false},   {"s8", 8, false, true},
    {"s16", 16, false, true},   {"s32", 32, false, true},   {"s64", 64, false, true},    {"f16", 16, true, true},
    {"f16x2", 32, true, true},  {"bf16", 16, true, true},   {"bf16x2", 32, true, true},  {"f32", 32, true, true},
    {"f64", 64, true, true},    {"tf32", 32, true, true},   {"e4m3", 8, true, true},     {"e5m2", 8, true, true},
    {"e4m3x2", 16, true, true}, {"e5m2x2", 16, true, true},
};
static_assert(std::size(kTypes) == static_cast<size_t>(Type::kE5m2x2) + 1);

constexpr uint64_t kMostBytes = uint64_t{1} << 32;  ///< most bytes of one variable
constexpr int kDeepest = 64;                        ///< deepest nesting of braces

const TypeInfo& info(Type type) {
  return kTypes[static_cast<size_t>(type)];
}

/// The meanings of the names declared between two braces.
struct Scope {
  std::map<std::string, int, std::less<>> registers;
  struct Set {
    Type type;
    uint64_t count;
  };
  std::map<std::string, Set, std::less<>> sets;  ///< sets of registers, declared as `%r<5>`
  std::map<std::string, const Variable*, std::less<>> variables;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(lex_ptx(text)) {}

  Module run() {
    while (!is_end()) parse_top();
    if (!module_.version) fail("the text has no .version");
    if (module_.target.empty()) fail("the text has no .target");
    return std::move(module_);
  }

 private:
  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token& next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool is_end() const { return peek().kind == Token::Kind::kEnd; }
  [[noreturn]] void fail(const std::string& message) const { throw PtxError(peek().line, message); }
  bool is(std::string_view punctuation, size_t ahead = 0) const {
    return peek(ahead).kind == Token::Kind::kPunctuation && peek(ahead).text == punctuation;
  }
  bool is_dot(std::string_view name) const { return peek().kind == Token::Kind::kDotName && peek().text == name; }
  bool take(std::string_view punctuation) {
    if (!is(punctuation)) return false;
    next();
    return true;
  }
  bool take_dot(std::string_view name) {
    if (!is_dot(name)) return false;
    next();
    return true;
  }
  static std::string shown(const Token& t) {
    switch (t.kind) {
      case Token::Kind::kEnd:
        return "the end of the text";
      case Token::Kind::kDotName:
        return "." + std::string(t.text);
      case Token::Kind::kFloat:
        return "a floating-point constant";
      default:
        return "'" + std::string(t.text.substr(0, 80)) + "'";
    }
  }
  void expect(std::string_view punctuation) {
    if (!take(punctuation)) fail("'" + std::string(punctuation) + "' is expected, and not " + shown(peek()));
  }
  std::string expect_name() {
    if (peek().kind != Token::Kind::kName) fail("a name is expected, and not " + shown(peek()));
    return std::string(next().text);
  }
  uint64_t expect_integer() {
    const bool minus = take("-");
    if (peek().kind != Token::Kind::kInteger) fail("an integer is expected, and not " + shown(peek()));
    const uint64_t value = next().integer;
    return minus ? 0 - value : value;
  }
  void skip_line() {
    const int line = peek().line;
    while (!is_end() && peek().line == line) next();
  }
  void skip_braces() {
    expect("{");
    for (int depth = 1; depth > 0; next()) {
      if (is_end()) fail("'}' is missing");
      if (is("{")) ++depth;
      if (is("}")) --depth;
    }
  }

  void parse_top() {
    if (take(";")) return;
    if (peek().kind != Token::Kind::kDotName) fail("a directive is expected, and not " + shown(peek()));
    if (take_dot("version")) {
      const Token& t = next();
      const double version = t.kind == Token::Kind::kFloat ? std::bit_cast<double>(t.integer) : 0;
      if (!(version >= 6.0 && version < 10.0)) throw PtxError(t.line, "PTX versions from 6.0 to 9.x are known");
      module_.version = static_cast<unsigned>(version * 10 + 0.5);
    } else if (take_dot("target")) {
      module_.target = expect_name();
      while (take(",")) expect_name();
    } else if (take_dot("address_size")) {
      const int line = peek().line;
      if (expect_integer() != 64) throw PtxError(line, "only addresses of 64 bits are known");
    } else if (is_dot("file") || is_dot("loc")) {
      skip_line();
    } else if (take_dot("section")) {
      next();
      skip_braces();
    } else if (take_dot("pragma")) {
      skip_pragma();
    } else {
      bool is_extern = false;
      for (;;) {
        if (take_dot("extern")) {
          is_extern = true;
        } else if (!take_dot("visible") && !take_dot("weak") && !take_dot("common")) {
          break;
        }
      }
      if (take_dot("entry")) {
        parse_function(true);
      } else if (take_dot("func")) {
        parse_function(false);
      } else {
        parse_variables(is_extern, nullptr);
      }
    }
  }

  void skip_pragma() {
    do {
      if (peek().kind != Token::Kind::kString) fail("a string is expected, and not " + shown(peek()));
      next();
    } while (take(","));
    expect(";");
  }

  Type parse_type() {
    if (peek().kind != Token::Kind::kDotName) fail("a type is expected, and not " + shown(peek()));
    const Type type = type_of_name(peek().text);
    if (type == Type::kNone) fail("no such type: ." + std::string(peek().text));
    next();
    return type;
  }

  /// Parses a declarator after its state space: `.align 4 .v2 .b8 name[3][4] = {...}`.
  Variable parse_declarator(Space space, bool is_extern) {
    Variable v;
    v.space = space;
    v.is_extern = is_extern;
    v.line = peek().line;
    uint64_t vector = 1, align = 0;
    for (;;) {
      if (take_dot("align")) {
        align = expect_integer();
        if (!std::has_single_bit(align) || align > 4096) fail("an alignment is a power of 2 up to 4096");
      } else if (take_dot("v2")) {
        vector = 2;
      } else if (take_dot("v4")) {
        vector = 4;
      } else if (take_dot("ptr")) {  // attribute that describes what a parameter points to
        while (is_dot("global") || is_dot("const") || is_dot("shared") || is_dot("local")) next();
      } else {
        break;
      }
    }
    v.type = parse_type();
    if (v.type == Type::kPred) fail("a predicate has no address");
    // The attribute may also follow the type: `.param .u64 .ptr .global .align 16 name`.
    while (take_dot("ptr") || take_dot("global") || take_dot("const") || take_dot("shared") || take_dot("local")) {
    }
    if (take_dot("align")) expect_integer();
    v.name = expect_name();
    v.bytes = bytes_of(v.type) * vector;
    v.align = align ? align : v.bytes;
    while (take("[")) {
      if (take("]")) {
        v.is_unsized = true;
        v.bytes = 0;
        continue;
      }
      const uint64_t count = expect_integer();
      if (count > kMostBytes || v.bytes * count > kMostBytes) fail("the array is too long");
      v.bytes *= count;
      expect("]");
    }
    if (take("=")) parse_initialiser(v);
    if (v.is_unsized && v.bytes == 0 && !v.initial.empty()) v.bytes = v.initial.size();
    return v;
  }

  void parse_initialiser(Variable& v) {
    if (v.space != Space::kGlobal && v.space != Space::kConst) fail("variables of this space have no initialiser");
    if (!is("{")) return parse_initial_element(v);
    int depth = 0;
    do {
      if (take("{")) {
        if (++depth > kDeepest) fail("the braces are nested too deep");
      } else if (take("}")) {
        --depth;
      } else if (!take(",")) {
        parse_initial_element(v);
      }
      if (is_end()) fail("'}' is missing");
    } while (depth > 0);
  }

  void parse_initial_element(Variable& v) {
    const size_t size = bytes_of(v.type);
    const uint64_t offset = v.initial.size();
    uint64_t bits = 0;
    if (peek().kind == Token::Kind::kName) {
      Relocation r;
      r.offset = offset;
      r.symbol = expect_name();
      if (r.symbol == "generic" && take("(")) {
        r.is_generic = true;
        r.symbol = expect_name();
        expect(")");
      }
      if (take("+")) r.addend = static_cast<int64_t>(expect_integer());
      if (size != 8) fail("an address takes 8 bytes");
      v.relocations.push_back(r);
    } else {
      const bool minus = take("-");
      const Token& t = next();
      if (t.kind == Token::Kind::kInteger) {
        bits = minus ? 0 - t.integer : t.integer;
        if (is_float(v.type)) fail("a floating-point constant is expected");
      } else if (t.kind == Token::Kind::kFloat) {
        double value = std::bit_cast<double>(t.integer);
        if (minus) value = -value;
        if (v.type == Type::kF64 || v.type == Type::kB64) {
          bits = std::bit_cast<uint64_t>(value);
        } else if (v.type == Type::kF32 || v.type == Type::kB32) {
          bits = t.is_f32 ? t.f32 ^ (minus ? 0x80000000u : 0) : std::bit_cast<uint32_t>(static_cast<float>(value));
        } else {
          fail("no floating-point constant of this type");
        }
      } else {
        fail("a constant is expected, and not " + shown(t));
      }
    }
    if (!v.is_unsized && offset + size > v.bytes) fail("the initialiser has more elements than the variable");
    for (size_t i = 0; i < size; ++i) v.initial.push_back(static_cast<uint8_t>(i < 8 ? bits >> (8 * i) : 0));
  }

  /// Parses variables of the module, or of a function's body.
  void parse_variables(bool is_extern, Function* function) {
    Space space;
    if (take_dot("global")) {
      space = Space::kGlobal;
    } else if (take_dot("const")) {
      space = Space::kConst;
    } else if (take_dot("shared")) {
      space = Space::kShared;
    } else if (take_dot("local")) {
      space = Space::kLocal;
    } else if (take_dot("param")) {
      space = Space::kParam;
    } else {
      fail("no such directive: " + shown(peek()));
    }
    if (!function && (space == Space::kLocal || space == Space::kParam)) fail("such variables stand in functions");
    auto& list = function ? function->variables : module_.variables;
    do {
      list.push_back(std::make_unique<Variable>(parse_declarator(space, is_extern)));
      Variable& v = *list.back();
      v.index = static_cast<int>(list.size()) - 1;
      if (v.is_unsized && !v.bytes && v.space != Space::kShared) fail("only shared variables have no length");
      auto& names = function ? scopes_.back().variables : globals_.variables;
      if (!names.emplace(v.name, &v).second && !is_extern) fail("declared twice: " + v.name);
    } while (take(","));
    expect(";");
  }

  std::vector<Variable> parse_parameters() {
    constexpr uint64_t kMostParameterBytes = 4352;  // limit of PTX before 8.1
    uint64_t bytes = 0;
    std::vector<Variable> parameters;
    expect("(");
    if (take(")")) return parameters;
    do {
      if (is_dot("reg")) fail("parameters in registers are not supported: use .param");
      if (!take_dot("param")) fail(".param is expected, and not " + shown(peek()));
      parameters.push_back(parse_declarator(Space::kParam, false));
      parameters.back().index = static_cast<int>(parameters.size()) - 1;
      bytes += parameters.back().bytes;
      if (bytes > kMostParameterBytes)
        fail("more than " + std::to_string(kMostParameterBytes) + " bytes of parameters");
    } while (take(","));
    expect(")");
    return parameters;
  }

  void parse_function(bool is_entry) {
    auto owned = std::make_unique<Function>();
    Function& f = *owned;
    f.is_entry = is_entry;
    f.line = peek().line;
    if (!is_entry && is("(")) f.results = parse_parameters();
    f.name = expect_name();
    if (is("(")) f.parameters = parse_parameters();
    for (;;) {
      if (take_dot("maxntid")) {
        f.max_threads = static_cast<unsigned>(parse_dimensions(nullptr));
      } else if (take_dot("reqntid")) {
        f.max_threads = static_cast<unsigned>(parse_dimensions(f.required_threads));
      } else if (take_dot("minnctapersm") || take_dot("maxnreg") || take_dot("maxclusterrank")) {
        expect_integer();
      } else if (take_dot("pragma")) {
        skip_pragma();
      } else if (!take_dot("noreturn")) {
        break;
      }
    }
    for (const auto& known : module_.functions) {
      if (known->name == f.name && known->has_body && is("{")) fail("defined twice: " + f.name);
    }
    module_.functions.push_back(std::move(owned));
    if (take(";")) return;
    f.has_body = true;
    scopes_.clear();
    scopes_.emplace_back();
    for (const auto* list : {&f.parameters, &f.results}) {
      for (const Variable& v : *list) {
        if (!scopes_.back().variables.emplace(v.name, &v).second) fail("declared twice: " + v.name);
      }
    }
    parse_body(f);
    scopes_.clear();
  }

  uint64_t parse_dimensions(unsigned* out) {
    uint64_t product = 1;
    unsigned i = 0;
    if (out) out[0] = out[1] = out[2] = 1;
    do {
      const uint64_t n = expect_integer();
      if (n < 1 || n > 1024 || i >= 3) fail("a block has at most three dimensions of at most 1024");
      if (out) out[i] = static_cast<unsigned>(n);
      ++i;
      product *= n;
    } while (take(","));
    if (product > 1024) fail("a block has at most 1024 threads");
    return product;
  }

  void parse_body(Function& f) {
    expect("{");
    scopes_.emplace_back();
    const size_t outer = scopes_.size();
    while (scopes_.size() >= outer) {
      if (is_end()) fail("'}' is missing");
      if (take("}")) {
        scopes_.pop_back();
      } else if (take("{")) {
        if (scopes_.size() > kDeepest) fail("the braces are nested too deep");
        scopes_.emplace_back();
      } else if (peek().kind == Token::Kind::kDotName) {
        parse_directive(f);
      } else if (peek().kind == Token::Kind::kName && is(":", 1)) {
        parse_label(f);
      } else if (!take(";")) {
        parse_instruction(f);
      }
    }
  }

  void parse_directive(Function& f) {
    if (is_dot("loc") || is_dot("file")) return skip_line();
    if (take_dot("pragma")) return skip_pragma();
    if (take_dot("reg")) return parse_registers(f);
    const bool is_extern = take_dot("extern");
    parse_variables(is_extern, &f);
  }

  void parse_registers(Function& f) {
    uint64_t vector = 1;
    if (take_dot("v2")) vector = 2;
    if (take_dot("v4")) vector = 4;
    if (vector != 1) fail("registers that are vectors are not supported");
    const Type type = parse_type();
    do {
      const std::string name = expect_name();
      if (take("<")) {
        const uint64_t count = expect_integer();
        expect(">");
        if (!scopes_.back().sets.emplace(name, Scope::Set{type, count}).second) fail("declared twice: " + name);
      } else {
        add_register(f, scopes_.back(), name, type);
      }
    } while (take(","));
    expect(";");
  }

  int add_register(Function& f, Scope& scope, const std::string& name, Type type) {
    f.registers.push_back({name, type});
    const int index = static_cast<int>(f.registers.size()) - 1;
    if (!scope.registers.emplace(name, index).second) fail("declared twice: " + name);
    return index;
  }

  void parse_label(Function& f) {
    Statement s;
    s.line = peek().line;
    s.label = expect_name();
    expect(":");
    s.kind = Statement::Kind::kLabel;
    if (take_dot("branchtargets")) {
      s.kind = Statement::Kind::kTargets;
      do {
        s.targets.push_back(expect_name());
      } while (take(","));
      expect(";");
    } else if (is_dot("callprototype") || is_dot("calltargets")) {
      fail("calls through pointers are not supported");
    }
    f.body.push_back(std::move(s));
  }

  /// Returns the number of the register with this name, or -1.
  int find_register(Function& f, std::string_view name) {
    size_t digits = name.size();
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1]))) --digits;
    uint64_t number = 0;
    const bool numbered = digits < name.size() &&
                          std::from_chars(name.data() + digits, name.data() + name.size(), number).ec == std::errc();
    for (size_t i = scopes_.size(); i-- > 0;) {
      Scope& scope = scopes_[i];
      if (const auto found = scope.registers.find(name); found != scope.registers.end()) return found->second;
      if (!numbered) continue;
      const auto set = scope.sets.find(name.substr(0, digits));
      if (set != scope.sets.end() && number < set->second.count) {
        return add_register(f, scope, std::string(name), set->second.type);
      }
    }
    return -1;
  }

  const Variable* find_variable(std::string_view name) const {
    for (size_t i = scopes_.size(); i-- > 0;) {
      if (const auto found = scopes_[i].variables.find(name); found != scopes_[i].variables.end()) return found->second;
    }
    const auto found = globals_.variables.find(name);
    return found == globals_.variables.end() ? nullptr : found->second;
  }

  void parse_instruction(Function& f) {
    Statement s;
    Instruction& in = s.instruction;
    s.line = in.line = peek().line;
    if (take("@")) {
      in.guard_negated = take("!");
      const std::string name = expect_name();
      in.guard = find_register(f, name);
      if (in.guard < 0) fail("no such register: " + name);
      if (f.registers[static_cast<size_t>(in.guard)].type != Type::kPred) fail("a guard is a predicate: " + name);
    }
    in.line = peek().line;
    in.opcode = expect_name();
    while (peek().kind == Token::Kind::kDotName) in.modifiers.emplace_back(next().text);
    if (!is(";")) {
      do {
        in.operands.push_back(parse_operand(f, 0));
      } while (take(","));
    }
    expect(";");
    f.body.push_back(std::move(s));
  }

  Operand parse_operand(Function& f, int depth) {
    Operand o;
    if (depth > 4) fail("operands are nested too deep");
    if (is("{") || is("(")) {
      o.kind = Operand::Kind::kVector;
      o.is_list = is("(");
      const char* const close = o.is_list ? ")" : "}";
      next();
      if (take(close)) return o;
      do {
        o.elements.push_back(parse_operand(f, depth + 1));
      } while (take(","));
      expect(close);
      return o;
    }
    if (take("[")) return parse_address(f);
    if (take("!")) {
      o = parse_operand(f, depth + 1);
      o.is_negated = !o.is_negated;
      if (o.kind != Operand::Kind::kRegister) fail("'!' stands before a predicate");
      return o;
    }
    const bool minus = take("-");
    const Token& t = peek();
    if (t.kind == Token::Kind::kInteger) {
      o.kind = Operand::Kind::kInteger;
      o.integer = minus ? 0 - t.integer : t.integer;
      next();
      return o;
    }
    if (t.kind == Token::Kind::kFloat) {
      o.kind = Operand::Kind::kFloat;
      o.integer = t.integer ^ (minus ? uint64_t{1} << 63 : 0);
      o.is_f32 = t.is_f32;
      o.f32 = t.f32 ^ (minus ? 0x80000000u : 0);
      next();
      return o;
    }
    if (minus) fail("a number is expected, and not " + shown(t));
    parse_named(f, o);
    return o;
  }

  void parse_named(Function& f, Operand& o) {
    std::string name = expect_name();
    if (name == "_") {
      o.kind = Operand::Kind::kSink;
    } else if (const int reg = find_register(f, name); reg >= 0) {
      o.kind = Operand::Kind::kRegister;
      o.reg = reg;
    } else if (const Variable* v = find_variable(name)) {
      o.kind = Operand::Kind::kVariable;
      o.variable = v;
      if (is("+") || is("-")) {
        const bool minus = next().text == "-";
        const uint64_t offset = expect_integer();
        o.offset = static_cast<int64_t>(minus ? 0 - offset : offset);
      }
    } else if (name[0] == '%') {
      o.kind = Operand::Kind::kSpecial;
      if (peek().kind == Token::Kind::kDotName && !peek().after_space) name += "." + std::string(next().text);
      o.name = name;
    } else if (name == "WARP_SZ") {
      o.kind = Operand::Kind::kInteger;
      o.integer = 32;
    } else {
      o.kind = Operand::Kind::kName;
      o.name = name;
    }
    if (take("|")) {
      const std::string second = expect_name();
      if (second == "_") return;
      o.second = find_register(f, second);
      if (o.second < 0) fail("no such register: " + second);
    }
  }

  Operand parse_address(Function& f) {
    Operand o;
    o.kind = Operand::Kind::kAddress;
    if (peek().kind == Token::Kind::kName) {
      const std::string name = expect_name();
      o.reg = find_register(f, name);
      if (o.reg < 0) o.variable = find_variable(name);
      if (o.reg < 0 && !o.variable) fail("no such register or variable: " + name);
      if (take("+")) {
        o.offset = static_cast<int64_t>(expect_integer());
      } else if (take("-")) {
        o.offset = static_cast<int64_t>(0 - expect_integer());
      }
    } else {
      o.offset = static_cast<int64_t>(expect_integer());
    }
    // The coordinates of a box: [map, {x, y}].
    if (take(",")) o.elements = parse_operand(f, 1).elements;
    expect("]");
    return o;
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  Module module_;
  Scope globals_;
  std::vector<Scope> scopes_;
};

}  // namespace

Type type_of_name(std::string_view name) {
  for (size_t i = 1; i < std::size(kTypes); ++i) {
    if (name == kTypes[i].name) return static_cast<Type>(i);
  }
  return Type::kNone;
}

const char* name_of(Type type) {
  return info(type).name;
}
unsigned bits_of(Type type) {
  return info(type).bits;
}
bool is_float(Type type) {
  return info(type).is_float;
}
bool is_signed(Type type) {
  return info(type).is_signed;
}

const char* name_of(Space space) {
  constexpr const char* kNames[] = {"generic", "global", "const", "shared", "local", "param"};
  return kNames[static_cast<size_t>(space)];
}

const Function* Module::find_function(std::string_view name) const {
  const Function* declared = nullptr;
  for (const auto& f : functions) {
    if (f->name != name) continue;
    if (f->has_body) return f.get();
    declared = f.get();
  }
  return declared;
}

Module parse_ptx(std::string_view text) {
  return Parser(text).run();
}

}  // namespace collet::gpu::emulator
