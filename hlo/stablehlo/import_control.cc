// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/ir/metadata.h"
#include "hlo/stablehlo/importer.h"
#include "hlo/stablehlo/write.h"

// Imports control flow, calls and communication with the host.

namespace collet::hlo {
namespace {

using mlir::Attr;

/// Returns the instructions of the outer values that a region captures.
Expected<std::vector<InstrId>> captured_ids(Importer& m, ImportScope& scope, const mlir::Op& op,
                                            std::span<const mlir::Value* const> captured) {
  std::vector<InstrId> out;
  for (const mlir::Value* v : captured) {
    const auto it = scope.values.find(v);
    if (it == scope.values.end()) return m.fail(op, "captures a value that is not at hand");
    out.push_back(it->second);
  }
  return out;
}

/// Returns the only value, or a tuple of all values.
InstrId pack(Importer& m, ImportScope& scope, std::span<const InstrId> ids) {
  if (ids.size() == 1) return ids[0];
  std::vector<Shape> shapes;
  for (InstrId id : ids) shapes.push_back(m.shape_of(id));
  return m.emit(scope, Op::TUPLE, Shape::tuple(std::move(shapes)), ids);
}

/// Defines the op's results as the first elements of a state of `count` packed values.
Status define_from_state(Importer& m, ImportScope& scope, const mlir::Op& op, InstrId state, size_t count) {
  if (op.results.size() != op.operands.size())
    return m.fail(op, "has another number of results than it has of operands");
  if (count == 1) {
    scope.values[op.results[0]] = state;
    return {};
  }
  const Shape whole = m.shape_of(state);
  for (size_t i = 0; i < op.results.size(); ++i) {
    auto* attrs = m.module().make<TupleIndexAttrs>();
    attrs->index = static_cast<int64_t>(i);
    scope.values[op.results[i]] = m.emit(scope, Op::GET_TUPLE_ELEMENT, whole.element(i), {state}, attrs);
  }
  return {};
}

Status while_loop(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  const std::vector<const mlir::Value*> captured = m.captures(op);
  COLLET_ASSIGN(std::vector<InstrId> extra, captured_ids(m, scope, op, captured));
  operands.insert(operands.end(), extra.begin(), extra.end());
  COLLET_ASSIGN(CompId condition, m.tuple_region(scope, op, 0, captured, false, "condition"));
  COLLET_ASSIGN(CompId body, m.tuple_region(scope, op, 1, captured, true, "body"));
  const InstrId state = pack(m, scope, operands);
  const CompId called[] = {condition, body};
  const InstrId loop = m.emit(scope, Op::WHILE, m.shape_of(state), {state}, m.module().make<WhileAttrs>(), called);
  return define_from_state(m, scope, op, loop, operands.size());
}

/// Imports `if` and `case`. Each branch gets all values that any branch captures.
Status conditional(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId selector, m.value(scope, op, 0));
  const std::vector<const mlir::Value*> captured = m.captures(op);
  COLLET_ASSIGN(std::vector<InstrId> ids, captured_ids(m, scope, op, captured));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  const InstrId argument = pack(m, scope, ids);
  std::vector<CompId> branches;
  std::vector<InstrId> operands{selector};
  for (size_t i = 0; i < op.regions.size(); ++i) {
    COLLET_ASSIGN(CompId branch, m.tuple_region(scope, op, i, captured, false, "branch"));
    branches.push_back(branch);
    operands.push_back(argument);
  }
  return m.define(scope, op, m.emit(scope, Op::CONDITIONAL, shape, operands, nullptr, branches));
}

Status call_function(Importer& m, ImportScope& scope, const mlir::Op& op, std::string_view callee) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  COLLET_ASSIGN(CompId computation, m.function(callee, op));
  return m.define(scope, op,
                  m.emit(scope, Op::CALL, shape, operands, m.module().make<CallAttrs>(), std::span(&computation, 1)));
}

