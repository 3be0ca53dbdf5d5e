/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_DICTIONARY_HPP
#define COLLET_DICTIONARY_HPP

/** \file
 * Reads the attributes of composites and of typed custom calls (`jax.ffi.ffi_call`), which programs hold as text in the
 * form of MLIR: {causal = true, scale = 1.25e-01 : f32, window = array<i64: 1, 2>}. C++17, header only.
 */

#include <algorithm>
#include <cctype>
#include <charconv>
#include <locale>
#include <sstream>
#include <string>
#include <vector>

#include "kernel_floats.hpp"
#include "types.h"

namespace collet {

/** One attribute of a dictionary. */
struct DictionaryEntry {
  /** What an attribute is. */
  enum Kind : uint32_t {
    kUnit,       /**< nothing but its name */
    kScalar,     /**< one number or truth value */
    kArray,      /**< numbers or truth values of one type */
    kString,     /**< text, in `text` */
    kList,       /**< `entries`, without names */
    kDictionary, /**< `entries` */
    kOther       /**< something else of MLIR */
  };
  std::string name;
  Kind kind = kUnit;
  uint32_t type = COLLET_TYPE_INVALID; /**< COLLET_TYPE_* of a scalar or of the elements of an array */
  std::vector<int64_t> dimensions;     /**< of an array */
  std::vector<unsigned char> bytes; /**< the elements, row-major, in the form that they have in programs (types.def) */
  std::string text; /**< of a string; of a scalar its digits, and of something else all of it, as it is written */
  std::vector<DictionaryEntry> entries;

  /** Returns the number of elements of a scalar or an array. */
  size_t count() const { return bytes.size() / std::max<uint32_t>(collet_type_bytes(type), 1); }
  /** Returns element `i` of a scalar or an array, the real part of a complex one; 0 for types without a C++ type. */
  double number(size_t i = 0) const {
    double out = 0;
    if (i < count()) visit([&](auto zero) { out = static_cast<double>(element<decltype(zero)>(i)); });
    return out;
  }
  /** Returns element `i` of a scalar or an array as an integer: exactly for integers, u64 as its bits; truncated for
   * floats. */
  int64_t integer(size_t i = 0) const {
    int64_t out = 0;
    if (i < count()) visit([&](auto zero) { out = static_cast<int64_t>(element<decltype(zero)>(i)); });
    return out;
  }

  /** Calls `f` with a zero of the C++ type of an element, or of the real part of one. Returns whether there is one. */
  template <class F>
  bool visit(F f) const {
    switch (type) {
      case COLLET_TYPE_PRED:
      case COLLET_TYPE_U1:
      case COLLET_TYPE_U2:
      case COLLET_TYPE_U4:
      case COLLET_TYPE_U8:
        return f(uint8_t{}), true;
      case COLLET_TYPE_S1:
      case COLLET_TYPE_S2:
      case COLLET_TYPE_S4:
      case COLLET_TYPE_S8:
        return f(int8_t{}), true;
      case COLLET_TYPE_S16:
        return f(int16_t{}), true;
      case COLLET_TYPE_S32:
        return f(int32_t{}), true;
      case COLLET_TYPE_S64:
        return f(int64_t{}), true;
      case COLLET_TYPE_U16:
        return f(uint16_t{}), true;
      case COLLET_TYPE_U32:
        return f(uint32_t{}), true;
      case COLLET_TYPE_U64:
        return f(uint64_t{}), true;
      case COLLET_TYPE_F16:
        return f(kernel::half{}), true;
      case COLLET_TYPE_BF16:
        return f(kernel::bfloat16{}), true;
      case COLLET_TYPE_F32:
      case COLLET_TYPE_C64:
        return f(float{}), true;
      case COLLET_TYPE_F64:
      case COLLET_TYPE_C128:
        return f(double{}), true;
      default:
        return false;
    }
  }

 private:
  template <class T>
  T element(size_t i) const {
    T out;
    std::memcpy(static_cast<void*>(&out), bytes.data() + i * collet_type_bytes(type), sizeof out);
    return out;
  }
};

namespace detail {

/** Reads a dictionary from text. */
class DictionaryReader {
 public:
  explicit DictionaryReader(const std::string& text) : text_(text) {}

  /** Returns whether all of the text is a dictionary. */
  bool read(std::vector<DictionaryEntry>* out) {
    skip_space();
    if (at_ == text_.size()) return true;
    return entries('{', '}', out, 0) && (skip_space(), at_ == text_.size());
  }

 private:
  static constexpr int kDeepest = 64;

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
  void skip_space() {
    while (is_space(peek())) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  bool take(const char* word) {
    const size_t size = std::strlen(word);
    if (text_.compare(at_, size, word) != 0) return false;
    at_ += size;
    return true;
  }

  bool entries(char open, char close, std::vector<DictionaryEntry>* out, int depth) {
    if (depth > kDeepest || !take(open)) return false;
    if (take(close)) return true;
    do {
      out->emplace_back();
      DictionaryEntry& entry = out->back();
      if (open == '{') {
        if (!key(&entry.name)) return false;
        if (!take('=')) continue;
      }
      if (!value(&entry, depth + 1)) return false;
    } while (take(','));
    return take(close);
  }

  bool key(std::string* out) {
    skip_space();
    if (peek() == '"') return string(out);
    while (at_ < text_.size() && !is_space(peek()) && !std::strchr("={},[]<>:\"", peek())) *out += text_[at_++];
    return !out->empty();
  }

  static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  }

