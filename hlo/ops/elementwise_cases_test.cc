// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "hlo/ops/op_cases.h"

namespace collet::hlo {
namespace {

TEST(Elementwise, Unary) {
  const OpCase cases[] = {
      {"f32[2,3] negate(f32[2,3])"},
      {"f32[<=2,?] exponential(f32[<=2,?])"},
      {"f32[2] abs(c64[2])"},
      {"f64[2] real(c128[2])"},
      {"f32[2] imag(f32[2])"},
      {"pred[2] is-finite(bf16[2])"},
      {"s4[2] not(s4[2])"},
      {"u8[] popcnt(u8[])"},
      {"f32[3] negate(f32[2])", "negate: the declared shape is f32[3], but the inferred one is f32[2]"},
      {"f32[2] negate(bf16[2])", "the declared shape is f32[2]"},
      {"u32[2] abs(u32[2])", "abs: operand 0 must be signed or complex"},
      {"u32[2] sign(u32[2])", "sign: operand 0 must be signed or complex"},
      {"pred[2] negate(pred[2])", "operand 0 must be of integer, float or complex type, but is pred[2]"},
      {"s32[2] floor(s32[2])", "operand 0 must be of float type"},
      {"(f32[2]) negate((f32[2]))", "operand 0 must be an array, but is (f32[2])"},
  };
  check_cases(cases);
}

TEST(Elementwise, Binary) {
  const OpCase cases[] = {
      {"f32[2,3] add(f32[2,3], f32[2,3])"},
      {"pred[2] add(pred[2], pred[2])"},
      {"f32[<=4] multiply(f32[<=4], f32[4])"},
      {"f32[4] multiply(f32[?], f32[4])"},
      {"f32[<=4] maximum(f32[<=4], f32[?])"},
      {"f32[?] maximum(f32[?], f32[?])"},
      {"f32[2] power(bf16[2], f32[2])"},
      {"c64[2] complex(f32[2], f32[2])"},
      {"c128[2] complex(f64[2], f64[2])"},
      {"u4[2] xor(u4[2], u4[2])"},
      {"f32[2] add(f32[2], s32[2])", "add C1: element types differ: lhs is f32[2], rhs is s32[2]"},
      {"f32[2,3] add(f32[2,3], f32[3])", "add C1: operand shapes differ: f32[2,3] and f32[3]"},
      {"f32[2] add(f32[2], f32[1])", "no implicit broadcast"},
      {"f32[2] add(f32[2], f32[])", "no implicit broadcast"},
      {"c64[2] complex(f32[2], f64[2])", "complex C1: parts must be f32 or f64 alike"},
      {"c64[2] complex(f16[2], f16[2])", "complex C1"},
      {"pred[2] subtract(pred[2], pred[2])", "operand 0 must be of integer, float or complex type"},
      {"f32[2] and(f32[2], f32[2])", "operand 0 must be of integer or pred type"},
      {"f32[2] add(f32[2], token[])", "operand 1 must be an array, but is token[]"},
  };
  check_cases(cases);
}

TEST(Elementwise, Compare) {
  const OpCase cases[] = {
      {"pred[2] compare(f32[2], f32[2]), direction=LT"},
      {"pred[2] compare(f32[2], f32[2]), direction=LT, type=TOTALORDER"},
      {"pred[2] compare(s8[2], s8[2]), direction=GE, type=SIGNED"},
      {"pred[2] compare(pred[2], pred[2]), direction=EQ, type=UNSIGNED"},
      {"pred[<=2] compare(c64[<=2], c64[2]), direction=NE"},
      {"pred[2] compare(f32[2], s32[2]), direction=LT", "compare C1: element types differ"},
      {"pred[2] compare(f32[2], f32[3]), direction=LT", "compare C2: operand shapes differ"},
      {"pred[2] compare(s32[2], s32[2]), direction=LT, type=UNSIGNED"},
      {"pred[2] compare(s32[2], s32[2]), direction=LT, type=TOTALORDER",
       "compare C3: comparison type TOTALORDER does not fit operands of s32[2]"},
      {"pred[2] compare(u8[2], u8[2]), direction=LT, type=TOTALORDER", "compare C3"},
      {"pred[2] compare(c64[2], c64[2]), direction=EQ, type=TOTALORDER", "compare C3"},
      {"pred[2] compare(c64[2], c64[2]), direction=LT", "complex numbers are equal or not, but have no order"},
      {"pred[2] compare(c128[2], c128[2]), direction=GE", "complex numbers are equal or not, but have no order"},
      {"s32[2] compare(f32[2], f32[2]), direction=LT", "the inferred one is pred[2]"},
  };
  check_cases(cases);
}

TEST(Elementwise, ClampAndSelect) {
  const OpCase cases[] = {
      {"f32[2] clamp(f32[], f32[2], f32[])"},
      {"f32[2] clamp(f32[2], f32[2], f32[2])"},
      {"f32[2] clamp(f32[3], f32[2], f32[])", "clamp C1: min must be a scalar or shaped as the operand"},
      {"f32[2] clamp(f32[], f32[2], f32[3])", "clamp C2: max must be a scalar"},
      {"f32[2] clamp(f32[], s32[2], f32[])", "clamp C3: element types differ"},
      {"f32[2] select(pred[2], f32[2], f32[2])"},
      {"f32[2] select(pred[], f32[2], f32[2])"},
      {"f32[<=2] select(pred[<=2], f32[2], f32[2])"},
      {"f32[2] select(pred[3], f32[2], f32[2])", "select C1: the predicate must be a scalar or shaped as f32[2]"},
      {"f32[2] select(pred[2], f32[2], f32[3])", "select C2: on_true is f32[2], but on_false is f32[3]"},
      {"f32[2] select(pred[2], f32[2], s32[2])", "select C2"},
      {"f32[2] select(s32[2], f32[2], f32[2])", "the predicate must be of type pred"},
  };
  check_cases(cases);
}

TEST(Convert, ShapesAndTypes) {
  const OpCase cases[] = {
      {"bf16[2,<=3] convert(f32[2,<=3])"},
      {"f8e4m3fn[2] convert(s4[2])"},
      {"f32[3] convert(f32[2])", "the declared shape is f32[3]"},
      {"(f32[2]) convert(f32[2])", "the result must be an array"},
      {"u32[2] bitcast-convert(f32[2])"},
      {"u8[2,4] bitcast-convert(f32[2])"},
      {"f32[2] bitcast-convert(u8[2,4])"},
      {"s4[3,2] bitcast-convert(u8[3])"},
      {"f32[2] bitcast-convert(u8[2,3])", "bitcast-convert C1: the last dimension of u8[2,3] must be 4"},
      {"f32[2] bitcast-convert(u8[])", "bitcast-convert C1"},
      {"u64[2] bitcast-convert(c64[2])", "bitcast-convert C2: complex and real types do not mix"},
      {"bf16[2] stochastic-convert(f32[2], u32[2])"},
      {"bf16[2] stochastic-convert(f32[2], s32[2])", "the random bits must be unsigned"},
      {"bf16[2] stochastic-convert(f32[2], u16[2])", "must have the same width"},
      {"bf16[2] stochastic-convert(f32[2], u32[3])", "must have the same shape"},
      {"s8[2] stochastic-convert(f32[2], u32[2])"},
      {"pred[2] stochastic-convert(f32[2], u32[2])", "the result must be of integer or float type, but is pred"},
      {"c64[2] stochastic-convert(f32[2], u32[2])", "the result must be of integer or float type, but is c64"},
      {"f32[2] reduce-precision(f32[2]), exponent_bits=5, mantissa_bits=10"},
      {"f32[2] reduce-precision(f32[2]), exponent_bits=0, mantissa_bits=10", "reduce-precision C2"},
      {"f32[2] reduce-precision(f32[2]), exponent_bits=5, mantissa_bits=-1", "reduce-precision C3"},
  };
  check_cases(cases);
}

TEST(Movement, BroadcastReshapeTranspose) {
  const OpCase cases[] = {
      {"f32[4,2,3] broadcast(f32[2,3]), dimensions={1,2}"},
      {"f32[4] broadcast(f32[]), dimensions={}"},
      {"f32[2,2] broadcast(f32[2]), dimensions={1}"},
      {"f32[4,2] broadcast(f32[2]), dimensions={0,1}", "broadcast C2"},
      {"s32[4,2] broadcast(f32[2]), dimensions={1}", "broadcast C1: element types differ"},
      {"f32[4,2] broadcast(f32[2]), dimensions={2}", "broadcast C3: dimension 2 lies outside of the result"},
      {"f32[4,2] broadcast(f32[2]), dimensions={-1}", "broadcast C3"},
      {"f32[2,2] broadcast(f32[2,2]), dimensions={1,1}", "broadcast C4"},
      {"f32[4,2] broadcast(f32[1]), dimensions={1}", "broadcast C5: operand dim 0 is 1, result dim 1 is 2"},
      {"f32[6] reshape(f32[2,3])"},
      {"f32[] reshape(f32[1,1])"},
      {"f32[0,7] reshape(f32[3,0])"},
      {"f32[5] reshape(f32[2,3])", "reshape C2"},
      {"s32[6] reshape(f32[2,3])", "reshape C1"},
      {"f32[3,2] transpose(f32[2,3]), dimensions={1,0}"},
      {"f32[<=3,2] transpose(f32[2,<=3]), dimensions={1,0}"},
      {"f32[3,2] transpose(f32[2,3]), dimensions={0,0}", "transpose C2"},
      {"f32[3,2] transpose(f32[2,3]), dimensions={1}", "transpose C2"},
      {"f32[2,3] transpose(f32[2,3]), dimensions={1,0}", "the inferred one is f32[3,2]"},
      {"f32[2,3] reverse(f32[2,3]), dimensions={0,1}"},
      {"f32[2,3] reverse(f32[2,3]), dimensions={0,0}", "reverse C2"},
      {"f32[2,3] reverse(f32[2,3]), dimensions={2}", "reverse C3"},
      {"s32[4,3] iota(), iota_dimension=1"},
      {"s32[4,3] iota(), iota_dimension=2", "iota C1: iota_dimension 2 lies outside of s32[4,3]"},
      {"pred[4] iota(), iota_dimension=0", "the result must be an array of integer, float or complex type"},
      {"f32[2,3] bitcast(f32[6])"},
      {"u8[8] bitcast(f32[2])"},
      {"f32[7] bitcast(f32[6])", "bitcast: operand f32[6] and result f32[7] have different sizes"},
      {"(f32[2]) copy((f32[2]))"},
  };
  check_cases(cases);
}

TEST(Movement, SlicePadConcatenate) {
  const OpCase cases[] = {
      {"f32[2,1] slice(f32[4,3]), slice={[0:4:2], [1:2]}"},
      {"f32[0] slice(f32[4]), slice={[2:2]}"},
      {"f32[<=2] slice(f32[<=4]), slice={[0:4:2]}"},
      {"f32[2] slice(f32[4,3]), slice={[0:4:2]}", "slice C2"},
      {"f32[2] slice(f32[4]), slice={[3:5]}", "slice C3: [3:5] does not lie in dimension 0"},
      {"f32[2] slice(f32[4]), slice={[3:2]}", "slice C3"},
      {"f32[2] slice(f32[4]), slice={[-1:1]}", "slice C3"},
      {"f32[2] slice(f32[4]), slice={[0:2:0]}", "slice C4: stride 0"},
      {"f32[3] slice(f32[4]), slice={[0:2]}", "the inferred one is f32[2]"},
      {"f32[7,2] pad(f32[3,3], f32[]), padding=1_1_1x0_-1"},
      {"f32[<=5] pad(f32[<=3], f32[]), padding=1_1"},
      {"f32[3] pad(f32[3], f32[1]), padding=0_0", "the padding value must be a scalar"},
      {"f32[3] pad(f32[3], s32[]), padding=0_0", "pad C1"},
      {"f32[3] pad(f32[3,3], f32[]), padding=0_0", "pad C2"},
      {"f32[0] pad(f32[3], f32[]), padding=-2_-2", "pad C4: dimension 0 of the result would have size -1"},
      {"f32[3] pad(f32[3], f32[]), padding=9223372036854775807_1", "pad C4: the size of dimension 0 overflows"},
      {"f32[2,5] concatenate(f32[2,2], f32[2,3]), dimensions={1}"},
      {"f32[<=2,<=5] concatenate(f32[<=2,2], f32[2,<=3]), dimensions={1}"},
      {"f32[2,?] concatenate(f32[?,2], f32[2,?]), dimensions={1}"},
      {"f32[4] concatenate(f32[2], s32[2]), dimensions={0}", "concatenate C1"},
      {"f32[2,5] concatenate(f32[2,2], f32[3,3]), dimensions={1}", "concatenate C2"},
      {"f32[2,5] concatenate(f32[2,2], f32[3]), dimensions={1}", "concatenate C2: ranks differ"},
      {"f32[2,2] concatenate(f32[2,2]), dimensions={2}", "concatenate C4"},
  };
  check_cases(cases);
}

TEST(Movement, DynamicSlices) {
  const OpCase cases[] = {
      {"f32[1,2] dynamic-slice(f32[4,3], s32[], s32[]), dynamic_slice_sizes={1,2}"},
      {"f32[1,2] dynamic-slice(f32[4,3], s64[2]), dynamic_slice_sizes={1,2}"},
      {"f32[1,2] dynamic-slice(f32[4,3], s64[3]), dynamic_slice_sizes={1,2}",
       "dynamic-slice C2: there must be 2 start indices, but there are 3"},
      {"f32[1,2] dynamic-slice(f32[4,3], f32[2]), dynamic_slice_sizes={1,2}", "must be integers, but are f32[2]"},
      {"f32[1] dynamic-slice(f32[4], s32[1,1]), dynamic_slice_sizes={1}", "must be a list, but the array is s32[1,1]"},
      {"f32[1,2] dynamic-slice(f32[4,3], s32[2], s32[]), dynamic_slice_sizes={1,2}",
       "start index 0 must be an integer scalar, but is s32[2]"},
      {"f32[1,2] dynamic-slice(f32[4,3], s32[], s32[1]), dynamic_slice_sizes={1,2}",
       "start index 1 must be an integer scalar, but is s32[1]"},
      {"f32[1,2] dynamic-slice(f32[4,3], s32[], s64[]), dynamic_slice_sizes={1,2}", "dynamic-slice C3"},
      {"f32[1,2] dynamic-slice(f32[4,3], f32[], f32[]), dynamic_slice_sizes={1,2}", "must be an integer scalar"},
      {"f32[1] dynamic-slice(f32[4,3], s32[], s32[]), dynamic_slice_sizes={1}", "dynamic-slice C2"},
      {"f32[1,4] dynamic-slice(f32[4,3], s32[], s32[]), dynamic_slice_sizes={1,4}", "dynamic-slice C4"},
      {"f32[1,2] dynamic-slice(f32[4,3], s32[], s32[]), dynamic_slice_sizes={-1,2}", "dynamic-slice C4"},
      {"f32[4,3] dynamic-update-slice(f32[4,3], f32[2,2], s32[], s32[])"},
      {"f32[4,3] dynamic-update-slice(f32[4,3], f32[2,2], u8[2])"},
      {"f32[4,3] dynamic-update-slice(f32[4,3], f32[2,2], s32[1])",
       "dynamic-update-slice C4: there must be 2 start indices, but there are 1"},
      {"f32[4,3] dynamic-update-slice(f32[4,3], s32[2,2], s32[], s32[])", "dynamic-update-slice C2"},
      {"f32[4,3] dynamic-update-slice(f32[4,3], f32[2], s32[], s32[])", "dynamic-update-slice C3"},
      {"f32[4,3] dynamic-update-slice(f32[4,3], f32[2,2], s32[], u32[])", "dynamic-update-slice C5"},
      {"f32[4,3] dynamic-update-slice(f32[4,3], f32[2,4], s32[], s32[])", "dynamic-update-slice C6"},
  };
  check_cases(cases);
}

}  // namespace
}  // namespace collet::hlo
