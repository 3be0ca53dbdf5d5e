// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/kernel_backend.hpp>
#include <collet/kernel_loops.hpp>

#include <gtest/gtest.h>

#include <map>

#include "sdk/include/tests/program_writer.h"

namespace collet::kernel {

using testing::program_of;
using testing::ProgramWriter;

constexpr TypeSet f32{COLLET_TYPE_F32};
inline int alive = 0;  // number of pieces of device memory that are allocated
inline int allocations_until_failure = -1;

/// A device whose memory is a map of byte vectors. A kernel::Memory is a key of the map. New memory is filled with 0xee, so
/// that a test sees when uninitialized memory was read.
class TestDevice final : public Device {
 public:
  Memory allocate(uint64_t bytes, uint64_t) override {
    if (allocations_until_failure >= 0 && allocations_until_failure-- == 0) throw std::bad_alloc();
    ++alive;
    pieces_[++last_].assign(bytes, '\xee');
    return last_;
  }
  void free(Memory memory) noexcept override { alive -= static_cast<int>(pieces_.erase(memory)); }
  void write(Memory to, uint64_t offset, const void* from, uint64_t bytes) override {
    if (writes_until_failure >= 0 && writes_until_failure-- == 0) throw std::runtime_error("a write failed");
    std::memcpy(find(to, offset, bytes), from, bytes);
  }
  void read(Memory from, uint64_t offset, void* to, uint64_t bytes) override {
    ++reads;
    std::memcpy(to, find(from, offset, bytes), bytes);
  }
  void copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) override {
    std::memcpy(find(to, to_offset, bytes), find(from, from_offset, bytes), bytes);
    ++copies;
  }
  char* find(Memory memory, uint64_t offset, uint64_t bytes) {
    std::vector<char>& piece = pieces_.at(memory);
    if (offset + bytes > piece.size()) throw Error(COLLET_OUT_OF_RANGE, "outside");
    return piece.data() + offset;
  }
  float* floats(const Array& array) {
    return array.bytes ? reinterpret_cast<float*>(find(array.memory, array.offset, array.bytes)) : nullptr;
  }
  void finish() override { ++finished; }
  static inline int copies = 0, reads = 0, finished = 0, writes_until_failure = -1;

 private:
  std::map<Memory, std::vector<char>> pieces_;
  Memory last_ = 0;
};
inline float* floats(Device& device, const Array& array) {
  return static_cast<TestDevice&>(device).floats(array);
}

constexpr TypeSet s32_of_scalars{COLLET_TYPE_S32};
inline Verdict is_scalar(const Op& op) {
  return op.result().rank == 0 ? Verdict(true) : "no kernel for these element types";
}

inline Kernel add_kernel() {
  return {COLLET_OP_ADD, f32, f32, [](Device& device, const Op& op) {
            loop_binary(op.result().elements, floats(device, op.operand(0)), floats(device, op.operand(1)),
                        floats(device, op.result()), [](float x, float y) { return x + y; });
          }};
}

inline Backend describe() {
  Backend backend;
  backend.name = "test";
  backend.types = {
      {COLLET_TYPE_F32, COLLET_MAY_COMPUTE}, {COLLET_TYPE_S32, COLLET_MAY_MOVE}, {COLLET_TYPE_PRED, COLLET_MAY_MOVE}};
  backend.fusions = true;
  backend.kernels = {
      add_kernel(),
      {COLLET_OP_NEGATE, f32, f32,
       [](Device&, const Op& op) { throw Error(COLLET_UNAVAILABLE, "lost: " + op.name()); }},
      {COLLET_OP_SQRT, f32, f32, [](Device&, const Op&) { throw 7; }},
      {COLLET_OP_DOT, f32, f32,
       [](Device& device, const Op& op) {
         MatrixProduct product;
         matrix_product_of(op, &product);
         loop_product<float>(product, floats(device, op.operand(0)), floats(device, op.operand(1)),
                             floats(device, op.result()));
       },
       is_plain_product},
      {COLLET_OP_REDUCE, f32, f32,
       [](Device& device, const Op& op) {
         loop_reduce<float>(reduction_of(op), floats(device, op.operand(0)), *floats(device, op.operand(1)),
                            floats(device, op.result()), [](float x, float y) { return x + y; });
       },
       [](const Op& op) { return is_simple_reduction(op) && op.combine() == COLLET_COMBINE_ADD; },
       [](const Op&) { return uint64_t{1000}; }, [](const Op&) { return 42.0; }},
  };
  // These kernels do nothing: the tests use programs in which the host computes such scalars and never starts the kernels.
  const auto nothing = [](Device&, const Op&) {};
  constexpr TypeSet pred{COLLET_TYPE_PRED};
  backend.kernels.push_back({COLLET_OP_COMPARE, index_types, pred, nothing});
  backend.kernels.push_back({COLLET_OP_ADD, s32_of_scalars, s32_of_scalars, nothing, is_scalar});
  backend.kernels.push_back({COLLET_OP_SELECT, pred | s32_of_scalars, s32_of_scalars, nothing});
  add_moves(&backend.kernels, TypeSet{COLLET_TYPE_F32, COLLET_TYPE_S32},
            [](Device& device, const Move& move, const Array& from, const Array& to) {
              auto& test = static_cast<TestDevice&>(device);
              loop_move(move, test.floats(from), test.floats(to));
            });
  backend.open_device = [](uint32_t) { return std::make_unique<TestDevice>(); };
  return backend;
}

