// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/proto/wire.h"

namespace collet::hlo::proto {
namespace {

/// Letters of dimension levels, by the number of the level: dense, compressed, singleton, loose compressed. In HLO
/// text, `+` after a letter means that coordinates are not unique, and `~` that they are not ordered.
constexpr char kLevels[] = "DCSH";

Expected<Type> layout_type(int32_t number, std::string_view field) {
  const auto type = static_cast<Type>(number);
  if (number == 0) return Type::Invalid;
  if (number < 0 || number > 255 || type_info(type).text.empty())
    return invalid_argument("field '" + std::string(field) + "': there is no element type " + std::to_string(number));
  return type;
}

std::string level_text(const wire::LayoutProto& in) {
  std::string out;
  bool dense = true;
  for (int i = 0; i < in.dim_level_types_size(); ++i) {
    if (i) out += ',';
    out += kLevels[std::clamp(in.dim_level_types(i), 0, 3)];
    if (i < in.dim_unique_size() && !in.dim_unique(i)) out += '+';
    if (i < in.dim_ordered_size() && !in.dim_ordered(i)) out += '~';
    dense = dense && out.back() == 'D';
  }
  return dense ? "" : out;
}

void write_levels(std::string_view text, wire::LayoutProto* out) {
  for (size_t i = 0; i < text.size();) {
    const size_t level = std::string_view(kLevels).find(text[i]);
    if (level == std::string_view::npos) {
      ++i;
      continue;
    }
    out->add_dim_level_types(static_cast<int32_t>(level));
    bool unique = true, ordered = true;
    for (++i; i < text.size() && (text[i] == '+' || text[i] == '~'); ++i) (text[i] == '+' ? unique : ordered) = false;
    out->add_dim_unique(unique);
    out->add_dim_ordered(ordered);
  }
}

Expected<Layout> read_layout(const wire::LayoutProto& in, int rank) {
  Layout out;
  out.minor_to_major.assign(in.minor_to_major().begin(), in.minor_to_major().end());
  std::vector<int64_t> sorted = out.minor_to_major;
  std::sort(sorted.begin(), sorted.end());
  bool permutation = sorted.size() == static_cast<size_t>(rank);
  for (size_t i = 0; i < sorted.size() && permutation; ++i) permutation = sorted[i] == static_cast<int64_t>(i);
  if (!permutation)
    return invalid_argument("field 'minor_to_major' does not name each of the " + std::to_string(rank) +
                            " dimensions once");
  out.dim_level_types = level_text(in);
  for (const wire::TileProto& tile : in.tiles())
    out.tiles.push_back({{tile.dimensions().begin(), tile.dimensions().end()}});
  if (in.tail_padding_alignment_in_elements() != 0)
    out.tail_padding_alignment = in.tail_padding_alignment_in_elements();
  COLLET_ASSIGN(out.index_type, layout_type(in.index_primitive_type(), "index_primitive_type"));
  COLLET_ASSIGN(out.pointer_type, layout_type(in.pointer_primitive_type(), "pointer_primitive_type"));
  out.element_size_bits = in.element_size_in_bits();
  out.memory_space = in.memory_space();
  for (const wire::SplitConfigProto& split : in.split_configs())
    out.splits.push_back({split.dimension(), {split.split_indices().begin(), split.split_indices().end()}});
  if (in.has_physical_shape()) {
    COLLET_ASSIGN(Shape physical, from_wire(in.physical_shape()));
    out.physical_shape = std::make_shared<const Shape>(std::move(physical));
  }
  out.metadata_prefix_bytes = in.dynamic_shape_metadata_prefix_bytes();
  return out;
}

void write_layout(const Layout* layout, int rank, wire::LayoutProto* out) {
  out->set_tail_padding_alignment_in_elements(1);
  if (!layout) {
    for (int i = rank; i-- > 0;) out->add_minor_to_major(i);
    return;
  }
  for (int64_t d : layout->minor_to_major) out->add_minor_to_major(d);
  write_levels(layout->dim_level_types, out);
  for (const Tile& tile : layout->tiles) {
    auto* to = out->add_tiles();
    for (int64_t d : tile.dims) to->add_dimensions(d);
  }
  out->set_tail_padding_alignment_in_elements(layout->tail_padding_alignment);
  out->set_index_primitive_type(static_cast<int32_t>(layout->index_type));
  out->set_pointer_primitive_type(static_cast<int32_t>(layout->pointer_type));
  out->set_element_size_in_bits(layout->element_size_bits);
  out->set_memory_space(layout->memory_space);
  for (const SplitConfig& split : layout->splits) {
    auto* to = out->add_split_configs();
    to->set_dimension(split.dimension);
    for (int64_t i : split.indices) to->add_split_indices(i);
  }
  if (layout->physical_shape) to_wire(*layout->physical_shape, out->mutable_physical_shape());
  out->set_dynamic_shape_metadata_prefix_bytes(layout->metadata_prefix_bytes);
}

}  // namespace

Expected<Shape> from_wire(const wire::ShapeProto& in) {
  const auto type = static_cast<Type>(in.element_type());
  if (in.element_type() < 0 || in.element_type() > 255)
    return invalid_argument("there is no element type " + std::to_string(in.element_type()));
  if (type == Type::Tuple || type == Type::Buffer) {
    if (in.dimensions_size()) return invalid_argument("field 'dimensions' in the shape of a tuple or buffer");
    std::vector<Shape> elements;
    for (const wire::ShapeProto& element : in.tuple_shapes()) {
      COLLET_ASSIGN(Shape shape, from_wire(element));
      elements.push_back(std::move(shape));
    }
    if (type == Type::Tuple) return Shape::tuple(std::move(elements));
    if (elements.size() != 1) return invalid_argument("a buffer has one shape in 'tuple_shapes'");
    return Shape::buffer(std::move(elements[0]));
  }
  if (type_info(type).text.empty())
    return invalid_argument("field 'element_type': there is no element type " + std::to_string(in.element_type()));
  if (in.tuple_shapes_size()) return invalid_argument("field 'tuple_shapes' in a shape that is no tuple");
  const int rank = in.dimensions_size();
  if (static_cast<size_t>(rank) > kMostDimensions)
    return invalid_argument("field 'dimensions' has more than " + std::to_string(kMostDimensions) + " entries");
  if (type == Type::TOKEN || type == Type::OPAQUE) {
    if (rank) return invalid_argument("field 'dimensions' in the shape of a token or opaque value");
    return type == Type::TOKEN ? Shape::token() : Shape::opaque();
  }
  if (in.is_dynamic_dimension_size() != 0 && in.is_dynamic_dimension_size() != rank)
    return invalid_argument("field 'is_dynamic_dimension' has " + std::to_string(in.is_dynamic_dimension_size()) +
                            " entries for " + std::to_string(rank) + " dimensions");
  const std::vector<int64_t> dims(in.dimensions().begin(), in.dimensions().end());
  std::vector<bool> dynamic(in.is_dynamic_dimension().begin(), in.is_dynamic_dimension().end());
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] < 0 && !(dims[i] == kUnbounded && !dynamic.empty() && dynamic[i]))
      return invalid_argument("field 'dimensions': a size of " + std::to_string(dims[i]));
  const Shape shape = Shape::array(type, dims, dynamic);
  if (!shape.has_unbounded() && shape.byte_size() == INT64_MAX)
    return invalid_argument("field 'dimensions': the array is too large");
  if (!in.has_layout()) return shape;
  // Older writers leave an empty layout message where the shape has no layout.
  if (in.layout().minor_to_major_size() == 0 && rank > 0) return shape;
  COLLET_ASSIGN(Layout layout, read_layout(in.layout(), rank));
  if (rank == 0 && layout.is_default()) return shape;
  return shape.with_layout(std::move(layout));
}

void to_wire(const Shape& shape, wire::ShapeProto* out) {
  out->set_element_type(static_cast<int32_t>(shape.type()));
  if (shape.is_tuple() || shape.is_buffer()) {
    for (const Shape& element : shape.elements()) to_wire(element, out->add_tuple_shapes());
    return;
  }
  if (!shape.is_array()) return;
  for (int i = 0; i < shape.rank(); ++i) {
    out->add_dimensions(shape.dim(i));
    out->add_is_dynamic_dimension(shape.is_dynamic(i));
  }
  write_layout(shape.layout(), shape.rank(), out->mutable_layout());
}

}  // namespace collet::hlo::proto
