// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/spmd/regions.h"

#include <algorithm>
#include <unordered_set>

#include "hlo/passes/rewriter.h"
#include "hlo/passes/spmd/traffic.h"

namespace collet::hlo::spmd {
namespace {

// Limit for the depth of nested computations, because several passes recurse into them.
constexpr int kDeepest = 200;
constexpr size_t kMostRegions = size_t{1} << 16;
constexpr double kMostWeight = 1e12;

bool is_marker(const Instruction& instr) {
  if (instr.op != Op::CUSTOM_CALL) return false;
  const std::string_view target = instr.as<CustomCallAttrs>().target;
  return target.starts_with("xla.sdy.") || target == kEnterManualTile || target == kLeaveManualTile;
}

// Returns, for each computation, whether it or one that it calls contains markers.
std::vector<bool> find_markers(const Module& module) {
  std::vector<bool> out(module.computation_limit());
  for (CompId c : post_order(module))
    for (InstrId id : module[c].order) {
      const Instruction& instr = module[id];
      bool marks = is_marker(instr);
      for (CompId called : instr.called) marks = marks || out[index_of(called)];
      if (marks) out[index_of(c)] = true;
    }
  return out;
}

}  // namespace

std::string_view frontend_attribute(const Instruction& instr, std::string_view name) {
  if (instr.extras)
    for (const FrontendAttribute& a : instr.extras->frontend_attributes)
      if (a.name == name) return a.value;
  return {};
}

bool is_custom_call(const Instruction& instr, std::string_view target) {
  return instr.op == Op::CUSTOM_CALL && instr.as<CustomCallAttrs>().target == target;
}

bool is_collective(Op op) {
  switch (op) {
    case Op::ALL_REDUCE:
    case Op::ALL_GATHER:
    case Op::REDUCE_SCATTER:
    case Op::ALL_TO_ALL:
    case Op::COLLECTIVE_PERMUTE:
    case Op::COLLECTIVE_BROADCAST:
      return true;
    default:
      return false;
  }
}

bool is_constraint(const Instruction& instr) {
  return instr.operands.size() == 1 &&
         (is_custom_call(instr, "Sharding") || is_custom_call(instr, "xla.sdy.FuncResultSharding"));
}

bool may_split_result(const Module& module, size_t leaf) {
  const std::vector<bool>& allowed = module.header().spmd_to_output;
  if (allowed.empty() || (allowed.size() == 1 ? allowed[0] : leaf >= allowed.size() || allowed[leaf])) return true;
  const auto states = [](const Instruction& instr) {
    return instr.extras && (instr.extras->sharding || !frontend_attribute(instr, "xla.sdy.sharding").empty());
  };
  const Instruction& root = module[module.entry_computation().root];
  return states(root) || (root.op == Op::TUPLE && leaf < root.operands.size() && states(module[root.operand(leaf)]));
}

std::vector<DimensionSharding> ManualSplit::outer(const std::vector<DimensionSharding>& inner) const {
  std::vector<DimensionSharding> out;
  for (size_t d = 0; d < manual.size(); ++d) out.push_back(compose(manual[d], inner[d]));
  return out;
}

// Visits computations, beginning with the entry.
class RegionBuilder {
 public:
  RegionBuilder(Module& module, ProgramRegions& out)
      : m_(module), out_(out), most_(16 * module.instruction_limit() + kMostInlined / 16) {
    for (CompId c : module.computations()) names_.insert(std::string(module[c].name));
  }

  Status visit(CompId c, const DeviceGroups& groups, double weight, int depth, std::vector<bool> parameters) {
    if (depth > kDeepest)
      return unimplemented("partitioning computations that call each other " + std::to_string(kDeepest) + " deep");
    if (m_.instruction_limit() > most_)
      return resource_exhausted("partitioning makes more than " + std::to_string(most_) + " instructions");
    if (out_.regions_.size() >= kMostRegions)
      return resource_exhausted("partitioning makes more than " + std::to_string(kMostRegions) + " computations");
    out_.region_of_[index_of(c)] = out_.regions_.size();
    out_.regions_.push_back({c, groups, weight});
    const std::vector<InstrId> order = m_[c].order;
    const auto markers = markers_of_calls(order);
    for (InstrId id : order) COLLET_TRY(instruction(id, groups, weight, depth, parameters, markers));
    return ok_status();
  }

