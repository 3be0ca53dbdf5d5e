// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/attribute_rules.h"

#include <algorithm>
#include <unordered_map>

namespace collet::hlo::mlir {
namespace {

using F = AttrForm;
using D = AttrDefault;
using E = VhloEnum;

constexpr AttrRule kRules[] = {
    {"accumulation_type", F::Type, D::Zero},
    {"all_gather_dim", F::I64},
    {"allow_imprecise_accumulation", F::Truth, D::Zero},
    {"api_version", F::ApiVersion, D::Zero, E::ApiVersion},
    {"arg_attrs", F::Any, D::Zero},
    {"backend_config", F::Any, D::Zero},
    {"base_dilations", F::Ints, D::Ones},
    {"batch_dims", F::I64, D::Zero},
    {"batch_group_count", F::I64, D::One},
    {"broadcast_dimensions", F::Ints},
    {"broadcast_sizes", F::Ints},
    {"call_target_name", F::Text},
    {"called_computations", F::Symbols, D::Zero},
    {"callee", F::Symbol},
    {"channel_id", F::I64, D::Zero},
    {"channel_type", F::I64, D::Zero},
    {"collapsed_slice_dims", F::Ints, D::Zero},
    {"compare_type", F::Enum, D::Zero, E::ComparisonType, "comparison_type"},
    {"comparison_direction", F::Enum, D::Required, E::ComparisonDirection, "comparison_direction"},
    {"composite_attributes", F::Any, D::Dictionary},
    {"concat_dimension", F::I64},
    {"decomposition", F::Symbol},
    {"dim", F::I64},
    {"dimension", F::I64, D::MinusOne},
    {"dimensions", F::Ints},
    {"edge_padding_high", F::Ints},
    {"edge_padding_low", F::Ints},
    {"einsum_config", F::Text},
    {"epsilon", F::Any},
    {"exponent_bits", F::I32},
    {"feature_group_count", F::I64, D::One},
    {"feature_index", F::I64},
    {"fft_length", F::Ints},
    {"fft_type", F::Enum, D::Zero, E::FftType, "fft_type"},
    {"function_type", F::Any},
    {"has_dynamic_root", F::Flag, D::Zero},
    {"has_side_effect", F::Bool, D::Zero},
    {"index", F::I32},
    {"index_vector_dim", F::I64, D::Zero},
    {"indices_are_sorted", F::Bool, D::Zero},
    {"infeed_config", F::Text, D::Zero},
    {"input_batch_dimension", F::I64},
    {"input_batching_dims", F::Ints, D::Zero},
    {"input_feature_dimension", F::I64},
    {"input_spatial_dimensions", F::Ints, D::Zero},
    {"inserted_window_dims", F::Ints, D::Zero},
    {"interior_padding", F::Ints},
    {"iota_dimension", F::I64},
    {"is_host_transfer", F::Bool, D::Zero},
    {"is_stable", F::Bool, D::Zero},
    {"k", F::I64},
    {"kernel_input_feature_dimension", F::I64},
    {"kernel_output_feature_dimension", F::I64},
    {"kernel_spatial_dimensions", F::Ints, D::Zero},
    {"known_expanding_dimensions", F::Ints, D::Zero},
    {"known_nonexpanding_dimensions", F::Ints, D::Zero},
    {"layout", F::Any, D::Zero},
    {"left_side", F::Bool, D::Zero},
    {"lhs_batching_dimensions", F::Ints, D::Zero},
    {"lhs_component_count", F::Number, D::Zero},
    {"lhs_contracting_dimensions", F::Ints, D::Zero},
    {"lhs_dilation", F::Ints, D::Ones},
    {"lhs_precision_type", F::Type, D::Zero},
    {"lhs_ragged_dimensions", F::Ints, D::Zero},
    {"limit_indices", F::Ints},
    {"lower", F::Bool, D::Zero},
    {"mantissa_bits", F::I32},
    {"name", F::Text},
    {"num_primitive_operations", F::Number, D::Zero},
    {"offset_dims", F::Ints, D::Zero},
    {"operand_batching_dims", F::Ints, D::Zero},
    {"operand_layouts", F::Any, D::Zero},
    {"outfeed_config", F::Text, D::Zero},
    {"output_batch_dimension", F::I64},
    {"output_feature_dimension", F::I64},
    {"output_operand_aliases", F::Any, D::Zero},
    {"output_spatial_dimensions", F::Ints, D::Zero},
    {"padding", F::Table, D::Zeros},
    {"permutation", F::Ints},
    {"precision_config", F::Precisions, D::Zero, E::Precision, "precision"},
    {"replica_groups", F::Table},
    {"res_attrs", F::Any, D::Zero},
    {"result_accuracy", F::Accuracy, D::Zero},
    {"result_layouts", F::Any, D::Zero},
    {"result_tilings", F::Any, D::Zero},
    {"rhs_batching_dimensions", F::Ints, D::Zero},
    {"rhs_component_count", F::Number, D::Zero},
    {"rhs_contracting_dimensions", F::Ints, D::Zero},
    {"rhs_dilation", F::Ints, D::Ones},
    {"rhs_group_dimensions", F::Ints, D::Zero},
    {"rhs_precision_type", F::Type, D::Zero},
    {"rng_algorithm", F::Enum, D::Zero, E::RngAlgorithm, "rng_algorithm"},
    {"rng_distribution", F::Enum, D::Required, E::RngDistribution, "rng_distribution"},
    {"scatter_dimension", F::I64},
    {"scatter_dims_to_operand_dims", F::Ints, D::Zero},
    {"scatter_indices_batching_dims", F::Ints, D::Zero},
    {"slice_sizes", F::Ints},
    {"source_target_pairs", F::Table, D::Zero},
    {"split_count", F::I64},
    {"split_dimension", F::I64},
    {"start_index_map", F::Ints, D::Zero},
    {"start_indices", F::Ints},
    {"start_indices_batching_dims", F::Ints, D::Zero},
    {"strides", F::Ints},
    {"sym_name", F::Text},
    {"sym_visibility", F::Text, D::Zero},
    {"transpose_a", F::Enum, D::Required, E::Transpose, "transpose"},
    {"unique_indices", F::Bool, D::Zero},
    {"unit_diagonal", F::Bool, D::Zero},
    {"update_window_dims", F::Ints, D::Zero},
    {"use_global_device_ids", F::Flag, D::Zero},
    {"value", F::Any},
    {"version", F::I32, D::Zero},
    {"window_dilations", F::Ints, D::Ones},
    {"window_dimensions", F::Ints},
    {"window_reversal", F::Bools, D::Zeros},
    {"window_strides", F::Ints, D::Ones},
};

constexpr std::string_view kGatherFields =
    "offset_dims,collapsed_slice_dims,operand_batching_dims,start_indices_batching_dims,start_index_map,"
    "index_vector_dim";
constexpr std::string_view kConvolutionFields =
    "input_batch_dimension,input_feature_dimension,input_spatial_dimensions,kernel_input_feature_dimension,"
    "kernel_output_feature_dimension,kernel_spatial_dimensions,output_batch_dimension,output_feature_dimension,"
    "output_spatial_dimensions";

constexpr AttrRecord kRecords[] = {
    {"stablehlo.gather", "dimension_numbers", "#stablehlo.gather", kGatherFields},
    {"stablehlo.dynamic_gather", "dimension_numbers", "#stablehlo.gather", kGatherFields},
    {"stablehlo.scatter", "scatter_dimension_numbers", "#stablehlo.scatter",
     "update_window_dims,inserted_window_dims,input_batching_dims,scatter_indices_batching_dims,"
     "scatter_dims_to_operand_dims,index_vector_dim"},
    {"stablehlo.dot_general", "dot_dimension_numbers", "#stablehlo.dot",
     "lhs_batching_dimensions,rhs_batching_dimensions,lhs_contracting_dimensions,rhs_contracting_dimensions"},
    {"stablehlo.dot_general", "algorithm", "#stablehlo.dot_algorithm",
     "lhs_precision_type,rhs_precision_type,accumulation_type,lhs_component_count,rhs_component_count,"
     "num_primitive_operations,allow_imprecise_accumulation"},
    {"chlo.ragged_dot", "ragged_dot_dimension_numbers", "#chlo.ragged_dot",
     "lhs_batching_dimensions,rhs_batching_dimensions,lhs_contracting_dimensions,rhs_contracting_dimensions,"
     "lhs_ragged_dimensions,rhs_group_dimensions"},
    {"stablehlo.convolution", "dimension_numbers", "#stablehlo.conv", kConvolutionFields},
    {"stablehlo.dynamic_conv", "dimension_numbers", "#stablehlo.conv", kConvolutionFields},
    {"", "channel_handle", "#stablehlo.channel_handle", "channel_id,channel_type"},
};

bool lists(std::string_view fields, std::string_view field) {
  while (!fields.empty()) {
    const size_t comma = fields.find(',');
    if (fields.substr(0, comma) == field) return true;
    fields = comma == std::string_view::npos ? std::string_view() : fields.substr(comma + 1);
  }
  return false;
}

/// Returns the rank of an op's window: the length of its window attributes, or the rank of the operand.
size_t window_rank(const Op& op) {
  for (std::string_view name : {"window_dimensions", "input_spatial_dimensions"})
    if (AttrRef dims = op.attr(name); dims && dims->kind == Attr::Kind::Ints) return dims->ints.size();
  return 0;
}

Attr* list_of(Program& program, Attr::Kind kind, size_t count, int64_t value) {
  Attr* out = program.make_attr(kind);
  out->ints = program.arena().list(std::vector<int64_t>(count, value));
  return out;
}

AttrRef number(Program& program, int64_t value, hlo::Type type) {
  Attr* out = program.make_attr(Attr::Kind::Int);
  out->integer = value;
  out->type = program.scalar(type);
  return out;
}

AttrRef enumerator(Program& program, std::string_view text) {
  Attr* out = program.make_attr(Attr::Kind::Enum);
  out->text = text;
  return out;
}

AttrRef zero_attr(Program& program, const AttrRule& rule) {
  switch (rule.form) {
    case F::I64:
      return number(program, 0, hlo::Type::S64);
    case F::I32:
      return number(program, 0, hlo::Type::S32);
    case F::Bool:
    case F::Flag:
      return program.make_attr(Attr::Kind::Bool);
    case F::Ints:
      return program.make_attr(Attr::Kind::Ints);
    case F::Table: {
      Attr* out = program.make_attr(Attr::Kind::Ints);
      out->dims = program.arena().list(std::vector<int64_t>{0});
      return out;
    }
    case F::Bools:
      return program.make_attr(Attr::Kind::Bools);
    case F::Enum:
      return enumerator(program, vhlo_enum_text(rule.enumeration, 0));
    case F::ApiVersion:
      return enumerator(program, "API_VERSION_ORIGINAL");
    case F::Text:
      return program.make_attr(Attr::Kind::String);
    case F::Precisions: {
      Attr* out = program.make_attr(Attr::Kind::Array);
      AttrRef one = enumerator(program, "DEFAULT");
      out->items = program.arena().list(std::vector<AttrRef>{one, one});
      return out;
    }
    case F::Type:
    case F::Number:
    case F::Truth: {
      Attr* out = program.make_attr(Attr::Kind::Type);
      out->type = program.make_type(Type::Kind::None);
      return out;
    }
    case F::Accuracy: {
      Attr* out = program.make_attr(Attr::Kind::Accuracy);
      out->floats = program.arena().list(std::vector<double>{0, 0});
      out->text = "DEFAULT";
      return out;
    }
    default:
      return program.make_attr(rule.name == "backend_config" ? Attr::Kind::String : Attr::Kind::Array);
  }
}

bool all_are(List<const int64_t> values, int64_t value) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == value; });
}

