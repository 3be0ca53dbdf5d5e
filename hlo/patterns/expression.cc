// SPDX-License-Identifier: Apache-2.0
#include "hlo/patterns/expression.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace collet::hlo::patterns {
namespace {

constexpr int kDeepest = 64;

bool begins_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}

}  // namespace

class ExpressionReader {
 public:
  ExpressionReader(std::string_view text, bool bare) : text_(text), bare_(bare) {}

  Expected<Expression> read() {
    if (!sum(0)) return invalid_argument(complaint_);
    skip();
    if (at_ != text_.size()) return invalid_argument("unexpected '" + std::string(text_.substr(at_)) + "'");
    return std::move(out_);
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool next_is(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool fails(std::string message) {
    complaint_ = std::move(message);
    return false;
  }

  bool sum(int depth) {
    if (depth > kDeepest) return fails("too many parentheses");
    if (!product(depth)) return false;
    while (true) {
      const char op = next_is('+') ? '+' : next_is('-') ? '-' : 0;
      if (!op) return true;
      if (!product(depth)) return false;
      out_.steps_.push_back({op});
    }
  }
  bool product(int depth) {
    if (!factor(depth)) return false;
    while (true) {
      const char op = next_is('*') ? '*' : next_is('/') ? '/' : next_is('%') ? '%' : 0;
      if (!op) return true;
      if (!factor(depth)) return false;
      out_.steps_.push_back({op});
    }
  }
  bool factor(int depth) {
    if (depth > kDeepest) return fails("too many signs");
    if (next_is('-')) {
      if (!factor(depth + 1)) return false;
      out_.steps_.push_back({'~'});
      return true;
    }
    if (next_is('(')) return sum(depth + 1) && (next_is(')') || fails("')' is missing"));
    if (next_is('#')) return name('#');
    if (next_is('$')) return name('$');
    skip();
    if (bare_ && at_ < text_.size() && begins_name(text_[at_])) return name('$');
    double number = 0;
    const auto end = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (end.ec != std::errc())
      return fails("a number or variable is missing at '" + std::string(text_.substr(at_)) + "'");
    at_ = static_cast<size_t>(end.ptr - text_.data());
    out_.steps_.push_back({'0', number});
    return true;
  }
  bool name(char kind) {
    if (kind == '#' && at_ < text_.size() && text_[at_] == '$') ++at_;
    const size_t begin = at_;
    while (at_ < text_.size() && (begins_name(text_[at_]) || std::isdigit(static_cast<unsigned char>(text_[at_])) != 0))
      ++at_;
    if (begin == at_) return fails("the name of a variable is missing");
    out_.steps_.push_back({kind, 0, std::string(text_.substr(begin, at_ - begin))});
    return true;
  }

  std::string_view text_;
  const bool bare_;
  size_t at_ = 0;
  std::string complaint_;
  Expression out_;
};

Expected<Expression> Expression::read(std::string_view text, bool bare) {
  return ExpressionReader(text, bare).read();
}

std::vector<std::string> Expression::names() const {
  std::vector<std::string> out;
  for (const Step& step : steps_)
    if (!step.name.empty()) out.push_back(step.name);
  return out;
}

std::vector<double> Expression::numbers() const {
  std::vector<double> out;
  for (const Step& step : steps_)
    if (step.kind == '0') out.push_back(step.number);
  return out;
}

std::optional<double> Expression::value(
    const std::function<std::optional<double>(std::string_view name, bool rank)>& value) const {
  std::vector<double> stack;
  const auto is_whole = [](double x) { return x == std::floor(x) && std::abs(x) < 0x1p53; };
  for (const Step& step : steps_) {
    if (step.kind == '0') {
      stack.push_back(step.number);
      continue;
    }
    if (step.kind == '$' || step.kind == '#') {
      const auto found = value(step.name, step.kind == '#');
      if (!found) return std::nullopt;
      stack.push_back(*found);
      continue;
    }
    if (step.kind == '~') {
      stack.back() = -stack.back();
      continue;
    }
    const double right = stack.back();
    stack.pop_back();
    double& left = stack.back();
    const bool divides = step.kind == '/' || step.kind == '%';
    if (divides && right == 0) return std::nullopt;
    switch (step.kind) {
      case '+':
        left += right;
        break;
      case '-':
        left -= right;
        break;
      case '*':
        left *= right;
        break;
      case '/':
        left = is_whole(left) && is_whole(right) ? std::trunc(left / right) : left / right;
        break;
      default:
        left = std::fmod(left, right);
    }
  }
  return stack.back();
}

}  // namespace collet::hlo::patterns
