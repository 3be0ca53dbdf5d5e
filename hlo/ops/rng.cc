// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/constraint.h"

namespace collet::hlo {
namespace {

Expected<Shape> infer_distribution(const InferInput& in) {
  if (!in.declared) return broken(in.op, "C3", "the result's shape must be stated");
  const Shape& result = *in.declared;
  if (!result.is_array()) return broken(in.op, "", "the result must be an array, but is ", result);
  if (in.operands.size() != 2) return broken(in.op, "", "takes 2 operands, but has ", in.operands.size());
  for (size_t i = 0; i < 2; ++i) {
    const Shape& operand = in.operand(i);
    if (!operand.is_scalar()) return broken(in.op, "", "operand ", i, " must be a scalar, but is ", operand);
    if (!types_agree(operand.type(), result.type()))
      return broken(in.op, "C1", "operand ", i, " is ", operand, ", but the result is ", result);
  }
  const Distribution distribution = in.as<RngAttrs>().distribution;
  if (distribution == Distribution::NORMAL && !is_float(result.type()))
    return broken(in.op, "C2", "a normal distribution is of float type, but the result is ", result);
  if (distribution != Distribution::NORMAL && distribution != Distribution::UNIFORM)
    return broken(in.op, "", "no such distribution: ", static_cast<int64_t>(distribution));
  if (!in_type_set(TypeSet::REAL_PRED, result.type()))
    return broken(in.op, "", "the result must be of ", type_set_text(TypeSet::REAL_PRED), " type, but is ", result);
  return result.without_layout();
}

Expected<Shape> infer_bits(const InferInput& in) {
  const Shape& state = in.operand(0);
  if (!in.declared) return broken(in.op, "", "the result's shape must be stated");
  const Shape& result = *in.declared;
  COLLET_TRY(expect_array(in, 0, "the state"));
  if (!result.is_tuple()) {
    // The result is the bits only: the new state is dropped.
    if (result.is_array()) return result.without_layout();
    return broken(in.op, "", "the result must be (state, bits), but is ", result);
  }
  if (result.elements().size() != 2) return broken(in.op, "", "the result must be (state, bits), but is ", result);
  if (!result.element(0).compatible(state))
    return broken(in.op, "C1", "the state is ", state, ", but the new state is ", result.element(0));
  if (!result.element(1).is_array()) return broken(in.op, "", "the bits must be an array, but are ", result.element(1));
  return result.without_layout();
}

// Checks that the result has a type that the generators can produce.
Status check_bits(Op op, const Shape& shape) {
  if (in_type_set(TypeSet::REAL_PRED, shape.type()) && type_info(shape.type()).bits <= 64) return ok_status();
  return broken(op, "", "the bits must be of ", type_set_text(TypeSet::REAL_PRED), " type, but are ", shape);
}

// Checks the state: a key and a counter, in words of 64 bits or as many bits of another type. The counter has one word
// with threefry, one or two with philox and the default algorithm.
Status verify_bits(const Module& module, const Instruction& instr) {
  const RngAlgorithm algorithm = instr.as<RngBitGeneratorAttrs>().algorithm;
  if (static_cast<uint32_t>(algorithm) > static_cast<uint32_t>(RngAlgorithm::PHILOX))
    return broken(instr.op, "", "no such algorithm: ", static_cast<int64_t>(algorithm));
  const Shape& state = module[instr.operand(0)].shape;
  const bool threefry = algorithm == RngAlgorithm::THREE_FRY;
  const bool fits = state.rank() == 1 && !state.has_dynamic() && in_type_set(TypeSet::REAL, state.type()) &&
                    (state.byte_size() == 16 || (!threefry && state.byte_size() == 24));
  if (!fits)
    return broken(instr.op, "C2", "the state of ",
                  enum_text(find_field(Record::RngBitGenerator, "algorithm")->values, static_cast<uint32_t>(algorithm)),
                  threefry ? " must be u64[2], but is " : " must be u64[2] or u64[3], but is ", state);
  return check_bits(instr.op, instr.shape.is_tuple() ? instr.shape.element(1) : instr.shape);
}

}  // namespace

Expected<Shape> infer_rng(const InferInput& in) {
  if (in.op == Op::RNG) return infer_distribution(in);
  if (in.op == Op::RNG_BIT_GENERATOR) return infer_bits(in);
  return Shape::array(Type::U64, {2});
}

Status verify_rng(const Module& module, const Instruction& instr) {
  return instr.op == Op::RNG_BIT_GENERATOR ? verify_bits(module, instr) : ok_status();
}

}  // namespace collet::hlo