bool is_zero(AttrRef value) {
  switch (value->kind) {
    case Attr::Kind::Unit:
      return false;
    case Attr::Kind::Bool:
    case Attr::Kind::Int:
      return value->integer == 0;
    case Attr::Kind::String:
    case Attr::Kind::Symbol:
      return value->text.empty();
    case Attr::Kind::Enum:
      return value->text == "DEFAULT" || value->text == "NOTYPE" || value->text == "API_VERSION_ORIGINAL" ||
             value->text == "FFT";
    case Attr::Kind::Array:
      return std::all_of(value->items.begin(), value->items.end(),
                         [](AttrRef item) { return item && item->kind == Attr::Kind::Enum && is_zero(item); });
    case Attr::Kind::Dict:
      return value->fields.empty();
    case Attr::Kind::Ints:
    case Attr::Kind::Bools:
      return value->ints.empty();
    case Attr::Kind::Type:
      return !value->type || value->type->kind == Type::Kind::None;
    case Attr::Kind::Accuracy:
      return value->text == "DEFAULT" && value->integer == 0 && value->floats.size() == 2 && value->floats[0] == 0 &&
             value->floats[1] == 0;
    default:
      return false;
  }
}

}  // namespace

const AttrRule* find_attr_rule(std::string_view name) {
  static const auto* const map = [] {
    auto* out = new std::unordered_map<std::string_view, const AttrRule*>;
    for (const AttrRule& rule : kRules) out->emplace(rule.name, &rule);
    return out;
  }();
  const auto it = map->find(name);
  return it == map->end() ? nullptr : it->second;
}

