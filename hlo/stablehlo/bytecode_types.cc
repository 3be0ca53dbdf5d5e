// SPDX-License-Identifier: Apache-2.0
#include "hlo/ir/shape.h"
#include "hlo/stablehlo/bytecode_cursor.h"

// Decodes types of the builtin dialect and of VHLO.

namespace collet::hlo::mlir {
namespace {

/// Returns the HLO type of an integer type of the builtin dialect.
hlo::Type builtin_integer(uint64_t width, uint64_t sign) {
  using hlo::Type;
  if (width == 1) return sign == 2 ? Type::U1 : Type::PRED;
  const bool is_unsigned = sign == 2;
  switch (width) {
    case 2:
      return is_unsigned ? Type::U2 : Type::S2;
    case 4:
      return is_unsigned ? Type::U4 : Type::S4;
    case 8:
      return is_unsigned ? Type::U8 : Type::S8;
    case 16:
      return is_unsigned ? Type::U16 : Type::S16;
    case 32:
      return is_unsigned ? Type::U32 : Type::S32;
    case 64:
      return is_unsigned ? Type::U64 : Type::S64;
    default:
      return Type::Invalid;
  }
}

}  // namespace

Expected<TypeRef> BytecodeAttributes::decode_builtin_type(Cursor& c) {
  const uint64_t offset = c.r.position();
  const uint64_t code = c.r.varint();
  switch (code) {
    case 0: {
      const uint64_t v = c.r.varint();
      const hlo::Type type = builtin_integer(v >> 2, v & 3);
      if (type == hlo::Type::Invalid)
        return unimplemented("artifact, byte " + std::to_string(offset) + ": integers of " + std::to_string(v >> 2) +
                             " bits");
      return program_.scalar(type);
    }
    case 1:
      return TypeRef{program_.make_type(Type::Kind::Index)};
    case 2: {
      Type* out = program_.make_type(Type::Kind::Function);
      out->inputs = c.types();
      out->results = c.types();
      return TypeRef{out};
    }
    case 3:
      return program_.scalar(hlo::Type::BF16);
    case 4:
      return program_.scalar(hlo::Type::F16);
    case 5:
      return program_.scalar(hlo::Type::F32);
    case 6:
      return program_.scalar(hlo::Type::F64);
    case 9: {
      TypeRef part = c.type();
      return program_.scalar(part && element_type(part) == hlo::Type::F64 ? hlo::Type::C128 : hlo::Type::C64);
    }
    case 12:
      return TypeRef{program_.make_type(Type::Kind::None)};
    case 13: {
      Type* out = program_.make_type(Type::Kind::Tensor);
      out->dims = c.ints();
      out->element = c.type();
      return TypeRef{out};
    }
    case 14: {
      Type* out = program_.make_type(Type::Kind::Tensor);
      AttrRef encoding = c.attr();
      out->dims = c.ints();
      out->element = c.type();
      if (encoding && encoding->kind == Attr::Kind::Ints) out->bounds = encoding->ints;
      return TypeRef{out};
    }
    case 15: {
      Type* out = program_.make_type(Type::Kind::Tuple);
      out->inputs = c.types();
      return TypeRef{out};
    }
    case 18: {
      Type* out = program_.make_type(Type::Kind::UnrankedTensor);
      out->element = c.type();
      return TypeRef{out};
    }
    case 22:
      return program_.scalar(hlo::Type::F8E5M2);
    case 23:
      return program_.scalar(hlo::Type::F8E4M3);
    case 24:
      return program_.scalar(hlo::Type::F8E4M3FN);
    case 25:
      return program_.scalar(hlo::Type::F8E5M2FNUZ);
    case 26:
      return program_.scalar(hlo::Type::F8E4M3FNUZ);
    case 27:
      return program_.scalar(hlo::Type::F8E4M3B11FNUZ);
    case 28:
      return program_.scalar(hlo::Type::F8E3M4);
    case 29:
      return program_.scalar(hlo::Type::F4E2M1FN);
    case 32:
      return program_.scalar(hlo::Type::F8E8M0FNU);
    default:
      return unimplemented("artifact, byte " + std::to_string(offset) + ": builtin type of code " +
                           std::to_string(code));
  }
}

namespace {

/// Returns the element type for VHLO's code; Invalid for other codes.
hlo::Type vhlo_scalar(uint64_t code) {
  using hlo::Type;
  switch (code) {
    case 0:
      return Type::PRED;
    case 2:
      return Type::BF16;
    case 3:
      return Type::F16;
    case 4:
      return Type::F32;
    case 5:
      return Type::F64;
    case 6:
      return Type::F8E4M3FN;
    case 7:
      return Type::F8E5M2;
    case 10:
      return Type::S4;
    case 11:
      return Type::S8;
    case 12:
      return Type::S16;
    case 13:
      return Type::S32;
    case 14:
      return Type::S64;
    case 15:
      return Type::U4;
    case 16:
      return Type::U8;
    case 17:
      return Type::U16;
    case 18:
      return Type::U32;
    case 19:
      return Type::U64;
    case 27:
      return Type::F8E4M3FNUZ;
    case 28:
      return Type::F8E5M2FNUZ;
    case 29:
      return Type::F8E4M3B11FNUZ;
    case 31:
      return Type::S2;
    case 32:
      return Type::U2;
    case 35:
      return Type::F8E4M3;
    case 36:
      return Type::F8E3M4;
    case 37:
      return Type::F4E2M1FN;
    case 40:
      return Type::F8E8M0FNU;
    default:
      return Type::Invalid;
  }
}

/// Returns the unsigned type with as many bits; Invalid if there is none.
hlo::Type unsigned_type(hlo::Type type) {
  switch (type) {
    case hlo::Type::S2:
      return hlo::Type::U2;
    case hlo::Type::S4:
      return hlo::Type::U4;
    case hlo::Type::S8:
      return hlo::Type::U8;
    case hlo::Type::S16:
      return hlo::Type::U16;
    case hlo::Type::S32:
      return hlo::Type::U32;
    default:
      return hlo::Type::Invalid;
  }
}

}  // namespace

Expected<TypeRef> BytecodeAttributes::decode_vhlo_type(Cursor& c) {
  const uint64_t offset = c.r.position();
  const uint64_t code = c.r.varint();
  if (const hlo::Type scalar = vhlo_scalar(code); scalar != hlo::Type::Invalid) return program_.scalar(scalar);
  const auto quantized = [&](bool per_axis) -> Expected<TypeRef> {
    Quantization q;
    const bool is_signed_storage = (c.r.varint() & 1) != 0;
    TypeRef storage = c.type(), expressed = c.type();
    q.storage = storage ? element_type(storage) : hlo::Type::Invalid;
    // MLIR's storage type has no sign of its own; the flag says whether its values have one.
    if (!is_signed_storage && is_signed(q.storage)) q.storage = unsigned_type(q.storage);
    q.expressed = expressed ? element_type(expressed) : hlo::Type::Invalid;
    std::vector<double> scales;
    std::vector<int64_t> zero_points;
    if (per_axis) {
      q.axis = static_cast<int64_t>(c.r.varint());
      if (q.axis < 0) return bytecode_error(offset, "a quantized type is damaged");
      q.storage_min = c.r.svarint();
      q.storage_max = c.r.svarint();
      scales.resize(c.r.count());
      for (double& s : scales) s = read_f64(c.r);
      zero_points = read_ints(c.r);
    } else {
      scales.push_back(read_f64(c.r));
      zero_points.push_back(c.r.svarint());
      q.storage_min = c.r.svarint();
      q.storage_max = c.r.svarint();
    }
    q.scales = program_.arena().list(scales);
    q.zero_points = program_.arena().list(zero_points);
    Type* out = program_.make_type(Type::Kind::Quantized);
    out->quantization = program_.arena().make<Quantization>(q);
    return TypeRef{out};
  };
  const auto named = [&](std::string_view text) {
    Type* out = program_.make_type(Type::Kind::Unknown);
    out->text = text;
    return TypeRef{out};
  };
  switch (code) {
    case 34:
      return named("tf32");
    case 38:
      return named("f6E2M3FN");
    case 39:
      return named("f6E3M2FN");
    case 1: {
      TypeRef part = c.type();
      return program_.scalar(part && element_type(part) == hlo::Type::F64 ? hlo::Type::C128 : hlo::Type::C64);
    }
    case 8: {
      Type* out = program_.make_type(Type::Kind::Function);
      out->inputs = c.types();
      out->results = c.types();
      return TypeRef{out};
    }
    case 9:
      return TypeRef{program_.make_type(Type::Kind::Index)};
    case 20:
    case 21:
    case 41: {
      Type* out = program_.make_type(code == 41 ? Type::Kind::Buffer : Type::Kind::Tensor);
      if (code == 21) {
        AttrRef encoding = c.attr();
        if (encoding && encoding->kind == Attr::Kind::Ints) out->bounds = encoding->ints;
      }
      out->dims = c.ints();
      out->element = c.type();
      return TypeRef{out};
    }
    case 22:
      return TypeRef{program_.make_type(Type::Kind::Token)};
    case 23: {
      Type* out = program_.make_type(Type::Kind::Tuple);
      out->inputs = c.types();
      return TypeRef{out};
    }
    case 24:
      return quantized(false);
    case 25: {
      Type* out = program_.make_type(Type::Kind::UnrankedTensor);
      out->element = c.type();
      return TypeRef{out};
    }
    case 26:
      return TypeRef{program_.make_type(Type::Kind::Witness)};
    case 30:
      return quantized(true);
    case 33:
      return TypeRef{program_.make_type(Type::Kind::None)};
    case 42: {
      Type* out = program_.make_type(Type::Kind::Future);
      out->inputs = c.types();
      return TypeRef{out};
    }
    default:
      return unimplemented("artifact, byte " + std::to_string(offset) + ": VHLO type of code " + std::to_string(code));
  }
}

}  // namespace collet::hlo::mlir
