// SPDX-License-Identifier: Apache-2.0
#include <collet/collet.h>
#include <gmock/gmock.h>

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "sdk/runtime/testing/programs.h"
#include "sdk/runtime/testing/session.h"

namespace collet::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kAddMultiply[] = R"(HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  two = f32[] constant(2)
  twos = f32[4] broadcast(two), dimensions={}
  s = f32[4] add(x, y)
  p = f32[4] multiply(s, twos)
  n = f32[4] negate(p)
  ROOT t = (f32[4], f32[4]) tuple(n, s)
})";

constexpr char kLoop[] = R"(HloModule loop
cond {
  s = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[4] get-tuple-element(s), index=1
  y = f32[4] get-tuple-element(s), index=2
  z = f32[4] add(x, y)
  ROOT r = (s32[], f32[4], f32[4]) tuple(j, z, y)
}
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  zero = s32[] constant(0)
  init = (s32[], f32[4], f32[4]) tuple(zero, x, y)
  w = (s32[], f32[4], f32[4]) while(init), condition=cond, body=body
  ROOT out = f32[4] get-tuple-element(w), index=1
})";

class Runtime : public ::testing::Test, public Session {};

TEST_F(Runtime, RunsAProgramOnTheInterpreter) {
  const ClientPtr client = open("interpreter");
  ASSERT_TRUE(client) << failure.message;
  const ExecutablePtr e = compile(client.get(), kAddMultiply);
  ASSERT_TRUE(e) << failure.message;
  EXPECT_EQ(facts(e.get()).clusters, 1u);
  EXPECT_EQ(facts(e.get()).fallback_ops, 0u);
  const auto results = run(e.get(), two_vectors(client.get()));
  ASSERT_EQ(results.size(), 2u) << failure.message;
  EXPECT_THAT(download<float>(results[0]), ElementsAre(-22, -44, -66, -88));
  EXPECT_THAT(download<float>(results[1]), ElementsAre(11, 22, 33, 44));
}

TEST_F(Runtime, RunsEverythingOnTheFallback) {
  const ClientPtr client = open(test_backend("memory_only"));
  ASSERT_TRUE(client) << failure.message;
  collet_client_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(collet_client_info_get(client.get(), &info, nullptr), COLLET_OK);
  EXPECT_EQ(info.functions, 6u);
  EXPECT_STREQ(info.fallback, "interpreter");
  for (const char* program : {kAddMultiply, kLoop}) {
    const ExecutablePtr e = compile(client.get(), program);
    ASSERT_TRUE(e) << failure.message;
    EXPECT_EQ(facts(e.get()).device_ops, 0u);
    EXPECT_EQ(facts(e.get()).clusters, 1u);
    const auto results = run(e.get(), two_vectors(client.get()));
    ASSERT_FALSE(results.empty()) << failure.message;
    EXPECT_EQ(download<float>(results[0])[0], program == kLoop ? 51 : -22);
  }
}

TEST_F(Runtime, WithoutFallbackNamesTheOp) {
  const ClientPtr client = open(test_backend("memory_only"), "none");
  ASSERT_TRUE(client) << failure.message;
  EXPECT_FALSE(compile(client.get(), kAddMultiply));
  EXPECT_EQ(failure.code, COLLET_UNIMPLEMENTED);
  EXPECT_THAT(failure.message, HasSubstr("runs nowhere"));
  EXPECT_THAT(failure.message, HasSubstr("no fallback"));
}

TEST_F(Runtime, SplitsBetweenDeviceAndFallback) {
  const ClientPtr client = open(test_backend("remote"));
  ASSERT_TRUE(client) << failure.message;
  const ExecutablePtr e = compile(client.get(), kAddMultiply);
  ASSERT_TRUE(e) << failure.message;
  EXPECT_EQ(facts(e.get()).device_ops, 1u) << explain(e.get());
  EXPECT_GT(facts(e.get()).fallback_ops, 0u);
  EXPECT_GT(facts(e.get()).crossing_bytes, 0u);
  EXPECT_THAT(explain(e.get()), HasSubstr("kernels for add and dot alone"));
  EXPECT_THAT(explain(e.get(), true), HasSubstr("\"side\": \"device\""));
  const auto results = run(e.get(), two_vectors(client.get()));
  ASSERT_EQ(results.size(), 2u) << failure.message;
  EXPECT_THAT(download<float>(results[0]), ElementsAre(-22, -44, -66, -88));
  EXPECT_THAT(download<float>(results[1]), ElementsAre(11, 22, 33, 44));
}

