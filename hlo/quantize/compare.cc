// SPDX-License-Identifier: Apache-2.0
#include "hlo/quantize/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

#include "hlo/passes/rewriter.h"
#include "hlo/quantize/prepare.h"
#include "hlo/quantize/write.h"
#include "hlo/stablehlo/import.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

/// A value of the quantized program, and the names of what it is compared with; the latter are empty where it was found by its
/// order.
struct Tap {
  mlir::Value* value = nullptr;
  std::string layer, instruction;
};

mlir::Op* entry_of(const mlir::Program& program) {
  mlir::Op* only = nullptr;
  const mlir::Block* functions = program.module ? program.module->body() : nullptr;
  for (mlir::Op* op : functions ? functions->ops : std::vector<mlir::Op*>()) {
    if (op->name != "func.func" || !op->body()) continue;
    if (const mlir::AttrRef name = op->attr("sym_name"); name && name->text == "main") return op;
    only = only ? nullptr : op;
  }
  return only;
}

std::string_view text_field(mlir::AttrRef dictionary, std::string_view name) {
  if (dictionary)
    for (const mlir::NamedAttr& f : dictionary->fields)
      if (f.name == name && f.value) return f.value->text;
  return {};
}

bool is_product(std::string_view op) {
  return op == "stablehlo.dot_general" || op == "stablehlo.dot" || op == "stablehlo.convolution";
}

bool is_real(const mlir::Value& value) {
  const mlir::TypeRef type = value.type;
  if (!type || type->kind != mlir::Type::Kind::Tensor || !type->element) return false;
  return type->element->kind == mlir::Type::Kind::Quantized ||
         (type->element->kind == mlir::Type::Kind::Scalar && is_float(type->element->scalar));
}

std::vector<Tap> named_taps(const mlir::Block& block) {
  std::vector<Tap> out;
  for (const mlir::Op* op : block.ops) {
    const mlir::AttrRef attributes = op->attr("mhlo.frontend_attributes");
    const std::string_view layer = text_field(attributes, kLayerAttribute),
                           value = text_field(attributes, kValueAttribute);
    if (!layer.empty() && !value.empty() && op->results.size() == 1 && is_real(*op->results[0]))
      out.push_back({op->results[0], std::string(layer), std::string(value)});
  }
  return out;
}

std::vector<Tap> products(const mlir::Block& block) {
  std::vector<Tap> out;
  for (const mlir::Op* op : block.ops)
    if (is_product(op->name) && op->results.size() == 1 && is_real(*op->results[0]))
      out.push_back({op->results[0], {}, {}});
  return out;
}

/// Makes the values results of the function, as floats, behind those that it has.
void return_values(mlir::Program& program, mlir::Op* function, const std::vector<Tap>& taps) {
  mlir::Block* block = function->regions[0]->blocks[0];
  mlir::Op* last = block->ops.back();
  block->ops.pop_back();
  for (const Tap& tap : taps) {
    mlir::Value* value = tap.value;
    if (value->type->element->kind == mlir::Type::Kind::Quantized) {
      mlir::Op* op = program.make_op("stablehlo.uniform_dequantize");
      op->operands.push_back(value);
      const mlir::TypeRef element = program.scalar(value->type->element->quantization->expressed);
      value = program.add_result(op, program.tensor(element, value->type->dims));
      block->ops.push_back(op);
    }
    last->operands.push_back(value);
  }
  block->ops.push_back(last);
  const mlir::AttrRef old = function->attr("function_type");
  mlir::Type* type = program.make_type(mlir::Type::Kind::Function);
  *type = *old->type;
  std::vector<mlir::TypeRef> results;
  for (const mlir::Value* value : last->operands) results.push_back(value->type);
  type->results = program.arena().list(results);
  mlir::Attr* attr = program.make_attr(mlir::Attr::Kind::Type);
  attr->type = type;
  std::erase_if(function->attrs,
                [](const mlir::NamedAttr& a) { return a.name == "function_type" || a.name == "res_attrs"; });
  function->attrs.push_back({"function_type", attr});
}

/// Pairs the values with instructions of the float program. Returns why that cannot be done; empty: it is done.
Expected<std::string> pair_layers(const Module& module, const std::vector<Tap>& taps, bool by_order,
                                  std::vector<InstrId>& out) {
  std::unordered_map<std::string_view, InstrId> by_name;
  std::vector<InstrId> in_order;
  for (InstrId id : module.entry_computation().order) {
    by_name.emplace(module[id].name, id);
    if (module[id].op == Op::DOT || module[id].op == Op::CONVOLUTION) in_order.push_back(id);
  }
  if (by_order && in_order.size() != taps.size())
    return "the quantized program names no layers, and has " + std::to_string(taps.size()) +
           " products in its entry; the float program has " + std::to_string(in_order.size());
  for (size_t i = 0; i < taps.size(); ++i) {
    const auto found = by_name.find(taps[i].instruction);
    if (!by_order && found == by_name.end())
      return invalid_argument("the float program has no value '" + taps[i].instruction + "' of layer '" +
                              taps[i].layer + "': it is not the program that was quantized");
    const InstrId id = by_order ? in_order[i] : found->second;
    const Shape& shape = module[id].shape;
    if (!shape.is_array() || shape.element_count() != mlir::element_count(taps[i].value->type)) {
      const std::string shapes = mlir::to_string(taps[i].value->type) + ", of the float program " + shape.to_string();
      if (by_order) return "product " + std::to_string(i) + " of the quantized program is " + shapes;
      return invalid_argument("layer '" + taps[i].layer + "' of the quantized program is " + shapes);
    }
    out.push_back(id);
  }
  return std::string();
}

