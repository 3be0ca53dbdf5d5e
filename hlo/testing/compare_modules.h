// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hlo/ir/module.h"

/// \file
/// The structural difference of two modules. Names, ids and the order of independent instructions are ignored. Instructions are
/// matched by the values that they compute; those that have no equal are matched by their users and operands.

namespace collet::hlo::testing {

/// The parts that are compared. Metadata, statistics and origins never are.
struct CompareOptions {
  bool layouts = true;
  bool literals = true;
  bool shardings = true;
  bool frontend_attributes = true;
  bool backend_configs = true;
  bool header = true;    ///< aliases, donors, replicas and partitions, whether it is scheduled
  bool schedule = true;  ///< the order of instructions, where both modules are scheduled
};

/// One thing that differs.
struct Difference {
  enum class Kind : uint8_t {
    Changed,  ///< an instruction of both modules that differs
    OnlyA,    ///< an instruction or computation of the first module only
    OnlyB,    ///< one of the second module only
    Header,   ///< a difference between the modules, or two computations, as a whole
  };
  struct Detail {
    std::string what, a, b;
  };
  Kind kind = Kind::Changed;
  CompId computation_a = CompId::None, computation_b = CompId::None;
  InstrId a = InstrId::None, b = InstrId::None;
  std::vector<Detail> details = {};
};

/// Returns all differences, each once, those of the entry first, in the order of the text. The list is empty if there are none.
std::vector<Difference> compare_modules(const Module& a, const Module& b, const CompareOptions& options = {});

}  // namespace collet::hlo::testing
