// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "hlo/base/fuzz.h"
#include "hlo/stablehlo/import.h"
#include "hlo/stablehlo/text.h"
#include "hlo/stablehlo/write.h"
#include "hlo/verify/verify.h"

/// \file
/// The checks that both fuzz targets make on a program that a reader returned.

namespace collet::hlo {

/// Checks that a program is translated, or refused with a message. If the verifier accepts the module, it must be
/// written as text, or refused with a message; reading, verifying and writing that text again must give the same text.
inline void check_program(const mlir::Program& program) {
  const auto module = import_program(program);
  if (!module.ok()) {
    if (module.status().message().empty()) fail_fuzz("refused without a message");
    return;
  }
  if (!verify_module(**module).ok()) return;
  const auto once = write_stablehlo_text(**module);
  if (!once.ok()) {
    if (once.status().message().empty()) fail_fuzz("not written, without a message");
    return;
  }
  const auto read = mlir::read_text(*once, "written");
  if (!read.ok()) fail_fuzz(*once + read.status().message());
  const auto again = import_program(**read);
  if (!again.ok()) fail_fuzz(*once + again.status().message());
  const Status verified = verify_module(**again);
  if (!verified.ok()) fail_fuzz(*once + verified.message());
  // Each translation of rng writes a new constant for the operand that states its shape, so the texts may differ.
  if (once->find("\"stablehlo.rng\"") != std::string::npos) return;
  const auto twice = write_stablehlo_text(**again);
  if (!twice.ok() || *once != *twice) fail_fuzz(*once + "---\n" + (twice.ok() ? *twice : twice.status().message()));
}

}  // namespace collet::hlo
