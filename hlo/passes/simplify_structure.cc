// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/passes/simplify_rules.h"

namespace collet::hlo {
namespace {

constexpr InstrId kNo = InstrId::None;

InstrId get_of_tuple(const RuleInput& r) {
  if (r.at(0).op != Op::TUPLE) return kNo;
  return r.at(0).operand(static_cast<size_t>(r.instr.as<TupleIndexAttrs>().index));
}

InstrId while_never(const RuleInput& r) {
  const Computation& condition = r.module[r.instr.called[0]];
  const Instruction& root = r.module[condition.root];
  if (root.op != Op::CONSTANT || r.module.literal(root).as_int(0) != 0) return kNo;
  // The condition runs once even if the body never does, so the loop may only be removed if the condition has no
  // effects.
  for (InstrId id : condition.order) {
    const Instruction& instr = r.module[id];
    if (has_side_effect(instr.op) || instr.op == Op::CUSTOM_CALL || !instr.called.empty()) return kNo;
  }
  return r.operand(0);
}

InstrId inlined(const RuleInput& r, CompId from, InstrId argument) {
  if (r.module.instruction_limit() + r.module[from].order.size() > r.most) return kNo;
  // The shape is checked before inlining, because inlined instructions may have effects and must not be left over.
  if (!r.module[r.module[from].root].shape.same_without_layout(r.instr.shape)) return kNo;
  const InstrId arguments[] = {argument};
  return inline_computation(r.b, from, arguments);
}

InstrId conditional_known(const RuleInput& r) {
  const Literal* which = r.splat(0);
  if (!which) return kNo;
  const auto branches = static_cast<int64_t>(r.instr.called.size());
  int64_t branch = which->as_int(0);
  if (which->type() == Type::PRED)
    branch = branch ? 0 : 1;
  else if (branch < 0 || branch >= branches)
    branch = branches - 1;
  return inlined(r, r.instr.called[static_cast<size_t>(branch)], r.operand(static_cast<size_t>(branch) + 1));
}

InstrId conditional_of_one(const RuleInput& r) {
  if (r.instr.called.size() != 1) return kNo;
  return inlined(r, r.instr.called[0], r.operand(1));
}

// All branches of the conditional are the same computation, so it is inlined. eliminate_common has merged equal
// branches before.
InstrId conditional_of_equals(const RuleInput& r) {
  for (size_t k = 1; k < r.instr.called.size(); ++k)
    if (r.instr.called[k] != r.instr.called[0] || r.operand(k + 1) != r.operand(1)) return kNo;
  return inlined(r, r.instr.called[0], r.operand(1));
}

InstrId sort_of_one(const RuleInput& r) {
  const Shape& x = r.at(0).shape;
  if (x.has_dynamic() || x.rank() == 0 || x.dim(static_cast<int>(r.instr.as<SortAttrs>().dimension)) > 1) return kNo;
  return r.instr.shape.is_tuple() ? r.b.tuple(r.instr.operands) : r.operand(0);
}

InstrId size_of_static(const RuleInput& r) {
  const int64_t dim = r.instr.as<DimensionAttrs>().dimension;
  if (r.at(0).shape.is_dynamic(static_cast<int>(dim))) return kNo;
  return r.all_int(r.at(0).shape.dim(static_cast<int>(dim)));
}

InstrId size_of_all(const RuleInput& r) {
  const int dim = static_cast<int>(r.instr.as<DimensionAttrs>().dimension);
  const Literal* size = r.splat(1);
  if (!size || r.at(0).shape.has_dynamic() || !r.at(0).shape.same_without_layout(r.instr.shape)) return kNo;
  return size->as_int(0) == r.at(0).shape.dim(dim) ? r.operand(0) : kNo;
}

// A reduction over dimensions of size 1 is combine(init, x) for each element.
InstrId reduce_of_ones(const RuleInput& r) {
  if (!r.instr.shape.is_array() || r.at(0).shape.has_dynamic()) return kNo;
  const Dims dims = r.instr.as<DimensionsAttrs>().dimensions;
  for (int64_t d : dims)
    if (r.at(0).shape.dim(static_cast<int>(d)) != 1) return kNo;
  const Computation& body = r.module[r.instr.called[0]];
  const Instruction& root = r.module[body.root];
  if (!op_info(root.op).has(COLLET_OP_BINARY) || !op_info(root.op).has(COLLET_OP_ELEMENTWISE) ||
      body.order.size() != 3 || op_info(root.op).record != Record::None || root.operand(0) != body.parameters[0] ||
      root.operand(1) != body.parameters[1])
    return kNo;
  const InstrId init = r.b.broadcast(r.operand(1), r.instr.shape.dims(), {});
  return r.b.binary(root.op, init, r.b.reshape(r.operand(0), r.instr.shape.dims()));
}

// An old form of rng-bit-generator returns the bits without the new state. It is rewritten into the form with both, so
// that backends need not support it.
InstrId bits_alone(const RuleInput& r) {
  if (!r.instr.shape.is_array()) return kNo;
  const Shape both = Shape::tuple({r.at(0).shape.without_layout(), r.instr.shape.without_layout()});
  return r.b.get(r.b.op(r.instr.op, both, r.instr.operands, r.instr.attrs), 1);
}

// Products and sums are computed in the kind of the operands, and converted at the end. Devices get products whose result has that
// kind.
InstrId product_of_wider_kind(const RuleInput& r) {
  const auto kind = [](Type type) { return is_complex(type) ? 2 : is_float(type) ? 1 : 0; };
  const Type left = r.at(0).shape.type(), right = r.at(1).shape.type(), result = r.instr.shape.type();
  const Type wide = kind(left) != kind(right)                       ? (kind(left) > kind(right) ? left : right)
                    : type_info(left).bits >= type_info(right).bits ? left
                                                                    : right;
  if (kind(wide) <= kind(result)) return kNo;
  InstrId out = r.b.op(r.instr.op, r.instr.shape.with_type(wide), r.instr.operands, r.instr.attrs);
  if (kind(wide) == 2) out = r.b.unary(Op::REAL, out);
  return r.b.convert(out, result);
}

constexpr Rule kRules[] = {
    {Op::DOT, "a sum of another kind than the operands' is converted at the end", product_of_wider_kind},
    {Op::CONVOLUTION, "a sum of another kind than the operands' is converted at the end", product_of_wider_kind},
    {Op::GET_TUPLE_ELEMENT, "get(tuple(..., x, ...)) = x", get_of_tuple},
    {Op::WHILE, "a loop whose condition is false gives its operand", while_never},
    {Op::CONDITIONAL, "a conditional that is decided is its branch", conditional_known},
    {Op::CONDITIONAL, "a conditional of one branch is that branch", conditional_of_one},
    {Op::CONDITIONAL, "a conditional whose branches are the same is that branch", conditional_of_equals},
    {Op::SORT, "one element is sorted", sort_of_one},
    {Op::GET_DIMENSION_SIZE, "the size of a static dimension is a constant", size_of_static},
    {Op::SET_DIMENSION_SIZE, "a dimension whose size is all of it stays as it is", size_of_all},
    {Op::REDUCE, "reducing dimensions of size one combines once", reduce_of_ones},
    {Op::RNG_BIT_GENERATOR, "random bits alone are an element of (state, bits)", bits_alone},
};

}  // namespace

std::span<const Rule> structure_rules() {
  return kRules;
}

}  // namespace collet::hlo
