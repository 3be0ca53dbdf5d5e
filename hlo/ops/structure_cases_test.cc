// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "hlo/ops/op_cases.h"

namespace collet::hlo {
namespace {

TEST(Indexing, Gather) {
  const OpCase cases[] = {
      {"f32[5,3] gather(f32[10,3], s32[5]), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
       "index_vector_dim=1, slice_sizes={1,3}"},
      {"f32[<=5,3] gather(f32[10,3], s32[<=5,1]), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
       "index_vector_dim=1, slice_sizes={1,3}"},
      {"f32[4,5,3] gather(f32[4,10,3], s32[4,5]), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, "
       "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,3}"},
      {"f32[5,3] gather(f32[10,3], f32[5]), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
       "index_vector_dim=1, slice_sizes={1,3}",
       "the indices must be an array of integers"},
      {"f32[5,3] gather(f32[10,3], s32[5]), offset_dims={1}, collapsed_slice_dims={}, start_index_map={0}, "
       "index_vector_dim=1, slice_sizes={1,3}",
       "gather C1"},
      {"f32[5,3] gather(f32[10,3], s32[5]), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
       "index_vector_dim=2, slice_sizes={1,3}",
       "gather C2"},
      {"f32[5,3] gather(f32[10,3], s32[5,2]), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
       "index_vector_dim=1, slice_sizes={1,3}",
       "gather C3: start_index_map {0} must have 2 entries"},
      {"f32[5,3] gather(f32[10,3], s32[5]), offset_dims={1,0}, collapsed_slice_dims={}, start_index_map={0}, "
       "index_vector_dim=1, slice_sizes={1,3}",
       "gather C4"},
      {"f32[5,3] gather(f32[10,3], s32[5]), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, "
       "index_vector_dim=1, slice_sizes={1,3}",
       "gather C5"},
      {"f32[5] gather(f32[10,3], s32[5]), offset_dims={}, collapsed_slice_dims={0,0}, start_index_map={0}, "
       "index_vector_dim=1, slice_sizes={1,1}",
       "gather C6"},
      {"f32[5] gather(f32[10,3], s32[5]), offset_dims={}, collapsed_slice_dims={1,0}, start_index_map={0}, "
       "index_vector_dim=1, slice_sizes={1,1}",
       "gather C7"},
      {"f32[5,3] gather(f32[10,3], s32[5]), offset_dims={1}, collapsed_slice_dims={2}, start_index_map={0}, "
       "index_vector_dim=1, slice_sizes={1,3}",
       "gather C8"},
      {"f32[5,3] gather(f32[10,3], s32[5]), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
       "index_vector_dim=1, slice_sizes={2,3}",
       "gather C9"},
      {"f32[4,5,3] gather(f32[4,10,3], s32[4,5]), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, "
       "operand_batching_dims={3}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,3}",
       "gather C11"},
      {"f32[4,5,3] gather(f32[4,10,3], s32[4,5]), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, "
       "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={2,1,3}",
       "gather C12"},
      {"f32[4,5,3] gather(f32[4,10,3], s32[4,5]), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, "
       "operand_batching_dims={0}, start_indices_batching_dims={2}, index_vector_dim=2, slice_sizes={1,1,3}",
       "gather C14"},
      {"f32[4,5,3] gather(f32[4,10,3], s32[4,5,1]), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, "
       "operand_batching_dims={0}, start_indices_batching_dims={2}, index_vector_dim=2, slice_sizes={1,1,3}",
       "gather C15"},
      {"f32[4,5,3] gather(f32[4,10,3], s32[4,5]), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, "
       "operand_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,3}",
       "gather C16"},
      {"f32[4,5,3] gather(f32[7,10,3], s32[4,5]), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, "
       "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,3}",
       "gather C17: batching sizes differ: operand dim 0 is 7, indices dim 0 is 4"},
      {"f32[5,3] gather(f32[10,3], s32[5,2]), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0,0}, "
       "index_vector_dim=1, slice_sizes={1,3}",
       "gather C18"},
      {"f32[5,3] gather(f32[10,3], s32[5]), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={2}, "
       "index_vector_dim=1, slice_sizes={1,3}",
       "gather C19"},
      {"f32[5,3] gather(f32[10,3], s32[5]), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
       "index_vector_dim=1, slice_sizes={1}",
       "gather C20"},
      {"f32[5,3] gather(f32[10,3], s32[5]), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
       "index_vector_dim=1, slice_sizes={1,4}",
       "gather C21"},
  };
  check_cases(cases);
}

TEST(Indexing, Scatter) {
  const OpCase cases[] = {
      {"f32[10,3] scatter(f32[10,3], s32[5], f32[5,3]), update_window_dims={1}, inserted_window_dims={0}, "
       "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add"},
      {"(f32[10], s32[10]) scatter(f32[10], s32[10], s32[5], f32[5], s32[5]), update_window_dims={}, "
       "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=argmax"},
      {"(f32[10], s32[11]) scatter(f32[10], s32[11], s32[5], f32[5], s32[5]), update_window_dims={}, "
       "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=argmax",
       "scatter C1"},
      {"f32[10,3] scatter(f32[10,3], s32[5], f32[5,3]), update_window_dims={1}, inserted_window_dims={}, "
       "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
       "scatter C2"},
      {"f32[10,3] scatter(f32[10,3], s32[5], f32[5,4]), update_window_dims={1}, inserted_window_dims={0}, "
       "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
       "scatter C4: window dimension 1 of the updates is 4"},
      {"f32[10,3] scatter(f32[10,3], s32[5], f32[6,3]), update_window_dims={1}, inserted_window_dims={0}, "
       "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
       "scatter C4: dimension 0 of the updates is 6"},
      {"f32[10,3] scatter(f32[10,3], s32[5], f32[5]), update_window_dims={1}, inserted_window_dims={0}, "
       "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
       "scatter C4: updates must have rank 2"},
      {"f32[10,3] scatter(f32[10,3], s32[5], f32[5,3,3]), update_window_dims={2,1}, inserted_window_dims={}, "
       "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
       "scatter C7"},
      {"f32[10,3] scatter(f32[10,3], s32[5], f32[5,3]), update_window_dims={2}, inserted_window_dims={0}, "
       "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
       "scatter C8"},
      {"f32[10,3] scatter(f32[10,3], s32[5], f32[5]), update_window_dims={}, inserted_window_dims={0,0}, "
       "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
       "scatter C9"},
      {"f32[10,3] scatter(f32[10,3], s32[5], f32[5]), update_window_dims={}, inserted_window_dims={1,0}, "
       "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
       "scatter C10"},
      {"f32[10,3] scatter(f32[10,3], s32[5], f32[5,3]), update_window_dims={1}, inserted_window_dims={2}, "
       "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
       "scatter C11"},
      {"f32[10,3] scatter(f32[10,3], s32[5,2], f32[5,3]), update_window_dims={1}, inserted_window_dims={0}, "
       "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
       "scatter C19"},
      {"f32[10,3] scatter(f32[10,3], s32[5,2], f32[5,3]), update_window_dims={1}, inserted_window_dims={0}, "
       "scatter_dims_to_operand_dims={0,0}, index_vector_dim=1, to_apply=add",
       "scatter C20"},
      {"f32[10,3] scatter(f32[10,3], s32[5], f32[5,3]), update_window_dims={1}, inserted_window_dims={0}, "
       "scatter_dims_to_operand_dims={7}, index_vector_dim=1, to_apply=add",
       "scatter C21"},
      {"f32[10,3] scatter(f32[10,3], s32[5], f32[5,3]), update_window_dims={1}, inserted_window_dims={0}, "
       "scatter_dims_to_operand_dims={0}, index_vector_dim=-1, to_apply=add",
       "scatter C22"},
      {"f32[10,3] scatter(f32[10,3], s32[5], f32[5,3]), update_window_dims={1}, inserted_window_dims={0}, "
       "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add_s32",
       "scatter C23"},
  };
  check_cases(cases);
}

TEST(Rng, Rules) {
  const OpCase cases[] = {
      {"f32[4] rng(f32[], f32[]), distribution=rng_uniform"},
      {"s32[4] rng(s32[], s32[]), distribution=rng_uniform"},
      {"f32[4] rng(f32[], s32[]), distribution=rng_uniform", "rng C1"},
      {"s32[4] rng(s32[], s32[]), distribution=rng_normal", "rng C2"},
      {"f32[4] rng(f32[1], f32[]), distribution=rng_uniform", "rng: operand 0 must be a scalar"},
      {"(u64[2], u32[4]) rng-bit-generator(u64[2]), algorithm=rng_three_fry"},
      {"(u64[3], u32[4]) rng-bit-generator(u64[2]), algorithm=rng_three_fry", "rng-bit-generator C1"},
      {"(u64[2]) rng-bit-generator(u64[2]), algorithm=rng_three_fry", "the result must be (state, bits)"},
      {"(u64[2], f32[4]) rng-bit-generator(u64[2]), algorithm=rng_philox"},
      {"(u64[3], s4[4]) rng-bit-generator(u64[3]), algorithm=rng_philox"},
      {"(u64[3], u32[4]) rng-bit-generator(u64[3]), algorithm=rng_default"},
      {"u32[4] rng-bit-generator(u64[2]), algorithm=rng_default"},
      {"(u64[3], u32[4]) rng-bit-generator(u64[3]), algorithm=rng_three_fry",
       "rng-bit-generator C2: the state of rng_three_fry must be u64[2], but is u64[3]"},
      {"(u64[1], u32[4]) rng-bit-generator(u64[1]), algorithm=rng_three_fry", "rng-bit-generator C2"},
      {"(u64[5], u32[4]) rng-bit-generator(u64[5]), algorithm=rng_philox",
       "rng-bit-generator C2: the state of rng_philox must be u64[2] or u64[3], but is u64[5]"},
      {"(u64[1], u32[4]) rng-bit-generator(u64[1]), algorithm=rng_philox", "rng-bit-generator C2"},
      {"(u64[4], u32[4]) rng-bit-generator(u64[4]), algorithm=rng_default", "rng-bit-generator C2"},
      {"(u64[2,1], u32[4]) rng-bit-generator(u64[2,1]), algorithm=rng_philox", "rng-bit-generator C2"},
      {"(u32[4], u32[4]) rng-bit-generator(u32[4]), algorithm=rng_philox"},
      {"(c64[2], u32[4]) rng-bit-generator(c64[2]), algorithm=rng_philox", "rng-bit-generator C2"},
      {"(u32[6], u32[4]) rng-bit-generator(u32[6]), algorithm=rng_three_fry", "rng-bit-generator C2"},
      {"(u32[2], u32[4]) rng-bit-generator(u32[2]), algorithm=rng_philox", "rng-bit-generator C2"},
      {"(u64[2], c64[4]) rng-bit-generator(u64[2]), algorithm=rng_philox",
       "the bits must be of integer, float or pred type, but are c64[4]"},
      {"u64[2] rng-get-and-update-state(), delta=1"},
      {"u64[3] rng-get-and-update-state(), delta=1", "the inferred one is u64[2]"},
  };
  check_cases(cases);
}

TEST(ControlFlow, Rules) {
  const OpCase cases[] = {
      {"f32[2] call(f32[2]), to_apply=negate_vector"},
      {"f32[2] call(f32[3]), to_apply=negate_vector", "call: parameter 0 of negate_vector is f32[2]"},
      {"f32[2] call(f32[2], f32[2]), to_apply=negate_vector", "call: negate_vector takes 1 parameters"},
      {"f32[3] call(f32[2]), to_apply=negate_vector", "the inferred one is f32[2]"},
      {"f32[2] call(f32[2]), to_apply=negate_vector, is_composite=true", "call C1: a composite needs"},
      {"f32[2] call(f32[2]), to_apply=negate_vector, is_composite=true, "
       "frontend_attributes={composite.name=\"a.b\",composite.version=\"-1\"}",
       "composite.version must be a number from 0"},
      {"f32[2] call(f32[2]), to_apply=negate_vector, is_composite=true, "
       "frontend_attributes={composite.name=\"a.b\",composite.version=\"1\",composite.attributes={}}"},
      {"f32[2] while(f32[2]), condition=never, body=negate_vector"},
      {"f32[3] while(f32[3]), condition=never, body=negate_vector", "while C1: condition never takes f32[2]"},
      {"f32[2] while(f32[2]), condition=negate_vector, body=negate_vector",
       "while C1: condition negate_vector must give"},
      {"f32[2] while(f32[2]), condition=never_vector, body=negate_vector", "while C1"},
      {"f32[2] while(f32[2]), condition=less, body=negate_vector", "while C1: condition less must take 1 parameter"},
      {"f32[2] while(f32[2]), condition=never, body=negate", "while C2: body negate takes f32[]"},
      {"f32[2] while(f32[2]), condition=never, body=grow", "while C2: body grow gives f32[4]"},
      {"f32[2] while(f32[2]), condition=never, body=add", "while C2: body add must take 1 parameter"},
      {"f32[2] conditional(pred[], f32[2], f32[2]), true_computation=negate_vector, false_computation=negate_vector"},
      {"f32[<=2] conditional(s32[], f32[2], f32[<=2]), branch_computations={negate_vector, dynamic}"},
      {"f32[2] conditional(s32[], f32[3]), branch_computations={negate_vector}", "conditional C2"},
      {"f32[2] conditional(s32[], f32[2], f32[2]), branch_computations={negate_vector, grow}", "conditional C3"},
      {"f32[2] conditional(s32[], f32[2]), branch_computations={add}",
       "conditional C2: branch add must take 1 parameter"},
      {"f32[2] fusion(f32[2]), kind=kLoop, calls=negate_vector"},
      {"f32[2] fusion(f32[3]), kind=kLoop, calls=negate_vector", "fusion: parameter 0 of negate_vector is f32[2]"},
      {"f32[2] fusion(), kind=kLoop, calls=negate_vector", "but there are only 0 operands"},
      {"f32[2] fusion(f32[2]), kind=kLoop, calls=negate_vector, output_to_operand_aliasing={{}: (1, {})}",
       "output_to_operand_aliasing names operand 1 of 1"},
      {"f32[2] fusion(f32[2]), kind=kLoop, calls=negate_vector, output_to_operand_aliasing={{0}: (0, {})}",
       "output_to_operand_aliasing names {0} of result f32[2]"},
  };
  check_cases(cases);
}

TEST(Structure, Rules) {
  const OpCase cases[] = {
      {"(f32[2], s32[]) tuple(f32[2], s32[])"},
      {"() tuple()"},
      {"s32[] get-tuple-element((f32[2], s32[])), index=1"},
      {"s32[] get-tuple-element((f32[2], s32[])), index=2", "get-tuple-element C1: index 2 lies outside"},
      {"s32[] get-tuple-element((f32[2], s32[])), index=-1", "get-tuple-element C1"},
      {"f32[2] get-tuple-element(f32[2]), index=0", "the operand must be a tuple"},
      {"token[] after-all(token[], token[])"},
      {"token[] after-all(f32[])", "after-all: operand 0 must be a token"},
      {"f32[2] add-dependency(f32[2], token[])"},
      {"f32[2] add-dependency(f32[2], f32[])", "operand 1 must be a token"},
      {"(f32[2], token[]) opt-barrier((f32[2], token[]))"},
      {"u32[] partition-id()"},
      {"s32[] replica-id()", "the inferred one is u32[]"},
      {"s32[] get-dimension-size(f32[2,3]), dimensions={1}"},
      {"s32[] get-dimension-size(f32[2,3]), dimensions={2}", "get-dimension-size C1"},
      {"f32[2,<=3] set-dimension-size(f32[2,3], s32[]), dimensions={1}"},
      {"f32[2,<=3] set-dimension-size(f32[2,3], s64[]), dimensions={1}", "the size must be s32[]"},
      {"f32[<=6] dynamic-reshape(f32[2,3], s32[])"},
      {"f32[<=7] dynamic-reshape(f32[2,3], s32[])", "dynamic-reshape C2"},
      {"f32[<=6] dynamic-reshape(f32[2,3], s32[], s32[])", "dynamic-reshape C4"},
      {"f32[2] custom-call(f32[3]), custom_call_target=\"f\""},
      {"f32[2] custom-call(), custom_call_target=\"f\""},
      {"f32[2] custom-call(), custom_call_target=\"Sharding\"", "'Sharding' gives its operands back: it has 0"},
      {"f32[2] custom-call(), custom_call_target=\"SPMDFullToShardShape\"", "gives its operands back"},
      {"f32[2] custom-call(), custom_call_target=\"MoveToHost\"", "gives its operands back"},
      {"f32[2] custom-call(), custom_call_target=\"annotate_device_placement\"", "gives its operands back"},
      {"f32[2] custom-call(), custom_call_target=\"xla.sdy.GlobalToLocalShape\"", "gives its operands back"},
      {"f32[2] custom-call(f32[2], f32[2]), custom_call_target=\"Sharding\"", "it has 2 of them"},
      {"(f32[2], f32[3]) custom-call(f32[2], f32[3]), custom_call_target=\"xla.sdy.GlobalToLocalShape\""},
      {"() custom-call(), custom_call_target=\"xla.sdy.GlobalToLocalShape\""},
      {"f32[2] custom-call(f32[3]), custom_call_target=\"f\", output_to_operand_aliasing={{}: (0, {})}",
       "output_to_operand_aliasing joins f32[3] and f32[2]"},
  };
  check_cases(cases);
}

TEST(HostIo, Rules) {
  const OpCase cases[] = {
      {"(f32[2], token[]) infeed(token[])"},
      {"(f32[2], token[]) infeed(f32[])", "operand 0 must be a token"},
      {"(f32[2], s32[]) infeed(token[])", "infeed C3"},
      {"token[] outfeed(f32[2], token[])"},
      {"token[] outfeed(f32[2], token[]), outfeed_shape=f32[3]", "outfeed_shape is f32[3], but the operand is f32[2]"},
      {"(f32[2], u32[], token[]) send(f32[2], token[]), channel_id=1"},
      {"(f32[2], u32[], token[]) send(f32[2], f32[]), channel_id=1", "operand 1 must be a token"},
      {"(f32[2], u32[], token[]) recv(token[]), channel_id=1"},
      {"(f32[2], u32[], token[]) recv(f32[2]), channel_id=1", "operand 0 must be a token"},
      {"token[] send-done((f32[2], u32[], token[])), channel_id=1"},
      {"(f32[2], token[]) recv-done((f32[2], u32[], token[])), channel_id=1"},
      {"(f32[2], token[]) recv-done(f32[2]), channel_id=1", "the operand must be (data, u32[], token[])"},
      {"(f32[2], f32[2], u32[]) copy-start(f32[2])"},
      {"f32[2] copy-start(f32[2])", "the inferred one is (f32[2], f32[2], u32[])"},
      {"f32[2] copy-done((f32[2], f32[2], u32[]))"},
      {"f32[2] copy-done((f32[2], f32[3], u32[]))", "destination and source differ"},
  };
  check_cases(cases);
}

TEST(Collective, Rules) {
  const OpCase cases[] = {
      {"f32[8] all-gather(f32[2]), replica_groups={{0,1,2,3}}, dimensions={0}"},
      {"f32[8] all-gather(f32[2]), replica_groups={}, dimensions={0}"},
      {"(f32[4], s32[4]) all-gather(f32[2], s32[2]), replica_groups={{0,1},{2,3}}, dimensions={0}"},
      {"f32[8] all-gather(f32[2]), replica_groups={{0,1,2,3}}, dimensions={1}", "all-gather C1"},
      {"f32[4] all-gather(f32[2]), replica_groups={{0,1},{2,2}}, dimensions={0}",
       "all-gather C2: replica id 2 occurs twice"},
      {"f32[4] all-gather(f32[2]), replica_groups={{0,1}}, dimensions={0}",
       "all-gather C3: the replica groups hold 2 ids, but there are 4 participants"},
      {"f32[4] all-gather(f32[2]), replica_groups={{0,1},{2,4}}, dimensions={0}", "all-gather C4: replica id 4"},
      {"f32[6] all-gather(f32[2]), replica_groups={{0,1},{2,3}}, dimensions={0}", "all-gather C6"},
      {"f32[4] all-gather(f32[2]), replica_groups={{0},{1,2,3}}, dimensions={0}", "replica groups differ in size"},
      {"f32[2] all-reduce(f32[2]), replica_groups={{0},{1,2,3}}, to_apply=add"},
      {"f32[2] all-reduce(bf16[2]), replica_groups={}, to_apply=add"},
      {"bf16[2] all-reduce(f32[2]), replica_groups={}, to_apply=add_bf16", "the inferred one is f32[2]"},
      {"() all-reduce(), replica_groups={}, to_apply=add"},
      {"f32[3] all-reduce(f32[2]), replica_groups={}, to_apply=add", "the inferred one is f32[2]"},
      {"f32[2] all-reduce(f32[2]), replica_groups={{0,1},{1,3}}, to_apply=add", "all-reduce C1"},
      {"f32[2] all-reduce(f32[2]), replica_groups={{0,1}}, to_apply=add", "all-reduce C2"},
      {"f32[2] all-reduce(f32[2]), replica_groups={{0,1},{2,-3}}, to_apply=add", "all-reduce C3"},
      {"f32[2] all-reduce(f32[2]), channel_id=1, replica_groups={}, use_global_device_ids=true, to_apply=add",
       "with use_global_device_ids the groups must be listed"},
      {"f32[2] reduce-scatter(f32[8]), replica_groups={{0,1,2,3}}, dimensions={0}, to_apply=add"},
      {"f32[2] reduce-scatter(f32[7]), replica_groups={{0,1,2,3}}, dimensions={0}, to_apply=add", "reduce-scatter C1"},
      {"f32[2] reduce-scatter(f32[8]), replica_groups={{0,1,2,3}}, dimensions={1}, to_apply=add", "reduce-scatter C2"},
      {"f32[4] reduce-scatter(f32[8]), replica_groups={{0,1,2,3}}, dimensions={0}, to_apply=add", "reduce-scatter C8"},
      {"f32[8] all-to-all(f32[8]), replica_groups={{0,1,2,3}}, dimensions={0}"},
      {"(f32[8], f32[8]) all-to-all(f32[8], f32[8]), replica_groups={{0,1},{2,3}}"},
      {"f32[8] all-to-all(f32[8]), replica_groups={{0,1,2,3}}, dimensions={1}", "all-to-all C1"},
      {"f32[6] all-to-all(f32[6]), replica_groups={{0,1,2,3}}, dimensions={0}", "all-to-all C2"},
      {"(f32[8], f32[8]) all-to-all(f32[8], f32[8]), replica_groups={{0,1,2,3}}", "all-to-all C8"},
      {"(f32[8], f32[7]) all-to-all(f32[8], f32[7]), replica_groups={{0,1},{2,3}}", "operand shapes differ"},
      {"f32[2] collective-permute(f32[2]), source_target_pairs={{0,1},{1,2}}"},
      {"f32[2] collective-permute(f32[2]), source_target_pairs={{0,1},{0,2}}", "collective-permute C2"},
      {"f32[2] collective-permute(f32[2]), source_target_pairs={{0,1},{1,1}}", "collective-permute C3"},
      {"f32[2] collective-permute(f32[2]), source_target_pairs={{0,4}}", "collective-permute C4: target 4"},
      {"f32[3] collective-permute(f32[2]), source_target_pairs={{0,1}}", "the inferred one is f32[2]"},
      {"(f32[2], f32[2]) collective-permute-start(f32[2]), source_target_pairs={{0,1}}"},
      {"(f32[2], f32[2], u32[]) collective-permute-start(f32[2]), source_target_pairs={{0,1}}"},
      {"f32[2] collective-permute-done((f32[2], f32[2]))"},
      {"(f32[2], f32[8]) all-gather-start(f32[2]), replica_groups={{0,1,2,3}}, dimensions={0}"},
      {"f32[8] all-gather-done((f32[2], f32[8]))"},
      {"f32[8] all-gather-done(f32[8])", "the operand must be (operand, result, ...)"},
      {"f32[2] collective-broadcast(f32[2]), replica_groups={{0,1,2,3}}"},
      {"f32[2] collective-broadcast(f32[2]), replica_groups={{2,1}}"},
      {"f32[2] collective-broadcast(f32[2]), replica_groups={{0,1},{1,2}}", "collective-broadcast C1"},
      {"f32[2] collective-broadcast(f32[2]), replica_groups={{0,4}}", "collective-broadcast C2: replica id 4"},
      {"f32[2] collective-broadcast(f32[2]), replica_groups={{0,-1}}", "collective-broadcast C2: replica id -1"},
      {"f32[2] collective-broadcast(f32[2]), replica_groups={{0},{}}", "a replica group is empty"},
      {"f32[2] collective-broadcast(f32[2]), channel_id=-1, replica_groups={}", "channel_id -1 must be greater than 0"},
      {"f32[5] all-gather(f32[5]), replica_groups={{0},{1},{2},{3}}, dimensions={0}"},
      {"f32[50] all-gather(f32[5]), replica_groups={{0},{1},{2},{3}}, dimensions={0}",
       "all-gather C6: dimension 0 goes from f32[5] to f32[50], but a group has 1 participant"},
      {"(f32[5], f32[50]) all-gather-start(f32[5]), replica_groups={{0},{1},{2},{3}}, dimensions={0}",
       "all-gather-start C6"},
      {"f32[2] reduce-scatter(f32[8]), replica_groups={{0},{1},{2},{3}}, dimensions={0}, to_apply=add",
       "reduce-scatter C8: dimension 0 goes from f32[8] to f32[2], but a group has 1 participant"},
      {"f32[2] all-reduce(f32[2]), replica_groups={}, to_apply=negate", "all-reduce C5: negate must take 2 parameters"},
      {"f32[2] all-reduce(f32[2]), replica_groups={}, to_apply=less", "all-reduce C5: parameter 0 of less is f32[]"},
      {"f32[2] all-reduce(f32[2]), replica_groups={}, to_apply=mixed", "all-reduce C5: parameter 1 of mixed is s32[]"},
      {"f32[2] all-reduce(f32[2]), replica_groups={}, to_apply=add_vector"},
      {"f32[3] all-reduce(f32[3]), replica_groups={}, to_apply=add_vector",
       "all-reduce C5: operand 0 is f32[3], but add_vector takes f32[2]"},
      {"f32[2] all-reduce(f32[2]), replica_groups={}, to_apply=never_scalar", "must take 2 parameters"},
      {"(f32[2], s32[2]) all-reduce(f32[2], s32[2]), replica_groups={}, to_apply=add",
       "all-reduce C5: operand 1 is s32[2], but add takes f32[]"},
      {"f32[2] reduce-scatter(f32[8]), replica_groups={{0,1,2,3}}, dimensions={0}, to_apply=add_s32",
       "reduce-scatter C7"},
      {"f32[8] all-gather(f32[2]), channel_id=-3, replica_groups={{0,1,2,3}}, dimensions={0}",
       "channel_id -3 must be greater than 0"},
      {"f32[2] collective-permute(f32[2]), channel_id=-3, source_target_pairs={{0,1}}", "channel_id -3"},
      {"f32[8] all-to-all(f32[8]), channel_id=-3, replica_groups={{0,1,2,3}}, dimensions={0}", "channel_id -3"},
      {"f32[4,4] collective-permute(f32[8,4], f32[4,4], (s32[], s32[]), (s32[], s32[])), "
       "source_target_pairs={{0,1}}, slice_sizes={{2,4}}"},
      {"f32[4,4] collective-permute(f32[8,4], f32[4,4], (s32[], s32[]), (s32[], s32[])), "
       "source_target_pairs={{0,1}}, slice_sizes={{5,4}}",
       "slice_sizes {5,4} do not fit the buffers f32[8,4] and f32[4,4]"},
      {"f32[4,4] collective-permute(f32[8,4], f32[4,4], (s32[], s32[]), (s32[], s32[])), "
       "source_target_pairs={{0,1}}, slice_sizes={{2}}",
       "slice_sizes {2} do not fit"},
      {"f32[4,4] collective-permute(f32[8,4], f32[4,4], (s32[], s32[]), (s32[], s32[])), "
       "source_target_pairs={{0,1}}, slice_sizes={{-1,2}}",
       "slice_sizes {-1,2} do not fit"},
      {"f32[4,4] collective-permute(f64[8,4], f32[4,4], (s32[], s32[]), (s32[], s32[])), "
       "source_target_pairs={{0,1}}, slice_sizes={{2,2}}",
       "input buffer f64[8,4] and output buffer f32[4,4] do not match"},
      {"f32[8] ragged-all-to-all(f32[4], f32[8], s32[4], s32[4], s32[4], s32[4]), replica_groups={{0,1,2,3}}"},
      {"f32[8] ragged-all-to-all(f32[4], f32[8], s32[4], s32[4], s32[4], s32[3]), replica_groups={{0,1,2,3}}",
       "offsets and sizes must have one shape"},
      {"f32[8] ragged-all-to-all(f32[4], f32[8], s32[], s32[], s32[], s32[]), replica_groups={{0,1,2,3}}",
       "must have rank 1 or 2"},
      {"f32[8,3] ragged-all-to-all(f32[4,3], f32[8,3], s64[4,2], s64[4,2], s64[4,2], s64[4,2]), "
       "replica_groups={{0,1,2,3}}"},
      {"f32[8] ragged-all-to-all(s32[4], f32[8], s32[4], s32[4], s32[4], s32[4]), replica_groups={{0,1,2,3}}",
       "element types differ: the input is s32[4], the output is f32[8]"},
      {"f32[8,3] ragged-all-to-all(f32[4], f32[8,3], s32[4], s32[4], s32[4], s32[4]), replica_groups={{0,1,2,3}}",
       "must differ in dimension 0 alone"},
      {"f32[8,3] ragged-all-to-all(f32[8,2], f32[8,3], s32[4], s32[4], s32[4], s32[4]), replica_groups={{0,1,2,3}}",
       "must differ in dimension 0 alone"},
      {"f32[] ragged-all-to-all(f32[], f32[], s32[4], s32[4], s32[4], s32[4]), replica_groups={{0,1,2,3}}",
       "must differ in dimension 0 alone"},
      {"f32[8] ragged-all-to-all(f32[4], f32[8], f32[4], f32[4], f32[4], f32[4]), replica_groups={{0,1,2,3}}",
       "offsets and sizes must be integers"},
      {"f32[8] ragged-all-to-all(f32[4], f32[8], s32[5], s32[5], s32[5], s32[5]), replica_groups={{0,1,2,3}}",
       "offsets and sizes are s32[5], which is no multiple of the group's size 4"},
  };
  check_cases(cases);
}

TEST(Asynchronous, Rules) {
  const OpCase cases[] = {
      {"((f32[2]), f32[2], u32[]) async-start(f32[2]), calls=negate_vector"},
      {"((f32[3]), f32[2], u32[]) async-start(f32[2]), calls=negate_vector", "async-start C3"},
      {"((f32[2]), f32[3], u32[]) async-start(f32[2]), calls=negate_vector", "async-start C4"},
  };
  check_cases(cases);
}

}  // namespace
}  // namespace collet::hlo
