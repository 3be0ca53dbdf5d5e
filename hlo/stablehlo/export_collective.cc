// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "hlo/ops/collective.h"
#include "hlo/stablehlo/exporter.h"

// Exports communication between participants. The start of an asynchronous collective becomes the synchronous op.

namespace collet::hlo {
namespace {

using mlir::Attr;
using mlir::TypeRef;
using mlir::Value;

/// Writes the groups as rows of one length; shorter rows are filled up with -1.
void set_groups(Exporter& e, mlir::Op* op, const Groups& groups) {
  size_t width = 0;
  for (const Dims& group : groups.groups) width = std::max(width, group.size());
  std::vector<int64_t> table;
  for (const Dims& group : groups.groups) {
    table.insert(table.end(), group.begin(), group.end());
    table.resize(table.size() + width - group.size(), -1);
  }
  e.set_table(op, "replica_groups", table, static_cast<int64_t>(width));
}

/// Returns the shape of the result of the done op that belongs to a start op.
Shape final_shape(const Instruction& instr) {
  const bool pairs = instr.op == Op::ALL_GATHER_START || instr.op == Op::COLLECTIVE_PERMUTE_START;
  return pairs && instr.shape.is_tuple() && instr.shape.elements().size() >= 2 ? instr.shape.element(1) : instr.shape;
}

Expected<mlir::Op*> emit_op(Exporter& e, ExportScope& scope, std::string_view name, const Instruction& instr,
                            std::span<Value* const> operands, const Shape& shape) {
  std::vector<TypeRef> types;
  if (Status known = e.leaf_types(shape, types); !known.ok()) return e.fail(instr, known.message());
  return e.emit(scope, name, operands, types);
}

template <typename Attrs>
void set_participants(Exporter& e, mlir::Op* op, const Attrs& attrs) {
  set_groups(e, op, attrs.groups);
  if (attrs.channel) e.set_int(op, "channel_id", attrs.channel);
  e.set_flag(op, "use_global_device_ids", attrs.global_ids);
}

Expected<ExportNode> all_gather(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(std::vector<Value*> inputs, e.operands(scope, instr));
  const Shape shape = final_shape(instr);
  COLLET_ASSIGN(mlir::Op * op, emit_op(e, scope, "stablehlo.all_gather", instr, inputs, shape));
  set_participants(e, op, instr.as<CollectiveDimAttrs>());
  e.set_int(op, "all_gather_dim", instr.as<CollectiveDimAttrs>().dimension);
  return Exporter::from_leaves(shape, op->results);
}

/// Emits one op for each operand; `make` sets its attributes.
template <typename Make>
Expected<ExportNode> one_each(Exporter& e, ExportScope& scope, const Instruction& instr, std::string_view name,
                              Make make) {
  const Shape shape = final_shape(instr);
  COLLET_ASSIGN(std::vector<Value*> inputs, e.operands(scope, instr));
  if (shape.is_tuple() ? shape.elements().size() != inputs.size() : inputs.size() != 1)
    return e.fail(instr, "it has not one result for each operand");
  std::vector<Value*> results;
  for (size_t i = 0; i < inputs.size(); ++i) {
    COLLET_ASSIGN(mlir::Op * op,
                  emit_op(e, scope, name, instr, {&inputs[i], 1}, shape.is_tuple() ? shape.element(i) : shape));
    COLLET_TRY(make(op, i));
    results.push_back(op->results[0]);
  }
  return Exporter::from_leaves(shape, results);
}

/// StableHLO combines two scalars of one type; HLO's computation may take arrays, which is an error here.
Status check_combiner(Exporter& e, const Instruction& instr) {
  const Computation& c = e.module()[instr.called[0]];
  const Shape& root = e.module()[c.root].shape;
  bool fits = c.parameters.size() == 2 && root.is_scalar();
  for (InstrId p : c.parameters) {
    const Shape& shape = e.module()[p].shape;
    fits = fits && shape.is_scalar() && shape.type() == root.type();
  }
  return fits ? ok_status() : e.fail(instr, "its computation takes not two scalars of one type");
}

/// StableHLO's all_reduce takes operands of one type; for operands of several types one op per operand is emitted.
Expected<ExportNode> all_reduce(Exporter& e, ExportScope& scope, const Instruction& instr) {
  const auto& attrs = instr.as<CollectiveAttrs>();
  COLLET_ASSIGN(std::vector<Value*> inputs, e.operands(scope, instr));
  if (inputs.empty()) return e.fail(instr, "it has no operands");
  if (instr.shape.is_tuple() ? instr.shape.elements().size() != inputs.size() : inputs.size() != 1)
    return e.fail(instr, "it has not one result for each operand");
  COLLET_TRY(check_combiner(e, instr));
  const auto type_of = [&](size_t i) {
    return instr.shape.is_tuple() ? instr.shape.element(i).type() : instr.shape.type();
  };
  bool alike = true;
  for (size_t i = 1; i < inputs.size(); ++i) alike &= type_of(i) == type_of(0);
  if (!alike) {
    return one_each(e, scope, instr, "stablehlo.all_reduce", [&](mlir::Op* op, size_t i) {
      set_participants(e, op, attrs);
      return e.combiner(op, instr.called[0], type_of(i));
    });
  }
  COLLET_ASSIGN(mlir::Op * op, emit_op(e, scope, "stablehlo.all_reduce", instr, inputs, instr.shape));
  set_participants(e, op, attrs);
  COLLET_TRY(e.combiner(op, instr.called[0], type_of(0)));
  return Exporter::from_leaves(instr.shape, op->results);
}

/// Exports reduce-scatter. In HLO the computation for several operands has a pair of parameters for each operand;
/// StableHLO's op has one operand.
Expected<ExportNode> reduce_scatter(Exporter& e, ExportScope& scope, const Instruction& instr) {
  const auto& attrs = instr.as<CollectiveDimAttrs>();
  const Shape& shape = instr.shape;
  COLLET_TRY(check_combiner(e, instr));
  return one_each(e, scope, instr, "stablehlo.reduce_scatter", [&](mlir::Op* op, size_t i) {
    set_participants(e, op, attrs);
    e.set_int(op, "scatter_dimension", attrs.dimension);
    return e.combiner(op, instr.called[0], shape.is_tuple() ? shape.element(i).type() : shape.type());
  });
}

Expected<ExportNode> collective_broadcast(Exporter& e, ExportScope& scope, const Instruction& instr) {
  const auto& attrs = instr.as<CollectiveAttrs>();
  return one_each(e, scope, instr, "stablehlo.collective_broadcast", [&](mlir::Op* op, size_t) {
    set_groups(e, op, attrs.groups);
    if (attrs.channel) e.set_int(op, "channel_id", attrs.channel);
    return ok_status();
  });
}

Expected<ExportNode> collective_permute(Exporter& e, ExportScope& scope, const Instruction& instr) {
  const auto& attrs = instr.as<CollectivePermuteAttrs>();
  if (!attrs.slice_sizes.empty()) return e.fail(instr, "it permutes slices of a buffer in place");
  return one_each(e, scope, instr, "stablehlo.collective_permute", [&](mlir::Op* op, size_t) {
    e.set_table(op, "source_target_pairs", attrs.pairs, 2);
    if (attrs.channel) e.set_int(op, "channel_id", attrs.channel);
    return ok_status();
  });
}

/// Sets the groups. If HLO states none, all participants are listed, because StableHLO checks the size of a group.
void set_split(Exporter& e, mlir::Op* op, const AllToAllAttrs& attrs, int64_t dimension, int64_t count) {
  e.set_int(op, "split_dimension", dimension);
  e.set_int(op, "concat_dimension", dimension);
  e.set_int(op, "split_count", count);
  if (attrs.groups.empty()) {
    std::vector<int64_t> everyone(static_cast<size_t>(count));
    std::iota(everyone.begin(), everyone.end(), int64_t{0});
    e.set_table(op, "replica_groups", everyone, count);
  } else {
    set_groups(e, op, attrs.groups);
  }
  if (attrs.channel) e.set_int(op, "channel_id", attrs.channel);
}

/// Exports the all-to-all in which operand i goes to participant i: the operands are concatenated, exchanged by one op,
/// and split again.
Expected<ExportNode> all_to_all_of_many(Exporter& e, ExportScope& scope, const Instruction& instr) {
  COLLET_ASSIGN(std::vector<Value*> inputs, e.operands(scope, instr));
  const Shape& each = e.module()[instr.operand(0)].shape;
  if (!instr.shape.is_tuple() || instr.shape.elements().size() != inputs.size() || each.has_dynamic())
    return e.fail(instr, "it has not one result for each operand");
  std::vector<int64_t> dims(each.dims().begin(), each.dims().end());
  dims.insert(dims.begin(), 1);
  for (Value*& input : inputs) {
    COLLET_ASSIGN(input, e.emit_reshape(scope, input, dims));
  }
  const auto count = static_cast<int64_t>(inputs.size());
  dims[0] = count;
  TypeRef stacked = e.program().tensor(inputs[0]->type->element, dims);
  mlir::Op* all = e.emit(scope, "stablehlo.concatenate", inputs, {stacked});
  e.set_int(all, "dimension", 0);
  mlir::Op* op = e.emit(scope, "stablehlo.all_to_all", {&all->results[0], 1}, {stacked});
  set_split(e, op, instr.as<AllToAllAttrs>(), 0, count);
  ExportNode out;
  dims[0] = 1;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int64_t> start(dims.size(), 0), limit = dims, stride(dims.size(), 1);
    start[0] = i;
    limit[0] = i + 1;
    mlir::Op* piece =
        e.emit(scope, "stablehlo.slice", {&op->results[0], 1}, {e.program().tensor(stacked->element, dims)});
    e.set_ints(piece, "start_indices", start);
    e.set_ints(piece, "limit_indices", limit);
    e.set_ints(piece, "strides", stride);
    COLLET_ASSIGN(Value * result, e.emit_reshape(scope, piece->results[0], each.dims()));
    out.parts.emplace_back().value = result;
  }
  return out;
}

Expected<ExportNode> all_to_all(Exporter& e, ExportScope& scope, const Instruction& instr) {
  const auto& attrs = instr.as<AllToAllAttrs>();
  if (attrs.dimension.empty()) return all_to_all_of_many(e, scope, instr);
  const GroupMode mode = attrs.channel ? GroupMode::CrossPartition : GroupMode::CrossReplica;
  const int64_t count = subgroup_size(e.module(), mode, attrs.groups);
  return one_each(e, scope, instr, "stablehlo.all_to_all", [&](mlir::Op* op, size_t) {
    set_split(e, op, attrs, attrs.dimension[0], count);
    return ok_status();
  });
}

/// Exports ragged-all-to-all as the custom call that frontends emit; its configuration holds the groups.
Expected<ExportNode> ragged_all_to_all(Exporter& e, ExportScope& scope, const Instruction& instr) {
  const auto& attrs = instr.as<AllToAllAttrs>();
  COLLET_ASSIGN(mlir::Op * op, e.emit_like(scope, "stablehlo.custom_call", instr));
  e.set_text(op, "call_target_name", "ragged_all_to_all");
  e.set_enum(op, "api_version", "API_VERSION_TYPED_FFI");
  mlir::Op scratch;
  set_groups(e, &scratch, attrs.groups);
  std::vector<mlir::NamedAttr> fields;
  if (attrs.channel) fields.push_back({"channel_id", e.int_attr(attrs.channel, Type::S64)});
  fields.push_back(scratch.attrs[0]);
  Attr* config = e.program().make_attr(Attr::Kind::Dict);
  config->fields = e.program().arena().list(fields);
  e.set(op, "backend_config", config);
  return Exporter::from_results(*op);
}

}  // namespace

std::span<const ExportRow> export_collective_rows() {
  static constexpr ExportRow kRows[] = {
      {Op::ALL_REDUCE, all_reduce},
      {Op::ALL_REDUCE_START, all_reduce},
      {Op::ALL_GATHER, all_gather},
      {Op::ALL_GATHER_START, all_gather},
      {Op::REDUCE_SCATTER, reduce_scatter},
      {Op::COLLECTIVE_BROADCAST, collective_broadcast},
      {Op::COLLECTIVE_PERMUTE, collective_permute},
      {Op::COLLECTIVE_PERMUTE_START, collective_permute},
      {Op::ALL_TO_ALL, all_to_all},
      {Op::RAGGED_ALL_TO_ALL, ragged_all_to_all},
  };
  return kRows;
}

}  // namespace collet::hlo
