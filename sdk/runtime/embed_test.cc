// SPDX-License-Identifier: Apache-2.0
#include <collet/collet.h>
#include <gmock/gmock.h>

#include <cstdio>
#include <thread>

#include "sdk/runtime/testing/programs.h"
#include "sdk/runtime/testing/session.h"

namespace collet::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kAdd[] = R"(HloModule sum_of_two
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  ROOT s = f32[4] add(x, y)
})";

/// Tests features that frameworks use in addition to compile and run.
class Embed : public ::testing::Test, public Session {
 protected:
  BufferPtr vector(collet_client* client, std::vector<float> values) {
    return upload<float>(client, COLLET_TYPE_F32, {4}, values);
  }
  BufferPtr promise(collet_client* client, uint32_t device = 0) {
    collet_buffer* out = nullptr;
    failure.code = collet_buffer_promise(client, device, COLLET_NONE, &kVector, &out, &error_);
    failure.message = failure.code ? error_.message : "";
    return BufferPtr(out);
  }
  static uint64_t bytes_in_use(collet_client* client) {
    collet_client_device_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(collet_client_device_info_get(client, 0, &info, nullptr), COLLET_OK);
    return info.bytes_in_use;
  }
  collet_error error_{};
};

TEST_F(Embed, ModulesSayTheirNameAndShardings) {
  const ModulePtr module = read(R"(HloModule named, num_partitions=2
ENTRY e {
  x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
  p = (f32[4], f32[2]) parameter(1), sharding={{replicated}, {maximal device=1}}
  y = f32[4] parameter(2)
  a = f32[4] get-tuple-element(p), index=0
  s = f32[4] add(x, a)
  ROOT t = (f32[4], f32[4]) tuple(s, y), sharding={{devices=[2]<=[2]}, {replicated}}
})");
  ASSERT_TRUE(module) << failure.message;
  EXPECT_STREQ(collet_module_name(module.get()), "named");
  EXPECT_STREQ(collet_module_parameter_sharding(module.get(), 0), "{devices=[2]<=[2]}");
  EXPECT_STREQ(collet_module_parameter_sharding(module.get(), 1), "{replicated}");
  EXPECT_STREQ(collet_module_parameter_sharding(module.get(), 2), "{maximal device=1}");
  EXPECT_EQ(collet_module_parameter_sharding(module.get(), 3), nullptr);
  EXPECT_EQ(collet_module_parameter_sharding(module.get(), 99), nullptr);
  EXPECT_STREQ(collet_module_result_sharding(module.get(), 0), "{devices=[2]<=[2]}");
  EXPECT_STREQ(collet_module_result_sharding(module.get(), 1), "{replicated}");
}

// A host call inside a program: it adds ten times the participant's number, and counts its calls.
collet_status add_tens(void* user, const collet_host_call* call, collet_error* error) {
  auto& calls = *static_cast<int*>(user);
  if (++calls > 3) {
    std::snprintf(error->message, sizeof error->message, "enough");
    return COLLET_ABORTED;
  }
  const auto* in = static_cast<const float*>(call->operands[0]);
  auto* out = static_cast<float*>(call->results[0]);
  for (int i = 0; i < 4; ++i) out[i] = in[i] + 10 * static_cast<float>(call->participant + 1);
  return call->operand_types[0].rank == 1 && call->result_types[0].dims[0] == 4 ? COLLET_OK : COLLET_INTERNAL;
}

TEST_F(Embed, ProgramsCallTheEmbedder) {
  for (const std::string& backend : {std::string("interpreter"), test_backend("memory_only")}) {
    const ClientPtr client = open(backend);
    ASSERT_TRUE(client) << failure.message;
    const ModulePtr module = read(
        loop_program(2, R"(y = f32[4] custom-call(x), custom_call_target="tens", custom_call_has_side_effect=true)",
                     "  ROOT r = f32[4] add(y, x)"));
    ASSERT_TRUE(module) << failure.message;
    int calls = 0;
    const collet_host_function function = {"tens", &calls, add_tens};
    collet_compile_request request{};
    request.host_functions = &function;
    request.host_function_count = 1;
    const ExecutablePtr e = compile(client.get(), module.get(), request);
    ASSERT_TRUE(e) << failure.message;
    const std::vector<BufferPtr> in = [&] {
      std::vector<BufferPtr> list;
      list.push_back(vector(client.get(), {1, 2, 3, 4}));
      return list;
    }();
    auto out = run(e.get(), in);
    ASSERT_EQ(out.size(), 1u) << failure.message;
    EXPECT_THAT(download<float>(out[0]), ElementsAre(22, 24, 26, 28));
    EXPECT_EQ(calls, 2);
    out = run(e.get(), in);
    if (!out.empty()) download<float>(out[0]);
    EXPECT_EQ(failure.code, COLLET_ABORTED);
    EXPECT_THAT(failure.message, HasSubstr("enough"));
  }
}

