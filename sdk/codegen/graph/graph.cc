// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/graph/graph.h"

#include <cstring>

#include "sdk/codegen/base/factorization.h"

namespace collet::codegen {
namespace {

std::string op_label(const collet_program* p, const collet_op* op) {
  std::string label = collet_op_name(op->opcode);
  if (op->name.count) label += " '" + std::string(collet_string(p, op->name), op->name.count) + "'";
  return label;
}

/// True if all elements of a constant have the same bytes.
bool is_splat(const void* data, int64_t elements, uint32_t width) {
  const char* bytes = static_cast<const char*>(data);
  return elements > 0 && width > 0 &&
         std::memcmp(bytes, bytes + width, static_cast<size_t>((elements - 1) * width)) == 0;
}

class Builder {
 public:
  Builder(const collet_program* program, Graph& graph) : p_(program), graph_(graph) {
    map_.assign(program->values.count, kNone);
  }

  Status run() {
    graph_.program = p_;
    BlockId entry = 0;
    return block(0, entry);
  }

 private:
  ArrayType type_of(uint32_t value) const {
    const collet_type* t = collet_value_type(p_, value);
    const int64_t* dims = collet_integers(p_, t->dims);
    return make_type(t->element, Dims(dims, dims + t->dims.count));
  }

  /// Converts a region to a block of its own.
  Status block(uint32_t region_id, BlockId& out) {
    const collet_region* region = collet_region_at(p_, region_id);
    out = static_cast<BlockId>(graph_.blocks.size());
    graph_.blocks.emplace_back();
    graph_.blocks[out].combine = region->combine;
    graph_.blocks[out].region = region_id;
    for (uint32_t i = 0; i < region->arguments.count; ++i) {
      uint32_t argument = region->arguments.first + i;
      ValueId v = graph_.add_value(type_of(argument));
      graph_.values[v].index = i;
      map_[argument] = v;
      graph_.blocks[out].arguments.push_back(v);
    }
    std::vector<ValueId> results;
    COLLET_CODEGEN_TRY(body(region_id, out, results));
    graph_.blocks[out].results = std::move(results);
    return {};
  }

  /// Appends the ops of a region to block `into`. The region's arguments must be mapped to values already.
  Status body(uint32_t region_id, BlockId into, std::vector<ValueId>& results) {
    const collet_region* region = collet_region_at(p_, region_id);
    for (uint32_t i = 0; i < region->ops.count; ++i) {
      COLLET_CODEGEN_TRY(add(collet_op_at(p_, region->ops.first + i), into));
    }
    for (uint32_t i = 0; i < region->results.count; ++i) {
      results.push_back(map_[collet_ref_at(p_, region->results.first + i)]);
    }
    return {};
  }

  Status add(const collet_op* op, BlockId into) {
    std::vector<ValueId> operands;
    for (uint32_t i = 0; i < op->operands.count; ++i) {
      ValueId v = map_[collet_operand(p_, op, i)];
      if (v == kNone) return {COLLET_INVALID_ARGUMENT, op_label(p_, op) + ": operand is not defined before its use"};
      operands.push_back(v);
    }
    switch (op->opcode) {
      case COLLET_OP_CALL:
        // Becomes a node; the region that defines the composite is not read.
        if (factorization_of(p_, op) != Factorization::kUnknown) break;
        return inline_region(op, operands, into);
      case COLLET_OP_FUSION:
        return inline_region(op, operands, into);
      case COLLET_OP_COPY:
      case COLLET_OP_OPT_BARRIER:
      case COLLET_OP_ADD_DEPENDENCY:
      case COLLET_OP_DOMAIN:
        for (uint32_t i = 0; i < op->results.count; ++i) map_[op->results.first + i] = operands[i];
        return {};
      case COLLET_OP_CONSTANT:
        return constant(op);
      default:
        break;
    }
    NodeId id = static_cast<NodeId>(graph_.nodes.size());
    graph_.nodes.push_back({op->opcode, op, operands, {}, {}});
    std::vector<ValueId> result_ids;
    for (uint32_t i = 0; i < op->results.count; ++i) {
      ValueId v = graph_.add_value(type_of(op->results.first + i));
      graph_.values[v].def = id;
      graph_.values[v].index = i;
      map_[op->results.first + i] = v;
      result_ids.push_back(v);
    }
    graph_.nodes[id].results = result_ids;
    const uint32_t regions = op->opcode == COLLET_OP_CALL ? 0 : op->regions.count;
    for (uint32_t i = 0; i < regions; ++i) {
      BlockId b = 0;
      COLLET_CODEGEN_TRY(block(op->regions.first + i, b));
      graph_.nodes[id].blocks.push_back(b);
    }
    graph_.blocks[into].nodes.push_back(id);
    return {};
  }

