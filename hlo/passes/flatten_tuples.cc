// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "hlo/passes/flat_form.h"
#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"

// Rewrites a module into the flat form:
// - the entry's parameters are arrays (or tokens); its root is an array or one `tuple` of arrays;
// - while and each branch of conditional take one flat tuple, made by a `tuple`, and return one flat tuple, even if it
//   has one element; their computations have one parameter, a flat tuple;
// - call and fusion take arrays; they return an array or a flat tuple;
// - the results of other ops with several results are read by get-tuple-element only. If an op takes a tuple (outfeed,
//   custom-call), a `tuple` right before it makes that tuple.
namespace collet::hlo {
namespace {

using Leaves = std::vector<InstrId>;

class Flattener {
 public:
  /// `effects`: see computations_with_effects().
  Flattener(Module& module, CompId computation, Role role, const std::vector<bool>& effects)
      : module_(module), role_(role), computation_(computation), effects_(effects), rewriter_(module, computation) {}

  Status run() {
    plan_parameters();
    const InstrId root = module_[computation_].root;
    for (InstrId id : rewriter_.instructions()) {
      Instruction& instr = rewriter_.enter(id);
      replace_predecessors(module_, instr, [&](InstrId p) {
        const auto leaves = gone_.contains(index_of(p)) ? leaves_.find(index_of(p)) : leaves_.end();
        return leaves == leaves_.end() ? Leaves{p} : leaves->second;
      });
      visit(id);
      if (!status_.ok()) break;
    }
    finish_root(root);
    rewriter_.finish();
    if (status_.ok()) status_ = rewriter_.builder().status();
    if (role_ == Role::Inlined) drop_unused();
    return status_;
  }

 private:
  // Removes what was read only as an element of a tuple that nobody reads, because a fusion must not contain unused
  // instructions. drop_unread_operands() removes parameters.
  void drop_unused() {
    auto& order = module_[computation_].order;
    std::unordered_set<uint32_t> used{index_of(module_[computation_].root)};
    std::vector<InstrId> kept;
    for (size_t k = order.size(); k-- > 0;) {
      const Instruction& instr = module_[order[k]];
      if (instr.op != Op::PARAMETER && !has_effect(module_, instr, effects_) && !used.contains(index_of(order[k])))
        continue;
      kept.push_back(order[k]);
      for (InstrId o : instr.operands) used.insert(index_of(o));
      if (instr.extras)
        for (InstrId p : instr.extras->control_predecessors) used.insert(index_of(p));
    }
    std::reverse(kept.begin(), kept.end());
    order = std::move(kept);
  }

  Builder& builder() { return rewriter_.builder(); }

  // Returns the arrays in a value, in order. The get-tuple-elements are created here if no earlier call created them.
  Leaves leaves_of(InstrId old) {
    const InstrId id = rewriter_.now(old);
    if (!module_[id].shape.is_tuple()) return {id};
    auto it = leaves_.find(index_of(id));
    if (it != leaves_.end()) return it->second;
    Leaves out;
    take_apart(id, out);
    leaves_[index_of(id)] = out;
    return out;
  }

  Leaves leaves_between(InstrId old, size_t begin, size_t end) {
    const InstrId id = rewriter_.now(old);
    auto it = leaves_.find(index_of(id));
    if (it == leaves_.end()) {
      (void)leaves_of(old);
      it = leaves_.find(index_of(id));
    }
    if (it == leaves_.end()) return leaves_of(old);  // the value is a single array
    const auto first = it->second.begin();
    return Leaves(first + static_cast<std::ptrdiff_t>(begin), first + static_cast<std::ptrdiff_t>(end));
  }

  // Returns the number of the first leaf of each element of a tuple, and after them the number of all leaves.
  const std::vector<size_t>& element_starts(InstrId id) {
    std::vector<size_t>& starts = starts_[index_of(id)];
    if (!starts.empty()) return starts;
    starts.push_back(0);
    const Shape whole = original_shape(id);
    for (const Shape& element : whole.elements())
      starts.push_back(starts.back() + static_cast<size_t>(element.leaf_count()));
    return starts;
  }

