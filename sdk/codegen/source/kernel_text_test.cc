// SPDX-License-Identifier: Apache-2.0
// Compares kernels that were written as C and compiled by the system's compiler with the evaluator.

#include <collet/codegen/kernel_transform.h>
#include <collet/codegen/kernel_verify.h>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sdk/codegen/base/functions.h"
#include "sdk/codegen/schedule/lanes.h"
#include "sdk/codegen/source/program_text.h"
#include "sdk/codegen/testing/elementwise_cases.h"
#include "sdk/codegen/testing/random_kernels.h"
#include "sdk/codegen/testing/test_compiler.h"

namespace collet::codegen {
namespace {

/// A kernel in C.
using TextFunction = void (*)(char* const* buffers, int64_t begin, int64_t end);

/// A shared library that the system's compiler makes of C.
class Library {
 public:
  Library(const std::string& text, const std::string& compiler, const std::string& options) {
    folder_ = ::testing::TempDir() + "collet_source_XXXXXX";
    if (!mkdtemp(folder_.data())) return;
    const std::string in = folder_ + "/kernels.c", out = folder_ + "/kernels.so", log = folder_ + "/log";
    std::ofstream(in) << text;
    const std::string command = (compiler == "cc" ? testing::c_compiler() : testing::clang_compiler(compiler)) +
                                " -std=c99 -Wall -Wextra -Werror -shared -fPIC " + options + " -o " + out + " " + in +
                                " -lm > " + log + " 2>&1";
    const int status = std::system(command.c_str());
    if (status != 0) {
      std::stringstream said;
      said << std::ifstream(log).rdbuf();
      ADD_FAILURE() << command << "\n" << said.str().substr(0, 3000);
      return;
    }
    library_ = dlopen(out.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library_, nullptr) << dlerror();
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (library_) dlclose(library_);
    if (!::testing::Test::HasFailure()) std::filesystem::remove_all(folder_);
  }
  TextFunction find(const std::string& name) const {
    return library_ ? reinterpret_cast<TextFunction>(dlsym(library_, name.c_str())) : nullptr;
  }

