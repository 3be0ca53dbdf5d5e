// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/print_attributes.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "hlo/base/decimal.h"
#include "hlo/base/float_format.h"
#include "hlo/stablehlo/write.h"

namespace collet::hlo::mlir {
namespace {

// Lists with more elements are written as hexadecimal bytes.
constexpr int64_t kLongestList = 64;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_identifier(std::string_view name, std::string_view more) {
  if (name.empty() || !is_letter(name[0])) return false;
  for (char c : name)
    if (!is_letter(c) && !(c >= '0' && c <= '9') && more.find(c) == std::string_view::npos) return false;
  return true;
}

uint64_t bits_at(std::string_view bytes, size_t offset, size_t width) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + offset, width);
  return bits;
}

std::string hex_bits(uint64_t bits, int width) {
  char buffer[24];
  std::snprintf(buffer, sizeof buffer, "0x%0*llX", (width + 3) / 4, static_cast<unsigned long long>(bits));
  return buffer;
}

/// Returns the text of one number of a real type.
std::string number_text(std::string_view bytes, size_t offset, hlo::Type type) {
  const TypeInfo& info = type_info(type);
  const uint64_t bits = bits_at(bytes, offset, static_cast<size_t>(info.bytes()));
  if (info.kind == Kind::Pred) return bits ? "true" : "false";
  if (info.kind == Kind::Unsigned) return std::to_string(bits);
  if (info.kind == Kind::Signed) {
    const int shift = 64 - info.bits;
    return std::to_string(static_cast<int64_t>(bits << shift) >> shift);
  }
  const double value = decode_float(float_format(static_cast<uint32_t>(type)), bits);
  if (!std::isfinite(value)) return hex_bits(bits, info.bits);
  return float_text(value, type);
}

std::string element_text(std::string_view bytes, size_t index, hlo::Type type) {
  const auto width = static_cast<size_t>(type_info(type).bytes());
  if (!is_complex(type)) return number_text(bytes, index * width, type);
  const hlo::Type part = real_type(type);
  return "(" + number_text(bytes, index * width, part) + "," + number_text(bytes, index * width + width / 2, part) +
         ")";
}

void append_nested(const Attr& dense, hlo::Type type, size_t dim, size_t& next, std::string& out) {
  if (dim == dense.type->dims.size()) {
    out += element_text(dense.bytes, next++, type);
    return;
  }
  out += '[';
  for (int64_t i = 0; i < dense.type->dims[dim]; ++i) {
    if (i) out += ", ";
    append_nested(dense, type, dim + 1, next, out);
  }
  out += ']';
}

std::string list_number(const Attr& list, size_t i) {
  const bool large = list.type && element_type(list.type) == hlo::Type::U64;
  return large ? std::to_string(static_cast<uint64_t>(list.ints[i])) : std::to_string(list.ints[i]);
}

std::string accuracy_text(const Attr& attr) {
  const std::string mode = "#stablehlo.result_accuracy_mode<" + std::string(attr.text) + ">";
  std::string out = "#stablehlo.result_accuracy<";
  if (attr.floats.size() == 2 && (attr.floats[0] != 0 || attr.floats[1] != 0 || attr.integer != 0))
    out += "atol = " + float_text(attr.floats[0], hlo::Type::F64) +
           ", rtol = " + float_text(attr.floats[1], hlo::Type::F64) + ", ulps = " + std::to_string(attr.integer) + ", ";
  return out + "mode = " + mode + ">";
}

std::string alias_text(const Attr& attr) {
  const auto n = static_cast<size_t>(attr.ints.empty() ? 0 : attr.ints[0]);
  std::string output, operand;
  for (size_t i = 1; i <= n && i < attr.ints.size(); ++i) output += (i > 1 ? ", " : "") + std::to_string(attr.ints[i]);
  for (size_t i = n + 2; i < attr.ints.size(); ++i) operand += (i > n + 2 ? ", " : "") + std::to_string(attr.ints[i]);
  return "#stablehlo.output_operand_alias<output_tuple_indices = [" + output +
         "], operand_index = " + std::to_string(n + 1 < attr.ints.size() ? attr.ints[n + 1] : 0) +
         ", operand_tuple_indices = [" + operand + "]>";
}

}  // namespace

std::string string_literal(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte >= 0x7F) {
      char buffer[4];
      std::snprintf(buffer, sizeof buffer, "\\%02X", byte);
      out += buffer;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string symbol_text(std::string_view name) {
  return "@" + (is_identifier(name, "$.") ? std::string(name) : string_literal(name));
}

std::string key_text(std::string_view name) {
  return is_identifier(name, "$.") ? std::string(name) : string_literal(name);
}

std::string float_text(double value, hlo::Type type) {
  if (!std::isfinite(value)) {
    const int width = type_info(type).bits;
    return hex_bits(encode_float(float_format(static_cast<uint32_t>(type)), value), width);
  }
  char buffer[40];
  char* const limit = buffer + sizeof buffer;
  constexpr auto kForm = std::chars_format::scientific;
  const auto single = static_cast<float>(value);
  auto end =
      type == hlo::Type::F64 ? std::to_chars(buffer, limit, value, kForm) : std::to_chars(buffer, limit, single, kForm);
  // Readers round to f64 first, then to f32: if that gives another value, more digits are written.
  const auto read = decimal_value({buffer, static_cast<size_t>(end.ptr - buffer)});
  if (type != hlo::Type::F64 && static_cast<float>(*read) != single)
    end = std::to_chars(buffer, limit, value, kForm, 8);
  std::string out(buffer, end.ptr);
  // MLIR requires a decimal point in floats.
  if (out.find('.') == std::string::npos) out.insert(out.find('e'), ".0");
  return out;
}

std::string ints_text(List<const int64_t> values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) out += (i ? ", " : "") + std::to_string(values[i]);
  return out + "]";
}

