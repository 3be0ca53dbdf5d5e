// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "sdk/runtime/testing/programs.h"
#include "sdk/runtime/testing/session.h"

// Tests custom calls that a function of this process runs.

namespace collet::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A program with custom calls with two results and a configuration, inside and outside of a loop.
const std::string kProgram =
    loop_program(1000, R"(y = f32[4] custom-call(x), custom_call_target="scale", backend_config="1")",
                 R"(  both = (f32[4], s32[]) custom-call(y, zero), custom_call_target="scale", backend_config="10"
  z = f32[4] get-tuple-element(both), index=0
  n = s32[] get-tuple-element(both), index=1
  s = f32[4] add(z, x)
  ROOT t = (f32[4], s32[]) tuple(s, n))");

constexpr char kOneCall[] =
    "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n"
    "  ROOT y = f32[4] custom-call(x), custom_call_target=\"scale\", backend_config=\"3\"\n}\n";

// Multiplies by the number in its configuration, and counts its calls.
collet_status scale(void* user, const collet_host_call* call, collet_error*) {
  const auto* x = static_cast<const float*>(call->operands[0]);
  auto* y = static_cast<float*>(call->results[0]);
  const auto factor = static_cast<float>(std::atoi(call->config));
  for (int i = 0; i < 4; ++i) y[i] = x[i] * factor;
  const int n = ++*static_cast<std::atomic<int>*>(user);
  if (call->result_count == 2) *static_cast<int32_t*>(call->results[1]) = n;
  return COLLET_OK;
}

// Fails with the code that `user` points to.
collet_status fails(void* user, const collet_host_call* call, collet_error* error) {
  std::snprintf(error->message, sizeof error->message, "%s is out of order", call->target);
  return *static_cast<collet_status*>(user);
}

class HostCall : public ::testing::Test, public Session {
 protected:
  ExecutablePtr compile_with(collet_client* client, std::string_view program, const collet_host_function& function) {
    const ModulePtr module = read(program);
    collet_compile_request request{};
    request.host_functions = &function;
    request.host_function_count = 1;
    return module ? compile(client, module.get(), request) : nullptr;
  }
  std::vector<BufferPtr> vector(collet_client* client) {
    std::vector<BufferPtr> out;
    out.push_back(upload<float>(client, COLLET_TYPE_F32, {4}, {1, 2, 3, 4}));
    return out;
  }
  // Runs to the end; stores an error in `failure`.
  std::vector<float> run_one(collet_client* client, collet_executable* e) {
    const auto out = run(e, vector(client));
    return out.empty() ? std::vector<float>() : download<float>(out[0]);
  }
  std::atomic<int> calls_{0};
};

// With several participants, host functions run on threads of the library, so none of them sees thread-local state of
// the caller, such as Python's.
TEST_F(HostCall, SeveralParticipantsAreCalledByAThreadOfTheLibrary) {
  const auto remember = [](void* user, const collet_host_call* call, collet_error* error) -> collet_status {
    static std::atomic<int> calls;
    *static_cast<std::thread::id*>(user) = std::this_thread::get_id();
    return scale(&calls, call, error);
  };
  std::thread::id caller;
  const ClientPtr client = open("interpreter", "none", nullptr, 2);
  const ModulePtr module = read(kProgram);
  ASSERT_TRUE(module) << failure.message;
  const collet_host_function function = {"scale", &caller, remember};
  collet_compile_request request{};
  request.replica_count = 2;
  request.host_functions = &function;
  request.host_function_count = 1;
  const ExecutablePtr e = compile(client.get(), module.get(), request);
  ASSERT_TRUE(e) << failure.message;
  const std::vector<float> data = {1, 2, 3, 4};
  const int64_t dims[] = {4};
  std::vector<BufferPtr> in;
  for (uint32_t d = 0; d < 2; ++d) in.push_back(upload(client.get(), {COLLET_TYPE_F32, 1, dims}, data.data(), d));
  const auto out = run(e.get(), in);
  ASSERT_FALSE(out.empty()) << failure.message;
  EXPECT_EQ(download<float>(out[0]).size(), 4u);
  EXPECT_TRUE(caller != std::thread::id());
  EXPECT_TRUE(caller != std::this_thread::get_id());
}

