// SPDX-License-Identifier: Apache-2.0
#include "hlo/text/lexer.h"

#include <gtest/gtest.h>

#include <vector>

namespace collet::hlo::text {
namespace {

std::vector<Token> lex(std::string_view text) {
  std::vector<Token> out;
  Lexer lexer(text);
  for (Token token; out.size() < 1000; out.push_back(token)) {
    lexer.next(token);
    if (token.kind == Tok::End) break;
  }
  return out;
}

std::vector<Tok> kinds(std::string_view text) {
  std::vector<Tok> out;
  for (const Token& token : lex(text)) out.push_back(token.kind);
  return out;
}

using Kinds = std::vector<Tok>;

TEST(Lexer, TellsNamesAttributesAndWords) {
  EXPECT_EQ(kinds("%true x: x= x-1.y a ="),
            (Kinds{Tok::Name, Tok::Name, Tok::AttrName, Tok::Ident, Tok::Ident, Tok::Equal}));
  EXPECT_EQ(lex("all-reduce.3")[0].text, "all-reduce.3");
  EXPECT_EQ(lex("%f32")[0].text, "f32");
  EXPECT_EQ(lex("abc=")[0].text, "abc");
  EXPECT_EQ(kinds("% a"), (Kinds{Tok::Error, Tok::Ident}));
  EXPECT_EQ(kinds("%3"), (Kinds{Tok::Error, Tok::Int}));
}

TEST(Lexer, KnowsEveryTypeAndKeyword) {
  for (int i = 1; i < COLLET_TYPE_LIMIT; ++i) {
    const Type type = static_cast<Type>(i);
    if (type_info(type).text.empty()) continue;
    EXPECT_EQ(lex(type_info(type).text)[0].kind, Tok::Type);
    EXPECT_EQ(lex(type_info(type).text)[0].type, type);
  }
  EXPECT_EQ(lex("HloModule")[0].word, Word::HloModule);
  EXPECT_EQ(lex("last_tile_dim_replicate")[0].word, Word::LastTileDimReplicate);
  EXPECT_EQ(lex("tuple")[0].kind, Tok::Ident);
  EXPECT_EQ(lex("f33")[0].kind, Tok::Ident);
  EXPECT_EQ(lex("Root")[0].kind, Tok::Ident);
}

TEST(Lexer, ReadsIntegersOfSixtyFourBits) {
  EXPECT_EQ(lex("-9223372036854775808")[0].integer, INT64_MIN);
  EXPECT_EQ(lex("18446744073709551615")[0].integer, -1);
  EXPECT_FALSE(lex("18446744073709551615")[0].negative);
  EXPECT_TRUE(lex("-0")[0].negative);
  EXPECT_EQ(lex("18446744073709551616")[0].kind, Tok::Error);
  EXPECT_EQ(lex("-9223372036854775809")[0].kind, Tok::Error);
}

TEST(Lexer, TellsNumbersFromPatterns) {
  EXPECT_EQ(kinds("1. 1e-5 -3.0E+2 -.5"), Kinds(4, Tok::Decimal));
  EXPECT_EQ(kinds("3x3 1x2x3"), Kinds(2, Tok::DxD));
  EXPECT_EQ(kinds("0_0 -1_2 0_0x3_3_1 1_-1x0_0"), Kinds(4, Tok::Pad));
  EXPECT_EQ(kinds("b01f_01io->b01f 01bf_oi01->01bf bf?_?io->?bf"), Kinds(3, Tok::DimLabels));
  EXPECT_EQ(kinds("? -> <= ... - .5"),
            (Kinds{Tok::Question, Tok::Arrow, Tok::LessEqual, Tok::Dots, Tok::Error, Tok::Error, Tok::Int}));
  EXPECT_EQ(kinds("1e"), (Kinds{Tok::Int, Tok::Ident}));
  EXPECT_EQ(kinds("inf -inf nan -nan"), (Kinds{Tok::Keyword, Tok::NegInf, Tok::Nan, Tok::Nan}));
}

TEST(Lexer, ReadsNanPayloads) {
  EXPECT_EQ(lex("nan(0x7f)")[0].payload, 0x7Fu);
  EXPECT_TRUE(lex("-nan(0x1)")[0].negative);
  for (const char* bad : {"nan(0x0)", "nan(0x)", "nan(7)", "nan(0x10000000000000)", "nan(0x1"})
    EXPECT_EQ(lex(bad)[0].kind, Tok::Error) << bad;
}

TEST(Lexer, SkipsComments) {
  EXPECT_EQ(kinds("a /*index=5*/ b // c\n d /* * / **/"), Kinds(3, Tok::Ident));
  EXPECT_EQ(kinds("a /* b")[1], Tok::Error);
  EXPECT_EQ(kinds(std::string_view("a \0 b", 5))[1], Tok::Error);
  EXPECT_EQ(kinds(std::string_view("// \0", 4))[0], Tok::Error);
}

TEST(Lexer, ReadsStringsAndEscapes) {
  const auto resolve = [](std::string_view raw) {
    std::string out;
    return unescape(raw, out) ? out : "malformed";
  };
  EXPECT_EQ(lex(R"("a\"b" c)")[0].text, R"(a\"b)");
  EXPECT_EQ(lex(R"("a\\" c)")[0].text, R"(a\\)");
  EXPECT_EQ(lex(R"("a\")")[0].kind, Tok::Error);
  EXPECT_EQ(resolve(R"(\n\t\"\\\x41\101\u00e9\')"), "\n\t\"\\AA\xC3\xA9'");
  for (const char* bad : {R"(\q)", R"(\x)", R"(\u12)", R"(\777)", R"(\ud800)", "\\"})
    EXPECT_EQ(resolve(bad), "malformed");
}

TEST(Lexer, FindsTheEndOfJson) {
  const std::string_view text = R"(x={"a": "}\"", "b": {}} , y)";
  Lexer lexer(text);
  EXPECT_EQ(lexer.braces(text.data() + 2), R"({"a": "}\"", "b": {}})");
  const std::string_view open = R"({"a": })"
                                "{";
  EXPECT_EQ(Lexer(open).braces(open.data()), R"({"a": })");
  const std::string_view unclosed = R"({"a": "})";
  EXPECT_TRUE(Lexer(unclosed).braces(unclosed.data()).empty());
}

}  // namespace
}  // namespace collet::hlo::text
