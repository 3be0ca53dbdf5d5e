// SPDX-License-Identifier: Apache-2.0
#include <collet/collet.h>
#include <gmock/gmock.h>

#include "sdk/runtime/testing/programs.h"
#include "sdk/runtime/testing/session.h"

// Tests arguments and results of runs: order of execution, donation, aliases, errors.

namespace collet::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Run : public ::testing::Test, public Session {};

TEST_F(Run, CopiesBetweenDevices) {
  const ClientPtr client = open("interpreter", nullptr, nullptr, 2);
  const BufferPtr x = upload<float>(client.get(), COLLET_TYPE_F32, {2}, {1, 2});
  collet_buffer* raw = nullptr;
  ASSERT_EQ(collet_buffer_copy(x.get(), 1, COLLET_NONE, &raw, nullptr), COLLET_OK);
  const BufferPtr y(raw);
  EXPECT_EQ(collet_buffer_device(y.get()), 1u);
  EXPECT_THAT(download<float>(y), ElementsAre(1, 2));
  collet_error error;
  EXPECT_EQ(collet_buffer_copy(x.get(), 7, COLLET_NONE, &raw, &error), COLLET_INVALID_ARGUMENT);
  EXPECT_THAT(std::string(error.message), HasSubstr("there is no device 7"));
}

constexpr char kDonates[] = R"(HloModule d, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  ROOT s = f32[4] add(x, y)
})";

TEST_F(Run, DonatedArgumentsAreTakenOver) {
  const ClientPtr client = open("interpreter");
  const ExecutablePtr e = compile(client.get(), kDonates);
  ASSERT_TRUE(e) << failure.message;
  EXPECT_EQ(collet_executable_donates(e.get(), 0), 1u);
  EXPECT_EQ(collet_executable_donates(e.get(), 1), 0u);
  auto in = two_vectors(client.get());
  const void* place = collet_buffer_host_pointer(in[0].get());
  auto out = run(e.get(), in);
  ASSERT_EQ(out.size(), 1u) << failure.message;
  EXPECT_EQ(collet_buffer_host_pointer(out[0].get()), place);
  EXPECT_EQ(collet_buffer_is_deleted(in[0].get()), 1u);
  EXPECT_EQ(collet_buffer_is_deleted(in[1].get()), 0u);
  EXPECT_THAT(download<float>(out[0]), ElementsAre(11, 22, 33, 44));
  EXPECT_TRUE(run(e.get(), in).empty());
  EXPECT_EQ(failure.code, COLLET_FAILED_PRECONDITION);
  EXPECT_THAT(failure.message, HasSubstr("argument 0"));
}

TEST_F(Run, KeepsDonatedArgumentsIfAsked) {
  const ClientPtr client = open("interpreter");
  for (const char* kind : {"may-alias", "must-alias"}) {
    std::string text = kDonates;
    text.replace(text.find("may-alias"), 9, kind);
    const ExecutablePtr e = compile(client.get(), text);
    ASSERT_TRUE(e) << failure.message;
    auto in = two_vectors(client.get());
    collet_execute_options options{};
    options.keep_donated = 1;
    auto out = run(e.get(), in, options);
    ASSERT_EQ(out.size(), 1u) << failure.message;
    EXPECT_THAT(download<float>(in[0]), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(download<float>(out[0]), ElementsAre(11, 22, 33, 44));
    const uint32_t zero[] = {0};
    collet_execute_options not_that_one{};
    not_that_one.non_donatable = zero;
    not_that_one.non_donatable_count = 1;
    ASSERT_EQ(run(e.get(), in, not_that_one).size(), 1u) << failure.message;
    EXPECT_THAT(download<float>(in[0]), ElementsAre(1, 2, 3, 4));
  }
}

// If the loop runs no iteration, it returns `a` itself: result 0 must not be written to memory that `s` reads later.
constexpr char kPassedOn[] = R"(HloModule passed_on, input_output_alias={ {0}: (0, {}, may-alias) }
cond {
  p = (s32[], s32[], f32[512,512]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=1
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], s32[], f32[512,512]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=1
  x = f32[512,512] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[512,512] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[], s32[], f32[512,512]) tuple(j, n, y)
}
ENTRY e {
  a = f32[512,512] parameter(0)
  n = s32[] parameter(1)
  z = s32[] constant(0)
  t = (s32[], s32[], f32[512,512]) tuple(z, n, a)
  w = (s32[], s32[], f32[512,512]) while(t), condition=cond, body=body
  wx = f32[512,512] get-tuple-element(w), index=2
  wi = s32[] get-tuple-element(w), index=0
  f = f32[] convert(wi)
  b = f32[512,512] broadcast(f), dimensions={}
  o = f32[] constant(1)
  ob = f32[512,512] broadcast(o), dimensions={}
  ab = f32[512,512] add(a, b)
  r = f32[512,512] add(ab, ob)
  t2 = (s32[], s32[], f32[512,512]) tuple(z, n, r)
  w2 = (s32[], s32[], f32[512,512]) while(t2), condition=cond, body=body
  w2x = f32[512,512] get-tuple-element(w2), index=2
  s = f32[512,512] multiply(wx, w2x)
  ROOT root = (f32[512,512], f32[512,512]) tuple(r, s)
})";

