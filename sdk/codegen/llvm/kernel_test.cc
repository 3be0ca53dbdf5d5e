// SPDX-License-Identifier: Apache-2.0
// Compares generated code with the evaluator of kernel IR: every elementwise op of every type, and all forms of
// kernels.

#include <collet/program.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "sdk/codegen/kernel/elementwise.h"
#include "sdk/codegen/kernel/parse.h"
#include "sdk/codegen/schedule/lanes.h"
#include "sdk/codegen/testing/kernel_harness.h"

namespace collet::codegen {
namespace {

constexpr int kWidths[] = {128, 256, 512};
constexpr int64_t kPoints = 67;  ///< several full vectors and a tail, for all vector widths

std::vector<uint32_t> array_types() {
  std::vector<uint32_t> types;
  for (uint32_t t = 1; t < COLLET_TYPE_LIMIT; ++t) {
    if (collet_type_bytes(t) > 0) types.push_back(t);
  }
  return types;
}

/// Builds a kernel of one loop whose expressions are loaded and stored at the loop's points.
class PointKernel {
 public:
  PointKernel() {
    kernel_.loops = {{kPoints}};
    kernel_.outer = 1;
  }

  ExprId load(uint32_t type) {
    Expr e;
    e.op = ExprOp::kLoad;
    e.type = type;
    e.index = loop_index(0);
    e.buffer = kernel_.buffers++;
    return add(e);
  }

  void store(uint32_t opcode, uint32_t type, std::vector<ExprId> args, int64_t a = 0, int64_t b = 0) {
    Store s;
    s.value = add(op_expr(opcode, type, std::move(args), a, b));
    s.index = loop_index(0);
    s.buffer = kernel_.buffers++;
    kernel_.stores.push_back(s);
  }

  Kernel scheduled(int vector_bits) const {
    Kernel k = kernel_;
    choose_lanes(k, vector_bits);
    return k;
  }
  bool has_stores() const { return !kernel_.stores.empty(); }

 private:
  ExprId add(const Expr& e) {
    kernel_.exprs.push_back(e);
    return static_cast<ExprId>(kernel_.exprs.size()) - 1;
  }
  Kernel kernel_;
};

uint32_t unsigned_of(uint32_t bytes) {
  for (uint32_t t : {COLLET_TYPE_U8, COLLET_TYPE_U16, COLLET_TYPE_U32}) {
    if (collet_type_bytes(t) == bytes) return t;
  }
  return COLLET_TYPE_U64;
}

/// Adds loads of `type`, each variant of the op on them, and stores of the results.
void store_op(PointKernel& kernel, uint32_t opcode, uint32_t type) {
  std::vector<ExprId> args;
  for (size_t i = 0; i < operands_of(opcode); ++i) args.push_back(kernel.load(type));
  const bool complex = collet_type_kind(type) == COLLET_KIND_COMPLEX;
  switch (opcode) {
    case COLLET_OP_COMPARE:
      for (int64_t direction = 0; direction < (complex ? 2 : 6); ++direction) {
        kernel.store(opcode, COLLET_TYPE_PRED, args, direction, COLLET_COMPARE_DEFAULT);
        if (collet_type_kind(type) != COLLET_KIND_FLOAT) continue;
        kernel.store(opcode, COLLET_TYPE_PRED, args, direction, COLLET_COMPARE_TOTALORDER);
      }
      return;
    case COLLET_OP_IS_FINITE:
      return kernel.store(opcode, COLLET_TYPE_PRED, args);
    case COLLET_OP_ABS:
    case COLLET_OP_REAL:
    case COLLET_OP_IMAG:
      return kernel.store(opcode, half_type(type), args);
    case COLLET_OP_COMPLEX:
      if (type == COLLET_TYPE_F32) kernel.store(opcode, COLLET_TYPE_C64, args);
      if (type == COLLET_TYPE_F64) kernel.store(opcode, COLLET_TYPE_C128, args);
      return;
    case COLLET_OP_REDUCE_PRECISION:
      for (const auto& [exponent, mantissa] : {std::pair{8, 7}, {5, 10}, {3, 2}, {8, 0}, {1, 1}, {11, 52}, {4, 23}}) {
        kernel.store(opcode, type, args, exponent, mantissa);
      }
      return;
    case COLLET_OP_SELECT:
      for (uint32_t t : array_types()) kernel.store(opcode, t, {args[0], kernel.load(t), kernel.load(t)});
      return;
    case COLLET_OP_CONVERT:
      for (uint32_t t : array_types()) kernel.store(opcode, t, args);
      return;
    case COLLET_OP_BITCAST_CONVERT:
      for (uint32_t t : array_types()) {
        const bool fits =
            collet_type_bytes(t) == collet_type_bytes(type) && (collet_type_kind(t) == COLLET_KIND_COMPLEX) == complex;
        if (fits && type_bits(t) == type_bits(type)) kernel.store(opcode, t, args);
      }
      return;
    case COLLET_OP_STOCHASTIC_CONVERT: {
      const ExprId random = kernel.load(unsigned_of(collet_type_bytes(type)));
      for (uint32_t to : {COLLET_TYPE_S8, COLLET_TYPE_S32, COLLET_TYPE_BF16, COLLET_TYPE_F16, COLLET_TYPE_F8E5M2}) {
        if (collet_type_bytes(to) <= collet_type_bytes(type) && to != type) kernel.store(opcode, to, {args[0], random});
      }
      return;
    }
    default:
      return kernel.store(opcode, type, args);
  }
}

std::vector<uint32_t> elementwise_opcodes() {
  return {
#define COLLET_ELEMENTWISE(OPCODE, pred, integer, real, complex, rounds, expensive) COLLET_OP_##OPCODE,
#include "sdk/codegen/kernel/elementwise.def"
#undef COLLET_ELEMENTWISE
  };
}

/// True if the op is exact or correctly rounded, so that all correct implementations give the same bits.
bool is_exact(uint32_t opcode, uint32_t type) {
  if (opcode == COLLET_OP_REMAINDER) return true;
  const bool arithmetic =
      opcode == COLLET_OP_MULTIPLY || opcode == COLLET_OP_DIVIDE || opcode == COLLET_OP_ABS || opcode == COLLET_OP_SIGN;
  if (collet_type_kind(type) == COLLET_KIND_COMPLEX && arithmetic) return false;
  return !is_expensive(opcode);
}

class EveryWidth : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const Status made = Jit::create(machine_of(GetParam()), jit_);
    ASSERT_TRUE(made.ok()) << made.message();
  }
  std::unique_ptr<Jit> jit_;
};

