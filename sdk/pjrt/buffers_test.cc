// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "sdk/pjrt/testing/plugin.h"

/// \file
/// Tests buffers with callers that use functions in unusual orders, or concurrently.

namespace collet::pjrt {
namespace {

using namespace testing;

constexpr const char* kDonating = R"(
module @next {
  func.func public @main(%x: tensor<1024xf32> {tf.aliasing_output = 0 : i32}) -> tensor<1024xf32> {
    %one = stablehlo.constant dense<1.0> : tensor<1024xf32>
    %y = stablehlo.add %x, %one : tensor<1024xf32>
    return %y : tensor<1024xf32>
  }
})";

class Buffers : public Plugin {
 protected:
  // Waits for the data of a buffer; returns code and message of the outcome.
  std::pair<int, std::string> ready(PJRT_Buffer* buffer) {
    auto args = args_of<PJRT_Buffer_ReadyEvent_Args>();
    args.buffer = buffer;
    expect_ok(api()->PJRT_Buffer_ReadyEvent(&args));
    auto wait = args_of<PJRT_Event_Await_Args>();
    wait.event = args.event;
    auto result = outcome(api()->PJRT_Event_Await(&wait));
    free_event(args.event);
    return result;
  }

  PJRT_Buffer* broken(std::vector<int64_t> dims) {
    auto args = args_of<PJRT_Client_CreateErrorBuffer_Args>();
    args.client = client;
    args.memory = memory();
    args.shape_dims = dims.data();
    args.shape_num_dims = dims.size();
    args.shape_element_type = PJRT_Buffer_Type_F32;
    args.error_code = PJRT_Error_Code_DATA_LOSS;
    args.error_message = "gone";
    args.error_message_size = 4;
    expect_ok(api()->PJRT_Client_CreateErrorBuffer(&args));
    return args.buffer;
  }

  struct Alias {
    PJRT_Buffer* buffer;
    PJRT_FulfillAliasBufferCallback* end;
  };
  Alias alias(std::vector<int64_t> dims) {
    auto args = args_of<PJRT_Client_CreateAliasBuffer_Args>();
    args.client = client;
    args.memory = memory();
    args.shape_dims = dims.data();
    args.shape_num_dims = dims.size();
    args.shape_element_type = PJRT_Buffer_Type_F32;
    expect_ok(api()->PJRT_Client_CreateAliasBuffer(&args));
    return {args.alias_buffer, args.fulfill_alias_buffer_cb};
  }
  PJRT_Error* fulfil(const Alias& alias, PJRT_Buffer* source) {
    auto args = args_of<PJRT_Client_FulfillAliasBuffer_Args>();
    args.client = client;
    args.buffer = source;
    args.fulfill_alias_buffer_cb = alias.end;
    return api()->PJRT_Client_FulfillAliasBuffer(&args);
  }

  void erase(PJRT_Buffer* buffer) {
    auto args = args_of<PJRT_Buffer_Delete_Args>();
    args.buffer = buffer;
    expect_ok(api()->PJRT_Buffer_Delete(&args));
  }