// A host function closes the client of its own run, which is not waited for.
TEST_F(HostCall, MayCloseTheClient) {
  struct Closed {
    std::atomic<collet_client*> client{nullptr};
    std::atomic<bool> done{false};
  } closed;
  const auto close = [](void* user, const collet_host_call* call, collet_error*) -> collet_status {
    auto& to = *static_cast<Closed*>(user);
    std::memcpy(call->results[0], call->operands[0], 4 * sizeof(float));
    while (!to.client) std::this_thread::yield();
    collet_client_close(to.client);
    to.done = true;
    return COLLET_OK;
  };
  ClientPtr client = open("interpreter");
  ExecutablePtr e = compile_with(client.get(), kOneCall, {"scale", &closed, close});
  ASSERT_TRUE(e) << failure.message;
  // The run begins on a thread of the library, because its argument is promised.
  collet_buffer *promised = nullptr, *result = nullptr;
  ASSERT_EQ(collet_buffer_promise(client.get(), 0, COLLET_NONE, &kVector, &promised, nullptr), COLLET_OK);
  collet_execute_options options{};
  options.struct_size = sizeof options;
  ASSERT_EQ(collet_execute(e.get(), &options, &promised, &result, nullptr), COLLET_OK);
  collet_buffer_release(result);
  e.reset();
  ASSERT_EQ(collet_buffer_fulfil(promised, nullptr, nullptr), COLLET_OK);
  collet_buffer_release(promised);
  closed.client = client.release();
  for (int i = 0; i < 5000 && !closed.done; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(closed.done);
}

TEST_F(HostCall, RunsOnEveryBackend) {
  std::vector<std::string> backends = {"interpreter", test_backend("memory_only"), test_backend("remote"),
                                       test_backend("narrow")};
  const char* path = std::getenv("COLLET_BACKEND_PATH");
  if (path && std::ifstream(std::string(path) + "/libcollet_backend_cpu.so")) backends.emplace_back("cpu");
  for (const std::string& backend : backends) {
    SCOPED_TRACE(backend);
    const ClientPtr client = open(backend, backend == "cpu" ? nullptr : "interpreter");
    const ExecutablePtr e = compile_with(client.get(), kProgram, {"scale", &calls_, scale});
    ASSERT_TRUE(e) << failure.message;
    EXPECT_EQ(facts(e.get()).host_ops, 3u) << explain(e.get());
    EXPECT_THAT(explain(e.get()), HasSubstr("the embedder's"));
    calls_ = 0;
    const auto out = run(e.get(), vector(client.get()));
    ASSERT_EQ(out.size(), 2u) << failure.message;
    EXPECT_THAT(download<float>(out[0]), ElementsAre(11, 22, 33, 44));
    EXPECT_THAT(download<int32_t>(out[1]), ElementsAre(1001));
  }
}

// Writes the first element of a result alone.
collet_status add_to_first(void*, const collet_host_call* call, collet_error*) {
  *static_cast<int32_t*>(call->results[0]) = 0;
  static_cast<float*>(call->results[1])[0] += 100;
  return COLLET_OK;
}

TEST_F(HostCall, ResultsThatTakeOverAnOperandHoldIt) {
  const ClientPtr client = open("interpreter");
  const ExecutablePtr e = compile_with(client.get(), R"(HloModule in_place
ENTRY main {
  x = f32[4] parameter(0)
  twice = f32[4] add(x, x)
  c = (s32[], f32[4]) custom-call(x, twice), custom_call_target="first", output_to_operand_aliasing={{1}: (1, {})}
  ROOT y = f32[4] get-tuple-element(c), index=1
})",
                                       {"first", nullptr, add_to_first});
  ASSERT_TRUE(e) << failure.message;
  EXPECT_THAT(run_one(client.get(), e.get()), ElementsAre(102, 4, 6, 8));
}

TEST_F(HostCall, FailuresAreTheExecutions) {
  const ClientPtr client = open("interpreter");
  collet_status code = COLLET_UNAVAILABLE;
  const ExecutablePtr e = compile_with(client.get(), kOneCall, {"scale", &code, fails});
  ASSERT_TRUE(e) << failure.message;
  run_one(client.get(), e.get());
  EXPECT_EQ(failure.code, COLLET_UNAVAILABLE);
  EXPECT_THAT(failure.message, HasSubstr("scale is out of order"));
  for (const collet_status nonsense : {4711, -1}) {
    code = nonsense;
    run_one(client.get(), e.get());
    EXPECT_EQ(failure.code, COLLET_UNKNOWN);
    EXPECT_THAT(failure.message, HasSubstr("unknown code " + std::to_string(nonsense)));
  }
}

