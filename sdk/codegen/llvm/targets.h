// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/codegen/base/status.h"
#include "sdk/codegen/schedule/target.h"

/// \file
/// Targets as LLVM describes them: this machine's, others of its architecture, other architectures.

namespace collet::codegen {

/// INVALID_ARGUMENT unless `changes` is empty or what host_target takes: features that LLVM tells of this machine's
/// processor, each behind + or -. What the processor lacks cannot be switched on, nor what every processor of its kind has
/// be switched off.
Status check_features(const std::string& changes);

/// Describes a processor by LLVM's name ("x86-64-v3", "znver4"). It has this machine's architecture, but need not be its own.
/// NOT_FOUND for a name that LLVM does not know.
Status named_target(const std::string& name, Target& out);

/// FAILED_PRECONDITION unless code for `target` runs on this machine: it names a feature that is missing.
Status check_runs_here(const Target& target);

/// The machine that this runs on. `changes` is a comma-separated list such as "-avx512f"; switching a feature off
/// also switches off what needs it: "-avx512f" leaves AVX2, "-sse3" leaves SSE2.
Target host_target(const std::string& changes);

/// A target for code that is made ahead of time: "x86_64", "aarch64" or "riscv64", and perhaps ":" and a processor by LLVM's
/// name. Without one: the least that hosts of that architecture have today, x86-64-v2, ARMv8-A, RV64GCV. One thread.
/// NOT_FOUND for other names, UNIMPLEMENTED where this build of LLVM makes no such code.
Status cross_target(const std::string& name, Target& out);

/// Makes LLVM's code generators known, once.
void initialize_targets();

}  // namespace collet::codegen
