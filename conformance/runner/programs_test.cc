// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "conformance/runner/case_file.h"
#include "conformance/runner/offered_program.h"
#include "conformance/runner/program_files.h"
#include "hlo/text/parser.h"

namespace collet::conformance {
namespace {

namespace fs = std::filesystem;

TEST(CaseFile, KeepsEveryCaseOfTheSuite) {
  const std::vector<Case> cases = all_cases(false);
  const std::string text = case_file_text(cases);
  ASSERT_TRUE(is_case_file(text));
  const auto read = read_case_file("test", text);
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  ASSERT_EQ(read->size(), cases.size());
  EXPECT_EQ(case_file_text(*read), text);
  for (size_t i = 0; i < cases.size(); ++i) {
    ASSERT_EQ((*read)[i].name, cases[i].name);
    ASSERT_EQ((*read)[i].text, cases[i].text);
    ASSERT_EQ((*read)[i].inputs.size(), cases[i].inputs.size());
    for (size_t k = 0; k < cases[i].inputs.size(); ++k) ASSERT_EQ((*read)[i].inputs[k].high, cases[i].inputs[k].high);
  }
}

TEST(CaseFile, NamesTheLineThatIsWrong) {
  const std::string good =
      case_file_text({{.name = "add/f32/x/unit", .op = Op::ADD, .type = Type::F32, .text = "HloModule m"}});
  const auto error = [](const std::string& text) { return read_case_file("f", text).status().message(); };
  EXPECT_EQ(error(good), "");
  EXPECT_EQ(error(good + "name=a\top=unheard\n"), "f:3: there is no op 'unheard'");
  EXPECT_EQ(error(good + "name=a\ttype=f33\n"), "f:3: there is no element type 'f33'");
  EXPECT_EQ(error(good + "name=a\tbound=1 2\n"), "f:3: this is no bound: '1 2'");
  EXPECT_EQ(error(good + "name=a\tinput=99 0 0 0\n"), "f:3: this is no input: '99 0 0 0'");
  EXPECT_EQ(error(good + "name=a\tbound=1 2 3 0 0 0 0 nan\n"), "f:3: this is no bound: '1 2 3 0 0 0 0 nan'");
  EXPECT_EQ(error(good + "name=a\tinput=0.5 0 0 0\n"), "f:3: this is no input: '0.5 0 0 0'");
  EXPECT_EQ(error(good + "name=a\tinput=7 0 0 0\n"), "f:3: this is no input: '7 0 0 0'");  // fixed, without a number
  EXPECT_EQ(error(good + "op=add\n"), "f:3: it has no name");
  EXPECT_EQ(error(good + "name=a\ttext=HloModule m\n"), "f:3: it has no op");
  EXPECT_EQ(error(good + "name=a\top=add\n"), "f:3: it has no program");
  EXPECT_EQ(error(good + "name=a\tcolour=red\n"), "f:3: there is no field 'colour'");
  EXPECT_NE(error("other\n"), "");
}

class Folder : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("programs_" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& name, const std::string& text = "HloModule m") {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    const auto found = find_programs({root_.string()});
    EXPECT_TRUE(found.ok()) << found.status().to_string();
    if (!found.ok()) return out;
    for (const ProgramFile& file : *found) out.push_back(file.name + " " + fs::path(file.path).filename().string());
    return out;
  }
  fs::path root_;
};

TEST_F(Folder, TakesEachProgramOnce) {
  write("gpt/program.mlir");
  write("gpt/program.hlo");
  write("gpt/expected.bin");
  write("step.mlirbc");
  write("notes.txt", "not a program");
  EXPECT_EQ(names(), (std::vector<std::string>{"gpt program.hlo", "step step.mlirbc"}));
}

TEST_F(Folder, TakesProgramsOfDumpsAsTheyWereRead) {
  write("0001.jit_step.7/000.read.hlo");
  write("0001.jit_step.7/001.after.simplify.hlo");
  write("0001.jit_step.7/003.offered.hlo");
  write("module_0001.jit_f.before_optimizations.txt");
  write("module_0001.jit_f.cpu_after_optimizations.txt");
  write("module_0001.jit_f.cpu_after_optimizations-buffer-assignment.txt", "BufferAssignment:");
  EXPECT_EQ(names(), (std::vector<std::string>{
                         "0001.jit_step.7 000.read.hlo",
                         "module_0001.jit_f.before_optimizations module_0001.jit_f.before_optimizations.txt"}));
}

TEST_F(Folder, AFolderThatHoldsOneProgramNamesIt) {
  write("program.mlir");
  const auto found = find_programs({root_.string(), (root_ / "program.mlir").string()});
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].name, root_.filename().string());
  EXPECT_EQ((*found)[1].name, root_.filename().string() + ".2") << "two programs have two names";
}

TEST_F(Folder, AFolderThatMayNotBeReadIsOneThatCannot) {
  if (geteuid() == 0) GTEST_SKIP() << "everything may be read";
  write("step.hlo");
  write("closed/other.hlo");
  fs::permissions(root_ / "closed", fs::perms::none);
  EXPECT_EQ(names(), (std::vector<std::string>{"closed closed", "step step.hlo"}));
  fs::permissions(root_ / "closed", fs::perms::all);
}

TEST_F(Folder, WithoutProgramsIsAnError) {
  write("notes.md", "none");
  EXPECT_NE(find_programs({root_.string()}).status().message().find("has no program in it"), std::string::npos);
  EXPECT_NE(find_programs({(root_ / "missing.hlo").string()}).status().message().find("no such file"),
            std::string::npos);
}

TEST(ProgramOps, AreTakenOnceAndFromLoops) {
  const auto module = hlo::parse_module(R"(HloModule m
cond {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[4] sine(x)
  ROOT t = (s32[], f32[4]) tuple(j, y)
}
ENTRY e {
  x = f32[4] parameter(0)
  z = s32[] constant(0)
  a = f32[4] cosine(x)
  b = f32[4] cosine(a)
  t = (s32[], f32[4]) tuple(z, b)
  w = (s32[], f32[4]) while(t), condition=cond, body=body
  r = f32[4] get-tuple-element(w), index=1
  ROOT c = f32[4] custom-call(r), custom_call_target="acme"
})",
                                        "test");
  ASSERT_TRUE(module.ok());
  const ProgramOps ops = ops_of_program(**module, "m");
  std::vector<std::string> names;
  for (const Case& one : ops.cases)
    if (one.name.ends_with("/unit")) names.push_back(one.name);
  EXPECT_EQ(names, (std::vector<std::string>{"compare/s32/m.c/unit", "add/s32/m.j/unit", "sine/f32/m.y/unit",
                                             "cosine/f32/m.a/unit"}));
  EXPECT_EQ(ops.ops, 6u);
  ASSERT_EQ(ops.left_out.size(), 1u);
  EXPECT_TRUE(ops.left_out[0].starts_with("custom-call 'acme': ")) << ops.left_out[0];
}

}  // namespace
}  // namespace collet::conformance
