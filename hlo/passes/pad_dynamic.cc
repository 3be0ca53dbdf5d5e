// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <unordered_map>

#include "hlo/passes/passes.h"
#include "hlo/passes/rewriter.h"
#include "hlo/passes/sized_ops.h"

// Replaces arrays of dynamic size by arrays padded to their bounds. The pass needs the flat form of flatten_tuples and
// inlined calls. The program's arguments fill their bounds; its results are zero outside of their sizes. Loops and
// branches carry the sizes as additional elements after the arrays.

namespace collet::hlo {
namespace {

using Flags = std::vector<Shape>;  // by array: which dimensions are dynamic

bool any_dynamic(const Module& m) {
  for (CompId c : m.computations())
    for (InstrId id : m[c].order)
      if (m[id].shape.has_dynamic()) return true;
  return false;
}

Flags leaves(const Shape& shape) {
  if (!shape.is_tuple()) return {shape};
  return {shape.elements().begin(), shape.elements().end()};
}

// Makes a dimension of `into` dynamic if it is dynamic in `more`.
bool join(Flags& into, const Flags& more) {
  if (into.empty()) {
    into = more;
    return !more.empty();
  }
  bool changed = false;
  for (size_t i = 0; i < into.size() && i < more.size(); ++i) {
    if (!into[i].is_array() || into[i].rank() != more[i].rank()) continue;
    std::vector<bool> dynamic;
    for (int d = 0; d < into[i].rank(); ++d) {
      dynamic.push_back(into[i].is_dynamic(d) || more[i].is_dynamic(d));
      changed |= dynamic.back() != into[i].is_dynamic(d);
    }
    into[i] = Shape::array(into[i].type(), into[i].dims(), dynamic);
  }
  return changed;
}

// The parameters and results of the computations of loops and branches, with their dynamic dimensions.
class Signatures {
 public:
  explicit Signatures(const Module& m) : m_(m) {
    bool changed = true;
    while (changed) {
      changed = false;
      for (CompId c : m.computations())
        for (InstrId id : m[c].order) changed |= m[id].op == Op::WHILE ? loop(id) : branches(id);
    }
  }

  const Flags& parameters(CompId c) const { return parameters_.at(c); }
  const Flags& results(CompId c) const { return results_.at(c); }

 private:
  bool loop(InstrId id) {
    const CompId condition = m_[id].called[0], body = m_[id].called[1];
    Flags all = leaves(m_[id].shape);
    join(all, leaves(m_[m_[id].operand(0)].shape));
    join(all, leaves(m_[m_[body].root].shape));
    for (CompId c : {condition, body}) {
      join(all, leaves(m_[m_[c].parameters[0]].shape));
      join(all, parameters_[c]);
    }
    join(all, results_[body]);
    bool changed = join(parameters_[condition], all);
    changed |= join(parameters_[body], all);
    changed |= join(results_[body], all);
    return changed;
  }

  bool branches(InstrId id) {
    if (m_[id].op != Op::CONDITIONAL) return false;
    Flags out = leaves(m_[id].shape);
    bool changed = false;
    for (size_t i = 0; i < m_[id].called.size(); ++i) {
      const CompId c = m_[id].called[i];
      changed |= join(parameters_[c], leaves(m_[m_[c].parameters[0]].shape));
      changed |= join(parameters_[c], leaves(m_[m_[id].operand(i + 1)].shape));
      join(out, leaves(m_[m_[c].root].shape));
      join(out, results_[c]);
    }
    for (CompId c : m_[id].called) changed |= join(results_[c], out);
    return changed;
  }

  const Module& m_;
  std::map<CompId, Flags> parameters_, results_;
};

class Padder {
 public:
  Padder(Module& m, CompId computation, const Signatures& signatures)
      : m_(m), signatures_(signatures), computation_(computation), rewriter_(m, computation) {}

  Status run() {
    const InstrId root = m_[computation_].root;
    Status status;
    for (InstrId id : rewriter_.instructions()) {
      // The old ids, because the sizes are stored by them.
      operands_.assign(m_[id].operands.begin(), m_[id].operands.end());
      rewriter_.enter(id);
      b().set_origin(&m_[id]);
      visit(id);
      if (!b().status().ok()) break;
    }
    b().set_origin(nullptr);
    if (b().status().ok()) finish_root(root);
    rewriter_.finish();
    if (new_root_ != InstrId::None) m_[computation_].root = new_root_;
    return b().status();
  }

