// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "sdk/runtime/testing/session.h"

// Tests a backend that breaks the rules of the interface in many ways. Each must give an error that names the function,
// and the process must continue.

namespace collet::testing {
namespace {

using ::testing::HasSubstr;

// A program whose constant is large enough to become an argument.
const std::string kProgram = [] {
  std::string numbers = "0";
  for (int i = 1; i < 2048; ++i) numbers += "," + std::to_string(i);
  return "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  c = f32[2048] constant({" + numbers + "})\n" + R"(
  d = f32[4] slice(c), slice={[4:8]}
  y = f32[4] add(x, d)
  ROOT z = f32[4] multiply(y, x)
})";
}();

struct Misbehaviour {
  const char* mode;
  const char* message;  ///< part of the expected error message; null: no error is expected
};

class Hostile : public ::testing::TestWithParam<Misbehaviour>, public Session {
 protected:
  // A library is loaded only once, so each misbehaviour has a copy of its own.
  void SetUp() override {
    setenv("COLLET_HOSTILE", GetParam().mode, 1);
    path_ = ::testing::TempDir() + "hostile_" + std::to_string(getpid()) + GetParam().mode + ".so";
    std::filesystem::copy_file(test_backend("hostile"), path_, std::filesystem::copy_options::overwrite_existing);
  }
  void TearDown() override {
    unsetenv("COLLET_HOSTILE");
    std::filesystem::remove(path_);
  }

  // Opens, compiles, uploads, runs and downloads, up to the first error, which it returns.
  Failure use(const char* fallback) {
    const ClientPtr client = open(path_, fallback);
    if (!client) return failure;
    const ExecutablePtr e = compile(client.get(), kProgram);
    if (!e) return failure;
    std::vector<BufferPtr> in;
    in.push_back(upload<float>(client.get(), COLLET_TYPE_F32, {4}, {1, 2, 3, 4}));
    if (!in[0]) return failure;
    auto out = run(e.get(), in);
    if (failure.code != COLLET_OK) return failure;
    download<float>(out[0]);
    return failure;
  }

 private:
  std::string path_;
};

TEST_P(Hostile, EndsInAnError) {
  const Failure told = use("none");
  if (!GetParam().message) {
    EXPECT_THAT(told.message, HasSubstr("hostile execute"));
    return;
  }
  EXPECT_NE(told.code, COLLET_OK);
  EXPECT_LE(told.code, COLLET_DATA_LOSS);
  EXPECT_THAT(told.message, HasSubstr(GetParam().message));
  EXPECT_THAT(told.message, HasSubstr("hostile"));
}

const Misbehaviour kLies[] = {
    {"major", "built for ABI 2"},
    {"minor", nullptr},
    {"entry_fails", "hostile entry"},
    {"no_table", "handed out no table"},
    {"tiny_table", "which cannot be"},
    {"huge_table", "which cannot be"},
    {"cut_table", "which cannot be"},
    {"short_table", "lacks the function 'copy'"},
    {"reserved", "reserved"},
    {"no_alloc", "lacks the function 'alloc'"},
    {"no_copy", "lacks the function 'copy'"},
    {"no_compile", "lacks the function 'compile'"},
    {"no_execute", "lacks the function 'execute'"},
    {"no_release", "lacks the function 'release'"},
    {"open_fails", "hostile open"},
    {"open_fails_silently", "no error message was given"},
    {"open_unknown_code", "unknown code 4711"},
    {"open_negative_code", "unknown code -7"},
    {"struct_sizes", nullptr},
    {"opset_0", "opset 0"},
    {"opset_huge", nullptr},
    {"no_device", "there is no device"},
    {"many_devices", "cannot be"},
    {"no_name", "no name"},
    {"endless_name", "has no end"},
    {"capital_name", "'Hostile' is not 1 to 64 lower-case letters"},
    {"escape_name", "'a\\x1b[31m' is not 1 to 64 lower-case letters"},
    {"no_version", "no version"},
    {"no_instance", "no instance"},
    {"device_info_fails", "hostile device_info"},
    {"alignment", "alignment of 48"},
    {"no_alignment", "alignment of 0"},
    {"no_default", "exactly one"},
    {"two_defaults", "exactly one"},
    {"endless_kind", "has no end"},
    {"no_kind", "no kind"},
    {"no_spaces", "memory spaces"},
    {"many_spaces", "memory spaces"},
    {"many_types", "element types"},
    {"peers", "peer"},
    {"many_peers", "peers cannot be"},
    {"peers_nowhere", "peers cannot be"},
    {"unknown_types", "runs nowhere"},
    {"types_nowhere", "element types cannot be"},
    {"smallest_cluster", nullptr},
    {"bandwidth", "no positive number"},
    {"latency", "no positive number"},
    {"traits", nullptr},
    {"alloc_fails", "hostile alloc"},
    {"no_buffer", "without a buffer"},
    {"host_pointer", "no host pointer"},
    {"misaligned", "alignment of its space"},
    {"copy_fails", "hostile copy"},
    {"supports_fails", "hostile supports"},
    {"unknown_answer", "the answer 77"},
    {"expands", "runs nowhere: backend 'hostile'"},
    {"cost", "no positive number"},
    {"cost_is_no_number", "no positive number"},
    {"verdict_reserved", nullptr},
    {"groups", nullptr},
    {"endless_reason", nullptr},
    {"compile_fails", "hostile compile"},
    {"rejects_without_end", "hostile rejection"},
    {"rejects_nonsense", "hostile rejection"},
    {"no_executable", "without an executable"},
    {"absorbed", "absorbed"},
    {"absorbed_index", "absorbed a constant that is not there"},
    {"absorbed_twice", nullptr},
    {"rejects_and_succeeds", nullptr},
    {"facts", nullptr},
    {"workspace", "a workspace of"},
    {"workspace_alignment", "alignment of 3"},
    {"execute_fails_endlessly", "mmmm"},
    {"execute_unknown_code", "unknown code"},
};

