// SPDX-License-Identifier: Apache-2.0
#include "conformance/oracle/operand_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "conformance/oracle/bounds.h"

namespace collet::conformance {
namespace {

using hlo::Literal;
using hlo::Type;

// Of fewer elements many properties hold by chance, such as that one operand is larger than the other.
constexpr size_t kFewestElements = 4;
// A property is only reported if at most this share of the correct elements has it, and at most this number of correct
// elements per wrong element.
constexpr double kMostOfRight = 0.25, kMostForEachWrong = 0.5;

struct Property {
  std::string text;
  std::function<bool(int64_t)> holds;
  size_t right = 0;  // number of correct elements that have the property
};

class Search {
 public:
  Search(std::span<const Literal> operands, std::span<const int64_t> bad) : operands_(operands), bad_(bad) {
    const int64_t count = operands[0].element_count();
    size_t next = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (next < bad.size() && bad[next] == i) {
        ++next;
      } else {
        good_.push_back(i);
      }
    }
  }

  std::string result() {
    for (size_t k = 0; k < operands_.size(); ++k) add_properties(k);
    if (operands_.size() > 1 && !good_.empty()) {
      add_of_any();
      add_relations();
    }
    if (properties_.empty() || good_.empty()) return {};
    std::stable_sort(properties_.begin(), properties_.end(),
                     [](const Property& a, const Property& b) { return a.right < b.right; });
    const Property& first = properties_.front();
    const auto most = static_cast<size_t>(std::max(kMostOfRight * static_cast<double>(good_.size()),
                                                   kMostForEachWrong * static_cast<double>(bad_.size())));
    // A second property is added if it excludes at least half of the remaining correct elements.
    const Property* second = nullptr;
    size_t left = first.right;
    for (const Property& other : properties_) {
      const size_t both = count_right([&](int64_t i) { return first.holds(i) && other.holds(i); });
      if (2 * both < first.right && both < left) {
        second = &other;
        left = both;
      }
    }
    if (left > most) return {};
    return first.text + (second != nullptr ? " and " + second->text : "") +
           (left > 0 ? fmt::format(" (so it is at {} right ones)", left) : "");
  }

 private:
  size_t count_right(const std::function<bool(int64_t)>& holds) const {
    return static_cast<size_t>(std::count_if(good_.begin(), good_.end(), holds));
  }

  // Keeps a property that all wrong elements have.
  void add(std::string text, std::function<bool(int64_t)> holds) {
    if (!std::all_of(bad_.begin(), bad_.end(), holds)) return;
    const size_t right = count_right(holds);
    if (right < good_.size()) properties_.push_back({std::move(text), std::move(holds), right});
  }

  void add_properties(size_t k) {
    const Literal& value = operands_[k];
    const Type type = value.type();
    const std::string name = fmt::format("p{} ", k);
    if (type == Type::PRED) {
      add(name + "is true", [&value](int64_t i) { return value.as_int(i) != 0; });
      add(name + "is false", [&value](int64_t i) { return value.as_int(i) == 0; });
    } else if (hlo::is_integer(type)) {
      add_integer(value, name);
    } else if (hlo::is_float(type)) {
      add_float(value, name);
    }
  }

  void add_integer(const Literal& value, const std::string& name) {
    const int bits = hlo::type_info(value.type()).bits;
    const uint64_t mask = ~uint64_t{0} >> (64 - bits), top = uint64_t{1} << (bits - 1);
    const bool has_sign = hlo::is_signed(value.type());
    const auto raw = [&value, mask](int64_t i) { return static_cast<uint64_t>(value.as_int(i)) & mask; };
    const auto is = [raw](uint64_t number) { return [raw, number](int64_t i) { return raw(i) == number; }; };
    add(name + "is zero", is(0));
    add(name + "is -1", has_sign ? std::function<bool(int64_t)>(is(mask)) : [](int64_t) { return false; });
    add(name + "is the least number", is(has_sign ? top : 0));
    add(name + "is the greatest number", is(has_sign ? top - 1 : mask));
    add(has_sign ? name + "is negative" : name + "has its highest bit set",
        [raw, top](int64_t i) { return (raw(i) & top) != 0; });
    add(fmt::format("{}is negative or at least {}", name, bits),
        [raw, bits](int64_t i) { return raw(i) >= static_cast<uint64_t>(bits); });
    add_range(name, [&value](int64_t i) { return std::fabs(static_cast<double>(value.as_int(i))); });
  }

