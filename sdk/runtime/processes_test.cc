// SPDX-License-Identifier: Apache-2.0
// Tests programs whose participants are in several processes.
#include <gmock/gmock.h>

#include <fstream>

#include "sdk/runtime/testing/process_group.h"
#include "sdk/runtime/testing/programs.h"

namespace collet::testing {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr char kHeader[] = "HloModule m, replica_count=4\n";

std::string program(const std::string& entry, const std::string& header = kHeader) {
  return header + combiner("sum", "add", "s32") + "ENTRY e {\n  x = s32[8] parameter(0)\n  " + entry + "\n}";
}

// Runs the program with four participants in two processes of two devices each, and compares with one process.
void compare(Member& member, const std::string& backend, const std::string& text) {
  SCOPED_TRACE(text);
  const ClientPtr client = member.join(backend, 2);
  ASSERT_TRUE(client) << member.failure.message;
  const ExecutablePtr e = member.compile(client.get(), text);
  ASSERT_TRUE(e) << member.failure.message;
  EXPECT_EQ(Session::facts(e.get()).participants, 4u);
  EXPECT_EQ(Session::facts(e.get()).local_participants, 2u);
  const auto out = member.results(e.get(), member.arguments(client.get(), 2, 2 * member.rank));
  ASSERT_EQ(out.size(), 2u) << member.failure.message;
  Session one;
  const ClientPtr alone = one.open("interpreter", "none", nullptr, 4);
  ASSERT_TRUE(alone) << one.failure.message;
  const ExecutablePtr whole = one.compile(alone.get(), text);
  ASSERT_TRUE(whole) << one.failure.message;
  const auto results = one.run(whole.get(), member.arguments(alone.get(), 4, 0));
  ASSERT_EQ(results.size(), 4u) << one.failure.message;
  for (uint32_t d = 0; d < 2; ++d) EXPECT_EQ(out[d], one.download<int32_t>(results[2 * member.rank + d]));
}

struct Case {
  const char* name;
  std::string text;
};

// A program that scatters the sum of an array along a dimension, and gives sums over each participant's part.
std::string large_scatter(const std::string& groups, const char* dimension, const char* part) {
  return program(
      std::string("zero = s32[] constant(0)\n  i = s32[12,60,40] iota(), iota_dimension=") + dimension +
      "\n  h = s32[12,60,40] iota(), iota_dimension=2\n  first = s32[1] slice(x), slice={[0:1]}\n  one = s32[] "
      "reshape(first)\n"
      "  b = s32[12,60,40] broadcast(one), dimensions={}\n  m = s32[12,60,40] multiply(b, i)\n  v = s32[12,60,40] "
      "add(m, h)\n"
      "  r = s32[" +
      part + "] reduce-scatter(v), replica_groups=" + groups + ", dimensions={" + dimension +
      "}, to_apply=sum\n"
      "  w = s32[" +
      part + "] iota(), iota_dimension=1\n  p = s32[" + part +
      "] multiply(r, w)\n"
      "  t = s32[] reduce(p, zero), dimensions={0,1,2}, to_apply=sum\n  all = s32[8] broadcast(t), dimensions={}\n"
      "  ROOT y = s32[8] add(all, x)");
}

// A program that gathers arrays along a dimension, and gives sums over all of it.
std::string large_gather(const std::string& groups, const char* dimension, const std::string& whole) {
  return program(
      "zero = s32[] constant(0)\n  i = s32[6000,5] iota(), iota_dimension=0\n  first = s32[1] slice(x), slice={[0:1]}\n"
      "  one = s32[] reshape(first)\n  b = s32[6000,5] broadcast(one), dimensions={}\n  v = s32[6000,5] add(b, i)\n"
      "  r = s32[" +
      whole + "] all-gather(v), replica_groups=" + groups + ", dimensions={" + dimension +
      "}\n"
      "  w = s32[" +
      whole + "] iota(), iota_dimension=0\n  h = s32[" + whole +
      "] iota(), iota_dimension=1\n"
      "  wh = s32[" +
      whole + "] add(w, h)\n  p = s32[" + whole +
      "] multiply(r, wh)\n"
      "  t = s32[] reduce(p, zero), dimensions={0,1}, to_apply=sum\n  all = s32[8] broadcast(t), dimensions={}\n"
      "  ROOT y = s32[8] add(all, x)");
}

// A program that exchanges parts of arrays along a dimension, and gives a sum over all of its result.
std::string large_swap(const std::string& groups, const char* dimension) {
  return program(
      "zero = s32[] constant(0)\n  i = s32[24,60,40] iota(), iota_dimension=0\n  j = s32[24,60,40] iota(), "
      "iota_dimension=1\n"
      "  h = s32[24,60,40] iota(), iota_dimension=2\n  ij = s32[24,60,40] multiply(i, j)\n"
      "  first = s32[1] slice(x), slice={[0:1]}\n  one = s32[] reshape(first)\n"
      "  b = s32[24,60,40] broadcast(one), dimensions={}\n  m = s32[24,60,40] multiply(b, ij)\n"
      "  v = s32[24,60,40] add(m, h)\n  r = s32[24,60,40] all-to-all(v), replica_groups=" +
      groups + ", dimensions={" + dimension +
      "}\n  ih = s32[24,60,40] multiply(i, h)\n  w = s32[24,60,40] add(ih, j)\n  p = s32[24,60,40] multiply(r, w)\n"
      "  t = s32[] reduce(p, zero), dimensions={0,1,2}, to_apply=sum\n  all = s32[8] broadcast(t), dimensions={}\n"
      "  ROOT y = s32[8] add(all, x)");
}

// A program that all-reduces an array of many elements, which depend on those of x, and gives sums over all of its results.
std::string large_sum(const std::string& groups, const char* elements = "30007") {
  const std::string n = std::string("s32[") + elements + "]";
  return program(
      "zero = s32[] constant(0)\n  i = " + n + " iota(), iota_dimension=0\n  first = s32[1] slice(x), slice={[0:1]}\n" +
      "  one = s32[] reshape(first)\n  b = " + n + " broadcast(one), dimensions={}\n  v = " + n +
      " multiply(b, i)\n  r = " + n + " all-reduce(v), replica_groups=" + groups + ", to_apply=sum\n  w = " + n +
      " multiply(r, i)\n" +
      "  t = s32[] reduce(w, zero), dimensions={0}, to_apply=sum\n  u = s32[] reduce(r, zero), dimensions={0}, "
      "to_apply=sum\n" +
      "  tu = s32[] multiply(t, u)\n  all = s32[8] broadcast(tu), dimensions={}\n  ROOT y = s32[8] add(all, x)");
}

// A ragged-all-to-all of rows of so many numbers: participant p sends participant q p + 2 q + 1 rows, from row 10 q on, to row 20 p.
std::string ragged(const std::string& width) {
  const std::string in = "s32[40," + width + "]", out = "s32[80," + width + "]";
  return program(
      "zero = s32[] constant(0)\n  first = s32[1] slice(x), slice={[0:1]}\n  one = s32[] reshape(first)\n"
      "  hundred = s32[] constant(100)\n  me = s32[] divide(one, hundred)\n"
      "  b = " +
      in + " broadcast(one), dimensions={}\n  i = " + in + " iota(), iota_dimension=0\n  h = " + in +
      " iota(), iota_dimension=1\n  ih = " + in + " add(i, h)\n  data = " + in + " add(b, ih)\n  o = " + out +
      " iota(), iota_dimension=0\n  q = s32[4] iota(), iota_dimension=0\n  ten = s32[4] constant({10,10,10,10})\n"
      "  two = s32[4] constant({2,2,2,2})\n  ones = s32[4] constant({1,1,1,1})\n  twenty = s32[4] "
      "constant({20,20,20,20})\n"
      "  from = s32[4] multiply(q, ten)\n  mine = s32[4] broadcast(me), dimensions={}\n  twice = s32[4] multiply(q, "
      "two)\n"
      "  a1 = s32[4] add(mine, twice)\n  sizes = s32[4] add(a1, ones)\n  to = s32[4] multiply(mine, twenty)\n"
      "  m2 = s32[4] multiply(mine, two)\n  b1 = s32[4] add(m2, q)\n  gets = s32[4] add(b1, ones)\n"
      "  r = " +
      out +
      " ragged-all-to-all(data, o, from, sizes, to, gets), replica_groups={{0,1,2,3}}\n"
      "  p = " +
      out +
      " multiply(r, o)\n  t = s32[] reduce(p, zero), dimensions={0,1}, to_apply=sum\n"
      "  all = s32[8] broadcast(t), dimensions={}\n  ROOT y = s32[8] add(all, x)");
}

// A program that moves an array of so many elements, and gives values that depend on all of what came.
std::string large_move(const std::string& op) {
  return program(
      "zero = s32[] constant(0)\n  i = s32[30000] iota(), iota_dimension=0\n  first = s32[1] slice(x), slice={[0:1]}\n"
      "  one = s32[] reshape(first)\n  b = s32[30000] broadcast(one), dimensions={}\n  v = s32[30000] multiply(b, i)\n"
      "  r = s32[30000] " +
      op +
      "\n  p = s32[30000] multiply(r, i)\n"
      "  t = s32[] reduce(p, zero), dimensions={0}, to_apply=sum\n  all = s32[8] broadcast(t), dimensions={}\n"
      "  ROOT y = s32[8] add(all, x)");
}

class EachCollective : public ProcessesTest, public ::testing::WithParamInterface<Case> {
 protected:
  void check(const std::string& backend) {
    run_in(2, [&](Member& member) { compare(member, backend, GetParam().text); });
  }
};

TEST_P(EachCollective, GivesWhatOneProcessGives) {
  check("interpreter");
}
TEST_P(EachCollective, GivesWhatOneProcessGivesOnADeviceThatOnlyHasMemory) {
  check("memory_only");
}
TEST_P(EachCollective, GivesWhatOneProcessGivesOnQueues) {
  check("queued");
}

// A program that sends and receives an array of so many elements in pairs, and gives values that depend on all of what was received.
std::string transfer(const std::string& pairs, const std::string& elements, const std::string& header = kHeader) {
  const std::string n = "s32[" + elements + "]";
  const std::string channel =
      "channel_id=7, frontend_attributes={_xla_send_recv_source_target_pairs=\"" + pairs + "\"}";
  return program(
      "zero = s32[] constant(0)\n  t = token[] after-all()\n  i = " + n +
          " iota(), iota_dimension=0\n  first = s32[1] slice(x), slice={[0:1]}\n  one = s32[] reshape(first)\n"
          "  b = " +
          n + " broadcast(one), dimensions={}\n  w = " + n + " multiply(b, i)\n  s = (" + n +
          ", u32[], token[]) send(w, t), " + channel + "\n  v = (" + n + ", u32[], token[]) recv(t), " + channel +
          "\n  d = (" + n + ", token[]) recv-done(v), " + channel + "\n  e = token[] send-done(s), " + channel +
          "\n  r = " + n + " get-tuple-element(d), index=0\n  p = " + n +
          " multiply(r, i)\n"
          "  all = s32[] reduce(p, zero), dimensions={0}, to_apply=sum\n  m = s32[8] broadcast(all), dimensions={}\n"
          "  ROOT y = s32[8] add(m, x)",
      header);
}

INSTANTIATE_TEST_SUITE_P(
    Processes, EachCollective,
    ::testing::Values(
        Case{"Ragged", ragged("1")}, Case{"LargeRagged", ragged("500")},
        Case{"LargePermute", large_move("collective-permute(v), source_target_pairs={{0,3},{2,1},{1,0}}")},
        Case{"LargePermuteWithinAProcess",
             large_move("collective-permute(v), source_target_pairs={{0,1},{1,0},{2,2}}")},
        Case{"LargeBroadcast", large_move("collective-broadcast(v), replica_groups={{2,0,1,3}}")},
        Case{"LargeBroadcastToSome", large_move("collective-broadcast(v), replica_groups={{3,0}}")},
        Case{"SendAndReceive", transfer("{{0,1},{1,2},{2,3},{3,0}}", "8")},
        Case{"LargeSendAndReceive", transfer("{{0,2},{3,1}}", "30000")},
        Case{"SendAndReceiveOfPartitions", transfer("{{0,3},{3,0},{1,2}}", "3000", "HloModule m, num_partitions=4\n")},
        Case{"AllReduce", program("ROOT y = s32[8] all-reduce(x), replica_groups={}, to_apply=sum")},
        Case{"AllReduceOfGroupsWithinAProcess",
             program("ROOT y = s32[8] all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=sum")},
        Case{"AllReduceOfGroupsAcross",
             program("ROOT y = s32[8] all-reduce(x), replica_groups={{3,0},{1,2}}, to_apply=sum")},
        Case{"AllReduceOfUnequalGroups",
             program("ROOT y = s32[8] all-reduce(x), replica_groups={{0,2,3},{1}}, to_apply=sum")},
        Case{"AllReduceOfPartitions",
             program("ROOT y = s32[8] all-reduce(x), channel_id=1, replica_groups={{0,1},{2,3}}, "
                     "use_global_device_ids=true, to_apply=sum",
                     "HloModule m, replica_count=2, num_partitions=2\n")},
        Case{"LargeAllReduce", large_sum("{}")},
        Case{"LargeAllReduceOfGroupsWithinAProcess", large_sum("{{0,1},{2,3}}")},
        Case{"LargeAllReduceOfGroupsAcross", large_sum("{{3,0},{1,2}}")},
        Case{"LargeAllReduceOfUnequalGroups", large_sum("{{0,2,3},{1}}")},
        Case{"LargeAllReduceInPieces", large_sum("{}", "700001")},
        Case{"LargeAllReduceOfTwoArrays",
             program(
                 "i = s32[20000] iota(), iota_dimension=0\n  j = s32[5001] iota(), iota_dimension=0\n"
                 "  r = (s32[20000], s32[5001]) all-reduce(i, j), replica_groups={}, to_apply=sum\n"
                 "  a = s32[20000] get-tuple-element(r), index=0\n  c = s32[5001] get-tuple-element(r), index=1\n"
                 "  d = s32[8] slice(c), slice={[4993:5001]}\n"
                 "  e = s32[8] slice(a), slice={[9996:10004]}\n  f = s32[8] add(d, e)\n  ROOT y = s32[8] add(f, x)")},
        Case{"LargeReduceScatter", large_scatter("{}", "0", "3,60,40")},
        Case{"LargeReduceScatterOfAnInnerDimension", large_scatter("{}", "1", "12,15,40")},
        Case{"LargeReduceScatterInAnotherOrder", large_scatter("{{3,0,2,1}}", "1", "12,15,40")},
        Case{"LargeReduceScatterOfGroupsAcross", large_scatter("{{3,0},{1,2}}", "2", "12,60,20")},
        Case{"LargeReduceScatterWithinAProcess", large_scatter("{{1,0},{2,3}}", "0", "6,60,40")},
        Case{"AllGather", program("g = s32[32] all-gather(x), replica_groups={}, dimensions={0}\n"
                                  "  ROOT y = s32[32] add(g, g)")},
        Case{"LargeAllGather", large_gather("{}", "0", "24000,5")},
        Case{"LargeAllGatherOfAnInnerDimension", large_gather("{}", "1", "6000,20")},
        Case{"LargeAllGatherInAnotherOrder", large_gather("{{3,0,2,1}}", "0", "24000,5")},
        Case{"LargeAllGatherOfGroupsAcross", large_gather("{{3,0},{1,2}}", "1", "6000,10")},
        Case{"LargeAllGatherWithinAProcess", large_gather("{{1,0},{2,3}}", "0", "12000,5")},
        Case{"ReduceScatter",
             program("ROOT y = s32[2] reduce-scatter(x), replica_groups={}, dimensions={0}, to_apply=sum")},
        Case{"AllToAll", program("ROOT y = s32[8] all-to-all(x), replica_groups={{0,1,2,3}}, dimensions={0}")},
        Case{"LargeAllToAll", large_swap("{{0,1,2,3}}", "0")},
        Case{"LargeAllToAllOfAnInnerDimension", large_swap("{{0,1,2,3}}", "1")},
        Case{"LargeAllToAllInAnotherOrder", large_swap("{{3,0,2,1}}", "2")},
        Case{"LargeAllToAllOfGroupsAcross", large_swap("{{3,0},{1,2}}", "1")},
        Case{"LargeAllToAllWithinAProcess", large_swap("{{1,0},{2,3}}", "0")},
        Case{"LargeAllToAllOfArrays",
             program("zero = s32[] constant(0)\n  i = s32[500] iota(), iota_dimension=0\n"
                     "  first = s32[1] slice(x), slice={[0:1]}\n  one = s32[] reshape(first)\n"
                     "  b = s32[500] broadcast(one), dimensions={}\n  v = s32[500] add(b, i)\n"
                     "  w = s32[500] multiply(v, i)\n"
                     "  r = (s32[500], s32[500]) all-to-all(v, w), replica_groups={{3,0},{1,2}}\n"
                     "  a = s32[500] get-tuple-element(r), index=0\n  c = s32[500] get-tuple-element(r), index=1\n"
                     "  p = s32[500] multiply(c, i)\n  q = s32[500] add(a, p)\n  z = s32[500] multiply(q, i)\n"
                     "  t = s32[] reduce(z, zero), dimensions={0}, to_apply=sum\n"
                     "  all = s32[8] broadcast(t), dimensions={}\n  ROOT y = s32[8] add(all, x)")},
        Case{"Permute",
             program("ROOT y = s32[8] collective-permute(x), source_target_pairs={{0,1},{1,2},{2,3},{3,0}}")},
        Case{"PermuteOfSome", program("ROOT y = s32[8] collective-permute(x), source_target_pairs={{0,3},{2,1}}")},
        Case{"Broadcast", program("ROOT y = s32[8] collective-broadcast(x), replica_groups={{2,0,1,3}}")},
        Case{"ReplicaId", program("r = u32[] replica-id()\n  s = s32[] convert(r)\n"
                                  "  b = s32[8] broadcast(s), dimensions={}\n  ROOT y = s32[8] multiply(b, x)")},
        Case{"Loop", std::string(kHeader) + combiner("sum", "add", "s32") +
                         loop_computations(3, "y = s32[8] all-reduce(x), replica_groups={{0,2},{1,3}}, to_apply=sum",
                                           "s32[8]") +
                         R"(ENTRY e {
  x = s32[8] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], s32[8]) tuple(zero, x)
  w = (s32[], s32[8]) while(t), condition=cond, body=body
  ROOT y = s32[8] get-tuple-element(w), index=1
})"}),
    [](const auto& one) { return std::string(one.param.name); });

