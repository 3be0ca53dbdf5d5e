// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "hlo/program/block.h"
#include "sdk/runtime/testing/programs.h"
#include "sdk/runtime/testing/session.h"

namespace collet::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A program with a loop, constants of both kinds, and clusters on both sides if the backend supports only some ops.
const std::string kProgram = loop_program(3, "y = f32[4] add(x, x)", R"(  w4 = f32[4] constant({0.1, nan, -inf, -0})
  p = f32[4] add(y, w4)
  ROOT t = (f32[4], f32[4]) tuple(p, y))");

class Serialize : public ::testing::Test, public Session {
 protected:
  std::string bytes_of(collet_executable* e) {
    collet_blob* blob = nullptr;
    failure.code = collet_executable_serialize(e, &blob, &error_);
    if (failure.code != COLLET_OK) {
      failure.message = error_.message;
      return {};
    }
    const BlobPtr owner(blob);
    return std::string(collet_blob_data(blob), collet_blob_size(blob));
  }
  ExecutablePtr load(collet_client* client, const std::string& bytes) {
    collet_executable* out = nullptr;
    failure.code = collet_executable_load(client, bytes.data(), bytes.size(), nullptr, &out, &error_);
    failure.message = failure.code == COLLET_OK ? "" : error_.message;
    return ExecutablePtr(out);
  }
  void expect_right(collet_client* client, collet_executable* e) {
    std::vector<BufferPtr> in;
    in.push_back(upload<float>(client, COLLET_TYPE_F32, {4}, {1, 2, 3, 4}));
    const auto out = run(e, in);
    ASSERT_EQ(out.size(), 2u) << failure.message;
    EXPECT_EQ(download<float>(out[0])[0], 8.1f);
    EXPECT_THAT(download<float>(out[1]), ElementsAre(8, 16, 24, 32));
  }
  // Writes the checksum of the changed bytes into the header.
  static void sign(std::string& bytes) {
    const hlo::ContentId id = hlo::content_id({bytes.data() + kHead, bytes.size() - kHead});
    std::memcpy(bytes.data() + kHead - sizeof id, &id, sizeof id);
  }
  static constexpr size_t kHead = 56;
  collet_error error_{};
};

std::vector<std::string> backends() {
  std::vector<std::string> out = {"interpreter", test_backend("memory_only"), test_backend("remote"),
                                  test_backend("narrow")};
  const char* path = std::getenv("COLLET_BACKEND_PATH");
  if (path && std::ifstream(std::string(path) + "/libcollet_backend_cpu.so")) out.emplace_back("cpu");
  return out;
}

TEST_F(Serialize, ComesBackOnEveryBackend) {
  for (const std::string& backend : backends()) {
    SCOPED_TRACE(backend);
    const char* fallback = backend == "cpu" ? nullptr : "interpreter";
    std::string bytes;
    uint32_t ops = 0;
    {
      const ClientPtr client = open(backend, fallback);
      const ExecutablePtr e = compile(client.get(), kProgram);
      ASSERT_TRUE(e) << failure.message;
      bytes = bytes_of(e.get());
      ASSERT_NE(bytes, "") << failure.message;
      ops = facts(e.get()).device_ops;
    }
    const ClientPtr client = open(backend, fallback);
    const ExecutablePtr e = load(client.get(), bytes);
    ASSERT_TRUE(e) << failure.message;
    EXPECT_EQ(facts(e.get()).device_ops, ops);
    expect_right(client.get(), e.get());
    // Nothing is compiled again if every backend of the program can serialize its code.
    const bool whole = backend == "interpreter" || backend == "cpu" || backend == test_backend("memory_only");
    EXPECT_EQ(facts(e.get()).from_cache, whole ? 1u : 0u);
    EXPECT_EQ(bytes_of(e.get()), bytes);
  }
}

