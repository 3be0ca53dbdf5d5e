// SPDX-License-Identifier: Apache-2.0
// Ops that move elements of arrays of dynamic size: the padded program computes what the program says, for each size.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hlo/eval/evaluator.h"
#include "hlo/passes/pipeline.h"
#include "hlo/testing/equivalence.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

struct Program {
  const char *name, *body;  ///< `body` defines v from d, of f32[<=6,4] with n rows
  bool needs_a_row = false;
};
void PrintTo(const Program& program, std::ostream* out) {
  *out << program.name;
}

class PadDynamic : public ::testing::TestWithParam<Program> {};

std::unique_ptr<Module> module_of(const Program& program, const std::string& size) {
  const std::string text =
      "HloModule m\nENTRY e {\n  x = f32[6,4] parameter(0)\n  y = f32[3,4] parameter(1)\n  n = s32[] constant(" + size +
      ")\n  d = f32[<=6,4] set-dimension-size(x, n), dimensions={0}\n" + program.body + "\n}\n";
  auto module = parse_module(text, "test");
  EXPECT_TRUE(module.ok()) << module.status().to_string() << text;
  return module.ok() ? std::move(*module) : nullptr;
}

TEST_P(PadDynamic, ComputesTheSame) {
  for (const char* size : {"0", "1", "4", "6"}) {
    SCOPED_TRACE(size);
    if (GetParam().needs_a_row && *size == '0') continue;
    const auto module = module_of(GetParam(), size), padded = module_of(GetParam(), size);
    ASSERT_TRUE(module && padded);
    const auto inputs = testing::entry_inputs(*module);
    const auto truth = Evaluator(*module).run(inputs);
    ASSERT_TRUE(truth.ok()) << truth.status().to_string();
    PassContext context;
    PassObserver observer;
    observer.verify = [](const Module& m) { return verify_module(m); };
    const Status prepared = prepare(*padded, context, observer).status();
    ASSERT_TRUE(prepared.ok()) << prepared.to_string();
    const auto got = Evaluator(*padded).run(inputs);
    ASSERT_TRUE(got.ok()) << got.status().to_string();
    EXPECT_EQ(testing::difference(*truth, *got, {0, 0}), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Elementwise, PadDynamic,
                         ::testing::Values(Program{"BitcastConvert", "  ROOT v = s32[<=6,4] bitcast-convert(d)"},
                                           Program{"Convert", "  ROOT v = s32[<=6,4] convert(d)"}),
                         [](const auto& instance) { return instance.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Moves, PadDynamic,
    ::testing::Values(
        Program{"Broadcast", "  ROOT v = f32[2,<=6,4] broadcast(d), dimensions={1,2}"},
        Program{"Transpose", "  ROOT v = f32[4,<=6] transpose(d), dimensions={1,0}"},
        Program{"ReshapeOfOtherDimensions", "  ROOT v = f32[<=6,2,2] reshape(d)"},
        Program{"ReshapeToOneDimension", "  ROOT v = f32[<=24] reshape(d)"},
        Program{"Slice", "  ROOT v = f32[<=6,2] slice(d), slice={[0:6], [1:3]}"},
        Program{"ConcatenateBefore", "  ROOT v = f32[<=9,4] concatenate(d, y), dimensions={0}"},
        Program{"ConcatenateBehind", "  ROOT v = f32[<=9,4] concatenate(y, d), dimensions={0}"},
        Program{"ConcatenateTwo", "  ROOT v = f32[<=12,4] concatenate(d, d), dimensions={0}"},
        Program{"PadOnBothSides", "  z = f32[] constant(7)\n  ROOT v = f32[<=9,4] pad(d, z), padding=1_2x0_0"},
        Program{"PadInside", "  z = f32[] constant(7)\n  ROOT v = f32[<=11,4] pad(d, z), padding=0_0_1x0_0"},
        Program{"DynamicSliceOfOneRow",
                "  i = s32[] constant(5)\n  z = s32[] constant(0)\n"
                "  ROOT v = f32[1,4] dynamic-slice(d, i, z), dynamic_slice_sizes={1,4}",
                true},
        Program{"DynamicUpdateSliceBeyondS32",
                "  u = f32[1,2] constant({{8,9}})\n  i = u32[] constant(4294967295)\n"
                "  ROOT v = f32[<=6,4] dynamic-update-slice(d, u, i, i)",
                true},
        Program{"Gather",
                "  i = s8[3,1] constant({{5},{-1},{2}})\n  ROOT v = f32[3,1,4] gather(d, i), offset_dims={1,2}, "
                "collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}",
                true},
        Program{"Reverse", "  ROOT v = f32[<=6,4] reverse(d), dimensions={0}"},
        Program{"ReverseOfTheOtherDimension", "  ROOT v = f32[<=6,4] reverse(d), dimensions={1}"}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace collet::hlo
