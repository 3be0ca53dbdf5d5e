// SPDX-License-Identifier: Apache-2.0
// Tests collectives whose participants are in several processes: they give what one process gives.
#include <gmock/gmock.h>

#include "sdk/runtime/testing/process_group.h"
#include "sdk/runtime/testing/programs.h"
#include "sdk/runtime/testing/queued.h"

namespace collet::testing {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr char kHeader[] = "HloModule m, replica_count=4\n";

// Runs the program with four participants in processes of as many devices each, and compares with one process.
void compare(Member& member, const std::string& backend, const std::string& text, QueueControl* control = nullptr) {
  SCOPED_TRACE(text);
  const uint32_t devices = 4 / member.size;
  const ClientPtr client = member.join(backend, devices, 20000, nullptr, control);
  ASSERT_TRUE(client) << member.failure.message;
  const ExecutablePtr e = member.compile(client.get(), text);
  ASSERT_TRUE(e) << member.failure.message;
  EXPECT_EQ(Session::facts(e.get()).participants, 4u);
  EXPECT_EQ(Session::facts(e.get()).local_participants, devices);
  const auto out = member.results(e.get(), member.arguments(client.get(), devices, devices * member.rank));
  ASSERT_EQ(out.size(), devices) << member.failure.message;
  Session one;
  const ClientPtr alone = one.open("interpreter", "none", nullptr, 4);
  ASSERT_TRUE(alone) << one.failure.message;
  const ExecutablePtr whole = one.compile(alone.get(), text);
  ASSERT_TRUE(whole) << one.failure.message;
  const auto results = one.run(whole.get(), member.arguments(alone.get(), 4, 0));
  ASSERT_EQ(results.size(), 4u) << one.failure.message;
  for (uint32_t d = 0; d < devices; ++d) EXPECT_EQ(out[d], one.download<int32_t>(results[devices * member.rank + d]));
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

// A program of two collectives, one on the other's result, as on the rows and the columns of a mesh. `op` is the text before and after the
// groups. It gives a sum over all of its result.
std::string mesh(const std::string& elements, const std::string& op, const std::string& attributes,
                 const std::string& first, const std::string& second) {
  const std::string n = "s32[" + elements + "]";
  return program("zero = s32[] constant(0)\n  i = " + n +
                 " iota(), iota_dimension=0\n  first = s32[1] slice(x), slice={[0:1]}\n  one = s32[] reshape(first)\n"
                 "  b = " +
                 n + " broadcast(one), dimensions={}\n  v = " + n + " multiply(b, i)\n  r = " + n + " " + op +
                 "(v), replica_groups=" + first + ", " + attributes + "\n  w = " + n + " multiply(r, i)\n  c = " + n +
                 " " + op + "(w), replica_groups=" + second + ", " + attributes + "\n  q = " + n +
                 " multiply(c, i)\n  t = s32[] reduce(q, zero), dimensions={0}, to_apply=sum\n"
                 "  all = s32[8] broadcast(t), dimensions={}\n  ROOT y = s32[8] add(all, x)");
}
constexpr char kRows[] = "{{0,1},{2,3}}", kColumns[] = "{{0,2},{1,3}}";

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

TEST_P(EachCollective, GivesWhatOneProcessGivesByLinksOfTheDevices) {
  run_in(2, [&](Member& member) {
    QueueControl control;
    control.exchange = true;
    control.duration_ns = 100'000;
    compare(member, "queued", GetParam().text, &control);
    EXPECT_EQ(control.broken_rules(), std::vector<std::string>());
    control.wait_until_closed();
  });
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
        Case{"LargeAllReduceOfRowsAndColumns", mesh("20000", "all-reduce", "to_apply=sum", kRows, kColumns)},
        Case{"LargeAllReduceOfColumnsAndRows", mesh("20000", "all-reduce", "to_apply=sum", kColumns, kRows)},
        Case{"LargeAllReduceOfRowsAndAll", mesh("20000", "all-reduce", "to_apply=sum", kRows, "{{0,1,2,3}}")},
        Case{"LargeAllReduceOfAGroupInTwoOrders",
             mesh("20000", "all-reduce", "to_apply=sum", "{{0,2},{1,3}}", "{{2,0},{3,1}}")},
        Case{"LargeAllToAllOfRowsAndColumns", mesh("2000", "all-to-all", "dimensions={0}", kRows, kColumns)},
        Case{"SmallAllReduceOfRowsAndColumns", mesh("60", "all-reduce", "to_apply=sum", kRows, kColumns)},
        Case{"SmallAllReduceInMoreThanAHeader", mesh("60", "all-reduce", "to_apply=sum", "{}", "{}")},
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

// As many processes as participants, so that the columns have others than the rows.
TEST_F(ProcessesTest, MeshOfFourProcessesGivesWhatOneProcessGives) {
  for (const std::string& text : {mesh("20000", "all-reduce", "to_apply=sum", kRows, kColumns),
                                  mesh("2000", "all-to-all", "dimensions={0}", kRows, kColumns),
                                  mesh("60", "all-reduce", "to_apply=sum", kRows, kColumns)}) {
    run_in(4, [&](Member& member) { compare(member, "interpreter", text); });
    processes_.clear();
  }
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

// A pipelined loop: what is sent in one iteration is received in the next one.
TEST_F(ProcessesTest, TransfersPassFromIterationToIteration) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join();
    ASSERT_TRUE(client) << member.failure.message;
    const std::string channel =
        "channel_id=3, frontend_attributes={_xla_send_recv_source_target_pairs=\"{{0,1},{1,0}}\"}\n";
    const std::string transfer = "(s32[8], u32[], token[])", state = "(s32[], " + transfer + ", " + transfer + ")";
    const std::string dones = "  received = " + transfer + " get-tuple-element(c), index=1\n  sent = " + transfer +
                              " get-tuple-element(c), index=2\n  d = (s32[8], token[]) recv-done(received), " +
                              channel + "  e = token[] send-done(sent), " + channel;
    const ExecutablePtr e = member.compile(
        client.get(),
        "HloModule m, replica_count=2\ncond {\n  c = " + state +
            " parameter(0)\n  i = s32[] get-tuple-element(c), index=0\n  n = s32[] constant(2)\n"
            "  ROOT r = pred[] compare(i, n), direction=LT\n}\nbody {\n  c = " +
            state + " parameter(0)\n  i = s32[] get-tuple-element(c), index=0\n  one = s32[] constant(1)\n" +
            "  j = s32[] add(i, one)\n" + dones +
            "  got = s32[8] get-tuple-element(d), index=0\n  next = s32[8] negate(got)\n  v = " + transfer +
            " recv(e), " + channel + "  s = " + transfer + " send(next, e), " + channel + "  ROOT r = " + state +
            " tuple(j, v, s)\n}\nENTRY m {\n  x = s32[8] parameter(0)\n  t = token[] after-all()\n"
            "  zero = s32[] constant(0)\n  v = " +
            transfer + " recv(t), " + channel + "  s = " + transfer + " send(x, t), " + channel + "  init = " + state +
            " tuple(zero, v, s)\n  c = " + state + " while(init), condition=cond, body=body\n" + dones +
            "  ROOT got = s32[8] get-tuple-element(d), index=0\n}");
    ASSERT_TRUE(e) << member.failure.message;
    const auto out = member.results(e.get(), member.arguments(client.get(), 1, member.rank));
    ASSERT_EQ(out.size(), 1u) << member.failure.message;
    // It has gone to the other process and back, and to the other one again.
    EXPECT_EQ(out[0][3], 100 * (1 - static_cast<int32_t>(member.rank)) + 3);
  });
}

TEST_F(ProcessesTest, TransfersBetweenReplicasAndPartitionsAreRefused) {
  run_in(2, [](Member& member) {
    const ClientPtr client = member.join("interpreter", 2);
    ASSERT_TRUE(client) << member.failure.message;
    EXPECT_FALSE(member.compile(client.get(),
                                transfer("{{0,3},{3,0}}", "8", "HloModule m, replica_count=2, num_partitions=2\n")));
    EXPECT_EQ(member.failure.code, COLLET_UNIMPLEMENTED);
    EXPECT_THAT(member.failure.message, HasSubstr("not of both"));
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

}  // namespace
}  // namespace collet::testing
