// SPDX-License-Identifier: Apache-2.0
// Tests clients that have joined other processes: their devices, and their executables.
#include <gmock/gmock.h>
#include <collet/collet.hpp>

#include "sdk/runtime/testing/process_group.h"
#include "sdk/runtime/testing/programs.h"

namespace collet::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(ProcessesTest, DevicesAreThoseOfAllProcesses) {
  run_in(3, [](Member& member) {
    const ClientPtr client = member.join("interpreter", member.rank + 1);
    ASSERT_TRUE(client) << member.failure.message;
    std::vector<std::pair<uint32_t, uint32_t>> found;
    collet_global_device device{};
    device.struct_size = sizeof device;
    collet_error error{};
    for (uint32_t i = 0; collet_client_global_device_get(client.get(), i, &device, &error) == COLLET_OK; ++i)
      found.emplace_back(device.process, device.device);
    EXPECT_EQ(error.code, COLLET_OUT_OF_RANGE);
    EXPECT_EQ(found, (std::vector<std::pair<uint32_t, uint32_t>>{{0, 0}, {1, 0}, {1, 1}, {2, 0}, {2, 1}, {2, 2}}));
  });
}

TEST_F(ProcessesTest, TheWrapperRunsTheParticipantsOfItsProcess) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join("interpreter", 2);
    ASSERT_TRUE(client) << member.failure.message;
    const ModulePtr module =
        member.read(program("ROOT y = s32[8] all-reduce(x), replica_groups={{0,1,2,3}}, to_apply=sum"));
    ExecutablePtr made = member.compile(client.get(), module.get(), {});
    ASSERT_TRUE(made) << member.failure.message;
    const Executable executable(made.release());
    std::vector<Buffer> in;
    for (BufferPtr& one : member.arguments(client.get(), 2, 2 * member.rank)) in.emplace_back(one.release());
    auto results = executable.run(in);
    ASSERT_TRUE(results) << results.error().message;
    ASSERT_EQ(results->size(), 2u);
    for (const Buffer& one : *results) {
      const auto numbers = one.to_vector<int32_t>();
      ASSERT_TRUE(numbers) << numbers.error().message;
      EXPECT_EQ((*numbers)[1], 604);
    }
    EXPECT_FALSE(executable.run({in[0]}));
  });
}

// Executables of programs over several processes: each process keeps its own, and loads it in a new group.
TEST_F(ProcessesTest, SerializedExecutablesRunInTheirProcesses) {
  for (const char* const backend : {"interpreter", "memory_only"}) {
    const std::string again = folder_ + "/" + backend;
    std::filesystem::create_directories(again + "/first");
    std::filesystem::create_directories(again + "/second");
    run_in(2, [&](Member& started) {
      const std::string text = program("ROOT y = s32[8] all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=sum");
      std::string bytes;
      collet_error error{};
      const uint32_t assignment[] = {2, 0, 3, 1};
      {
        Member member(again + "/first", started.rank, 2);
        const ClientPtr client = member.join(backend, 2);
        ASSERT_TRUE(client) << member.failure.message;
        const ModulePtr module = member.read(text);
        collet_compile_request request{};
        request.assignment = assignment;
        request.assignment_count = 4;
        const ExecutablePtr e = member.compile(client.get(), module.get(), request);
        ASSERT_TRUE(e) << member.failure.message;
        collet_blob* blob = nullptr;
        ASSERT_EQ(collet_executable_serialize(e.get(), &blob, &error), COLLET_OK) << error.message;
        bytes.assign(collet_blob_data(blob), collet_blob_size(blob));
        collet_blob_release(blob);
      }
      Member member(again + "/second", started.rank, 2);
      const ClientPtr client = member.join(backend, 2);
      ASSERT_TRUE(client) << member.failure.message;
      const auto load = [&](collet_client* in, const uint32_t* devices) {
        collet_compile_request request{};
        request.struct_size = sizeof request;
        request.assignment = devices;
        request.assignment_count = devices ? 4 : 0;
        collet_executable* out = nullptr;
        error = {};
        collet_executable_load(in, bytes.data(), bytes.size(), &request, &out, &error);
        return ExecutablePtr(out);
      };
      const ExecutablePtr e = load(client.get(), nullptr);
      ASSERT_TRUE(e) << error.message;
      const auto out = member.results(e.get(), member.arguments(client.get(), 2, 0));
      ASSERT_EQ(out.size(), 2u) << member.failure.message;
      // The participants of this process are 1 and 3, or 0 and 2: each sums with one of the other process.
      EXPECT_EQ(out[0][0] + out[1][0], 2 * 100);
      // The same devices in another order, within the processes.
      const uint32_t same[] = {3, 1, 2, 0}, other[] = {0, 1, 2, 3};
      EXPECT_TRUE(load(client.get(), same)) << error.message;
      EXPECT_FALSE(load(client.get(), other));
      EXPECT_EQ(error.code, COLLET_FAILED_PRECONDITION);
      EXPECT_THAT(error.message,
                  HasSubstr("participant 0 of the executable ran on device 2 in process 1; device 0 is in process 0"));
      Session alone;
      const ClientPtr single = alone.open("interpreter", "none", nullptr, 4);
      ASSERT_TRUE(single);
      if (std::string(backend) == "interpreter") {
        EXPECT_FALSE(load(single.get(), nullptr));
        EXPECT_THAT(error.message, HasSubstr("runs in 2 processes"));
      }
    });
    processes_.clear();
  }
}

