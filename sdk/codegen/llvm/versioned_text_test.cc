// SPDX-License-Identifier: Apache-2.0
// Writes LLVM IR as text for older versions, and has the compilers of these versions that there are here compile and run it.

#include "sdk/codegen/llvm/versioned_text.h"

#include <collet/codegen/compile.h>
#include <collet/codegen/source_compiler.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sdk/codegen/testing/program_builder.h"
#include "sdk/codegen/testing/test_compiler.h"

namespace collet::codegen {
namespace {

using testing::Handle;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramBuilder;
using testing::RegionBuilder;

/// Prints a module for a version.
Status print(const std::string& module, int version, std::string& text) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  const std::unique_ptr<llvm::Module> parsed = llvm::parseAssemblyString(module, error, context);
  EXPECT_TRUE(parsed) << error.getMessage().str();
  return parsed ? print_for_version(*parsed, version, text) : Status(COLLET_INTERNAL, "no module");
}

constexpr const char* kNewModule = R"(
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"
declare float @llvm.fma.f32(float, float, float) memory(none)
define i64 @f(i32 %x, ptr %p) memory(argmem: read) {
  %a = zext nneg i32 %x to i64
  %b = or disjoint i64 %a, 4294967296
  %c = trunc nuw i64 %b to i40
  %d = sext i40 %c to i64
  %q = getelementptr nuw i8, ptr %p, i64 %d
  %e = load i64, ptr %q
  ret i64 %e
}
)";

