// SPDX-License-Identifier: Apache-2.0
#include "sdk/include/tests/kernel_fixture.h"

namespace collet::kernel {
namespace {

using Floats = std::vector<float>;

/// A device with host memory. The device whose number is set to fail throws in `negate`.
class HostDevice final : public Device {
 public:
  explicit HostDevice(uint32_t number) : number_(number) {}
  Memory allocate(uint64_t bytes, uint64_t) override {
    return reinterpret_cast<Memory>(::operator new(bytes, std::align_val_t(64)));
  }
  void free(Memory memory) noexcept override { ::operator delete(at(memory), std::align_val_t(64)); }
  void write(Memory to, uint64_t offset, const void* from, uint64_t bytes) override {
    std::memcpy(at(to) + offset, from, bytes);
  }
  void read(Memory from, uint64_t offset, void* to, uint64_t bytes) override {
    std::memcpy(to, at(from) + offset, bytes);
  }
  void copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) override {
    std::memmove(at(to) + to_offset, at(from) + from_offset, bytes);
  }
  static char* at(Memory memory) { return reinterpret_cast<char*>(memory); }
  static float* floats(const Array& array) { return reinterpret_cast<float*>(at(array.memory) + array.offset); }
  uint32_t number() const { return number_; }
  static inline std::atomic<uint32_t> failing{COLLET_NONE};

 private:
  const uint32_t number_;
};

/// A program that a compiler has compiled as a whole: it negates its argument and adds what the participants have.
class WholePair final : public WholeProgram {
 public:
  struct Loaded final : DeviceProgram {
    void launch(Device&, const std::vector<Piece>&, uint64_t) override {
      throw Error(COLLET_INTERNAL, "a program whose participants meet was launched without them");
    }
    void launch_participant(Device& device, const std::vector<Piece>& pieces, uint64_t,
                            Participants& participants) override {
      if (static_cast<HostDevice&>(device).number() == HostDevice::failing) {
        throw Error(COLLET_INTERNAL, "this device fails");
      }
      const auto at = [](const Piece& piece) {
        return reinterpret_cast<float*>(HostDevice::at(piece.memory) + piece.offset);
      };
      Mine mine{participants.number(), at(pieces[0]), at(pieces[1])};
      participants.meet(7, "all-reduce ", {0, 1}, &mine, [](const std::vector<const void*>& all) {
        const auto &a = *static_cast<const Mine*>(all.at(0)), &b = *static_cast<const Mine*>(all.at(1));
        EXPECT_EQ(a.number, 0U);
        EXPECT_EQ(b.number, 1U);
        for (int i = 0; i < 4; ++i) a.result[i] = b.result[i] = -(a.argument[i] + b.argument[i]);
      });
    }
  };
  WholePair() { meets = true; }
  std::unique_ptr<DeviceProgram> load(Device&) override { return std::make_unique<Loaded>(); }

