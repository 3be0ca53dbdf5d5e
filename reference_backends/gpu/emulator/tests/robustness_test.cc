// SPDX-License-Identifier: Apache-2.0
// Tests that invalid PTX texts give an error with a line, and never a crash or a hang.
#include <fstream>
#include <random>
#include <sstream>

#include "reference_backends/gpu/emulator/tests/gpu.h"

namespace collet::gpu::testing_only {
namespace {

using ::testing::HasSubstr;

std::string body(const std::string& lines) {
  return ptx_header() +
         ".visible .entry k(.param .u64 out) {\n.reg .pred %p<4>;\n.reg .b16 %h<4>;\n.reg .b32 %r<4>;\n.reg .f32 "
         "%f<4>;\n"
         ".reg .b64 %rd<4>;\n" +
         lines + "\nret;\n}\n";
}

struct Bad {
  std::string text;
  const char* message;
};

class RobustnessTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    expects_problem = true;
  }
};

TEST_F(RobustnessTest, WrongTextsGetAnErrorWithItsLine) {
  const Bad list[] = {
      {"", "the text has no .version"},
      {"hello", "line 1: a directive is expected, and not 'hello'"},
      {".version 5.0\n", "line 1: PTX versions"},
      {".version 7.8\n.target sm_80\n.address_size 32\n", "line 3: only addresses of 64 bits"},
      {ptx_header() + ".entry k(", "line 4: .param is expected, and not the end of the text"},
      {ptx_header() + ".entry k() {", "'}' is missing"},
      {ptx_header() + ".global .b8 x[99999999999];", "line 4: the array is too long"},
      {ptx_header() + ".global .u32 x = {1, 2};", "line 4: the initialiser has more elements"},
      {ptx_header() + ".shared .align 3 .b8 x[4];", "line 4: an alignment is a power of 2"},
      {ptx_header() + "/* no end", "line 4: the comment has no end"},
      {ptx_header() + ".entry k() { .reg .b32 x; .reg .b32 x; }", "declared twice: x"},
      {body("frob.u32 %r1, %r2;"), "line 10: frob.u32: unknown instruction"},
      {body("add.frob.u32 %r1, %r2, 1;"), "line 10: unknown modifier .frob of add"},
      {body("add.u32 %r1, %r2;"), "line 10: add.u32: 2 operands"},
      {body("add.u32 %r1, %rd2, 1;"), "line 10: add.u32: register %rd2 has 64 bits, and not 32"},
      {body("add.u32 %h1, %r2, 1;"), "register %h1 has 16 bits; the result has 32"},
      {body("max.relu.f32 %f1, %f2, %f3;"), "line 10: max.relu.f32: .relu is for s32"},
      {body("add.u32 %r1, %r99, 1;"), "no such register: %r99"},
      {body("mov.u32 %r1, %tid.q;"), "no such special register: %tid.q"},
      {body("bra nowhere;"), "no such label: nowhere"},
      {body("x: x: bra x;"), "a label is defined twice: x"},
      {body("@%r1 bra x;\nx:"), "a guard is a predicate: %r1"},
      {body("ld.global.u32 %r1, %rd1;"), "an address in [] is expected"},
      {body("ld.param.u64 %rd1, [out+8];"), "an access past the end of the parameter out"},
      {body("st.param.u64 [out], %rd1;"), "the parameters of a kernel are read-only"},
      {body("call f;"), "no definition of the function f"},
      {body("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1}, {%r1}, {%r1}, {%f0};"),
       "matrix a has 4 registers"},
      {body("cp.async.ca.shared.global [%rd1], [%rd2], 12;"), "the size is 16, and with .ca 4 or 8 too"},
      {body("shl.b32 %r1, %r2, 0f3F800000x;"), "line 10"},
      {ptx_header() + ".func f() { call f; ret; }\n.entry k() { call f; ret; }", "recursion is not supported: f"},
      {ptx_header() + ".shared .b8 a[300000];\n.entry k() { .reg .b32 r; mov.u32 r, a; }",
       "the shared variables take more than"},
      {ptx_header() + ".extern .global .u32 x;\n.entry k() { }", "no definition of the external variable x"},
      {ptx_header(99) + ".entry k() { ret; }", "the module is for sm_99"},
  };
  for (const Bad& b : list) {
    load(b.text, "k");
    EXPECT_NE(load_result, CUDA_SUCCESS) << b.text;
    EXPECT_THAT(log, HasSubstr(b.message)) << b.text;
  }
}

