// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

#include <cstring>
#include <new>

namespace npu {

using kernel::Array;
using kernel::Error;
using kernel::Op;

namespace {

double element(const Array& array, uint64_t i) {
  const char* const data = Device::at(array.memory);
  switch (array.type) {
    case COLLET_TYPE_S8:
      return reinterpret_cast<const int8_t*>(data)[i];
    case COLLET_TYPE_U8:
      return reinterpret_cast<const uint8_t*>(data)[i];
    case COLLET_TYPE_S32:
      return reinterpret_cast<const int32_t*>(data)[i];
    default:
      return static_cast<double>(reinterpret_cast<const float*>(data)[i]);
  }
}

}  // namespace

uint64_t Machine::cycles(const commands::Command& command) const {
  if (command.engine > kStore) return work_[static_cast<size_t>(command.values[0])].cycles;
  const commands::Operand& from = command.reads[0];
  return 20 + from.rows + from.bytes * from.rows / 32;
}

void Machine::run(const commands::Command& command, const std::function<char*(const commands::Operand&)>& at) {
  const commands::Operand& to = command.writes[0];
  if (command.engine <= kStore) {
    const commands::Operand& from = command.reads[0];
    for (uint64_t row = 0; row < from.rows; ++row) {
      std::memcpy(at(to) + row * to.pitch, at(from) + row * from.pitch, from.bytes);
    }
    return;
  }
  const Work& work = work_[static_cast<size_t>(command.values[0])];
  const Op shaped = work.what.op.op();
  std::vector<Array> arrays(shaped.arrays(), shaped.arrays() + shaped.operand_count() + shaped.result_count());
  const auto address = [&](const commands::Operand& operand) { return reinterpret_cast<kernel::Memory>(at(operand)); };
  for (size_t i = 0; i < work.what.reads.size(); ++i) arrays[work.what.reads[i]].memory = address(command.reads[i]);
  for (size_t i = 0; i < command.writes.size(); ++i) {
    arrays[shaped.operand_count() + i].memory = address(command.writes[i]);
  }
  kernel::OpContext context;
  context.state = &work.state;
  const Op op(shaped.program(), &shaped.raw(), arrays.data(), context);
  if (work.layer) {
    const bool has_sums = work.what.has_sums;
    return end_layer(work, op, has_sums ? reinterpret_cast<const int32_t*>(at(command.reads.back())) : nullptr);
  }
  if (!work.row) {
    std::memcpy(at(to), at(command.reads[0]), to.bytes);
  } else if (!work.combine) {
    work.row->run(*device_, op);
  } else {
    std::vector<char> part(to.bytes);
    const Array sum = arrays.back();
    arrays.back().memory = reinterpret_cast<kernel::Memory>(part.data());
    work.row->run(*device_, op);
    const Array combined[] = {sum, arrays.back(), sum};
    collet_op both{};
    both.operands.count = 2;
    work.combine->run(*device_, Op(shaped.program(), &both, combined));
  }
}

// The end of a quantized layer: bias, scale, activation, zero point, rounding, saturation. Without sums: a residual sum.
void Machine::end_layer(const Work& work, const Op& op, const int32_t* sums) const {
  kernel::QuantizedGroup layer = *work.layer;
  if (fault_ == Fault::kRounding) layer.rounds_away = !layer.rounds_away;
  if (fault_ == Fault::kZeroPoint) layer.zero_point += 1;
  if (fault_ == Fault::kSaturation) layer.low = -1e9, layer.high = 1e9;
  char* const to = Device::at(op.result().memory);
  for (uint64_t i = 0; i < op.result().elements; ++i) {
    const auto stored = [&](uint32_t operand) { return static_cast<int32_t>(element(op.operand(operand), i)); };
    const float value = sums ? layer.result(op, sums[i], i, element)
                             : layer.result(op, layer.added(op, stored(0), stored(1), i, element), i, element);
    if (op.result().type == COLLET_TYPE_F32) {
      reinterpret_cast<float*>(to)[i] = value;
    } else {
      to[i] = static_cast<char>(static_cast<int32_t>(value));
    }
  }
}

kernel::Memory Device::allocate(uint64_t bytes, uint64_t alignment) {
  const std::lock_guard<std::mutex> lock(allocation_);
  const uint64_t left = kMemoryBytes - used_;
  if (bytes > left) {
    throw Error(COLLET_RESOURCE_EXHAUSTED,
                std::to_string(bytes) + " bytes, where " + std::to_string(left) + " of the machine's memory are free");
  }
  const uint64_t aligned_to = std::max(alignment, kAlignment);
  const auto at = reinterpret_cast<Memory>(::operator new(bytes, std::align_val_t(aligned_to)));
  blocks_[at] = {bytes, aligned_to};
  used_ += bytes;
  return at;
}

void Device::free(Memory memory) noexcept {
  const std::lock_guard<std::mutex> lock(allocation_);
  const auto block = blocks_.find(memory);
  if (block == blocks_.end()) return;
  used_ -= block->second.bytes;
  ::operator delete(at(memory), std::align_val_t(block->second.alignment));
  blocks_.erase(block);
}

void Device::write(Memory to, uint64_t offset, const void* from, uint64_t bytes) {
  std::memcpy(at(to) + offset, from, bytes);
}
void Device::read(Memory from, uint64_t offset, void* to, uint64_t bytes) {
  std::memcpy(to, at(from) + offset, bytes);
}
void Device::copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) {
  std::memcpy(at(to) + to_offset, at(from) + from_offset, bytes);
}

}  // namespace npu