 private:
  using Markers = std::unordered_map<uint32_t, InstrId>;

  void flag(std::vector<bool>& flags, InstrId id) {
    if (flags.size() <= index_of(id)) flags.resize(index_of(id) + 1);
    flags[index_of(id)] = true;
  }

  // Finds, for each call that is a manual computation, the custom call that marks it: one that leaves the manual region with the
  // call's results or enters it with the call's operands.
  Markers markers_of_calls(const std::vector<InstrId>& order) const {
    Markers out;
    const auto source = [&](InstrId id) { return m_[id].op == Op::GET_TUPLE_ELEMENT ? m_[id].operand(0) : id; };
    for (InstrId id : order) {
      const Instruction& instr = m_[id];
      if (is_custom_call(instr, kLeaveManual))
        for (InstrId operand : instr.operands)
          if (m_[source(operand)].op == Op::CALL) out[index_of(source(operand))] = id;
    }
    for (InstrId id : order)
      if (m_[id].op == Op::CALL)
        for (InstrId operand : m_[id].operands)
          if (is_custom_call(m_[source(operand)], kEnterManual)) out[index_of(id)] = source(operand);
    return out;
  }

  bool is_manual(const Instruction& instr, const DeviceGroups& groups, const std::vector<bool>& parameters) const {
    switch (instr.op) {
      case Op::PARAMETER: {
        const auto number = static_cast<size_t>(instr.as<ParameterAttrs>().number);
        return number < parameters.size() && parameters[number];
      }
      // The number differs between partitions, so a value computed from it is not an array of the original program.
      case Op::PARTITION_ID:
        return groups.all_together();
      case Op::CUSTOM_CALL: {
        if (is_custom_call(instr, kEnterManualTile)) return true;
        if (is_custom_call(instr, kLeaveManualTile) || is_custom_call(instr, kEnterManual) ||
            is_custom_call(instr, kLeaveManual))
          return false;
        break;
      }
      default:
        break;
    }
    return std::any_of(instr.operands.begin(), instr.operands.end(), [&](InstrId id) { return out_.is_manual(id); });
  }

  Status instruction(InstrId id, const DeviceGroups& groups, double weight, int depth,
                     const std::vector<bool>& parameters, const Markers& markers) {
    const Instruction instr = m_[id];  // a copy, because cloning computations invalidates references
    const bool manual = is_manual(instr, groups, parameters);
    if (manual) flag(out_.manual_, id);
    if (instr.op == Op::CALL) return call(id, instr, groups, weight, depth, markers);
    if (instr.op != Op::WHILE && instr.op != Op::CONDITIONAL) return ok_status();
    const bool marked =
        std::any_of(instr.called.begin(), instr.called.end(), [&](CompId c) { return out_.has_markers(c); });
    if (manual && marked)
      return unimplemented(quoted(instr.name) +
                           ": what each partition does for itself goes back to whole arrays inside of "
                           "control flow");
    if (manual || (groups.all_apart() && !marked)) {
      flag(out_.copied_, id);
      return ok_status();
    }
    const double times = instr.op == Op::WHILE ? static_cast<double>(trip_count_or_one(m_, id)) : 1;
    for (size_t k = 0; k < instr.called.size(); ++k) {
      const CompId own = own_computation(id, k);
      COLLET_TRY(visit(own, groups, std::min(weight * times, kMostWeight), depth + 1, {}));
    }
    return ok_status();
  }

  Status call(InstrId id, const Instruction& instr, const DeviceGroups& groups, double weight, int depth,
              const Markers& markers) {
    std::vector<bool> parameters;
    for (InstrId operand : instr.operands) parameters.push_back(out_.is_manual(operand));
    DeviceGroups inside = groups;
    if (const auto marker = markers.find(index_of(id)); marker != markers.end()) {
      const Instruction custom = m_[marker->second];
      COLLET_ASSIGN(inside, out_.manual_groups(custom, groups));
      if (inside.all_apart() && !out_.has_markers(instr.called[0])) {
        flag(out_.copied_, id);
        return ok_status();
      }
    }
    const CompId own = own_computation(id, 0);
    COLLET_TRY(visit(own, inside, weight, depth + 1, parameters));
    if (out_.is_manual(m_[own].root))
      flag(out_.manual_, id);
    else if (out_.is_manual(id))
      out_.manual_[index_of(id)] = false;
    return ok_status();
  }