  void add_float(const Literal& value, const std::string& name) {
    const auto at = [&value](int64_t i) { return value.as_double(i); };
    const double least = ulp_at(value.type(), 0) / (2 * unit_roundoff(value.type()));
    add(name + "is NaN", [at](int64_t i) { return std::isnan(at(i)); });
    add(name + "is infinite", [at](int64_t i) { return std::isinf(at(i)); });
    add(name + "is -0", [at](int64_t i) { return at(i) == 0 && std::signbit(at(i)); });
    add(name + "is zero", [at](int64_t i) { return at(i) == 0; });
    add(name + "is denormal", [at, least](int64_t i) { return at(i) != 0 && std::fabs(at(i)) < least; });
    add(name + "lies halfway between whole numbers",
        [at](int64_t i) { return std::fabs(at(i)) < 1e15 && std::fabs(at(i) - std::trunc(at(i))) == 0.5; });
    add(name + "is negative", [at](int64_t i) { return std::signbit(at(i)) && !std::isnan(at(i)); });
    add(name + "is no whole number", [at](int64_t i) { return std::isfinite(at(i)) && at(i) != std::trunc(at(i)); });
    add_range(name, [at](int64_t i) { return std::fabs(at(i)); });
  }

  // Adds the range of sizes at which elements are wrong: from the least one on, or up to the greatest.
  void add_range(const std::string& name, const std::function<double(int64_t)>& size) {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (const int64_t i : bad_) {
      if (std::isnan(size(i))) return;
      least = std::min(least, size(i));
      most = std::max(most, size(i));
    }
    add(fmt::format("|{}| is at least {:.9g}", name.substr(0, name.size() - 1), least),
        [size, least](int64_t i) { return size(i) >= least; });
    add(fmt::format("|{}| is at most {:.9g}", name.substr(0, name.size() - 1), most),
        [size, most](int64_t i) { return size(i) <= most; });
  }

  // Adds properties that hold if any operand has them.
  void add_of_any() {
    const auto any = [&](auto holds) {
      return [this, holds](int64_t i) {
        return std::any_of(operands_.begin(), operands_.end(), [&](const Literal& value) {
          return hlo::is_float(value.type()) && holds(value.as_double(i));
        });
      };
    };
    add("an operand is NaN", any([](double x) { return std::isnan(x); }));
    add("an operand is infinite", any([](double x) { return std::isinf(x); }));
    add("an operand is zero", any([](double x) { return x == 0; }));
  }

  void add_relations() {
    const Literal &a = operands_[operands_.size() - 2], &b = operands_.back();
    if (a.type() != b.type() || hlo::is_complex(a.type())) return;
    const std::string x = fmt::format("p{}", operands_.size() - 2), y = fmt::format("p{}", operands_.size() - 1);
    const bool is_float = hlo::is_float(a.type());
    const auto less = [is_float](const Literal& p, const Literal& q, int64_t i) {
      return is_float ? p.as_double(i) < q.as_double(i) : p.as_int(i) < q.as_int(i);
    };
    add(x + " equals " + y, [&a, &b, is_float](int64_t i) {
      return is_float ? a.as_double(i) == b.as_double(i) : a.as_int(i) == b.as_int(i);
    });
    add(x + " is less than " + y, [&a, &b, less](int64_t i) { return less(a, b, i); });
    add(x + " is greater than " + y, [&a, &b, less](int64_t i) { return less(b, a, i); });
  }

  std::span<const Literal> operands_;
  std::span<const int64_t> bad_;
  std::vector<int64_t> good_;
  std::vector<Property> properties_;
};

}  // namespace

std::string describe_operands(std::span<const Literal> operands, std::span<const int64_t> bad) {
  if (operands.empty() || bad.empty()) return {};
  for (const Literal& operand : operands)
    if (operand.element_count() != operands[0].element_count()) return {};
  if (static_cast<size_t>(operands[0].element_count()) < kFewestElements) return {};
  return Search(operands, bad).result();
}

}  // namespace collet::conformance
