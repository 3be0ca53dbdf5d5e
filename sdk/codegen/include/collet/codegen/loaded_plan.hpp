// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What every backend does that runs a launch plan on a device: the constants in its memory, the values that the host writes, and the
/// conditions that the host reads. Included by code_backend.hpp. C++17.

#include <collet/codegen/launch_plan.h>
#include <collet/kernel_backend.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace collet::codegen::detail {

/// The constants of a program in the memory of a device.
class DeviceConstants {
 public:
  /// The memory is at a multiple of `alignment`. Throws what the device throws.
  DeviceConstants(kernel::Device& device, const std::vector<char>& bytes, uint64_t alignment = 64) : device_(device) {
    if (bytes.empty()) return;
    memory_ = device.allocate(bytes.size(), alignment);
    try {
      device.write(memory_, 0, bytes.data(), bytes.size());
      device.finish();
    } catch (...) {
      device.free(memory_);
      throw;
    }
  }
  DeviceConstants(const DeviceConstants&) = delete;
  DeviceConstants& operator=(const DeviceConstants&) = delete;
  ~DeviceConstants() {
    if (memory_ != kernel::no_memory) device_.free(memory_);
  }
  kernel::Memory memory() const { return memory_; }  ///< no_memory if there are none

 private:
  kernel::Device& device_;
  kernel::Memory memory_ = kernel::no_memory;
};

/// The words that the host writes in the steps kHostValue of a plan. Any thread.
class HostValues {
 public:
  /// Returns the words of value number `call` for a run of `participant`; a state of random numbers advances.
  std::array<uint64_t, 2> next(const LaunchPlan& plan, uint32_t call, uint32_t participant) {
    const HostValue& what = plan.host_values[call];
    if (what.kind == HostValue::Kind::kReplica) return {participant / what.partitions, 0};
    if (what.kind == HostValue::Kind::kPartition) return {participant % what.partitions, 0};
    const std::lock_guard<std::mutex> lock(mutex_);
    std::array<uint64_t, 2>& state =
        states_.try_emplace(call, std::array<uint64_t, 2>{kFirstRandomState, what.source}).first->second;
    const std::array<uint64_t, 2> before = state;
    state[0] += what.delta;
    if (state[0] < what.delta) ++state[1];
    return before;
  }

 private:
  std::mutex mutex_;
  std::map<uint32_t, std::array<uint64_t, 2>> states_;  ///< of sources of random numbers, by the number of the value
};

/// Copies as a step kCopy says. Both places may be the same memory, which devices may refuse to copy onto itself.
inline void copy_piece(kernel::Device& device, const kernel::Piece& from, const kernel::Piece& to, uint64_t bytes) {
  const bool is_there = from.memory == to.memory && from.offset == to.offset;
  if (!is_there && bytes > 0) device.copy(to.memory, to.offset, from.memory, from.offset, bytes);
}

/// Reads from a device what decides how a step kWhile or kConditional goes on, which is at `at`.
inline bool read_condition(kernel::Device& device, const kernel::Piece& at) {
  uint8_t value = 0;
  device.read(at.memory, at.offset, &value, sizeof value);
  return value != 0;
}
inline size_t read_branch(kernel::Device& device, const Step& step, const kernel::Piece& at) {
  int32_t value = 0;
  if (step.index_bytes == 0)
    value = read_condition(device, at) ? 1 : 0;
  else
    device.read(at.memory, at.offset, &value, sizeof value);
  return branch_of(step.children.size(), step.index_bytes, value);
}

}  // namespace collet::codegen::detail
