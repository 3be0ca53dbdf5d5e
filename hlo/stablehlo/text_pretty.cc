// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "hlo/stablehlo/text_reader.h"

// The short forms: most are operands and `keyword = value` items, attributes in braces, and types; a few have a form of
// their own. What they mean ends under the flat attribute names of the normal form.

namespace collet::hlo::mlir {
namespace {

struct Keyword {
  std::string_view op;
  std::string_view keyword;
  std::string_view attribute;
};

// `keyword = value` of an op, and the attribute's flat name. Keywords that are not listed keep their names.
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

// Fields of structured attributes that stand under other names in the normal form.
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

// Attributes that are records, to be spread out into the op's own.
bool is_record(std::string_view name) {
  return name == "dimension_numbers" || name == "scatter_dimension_numbers" || name == "dot_dimension_numbers" ||
         name == "channel_handle" || name == "algorithm" || name == "ragged_dot_dimension_numbers";
}

bool is_small_int_tensor(AttrRef attr) {
  const hlo::Type element = attr->type ? element_type(attr->type->element) : hlo::Type::Invalid;
  return attr->kind == Attr::Kind::Dense && (is_integer(element) || element == hlo::Type::PRED) &&
         element_count(attr->type) <= (int64_t{1} << 20);
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
    if (a.name != "value" && is_small_int_tensor(a.value)) {
      const hlo::Type element = element_type(a.value->type->element);
      const int64_t count = element_count(a.value->type);
      const auto width = static_cast<size_t>(type_info(element).bytes());
      std::vector<int64_t> values(static_cast<size_t>(count));
      for (size_t i = 0; i < values.size(); ++i) {
        uint64_t bits = 0;
        a.value->bytes.copy(reinterpret_cast<char*>(&bits), width, (a.value->splat ? 0 : i) * width);
        const int shift = 64 - 8 * static_cast<int>(width);
        values[i] = is_unsigned(element) || element == hlo::Type::PRED ? static_cast<int64_t>(bits)
                                                                       : static_cast<int64_t>(bits << shift) >> shift;
      }
      Attr* list = program_.make_attr(element == hlo::Type::PRED ? Attr::Kind::Bools : Attr::Kind::Ints);
      list->ints = program_.arena().list(values);
      list->dims = program_.arena().list<const int64_t>(std::span<const int64_t>(a.value->type->dims));
      out.push_back({a.name, list});
      continue;
    }
    out.push_back(a);
  }
  op->attrs = std::move(out);
}

/// Types: functional; or one type for all; or one per operand.
bool TextReader::read_signature(Op* op, size_t result_count, std::vector<TypeRef>* result_types) {
  if (!accept(':')) {
    // A terminator without values, or an op whose results are those of its operands by definition.
    if (op->operands.empty() && result_count == 0) return true;
    return error("expected ':' and the types");
  }
  const Token first = lexer_.peek();
  if (first.is('(')) {
    std::vector<TypeRef> inputs;
    return read_functional(&inputs, result_types);
  }
  std::vector<TypeRef> types;
  do {
    TypeRef type = nullptr;
    if (!read_type(&type)) return false;
    types.push_back(type);
  } while (accept(','));
  if (lexer_.peek().kind == Tok::Arrow) {
    lexer_.take();
    return read_result_types(result_types);
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
  // select writes its predicate's type first; everything else one type for all.
  for (size_t i = 0; i < result_count; ++i) result_types->push_back(types.back());
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
    op->attrs.push_back({"exponent_bits", make_int(exponent)});
    op->attrs.push_back({"mantissa_bits", make_int(mantissa)});
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
    // Without a type: the ':' behind it begins the op's types.
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
    attr->number = std::strtod(std::string(token.text).c_str(), nullptr);
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
          op->attrs.push_back({"index", make_int(index)});
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
      continue;  // no comma behind the name
    } else if (token.is('(')) {
      // Operands in parentheses, with items among them.
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
  // A quantized constant states the result's type again.
  if (lexer_.peek().kind == Tok::Arrow) {
    lexer_.take();
    return read_result_types(result_types);
  }
  result_types->push_back(value->type);
  return true;
}

bool TextReader::read_call(Op* op, std::vector<TypeRef>* result_types) {
  op->name = "func.call";
  const Token callee = lexer_.take();
  if (callee.kind != Tok::Symbol) return error(callee, "expected the name of a function");
  Attr* symbol = program_.make_attr(Attr::Kind::Symbol);
  symbol->text = keep(callee.text);
  op->attrs.push_back({"callee", symbol});
  if (!read_items(op)) return false;
  if (lexer_.peek().is('{') && !read_attr_dict(&op->attrs)) return false;
  return read_signature(op, 0, result_types);
}

bool TextReader::read_custom_call(Op* op, std::vector<TypeRef>* result_types) {
  const Token target = lexer_.take();
  if (target.kind != Tok::Symbol) return error(target, "expected the target's name");
  Attr* symbol = program_.make_attr(Attr::Kind::String);
  symbol->text = keep(unescape(target.text));
  op->attrs.push_back({"call_target_name", symbol});
  if (!read_items(op)) return false;
  if (lexer_.peek().is('{') && !read_attr_dict(&op->attrs)) return false;
  if (!expect(':')) return false;
  std::vector<TypeRef> inputs;
  if (lexer_.peek().is('(')) return read_functional(&inputs, result_types);
  TypeRef type = nullptr;
  if (!read_type(&type)) return false;
  result_types->push_back(type);
  return true;
}

bool TextReader::read_while(Op* op, std::vector<TypeRef>* result_types) {
  // (%arg = %init, ...) : types attributes {} cond {...} do {...}
  std::vector<std::string_view> names;
  if (!expect('(')) return false;
  while (!lexer_.peek().is(')')) {
    const Token name = lexer_.take();
    if (name.kind != Tok::Value || !expect('=')) return error(name, "expected an argument of the loop");
    names.push_back(name.text);
    Value* value;
    if (!read_value(&value)) return false;
    op->operands.push_back(value);
    if (!accept(',')) break;
  }
  if (!expect(')')) return false;
  if (accept(':')) {
    do {
      TypeRef type = nullptr;
      if (!read_type(&type)) return false;
      result_types->push_back(type);
    } while (accept(','));
  }
  if (result_types->size() != names.size()) return error("each argument of the loop needs a type");
  if (accept_word("attributes") && !read_attr_dict(&op->attrs)) return false;
  const auto region = [&](std::string_view word) {
    std::vector<Value*> arguments;
    for (size_t i = 0; i < names.size(); ++i) {
      Value* value = program_.make_value((*result_types)[i]);
      value->name = keep(names[i]);
      arguments.push_back(value);
    }
    return expect_word(word) && read_region(op, &arguments);
  };
  return region("cond") && region("do");
}

bool TextReader::read_reduce(Op* op, std::vector<TypeRef>* result_types) {
  // (%x init: %c), (%y init: %d) [applies stablehlo.add] across dimensions = [1] : types [reducer(...) {...}]
  std::vector<Value*> inits;
  do {
    Value* value;
    if (!expect('(') || !read_value(&value)) return false;
    op->operands.push_back(value);
    if (!expect_word("init") || !expect(':') || !read_value(&value) || !expect(')')) return false;
    inits.push_back(value);
  } while (accept(','));
  op->operands.insert(op->operands.end(), inits.begin(), inits.end());
  std::string_view applied;
  if (accept_word("applies")) {
    const Token name = lexer_.take();
    if (name.kind != Tok::Bare) return error(name, "expected the op that is applied");
    applied = keep(name.text);
  }
  std::vector<int64_t> dims;
  if (!expect_word("across") || !expect_word("dimensions") || !expect('=') || !read_int_list(&dims)) return false;
  op->attrs.push_back({"dimensions", make_ints(dims)});
  if (lexer_.peek().is('{') && !read_attr_dict(&op->attrs)) return false;
  std::vector<TypeRef> inputs;
  if (!expect(':') || !read_functional(&inputs, result_types)) return false;
  if (!applied.empty()) {
    Region* region = program_.make_region();
    Block* block = program_.make_block();
    region->blocks.push_back(block);
    op->regions.push_back(region);
    Op* combine = program_.make_op(applied);
    combine->line = op->line;
    for (size_t k = 0; k < 2; ++k) {
      Value* argument = program_.make_value(inits[0]->type);
      argument->index = static_cast<uint32_t>(k);
      block->arguments.push_back(argument);
      combine->operands.push_back(argument);
    }
    program_.add_result(combine, inits[0]->type);
    Op* end = program_.make_op("stablehlo.return");
    end->operands.push_back(combine->results[0]);
    block->ops = {combine, end};
    return true;
  }
  // reducer(%a: T, %b: T) (%c: U, %d: U) {...}: pairs, one per input.
  if (!expect_word("reducer")) return false;
  std::vector<Value*> first, second;
  while (accept('(')) {
    for (std::vector<Value*>* side : {&first, &second}) {
      const Token name = lexer_.take();
      if (name.kind != Tok::Value || !expect(':')) return error(name, "expected an argument of the reducer");
      TypeRef type = nullptr;
      if (!read_type(&type) || !skip_location()) return false;
      Value* value = program_.make_value(type);
      value->name = keep(name.text);
      side->push_back(value);
      if (side == &first && !expect(',')) return false;
    }
    if (!expect(')')) return false;
  }
  first.insert(first.end(), second.begin(), second.end());
  return read_region(op, &first);
}

bool TextReader::read_window(Op* op) {
  // {stride = [1, 1], pad = [[0, 0], [1, 1]], lhs_dilate = ..., rhs_dilate = ..., reverse = [false, true]}
  if (!expect('{')) return false;
  while (!lexer_.peek().is('}')) {
    const Token key = lexer_.take();
    if (!expect('=')) return false;
    std::vector<int64_t> values;
    if (key.is_word("pad")) {
      if (!expect('[')) return false;
      while (!lexer_.peek().is(']')) {
        if (!read_int_list(&values)) return false;
        if (!accept(',')) break;
      }
      if (!expect(']')) return false;
      op->attrs.push_back({"padding", make_ints(values)});
    } else {
      if (!read_int_list(&values)) return false;
      const std::string_view name = key.is_word("stride")       ? "window_strides"
                                    : key.is_word("lhs_dilate") ? "lhs_dilation"
                                    : key.is_word("rhs_dilate") ? "rhs_dilation"
                                    : key.is_word("reverse")    ? "window_reversal"
                                                                : "";
      if (name.empty()) return error(key, "unknown part of a window");
      op->attrs.push_back({name, make_ints(values)});
    }
    if (!accept(',')) break;
  }
  return expect('}');
}

bool TextReader::read_convolution(Op* op, std::vector<TypeRef>* result_types) {
  if (!expect('(')) return false;
  while (!lexer_.peek().is(')')) {
    Value* value;
    if (!read_value(&value)) return false;
    op->operands.push_back(value);
    if (!accept(',')) break;
  }
  if (!expect(')') || !expect_word("dim_numbers") || !expect('=') || !read_conv_labels(&op->attrs)) return false;
  while (accept(',')) {
    if (!expect_word("window") || !expect('=') || !read_window(op)) return false;
  }
  if (lexer_.peek().is('{') && !read_attr_dict(&op->attrs)) return false;
  return read_signature(op, 1, result_types);
}

/// An attribute that is kept as text: what stands in brackets, between `prefix` and `suffix`.
bool TextReader::read_raw(Op* op, std::string_view name, std::string_view prefix, char open, char close,
                          std::string_view suffix) {
  std::string_view text;
  if (!skip_balanced(open, close, &text)) return false;
  Attr* attr = program_.make_attr(Attr::Kind::Raw);
  attr->text = keep(std::string(prefix) + std::string(text) + std::string(suffix));
  op->attrs.push_back({name, attr});
  return true;
}

bool TextReader::read_manual_computation(Op* op, std::vector<TypeRef>* result_types) {
  // (%a) in_shardings=[<...>] out_shardings=[<...>] manual_axes={"x"} (%b: type) {...} : (types) -> types
  if (!expect('(')) return false;
  while (!lexer_.peek().is(')')) {
    Value* value;
    if (!read_value(&value)) return false;
    op->operands.push_back(value);
    if (!accept(',')) break;
  }
  constexpr std::string_view kPerValue = "#sdy.sharding_per_value<";
  if (!expect(')') || !expect_word("in_shardings") || !expect('=') ||
      !read_raw(op, "in_shardings", kPerValue, '[', ']', ">") || !expect_word("out_shardings") || !expect('=') ||
      !read_raw(op, "out_shardings", kPerValue, '[', ']', ">") || !expect_word("manual_axes") || !expect('=') ||
      !read_raw(op, "manual_axes", "#sdy<manual_axes", '{', '}', ">") || !expect('('))
    return false;
  std::vector<Value*> arguments;
  while (!lexer_.peek().is(')')) {
    const Token name = lexer_.take();
    TypeRef type = nullptr;
    if (name.kind != Tok::Value) return error(name, "expected an argument of the computation");
    if (!expect(':') || !read_type(&type)) return false;
    Value* value = program_.make_value(type);
    value->name = keep(name.text);
    arguments.push_back(value);
    if (!accept(',')) break;
  }
  if (!expect(')') || !read_region(op, &arguments)) return false;
  if (lexer_.peek().is('{') && !read_attr_dict(&op->attrs)) return false;
  std::vector<TypeRef> inputs;
  return expect(':') && read_functional(&inputs, result_types);
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
    if (name == "sdy.mesh") {
      // sdy.mesh @name = <["x"=2]>
      const Token symbol = lexer_.take();
      if (symbol.kind != Tok::Symbol) return error(symbol, "expected the name of a mesh");
      Attr* sym_name = program_.make_attr(Attr::Kind::String);
      sym_name->text = keep(symbol.text);
      op->attrs.push_back({"sym_name", sym_name});
      if (!expect('=')) return false;
      if (lexer_.peek().kind == Tok::Hash) lexer_.take();
      return read_raw(op, "mesh", "#sdy.mesh", '<', '>', "");
    }
    if (name == "sdy.sharding_constraint" || name == "sdy.reshard") {
      Value* value;
      if (!read_value(&value)) return false;
      op->operands.push_back(value);
      if (!read_raw(op, "sharding", "#sdy.sharding", '<', '>', "")) return false;
      return read_signature(op, result_count, result_types);
    }
    if (name == "sdy.manual_computation") return read_manual_computation(op, result_types);
  }
  if (!read_items(op)) return false;
  if (lexer_.peek().is('{') && !read_attr_dict(&op->attrs)) return false;
  // check.expect_eq_const names no type: it is its operand's.
  if (lexer_.peek().is(':')) return read_signature(op, result_count, result_types);
  if (result_count == 0) return true;
  return read_signature(op, result_count, result_types);
}

}  // namespace collet::hlo::mlir
