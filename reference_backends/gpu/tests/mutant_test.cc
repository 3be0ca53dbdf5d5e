// SPDX-License-Identifier: Apache-2.0
// Injects faults into the kernels that the code generator writes. The emulator's checks or the results must reveal each
// fault.

#include <collet/codegen/kernel_evaluate.h>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "reference_backends/gpu/tests/generated_kernels.h"

namespace collet::gpu {
namespace {

constexpr const char* kBarrier = "barrier removed";

struct Mutant {
  std::string kind;
  std::string line;  ///< the line that was changed
  std::string ptx;
  bool is_of_warpgroups = false;  ///< whether the change is of an instruction for products by warpgroups
};

std::string replaced(const std::string& line, const std::smatch& match, const std::string& with) {
  return line.substr(0, static_cast<size_t>(match.position(1))) + with +
         line.substr(static_cast<size_t>(match.position(1) + match.length(1)));
}

/// Returns all mutants of a PTX text that differ from it in one change of one line.
std::vector<Mutant> mutants_of(const std::string& ptx) {
  static const std::regex barrier("^\\s*bar\\.sync"), shuffle("shfl\\.sync.*, (\\d+), 31, -1;"),
      bound("^\\s*setp\\.(?:gt|ge|lt|le)\\.[us]\\d+\\s.*, (\\d+);"), shared_store("^\\s*st\\.shared"),
      shared_offset("(?:ld|st)\\.shared.*\\+(\\d+)\\]"), global_offset("(?:ld|st)\\.global.*\\+(\\d+)\\]"),
      stride("^\\s*mul\\.wide\\.[us]\\d+\\s.*, (\\d+);");
  // What products by warpgroups consist of besides.
  struct Change {
    const char* kind;
    std::regex pattern;
    const char* with;
  };
  static const Change changes[] = {
      {"barrier of a warp removed", std::regex("^\\s*bar\\.warp\\.sync.*"), ""},
      {"arrival removed", std::regex("^\\s*(@\\S+ )?mbarrier\\.arrive.*"), ""},
      {"other bytes announced", std::regex("(mbarrier\\.arrive\\.expect_tx\\.shared::cta\\.b64 _, \\[\\S+\\]), \\S+;"),
       "$1, 128;"},
      {"no wait for a phase", std::regex("mbarrier\\.try_wait\\.parity\\S* ended, .*;"), "setp.eq.b32 ended, 0, 0;"},
      {"the other phase", std::regex("(mbarrier\\.try_wait\\.parity\\S* ended, \\[\\S+\\]), \\S+;"), "$1, 0;"},
      {"no wait for products", std::regex("^\\s*wgmma\\.wait_group.*"), ""},
      {"products not committed", std::regex("^wgmma\\.commit_group.*"), ""},
      {"no fence before products", std::regex("^wgmma\\.fence.*"), ""},
      {"product removed", std::regex("^wgmma\\.mma_async.*"), ""},
      {"products not added", std::regex("^setp\\.ne\\.b32 adds, 1, 0;"), "setp.ne.b32 adds, 0, 0;"},
      {"other way of a factor", std::regex("^(wgmma\\.mma_async.*), 0;"), "$1, 1;"},
      {"other way of a factor", std::regex("^(wgmma\\.mma_async.*), 1;"), "$1, 0;"},
      {"copy removed", std::regex("^\\s*cp\\.async\\.bulk.*"), ""},
      {"coordinates exchanged", std::regex("^(\\s*cp\\.async\\.bulk.*\\{)(%r\\d+), (%r\\d+)(.*)"), "$1$3, $2$4"},
  };
  std::vector<std::string> lines;
  std::istringstream in(ptx);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::vector<Mutant> out;
  const auto add = [&](const char* kind, size_t at, const std::string& with) {
    std::string text;
    for (size_t i = 0; i < lines.size(); ++i) text += (i == at ? with : lines[i]) + "\n";
    out.push_back({kind, std::to_string(at + 1) + ": " + lines[at], std::move(text), false});
  };
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    std::smatch match;
    for (const Change& change : changes) {
      if (!std::regex_search(line, change.pattern)) continue;
      add(change.kind, i, std::regex_replace(line, change.pattern, change.with));
      out.back().is_of_warpgroups = true;
    }
    if (std::regex_search(line, barrier)) add(kBarrier, i, "");
    if (std::regex_search(line, match, shuffle))
      add("another lane", i, replaced(line, match, std::to_string(std::stoi(match[1]) / 2)));
    if (std::regex_search(line, match, bound))
      add("bound off by one", i, replaced(line, match, std::to_string(std::stoll(match[1]) + 1)));
    if (std::regex_search(line, shared_store)) add("store to shared memory removed", i, "");
    if (std::regex_search(line, match, shared_offset))
      add("another place in shared memory", i, replaced(line, match, std::to_string(std::stoi(match[1]) + 16)));
    if (std::regex_search(line, match, global_offset))
      add("another place in global memory", i, replaced(line, match, std::to_string(std::stoi(match[1]) + 16)));
    if (std::regex_search(line, match, stride))
      add("another stride", i, replaced(line, match, std::to_string(2 * std::stoll(match[1]))));
  }
  return out;
}

/// True if the driver refuses the module, a check reports an error, or a result differs.
bool is_caught(const KernelCase& c, codegen::Buffers& expected, const Compiled& compiled, const std::string& ptx) {
  const Driver& driver = device().driver();
  CUmodule module = nullptr;
  if (driver.cuModuleLoadDataEx(&module, ptx.c_str(), 0, nullptr, nullptr) != CUDA_SUCCESS) return true;
  CUfunction function = nullptr;
  driver.cuModuleGetFunction(&function, module, compiled.names[0].c_str());
  codegen::Buffers actual = make_buffers(codegen::extents_of(c.kernel), c.fill, 1);
  if (!device().try_run(function, compiled.schedules[0], actual)) {
    device().reopen();
    return true;
  }
  driver.cuModuleUnload(module);
  for (size_t b = 0; b < actual.size(); ++b) {
    if (std::memcmp(actual[b].data(), expected[b].data(), actual[b].size()) != 0) return true;
  }
  return false;
}

/// What was made of kernels, and what was caught.
struct Counts {
  std::map<std::string, std::pair<int, int>> kinds;  ///< by kind of fault: numbers of mutants made and caught
  std::string survivors;