Status call(Importer& m, ImportScope& scope, const mlir::Op& op) {
  return call_function(m, scope, op, m.text(op, "callee"));
}

/// True for "namespace.name": parts joined by dots, the first of which is an identifier.
bool is_qualified_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto part_of_word = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos || name.empty() || !letter(name[0]) || name.ends_with('.')) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool behind = i > dot;
    if (name[i] == '.' ? name[i + 1] == '.' : !part_of_word(name[i]) && !(behind && name[i] == '$')) return false;
  }
  return true;
}

Status composite(Importer& m, ImportScope& scope, const mlir::Op& op) {
  if (!is_qualified_name(m.text(op, "name")))
    return m.fail(op,
                  "its name must be one such as my_namespace.my_op, but is '" + std::string(m.text(op, "name")) + "'");
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  COLLET_ASSIGN(CompId computation, m.function(m.text(op, "decomposition"), op));
  auto* attrs = m.module().make<CallAttrs>();
  attrs->is_composite = true;
  attrs->name = m.module().arena().string(m.text(op, "name"));
  attrs->version = m.integer_or(op, "version", 0);
  if (const mlir::AttrRef a = op.attr("composite_attributes")) {
    if (a->kind != Attr::Kind::Dict)
      return m.fail(op, "composite_attributes must be a dictionary, but is " + mlir::attr_to_string(a));
    attrs->attributes = m.module().arena().string(mlir::attr_to_string(a));
  }
  const InstrId id = m.emit(scope, Op::CALL, shape, operands, attrs, std::span(&computation, 1));
  // HLO text has the composite's name, attributes and version as frontend attributes.
  Arena& arena = m.module().arena();
  const std::string_view attributes = attrs->attributes.empty() ? std::string_view("{}") : attrs->attributes;
  std::vector<FrontendAttribute> frontend{{"composite.attributes", attributes, is_dictionary(attributes)},
                                          {"composite.name", attrs->name, false},
                                          {"composite.version", arena.string(std::to_string(attrs->version)), false}};
  Extras extras;
  extras.frontend_attributes = arena.list(frontend);
  m.module()[id].extras = arena.make<Extras>(extras);
  return m.define(scope, op, id);
}

/// Imports async_start as a call that runs at once. Its future becomes the tuple of the results.
Status async_start(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape future, m.result_shape(op));
  COLLET_ASSIGN(CompId body, m.region(scope, op, 0));
  if (op.results.size() != 1 || !future.is_tuple()) return m.fail(op, "has one future");
  if (m.module()[body].parameters.size() != operands.size()) return m.fail(op, "has not as many operands as arguments");
  const Shape result = m.shape_of(m.module()[body].root);
  InstrId done = m.emit(scope, Op::CALL, result, operands, m.module().make<CallAttrs>(), std::span(&body, 1));
  if (future.elements().size() == 1) done = m.emit(scope, Op::TUPLE, Shape::tuple({result}), {done});
  return m.define(scope, op, done);
}

Status async_done(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId future, m.value(scope, op, 0));
  const Shape shape = m.shape_of(future);
  if (op.operands.size() != 1 || !shape.is_tuple() || shape.elements().size() != op.results.size())
    return m.fail(op, "takes a future of as many values as it has results");
  if (op.results.size() != 1) return m.define(scope, op, future);
  return m.define(scope, op,
                  m.emit(scope, Op::GET_TUPLE_ELEMENT, shape.element(0), {future}, m.module().make<TupleIndexAttrs>()));
}

