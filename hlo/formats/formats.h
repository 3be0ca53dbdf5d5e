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
/// The one way in and out for programs of any form.

namespace collet::hlo {

enum class Format : uint8_t {
  HloText,
  HloProto,       ///< HloModuleProto; HloProto and HloSnapshot are read too
  StablehloText,  ///< MLIR
  Artifact,       ///< MLIR bytecode of VHLO
};

/// "HLO text".
std::string_view format_name(Format format);
/// Returns the format that `bytes` seem to have. The most certain formats are tried first.
Format format_of(std::string_view bytes);

/// The module, not verified. `format`: nothing takes what the bytes look like. Complaints that have a place are in
/// `diagnostics`, and the first of them in the status; `options` hold for HLO text, and what another form cannot do of
/// them is refused.
Expected<std::unique_ptr<Module>> read_module(std::string_view bytes, const ParseOptions& options,
                                              Diagnostics& diagnostics, std::optional<Format> format = {});

/// The same, verified: what the verifier says joins `diagnostics`, with the places of the instructions where the form is
/// text.
Expected<std::unique_ptr<Module>> read_verified_module(std::string_view bytes, const ParseOptions& options,
                                                       Diagnostics& diagnostics, std::optional<Format> format = {});

/// Proto: an HloModuleProto.
Expected<std::string> write_module(const Module& module, Format format);

}  // namespace collet::hlo
