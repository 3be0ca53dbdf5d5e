// SPDX-License-Identifier: Apache-2.0
#include "hlo/proto/attribute_text.h"

#include <algorithm>
#include <limits>

#include "hlo/base/utf8.h"
#include "hlo/proto/mesh.h"
#include "hlo/text/writer.h"

namespace collet::hlo::proto {
namespace {

using text::write;

template <typename Repeated>
std::string joined(const Repeated& list, std::string_view separator = ",") {
  std::string out;
  for (int i = 0; i < list.size(); ++i) {
    if (i) out += separator;
    write(out, list[i]);
  }
  return out;
}

template <typename Repeated>
std::string braces(const Repeated& list) {
  return "{" + joined(list) + "}";
}

std::string string_literal(std::string_view value) {
  std::string out;
  text::write_string(out, value);
  return out;
}

Expected<std::string> word(const std::string& value) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (value.empty() || !std::all_of(value.begin(), value.end(), is_word))
    return invalid_argument("there is no value " + quoted(value));
  return value;
}

Expected<std::string> enumerator(const FieldInfo& f, int64_t number) {
  const std::string_view name = number < 0 || number > std::numeric_limits<uint32_t>::max()
                                    ? ""
                                    : enum_text(f.values, static_cast<uint32_t>(number));
  if (name.empty()) return invalid_argument("there is no value " + std::to_string(number));
  return std::string(name);
}

// Writes a list of one number for each dimension; nothing if all have their default.
template <typename Get>
void sizes(const wire::Window& in, std::string_view name, int64_t usual, Get get, std::string& out) {
  const auto& dims = in.dimensions();
  if (std::all_of(dims.begin(), dims.end(), [&](const auto& d) { return get(d) == usual; })) return;
  if (out.size() > 1) out += ' ';
  out += name;
  for (int i = 0; i < dims.size(); ++i) {
    if (i) out += 'x';
    write(out, get(dims[i]));
  }
}

std::string window_text(const wire::Window& in) {
  std::string out = "{size=";
  for (int i = 0; i < in.dimensions_size(); ++i) {
    if (i) out += 'x';
    write(out, in.dimensions(i).size());
  }
  using D = wire::WindowDimension;
  sizes(in, "stride=", 1, [](const D& d) { return d.stride(); }, out);
  const auto& dims = in.dimensions();
  if (std::any_of(dims.begin(), dims.end(), [](const D& d) { return d.padding_low() || d.padding_high(); })) {
    out += " pad=";
    for (int i = 0; i < dims.size(); ++i)
      out += (i ? "x" : "") + std::to_string(dims[i].padding_low()) + "_" + std::to_string(dims[i].padding_high());
  }
  sizes(in, "lhs_dilate=", 1, [](const D& d) { return d.base_dilation(); }, out);
  sizes(in, "rhs_dilate=", 1, [](const D& d) { return d.window_dilation(); }, out);
  sizes(in, "rhs_reversal=", 0, [](const D& d) { return int64_t{d.window_reversal()}; }, out);
  return out + "}";
}

template <typename Repeated>
Status label_part(int64_t first_at, char first, int64_t second_at, char second, const Repeated& spatial,
                  std::string& out) {
  const auto rank = static_cast<size_t>(spatial.size()) + 2;
  std::string part(rank, '?');
  const auto put = [&](int64_t at, char c) {
    const bool fits = at >= 0 && at < static_cast<int64_t>(rank) && part[static_cast<size_t>(at)] == '?';
    if (fits) part[static_cast<size_t>(at)] = c;
    return fits;
  };
  bool fits = rank <= 12 && put(first_at, first) && put(second_at, second);
  for (int i = 0; i < spatial.size() && fits; ++i) fits = put(spatial[i], static_cast<char>('0' + i));
  if (!fits) return invalid_argument("dimensions are named twice, or there are none of that number");
  out += part;
  return ok_status();
}

Expected<std::string> labels_text(const wire::ConvolutionDimensionNumbers& in) {
  std::string out;
  COLLET_TRY(label_part(in.input_batch_dimension(), 'b', in.input_feature_dimension(), 'f',
                        in.input_spatial_dimensions(), out));
  out += '_';
  COLLET_TRY(label_part(in.kernel_input_feature_dimension(), 'i', in.kernel_output_feature_dimension(), 'o',
                        in.kernel_spatial_dimensions(), out));
  out += "->";
  COLLET_TRY(label_part(in.output_batch_dimension(), 'b', in.output_feature_dimension(), 'f',
                        in.output_spatial_dimensions(), out));
  return out;
}

std::string iota_text(const wire::IotaReplicaGroupListProto& in) {
  std::string out = "[" + std::to_string(in.num_replica_groups()) + "," + std::to_string(in.num_devices_per_group()) +
                    "]<=[" + joined(in.iota_reshape_dims()) + "]";
  if (in.iota_transpose_perm_size() > 1) out += "T(" + joined(in.iota_transpose_perm()) + ")";
  return out;
}

Expected<std::string> groups_text(const wire::HloInstructionProto& in) {
  if (in.has_mesh_axes_replica_group_list()) return mesh_groups_text(in.mesh_axes_replica_group_list());
  if (in.has_iota_collective_device_list()) return iota_text(in.iota_collective_device_list());
  const auto& list = in.collective_device_list();
  if (list.has_iota_replica_group_list()) return iota_text(list.iota_replica_group_list());
  const auto& groups = list.replica_groups_size() ? list.replica_groups() : in.replica_groups();
  std::string out = "{";
  for (int i = 0; i < groups.size(); ++i) out += (i ? "," : "") + braces(groups[i].replica_ids());
  return out + "}";
}

std::string aliasing_text(const wire::HloInstructionProto& in) {
  std::string out = "{";
  for (int i = 0; i < in.output_operand_aliasing_size(); ++i) {
    const auto& alias = in.output_operand_aliasing(i);
    out += (i ? ", " : "") + braces(alias.output_shape_index()) + ": (" + std::to_string(alias.operand_index()) + ", " +
           braces(alias.operand_shape_index()) + ")";
  }
  return out + "}";
}

std::string slices_text(const wire::HloInstructionProto& in) {
  std::string out = "{";
  for (int i = 0; i < in.slice_dimensions_size(); ++i) {
    const auto& d = in.slice_dimensions(i);
    out += (i ? ", [" : "[") + std::to_string(d.start()) + ":" + std::to_string(d.limit());
    if (d.stride() != 1) out += ":" + std::to_string(d.stride());
    out += ']';
  }
  return out + "}";
}

std::string padding_text(const wire::PaddingConfig& in) {
  std::string out;
  for (int i = 0; i < in.dimensions_size(); ++i) {
    const auto& d = in.dimensions(i);
    out += (i ? "x" : "") + std::to_string(d.edge_padding_low()) + "_" + std::to_string(d.edge_padding_high());
    if (d.interior_padding()) out += "_" + std::to_string(d.interior_padding());
  }
  return out;
}

Expected<std::string> precision_text(const wire::PrecisionConfig& in) {
  constexpr std::string_view kNames[] = {"default", "high", "highest"};
  const auto& list = in.operand_precision();
  if (std::all_of(list.begin(), list.end(), [](int32_t p) { return p == 0; })) return std::string();
  std::string out = "{";
  for (int i = 0; i < list.size(); ++i) {
    if (list[i] < 0 || list[i] > 2) return invalid_argument("there is no precision " + std::to_string(list[i]));
    out += (i ? "," : "") + std::string(kNames[list[i]]);
  }
  return out + "}";
}

// Converts an algorithm number of the message. The order differs from attributes.def, because the algorithm with nine
// bf16 products was added last.
Expected<std::string> algorithm_text(const FieldInfo& f, int32_t number) {
  if (number == 0) return std::string();
  constexpr Algorithm kByNumber[] = {
      Algorithm::UNSET,         Algorithm::ANY_F8_ANY_F8_F32, Algorithm::ANY_F8_ANY_F8_F32_FAST_ACCUM,
      Algorithm::F16_F16_F16,   Algorithm::F16_F16_F32,       Algorithm::BF16_BF16_BF16,
      Algorithm::BF16_BF16_F32, Algorithm::BF16_BF16_F32_X3,  Algorithm::BF16_BF16_F32_X6,
      Algorithm::TF32_TF32_F32, Algorithm::TF32_TF32_F32_X3,  Algorithm::F32_F32_F32,
      Algorithm::F64_F64_F64,   Algorithm::BF16_BF16_F32_X9};
  if (number < 0 || number >= static_cast<int32_t>(std::size(kByNumber)))
    return invalid_argument("there is no algorithm " + std::to_string(number));
  return enumerator(f, static_cast<int64_t>(kByNumber[number]));
}

// Returns the comparison type; empty if it is the one that follows from the operands' type.
Expected<std::string> comparison_text(const std::string& type, Type operand) {
  if (type.empty()) return std::string();
  const Kind kind = type_info(operand).kind;
  const std::string_view usual = kind == Kind::Float || kind == Kind::Complex ? "FLOAT"
                                 : kind == Kind::Signed                       ? "SIGNED"
                                                                              : "UNSIGNED";
  if (operand != Type::Invalid && type == usual) return std::string();
  return word(type);
}

Expected<std::string> domain_text(const wire::HloInstructionProto& in) {
  // In text, entry and exit are named from the users' point of view, in the message from the operand's.
  COLLET_ASSIGN(const Sharding entry, from_wire(in.domain_exit_sharding()));
  COLLET_ASSIGN(const Sharding exit, from_wire(in.domain_entry_sharding()));
  return "{kind=\"sharding\", entry=" + entry.to_string() + ", exit=" + exit.to_string() + "}";
}

Expected<std::string> operand_layouts(const wire::HloInstructionProto& in) {
  std::string out = "{";
  for (int i = 0; i < in.operand_shapes_with_layout_size(); ++i) {
    COLLET_ASSIGN(const Shape shape, from_wire(in.operand_shapes_with_layout(i)));
    if (i) out += ", ";
    text::write_shape(out, shape, true);
  }
  return out + "}";
}

std::string flag(bool value) {
  return value ? "true" : "";
}

std::string positive(int64_t value) {
  return value > 0 ? std::to_string(value) : "";
}

const wire::DotDimensionNumbers& dot_numbers(const wire::HloInstructionProto& in, Op op) {
  return op == Op::RAGGED_DOT ? in.ragged_dot_dimension_numbers().dot_dimension_numbers() : in.dot_dimension_numbers();
}

// Converts fields that have a message of their own.
bool grouped_field(const wire::HloInstructionProto& in, Op op, std::string_view name, std::string& out) {
  const auto list = [&out](const auto& numbers) {
    out = braces(numbers);
    return true;
  };
  const auto& gather = in.gather_dimension_numbers();
  const auto& scatter = in.scatter_dimension_numbers();
  const auto& dot = dot_numbers(in, op);
  if (name == "lhs_batch_dims") return list(dot.lhs_batch_dimensions());
  if (name == "lhs_contracting_dims") return list(dot.lhs_contracting_dimensions());
  if (name == "rhs_batch_dims") return list(dot.rhs_batch_dimensions());
  if (name == "rhs_contracting_dims") return list(dot.rhs_contracting_dimensions());
  if (name == "lhs_ragged_dims") return list(in.ragged_dot_dimension_numbers().lhs_ragged_dimensions());
  if (name == "rhs_group_dims") return list(in.ragged_dot_dimension_numbers().rhs_group_dimensions());
  if (name == "offset_dims") return list(gather.offset_dims());
  if (name == "collapsed_slice_dims") return list(gather.collapsed_slice_dims());
  if (name == "start_index_map") return list(gather.start_index_map());
  if (name == "operand_batching_dims") return list(gather.operand_batching_dims());
  if (name == "start_indices_batching_dims") return list(gather.start_indices_batching_dims());
  if (name == "update_window_dims") return list(scatter.update_window_dims());
  if (name == "inserted_window_dims") return list(scatter.inserted_window_dims());
  if (name == "scatter_dims_to_operand_dims") return list(scatter.scatter_dims_to_operand_dims());
  if (name == "input_batching_dims") return list(scatter.input_batching_dims());
  if (name == "scatter_indices_batching_dims") return list(scatter.scatter_indices_batching_dims());
  const auto& solve = in.triangular_solve_options();
  if (name == "left_side") return out = flag(solve.left_side()), true;
  if (name == "lower") return out = flag(op == Op::CHOLESKY ? in.cholesky_options().lower() : solve.lower()), true;
  if (name == "unit_diagonal") return out = flag(solve.unit_diagonal()), true;
  if (name == "index_vector_dim")
    return out = std::to_string(op == Op::GATHER ? gather.index_vector_dim() : scatter.index_vector_dim()), true;
  return false;
}

// Converts fields that are a number, a list, a string or a bool of the instruction's message.
bool plain_field(const wire::HloInstructionProto& in, const FieldInfo& f, std::string& out) {
  const std::string_view name = f.text;
  const auto is = [&](std::string_view wanted, std::string value) {
    if (name != wanted) return false;
    out = std::move(value);
    return true;
  };
  if (name == "dimensions") {
    if (in.dimensions_size() || f.required) out = braces(in.dimensions());
    return true;
  }
  if (name == "slice_sizes" && f.kind == FieldKind::DIMS) {
    out = braces(in.gather_slice_sizes());
    return true;
  }
  if (name == "iota_dimension" || name == "inferred_dimension") {
    if (in.dimensions_size() && (f.required || in.dimensions(0) >= 0)) out = std::to_string(in.dimensions(0));
    return true;
  }
  if (name == "epsilon") {
    text::write_real(out, in.epsilon(), true);
    return true;
  }
  if (name == "cross_program_prefetch_index") {
    if (in.has_cross_program_prefetch_index()) out = std::to_string(in.cross_program_prefetch_index());
    return true;
  }
  const auto string = [](const std::string& value) { return value.empty() ? value : string_literal(value); };
  const std::string& thread = in.async_execution_thread();
  return is("slice", slices_text(in)) || is("dynamic_slice_sizes", braces(in.dynamic_slice_sizes())) ||
         is("padding", padding_text(in.padding_config())) ||
         is("feature_group_count", positive(in.feature_group_count())) ||
         is("batch_group_count", positive(in.batch_group_count())) || is("is_stable", flag(in.is_stable())) ||
         is("k", std::to_string(in.k())) || is("largest", in.largest() ? "true" : "false") ||
         is("indices_are_sorted", flag(in.indices_are_sorted())) || is("unique_indices", flag(in.unique_indices())) ||
         is("is_composite", flag(in.is_composite())) || is("index", std::to_string(in.tuple_index())) ||
         is("feature_index", std::to_string(in.feature_index())) || is("fft_length", braces(in.fft_length())) ||
         is("exponent_bits", std::to_string(in.exponent_bits())) ||
         is("mantissa_bits", std::to_string(in.mantissa_bits())) || is("delta", std::to_string(in.delta())) ||
         is("infeed_config", string(in.infeed_config())) || is("outfeed_config", string(in.outfeed_config())) ||
         is("custom_call_target", string_literal(in.custom_call_target())) ||
         is("custom_call_has_side_effect", flag(in.custom_call_has_side_effect())) ||
         is("channel_id", positive(in.channel_id() > 0 ? in.channel_id() : in.all_reduce_id())) ||
         is("use_global_device_ids", flag(in.use_global_device_ids())) ||
         is("constrain_layout", flag(in.constrain_layout())) || is("is_host_transfer", flag(in.is_host_transfer())) ||
         is("async_execution_thread", thread == "main" ? "" : string(thread)) ||
         is("output_to_operand_aliasing", in.output_operand_aliasing_size() ? aliasing_text(in) : "");
}

// Converts the slice sizes of an in-place permute: the message has one flat list of numbers, text one list per slice.
// The number of slices follows from the third operand, which holds the starts; slices of one array have its rank.
Expected<std::string> slice_sizes_text(const wire::HloInstructionProto& in, std::span<const Shape> operands) {
  if (!in.dynamic_slice_sizes_size()) return std::string();
  const Status wrong = invalid_argument("the number of sizes does not fit the operands");
  if (operands.size() < 3) return wrong;
  const Shape &input = operands[0], &starts = operands[2];
  const auto count = [](const Shape& s) { return s.is_tuple() && s.elements().size() && s.element(0).is_tuple(); };
  std::vector<int> ranks;
  if (input.is_tuple()) {
    for (size_t i = 0; i < input.elements().size(); ++i) {
      const bool many = starts.is_tuple() && i < starts.elements().size() && count(starts.element(i));
      ranks.insert(ranks.end(), many ? starts.element(i).elements().size() : 1, input.element(i).rank());
    }
  } else {
    ranks.assign(count(starts) ? starts.elements().size() : 1, input.rank());
  }
  std::string out = "{";
  int at = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] > in.dynamic_slice_sizes_size() - at) return wrong;
    out += i ? ",{" : "{";
    for (int k = 0; k < ranks[i]; ++k) out += (k ? "," : "") + std::to_string(in.dynamic_slice_sizes(at++));
    out += '}';
  }
  if (at != in.dynamic_slice_sizes_size()) return wrong;
  return out + "}";
}

