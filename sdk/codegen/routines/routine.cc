// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/routines/routine.h"

namespace collet::codegen {

std::unique_ptr<Routine> make_routine(const RoutineCall& call, CompareFunction compare) {
  switch (call.opcode) {
    case COLLET_OP_SORT:
      return make_sort(call, compare);
    case COLLET_OP_TOPK:
      return make_topk(call);
    case COLLET_OP_RNG_BIT_GENERATOR:
      return make_random_bits(call);
    case COLLET_OP_RNG_GET_AND_UPDATE_STATE:
      return make_random_state(call);
    case COLLET_OP_FFT:
      return make_fft(call);
    case COLLET_OP_CHOLESKY:
      return make_cholesky(call);
    case COLLET_OP_TRIANGULAR_SOLVE:
      return make_triangular_solve(call);
    case COLLET_OP_CALL:
      return make_factorization(call);
    default:
      return nullptr;
  }
}

}  // namespace collet::codegen
