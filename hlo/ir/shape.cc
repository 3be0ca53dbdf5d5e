// SPDX-License-Identifier: Apache-2.0
#include "hlo/ir/shape.h"

#include <algorithm>

namespace collet::hlo {
namespace {

int64_t saturating_multiply(int64_t a, int64_t b) {
  int64_t out;
  return __builtin_mul_overflow(a, b, &out) ? INT64_MAX : out;
}

int64_t saturating_add(int64_t a, int64_t b) {
  int64_t out;
  return __builtin_add_overflow(a, b, &out) ? INT64_MAX : out;
}

template <typename T>
std::string join(const std::vector<T>& items) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i) out += ',';
    out += std::to_string(items[i]);
  }
  return out;
}

}  // namespace

bool Layout::operator==(const Layout& o) const {
  const bool physical =
      physical_shape && o.physical_shape ? *physical_shape == *o.physical_shape : physical_shape == o.physical_shape;
  return physical && minor_to_major == o.minor_to_major && dim_level_types == o.dim_level_types && tiles == o.tiles &&
         tail_padding_alignment == o.tail_padding_alignment && index_type == o.index_type &&
         pointer_type == o.pointer_type && element_size_bits == o.element_size_bits && memory_space == o.memory_space &&
         splits == o.splits && metadata_prefix_bytes == o.metadata_prefix_bytes;
}

bool Layout::is_default() const {
  Layout row_major;
  for (size_t i = minor_to_major.size(); i-- > 0;) row_major.minor_to_major.push_back(static_cast<int64_t>(i));
  return *this == row_major;
}

Shape Shape::array(Type type, std::span<const int64_t> dims) {
  auto rep = std::make_shared<Rep>();
  rep->type = type;
  rep->dims.assign(dims.begin(), dims.end());
  if (std::find(dims.begin(), dims.end(), kUnbounded) != dims.end()) {
    rep->dynamic.resize(dims.size());
    for (size_t i = 0; i < dims.size(); ++i) rep->dynamic[i] = dims[i] == kUnbounded;
  }
  return Shape(std::move(rep));
}

Shape Shape::array(Type type, std::span<const int64_t> dims, const std::vector<bool>& dynamic) {
  auto rep = std::make_shared<Rep>();
  rep->type = type;
  rep->dims.assign(dims.begin(), dims.end());
  if (std::find(dynamic.begin(), dynamic.end(), true) != dynamic.end()) rep->dynamic = dynamic;
  return Shape(std::move(rep));
}

Shape Shape::tuple(std::vector<Shape> elements) {
  auto rep = std::make_shared<Rep>();
  rep->type = Type::Tuple;
  rep->elements = std::move(elements);
  rep->flat = std::all_of(rep->elements.begin(), rep->elements.end(),
                          [](const Shape& element) { return element.rep_ && !element.is_tuple(); });
  return Shape(std::move(rep));
}

Shape Shape::token() {
  static const Shape shape = array(Type::TOKEN, {});
  return shape;
}

Shape Shape::opaque() {
  static const Shape shape = array(Type::OPAQUE, {});
  return shape;
}

Shape Shape::buffer(Shape inside) {
  auto rep = std::make_shared<Rep>();
  rep->type = Type::Buffer;
  rep->elements.push_back(std::move(inside));
  return Shape(std::move(rep));
}

bool Shape::is_array() const {
  switch (type()) {
    case Type::Invalid:
    case Type::Tuple:
    case Type::Buffer:
    case Type::TOKEN:
    case Type::OPAQUE:
      return false;
    default:
      return true;
  }
}

std::span<const int64_t> Shape::dims() const {
  if (!rep_) return {};
  return rep_->dims;
}

std::span<const Shape> Shape::elements() const {
  if (!rep_) return {};
  return rep_->elements;
}

bool Shape::has_dynamic() const {
  if (!rep_) return false;
  if (!rep_->dynamic.empty()) return true;
  return std::any_of(rep_->elements.begin(), rep_->elements.end(), [](const Shape& s) { return s.has_dynamic(); });
}

bool Shape::has_unbounded() const {
  if (!rep_) return false;
  if (std::find(rep_->dims.begin(), rep_->dims.end(), kUnbounded) != rep_->dims.end()) return true;
  return std::any_of(rep_->elements.begin(), rep_->elements.end(), [](const Shape& s) { return s.has_unbounded(); });
}

Shape Shape::with_layout(Layout layout) const {
  auto rep = std::make_shared<Rep>(*rep_);
  rep->layout = std::make_shared<const Layout>(std::move(layout));
  return Shape(std::move(rep));
}

Shape Shape::without_layout() const {
  if (!rep_) return *this;
  const bool clean = !rep_->layout && rep_->elements.empty();
  if (clean) return *this;
  auto rep = std::make_shared<Rep>(*rep_);
  rep->layout = nullptr;
  for (Shape& element : rep->elements) element = element.without_layout();
  return Shape(std::move(rep));
}

Shape Shape::with_type(Type type) const {
  auto rep = std::make_shared<Rep>(*rep_);
  rep->type = type;
  return Shape(std::move(rep));
}

Shape Shape::with_dims(std::span<const int64_t> dims) const {
  return array(type(), dims);
}

Shape Shape::to_static() const {
  if (!has_dynamic()) return *this;
  auto rep = std::make_shared<Rep>(*rep_);
  rep->dynamic.clear();
  for (Shape& element : rep->elements) element = element.to_static();
  return Shape(std::move(rep));
}