TEST_F(Runtime, RunsLoopsOnTheHost) {
  Control control;
  control.remove_traits = COLLET_TRAIT_CONTROL_FLOW;
  const ClientPtr client = open(test_backend("wrapper"), "none", &control);
  ASSERT_TRUE(client) << failure.message;
  const ExecutablePtr e = compile(client.get(), kLoop);
  ASSERT_TRUE(e) << failure.message;
  EXPECT_EQ(facts(e.get()).host_ops, 1u) << explain(e.get());
  EXPECT_EQ(facts(e.get()).fallback_ops, 0u);
  const auto results = run(e.get(), two_vectors(client.get()));
  ASSERT_EQ(results.size(), 1u) << failure.message;
  EXPECT_THAT(download<float>(results[0]), ElementsAre(51, 102, 153, 204));
}

TEST_F(Runtime, CutsWhereTheBackendSays) {
  Control control;
  control.reject = COLLET_OP_NEGATE;
  const ClientPtr client = open(test_backend("wrapper"), "interpreter", &control);
  const ModulePtr module = read(kAddMultiply);
  collet_compile_request request{};
  request.no_fusion = 1;
  const ExecutablePtr e = compile(client.get(), module.get(), request);
  ASSERT_TRUE(e) << failure.message;
  EXPECT_EQ(facts(e.get()).clusters, 2u) << explain(e.get());
  EXPECT_EQ(facts(e.get()).fallback_ops, 0u);
  const auto results = run(e.get(), two_vectors(client.get()));
  ASSERT_EQ(results.size(), 2u) << failure.message;
  EXPECT_THAT(download<float>(results[0]), ElementsAre(-22, -44, -66, -88));
}

TEST_F(Runtime, TakesAGroupWholeOrNotAtAll) {
  const uint32_t only[] = {COLLET_OP_ADD, COLLET_OP_NEGATE, COLLET_OP_CONSTANT};
  Control control;
  control.only = only;
  control.only_count = 3;
  control.group = 7;
  const ClientPtr client = open(test_backend("wrapper"), "interpreter", &control);
  const ExecutablePtr e = compile(client.get(), kAddMultiply);
  ASSERT_TRUE(e) << failure.message;
  EXPECT_EQ(facts(e.get()).device_ops, 0u) << explain(e.get());
  EXPECT_THAT(explain(e.get()), HasSubstr("group"));
}

TEST_F(Runtime, CostsBeyondAllMeasureAreStillNumbers) {
  Control control;
  const uint32_t only[] = {COLLET_OP_ADD};
  control.only = only;
  control.only_count = 1;
  control.link_latency_ns = 1000;
  control.cost_ns = 1e300;
  const ClientPtr client = open(test_backend("wrapper"), "interpreter", &control);
  const ExecutablePtr e = compile(client.get(), kAddMultiply);
  ASSERT_TRUE(e) << failure.message;
  EXPECT_EQ(facts(e.get()).device_ops, 0u);
  EXPECT_THAT(explain(e.get()), HasSubstr("not worth the way: 1"));
}

TEST_F(Runtime, LeavesSmallClustersToTheFallback) {
  Control control;
  control.smallest_cluster = 100;
  const ClientPtr client = open(test_backend("wrapper"), "interpreter", &control);
  const ExecutablePtr e = compile(client.get(), kAddMultiply);
  ASSERT_TRUE(e) << failure.message;
  EXPECT_EQ(facts(e.get()).device_ops, 0u) << explain(e.get());
  EXPECT_THAT(explain(e.get()), HasSubstr("too small"));
}

TEST_F(Runtime, PlacesWhatIsAcceptedWhereCostsAreIgnored) {
  Control control;
  control.smallest_cluster = 100;
  control.link_latency_ns = 1000;
  const ClientPtr client = open(test_backend("wrapper"), "interpreter", &control);
  const ModulePtr module = read(kAddMultiply);
  collet_compile_request request{};
  request.ignore_costs = 1;
  const ExecutablePtr e = compile(client.get(), module.get(), request);
  ASSERT_TRUE(e) << failure.message;
  EXPECT_GT(facts(e.get()).device_ops, 0u) << explain(e.get());
  EXPECT_EQ(facts(e.get()).fallback_ops, 0u) << explain(e.get());
}

TEST_F(Runtime, TellsWhatTheDeviceWasAsked) {
  const uint32_t only[] = {COLLET_OP_ADD};
  Control control;
  control.only = only;
  control.only_count = 1;
  control.smallest_cluster = 100;
  const ClientPtr client = open(test_backend("wrapper"), "interpreter", &control);
  const ModulePtr module = read(kAddMultiply);
  for (const uint32_t ignore_costs : {0u, 1u}) {
    collet_compile_request request{};
    request.ignore_costs = ignore_costs;
    const ExecutablePtr e = compile(client.get(), module.get(), request);
    ASSERT_TRUE(e) << failure.message;
    bool add = false, other = false;
    for (uint32_t i = 0;; ++i) {
      collet_question one{};
      one.struct_size = sizeof one;
      const collet_status code = collet_executable_question(e.get(), i, &one, nullptr);
      if (code != COLLET_OK) {
        EXPECT_EQ(code, COLLET_OUT_OF_RANGE);
        break;
      }
      EXPECT_EQ(one.asked, 1u) << one.name;
      EXPECT_EQ(one.kind, uint32_t{COLLET_QUESTION_OP}) << one.name;
      EXPECT_EQ(one.element, uint32_t{COLLET_TYPE_F32}) << one.name;
      if (one.name != std::string("add")) {
        EXPECT_EQ(one.accepted + one.placed, 0u) << one.name;
        other = true;
      } else {
        EXPECT_EQ(one.accepted, 1u);
        EXPECT_EQ(one.placed > 0, ignore_costs == 1);
        add = true;
      }
    }
    EXPECT_TRUE(add);
    EXPECT_TRUE(other);
  }
}

