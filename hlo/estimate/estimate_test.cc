// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "hlo/estimate/machine.h"
#include "hlo/estimate/network.h"
#include "hlo/estimate/step.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

namespace collet::hlo::estimate {
namespace {

// 1 product flop per ns and byte moves of 1 byte per ns make times that can be computed by hand.
constexpr const char* kMachine = R"({
  "name": "two levels",
  "device": {
    "memory_gigabytes": 1, "memory_gigabytes_per_second": 1, "launch_microseconds": 0,
    "product_teraflops": {"other": 0.001, "bf16": 0.002}, "arithmetic_teraflops": 0.001
  },
  "network": [
    {"name": "inside", "devices": 4, "topology": "switch", "gigabytes_per_second": 2, "latency_microseconds": 0.001},
    {"name": "outside", "topology": "ring", "gigabytes_per_second": 0.5, "latency_microseconds": 0.01}
  ]
})";

Machine machine(const std::string& text = kMachine) {
  auto out = read_machine(text, "m.json");
  EXPECT_TRUE(out.ok()) << out.status().to_string();
  return out.ok() ? *out : Machine();
}

Step step(const std::string& text, const StepOptions& options = {}, const Machine& on = machine()) {
  auto module = parse_module(text);
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  if (!module.ok()) return {};
  auto out = estimate_step(**module, on, options);
  EXPECT_TRUE(out.ok()) << out.status().to_string();
  return out.ok() ? *out : Step();
}

TEST(Machine, FieldsAreCheckedByName) {
  const auto error = [](const std::string& from, const std::string& to) {
    std::string text = kMachine;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto read = read_machine(text, "m.json");
    return read.ok() ? "none" : read.status().message();
  };
  EXPECT_EQ(error("two levels", "2"), "none");
  EXPECT_EQ(error("\"memory_gigabytes\"", "\"memory_gigabyte\""),
            "m.json: there is no field 'memory_gigabyte' in 'device'");
  EXPECT_EQ(error("\"bf16\"", "\"bf17\""), "m.json: 'bf17' of 'product_teraflops' is no element type, nor 'other'");
  EXPECT_EQ(error("\"devices\": 4, ", ""), "m.json: 'inside' has no 'devices'; only the last level may lack them");
  EXPECT_EQ(error("\"ring\"", "\"star\""),
            "m.json: 'topology' of 'outside' is 'star'; known are switch, fat-tree, ring, torus");
  EXPECT_EQ(error("\"ring\"", "\"torus\""),
            "m.json: 'outside' needs both \"topology\": \"torus\" and the sizes of its dimensions in 'torus'");
  for (const char* devices : {"2.5", "1e30", "1048577"})
    EXPECT_EQ(error("\"devices\": 4", std::string("\"devices\": ") + devices),
              "m.json: 'devices' of 'inside' is no whole number up to 1048576");
  EXPECT_EQ(error("\"devices\": 4, \"topology\": \"switch\"",
                  "\"topology\": \"torus\", \"torus\": [4294967296, 4294967296, 4294967297]"),
            "m.json: the sizes in 'torus' of 'inside' do not give its devices");
  EXPECT_EQ(error("\"gigabytes_per_second\": 0.5", "\"gigabytes_per_second\": -1"),
            "m.json: 'gigabytes_per_second' of 'outside' is -1.000000");
  EXPECT_NE(error("]", "").find("m.json: no JSON"), std::string::npos);
}

TEST(Network, SpansOfGroups) {
  const Machine m = machine();
  EXPECT_EQ(span_of(m, std::vector<int64_t>{0, 1, 2, 3}), (Span{4, 1}));
  EXPECT_EQ(span_of(m, std::vector<int64_t>{1, 5, 9}), (Span{1, 3}));
  EXPECT_EQ(span_of(m, std::vector<int64_t>{0, 1, 4, 5}), (Span{2, 2}));
  // Devices 0 and 5 differ in both levels, and are two.
  const Span odd = span_of(m, std::vector<int64_t>{0, 5});
  EXPECT_EQ(odd.size(), 2u);
  EXPECT_LE(odd[0] * odd[1], 4);
}

TEST(Network, LevelsOfMoreDevicesThanThereAre) {
  std::string levels;
  for (int i = 0; i < 5; ++i)
    levels += R"({"name": "l)" + std::to_string(i) +
              R"(", "devices": 65536, "topology": "switch", "gigabytes_per_second": 2, "latency_microseconds": 1},)";
  std::string text = kMachine;
  text.replace(text.find("[") + 1, 0, levels);
  EXPECT_EQ(span_of(machine(text), std::vector<int64_t>{0, 1}), (Span{2, 1, 1, 1, 1, 1, 1}));
}