std::optional<size_t> first_growth(const std::vector<ComparedLayer>& layers) {
  double lowest = kGoodDecibels + kGrowthDecibels;
  for (size_t i = 0; i < layers.size(); ++i) {
    const double here = layers[i].error.decibels();
    if (here < lowest - kGrowthDecibels) return i;
    lowest = std::min(lowest, here);
  }
  return std::nullopt;
}

}  // namespace

std::vector<int64_t> float_parameters(const mlir::Program& quantized) {
  std::vector<int64_t> out;
  const mlir::Op* function = entry_of(quantized);
  const mlir::AttrRef list = function ? function->attr("arg_attrs") : nullptr;
  for (const mlir::AttrRef item : list ? list->items : List<const mlir::AttrRef>()) {
    mlir::AttrRef attributes = nullptr;
    for (const mlir::NamedAttr& f : item ? item->fields : List<const mlir::NamedAttr>())
      if (f.name == "mhlo.frontend_attributes") attributes = f.value;
    const std::string number(text_field(attributes, kParameterAttribute));
    if (number.empty() || number.size() > 9 || number.find_first_not_of("0123456789") != std::string::npos) return {};
    out.push_back(std::stoll(number));
  }
  return out;
}

Expected<LayerComparison> compare_layers(mlir::Program& quantized, const Module& float_program, const Literals& inputs,
                                         const CompileProgram& compile) {
  mlir::Op* function = entry_of(quantized);
  if (!function) return invalid_argument("the quantized program has no function 'main'");
  const size_t arguments = function->body()->arguments.size();
  // Inputs of the quantized program, and constants of the float one.
  std::vector<int64_t> numbers = float_parameters(quantized);
  if (numbers.empty())
    for (size_t i = 0; i < arguments; ++i) numbers.push_back(static_cast<int64_t>(i));
  std::map<int64_t, Literal> constants;
  for (size_t i = 0; i < inputs.size(); ++i) constants.emplace(static_cast<int64_t>(i), inputs[i]);
  Literals taken;
  for (const int64_t number : numbers) {
    if (number >= static_cast<int64_t>(inputs.size()))
      return invalid_argument("the quantized program takes parameter " + std::to_string(number) +
                              " of the float program, which has " + std::to_string(inputs.size()));
    taken.push_back(inputs[static_cast<size_t>(number)]);
    constants.erase(number);
  }
  if (numbers.size() != arguments || (constants.size() + arguments != inputs.size()))
    return invalid_argument("the parameters of the two programs do not fit each other");
  const std::unique_ptr<Module> module = float_program.clone();
  COLLET_TRY(bind_parameters(*module, constants));
  COLLET_TRY(prepare_for_quantization(*module));

  LayerComparison out;
  std::vector<Tap> taps = named_taps(*function->body());
  out.by_order = taps.empty();
  if (out.by_order) taps = products(*function->body());
  std::vector<InstrId> values;
  COLLET_ASSIGN(out.why_unpaired, pair_layers(*module, taps, out.by_order, values));
  if (out.why_unpaired.empty() && taps.empty()) out.why_unpaired = "the programs have no products";
  if (!out.why_unpaired.empty()) {
    taps.clear();
    values.clear();
  }
  return_values(quantized, function, taps);
  COLLET_ASSIGN(const std::unique_ptr<Module> imported, import_program(quantized));
  COLLET_TRY(verify_module(*imported));
  COLLET_ASSIGN(const RunProgram run_quantized, compile(*imported));
  COLLET_ASSIGN(const Literals other, run_quantized(taken));
  COLLET_ASSIGN(const RunProgram run_float, compile(*module));
  COLLET_ASSIGN(const Literals right, run_float(taken));
  if (other.size() != right.size() + taps.size())
    return invalid_argument("the quantized program has " + std::to_string(other.size() - taps.size()) +
                            " results, the float program " + std::to_string(right.size()));
  ErrorSum results;
  for (size_t i = 0; i < right.size(); ++i) {
    if (!std::ranges::equal(right[i].shape().dims(), other[i].shape().dims()))
      return invalid_argument("result " + std::to_string(i) + " of the quantized program is " +
                              other[i].shape().to_string() + ", of the float program " + right[i].shape().to_string());
    results.add(right[i], other[i]);
  }
  out.results = results.error();
  if (taps.empty()) return out;
  COLLET_ASSIGN(const RunProgram run_layers, compile(*with_results(*module, values)));
  COLLET_ASSIGN(const Literals layers, run_layers(taken));
  for (size_t i = 0; i < taps.size() && i < layers.size(); ++i) {
    const Instruction& instr = (*module)[values[i]];
    ErrorSum sum;
    sum.add(layers[i], other[right.size() + i]);
    const std::string layer = out.by_order ? std::string(instr.name) : taps[i].layer;
    const Metadata* metadata = instr.extras ? instr.extras->metadata : nullptr;
    out.layers.push_back({layer, std::string(instr.name), metadata ? std::string(metadata->op_name) : "",
                          instr.shape.to_string(), sum.error()});
  }
  out.first_growth = first_growth(out.layers);
  return out;
}

}  // namespace collet::hlo
