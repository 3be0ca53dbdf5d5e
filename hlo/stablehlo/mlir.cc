// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/mlir.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "hlo/base/decimal.h"
#include "hlo/ir/shape.h"

namespace collet::hlo::mlir {
namespace {

std::string scalar_text(hlo::Type type) {
  const TypeInfo& info = type_info(type);
  switch (info.kind) {
    case Kind::Pred:
      return "i1";
    case Kind::Signed:
      return "i" + std::to_string(info.bits);
    case Kind::Unsigned:
      return "ui" + std::to_string(info.bits);
    case Kind::Complex:
      return type == hlo::Type::C64 ? "complex<f32>" : "complex<f64>";
    case Kind::Float:
      break;
    case Kind::Opaque:
      return "none";
  }
  // MLIR writes the name f8e4m3fn as f8E4M3FN.
  std::string text(info.text);
  if (info.bits <= 8)
    for (size_t i = 1; i < text.size(); ++i)
      if (text[i] >= 'a' && text[i] <= 'z') text[i] = static_cast<char>(text[i] - 'a' + 'A');
  return text;
}

std::string number_text(double value) {
  std::string text = decimal_text(value, 17);
  if (text.find_first_of(".einf") == std::string::npos) text += ".0";
  return text;
}

std::string quantized_text(const Quantization& q) {
  const std::string storage = scalar_text(q.storage);  // ui8, which MLIR writes as u8 here
  std::string out = "!quant.uniform<" + (is_unsigned(q.storage) ? "u" + storage.substr(2) : storage);
  out += "<" + std::to_string(q.storage_min) + ":" + std::to_string(q.storage_max) + ">";
  out += ":" + scalar_text(q.expressed);
  const auto entry = [&](size_t i) {
    return number_text(q.scales[i]) + (q.zero_points[i] ? ":" + std::to_string(q.zero_points[i]) : "");
  };
  if (!q.grid.empty()) {
    std::string blocks;
    for (size_t d = 0; d < q.grid.size(); ++d)
      if (q.block_sizes[d] != 0)
        blocks += (blocks.empty() ? "" : ", ") + std::to_string(d) + ":" + std::to_string(q.block_sizes[d]);
    size_t next = 0;
    const std::function<std::string(size_t)> nested = [&](size_t d) {
      if (d == q.grid.size()) return entry(next++);
      std::string list;
      for (int64_t i = 0; i < q.grid[d]; ++i) list += (i ? ", " : "") + nested(d + 1);
      return "{" + list + "}";
    };
    return out + ":{" + blocks + "}, " + nested(0) + ">";
  }
  if (q.axis < 0) return out + (q.scales.empty() ? "" : ", " + entry(0)) + ">";
  out += ":" + std::to_string(q.axis) + ", {";
  for (size_t i = 0; i < q.scales.size(); ++i) out += (i ? "," : "") + entry(i);
  return out + "}>";
}

template <typename Items>
std::string join_types(const Items& items) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) out += (i ? ", " : "") + to_string(items[i]);
  return out;
}

std::string tensor_text(TypeRef type) {
  std::string out = type->kind == Type::Kind::Buffer ? "memref<" : "tensor<";
  for (int64_t d : type->dims) out += (d == kUnbounded ? "?" : std::to_string(d)) + "x";
  out += to_string(type->element);
  if (!type->bounds.empty()) {
    out += ", #stablehlo.bounds<";
    for (size_t i = 0; i < type->bounds.size(); ++i) {
      if (i) out += ", ";
      out += type->bounds[i] == kUnbounded ? "?" : std::to_string(type->bounds[i]);
    }
    out += ">";
  }
  return out + ">";
}

Status check_tensor(const Type& type) {
  using Kind = Type::Kind;
  const Kind element = type.element ? type.element->kind : Kind::None;
  if (element != Kind::Scalar && element != Kind::Quantized && element != Kind::Index && element != Kind::Unknown)
    return invalid_argument("a tensor has no elements of type " + to_string(type.element));
  if (type.dims.size() > kMostDimensions)
    return invalid_argument("a tensor has more than " + std::to_string(kMostDimensions) + " dimensions");
  for (int64_t d : type.dims)
    if (d < 0 && d != kUnbounded) return invalid_argument("a negative dimension: " + std::to_string(d));
  if (type.bounds.empty()) return {};
  if (type.bounds.size() != type.dims.size()) return invalid_argument("one bound for each dimension is needed");
  for (size_t i = 0; i < type.bounds.size(); ++i) {
    const int64_t bound = type.bounds[i];
    if (bound == kUnbounded) continue;
    if (bound < 0) return invalid_argument("a negative bound: " + std::to_string(bound));
    if (type.dims[i] != kUnbounded) return invalid_argument("a bound of a dimension that is not dynamic");
  }
  return {};
}

