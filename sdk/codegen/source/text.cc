// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/source/text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace collet::codegen::source {
namespace {

/// The length up to which an expression that is used once stays part of another one.
constexpr size_t kLongest = 90;

/// The operands in a format: position of the `$`, the level that the place needs, and whether it must be a name.
struct Place {
  size_t at = 0;
  Level needs = Level::kAny;
  bool is_name = false;
  size_t operand = 0;
};

std::vector<Place> places_in(const std::string& format) {
  std::vector<Place> places;
  for (size_t at = format.find('$'); at != std::string::npos; at = format.find('$', at + 1)) {
    Place p{at, Level::kAny, format[at + 1] == 'v', static_cast<size_t>(format[at + 2] - '0')};
    constexpr std::pair<char, Level> kLevels[] = {{'c', Level::kCompare}, {'b', Level::kCompare},
                                                  {'s', Level::kSum},     {'m', Level::kProduct},
                                                  {'u', Level::kUnary},   {'p', Level::kPrimary}};
    for (const auto& [letter, level] : kLevels) {
      if (format[at + 1] == letter) p.needs = level;
    }
    places.push_back(p);
  }
  return places;
}

/// Returns the prefix of the names of values of a type.
std::string prefix_of(const std::string& type) {
  if (type == "bool") return "p";
  if (type == "float" || type == "double") return "x";
  return type.find('*') != std::string::npos ? "at" : type.find("int") != std::string::npos ? "n" : "z";
}

/// True if a name stands in a text, and not as a part of another one.
bool has_word(const std::string& text, const std::string& name) {
  const auto is_inside = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !is_inside(text[at - 1])) && (end == text.size() || !is_inside(text[end]))) return true;
  }
  return false;
}

constexpr const char* kC99Preamble = R"c(#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if FLT_EVAL_METHOD != 0
#error "Floats have to be computed in their own precision, as by gcc -fexcess-precision=fast or, on x86, -msse2 -mfpmath=sse"
#endif

/* Iterations of the loop that follows do not depend on each other. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed"
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#pragma STDC FP_CONTRACT OFF
#endif

/* Marks the types of memory, because memory that was written as one type may be read as another. */
#if defined(__GNUC__)
#define MAY_ALIAS __attribute__((may_alias))
#else
#define MAY_ALIAS
#endif

)c";

constexpr const char* kOpenClPreamble = R"c(#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif
#pragma OPENCL FP_CONTRACT OFF

typedef char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;

/* Iterations of the loop that follows do not depend on each other. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
/* The same for loops of many iterations, of which several vectors are computed at a time, and for loops of 32. */
#define INTERLEAVED _Pragma("clang loop vectorize(assume_safety) interleave_count(4)")
#define STRIP _Pragma("clang loop vectorize(assume_safety) vectorize_width($W) interleave_count(4)")
#define UNROLL _Pragma("unroll")
#pragma clang diagnostic ignored "-Wpass-failed"
#else
#define INDEPENDENT
#define INTERLEAVED
#define STRIP
#define UNROLL
#endif

)c";

}  // namespace

const Language kC99 = {
    .preamble = kC99Preamble,
    .memory = "",
    .one_unit = true,
    .table = "static const ",
    .in_table = "const ",
    .has_suffixes = true,
    .has_fmod = true,
    .bits_of = "  $U i;\n  memcpy(&i, &x, sizeof i);\n  return i;\n",
    .of_bits = "  $T x;\n  memcpy(&x, &i, sizeof x);\n  return x;\n",
    .bits_of_half = nullptr,
    .of_half_bits = nullptr,
    .has_vectors = false,
    .part = "",
};

const Language kOpenCl = {
    .preamble = kOpenClPreamble,
    .memory = "__global ",
    .one_unit = false,
    .table = "__constant ",
    .in_table = "__constant ",
    .has_suffixes = false,
    .has_fmod = false,
    .bits_of = "  return as_$O(x);\n",
    .of_bits = "  return as_$T(i);\n",
    .bits_of_half = "  return as_ushort(convert_half_rte(x));\n",
    .of_half_bits = "  return (float)as_half((ushort)i);\n",
    .has_vectors = true,
    .part = "_part",
};

const std::string& Unit::helper(const std::string& name, const std::function<std::string()>& make) {
  const auto [at, fresh] = names_.insert(name);
  if (fresh) {
    std::string text = make();  // may add others
    helpers_.emplace_back(name, std::move(text) + "\n");
  }
  return *at;
}

