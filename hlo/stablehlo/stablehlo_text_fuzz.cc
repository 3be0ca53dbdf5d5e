// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "hlo/stablehlo/import.h"
#include "hlo/stablehlo/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  collet::Diagnostics diagnostics;
  auto program = collet::hlo::mlir::read_text({reinterpret_cast<const char*>(data), size}, diagnostics);
  if (program) (void)collet::hlo::import_program(*program).ok();
  return 0;
}
