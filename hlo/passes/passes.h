// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"

/// \file
/// A pass is one function, named by a verb, in a file of that name; passes.def lists them. It changes the module in
/// place and says whether it changed anything; after an error the module is still whole but of no use.

namespace collet::hlo {

/// How an instruction is to be treated, by who knows the device. Called for instructions of the entry and of the bodies
/// of control flow.
enum class Claim : uint8_t {
  Take,    ///< the device runs it as it stands
  Expand,  ///< rewrite it into simpler ops
  Leave    ///< neither: the fallback will run it
};

/// The facts about the target that passes may ask for. The defaults are a device that takes everything.
struct PassContext {
  /// Null: everything is taken.
  std::function<Claim(const Module&, InstrId)> claim;
  /// Called before each round in which claim may be asked about instructions that are new, so that a batch can be made
  /// of them. May be null.
  std::function<void(const Module&)> prepare_claims;
  /// Set by legalize with each prepare_claims: instructions numbered from here are new, and not asked about.
  uint32_t claims_end = UINT32_MAX;
  /// The device may have this instruction inside a fusion. Null: any that it takes.
  std::function<bool(const Module&, InstrId)> fusible;
  /// Which of the proposed fusions the device takes, one answer each; the others are dissolved again. Null: all, or none
  /// where claim is set.
  std::function<std::vector<bool>(const Module&, std::span<const InstrId>)> take_fusions;
  /// Instructions in a fusion, at most.
  size_t largest_fusion = 64;
  /// A composite (a call with a name) that is to stay a call. Null: none.
  std::function<bool(const Module&, InstrId)> keep_composite;
  /// The device wants to be asked for a pattern of find_patterns. Null: for all of them.
  std::function<bool(std::string_view name)> wants_pattern;
  /// The device takes while, conditional and call.
  bool control_flow = true;
  /// Constants that folding may make, at most.
  int64_t largest_folded_bytes = int64_t{1} << 20;
  /// Work (elements produced) that folding may spend on one instruction.
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

/// Every pass, in the order of passes.def.
std::span<const PassInfo> passes();
/// Names of the patterns that find_patterns knows.
std::vector<std::string_view> pattern_names();
/// Null when there is none of that name.
const PassInfo* find_pass(std::string_view name);

}  // namespace collet::hlo
