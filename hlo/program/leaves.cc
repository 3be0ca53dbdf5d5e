// SPDX-License-Identifier: Apache-2.0
#include "hlo/program/leaves.h"

#include <iterator>

namespace collet::hlo {

bool is_transparent(const Instruction& instr) {
  switch (instr.op) {
    case Op::TUPLE:
    case Op::GET_TUPLE_ELEMENT:
      return true;
    case Op::COPY:
    case Op::DOMAIN:
      return instr.shape.is_tuple();
    default:
      return false;
  }
}

Leaf resolve_leaf(const Module& module, Leaf leaf) {
  while (true) {
    const Instruction& instr = module[leaf.instr];
    if (!is_transparent(instr)) return leaf;
    if (instr.op == Op::TUPLE && instr.shape.is_flat_tuple()) {
      leaf = {instr.operand(leaf.index), 0};
    } else if (instr.op == Op::TUPLE) {
      for (InstrId operand : instr.operands) {
        const auto n = static_cast<uint32_t>(module[operand].shape.leaf_count());
        if (leaf.index < n) {
          leaf.instr = operand;
          break;
        }
        leaf.index -= n;
      }
    } else if (instr.op == Op::GET_TUPLE_ELEMENT) {
      const Shape& shape = module[instr.operand(0)].shape;
      const auto element = static_cast<size_t>(instr.as<TupleIndexAttrs>().index);
      if (shape.is_flat_tuple())
        leaf.index = static_cast<uint32_t>(element);
      else
        for (size_t i = 0; i < element; ++i) leaf.index += static_cast<uint32_t>(shape.element(i).leaf_count());
      leaf.instr = instr.operand(0);
    } else {
      leaf.instr = instr.operand(0);
    }
  }
}

namespace {

// Appends the leaves of a tuple operand by operand; resolving each leaf separately would take quadratic time for large
// tuples.
void append_leaves(const Module& module, InstrId instr, std::vector<Leaf>& out) {
  std::vector<InstrId> stack{instr};
  while (!stack.empty()) {
    const InstrId id = stack.back();
    stack.pop_back();
    const Instruction& at = module[id];
    if (at.op == Op::TUPLE) {
      stack.insert(stack.end(), std::make_reverse_iterator(at.operands.end()),
                   std::make_reverse_iterator(at.operands.begin()));
      continue;
    }
    const auto n = static_cast<uint32_t>(at.shape.leaf_count());
    for (uint32_t i = 0; i < n; ++i) out.push_back(resolve_leaf(module, {id, i}));
  }
}

}  // namespace

std::vector<Leaf> leaves_of(const Module& module, InstrId instr) {
  std::vector<Leaf> out;
  append_leaves(module, instr, out);
  return out;
}

std::vector<Leaf> operand_leaves(const Module& module, const Instruction& instr) {
  std::vector<Leaf> out;
  for (InstrId operand : instr.operands) append_leaves(module, operand, out);
  return out;
}

const Shape& leaf_shape(const Shape& shape, uint32_t index) {
  const Shape* at = &shape;
  while (at->is_tuple()) {
    if (at->is_flat_tuple()) return at->element(index);
    for (const Shape& element : at->elements()) {
      const auto n = static_cast<uint32_t>(element.leaf_count());
      if (index < n) {
        at = &element;
        break;
      }
      index -= n;
    }
  }
  return *at;
}

void append_leaf_shapes(const Shape& shape, std::vector<Shape>& out) {
  if (!shape.is_tuple()) {
    out.push_back(shape);
    return;
  }
  for (const Shape& element : shape.elements()) append_leaf_shapes(element, out);
}

}  // namespace collet::hlo
