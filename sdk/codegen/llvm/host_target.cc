// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/host_target.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string_view>

namespace collet::codegen {
namespace {

/// Features without which LLVM makes no code for x86-64.
constexpr std::string_view kNeeded[] = {"64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2"};

/// A processor of the architecture that this process runs on, by LLVM's name (empty: the architecture's least one), with these
/// features; null where LLVM cannot make code for it.
std::unique_ptr<llvm::MCSubtargetInfo> native_subtarget(const std::string& cpu, const std::string& features) {
  llvm::InitializeNativeTarget();
  std::string ignored;
  const std::string triple = llvm::sys::getProcessTriple();
  const llvm::Target* native = llvm::TargetRegistry::lookupTarget(triple, ignored);
  if (!native) return nullptr;
  return std::unique_ptr<llvm::MCSubtargetInfo>(native->createMCSubtargetInfo(triple, cpu, features));
}

Status check_change(const std::string& item, const llvm::StringMap<bool>& features) {
  if (item.size() < 2 || (item[0] != '+' && item[0] != '-')) {
    return {COLLET_INVALID_ARGUMENT, "'" + item + "' is no feature behind + or -"};
  }
  const std::string name = item.substr(1);
  const auto found = features.find(name);
  if (found == features.end()) {
    return {COLLET_INVALID_ARGUMENT, "there is no processor feature '" + name + "'"};
  }
  if (item[0] == '+' && !found->getValue()) {
    return {COLLET_INVALID_ARGUMENT, "this processor has no " + name};
  }
  if (item[0] == '-' && std::find(std::begin(kNeeded), std::end(kNeeded), name) != std::end(kNeeded)) {
    return {COLLET_INVALID_ARGUMENT, "no code can be made without " + name};
  }
  return {};
}

}  // namespace

Status check_features(const std::string& changes) {
  if (changes.empty()) return {};
  const llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  for (size_t start = 0; start <= changes.size();) {
    const size_t end = std::min(changes.find(',', start), changes.size());
    COLLET_CODEGEN_TRY(check_change(changes.substr(start, end - start), features));
    start = end + 1;
  }
  return {};
}

namespace {

/// What follows from a list of features.
Target make_target(std::string cpu, std::map<std::string, bool> on) {
  Target target;
  target.triple = llvm::sys::getProcessTriple();
  target.cpu = std::move(cpu);
  for (const auto& [feature, value] : on) {
    if (!target.features.empty()) target.features += ',';
    target.features += (value ? "+" : "-") + feature;
  }
  const auto evex512 = on.find("evex512");
  bool wide =
      on["avx512f"] && on["avx512bw"] && on["avx512vl"] && on["avx512dq"] && (evex512 == on.end() || evex512->second);
  target.masks = wide;
  target.scales = wide;
  target.vector_bits = wide ? 512 : on["avx2"] ? 256 : 128;
  target.fma = on["fma"] || wide || target.triple.rfind("aarch64", 0) == 0;
  target.half_conversion = on["f16c"] || wide;
  return target;
}

}  // namespace

Target host_target(const std::string& changes) {
  std::map<std::string, bool> on;
  std::string list;
  for (const auto& entry : llvm::sys::getHostCPUFeatures()) on[entry.getKey().str()] = entry.getValue();
  for (const auto& [feature, value] : on) list += (value ? ",+" : ",-") + feature;
  // LLVM knows what goes with what: without AVX there is no AVX2.
  if (const auto processor = native_subtarget("", list)) {
    std::stringstream items(changes);
    for (std::string item; std::getline(items, item, ',');) processor->ApplyFeatureFlag(item);
    for (auto& [feature, value] : on) value = processor->checkFeatures("+" + feature);
  }
  return make_target(llvm::sys::getHostCPUName().str(), std::move(on));
}

Status named_target(const std::string& name, Target& out) {
  const auto generic = native_subtarget("", "");
  if (!generic || name.empty() || !generic->isCPUStringValid(name)) {
    return {COLLET_NOT_FOUND, "there is no processor '" + name + "' of this architecture"};
  }
  const auto processor = native_subtarget(name, "");
  std::map<std::string, bool> on;
  for (const auto& entry : llvm::sys::getHostCPUFeatures())
    on[entry.getKey().str()] = processor->checkFeatures("+" + entry.getKey().str());
  out = make_target(name, std::move(on));
  return {};
}

Status check_runs_here(const Target& target) {
  const llvm::StringMap<bool> here = llvm::sys::getHostCPUFeatures();
  std::stringstream items(target.features);
  for (std::string item; std::getline(items, item, ',');) {
    if (item[0] != '+') continue;
    const auto found = here.find(item.substr(1));
    if (found == here.end() || !found->getValue()) {
      return {COLLET_FAILED_PRECONDITION, "this processor has no " + item.substr(1) + ", which " + target.cpu + " has"};
    }
  }
  return {};
}

}  // namespace collet::codegen