TEST_F(Runtime, CachesExecutables) {
  const ClientPtr client = open("interpreter");
  const ModulePtr module = read(kAddMultiply);
  const ExecutablePtr first = compile(client.get(), module.get()), second = compile(client.get(), module.get());
  EXPECT_EQ(facts(first.get()).from_cache, 0u);
  EXPECT_EQ(facts(second.get()).from_cache, 1u);
  collet_compile_request request{};
  request.no_cache = 1;
  EXPECT_EQ(facts(compile(client.get(), module.get(), request).get()).from_cache, 0u);
}

// Constants are told apart by a secure hash. The two arrays here had equal 128-bit hashes of the kind that multiplies, since a
// factor was zero: once in the same program, and once in two programs of a client.
TEST_F(Runtime, DifferentConstantsStayApart) {
  const std::string start = "{149643782572411146, 13503953896175478586, 11912009170470909680, 4710263896411059476, ";
  const auto array = [&](int number) {
    std::string text = start + std::to_string(number) + ", 13503953896175478587";
    for (int i = 6; i < 1024; ++i) text += ", 0";
    return "u64[1024] constant(" + text + "})";
  };
  const auto fifth = [&](collet_client* client, const std::string& body, int64_t results) {
    const ExecutablePtr e = compile(client, "HloModule m\nENTRY e {\n  x = u64[1024] parameter(0)\n" + body + "}\n");
    EXPECT_TRUE(e) << failure.message;
    std::vector<BufferPtr> in;
    in.push_back(upload<uint64_t>(client, COLLET_TYPE_U64, {1024}, std::vector<uint64_t>(1024)));
    std::vector<uint64_t> out;
    for (const BufferPtr& one : run(e.get(), in)) out.push_back(download<uint64_t>(one)[4]);
    EXPECT_EQ(out.size(), static_cast<size_t>(results)) << failure.message;
    return out;
  };
  for (const std::string& backend : {std::string("interpreter"), test_backend("narrow"), test_backend("memory_only")}) {
    SCOPED_TRACE(backend);
    const ClientPtr client = open(backend);
    EXPECT_THAT(fifth(client.get(),
                      "  a = " + array(1) + "\n  b = " + array(2) +
                          "\n  s = u64[1024] add(x, a)\n  t = u64[1024] add(x, b)\n"
                          "  ROOT r = (u64[1024], u64[1024]) tuple(s, t)\n",
                      2),
                ElementsAre(1, 2));
    for (const int number : {1, 2})
      EXPECT_THAT(fifth(client.get(), "  a = " + array(number) + "\n  ROOT s = u64[1024] subtract(a, x)\n", 1),
                  ElementsAre(number));
  }
}

// Returns a program with a constant of `elements` elements; each number gives another program.
std::string with_constant(int number, int64_t elements) {
  const std::string shape = "f32[" + std::to_string(elements) + "]";
  return "HloModule m\nENTRY e {\n  x = " + shape + " parameter(0)\n  c = " + shape +
         " constant({...})\n  n = f32[] constant(" + std::to_string(number) + ")\n  b = " + shape +
         " broadcast(n), dimensions={}\n  p = " + shape + " add(x, b)\n  ROOT r = " + shape + " multiply(p, c)\n}\n";
}

// Unused executables are kept for later compilations of the same program. Above a limit the least recently used go first.
TEST_F(Runtime, ReleasedExecutables_AreKeptUpToALimit) {
  constexpr int64_t kElements = 1 << 20;  // 4 MiB of constants
  constexpr uint64_t kLimit = 64 << 20;
  const ClientPtr client = open("interpreter");
  const auto in_use = [&] {
    collet_client_device_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(collet_client_device_info_get(client.get(), 0, &info, nullptr), COLLET_OK);
    return info.bytes_in_use;
  };
  const auto compile_one = [&](int number, int64_t elements, uint64_t seed) {
    collet_read_options options{};
    options.struct_size = sizeof options;
    options.elided = COLLET_ELIDED_RANDOM;
    options.seed = seed;
    const std::string text = with_constant(number, elements);
    collet_module* module = nullptr;
    EXPECT_EQ(collet_module_read(text.data(), text.size(), &options, &module, nullptr, nullptr), COLLET_OK);
    ExecutablePtr e = compile(client.get(), module);
    collet_module_release(module);
    EXPECT_TRUE(e) << failure.message;
    return facts(e.get()).from_cache;
  };
  for (int i = 0; i < 30; ++i) EXPECT_EQ(compile_one(i, kElements, static_cast<uint64_t>(i)), 0u);
  EXPECT_GT(in_use(), kLimit / 2);
  EXPECT_LE(in_use(), kLimit);
  EXPECT_EQ(compile_one(29, kElements, 29), 1u);
  EXPECT_EQ(compile_one(0, kElements, 0), 0u);
  // An executable that exceeds the limit alone is released with its last user, and evicts no other.
  EXPECT_EQ(compile_one(1000, 20 * kElements, 1000), 0u);
  EXPECT_LE(in_use(), kLimit);
  EXPECT_EQ(compile_one(0, kElements, 0), 1u);
}

