// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/text_reader.h"

// Reads the short forms of calls, loops, reductions and convolutions.

namespace collet::hlo::mlir {

bool TextReader::read_call(Op* op, std::vector<TypeRef>* result_types) {
  op->name = "func.call";
  const Token callee = lexer_.take();
  if (callee.kind != Tok::Symbol) return error(callee, "expected the name of a function");
  Attr* symbol = program_.make_attr(Attr::Kind::Symbol);
  symbol->text = keep(unescape(callee.text));
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
  const Token types = lexer_.peek();
  if (types.is('(')) return read_functional(&inputs, result_types) && check_operands(*op, inputs, types);
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
  if (!expect(':')) return false;
  const Token types = lexer_.peek();
  if (!read_functional(&inputs, result_types) || !check_operands(*op, inputs, types)) return false;
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
  // The parameters of the reducer, as pairs with one pair per input: reducer(%a: T, %b: T) (%c: U, %d: U) {...}
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
  if (!read_operands(op)) return false;
  if (!expect_word("dim_numbers") || !expect('=') || !read_conv_labels(&op->attrs)) return false;
  while (accept(',')) {
    if (!expect_word("window") || !expect('=') || !read_window(op)) return false;
  }
  if (lexer_.peek().is('{') && !read_attr_dict(&op->attrs)) return false;
  return read_signature(op, 1, result_types);
}

}  // namespace collet::hlo::mlir
