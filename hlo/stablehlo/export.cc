// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "hlo/stablehlo/exporter.h"
#include "hlo/stablehlo/op_schemas.h"
#include "hlo/stablehlo/regular_ops.h"
#include "hlo/stablehlo/write.h"

// Exports a module to StableHLO: functions, the iteration over instructions, and the attributes that any instruction
// may have.

namespace collet::hlo {
namespace {

using mlir::Attr;
using mlir::AttrRef;
using mlir::NamedAttr;

constexpr int kDeepestComputations = 200;
/// A computation is written at each of its calls, so that each further level of calls may double the program. The writer
/// stops at this number of instructions, and some copies of each instruction of the module.
constexpr size_t kMostCopies = size_t{1} << 18;

ExportFunction find_export(Op op) {
  static const auto* const table = [] {
    auto* out = new std::array<ExportFunction, kLastOp + 1>{};
    for (auto rows : {export_structured_rows(), export_windowed_rows(), export_control_rows(), export_call_rows(),
                      export_collective_rows()})
      for (const ExportRow& row : rows) (*out)[static_cast<size_t>(row.op)] = row.function;
    return out;
  }();
  return static_cast<int>(op) <= kLastOp ? (*table)[static_cast<size_t>(op)] : nullptr;
}

}  // namespace

Status Exporter::fail(const Instruction& instr, std::string_view why) const {
  std::string out;
  if (instr.line) out += "line " + std::to_string(instr.line) + ": ";
  return unimplemented(out + std::string(op_info(instr.op).text) + " " + std::string(instr.name) +
                       " cannot be written as StableHLO: " + std::string(why));
}

AttrRef Exporter::frontend_dictionary(std::span<const FrontendAttribute> attributes) {
  std::vector<NamedAttr> fields;
  for (const FrontendAttribute& a : attributes) {
    // Composites have attributes of their own for these.
    if (a.name.starts_with("composite.")) continue;
    fields.push_back({program_.arena().string(a.name), text_attr(a.value)});
  }
  if (fields.empty()) return nullptr;
  Attr* out = program_.make_attr(Attr::Kind::Dict);
  out->fields = program_.arena().list(fields);
  return out;
}

void Exporter::add_extras(const Instruction& instr, mlir::Op* op) {
  if (!instr.extras) return;
  const Extras& extras = *instr.extras;
  set_frontend_attributes(op, extras.frontend_attributes);
  // The results of send and recv differ from those of HLO's start and done instructions, so the instruction's sharding
  // does not fit.
  const bool transfer = op->name == "stablehlo.send" || op->name == "stablehlo.recv";
  if (extras.sharding && !transfer) set_text(op, "mhlo.sharding", extras.sharding->to_string());
  const ResultAccuracy* accuracy = extras.result_accuracy;
  if (!accuracy || !mlir::is_own_attribute(op->name, "result_accuracy")) return;
  Attr* out = program_.make_attr(Attr::Kind::Accuracy);
  out->floats = program_.arena().list(std::vector<double>{accuracy->atol, accuracy->rtol});
  out->integer = accuracy->ulps;
  out->text = !accuracy->is_mode ? "TOLERANCE" : accuracy->mode == "highest" ? "HIGHEST" : "DEFAULT";
  set(op, "result_accuracy", out);
}

Expected<ExportNode> Exporter::translate(ExportScope& scope, InstrId id) {
  const Instruction& instr = module_[id];
  last_ = nullptr;
  ExportNode out;
  if (const ExportFunction special = find_export(instr.op)) {
    COLLET_ASSIGN(out, special(*this, scope, instr));
  } else if (const std::string_view name = regular_name(instr.op); !name.empty()) {
    COLLET_ASSIGN(mlir::Op * op, emit_like(scope, name, instr));
    out = from_results(*op);
  } else {
    return fail(instr, "there is no such op");
  }
  if (last_) add_extras(instr, last_);
  return out;
}

Status Exporter::translate_all(ExportScope& scope, CompId computation) {
  if (depth_ > kDeepestComputations)
    return fail(module_[module_[computation].root],
                "computations call each other deeper than " + std::to_string(kDeepestComputations));
  for (InstrId id : module_[computation].order) {
    if (module_[id].op == Op::PARAMETER) {
      if (!scope.nodes.contains(id)) return fail(module_[id], "it is no parameter of its computation");
      continue;
    }
    if (++written_ > kMostCopies + 8 * module_.instruction_limit())
      return resource_exhausted(
          "the program is too large as StableHLO, which has no computations that several ops share");
    for (InstrId operand : module_[id].operands)
      if (!scope.nodes.contains(operand)) return fail(module_[id], "an operand stands behind it");
    COLLET_ASSIGN(ExportNode node, translate(scope, id));
    scope.nodes[id] = std::move(node);
  }
  if (!scope.nodes.contains(module_[computation].root)) return invalid_argument("a computation has no root");
  return {};
}

// Adds a region with an empty block to the op.
static mlir::Block* add_block(mlir::Program& program, mlir::Op* op) {
  mlir::Region* region = program.make_region();
  mlir::Block* block = program.make_block();
  region->blocks.push_back(block);
  op->regions.push_back(region);
  return block;
}

static mlir::Value* add_argument(mlir::Program& program, mlir::Block* block, mlir::TypeRef type) {
  mlir::Value* argument = program.make_value(type);
  argument->index = static_cast<uint32_t>(block->arguments.size());
  block->arguments.push_back(argument);
  return argument;
}

Status Exporter::region(mlir::Op* op, CompId computation, const std::vector<ExportNode>* bound) {
  mlir::Op* const outer = last_;
  mlir::Block* block = add_block(program_, op);
  ExportScope inner;
  inner.block = block;
  const auto& parameters = module_[computation].parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (bound) {
      if (i < bound->size()) inner.nodes[parameters[i]] = (*bound)[i];
      continue;
    }
    const Shape& shape = module_[parameters[i]].shape;
    std::vector<mlir::TypeRef> types;
    COLLET_TRY(leaf_types(shape, types));
    std::vector<mlir::Value*> arguments;
    for (mlir::TypeRef type : types) arguments.push_back(add_argument(program_, block, type));
    inner.nodes[parameters[i]] = from_leaves(shape, arguments);
  }
  ++depth_;
  COLLET_TRY(translate_all(inner, computation));
  --depth_;
  const Instruction& root = module_[module_[computation].root];
  std::vector<mlir::Value*> returned;
  COLLET_TRY(leaves(inner, inner.nodes.at(module_[computation].root), returned));
  if (static_cast<int64_t>(returned.size()) != root.shape.leaf_count()) return fail(root, kUnfinished);
  emit(inner, "stablehlo.return", returned, {});
  last_ = outer;
  return {};
}

