// SPDX-License-Identifier: Apache-2.0
#include <collet/collet.h>
#include <gmock/gmock.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "sdk/runtime/testing/programs.h"
#include "sdk/runtime/testing/session.h"

namespace collet::testing {
namespace {

constexpr uint32_t kDevices = 8;

std::string with_sum(const std::string& header, const std::string& entry) {
  return "HloModule m, " + header + "\n" + combiner("sum", "add", "s32") + R"(ENTRY e {
  x = s32[8] parameter(0)
  )" + entry +
         "\n}";
}

/// The numbers of replicas and partitions; their product is 8.
struct Mesh {
  std::string backend;
  uint32_t replicas, partitions;
};

/// Tests programs of eight participants, each on a device of its own; element i of participant p's argument is 100 p +
/// i.
class Collective : public ::testing::TestWithParam<Mesh>, public Session {
 protected:
  std::string header() const {
    return "replica_count=" + std::to_string(GetParam().replicas) +
           ", num_partitions=" + std::to_string(GetParam().partitions);
  }

  std::vector<std::vector<int32_t>> run_all(const std::string& text) {
    const bool itself = GetParam().backend == "cpu" || GetParam().backend == "interpreter";
    const bool alone = itself || GetParam().backend.rfind("kernels", 0) == 0;
    const ClientPtr client = open(itself ? GetParam().backend : test_backend(GetParam().backend),
                                  alone ? "none" : "interpreter", nullptr, kDevices);
    if (!client) return fail();
    const ExecutablePtr e = compile(client.get(), text);
    if (!e) return fail();
    std::vector<BufferPtr> in;
    const int64_t dims[] = {8};
    for (uint32_t p = 0; p < kDevices; ++p) {
      std::vector<int32_t> x(8);
      std::iota(x.begin(), x.end(), static_cast<int32_t>(100 * p));
      in.push_back(upload(client.get(), {COLLET_TYPE_S32, 1, dims}, x.data(), p));
    }
    const auto out = run(e.get(), in);
    if (out.size() != kDevices) return fail();
    std::vector<std::vector<int32_t>> values;
    for (uint32_t p = 0; p < kDevices; ++p) {
      EXPECT_EQ(collet_buffer_device(out[p].get()), p);
      values.push_back(download<int32_t>(out[p]));
    }
    return values;
  }

  /// The expected groups of participants, given by their numbers replica * partitions + partition.
  using Groups = std::vector<std::vector<uint32_t>>;

  /// Returns one group per partition, with its replicas.
  Groups of_replicas() const {
    Groups groups(GetParam().partitions);
    for (uint32_t p = 0; p < kDevices; ++p) groups[p % GetParam().partitions].push_back(p);
    return groups;
  }
  /// Returns one group per replica, with its partitions.
  Groups of_partitions() const {
    Groups groups(GetParam().replicas);
    for (uint32_t p = 0; p < kDevices; ++p) groups[p / GetParam().partitions].push_back(p);
    return groups;
  }
  /// Returns the text "0,1,...,n-1".
  static std::string counting(uint32_t n) {
    std::string out = "{";
    for (uint32_t i = 0; i < n; ++i) out += (i ? "," : "") + std::to_string(i);
    return out + "}";
  }

  /// A way to state groups in the program, and the groups that it means.
  struct Mode {
    std::string attributes;
    Groups groups;
  };
  std::vector<Mode> modes() const {
    const Groups pairs = {{0, 5}, {1, 4}, {2, 7}, {3, 6}};
    return {{"replica_groups={" + counting(GetParam().replicas) + "}", of_replicas()},
            {"channel_id=1, replica_groups={" + counting(GetParam().replicas) + "}", {{0, 1, 2, 3, 4, 5, 6, 7}}},
            {"channel_id=1, replica_groups={{0,5},{1,4},{2,7},{3,6}}, use_global_device_ids=true", pairs},
            {"channel_id=1, replica_groups=[4,2]<=[2,4]T(1,0), use_global_device_ids=true",
             {{0, 4}, {1, 5}, {2, 6}, {3, 7}}}};
  }

