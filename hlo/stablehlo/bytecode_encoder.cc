// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/bytecode_encoder.h"

#include <bit>

#include "hlo/base/float_format.h"
#include "hlo/stablehlo/op_schemas.h"

#include "hlo/stablehlo/encode_numbers.h"

namespace collet::hlo::mlir {
namespace {

/// Packs elements as MLIR stores them: i1 as single bits, and integers narrower than a byte without sign extension.
std::string packed(std::string_view bytes, hlo::Type type, bool splat, int64_t count) {
  if (type == hlo::Type::PRED) {
    if (splat && count != 1) return std::string(1, bytes.empty() || !bytes[0] ? '\0' : '\xFF');
    std::string out((static_cast<size_t>(bytes.size()) + 7) / 8, '\0');
    for (size_t i = 0; i < bytes.size(); ++i)
      if (bytes[i]) out[i / 8] = static_cast<char>(out[i / 8] | (1 << (i % 8)));
    return out;
  }
  std::string out(bytes);
  const int bits = type_info(type).bits;
  if (bits < 8 && !is_complex(type))
    for (char& c : out) c = static_cast<char>(c & ((1 << bits) - 1));
  return out;
}

/// Returns the type of the elements of Ints or Bools.
hlo::Type list_element(const Attr& list) {
  if (list.kind == Attr::Kind::Bools) return hlo::Type::PRED;
  return list.type ? element_type(list.type) : hlo::Type::S64;
}

/// Returns the numbers as elements of that type, each of a byte at least.
std::string list_bytes(std::span<const int64_t> values, hlo::Type element) {
  std::string out;
  for (const int64_t v : values) {
    const int64_t stored = element == hlo::Type::PRED ? v != 0 : v;
    out.append(reinterpret_cast<const char*>(&stored), static_cast<size_t>(type_info(element).bytes()));
  }
  return out;
}

}  // namespace

uint64_t BytecodeEncoder::string(std::string_view text) {
  const auto [it, added] = string_numbers_.emplace(std::string(text), strings_.size());
  if (added) strings_.emplace_back(text);
  return it->second;
}

uint32_t BytecodeEncoder::dialect(std::string_view name) {
  const auto [it, added] = dialect_numbers_.emplace(std::string(name), dialects_.size());
  if (added) {
    dialects_.emplace_back(name);
    string(name);
  }
  return static_cast<uint32_t>(it->second);
}

uint64_t BytecodeEncoder::intern(std::vector<Entry>& entries, Table& table, std::string_view dialect_name,
                                 std::string bytes, bool custom) {
  const uint32_t number = dialect(dialect_name);
  std::string key = std::to_string(number) + (custom ? ":" : "=") + bytes;
  const auto [it, added] = table.emplace(std::move(key), entries.size());
  if (added) entries.push_back({number, std::move(bytes), custom});
  return it->second;
}

Status BytecodeEncoder::needs(uint64_t version, std::string_view what) const {
  if (version_ >= version) return {};
  return unimplemented("StableHLO has " + std::string(what) + " only since version " + std::to_string(version >> 40) +
                       "." + std::to_string((version >> 20) & 0xFFFFF) + ".0");
}

uint64_t BytecodeEncoder::unknown_location() {
  ByteWriter w;
  w.varint(15);
  return add_attr("builtin", w);
}

uint64_t BytecodeEncoder::builtin_string(std::string_view text) {
  ByteWriter w;
  w.varint(2);
  w.varint(string(text));
  return add_attr("builtin", w);
}

uint64_t BytecodeEncoder::text_type(std::string_view dialect_name, std::string_view text) {
  return intern(types_, type_numbers_, dialect_name, std::string(text) + '\0', false);
}

Expected<uint64_t> BytecodeEncoder::raw_attr(std::string_view text) {
  if (text.ends_with(".undecoded")) return unimplemented("the attribute " + std::string(text) + " was not decoded");
  // The dialect of "#sdy.sharding<...>" is sdy.
  std::string_view name = text.starts_with('#') ? text.substr(1) : text;
  name = name.substr(0, name.find_first_of(".<"));
  return intern(attrs_, attr_numbers_, text.starts_with('#') ? name : "builtin", std::string(text) + '\0', false);
}

Expected<uint64_t> BytecodeEncoder::vhlo_enum(VhloEnum kind, std::string_view text) {
  static constexpr uint64_t kCodes[] = {3, 4, 5, 7, 11, 12, 13, 16, 19};
  const int64_t value = vhlo_enum_value(kind, text);
  if (value < 0) return invalid_argument("'" + std::string(text) + "' is no value of the enumeration");
  ByteWriter w;
  w.varint(kCodes[static_cast<size_t>(kind)]);
  w.varint(static_cast<uint64_t>(value));
  return add_attr("vhlo", w);
}

Expected<uint64_t> BytecodeEncoder::vhlo_integer(int64_t value, TypeRef type, hlo::Type otherwise) {
  hlo::Type scalar = type ? element_type(type) : otherwise;
  const bool index = type && type->kind == Type::Kind::Index;
  if (!is_integer(scalar)) scalar = otherwise;
  Type plain;
  plain.kind = index ? Type::Kind::Index : Type::Kind::Scalar;
  plain.scalar = scalar;
  COLLET_ASSIGN(uint64_t number, vhlo_type(&plain));
  ByteWriter w;
  w.varint(9);
  w.varint(number);
  write_ap_int(w, static_cast<uint64_t>(value), type_info(scalar).bits);
  return add_attr("vhlo", w);
}

/// Encodes a list of integers or booleans as a tensor.
Expected<uint64_t> BytecodeEncoder::vhlo_tensor(AttrRef attr, hlo::Type element, bool table) {
  std::vector<int64_t> dims{static_cast<int64_t>(attr->ints.size())};
  if (attr->dims.size() > 1)
    dims.assign(attr->dims.begin(), attr->dims.end());
  else if (table)
    dims = {static_cast<int64_t>(attr->ints.size() / 2), 2};
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  if (count != static_cast<int64_t>(attr->ints.size())) return invalid_argument("a list does not fit its shape");
  Arena arena;
  Type scalar, tensor;
  scalar.kind = Type::Kind::Scalar;
  scalar.scalar = element;
  tensor.kind = Type::Kind::Tensor;
  tensor.element = attr->type ? attr->type : &scalar;
  tensor.dims = arena.list(dims);
  COLLET_ASSIGN(uint64_t type, vhlo_type(&tensor));
  // If all elements are equal, one element is written.
  bool splat = count > 1;
  for (int64_t v : attr->ints) splat = splat && v == attr->ints[0];
  const size_t written = splat ? 1 : attr->ints.size();
  const std::string bytes = packed(list_bytes(attr->ints.span().first(written), element), element, splat, count);
  ByteWriter w;
  w.varint(15);
  w.varint(type);
  w.varint(bytes.size());
  w.append(bytes);
  return add_attr("vhlo", w);
}

Expected<uint64_t> BytecodeEncoder::vhlo_array(List<const AttrRef> items, const AttrRule* rule) {
  std::vector<uint64_t> numbers;
  for (AttrRef item : items) {
    if (!item) return invalid_argument("a list has an empty place");
    Expected<uint64_t> number = rule ? vhlo_enum(rule->enumeration, item->text) : vhlo_attr(item, nullptr);
    COLLET_TRY(number.status());
    numbers.push_back(*number);
  }
  ByteWriter w;
  w.varint(1);
  w.varint(numbers.size());
  for (uint64_t n : numbers) w.varint(n);
  return add_attr("vhlo", w);
}

Expected<uint64_t> BytecodeEncoder::vhlo_attr(AttrRef attr, const AttrRule* rule) {
  const AttrForm form = rule ? rule->form : AttrForm::Any;
  if (form == AttrForm::Enum && attr->kind == Attr::Kind::Enum) return vhlo_enum(rule->enumeration, attr->text);
  if (form == AttrForm::Precisions && attr->kind == Attr::Kind::Array) return vhlo_array(attr->items, rule);
  if (form == AttrForm::ApiVersion) {
    const std::string_view text = attr->kind == Attr::Kind::Enum
                                      ? attr->text
                                      : vhlo_enum_text(VhloEnum::ApiVersion, static_cast<uint64_t>(attr->integer));
    return vhlo_enum(VhloEnum::ApiVersion, text);
  }
  ByteWriter w;
  const bool truth = form == AttrForm::Bool || form == AttrForm::Flag || form == AttrForm::Truth;
  if ((truth && attr->kind != Attr::Kind::Type) || attr->kind == Attr::Kind::Bool) {
    w.varint(2);
    w.varint(attr->kind == Attr::Kind::Unit || attr->integer != 0);
    return add_attr("vhlo", w);
  }
  switch (attr->kind) {
    case Attr::Kind::Int:
      return vhlo_integer(attr->integer, form == AttrForm::I64 || form == AttrForm::I32 ? nullptr : attr->type,
                          form == AttrForm::I32 ? hlo::Type::S32 : hlo::Type::S64);
    case Attr::Kind::Float: {
      const hlo::Type scalar = attr->type ? element_type(attr->type) : hlo::Type::F64;
      COLLET_ASSIGN(uint64_t type, vhlo_scalar(scalar));
      if (!is_float(scalar)) return invalid_argument("a number of a type that is no float");
      w.varint(8);
      w.varint(type);
      write_ap_float(w, attr->number, scalar);
      return add_attr("vhlo", w);
    }
    case Attr::Kind::String:
    case Attr::Kind::Symbol:
    case Attr::Kind::Enum:
      w.varint(14);
      w.varint(string(attr->text));
      return add_attr("vhlo", w);
    case Attr::Kind::Array:
      return vhlo_array(attr->items, nullptr);
    case Attr::Kind::Dict: {
      std::vector<uint64_t> numbers;
      for (const NamedAttr& f : attr->fields) {
        Attr name;
        name.kind = Attr::Kind::String;
        name.text = f.name;
        COLLET_ASSIGN(uint64_t key, vhlo_attr(&name, nullptr));
        COLLET_ASSIGN(uint64_t value, this->attr(f.value, Dialect::Vhlo));
        numbers.push_back(key);
        numbers.push_back(value);
      }
      w.varint(6);
      w.varint(numbers.size() / 2);
      for (uint64_t n : numbers) w.varint(n);
      return add_attr("vhlo", w);
    }
    case Attr::Kind::Type: {
      COLLET_ASSIGN(uint64_t type, vhlo_type(attr->type));
      w.varint(17);
      w.varint(type);
      return add_attr("vhlo", w);
    }
    case Attr::Kind::Ints:
      // VHLO has tensors only. Arrays of the usual types, and what was a tensor, become such.
      if (attr->type && attr->dims.empty()) break;
      [[fallthrough]];
    case Attr::Kind::Bools:
      return vhlo_tensor(attr, form == AttrForm::Bools ? hlo::Type::PRED : list_element(*attr),
                         form == AttrForm::Table);
    case Attr::Kind::Dense: {
      COLLET_ASSIGN(uint64_t type, vhlo_type(attr->type));
      const std::string bytes =
          packed(attr->bytes, element_type(attr->type->element), attr->splat, element_count(attr->type));
      w.varint(15);
      w.varint(type);
      w.varint(bytes.size());
      w.append(bytes);
      return add_attr("vhlo", w);
    }
    case Attr::Kind::Alias: {
      const auto n = static_cast<size_t>(attr->ints.empty() ? 0 : attr->ints[0]);
      if (n + 2 > attr->ints.size()) return invalid_argument("an alias is damaged");
      w.varint(10);
      w.varint(n);
      for (size_t i = 1; i <= n; ++i) w.svarint(attr->ints[i]);
      w.svarint(attr->ints[n + 1]);
      w.varint(attr->ints.size() - n - 2);
      for (size_t i = n + 2; i < attr->ints.size(); ++i) w.svarint(attr->ints[i]);
      return add_attr("vhlo", w);
    }
    case Attr::Kind::Accuracy: {
      COLLET_TRY(needs(vhlo_version(1, 9, 0), "result accuracies"));
      COLLET_ASSIGN(uint64_t mode, vhlo_enum(VhloEnum::ResultAccuracyMode, attr->text));
      w.varint(20);
      write_f64(w, attr->floats.size() == 2 ? attr->floats[0] : 0);
      write_f64(w, attr->floats.size() == 2 ? attr->floats[1] : 0);
      w.svarint(attr->integer);
      w.varint(mode);
      return add_attr("vhlo", w);
    }
    default:
      break;
  }
  COLLET_TRY(needs(vhlo_version(1, 11, 0), "attributes of other dialects"));
  return builtin_attr(attr);
}

Expected<uint64_t> BytecodeEncoder::builtin_attr(AttrRef attr) {
  ByteWriter w;
  switch (attr->kind) {
    case Attr::Kind::Unit:
      w.varint(7);
      return add_attr("builtin", w);
    case Attr::Kind::Bool:
    case Attr::Kind::Int: {
      const bool truth = attr->kind == Attr::Kind::Bool;
      Type plain;
      plain.kind = Type::Kind::Scalar;
      plain.scalar = truth ? hlo::Type::PRED : hlo::Type::S64;
      COLLET_ASSIGN(uint64_t type, builtin_type(truth || !attr->type ? &plain : attr->type));
      const hlo::Type scalar = truth || !attr->type ? plain.scalar : element_type(attr->type);
      w.varint(8);
      w.varint(type);
      write_ap_int(w, static_cast<uint64_t>(attr->integer), truth ? 1 : type_info(scalar).bits);
      return add_attr("builtin", w);
    }
    case Attr::Kind::Float: {
      const hlo::Type scalar = attr->type ? element_type(attr->type) : hlo::Type::F64;
      Type plain;
      plain.kind = Type::Kind::Scalar;
      plain.scalar = scalar;
      COLLET_ASSIGN(uint64_t type, builtin_type(&plain));
      w.varint(9);
      w.varint(type);
      write_ap_float(w, attr->number, scalar);
      return add_attr("builtin", w);
    }
    case Attr::Kind::String:
      return builtin_string(attr->text);
    case Attr::Kind::Symbol: {
      const uint64_t text = builtin_string(attr->text);
      w.varint(4);
      w.varint(text);
      return add_attr("builtin", w);
    }
    case Attr::Kind::Array: {
      std::vector<uint64_t> numbers;
      for (AttrRef item : attr->items) {
        COLLET_ASSIGN(uint64_t number, this->attr(item, Dialect::Builtin));
        numbers.push_back(number);
      }
      w.varint(0);
      w.varint(numbers.size());
      for (uint64_t n : numbers) w.varint(n);
      return add_attr("builtin", w);
    }
    case Attr::Kind::Dict: {
      std::vector<std::pair<std::string_view, uint64_t>> fields;
      for (const NamedAttr& f : attr->fields) {
        COLLET_ASSIGN(uint64_t number, this->attr(f.value, Dialect::Builtin));
        fields.emplace_back(f.name, number);
      }
      return dictionary(fields);
    }
    case Attr::Kind::Type: {
      COLLET_ASSIGN(uint64_t type, builtin_type(attr->type));
      w.varint(6);
      w.varint(type);
      return add_attr("builtin", w);
    }
    case Attr::Kind::Dense: {
      COLLET_ASSIGN(uint64_t type, builtin_type(attr->type));
      const std::string bytes =
          packed(attr->bytes, element_type(attr->type->element), attr->splat, element_count(attr->type));
      w.varint(18);
      w.varint(type);
      w.varint(bytes.size());
      w.append(bytes);
      return add_attr("builtin", w);
    }
    case Attr::Kind::Ints:
    case Attr::Kind::Bools: {
      const hlo::Type element = list_element(*attr);
      Type plain;
      plain.kind = Type::Kind::Scalar;
      plain.scalar = element;
      COLLET_ASSIGN(uint64_t type, builtin_type(attr->type ? attr->type : &plain));
      const std::string bytes = list_bytes(attr->ints, element);
      w.varint(17);
      w.varint(type);
      w.varint(attr->ints.size());
      w.varint(bytes.size());
      w.append(bytes);
      return add_attr("builtin", w);
    }
    case Attr::Kind::Location:
      return unknown_location();
    case Attr::Kind::Raw:
      return raw_attr(attr->text);
    default:
      return unimplemented("an attribute that other dialects' ops cannot have");
  }
}

Expected<uint64_t> BytecodeEncoder::attr(AttrRef attr, Dialect dialect, const AttrRule* rule) {
  if (!attr) {
    ByteWriter w;
    w.varint(7);
    return add_attr("builtin", w);
  }
  return dialect == Dialect::Vhlo ? vhlo_attr(attr, rule) : builtin_attr(attr);
}

Expected<uint64_t> BytecodeEncoder::dictionary(const std::vector<std::pair<std::string_view, uint64_t>>& fields) {
  std::vector<uint64_t> numbers;
  for (const auto& [name, value] : fields) {
    numbers.push_back(builtin_string(name));
    numbers.push_back(value);
  }
  ByteWriter w;
  w.varint(1);
  w.varint(fields.size());
  for (uint64_t n : numbers) w.varint(n);
  return add_attr("builtin", w);
}

}  // namespace collet::hlo::mlir
