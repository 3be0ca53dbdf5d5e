// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <span>
#include <string>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/module.h"
#include "hlo/program/write.h"
#include "sdk/runtime/backend/backend.h"

namespace collet::runtime {

/// The answer of a backend about an instruction.
struct Verdict {
  uint32_t answer = COLLET_DECLINE;
  uint32_t group = 0;
  double cost_ns = 0;  ///< 0: unknown
  std::string reason;
};

/// Verdicts on the instructions of the entry and of the bodies of control flow, by instruction id.
class Verdicts {
 public:
  /// Asks `backend` about all instructions in one batch. Instructions that it cannot support (newer opset, undeclared
  /// element types, control flow or collectives without the trait) are declined without asking. With `alone` the
  /// backend runs one participant of several, so ops that depend on the others are declined, too. So are calls of
  /// `host_functions`.
  static Expected<Verdicts> ask(Backend& backend, uint32_t device, const hlo::Module& module,
                                const hlo::Program& program, bool alone,
                                std::span<const collet_host_function> host_functions);

  /// True if the backend was asked about the instruction.
  bool asked(hlo::InstrId id) const { return hlo::index_of(id) < asked_.size() && asked_[hlo::index_of(id)]; }
  const Verdict& of(hlo::InstrId id) const {
    return hlo::index_of(id) < list_.size() ? list_[hlo::index_of(id)] : none_;
  }

 private:
  std::vector<Verdict> list_;
  std::vector<bool> asked_;
  Verdict none_;
};

/// Returns the ops about which the backend is asked: those of the entry and of the computations of while, conditional
/// and call.
std::vector<uint32_t> ops_to_ask(const collet_program* program);
/// True for while, conditional and call.
bool is_control_flow(hlo::Op op);

}  // namespace collet::runtime