INSTANTIATE_TEST_SUITE_P(Kernel, EveryWidth, ::testing::ValuesIn(kWidths));

TEST_P(EveryWidth, ExactOpsOfAnyBits_GiveTheBitsOfTheEvaluator) {
  std::vector<KernelCase> cases;
  for (uint32_t type : array_types()) {
    for (uint32_t opcode : elementwise_opcodes()) {
      if (!has_elementwise(opcode, type) || !is_exact(opcode, type)) continue;
      PointKernel kernel;
      store_op(kernel, opcode, type);
      if (!kernel.has_stores()) continue;
      const std::string name = std::string(collet_op_name(opcode)) + " of " + collet_type_name(type);
      cases.push_back({name, kernel.scheduled(GetParam()), Fill::kBits, {}});
    }
  }
  compare_with_evaluator(*jit_, cases);
}

TEST_P(EveryWidth, ElementaryFunctions_AreNearTheEvaluator) {
  std::vector<KernelCase> cases;
  for (uint32_t type : array_types()) {
    for (uint32_t opcode : elementwise_opcodes()) {
      if (!has_elementwise(opcode, type) || is_exact(opcode, type)) continue;
      const bool integer =
          collet_type_kind(type) == COLLET_KIND_SIGNED || collet_type_kind(type) == COLLET_KIND_UNSIGNED;
      const bool narrow = is_narrow_float(type);
      PointKernel kernel;
      store_op(kernel, opcode, type);
      const std::string name = std::string(collet_op_name(opcode)) + " of " + collet_type_name(type);
      const Bound bound{integer ? 0 : narrow ? 1.01 : collet_type_kind(type) == COLLET_KIND_COMPLEX ? 200.0 : 16.0};
      cases.push_back({name, kernel.scheduled(GetParam()), integer ? Fill::kBits : Fill::kTame, bound});
    }
  }
  compare_with_evaluator(*jit_, cases);
}

/// True if the result of some op of the kernel may differ between implementations.
bool is_approximate(const Kernel& k) {
  return std::any_of(k.exprs.begin(), k.exprs.end(), [&k](const Expr& e) {
    return e.op == ExprOp::kOp && !is_exact(e.opcode, k.exprs[static_cast<size_t>(e.args[0])].type);
  });
}

