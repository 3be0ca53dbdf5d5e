// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/kernel_text.h>
#include <collet/program.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "sdk/codegen/base/element_type.h"
#include "sdk/codegen/kernel/elementwise.h"
#include "sdk/codegen/testing/kernel_cases.h"

/// \file
/// Kernels of every elementwise op of every type, and those of the files of kernel/. For tests of emitters.

namespace collet::codegen {

inline constexpr int64_t kPoints = 67;  ///< several full vectors and a tail, for all vector widths

inline std::vector<uint32_t> array_types() {
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

  const Kernel& kernel() const { return kernel_; }
  bool has_stores() const { return !kernel_.stores.empty(); }

 private:
  ExprId add(const Expr& e) {
    kernel_.exprs.push_back(e);
    return static_cast<ExprId>(kernel_.exprs.size()) - 1;
  }
  Kernel kernel_;
};

inline uint32_t unsigned_of(uint32_t bytes) {
  for (uint32_t t : {COLLET_TYPE_U8, COLLET_TYPE_U16, COLLET_TYPE_U32}) {
    if (collet_type_bytes(t) == bytes) return t;
  }
  return COLLET_TYPE_U64;
}

/// Adds loads of `type`, each variant of the op on them, and stores of the results.
inline void store_op(PointKernel& kernel, uint32_t opcode, uint32_t type) {
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

inline std::vector<uint32_t> elementwise_opcodes() {
  return {
#define COLLET_ELEMENTWISE(OPCODE, pred, integer, real, complex, rounds, expensive) COLLET_OP_##OPCODE,
#include "sdk/codegen/kernel/elementwise.def"
#undef COLLET_ELEMENTWISE
  };
}

/// True if the op is exact or correctly rounded, so that all correct implementations give the same bits.
inline bool is_exact(uint32_t opcode, uint32_t type) {
  if (opcode == COLLET_OP_REMAINDER) return true;
  const bool arithmetic =
      opcode == COLLET_OP_MULTIPLY || opcode == COLLET_OP_DIVIDE || opcode == COLLET_OP_ABS || opcode == COLLET_OP_SIGN;
  if (collet_type_kind(type) == COLLET_KIND_COMPLEX && arithmetic) return false;
  return !is_expensive(opcode);
}

/// True if the result of some op of the kernel may differ between implementations.
inline bool is_approximate(const Kernel& k) {
  return std::any_of(k.exprs.begin(), k.exprs.end(), [&k](const Expr& e) {
    return e.op == ExprOp::kOp && !is_exact(e.opcode, k.exprs[static_cast<size_t>(e.args[0])].type);
  });
}

/// Returns a kernel for each type and each op that is exact.
inline std::vector<KernelCase> exact_op_cases() {
  std::vector<KernelCase> cases;
  for (uint32_t type : array_types()) {
    for (uint32_t opcode : elementwise_opcodes()) {
      if (!has_elementwise(opcode, type) || !is_exact(opcode, type)) continue;
      PointKernel kernel;
      store_op(kernel, opcode, type);
      if (!kernel.has_stores()) continue;
      const std::string name = std::string(collet_op_name(opcode)) + " of " + collet_type_name(type);
      cases.push_back({name, kernel.kernel(), Fill::kBits, {}});
    }
  }
  return cases;
}

/// Returns a kernel for each type and each op that is not.
inline std::vector<KernelCase> function_cases() {
  std::vector<KernelCase> cases;
  for (uint32_t type : array_types()) {
    for (uint32_t opcode : elementwise_opcodes()) {
      if (!has_elementwise(opcode, type) || is_exact(opcode, type)) continue;
      const uint32_t kind = collet_type_kind(type);
      const bool integer = kind == COLLET_KIND_SIGNED || kind == COLLET_KIND_UNSIGNED;
      PointKernel kernel;
      store_op(kernel, opcode, type);
      const std::string name = std::string(collet_op_name(opcode)) + " of " + collet_type_name(type);
      const Bound bound{integer ? 0 : is_narrow_float(type) ? 1.01 : kind == COLLET_KIND_COMPLEX ? 200.0 : 16.0};
      cases.push_back({name, kernel.kernel(), integer ? Fill::kBits : Fill::kTame, bound});
    }
  }
  return cases;
}

/// Returns the kernels of the golden files and of the seeds.
inline std::vector<KernelCase> file_cases() {
  std::vector<KernelCase> cases;
  for (const char* folder : {"sdk/codegen/kernel/goldens", "sdk/codegen/kernel/seeds"}) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      std::stringstream text;
      text << std::ifstream(file.path()).rdbuf();
      Kernel kernel;
      const Status read = parse_kernel(text.str(), kernel);
      EXPECT_TRUE(read.ok()) << file.path() << ":" << read.message();
      const Bound bound{is_approximate(kernel) ? 32.0 : 0.0};
      cases.push_back({file.path().filename().string(), kernel, Fill::kSmall, bound});
    }
  }
  return cases;
}

}  // namespace collet::codegen
