// SPDX-License-Identifier: Apache-2.0
// Tests collet compile: the function is linked into a C program, which is run for each architecture and must give the
// interpreter's results.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "sdk/tool/tests/command.h"

namespace collet::tool::testing {
namespace {

constexpr char kMain[] = R"(
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ahead.h>
/* Files have the bytes of each word in the order of a little-endian machine. */
static void order(void* data, size_t bytes) {
  unsigned char* at = data;
  const uint32_t one = 1;
  if (*(const unsigned char*)&one == 1) return;
  for (size_t i = 0; i < bytes; i += 4) {
    const uint32_t word = (uint32_t)at[i] | (uint32_t)at[i + 1] << 8 | (uint32_t)at[i + 2] << 16 | (uint32_t)at[i + 3] << 24;
    memcpy(at + i, &word, 4);
  }
}
static int get(const char* name, void* data, size_t bytes) {
  FILE* file = fopen(name, "rb");
  if (!file || fread(data, 1, bytes, file) != bytes) return 1;
  order(data, bytes);
  return fclose(file);
}
static void put(void* data, size_t bytes) {
  order(data, bytes);
  fwrite(data, 1, bytes, stdout);
}
int main(int count, char** folder) {
  static float image[9 * 70], weights[70 * 33], y[9 * 33], sorted[9];
  static int32_t which;
  (void)count;
  if (get(folder[1], image, sizeof image) || get(folder[2], weights, sizeof weights) || get(folder[3], &which, 4)) return 2;
  char* memory = malloc(AHEAD_WORKSPACE_BYTES + 63);
  void* workspace = memory + (64 - (uintptr_t)memory % 64) % 64;
  const struct ahead_arguments arguments = {image, weights, &which};
  const struct ahead_results results = {y, sorted};
  for (int i = 0; i < 2; ++i) ahead(&arguments, &results, workspace);
  put(y, sizeof y);
  put(sorted, sizeof sorted);
  return 0;
}
)";

struct Machine {
  const char* target;
  const char* compiler;
  const char* run;
};

bool is_there(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null").c_str()) == 0;
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

std::vector<float> floats_of(const std::string& bytes) {
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
  return out;
}

class AheadOfTime : public ::testing::TestWithParam<Machine> {};

TEST_P(AheadOfTime, FunctionGivesWhatTheInterpreterGives) {
  const Machine& machine = GetParam();
  const std::string run = machine.run;
  if (!is_there(machine.compiler) || (!run.empty() && !is_there(run.substr(0, run.find(' ')))))
    GTEST_SKIP() << "needs " << machine.compiler << " and " << machine.run;
  const Folder folder;
  std::vector<float> image(9 * 70), weights(70 * 33);
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i * 37 % 101) / 40 - 1.25f;
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i * 53 % 97) / 30 - 1.5f;
  image[5] = 3e7f;  // sines of large numbers
  write(folder / "image", bytes_of(image));
  write(folder / "weights", bytes_of(weights));
  for (const int which : {0, 1}) {
    write(folder / "which", bytes_of(std::vector<int32_t>{which}));
    const std::string inputs = folder / "image" + " " + (folder / "weights") + " " + (folder / "which");
    const Ran expected = collet("run sdk/tool/tests/data/ahead.hlo --backend interpreter --inputs " + inputs +
                                " --output " + folder.path());
    ASSERT_EQ(expected.code, 0) << expected.err;
    const bool as_source = machine.target[0] == 'c';
    const std::string code = as_source ? "ahead.c" : "ahead.a";
    const Ran made =
        collet("compile sdk/tool/tests/data/ahead.hlo --emit header," + std::string(as_source ? "c" : "archive") +
               " --output " + folder.path() + " --target " + machine.target);
    ASSERT_EQ(made.code, 0) << made.err;
    EXPECT_NE(made.out.find(code), std::string::npos) << made.out;
    write(folder / "main.c", kMain);
    const std::string build = std::string(machine.compiler) + (run.empty() ? "" : " -static") +
                              " -O2 -ffp-contract=off -Wall -Wextra -Werror -I" + folder.path() + " " +
                              (folder / "main.c") + " " + (folder / code) + " -lm -o " + (folder / "main");
    ASSERT_EQ(std::system(build.c_str()), 0) << build;
    ASSERT_EQ(std::system((run + " " + (folder / "main") + " " + inputs + " > " + (folder / "out")).c_str()), 0);
    const std::vector<float> got = floats_of(contents(folder / "out"));
    std::vector<float> want = floats_of(contents(folder / "output_0.bin"));
    const std::vector<float> sorted = floats_of(contents(folder / "output_1.bin"));
    want.insert(want.end(), sorted.begin(), sorted.end());
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 33; i < want.size() - 9; ++i)
      EXPECT_NEAR(got[i], want[i], 1e-5 * std::max(1.0f, std::abs(want[i]))) << i << ", branch " << which;
    // The row of large numbers has a large tolerance: the rounding of the product determines the sine.
    for (size_t i = 0; i < 33; ++i) EXPECT_NEAR(got[i], want[i], 3e-6 * std::abs(want[i]) + 3) << i;
    EXPECT_TRUE(std::is_sorted(got.end() - 9, got.end(), std::greater<>()));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Machines, AheadOfTime,
    ::testing::Values(Machine{"x86_64", "gcc", ""}, Machine{"aarch64", "aarch64-linux-gnu-gcc", "qemu-aarch64-static"},
                      Machine{"riscv64", "riscv64-linux-gnu-gcc", "qemu-riscv64-static -cpu rv64,v=true,vlen=128"},
                      Machine{"riscv64", "riscv64-linux-gnu-gcc", "qemu-riscv64-static -cpu rv64,v=true,vlen=512"},
                      Machine{"c:8", "gcc", ""}, Machine{"c", "clang", ""},
                      Machine{"c:4", "aarch64-linux-gnu-gcc", "qemu-aarch64-static"},
                      Machine{"c", "riscv64-linux-gnu-gcc", "qemu-riscv64-static"}, Machine{"c:8", "tcc", ""},
                      Machine{"c", "s390x-linux-gnu-gcc", "qemu-s390x-static"}));