TEST_F(ProcessesTest, DevicesAreThoseOfAllProcesses) {
  run_in(3, [](Member& member) {
    const ClientPtr client = member.join("interpreter", member.rank + 1);
    ASSERT_TRUE(client) << member.failure.message;
    std::vector<std::pair<uint32_t, uint32_t>> found;
    collet_global_device device{};
    device.struct_size = sizeof device;
    collet_error error{};
    for (uint32_t i = 0; collet_client_global_device_get(client.get(), i, &device, &error) == COLLET_OK; ++i)
      found.emplace_back(device.process, device.device);
    EXPECT_EQ(error.code, COLLET_OUT_OF_RANGE);
    EXPECT_EQ(found, (std::vector<std::pair<uint32_t, uint32_t>>{{0, 0}, {1, 0}, {1, 1}, {2, 0}, {2, 1}, {2, 2}}));
  });
}

// Sums one array of each of several processes, too large for the first message.
void sum_large_arrays(Member& member) {
  constexpr int64_t kElements = 1 << 18;
  const ClientPtr client = member.join();
  ASSERT_TRUE(client) << member.failure.message;
  const std::string shape = "s32[" + std::to_string(kElements) + "]";
  const ExecutablePtr e = member.compile(
      client.get(), "HloModule m, replica_count=" + std::to_string(member.size) + "\n" + combiner("sum", "add", "s32") +
                        "ENTRY e {\n  x = " + shape + " parameter(0)\n  ROOT y = " + shape +
                        " all-reduce(x), replica_groups={}, to_apply=sum\n}");
  ASSERT_TRUE(e) << member.failure.message;
  const auto out = member.results(e.get(), member.arguments(client.get(), 1, member.rank, kElements));
  ASSERT_EQ(out.size(), 1u) << member.failure.message;
  const auto processes = static_cast<int32_t>(member.size);
  const int32_t of_ranks = 100 * processes * (processes - 1) / 2;
  for (int32_t i = 0; i < kElements; ++i) ASSERT_EQ(out[0][static_cast<size_t>(i)], of_ranks + processes * i);
}

