// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/bytecode_attributes.h"

#include "hlo/stablehlo/bytecode_cursor.h"
#include "hlo/stablehlo/text.h"

namespace collet::hlo::mlir {
namespace {

constexpr int kDeepest = 64;

// Codes of the builtin dialect's encoding.
enum BuiltinAttr : uint64_t {
  kArray = 0,
  kDictionary = 1,
  kString = 2,
  kStringWithType = 3,
  kFlatSymbolRef = 4,
  kSymbolRef = 5,
  kTypeAttr = 6,
  kUnit = 7,
  kInteger = 8,
  kFloat = 9,
  kFirstLocation = 10,
  kLastLocation = 15,
  kDenseArray = 17,
  kDenseElements = 18,
  kFileLineColRange = 22
};

}  // namespace

BytecodeAttributes::BytecodeAttributes(const BytecodeFile& file, Program& program)
    : file_(file),
      program_(program),
      attrs_(file.attrs.size()),
      types_(file.types.size()),
      attr_states_(file.attrs.size(), State::Unread),
      type_states_(file.types.size(), State::Unread) {}

Expected<AttrRef> BytecodeAttributes::attr(uint64_t index, int depth) {
  if (index >= attrs_.size()) return bytecode_error(0, "there is no attribute " + std::to_string(index));
  const BytecodeEntry& entry = file_.attrs[index];
  if (attr_states_[index] == State::Done) return attrs_[index];
  if (attr_states_[index] == State::Reading || depth > kDeepest)
    return bytecode_error(entry.offset, "attribute " + std::to_string(index) + " contains itself");
  attr_states_[index] = State::Reading;
  Expected<AttrRef> out = AttrRef{nullptr};
  if (!entry.custom) {
    out = decode_text(entry);
  } else {
    Cursor c{*this, ByteReader(entry.data, entry.offset), depth};
    const std::string_view dialect = file_.dialects[entry.dialect];
    if (dialect == "builtin")
      out = decode_builtin(c);
    else if (dialect == "vhlo")
      out = decode_vhlo(c);
    else if (dialect == "sdy")
      out = decode_sdy(c);
    else {
      // Attributes of other dialects are not decoded. The file has their size, so they can be skipped.
      Attr* raw = program_.make_attr(Attr::Kind::Raw);
      raw->text = program_.arena().string("#" + std::string(dialect) + ".undecoded");
      out = AttrRef{raw};
    }
    if (out.ok() && !c.error.ok()) out = c.error;
    if (out.ok() && c.r.failed())
      out = bytecode_error(entry.offset, "attribute " + std::to_string(index) + " is cut short");
  }
  if (!out.ok()) return out;
  // This reader created it just now, so it may still be modified.
  const Status complete = program_.complete(const_cast<Attr*>(*out));
  if (!complete.ok()) return bytecode_error(entry.offset, complete.message());
  attrs_[index] = *out;
  attr_states_[index] = State::Done;
  return out;
}

Expected<TypeRef> BytecodeAttributes::type(uint64_t index, int depth) {
  if (index >= types_.size()) return bytecode_error(0, "there is no type " + std::to_string(index));
  const BytecodeEntry& entry = file_.types[index];
  if (type_states_[index] == State::Done) return types_[index];
  if (type_states_[index] == State::Reading || depth > kDeepest)
    return bytecode_error(entry.offset, "type " + std::to_string(index) + " contains itself");
  type_states_[index] = State::Reading;
  const std::string_view dialect = file_.dialects[entry.dialect];
  Expected<TypeRef> out = TypeRef{nullptr};
  if (!entry.custom) {
    Type* unknown = program_.make_type(Type::Kind::Unknown);
    unknown->text = program_.arena().string(entry.data.substr(0, entry.data.find('\0')));
    out = TypeRef{unknown};
  } else {
    Cursor c{*this, ByteReader(entry.data, entry.offset), depth};
    if (dialect == "builtin")
      out = decode_builtin_type(c);
    else if (dialect == "vhlo")
      out = decode_vhlo_type(c);
    // StableHLO's own type encoding; it occurs for arguments of regions of Shardy's ops.
    else if (dialect == "stablehlo" && c.r.varint() == 0)
      out = TypeRef{program_.make_type(Type::Kind::Token)};
    else
      out = unimplemented("artifact, byte " + std::to_string(entry.offset) + ": this type of dialect " +
                          std::string(dialect) + " is not known");
    if (out.ok() && !c.error.ok()) out = c.error;
    if (out.ok() && c.r.failed()) out = bytecode_error(entry.offset, "type " + std::to_string(index) + " is cut short");
  }
  if (!out.ok()) return out;
  const Status complete = program_.complete(const_cast<Type*>(*out));  // also created just now
  if (!complete.ok()) return bytecode_error(entry.offset, complete.message());
  types_[index] = *out;
  type_states_[index] = State::Done;
  return out;
}

Expected<AttrRef> BytecodeAttributes::decode_text(const BytecodeEntry& entry) {
  const std::string_view text = entry.data.substr(0, entry.data.find('\0'));
  // CHLO has no encoding of its own for most of its attributes.
  if (text.starts_with("#chlo")) {
    if (auto read = read_attribute(text, program_); read.ok()) return read;
  }
  Attr* raw = program_.make_attr(Attr::Kind::Raw);
  raw->text = program_.arena().string(text);
  return AttrRef{raw};
}

Expected<AttrRef> BytecodeAttributes::dense(TypeRef type, std::string_view blob, uint64_t offset) {
  if (!type || type->kind != Type::Kind::Tensor)
    return bytecode_error(offset, "elements need a type of known shape, not " + (type ? to_string(type) : "nothing"));
  const int64_t count = element_count(type);
  const int bytes = element_bytes(type->element);
  const hlo::Type element = element_type(type->element);
  if (count < 0 || bytes <= 0) return bytecode_error(offset, "elements of type " + to_string(type));
  Attr* out = program_.make_attr(Attr::Kind::Dense);
  out->type = type;
  const auto n = static_cast<uint64_t>(count);
  if (element == hlo::Type::PRED) {
    std::string unpacked;
    if (blob.size() == 1 && n != 1 && (n > 8 || blob[0] == '\0' || blob[0] == '\xFF')) {
      unpacked.assign(1, blob[0] != 0);
      out->splat = true;
    } else if (blob.size() == (n + 7) / 8 && n != blob.size()) {
      unpacked.resize(n);
      for (uint64_t i = 0; i < n; ++i) unpacked[i] = (blob[i / 8] >> (i % 8)) & 1;
    } else if (blob.size() == n) {
      unpacked.resize(n);
      for (uint64_t i = 0; i < n; ++i) unpacked[i] = blob[i] != 0;
    } else {
      return bytecode_error(offset, "the elements of " + to_string(type) + " do not fit it");
    }
    program_.set_bytes(out, unpacked);
    return AttrRef{out};
  }
  const auto width = static_cast<uint64_t>(bytes);
  if (blob.size() == width && n != 1)
    out->splat = true;
  else if (blob.size() / width != n || blob.size() % width != 0)
    return bytecode_error(offset, "the elements of " + to_string(type) + " do not fit it");
  if (type_info(element).bits < 8 && is_integer(element)) {
    std::string extended(blob);
    extend_elements(extended, element);
    program_.set_bytes(out, extended);
    return AttrRef{out};
  }
  program_.set_bytes(out, blob);
  return AttrRef{out};
}

Expected<AttrRef> BytecodeAttributes::dense_array(TypeRef element, std::string_view blob, uint64_t offset) {
  const auto count = static_cast<int64_t>(blob.size() / static_cast<size_t>(element_bytes(element)));
  COLLET_ASSIGN(AttrRef elements, dense(program_.tensor(element, {&count, 1}), blob, offset));
  if (is_float(element_type(element))) return elements;
  Attr* list = as_list(elements, program_);
  list->dims = {};
  return AttrRef{list};
}

Expected<AttrRef> BytecodeAttributes::decode_float(Cursor& c, uint64_t offset) {
  TypeRef type = c.type();
  const hlo::Type scalar = type ? element_type(type) : hlo::Type::Invalid;
  if (!is_float(scalar)) return bytecode_error(offset, "a float attribute without a float type");
  Attr* out = program_.make_attr(Attr::Kind::Float);
  out->number = read_ap_float(c.r, scalar);
  out->type = type;
  return AttrRef{out};
}

Expected<AttrRef> BytecodeAttributes::decode_builtin(Cursor& c) {
  const uint64_t offset = c.r.position();
  const uint64_t code = c.r.varint();
  if ((code >= kFirstLocation && code <= kLastLocation) || code == kFileLineColRange)
    return AttrRef{program_.make_attr(Attr::Kind::Location)};
  switch (code) {
    case kArray: {
      Attr* out = program_.make_attr(Attr::Kind::Array);
      out->items = c.attrs();
      return AttrRef{out};
    }
    case kDictionary:
      return c.dictionary();
    case kString:
    case kStringWithType: {
      Attr* out = program_.make_attr(Attr::Kind::String);
      out->text = c.string();
      return AttrRef{out};
    }
    case kFlatSymbolRef:
    case kSymbolRef: {
      AttrRef root = c.attr();
      Attr* out = program_.make_attr(Attr::Kind::Symbol);
      if (root) out->text = root->text;
      return AttrRef{out};
    }
    case kTypeAttr: {
      Attr* out = program_.make_attr(Attr::Kind::Type);
      out->type = c.type();
      return AttrRef{out};
    }
    case kUnit:
      return AttrRef{program_.make_attr(Attr::Kind::Unit)};
    case kInteger: {
      TypeRef type = c.type();
      const hlo::Type scalar = type ? element_type(type) : hlo::Type::Invalid;
      if (scalar == hlo::Type::Invalid) return bytecode_error(offset, "an integer attribute without an integer type");
      const int width = scalar == hlo::Type::PRED ? 1 : type_info(scalar).bits;
      Attr* out = program_.make_attr(scalar == hlo::Type::PRED ? Attr::Kind::Bool : Attr::Kind::Int);
      const uint64_t bits = read_ap_int(c.r, width);
      out->integer = scalar == hlo::Type::PRED ? static_cast<int64_t>(bits != 0) : sign_extend(bits, width);
      out->type = type;
      return AttrRef{out};
    }
    case kFloat:
      return decode_float(c, offset);
    case kDenseArray: {
      TypeRef type = c.type();
      const uint64_t size = c.r.varint();
      const std::string_view blob = c.r.take(c.r.varint());
      const hlo::Type element = element_type(type);
      const bool number = is_integer(element) || is_float(element) || element == hlo::Type::PRED;
      const bool plain = type && type->kind != Type::Kind::Quantized;
      const uint64_t width = plain && number ? static_cast<uint64_t>(element_bytes(type)) : 0;
      if (c.r.failed() || width == 0 || blob.size() % width != 0 || blob.size() / width != size)
        return bytecode_error(offset, "a dense array does not fit its type");
      return dense_array(type, blob, offset);
    }
    case kDenseElements: {
      TypeRef type = c.type();
      const std::string_view blob = c.r.take(c.r.varint());
      return dense(type, blob, offset);
    }
    default:
      return unimplemented("artifact, byte " + std::to_string(offset) + ": builtin attribute of code " +
                           std::to_string(code));
  }
}

}  // namespace collet::hlo::mlir