  void take_apart(InstrId id, Leaves& out) {
    const Shape shape = module_[id].shape;
    if (!shape.is_tuple()) {
      out.push_back(id);
      return;
    }
    for (size_t i = 0; i < shape.elements().size(); ++i) take_apart(builder().get(id, static_cast<int64_t>(i)), out);
  }

  // The shape of an instruction before keep_flat changed it.
  Shape original_shape(InstrId id) const {
    auto it = originals_.find(index_of(id));
    return it == originals_.end() ? module_[id].shape : it->second;
  }

  /// Sets the arrays that stand for `id`, which is not kept itself.
  void define(InstrId id, Leaves leaves) {
    gone_.insert(index_of(id));
    set_leaves(id, std::move(leaves));
  }

  void set_leaves(InstrId id, Leaves leaves) {
    if (static_cast<int64_t>(leaves.size()) > kMostLeaves)
      status_ = resource_exhausted("a tuple of more than " + std::to_string(kMostLeaves) + " arrays");
    if (module_[id].shape.is_tuple())
      leaves_[index_of(id)] = std::move(leaves);
    else
      rewriter_.replace(id, leaves.at(0));
  }

  InstrId nest(const Shape& shape, const Leaves& leaves, size_t& next) {
    if (!shape.is_tuple()) return leaves[next++];
    std::vector<InstrId> elements;
    for (const Shape& element : shape.elements()) elements.push_back(nest(element, leaves, next));
    return builder().tuple(elements);
  }

  void set_operands(Instruction& instr, const std::vector<InstrId>& operands) {
    instr.operands = module_.arena().list<InstrId>(std::span<const InstrId>(operands));
  }

  void plan_parameters() {
    int64_t next = 0;
    for (InstrId p : module_[computation_].parameters) {
      first_leaf_.push_back(next);
      next += static_cast<int64_t>(leaf_shapes(module_[p].shape).size());
    }
    if (role_ == Role::Entry || role_ == Role::Inlined) module_[computation_].parameters.clear();
  }

  void set_number(Instruction& parameter, int64_t number) {
    auto* attrs = module_.make<ParameterAttrs>();
    attrs->number = number;
    parameter.attrs = attrs;
  }

  void visit_parameter(InstrId id, Instruction& instr) {
    if (role_ == Role::Plain) return rewriter_.keep(id);
    if (role_ == Role::Condition || role_ == Role::Body) {
      const bool array = !instr.shape.is_tuple();
      originals_[index_of(id)] = instr.shape;
      instr.shape = flat_tuple(instr.shape);
      rewriter_.keep(id);
      if (array) rewriter_.replace(id, builder().get(id, 0));
      return;
    }
    int64_t number = first_leaf_[static_cast<size_t>(instr.as<ParameterAttrs>().number)];
    auto& parameters = module_[computation_].parameters;
    if (!instr.shape.is_tuple()) {
      if (parameters.size() <= static_cast<size_t>(number)) parameters.resize(static_cast<size_t>(number) + 1);
      parameters[static_cast<size_t>(number)] = id;
      set_number(instr, number);
      return rewriter_.keep(id);
    }
    Leaves leaves;
    for (const Shape& shape : leaf_shapes(instr.shape))
      leaves.push_back(module_.append_parameter(computation_, number++, shape, module_.unique_name(instr.name)));
    define(id, std::move(leaves));
  }

  // Keeps an op whose result is now a flat tuple, and reads its elements by get-tuple-element.
  void keep_flat(InstrId id, Instruction& instr) {
    const bool array = !instr.shape.is_tuple();
    originals_[index_of(id)] = instr.shape;
    instr.shape = flat_tuple(instr.shape);
    rewriter_.keep(id);
    if (array) {
      rewriter_.replace(id, builder().get(id, 0));
    } else {
      Leaves leaves;
      take_apart(id, leaves);
      set_leaves(id, std::move(leaves));
    }
  }

