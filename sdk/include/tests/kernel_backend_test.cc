// SPDX-License-Identifier: Apache-2.0
#include "sdk/include/tests/kernel_fixture.h"

namespace collet::kernel {
namespace {

using Floats = std::vector<float>;

TEST_F(KernelBackend, RunsAChainThroughTheWorkspace) {
  const uint32_t t = w.type(COLLET_TYPE_F32, {3});
  const uint32_t x = w.argument(t), y = w.argument(t);
  const uint32_t a = w.op(COLLET_OP_ADD, t, {x, y});
  const uint32_t b = w.op(COLLET_OP_ADD, t, {a, a});
  const uint32_t c = w.constant<float>(t, {100, 200, 300});
  const uint32_t d = w.op(COLLET_OP_ADD, t, {b, c});
  const auto out = run(w.finish(2, {d, a}), {{1, 2, 3}, {10, 20, 30}});
  ASSERT_EQ(status, COLLET_OK) << error.message;
  EXPECT_EQ(out[0], (Floats{122, 244, 366}));
  EXPECT_EQ(out[1], (Floats{11, 22, 33}));
  EXPECT_EQ(facts.kernels, 3u);
  EXPECT_EQ(facts.traffic_bytes, 3u * 3 * 12);
  EXPECT_EQ(facts.resident_bytes, 12u);
}

TEST_F(KernelBackend, UsesThePlacesOfTheSchedule) {
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  const uint32_t x = w.argument(t);
  const uint32_t a = w.op(COLLET_OP_ADD, t, {x, x});
  const uint32_t b = w.op(COLLET_OP_ADD, t, {a, a});  // overwrites a, which is read for the last time here
  const uint32_t c = w.op(COLLET_OP_ADD, t, {b, x});
  w.values[a].offset = w.values[b].offset = 64;
  w.arena_bytes = 128;
  const auto out = run(w.finish(1, {c}), {{1, 2}});
  EXPECT_EQ(out[0], (Floats{5, 10}));
  EXPECT_EQ(facts.workspace_bytes, 128u);
}

TEST_F(KernelBackend, DistrustsPlacesThatOverlap) {
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  const uint32_t x = w.argument(t);
  const uint32_t a = w.op(COLLET_OP_ADD, t, {x, x});
  const uint32_t b = w.op(COLLET_OP_ADD, t, {x, x});
  const uint32_t c = w.op(COLLET_OP_ADD, t, {a, b});
  const uint32_t d = w.op(COLLET_OP_ADD, t, {c, a});
  w.values[a].offset = w.values[b].offset = w.values[c].offset = 0;
  w.arena_bytes = 64;
  const auto out = run(w.finish(1, {d}), {{1, 2}});
  EXPECT_EQ(out[0], (Floats{6, 12}));
}

TEST_F(KernelBackend, DonatedArgumentIsReadBeforeItIsOverwritten) {
  // r = x + y uses the buffer of x although x is read once more afterwards.
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  const uint32_t x = w.argument(t), y = w.argument(t);
  const uint32_t r = w.op(COLLET_OP_ADD, t, {x, y});
  const uint32_t s = w.op(COLLET_OP_ADD, t, {x, x});
  w.alias(0, 0);
  const auto out = run(w.finish(2, {r, s}), {{1, 2}, {10, 20}}, {0, -1});
  EXPECT_EQ(out[0], (Floats{11, 22}));
  EXPECT_EQ(out[1], (Floats{2, 4}));
}

TEST_F(KernelBackend, ElementwiseResultIsWrittenInPlace) {
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  const uint32_t x = w.argument(t);
  const uint32_t r = w.op(COLLET_OP_ADD, t, {x, x});
  w.alias(0, 0);
  const int copies = TestDevice::copies;
  const auto out = run(w.finish(1, {r}), {{1, 2}}, {0});
  EXPECT_EQ(out[0], (Floats{2, 4}));
  EXPECT_EQ(facts.workspace_bytes, 0u);
  EXPECT_EQ(TestDevice::copies, copies);
}

TEST_F(KernelBackend, SwappedArgumentsMayShareBuffers) {
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  const uint32_t x = w.argument(t), y = w.argument(t);
  w.alias(0, 0);
  w.alias(1, 1);
  const auto out = run(w.finish(2, {y, x}), {{1, 2}, {3, 4}}, {0, 1});
  EXPECT_EQ(out[0], (Floats{3, 4}));
  EXPECT_EQ(out[1], (Floats{1, 2}));
}

TEST_F(KernelBackend, ArgumentsConstantsAndDuplicatesAsResults) {
  const uint32_t t = w.type(COLLET_TYPE_F32, {2}), empty = w.type(COLLET_TYPE_F32, {0});
  const uint32_t x = w.argument(t), e = w.argument(empty);
  const uint32_t a = w.op(COLLET_OP_ADD, t, {x, x});
  const uint32_t c = w.constant<float>(t, {7, 8});
  const uint32_t n = w.op(COLLET_OP_ADD, empty, {e, e});
  const uint32_t s = w.op(COLLET_OP_RESHAPE, t, {a});
  const auto out = run(w.finish(2, {x, a, a, c, n, s}), {{1, 2}, {}});
  ASSERT_EQ(status, COLLET_OK) << error.message;
  EXPECT_EQ(out, (std::vector<Floats>{{1, 2}, {2, 4}, {2, 4}, {7, 8}, {}, {2, 4}}));
}

TEST_F(KernelBackend, ScalarsMayComeByValue) {
  const uint32_t t = w.type(COLLET_TYPE_F32, {});
  const uint32_t x = w.argument(t, COLLET_VALUE_SCALAR);
  const uint32_t r = w.op(COLLET_OP_ADD, t, {x, x});
  collet_backend_executable* executable = compile(w.finish(1, {r}));
  ASSERT_NE(executable, nullptr);
  collet_argument argument{}, result{};
  argument.flags = COLLET_ARG_IMMEDIATE;
  const float value = 21;
  std::memcpy(argument.immediate, &value, sizeof value);
  result.buffer = buffer(4);
  collet_launch launch{};
  launch.arguments = &argument;
  launch.results = &result;
  launch.argument_count = launch.result_count = 1;
  ASSERT_GT(facts.workspace_bytes, 0u);
  launch.workspace.buffer = buffer(facts.workspace_bytes);
  launch.workspace.bytes = facts.workspace_bytes;
  argument.bytes = result.bytes = 4;
  EXPECT_EQ(table->execute(executable, &launch, 1, 1, &error), COLLET_OK) << error.message;
  float out = 0;
  transfer(result.buffer, &out, 4, false);
  EXPECT_EQ(out, 42);
  table->free(instance, result.buffer);
  table->free(instance, launch.workspace.buffer);
  table->release(executable);
}

TEST_F(KernelBackend, ProductsAndReductions) {
  const uint32_t s = w.type(COLLET_TYPE_F32, {}), m = w.type(COLLET_TYPE_F32, {2, 3}), v = w.type(COLLET_TYPE_F32, {2});
  const uint32_t p = w.type(COLLET_TYPE_F32, {2, 2}), u = w.type(COLLET_TYPE_F32, {3});
  const uint32_t x = w.argument(m), y = w.argument(m), init = w.argument(s);
  collet_dot_attrs dot{};
  dot.lhs_contracting = w.list({1});
  dot.rhs_contracting = w.list({1});
  const uint32_t product = w.op(COLLET_OP_DOT, p, {x, y}, dot);
  const uint32_t rows = w.op(COLLET_OP_REDUCE, v, {x, init}, collet_dimensions_attrs{w.list({1})});
  w.region(COLLET_COMBINE_ADD);
  const uint32_t columns = w.op(COLLET_OP_REDUCE, u, {x, init}, collet_dimensions_attrs{w.list({0})});
  w.region(COLLET_COMBINE_ADD);
  const auto out = run(w.finish(3, {product, rows, columns}), {{1, 2, 3, 4, 5, 6}, {1, 0, 0, 0, 1, 10}, {0.5}});
  ASSERT_EQ(status, COLLET_OK) << error.message;
  EXPECT_EQ(out[0], (Floats{1, 32, 4, 65}));
  EXPECT_EQ(out[1], (Floats{6.5, 15.5}));
  EXPECT_EQ(out[2], (Floats{5.5, 7.5, 9.5}));
  EXPECT_GE(facts.workspace_bytes, 1000u) << "scratch";
}

TEST_F(KernelBackend, Moves) {
  const uint32_t m = w.type(COLLET_TYPE_F32, {2, 3}), t = w.type(COLLET_TYPE_F32, {3, 2}),
                 v = w.type(COLLET_TYPE_F32, {3});
  const uint32_t s = w.type(COLLET_TYPE_F32, {}), padded = w.type(COLLET_TYPE_F32, {2, 6});
  const uint32_t joined = w.type(COLLET_TYPE_F32, {4, 3}), cut = w.type(COLLET_TYPE_F32, {2, 2});
  const uint32_t x = w.argument(m), y = w.argument(v), zero = w.argument(s);
  std::vector<uint32_t> results;
  results.push_back(w.op(COLLET_OP_TRANSPOSE, t, {x}, collet_dimensions_attrs{w.list({1, 0})}));
  results.push_back(w.op(COLLET_OP_BROADCAST, m, {y}, collet_broadcast_attrs{w.list({1})}));
  results.push_back(w.op(COLLET_OP_REVERSE, m, {x}, collet_dimensions_attrs{w.list({1})}));
  results.push_back(w.op(COLLET_OP_CONCATENATE, joined, {x, x}, collet_dimension_attrs{0}));
  results.push_back(
      w.op(COLLET_OP_SLICE, cut, {x}, collet_slice_attrs{w.list({0, 0}), w.list({2, 3}), w.list({1, 2})}));
  results.push_back(
      w.op(COLLET_OP_PAD, padded, {x, zero}, collet_pad_attrs{w.list({0, -1}), w.list({0, 2}), w.list({0, 1})}));
  const auto out = run(w.finish(3, results), {{1, 2, 3, 4, 5, 6}, {7, 8, 9}, {0}});
  ASSERT_EQ(status, COLLET_OK) << error.message;
  EXPECT_EQ(out[0], (Floats{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(out[1], (Floats{7, 8, 9, 7, 8, 9}));
  EXPECT_EQ(out[2], (Floats{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(out[3], (Floats{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(out[4], (Floats{1, 3, 4, 6}));
  EXPECT_EQ(out[5], (Floats{0, 2, 0, 3, 0, 0, 0, 5, 0, 6, 0, 0}));
}

TEST_F(KernelBackend, DynamicSlicesAreClamped) {
  const uint32_t v = w.type(COLLET_TYPE_F32, {4}), two = w.type(COLLET_TYPE_F32, {2}), i = w.type(COLLET_TYPE_S32, {});
  const uint32_t x = w.argument(v), y = w.argument(two);
  const uint32_t far = w.constant<int32_t>(i, {3}), below = w.constant<int32_t>(i, {-5});
  const uint32_t a = w.op(COLLET_OP_DYNAMIC_SLICE, two, {x, far}, collet_dynamic_slice_attrs{w.list({2})});
  const uint32_t b = w.op(COLLET_OP_DYNAMIC_UPDATE_SLICE, v, {x, y, below});
  const auto out = run(w.finish(2, {a, b}), {{1, 2, 3, 4}, {9, 8}});
  ASSERT_EQ(status, COLLET_OK) << error.message;
  EXPECT_EQ(out[0], (Floats{3, 4}));
  EXPECT_EQ(out[1], (Floats{9, 8, 3, 4}));
}

TEST_F(KernelBackend, FusionsRunOpByOp) {
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  const uint32_t x = w.argument(t);
  const uint32_t f = w.op(COLLET_OP_FUSION, t, {x}, collet_fusion_attrs{});
  const uint32_t r = w.op(COLLET_OP_ADD, t, {f, x});
  w.region(0);
  w.ops[0].regions = w.ops[1].regions;
  w.ops[1].regions = {};
  const uint32_t inner = w.argument(t);
  const uint32_t a = w.op(COLLET_OP_ADD, t, {inner, inner});
  const uint32_t b = w.op(COLLET_OP_ADD, t, {a, inner});
  w.refs.push_back(b);
  w.regions[1].ops = {2, 2};
  w.regions[1].arguments = {inner, 1};
  w.regions[1].results = {static_cast<uint32_t>(w.refs.size() - 1), 1};
  std::vector<uint64_t> block = w.finish(1, {r});
  auto* entry = const_cast<collet_region*>(collet_region_at(program_of(block), 0));
  entry->ops.count = 2;
  const auto out = run(block, {{1, 2}});
  ASSERT_EQ(status, COLLET_OK) << error.message;
  EXPECT_EQ(out[0], (Floats{4, 8}));
}

TEST_F(KernelBackend, Answers) {
  const uint32_t f = w.type(COLLET_TYPE_F32, {2}), s = w.type(COLLET_TYPE_S32, {2}), h = w.type(COLLET_TYPE_F16, {2});
  const uint32_t x = w.argument(f), y = w.argument(s), z = w.argument(h),
                 scalar = w.argument(w.type(COLLET_TYPE_F32, {}));
  w.op(COLLET_OP_ADD, f, {x, x});
  w.op(COLLET_OP_ADD, s, {y, y});
  w.op(COLLET_OP_TANH, f, {x});
  w.op(COLLET_OP_RESHAPE, h, {z});
  w.op(COLLET_OP_ADD, f, {x, x});
  w.ops.back().since = COLLET_OPSET + 1;
  w.op(COLLET_OP_ADD, f, {x, x});
  w.ops.back().reserved = 1;
  w.op(COLLET_OP_REDUCE, w.type(COLLET_TYPE_F32, {}), {x, scalar}, collet_dimensions_attrs{w.list({0})});
  w.region(COLLET_COMBINE_MAXIMUM);
  w.op(COLLET_OP_REDUCE, w.type(COLLET_TYPE_F32, {}), {x, scalar}, collet_dimensions_attrs{w.list({0})});
  w.region(COLLET_COMBINE_ADD);
  const std::vector<uint64_t> block = w.finish(4, {});
  std::vector<uint32_t> ids(w.ops.size());
  for (uint32_t i = 0; i < ids.size(); ++i) ids[i] = i;
  std::vector<collet_verdict> verdicts(ids.size());
  ASSERT_EQ(table->supports(instance, 0, program_of(block), ids.data(), static_cast<uint32_t>(ids.size()),
                            verdicts.data(), &error),
            COLLET_OK);
  std::vector<std::string> answers;
  for (const collet_verdict& verdict : verdicts) {
    answers.push_back(verdict.answer == COLLET_ACCEPT ? "yes" : verdict.reason);
  }
  EXPECT_EQ(answers,
            (std::vector<std::string>{"yes", "no kernel for these element types", "no kernel",
                                      "an element type that the device lacks", "newer than this backend",
                                      "newer than this backend", "no kernel for these attributes or shapes", "yes"}));
  EXPECT_EQ(verdicts.back().cost_ns, 42);
  EXPECT_EQ(compile(block), nullptr);
  EXPECT_EQ(status, COLLET_UNIMPLEMENTED);
  EXPECT_EQ(rejection.count, 6u);
  EXPECT_EQ(rejected[0], 1u);
}

TEST_F(KernelBackend, ExceptionsStayInside) {
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  const uint32_t x = w.argument(t);
  w.op(COLLET_OP_NEGATE, t, {x});
  run(w.finish(1, {1}), {{1, 2}});
  EXPECT_EQ(status, COLLET_UNAVAILABLE);
  EXPECT_STREQ(error.message, "lost: ");
  w.ops[0].opcode = COLLET_OP_SQRT;
  run(w.finish(1, {1}), {{1, 2}});
  EXPECT_EQ(status, COLLET_INTERNAL);
}

TEST_F(KernelBackend, FailureAfterADonatedArgumentWasOverwrittenIsDataLoss) {
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  const uint32_t x = w.argument(t), y = w.argument(t);
  const uint32_t r = w.op(COLLET_OP_ADD, t, {x, y});
  const uint32_t s = w.op(COLLET_OP_NEGATE, t, {y});
  w.alias(0, 0);
  const std::vector<uint64_t> block = w.finish(2, {r, s});
  run(block, {{1, 2}, {3, 4}}, {0, -1});
  EXPECT_EQ(status, COLLET_DATA_LOSS);
  EXPECT_STREQ(error.message, "lost: ; donated arguments were overwritten before that");
  run(block, {{1, 2}, {3, 4}});  // the same program without shared buffers
  EXPECT_EQ(status, COLLET_UNAVAILABLE);
}

TEST_F(KernelBackend, FailureWaitsForWhatWasStarted) {
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  const uint32_t x = w.argument(t);
  const uint32_t r = w.op(COLLET_OP_NEGATE, t, {w.op(COLLET_OP_ADD, t, {x, x})});
  const int finished = TestDevice::finished;
  run(w.finish(1, {r}), {{1, 2}});
  EXPECT_EQ(status, COLLET_UNAVAILABLE);
  EXPECT_GT(TestDevice::finished, finished);
}

TEST_F(KernelBackend, CopyThatFailsWaitsForWhatWasStarted) {
  collet_backend_buffer* one = buffer(8);
  char host[8] = {};
  TestDevice::writes_until_failure = 0;
  const int finished = TestDevice::finished;
  const collet_copy_region region{{nullptr, host, 0}, {one, nullptr, 0}, 8};
  EXPECT_EQ(table->copy(instance, &region, 1, nullptr, &error), COLLET_INTERNAL);
  EXPECT_GT(TestDevice::finished, finished);
  table->free(instance, one);
}

TEST_F(KernelBackend, IndicesThatTheHostKnowsAreNotReadFromTheDevice) {
  const uint32_t v = w.type(COLLET_TYPE_F32, {4}), two = w.type(COLLET_TYPE_F32, {2}), i = w.type(COLLET_TYPE_S32, {});
  const uint32_t x = w.argument(v), at = w.argument(i, COLLET_VALUE_SCALAR);
  const uint32_t fixed = w.constant<int32_t>(i, {2});
  const uint32_t a = w.op(COLLET_OP_DYNAMIC_SLICE, two, {x, fixed}, collet_dynamic_slice_attrs{w.list({2})});
  const uint32_t b = w.op(COLLET_OP_DYNAMIC_SLICE, two, {x, at}, collet_dynamic_slice_attrs{w.list({2})});
  by_value = {{1, 1}};
  const auto out = run(w.finish(2, {a, b}), {{1, 2, 3, 4}, {0}});
  ASSERT_EQ(status, COLLET_OK) << error.message;
  EXPECT_EQ(out[0], (Floats{3, 4}));
  EXPECT_EQ(out[1], (Floats{2, 3}));
  EXPECT_EQ(reads_of_execution, 0);
}

// Indices as JAX computes them: negative ones count from the end.
TEST_F(KernelBackend, IndicesThatFollowFromScalarsAreWorkedOutOnTheHost) {
  const uint32_t v = w.type(COLLET_TYPE_F32, {4}), two = w.type(COLLET_TYPE_F32, {2}), i = w.type(COLLET_TYPE_S32, {}),
                 p = w.type(COLLET_TYPE_PRED, {});
  const uint32_t x = w.argument(v), at = w.argument(i, COLLET_VALUE_SCALAR);
  const uint32_t zero = w.constant<int32_t>(i, {0}), four = w.constant<int32_t>(i, {4});
  const uint32_t below =
      w.op(COLLET_OP_COMPARE, p, {at, zero}, collet_compare_attrs{COLLET_DIRECTION_LT, COLLET_COMPARE_SIGNED});
  const uint32_t from_end = w.op(COLLET_OP_ADD, i, {at, four});
  const uint32_t start = w.op(COLLET_OP_SELECT, i, {below, from_end, at});
  const uint32_t a = w.op(COLLET_OP_DYNAMIC_SLICE, two, {x, start}, collet_dynamic_slice_attrs{w.list({2})});
  const std::vector<uint64_t> block = w.finish(2, {a});
  for (const auto& [index, first] : std::vector<std::pair<int32_t, float>>{{-3, 2}, {1, 2}, {-4, 1}, {9, 3}, {-9, 1}}) {
    by_value = {{1, index}};
    const auto out = run(block, {{1, 2, 3, 4}, {0}});
    ASSERT_EQ(status, COLLET_OK) << error.message;
    EXPECT_EQ(out[0][0], first) << index;
    EXPECT_EQ(reads_of_execution, 0);
  }
}

TEST_F(KernelBackend, RefusesWhatIsNotThere) {
  collet_backend_instance* other = nullptr;
  collet_open_options options{};
  options.struct_size = sizeof options;
  options.target = "nowhere";
  collet_instance_info info{};
  info.struct_size = sizeof info;
  EXPECT_EQ(table->open(&options, &other, &info, &error), COLLET_NOT_FOUND);
  options.target = nullptr;
  const char *key = "speed", *value = "high";
  options.keys = &key;
  options.values = &value;
  options.pairs = 1;
  EXPECT_EQ(table->open(&options, &other, &info, &error), COLLET_INVALID_ARGUMENT);
  EXPECT_EQ(other, nullptr);
  collet_backend_buffer* one = nullptr;
  void* host = nullptr;
  EXPECT_EQ(table->alloc(instance, 1, 0, 8, 64, &one, &host, &error), COLLET_OUT_OF_RANGE);
  EXPECT_EQ(table->alloc(instance, 0, 1, 8, 64, &one, &host, &error), COLLET_OUT_OF_RANGE);
  EXPECT_EQ(table->alloc(instance, 0, 0, 8, 48, &one, &host, &error), COLLET_INVALID_ARGUMENT);
  EXPECT_EQ(one, nullptr);
}

TEST_F(KernelBackend, CopyBeyondTheEndCopiesNothing) {
  collet_backend_buffer* one = buffer(8);
  float data[2] = {1, 2}, more[4] = {5, 6, 7, 8}, out[2] = {};
  transfer(one, data, 8, true);
  const collet_copy_region regions[] = {{{nullptr, more, 0}, {one, nullptr, 0}, 8},
                                        {{nullptr, more, 0}, {one, nullptr, UINT64_MAX - 3}, 8}};
  EXPECT_EQ(table->copy(instance, regions, 2, nullptr, &error), COLLET_OUT_OF_RANGE);
  const collet_copy_region nowhere{{nullptr, nullptr, 0}, {one, nullptr, 0}, 8};
  EXPECT_EQ(table->copy(instance, &nowhere, 1, nullptr, &error), COLLET_INVALID_ARGUMENT);
  transfer(one, out, 8, false);
  EXPECT_EQ(out[0], 1);
  table->free(instance, one);
}

TEST_F(KernelBackend, MemoryStatistics) {
  const auto* stats = static_cast<const collet_memory_stats_table*>(table->query(instance, "memory_stats", 1));
  ASSERT_NE(stats, nullptr);
  EXPECT_EQ(table->query(instance, "memory_stats", 2), nullptr);
  EXPECT_EQ(table->query(instance, "queue", 1), nullptr);
  collet_backend_buffer *one = buffer(100), *two = buffer(50);
  table->free(instance, one);
  collet_memory_stats said{};
  said.struct_size = sizeof said;
  ASSERT_EQ(stats->get(instance, 0, 0, &said, &error), COLLET_OK);
  EXPECT_EQ(said.bytes_in_use, 50u);
  EXPECT_EQ(said.peak_bytes_in_use, 150u);
  EXPECT_EQ(said.allocations, 1u);
  EXPECT_EQ(stats->get(instance, 0, 1, &said, &error), COLLET_OUT_OF_RANGE);
  table->free(instance, two);
}

TEST_F(KernelBackend, ExecutablesAsBytes) {
  const auto* aot = static_cast<const collet_aot_table*>(table->query(instance, "aot", 1));
  ASSERT_NE(aot, nullptr);
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  const uint32_t x = w.argument(t);
  const std::vector<uint64_t> program = w.finish(1, {w.op(COLLET_OP_ADD, t, {x, x})});
  collet_backend_executable *made = compile(program), *loaded = nullptr;
  ASSERT_NE(made, nullptr);
  uint64_t bytes = 0;
  ASSERT_EQ(aot->serialize(made, nullptr, 0, &bytes, &error), COLLET_OK);
  std::string text(bytes, '\0');
  ASSERT_EQ(aot->serialize(made, &text[0], bytes, &bytes, &error), COLLET_OK);
  collet_compile_options options{};
  options.struct_size = sizeof options;
  ASSERT_EQ(aot->load(instance, text.data(), text.size(), &options, &loaded, &facts, &error), COLLET_OK);
  table->release(loaded);
  loaded = nullptr;
  for (size_t broken : {size_t{0}, size_t{20}, text.size() / 2, text.size() - 1}) {
    std::string other = text;
    other[broken] = static_cast<char>(other[broken] ^ 1);
    EXPECT_EQ(aot->load(instance, other.data(), other.size(), &options, &loaded, &facts, &error), COLLET_DATA_LOSS);
    EXPECT_EQ(aot->load(instance, text.data(), broken, &options, &loaded, &facts, &error), COLLET_DATA_LOSS);
  }
  EXPECT_EQ(loaded, nullptr);
  table->release(made);
}

/// A program that computes nothing, and records what `tune` was called with.
class TunedProgram final : public WholeProgram {
 public:
  struct Loaded final : DeviceProgram {
    void launch(Device&, const std::vector<Piece>&, uint64_t) override {}
  };
  static std::vector<std::string>& known() {
    static std::vector<std::string> all;
    return all;
  }
  std::string tune(Device&, const std::string& before) override {
    known().push_back(before);
    return before.empty() ? "measured" : before;
  }
  std::unique_ptr<DeviceProgram> load(Device&) override { return std::make_unique<Loaded>(); }
};

class TunedCompiler final : public ProgramCompiler {
 public:
  void answer(const collet_program*, const uint32_t*, uint32_t count, collet_verdict* verdicts) const override {
    for (uint32_t i = 0; i < count; ++i) verdicts[i].answer = COLLET_ACCEPT;
  }
  std::unique_ptr<WholeProgram> compile(const collet_program*, bool, std::vector<uint32_t>* rejected) const override {
    rejected->clear();
    return std::make_unique<TunedProgram>();
  }
};

Backend describe_tuned() {
  Backend backend = describe();
  backend.kernels.clear();
  backend.compiler = std::make_shared<TunedCompiler>();
  return backend;
}

TEST_F(KernelBackend, WhatWasMeasuredIsKeptWithTheExecutable) {
  table->close(instance);
  ASSERT_NO_FATAL_FAILURE(open_instance(detail::enter<describe_tuned>));
  const auto* aot = static_cast<const collet_aot_table*>(table->query(instance, "aot", 1));
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  const uint32_t x = w.argument(t);
  collet_backend_executable *made = compile(w.finish(1, {w.op(COLLET_OP_ADD, t, {x, x})})), *loaded = nullptr;
  ASSERT_NE(made, nullptr) << error.message;
  std::string text(100000, '\0');
  uint64_t bytes = 0;
  ASSERT_EQ(aot->serialize(made, &text[0], text.size(), &bytes, &error), COLLET_OK);
  collet_compile_options options{};
  options.struct_size = sizeof options;
  ASSERT_EQ(aot->load(instance, text.data(), bytes, &options, &loaded, &facts, &error), COLLET_OK) << error.message;
  EXPECT_EQ(TunedProgram::known(), (std::vector<std::string>{"", "measured"}));
  table->release(loaded);
  table->release(made);
}

/// x + w of two elements. w is packed as its negative, x may come with its elements exchanged, and the code can be kept.
class PackingProgram final : public WholeProgram {
 public:
  struct Loaded final : DeviceProgram {
    void launch(Device& device, const std::vector<Piece>& pieces, uint64_t) override {
      auto& test = static_cast<TestDevice&>(device);
      const auto at = [&](const Piece& piece, int i) {
        return reinterpret_cast<float*>(test.find(piece.memory, piece.offset, 8))[piece.has_layout ? 1 - i : i];
      };
      for (int i = 0; i < 2; ++i) {
        reinterpret_cast<float*>(test.find(pieces[2].memory, pieces[2].offset, 8))[i] =
            at(pieces[0], i) + (pieces[1].is_packed ? -1 : 1) * at(pieces[1], i);
      }
    }
  };
  explicit PackingProgram(std::string code) : code_(std::move(code)) {
    packed_arguments = {{1, 8}};
    argument_layouts.resize(1);
    argument_layouts[0].bytes = 8;
    argument_layouts[0].rank = 1;
    estimated_ns = 120;
    energy_nj = 7;
    cycles = 99;
  }
  std::unique_ptr<DeviceProgram> load(Device&) override { return std::make_unique<Loaded>(); }
  std::string serialize() const override { return code_; }
  void pack(Device& device, uint32_t argument, const Piece& from, const Piece& to) override {
    EXPECT_EQ(argument, 1u);
    auto& test = static_cast<TestDevice&>(device);
    for (uint64_t i = 0; i < 2; ++i) {
      *reinterpret_cast<float*>(test.find(to.memory, to.offset + 4 * i, 4)) =
          -*reinterpret_cast<float*>(test.find(from.memory, from.offset + 4 * i, 4));
    }
  }

 private:
  std::string code_;
};

class PackingCompiler final : public ProgramCompiler {
 public:
  void answer(const collet_program*, const uint32_t*, uint32_t count, collet_verdict* verdicts) const override {
    for (uint32_t i = 0; i < count; ++i) verdicts[i].answer = COLLET_ACCEPT;
  }
  std::unique_ptr<WholeProgram> compile(const collet_program*, bool, std::vector<uint32_t>* rejected) const override {
    rejected->clear();
    ++compiled;
    return std::make_unique<PackingProgram>("code of x + w");
  }
  std::unique_ptr<WholeProgram> restore(const collet_program*, const std::string& bytes) const override {
    restored.push_back(bytes);
    return bytes == "code of x + w" ? std::make_unique<PackingProgram>(bytes) : nullptr;
  }
  bool has_layouts() const override { return true; }
  bool packs_arguments() const override { return true; }
  const char* pattern(uint32_t index) const override { return index == 0 ? "acme.sum" : nullptr; }
  const char* pattern_text(uint32_t index) const override { return index == 0 ? "HloModule acme.sum" : nullptr; }

  static inline int compiled = 0;
  static inline std::vector<std::string> restored;
};

Backend describe_packing() {
  Backend backend = describe();
  backend.kernels.clear();
  backend.compiler = std::make_shared<PackingCompiler>();
  backend.peaks = {{COLLET_PEAK_PRODUCT, COLLET_TYPE_S8, 512, 0}};
  return backend;
}

TEST_F(KernelBackend, AWholeProgramHasPackedArgumentsLayoutsAndCode) {
  table->close(instance);
  ASSERT_NO_FATAL_FAILURE(open_instance(detail::enter<describe_packing>));
  collet_device_info device{};
  device.struct_size = sizeof device;
  ASSERT_EQ(table->device_info(instance, 0, &device, &error), COLLET_OK);
  ASSERT_EQ(device.peak_count, 1u);
  EXPECT_EQ(device.peaks[0].per_ns, 512);
  const auto* aot = static_cast<const collet_aot_table*>(table->query(instance, "aot", 1));
  const auto* layouts = static_cast<const collet_layout_table*>(table->query(instance, "layout", 1));
  const auto* residency = static_cast<const collet_residency_table*>(table->query(instance, "residency", 1));
  const auto* patterns = static_cast<const collet_patterns_table*>(table->query(instance, "patterns", 1));
  ASSERT_TRUE(aot && layouts && residency && patterns);
  EXPECT_STREQ(patterns->text(instance, 0, 0), "HloModule acme.sum");
  EXPECT_EQ(patterns->text(instance, 0, 1), nullptr);
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  const uint32_t x = w.argument(t), y = w.argument(t);
  collet_backend_executable* made = compile(w.finish(2, {w.op(COLLET_OP_ADD, t, {x, y})}));
  ASSERT_NE(made, nullptr) << error.message;
  EXPECT_EQ(facts.estimated_ns, 120);
  EXPECT_EQ(facts.energy_nj, 7);
  EXPECT_EQ(facts.cycles, 99u);
  std::string bytes(100000, '\0');
  uint64_t size = 0;
  ASSERT_EQ(aot->serialize(made, &bytes[0], bytes.size(), &size, &error), COLLET_OK);
  const int compiled = PackingCompiler::compiled;
  collet_compile_options options{};
  options.struct_size = sizeof options;
  collet_backend_executable* loaded = nullptr;
  ASSERT_EQ(aot->load(instance, bytes.data(), size, &options, &loaded, &facts, &error), COLLET_OK) << error.message;
  EXPECT_EQ(PackingCompiler::compiled, compiled);
  EXPECT_EQ(PackingCompiler::restored.back(), "code of x + w");
  EXPECT_EQ(facts.cycles, 99u);
  EXPECT_EQ(residency->wants(loaded, 0), 0u);
  EXPECT_EQ(residency->wants(loaded, 1), 1u);
  collet_layout layout{};
  ASSERT_EQ(layouts->of(loaded, 0, 0, &layout, &error), COLLET_OK);
  EXPECT_EQ(layout.bytes, 8u);
  float xs[2] = {1, 2}, exchanged[2] = {2, 1}, ys[2] = {10, 20};
  collet_backend_buffer *bx = buffer(8), *by = buffer(8), *br = buffer(8), *packed = nullptr;
  transfer(by, ys, 8, true);
  collet_argument arguments[2] = {}, result{};
  arguments[0].buffer = bx, arguments[1].buffer = by, result.buffer = br;
  arguments[0].bytes = arguments[1].bytes = result.bytes = 8;
  ASSERT_EQ(residency->prepare(loaded, 0, 1, &arguments[1], &packed, &error), COLLET_OK) << error.message;
  collet_launch launch{};
  launch.arguments = arguments, launch.argument_count = 2;
  launch.results = &result, launch.result_count = 1;
  for (const bool has_layout : {false, true}) {
    for (const bool is_packed : {false, true}) {
      transfer(bx, has_layout ? exchanged : xs, 8, true);
      arguments[0].layout = has_layout;
      arguments[1].flags = is_packed ? COLLET_ARG_PREPARED : 0;
      arguments[1].buffer = is_packed ? packed : by;
      ASSERT_EQ(table->execute(loaded, &launch, 1, 1, &error), COLLET_OK) << error.message;
      float out[2] = {};
      transfer(br, out, 8, false);
      EXPECT_EQ(out[0], 11);
      EXPECT_EQ(out[1], 22);
    }
  }
  for (collet_backend_buffer* one : {bx, by, br, packed}) table->free(instance, one);
  table->release(loaded);
  table->release(made);
}

TEST_F(KernelBackend, RefusesWhatItCannotRead) {
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  const uint32_t x = w.argument(t);
  w.op(COLLET_OP_ADD, t, {x, x});
  const std::vector<uint64_t> good = w.finish(1, {1});
  const auto broken = [&](auto change) {
    std::vector<uint64_t> block = good;
    change(reinterpret_cast<collet_program*>(block.data()));
    EXPECT_EQ(compile(block), nullptr);
    EXPECT_EQ(status, COLLET_INVALID_ARGUMENT);
  };
  broken([](collet_program* p) { p->magic = 1; });
  broken([](collet_program* p) { p->flags = 1; });
  broken([](collet_program* p) { p->reserved[1] = 1; });
  broken([](collet_program* p) { p->ops.stride = 8; });
  broken([](collet_program* p) { p->values.offset = p->total_bytes; });
  broken([](collet_program* p) { p->regions.count = 0; });
}

TEST_F(KernelBackend, RunningOutOfMemoryLeavesNothingBehind) {
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  const uint32_t x = w.argument(t), c = w.constant<float>(t, {1, 2});
  const uint32_t r = w.op(COLLET_OP_ADD, t, {x, c});
  const std::vector<uint64_t> block = w.finish(1, {r});
  allocations_until_failure = 0;
  EXPECT_EQ(compile(block), nullptr);
  EXPECT_EQ(status, COLLET_RESOURCE_EXHAUSTED);
  collet_backend_buffer* out = nullptr;
  allocations_until_failure = 0;
  EXPECT_EQ(table->alloc(instance, 0, 0, 8, 64, &out, nullptr, &error), COLLET_RESOURCE_EXHAUSTED);
  EXPECT_EQ(out, nullptr);
}

TEST_F(KernelBackend, WrongLaunchesAreRefused) {
  const uint32_t t = w.type(COLLET_TYPE_F32, {2});
  const uint32_t x = w.argument(t);
  const uint32_t r = w.op(COLLET_OP_ADD, t, {x, x});
  collet_backend_executable* executable = compile(w.finish(1, {r}));
  ASSERT_NE(executable, nullptr);
  collet_launch launch{};
  EXPECT_EQ(table->execute(executable, &launch, 1, 1, &error), COLLET_INVALID_ARGUMENT);
  collet_argument argument{}, result{};
  launch.arguments = &argument;
  launch.results = &result;
  launch.argument_count = launch.result_count = 1;
  argument.bytes = result.bytes = 8;
  EXPECT_EQ(table->execute(executable, &launch, 1, 1, &error), COLLET_INVALID_ARGUMENT) << "no buffer";
  argument.buffer = result.buffer = buffer(4);
  EXPECT_EQ(table->execute(executable, &launch, 1, 1, &error), COLLET_INVALID_ARGUMENT) << "too small a buffer";
  table->free(instance, argument.buffer);
  argument.buffer = result.buffer = buffer(8);
  result.bytes = 4;
  EXPECT_EQ(table->execute(executable, &launch, 1, 1, &error), COLLET_INVALID_ARGUMENT) << "too few bytes";
  result.bytes = 8;
  launch.device = 5;
  EXPECT_EQ(table->execute(executable, &launch, 1, 1, &error), COLLET_OUT_OF_RANGE);
  table->free(instance, argument.buffer);
  table->release(executable);
}

TEST_F(KernelBackend, CopiesBeyondTheEndAreRefused) {
  collet_backend_buffer* one = buffer(8);
  char host[16] = {};
  const collet_copy_region region{{nullptr, host, 0}, {one, nullptr, 4}, 8};
  EXPECT_EQ(table->copy(instance, &region, 1, nullptr, &error), COLLET_OUT_OF_RANGE);
  table->free(instance, one);
}

TEST(KernelEntry, RefusesAnotherAbi) {
  collet_host host{};
  host.abi_major = COLLET_ABI_MAJOR + 1;
  const collet_backend* table = nullptr;
  collet_error error{};
  EXPECT_EQ(detail::enter<describe>(&host, &table, &error), COLLET_FAILED_PRECONDITION);
  EXPECT_EQ(table, nullptr);
}

TEST(KernelErrors, MessagesAreCutBetweenCharacters) {
  collet_error error{};
  std::string message(502, 'a');
  message += "\xc3\xa9\xc3\xa9";
  collet_set_error(&error, COLLET_INTERNAL, message.c_str());
  EXPECT_EQ(std::string(error.message), std::string(502, 'a'));
}

}  // namespace
}  // namespace collet::kernel