Status check_quantization(const Quantization& q) {
  if (!q.grid.empty()) {
    const auto fit = [&] {
      if (q.axis != -1 || q.grid.size() > kMostDimensions || q.block_sizes.size() != q.grid.size()) return false;
      size_t count = 1;
      for (size_t d = 0; d < q.grid.size(); ++d) {
        if (q.grid[d] <= 0 || q.block_sizes[d] < 0 || (q.block_sizes[d] == 0 && q.grid[d] != 1)) return false;
        if (static_cast<uint64_t>(q.grid[d]) > q.scales.size()) return false;
        count *= static_cast<size_t>(q.grid[d]);
        if (count > q.scales.size()) return false;
      }
      return count == q.scales.size();
    };
    return is_integer(q.storage) && is_float(q.expressed) && q.scales.size() == q.zero_points.size() && fit()
               ? Status()
               : invalid_argument("the blocks of a quantized type do not fit its scales");
  }
  const bool per_axis = q.axis != -1;
  if (!is_integer(q.storage) || !is_float(q.expressed) || q.scales.size() != q.zero_points.size() || q.axis < -1 ||
      q.axis >= static_cast<int64_t>(kMostDimensions) || (per_axis ? q.scales.empty() : q.scales.size() != 1))
    return invalid_argument("a quantized type's parts do not fit each other");
  return {};
}

// The size of programs is limited in parts: every 16 bytes of strings and numbers count as one part, because they are
// copied at each use.
constexpr size_t kPartBytes = 16;
constexpr int64_t kMostAttributeParts = int64_t{1} << 20;

int64_t parts_of(AttrRef attr) {
  if (!attr) return 1;
  const size_t bytes = attr->text.size() + attr->bytes.size() + attr->ints.size() * sizeof(int64_t);
  return attr->parts + static_cast<int64_t>(bytes / kPartBytes);
}

bool same_types(List<const TypeRef> a, List<const TypeRef> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_type);
}

/// Lists of an op's attributes that a splat gives have one or two elements for each dimension of an array.
constexpr int64_t kLongestSplat = 2 * static_cast<int64_t>(kMostDimensions);

constexpr size_t kLongData = size_t{1} << 16;  // bytes from which a literal shares the elements

}  // namespace

void Program::set_bytes(Attr* attr, std::string_view bytes) {
  if (bytes.size() < kLongData) {
    attr->bytes = arena_.string(bytes);
    return;
  }
  const auto shape = Shape::array(hlo::Type::U8, {static_cast<int64_t>(bytes.size())});
  attr->data = &data_.emplace_back(Literal::from_bytes(shape, bytes.data()));
  attr->bytes = {reinterpret_cast<const char*>(attr->data->bytes()), bytes.size()};
}

Status Program::complete(Type* type) {
  switch (type->kind) {
    case Type::Kind::Tensor:
    case Type::Kind::Buffer:
    case Type::Kind::UnrankedTensor:
      return check_tensor(*type);
    case Type::Kind::Quantized:
      return check_quantization(*type->quantization);
    case Type::Kind::Tuple:
    case Type::Kind::Future:
    case Type::Kind::Function:
      for (List<const TypeRef> list : {type->inputs, type->results})
        for (TypeRef part : list) {
          if (!part) return invalid_argument("a type lacks a part");
          type->parts += part->parts;
          type->depth = std::max(type->depth, part->depth + 1);
          if (type->parts > kMostParts) break;
        }
      return charge(type);
    default:
      return {};
  }
}

Status Program::complete(Attr* attr) {
  const auto add = [attr](AttrRef part) {
    attr->parts += parts_of(part);
    if (part) attr->depth = std::max(attr->depth, part->depth + 1);
  };
  for (AttrRef item : attr->items) {
    add(item);
    if (attr->parts > kMostAttributeParts) break;
  }
  for (const NamedAttr& field : attr->fields) {
    add(field.value);
    if (attr->parts > kMostAttributeParts) break;
  }
  const bool has_parts = attr->parts > 1 || attr->kind == Attr::Kind::Raw;
  return has_parts ? budget_.charge(parts_of(attr), attr->depth, kMostAttributeParts) : ok_status();
}

Status Program::charge(AttrRef attr) {
  return budget_.charge(parts_of(attr), 0, INT64_MAX);
}

bool same_type(TypeRef a, TypeRef b) {
  if (a == b) return true;
  if (!a || !b || a->kind != b->kind) return false;
  switch (a->kind) {
    case Type::Kind::Scalar:
      return a->scalar == b->scalar;
    case Type::Kind::Tensor:
    case Type::Kind::Buffer:
    case Type::Kind::UnrankedTensor:
      return a->dims == b->dims && a->bounds == b->bounds && same_type(a->element, b->element);
    case Type::Kind::Tuple:
    case Type::Kind::Future:
    case Type::Kind::Function:
      return same_types(a->inputs, b->inputs) && same_types(a->results, b->results);
    case Type::Kind::Quantized:
    case Type::Kind::Unknown:
      return to_string(a) == to_string(b);
    default:
      return true;
  }
}