 private:
  std::string folder_;
  void* library_ = nullptr;
};

/// Returns the compilers that there are: that of the system, and clang.
std::vector<std::string> compilers() {
  std::vector<std::string> all{"cc"};
  if (std::system("command -v clang > /dev/null") == 0) all.emplace_back("clang");
  return all;
}

void compare_source(const std::vector<KernelCase>& cases, const std::string& compiler, const std::string& options) {
  std::vector<std::pair<std::string, Kernel>> kernels;
  for (const KernelCase& c : cases) kernels.emplace_back("kernel" + std::to_string(kernels.size()), c.kernel);
  const Library library(write_kernels(kernels, scalar_machine()), compiler, options);
  for (size_t i = 0; i < cases.size(); ++i) {
    const Kernel& k = cases[i].kernel;
    const TextFunction f = library.find(kernels[i].first);
    ASSERT_NE(f, nullptr) << kernels[i].first;
    SCOPED_TRACE(cases[i].name + "\n" + print_kernel(k));
    compare_with_evaluator(cases[i], i, [&](size_t, Buffers& buffers) {
      const int64_t iterations = k.outer > 0 ? k.loops[0].size : 1;
      const std::vector<char*> addresses = buffers.addresses();
      if (k.sequential || k.outer == 0) return f(addresses.data(), 0, iterations);
      f(addresses.data(), 0, iterations / 2);  // parts of the range, as threads run them
      f(addresses.data(), iterations / 2, iterations);
    });
  }
}

class KernelText : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Compilers, KernelText, ::testing::ValuesIn(compilers()),
                         [](const auto& test) { return test.param; });

TEST_P(KernelText, ExactOpsOfAnyBits_GiveTheBitsOfTheEvaluator) {
  compare_source(exact_op_cases(), GetParam(), "-O1");
}

TEST_P(KernelText, ElementaryFunctions_AreNearTheEvaluator) {
  compare_source(function_cases(), GetParam(), "-O1");
}

TEST_P(KernelText, KernelsOfFiles_LeaveWhatTheEvaluatorDoes) {
  const std::vector<KernelCase> cases = file_cases();
  EXPECT_GE(cases.size(), 20U);
  compare_source(cases, GetParam(), "-O2");
}

// As a signed number, the first of these would be negative.
TEST_P(KernelText, StartsOfUnsignedNumbers_AreNeverNegative) {
  KernelCase c;
  const Status read = parse_kernel(
      "kernel (3 buffers) {\nouter i0: 67\n%0 = load u64 b0[i0]\n%1 = start %0 limit 9\n%2 = load f32 b1[i0 + 1*%1]\n"
      "store b2[i0], %2\n}",
      c.kernel);
  ASSERT_TRUE(read.ok()) << read.message();
  c.name = "starts";
  c.fill = Fill::kBits;
  compare_source({c}, GetParam(), "-O1");
}

TEST_P(KernelText, LongSums_HaveTheErrorOfBlocks) {
  const char* const bodies[] = {
      "inner i0: 2048\ninner i1: 32\n%0 = load f32 b0[32*i0 + i1]\n",
      "inner i0: 100000\n%0 = load f32 b0[i0]\n",
      "inner i0: 37\ninner i1: 3001\n%0 = load f32 b0[3001*i0 + i1]\n",
      "outer i0: 77\ninner i1: 5003\n%0 = load f32 b0[i0 + 77*i1]\n",
      "outer i0: 3\ninner i1: 41\ninner i2: 1000\n%0 = load f16 b0[41000*i0 + 1000*i1 + i2]\n",
  };
  std::vector<KernelCase> cases;
  for (const std::string body : bodies) {
    const std::string type = body.find("f16") == std::string::npos ? "f32" : "f16";
    for (const bool scans : {false, true}) {
      if (scans && body.find("inner") != body.rfind("inner")) continue;
      for (const int vector_bits : {32, 256}) {
        const std::string place = body.find("outer") == std::string::npos ? "[" : "[i0";
        const std::string loop = body.find("outer") == std::string::npos ? "i0" : "5003*i0 + i1";
        const std::string fold =
            scans ? "scan add " + type + " %0 init identity\n%1 = scanned " + type + " result 0\nstore b1[" + loop + "]"
                  : "r0 = reduce add " + type + " %0 init identity\n%1 = reduced " + type + " r0 result 0\nstore b1" +
                        (place == "[" ? "[0" : place) + "]";
        KernelCase c;
        c.name = body + " for " + std::to_string(vector_bits);
        const Status read = parse_kernel("kernel (2 buffers) {\n" + body + fold + ", %1\n}", c.kernel);
        ASSERT_TRUE(read.ok()) << read.message() << fold;
        choose_lanes(c.kernel, vector_machine(vector_bits / 32));
        ASSERT_TRUE(verify_kernel(c.kernel).ok());
        c.fill = Fill::kTame;
        c.bound = {4};  // with a single accumulator the errors are many times larger
        cases.push_back(std::move(c));
      }
    }
  }
  compare_source(cases, GetParam(), "-O2");
}

/// COLLET_RANDOM_KERNELS sets how many kernels are compared, from other seeds than by default.
TEST_P(KernelText, RandomKernels_LeaveWhatTheEvaluatorDoes) {
  constexpr int64_t kAtATime = 300;
  const char* const more = std::getenv("COLLET_RANDOM_KERNELS");
  const int64_t count = more ? std::atoll(more) : kAtATime;
  const uint64_t seed = more ? std::random_device()() : 11;
  RandomKernels generator(seed);
  for (int64_t done = 0; done < count && !HasFailure(); done += kAtATime) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::vector<KernelCase> cases;
    for (int64_t i = 0; i < kAtATime; ++i) {
      Kernel kernel = generator.next();
      if (i % 2 == 0) collapse_loops(kernel);
      if (i % 3 != 0) choose_lanes(kernel, vector_machine(256 / 32));
      cases.push_back({"random " + std::to_string(i), std::move(kernel), Fill::kSmall, {}});
    }
    compare_source(cases, GetParam(), "-O2");
  }
}

}  // namespace
}  // namespace collet::codegen
