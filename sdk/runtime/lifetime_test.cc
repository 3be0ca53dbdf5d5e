// SPDX-License-Identifier: Apache-2.0
#include <collet/collet.h>
#include <gmock/gmock.h>

#include <chrono>
#include <fstream>
#include <thread>
#include <utility>

#include "sdk/runtime/testing/session.h"

// Tests that objects are destroyed at the right time, in whatever order the caller releases them.

namespace collet::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Lifetime : public ::testing::Test, public Session {
 protected:
  // Waits until a condition holds, because worker threads release their references slightly later.
  template <typename F>
  static bool soon(const F& holds) {
    for (int i = 0; i < 10000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return holds();
  }
  Control control_;
};

// A copy between devices continues after the client and both arrays have been released.
TEST_F(Lifetime, CopiesOutliveTheClientsClose) {
  constexpr int64_t kMany = int64_t{1} << 20;
  const std::vector<float> data(kMany, 3);
  ClientPtr client = open(test_backend("wrapper"), "none", &control_, 2);
  ASSERT_TRUE(client) << failure.message;
  BufferPtr x = upload(client.get(), COLLET_TYPE_F32, {kMany}, data);
  control_.copy_delay_ns = 100000000;
  collet_buffer* raw = nullptr;
  client.reset();
  ASSERT_EQ(collet_buffer_copy(x.get(), 1, COLLET_NONE, &raw, nullptr), COLLET_OK);
  BufferPtr(raw).reset();
  x.reset();
  EXPECT_TRUE(soon([&] { return control_.instances == 0; }));
  EXPECT_EQ(control_.buffers.load(), 0);
}

// Its destructor runs after those of the library's thread-local objects, because it is created before them.
struct Keeper {
  BufferPtr kept;
};
thread_local Keeper keeper;

TEST_F(Lifetime, BuffersMayBeReleasedAsTheLastThingOfAThread) {
  const ClientPtr client = open("interpreter");
  std::thread([&] {
    keeper.kept.reset();
    upload<float>(client.get(), COLLET_TYPE_F32, {2}, {1, 2}).reset();
    keeper.kept = upload<float>(client.get(), COLLET_TYPE_F32, {2}, {1, 2});
  }).join();
  EXPECT_TRUE(upload<float>(client.get(), COLLET_TYPE_F32, {2}, {1, 2}));
}

constexpr int64_t kMillion[] = {1 << 20};

std::string with_constant(int seed) {
  std::string numbers;
  for (int i = 0; i < 65536; ++i) numbers += (i ? "," : "") + std::to_string(i + seed);
  return "HloModule m\nENTRY e {\n  x = f32[65536] parameter(0)\n  c = f32[65536] constant({" + numbers +
         "})\n  ROOT y = f32[65536] add(x, c)\n}\n";
}

// The memory of constants whose programs were released is reused by programs that are compiled later, but constants in
// use are kept.
TEST_F(Lifetime, UnusedConstantsMakeRoom) {
  constexpr int64_t kBytes = 65536 * sizeof(float);
  const ClientPtr client = open(test_backend("wrapper"), "none", &control_);
  std::vector<BufferPtr> in;
  in.push_back(upload(client.get(), COLLET_TYPE_F32, {65536}, std::vector<float>(65536, 1)));
  const ExecutablePtr kept = compile(client.get(), with_constant(5));
  ASSERT_TRUE(kept) << failure.message;
  ASSERT_GE(control_.memory.load(), 2 * kBytes) << "the constant is not on the device";
  control_.memory_limit = 5 * kBytes;  // one argument, two constants, one result, and the rounding of their sizes
  for (int seed = 0; seed < 5; ++seed) {
    const ExecutablePtr e = compile(client.get(), with_constant(seed));
    ASSERT_TRUE(e) << seed << ": " << failure.message;
    const auto out = run(e.get(), in);
    ASSERT_EQ(out.size(), 1u) << seed << ": " << failure.message;
    EXPECT_EQ(download<float>(out[0])[10], 11 + seed);
  }
  const auto out = run(kept.get(), in);
  ASSERT_EQ(out.size(), 1u) << failure.message;
  EXPECT_EQ(download<float>(out[0])[10], 16);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Returns a line of /proc/self/status in MiB: "VmRSS:", or "VmHWM:" for the most since clear_peak.
int64_t process_mib(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == name && status >> word) return std::stoll(word) >> 10;
  return -1;
}
void clear_peak() {
  std::ofstream("/proc/self/clear_refs") << 5;
}

// A program with a large constant is read and compiled with one copy beside the device's, and kept with the device's alone. The
// program can still be written.
TEST_F(Lifetime, LargeConstantsAreKeptOnce) {
  constexpr int64_t kMiB = 64;
  const std::string text =
      "HloModule m\nENTRY e {\n  x = f32[16777216] parameter(0)\n  c = f32[16777216] constant({...})\n"
      "  ROOT y = f32[16777216] multiply(x, c)\n}\n";
  for (const uint32_t format : {COLLET_FORMAT_STABLEHLO, COLLET_FORMAT_HLO_PROTO}) {
    SCOPED_TRACE(format);
    const ClientPtr client = open("interpreter", "none");
    collet_blob* blob = nullptr;
    {
      const ModulePtr made = read(text, COLLET_ELIDED_COUNTER);
      ASSERT_EQ(collet_module_write(made.get(), format, &blob, nullptr), COLLET_OK);
    }
    BlobPtr code(blob);
    clear_peak();
    const int64_t before = process_mib("VmRSS:");
    ModulePtr module = read({collet_blob_data(blob), collet_blob_size(blob)});
    ASSERT_TRUE(module) << failure.message;
    ExecutablePtr e = compile(client.get(), module.get());
    ASSERT_TRUE(e) << failure.message;
    module.reset();
    const int64_t after = process_mib("VmRSS:"), peak = process_mib("VmHWM:");
    EXPECT_LT(after - before, kMiB * 3 / 2);
    const int64_t at_once = format == COLLET_FORMAT_HLO_PROTO ? 3 : 2;  // protobuf has one of its own
    EXPECT_LT(peak - before, kMiB * at_once + kMiB / 2);
    ASSERT_EQ(collet_executable_program(e.get(), format, &blob, nullptr), COLLET_OK);
    const BlobPtr again(blob);
    e.reset();
    EXPECT_TRUE(std::string_view(collet_blob_data(blob), collet_blob_size(blob))
                    .find(std::string_view(collet_blob_data(code.get()) + collet_blob_size(code.get()) / 2, 64)) !=
                std::string_view::npos);
  }
}
#endif

// Memory in one device's pool is freed if another device needs it.
TEST_F(Lifetime, PoolsMakeRoomForEachOther) {
  const ClientPtr client = open(test_backend("wrapper"), "none", &control_, 2);
  const std::vector<float> data(1 << 20);
  upload(client.get(), {COLLET_TYPE_F32, 1, kMillion}, data.data(), 0).reset();
  control_.memory_limit = control_.memory + 100;
  EXPECT_TRUE(upload(client.get(), {COLLET_TYPE_F32, 1, kMillion}, data.data(), 1)) << failure.message;
}

// The messages of a log, and the thread that logged the last one.
struct Lines {
  std::vector<std::string> text;
  bool opens_another = false;
};

ClientPtr open_with_log(Lines& lines) {
  collet_client_options o{};
  o.struct_size = sizeof o;
  o.backend = "interpreter";
  o.log_user = &lines;
  o.log = [](void* user, int32_t, const char* message) {
    auto& to = *static_cast<Lines*>(user);
    to.text.emplace_back(message);
    Lines inner;
    if (std::exchange(to.opens_another, false)) open_with_log(inner).reset();
  };
  collet_client* out = nullptr;
  EXPECT_EQ(collet_client_open(&o, &out, nullptr), COLLET_OK);
  return ClientPtr(out);
}

// Causes a log message by closing a client before its objects are released.
void say_something() {
  Session s;
  collet_client_options o{};
  o.struct_size = sizeof o;
  o.backend = "interpreter";
  collet_client* out = nullptr;
  ASSERT_EQ(collet_client_open(&o, &out, nullptr), COLLET_OK);
  ClientPtr client(out);
  const BufferPtr x = s.upload<float>(client.get(), COLLET_TYPE_F32, {2}, {1, 2});
  client.reset();
}

TEST(Log, GoesToTheClientThatWasOpenedLast) {
  Lines first, second;
  const ClientPtr outer = open_with_log(first);
  say_something();
  EXPECT_THAT(first.text, ElementsAre(HasSubstr("client closed while 1")));
  ClientPtr inner = open_with_log(second);
  say_something();
  EXPECT_EQ(first.text.size(), 1u);
  EXPECT_EQ(second.text.size(), 1u);
  inner.reset();
  say_something();
  EXPECT_EQ(first.text.size(), 2u);
}

TEST(Log, MayCallTheLibrary) {
  Lines lines;
  lines.opens_another = true;
  const ClientPtr client = open_with_log(lines);
  say_something();
  EXPECT_EQ(lines.text.size(), 1u);
}

// Memory that was not requested for some seconds is returned to the backend.
TEST_F(Lifetime, PooledMemoryIsGivenBackAfterAWhile) {
  const ClientPtr client = open(test_backend("wrapper"), "none", &control_);
  const std::vector<float> data(1 << 20, 1);
  for (int i = 0; i < 3; ++i) {
    std::vector<BufferPtr> buffers;
    for (int k = 0; k < 12; ++k) buffers.push_back(upload(client.get(), {COLLET_TYPE_F32, 1, kMillion}, data.data()));
  }
  EXPECT_EQ(control_.buffers.load(), 12);
  EXPECT_TRUE(soon([&] { return control_.buffers == 0; }));
}

}  // namespace
}  // namespace collet::testing
