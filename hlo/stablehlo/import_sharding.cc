// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

#include "hlo/stablehlo/importer.h"
#include "hlo/text/parser.h"

// Shardy's shardings: of arguments and results as HLO's, and computations that run on each device's part.

namespace collet::hlo {
namespace {

struct Mesh {
  std::vector<std::pair<std::string_view, int64_t>> axes;
  std::vector<int64_t> device_ids;
};

/// Reads the text of the attributes.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool accept(std::string_view word) {
    while (text_.starts_with(' ') || text_.starts_with('\n')) text_.remove_prefix(1);
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  bool string(std::string_view* out) {
    if (!accept("\"")) return false;
    const size_t end = text_.find('"');
    if (end == std::string_view::npos) return false;
    *out = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return true;
  }
  bool integer(int64_t* out) {
    accept("");
    const auto [end, bad] = std::from_chars(text_.data(), text_.data() + text_.size(), *out);
    if (bad != std::errc()) return false;
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return true;
  }
  std::string_view rest() const { return text_; }
  /// A symbol behind its @.
  std::string_view symbol() {
    std::string_view quoted;
    if (string(&quoted)) return quoted;
    const size_t end = std::min(text_.find_first_of(", >"), text_.size());
    const std::string_view out = text_.substr(0, end);
    text_.remove_prefix(end);
    return out;
  }

 private:
  std::string_view text_;
};

// Of all devices of a mesh: more are not laid out here.
constexpr int64_t kMostDevices = int64_t{1} << 20;

bool read_mesh(std::string_view text, Mesh* out) {
  Reader r(text);
  r.accept("#sdy.");
  r.accept("mesh");
  if (!r.accept("<") || !r.accept("[")) return false;
  int64_t devices = 1;
  while (!r.accept("]")) {
    std::string_view name;
    int64_t size = 0;
    if (!r.string(&name) || !r.accept("=") || !r.integer(&size) || size < 1 || size > kMostDevices / devices)
      return false;
    devices *= size;
    out->axes.emplace_back(name, size);
    r.accept(",");
  }
  if (r.accept(",")) {
    if (!r.accept("device_ids") || !r.accept("=") || !r.accept("[")) return false;
    while (!r.accept("]")) {
      int64_t id = 0;
      if (!r.integer(&id)) return false;
      out->device_ids.push_back(id);
      r.accept(",");
    }
    if (static_cast<int64_t>(out->device_ids.size()) != devices) return false;
  }
  return r.accept(">");
}

/// The axes that each dimension is split by. False also where a part of an axis splits it, or sums are left open.
bool read_dimensions(Reader& r, const Mesh& mesh, std::vector<std::vector<size_t>>* out) {
  std::vector<bool> used(mesh.axes.size());
  if (!r.accept(",") || !r.accept("[")) return false;
  while (!r.accept("]")) {
    std::vector<size_t> axes;
    if (!r.accept("{")) return false;
    while (!r.accept("}")) {
      std::string_view name;
      if (r.string(&name)) {
        const auto it =
            std::find_if(mesh.axes.begin(), mesh.axes.end(), [&](const auto& axis) { return axis.first == name; });
        const auto index = static_cast<size_t>(it - mesh.axes.begin());
        if (it == mesh.axes.end() || used[index]) return false;
        used[index] = true;
        axes.push_back(index);
      } else if (!r.accept("?")) {
        return false;
      }
      r.accept(",");
    }
    int64_t priority = 0;
    if (r.accept("p") && !r.integer(&priority)) return false;
    out->push_back(std::move(axes));
    r.accept(",");
  }
  if (r.accept(", replicated={"))
    for (std::string_view name; r.string(&name);) r.accept(",");
  r.accept("}");
  return r.accept(">");
}

/// Dimensions of one element dropped, those that stay neighbours joined: the shortest form.
void shorten(std::vector<int64_t>& dims, std::vector<int64_t>& permutation) {
  std::vector<int64_t> joined;  // the runs, in the permutation's order, by their first dimension
  std::vector<std::pair<int64_t, int64_t>> runs;
  int64_t previous = -2;
  const auto next_real = [&](int64_t d) {
    for (++d; d < static_cast<int64_t>(dims.size()) && dims[static_cast<size_t>(d)] == 1;) ++d;
    return d;
  };
  for (int64_t d : permutation) {
    if (dims[static_cast<size_t>(d)] == 1) continue;
    if (previous >= 0 && next_real(previous) == d)
      runs.back().second *= dims[static_cast<size_t>(d)];
    else
      runs.emplace_back(d, dims[static_cast<size_t>(d)]);
    previous = d;
  }
  std::vector<size_t> order(runs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return runs[a].first < runs[b].first; });
  dims.clear();
  permutation.assign(runs.size(), 0);
  for (size_t i = 0; i < order.size(); ++i) {
    dims.push_back(runs[order[i]].second);
    permutation[order[i]] = static_cast<int64_t>(i);
  }
}

