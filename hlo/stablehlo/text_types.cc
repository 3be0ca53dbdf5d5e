// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <functional>

#include "hlo/base/decimal.h"
#include "hlo/ir/shape.h"
#include "hlo/stablehlo/text_reader.h"

namespace collet::hlo::mlir {
namespace {

/// Converts "i32", "ui8", "si8", "f32", "bf16", "f8E4M3FN" to HLO types; Invalid for others.
hlo::Type scalar_by_name(std::string_view name) {
  if (name == "i1") return hlo::Type::PRED;
  const auto numbered = [&](size_t prefix) -> std::string {
    const std::string_view digits = name.substr(prefix);
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) return {};
    return std::string(digits);
  };
  if (name.starts_with("ui")) {
    const std::string bits = numbered(2);
    return bits.empty() ? hlo::Type::Invalid : type_from_text("u" + bits).value_or(hlo::Type::Invalid);
  }
  if (name.starts_with("si")) {
    const std::string bits = numbered(2);
    return bits.empty() ? hlo::Type::Invalid : type_from_text("s" + bits).value_or(hlo::Type::Invalid);
  }
  if (name.starts_with("i")) {
    const std::string bits = numbered(1);
    return bits.empty() ? hlo::Type::Invalid : type_from_text("s" + bits).value_or(hlo::Type::Invalid);
  }
  std::string lower(name);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  const auto type = type_from_text(lower);
  return type && is_float(*type) ? *type : hlo::Type::Invalid;
}

}  // namespace

bool TextReader::read_scalar_type(hlo::Type* out) {
  const Token token = lexer_.take();
  if (token.kind == Tok::Bare) *out = scalar_by_name(token.text);
  if (token.kind != Tok::Bare || *out == hlo::Type::Invalid) return error(token, "expected an element type");
  return true;
}

bool TextReader::read_types_in_parens(std::vector<TypeRef>* out) {
  if (!expect('(')) return false;
  if (accept(')')) return true;
  do {
    TypeRef type = nullptr;
    if (!read_type(&type)) return false;
    out->push_back(type);
  } while (accept(','));
  return expect(')');
}

bool TextReader::read_result_types(std::vector<TypeRef>* out) {
  if (lexer_.peek().is('(')) return read_types_in_parens(out);
  TypeRef type = nullptr;
  if (!read_type(&type)) return false;
  out->push_back(type);
  return true;
}

bool TextReader::read_bounds(List<const int64_t>* out) {
  // After "stablehlo.bounds": <?, 4, ?>
  if (!expect('<')) return false;
  std::vector<int64_t> bounds;
  do {
    if (accept('?')) {
      bounds.push_back(kUnbounded);
      continue;
    }
    int64_t value;
    if (!read_int(&value)) return false;
    bounds.push_back(value);
  } while (accept(','));
  *out = program_.arena().list(bounds);
  return expect('>');
}

bool TextReader::read_tensor(TypeRef* out, Type::Kind kind) {
  // The current token is the '<' after the keyword. Dimensions are read from the raw text, because 2x3xf32 is not a
  // token.
  if (!lexer_.peek().is('<')) return error("expected '<'");
  const std::string_view text = lexer_.text();
  size_t at = lexer_.peek().offset + 1;
  const auto skip = [&] {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r')) ++at;
  };
  std::vector<int64_t> dims;
  skip();
  if (at < text.size() && text[at] == '*') {
    at += 2;
    lexer_.seek(std::min(at, text.size()));
    Type* type = program_.make_type(Type::Kind::UnrankedTensor);
    if (!read_type(&type->element)) return false;
    *out = type;
    return expect('>') && complete(type);
  }
  for (skip(); at < text.size(); skip()) {
    if (text[at] == '?') {
      dims.push_back(kUnbounded);
      ++at;
    } else if (text[at] >= '0' && text[at] <= '9') {
      int64_t value = 0;
      const auto [end, bad] = std::from_chars(text.data() + at, text.data() + text.size(), value);
      if (bad != std::errc()) return error("a dimension does not fit 64 bits");
      dims.push_back(value);
      at = static_cast<size_t>(end - text.data());
    } else {
      break;
    }
    skip();
    if (at >= text.size() || text[at] != 'x') {
      lexer_.seek(at);
      return error("expected 'x' between dimensions");
    }
    ++at;
  }
  lexer_.seek(std::min(at, text.size()));
  Type* type = program_.make_type(kind);
  if (!read_type(&type->element)) return false;
  type->dims = program_.arena().list(dims);
  if (accept(',')) {
    const Token encoding = lexer_.take();
    if (encoding.kind == Tok::Hash &&
        (encoding.text == "stablehlo.bounds" || encoding.text == "stablehlo.type_extensions" ||
         encoding.text == "mhlo.type_extensions")) {
      if (encoding.text == "stablehlo.bounds") {
        if (!read_bounds(&type->bounds)) return false;
      } else {
        if (!expect('<') || !expect_word("bounds") || !expect('=')) return false;
        std::vector<int64_t> bounds;
        if (!expect('[')) return false;
        while (!lexer_.peek().is(']')) {
          int64_t value = kUnbounded;
          if (!accept('?') && !read_int(&value)) return false;
          bounds.push_back(value);
          if (!accept(',')) break;
        }
        type->bounds = program_.arena().list(bounds);
        if (!expect(']') || !expect('>')) return false;
      }
      if (type->bounds.empty() && !dims.empty()) return error(encoding, "one bound for each dimension is needed");
    } else if (encoding.kind == Tok::Hash) {
      if (lexer_.peek().is('<') && !skip_balanced('<', '>', nullptr)) return false;
    } else {
      return error(encoding, "expected an encoding");
    }
  }
  *out = type;
  return expect('>') && complete(type);
}

