// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine.h"

namespace npu {

// Makes one command list of a whole program.
class Compiler final : public commands::ListCompiler {
 public:
  Compiler(uint64_t scratchpad_bytes, Fault fault);
  std::unique_ptr<commands::Units> make_units() const override;
  std::unique_ptr<commands::LoadedList> load(kernel::Device& device, const commands::List& list,
                                             const commands::Units& units,
                                             const std::vector<uint64_t>& array_bytes) const override;
  commands::Simulated timing(const commands::List& list, const commands::Units& units) const override;
  double cycles_per_ns() const override { return kCyclesPerNs; }

 private:
  Fault fault_;
};

}  // namespace npu
