// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "hlo/base/decimal.h"
#include "hlo/base/float_format.h"
#include "hlo/stablehlo/text_number.h"
#include "hlo/stablehlo/text_reader.h"

// Reads the elements of arrays: dense<...> and array<...>.

namespace collet::hlo::mlir {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Decodes the bytes of a string "0x..."; false if it is not such a string.
bool hex_bytes(std::string_view hex, std::string& out) {
  if (!hex.starts_with("0x") || hex.size() % 2) return false;
  out.reserve(hex.size() / 2);
  for (size_t i = 2; i < hex.size(); i += 2) {
    const int high = hex_digit(hex[i]), low = hex_digit(hex[i + 1]);
    if (high < 0 || low < 0) return false;
    out += static_cast<char>(high * 16 + low);
  }
  return true;
}

void append_bits(std::string& out, uint64_t bits, int bytes) {
  out.append(reinterpret_cast<const char*>(&bits), static_cast<size_t>(bytes));
}

/// True if a number fits the bits of the type, signed or unsigned.
bool fits(int64_t value, std::string_view text, const TypeInfo& type) {
  const bool negative = text.starts_with('-');
  if (negative && type.kind == Kind::Unsigned) return value == 0;
  if (type.bits >= 64) return !negative || value <= 0;
  return negative ? value <= 0 && value >= -(int64_t{1} << (type.bits - 1))
                  : value >= 0 && value < int64_t{1} << type.bits;
}

/// Appends one element from its token. For a float type, a hexadecimal number states the bits.
bool append_element(std::string& out, hlo::Type type, const Token& token) {
  const TypeInfo& info = type_info(type);
  if (info.kind == Kind::Pred) {
    if (token.kind == Tok::Bare) {
      if (token.text != "true" && token.text != "false") return false;
      out += static_cast<char>(token.text == "true");
      return true;
    }
    int64_t value;
    if (token.kind != Tok::Integer || !parse_int(token.text, &value) || value < -1 || value > 1) return false;
    out += static_cast<char>(value != 0);
    return true;
  }
  if (info.kind == Kind::Float) {
    const FloatFormat format = float_format(static_cast<uint32_t>(type));
    if (token.kind == Tok::Integer && is_hex_number(token.text)) {
      int64_t bits;
      if (!parse_int(token.text, &bits) || !fits(bits, token.text, info)) return false;
      append_bits(out, static_cast<uint64_t>(bits), info.bytes());
      return true;
    }
    if (token.kind != Tok::Float) return false;
    const auto value = decimal_value(token.text);
    if (!value) return false;
    append_bits(out, encode_float(format, *value), info.bytes());
    return true;
  }
  int64_t value;
  if (token.kind == Tok::Bare && (token.text == "true" || token.text == "false"))
    value = token.text == "true";
  else if (token.kind != Tok::Integer || !parse_int(token.text, &value) || !fits(value, token.text, info))
    return false;
  if (info.kind == Kind::Signed) value = sign_extend(static_cast<uint64_t>(value), info.bits);
  if (info.kind == Kind::Unsigned && info.bits < 8) value &= (1 << info.bits) - 1;
  append_bits(out, static_cast<uint64_t>(value), info.bytes());
  return true;
}

/// Counts what the brackets of dense<...> hold: lists of one depth and, at each depth, of one length.
class Brackets {
 public:
  /// Takes a bracket; returns what is wrong with it, null if nothing is.
  const char* take(const Token& token) {
    if (token.is('(')) {
      if (numbers_ >= 0) return "unexpected '('";
      numbers_ = 0;
      return nullptr;
    }
    if (token.is(')')) {
      if (numbers_ != 2) return "a complex element is a pair of numbers";
      numbers_ = -1;
      pairs_ = true;
      return take_element();
    }
    if (numbers_ >= 0) return "a complex element is a pair of numbers";
    if (token.is('[')) {
      if (counts_.size() == 64) return "elements are nested too deeply";
      if (!counts_.empty()) ++counts_.back();
      counts_.push_back(0);
      if (leaves_ >= 0 && depth() > leaves_) return kUnequal;
      if (dims_.size() < counts_.size()) dims_.push_back(-1);
      return nullptr;
    }
    if (counts_.empty()) return "unexpected ']'";
    int64_t& length = dims_[counts_.size() - 1];
    if (length >= 0 && length != counts_.back()) return kUnequal;
    length = counts_.back();
    counts_.pop_back();
    return nullptr;
  }
  const char* take_number() {
    if (numbers_ < 0) return take_element();
    ++numbers_;
    return nullptr;
  }
  int depth() const { return static_cast<int>(counts_.size()); }
  bool open() const { return !counts_.empty() || numbers_ >= 0; }
  bool is_list() const { return !dims_.empty(); }
  bool pairs() const { return pairs_; }
  const std::vector<int64_t>& dims() const { return dims_; }

