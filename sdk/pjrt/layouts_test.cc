// SPDX-License-Identifier: Apache-2.0
// Tests layouts that a frontend requests: they are reported again, and determine the order of data that are copied to
// the host.
#include "sdk/pjrt/layouts.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "sdk/pjrt/testing/plugin.h"

namespace collet::pjrt {
namespace {

using namespace collet::pjrt::testing;
using Order = std::vector<int64_t>;

constexpr char kDoubleInColumns[] = R"(
  module @twice {
    func.func public @main(%x: tensor<2x3xf32> {mhlo.layout_mode = "default"})
        -> (tensor<2x3xf32> {mhlo.layout_mode = "{0,1}"}) {
      %y = stablehlo.add %x, %x : tensor<2x3xf32>
      return %y : tensor<2x3xf32>
    }
  })";

const PJRT_Layouts_Extension& layouts_of_library() {
  const PJRT_Extension_Base* extension = api()->extension_start;
  while (extension->type != PJRT_Extension_Type_Layouts) extension = extension->next;
  return *reinterpret_cast<const PJRT_Layouts_Extension*>(extension);
}

class LayoutsTest : public Plugin {
 protected:
  std::string text_of(PJRT_Layouts_MemoryLayout* layout) {
    auto args = args_of<PJRT_Layouts_MemoryLayout_Serialize_Args>();
    args.layout = layout;
    expect_ok(layouts_of_library().Layouts_MemoryLayout_Serialize(&args));
    std::string text(args.serialized_bytes, args.serialized_bytes_size);
    args.serialized_layout_deleter(args.serialized_layout);
    return text;
  }

  std::string text_of(PJRT_Buffer* buffer) {
    auto args = args_of<PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args>();
    args.buffer = buffer;
    expect_ok(layouts_of_library().Layouts_PJRT_Buffer_MemoryLayout(&args));
    return text_of(args.layout);
  }

  // Returns the elements in the order of the buffer's layout.
  Order order_of(PJRT_Buffer* buffer) {
    auto args = args_of<PJRT_Buffer_GetMemoryLayout_Args>();
    args.buffer = buffer;
    expect_ok(api()->PJRT_Buffer_GetMemoryLayout(&args));
    return {args.layout.tiled.minor_to_major, args.layout.tiled.minor_to_major + args.layout.tiled.minor_to_major_size};
  }

  PJRT_Buffer* upload_as(const float* from_host, const Order& dims, const Order& order, int want = 0) {
    PJRT_Buffer_MemoryLayout layout = tiled_layout(order);
    auto from = args_of<PJRT_Client_BufferFromHostBuffer_Args>();
    from.client = client;
    from.data = from_host;
    from.type = PJRT_Buffer_Type_F32;
    from.dims = dims.data();
    from.num_dims = dims.size();
    from.device = device;
    from.device_layout = &layout;
    EXPECT_EQ(outcome(api()->PJRT_Client_BufferFromHostBuffer(&from)).first, want);
    if (want == PJRT_Error_Code_OK) await(from.done_with_host_buffer);
    return from.buffer;
  }

