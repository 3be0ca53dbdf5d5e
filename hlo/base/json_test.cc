// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace collet {
namespace {

TEST(JsonWriter, NestsAndSeparates) {
  std::string out;
  JsonWriter json(out, 0);
  json.begin_object().field("name", "add").key("dims").begin_array().value(2).value(-3).end_array();
  json.field("good", true).key("none").null().key("empty").begin_object().end_object().end_object();
  EXPECT_EQ(out, R"({"name": "add", "dims": [2, -3], "good": true, "none": null, "empty": {}})");
}

TEST(JsonWriter, Indents) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("a").begin_array().value(1).value(2).end_array().field("b", 0.5).end_object();
  EXPECT_EQ(out, "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": 0.5\n}");
}

TEST(JsonWriter, NumbersThatJsonLacksAreStrings) {
  std::string out;
  JsonWriter json(out, 0);
  json.begin_array().value(std::numeric_limits<double>::quiet_NaN()).value(-std::numeric_limits<double>::infinity());
  json.value(UINT64_MAX).value(1e-300).end_array();
  EXPECT_EQ(out, R"(["nan", "-inf", 18446744073709551615, 1e-300])");
}

TEST(JsonQuote, EscapesAndMendsBytes) {
  EXPECT_EQ(json_quote("a\"b\\c\n\t\x01"), R"("a\"b\\c\n\t\u0001")");
  EXPECT_EQ(json_quote("gr\xC3\xBC\xC3\x9F"), "\"gr\xC3\xBC\xC3\x9F\"");
  EXPECT_EQ(json_quote("\xFFx\xC3"), R"("\ufffdx\ufffd")");
  EXPECT_EQ(json_quote("\xED\xA0\x80"), R"("\ufffd\ufffd\ufffd")");
}

}  // namespace
}  // namespace collet
