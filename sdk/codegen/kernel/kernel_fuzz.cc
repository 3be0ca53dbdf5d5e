// SPDX-License-Identifier: Apache-2.0
// Fuzzes the text form of kernels: any bytes must be parsed as a kernel or refused with a place and a message. A parsed
// kernel is printed and parsed again, and must be equal. The verifier must accept any parsed kernel as input without
// crashing.

#include <collet/codegen/kernel_text.h>
#include <collet/codegen/kernel_verify.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace collet::codegen;

[[noreturn]] void fail(const std::string& why) {
  std::fputs((why + "\n").c_str(), stderr);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Kernel kernel;
  const Status read = parse_kernel({reinterpret_cast<const char*>(data), size}, kernel);
  if (!read.ok()) {
    if (read.message().find(": ") == std::string::npos) fail("refused without a place: " + read.message());
    return 0;
  }
  const std::string text = print_kernel(kernel);
  Kernel again;
  const Status second = parse_kernel(text, again);
  if (!second.ok()) fail(text + "\n" + second.message());
  if (again != kernel) fail(text + "\nis read as\n" + print_kernel(again));
  const Status verified = verify_kernel(kernel);
  if (!verified.ok() && verified.message().empty()) fail(text + "\nrefused without a message");
  return 0;
}
