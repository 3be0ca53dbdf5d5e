// SPDX-License-Identifier: Apache-2.0
#include <collet/kernel_backend.hpp>
#include <collet/kernel_quantized.hpp>

#include "sdk/runtime/testing/kernels.h"

// A test device that has kernels for layers of quantized models only: products of integers with all that follows them,
// and quantization. docs/patterns.md shows the row of the product.

namespace {

using collet::kernel::Array;
using collet::kernel::Backend;
using collet::kernel::Device;
using collet::kernel::Kernel;
using collet::kernel::MatrixProduct;
using collet::kernel::Op;
using collet::kernel::QuantizedGroup;
using collet::kernel::TypeSet;
using collet::kernel::Verdict;
using collet::testing::KernelsDevice;

constexpr TypeSet stored{COLLET_TYPE_S8, COLLET_TYPE_U8};
constexpr TypeSet every{COLLET_TYPE_S8, COLLET_TYPE_U8, COLLET_TYPE_S32, COLLET_TYPE_F32};

template <class T>
T element(const Array& array, uint64_t i) {
  return reinterpret_cast<const T*>(KernelsDevice::at(array.memory) + array.offset)[i];
}

double load(const Array& array, uint64_t i) {
  switch (array.type) {
    case COLLET_TYPE_S8:
      return element<int8_t>(array, i);
    case COLLET_TYPE_U8:
      return element<uint8_t>(array, i);
    case COLLET_TYPE_S32:
      return element<int32_t>(array, i);
    default:
      return static_cast<double>(element<float>(array, i));
  }
}

void store(const Array& array, uint64_t i, float value) {
  char* const data = KernelsDevice::at(array.memory) + array.offset;
  if (array.type == COLLET_TYPE_F32) {
    reinterpret_cast<float*>(data)[i] = value;
  } else {
    data[i] = static_cast<char>(static_cast<int32_t>(value));
  }
}

Kernel integer_dot() {
  Kernel row{COLLET_OP_CALL, every, every, nullptr};
  row.pattern = "integer_dot";
  row.takes = [](const Op& op) -> Verdict {
    MatrixProduct p;
    if (!stored.has(op.operand(0).type) || !stored.has(op.operand(1).type)) return "only products of s8 and u8";
    if (!collet::kernel::product_of_group(op, &p)) return "only products of matrices";
    return op.result().type == COLLET_TYPE_F32 || stored.has(op.result().type) ? Verdict(true)
                                                                               : "only results of f32, s8 and u8";
  };
  row.prepare = [](Device&, const Op& op) -> std::any { return QuantizedGroup(op); };
  row.run = [](Device&, const Op& op) {
    const auto& group = op.state<QuantizedGroup>();
    const Array &x = op.operand(0), &w = op.operand(1);
    MatrixProduct p;
    collet::kernel::product_of_group(op, &p);
    for (int64_t b = 0; b < p.batch; ++b) {
      for (int64_t m = 0; m < p.m; ++m) {
        for (int64_t n = 0; n < p.n; ++n) {
          int32_t sum = 0;
          for (int64_t k = 0; k < p.k; ++k) {
            sum += static_cast<int32_t>(load(x, static_cast<uint64_t>(b * p.lhs_b + m * p.lhs_m + k * p.lhs_k))) *
                   static_cast<int32_t>(load(w, static_cast<uint64_t>(b * p.rhs_b + k * p.rhs_k + n * p.rhs_n)));
          }
          const auto at = static_cast<uint64_t>(b * p.out_b + m * p.out_m + n * p.out_n);
          store(op.result(), at, group.result(op, sum, at, load));
        }
      }
    }
  };
  return row;
}

/// A row for `quantize` of floats or `requantize` of sums.
template <class From>
Kernel quantization(const char* pattern, uint32_t from) {
  Kernel row{COLLET_OP_CALL, every, stored, nullptr};
  row.pattern = pattern;
  row.takes = [from](const Op& op) { return op.operand(0).type == from ? Verdict(true) : "only s32 and f32"; };
  row.prepare = [](Device&, const Op& op) -> std::any { return QuantizedGroup(op); };
  row.run = [](Device&, const Op& op) {
    const auto& group = op.state<QuantizedGroup>();
    for (uint64_t i = 0; i < op.result().elements; ++i) {
      store(op.result(), i, group.result(op, element<From>(op.operand(0), i), i, load));
    }
  };
  return row;
}

Backend describe() {
  Backend backend;
  backend.name = "npu";
  backend.device_kind = "NPU";
  for (const uint32_t type : {COLLET_TYPE_S8, COLLET_TYPE_U8, COLLET_TYPE_S32, COLLET_TYPE_F32}) {
    backend.types.push_back({type, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE});
  }
  backend.kernels = {integer_dot(), quantization<int32_t>("requantize", COLLET_TYPE_S32),
                     quantization<float>("quantize", COLLET_TYPE_F32)};
  backend.open_device = [](uint32_t) { return std::make_unique<KernelsDevice>(false); };
  return backend;
}

}  // namespace

COLLET_KERNEL_BACKEND(describe)