TEST_F(Embed, ElementsBelowAByteMayComeWithAnyHighBits) {
  const ClientPtr client = open("interpreter");
  const int8_t bits[] = {0x0F, 0x08, 0x07, -1};
  const collet_array_type signed_type = {COLLET_TYPE_S4, 1, kFour}, unsigned_type = {COLLET_TYPE_U4, 1, kFour};
  const BufferPtr s4 = upload(client.get(), signed_type, bits), u4 = upload(client.get(), unsigned_type, bits);
  ASSERT_TRUE(s4 && u4) << failure.message;
  EXPECT_THAT(download<int8_t>(s4), ElementsAre(-1, -8, 7, -1));
  EXPECT_THAT(download<int8_t>(u4), ElementsAre(15, 8, 7, 15));
}

TEST_F(Embed, FactsCountWorkAndMemory) {
  const ClientPtr client = open("interpreter");
  const ExecutablePtr e = compile(client.get(), kAdd);
  ASSERT_TRUE(e) << failure.message;
  EXPECT_EQ(facts(e.get()).flops, 4u);
  EXPECT_EQ(collet_executable_result_space(e.get(), 0), 0u);
  EXPECT_EQ(collet_executable_result_space(e.get(), 1), COLLET_NONE);
}

// A caller compiled with an older header has shorter structs; the library must not write after their end.
TEST_F(Embed, OlderCallersStructsAreNotOverrun) {
  const ClientPtr client = open("interpreter");
  const ExecutablePtr e = compile(client.get(), kAdd);
  ASSERT_TRUE(e) << failure.message;
  collet_executable_facts f;
  std::memset(&f, 0x5A, sizeof f);
  f.struct_size = offsetof(collet_executable_facts, flops);
  ASSERT_EQ(collet_executable_facts_get(e.get(), &f, nullptr), COLLET_OK);
  EXPECT_EQ(f.argument_count, 2u);
  EXPECT_EQ(f.flops, 0x5A5A5A5A5A5A5A5Au);
  const BufferPtr x = vector(client.get(), {1, 2, 3, 4});
  collet_buffer *in[] = {x.get(), x.get()}, *out = nullptr;
  collet_event* never = nullptr;
  collet_execute_options options{};
  options.struct_size = offsetof(collet_execute_options, out_done);
  options.out_done = &never;
  ASSERT_EQ(collet_execute(e.get(), &options, in, &out, nullptr), COLLET_OK);
  const BufferPtr owner(out);
  EXPECT_EQ(never, nullptr);
}

TEST_F(Embed, ARunTellsWhenItHasEnded) {
  Control control;
  const ClientPtr client = open(test_backend("wrapper"), "none", &control);
  const ExecutablePtr e = compile(client.get(), kAdd);
  ASSERT_TRUE(e) << failure.message;
  std::vector<BufferPtr> in;
  in.push_back(vector(client.get(), {1, 2, 3, 4}));
  in.push_back(vector(client.get(), {1, 1, 1, 1}));
  collet_event* raw = nullptr;
  collet_execute_options options{};
  options.out_done = &raw;
  ASSERT_EQ(run(e.get(), in, options).size(), 1u) << failure.message;
  ASSERT_TRUE(raw);
  EXPECT_EQ(collet_event_wait(EventPtr(raw).get(), nullptr), COLLET_OK);

  control.delay_ns = 30000000;
  run(e.get(), in);  // the library measures that the run takes long
  raw = nullptr;
  run(e.get(), in, options).clear();  // the results are released before they are complete
  ASSERT_TRUE(raw);
  const EventPtr later(raw);
  EXPECT_EQ(collet_event_is_ready(later.get()), 0u);
  EXPECT_EQ(collet_event_wait(later.get(), nullptr), COLLET_OK);

  control.counted = kExecute;
  control.fail_at = control.calls.load();
  run(e.get(), in, options).clear();
  const EventPtr failed(raw);
  EXPECT_EQ(collet_event_wait(failed.get(), &error_), COLLET_INTERNAL);
  EXPECT_THAT(error_.message, HasSubstr("injected"));
}

