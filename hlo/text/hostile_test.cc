// SPDX-License-Identifier: Apache-2.0
// Tests that text which tries to exhaust time or memory is refused with a message, quickly and without much memory, and
// that similar valid text is read in linear time.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

std::string repeated(int times, const std::function<std::string(int)>& make) {
  std::string out;
  for (int i = 0; i < times; ++i) out += make(i);
  return out;
}

void expect_refused(const std::string& text, std::string_view why) {
  const auto module = parse_module(text, "test");
  const std::string got = module.ok() ? "read" : module.status().message();
  EXPECT_NE(got.find(why), std::string::npos) << text.substr(0, 1000) << "\n" << got.substr(0, 1000);
}

TEST(Hostile, DimensionsWithoutEnd) {
  const std::string ones = repeated(300000, [](int i) { return i ? ",1" : "1"; });
  expect_refused("HloModule m\nENTRY e {\n ROOT rx = f32[" + ones + "] constant(1)\n}\n", "at most 64 dimensions");
}

TEST(Hostile, TuplesThatDouble) {
  const auto module = [](std::string_view first, const std::function<std::string(int)>& line, int lines) {
    return "HloModule m\nENTRY e {\n p = f32[] parameter(0)\n k = token[] after-all()\n t0 = " + std::string(first) +
           "\n" + repeated(lines, line) + " ROOT r = f32[] negate(p)\n}\n";
  };
  const auto n = [](int i) { return std::to_string(i); };
  const auto twice = [&](int i) { return " t" + n(i + 1) + " = tuple(t" + n(i) + ", t" + n(i) + ")\n"; };
  expect_refused(module("tuple(p, p)", twice, 40), "parts");
  expect_refused(module("() tuple()", twice, 40), "parts");
  const auto around = [&](int i) { return " t" + n(i + 1) + " = tuple(t" + n(i) + ")\n"; };
  expect_refused(module("tuple(p)", around, 3000), "nested deeper");
  const auto send = [&](int i) {
    return " t" + n(i + 1) + " = (f32[], u32[], token[]) send(t" + n(i) + ", k), channel_id=1\n";
  };
  expect_refused(module("tuple(p)", send, 3000), "nested deeper");
  // Large shapes that are used many times.
  std::string wide = "HloModule m\nENTRY e {\n p = f32[] parameter(0)\n t = (" +
                     repeated(100000, [](int i) { return i ? ",f32[]" : "f32[]"; }) + ") custom-call(), " +
                     "custom_call_target=\"x\"\n" +
                     repeated(200, [&](int i) { return " u" + n(i) + " = tuple(t)\n"; }) +
                     " ROOT r = f32[] negate(p)\n}\n";
  expect_refused(wide, "parts");
}

std::string all_reduces(int lines, const std::function<std::string(int)>& groups) {
  return "HloModule m\nadd {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b)\n}\n"
         "ENTRY e {\n p = f32[] parameter(0)\n" +
         repeated(lines,
                  [&](int i) {
                    return " r" + std::to_string(i) + " = f32[] all-reduce(p), replica_groups=" + groups(i) +
                           ", to_apply=add\n";
                  }) +
         " ROOT r = f32[] negate(p)\n}\n";
}

TEST(Hostile, GroupsAreWrittenOutOnce) {
  for (std::string_view groups : {"[262144,4]<=[1048576]", "mesh['x'=1024,'y'=1024] {'y'}"}) {
    const auto module = parse_module(all_reduces(3000, [&](int) { return std::string(groups); }), "test");
    ASSERT_TRUE(module.ok()) << module.status().message();
    const auto& order = (*module)->entry_computation().order;
    const auto list = [&](InstrId id) { return (**module)[id].as<CollectiveAttrs>().groups.groups; };
    EXPECT_EQ(list(order[1]).data(), list(order[3000]).data());
    EXPECT_EQ(list(order[1]).size() * list(order[1])[0].size(), size_t{1} << 20);
  }
  expect_refused(
      all_reduces(12,
                  [](int i) {
                    return "[" + std::to_string(1 << 20) + ",1]<=[" + std::to_string(1 << 20) +
                           repeated(i, [](int) { return ",1"; }) + "]" +
                           (i ? "T(0" + repeated(i, [](int k) { return "," + std::to_string(k + 1); }) + ")" : "");
                  }),
      "replica groups: the program has more parts");
}

TEST(Hostile, AxesAndDimensionsOfSizeOne) {
  const std::string axes = repeated(60, [](int i) { return "'a" + std::to_string(i) + "'=1,"; });
  const std::string names = repeated(60, [](int i) { return "'a" + std::to_string(i) + "',"; });
  const auto module = parse_module(
      all_reduces(100, [&](int i) { return "mesh[" + axes + "'z'=" + std::to_string(4096 + i) + "] {" + names + "}"; }),
      "test");
  ASSERT_TRUE(module.ok()) << module.status().message();
  const auto& order = (*module)->entry_computation().order;
  EXPECT_EQ((**module)[order[1]].as<CollectiveAttrs>().groups.groups.size(), 4096u);
  const std::string ones = repeated(20000, [](int) { return "1,"; });
  const std::string places = repeated(20000, [](int i) { return std::to_string(i) + ","; });
  const auto iota = parse_module(all_reduces(20,
                                             [&](int i) {
                                               return "[" + std::to_string(1000 + i) + ",1]<=[" + ones +
                                                      std::to_string(1000 + i) + "]T(" + places + "20000)";
                                             }),
                                 "test");
  EXPECT_TRUE(iota.ok()) << iota.status().message();
}

