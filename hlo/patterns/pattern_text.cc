// SPDX-License-Identifier: Apache-2.0
#include "hlo/patterns/pattern_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>

#include "hlo/passes/pattern_graph.h"

namespace collet::hlo::patterns {
namespace {

constexpr size_t kMostVariables = 32;
constexpr size_t kLongestText = size_t{1} << 20;

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

Status at_line(uint32_t line, const std::string& message) {
  return invalid_argument("line " + std::to_string(line) + ": " + message);
}

// Divides `text` at commas outside of brackets of any kind.
std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '{' || c == '(' || c == '[') ++depth;
    if (c == '}' || c == ')' || c == ']') --depth;
    if (i < text.size() && (c != ',' || depth > 0)) continue;
    out.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  if (out.size() == 1 && out[0].empty()) out.clear();
  return out;
}

std::string text_of(const Binding& value) {
  if (const auto* type = std::get_if<Type>(&value)) return std::string(type_info(*type).text);
  if (const auto* size = std::get_if<int64_t>(&value)) return std::to_string(*size);
  if (const auto* constant = std::get_if<double>(&value)) return number(*constant);
  return "";
}

}  // namespace

Expected<std::vector<std::pair<std::string_view, uint32_t>>> split_modules(std::string_view text) {
  if (text.size() > kLongestText) return invalid_argument("the text of a pattern has more than 1 MiB");
  std::vector<std::pair<std::string_view, uint32_t>> out;
  uint32_t line = 1;
  size_t begin = std::string_view::npos;
  uint32_t begin_line = 1;
  for (size_t at = 0; at < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view here = trimmed(text.substr(at, end - at));
    if (here.starts_with("HloModule") && (here.size() == 9 || is_space(here[9]))) {
      if (begin != std::string_view::npos) out.emplace_back(text.substr(begin, at - begin), begin_line);
      begin = at;
      begin_line = line;
    } else if (begin == std::string_view::npos && !here.empty() && !here.starts_with("//")) {
      return at_line(line, "a pattern begins with 'HloModule NAME'");
    }
    at = end;
  }
  if (begin == std::string_view::npos)
    return invalid_argument("there is no 'HloModule NAME' in the text of the pattern");
  out.emplace_back(text.substr(begin), begin_line);
  return out;
}

class PatternTextReader {
 public:
  PatternTextReader(std::string_view text, uint32_t line) : text_(text) { out_.line_ = line; }

  Expected<PatternText> read() {
    COLLET_TRY(take_header());
    COLLET_TRY(take_body());
    COLLET_TRY(take_conditions());
    COLLET_TRY(take_parameters());
    COLLET_TRY(check());
    return std::move(out_);
  }

 private:
  using Piece = PatternText::Piece;

  // Takes the name and the lines of `where`; body_ is the text with empty lines in their places.
  Status take_header() {
    uint32_t line = out_.line_;
    bool first = true, in_header = true;
    for (size_t at = 0; at < text_.size(); ++line) {
      const size_t end = std::min(text_.find('\n', at), text_.size() - 1) + 1;
      const std::string_view whole = text_.substr(at, end - at), here = trimmed(whole);
      at = end;
      const bool is_where = here.starts_with("where") && (here.size() == 5 || is_space(here[5]));
      if (first) {
        const std::string_view rest = trimmed(here.substr(std::string_view("HloModule").size()));
        out_.name_ = rest.substr(0, std::min(rest.find_first_of(", \t"), rest.size()));
        if (out_.name_.empty()) return at_line(line, "the name after HloModule is missing");
        if (out_.name_.find('$') != std::string::npos) return at_line(line, "the name after HloModule is no variable");
        first = false;
      } else if (is_where && in_header) {
        where_.emplace_back(std::string(here.substr(5)), line);
        body_ += '\n';
        continue;
      } else if (!here.empty() && !here.starts_with("//")) {
        in_header = false;
      }
      // Comments may hold a `$`.
      const size_t comment = whole.find("//");
      body_ += whole.substr(0, comment);
      if (comment != std::string_view::npos && whole.ends_with('\n')) body_ += '\n';
    }
    return ok_status();
  }