TEST(AheadOfTimeResults, AreThoseOfTheProgramAlsoIfTheyAreNotComputed) {
  const Folder folder;
  write(folder / "same.hlo", R"(HloModule same
ENTRY main {
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  sum = f32[3] add(x, y)
  c = s32[2] constant({7, -8})
  ROOT results = (f32[3], f32[3], s32[2], f32[3], f32[3]) tuple(y, sum, c, sum, x)
})");
  write(folder / "main.c", R"(
#include <stdio.h>
#include <same.h>
int main(void) {
  static char workspace[SAME_WORKSPACE_BYTES + 64];
  const float x[3] = {1, 2, 3}, y[3] = {10, 20, 30};
  float a[3] = {0}, b[3] = {0}, d[3] = {0}, e[3] = {0};
  int32_t c[2] = {0};
  const struct same_arguments arguments = {x, y};
  const struct same_results results = {a, b, c, d, e};
  same(&arguments, &results, workspace + (64 - (uintptr_t)workspace % 64) % 64);
  printf("%g %g %d %d %g %g\n", a[1], b[1], c[0], c[1], d[2], e[2]);
  return 0;
})");
  for (const std::string target : {"c", "x86_64"}) {
    const bool as_source = target == "c";
    const Ran made = collet("compile " + (folder / "same.hlo") + " --target " + target + " --output " + folder.path());
    ASSERT_EQ(made.code, 0) << made.err;
    const std::string build = "gcc -Wall -Wextra -Werror -I" + folder.path() + " " + (folder / "main.c") + " " +
                              (folder / (as_source ? "same.c" : "same.o")) + " -lm -o " + (folder / "main");
    ASSERT_EQ(std::system(build.c_str()), 0) << contents(folder / "same.h");
    ASSERT_EQ(std::system(((folder / "main") + " > " + (folder / "out")).c_str()), 0);
    EXPECT_EQ(contents(folder / "out"), "20 22 7 -8 33 3\n") << target;
  }
}

