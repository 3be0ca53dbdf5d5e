// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/importer.h"

#include <algorithm>
#include <unordered_set>

#include "hlo/stablehlo/import.h"

namespace collet::hlo {
namespace {

constexpr int kDeepest = 250;  // depth of nested blocks

void collect_defined(const mlir::Op& op, std::unordered_set<const mlir::Value*>& defined) {
  for (const mlir::Value* v : op.results) defined.insert(v);
  for (const mlir::Region* region : op.regions)
    for (const mlir::Block* block : region->blocks) {
      for (const mlir::Value* v : block->arguments) defined.insert(v);
      for (const mlir::Op* inner : block->ops) collect_defined(*inner, defined);
    }
}

bool is_constant(const mlir::Value* value) {
  return value->op && value->op->name == "stablehlo.constant";
}

/// Collects the values that the op uses from outside, each once, and adds them to `defined`.
void collect_free(const mlir::Op& op, std::unordered_set<const mlir::Value*>& defined,
                  std::vector<const mlir::Value*>& free) {
  for (const mlir::Value* v : op.operands)
    if (!is_constant(v) && defined.insert(v).second) free.push_back(v);
  for (const mlir::Region* region : op.regions)
    for (const mlir::Block* block : region->blocks)
      for (const mlir::Op* inner : block->ops) collect_free(*inner, defined, free);
}

bool is_terminator(const mlir::Op& op) {
  return op.name == "stablehlo.return" || op.name == "func.return";
}

}  // namespace

Status Importer::fail(const mlir::Op& op, std::string_view message) const {
  std::string out;
  if (op.line) out += "line " + std::to_string(op.line) + ": ";
  return invalid_argument(out + std::string(op.name) + ": " + std::string(message));
}

Status Importer::placed(const mlir::Op& op, Status status) {
  if (status.ok() || !op.line || status.message().starts_with("line ")) return status;
  const bool named = status.message().starts_with(op.name);
  return status.with_prefix("line " + std::to_string(op.line) + ": " + (named ? "" : std::string(op.name) + ": "));
}

Expected<Shape> Importer::shape(mlir::TypeRef type) const {
  using TypeKind = mlir::Type::Kind;
  if (!type) return invalid_argument("a value has no type");
  switch (type->kind) {
    case TypeKind::Token:
      return Shape::token();
    case TypeKind::Index:
      return Shape::scalar(Type::S64);
    case TypeKind::Tuple:
    case TypeKind::Future: {
      std::vector<Shape> elements;
      for (mlir::TypeRef t : type->inputs) {
        COLLET_ASSIGN(Shape element, shape(t));
        elements.push_back(std::move(element));
      }
      return Shape::tuple(std::move(elements));
    }
    case TypeKind::Tensor:
    case TypeKind::Buffer: {
      const Type element = mlir::element_type(type->element);
      if (element == Type::Invalid) return unimplemented("values of type " + mlir::to_string(type));
      std::vector<int64_t> dims(type->dims.begin(), type->dims.end());
      std::vector<bool> dynamic(dims.size());
      for (size_t i = 0; i < dims.size(); ++i) {
        dynamic[i] = dims[i] == kUnbounded;
        if (dynamic[i] && i < type->bounds.size() && type->bounds[i] != kUnbounded) dims[i] = type->bounds[i];
        if (!dynamic[i] && dims[i] < 0) return invalid_argument("a negative dimension in " + mlir::to_string(type));
      }
      Shape out = Shape::array(element, dims, dynamic);
      return type->kind == TypeKind::Buffer ? Shape::buffer(out) : out;
    }
    default:
      return unimplemented("values of type " + mlir::to_string(type));
  }
}

Expected<Shape> Importer::result_shape(const mlir::Op& op) const {
  std::vector<Shape> shapes;
  for (const mlir::Value* v : op.results) {
    auto one = shape(v->type);
    if (!one.ok()) return fail(op, one.status().message());
    shapes.push_back(*one);
  }
  return shapes.size() == 1 ? shapes[0] : Shape::tuple(std::move(shapes));
}

Expected<InstrId> Importer::lookup(ImportScope& scope, const mlir::Value* value, const mlir::Op& user) {
  const auto it = scope.values.find(value);
  if (it != scope.values.end()) return it->second;
  if (is_constant(value)) {
    COLLET_TRY(translate(scope, *value->op));
    if (const auto made = scope.values.find(value); made != scope.values.end()) return made->second;
  }
  return fail(user, "uses a value of an outer region, which this op cannot take");
}

Expected<InstrId> Importer::value(ImportScope& scope, const mlir::Op& op, size_t operand) {
  if (operand >= op.operands.size()) return fail(op, "has too few operands");
  return lookup(scope, op.operands[operand], op);
}

Expected<std::vector<InstrId>> Importer::all_values(ImportScope& scope, const mlir::Op& op, size_t first) {
  std::vector<InstrId> out;
  for (size_t i = first; i < op.operands.size(); ++i) {
    COLLET_ASSIGN(InstrId id, value(scope, op, i));
    out.push_back(id);
  }
  return out;
}

InstrId Importer::emit(ImportScope& scope, Op op, const Shape& shape, std::span<const InstrId> operands,
                       const void* attrs, std::span<const CompId> called) {
  if (shape.is_tuple() && too_large_.ok()) too_large_ = budget_.charge(shape);
  const InstrId id = module_.append(scope.computation, op, shape, operands, attrs, called);
  module_[id].line = line_;
  return id;
}

InstrId Importer::emit_constant(ImportScope& scope, Literal literal) {
  const InstrId id = module_.append_constant(scope.computation, std::move(literal));
  module_[id].line = line_;
  return id;
}

InstrId Importer::emit_splat(ImportScope& scope, const Shape& like, Type type, double value) {
  const InstrId scalar = emit_constant(scope, Literal::scalar(type, value));
  if (like.rank() == 0) return scalar;
  return emit(scope, Op::BROADCAST, like.with_type(type), {scalar}, module_.make<BroadcastAttrs>());
}

Status Importer::define(ImportScope& scope, const mlir::Op& op, InstrId id) {
  if (op.results.size() == 1) {
    scope.values[op.results[0]] = id;
    return {};
  }
  const Shape whole = shape_of(id).without_layout();
  if (!op.results.empty() && (!whole.is_tuple() || whole.elements().size() != op.results.size()))
    return fail(op, "has another number of results than it computes");
  for (size_t i = 0; i < op.results.size(); ++i) {
    auto* attrs = module_.make<TupleIndexAttrs>();
    attrs->index = static_cast<int64_t>(i);
    const Shape& element = whole.element(i);
    scope.values[op.results[i]] = emit(scope, Op::GET_TUPLE_ELEMENT, element, {id}, attrs);
  }
  return {};
}

InstrId Importer::make_root(ImportScope& scope, std::span<const InstrId> returned, bool always_tuple) {
  InstrId root;
  if (returned.size() == 1 && !always_tuple) {
    root = returned[0];
  } else {
    std::vector<Shape> shapes;
    for (InstrId id : returned) shapes.push_back(shape_of(id));
    root = emit(scope, Op::TUPLE, Shape::tuple(std::move(shapes)), returned);
  }
  module_[scope.computation].root = root;
  return root;
}

Status Importer::translate_block(ImportScope& scope, const mlir::Block& block, std::vector<InstrId>* returned) {
  if (depth_ > kDeepest && !block.ops.empty())
    return fail(*block.ops[0], "regions and calls are nested too deeply, more than " + std::to_string(kDeepest));
  ++depth_;
  const uint32_t line = line_;
  for (const mlir::Op* op : block.ops) {
    line_ = op->line;
    if (is_terminator(*op)) {
      COLLET_ASSIGN(*returned, all_values(scope, *op));
      break;
    }
    COLLET_TRY(placed(*op, translate(scope, *op)));
    if (!too_large_.ok()) return fail(*op, too_large_.message());
  }
  line_ = line;
  --depth_;
  return {};
}

std::vector<const mlir::Value*> Importer::captures(const mlir::Op& op) const {
  std::unordered_set<const mlir::Value*> defined;
  for (const mlir::Region* region : op.regions)
    for (const mlir::Block* block : region->blocks) {
      for (const mlir::Value* v : block->arguments) defined.insert(v);
      for (const mlir::Op* inner : block->ops) collect_defined(*inner, defined);
    }
  std::vector<const mlir::Value*> free;
  for (const mlir::Region* region : op.regions)
    for (const mlir::Block* block : region->blocks)
      for (const mlir::Op* inner : block->ops) collect_free(*inner, defined, free);
  return free;
}

CompId Importer::open_computation(std::string_view name) {
  const CompId id = module_.add_computation(name);
  module_.computations().pop_back();
  return id;
}

Expected<CompId> Importer::region(ImportScope&, const mlir::Op& op, size_t index) {
  const mlir::Block* block = op.body(index);
  if (!block) return fail(op, "lacks a region");
  ImportScope inner;
  inner.computation = open_computation(module_.unique_name("region"));
  for (size_t i = 0; i < block->arguments.size(); ++i) {
    auto one = shape(block->arguments[i]->type);
    if (!one.ok()) return fail(op, one.status().message());
    const InstrId parameter = module_.append_parameter(inner.computation, static_cast<int64_t>(i), *one);
    module_[parameter].line = op.line;
    inner.values[block->arguments[i]] = parameter;
  }
  std::vector<InstrId> returned;
  COLLET_TRY(translate_block(inner, *block, &returned));
  if (returned.empty() && !op.results.empty()) return fail(op, "has a region that returns nothing");
  make_root(inner, returned, returned.empty());
  module_.computations().push_back(inner.computation);
  return inner.computation;
}

Expected<CompId> Importer::tuple_region(ImportScope& outer, const mlir::Op& op, size_t index,
                                        std::span<const mlir::Value* const> captured, bool return_captured,
                                        std::string_view name) {
  const mlir::Block* block = op.body(index);
  if (!block) return fail(op, "lacks a region");
  ImportScope inner;
  inner.computation = open_computation(module_.unique_name(name));
  std::vector<const mlir::Value*> elements(block->arguments.begin(), block->arguments.end());
  elements.insert(elements.end(), captured.begin(), captured.end());
  std::vector<Shape> shapes;
  for (size_t i = 0; i < elements.size(); ++i) {
    if (i >= block->arguments.size()) {
      // A captured value may have a more precise shape than its type says: it has the shape of the outer instruction.
      COLLET_ASSIGN(InstrId id, lookup(outer, elements[i], op));
      shapes.push_back(shape_of(id));
      continue;
    }
    auto one = shape(elements[i]->type);
    if (!one.ok()) return fail(op, one.status().message());
    shapes.push_back(*one);
  }
  const bool alone = shapes.size() == 1;
  const InstrId parameter = module_.append_parameter(inner.computation, 0, alone ? shapes[0] : Shape::tuple(shapes));
  module_[parameter].line = op.line;
  for (size_t i = 0; i < elements.size(); ++i) {
    if (alone) {
      inner.values[elements[i]] = parameter;
      break;
    }
    auto* attrs = module_.make<TupleIndexAttrs>();
    attrs->index = static_cast<int64_t>(i);
    inner.values[elements[i]] = emit(inner, Op::GET_TUPLE_ELEMENT, shapes[i], {parameter}, attrs);
  }
  std::vector<InstrId> returned;
  COLLET_TRY(translate_block(inner, *block, &returned));
  if (return_captured)
    for (const mlir::Value* v : captured) returned.push_back(inner.values.at(v));
  make_root(inner, returned, false);
  module_.computations().push_back(inner.computation);
  return inner.computation;
}

Status Importer::check_returned(const mlir::Op& function, std::span<const InstrId> returned) const {
  const mlir::AttrRef attr = function.attr("function_type");
  if (!attr || !attr->type || attr->type->kind != mlir::Type::Kind::Function) return {};
  const List<const mlir::TypeRef> declared = attr->type->results;
  if (declared.size() != returned.size())
    return fail(function, "returns " + std::to_string(returned.size()) + " values, but has " +
                              std::to_string(declared.size()) + " results");
  for (size_t i = 0; i < returned.size(); ++i) {
    auto one = shape(declared[i]);
    if (!one.ok()) return fail(function, one.status().message());
    const Shape& given = shape_of(returned[i]);
    if (!one->compatible(given))
      return fail(function,
                  "has a result of type " + mlir::to_string(declared[i]) + ", but returns " + given.to_string());
  }
  return {};
}

Expected<CompId> Importer::function(std::string_view name, const mlir::Op& caller) {
  if (const auto done = imported_.find(name); done != imported_.end()) return done->second;
  const auto it = functions_.find(name);
  if (it == functions_.end()) return fail(caller, "there is no function @" + std::string(name));
  if (std::find(importing_.begin(), importing_.end(), name) != importing_.end())
    return fail(caller, "function @" + std::string(name) + " calls itself");
  const mlir::Block* block = it->second->body();
  if (!block) return fail(*it->second, "function @" + std::string(name) + " has no body");
  importing_.push_back(name);
  ImportScope scope;
  scope.computation = open_computation(module_.unique_name(name));
  for (size_t i = 0; i < block->arguments.size(); ++i) {
    auto one = shape(block->arguments[i]->type);
    if (!one.ok()) return fail(*it->second, one.status().message());
    const InstrId parameter = module_.append_parameter(scope.computation, static_cast<int64_t>(i), *one,
                                                       module_.unique_name("Arg_" + std::to_string(i)));
    module_[parameter].line = it->second->line;
    scope.values[block->arguments[i]] = parameter;
  }
  // The entry's: loops that capture an argument have its sharding.
  if (importing_.size() == 1) COLLET_TRY(read_argument_shardings(*it->second, module_[scope.computation].parameters));
  std::vector<InstrId> returned;
  COLLET_TRY(translate_block(scope, *block, &returned));
  COLLET_TRY(check_returned(*it->second, returned));
  constrain_results(scope, *it->second, returned);
  make_root(scope, returned, false);
  module_.computations().push_back(scope.computation);
  importing_.pop_back();
  imported_[name] = scope.computation;
  return scope.computation;
}

Status Importer::read_argument_shardings(const mlir::Op& function, const std::vector<InstrId>& parameters) {
  const mlir::AttrRef list = function.attr("arg_attrs");
  if (!list || list->kind != mlir::Attr::Kind::Array) return {};
  for (size_t i = 0; i < std::min(list->items.size(), parameters.size()); ++i) {
    if (!list->items[i]) continue;
    for (const mlir::NamedAttr& a : list->items[i]->fields) {
      if (a.value && a.name == "mhlo.sharding") COLLET_TRY(add_text_sharding(function, parameters[i], a.value));
      if (a.value && a.name == "sdy.sharding") add_sharding(parameters[i], a.value);
    }
  }
  return {};
}

Status Importer::read_entry_attributes(const mlir::Op& function) {
  COLLET_TRY(add_result_shardings(function));
  COLLET_TRY(read_entry_layouts(function));
  const mlir::AttrRef list = function.attr("arg_attrs");
  if (!list || list->kind != mlir::Attr::Kind::Array) return {};
  const bool tuple_result = shape_of(module_.entry_computation().root).is_tuple();
  const std::vector<InstrId>& parameters = module_.entry_computation().parameters;
  for (size_t i = 0; i < std::min(list->items.size(), parameters.size()); ++i) {
    if (!list->items[i]) continue;
    for (const mlir::NamedAttr& a : list->items[i]->fields) {
      if (!a.value) continue;
      if (a.name == "mhlo.frontend_attributes") {
        add_frontend_attributes(parameters[i], a.value);
      } else if (a.name == "tf.aliasing_output") {
        InputOutputAlias alias;
        alias.line = function.line;
        if (tuple_result) alias.output_index = module_.dims({a.value->integer});
        alias.parameter = static_cast<int64_t>(i);
        module_.header().aliases.push_back(alias);
      } else if (a.name == "jax.buffer_donor") {
        module_.header().donors.push_back({static_cast<int64_t>(i), {}, function.line});
      }
    }
  }
  return {};
}

Status Importer::run(std::string_view entry) {
  if (!program_.module || program_.module->regions.empty()) return invalid_argument("the program holds no module");
  const mlir::Op& root = *program_.module;
  std::vector<std::string_view> public_functions;
  if (const mlir::Block* body = root.body())
    for (const mlir::Op* op : body->ops) {
      if (op->name != "func.func") continue;
      const std::string_view name = text(*op, "sym_name");
      if (!functions_.emplace(name, op).second) return fail(*op, "function @" + std::string(name) + " stands twice");
      if (text(*op, "sym_visibility") != "private") public_functions.push_back(name);
    }
  if (!functions_.contains(entry)) {
    if (public_functions.size() != 1)
      return invalid_argument("there is no function @" + std::string(entry) + " among " +
                              std::to_string(functions_.size()));
    entry = public_functions[0];
  }
  const std::string_view module_name = text(root, "sym_name");
  module_.set_name(module_name.empty() ? "module" : module_name);
  module_.header().line = root.line;
  module_.header().replica_count = std::max<int64_t>(1, integer_or(root, "mhlo.num_replicas", 1));
  module_.header().num_partitions = std::max<int64_t>(1, integer_or(root, "mhlo.num_partitions", 1));
  COLLET_ASSIGN(CompId id, function(entry, root));
  module_.set_entry(id);
  COLLET_TRY(read_entry_attributes(*functions_.at(entry)));
  COLLET_TRY(read_aliases(root));
  for (const FrontendAttribute& a : frontend_list(root.attr("mhlo.frontend_attributes")))
    module_.header().frontend_attributes.push_back(a);
  read_meshes();
  return {};
}

Expected<std::unique_ptr<Module>> import_program(const mlir::Program& program, const ImportOptions& options) {
  auto module = std::make_unique<Module>();
  COLLET_TRY(Importer(program, *module).run(options.entry));
  return module;
}

std::vector<std::string_view> functions_without_arguments(const mlir::Program& program) {
  std::vector<std::string_view> out;
  const mlir::Block* body = program.module ? program.module->body() : nullptr;
  if (!body) return out;
  for (const mlir::Op* op : body->ops) {
    const mlir::AttrRef name = op->attr("sym_name");
    if (op->name == "func.func" && name && op->body() && op->body()->arguments.empty()) out.push_back(name->text);
  }
  return out;
}

}  // namespace collet::hlo
