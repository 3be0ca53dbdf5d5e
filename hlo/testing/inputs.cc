// SPDX-License-Identifier: Apache-2.0
#include "hlo/testing/inputs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

namespace collet::hlo::testing {
namespace {

// Types narrower than f32 are rounded twice, because the rule is defined so.
double by_way_of_f32(Type type, double value) {
  return type_info(real_type(type)).bits < 32 ? static_cast<double>(static_cast<float>(value)) : value;
}

void set_float(Literal& value, int64_t i, double real, double imaginary) {
  value.set_double(i, by_way_of_f32(value.type(), real), imaginary);
}

void set_by_type(Literal& value, int64_t i, uint64_t x) {
  const Type type = value.type();
  const int bits = type_info(type).bits;
  if (type == Type::PRED) {
    value.set_int(i, static_cast<int64_t>(x >> 63));
  } else if (is_signed(type)) {
    const uint64_t modulo = bits <= 2 ? 3 : 9;
    value.set_int(i, static_cast<int64_t>((x >> 33) % modulo) - static_cast<int64_t>(modulo / 2));
  } else if (is_unsigned(type)) {
    value.set_int(i, static_cast<int64_t>((x >> 33) % (bits <= 2 ? 4 : 9)));
  } else {
    set_float(value, i, unit(x), is_complex(type) ? unit(mix(x)) : 0);
  }
}

void set_integer(Literal& value, int64_t i, const InputRule& rule, uint64_t x) {
  const auto drawn = static_cast<int64_t>((x >> 33) % static_cast<uint64_t>(rule.modulo)) + rule.low;
  if (is_integer(value.type()) || value.type() == Type::PRED) {
    value.set_int(i, drawn);
  } else {
    value.set_double(i, static_cast<double>(drawn));
  }
}

void fill(Literal& value, const InputRule& rule, uint64_t parameter) {
  for (int64_t i = 0; i < value.element_count(); ++i) {
    const uint64_t x = mix((parameter << 40) ^ static_cast<uint64_t>(i));
    switch (rule.kind) {
      case InputRule::Kind::ByType:
        set_by_type(value, i, x);
        break;
      case InputRule::Kind::Unit:
        set_float(value, i, rule.offset + rule.scale * unit(x),
                  is_complex(value.type()) ? rule.scale * unit(mix(x)) : 0);
        break;
      case InputRule::Kind::Integer:
        set_integer(value, i, rule, x);
        break;
      case InputRule::Kind::Bit:
        value.set_int(i, static_cast<int64_t>(x >> 63));
        break;
    }
  }
}

Literal filled(const InputRule& rule, const Shape& shape, uint64_t& parameter) {
  if (shape.is_tuple()) {
    std::vector<Literal> elements;
    for (const Shape& element : shape.elements()) elements.push_back(filled(rule, element, parameter));
    return Literal::tuple(std::move(elements));
  }
  Literal value = Literal::zeros(shape);
  if (shape.is_array()) fill(value, rule, parameter);
  ++parameter;
  return value;
}

}  // namespace

double unit(uint64_t x) {
  return std::ldexp(static_cast<double>(x >> 40), -23) - 1;
}

Literal input_by_rule(const InputRule& rule, const Shape& shape, uint64_t parameter) {
  return filled(rule, shape, parameter);
}

std::vector<Literal> inputs_by_type(const std::vector<Shape>& shapes, uint64_t first) {
  std::vector<Literal> inputs;
  uint64_t parameter = first;
  for (const Shape& shape : shapes) inputs.push_back(filled({}, shape, parameter));
  return inputs;
}

InputRule rule_of_stored(const Shape& shape) {
  if (!shape.is_array() || (shape.type() != Type::S8 && shape.type() != Type::U8)) return {};
  return {.kind = InputRule::Kind::Integer, .modulo = 256, .low = shape.type() == Type::S8 ? -128 : 0};
}

Literal converted(const Literal& value, const Shape& shape) {
  if (value.type() == shape.type()) return value;
  Literal result = Literal::zeros(shape);
  for (int64_t i = 0; i < value.element_count(); ++i) result.set_double(i, value.as_double(i), value.imaginary(i));
  return result;
}

Expected<Shape> plain_shape(std::string_view text) {
  const size_t open = text.find('[');
  const std::optional<Type> type = type_from_text(text.substr(0, open));
  if (open == std::string_view::npos || !text.ends_with(']') || !type) {
    return invalid_argument("'" + std::string(text) + "' is no shape such as f32[2,3]");
  }
  std::vector<int64_t> dims;
  std::string_view rest = text.substr(open + 1, text.size() - open - 2);
  while (!rest.empty()) {
    int64_t dim = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), dim);
    const auto used = static_cast<size_t>(end - rest.data());
    if (error != std::errc() || dim < 0 || (used < rest.size() && rest[used] != ',')) {
      return invalid_argument("'" + std::string(text) + "' is no shape such as f32[2,3]");
    }
    dims.push_back(dim);
    rest.remove_prefix(std::min(used + 1, rest.size()));
  }
  return Shape::array(*type, dims);
}

}  // namespace collet::hlo::testing
