// SPDX-License-Identifier: Apache-2.0
#include <collet/collet.h>
#include <collet/tables.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sdk/runtime/testing/queued.h"
#include "sdk/runtime/testing/session.h"

// Tests of the optional tables "profile", "host_memory" and "links", and of virtual devices, through the C API of collet.h.

namespace collet::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kSum[] = R"(HloModule sum
ENTRY e {
  x = f32[4] parameter(0)
  c = f32[4] constant({1, 2, 3, 4})
  ROOT s = f32[4] add(x, c)
})";

class OptionalTables : public ::testing::Test, public Session {
 protected:
  ClientPtr open_queued(uint32_t devices = 1) {
    return open(test_backend("queued"), "interpreter", &control_, devices);
  }
  // The instance is closed only when the last thread has released the client, so the test waits for that.
  void TearDown() override {
    control_.wait_until_closed();
    EXPECT_EQ(control_.instances.load(), 0);
  }
  QueueControl control_;
};

struct Heard {
  std::vector<std::string> names, engines;
  bool good = true;
  static void listen(void* user, const collet_span* span) {
    if (span->kind != COLLET_SPAN_DEVICE) return;
    auto* self = static_cast<Heard*>(user);
    self->names.emplace_back(span->name);
    self->engines.emplace_back(span->engine);
    self->good &= span->device == 0 && span->start_ns != 0;
  }
};

TEST_F(OptionalTables, WhatDevicesRecordReachesTheListener) {
  control_.profile = true;
  const ClientPtr client = open_queued();
  ASSERT_TRUE(client) << failure.message;
  const ExecutablePtr e = compile(client.get(), kSum);
  ASSERT_TRUE(e) << failure.message;
  const auto run_once = [&] {
    std::vector<BufferPtr> in;
    const float values[] = {1, 1, 1, 1};
    in.push_back(upload(client.get(), kVector, values));
    const auto out = run(e.get(), in);
    ASSERT_EQ(out.size(), 1u) << failure.message;
    EXPECT_THAT(download<float>(out[0]), ElementsAre(2, 3, 4, 5));
  };
  run_once();  // no trace listener is set
  Heard heard;
  collet_trace(Heard::listen, &heard);
  run_once();
  EXPECT_TRUE(heard.names.empty());
  collet_trace(nullptr, nullptr);
  EXPECT_EQ(heard.names.size(), 3u);
  EXPECT_TRUE(heard.good);
  for (const char* engine : {"upload", "compute", "download"}) EXPECT_THAT(heard.engines, Contains(engine));
  EXPECT_THAT(heard.names, Contains("an execution"));
  run_once();
  EXPECT_EQ(heard.names.size(), 3u);
}

// A client that is opened while a trace listener is set records its work, and passes the records to the listener when
// it is closed.
TEST_F(OptionalTables, RecordsAreHandedOutWhenTheClientCloses) {
  control_.profile = true;
  Heard heard;
  collet_trace(Heard::listen, &heard);
  {
    const ClientPtr client = open_queued();
    ASSERT_TRUE(client) << failure.message;
    const float values[] = {1, 1, 1, 1};
    EXPECT_EQ(download<float>(upload(client.get(), kVector, values)).size(), 4u);
  }
  EXPECT_THAT(heard.engines, ElementsAre("upload", "download"));
  collet_trace(nullptr, nullptr);
}

TEST_F(OptionalTables, HostMemoryIsRegistered) {
  control_.host_memory = true;
  std::vector<char> memory(4096);
  {
    const ClientPtr client = open_queued();
    ASSERT_TRUE(client) << failure.message;
    EXPECT_EQ(collet_client_register_host_memory(client.get(), memory.data(), 2048, nullptr), COLLET_OK);
    EXPECT_EQ(control_.registered.load(), 1);
    EXPECT_EQ(collet_client_register_host_memory(client.get(), memory.data() + 2047, 2, nullptr),
              COLLET_ALREADY_EXISTS);
    EXPECT_EQ(collet_client_register_host_memory(client.get(), memory.data() + 2048, 0, nullptr),
              COLLET_INVALID_ARGUMENT);
    EXPECT_EQ(collet_client_unregister_host_memory(client.get(), memory.data() + 1, nullptr), COLLET_NOT_FOUND);
    EXPECT_EQ(collet_client_unregister_host_memory(client.get(), memory.data(), nullptr), COLLET_OK);
    EXPECT_EQ(control_.registered.load(), 0);
  }
  control_.host_memory = false;
  const ClientPtr client = open_queued();
  collet_error error{};
  EXPECT_EQ(collet_client_register_host_memory(client.get(), memory.data(), 2048, &error), COLLET_UNIMPLEMENTED);
  EXPECT_THAT(error.message, HasSubstr("host_memory"));
}

TEST_F(OptionalTables, LinksAreDescribed) {
  for (const bool there : {true, false}) {
    control_.links = there;
    const ClientPtr client = open_queued(3);
    ASSERT_TRUE(client) << failure.message;
    collet_client_link link{};
    link.struct_size = sizeof link;
    EXPECT_EQ(collet_client_link_get(client.get(), 2, 0, &link, nullptr), COLLET_OK);
    EXPECT_EQ(link.hops, there ? 2u : 0u);
    EXPECT_EQ(link.latency_ns, there ? 1000 : 0);
    EXPECT_EQ(link.bytes_per_ns, there ? 10 : 0);
    EXPECT_EQ(collet_client_link_get(client.get(), 1, 1, &link, nullptr), COLLET_INVALID_ARGUMENT);
    EXPECT_NE(collet_client_link_get(client.get(), 0, 3, &link, nullptr), COLLET_OK);
  }
}

// The program has a constant, an argument and a result. It compiles for a virtual device, and running it fails.
TEST_F(OptionalTables, VirtualDevicesCompileAndRunNothing) {
  control_.traits = COLLET_TRAIT_VIRTUAL;
  const ClientPtr client = open_queued();
  ASSERT_TRUE(client) << failure.message;
  const ExecutablePtr e = compile(client.get(), kSum);
  ASSERT_TRUE(e) << failure.message;
  EXPECT_EQ(control_.buffers.load(), 0);
  const float values[] = {1, 1, 1, 1};
  EXPECT_FALSE(upload(client.get(), kVector, values));
  EXPECT_EQ(failure.code, COLLET_FAILED_PRECONDITION);
  EXPECT_THAT(failure.message, HasSubstr("virtual"));
  collet_execute_options options{};
  options.struct_size = sizeof options;
  collet_buffer *argument = nullptr, *result = nullptr;
  EXPECT_EQ(collet_execute(e.get(), &options, &argument, &result, nullptr), COLLET_FAILED_PRECONDITION);
}

}  // namespace
}  // namespace collet::testing