bool TextReader::read_quantized(TypeRef* out) {
  // After "!quant.uniform": <i8<-128:127>:f32:1, {0.1:2, 0.2}>, <i8:f32, 0.1:2>, or with blocks of 3 elements along
  // dimension 1, <i8:f32:{1:3}, {{0.1:2, 0.2}}>
  if (!expect('<')) return false;
  Quantization q;
  // MLIR writes the unsigned type of 8 bits as u8 here; everywhere else, and here too, ui8 is read.
  const std::string_view word = lexer_.peek().text;
  if (const hlo::Type type = scalar_by_name("ui" + std::string(word.empty() ? word : word.substr(1)));
      word.starts_with('u') && type != hlo::Type::Invalid) {
    lexer_.take();
    q.storage = type;
  } else if (!read_scalar_type(&q.storage)) {
    return false;
  }
  if (!is_integer(q.storage)) return error("the storage type of a quantized type must be an integer");
  const int bits = type_info(q.storage).bits;
  if (is_unsigned(q.storage)) {
    q.storage_min = 0;
    q.storage_max = bits >= 63 ? INT64_MAX : (int64_t{1} << bits) - 1;
  } else {
    q.storage_min = bits >= 64 ? INT64_MIN : -(int64_t{1} << (bits - 1));
    q.storage_max = bits >= 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1;
  }
  if (accept('<')) {
    if (!read_int(&q.storage_min) || !expect(':') || !read_int(&q.storage_max) || !expect('>')) return false;
  }
  if (!expect(':') || !read_scalar_type(&q.expressed)) return false;
  if (!is_float(q.expressed)) return error("the expressed type of a quantized type must be a float");
  std::vector<std::pair<int64_t, int64_t>> blocks;  // dimensions and sizes
  bool in_blocks = false;
  if (accept(':')) {
    if (accept('{')) {
      in_blocks = true;
      if (!accept('}')) {
        do {
          const Token at = lexer_.peek();
          int64_t dimension = 0, size = 0;
          if (!read_int(&dimension) || !expect(':') || !read_int(&size)) return false;
          if (dimension < 0 || dimension >= static_cast<int64_t>(kMostDimensions) || size <= 0)
            return error(at, "a block needs a dimension and a positive size");
          for (const auto& [other, _] : blocks)
            if (other == dimension) return error(at, "the blocks of a dimension are given twice");
          blocks.emplace_back(dimension, size);
        } while (accept(','));
        if (!expect('}')) return false;
      }
    } else if (!read_int(&q.axis)) {
      return false;
    }
  }
  if (!expect(',')) return false;
  std::vector<double> scales;
  std::vector<int64_t> zero_points;
  const auto entry = [&] {
    const Token token = lexer_.take();
    if (token.kind != Tok::Float && token.kind != Tok::Integer) return error(token, "expected a scale");
    const auto scale = decimal_value(token.text);
    if (!scale) return error(token, "expected a scale");
    scales.push_back(*scale);
    zero_points.push_back(0);
    return !accept(':') || read_int(&zero_points.back());
  };
  std::vector<int64_t> grid, sizes;
  if (in_blocks) {
    const Token at = lexer_.peek();
    // Braces to the depth of the tensor's rank. All lists of one depth have one length.
    const std::function<bool(size_t)> nested = [&](size_t depth) {
      if (!accept('{')) {
        if (depth != grid.size()) return error("the lists of scales have different depths");
        return entry();
      }
      if (depth >= kMostDimensions) return error("too many dimensions of scales");
      const bool first = depth == grid.size();
      if (first && !scales.empty()) return error("the lists of scales have different depths");
      if (first) grid.push_back(0);
      int64_t count = 0;
      do {
        if (!nested(depth + 1)) return false;
        ++count;
      } while (accept(','));
      if (grid[depth] == 0) grid[depth] = count;
      if (count != grid[depth]) return error("the lists of scales have different lengths");
      return expect('}');
    };
    if (!nested(0)) return false;
    sizes.assign(grid.size(), 0);
    for (const auto& [dimension, size] : blocks) {
      if (static_cast<size_t>(dimension) >= grid.size()) return error(at, "the scales have no dimension of a block");
      sizes[static_cast<size_t>(dimension)] = size;
    }
    for (size_t d = 0; d < grid.size(); ++d)
      if (sizes[d] == 0 && grid[d] != 1) return error(at, "scales along a dimension without a block size");
    // One scale, or one for each element of a dimension, are the usual types.
    const auto along = std::find_if(grid.begin(), grid.end(), [](int64_t count) { return count != 1; });
    const auto others =
        along == grid.end() ? along : std::find_if(along + 1, grid.end(), [](int64_t n) { return n != 1; });
    const auto axis = along - grid.begin();
    if (along == grid.end() || (others == grid.end() && sizes[static_cast<size_t>(axis)] == 1)) {
      if (along != grid.end()) q.axis = axis;
      grid.clear();
      sizes.clear();
    }
  } else if (accept('{')) {
    do {
      if (!entry()) return false;
    } while (accept(','));
    if (!expect('}')) return false;
  } else if (!entry()) {
    return false;
  }
  q.grid = program_.arena().list(grid);
  q.block_sizes = program_.arena().list(sizes);
  q.scales = program_.arena().list(scales);
  q.zero_points = program_.arena().list(zero_points);
  Type* type = program_.make_type(Type::Kind::Quantized);
  type->quantization = program_.arena().make<Quantization>(q);
  *out = type;
  return expect('>') && complete(type);
}

