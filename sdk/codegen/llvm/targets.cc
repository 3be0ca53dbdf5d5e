// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/targets.h"

#include <collet/codegen/target.h>

#include <llvm/ADT/StringMap.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/TargetParser/Host.h>

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string_view>

// What LLVM has for each machine. Null where LLVM's archives are linked, and not those of this machine (sdk/cmake/ColletLLVM.cmake).
#define LLVM_TARGET(Name)                                           \
  extern "C" [[gnu::weak]] void LLVMInitialize##Name##TargetInfo(); \
  extern "C" [[gnu::weak]] void LLVMInitialize##Name##Target();     \
  extern "C" [[gnu::weak]] void LLVMInitialize##Name##TargetMC();
#include <llvm/Config/Targets.def>
#define LLVM_ASM_PRINTER(Name) extern "C" [[gnu::weak]] void LLVMInitialize##Name##AsmPrinter();
#include <llvm/Config/AsmPrinters.def>

namespace collet::codegen {
namespace {

/// Features without which LLVM generates no code for x86-64.
constexpr std::string_view kNeeded[] = {"64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2"};

/// Describes a processor of the architecture that this process runs on. `cpu` is LLVM's name of it; empty for the
/// architecture's least processor. Returns null if LLVM cannot generate code for it.
std::unique_ptr<llvm::MCSubtargetInfo> native_subtarget(const std::string& cpu, const std::string& features) {
  initialize_targets();
  std::string ignored;
  const std::string triple = llvm::sys::getProcessTriple();
  const llvm::Target* native = llvm::TargetRegistry::lookupTarget(triple, ignored);
  if (!native) return nullptr;
  return std::unique_ptr<llvm::MCSubtargetInfo>(native->createMCSubtargetInfo(triple, cpu, features));
}

/// True if the architecture that this process runs on has such a feature: the system tells only those that it knows.
bool is_feature(const std::string& name) {
  const auto processor = native_subtarget("", "");
  if (!processor) return false;
  const auto known = processor->getAllProcessorFeatures();
  return std::any_of(known.begin(), known.end(), [&](const auto& feature) { return name == feature.Key; });
}

Status check_change(const std::string& item, const llvm::StringMap<bool>& features) {
  if (item.size() < 2 || (item[0] != '+' && item[0] != '-')) {
    return {COLLET_INVALID_ARGUMENT, "'" + item + "' is no feature behind + or -"};
  }
  const std::string name = item.substr(1);
  const auto found = features.find(name);
  if (found == features.end() && !is_feature(name)) {
    return {COLLET_INVALID_ARGUMENT, "there is no processor feature '" + name + "'"};
  }
  if (item[0] == '+' && (found == features.end() || !found->getValue())) {
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

/// Returns the highest clock of the first core in cycles per nanosecond, or that of a common server if the system does
/// not report it. It is not measured, because it is part of the key of cached code and must always be the same.
double clock_per_ns() {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  double khz = 0;
  return file >> khz && khz > 0 ? khz / 1e6 : 2.5;
}

/// True if products of bf16 are faster by the instruction for two of them than by f32 after a conversion. Intel's processors
/// start it half as often as an f32 multiply-add, and the test for denormals comes on top: a product of 1024 x 1024 x 1024 took
/// 27 ms by it and 14 ms without on a Xeon of 2023 (sapphirerapids).
bool has_fast_bf16_dot(const std::string& cpu, bool has_instruction) {
  const bool is_of_intel = cpu == "cooperlake" || cpu.ends_with("rapids") || cpu.ends_with("rapids-d");
  return has_instruction && !is_of_intel;
}

/// Returns the Target that follows from a list of features.
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
  target.vector_registers = wide || target.triple.rfind("x86_64", 0) != 0 ? 32 : 16;
  target.fma = on["fma"] || wide || target.triple.rfind("aarch64", 0) == 0;
  target.half_conversion = on["f16c"] || wide;
  target.bf16_dot = has_fast_bf16_dot(target.cpu, wide && on["avx512bf16"]);
  target.int8_dot = wide ? on["avx512vnni"] : target.vector_bits == 256 && on["avxvnni"];
  if (const long bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE); bytes > 0) target.first_cache = bytes;
  if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) target.second_cache = bytes;
  // Assumes two vector units, which nearly all processors have. Those of Zen 4 are 256 bits wide and process a 512-bit
  // vector in two halves.
  const int lanes = std::min(target.vector_bits, target.cpu == "znver4" ? 256 : 512) / 32;
  target.flops_per_ns = 2 * lanes * (target.fma ? 2 : 1) * clock_per_ns();
  return target;
}

}  // namespace

