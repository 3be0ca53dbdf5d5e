// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include "hlo/base/float_format.h"
#include "hlo/text/printer.h"
#include "hlo/text/writer.h"

namespace collet::hlo::text {
namespace {

constexpr int64_t kSmall = 10;  // most elements of a literal that is printed where large ones are left out

double parse_real(const char* begin, const char* end) {
  double value = 0;
  std::from_chars(begin, end, value);
  return value;
}

// Integral values from this one on are written with an exponent. Smaller ones are exact in an f64 and fit 64 bits.
constexpr double kNeedsExponent = 1e15;

struct RealText {
  char buffer[40];
  char* end;
};

template <typename T>
RealText shortest(T value) {
  RealText t;
  t.end = std::fabs(value) >= T(kNeedsExponent)
              ? std::to_chars(t.buffer, t.buffer + sizeof t.buffer, value, std::chars_format::scientific).ptr
              : std::to_chars(t.buffer, t.buffer + sizeof t.buffer, value).ptr;
  return t;
}

RealText rounded(double value, int digits) {
  RealText t;
  const auto form = std::fabs(value) >= kNeedsExponent ? std::chars_format::scientific : std::chars_format::general;
  const int precision = form == std::chars_format::scientific ? digits - 1 : digits;
  t.end = std::to_chars(t.buffer, t.buffer + sizeof t.buffer, value, form, precision).ptr;
  return t;
}

void write_nan(std::string& out, const FloatFormat& format, uint64_t bits) {
  const bool negative = format.specials != FloatSpecials::E8M0 && format.specials != FloatSpecials::FNUZ &&
                        (bits >> (format.bits() - 1) & 1);
  out += negative ? "-nan" : "nan";
  if (format.specials != FloatSpecials::IEEE) return;
  const uint64_t payload = bits & ((uint64_t{1} << format.mantissa_bits) - 1);
  if (payload == uint64_t{1} << (format.mantissa_bits - 1)) return;
  char buffer[20];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, payload, 16).ptr;
  out += "(0x";
  out.append(buffer, static_cast<size_t>(end - buffer));
  out += ')';
}

void write_float(std::string& out, Type type, const FloatFormat& format, uint64_t bits) {
  const double value = decode_float(format, bits);
  if (std::isnan(value)) return write_nan(out, format, bits);
  if (type == Type::F64 || type == Type::F32 || std::isinf(value) || value == std::floor(value))
    return write_real(out, value, type == Type::F32);
  for (int digits = 1;; ++digits) {
    const RealText t = rounded(value, digits);
    if (digits < 17 && encode_float(format, parse_real(t.buffer, t.end)) != bits) continue;
    out.append(t.buffer, static_cast<size_t>(t.end - t.buffer));
    return;
  }
}

uint64_t load(const uint8_t* p, int bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, p, static_cast<size_t>(bytes));
  return bits;
}

class ArrayWriter {
 public:
  ArrayWriter(std::string& out, const Literal& literal)
      : out_(out),
        literal_(literal),
        shape_(literal.shape()),
        info_(type_info(shape_.type())),
        part_(real_type(shape_.type())),
        format_(float_format(static_cast<uint32_t>(part_))) {}

  void dimension(int d) {
    if (d == shape_.rank()) return element();
    const int64_t size = shape_.dim(d);
    const bool spaced = shape_.rank() > 1;
    out_ += '{';
    if (spaced) out_ += ' ';
    for (int64_t i = 0; i < size; ++i) {
      if (i) out_ += ", ";
      if (shape_.rank() > 3 && d + 1 < shape_.rank()) index(d, i);
      dimension(d + 1);
    }
    if (spaced) out_ += ' ';
    out_ += '}';
  }

 private:
  void index(int d, int64_t i) {
    out_ += "/*i";
    write(out_, d);
    out_ += '=';
    write(out_, i);
    out_ += "*/";
  }

