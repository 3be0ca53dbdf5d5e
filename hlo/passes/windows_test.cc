// SPDX-License-Identifier: Apache-2.0
// Windows and padding that are larger than the array: after every pass and pipeline the module is valid and computes the same
// results, and no window or array has become larger than necessary.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "hlo/eval/evaluator.h"
#include "hlo/ops/windows.h"
#include "hlo/passes/pipeline.h"
#include "hlo/passes/rewriter.h"
#include "hlo/testing/equivalence.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

constexpr const char* kComputations = R"(
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
add_s32 { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT c = s32[] add(a, b) }
max_s32 { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT c = s32[] maximum(a, b) }
ge { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=GE }
both { a = s32[] parameter(0)  i = s32[] parameter(1)  b = s32[] parameter(2)  j = s32[] parameter(3)
  m = s32[] maximum(a, b)  k = s32[] add(i, j)  ROOT t = (s32[], s32[]) tuple(m, k) }
)";

std::unique_ptr<Module> module_of(const std::string& body) {
  auto module = parse_module("HloModule m\n" + std::string(kComputations) + "ENTRY e {\n" + body + "\n}\n", "test");
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  if (!module.ok()) return nullptr;
  const Status sound = verify_module(**module);
  EXPECT_TRUE(sound.ok()) << sound.to_string();
  return sound.ok() ? std::move(*module) : nullptr;
}

Claim core_only(const Module& module, InstrId id) {
  const OpClass c = op_info(module[id].op).op_class;
  return c == OpClass::CORE || c == OpClass::EXECUTOR ? Claim::Take : Claim::Expand;
}

int64_t largest_array(const Module& module) {
  int64_t most = 0;
  for (CompId c : module.computations())
    for (InstrId id : module[c].order)
      if (module[id].shape.is_array()) most = std::max(most, module[id].shape.element_count());
  return most;
}

/// Runs each pipeline separately on the module: it must be valid after each pass, have the same results, and have no
/// array with more than `most` elements.
void check(const std::string& body, int64_t most = 1 << 16) {
  SCOPED_TRACE(body);
  const auto module = module_of(body);
  ASSERT_TRUE(module);
  const auto inputs = testing::entry_inputs(*module);
  const auto truth = Evaluator(*module).run(inputs);
  ASSERT_TRUE(truth.ok()) << truth.status().to_string();
  for (const Pipeline& pipeline : pipelines())
    for (const bool prepared : {false, true}) {
      SCOPED_TRACE(pipeline.name);
      const auto changed = module_of(body);
      PassContext context;
      context.claim = core_only;
      PassObserver observer;
      observer.verify = [](const Module& m) { return verify_module(m); };
      if (prepared) {
        ASSERT_TRUE(prepare(*changed, context, observer).ok());
      }
      const auto status = pipeline.run(*changed, context, observer);
      ASSERT_TRUE(status.ok()) << status.status().to_string();
      EXPECT_LE(largest_array(*changed), most);
      const auto got = Evaluator(*changed).run(inputs);
      ASSERT_TRUE(got.ok()) << got.status().to_string();
      EXPECT_EQ(testing::difference(*truth, *got, {1e-11, 1e-5}), "");
    }
}

// Phases whose windows have other lengths, that begin at other elements, and that have none.
TEST(Windows, ConvolutionOfAnInputThatIsDilatedByLargeFactors) {
  check(
      "x = f32[2,5,6,4] parameter(0)  w = f32[7,11,2,6] parameter(1)\n"
      "ROOT r = f32[2,27,27,6] convolution(x, w), window={size=7x11 pad=9_3x5_1 lhs_dilate=5x6}, "
      "dim_labels=b01f_01io->b01f, feature_group_count=2");
  check(
      "x = f32[2,4,6] parameter(0)  w = f32[3,4,5] parameter(1)\n"
      "ROOT r = f32[3,2,96] convolution(x, w), window={size=5 pad=-3_2 lhs_dilate=20}, dim_labels=bf0_oi0->fb0");
  check(
      "x = f32[1,3,2] parameter(0)  w = f32[45,2,2] parameter(1)\n"
      "ROOT r = f32[1,97,2] convolution(x, w), window={size=45 pad=70_30 lhs_dilate=20}, dim_labels=b0f_0io->b0f");
  check(
      "x = f32[1,3,4,2] parameter(0)  w = f32[3,30,2,2] parameter(1)\n"
      "ROOT r = f32[1,2,50,2] convolution(x, w), window={size=3x30 stride=2x1 pad=1_1x-40_58 lhs_dilate=1x20}, "
      "dim_labels=b01f_01io->b01f");
  check(
      "x = f32[1,2,2,2,1] parameter(0)  w = f32[4,3,5,1,2] parameter(1)\n"
      "ROOT r = f32[1,7,7,6,2] convolution(x, w), window={size=4x3x5 pad=3_3x2_2x2_3 lhs_dilate=3x4x4 "
      "rhs_reversal=0x0x0}, dim_labels=b012f_012io->b012f");
}