  static int32_t input(uint32_t participant, size_t i) { return static_cast<int32_t>(100 * participant + i); }
  static int32_t sum(const std::vector<uint32_t>& group, size_t i) {
    int32_t out = 0;
    for (uint32_t p : group) out += input(p, i);
    return out;
  }

 private:
  std::vector<std::vector<int32_t>> fail() {
    ADD_FAILURE() << failure.message;
    return std::vector<std::vector<int32_t>>(kDevices);
  }
};

TEST_P(Collective, AllReduce) {
  for (const Mode& mode : modes()) {
    // With global ids over replicas and partitions, a group of replicas includes all their partitions.
    const auto out = run_all(with_sum(header(), "ROOT r = s32[8] all-reduce(x), to_apply=sum, " + mode.attributes));
    for (const auto& group : mode.groups)
      for (uint32_t p : group)
        for (size_t i = 0; i < 8; ++i)
          ASSERT_EQ(out[p].size() == 8 ? out[p][i] : -1, sum(group, i)) << mode.attributes << ", participant " << p;
  }
}

TEST_P(Collective, AllGather) {
  for (const Mode& mode : modes()) {
    const size_t n = mode.groups[0].size();
    const auto out = run_all(with_sum(
        header(), "ROOT r = s32[" + std::to_string(8 * n) + "] all-gather(x), dimensions={0}, " + mode.attributes));
    for (const auto& group : mode.groups)
      for (uint32_t p : group)
        for (size_t i = 0; i < 8 * n; ++i)
          ASSERT_EQ(out[p].size() == 8 * n ? out[p][i] : -1, input(group[i / 8], i % 8))
              << mode.attributes << ", participant " << p;
  }
}

TEST_P(Collective, ReduceScatter) {
  for (const Mode& mode : modes()) {
    const size_t n = mode.groups[0].size(), part = 8 / n;
    const auto out =
        run_all(with_sum(header(), "ROOT r = s32[" + std::to_string(part) +
                                       "] reduce-scatter(x), dimensions={0}, to_apply=sum, " + mode.attributes));
    for (const auto& group : mode.groups)
      for (size_t at = 0; at < n; ++at)
        for (size_t i = 0; i < part; ++i)
          ASSERT_EQ(out[group[at]].size() == part ? out[group[at]][i] : -1, sum(group, at * part + i))
              << mode.attributes << ", participant " << group[at];
  }
}

// all-to-all has no global ids: its groups are groups of partitions if it has a channel, else of replicas.
TEST_P(Collective, AllToAll) {
  for (const bool channel : {false, true}) {
    const Groups groups = channel ? of_partitions() : of_replicas();
    const size_t n = groups[0].size(), part = 8 / n;
    const auto out =
        run_all(with_sum(header(), "ROOT r = s32[8] all-to-all(x), dimensions={0}, replica_groups={" +
                                       counting(static_cast<uint32_t>(n)) + "}" + (channel ? ", channel_id=1" : "")));
    for (const auto& group : groups)
      for (size_t at = 0; at < n; ++at)
        for (size_t i = 0; i < 8; ++i)
          ASSERT_EQ(out[group[at]].size() == 8 ? out[group[at]][i] : -1, input(group[i / part], at * part + i % part))
              << (channel ? "partitions" : "replicas") << ", participant " << group[at];
  }
}

// Each participant sends to the next, and the last one to none, so the first one has zeros.
TEST_P(Collective, Permute) {
  for (const bool channel : {false, true}) {
    const Groups groups = channel ? of_partitions() : of_replicas();
    std::string pairs;
    for (size_t i = 0; i + 1 < groups[0].size(); ++i)
      pairs += (i ? ",{" : "{") + std::to_string(i) + "," + std::to_string(i + 1) + "}";
    const auto out = run_all(with_sum(header(), "ROOT r = s32[8] collective-permute(x), source_target_pairs={" + pairs +
                                                    "}" + (channel ? ", channel_id=1" : "")));
    for (const auto& group : groups)
      for (size_t at = 0; at < group.size(); ++at)
        for (size_t i = 0; i < 8; ++i)
          ASSERT_EQ(out[group[at]].size() == 8 ? out[group[at]][i] : -1, at ? input(group[at - 1], i) : 0)
              << (channel ? "partitions" : "replicas") << ", participant " << group[at];
  }
}

// Each participant sends elements 2 to 4 to places 4 to 6 of the next one. The interface has no such permute, so the host does it.
TEST_P(Collective, PermuteOfSlices) {
  const Groups groups = of_replicas();
  std::string pairs;
  for (size_t i = 0; i + 1 < groups[0].size(); ++i)
    pairs += (i ? ",{" : "{") + std::to_string(i) + "," + std::to_string(i + 1) + "}";
  const auto out = run_all(with_sum(header(), R"(y = s32[8] negate(x)
  two = s32[] constant(2)
  four = s32[] constant(4)
  from = (s32[]) tuple(two)
  to = (s32[]) tuple(four)
  ROOT r = s32[8] collective-permute(x, y, from, to), source_target_pairs={)" +
                                                  pairs + "}, slice_sizes={{3}}"));
  for (const auto& group : groups)
    for (size_t at = 0; at < group.size(); ++at)
      for (size_t i = 0; i < 8; ++i) {
        const bool received = at > 0 && i >= 4 && i < 7;
        ASSERT_EQ(out[group[at]].size() == 8 ? out[group[at]][i] : -1,
                  received ? input(group[at - 1], i - 2) : -input(group[at], i))
            << "participant " << group[at] << ", element " << i;
      }
}

TEST_P(Collective, Broadcast) {
  for (const bool channel : {false, true}) {
    const Groups groups = channel ? of_partitions() : of_replicas();
    const auto out = run_all(with_sum(header(), "ROOT r = s32[8] collective-broadcast(x), replica_groups={" +
                                                    counting(static_cast<uint32_t>(groups[0].size())) + "}" +
                                                    (channel ? ", channel_id=1" : "")));
    for (const auto& group : groups)
      for (uint32_t p : group)
        for (size_t i = 0; i < 8; ++i)
          ASSERT_EQ(out[p].size() == 8 ? out[p][i] : -1, input(group[0], i)) << "participant " << p;
  }
}

TEST_P(Collective, EachKnowsItsNumbers) {
  const auto out = run_all(with_sum(header(), R"(r = u32[] replica-id()
  q = u32[] partition-id()
  rs = s32[] convert(r)
  qs = s32[] convert(q)
  ten = s32[] constant(10)
  t = s32[] multiply(rs, ten)
  n = s32[] add(t, qs)
  b = s32[8] broadcast(n), dimensions={}
  ROOT s = s32[8] add(b, x))"));
  for (uint32_t p = 0; p < kDevices; ++p)
    for (size_t i = 0; i < 8; ++i)
      ASSERT_EQ(out[p].size() == 8 ? out[p][i] : -1,
                static_cast<int32_t>(10 * (p / GetParam().partitions) + p % GetParam().partitions) + input(p, i));
}

// Collectives in a chain, in a loop, and with other work in between: each participant has its own values.
TEST_P(Collective, Loop) {
  const std::string step =
      R"(total = s32[8] all-reduce(x), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}, use_global_device_ids=true, to_apply=sum
  y = s32[8] subtract(total, x))";
  const auto out = run_all(loop_program(3, step, "  ROOT out = s32[8] copy(y)",
                                        ", " + header() + "\n" + combiner("sum", "add", "s32"), "s32[8]"));
  std::vector<std::vector<int32_t>> state(kDevices, std::vector<int32_t>(8));
  for (uint32_t p = 0; p < kDevices; ++p)
    for (size_t i = 0; i < 8; ++i) state[p][i] = input(p, i);
  for (int round = 0; round < 3; ++round)
    for (size_t i = 0; i < 8; ++i) {
      int32_t total = 0;
      for (const auto& s : state) total += s[i];
      for (auto& s : state) s[i] = total - s[i];
    }
  EXPECT_EQ(out, state);
}

// Each participant runs a loop as often as its number says, independently of the others.
TEST_P(Collective, WaysPart) {
  const auto out = run_all("HloModule m, " + header() + R"(
cond {
  s = (u32[], u32[], s32[8]) parameter(0)
  i = u32[] get-tuple-element(s), index=0
  n = u32[] get-tuple-element(s), index=1
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  s = (u32[], u32[], s32[8]) parameter(0)
  i = u32[] get-tuple-element(s), index=0
  one = u32[] constant(1)
  j = u32[] add(i, one)
  n = u32[] get-tuple-element(s), index=1
  x = s32[8] get-tuple-element(s), index=2
  q = u32[] partition-id()
  qs = s32[] convert(q)
  b = s32[8] broadcast(qs), dimensions={}
  y = s32[8] add(x, b)
  ROOT t = (u32[], u32[], s32[8]) tuple(j, n, y)
}
ENTRY e {
  x = s32[8] parameter(0)
  zero = u32[] constant(0)
  r = u32[] replica-id()
  q = u32[] partition-id()
  ten = u32[] constant(10)
  tr = u32[] multiply(r, ten)
  n = u32[] add(tr, q)
  init = (u32[], u32[], s32[8]) tuple(zero, n, x)
  w = (u32[], u32[], s32[8]) while(init), condition=cond, body=body
  ROOT out = s32[8] get-tuple-element(w), index=2
})");
  for (uint32_t p = 0; p < kDevices; ++p) {
    const auto replica = static_cast<int32_t>(p / GetParam().partitions);
    const auto partition = static_cast<int32_t>(p % GetParam().partitions);
    for (size_t i = 0; i < 8; ++i)
      ASSERT_EQ(out[p].size() == 8 ? out[p][i] : -1, input(p, i) + (10 * replica + partition) * partition);
  }
}

/// Returns a program with a branch for the first four participants, with a sum among them, and another branch for the
/// others, with a sum in pairs.
std::string branches(const std::string& header, const std::string& first, const std::string& second) {
  return "HloModule m, " + header + "\n" + combiner("sum", "add", "s32") + R"(first {
  x = s32[8] parameter(0)
  ROOT r = s32[8] all-reduce(x), channel_id=1, replica_groups=)" +
         first + R"(, use_global_device_ids=true, to_apply=sum
}
second {
  x = s32[8] parameter(0)
  r = s32[8] all-reduce(x), channel_id=2, replica_groups=)" +
         second + R"(, use_global_device_ids=true, to_apply=sum
  ROOT n = s32[8] negate(r)
}
ENTRY e {
  x = s32[8] parameter(0)
  r = u32[] replica-id()
  q = u32[] partition-id()
  parts = u32[] constant(PARTITIONS)
  t = u32[] multiply(r, parts)
  n = u32[] add(t, q)
  four = u32[] constant(4)
  low = pred[] compare(n, four), direction=LT
  ROOT c = s32[8] conditional(low, x, x), true_computation=first, false_computation=second
})";
}

