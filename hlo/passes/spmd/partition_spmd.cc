// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"
#include "hlo/passes/spmd/combine.h"
#include "hlo/passes/spmd/walker.h"
#include "hlo/program/leaves.h"

namespace collet::hlo {
namespace {

using namespace spmd;

Status refuse(const Instruction& parameter, const std::string& why) {
  return invalid_argument("parameter '" + std::string(parameter.name) + "' (" + parameter.shape.to_string() +
                          "): " + why);
}

bool names_sharding(const Instruction& parameter) {
  if (parameter.extras)
    for (const FrontendAttribute& a : parameter.extras->frontend_attributes)
      if (a.name == "xla.sdy.sharding") return true;
  return false;
}

// What the program says of a parameter must be kept to the letter: its caller has laid it out that way.
Expected<Value> lie_of(const Walker& walker, const Instruction& parameter, size_t partitions) {
  std::vector<Shape> shapes;
  append_leaf_shapes(parameter.shape, shapes);
  Value out;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const size_t rank = shapes[i].is_array() ? static_cast<size_t>(shapes[i].rank()) : 0;
    Tiling tiling = whole(rank);
    Column open;
    const Sharding* s = parameter.extras ? parameter.extras->sharding : nullptr;
    std::vector<bool> may_split;
    if (s && s->kind == Sharding::Kind::Tuple) s = s->elements.size() == shapes.size() ? &s->elements[i] : nullptr;
    if (s && shapes[i].is_array()) {
      const auto stated = from_sharding(*s, rank, partitions, &open);
      if (!stated)
        return refuse(parameter, "the sharding " + s->to_string() + " is none for " + std::to_string(partitions) +
                                     " partitions that is understood");
      tiling = *stated;
    } else if (auto stated = walker.stated(parameter, shapes[i], i, &may_split)) {
      tiling = std::move(stated->tiling);
      open = std::move(stated->open);
      Tiling all = tiling;
      all.push_back(open);
      World everybody;
      everybody.domain.assign(partitions, 0);
      if (!fits(all, everybody)) return refuse(parameter, "its sharding is none for its mesh");
    } else if (shapes[i].is_array() && parameter.shape.is_array() && names_sharding(parameter)) {
      return refuse(parameter, "its xla.sdy.sharding is none for " + std::to_string(partitions) +
                                   " partitions that is understood");
    }
    if (shapes[i].is_array() && shapes[i].has_dynamic() && !is_whole(tiling))
      return refuse(parameter, "an array of dynamic size is split");
    for (size_t d = 0; d < rank; ++d)
      if (shapes[i].dim(static_cast<int>(d)) % tiling[d].count)
        return refuse(parameter, "dimension " + std::to_string(d) + " does not split into " +
                                     std::to_string(tiling[d].count) + " equal tiles; padding is not supported");
    out.leaves.push_back(std::move(tiling));
    out.open.push_back(std::move(open));
  }
  return out;
}

const Extras* with_sharding(Module& module, const Extras* extras, const Value& value, bool tuple, size_t partitions) {
  Extras out = extras ? *extras : Extras();
  std::vector<FrontendAttribute> kept;
  for (const FrontendAttribute& a : out.frontend_attributes)
    if (a.name != "xla.sdy.sharding") kept.push_back(a);
  out.frontend_attributes = module.arena().list(kept);
  Sharding all;
  if (tuple) {
    all.kind = Sharding::Kind::Tuple;
    for (size_t i = 0; i < value.leaves.size(); ++i)
      all.elements.push_back(to_sharding(value.leaves[i], partitions, open_of(value, i)));
  } else if (!value.leaves.empty()) {
    all = to_sharding(value.leaves[0], partitions, open_of(value, 0));
  }
  out.sharding = module.keep(std::move(all));
  return module.arena().make<Extras>(out);
}

// Aliases of what no longer has the same size on each partition are gone.
void keep_aliases(Module& module, const Value& root) {
  auto& aliases = module.header().aliases;
  std::erase_if(aliases, [&](const InputOutputAlias& alias) {
    const auto leaf = [&](const Shape& shape, Dims index) {
      const Shape* at = &shape;
      for (int64_t i : index) {
        if (!at->is_tuple() || i < 0 || i >= static_cast<int64_t>(at->elements().size())) return Shape();
        at = &at->element(static_cast<size_t>(i));
      }
      return *at;
    };
    const InstrId p = module.entry_computation().parameters[static_cast<size_t>(alias.parameter)];
    return !leaf(module[p].shape, alias.parameter_index)
                .same_without_layout(leaf(module[root.id].shape, alias.output_index));
  });
}

// What is given away with no result named for it serves one of the same size; where each partition has none, it is not
// given away. By then arguments and results are flat.
void keep_donors(Module& module, const Value& root) {
  ModuleHeader& header = module.header();
  const Shape& result = module[root.id].shape;
  const std::span<const Shape> results = result.is_tuple() ? result.elements() : std::span(&result, 1);
  std::vector<bool> taken(results.size());
  for (const InputOutputAlias& alias : header.aliases)
    if (!result.is_tuple() || alias.output_index.size() == 1)
      taken[result.is_tuple() ? static_cast<size_t>(alias.output_index[0]) : 0] = true;
  std::erase_if(header.donors, [&](const BufferDonor& donor) {
    const Shape& shape = module[module.entry_computation().parameters[static_cast<size_t>(donor.parameter)]].shape;
    for (size_t i = 0; i < results.size() && shape.is_array(); ++i) {
      if (taken[i] || !results[i].is_array() || results[i].byte_size() != shape.byte_size()) continue;
      taken[i] = true;
      if (!results[i].same_without_layout(shape)) return false;
      InputOutputAlias alias;
      if (result.is_tuple()) alias.output_index = module.dims({static_cast<int64_t>(i)});
      alias.parameter = donor.parameter;
      header.aliases.push_back(alias);
      return true;
    }
    return true;
  });
}

}  // namespace