TEST_F(RobustnessTest, NestingIsBounded) {
  load(ptx_header() + ".entry k() " + std::string(100000, '{'), "k");
  EXPECT_EQ(load_result, CUDA_ERROR_INVALID_PTX);
  load(body("mov.b64 %rd1, " + std::string(100000, '{') + ";"), "k");
  EXPECT_EQ(load_result, CUDA_ERROR_INVALID_PTX);
  load(ptx_header() + ".global .b8 x[4] = " + std::string(100000, '{') + ";", "k");
  EXPECT_EQ(load_result, CUDA_ERROR_INVALID_PTX);
}

/// Returns the texts that are mutated: kernels with most of the constructs that LLVM writes.
std::vector<std::string> seeds() {
  std::vector<std::string> list;
  for (const char* name : {"mixed", "rows"}) {
    std::ifstream in(std::string("reference_backends/gpu/emulator/tests/ptx/") + name + ".ptx");
    std::ostringstream text;
    text << in.rdbuf();
    EXPECT_FALSE(text.str().empty()) << name;
    list.push_back(text.str());
  }
  return list;
}

TEST_F(RobustnessTest, MutatedTextsNeverCrash) {
  std::mt19937 random(1);
  const auto all = seeds();
  const int rounds = std::getenv("COLLET_FUZZ_ROUNDS") ? std::atoi(std::getenv("COLLET_FUZZ_ROUNDS")) : 400;
  int loaded = 0, ran = 0;
  for (int round = 0; round < rounds; ++round) {
    std::string text = all[random() % all.size()];
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    const int changes = 1 + static_cast<int>(random() % 4);
    for (int c = 0; c < changes; ++c) {
      std::string& line = lines[random() % lines.size()];
      const std::string other = lines[random() % lines.size()];
      switch (random() % 6) {
        case 0:
          line = other;
          break;
        case 1:
          line.clear();
          break;
        case 2:
          line += "\n" + other;
          break;
        case 3:
          if (!line.empty()) line[random() % line.size()] = static_cast<char>(32 + random() % 95);
          break;
        case 4:
          if (!line.empty()) line.erase(random() % line.size(), 1 + random() % 4);
          break;
        default: {
          // Changes a digit of a number.
          const size_t at = line.find_first_of("0123456789");
          if (at != std::string::npos) line[at] = static_cast<char>('0' + random() % 10);
        }
      }
    }
    text.clear();
    for (const std::string& line : lines) text += line + "\n";
    CUmodule m = nullptr;
    char buffer[256] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {buffer, reinterpret_cast<void*>(sizeof buffer)};
    if (d.cuModuleLoadDataEx(&m, text.c_str(), 2, options, values) != CUDA_SUCCESS) {
      EXPECT_THAT(std::string(buffer), ::testing::AnyOf(HasSubstr("line "), HasSubstr("the module is for sm_")))
          << text;
      EXPECT_THAT(std::string(buffer), ::testing::Not(HasSubstr("wrong code"))) << text;
      continue;
    }
    ++loaded;
    CUfunction f = nullptr;
    if (d.cuModuleGetFunction(&f, m, "k") != CUDA_SUCCESS) continue;
    const CUdeviceptr p = upload(std::vector<float>(4096, 1.f));
    uint64_t more[8] = {p, p + 4096, 64, 64, 64, 64, 64, 64};
    void* parameters[64];
    for (int i = 0; i < 64; ++i) parameters[i] = i < 2 ? static_cast<void*>(&more[i]) : static_cast<void*>(&more[2]);
    d.cuLaunchKernel(f, 2, 1, 1, 64, 1, 1, 1024, nullptr, parameters, nullptr);
    ran += d.cuCtxSynchronize() == CUDA_SUCCESS;
    TearDown();
    SetUp();
  }
  EXPECT_GT(loaded, rounds / 20);
  EXPECT_GT(ran, 0);
}

}  // namespace
}  // namespace collet::gpu::testing_only
