// SPDX-License-Identifier: Apache-2.0
#include "hlo/proto/write_attributes.h"

#include <algorithm>

#include "hlo/proto/mesh.h"

namespace collet::hlo::proto {
namespace {

using Out = wire::HloInstructionProto;

/// The instruction whose record is written; some fields depend on its operands.
struct Site {
  const Module& module;
  const Instruction& instr;
  Shape operand(size_t i) const { return i < instr.operands.size() ? module[instr.operands[i]].shape : Shape(); }
};

template <typename List, typename Field>
void add(const List& from, Field* to) {
  for (auto value : from) to->Add(static_cast<std::decay_t<decltype((*to)[0])>>(value));
}

void put(const Window& in, Out& out) {
  if (in.size.empty()) return;
  out.mutable_window();
  for (size_t i = 0; i < in.rank(); ++i) {
    auto* to = out.mutable_window()->add_dimensions();
    to->set_size(in.size[i]);
    to->set_stride(in.stride_at(i));
    to->set_padding_low(in.low_at(i));
    to->set_padding_high(in.high_at(i));
    to->set_base_dilation(in.base_dilation_at(i));
    to->set_window_dilation(in.window_dilation_at(i));
    to->set_window_reversal(in.reversed_at(i));
  }
}

void put(const DimLabels& in, Out& out) {
  if (in.text.empty() && in.input_batch < 0 && in.kernel_input_feature < 0 && in.output_batch < 0) return;
  auto* to = out.mutable_convolution_dimension_numbers();
  to->set_input_batch_dimension(in.input_batch);
  to->set_input_feature_dimension(in.input_feature);
  to->set_kernel_input_feature_dimension(in.kernel_input_feature);
  to->set_kernel_output_feature_dimension(in.kernel_output_feature);
  to->set_output_batch_dimension(in.output_batch);
  to->set_output_feature_dimension(in.output_feature);
  add(in.input_spatial, to->mutable_input_spatial_dimensions());
  add(in.kernel_spatial, to->mutable_kernel_spatial_dimensions());
  add(in.output_spatial, to->mutable_output_spatial_dimensions());
}

void put(const List<const AliasEntry>& in, Out& out) {
  for (const AliasEntry& alias : in) {
    auto* to = out.add_output_operand_aliasing();
    add(alias.output_index, to->mutable_output_shape_index());
    to->set_operand_index(alias.operand);
    add(alias.operand_index, to->mutable_operand_shape_index());
  }
}

// Returns the number of an algorithm in messages; the reverse of algorithm_text in attribute_text.cc.
int32_t algorithm_number(Algorithm algorithm) {
  constexpr int32_t kBf16InNineParts = 13;
  const auto value = static_cast<int32_t>(algorithm);
  if (algorithm == Algorithm::BF16_BF16_F32_X9) return kBf16InNineParts;
  return value > static_cast<int32_t>(Algorithm::BF16_BF16_F32_X9) ? value - 1 : value;
}

void precision(const Dims& list, size_t operands, Algorithm algorithm, Out& out) {
  auto* to = out.mutable_precision_config();
  for (size_t i = 0; i < operands; ++i) to->add_operand_precision(i < list.size() ? static_cast<int32_t>(list[i]) : 0);
  to->set_algorithm(algorithm_number(algorithm));
}

template <typename Attrs>
void dot_numbers(const Attrs& in, wire::DotDimensionNumbers* to) {
  add(in.lhs_contracting, to->mutable_lhs_contracting_dimensions());
  add(in.rhs_contracting, to->mutable_rhs_contracting_dimensions());
  add(in.lhs_batch, to->mutable_lhs_batch_dimensions());
  add(in.rhs_batch, to->mutable_rhs_batch_dimensions());
}

Status groups(const Groups& in, Out& out) {
  if (!in.mesh.empty()) return mesh_groups_to_wire(in.mesh, out.mutable_mesh_axes_replica_group_list());
  if (in.iota) {
    auto* to = out.mutable_iota_collective_device_list();
    to->set_num_replica_groups(in.iota_groups);
    to->set_num_devices_per_group(in.iota_size);
    add(in.iota_dims, to->mutable_iota_reshape_dims());
    add(in.iota_permutation, to->mutable_iota_transpose_perm());
    return ok_status();
  }
  auto* to = out.mutable_collective_device_list();
  for (const Dims& group : in.groups) add(group, to->add_replica_groups()->mutable_replica_ids());
  return ok_status();
}

// A message states the comparison type, which text leaves out if it follows from the operands.
std::string_view comparison_type(CompareType type, Type operand) {
  switch (type) {
    case CompareType::FLOAT:
      return "FLOAT";
    case CompareType::TOTALORDER:
      return "TOTALORDER";
    case CompareType::SIGNED:
      return "SIGNED";
    case CompareType::UNSIGNED:
      return "UNSIGNED";
    case CompareType::DEFAULT:
      break;
  }
  const Kind kind = type_info(operand).kind;
  return kind == Kind::Float || kind == Kind::Complex ? "FLOAT" : kind == Kind::Signed ? "SIGNED" : "UNSIGNED";
}

std::string_view direction_text(Direction direction) {
  for (const FieldInfo& f : record_fields(Record::Compare))
    if (f.text == "direction") return enum_text(f.values, static_cast<uint32_t>(direction));
  return "";
}

std::string_view kind_text(FusionKind kind) {
  for (const FieldInfo& f : record_fields(Record::Fusion))
    if (f.text == "kind") return enum_text(f.values, static_cast<uint32_t>(kind));
  return "";
}

// ---- one function for each record ----

using Written = Status;

Written put(const DimensionsAttrs& a, const Site&, Out& out) {
  add(a.dimensions, out.mutable_dimensions());
  return ok_status();
}

Written put(const BroadcastAttrs& a, const Site&, Out& out) {
  add(a.dimensions, out.mutable_dimensions());
  return ok_status();
}

Written put(const MapAttrs& a, const Site& site, Out& out) {
  // A message names all dimensions, also if they are the default.
  if (a.dimensions.empty())
    for (int i = 0; i < site.instr.shape.rank(); ++i) out.add_dimensions(i);
  add(a.dimensions, out.mutable_dimensions());
  return ok_status();
}

Written put(const DimensionAttrs& a, const Site&, Out& out) {
  out.add_dimensions(a.dimension);
  return ok_status();
}

Written put(const IotaAttrs& a, const Site&, Out& out) {
  out.add_dimensions(a.dimension);
  return ok_status();
}

Written put(const SliceAttrs& a, const Site&, Out& out) {
  for (size_t i = 0; i < a.slice.start.size(); ++i) {
    auto* to = out.add_slice_dimensions();
    to->set_start(a.slice.start[i]);
    to->set_limit(a.slice.limit[i]);
    to->set_stride(i < a.slice.stride.size() ? a.slice.stride[i] : 1);
  }
  return ok_status();
}

Written put(const DynamicSliceAttrs& a, const Site&, Out& out) {
  add(a.sizes, out.mutable_dynamic_slice_sizes());
  return ok_status();
}

Written put(const PadAttrs& a, const Site&, Out& out) {
  out.mutable_padding_config();
  for (size_t i = 0; i < a.padding.low.size(); ++i) {
    auto* to = out.mutable_padding_config()->add_dimensions();
    to->set_edge_padding_low(a.padding.low[i]);
    to->set_edge_padding_high(a.padding.high[i]);
    to->set_interior_padding(i < a.padding.interior.size() ? a.padding.interior[i] : 0);
  }
  return ok_status();
}

Written put(const ReshapeAttrs& a, const Site&, Out& out) {
  if (a.inferred_dimension > 0) out.add_dimensions(a.inferred_dimension - 1);
  return ok_status();
}

Written put(const CompareAttrs& a, const Site& site, Out& out) {
  out.set_comparison_direction(std::string(direction_text(a.direction)));
  out.set_comparison_type(std::string(comparison_type(a.type, site.operand(0).type())));
  return ok_status();
}

Written put(const DotAttrs& a, const Site& site, Out& out) {
  dot_numbers(a, out.mutable_dot_dimension_numbers());
  precision(a.precision, std::max<size_t>(a.precision.size(), site.instr.operands.size()), a.algorithm, out);
  return ok_status();
}

Written put(const RaggedDotAttrs& a, const Site&, Out& out) {
  auto* to = out.mutable_ragged_dot_dimension_numbers();
  dot_numbers(a, to->mutable_dot_dimension_numbers());
  add(a.lhs_ragged, to->mutable_lhs_ragged_dimensions());
  add(a.rhs_group, to->mutable_rhs_group_dimensions());
  precision(a.precision, 2, a.algorithm, out);
  return ok_status();
}

Written put(const ConvolutionAttrs& a, const Site&, Out& out) {
  put(a.window, out);
  out.mutable_window();
  put(a.labels, out);
  out.set_feature_group_count(std::max<int64_t>(a.feature_groups, 1));
  out.set_batch_group_count(std::max<int64_t>(a.batch_groups, 1));
  precision(a.precision, 2, Algorithm::UNSET, out);
  return ok_status();
}

Written put(const WindowAttrs& a, const Site&, Out& out) {
  put(a.window, out);
  out.mutable_window();
  return ok_status();
}

Written put(const SortAttrs& a, const Site&, Out& out) {
  out.add_dimensions(a.dimension);
  out.set_is_stable(a.stable);
  return ok_status();
}

Written put(const TopKAttrs& a, const Site&, Out& out) {
  out.set_k(a.k);
  out.set_largest(!a.smallest);
  return ok_status();
}

Written put(const GatherAttrs& a, const Site&, Out& out) {
  auto* to = out.mutable_gather_dimension_numbers();
  add(a.offset_dims, to->mutable_offset_dims());
  add(a.collapsed_slice_dims, to->mutable_collapsed_slice_dims());
  add(a.start_index_map, to->mutable_start_index_map());
  add(a.operand_batching_dims, to->mutable_operand_batching_dims());
  add(a.start_indices_batching_dims, to->mutable_start_indices_batching_dims());
  to->set_index_vector_dim(a.index_vector_dim);
  add(a.slice_sizes, out.mutable_gather_slice_sizes());
  out.set_indices_are_sorted(a.sorted);
  return ok_status();
}

Written put(const ScatterAttrs& a, const Site&, Out& out) {
  auto* to = out.mutable_scatter_dimension_numbers();
  add(a.update_window_dims, to->mutable_update_window_dims());
  add(a.inserted_window_dims, to->mutable_inserted_window_dims());
  add(a.scatter_dims_to_operand_dims, to->mutable_scatter_dims_to_operand_dims());
  add(a.input_batching_dims, to->mutable_input_batching_dims());
  add(a.scatter_indices_batching_dims, to->mutable_scatter_indices_batching_dims());
  to->set_index_vector_dim(a.index_vector_dim);
  out.set_indices_are_sorted(a.sorted);
  out.set_unique_indices(a.unique);
  return ok_status();
}

Written put(const CallAttrs& a, const Site&, Out& out) {
  out.set_is_composite(a.is_composite);
  return ok_status();
}

Written put(const WhileAttrs&, const Site&, Out&) {
  return ok_status();
}

Written put(const FusionAttrs& a, const Site&, Out& out) {
  out.set_fusion_kind(std::string(kind_text(a.kind)));
  put(a.aliasing, out);
  return ok_status();
}

Written put(const TupleIndexAttrs& a, const Site&, Out& out) {
  out.set_tuple_index(a.index);
  return ok_status();
}

Written put(const BatchNormAttrs& a, const Site&, Out& out) {
  out.set_epsilon(a.epsilon);
  out.set_feature_index(a.feature);
  return ok_status();
}

Written put(const FftAttrs& a, const Site&, Out& out) {
  out.set_fft_type(static_cast<int32_t>(a.type));
  add(a.length, out.mutable_fft_length());
  return ok_status();
}

Written put(const TriangularSolveAttrs& a, const Site&, Out& out) {
  auto* to = out.mutable_triangular_solve_options();
  to->set_left_side(a.left_side);
  to->set_lower(a.lower);
  to->set_unit_diagonal(a.unit_diagonal);
  to->set_transpose_a(static_cast<int32_t>(a.transpose_a) + 1);
  return ok_status();
}

Written put(const CholeskyAttrs& a, const Site&, Out& out) {
  out.mutable_cholesky_options()->set_lower(a.lower);
  return ok_status();
}

Written put(const ReducePrecisionAttrs& a, const Site&, Out& out) {
  out.set_exponent_bits(static_cast<int32_t>(a.exponent_bits));
  out.set_mantissa_bits(static_cast<int32_t>(a.mantissa_bits));
  return ok_status();
}

Written put(const RngAttrs& a, const Site&, Out& out) {
  out.set_distribution(static_cast<int32_t>(a.distribution) + 1);
  return ok_status();
}

Written put(const RngBitGeneratorAttrs& a, const Site&, Out& out) {
  out.set_rng_algorithm(static_cast<int32_t>(a.algorithm));
  return ok_status();
}

Written put(const RngStateAttrs& a, const Site&, Out& out) {
  out.set_delta(a.delta);
  return ok_status();
}

Written put(const InfeedAttrs& a, const Site&, Out& out) {
  out.set_infeed_config(std::string(a.config));
  return ok_status();
}

Written put(const OutfeedAttrs& a, const Site& site, Out& out) {
  out.set_outfeed_config(std::string(a.config));
  to_wire(a.shape ? *a.shape : site.operand(0), out.mutable_outfeed_shape());
  return ok_status();
}

Written put(const CustomCallAttrs& a, const Site& site, Out& out) {
  out.set_custom_call_target(std::string(a.target));
  out.set_custom_call_has_side_effect(a.has_side_effect);
  out.set_custom_call_api_version(static_cast<int32_t>(a.api_version) + 1);
  put(a.window, out);
  put(a.labels, out);
  out.set_feature_group_count(std::max<int64_t>(a.feature_groups, 1));
  out.set_batch_group_count(std::max<int64_t>(a.batch_groups, 1));
  if (!a.operand_layouts.empty() || a.constrains_layouts) out.set_constrain_layout(true);
  for (const Shape* shape : a.operand_layouts) to_wire(*shape, out.add_operand_shapes_with_layout());
  put(a.aliasing, out);
  out.set_padding_type(static_cast<int32_t>(a.padding_type));
  if (a.literal) to_wire(*a.literal, out.mutable_literal());
  if (!a.precision.empty())
    precision(a.precision, std::max(a.precision.size(), site.instr.operands.size()), Algorithm::UNSET, out);
  out.set_custom_call_schedule(static_cast<int32_t>(a.schedule));
  return ok_status();
}

template <typename Attrs>
Written collective(const Attrs& a, Out& out) {
  out.set_channel_id(a.channel);
  out.set_constrain_layout(a.constrain_layout);
  return groups(a.groups, out);
}

Written put(const CollectiveAttrs& a, const Site&, Out& out) {
  out.set_use_global_device_ids(a.global_ids);
  return collective(a, out);
}

Written put(const CollectiveDimAttrs& a, const Site&, Out& out) {
  out.set_use_global_device_ids(a.global_ids);
  out.add_dimensions(a.dimension);
  return collective(a, out);
}

Written put(const AllToAllAttrs& a, const Site&, Out& out) {
  add(a.dimension, out.mutable_dimensions());
  return collective(a, out);
}

Written put(const CollectivePermuteAttrs& a, const Site&, Out& out) {
  out.set_channel_id(a.channel);
  for (size_t i = 0; i + 1 < a.pairs.size(); i += 2) {
    auto* to = out.add_source_target_pairs();
    to->set_source(a.pairs[i]);
    to->set_target(a.pairs[i + 1]);
  }
  for (const Dims& sizes : a.slice_sizes) add(sizes, out.mutable_dynamic_slice_sizes());
  return ok_status();
}

Written put(const ChannelAttrs& a, const Site&, Out& out) {
  out.set_channel_id(a.channel);
  out.set_is_host_transfer(a.host_transfer);
  return ok_status();
}

Written put(const AsyncAttrs& a, const Site& site, Out& out) {
  if (site.instr.op == Op::ASYNC_START && a.thread != "main") out.set_async_execution_thread(std::string(a.thread));
  return ok_status();
}

Written put(const CopyStartAttrs& a, const Site&, Out& out) {
  if (a.prefetch > 0) out.set_cross_program_prefetch_index(static_cast<int32_t>(a.prefetch - 1));
  return ok_status();
}

Written put(const DomainAttrs& a, const Site&, Out& out) {
  return domain_to_wire(a.domain, out);
}

Written put(const ParameterAttrs& a, const Site&, Out& out) {
  out.set_parameter_number(a.number);
  return ok_status();
}

Written put(const ConstantAttrs&, const Site& site, Out& out) {
  to_wire(site.module.literal(site.instr), out.mutable_literal());
  return ok_status();
}

}  // namespace

Status to_wire(const Module& module, const Instruction& instr, wire::HloInstructionProto* out) {
  if (!instr.attrs) return ok_status();
  const Site site{module, instr};
  switch (op_info(instr.op).record) {
    case Record::None:
      return ok_status();
#define COLLET_RECORD(Name, name) \
  case Record::Name:              \
    return put(instr.as<Name##Attrs>(), site, *out);
#include <collet/attributes.def>
  }
  return ok_status();
}

}  // namespace collet::hlo::proto