TEST_F(Run, WhatALoopHandsThroughIsNotOverwritten) {
  for (const char* backend : {"interpreter", "narrow"}) {
    SCOPED_TRACE(backend);
    const bool narrow = std::string_view(backend) == "narrow";
    const ClientPtr client = narrow ? open(test_backend(backend), "interpreter") : open(backend);
    const ExecutablePtr e = compile(client.get(), kPassedOn);
    ASSERT_TRUE(e) << failure.message;
    for (const uint32_t keep : {1u, 0u}) {
      std::vector<BufferPtr> in;
      in.push_back(upload<float>(client.get(), COLLET_TYPE_F32, {512, 512}, std::vector<float>(512 * 512, 3)));
      in.push_back(upload<int32_t>(client.get(), COLLET_TYPE_S32, {}, {0}));
      collet_execute_options options{};
      options.keep_donated = keep;
      const auto out = run(e.get(), in, options);
      ASSERT_EQ(out.size(), 2u) << failure.message;
      EXPECT_THAT(download<float>(out[0]), Each(4));
      EXPECT_THAT(download<float>(out[1]), Each(12));
    }
  }
}

TEST_F(Run, TheSameBufferTwiceIsNotOverwritten) {
  const ClientPtr client = open("interpreter");
  const ExecutablePtr e = compile(client.get(), kDonates);
  const BufferPtr x = upload<float>(client.get(), COLLET_TYPE_F32, {4}, {1, 2, 3, 4});
  collet_buffer* in[] = {x.get(), x.get()};
  collet_buffer* out = nullptr;
  ASSERT_EQ(collet_execute(e.get(), nullptr, in, &out, nullptr), COLLET_OK);
  EXPECT_THAT(download<float>(BufferPtr(out)), ElementsAre(2, 4, 6, 8));
}

TEST_F(Run, ReshapesArgumentsIfAsked) {
  const ClientPtr client = open("interpreter");
  const ExecutablePtr e = compile(client.get(), kDonates);
  std::vector<BufferPtr> in;
  in.push_back(upload<float>(client.get(), COLLET_TYPE_F32, {1, 4}, {1, 2, 3, 4}));  // donated
  in.push_back(upload<float>(client.get(), COLLET_TYPE_F32, {2, 2}, {10, 20, 30, 40}));
  collet_execute_options options{};
  options.reshape_arguments = 1;
  const auto out = run(e.get(), in, options);
  ASSERT_EQ(out.size(), 1u) << failure.message;
  EXPECT_EQ(collet_buffer_type(out[0].get()).rank, 1u);
  EXPECT_THAT(download<float>(out[0]), ElementsAre(11, 22, 33, 44));
  EXPECT_EQ(collet_buffer_is_deleted(in[0].get()), 1u);

  in[0] = upload<float>(client.get(), COLLET_TYPE_F32, {3}, {1, 2, 3});
  EXPECT_TRUE(run(e.get(), in, options).empty());
  EXPECT_THAT(failure.message, HasSubstr("argument 0 is f32[3], but the program takes f32[4]"));
  in[0] = upload<int32_t>(client.get(), COLLET_TYPE_S32, {4}, {1, 2, 3, 4});
  EXPECT_TRUE(run(e.get(), in, options).empty());
  EXPECT_THAT(failure.message, HasSubstr("argument 0 is s32[4], but the program takes f32[4]"));
}

