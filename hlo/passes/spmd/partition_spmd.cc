// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"
#include "hlo/passes/spmd/annotate.h"
#include "hlo/passes/spmd/combine.h"
#include "hlo/passes/spmd/materializer.h"
#include "hlo/program/leaves.h"

namespace collet::hlo {
namespace {

using namespace spmd;

// Drops aliases of arguments and results that no longer have the same size on each partition.
void keep_aliases(Module& module, InstrId root) {
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
                .same_without_layout(leaf(module[root].shape, alias.output_index));
  });
}

// A donated argument without a named result may be aliased with any result of the same size. If the tiles of no result
// have its size, it is no longer donated. Arguments and results are flat here.
void keep_donors(Module& module, InstrId root) {
  ModuleHeader& header = module.header();
  const Shape& result = module[root].shape;
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

// Returns the shardings of the results: their tiles have one size, and results that must not be split are replicated.
std::vector<ArraySharding> result_shardings(const Module& module, const Shape& shape,
                                            std::vector<ArraySharding> leaves) {
  std::vector<Shape> shapes;
  append_leaf_shapes(shape, shapes);
  for (size_t i = 0; i < leaves.size(); ++i)
    for (size_t d = 0; d < leaves[i].dimensions.size(); ++d)
      if (!may_split_result(module, i) || shapes[i].dim(static_cast<int>(d)) % leaves[i].dimensions[d].count())
        leaves[i].dimensions[d] = DimensionSharding();
  return leaves;
}

// Returns a type for all positions in arrays of the module. Those in padded tiles and margins are at most twice as large as
// a dimension.
Type index_type_of(const Module& module) {
  for (const CompId computation : module.computations())
    for (const InstrId id : module[computation].order) {
      const Shape& shape = module[id].shape;
      if (!shape.is_array()) continue;
      for (const int64_t size : shape.dims())
        if (size > INT32_MAX / 2) return Type::S64;
    }
  return Type::S32;
}

}  // namespace

Expected<bool> partition_spmd(Module& module, PassContext& context) {
  if (context.partition_count <= 1) return false;
  const auto partitions = static_cast<size_t>(context.partition_count);
  COLLET_ASSIGN(const ProgramRegions regions, ProgramRegions::build(module, partitions));
  COLLET_ASSIGN(const ShardingTable table, spmd::propagate_shardings(module, regions));
  MaterializeContext shared{
      module, regions, table, std::max<int64_t>(context.replica_count, 1), int64_t{1} << 20, index_type_of(module)};

  const CompId old = module.entry();
  const CompId entry = module.add_computation(module.arena().string(std::string(module[old].name) + ".tile"));
  TileBuilder tiles(module, entry, shared.replicas, shared.channels, shared.index_type);
  Materializer materializer(shared, tiles, regions.all()[0].groups);
  std::vector<TiledValue> arguments;
  const std::vector<InstrId> given = module[old].parameters;
  for (InstrId id : given) {
    const Instruction parameter = module[id];
    TiledValue value{InstrId::None, table.of(id), false};
    size_t at = 0;
    value.id = module.append_parameter(entry, parameter.as<ParameterAttrs>().number,
                                       local_shape(parameter.shape, value.leaves, at), parameter.name);
    module[value.id].extras =
        with_shardings(module, parameter.extras, value.leaves, parameter.shape.is_tuple(), partitions);
    arguments.push_back(std::move(value));
  }
  COLLET_ASSIGN(TiledValue root, materializer.run(old, arguments));
  if (root.manual) return unimplemented("the result lies on each partition in a way of its own");
  Builder& b = tiles.builder();
  b.set_origin(nullptr);
  const Shape shape = module[module[old].root].shape;
  root = materializer.reshard(root, shape, result_shardings(module, shape, root.leaves));
  // Makes the root a new instruction that has the shardings of the results.
  if (shape.is_tuple()) {
    std::vector<InstrId> parts;
    for (size_t i = 0; i < shape.elements().size(); ++i) parts.push_back(b.get(root.id, static_cast<int64_t>(i)));
    root.id = b.tuple(parts);
  } else {
    root.id = b.op(Op::COPY, Shape(b.shape(root.id)), {root.id});
  }
  COLLET_TRY(b.status());
  module[root.id].extras = with_shardings(module, nullptr, root.leaves, shape.is_tuple(), partitions);
  module[entry].root = root.id;
  module.set_entry(entry);
  keep_aliases(module, root.id);
  keep_donors(module, root.id);
  module.header().has_entry_layout = false;
  module.header().is_scheduled = false;
  module.drop_unreachable_computations();
  order_computations(module);
  for (CompId c : flow_computations(module)) combine_all_reduces(module, c);
  return true;
}

}  // namespace collet::hlo
