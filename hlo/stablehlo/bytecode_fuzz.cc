// SPDX-License-Identifier: Apache-2.0
// Fuzz target for untrusted artifacts: reads the bytes and, if that succeeds, translates the program.

#include <cstddef>
#include <cstdint>

#include "hlo/stablehlo/bytecode.h"
#include "hlo/stablehlo/program_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace collet::hlo;
  const auto program = mlir::read_bytecode({reinterpret_cast<const char*>(data), size});
  if (program.ok())
    check_program(**program);
  else if (program.status().message().empty())
    collet::fail_fuzz("refused without a message");
  return 0;
}
