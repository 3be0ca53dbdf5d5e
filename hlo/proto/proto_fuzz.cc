// SPDX-License-Identifier: Apache-2.0
// Any bytes are read or refused with a message; what is read can be printed.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "hlo/proto/proto.h"
#include "hlo/text/printer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto module = collet::hlo::read_proto({reinterpret_cast<const char*>(data), size});
  if (!module.ok() && module.status().message().empty()) std::abort();
  if (module.ok()) (void)collet::hlo::print_module(**module);
  return 0;
}
