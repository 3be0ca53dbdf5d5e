// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "sdk/runtime/testing/programs.h"
#include "sdk/runtime/testing/session.h"

// Tests what the library does for one execution of a compiled program: it allocates nothing, and wakes no thread for
// a small program. sdk_hot_path_benchmark measures the time.

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COLLET_COUNTS_ALLOCATIONS 1

// The allocation functions of the C library. The test replaces malloc and the others by functions that count all calls
// in this process, including those of operator new, and then call these.
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
    if (std::getenv("COLLET_TEST_EMULATED")) GTEST_SKIP() << "in an emulator no run is short";
    client_ = open(name == "idle" ? test_backend(name) : name, "none");
    if (!client_ && name == "cpu") GTEST_SKIP() << "cpu was not built";
    ASSERT_TRUE(client_) << failure.message;
    e_ = compile(client_.get(), kStep);
    ASSERT_TRUE(e_) << failure.message;
    w_ = upload<float>(client_.get(), COLLET_TYPE_F32, {4}, {1, 2, 3, 4});
    x_ = upload<float>(client_.get(), COLLET_TYPE_F32, {4}, {0, 0, 0, 0});
  }

  // A step of a training loop: the first argument is donated, and the result that uses its memory is the argument of
  // the next step.
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

// The number of arguments and results does not matter.
TEST_P(HotPath, AllocatesNothingForManyArguments) {
#ifndef COLLET_COUNTS_ALLOCATIONS
  GTEST_SKIP() << "the sanitizer has the allocator";
#endif
  if (std::string(GetParam()) != "idle") GTEST_SKIP() << "there the backend's own are counted too";
  constexpr size_t kMany = 100;
  const ExecutablePtr e = compile(client_.get(), program_of_many(kMany));
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

struct Others {
  uint64_t sleeps = 0;  ///< how often they have started to sleep
  bool asleep = true;   ///< all of them are sleeping now
};

// The threads of this process other than the caller.
Others others() {
  Others found;
  std::error_code error;
  const std::string mine = std::to_string(gettid());
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    if (task.path().filename() == mine) continue;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      constexpr std::string_view kSleeps = "voluntary_ctxt_switches:", kState = "State:\t";
      if (line.starts_with(kSleeps)) found.sleeps += std::stoull(line.substr(kSleeps.size()));
      if (line.starts_with(kState)) found.asleep &= line[kState.size()] == 'S';
    }
  }
  return found;
}

// Waits until all of them sleep, which may take a while on a busy machine; returns the number of sleeps.
uint64_t sleeps_once_asleep() {
  for (int i = 0; i < 1000 && !others().asleep; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return others().sleeps;
}

// A worker that is woken goes to sleep again, which is counted: programs of less than 20 us must not wake the workers.
TEST_P(HotPath, SmallProgramsWakeNobody) {
  const std::vector<std::string> programs = {
      "ENTRY e {\n  x = f32[1024] parameter(0)\n  ROOT y = f32[1024] add(x, x)\n}\n",
      "ENTRY e {\n  x = f32[1024] parameter(0)\n  ROOT y = f32[1024] exponential(x)\n}\n",
      "ENTRY e {\n  x = f32[1024] parameter(0)\n  m = f32[32,32] reshape(x)\n  ROOT y = f32[32,32] dot(m, m), "
      "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n",
      "ENTRY e {\n  x = f32[1024] parameter(0)\n  m = f32[32,32] reshape(x)\n  ROOT y = f32[32,32] transpose(m), "
      "dimensions={1,0}\n}\n"};
  const BufferPtr x = upload<float>(client_.get(), COLLET_TYPE_F32, {1024}, std::vector<float>(1024, 0.5f));
  ASSERT_TRUE(x);
  for (const std::string& program : programs) {
    const ExecutablePtr e = compile(client_.get(), "HloModule m\n" + program);
    ASSERT_TRUE(e) << failure.message;
    const auto run = [&](int times) {
      for (int i = 0; i < times; ++i) {
        collet_buffer *in = x.get(), *out = nullptr;
        ASSERT_EQ(collet_execute(e.get(), nullptr, &in, &out, nullptr), COLLET_OK);
        collet_buffer_release(out);
      }
    };
    run(10);
    const uint64_t before = sleeps_once_asleep();
    run(500);
    EXPECT_EQ(sleeps_once_asleep(), before) << program;
  }
  // Checks that the measurement works: a large program wakes them.
  if (std::string(GetParam()) != "cpu" || std::thread::hardware_concurrency() < 2) return;
  const ExecutablePtr large = compile(client_.get(), R"(HloModule m
ENTRY e {
  x = f32[1024] parameter(0)
  b = f32[4096,1024] broadcast(x), dimensions={1}
  ROOT y = f32[4096,1024] exponential(b)
})");
  ASSERT_TRUE(large) << failure.message;
  const uint64_t before = sleeps_once_asleep();
  for (int i = 0; i < 5; ++i) {
    collet_buffer *in = x.get(), *out = nullptr;
    ASSERT_EQ(collet_execute(large.get(), nullptr, &in, &out, nullptr), COLLET_OK);
    collet_buffer_release(out);
  }
  EXPECT_GT(sleeps_once_asleep(), before);
}

INSTANTIATE_TEST_SUITE_P(Backends, HotPath, ::testing::Values("idle", "cpu"),
                         [](const auto& backend) { return std::string(backend.param); });

}  // namespace
}  // namespace collet::testing