TEST_F(Run, RefusesWrongArguments) {
  const ClientPtr client = open("interpreter");
  const ExecutablePtr e = compile(client.get(), kDonates);
  std::vector<BufferPtr> in;
  in.push_back(upload<float>(client.get(), COLLET_TYPE_F32, {4}, {1, 2, 3, 4}));
  in.push_back(upload<float>(client.get(), COLLET_TYPE_F32, {2, 2}, {1, 2, 3, 4}));
  EXPECT_TRUE(run(e.get(), in).empty());
  EXPECT_EQ(failure.code, COLLET_INVALID_ARGUMENT);
  EXPECT_THAT(failure.message, HasSubstr("argument 1 is f32[2,2], but the program takes f32[4]"));
  EXPECT_EQ(collet_buffer_is_deleted(in[0].get()), 0u);
  in[1].reset();
  EXPECT_TRUE(run(e.get(), in).empty());
  EXPECT_THAT(failure.message, HasSubstr("missing"));
}

TEST_F(Run, TakesLargeComplexConstantsWhole) {
  std::string numbers;
  for (int i = 0; i < 400; ++i) numbers += (i ? ", (" : "(") + std::to_string(i) + ", 1)";
  const ClientPtr client = open("interpreter", nullptr);
  const ExecutablePtr e = compile(
      client.get(), "HloModule m\nENTRY e { c = c128[400] constant({" + numbers + "}) ROOT r = f64[400] real(c) }");
  ASSERT_TRUE(e) << failure.message;
  const auto results = run(e.get(), {});
  ASSERT_EQ(results.size(), 1u) << failure.message;
  EXPECT_EQ(download<double>(results[0])[399], 399);
}

TEST_F(Run, ResultsMayBeArgumentsConstantsAndTwins) {
  for (const std::string& backend : {std::string("interpreter"), test_backend("remote"), test_backend("memory_only")}) {
    const ClientPtr client = open(backend);
    const ExecutablePtr e = compile(client.get(), R"(HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  c = f32[2] constant({7, 8})
  s = f32[2] add(x, x)
  ROOT t = (f32[2], f32[2], f32[2], f32[2], f32[2]) tuple(x, c, s, s, c)
})");
    ASSERT_TRUE(e) << failure.message;
    std::vector<BufferPtr> in;
    in.push_back(upload<float>(client.get(), COLLET_TYPE_F32, {2}, {1, 2}));
    auto out = run(e.get(), in);
    ASSERT_EQ(out.size(), 5u) << failure.message;
    in.clear();
    EXPECT_THAT(download<float>(out[0]), ElementsAre(1, 2)) << backend;
    EXPECT_THAT(download<float>(out[1]), ElementsAre(7, 8)) << backend;
    EXPECT_THAT(download<float>(out[2]), ElementsAre(2, 4)) << backend;
    EXPECT_THAT(download<float>(out[3]), ElementsAre(2, 4)) << backend;
    EXPECT_THAT(download<float>(out[4]), ElementsAre(7, 8)) << backend;
  }
}