TEST(CompileHeader, FieldsHaveDistinctNamesThatAreNoKeywords) {
  const Folder folder;
  write(folder / "names.hlo", R"(HloModule names
ENTRY main {
  a_1_2 = f32[] parameter(0)
  a.1 = f32[] parameter(1)
  a_1 = f32[] parameter(2)
  nullptr = f32[] parameter(3)
  s = f32[] add(a_1_2, a.1)
  t = f32[] add(a_1, nullptr)
  ROOT constexpr = f32[] multiply(s, t)
})");
  const Ran made =
      collet("compile " + (folder / "names.hlo") + " --target x86_64 --emit header --output " + folder.path());
  ASSERT_EQ(made.code, 0) << made.err;
  write(folder / "main.cc", "#include <names.h>\nint main() { return 0; }\n");
  const std::string build =
      "g++ -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I" + folder.path() + " " + (folder / "main.cc");
  EXPECT_EQ(std::system(build.c_str()), 0) << contents(folder / "names.h");
}

constexpr char kLengthsMain[] = R"(
#include <lengths.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char** files) {
  static float x[17 * 59], y[7370];
  (void)count;
  FILE* in = fopen(files[1], "rb");
  if (!in || fread(x, 1, sizeof x, in) != sizeof x) return 2;
  void* workspace = aligned_alloc(64, (LENGTHS_WORKSPACE_BYTES + 63) / 64 * 64);
  const struct lengths_arguments arguments = {x};
  const struct lengths_results results = {y};
  lengths(&arguments, &results, workspace);
  fwrite(y, 1, sizeof y, stdout);
  return 0;
}
)";

/// A processor with scalable vectors, and the commands that run its programs with vectors of several lengths.
struct ScalableMachine {
  const char* target;
  const char* compiler;
  std::vector<const char*> runs;
};

class ScalableVectors : public ::testing::TestWithParam<ScalableMachine> {};

TEST_P(ScalableVectors, OneObjectFileGivesTheSameWithVectorsOfEveryLength) {
  const ScalableMachine& machine = GetParam();
  const std::string emulator = machine.runs[0];
  if (!is_there(machine.compiler) || !is_there(emulator.substr(0, emulator.find(' '))))
    GTEST_SKIP() << "needs " << machine.compiler << " and " << emulator;
  const Folder folder;
  std::vector<float> x(17 * 59);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 1009) / 2.5f - 200;
  write(folder / "x", bytes_of(x));
  const Ran expected = collet("run sdk/tool/tests/data/lengths.hlo --backend interpreter --inputs " + (folder / "x") +
                              " --output " + folder.path());
  ASSERT_EQ(expected.code, 0) << expected.err;
  const std::vector<float> want = floats_of(contents(folder / "output_0.bin"));
  const Ran made = collet("compile sdk/tool/tests/data/lengths.hlo --emit object,header,llvm --output " +
                          folder.path() + " --target " + machine.target);
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_NE(contents(folder / "lengths.ll").find("<vscale x "), std::string::npos);
  write(folder / "main.c", kLengthsMain);
  const std::string build = std::string(machine.compiler) + " -static -Wall -Wextra -Werror -I" + folder.path() + " " +
                            (folder / "main.c") + " " + (folder / "lengths.o") + " -lm -o " + (folder / "main");
  ASSERT_EQ(std::system(build.c_str()), 0) << build;
  for (const std::string run : machine.runs) {
    SCOPED_TRACE(run);
    ASSERT_EQ(std::system((run + " " + (folder / "main") + " " + (folder / "x") + " > " + (folder / "out")).c_str()),
              0);
    const std::vector<float> got = floats_of(contents(folder / "out"));
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(got[i], want[i], 1e-5 * std::max(1.0f, std::abs(want[i]))) << "element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Machines, ScalableVectors,
    ::testing::Values(ScalableMachine{"riscv64",
                                      "riscv64-linux-gnu-gcc",
                                      {"qemu-riscv64-static -cpu rv64,v=true,vext_spec=v1.0,vlen=128",
                                       "qemu-riscv64-static -cpu rv64,v=true,vext_spec=v1.0,vlen=256",
                                       "qemu-riscv64-static -cpu rv64,v=true,vext_spec=v1.0,vlen=1024"}},
                      ScalableMachine{"aarch64:neoverse-v1",
                                      "aarch64-linux-gnu-gcc",
                                      {"qemu-aarch64-static -cpu max,sve128=on,sve-max-vq=1",
                                       "qemu-aarch64-static -cpu max,sve256=on,sve-max-vq=2",
                                       "qemu-aarch64-static -cpu max,sve2048=on,sve-max-vq=16"}}));