std::string Unit::pointer(const std::string& pointee) {
  constexpr std::string_view kConst = "const ";
  const bool is_const = pointee.starts_with(kConst);
  const std::string type = pointee.substr(is_const ? kConst.size() : 0);
  if (!language.one_unit || type == "char") return language.memory + pointee + " *";
  const std::string& stored =
      helper("stored_" + type, [&] { return "typedef " + type + " stored_" + type + " MAY_ALIAS;\n"; });
  return (is_const ? "const " : "") + stored + " *";
}

std::string Unit::table(const std::string& type, const std::string& elements) {
  const auto [at, fresh] = tables_.try_emplace(type + "{" + elements, "table" + std::to_string(tables_.size()));
  if (fresh)
    helpers_.emplace_back(at->second, language.table + type + " " + at->second + "[] = {" + elements + "};\n\n");
  return at->second;
}

std::string Unit::text() const {
  std::string out = functions_;
  for (auto helper = helpers_.rbegin(); helper != helpers_.rend(); ++helper) {
    if (has_word(out, helper->first)) out = helper->second + out;
  }
  std::string preamble = language.preamble;
  if (const size_t at = preamble.find("$W"); at != std::string::npos) {
    // The accumulators of a strip are four vectors, which the compiler keeps in registers.
    constexpr int64_t kLaneBits = 32, kTogether = 4;
    preamble.replace(at, 2, std::to_string(std::clamp<int64_t>(target.vector_bits / kLaneBits, 1, kStrip / kTogether)));
  }
  return preamble + out;
}

std::string text_of_number(double x, const std::string& type) {
  const bool is_float = type == "float";
  if (std::isnan(x)) return is_float ? "NAN" : "(double)NAN";
  if (std::isinf(x)) return std::string(x < 0 ? "-" : "") + (is_float ? "INFINITY" : "(double)INFINITY");
  char digits[40];
  const auto end = is_float ? std::to_chars(digits, digits + sizeof digits, static_cast<float>(x)).ptr
                            : std::to_chars(digits, digits + sizeof digits, x).ptr;
  std::string text(digits, end);
  if (is_float && std::isinf(static_cast<float>(x))) return x < 0 ? "-INFINITY" : "INFINITY";
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return is_float ? text + "f" : text;
}

std::string text_of_integer(int64_t x) {
  if (x == INT64_MIN) return "(-9223372036854775807 - 1)";
  return std::to_string(x);
}

Id Function::add(Item item) {
  item.block = blocks_.back();
  item.epoch = epoch_;
  if (item.kind != Kind::kValue && item.kind != Kind::kAtom) ++epoch_;
  items_.push_back(std::move(item));
  return static_cast<Id>(items_.size()) - 1;
}

Id Function::value(const std::string& type, const std::string& format, std::vector<Id> args, Level level, bool reads) {
  std::string key = type + "|" + format;
  for (Id a : args) key += "|" + std::to_string(a);
  if (!reads) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->find(key); found != scope->end()) return found->second;
    }
  }
  const Id id = add({Kind::kValue, type, format, std::move(args), level, reads});
  if (!reads) scopes_.back().emplace(std::move(key), id);
  return id;
}

Id Function::constant(const std::string& type, const std::string& text) {
  const std::string key = type + "|" + text;
  for (const auto& scope : scopes_) {
    if (const auto found = scope.find(key); found != scope.end()) return found->second;
  }
  const bool is_negative = !text.empty() && text[0] == '-';
  const bool is_cast = text.starts_with("(") && !text.ends_with(")");
  const Id id = add({Kind::kAtom, type, text, {}, is_negative || is_cast ? Level::kUnary : Level::kPrimary, false});
  scopes_.back().emplace(key, id);
  return id;
}

Id Function::named(const std::string& name, const std::string& type, const std::string& format, std::vector<Id> args) {
  const Id id = add({Kind::kValue, type, format, std::move(args), Level::kPrimary, false});
  items_.back().name = name;
  return id;
}

Id Function::number(double x, const std::string& type) {
  return constant(type, text_of_number(x, type));
}

Id Function::integer(int64_t x) {
  return constant("int64_t", text_of_integer(x));
}