TEST_F(Runtime, CachesCompiledProgramsOnDisk) {
  const std::string folder = ::testing::TempDir() + "collet_cache_" + std::to_string(getpid());
  setenv("COLLET_CACHE_DIR", folder.c_str(), 1);
  for (int round = 0; round < 3; ++round) {
    const ClientPtr client = open("interpreter");  // a new one, with an empty cache in memory
    const ExecutablePtr e = compile(client.get(), kAddMultiply);
    ASSERT_TRUE(e) << failure.message;
    const auto out = run(e.get(), two_vectors(client.get()));
    ASSERT_EQ(out.size(), 2u) << failure.message;
    EXPECT_THAT(download<float>(out[0]), ElementsAre(-22, -44, -66, -88));
    int files = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      ++files;
      if (round == 1) std::filesystem::resize_file(file.path(), 100);  // the third round finds it damaged
    }
    EXPECT_EQ(files, 1);
  }
  unsetenv("COLLET_CACHE_DIR");
  std::filesystem::remove_all(folder);
}

// The folder keeps its limit, and entries that others may write are not run but written anew.
TEST_F(Runtime, CacheOnDisk_HasALimitAndTrustsNobody) {
  namespace fs = std::filesystem;
  const std::string folder = ::testing::TempDir() + "collet_cache_" + std::to_string(getpid());
  setenv("COLLET_CACHE_DIR", folder.c_str(), 1);
  ASSERT_TRUE(compile(open("interpreter").get(), kAddMultiply)) << failure.message;
  EXPECT_EQ(facts(compile(open("interpreter").get(), kAddMultiply).get()).from_cache, 1u);
  for (const auto& entry : fs::directory_iterator(folder)) fs::permissions(entry.path(), fs::perms(0666));
  EXPECT_EQ(facts(compile(open("interpreter").get(), kAddMultiply).get()).from_cache, 0u);
  for (const auto& entry : fs::directory_iterator(folder))
    EXPECT_EQ(fs::status(entry.path()).permissions(), fs::perms(0600));
  fs::permissions(folder, fs::perms(0777));
  EXPECT_EQ(facts(compile(open("interpreter").get(), kAddMultiply).get()).from_cache, 0u);
  fs::permissions(folder, fs::perms(0700));
  setenv("COLLET_CACHE_MIB", "0", 1);  // no entry fits
  ASSERT_TRUE(compile(open("interpreter").get(), kLoop)) << failure.message;
  setenv("COLLET_CACHE_MIB", "many", 1);  // no number: the cache is not used
  EXPECT_EQ(facts(compile(open("interpreter").get(), kAddMultiply).get()).from_cache, 0u);
  unsetenv("COLLET_CACHE_MIB");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
  unsetenv("COLLET_CACHE_DIR");
  fs::remove_all(folder);
}

// A cache entry may be replaced by a device without an end, a pipe without a writer, or a folder.
TEST_F(Runtime, CacheEntryThatIsNoRegularFile_IsCompiledAnew) {
  namespace fs = std::filesystem;
  const std::string folder = ::testing::TempDir() + "collet_cache_" + std::to_string(getpid());
  setenv("COLLET_CACHE_DIR", folder.c_str(), 1);
  ASSERT_TRUE(compile(open("interpreter").get(), kAddMultiply)) << failure.message;
  const fs::path entry = fs::directory_iterator(folder)->path();
  using Replace = void (*)(const fs::path& entry);
  const Replace replacements[] = {
      [](const fs::path& path) { fs::create_symlink("/dev/zero", path); },
      [](const fs::path& path) { EXPECT_EQ(mkfifo(path.c_str(), 0600), 0); },
      [](const fs::path& path) {
        std::ofstream(path).close();
        fs::resize_file(path, uint64_t{1} << 40);
      },
      [](const fs::path& path) { fs::create_directory(path); },
  };
  for (const Replace replace : replacements) {
    fs::remove(entry);
    replace(entry);
    const ExecutablePtr e = compile(open("interpreter").get(), kAddMultiply);
    ASSERT_TRUE(e) << failure.message;
    EXPECT_EQ(facts(e.get()).from_cache, 0u);
  }
  unsetenv("COLLET_CACHE_DIR");
  fs::remove_all(folder);
}

