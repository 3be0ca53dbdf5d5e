// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes must be read, or refused with an error. A module that was read is printed, read again and
// printed, which must give the same text. If the verifier accepts the module, it must accept it again after that.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "hlo/base/fuzz.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace {

using namespace collet;
using namespace collet::hlo;

void check(std::string_view text, const ParseOptions& read, const PrintOptions& print) {
  Diagnostics diagnostics("input", 2);
  const auto module = parse_module(text, read, diagnostics);
  if (!module) {
    if (diagnostics.empty()) fail_fuzz("refused without a complaint");
    for (const Diagnostic& d : diagnostics.list())
      if (d.line == 0 || d.column == 0 || d.message.empty()) fail_fuzz("complaint without a place or a message");
    return;
  }
  const std::string once = print_module(*module, print);
  ParseOptions again_options = read;
  again_options.floats_as_f64 = false;
  const auto again = parse_module(once, "printed", again_options);
  if (!again.ok()) fail_fuzz(once + "\n" + again.status().message());
  const std::string twice = print_module(**again, print);
  if (once != twice) fail_fuzz(once + "\n---\n" + twice);
  if (!verify_module(*module).ok() || print.style != PrintStyle::Long) return;
  const Status status = verify_module(**again);
  if (!status.ok()) fail_fuzz(once + "\nis verified, and not once it is printed: " + status.message());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (collet::is_huge(text)) return -1;
  ParseOptions read;
  read.elided_limit = 1 << 12;
  PrintOptions print;
  // The length of the input selects the style, so that every input is reproducible.
  if (size % 3 == 1) print.style = PrintStyle::Short;
  if (size % 5 == 0) read.floats_as_f64 = true;
  check(text, read, print);
  return 0;
}