Id Function::binary(const std::string& type, const std::string& op, Id x, Id y) {
  if (op == "*" || op == "/" || op == "%") return value(type, "$m0 " + op + " $u1", {x, y}, Level::kProduct);
  if (op == "+" || op == "-") return value(type, "$s0 " + op + " $m1", {x, y}, Level::kSum);
  if (op == "&" || op == "|" || op == "^" || op == "<<" || op == ">>")
    return value(type, "$u0 " + op + " $u1", {x, y}, Level::kBits);
  return value(type, "$s0 " + op + " $s1", {x, y}, Level::kCompare);
}

Id Function::cast(const std::string& type, Id x) {
  return type_of(x) == type ? x : value(type, "(" + type + ")$u0", {x}, Level::kUnary);
}

Id Function::call(const std::string& type, const std::string& function, const std::vector<Id>& args) {
  std::string format = function + "(";
  for (size_t i = 0; i < args.size(); ++i) format += (i == 0 ? "$a" : ", $a") + std::to_string(i);
  return value(type, format + ")", args);
}

Id Function::select(Id p, Id x, Id y) {
  return x == y ? x : value(type_of(x), "$c0 ? $v1 : $v2", {p, x, y}, Level::kConditional);
}

void Function::statement(const std::string& format, std::vector<Id> args) {
  add({Kind::kStatement, "", format, std::move(args)});
}

void Function::open(const std::string& head, std::vector<Id> args) {
  add({Kind::kOpen, "", head, std::move(args)});
  blocks_.push_back(++last_block_);
  scopes_.emplace_back();
}

void Function::close(const std::string& tail) {
  blocks_.pop_back();
  scopes_.pop_back();
  add({Kind::kClose, "", tail, {}});
}

std::string Function::text_of_constant(Id id) const {
  const Item& item = items_[static_cast<size_t>(id)];
  return item.kind == Kind::kAtom ? item.format : "";
}

void Function::count_uses() {
  for (size_t i = items_.size(); i-- > 0;) {
    Item& item = items_[i];
    item.live = item.live || (item.kind != Kind::kValue && item.kind != Kind::kAtom);
    if (!item.live) continue;
    for (const Place& p : places_in(item.format)) {
      Item& used = items_[static_cast<size_t>(item.args[p.operand])];
      used.live = true;
      used.named = used.named || p.is_name;
      ++used.uses;
      used.user = static_cast<Id>(i);
    }
  }
}

std::string Function::expand(const Item& item) const {
  std::string out;
  size_t done = 0;
  for (const Place& p : places_in(item.format)) {
    const Item& used = items_[static_cast<size_t>(item.args[p.operand])];
    out += item.format.substr(done, p.at - done);
    out += used.level < p.needs ? "(" + used.text + ")" : used.text;
    done = p.at + 3;
  }
  return out + item.format.substr(done);
}

std::string Function::print(const std::string& head) {
  count_uses();
  std::string out = head + " {\n";
  int depth = 1;
  const auto line = [&](const std::string& text) {
    out += std::string(static_cast<size_t>(2 * depth), ' ') + text + "\n";
  };
  for (size_t i = 0; i < items_.size(); ++i) {
    Item& item = items_[i];
    if (!item.live) continue;
    switch (item.kind) {
      case Kind::kAtom:
        item.text = item.format;
        break;
      case Kind::kStatement:
        line(expand(item));
        break;
      case Kind::kOpen:
        line(expand(item) + (item.format.empty() ? "{" : " {"));
        ++depth;
        break;
      case Kind::kClose:
        --depth;
        line("}" + item.format);
        break;
      case Kind::kValue: {
        item.text = expand(item);
        Item& user = items_[static_cast<size_t>(item.user)];
        const bool is_near = item.block == user.block && (!item.reads || item.epoch == user.epoch);
        if (!item.named && item.name.empty() && item.uses == 1 && is_near && item.text.size() <= kLongest) {
          user.reads = user.reads || item.reads;
          break;
        }
        const std::string name = item.name.empty() ? fresh(prefix_of(item.type)) : item.name;
        const bool is_pointer = item.type.ends_with("*");
        line((is_pointer ? item.type + "const " : "const " + item.type + " ") + name + " = " + item.text + ";");
        item.text = name;
        item.level = Level::kPrimary;
        break;
      }
    }
  }
  return out + "}\n";
}

}  // namespace collet::codegen::source
