// SPDX-License-Identifier: Apache-2.0
#include "hlo/quantize/quantize.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "hlo/passes/rewriter.h"
#include "hlo/stablehlo/import.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

constexpr QuantizationScheme kSchemes[] = {
    {"w8a8", "weights and activations in 8 bits: products are computed on integers; activations have zero points", 8,
     true, false},
    {"w8a8-symmetric", "the same without zero points", 8, true, true},
    {"w8", "weights in 8 bits, products on floats", 8, false, false},
    {"w4", "weights in 4 bits, products on floats", 4, false, false},
};

constexpr int64_t kMostObserved = int64_t{256} << 20;  // bytes of values that one run returns
constexpr size_t kErrorBatches = 4;                    // with which errors are measured
constexpr double kMostBias = 0x1p30;                   // in steps of the accumulator

std::string op_name_of(const Instruction& instr) {
  const Metadata* metadata = instr.extras ? instr.extras->metadata : nullptr;
  return metadata ? std::string(metadata->op_name) : "";
}

bool matches(const std::string& pattern, const Instruction& instr) {
  const auto fits = [&](const std::string& text) { return fnmatch(pattern.c_str(), text.c_str(), 0) == 0; };
  return fits(std::string(instr.name)) || fits(std::string(op_info(instr.op).text)) || fits(op_name_of(instr));
}

/// Returns the dimension of a product's weights, operand number `operand`, that blocks run along: the last one that is summed
/// over, of a convolution the input features.
int64_t summed_dimension(const Instruction& product, size_t operand) {
  if (product.op == Op::CONVOLUTION) return product.as<ConvolutionAttrs>().labels.kernel_input_feature;
  const auto& attrs = product.as<DotAttrs>();
  const Dims dims = operand == 0 ? attrs.lhs_contracting : attrs.rhs_contracting;
  return dims.empty() ? -1 : dims[dims.size() - 1];
}

/// Returns how many elements of each dimension of the weights share a scale, in blocks of `size` along `summed`; empty if
/// these do not divide it, or if there would be one.
std::vector<int64_t> blocks_of(const Instruction& product, const Shape& weights, int64_t summed, int64_t size) {
  if (size <= 0 || summed < 0) return {};
  const int64_t extent = weights.dim(static_cast<int>(summed));
  if (extent <= size || extent % size != 0) return {};
  std::vector<int64_t> out(static_cast<size_t>(weights.rank()), 1);
  if (product.op == Op::CONVOLUTION)
    for (const int64_t d : product.as<ConvolutionAttrs>().labels.kernel_spatial)
      out[static_cast<size_t>(d)] = weights.dim(static_cast<int>(d));
  out[static_cast<size_t>(summed)] = size;
  return out;
}

/// Returns the least f32 that is not below `x`.
double above_in_f32(double x) {
  const auto nearest = static_cast<float>(x);
  return nearest >= x ? nearest : std::nextafter(nearest, std::numeric_limits<float>::infinity());
}

/// Returns the weights of a layer in `bits` bits; `block` says how many elements of each dimension share a scale, each a
/// divisor of the dimension. A scale is at least `least` (one for each scale, or empty).
QuantizedWeights in_blocks(const Literal& weights, const std::vector<int64_t>& block, int bits,
                           const std::vector<double>& least = {}) {
  QuantizedWeights out;
  out.high = (int64_t{1} << (bits - 1)) - 1;
  out.low = -out.high;
  out.stored = Literal::zeros(weights.shape().without_layout().with_type(bits == 8 ? Type::S8 : Type::S4));
  out.block = block;
  int64_t count = 1;
  for (size_t d = 0; d < block.size(); ++d) {
    out.grid.push_back(weights.shape().dim(static_cast<int>(d)) / block[d]);
    count *= out.grid[d];
  }
  const auto place = [&](int64_t i) {
    int64_t at = 0, step = 1;
    for (size_t d = block.size(); d-- > 0; step *= out.grid[d]) {
      const int64_t extent = weights.shape().dim(static_cast<int>(d));
      at += i % extent / block[d] * step;
      i /= extent;
    }
    return static_cast<size_t>(at);
  };
  std::vector<double> magnitude(static_cast<size_t>(count), 0);
  for (int64_t i = 0; i < weights.element_count(); ++i)
    magnitude[place(i)] = std::max(magnitude[place(i)], std::abs(weights.as_double(i)));
  for (size_t c = 0; c < magnitude.size(); ++c) {
    out.scales.push_back(symmetric_scale(magnitude[c], bits));
    if (!least.empty()) out.scales[c] = std::max(out.scales[c], above_in_f32(least[c]));
  }
  for (int64_t i = 0; i < weights.element_count(); ++i)
    out.stored.set_int(i, Uniform{out.scales[place(i)], 0, out.low, out.high}.stored(weights.as_double(i)));
  return out;
}