// LLVM converts vectors of these to f64 first, for AArch64 has no other instruction: that would round twice.
TEST(CompileForNeon, IntegersOf64BitsAreRoundedOnce) {
  if (!is_there("aarch64-linux-gnu-gcc") || !is_there("qemu-aarch64-static"))
    GTEST_SKIP() << "needs a compiler and qemu";
  const Folder folder;
  write(folder / "convert.hlo", R"(HloModule convert
ENTRY main {
  u = u64[16] parameter(0)
  s = s64[16] parameter(1)
  a = f32[16] convert(u)
  b = f32[16] convert(s)
  ROOT both = f32[32] concatenate(a, b), dimensions={0}
})");
  const Ran made = collet("compile " + (folder / "convert.hlo") + " --target aarch64 --emit header,object --output " +
                          folder.path());
  ASSERT_EQ(made.code, 0) << made.err;
  write(folder / "main.c", R"(#include <convert.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  uint64_t u[16];
  int64_t s[16];
  float y[32];
  // Just above and below the middle of two neighbours of f32, by less than f64 resolves.
  for (int i = 0; i < 16; ++i) {
    u[i] = 18446743523953737728u - (uint64_t)(i % 3) + (uint64_t)(i / 3) * 2199023255552u;
    s[i] = (i % 2 ? -1 : 1) * (int64_t)(u[i] / 2);
  }
  void* workspace = aligned_alloc(64, (CONVERT_WORKSPACE_BYTES + 63) / 64 * 64);
  const struct convert_arguments arguments = {u, s};
  const struct convert_results results = {y};
  convert(&arguments, &results, workspace);
  for (int i = 0; i < 16; ++i)
    if (y[i] != (float)u[i] || y[16 + i] != (float)s[i]) return printf("%d: %.9g %.9g %.9g %.9g\n", i, y[i], (float)u[i], y[16 + i], (float)s[i]), 1;
  return 0;
}
)");
  const std::string build = "aarch64-linux-gnu-gcc -static -fno-tree-vectorize -I" + folder.path() + " " +
                            (folder / "main.c") + " " + (folder / "convert.o") + " -o " + (folder / "main");
  ASSERT_EQ(std::system(build.c_str()), 0) << build;
  EXPECT_EQ(std::system(("qemu-aarch64-static " + (folder / "main")).c_str()), 0);
}

