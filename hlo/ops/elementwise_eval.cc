// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "hlo/ops/eval/families.h"
#include "hlo/ops/eval/kernels.h"
#include "hlo/ops/eval/strided.h"

namespace collet::hlo {
namespace {

using namespace eval;

// select copies bytes, so that NaN payloads are preserved.
Expected<Literal> evaluate_select(const EvalInput& in) {
  const Literal& pred = in.operand(0);
  if (pred.shape().is_scalar() && !in.instr.shape.is_scalar()) return in.operand(pred.bytes()[0] ? 1 : 2);
  const int bytes = type_info(in.instr.shape.type()).bytes();
  const auto size = static_cast<size_t>(bytes);
  Literal out = Literal::uninitialized(in.instr.shape);
  uint8_t* to = out.mutable_bytes();
  const uint8_t* sides[2] = {in.operand(2).bytes(), in.operand(1).bytes()};
  const uint8_t* chosen = pred.bytes();
  const int64_t n = out.element_count();
  const auto run = [&]<typename T>(T) {
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<T*>(to)[i] = reinterpret_cast<const T*>(sides[chosen[i] != 0])[i];
  };
  if (size == 1)
    run(uint8_t{});
  else if (size == 2)
    run(uint16_t{});
  else if (size == 4)
    run(uint32_t{});
  else if (size == 8)
    run(uint64_t{});
  else
    for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * bytes, sides[chosen[i] != 0] + i * bytes, size);
  return out;
}

}  // namespace

Expected<Literal> evaluate_elementwise(const EvalInput& in) {
  const Instruction& instr = in.instr;
  if (instr.op == Op::SELECT) return evaluate_select(in);
  const Type type = in.operand(0).type();
  const Kernel kernel = instr.op == Op::COMPARE
                            ? find_compare(instr.as<CompareAttrs>().direction, instr.as<CompareAttrs>().type, type)
                            : find_kernel(instr.op, type);
  if (!kernel || !codec(instr.shape.type()).store)
    return unimplemented(std::string(op_info(instr.op).text) + " of " + std::string(type_info(type).text));
  COLLET_TRY(check_size(instr.shape));
  Literal out = Literal::uninitialized(instr.shape);
  uint8_t* to = out.mutable_bytes();
  const Codec& result = codec(instr.shape.type());
  const size_t arity = in.operand_count();
  const int64_t n = out.element_count();
  for (size_t k = 0; k < arity; ++k)
    if (in.operand(k).element_count() != n && !in.operand(k).shape().is_scalar())
      return invalid_argument("operands of " + std::string(op_info(instr.op).text) + " differ in shape");
  parallel(in.context, n, n * (op_info(instr.op).op_class == OpClass::MATH ? 16 : 1), [&](int64_t begin, int64_t end) {
    LaneBuffer operands[3], results;
    KernelArgs args{results.data(), {}, 0, type_info(type).bits};
    for (int64_t at = begin; at < end; at += kLanes) {
      args.n = std::min(kLanes, end - at);
      for (size_t k = 0; k < arity; ++k) {
        const Literal& operand = in.operand(k);
        const Codec& source = codec(operand.type());
        const bool scalar = operand.shape().is_scalar();
        source.load(operand.bytes() + (scalar ? 0 : at * source.bytes), scalar ? 0 : 1, operands[k].data(), args.n);
        args.in[k] = operands[k].data();
      }
      kernel(args);
      result.store(results.data(), to + at * result.bytes, 1, args.n);
    }
  });
  return out;
}

}  // namespace collet::hlo