/// Does the same with a scale for each index of dimension `axis`; -1: with one scale.
QuantizedWeights in_channels(const Literal& weights, int64_t axis, int bits, const std::vector<double>& least) {
  std::vector<int64_t> block;
  for (int d = 0; d < weights.shape().rank(); ++d) {
    const int64_t extent = std::max<int64_t>(1, weights.shape().dim(d));
    block.push_back(d == axis ? 1 : extent);
  }
  QuantizedWeights out = in_blocks(weights, block, bits, least);
  out.axis = out.scales.size() == 1 ? -1 : axis;
  out.grid.clear();
  out.block.clear();
  return out;
}

class Quantizer {
 public:
  Quantizer(LayerGraph& graph, std::span<const Literals> batches, const QuantizeOptions& options,
            const CompileProgram& compile, const ReportProgress& progress)
      : graph_(graph),
        m_(graph.module()),
        batches_(batches),
        options_(options),
        compile_(compile),
        progress_(progress) {}

  Expected<QuantizedProgram> run() {
    if (options_.block != 0 && options_.scheme->integers)
      return invalid_argument("products of integers have no weights in blocks");
    COLLET_TRY(choose_layers());
    if (options_.scheme->integers) {
      COLLET_TRY(observe());
      // The sums with the biases that are left out may be other values that are stored.
      if (leave_out_biases()) COLLET_TRY(observe());
    }
    COLLET_TRY(measure_floats());
    if (options_.layer_errors || options_.mixed || options_.max_error) COLLET_TRY(measure_layers());
    COLLET_TRY(keep_sensitive());
    QuantizedProgram out;
    COLLET_ASSIGN(const QuantizedForm form, form_of(chosen_));
    COLLET_ASSIGN(out.program, write_quantized(graph_, form));
    if (!batches_.empty()) {
      COLLET_ASSIGN(const ValueError error, error_of(*out.program));
      report_.error = error;
      if (error.not_finite > 0)
        report_.notes.push_back(
            std::to_string(error.not_finite) +
            " elements of the results are NaN or infinite in the float program, too; the error is that "
            "of the others");
    }
    report(form);
    out.report = std::move(report_);
    return out;
  }

 private:
  void tell(std::string_view what, size_t done, size_t total) const {
    if (progress_) progress_(what, done, total);
  }
  size_t error_batches() const { return std::min(kErrorBatches, batches_.size()); }

  // Which layers the scheme can quantize, and the user wants quantized.
  Status choose_layers() {
    const std::vector<Layer>& layers = graph_.layers();
    why_.resize(layers.size());
    chosen_.resize(layers.size());
    std::vector<bool> used(options_.keep_float.size());
    bool any = false;
    std::string reasons;
    for (size_t i = 0; i < layers.size(); ++i) {
      const Layer& layer = layers[i];
      if (options_.scheme->integers)
        why_[i] = layer.why_float;
      else if (!layer.weights_only)
        why_[i] = layer.why_float.empty() ? "it has no constant operand" : layer.why_float;
      for (size_t k = 0; k < options_.keep_float.size(); ++k) {
        const bool named =
            matches(options_.keep_float[k], m_[layer.product]) || matches(options_.keep_float[k], m_[layer.result]);
        if (!named) continue;
        used[k] = true;
        why_[i] = "kept float by '" + options_.keep_float[k] + "'";
      }
      chosen_[i] = why_[i].empty();
      any |= chosen_[i];
      if (!chosen_[i] && reasons.empty()) reasons = std::string(m_[layer.product].name) + ": " + why_[i];
    }
    for (size_t k = 0; k < used.size(); ++k)
      if (!used[k]) return invalid_argument("'" + options_.keep_float[k] + "' matches no product of the program");
    if (any) return {};
    if (layers.empty() && !graph_.inner_products().empty())
      return invalid_argument("nothing to quantize: all products stand in loops or branches, " +
                              graph_.inner_products()[0] + " among them");
    return invalid_argument("nothing to quantize: " + (layers.empty() ? "the program has no dot and no convolution"
                                                                      : "no product can be quantized; " + reasons));
  }