Target host_target(const std::string& changes) {
  std::map<std::string, bool> on;
  std::string list;
  for (const auto& entry : llvm::sys::getHostCPUFeatures()) on[entry.getKey().str()] = entry.getValue();
  for (const auto& [feature, value] : on) list += (value ? ",+" : ",-") + feature;
  // LLVM switches dependent features off as well: without AVX there is no AVX2.
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

void initialize_targets() {
  using Initialize = void (*)();
  static constexpr Initialize kParts[] = {
#define LLVM_TARGET(Name) \
  &LLVMInitialize##Name##TargetInfo, &LLVMInitialize##Name##Target, &LLVMInitialize##Name##TargetMC,
#include <llvm/Config/Targets.def>
#define LLVM_ASM_PRINTER(Name) &LLVMInitialize##Name##AsmPrinter,
#include <llvm/Config/AsmPrinters.def>
  };
  static std::once_flag once;
  std::call_once(once, [] {
    for (const Initialize part : kParts) {
      if (part) part();
    }
  });
}

namespace {

/// Defaults for an architecture for which code is compiled ahead of time.
struct Architecture {
  const char* name;
  const char* triple;
  const char* cpu;       ///< processor, unless the caller names one
  const char* features;  ///< features in addition to those of `cpu`
  const char* abi;
  bool masks;
  bool half_conversion;
};

constexpr Architecture kArchitectures[] = {
    {"x86_64", "x86_64-unknown-linux-gnu", "x86-64-v2", "", "", false, false},
    {"aarch64", "aarch64-unknown-linux-gnu", "generic", "+neon,+fp-armv8", "", false, true},
    {"riscv64", "riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c,+v,+zvl128b", "lp64d", true, false},
    {"nvptx64", "nvptx64-nvidia-cuda", "sm_80", "+ptx78", "", false, true},
};

}  // namespace

Status cross_target(const std::string& name, Target& out) {
  initialize_targets();
  const size_t colon = std::min(name.find(':'), name.size());
  const std::string arch = name.substr(0, colon);
  const auto* const found =
      std::find_if(std::begin(kArchitectures), std::end(kArchitectures), [&](const auto& a) { return a.name == arch; });
  if (found == std::end(kArchitectures))
    return {COLLET_NOT_FOUND,
            "no code is made for '" + arch +
                "': there are x86_64, aarch64, riscv64 and nvptx64, each perhaps with ':' and a processor"};
  std::string problem;
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(found->triple, problem);
  if (!target) return {COLLET_UNIMPLEMENTED, "this build of LLVM makes no code for " + arch};
  const std::string cpu = colon < name.size() ? name.substr(colon + 1) : found->cpu;
  const std::unique_ptr<llvm::MCSubtargetInfo> processor(
      target->createMCSubtargetInfo(found->triple, "", found->features));
  if (!processor || !processor->isCPUStringValid(cpu))
    return {COLLET_NOT_FOUND, "there is no processor '" + cpu + "' of " + arch};
  out = {};
  out.triple = found->triple;
  out.cpu = cpu;
  out.features = found->features;
  out.abi = found->abi;
  out.masks = found->masks;
  out.half_conversion = found->half_conversion;
  const std::unique_ptr<llvm::MCSubtargetInfo> chosen(
      target->createMCSubtargetInfo(found->triple, cpu, found->features));
  const auto has = [&](const char* feature) { return chosen->checkFeatures(std::string("+") + feature); };
  if (arch == "nvptx64") {
    out.fma = true;
    out.vector_bits = 128;
    out.routines = false;
    out.grid.warp = 32;
    // Half of a processor's shared memory, minus the 1 KiB per block that the system reserves (CUDA C++ Programming
    // Guide, "Compute Capabilities").
    constexpr int64_t kKib = 1024;
    if (cpu == "sm_80" || cpu == "sm_87") out.grid.shared_bytes = (164 / 2 - 1) * kKib;
    if (cpu.starts_with("sm_90") || cpu == "sm_100") out.grid.shared_bytes = (228 / 2 - 1) * kKib;
    out.grid.block_shared_bytes = 2 * out.grid.shared_bytes + kKib;
    // The architecture with wgmma, which later ones do not have.
    out.grid.warpgroups = cpu == "sm_90a";
    if (out.grid.warpgroups) out.features = "+ptx80";
    out.memory_bytes_per_ns = 1500;
    out.flops_per_ns = 20000;
  } else if (arch == "x86_64") {
    const bool wide = has("avx512f") && has("avx512bw") && has("avx512vl") && has("avx512dq");
    out.vector_bits = wide ? 512 : has("avx2") ? 256 : 128;
    out.vector_registers = wide ? 32 : 16;
    out.masks = out.scales = wide;
    out.fma = wide || has("fma");
    out.half_conversion = wide || has("f16c");
    out.bf16_dot = has_fast_bf16_dot(cpu, wide && has("avx512bf16"));
    out.int8_dot = wide ? has("avx512vnni") : out.vector_bits == 256 && has("avxvnni");
  } else {
    out.fma = true;
    out.vector_registers = 32;
    const bool riscv = arch == "riscv64";
    if (has(riscv ? "v" : "sve")) out.scalable_bits = riscv ? 64 : 128;
    for (int bits = 256; riscv && bits <= 1024; bits *= 2) {
      if (has(("zvl" + std::to_string(bits) + "b").c_str())) out.vector_bits = bits;
    }
  }
  return {};
}

}  // namespace collet::codegen
