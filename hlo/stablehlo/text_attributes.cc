// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <unordered_set>

#include "hlo/base/decimal.h"
#include "hlo/base/float_format.h"
#include "hlo/stablehlo/text_number.h"
#include "hlo/stablehlo/text_reader.h"

namespace collet::hlo::mlir {

AttrRef TextReader::make_ints(const std::vector<int64_t>& values) {
  Attr* out = program_.make_attr(Attr::Kind::Ints);
  out->ints = program_.arena().list(values);
  return out;
}

AttrRef TextReader::make_int(int64_t value, hlo::Type type) {
  Attr* out = program_.make_attr(Attr::Kind::Int);
  out->integer = value;
  out->type = program_.scalar(type);
  return out;
}

AttrRef TextReader::make_enum(std::string_view text) {
  Attr* out = program_.make_attr(Attr::Kind::Enum);
  out->text = keep(text);
  return out;
}

bool TextReader::read_int(int64_t* out) {
  const Token token = lexer_.take();
  if (token.kind != Tok::Integer || !parse_int(token.text, out)) return error(token, "expected an integer");
  return true;
}

bool TextReader::read_int_list(std::vector<int64_t>* out) {
  if (!expect('[')) return false;
  while (!lexer_.peek().is(']')) {
    int64_t value;
    if (lexer_.peek().kind == Tok::Bare) {
      const Token word = lexer_.take();
      if (word.text != "true" && word.text != "false") return error(word, "expected an integer");
      value = word.text == "true";
    } else if (!read_int(&value)) {
      return false;
    }
    out->push_back(value);
    if (!accept(',')) break;
  }
  return expect(']');
}

/// Skips from the opening character to its closing one; other brackets in between must balance among themselves.
bool TextReader::skip_balanced(char open, char close, std::string_view* text) {
  const Token first = lexer_.peek();
  if (!first.is(open)) return error(std::string("expected '") + open + "'");
  int depth = 0;
  while (true) {
    const Token token = lexer_.take();
    if (token.kind == Tok::End || token.kind == Tok::Bad) return error(first, "a bracket is not closed");
    if (token.is(open)) ++depth;
    if (token.is(close) && --depth == 0) {
      if (text) *text = keep(lexer_.text().substr(first.offset, token.offset + 1 - first.offset));
      return true;
    }
  }
}

bool TextReader::read_number(AttrRef* out) {
  const Token token = lexer_.take();
  const bool is_float_token = token.kind == Tok::Float;
  TypeRef type = nullptr;
  if (accept(':') && !read_type(&type)) return false;
  const hlo::Type scalar = type ? element_type(type) : is_float_token ? hlo::Type::F64 : hlo::Type::S64;
  if (!type) type = program_.scalar(scalar);
  if (is_float_token || is_float(scalar)) {
    Attr* attr = program_.make_attr(Attr::Kind::Float);
    int64_t bits;
    if (!is_float_token && is_hex_number(token.text) && parse_int(token.text, &bits))
      attr->number = decode_float(float_format(static_cast<uint32_t>(scalar)), static_cast<uint64_t>(bits));
    else if (const auto number = decimal_value(token.text))
      attr->number = *number;
    else
      return error(token, "expected a number");
    attr->type = type;
    *out = attr;
    return true;
  }
  Attr* attr = program_.make_attr(Attr::Kind::Int);
  if (!parse_int(token.text, &attr->integer)) return error(token, "the number does not fit 64 bits");
  attr->type = type;
  *out = attr;
  return true;
}

bool TextReader::read_array(AttrRef* out) {
  if (!expect('[')) return false;
  std::vector<AttrRef> items;
  while (!lexer_.peek().is(']')) {
    AttrRef item = nullptr;
    if (!read_attr(&item)) return false;
    items.push_back(item);
    if (!accept(',')) break;
  }
  Attr* attr = program_.make_attr(Attr::Kind::Array);
  attr->items = program_.arena().list(items);
  *out = attr;
  return expect(']') && complete(attr);
}

bool TextReader::complete(Attr* attr) {
  const Status status = program_.complete(attr);
  return status.ok() || error(status.message());
}

bool TextReader::read_conv_labels(std::vector<NamedAttr>* out) {
  // The labels of a convolution: letters and numbers. The kernel has the letters i and o, input and output have b and
  // f.
  struct Part {
    int64_t first = -1, second = -1;
    std::vector<int64_t> spatial;
  };
  const auto part = [&](std::string_view a, std::string_view b, Part* p) {
    if (!expect('[')) return false;
    std::vector<std::pair<int64_t, int64_t>> spatial;
    int64_t position = 0;
    while (!lexer_.peek().is(']')) {
      const Token token = lexer_.take();
      if (token.kind == Tok::Bare && token.text == a) {
        p->first = position;
      } else if (token.kind == Tok::Bare && token.text == b) {
        p->second = position;
      } else if (token.kind == Tok::Integer) {
        int64_t number;
        if (!parse_int(token.text, &number) || number < 0 || number > 64)
          return error(token, "a bad spatial dimension");
        spatial.emplace_back(number, position);
      } else if (!token.is('?')) {
        return error(token, "expected a dimension label");
      }
      ++position;
      if (!accept(',')) break;
    }
    p->spatial.assign(spatial.size(), -1);
    for (const auto& [number, at] : spatial) {
      if (number >= static_cast<int64_t>(spatial.size())) return error("spatial dimensions must be numbered from 0");
      p->spatial[static_cast<size_t>(number)] = at;
    }
    return expect(']');
  };
  Part input, kernel, output;
  if (!part("b", "f", &input)) return false;
  // In "x[" the x is an identifier token.
  if (!expect_word("x") || !part("i", "o", &kernel)) return false;
  const Token arrow = lexer_.take();
  if (arrow.kind != Tok::Arrow) return error(arrow, "expected '->'");
  if (!part("b", "f", &output)) return false;
  out->push_back({"input_batch_dimension", make_int(input.first)});
  out->push_back({"input_feature_dimension", make_int(input.second)});
  out->push_back({"input_spatial_dimensions", make_ints(input.spatial)});
  out->push_back({"kernel_input_feature_dimension", make_int(kernel.first)});
  out->push_back({"kernel_output_feature_dimension", make_int(kernel.second)});
  out->push_back({"kernel_spatial_dimensions", make_ints(kernel.spatial)});
  out->push_back({"output_batch_dimension", make_int(output.first)});
  out->push_back({"output_feature_dimension", make_int(output.second)});
  out->push_back({"output_spatial_dimensions", make_ints(output.spatial)});
  return true;
}

/// Converts a structured attribute of StableHLO: some have an attribute kind of their own here, others become
/// dictionaries.
Attr* TextReader::make_record(std::string_view name, const std::vector<NamedAttr>& fields) {
  const auto field = [&](std::string_view wanted) -> AttrRef {
    for (const NamedAttr& f : fields)
      if (f.name == wanted) return f.value;
    return nullptr;
  };
  const auto number = [&](std::string_view wanted) {
    AttrRef a = field(wanted);
    return !a ? 0.0 : a->kind == Attr::Kind::Float ? a->number : static_cast<double>(a->integer);
  };
  if (name == "stablehlo.result_accuracy") {
    Attr* attr = program_.make_attr(Attr::Kind::Accuracy);
    attr->floats = program_.arena().list(std::vector<double>{number("atol"), number("rtol")});
    if (AttrRef ulps = field("ulps")) attr->integer = ulps->integer;
    attr->text = "DEFAULT";
    // #stablehlo.result_accuracy_mode<HIGHEST>
    if (AttrRef mode = field("mode"))
      for (std::string_view known : {"HIGHEST", "TOLERANCE"})
        if (mode->text.find(known) != std::string_view::npos) attr->text = known;
    return attr;
  }
  if (name == "stablehlo.output_operand_alias") {
    const AttrRef outputs = field("output_tuple_indices"), operand = field("operand_index"),
                  operands = field("operand_tuple_indices");
    std::vector<int64_t> all{outputs ? static_cast<int64_t>(outputs->ints.size()) : 0};
    if (outputs) all.insert(all.end(), outputs->ints.begin(), outputs->ints.end());
    all.push_back(operand ? operand->integer : 0);
    if (operands) all.insert(all.end(), operands->ints.begin(), operands->ints.end());
    Attr* attr = program_.make_attr(Attr::Kind::Alias);
    attr->ints = program_.arena().list(all);
    return attr;
  }
  Attr* attr = program_.make_attr(Attr::Kind::Dict);
  attr->fields = program_.arena().list(fields);
  return attr;
}

bool TextReader::read_hash_attr(AttrRef* out) {
  const Token token = lexer_.take();
  if (const auto it = aliases_.find(token.text); it != aliases_.end()) {
    *out = it->second;
    const Status status = program_.charge(*out);
    return status.ok() || error(token, status.message());
  }
  const std::string_view name = token.text;
  if (!lexer_.peek().is('<')) {
    // An alias that is used before its definition is always a location.
    *out = program_.make_attr(Attr::Kind::Location);
    return true;
  }
  if (name == "stablehlo" || name == "chlo" || name == "mhlo" || name == "vhlo") {
    // #stablehlo<comparison_direction LT>
    expect('<');
    const Token kind = lexer_.take(), value = lexer_.take();
    if (kind.kind != Tok::Bare) return error(kind, "expected the name of an enumeration");
    *out = make_enum(value.text);
    if (lexer_.peek().is('<') && !skip_balanced('<', '>', nullptr)) return false;
    return expect('>');
  }
  if (name == "stablehlo.conv") {
    expect('<');
    std::vector<NamedAttr> fields;
    if (!read_conv_labels(&fields)) return false;
    Attr* attr = program_.make_attr(Attr::Kind::Dict);
    attr->fields = program_.arena().list(fields);
    *out = attr;
    return expect('>');
  }
  if (name.starts_with("stablehlo.") || name.starts_with("chlo.")) {
    // #stablehlo.gather<offset_dims = [0], ...>; unknown bodies are kept as text.
    const size_t begin = lexer_.peek().offset;
    expect('<');
    std::vector<NamedAttr> fields;
    bool plain = true;
    while (plain && !lexer_.peek().is('>')) {
      const Token key = lexer_.take();
      if (key.kind != Tok::Bare || !accept('=')) {
        plain = false;
        break;
      }
      AttrRef value = nullptr;
      const size_t start = lexer_.peek().offset;
      const bool list = accept('[');
      const bool records = list && lexer_.peek().kind == Tok::Hash;
      if (list) lexer_.seek(start);
      if (list && !records) {
        std::vector<int64_t> ints;
        if (!read_int_list(&ints)) return false;
        value = make_ints(ints);
      } else if (lexer_.peek().kind == Tok::Bare && lexer_.peek().text != "true" && lexer_.peek().text != "false") {
        // A type (in dot_algorithm) or the name of an enumeration value.
        const size_t at = lexer_.peek().offset;
        const Token word = lexer_.take();
        if (word.text.find_first_of("0123456789") != std::string_view::npos) {
          lexer_.seek(at);
          Attr* type = program_.make_attr(Attr::Kind::Type);
          if (!read_type(&type->type)) return false;
          value = type;
        } else {
          value = make_enum(word.text);
        }
      } else if (!read_attr(&value)) {
        return false;
      }
      fields.push_back({keep(key.text), value});
      if (!accept(',')) break;
    }
    if (plain) {
      Attr* record = make_record(name, fields);
      *out = record;
      return expect('>') && complete(record);
    }
    lexer_.seek(begin);
  }
  Attr* attr = program_.make_attr(Attr::Kind::Raw);
  if (!skip_balanced('<', '>', &attr->text)) return false;
  attr->text = keep("#" + std::string(name) + std::string(attr->text));
  *out = attr;
  return true;
}

bool TextReader::read_attr(AttrRef* out) {
  if (++depth_ > 200) return error("attributes are nested too deeply");
  struct DepthGuard {
    int& depth;
    ~DepthGuard() { --depth; }
  } leave{depth_};
  const Token token = lexer_.peek();
  switch (token.kind) {
    case Tok::Integer:
    case Tok::Float:
      return read_number(out);
    case Tok::String: {
      lexer_.take();
      Attr* attr = program_.make_attr(Attr::Kind::String);
      attr->text = keep(unescape(token.text));
      TypeRef ignored;
      if (accept(':') && !read_type(&ignored)) return false;
      *out = attr;
      return true;
    }
    case Tok::Symbol: {
      lexer_.take();
      Attr* attr = program_.make_attr(Attr::Kind::Symbol);
      attr->text = keep(unescape(token.text));
      *out = attr;
      return true;
    }
    case Tok::Hash:
      return read_hash_attr(out);
    case Tok::Bang: {
      Attr* attr = program_.make_attr(Attr::Kind::Type);
      *out = attr;
      return read_type(&attr->type);
    }
    case Tok::Punct:
      if (token.is('[')) return read_array(out);
      if (token.is('{')) {
        std::vector<NamedAttr> fields;
        if (!read_attr_dict(&fields)) return false;
        Attr* attr = program_.make_attr(Attr::Kind::Dict);
        attr->fields = program_.arena().list(fields);
        *out = attr;
        return complete(attr);
      }
      if (token.is('(')) {
        Attr* attr = program_.make_attr(Attr::Kind::Type);
        *out = attr;
        return read_type(&attr->type);
      }
      return error("expected an attribute");
    case Tok::Bare:
      break;
    default:
      return error("expected an attribute");
  }
  if (token.text == "true" || token.text == "false") {
    lexer_.take();
    Attr* attr = program_.make_attr(Attr::Kind::Bool);
    attr->integer = token.text == "true";
    *out = attr;
    return true;
  }
  if (token.text == "unit") {
    lexer_.take();
    *out = program_.make_attr(Attr::Kind::Unit);
    return true;
  }
  if (token.text == "dense") {
    lexer_.take();
    return read_dense(out);
  }
  if (token.text == "array") {
    lexer_.take();
    return read_dense_array(out);
  }
  if (token.text == "dense_resource") {
    lexer_.take();
    return read_dense_resource(out);
  }
  if (token.text == "loc") {
    *out = program_.make_attr(Attr::Kind::Location);
    return skip_location();
  }
  Attr* attr = program_.make_attr(Attr::Kind::Type);
  *out = attr;
  return read_type(&attr->type);
}

bool TextReader::read_attr_dict(std::vector<NamedAttr>* out) {
  if (!expect('{')) return false;
  std::unordered_set<std::string_view> names;
  while (!lexer_.peek().is('}')) {
    const Token name = lexer_.take();
    if (name.kind != Tok::Bare && name.kind != Tok::String) return error(name, "expected the name of an attribute");
    NamedAttr attr{keep(name.kind == Tok::String ? unescape(name.text) : std::string(name.text)), nullptr};
    if (!names.insert(attr.name).second) return error(name, "'" + std::string(attr.name) + "' is given twice");
    if (accept('=')) {
      if (!read_attr(&attr.value)) return false;
      // An attribute that is kept as text may state its type: #complex.number<:f32 1.0, 2.0> : complex<f32>.
      TypeRef ignored;
      if (attr.value->kind == Attr::Kind::Raw && accept(':') && !read_type(&ignored)) return false;
    } else {
      attr.value = program_.make_attr(Attr::Kind::Unit);
    }
    out->push_back(attr);
    if (!accept(',')) break;
  }
  return expect('}');
}

}  // namespace collet::hlo::mlir
