// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "hlo/base/diagnostics.h"
#include "hlo/base/status.h"
#include "hlo/ir/module.h"
#include "hlo/text/parser.h"

/// \file
/// Reads and writes programs in any format.

namespace collet::hlo {

enum class Format : uint8_t {
  HloText,
  HloProto,       ///< an HloModuleProto; HloProto and HloSnapshot can be read as well
  StablehloText,  ///< StableHLO as MLIR text
  Artifact,       ///< MLIR bytecode of VHLO
};

/// Returns a name for messages, such as "HLO text".
std::string_view format_name(Format format);
/// Returns the format that `bytes` seem to have. The most certain formats are tried first.
Format format_of(std::string_view bytes);

/// Reads a module without verifying it. Without `format` the format is recognised from the bytes. Messages with a
/// position are added to `diagnostics`, and the first one is in the status. `options` apply to HLO text; for other
/// formats, options that they do not support are an error.
Expected<std::unique_ptr<Module>> read_module(std::string_view bytes, const ParseOptions& options,
                                              Diagnostics& diagnostics, std::optional<Format> format = {});

/// Reads and verifies a module: the verifier's messages are added to `diagnostics`, with the lines of the instructions
/// if the format is text.
Expected<std::unique_ptr<Module>> read_verified_module(std::string_view bytes, const ParseOptions& options,
                                                       Diagnostics& diagnostics, std::optional<Format> format = {});

/// Writes a module; Format::HloProto writes an HloModuleProto.
Expected<std::string> write_module(const Module& module, Format format);

}  // namespace collet::hlo