std::string with_partitions(std::string text, uint32_t partitions) {
  text.replace(text.find("PARTITIONS"), 10, std::to_string(partitions));
  return text;
}

TEST_P(Collective, GroupsWithinABranch) {
  const auto out = run_all(
      with_partitions(branches(header(), "{{0,1,2,3},{4,5,6,7}}", "{{0,1},{2,3},{4,7},{6,5}}"), GetParam().partitions));
  for (uint32_t p = 0; p < kDevices; ++p) {
    const std::vector<uint32_t> group = p < 4              ? std::vector<uint32_t>{0, 1, 2, 3}
                                        : p == 4 || p == 7 ? std::vector<uint32_t>{4, 7}
                                                           : std::vector<uint32_t>{5, 6};
    for (size_t i = 0; i < 8; ++i)
      ASSERT_EQ(out[p].size() == 8 ? out[p][i] : -1, (p < 4 ? 1 : -1) * sum(group, i)) << "participant " << p;
  }
}

// Start and done ops with other ops in between, and directly after each other.
TEST_P(Collective, Asynchronous) {
  const auto out = run_all(with_sum(header(), R"(
  s = s32[8] all-reduce-start(x), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}, use_global_device_ids=true, to_apply=sum
  y = s32[8] multiply(x, x)
  d = s32[8] all-reduce-done(s)
  ROOT r = s32[8] subtract(y, d))"));
  for (uint32_t p = 0; p < kDevices; ++p)
    for (size_t i = 0; i < 8; ++i)
      ASSERT_EQ(out[p].size() == 8 ? out[p][i] : -1, input(p, i) * input(p, i) - sum({0, 1, 2, 3, 4, 5, 6, 7}, i));
}