// An attention with a causal mask. Its scores are so large that it runs in blocks of rows.
constexpr char kAttention[] = R"(
  b = f32[16,160,160] broadcast(x), dimensions={1,2}
  n = s32[16,160,160] iota(), iota_dimension=0
  f = f32[16,160,160] convert(n)
  t = f32[16,160,160] multiply(b, f)
  scores = f32[16,160,160] dot(t, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
  row = s32[16,160,160] iota(), iota_dimension=1
  column = s32[16,160,160] iota(), iota_dimension=2
  seen = pred[16,160,160] compare(row, column), direction=GE
  none = f32[] constant(-inf)
  nones = f32[16,160,160] broadcast(none), dimensions={}
  logits = f32[16,160,160] select(seen, scores, nones)
  top = f32[16,160] reduce(logits, none), dimensions={2}, to_apply=top_of
  tops = f32[16,160,160] broadcast(top), dimensions={0,1}
  low = f32[16,160,160] subtract(logits, tops)
  exps = f32[16,160,160] exponential(low)
  total = f32[16,160] reduce(exps, zero), dimensions={2}, to_apply=sum
  totals = f32[16,160,160] broadcast(total), dimensions={0,1}
  weights = f32[16,160,160] divide(exps, totals)
  heads = f32[16,160,160] dot(weights, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  attention = f32[160,160] reduce(heads, zero), dimensions={0}, to_apply=sum
)";

// Returns a program with a product, a loop nest, a reduction and an attention that are large enough to be shared by
// threads, and with a constant that is larger than an argument may be.
std::string large_program() {
  std::string row;
  for (int i = 0; i < 160; ++i) row += (i ? ", " : "") + std::to_string((i * 7 % 11) - 5);
  std::string rows;
  for (int i = 0; i < 160; ++i) rows += (i ? ", {" : "{") + row + "}";
  return "HloModule large\nsum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
         "top_of { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }\n"
         "ENTRY e {\n  x = f32[160,160] parameter(0)\n  w = f32[160,160] constant({" +
         rows +
         "})\n  p = f32[160,160] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
         "  h = f32[160,160] tanh(p)\n  q = f32[160,160] dot(h, x), lhs_contracting_dims={1}, "
         "rhs_contracting_dims={1}\n"
         "  s = f32[160,160] exponential(h)\n  u = f32[160,160] add(q, s)\n  zero = f32[] constant(0)\n" +
         kAttention +
         "  y = f32[160,160] add(u, attention)\n"
         "  z = f32[160] reduce(s, zero), dimensions={1}, to_apply=sum\n"
         "  ROOT r = (f32[160,160], f32[160]) tuple(y, z)\n}\n";
}

// A C program in which four threads run parts of a loop, each as one worker. It reads the weights from a file.
constexpr char kSharing[] = R"(
#include <large.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
struct loop {
  atomic_llong next;
  int64_t range, grain;
  void (*body)(void*, int64_t, int64_t, int32_t);
  void* context;
};
struct worker { struct loop* loop; int32_t number; };
static int loops;
static void* work(void* given) {
  struct worker* worker = given;
  struct loop* loop = worker->loop;
  for (;;) {
    const int64_t begin = atomic_fetch_add(&loop->next, loop->grain);
    if (begin >= loop->range) return NULL;
    const int64_t end = begin + loop->grain < loop->range ? begin + loop->grain : loop->range;
    loop->body(loop->context, begin, end, worker->number);
  }
}
static void share(void* user, int64_t range, int64_t grain, void (*body)(void*, int64_t, int64_t, int32_t), void* context) {
  struct loop loop = {0, range, grain, body, context};
  struct worker workers[LARGE_THREADS];
  pthread_t threads[LARGE_THREADS];
  for (int i = 0; i < LARGE_THREADS; ++i) {
    workers[i] = (struct worker){&loop, i};
    if (pthread_create(&threads[i], NULL, work, &workers[i])) abort();
  }
  for (int i = 0; i < LARGE_THREADS; ++i) pthread_join(threads[i], NULL);
  ++*(int*)user;
}
int main(int count, char** files) {
  static float x[160 * 160], y[2][160 * 160], z[2][160];
  static _Alignas(64) char weights[LARGE_WEIGHTS_BYTES];
  (void)count;
  FILE *in = fopen(files[1], "rb"), *file = fopen(files[2], "rb");
  if (!in || fread(x, 1, sizeof x, in) != sizeof x) return 2;
  if (!file || fread(weights, 1, sizeof weights, file) != sizeof weights || fgetc(file) != EOF) return 3;
  void* workspace = aligned_alloc(64, (LARGE_WORKSPACE_BYTES + 63) / 64 * 64);
  const struct large_arguments arguments = {x};
  const struct large_threads threads = {share, &loops};
  for (int i = 0; i < 2; ++i) {
    const struct large_results results = {y[i], z[i]};
    large(&arguments, &results, workspace, weights, i ? &threads : NULL);
  }
  if (loops < 2) return 4;
  fwrite(y, 1, sizeof y, stdout);
  fwrite(z, 1, sizeof z, stdout);
  return 0;
}
)";

