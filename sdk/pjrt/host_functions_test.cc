// SPDX-License-Identifier: Apache-2.0
// Tests when programs run that call host functions.
#include "sdk/pjrt/host_functions.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <thread>

#include "sdk/pjrt/testing/plugin.h"

namespace collet::pjrt {
namespace {

using namespace collet::pjrt::testing;
using ::testing::HasSubstr;

constexpr char kCalls[] = R"(
  module @calls {
    func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = stablehlo.custom_call @test_call(%x) : (tensor<2xf32>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    }
  })";

/// Behaviour of the host function.
struct Behaviour {
  std::atomic<int> called{0};
  std::shared_future<void> until;  ///< the function waits for it, if it is valid
  bool fails = false;

  static collet_status call(void* user, const collet_host_call* call, collet_error* error) {
    auto& self = *static_cast<Behaviour*>(user);
    if (self.until.valid()) self.until.wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ++self.called;
    for (int i = 0; i < 2; ++i) static_cast<float*>(call->results[0])[i] = 1;
    if (!self.fails) return COLLET_OK;
    std::snprintf(error->message, sizeof error->message, "boom");
    return error->code = COLLET_INTERNAL;
  }
};

class HostCallsTest : public Plugin {
 protected:
  void SetUp() override {
    Plugin::SetUp();
    ASSERT_EQ(host_functions_of_library().add("test_call", &behaviour, &Behaviour::call), 0);
    expect_ok(compile(kCalls, "mlir", "", &executable));
    in = upload(data, {2});
  }

  void TearDown() override {
    destroy(in);
    destroy_executable(executable);
    Plugin::TearDown();
    const HostFunctionsExtension& functions = host_functions_of_library();
    functions.remove("test_call");
    void* user = nullptr;
    EXPECT_EQ(functions.take_unused(&user), 1);
  }

  float data[2] = {1, 2};
  Behaviour behaviour;
  PJRT_LoadedExecutable* executable = nullptr;
  PJRT_Buffer* in = nullptr;
};

// As on JAX's own cpu backend, the output of a callback comes before the next output of the caller.
TEST_F(HostCallsTest, ByDefault_RunsAreOverWhenTheCallReturns) {
  PJRT_Buffer* out = nullptr;
  expect_ok(run(executable, in, &out));
  EXPECT_EQ(behaviour.called, 1);
  destroy(out);
}

TEST_F(HostCallsTest, ByDefault_ErrorsAreTheCalls) {
  behaviour.fails = true;
  PJRT_Buffer* out = nullptr;
  const auto [code, message] = outcome(run(executable, in, &out));
  EXPECT_EQ(code, PJRT_Error_Code_INTERNAL);
  EXPECT_THAT(message, HasSubstr("boom"));
}

class QueuedHostCalls : public HostCallsTest {
 protected:
  QueuedHostCalls() { more_options.emplace_back("host_calls", "queue"); }
};

TEST_F(QueuedHostCalls, RunsAreOverInTheirTurn) {
  PJRT_Buffer *first = nullptr, *second = nullptr;
  expect_ok(run(executable, in, &first));  // from now on it is known that the program takes long
  EXPECT_EQ(download(first), (std::vector<float>{1, 1}));
  std::promise<void> go;
  behaviour.until = go.get_future().share();
  expect_ok(run(executable, in, &second));  // it would never return if it waited for the run
  EXPECT_EQ(behaviour.called, 1);
  go.set_value();
  EXPECT_EQ(download(second), (std::vector<float>{1, 1}));
  EXPECT_EQ(behaviour.called, 2);
  for (PJRT_Buffer* out : {first, second}) destroy(out);
}

TEST(HostCallsOption, OtherWordsAreRefused) {
  auto create = args_of<PJRT_Client_Create_Args>();
  setenv("COLLET_HOST_CALLS", "never", 1);
  const auto [code, message] = outcome(api()->PJRT_Client_Create(&create));
  unsetenv("COLLET_HOST_CALLS");
  EXPECT_EQ(code, PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_THAT(message, HasSubstr("COLLET_HOST_CALLS"));
}

}  // namespace
}  // namespace collet::pjrt