 private:
  struct Mine {
    uint32_t number;
    const float* argument;
    float* result;
  };
};

class PairCompiler final : public ProgramCompiler {
 public:
  void answer(const collet_program*, const uint32_t*, uint32_t count, collet_verdict* verdicts) const override {
    for (uint32_t i = 0; i < count; ++i) verdicts[i].answer = COLLET_ACCEPT;
  }
  std::unique_ptr<WholeProgram> compile(const collet_program*, bool, std::vector<uint32_t>* rejected) const override {
    rejected->clear();
    return std::make_unique<WholePair>();
  }
};

template <uint32_t traits>
Backend describe_pair() {
  Backend backend;
  backend.name = "pair";
  backend.device_count = 2;
  backend.traits = traits;
  backend.types = {{COLLET_TYPE_F32, COLLET_MAY_COMPUTE}};
  backend.kernels = {{COLLET_OP_ADD, f32, f32,
                      [](Device&, const Op& op) {
                        loop_binary(op.result().elements, HostDevice::floats(op.operand(0)),
                                    HostDevice::floats(op.operand(1)), HostDevice::floats(op.result()),
                                    [](float x, float y) { return x + y; });
                      }},
                     {COLLET_OP_NEGATE, f32, f32, [](Device& device, const Op& op) {
                        if (static_cast<HostDevice&>(device).number() == HostDevice::failing) {
                          throw Error(COLLET_INTERNAL, "this device fails");
                        }
                        loop_unary(op.result().elements, HostDevice::floats(op.operand(0)),
                                   HostDevice::floats(op.result()), [](float x) { return -x; });
                      }}};
  backend.queues = true;
  backend.collectives = true;
  backend.open_device = [](uint32_t number) { return std::make_unique<HostDevice>(number); };
  return backend;
}

template <uint32_t traits>
Backend describe_whole_pair() {
  Backend backend = describe_pair<traits | COLLET_TRAIT_COLLECTIVES>();
  backend.kernels.clear();
  backend.collectives = false;
  backend.compiler = std::make_shared<PairCompiler>();
  return backend;
}

struct PairKind {
  const char* name;
  collet_status (*enter)(const collet_host*, const collet_backend**, collet_error*);
};

/// A program of two participants, which negate their arguments and sum them with all-reduce.
class Pair : public ::testing::TestWithParam<PairKind>, public Opened {
 protected:
  void SetUp() override {
    HostDevice::failing = COLLET_NONE;
    ASSERT_NO_FATAL_FAILURE(open_instance(GetParam().enter));
    queues = static_cast<const collet_queue_table*>(table->query(instance, "queue", 1));
    testing::ProgramWriter w;
    const uint32_t t = w.type(COLLET_TYPE_F32, {4}), x = w.argument(t);
    const uint32_t n = w.op(COLLET_OP_NEGATE, t, {x});
    const uint32_t r = w.op(COLLET_OP_ALL_REDUCE, t, {n}, collet_collective_attrs{});
    w.region(COLLET_COMBINE_ADD);
    std::vector<uint64_t> block = w.finish(1, {r});
    reinterpret_cast<collet_program*>(block.data())->replica_count = 2;
    collet_compile_options how{};
    how.struct_size = sizeof how;
    const uint32_t assignment[] = {0, 1};
    how.assignment = assignment;
    how.participants = 2;
    facts.struct_size = sizeof facts;
    ASSERT_EQ(table->compile(instance, testing::program_of(block), &how, &executable, &facts, nullptr, &error),
              COLLET_OK)
        << error.message;
    for (uint32_t p = 0; p < 2; ++p) {
      arguments[p].bytes = results[p].bytes = 16;
      arguments[p].buffer = buffer(p, 16);
      results[p].buffer = buffer(p, 16);
      Floats data(4, p == 0 ? 1.f : 10.f);
      copy(arguments[p], data.data(), true);
      launches[p].device = launches[p].participant = p;
      launches[p].arguments = &arguments[p];
      launches[p].results = &results[p];
      launches[p].argument_count = launches[p].result_count = 1;
      launches[p].workspace.buffer = buffer(p, facts.workspace_bytes);
      launches[p].workspace.bytes = facts.workspace_bytes;
    }
  }
  void TearDown() override {
    for (collet_backend_buffer* one : buffers) table->free(instance, one);
    table->release(executable);
    table->close(instance);
  }
  collet_backend_buffer* buffer(uint32_t device, uint64_t bytes) {
    collet_backend_buffer* out = nullptr;
    EXPECT_EQ(table->alloc(instance, device, 0, bytes, 64, &out, nullptr, &error), COLLET_OK) << error.message;
    buffers.push_back(out);
    return out;
  }
  void copy(const collet_argument& at, void* host, bool up) {
    const collet_place device{at.buffer, nullptr, 0}, here{nullptr, host, 0};
    const collet_copy_region region{up ? here : device, up ? device : here, 16};
    EXPECT_EQ(table->copy(instance, &region, 1, nullptr, &error), COLLET_OK) << error.message;
  }
  void expect_sums() {
    for (uint32_t p = 0; p < 2; ++p) {
      Floats out(4);
      copy(results[p], out.data(), false);
      EXPECT_EQ(out, Floats(4, -11)) << p;
    }
  }
  /// Makes a queue for each participant, on which launches are then put; `waits` are the points that participant 1
  /// waits for.
  void use_queues(const std::vector<collet_point>& waits = {}) {
    waits_of_second = waits;
    for (uint32_t p = 0; p < 2; ++p) {
      ASSERT_EQ(queues->create(instance, p, COLLET_QUEUE_COMPUTE, &queue[p], &error), COLLET_OK);
      ++points[p].value;
      points[p].queue = queue[p];
      syncs[p].queue = queue[p];
      syncs[p].signals = &points[p];
      syncs[p].signal_count = 1;
      launches[p].sync = &syncs[p];
    }
    syncs[1].waits = waits_of_second.data();
    syncs[1].wait_count = static_cast<uint32_t>(waits_of_second.size());
  }
  collet_status wait(uint32_t p) { return queues->wait(queue[p], points[p].value, UINT64_MAX, &error); }
  void drop_queues() {
    for (collet_backend_queue* one : queue) queues->destroy(one);
  }