 private:
  Builder& b() { return rewriter_.builder(); }
  bool is_entry() const { return computation_ == m_.entry(); }

  const Sizes& sizes_of(InstrId old, size_t leaf = 0) const {
    static const Sizes none;
    const auto it = sizes_.find(index_of(old));
    return it == sizes_.end() || leaf >= it->second.size() ? none : it->second[leaf];
  }

  void visit(InstrId id) {
    Instruction& instr = m_[id];
    switch (instr.op) {
      case Op::PARAMETER:
        return parameter(id, instr);
      case Op::TUPLE: {
        std::vector<Sizes> all;
        for (InstrId o : operands_) all.push_back(sizes_of(o));
        return keep(id, instr, std::move(all));
      }
      case Op::GET_TUPLE_ELEMENT:
        return keep(id, instr, {sizes_of(operands_[0], static_cast<size_t>(instr.as<TupleIndexAttrs>().index))});
      case Op::OPT_BARRIER:
        return keep(id, instr, known(operands_[0]));
      case Op::WHILE:
        return flow(id, instr, signatures_.parameters(instr.called[1]));
      case Op::CONDITIONAL:
        return flow(id, instr, signatures_.results(instr.called[0]));
      default:
        break;
    }
    bool dynamic = instr.shape.has_dynamic();
    for (InstrId o : operands_)
      for (const Sizes& s : known(o)) dynamic |= !s.empty();
    if (!dynamic || instr.op == Op::CONSTANT) return keep(id, instr, {});
    SizedOp op{instr, {}};
    for (InstrId o : operands_) op.sizes.push_back(sizes_of(o));
    SizedResult out = build_sized(b(), op);
    if (!b().status().ok()) return;
    const Flags declared = leaves(instr.shape);
    for (size_t i = 0; i < out.sizes.size() && i < declared.size(); ++i)
      for (size_t d = 0; d < out.sizes[i].size(); ++d)
        if (!declared[i].is_dynamic(static_cast<int>(d))) out.sizes[i][d] = InstrId::None;
    define(id, std::move(out.sizes));
    rewriter_.replace(id, out.value);
  }

  std::vector<Sizes> known(InstrId old) const {
    const auto it = sizes_.find(index_of(old));
    return it == sizes_.end() ? std::vector<Sizes>() : it->second;
  }

  void define(InstrId id, std::vector<Sizes> sizes) {
    for (Sizes& s : sizes)
      if (std::all_of(s.begin(), s.end(), [](InstrId x) { return x == InstrId::None; })) s.clear();
    sizes_[index_of(id)] = std::move(sizes);
  }

  void keep(InstrId id, Instruction& instr, std::vector<Sizes> sizes) {
    instr.shape = instr.op == Op::TUPLE ? tuple_shape(instr.operands.span()) : at_bounds(instr.shape);
    define(id, std::move(sizes));
    rewriter_.keep(id);
  }

  Shape tuple_shape(std::span<const InstrId> elements) const {
    std::vector<Shape> shapes;
    for (InstrId e : elements) shapes.push_back(m_[e].shape);
    return Shape::tuple(std::move(shapes));
  }

  // Returns the shape of a flat tuple with a scalar after its arrays for each dynamic dimension.
  static Shape with_sizes(const Flags& flags) {
    std::vector<Shape> out;
    for (const Shape& s : flags) out.push_back(at_bounds(s));
    for (const Shape& s : flags)
      for (int d = 0; d < s.rank(); ++d)
        if (s.is_dynamic(d)) out.push_back(Shape::scalar(Type::S32));
    return Shape::tuple(std::move(out));
  }

  // Reads the sizes from a tuple of shape with_sizes().
  std::vector<Sizes> take_sizes(InstrId tuple, const Flags& flags) {
    std::vector<Sizes> out;
    auto next = static_cast<int64_t>(flags.size());
    for (const Shape& s : flags) {
      out.emplace_back(static_cast<size_t>(s.rank()), InstrId::None);
      for (int d = 0; d < s.rank(); ++d)
        if (s.is_dynamic(d)) out.back()[static_cast<size_t>(d)] = b().get(tuple, next++);
    }
    return out;
  }