/// Returns the op for a custom call whose target is the name of an ordinary op.
std::optional<Op> op_by_custom_name(std::string_view target) {
  static constexpr std::pair<std::string_view, Op> kRows[] = {
      {"mhlo.acos", Op::ACOS},   {"mhlo.acosh", Op::ACOSH}, {"mhlo.asin", Op::ASIN},
      {"mhlo.asinh", Op::ASINH}, {"mhlo.atanh", Op::ATANH}, {"mhlo.cosh", Op::COSH},
      {"mhlo.erf", Op::ERF},     {"mhlo.sinh", Op::SINH},   {"mhlo.tan", Op::TAN},
  };
  for (const auto& [name, code] : kRows)
    if (name == target) return code;
  return std::nullopt;
}

/// Reads the attributes of a top_k as artifacts store it, as a custom call; null if they do not describe a top_k.
TopKAttrs* top_k_attributes(Importer& m, const mlir::Op& op) {
  const mlir::AttrRef attributes = op.attr("mhlo.attributes");
  if (!attributes || attributes->kind != Attr::Kind::Dict) return nullptr;
  auto* out = m.module().make<TopKAttrs>();
  bool has_k = false;
  for (const mlir::NamedAttr& field : attributes->fields) {
    if (!field.value || (field.value->kind != Attr::Kind::Int && field.value->kind != Attr::Kind::Bool)) return nullptr;
    if (field.name == "k") {
      out->k = field.value->integer;
      has_k = true;
    } else if (field.name == "largest") {
      out->smallest = field.value->integer == 0;
    }
  }
  return has_k ? out : nullptr;
}

/// Reads api_version, which is a number in text and a name in artifacts; 0 means none.
Expected<ApiVersion> api_version(Importer& m, const mlir::Op& op) {
  static constexpr std::string_view kWords[] = {"API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL",
                                                "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED",
                                                "API_VERSION_TYPED_FFI"};
  int64_t number = 0;
  if (const mlir::AttrRef api = op.attr("api_version"); api && api->kind == Attr::Kind::Int) {
    number = api->integer;
    if (number < 0 || number > 4) return m.fail(op, "there is no api_version " + std::to_string(number));
  } else {
    COLLET_ASSIGN(const size_t word, m.word(op, "api_version", kWords, 1));
    number = static_cast<int64_t>(word);
  }
  return static_cast<ApiVersion>(std::max<int64_t>(number, 1) - 1);
}

/// Returns the shapes of values of `types` with the layouts that are given for them: each is an order of dimensions;
/// that of a value that is not an array must be empty.
Expected<std::vector<Shape>> with_layouts(Importer& m, const mlir::Op& op, std::string_view whose,
                                          mlir::AttrRef layouts, std::span<const mlir::TypeRef> types) {
  if (layouts->kind != Attr::Kind::Array || layouts->items.size() != types.size())
    return m.fail(op, std::string(whose) + "_layouts must hold a layout for each of " + std::to_string(types.size()) +
                          " " + std::string(whose) + "s");
  std::vector<Shape> out;
  for (size_t i = 0; i < types.size(); ++i) {
    const mlir::AttrRef layout = layouts->items[i];
    const bool array = types[i] && types[i]->kind == mlir::Type::Kind::Tensor;
    bool splat = false;
    const auto order = layout ? literal_of(*layout, &splat) : Expected<Literal>(invalid_argument("no layout"));
    const mlir::TypeRef element = layout && layout->type ? layout->type->element : nullptr;
    if (!order.ok() || !element || element->kind != mlir::Type::Kind::Index || layout->type->dims.size() != 1)
      return m.fail(op, std::string(whose) + "_layouts: layout " + std::to_string(i) + " is no list of indices");
    const size_t rank = array ? types[i]->dims.size() : 0;
    Layout stated;
    bool fits = layout->type->dims[0] == static_cast<int64_t>(rank);
    for (size_t k = 0; fits && k < rank; ++k)
      stated.minor_to_major.push_back(order->as_int(splat ? 0 : static_cast<int64_t>(k)));
    std::vector<int64_t> dims = stated.minor_to_major;
    std::sort(dims.begin(), dims.end());
    for (size_t k = 0; fits && k < dims.size(); ++k) fits = dims[k] == static_cast<int64_t>(k);
    if (!fits)
      return m.fail(op, std::string(whose) + "_layouts: layout " + std::to_string(i) +
                            " is no order of the dimensions of " + mlir::to_string(types[i]));
    COLLET_ASSIGN(Shape shape, m.shape(types[i]));
    out.push_back(array ? shape.with_layout(std::move(stated)) : shape);
  }
  return out;
}