  // Returns the `k`-th computation that `id` calls, or a copy of it if another instruction calls it, too.
  CompId own_computation(InstrId id, size_t k) {
    const CompId c = m_[id].called[k];
    if (!out_.region_of_.contains(index_of(c))) return c;
    std::string name;
    do {
      name = std::string(m_[c].name) + "." + std::to_string(++copies_);
    } while (!names_.insert(name).second);
    const CompId copy = clone_computation_as(m_, c, name);
    if (out_.markers_.size() <= index_of(copy)) out_.markers_.resize(index_of(copy) + 1);
    out_.markers_[index_of(copy)] = out_.markers_[index_of(c)];
    m_[id].called[k] = copy;
    return copy;
  }

  Module& m_;
  ProgramRegions& out_;
  const size_t most_;
  std::unordered_set<std::string> names_;  // names of computations
  size_t copies_ = 0;
};

Expected<ProgramRegions> ProgramRegions::build(Module& module, size_t partitions) {
  ProgramRegions out;
  out.partitions_ = partitions;
  out.markers_ = find_markers(module);
  for (const FrontendAttribute& a : module.header().frontend_attributes)
    if (a.name == "xla.sdy.meshes") out.meshes_ = a.value;
  RegionBuilder builder(module, out);
  COLLET_TRY(builder.visit(module.entry(), DeviceGroups::one(partitions), 1, 0, {}));
  return out;
}

const Region* ProgramRegions::of(CompId computation) const {
  const auto it = region_of_.find(index_of(computation));
  return it == region_of_.end() ? nullptr : &regions_[it->second];
}

Expected<NamedMesh> ProgramRegions::mesh(const NamedSharding& sharding) const {
  if (sharding.inline_mesh) return *sharding.inline_mesh;
  if (auto found = find_mesh(meshes_, sharding.mesh)) return std::move(*found);
  return invalid_argument("there is no mesh @" + sharding.mesh);
}

std::optional<StatedSharding> ProgramRegions::stated(const Instruction& instr, const Shape& leaf, size_t index) const {
  if (!instr.extras || !leaf.is_array()) return std::nullopt;
  const auto rank = static_cast<size_t>(leaf.rank());
  StatedSharding out;
  out.open.assign(rank, false);
  bool found = false;
  for (const FrontendAttribute& a : instr.extras->frontend_attributes) {
    if (a.name != "xla.sdy.sharding") continue;
    const auto named = parse_named_sharding(a.value);
    if (!named || named->dimensions.size() != rank) continue;
    const auto where = mesh(*named);
    if (!where.ok()) continue;
    const auto parts = resolve_axes(*named, *where);
    const std::vector<bool> all(where->axes.size(), true);
    if (parts)
      if (auto dimensions = from_mesh_axes(*where, *parts, all, partitions_)) {
        out.sharding.dimensions = std::move(*dimensions);
        found = true;
      }
    if (const auto unreduced = resolve_unreduced(*named, *where); found && unreduced)
      if (const auto along = from_mesh_axes(*where, {*unreduced}, all, partitions_))
        out.sharding.unreduced = (*along)[0];
    for (size_t d = 0; d < rank; ++d) out.open[d] = named->dimensions[d].open;
  }
  if (const Sharding* s = instr.extras->sharding; !found && s) {
    if (s->kind == Sharding::Kind::Tuple) s = index < s->elements.size() ? &s->elements[index] : nullptr;
    if (s)
      if (auto sharding = from_hlo_sharding(*s, rank, partitions_)) {
        out.sharding = std::move(*sharding);
        found = true;
      }
  }
  if (!found) return std::nullopt;
  return out;
}

std::optional<StatedSharding> ProgramRegions::constraint(const Instruction& instr, const Shape& leaf, size_t index,
                                                         const DeviceGroups& groups) const {
  if (leaf.is_array() && leaf.has_dynamic()) return std::nullopt;
  auto out = stated(instr, leaf, index);
  if (!out) return std::nullopt;
  for (size_t d = 0; d < out->sharding.dimensions.size(); ++d) {
    DimensionSharding& s = out->sharding.dimensions[d];
    if (leaf.dim(static_cast<int>(d)) < s.count()) s = DimensionSharding();
  }
  if (!is_consistent(out->sharding, groups)) return std::nullopt;
  return out;
}

Expected<DeviceGroups> ProgramRegions::manual_groups(const Instruction& marker, const DeviceGroups& outside) const {
  const std::string_view in = frontend_attribute(marker, "xla.sdy.in_shardings");
  const auto list = parse_sharding_list(in.empty() ? frontend_attribute(marker, "xla.sdy.out_shardings") : in);
  if (!list || list->empty()) return unimplemented(quoted(marker.name) + ": its shardings are not understood");
  COLLET_ASSIGN(const NamedMesh where, mesh((*list)[0]));
  const auto names = parse_axis_names(frontend_attribute(marker, "xla.sdy.manual_axes"));
  if (!names) return invalid_argument(quoted(marker.name) + ": its xla.sdy.manual_axes are no list of names");
  std::vector<AxisPart> parts;
  for (const std::string& name : *names) {
    const size_t axis = where.find(name);
    if (axis == where.axes.size()) return invalid_argument(quoted(marker.name) + ": its mesh has no axis " + name);
    parts.push_back({axis, 1, where.axes[axis].second});
  }
  const auto place = from_mesh_axes(where, {parts}, std::vector<bool>(where.axes.size(), true), partitions_);
  if (!place)
    return invalid_argument(quoted(marker.name) + ": a mesh of " + std::to_string(where.devices()) +
                            " devices in a program of " + std::to_string(partitions_) + " partitions");
  return within(outside, (*place)[0]);
}

Expected<ManualSplit> ProgramRegions::manual_split(const Instruction& marker, size_t i, size_t rank) const {
  const bool enters = is_custom_call(marker, kEnterManual);
  const std::string_view which = enters ? "operand " : "result ";
  const auto list =
      parse_sharding_list(frontend_attribute(marker, enters ? "xla.sdy.in_shardings" : "xla.sdy.out_shardings"));
  if (!list || list->size() != marker.operands.size())
    return invalid_argument(quoted(marker.name) + " needs a sharding for each operand");
  COLLET_ASSIGN(const NamedMesh where, mesh((*list)[0]));
  const auto names = parse_axis_names(frontend_attribute(marker, "xla.sdy.manual_axes"));
  if (!names) return invalid_argument(quoted(marker.name) + ": its xla.sdy.manual_axes are no list of names");
  std::vector<bool> manual(where.axes.size());
  for (const std::string& name : *names) {
    const size_t axis = where.find(name);
    if (axis == where.axes.size()) return invalid_argument(quoted(marker.name) + ": its mesh has no axis " + name);
    manual[axis] = true;
  }
  std::vector<bool> free = manual;
  free.flip();
  const NamedSharding& sharding = (*list)[i];
  const auto parts = resolve_axes(sharding, where);
  auto a = parts ? from_mesh_axes(where, *parts, manual, partitions_) : std::nullopt;
  auto b = parts ? from_mesh_axes(where, *parts, free, partitions_) : std::nullopt;
  if (!a || !b || a->size() != rank)
    return unimplemented(quoted(marker.name) + ": the sharding of " + std::string(which) + std::to_string(i) +
                         " is not understood");
  ManualSplit out{std::move(*a), std::move(*b), {}, {}};
  for (const NamedSharding::Dimension& d : sharding.dimensions) out.open.push_back(d.open);
  if (const auto along = resolve_unreduced(sharding, where))
    if (const auto split = from_mesh_axes(where, {*along}, std::vector<bool>(where.axes.size(), true), partitions_))
      out.unreduced = (*split)[0];
  return out;
}

std::optional<int64_t> ProgramRegions::one_device(const Instruction& instr) const {
  if (!instr.extras) return std::nullopt;
  if (const Sharding* s = instr.extras->sharding) {
    if (s->kind == Sharding::Kind::Tuple && !s->elements.empty()) s = &s->elements[0];
    return s->kind == Sharding::Kind::Maximal ? std::optional(s->device) : std::nullopt;
  }
  const std::string_view text = frontend_attribute(instr, "xla.sdy.sharding");
  std::optional<NamedSharding> first = parse_named_sharding(text);
  if (const auto list = parse_sharding_list(text); list && !list->empty()) first = list->front();
  if (!first) return std::nullopt;
  const auto where = mesh(*first);
  if (!where.ok() || !where->axes.empty() || where->device_ids.size() != 1) return std::nullopt;
  return where->device_ids[0];
}

}  // namespace collet::hlo::spmd
