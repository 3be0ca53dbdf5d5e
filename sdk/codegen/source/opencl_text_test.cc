// SPDX-License-Identifier: Apache-2.0
// Compares kernels that were written as OpenCL C with the evaluator, on the first OpenCL device that computes with double.

#define CL_TARGET_OPENCL_VERSION 120
#include <collet/codegen/kernel_transform.h>

#include <CL/cl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "sdk/codegen/schedule/lanes.h"
#include "sdk/codegen/source/opencl_text.h"
#include "sdk/codegen/testing/elementwise_cases.h"
#include "sdk/codegen/testing/random_kernels.h"

namespace collet::codegen {
namespace {

/// The first device with double; null if there is none.
cl_device_id find_device() {
  cl_uint count = 0;
  if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) return nullptr;
  std::vector<cl_platform_id> platforms(count);
  clGetPlatformIDs(count, platforms.data(), nullptr);
  for (cl_platform_id platform : platforms) {
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || count == 0) continue;
    std::vector<cl_device_id> devices(count);
    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr);
    for (cl_device_id device : devices) {
      cl_device_fp_config doubles = 0;
      clGetDeviceInfo(device, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof doubles, &doubles, nullptr);
      if (doubles != 0) return device;
    }
  }
  return nullptr;
}

/// A program on the device. Objects of OpenCL live as long as the process.
class Program {
 public:
  explicit Program(const std::string& text) {
    device_ = find_device();
    if (!device_) {
      ADD_FAILURE() << "there is no OpenCL device with double";
      return;
    }
    static cl_context context = nullptr;
    if (!context) context = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, nullptr);
    context_ = context;
    queue_ = clCreateCommandQueue(context_, device_, 0, nullptr);
    const char* source = text.c_str();
    program_ = clCreateProgramWithSource(context_, 1, &source, nullptr, nullptr);
    if (clBuildProgram(program_, 1, &device_, "-cl-std=CL1.2", nullptr, nullptr) == CL_SUCCESS) return;
    std::string log(1 << 16, 0);
    clGetProgramBuildInfo(program_, device_, CL_PROGRAM_BUILD_LOG, log.size(), log.data(), nullptr);
    ADD_FAILURE() << log.substr(0, 3000) << text;
  }
  ~Program() {
    clReleaseCommandQueue(queue_);
    clReleaseProgram(program_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Runs a kernel on a copy of `bytes`, and copies them back.
  void run(const std::string& name, size_t group, size_t groups, std::span<std::byte> bytes) {
    cl_int result = CL_SUCCESS;
    cl_kernel kernel = clCreateKernel(program_, name.c_str(), &result);
    ASSERT_EQ(result, CL_SUCCESS) << name;
    cl_mem memory =
        clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes.size(), bytes.data(), &result);
    ASSERT_EQ(result, CL_SUCCESS);
    const cl_long offset = 0;
    EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof memory, &memory), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof offset, &offset), CL_SUCCESS);
    const size_t all = group * groups;
    EXPECT_EQ(clEnqueueNDRangeKernel(queue_, kernel, 1, nullptr, &all, &group, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(clEnqueueReadBuffer(queue_, memory, CL_TRUE, 0, bytes.size(), bytes.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    clReleaseMemObject(memory);
    clReleaseKernel(kernel);
  }

 private:
  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  cl_program program_ = nullptr;
};

/// The memory of a kernel: all of its buffers, between guard bytes.
struct Area {
  static constexpr uint64_t kGuard = 64;
  std::vector<uint64_t> offsets;
  uint64_t bytes = kGuard;

  explicit Area(const Kernel& kernel) {
    const Extents x = extents_of(kernel);
    for (size_t i = 0; i < x.types.size(); ++i) {
      offsets.push_back(bytes);
      bytes += (collet_type_bytes(x.types[i]) * static_cast<uint64_t>(x.elements[i]) + kGuard - 1) / kGuard * kGuard +
               kGuard;
    }
  }
};

/// Runs kernels that have been scheduled as `sources`, and compares.
void compare_opencl(const std::vector<KernelCase>& cases, const Target& target) {
  constexpr size_t kAtATime = 40;  // kernels of a program
  for (size_t first = 0; first < cases.size(); first += kAtATime) {
    const size_t end = std::min(cases.size(), first + kAtATime);
    std::vector<FunctionSource> sources;
    std::vector<std::vector<uint64_t>> offsets;
    for (size_t i = first; i < end; ++i) {
      FunctionSource& f = sources.emplace_back();
      f.name = "kernel" + std::to_string(i);
      f.body = cases[i].kernel;
      if (target.has_grid()) f.body = schedule_grid(cases[i].kernel, target.grid);
      offsets.push_back(Area(cases[i].kernel).offsets);
    }
    Program program(write_opencl_kernels(sources, offsets, target));
    if (::testing::Test::HasFailure()) return;
    for (size_t i = first; i < end; ++i) {
      const Kernel& k = cases[i].kernel;
      SCOPED_TRACE(cases[i].name + "\n" + print_kernel(k));
      compare_with_evaluator(cases[i], i, [&](size_t, Buffers& buffers) {
        const Area area(k);
        std::vector<std::byte> bytes(area.bytes, std::byte{0xa5});
        for (size_t b = 0; b < buffers.size(); ++b)
          std::copy(buffers[b].begin(), buffers[b].end(), bytes.begin() + static_cast<ptrdiff_t>(area.offsets[b]));
        const auto* const grid = std::get_if<GridKernel>(&sources[i - first].body);
        // Where parts of the range may run at the same time, there are three.
        const size_t parts = k.sequential || k.outer == 0 ? 1 : 3;
        program.run(sources[i - first].name, grid ? grid->schedule.block_threads : 1,
                    grid ? grid->schedule.blocks : parts, bytes);
        uint64_t at = 0;
        for (size_t b = 0; b < buffers.size(); ++b) {
          for (; at < area.offsets[b]; ++at) EXPECT_EQ(bytes[at], std::byte{0xa5}) << "written outside of buffer " << b;
          std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(at), buffers[b].size(), buffers[b].begin());
          at += buffers[b].size();
        }
        for (; at < area.bytes; ++at) EXPECT_EQ(bytes[at], std::byte{0xa5}) << "written outside of the last buffer";
      });
    }
  }
}

/// Returns each case whose number is a multiple of `step`, or all with COLLET_ALL_KERNELS: drivers take long to compile.
std::vector<KernelCase> some(const std::vector<KernelCase>& cases, size_t step) {
  std::vector<KernelCase> out;
  const bool all = std::getenv("COLLET_ALL_KERNELS") != nullptr;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (all || i % step == 0) out.push_back(cases[i]);
  }
  return out;
}