/// Reads the layouts, which are given for both operands and results, or for neither. If an array is not row-major,
/// `attrs` and the shape of the results keep them.
Status read_layouts(Importer& m, const mlir::Op& op, CustomCallAttrs& attrs, Shape& shape) {
  const mlir::AttrRef operands = op.attr("operand_layouts"), results = op.attr("result_layouts");
  const auto given = [](mlir::AttrRef list) {
    return list && !(list->kind == Attr::Kind::Array && list->items.empty());
  };
  if (!given(operands) && !given(results)) return {};
  std::vector<mlir::TypeRef> takes, gives;
  for (const mlir::Value* v : op.operands) takes.push_back(v->type);
  for (const mlir::Value* v : op.results) gives.push_back(v->type);
  const bool one_tuple = gives.size() == 1 && gives[0] && gives[0]->kind == mlir::Type::Kind::Tuple;
  if (one_tuple) gives.assign(gives[0]->inputs.begin(), gives[0]->inputs.end());
  if ((!operands && !takes.empty()) || (!results && !gives.empty()))
    return m.fail(op, "layouts are given for both operands and results, or for none");
  std::vector<Shape> in, out;
  if (operands) {
    COLLET_ASSIGN(in, with_layouts(m, op, "operand", operands, takes));
  }
  if (results) {
    COLLET_ASSIGN(out, with_layouts(m, op, "result", results, gives));
  }
  const auto row_major = [](const Shape& s) { return !s.layout() || s.layout()->is_default(); };
  if (std::all_of(in.begin(), in.end(), row_major) && std::all_of(out.begin(), out.end(), row_major)) return {};
  attrs.constrains_layouts = true;
  std::vector<const Shape*> kept;
  for (Shape& one : in) kept.push_back(m.module().keep(std::move(one)));
  attrs.operand_layouts = m.module().arena().list(kept);
  if (one_tuple || out.size() > 1)
    shape = Shape::tuple(std::move(out));
  else if (!out.empty())
    shape = out[0];
  return {};
}

/// The configuration of a typed custom call is a dictionary, that of others a string.
Status check_config(Importer& m, const mlir::Op& op, ApiVersion version) {
  const mlir::AttrRef config = op.attr("backend_config");
  if (!config) return {};
  const bool typed = version == ApiVersion::TYPED_FFI;
  if (config->kind == (typed ? Attr::Kind::Dict : Attr::Kind::String)) return {};
  return m.fail(op, std::string("backend_config must be a ") + (typed ? "dictionary" : "string") +
                        " for this api_version, but is " + mlir::attr_to_string(config));
}