// Entries are used if they are signed with the key, and no others.
TEST_F(Runtime, CacheOnDisk_WithAKey_RunsWhatIsSignedWithIt) {
  namespace fs = std::filesystem;
  const std::string folder = ::testing::TempDir() + "collet_cache_" + std::to_string(getpid());
  const std::string keys[] = {folder + ".key0", folder + ".key1"};
  for (const std::string& key : keys) {
    std::ofstream(key) << key;
    fs::permissions(key, fs::perms(0600));
  }
  setenv("COLLET_CACHE_DIR", folder.c_str(), 1);
  const auto from_cache = [&](const char* key) {
    if (key)
      setenv("COLLET_KEY_FILE", key, 1);
    else
      unsetenv("COLLET_KEY_FILE");
    const ExecutablePtr e = compile(open("interpreter").get(), kAddMultiply);
    return e ? facts(e.get()).from_cache : 99u;
  };
  EXPECT_EQ(from_cache(nullptr), 0u);
  EXPECT_EQ(from_cache(nullptr), 1u);
  EXPECT_EQ(from_cache(keys[0].c_str()), 0u) << "it is not signed";
  EXPECT_EQ(from_cache(keys[0].c_str()), 1u);
  EXPECT_EQ(from_cache(nullptr), 1u) << "who has no key asks for no signature";
  EXPECT_EQ(from_cache(keys[1].c_str()), 0u) << "it is signed with another key";
  EXPECT_EQ(from_cache(keys[1].c_str()), 1u);
  // A key that others may read is not used, and nothing is kept.
  fs::permissions(keys[1], fs::perms(0644));
  EXPECT_EQ(from_cache(keys[1].c_str()), 0u);
  EXPECT_EQ(from_cache(keys[1].c_str()), 0u);
  unsetenv("COLLET_KEY_FILE");
  unsetenv("COLLET_CACHE_DIR");
  fs::remove_all(folder);
  for (const std::string& key : keys) fs::remove(key);
}

// A cache that is not used for the mode of its folder is told once, with what to do.
TEST_F(Runtime, CacheFolderThatOthersMayWrite_IsToldOnce) {
  namespace fs = std::filesystem;
  const std::string folder = ::testing::TempDir() + "collet_open_cache_" + std::to_string(getpid());
  fs::create_directory(folder);
  fs::permissions(folder, fs::perms(0770));
  setenv("COLLET_CACHE_DIR", folder.c_str(), 1);
  std::vector<std::string> told;
  collet_client_options options{};
  options.struct_size = sizeof options;
  options.backend = "interpreter";
  options.log_user = &told;
  options.log = [](void* user, int32_t severity, const char* message) {
    if (severity >= COLLET_LOG_WARNING) static_cast<std::vector<std::string>*>(user)->emplace_back(message);
  };
  for (int round = 0; round < 2; ++round) {
    collet_client* opened = nullptr;
    ASSERT_EQ(collet_client_open(&options, &opened, nullptr), COLLET_OK);
    const ClientPtr client(opened);
    EXPECT_TRUE(compile(client.get(), kAddMultiply)) << failure.message;
  }
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0], HasSubstr("chmod go-w"));
  EXPECT_TRUE(fs::is_empty(folder));
  unsetenv("COLLET_CACHE_DIR");
  fs::remove_all(folder);
}

// The log function calls what led to the message.
TEST_F(Runtime, Log_MayCallTheLibrary) {
  struct Told {
    collet_client* client = nullptr;
    std::vector<std::string> messages;
  } told;
  const char *const key = "wrong", *const value = "text";
  collet_client_options options{};
  options.struct_size = sizeof options;
  const std::string backend = test_backend("own_patterns");
  options.backend = backend.c_str();
  options.keys = &key;
  options.values = &value;
  options.pairs = 1;
  options.log_user = &told;
  options.log = [](void* user, int32_t, const char* message) {
    auto& all = *static_cast<Told*>(user);
    all.messages.emplace_back(message);
    if (all.client) {
      EXPECT_NE(collet_client_pattern(all.client, 0, 0, nullptr), nullptr);
    }
  };
  collet_error error{};
  ASSERT_EQ(collet_client_open(&options, &told.client, &error), COLLET_OK) << error.message;
  EXPECT_NE(collet_client_pattern(told.client, 0, 0, nullptr), nullptr);
  ASSERT_EQ(told.messages.size(), 1u) << "the message comes before the call returns";
  EXPECT_THAT(told.messages[0], HasSubstr("'own.pool', which is left out"));
  collet_client* const client = told.client;
  told.client = nullptr;
  collet_client_close(client);
}