// Converts fields whose value is checked without regard to other fields.
Expected<std::string> checked_field(const wire::HloInstructionProto& in, const FieldInfo& f,
                                    std::span<const Shape> operands) {
  const std::string_view name = f.text;
  const Type operand = operands.empty() ? Type::Invalid : operands[0].type();
  if (name == "direction") return word(in.comparison_direction());
  if (name == "type") return comparison_text(in.comparison_type(), operand);
  if (name == "kind") return word(in.fusion_kind());
  if (name == "operand_precision") return precision_text(in.precision_config());
  if (name == "algorithm" && f.values.size() > 3) return algorithm_text(f, in.precision_config().algorithm());
  if (name == "algorithm") return enumerator(f, in.rng_algorithm());
  if (name == "fft_type") return enumerator(f, in.fft_type());
  if (name == "distribution") return enumerator(f, int64_t{in.distribution()} - 1);
  if (name == "schedule") return in.custom_call_schedule() ? enumerator(f, in.custom_call_schedule()) : std::string();
  if (name == "padding_type") return in.padding_type() ? enumerator(f, in.padding_type()) : std::string();
  if (name == "api_version")
    return in.custom_call_api_version() > 1 ? enumerator(f, int64_t{in.custom_call_api_version()} - 1) : std::string();
  if (name == "transpose_a") {
    const int32_t number = in.triangular_solve_options().transpose_a();
    return number ? enumerator(f, int64_t{number} - 1) : std::string();
  }
  if (name == "window") return in.window().dimensions_size() ? window_text(in.window()) : std::string();
  if (name == "dim_labels")
    return in.has_convolution_dimension_numbers() ? labels_text(in.convolution_dimension_numbers()) : std::string();
  if (name == "replica_groups") return groups_text(in);
  if (name == "slice_sizes") return slice_sizes_text(in, operands);
  if (name == "domain") return domain_text(in);
  if (name == "operand_layout_constraints") return in.constrain_layout() ? operand_layouts(in) : std::string();
  if (name == "source_target_pairs") {
    std::string out = "{";
    for (int i = 0; i < in.source_target_pairs_size(); ++i)
      out += (i ? ",{" : "{") + std::to_string(in.source_target_pairs(i).source()) + "," +
             std::to_string(in.source_target_pairs(i).target()) + "}";
    return out + "}";
  }
  std::string out;
  if (name == "outfeed_shape") {
    if (in.has_outfeed_shape()) {
      COLLET_ASSIGN(const Shape shape, from_wire(in.outfeed_shape()));
      text::write_shape(out, shape, true);
    } else if (!operands.empty()) {
      text::write_shape(out, operands[0], true);
    }
  }
  if (name == "literal" && in.has_literal()) {
    COLLET_ASSIGN(const Literal literal, from_wire(in.literal()));
    text::write_literal(out, literal, true, true);
  }
  return out;
}

}  // namespace

Status write_attributes(const wire::HloInstructionProto& in, Op op, std::span<const Shape> operands, std::string& out) {
  for (const FieldInfo& f : record_fields(op_info(op).record)) {
    if (f.text.empty()) continue;
    if (f.text == "async_execution_thread" && op != Op::ASYNC_START) continue;
    std::string value;
    if (!grouped_field(in, op, f.text, value) && !plain_field(in, f, value)) {
      Expected<std::string> checked = checked_field(in, f, operands);
      if (!checked.ok()) return checked.status().with_prefix("field for attribute '" + std::string(f.text) + "': ");
      value = std::move(*checked);
    }
    if (value.empty() || (!f.required && value == "{}" && op != Op::BROADCAST && f.kind != FieldKind::SHAPES &&
                          f.kind != FieldKind::GROUPS))
      continue;
    out += ", ";
    out += f.text;
    out += '=';
    out += value;
  }
  return ok_status();
}

}  // namespace collet::hlo::proto