Status Exporter::combiner(mlir::Op* op, CompId computation, Type type) {
  const auto& parameters = module_[computation].parameters;
  const Type own = parameters.empty() ? type : module_[parameters[0]].shape.type();
  if (own == type || parameters.size() != 2) return region(op, computation);
  mlir::Op* const outer = last_;
  mlir::Block* block = add_block(program_, op);
  ExportScope scope;
  scope.block = block;
  std::vector<ExportNode> arguments(2);
  for (ExportNode& each : arguments) {
    mlir::Value* argument = add_argument(program_, block, program_.tensor(program_.scalar(type), {}));
    each.value = emit_convert(scope, argument, own);
  }
  COLLET_ASSIGN(ExportNode root, inlined(scope, computation, std::move(arguments)));
  COLLET_ASSIGN(mlir::Value * value, whole(scope, root));
  mlir::Value* const narrowed = emit_convert(scope, value, type);
  emit(scope, "stablehlo.return", {&narrowed, 1}, {});
  last_ = outer;
  return {};
}

Expected<ExportNode> Exporter::inlined(ExportScope& scope, CompId computation, std::vector<ExportNode> arguments) {
  ExportScope inner;
  inner.block = scope.block;
  const auto& parameters = module_[computation].parameters;
  for (size_t i = 0; i < parameters.size() && i < arguments.size(); ++i)
    inner.nodes[parameters[i]] = std::move(arguments[i]);
  ++depth_;
  COLLET_TRY(translate_all(inner, computation));
  --depth_;
  // No op stands for the outer instruction, so its attributes are dropped.
  last_ = nullptr;
  return inner.nodes.at(module_[computation].root);
}

Expected<std::string_view> Exporter::function(CompId computation) {
  const auto done = function_names_.find(computation);
  if (done != function_names_.end()) return done->second;
  std::string name(module_[computation].name);
  int& number = numbers_[name];
  while (taken_.contains(name)) name = std::string(module_[computation].name) + "." + std::to_string(++number);
  const std::string_view kept = program_.arena().string(name);
  taken_.insert(kept);
  function_names_[computation] = kept;
  mlir::Op* const outer = last_;
  COLLET_ASSIGN(mlir::Op * op, build_function(computation, kept, false));
  last_ = outer;
  functions_->ops.push_back(op);
  return kept;
}

