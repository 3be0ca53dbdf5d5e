// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/backend.h>

#include <string>
#include <unordered_map>

#include "sdk/codegen/base/status.h"
#include "sdk/codegen/graph/graph.h"
#include "sdk/codegen/schedule/target.h"

namespace collet::codegen {

/// Which ops of a program can be compiled for a target: the answers to `supports` of backend.h.
class Claims {
 public:
  /// The program and the target must outlive this.
  Claims(const collet_program* program, const Target& target) : program_(program), target_(target) {}

  /// Reads the program; the error of one that is not as program.h says.
  Status prepare();
  /// Writes the answer for an op of the program, by its number, and the reason of a refusal.
  void answer(uint32_t op, collet_verdict& verdict) const;
  /// OK if all ops of the entry are accepted; else UNIMPLEMENTED with the first reason. Up to rejection->count numbers of
  /// refused ops are put into it, unless it is null; then count is how many there are.
  Status check(collet_rejection* rejection) const;

 private:
  std::string refusal(const collet_op* op, bool& expand) const;

  const collet_program* program_;
  const Target& target_;
  Graph graph_;
  std::unordered_map<const collet_op*, NodeId> node_of_;
};

}  // namespace collet::codegen
