// SPDX-License-Identifier: Apache-2.0
#include "hlo/ir/literal.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "hlo/base/float_format.h"
#include "hlo/base/hash.h"
#include "hlo/base/no_memory.h"

namespace collet::hlo {
namespace {

constexpr size_t kAlignment = 64;

std::shared_ptr<uint8_t> allocate(int64_t bytes) {
  const size_t size = (static_cast<size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
  auto* data = static_cast<uint8_t*>(std::aligned_alloc(kAlignment, size ? size : kAlignment));
  if (!data) throw NoMemory(size);
  return {data, [](uint8_t* p) { std::free(p); }};
}

// Fresh pages from the operating system are zero, so large arrays of zeros use no memory until they are written.
std::shared_ptr<uint8_t> allocate_zeros(int64_t bytes) {
  constexpr int64_t kLarge = int64_t{1} << 20;
  if (bytes < kLarge) {
    auto data = allocate(bytes);
    std::memset(data.get(), 0, static_cast<size_t>(bytes));
    return data;
  }
  void* block = std::calloc(static_cast<size_t>(bytes) + kAlignment, 1);
  if (!block) throw NoMemory(static_cast<uint64_t>(bytes));
  const auto at = (reinterpret_cast<uintptr_t>(block) + kAlignment - 1) / kAlignment * kAlignment;
  return {reinterpret_cast<uint8_t*>(at), [block](uint8_t*) { std::free(block); }};
}

int64_t sign_extend(uint64_t bits, int width) {
  if (width >= 64) return static_cast<int64_t>(bits);
  const uint64_t sign = uint64_t{1} << (width - 1);
  bits &= (uint64_t{1} << width) - 1;
  return static_cast<int64_t>((bits ^ sign) - sign);
}

uint64_t load(const uint8_t* p, int bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, p, static_cast<size_t>(bytes));
  return bits;
}

}  // namespace

Literal Literal::uninitialized(const Shape& shape) {
  Literal out;
  out.shape_ = shape;
  if (shape.is_tuple()) {
    for (const Shape& element : shape.elements()) out.elements_.push_back(uninitialized(element));
    return out;
  }
  out.data_ = allocate(shape.byte_size());
  return out;
}

Literal Literal::zeros(const Shape& shape) {
  Literal out;
  out.shape_ = shape;
  if (shape.is_tuple()) {
    for (const Shape& element : shape.elements()) out.elements_.push_back(zeros(element));
    return out;
  }
  out.data_ = allocate_zeros(shape.byte_size());
  return out;
}

Literal Literal::from_bytes(const Shape& shape, const void* bytes) {
  Literal out;
  out.shape_ = shape;
  out.data_ = allocate(shape.byte_size());
  if (shape.byte_size()) std::memcpy(out.data_.get(), bytes, static_cast<size_t>(shape.byte_size()));
  return out;
}

Literal Literal::borrow(const Shape& shape, const void* bytes, std::shared_ptr<const void> owner) {
  Literal out;
  out.shape_ = shape;
  auto* data = const_cast<uint8_t*>(static_cast<const uint8_t*>(bytes));
  out.data_ = std::shared_ptr<uint8_t>(data, [owner = std::move(owner)](uint8_t*) {});
  out.borrowed_ = true;
  return out;
}

Literal Literal::tuple(std::vector<Literal> elements) {
  Literal out;
  std::vector<Shape> shapes;
  for (const Literal& element : elements) shapes.push_back(element.shape());
  out.shape_ = Shape::tuple(std::move(shapes));
  out.elements_ = std::move(elements);
  return out;
}

Literal Literal::scalar(Type type, double value) {
  Literal out = zeros(Shape::scalar(type));
  out.set_double(0, value);
  return out;
}

Literal Literal::scalar_int(Type type, int64_t value) {
  Literal out = zeros(Shape::scalar(type));
  out.set_int(0, value);
  return out;
}

Literal Literal::ints(std::span<const int64_t> values) {
  return from_bytes(Shape::array(Type::S64, {static_cast<int64_t>(values.size())}), values.data());
}

uint8_t* Literal::mutable_bytes() {
  if (data_ && (borrowed_ || data_.use_count() > 1)) {
    auto copy = allocate(byte_size());
    if (byte_size()) std::memcpy(copy.get(), data_.get(), static_cast<size_t>(byte_size()));
    data_ = std::move(copy);
    borrowed_ = false;
  }
  return data_.get();
}

Literal Literal::reshaped(const Shape& shape) const {
  Literal out = *this;
  out.shape_ = shape;
  out.dynamic_sizes_.clear();
  return out;
}

double Literal::as_double(int64_t i) const {
  const TypeInfo& info = type_info(type());
  const uint8_t* p = data_.get() + i * info.bytes();
  switch (info.kind) {
    case Kind::Pred:
      return *p != 0;
    case Kind::Signed:
    case Kind::Unsigned:
      if (type() == Type::U64) return static_cast<double>(load(p, 8));
      return static_cast<double>(as_int(i));
    case Kind::Float:
      return decode_float(float_format(static_cast<uint32_t>(type())), load(p, info.bytes()));
    case Kind::Complex:
      if (type() == Type::C64) return std::bit_cast<float>(static_cast<uint32_t>(load(p, 4)));
      return std::bit_cast<double>(load(p, 8));
    case Kind::Opaque:
      break;
  }
  return 0;
}

double Literal::imaginary(int64_t i) const {
  if (type() == Type::C64) return std::bit_cast<float>(static_cast<uint32_t>(load(data_.get() + i * 8 + 4, 4)));
  if (type() == Type::C128) return std::bit_cast<double>(load(data_.get() + i * 16 + 8, 8));
  return 0;
}

int64_t Literal::as_int(int64_t i) const {
  const TypeInfo& info = type_info(type());
  const uint8_t* p = data_.get() + i * info.bytes();
  switch (info.kind) {
    case Kind::Pred:
      return *p != 0;
    case Kind::Signed:
      return sign_extend(load(p, info.bytes()), info.bits);
    case Kind::Unsigned: {
      const uint64_t bits = load(p, info.bytes());
      return static_cast<int64_t>(info.bits < 8 ? bits & ((1u << info.bits) - 1) : bits);
    }
    default: {
      const double v = as_double(i);
      if (!(v > -9.2233720368547758e18)) return v < 0 ? INT64_MIN : 0;
      return v >= 9.2233720368547758e18 ? INT64_MAX : static_cast<int64_t>(v);
    }
  }
}

void Literal::set_double(int64_t i, double value, double imaginary) {
  const TypeInfo& info = type_info(type());
  uint8_t* p = mutable_bytes() + i * info.bytes();
  switch (info.kind) {
    case Kind::Pred:
      *p = value != 0;
      return;
    case Kind::Signed:
    case Kind::Unsigned: {
      // Converts through a 64-bit integer, so that integers wrap around. NaN becomes 0, and numbers out of range become
      // the nearest 64-bit integer.
      int64_t wide = INT64_MIN;
      if (std::isnan(value))
        wide = 0;
      else if (value >= 18446744073709551616.0)
        wide = -1;
      else if (value >= 9223372036854775808.0)
        wide = static_cast<int64_t>(static_cast<uint64_t>(value));
      else if (value > -9223372036854775808.0)
        wide = static_cast<int64_t>(value);
      set_int(i, wide);
      return;
    }
    case Kind::Float: {
      const uint64_t bits = encode_float(float_format(static_cast<uint32_t>(type())), value);
      std::memcpy(p, &bits, static_cast<size_t>(info.bytes()));
      return;
    }
    case Kind::Complex:
      if (type() == Type::C64) {
        const float parts[2] = {static_cast<float>(value), static_cast<float>(imaginary)};
        std::memcpy(p, parts, sizeof parts);
      } else {
        const double parts[2] = {value, imaginary};
        std::memcpy(p, parts, sizeof parts);
      }
      return;
    case Kind::Opaque:
      return;
  }
}

void Literal::set_int(int64_t i, int64_t value) {
  const TypeInfo& info = type_info(type());
  switch (info.kind) {
    case Kind::Pred:
      mutable_bytes()[i] = value != 0;
      return;
    case Kind::Signed:
      if (info.bits < 8) value = sign_extend(static_cast<uint64_t>(value), info.bits);
      break;
    case Kind::Unsigned:
      if (info.bits < 8) value &= (1 << info.bits) - 1;
      break;
    default:
      set_double(i, static_cast<double>(value));
      return;
  }
  std::memcpy(mutable_bytes() + i * info.bytes(), &value, static_cast<size_t>(info.bytes()));
}

bool Literal::operator==(const Literal& o) const {
  if (!shape_.same_without_layout(o.shape_)) return false;
  if (shape_.is_tuple()) return elements_ == o.elements_;
  if (dynamic_sizes_ != o.dynamic_sizes_) return false;
  if (data_ == o.data_) return true;
  return byte_size() == 0 || std::memcmp(data_.get(), o.data_.get(), static_cast<size_t>(byte_size())) == 0;
}

bool Literal::is_splat() const {
  const int64_t n = element_count();
  const auto bytes = static_cast<size_t>(type_info(type()).bytes());
  if (shape_.is_tuple() || n < 1) return false;
  if (n == 1) return true;
  return std::memcmp(data_.get(), data_.get() + bytes, static_cast<size_t>(n - 1) * bytes) == 0;
}

uint64_t Literal::hash() const {
  auto h = static_cast<uint64_t>(type());
  for (const Literal& element : elements_) h = collet_hash_number(h, element.hash());
  for (int64_t d : shape_.dims()) h = collet_hash_number(h, static_cast<uint64_t>(d));
  return data_ ? collet_hash_bytes(h, data_.get(), static_cast<size_t>(byte_size())) : h;
}

}  // namespace collet::hlo