Sharding to_sharding(const Mesh& mesh, const std::vector<std::vector<size_t>>& dimensions) {
  Sharding out;
  if (mesh.axes.empty() && mesh.device_ids.size() == 1) {
    out.kind = Sharding::Kind::Maximal;
    out.device = mesh.device_ids[0];
    return out;
  }
  std::vector<bool> used(mesh.axes.size());
  std::vector<int64_t> sizes, permutation;
  for (const auto& [name, size] : mesh.axes) sizes.push_back(size);
  int64_t tiles = 1, devices = 1;
  for (int64_t size : sizes) devices *= size;
  for (const std::vector<size_t>& axes : dimensions) {
    int64_t split = 1;
    for (size_t axis : axes) {
      split *= sizes[axis];
      used[axis] = true;
      permutation.push_back(static_cast<int64_t>(axis));
    }
    tiles *= split;
    out.tile_dims.push_back(split);
  }
  if (tiles == 1) return Sharding();
  for (size_t axis = 0; axis < sizes.size(); ++axis)
    if (!used[axis]) permutation.push_back(static_cast<int64_t>(axis));
  out.kind = Sharding::Kind::Tiled;
  out.last_tile_dim_replicate = tiles < devices;
  if (tiles < devices) out.tile_dims.push_back(devices / tiles);
  if (mesh.device_ids.empty()) {
    out.iota = true;
    shorten(sizes, permutation);
    out.reshape = std::move(sizes);
    out.permutation = std::move(permutation);
    return out;
  }
  // Each place of the transposed grid, by its place in the mesh.
  std::vector<int64_t> index(sizes.size());
  for (int64_t n = 0; n < devices; ++n) {
    int64_t rest = n, place = 0;
    for (size_t i = permutation.size(); i-- > 0;) {
      const auto axis = static_cast<size_t>(permutation[i]);
      index[axis] = rest % sizes[axis];
      rest /= sizes[axis];
    }
    for (size_t axis = 0; axis < sizes.size(); ++axis) place = place * sizes[axis] + index[axis];
    out.devices.push_back(mesh.device_ids[static_cast<size_t>(place)]);
  }
  return out;
}

FrontendAttribute named_text(Importer& m, const mlir::Op& op, std::string_view field) {
  const mlir::AttrRef a = op.attr(field);
  Arena& arena = m.module().arena();
  return {arena.string("xla.sdy." + std::string(field)), arena.string(a ? a->text : std::string_view()), false};
}

