// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <vector>

#include "hlo/base/float_format.h"
#include "hlo/stablehlo/bytecode_attributes.h"

/// \file
/// The cursor with which the bytecode_*.cc files decode attributes and types: reads numbers, and attributes nested in
/// attributes.

namespace collet::hlo::mlir {

inline uint64_t read_ap_int(ByteReader& r, int width) {
  if (width <= 8) return r.byte();
  return static_cast<uint64_t>(r.svarint());
}

inline double read_ap_float(ByteReader& r, hlo::Type type) {
  const FloatFormat format = float_format(static_cast<uint32_t>(type));
  return decode_float(format, read_ap_int(r, type_info(type).bits));
}

inline double read_f64(ByteReader& r) {
  return std::bit_cast<double>(static_cast<uint64_t>(r.svarint()));
}

inline std::vector<int64_t> read_ints(ByteReader& r) {
  std::vector<int64_t> out(r.count());
  for (int64_t& v : out) v = r.svarint();
  return out;
}

/// Reads one attribute or type; the first error inside of it is kept in `error`.
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
  /// Reads a dictionary: names and their values.
  AttrRef dictionary() {
    Attr* out = owner.program_.make_attr(Attr::Kind::Dict);
    std::vector<NamedAttr> fields(r.count());
    for (NamedAttr& f : fields) {
      AttrRef name = attr();
      f = {name ? name->text : std::string_view(), attr()};
    }
    out->fields = owner.program_.arena().list(fields);
    return AttrRef{out};
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

}  // namespace collet::hlo::mlir
