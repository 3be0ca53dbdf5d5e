// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine.h"

namespace npu {

// Makes one command list of a whole program.
class Compiler final : public kernel::ProgramCompiler {
 public:
  Compiler(uint64_t scratchpad_bytes, Fault fault);
  void answer(const collet_program* program, const uint32_t* ops, uint32_t count,
              collet_verdict* verdicts) const override;
  std::unique_ptr<kernel::WholeProgram> compile(const collet_program* program, bool keep_artifacts,
                                                std::vector<uint32_t>* rejected) const override;
  const char* pattern(uint32_t index) const override;
  uint32_t pattern_features(uint32_t index) const override;

 private:
  commands::ListOptions options_;
  Fault fault_;
};

}  // namespace npu
