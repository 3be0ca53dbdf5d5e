// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/bytecode_attributes.h"
#include "hlo/stablehlo/text.h"

#include <bit>

#include "hlo/base/float_format.h"
#include "hlo/ir/shape.h"
#include "hlo/stablehlo/enums.h"

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

/// An integer of MLIR's APInt encoding, for widths up to 64.
uint64_t read_ap_int(ByteReader& r, int width) {
  if (width <= 8) return r.byte();
  return static_cast<uint64_t>(r.svarint());
}

double read_ap_float(ByteReader& r, hlo::Type type) {
  const FloatFormat format = float_format(static_cast<uint32_t>(type));
  return decode_float(format, read_ap_int(r, type_info(type).bits));
}

double read_f64(ByteReader& r) {
  return std::bit_cast<double>(static_cast<uint64_t>(r.svarint()));
}

int64_t sign_extend(uint64_t bits, int width) {
  if (width >= 64 || width <= 0) return static_cast<int64_t>(bits);
  const uint64_t sign = uint64_t{1} << (width - 1);
  bits &= (uint64_t{1} << width) - 1;
  return static_cast<int64_t>((bits ^ sign) - sign);
}

std::vector<int64_t> read_ints(ByteReader& r) {
  std::vector<int64_t> out(r.count());
  for (int64_t& v : out) v = r.svarint();
  return out;
}

/// The types of ours that builtin's integers are.
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

struct BytecodeAttributes::Cursor {
  BytecodeAttributes& owner;
  ByteReader r;
  int depth;
  Status error{};

  AttrRef attr() {
    auto got = owner.attr(r.varint(), depth + 1);
    return keep(got);
  }
  TypeRef type() {
    auto got = owner.type(r.varint(), depth + 1);
    return keep(got);
  }
  std::string_view string() {
    const uint64_t i = r.varint();
    if (r.failed() || i >= owner.file_.strings.size()) {
      r.fail();
      return {};
    }
    return owner.program_.arena().string(owner.file_.strings[i]);
  }
  List<const AttrRef> attrs() {
    std::vector<AttrRef> out(r.count());
    for (AttrRef& a : out) a = attr();
    return owner.program_.arena().list(out);
  }
  List<const TypeRef> types() {
    std::vector<TypeRef> out(r.count());
    for (TypeRef& t : out) t = type();
    return owner.program_.arena().list(out);
  }
  List<const int64_t> ints() { return owner.program_.arena().list(read_ints(r)); }

