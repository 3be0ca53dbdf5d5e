// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sdk/pjrt/testing/plugin.h"
#include "sdk/runtime/testing/session.h"

namespace collet::pjrt {
namespace {

using ::testing::HasSubstr;

using namespace testing;

// Results: the argument with as many rows as x[0][0] says, x itself, and its transpose with as many rows and x[0][1] columns.
constexpr const char* kCut = R"(
module @cut {
  func.func public @main(%x: tensor<4x3xf32>)
      -> (tensor<?x3xf32, #stablehlo.bounds<4, ?>>, tensor<4x3xf32>, tensor<?x?xf32, #stablehlo.bounds<3, 4>>) {
    %a = stablehlo.slice %x [0:1, 0:1] : (tensor<4x3xf32>) -> tensor<1x1xf32>
    %b = stablehlo.slice %x [0:1, 1:2] : (tensor<4x3xf32>) -> tensor<1x1xf32>
    %c = stablehlo.reshape %a : (tensor<1x1xf32>) -> tensor<f32>
    %d = stablehlo.reshape %b : (tensor<1x1xf32>) -> tensor<f32>
    %n = stablehlo.convert %c : (tensor<f32>) -> tensor<i32>
    %k = stablehlo.convert %d : (tensor<f32>) -> tensor<i32>
    %rows = stablehlo.set_dimension_size %x, %n, dim = 0
      : (tensor<4x3xf32>, tensor<i32>) -> tensor<?x3xf32, #stablehlo.bounds<4, ?>>
    %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
    %u = stablehlo.set_dimension_size %t, %k, dim = 0
      : (tensor<3x4xf32>, tensor<i32>) -> tensor<?x4xf32, #stablehlo.bounds<3, ?>>
    %v = stablehlo.set_dimension_size %u, %n, dim = 1
      : (tensor<?x4xf32, #stablehlo.bounds<3, ?>>, tensor<i32>) -> tensor<?x?xf32, #stablehlo.bounds<3, 4>>
    return %rows, %x, %v : tensor<?x3xf32, #stablehlo.bounds<4, ?>>, tensor<4x3xf32>, tensor<?x?xf32, #stablehlo.bounds<3, 4>>
  }
})";

class Sizes : public Plugin {
 protected:
  std::vector<int64_t> dims(PJRT_Buffer* buffer) {
    auto args = args_of<PJRT_Buffer_Dimensions_Args>();
    args.buffer = buffer;
    expect_ok(api()->PJRT_Buffer_Dimensions(&args));
    return {args.dims, args.dims + args.num_dims};
  }

  size_t outputs(PJRT_LoadedExecutable* loaded) {
    auto get = args_of<PJRT_LoadedExecutable_GetExecutable_Args>();
    get.loaded_executable = loaded;
    expect_ok(api()->PJRT_LoadedExecutable_GetExecutable(&get));
    auto count = args_of<PJRT_Executable_NumOutputs_Args>();
    count.executable = get.executable;
    expect_ok(api()->PJRT_Executable_NumOutputs(&count));
    auto destroy = args_of<PJRT_Executable_Destroy_Args>();
    destroy.executable = get.executable;
    expect_ok(api()->PJRT_Executable_Destroy(&destroy));
    return count.num_outputs;
  }

  // Writes the executable as bytes, destroys it, and loads it again.
  PJRT_LoadedExecutable* reload(PJRT_LoadedExecutable* loaded) {
    auto get = args_of<PJRT_LoadedExecutable_GetExecutable_Args>();
    get.loaded_executable = loaded;
    expect_ok(api()->PJRT_LoadedExecutable_GetExecutable(&get));
    auto write = args_of<PJRT_Executable_Serialize_Args>();
    write.executable = get.executable;
    expect_ok(api()->PJRT_Executable_Serialize(&write));
    destroy_executable(loaded);
    auto read = args_of<PJRT_Executable_DeserializeAndLoad_Args>();
    read.client = client;
    read.serialized_executable = write.serialized_bytes;
    read.serialized_executable_size = write.serialized_bytes_size;
    expect_ok(api()->PJRT_Executable_DeserializeAndLoad(&read));
    write.serialized_executable_deleter(write.serialized_executable);
    auto destroy = args_of<PJRT_Executable_Destroy_Args>();
    destroy.executable = get.executable;
    expect_ok(api()->PJRT_Executable_Destroy(&destroy));
    return read.loaded_executable;
  }