  // Runs the float program so that it returns the values that may be stored, and shows these to observers.
  Status observe() {
    if (batches_.empty()) return invalid_argument("the scheme needs data for the ranges of activations");
    const Placement placement = graph_.place(chosen_);
    observers_.clear();
    ranges_.clear();
    std::vector<std::vector<InstrId>> rounds;
    int64_t bytes = kMostObserved;
    for (InstrId id : m_.entry_computation().order) {
      if (!placement.stored[index_of(id)] || graph_.pads_with_infinity(id)) continue;
      bytes += m_[id].shape.byte_size();
      if (bytes > kMostObserved) {
        rounds.emplace_back();
        bytes = m_[id].shape.byte_size();
      }
      rounds.back().push_back(id);
      observers_[id];
    }
    const size_t passes = options_.method == CalibrationMethod::MinMax ? 1 : 2;
    size_t done = 0;
    for (const std::vector<InstrId>& ids : rounds) {
      COLLET_ASSIGN(const RunProgram program, compile_(*with_results(m_, ids)));
      for (size_t pass = 0; pass < passes; ++pass)
        for (size_t b = 0; b < batches_.size(); ++b) {
          COLLET_ASSIGN(const Literals values, program(batches_[b]));
          if (values.size() != ids.size()) return internal_error("the program returned other values than asked for");
          for (size_t i = 0; i < ids.size(); ++i) {
            Observer& observer = observers_[ids[i]];
            if (pass == 1) {
              observer.see_values(values[i]);
            } else if (const Status seen = observer.see_range(values[i]); !seen.ok()) {
              return seen.with_prefix("batch " + std::to_string(b) + ": " + std::string(m_[ids[i]].name) + ": ");
            }
          }
          tell("calibrating", ++done, rounds.size() * passes * batches_.size());
        }
    }
    report_.batches = batches_.size();
    return {};
  }

  const ClippedRange& range_of(InstrId id, bool symmetric) {
    const auto key = std::pair(id, symmetric);
    const auto found = ranges_.find(key);
    if (found != ranges_.end()) return found->second;
    return ranges_[key] = choose_range(observers_.at(id), options_.method, options_.percentile, symmetric);
  }

  // The range of each group, and the quantization.
  std::unordered_map<uint32_t, ClippedRange> group_ranges(const Placement& placement) {
    std::unordered_map<uint32_t, ClippedRange> out;
    for (InstrId id : m_.entry_computation().order) {
      const uint32_t at = index_of(id);
      if (!placement.stored[at]) continue;
      ClippedRange& group = out[placement.group[at]];
      if (placement.decides[at]) {
        const ClippedRange& own = range_of(id, is_symmetric(placement, placement.group[at]));
        group.low = std::min(group.low, own.low);
        group.high = std::max(group.high, own.high);
        group.clipped = std::max(group.clipped, own.clipped);
      }
    }
    return out;
  }
  bool is_symmetric(const Placement& placement, uint32_t group) const {
    return options_.scheme->symmetric || placement.symmetric[group];
  }

  /// Returns the dimension of a layer's weights that has a scale for each index; -1: they have one scale.
  int64_t weights_axis(const Layer& layer) const {
    // Scales along the left operand, and along one of several dimensions, would leave the integer form.
    return options_.scheme->integers && layer.form.weights == 0 ? -1 : layer.form.axis;
  }

  /// Returns the scales that the weights of a layer need so that its bias fits the accumulator; none without a bias.
  std::vector<double> least_scales(const Layer& layer, const QuantizedForm& form) const {
    if (layer.bias.empty() || layer.form.weights < 0) return {};
    const auto operand = static_cast<size_t>(layer.form.weights);
    const Instruction& product = m_[layer.product];
    const Uniform& other = form.uniform.at(form.placement.group[index_of(product.operand(1 - operand))]);
    const int64_t axis = weights_axis(layer);
    const Shape& weights = m_[product.operand(operand)].shape;
    const auto channels = static_cast<size_t>(axis < 0 ? 1 : weights.dim(static_cast<int>(axis)));
    std::vector<double> out(channels, 0);
    for (size_t c = 0; c < std::max(layer.bias.size(), channels); ++c) {
      double& one = out[channels == 1 ? 0 : c];
      one = std::max(one, std::abs(layer.bias[layer.bias.size() == 1 ? 0 : c]) / kMostBias / other.scale);
    }
    return out;
  }