std::string to_string(TypeRef type) {
  if (!type) return "<none>";
  switch (type->kind) {
    case Type::Kind::Scalar:
      return scalar_text(type->scalar);
    case Type::Kind::Quantized:
      return quantized_text(*type->quantization);
    case Type::Kind::Tensor:
    case Type::Kind::Buffer:
      return tensor_text(type);
    case Type::Kind::UnrankedTensor:
      return "tensor<*x" + to_string(type->element) + ">";
    case Type::Kind::Token:
      return "!stablehlo.token";
    case Type::Kind::Tuple:
      return "tuple<" + join_types(type->inputs) + ">";
    case Type::Kind::Function:
      return "(" + join_types(type->inputs) + ") -> " +
             (type->results.size() == 1 ? to_string(type->results[0]) : "(" + join_types(type->results) + ")");
    case Type::Kind::None:
      return "none";
    case Type::Kind::Index:
      return "index";
    case Type::Kind::Future:
      return "!stablehlo.future<" + join_types(type->inputs) + ">";
    case Type::Kind::Witness:
      return "!shape.witness";
    case Type::Kind::Unknown:
      return std::string(type->text);
  }
  return "?";
}

TypeRef list_type(TypeRef element) {
  const bool usual = element && element->kind == Type::Kind::Scalar &&
                     (element->scalar == hlo::Type::S64 || element->scalar == hlo::Type::PRED);
  return usual ? nullptr : element;
}

hlo::Type element_type(TypeRef element) {
  if (!element) return hlo::Type::Invalid;
  switch (element->kind) {
    case Type::Kind::Scalar:
      return element->scalar;
    case Type::Kind::Quantized:
      return element->quantization->storage;
    case Type::Kind::Index:
      return hlo::Type::S64;
    default:
      return hlo::Type::Invalid;
  }
}

int element_bytes(TypeRef element) {
  return type_info(element_type(element)).bytes();
}

bool is_list(AttrRef attr) {
  if (!attr || attr->kind != Attr::Kind::Dense || attr->type->element->kind == Type::Kind::Quantized) return false;
  const hlo::Type element = element_type(attr->type->element);
  const size_t rank = attr->type->dims.size();
  return (is_integer(element) || element == hlo::Type::PRED) && (rank == 1 || rank == 2) &&
         (!attr->splat || element_count(attr->type) <= kLongestSplat);
}

Attr* as_list(AttrRef dense, Program& program) {
  const hlo::Type element = element_type(dense->type->element);
  const auto width = static_cast<size_t>(type_info(element).bytes());
  std::vector<int64_t> values(static_cast<size_t>(element_count(dense->type)));
  for (size_t i = 0; i < values.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, dense->bytes.data() + (dense->splat ? 0 : i) * width, width);
    values[i] = is_signed(element) ? sign_extend(bits, 8 * static_cast<int>(width)) : static_cast<int64_t>(bits);
  }
  Attr* out = program.make_attr(element == hlo::Type::PRED ? Attr::Kind::Bools : Attr::Kind::Ints);
  out->ints = program.arena().list(values);
  out->dims = program.arena().list<const int64_t>(std::span<const int64_t>(dense->type->dims));
  out->type = list_type(dense->type->element);
  return out;
}

int64_t sign_extend(uint64_t bits, int width) {
  if (width >= 64 || width <= 0) return static_cast<int64_t>(bits);
  const uint64_t sign = uint64_t{1} << (width - 1);
  bits &= (uint64_t{1} << width) - 1;
  return static_cast<int64_t>((bits ^ sign) - sign);
}

void extend_elements(std::string& bytes, hlo::Type type) {
  const TypeInfo& info = type_info(type);
  if (info.kind == Kind::Pred) {
    for (char& c : bytes) c = static_cast<char>(c != 0);
    return;
  }
  if (info.bits >= 8 || !is_integer(type)) return;
  for (char& c : bytes) {
    const auto raw = static_cast<uint8_t>(static_cast<uint8_t>(c) & ((1u << info.bits) - 1));
    c = static_cast<char>(is_signed(type) ? sign_extend(raw, info.bits) : raw);
  }
}

int64_t element_count(TypeRef tensor) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t d : tensor->dims) {
    if (d < 0) return -1;
    empty |= d == 0;
    if (d > 0 && __builtin_mul_overflow(count, d, &count)) return -1;
  }
  return empty ? 0 : count;
}

}  // namespace collet::hlo::mlir
