// SPDX-License-Identifier: Apache-2.0
#include <collet/collet.h>
#include <gmock/gmock.h>

#include <mutex>
#include <string>
#include <vector>

#include "sdk/runtime/testing/session.h"

// Tests the records that collet_trace returns for a compilation and a run.

namespace collet::testing {
namespace {

struct Heard {
  uint32_t kind;
  std::string name;
  uint64_t start_ns, end_ns, bytes, run_id;
  uint32_t device;
};

struct Listener {
  std::mutex mutex;
  std::vector<Heard> all;

  static void hear(void* user, const collet_span* span) {
    auto* self = static_cast<Listener*>(user);
    const std::lock_guard lock(self->mutex);
    self->all.push_back({span->kind, span->name, span->start_ns, span->start_ns + span->duration_ns, span->bytes,
                         span->run_id, span->device});
  }
  const Heard* first(uint32_t kind) const {
    for (const Heard& h : all)
      if (h.kind == kind) return &h;
    return nullptr;
  }
};

class Trace : public ::testing::Test, public Session {};

TEST_F(Trace, TellsOfCompilationRunLaunchAndCopies) {
  const ClientPtr client = open("interpreter");
  Listener listener;
  collet_trace(Listener::hear, &listener);
  const ExecutablePtr sum = compile(client.get(), R"(HloModule adding
ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] multiply(x, x)
  ROOT s = f32[4] add(y, x)
})");
  std::vector<BufferPtr> arguments;
  arguments.push_back(upload<float>(client.get(), COLLET_TYPE_F32, {4}, {1, 2, 3, 4}));
  const std::vector<BufferPtr> results = run(sum.get(), arguments);
  EXPECT_THAT(download<float>(results[0]), ::testing::ElementsAre(2, 6, 12, 20));
  collet_trace(nullptr, nullptr);

  const size_t heard = listener.all.size();
  const Heard* compiled = listener.first(COLLET_SPAN_COMPILE);
  const Heard* ran = listener.first(COLLET_SPAN_RUN);
  const Heard* launch = listener.first(COLLET_SPAN_LAUNCH);
  ASSERT_TRUE(compiled && ran && launch);
  EXPECT_EQ(compiled->name, "adding");
  EXPECT_EQ(ran->name, "adding");
  EXPECT_EQ(launch->name, "fusion") << "the costliest instruction";
  EXPECT_EQ(launch->run_id, ran->run_id);
  EXPECT_EQ(launch->device, 0u);
  EXPECT_LE(ran->start_ns, launch->start_ns);
  EXPECT_LE(launch->end_ns, ran->end_ns);

  run(sum.get(), arguments);
  EXPECT_EQ(listener.all.size(), heard) << "nobody listens any more";
}

}  // namespace
}  // namespace collet::testing
