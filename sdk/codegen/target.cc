// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/target.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>

#include <map>
#include <sstream>

namespace collet::codegen {
namespace {

/// Features that go with the first.
struct Implied {
  const char* feature;
  const char* prefix;  ///< all features whose names begin so
};
constexpr Implied kImplied[] = {
    {"avx512f", "avx512"}, {"avx512f", "amx"}, {"avx512f", "avx10"}, {"avx2", "avx512"}, {"avx2", "avxvnni"},
    {"avx", "avx"},        {"avx", "fma"},     {"avx", "f16c"},      {"avx", "vaes"},    {"avx", "vpclmul"},
    {"avx2", "vaes"},      {"avx", "sha512"},  {"avx", "sm3"},       {"avx", "sm4"},     {"sse3", "ssse3"},
    {"sse3", "sse4"},      {"sse3", "avx"},    {"sse3", "fma"},      {"sse3", "f16c"},   {"sse3", "vaes"},
    {"sse3", "vpclmul"},   {"sse3", "amx"},    {"sse3", "sha512"},   {"sse3", "sm3"},    {"sse3", "sm4"},
    {"sse3", "gfni"},
};

}  // namespace

Target host_target(const std::string& changes) {
  std::map<std::string, bool> on;
  for (const auto& entry : llvm::sys::getHostCPUFeatures()) on[entry.getKey().str()] = entry.getValue();
  std::stringstream list(changes);
  for (std::string item; std::getline(list, item, ',');) {
    if (item.size() < 2 || (item[0] != '+' && item[0] != '-')) continue;
    std::string name = item.substr(1);
    if (item[0] == '+') {
      on[name] = true;
      continue;
    }
    on[name] = false;
    for (const Implied& implied : kImplied) {
      if (name != implied.feature) continue;
      for (auto& [feature, value] : on) {
        if (feature.rfind(implied.prefix, 0) == 0) value = false;
      }
    }
  }
  Target target;
  target.triple = llvm::sys::getProcessTriple();
  target.cpu = llvm::sys::getHostCPUName().str();
  for (const auto& [feature, value] : on) {
    if (!target.features.empty()) target.features += ',';
    target.features += (value ? "+" : "-") + feature;
  }
  bool wide = on["avx512f"] && on["avx512bw"] && on["avx512vl"] && on["avx512dq"];
  target.masks = wide;
  target.scales = wide;
  target.vector_bits = wide ? 512 : on["avx2"] ? 256 : 128;
  target.fma = on["fma"] || wide || target.triple.rfind("aarch64", 0) == 0;
  target.half_conversion = on["f16c"] || wide;
  target.bf16_dot = wide && on["avx512bf16"];
  target.int8_dot = wide && on["avx512vnni"];
  return target;
}

}  // namespace collet::codegen