  Expected<size_t> variable(std::string_view name, VariableKind kind, uint32_t line) {
    auto [it, is_new] = numbers_.try_emplace(std::string(name), out_.variables_.size());
    if (is_new) {
      if (out_.variables_.size() == kMostVariables) return at_line(line, "there are too many variables");
      out_.variables_.push_back({std::string(name), kind, line, {}});
      return it->second;
    }
    Variable& known = out_.variables_[it->second];
    if (known.kind == kind || kind == VariableKind::Choice) return it->second;
    // The size of a dimension may stand in attributes before its shape is seen.
    if (known.kind == VariableKind::Choice && kind == VariableKind::Size) {
      known.kind = kind;
      return it->second;
    }
    return at_line(line, "$" + known.name + " stands for another thing in line " + std::to_string(known.line));
  }

  // Divides the body at variables.
  Status take_body() {
    uint32_t line = out_.line_;
    std::string literal;
    const auto end_literal = [&] {
      if (!literal.empty()) out_.pieces_.push_back({Piece::Kind::Text, std::move(literal), 0, {}, line});
      literal.clear();
    };
    int brackets = 0;  // open square brackets: those of shapes, since attributes have braces
    for (size_t i = 0; i < body_.size(); ++i) {
      const char c = body_[i];
      if (c == '\n') ++line;
      if (c == '[') ++brackets;
      if (c == ']') --brackets;
      if (c != '$') {
        literal += c;
        continue;
      }
      Piece piece;
      piece.line = line;
      if (i + 1 < body_.size() && body_[i + 1] == '{') {
        const size_t close = body_.find('}', i);
        if (close == std::string::npos) return at_line(line, "'${' has no '}'");
        const std::string inside = body_.substr(i + 2, close - i - 2);
        i = close;
        if (const std::string_view list = trimmed(inside); list.starts_with('@')) {
          piece.kind = Piece::Kind::Positions;
          COLLET_ASSIGN(piece.variable, variable(list.substr(1), VariableKind::Sizes, line));
        } else {
          piece.kind = Piece::Kind::Expression;
          Expected<Expression> expression = Expression::read(inside, true);
          if (!expression.ok()) return at_line(line, "${" + inside + "}: " + expression.status().message());
          piece.expression = *std::move(expression);
        }
        end_literal();
        out_.pieces_.push_back(std::move(piece));
        continue;
      }
      size_t end = i + 1;
      while (end < body_.size() && in_name(body_[end])) ++end;
      const std::string name = body_.substr(i + 1, end - i - 1);
      if (name.empty()) return at_line(line, "'$' without the name of a variable");
      const std::string_view before = trimmed(literal);
      const bool is_list = std::string_view(body_).substr(end).starts_with("...");
      const bool is_type = end < body_.size() && body_[end] == '[';
      const VariableKind kind = is_list                         ? VariableKind::Sizes
                                : is_type                       ? VariableKind::Type
                                : before.ends_with("constant(") ? VariableKind::Constant
                                : brackets > 0                  ? VariableKind::Size
                                                                : VariableKind::Choice;
      piece.kind = is_list ? Piece::Kind::Sizes : Piece::Kind::Variable;
      COLLET_ASSIGN(piece.variable, variable(name, kind, line));
      i = end - 1 + (is_list ? 3 : 0);
      end_literal();
      out_.pieces_.push_back(std::move(piece));
    }
    end_literal();
    for (const Piece& one : out_.pieces_)
      for (const std::string& name : one.expression.names())
        if (!numbers_.contains(name)) COLLET_TRY(variable(name, VariableKind::Choice, one.line).status());
    return ok_status();
  }

  Status take_conditions() {
    for (const auto& [text, line] : where_) {
      for (const std::string_view clause : split_list(text)) {
        if (clause.empty()) return at_line(line, "an empty condition");
        COLLET_TRY(take_condition(clause, line));
      }
    }
    return ok_status();
  }

