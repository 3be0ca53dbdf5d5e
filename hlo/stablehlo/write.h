// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"
#include "hlo/stablehlo/mlir.h"
#include "hlo/stablehlo/op_schemas.h"

namespace collet::hlo {

/// The version of artifacts that is written by default.
constexpr std::string_view kDefaultArtifactVersion = "1.17.0";

/// Writes a module as StableHLO text. An instruction that StableHLO and CHLO cannot express is an error that names it.
Expected<std::string> write_stablehlo_text(const Module& module);
/// Writes a module as a portable artifact of a version from 0.9.0 on, for example "1.17.0".
Expected<std::string> write_stablehlo_artifact(const Module& module,
                                               std::string_view version = kDefaultArtifactVersion);

/// The values of the exported program that stand for instructions of the entry which are one value.
using ExportedValues = std::unordered_map<InstrId, mlir::Value*>;

/// Converts a module to the program that both functions above write. Layouts, schedules and metadata are dropped;
/// fusions are replaced by the ops inside of them, asynchronous pairs by their synchronous op. Stores the entry's values in
/// `values` unless it is null.
Expected<std::unique_ptr<mlir::Program>> export_program(const Module& module, ExportedValues* values = nullptr);

namespace mlir {

/// Returns the StableHLO text of a program.
std::string print_program(const Program& program);
/// Returns one attribute as MLIR prints it.
std::string attr_to_string(AttrRef attr);

/// Writes a portable artifact of a program. Ops of dialects other than StableHLO need version 1.11.0. An op, attribute
/// or type that the version does not have is an error that names it.
Expected<std::string> write_bytecode(const Program& program, uint64_t version);
/// Converts "1.17.0" to a number; an error if that version cannot be written.
Expected<uint64_t> parse_vhlo_version(std::string_view text);

}  // namespace mlir
}  // namespace collet::hlo