Status custom_call(Importer& m, ImportScope& scope, const mlir::Op& op) {
  if (!op.attr("call_target_name")) return m.fail(op, "lacks its attribute call_target_name");
  auto* attrs = m.module().make<CustomCallAttrs>();
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  COLLET_TRY(read_layouts(m, op, *attrs, shape));
  COLLET_ASSIGN(const ApiVersion version, api_version(m, op));
  COLLET_TRY(check_config(m, op, version));
  if (const mlir::AttrRef tilings = op.attr("result_tilings"); tilings && !tilings->items.empty())
    return m.fail(op, "has tiled results (result_tilings), which are not supported");
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  const std::string_view target = m.text(op, "call_target_name");
  if (const auto code = op_by_custom_name(target); code && operands.size() == 1)
    return m.define(scope, op, m.emit(scope, *code, shape.without_layout(), operands));
  if (target == "ragged_all_to_all" && operands.size() == 6 && op.results.size() == 1) {
    if (const ImportFunction translate = find_import("ragged_all_to_all")) return translate(m, scope, op);
  }
  if (target == "mhlo.topk" && operands.size() == 1)
    if (TopKAttrs* top_k = top_k_attributes(m, op))
      return m.define(scope, op, m.emit(scope, Op::TOPK, shape.without_layout(), operands, top_k));
  Module& module = m.module();
  attrs->target = module.arena().string(target);
  attrs->has_side_effect = m.flag(op, "has_side_effect");
  attrs->api_version = version;
  std::string config;
  if (const mlir::AttrRef a = op.attr("backend_config"))
    config = a->kind == Attr::Kind::String ? std::string(a->text) : mlir::attr_to_string(a);
  if (const mlir::AttrRef a = op.attr("mhlo.backend_config")) config = mlir::attr_to_string(a);
  std::vector<AliasEntry> aliasing;
  if (const mlir::AttrRef list = op.attr("output_operand_aliases"); list && list->kind == Attr::Kind::Array)
    for (mlir::AttrRef item : list->items) {
      if (!item || item->kind != Attr::Kind::Alias || item->ints.empty()) continue;
      const auto n = static_cast<size_t>(item->ints[0]);
      if (n >= item->ints.size() - 1) continue;
      const std::span<const int64_t> all = item->ints;
      aliasing.push_back({module.dims(all.subspan(1, n)), all[n + 1], module.dims(all.subspan(n + 2))});
    }
  attrs->aliasing = module.arena().list(aliasing);
  std::vector<CompId> called;
  if (const mlir::AttrRef list = op.attr("called_computations"); list && list->kind == Attr::Kind::Array)
    for (mlir::AttrRef item : list->items) {
      if (!item || item->text.empty()) continue;
      COLLET_ASSIGN(CompId c, m.function(item->text, op));
      called.push_back(c);
    }
  const InstrId id = m.emit(scope, Op::CUSTOM_CALL, shape, operands, attrs, called);
  if (!config.empty()) {
    attrs->config = module.arena().string(config);
    Extras extras;
    extras.backend_config = attrs->config;
    module[id].extras = module.arena().make<Extras>(extras);
  }
  return m.define(scope, op, id);
}

/// Imports the ops of the check dialect as custom calls of the same names. A constant expectation becomes an operand.
Status check(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  std::string_view name = op.name;
  if (const mlir::AttrRef value = op.attr("value")) {
    bool splat = false;
    auto literal = m.literal(value, &splat);
    if (!literal.ok() || operands.size() != 1) return m.fail(op, "needs one operand and a value");
    InstrId expected = m.emit_constant(scope, *literal);
    if (splat && m.shape_of(operands[0]).rank() > 0)
      expected = m.emit(scope, Op::BROADCAST, m.shape_of(operands[0]), {expected}, m.module().make<BroadcastAttrs>());
    operands.push_back(expected);
    if (name.ends_with("_const")) name.remove_suffix(6);
  }
  Arena& arena = m.module().arena();
  auto* attrs = m.module().make<CustomCallAttrs>();
  attrs->target = arena.string(name);
  attrs->has_side_effect = true;
  std::string config;
  for (const mlir::NamedAttr& a : op.attrs) {
    if (a.name == "value") continue;
    if (!config.empty()) config += ", ";
    config += std::string(a.name) + " = " + mlir::attr_to_string(a.value);
  }
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  const InstrId id = m.emit(scope, Op::CUSTOM_CALL, shape, operands, attrs);
  if (!config.empty()) {
    attrs->config = arena.string("{" + config + "}");
    Extras extras;
    extras.backend_config = attrs->config;
    m.module()[id].extras = arena.make<Extras>(extras);
  }
  return m.define(scope, op, id);
}