 private:
  template <typename T>
  T keep(Expected<T>& got) {
    if (got.ok()) return *got;
    if (error.ok()) error = got.status();
    r.fail();
    return nullptr;
  }
};

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
      // What nobody asks about may be anything: its size is known.
      Attr* raw = program_.make_attr(Attr::Kind::Raw);
      raw->text = program_.arena().string("#" + std::string(dialect) + ".undecoded");
      out = AttrRef{raw};
    }
    if (out.ok() && !c.error.ok()) out = c.error;
    if (out.ok() && c.r.failed())
      out = bytecode_error(entry.offset, "attribute " + std::to_string(index) + " is cut short");
  }
  if (!out.ok()) return out;
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
    else
      out = unimplemented("artifact, byte " + std::to_string(entry.offset) + ": types of dialect " +
                          std::string(dialect) + " are not known");
    if (out.ok() && !c.error.ok()) out = c.error;
    if (out.ok() && c.r.failed()) out = bytecode_error(entry.offset, "type " + std::to_string(index) + " is cut short");
  }
  if (!out.ok()) return out;
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
    out->bytes = program_.arena().string(unpacked);
    return AttrRef{out};
  }
  const auto width = static_cast<uint64_t>(bytes);
  if (blob.size() == width && n != 1)
    out->splat = true;
  else if (blob.size() / width != n || blob.size() % width != 0)
    return bytecode_error(offset, "the elements of " + to_string(type) + " do not fit it");
  const int bits = type_info(element).bits;
  if (bits < 8 && is_integer(element)) {
    // MLIR keeps them without their sign.
    std::string extended(blob);
    for (char& c : extended) {
      const auto raw = static_cast<uint8_t>(static_cast<uint8_t>(c) & ((1u << bits) - 1));
      c = static_cast<char>(is_signed(element) ? sign_extend(raw, bits) : raw);
    }
    out->bytes = program_.arena().string(extended);
    return AttrRef{out};
  }
  out->bytes = program_.arena().string(blob);
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
    case kDictionary: {
      Attr* out = program_.make_attr(Attr::Kind::Dict);
      std::vector<NamedAttr> fields(c.r.count());
      for (NamedAttr& f : fields) {
        AttrRef name = c.attr();
        f = {name ? name->text : std::string_view(), c.attr()};
      }
      out->fields = program_.arena().list(fields);
      return AttrRef{out};
    }
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
    case kFloat: {
      TypeRef type = c.type();
      const hlo::Type scalar = type ? element_type(type) : hlo::Type::Invalid;
      if (!is_float(scalar)) return bytecode_error(offset, "a float attribute without a float type");
      Attr* out = program_.make_attr(Attr::Kind::Float);
      out->number = read_ap_float(c.r, scalar);
      out->type = type;
      return AttrRef{out};
    }
    case kDenseArray: {
      TypeRef type = c.type();
      const uint64_t size = c.r.varint();
      const std::string_view blob = c.r.take(c.r.varint());
      const int width = type ? element_bytes(type) : 0;
      if (c.r.failed() || width <= 0 || blob.size() != size * static_cast<uint64_t>(width))
        return bytecode_error(offset, "a dense array does not fit its type");
      Attr* out = program_.make_attr(element_type(type) == hlo::Type::PRED ? Attr::Kind::Bools : Attr::Kind::Ints);
      std::vector<int64_t> values(size);
      for (uint64_t i = 0; i < size; ++i) {
        uint64_t bits = 0;
        std::memcpy(&bits, blob.data() + i * static_cast<uint64_t>(width), static_cast<size_t>(width));
        values[i] = sign_extend(bits, 8 * width);
      }
      out->ints = program_.arena().list(values);
      return AttrRef{out};
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
    case 6: {
      Attr* out = program_.make_attr(Attr::Kind::Dict);
      std::vector<NamedAttr> fields(c.r.count());
      for (NamedAttr& f : fields) {
        AttrRef name = c.attr();
        f = {name ? name->text : std::string_view(), c.attr()};
      }
      out->fields = program_.arena().list(fields);
      return AttrRef{out};
    }
    case 7:
      return enumeration(VhloEnum::FftType);
    case 8: {
      TypeRef type = c.type();
      const hlo::Type scalar = type ? element_type(type) : hlo::Type::Invalid;
      if (!is_float(scalar)) return bytecode_error(offset, "a float attribute without a float type");
      Attr* out = program_.make_attr(Attr::Kind::Float);
      out->number = read_ap_float(c.r, scalar);
      out->type = type;
      return AttrRef{out};
    }
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
      // Mesh axes for replica groups: an op that needs them says that they are not known.
      Attr* out = program_.make_attr(Attr::Kind::Raw);
      out->text = "#vhlo.mesh_axes.undecoded";
      return AttrRef{out};
    }
    default:
      return unimplemented("artifact, byte " + std::to_string(offset) + ": VHLO attribute of code " +
                           std::to_string(code));
  }
}

namespace {

// Attributes that name attributes by number could otherwise grow beyond all bounds.
constexpr size_t kLongestSharding = size_t{1} << 20;

/// The text of an attribute inside of another of its dialect: "#sdy.sharding<@m, [{}]>" is <@m, [{}]> there.
std::string_view inner_text(AttrRef attr, std::string_view prefix) {
  std::string_view text = attr ? attr->text : std::string_view();
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return text;
}

std::string joined(List<const AttrRef> items, std::string_view prefix = {}) {
  std::string out;
  for (AttrRef item : items) {
    if (!out.empty()) out += ", ";
    out += inner_text(item, prefix);
    if (out.size() > kLongestSharding) break;
  }
  return out;
}

std::string quoted_names(List<const AttrRef> items) {
  std::string out;
  for (AttrRef item : items) out += (out.empty() ? "\"" : ", \"") + std::string(item ? item->text : "") + "\"";
  return out;
}

}  // namespace

