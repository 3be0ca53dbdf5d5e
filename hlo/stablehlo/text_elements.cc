// SPDX-License-Identifier: Apache-2.0
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

}  // namespace

bool TextReader::read_dense_array(AttrRef* out) {
  // After "array": <i64: 1, 2> or <i1: true>
  if (!expect('<')) return false;
  hlo::Type type;
  if (!read_scalar_type(&type)) return false;
  std::vector<int64_t> values;
  if (accept(':')) {
    do {
      const Token token = lexer_.take();
      int64_t value = 0;
      if (token.kind == Tok::Bare && (token.text == "true" || token.text == "false"))
        value = token.text == "true";
      else if (token.kind != Tok::Integer || !parse_int(token.text, &value))
        return error(token, "expected an integer");
      values.push_back(value);
    } while (accept(','));
  }
  Attr* attr = program_.make_attr(type == hlo::Type::PRED ? Attr::Kind::Bools : Attr::Kind::Ints);
  attr->ints = program_.arena().list(values);
  if (type != hlo::Type::S64) attr->type = program_.scalar(type);
  *out = attr;
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
  int depth = 0, deepest = 0;  // distinguishes splats from lists
  bool in_complex = false;
  std::string_view hex;
  while (!lexer_.peek().is('>')) {
    const Token token = lexer_.take();
    if (token.is('[')) {
      deepest = std::max(deepest, ++depth);
      if (depth > 64) return error(token, "elements are nested too deeply");
    } else if (token.is(']')) {
      if (--depth < 0) return error(token, "unexpected ']'");
    } else if (token.is('(')) {
      in_complex = true;
    } else if (token.is(')')) {
      in_complex = false;
    } else if (token.is(',')) {
      continue;
    } else if (token.kind == Tok::String && tokens.empty() && depth == 0) {
      hex = token.text;
    } else if (token.kind == Tok::Integer || token.kind == Tok::Float || token.kind == Tok::Bare) {
      tokens.push_back(token);
    } else {
      return error(token, "expected an element");
    }
  }
  if (depth != 0 || in_complex) return error(first, "a bracket of the elements is not closed");
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
    attr->splat = deepest == 0 && count != 1 && !tokens.empty();
    // A single real number is not a complex element, not even in a splat.
    if (is_complex(element) && tokens.size() % 2) return error(first, "complex elements come in pairs");
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