  PJRT_AsyncHostToDeviceTransferManager* manager(const std::vector<int64_t>& dims,
                                                 PJRT_Buffer_MemoryLayout* layout = nullptr, int want = 0) {
    PJRT_ShapeSpec spec{};
    spec.struct_size = sizeof spec;
    spec.dims = dims.data();
    spec.num_dims = dims.size();
    spec.element_type = PJRT_Buffer_Type_F32;
    auto args = args_of<PJRT_Client_CreateBuffersForAsyncHostToDevice_Args>();
    args.client = client;
    args.shape_specs = &spec;
    args.num_shape_specs = 1;
    args.device_layouts = &layout;
    args.num_device_layouts = 1;
    args.memory = memory();
    EXPECT_EQ(outcome(api()->PJRT_Client_CreateBuffersForAsyncHostToDevice(&args)).first, want);
    return args.transfer_manager;
  }
  PJRT_Buffer* retrieve(PJRT_AsyncHostToDeviceTransferManager* manager) {
    auto args = args_of<PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args>();
    args.transfer_manager = manager;
    expect_ok(api()->PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer(&args));
    return args.buffer_out;
  }
  void destroy_manager(PJRT_AsyncHostToDeviceTransferManager* manager) {
    auto args = args_of<PJRT_AsyncHostToDeviceTransferManager_Destroy_Args>();
    args.transfer_manager = manager;
    expect_ok(api()->PJRT_AsyncHostToDeviceTransferManager_Destroy(&args));
  }
};

struct Layout {
  std::vector<int64_t> numbers;
  PJRT_Buffer_MemoryLayout layout{};
};

Layout order(std::vector<int64_t> minor_to_major) {
  Layout out{std::move(minor_to_major)};
  out.layout = tiled_layout(out.numbers);
  return out;
}

Layout strides(std::vector<int64_t> byte_strides) {
  Layout out{std::move(byte_strides)};
  out.layout.struct_size = sizeof out.layout;
  out.layout.type = PJRT_Buffer_MemoryLayout_Type_Strides;
  out.layout.strides.struct_size = sizeof out.layout.strides;
  out.layout.strides.byte_strides = out.numbers.data();
  out.layout.strides.num_byte_strides = out.numbers.size();
  return out;
}

TEST_F(Buffers, AnAliasOfWhatFailedFails) {
  const Alias of_failed = alias({2});
  PJRT_Buffer* source = broken({2});
  expect_ok(fulfil(of_failed, source));
  const auto [code, message] = ready(of_failed.buffer);
  EXPECT_EQ(code, PJRT_Error_Code_DATA_LOSS);
  EXPECT_NE(message.find("gone"), std::string::npos) << message;
  destroy(of_failed.buffer);
  destroy(source);

  const Alias of_nothing = alias({2});
  EXPECT_EQ(outcome(fulfil(of_nothing, nullptr)).first, PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_EQ(ready(of_nothing.buffer).first, PJRT_Error_Code_INVALID_ARGUMENT);
  destroy(of_nothing.buffer);

  const float data[3] = {};
  PJRT_Buffer* other = upload(data, {3});
  const Alias of_other = alias({2});
  EXPECT_EQ(outcome(fulfil(of_other, other)).first, PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_EQ(ready(of_other.buffer).first, PJRT_Error_Code_INVALID_ARGUMENT);
  destroy(of_other.buffer);
  destroy(other);
}

TEST_F(Buffers, ADonationThatFailsSaysSo) {
  const auto donate = [&](PJRT_Buffer* buffer, bool erase_it) {
    auto args = args_of<PJRT_Buffer_DonateWithControlDependency_Args>();
    args.buffer = buffer;
    expect_ok(api()->PJRT_Buffer_DonateWithControlDependency(&args));
    if (erase_it) erase(buffer);
    PJRT_Buffer_DonateWithControlDependency_Callback_Args come{};
    come.struct_size = sizeof come;
    come.callback_data = args.callback_data;
    args.dependency_ready_callback(&come);
    return args.out_buffer;
  };
  PJRT_Buffer* source = broken({2});
  PJRT_Buffer* later = donate(source, false);
  EXPECT_EQ(ready(later).first, PJRT_Error_Code_DATA_LOSS);
  destroy(later);
  destroy(source);

  // A donated buffer counts as deleted.
  const float data[] = {3, 4};
  source = upload(data, {2});
  later = donate(source, true);
  EXPECT_EQ(ready(later).first, PJRT_Error_Code_OK);
  EXPECT_EQ(download(later), (std::vector<float>{3, 4}));
  destroy(later);
  destroy(source);
}

// XLA's client ends the process if the call fails.
TEST_F(Buffers, TheEventOfADeletedBufferFails) {
  const std::vector<float> data(8, 1);
  PJRT_Buffer* const x = upload(data.data(), {8});
  auto erase = args_of<PJRT_Buffer_Delete_Args>();
  erase.buffer = x;
  expect_ok(api()->PJRT_Buffer_Delete(&erase));
  const auto [code, message] = ready(x);
  EXPECT_EQ(code, PJRT_Error_Code_FAILED_PRECONDITION);
  EXPECT_NE(message.find("deleted"), std::string::npos) << message;
  destroy(x);
}

TEST_F(Buffers, ATransferThatNobodyEndsIsCancelled) {
  PJRT_AsyncHostToDeviceTransferManager* transfers = manager({4});
  PJRT_Buffer* buffer = retrieve(transfers);
  destroy_manager(transfers);
  EXPECT_EQ(ready(buffer).first, PJRT_Error_Code_CANCELLED);
  destroy(buffer);
}

TEST_F(Buffers, ABitcastHasDataOfItsOwn) {
  constexpr int64_t kCount = 1 << 18;  // so large that an upload need not be done during the call
  std::vector<float> data(kCount), others(kCount, -1);
  std::iota(data.begin(), data.end(), 0.f);
  for (int i = 0; i < 8; ++i) {
    PJRT_Buffer* buffer = upload(data.data(), {kCount});
    const int64_t dims[] = {kCount / 2, 2};
    auto cast = args_of<PJRT_Buffer_Bitcast_Args>();
    cast.buffer = buffer;
    cast.element_type = PJRT_Buffer_Type_S32;
    cast.dims = dims;
    cast.num_dims = 2;
    expect_ok(api()->PJRT_Buffer_Bitcast(&cast));
    erase(buffer);
    PJRT_Buffer* next = upload(others.data(), {kCount});  // uses the memory that was freed
    EXPECT_EQ(download(cast.out_buffer), data);
    destroy(next);
    destroy(cast.out_buffer);
    destroy(buffer);
  }
}

// Callers of version 0.114 have types that this library does not have.
TEST_F(Buffers, TypesOfNewerCallersAreRefused) {
  const char data[] = {1, 2, 3, 4, 5, 6};
  const int64_t dims[] = {4};
  auto args = args_of<PJRT_Client_BufferFromHostBuffer_Args>();
  args.client = client;
  args.data = data;
  args.dims = dims;
  args.num_dims = 1;
  args.device = device;
  for (const int type :
       {static_cast<int>(PJRT_Buffer_Type_F6E2M3FN), static_cast<int>(PJRT_Buffer_Type_F6E3M2FN), 99}) {
    args.type = static_cast<PJRT_Buffer_Type>(type);
    EXPECT_EQ(outcome(api()->PJRT_Client_BufferFromHostBuffer(&args)).first, PJRT_Error_Code_UNIMPLEMENTED) << type;
  }
}

TEST_F(Buffers, StridedReadsStayInTheirPlace) {
  const float data[] = {1, 2, 3, 4, 5, 6};
  PJRT_Buffer* buffer = upload(data, {2, 3});
  std::vector<float> out(16, -1);
  auto read = args_of<PJRT_Buffer_ToHostBuffer_Args>();
  read.src = buffer;
  const auto try_it = [&](Layout layout, size_t size) {
    read.host_layout = &layout.layout;
    read.dst = out.data();
    read.dst_size = size;
    PJRT_Error* error = api()->PJRT_Buffer_ToHostBuffer(&read);
    if (!error) await(read.event);
    return outcome(error).first;
  };
  EXPECT_EQ(try_it(strides({1 << 20, 4}), 24), PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_EQ(try_it(strides({-12, 4}), 64), PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_EQ(try_it(strides({INT64_MAX, INT64_MAX}), 64), PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_EQ(try_it(strides({4}), 64), PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_EQ(try_it(strides({20, 4}), 31), PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_EQ(out, std::vector<float>(16, -1));
  EXPECT_EQ(try_it(strides({20, 4}), 32), PJRT_Error_Code_OK);
  EXPECT_EQ(std::vector<float>(out.begin(), out.begin() + 9), (std::vector<float>{1, 2, 3, -1, -1, 4, 5, 6, -1}));
  EXPECT_EQ(try_it(order({0, 1}), 24), PJRT_Error_Code_OK);
  EXPECT_EQ(std::vector<float>(out.begin(), out.begin() + 6), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  // The size of the array depends on the strides.
  Layout wide = strides({20, 4});
  read.host_layout = &wide.layout;
  read.dst = nullptr;
  read.dst_size = 0;
  expect_ok(api()->PJRT_Buffer_ToHostBuffer(&read));
  EXPECT_EQ(read.dst_size, 32u);
  destroy(buffer);
}

TEST_F(Buffers, AReorderedReadOfWhatIsNotThereYetDoesNotBlock) {
  const Alias later = alias({2, 2});
  std::vector<float> out(4);
  Layout columns = order({0, 1});
  auto read = args_of<PJRT_Buffer_ToHostBuffer_Args>();
  read.src = later.buffer;
  read.host_layout = &columns.layout;
  read.dst = out.data();
  read.dst_size = 16;
  expect_ok(api()->PJRT_Buffer_ToHostBuffer(&read));
  const float data[] = {1, 2, 3, 4};
  PJRT_Buffer* source = upload(data, {2, 2});
  expect_ok(fulfil(later, source));
  await(read.event);
  EXPECT_EQ(out, (std::vector<float>{1, 3, 2, 4}));
  destroy(source);
  destroy(later.buffer);
}

TEST_F(Buffers, LayoutsOfWhatComesAreLookedAt) {
  Layout columns = order({0, 1}), rows = order({1, 0}), wrong = order({1, 1});
  manager({2, 3}, &columns.layout, PJRT_Error_Code_UNIMPLEMENTED);
  manager({2, 3}, &wrong.layout, PJRT_Error_Code_INVALID_ARGUMENT);
  PJRT_AsyncHostToDeviceTransferManager* transfers = manager({2, 3}, &rows.layout);
  PJRT_Buffer* buffer = retrieve(transfers);
  const float data[] = {1, 4, 2, 5, 3, 6};
  const int64_t dims[] = {2, 3};
  auto literal = args_of<PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args>();
  literal.transfer_manager = transfers;
  literal.data = data;
  literal.shape_dims = dims;
  literal.shape_num_dims = 2;
  literal.shape_element_type = PJRT_Buffer_Type_F32;
  literal.shape_layout = &columns.layout;
  expect_ok(api()->PJRT_AsyncHostToDeviceTransferManager_TransferLiteral(&literal));
  await(literal.done_with_h2d_transfer);
  EXPECT_EQ(download(buffer), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  destroy_manager(transfers);

  auto cast = args_of<PJRT_Buffer_Bitcast_Args>();
  cast.buffer = buffer;
  cast.element_type = PJRT_Buffer_Type_S32;
  cast.dims = dims;
  cast.num_dims = 2;
  cast.device_layout = &columns.layout;
  EXPECT_EQ(outcome(api()->PJRT_Buffer_Bitcast(&cast)).first, PJRT_Error_Code_UNIMPLEMENTED);
  const int64_t negative[] = {-2, -3};
  cast.device_layout = nullptr;
  cast.dims = negative;
  EXPECT_EQ(outcome(api()->PJRT_Buffer_Bitcast(&cast)).first, PJRT_Error_Code_INVALID_ARGUMENT);
  destroy(buffer);
}

TEST_F(Buffers, AnEventMayGoAsSoonAsItHasCome) {
  for (int i = 0; i < 300; ++i) {
    auto create = args_of<PJRT_Event_Create_Args>();
    expect_ok(api()->PJRT_Event_Create(&create));
    std::thread waits([&] { await(create.event); });
    auto set = args_of<PJRT_Event_Set_Args>();
    set.event = create.event;
    expect_ok(api()->PJRT_Event_Set(&set));
    waits.join();
  }
}

TEST_F(Buffers, NobodyLooksAtDonatedData) {
  PJRT_LoadedExecutable* executable = nullptr;
  expect_ok(compile(kDonating, "mlir", "", &executable));
  const std::vector<float> data(1024, 5);
  int held = 0;
  for (int i = 0; i < 100; ++i) {
    PJRT_Buffer* in = upload(data.data(), {1024});
    std::atomic<bool> go{false};
    std::thread looks([&] {
      while (!go) std::this_thread::yield();
      auto hold = args_of<PJRT_Buffer_IncreaseExternalReferenceCount_Args>();
      hold.buffer = in;
      if (outcome(api()->PJRT_Buffer_IncreaseExternalReferenceCount(&hold)).first) return;  // it was donated earlier
      ++held;
      auto pointer = args_of<PJRT_Buffer_UnsafePointer_Args>();
      pointer.buffer = in;
      expect_ok(api()->PJRT_Buffer_UnsafePointer(&pointer));
      for (int k = 0; k < 100; ++k)
        EXPECT_EQ(reinterpret_cast<const volatile float*>(pointer.buffer_pointer)[k * 10], 5);
      auto drop = args_of<PJRT_Buffer_DecreaseExternalReferenceCount_Args>();
      drop.buffer = in;
      expect_ok(api()->PJRT_Buffer_DecreaseExternalReferenceCount(&drop));
    });
    go = true;
    PJRT_Buffer* out = nullptr;
    expect_ok(run(executable, in, &out));
    looks.join();
    EXPECT_EQ(download(out)[1023], 6);
    destroy(out);
    destroy(in);
  }
  RecordProperty("views", held);
  destroy_executable(executable);
}

TEST_F(Buffers, AViewKeepsAnArgumentFromBeingDonated) {
  PJRT_LoadedExecutable* executable = nullptr;
  expect_ok(compile(kDonating, "mlir", "", &executable));
  const std::vector<float> data(1024, 5);
  PJRT_Buffer* in = upload(data.data(), {1024});
  auto hold = args_of<PJRT_Buffer_IncreaseExternalReferenceCount_Args>();
  hold.buffer = in;
  expect_ok(api()->PJRT_Buffer_IncreaseExternalReferenceCount(&hold));
  PJRT_Buffer* out = nullptr;
  expect_ok(run(executable, in, &out));
  EXPECT_EQ(download(in), data);
  destroy(out);
  auto drop = args_of<PJRT_Buffer_DecreaseExternalReferenceCount_Args>();
  drop.buffer = in;
  expect_ok(api()->PJRT_Buffer_DecreaseExternalReferenceCount(&drop));
  expect_ok(run(executable, in, &out));
  EXPECT_EQ(outcome(api()->PJRT_Buffer_IncreaseExternalReferenceCount(&hold)).first,
            PJRT_Error_Code_FAILED_PRECONDITION);
  destroy(out);
  destroy(in);
  destroy_executable(executable);
}

TEST_F(Buffers, AWaitingRunKeepsTheFunctionsThatItCalls) {
  const HostFunctionsExtension& functions = host_functions_of_library();
  static int called, unused;
  called = 0;
  const auto negate = [](void* user, const collet_host_call* call, collet_error*) -> collet_status {
    ++*static_cast<int*>(user);
    for (int i = 0; i < 2; ++i)
      static_cast<float*>(call->results[0])[i] = -static_cast<const float*>(call->operands[0])[i];
    return COLLET_OK;
  };
  ASSERT_EQ(functions.add("test_negate", &called, negate), 0);
  ASSERT_EQ(functions.add("test_unused", &unused, negate), 0);
  PJRT_LoadedExecutable* executable = nullptr;
  expect_ok(compile(R"(
    module @calls {
      func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
        %y = stablehlo.custom_call @test_negate(%x) : (tensor<2xf32>) -> tensor<2xf32>
        return %y : tensor<2xf32>
      }
    })",
                    "mlir", "", &executable));
  ASSERT_NE(executable, nullptr);
  const Alias later = alias({2});
  PJRT_Buffer* out = nullptr;
  expect_ok(run(executable, later.buffer, &out));
  destroy_executable(executable);
  functions.remove("test_negate");
  void* user = nullptr;
  EXPECT_EQ(functions.take_unused(&user), 0);
  functions.remove("test_unused");
  EXPECT_EQ(functions.take_unused(&user), 1);
  EXPECT_EQ(user, &unused);
  const float data[] = {1, 2};
  PJRT_Buffer* source = upload(data, {2});
  expect_ok(fulfil(later, source));
  EXPECT_EQ(download(out), (std::vector<float>{-1, -2}));
  EXPECT_EQ(called, 1);
  for (int i = 0; i < 1000 && functions.take_unused(&user) == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(user, &called);
  EXPECT_EQ(functions.take_unused(&user), 0);
  for (PJRT_Buffer* buffer : {source, out, later.buffer}) destroy(buffer);
}

class HiddenMemory : public Plugin {
 protected:
  HiddenMemory() {
    const char* build = std::getenv("COLLET_BUILD_DIR");
    backend_name = std::string(build ? build : "build") + "/lib/collet/test_backends/libcollet_backend_memory_only.so";
  }

  uintptr_t address(PJRT_Buffer* buffer) {
    auto pointer = args_of<PJRT_Buffer_UnsafePointer_Args>();
    pointer.buffer = buffer;
    expect_ok(api()->PJRT_Buffer_UnsafePointer(&pointer));
    return pointer.buffer_pointer;
  }
};

TEST_F(HiddenMemory, HasAnAddressToCompareAndNoView) {
  const float data[2] = {7, 8};
  PJRT_Buffer *a = upload(data, {2}), *b = upload(data, {2});
  EXPECT_NE(address(a), 0u);
  EXPECT_EQ(address(a), address(a));
  EXPECT_NE(address(a), address(b));
  auto view = args_of<PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args>();
  view.buffer = a;
  EXPECT_EQ(outcome(api()->PJRT_Buffer_OpaqueDeviceMemoryDataPointer(&view)).first, PJRT_Error_Code_UNIMPLEMENTED);
  for (PJRT_Buffer* buffer : {a, b}) {
    auto destroy = args_of<PJRT_Buffer_Destroy_Args>();
    destroy.buffer = buffer;
    expect_ok(api()->PJRT_Buffer_Destroy(&destroy));
  }
}

}  // namespace
}  // namespace collet::pjrt
