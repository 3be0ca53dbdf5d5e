// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/text_reader.h"

// Reads the short forms of Shardy's ops. Shardings themselves are kept as text.

namespace collet::hlo::mlir {

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
  if (!read_operands(op)) return false;
  constexpr std::string_view kPerValue = "#sdy.sharding_per_value<";
  if (!expect_word("in_shardings") || !expect('=') || !read_raw(op, "in_shardings", kPerValue, '[', ']', ">") ||
      !expect_word("out_shardings") || !expect('=') || !read_raw(op, "out_shardings", kPerValue, '[', ']', ">") ||
      !expect_word("manual_axes") || !expect('=') || !read_raw(op, "manual_axes", "#sdy<manual_axes", '{', '}', ">") ||
      !expect('('))
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

bool TextReader::read_sharding_op(Op* op, size_t result_count, std::vector<TypeRef>* result_types, bool* done) {
  *done = true;
  if (op->name == "sdy.mesh") {
    // sdy.mesh @name = <["x"=2]> {attributes}
    const Token symbol = lexer_.take();
    if (symbol.kind != Tok::Symbol) return error(symbol, "expected the name of a mesh");
    Attr* sym_name = program_.make_attr(Attr::Kind::String);
    sym_name->text = keep(symbol.text);
    op->attrs.push_back({"sym_name", sym_name});
    if (!expect('=')) return false;
    if (lexer_.peek().kind == Tok::Hash) lexer_.take();
    if (!read_raw(op, "mesh", "#sdy.mesh", '<', '>', "")) return false;
    return !lexer_.peek().is('{') || read_attr_dict(&op->attrs);
  }
  if (op->name == "sdy.sharding_constraint" || op->name == "sdy.reshard") {
    Value* value;
    if (!read_value(&value)) return false;
    op->operands.push_back(value);
    if (!read_raw(op, "sharding", "#sdy.sharding", '<', '>', "")) return false;
    if (lexer_.peek().is('{') && !read_attr_dict(&op->attrs)) return false;
    return read_signature(op, result_count, result_types);
  }
  if (op->name == "sdy.sharding_group" || op->name == "sdy.propagation_barrier") {
    // %a group_id=0 and %a allowed_direction=BACKWARD: no comma comes before the keyword
    Value* value;
    if (!read_value(&value)) return false;
    op->operands.push_back(value);
    const Token keyword = lexer_.take();
    if (keyword.kind != Tok::Bare) return error(keyword, "expected a keyword");
    if (!expect('=')) return false;
    if (lexer_.peek().kind == Tok::Bare) {
      Attr* direction = program_.make_attr(Attr::Kind::Raw);
      direction->text = keep("#sdy<propagation_direction " + std::string(lexer_.take().text) + ">");
      op->attrs.push_back({keep(keyword.text), direction});
    } else if (!read_keyword(op, keyword.text)) {
      return false;
    }
    if (lexer_.peek().is('{') && !read_attr_dict(&op->attrs)) return false;
    return read_signature(op, result_count, result_types);
  }
  if (op->name == "sdy.manual_computation") return read_manual_computation(op, result_types);
  *done = false;
  return true;
}

}  // namespace collet::hlo::mlir
