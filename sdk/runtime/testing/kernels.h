// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/kernel_backend.hpp>
#include <collet/kernel_match.hpp>
#include <collet/kernel_rows.hpp>

#include <cstring>
#include <new>

/// \file
/// A test backend made with the public headers for kernels, with several devices that run control flow and collectives
/// themselves.

namespace collet::testing {

/// Properties of the backend's devices.
struct KernelsStyle {
  const char* name;
  bool queues = false;
  bool serial = false;  ///< only one call at a time is allowed
  bool links = false;   ///< devices reach each other without the host
  bool moves = false;   ///< collectives copy scattered rows of memory to one piece first
};

/// A device with host memory.
class KernelsDevice final : public kernel::Device {
 public:
  explicit KernelsDevice(bool links) : links_(links) {}
  kernel::Memory allocate(uint64_t bytes, uint64_t) override {
    return reinterpret_cast<kernel::Memory>(::operator new(bytes, std::align_val_t(4096)));
  }
  void free(kernel::Memory memory) noexcept override { ::operator delete(at(memory), std::align_val_t(4096)); }
  void write(kernel::Memory to, uint64_t offset, const void* from, uint64_t bytes) override {
    std::memcpy(at(to) + offset, from, bytes);
  }
  void read(kernel::Memory from, uint64_t offset, void* to, uint64_t bytes) override {
    std::memcpy(to, at(from) + offset, bytes);
  }
  void copy(kernel::Memory to, uint64_t to_offset, kernel::Memory from, uint64_t from_offset, uint64_t bytes) override {
    std::memcpy(at(to) + to_offset, at(from) + from_offset, bytes);
  }
  bool copy_to(kernel::Device&, kernel::Memory to, uint64_t to_offset, kernel::Memory from, uint64_t from_offset,
               uint64_t bytes) override {
    if (links_) std::memcpy(at(to) + to_offset, at(from) + from_offset, bytes);
    return links_;
  }
  static char* at(kernel::Memory memory) { return reinterpret_cast<char*>(memory); }

 private:
  const bool links_;
};

inline kernel::Backend describe_kernels(const KernelsStyle& style) {
  const auto address_of = [](kernel::Device&, const kernel::Array& array) -> void* {
    return array.bytes == 0 ? nullptr : KernelsDevice::at(array.memory) + array.offset;
  };
  constexpr kernel::TypeSet every = kernel::types_of<bool, int32_t, uint32_t, float>();
  kernel::Rows rows(address_of);
  rows.arithmetic<float>().arithmetic<int32_t>().arithmetic<uint32_t>().arithmetic<bool>();
  rows.compare<float>().compare<int32_t>().compare<uint32_t>().select(every).moves(every);
  rows.convert<bool, int32_t, uint32_t, float>().reduce<float>().reduce<int32_t>();
  rows.choose<float, int32_t>();
  rows.product<float, float, double>();
  // Kernels for max(x + y, z), and for softmax of short rows, which is never run: both give a reason when they decline
  // other fusions.
  kernel::Kernel fusion{COLLET_OP_FUSION, every, every, nullptr};
  fusion.takes = [](const kernel::Op& op) -> kernel::Verdict {
    using namespace kernel::shape;
    const Shape wanted = kernel::shape::op(COLLET_OP_MAXIMUM, add(input(0), input(1)), input(2));
    return kernel::match(op, wanted) ? kernel::Verdict(true) : "only max(x + y, z)";
  };
  fusion.prepare = [](kernel::Device&, const kernel::Op& op) -> std::any {
    using namespace kernel::shape;
    return kernel::match(op, kernel::shape::op(COLLET_OP_MAXIMUM, add(input(0), input(1)), input(2)));
  };
  fusion.run = [](kernel::Device&, const kernel::Op& op) {
    const auto& found = op.state<kernel::Matched>();
    const auto at = [](const kernel::Array& array) {
      return reinterpret_cast<float*>(KernelsDevice::at(array.memory) + array.offset);
    };
    const float *x = at(op.operand(found.operand(0))), *y = at(op.operand(found.operand(1))),
                *z = at(op.operand(found.operand(2)));
    for (uint64_t i = 0; i < op.result().elements; ++i) at(op.result())[i] = kernel::maximum(x[i] + y[i], z[i]);
  };
  fusion.operands = fusion.results = kernel::types_of<float>();
  rows.add(fusion);
  kernel::Kernel softmax{COLLET_OP_CALL, every, every, [](kernel::Device&, const kernel::Op&) {
                           throw kernel::Error(COLLET_INTERNAL, "nobody runs this");
                         }};
  softmax.pattern = "softmax";
  softmax.takes = [](const kernel::Op& op) -> kernel::Verdict {
    const kernel::Array& x = op.result();
    return x.rank != 0 && x.dims[x.rank - 1] <= 4 ? kernel::Verdict(true) : "only rows of at most 4";
  };
  rows.add(softmax);
  if (style.serial) {  // it has a collective of its own
    kernel::Kernel row{COLLET_OP_COLLECTIVE_BROADCAST, every, every, nullptr};
    row.run_together = [](const std::vector<kernel::Member>& group) {
      const kernel::Array& from = group[0].op.operand(0);
      for (const kernel::Member& member : group) {
        const kernel::Array& to = member.op.result();
        std::memcpy(KernelsDevice::at(to.memory) + to.offset, KernelsDevice::at(from.memory) + from.offset, to.bytes);
      }
    };
    rows.add(row);
  }
  kernel::Backend backend;
  backend.name = style.name;
  backend.device_kind = "Kernels";
  backend.device_count = 8;
  for (const uint32_t type : {COLLET_TYPE_PRED, COLLET_TYPE_S32, COLLET_TYPE_U32, COLLET_TYPE_F32}) {
    backend.types.push_back({type, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE});
  }
  backend.kernels = rows.take();
  backend.traits = style.serial ? uint32_t{COLLET_TRAIT_SERIAL} : 0;
  backend.queues = style.queues;
  backend.control_flow = true;
  backend.collectives = true;
  if (style.moves) {
    backend.move = [](kernel::Device&, const kernel::Move& move, const kernel::Array& from, const kernel::Array& to) {
      if (move.element_bytes == 1) return false;
      kernel::loop_move(move, KernelsDevice::at(from.memory) + from.offset, KernelsDevice::at(to.memory) + to.offset);
      return true;
    };
  }
  backend.options = {};
  backend.configure = [](const kernel::Options& options, kernel::Backend* mine) {
    if (options.device_count != 0) mine->device_count = options.device_count;
  };
  backend.open_device = [links = style.links](uint32_t) { return std::make_unique<KernelsDevice>(links); };
  return backend;
}

}  // namespace collet::testing