Expected<bool> partition_spmd(Module& module, PassContext& context) {
  if (context.partition_count <= 1) return false;
  Shared shared{module, std::max<int64_t>(context.replica_count, 1), int64_t{1} << 20};
  shared.markers = find_markers(module);
  shared.most = 16 * module.instruction_limit() + kMostInlined / 16;
  for (const FrontendAttribute& a : module.header().frontend_attributes)
    if (a.name == "xla.sdy.meshes") shared.meshes = a.value;
  World world;
  world.domain.assign(static_cast<size_t>(context.partition_count), 0);

  const CompId old = module.entry();
  const std::string name(module[old].name);
  const CompId entry = module.add_computation(module.arena().string(name + ".tile"));
  Emitter emitter(module, entry, shared.replicas, shared.channels);
  Walker walker(shared, emitter, world);
  std::vector<Value> arguments;
  const std::vector<InstrId> given = module[old].parameters;
  for (InstrId id : given) {
    const Instruction parameter = module[id];
    COLLET_ASSIGN(Value value, lie_of(walker, parameter, world.partitions()));
    size_t at = 0;
    const InstrId tile = module.append_parameter(entry, parameter.as<ParameterAttrs>().number,
                                                 local_shape(parameter.shape, value.leaves, at), parameter.name);
    module[tile].extras =
        with_sharding(module, parameter.extras, value, parameter.shape.is_tuple(), world.partitions());
    value.id = tile;
    arguments.push_back(std::move(value));
  }
  COLLET_ASSIGN(Value root, walker.walk(old, arguments));
  if (root.manual) return unimplemented("the result lies on each partition in a way of its own");
  Builder& b = emitter.builder();
  b.set_origin(nullptr);
  // The root is an instruction of its own, which says how the results lie.
  if (module[root.id].shape.is_tuple()) {
    std::vector<InstrId> parts;
    for (size_t i = 0; i < module[root.id].shape.elements().size(); ++i)
      parts.push_back(b.get(root.id, static_cast<int64_t>(i)));
    root.id = b.tuple(parts);
  } else {
    root.id = b.op(Op::COPY, Shape(b.shape(root.id)), {root.id});
  }
  COLLET_TRY(b.status());
  module[root.id].extras = with_sharding(module, nullptr, root, module[root.id].shape.is_tuple(), world.partitions());
  module[entry].root = root.id;
  module.set_entry(entry);
  keep_aliases(module, root);
  keep_donors(module, root);
  module.header().has_entry_layout = false;
  module.header().is_scheduled = false;
  module.drop_unreachable_computations();
  order_computations(module);
  for (CompId c : flow_computations(module)) combine_all_reduces(module, c);
  return true;
}

}  // namespace collet::hlo
