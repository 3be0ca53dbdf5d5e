// SPDX-License-Identifier: Apache-2.0
#include "hlo/quantize/layers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "hlo/passes/rewriter.h"

namespace collet::hlo {
namespace {

constexpr double kMostSum = 0x1p30;         // a bias of as much is still in s32
constexpr double kMostProduct = 255 * 127;  // of a value of 8 bits less its zero point, and a symmetric weight

bool is_product(const Instruction& instr) {
  return instr.op == Op::DOT || instr.op == Op::CONVOLUTION;
}

/// True for floats that numbers of f32 represent.
bool is_real(Type type) {
  return type == Type::F32 || type == Type::BF16 || type == Type::F16;
}
bool is_real(const Shape& shape) {
  return shape.is_array() && is_real(shape.type()) && !shape.has_dynamic();
}

// True if a computation is the maximum of its two parameters.
bool is_maximum(const Module& module, CompId id) {
  const Computation& body = module[id];
  return body.parameters.size() == 2 && module[body.root].op == Op::MAXIMUM && body.order.size() == 3;
}

/// Disjoint sets of instructions.
class DisjointSets {
 public:
  explicit DisjointSets(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0U); }
  uint32_t find(uint32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(uint32_t a, uint32_t b) { parent_[std::max(find(a), find(b))] = std::min(find(a), find(b)); }

 private:
  std::vector<uint32_t> parent_;
};

// Returns the number of products that one element of the result is the sum of.
double terms_of(const Module& module, const Instruction& product) {
  const Shape& rhs = module[product.operand(1)].shape;
  double count = 1;
  if (product.op == Op::DOT) {
    for (int64_t d : product.as<DotAttrs>().rhs_contracting) count *= static_cast<double>(rhs.dim(static_cast<int>(d)));
    return count;
  }
  const auto out = static_cast<int>(product.as<ConvolutionAttrs>().labels.kernel_output_feature);
  return static_cast<double>(rhs.element_count()) / static_cast<double>(std::max<int64_t>(1, rhs.dim(out)));
}

}  // namespace

Layer LayerGraph::layer_of(InstrId id) const {
  const Module& m = *module_;
  const Instruction& instr = m[id];
  Layer out;
  out.product = out.result = id;
  out.form = product_form(m, instr);
  const Shape &lhs = m[instr.operand(0)].shape, &rhs = m[instr.operand(1)].shape;
  const bool both_constant = m[instr.operand(0)].op == Op::CONSTANT && m[instr.operand(1)].op == Op::CONSTANT;
  out.weights_only = out.form.weights >= 0;
  if (!is_real(instr.shape.type()) || !is_real(lhs.type()) || !is_real(rhs.type())) {
    const Type other = is_real(lhs.type()) ? is_real(rhs.type()) ? instr.shape.type() : rhs.type() : lhs.type();
    out.why_float = "it is a product of " + std::string(type_info(other).text) + ", not of f32, bf16 or f16";
    out.weights_only = false;
  } else if (instr.shape.has_dynamic() || lhs.has_dynamic() || rhs.has_dynamic() || instr.shape.element_count() == 0 ||
             lhs.element_count() == 0 || rhs.element_count() == 0) {
    out.why_float = "a shape is dynamic, or has no elements";
    out.weights_only = false;
  } else if (lhs.type() != rhs.type()) {
    out.why_float = "it is a product of " + std::string(type_info(lhs.type()).text) + " and " +
                    std::string(type_info(rhs.type()).text);
    out.weights_only = false;
  } else if (both_constant) {
    out.why_float = "both operands are constants";
  } else if (terms_of(m, instr) * kMostProduct > kMostSum) {
    out.why_float = "a sum of " + std::to_string(static_cast<int64_t>(terms_of(m, instr))) + " products may leave s32";
  } else if (instr.op == Op::CONVOLUTION && instr.as<ConvolutionAttrs>().batch_groups > 1) {
    out.why_float = "it has groups of the batch";
  }
  if (instr.op == Op::DOT) {
    const auto& attrs = instr.as<DotAttrs>();
    const auto free = static_cast<size_t>(rhs.rank()) - attrs.rhs_batch.size() - attrs.rhs_contracting.size();
    out.symmetric = free != 1 || !attrs.rhs_batch.empty();
  }
  if (!out.why_float.empty() || out.form.channel < 0) return out;
  const auto users = users_.users(id);
  if (users.size() != 1 || id == m.entry_computation().root || m[users[0]].op != Op::ADD) return out;
  const Instruction& sum = m[users[0]];
  if (sum.operand(0) == sum.operand(1)) return out;
  const InstrId other = sum.operand(sum.operand(0) == id ? 1 : 0);
  auto bias = channel_values(m, other, out.form.channel);
  // No integer stands for NaN or infinity.
  if (!bias || !std::ranges::all_of(*bias, [](double b) { return std::isfinite(b); })) return out;
  out.bias = *std::move(bias);
  out.result = users[0];
  return out;
}

bool LayerGraph::pads_with_infinity(InstrId id) const {
  const Module& m = *module_;
  if (m[id].op != Op::PAD || !is_real(m[id].shape) || id == m.entry_computation().root) return false;
  const Literal* edge = splat_value(m, m[id].operand(1));
  const auto users = users_.users(id);
  return edge && edge->as_double(0) == -std::numeric_limits<double>::infinity() &&
         std::all_of(users.begin(), users.end(), [&](InstrId user) {
           return m[user].op == Op::REDUCE_WINDOW && m[user].operand(0) == id && is_maximum(m, m[user].called[0]);
         });
}

LayerGraph::Role LayerGraph::role_of(InstrId id) const {
  const Module& m = *module_;
  const Instruction& instr = m[id];
  if (!is_real(instr.shape)) return Role::Float;
  const auto is_real_operand = [&](size_t i) { return is_real(m[instr.operand(i)].shape); };
  const auto is_same_number = [&](size_t i) { return splat_value(m, instr.operand(i)) != nullptr; };
  switch (instr.op) {
    case Op::RESHAPE:
    case Op::TRANSPOSE:
    case Op::REVERSE:
    case Op::SLICE:
    case Op::BROADCAST:
    case Op::CONVERT:
      return is_real_operand(0) ? Role::Same : Role::Float;
    case Op::CONCATENATE:
      return Role::Same;
    case Op::PAD: {
      const Padding& padding = instr.as<PadAttrs>().padding;
      const auto cuts = [](Dims edges) {
        return std::any_of(edges.begin(), edges.end(), [](int64_t e) { return e < 0; });
      };
      const bool known = is_same_number(1) &&
                         (std::isfinite(splat_value(m, instr.operand(1))->as_double(0)) || pads_with_infinity(id));
      return known && !cuts(padding.low) && !cuts(padding.high) ? Role::Same : Role::Float;
    }
    case Op::MAXIMUM:
    case Op::MINIMUM:
      return m[instr.operand(0)].shape.same_dims(m[instr.operand(1)].shape) ? Role::Same : Role::Float;
    case Op::CLAMP:
      return is_same_number(0) && is_same_number(2) ? Role::Same : Role::Float;
    case Op::REDUCE:
    case Op::REDUCE_WINDOW:
      return instr.operands.size() == 2 && is_same_number(1) && is_maximum(m, instr.called[0]) ? Role::Same
                                                                                               : Role::Float;
    case Op::ADD:
    case Op::SUBTRACT:
      return Role::Sum;
    default:
      return Role::Float;
  }
}

std::vector<InstrId> LayerGraph::data_operands(InstrId id) const {
  const Module& m = *module_;
  const Instruction& instr = m[id];
  switch (instr.op) {
    case Op::PAD:
    case Op::REDUCE:
    case Op::REDUCE_WINDOW:
      return {instr.operand(0)};
    case Op::CLAMP:
      return {instr.operand(1)};
    case Op::MAXIMUM:
    case Op::MINIMUM: {
      std::vector<InstrId> out;
      for (InstrId o : instr.operands)
        if (!splat_value(m, o)) out.push_back(o);
      return out;
    }
    default:
      return {instr.operands.begin(), instr.operands.end()};
  }
}

Expected<LayerGraph> LayerGraph::make(const Module& module) {
  LayerGraph out(module);
  out.roles_.resize(module.instruction_limit(), Role::Float);
  for (InstrId id : module.entry_computation().order) {
    if (is_product(module[id])) out.layers_.push_back(out.layer_of(id));
    out.roles_[index_of(id)] = out.role_of(id);
  }
  for (CompId c : module.computations()) {
    if (c == module.entry()) continue;
    for (InstrId id : module[c].order)
      if (is_product(module[id])) out.inner_.emplace_back(module[id].name);
  }
  return out;
}

void LayerGraph::place_integers(const std::vector<bool>& chosen, const std::vector<bool>& kept_float,
                                Placement& out) const {
  const Module& m = *module_;
  const size_t limit = m.instruction_limit();
  const std::vector<InstrId>& order = m.entry_computation().order;
  out.stored.assign(limit, false);
  out.integer.assign(limit, false);
  // Which values could be had as integers without conversion: results of chosen layers, and of ops on such values.
  std::vector<bool> available(limit), layer_result(limit);
  for (size_t i = 0; i < layers_.size(); ++i)
    if (chosen[i]) available[index_of(layers_[i].result)] = layer_result[index_of(layers_[i].result)] = true;
  for (InstrId id : order) {
    if (roles_[index_of(id)] == Role::Float || layer_result[index_of(id)] || kept_float[index_of(id)]) continue;
    const std::vector<InstrId> data = data_operands(id);
    available[index_of(id)] =
        !data.empty() && std::all_of(data.begin(), data.end(), [&](InstrId o) { return available[index_of(o)]; });
  }
  // Which of them are needed: operands of chosen layers, and of the ops between.
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (!chosen[i]) continue;
    for (size_t o = 0; o < 2; ++o)
      if (static_cast<int>(o) != layers_[i].form.weights) out.stored[index_of(m[layers_[i].product].operand(o))] = true;
  }
  for (size_t i = order.size(); i-- > 0;) {
    const uint32_t at = index_of(order[i]);
    if (!out.stored[at] || !available[at] || layer_result[at]) continue;
    out.integer[at] = true;
    for (InstrId o : data_operands(order[i])) out.stored[index_of(o)] = true;
  }
}

