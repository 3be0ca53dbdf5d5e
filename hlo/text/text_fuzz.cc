// SPDX-License-Identifier: Apache-2.0
// Any bytes are read or refused with a complaint; what is read is printed, read again and printed as the same text.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "hlo/text/parser.h"
#include "hlo/text/printer.h"

namespace {

using namespace collet;
using namespace collet::hlo;

[[noreturn]] void fail(const std::string& why) {
  std::fputs((why + "\n").c_str(), stderr);
  std::abort();
}

void check(std::string_view text, const ParseOptions& read, const PrintOptions& print) {
  Diagnostics diagnostics("input", 8);
  const auto module = parse_module(text, read, diagnostics);
  if (!module) {
    if (diagnostics.empty()) fail("refused without a complaint");
    for (const Diagnostic& d : diagnostics.list())
      if (d.line == 0 || d.column == 0 || d.message.empty()) fail("complaint without a place or a message");
    (void)diagnostics.to_string();
    return;
  }
  const std::string once = print_module(*module, print);
  ParseOptions again_options = read;
  again_options.floats_as_f64 = false;
  const auto again = parse_module(once, "printed", again_options);
  if (!again.ok()) fail(once + "\n" + again.status().message());
  const std::string twice = print_module(**again, print);
  if (once != twice) fail(once + "\n---\n" + twice);
  PrintOptions canonical;
  canonical.style = PrintStyle::Fingerprint;
  (void)print_module(*module, canonical);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ParseOptions read;
  read.elided_limit = 1 << 16;
  PrintOptions print;
  // The length chooses, so that every input is reproducible.
  if (size % 3 == 1) print.style = PrintStyle::Short;
  if (size % 5 == 0) read.floats_as_f64 = true;
  check(text, read, print);
  return 0;
}
