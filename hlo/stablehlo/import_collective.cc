// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/importer.h"

// Imports ops that communicate between participants.

namespace collet::hlo {
namespace {

/// Returns the channel id; StableHLO's channel handle without an id means none.
int64_t channel_of(Importer& m, const mlir::Op& op) {
  return m.integer_or(op, "channel_id", 0);
}

/// Imports the body, which combines two scalars of the results' type. (HLO's could take arrays.)
Expected<CompId> combiner(Importer& m, ImportScope& scope, const mlir::Op& op, const Shape& result) {
  COLLET_ASSIGN(const CompId body, m.region(scope, op, 0));
  const Computation& c = m.module()[body];
  const Shape& first = result.is_tuple() && !result.elements().empty() ? result.element(0) : result;
  bool fits = first.is_array() && c.parameters.size() == 2;
  const Shape scalar = Shape::scalar(first.is_array() ? first.type() : Type::PRED);
  for (InstrId id : c.parameters) fits = fits && m.shape_of(id) == scalar;
  fits = fits && m.shape_of(c.root) == scalar;
  for (const Shape& other : result.is_tuple() ? result.elements() : std::span<const Shape>())
    fits = fits && other.is_array() && other.type() == first.type();
  if (!fits) return m.fail(op, "needs a body that combines two scalars of the results' type");
  return body;
}

Status with_group(Importer& m, ImportScope& scope, const mlir::Op& op, Op code, bool reduces) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<CollectiveAttrs>();
  COLLET_ASSIGN(attrs->groups, m.groups(op));
  attrs->channel = channel_of(m, op);
  attrs->global_ids = m.flag(op, "use_global_device_ids");
  if (!reduces) return m.define(scope, op, m.emit(scope, code, shape, operands, attrs));
  COLLET_ASSIGN(CompId body, combiner(m, scope, op, shape));
  return m.define(scope, op, m.emit(scope, code, shape, operands, attrs, std::span(&body, 1)));
}

Status all_reduce(Importer& m, ImportScope& scope, const mlir::Op& op) {
  return with_group(m, scope, op, Op::ALL_REDUCE, true);
}

Status collective_broadcast(Importer& m, ImportScope& scope, const mlir::Op& op) {
  if (m.flag(op, "has_dynamic_root")) return m.fail(op, "has a dynamic root, which is not supported");
  return with_group(m, scope, op, Op::COLLECTIVE_BROADCAST, false);
}

Status cross_replica_sum(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId operand, m.value(scope, op, 0));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  Module& module = m.module();
  const CompId body = module.add_computation(module.unique_name("add"));
  const Shape scalar = Shape::scalar(shape.type());
  const InstrId a = module.append_parameter(body, 0, scalar), b = module.append_parameter(body, 1, scalar);
  const InstrId both[] = {a, b};
  module[body].root = module.append(body, Op::ADD, scalar, both);
  auto* attrs = module.make<CollectiveAttrs>();
  COLLET_ASSIGN(attrs->groups, m.groups(op));
  return m.define(scope, op, m.emit(scope, Op::ALL_REDUCE, shape, {operand}, attrs, std::span(&body, 1)));
}

Status with_group_and_dimension(Importer& m, ImportScope& scope, const mlir::Op& op, Op code, std::string_view dim,
                                bool reduces) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<CollectiveDimAttrs>();
  COLLET_ASSIGN(attrs->groups, m.groups(op));
  attrs->channel = channel_of(m, op);
  attrs->global_ids = m.flag(op, "use_global_device_ids");
  COLLET_ASSIGN(attrs->dimension, m.integer(op, dim));
  if (!reduces) return m.define(scope, op, m.emit(scope, code, shape, operands, attrs));
  COLLET_ASSIGN(CompId body, combiner(m, scope, op, shape));
  return m.define(scope, op, m.emit(scope, code, shape, operands, attrs, std::span(&body, 1)));
}

Status all_gather(Importer& m, ImportScope& scope, const mlir::Op& op) {
  return with_group_and_dimension(m, scope, op, Op::ALL_GATHER, "all_gather_dim", false);
}

Status reduce_scatter(Importer& m, ImportScope& scope, const mlir::Op& op) {
  return with_group_and_dimension(m, scope, op, Op::REDUCE_SCATTER, "scatter_dimension", true);
}