// A link in the place of a file of the dump is replaced; what it leads to stays as it is.
TEST_F(Runtime, Dump_WritesThroughNoLinkAndNotOutsideItsFolder) {
  namespace fs = std::filesystem;
  const std::string folder = ::testing::TempDir() + "collet_dump_" + std::to_string(getpid());
  fs::create_directories(folder + "/in");
  const std::string victim = folder + "/victim";
  std::ofstream(victim) << "precious";
  fs::create_symlink(victim, folder + "/in/000.read.hlo");
  collet_compile_request request{};
  request.dump_to = nullptr;
  setenv("COLLET_DUMP", (folder + "/in").c_str(), 1);
  const ClientPtr client = open("interpreter");
  const ModulePtr named = read(R"(module @"../../../up/../x" {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
})");
  ASSERT_TRUE(named) << failure.message;
  EXPECT_TRUE(compile(client.get(), named.get(), request)) << failure.message;
  unsetenv("COLLET_DUMP");
  const std::string in = folder + "/in";
  request.dump_to = in.c_str();
  const ModulePtr module = read(kAddMultiply);
  EXPECT_TRUE(compile(client.get(), module.get(), request)) << failure.message;
  std::string kept;
  std::getline(std::ifstream(victim), kept);
  EXPECT_EQ(kept, "precious");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder + "/in/000.read.hlo")));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 2) << "written beside the folder";
  fs::remove_all(folder);
}

TEST_F(Runtime, DumpOfOneFile_HasNoOther) {
  const std::string folder = ::testing::TempDir() + "collet_dump_" + std::to_string(getpid());
  collet_compile_request request{};
  request.dump_to = folder.c_str();
  request.dump_only = ".offered.hlo";
  const ClientPtr client = open("interpreter");
  const ModulePtr module = read(kAddMultiply);
  ASSERT_TRUE(compile(client.get(), module.get(), request)) << failure.message;
  std::vector<std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(folder)) files.push_back(file.path().filename());
  EXPECT_THAT(files, ElementsAre("000.offered.hlo"));
  std::filesystem::remove_all(folder);
}

// A program that the caches in memory and on disk have is compiled anew for a dump, because what is kept has no artifacts.
TEST_F(Runtime, DumpOfAKnownProgram_HasEachStage) {
  namespace fs = std::filesystem;
  if (!open("cpu", "none")) GTEST_SKIP() << "the backend cpu is not built";
  const std::string place = ::testing::TempDir() + "collet_dump_" + std::to_string(getpid());
  setenv("COLLET_CACHE_DIR", (place + "/cache").c_str(), 1);
  const ModulePtr module = read(kAddMultiply);
  const ClientPtr known = open("cpu", "none"), other = open("cpu", "none");
  ASSERT_TRUE(compile(known.get(), module.get())) << failure.message;
  for (const ClientPtr* client : {&known, &other}) {
    const std::string folder = place + "/dump" + std::to_string(client == &known);
    collet_compile_request request{};
    request.dump_to = folder.c_str();
    const ExecutablePtr e = compile(client->get(), module.get(), request);
    ASSERT_TRUE(e) << failure.message;
    EXPECT_EQ(facts(e.get()).from_cache, 0u);
    std::string names;
    for (const auto& file : fs::directory_iterator(folder)) names += file.path().filename().string() + "\n";
    for (const char* part : {"legal.hlo", "kernels.txt", "plan.txt"}) EXPECT_THAT(names, HasSubstr(part));
  }
  unsetenv("COLLET_CACHE_DIR");
  fs::remove_all(place);
}

// The first file of a dump cannot be written whole.
TEST_F(Runtime, DumpToAFullDisk_SaysSo) {
  const std::string folder = ::testing::TempDir() + "collet_dump_" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit none = {0, before.rlim_max};  // no file may have a byte
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  collet_compile_request request{};
  request.dump_to = folder.c_str();
  const ClientPtr client = open("interpreter");
  const ModulePtr module = read(kAddMultiply);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  const ExecutablePtr e = compile(client.get(), module.get(), request);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_FALSE(e);
  EXPECT_EQ(failure.code, COLLET_RESOURCE_EXHAUSTED);
  EXPECT_THAT(failure.message, HasSubstr("File too large"));
  std::filesystem::remove_all(folder);
}

