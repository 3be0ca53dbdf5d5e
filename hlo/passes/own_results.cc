// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/own_results.h"

#include <unordered_set>
#include <vector>

#include "hlo/passes/builder.h"
#include "hlo/program/leaves.h"

namespace collet::hlo {
namespace {

class Owner {
 public:
  explicit Owner(Module& module) : m_(module), b_(module, module.entry()) {}

  Expected<size_t> run() {
    const InstrId root = m_.entry_computation().root;
    // A tuple is built again where one of its elements changes.
    const InstrId changed = own(root);
    COLLET_TRY(b_.status());
    m_.entry_computation().root = changed;
    return count_;
  }

 private:
  InstrId own(InstrId value) {
    const Shape shape = m_[value].shape;
    if (shape.is_tuple()) {
      std::vector<InstrId> elements;
      bool any = false;
      for (size_t i = 0; i < shape.elements().size(); ++i) {
        const bool is_built = m_[value].op == Op::TUPLE;
        const InstrId element = is_built ? m_[value].operand(i) : b_.get(value, static_cast<int64_t>(i));
        elements.push_back(own(element));
        any = any || elements.back() != element;
      }
      return any ? b_.tuple(elements) : value;
    }
    const Leaf leaf = resolve_leaf(m_, {value, 0});
    const Op source = m_[leaf.instr].op;
    const bool is_own = source != Op::PARAMETER && source != Op::CONSTANT && seen_.insert(leaf).second;
    if (is_own || !shape.is_array()) return value;
    ++count_;
    return b_.op(Op::RESHAPE, shape, {value});
  }

  Module& m_;
  Builder b_;
  std::unordered_set<Leaf, LeafHash> seen_;  ///< values that are returned
  size_t count_ = 0;
};

}  // namespace

Expected<size_t> own_results(Module& module) {
  return Owner(module).run();
}

}  // namespace collet::hlo