TEST_P(EveryWidth, KernelsOfFiles_LeaveWhatTheEvaluatorDoes) {
  std::vector<KernelCase> cases;
  for (const char* folder : {"sdk/codegen/kernel/goldens", "sdk/codegen/kernel/seeds"}) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      std::stringstream text;
      text << std::ifstream(file.path()).rdbuf();
      Kernel kernel;
      const Status read = parse_kernel(text.str(), kernel);
      ASSERT_TRUE(read.ok()) << file.path() << ":" << read.message();
      choose_lanes(kernel, GetParam());
      const Bound bound{is_approximate(kernel) ? 32.0 : 0.0};
      cases.push_back({file.path().filename().string(), kernel, Fill::kSmall, bound});
    }
  }
  EXPECT_GE(cases.size(), 20U);
  compare_with_evaluator(*jit_, cases);
}

TEST_P(EveryWidth, SumOverTwoLoops_HasTheErrorOfManyAccumulators) {
  KernelCase c;
  c.name = "sum of 65,536";
  const Status read = parse_kernel(R"(kernel (2 buffers) {
    inner i0: 2048
    inner i1: 32
    %0 = load f32 b0[32*i0 + i1]
    %1 = multiply f32 %0, %0
    r0 = reduce add f32 %1 init identity
    %2 = reduced f32 r0 result 0
    store b1[0], %2
  })",
                                   c.kernel);
  ASSERT_TRUE(read.ok()) << read.message();
  choose_lanes(c.kernel, GetParam());
  c.fill = Fill::kTame;
  c.bound = {4};  // error in units in the last place; with a single accumulator it would be larger
  std::unique_ptr<Jit> jit;
  ASSERT_TRUE(Jit::create(machine_of(GetParam()), jit).ok());
  compare_with_evaluator(*jit, {c});
}

TEST(Evaluator, AccessBeyondABuffer_IsNamedWithItsPoint) {
  Kernel kernel;
  ASSERT_TRUE(
      parse_kernel("kernel (2 buffers) {\nouter i0: 5\n%0 = load f32 b0[2*i0]\nstore b1[i0], %0\n}", kernel).ok());
  std::vector<std::byte> input(24);
  std::vector<std::byte> output(20);
  const std::vector<std::span<std::byte>> buffers{input, output};
  const Status status = evaluate_kernel(kernel, buffers);
  EXPECT_EQ(status.code(), COLLET_OUT_OF_RANGE);
  EXPECT_EQ(status.message(), "%0 = load f32 b0[2*i0] at (i0=3): element 6 of b0, which has 6");
}

TEST(Evaluator, WhileWithoutEnd_IsStopped) {
  Kernel kernel;
  const Status read = parse_kernel(R"(kernel (1 buffer) {
    %0 = constant s32 1
    %1 = while s32 %0 {
      condition (1) { %0 = constant pred true yield %0 }
      body (1) { %0 = argument s32 0 yield %0 }
    }
    %2 = part s32 %1 result 0 field 0
    store b0[0], %2
  })",
                                   kernel);
  ASSERT_TRUE(read.ok()) << read.message();
  std::vector<std::byte> output(4);
  const std::vector<std::span<std::byte>> buffers{output};
  const Status status = evaluate_kernel(kernel, buffers, {.most_iterations = 10});
  EXPECT_EQ(status.code(), COLLET_OUT_OF_RANGE);
  EXPECT_EQ(status.message(), "%1 at (): more than 10 iterations");
}

TEST(Evaluator, EveryElementwiseOpOfEveryType_IsEvaluated) {
  for (uint32_t type : array_types()) {
    for (uint32_t opcode : elementwise_opcodes()) {
      if (!has_elementwise(opcode, type)) continue;
      std::vector<uint32_t> types(operands_of(opcode), type);
      if (opcode == COLLET_OP_STOCHASTIC_CONVERT) types[1] = COLLET_TYPE_U32;
      const std::vector<Element> args(types.size());
      Element out{};
      const uint32_t result = opcode == COLLET_OP_STOCHASTIC_CONVERT ? uint32_t{COLLET_TYPE_S32} : type;
      const int64_t a = opcode == COLLET_OP_REDUCE_PRECISION ? 5 : 0;
      EXPECT_TRUE(evaluate_element({opcode, result, types, args, a, 0}, out))
          << collet_op_name(opcode) << " of " << collet_type_name(type);
    }
  }
}

}  // namespace
}  // namespace collet::codegen
