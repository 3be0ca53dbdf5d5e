// SPDX-License-Identifier: Apache-2.0
#include "hlo/text/parser.h"

#include <algorithm>
#include <cstring>

#include "hlo/text/parser_impl.h"

namespace collet::hlo {
namespace text {

Parser::Parser(std::string_view text, const ParseOptions& options, Diagnostics& diagnostics)
    : lexer_(text),
      options_(options),
      diagnostics_(diagnostics),
      errors_at_start_(diagnostics.list().size()),
      module_holder_(std::make_unique<Module>("_")),
      module_(*module_holder_),
      line_from_(text.data()) {}

// ---- error messages ----

bool Parser::complain(const char* at, std::string message) {
  if (stop()) return false;
  Diagnostic d;
  const char* begin = lexer_.begin();
  d.line = 1 + static_cast<uint32_t>(std::count(begin, at, '\n'));
  const char* start = at;
  while (start > begin && start[-1] != '\n') --start;
  const char* end = at;
  while (end < lexer_.end() && *end != '\n' && *end != '\r') ++end;
  d.column = static_cast<uint32_t>(at - start) + 1;
  // A line may be as long as the text, so only the surroundings of the position are kept.
  constexpr ptrdiff_t kShown = 4096;
  d.source.assign(start, std::min(end, at + kShown));
  d.message = std::move(message);
  diagnostics_.add(std::move(d));
  return false;
}

bool Parser::expected(std::string_view what) {
  if (is(Tok::Error)) return complain(std::string(lexer_.reason()));
  std::string message = "expects ";
  message += what;
  message += " but finds ";
  const bool worded = is(Tok::Ident) || is(Tok::Name) || is(Tok::AttrName) || is(Tok::Keyword) || is(Tok::Type);
  if (worded && tok_.text.size() < 80)
    message += "'" + std::string(tok_.text) + (is(Tok::AttrName) ? "='" : "'");
  else
    message += token_text(tok_.kind);
  return complain(std::move(message));
}

bool Parser::expected_attribute(std::string_view what) {
  if (is(Tok::Ident) && tok_.text.size() < 80 && peek() == Tok::Equal)
    return complain("the '=' must stand right behind the attribute's name: " + std::string(tok_.text) + "=");
  return expected(what);
}

bool Parser::expected_name() {
  if (tok_.text.size() >= 80) return expected("a name");
  const std::string text(tok_.text);
  if (is(Tok::Type)) return complain("expects a name, which '" + text + "' is not: it is an element type");
  if (is(Tok::Keyword)) return complain("expects a name, which '" + text + "' is not: the word is reserved");
  if (!is(Tok::AttrName)) return expected("a name");
  // A word directly before '=' is the name of an attribute. The message depends on the text before it in its line.
  std::string_view before(lexer_.begin(), static_cast<size_t>(tok_.begin - lexer_.begin()));
  while (before.ends_with(' ') || before.ends_with('\t')) before.remove_suffix(1);
  if (before.ends_with(')') || before.ends_with('}'))
    return complain("a comma must stand before the attribute '" + text + "='");
  const bool opens = before.ends_with('{') && !before.ends_with("={");
  if (before.empty() || before.ends_with('\n') || opens || before.ends_with("ROOT"))
    return complain("a blank must stand between the name '" + text + "' and its '='");
  return expected("a name");
}

bool Parser::expect(Tok kind, std::string_view what) {
  if (tok_.kind == kind) {
    next();
    return true;
  }
  return expected(std::string(token_text(kind)) + std::string(what));
}

bool Parser::integer(int64_t& out) {
  if (!is(Tok::Int)) return expected("an integer");
  out = tok_.integer;
  next();
  return true;
}

bool Parser::boolean(bool& out) {
  if (!is_word(Word::True) && !is_word(Word::False)) return expected("true or false");
  out = is_word(Word::True);
  next();
  return true;
}

bool Parser::name(std::string_view& out) {
  if (!is(Tok::Ident) && !is(Tok::Name)) return expected_name();
  out = tok_.text;
  next();
  return true;
}

bool Parser::string(std::string_view& out) {
  if (!is(Tok::String)) return expected("a string");
  if (tok_.escaped) {
    scratch_.clear();
    if (!unescape(tok_.text, scratch_)) return complain("malformed escape in a string");
    out = module_.arena().string(scratch_);
  } else {
    out = module_.arena().string(tok_.text);
  }
  next();
  return true;
}

Tok Parser::peek() {
  if (is(Tok::Error)) return Tok::Error;  // the lexer keeps the reason of this error
  Token token;
  lexer_.next(token);
  lexer_.rewind(tok_.end);
  return token.kind;
}

uint32_t Parser::line_at(const char* at) {
  while (line_from_ < at) {
    const auto* newline = static_cast<const char*>(std::memchr(line_from_, '\n', static_cast<size_t>(at - line_from_)));
    if (!newline) break;
    ++line_;
    line_from_ = newline + 1;
  }
  return line_;
}

bool Parser::enter() {
  if (++depth_ <= kMaxDepth) return true;
  --depth_;
  return complain("nesting is deeper than " + std::to_string(kMaxDepth) + " levels");
}

// ---- the module ----

std::unique_ptr<Module> Parser::run() {
  next();
  if (is(Tok::End)) {
    complain("the text is empty: there is no module in it");
    return nullptr;
  }
  const bool begins = is(Tok::Ident) || is(Tok::Name) || is(Tok::AttrName) || is(Tok::Keyword) || at_shape();
  if (!begins) {
    expected("'HloModule name', a computation or an instruction");
    return nullptr;
  }
  bool ok;
  if (is_word(Word::HloModule) || is_word(Word::Entry) || peek() == Tok::LeftBrace)
    ok = module_text();
  else
    ok = single_instruction();
  if (!ok || diagnostics_.list().size() != errors_at_start_) return nullptr;
  choose_entry();
  if (!check_aliases()) return nullptr;
  return std::move(module_holder_);
}

bool Parser::module_text() {
  const bool has_header = is_word(Word::HloModule);
  if (has_header && !header()) {
    if (!recover_computation(lexer_.begin())) return false;
  }
  if (!computations()) return false;
  if (!has_header && entry_ != CompId::None) module_.set_name("module_" + std::string(module_[entry_].name));
  return true;
}

// ---- computations ----

bool Parser::computations() {
  do {
    const char* from = tok_.begin;
    if (!computation()) {
      if (stop() || !recover_computation(from)) return false;
    }
  } while (!is(Tok::End));
  return true;
}

Scope& Parser::push_scope() {
  if (scope_depth_ == scopes_.size()) scopes_.push_back(std::make_unique<Scope>());
  Scope& s = *scopes_[scope_depth_++];
  s.names.clear();
  s.root = InstrId::None;
  s.root_marked = s.failed = false;
  s.parameters.clear();
  s.parameter_numbers.clear();
  return s;
}

bool Parser::computation() {
  const char* begin = tok_.begin;
  const bool marked = is_word(Word::Entry);
  if (marked) next();
  const char* name_at = tok_.begin;
  std::string_view text;
  if (!name(text)) return false;
  const Shape* result = nullptr;
  const char* shape_at = nullptr;
  bool ok = true;
  if (is(Tok::LeftParen) && !signature(result, shape_at)) {
    computation_names_.insert(text, kRefused);
    return false;
  }
  Scope& inside = push_scope();
  ok = instruction_list(inside, text);
  pop_scope();
  const CompId id = inside.computation;
  if (ok && result && !module_[module_[id].root].shape.compatible(*result))
    ok = complain(shape_at, "computation '" + std::string(text) + "' declares the result " + result->to_string() +
                                ", but its root '" + std::string(module_[module_[id].root].name) + "' is " +
                                module_[module_[id].root].shape.to_string());
  while (ok && eat(Tok::Comma)) {
    if (!is(Tok::AttrName) || tok_.text != "execution_thread") {
      ok = expected_attribute("execution_thread=");
      break;
    }
    next();
    std::string_view thread;
    ok = string(thread);
    if (ok) module_[id].execution_thread = thread == "main" ? std::string_view() : thread;
  }
  if (ok && marked && entry_marked_) ok = complain(begin, "a module has only one ENTRY");
  if (!computation_names_.insert(text, ok ? index_of(id) : kRefused))
    return complain(name_at, "computation '" + std::string(text) + "' is defined twice");
  if (!ok) return false;
  if (marked || !entry_marked_) entry_ = id;
  entry_marked_ |= marked;
  return true;
}

bool Parser::signature(const Shape*& result, const char*& at) {
  next();
  if (!is(Tok::RightParen)) do {
      std::string_view ignored;
      const Shape* s = nullptr;
      if (!name(ignored) || !shape(s)) return false;
    } while (eat(Tok::Comma));
  if (!expect(Tok::RightParen, " after the parameters") || !expect(Tok::Arrow, " before the result's shape"))
    return false;
  at = tok_.begin;
  return shape(result);
}

bool Parser::instruction_list(Scope& inside, std::string_view text) {
  if (!is(Tok::LeftBrace)) return expected("'{' before the instructions");
  if (!enter()) return false;
  inside.computation = module_.add_computation(text);
  module_[inside.computation].line = line_at(tok_.begin);
  next();
  do {
    const char* from = tok_.begin;
    if (!instruction(inside)) {
      inside.failed = true;
      if (stop() || !recover_instruction(from)) {
        leave();
        return false;
      }
    }
  } while (!is(Tok::RightBrace));
  leave();
  const char* close = tok_.begin;
  next();
  if (inside.failed) return false;
  put_last(inside.computation);
  Computation& c = module_[inside.computation];
  c.root = inside.root_marked ? inside.root : c.order.back();
  return finish_parameters(inside, close);
}

bool Parser::finish_parameters(Scope& inside, const char* at) {
  std::vector<InstrId>& parameters = module_[inside.computation].parameters;
  parameters.assign(inside.parameters.size(), InstrId::None);
  for (const auto& [number, id] : inside.parameters) {
    if (static_cast<size_t>(number) >= parameters.size())
      return complain(at, "computation has " + std::to_string(parameters.size()) +
                              " parameters, so none may have number " + std::to_string(number));
    parameters[static_cast<size_t>(number)] = id;
  }
  return true;
}

bool Parser::single_instruction() {
  single_ = true;
  Scope& inside = push_scope();
  inside.computation = module_.add_computation("_");
  entry_ = inside.computation;
  bool ok;
  if (at_shape()) {
    InstrId id;
    ok = right_hand_side("_", tok_.begin, true, id);
  } else {
    ok = instruction(inside);
  }
  pop_scope();
  if (!ok) return false;
  if (!is(Tok::End)) return expected("the end after a single instruction (a module begins with 'HloModule name')");
  Computation& c = module_[inside.computation];
  c.root = c.order.back();
  return finish_parameters(inside, tok_.begin);
}

void Parser::put_last(CompId id) {
  auto& order = module_.computations();
  if (order.back() == id) return;
  // It is searched from the end, because it is one of the last.
  order.erase(std::prev(std::find(order.rbegin(), order.rend(), id).base()));
  order.push_back(id);
}

// Moves the entry to the end, because callees come before callers, and gives names to computations without one.
void Parser::choose_entry() {
  module_.set_entry(entry_);
  put_last(entry_);
  for (CompId id : unnamed_) {
    const std::string stem(module_[id].name);
    std::string text = stem;
    while (computation_names_.find(text) != NameTable::kNone) text = stem + "." + std::to_string(++made_up_);
    module_[id].name = module_.arena().string(text);
    computation_names_.insert(module_[id].name, index_of(id));
  }
}

// ---- recovery: the next line that begins like an instruction or a computation ----

namespace {

enum class LineKind { Other, Instruction, Close, Computation };

LineKind classify(const char* p, const char* end) {
  while (p < end && (*p == ' ' || *p == '\t')) ++p;
  if (p == end) return LineKind::Other;
  if (*p == '}') return LineKind::Close;
  const auto* newline = static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(end - p)));
  std::string_view line(p, static_cast<size_t>((newline ? newline : end) - p));
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  if (line.starts_with("ENTRY ")) return LineKind::Computation;
  if (line.starts_with("ROOT ")) return LineKind::Instruction;
  size_t i = line.starts_with("%") ? 1 : 0;
  const size_t begin = i;
  while (i < line.size() &&
         (std::isalnum(static_cast<unsigned char>(line[i])) || line[i] == '_' || line[i] == '.' || line[i] == '-'))
    ++i;
  if (i == begin) return LineKind::Other;
  while (i < line.size() && line[i] == ' ') ++i;
  if (i < line.size() && line[i] == '=') return LineKind::Instruction;
  if (line.ends_with("{") && i < line.size() && (line[i] == '{' || line[i] == '(')) return LineKind::Computation;
  return LineKind::Other;
}

}  // namespace

