// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "hlo/stablehlo/bytecode.h"
#include "hlo/stablehlo/import.h"

// Artifacts that nobody vouches for: read, and translated where they can be read.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto program = collet::hlo::mlir::read_bytecode({reinterpret_cast<const char*>(data), size});
  if (program.ok()) (void)collet::hlo::import_program(**program).ok();
  return 0;
}