/// Errors of participants of a collective that cannot continue.
class CollectiveFailure : public ::testing::Test, public Session {
 protected:
  std::vector<BufferPtr> arguments(collet_client* client) {
    std::vector<BufferPtr> in;
    const int64_t dims[] = {8};
    const std::vector<int32_t> x(8, 1);
    for (uint32_t p = 0; p < kDevices; ++p) in.push_back(upload(client, {COLLET_TYPE_S32, 1, dims}, x.data(), p));
    return in;
  }
  // Returns options with which the call itself reports the failure, even if the run takes long.
  static collet_execute_options at_once() {
    collet_execute_options options{};
    options.synchronous = 1;
    return options;
  }
  // Runs a program whose two branches have different all-reduces, so that some wait for others that never come.
  void expect_nobody_comes(const std::string& backend, const std::string& message) {
    const ClientPtr client = open(backend, "none", nullptr, kDevices);
    ASSERT_TRUE(client) << failure.message;
    const ExecutablePtr e =
        compile(client.get(),
                with_partitions(branches("num_partitions=8", "{{0,1,2,3,4,5,6,7}}", "{{0,1},{2,3},{4,7},{6,5}}"), 8));
    ASSERT_TRUE(e) << failure.message;
    EXPECT_TRUE(run(e.get(), arguments(client.get()), at_once()).empty());
    EXPECT_EQ(failure.code, COLLET_FAILED_PRECONDITION) << failure.message;
    EXPECT_THAT(failure.message, ::testing::HasSubstr(message));
    EXPECT_THAT(failure.message, ::testing::HasSubstr("all-reduce"));
  }
};