// A frontend may close its client before its arrays: a message is logged only if the caller asks for messages.
TEST_F(Runtime, ClientClosedBeforeItsBuffers_IsToldWhereAskedFor) {
  const auto close_first = [this] {
    collet_client_options options{};  // without a function for messages
    options.struct_size = sizeof options;
    options.backend = "interpreter";
    collet_client* client = nullptr;
    EXPECT_EQ(collet_client_open(&options, &client, nullptr), COLLET_OK);
    const std::vector<BufferPtr> vectors = two_vectors(client);
    ::testing::internal::CaptureStderr();
    collet_client_close(client);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(close_first(), "");
  setenv("COLLET_LOG", "info", 1);
  EXPECT_THAT(close_first(), HasSubstr("client closed while 2 of its buffers"));
  unsetenv("COLLET_LOG");
}

TEST_F(Runtime, LibraryThatIsAPipe_IsRefusedAtOnce) {
  const std::string path = ::testing::TempDir() + "collet_pipe_" + std::to_string(getpid()) + ".so";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(open(path));
  EXPECT_THAT(failure.message, HasSubstr("is a pipe"));
  std::filesystem::remove(path);
}

// For a bounded dynamic dimension a backend gets a padded array and a scalar, so a backend that only supports fixed
// shapes can run the program.
TEST_F(Runtime, BoundedDimensionsArePadded) {
  for (const std::string& backend : {std::string("interpreter"), test_backend("remote"), test_backend("memory_only")}) {
    const ClientPtr client = open(backend);
    const ExecutablePtr e = compile(client.get(), "HloModule m\n" + combiner("sum", "add", "s32") + R"(ENTRY e {
  x = s32[4] parameter(0)
  n = s32[] parameter(1)
  d = s32[<=4] set-dimension-size(x, n), dimensions={0}
  twice = s32[<=8] concatenate(d, d), dimensions={0}
  zero = s32[] constant(0)
  r = s32[] reduce(twice, zero), dimensions={0}, to_apply=sum
  size = s32[] get-dimension-size(twice), dimensions={0}
  ROOT t = (s32[<=8], s32[], s32[]) tuple(twice, r, size)
})");
    ASSERT_TRUE(e) << backend << ": " << failure.message;
    std::vector<BufferPtr> in;
    in.push_back(upload<int32_t>(client.get(), COLLET_TYPE_S32, {4}, {1, 2, 3, 4}));
    in.push_back(upload<int32_t>(client.get(), COLLET_TYPE_S32, {}, {3}));
    const auto out = run(e.get(), in);
    ASSERT_EQ(out.size(), 3u) << failure.message;
    EXPECT_THAT(download<int32_t>(out[0]), ElementsAre(1, 2, 3, 1, 2, 3, 0, 0)) << backend;
    EXPECT_THAT(download<int32_t>(out[1]), ElementsAre(12)) << backend;
    EXPECT_THAT(download<int32_t>(out[2]), ElementsAre(6)) << backend;
  }
}

TEST_F(Runtime, NamesWhatHasNoSize) {
  const ClientPtr client = open("interpreter");
  EXPECT_FALSE(
      compile(client.get(), "HloModule m\nENTRY e {\n  x = f32[?] parameter(0)\n  ROOT p = f32[?] add(x, x)\n}"));
  EXPECT_EQ(failure.code, COLLET_UNIMPLEMENTED);
  EXPECT_THAT(failure.message, HasSubstr("f32[?]"));
}

TEST_F(Runtime, DumpsEachStage) {
  const std::string folder = ::testing::TempDir() + "collet_dump_" + std::to_string(getpid());
  const ClientPtr client = open(test_backend("remote"));
  const ModulePtr module = read(kAddMultiply);
  collet_compile_request request{};
  request.dump_to = folder.c_str();
  ASSERT_TRUE(compile(client.get(), module.get(), request)) << failure.message;
  std::string names;
  for (const auto& file : std::filesystem::directory_iterator(folder)) names += file.path().filename().string() + "\n";
  for (const char* part : {"read.hlo", "legal.hlo", "program", "plan.txt", "plan.json"})
    EXPECT_THAT(names, HasSubstr(part));
  std::filesystem::remove_all(folder);
  request.dump_to = "/proc/no/such/place";
  EXPECT_FALSE(compile(client.get(), module.get(), request));
  EXPECT_THAT(failure.message, HasSubstr("/proc/no/such/place"));
}

TEST_F(Runtime, StopsWhenTheCallerGivesUp) {
  const ClientPtr client = open("interpreter");
  const ModulePtr module = read(kAddMultiply);
  collet_compile_request request{};
  request.progress = [](void*, double, const char*) -> int32_t { return 1; };
  EXPECT_FALSE(compile(client.get(), module.get(), request));
  EXPECT_EQ(failure.code, COLLET_CANCELLED);
}

TEST_F(Runtime, UnknownBackendsListTheirPlaces) {
  EXPECT_FALSE(open("nonesuch"));
  EXPECT_EQ(failure.code, COLLET_NOT_FOUND);
  EXPECT_THAT(failure.message, HasSubstr("libcollet_backend_nonesuch.so"));
  EXPECT_FALSE(open("./no/such.so"));
  EXPECT_EQ(failure.code, COLLET_NOT_FOUND);
}

