// SPDX-License-Identifier: Apache-2.0
#include <collet/dictionary.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace collet {
namespace {

using Entry = DictionaryEntry;

std::vector<Entry> read(const std::string& text) {
  std::vector<Entry> out;
  EXPECT_TRUE(read_dictionary(text, &out)) << text;
  return out;
}

Entry value(const std::string& text) {
  std::vector<Entry> all = read("{key = " + text + "}");
  EXPECT_EQ(all.size(), 1u) << text;
  return all.empty() ? Entry{} : all[0];
}

bool refused(const std::string& text) {
  std::vector<Entry> out(1);
  return !read_dictionary(text, &out) && out.empty();
}

TEST(Dictionary, Scalars) {
  EXPECT_EQ(value("true").type, COLLET_TYPE_PRED);
  EXPECT_EQ(value("true").integer(), 1);
  EXPECT_EQ(value("7").type, COLLET_TYPE_S64);
  EXPECT_EQ(value("-7 : i32").type, COLLET_TYPE_S32);
  EXPECT_EQ(value("-7 : i32").integer(), -7);
  EXPECT_EQ(value("-7 : i32").bytes.size(), 4u);
  EXPECT_EQ(static_cast<uint64_t>(value("18446744073709551615 : ui64").integer()), UINT64_MAX);
  EXPECT_EQ(value("200 : ui8").integer(), 200);
  EXPECT_EQ(value("3 : index").type, COLLET_TYPE_S64);
  EXPECT_EQ(value("1.25e-01 : f32").type, COLLET_TYPE_F32);
  EXPECT_EQ(value("1.25e-01 : f32").number(), 0.125);
  EXPECT_EQ(value("1e-05").type, COLLET_TYPE_F64);
  EXPECT_EQ(value("1.000000e-05 : f64").number(), 1e-5);
  EXPECT_EQ(value("1.5 : bf16").bytes.size(), 2u);
  EXPECT_EQ(value("1.5 : bf16").number(), 1.5);
  EXPECT_EQ(value("6.5e4 : f16").number(), 64992);
  EXPECT_TRUE(std::isinf(value("0x7F800000 : f32").number()));
  EXPECT_TRUE(std::isnan(value("0x7E00 : f16").number()));
  EXPECT_EQ(value("5.0e-324 : f64").number(), 5e-324);
  EXPECT_EQ(value("2.5e-1 : f32").text, "2.5e-1");
}

TEST(Dictionary, Arrays) {
  const Entry window = value("array<i64: 1, -2, 3>");
  EXPECT_EQ(window.kind, Entry::kArray);
  EXPECT_EQ(window.type, COLLET_TYPE_S64);
  EXPECT_EQ(window.count(), 3u);
  EXPECT_EQ(window.integer(1), -2);
  EXPECT_EQ(window.integer(3), 0);
  EXPECT_EQ(value("array<i1: true, false>").integer(0), 1);
  EXPECT_EQ(value("array<f32>").count(), 0u);
  EXPECT_EQ(value("array<f32>").dimensions, std::vector<int64_t>{0});
  const Entry table = value("dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>");
  EXPECT_EQ(table.dimensions, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(table.integer(5), 6);
  EXPECT_EQ(value("dense<1.5> : tensor<4xf64>").number(3), 1.5);
  EXPECT_EQ(value("dense<2> : tensor<i32>").count(), 1u);
  EXPECT_EQ(value("dense<> : tensor<0x2xf32>").count(), 0u);
  EXPECT_EQ(value("dense<[true, false]> : tensor<2xi1>").integer(0), 1);
  const Entry complex = value("dense<[(1.0, 2.0), (3.0, 4.0)]> : tensor<2xcomplex<f32>>");
  EXPECT_EQ(complex.count(), 2u);
  EXPECT_EQ(complex.number(1), 3);
  EXPECT_EQ(value("dense<(1.0, 2.0)> : tensor<3xcomplex<f64>>").bytes.size(), 48u);
  const Entry hex = value("dense<\"0x0100000002000000\"> : tensor<2xi32>");
  EXPECT_EQ(hex.count(), 2u);
  EXPECT_EQ(hex.integer(1), 2);
}

TEST(Dictionary, OtherKinds) {
  const std::vector<Entry> all = read(
      "{a, \"odd key\" = \"x, \\22y\\22 \\\\\", nested = {b = 1 : i8, c = [1, \"two\"]}, f = @name, "
      "m = affine_map<(i) -> (i, 0)>, mhlo.version = 2 : i32}");
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0].kind, Entry::kUnit);
  EXPECT_EQ(all[1].name, "odd key");
  EXPECT_EQ(all[1].text, "x, \"y\" \\");
  ASSERT_EQ(all[2].entries.size(), 2u);
  EXPECT_EQ(all[2].entries[0].type, COLLET_TYPE_S8);
  ASSERT_EQ(all[2].entries[1].entries.size(), 2u);
  EXPECT_EQ(all[2].entries[1].entries[1].text, "two");
  EXPECT_EQ(all[3].kind, Entry::kOther);
  EXPECT_EQ(all[3].text, "@name");
  EXPECT_EQ(all[4].text, "affine_map<(i) -> (i, 0)>");
  EXPECT_EQ(all[5].name, "mhlo.version");
  // Types without a C++ type here, and numbers that do not fit, are kept as they are written.
  EXPECT_EQ(value("1.0 : f8E4M3FN").text, "1.0 : f8E4M3FN");
  EXPECT_EQ(value("99999999999999999999").kind, Entry::kOther);
}

TEST(Dictionary, WhatIsNoDictionary) {
  EXPECT_TRUE(read("").empty());
  EXPECT_TRUE(read(" { } ").empty());
  for (const char* text : {"{", "}", "{a = }", "{a = 1", "{a = 1}}", "{= 1}", "{a = \"x}", "a = 1", "{a = 1,}",
                           "0,1,15", "{a = [1}", "{a = {b = 1]}"})
    EXPECT_TRUE(refused(text)) << text;
  EXPECT_TRUE(refused("{a = " + std::string(100000, '[')));
  EXPECT_EQ(value("dense<1> : tensor<99999999999x99999999999xi32>").kind, Entry::kOther);
}

}  // namespace
}  // namespace collet
