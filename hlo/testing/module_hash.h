// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hlo/ir/module.h"
#include "hlo/testing/compare_modules.h"

namespace collet::hlo::testing {

/// Hashes of the instructions and computations of a module, which do not depend on names and ids.
class ModuleHash {
 public:
  ModuleHash(const Module& module, const CompareOptions& options);

  /// Hash of an instruction's op, shape, attributes and called computations, without its operands.
  uint64_t own(InstrId id) const { return own_[index_of(id)]; }
  /// Hash of the value that an instruction computes: its own hash and those of all instructions on which it depends.
  uint64_t value(InstrId id) const { return value_[index_of(id)]; }
  /// Hash of a computation with all its instructions.
  uint64_t computation(CompId id) const { return computation_[index_of(id)]; }
  /// Whether two shapes are equal; layouts count if the options say so.
  bool same_shape(const Shape& a, const Shape& b) const;

 private:
  void visit(CompId c);
  uint64_t hash_own(const Instruction& instr) const;
  uint64_t hash_extras(const Extras& extras) const;
  uint64_t hash_shape(const Shape& shape) const;

  const Module& module_;
  const CompareOptions& options_;
  std::vector<uint64_t> own_, value_, computation_;
};

/// Returns the attributes that any instruction may have, as text.
std::string frontend_text(const Extras& extras);
std::string accuracy_text(const Extras& extras);

}  // namespace collet::hlo::testing
