// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hlo/ir/module.h"

/// \file
/// The structural difference of two modules: names, ids and the order of what is independent play no part. Instructions
/// are matched by what they compute; what cannot be matched so, by its place among those that are.

namespace collet::hlo::testing {

/// What counts. Metadata, statistics and origins never do.
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
    Changed,  ///< an instruction of both, with something else about it
    OnlyA,    ///< an instruction, or a computation, of the first
    OnlyB,
    Header,  ///< something of the modules, or of two computations
  };
  struct Detail {
    std::string what, a, b;
  };
  Kind kind = Kind::Changed;
  CompId computation_a = CompId::None, computation_b = CompId::None;
  InstrId a = InstrId::None, b = InstrId::None;
  std::vector<Detail> details = {};
};

/// Nothing where the modules are the same; else each difference once, the entry's first, in the order of the text.
std::vector<Difference> compare_modules(const Module& a, const Module& b, const CompareOptions& options = {});

}  // namespace collet::hlo::testing
