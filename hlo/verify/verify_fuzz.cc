// SPDX-License-Identifier: Apache-2.0

// Fuzz target: the verifier must give a verdict for every module that the reader accepts, and the instructions of an
// accepted module must have the shapes that inference gives.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "hlo/ops/rules.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace collet;
  using namespace collet::hlo;
  ParseOptions options;
  options.elided_limit = 1 << 20;
  Diagnostics read("fuzz");
  const auto module = parse_module({reinterpret_cast<const char*>(data), size}, options, read);
  if (!module) return 0;
  Diagnostics complaints("fuzz");
  verify_module(*module, {}, complaints);
  if (!complaints.empty()) return 0;
  for (CompId c : module->computations())
    for (InstrId id : (*module)[c].order) {
      const Expected<Shape> shape = infer_shape(*module, (*module)[id]);
      if (!shape.ok() || !shape->compatible((*module)[id].shape)) std::abort();
    }
  return 0;
}