TEST(AheadOfTimeForms, ThreadsOfTheCallerShareTheWorkAndWeightsArePassed) {
  if (!is_there("gcc")) GTEST_SKIP() << "needs gcc";
  const Folder folder;
  std::vector<float> x(160 * 160);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101) / 800 - 0.0625f;
  write(folder / "x", bytes_of(x));
  write(folder / "large.hlo", large_program());
  const Ran expected = collet("run " + (folder / "large.hlo") + " --backend interpreter --inputs " + (folder / "x") +
                              " --output " + folder.path());
  ASSERT_EQ(expected.code, 0) << expected.err;
  const Ran made = collet("compile " + (folder / "large.hlo") +
                          " --target x86_64 --threads 4 --weights pass --output " + folder.path());
  ASSERT_EQ(made.code, 0) << made.err;
  write(folder / "main.c", kSharing);
  const std::string build = "gcc -Wall -Wextra -Werror -pthread -I" + folder.path() + " " + (folder / "main.c") + " " +
                            (folder / "large.o") + " -lm -o " + (folder / "main");
  ASSERT_EQ(std::system(build.c_str()), 0) << build;
  const std::string run =
      (folder / "main") + " " + (folder / "x") + " " + (folder / "large.weights") + " > " + (folder / "out");
  ASSERT_EQ(std::system(run.c_str()), 0) << run;
  const std::vector<float> got = floats_of(contents(folder / "out"));
  const std::vector<float> y = floats_of(contents(folder / "output_0.bin"));
  const std::vector<float> z = floats_of(contents(folder / "output_1.bin"));
  ASSERT_EQ(got.size(), 2 * (y.size() + z.size()));
  for (size_t call = 0; call < 2; ++call) {
    for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(got[call * y.size() + i], y[i], 1e-4) << call << ", " << i;
    for (size_t i = 0; i < z.size(); ++i)
      ASSERT_NEAR(got[2 * y.size() + call * z.size() + i], z[i], 1e-3) << call << ", " << i;
  }
}

TEST(AheadOfTimeForms, ProgramsMayBeCalledAsWhatTheyAreMadeOf) {
  const Folder folder;
  for (const std::string name : {"fmodf", "memmove", "kernel0", "micro_f32x4_4x2", "part", "matmul", "double"}) {
    write(folder / "p.hlo", "HloModule " + name +
                                "\nENTRY e {\n  x = f32[5,7] parameter(0)\n  y = f32[5,7] parameter(1)\n"
                                "  r = f32[5,7] remainder(x, y)\n  d = f32[5,5] dot(r, y), lhs_contracting_dims={1}, "
                                "rhs_contracting_dims={1}\n  ROOT t = (f32[5,7], f32[5,5]) tuple(r, d)\n}\n");
    Ran ran = collet("run " + (folder / "p.hlo") +
                     " --backend cpu --option launch=function --inputs random:1 --compare interpreter");
    EXPECT_EQ(ran.code, 0) << name << ": " << ran.err;
    ran = collet("compile " + (folder / "p.hlo") + " --target riscv64 --output " + folder.path());
    EXPECT_EQ(ran.code, 0) << name << ": " << ran.err;
  }
}

// Parameters keep their places in the struct, also those that the program does not use. "opt" is in the names of files of a
// stage of the compiler, too.
TEST(AheadOfTimeForms, ArgumentsAreTheParametersOfTheProgram) {
  const Folder folder;
  write(folder / "p.hlo",
        "HloModule opt\nENTRY e {\n  bias = f32[4] parameter(0)\n  x = f32[4] parameter(1)\n"
        "  none = f32[0] parameter(2)\n  ROOT y = f32[4] negate(x)\n}\n");
  for (const std::string target : {"c", "x86_64", "riscv64"}) {
    const Ran ran = collet("compile " + (folder / "p.hlo") + " --target " + target + " --output " + folder.path());
    ASSERT_EQ(ran.code, 0) << ran.err;
    const std::string header = contents(folder / "opt.h");
    const size_t bias = header.find("float* bias;"), x = header.find("float* x;"), none = header.find("float* none;");
    EXPECT_TRUE(bias < x && x < none && none != std::string::npos) << header;
  }
}

TEST(AheadOfTimeErrors, NameTheTargetTheFormAndTheOp) {
  const Folder folder;
  const std::string program = "sdk/tool/tests/data/ahead.hlo --output " + folder.path();
  Ran ran = collet("compile " + program + " --target mips");
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("mips"), std::string::npos) << ran.err;
  ran = collet("compile " + program + " --target riscv64:no-such-core");
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("no-such-core"), std::string::npos) << ran.err;
  ran = collet("compile " + program + " --target riscv64 --emit objct");
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("objct"), std::string::npos) << ran.err;
  write(folder / "call.hlo",
        "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT c = f32[4] custom-call(x), "
        "custom_call_target=\"far\"\n}\n");
  ran = collet("compile " + (folder / "call.hlo") + " --target riscv64");
  EXPECT_EQ(ran.code, 4);
  EXPECT_NE(ran.err.find("far"), std::string::npos) << ran.err;
}

}  // namespace
}  // namespace collet::tool::testing
