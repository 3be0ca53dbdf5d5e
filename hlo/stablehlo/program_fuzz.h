// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "hlo/base/fuzz.h"
#include "hlo/stablehlo/import.h"
#include "hlo/stablehlo/text.h"
#include "hlo/stablehlo/write.h"
#include "hlo/verify/verify.h"

/// \file
/// The checks of both fuzz targets on a program that a reader made.

namespace collet::hlo {

/// A program is translated or refused with a message. What the verifier accepts of it is written as text, or refused
/// with a message; that text is read, verified and written as the same text again.
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
  // The operand of rng that is its shape is written anew each time.
  if (once->find("\"stablehlo.rng\"") != std::string::npos) return;
  const auto twice = write_stablehlo_text(**again);
  if (!twice.ok() || *once != *twice) fail_fuzz(*once + "---\n" + (twice.ok() ? *twice : twice.status().message()));
}

}  // namespace collet::hlo
