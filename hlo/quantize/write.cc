// SPDX-License-Identifier: Apache-2.0
#include "hlo/quantize/write.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <unordered_set>
#include <utility>

#include "hlo/passes/rewriter.h"
#include "hlo/stablehlo/exporter.h"
#include "hlo/stablehlo/write.h"

// The float program is exported, then its ops are emitted anew, one after another, in a block of quantized and float values.
// A value has a stored form, a float form, or both; a conversion is emitted where a form is first asked for.

namespace collet::hlo {
namespace {

using mlir::Quantization;
using mlir::TypeRef;
using mlir::Value;

constexpr double kMostBias = 0x1p30;  // so that the sum with a product stays in s32

/// The type of the values that a quantization describes.
struct StoredType {
  Type storage = Type::S8;
  int64_t axis = -1;
  std::vector<double> scales;
  int64_t zero_point = 0, low = -128, high = 127;
  std::vector<int64_t> grid = {}, block = {};  // as of QuantizedWeights
};

StoredType stored_type(const Uniform& u) {
  return {Type::S8, -1, {u.scale}, u.zero_point, u.low, u.high};
}

StoredType accumulator_type(std::vector<double> scales, int64_t axis) {
  return {Type::S32, scales.size() == 1 ? -1 : axis,      std::move(scales),
          0,         std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
}

class Writer {
 public:
  Writer(const LayerGraph& graph, const QuantizedForm& form, mlir::Program& program, const ExportedValues& values)
      : graph_(graph), form_(form), m_(graph.module()), program_(program), values_(values), out_(m_, program) {
    for (const auto& [id, value] : values) ids_.emplace(value, id);
    for (size_t i = 0; i < graph.layers().size(); ++i) {
      const Layer& layer = graph.layers()[i];
      products_.emplace(layer.product, i);
      results_.emplace(layer.result, i);
      const bool integers = form.layers[i] == LayerForm::Integers;
      marks_.emplace(integers ? graph.compared_value(layer.result, form.placement) : layer.result, layer.product);
    }
    for (InstrId id : m_.entry_computation().order)
      if (form.placement.integer[index_of(id)] && !graph.keeps_quantization(id))
        marks_.emplace(graph.compared_value(id, form.placement), id);
  }

  Status run() {
    mlir::Op* function = program_.module->regions[0]->blocks[0]->ops[0];
    mlir::Block* block = function->regions[0]->blocks[0];
    const std::vector<mlir::Op*> old = std::exchange(block->ops, {});
    scope_.block = block;
    for (mlir::Op* op : old) COLLET_TRY(visit(op));
    drop_unused(*block);
    number_parameters(function, block->arguments.size());
    return {};
  }

 private:
  // Types and constants.

  TypeRef tensor_of(const StoredType& type, std::span<const int64_t> dims) {
    auto* q = program_.arena().make<Quantization>();
    q->storage = type.storage;
    q->axis = type.axis;
    q->grid = program_.arena().list(type.grid);
    q->block_sizes = program_.arena().list(type.block);
    q->scales = program_.arena().list(type.scales);
    q->zero_points = program_.arena().list(std::vector<int64_t>(type.scales.size(), type.zero_point));
    q->storage_min = type.low;
    q->storage_max = type.high;
    mlir::Type* element = program_.make_type(mlir::Type::Kind::Quantized);
    element->quantization = q;
    return program_.tensor(element, dims);
  }
  TypeRef tensor_of(InstrId id) { return tensor_of(stored_type(uniform_of(id)), m_[id].shape.dims()); }
  TypeRef float_of(std::span<const int64_t> dims) { return program_.tensor(program_.scalar(Type::F32), dims); }
  const Uniform& uniform_of(InstrId id) const { return form_.uniform.at(form_.placement.group[index_of(id)]); }

  Value* constant(const Literal& stored, const StoredType& type) {
    const auto dims = stored.shape().dims();
    Value* out = out_.emit_constant(scope_, stored, program_.tensor(program_.scalar(type.storage), dims));
    out->type = tensor_of(type, dims);
    return out;
  }
  Value* number(double value, std::span<const int64_t> dims, const Uniform& uniform) {
    Literal stored = Literal::zeros(Shape::array(Type::S8, dims));
    for (int64_t i = 0; i < stored.element_count(); ++i) stored.set_int(i, uniform.stored(value));
    return constant(stored, stored_type(uniform));
  }
  Value* convert(std::string_view name, Value* value, TypeRef type) {
    return out_.emit(scope_, name, {&value, 1}, {type})->results[0];
  }

  // The two forms of a value. Integers stand for numbers of f32; values of fewer bits are converted.

  Value* dequantize(Value* stored, Type type) {
    Value* real = convert("stablehlo.uniform_dequantize", stored, float_of(stored->type->dims));
    return out_.emit_convert(scope_, real, type);
  }

  Value* float_form(Value* value) {
    if (const auto found = floats_.find(value); found != floats_.end()) return found->second;
    const auto id = ids_.find(value);
    const auto stored = id == ids_.end() ? stored_.end() : stored_.find(id->second);
    if (stored == stored_.end()) return value;
    return floats_[value] = dequantize(stored->second, mlir::element_type(value->type->element));
  }
  Value* stored_form(InstrId id) {
    if (const auto found = stored_.find(id); found != stored_.end()) return found->second;
    Value* real = out_.emit_convert(scope_, float_form(values_.at(id)), Type::F32);
    return stored_[id] = convert("stablehlo.uniform_quantize", real, tensor_of(id));
  }

  void use_floats(mlir::Op* op) {
    for (Value*& operand : op->operands) operand = float_form(operand);
    for (mlir::Region* region : op->regions)
      for (mlir::Block* block : region->blocks)
        for (mlir::Op* inner : block->ops) use_floats(inner);
  }

  // Names the layer whose value the last op gives.
  void mark(InstrId id) {
    const auto found = marks_.find(id);
    if (found == marks_.end()) return;
    mlir::Op* op = scope_.block->ops.back();
    const FrontendAttribute attributes[] = {{kLayerAttribute, m_[found->second].name}, {kValueAttribute, m_[id].name}};
    std::erase_if(op->attrs, [](const mlir::NamedAttr& a) { return a.name == "mhlo.frontend_attributes"; });
    out_.set_frontend_attributes(op, attributes);
  }

  // Ops.

  Status visit(mlir::Op* op) {
    const auto found = op->results.size() == 1 ? ids_.find(op->results[0]) : ids_.end();
    if (found == ids_.end()) return keep(op);
    const InstrId id = found->second;
    if (const auto product = products_.find(id); product != products_.end()) {
      const LayerForm form = form_.layers[product->second];
      if (form == LayerForm::Integers) return integer_product(op, product->second);
      if (form == LayerForm::Weights) return weights_product(op, product->second);
    } else if (const auto sum = results_.find(id);
               sum != results_.end() && form_.layers[sum->second] == LayerForm::Integers) {
      return add_bias(sum->second);
    } else if (form_.placement.integer[index_of(id)]) {
      return integer_op(op, id);
    }
    return keep(op);
  }

  Status keep(mlir::Op* op) {
    use_floats(op);
    scope_.block->ops.push_back(op);
    if (op->results.size() != 1) return {};
    if (const auto id = ids_.find(op->results[0]); id != ids_.end()) mark(id->second);
    return {};
  }

  // An op of the exported program computes what the instruction says from the values of its operands; nothing else stands
  // between.
  Status check(const mlir::Op* op, InstrId id) const {
    const Instruction& instr = m_[id];
    bool direct = op->operands.size() == instr.operands.size();
    for (size_t i = 0; direct && i < op->operands.size(); ++i) direct = op->operands[i] == values_.at(instr.operand(i));
    if (direct) return {};
    return internal_error(std::string(instr.name) + " is not written as one op of StableHLO");
  }

  // Returns an op like this one, for other operands, whose result has another type.
  Value* emit_like(const mlir::Op* op, std::span<Value* const> operands, TypeRef type) {
    mlir::Op* out = out_.emit(scope_, op->name, operands, {type});
    for (const mlir::NamedAttr& a : op->attrs) {
      // The algorithm and the precision of a product speak of floats.
      const bool of_floats = a.name == "precision_config" || a.name == "lhs_precision_type" ||
                             a.name == "rhs_precision_type" || a.name == "accumulation_type" ||
                             a.name == "lhs_component_count" || a.name == "rhs_component_count" ||
                             a.name == "num_primitive_operations" || a.name == "allow_imprecise_accumulation";
      if (!of_floats) out->attrs.push_back(a);
    }
    return out->results[0];
  }

  Value* weights_constant(size_t layer) {
    const QuantizedWeights& w = form_.weights[layer];
    return constant(w.stored, {w.stored.type(), w.axis, w.scales, 0, w.low, w.high, w.grid, w.block});
  }

  Status weights_product(mlir::Op* op, size_t layer) {
    COLLET_TRY(check(op, graph_.layers()[layer].product));
    const auto w = static_cast<size_t>(graph_.layers()[layer].form.weights);
    const Type type = mlir::element_type(op->operands[w]->type->element);
    use_floats(op);
    op->operands[w] = dequantize(weights_constant(layer), type);
    scope_.block->ops.push_back(op);
    mark(graph_.layers()[layer].product);
    return {};
  }

  Status integer_product(mlir::Op* op, size_t number) {
    const Layer& layer = graph_.layers()[number];
    COLLET_TRY(check(op, layer.product));
    const Instruction& product = m_[layer.product];
    std::array<Value*, 2> operands{};
    std::array<std::vector<double>, 2> scales;
    for (size_t i = 0; i < 2; ++i) {
      if (static_cast<int>(i) == layer.form.weights) {
        operands[i] = weights_constant(number);
        scales[i] = form_.weights[number].scales;
      } else {
        operands[i] = stored_form(product.operand(i));
        scales[i] = {uniform_of(product.operand(i)).scale};
      }
    }
    std::vector<double> both;
    for (size_t c = 0; c < std::max(scales[0].size(), scales[1].size()); ++c)
      both.push_back(
          accumulator_scale(scales[0][scales[0].size() == 1 ? 0 : c], scales[1][scales[1].size() == 1 ? 0 : c]));
    const StoredType type = accumulator_type(std::move(both), layer.form.channel);
    Value* sum = emit_like(op, operands, tensor_of(type, product.shape.dims()));
    sums_[number] = {sum, type};
    return layer.result == layer.product ? finish_layer(number) : ok_status();
  }

  // Adds the bias, as s32 with the accumulator's scales.
  Status add_bias(size_t number) {
    const Layer& layer = graph_.layers()[number];
    auto& [sum, type] = sums_.at(number);
    const auto dims = m_[layer.result].shape.dims();
    const auto channels = static_cast<int64_t>(std::max(type.scales.size(), layer.bias.size()));
    Literal stored = Literal::zeros(Shape::array(Type::S32, {channels}));
    StoredType vector = type;
    if (vector.axis >= 0) vector.axis = 0;
    for (int64_t c = 0; c < channels; ++c) {
      const auto at = [&](const std::vector<double>& list) {
        return list[list.size() == 1 ? 0 : static_cast<size_t>(c)];
      };
      stored.set_int(c, std::llrint(std::clamp(at(layer.bias) / at(type.scales), -kMostBias, kMostBias)));
    }
    const bool spread = channels == dims[static_cast<size_t>(layer.form.channel)];
    if (!spread) stored = stored.reshaped(Shape::scalar(Type::S32));
    Value* bias = constant(stored, vector);
    const TypeRef full = tensor_of(type, dims);
    mlir::Op* wide = out_.emit(scope_, "stablehlo.broadcast_in_dim", {&bias, 1}, {full});
    const int64_t channel = layer.form.channel;
    out_.set_ints(wide, "broadcast_dimensions", {&channel, spread ? size_t{1} : size_t{0}});
    Value* const both[] = {sum, wide->results[0]};
    sum = out_.emit(scope_, "stablehlo.add", both, {full})->results[0];
    return finish_layer(number);
  }

  Status finish_layer(size_t number) {
    const InstrId id = graph_.layers()[number].result;
    Value* sum = sums_.at(number).first;
    if (form_.placement.stored[index_of(id)]) {
      stored_[id] = convert("stablehlo.uniform_quantize", sum, tensor_of(id));
      mark(id);
      return {};
    }
    floats_[values_.at(id)] = dequantize(sum, m_[id].shape.type());
    mark(id);
    return {};
  }

  Status integer_op(mlir::Op* op, InstrId id) {
    COLLET_TRY(check(op, id));
    const Instruction& instr = m_[id];
    if (instr.op == Op::CONVERT) {  // of floats to other floats
      stored_[id] = stored_form(instr.operand(0));
      return {};
    }
    const std::vector<InstrId> data = graph_.data_operands(id);
    const Uniform& uniform = uniform_of(id);
    std::vector<Value*> operands;
    for (InstrId o : instr.operands) {
      const bool stored = std::find(data.begin(), data.end(), o) != data.end();
      operands.push_back(stored ? stored_form(o)
                                : this->number(splat_value(m_, o)->as_double(0), m_[o].shape.dims(), uniform));
    }
    Value* result = emit_like(op, operands, tensor_of(id));
    if (!op->regions.empty()) add_maximum(scope_.block->ops.back(), tensor_of(stored_type(uniform), {}));
    stored_[id] = result;
    mark(id);
    return {};
  }

  // The region of a reduction that takes the largest element.
  void add_maximum(mlir::Op* op, TypeRef type) {
    mlir::Region* region = program_.make_region();
    ExportScope inner;
    inner.block = program_.make_block();
    for (uint32_t i = 0; i < 2; ++i) {
      inner.block->arguments.push_back(program_.make_value(type));
      inner.block->arguments.back()->index = i;
    }
    region->blocks.push_back(inner.block);
    op->regions.push_back(region);
    Value* most = out_.emit(inner, "stablehlo.maximum", inner.block->arguments, {type})->results[0];
    out_.emit(inner, "stablehlo.return", {&most, 1}, {});
  }

  // Constants, and what moved them, that quantized constants have replaced.
  static void drop_unused(mlir::Block& block) {
    std::unordered_set<const Value*> used;
    const auto use_all = [&](const auto& self, const mlir::Op& op) -> void {
      used.insert(op.operands.begin(), op.operands.end());
      for (const mlir::Region* region : op.regions)
        for (const mlir::Block* inner : region->blocks)
          for (const mlir::Op* one : inner->ops) self(self, *one);
    };
    std::vector<mlir::Op*> kept;
    for (size_t i = block.ops.size(); i-- > 0;) {
      mlir::Op* op = block.ops[i];
      const bool is_plain = op->name == "stablehlo.constant" || op->name == "stablehlo.broadcast_in_dim" ||
                            op->name == "stablehlo.reshape";
      if (is_plain && !used.contains(op->results[0])) continue;
      use_all(use_all, *op);
      kept.push_back(op);
    }
    block.ops.assign(kept.rbegin(), kept.rend());
  }

  // States which parameters of the float program the arguments are.
  void number_parameters(mlir::Op* function, size_t count) {
    if (form_.parameters.empty()) return;
    const mlir::AttrRef old = function->attr("arg_attrs");
    std::vector<mlir::AttrRef> items;
    for (size_t i = 0; i < count && i < form_.parameters.size(); ++i) {
      std::vector<mlir::NamedAttr> fields;
      if (old && i < old->items.size() && old->items[i])
        for (const mlir::NamedAttr& field : old->items[i]->fields)
          if (field.name != "mhlo.frontend_attributes") fields.push_back(field);
      mlir::Attr* number = program_.make_attr(mlir::Attr::Kind::Dict);
      const mlir::NamedAttr one[] = {{kParameterAttribute, out_.text_attr(std::to_string(form_.parameters[i]))}};
      number->fields = program_.arena().list<const mlir::NamedAttr>(one);
      fields.push_back({"mhlo.frontend_attributes", number});
      mlir::Attr* all = program_.make_attr(mlir::Attr::Kind::Dict);
      all->fields = program_.arena().list(fields);
      items.push_back(all);
    }
    mlir::Attr* list = program_.make_attr(mlir::Attr::Kind::Array);
    list->items = program_.arena().list(items);
    std::erase_if(function->attrs, [](const mlir::NamedAttr& a) { return a.name == "arg_attrs"; });
    out_.set(function, "arg_attrs", list);
  }

  const LayerGraph& graph_;
  const QuantizedForm& form_;
  const Module& m_;
  mlir::Program& program_;
  const ExportedValues& values_;
  Exporter out_;  // only to build ops
  ExportScope scope_;
  std::unordered_map<const Value*, InstrId> ids_;
  std::unordered_map<InstrId, size_t> products_, results_;          // numbers of layers
  std::unordered_map<InstrId, InstrId> marks_;                      // values that are compared, and their layers
  std::unordered_map<InstrId, Value*> stored_;                      // the stored form of values
  std::unordered_map<const Value*, Value*> floats_;                 // the float form, if it is not the value itself
  std::unordered_map<size_t, std::pair<Value*, StoredType>> sums_;  // of the layers
};

}  // namespace

double accumulator_scale(double lhs, double rhs) {
  return static_cast<double>(static_cast<float>(lhs * rhs));
}

Expected<std::unique_ptr<mlir::Program>> write_quantized(const LayerGraph& graph, const QuantizedForm& form) {
  ExportedValues values;
  COLLET_ASSIGN(std::unique_ptr<mlir::Program> program, export_program(graph.module(), &values));
  COLLET_TRY(Writer(graph, form, *program, values).run());
  return program;
}

}  // namespace collet::hlo
