/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_ATTRIBUTES_H
#define COLLET_ATTRIBUTES_H

/** \file
 * The attribute records at the ABI boundary: one struct per family of ops, ordered and named as in attributes.def.
 * ops.def says which op has which record. Meanings are those of XLA's HLO operation semantics.
 *
 * A record in a program may be shorter or longer than the struct here (its size is stored with the op); read it with
 * collet_read_attributes of program.h, which fills what is missing with zeros, the default of every field.
 * Lists are ranges in the program's integers, strings are ranges in its bytes. All dimension numbers count from 0.
 */

#include "types.h"

/** `count` entries from index `first` of one of the program's arrays; which one, the field says. */
struct collet_range {
  uint32_t first;
  uint32_t count;
};

/* Enumerations: COLLET_DIRECTION_EQ and so on. */
#define COLLET_ENUM(Enum, PREFIX) enum {
#define COLLET_ENUM_VALUE(Enum, PREFIX, NAME, value, text) COLLET_##PREFIX##_##NAME = value,
#define COLLET_ENUM_END(Enum) \
  }                           \
  ;
#include "attributes.def"

/** A window over the spatial dimensions, outermost first; every list has one entry per dimension. */
struct collet_window {
  struct collet_range size;            /**< integers: extent of the window */
  struct collet_range stride;          /**< integers: step, at least 1 */
  struct collet_range padding_low;     /**< integers: may be negative */
  struct collet_range padding_high;    /**< integers: may be negative */
  struct collet_range base_dilation;   /**< integers: holes are put between input elements; 1 is none */
  struct collet_range window_dilation; /**< integers: holes are put between window elements; 1 is none */
  struct collet_range reversal;        /**< integers: 1 where the elements of the window are in reverse order */
};

/** Which dimension of an operand of a convolution means what. */
struct collet_dim_labels {
  int64_t input_batch, input_feature;
  int64_t kernel_input_feature, kernel_output_feature;
  int64_t output_batch, output_feature;
  struct collet_range input_spatial;  /**< integers: dimension numbers, outermost window dimension first */
  struct collet_range kernel_spatial; /**< integers */
  struct collet_range output_spatial; /**< integers */
};

/** Groups of participants: `ids` holds group after group, each of `group_size` ids. No ids: everyone in one group.
 * Groups of unequal size are filled up with -1. */
struct collet_groups {
  struct collet_range ids; /**< integers */
  int64_t group_size;
};

/** transpose (dimensions[i] is the operand's dimension that becomes result dimension i), reverse, reduce. */
struct collet_dimensions_attrs {
  struct collet_range dimensions; /**< integers */
};

/** broadcast: operand dimension i becomes result dimension dimensions[i]. */
struct collet_broadcast_attrs {
  struct collet_range dimensions; /**< integers */
};

/** map. */
struct collet_map_attrs {
  struct collet_range dimensions; /**< integers: always all, in order */
};

/** concatenate, get-dimension-size, set-dimension-size. */
struct collet_dimension_attrs {
  int64_t dimension;
};

/** iota. */
struct collet_iota_attrs {
  int64_t dimension;
};

/** slice: elements start, start + stride, ... below limit, in each dimension. */
struct collet_slice_attrs {
  struct collet_range start;  /**< integers */
  struct collet_range limit;  /**< integers */
  struct collet_range stride; /**< integers, at least 1 */
};

/** dynamic-slice: the result's extents; starts are operands, clamped so that the slice lies inside. */
struct collet_dynamic_slice_attrs {
  struct collet_range sizes; /**< integers */
};

/** pad: interior padding first, then the edges; a negative edge removes elements. */
struct collet_pad_attrs {
  struct collet_range low;      /**< integers, may be negative */
  struct collet_range high;     /**< integers, may be negative */
  struct collet_range interior; /**< integers, at least 0 */
};

/** reshape: row-major order is kept; nothing to say. */
struct collet_reshape_attrs {
  uint64_t reserved; /**< zero */
};

/** compare. */
struct collet_compare_attrs {
  uint32_t direction; /**< COLLET_DIRECTION_* */
  uint32_t type;      /**< COLLET_COMPARE_*; the writer always states it, never DEFAULT */
};