  bool string(std::string* out) {
    ++at_;  // the quote
    while (at_ < text_.size() && text_[at_] != '"') {
      char c = text_[at_++];
      if (c == '\\') {
        if (at_ == text_.size()) return false;
        c = text_[at_++];
        const int high = hex_digit(c), low = hex_digit(peek());
        if (high >= 0 && low >= 0) {
          c = static_cast<char>(high << 4 | low);
          ++at_;
        } else if (c == 'n' || c == 't') {
          c = c == 'n' ? '\n' : '\t';
        }
      }
      *out += c;
    }
    return take('"');
  }

  bool value(DictionaryEntry* entry, int depth) {
    skip_space();
    const size_t begin = at_;
    if (peek() == '{' || peek() == '[') {
      const bool list = peek() == '[';
      entry->kind = list ? DictionaryEntry::kList : DictionaryEntry::kDictionary;
      return entries(list ? '[' : '{', list ? ']' : '}', &entry->entries, depth);
    }
    if (known_value(entry) && ends_value()) return true;
    *entry = {entry->name, DictionaryEntry::kOther, COLLET_TYPE_INVALID, {}, {}, {}, {}};
    at_ = begin;
    if (!skip_value()) return false;
    size_t end = at_;
    while (end > begin && is_space(text_[end - 1])) --end;
    entry->text = text_.substr(begin, end - begin);
    return end > begin;
  }

  bool ends_value() {
    skip_space();
    return peek() == ',' || peek() == '}' || peek() == ']';
  }

  // Moves behind a value of any form: to the next comma or bracket that is outside of its own brackets and strings.
  bool skip_value() {
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        std::string ignored;
        if (!string(&ignored)) return false;
        --at_;
      } else if (std::strchr("([{<", c)) {
        ++depth;
      } else if (c == '>' && at_ > 0 && text_[at_ - 1] == '-') {
        continue;  // an arrow
      } else if (std::strchr(")]}>", c)) {
        if (depth-- == 0) return true;
      } else if (c == ',' && depth == 0) {
        return true;
      }
    }
    return false;
  }

  bool known_value(DictionaryEntry* entry) {
    if (peek() == '"') {
      entry->kind = DictionaryEntry::kString;
      return string(&entry->text);
    }
    if (take("unit")) return true;
    if (take("array<")) return array(entry);
    if (take("dense<")) return dense(entry);
    entry->kind = DictionaryEntry::kScalar;
    std::string digits;
    if (!word(&digits)) return false;
    if (digits == "true" || digits == "false") {
      entry->type = COLLET_TYPE_PRED;
    } else if (take(':')) {
      if (!type(&entry->type)) return false;
    } else {
      const bool hex = digits.find_first_of("xX") != std::string::npos;
      const bool real = !hex && digits.find_first_of(".eE") != std::string::npos;
      entry->type = real ? COLLET_TYPE_F64 : COLLET_TYPE_S64;
    }
    entry->text = digits;
    return append(digits, entry);
  }