/// A custom call that turns whole values into parts, or back.
InstrId reshaping_call(Importer& m, ImportScope& scope, const mlir::Op& op, std::string_view target,
                       std::string_view field, const Shape& shape, std::span<const InstrId> operands) {
  Arena& arena = m.module().arena();
  auto* attrs = m.module().make<CustomCallAttrs>();
  attrs->target = arena.string(target);
  attrs->has_side_effect = true;
  const InstrId id = m.emit(scope, Op::CUSTOM_CALL, shape, operands, attrs);
  std::vector<FrontendAttribute> frontend{named_text(m, op, field), named_text(m, op, "manual_axes")};
  std::sort(frontend.begin(), frontend.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  Extras extras;
  extras.frontend_attributes = arena.list(frontend);
  m.module()[id].extras = arena.make<Extras>(extras);
  return id;
}

Status manual_computation(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(std::vector<InstrId> operands, m.all_values(scope, op));
  COLLET_ASSIGN(Shape shape, m.result_shape(op));
  COLLET_ASSIGN(CompId body, m.region(scope, op, 0));
  const std::vector<InstrId> parameters = m.module()[body].parameters;
  if (parameters.size() != operands.size()) return m.fail(op, "has not as many operands as arguments");
  std::vector<InstrId> parts;
  if (!operands.empty()) {
    std::vector<Shape> local;
    for (InstrId id : parameters) local.push_back(m.shape_of(id));
    const bool alone = local.size() == 1;
    const Shape all = alone ? local[0] : Shape::tuple(local);
    const InstrId entered = reshaping_call(m, scope, op, "xla.sdy.GlobalToLocalShape", "in_shardings", all, operands);
    for (size_t i = 0; i < local.size(); ++i) {
      auto* index = m.module().make<TupleIndexAttrs>();
      index->index = static_cast<int64_t>(i);
      parts.push_back(alone ? entered : m.emit(scope, Op::GET_TUPLE_ELEMENT, local[i], {entered}, index));
    }
  }
  const Shape local_result = m.shape_of(m.module()[body].root);
  const InstrId called =
      m.emit(scope, Op::CALL, local_result, parts, m.module().make<CallAttrs>(), std::span(&body, 1));
  std::vector<InstrId> returned;
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (op.results.size() == 1) {
      returned.push_back(called);
      break;
    }
    if (!local_result.is_tuple() || local_result.elements().size() != op.results.size())
      return m.fail(op, "does not return as many values as it has results");
    auto* index = m.module().make<TupleIndexAttrs>();
    index->index = static_cast<int64_t>(i);
    returned.push_back(m.emit(scope, Op::GET_TUPLE_ELEMENT, local_result.element(i), {called}, index));
  }
  return m.define(scope, op,
                  reshaping_call(m, scope, op, "xla.sdy.LocalToGlobalShape", "out_shardings", shape, returned));
}

/// One operand in, the same out: a mark for the partitioner where HLO has a word for it.
Status sharding_constraint(Importer& m, ImportScope& scope, const mlir::Op& op) {
  COLLET_ASSIGN(InstrId id, m.value(scope, op, 0));
  constexpr std::string_view kPrefix = "#sdy.sharding<";
  const mlir::AttrRef attr = op.attr("sharding");
  if (attr && attr->kind == mlir::Attr::Kind::Raw && attr->text.starts_with(kPrefix)) {
    std::string_view text = attr->text.substr(kPrefix.size());
    const Shape shape = m.shape_of(id);
    if (auto sharding = m.read_sharding(text, shape)) {
      auto* attrs = m.module().make<CustomCallAttrs>();
      attrs->target = "Sharding";
      id = m.emit(scope, Op::CUSTOM_CALL, shape, {id}, attrs);
      m.set_sharding(id, std::move(*sharding));
    }
  }
  return m.define(scope, op, id);
}

}  // namespace

/// "@mesh, [...]>" as HLO's; nullopt where HLO has no word for it, or it does not fit the shape.
std::optional<Sharding> Importer::read_sharding(std::string_view& text, const Shape& shape) const {
  Reader r(text);
  Mesh mesh;
  std::vector<std::vector<size_t>> dimensions;
  bool known = false;
  if (r.accept("@")) {
    const std::string_view name = r.symbol();
    for (const mlir::Op* op : program_.module->body()->ops)
      if (op->name == "sdy.mesh" && this->text(*op, "sym_name") == name && op->attr("mesh"))
        known = read_mesh(op->attr("mesh")->text, &mesh);
  }
  if (!known || !read_dimensions(r, mesh, &dimensions)) return std::nullopt;
  text = r.rest();
  const bool maximal = mesh.axes.empty() && dimensions.empty();
  if (!maximal && shape.is_array() && static_cast<int>(dimensions.size()) != shape.rank()) return std::nullopt;
  return to_sharding(mesh, dimensions);
}

void Importer::set_sharding(InstrId id, Sharding sharding) {
  Extras extras = module_[id].extras ? *module_[id].extras : Extras();
  extras.sharding = module_.keep(std::move(sharding));
  module_[id].extras = module_.arena().make<Extras>(extras);
}

void Importer::add_sharding(InstrId id, mlir::AttrRef attr) {
  constexpr std::string_view kPrefix = "#sdy.sharding<";
  if (!attr || attr->kind != mlir::Attr::Kind::Raw || !attr->text.starts_with(kPrefix)) return;
  Arena& arena = module_.arena();
  Extras extras = module_[id].extras ? *module_[id].extras : Extras();
  std::vector<FrontendAttribute> all(extras.frontend_attributes.begin(), extras.frontend_attributes.end());
  all.push_back({"xla.sdy.sharding", arena.string(attr->text), false});
  extras.frontend_attributes = arena.list(all);
  module_[id].extras = arena.make<Extras>(extras);
  std::string_view text = attr->text.substr(kPrefix.size());
  // What HLO has no word for stays in the text alone.
  if (auto sharding = read_sharding(text, shape_of(id))) set_sharding(id, std::move(*sharding));
}

