// SPDX-License-Identifier: Apache-2.0
// Fuzzes serialized executables. An input is a list of changes to the bytes of a real one, whose hash is then made right again, as
// somebody who forges bytes would: they must be refused with a message, or load as an executable that can be serialized.

#include <collet/collet.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "hlo/program/block.h"

namespace {

constexpr std::string_view kProgram =
    "HloModule m\nsum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
    "ENTRY e { x = f32[4] parameter(0) z = f32[] constant(0) w = f32[4] constant({0.5, nan, -inf, 2}) "
    "y = f32[4] multiply(x, w) r = f32[] reduce(y, z), dimensions={0}, to_apply=sum ROOT t = (f32[4], f32[]) tuple(y, "
    "r) }";
// Offsets in the header: see serialize.cc.
constexpr std::size_t kHead = 56, kSize = 16;

[[noreturn]] void fail(const std::string& why) {
  std::fputs((why + "\n").c_str(), stderr);
  std::abort();
}

std::string bytes_of(collet_executable* executable) {
  collet_error error{};
  collet_blob* blob = nullptr;
  if (collet_executable_serialize(executable, &blob, &error) != COLLET_OK) fail(error.message);
  std::string out(collet_blob_data(blob), collet_blob_size(blob));
  collet_blob_release(blob);
  return out;
}

struct Whole {
  collet_client* client = nullptr;
  std::string bytes;

  Whole() {
    collet_error error{};
    collet_client_options options{};
    options.struct_size = sizeof options;
    options.backend = "interpreter";
    if (collet_client_open(&options, &client, &error) != COLLET_OK) fail(error.message);
    collet_executable* executable = nullptr;
    collet_module* module = nullptr;
    if (collet_module_read(kProgram.data(), kProgram.size(), nullptr, &module, nullptr, &error) != COLLET_OK)
      fail(error.message);
    if (collet_compile(client, module, nullptr, &executable, &error) != COLLET_OK) fail(error.message);
    collet_module_release(module);
    bytes = bytes_of(executable);
    collet_executable_release(executable);
  }
};

// Each change has four bytes: the low and the high one of a place, what is done there, and a value.
std::string changed(std::string bytes, const std::uint8_t* data, std::size_t size) {
  for (; size >= 4; data += 4, size -= 4) {
    if (bytes.size() <= kHead) break;
    const std::size_t at = kHead + (data[0] | std::size_t{data[1]} << 8) % (bytes.size() - kHead);
    switch (data[2] % 5) {
      case 0:
        bytes[at] = static_cast<char>(data[3]);
        break;
      case 1:
        bytes.insert(at, data[3], static_cast<char>(data[3]));
        break;
      case 2:
        bytes.erase(at, data[3]);
        break;
      case 3:
        bytes.insert(at, bytes.substr(kHead, data[3]));
        break;
      default:
        bytes.resize(at);
    }
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Whole whole;
  std::string bytes = changed(whole.bytes, data, size);
  if (bytes.size() >= kHead) {
    const std::uint64_t rest = bytes.size() - kHead;
    std::memcpy(bytes.data() + kSize, &rest, sizeof rest);
    const collet::hlo::ContentId id = collet::hlo::content_id(std::string_view(bytes).substr(kHead));
    std::memcpy(bytes.data() + kHead - sizeof id, &id, sizeof id);
  }
  collet_error error{};
  collet_executable* executable = nullptr;
  if (collet_executable_load(whole.client, bytes.data(), bytes.size(), nullptr, &executable, &error) != COLLET_OK) {
    if (error.message[0] == '\0') fail("refused without a message");
    return 0;
  }
  if (bytes_of(executable).size() <= kHead) fail("a loaded executable has no bytes");
  collet_executable_release(executable);
  return 0;
}
