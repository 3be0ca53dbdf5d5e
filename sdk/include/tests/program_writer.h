// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/program.h>

#include <cstring>
#include <string>
#include <vector>

namespace collet::testing {

/// Writes program blocks, for tests of code that reads them. Add the entry's arguments first, then ops, then call
/// `finish`.
class ProgramWriter {
 public:
  /// Adds an array type and returns its number. Equal types may be added twice.
  uint32_t type(uint32_t element, const std::vector<int64_t>& dims) {
    collet_type type{};
    type.element = element;
    type.dims = list(dims);
    type.elements = 1;
    for (int64_t dim : dims) type.elements *= static_cast<uint64_t>(dim);
    type.bytes = type.elements * collet_type_bytes(element);
    types.push_back(type);
    return static_cast<uint32_t>(types.size() - 1);
  }
  collet_range list(const std::vector<int64_t>& elements) {
    const auto first = static_cast<uint32_t>(integers.size());
    integers.insert(integers.end(), elements.begin(), elements.end());
    return {first, static_cast<uint32_t>(elements.size())};
  }
  /// Adds characters, for attributes that are strings.
  collet_range text(const std::string& characters) {
    const auto first = static_cast<uint32_t>(bytes.size());
    bytes.insert(bytes.end(), characters.begin(), characters.end());
    return {first, static_cast<uint32_t>(characters.size())};
  }
  uint32_t value(uint32_t type, uint32_t flags = 0) {
    collet_value value{};
    value.type = type;
    value.flags = flags;
    value.offset = COLLET_NONE64;
    values.push_back(value);
    return static_cast<uint32_t>(values.size() - 1);
  }
  uint32_t argument(uint32_t type, uint32_t flags = 0) { return value(type, flags | COLLET_VALUE_ARGUMENT); }

  /// Appends an op with one result; returns the result's value.
  template <class Record>
  uint32_t op(uint32_t opcode, uint32_t type, const std::vector<uint32_t>& operands, const Record& record) {
    const uint32_t result = op(opcode, type, operands);
    ops.back().record = static_cast<uint32_t>(records.size());
    ops.back().record_bytes = sizeof record;
    records.resize(records.size() + (sizeof record + 7) / 8 * 8);
    std::memcpy(&records[ops.back().record], &record, sizeof record);
    return result;
  }
  uint32_t op(uint32_t opcode, uint32_t type, const std::vector<uint32_t>& operands) {
    collet_op op{};
    op.opcode = opcode;
    op.since = 1;
    op.operands = ref_list(operands);
    op.results = {value(type), 1};
    ops.push_back(op);
    return op.results.first;
  }
  /// Appends a constant op.
  template <class T>
  uint32_t constant(uint32_t type, const std::vector<T>& elements) {
    data.resize((data.size() + 63) / 64 * 64);
    collet_constant constant{};
    constant.type = type;
    constant.argument = COLLET_NONE;
    constant.offset = data.size();
    constant.bytes = elements.size() * sizeof(T);
    data.resize(data.size() + constant.bytes);
    std::memcpy(&data[constant.offset], elements.data(), constant.bytes);
    constants.push_back(constant);
    return op(COLLET_OP_CONSTANT, type, {}, collet_constant_attrs{static_cast<uint32_t>(constants.size() - 1), 0});
  }
  /// Gives the last op a region that combines two scalars.
  void region(uint32_t combine) {
    collet_region region{};
    region.combine = combine;
    region.op = static_cast<uint32_t>(ops.size() - 1);
    ops.back().regions = {static_cast<uint32_t>(regions.size()), 1};
    regions.push_back(region);
  }
  void alias(uint32_t result, uint32_t argument) { aliases.push_back({result, argument, COLLET_ALIAS_MAY, 0}); }

  /// Returns the block. The first `argument_count` values are the entry's arguments; all ops belong to the entry.
  std::vector<uint64_t> finish(uint32_t argument_count, const std::vector<uint32_t>& results) {
    regions[0].ops = {0, static_cast<uint32_t>(ops.size())};
    regions[0].arguments = {0, argument_count};
    regions[0].results = ref_list(results);
    regions[0].op = COLLET_NONE;
    collet_program head{};
    head.magic = COLLET_PROGRAM_MAGIC;
    head.struct_size = sizeof head;
    head.opset = COLLET_OPSET;
    head.arena_bytes = arena_bytes;
    head.arena_alignment = 64;
    head.replica_count = head.partition_count = 1;
    std::string block(sizeof head, '\0');
    head.types = append(&block, types);
    head.values = append(&block, values);
    head.ops = append(&block, ops);
    head.regions = append(&block, regions);
    head.constants = append(&block, constants);
    head.aliases = append(&block, aliases);
    head.refs = append(&block, refs);
    head.integers = append(&block, integers);
    head.records = append(&block, records);
    head.bytes = append(&block, bytes);
    head.data = append(&block, data);
    head.total_bytes = block.size();
    std::memcpy(&block[0], &head, sizeof head);
    std::vector<uint64_t> out((block.size() + 7) / 8);
    std::memcpy(out.data(), block.data(), block.size());
    return out;
  }

  std::vector<collet_type> types;
  std::vector<collet_value> values;
  std::vector<collet_op> ops;
  std::vector<collet_region> regions = std::vector<collet_region>(1);
  std::vector<collet_constant> constants;
  std::vector<collet_alias> aliases;
  std::vector<uint32_t> refs;
  std::vector<int64_t> integers;
  std::vector<uint8_t> records, bytes, data;
  uint64_t arena_bytes = 0;

 private:
  collet_range ref_list(const std::vector<uint32_t>& ids) {
    const auto first = static_cast<uint32_t>(refs.size());
    refs.insert(refs.end(), ids.begin(), ids.end());
    return {first, static_cast<uint32_t>(ids.size())};
  }
  template <class T>
  static collet_array append(std::string* block, const std::vector<T>& elements) {
    block->resize((block->size() + 63) / 64 * 64);
    const collet_array array{block->size(), static_cast<uint32_t>(elements.size()), sizeof(T)};
    if (!elements.empty()) block->append(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T));
    return array;
  }
};

inline const collet_program* program_of(const std::vector<uint64_t>& block) {
  return reinterpret_cast<const collet_program*>(block.data());
}

}  // namespace collet::testing