  void expect_real_sizes(PJRT_LoadedExecutable* executable) {
    EXPECT_EQ(outputs(executable), 3u);
    for (const auto& [n, k] : std::vector<std::pair<int64_t, int64_t>>{{2, 1}, {4, 3}, {0, 2}, {3, 0}}) {
      SCOPED_TRACE(std::to_string(n) + " and " + std::to_string(k));
      std::vector<float> x = {0, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
      x[0] = static_cast<float>(n), x[1] = static_cast<float>(k);
      PJRT_Buffer* in = upload(x.data(), {4, 3});
      PJRT_Buffer* out[3] = {};
      expect_ok(run(executable, in, out));
      ASSERT_NE(out[2], nullptr);
      EXPECT_EQ(dims(out[0]), (std::vector<int64_t>{n, 3}));
      EXPECT_EQ(dims(out[1]), (std::vector<int64_t>{4, 3}));
      EXPECT_EQ(dims(out[2]), (std::vector<int64_t>{k, n}));
      EXPECT_EQ(download(out[0]), std::vector<float>(x.begin(), x.begin() + 3 * n));
      EXPECT_EQ(download(out[1]), x);
      std::vector<float> transposed;
      for (int64_t j = 0; j < k; ++j)
        for (int64_t i = 0; i < n; ++i) transposed.push_back(x[static_cast<size_t>(3 * i + j)]);
      EXPECT_EQ(download(out[2]), transposed);
      for (PJRT_Buffer* buffer : {in, out[0], out[1], out[2]}) destroy(buffer);
    }
  }
};

class RealSizes : public Sizes {
 protected:
  RealSizes() { more_options.emplace_back("data_dependent_sizes", "real"); }
};

TEST_F(RealSizes, ResultsHaveTheSizesOfTheData) {
  PJRT_LoadedExecutable* executable = nullptr;
  expect_ok(compile(kCut, "mlir", "", &executable));
  expect_real_sizes(executable);
  executable = reload(executable);
  expect_real_sizes(executable);
  destroy_executable(executable);
}

TEST_F(RealSizes, OfAnArrayThatIsTheOnlyResult) {
  std::string code = kCut;
  const auto replace = [&](const std::string& from, const std::string& to) {
    const size_t at = code.find(from);
    ASSERT_NE(at, std::string::npos);
    code.replace(at, from.size(), to);
  };
  const std::string rows = "tensor<?x3xf32, #stablehlo.bounds<4, ?>>";
  const std::string others = ", tensor<4x3xf32>, tensor<?x?xf32, #stablehlo.bounds<3, 4>>";
  replace(rows + others + ")", rows + ")");
  replace("return %rows, %x, %v : " + rows + others, "return %rows : " + rows);
  PJRT_LoadedExecutable* executable = nullptr;
  expect_ok(compile(code, "mlir", "", &executable));
  EXPECT_EQ(outputs(executable), 1u);
  const float x[12] = {1, 7, 8};
  PJRT_Buffer* in = upload(x, {4, 3});
  PJRT_Buffer* out = nullptr;
  expect_ok(run(executable, in, &out));
  EXPECT_EQ(dims(out), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(download(out), (std::vector<float>{1, 7, 8}));
  destroy(in);
  destroy(out);
  destroy_executable(executable);
}

class RealSizesOfMemoryThatTheHostDoesNotSee : public RealSizes {
 protected:
  RealSizesOfMemoryThatTheHostDoesNotSee() { backend_name = collet::testing::test_backend("memory_only"); }
};

TEST_F(RealSizesOfMemoryThatTheHostDoesNotSee, ResultsHaveTheSizesOfTheData) {
  PJRT_LoadedExecutable* executable = nullptr;
  expect_ok(compile(kCut, "mlir", "", &executable));
  expect_real_sizes(executable);
  destroy_executable(executable);
}

TEST_F(Sizes, AreThoseOfTheBoundsUnlessTold) {
  PJRT_LoadedExecutable* executable = nullptr;
  expect_ok(compile(kCut, "mlir", "", &executable));
  const float x[12] = {1, 2, 3, 4};
  PJRT_Buffer* in = upload(x, {4, 3});
  PJRT_Buffer* out[3] = {};
  expect_ok(run(executable, in, out));
  EXPECT_EQ(dims(out[0]), (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(download(out[0]), (std::vector<float>{1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  for (PJRT_Buffer* buffer : {in, out[0], out[1], out[2]}) destroy(buffer);
  destroy_executable(executable);
}

TEST(Settings, DataDependentSizesAreOneOfTwo) {
  const NamedOptions options({{"backend", "interpreter"}, {"data_dependent_sizes", "refuse"}});
  auto create = args_of<PJRT_Client_Create_Args>();
  create.create_options = options.values().data();
  create.num_options = options.values().size();
  const auto [code, message] = outcome(api()->PJRT_Client_Create(&create));
  EXPECT_EQ(code, PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_THAT(message, HasSubstr("pad or real, not 'refuse'"));
}

}  // namespace
}  // namespace collet::pjrt