TEST(Groups, PartsOfAxesInAnyOrder) {
  const auto groups = [](std::string_view text) {
    const auto module = parse_module(all_reduces(1, [&](int) { return std::string(text); }), "test");
    EXPECT_TRUE(module.ok()) << module.status().message();
    std::string out;
    if (!module.ok()) return out;
    for (const Dims& group : (**module)[(*module)->entry_computation().order[1]].as<CollectiveAttrs>().groups.groups) {
      out += "{";
      for (int64_t id : group) out += std::to_string(id) + ",";
      out.back() = '}';
    }
    return out;
  };
  EXPECT_EQ(groups("mesh['a'=2,'b'=4] {'a'}"), "{0,4}{1,5}{2,6}{3,7}");
  EXPECT_EQ(groups("mesh['a'=2,'b'=4] {'b':(2)2}"), "{0,1}{2,3}{4,5}{6,7}");
  EXPECT_EQ(groups("mesh['a'=2,'b'=4] {'b':(1)2,'a'}"), "{0,4,2,6}{1,5,3,7}");
  EXPECT_EQ(groups("mesh['o'=1,'a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b','o'}"), "{0,2}{1,3}");
  EXPECT_EQ(groups("[2,3]<=[3,1,2]T(2,1,0)"), "{0,2,4}{1,3,5}");
  expect_refused(all_reduces(1, [](int) { return "[2,2]<=[2,2]T(0)"; }), "no permutation");
  expect_refused(all_reduces(1, [](int) { return "mesh['a'=2,'b'=2], device_ids=([2,2]T(0)) {'a'}"; }), "do not fit");
}

TEST(Scale, NamesThatAreAllTheSame) {
  for (std::string_view name : {"x", "", "a b"}) {
    Module module("m");
    const CompId entry = module.add_computation("e");
    InstrId last = module.append_parameter(entry, 0, Shape::scalar(Type::F32));
    for (int i = 0; i < 30000; ++i) {
      const InstrId operands[] = {last};
      last = module.append(entry, Op::NEGATE, Shape::scalar(Type::F32), operands);
      module[last].name = name;
    }
    module[entry].root = last;
    module.set_entry(entry);
    const std::string text = print_module(module);
    const auto again = parse_module(text, "printed");
    ASSERT_TRUE(again.ok()) << again.status().message().substr(0, 1000);
    EXPECT_EQ((*again)->instruction_count(), 30001u);
  }
}

TEST(Scale, ComputationsThatAreWrittenInPlace) {
  const std::string body = "{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }";
  const auto module = parse_module(
      "HloModule m\n" +
          repeated(30000,
                   [](int i) {
                     return "comp" + std::to_string(i) + " {\n p = f32[] parameter(0)\n ROOT r = f32[] negate(p)\n}\n";
                   }) +
          "ENTRY e {\n p = f32[4] parameter(0)\n z = f32[] constant(0)\n" +
          repeated(3000,
                   [&](int i) {
                     return " r" + std::to_string(i) + " = f32[] reduce(p, z), dimensions={0}, to_apply=" + body + "\n";
                   }) +
          " ROOT r = f32[] negate(z)\n}\n",
      "test");
  ASSERT_TRUE(module.ok()) << module.status().message();
  EXPECT_EQ((*module)->computations().size(), 33001u);
}

TEST(Literal, NumbersThatNoIntegerHolds) {
  const double inf = std::numeric_limits<double>::infinity();
  for (Type type : {Type::S64, Type::U64, Type::S8, Type::U4}) {
    EXPECT_EQ(Literal::scalar(type, std::nan("")).as_int(0), 0);
    EXPECT_EQ(Literal::scalar(type, 1e300).as_int(0), Literal::scalar(type, inf).as_int(0));
    EXPECT_EQ(Literal::scalar(type, -1e300).as_int(0), Literal::scalar(type, -inf).as_int(0));
  }
  EXPECT_EQ(static_cast<uint64_t>(Literal::scalar(Type::U64, inf).as_int(0)), UINT64_MAX);
  EXPECT_EQ(Literal::scalar(Type::S64, -inf).as_int(0), INT64_MIN);
  EXPECT_EQ(static_cast<uint64_t>(Literal::scalar(Type::U64, 9.5e18).as_int(0)), 9500000000000000000u);
  EXPECT_EQ(Literal::scalar(Type::S8, 300).as_int(0), 44);
}

TEST(Verify, SizesAndOrdersThatAreNone) {
  Module module("m");
  const CompId entry = module.add_computation("e");
  const InstrId p = module.append_parameter(entry, 0, Shape::array(Type::F32, {-5}));
  module[entry].root = p;
  module.set_entry(entry);
  EXPECT_NE(verify_module(module).message().find("a negative size"), std::string::npos);
  module[p].shape = Shape::array(Type::F32, {INT64_MAX, INT64_MAX});
  EXPECT_NE(verify_module(module).message().find("more bytes"), std::string::npos);
  module[p].shape = Shape::array(Type::F32, std::vector<int64_t>(65, 1));
  EXPECT_NE(verify_module(module).message().find("at most 64"), std::string::npos);
  module[p].shape = Shape::array(Type::F32, {8});
  EXPECT_TRUE(verify_module(module).ok());
  Sharding sharding;
  sharding.kind = Sharding::Kind::Tiled;
  sharding.iota = true;
  sharding.tile_dims = {4};
  sharding.reshape = {2, 2};
  for (const std::vector<int64_t>& order : {std::vector<int64_t>{0, 100000000}, {0, -1}, {1, 1}, {0}, {0, 1, 2}}) {
    sharding.permutation = order;
    Extras extras;
    extras.sharding = module.keep(sharding);
    module[p].extras = module.arena().make<Extras>(extras);
    EXPECT_NE(verify_module(module).message().find("no order of the dimensions"), std::string::npos);
  }
}

}  // namespace
}  // namespace collet::hlo