Placement LayerGraph::place(const std::vector<bool>& chosen) const {
  const Module& m = *module_;
  const size_t limit = m.instruction_limit();
  const std::vector<InstrId>& order = m.entry_computation().order;
  Placement out;
  out.decides.resize(limit);
  out.symmetric.resize(limit);
  // No integer stands for the infinity of a padded value that is needed as floats, too: such a value is not stored, nor
  // are values that are made from it. Each round may find more of them.
  std::vector<bool> kept_float(limit);
  while (true) {
    place_integers(chosen, kept_float, out);
    bool found = false;
    for (InstrId id : order) {
      if (!out.integer[index_of(id)] || !pads_with_infinity(id)) continue;
      const auto users = users_.users(id);
      if (std::all_of(users.begin(), users.end(), [&](InstrId user) { return out.integer[index_of(user)]; })) continue;
      found = kept_float[index_of(id)] = true;
    }
    if (!found) break;
  }
  DisjointSets groups(limit);
  for (InstrId id : order)
    if (out.integer[index_of(id)] && keeps_quantization(id))
      for (InstrId o : data_operands(id)) groups.join(index_of(id), index_of(o));
  out.group.resize(limit);
  for (uint32_t i = 0; i < limit; ++i) out.group[i] = groups.find(i);
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (!chosen[i]) continue;
    const Layer& layer = layers_[i];
    for (size_t o = 0; o < 2; ++o) {
      if (static_cast<int>(o) == layer.form.weights) continue;
      const uint32_t group = out.group[index_of(m[layer.product].operand(o))];
      // The specification has no zero point of the right operand.
      if (layer.symmetric || o == 1) out.symmetric[group] = true;
    }
  }
  for (InstrId id : order) {
    if (!out.stored[index_of(id)]) continue;
    bool decides = id == m.entry_computation().root;
    for (InstrId user : users_.users(id)) decides |= !out.integer[index_of(user)] || !keeps_quantization(user);
    out.decides[index_of(id)] = decides;
  }
  return out;
}

InstrId LayerGraph::compared_value(InstrId result, const Placement& placement) const {
  const Module& m = *module_;
  InstrId at = result;
  while (users_.users(at).size() == 1) {
    const InstrId user = users_.users(at)[0];
    const Op op = m[user].op;
    if (!placement.integer[index_of(user)] || (op != Op::MAXIMUM && op != Op::MINIMUM && op != Op::CLAMP)) break;
    at = user;
  }
  return at;
}

}  // namespace collet::hlo