/// Imports all_to_all. The array form of HLO splits and concatenates along one dimension; if the two dimensions differ,
/// a reshape and a transpose move the blocks.
Status all_to_all(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(int64_t split, m.integer(op, "split_dimension"));
  COLLET_ASSIGN(int64_t join, m.integer(op, "concat_dimension"));
  COLLET_ASSIGN(int64_t count, m.integer(op, "split_count"));
  COLLET_ASSIGN(const Groups groups, m.groups(op));
  if (operands.size() != op.results.size()) return m.fail(op, "has not one result for each operand");
  for (const Dims& group : groups.groups)
    if (static_cast<int64_t>(group.size()) != count) return m.fail(op, "splits into other than a group's number");
  Module& module = m.module();
  for (size_t k = 0; k < operands.size(); ++k) {
    InstrId id = operands[k];
    auto* attrs = module.make<AllToAllAttrs>();
    attrs->groups = groups;
    attrs->channel = channel_of(m, op);
    attrs->dimension = module.dims({split});
    const Shape from = m.shape_of(id);
    if (split < 0 || split >= from.rank() || join < 0 || join >= from.rank() || count < 1 ||
        from.dim(static_cast<int>(split)) % count != 0)
      return m.fail(op, "the dimensions or split_count do not fit the operand");
    id = m.emit(scope, Op::ALL_TO_ALL, from, {id}, attrs);
    if (split != join) {
      std::vector<int64_t> dims(from.dims().begin(), from.dims().end());
      dims[static_cast<size_t>(split)] /= count;
      dims.insert(dims.begin() + split, count);
      id = m.emit(scope, Op::RESHAPE, Shape::array(from.type(), dims), {id});
      // The dimension of the block number is moved before the dimension that is concatenated.
      std::vector<int64_t> order;
      for (int64_t i = 0; i <= from.rank(); ++i)
        if (i != split) order.push_back(i);
      const int64_t position = join;
      order.insert(order.begin() + position, split);
      std::vector<int64_t> moved;
      for (int64_t d : order) moved.push_back(dims[static_cast<size_t>(d)]);
      auto* transpose = module.make<DimensionsAttrs>();
      transpose->dimensions = module.dims(order);
      id = m.emit(scope, Op::TRANSPOSE, Shape::array(from.type(), moved), {id}, transpose);
      COLLET_ASSIGN(Shape shape, m.shape(op.results[k]->type));
      id = m.emit(scope, Op::RESHAPE, shape, {id});
    }
    scope.values[op.results[k]] = id;
  }
  return {};
}

Status collective_permute(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  auto* attrs = m.module().make<CollectivePermuteAttrs>();
  COLLET_ASSIGN(attrs->pairs, m.ints(op, "source_target_pairs"));
  attrs->channel = channel_of(m, op);
  return m.define(scope, op, m.emit(scope, Op::COLLECTIVE_PERMUTE, shape, operands, attrs));
}

/// Imports a custom call whose configuration is a dictionary of groups and channel.
Status ragged_all_to_all(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  mlir::AttrRef config = op.attr("backend_config");
  if (const mlir::AttrRef other = op.attr("mhlo.backend_config")) config = other;
  mlir::Op fields(op);
  fields.attrs.clear();
  if (config && config->kind == mlir::Attr::Kind::Dict)
    fields.attrs.assign(config->fields.begin(), config->fields.end());
  mlir::Attr table;
  for (mlir::NamedAttr& field : fields.attrs) {
    bool splat = false;
    if (field.name != "replica_groups" || !field.value || field.value->kind != mlir::Attr::Kind::Dense) continue;
    auto literal = literal_of(*field.value, &splat);
    const int64_t count = literal.ok() ? mlir::element_count(field.value->type) : -1;
    if (count < 0 || count > (int64_t{1} << 20)) return m.fail(op, "replica_groups is no table");
    std::vector<int64_t> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(literal->as_int(splat ? 0 : i));
    table.kind = mlir::Attr::Kind::Ints;
    table.ints = m.module().dims(values);
    table.dims = field.value->type->dims;
    field.value = &table;
  }
  auto* attrs = m.module().make<AllToAllAttrs>();
  COLLET_ASSIGN(attrs->groups, m.groups(fields));
  attrs->channel = m.integer_or(fields, "channel_id", 0);
  return m.define(scope, op, m.emit(scope, Op::RAGGED_ALL_TO_ALL, shape, operands, attrs));
}

}  // namespace

std::span<const ImportRow> import_collective_rows() {
  static constexpr ImportRow kRows[] = {
      {"stablehlo.all_reduce", all_reduce},
      {"stablehlo.all_gather", all_gather},
      {"stablehlo.all_to_all", all_to_all},
      {"stablehlo.collective_broadcast", collective_broadcast},
      {"stablehlo.collective_permute", collective_permute},
      {"stablehlo.cross-replica-sum", cross_replica_sum},
      {"ragged_all_to_all", ragged_all_to_all},
      {"stablehlo.reduce_scatter", reduce_scatter},
  };
  return kRows;
}

}  // namespace collet::hlo
