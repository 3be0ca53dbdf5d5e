// SPDX-License-Identifier: Apache-2.0
// Fuzz target for untrusted text: reads it and, if that succeeds, translates the program.

#include <cstddef>
#include <cstdint>

#include "hlo/stablehlo/program_fuzz.h"
#include "hlo/stablehlo/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace collet::hlo;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (collet::is_huge(text)) return -1;
  collet::Diagnostics diagnostics;
  const auto program = mlir::read_text(text, diagnostics);
  if (program)
    check_program(*program);
  else if (diagnostics.empty())
    collet::fail_fuzz("refused without a complaint");
  return 0;
}