Status optimization_barrier(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  if (operands.empty() && op.results.empty()) return {};
  const InstrId packed = pack(m, scope, operands);
  return define_from_state(m, scope, op, m.emit(scope, Op::OPT_BARRIER, m.shape_of(packed), {packed}), operands.size());
}

/// Returns the shape of what infeed and recv give beside the token: the array, or a tuple of the arrays.
Expected<Shape> received_shape(Importer& m, const mlir::Op& op) {
  std::vector<Shape> data;
  for (size_t i = 0; i + 1 < op.results.size(); ++i) {
    COLLET_ASSIGN(Shape one, m.shape(op.results[i]->type));
    data.push_back(one);
  }
  return data.size() == 1 ? data[0] : Shape::tuple(data);
}

/// Defines the results of infeed and recv: arrays and a token. `received` is an HLO tuple of the array, or of a tuple of the
/// arrays, and the token.
void define_received(Importer& m, ImportScope& scope, const mlir::Op& op, InstrId received) {
  const auto part = [&](InstrId from, size_t index) {
    auto* attrs = m.module().make<TupleIndexAttrs>();
    attrs->index = static_cast<int64_t>(index);
    return m.emit(scope, Op::GET_TUPLE_ELEMENT, m.shape_of(from).element(index), {from}, attrs);
  };
  const InstrId values = part(received, 0);
  const size_t count = op.results.empty() ? 0 : op.results.size() - 1;
  for (size_t i = 0; i < count; ++i) scope.values[op.results[i]] = count == 1 ? values : part(values, i);
  if (!op.results.empty()) scope.values[op.results.back()] = part(received, 1);
}

/// Infeed returns ((results), token).
Status infeed(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId token, m.value(scope, op, 0));
  COLLET_ASSIGN(const Shape inside, received_shape(m, op));
  auto* attrs = m.module().make<InfeedAttrs>();
  attrs->config = m.module().arena().string(m.text(op, "infeed_config"));
  const InstrId id = m.emit(scope, Op::INFEED, Shape::tuple({inside, Shape::token()}), {token}, attrs);
  define_received(m, scope, op, id);
  return {};
}

/// What outfeed and send take: arrays, which become one value, and a token.
struct Sent {
  InstrId data, token;
};

Expected<Sent> sent(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  if (operands.empty()) return m.fail(op, "needs a token");
  const InstrId token = operands.back();
  operands.pop_back();
  return Sent{pack(m, scope, operands), token};
}

Status outfeed(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(const Sent all, sent(m, scope, op));
  auto* attrs = m.module().make<OutfeedAttrs>();
  attrs->config = m.module().arena().string(m.text(op, "outfeed_config"));
  attrs->shape = m.module().keep(m.shape_of(all.data));
  return m.define(scope, op, m.emit(scope, Op::OUTFEED, Shape::token(), {all.data, all.token}, attrs));
}

ChannelAttrs* channel(Importer& m, const mlir::Op& op) {
  auto* attrs = m.module().make<ChannelAttrs>();
  attrs->channel = m.integer_or(op, "channel_id", 0);
  attrs->host_transfer = m.flag(op, "is_host_transfer");
  return attrs;
}

/// Tells a half of a transfer between devices its pairs, as HLO has them: by a frontend attribute. One that the
/// program has already stays.
Status add_pairs(Importer& m, const mlir::Op& op, InstrId half) {
  constexpr std::string_view kName = "_xla_send_recv_source_target_pairs";
  const mlir::AttrRef pairs = op.attr("source_target_pairs");
  if (!pairs || m.flag(op, "is_host_transfer")) return {};
  COLLET_ASSIGN(const Dims numbers, m.ints(op, "source_target_pairs"));
  if (numbers.empty()) return {};
  if (pairs->dims.size() != 2 || pairs->dims[1] != 2) return m.fail(op, "source_target_pairs are no table of pairs");
  if (const mlir::AttrRef frontend = op.attr("mhlo.frontend_attributes"); frontend)
    for (const mlir::NamedAttr& field : frontend->fields)
      if (field.name == kName) return {};
  std::string text;
  for (size_t i = 0; i + 1 < numbers.size(); i += 2)
    text += (text.empty() ? "{{" : ",{") + std::to_string(numbers[i]) + "," + std::to_string(numbers[i + 1]) + "}";
  const FrontendAttribute attribute{kName, m.module().arena().string(text + "}"), true};
  Extras extras;
  extras.frontend_attributes = m.module().arena().list(std::vector{attribute});
  m.module()[half].extras = m.module().arena().make<Extras>(extras);
  return {};
}

