// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"
#include "hlo/stablehlo/mlir.h"
#include "hlo/stablehlo/op_schemas.h"

namespace collet::hlo {

/// The version of artifacts that are asked for by no other name.
constexpr std::string_view kDefaultArtifactVersion = "1.17.0";

/// A module as StableHLO text. What StableHLO and CHLO have no word for is an error that names the instruction.
Expected<std::string> write_stablehlo_text(const Module& module);
/// A module as a portable artifact of a version from 0.9.0 on: "1.17.0".
Expected<std::string> write_stablehlo_artifact(const Module& module,
                                               std::string_view version = kDefaultArtifactVersion);

/// The tree that both write. Layouts, schedules and metadata have no place in it; fusions stand as the ops inside of
/// them, asynchronous pairs as the op that they are halves of.
Expected<std::unique_ptr<mlir::Program>> export_program(const Module& module);

namespace mlir {

/// StableHLO text of a program.
std::string print_program(const Program& program);
/// One attribute as MLIR prints it.
std::string attr_to_string(AttrRef attr);

/// A portable artifact of a program. Ops of other dialects than StableHLO's need version 1.11.0. An op, attribute or
/// type that the version lacks is an error that names it.
Expected<std::string> write_bytecode(const Program& program, uint64_t version);
/// "1.17.0" as a number; an error when it is no version that can be written.
Expected<uint64_t> parse_vhlo_version(std::string_view text);

}  // namespace mlir
}  // namespace collet::hlo