TEST_F(ProcessesTest, LargeArraysAreExchanged) {
  run_in(2, sum_large_arrays);
}
TEST_F(ProcessesTest, LargeArraysOfThreeProcessesAreExchanged) {
  run_in(3, sum_large_arrays);
}

// Executables of programs over several processes: each process keeps its own, and loads it in a new group.
TEST_F(ProcessesTest, SerializedExecutablesRunInTheirProcesses) {
  for (const char* const backend : {"interpreter", "memory_only"}) {
    const std::string again = folder_ + "/" + backend;
    std::filesystem::create_directories(again + "/first");
    std::filesystem::create_directories(again + "/second");
    run_in(2, [&](Member& started) {
      const std::string text = program("ROOT y = s32[8] all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=sum");
      std::string bytes;
      collet_error error{};
      const uint32_t assignment[] = {2, 0, 3, 1};
      {
        Member member(again + "/first", started.rank, 2);
        const ClientPtr client = member.join(backend, 2);
        ASSERT_TRUE(client) << member.failure.message;
        const ModulePtr module = member.read(text);
        collet_compile_request request{};
        request.assignment = assignment;
        request.assignment_count = 4;
        const ExecutablePtr e = member.compile(client.get(), module.get(), request);
        ASSERT_TRUE(e) << member.failure.message;
        collet_blob* blob = nullptr;
        ASSERT_EQ(collet_executable_serialize(e.get(), &blob, &error), COLLET_OK) << error.message;
        bytes.assign(collet_blob_data(blob), collet_blob_size(blob));
        collet_blob_release(blob);
      }
      Member member(again + "/second", started.rank, 2);
      const ClientPtr client = member.join(backend, 2);
      ASSERT_TRUE(client) << member.failure.message;
      const auto load = [&](collet_client* in, const uint32_t* devices) {
        collet_compile_request request{};
        request.struct_size = sizeof request;
        request.assignment = devices;
        request.assignment_count = devices ? 4 : 0;
        collet_executable* out = nullptr;
        error = {};
        collet_executable_load(in, bytes.data(), bytes.size(), &request, &out, &error);
        return ExecutablePtr(out);
      };
      const ExecutablePtr e = load(client.get(), nullptr);
      ASSERT_TRUE(e) << error.message;
      const auto out = member.results(e.get(), member.arguments(client.get(), 2, 0));
      ASSERT_EQ(out.size(), 2u) << member.failure.message;
      // The participants of this process are 1 and 3, or 0 and 2: each sums with one of the other process.
      EXPECT_EQ(out[0][0] + out[1][0], 2 * 100);
      // The same devices in another order, within the processes.
      const uint32_t same[] = {3, 1, 2, 0}, other[] = {0, 1, 2, 3};
      EXPECT_TRUE(load(client.get(), same)) << error.message;
      EXPECT_FALSE(load(client.get(), other));
      EXPECT_EQ(error.code, COLLET_FAILED_PRECONDITION);
      EXPECT_THAT(error.message,
                  HasSubstr("participant 0 of the executable ran on device 2 in process 1; device 0 is in process 0"));
      Session alone;
      const ClientPtr single = alone.open("interpreter", "none", nullptr, 4);
      ASSERT_TRUE(single);
      if (std::string(backend) == "interpreter") {
        EXPECT_FALSE(load(single.get(), nullptr));
        EXPECT_THAT(error.message, HasSubstr("runs in 2 processes"));
      }
    });
    processes_.clear();
  }
}