  void visit_calling(InstrId id, Instruction& instr) {
    std::vector<InstrId> operands;
    if (instr.op == Op::CALL || instr.op == Op::FUSION) {
      for (InstrId o : instr.operands)
        for (InstrId leaf : leaves_of(o)) operands.push_back(leaf);
      set_operands(instr, operands);
      if (instr.shape.is_tuple()) return keep_flat(id, instr);
      return rewriter_.keep(id);
    }
    for (size_t i = 0; i < instr.operands.size(); ++i) {
      const bool selector = instr.op == Op::CONDITIONAL && i == 0;
      operands.push_back(selector ? instr.operands[i] : builder().tuple(leaves_of(instr.operands[i])));
    }
    set_operands(instr, operands);
    keep_flat(id, instr);
  }

  void visit(InstrId id) {
    Instruction& instr = module_[id];
    const bool tuple = instr.shape.is_tuple();
    switch (instr.op) {
      case Op::PARAMETER:
        return visit_parameter(id, instr);
      case Op::TUPLE: {
        Leaves leaves;
        for (InstrId o : instr.operands) {
          if (static_cast<int64_t>(leaves.size()) > kMostLeaves) break;
          const Leaves part = leaves_of(o);
          leaves.insert(leaves.end(), part.begin(), part.end());
        }
        return define(id, std::move(leaves));
      }
      case Op::GET_TUPLE_ELEMENT: {
        const auto index = static_cast<size_t>(instr.as<TupleIndexAttrs>().index);
        const std::vector<size_t>& starts = element_starts(instr.operand(0));
        return define(id, leaves_between(instr.operand(0), starts[index], starts[index + 1]));
      }
      case Op::WHILE:
      case Op::CONDITIONAL:
      case Op::CALL:
      case Op::FUSION:
        return visit_calling(id, instr);
      case Op::CONSTANT:
        if (tuple) return visit_constant(id, module_.literal(instr));
        break;
      case Op::DOMAIN:
        if (tuple) return define(id, leaves_of(instr.operand(0)));
        break;
      case Op::COPY:
      case Op::ADD_DEPENDENCY:
        if (tuple) {
          Leaves leaves = leaves_of(instr.operand(0));
          for (InstrId& leaf : leaves) {
            std::vector<InstrId> operands(instr.operands.begin(), instr.operands.end());
            operands[0] = leaf;
            leaf = builder().op(instr.op, module_[leaf].shape, operands);
          }
          return define(id, std::move(leaves));
        }
        break;
      case Op::OPT_BARRIER:
        if (tuple) {
          set_operands(instr, {builder().tuple(leaves_of(instr.operand(0)))});
          return keep_flat(id, instr);
        }
        break;
      default:
        break;
    }
    if (!awaits(instr.op)) gather_operands(instr);
    rewriter_.keep(id);
  }

  void visit_constant(InstrId id, const Literal& value) {
    Leaves leaves;
    const auto split = [&](const auto& self, const Literal& part) -> void {
      if (!part.shape().is_tuple()) leaves.push_back(builder().constant(part));
      for (const Literal& element : part.elements()) self(self, element);
    };
    split(split, value);
    define(id, std::move(leaves));
  }

  // Builds tuples again for ops that take tuples.
  void gather_operands(Instruction& instr) {
    std::vector<InstrId> operands(instr.operands.begin(), instr.operands.end());
    bool changed = false;
    for (InstrId& o : operands)
      if (module_[o].shape.is_tuple()) {
        size_t next = 0;
        const Shape shape = original_shape(o);
        o = nest(shape, leaves_of(o), next);
        changed = true;
      }
    if (changed) set_operands(instr, operands);
  }

  void finish_root(InstrId root) {
    if (!status_.ok() || !builder().status().ok()) return;
    builder().set_origin(nullptr);
    const InstrId now = rewriter_.now(root);
    if (role_ == Role::Body || module_[now].shape.is_tuple())
      module_[computation_].root = builder().tuple(leaves_of(root));
  }