TEST_F(Run, ReadsStridedHostArrays) {
  const ClientPtr client = open("interpreter");
  const float data[] = {1, 2, 3, 4, 5, 6};
  const int64_t dims[] = {3, 2}, strides[] = {4, 12};
  collet_host_array a{};
  a.struct_size = sizeof a;
  a.element = COLLET_TYPE_F32;
  a.rank = 2;
  a.dims = dims;
  a.byte_strides = strides;
  a.data = data;
  int done = 0;
  a.user = &done;
  a.done = [](void* user) { ++*static_cast<int*>(user); };
  collet_buffer* raw = nullptr;
  ASSERT_EQ(collet_buffer_from_host(client.get(), 0, COLLET_NONE, &a, &raw, nullptr), COLLET_OK);
  const BufferPtr b(raw);
  EXPECT_THAT(download<float>(b), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_EQ(done, 1);
  float part[2];
  ASSERT_EQ(collet_buffer_to_host_range(b.get(), 8, 8, part, nullptr, nullptr), COLLET_OK);
  EXPECT_THAT(part, ElementsAre(2, 5));
  EXPECT_EQ(collet_buffer_to_host_range(b.get(), 20, 8, part, nullptr, nullptr), COLLET_OUT_OF_RANGE);
}

TEST_F(Run, EmptyArraysAndScalarsWork) {
  const ClientPtr client = open("interpreter");
  const ExecutablePtr e = compile(client.get(), R"(HloModule m
ENTRY e {
  x = f32[0,3] parameter(0)
  y = f32[] parameter(1)
  s = f32[0,3] add(x, x)
  z = f32[] add(y, y)
  ROOT t = (f32[0,3], f32[]) tuple(s, z)
})");
  ASSERT_TRUE(e) << failure.message;
  std::vector<BufferPtr> in;
  in.push_back(upload<float>(client.get(), COLLET_TYPE_F32, {0, 3}, {}));
  in.push_back(upload<float>(client.get(), COLLET_TYPE_F32, {}, {21}));
  auto out = run(e.get(), in);
  ASSERT_EQ(out.size(), 2u) << failure.message;
  EXPECT_TRUE(download<float>(out[0]).empty());
  EXPECT_THAT(download<float>(out[1]), ElementsAre(42));
}

TEST_F(Run, DeletedBuffersSaySo) {
  const ClientPtr client = open("interpreter");
  const BufferPtr x = upload<float>(client.get(), COLLET_TYPE_F32, {2}, {1, 2});
  collet_buffer_delete(x.get());
  EXPECT_EQ(collet_buffer_is_deleted(x.get()), 1u);
  download<float>(x);
  EXPECT_EQ(failure.code, COLLET_FAILED_PRECONDITION);
}

TEST_F(Run, BuffersComeAndGo) {
  const ClientPtr client = open("interpreter");
  const std::vector<float> data(100, 1.0f);
  for (int i = 0; i < 100000; ++i) ASSERT_TRUE(upload(client.get(), COLLET_TYPE_F32, {100}, data));
  collet_client_device_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(collet_client_device_info_get(client.get(), 0, &info, nullptr), COLLET_OK);
  EXPECT_EQ(info.bytes_in_use, 0u);
  EXPECT_LE(info.peak_bytes, 1024u);
}

// Long runs are done by a worker; their results and failures come later.
TEST_F(Run, LongWorkIsAsynchronous) {
  Control control;
  const ClientPtr client = open(test_backend("wrapper"), "none", &control);
  const ExecutablePtr e = compile(client.get(), kDonates);
  ASSERT_TRUE(e) << failure.message;
  control.delay_ns = 30000000;
  collet_execute_options options{};
  options.keep_donated = 1;
  auto in = two_vectors(client.get());
  run(e.get(), in, options);  // the library measures that the run takes long
  std::vector<std::vector<BufferPtr>> outs;
  for (int i = 0; i < 3; ++i) {
    auto out = run(e.get(), in, options);
    ASSERT_EQ(out.size(), 1u);
    outs.push_back(std::move(out));
  }
  const EventPtr last(collet_buffer_ready(outs[2][0].get()));
  EXPECT_EQ(collet_event_is_ready(last.get()), 0u);
  in.clear();  // still in use by queued work
  // Uses results that are not complete yet as arguments.
  std::vector<BufferPtr> chain;
  chain.push_back(std::move(outs[1][0]));
  chain.push_back(std::move(outs[2][0]));
  auto sum = run(e.get(), chain, options);
  ASSERT_EQ(sum.size(), 1u) << failure.message;
  EXPECT_THAT(download<float>(sum[0]), ElementsAre(22, 44, 66, 88));
  EXPECT_EQ(collet_event_wait(last.get(), nullptr), COLLET_OK);
}

TEST_F(Run, FailuresOfQueuedWorkTravel) {
  Control control;
  const ClientPtr client = open(test_backend("wrapper"), "none", &control);
  const ExecutablePtr e = compile(client.get(), kDonates);
  control.delay_ns = 20000000;
  collet_execute_options options{};
  options.keep_donated = 1;
  auto in = two_vectors(client.get());
  run(e.get(), in, options);
  control.counted = kExecute;
  control.fail_at = 0;
  auto first = run(e.get(), in, options);
  ASSERT_EQ(first.size(), 1u) << failure.message;
  std::vector<BufferPtr> chain;
  chain.push_back(std::move(first[0]));
  chain.push_back(std::move(in[1]));
  auto second = run(e.get(), chain, options);
  if (!second.empty()) download<float>(second[0]);
  EXPECT_EQ(failure.code, COLLET_INTERNAL);
  EXPECT_THAT(failure.message, HasSubstr("injected: execute failed"));
  EXPECT_THAT(failure.message, HasSubstr("wrapped_interpreter"));
}

TEST_F(Run, ParticipantsRunTogether) {
  const ClientPtr client = open("interpreter", nullptr, nullptr, 2);
  ASSERT_TRUE(client) << failure.message;
  const ModulePtr module = read("HloModule r, replica_count=2\n" + combiner("sum", "add", "f32") + R"(ENTRY e {
  x = f32[2] parameter(0)
  ROOT s = f32[2] all-reduce(x), replica_groups={}, to_apply=sum
})");
  ASSERT_TRUE(module) << failure.message;
  const ExecutablePtr e = compile(client.get(), module.get());
  ASSERT_TRUE(e) << failure.message;
  const int64_t dims[] = {2};
  const float one[] = {1, 2}, two[] = {10, 20};
  std::vector<BufferPtr> in;
  in.push_back(upload(client.get(), {COLLET_TYPE_F32, 1, dims}, one, 0));
  in.push_back(upload(client.get(), {COLLET_TYPE_F32, 1, dims}, two, 1));
  auto out = run(e.get(), in);
  ASSERT_EQ(out.size(), 2u) << failure.message;
  EXPECT_THAT(download<float>(out[0]), ElementsAre(11, 22));
  EXPECT_THAT(download<float>(out[1]), ElementsAre(11, 22));
}

TEST_F(Run, ParticipantsRunApart) {
  Control control;
  control.remove_traits = COLLET_TRAIT_COLLECTIVES;
  const ClientPtr client = open(test_backend("wrapper"), "interpreter", &control, 2);
  const ExecutablePtr e = compile(client.get(), R"(HloModule r, replica_count=2
ENTRY e {
  x = u32[] parameter(0)
  r = u32[] replica-id()
  ROOT s = u32[] add(x, r)
})");
  ASSERT_TRUE(e) << failure.message;
  const uint32_t x = 40;
  std::vector<BufferPtr> in;
  in.push_back(upload(client.get(), {COLLET_TYPE_U32, 0, nullptr}, &x, 0));
  in.push_back(upload(client.get(), {COLLET_TYPE_U32, 0, nullptr}, &x, 1));
  auto out = run(e.get(), in);
  ASSERT_EQ(out.size(), 2u) << failure.message;
  EXPECT_THAT(download<uint32_t>(out[0]), ElementsAre(40));
  EXPECT_THAT(download<uint32_t>(out[1]), ElementsAre(41));
}

}  // namespace
}  // namespace collet::testing