// A program of one process of a group is kept with its device's number in the group.
TEST_F(ProcessesTest, SerializedExecutablesOfOneProcessRunThere) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join("interpreter", 1);
    ASSERT_TRUE(client) << member.failure.message;
    const ModulePtr module = member.read(program("ROOT y = s32[8] negate(x)", "HloModule m\n"));
    collet_compile_request request{};
    request.assignment = &member.rank;
    request.assignment_count = 1;
    const ExecutablePtr e = member.compile(client.get(), module.get(), request);
    ASSERT_TRUE(e) << member.failure.message;
    collet_blob* blob = nullptr;
    collet_error error{};
    ASSERT_EQ(collet_executable_serialize(e.get(), &blob, &error), COLLET_OK) << error.message;
    collet_executable* loaded = nullptr;
    collet_executable_load(client.get(), collet_blob_data(blob), collet_blob_size(blob), nullptr, &loaded, &error);
    collet_blob_release(blob);
    const ExecutablePtr owner(loaded);
    ASSERT_TRUE(owner) << error.message;
    const auto out = member.results(loaded, member.arguments(client.get(), 1, 1));
    ASSERT_EQ(out.size(), 1u) << member.failure.message;
    EXPECT_EQ(out[0][1], -101);
  });
}

TEST_F(ProcessesTest, SendOfWhatIsReceivedIsRefused) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join();
    ASSERT_TRUE(client) << member.failure.message;
    const std::string pairs = "channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs=\"{{0,1}}\"}\n";
    EXPECT_FALSE(member.compile(client.get(),
                                "HloModule m, replica_count=2\nENTRY e {\n  t = token[] after-all()\n"
                                "  v = (s32[8], u32[], token[]) recv(t), " +
                                    pairs + "  d = (s32[8], token[]) recv-done(v), " + pairs +
                                    "  r = s32[8] get-tuple-element(d), index=0\n"
                                    "  s = (s32[8], u32[], token[]) send(r, t), " +
                                    pairs + "  e = token[] send-done(s), " + pairs + "  ROOT y = s32[8] negate(r)\n}"));
    EXPECT_EQ(member.failure.code, COLLET_UNIMPLEMENTED);
    EXPECT_THAT(member.failure.message, HasSubstr("what is sent does not depend on what is received"));
  });
}