// A program of one process of a group is kept with its device's number in the group.
TEST_F(ProcessesTest, SerializedExecutablesOfOneProcessRunThere) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join("interpreter", 1);
    ASSERT_TRUE(client) << member.failure.message;
    const ModulePtr module = member.read(program("ROOT y = s32[8] negate(x)", "HloModule m\n"));
    collet_compile_request request{};
    request.assignment = &member.rank;
    request.assignment_count = 1;
    const ExecutablePtr e = member.compile(client.get(), module.get(), request);
    ASSERT_TRUE(e) << member.failure.message;
    collet_blob* blob = nullptr;
    collet_error error{};
    ASSERT_EQ(collet_executable_serialize(e.get(), &blob, &error), COLLET_OK) << error.message;
    collet_executable* loaded = nullptr;
    collet_executable_load(client.get(), collet_blob_data(blob), collet_blob_size(blob), nullptr, &loaded, &error);
    collet_blob_release(blob);
    const ExecutablePtr owner(loaded);
    ASSERT_TRUE(owner) << error.message;
    const auto out = member.results(loaded, member.arguments(client.get(), 1, 1));
    ASSERT_EQ(out.size(), 1u) << member.failure.message;
    EXPECT_EQ(out[0][1], -101);
  });
}

// A frontend registers its functions under names that are unlike in each process.
TEST_F(ProcessesTest, HostFunctionsMayHaveOtherNamesInEachProcess) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join();
    ASSERT_TRUE(client) << member.failure.message;
    const std::string target = "add_ten_" + std::to_string(member.rank);
    const collet_host_function function = {
        target.c_str(), nullptr, [](void*, const collet_host_call* call, collet_error*) -> collet_status {
          for (int i = 0; i < 8; ++i)
            static_cast<int32_t*>(call->results[0])[i] = static_cast<const int32_t*>(call->operands[0])[i] + 10;
          return COLLET_OK;
        }};
    const ModulePtr module =
        member.read(program("c = s32[8] custom-call(x), custom_call_target=\"" + target +
                                "\"\n  ROOT y = s32[8] all-reduce(c), replica_groups={}, to_apply=sum",
                            "HloModule m, replica_count=2\n"));
    ASSERT_TRUE(module) << member.failure.message;
    collet_compile_request request{};
    request.host_functions = &function;
    request.host_function_count = 1;
    const ExecutablePtr e = member.compile(client.get(), module.get(), request);
    ASSERT_TRUE(e) << member.failure.message;
    const auto out = member.results(e.get(), member.arguments(client.get(), 1, member.rank));
    ASSERT_EQ(out.size(), 1u) << member.failure.message;
    EXPECT_EQ(out[0][3], 3 + 103 + 20);
  });
}

TEST_F(ProcessesTest, UnlikeProcessesAreRefused) {
  run_in(2, [](Member& member) {
    EXPECT_FALSE(member.join(member.rank == 0 ? "interpreter" : "memory_only"));
    EXPECT_EQ(member.failure.code, COLLET_FAILED_PRECONDITION);
    EXPECT_THAT(member.failure.message, HasSubstr("process 1"));
    EXPECT_THAT(member.failure.message, HasSubstr("'interpreter'"));
  });
}

TEST_F(ProcessesTest, ProgramOfOneProcessNeedsNoOther) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join("interpreter", 2);
    ASSERT_TRUE(client) << member.failure.message;
    if (member.rank == 1) return;
    const ExecutablePtr e = member.compile(
        client.get(),
        program("ROOT y = s32[8] all-reduce(x), replica_groups={}, to_apply=sum", "HloModule m, replica_count=2\n"));
    ASSERT_TRUE(e) << member.failure.message;
    EXPECT_EQ(member.results(e.get(), member.arguments(client.get(), 2, 0)).size(), 2u) << member.failure.message;
  });
}

TEST_F(ProcessesTest, AssignmentsAreChecked) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join();
    ASSERT_TRUE(client) << member.failure.message;
    const ModulePtr module = member.read(program("ROOT y = s32[8] negate(x)", "HloModule m\n"));
    const auto compile_on = [&](uint32_t device) {
      collet_compile_request request{};
      request.assignment = &device;
      request.assignment_count = 1;
      return member.compile(client.get(), module.get(), request);
    };
    EXPECT_TRUE(compile_on(member.rank)) << member.failure.message;
    EXPECT_FALSE(compile_on(1 - member.rank));
    EXPECT_THAT(member.failure.message, HasSubstr("no participant"));
    EXPECT_FALSE(compile_on(2));
    EXPECT_THAT(member.failure.message, HasSubstr("device 2"));
  });
}

// A store that waits longer than its caller asks for.
struct PatientStore {
  explicit PatientStore(const collet_store* inner) : inner_(inner), store{sizeof(collet_store), 0, this, put, get} {}
  static collet_status put(void* user, const char* key, const void* value, uint64_t bytes, collet_error* error) {
    const collet_store* const inner = static_cast<PatientStore*>(user)->inner_;
    return inner->put(inner->user, key, value, bytes, error);
  }
  static collet_status get(void* user, const char* key, uint32_t,
                           void (*take)(void* out, const void* value, uint64_t bytes), void* out, collet_error* error) {
    const collet_store* const inner = static_cast<PatientStore*>(user)->inner_;
    return inner->get(inner->user, key, 300, take, out, error);
  }
  const collet_store* const inner_;
  const collet_store store;
};

// The limit is so short that the processes may miss each other, but they end with an error then.
TEST_F(ProcessesTest, LimitOfAMillisecond) {
  for (int round = 0; round < 6; ++round) {
    const std::string folder = folder_ + "/" + std::to_string(round);
    std::filesystem::create_directory(folder);
    run_in(2, [&](Member& started) {
      Member member(folder, started.rank, 2);
      PatientStore patient(member.store());
      const ClientPtr client = member.join("interpreter", 1, 1, &patient.store);
      if (!client) {
        EXPECT_NE(member.failure.message, "");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    });
    processes_.clear();
  }
}

}  // namespace
}  // namespace collet::testing
