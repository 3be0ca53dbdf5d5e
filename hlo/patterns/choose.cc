// SPDX-License-Identifier: Apache-2.0
#include "hlo/patterns/choose.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>
#include <set>

namespace collet::hlo::patterns {
namespace {

constexpr size_t kMostCombinations = 128;
constexpr int kMostTries = 200000;
constexpr int64_t kLargestSize = int64_t{1} << 20;

// Numbers of few bits, which every float type has, and which no pass creates.
constexpr double kFractions[] = {0.6875, 0.8125, 0.5625, 0.4375, 0.9375, 0.3125};

std::vector<double> numbers_of(const PatternText& text) {
  std::vector<double> out;
  for (const Condition& one : text.conditions()) {
    for (const Expression* side : {&one.left, &one.right}) {
      const std::vector<double> more = side->numbers();
      out.insert(out.end(), more.begin(), more.end());
    }
  }
  return out;
}

std::vector<int64_t> size_candidates(const PatternText& text) {
  std::set<int64_t> out;
  for (int64_t n = 1; n <= 64; ++n) out.insert(n);
  for (const double number : numbers_of(text)) {
    const auto whole = static_cast<int64_t>(std::clamp(number, 0.0, static_cast<double>(kLargestSize)));
    for (int64_t times = 1; times <= 8; ++times)
      for (int64_t more = -1; more <= 1; ++more) out.insert(whole * times + more);
  }
  std::vector<int64_t> sizes;
  for (const int64_t n : out)
    if (n >= 1 && n <= kLargestSize) sizes.push_back(n);
  return sizes;
}

std::vector<double> constant_candidates(const PatternText& text, bool whole) {
  std::vector<double> out;
  if (whole) {
    for (int n = 11; n < 64; n += 2) out.push_back(n);
    for (int n = -9; n < 11; ++n) out.push_back(n);
  } else {
    for (int scale = 0; scale <= 40; ++scale)
      for (const double f : kFractions) out.push_back(std::ldexp(f, -scale));
    for (int scale = 1; scale <= 40; ++scale)
      for (const double f : kFractions) out.push_back(std::ldexp(f, scale));
    for (size_t i = 0, n = out.size(); i < n; ++i) out.push_back(-out[i]);
  }
  const std::vector<double> numbers = numbers_of(text);
  // Between two bounds that are close to each other.
  for (const double a : numbers)
    for (const double b : numbers)
      if (a <= b) out.push_back(whole ? std::floor((a + b) / 2) : (a + b) / 2);
  return out;
}

/// Chooses values one after another, and goes back where a condition does not hold.
class Choice {
 public:
  Choice(const PatternText& text, Bindings values, const Units& units, uint64_t seed, bool whole_constants)
      : text_(text), values_(std::move(values)), units_(units), seed_(seed), random_(seed) {
    const std::vector<int64_t> sizes = size_candidates(text);
    const std::vector<double> constants = constant_candidates(text, whole_constants);
    for (size_t i = 0; i < text.variables().size(); ++i) {
      const VariableKind kind = text.variables()[i].kind;
      if (kind == VariableKind::Size) {
        add({i, 0, true, {sizes.begin(), sizes.end()}});
      } else if (kind == VariableKind::Sizes) {
        const size_t length = std::get<std::vector<int64_t>>(values_[i]).size();
        for (size_t d = 0; d < length; ++d) add({i, d, true, {1, 2, 3, 4, 5}});
      } else if (kind == VariableKind::Constant) {
        add({i, 0, false, constants});
      }
    }
  }

  Expected<Bindings> find() {
    if (const std::string_view wrong = text_.violated(values_); !wrong.empty() || !from(0))
      return invalid_argument("line " + std::to_string(text_.line()) +
                              ": no values were found that meet the conditions" +
                              (closest_.empty() ? "" : "; the last one that failed is '" + closest_ + "'"));
    return values_;
  }

 private:
  struct Slot {
    size_t variable = 0, place = 0;
    bool is_size = false;
    std::vector<double> candidates;
  };

  // Adds a slot, with its candidates in the order in which they are tried.
  void add(Slot slot) {
    const Unit unit = slot.is_size ? units_[slot.variable][slot.place] : Unit::Any;
    if (unit == Unit::One) slot.candidates = {1};
    if (unit == Unit::More) std::erase(slot.candidates, 1);
    arrange(slot);
    slots_.push_back(std::move(slot));
  }
  void arrange(Slot& slot) {
    if (seed_ != 0) {
      std::shuffle(slot.candidates.begin(), slot.candidates.end(), random_);
      // Most cases are small, so that exact arithmetic is fast.
      if (slot.is_size)
        std::stable_partition(slot.candidates.begin(), slot.candidates.end(), [](double n) { return n <= 40; });
      return;
    }
    if (!slot.is_size) return;
    const size_t first = 4 + 2 * slots_.size();
    std::stable_sort(slot.candidates.begin(), slot.candidates.end(), [&](double a, double b) {
      const auto late = [&](double n) { return n < static_cast<double>(first); };
      return late(a) != late(b) ? late(b) : late(a) && a > b;
    });
  }

