// SPDX-License-Identifier: Apache-2.0
// Tests data movement, products, reductions, windows, indexing, sorting, control flow and dynamic sizes against values
// computed by hand.
#include "hlo/eval/text_modules_test.h"

namespace collet::hlo {
namespace {

using testing::evaluate_text;
using testing::expect_value;

const char* const kAdd =
    "add {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT r = f32[] add(x, y)\n}\n"
    "addi {\n x = s32[] parameter(0)\n y = s32[] parameter(1)\n ROOT r = s32[] add(x, y)\n}\n"
    "sub {\n x = s32[] parameter(0)\n y = s32[] parameter(1)\n ROOT r = s32[] subtract(x, y)\n}\n"
    "second {\n x = s32[] parameter(0)\n y = s32[] parameter(1)\n ROOT r = s32[] copy(y)\n}\n"
    "ge {\n x = s32[] parameter(0)\n y = s32[] parameter(1)\n ROOT r = pred[] compare(x, y), direction=GE\n}\n"
    "gt {\n x = s32[] parameter(0)\n y = s32[] parameter(1)\n ROOT r = pred[] compare(x, y), direction=GT\n}\n";

TEST(Movement, Basics) {
  expect_value("a = s32[2,3] constant({{1, 2, 3}, {4, 5, 6}})\nROOT r = s32[3,2] transpose(a), dimensions={1,0}",
               "s32[3,2]", "{{1, 4}, {2, 5}, {3, 6}}");
  expect_value("a = s32[2] constant({1, 2})\nROOT r = s32[2,3] broadcast(a), dimensions={0}", "s32[2,3]",
               "{{1, 1, 1}, {2, 2, 2}}");
  expect_value("a = s32[2,3] constant({{1, 2, 3}, {4, 5, 6}})\nROOT r = s32[2,3] reverse(a), dimensions={0,1}",
               "s32[2,3]", "{{6, 5, 4}, {3, 2, 1}}");
  expect_value("a = s32[7] constant({0, 1, 2, 3, 4, 5, 6})\nROOT r = s32[3] slice(a), slice={[1:7:2]}", "s32[3]",
               "{1, 3, 5}");
  expect_value("ROOT r = bf16[3,2] iota(), iota_dimension=0", "bf16[3,2]", "{{0, 0}, {1, 1}, {2, 2}}");
  expect_value("ROOT r = s4[3] iota(), iota_dimension=0", "s4[3]", "{0, 1, 2}");
  expect_value(
      "a = s32[1,2] constant({{1, 2}})\nb = s32[0,2] constant({})\nc = s32[2,2] constant({{3, 4}, {5, 6}})\n"
      "ROOT r = s32[3,2] concatenate(a, b, c), dimensions={0}",
      "s32[3,2]", "{{1, 2}, {3, 4}, {5, 6}}");
}

TEST(Movement, Pad) {
  const std::string a = "a = s32[4] constant({1, 2, 3, 4})\nz = s32[] constant(9)\n";
  expect_value(a + "ROOT r = s32[7] pad(a, z), padding=1_2", "s32[7]", "{9, 1, 2, 3, 4, 9, 9}");
  expect_value(a + "ROOT r = s32[7] pad(a, z), padding=0_0_1", "s32[7]", "{1, 9, 2, 9, 3, 9, 4}");
  expect_value(a + "ROOT r = s32[4] pad(a, z), padding=-1_-2_1", "s32[4]", "{9, 2, 9, 3}");
  expect_value(a + "ROOT r = s32[0] pad(a, z), padding=-3_-1", "s32[0]", "{}");
  expect_value(a + "ROOT r = s32[2] pad(a, z), padding=-6_4", "s32[2]", "{9, 9}");
}

TEST(Movement, DynamicStartsAreClamped) {
  const std::string a = "a = s32[5] constant({1, 2, 3, 4, 5})\n";
  for (const auto& [start, expected] : {std::pair{"s32[] constant(-7)", "{1, 2}"},
                                        {"s32[] constant(99)", "{4, 5}"},
                                        {"u64[] constant(18446744073709551615)", "{4, 5}"},
                                        {"u8[] constant(200)", "{4, 5}"},
                                        {"s64[] constant(2)", "{3, 4}"}})
    expect_value(a + "i = " + start + "\nROOT r = s32[2] dynamic-slice(a, i), dynamic_slice_sizes={2}", "s32[2]",
                 expected);
  expect_value(a + "u = s32[2] constant({8, 9})\ni = s32[] constant(4)\nROOT r = s32[5] dynamic-update-slice(a, u, i)",
               "s32[5]", "{1, 2, 3, 8, 9}");
}

TEST(Movement, BitcastFollowsTheLayouts) {
  expect_value("a = s32[2,3]{0,1} constant({{1, 2, 3}, {4, 5, 6}})\nROOT r = s32[6]{0} bitcast(a)", "s32[6]",
               "{1, 4, 2, 5, 3, 6}");
  expect_value("a = s32[2,3]{1,0} constant({{1, 2, 3}, {4, 5, 6}})\nROOT r = s32[3,2]{0,1} bitcast(a)", "s32[3,2]",
               "{{1, 4}, {2, 5}, {3, 6}}");
}

TEST(Dot, DimensionNumbers) {
  const std::string ab = "a = s32[2,2] constant({{1, 2}, {3, 4}})\nb = s32[2,2] constant({{5, 6}, {7, 8}})\n";
  expect_value(ab + "ROOT r = s32[2,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "s32[2,2]",
               "{{19, 22}, {43, 50}}");
  expect_value(ab + "ROOT r = s32[2,2] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={1}", "s32[2,2]",
               "{{23, 31}, {34, 46}}");
  expect_value(ab + "ROOT r = s32[2] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={1}, "
                    "rhs_contracting_dims={0}",
               "s32[2]", "{19, 50}");
  expect_value(ab + "ROOT r = s32[] dot(a, b), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}", "s32[]", "70");
  expect_value(
      "a = f32[2,0] constant({{}, {}})\nb = f32[0,1] constant({})\n"
      "ROOT r = f32[2,1] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
      "f32[2,1]", "{{0}, {0}}");
  expect_value(
      "a = s8[2] constant({127, 127})\nb = s8[2] constant({127, 127})\n"
      "ROOT r = s32[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
      "s32[]", "32258");
  expect_value(
      "a = s64[1] constant({4294967296})\nb = s64[1] constant({4294967297})\n"
      "ROOT r = s64[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
      "s64[]", "4294967296");
  expect_value(
      "a = c64[1] constant({(1, 2)})\nb = c64[1] constant({(3, 4)})\n"
      "ROOT r = c64[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
      "c64[]", "(-5, 10)");
}

TEST(Dot, SumsAreRoundedOnce) {
  // In bf16, 256 + 1 is rounded to 256, so a sum that is rounded at each step would stay 256.
  expect_value(
      "a = bf16[3] constant({256, 1, 1})\nb = bf16[3] constant({1, 1, 1})\n"
      "ROOT r = bf16[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
      "bf16[]", "258");
}

TEST(Dot, Ragged) {
  expect_value(
      "a = s32[4,1] constant({{1}, {2}, {3}, {4}})\nb = s32[2,1,1] constant({{{10}}, {{100}}})\n"
      "g = s32[2] constant({1, 2})\nROOT r = s32[4,1] ragged-dot(a, b, g), lhs_contracting_dims={1}, "
      "rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}",
      "s32[4,1]", "{{10}, {200}, {300}, {0}}");
  expect_value(
      "a = s32[1,3] constant({{1, 2, 3}})\nb = s32[3,1] constant({{1}, {10}, {100}})\n"
      "g = s32[2] constant({1, 2})\nROOT r = s32[2,1,1] ragged-dot(a, b, g), lhs_contracting_dims={1}, "
      "rhs_contracting_dims={0}, lhs_ragged_dims={1}",
      "s32[2,1,1]", "{{{1}}, {{320}}}");
}

// What stands at the positions of other groups, or behind the last one, takes no part.
TEST(Dot, RaggedSumsReadTheirGroupAlone) {
  expect_value(
      "a = f32[1,4] constant({{1, 2, 3, nan}})\nb = f32[4,1] constant({{1}, {inf}, {100}, {nan}})\n"
      "g = s32[3] constant({1, 1, 1})\nROOT r = f32[3,1,1] ragged-dot(a, b, g), lhs_contracting_dims={1}, "
      "rhs_contracting_dims={0}, lhs_ragged_dims={1}",
      "f32[3,1,1]", "{{{1}}, {{inf}}, {{300}}}");
}

// The result's type says to what the sum is converted, not what is multiplied.
TEST(Dot, OperandsOfAWiderKind) {
  const std::string dims = ", lhs_contracting_dims={1}, rhs_contracting_dims={0}";
  const std::string complex =
      "a = c64[1,2] constant({{(1, 1), (2, 0)}})\nb = c64[2,1] constant({{(1, 1)}, {(3, 0)}})\n";
  expect_value(complex + "ROOT r = f32[1,1] dot(a, b)" + dims, "f32[1,1]", "{{6}}");
  expect_value(complex + "ROOT r = s32[1,1] dot(a, b)" + dims, "s32[1,1]", "{{6}}");
  expect_value(
      "a = f32[1,2] constant({{3, 1.5}})\nb = f32[2,1] constant({{1.5}, {3}})\nROOT r = s32[1,1] dot(a, b)" + dims,
      "s32[1,1]", "{{9}}");
}

TEST(Dot, Scaled) {
  expect_value(
      "a = f8e4m3fn[1,4] constant({{1, 1, 1, 1}})\nb = f8e4m3fn[4,1] constant({{1}, {1}, {1}, {1}})\n"
      "s = f8e8m0fnu[1,2] constant({{2, 4}})\nt = f8e8m0fnu[1,1] constant({{8}})\n"
      "ROOT r = f32[1,1] scaled-dot(a, b, s, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
      "f32[1,1]", "{{96}}");
}

TEST(Convolution, Basics) {
  const std::string x = "x = s32[1,4,1] constant({{{1}, {2}, {3}, {4}}})\nk = s32[2,1,1] constant({{{1}}, {{10}}})\n";
  expect_value(x + "ROOT r = s32[1,3,1] convolution(x, k), window={size=2}, dim_labels=b0f_0io->b0f", "s32[1,3,1]",
               "{{{21}, {32}, {43}}}");
  expect_value(x + "ROOT r = s32[1,3,1] convolution(x, k), window={size=2 rhs_reversal=1}, dim_labels=b0f_0io->b0f",
               "s32[1,3,1]", "{{{12}, {23}, {34}}}");
  expect_value(x + "ROOT r = s32[1,3,1] convolution(x, k), window={size=2 stride=2 pad=1_1}, dim_labels=b0f_0io->b0f",
               "s32[1,3,1]", "{{{10}, {32}, {4}}}");
  expect_value(x + "ROOT r = s32[1,2,1] convolution(x, k), window={size=2 rhs_dilate=2}, dim_labels=b0f_0io->b0f",
               "s32[1,2,1]", "{{{31}, {42}}}");
  expect_value(x + "ROOT r = s32[1,6,1] convolution(x, k), window={size=2 lhs_dilate=2}, dim_labels=b0f_0io->b0f",
               "s32[1,6,1]", "{{{1}, {20}, {2}, {30}, {3}, {40}}}");
  expect_value(x + "ROOT r = s32[1,2,1] convolution(x, k), window={size=2 pad=-1_0}, dim_labels=b0f_0io->b0f",
               "s32[1,2,1]", "{{{32}, {43}}}");
}

TEST(Convolution, OperandsOfAWiderKind) {
  expect_value(
      "x = c64[1,3,1] constant({{{(1, 1)}, {(2, 0)}, {(0, 3)}}})\nk = c64[2,1,1] constant({{{(1, 1)}}, {{(0, 2)}}})\n"
      "ROOT r = f32[1,2,1] convolution(x, k), window={size=2}, dim_labels=b0f_0io->b0f",
      "f32[1,2,1]", "{{{0}, {-4}}}");
}

TEST(Convolution, Groups) {
  expect_value(
      "x = s32[1,1,2] constant({{{3, 5}}})\nk = s32[1,1,4] constant({{{1, 10, 100, 1000}}})\n"
      "ROOT r = s32[1,1,4] convolution(x, k), window={size=1}, dim_labels=b0f_0io->b0f, feature_group_count=2",
      "s32[1,1,4]", "{{{3, 30, 500, 5000}}}");
  expect_value(
      "x = s32[2,1,1] constant({{{3}}, {{5}}})\nk = s32[1,1,2] constant({{{1, 10}}})\n"
      "ROOT r = s32[1,1,2] convolution(x, k), window={size=1}, dim_labels=b0f_0io->b0f, batch_group_count=2",
      "s32[1,1,2]", "{{{3, 50}}}");
}

TEST(Reduce, Bodies) {
  const std::string a = "a = s32[2,3] constant({{1, 2, 3}, {4, 5, 6}})\nz = s32[] constant(100)\n";
  expect_value(a + "ROOT r = s32[2] reduce(a, z), dimensions={1}, to_apply=addi", "s32[2]", "{106, 115}", kAdd);
  expect_value(a + "ROOT r = s32[3] reduce(a, z), dimensions={0}, to_apply=addi", "s32[3]", "{105, 107, 109}", kAdd);
  expect_value(a + "ROOT r = s32[] reduce(a, z), dimensions={0,1}, to_apply=sub", "s32[]", "79", kAdd);
  expect_value(a + "ROOT r = s32[2,3] reduce(a, z), dimensions={}, to_apply=addi", "s32[2,3]",
               "{{101, 102, 103}, {104, 105, 106}}", kAdd);
  expect_value(
      "a = s32[2,0] constant({{}, {}})\nz = s32[] constant(7)\n"
      "ROOT r = s32[2] reduce(a, z), dimensions={1}, to_apply=addi",
      "s32[2]", "{7, 7}", kAdd);
}

TEST(Reduce, SeveralOperands) {
  const std::string argmax =
      "argmax {\n v = s32[] parameter(0)\n i = s32[] parameter(1)\n w = s32[] parameter(2)\n j = s32[] parameter(3)\n"
      " g = pred[] compare(v, w), direction=GE\n m = s32[] select(g, v, w)\n k = s32[] select(g, i, j)\n"
      " ROOT t = (s32[], s32[]) tuple(m, k)\n}\n";
  auto result = evaluate_text("HloModule m\n" + argmax +
                              "ENTRY e {\n a = s32[2,3] constant({{1, 9, 9}, {4, 2, 3}})\n"
                              " i = s32[2,3] iota(), iota_dimension=1\n l = s32[] constant(-2147483648)\n"
                              " z = s32[] constant(0)\n ROOT r = (s32[2], s32[2]) reduce(a, i, l, z), dimensions={1}, "
                              "to_apply=argmax\n}\n");
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  testing::expect_same(result->element(0), testing::value("s32[2]", "{9, 4}"));
  testing::expect_same(result->element(1), testing::value("s32[2]", "{1, 0}"));
}

TEST(Reduce, LongSumsKeepTheOrder) {
  // x * 31 + y over many elements is associative only as a whole; subtraction of pairs shows the order.
  expect_value(
      "i = s32[5000] iota(), iota_dimension=0\nz = s32[] constant(-1)\n"
      "ROOT r = s32[] reduce(i, z), dimensions={0}, to_apply=second",
      "s32[]", "4999", kAdd);
  expect_value(
      "c = f32[] constant(0.1)\no = f32[100000] broadcast(c), dimensions={}\nz = f32[] constant(0)\n"
      "ROOT r = f32[] reduce(o, z), dimensions={0}, to_apply=add",
      "f32[]", "10000", kAdd);
}

TEST(Reduce, ShortFoldsAndScattersRoundEachStep) {
  // In f32, 2^24 + 1 is rounded to 2^24 (ties to even), so only a sum that is rounded at the end exceeds 2^24.
  const std::string big = "z = f32[] constant(16777216)\no = f32[] constant(1)\n";
  const auto sum = [&](const std::string& n) {
    return big + "a = f32[" + n +
           "] broadcast(o), dimensions={}\nROOT r = f32[] reduce(a, z), dimensions={0}, to_apply=add";
  };
  expect_value(sum("16"), "f32[]", "16777216", kAdd);
  expect_value(sum("18"), "f32[]", "16777234", kAdd);
  expect_value(big +
                   "a = f32[4] broadcast(o), dimensions={}\n"
                   "ROOT r = f32[1] reduce-window(a, z), window={size=4}, to_apply=add",
               "f32[1]", "{16777216}", kAdd);
  expect_value(big +
                   "a = f32[2] broadcast(z), dimensions={}\nu = f32[4] broadcast(o), dimensions={}\n"
                   "i = s32[4,1] constant({{1}, {1}, {1}, {1}})\nROOT r = f32[2] scatter(a, i, u), "
                   "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
                   "index_vector_dim=1, to_apply=add",
               "f32[2]", "{16777216, 16777216}", kAdd);
  expect_value(
      "a = f32[1,3] constant({{16777216, 1, 1}})\nb = f32[3,1] constant({{1}, {1}, {1}})\n"
      "ROOT r = f32[1,1] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
      "f32[1,1]", "{{16777216}}");
}

TEST(Windows, ReduceWindow) {
  const std::string a = "a = s32[5] constant({1, 2, 3, 4, 5})\nz = s32[] constant(0)\n";
  expect_value(a + "ROOT r = s32[3] reduce-window(a, z), window={size=3}, to_apply=addi", "s32[3]", "{6, 9, 12}", kAdd);
  expect_value(a + "ROOT r = s32[5] reduce-window(a, z), window={size=3 pad=1_1}, to_apply=addi", "s32[5]",
               "{3, 6, 9, 12, 9}", kAdd);
  expect_value(a + "ROOT r = s32[3] reduce-window(a, z), window={size=2 rhs_dilate=2}, to_apply=addi", "s32[3]",
               "{4, 6, 8}", kAdd);
  expect_value(a + "ROOT r = s32[9] reduce-window(a, z), window={size=1 lhs_dilate=2}, to_apply=addi", "s32[9]",
               "{1, 0, 2, 0, 3, 0, 4, 0, 5}", kAdd);
  expect_value(
      "a = s32[40] iota(), iota_dimension=0\nz = s32[] constant(0)\n"
      "w = s32[40] reduce-window(a, z), window={size=40 pad=39_0}, to_apply=addi\n"
      "ROOT r = s32[2] slice(w), slice={[38:40]}",
      "s32[2]", "{741, 780}", kAdd);
}

TEST(Windows, SelectAndScatterTies) {
  const std::string a = "a = s32[4] constant({7, 7, 7, 1})\ns = s32[2] constant({10, 20})\nz = s32[] constant(0)\n";
  expect_value(a + "ROOT r = s32[4] select-and-scatter(a, s, z), window={size=2 stride=2}, select=ge, scatter=addi",
               "s32[4]", "{10, 0, 20, 0}", kAdd);
  expect_value(a + "ROOT r = s32[4] select-and-scatter(a, s, z), window={size=2 stride=2}, select=gt, scatter=addi",
               "s32[4]", "{0, 10, 20, 0}", kAdd);
}

TEST(Indexing, Gather) {
  const std::string a = "a = s32[3,2] constant({{1, 2}, {3, 4}, {5, 6}})\n";
  const std::string rows =
      ", offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,2}";
  expect_value(a + "i = s32[4] constant({2, -1, 9, 0})\nROOT r = s32[4,2] gather(a, i)" + rows, "s32[4,2]",
               "{{5, 6}, {1, 2}, {5, 6}, {1, 2}}");
  expect_value(a + "i = u64[1] constant({18446744073709551615})\nROOT r = s32[1,2] gather(a, i)" + rows, "s32[1,2]",
               "{{5, 6}}");
  expect_value(a + "i = s32[3,1] constant({{1}, {0}, {1}})\nROOT r = s32[3,1] gather(a, i), offset_dims={1}, "
                   "collapsed_slice_dims={}, start_index_map={1}, operand_batching_dims={0}, "
                   "start_indices_batching_dims={0}, index_vector_dim=1, slice_sizes={1,1}",
               "s32[3,1]", "{{2}, {3}, {6}}");
  expect_value(
      "a = s32[300] iota(), iota_dimension=0\ni = u8[1] constant({255})\nROOT r = s32[1] gather(a, i), "
      "offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
      "s32[1]", "{255}");
}

TEST(Indexing, Scatter) {
  const std::string a =
      "a = s32[5] constant({0, 0, 0, 0, 0})\ni = s32[4] constant({1, 1, 5, -1})\n"
      "u = s32[4] constant({1, 2, 3, 4})\n";
  const std::string numbers =
      ", update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
      "index_vector_dim=1, to_apply=";
  expect_value(a + "ROOT r = s32[5] scatter(a, i, u)" + numbers + "addi", "s32[5]", "{0, 3, 0, 0, 0}", kAdd);
  expect_value(a + "ROOT r = s32[5] scatter(a, i, u)" + numbers + "second", "s32[5]", "{0, 2, 0, 0, 0}", kAdd);
  expect_value(a + "ROOT r = s32[5] scatter(a, i, u)" + numbers + "sub", "s32[5]", "{0, -3, 0, 0, 0}", kAdd);
  // A window that is partly outside of the array is dropped completely.
  expect_value(
      "a = s32[4] constant({0, 0, 0, 0})\ni = s32[2,1] constant({{3}, {2}})\nu = s32[2,2] constant({{1, 2}, "
      "{3, 4}})\nROOT r = s32[4] scatter(a, i, u), update_window_dims={1}, inserted_window_dims={}, "
      "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=addi",
      "s32[4]", "{0, 0, 3, 4}", kAdd);
}

TEST(Sorting, KeepsTheOrderOfEqualKeys) {
  const std::string less =
      "less {\n a = s32[] parameter(0)\n b = s32[] parameter(1)\n c = s32[] parameter(2)\n d = s32[] parameter(3)\n"
      " ROOT r = pred[] compare(a, b), direction=LT\n}\n";
  auto result = evaluate_text("HloModule m\n" + less +
                              "ENTRY e {\n k = s32[2,5] constant({{3, 1, 3, 1, 2}, {5, 4, 3, 2, 1}})\n"
                              " v = s32[2,5] iota(), iota_dimension=1\n ROOT r = (s32[2,5], s32[2,5]) sort(k, v), "
                              "dimensions={1}, is_stable=true, to_apply=less\n}\n");
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  testing::expect_same(result->element(0), testing::value("s32[2,5]", "{{1, 1, 2, 3, 3}, {1, 2, 3, 4, 5}}"));
  testing::expect_same(result->element(1), testing::value("s32[2,5]", "{{1, 3, 4, 0, 2}, {4, 3, 2, 1, 0}}"));
}

TEST(Sorting, TotalOrderAndOtherDimensions) {
  expect_value(
      "a = f32[6] constant({1, nan, -0, 0, -inf, -nan})\n"
      "ROOT r = f32[6] sort(a), dimensions={0}, to_apply=order",
      "f32[6]", "{nan, -inf, -0, 0, 1, nan}",
      "order {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
      " ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER\n}\n");
  expect_value(
      "a = s32[3,2] constant({{1, 9}, {3, 7}, {2, 8}})\nROOT r = s32[3,2] sort(a), dimensions={0}, to_apply=gt",
      "s32[3,2]", "{{3, 9}, {2, 8}, {1, 7}}", kAdd);
}

TEST(Sorting, TopK) {
  auto result = evaluate_text(
      "HloModule m\nENTRY e {\n a = f32[5] constant({1, 5, nan, 5, -1})\n"
      " ROOT r = (f32[3], s32[3]) topk(a), k=3\n}\n");
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  testing::expect_same(result->element(0), testing::value("f32[3]", "{nan, 5, 5}"));
  testing::expect_same(result->element(1), testing::value("s32[3]", "{2, 1, 3}"));
}

TEST(ControlFlow, Conditional) {
  const std::string branches =
      "a {\n x = s32[] parameter(0)\n ROOT r = s32[] negate(x)\n}\n"
      "b {\n x = s32[] parameter(0)\n ROOT r = s32[] add(x, x)\n}\n";
  for (const auto& [index, expected] : {std::pair{"0", "-5"}, {"1", "10"}, {"7", "10"}, {"-1", "10"}})
    expect_value("i = s32[] constant(" + std::string(index) +
                     ")\nx = s32[] constant(5)\n"
                     "ROOT r = s32[] conditional(i, x, x), branch_computations={a, b}",
                 "s32[]", expected, branches);
  expect_value(
      "p = pred[] constant(false)\nx = s32[] constant(5)\n"
      "ROOT r = s32[] conditional(p, x, x), true_computation=a, false_computation=b",
      "s32[]", "10", branches);
}

TEST(ControlFlow, MapAndCall) {
  expect_value(
      "a = s32[3] constant({1, 2, 3})\nb = s32[3] constant({5, 5, 5})\n"
      "m = s32[3] map(a, b), dimensions={0}, to_apply=sub\nROOT r = s32[3] call(m), to_apply=twice",
      "s32[3]", "{-8, -6, -4}",
      std::string(kAdd) + "twice {\n x = s32[3] parameter(0)\n ROOT r = s32[3] add(x, x)\n}\n");
}

TEST(DynamicSizes, AreNotDroppedWhereTheResultIsDeclaredStatic) {
  const std::string text =
      "HloModule m\nENTRY e {\n a = s32[3] constant({1, 2, 3})\n n = s32[] constant(2)\n"
      " ROOT d = s32[3] set-dimension-size(a, n), dimensions={0}\n}\n";
  const auto wrong = evaluate_text(text);
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.status().message().find("declared without dynamic sizes"), std::string::npos)
      << wrong.status().to_string();
  std::string whole = text;
  whole.replace(whole.find("constant(2)"), 11, "constant(3)");
  EXPECT_TRUE(evaluate_text(whole).ok());
}

TEST(DynamicSizes, AreCarried) {
  const std::string a =
      "a = s32[2,3] constant({{1, 2, 3}, {4, 5, 6}})\nn = s32[] constant(2)\nz = s32[] constant(0)\n"
      "d = s32[2,<=3] set-dimension-size(a, n), dimensions={1}\n";
  expect_value(a + "ROOT r = s32[2] reduce(d, z), dimensions={1}, to_apply=addi", "s32[2]", "{3, 9}", kAdd);
  expect_value(
      a + "t = s32[<=3,2] transpose(d), dimensions={1,0}\nROOT r = s32[] get-dimension-size(t), dimensions={0}",
      "s32[]", "2");
  expect_value(a + "s = s32[2,<=3] add(d, a)\nROOT r = s32[] reduce(s, z), dimensions={0,1}, to_apply=addi", "s32[]",
               "24", kAdd);
  expect_value(a + "m = s32[] constant(4)\nf = s32[<=6] dynamic-reshape(d, m)\n"
                   "ROOT r = s32[] reduce(f, z), dimensions={0}, to_apply=addi",
               "s32[]", "12", kAdd);
  expect_value(
      a + "m = s32[] constant(4)\nc = s32[<=6] dynamic-reshape(d, m)\nk = s32[2] constant({50, 60})\n"
          "p = s32[<=8] concatenate(c, k), dimensions={0}\nROOT r = s32[] get-dimension-size(p), dimensions={0}",
      "s32[]", "6");
}

TEST(Tokens, AndBarriersPassValuesOn) {
  expect_value(
      "t = token[] after-all()\na = s32[2] constant({1, 2})\nd = s32[2] add-dependency(a, t)\n"
      "u = (s32[2]) tuple(d)\nb = (s32[2]) opt-barrier(u)\nROOT r = s32[2] get-tuple-element(b), index=0",
      "s32[2]", "{1, 2}");
}

}  // namespace
}  // namespace collet::hlo