// Rows that are not there: an error in both processes, and none waits for the other.
TEST_F(ProcessesTest, RaggedRowsThatAreNotThereAreRefused) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join();
    ASSERT_TRUE(client) << member.failure.message;
    const ExecutablePtr e = member.compile(
        client.get(),
        "HloModule m, replica_count=2\nENTRY e {\n  x = s32[400] parameter(0)\n  o = s32[400] negate(x)\n"
        "  from = s32[2] constant({0,10})\n  sizes = s32[2] constant({5,395})\n  to = s32[2] constant({0,0})\n"
        "  ROOT y = s32[400] ragged-all-to-all(x, o, from, sizes, to, sizes), replica_groups={{0,1}}\n}");
    ASSERT_TRUE(e) << member.failure.message;
    const auto begin = Clock::now();
    EXPECT_TRUE(member.results(e.get(), member.arguments(client.get(), 1, member.rank, 400)).empty());
    EXPECT_EQ(member.failure.code, COLLET_INVALID_ARGUMENT) << member.failure.message;
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));
  });
}

// Two threads run programs on different devices at the same time, and do not meet each other's messages.
TEST_F(ProcessesTest, ThreadsExchangeAtTheSameTime) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join("interpreter", 2);
    ASSERT_TRUE(client) << member.failure.message;
    const std::string text = "HloModule m, replica_count=2\n" + combiner("sum", "add", "s32") + R"(ENTRY e {
  x = s32[8] parameter(0)
  ROOT y = s32[8] all-reduce(x), replica_groups={}, to_apply=sum
})";
    const ModulePtr module = member.read(text);
    // The order of launches is that of the calls, so these come first; the threads wait for the results.
    constexpr int kRuns = 20;
    std::vector<std::vector<BufferPtr>> results[2];
    ExecutablePtr programs[2];
    for (uint32_t d = 0; d < 2; ++d) {
      const uint32_t assignment[] = {d, 2 + (1 - d)};
      collet_compile_request request{};
      request.assignment = assignment;
      request.assignment_count = 2;
      programs[d] = member.compile(client.get(), module.get(), request);
      ASSERT_TRUE(programs[d]) << member.failure.message;
    }
    const int64_t dims[] = {8};
    for (int i = 0; i < kRuns; ++i)
      for (uint32_t d = 0; d < 2; ++d) {
        const uint32_t device = member.rank == 0 ? d : 1 - d;
        std::vector<BufferPtr> in;
        const std::vector<int32_t> x(8, static_cast<int32_t>(1000 * d + static_cast<uint32_t>(i)));
        in.push_back(member.upload(client.get(), {COLLET_TYPE_S32, 1, dims}, x.data(), device));
        results[d].push_back(member.run(programs[d].get(), in));
        ASSERT_EQ(results[d].back().size(), 1u) << member.failure.message;
      }
    std::vector<std::thread> threads;
    for (uint32_t d = 0; d < 2; ++d)
      threads.emplace_back([&, d] {
        Session session;
        for (int i = 0; i < kRuns; ++i) {
          const auto out = session.download<int32_t>(results[d][static_cast<size_t>(i)][0]);
          EXPECT_EQ(session.failure.code, COLLET_OK) << session.failure.message;
          EXPECT_EQ(out, std::vector<int32_t>(8, 2 * static_cast<int32_t>(1000 * d + static_cast<uint32_t>(i))));
        }
      });
    for (std::thread& thread : threads) thread.join();
  });
}

constexpr char kTwo[] = "HloModule m, replica_count=2\n";

