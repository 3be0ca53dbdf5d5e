// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/mlir.h"

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
  // f8e4m3fn is f8E4M3FN in MLIR.
  std::string text(info.text);
  if (info.bits <= 8)
    for (size_t i = 1; i < text.size(); ++i)
      if (text[i] >= 'a' && text[i] <= 'z') text[i] = static_cast<char>(text[i] - 'a' + 'A');
  return text;
}

std::string number_text(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.17g", value);
  std::string text = buffer;
  if (text.find_first_of(".einf") == std::string::npos) text += ".0";
  return text;
}

std::string quantized_text(const Quantization& q) {
  std::string out = "!quant.uniform<" + scalar_text(q.storage);
  if (is_unsigned(q.storage)) out = "!quant.uniform<u" + scalar_text(q.storage).substr(1);
  out += "<" + std::to_string(q.storage_min) + ":" + std::to_string(q.storage_max) + ">";
  out += ":" + scalar_text(q.expressed);
  const auto entry = [&](size_t i) {
    return number_text(q.scales[i]) + (q.zero_points[i] ? ":" + std::to_string(q.zero_points[i]) : "");
  };
  if (q.axis < 0) return out + ", " + entry(0) + ">";
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

}  // namespace

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