  bool word(std::string* out) {
    skip_space();
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(peek())) || std::strchr("+-._", peek())))
      *out += text_[at_++];
    return !out->empty();
  }

  /** Reads MLIR's name of an element type. */
  bool type(uint32_t* out) {
    skip_space();
    const bool complex = take("complex<");
    std::string name;
    if (!word(&name)) return false;
    if (complex && !take('>')) return false;
    return type_of(name, complex, out);
  }

  static bool type_of(std::string name, bool complex, uint32_t* out) {
    if (complex) {
      *out = name == "f32" ? COLLET_TYPE_C64 : COLLET_TYPE_C128;
      return name == "f32" || name == "f64";
    }
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (name == "i1") name = "pred";
    if (name == "index") name = "s64";
    if (name.compare(0, 2, "ui") == 0 || name.compare(0, 2, "si") == 0) name.erase(1, 1);
    if (name[0] == 'i') name[0] = 's';
    for (uint32_t t = 1; t < COLLET_TYPE_LIMIT; ++t) {
      if (name != collet_type_name(t)) continue;
      *out = t;
      return true;
    }
    return false;
  }

  bool array(DictionaryEntry* entry) {
    entry->kind = DictionaryEntry::kArray;
    if (!type(&entry->type)) return false;
    if (take(':')) {
      do {
        std::string digits;
        if (!word(&digits) || !append(digits, entry)) return false;
      } while (take(','));
    }
    entry->dimensions = {static_cast<int64_t>(entry->count())};
    return take('>');
  }

  // The elements stand before their type, so they are read when the type is known.
  bool dense(DictionaryEntry* entry) {
    entry->kind = DictionaryEntry::kArray;
    const size_t begin = at_;
    if (!skip_value() || peek() != '>') return false;
    const size_t end = at_;
    if (!take('>') || !take(':') || (skip_space(), !take("tensor<"))) return false;
    uint64_t count = 1;
    for (;;) {
      int64_t extent = 0;
      const char* const first = text_.data() + at_;
      const auto [rest, error] = std::from_chars(first, text_.data() + text_.size(), extent);
      if (error != std::errc() || rest == text_.data() + text_.size() || *rest != 'x') break;
      if (extent < 0 || (extent > 0 && count > UINT64_MAX / static_cast<uint64_t>(extent))) return false;
      count *= static_cast<uint64_t>(extent);
      entry->dimensions.push_back(extent);
      at_ += static_cast<size_t>(rest - first) + 1;
    }
    if (!type(&entry->type) || !take('>')) return false;
    const size_t after = at_;
    at_ = begin;
    const bool good = elements(entry, end, count);
    at_ = after;
    return good;
  }

  bool elements(DictionaryEntry* entry, size_t end, uint64_t count) {
    skip_space();
    const uint32_t width = collet_type_bytes(entry->type);
    if (peek() == '"') {  // the bytes of all elements, or of the one that all are equal to
      if (at_ + 3 > end || text_.compare(at_ + 1, 2, "0x") != 0) return false;
      for (at_ += 3; at_ + 1 < end; at_ += 2) {
        const int high = hex_digit(text_[at_]), low = hex_digit(text_[at_ + 1]);
        if (high < 0 || low < 0) break;
        entry->bytes.push_back(static_cast<unsigned char>(high << 4 | low));
      }
      if (!take('"')) return false;
    }
    while (at_ < end) {
      const char c = peek();
      if (is_space(c) || std::strchr("[],()", c)) {
        ++at_;
        continue;
      }
      std::string digits;
      if (!word(&digits) || !append(digits, entry)) return false;
    }
    if (width == 0) return false;
    if (entry->bytes.size() == width && count != 1) {
      if (count > kMostRepeated) return false;
      std::vector<unsigned char> all;
      for (uint64_t i = 0; i < count; ++i) all.insert(all.end(), entry->bytes.begin(), entry->bytes.end());
      entry->bytes = std::move(all);
    }
    return entry->bytes.size() / width == count && entry->bytes.size() % width == 0;
  }

  static constexpr uint64_t kMostRepeated = uint64_t{1} << 24;  // elements; more are no attribute

  /** Appends one number to the elements. For complex types: one of the two parts. */
  static bool append(const std::string& digits, DictionaryEntry* entry) {
    bool good = false;
    const bool known = entry->visit([&](auto zero) {
      using T = decltype(zero);
      T out{};
      good = parse(digits, &out);
      const auto* from = reinterpret_cast<const unsigned char*>(&out);
      if (good) entry->bytes.insert(entry->bytes.end(), from, from + sizeof out);
    });
    return known && good;
  }

  template <class T>
  static bool parse(const std::string& digits, T* out) {
    if constexpr (std::is_integral_v<T>) {
      if (digits == "true" || digits == "false") {
        *out = digits == "true";
        return true;
      }
      if constexpr (std::is_unsigned_v<T>) {
        uint64_t bits = 0;
        if (digits[0] != '-') return integer(digits, &bits) && (*out = static_cast<T>(bits), *out == bits);
      }
      int64_t value = 0;
      return integer(digits, &value) && (*out = static_cast<T>(value), true);
    } else {
      if (digits.size() > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
        uint64_t bits = 0;
        if (!integer(digits, &bits)) return false;
        static_assert(sizeof(T) <= sizeof bits);
        std::memcpy(static_cast<void*>(out), &bits, sizeof *out);
        return true;
      }
      std::istringstream in(digits);
      in.imbue(std::locale::classic());
      double value = 0;
      if (!(in >> value) || in.peek() != std::istringstream::traits_type::eof()) return false;
      if constexpr (std::is_same_v<T, double>) {
        *out = value;
      } else if constexpr (std::is_same_v<T, float>) {
        *out = static_cast<float>(value);
      } else {
        *out = T(kernel::detail::to_odd(value));
      }
      return true;
    }
  }

  template <class T>
  static bool integer(const std::string& digits, T* out) {
    const bool hex = digits.size() > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
    const char* const end = digits.data() + digits.size();
    const auto [rest, error] = std::from_chars(digits.data() + (hex ? 2 : 0), end, *out, hex ? 16 : 10);
    return error == std::errc() && rest == end;
  }

  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace detail

/** Reads the text of a dictionary; an empty text is an empty one. Returns false, with `out` empty, if it is none. */
inline bool read_dictionary(const std::string& text, std::vector<DictionaryEntry>* out) {
  out->clear();
  if (detail::DictionaryReader(text).read(out)) return true;
  out->clear();
  return false;
}

}  // namespace collet

#endif
