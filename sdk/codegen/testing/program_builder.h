// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Builds programs in code, for tests of backends: nested regions, attributes, constants, aliases.

#include <collet/program.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace collet::codegen::testing {

class ProgramBuilder;

/// A value of a region under construction.
struct Handle {
  uint32_t element = 0;
  std::vector<int64_t> dims;
  uint32_t id = 0;  ///< number that the builder has given to the value
};

/// A region under construction. Its arguments must be added before its ops.
class RegionBuilder {
 public:
  Handle argument(uint32_t element, std::vector<int64_t> dims = {}, uint32_t flags = 0);
  /// Adds an op with one result.
  Handle op(uint32_t opcode, uint32_t element, std::vector<int64_t> dims, const std::vector<Handle>& operands,
            const std::vector<RegionBuilder*>& regions = {});
  template <typename Record>
  Handle op(uint32_t opcode, uint32_t element, std::vector<int64_t> dims, const std::vector<Handle>& operands,
            const Record& record, const std::vector<RegionBuilder*>& regions = {}) {
    Handle h = op(opcode, element, std::move(dims), operands, regions);
    set_record(&record, sizeof record);
    return h;
  }
  /// Adds an op with several results, which have the types of `like`.
  template <typename Record>
  std::vector<Handle> ops(uint32_t opcode, const std::vector<Handle>& like, const std::vector<Handle>& operands,
                          const Record& record, const std::vector<RegionBuilder*>& regions) {
    std::vector<Handle> r = several(opcode, like, operands, regions);
    set_record(&record, sizeof record);
    return r;
  }
  template <typename T>
  Handle constant(uint32_t element, std::vector<int64_t> dims, std::span<const T> data) {
    return constant_bytes(element, std::move(dims), data.data(), data.size_bytes());
  }
  template <typename T>
  Handle scalar(uint32_t element, T x) {
    return constant_bytes(element, {}, &x, sizeof x);
  }
  /// Broadcasts the operand to `dims`: its dimension i becomes dimension `at[i]`.
  Handle broadcast(const Handle& x, std::vector<int64_t> dims, std::vector<int64_t> at = {});
  Handle reshape(const Handle& x, std::vector<int64_t> dims);
  /// Add an elementwise op whose result has the type of the first operand.
  Handle unary(uint32_t opcode, const Handle& x) { return op(opcode, x.element, x.dims, {x}); }
  Handle binary(uint32_t opcode, const Handle& x, const Handle& y) { return op(opcode, x.element, x.dims, {x, y}); }
  /// Reduces the dimensions `dims` of `x` by one opcode.
  Handle reduce(uint32_t opcode, uint32_t combine, const Handle& x, const Handle& init, std::vector<int64_t> dims);
  void results(std::vector<Handle> handles) { results_ = std::move(handles); }

  uint32_t combine = COLLET_COMBINE_OTHER;

 private:
  friend class ProgramBuilder;
  struct Op {
    uint32_t opcode;
    std::vector<Handle> operands;
    std::vector<Handle> results;
    std::vector<RegionBuilder*> regions;
    std::vector<char> record;
  };
  explicit RegionBuilder(ProgramBuilder* program) : program_(program) {}
  std::vector<Handle> several(uint32_t opcode, const std::vector<Handle>& like, const std::vector<Handle>& operands,
                              const std::vector<RegionBuilder*>& regions);
  void set_record(const void* data, size_t bytes);
  Handle constant_bytes(uint32_t element, std::vector<int64_t> dims, const void* data, size_t bytes);

  ProgramBuilder* program_;
  std::vector<Handle> arguments_;
  std::vector<uint32_t> flags_;
  std::vector<Op> ops_;
  std::vector<Handle> results_;
};

/// Collects regions and writes the program.
class ProgramBuilder {
 public:
  ProgramBuilder() { regions_.push_back(std::unique_ptr<RegionBuilder>(new RegionBuilder(this))); }
  RegionBuilder& entry() { return *regions_[0]; }
  /// Adds a region that an op can refer to.
  RegionBuilder& region() {
    regions_.push_back(std::unique_ptr<RegionBuilder>(new RegionBuilder(this)));
    return *regions_.back();
  }
  /// Returns a list of integers for an attribute record.
  collet_range list(const std::vector<int64_t>& integers);
  void alias(uint32_t result, uint32_t argument, uint32_t kind = COLLET_ALIAS_MAY) {
    aliases_.push_back({result, argument, kind, 0});
  }
  uint32_t replica_count = 1;
  /// Returns the program, which lives as long as this object.
  const collet_program* finish();

 private:
  friend class RegionBuilder;
  uint32_t type(uint32_t element, const std::vector<int64_t>& dims);
  void write(uint32_t region, const RegionBuilder& from, uint32_t op);
  collet_range refs(const std::vector<Handle>& handles);

  std::vector<std::unique_ptr<RegionBuilder>> regions_;
  std::vector<collet_type> types_;
  std::vector<collet_value> values_;
  std::vector<collet_op> ops_;
  std::vector<collet_region> written_;
  std::vector<collet_constant> constants_;
  std::vector<collet_alias> aliases_;
  std::vector<uint32_t> refs_;
  std::vector<int64_t> integers_;
  std::vector<char> records_;
  std::vector<char> data_;
  std::vector<uint32_t> value_of_;  ///< number of the program's value, by handle
  uint32_t next_handle_ = 0;
  std::vector<uint64_t> block_;
};

}  // namespace collet::codegen::testing