TEST(Network, TimesByTheFormulas) {
  const Machine m = machine();
  // Inside: 3/4 of 800 bytes at 2 bytes per ns, 2 messages of 1 ns.
  EXPECT_DOUBLE_EQ(collective_time(m, {4, 1}, {Op::ALL_GATHER, 800}).ns, 600 / 2. + 2);
  EXPECT_DOUBLE_EQ(collective_time(m, {4, 1}, {Op::ALL_REDUCE, 800}).ns, 2 * (600 / 2. + 2));
  // Outside: a ring of 3 uses both directions, 1 byte per ns, in 2 messages of 10 ns.
  EXPECT_DOUBLE_EQ(collective_time(m, {1, 3}, {Op::REDUCE_SCATTER, 300}).ns, 200 + 20);
  // Both: each of 8 has 100 bytes; outside 1 x 100 bytes at 1 byte per ns and a message, inside 3 x 200 bytes.
  const CollectiveTime both = collective_time(m, {4, 2}, {Op::ALL_GATHER, 800});
  EXPECT_DOUBLE_EQ(both.ns, 100 + 10 + 600 / 2. + 2);
  EXPECT_EQ(both.level, 0u);
  EXPECT_DOUBLE_EQ(collective_time(m, {1, 3}, {Op::COLLECTIVE_PERMUTE, 50}).ns, 50 / 0.5 + 10);
  EXPECT_DOUBLE_EQ(collective_time(m, {1, 1}, {Op::ALL_REDUCE, 800}).ns, 0);
}

TEST(Network, ATorusUsesAllOfItsDimensions) {
  const Machine m = machine(R"({"device": {"memory_gigabytes_per_second": 1, "product_teraflops": {"other": 1},
    "arithmetic_teraflops": 1}, "network": [{"name": "t", "topology": "torus", "torus": [4, 4], "gigabytes_per_second": 1}]})");
  EXPECT_DOUBLE_EQ(collective_time(m, {16}, {Op::ALL_GATHER, 1600}).ns, 1500 / 4.);
  EXPECT_DOUBLE_EQ(collective_time(m, {4}, {Op::ALL_GATHER, 1600}).ns, 1200 / 2.);
}

TEST(Step, AProductAndItsBound) {
  const Step s = step(R"(HloModule m
ENTRY main {
  a = f32[8,16] parameter(0)
  b = f32[16,32] parameter(1)
  ROOT c = f32[8,32] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})");
  EXPECT_DOUBLE_EQ(s.flops, 2 * 8 * 16 * 32);
  EXPECT_DOUBLE_EQ(s.bytes, 4 * (8 * 16 + 16 * 32 + 8 * 32));
  EXPECT_DOUBLE_EQ(s.compute_ns, 2 * 8 * 16 * 32);
  EXPECT_EQ(s.memory_ns, 0);
  ASSERT_EQ(s.ops.size(), 1u);
  EXPECT_EQ(s.ops[0].bound, Bound::Compute);
  EXPECT_DOUBLE_EQ(s.memory.arguments, 4 * (8 * 16 + 16 * 32));
  EXPECT_DOUBLE_EQ(s.memory.results, 4 * 8 * 32);
}

TEST(Step, TypesHavePeaksOfTheirOwn) {
  const Step s = step(R"(HloModule m
ENTRY main {
  a = bf16[8,16] parameter(0)
  b = bf16[16,32] parameter(1)
  ROOT c = f32[8,32] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})");
  EXPECT_DOUBLE_EQ(s.compute_ns, 8 * 16 * 32);
}

TEST(Step, LoopsCountTheirTripsAndSlicesTheirBytes) {
  // A stack of 50 layers, of which each iteration reads one.
  const Step s = step(R"(HloModule m
cond {
  p = (s32[], f32[1000], f32[50,1000]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(50)
  ROOT r = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], f32[1000], f32[50,1000]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[1000] get-tuple-element(p), index=1
  w = f32[50,1000] get-tuple-element(p), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  row = f32[1,1000] dynamic-slice(w, i, zero), dynamic_slice_sizes={1,1000}
  flat = f32[1000] reshape(row)
  y = f32[1000] add(x, flat)
  ROOT r = (s32[], f32[1000], f32[50,1000]) tuple(next, y, w)
}
ENTRY main {
  x = f32[1000] parameter(0)
  w = f32[50,1000] parameter(1)
  zero = s32[] constant(0)
  init = (s32[], f32[1000], f32[50,1000]) tuple(zero, x, w)
  loop = (s32[], f32[1000], f32[50,1000]) while(init), condition=cond, body=body
  ROOT y = f32[1000] get-tuple-element(loop), index=1
})");
  // x, a row and the result in each iteration, and a few scalars.
  EXPECT_GE(s.bytes, 50 * 3 * 4000.);
  EXPECT_LE(s.bytes, 50 * (3 * 4000. + 100));
  EXPECT_TRUE(s.notes.empty()) << s.notes[0];
}

constexpr const char* kData = R"(HloModule m, num_partitions=8
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  x = f32[200] parameter(0)
  y = f32[200] all-reduce(x), replica_groups={{0,4},{1,5},{2,6},{3,7}}, channel_id=1, use_global_device_ids=true, to_apply=add
  ROOT z = f32[200] all-reduce(y), replica_groups={{0,1,2,3},{4,5,6,7}}, channel_id=2, use_global_device_ids=true, to_apply=add
})";