 private:
  static constexpr const char* kUnequal = "the lists of the elements are not of one length";

  const char* take_element() {
    if (leaves_ >= 0 ? depth() != leaves_ : counts_.size() < dims_.size()) return kUnequal;
    leaves_ = depth();
    if (!counts_.empty()) ++counts_.back();
    return nullptr;
  }

  std::vector<int64_t> counts_;  // of the open lists so far
  std::vector<int64_t> dims_;    // lengths of the lists at each depth; -1: none is closed yet
  int leaves_ = -1;              // depth of the elements; -1: there was none yet
  int numbers_ = -1;             // numbers of the open pair; -1: none is open
  bool pairs_ = false;
};

}  // namespace

bool TextReader::read_dense_array(AttrRef* out) {
  // After "array": <i64: 1, 2> or <i1: true> or <f32: 1.0>
  if (!expect('<')) return false;
  const Token name = lexer_.peek();
  hlo::Type type;
  if (!read_scalar_type(&type)) return false;
  if (is_complex(type)) return error(name, "arrays hold integers or floats");
  std::string bytes;
  int64_t count = 0;
  if (accept(':')) {
    do {
      const Token token = lexer_.take();
      if (!append_element(bytes, type, token))
        return error(token, "this is no value of type " + std::string(name.text));
      ++count;
    } while (accept(','));
  }
  Attr* elements = program_.make_attr(Attr::Kind::Dense);
  elements->type = program_.tensor(program_.scalar(type), {&count, 1});
  elements->bytes = keep(bytes);
  if (is_float(type)) {
    *out = elements;
  } else {
    Attr* list = as_list(elements, program_);
    list->dims = {};
    *out = list;
  }
  return expect('>');
}

// A file may have {-# dialect_resources: {builtin: {name: "0x...", ...}} #-} before or after its uses, so all of them
// are read first.
bool TextReader::read_resources() {
  const std::string_view text = lexer_.text();
  size_t at = 0;
  for (size_t found = text.find("{-#"); found != std::string_view::npos; found = text.find("{-#", at)) {
    // Skips occurrences in strings and comments.
    while (at < found) {
      if (text[at] == '"') {
        for (++at; at < text.size() && text[at] != '"'; ++at)
          if (text[at] == '\\') ++at;
        ++at;
      } else if (text[at] == '/' && text.substr(at, 2) == "//") {
        at = std::min(text.find('\n', at), text.size());
      } else {
        ++at;
      }
    }
    if (at != found) continue;
    if (!read_resource_block(found)) return false;
    at = resource_blocks_.at(found);
  }
  lexer_.seek(0);
  return true;
}

bool TextReader::read_resource_block(size_t begin) {
  lexer_.seek(begin + 3);
  while (lexer_.peek().kind == Tok::Bare) {
    const bool elements = lexer_.take().text == "dialect_resources";
    if (!expect(':')) return false;
    if (!elements) {
      if (!skip_balanced('{', '}', nullptr)) return false;
    } else {
      if (!expect('{')) return false;
      while (lexer_.peek().kind == Tok::Bare) {
        const bool builtin = lexer_.take().text == "builtin";
        if (!expect(':')) return false;
        if (!(builtin ? read_resource_entries() : skip_balanced('{', '}', nullptr))) return false;
        if (!accept(',')) break;
      }
      if (!expect('}')) return false;
    }
    if (!accept(',')) break;
  }
  const size_t end = lexer_.peek().offset;
  if (lexer_.text().substr(std::min(end, lexer_.text().size()), 3) != "#-}")
    return error("expected the end of the resources");
  resource_blocks_[begin] = end + 3;
  return true;
}

bool TextReader::read_resource_entries() {
  if (!expect('{')) return false;
  while (!lexer_.peek().is('}')) {
    const Token name = lexer_.take();
    if (name.kind != Tok::Bare && name.kind != Tok::String) return error(name, "expected the name of a resource");
    if (!expect(':')) return false;
    const Token value = lexer_.take();
    if (value.kind != Tok::String) return error(value, "expected a resource's bytes");
    resources_[name.text].digits = value;
    if (!accept(',')) break;
  }
  return expect('}');
}

