// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/bytecode_encoder.h"
#include "hlo/stablehlo/encode_numbers.h"
#include "hlo/stablehlo/op_schemas.h"

// Encodes the types of artifacts: VHLO's, and those of the builtin dialect.

namespace collet::hlo::mlir {
namespace {

struct ScalarCode {
  hlo::Type type;
  uint64_t code, from;
};

// Element types, their codes in VHLO, and the StableHLO version that introduced each.
constexpr ScalarCode kScalars[] = {
    {hlo::Type::PRED, 0, 0},
    {hlo::Type::BF16, 2, 0},
    {hlo::Type::F16, 3, 0},
    {hlo::Type::F32, 4, 0},
    {hlo::Type::F64, 5, 0},
    {hlo::Type::F8E4M3FN, 6, 0},
    {hlo::Type::F8E5M2, 7, 0},
    {hlo::Type::S4, 10, 0},
    {hlo::Type::S8, 11, 0},
    {hlo::Type::S16, 12, 0},
    {hlo::Type::S32, 13, 0},
    {hlo::Type::S64, 14, 0},
    {hlo::Type::U4, 15, 0},
    {hlo::Type::U8, 16, 0},
    {hlo::Type::U16, 17, 0},
    {hlo::Type::U32, 18, 0},
    {hlo::Type::U64, 19, 0},
    {hlo::Type::F8E4M3FNUZ, 27, vhlo_version(0, 10, 0)},
    {hlo::Type::F8E5M2FNUZ, 28, vhlo_version(0, 10, 0)},
    {hlo::Type::F8E4M3B11FNUZ, 29, vhlo_version(0, 11, 0)},
    {hlo::Type::S2, 31, vhlo_version(1, 2, 0)},
    {hlo::Type::U2, 32, vhlo_version(1, 2, 0)},
    {hlo::Type::F8E4M3, 35, vhlo_version(1, 7, 0)},
    {hlo::Type::F8E3M4, 36, vhlo_version(1, 7, 0)},
    {hlo::Type::F4E2M1FN, 37, vhlo_version(1, 8, 0)},
    {hlo::Type::F8E8M0FNU, 40, vhlo_version(1, 8, 0)},
};

}  // namespace

Status BytecodeEncoder::write_types(ByteWriter& w, List<const TypeRef> list, Dialect dialect) {
  w.varint(list.size());
  for (TypeRef t : list) {
    COLLET_ASSIGN(uint64_t number, type(t, dialect));
    w.varint(number);
  }
  return {};
}

Expected<uint64_t> BytecodeEncoder::type(TypeRef t, Dialect dialect) {
  if (!t) return invalid_argument("a value has no type");
  return dialect == Dialect::Vhlo ? vhlo_type(t) : builtin_type(t);
}

Expected<uint64_t> BytecodeEncoder::vhlo_scalar(hlo::Type type) {
  ByteWriter w;
  if (is_complex(type)) {
    COLLET_ASSIGN(uint64_t part, vhlo_scalar(real_type(type)));
    w.varint(1);
    w.varint(part);
    return add_type("vhlo", w);
  }
  for (const ScalarCode& row : kScalars) {
    if (row.type != type) continue;
    COLLET_TRY(needs(row.from, type_info(type).text));
    w.varint(row.code);
    return add_type("vhlo", w);
  }
  return unimplemented("artifacts have no type " + std::string(type_info(type).text));
}

Expected<uint64_t> BytecodeEncoder::vhlo_quantized(const Quantization& q) {
  if (!q.grid.empty()) return unimplemented("artifacts have no quantization in blocks; write text");
  const bool per_axis = q.axis >= 0;
  if (per_axis) COLLET_TRY(needs(vhlo_version(0, 18, 0), "quantization per axis"));
  if (q.scales.size() != q.zero_points.size() || q.scales.empty())
    return invalid_argument("a quantized type has no scale");
  COLLET_ASSIGN(uint64_t storage, vhlo_scalar(q.storage));
  COLLET_ASSIGN(uint64_t expressed, vhlo_scalar(q.expressed));
  ByteWriter w;
  w.varint(per_axis ? 30 : 24);
  w.varint(is_signed(q.storage) ? 1 : 0);
  w.varint(storage);
  w.varint(expressed);
  if (per_axis) {
    w.varint(static_cast<uint64_t>(q.axis));
  } else {
    write_f64(w, q.scales[0]);
    w.svarint(q.zero_points[0]);
  }
  w.svarint(q.storage_min);
  w.svarint(q.storage_max);
  if (per_axis) {
    w.varint(q.scales.size());
    for (double s : q.scales) write_f64(w, s);
    write_ints(w, q.zero_points);
  }
  return add_type("vhlo", w);
}

Expected<uint64_t> BytecodeEncoder::vhlo_type(TypeRef t) {
  ByteWriter w;
  switch (t->kind) {
    case Type::Kind::Scalar:
      return vhlo_scalar(t->scalar);
    case Type::Kind::Quantized:
      return vhlo_quantized(*t->quantization);
    case Type::Kind::Buffer:
    case Type::Kind::Tensor: {
      const bool buffer = t->kind == Type::Kind::Buffer;
      if (buffer) COLLET_TRY(needs(vhlo_version(1, 13, 0), "buffers"));
      COLLET_ASSIGN(uint64_t element, type(t->element, Dialect::Vhlo));
      uint64_t bounds = 0;
      if (!t->bounds.empty()) {
        ByteWriter b;
        b.varint(18);
        write_ints(b, t->bounds);
        bounds = add_attr("vhlo", b);
      }
      w.varint(buffer ? 41 : t->bounds.empty() ? 20 : 21);
      if (!buffer && !t->bounds.empty()) w.varint(bounds);
      write_ints(w, t->dims);
      w.varint(element);
      return add_type("vhlo", w);
    }
    case Type::Kind::UnrankedTensor: {
      COLLET_ASSIGN(uint64_t element, type(t->element, Dialect::Vhlo));
      w.varint(25);
      w.varint(element);
      return add_type("vhlo", w);
    }
    case Type::Kind::Function: {
      w.varint(8);
      COLLET_TRY(write_types(w, t->inputs, Dialect::Vhlo));
      COLLET_TRY(write_types(w, t->results, Dialect::Vhlo));
      return add_type("vhlo", w);
    }
    case Type::Kind::Future:
    case Type::Kind::Tuple:
      if (t->kind == Type::Kind::Future) COLLET_TRY(needs(vhlo_version(1, 15, 0), "futures"));
      w.varint(t->kind == Type::Kind::Future ? 42 : 23);
      COLLET_TRY(write_types(w, t->inputs, Dialect::Vhlo));
      return add_type("vhlo", w);
    case Type::Kind::Token:
      w.varint(22);
      return add_type("vhlo", w);
    case Type::Kind::Index:
      w.varint(9);
      return add_type("vhlo", w);
    case Type::Kind::None:
      COLLET_TRY(needs(vhlo_version(1, 6, 0), "the type none"));
      w.varint(33);
      return add_type("vhlo", w);
    case Type::Kind::Witness:
      w.varint(26);
      return add_type("vhlo", w);
    case Type::Kind::Unknown:
      break;
  }
  // Precision types of dot algorithms and similar names that are not types of values.
  const std::pair<std::string_view, uint64_t> names[] = {{"tf32", 34}, {"f6E2M3FN", 38}, {"f6E3M2FN", 39}};
  for (const auto& [name, code] : names)
    if (t->text == name) {
      w.varint(code);
      return add_type("vhlo", w);
    }
  return unimplemented("artifacts have no type " + to_string(t));
}

Expected<uint64_t> BytecodeEncoder::builtin_type(TypeRef t) {
  ByteWriter w;
  switch (t->kind) {
    case Type::Kind::Scalar: {
      const TypeInfo& info = type_info(t->scalar);
      if (is_complex(t->scalar)) {
        ByteWriter part;
        part.varint(t->scalar == hlo::Type::C128 ? 6 : 5);
        const uint64_t number = add_type("builtin", part);
        w.varint(9);
        w.varint(number);
        return add_type("builtin", w);
      }
      if (info.kind == Kind::Pred || info.kind == Kind::Signed || info.kind == Kind::Unsigned) {
        const uint64_t width = info.kind == Kind::Pred ? 1 : static_cast<uint64_t>(info.bits);
        w.varint(0);
        w.varint(width << 2 | (info.kind == Kind::Unsigned ? 2 : 0));
        return add_type("builtin", w);
      }
      const std::pair<hlo::Type, uint64_t> codes[] = {
          {hlo::Type::BF16, 3}, {hlo::Type::F16, 4}, {hlo::Type::F32, 5}, {hlo::Type::F64, 6}};
      for (const auto& [type, code] : codes)
        if (type == t->scalar) {
          w.varint(code);
          return add_type("builtin", w);
        }
      return text_type("builtin", to_string(t));
    }
    case Type::Kind::Tensor: {
      if (!t->bounds.empty()) return text_type("builtin", to_string(t));
      COLLET_ASSIGN(uint64_t element, type(t->element, Dialect::Builtin));
      w.varint(13);
      write_ints(w, t->dims);
      w.varint(element);
      return add_type("builtin", w);
    }
    case Type::Kind::Function:
      w.varint(2);
      COLLET_TRY(write_types(w, t->inputs, Dialect::Builtin));
      COLLET_TRY(write_types(w, t->results, Dialect::Builtin));
      return add_type("builtin", w);
    case Type::Kind::Index:
      w.varint(1);
      return add_type("builtin", w);
    case Type::Kind::None:
      w.varint(12);
      return add_type("builtin", w);
    case Type::Kind::Tuple:
      w.varint(15);
      COLLET_TRY(write_types(w, t->inputs, Dialect::Builtin));
      return add_type("builtin", w);
    case Type::Kind::Token:
      return text_type("stablehlo", to_string(t));
    default: {
      const std::string text = to_string(t);
      const std::string_view name = text.starts_with('!') ? std::string_view(text).substr(1) : std::string_view();
      return text_type(name.empty() ? "builtin" : name.substr(0, name.find_first_of(".<")), text);
    }
  }
}

}  // namespace collet::hlo::mlir