TEST(Step, CollectivesGoByTheirGroups) {
  const Step s = step(kData);
  ASSERT_EQ(s.ops.size(), 2u);
  EXPECT_EQ(s.devices, 8);
  EXPECT_EQ(s.ops[0].span, (Span{1, 2}));
  EXPECT_EQ(s.ops[1].span, (Span{4, 1}));
  EXPECT_DOUBLE_EQ(s.ops[0].ns, 2 * (400 / 1. + 10));
  EXPECT_DOUBLE_EQ(s.ops[1].ns, 2 * (600 / 2. + 2));
  EXPECT_DOUBLE_EQ(s.network_ns, s.ops[0].ns + s.ops[1].ns);
}

TEST(Step, ABranchIsOnAllDevices) {
  const std::string text = R"(HloModule m, replica_count=8
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a,b) }
yes { p = f32[100] parameter(0) ROOT r = f32[100] all-reduce(p), replica_groups={}, to_apply=add }
no { ROOT p = f32[100] parameter(0) }
ENTRY main {
  q = pred[] parameter(0)
  x = f32[100] parameter(1)
  ROOT c = f32[100] conditional(q, x, x), true_computation=yes, false_computation=no
})";
  StepOptions options;
  options.mesh = {2, 4};
  const Step s = step(text, options);
  ASSERT_GE(s.ops.size(), 1u);
  EXPECT_EQ(s.ops[0].span, (Span{4, 2}));
  EXPECT_GT(s.network_ns, 0);
}

TEST(Step, AProjectionWidensTheOutermostGroups) {
  const Machine m = machine();
  const Step wide = project(step(kData), m, 16);
  EXPECT_EQ(wide.devices, 128);
  EXPECT_EQ(wide.ops[0].span, (Span{1, 32}));
  EXPECT_EQ(wide.ops[1].span, (Span{4, 1}));
  EXPECT_DOUBLE_EQ(wide.ops[0].ns, 2 * (800 * 31 / 32. + 310));
}

TEST(Step, WholeArraysArePartitioned) {
  StepOptions options;
  options.partition = true;
  const Step s = step(R"(HloModule m, num_partitions=8
ENTRY main {
  a = f32[64,16] parameter(0), sharding={devices=[8,1]0,1,2,3,4,5,6,7}
  b = f32[16,32] parameter(1), sharding={replicated}
  ROOT c = f32[64,32] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[8,1]0,1,2,3,4,5,6,7}
})",
                      options);
  EXPECT_DOUBLE_EQ(s.flops, 2 * 8 * 16 * 32);
  EXPECT_DOUBLE_EQ(s.memory.arguments, 4 * (8 * 16 + 16 * 32));
  EXPECT_EQ(s.network_ns, 0);
}

TEST(Step, UnknownCallsAndTripsAreNamed) {
  const Step s = step(R"(HloModule m
cond {
  x = f32[] parameter(0)
  one = f32[] constant(1)
  ROOT r = pred[] compare(x, one), direction=GT
}
body {
  x = f32[] parameter(0)
  ROOT y = f32[] custom-call(x), custom_call_target="mystery"
}
ENTRY main {
  x = f32[] parameter(0)
  ROOT y = f32[] while(x), condition=cond, body=body
})");
  ASSERT_EQ(s.notes.size(), 2u);
  EXPECT_NE(s.notes[0].find("unknown number of iterations; 1 taken"), std::string::npos) << s.notes[0];
  EXPECT_NE(s.notes[1].find("custom call 'mystery'"), std::string::npos) << s.notes[1];
}

TEST(Step, AMachineThatIsTooSmallIsRefused) {
  auto module = parse_module("HloModule m, num_partitions=8\nENTRY e {\n  ROOT x = f32[2] parameter(0)\n}\n");
  ASSERT_TRUE(module.ok());
  Machine small = machine();
  small.network.pop_back();
  const auto refused = estimate_step(**module, small, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().message(), "the program runs on 8 devices, the machine's network connects 4");
  const auto message = [&](const std::string& header, const StepOptions& options) {
    auto program = parse_module("HloModule m" + header + "\nENTRY e {\n  ROOT x = f32[2] parameter(0)\n}\n");
    EXPECT_TRUE(program.ok()) << program.status().to_string();
    const auto out = program.ok() ? estimate_step(**program, machine(), options) : program.status();
    return out.ok() ? "none" : out.status().message();
  };
  EXPECT_EQ(message(", replica_count=4294967296, num_partitions=4294967296", {}),
            "the program runs on more than 1048576 devices");
  EXPECT_EQ(message("", {.devices = int64_t{1} << 20, .partition = true}), "none");
  EXPECT_EQ(message("", {.devices = (int64_t{1} << 20) + 1, .partition = true}),
            "the program runs on more than 1048576 devices");
  EXPECT_EQ(message("", {.mesh = {int64_t{1} << 62, 4, 1}}),
            "the axes of the mesh do not give the program's 1 devices");
  small.network.clear();
  EXPECT_FALSE(estimate_step(**module, small, {}).ok());
}

}  // namespace
}  // namespace collet::hlo::estimate