  bool from(size_t i) {
    if (i == slots_.size()) return true;
    Slot& slot = slots_[i];
    for (const double candidate : slot.candidates) {
      if (++tries_ > kMostTries) return false;
      if (seed_ == 0 && is_taken(i, candidate)) continue;
      set(slot, candidate);
      const std::string_view wrong = text_.violated(values_);
      if (!wrong.empty()) closest_ = wrong;
      if (wrong.empty() && from(i + 1)) return true;
    }
    // Equal values are better than none.
    for (const double candidate : slot.candidates) {
      if (seed_ != 0 || ++tries_ > kMostTries) break;
      set(slot, candidate);
      if (text_.violated(values_).empty() && from(i + 1)) return true;
    }
    if (text_.variables()[slot.variable].kind != VariableKind::Sizes) values_[slot.variable] = Binding();
    return false;
  }

  void set(const Slot& slot, double value) {
    if (!slot.is_size) {
      values_[slot.variable] = value;
    } else if (auto* list = std::get_if<std::vector<int64_t>>(&values_[slot.variable])) {
      (*list)[slot.place] = static_cast<int64_t>(value);
    } else {
      values_[slot.variable] = static_cast<int64_t>(value);
    }
  }

  bool is_taken(size_t end, double value) const {
    for (size_t i = 0; i < end; ++i) {
      if (slots_[i].is_size != slots_[end].is_size) continue;
      const Binding& one = values_[slots_[i].variable];
      if (const auto* size = std::get_if<int64_t>(&one); size && static_cast<double>(*size) == value) return true;
      if (const auto* constant = std::get_if<double>(&one); constant && *constant == value) return true;
    }
    return false;
  }

  const PatternText& text_;
  Bindings values_;
  const Units& units_;
  const uint64_t seed_;
  std::mt19937_64 random_;
  std::vector<Slot> slots_;
  std::string closest_;
  int tries_ = 0;
};

}  // namespace

Expected<std::vector<Bindings>> combinations(const PatternText& text) {
  std::vector<Bindings> out{Bindings(text.variables().size())};
  for (size_t i = 0; i < text.variables().size(); ++i) {
    const Variable& variable = text.variables()[i];
    std::vector<Binding> values;
    for (const std::string& choice : variable.choices) {
      int64_t whole = 0;
      std::from_chars(choice.data(), choice.data() + choice.size(), whole);
      if (variable.kind == VariableKind::Type)
        values.emplace_back(*type_from_text(choice));
      else
        values.emplace_back(whole);
    }
    if (variable.kind == VariableKind::Sizes)
      for (int64_t n = 0; n <= kMostListed; ++n) values.emplace_back(std::vector<int64_t>(static_cast<size_t>(n), 1));
    if (values.empty()) continue;
    std::vector<Bindings> longer;
    for (const Bindings& one : out) {
      for (const Binding& value : values) {
        Bindings more = one;
        more[i] = value;
        if (text.violated(more).empty()) longer.push_back(std::move(more));
      }
    }
    out = std::move(longer);
    if (out.size() > kMostCombinations)
      return invalid_argument("line " + std::to_string(text.line()) + ": there are more than " +
                              std::to_string(kMostCombinations) + " combinations of types, choices and ranks");
  }
  if (out.empty())
    return invalid_argument("line " + std::to_string(text.line()) +
                            ": no types, choices and ranks meet the conditions");
  return out;
}

Units any_units(const PatternText& text, const Bindings& combination) {
  Units out(combination.size());
  for (size_t i = 0; i < combination.size(); ++i) {
    const auto* list = std::get_if<std::vector<int64_t>>(&combination[i]);
    out[i].assign(list ? list->size() : text.variables()[i].kind == VariableKind::Size ? 1 : 0, Unit::Any);
  }
  return out;
}

Expected<Bindings> choose(const PatternText& text, Bindings combination, const Units& units, uint64_t seed,
                          bool whole_constants) {
  return Choice(text, std::move(combination), units, seed, whole_constants).find();
}

}  // namespace collet::hlo::patterns