TEST_F(CollectiveFailure, SomebodyNeverComes) {
  expect_nobody_comes("cpu", "participant 0 waits for participant 4");
}

// The same test for a backend whose participants wait for each other on the device, with a time limit.
TEST_F(CollectiveFailure, SomebodyNeverComesOnTheDevice) {
  for (const char* backend : {"kernels", "kernels_linked", "kernels_serial"}) {
    expect_nobody_comes(test_backend(backend), "waits for participant 7, which takes another way");
  }
}

// Two threads run the same program: participants of different runs must not be combined.
TEST_F(CollectiveFailure, RunsAtTheSameTimeDoNotMeet) {
  for (const char* backend : {"kernels", "kernels_linked", "kernels_serial"}) {
    const ClientPtr client = open(test_backend(backend), "none", nullptr, kDevices);
    ASSERT_TRUE(client) << failure.message;
    const ExecutablePtr e = compile(client.get(), with_sum("replica_count=8", R"(
  a = s32[8] all-reduce(x), replica_groups={}, to_apply=sum
  b = s32[8] all-to-all(a), dimensions={0}, replica_groups={{0,1,2,3,4,5,6,7}}
  ROOT r = s32[8] all-reduce(b), replica_groups={{0,1},{2,3},{4,5},{6,7}}, to_apply=sum)"));
    ASSERT_TRUE(e) << failure.message;
    const auto in = arguments(client.get());
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) {
          std::vector<collet_buffer*> all, out(kDevices);
          for (const BufferPtr& one : in) all.push_back(one.get());
          collet_error error{};
          collet_execute_options options{};
          options.struct_size = sizeof options;
          if (collet_execute(e.get(), &options, all.data(), out.data(), &error) != COLLET_OK) return;
          for (collet_buffer* one : out) {
            const BufferPtr result(one);
            std::vector<int32_t> value(8);
            if (collet_buffer_to_host(one, value.data(), 32, nullptr, &error) != COLLET_OK) return;
            good += value == std::vector<int32_t>(8, 16) ? 1 : 0;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(good, 4 * 50 * static_cast<int>(kDevices)) << backend;
  }
}

TEST_F(CollectiveFailure, ADeviceIsNoTwoParticipants) {
  const ClientPtr client = open("interpreter", "none", nullptr, 2);
  const ModulePtr module = read("HloModule m, replica_count=2\nENTRY e {\n  ROOT r = u32[] replica-id()\n}\n");
  const uint32_t twice[] = {1, 1};
  collet_compile_request request{};
  request.assignment = twice;
  request.assignment_count = 2;
  EXPECT_FALSE(compile(client.get(), module.get(), request));
  EXPECT_EQ(failure.code, COLLET_INVALID_ARGUMENT);
  EXPECT_THAT(failure.message, ::testing::HasSubstr("names a device twice"));
}

TEST_F(CollectiveFailure, TooManyParticipantsNameTheirLine) {
  const ClientPtr client = open("interpreter", "none", nullptr, 2);
  const ModulePtr module = read("\nHloModule m, replica_count=5000\nENTRY e {\n  ROOT r = u32[] replica-id()\n}\n");
  EXPECT_FALSE(compile(client.get(), module.get(), {}));
  EXPECT_EQ(failure.code, COLLET_INVALID_ARGUMENT);
  EXPECT_THAT(failure.message,
              ::testing::HasSubstr("line 2: 5000 replicas of 1 partitions are more than 4096 participants"));
}

// Each device passes the constants that its own program has not absorbed.
TEST_F(CollectiveFailure, EachDeviceAbsorbsForItself) {
  std::string numbers;
  for (int i = 0; i < 2048; ++i) numbers += (i ? "," : "") + std::to_string(i);
  for (const uint32_t absorbs : {0u, 1u}) {
    Control control;
    control.remove_traits = COLLET_TRAIT_COLLECTIVES | COLLET_TRAIT_SHARED_CODE;
    control.absorbs_on = absorbs;
    const ClientPtr client = open(test_backend("wrapper"), "none", &control, 2);
    const ExecutablePtr e = compile(client.get(),
                                    "HloModule m, replica_count=2\nENTRY e {\n  x = s32[2048] parameter(0)\n"
                                    "  c = s32[2048] constant({" +
                                        numbers +
                                        "})\n"
                                        "  ROOT y = s32[2048] add(x, c)\n}\n");
    ASSERT_TRUE(e) << failure.message;
    const std::vector<int32_t> data(2048, 7);
    constexpr int64_t kDims[] = {2048};
    std::vector<BufferPtr> in;
    for (const uint32_t device : {0u, 1u})
      in.push_back(upload(client.get(), {COLLET_TYPE_S32, 1, kDims}, data.data(), device));
    const auto out = run(e.get(), in);
    ASSERT_EQ(out.size(), 2u) << failure.message;
    EXPECT_EQ(control.wrongly_absent.load(), 0);
    EXPECT_EQ(download<int32_t>(out[1 - absorbs])[9], 16);
  }
}

// One call runs the program on both devices, each of which has the constant in its own memory.
TEST_F(CollectiveFailure, EachDeviceHasTheConstantsOfASharedProgram) {
  const ClientPtr client = open(test_backend("kernels"), "none", nullptr, 2);
  ASSERT_TRUE(client) << failure.message;
  std::string numbers;
  for (int i = 0; i < 2048; ++i) numbers += (i ? "," : "") + std::to_string(i);
  const ExecutablePtr e = compile(client.get(),
                                  "HloModule m, replica_count=2\nENTRY e {\n  x = f32[2048] parameter(0)\n"
                                  "  c = f32[2048] constant({" +
                                      numbers + "})\n  ROOT y = f32[2048] add(x, c)\n}\n");
  ASSERT_TRUE(e) << failure.message;
  constexpr int64_t kDims[] = {2048};
  std::vector<BufferPtr> in;
  for (const uint32_t device : {0u, 1u}) {
    const std::vector<float> data(2048, static_cast<float>(device));
    in.push_back(upload(client.get(), {COLLET_TYPE_F32, 1, kDims}, data.data(), device));
  }
  const auto out = run(e.get(), in);
  ASSERT_EQ(out.size(), 2u) << failure.message;
  EXPECT_EQ(download<float>(out[0])[9], 9);
  EXPECT_EQ(download<float>(out[1])[9], 10);
}

TEST_F(CollectiveFailure, OneFailsAndAllEnd) {
  Control control;
  control.remove_traits = COLLET_TRAIT_COLLECTIVES;
  control.hide_memory = true;
  const ClientPtr client = open(test_backend("wrapper"), "interpreter", &control, kDevices);
  ASSERT_TRUE(client) << failure.message;
  const ExecutablePtr e = compile(client.get(), with_sum("replica_count=8", R"(
  y = s32[8] multiply(x, x)
  r = s32[8] all-reduce(y), replica_groups={}, to_apply=sum
  ROOT z = s32[8] subtract(r, x))"));
  ASSERT_TRUE(e) << failure.message;
  for (int64_t n = 0; n < 16; n += 5) {
    control.counted = 8;  // 8: counts calls of execute
    control.calls = 0;
    control.fail_at = n;
    EXPECT_TRUE(run(e.get(), arguments(client.get()), at_once()).empty());
    EXPECT_THAT(failure.message, ::testing::HasSubstr("participant " + std::to_string(n % 8) + ": "));
    EXPECT_THAT(failure.message, ::testing::HasSubstr("injected: execute failed"));
    control.fail_at = -1;
    EXPECT_EQ(run(e.get(), arguments(client.get()), at_once()).size(), kDevices) << failure.message;
  }
}

// Equal devices share compiled code: the program is compiled once.
TEST_F(CollectiveFailure, CodeIsShared) {
  for (const bool shared : {true, false}) {
    Control control;
    control.remove_traits = COLLET_TRAIT_COLLECTIVES | (shared ? 0 : COLLET_TRAIT_SHARED_CODE);
    const ClientPtr client = open(test_backend("wrapper"), "interpreter", &control, kDevices);
    ASSERT_TRUE(client) << failure.message;
    const ExecutablePtr e = compile(client.get(), with_sum("replica_count=8", "ROOT y = s32[8] multiply(x, x)"));
    ASSERT_TRUE(e) << failure.message;
    EXPECT_EQ(control.compiles.load(), shared ? 1 : 8);
    EXPECT_EQ(run(e.get(), arguments(client.get()), at_once()).size(), kDevices) << failure.message;
  }
}

/// Tests programs that are written for whole arrays and partitioned by Collet.
class Partitioned : public ::testing::TestWithParam<std::string>, public Session {};

// A product whose operands are both split along the contracted dimension; the result is split by rows.
TEST_P(Partitioned, Product) {
  const bool itself = GetParam() == "cpu" || GetParam() == "interpreter";
  const ClientPtr client =
      open(itself ? GetParam() : test_backend(GetParam()), itself ? "none" : "interpreter", nullptr, kDevices);
  ASSERT_TRUE(client) << failure.message;
  const ModulePtr module = read(R"(HloModule m, num_partitions=8
ENTRY e {
  a = f32[8,16] parameter(0), sharding={devices=[1,8]<=[8]}
  b = f32[16,8] parameter(1), sharding={devices=[8,1]<=[8]}
  p = f32[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[8,8] negate(p), sharding={devices=[8,1]<=[8]}
})");
  ASSERT_TRUE(module) << failure.message;
  collet_compile_request request{};
  request.partition = 1;
  const ExecutablePtr e = compile(client.get(), module.get(), request);
  ASSERT_TRUE(e) << failure.message;
  EXPECT_STREQ(collet_executable_argument_sharding(e.get(), 0), "{devices=[1,8]0,1,2,3,4,5,6,7}");
  EXPECT_STREQ(collet_executable_argument_sharding(e.get(), 1), "{devices=[8,1]0,1,2,3,4,5,6,7}");
  EXPECT_STREQ(collet_executable_result_sharding(e.get(), 0), "{devices=[8,1]0,1,2,3,4,5,6,7}");
  EXPECT_EQ(collet_executable_result_sharding(e.get(), 1), nullptr);
  EXPECT_EQ(collet_executable_argument(e.get(), 0).dims[1], 2);
  EXPECT_EQ(collet_executable_result(e.get(), 0).dims[0], 1);
  collet_blob* program = nullptr;
  ASSERT_EQ(collet_executable_program(e.get(), COLLET_FORMAT_HLO_TEXT, &program, nullptr), COLLET_OK);
  const std::string text(collet_blob_data(program), collet_blob_size(program));
  collet_blob_release(program);
  EXPECT_NE(text.find("f32[8,2] parameter(0)"), std::string::npos) << text;
  EXPECT_EQ(text.find("f32[8,16]"), std::string::npos) << text;
  EXPECT_EQ(collet_executable_host_function(e.get(), 0), nullptr);

  const auto left = [](size_t i, size_t k) { return static_cast<float>(i) - static_cast<float>(k) / 4; };
  const auto right = [](size_t k, size_t j) { return static_cast<float>(k % 5) + static_cast<float>(j); };
  std::vector<BufferPtr> in;
  for (uint32_t p = 0; p < kDevices; ++p) {
    std::vector<float> a, b;
    for (size_t i = 0; i < 8; ++i)
      for (size_t k = 2 * p; k < 2 * p + 2; ++k) a.push_back(left(i, k));
    for (size_t k = 2 * p; k < 2 * p + 2; ++k)
      for (size_t j = 0; j < 8; ++j) b.push_back(right(k, j));
    const int64_t a_dims[] = {8, 2}, b_dims[] = {2, 8};
    in.push_back(upload(client.get(), {COLLET_TYPE_F32, 2, a_dims}, a.data(), p));
    in.push_back(upload(client.get(), {COLLET_TYPE_F32, 2, b_dims}, b.data(), p));
  }
  const auto out = run(e.get(), in);
  ASSERT_EQ(out.size(), kDevices) << failure.message;
  for (size_t i = 0; i < 8; ++i) {
    const std::vector<float> row = download<float>(out[i]);
    ASSERT_EQ(row.size(), 8u);
    for (size_t j = 0; j < 8; ++j) {
      float sum = 0;
      for (size_t k = 0; k < 16; ++k) sum += left(i, k) * right(k, j);
      EXPECT_FLOAT_EQ(row[j], -sum);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Partitioned,
                         ::testing::Values("interpreter", "cpu", "memory_only", "narrow", "kernels", "kernels_linked"));

INSTANTIATE_TEST_SUITE_P(Eight, Collective,
                         ::testing::Values(Mesh{"interpreter", 8, 1}, Mesh{"interpreter", 1, 8},
                                           Mesh{"interpreter", 2, 4}, Mesh{"cpu", 8, 1}, Mesh{"cpu", 1, 8},
                                           Mesh{"cpu", 2, 4}, Mesh{"memory_only", 8, 1}, Mesh{"memory_only", 1, 8},
                                           Mesh{"narrow", 8, 1}, Mesh{"narrow", 2, 4}, Mesh{"kernels", 8, 1},
                                           Mesh{"kernels", 2, 4}, Mesh{"kernels_linked", 1, 8},
                                           Mesh{"kernels_linked", 2, 4}, Mesh{"kernels_serial", 4, 2}),
                         [](const auto& param) {
                           return param.param.backend + "_" + std::to_string(param.param.replicas) + "x" +
                                  std::to_string(param.param.partitions);
                         });

}  // namespace
}  // namespace collet::testing