TEST(VersionedText, OfThisVersion_LosesNothing) {
  std::string text;
  ASSERT_TRUE(print(kNewModule, LLVM_VERSION_MAJOR, text).ok());
  for (const char* const part : {"zext nneg", "or disjoint", "trunc nuw", "getelementptr nuw", "memory(", "-i128:128"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(VersionedText, OfOlderVersions_LacksWhatTheyDoNotKnow) {
  std::string text;
  ASSERT_TRUE(print(kNewModule, 18, text).ok());
  for (const char* const part : {"zext nneg", "or disjoint", "memory(", "-i128:128"})
    EXPECT_THAT(text, HasSubstr(part));
  for (const char* const part : {"trunc nuw", "getelementptr nuw"}) EXPECT_THAT(text, Not(HasSubstr(part)));
  ASSERT_TRUE(print(kNewModule, 16, text).ok());
  EXPECT_THAT(text, HasSubstr("memory("));
  for (const char* const part : {"nneg", "disjoint", "-i128:128"}) EXPECT_THAT(text, Not(HasSubstr(part)));
  ASSERT_TRUE(print(kNewModule, 15, text).ok());
  EXPECT_THAT(text, Not(HasSubstr("memory(")));
}

TEST(VersionedText, OfWhatAVersionLacks_IsRefusedByName) {
  const std::string module =
      "declare float @llvm.ldexp.f32.i32(float, i32)\ndefine float @f(float %x) {\n"
      "  %y = call float @llvm.ldexp.f32.i32(float %x, i32 3)\n  ret float %y\n}\n";
  std::string text;
  EXPECT_TRUE(print(module, 17, text).ok());
  const Status old = print(module, 16, text);
  EXPECT_EQ(old.code(), COLLET_UNIMPLEMENTED);
  EXPECT_THAT(old.message(), HasSubstr("llvm.ldexp needs LLVM 17"));
  for (const int version : {14, LLVM_VERSION_MAJOR + 1}) {
    const Status refused = print(module, version, text);
    EXPECT_EQ(refused.code(), COLLET_UNIMPLEMENTED);
    EXPECT_THAT(refused.message(), HasSubstr("not " + std::to_string(version)));
  }
}

TEST(VersionedText, OfIntrinsicsThatWereExperiments_HasTheirEarlierNames) {
  const std::string module =
      "declare <vscale x 4 x float> @llvm.vector.reverse.nxv4f32(<vscale x 4 x float>)\n"
      "define <vscale x 4 x float> @f(<vscale x 4 x float> %x) {\n"
      "  %y = call <vscale x 4 x float> @llvm.vector.reverse.nxv4f32(<vscale x 4 x float> %x)\n"
      "  ret <vscale x 4 x float> %y\n}\n";
  std::string text;
  ASSERT_TRUE(print(module, LLVM_VERSION_MAJOR, text).ok());
  EXPECT_THAT(text, HasSubstr("call <vscale x 4 x float> @llvm.vector.reverse.nxv4f32"));
  ASSERT_TRUE(print(module, 15, text).ok());
  EXPECT_THAT(text, HasSubstr("call <vscale x 4 x float> @llvm.experimental.vector.reverse.nxv4f32"));
  EXPECT_THAT(text, HasSubstr("declare <vscale x 4 x float> @llvm.experimental.vector.reverse.nxv4f32"));
}

/// A softmax, with a product before it.
void build(ProgramBuilder& builder) {
  RegionBuilder& e = builder.entry();
  const Handle a = e.argument(COLLET_TYPE_F32, {6, 30}), b = e.argument(COLLET_TYPE_F32, {30, 50});
  collet_dot_attrs attrs{};
  attrs.lhs_contracting = builder.list({1});
  attrs.rhs_contracting = builder.list({0});
  const Handle x = e.op(COLLET_OP_DOT, COLLET_TYPE_F32, {6, 50}, {a, b}, attrs);
  const Handle powers = e.unary(COLLET_OP_EXPONENTIAL, x);
  const Handle sum = e.reduce(COLLET_OP_ADD, COLLET_COMBINE_ADD, powers, e.scalar(COLLET_TYPE_F32, 0.0F), {1});
  e.results({e.binary(COLLET_OP_DIVIDE, powers, e.broadcast(sum, {6, 50}, {0}))});
}

class Versions : public ::testing::TestWithParam<int> {};

TEST_P(Versions, TheirCompiler_TakesTheText) {
  const std::string name = "clang-" + std::to_string(GetParam());
  if (std::system(("command -v " + name + " >/dev/null").c_str()) != 0) GTEST_SKIP() << "needs " << name;
  for (const bool is_here : {true, false}) {
    ProgramBuilder builder;
    build(builder);
    Target target = host_target();
    if (!is_here) {
      ASSERT_TRUE(cross_target("aarch64", target).ok());
    }
    target.routines = false;
    target.threads = 1;
    CompileOptions options;
    options.form = CodeForm::kLlvm;
    options.llvm_version = GetParam();
    CompiledProgram program;
    const Status written = compile(builder.finish(), target, options, program);
    ASSERT_TRUE(written.ok()) << written.message();
    SourceCompiler compiler;
    compiler.command =
        (is_here ? testing::clang_compiler(name) + " -O2 -shared" : name + " --target=aarch64-linux-gnu -O2 -c") +
        " -fPIC -o {out} {in}";
    compiler.suffix = ".ll";
    const CompilerCache cache(compiler);
    std::shared_ptr<const std::string> code;
    std::string messages;
    const Status compiled = cache.compile(program.object, code, messages);
    ASSERT_TRUE(compiled.ok()) << compiled.message();
    if (!is_here) continue;
    const std::string path = ::testing::TempDir() + "versioned_text_" + name + ".so";
    std::ofstream(path, std::ios::binary) << *code;
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    std::filesystem::remove(path);
    ASSERT_NE(library, nullptr) << dlerror();
    std::vector<float> a(6 * 30, 0.01F), b(30 * 50, 0.5F), result(6 * 50);
    std::vector<char> workspace(program.plan.workspace_bytes + 64);
    const auto first = reinterpret_cast<uintptr_t>(workspace.data());
    char* slots[] = {reinterpret_cast<char*>(a.data()), reinterpret_cast<char*>(b.data()),
                     reinterpret_cast<char*>(result.data()), workspace.data() + (64 - first % 64) % 64, nullptr};
    reinterpret_cast<void (*)(char* const*)>(dlsym(library, "program"))(slots);
    dlclose(library);
    for (const float x : result) ASSERT_NEAR(x, 1.0F / 50, 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Known, Versions, ::testing::Range(kFirstLlvmVersion, LLVM_VERSION_MAJOR + 1));

}  // namespace
}  // namespace collet::codegen