TEST_F(Embed, PromisedBuffersAreWrittenInParts) {
  for (const std::string& backend : {std::string("interpreter"), test_backend("remote")}) {
    const ClientPtr client = open(backend);
    const ExecutablePtr e = compile(client.get(), kAdd);
    ASSERT_TRUE(e) << failure.message;
    const BufferPtr x = promise(client.get());
    ASSERT_TRUE(x) << failure.message;
    const EventPtr ready(collet_buffer_ready(x.get()));
    const BufferPtr y = vector(client.get(), {10, 20, 30, 40});
    collet_buffer *in[] = {x.get(), y.get()}, *out = nullptr;
    ASSERT_EQ(collet_execute(e.get(), nullptr, in, &out, &error_), COLLET_OK) << error_.message;
    const BufferPtr sum(out);
    // Work that does not depend on it continues.
    collet_buffer* twice[] = {y.get(), y.get()};
    ASSERT_EQ(collet_execute(e.get(), nullptr, twice, &out, &error_), COLLET_OK) << error_.message;
    EXPECT_THAT(download<float>(BufferPtr(out)), ElementsAre(20, 40, 60, 80));
    const EventPtr done(collet_buffer_ready(sum.get()));
    EXPECT_EQ(collet_event_is_ready(done.get()), 0u);
    EXPECT_EQ(collet_event_is_ready(ready.get()), 0u);
    const float tail[] = {3, 4}, head[] = {1, 2};
    EXPECT_EQ(collet_buffer_write(x.get(), 8, 8, tail, nullptr), COLLET_OK);
    EXPECT_EQ(collet_buffer_write(x.get(), 12, 8, tail, nullptr), COLLET_OUT_OF_RANGE);
    EXPECT_EQ(collet_buffer_write(x.get(), 0, 8, head, nullptr), COLLET_OK);
    EXPECT_EQ(collet_buffer_fulfil(x.get(), nullptr, nullptr), COLLET_OK);
    EXPECT_EQ(collet_event_wait(ready.get(), nullptr), COLLET_OK);
    EXPECT_THAT(download<float>(sum), ElementsAre(11, 22, 33, 44));
    EXPECT_THAT(download<float>(x), ElementsAre(1, 2, 3, 4));
    EXPECT_EQ(collet_buffer_write(x.get(), 0, 8, head, nullptr), COLLET_FAILED_PRECONDITION);
    EXPECT_EQ(collet_buffer_fulfil(x.get(), nullptr, nullptr), COLLET_FAILED_PRECONDITION);
    EXPECT_EQ(collet_buffer_fulfil(y.get(), nullptr, nullptr), COLLET_FAILED_PRECONDITION);
  }
}

// Nothing is allocated for the results of runs that wait, unless the caller asks for the address.
TEST_F(Embed, ResultsOfWaitingRunsTakeNoMemory) {
  const ClientPtr client = open("interpreter");
  const ExecutablePtr e = compile(client.get(), kAdd);
  ASSERT_TRUE(e) << failure.message;
  const BufferPtr x = promise(client.get());
  ASSERT_TRUE(x) << failure.message;
  const uint64_t before = bytes_in_use(client.get());
  std::vector<BufferPtr> sums;
  for (int i = 0; i < 8; ++i) {
    collet_buffer *in[] = {x.get(), i == 0 ? x.get() : sums.back().get()}, *out = nullptr;
    ASSERT_EQ(collet_execute(e.get(), nullptr, in, &out, &error_), COLLET_OK) << error_.message;
    sums.emplace_back(out);
  }
  EXPECT_EQ(bytes_in_use(client.get()), before);
  const void* const place = collet_buffer_host_pointer(sums[3].get());
  ASSERT_NE(place, nullptr);
  EXPECT_GT(bytes_in_use(client.get()), before);
  sums.erase(sums.begin());
  const float data[] = {1, 2, 3, 4};
  EXPECT_EQ(collet_buffer_write(x.get(), 0, sizeof data, data, nullptr), COLLET_OK);
  EXPECT_EQ(collet_buffer_fulfil(x.get(), nullptr, nullptr), COLLET_OK);
  EXPECT_THAT(download<float>(sums.back()), ElementsAre(9, 18, 27, 36));
  EXPECT_THAT(download<float>(sums[2]), ElementsAre(5, 10, 15, 20));
  EXPECT_EQ(collet_buffer_host_pointer(sums[2].get()), place);
  sums.clear();
  EXPECT_EQ(bytes_in_use(client.get()), before);
}