int64_t Shape::element_count() const {
  if (!is_array()) return 0;
  int64_t count = 1;
  for (int64_t d : rep_->dims) {
    if (d <= 0) return 0;
    count = saturating_multiply(count, d);
  }
  return count;
}

int64_t Shape::byte_size() const {
  if (is_array()) return saturating_multiply(element_count(), type_info(type()).bytes());
  int64_t sum = 0;
  for (const Shape& element : elements()) sum = saturating_add(sum, element.byte_size());
  return sum;
}

int64_t Shape::leaf_count() const {
  if (!rep_) return 0;
  if (!is_tuple()) return 1;
  if (rep_->flat) return static_cast<int64_t>(rep_->elements.size());
  int64_t sum = 0;
  for (const Shape& element : elements()) sum += element.leaf_count();
  return sum;
}

bool Shape::operator==(const Shape& o) const {
  if (rep_ == o.rep_) return true;
  if (!rep_ || !o.rep_) return false;
  const bool layouts = layout() && o.layout() ? *layout() == *o.layout() : layout() == o.layout();
  return layouts && rep_->type == o.rep_->type && rep_->dims == o.rep_->dims && rep_->dynamic == o.rep_->dynamic &&
         rep_->elements == o.rep_->elements;
}

bool Shape::same_without_layout(const Shape& o) const {
  if (rep_ == o.rep_) return true;
  if (!rep_ || !o.rep_) return false;
  if (rep_->type != o.rep_->type || rep_->dims != o.rep_->dims || rep_->dynamic != o.rep_->dynamic ||
      rep_->elements.size() != o.rep_->elements.size())
    return false;
  for (size_t i = 0; i < rep_->elements.size(); ++i)
    if (!rep_->elements[i].same_without_layout(o.rep_->elements[i])) return false;
  return true;
}

bool Shape::compatible(const Shape& o) const {
  if (rep_ == o.rep_) return true;
  if (!rep_ || !o.rep_) return false;
  if (rep_->type != o.rep_->type || rep_->dims.size() != o.rep_->dims.size() ||
      rep_->elements.size() != o.rep_->elements.size())
    return false;
  for (size_t i = 0; i < rep_->dims.size(); ++i) {
    const int64_t a = rep_->dims[i], b = o.rep_->dims[i];
    if (a != b && a != kUnbounded && b != kUnbounded) return false;
  }
  for (size_t i = 0; i < rep_->elements.size(); ++i)
    if (!rep_->elements[i].compatible(o.rep_->elements[i])) return false;
  return true;
}

bool Shape::same_dims(const Shape& o) const {
  return is_array() && o.is_array() && rep_->dims == o.rep_->dims;
}

std::string layout_to_string(const Layout& l) {
  std::string out = "{" + join(l.minor_to_major);
  std::string parts;
  if (!l.dim_level_types.empty()) parts += "D(" + l.dim_level_types + ")";
  if (!l.tiles.empty()) {
    parts += "T";
    for (const Tile& tile : l.tiles) {
      parts += '(';
      for (size_t i = 0; i < tile.dims.size(); ++i) {
        if (i) parts += ',';
        parts += tile.dims[i] == Tile::kCombine ? "*" : std::to_string(tile.dims[i]);
      }
      parts += ')';
    }
  }
  if (l.tail_padding_alignment != 1) parts += "L(" + std::to_string(l.tail_padding_alignment) + ")";
  if (l.index_type != Type::Invalid) parts += "#(" + std::string(type_info(l.index_type).text) + ")";
  if (l.pointer_type != Type::Invalid) parts += "*(" + std::string(type_info(l.pointer_type).text) + ")";
  if (l.element_size_bits) parts += "E(" + std::to_string(l.element_size_bits) + ")";
  if (l.memory_space) parts += "S(" + std::to_string(l.memory_space) + ")";
  if (!l.splits.empty()) {
    parts += "SC";
    for (const SplitConfig& split : l.splits)
      parts += "(" + std::to_string(split.dimension) + ":" + join(split.indices) + ")";
  }
  if (l.physical_shape) parts += "P(" + l.physical_shape->to_string(true) + ")";
  if (l.metadata_prefix_bytes) parts += "M(" + std::to_string(l.metadata_prefix_bytes) + ")";
  if (!parts.empty()) out += ":" + parts;
  return out + "}";
}

std::string Shape::to_string(bool with_layout) const {
  if (!rep_) return "<invalid>";
  if (is_tuple()) {
    std::string out = "(";
    for (size_t i = 0; i < rep_->elements.size(); ++i) {
      if (i) out += ", ";
      out += rep_->elements[i].to_string(with_layout);
    }
    return out + ")";
  }
  if (is_buffer()) return "b(" + rep_->elements[0].to_string(with_layout) + ")";
  std::string out(type_info(type()).text);
  out += '[';
  for (int i = 0; i < rank(); ++i) {
    if (i) out += ',';
    if (dim(i) == kUnbounded)
      out += '?';
    else
      out += (is_dynamic(i) ? "<=" : "") + std::to_string(dim(i));
  }
  out += ']';
  if (with_layout && layout() && (rank() > 0 || !layout()->is_default())) out += layout_to_string(*layout());
  return out;
}

}  // namespace collet::hlo
