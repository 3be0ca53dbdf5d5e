// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>

#include "sdk/runtime/testing/session.h"

// What the library itself does for one execution of a compiled program, on a backend that does nothing: it allocates
// nothing, and takes about as long as a few function calls.

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COLLET_COUNTS_ALLOCATIONS 1

// The C library's own, around which everybody's calls in this process are counted, operator new's among them.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* place, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace {
std::atomic<uint64_t> allocations{0};
}

extern "C" {
void* malloc(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}
void* realloc(void* place, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(place, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
}
#else
namespace {
std::atomic<uint64_t> allocations{0};
}
#endif

namespace collet::testing {
namespace {

constexpr char kStep[] = R"(HloModule step, input_output_alias={ {0}: (0, {}, may-alias) }
ENTRY e {
  w = f32[4] parameter(0)
  x = f32[4] parameter(1)
  y = f32[4] add(w, x)
  z = f32[4] multiply(y, x)
  ROOT t = (f32[4], f32[4]) tuple(y, z)
})";

class HotPath : public ::testing::TestWithParam<const char*>, public Session {
 protected:
  void SetUp() override {
    const std::string name = GetParam();
    client_ = open(name == "idle" ? test_backend(name) : name, "none");
    if (!client_ && name == "cpu") GTEST_SKIP() << "cpu was not built";
    ASSERT_TRUE(client_) << failure.message;
    e_ = compile(client_.get(), kStep);
    ASSERT_TRUE(e_) << failure.message;
    w_ = upload<float>(client_.get(), COLLET_TYPE_F32, {4}, {1, 2, 3, 4});
    x_ = upload<float>(client_.get(), COLLET_TYPE_F32, {4}, {0, 0, 0, 0});
  }

  // A training loop's step: the first argument is given away, and what takes its place comes back.
  void step() {
    collet_buffer *in[] = {w_.get(), x_.get()}, *out[2] = {};
    ASSERT_EQ(collet_execute(e_.get(), nullptr, in, out, nullptr), COLLET_OK);
    w_.reset(out[0]);
    collet_buffer_release(out[1]);
  }

  ClientPtr client_;
  ExecutablePtr e_;
  BufferPtr w_, x_;
};

TEST_P(HotPath, AllocatesNothing) {
#ifndef COLLET_COUNTS_ALLOCATIONS
  GTEST_SKIP() << "the sanitizer has the allocator";
#endif
  for (int i = 0; i < 200; ++i) step();
  const uint64_t before = allocations.load();
  for (int i = 0; i < 1000; ++i) step();
  const uint64_t kept = allocations.load() - before;
  EXPECT_EQ(kept, 0u) << kept << " allocations in 1000 executions";
  const BufferPtr more = upload<float>(client_.get(), COLLET_TYPE_F32, {4}, {1, 2, 3, 4});
  EXPECT_GT(allocations.load(), before) << "allocations are not counted";
}

// However many arguments and results there are.
TEST_P(HotPath, AllocatesNothingForManyArguments) {
#ifndef COLLET_COUNTS_ALLOCATIONS
  GTEST_SKIP() << "the sanitizer has the allocator";
#endif
  if (std::string(GetParam()) != "idle") GTEST_SKIP() << "there the backend's own are counted too";
  constexpr size_t kMany = 100;
  std::string text = "HloModule m\nENTRY e {\n", types, names;
  for (size_t i = 0; i < kMany; ++i) {
    const std::string n = std::to_string(i);
    text += "  x" + n + " = f32[4] parameter(" + n + ")\n  y" + n + " = f32[4] add(x" + n + ", x" + n + ")\n";
    types += (i ? ", " : "") + std::string("f32[4]");
    names += (i ? ", y" : "y") + n;
  }
  const ExecutablePtr e = compile(client_.get(), text + "  ROOT t = (" + types + ") tuple(" + names + ")\n}\n");
  ASSERT_TRUE(e) << failure.message;
  const std::vector<collet_buffer*> in(kMany, w_.get());
  std::vector<collet_buffer*> out(kMany);
  uint64_t before = 0;
  for (int i = 0; i < 300; ++i) {
    if (i == 100) before = allocations.load();
    ASSERT_EQ(collet_execute(e.get(), nullptr, in.data(), out.data(), nullptr), COLLET_OK);
    for (collet_buffer* b : out) collet_buffer_release(b);
  }
  const uint64_t made = allocations.load() - before;
  EXPECT_EQ(made, 0u) << made << " allocations in 200 executions";
}

double cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

// Of the processor's time, in the best of some runs: others may be at work.
TEST_P(HotPath, TakesLessThanAMicrosecondOfTheLibrarysOwn) {
#ifndef COLLET_COUNTS_ALLOCATIONS
  GTEST_SKIP() << "the sanitizer takes its time";
#endif
  if (std::string(GetParam()) != "idle") GTEST_SKIP() << "there the backend's own time is in it";
  constexpr int kSteps = 1000;
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    const double start = cpu_ns();
    for (int i = 0; i < kSteps; ++i) step();
    best = std::min(best, (cpu_ns() - start) / kSteps);
  }
  RecordProperty("ns", static_cast<int>(best));
  EXPECT_LT(best, 1000);
}

INSTANTIATE_TEST_SUITE_P(Backends, HotPath, ::testing::Values("idle", "cpu"),
                         [](const auto& backend) { return std::string(backend.param); });

}  // namespace
}  // namespace collet::testing
