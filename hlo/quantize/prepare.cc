// SPDX-License-Identifier: Apache-2.0
#include "hlo/quantize/prepare.h"

#include <algorithm>
#include <string>
#include <utility>

#include "hlo/ops/evaluate.h"
#include "hlo/passes/pipeline.h"
#include "hlo/passes/rewriter.h"

namespace collet::hlo {
namespace {

// Weights are moved and scaled when the program is quantized, also those that are larger than constants which are folded
// for each compilation.
constexpr int64_t kLargestWeights = int64_t{1} << 32, kMostWork = int64_t{1} << 30;

bool contains(Dims dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

/// Evaluates single ops that call nothing.
class PlainContext : public EvalContext {
 public:
  Expected<Literal> call(CompId, std::span<Literal>) override { return unimplemented("it calls a computation"); }
  std::pair<uint64_t, uint64_t> next_rng_state(uint64_t) override { return {}; }
};

// Returns a constant, or equal elements that a broadcast gives, as an array.
std::optional<Literal> known_value(const Module& module, InstrId id) {
  const Instruction& instr = module[id];
  if (instr.op == Op::CONSTANT) return module.literal(instr);
  const Literal* same = splat_value(module, id);
  if (!same) return std::nullopt;
  Literal out = Literal::zeros(instr.shape.without_layout());
  for (int64_t i = 0; i < out.element_count(); ++i) out.set_double(i, same->as_double(0));
  return out;
}

// Computes elementwise ops on constants and broadcasts of numbers, which fold_constants leaves: the statistics of a batch
// norm with its epsilon, say.
Expected<bool> fold_elementwise(Module& module) {
  PlainContext context;
  Rewriter rewriter(module, module.entry());
  for (InstrId id : rewriter.instructions()) {
    const Instruction& instr = rewriter.enter(id);
    std::vector<Literal> operands;
    bool any_constant = false;
    if (is_elementwise(instr.op) && instr.shape.is_array() && is_float(instr.shape.type()))
      for (InstrId o : instr.operands) {
        any_constant |= module[o].op == Op::CONSTANT && module[o].shape.rank() > 0;
        if (module[o].op != Op::CONSTANT && !splat_value(module, o)) break;
        if (auto value = known_value(module, o)) operands.push_back(*std::move(value));
      }
    if (!any_constant || operands.size() != instr.operands.size()) {
      rewriter.keep(id);
      continue;
    }
    Expected<Literal> value = evaluate({module, instr, operands, context});
    if (value.ok())
      rewriter.replace(id, rewriter.builder().constant(*std::move(value)));
    else
      rewriter.keep(id);
  }
  const bool changed = rewriter.finish();
  COLLET_TRY(rewriter.builder().status());
  return changed;
}

/// A chain of ops by channel behind a product: product * factor + offset.
struct Affine {
  InstrId end = InstrId::None;  ///< the last op of the chain
  std::vector<double> factor, offset;
  int length = 0;
  bool scales = false;  ///< there is more than one sum

  explicit Affine(int64_t channels)
      : factor(static_cast<size_t>(channels), 1), offset(static_cast<size_t>(channels), 0) {}

  // Appends an op if it is a sum, difference, product or quotient with numbers of channels.
  bool append(const Module& module, InstrId value, InstrId user, int64_t channel) {
    const Instruction& instr = module[user];
    const bool known =
        instr.op == Op::ADD || instr.op == Op::SUBTRACT || instr.op == Op::MULTIPLY || instr.op == Op::DIVIDE;
    if (!known || instr.operand(0) == instr.operand(1)) return false;
    const bool left = instr.operand(0) == value;
    if (instr.op == Op::DIVIDE && !left) return false;
    const auto numbers = channel_values(module, instr.operand(left ? 1 : 0), channel);
    if (!numbers) return false;
    for (size_t c = 0; c < factor.size(); ++c) {
      const double x = (*numbers)[numbers->size() == 1 ? 0 : c];
      if (instr.op == Op::ADD) {
        offset[c] += x;
      } else if (instr.op == Op::SUBTRACT) {
        factor[c] *= left ? 1 : -1;
        offset[c] = left ? offset[c] - x : x - offset[c];
      } else {
        factor[c] = instr.op == Op::MULTIPLY ? factor[c] * x : factor[c] / x;
        offset[c] = instr.op == Op::MULTIPLY ? offset[c] * x : offset[c] / x;
      }
    }
    scales |= instr.op != Op::ADD || length > 0;
    ++length;
    end = user;
    return true;
  }
};

Affine chain_behind(const Module& module, const UserMap& users, InstrId product, int64_t channel) {
  Affine out(module[product].shape.dim(static_cast<int>(channel)));
  for (InstrId at = product; users.users(at).size() == 1 && at != module.entry_computation().root;) {
    const InstrId user = users.users(at)[0];
    if (!out.append(module, at, user, channel)) break;
    at = user;
  }
  return out;
}

/// Returns the weights with each channel multiplied by its factor.
Literal scaled_weights(const Literal& weights, int64_t axis, const std::vector<double>& factor) {
  Literal out = Literal::zeros(weights.shape());
  int64_t inner = 1;
  for (int d = static_cast<int>(axis) + 1; d < weights.shape().rank(); ++d) inner *= weights.shape().dim(d);
  const auto channels = static_cast<int64_t>(factor.size());
  for (int64_t i = 0; i < weights.element_count(); ++i)
    out.set_double(i, weights.as_double(i) * factor[static_cast<size_t>(i / inner % channels)]);
  return out;
}

// Rewrites (product * factor + offset) as a product of scaled weights and one sum.
Expected<bool> fold_channels(Module& module) {
  const UserMap users(module, module.entry());
  std::map<InstrId, std::pair<InstrId, Affine>> chains;  // by their ends
  for (InstrId id : module.entry_computation().order) {
    const Instruction& instr = module[id];
    if (instr.op != Op::DOT && instr.op != Op::CONVOLUTION) continue;
    const auto is_f32 = [&](const Shape& shape) { return shape.type() == Type::F32; };
    if (!is_f32(instr.shape) || !is_f32(module[instr.operand(0)].shape) || !is_f32(module[instr.operand(1)].shape))
      continue;
    const ProductForm form = product_form(module, instr);
    if (form.weights < 0 || form.axis < 0 || form.channel < 0) continue;
    Affine chain = chain_behind(module, users, id, form.channel);
    if (chain.scales) chains.emplace(chain.end, std::pair(id, std::move(chain)));
  }
  if (chains.empty()) return false;
  Rewriter rewriter(module, module.entry());
  for (InstrId id : rewriter.instructions()) {
    const Instruction& instr = rewriter.enter(id);
    const auto found = chains.find(id);
    if (found == chains.end()) {
      rewriter.keep(id);
      continue;
    }
    const auto& [product_id, chain] = found->second;
    Builder& b = rewriter.builder();
    const Instruction& product = module[rewriter.now(product_id)];
    const ProductForm form = product_form(module, product);
    const auto w = static_cast<size_t>(form.weights);
    b.set_origin(&product);
    std::vector<InstrId> operands(product.operands.begin(), product.operands.end());
    operands[w] = b.constant(scaled_weights(module.literal(module[operands[w]]), form.axis, chain.factor));
    const InstrId scaled = b.op(product.op, product.shape, operands, product.attrs);
    Literal offset = Literal::zeros(Shape::array(Type::F32, {static_cast<int64_t>(chain.offset.size())}));
    for (size_t c = 0; c < chain.offset.size(); ++c) offset.set_double(static_cast<int64_t>(c), chain.offset[c]);
    b.set_origin(&instr);
    const int64_t along[] = {form.channel};
    rewriter.replace(id, b.add(scaled, b.broadcast(b.constant(std::move(offset)), instr.shape.dims(), along)));
  }
  const bool changed = rewriter.finish();
  COLLET_TRY(rewriter.builder().status());
  return changed;
}

}  // namespace

Status bind_parameters(Module& module, const std::map<int64_t, Literal>& values) {
  if (values.empty()) return {};
  std::vector<InstrId>& parameters = module.entry_computation().parameters;
  std::vector<int64_t> number(parameters.size(), -1);  // the new ones
  std::vector<InstrId> kept;
  ModuleHeader& header = module.header();
  std::vector<Shape> kept_shapes;
  for (size_t i = 0; i < parameters.size(); ++i) {
    Instruction& instr = module[parameters[i]];
    const auto found = values.find(static_cast<int64_t>(i));
    if (found != values.end()) {
      if (!instr.shape.is_array() || !found->second.shape().same_without_layout(instr.shape))
        return invalid_argument("parameter " + std::to_string(i) + " is " + instr.shape.to_string() +
                                "; its constant has the shape " + found->second.shape().to_string());
      instr.op = Op::CONSTANT;
      instr.attrs = module.constant_attrs(found->second);
      continue;
    }
    number[i] = static_cast<int64_t>(kept.size());
    auto* attrs = module.make<ParameterAttrs>();
    attrs->number = number[i];
    instr.attrs = attrs;
    kept.push_back(parameters[i]);
    if (header.has_entry_layout) kept_shapes.push_back(header.entry_parameters[i]);
  }
  parameters = std::move(kept);
  if (header.has_entry_layout) header.entry_parameters = std::move(kept_shapes);
  header.spmd_to_parameters.clear();
  const auto renumber = [&](auto& list) {
    std::erase_if(list, [&](const auto& one) { return number[static_cast<size_t>(one.parameter)] < 0; });
    for (auto& one : list) one.parameter = number[static_cast<size_t>(one.parameter)];
  };
  renumber(header.aliases);
  renumber(header.donors);
  return {};
}

Status prepare_for_quantization(Module& module) {
  PassContext context;
  context.replica_count = module.header().replica_count;
  context.partition_count = module.header().num_partitions;
  if (context.replica_count * context.partition_count > 1)
    return invalid_argument("a program of several participants cannot be quantized");
  context.largest_folded_bytes = kLargestWeights;
  context.largest_folded_work = kMostWork;
  context.unroll_layers();  // each iteration has weights and ranges of its own
  COLLET_TRY(prepare(module, context).status());
  PassContext norms = context;
  norms.claim = [](const Module& m, InstrId id) {
    return m[id].op == Op::BATCH_NORM_INFERENCE ? Claim::Expand : Claim::Take;
  };
  COLLET_ASSIGN(const bool expanded, expand_batch_norm(module, norms));
  if (expanded) COLLET_TRY(optimize(module, context).status());
  COLLET_ASSIGN(const bool computed, fold_elementwise(module));
  if (computed) COLLET_TRY(optimize(module, context).status());
  COLLET_ASSIGN(const bool folded, fold_channels(module));
  if (folded) COLLET_TRY(optimize(module, context).status());
  return {};
}

std::optional<std::vector<double>> channel_values(const Module& module, InstrId id, int64_t dim) {
  const Instruction& instr = module[id];
  if (const Literal* same = splat_value(module, id)) return std::vector<double>{same->as_double(0)};
  const bool spread = instr.op == Op::BROADCAST;
  const Instruction& constant = spread ? module[instr.operand(0)] : instr;
  if (constant.op != Op::CONSTANT || !constant.shape.is_array() || dim < 0 || dim >= instr.shape.rank())
    return std::nullopt;
  const Literal& value = module.literal(constant);
  // The dimension of the constant that runs along `dim`; every other one has to be of size 1, or to change nothing.
  int64_t own = spread ? -1 : dim;
  if (spread) {
    const Dims places = instr.as<BroadcastAttrs>().dimensions;
    for (size_t d = 0; d < places.size(); ++d)
      if (places[d] == dim) own = static_cast<int64_t>(d);
  }
  const int64_t count = own < 0 ? 1 : value.shape().dim(static_cast<int>(own));
  int64_t inner = 1;
  for (int d = static_cast<int>(own) + 1; own >= 0 && d < value.shape().rank(); ++d) inner *= value.shape().dim(d);
  std::vector<double> out(static_cast<size_t>(count));
  std::vector<bool> seen(out.size(), false);
  for (int64_t i = 0; i < value.element_count(); ++i) {
    const auto c = static_cast<size_t>(own < 0 ? 0 : i / inner % count);
    const double x = value.as_double(i);
    if (seen[c] && out[c] != x) return std::nullopt;
    out[c] = x;
    seen[c] = true;
  }
  return out;
}

ProductForm product_form(const Module& module, const Instruction& product) {
  ProductForm out;
  const auto is_constant = [&](size_t i) { return module[product.operand(i)].op == Op::CONSTANT; };
  if (is_constant(0) == is_constant(1)) return out;
  out.weights = is_constant(1) ? 1 : 0;
  const Shape& weights = module[product.operand(static_cast<size_t>(out.weights))].shape;
  if (product.op == Op::CONVOLUTION) {
    const DimLabels& labels = product.as<ConvolutionAttrs>().labels;
    if (out.weights == 1) {
      out.axis = labels.kernel_output_feature;
      out.channel = labels.output_feature;
    }
    return out;
  }
  const auto& attrs = product.as<DotAttrs>();
  const Dims batch = out.weights == 1 ? attrs.rhs_batch : attrs.lhs_batch,
             summed = out.weights == 1 ? attrs.rhs_contracting : attrs.lhs_contracting;
  int64_t free = 0;
  for (int64_t d = 0; d < weights.rank(); ++d) {
    if (contains(batch, d) || contains(summed, d)) continue;
    ++free;
    out.axis = d;
  }
  if (free != 1) {
    out.axis = -1;
    return out;
  }
  // A result has the dimensions of the batch, then the free ones of the left operand, then those of the right one.
  out.channel = out.weights == 1 ? product.shape.rank() - 1 : static_cast<int64_t>(batch.size());
  return out;
}

}  // namespace collet::hlo