void Importer::add_shardings_per_value(const mlir::Op& op, InstrId id) {
  constexpr std::string_view kPrefix = "#sdy.sharding_per_value<";
  const mlir::AttrRef attr = op.attr("sdy.sharding");
  if (!attr || attr->kind != mlir::Attr::Kind::Raw || !attr->text.starts_with(kPrefix) || op.results.empty()) return;
  std::string_view text = attr->text.substr(kPrefix.size());
  Sharding all;
  all.kind = Sharding::Kind::Tuple;
  for (const mlir::Value* result : op.results) {
    text.remove_prefix(std::min(text.find('<'), text.size()));
    if (text.empty()) return;
    text.remove_prefix(1);
    const auto one = shape(result->type);
    if (!one.ok()) return;
    auto sharding = read_sharding(text, *one);
    if (!sharding) return;
    all.elements.push_back(std::move(*sharding));
  }
  if (op.results.size() == 1) return set_sharding(id, std::move(all.elements[0]));
  if (shape_of(id).is_tuple() && shape_of(id).elements().size() == all.elements.size())
    set_sharding(id, std::move(all));
}

Status Importer::add_text_sharding(const mlir::Op& op, InstrId id, mlir::AttrRef attr) {
  if (!attr || attr->kind != mlir::Attr::Kind::String || attr->text.empty()) return {};
  auto sharding = parse_sharding(attr->text);
  if (!sharding.ok()) return fail(op, "mhlo.sharding is no sharding of HLO's: " + std::string(attr->text));
  set_sharding(id, std::move(*sharding));
  return {};
}

/// The root has them, where all results have one.
Status Importer::add_result_shardings(const mlir::Op& function) {
  const mlir::AttrRef list = function.attr("res_attrs");
  const InstrId root = module_.entry_computation().root;
  if (!list || list->kind != mlir::Attr::Kind::Array || list->items.empty() || module_[root].op == Op::PARAMETER)
    return {};
  const bool tuple = shape_of(root).is_tuple() && shape_of(root).elements().size() != 1;
  if (list->items.size() != (tuple ? shape_of(root).elements().size() : 1)) return {};
  Sharding all;
  all.kind = Sharding::Kind::Tuple;
  for (mlir::AttrRef item : list->items) {
    const size_t i = all.elements.size();
    const Shape& result = tuple ? shape_of(root).element(i) : shape_of(root);
    std::optional<Sharding> one;
    for (const mlir::NamedAttr& field : item ? item->fields : List<const mlir::NamedAttr>()) {
      if (!field.value) continue;
      if (field.name == "mhlo.sharding" && !field.value->text.empty()) {
        auto parsed = parse_sharding(field.value->text);
        if (!parsed.ok())
          return fail(function, "mhlo.sharding is no sharding of HLO's: " + std::string(field.value->text));
        one = std::move(*parsed);
      } else if (field.name == "sdy.sharding" && field.value->text.starts_with("#sdy.sharding<")) {
        std::string_view text = field.value->text.substr(field.value->text.find('<') + 1);
        if (!one) one = read_sharding(text, result);
      }
    }
    if (!one) return {};
    all.elements.push_back(std::move(*one));
  }
  set_sharding(root, tuple ? std::move(all) : std::move(all.elements[0]));
  return {};
}

void Importer::read_meshes() {
  std::string all;
  for (const mlir::Op* op : program_.module->body()->ops)
    if (const mlir::AttrRef mesh = op->attr("mesh"); op->name == "sdy.mesh" && mesh)
      all += (all.empty() ? "" : ", ") + std::string(text(*op, "sym_name")) + " = " + std::string(mesh->text);
  if (!all.empty())
    module_.header().frontend_attributes.push_back({"xla.sdy.meshes", module_.arena().string("{" + all + "}"), true});
}

std::span<const ImportRow> import_sharding_rows() {
  static constexpr ImportRow kRows[] = {{"sdy.manual_computation", manual_computation},
                                        {"sdy.reshard", sharding_constraint},
                                        {"sdy.sharding_constraint", sharding_constraint}};
  return kRows;
}

}  // namespace collet::hlo