TEST(Windows, DilatedConvolution_HasAsManyMultiplicationsAsItNeeds) {
  const auto module = module_of(
      "x = f32[1,21,16,16] parameter(0)  w = f32[21,21,64,64] parameter(1)\n"
      "ROOT r = f32[1,21,544,544] convolution(x, w), window={size=64x64 pad=63_63x63_63 lhs_dilate=32x32}, "
      "dim_labels=bf01_oi01->bf01");
  ASSERT_TRUE(module);
  PassContext context;
  ASSERT_TRUE(prepare(*module, context, {}).ok());
  double multiplications = 0;
  for (CompId c : module->computations()) {
    for (InstrId id : (*module)[c].order) {
      const Instruction& instr = (*module)[id];
      if (instr.op != Op::CONVOLUTION) continue;
      const auto& a = instr.as<ConvolutionAttrs>();
      double window = 21;
      for (const int64_t n : a.window.size) window *= static_cast<double>(n);
      multiplications += window * static_cast<double>(instr.shape.element_count());
      for (size_t d = 0; d < a.window.rank(); ++d) EXPECT_EQ(a.window.base_dilation_at(d), 1);
    }
  }
  EXPECT_LE(multiplications, 1.2 * 21 * 2 * 2 * 21 * 544 * 544);
}

TEST(Windows, ConvolutionWhosePaddingCutsOffMoreThanThereIs) {
  check(
      "x = f32[1,8,1] parameter(0)\n k = f32[3,1,1] parameter(1)\n ROOT y = f32[1,0,1] convolution(x, k), "
      "window={size=3 pad=-9_0}, dim_labels=b0f_0io->b0f");
  check(
      "x = f32[1,8,1] parameter(0)\n k = f32[3,1,1] parameter(1)\n ROOT y = f32[1,0,1] convolution(x, k), "
      "window={size=3 pad=-5_-9 lhs_dilate=2}, dim_labels=b0f_0io->b0f");
  check(
      "x = f32[1,8,1] parameter(0)\n k = f32[3,1,1] parameter(1)\n ROOT y = f32[1,1,1] convolution(x, k), "
      "window={size=3 pad=-9_4}, dim_labels=b0f_0io->b0f");
  check(
      "x = f32[1,8,2,8] parameter(0)\n k = f32[3,2,2,4] parameter(1)\n ROOT y = f32[1,0,2,5] convolution(x, k), "
      "window={size=3x4 pad=-3_-3x0_0}, dim_labels=b0f1_0io1->b0f1",
      1 << 16);
  check(
      "x = f32[1,0,1] parameter(0)\n k = f32[3,1,1] parameter(1)\n ROOT y = f32[1,2,1] convolution(x, k), "
      "window={size=3 pad=2_2}, dim_labels=b0f_0io->b0f");
  check(
      "x = f32[0,8,1] parameter(0)\n k = f32[3,1,1] parameter(1)\n ROOT y = f32[0,6,1] convolution(x, k), "
      "window={size=3}, dim_labels=b0f_0io->b0f");
  check(
      "x = f32[2,8,0] parameter(0)\n k = f32[3,0,4] parameter(1)\n ROOT y = f32[2,6,4] convolution(x, k), "
      "window={size=3 pad=1_-1}, dim_labels=b0f_0io->b0f");
  check(
      "x = f32[4,8,2] parameter(0)\n k = f32[3,2,0] parameter(1)\n ROOT y = f32[2,6,0] convolution(x, k), "
      "window={size=3}, dim_labels=b0f_0io->b0f, batch_group_count=2");
}

