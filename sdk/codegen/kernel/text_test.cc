// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <collet/codegen/kernel_text.h>
#include <collet/codegen/kernel_verify.h>
#include <collet/program.h>

#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <string>

#include "sdk/codegen/kernel/float_format.h"
#include "sdk/codegen/kernel/literal.h"

namespace collet::codegen {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(KernelText, Seeds_ParsedPrintedAndParsed_AreEqual) {
  int found = 0;
  for (const auto& file : std::filesystem::directory_iterator("sdk/codegen/kernel/seeds")) {
    SCOPED_TRACE(file.path().string());
    ++found;
    Kernel kernel;
    const Status read = parse_kernel(read_file(file.path()), kernel);
    ASSERT_TRUE(read.ok()) << read.message();
    const Status verified = verify_kernel(kernel);
    EXPECT_TRUE(verified.ok()) << verified.message();
    Kernel again;
    const Status second = parse_kernel(print_kernel(kernel), again);
    ASSERT_TRUE(second.ok()) << second.message() << "\n" << print_kernel(kernel);
    EXPECT_TRUE(again == kernel) << print_kernel(kernel) << print_kernel(again);
  }
  EXPECT_GE(found, 3);
}

/// Returns the bits that the text of an element gives when it is parsed.
std::array<uint64_t, 2> read_back(uint32_t type, const std::string& text) {
  Kernel k;
  const std::string source =
      "kernel (0 buffers) {\n%0 = constant " + std::string(collet_type_name(type)) + " " + text + "\n}";
  const Status read = parse_kernel(source, k);
  EXPECT_TRUE(read.ok()) << source << "\n" << read.message();
  return k.exprs.empty() ? std::array<uint64_t, 2>{~uint64_t{0}, 0} : k.exprs[0].bits;
}

TEST(KernelText, EveryByteOfEveryByteType_Printed_IsReadBack) {
  for (uint32_t type = 1; type < COLLET_TYPE_LIMIT; ++type) {
    if (collet_type_bytes(type) != 1) continue;
    for (uint64_t bits = 0; bits < 256; ++bits) {
      const std::string text = print_element(type, {bits, 0});
      EXPECT_EQ(read_back(type, text)[0], bits) << collet_type_name(type) << " " << text;
    }
  }
}

TEST(KernelText, RandomBitsOfEveryType_Printed_AreReadBack) {
  std::mt19937_64 random(1);
  for (uint32_t type = 1; type < COLLET_TYPE_LIMIT; ++type) {
    const uint32_t bytes = collet_type_bytes(type);
    if (bytes < 2) continue;
    for (int i = 0; i < 200; ++i) {
      std::array<uint64_t, 2> bits{random(), bytes == 16 ? random() : 0};
      if (bytes < 8) bits[0] &= (uint64_t{1} << (8 * bytes)) - 1;
      const std::string text = print_element(type, bits);
      EXPECT_EQ(read_back(type, text), bits) << collet_type_name(type) << " " << text;
    }
  }
}

TEST(KernelText, Specials_ArePrintedByTheirBits) {
  EXPECT_EQ(print_element(COLLET_TYPE_F32, {std::bit_cast<uint32_t>(INFINITY), 0}), "0x7f800000");
  EXPECT_EQ(print_element(COLLET_TYPE_F32, {0x80000000, 0}), "-0");
  EXPECT_EQ(print_element(COLLET_TYPE_F32, {std::bit_cast<uint32_t>(0.1F), 0}), "0.1");
  EXPECT_EQ(print_element(COLLET_TYPE_BF16, {0x3f80, 0}), "1");
  EXPECT_EQ(print_element(COLLET_TYPE_S64, {uint64_t{1} << 63, 0}), "-9223372036854775808");
  EXPECT_EQ(print_element(COLLET_TYPE_PRED, {1, 0}), "true");
  EXPECT_EQ(print_element(COLLET_TYPE_F8E4M3FN, {0x7f, 0}), "0x7f");
  EXPECT_EQ(print_element(COLLET_TYPE_C64, {uint64_t{0xbf800000} << 32 | 0x3f000000, 0}), "(0.5, -1)");
}

TEST(FloatFormat, EveryNumber_DecodedAndEncoded_IsItself) {
  for (uint32_t type = 1; type < COLLET_TYPE_LIMIT; ++type) {
    const FloatFormat f = float_format(type);
    if (f.exponent_bits == 0 || collet_type_bytes(type) > 2) continue;
    const int width = f.specials == FloatFormat::E8M0 ? 8 : f.exponent_bits + f.mantissa_bits + 1;
    for (uint64_t bits = 0; bits < uint64_t{1} << width; ++bits) {
      const double x = decode_float(bits, f);
      if (std::isnan(x)) {
        EXPECT_TRUE(std::isnan(decode_float(encode_float(x, f), f)) || f.specials == FloatFormat::FINITE);
      } else {
        EXPECT_EQ(encode_float(x, f), bits) << collet_type_name(type) << " " << x;
      }
    }
  }
}

TEST(FloatFormat, NumbersBetween_AreRoundedToTheNearest) {
  std::mt19937_64 random(2);
  for (uint32_t type = 1; type < COLLET_TYPE_LIMIT; ++type) {
    const FloatFormat f = float_format(type);
    if (f.exponent_bits == 0 || collet_type_bytes(type) > 2 || f.specials == FloatFormat::E8M0) continue;
    const uint64_t count = uint64_t{1} << (f.exponent_bits + f.mantissa_bits);
    for (int i = 0; i < 2000; ++i) {
      const uint64_t low = random() % (count - 1);
      const double a = decode_float(low, f);
      const double b = decode_float(low + 1, f);
      if (!std::isfinite(a) || !std::isfinite(b)) continue;
      const double middle = a + (b - a) / 2;
      EXPECT_EQ(encode_float(middle, f), low % 2 == 0 ? low : low + 1) << collet_type_name(type) << " " << middle;
      EXPECT_EQ(encode_float(std::nextafter(middle, a), f), low);
      EXPECT_EQ(encode_float(std::nextafter(middle, b), f), low + 1);
    }
  }
}

TEST(KernelText, Defects_AreNamedWithTheirPlace) {
  const struct {
    const char* text;
    const char* message;
  } kCases[] = {
      {"", "1:1: expected 'kernel', found the end of the text"},
      {"kernel (x", "1:9: expected the number of buffers, found 'x'"},
      {"kernel (1 buffer) {\n  outer i1: 4\n}", "2:9: expected 'i0', found 'i1'"},
      {"kernel (1 buffer) {\n  inner i0: 4\n  outer i1: 4\n}", "3:3: an outer loop within an inner one"},
      {"kernel (1 buffer) {\n  %1 = constant f32 1\n}", "2:3: expected %0, found '%1'"},
      {"kernel (1 buffer) {\n  %0 = load f32 b1[0]\n}", "2:17: expected a buffer of the kernel, found 'b1'"},
      {"kernel (1 buffer) {\n  %0 = load f32 b0[i0]\n}", "2:20: expected an expression, found 'i0'"},
      {"kernel (1 buffer) {\n  outer i0: 2\n  %0 = load f32 b0[i1]\n}",
       "3:20: expected a loop variable or an expression, found 'i1'"},
      {"kernel (1 buffer) {\n  %0 = abs f32 %0\n}", "2:16: expected an expression that is defined before, found '%0'"},
      {"kernel (1 buffer) {\n  %0 = blend f32 %0\n}", "2:8: there is no op 'blend'"},
      {"kernel (1 buffer) {\n  %0 = constant s8 200\n}", "2:20: expected a number of type s8, found '200'"},
      {"kernel (1 buffer) {\n  %0 = constant f99 1\n}", "2:17: expected an element type, found 'f99'"},
      {"kernel (1 buffer) {\n  r1 = reduce add f32 %0\n",
       "2:23: expected an expression that is defined before, found '%0'"},
      {"kernel (1 buffer) {\n  store b0[0], %0\n}", "2:16: expected an expression that is defined before, found '%0'"},
      {"kernel (1 buffer) {\n  %0 = reduced f32 r0 result 0\n}", "2:20: this reduction is not defined before"},
      {"kernel (1 buffer) {\n  %0 = scanned f32 result 0\n}", "2:8: no scan is defined before"},
      {"kernel (1 buffer) {\n} }", "2:3: expected the end of the text, found '}'"},
      {"kernel (1 buffer) {\n  outer i0: 4 lanes 0\n}", "2:21: lanes must be at least 1"},
      {"kernel (1 buffer) {\n  outer i0: 4 interleave 0\n}", "2:26: iterations at a time must be at least 1"},
      {"kernel (1 buffer) {\n  outer i0: 4 strip 0\n}", "2:21: a strip has at least 1 iteration"},
      {"kernel (1 buffer) {\n  pass 1: lanes 4 together 1\n}", "2:8: expected '0', found '1'"},
      {"kernel (1 buffer) {\n  pass 0: lanes 4\n}", "3:1: expected 'together', found '}'"},
      {"kernel (1 buffer) {\n  keep 4\n}", "2:8: expected an expression, found '4'"},
      {"kernel (1 buffer) {\n  %0 = constant f32 1\n  store b0[0], %0 past them\n}",
       "3:24: expected 'caches', found 'them'"},
      {"kernel (1 buffer) {\n  %0 = index 9223372036854775807 + 1\n}", "2:36: the sum overflows"},
  };
  for (const auto& c : kCases) {
    Kernel k;
    const Status read = parse_kernel(c.text, k);
    EXPECT_EQ(read.code(), COLLET_INVALID_ARGUMENT) << c.text;
    EXPECT_EQ(read.message(), c.message) << c.text;
  }
}

TEST(KernelVerifier, Defects_AreNamedWithTheirPlace) {
  const struct {
    const char* text;  ///< the lines of the kernel
    const char* message;
  } kCases[] = {
      {"outer i0: 4 lanes 3", "kernel: lanes: their number is no power of two"},
      {"outer i0: 4\n%0 = load f32 b0[i0]\n%1 = add s32 %0, %0", "kernel: %1: add: its result is f32, not s32"},
      {"outer i0: 4\n%0 = load f32 b0[i0 - 1]", "kernel: %0: its index is negative at some point"},
      {"outer i0: 4\n%0 = load f32 b0[i0]\n%1 = load f32 b0[%0]", "kernel: %1: a term of its index is no s64"},
      {"outer i0: 4\n%0 = load f32 b0[i0]\n%1 = load f32 b0[i0] if %0", "kernel: %1: its condition is no pred"},
      {"%0 = load f32 b0[0]\n%1 = not f32 %0", "kernel: %1: there is no elementwise not of f32"},
      {"%0 = load f32 b0[0]\n%1 = add f32 %0", "kernel: %1: add with a wrong number of operands"},
      {"%0 = quotient (4) by 0", "kernel: %0: it divides by a number that is not positive"},
      {"inner i0: 4\n%0 = load f32 b0[i0]\nr0 = reduce add f32 %0 init %0\n%1 = reduced f32 r0 result 0",
       "kernel: r0: an initial value depends on an inner loop"},
      {"inner i0: 4\n%0 = load f32 b0[i0]\nr0 = reduce first f32 %0 init identity",
       "kernel: r0: nothing combines f32 so"},
      {"inner i0: 4\n%0 = load f32 b0[i0]\nupdate add b1 [0] f32 %0",
       "kernel: update: a value depends on an inner loop"},
      {"outer i0: 4\n%0 = load f32 b0[i0]\nscan add f32 %0 init identity", "kernel: scan: a scan has one inner loop"},
      {"inner i0: 4\n%0 = load f32 b0[i0]\nscan add f32 %0 init identity\n%1 = scanned f32 result 0\n"
       "%2 = negate f32 %1\nstore b1[i0], %2",
       "kernel: %2: results of a scan are stored, not computed with"},
      {"inner i0: 8 lanes 4\n%0 = load f32 b0[i0]\nr0 = reduce other f32 %0 init %0 body (2) {\n"
       "%0 = argument f32 0\nyield %0 }",
       "kernel: r0: an initial value depends on an inner loop"},
      {"outer i0: 4 unroll\n%0 = load f32 b0[i0]", "kernel: loop i0: only inner loops of a reduction are unrolled"},
      {"outer i0: 4 interleave 1\n%0 = load f32 b0[i0]", "kernel: loop i0: its factor is not in 2 to 64"},
      {"outer i0: 4 lanes 4 interleave 2\n%0 = load f32 b0[i0]",
       "kernel: loop i0: its iterations have an order, or are in lanes"},
      {"outer i0: 4 interleave 2\ninner i1: 4\n%0 = load f32 b0[i0 + i1]\nr0 = reduce add f32 %0 init identity",
       "kernel: loop i0: with lanes outside, inner loops within an interleaved one are unrolled"},
      {"outer i0: 4 transpose\n%0 = load f32 b0[i0]",
       "kernel: loop i0: only the last loop of a plain kernel is transposed"},
      {"outer i0: 4 lanes 4 strip 6\n%0 = load f32 b0[i0]",
       "kernel: loop i0: strips are of whole vectors of the last outer loop, which is in lanes"},
      {"outer i0: 4 lanes 4\npass 0: lanes 8 together 1\n%0 = load f32 b0[i0]",
       "kernel: schedule: only passes that reduce lanes have more of them than the kernel"},
      {"outer i0: 4 lanes 4\npass 0: lanes 4 together 1\npass 1: lanes 4 together 1\n%0 = load f32 b0[i0]",
       "kernel: schedule: it has another number of passes than the kernel"},
      {"outer i0: 4\nkeep %0\n%0 = load f32 b0[i0]", "kernel: schedule: %0 is kept, but is no value of a row"},
      {"inner i0: 4\nkeep %98\n%0 = load f32 b0[i0]", "kernel: schedule: %98 is kept, but is not defined"},
      {"keep %0", "kernel: schedule: %0 is kept, but is not defined"},
      {"inner i0: 4\nkeep %1, %0\n%0 = load f32 b0[i0]\n%1 = negate f32 %0",
       "kernel: schedule: kept expressions are out of order"},
      {"%0 = load f32 b0[0]\ninner", nullptr},
      {"%0 = constant s32 1\n%1 = while s32 %0 { condition (1) { %0 = argument s32 0 yield %0 }\n"
       "body (1) { %0 = argument s32 0 yield %0 } }",
       "kernel: %1: a body gives s32 where pred is due"},
      {"%0 = constant s32 1\n%1 = while s32 %0 { condition (1) { %0 = constant pred true yield %0 }\n"
       "body (1) { %0 = argument f32 0 yield %0 } }",
       "kernel: %1: in its body %0: the argument is s32"},
  };
  for (const auto& c : kCases) {
    Kernel k;
    const Status read = parse_kernel("kernel (2 buffers) {\n" + std::string(c.text) + "\n}", k);
    if (!c.message) {
      EXPECT_FALSE(read.ok()) << c.text;
      continue;
    }
    ASSERT_TRUE(read.ok()) << c.text << "\n" << read.message();
    const Status verified = verify_kernel(k);
    EXPECT_EQ(verified.code(), COLLET_INVALID_ARGUMENT) << c.text;
    EXPECT_EQ(verified.message(), c.message) << c.text;
  }
}

TEST(KernelVerifier, ReductionOfLaterValues_IsRefused) {
  Kernel k;
  const Status read = parse_kernel(R"(kernel (1 buffer) {
    inner i0: 4
    %0 = load f32 b0[i0]
    r0 = reduce add f32 %0 init identity
    %1 = reduced f32 r0 result 0
    %2 = add f32 %0, %1
  })",
                                   k);
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_TRUE(verify_kernel(k).ok());
  k.reductions[0].inputs[0] = 2;
  EXPECT_EQ(verify_kernel(k).message(), "kernel: %1: its reduction uses what is defined later");
  k.exprs[1].b = 1;
  EXPECT_EQ(verify_kernel(k).message(), "kernel: %1: there is no such reduction");
}

/// Returns the lines of a text without their indentation.
std::set<std::string> lines_of(const std::string& text) {
  std::set<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin != std::string::npos) lines.insert(line.substr(begin));
  }
  return lines;
}

TEST(KernelText, ExamplesOfTheGuide_StandInKernelsThatAreTested) {
  std::set<std::string> known;
  for (const char* folder : {"sdk/codegen/kernel/goldens", "sdk/codegen/kernel/seeds"}) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) known.merge(lines_of(read_file(file.path())));
  }
  std::istringstream guide(read_file("docs/code_generation.md"));
  bool inside = false;
  int checked = 0;
  for (std::string line; std::getline(guide, line);) {
    if (line.starts_with("```")) {
      inside = line == "```kir";
      continue;
    }
    if (!inside) continue;
    for (const std::string& one : lines_of(line)) EXPECT_TRUE(known.contains(one)) << one;
    ++checked;
  }
  EXPECT_GT(checked, 30);
}

}  // namespace
}  // namespace collet::codegen