/// As Shardy prints them.
Expected<AttrRef> BytecodeAttributes::decode_sdy(Cursor& c) {
  const uint64_t offset = c.r.position();
  const uint64_t code = c.r.varint();
  std::string text;
  switch (code) {
    case 0:
      text = "#sdy<manual_axes{" + quoted_names(c.attrs()) + "}>";
      break;
    case 1: {
      text = "\"" + std::string(c.string()) + "\"=";
      text += std::to_string(c.r.svarint());
      break;
    }
    case 2: {
      text = "#sdy.mesh<[" + joined(c.attrs()) + "]";
      std::string ids;
      for (int64_t id : c.ints()) ids += (ids.empty() ? "" : ", ") + std::to_string(id);
      text += ids.empty() ? ">" : ", device_ids=[" + ids + "]>";
      break;
    }
    case 3: {
      const int64_t before = c.r.svarint(), size = c.r.svarint();
      text = ":(" + std::to_string(before) + ")" + std::to_string(size);
      break;
    }
    case 4: {
      text = "\"" + std::string(c.string()) + "\"";
      bool part;
      const uint64_t index = c.r.flagged_varint(&part);
      if (part) {
        COLLET_ASSIGN(AttrRef sub_axis, attr(index, c.depth + 1));
        text += inner_text(sub_axis, {});
      }
      break;
    }
    case 5: {
      const std::string axes = joined(c.attrs());
      const bool closed = c.r.byte() != 0;
      bool has_priority;
      const uint64_t priority = c.r.flagged_varint(&has_priority);
      text = "{" + axes + (closed ? "" : axes.empty() ? "?" : ", ?") + "}";
      if (has_priority) text += "p" + std::to_string(priority);
      break;
    }
    case 6:
    case 15: {
      const AttrRef mesh = c.attr();
      text = "#sdy.sharding<";
      text += mesh && mesh->kind == Attr::Kind::Symbol ? "@" + std::string(mesh->text)
                                                       : std::string(inner_text(mesh, "#sdy."));
      text += ", [" + joined(c.attrs()) + "]";
      if (const std::string axes = joined(c.attrs()); !axes.empty()) text += ", replicated={" + axes + "}";
      if (code == 15)
        if (const std::string axes = joined(c.attrs()); !axes.empty()) text += ", unreduced={" + axes + "}";
      text += ">";
      break;
    }
    case 7:
    case 16:
      text = "#sdy.sharding_per_value<[" + joined(c.attrs(), "#sdy.sharding") + "]>";
      break;
    default:
      text = "#sdy.undecoded";
  }
  if (text.size() > kLongestSharding) return bytecode_error(offset, "a sharding is too long");
  Attr* out = program_.make_attr(Attr::Kind::Raw);
  out->text = program_.arena().string(text);
  return AttrRef{out};
}

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
    default:
      return unimplemented("artifact, byte " + std::to_string(offset) + ": builtin type of code " +
                           std::to_string(code));
  }
}

namespace {

/// Element types by VHLO's codes; Invalid for others.
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

}  // namespace

Expected<TypeRef> BytecodeAttributes::decode_vhlo_type(Cursor& c) {
  const uint64_t offset = c.r.position();
  const uint64_t code = c.r.varint();
  if (const hlo::Type scalar = vhlo_scalar(code); scalar != hlo::Type::Invalid) return program_.scalar(scalar);
  const auto quantized = [&](bool per_axis) -> Expected<TypeRef> {
    Quantization q;
    c.r.varint();  // flags: signedness, which the storage type says too
    TypeRef storage = c.type(), expressed = c.type();
    q.storage = storage ? element_type(storage) : hlo::Type::Invalid;
    q.expressed = expressed ? element_type(expressed) : hlo::Type::Invalid;
    std::vector<double> scales;
    std::vector<int64_t> zero_points;
    if (per_axis) {
      q.axis = static_cast<int64_t>(c.r.varint());
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
    if (!is_integer(q.storage) || !is_float(q.expressed) || scales.size() != zero_points.size())
      return bytecode_error(offset, "a quantized type is damaged");
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