bool TextReader::read_dense_resource(AttrRef* out) {
  // After "dense_resource": <name> : type. The bytes of a resource follow its alignment, a number of four bytes.
  if (!expect('<')) return false;
  const Token name = lexer_.take();
  const auto found = resources_.find(name.text);
  if (found == resources_.end()) return error(name, "elements that lie in a resource are not in the text");
  TypeRef type = nullptr;
  if (!expect('>') || !expect(':') || !read_type(&type)) return false;
  // All uses share the decoded elements. A use with another type would need another array of that size, so it is an
  // error.
  Resource& resource = found->second;
  if (resource.elements) {
    *out = resource.elements;
    return same_type(type, resource.elements->type) || error(name, "the resource has been used as another type");
  }
  const hlo::Type element = type->kind == Type::Kind::Tensor ? element_type(type->element) : hlo::Type::Invalid;
  const int64_t count = element == hlo::Type::Invalid ? -1 : element_count(type);
  if (count < 0) return error(name, "elements need a tensor of known shape");
  std::string bytes;
  if (!hex_bytes(resource.digits.text, bytes) || bytes.size() < 4)
    return error(resource.digits, "expected hexadecimal elements");
  bytes.erase(0, 4);
  if (bytes.size() != static_cast<size_t>(count) * static_cast<size_t>(type_info(element).bytes()))
    return error(resource.digits, "there are " + std::to_string(bytes.size()) + " bytes for " + to_string(type));
  extend_elements(bytes, element);
  Attr* attr = program_.make_attr(Attr::Kind::Dense);
  attr->type = type;
  attr->bytes = keep(bytes);
  *out = resource.elements = attr;
  return true;
}

bool TextReader::read_dense(AttrRef* out) {
  // After "dense": the elements come before the type, so their tokens are kept.
  if (!expect('<')) return false;
  const Token first = lexer_.peek();
  std::vector<Token> tokens;
  Brackets brackets;
  std::string_view hex;
  while (!lexer_.peek().is('>')) {
    const Token token = lexer_.take();
    if (token.is('[') || token.is(']') || token.is('(') || token.is(')')) {
      if (const char* wrong = brackets.take(token)) return error(token, wrong);
    } else if (token.is(',')) {
      continue;
    } else if (token.kind == Tok::String && tokens.empty() && brackets.depth() == 0) {
      hex = token.text;
    } else if (token.kind == Tok::Integer || token.kind == Tok::Float || token.kind == Tok::Bare) {
      if (const char* wrong = brackets.take_number()) return error(token, wrong);
      tokens.push_back(token);
    } else {
      return error(token, "expected an element");
    }
  }
  if (brackets.open()) return error(first, "a bracket of the elements is not closed");
  if (!expect('>') || !expect(':')) return false;
  const Token type_token = lexer_.peek();
  TypeRef type = nullptr;
  if (!read_type(&type)) return false;
  if (type->kind != Type::Kind::Tensor) return error(type_token, "elements need a tensor type");
  const hlo::Type element = element_type(type->element);
  const int64_t count = element_count(type);
  if (element == hlo::Type::Invalid || count < 0) return error(type_token, "elements need a tensor of known shape");
  Attr* attr = program_.make_attr(Attr::Kind::Dense);
  attr->type = type;
  std::string bytes;
  const auto width = static_cast<size_t>(type_info(element).bytes());
  if (!hex.empty()) {
    if (!hex_bytes(hex, bytes)) return error(first, "expected hexadecimal elements");
    if (element == hlo::Type::PRED && bytes.size() == static_cast<size_t>((count + 7) / 8) &&
        bytes.size() != static_cast<size_t>(count)) {
      std::string unpacked(static_cast<size_t>(count), '\0');
      for (size_t i = 0; i < unpacked.size(); ++i) unpacked[i] = (bytes[i / 8] >> (i % 8)) & 1;
      bytes = std::move(unpacked);
    }
    if (!tokens.empty()) return error(tokens[0], "elements stand behind those in hexadecimal");
    extend_elements(bytes, element);
    attr->splat = bytes.size() == width && count != 1;
  } else {
    const hlo::Type part = real_type(element);
    for (const Token& token : tokens)
      if (!append_element(bytes, part, token))
        return error(token, "this is no value of type " + to_string(type->element));
    const bool list = brackets.is_list();
    if (list && !std::equal(brackets.dims().begin(), brackets.dims().end(), type->dims.begin(), type->dims.end())) {
      std::string shape;
      for (int64_t size : brackets.dims()) shape += (shape.empty() ? "" : "x") + std::to_string(size);
      return error(first, "there are " + shape + " elements for " + to_string(type));
    }
    attr->splat = !list && count != 1 && !tokens.empty();
    if (is_complex(element) != brackets.pairs() && !tokens.empty())
      return error(first, "only complex elements are pairs in parentheses, and all of them");
  }
  const size_t wanted = attr->splat ? width : static_cast<size_t>(count) * width;
  if (bytes.size() != wanted)
    return error(first,
                 "there are " + std::to_string(width ? bytes.size() / width : 0) + " elements for " + to_string(type));
  attr->bytes = keep(bytes);
  *out = attr;
  return true;
}

}  // namespace collet::hlo::mlir