TEST_F(Serialize, KeepsHowItWasCompiled) {
  const ClientPtr client = open("interpreter", nullptr, nullptr, 2);
  const ModulePtr module = read(R"(HloModule r
ENTRY e {
  x = u32[] parameter(0)
  r = u32[] replica-id()
  ROOT s = u32[] add(x, r)
})");
  const uint32_t devices[] = {1, 0};
  collet_compile_request request{};
  request.replica_count = 2;
  request.assignment_count = 2;
  request.assignment = devices;
  const ExecutablePtr first = compile(client.get(), module.get(), request);
  ASSERT_TRUE(first) << failure.message;
  const ClientPtr other = open("interpreter", nullptr, nullptr, 2);
  const ExecutablePtr e = load(other.get(), bytes_of(first.get()));
  ASSERT_TRUE(e) << failure.message;
  EXPECT_EQ(facts(e.get()).participants, 2u);
  const uint32_t x = 40;
  std::vector<BufferPtr> in;
  in.push_back(upload(other.get(), {COLLET_TYPE_U32, 0, nullptr}, &x, 1));
  in.push_back(upload(other.get(), {COLLET_TYPE_U32, 0, nullptr}, &x, 0));
  const auto out = run(e.get(), in);
  ASSERT_EQ(out.size(), 2u) << failure.message;
  EXPECT_THAT(download<uint32_t>(out[1]), ElementsAre(41));
  // There is only one device, so the error must say so.
  const ClientPtr small = open("interpreter");
  EXPECT_FALSE(load(small.get(), bytes_of(first.get())));
  EXPECT_THAT(failure.message, HasSubstr("devices"));
}

TEST_F(Serialize, KeepsThatResultsAreItsOwn) {
  const ClientPtr client = open("interpreter"), other = open("interpreter");
  const ModulePtr module =
      read("HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT t = (f32[4], f32[4]) tuple(x, x)\n}\n");
  collet_compile_request request{};
  request.own_results = 1;
  const ExecutablePtr first = compile(client.get(), module.get(), request);
  ASSERT_TRUE(first) << failure.message;
  const ExecutablePtr e = load(other.get(), bytes_of(first.get()));
  ASSERT_TRUE(e) << failure.message;
  EXPECT_EQ(facts(e.get()).device_ops, facts(first.get()).device_ops);
  EXPECT_NE(facts(compile(client.get(), module.get()).get()).device_ops, facts(first.get()).device_ops);
}

TEST_F(Serialize, PartitionedProgramsComeBackPartitioned) {
  const ClientPtr client = open("interpreter", nullptr, nullptr, 2), other = open("interpreter", nullptr, nullptr, 2);
  const ModulePtr module = read(R"(HloModule p, num_partitions=2
ENTRY e {
  x = f32[8] parameter(0), sharding={devices=[2]<=[2]}
  ROOT y = f32[8] add(x, x), sharding={devices=[2]<=[2]}
})");
  collet_compile_request request{};
  request.partition = 1;
  const ExecutablePtr first = compile(client.get(), module.get(), request);
  ASSERT_TRUE(first) << failure.message;
  const ExecutablePtr e = load(other.get(), bytes_of(first.get()));
  ASSERT_TRUE(e) << failure.message;
  EXPECT_EQ(facts(e.get()).from_cache, 1u);
  for (const ExecutablePtr* one : {&first, &e}) {
    EXPECT_EQ(collet_executable_argument(one->get(), 0).dims[0], 4);
    EXPECT_STREQ(collet_executable_argument_sharding(one->get(), 0), "{devices=[2]0,1}");
  }
}

TEST_F(Serialize, RefusesAnotherBackend) {
  const ClientPtr client = open("interpreter");
  const ExecutablePtr e = compile(client.get(), kProgram);
  const std::string bytes = bytes_of(e.get());
  const ClientPtr other = open(test_backend("memory_only"));
  EXPECT_FALSE(load(other.get(), bytes));
  EXPECT_EQ(failure.code, COLLET_FAILED_PRECONDITION);
  EXPECT_THAT(failure.message, HasSubstr("'interpreter'"));
  std::string newer = bytes;
  newer[8] = 6;
  EXPECT_FALSE(load(client.get(), newer));
  EXPECT_EQ(failure.code, COLLET_FAILED_PRECONDITION);
  EXPECT_THAT(failure.message, HasSubstr("form 6"));
}

