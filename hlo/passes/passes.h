// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// A pass is one function, named by a verb, in a file of that name; passes.def lists the passes. It changes the module
/// in place and returns whether it changed anything. After an error the module is still consistent, but its contents
/// are unspecified.

namespace collet::hlo {

class PatternMatcher;

/// Says how an instruction of the entry or of the body of a control-flow op is compiled; the caller, which knows the
/// device, decides this.
enum class Claim : uint8_t {
  Take,    ///< the device runs it unchanged
  Expand,  ///< rewrite it into simpler ops
  Leave    ///< neither: the fallback will run it
};

/// What passes need to know about the target. The defaults describe a device that supports everything.
struct PassContext {
  /// Decides about an instruction. Null: the device takes every instruction.
  std::function<Claim(const Module&, InstrId)> claim;
  /// Called before each round in which claim may be called for new instructions, so that they can be queried in one
  /// batch. May be null.
  std::function<void(const Module&)> prepare_claims;
  /// legalize sets this when it calls prepare_claims: instructions with this number or a larger one are new, and the
  /// device has not been asked about them.
  uint32_t claims_end = UINT32_MAX;
  /// True if the device supports this instruction inside a fusion. Null: any instruction that it takes.
  std::function<bool(const Module&, InstrId)> fusible;
  /// Returns for each proposed fusion whether the device takes it; the others are dissolved again. Null: all are taken,
  /// or none if claim is set.
  std::function<std::vector<bool>(const Module&, std::span<const InstrId>)> take_fusions;
  /// Largest number of instructions in a fusion.
  size_t largest_fusion = 64;
  /// True if a composite (a call with a name) must stay a call. Null: none.
  std::function<bool(const Module&, InstrId)> keep_composite;
  /// True if the device may support the pattern `name` of find_patterns, for a group that needs these COLLET_FEATURE_*. Null:
  /// all groups are offered.
  std::function<bool(std::string_view name, uint32_t features)> wants_pattern;
  /// Called for each group of a pattern that the device supports but for some of the COLLET_FEATURE_* that the group needs.
  /// `root` is its result. A smaller part of it may be offered. May be null.
  std::function<void(const Module&, InstrId root, std::string_view name, uint32_t features)> not_offered;
  /// Patterns that the device declares itself. They are looked for before those that find_patterns knows, in this order.
  std::vector<std::shared_ptr<const PatternMatcher>> declared_patterns = {};
  /// True if the device supports while, conditional and call.
  bool control_flow = true;
  /// Limits for a loop that unroll_loops unrolls: iterations, and instructions of all of them.
  int64_t most_unrolled_trips = 4;
  size_t most_unrolled_instructions = 128;
  /// Raises these limits so far that the loops over the layers of a model are unrolled, too.
  void unroll_layers() {
    most_unrolled_trips = 256;
    most_unrolled_instructions = size_t{1} << 15;
  }
  /// Largest constant, in bytes, that constant folding may create.
  int64_t largest_folded_bytes = int64_t{1} << 20;
  /// Most work, in elements produced, that constant folding may spend on one instruction.
  int64_t largest_folded_work = int64_t{1} << 22;
  int64_t replica_count = 1;
  int64_t partition_count = 1;
};

using PassFunction = Expected<bool> (*)(Module&, PassContext&);

#define COLLET_PASS(name, text, idempotent) Expected<bool> name(Module& module, PassContext& context);
#include "hlo/passes/passes.def"

struct PassInfo {
  std::string_view name;
  std::string_view text;
  bool idempotent;
  PassFunction run;
};

/// Returns every pass, in the order of passes.def.
std::span<const PassInfo> passes();
/// Returns the names of the patterns that find_patterns knows.
std::vector<std::string_view> pattern_names();
/// Returns the pass of that name; null if there is none.
const PassInfo* find_pass(std::string_view name);

}  // namespace collet::hlo
