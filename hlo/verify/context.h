// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "hlo/ops/constraint.h"
#include "hlo/verify/verify.h"

/// \file
/// The state that the parts of the verifier share. Each part is one function that checks one aspect of the module and
/// reports errors.

namespace collet::hlo::verify {

struct Context {
  const Module& module;
  const VerifyOptions& options;
  Diagnostics& diagnostics;

  bool full() const { return diagnostics.full(); }
  void complain(const Instruction& instr, std::string_view text) {
    diagnostics.add({instr.line, 0, concat(instr.name, ": ", text), {}});
  }
  void complain(const Computation& computation, std::string_view text) {
    diagnostics.add({computation.line, 0, concat("computation ", computation.name, ": ", text), {}});
  }
  /// Reports an error about a line of the header; 0 if there is no text.
  void complain(uint32_t line, std::string_view text) { diagnostics.add({line, 0, std::string(text), {}}); }
  void complain(std::string_view text) { complain(0, text); }
  /// Reports an error if `status` is one; returns true if it is OK.
  bool check(const Instruction& instr, const Status& status) {
    if (status.ok()) return true;
    complain(instr, status.message());
    return false;
  }
};

/// Checks ids, owners, parameters, roots, order and control edges. Returns false if the other checks would not be safe.
bool verify_structure(Context& context);
/// Checks the call graph, and which instructions fusions, asynchronous computations and threads may hold.
void verify_calls(Context& context);
/// Checks that asynchronous starts and dones, and sends and receives, fit: users, operands, channels.
void verify_pairs(Context& context);
/// Checks where buffer types `b(...)` may occur, and that each buffer has one writer.
void verify_buffers(Context& context);
/// Checks precisions, layouts, element sizes, shardings and accuracies.
void verify_annotations(Context& context);
/// Checks the entry layout, aliases, buffer donors, and rules that concern the whole module.
void verify_header(Context& context);

/// True if two computations are equal op by op, with equal shapes and attributes. Names may differ.
bool same_computation(const Module& module, CompId a, CompId b);

}  // namespace collet::hlo::verify
