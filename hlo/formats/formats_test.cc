// SPDX-License-Identifier: Apache-2.0
#include "hlo/formats/formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hlo/text/printer.h"

namespace collet::hlo {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kText =
    "HloModule small\n\nENTRY main {\n  p = f32[2]{0} parameter(0)\n  c = f32[2]{0} constant({1.5, -0})\n"
    "  ROOT r = f32[2]{0} add(p, c)\n}\n";

std::string again(std::string_view bytes) {
  Diagnostics diagnostics("input");
  auto module = read_verified_module(bytes, {}, diagnostics);
  return module.ok() ? print_module(**module) : module.status().message();
}

TEST(Formats, AreToldApart) {
  EXPECT_EQ(format_of(kText), Format::HloText);
  EXPECT_EQ(format_of("// a comment\nHloModule stablehlo.m\n"), Format::HloText);
  EXPECT_EQ(format_of("module @m {\n}"), Format::StablehloText);
  EXPECT_EQ(format_of("  func.func @main() {\n}"), Format::StablehloText);
  EXPECT_EQ(format_of("ML\xEFR\x0DStableHLO"), Format::Artifact);
  EXPECT_EQ(format_of(std::string_view("\x0a\x01m\x1a\x02", 5)), Format::HloProto);
}

TEST(Formats, AMessageMayBeginWithALongName) {
  Diagnostics diagnostics("input");
  const auto module = read_verified_module(
      "HloModule " + std::string(5000, 'n') + "\nENTRY main {\n  ROOT p = f32[2]{0} parameter(0)\n}\n", {},
      diagnostics);
  ASSERT_TRUE(module.ok()) << module.status().message();
  const auto bytes = write_module(**module, Format::HloProto);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(format_of(*bytes), Format::HloProto);
  EXPECT_THAT(again(*bytes), HasSubstr("nnn"));
  // In text a control byte may be far from the beginning, in a string.
  EXPECT_EQ(format_of("module @m {\n" + std::string(5000, ' ') + "\x01"), Format::StablehloText);
  EXPECT_EQ(format_of("HloModule m\n" + std::string(5000, ' ') + "\x01"), Format::HloText);
}

TEST(Formats, EachIsWrittenAndReadAgain) {
  Diagnostics diagnostics("input");
  const auto module = read_verified_module(kText, {}, diagnostics);
  ASSERT_TRUE(module.ok()) << module.status().message();
  const std::string text = print_module(**module);
  for (Format format : {Format::HloText, Format::HloProto, Format::StablehloText, Format::Artifact}) {
    const auto bytes = write_module(**module, format);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    EXPECT_EQ(format_of(*bytes), format);
    if (format == Format::HloText || format == Format::HloProto) {
      EXPECT_EQ(again(*bytes).substr(again(*bytes).find("ENTRY")), text.substr(text.find("ENTRY")));
    } else {
      EXPECT_THAT(again(*bytes), HasSubstr("add("));
    }
  }
}

TEST(Formats, TheVerifierNamesThePlaceInTheText) {
  Diagnostics diagnostics("broken.hlo");
  const auto module = read_verified_module(
      "HloModule m\nENTRY main {\n  p = f32[2] parameter(0)\n\tq = f32[3] parameter(1)\n  ROOT r = f32[2] add(p, "
      "q)\n}\n",
      {}, diagnostics);
  ASSERT_FALSE(module.ok());
  EXPECT_THAT(module.status().message(), HasSubstr("broken.hlo:5:3: error: "));
  EXPECT_THAT(module.status().message(), HasSubstr("  ROOT r = f32[2] add(p, q)\n    ^"));
}

TEST(Formats, WhatIsNoProgramIsRefused) {
  for (std::string_view bytes : {std::string_view(), std::string_view("\0\0\0", 3), std::string_view("ML\xEFR"),
                                 std::string_view("module {"), std::string_view("hello")}) {
    Diagnostics diagnostics("input");
    EXPECT_FALSE(read_verified_module(bytes, {}, diagnostics).ok());
  }
}

// A text with a forbidden byte is read as text, so that the error names the place.
TEST(Formats, AStrayByteMakesNoBinaryMessageOfAText) {
  using namespace std::string_view_literals;
  EXPECT_THAT(again("HloModule m\nENTRY e {\n  a = f32[] \0parameter(0)\n}\n"sv),
              HasSubstr("input:3:13: NUL byte 0x00 in the text"));
  EXPECT_THAT(again("HloModule m\0\nENTRY e {\n  a = f32[] parameter(0)\n}\n"sv), HasSubstr("input:1:12: NUL"));
  EXPECT_THAT(again("\0HloModule m\nENTRY e {\n  a = f32[] parameter(0)\n}\n"sv), HasSubstr("input:1:1: NUL"));
  EXPECT_THAT(again("ENTRY e {\n  a = f32[]\x07 parameter(0)\n}\n"), HasSubstr("input:2:12: control byte 0x07"));
  EXPECT_THAT(again("func.func @main(%a: tensor<f32>) -> tensor<f32> {\n  return %a\x01 : tensor<f32>\n}\n"),
              HasSubstr("input:2:12: control byte 0x01"));
  EXPECT_THAT(again("HloModule m // \x01\nENTRY e {\n  a = f32[] parameter(0)\n}\n"), HasSubstr("parameter(0)"));
  // Bytes that do not look like text are read as a binary message.
  EXPECT_THAT(again("\1\2\3\4\5\6\7"), HasSubstr("these bytes are no HloModuleProto"));
  const auto bytes = [] {
    Diagnostics diagnostics("input");
    const auto module = read_verified_module(kText, {}, diagnostics);
    const Expected<std::string> written = write_module(**module, Format::HloProto);
    return written.ok() ? *written : std::string();
  }();
  EXPECT_THAT(again(bytes.substr(0, bytes.size() / 2)), HasSubstr("these bytes are no HloModuleProto"));
}

}  // namespace
}  // namespace collet::hlo