  int caught() const {
    int all = 0;
    for (const auto& [kind, count] : kinds) all += count.second;
    return all;
  }
  bool all_caught(const std::string& kind) const {
    const auto found = kinds.find(kind);
    return found != kinds.end() && found->second.first == found->second.second;
  }
  void print() const {
    for (const auto& [kind, count] : kinds)
      std::printf("%s: %d of %d caught\n", kind.c_str(), count.second, count.first);
    std::printf("not caught:\n%s", survivors.c_str());
  }
};

/// Makes those mutants of a kernel for which `is_wanted` is true, and counts how many are caught.
void test(const KernelCase& c, const std::string& cpu, const std::function<bool(const Mutant&)>& is_wanted,
          Counts& counts) {
  const Compiled compiled = compile_kernels({c}, cpu);
  codegen::Buffers expected = make_buffers(codegen::extents_of(c.kernel), c.fill, 1);
  ASSERT_TRUE(codegen::evaluate_kernel(c.kernel, expected.spans()).ok());
  ASSERT_FALSE(is_caught(c, expected, compiled, compiled.ptx)) << c.name << " without a fault";
  for (const Mutant& mutant : mutants_of(compiled.ptx)) {
    if (!is_wanted(mutant)) continue;
    const bool caught = is_caught(c, expected, compiled, mutant.ptx);
    auto& [made, found] = counts.kinds[mutant.kind];
    ++made;
    found += caught ? 1 : 0;
    if (!caught) counts.survivors += c.name + ": " + mutant.kind + ": " + mutant.line + "\n";
  }
}

TEST(GpuMutants, FaultsInGeneratedKernels_AreCaught) {
  ASSERT_TRUE(device().is_open());
  const auto scan = [](const std::string& rows) {
    return from_text("scan", "kernel (2 buffers) {\nouter i0: " + rows +
                                 "\ninner i1: 700\n%0 = load f32 b0[700*i0 + i1]\nscan add f32 %0 init identity\n"
                                 "%1 = scanned f32 result 0\nstore b1[700*i0 + i1], %1\n}");
  };
  // Each block computes several rows or tiles, and every part of a tile is read, so that every barrier is necessary.
  const std::vector<KernelCase> large = {
      from_text("sum of rows", sum_kernel("f32", "add", 140, 700)),
      scan("140"),
      from_text("product", product_kernel({"f32", 66, 80, 17, 24, false, false})),
      from_text("product of halves", product_kernel({"f16", 66, 80, 17, 40})),
  };
  // All tiles and rounds are full, so that each element in shared memory is used.
  const std::vector<KernelCase> small = {
      from_text("sum of rows", sum_kernel("f32", "add", 5, 700)),
      scan("3"),
      from_text("product", product_kernel({"f32", 2, 128, 128, 48, false, false})),
      from_text("product of halves", product_kernel({"f16", 2, 128, 128, 64})),
      from_text("sum of two arrays",
                "kernel (3 buffers) {\nouter i0: 1001\n%0 = load f32 b0[i0]\n%1 = load f32 b1[i0 + 4]\n"
                "%2 = add f32 %0, %1\nstore b2[i0], %2\n}"),
  };
  Counts counts;
  for (const KernelCase& c : large) test(c, "sm_80", [](const Mutant& m) { return m.kind == kBarrier; }, counts);
  for (const KernelCase& c : small) test(c, "sm_80", [](const Mutant& m) { return m.kind != kBarrier; }, counts);
  counts.print();
  EXPECT_GE(counts.caught(), 100);
  EXPECT_TRUE(counts.all_caught(kBarrier)) << counts.survivors;
  EXPECT_TRUE(counts.all_caught("store to shared memory removed")) << counts.survivors;
}

TEST(GpuMutants, FaultsInProductsByWarpgroups_AreAllCaught) {
  ASSERT_TRUE(device().is_open());
  Counts counts;
  // Whole tiles that follow each other, partial ones, and more rounds than there are places in shared memory.
  for (const bool by_depth : {true, false}) {
    test(
        from_text("product", product_kernel({"bf16", 1, 136, 520, 328, by_depth, !by_depth})), "sm_90a",
        [](const Mutant& m) { return m.is_of_warpgroups; }, counts);
  }
  counts.print();
  EXPECT_GE(counts.caught(), 50);
  EXPECT_EQ(counts.survivors, "");
}

}  // namespace
}  // namespace collet::gpu