TEST_F(ProcessesTest, OtherProgramIsNamed) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join();
    ASSERT_TRUE(client) << member.failure.message;
    const std::string name = member.rank == 0 ? "HloModule first" : "HloModule second";
    const std::string entry = member.rank == 0 ? "z = s32[8] add(x, x)" : "z = s32[8] multiply(x, x)";
    const ExecutablePtr e = member.compile(
        client.get(), program(entry + "\n  ROOT y = s32[8] all-reduce(z), replica_groups={}, to_apply=sum",
                              name + ", replica_count=2\n"));
    ASSERT_TRUE(e) << member.failure.message;
    member.results(e.get(), member.arguments(client.get(), 1, member.rank));
    EXPECT_NE(member.failure.code, COLLET_OK);
    EXPECT_THAT(member.failure.message, HasSubstr(member.rank == 0 ? "process 1" : "process 0"));
    EXPECT_THAT(member.failure.message, HasSubstr("'first'"));
    EXPECT_THAT(member.failure.message, HasSubstr("'second'"));
  });
}

// A frontend registers its functions under names that are unlike in each process.
TEST_F(ProcessesTest, HostFunctionsMayHaveOtherNamesInEachProcess) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join();
    ASSERT_TRUE(client) << member.failure.message;
    const std::string target = "add_ten_" + std::to_string(member.rank);
    const collet_host_function function = {
        target.c_str(), nullptr, [](void*, const collet_host_call* call, collet_error*) -> collet_status {
          for (int i = 0; i < 8; ++i)
            static_cast<int32_t*>(call->results[0])[i] = static_cast<const int32_t*>(call->operands[0])[i] + 10;
          return COLLET_OK;
        }};
    const ModulePtr module =
        member.read(program("c = s32[8] custom-call(x), custom_call_target=\"" + target +
                                "\"\n  ROOT y = s32[8] all-reduce(c), replica_groups={}, to_apply=sum",
                            "HloModule m, replica_count=2\n"));
    ASSERT_TRUE(module) << member.failure.message;
    collet_compile_request request{};
    request.host_functions = &function;
    request.host_function_count = 1;
    const ExecutablePtr e = member.compile(client.get(), module.get(), request);
    ASSERT_TRUE(e) << member.failure.message;
    const auto out = member.results(e.get(), member.arguments(client.get(), 1, member.rank));
    ASSERT_EQ(out.size(), 1u) << member.failure.message;
    EXPECT_EQ(out[0][3], 3 + 103 + 20);
  });
}

TEST_F(ProcessesTest, OtherOrderOfDevicesIsNamed) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join();
    ASSERT_TRUE(client) << member.failure.message;
    const ModulePtr module = member.read(
        program("ROOT y = s32[8] all-reduce(x), replica_groups={}, to_apply=sum", "HloModule m, replica_count=2\n"));
    const uint32_t assignment[] = {member.rank, 1 - member.rank};
    collet_compile_request request{};
    request.assignment = assignment;
    request.assignment_count = 2;
    const ExecutablePtr e = member.compile(client.get(), module.get(), request);
    ASSERT_TRUE(e) << member.failure.message;
    member.results(e.get(), member.arguments(client.get(), 1, member.rank));
    EXPECT_EQ(member.failure.code, COLLET_FAILED_PRECONDITION);
    EXPECT_THAT(member.failure.message, HasSubstr("on the same devices"));
  });
}

// All processes hear of it, also those that a process which has given up has not told yet which program it runs; and can go on.
TEST_F(ProcessesTest, OtherProgramIsNamedInAllProcesses) {
  run_in(4, [](Member& member) {
    const ClientPtr client = member.join("interpreter", 1, 20000);
    ASSERT_TRUE(client) << member.failure.message;
    ExecutablePtr programs[2];
    for (int which = 0; which < 2; ++which) {
      programs[which] = member.compile(
          client.get(), "HloModule " + std::string(which ? "second" : "first") + ", replica_count=4\n" +
                            combiner("sum", "add", "s32") +
                            "ENTRY e {\n  x = s32[40000] parameter(0)\n  z = s32[40000] " +
                            (which ? "multiply" : "add") +
                            "(x, x)\n  ROOT y = s32[40000] all-reduce(z), replica_groups={}, to_apply=sum\n}");
      ASSERT_TRUE(programs[which]) << member.failure.message;
    }
    for (uint32_t round = 0; round < 40; ++round) {
      member.failure = {};
      member.results(programs[member.rank == round % 4 ? 1 : 0].get(),
                     member.arguments(client.get(), 1, member.rank, 40000));
      ASSERT_EQ(member.failure.code, COLLET_FAILED_PRECONDITION) << round << ": " << member.failure.message;
      EXPECT_THAT(member.failure.message, HasSubstr("'first'"));
      EXPECT_THAT(member.failure.message, HasSubstr("'second'"));
    }
    member.failure = {};
    const auto out = member.results(programs[0].get(), member.arguments(client.get(), 1, member.rank, 40000));
    ASSERT_EQ(out.size(), 1u) << member.failure.message;
    EXPECT_EQ(out[0][3], 2 * (600 + 4 * 3));
  });
}

TEST_F(ProcessesTest, KilledProcessIsNamed) {
  start(2, [](Member& member) {
    const ClientPtr client = member.join("interpreter", 1, 20000);
    ASSERT_TRUE(client) << member.failure.message;
    const ExecutablePtr e =
        member.compile(client.get(), program("ROOT y = s32[8] all-reduce(x), replica_groups={}, to_apply=sum", kTwo));
    ASSERT_TRUE(e) << member.failure.message;
    ASSERT_EQ(member.results(e.get(), member.arguments(client.get(), 1, member.rank)).size(), 1u);
    if (member.rank == 1) raise(SIGKILL);
    const auto begin = Clock::now();
    member.results(e.get(), member.arguments(client.get(), 1, member.rank));
    EXPECT_EQ(member.failure.code, COLLET_UNAVAILABLE);
    EXPECT_THAT(member.failure.message, HasSubstr("lost process 1"));
    EXPECT_THAT(member.failure.message, HasSubstr("all-reduce"));
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));  // at once, not after the limit
  });
  expect_good(0);
}