// A run that never starts allocates nothing for its results either.
TEST_F(Embed, ResultsOfBrokenPromisesTakeNoMemory) {
  const ClientPtr client = open("interpreter");
  const ExecutablePtr e = compile(client.get(), kAdd);
  ASSERT_TRUE(e) << failure.message;
  const BufferPtr x = promise(client.get());
  const uint64_t before = bytes_in_use(client.get());
  collet_buffer *in[] = {x.get(), x.get()}, *out = nullptr;
  ASSERT_EQ(collet_execute(e.get(), nullptr, in, &out, &error_), COLLET_OK) << error_.message;
  const BufferPtr sum(out);
  EXPECT_EQ(collet_buffer_fail(x.get(), COLLET_CANCELLED, "no data", nullptr), COLLET_OK);
  download<float>(sum);
  EXPECT_EQ(failure.code, COLLET_CANCELLED) << failure.message;
  EXPECT_EQ(collet_buffer_host_pointer(sum.get()), nullptr);
  EXPECT_EQ(bytes_in_use(client.get()), before);
}

// A promise may be fulfilled by work that is queued after the work that waits for it; there is no deadlock.
TEST_F(Embed, PromisesAreFulfilledByLaterWork) {
  Control control;
  const ClientPtr client = open(test_backend("wrapper"), "none", &control, 2);
  const ExecutablePtr e = compile(client.get(), kAdd);
  ASSERT_TRUE(e) << failure.message;
  const BufferPtr x = vector(client.get(), {1, 2, 3, 4});
  const BufferPtr p = promise(client.get()), q = promise(client.get(), 1);
  collet_buffer *first[] = {p.get(), x.get()}, *second[] = {x.get(), x.get()}, *out = nullptr;
  ASSERT_EQ(collet_execute(e.get(), nullptr, first, &out, nullptr), COLLET_OK);
  const BufferPtr waiting(out);
  ASSERT_EQ(collet_buffer_copy(p.get(), 1, COLLET_NONE, &out, nullptr), COLLET_OK);
  const BufferPtr copy(out);
  float host[4] = {};
  collet_event* raw = nullptr;
  ASSERT_EQ(collet_buffer_to_host(waiting.get(), host, sizeof host, &raw, nullptr), COLLET_OK);
  const EventPtr read(raw);
  control.delay_ns = 20000000;
  for (int i = 0; i < 2; ++i) {  // the second one is queued
    ASSERT_EQ(collet_execute(e.get(), nullptr, second, &out, nullptr), COLLET_OK);
    const BufferPtr made(out);
    if (i == 1) {
      ASSERT_EQ(collet_buffer_fulfil(p.get(), made.get(), &error_), COLLET_OK) << error_.message;
    }
  }
  ASSERT_EQ(collet_buffer_fulfil(q.get(), waiting.get(), &error_), COLLET_OK) << error_.message;
  EXPECT_EQ(collet_event_wait(read.get(), nullptr), COLLET_OK);
  EXPECT_THAT(host, ElementsAre(3, 6, 9, 12));
  EXPECT_THAT(download<float>(copy), ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(download<float>(q), ElementsAre(3, 6, 9, 12));
  EXPECT_EQ(collet_buffer_fulfil(q.get(), q.get(), nullptr), COLLET_INVALID_ARGUMENT);
}

// A promise of an array without elements does not make its source wait either.
TEST_F(Embed, EmptyPromisesWaitForTheirSource) {
  const ClientPtr client = open("interpreter");
  constexpr int64_t kNone[] = {0};
  const collet_array_type type = {COLLET_TYPE_F32, 1, kNone};
  const auto make = [&] {
    collet_buffer* out = nullptr;
    EXPECT_EQ(collet_buffer_promise(client.get(), 0, COLLET_NONE, &type, &out, nullptr), COLLET_OK);
    return BufferPtr(out);
  };
  const BufferPtr x = make(), source = make();
  const EventPtr ready(collet_buffer_ready(x.get()));
  ASSERT_EQ(collet_buffer_fulfil(x.get(), source.get(), nullptr), COLLET_OK);
  EXPECT_EQ(collet_event_is_ready(ready.get()), 0u);
  ASSERT_EQ(collet_buffer_fulfil(source.get(), nullptr, nullptr), COLLET_OK);
  EXPECT_EQ(collet_event_wait(ready.get(), nullptr), COLLET_OK);
}

TEST_F(Embed, BrokenPromisesFailWhatUsesThem) {
  const ClientPtr client = open("interpreter");
  const ExecutablePtr e = compile(client.get(), kAdd);
  const BufferPtr y = vector(client.get(), {10, 20, 30, 40});
  for (int released = 0; released < 2; ++released) {
    BufferPtr x = promise(client.get());
    collet_buffer *in[] = {x.get(), y.get()}, *out = nullptr;
    ASSERT_EQ(collet_execute(e.get(), nullptr, in, &out, &error_), COLLET_OK) << error_.message;
    const BufferPtr sum(out);
    if (released) {
      x.reset();
      download<float>(sum);
      EXPECT_EQ(failure.code, COLLET_CANCELLED);
      continue;
    }
    EXPECT_EQ(collet_buffer_fail(x.get(), COLLET_OK, "", nullptr), COLLET_INVALID_ARGUMENT);
    EXPECT_EQ(collet_buffer_fail(x.get(), 77, "", nullptr), COLLET_INVALID_ARGUMENT);
    ASSERT_EQ(collet_buffer_fail(x.get(), COLLET_UNAVAILABLE, "the wire was cut", nullptr), COLLET_OK);
    download<float>(sum);
    EXPECT_EQ(failure.code, COLLET_UNAVAILABLE);
    EXPECT_THAT(failure.message, HasSubstr("the wire was cut"));
    EXPECT_EQ(collet_execute(e.get(), nullptr, in, &out, &error_), COLLET_UNAVAILABLE);
  }
}

TEST_F(Embed, WaitingHasAnEnd) {
  const ClientPtr client = open("interpreter");
  const BufferPtr x = promise(client.get());
  const EventPtr ready(collet_buffer_ready(x.get()));
  EXPECT_EQ(collet_event_wait_for(ready.get(), 1000000, nullptr), COLLET_DEADLINE_EXCEEDED);
  EXPECT_EQ(collet_event_wait_for(ready.get(), 0, nullptr), COLLET_DEADLINE_EXCEEDED);
  ASSERT_EQ(collet_buffer_fulfil(x.get(), nullptr, nullptr), COLLET_OK);
  EXPECT_EQ(collet_event_wait_for(ready.get(), UINT64_MAX, nullptr), COLLET_OK);
}

// A promise is fulfilled by another thread while work waits for it and a caller closes the client early.
TEST_F(Embed, PromisesOutliveACarelessClose) {
  ClientPtr client = open("interpreter");
  ExecutablePtr e = compile(client.get(), kAdd);
  BufferPtr x = promise(client.get());
  collet_buffer *in[] = {x.get(), x.get()}, *out = nullptr;
  ASSERT_EQ(collet_execute(e.get(), nullptr, in, &out, nullptr), COLLET_OK);
  const BufferPtr sum(out);
  e.reset();
  client.reset();
  std::thread other([&] {
    const float data[] = {1, 2, 3, 4};
    EXPECT_EQ(collet_buffer_write(x.get(), 0, sizeof data, data, nullptr), COLLET_OK);
    EXPECT_EQ(collet_buffer_fulfil(x.get(), nullptr, nullptr), COLLET_OK);
  });
  EXPECT_THAT(download<float>(sum), ElementsAre(2, 4, 6, 8));
  other.join();
}

}  // namespace
}  // namespace collet::testing