  Status take_condition(std::string_view clause, uint32_t line) {
    const size_t in = clause.find(" in ");
    if (clause.starts_with('$') && in != std::string_view::npos) {
      const std::string name(trimmed(clause.substr(1, in - 1)));
      const std::string_view list = trimmed(clause.substr(in + 4));
      const auto known = numbers_.find(name);
      if (known == numbers_.end()) return at_line(line, "$" + name + " does not occur in the program");
      if (!list.starts_with('{') || !list.ends_with('}')) return at_line(line, "a list is written {a, b, c}");
      Variable& one = out_.variables_[known->second];
      if (!one.choices.empty()) return at_line(line, "$" + name + " has a list already");
      for (const std::string_view choice : split_list(list.substr(1, list.size() - 2)))
        one.choices.emplace_back(choice);
      if (one.choices.empty()) return at_line(line, "an empty list");
      return ok_status();
    }
    static constexpr std::array<std::string_view, 6> kOps = {"<=", ">=", "==", "!=", "<", ">"};
    for (const std::string_view op : kOps) {
      const size_t at = clause.find(op);
      if (at == std::string_view::npos) continue;
      Condition one{{}, {}, std::string(op), std::string(clause), line};
      for (const auto& [part, side] :
           {std::pair(clause.substr(0, at), &one.left), std::pair(clause.substr(at + op.size()), &one.right)}) {
        Expected<Expression> read = Expression::read(part, false);
        if (!read.ok()) return at_line(line, "'" + one.text + "': " + read.status().message());
        *side = *std::move(read);
        for (const std::string& name : side->names()) {
          if (!numbers_.contains(name)) return at_line(line, "$" + name + " does not occur in the program");
        }
      }
      out_.conditions_.push_back(std::move(one));
      return ok_status();
    }
    return at_line(line,
                   "'" + std::string(clause) + "' is no condition: write $T in {f32, bf16}, $N % 16 == 0, $x < 1");
  }

