// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/list_backend.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "units.h"

namespace npu {

namespace commands = collet::commands;
namespace kernel = collet::kernel;

constexpr uint64_t kMemoryBytes = UINT64_C(1) << 30;
constexpr uint64_t kAlignment = 64;
constexpr double kCyclesPerNs = 1;

// Faults that the tests put in, to see that they find them.
enum class Fault { kNone, kRounding, kZeroPoint, kSaturation, kHalo, kAddress };

// The machine: two DMA channels, a matrix engine, a table unit and an ALU on one scratchpad.
class Machine final : public commands::RowMachine {
 public:
  using RowMachine::RowMachine;
  uint64_t copy_cycles(const commands::Command& command) const override {
    const commands::Operand& from = command.reads[0];
    return 20 + from.rows + from.bytes * from.rows / 32;
  }
};

// Device memory, which the host does not see, and the scratchpad. A kernel::Memory is an address.
class Device final : public kernel::Device {
 public:
  using Memory = kernel::Memory;

  explicit Device(uint64_t scratchpad_bytes) : scratchpad(scratchpad_bytes) {}
  Memory allocate(uint64_t bytes, uint64_t alignment) override;
  void free(Memory memory) noexcept override;
  void write(Memory to, uint64_t offset, const void* from, uint64_t bytes) override;
  void read(Memory from, uint64_t offset, void* to, uint64_t bytes) override;
  void copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) override;
  bool records_itself() const override { return true; }
  static char* at(Memory memory) { return reinterpret_cast<char*>(memory); }

  std::mutex mutex;  // held while a list runs
  std::vector<char> scratchpad;

 private:
  struct Block {
    uint64_t bytes, alignment;
  };
  std::mutex allocation_;
  std::map<Memory, Block> blocks_;
  uint64_t used_ = 0;
};

}  // namespace npu