const AttrRecord* find_attr_record(std::string_view op, std::string_view field) {
  for (const AttrRecord& record : kRecords)
    if ((record.op.empty() || record.op == op) && lists(record.fields, field)) return &record;
  return nullptr;
}

AttrRef default_attr(Program& program, const Op& op, const AttrRule& rule) {
  switch (rule.otherwise) {
    case D::Required:
      return nullptr;
    case D::Zero:
      if (rule.name == "backend_config") {
        // The backend_config of a typed custom call is a dictionary, that of other custom calls a string.
        AttrRef api = op.attr("api_version");
        if (api && (api->text == "API_VERSION_TYPED_FFI" || (api->kind == Attr::Kind::Int && api->integer == 4)))
          return program.make_attr(Attr::Kind::Dict);
      }
      return zero_attr(program, rule);
    case D::Ones:
      return list_of(program, Attr::Kind::Ints, window_rank(op), 1);
    case D::Zeros: {
      const size_t rank = window_rank(op);
      if (rule.form == F::Bools) return list_of(program, Attr::Kind::Bools, rank, 0);
      Attr* out = list_of(program, Attr::Kind::Ints, 2 * rank, 0);
      out->dims = program.arena().list(std::vector<int64_t>{static_cast<int64_t>(rank), 2});
      return out;
    }
    case D::MinusOne:
      return number(program, -1, hlo::Type::S64);
    case D::One:
      return number(program, 1, hlo::Type::S64);
    case D::Dictionary:
      return program.make_attr(Attr::Kind::Dict);
  }
  return nullptr;
}

bool is_default_attr(const AttrRule& rule, AttrRef value) {
  if (!value) return true;
  switch (rule.otherwise) {
    case D::Required:
      return false;
    case D::Zero:
      return is_zero(value);
    case D::Ones:
      return value->kind == Attr::Kind::Ints && all_are(value->ints, 1);
    case D::Zeros:
      return (value->kind == Attr::Kind::Ints || value->kind == Attr::Kind::Bools) && all_are(value->ints, 0);
    case D::MinusOne:
      return value->kind == Attr::Kind::Int && value->integer == -1;
    case D::One:
      return value->kind == Attr::Kind::Int && value->integer == 1;
    case D::Dictionary:
      return value->kind == Attr::Kind::Dict && value->fields.empty();
  }
  return false;
}

}  // namespace collet::hlo::mlir
