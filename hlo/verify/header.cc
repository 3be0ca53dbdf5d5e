// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>

#include "hlo/verify/context.h"

namespace collet::hlo::verify {
namespace {

using Leaf = std::pair<int64_t, std::vector<int64_t>>;

Leaf leaf_of(int64_t parameter, const Dims& index) {
  return {parameter, {index.begin(), index.end()}};
}

void check_entry_layout(Context& context) {
  const Module& m = context.module;
  const ModuleHeader& header = m.header();
  const Computation& entry = m.entry_computation();
  if (!header.has_entry_layout) return;
  if (header.entry_parameters.size() != entry.parameters.size())
    return context.complain(header.layout_line,
                            concat("entry_computation_layout has ", header.entry_parameters.size(),
                                   " parameters, but computation ", entry.name, " has ", entry.parameters.size()));
  for (size_t i = 0; i < entry.parameters.size(); ++i)
    if (!header.entry_parameters[i].compatible(m[entry.parameters[i]].shape))
      context.complain(header.layout_line,
                       concat("entry_computation_layout says that parameter ", i, " is ", header.entry_parameters[i],
                              ", but it is ", m[entry.parameters[i]].shape));
  if (!header.entry_result.compatible(m[entry.root].shape))
    context.complain(header.layout_line, concat("entry_computation_layout says that the result is ",
                                                header.entry_result, ", but it is ", m[entry.root].shape));
}

// Returns the part of an entry parameter at an index; null after reporting an error.
const Shape* parameter_part(Context& context, uint32_t line, std::string_view what, int64_t number, const Dims& index) {
  const Module& m = context.module;
  const auto& parameters = m.entry_computation().parameters;
  if (number < 0 || static_cast<size_t>(number) >= parameters.size()) {
    context.complain(line, concat(what, " names parameter ", number, " of ", parameters.size()));
    return nullptr;
  }
  const Shape* part = subshape(m[parameters[static_cast<size_t>(number)]].shape, index);
  if (!part)
    context.complain(line, concat(what, " names ", index, " of parameter ", number, ", where there is nothing"));
  return part;
}

void check_aliases(Context& context, std::set<Leaf>& taken) {
  const Module& m = context.module;
  const Shape& result = m[m.entry_computation().root].shape;
  std::set<std::vector<int64_t>> outputs;
  for (const InputOutputAlias& alias : m.header().aliases) {
    const Shape* from =
        parameter_part(context, alias.line, "input_output_alias", alias.parameter, alias.parameter_index);
    if (!from) continue;
    const Shape* to = subshape(result, alias.output_index);
    if (!to) {
      context.complain(alias.line, concat("input_output_alias names ", alias.output_index, " of the result ", result));
      continue;
    }
    if (!taken.insert(leaf_of(alias.parameter, alias.parameter_index)).second)
      context.complain(alias.line, concat("input_output_alias names ", alias.parameter_index, " of parameter ",
                                          alias.parameter, " twice"));
    if (!outputs.insert({alias.output_index.begin(), alias.output_index.end()}).second)
      context.complain(alias.line, concat("input_output_alias names ", alias.output_index, " of the result twice"));
    if (alias.must ? !from->compatible(*to) : !from->has_unbounded() && from->byte_size() != to->byte_size())
      context.complain(alias.line,
                       concat("input_output_alias joins ", *from, " and ", *to, ", which have different sizes"));
  }
}

void check_donors(Context& context, const std::set<Leaf>& taken) {
  for (const BufferDonor& donor : context.module.header().donors) {
    if (!parameter_part(context, donor.line, "buffer_donor", donor.parameter, donor.parameter_index)) continue;
    if (taken.contains(leaf_of(donor.parameter, donor.parameter_index)))
      context.complain(donor.line, concat("buffer_donor names ", donor.parameter_index, " of parameter ",
                                          donor.parameter, ", which input_output_alias names too"));
  }
}

void check_counts(Context& context) {
  const ModuleHeader& header = context.module.header();
  if (header.replica_count < 1)
    context.complain(header.line, concat("replica_count ", header.replica_count, " is not positive"));
  if (header.num_partitions < 1)
    context.complain(header.line, concat("num_partitions ", header.num_partitions, " is not positive"));
}

}  // namespace

void verify_header(Context& context) {
  check_counts(context);
  check_entry_layout(context);
  std::set<Leaf> taken;
  check_aliases(context, taken);
  check_donors(context, taken);
}

}  // namespace collet::hlo::verify