  // Builds a tuple of shape with_sizes() from the arrays of the tuple with the old id `old`.
  InstrId put_sizes(InstrId old, const Flags& flags) {
    const InstrId tuple = rewriter_.now(old);
    std::vector<InstrId> all(m_[tuple].operands.begin(), m_[tuple].operands.end());
    for (size_t i = 0; i < flags.size(); ++i)
      for (int d = 0; d < flags[i].rank(); ++d)
        if (flags[i].is_dynamic(d)) all.push_back(size_or_bound(b(), all[i], sizes_of(old, i), static_cast<size_t>(d)));
    return b().tuple(all);
  }

  static bool dynamic(const Flags& flags) {
    return std::any_of(flags.begin(), flags.end(), [](const Shape& s) { return s.has_dynamic(); });
  }

  void parameter(InstrId id, Instruction& instr) {
    if (is_entry()) return keep(id, instr, {});  // the argument has the size of its bound, and all of it is in use
    const Flags& flags = signatures_.parameters(computation_);
    instr.shape = with_sizes(flags);
    rewriter_.keep(id);
    define(id, take_sizes(id, flags));
  }

  void flow(InstrId id, Instruction& instr, const Flags& results) {
    std::vector<InstrId> operands(instr.operands.begin(), instr.operands.end());
    const bool choice = instr.op == Op::CONDITIONAL;
    for (size_t i = choice; i < operands.size(); ++i) {
      const Flags& taken = signatures_.parameters(instr.called[choice ? i - 1 : 1]);
      if (!dynamic(taken)) continue;
      if (m_[operands[i]].op != Op::TUPLE) {
        b().fail(internal_error("'" + std::string(instr.name) + "' takes what is no tuple"));
        return;
      }
      operands[i] = put_sizes(operands_[i], taken);
    }
    instr.operands = m_.arena().list<InstrId>(std::span<const InstrId>(operands));
    instr.shape = with_sizes(results);
    rewriter_.keep(id);
    define(id, take_sizes(id, results));
  }

  void finish_root(InstrId root) {
    const InstrId now = rewriter_.now(root);
    if (!is_entry()) {
      const bool gives = m_[now].shape.is_tuple();
      if (gives && dynamic(signatures_.results(computation_)))
        new_root_ = put_sizes(root, signatures_.results(computation_));
      return;
    }
    const auto zeros_outside = [&](InstrId x, const Sizes& s) {
      return s.empty() ? x : mask_outside(b(), x, s, b().fill(Shape::scalar(b().type(x)), 0));
    };
    if (!m_[now].shape.is_tuple()) {
      new_root_ = zeros_outside(now, sizes_of(root));
    } else if (m_[now].op == Op::TUPLE) {
      std::vector<InstrId> all;
      for (size_t i = 0; i < m_[now].operands.size(); ++i)
        all.push_back(zeros_outside(m_[now].operand(i), sizes_of(root, i)));
      new_root_ = b().tuple(all);
    }
  }

  Module& m_;
  const Signatures& signatures_;
  CompId computation_;
  Rewriter rewriter_;
  std::vector<InstrId> operands_;
  std::unordered_map<uint32_t, std::vector<Sizes>> sizes_;
  InstrId new_root_ = InstrId::None;
};

}  // namespace

Expected<bool> pad_dynamic(Module& module, PassContext&) {
  if (!any_dynamic(module)) return false;
  for (CompId c : module.computations())
    for (InstrId id : module[c].order)
      if (module[id].shape.has_unbounded())
        return unimplemented("'" + std::string(module[id].name) + "' has a dimension without a bound (" +
                             module[id].shape.to_string() + ")");
  const Signatures signatures(module);
  for (CompId c : flow_computations(module)) COLLET_TRY(Padder(module, c, signatures).run());
  ModuleHeader& header = module.header();
  for (Shape& s : header.entry_parameters) s = at_bounds(s);
  if (header.entry_result.valid()) header.entry_result = at_bounds(header.entry_result);
  order_computations(module);
  return true;
}

}  // namespace collet::hlo