  Module& module_;
  Role role_;
  CompId computation_;
  const std::vector<bool>& effects_;
  Rewriter rewriter_;
  std::unordered_map<uint32_t, Leaves> leaves_;
  std::unordered_map<uint32_t, std::vector<size_t>> starts_;
  std::unordered_map<uint32_t, Shape> originals_;
  std::unordered_set<uint32_t> gone_;  // instructions that are not kept; leaves_ has the arrays in their place
  std::vector<int64_t> first_leaf_;
  Status status_;
};

// Returns the number of the first leaf at `path` in `shape`, and the number of leaves there.
std::pair<int64_t, int64_t> leaf_range(const Shape& shape, Dims path) {
  const Shape* at = &shape;
  int64_t first = 0;
  for (int64_t i : path) {
    if (!at->is_tuple() || i < 0 || i >= static_cast<int64_t>(at->elements().size())) return {0, 0};
    for (int64_t k = 0; k < i; ++k)
      first += static_cast<int64_t>(leaf_shapes(at->element(static_cast<size_t>(k))).size());
    at = &at->element(static_cast<size_t>(i));
  }
  return {first, static_cast<int64_t>(leaf_shapes(*at).size())};
}

void flatten_header(Module& module, const std::vector<Shape>& parameters, const Shape& result) {
  ModuleHeader& header = module.header();
  std::vector<int64_t> first;
  int64_t next = 0;
  for (const Shape& p : parameters) {
    first.push_back(next);
    next += static_cast<int64_t>(leaf_shapes(p).size());
  }
  const auto known = [&](int64_t parameter) {
    return parameter >= 0 && parameter < static_cast<int64_t>(first.size());
  };

  std::vector<InputOutputAlias> aliases;
  for (const InputOutputAlias& alias : header.aliases) {
    if (!known(alias.parameter)) continue;
    const auto p = static_cast<size_t>(alias.parameter);
    const auto [out, outs] = leaf_range(result, alias.output_index);
    const auto [in, ins] = leaf_range(parameters[p], alias.parameter_index);
    for (int64_t i = 0; i < std::min(ins, outs); ++i) {
      InputOutputAlias leaf;
      if (result.is_tuple()) leaf.output_index = module.dims({out + i});
      leaf.parameter = first[p] + in + i;
      leaf.must = alias.must;
      aliases.push_back(leaf);
    }
  }
  header.aliases = std::move(aliases);

  std::vector<BufferDonor> donors;
  for (const BufferDonor& donor : header.donors) {
    if (!known(donor.parameter)) continue;
    const auto p = static_cast<size_t>(donor.parameter);
    const auto [in, ins] = leaf_range(parameters[p], donor.parameter_index);
    for (int64_t i = 0; i < ins; ++i) donors.push_back({first[p] + in + i, {}});
  }
  header.donors = std::move(donors);

  if (header.has_entry_layout) {
    std::vector<Shape> flat;
    for (const Shape& p : header.entry_parameters)
      for (const Shape& leaf : leaf_shapes(p)) flat.push_back(leaf);
    header.entry_parameters = std::move(flat);
    if (header.entry_result.is_tuple()) header.entry_result = flat_tuple(header.entry_result);
  }
  if (header.spmd_to_parameters.size() > 1) header.spmd_to_parameters.clear();
  if (header.spmd_to_output.size() > 1) header.spmd_to_output.clear();
}

// Determines the role of each computation; a computation that is used in several roles is copied for each further role.
std::vector<std::pair<CompId, Role>> assign_roles(Module& module, const std::vector<CompId>& order) {
  std::unordered_map<uint32_t, Role> roles;
  std::unordered_map<uint64_t, CompId> copies;
  std::unordered_map<uint32_t, CompId> released;
  std::vector<std::pair<CompId, Role>> out;
  const auto assign = [&](CompId c, Role role) {
    const auto [it, fresh] = roles.try_emplace(index_of(c), role);
    if (fresh) out.emplace_back(c, role);
    if (it->second == role) return c;
    const auto [copy, made] =
        copies.try_emplace(uint64_t{index_of(c)} << 8 | static_cast<uint64_t>(role), CompId::None);
    if (made) {
      copy->second = clone_computation(module, c);
      roles[index_of(copy->second)] = role;
      out.emplace_back(copy->second, role);
    }
    return copy->second;
  };
  assign(module.entry(), Role::Entry);
  // The computation of an asynchronous op must hold that op alone, so its tuples are kept. So are those of computations that
  // custom calls take, and of all computations that these call.
  std::vector<bool> held = asynchronous_computations(module);
  for (size_t k = order.size(); k-- > 0;)
    for (InstrId id : module[order[k]].order)
      for (CompId callee : module[id].called)
        if (held[index_of(order[k])] || module[id].op == Op::CUSTOM_CALL) held[index_of(callee)] = true;
  for (CompId c : order)
    for (InstrId id : module[c].order)
      for (size_t i = 0; i < module[id].called.size() && !held[index_of(c)]; ++i) {
        if (op_info(module[id].op).family == Family::asynchronous || module[id].op == Op::CUSTOM_CALL) continue;
        CompId callee = module[id].called[i];
        if (held[index_of(callee)]) {
          const auto [copy, made] = released.try_emplace(index_of(callee), CompId::None);
          if (made) copy->second = clone_computation(module, callee);
          callee = copy->second;
        }
        module[id].called[i] = assign(callee, role_of(module[id].op, i));
      }
  return out;
}

// True if the state of an asynchronous transfer is passed through another tuple (in a pipelined loop, for example).
// That state is a tuple that only the -done op may read, so the surrounding tuple must not be flattened.
bool carries_transfers(const Module& module) {
  for (CompId c : module.computations())
    for (InstrId id : module[c].order) {
      const Instruction& instr = module[id];
      const bool done = awaits(instr.op);
      for (InstrId o : instr.operands) {
        const Instruction& operand = module[o];
        const bool start = operand.op == Op::SEND || operand.op == Op::RECV || operand.op == Op::ASYNC_START ||
                           operand.op == Op::ASYNC_UPDATE || operand.op == Op::COPY_START ||
                           operand.op == Op::ALL_GATHER_START || operand.op == Op::COLLECTIVE_PERMUTE_START;
        if (operand.shape.is_tuple() && start && !done) return true;
        if (done && o == instr.operand(0) && operand.shape.is_tuple() && !start && operand.op != Op::ALL_REDUCE_START)
          return true;
      }
    }
  return false;
}

// Drops the parameters of fusions that are no longer used because they were only elements of a tuple that nobody reads.
// A fusion must use all its parameters.
bool drop_unread_operands(Module& module) {
  bool changed = false;
  for (CompId c : post_order(module))
    for (InstrId id : module[c].order) {
      if (module[id].op != Op::FUSION || !module[id].as<FusionAttrs>().aliasing.empty()) continue;
      changed |= drop_operands(module, id, false);
    }
  return changed;
}

}  // namespace

Expected<bool> flatten_tuples(Module& module, PassContext& context) {
  if (carries_transfers(module)) return false;
  const size_t before = module.computation_limit();
  const auto roles = assign_roles(module, post_order(module));
  bool changed = module.computation_limit() != before;
  bool flat = true;
  for (auto [c, role] : roles) flat &= is_flat(module, c, role);
  if (flat) {
    if (changed) order_computations(module);
    return changed;
  }
  std::vector<Shape> parameters;
  for (InstrId p : module.entry_computation().parameters) parameters.push_back(module[p].shape);
  const Shape result = module[module.entry_computation().root].shape;
  const std::vector<bool> effects = computations_with_effects(module);
  for (auto [c, role] : roles) COLLET_TRY(Flattener(module, c, role, effects).run());
  flatten_header(module, parameters, result);
  order_computations(module);
  if (drop_unread_operands(module)) COLLET_TRY(eliminate_dead(module, context).status());
  return true;
}

}  // namespace collet::hlo