std::string dense_text(const Attr& dense) {
  const hlo::Type type = element_type(dense.type->element);
  const int64_t count = element_count(dense.type);
  std::string out = "dense<";
  if (count == 0) return out + ">";
  if (dense.splat) return out + element_text(dense.bytes, 0, type) + ">";
  if (count > kLongestList && type_info(type).bits >= 8 && type != hlo::Type::PRED) {
    static constexpr char kDigits[] = "0123456789ABCDEF";
    out += "\"0x";
    for (char c : dense.bytes) {
      out += kDigits[static_cast<unsigned char>(c) >> 4];
      out += kDigits[c & 15];
    }
    return out + "\">";
  }
  size_t next = 0;
  append_nested(dense, type, 0, next, out);
  return out + ">";
}

std::string attr_to_string(AttrRef attr) {
  if (!attr) return "unit";
  switch (attr->kind) {
    case Attr::Kind::Unit:
      return "unit";
    case Attr::Kind::Bool:
      return attr->integer ? "true" : "false";
    case Attr::Kind::Int:
      if (element_type(attr->type) == hlo::Type::U64)
        return std::to_string(static_cast<uint64_t>(attr->integer)) + " : ui64";
      return std::to_string(attr->integer) + " : " + (attr->type ? to_string(attr->type) : "i64");
    case Attr::Kind::Float: {
      const hlo::Type type = attr->type ? element_type(attr->type) : hlo::Type::F64;
      return float_text(attr->number, is_float(type) ? type : hlo::Type::F64) + " : " +
             (attr->type ? to_string(attr->type) : "f64");
    }
    case Attr::Kind::String:
      return string_literal(attr->text);
    case Attr::Kind::Symbol:
      return symbol_text(attr->text);
    case Attr::Kind::Array: {
      std::string out = "[";
      for (size_t i = 0; i < attr->items.size(); ++i) out += (i ? ", " : "") + attr_to_string(attr->items[i]);
      return out + "]";
    }
    case Attr::Kind::Dict: {
      std::string out = "{";
      for (size_t i = 0; i < attr->fields.size(); ++i) {
        const NamedAttr& f = attr->fields[i];
        out += (i ? ", " : "") + key_text(f.name);
        if (f.value && f.value->kind != Attr::Kind::Unit) out += " = " + attr_to_string(f.value);
      }
      return out + "}";
    }
    case Attr::Kind::Type:
      return to_string(attr->type);
    case Attr::Kind::Ints: {
      if (attr->dims.size() > 1) {
        // A table: its rows.
        const auto rows = static_cast<size_t>(attr->dims[0]), columns = static_cast<size_t>(attr->dims[1]);
        const std::string element = attr->type ? to_string(attr->type) : "i64";
        const std::string type =
            " : tensor<" + std::to_string(rows) + "x" + std::to_string(columns) + "x" + element + ">";
        if (attr->ints.empty() || rows * columns != attr->ints.size()) return "dense<>" + type;
        std::string out = "dense<[";
        for (size_t i = 0; i < rows; ++i) {
          out += i ? ", [" : "[";
          for (size_t j = 0; j < columns; ++j) out += (j ? ", " : "") + list_number(*attr, i * columns + j);
          out += "]";
        }
        return out + "]>" + type;
      }
      std::string out = "array<" + (attr->type ? to_string(attr->type) : std::string("i64"));
      for (size_t i = 0; i < attr->ints.size(); ++i) out += (i ? ", " : ": ") + list_number(*attr, i);
      return out + ">";
    }
    case Attr::Kind::Bools: {
      std::string out = "array<i1";
      for (size_t i = 0; i < attr->ints.size(); ++i)
        out += (i ? ", " : ": ") + std::string(attr->ints[i] ? "true" : "false");
      return out + ">";
    }
    case Attr::Kind::Dense:
      return dense_text(*attr) + " : " + to_string(attr->type);
    case Attr::Kind::Alias:
      return alias_text(*attr);
    case Attr::Kind::Accuracy:
      return accuracy_text(*attr);
    case Attr::Kind::Location:
      return "loc(unknown)";
    case Attr::Kind::Enum:
    case Attr::Kind::Raw:
      return std::string(attr->text);
  }
  return "unit";
}

}  // namespace collet::hlo::mlir