TEST(Windows, ReduceWindowWithPaddingOfAllKinds) {
  for (const char* padding : {"-9_0", "0_-9", "-9_20", "20_-9", "-3_-3", "-2_3", "5_7", "-4_-4", "-7_2"})
    for (const char* dilation : {"", " lhs_dilate=2", " rhs_dilate=3", " lhs_dilate=3 rhs_dilate=2", " stride=3",
                                 " stride=2 lhs_dilate=4 rhs_dilate=2"})
      for (const char* size : {"1", "2", "5", "20"}) {
        const std::string window = "size=" + std::string(size) + dilation + " pad=" + padding;
        // The parser infers the result's shape.
        check("x = s32[8] parameter(0)\n z = s32[] constant(3)\n ROOT y = reduce-window(x, z), window={" + window +
              "}, to_apply=max_s32");
      }
  check(
      "x = f32[8,0] parameter(0)\n z = f32[] constant(3)\n ROOT y = reduce-window(x, z), window={size=3x2 "
      "pad=0_0x4_4}, "
      "to_apply=add");
  check(
      "x = s32[8,5] parameter(0)\n i = s32[8,5] parameter(1)\n z = s32[] constant(0)\n o = s32[] constant(0)\n ROOT y "
      "= "
      "(s32[3,7], s32[3,7]) reduce-window(x, i, z, o), window={size=7x2 stride=2x1 pad=-2_5x1_2}, to_apply=both");
  check(
      "x = s32[8,5] parameter(0)\n i = s32[8,5] parameter(1)\n z = s32[] constant(7)\n o = s32[] constant(2)\n ROOT y "
      "= "
      "(s32[2,6], s32[2,6]) reduce-window(x, i, z, o), window={size=1x2 pad=-9_3x1_1}, to_apply=both");
}

TEST(Windows, SelectAndScatterWithPaddingOfAllKinds) {
  const struct {
    const char* window;
    const char* places;
  } cases[] = {{"size=3 pad=-9_0", "0"},  {"size=3 pad=-9_5", "2"},          {"size=3 pad=9_-9", "6"},
               {"size=2 stride=2", "4"},  {"size=2 stride=3 pad=0_-1", "2"}, {"size=20 pad=19_0", "8"},
               {"size=20 pad=0_19", "8"}, {"size=5 pad=20_0", "24"},         {"size=5 stride=7 pad=20_0", "4"}};
  for (const auto& c : cases)
    check("x = f32[8] parameter(0)\n s = f32[" + std::string(c.places) +
          "] parameter(1)\n z = f32[] constant(0)\n ROOT y = f32[8] select-and-scatter(x, s, z), window={" + c.window +
          "}, select=ge, scatter=add");
}

TEST(Windows, PadWithNegativeEdges) {
  for (const char* padding : {"-9_9", "9_-9", "-3_-3", "-2_3", "3_-2_2", "-5_4_3", "-8_0", "0_-8", "-7_30_2", "-20_20",
                              "-1_-1_1", "-22_9_2"}) {
    check("x = s32[8] parameter(0)\n v = s32[] parameter(1)\n ROOT y = pad(x, v), padding=" + std::string(padding),
          256);
    check(
        "x = s32[3,8] parameter(0)\n v = s32[] parameter(1)\n ROOT y = pad(x, v), padding=1_-1x" + std::string(padding),
        256);
  }
  check("x = s32[0] parameter(0)\n v = s32[] parameter(1)\n ROOT y = pad(x, v), padding=-2_5_1", 256);
  // Padding that a later slice removes is not created.
  check(
      "x = s32[8] parameter(0)\n v = s32[] parameter(1)\n ROOT y = s32[8] pad(x, v), "
      "padding=-1099511627776_1099511627776",
      256);
  check(
      "x = s32[8] parameter(0)\n v = s32[] parameter(1)\n ROOT y = s32[5] pad(x, v), "
      "padding=-1099511627774_-6597069766654_1099511627775",
      256);
}

TEST(Windows, VeryLargeWindowsOverFewElements) {
  const std::string large = "1099511627776", less = "1099511627775";
  check("x = s32[8] parameter(0)\n z = s32[] constant(0)\n ROOT y = s32[8] reduce-window(x, z), window={size=" + large +
        " pad=" + less + "_0}, to_apply=add_s32");
  check("x = s32[8] parameter(0)\n z = s32[] constant(0)\n ROOT y = s32[8] reduce-window(x, z), window={size=" + large +
        " pad=0_" + less + "}, to_apply=add_s32");
  check("x = s32[8,4] parameter(0)\n z = s32[] constant(0)\n ROOT y = s32[1,4] reduce-window(x, z), window={size=" +
        large + "x" + large + " stride=" + large + "x1 pad=" + less + "_0x" + less + "_0}, to_apply=add_s32");
  check(
      "x = s32[2] parameter(0)\n z = s32[] constant(0)\n ROOT y = s32[2] reduce-window(x, z), window={size=1 "
      "lhs_dilate=" +
      large + " stride=" + large + "}, to_apply=add_s32");
  check(
      "x = f32[8] parameter(0)\n s = f32[8] parameter(1)\n z = f32[] constant(0)\n ROOT y = f32[8] "
      "select-and-scatter(x, s, z), window={size=" +
      large + " pad=" + less + "_0}, select=ge, scatter=add");
  check(
      "x = f32[8] parameter(0)\n s = f32[1] parameter(1)\n z = f32[] constant(0)\n ROOT y = f32[8] "
      "select-and-scatter(x, s, z), window={size=" +
      large + " stride=" + large + " pad=" + less + "_0}, select=ge, scatter=add");
}