  // Finds `SHAPE parameter(N)` and `ROOT NAME = SHAPE` in the entry.
  Status take_parameters() {
    const size_t entry = body_.find("ENTRY");
    if (entry == std::string::npos) return at_line(out_.line_, "the module has no ENTRY");
    auto line = out_.line_ +
                static_cast<uint32_t>(std::count(body_.begin(), body_.begin() + static_cast<int64_t>(entry), '\n'));
    std::map<size_t, Extents> found;
    bool has_root = false;
    for (size_t at = entry; at < body_.size(); ++line) {
      const size_t end = std::min(body_.find('\n', at), body_.size() - 1) + 1;
      const std::string_view here = std::string_view(body_).substr(at, end - at);
      at = end;
      const size_t parameter = here.find(" parameter(");
      const size_t equals = here.find('=');
      if (trimmed(here).starts_with("ROOT ") && equals != std::string_view::npos && !has_root) {
        has_root = true;
        std::string_view shape = trimmed(here.substr(equals + 1));
        if (shape.starts_with('(')) shape.remove_prefix(1);
        COLLET_ASSIGN(out_.result_, extents_of(shape.substr(0, shape.find(']') + 1), line, "results"));
      }
      if (parameter == std::string_view::npos || equals == std::string_view::npos || equals > parameter) continue;
      size_t number = 0;
      const std::string_view digits = here.substr(parameter + 11);
      if (std::from_chars(digits.data(), digits.data() + digits.size(), number).ec != std::errc()) continue;
      COLLET_ASSIGN(found[number],
                    extents_of(trimmed(here.substr(equals + 1, parameter - equals - 1)), line, "parameters"));
    }
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found.contains(i)) return at_line(out_.line_, "there is no parameter(" + std::to_string(i) + ")");
      out_.parameters_.push_back(std::move(found[i]));
    }
    return ok_status();
  }

  Expected<Extents> extents_of(std::string_view text, uint32_t line, const char* of) {
    Extents out;
    const size_t open = text.find('['), close = text.find(']');
    if (open == std::string_view::npos || close == std::string_view::npos || text.starts_with('('))
      return at_line(line, std::string(of) + " are arrays");
    int lists = 0;
    for (std::string_view extent : split_list(text.substr(open + 1, close - open - 1))) {
      Extent one;
      if (extent.starts_with("${")) {
        one.kind = Extent::Kind::Computed;
      } else if (extent.starts_with('$')) {
        const bool is_list = extent.ends_with("...");
        if (is_list) extent.remove_suffix(3);
        one.kind = is_list ? Extent::Kind::Sizes : Extent::Kind::Size;
        lists += is_list ? 1 : 0;
        const auto known = numbers_.find(std::string(extent.substr(1)));
        if (known == numbers_.end())
          return at_line(line, "'" + std::string(extent) + "' is no size; a computed one is written ${...}");
        one.variable = known->second;
      } else if (std::from_chars(extent.data(), extent.data() + extent.size(), one.number).ec != std::errc()) {
        return at_line(line, "'" + std::string(extent) + "' is no size");
      }
      out.push_back(one);
    }
    if (lists > 1) return at_line(line, "a shape has one list of sizes at most");
    return out;
  }

  Status check() {
    std::vector<bool> bound(out_.variables_.size());
    for (const Extents& extents : out_.parameters_)
      for (const Extent& extent : extents)
        if (extent.kind == Extent::Kind::Size || extent.kind == Extent::Kind::Sizes) bound[extent.variable] = true;
    for (size_t i = 0; i < out_.variables_.size(); ++i) {
      const Variable& one = out_.variables_[i];
      const bool is_type = one.kind == VariableKind::Type;
      if ((is_type || one.kind == VariableKind::Choice) && one.choices.empty())
        return at_line(one.line, "$" + one.name + " needs a list of what it may be: where $" + one.name +
                                     (is_type ? " in {f32, bf16}" : " in {1, 2}"));
      if ((one.kind == VariableKind::Size || one.kind == VariableKind::Sizes) && !bound[i])
        return at_line(one.line, "$" + one.name + " has no value: it must stand in the shape of a parameter");
      if (!one.choices.empty() && one.kind != VariableKind::Choice && !is_type)
        return at_line(one.line, "$" + one.name + " has a list; only types and attributes have one");
      for (const std::string& choice : one.choices) {
        int64_t whole = 0;
        const auto end = std::from_chars(choice.data(), choice.data() + choice.size(), whole);
        const bool ok = is_type ? type_from_text(choice).has_value()
                                : end.ec == std::errc() && end.ptr == choice.data() + choice.size();
        if (!ok)
          return at_line(one.line, "'" + choice + "', in the list of $" + one.name +
                                       (is_type ? ", is no element type" : ", is no whole number"));
      }
    }
    return ok_status();
  }

  std::string_view text_;
  std::string body_;
  std::vector<std::pair<std::string, uint32_t>> where_;
  std::map<std::string, size_t> numbers_;
  PatternText out_;
};

Expected<PatternText> PatternText::read(std::string_view text, uint32_t line) {
  return PatternTextReader(text, line).read();
}

std::optional<double> PatternText::number_of(const Bindings& bindings, std::string_view name, bool rank) const {
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (variables_[i].name != name) continue;
    if (const auto* list = std::get_if<std::vector<int64_t>>(&bindings[i]); list && rank)
      return static_cast<double>(list->size());
    if (const auto* size = std::get_if<int64_t>(&bindings[i]); size && !rank) return static_cast<double>(*size);
    if (const auto* constant = std::get_if<double>(&bindings[i]); constant && !rank) return *constant;
  }
  return std::nullopt;
}