// An exception of any type in a host function fails the run; the next run works.
TEST_F(HostCall, ExceptionsFailTheRun) {
  const ClientPtr client = open("interpreter");
  bool memory = true;
  const collet_host_function throws = {"scale", &memory,
                                       [](void* user, const collet_host_call* call, collet_error*) -> collet_status {
                                         if (*static_cast<bool*>(user)) throw std::bad_alloc();
                                         throw std::runtime_error(call->target);
                                       }};
  collet_compile_request request{};
  request.host_functions = &throws;
  request.host_function_count = 1;
  const ModulePtr module = read(kOneCall);
  const ExecutablePtr e = compile(client.get(), module.get(), request);
  ASSERT_TRUE(e) << failure.message;
  for (const bool queued : {false, true})
    for (const bool out_of_memory : {true, false}) {
      memory = out_of_memory;
      std::vector<BufferPtr> in;
      collet_buffer* promised = nullptr;
      ASSERT_EQ(collet_buffer_promise(client.get(), 0, COLLET_NONE, &kVector, &promised, nullptr), COLLET_OK);
      in.emplace_back(promised);
      if (!queued) {
        ASSERT_EQ(collet_buffer_fulfil(promised, nullptr, nullptr), COLLET_OK);
      }
      const auto out = run(e.get(), in);
      if (queued) {
        ASSERT_EQ(collet_buffer_fulfil(promised, nullptr, nullptr), COLLET_OK);
      }
      if (!out.empty()) download<float>(out[0]);
      EXPECT_EQ(failure.code, out_of_memory ? COLLET_RESOURCE_EXHAUSTED : COLLET_INTERNAL) << failure.message;
    }
}

