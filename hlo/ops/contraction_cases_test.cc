// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "hlo/ops/op_cases.h"

namespace collet::hlo {
namespace {

TEST(Dot, DimensionNumbers) {
  const OpCase cases[] = {
      {"f32[2,4] dot(f32[2,3], f32[3,4]), lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
      {"f32[5,2,4] dot(f32[5,2,3], f32[4,3,5]), lhs_batch_dims={0}, rhs_batch_dims={2}, lhs_contracting_dims={2}, "
       "rhs_contracting_dims={1}"},
      {"s32[2,4] dot(s8[2,3], s8[3,4]), lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
      {"f32[<=2,4] dot(f32[<=2,3], f32[3,4]), lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
      {"f32[2,?] dot(f32[2,?], f32[3,?]), lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
      {"f32[2,3] dot(f32[2], f32[3])"},
      {"f32[2,2] dot(f32[2,3], f32[3,2]), lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={0}",
       "dot C1: lhs has 1 batch dimensions, rhs has 0"},
      {"f32[2,2] dot(f32[2,3], f32[3,2]), lhs_contracting_dims={1}", "dot C2"},
      {"f32[2,2] dot(f32[2,2], f32[2,2]), lhs_contracting_dims={1,1}, rhs_contracting_dims={0,1}", "dot C3"},
      {"f32[2,2] dot(f32[2,2], f32[2,2]), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,0}", "dot C4"},
      {"f32[2] dot(f32[2], f32[2]), lhs_batch_dims={1}, rhs_batch_dims={0}", "dot C5"},
      {"f32[] dot(f32[2], f32[2]), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "dot C6"},
      {"f32[2] dot(f32[2], f32[2]), lhs_batch_dims={0}, rhs_batch_dims={-1}", "dot C7"},
      {"f32[] dot(f32[2], f32[2]), lhs_contracting_dims={0}, rhs_contracting_dims={7}", "dot C8"},
      {"f32[2] dot(f32[2], f32[3]), lhs_batch_dims={0}, rhs_batch_dims={0}",
       "dot C9: batch sizes differ: lhs dim 0 is 2, rhs dim 0 is 3"},
      {"f32[2,4] dot(f32[2,3], f32[4,4]), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
       "dot C10: contracting sizes differ: lhs dim 1 is 3, rhs dim 0 is 4"},
      {"f32[4,2] dot(f32[2,3], f32[3,4]), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
       "the declared shape is f32[4,2], but the inferred one is f32[2,4]"},
  };
  check_cases(cases);
}

TEST(Dot, RaggedAndScaled) {
  const OpCase cases[] = {
      {"f32[8,5] ragged-dot(f32[8,3], f32[2,3,5], s32[2]), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
       "lhs_ragged_dims={0}, rhs_group_dims={0}"},
      {"f32[2,8,5] ragged-dot(f32[8,3], f32[3,5], s32[2]), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
       "lhs_ragged_dims={1}"},
      {"f32[8,5] ragged-dot(f32[8,3], f32[2,3,5], s32[2]), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
       "lhs_ragged_dims={0}",
       "rhs must have one group dimension, but has 0"},
      {"f32[8,5] ragged-dot(f32[8,3], f32[2,3,5], s32[3]), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
       "lhs_ragged_dims={0}, rhs_group_dims={0}",
       "rhs group dimension is 2, but there are 3 groups"},
      {"f32[8,5] ragged-dot(f32[8,3], f32[2,3,5], s32[2]), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
       "lhs_ragged_dims={0,1}, rhs_group_dims={0}",
       "lhs must have one ragged dimension, but has 2"},
      {"f32[8,5] ragged-dot(f32[8,3], f32[2,3,5], s32[2]), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
       "lhs_ragged_dims={2}, rhs_group_dims={0}",
       "ragged dimension 2 lies outside"},
      {"f32[8,5] ragged-dot(f32[8,3], f32[2,3,5], s32[2]), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
       "lhs_ragged_dims={0}, rhs_group_dims={1}",
       "rhs group dimension 1 is a batch or contracting dimension"},
      {"f32[2,2] scaled-dot(f8e4m3fn[2,64], f8e4m3fn[64,2], f8e8m0fnu[2,2], f8e8m0fnu[2,2]), "
       "lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
      {"f32[2,2] scaled-dot(f8e4m3fn[2,64], f8e4m3fn[64,2], f8e8m0fnu[2,3], f8e8m0fnu[2,2]), "
       "lhs_contracting_dims={1}, rhs_contracting_dims={0}",
       "is no multiple of that of its scale"},
      {"f32[2,2] scaled-dot(f8e4m3fn[2,64], f8e4m3fn[64,2], f8e8m0fnu[2], f8e8m0fnu[2,2]), "
       "lhs_contracting_dims={1}, rhs_contracting_dims={0}",
       "must have the rank of its operand"},
      {"f32[2,2] scaled-dot(bf16[2,64], bf16[64,2], bf16[], bf16[]), lhs_contracting_dims={1}, "
       "rhs_contracting_dims={0}",
       "one of the scales must not be a scalar"},
  };
  check_cases(cases);
}

TEST(Convolution, Rules) {
  const OpCase cases[] = {
      {"f32[1,4,4,8] convolution(f32[1,6,6,3], f32[3,3,3,8]), window={size=3x3}, dim_labels=b01f_01io->b01f"},
      {"f32[1,3,3,8] convolution(f32[1,6,6,3], f32[3,3,3,8]), window={size=3x3 stride=2x2 pad=1_1x1_1}, "
       "dim_labels=b01f_01io->b01f"},
      {"f32[1,6,9] convolution(f32[1,6,6], f32[3,2,9]), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f, "
       "feature_group_count=3"},
      {"f32[1,6,8] convolution(f32[2,6,3], f32[1,3,8]), window={size=1}, dim_labels=b0f_0io->b0f, batch_group_count=2"},
      {"f32[?,4,8] convolution(f32[?,4,3], f32[1,3,8]), window={size=1}, dim_labels=b0f_0io->b0f"},
      {"s32[2,8] convolution(s8[2,3], s8[3,8]), dim_labels=bf_io->bf"},
      {"f32[1,4,8] convolution(f32[1,6,6,3], f32[3,3,8]), window={size=3}, dim_labels=b0f_0io->b0f", "convolution C1"},
      {"f32[1,4,8] convolution(f32[1,6,3], f32[3,3,8]), window={size=3x3}, dim_labels=b0f_0io->b0f", "convolution C2"},
      {"f32[1,4,8] convolution(f32[1,6,3], f32[3,3,8]), window={size=3 stride=0}, dim_labels=b0f_0io->b0f",
       "convolution C3"},
      {"f32[1,4,8] convolution(f32[1,6,3], f32[3,3,8]), window={size=3 lhs_dilate=0}, dim_labels=b0f_0io->b0f",
       "convolution C6"},
      {"f32[1,4,8] convolution(f32[1,6,3], f32[3,3,8]), window={size=3 rhs_dilate=0}, dim_labels=b0f_0io->b0f",
       "convolution C8"},
      {"f32[1,4,8] convolution(f32[3,6,3], f32[3,3,8]), window={size=3}, dim_labels=b0f_0io->b0f, batch_group_count=2",
       "convolution C10: batch size 3 is no multiple of batch_group_count 2"},
      {"f32[1,4,8] convolution(f32[1,6,3], f32[3,1,8]), window={size=3}, dim_labels=b0f_0io->b0f, "
       "feature_group_count=2",
       "convolution C11"},
      {"f32[1,4,8] convolution(f32[1,6,3], f32[3,2,8]), window={size=3}, dim_labels=b0f_0io->b0f", "convolution C14"},
      {"f32[1,4,8] convolution(f32[2,6,3], f32[3,3,7]), window={size=3}, dim_labels=b0f_0io->b0f, batch_group_count=2",
       "convolution C15"},
      {"f32[1,4,7] convolution(f32[1,6,4], f32[3,2,7]), window={size=3}, dim_labels=b0f_0io->b0f, "
       "feature_group_count=2",
       "convolution C16"},
      {"f32[1,4,8] convolution(f32[1,6,3], f32[3,3,8]), window={size=3}, dim_labels=b0f_0io->b0f, "
       "feature_group_count=0",
       "convolution C21"},
      {"f32[1,4,8] convolution(f32[1,6,3], f32[3,3,8]), window={size=3}, dim_labels=b0f_0io->b0f, batch_group_count=-1",
       "convolution C22"},
      {"f32[1,4,8] convolution(f32[2,6,4], f32[3,2,8]), window={size=3}, dim_labels=b0f_0io->b0f, "
       "batch_group_count=2, feature_group_count=2",
       "convolution C23"},
      {"f32[1,4,8] convolution(f32[1,6,3], f32[3,3,8]), window={size=2}, dim_labels=b0f_0io->b0f", "convolution C25"},
      {"f32[1,5,8] convolution(f32[1,6,3], f32[3,3,8]), window={size=3}, dim_labels=b0f_0io->b0f",
       "the inferred one is f32[1,4,8]"},
  };
  check_cases(cases);
}

TEST(Reduce, Rules) {
  const OpCase cases[] = {
      {"f32[2] reduce(f32[2,3], f32[]), dimensions={1}, to_apply=add"},
      {"f32[] reduce(f32[2,3], f32[]), dimensions={0,1}, to_apply=add"},
      {"f32[2,3] reduce(f32[2,3], f32[]), dimensions={}, to_apply=add"},
      {"f32[<=2] reduce(f32[<=2,3], f32[]), dimensions={1}, to_apply=add"},
      {"(f32[2], s32[2]) reduce(f32[2,3], s32[2,3], f32[], s32[]), dimensions={1}, to_apply=argmax"},
      {"(f32[2], s32[2]) reduce(f32[2,3], s32[2,4], f32[], s32[]), dimensions={1}, to_apply=argmax", "reduce C1"},
      {"f32[2] reduce(f32[2,3], f32[]), dimensions={2}, to_apply=add", "reduce C4"},
      {"f32[2] reduce(f32[2,3], f32[]), dimensions={1,1}, to_apply=add", "reduce C5"},
      {"f32[2] reduce(f32[2,3], f32[]), dimensions={1}, to_apply=argmax", "reduce C6: argmax must take 2 parameters"},
      {"f32[2] reduce(f32[2,3], f32[]), dimensions={1}, to_apply=add_s32", "reduce C6"},
      {"f32[2] reduce(f32[2,3], f32[]), dimensions={1}, to_apply=add_vector",
       "reduce C6: add_vector must give scalars"},
      {"f32[2] reduce(f32[2,3], f32[1]), dimensions={1}, to_apply=add", "but the initial value is f32[1]"},
      {"f32[2] reduce(f32[2,3], s32[]), dimensions={1}, to_apply=add", "but the initial value is s32[]"},
      {"f32[2] reduce(f32[2,3], f32[]), dimensions={1}, to_apply=mixed", "parameter 1 of mixed is s32[]"},
      {"f32[2] map(f32[2]), dimensions={0}, to_apply=negate"},
      {"f32[2] map(f32[2], f32[2]), dimensions={0}, to_apply=add"},
      {"f32[2] map(f32[2], f32[3]), dimensions={0}, to_apply=add", "map C1"},
      {"f32[2,2] map(f32[2,2]), dimensions={0}, to_apply=negate", "map C3"},
      {"f32[2] map(f32[2]), dimensions={0}, to_apply=add", "map C4: add takes 2 parameters"},
      {"s32[2] map(s32[2]), dimensions={0}, to_apply=negate", "map C4: parameter 0 of negate is f32[]"},
      {"f32[2] map(f32[2]), dimensions={0}, to_apply=negate_vector", "map C4"},
  };
  check_cases(cases);
}

TEST(Window, Rules) {
  const OpCase cases[] = {
      {"f32[3] reduce-window(f32[4], f32[]), window={size=2}, to_apply=add"},
      {"f32[<=3] reduce-window(f32[<=4], f32[]), window={size=2}, to_apply=add"},
      {"f32[4] reduce-window(f32[4], f32[]), window={size=3 pad=1_1}, to_apply=add"},
      {"f32[0] reduce-window(f32[2], f32[]), window={size=3}, to_apply=add"},
      {"f32[3] reduce-window(f32[4], f32[]), window={size=3 lhs_dilate=2 rhs_dilate=2}, to_apply=add"},
      {"(f32[3], s32[3]) reduce-window(f32[4], s32[4], f32[], s32[]), window={size=2}, to_apply=argmax"},
      {"(f32[3], s32[3]) reduce-window(f32[4], s32[5], f32[], s32[]), window={size=2}, to_apply=argmax",
       "reduce-window C2"},
      {"f32[3] reduce-window(f32[4], f32[]), window={size=2x2}, to_apply=add", "reduce-window C4"},
      {"f32[3] reduce-window(f32[4], f32[]), window={size=0}, to_apply=add", "reduce-window C5"},
      {"f32[3] reduce-window(f32[4], f32[]), window={size=2 stride=0}, to_apply=add", "reduce-window C7"},
      {"f32[3] reduce-window(f32[4], f32[]), window={size=2 lhs_dilate=0}, to_apply=add", "reduce-window C9"},
      {"f32[3] reduce-window(f32[4], f32[]), window={size=2 rhs_dilate=0}, to_apply=add", "reduce-window C11"},
      {"f32[3] reduce-window(f32[4], f32[]), window={size=2}, to_apply=add_s32", "reduce-window C13"},
      {"f32[4] select-and-scatter(f32[4], f32[2], f32[]), window={size=2 stride=2}, select=less, scatter=add"},
      {"f32[4] select-and-scatter(f32[4], s32[2], s32[]), window={size=2 stride=2}, select=less, scatter=add_s32",
       "select-and-scatter C1"},
      {"f32[4] select-and-scatter(f32[4], f32[3], f32[]), window={size=2 stride=2}, select=less, scatter=add",
       "select-and-scatter C2"},
      {"f32[4] select-and-scatter(f32[4], f32[2], f32[]), window={size=2x2}, select=less, scatter=add",
       "select-and-scatter C4"},
      {"f32[4] select-and-scatter(f32[4], f32[2], f32[]), window={size=-2}, select=less, scatter=add",
       "select-and-scatter C5"},
      {"f32[4] select-and-scatter(f32[4], f32[2], f32[]), window={size=2 stride=-1}, select=less, scatter=add",
       "select-and-scatter C7"},
      {"f32[4] select-and-scatter(f32[4], f32[2], f32[]), window={size=2 stride=2}, select=add, scatter=add",
       "select-and-scatter C9"},
      {"f32[4] select-and-scatter(f32[4], f32[2], f32[]), window={size=2 stride=2}, select=less, scatter=less",
       "select-and-scatter C10"},
  };
  check_cases(cases);
}

TEST(Sort, Rules) {
  const OpCase cases[] = {
      {"f32[2,3] sort(f32[2,3]), dimensions={1}, to_apply=less"},
      {"(f32[3], s32[3]) sort(f32[3], s32[3]), dimensions={0}, is_stable=true, to_apply=less_pair"},
      {"(f32[3], s32[4]) sort(f32[3], s32[4]), dimensions={0}, to_apply=less_pair", "sort C3"},
      {"f32[2,3] sort(f32[2,3]), dimensions={2}, to_apply=less", "sort C4"},
      {"f32[3] sort(f32[3]), dimensions={0}, to_apply=less_pair", "sort C5: less_pair must take 2 parameters"},
      {"s32[3] sort(s32[3]), dimensions={0}, to_apply=less", "sort C5: parameter 0 of less is f32[]"},
      {"f32[3] sort(f32[3]), dimensions={0}, to_apply=add", "sort C5: add must give pred[]"},
      {"(f32[2,2], s32[2,2]) topk(f32[2,5]), k=2, largest=true"},
      {"(f32[2,6], s32[2,6]) topk(f32[2,5]), k=6, largest=true", "topk: k 6 does not fit the last dimension"},
      {"(c64[2,2], s32[2,2]) topk(c64[2,5]), k=2, largest=true", "topk: complex numbers have no order"},
      {"(f32[], s32[]) topk(f32[]), k=1, largest=true", "topk: the operand must have a dimension"},
  };
  check_cases(cases);
}

TEST(Linalg, Rules) {
  const OpCase cases[] = {
      {"f32[2,3,3] cholesky(f32[2,3,3]), lower=true"},
      {"f32[3] cholesky(f32[3]), lower=true", "cholesky C2"},
      {"f32[3,4] cholesky(f32[3,4]), lower=true", "cholesky C3"},
      {"s32[3,3] cholesky(s32[3,3]), lower=true", "operand 0 must be of float or complex type"},
      {"f32[3,2] triangular-solve(f32[3,3], f32[3,2]), left_side=true, lower=true, transpose_a=NO_TRANSPOSE"},
      {"f32[2,3] triangular-solve(f32[3,3], f32[2,3]), left_side=false, lower=true, transpose_a=TRANSPOSE"},
      {"f64[3,2] triangular-solve(f32[3,3], f64[3,2]), left_side=true, lower=true, transpose_a=TRANSPOSE",
       "triangular-solve C1"},
      {"f32[3] triangular-solve(f32[3,3], f32[3]), left_side=true, lower=true, transpose_a=TRANSPOSE",
       "triangular-solve C2"},
      {"f32[2,3] triangular-solve(f32[3,3], f32[2,3]), left_side=true, lower=true, transpose_a=TRANSPOSE",
       "triangular-solve C3: the shared dimensions"},
      {"f32[4,3,2] triangular-solve(f32[5,3,3], f32[4,3,2]), left_side=true, lower=true, transpose_a=TRANSPOSE",
       "triangular-solve C3: batch dimension 0 differs"},
  };
  check_cases(cases);
}

TEST(Fft, Rules) {
  const OpCase cases[] = {
      {"c64[2,8] fft(c64[2,8]), fft_type=FFT, fft_length={8}"},
      {"c64[2,5] fft(f32[2,8]), fft_type=RFFT, fft_length={8}"},
      {"f64[2,8] fft(c128[2,5]), fft_type=IRFFT, fft_length={8}"},
      {"c64[0] fft(f32[0]), fft_type=RFFT, fft_length={0}"},
      {"c64[8] fft(c64[8]), fft_type=FFT, fft_length={8,8}", "fft C1"},
      {"f32[8] fft(f32[8]), fft_type=FFT, fft_length={8}", "fft C2: FFT, IFFT and IRFFT take complex"},
      {"c64[5] fft(c64[8]), fft_type=RFFT, fft_length={8}", "fft C2: RFFT takes f32 or f64"},
      {"c64[8] fft(c64[8]), fft_type=FFT, fft_length={}", "fft C3"},
      {"c64[2,2,2,2] fft(c64[2,2,2,2]), fft_type=FFT, fft_length={2,2,2,2}", "fft C3"},
      {"c64[5] fft(f32[9]), fft_type=RFFT, fft_length={8}", "fft C4: dimension 0 of f32[9] must be 8"},
      {"f32[8] fft(c64[6]), fft_type=IRFFT, fft_length={8}", "fft C5: dimension 0 of c64[6] must be 5"},
      {"c64[2,4,8] fft(c64[2,4,8]), fft_type=IFFT, fft_length={4,8}"},
      {"c64[2,?] fft(c64[2,?]), fft_type=FFT, fft_length={8}"},
      {"c64[0] fft(c64[0]), fft_type=FFT, fft_length={0}"},
      {"c64[8] fft(c64[8]), fft_type=FFT, fft_length={7}", "fft C4: dimension 0 of c64[8] must be 7"},
      {"c64[8] fft(c64[8]), fft_type=FFT, fft_length={16}", "fft C4: dimension 0 of c64[8] must be 16"},
      {"c64[8] fft(c64[8]), fft_type=IFFT, fft_length={-8}", "fft C4: fft_length {-8} has a negative entry"},
      {"c64[8] fft(c64[8]), fft_type=IFFT, fft_length={0}", "fft C4: dimension 0 of c64[8] must be 0"},
      {"c64[1,1,1,1] fft(c64[1,1,1,1]), fft_type=FFT, fft_length={1,0,1}", "fft C4: dimension 2"},
      {"c64[4,8] fft(c64[4,8]), fft_type=FFT, fft_length={8,4}", "fft C4: dimension 0 of c64[4,8] must be 8"},
  };
  check_cases(cases);
}

TEST(BatchNorm, Rules) {
  const OpCase cases[] = {
      {"(f32[2,3], f32[3], f32[3]) batch-norm-training(f32[2,3], f32[3], f32[3]), epsilon=0.1, feature_index=1"},
      {"f32[2,3] batch-norm-inference(f32[2,3], f32[3], f32[3], f32[3], f32[3]), epsilon=0.1, feature_index=1"},
      {"(f32[2,3], f32[3], f32[3]) batch-norm-grad(f32[2,3], f32[3], f32[3], f32[3], f32[2,3]), epsilon=0.1, "
       "feature_index=1"},
      {"(f32[2,3], f32[3], f32[3]) batch-norm-training(f32[2,3], f32[3], f32[3]), epsilon=0.1, feature_index=2",
       "batch-norm-training C1"},
      {"(f32[2,3], f32[3], f32[3]) batch-norm-training(f32[2,3], s32[3], f32[3]), epsilon=0.1, feature_index=1",
       "batch-norm-training C2"},
      {"(f32[2,3], f32[3], f32[3]) batch-norm-training(f32[2,3], f32[2], f32[3]), epsilon=0.1, feature_index=1",
       "batch-norm-training C3"},
      {"(f32[2,3], f32[3], f32[3]) batch-norm-training(f32[2,3], f32[3], f32[2]), epsilon=0.1, feature_index=1",
       "batch-norm-training C4"},
      {"f32[2,3] batch-norm-inference(f32[2,3], f32[3], f32[3], f32[4], f32[3]), epsilon=0.1, feature_index=1",
       "batch-norm-inference C5"},
      {"f32[2,3] batch-norm-inference(f32[2,3], f32[3], f32[3], f32[3], f32[4]), epsilon=0.1, feature_index=1",
       "batch-norm-inference C6"},
      {"f32[2,3] batch-norm-inference(f32[2,3], f32[3], f32[3], f32[3], f32[]), epsilon=0.1, feature_index=1",
       "variance must have rank 1"},
      {"(f32[2,3], f32[3], f32[3]) batch-norm-grad(f32[2,3], f32[3], f32[3], f32[3], f32[2,4]), epsilon=0.1, "
       "feature_index=1",
       "batch-norm-grad C3"},
      {"(f32[2,3], f32[3], f32[3]) batch-norm-grad(f32[2,3], f32[3], f32[2], f32[3], f32[2,3]), epsilon=0.1, "
       "feature_index=1",
       "batch-norm-grad C4"},
  };
  check_cases(cases);
}

}  // namespace
}  // namespace collet::hlo
