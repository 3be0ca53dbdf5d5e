// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/emulator/options.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace collet::gpu::emulator {

bool read_options(const std::string& text, Options& out, std::string& problem) {
  std::string_view left = text;
  while (!left.empty()) {
    const std::string_view item = left.substr(0, left.find(','));
    left.remove_prefix(std::min(left.size(), item.size() + 1));
    if (item.empty()) continue;
    const size_t equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    const std::string_view value = equals == item.npos ? "1" : item.substr(equals + 1);
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool is_number = error == std::errc() && end == value.data() + value.size();
    const auto within = [&](uint64_t least, uint64_t most) {
      if (is_number && number >= least && number <= most) return true;
      problem = "COLLET_CUDA_EMULATOR: " + std::string(key) + " takes a number from " + std::to_string(least) + " to " +
                std::to_string(most) + ", and not '" + std::string(value) + "'";
      return false;
    };
    bool* flag = key == "checks"        ? &out.checks
                 : key == "initialised" ? &out.initialised
                 : key == "races"       ? &out.races
                 : key == "exits"       ? &out.exits
                 : key == "leaks"       ? &out.leaks
                 : key == "quiet"       ? &out.quiet
                                        : nullptr;
    if (flag) {
      if (!within(0, 1)) return false;
      *flag = number != 0;
    } else if (key == "seed") {
      if (!within(0, UINT64_MAX)) return false;
      out.seed = number;
    } else if (key == "threads") {
      if (!within(0, 256)) return false;
      out.threads = static_cast<unsigned>(number);
    } else if (key == "devices") {
      if (!within(1, 16)) return false;
      out.devices = static_cast<unsigned>(number);
    } else if (key == "timeout") {
      if (!within(0, 1u << 30)) return false;
      out.timeout = static_cast<unsigned>(number);
    } else if (key == "sm") {
      if (!within(70, 129)) return false;
      out.sm = static_cast<unsigned>(number);
    } else if (key == "memory") {  // in MiB
      if (!within(1, 1u << 20)) return false;
      out.memory = number << 20;
    } else if (key == "quarantine") {  // in MiB
      if (!within(0, 1u << 20)) return false;
      out.quarantine = number << 20;
    } else {
      problem = "COLLET_CUDA_EMULATOR: no such option: " + std::string(key);
      return false;
    }
  }
  return true;
}

}  // namespace collet::gpu::emulator