  Status inline_region(const collet_op* op, const std::vector<ValueId>& operands, BlockId into) {
    if (op->regions.count != 1) return {COLLET_INVALID_ARGUMENT, op_label(p_, op) + ": has no region"};
    const collet_region* region = collet_region_at(p_, op->regions.first);
    for (uint32_t i = 0; i < region->arguments.count; ++i) map_[region->arguments.first + i] = operands[i];
    std::vector<ValueId> results;
    COLLET_CODEGEN_TRY(body(op->regions.first, into, results));
    for (uint32_t i = 0; i < op->results.count; ++i) map_[op->results.first + i] = results[i];
    return {};
  }

  Status constant(const collet_op* op) {
    collet_constant_attrs attrs;
    collet_read_attributes(p_, op, &attrs, sizeof attrs);
    const collet_constant* c = collet_constant_at(p_, attrs.constant);
    if (c->argument != COLLET_NONE) {  // the constant is passed as an argument of the entry
      map_[op->results.first] = graph_.blocks[0].arguments[c->argument];
      return {};
    }
    ValueId v = graph_.add_value(type_of(op->results.first));
    Value& value = graph_.values[v];
    value.constant = collet_constant_data(p_, c);
    value.splat = is_splat(value.constant, value.type.elements, collet_type_bytes(value.type.element));
    map_[op->results.first] = v;
    return {};
  }

  const collet_program* p_;
  Graph& graph_;
  std::vector<ValueId> map_;
};

}  // namespace

ValueId Graph::add_value(ArrayType type) {
  values.push_back({std::move(type), kNone, 0, nullptr, false});
  return static_cast<ValueId>(values.size() - 1);
}

Dims integers(const Graph& graph, collet_range range) {
  const int64_t* first = collet_integers(graph.program, range);
  return Dims(first, first + range.count);
}

Status check_program(const collet_program* p) {
  if (p->magic != COLLET_PROGRAM_MAGIC) return {COLLET_INVALID_ARGUMENT, "not a program: wrong magic number"};
  if (p->flags != 0 || p->reserved[0] != 0 || p->reserved[1] != 0 || p->reserved[2] != 0) {
    return {COLLET_UNIMPLEMENTED, "program: a reserved field is not zero"};
  }
  for (uint32_t i = 0; i < p->types.count; ++i) {
    const collet_type* t = collet_type_at(p, i);
    if (t->layout != 0 || t->reserved != 0)
      return {COLLET_UNIMPLEMENTED, "a type has a layout or a reserved field set"};
    if (std::strcmp(collet_type_name(t->element), "?") == 0) {
      return {COLLET_UNIMPLEMENTED, "unknown element type " + std::to_string(t->element)};
    }
  }
  for (uint32_t i = 0; i < p->ops.count; ++i) {
    const collet_op* op = collet_op_at(p, i);
    if (std::strcmp(collet_op_name(op->opcode), "?") == 0) {
      return {COLLET_UNIMPLEMENTED, "unknown opcode " + std::to_string(op->opcode)};
    }
    if (op->since > COLLET_OPSET) {
      return {COLLET_UNIMPLEMENTED, op_label(p, op) + ": needs opset " + std::to_string(op->since)};
    }
    if (op->flags != 0 || op->reserved != 0) {
      return {COLLET_UNIMPLEMENTED, op_label(p, op) + ": a reserved field is not zero"};
    }
  }
  return {};
}

Status build_graph(const collet_program* program, Graph& graph) {
  COLLET_CODEGEN_TRY(check_program(program));
  return Builder(program, graph).run();
}

}  // namespace collet::codegen