INSTANTIATE_TEST_SUITE_P(Lies, Hostile, ::testing::ValuesIn(kLies),
                         [](const auto& lie) { return std::string(lie.param.mode); });

// Wrong results of optional tables do not cause errors: an executable is compiled again, and an artifact is omitted.
class HostileTables : public ::testing::TestWithParam<const char*>, public Session {};

TEST_P(HostileTables, DoNoHarm) {
  setenv("COLLET_HOSTILE", GetParam(), 1);
  const std::string name = std::string("hostile_tables_") + std::to_string(getpid()) + GetParam();
  const std::string path = ::testing::TempDir() + name + ".so", dump = ::testing::TempDir() + name;
  std::filesystem::copy_file(test_backend("hostile"), path, std::filesystem::copy_options::overwrite_existing);
  const ClientPtr client = open(path, "none");
  ASSERT_TRUE(client) << failure.message;
  const ModulePtr module = read(kProgram);
  collet_compile_request request{};
  request.dump_to = dump.c_str();
  const ExecutablePtr e = compile(client.get(), module.get(), request);
  EXPECT_TRUE(e) << failure.message;
  for (const auto& file : std::filesystem::recursive_directory_iterator(dump))
    EXPECT_LT(file.file_size(), 1u << 20) << file.path();
  EXPECT_FALSE(std::filesystem::exists(::testing::TempDir() + "escaped"));
  collet_blob* blob = nullptr;
  ASSERT_EQ(collet_executable_serialize(e.get(), &blob, nullptr), COLLET_OK);
  const BlobPtr bytes(blob);
  const ClientPtr other = open(path, "none");
  collet_executable* again = nullptr;
  collet_error error{};
  EXPECT_EQ(
      collet_executable_load(other.get(), collet_blob_data(blob), collet_blob_size(blob), nullptr, &again, &error),
      COLLET_OK)
      << error.message;
  const ExecutablePtr owner(again);
  std::filesystem::remove_all(dump);
  std::filesystem::remove(path);
  unsetenv("COLLET_HOSTILE");
}

INSTANTIATE_TEST_SUITE_P(Lies, HostileTables,
                         ::testing::Values("query_nothing", "query_tiny", "serialize_fails", "serialize_huge",
                                           "serialize_grows", "load_fails", "load_nothing", "load_workspace",
                                           "artifacts_fail", "artifact_path", "artifact_huge", "artifacts_endless"),
                         [](const auto& lie) { return std::string(lie.param); });

TEST(HostileFiles, AreNoBackends) {
  Session s;
  EXPECT_FALSE(s.open("/dev/null"));
  EXPECT_EQ(s.failure.code, COLLET_FAILED_PRECONDITION);
  const char* build = std::getenv("COLLET_BUILD_DIR");
  ASSERT_TRUE(build);
  EXPECT_FALSE(s.open(std::string(build) + "/lib/libcollet.so"));
  EXPECT_THAT(s.failure.message, HasSubstr("does not export collet_backend_entry"));
}

// Ops that the backend rejects at compilation run on the fallback.
TEST(HostileCompile, FallsBackWhenAllIsRejected) {
  setenv("COLLET_HOSTILE", "rejects_nonsense", 1);
  Session s;
  const ClientPtr client = s.open(test_backend("hostile"), "interpreter");
  const ExecutablePtr e = s.compile(client.get(), kProgram);
  unsetenv("COLLET_HOSTILE");
  ASSERT_TRUE(e) << s.failure.message;
  EXPECT_EQ(Session::facts(e.get()).device_ops, 0u);
  EXPECT_THAT(Session::explain(e.get()), HasSubstr("hostile rejection"));
}

}  // namespace
}  // namespace collet::testing
