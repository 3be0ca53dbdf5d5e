// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hlo/ir/module.h"
#include "hlo/passes/pattern_graph.h"

/// \file
/// The structural match of a small module, the form of a pattern, with instructions of a program.

namespace collet::hlo::patterns {

/// How closely instructions must agree.
enum class Agreement : uint8_t {
  Ranks,  ///< ops, element types and ranks; the values of constants and the attributes may differ
  Exact   ///< all: shapes, attributes, constants, called computations
};

/// The match that came furthest before it failed.
struct NearestMiss {
  size_t matched = 0;  ///< instructions
  std::string why;     ///< empty: nothing was tried
};

/// The values that a form returns: the operands of its root if that is a tuple, else the root.
std::vector<InstrId> results_of(const Module& form);

/// Matches the entry of `form` with instructions of `graph` so that its first result is `root`. Operands of commutative ops
/// match in either order; alternatives are tried until `accept` returns true for one. `accept` gets, by the number of the
/// form's instruction, the matching instruction of the program, or None. Returns false if no alternative was accepted.
bool match_form(const Graph& graph, InstrId root, const Module& form, Agreement agreement,
                const std::function<bool(const std::vector<InstrId>& match)>& accept, NearestMiss* miss = nullptr);

}  // namespace collet::hlo::patterns
