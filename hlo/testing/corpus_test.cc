// SPDX-License-Identifier: Apache-2.0
#include "hlo/testing/corpus.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "hlo/testing/checks.h"
#include "hlo/text/parser.h"

namespace collet::hlo::testing {
namespace {

TEST(InputsByRule, AreTheNumbersOfTheRule) {
  EXPECT_EQ(mix(0), 0xE220A8397B1DCDAFu);
  EXPECT_EQ(unit(0), -1.0);
  EXPECT_EQ(unit(UINT64_MAX), 1 - std::ldexp(1.0, -23));
  const Literal f = input_by_rule({}, Shape::array(Type::F32, {3}), 1);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(f.as_double(i), unit(mix((uint64_t{1} << 40) ^ static_cast<uint64_t>(i))));
  }
  const Literal s = input_by_rule({}, Shape::array(Type::S8, {100}), 0),
                u = input_by_rule({}, Shape::array(Type::U2, {100}), 0);
  for (int64_t i = 0; i < 100; ++i) {
    const uint64_t x = mix(static_cast<uint64_t>(i));
    EXPECT_EQ(s.as_int(i), static_cast<int64_t>((x >> 33) % 9) - 4);
    EXPECT_EQ(u.as_int(i), static_cast<int64_t>((x >> 33) % 4));
  }
}

TEST(InputsByRule, ScaleAndModulo) {
  const uint64_t x = mix(uint64_t{2} << 40);
  const InputRule scaled{.kind = InputRule::Kind::Unit, .scale = 0.25, .offset = 3};
  EXPECT_EQ(input_by_rule(scaled, Shape::scalar(Type::F64), 2).as_double(0), 3 + 0.25 * unit(x));
  const InputRule integer{.kind = InputRule::Kind::Integer, .modulo = 10, .low = -5};
  EXPECT_EQ(input_by_rule(integer, Shape::scalar(Type::S32), 2).as_int(0), static_cast<int64_t>((x >> 33) % 10) - 5);
}

TEST(PlainShape, ReadsAndRefuses) {
  const Expected<Shape> shape = plain_shape("bf16[2,0,3]");
  ASSERT_TRUE(shape.ok());
  EXPECT_EQ(shape->to_string(), "bf16[2,0,3]");
  EXPECT_TRUE(plain_shape("pred[]").ok());
  for (const char* bad : {"", "f32", "f32[", "f32[2", "f32[2,]x", "g32[2]", "f32[-1]", "f32[a]", "f32[1;2]"}) {
    EXPECT_FALSE(plain_shape(bad).ok()) << bad;
  }
}

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/collet_corpus_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, std::string_view text) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
  }
  std::string folder_;
};

TEST_F(Files, Index) {
  write("some.jsonl",
        "{\"file\": \"a.hlo\", \"xla\": \"read\", \"inputs\": [], \"outputs\": [\"s32[2]\"], \"offset\": 4, \"bytes\": "
        "8}\n"
        "{\"file\": \"b.hlo\", \"xla\": \"refused\", \"line\": 7, \"column\": 2, \"message\": \"no\"}\n\n"
        "{\"file\": \"c.hlo\", \"xla\": \"read\", \"stopped_at\": \"large\"}\n");
  write("some.expected.bin", std::string("\0\0\0\0\5\0\0\0\377\377\377\377", 12));
  const Expected<Index> index = read_index(folder_ + "/some.jsonl");
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  ASSERT_EQ(index->entries.size(), 3u);
  EXPECT_EQ(index->entries[1].line, 7);
  EXPECT_FALSE(index->entries[1].read);
  EXPECT_FALSE(index->entries[2].has_result());
  const auto results = expected_results(*index, index->entries[0]);
  ASSERT_TRUE(results.ok()) << results.status().to_string();
  EXPECT_EQ((*results)[0].as_int(0), 5);
  EXPECT_EQ((*results)[0].as_int(1), -1);
}

TEST_F(Files, BrokenOnesAreRefusedWithTheirPlace) {
  write("some.jsonl", "{\"file\": \"a.hlo\", \"xla\": \"read\"}\n{\"file\": \n");
  const Expected<Index> index = read_index(folder_ + "/some.jsonl");
  ASSERT_FALSE(index.ok());
  EXPECT_NE(index.status().message().find("some.jsonl:2"), std::string::npos) << index.status().message();
  EXPECT_FALSE(read_model(folder_).ok());
  write("case.json",
        "{\"name\": \"x\", \"outputs\": [{\"shape\": \"f32[2]\", \"stored\": \"f64\", \"count\": 3, \"stride\": 1}]}");
  EXPECT_FALSE(read_model(folder_).ok());
}

TEST(Checks, ExpectedNaNsMustBeTheSame) {
  const auto nan = [](uint32_t bits) { return Literal::from_bytes(Shape::array(Type::F32, {}), &bits); };
  const Check equal{.kind = Check::Kind::Equal, .name = "c"};
  EXPECT_TRUE(compare_check(equal, nan(0x7fc00000), nan(0x7fc00000)).ok());
  EXPECT_FALSE(compare_check(equal, nan(0xffc00000), nan(0x7fc00000)).ok());
  EXPECT_FALSE(compare_check(equal, nan(0x3f800000), nan(0x7fc00000)).ok());
  EXPECT_TRUE(compare_check(equal, nan(0x80000000), nan(0)).ok());
}

std::vector<ExpectedResult> expected_of(const std::string& body) {
  const auto module = parse_module("HloModule m\nENTRY e {\n" + body + "\n}\n");
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  if (!module.ok()) return {};
  auto out = expected_results(**module);
  EXPECT_TRUE(out.ok()) << out.status().to_string();
  return out.ok() ? *std::move(out) : std::vector<ExpectedResult>();
}

TEST(ExpectedResults, AreTheConstantsThatResultsAreComparedWith) {
  const auto expected = expected_of(R"(
    x = f32[2] constant({1, 2})
    y = f32[2] negate(x)
    z = f32[2] add(x, x)
    want = f32[2] constant({-1, -2})
    two = f32[] constant(2)
    spread = f32[2] broadcast(two), dimensions={}
    c0 = pred[] custom-call(want, y), custom_call_target="check.eq"
    c1 = pred[] custom-call(z, spread), custom_call_target="check.eq"
    ROOT t = (f32[2], f32[2]) tuple(z, y))");
  ASSERT_EQ(expected.size(), 2u);
  EXPECT_EQ(expected[0].result, 1u);
  EXPECT_EQ(expected[0].value.as_double(1), -2);
  EXPECT_EQ(expected[1].result, 0u);
  EXPECT_EQ(expected[1].value.as_double(1), 2);
  Literal right = Literal::zeros(Shape::array(Type::F32, {2})), wrong = right;
  right.set_double(0, -1);
  right.set_double(1, -2);
  EXPECT_TRUE(compare_check(expected[0].check, right, expected[0].value).ok());
  EXPECT_FALSE(compare_check(expected[0].check, wrong, expected[0].value).ok());
}

TEST(ExpectedResults, AreNoneWhereNothingReturnedIsChecked) {
  EXPECT_TRUE(expected_of(R"(
    x = f32[] constant(1)
    y = f32[] negate(x)
    z = f32[] negate(y)
    want = f32[] constant(-1)
    c = pred[] custom-call(y, want), custom_call_target="check.eq"
    d = pred[] custom-call(z, y), custom_call_target="check.eq"
    ROOT r = f32[] copy(z))")
                  .empty());
}

}  // namespace
}  // namespace collet::hlo::testing