// Returns the index of the element that tap `k` of the window at position `p` reads, or -1.
int64_t seen(const WindowDim& w, int64_t elements, int64_t p, int64_t k) {
  const int64_t at = p * w.stride + k * w.window_dilation - w.low;
  return at >= 0 && at % w.base_dilation == 0 && at / w.base_dilation < elements ? at / w.base_dilation : -1;
}

std::vector<int64_t> all_seen(const WindowDim& w, int64_t elements, int64_t p) {
  std::vector<int64_t> out;
  for (int64_t k = 0; k < w.size; ++k)
    if (const int64_t i = seen(w, elements, p, k); i >= 0) out.push_back(i);
  return out;
}

TEST(LeastWindow, SeesTheSameAndHasNoTapToSpare) {
  int looked = 0;
  for (int64_t elements : {0, 1, 2, 5})
    for (int64_t size : {1, 2, 4, 9})
      for (int64_t stride : {1, 2, 6})
        for (int64_t low : {-7, -2, 0, 1, 8})
          for (int64_t high : {-4, 0, 3, 12})
            for (int64_t base : {1, 2, 4})
              for (int64_t dilation : {1, 2, 3}) {
                const WindowDim w{size, stride, low, high, base, dilation, false};
                const int64_t padded = (elements > 0 ? (elements - 1) * base + 1 : 0) + low + high;
                const int64_t reach = (size - 1) * dilation + 1;
                const int64_t places = padded >= reach ? (padded - reach) / stride + 1 : 0;
                const WindowDim least = least_window(w, elements, places);
                bool any = false, first = false, last = false;
                for (int64_t p = 0; p < places; ++p) {
                  ASSERT_EQ(all_seen(w, elements, p), all_seen(least, elements, p));
                  any |= !all_seen(w, elements, p).empty();
                }
                if (places == 0) {
                  EXPECT_EQ(least, w);
                  continue;
                }
                ++looked;
                if (least.size == 0) {
                  EXPECT_FALSE(any);
                  continue;
                }
                // The reduced window has as many positions, and its outermost taps meet the array at some position.
                const int64_t span = (elements - 1) * least.base_dilation + 1;
                EXPECT_EQ(
                    (span + least.low + least.high - (least.size - 1) * least.window_dilation - 1) / least.stride + 1,
                    places);
                for (int64_t p = 0; p < places; ++p) {
                  const int64_t front = p * least.stride - least.low;
                  const int64_t back = front + (least.size - 1) * least.window_dilation;
                  first |= front >= 0 && front < span;
                  last |= back >= 0 && back < span;
                }
                EXPECT_TRUE(first || stride > 1);
                EXPECT_TRUE(last || stride > 1);
              }
  EXPECT_GT(looked, 1000);
}

TEST(PaddedDim, KeepsWhatStandsInsideOfTheResult) {
  for (int64_t elements : {0, 1, 2, 6})
    for (int64_t low : {-9, -3, -1, 0, 2, 9})
      for (int64_t high : {-9, -2, 0, 1, 9})
        for (int64_t interior : {0, 1, 3}) {
          const int64_t step = interior + 1, size = low + (elements > 0 ? (elements - 1) * step + 1 : 0) + high;
          const PaddedDim p = padded_dim(elements, low, high, interior);
          EXPECT_EQ(p.size, std::max<int64_t>(size, 0));
          int64_t first = elements, count = 0;
          for (int64_t i = elements; i-- > 0;)
            if (low + i * step >= 0 && low + i * step < size) {
              first = i;
              ++count;
            }
          ASSERT_EQ(p.count, count);
          EXPECT_GE(p.low, 0);
          EXPECT_GE(p.high, 0);
          if (count == 0) continue;
          EXPECT_EQ(p.first, first);
          EXPECT_EQ(p.low, low + first * step);
          EXPECT_EQ(p.low + (count - 1) * step + 1 + p.high, p.size);
        }
}

}  // namespace
}  // namespace collet::hlo
