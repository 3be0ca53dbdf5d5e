// SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

#include <cmath>
#include <collet/kernel_loops.hpp>

#include "device.h"

namespace acme {

namespace kernel = collet::kernel;
using kernel::Op;

namespace {

constexpr kernel::TypeSet f32{COLLET_TYPE_F32};
constexpr kernel::TypeSet movable{COLLET_TYPE_F32, COLLET_TYPE_S32, COLLET_TYPE_PRED};

// Each of these runs on the host, as the stand-in for a launch on the device: find the arrays, start the kernel.
template <class T>
T* data(kernel::Device& device, const kernel::Array& array) {
  return static_cast<T*>(static_cast<Device&>(device).at(array));
}

// A row for an element-wise op of two operands: out[i] = f(x[i], y[i]).
template <class F>
kernel::Kernel binary(uint32_t opcode, F f) {
  return {opcode, f32, f32, [f](kernel::Device& device, const Op& op) {
            kernel::loop_binary(op.result().elements, data<float>(device, op.operand(0)),
                                data<float>(device, op.operand(1)), data<float>(device, op.result()), f);
          }};
}

// A row for an element-wise op of one operand.
template <class F>
kernel::Kernel unary(uint32_t opcode, F f) {
  return {opcode, f32, f32, [f](kernel::Device& device, const Op& op) {
            kernel::loop_unary(op.result().elements, data<float>(device, op.operand(0)),
                               data<float>(device, op.result()), f);
          }};
}

// NaN wins, and +0 is greater than -0.
float maximum(float x, float y) {
  if (x != x || y != y) return x + y;
  if (x == y) return std::signbit(x) ? y : x;
  return x > y ? x : y;
}

void run_product(kernel::Device& device, const Op& op) {
  kernel::MatrixProduct product;
  kernel::matrix_product_of(op, &product);
  kernel::loop_product<double>(product, data<float>(device, op.operand(0)), data<float>(device, op.operand(1)),
                               data<float>(device, op.result()));
}

// Sums and maxima; is_reduction says so to the SDK.
bool is_reduction(const Op& op) {
  return kernel::is_simple_reduction(op) &&
         (op.combine() == COLLET_COMBINE_ADD || op.combine() == COLLET_COMBINE_MAXIMUM);
}

void run_reduction(kernel::Device& device, const Op& op) {
  const kernel::Reduction reduction = kernel::reduction_of(op);
  const float* x = data<float>(device, op.operand(0));
  const float init = *data<float>(device, op.operand(1));
  float* out = data<float>(device, op.result());
  if (reduction.combine == COLLET_COMBINE_ADD) {
    kernel::loop_reduce<double>(reduction, x, init, out, [](double a, double b) { return a + b; });
  } else {
    kernel::loop_reduce<float>(reduction, x, init, out, maximum);
  }
}

// One kernel for broadcast, transpose, slice, pad, concatenate and the rest: a copy with strides.
void run_move(kernel::Device& device, const kernel::Move& move, const kernel::Array& from, const kernel::Array& to) {
  kernel::loop_move(move, data<char>(device, from), data<char>(device, to));
}

}  // namespace

std::vector<kernel::Kernel> kernels() {
  std::vector<kernel::Kernel> table = {
      binary(COLLET_OP_ADD, [](float x, float y) { return x + y; }),
      binary(COLLET_OP_SUBTRACT, [](float x, float y) { return x - y; }),
      binary(COLLET_OP_MULTIPLY, [](float x, float y) { return x * y; }),
      binary(COLLET_OP_DIVIDE, [](float x, float y) { return x / y; }),
      binary(COLLET_OP_MAXIMUM, maximum),
      unary(COLLET_OP_EXPONENTIAL, [](float x) { return std::exp(x); }),
      {COLLET_OP_DOT, f32, f32, run_product, kernel::is_plain_product},
      {COLLET_OP_REDUCE, f32, f32, run_reduction, is_reduction},
  };
  kernel::add_moves(&table, movable, run_move);
  return table;
}

}  // namespace acme