bool TextReader::complete(Type* type) {
  const Status status = program_.complete(type);
  return status.ok() || error(status.message());
}

bool TextReader::read_elements(Type::Kind kind, TypeRef* out) {
  Type* type = program_.make_type(kind);
  std::vector<TypeRef> elements;
  if (!expect('<')) return false;
  while (!lexer_.peek().is('>')) {
    TypeRef element = nullptr;
    if (!read_type(&element)) return false;
    elements.push_back(element);
    if (!accept(',')) break;
  }
  type->inputs = program_.arena().list(elements);
  *out = type;
  return expect('>') && complete(type);
}

bool TextReader::read_type(TypeRef* out) {
  if (++depth_ > 200) return error("types are nested too deeply");
  struct DepthGuard {
    int& depth;
    ~DepthGuard() { --depth; }
  } leave{depth_};
  const Token token = lexer_.peek();
  if (token.is('(')) {
    Type* type = program_.make_type(Type::Kind::Function);
    std::vector<TypeRef> inputs, results;
    if (!read_functional(&inputs, &results)) return false;
    type->inputs = program_.arena().list(inputs);
    type->results = program_.arena().list(results);
    *out = type;
    return complete(type);
  }
  if (token.kind == Tok::Bang) {
    lexer_.take();
    if (const auto it = type_aliases_.find(token.text); it != type_aliases_.end()) {
      *out = it->second;
      const Status status = program_.charge(*out);
      return status.ok() || error(token, status.message());
    }
    if (token.text == "stablehlo.token" || token.text == "mhlo.token") {
      *out = program_.make_type(Type::Kind::Token);
      return true;
    }
    if (token.text == "stablehlo.future") return read_elements(Type::Kind::Future, out);
    if (token.text == "quant.uniform") return read_quantized(out);
    Type* type = program_.make_type(Type::Kind::Unknown);
    type->text = keep("!" + std::string(token.text));
    if (lexer_.peek().is('<') && !skip_balanced('<', '>', nullptr)) return false;
    *out = type;
    return true;
  }
  if (token.kind != Tok::Bare) return error("expected a type");
  lexer_.take();
  if (token.text == "tensor") return read_tensor(out, Type::Kind::Tensor);
  if (token.text == "memref") return read_tensor(out, Type::Kind::Buffer);
  if (token.text == "index") {
    *out = program_.make_type(Type::Kind::Index);
    return true;
  }
  if (token.text == "none") {
    *out = program_.make_type(Type::Kind::None);
    return true;
  }
  if (token.text == "complex") {
    hlo::Type part;
    if (!expect('<') || !read_scalar_type(&part)) return false;
    if (part != hlo::Type::F32 && part != hlo::Type::F64) return error("complex numbers have f32 or f64 parts");
    *out = program_.scalar(part == hlo::Type::F64 ? hlo::Type::C128 : hlo::Type::C64);
    return expect('>');
  }
  if (token.text == "tuple") return read_elements(Type::Kind::Tuple, out);
  if (token.text == "tf32") {
    // tf32 is a type in dot algorithms only; no value has it.
    Type* type = program_.make_type(Type::Kind::Unknown);
    type->text = "tf32";
    *out = type;
    return true;
  }
  const hlo::Type scalar = scalar_by_name(token.text);
  if (scalar == hlo::Type::Invalid && token.text.starts_with("f6E"))
    return error(token, "HLO has no type for elements of " + std::string(token.text));
  if (scalar == hlo::Type::Invalid) return error(token, "unknown type '" + std::string(token.text) + "'");
  *out = program_.scalar(scalar);
  return true;
}

bool TextReader::read_functional(std::vector<TypeRef>* inputs, std::vector<TypeRef>* outputs) {
  if (!read_types_in_parens(inputs)) return false;
  const Token arrow = lexer_.take();
  if (arrow.kind != Tok::Arrow) return error(arrow, "expected '->'");
  return read_result_types(outputs);
}

}  // namespace collet::hlo::mlir