// The working folder's file of this name is a backend. dlopen looks for a name without a slash in other folders.
TEST_F(Runtime, LibraryWithoutASlash_IsNotLookedForInTheWorkingFolder) {
  const std::filesystem::path before = std::filesystem::current_path();
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("collet_here." + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const ClientPtr interpreter = open("interpreter");
  collet_client_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(collet_client_info_get(interpreter.get(), &info, nullptr), COLLET_OK);
  std::filesystem::copy_file(std::filesystem::absolute(info.backend_path), folder / "here.so");
  std::filesystem::current_path(folder);
  EXPECT_FALSE(open("here.so"));
  EXPECT_EQ(failure.code, COLLET_NOT_FOUND);
  EXPECT_THAT(failure.message, HasSubstr("./here.so"));
  EXPECT_TRUE(open("./here.so")) << failure.message;
  std::filesystem::current_path(before);
  std::filesystem::remove_all(folder);
}

TEST_F(Runtime, EachFormNamesThePlaceOfItsFaults) {
  EXPECT_FALSE(read("ML\xEFR\x0d"));
  EXPECT_EQ(failure.code, COLLET_INVALID_ARGUMENT);
  EXPECT_THAT(failure.message, HasSubstr("artifact, byte 5"));
  EXPECT_FALSE(
      read("\n\x01m\x12\x01"
           "e"));  // a name, an entry's name, no computation
  EXPECT_EQ(failure.code, COLLET_INVALID_ARGUMENT);
  EXPECT_THAT(failure.message, HasSubstr("HloModuleProto"));
  EXPECT_FALSE(read("func.func @main() {\n  %0 = stablehlo.ad\n}"));
  EXPECT_EQ(failure.code, COLLET_INVALID_ARGUMENT);
  EXPECT_THAT(failure.message, HasSubstr("3:1"));
}

TEST_F(Runtime, RunsStableHlo) {
  const ClientPtr client = open("interpreter");
  const ExecutablePtr e = compile(client.get(),
                                  "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
                                  "  %0 = stablehlo.add %a, %a : tensor<2xf32>\n"
                                  "  return %0 : tensor<2xf32>\n}\n");
  ASSERT_TRUE(e) << failure.message;
}

TEST_F(Runtime, BadProgramsAreRefused) {
  for (const char* bad : {"", "nonsense", "ML\xEFR\x0d", "HloModule m\nENTRY e {", "module @m {", "\x01\x02\x03"}) {
    EXPECT_FALSE(read(bad));
    EXPECT_NE(failure.code, COLLET_OK);
    EXPECT_NE(failure.message, "");
  }
}

// Eight threads compile programs, shared and own ones, run them, partly asynchronously, on an argument that all of them
// read, and serialize and load executables.
class Threads : public Runtime, public ::testing::WithParamInterface<const char*> {
 protected:
  static void work(collet_client* client, int number, collet_buffer* shared, std::atomic<int>& right) {
    Session s;
    for (int i = 0; i < 10; ++i) {
      const bool loop = (number + i) % 2;
      std::string text = loop ? kLoop : kAddMultiply;
      // A separate module name: the caches treat the program as the same, but it is read and compiled separately.
      text.replace(0, 10, "HloModule own" + std::to_string(number) + "_" + std::to_string(i % 3) + "_");
      const ModulePtr module = s.read(text);
      collet_compile_request request{};
      request.no_cache = i % 4 == 0;
      ExecutablePtr e = s.compile(client, module.get(), request);
      if (!e) continue;
      if (i % 5 == 4) e = again(client, e.get());
      const BufferPtr mine = s.upload<float>(client, COLLET_TYPE_F32, {4}, {1, 2, 3, 4});
      collet_buffer *in[] = {mine.get(), shared}, *out[2] = {};
      collet_execute_options options{};
      options.struct_size = sizeof options;
      options.synchronous = i % 2;
      if (!e || collet_execute(e.get(), &options, in, out, nullptr) != COLLET_OK) continue;
      const BufferPtr first(out[0]), second(out[1]);
      if (s.download<float>(first)[0] == (loop ? 51 : -22)) ++right;
    }
  }

  static ExecutablePtr again(collet_client* client, collet_executable* e) {
    collet_blob* blob = nullptr;
    if (collet_executable_serialize(e, &blob, nullptr) != COLLET_OK) return nullptr;
    const BlobPtr owner(blob);
    collet_executable* out = nullptr;
    collet_executable_load(client, collet_blob_data(blob), collet_blob_size(blob), nullptr, &out, nullptr);
    return ExecutablePtr(out);
  }
};

TEST_P(Threads, CompileAndRunAtOnce) {
  const std::string name = GetParam();
  const bool plain = name == "interpreter" || name == "cpu";
  const ClientPtr client = open(plain ? name : test_backend(name));
  if (!client && name == "cpu") GTEST_SKIP() << "cpu was not built";
  ASSERT_TRUE(client) << failure.message;
  const BufferPtr shared = upload<float>(client.get(), COLLET_TYPE_F32, {4}, {10, 20, 30, 40});
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 8; ++t) threads.emplace_back([&, t] { work(client.get(), t, shared.get(), right); });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right.load(), 80);
}

INSTANTIATE_TEST_SUITE_P(Backends, Threads, ::testing::Values("interpreter", "cpu", "narrow", "remote"),
                         [](const auto& backend) { return std::string(backend.param); });

}  // namespace
}  // namespace collet::testing