  const float data[6] = {1, 2, 3, 4, 5, 6};
};

TEST_F(LayoutsTest, Results_HaveTheLayoutThatTheProgramStates) {
  PJRT_LoadedExecutable* executable = nullptr;
  expect_ok(compile(kDoubleInColumns, "mlir", "", &executable));
  ASSERT_NE(executable, nullptr);
  auto get = args_of<PJRT_LoadedExecutable_GetExecutable_Args>();
  get.loaded_executable = executable;
  expect_ok(api()->PJRT_LoadedExecutable_GetExecutable(&get));
  auto outputs = args_of<PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args>();
  outputs.executable = get.executable;
  expect_ok(layouts_of_library().Layouts_PJRT_Executable_GetOutputLayouts(&outputs));
  ASSERT_EQ(outputs.num_outputs, 1u);
  EXPECT_EQ(text_of(outputs.layouts[0]), "{0,1}");
  auto parameters = args_of<PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args>();
  parameters.executable = get.executable;
  expect_ok(layouts_of_library().Layouts_PJRT_Executable_GetParameterLayouts(&parameters));
  ASSERT_EQ(parameters.num_parameters, 1u);
  EXPECT_EQ(text_of(parameters.layouts[0]), "{1,0}");
  auto drop = args_of<PJRT_Executable_Destroy_Args>();
  drop.executable = get.executable;
  expect_ok(api()->PJRT_Executable_Destroy(&drop));

  PJRT_Buffer *in = upload(data, {2, 3}), *out = nullptr;
  expect_ok(run(executable, in, &out));
  EXPECT_EQ(text_of(in), "{1,0}");
  EXPECT_EQ(text_of(out), "{0,1}");
  EXPECT_EQ(order_of(out), (Order{0, 1}));
  // If the host requests no layout, the array's own layout is used.
  EXPECT_EQ(download(out), (std::vector<float>{2, 8, 4, 10, 6, 12}));
  for (PJRT_Buffer* buffer : {in, out}) destroy(buffer);
  destroy_executable(executable);
}

TEST_F(LayoutsTest, ArraysOfTheHost_KeepTheLayoutThatTheyAreGiven) {
  PJRT_Buffer* columns = upload_as(data, {2, 3}, {0, 1});
  EXPECT_EQ(text_of(columns), "{0,1}");
  EXPECT_EQ(download(columns), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  auto copy = args_of<PJRT_Buffer_CopyToDevice_Args>();
  copy.buffer = columns;
  copy.dst_device = device;
  expect_ok(api()->PJRT_Buffer_CopyToDevice(&copy));
  EXPECT_EQ(text_of(copy.dst_buffer), "{0,1}");
  for (PJRT_Buffer* buffer : {columns, copy.dst_buffer}) destroy(buffer);
  upload_as(data, {2, 3}, {0, 0}, PJRT_Error_Code_INVALID_ARGUMENT);
}

// TensorFlow reshapes an array by itself, and reads it with a layout of the new rank.
TEST_F(LayoutsTest, RowMajorLayoutsOfAnotherRank_AreRead) {
  PJRT_Buffer* rows = upload(data, {2, 3});
  for (const Order& order : {Order{0}, Order{2, 1, 0}, Order{1, 0}}) {
    PJRT_Buffer_MemoryLayout layout = tiled_layout(order);
    std::vector<float> out(6);
    auto args = args_of<PJRT_Buffer_ToHostBuffer_Args>();
    args.src = rows;
    args.host_layout = &layout;
    args.dst = out.data();
    args.dst_size = 6 * sizeof(float);
    expect_ok(api()->PJRT_Buffer_ToHostBuffer(&args));
    await(args.event);
    EXPECT_EQ(out, (std::vector<float>{1, 2, 3, 4, 5, 6}));
  }
  PJRT_Buffer_MemoryLayout columns = tiled_layout({0, 1, 2});
  std::vector<float> out(6);
  auto args = args_of<PJRT_Buffer_ToHostBuffer_Args>();
  args.src = rows;
  args.host_layout = &columns;
  args.dst = out.data();
  args.dst_size = 6 * sizeof(float);
  EXPECT_EQ(outcome(api()->PJRT_Buffer_ToHostBuffer(&args)).first, PJRT_Error_Code_INVALID_ARGUMENT);
  destroy(rows);
}

// Raw data would not be in the order of the layout.
TEST_F(LayoutsTest, RawDataInAnotherLayout_AreNotShown) {
  PJRT_Buffer *columns = upload_as(data, {2, 3}, {0, 1}), *rows = upload_as(data, {2, 3}, {1, 0});
  for (PJRT_Buffer* buffer : {columns, rows}) {
    const int want = buffer == rows ? PJRT_Error_Code_OK : PJRT_Error_Code_UNIMPLEMENTED;
    auto pointer = args_of<PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args>();
    pointer.buffer = buffer;
    EXPECT_EQ(outcome(api()->PJRT_Buffer_OpaqueDeviceMemoryDataPointer(&pointer)).first, want);
    auto where = args_of<PJRT_Buffer_IsOnCpu_Args>();
    where.buffer = buffer;
    expect_ok(api()->PJRT_Buffer_IsOnCpu(&where));
    EXPECT_EQ(where.is_on_cpu, buffer == rows);
    float out[6];
    auto raw = args_of<PJRT_Buffer_CopyRawToHost_Args>();
    raw.buffer = buffer;
    raw.dst = out;
    raw.transfer_size = sizeof out;
    EXPECT_EQ(outcome(api()->PJRT_Buffer_CopyRawToHost(&raw)).first, want);
    if (want == PJRT_Error_Code_OK) await(raw.event);
  }
  for (PJRT_Buffer* buffer : {columns, rows}) destroy(buffer);
}

TEST_F(LayoutsTest, WhatIsNoOrderOfTheDimensions_IsRefused) {
  for (const char* layout : {"{0,0}", "{0}", "{0,2}", "{0,1", "{1,0:T(8,128)}", "{}"}) {
    std::string program = kDoubleInColumns;
    program.replace(program.find("{0,1}"), 5, layout);
    PJRT_LoadedExecutable* executable = nullptr;
    EXPECT_EQ(outcome(compile(program, "mlir", "", &executable)).first, PJRT_Error_Code_INVALID_ARGUMENT) << layout;
  }
}

}  // namespace
}  // namespace collet::pjrt
