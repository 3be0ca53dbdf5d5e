// SPDX-License-Identifier: Apache-2.0
// Compiles the ops that take several kernels on a grid: attention, and choices between kernels and libraries.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "sdk/codegen/compile/compiler.h"
#include "sdk/codegen/schedule/grid_library.h"

namespace collet::codegen {

void Compiler::add_library_call(LibraryCall call, std::vector<RangeId> ranges, Drafts& drafts) {
  Draft d;
  d.step.kind = StepKind::kLibrary;
  d.step.call = static_cast<uint32_t>(plan_->libraries.size());
  d.ranges = std::move(ranges);
  for (RangeId w : d.ranges) plan_->traffic_bytes += buffers_.bytes(w);
  ++plan_->kernels;
  plan_->libraries.push_back(std::move(call));
  drafts.push_back(std::move(d));
}

std::optional<Compiler::LibraryWay> Compiler::library_way(const Node& n, const std::vector<KernelPlan>& kernels) {
  const GridLibraries& libraries = target_.grid.libraries;
  if (libraries.convolutions && n.opcode == COLLET_OP_CONVOLUTION) return convolution_way(n);
  ProductMatch match;
  if (!libraries.products || kernels.size() != 1 || !match_product(kernels[0].kernel, match)) return std::nullopt;
  const LibraryProduct& p = match.product;
  if (p.batches * p.rows * p.columns * p.depth < libraries.least_product) return std::nullopt;
  const std::vector<ValueId>& buffers = kernels[0].buffers;
  return LibraryWay{p, {buffers[match.a], buffers[match.b]}, {}, {}, {}};
}

std::optional<Compiler::LibraryWay> Compiler::convolution_way(const Node& n) {
  ConvolutionMatch match;
  if (!match_convolution(graph_, n, match)) return std::nullopt;
  const LibraryConvolution& c = match.convolution;
  int64_t points = c.batch * c.output_features * c.input_features / c.groups;
  for (const LibraryConvolution::Dimension& d : c.dims) points *= d.output * d.window;
  if (points < std::max<int64_t>(target_.grid.libraries.least_product, 1)) return std::nullopt;
  LibraryWay way{c, n.operands, {}, match.result_order, match.result_dims};
  const auto make = [this](uint32_t element, Dims dims) { return temporary(element, std::move(dims)); };
  for (size_t i = 0; i < way.operands.size(); ++i) {
    const LibraryOrder& order = i == 0 ? match.input : match.filter;
    if (order.is_plain() && is_input(way.operands[i])) continue;
    KernelPlan kernel;
    if (!operand_kernel(graph_, [this](ValueId v) { return is_input(v); }, way.operands[i], order, make, kernel))
      return std::nullopt;
    way.operands[i] = kernel.writes[0];
    way.before.push_back(std::move(kernel));
  }
  return way;
}

void Compiler::add_choice(std::vector<KernelPlan>& kernels, ValueId result, LibraryWay& way, Drafts& drafts) {
  Draft choice;
  choice.step.kind = StepKind::kChoice;
  choice.step.call = plan_->choices++;
  choice.children.resize(2);
  std::optional<KernelPlan> epilogue;
  if (epilogue_ && append_epilogue(*epilogue_, result, graph_.type(result).dims, kernels.back()))
    epilogue = *std::exchange(epilogue_, nullptr);
  const ValueId last = epilogue ? epilogue->writes[0] : result;
  // The two alternatives are branches of which one runs. A value that both read need not stay live between its uses in
  // the two, and each alternative writes the whole result.
  std::set<RangeId> operands;
  const auto add_operands = [&](const std::vector<ValueId>& values) {
    for (ValueId v : values) {
      if (range_[v] != kNone || graph_.value(v).constant) operands.insert(range(v));
    }
  };
  for (const KernelPlan& k : kernels) add_operands(k.buffers);
  add_operands(way.operands);
  const int begin = ++time_;
  for (KernelPlan& k : kernels) add_kernel(k, choice.children[0]);
  const RangeId computed = range(last);
  std::map<RangeId, int> last_uses;
  for (RangeId w : operands) {
    if (buffers_.last_use(w) >= begin) last_uses[w] = buffers_.last_use(w);
  }
  const int other_begin = ++time_;
  const uint64_t traffic = plan_->traffic_bytes;
  const uint32_t count = plan_->kernels;
  add_library_way(way, result, computed, epilogue ? &*epilogue : nullptr, choice.children[1]);
  plan_->traffic_bytes = traffic;
  plan_->kernels = count;
  ++time_;
  for (const auto& [w, last_use] : last_uses) {
    if (buffers_.last_use(w) >= other_begin) buffers_.add_gap(w, last_use, other_begin, time_);
  }
  range_[last] = buffers_.add_in(computed, time_);
  drafts.push_back(std::move(choice));
}

void Compiler::add_library_way(LibraryWay& way, ValueId result, RangeId computed, KernelPlan* epilogue,
                               Drafts& drafts) {
  for (KernelPlan& kernel : way.before) add_kernel(kernel, drafts);
  ++time_;
  const ValueId last = epilogue ? epilogue->writes[0] : result;
  // The epilogue updates the result of the product in place, unless it may overwrite another operand: that one must
  // stay intact until the epilogue runs.
  const bool shares = !epilogue || epilogue->in_place.size() == 1;
  if (shares) range_[result] = range_[last] = buffers_.add_in(computed, time_);
  std::vector<RangeId> ranges;
  for (ValueId v : way.operands) ranges.push_back(read(v));
  ValueId written = result;
  std::vector<size_t> order = way.result_order;
  if (!order.empty() || !way.result_dims.empty()) {
    const ArrayType type = graph_.type(result);
    for (size_t d = order.size(); d < type.dims.size(); ++d) order.push_back(d);
    Dims dims;
    for (const size_t d : order) dims.push_back(way.result_dims.empty() ? type.dims[d] : way.result_dims[d]);
    written = temporary(type.element, dims);
  }
  ranges.push_back(write(written));
  add_library_call(std::move(way.call), std::move(ranges), drafts);
  if (written != result) {
    KernelPlan copied = result_kernel(graph_, written, order, result);
    add_kernel(copied, drafts);
  }
  if (!epilogue) return;
  // Live only from the time at which the epilogue kernel runs.
  if (!shares) range_[last] = buffers_.add_in(computed, time_ + 1);
  add_kernel(*epilogue, drafts);
}

void Compiler::add_fft(const Node& n, Drafts& drafts) {
  const auto attrs = attributes<collet_fft_attrs>(graph_, n);
  const ArrayType from = graph_.type(n.operands[0]);
  const ArrayType to = graph_.type(n.results[0]);
  LibraryFft fft;
  fft.operand_type = from.element;
  fft.result_type = to.element;
  fft.inverse = attrs.type == COLLET_FFT_IFFT || attrs.type == COLLET_FFT_IRFFT;
  for (const int64_t length : integers(graph_, attrs.length)) fft.lengths.push_back(length);
  if (to.elements == 0) {
    write(n.results[0]);
    return;
  }
  const size_t outer = from.dims.size() - fft.lengths.size();
  for (size_t d = 0; d < outer; ++d) fft.batches *= from.dims[d];
  RangeId operand = range(n.operands[0]);
  if (attrs.type == COLLET_FFT_IRFFT) {
    // For a result of real numbers the library expects an operand with Hermitian symmetry and may overwrite it. The op
    // ignores the elements that break the symmetry, so a symmetric copy is made.
    const ValueId copied = temporary(from.element, from.dims);
    KernelPlan symmetric = hermitian_kernel(graph_, n.operands[0], fft.lengths.size(), fft.lengths.back(), copied);
    add_kernel(symmetric, drafts);
    operand = range(copied);
  }
  ++time_;
  buffers_.use(operand, time_);
  double points = 1;
  for (const int64_t length : fft.lengths) points *= static_cast<double>(length);
  const ValueId result = fft.inverse ? temporary(to.element, to.dims) : n.results[0];
  const bool scales = fft.inverse;
  add_library_call(std::move(fft), {operand, write(result)}, drafts);
  if (!scales) return;
  KernelPlan scale = scale_kernel(graph_, result, 1 / points, n.results[0]);
  add_kernel(scale, drafts);
}

void Compiler::find_attentions(Groups& all) {
  const std::vector<FusionGroup>& groups = all.groups;
  const Readers& readers = all.readers;
  std::vector<bool>& done = all.done;
  // Values that are computed inside a group and not stored; another group may compute them again.
  std::set<ValueId> inside;
  for (const FusionGroup& g : groups) {
    for (ValueId v : g.values.own) {
      if (std::find(g.values.roots.begin(), g.values.roots.end(), v) == g.values.roots.end()) inside.insert(v);
    }
  }
  const InputTest inputs = [&](ValueId v) { return is_input(v) && !fusion_.alias[v] && !inside.contains(v); };
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].fused) continue;
    const NodeId product = groups[i].nodes[0];
    Attention found;
    const bool is_attention = attention_kernel(graph_, product, inputs, found.kernel) &&
                              choose_attention(found.kernel, target_.grid, found.schedule);
    if (!is_attention) continue;
    const ValueId scores = graph_.nodes[found.kernel.scores].results[0];
    std::vector<size_t> names;
    const size_t softmax = only_reader(all.block, readers, scores, &names);
    if (softmax >= i || !groups[softmax].fused || done[softmax] || groups[softmax].values.roots.size() != 1) continue;
    const auto first = readers.group_of.find(found.kernel.scores);
    if (first == readers.group_of.end() || groups[first->second].nodes.size() != 1 || done[first->second]) continue;
    const ValueId result = groups[softmax].values.roots[0];
    const std::vector<ValueId>& weights = found.kernel.weights;
    if (std::find(weights.begin(), weights.end(), result) == weights.end()) continue;
    if (only_reader(all.block, readers, result, &names) != i) continue;
    // The attention is not formed if its other inputs, such as the values, are computed from its own scores or weights.
    std::set<size_t> replaced(names.begin(), names.end());
    replaced.insert({softmax, first->second});
    const bool reads_them =
        std::any_of(found.kernel.plan.buffers.begin(), found.kernel.plan.buffers.end(), [&](ValueId v) {
          const auto group = readers.group_of.find(graph_.value(v).def);
          return group != readers.group_of.end() && replaced.contains(group->second);
        });
    if (reads_them) continue;
    for (size_t group : replaced) done[group] = true;
    attentions_.insert_or_assign(product, std::move(found));
  }
}

void Compiler::add_attention(KernelPlan& k, const AttentionSchedule& schedule, Drafts& drafts) {
  ++time_;
  const auto [it, fresh] = attention_functions_.try_emplace(k.kernel, kNoFunction);
  if (fresh) {
    const std::string name = "attention" + std::to_string(sources_.size());
    it->second = add_function({name, schedule_attention(k.kernel, schedule, target_.grid), false});
  }
  Draft d;
  d.step.kernel.function = it->second;
  add_buffers(k, d);
  describe(k.kernel, d.step);
  for (ValueId v : k.buffers) plan_->traffic_bytes += bytes_of(v);
  ++plan_->kernels;
  drafts.push_back(std::move(d));
}

}  // namespace collet::codegen