Expected<std::string> PatternText::with(const Bindings& bindings) const {
  std::string out(line_ - 1, '\n');
  bool drops_comma = false;
  for (const Piece& piece : pieces_) {
    std::string text = piece.text;
    const bool is_list = piece.kind == Piece::Kind::Sizes || piece.kind == Piece::Kind::Positions;
    if (piece.kind == Piece::Kind::Variable) {
      text = text_of(bindings[piece.variable]);
    } else if (is_list) {
      const auto& sizes = std::get<std::vector<int64_t>>(bindings[piece.variable]);
      for (size_t i = 0; i < sizes.size(); ++i)
        text += (i ? "," : "") + std::to_string(piece.kind == Piece::Kind::Sizes ? sizes[i] : static_cast<int64_t>(i));
    } else if (piece.kind == Piece::Kind::Expression) {
      const auto value =
          piece.expression.value([&](std::string_view name, bool rank) { return number_of(bindings, name, rank); });
      if (!value || *value != std::floor(*value) || std::abs(*value) >= 0x1p53)
        return at_line(piece.line, "an expression has no whole value");
      text = std::to_string(static_cast<int64_t>(*value));
    }
    // An empty list takes one of its commas with it.
    if (drops_comma && trimmed(text).starts_with(',')) text = text.substr(text.find(',') + 1);
    drops_comma = false;
    if (is_list && text.empty()) {
      if (out.ends_with(','))
        out.pop_back();
      else
        drops_comma = true;
    }
    out += text;
  }
  return out;
}

std::string_view PatternText::violated(const Bindings& bindings) const {
  for (const Condition& one : conditions_) {
    const auto value = [&](std::string_view name, bool rank) { return number_of(bindings, name, rank); };
    const auto left = one.left.value(value), right = one.right.value(value);
    if (!left || !right) {
      // A division by zero is no value either.
      const auto is_bound = [&](const std::string& name) {
        return number_of(bindings, name, false).has_value() || number_of(bindings, name, true).has_value();
      };
      const auto a = one.left.names(), b = one.right.names();
      if (std::all_of(a.begin(), a.end(), is_bound) && std::all_of(b.begin(), b.end(), is_bound)) return one.text;
      continue;
    }
    const bool holds = one.op == "<"    ? *left < *right
                       : one.op == "<=" ? *left <= *right
                       : one.op == ">"  ? *left > *right
                       : one.op == ">=" ? *left >= *right
                       : one.op == "==" ? *left == *right
                                        : *left != *right;
    if (!holds) return one.text;
  }
  return "";
}

bool PatternText::bind(const Extents& extents, const Shape& shape, Bindings& bindings) {
  const bool has_list =
      std::any_of(extents.begin(), extents.end(), [](const Extent& e) { return e.kind == Extent::Kind::Sizes; });
  const int64_t single = static_cast<int64_t>(extents.size()) - (has_list ? 1 : 0);
  if (!shape.is_array() || (has_list ? shape.rank() < single : shape.rank() != single)) return false;
  int d = 0;
  const auto set = [&](size_t variable, auto value) {
    if (bindings[variable].index() == 0) bindings[variable] = value;
    return bindings[variable] == Binding(value);
  };
  for (const Extent& extent : extents) {
    if (extent.kind == Extent::Kind::Sizes) {
      std::vector<int64_t> sizes;
      for (int64_t i = shape.rank() - single; i > 0; --i) sizes.push_back(shape.dim(d++));
      if (!set(extent.variable, std::move(sizes))) return false;
      continue;
    }
    const int64_t size = shape.dim(d++);
    if (extent.kind == Extent::Kind::Number && size != extent.number) return false;
    if (extent.kind == Extent::Kind::Size && !set(extent.variable, size)) return false;
  }
  return true;
}

std::string PatternText::attributes(const Bindings& bindings) const {
  std::map<std::string, std::string> sorted;
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (variables_[i].kind == VariableKind::Constant) sorted[variables_[i].name] = text_of(bindings[i]) + " : f64";
    if (variables_[i].kind == VariableKind::Choice) sorted[variables_[i].name] = text_of(bindings[i]) + " : i64";
  }
  std::string out;
  for (const auto& [name, value] : sorted) out += (out.empty() ? "{" : ", ") + name + " = " + value;
  return out.empty() ? out : out + "}";
}

}  // namespace collet::hlo::patterns
