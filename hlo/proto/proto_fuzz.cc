// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes must be read, or refused with a message. A module that was read can be printed. If the
// verifier accepts it, it is written as a message; reading that message must give the same module, and writing it again
// the same bytes.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "hlo/base/fuzz.h"
#include "hlo/proto/proto.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace collet;
  using namespace collet::hlo;
  const auto module = read_proto({reinterpret_cast<const char*>(data), size});
  if (!module.ok()) {
    if (module.status().message().empty()) fail_fuzz("refused without a message");
    return 0;
  }
  if (!verify_module(**module).ok()) {
    (void)print_module(**module);
    return 0;
  }
  const std::string text = print_module(**module);
  if (const auto read = parse_module(text, "printed"); !read.ok()) fail_fuzz(text + "\n" + read.status().message());
  const auto once = write_module_proto(**module);
  if (!once.ok()) fail_fuzz("read and not written: " + once.status().message());
  const auto again = read_proto(*once);
  if (!again.ok()) fail_fuzz("written and not read: " + again.status().message());
  const auto twice = write_module_proto(**again);
  if (!twice.ok() || *once != *twice) fail_fuzz(print_module(**module) + "\n---\n" + print_module(**again));
  // Messages always have layouts, so the text is compared with layouts.
  PrintOptions canonical;
  canonical.style = PrintStyle::Fingerprint;
  canonical.layouts = false;
  const std::string a = print_module(**module, canonical), b = print_module(**again, canonical);
  if (a.substr(a.find('\n')) != b.substr(b.find('\n'))) fail_fuzz(a + "\n---\n" + b);
  return 0;
}