  void element() {
    const int64_t i = next_++;
    switch (info_.kind) {
      case Kind::Pred:
        if (shape_.rank() == 0)
          out_ += literal_.bytes()[0] ? "true" : "false";
        else
          out_ += literal_.bytes()[i] ? '1' : '0';
        return;
      case Kind::Signed:
        return write(out_, literal_.as_int(i));
      case Kind::Unsigned: {
        char buffer[24];
        const auto end = std::to_chars(buffer, buffer + sizeof buffer, static_cast<uint64_t>(literal_.as_int(i))).ptr;
        out_.append(buffer, static_cast<size_t>(end - buffer));
        return;
      }
      case Kind::Float:
        return write_float(out_, part_, format_, load(literal_.bytes() + i * info_.bytes(), info_.bytes()));
      case Kind::Complex: {
        const int half = info_.bytes() / 2;
        const uint8_t* p = literal_.bytes() + i * info_.bytes();
        out_ += '(';
        write_float(out_, part_, format_, load(p, half));
        out_ += ", ";
        write_float(out_, part_, format_, load(p + half, half));
        out_ += ')';
        return;
      }
      case Kind::Opaque:
        return;
    }
  }

  std::string& out_;
  const Literal& literal_;
  const Shape& shape_;
  const TypeInfo& info_;
  const Type part_;
  const FloatFormat format_;
  int64_t next_ = 0;
};

// For an array without elements: true if its dimensions before the first of size 0 would need more than 10,000 braces.
bool has_many_braces(const Shape& shape) {
  int64_t braces = 1;
  for (int64_t d : shape.dims()) {
    if (d == 0) break;
    if (__builtin_mul_overflow(braces, d, &braces) || braces > 10000) return true;
  }
  return false;
}

}  // namespace

void write_real(std::string& out, double value, bool single) {
  if (std::isnan(value)) {
    out += std::signbit(value) ? "-nan" : "nan";
    return;
  }
  if (std::isinf(value)) {
    out += value < 0 ? "-inf" : "inf";
    return;
  }
  if (value == 0 && std::signbit(value)) {
    out += "-0.0";  // XLA reads -0 as an integer, which has no sign
    return;
  }
  RealText t = single ? shortest(static_cast<float>(value)) : shortest(value);
  // Readers round to f64 first, then to f32: if that gives another value, more digits are written.
  if (single && static_cast<float>(parse_real(t.buffer, t.end)) != static_cast<float>(value)) t = rounded(value, 9);
  out.append(t.buffer, static_cast<size_t>(t.end - t.buffer));
}

void write_literal(std::string& out, const Literal& literal, bool large, bool shaped, bool layouts) {
  const Shape& shape = literal.shape();
  if (shape.is_tuple()) {
    if (!large && !shaped) {
      out += "{...}";
      return;
    }
    out += '(';
    for (size_t i = 0; i < literal.elements().size(); ++i) {
      if (i) out += ", ";
      write_literal(out, literal.element(i), large, shaped, layouts);
    }
    out += ')';
    return;
  }
  if (shaped) {
    write_shape(out, shape, layouts);
    // Without a layout in the shape, the braces of the value would be read as one.
    if (shape.rank() > 0 && !(layouts && shape.layout())) {
      out += '{';
      for (int i = shape.rank(); i-- > 0;) {
        write(out, i);
        if (i) out += ',';
      }
      out += '}';
    }
    out += ' ';
  }
  const int64_t count = shape.element_count();
  if ((!large && count > kSmall) || (count == 0 && has_many_braces(shape))) {
    out += "{...}";
    return;
  }
  ArrayWriter(out, literal).dimension(0);
}

}  // namespace collet::hlo::text

namespace collet::hlo {

std::string print_literal(const Literal& literal, bool large) {
  std::string out;
  text::write_literal(out, literal, large, literal.shape().is_tuple());
  return out;
}

}  // namespace collet::hlo