// A program with infeed and outfeed, inside and outside of a loop.
constexpr char kQueues[] = R"(HloModule m
cond {
  s = (s32[], s32[], token[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], s32[], token[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  sum = s32[] get-tuple-element(s), index=1
  t = token[] get-tuple-element(s), index=2
  in = ((s32[], f32[2]), token[]) infeed(t), infeed_config="numbers"
  pair = (s32[], f32[2]) get-tuple-element(in), index=0
  x = s32[] get-tuple-element(pair), index=0
  u = token[] get-tuple-element(in), index=1
  more = s32[] add(sum, x)
  v = token[] outfeed(more, u), outfeed_config="sums"
  ROOT r = (s32[], s32[], token[]) tuple(j, more, v)
}
ENTRY e {
  zero = s32[] constant(0)
  t = token[] after-all()
  init = (s32[], s32[], token[]) tuple(zero, zero, t)
  w = (s32[], s32[], token[]) while(init), condition=cond, body=body
  ROOT sum = s32[] get-tuple-element(w), index=1
})";

struct Queues {
  int given = 0;
  std::vector<int> taken;
  std::vector<std::string> configs;
};

collet_status give(void* user, const collet_host_call* call, collet_error*) {
  auto& q = *static_cast<Queues*>(user);
  q.configs.emplace_back(call->config);
  EXPECT_EQ(call->operand_count, 1u);
  EXPECT_EQ(call->result_count, 3u);
  EXPECT_EQ(call->operand_types[0].element, uint32_t{COLLET_TYPE_TOKEN});
  EXPECT_EQ(call->result_types[1].element, uint32_t{COLLET_TYPE_F32});
  EXPECT_EQ(call->results[2], nullptr);
  *static_cast<int32_t*>(call->results[0]) = ++q.given * 10;
  std::fill_n(static_cast<float*>(call->results[1]), 2, 0.0f);
  return COLLET_OK;
}

collet_status take(void* user, const collet_host_call* call, collet_error*) {
  auto& q = *static_cast<Queues*>(user);
  q.configs.emplace_back(call->config);
  q.taken.push_back(*static_cast<const int32_t*>(call->operands[0]));
  return COLLET_OK;
}

TEST_F(HostCall, QueuesOfTheHost) {
  for (const char* backend : {"interpreter", "narrow", "memory_only"}) {
    const bool itself = std::string_view(backend) == "interpreter";
    const ClientPtr client = itself ? open(backend, "none") : open(test_backend(backend));
    Queues q;
    const collet_host_function functions[] = {{"infeed", &q, give}, {"outfeed", &q, take}};
    const ModulePtr module = read(kQueues);
    ASSERT_TRUE(module) << failure.message;
    collet_compile_request request{};
    request.host_functions = functions;
    request.host_function_count = 2;
    const ExecutablePtr e = compile(client.get(), module.get(), request);
    ASSERT_TRUE(e) << failure.message;
    const auto out = run(e.get(), {});
    ASSERT_EQ(out.size(), 1u) << failure.message;
    EXPECT_THAT(download<int32_t>(out[0]), ElementsAre(60)) << backend;
    EXPECT_THAT(q.taken, ElementsAre(10, 30, 60)) << backend;
    EXPECT_THAT(q.configs, ElementsAre("numbers", "sums", "numbers", "sums", "numbers", "sums")) << backend;
  }
}

TEST_F(HostCall, QueuesAndTransfersWithoutAPartnerAreNamed) {
  const ClientPtr client = open("interpreter");
  EXPECT_FALSE(compile(client.get(), kQueues));
  EXPECT_EQ(failure.code, COLLET_UNIMPLEMENTED);
  EXPECT_THAT(failure.message, HasSubstr("' (infeed, "));
  EXPECT_THAT(failure.message, HasSubstr("collet_host_function"));
  EXPECT_FALSE(compile(client.get(), R"(HloModule m
ENTRY e {
  t = token[] after-all()
  r = (f32[4], u32[], token[]) recv(t), channel_id=2, is_host_transfer=true
  d = (f32[4], token[]) recv-done(r), channel_id=2, is_host_transfer=true
  ROOT y = f32[4] get-tuple-element(d), index=0
})"));
  EXPECT_EQ(failure.code, COLLET_UNIMPLEMENTED);
  EXPECT_THAT(failure.message, HasSubstr("'r' (recv, "));
  EXPECT_THAT(failure.message, HasSubstr("transfers to and from the host"));
}

TEST_F(HostCall, FunctionsWithoutACallAreRefused) {
  const ClientPtr client = open("interpreter");
  const ModulePtr module = read(kOneCall);
  collet_compile_request request{};
  request.host_function_count = 1;
  EXPECT_FALSE(compile(client.get(), module.get(), request));
  EXPECT_EQ(failure.code, COLLET_INVALID_ARGUMENT);
  for (const collet_host_function& f :
       {collet_host_function{"scale", nullptr, nullptr}, collet_host_function{nullptr, nullptr, scale}}) {
    request.host_functions = &f;
    EXPECT_FALSE(compile(client.get(), module.get(), request));
    EXPECT_EQ(failure.code, COLLET_INVALID_ARGUMENT);
    EXPECT_THAT(failure.message, HasSubstr("host function 0"));
  }
}

TEST_F(HostCall, UnknownTargetsAreNamed) {
  for (const char* backend : {"interpreter", "memory_only", "cpu"}) {
    const ClientPtr client = open(backend[0] == 'm' ? test_backend(backend) : backend, "interpreter");
    if (!client) continue;  // cpu was not built
    if (const ExecutablePtr e = compile(client.get(), kOneCall)) run_one(client.get(), e.get());
    EXPECT_EQ(failure.code, COLLET_UNIMPLEMENTED);
    EXPECT_THAT(failure.message, HasSubstr("scale"));
  }
}

// The caches distinguish equal programs that call different functions.
TEST_F(HostCall, EachProgramCallsItsOwnFunction) {
  const ClientPtr client = open("interpreter");
  const ExecutablePtr none = compile(client.get(), kOneCall);
  const ExecutablePtr first = compile_with(client.get(), kOneCall, {"scale", &calls_, scale});
  collet_status code = COLLET_ABORTED;
  const ExecutablePtr second = compile_with(client.get(), kOneCall, {"scale", &code, fails});
  ASSERT_TRUE(none && first && second) << failure.message;
  EXPECT_THAT(run_one(client.get(), first.get()), ElementsAre(3, 6, 9, 12));
  run_one(client.get(), second.get());
  EXPECT_EQ(failure.code, COLLET_ABORTED);
  run_one(client.get(), none.get());
  EXPECT_EQ(failure.code, COLLET_UNIMPLEMENTED);
  EXPECT_EQ(facts(compile_with(client.get(), kOneCall, {"scale", &calls_, scale}).get()).from_cache, 1u);
}

}  // namespace
}  // namespace collet::testing
