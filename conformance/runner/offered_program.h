// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/runner/session.h"
#include "hlo/ir/module.h"

/// \file
/// A program as the SDK offers it to a device: after its passes, with patterns and fused groups as single ops.

namespace collet::conformance {

struct OfferedProgram {
  std::unique_ptr<hlo::Module> module;  ///< as it is offered
  std::optional<Program> program;       ///< compiled; nothing where `compiled` is an error
  /// Why the device and its fallback do not run the program; OK where they do.
  Status compiled;
};

/// Reads the program in the file `path` and compiles it for one participant. An error means that it cannot be read, or
/// that no device is asked about it.
Expected<OfferedProgram> offer_program(const Session& session, const std::string& path);

/// The ops of a program: their cases, each once, and what has none.
struct ProgramOps {
  std::vector<Case> cases;
  size_t ops = 0;  ///< instructions that a device is asked about, those of loops and branches counted once
  std::vector<std::string> left_out;  ///< "custom-call 'x': why", each reason once
};
/// Returns the text of a program without the names in it, which is equal for equal programs; a text that is no program is
/// returned as it is.
std::string text_without_names(const std::string& text);
ProgramOps ops_of_program(const hlo::Module& offered, std::string_view name);

}  // namespace collet::conformance