Status Exporter::add_returns(ExportScope& scope, const Shape& shape, const ExportNode& root, mlir::Op* function,
                             mlir::Type* type) {
  std::vector<mlir::Value*> returned;
  if (shape.is_tuple() && shape.elements().size() != 1) {
    for (size_t i = 0; i < shape.elements().size(); ++i) {
      COLLET_ASSIGN(ExportNode element, part(scope, root, i));
      COLLET_ASSIGN(mlir::Value * value, whole(scope, element));
      returned.push_back(value);
    }
  } else {
    COLLET_ASSIGN(mlir::Value * value, whole(scope, root));
    returned.push_back(value);
  }
  COLLET_ASSIGN(std::vector<mlir::TypeRef> expected, result_types(shape));
  std::vector<mlir::TypeRef> results;
  for (const mlir::Value* v : returned) {
    if (v->type->kind != expected[results.size()]->kind)
      return unimplemented("a result cannot be written as StableHLO: " + std::string(kUnfinished));
    results.push_back(v->type);
  }
  type->results = program_.arena().list(results);
  emit(scope, "stablehlo.return", returned, {});
  set(function, "function_type", type_attr(type));
  return {};
}

Expected<mlir::Op*> Exporter::build_function(CompId computation, std::string_view name, bool entry) {
  mlir::Op* op = program_.make_op("func.func");
  set_text(op, "sym_name", name);
  set_text(op, "sym_visibility", entry ? "public" : "private");
  mlir::Region* region = program_.make_region();
  mlir::Block* block = program_.make_block();
  region->blocks.push_back(block);
  op->regions.push_back(region);
  ExportScope scope;
  scope.block = block;
  std::vector<mlir::TypeRef> inputs;
  for (InstrId id : module_[computation].parameters) {
    auto one = type(module_[id].shape);
    if (!one.ok()) return fail(module_[id], one.status().message());
    mlir::Value* argument = program_.make_value(*one);
    argument->index = static_cast<uint32_t>(inputs.size());
    inputs.push_back(*one);
    block->arguments.push_back(argument);
    scope.nodes[id].value = argument;
  }
  ++depth_;
  COLLET_TRY(translate_all(scope, computation));
  --depth_;
  mlir::Type* function_type = program_.make_type(mlir::Type::Kind::Function);
  function_type->inputs = program_.arena().list(inputs);
  const InstrId root = module_[computation].root;
  COLLET_TRY(add_returns(scope, module_[root].shape, scope.nodes.at(root), op, function_type));
  if (entry) add_entry_attributes(op);
  if (entry && entry_values_)
    for (const auto& [id, node] : scope.nodes)
      if (node.value) entry_values_->emplace(id, node.value);
  return op;
}

/// Writes donation, shardings and frontend attributes of the entry's arguments, and the shardings of its results.
void Exporter::add_entry_attributes(mlir::Op* function) {
  const Computation& entry = module_.entry_computation();
  std::vector<std::vector<NamedAttr>> arguments(entry.parameters.size());
  for (const InputOutputAlias& alias : module_.header().aliases) {
    const auto i = static_cast<size_t>(alias.parameter);
    if (alias.must || !alias.parameter_index.empty() || alias.output_index.size() > 1 || i >= arguments.size())
      continue;
    const int64_t output = alias.output_index.empty() ? 0 : alias.output_index[0];
    arguments[i].push_back({"tf.aliasing_output", int_attr(output, Type::S32)});
  }
  for (const BufferDonor& donor : module_.header().donors) {
    const auto i = static_cast<size_t>(donor.parameter);
    if (donor.parameter_index.empty() && i < arguments.size())
      arguments[i].push_back({"jax.buffer_donor", bool_attr(true)});
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Extras* extras = module_[entry.parameters[i]].extras;
    if (!extras) continue;
    if (AttrRef frontend = frontend_dictionary(extras->frontend_attributes))
      arguments[i].push_back({"mhlo.frontend_attributes", frontend});
    if (extras->sharding) arguments[i].push_back({"mhlo.sharding", text_attr(extras->sharding->to_string())});
  }
  const Instruction& root = module_[entry.root];
  const bool apart = root.shape.is_tuple() && root.shape.elements().size() != 1;
  std::vector<std::vector<NamedAttr>> results(apart ? root.shape.elements().size() : 1);
  const ModuleHeader& header = module_.header();
  if (header.has_entry_layout) {
    const auto set_layouts = [&](std::span<const Shape> shapes, std::vector<std::vector<NamedAttr>>& values) {
      for (size_t i = 0; i < std::min(shapes.size(), values.size()); ++i) {
        if (!shapes[i].layout()) continue;
        Layout order;  // StableHLO has no other properties of layouts
        order.minor_to_major = shapes[i].layout()->minor_to_major;
        if (!order.is_default()) values[i].push_back({"mhlo.layout_mode", text_attr(layout_to_string(order))});
      }
    };
    set_layouts(header.entry_parameters, arguments);
    set_layouts(apart ? header.entry_result.elements() : std::span(&header.entry_result, 1), results);
  }
  const auto set_all = [&](std::string_view name, const std::vector<std::vector<NamedAttr>>& lists) {
    if (std::all_of(lists.begin(), lists.end(), [](const auto& list) { return list.empty(); })) return;
    std::vector<AttrRef> items;
    for (const auto& list : lists) {
      Attr* dictionary = program_.make_attr(Attr::Kind::Dict);
      dictionary->fields = program_.arena().list(list);
      items.push_back(dictionary);
    }
    Attr* out = program_.make_attr(Attr::Kind::Array);
    out->items = program_.arena().list(items);
    set(function, name, out);
  };
  set_all("arg_attrs", arguments);
  if (root.extras && root.extras->sharding) {
    const Sharding& sharding = *root.extras->sharding;
    const size_t count = results.size();
    const bool each = sharding.kind == Sharding::Kind::Tuple && sharding.elements.size() == count && count > 1;
    for (size_t i = 0; i < count; ++i)
      results[i].push_back({"mhlo.sharding", text_attr((each ? sharding.elements[i] : sharding).to_string())});
  }
  set_all("res_attrs", results);
}