  /// Leaves out biases of weights that have one scale for all channels, where the largest would make that scale too coarse for the
  /// others. Returns whether there are any.
  bool leave_out_biases() {
    QuantizedForm form;
    form.placement = graph_.place(chosen_);
    set_uniforms(form);
    bool any = false;
    for (size_t i = 0; i < graph_.layers().size(); ++i) {
      const Layer& layer = graph_.layers()[i];
      if (!chosen_[i] || layer.bias.size() < 2 || weights_axis(layer) >= 0) continue;
      const std::vector<double> least = least_scales(layer, form);
      if (least.empty()) continue;
      const Literal& weights = m_.literal(m_[m_[layer.product].operand(static_cast<size_t>(layer.form.weights))]);
      double magnitude = 0;
      for (int64_t e = 0; e < weights.element_count(); ++e)
        magnitude = std::max(magnitude, std::abs(weights.as_double(e)));
      if (least[0] <= symmetric_scale(magnitude, options_.scheme->weight_bits)) continue;
      report_.notes.push_back(
          "bias of " + std::string(m_[layer.product].name) +
          ": the weights have one scale, which the largest element would make too coarse: the sum is no "
          "part of the layer");
      graph_.leave_out_bias(i);
      any = true;
    }
    return any;
  }

  void set_uniforms(QuantizedForm& form) {
    for (const auto& [group, range] : group_ranges(form.placement))
      form.uniform[group] = uniform_of_range(range.low, range.high, is_symmetric(form.placement, group));
  }

  Expected<QuantizedForm> form_of(const std::vector<bool>& chosen) {
    QuantizedForm out;
    const std::vector<Layer>& layers = graph_.layers();
    const bool integers = options_.scheme->integers;
    const LayerForm form = integers ? LayerForm::Integers : LayerForm::Weights;
    for (size_t i = 0; i < layers.size(); ++i) out.layers.push_back(chosen[i] ? form : LayerForm::Float);
    out.placement = graph_.place(integers ? chosen : std::vector<bool>(layers.size(), false));
    if (integers) set_uniforms(out);
    out.weights.resize(layers.size());
    for (size_t i = 0; i < layers.size(); ++i) {
      const Layer& layer = layers[i];
      if (!chosen[i] || layer.form.weights < 0) continue;
      const auto operand = static_cast<size_t>(layer.form.weights);
      const Instruction& product = m_[layer.product];
      const Literal& weights = m_.literal(m_[product.operand(operand)]);
      for (int64_t e = 0; e < weights.element_count(); ++e)
        if (!std::isfinite(weights.as_double(e)))
          return invalid_argument("weights of " + std::string(product.name) + ": element " + std::to_string(e) +
                                  " is NaN or infinite");
      const std::vector<double> least = integers ? least_scales(layer, out) : std::vector<double>();
      const int64_t axis = weights_axis(layer);
      const int64_t summed = summed_dimension(product, operand);
      const std::vector<int64_t> block = blocks_of(product, weights.shape(), summed, options_.block);
      out.weights[i] = block.empty() ? in_channels(weights, axis, options_.scheme->weight_bits, least)
                                     : in_blocks(weights, block, options_.scheme->weight_bits);
    }
    out.parameters = options_.parameters;
    return out;
  }

  // Errors.

  Status measure_floats() {
    report_.error_batches = error_batches();
    if (batches_.empty()) return {};
    COLLET_ASSIGN(const RunProgram program, compile_(m_));
    for (size_t b = 0; b < error_batches(); ++b) {
      COLLET_ASSIGN(Literals results, program(batches_[b]));
      right_.push_back(std::move(results));
    }
    return {};
  }

  Expected<ValueError> error_of(const mlir::Program& program) const {
    COLLET_ASSIGN(const std::unique_ptr<Module> module, import_program(program));
    COLLET_TRY(verify_module(*module));
    COLLET_ASSIGN(const RunProgram compiled, compile_(*module));
    ErrorSum sum;
    for (size_t b = 0; b < right_.size(); ++b) {
      COLLET_ASSIGN(const Literals results, compiled(batches_[b]));
      if (results.size() != right_[b].size()) return internal_error("the quantized program has other results");
      for (size_t i = 0; i < results.size(); ++i) sum.add(right_[b][i], results[i]);
    }
    return sum.error();
  }
  Expected<ValueError> error_with(const std::vector<bool>& chosen) {
    COLLET_ASSIGN(const QuantizedForm form, form_of(chosen));
    COLLET_ASSIGN(const std::unique_ptr<mlir::Program> program, write_quantized(graph_, form));
    return error_of(*program);
  }

