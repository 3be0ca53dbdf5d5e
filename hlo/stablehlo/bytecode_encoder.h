// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/stablehlo/attribute_rules.h"
#include "hlo/stablehlo/byte_writer.h"
#include "hlo/stablehlo/mlir.h"

namespace collet::hlo::mlir {

/// Assigns numbers to the strings, attributes and types of an artifact and encodes them; equal ones share a number.
class BytecodeEncoder {
 public:
  /// Which encoding is used: the versioned one of StableHLO, or that of the builtin dialect, which ops of other
  /// dialects use.
  enum class Dialect : uint8_t { Vhlo, Builtin };
  struct Entry {
    uint32_t dialect;
    std::string bytes;
    bool custom;
  };

  explicit BytecodeEncoder(uint64_t version) : version_(version) {}

  uint64_t string(std::string_view text);
  uint32_t dialect(std::string_view name);
  uint64_t unknown_location();
  Expected<uint64_t> type(TypeRef type, Dialect dialect);
  /// Encodes an attribute. `rule` is the encoding of an attribute that is specific to its op; null for others.
  Expected<uint64_t> attr(AttrRef attr, Dialect dialect, const AttrRule* rule = nullptr);
  /// Encodes a dictionary of the builtin dialect.
  Expected<uint64_t> dictionary(const std::vector<std::pair<std::string_view, uint64_t>>& fields);

  const std::vector<std::string>& strings() const { return strings_; }
  const std::vector<std::string>& dialects() const { return dialects_; }
  const std::vector<Entry>& attrs() const { return attrs_; }
  const std::vector<Entry>& types() const { return types_; }

 private:
  using Table = std::unordered_map<std::string, uint64_t>;
  uint64_t intern(std::vector<Entry>& entries, Table& table, std::string_view dialect, std::string bytes, bool custom);
  uint64_t add_attr(std::string_view dialect, ByteWriter& w) {
    return intern(attrs_, attr_numbers_, dialect, w.take(), true);
  }
  uint64_t add_type(std::string_view dialect, ByteWriter& w) {
    return intern(types_, type_numbers_, dialect, w.take(), true);
  }
  uint64_t builtin_string(std::string_view text);
  uint64_t text_type(std::string_view dialect, std::string_view text);
  Status needs(uint64_t version, std::string_view what) const;

  Expected<uint64_t> vhlo_type(TypeRef type);
  Expected<uint64_t> vhlo_scalar(hlo::Type type);
  Expected<uint64_t> vhlo_quantized(const Quantization& q);
  Expected<uint64_t> builtin_type(TypeRef type);
  Status write_types(ByteWriter& w, List<const TypeRef> types, Dialect dialect);
  Expected<uint64_t> vhlo_attr(AttrRef attr, const AttrRule* rule);
  Expected<uint64_t> vhlo_enum(VhloEnum kind, std::string_view text);
  Expected<uint64_t> vhlo_tensor(AttrRef attr, hlo::Type element, bool table);
  Expected<uint64_t> vhlo_integer(int64_t value, TypeRef type, hlo::Type otherwise);
  Expected<uint64_t> vhlo_array(List<const AttrRef> items, const AttrRule* rule);
  Expected<uint64_t> builtin_attr(AttrRef attr);
  Expected<uint64_t> raw_attr(std::string_view text);

  uint64_t version_;
  std::vector<std::string> strings_, dialects_;
  std::vector<Entry> attrs_, types_;
  Table string_numbers_, dialect_numbers_, attr_numbers_, type_numbers_;
};

}  // namespace collet::hlo::mlir
