// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/text_reader.h"

#include <algorithm>
#include <charconv>

#include "hlo/stablehlo/op_schemas.h"
#include "hlo/stablehlo/text.h"

namespace collet::hlo::mlir {
namespace {

constexpr int kDeepestRegions = 100;
constexpr int64_t kMostResults = int64_t{1} << 20;  // most results of one op

/// Splits "%0#1" into "0" and 1.
std::pair<std::string_view, size_t> split_value(std::string_view text) {
  const size_t hash = text.find('#');
  if (hash == std::string_view::npos) return {text, 0};
  size_t index = SIZE_MAX;
  std::from_chars(text.data() + hash + 1, text.data() + text.size(), index);
  return {text.substr(0, hash), index};
}

bool is_function(std::string_view name) {
  return name == "func.func" || name == "func";
}

}  // namespace

bool TextReader::error(const Token& at, std::string message) {
  if (!diagnostics_.empty()) return false;
  const std::string_view text = lexer_.text();
  const size_t offset = std::min(at.offset, text.size());
  Diagnostic d;
  d.line = 1;
  size_t line_begin = 0;
  for (size_t i = 0; i < offset; ++i)
    if (text[i] == '\n') {
      ++d.line;
      line_begin = i + 1;
    }
  d.column = static_cast<uint32_t>(offset - line_begin + 1);
  const size_t line_end = text.find('\n', offset);
  d.source =
      std::string(text.substr(line_begin, line_end == std::string_view::npos ? line_end : line_end - line_begin));
  const bool stray = at.kind == Tok::Punct && (at.punct <= ' ' || at.punct >= 0x7F);
  d.message = stray ? stray_byte(at.punct) : std::move(message);
  diagnostics_.add(std::move(d));
  return false;
}

uint32_t TextReader::line_of(size_t offset) {
  // Ops are read in the order of the text, so lines are counted from the last position.
  if (offset < counted_to_) {
    counted_to_ = 0;
    counted_lines_ = 1;
  }
  for (; counted_to_ < offset; ++counted_to_)
    if (lexer_.text()[counted_to_] == '\n') ++counted_lines_;
  return counted_lines_;
}

bool TextReader::expect(char c) {
  if (accept(c)) return true;
  return error(std::string("expected '") + c + "'");
}

bool TextReader::accept(char c) {
  if (!lexer_.peek().is(c)) return false;
  lexer_.take();
  return true;
}

bool TextReader::accept_word(std::string_view word) {
  if (!lexer_.peek().is_word(word)) return false;
  lexer_.take();
  return true;
}

bool TextReader::expect_word(std::string_view word) {
  if (accept_word(word)) return true;
  return error("expected '" + std::string(word) + "'");
}

bool TextReader::skip_location() {
  if (!lexer_.peek().is_word("loc")) return true;
  lexer_.take();
  return skip_balanced('(', ')', nullptr);
}

bool TextReader::bind(std::string_view name, std::vector<Value*> values) {
  for (const Names& scope : scopes_) {
    if (!scope.contains(name)) continue;
    Token at = lexer_.peek();
    const std::string_view text = lexer_.text();
    if (name.data() > text.data() && name.data() < text.data() + text.size())
      at.offset = static_cast<size_t>(name.data() - text.data()) - 1;
    return error(at, "redefinition of value %" + std::string(name));
  }
  scopes_.back()[name] = std::move(values);
  return true;
}

Value* TextReader::use(const Token& token) {
  const auto [name, index] = split_value(token.text);
  for (size_t i = scopes_.size(); i-- > 0;) {
    const auto it = scopes_[i].find(name);
    if (it == scopes_[i].end()) continue;
    if (index < it->second.size()) return it->second[index];
    break;
  }
  error(token, "use of undefined value %" + std::string(token.text));
  return nullptr;
}

bool TextReader::read_value(Value** out) {
  const Token token = lexer_.take();
  if (token.kind != Tok::Value) return error(token, "expected a value");
  *out = use(token);
  return *out != nullptr;
}

bool TextReader::read_alias() {
  // An alias: #name = attribute or !name = type; some aliases are locations.
  const Token name = lexer_.take();
  if (!expect('=')) return false;
  if (name.kind == Tok::Bang) {
    TypeRef type = nullptr;
    if (!read_type(&type)) return false;
    type_aliases_[name.text] = type;
    return true;
  }
  AttrRef value = nullptr;
  if (!read_attr(&value)) return false;
  aliases_[name.text] = value;
  return true;
}

bool TextReader::define_results(Op* op, const std::vector<std::pair<std::string_view, size_t>>& names,
                                const std::vector<TypeRef>& types) {
  size_t named = 0;
  for (const auto& [name, count] : names) named += count;
  if (!names.empty() && named != types.size())
    return error("the op has " + std::to_string(types.size()) + " results, " + std::to_string(named) + " are named");
  for (TypeRef type : types) program_.add_result(op, type);
  size_t next = 0;
  for (const auto& [name, count] : names) {
    std::vector<Value*> values(op->results.begin() + static_cast<std::ptrdiff_t>(next),
                               op->results.begin() + static_cast<std::ptrdiff_t>(next + count));
    for (Value* v : values) v->name = keep(name);
    if (!bind(name, std::move(values))) return false;
    next += count;
  }
  return true;
}

bool TextReader::read_block_label(Block* block) {
  // ^bb0(%arg0: type, ...):
  lexer_.take();
  if (accept('(')) {
    while (!lexer_.peek().is(')')) {
      const Token name = lexer_.take();
      if (name.kind != Tok::Value || !expect(':')) return error(name, "expected an argument");
      TypeRef type = nullptr;
      if (!read_type(&type) || !skip_location()) return false;
      Value* value = program_.make_value(type);
      value->index = static_cast<uint32_t>(block->arguments.size());
      value->name = keep(name.text);
      block->arguments.push_back(value);
      if (!bind(name.text, {value})) return false;
      if (!accept(',')) break;
    }
    if (!expect(')')) return false;
  }
  return expect(':');
}

bool TextReader::read_ops_until_brace(Block* block) {
  while (!lexer_.peek().is('}')) {
    if (lexer_.peek().kind == Tok::End) return error("the text ends inside of a region");
    if (lexer_.peek().kind == Tok::Block) return error("branches between blocks are not supported");
    if (!read_op(block)) return false;
  }
  return expect('}');
}

bool TextReader::read_region(Op* op, const std::vector<Value*>* arguments) {
  if (!expect('{')) return false;
  Region* region = program_.make_region();
  op->regions.push_back(region);
  if (accept('}')) return true;
  Block* block = program_.make_block();
  region->blocks.push_back(block);
  scopes_.emplace_back();
  if (arguments) {
    for (Value* v : *arguments) {
      v->index = static_cast<uint32_t>(block->arguments.size());
      block->arguments.push_back(v);
      if (!bind(v->name, {v})) return false;
    }
  }
  if (lexer_.peek().kind == Tok::Block && !read_block_label(block)) return false;
  if (!read_ops_until_brace(block)) return false;
  scopes_.pop_back();
  return true;
}

bool TextReader::read_operands(Op* op) {
  if (!expect('(')) return false;
  while (!lexer_.peek().is(')')) {
    Value* value;
    if (!read_value(&value)) return false;
    op->operands.push_back(value);
    if (!accept(',')) break;
  }
  return expect(')');
}

bool TextReader::read_generic(Op* op) {
  // "name"(%a, %b) <{properties}> ({regions}) {attributes} : (types) -> types
  if (!read_operands(op)) return false;
  if (lexer_.peek().is('[')) return error("branches between blocks are not supported");
  const Token properties = lexer_.peek();
  if (accept('<')) {
    if (!read_attr_dict(&op->attrs) || !expect('>')) return false;
    const OpSchema* schema = find_schema_for(op->name, kNewestVhlo);
    if (schema && schema->properties.empty() && !op->attrs.empty())
      return error(properties, "an op that has no properties is given '" + std::string(op->attrs[0].name) + "'");
  }
  if (accept('(')) {
    do {
      if (!read_region(op)) return false;
    } while (accept(','));
    if (!expect(')')) return false;
  }
  if (lexer_.peek().is('{') && !read_attr_dict(&op->attrs)) return false;
  return expect(':');
}

bool TextReader::read_function_arguments(Op* op, Block* block, std::vector<TypeRef>* inputs) {
  if (!expect('(')) return false;
  std::vector<AttrRef> attrs;
  bool any = false;
  while (!lexer_.peek().is(')')) {
    std::string_view name;
    if (lexer_.peek().kind == Tok::Value) {
      name = lexer_.take().text;
      if (!expect(':')) return false;
    }
    TypeRef type = nullptr;
    if (!read_type(&type)) return false;
    Attr* dict = program_.make_attr(Attr::Kind::Dict);
    if (lexer_.peek().is('{')) {
      std::vector<NamedAttr> fields;
      if (!read_attr_dict(&fields)) return false;
      dict->fields = program_.arena().list(fields);
      any |= !fields.empty();
    }
    attrs.push_back(dict);
    if (!skip_location()) return false;
    inputs->push_back(type);
    Value* value = program_.make_value(type);
    value->index = static_cast<uint32_t>(block->arguments.size());
    value->name = keep(name);
    block->arguments.push_back(value);
    if (!name.empty() && !bind(name, {value})) return false;
    if (!accept(',')) break;
  }
  if (any) {
    Attr* list = program_.make_attr(Attr::Kind::Array);
    list->items = program_.arena().list(attrs);
    op->attrs.push_back({"arg_attrs", list});
  }
  return expect(')');
}

bool TextReader::read_function_results(Op* op, std::vector<TypeRef>* outputs) {
  if (lexer_.peek().kind != Tok::Arrow) return true;
  lexer_.take();
  if (!lexer_.peek().is('(')) {
    TypeRef type = nullptr;
    if (!read_type(&type)) return false;
    outputs->push_back(type);
    return true;
  }
  expect('(');
  std::vector<AttrRef> attrs;
  while (!lexer_.peek().is(')')) {
    TypeRef type = nullptr;
    if (!read_type(&type)) return false;
    outputs->push_back(type);
    Attr* dict = program_.make_attr(Attr::Kind::Dict);
    if (lexer_.peek().is('{')) {
      std::vector<NamedAttr> fields;
      if (!read_attr_dict(&fields)) return false;
      dict->fields = program_.arena().list(fields);
    }
    attrs.push_back(dict);
    if (!accept(',')) break;
  }
  Attr* list = program_.make_attr(Attr::Kind::Array);
  list->items = program_.arena().list(attrs);
  op->attrs.push_back({"res_attrs", list});
  return expect(')');
}

bool TextReader::read_function(Op* op) {
  op->name = "func.func";
  for (std::string_view visibility : {"public", "private", "nested"}) {
    if (!accept_word(visibility)) continue;
    Attr* attr = program_.make_attr(Attr::Kind::String);
    attr->text = visibility;
    op->attrs.push_back({"sym_visibility", attr});
    break;
  }
  const Token name = lexer_.take();
  if (name.kind != Tok::Symbol) return error(name, "expected the name of a function");
  Attr* symbol = program_.make_attr(Attr::Kind::String);
  symbol->text = keep(unescape(name.text));
  op->attrs.push_back({"sym_name", symbol});
  Region* region = program_.make_region();
  Block* block = program_.make_block();
  // A function cannot use values from outside.
  std::vector<Names> outer;
  outer.swap(scopes_);
  scopes_.emplace_back();
  std::vector<TypeRef> inputs, outputs;
  if (!read_function_arguments(op, block, &inputs) || !read_function_results(op, &outputs)) return false;
  if (accept_word("attributes") && !read_attr_dict(&op->attrs)) return false;
  op->regions.push_back(region);
  if (accept('{')) {
    region->blocks.push_back(block);
    if (lexer_.peek().kind == Tok::Block) {
      block->arguments.clear();
      scopes_.back().clear();
      if (!read_block_label(block)) return false;
    }
    if (!read_ops_until_brace(block)) return false;
  }
  Type* type = program_.make_type(Type::Kind::Function);
  type->inputs = program_.arena().list(inputs);
  type->results = program_.arena().list(outputs);
  if (!complete(type)) return false;
  Attr* type_attr = program_.make_attr(Attr::Kind::Type);
  type_attr->type = type;
  op->attrs.push_back({"function_type", type_attr});
  scopes_.swap(outer);
  return skip_location();
}

bool TextReader::read_module(Op* op) {
  op->name = "builtin.module";
  if (lexer_.peek().kind == Tok::Symbol) {
    Attr* attr = program_.make_attr(Attr::Kind::String);
    attr->text = keep(unescape(lexer_.take().text));
    op->attrs.push_back({"sym_name", attr});
  }
  if (accept_word("attributes") && !read_attr_dict(&op->attrs)) return false;
  if (!read_region(op)) return false;
  if (op->regions[0]->blocks.empty()) op->regions[0]->blocks.push_back(program_.make_block());
  return skip_location();
}

bool TextReader::check_operands(const Op& op, const std::vector<TypeRef>& types, const Token& at) {
  if (types.size() != op.operands.size())
    return error(at, "there are " + std::to_string(op.operands.size()) + " operands and " +
                         std::to_string(types.size()) + " types");
  for (size_t i = 0; i < types.size(); ++i)
    if (!same_type(types[i], op.operands[i]->type))
      return error(at, "operand " + std::to_string(i) + " has type " + to_string(op.operands[i]->type) + ", not " +
                           to_string(types[i]));
  return true;
}

bool TextReader::read_op(Block* block) {
  if (region_depth_ > kDeepestRegions) return error("regions are nested too deeply");
  ++region_depth_;
  const bool good = read_one_op(block);
  --region_depth_;
  return good;
}

bool TextReader::read_one_op(Block* block) {
  std::vector<std::pair<std::string_view, size_t>> names;
  if (lexer_.peek().kind == Tok::Value) {
    do {
      const Token name = lexer_.take();
      if (name.kind != Tok::Value) return error(name, "expected a value");
      int64_t count = 1;
      if (accept(':') && (!read_int(&count) || count < 0 || count > kMostResults))
        return error("a bad number of results");
      names.emplace_back(name.text, static_cast<size_t>(count));
    } while (accept(','));
    if (!expect('=')) return false;
  }
  const Token name = lexer_.take();
  Op* op = program_.make_op({});
  op->line = line_of(name.offset);
  std::vector<TypeRef> types;
  if (name.kind == Tok::String) {
    op->name = keep(unescape(name.text));
    if (!read_generic(op)) return false;
    std::vector<TypeRef> inputs;
    if (!read_functional(&inputs, &types)) return false;
    if (!check_operands(*op, inputs, name)) return false;
  } else if (name.kind == Tok::Bare && is_function(name.text)) {
    if (!read_function(op)) return false;
  } else if (name.kind == Tok::Bare && (name.text == "module" || name.text == "builtin.module")) {
    if (!read_module(op)) return false;
  } else if (name.kind == Tok::Bare) {
    op->name = keep(name.text);
    size_t count = 0;
    for (const auto& n : names) count += n.second;
    if (!read_pretty(op, count, &types)) return false;
  } else {
    return error(name, "expected an op");
  }
  if (op->name == "func.return" || op->name == "sdy.return" || op->name == "return") op->name = "stablehlo.return";
  if (op->name == "call") op->name = "func.call";
  if (!skip_location()) return false;
  flatten_attributes(op);
  if (!define_results(op, names, types)) return false;
  block->ops.push_back(op);
  return true;
}

bool TextReader::run() {
  scopes_.emplace_back();
  Block* top = program_.make_block();
  if (!read_resources()) return false;
  while (lexer_.peek().kind != Tok::End) {
    const Token& token = lexer_.peek();
    if (const auto block = resource_blocks_.find(token.offset); block != resource_blocks_.end()) {
      lexer_.seek(block->second);
      continue;
    }
    if (token.kind == Tok::Hash || token.kind == Tok::Bang) {
      if (!read_alias()) return false;
      continue;
    }
    if (!read_op(top)) return false;
  }
  if (top->ops.size() == 1 && top->ops[0]->name == "builtin.module") {
    program_.module = top->ops[0];
    return true;
  }
  // The text has functions without a module around them.
  Op* module = program_.make_op("builtin.module");
  Region* region = program_.make_region();
  region->blocks.push_back(top);
  module->regions.push_back(region);
  program_.module = module;
  if (top->ops.empty()) return error("the text holds no program");
  return true;
}

bool TextReader::run_attribute(AttrRef* out) {
  if (!read_attr(out)) return false;
  return lexer_.peek().kind == Tok::End || error("expected the end of the attribute");
}

Expected<AttrRef> read_attribute(std::string_view text, Program& program) {
  Diagnostics diagnostics{"attribute"};
  AttrRef out = nullptr;
  if (!TextReader(text, program, diagnostics).run_attribute(&out)) return diagnostics.to_status();
  return out;
}

std::unique_ptr<Program> read_text(std::string_view text, Diagnostics& diagnostics) {
  auto program = std::make_unique<Program>();
  program->set_file_bytes(text.size());
  if (!TextReader(text, *program, diagnostics).run()) return nullptr;
  return program;
}

Expected<std::unique_ptr<Program>> read_text(std::string_view text, std::string_view file) {
  Diagnostics diagnostics{std::string(file)};
  auto program = read_text(text, diagnostics);
  if (!program) return diagnostics.to_status();
  return program;
}

bool looks_like_text(std::string_view text) {
  std::string_view start = text;
  const auto skip_blanks = [&] { start.remove_prefix(std::min(start.find_first_not_of(" \t\r\n"), start.size())); };
  for (skip_blanks(); start.starts_with("//"); skip_blanks())
    start.remove_prefix(std::min(start.find('\n'), start.size()));
  // Definitions of aliases begin with '#' and '!', which do not occur in HLO text outside of strings.
  for (std::string_view begin : {"module @", "module {", "module attributes", "builtin.module", "\"builtin.module\"",
                                 "func.func", "\"func.func\"", "#", "!"})
    if (start.starts_with(begin)) return true;
  return text.substr(0, 65536).find("stablehlo.") != std::string_view::npos;
}

std::vector<std::string_view> split_programs(std::string_view text) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t cut = text.find("// -----", begin);
    const std::string_view piece = text.substr(begin, cut == std::string_view::npos ? cut : cut - begin);
    if (piece.find_first_not_of(" \t\r\n") != std::string_view::npos) out.push_back(piece);
    if (cut == std::string_view::npos) break;
    const size_t line_end = text.find('\n', cut);
    if (line_end == std::string_view::npos) break;
    begin = line_end + 1;
  }
  return out;
}

}  // namespace collet::hlo::mlir