  Status measure_layers() {
    if (batches_.empty()) {
      if (options_.mixed || options_.max_error)
        return invalid_argument("the most sensitive layers are found with data; there is none");
      return {};
    }
    errors_.resize(chosen_.size());
    const auto total = static_cast<size_t>(std::count(chosen_.begin(), chosen_.end(), true));
    size_t done = 0;
    for (size_t i = 0; i < chosen_.size(); ++i) {
      if (!chosen_[i]) continue;
      std::vector<bool> alone(chosen_.size(), false);
      alone[i] = true;
      COLLET_ASSIGN(const ValueError error, error_with(alone));
      errors_[i] = error;
      tell("quantizing each layer alone", ++done, total);
    }
    return {};
  }

  // Keeps the most sensitive layers float: so many, or as few as the error allows.
  Status keep_sensitive() {
    if (!options_.mixed && !options_.max_error) return {};
    std::vector<size_t> order;
    for (size_t i = 0; i < chosen_.size(); ++i)
      if (chosen_[i]) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return errors_[a]->relative > errors_[b]->relative; });
    const auto without = [&](size_t count) {
      std::vector<bool> out = chosen_;
      for (size_t i = 0; i < count; ++i) out[order[i]] = false;
      return out;
    };
    size_t count = options_.mixed.value_or(0);
    if (count >= order.size())
      return invalid_argument("nothing to quantize: " + std::to_string(count) + " of the " +
                              std::to_string(order.size()) + " layers are to stay float");
    if (options_.max_error) {
      // The error falls as more layers stay float, so that the least number is found by halving.
      size_t enough = order.size(), tried = 0;
      for (size_t low = count; low < enough;) {
        const size_t middle = low + (enough - low) / 2;
        COLLET_ASSIGN(const ValueError error, error_with(without(middle)));
        tell("looking for layers that stay float", ++tried, order.size());
        if (error.relative <= *options_.max_error)
          enough = middle;
        else
          low = middle + 1;
      }
      if (enough == order.size())
        return invalid_argument("nothing to quantize: the error is above " + std::to_string(*options_.max_error) +
                                " even if " + std::string(m_[graph_.layers()[order.back()].product].name) +
                                " alone is quantized");
      count = enough;
    }
    for (size_t i = 0; i < count; ++i) why_[order[i]] = "kept float: one of the most sensitive layers";
    chosen_ = without(count);
    return {};
  }

  // The report.

  ValueReport value_report(InstrId id, const QuantizedForm& form,
                           const std::unordered_map<uint32_t, ClippedRange>& ranges) const {
    const uint32_t group = form.placement.group[index_of(id)];
    const ClippedRange& range = ranges.at(group);
    return {std::string(m_[id].name),
            m_[id].shape.to_string(),
            range.low,
            range.high,
            form.uniform.at(group),
            range.clipped};
  }

  void report(const QuantizedForm& form) {
    const auto ranges =
        options_.scheme->integers ? group_ranges(form.placement) : std::unordered_map<uint32_t, ClippedRange>();
    std::set<InstrId> of_layers;
    for (size_t i = 0; i < graph_.layers().size(); ++i) {
      const Layer& layer = graph_.layers()[i];
      const Instruction& product = m_[layer.product];
      of_layers.insert({layer.product, layer.result});
      LayerReport& out = report_.layers.emplace_back();
      out.name = product.name;
      out.op = op_info(product.op).text;
      out.op_name = op_name_of(product);
      out.shape = product.shape.to_string();
      out.form = form.layers[i];
      out.why_float = why_[i];
      if (i < errors_.size()) out.error = errors_[i];
      if (out.form == LayerForm::Float) continue;
      if (const QuantizedWeights& weights = form.weights[i]; layer.form.weights >= 0) {
        out.weight_bits = options_.scheme->weight_bits;
        out.weight_axis = weights.axis;
        if (!weights.block.empty()) {
          out.weight_block = options_.block;
        } else if (options_.block > 0) {
          report_.notes.push_back(
              "weights of " + std::string(product.name) + ": blocks of " + std::to_string(options_.block) +
              " do not divide what is summed over, or are all of it: " + "they have a scale for each channel");
        }
        const auto [least, most] = std::minmax_element(weights.scales.begin(), weights.scales.end());
        out.least_scale = *least;
        out.most_scale = *most;
      }
      if (out.form != LayerForm::Integers) continue;
      for (size_t o = 0; o < 2; ++o)
        if (static_cast<int>(o) != layer.form.weights)
          out.inputs.push_back(value_report(product.operand(o), form, ranges));
      if (form.placement.stored[index_of(layer.result)]) out.output = value_report(layer.result, form, ranges);
      const InstrId right = product.operand(1);
      if (layer.form.weights < 0 && m_[right].op == Op::PARAMETER)
        report_.notes.push_back(
            "parameter " + std::to_string(m_[right].as<ParameterAttrs>().number) + " (" + std::string(m_[right].name) +
            ") is the right operand of " + std::string(product.name) +
            " and is quantized in each run, with one scale; if it has weights, name it by --weights");
    }
    for (InstrId id : m_.entry_computation().order) {
      const Instruction& instr = m_[id];
      const bool real = instr.shape.is_array() && is_float(instr.shape.type());
      if (!real || instr.op == Op::CONSTANT || instr.op == Op::PARAMETER || of_layers.contains(id) ||
          channel_values(m_, id, 0))
        continue;
      if (instr.op == Op::BROADCAST && m_[instr.operand(0)].op == Op::CONSTANT) continue;
      auto& names = form.placement.integer[index_of(id)] ? report_.integer_ops : report_.float_ops;
      names.emplace_back(instr.name);
    }
    report_.inner_products = graph_.inner_products();
  }

  LayerGraph& graph_;
  const Module& m_;
  std::span<const Literals> batches_;
  const QuantizeOptions& options_;
  const CompileProgram& compile_;
  const ReportProgress& progress_;
  std::vector<bool> chosen_;                       // by layer
  std::vector<std::string> why_;                   // by layer: why it stays float
  std::vector<std::optional<ValueError>> errors_;  // by layer, alone
  std::map<InstrId, Observer> observers_;
  std::map<std::pair<InstrId, bool>, ClippedRange> ranges_;
  std::vector<Literals> right_;  // results of the float program, by batch
  QuantizeReport report_;
};

}  // namespace