TEST_F(Serialize, DamageIsToldOfEveryBit) {
  const ClientPtr client = open("interpreter");
  const ExecutablePtr e = compile(client.get(), kProgram);
  const std::string whole = bytes_of(e.get());
  for (size_t n = 0; n < whole.size(); n += 1 + n / 64) {
    EXPECT_FALSE(load(client.get(), whole.substr(0, n))) << n << " bytes";
    EXPECT_EQ(failure.code, COLLET_DATA_LOSS) << n << " bytes";
  }
  EXPECT_FALSE(load(client.get(), whole + "x"));
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ 1 << i % 8);
    EXPECT_FALSE(load(client.get(), bytes)) << "byte " << i;
    EXPECT_TRUE(failure.code == COLLET_DATA_LOSS || (failure.code == COLLET_FAILED_PRECONDITION && i < 12)) << i;
  }
}

// With a key only what is signed with it is loaded; without one anything.
TEST_F(Serialize, WithAKey_LoadsWhatIsSignedWithIt) {
  namespace fs = std::filesystem;
  const std::string key = ::testing::TempDir() + "collet_key_" + std::to_string(getpid());
  const auto write_key = [&](const std::string& text) {
    std::ofstream(key) << text;
    fs::permissions(key, fs::perms(0600));
  };
  const ClientPtr client = open("interpreter");
  const ExecutablePtr e = compile(client.get(), kProgram);
  const std::string unsigned_bytes = bytes_of(e.get());
  write_key("the first key of this test");
  setenv("COLLET_KEY_FILE", key.c_str(), 1);
  const std::string bytes = bytes_of(e.get());
  EXPECT_EQ(bytes.size(), unsigned_bytes.size() + 32);
  EXPECT_TRUE(load(client.get(), bytes)) << failure.message;
  EXPECT_FALSE(load(client.get(), unsigned_bytes));
  EXPECT_EQ(failure.code, COLLET_PERMISSION_DENIED);
  EXPECT_THAT(failure.message, HasSubstr("not signed"));
  // Whoever changes the bytes can compute the hash again, but not the signature.
  std::string forged = bytes;
  forged.back() = static_cast<char>(forged.back() ^ 1);
  sign(forged);
  EXPECT_FALSE(load(client.get(), forged));
  EXPECT_EQ(failure.code, COLLET_PERMISSION_DENIED);
  write_key("the second key of this test");
  EXPECT_FALSE(load(client.get(), bytes));
  EXPECT_THAT(failure.message, HasSubstr("another key"));
  fs::permissions(key, fs::perms(0640));
  EXPECT_EQ(bytes_of(e.get()), "");
  EXPECT_EQ(failure.code, COLLET_PERMISSION_DENIED);
  unsetenv("COLLET_KEY_FILE");
  EXPECT_TRUE(load(client.get(), bytes)) << failure.message;
  fs::remove(key);
}

// Changed bytes with a correct checksum are refused, or the program is compiled again from its intact part.
TEST_F(Serialize, ForgedBytesDoNoHarm) {
  const ClientPtr client = open("interpreter");
  const ExecutablePtr e = compile(client.get(), kProgram);
  const std::string whole = bytes_of(e.get());
  uint64_t state = 1;
  const auto random = [&] { return state = state * 6364136223846793005u + 1442695040888963407u, state >> 33; };
  int loaded = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = whole;
    const int kind = round % 4;
    if (kind == 0) bytes.resize(kHead + random() % (bytes.size() - kHead));
    for (int flips = kind; flips > 0; --flips) {
      char& byte = bytes[kHead + random() % (bytes.size() - kHead)];
      byte = static_cast<char>(random());
    }
    const uint64_t size = bytes.size() - kHead;
    std::memcpy(bytes.data() + 16, &size, sizeof size);
    sign(bytes);
    if (load(client.get(), bytes)) {
      ++loaded;
    } else {
      EXPECT_NE(failure.code, COLLET_OK);
      EXPECT_NE(failure.message, "");
    }
  }
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, 2000);
  expect_right(client.get(), e.get());
}

}  // namespace
}  // namespace collet::testing