TEST_F(ProcessesTest, StoppedProcessIsNamedAfterTheLimit) {
  start(2, [](Member& member) {
    const ClientPtr client = member.join("interpreter", 1, 1000);
    ASSERT_TRUE(client) << member.failure.message;
    const ExecutablePtr e =
        member.compile(client.get(), program("ROOT y = s32[8] all-reduce(x), replica_groups={}, to_apply=sum", kTwo));
    ASSERT_TRUE(e) << member.failure.message;
    if (member.rank == 1) raise(SIGSTOP);
    member.results(e.get(), member.arguments(client.get(), 1, member.rank));
    EXPECT_EQ(member.failure.code, COLLET_DEADLINE_EXCEEDED);
    EXPECT_THAT(member.failure.message, HasSubstr("from process 1"));
    EXPECT_THAT(member.failure.message, HasSubstr("all-reduce"));
    member.results(e.get(), member.arguments(client.get(), 1, member.rank));  // fails at once
    EXPECT_EQ(member.failure.code, COLLET_DEADLINE_EXCEEDED);
  });
  expect_good(0, 10);
}

// A store whose owner is stopped when it has stored where the transport reaches it: the others try to connect to it.
struct StoppingStore {
  explicit StoppingStore(const collet_store* inner) : inner_(inner), store{sizeof(collet_store), 0, this, put, get} {}
  static collet_status put(void* user, const char* key, const void* value, uint64_t bytes, collet_error* error) {
    const collet_store* const inner = static_cast<StoppingStore*>(user)->inner_;
    const collet_status status = inner->put(inner->user, key, value, bytes, error);
    if (std::string(key).find("gloo") != std::string::npos) raise(SIGSTOP);
    return status;
  }
  static collet_status get(void* user, const char* key, uint32_t timeout_ms,
                           void (*take)(void* out, const void* value, uint64_t bytes), void* out, collet_error* error) {
    const collet_store* const inner = static_cast<StoppingStore*>(user)->inner_;
    return inner->get(inner->user, key, timeout_ms, take, out, error);
  }
  const collet_store* const inner_;
  const collet_store store;
};

// Which of two processes waits for the other's connection is drawn by their ports; so this is tried a few times.
TEST_F(ProcessesTest, ProcessThatStopsWhileConnectingIsNamedByAll) {
  constexpr uint32_t kLimitMs = 500;
  for (int round = 0; round < 4; ++round) {
    const std::string folder = folder_ + "/" + std::to_string(round);
    std::filesystem::create_directory(folder);
    start(3, [&](Member& started) {
      Member member(folder, started.rank, 3);
      StoppingStore stopping(member.store());
      const auto begin = Clock::now();
      EXPECT_FALSE(member.join("interpreter", 1, kLimitMs, member.rank == 1 ? &stopping.store : nullptr));
      EXPECT_THAT(member.failure.message, HasSubstr("process 1"));
      // The limit, twice the time in which processes hear of each other's waits, and the time to start.
      EXPECT_LT(Clock::now() - begin, std::chrono::milliseconds(4 * kLimitMs));
    });
    expect_good(0);
    expect_good(2);
    kill(processes_[1], SIGKILL);
    waitpid(processes_[1], nullptr, 0);
    processes_.clear();
  }
}

// Process 0 gives up waiting for process 1 and closes its client long before process 2 waits for it.
TEST_F(ProcessesTest, ReasonOfAProcessThatGaveUpIsTold) {
  start(3, [](Member& member) {
    ClientPtr client = member.join("interpreter", 1, 1000);
    ASSERT_TRUE(client) << member.failure.message;
    ExecutablePtr e = member.compile(
        client.get(),
        program("ROOT y = s32[8] all-reduce(x), replica_groups={}, to_apply=sum", "HloModule m, replica_count=3\n"));
    ASSERT_TRUE(e) << member.failure.message;
    if (member.rank == 1) raise(SIGSTOP);
    if (member.rank == 2) std::this_thread::sleep_for(std::chrono::milliseconds(3000));
    member.results(e.get(), member.arguments(client.get(), 1, member.rank));
    EXPECT_THAT(member.failure.message, HasSubstr("process 1"));
    EXPECT_THAT(member.failure.message, HasSubstr("no answer within 1 s"));
    EXPECT_EQ(member.failure.code, member.rank == 0 ? COLLET_DEADLINE_EXCEEDED : COLLET_UNAVAILABLE);
  });
  expect_good(0);
  expect_good(2);
}

// Process 0 waits for process 2, which waits for process 1, which is stopped. The limit of process 0 passes long before that of process 2.
TEST_F(ProcessesTest, ProcessForWhichAnotherOneWaitsIsNamed) {
  start(3, [](Member& member) {
    ClientPtr client = member.join("interpreter", 1, 2000);
    ASSERT_TRUE(client) << member.failure.message;
    ExecutablePtr e = member.compile(client.get(),
                                     "HloModule m, replica_count=3\nENTRY e {\n  x = s32[8] parameter(0)\n"
                                     "  a = s32[8] collective-permute(x), source_target_pairs={{1,2}}\n"
                                     "  ROOT y = s32[8] collective-permute(a), source_target_pairs={{2,0}}\n}");
    ASSERT_TRUE(e) << member.failure.message;
    if (member.rank == 1) raise(SIGSTOP);
    if (member.rank == 2) std::this_thread::sleep_for(std::chrono::milliseconds(900));
    member.results(e.get(), member.arguments(client.get(), 1, member.rank));
    EXPECT_THAT(member.failure.message, HasSubstr("process 1"));
  });
  expect_good(0);
  expect_good(2);
}

// Process 1 waits for process 2 to take what it sends.
TEST_F(ProcessesTest, ProcessThatTakesNothingIsNamed) {
  start(3, [](Member& member) {
    ClientPtr client = member.join("interpreter", 1, 2000);
    ASSERT_TRUE(client) << member.failure.message;
    ExecutablePtr e = member.compile(
        client.get(),
        "HloModule m, replica_count=3\nENTRY e {\n  x = s32[40000] parameter(0)\n"
        "  a = s32[40000] collective-permute(x), source_target_pairs={{1,2}}\n"
        "  b = s32[40000] add(a, x)\n  ROOT y = s32[40000] collective-permute(b), source_target_pairs={{1,0}}\n}");
    ASSERT_TRUE(e) << member.failure.message;
    if (member.rank == 2) raise(SIGSTOP);
    member.results(e.get(), member.arguments(client.get(), 1, member.rank, 40000));
    EXPECT_THAT(member.failure.message, HasSubstr("process 2"));
  });
  expect_good(0);
  expect_good(1);
}