std::span<const QuantizationScheme> quantization_schemes() {
  return kSchemes;
}

const QuantizationScheme* find_scheme(std::string_view name) {
  for (const QuantizationScheme& scheme : kSchemes)
    if (scheme.name == name) return &scheme;
  return nullptr;
}

double ValueError::decibels() const {
  return relative > 0 ? -20 * std::log10(relative) : std::numeric_limits<double>::infinity();
}

void ErrorSum::add(const Literal& right, const Literal& other) {
  if (!right.shape().is_array()) return;
  if (!std::ranges::equal(right.shape().dims(), other.shape().dims())) {
    errors_ = largest_ = std::numeric_limits<double>::infinity();
    return;
  }
  const bool complex = is_complex(right.type());
  for (int64_t i = 0; i < right.element_count(); ++i) {
    const double x = right.as_double(i), y = other.as_double(i);
    if (!complex && !is_float(right.type())) {
      add(1, x == y ? 1 : 0);
      continue;
    }
    add(x, y);
    if (complex) add(right.imaginary(i), other.imaginary(i));
  }
}

void ErrorSum::add(double right, double other) {
  if (!std::isfinite(right) || !std::isfinite(other)) {
    if (right == other || (std::isnan(right) && std::isnan(other)))
      ++not_finite_;
    else
      errors_ = largest_ = std::numeric_limits<double>::infinity();
    return;
  }
  squares_ += right * right;
  other_squares_ += other * other;
  products_ += right * other;
  errors_ += (right - other) * (right - other);
  largest_ = std::max(largest_, std::abs(right - other));
}

ValueError ErrorSum::error() const {
  ValueError out;
  out.relative = errors_ == 0 ? 0 : std::sqrt(errors_ / squares_);
  out.largest = largest_;
  out.not_finite = not_finite_;
  const double lengths = std::sqrt(squares_) * std::sqrt(other_squares_);
  out.cosine = lengths > 0 ? products_ / lengths : squares_ == other_squares_ ? 1 : 0;
  return out;
}

Expected<QuantizedProgram> quantize(const Module& module, std::span<const Literals> batches,
                                    const QuantizeOptions& options, const CompileProgram& compile,
                                    const ReportProgress& progress) {
  COLLET_ASSIGN(LayerGraph graph, LayerGraph::make(module));
  return Quantizer(graph, batches, options, compile, progress).run();
}

}  // namespace collet::hlo
