// SPDX-License-Identifier: Apache-2.0
// Golden tests of the kernels that programs become, lowered and scheduled for 256-bit registers. The expected text is
// in sdk/codegen/kernel/goldens; COLLET_UPDATE_GOLDENS=1 rewrites it.

#include <collet/codegen/kernel_text.h>
#include <collet/codegen/kernel_verify.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "sdk/codegen/compile/plan_program.h"
#include "sdk/codegen/testing/program_builder.h"

namespace collet::codegen {
namespace {

using testing::Handle;
using testing::ProgramBuilder;
using testing::RegionBuilder;

constexpr uint32_t kF32 = COLLET_TYPE_F32;
constexpr uint32_t kS32 = COLLET_TYPE_S32;

struct Program {
  const char* name;
  std::function<void(ProgramBuilder&, RegionBuilder&)> write;
  bool masks = false;  ///< Target::masks
};

Handle reduce_add(RegionBuilder& e, const Handle& x, std::vector<int64_t> dims) {
  return e.reduce(COLLET_OP_ADD, COLLET_COMBINE_ADD, x, e.scalar(kF32, 0.0F), std::move(dims));
}

RegionBuilder& adder(ProgramBuilder& b, uint32_t type) {
  RegionBuilder& r = b.region();
  Handle x = r.argument(type);
  Handle y = r.argument(type);
  r.combine = COLLET_COMBINE_ADD;
  r.results({r.binary(COLLET_OP_ADD, x, y)});
  return r;
}

/// Returns the attributes of a window of one dimension.
collet_window window(ProgramBuilder& b, std::vector<int64_t> size, std::vector<int64_t> stride,
                     std::vector<int64_t> low) {
  const std::vector<int64_t> ones(size.size(), 1);
  const std::vector<int64_t> zeros(size.size(), 0);
  collet_window w{};
  w.size = b.list(size);
  w.stride = b.list(stride);
  w.padding_low = b.list(low);
  w.padding_high = b.list(zeros);
  w.base_dilation = b.list(ones);
  w.window_dilation = b.list(ones);
  w.reversal = b.list(zeros);
  return w;
}

void write_softmax(ProgramBuilder&, RegionBuilder& e) {
  Handle x = e.argument(kF32, {6, 20});
  const uint32_t low = 0xff800000;
  Handle largest = e.reduce(COLLET_OP_MAXIMUM, COLLET_COMBINE_MAXIMUM, x, e.scalar(kF32, low), {1});
  Handle shifted = e.binary(COLLET_OP_SUBTRACT, x, e.broadcast(largest, {6, 20}, {0}));
  Handle powers = e.unary(COLLET_OP_EXPONENTIAL, shifted);
  Handle sum = reduce_add(e, powers, {1});
  e.results({e.binary(COLLET_OP_DIVIDE, powers, e.broadcast(sum, {6, 20}, {0}))});
}

/// Writes x / sqrt(sum of x * x along each row) * scale: the sums keep their reduced dimension with size 1, and `scale`
/// has one element per column.
void write_standardize(ProgramBuilder&, RegionBuilder& e) {
  Handle x = e.argument(kF32, {6, 20});
  Handle scale = e.argument(kF32, {20});
  Handle sums = e.reshape(reduce_add(e, e.binary(COLLET_OP_MULTIPLY, x, x), {1}), {6, 1});
  Handle roots = e.reshape(e.unary(COLLET_OP_RSQRT, sums), {6});
  Handle y = e.binary(COLLET_OP_MULTIPLY, x, e.broadcast(roots, {6, 20}, {0}));
  e.results({e.binary(COLLET_OP_MULTIPLY, y, e.broadcast(scale, {6, 20}, {1}))});
}

void write_argmax(ProgramBuilder& b, RegionBuilder& e) {
  Handle x = e.argument(kF32, {5, 9});
  Handle at = e.op(COLLET_OP_IOTA, kS32, {5, 9}, {}, collet_iota_attrs{1});
  RegionBuilder& r = b.region();
  Handle p = r.argument(kF32);
  Handle i = r.argument(kS32);
  Handle q = r.argument(kF32);
  Handle j = r.argument(kS32);
  Handle keep = r.op(COLLET_OP_COMPARE, COLLET_TYPE_PRED, {}, {p, q},
                     collet_compare_attrs{COLLET_DIRECTION_GE, COLLET_COMPARE_FLOAT});
  r.results({r.op(COLLET_OP_SELECT, kF32, {}, {keep, p, q}), r.op(COLLET_OP_SELECT, kS32, {}, {keep, i, j})});
  Handle like_x{kF32, {5}, 0};
  Handle like_i{kS32, {5}, 0};
  e.results(e.ops(COLLET_OP_REDUCE, {like_x, like_i}, {x, at, e.scalar(kF32, -100.0F), e.scalar(kS32, 0)},
                  collet_dimensions_attrs{b.list({1})}, {&r}));
}

void write_gather(ProgramBuilder& b, RegionBuilder& e) {
  Handle table = e.argument(kF32, {30, 12});
  Handle rows = e.argument(kS32, {7, 1});
  collet_gather_attrs a{};
  a.offset_dims = b.list({1});
  a.collapsed_slice_dims = b.list({0});
  a.start_index_map = b.list({0});
  a.index_vector_dim = 1;
  a.slice_sizes = b.list({1, 12});
  e.results({e.op(COLLET_OP_GATHER, kF32, {7, 12}, {table, rows}, a)});
}

void write_scatter(ProgramBuilder& b, RegionBuilder& e) {
  Handle x = e.argument(kF32, {30, 12});
  Handle rows = e.argument(kS32, {7, 1});
  Handle with = e.argument(kF32, {7, 12});
  collet_scatter_attrs a{};
  a.update_window_dims = b.list({1});
  a.inserted_window_dims = b.list({0});
  a.scatter_dims_to_operand_dims = b.list({0});
  a.index_vector_dim = 1;
  e.results({e.op(COLLET_OP_SCATTER, kF32, {30, 12}, {x, rows, with}, a, {&adder(b, kF32)})});
}

void write_while(ProgramBuilder& b, RegionBuilder& e) {
  // Counts how often a number can be halved until it is at most 1.
  Handle x = e.argument(kS32, {19});
  RegionBuilder& f = b.region();
  Handle n = f.argument(kS32);
  Handle zero = f.scalar(kS32, 0);
  RegionBuilder& condition = b.region();
  Handle c = condition.argument(kS32);
  condition.argument(kS32);
  condition.results({condition.op(COLLET_OP_COMPARE, COLLET_TYPE_PRED, {}, {c, condition.scalar(kS32, 1)},
                                  collet_compare_attrs{COLLET_DIRECTION_GT, COLLET_COMPARE_SIGNED})});
  RegionBuilder& turn = b.region();
  Handle p = turn.argument(kS32);
  Handle q = turn.argument(kS32);
  turn.results({turn.binary(COLLET_OP_SHIFT_RIGHT_LOGICAL, p, turn.scalar(kS32, 1)),
                turn.binary(COLLET_OP_ADD, q, turn.scalar(kS32, 1))});
  const auto out = f.ops(COLLET_OP_WHILE, {n, zero}, {n, zero}, collet_while_attrs{}, {&condition, &turn});
  f.results({out[1]});
  e.results({e.op(COLLET_OP_MAP, kS32, {19}, {x}, collet_map_attrs{b.list({0})}, {&f})});
}

/// Writes a convolution with a window of three elements. `dilation` is the dilation of the input.
void write_convolution(ProgramBuilder& b, RegionBuilder& e, int64_t dilation, int64_t high) {
  Handle x = e.argument(kS32, {2, 9, 3});
  Handle k = e.argument(kS32, {3, 3, 4});
  collet_convolution_attrs a{};
  a.window = window(b, {3}, {1}, {1});
  a.window.padding_high = b.list({high});
  a.window.base_dilation = b.list({dilation});
  a.labels.input_batch = a.labels.output_batch = 0;
  a.labels.input_feature = a.labels.output_feature = 2;
  a.labels.kernel_input_feature = 1;
  a.labels.kernel_output_feature = 2;
  a.labels.input_spatial = a.labels.output_spatial = b.list({1});
  a.labels.kernel_spatial = b.list({0});
  a.feature_groups = a.batch_groups = 1;
  const int64_t length = 8 * dilation + 1 + 1 + high - 2;
  e.results({e.op(COLLET_OP_CONVOLUTION, kS32, {2, length, 4}, {x, k}, a)});
}

/// Writes a convolution of two dimensions with a window of 3 x 3 and three features.
void write_few_features(ProgramBuilder& b, RegionBuilder& e, bool features_first) {
  constexpr int64_t kSize = 20, kChannels = 96;
  const auto labelled = [&](int64_t features) {
    return features_first ? std::vector<int64_t>{1, features, kSize, kSize}
                          : std::vector<int64_t>{1, kSize, kSize, features};
  };
  Handle x = e.argument(kF32, labelled(kChannels));
  Handle k = e.argument(kF32, {3, 3, kChannels, 3});
  collet_convolution_attrs a{};
  a.window = window(b, {3, 3}, {1, 1}, {1, 1});
  a.window.padding_high = b.list({1, 1});
  a.labels.input_batch = a.labels.output_batch = 0;
  a.labels.input_feature = a.labels.output_feature = features_first ? 1 : 3;
  a.labels.kernel_input_feature = 2;
  a.labels.kernel_output_feature = 3;
  a.labels.input_spatial = a.labels.output_spatial = features_first ? b.list({2, 3}) : b.list({1, 2});
  a.labels.kernel_spatial = b.list({0, 1});
  a.feature_groups = a.batch_groups = 1;
  e.results({e.op(COLLET_OP_CONVOLUTION, kF32, labelled(3), {x, k}, a)});
}

const Program kPrograms[] = {
    {"elementwise",
     [](ProgramBuilder&, RegionBuilder& e) {
       Handle x = e.argument(kF32, {3, 50});
       Handle y = e.argument(kF32, {3, 50});
       e.results({e.unary(COLLET_OP_TANH, e.binary(COLLET_OP_ADD, e.binary(COLLET_OP_MULTIPLY, x, y), x))});
     }},
    {"broadcast",
     [](ProgramBuilder&, RegionBuilder& e) {
       Handle x = e.argument(COLLET_TYPE_BF16, {6, 20});
       Handle bias = e.argument(COLLET_TYPE_BF16, {20});
       e.results({e.binary(COLLET_OP_ADD, x, e.broadcast(bias, {6, 20}, {1}))});
     }},
    {"transpose",
     [](ProgramBuilder& b, RegionBuilder& e) {
       Handle x = e.argument(kF32, {6, 20});
       e.results({e.op(COLLET_OP_TRANSPOSE, kF32, {20, 6}, {x}, collet_dimensions_attrs{b.list({1, 0})})});
     }},
    {"reshape_transpose",
     [](ProgramBuilder& b, RegionBuilder& e) {
       Handle x = e.argument(kF32, {6, 20});
       Handle t = e.op(COLLET_OP_TRANSPOSE, kF32, {20, 6}, {x}, collet_dimensions_attrs{b.list({1, 0})});
       e.results({e.unary(COLLET_OP_NEGATE, e.reshape(t, {8, 15}))});
     }},
    {"reduce_rows",
     [](ProgramBuilder&, RegionBuilder& e) { e.results({reduce_add(e, e.argument(kF32, {6, 50}), {1})}); }},
    {"reduce_columns",
     [](ProgramBuilder&, RegionBuilder& e) { e.results({reduce_add(e, e.argument(kF32, {50, 20}), {0})}); }},
    {"reduce_all",
     [](ProgramBuilder&, RegionBuilder& e) { e.results({reduce_add(e, e.argument(kF32, {9, 50}), {0, 1})}); }},
    {"reduce_few_short_rows",
     [](ProgramBuilder&, RegionBuilder& e) {
       Handle x = e.argument(kF32, {10, 3});
       e.results({e.unary(COLLET_OP_EXPONENTIAL, reduce_add(e, e.binary(COLLET_OP_MULTIPLY, x, x), {1}))});
     }},
    {"cumulative_sum_of_short_rows",
     [](ProgramBuilder& b, RegionBuilder& e) {
       Handle x = e.argument(kF32, {100, 3});
       const collet_window_attrs a{window(b, {1, 3}, {1, 1}, {0, 2})};
       e.results({e.op(COLLET_OP_REDUCE_WINDOW, kF32, {100, 3}, {x, e.scalar(kF32, 0.0F)}, a, {&adder(b, kF32)})});
     }},
    {"softmax", write_softmax},
    {"standardize", write_standardize},
    {"argmax", write_argmax},
    {"cumulative_sum",
     [](ProgramBuilder& b, RegionBuilder& e) {
       Handle x = e.argument(kF32, {6, 40});
       const collet_window_attrs a{window(b, {1, 40}, {1, 1}, {0, 39})};
       e.results({e.op(COLLET_OP_REDUCE_WINDOW, kF32, {6, 40}, {x, e.scalar(kF32, 0.0F)}, a, {&adder(b, kF32)})});
     }},
    {"cumulative_sum_of_few_rows",
     [](ProgramBuilder& b, RegionBuilder& e) {
       Handle x = e.argument(kF32, {3, 4, 40});
       const collet_window_attrs a{window(b, {1, 4, 1}, {1, 1, 1}, {0, 3, 0})};
       e.results({e.op(COLLET_OP_REDUCE_WINDOW, kF32, {3, 4, 40}, {x, e.scalar(kF32, 0.0F)}, a, {&adder(b, kF32)})});
     }},
    {"pooling",
     [](ProgramBuilder& b, RegionBuilder& e) {
       Handle x = e.argument(kF32, {4, 16});
       const collet_window_attrs a{window(b, {1, 2}, {1, 2}, {0, 0})};
       e.results({e.op(COLLET_OP_REDUCE_WINDOW, kF32, {4, 8}, {x, e.scalar(kF32, 0.0F)}, a, {&adder(b, kF32)})});
     }},
    {"gather", write_gather},
    {"gather_pairs",
     [](ProgramBuilder& b, RegionBuilder& e) {
       Handle table = e.argument(kF32, {30, 12});
       Handle rows = e.argument(kS32, {7, 1});
       Handle columns = e.argument(kS32, {7, 1});
       Handle pairs = e.op(COLLET_OP_CONCATENATE, kS32, {7, 2}, {rows, columns}, collet_dimension_attrs{1});
       collet_gather_attrs a{};
       a.offset_dims = b.list({});
       a.collapsed_slice_dims = b.list({0, 1});
       a.start_index_map = b.list({0, 1});
       a.index_vector_dim = 1;
       a.slice_sizes = b.list({1, 1});
       e.results({e.op(COLLET_OP_GATHER, kF32, {7}, {table, pairs}, a)});
     }},
    {"scatter_add", write_scatter},
    {"dynamic_update_slice",
     [](ProgramBuilder&, RegionBuilder& e) {
       Handle x = e.argument(kF32, {10, 12});
       Handle with = e.argument(kF32, {3, 12});
       Handle row = e.argument(kS32);
       e.results({e.op(COLLET_OP_DYNAMIC_UPDATE_SLICE, kF32, {10, 12}, {x, with, row, e.scalar(kS32, 0)})});
     }},
    {"update_from_neighbours",
     [](ProgramBuilder& b, RegionBuilder& e) {
       // The rows that overwrite the array are computed from neighbouring rows of it, so they must be computed before
       // the update.
       Handle x = e.argument(kF32, {20, 20});
       const auto rows = [&](int64_t first) {
         return e.op(COLLET_OP_SLICE, kF32, {18, 20}, {x},
                     collet_slice_attrs{b.list({first, 0}), b.list({first + 18, 20}), b.list({1, 1})});
       };
       Handle sum = e.binary(COLLET_OP_ADD, rows(0), rows(2));
       e.results(
           {e.op(COLLET_OP_DYNAMIC_UPDATE_SLICE, kF32, {20, 20}, {x, sum, e.scalar(kS32, 1), e.scalar(kS32, 0)})});
     }},
    {"pad",
     [](ProgramBuilder& b, RegionBuilder& e) {
       Handle x = e.argument(kF32, {4, 9});
       const collet_pad_attrs a{b.list({1, 2}), b.list({0, 1}), b.list({0, 1})};
       e.results({e.op(COLLET_OP_PAD, kF32, {5, 20}, {x, e.argument(kF32)}, a)});
     }},
    {"concatenate",
     [](ProgramBuilder&, RegionBuilder& e) {
       Handle x = e.argument(kF32, {4, 9});
       Handle y = e.argument(kF32, {4, 7});
       e.results({e.op(COLLET_OP_CONCATENATE, kF32, {4, 16}, {x, y}, collet_dimension_attrs{1})});
     }},
    {"concatenate_narrow",
     [](ProgramBuilder&, RegionBuilder& e) {
       Handle x = e.argument(kF32, {40, 3});
       Handle y = e.argument(kF32, {40, 5});
       Handle z = e.argument(kF32, {40, 7});
       e.results({e.op(COLLET_OP_CONCATENATE, kF32, {40, 15}, {x, y, z}, collet_dimension_attrs{1})});
     },
     true},
    {"tile",
     [](ProgramBuilder&, RegionBuilder& e) {
       Handle x = e.argument(kF32, {30, 20});
       Handle tiles = e.broadcast(x, {2, 30, 4, 20}, {1, 3});
       e.results({e.op(COLLET_OP_RESHAPE, kF32, {60, 80}, {tiles})});
     }},
    {"dot",
     [](ProgramBuilder& b, RegionBuilder& e) {
       Handle x = e.argument(COLLET_TYPE_S16, {5, 11});
       Handle y = e.argument(COLLET_TYPE_S16, {11, 20});
       collet_dot_attrs a{};
       a.lhs_contracting = b.list({1});
       a.rhs_contracting = b.list({0});
       e.results({e.op(COLLET_OP_DOT, COLLET_TYPE_S16, {5, 20}, {x, y}, a)});
     }},
    {"outer_product",
     [](ProgramBuilder& b, RegionBuilder& e) {
       Handle sum = e.argument(kF32, {20, 30});
       Handle x = e.argument(kF32, {1, 30});
       Handle y = e.argument(kF32, {1, 20});
       collet_dot_attrs a{};
       a.lhs_contracting = b.list({0});
       a.rhs_contracting = b.list({0});
       Handle product = e.op(COLLET_OP_DOT, kF32, {30, 20}, {x, y}, a);
       Handle transposed =
           e.op(COLLET_OP_TRANSPOSE, kF32, {20, 30}, {product}, collet_dimensions_attrs{b.list({1, 0})});
       e.results({e.binary(COLLET_OP_ADD, sum, transposed)});
     }},
    {"matrix_times_vector",
     [](ProgramBuilder& b, RegionBuilder& e) {
       // The rows are summed along their elements, although more operands have an element for each row.
       Handle x = e.argument(kF32, {40, 50});
       Handle y = e.argument(kF32, {50});
       collet_dot_attrs a{};
       a.lhs_contracting = b.list({1});
       a.rhs_contracting = b.list({0});
       Handle sum = e.op(COLLET_OP_DOT, kF32, {40}, {x, y}, a);
       for (int i = 0; i < 3; ++i) sum = e.binary(COLLET_OP_ADD, sum, e.argument(kF32, {40}));
       e.results({sum});
     }},
    {"matrix_times_vector_exponential",
     [](ProgramBuilder& b, RegionBuilder& e) {
       // The exponential is a kernel of its own, which has elements of several rows in its lanes.
       Handle x = e.argument(kF32, {40, 50});
       Handle y = e.argument(kF32, {50});
       collet_dot_attrs a{};
       a.lhs_contracting = b.list({1});
       a.rhs_contracting = b.list({0});
       e.results({e.unary(COLLET_OP_EXPONENTIAL, e.op(COLLET_OP_DOT, kF32, {40}, {x, y}, a))});
     }},
    {"convolution", [](ProgramBuilder& b, RegionBuilder& e) { write_convolution(b, e, 1, 1); }},
    {"convolution_transposed", [](ProgramBuilder& b, RegionBuilder& e) { write_convolution(b, e, 2, 2); }},
    // The rows of the window, read once, are multiplied by those of three filters.
    {"convolution_few_features", [](ProgramBuilder& b, RegionBuilder& e) { write_few_features(b, e, false); }},
    // The lanes are results beside each other: the window is too short for them.
    {"convolution_few_features_first", [](ProgramBuilder& b, RegionBuilder& e) { write_few_features(b, e, true); }},
    {"while", write_while},
    {"complex",
     [](ProgramBuilder&, RegionBuilder& e) {
       Handle x = e.argument(COLLET_TYPE_C64, {33});
       e.results({e.op(COLLET_OP_ABS, kF32, {33}, {e.binary(COLLET_OP_MULTIPLY, x, x)})});
     }},
};

std::string read_file(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class KernelGolden : public ::testing::TestWithParam<Program> {};

INSTANTIATE_TEST_SUITE_P(Programs, KernelGolden, ::testing::ValuesIn(kPrograms),
                         [](const auto& program) { return std::string(program.param.name); });

TEST_P(KernelGolden, Planned_HasTheKernelsOfItsFile) {
  ProgramBuilder builder;
  GetParam().write(builder, builder.entry());
  Target target;
  target.vector_bits = 256;
  target.masks = GetParam().masks;
  PlannedProgram planned;
  const Status status = plan_program(builder.finish(), target, {}, planned);
  ASSERT_TRUE(status.ok()) << status.message();
  int kernels = 0;
  for (const FunctionSource& source : planned.sources) {
    const auto* kernel = std::get_if<Kernel>(&source.body);
    if (!kernel) continue;
    const std::string number = kernels == 0 ? "" : "_" + std::to_string(kernels);
    const std::filesystem::path path = "sdk/codegen/kernel/goldens/" + std::string(GetParam().name) + number + ".kir";
    ++kernels;
    const std::string text = print_kernel(*kernel);
    Kernel again;
    const Status read = parse_kernel(text, again);
    ASSERT_TRUE(read.ok()) << read.message() << "\n" << text;
    EXPECT_TRUE(again == *kernel) << text;
    EXPECT_TRUE(verify_kernel(*kernel).ok()) << verify_kernel(*kernel).message();
    if (std::getenv("COLLET_UPDATE_GOLDENS")) {
      std::ofstream(path) << text;
    } else {
      EXPECT_EQ(text, read_file(path)) << path;
    }
  }
  EXPECT_GT(kernels, 0);
}

}  // namespace
}  // namespace collet::codegen