  const collet_queue_table* queues = nullptr;
  collet_backend_executable* executable = nullptr;
  collet_executable_info facts{};
  collet_argument arguments[2] = {}, results[2] = {};
  collet_launch launches[2] = {};
  collet_backend_queue* queue[2] = {};
  collet_point points[2] = {};
  collet_sync syncs[2] = {};
  std::vector<collet_point> waits_of_second;
  std::vector<collet_backend_buffer*> buffers;
};

TEST_P(Pair, SumsWithAndWithoutQueues) {
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ(table->execute(executable, launches, 2, 1, &error), COLLET_OK) << error.message;
  expect_sums();
  use_queues();
  for (int i = 0; i < 20; ++i) {
    for (collet_point& point : points) ++point.value;
    ASSERT_EQ(table->execute(executable, launches, 2, 1, &error), COLLET_OK) << error.message;
  }
  for (uint32_t p = 0; p < 2; ++p) EXPECT_EQ(wait(p), COLLET_OK) << error.message;
  expect_sums();
  drop_queues();
}

TEST_P(Pair, OneFailsAndTheOtherEndsWithItsMessage) {
  HostDevice::failing = 1;
  EXPECT_EQ(table->execute(executable, launches, 2, 1, &error), COLLET_INTERNAL);
  EXPECT_STREQ(error.message, "this device fails");
  use_queues();
  ASSERT_EQ(table->execute(executable, launches, 2, 1, &error), COLLET_OK) << error.message;
  for (uint32_t p = 0; p < 2; ++p) {
    EXPECT_EQ(wait(p), COLLET_INTERNAL);
    EXPECT_STREQ(error.message, "this device fails");
  }
  drop_queues();
}

TEST_P(Pair, OneIsMissing) {
  EXPECT_EQ(table->execute(executable, &launches[1], 1, 1, &error), COLLET_FAILED_PRECONDITION);
  EXPECT_STREQ(error.message, "all-reduce : the other participants are not there");
}

TEST_P(Pair, WhatNeverBeginsHoldsUpNobody) {
  collet_backend_queue* broken = nullptr;
  ASSERT_EQ(queues->create(instance, 0, COLLET_QUEUE_UPLOAD, &broken, &error), COLLET_OK);
  use_queues({{broken, 1}});
  ASSERT_EQ(table->execute(executable, launches, 2, 1, &error), COLLET_OK) << error.message;
  EXPECT_EQ(queues->wait(queue[0], points[0].value, 1000000, &error), COLLET_DEADLINE_EXCEEDED);
  queues->abort(broken, COLLET_UNAVAILABLE, "it was aborted");
  EXPECT_EQ(wait(1), COLLET_UNAVAILABLE);
  EXPECT_EQ(wait(0), COLLET_CANCELLED);
  drop_queues();
  queues->destroy(broken);
}

TEST_P(Pair, AbortEndsAParticipantThatWaits) {
  collet_backend_queue* slow = nullptr;
  ASSERT_EQ(queues->create(instance, 0, COLLET_QUEUE_UPLOAD, &slow, &error), COLLET_OK);
  use_queues({{slow, 1}});
  ASSERT_EQ(table->execute(executable, launches, 2, 1, &error), COLLET_OK) << error.message;
  queues->abort(queue[0], COLLET_CANCELLED, "nobody wants it");
  EXPECT_EQ(wait(0), COLLET_CANCELLED);
  EXPECT_STREQ(error.message, "nobody wants it");
  queues->abort(slow, COLLET_CANCELLED, "nor that");
  EXPECT_EQ(wait(1), COLLET_CANCELLED);
  drop_queues();
  queues->destroy(slow);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Pair,
                         ::testing::Values(PairKind{"parallel", detail::enter<describe_pair<0>>},
                                           PairKind{"serial", detail::enter<describe_pair<COLLET_TRAIT_SERIAL>>},
                                           PairKind{"whole", detail::enter<describe_whole_pair<0>>},
                                           PairKind{"serial_whole",
                                                    detail::enter<describe_whole_pair<COLLET_TRAIT_SERIAL>>}),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace collet::kernel