/** dot, scaled-dot. Result dimensions: batch, then lhs free, then rhs free. */
struct collet_dot_attrs {
  struct collet_range lhs_batch;       /**< integers */
  struct collet_range lhs_contracting; /**< integers */
  struct collet_range rhs_batch;       /**< integers, paired with lhs_batch */
  struct collet_range rhs_contracting; /**< integers, paired with lhs_contracting */
  struct collet_range precision;       /**< integers: COLLET_PRECISION_* per operand, or empty */
  uint32_t algorithm;                  /**< COLLET_ALGORITHM_* */
  uint32_t reserved;                   /**< zero */
};

/** ragged-dot. */
struct collet_ragged_dot_attrs {
  struct collet_range lhs_batch;       /**< integers */
  struct collet_range lhs_contracting; /**< integers */
  struct collet_range rhs_batch;       /**< integers */
  struct collet_range rhs_contracting; /**< integers */
  struct collet_range precision;       /**< integers */
  uint32_t algorithm;                  /**< COLLET_ALGORITHM_* */
  uint32_t reserved;                   /**< zero */
  struct collet_range lhs_ragged;      /**< integers */
  struct collet_range rhs_group;       /**< integers */
};

/** convolution (a correlation, unless the window is reversed). */
struct collet_convolution_attrs {
  struct collet_window window;
  struct collet_dim_labels labels;
  int64_t feature_groups;        /**< at least 1 */
  int64_t batch_groups;          /**< at least 1 */
  struct collet_range precision; /**< integers: COLLET_PRECISION_* per operand, or empty */
};

/** reduce-window, select-and-scatter. */
struct collet_window_attrs {
  struct collet_window window;
};

/** sort. Region: comparator of 2n scalars a0, b0, a1, b1, ...; true where a goes before b. */
struct collet_sort_attrs {
  int64_t dimension;
  uint32_t stable;   /**< 1: equal elements keep their order */
  uint32_t reserved; /**< zero */
};

/** topk along the last dimension: values and s32 indices; ties: the lower index first. */
struct collet_topk_attrs {
  int64_t k;
  uint32_t smallest; /**< 1: the k smallest */
  uint32_t reserved; /**< zero */
};

/** gather; start indices are clamped so that the slice lies inside. */
struct collet_gather_attrs {
  struct collet_range offset_dims;                 /**< integers */
  struct collet_range collapsed_slice_dims;        /**< integers */
  struct collet_range start_index_map;             /**< integers */
  struct collet_range operand_batching_dims;       /**< integers */
  struct collet_range start_indices_batching_dims; /**< integers */
  int64_t index_vector_dim;
  struct collet_range slice_sizes; /**< integers */
  uint32_t sorted;                 /**< 1: the indices are in ascending order */
  uint32_t reserved;               /**< zero */
};

/** scatter; a window that does not lie inside is dropped. Region: (current, update) for each of n operands. */
struct collet_scatter_attrs {
  struct collet_range update_window_dims;            /**< integers */
  struct collet_range inserted_window_dims;          /**< integers */
  struct collet_range scatter_dims_to_operand_dims;  /**< integers */
  struct collet_range input_batching_dims;           /**< integers */
  struct collet_range scatter_indices_batching_dims; /**< integers */
  int64_t index_vector_dim;
  uint32_t sorted; /**< 1: the indices are in ascending order */
  uint32_t unique; /**< 1: no two windows overlap */
};

/** call. A backend may take a composite whole, by its name, or decline it so that the SDK inlines it. */
struct collet_call_attrs {
  struct collet_range name;       /**< bytes: the composite's name, such as "chlo.top_k"; empty for a plain call */
  struct collet_range attributes; /**< bytes: the composite's attributes as text */
  int64_t version;                /**< the composite's version */
};

/** while. Regions: condition, body; operands, arguments of both and results of the body correspond one to one. */
struct collet_while_attrs {
  int64_t trip_count_plus_one; /**< known number of trips + 1; 0 when unknown */
  int64_t induction_operand;   /**< index + 1 of the operand that counts; 0 when unknown */
  int64_t induction_init;      /**< its value before the first trip */
  int64_t induction_step;      /**< what each trip adds */
};

/** fusion: one region, whose arguments are the operands and whose results are the op's. */
struct collet_fusion_attrs {
  uint32_t kind;     /**< COLLET_FUSION_*: a hint */
  uint32_t reserved; /**< zero */
};