Target machine(const std::string& name) {
  constexpr int64_t kLocalBytes = int64_t{32} << 10;
  return name == "grid" ? grid_machine(8, kLocalBytes) : vector_machine(8);
}

class OpenClText : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Machines, OpenClText, ::testing::Values("threads", "grid"),
                         [](const auto& test) { return test.param; });

TEST_P(OpenClText, ExactOpsOfAnyBits_GiveTheBitsOfTheEvaluator) {
  compare_opencl(some(exact_op_cases(), 121), machine(GetParam()));
}

TEST_P(OpenClText, ElementaryFunctions_AreNearTheEvaluator) {
  compare_opencl(some(function_cases(), 83), machine(GetParam()));
}

TEST_P(OpenClText, KernelsOfFiles_LeaveWhatTheEvaluatorDoes) {
  compare_opencl(some(file_cases(), 8), machine(GetParam()));
}

TEST_P(OpenClText, RandomKernels_LeaveWhatTheEvaluatorDoes) {
  RandomKernels generator(11);
  std::vector<KernelCase> cases;
  for (int64_t i = 0; i < 300; ++i) {
    Kernel kernel = generator.next();
    if (i % 2 == 0 && !kernel.sequential) collapse_loops(kernel);
    if (i % 3 != 0 && GetParam() == "threads") choose_lanes(kernel, machine("threads"));
    cases.push_back({"random " + std::to_string(i), std::move(kernel), Fill::kSmall, {}});
  }
  compare_opencl(some(cases, 30), machine(GetParam()));
}

/// Rows and products that the work-items of a group share.
TEST(OpenClText, RowsAndTiles_LeaveWhatTheEvaluatorDoes) {
  struct Shared {
    const char* text;
    GridSchedule::Form form;
  };
  const Shared kernels[] = {
      {"kernel (2 buffers) {\nouter i0: 3\ninner i1: 41\ninner i2: 100\n%0 = load f32 b0[4100*i0 + 100*i1 + i2]\n"
       "r0 = reduce add f32 %0 init identity\n%1 = reduced f32 r0 result 0\nstore b1[i0], %1\n}",
       GridSchedule::Form::kRows},
      {"kernel (2 buffers) {\nouter i0: 5\ninner i1: 20000\n%0 = load f16 b0[20000*i0 + i1]\n"
       "r0 = reduce maximum f16 %0 init identity\n%1 = reduced f16 r0 result 0\n%2 = subtract f16 %0, %1\n"
       "r1 = reduce add f16 %2 init identity\n%3 = reduced f16 r1 result 0\n%4 = add f16 %2, %3\n"
       "store b1[20000*i0 + i1], %4\n}",
       GridSchedule::Form::kRows},
      {"kernel (2 buffers) {\nouter i0: 7\ninner i1: 300\n%0 = load c64 b0[300*i0 + i1]\n"
       "r0 = reduce add c64 %0 init identity\n%1 = reduced c64 r0 result 0\nstore b1[i0], %1\n}",
       GridSchedule::Form::kRows},
      {"kernel (3 buffers) {\nouter i0: 2\nouter i1: 70\nouter i2: 50\ninner i3: 300\n"
       "%0 = load f32 b0[21000*i0 + 300*i1 + i3]\n%1 = load f32 b1[15000*i0 + 50*i3 + i2]\n%2 = multiply f32 %0, %1\n"
       "r0 = reduce add f32 %2 init identity\n%3 = reduced f32 r0 result 0\n%4 = negate f32 %3\n"
       "store b2[3500*i0 + 50*i1 + i2], %4\n}",
       GridSchedule::Form::kTiles},
      {"kernel (3 buffers) {\nouter i0: 70\nouter i1: 50\ninner i2: 30\n%0 = load s32 b0[i0 + 70*i2]\n"
       "%1 = load s32 b1[30*i1 + i2]\n%2 = multiply s32 %0, %1\nr0 = reduce add s32 %2 init identity\n"
       "%3 = reduced s32 r0 result 0\nstore b2[50*i0 + i1], %3\n}",
       GridSchedule::Form::kTiles},
  };
  const Target target = machine("grid");
  std::vector<KernelCase> cases;
  for (const Shared& one : kernels) {
    KernelCase& c = cases.emplace_back();
    const Status read = parse_kernel(one.text, c.kernel);
    ASSERT_TRUE(read.ok()) << read.message() << one.text;
    EXPECT_EQ(schedule_grid(c.kernel, target.grid).schedule.form, one.form) << one.text;
  }
  compare_opencl(cases, target);
}

}  // namespace
}  // namespace collet::codegen
