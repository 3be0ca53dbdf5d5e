// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "hlo/proto/wire.h"

namespace collet::hlo::proto {
namespace {

// Calls visit(i, j) for every element: i is its number in the layout's order, j in row-major order.
template <typename Visit>
void for_each_element(const Shape& shape, Visit visit) {
  const int64_t count = shape.element_count();
  const Layout* layout = shape.layout();
  const auto rank = static_cast<size_t>(shape.rank());
  bool row_major = true;
  for (size_t i = 0; layout && i < rank; ++i)
    row_major = row_major && layout->minor_to_major[i] == static_cast<int64_t>(rank - 1 - i);
  if (row_major) {
    for (int64_t i = 0; i < count; ++i) visit(i, i);
    return;
  }
  std::vector<int64_t> stride(rank, 1), index(rank, 0);
  for (size_t i = rank; i-- > 1;) stride[i - 1] = stride[i] * shape.dim(static_cast<int>(i));
  int64_t at = 0;
  for (int64_t i = 0; i < count; ++i) {
    visit(i, at);
    for (int64_t d : layout->minor_to_major) {
      const auto k = static_cast<size_t>(d);
      at += stride[k];
      if (++index[k] < shape.dim(static_cast<int>(d))) break;
      at -= stride[k] * index[k];
      index[k] = 0;
    }
  }
}

Status wrong_count(const Shape& shape, std::string_view field, int64_t count) {
  return invalid_argument("a literal of shape " + shape.to_string() + " has " + std::to_string(count) +
                          " elements in field '" + std::string(field) + "s'");
}

template <typename T, typename Field>
Status read_list(const Field& field, int64_t per_element, Literal& out) {
  const Shape& shape = out.shape();
  const int64_t count = shape.element_count();
  if (field.size() % per_element || field.size() / per_element != count)
    return wrong_count(shape, type_info(shape.type()).text, field.size() / per_element);
  out = Literal::uninitialized(shape);
  T* to = out.mutable_data<T>();
  for_each_element(shape, [&](int64_t i, int64_t j) {
    for (int64_t k = 0; k < per_element; ++k)
      to[j * per_element + k] = static_cast<T>(field[static_cast<int>(i * per_element + k)]);
  });
  return ok_status();
}

template <typename T, typename Field>
void write_list(const Literal& in, int64_t per_element, Field* field) {
  const T* from = in.data<T>();
  field->Reserve(static_cast<int>(in.element_count() * per_element));
  for_each_element(in.shape(), [&](int64_t, int64_t j) {
    for (int64_t k = 0; k < per_element; ++k)
      field->Add(static_cast<std::decay_t<decltype((*field)[0])>>(from[j * per_element + k]));
  });
}

// Sub-byte elements use one byte each in the message as well, but without sign extension.
uint8_t narrowed(uint8_t byte, const TypeInfo& info) {
  const auto mask = static_cast<uint8_t>((1u << info.bits) - 1);
  return byte & mask;
}

uint8_t widened(uint8_t byte, const TypeInfo& info) {
  byte = narrowed(byte, info);
  const auto sign = static_cast<uint8_t>(1u << (info.bits - 1));
  return info.kind == Kind::Signed ? static_cast<uint8_t>((byte ^ sign) - sign) : byte;
}

Status read_bytes(const std::string& field, Literal& out) {
  const Shape& shape = out.shape();
  const TypeInfo& info = type_info(shape.type());
  const auto width = static_cast<size_t>(info.bytes());
  if (field.size() % width || static_cast<int64_t>(field.size() / width) != shape.element_count())
    return wrong_count(shape, info.text, static_cast<int64_t>(field.size() / width));
  out = Literal::uninitialized(shape);
  uint8_t* to = out.mutable_bytes();
  for_each_element(shape, [&](int64_t i, int64_t j) {
    const char* from = field.data() + static_cast<size_t>(i) * width;
    if (info.bits < 8)
      to[j] = widened(static_cast<uint8_t>(*from), info);
    else
      std::memcpy(to + static_cast<size_t>(j) * width, from, width);
  });
  return ok_status();
}

void write_bytes(const Literal& in, std::string* field) {
  const TypeInfo& info = type_info(in.type());
  const auto width = static_cast<size_t>(info.bytes());
  field->reserve(static_cast<size_t>(in.element_count()) * width);
  for_each_element(in.shape(), [&](int64_t, int64_t j) {
    const uint8_t* from = in.bytes() + static_cast<size_t>(j) * width;
    if (info.bits < 8)
      field->push_back(static_cast<char>(narrowed(*from, info)));
    else
      field->append(reinterpret_cast<const char*>(from), width);
  });
}

// How each type is stored in the message: LIST(type, field, C type, numbers per element) or BYTES(type, field).
#define COLLET_WIRE_TYPES(LIST, BYTES) \
  LIST(PRED, preds, uint8_t, 1)        \
  LIST(S32, s32s, int32_t, 1)          \
  LIST(S64, s64s, int64_t, 1)          \
  LIST(U32, u32s, uint32_t, 1)         \
  LIST(U64, u64s, uint64_t, 1)         \
  LIST(F32, f32s, float, 1)            \
  LIST(F64, f64s, double, 1)           \
  LIST(C64, c64s, float, 2)            \
  LIST(C128, c128s, double, 2)         \
  BYTES(S1, s1s)                       \
  BYTES(S2, s2s)                       \
  BYTES(S4, s4s)                       \
  BYTES(S8, s8s)                       \
  BYTES(S16, s16s)                     \
  BYTES(U1, u1s)                       \
  BYTES(U2, u2s)                       \
  BYTES(U4, u4s)                       \
  BYTES(U8, u8s)                       \
  BYTES(U16, u16s)                     \
  BYTES(F16, f16s)                     \
  BYTES(BF16, bf16s)                   \
  BYTES(F8E5M2, f8e5m2s)               \
  BYTES(F8E4M3, f8e4m3s)               \
  BYTES(F8E4M3FN, f8e4m3fns)           \
  BYTES(F8E4M3B11FNUZ, f8e4m3b11fnuzs) \
  BYTES(F8E3M4, f8e3m4s)               \
  BYTES(F8E5M2FNUZ, f8e5m2fnuzs)       \
  BYTES(F8E4M3FNUZ, f8e4m3fnuzs)       \
  BYTES(F4E2M1FN, f4e2m1fns)           \
  BYTES(F8E8M0FNU, f8e8m0fnus)

Status read_array(const wire::LiteralProto& in, Literal& out) {
  switch (out.type()) {
#define COLLET_LIST(TYPE, field, T, n) \
  case Type::TYPE:                     \
    return read_list<T>(in.field(), n, out);
#define COLLET_BYTES(TYPE, field) \
  case Type::TYPE:                \
    return read_bytes(in.field(), out);
    COLLET_WIRE_TYPES(COLLET_LIST, COLLET_BYTES)
#undef COLLET_LIST
#undef COLLET_BYTES
    default:
      return invalid_argument("there are no literals of shape " + out.shape().to_string());
  }
}

}  // namespace

Expected<Literal> from_wire(const wire::LiteralProto& in, const Shape* wanted) {
  COLLET_ASSIGN(const Shape own, from_wire(in.shape()));
  if (wanted && !own.same_without_layout(*wanted))
    return invalid_argument("the literal has shape " + own.to_string() + ", not " + wanted->to_string());
  const Shape& shape = wanted ? *wanted : own;
  if (shape.is_token()) return Literal::token();
  if (shape.is_tuple()) {
    if (in.tuple_literals_size() != static_cast<int>(shape.elements().size()))
      return wrong_count(own, "tuple_literal", in.tuple_literals_size());
    std::vector<Literal> elements;
    for (int i = 0; i < in.tuple_literals_size(); ++i) {
      COLLET_ASSIGN(Literal element, from_wire(in.tuple_literals(i), &shape.element(static_cast<size_t>(i))));
      elements.push_back(std::move(element));
    }
    return Literal::tuple(std::move(elements));
  }
  if (own.has_unbounded()) return invalid_argument("a literal has no sizes that are unknown");
  // The elements are read in the order of the message's own layout.
  Literal out = Literal::borrow(own, nullptr);
  COLLET_TRY(read_array(in, out));
  if (wanted) out = out.reshaped(*wanted);
  if (in.dynamic_sizes_size() == own.rank() && own.rank() > 0) {
    std::vector<int64_t> sizes(in.dynamic_sizes().begin(), in.dynamic_sizes().end());
    for (size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] < 0 || sizes[i] > own.dim(static_cast<int>(i)))
        return invalid_argument("field 'dynamic_sizes': a size of " + std::to_string(sizes[i]));
    out.set_dynamic_sizes(std::move(sizes));
  }
  return out;
}

void to_wire(const Literal& literal, wire::LiteralProto* out) {
  to_wire(literal.shape(), out->mutable_shape());
  for (const Literal& element : literal.elements()) to_wire(element, out->add_tuple_literals());
  for (int64_t size : literal.dynamic_sizes()) out->add_dynamic_sizes(static_cast<int32_t>(size));
  switch (literal.type()) {
#define COLLET_LIST(TYPE, field, T, n) \
  case Type::TYPE:                     \
    return write_list<T>(literal, n, out->mutable_##field());
#define COLLET_BYTES(TYPE, field) \
  case Type::TYPE:                \
    return write_bytes(literal, out->mutable_##field());
    COLLET_WIRE_TYPES(COLLET_LIST, COLLET_BYTES)
#undef COLLET_LIST
#undef COLLET_BYTES
    default:
      return;
  }
}

}  // namespace collet::hlo::proto
