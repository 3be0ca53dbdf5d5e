// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <optional>

#include "hlo/base/decimal.h"
#include "hlo/stablehlo/text_reader.h"

// Reads the short forms of ops: most consist of operands and `keyword = value` items, attributes in braces, and types;
// a few have a syntax of their own. The values are stored under the flat attribute names of the normal form.

namespace collet::hlo::mlir {
namespace {

struct Keyword {
  std::string_view op;
  std::string_view keyword;
  std::string_view attribute;
};

// Maps the keyword of a `keyword = value` item of an op to the attribute's flat name. Other keywords are the names of
// their attributes.
constexpr Keyword kKeywords[] = {
    {"stablehlo.broadcast", "sizes", "broadcast_sizes"},
    {"stablehlo.broadcast_in_dim", "dims", "broadcast_dimensions"},
    {"stablehlo.concatenate", "dim", "dimension"},
    {"stablehlo.dynamic_broadcast_in_dim", "dims", "broadcast_dimensions"},
    {"stablehlo.dynamic_iota", "dim", "iota_dimension"},
    {"stablehlo.dynamic_slice", "sizes", "slice_sizes"},
    {"stablehlo.einsum", "config", "einsum_config"},
    {"stablehlo.fft", "length", "fft_length"},
    {"stablehlo.fft", "type", "fft_type"},
    {"stablehlo.get_dimension_size", "dim", "dimension"},
    {"stablehlo.iota", "dim", "iota_dimension"},
    {"stablehlo.map", "dims", "dimensions"},
    {"stablehlo.pad", "high", "edge_padding_high"},
    {"stablehlo.pad", "interior", "interior_padding"},
    {"stablehlo.pad", "low", "edge_padding_low"},
    {"stablehlo.reverse", "dims", "dimensions"},
    {"stablehlo.rng", "distribution", "rng_distribution"},
    {"stablehlo.rng_bit_generator", "algorithm", "rng_algorithm"},
    {"stablehlo.set_dimension_size", "dim", "dimension"},
    {"stablehlo.transpose", "dims", "permutation"},
};

std::string_view attribute_name(std::string_view op, std::string_view keyword) {
  for (const Keyword& row : kKeywords)
    if (row.op == op && row.keyword == keyword) return row.attribute;
  return keyword;
}

// Returns the name in the normal form for a field of a structured attribute.
std::string_view flat_field(std::string_view op, std::string_view field) {
  static constexpr Keyword kFields[] = {
      {"stablehlo.dot_general", "lhs_batching_dimensions", "lhs_batching_dimensions"},
      {"", "handle", "channel_id"},
      {"", "type", "channel_type"},
      {"stablehlo.scatter", "index_vector_dim", "index_vector_dim"},
  };
  for (const Keyword& row : kFields)
    if ((row.op.empty() || row.op == op) && row.keyword == field) return row.attribute;
  return field;
}

// True for structured attributes, whose fields become attributes of the op.
bool is_record(std::string_view name) {
  return name == "dimension_numbers" || name == "scatter_dimension_numbers" || name == "dot_dimension_numbers" ||
         name == "channel_handle" || name == "algorithm" || name == "ragged_dot_dimension_numbers";
}

}  // namespace

void TextReader::flatten_attributes(Op* op) {
  std::vector<NamedAttr> out;
  for (NamedAttr& a : op->attrs) {
    if (!a.value) continue;
    if (is_record(a.name) && a.value->kind == Attr::Kind::Dict) {
      for (const NamedAttr& field : a.value->fields)
        out.push_back({keep(flat_field(op->name, field.name)), field.value});
      continue;
    }
    if (a.name != "value" && is_list(a.value)) a.value = as_list(a.value, program_);
    out.push_back(a);
  }
  op->attrs = std::move(out);
}

/// Reads the types of an op: a function type, one type for all, or one type per operand.
bool TextReader::read_signature(Op* op, size_t result_count, std::vector<TypeRef>* result_types) {
  if (!accept(':')) {
    // A terminator without values, or an op whose result types follow from its operands.
    if (op->operands.empty() && result_count == 0) return true;
    return error("expected ':' and the types");
  }
  const Token first = lexer_.peek();
  if (first.is('(')) {
    std::vector<TypeRef> inputs;
    return read_functional(&inputs, result_types) && check_operands(*op, inputs, first);
  }
  std::vector<TypeRef> types;
  do {
    TypeRef type = nullptr;
    if (!read_type(&type)) return false;
    types.push_back(type);
  } while (accept(','));
  if (lexer_.peek().kind == Tok::Arrow) {
    lexer_.take();
    return check_operands(*op, types, first) && read_result_types(result_types);
  }
  // One type for all operands, or one per operand; the results of tuple and complex follow from them.
  if (op->name == "stablehlo.tuple" || op->name == "stablehlo.complex") {
    if (types.size() != 1) return error(first, "expected the type of the result");
  } else if (types.size() == op->operands.size()) {
    if (!check_operands(*op, types, first)) return false;
  } else if (types.size() == 1) {
    if (!check_operands(*op, std::vector<TypeRef>(op->operands.size(), types[0]), first)) return false;
  }
  if (result_count == 0) return true;
  if (op->name == "stablehlo.optimization_barrier") {
    *result_types = types;
    return true;
  }
  if (op->name == "stablehlo.dynamic_update_slice") {
    result_types->push_back(types[0]);
    return true;
  }
  if (op->name == "stablehlo.tuple" && types.size() == 1) {
    result_types->push_back(types[0]);
    return true;
  }
  // select states its predicate's type first; all other ops here state one type for all.
  if (result_count != 1) return error("the op has " + std::to_string(result_count) + " results, but one type");
  result_types->push_back(types.back());
  return true;
}

bool TextReader::read_slice_ranges(Op* op) {
  // [a:b, c:d:s]
  std::vector<int64_t> start, limit, stride;
  if (!expect('[')) return false;
  while (!lexer_.peek().is(']')) {
    int64_t a, b, s = 1;
    if (!read_int(&a) || !expect(':') || !read_int(&b)) return false;
    if (accept(':') && !read_int(&s)) return false;
    start.push_back(a);
    limit.push_back(b);
    stride.push_back(s);
    if (!accept(',')) break;
  }
  op->attrs.push_back({"start_indices", make_ints(start)});
  op->attrs.push_back({"limit_indices", make_ints(limit)});
  op->attrs.push_back({"strides", make_ints(stride)});
  return expect(']');
}

bool TextReader::read_dot_pair(Op* op, std::string_view keyword) {
  // batching_dims = [0] x [0]
  std::vector<int64_t> lhs, rhs;
  if (!read_int_list(&lhs) || !expect_word("x") || !read_int_list(&rhs)) return false;
  const bool batch = keyword == "batching_dims";
  op->attrs.push_back({batch ? "lhs_batching_dimensions" : "lhs_contracting_dimensions", make_ints(lhs)});
  op->attrs.push_back({batch ? "rhs_batching_dimensions" : "rhs_contracting_dimensions", make_ints(rhs)});
  return true;
}

bool TextReader::read_keyword(Op* op, std::string_view keyword) {
  if (op->name == "stablehlo.dot_general" && (keyword == "batching_dims" || keyword == "contracting_dims"))
    return read_dot_pair(op, keyword);
  const std::string_view name = keep(attribute_name(op->name, keyword));
  const Token token = lexer_.peek();
  if (keyword == "precision") {
    std::vector<AttrRef> items;
    if (!expect('[')) return false;
    while (!lexer_.peek().is(']')) {
      items.push_back(make_enum(lexer_.take().text));
      if (!accept(',')) break;
    }
    Attr* attr = program_.make_attr(Attr::Kind::Array);
    attr->items = program_.arena().list(items);
    op->attrs.push_back({"precision_config", attr});
    return expect(']');
  }
  if (keyword == "algorithm" && token.is('<')) {
    // <lhs_precision_type = tf32, ...> without its name.
    expect('<');
    while (!lexer_.peek().is('>')) {
      const Token field = lexer_.take();
      if (field.kind != Tok::Bare || !expect('=')) return error(field, "expected a field of the algorithm");
      AttrRef value = nullptr;
      if (!read_attr(&value)) return false;
      op->attrs.push_back({keep(field.text), value});
      if (!accept(',')) break;
    }
    return expect('>');
  }
  if (keyword == "format" && token.kind == Tok::Bare) {
    // e5m10
    lexer_.take();
    const size_t m = token.text.find('m');
    int64_t exponent = -1, mantissa = -1;
    if (token.text.starts_with('e') && m != std::string_view::npos) {
      exponent = std::strtoll(std::string(token.text.substr(1, m - 1)).c_str(), nullptr, 10);
      mantissa = std::strtoll(std::string(token.text.substr(m + 1)).c_str(), nullptr, 10);
    }
    if (exponent < 0 || mantissa < 0) return error(token, "expected a format such as e5m10");
    op->attrs.push_back({"exponent_bits", make_int(exponent, hlo::Type::S32)});
    op->attrs.push_back({"mantissa_bits", make_int(mantissa, hlo::Type::S32)});
    return true;
  }
  if (token.is('[')) {
    std::vector<int64_t> values;
    if (!read_int_list(&values)) return false;
    op->attrs.push_back({name, make_ints(values)});
    return true;
  }
  if (token.kind == Tok::Bare && token.text != "true" && token.text != "false" && token.text != "dense" &&
      token.text != "array") {
    lexer_.take();
    op->attrs.push_back({name, make_enum(token.text)});
    return true;
  }
  if (token.kind == Tok::Integer) {
    // The number has no type: the ':' after it begins the op's types.
    lexer_.take();
    lexer_.seek(token.offset);
    int64_t value;
    if (!read_int(&value)) return false;
    op->attrs.push_back({name, make_int(value)});
    return true;
  }
  if (token.kind == Tok::Float) {
    lexer_.take();
    Attr* attr = program_.make_attr(Attr::Kind::Float);
    const auto number = decimal_value(token.text);
    if (!number) return error(token, "expected a number");
    attr->number = *number;
    attr->type = program_.scalar(hlo::Type::F64);
    // tolerance = 0.001 : f64
    if (lexer_.peek().is(':')) {
      const size_t at = lexer_.peek().offset;
      expect(':');
      if (lexer_.peek().is_word("f64") || lexer_.peek().is_word("f32"))
        lexer_.take();
      else
        lexer_.seek(at);
    }
    op->attrs.push_back({name, attr});
    return true;
  }
  if (token.kind == Tok::String) {
    lexer_.take();
    Attr* attr = program_.make_attr(Attr::Kind::String);
    attr->text = keep(unescape(token.text));
    op->attrs.push_back({name, attr});
    return true;
  }
  AttrRef value = nullptr;
  if (!read_attr(&value)) return false;
  op->attrs.push_back({name, value});
  return true;
}

bool TextReader::read_items(Op* op) {
  const auto ends = [&] {
    const Token& t = lexer_.peek();
    return t.is(':') || t.is('{') || t.is('}') || t.kind == Tok::End || t.is_word("loc");
  };
  size_t words = 0;
  while (!ends()) {
    const Token token = lexer_.peek();
    if (token.kind == Tok::Value) {
      Value* value;
      if (!read_value(&value)) return false;
      op->operands.push_back(value);
      if (lexer_.peek().is('[')) {
        if (op->name == "stablehlo.get_tuple_element") {
          int64_t index;
          expect('[');
          if (!read_int(&index) || !expect(']')) return false;
          op->attrs.push_back({"index", make_int(index, hlo::Type::S32)});
        } else if (!read_slice_ranges(op)) {
          return false;
        }
      }
    } else if (token.kind == Tok::Bare && token.text == "dense") {
      AttrRef value;
      if (!read_attr(&value)) return false;
      op->attrs.push_back({"value", value});
    } else if (token.kind == Tok::Bare) {
      lexer_.take();
      if (accept('=')) {
        if (!read_keyword(op, token.text)) return false;
      } else if (op->name == "stablehlo.compare" || op->name == "chlo.broadcast_compare") {
        op->attrs.push_back({words++ == 0 ? "comparison_direction" : "compare_type", make_enum(token.text)});
      } else {
        return error(token, "unexpected '" + std::string(token.text) + "'");
      }
    } else if (token.kind == Tok::String && op->name == "stablehlo.composite") {
      lexer_.take();
      Attr* name = program_.make_attr(Attr::Kind::String);
      name->text = keep(unescape(token.text));
      op->attrs.push_back({"name", name});
      continue;  // no comma follows the name
    } else if (token.is('(')) {
      // Operands in parentheses, mixed with items.
      expect('(');
      while (!lexer_.peek().is(')')) {
        if (lexer_.peek().kind == Tok::Bare) {
          const Token keyword = lexer_.take();
          if (!expect('=') || !read_keyword(op, keyword.text)) return false;
        } else {
          Value* value;
          if (!read_value(&value)) return false;
          op->operands.push_back(value);
        }
        if (!accept(',')) break;
      }
      if (!expect(')')) return false;
    } else {
      return error(token, "unexpected token");
    }
    if (!accept(',')) break;
  }
  return true;
}

bool TextReader::read_constant(Op* op, std::vector<TypeRef>* result_types) {
  if (lexer_.peek().is('{') && !read_attr_dict(&op->attrs)) return false;
  AttrRef value = nullptr;
  const Token token = lexer_.peek();
  if (!read_attr(&value)) return false;
  if (value->kind != Attr::Kind::Dense) return error(token, "expected dense elements");
  op->attrs.push_back({"value", value});
  // A quantized constant states the type of its result again.
  if (lexer_.peek().kind == Tok::Arrow) {
    lexer_.take();
    return read_result_types(result_types);
  }
  result_types->push_back(value->type);
  return true;
}

bool TextReader::read_pretty(Op* op, size_t result_count, std::vector<TypeRef>* result_types) {
  const std::string_view name = op->name;
  if (name == "stablehlo.constant" || name == "chlo.constant") return read_constant(op, result_types);
  if (name == "func.call" || name == "call") return read_call(op, result_types);
  if (name == "stablehlo.custom_call") return read_custom_call(op, result_types);
  if (name == "stablehlo.while") return read_while(op, result_types);
  if (name == "stablehlo.reduce" && lexer_.peek().is('(')) return read_reduce(op, result_types);
  if (name == "stablehlo.convolution" && lexer_.peek().is('(')) return read_convolution(op, result_types);
  if (name.find('.') == std::string_view::npos && name != "return")
    return error("unknown op '" + std::string(name) + "'");
  if (name.starts_with("sdy.")) {
    bool done = false;
    if (!read_sharding_op(op, result_count, result_types, &done)) return false;
    if (done) return true;
  }
  if (!read_items(op)) return false;
  if (lexer_.peek().is('{') && !read_attr_dict(&op->attrs)) return false;
  // check.expect_eq_const states no type for its constant, which has the operand's type.
  if (lexer_.peek().is(':')) return read_signature(op, result_count, result_types);
  if (result_count == 0) return true;
  return read_signature(op, result_count, result_types);
}

}  // namespace collet::hlo::mlir