/// A backend and its open instance, for test fixtures.
struct Opened {
  /// Opens an instance of the backend that `enter` describes. Its description is then in `about`.
  void open_instance(collet_backend_entry_fn enter, collet_open_options options = {}) {
    collet_host host{};
    host.struct_size = sizeof host;
    host.abi_major = COLLET_ABI_MAJOR;
    ASSERT_EQ(enter(&host, &table, &error), COLLET_OK);
    options.struct_size = sizeof options;
    about = {};
    about.struct_size = sizeof about;
    ASSERT_EQ(table->open(&options, &instance, &about, &error), COLLET_OK) << error.message;
  }
  /// Returns options for a program with one participant, on device 0.
  static collet_compile_options one_participant() {
    static const uint32_t assignment[] = {0};
    collet_compile_options options{};
    options.struct_size = sizeof options;
    options.assignment = assignment;
    options.participants = 1;
    return options;
  }

  const collet_backend* table = nullptr;
  collet_backend_instance* instance = nullptr;
  collet_instance_info about{};
  collet_error error{};
};

/// A test fixture with an open instance of describe()'s backend, and functions that compile and run programs on it.
class KernelBackend : public ::testing::Test, public Opened {
 protected:
  void SetUp() override {
    allocations_until_failure = -1;
    ASSERT_NO_FATAL_FAILURE(open_instance(detail::enter<describe>));
    EXPECT_STREQ(about.name, "test");
    EXPECT_EQ(about.opset, 1u) << "the opset that the description states, whatever the SDK's is";
  }
  void TearDown() override {
    table->close(instance);
    EXPECT_EQ(alive, 0);
  }

  collet_backend_buffer* buffer(uint64_t bytes) {
    collet_backend_buffer* out = nullptr;
    void* host_pointer = &out;
    EXPECT_EQ(table->alloc(instance, 0, 0, bytes, 64, &out, &host_pointer, &error), COLLET_OK) << error.message;
    EXPECT_EQ(host_pointer, nullptr);
    return out;
  }
  void transfer(collet_backend_buffer* device, void* host, uint64_t bytes, bool up) {
    const collet_place on_device{device, nullptr, 0}, on_host{nullptr, host, 0};
    const collet_copy_region region{up ? on_host : on_device, up ? on_device : on_host, bytes};
    EXPECT_EQ(table->copy(instance, &region, 1, nullptr, &error), COLLET_OK) << error.message;
  }
  collet_backend_executable* compile(const std::vector<uint64_t>& block) {
    const collet_compile_options options = one_participant();
    facts = {};
    facts.struct_size = sizeof facts;
    collet_backend_executable* out = nullptr;
    rejection.struct_size = sizeof rejection;
    rejection.count = 8;
    rejection.ops = rejected;
    std::vector<uint64_t> copy = block;
    status = table->compile(instance, program_of(copy), &options, &out, &facts, &rejection, &error);
    std::fill(copy.begin(), copy.end(), ~UINT64_C(0));  // the program is no longer valid when compile returns
    return status == COLLET_OK ? out : nullptr;
  }

  /// Runs a program; result r shares argument shared[r]'s buffer unless that is -1.
  std::vector<std::vector<float>> run(const std::vector<uint64_t>& block, std::vector<std::vector<float>> inputs,
                                      std::vector<int> shared = {}) {
    collet_backend_executable* executable = compile(block);
    if (!executable) return {};
    const collet_program* p = program_of(block);
    const collet_region* entry = collet_region_at(p, 0);
    std::vector<collet_argument> arguments(entry->arguments.count), results(entry->results.count);
    std::vector<collet_backend_buffer*> buffers;
    for (size_t i = 0; i < arguments.size(); ++i) {
      arguments[i].bytes = inputs[i].size() * sizeof(float);
      if (by_value.count(i)) {
        arguments[i].flags = COLLET_ARG_IMMEDIATE;
        std::memcpy(arguments[i].immediate, &by_value[i], sizeof(int32_t));
        continue;
      }
      if (arguments[i].bytes == 0) continue;
      buffers.push_back(arguments[i].buffer = buffer(arguments[i].bytes));
      transfer(arguments[i].buffer, inputs[i].data(), arguments[i].bytes, true);
    }
    for (uint32_t r = 0; r < results.size(); ++r) {
      results[r].bytes = collet_value_type(p, collet_ref_at(p, entry->results.first + r))->bytes;
      if (r < shared.size() && shared[r] >= 0) {
        results[r].buffer = arguments[static_cast<size_t>(shared[r])].buffer;
      } else if (results[r].bytes != 0) {
        buffers.push_back(results[r].buffer = buffer(results[r].bytes));
      }
    }
    collet_launch launch{};
    launch.arguments = arguments.data();
    launch.argument_count = static_cast<uint32_t>(arguments.size());
    launch.results = results.data();
    launch.result_count = static_cast<uint32_t>(results.size());
    if (facts.workspace_bytes) buffers.push_back(launch.workspace.buffer = buffer(facts.workspace_bytes));
    launch.workspace.bytes = facts.workspace_bytes;
    const int reads = TestDevice::reads;
    status = table->execute(executable, &launch, 1, 1, &error);
    reads_of_execution = TestDevice::reads - reads;
    std::vector<std::vector<float>> out;
    for (const collet_argument& result : results) {
      out.emplace_back(result.bytes / sizeof(float));
      if (result.bytes && status == COLLET_OK) transfer(result.buffer, out.back().data(), result.bytes, false);
    }
    for (collet_backend_buffer* one : buffers) table->free(instance, one);
    table->release(executable);
    return out;
  }

  collet_status status = COLLET_OK;
  collet_executable_info facts{};
  collet_rejection rejection{};
  uint32_t rejected[8] = {};
  std::map<size_t, int32_t> by_value;  // arguments that `run` passes by value, by number
  int reads_of_execution = 0;
  ProgramWriter w;
};

}  // namespace collet::kernel
