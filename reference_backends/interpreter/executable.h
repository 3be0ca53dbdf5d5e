// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/backend.h>
#include <collet/ranges.h>

#include <memory>
#include <span>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/eval/evaluator.h"
#include "hlo/ir/module.h"
#include "hlo/program/block.h"

namespace collet::interpreter {

/// Memory of the interpreter, which is host memory.
struct Buffer {
  char* data = nullptr;
  uint64_t bytes = 0;

  bool has_range(uint64_t offset, uint64_t size) const { return collet_has_range(bytes, offset, size) != 0; }
};

/// A program that has been read back into an HLO module, which the evaluator runs.
class Executable {
 public:
  static Expected<std::unique_ptr<Executable>> make(const collet_program* program, hlo::EvalOptions options,
                                                    uint32_t devices);
  Status run(std::span<const collet_launch> launches) const;
  const hlo::Block& program() const { return program_; }

 private:
  Executable() = default;
  Expected<std::vector<hlo::Literal>> arguments(const collet_launch& launch) const;
  Status store(const hlo::Literal& result, const collet_launch& launch) const;

  hlo::Block program_;
  std::unique_ptr<hlo::Module> module_;
  std::unique_ptr<hlo::Evaluator> evaluator_;
  std::vector<hlo::Shape> arguments_, results_;
  uint32_t participants_ = 1;
  uint32_t devices_ = 1;  ///< number of the instance's devices
};

}  // namespace collet::interpreter
