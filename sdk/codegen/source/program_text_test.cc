// SPDX-License-Identifier: Apache-2.0
// Runs products of matrices that were written as C, calls compilers, and compares the text of small programs with golden files.

#include <collet/backend.h>
#include <collet/codegen/compile.h>
#include <collet/codegen/source_compiler.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>

#include "sdk/codegen/testing/program_builder.h"
#include "sdk/codegen/testing/test_compiler.h"

namespace collet::codegen {
namespace {

using testing::Handle;
using ::testing::HasSubstr;
using testing::ProgramBuilder;
using testing::RegionBuilder;

constexpr const char* kOptions =
    " -std=c99 -O2 -Wall -Wextra -Werror -ffp-contract=off -shared -fPIC -o {out} {in} -lm";

SourceCompiler compiler(const std::string& command = testing::c_compiler() + kOptions) {
  SourceCompiler c;
  c.command = command;
  return c;
}

/// Compiles a program, and runs it with these arguments and results.
void run_program(ProgramBuilder& builder, const Target& target, std::vector<std::vector<char>>& slots) {
  CompiledProgram program;
  const Status written = compile_source(builder.finish(), target, CompileOptions(), program);
  ASSERT_TRUE(written.ok()) << written.message();
  const CompilerCache cache(compiler());
  std::shared_ptr<const std::string> code;
  std::string messages;
  const Status compiled = cache.compile(program.object, code, messages);
  ASSERT_TRUE(compiled.ok()) << compiled.message();
  std::string path = ::testing::TempDir() + "collet_program_XXXXXX";
  const int file = mkstemp(path.data());
  ASSERT_GE(file, 0);
  ASSERT_EQ(::write(file, code->data(), code->size()), static_cast<ssize_t>(code->size()));
  close(file);
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::filesystem::remove(path);
  ASSERT_NE(library, nullptr) << dlerror();
  std::vector<char> workspace(program.plan.workspace_bytes + 64);
  std::vector<char*> addresses;
  for (std::vector<char>& slot : slots) addresses.push_back(slot.data());
  const auto first = reinterpret_cast<uintptr_t>(workspace.data());
  addresses.push_back(workspace.data() + (64 - first % 64) % 64);
  reinterpret_cast<void (*)(char* const*)>(dlsym(library, "program"))(addresses.data());
  dlclose(library);
}

struct Shape {
  int64_t rows, columns, depth;
  int lanes = 8;
  bool turned_a = false, turned_b = false, epilogue = false;
};

class Products : public ::testing::TestWithParam<Shape> {};

TEST_P(Products, AsC_AreThoseOfTheDefinition) {
  const Shape s = GetParam();
  ProgramBuilder builder;
  RegionBuilder& e = builder.entry();
  using Dims = std::vector<int64_t>;
  const Handle a = e.argument(COLLET_TYPE_F32, s.turned_a ? Dims{s.depth, s.rows} : Dims{s.rows, s.depth});
  const Handle b = e.argument(COLLET_TYPE_F32, s.turned_b ? Dims{s.columns, s.depth} : Dims{s.depth, s.columns});
  collet_dot_attrs attrs{};
  attrs.lhs_contracting = builder.list({s.turned_a ? 0 : 1});
  attrs.rhs_contracting = builder.list({s.turned_b ? 1 : 0});
  Handle c = e.op(COLLET_OP_DOT, COLLET_TYPE_F32, {s.rows, s.columns}, {a, b}, attrs);
  if (s.epilogue)
    c = e.binary(COLLET_OP_MAXIMUM, e.unary(COLLET_OP_NEGATE, c),
                 e.broadcast(e.scalar(COLLET_TYPE_F32, 0.0F), {s.rows, s.columns}));
  e.results({c});
  std::mt19937 random(3);
  std::vector<std::vector<char>> slots;
  std::vector<std::vector<float>> arrays;
  for (const int64_t size : {s.rows * s.depth, s.depth * s.columns, s.rows * s.columns}) {
    std::vector<float>& array = arrays.emplace_back(static_cast<size_t>(size));
    for (float& x : array) x = static_cast<float>(random() % 7) - 3;
    const char* const bytes = reinterpret_cast<const char*>(array.data());
    slots.emplace_back(bytes, bytes + array.size() * sizeof(float));
  }
  run_program(builder, vector_machine(s.lanes), slots);
  const auto* const result = reinterpret_cast<const float*>(slots[2].data());
  int wrong = 0;
  for (int64_t i = 0; i < s.rows; ++i) {
    for (int64_t j = 0; j < s.columns; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < s.depth; ++k) {
        sum += arrays[0][static_cast<size_t>(s.turned_a ? k * s.rows + i : i * s.depth + k)] *
               arrays[1][static_cast<size_t>(s.turned_b ? j * s.depth + k : k * s.columns + j)];
      }
      if (s.epilogue) sum = std::max(-sum, 0.0F);
      wrong += result[i * s.columns + j] == sum ? 0 : 1;
    }
  }
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Products,
                         ::testing::Values(Shape{1, 64, 300}, Shape{5, 7, 3}, Shape{6, 16, 40}, Shape{13, 33, 17},
                                           Shape{100, 10, 784}, Shape{64, 64, 900}, Shape{31, 70, 1500},
                                           Shape{3, 200, 9}, Shape{40, 24, 50, 8, true},
                                           Shape{40, 24, 50, 8, false, true}, Shape{23, 50, 450, 8, true, true, true},
                                           Shape{64, 48, 96, 8, false, false, true},
                                           Shape{17, 45, 2000, 8, false, false, true}, Shape{33, 65, 129, 1},
                                           Shape{33, 50, 20000}, Shape{5, 10, 30000, 8, false, false, true},
                                           Shape{33, 65, 129, 16, false, true, true}, Shape{257, 129, 65, 4}));

/// Writes a / b where `names` are not important.
std::string text_of_division() {
  ProgramBuilder builder;
  RegionBuilder& e = builder.entry();
  const Handle x = e.argument(COLLET_TYPE_F32, {64});
  e.results({e.binary(COLLET_OP_DIVIDE, x, e.unary(COLLET_OP_TANH, x))});
  CompiledProgram program;
  const Status status = compile_source(builder.finish(), vector_machine(8), CompileOptions(), program);
  EXPECT_TRUE(status.ok()) << status.message();
  return program.object;
}

TEST(SourceCompilers, ThatFail_NameTheOpsOfTheKernel) {
  std::string text = text_of_division();
  const size_t at = text.find("INDEPENDENT\n  for");
  ASSERT_NE(at, std::string::npos);
  text.insert(at, "unknown_word; ");
  const CompilerCache cache(compiler());
  std::shared_ptr<const std::string> code;
  std::string messages;
  const Status status = cache.compile(text, code, messages);
  EXPECT_EQ(status.code(), COLLET_INTERNAL);
  EXPECT_THAT(status.message(), HasSubstr("which computes tanh, divide"));
  EXPECT_THAT(status.message(), HasSubstr("unknown_word"));
}

TEST(SourceCompilers, ThatDoNotEnd_AreStopped) {
  SourceCompiler slow = compiler("sleep 60");
  slow.time_limit = 0.2;
  const CompilerCache cache(slow);
  std::shared_ptr<const std::string> code;
  std::string messages;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(cache.compile("", code, messages).code(), COLLET_DEADLINE_EXCEEDED);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST(SourceCompilers, ThatAreNotThere_AreNamed) {
  const CompilerCache cache(compiler("no-such-compiler {in} {out}"));
  std::shared_ptr<const std::string> code;
  std::string messages;
  const Status status = cache.compile("", code, messages);
  EXPECT_EQ(status.code(), COLLET_NOT_FOUND);
  EXPECT_THAT(status.message(), HasSubstr("no-such-compiler"));
  EXPECT_EQ(CompilerCache(compiler("false")).compile("", code, messages).code(), COLLET_INTERNAL);
  EXPECT_EQ(CompilerCache(compiler("true")).compile("", code, messages).code(), COLLET_INTERNAL) << "it makes no file";
}

TEST(SourceCompilers, OfAFunction_AreCalledOnceForEachText) {
  int calls = 0;
  SourceCompiler own;
  own.compile = [&calls](const std::string& text) -> std::string {
    if (text.empty()) throw std::runtime_error("there is nothing");
    ++calls;
    return "code of " + text;
  };
  std::string folder = ::testing::TempDir() + "collet_cache_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::shared_ptr<const std::string> code, again;
  std::string messages;
  for (const bool on_disk : {false, true, true}) {  // the last cache finds the file of the one before
    own.cache_folder = on_disk ? folder : "";
    const CompilerCache cache(own);
    ASSERT_TRUE(cache.compile("a", code, messages).ok());
    ASSERT_TRUE(cache.compile("a", again, messages).ok());
    EXPECT_EQ(*code, "code of a");
    EXPECT_EQ(code, again);
    code.reset();
    again.reset();
  }
  EXPECT_EQ(calls, 2);
  EXPECT_THAT(CompilerCache(own).compile("", code, messages).message(), HasSubstr("there is nothing"));
  std::filesystem::remove_all(folder);
}

/// COLLET_UPDATE_GOLDENS=1 rewrites the files.
void compare_with_golden(const std::string& text, const std::string& name) {
  const std::filesystem::path path = "sdk/codegen/source/goldens/" + name;
  if (std::getenv("COLLET_UPDATE_GOLDENS")) std::ofstream(path) << text;
  std::stringstream expected;
  expected << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, expected.str()) << path << ": COLLET_UPDATE_GOLDENS=1 rewrites it";
}

TEST(ProgramText, OfAnElementwiseProgram_IsThatOfItsFile) {
  compare_with_golden(text_of_division(), "division.c.txt");
}

void add_softmax(ProgramBuilder& builder) {
  RegionBuilder& e = builder.entry();
  const Handle x = e.argument(COLLET_TYPE_F32, {6, 200});
  const uint32_t low = 0xff800000;
  const Handle largest = e.reduce(COLLET_OP_MAXIMUM, COLLET_COMBINE_MAXIMUM, x, e.scalar(COLLET_TYPE_F32, low), {1});
  const Handle powers =
      e.unary(COLLET_OP_EXPONENTIAL, e.binary(COLLET_OP_SUBTRACT, x, e.broadcast(largest, {6, 200}, {0})));
  const Handle sum = e.reduce(COLLET_OP_ADD, COLLET_COMBINE_ADD, powers, e.scalar(COLLET_TYPE_F32, 0.0F), {1});
  e.results({e.binary(COLLET_OP_DIVIDE, powers, e.broadcast(sum, {6, 200}, {0}))});
}

TEST(ProgramText, OfASoftmax_IsThatOfItsFile) {
  ProgramBuilder builder;
  add_softmax(builder);
  CompiledProgram program;
  ASSERT_TRUE(compile_source(builder.finish(), vector_machine(8), CompileOptions(), program).ok());
  compare_with_golden(program.object, "softmax.c.txt");
}

TEST(ProgramText, InOpenClOfASoftmax_IsThatOfItsFileForThreadsAndForAGrid) {
  CompileOptions options;
  options.form = CodeForm::kOpenCl;
  for (const bool grid : {false, true}) {
    ProgramBuilder builder;
    add_softmax(builder);
    CompiledProgram program;
    const Target target = grid ? grid_machine(8, 32768) : vector_machine(8);
    ASSERT_TRUE(compile_source(builder.finish(), target, options, program).ok());
    compare_with_golden(program.object, grid ? "softmax_grid.cl.txt" : "softmax.cl.txt");
    ASSERT_EQ(program.plan.steps.size(), 1U);
    EXPECT_EQ(program.plan.functions, std::vector<std::string>{"kernel0"});
    EXPECT_EQ(program.plan.steps[0].kernel.block_threads, grid ? 32U : 1U);
  }
}

/// A driver has a name of its own for the text.
TEST(SourceCompilers, OfADriverThatFails_NameTheOpsOfTheKernel) {
  CompileOptions options;
  options.form = CodeForm::kOpenCl;
  ProgramBuilder builder;
  add_softmax(builder);
  CompiledProgram program;
  ASSERT_TRUE(compile_source(builder.finish(), grid_machine(8, 32768), options, program).ok());
  const std::string before = program.object.substr(0, program.object.find("get_local_id"));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  SourceCompiler driver;
  driver.compile = [line](const std::string&) -> std::string {
    throw std::runtime_error("log: <kernel>:" + std::to_string(line) + ":3: error: unknown word");
  };
  std::shared_ptr<const std::string> code;
  std::string messages;
  const Status status = CompilerCache(driver).compile(program.object, code, messages);
  EXPECT_EQ(status.code(), COLLET_INTERNAL);
  EXPECT_THAT(status.message(), HasSubstr("in kernel0, which computes reduce, broadcast, subtract"));
  EXPECT_THAT(status.message(), HasSubstr("unknown word"));
}

TEST(ProgramText, InOpenCl_IsRefusedForOtherGridsAndForRoutines) {
  CompileOptions options;
  options.form = CodeForm::kOpenCl;
  ProgramBuilder builder;
  add_softmax(builder);
  CompiledProgram program;
  Target target = grid_machine(8, 32768);
  target.grid.neutral = false;
  EXPECT_EQ(compile_source(builder.finish(), target, options, program).code(), COLLET_UNIMPLEMENTED);
  target = scalar_machine();
  target.routines = true;
  EXPECT_EQ(compile_source(builder.finish(), target, options, program).code(), COLLET_INVALID_ARGUMENT);
}

TEST(ProgramText, OfAProduct_IsThatOfItsFile) {
  ProgramBuilder builder;
  RegionBuilder& e = builder.entry();
  const Handle a = e.argument(COLLET_TYPE_BF16, {40, 30}), b = e.argument(COLLET_TYPE_BF16, {30, 50});
  collet_dot_attrs attrs{};
  attrs.lhs_contracting = builder.list({1});
  attrs.rhs_contracting = builder.list({0});
  e.results({e.op(COLLET_OP_DOT, COLLET_TYPE_BF16, {40, 50}, {a, b}, attrs)});
  CompiledProgram program;
  ASSERT_TRUE(compile_source(builder.finish(), vector_machine(8), CompileOptions(), program).ok());
  compare_with_golden(program.object, "product.c.txt");
}

}  // namespace
}  // namespace collet::codegen
