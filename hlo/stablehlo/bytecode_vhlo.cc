// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/bytecode_cursor.h"
#include "hlo/stablehlo/enums.h"

// Decodes the attributes of VHLO.

namespace collet::hlo::mlir {

Expected<AttrRef> BytecodeAttributes::decode_vhlo(Cursor& c) {
  const uint64_t offset = c.r.position();
  const uint64_t code = c.r.varint();
  const auto enumeration = [&](VhloEnum kind) -> Expected<AttrRef> {
    const uint64_t value = c.r.varint();
    const std::string_view text = vhlo_enum_text(kind, value);
    if (text.empty()) return bytecode_error(offset, "an enumeration has no value " + std::to_string(value));
    Attr* out = program_.make_attr(Attr::Kind::Enum);
    out->text = text;
    return AttrRef{out};
  };
  switch (code) {
    case 1: {
      Attr* out = program_.make_attr(Attr::Kind::Array);
      out->items = c.attrs();
      return AttrRef{out};
    }
    case 2: {
      Attr* out = program_.make_attr(Attr::Kind::Bool);
      out->integer = c.r.varint() != 0;
      return AttrRef{out};
    }
    case 3:
      return enumeration(VhloEnum::ComparisonDirection);
    case 4:
      return enumeration(VhloEnum::ComparisonType);
    case 5:
      return enumeration(VhloEnum::ApiVersion);
    case 6:
      return c.dictionary();
    case 7:
      return enumeration(VhloEnum::FftType);
    case 8:
      return decode_float(c, offset);
    case 9: {
      TypeRef type = c.type();
      const hlo::Type scalar = type ? element_type(type) : hlo::Type::Invalid;
      if (!is_integer(scalar) && scalar != hlo::Type::PRED)
        return bytecode_error(offset, "an integer attribute without an integer type");
      Attr* out = program_.make_attr(Attr::Kind::Int);
      const int width = scalar == hlo::Type::PRED ? 1 : type_info(scalar).bits;
      out->integer = sign_extend(read_ap_int(c.r, width), width);
      out->type = type;
      return AttrRef{out};
    }
    case 10: {
      const std::vector<int64_t> outputs = read_ints(c.r);
      const int64_t operand = c.r.svarint();
      const std::vector<int64_t> operands = read_ints(c.r);
      std::vector<int64_t> all{static_cast<int64_t>(outputs.size())};
      all.insert(all.end(), outputs.begin(), outputs.end());
      all.push_back(operand);
      all.insert(all.end(), operands.begin(), operands.end());
      Attr* out = program_.make_attr(Attr::Kind::Alias);
      out->ints = program_.arena().list(all);
      return AttrRef{out};
    }
    case 11:
      return enumeration(VhloEnum::Precision);
    case 12:
      return enumeration(VhloEnum::RngAlgorithm);
    case 13:
      return enumeration(VhloEnum::RngDistribution);
    case 14: {
      Attr* out = program_.make_attr(Attr::Kind::String);
      out->text = c.string();
      return AttrRef{out};
    }
    case 15: {
      TypeRef type = c.type();
      const std::string_view blob = c.r.take(c.r.varint());
      return dense(type, blob, offset);
    }
    case 16:
      return enumeration(VhloEnum::Transpose);
    case 17: {
      Attr* out = program_.make_attr(Attr::Kind::Type);
      out->type = c.type();
      return AttrRef{out};
    }
    case 18: {
      Attr* out = program_.make_attr(Attr::Kind::Ints);
      out->ints = c.ints();
      return AttrRef{out};
    }
    case 19:
      return enumeration(VhloEnum::ResultAccuracyMode);
    case 20: {
      Attr* out = program_.make_attr(Attr::Kind::Accuracy);
      const double atol = read_f64(c.r), rtol = read_f64(c.r);
      out->floats = program_.arena().list(std::vector<double>{atol, rtol});
      out->integer = c.r.svarint();
      AttrRef mode = c.attr();
      if (mode) out->text = mode->text;
      return AttrRef{out};
    }
    case 21:
    case 22:
    case 23:
    case 24:
    case 25: {
      // Replica groups as mesh axes are kept as text. An op that needs them reports that they are not supported.
      Attr* out = program_.make_attr(Attr::Kind::Raw);
      out->text = "#vhlo.mesh_axes.undecoded";
      return AttrRef{out};
    }
    default:
      return unimplemented("artifact, byte " + std::to_string(offset) + ": VHLO attribute of code " +
                           std::to_string(code));
  }
}

}  // namespace collet::hlo::mlir