bool Parser::recover_instruction(const char* from) {
  const char* end = lexer_.end();
  for (const char* p = std::max(from, behind_); p < end;) {
    p = static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(end - p)));
    if (!p) break;
    ++p;
    const LineKind kind = classify(p, end);
    if (kind == LineKind::Other) continue;
    lexer_.rewind(p);
    next();
    return kind != LineKind::Computation;
  }
  lexer_.rewind(end);
  next();
  return false;
}

bool Parser::recover_computation(const char* from) {
  const char* end = lexer_.end();
  const char* p = std::max(from, behind_);
  while (p < end) {
    p = static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(end - p)));
    if (!p) break;
    ++p;
    if (classify(p, end) != LineKind::Computation) continue;
    lexer_.rewind(p);
    next();
    return true;
  }
  return false;
}

bool Parser::sharding_only(Sharding& out) {
  next();
  const Sharding* s = nullptr;
  if (!sharding(s)) return false;
  if (!is(Tok::End)) return expected("the end of the sharding");
  out = *s;
  return true;
}

bool Parser::shape_only(Shape& out) {
  next();
  const Shape* s = nullptr;
  if (!shape(s)) return false;
  if (!is(Tok::End)) return expected("the end of the shape");
  out = *s;
  return true;
}

}  // namespace text

std::unique_ptr<Module> parse_module(std::string_view text, const ParseOptions& options, Diagnostics& diagnostics) {
  return text::Parser(text, options, diagnostics).run();
}

Expected<std::unique_ptr<Module>> parse_module(std::string_view text, std::string_view file_name,
                                               const ParseOptions& options) {
  Diagnostics diagnostics(std::string(file_name.empty() ? options.file_name : file_name), options.max_errors);
  std::unique_ptr<Module> module = parse_module(text, options, diagnostics);
  if (module) return module;
  if (diagnostics.empty()) return internal_error("the text was refused without a complaint");
  return diagnostics.to_status();
}

Expected<Shape> parse_shape(std::string_view text) {
  Diagnostics diagnostics("shape", 1);
  const ParseOptions options;
  Shape out;
  if (!text::Parser(text, options, diagnostics).shape_only(out)) return diagnostics.to_status();
  return out;
}

Expected<Sharding> parse_sharding(std::string_view text) {
  Diagnostics diagnostics("sharding", 1);
  const ParseOptions options;
  Sharding out;
  if (!text::Parser(text, options, diagnostics).sharding_only(out)) return diagnostics.to_status();
  return out;
}

}  // namespace collet::hlo