// Process 0 sees that process 1 has died, and goes on with its client. Process 2, which waits for data of process 0, hears of it at once.
TEST_F(ProcessesTest, SurvivorThatKeepsItsClientIsNotWaitedFor) {
  start(3, [this](Member& member) {
    ClientPtr client = member.join("interpreter", 1, 20000);
    ASSERT_TRUE(client) << member.failure.message;
    ExecutablePtr e =
        member.compile(client.get(),
                       "HloModule m, replica_count=3\nENTRY e {\n  x = s32[40000] parameter(0)\n"
                       "  ROOT y = s32[40000] collective-permute(x), source_target_pairs={{1,0},{0,2}}\n}");
    ASSERT_TRUE(e) << member.failure.message;
    if (member.rank == 1) raise(SIGKILL);
    if (member.rank == 2) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const auto begin = Clock::now();
    member.results(e.get(), member.arguments(client.get(), 1, member.rank, 40000));
    EXPECT_EQ(member.failure.code, COLLET_UNAVAILABLE);
    EXPECT_THAT(member.failure.message, HasSubstr("process 1"));
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));
    std::ofstream(folder_ + "/done_" + std::to_string(member.rank));
    while (!std::filesystem::exists(folder_ + "/done_" + std::to_string(2 - member.rank)))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    member.failure = {};
    member.results(e.get(), member.arguments(client.get(), 1, member.rank, 40000));  // fails at once
    EXPECT_EQ(member.failure.code, COLLET_UNAVAILABLE);
  });
  expect_good(0);
  expect_good(2);
}

// An argument fails in process 1, so the program cannot run there; process 0 hears of it.
TEST_F(ProcessesTest, FailureOfAnotherProcessIsTold) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join();
    ASSERT_TRUE(client) << member.failure.message;
    const ExecutablePtr e =
        member.compile(client.get(), program("ROOT y = s32[8] all-reduce(x), replica_groups={}, to_apply=sum", kTwo));
    ASSERT_TRUE(e) << member.failure.message;
    const int64_t dims[] = {8};
    const collet_array_type type = {COLLET_TYPE_S32, 1, dims};
    std::vector<BufferPtr> in = member.arguments(client.get(), 1, member.rank);
    if (member.rank == 1) {
      collet_buffer* promised = nullptr;
      ASSERT_EQ(collet_buffer_promise(client.get(), 0, COLLET_NONE, &type, &promised, nullptr), COLLET_OK);
      in[0].reset(promised);
      collet_buffer_fail(promised, COLLET_DATA_LOSS, "the disk is gone", nullptr);
    }
    member.results(e.get(), in);
    if (member.rank == 0) {
      EXPECT_EQ(member.failure.code, COLLET_DATA_LOSS);
      EXPECT_THAT(member.failure.message, HasSubstr("process 1"));
    }
    EXPECT_THAT(member.failure.message, HasSubstr("the disk is gone"));
    // The processes still have each other.
    const auto out = member.results(e.get(), member.arguments(client.get(), 1, member.rank));
    EXPECT_EQ(out.size(), 1u) << member.failure.message;
  });
}

TEST_F(ProcessesTest, MissingProcessIsNamed) {
  start(1, [](Member& first) {
    Member member(std::filesystem::temp_directory_path() / "collet_processes_nobody", first.rank, 2);
    EXPECT_FALSE(member.join("interpreter", 1, 300));
    EXPECT_NE(member.failure.code, COLLET_OK);
  });
  expect_good(0);
  processes_.clear();
  start(1, [this](Member& first) {
    Member member(folder_, first.rank, 2);
    EXPECT_FALSE(member.join("interpreter", 1, 300));
    EXPECT_EQ(member.failure.code, COLLET_DEADLINE_EXCEEDED);
    EXPECT_THAT(member.failure.message, HasSubstr("process 1 of 2"));
  });
  expect_good(0);
}

TEST_F(ProcessesTest, UnlikeProcessesAreRefused) {
  run_in(2, [](Member& member) {
    EXPECT_FALSE(member.join(member.rank == 0 ? "interpreter" : "memory_only"));
    EXPECT_EQ(member.failure.code, COLLET_FAILED_PRECONDITION);
    EXPECT_THAT(member.failure.message, HasSubstr("process 1"));
    EXPECT_THAT(member.failure.message, HasSubstr("'interpreter'"));
  });
}

TEST_F(ProcessesTest, ProgramOfOneProcessNeedsNoOther) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join("interpreter", 2);
    ASSERT_TRUE(client) << member.failure.message;
    if (member.rank == 1) return;
    const ExecutablePtr e =
        member.compile(client.get(), program("ROOT y = s32[8] all-reduce(x), replica_groups={}, to_apply=sum", kTwo));
    ASSERT_TRUE(e) << member.failure.message;
    EXPECT_EQ(member.results(e.get(), member.arguments(client.get(), 2, 0)).size(), 2u) << member.failure.message;
  });
}

TEST_F(ProcessesTest, AssignmentsAreChecked) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join();
    ASSERT_TRUE(client) << member.failure.message;
    const ModulePtr module = member.read(program("ROOT y = s32[8] negate(x)", "HloModule m\n"));
    const auto compile_on = [&](uint32_t device) {
      collet_compile_request request{};
      request.assignment = &device;
      request.assignment_count = 1;
      return member.compile(client.get(), module.get(), request);
    };
    EXPECT_TRUE(compile_on(member.rank)) << member.failure.message;
    EXPECT_FALSE(compile_on(1 - member.rank));
    EXPECT_THAT(member.failure.message, HasSubstr("no participant"));
    EXPECT_FALSE(compile_on(2));
    EXPECT_THAT(member.failure.message, HasSubstr("device 2"));
  });
}

}  // namespace
}  // namespace collet::testing