Status send(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(const Sent all, sent(m, scope, op));
  const Shape state = Shape::tuple({m.shape_of(all.data), Shape::scalar(Type::U32), Shape::token()});
  const InstrId start = m.emit(scope, Op::SEND, state, {all.data, all.token}, channel(m, op));
  const InstrId done = m.emit(scope, Op::SEND_DONE, Shape::token(), {start}, channel(m, op));
  for (InstrId half : {start, done}) COLLET_TRY(add_pairs(m, op, half));
  return m.define(scope, op, done);
}

Status recv(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId token, m.value(scope, op, 0));
  COLLET_ASSIGN(const Shape inside, received_shape(m, op));
  const Shape state = Shape::tuple({inside, Shape::scalar(Type::U32), Shape::token()});
  const InstrId start = m.emit(scope, Op::RECV, state, {token}, channel(m, op));
  const InstrId done = m.emit(scope, Op::RECV_DONE, Shape::tuple({inside, Shape::token()}), {start}, channel(m, op));
  for (InstrId half : {start, done}) COLLET_TRY(add_pairs(m, op, half));
  define_received(m, scope, op, done);
  return {};
}

/// Imports an op that only states a sharding: its result is its operand.
Status identity(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId id, m.value(scope, op, 0));
  if (op.results.size() == 1) scope.values[op.results[0]] = id;
  return {};
}

/// Imports a cast between types of two dialects that are one type here: each result is the corresponding operand.
Status dialect_cast(Importer& m, ImportScope& scope, const mlir::Op& op) {
  if (op.operands.size() != op.results.size())
    return invalid_argument("builtin.unrealized_conversion_cast: " + std::to_string(op.operands.size()) +
                            " operands and " + std::to_string(op.results.size()) + " results");
  for (size_t i = 0; i < op.operands.size(); ++i) {
    COLLET_ASSIGN(InstrId id, m.value(scope, op, i));
    scope.values[op.results[i]] = id;
  }
  return {};
}

Status nothing(Importer&, ImportScope&, const mlir::Op&) {
  return {};
}

}  // namespace

std::span<const ImportRow> import_control_rows() {
  static constexpr ImportRow kRows[] = {
      {"stablehlo.while", while_loop},
      {"stablehlo.if", conditional},
      {"stablehlo.case", conditional},
      {"func.call", call},
      {"stablehlo.async_start", async_start},
      {"stablehlo.async_done", async_done},
      {"stablehlo.composite", composite},
      {"stablehlo.custom_call", custom_call},
      {"stablehlo.optimization_barrier", optimization_barrier},
      {"stablehlo.infeed", infeed},
      {"stablehlo.outfeed", outfeed},
      {"stablehlo.send", send},
      {"stablehlo.recv", recv},
      {"check.expect_eq", check},
      {"check.expect_eq_const", check},
      {"check.expect_almost_eq", check},
      {"check.expect_almost_eq_const", check},
      {"check.expect_close", check},
      {"check.expect_serialized_eq", check},
      {"builtin.unrealized_conversion_cast", dialect_cast},
      {"sdy.propagation_barrier", identity},
      {"sdy.mesh", nothing},
      {"sdy.sharding_group", nothing},
  };
  return kRows;
}

}  // namespace collet::hlo