void Exporter::add_module_attributes() {
  mlir::Op* op = program_.module;
  const ModuleHeader& header = module_.header();
  set_text(op, "sym_name", module_.name());
  if (AttrRef frontend = frontend_dictionary(header.frontend_attributes)) set(op, "mhlo.frontend_attributes", frontend);
  std::vector<AttrRef> aliases;
  const auto ints = [&](Dims values) {
    Attr* out = program_.make_attr(Attr::Kind::Ints);
    out->ints = program_.arena().list<const int64_t>(std::span<const int64_t>(values));
    return out;
  };
  const auto dictionary = [&](std::vector<NamedAttr> fields) {
    Attr* out = program_.make_attr(Attr::Kind::Dict);
    out->fields = program_.arena().list(fields);
    return out;
  };
  for (const InputOutputAlias& alias : header.aliases) {
    if (!alias.must && alias.parameter_index.empty() && alias.output_index.size() <= 1) continue;
    AttrRef inside = dictionary({{"kind", text_attr(alias.must ? "must_alias" : "may_alias")},
                                 {"parameter_index", ints(alias.parameter_index)},
                                 {"parameter_number", int_attr(alias.parameter, Type::S64)}});
    aliases.push_back(dictionary({{"alias", inside}, {"output_index", ints(alias.output_index)}}));
  }
  if (!aliases.empty()) {
    Attr* list = program_.make_attr(Attr::Kind::Array);
    list->items = program_.arena().list(aliases);
    set(op, "mhlo.input_output_alias", list);
  }
  if (header.num_partitions != 1) set_int(op, "mhlo.num_partitions", header.num_partitions, Type::S32);
  if (header.replica_count != 1) set_int(op, "mhlo.num_replicas", header.replica_count, Type::S32);
}

Status Exporter::run(ExportedValues* values) {
  entry_values_ = values;
  if (module_.entry() == CompId::None) return invalid_argument("the module has no entry computation");
  program_.module = program_.make_op("builtin.module");
  mlir::Region* region = program_.make_region();
  functions_ = program_.make_block();
  region->blocks.push_back(functions_);
  program_.module->regions.push_back(region);
  add_module_attributes();
  taken_.insert("main");
  COLLET_ASSIGN(mlir::Op * entry, build_function(module_.entry(), "main", true));
  functions_->ops.insert(functions_->ops.begin(), entry);
  return {};
}

Expected<std::unique_ptr<mlir::Program>> export_program(const Module& module, ExportedValues* values) {
  auto program = std::make_unique<mlir::Program>();
  COLLET_TRY(Exporter(module, *program).run(values));
  return program;
}

Expected<std::string> write_stablehlo_text(const Module& module) {
  COLLET_ASSIGN(std::unique_ptr<mlir::Program> program, export_program(module));
  return mlir::print_program(*program);
}

Expected<std::string> write_stablehlo_artifact(const Module& module, std::string_view version) {
  COLLET_ASSIGN(uint64_t number, mlir::parse_vhlo_version(version));
  COLLET_ASSIGN(std::unique_ptr<mlir::Program> program, export_program(module));
  return mlir::write_bytecode(*program, number);
}

}  // namespace collet::hlo