/** get-tuple-element: only in programs that still have tuples, which the SDK never hands to a backend. */
struct collet_tuple_index_attrs {
  int64_t index;
};

/** batch-norm-training, -inference, -grad. */
struct collet_batch_norm_attrs {
  float epsilon;
  uint32_t reserved; /**< zero */
  int64_t feature;   /**< the feature dimension */
};

/** fft over the last `length.count` dimensions. */
struct collet_fft_attrs {
  uint32_t type;              /**< COLLET_FFT_* */
  uint32_t reserved;          /**< zero */
  struct collet_range length; /**< integers */
};

/** triangular-solve: op(A) X = B, or X op(A) = B where not left_side. */
struct collet_triangular_solve_attrs {
  uint32_t left_side;
  uint32_t lower;
  uint32_t unit_diagonal; /**< 1: A's diagonal is taken as ones */
  uint32_t transpose_a;   /**< COLLET_TRANSPOSE_* */
};

/** cholesky. */
struct collet_cholesky_attrs {
  uint32_t lower;    /**< 1: A = L L^H; 0: A = U^H U */
  uint32_t reserved; /**< zero */
};

/** reduce-precision. */
struct collet_reduce_precision_attrs {
  int64_t exponent_bits;
  int64_t mantissa_bits;
};

/** rng. */
struct collet_rng_attrs {
  uint32_t distribution; /**< COLLET_DISTRIBUTION_* */
  uint32_t reserved;     /**< zero */
};

/** rng-bit-generator. */
struct collet_rng_bit_generator_attrs {
  uint32_t algorithm; /**< COLLET_RNG_*; DEFAULT is Philox */
  uint32_t reserved;  /**< zero */
};

/** rng-get-and-update-state. */
struct collet_rng_state_attrs {
  int64_t delta;
};

/** infeed. */
struct collet_infeed_attrs {
  struct collet_range config; /**< bytes */
};

/** outfeed. */
struct collet_outfeed_attrs {
  struct collet_range config; /**< bytes */
};

/** custom-call. */
struct collet_custom_call_attrs {
  struct collet_range target; /**< bytes: the name that it is called by */
  struct collet_range config; /**< bytes: backend_config, as it stood */
  uint32_t has_side_effect;
  uint32_t api_version; /**< COLLET_API_VERSION_* */
};

/** all-reduce, collective-broadcast and their kind. */
struct collet_collective_attrs {
  struct collet_groups groups;
  int64_t channel;     /**< 0: none */
  uint32_t global_ids; /**< 1: the groups name replica * partitions + partition */
  uint32_t reserved;   /**< zero */
};

/** all-gather, reduce-scatter. */
struct collet_collective_dim_attrs {
  struct collet_groups groups;
  int64_t channel;     /**< 0: none */
  uint32_t global_ids; /**< 1: the groups name replica * partitions + partition */
  uint32_t reserved;   /**< zero */
  int64_t dimension;
};

/** all-to-all, ragged-all-to-all. */
struct collet_all_to_all_attrs {
  struct collet_groups groups;
  int64_t channel;               /**< 0: none */
  struct collet_range dimension; /**< integers: one entry, or empty for the form with one operand per peer */
};

/** collective-permute. */
struct collet_collective_permute_attrs {
  struct collet_range pairs; /**< integers: source, target, source, target, ... */
  int64_t channel;           /**< 0: none */
};

/** send, recv. */
struct collet_channel_attrs {
  int64_t channel; /**< 0: none */
  uint32_t host_transfer;
  uint32_t reserved; /**< zero */
};

/** async-start, async-update, async-done: never handed to a backend. */
struct collet_async_attrs {
  uint64_t reserved; /**< zero */
};

/** copy-start: never handed to a backend. */
struct collet_copy_start_attrs {
  uint64_t reserved; /**< zero */
};

/** domain: never handed to a backend. */
struct collet_domain_attrs {
  uint64_t reserved; /**< zero */
};

/** parameter: arguments of regions at the ABI boundary, so never an op there. */
struct collet_parameter_attrs {
  uint64_t reserved; /**< zero */
};

/** constant. */
struct collet_constant_attrs {
  uint32_t constant; /**< index in the program's constants */
  uint32_t reserved; /**< zero */
};

#endif
