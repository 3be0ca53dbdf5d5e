// SPDX-License-Identifier: Apache-2.0
#include "hlo/testing/random_module.h"

#include "hlo/testing/random_writer.h"

namespace collet::hlo::testing {
namespace random {

std::string number(WriterState& draw, const TypeRow& t) {
  static const std::vector<std::string> kFloats = {"0", "-0", "1", "-1", "0.5", "2", "-3", "0.25", "4"};
  static const std::vector<std::string> kInts = {"0", "1", "2", "3", "7", "-1", "-2", "5"};
  if (t.kind == Kind::Pred) return draw.one_in(2) ? "true" : "false";
  if (t.kind == Kind::Complex) return "(" + draw.of(kFloats) + ", " + draw.of(kFloats) + ")";
  if (t.kind == Kind::Float) return draw.of(kFloats);
  std::string n = draw.of(kInts);
  if (t.kind == Kind::Unsigned && n[0] == '-') n = n.substr(1);
  return n;
}

const std::vector<Writer::Step> Writer::kSteps = {&Writer::unary,
                                                  &Writer::unary,
                                                  &Writer::inexact_unary,
                                                  &Writer::binary,
                                                  &Writer::binary,
                                                  &Writer::binary,
                                                  &Writer::inexact_binary,
                                                  &Writer::compare,
                                                  &Writer::select,
                                                  &Writer::clamp,
                                                  &Writer::convert,
                                                  &Writer::convert,
                                                  &Writer::complex_parts,
                                                  &Writer::again,
                                                  &Writer::broadcast,
                                                  &Writer::broadcast,
                                                  &Writer::reshape,
                                                  &Writer::reshape,
                                                  &Writer::transpose,
                                                  &Writer::transpose,
                                                  &Writer::slice,
                                                  &Writer::pad,
                                                  &Writer::concatenate,
                                                  &Writer::reverse,
                                                  &Writer::dynamic_slice,
                                                  &Writer::dynamic_update_slice,
                                                  &Writer::gather,
                                                  &Writer::scatter,
                                                  &Writer::iota,
                                                  &Writer::array_constant,
                                                  &Writer::reduce,
                                                  &Writer::reduce_window,
                                                  &Writer::dot,
                                                  &Writer::sort,
                                                  &Writer::tuples,
                                                  &Writer::barrier,
                                                  &Writer::map};
const std::vector<Writer::Step> Writer::kMore = {&Writer::is_finite,          &Writer::reduce_precision,
                                                 &Writer::bitcast_convert,    &Writer::complex_product,
                                                 &Writer::convolution,        &Writer::fft,
                                                 &Writer::select_and_scatter, &Writer::topk,
                                                 &Writer::random_bits,        &Writer::reduce_pairs};
const std::vector<Writer::Step> Writer::kFlow = {&Writer::loop, &Writer::conditional, &Writer::call};

void Writer::grow(int steps) {
  for (int i = 0; i < steps; ++i) {
    const bool more = state_.everything && state_.one_in(4);
    (this->*state_.of(control_flow_ && state_.one_in(8) ? kFlow : more ? kMore : kSteps))();
    if (sends_ && state_.one_in(6)) send({*pick(), *pick()});
  }
}

}  // namespace random

std::string random_module(uint64_t seed, const RandomModule& options) {
  using namespace random;
  WriterState draw{mix(seed), 0, {}, options.sizes, options.most_elements, options.everything, options.effects};
  Writer entry(draw, options.control_flow, true);
  const int64_t parameters = draw.between(1, 4);
  for (int64_t i = 0; i < parameters; ++i)
    entry.emit(draw.one_in(2) ? kTypes[draw.below(2)] : draw.any_type(), draw.sizes(),
               "parameter(" + std::to_string(i) + ")");
  entry.grow(options.steps);
  std::string shapes, names;
  for (size_t i = 0; i < entry.pool().size(); ++i) {
    const Value& v = entry.pool()[i];
    if (i + 4 < entry.pool().size() && !draw.one_in(6)) continue;
    shapes += (shapes.empty() ? "" : ", ") + shape(v);
    names += (names.empty() ? "" : ", ") + v.name;
  }
  return "HloModule random_" + std::to_string(seed) + "\n\n" + draw.computations + "ENTRY entry {\n" + entry.text() +
         "  ROOT result = (" + shapes + ") tuple(" + names + ")\n}\n";
}

}  // namespace collet::hlo::testing
