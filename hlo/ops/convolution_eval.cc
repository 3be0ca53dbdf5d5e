// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "hlo/ops/eval/families.h"

namespace collet::hlo {

Expected<Literal> evaluate_convolution(const EvalInput& in) {
  return unimplemented("the evaluator has no " + std::string(op_info(in.instr.op).text));
}

}  // namespace collet::hlo
