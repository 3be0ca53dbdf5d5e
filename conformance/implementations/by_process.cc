// SPDX-License-Identifier: Apache-2.0
#include <collet/kernel_backend.hpp>

#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "conformance/implementations/child.h"

/// \file
/// A thin backend whose kernels are a process: it hands the arrays of each op that works element by element, and of conversions, to the
/// process that the option `command` starts (child.h), and declines what the process does not have. By it the elementary functions of any
/// library can be held against the suite: see implementations.py.

namespace collet::implementations {
namespace {

/// Memory of the host.
class HostDevice final : public kernel::Device {
 public:
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
  static char* at(kernel::Memory memory) { return reinterpret_cast<char*>(memory); }
};

/// Returns the ops that compute each element of the result from those of the operands at its place, and have no attributes.
std::vector<uint32_t> ops_by_element() {
  std::vector<uint32_t> out;
  const auto add = [&](uint32_t op, const char* record) {
    const bool is_computed = (collet_op_traits(op) & COLLET_OP_ELEMENTWISE) != 0 || op == COLLET_OP_CONVERT;
    if (is_computed && std::strcmp(record, "None") == 0) out.push_back(op);
  };
#define COLLET_OP(id, NAME, text, CLASS, family, min, max, Record, REGIONS, TYPES, traits, ulp, since) add(id, #Record);
#include <collet/ops.def>
#undef COLLET_OP
  return out;
}

kernel::Verdict takes(Child& child, const kernel::Op& op) {
  for (uint32_t i = 1; i < op.operand_count(); ++i)
    if (op.operand(i).type != op.operand(0).type || op.operand(i).elements != op.operand(0).elements)
      return "operands of one type and shape only";
  if (child.has(op.opcode(), op.operand(0).type, op.result().type)) return true;
  return child.name() + " does not have it";
}

void run(Child& child, const kernel::Op& op) {
  const kernel::Array& result = op.result();
  if (result.elements == 0) return;
  std::vector<const void*> operands;
  for (uint32_t i = 0; i < op.operand_count(); ++i)
    operands.push_back(HostDevice::at(op.operand(i).memory) + op.operand(i).offset);
  child.compute(op.opcode(), op.operand(0).type, result.type, result.elements, operands,
                HostDevice::at(result.memory) + result.offset);
}

kernel::Backend describe() {
  kernel::Backend backend;
  backend.name = "by_process";
  backend.device_kind = "Process";
  backend.alignment = 64;
  backend.options = {"command"};
  for (uint32_t type = 1; type < COLLET_TYPE_LIMIT; ++type) {
    if (collet_type_kind(type) != COLLET_KIND_OPAQUE)
      backend.types.push_back({type, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE});
  }
  backend.open_device = [](uint32_t) { return std::make_unique<HostDevice>(); };
  backend.configure = [](const kernel::Options& options, kernel::Backend* mine) {
    const auto command = options.values.find("command");
    if (command == options.values.end() || command->second.empty())
      throw kernel::Error(COLLET_INVALID_ARGUMENT,
                          "the option 'command' must name a program; see implementations.py --help");
    const auto child = std::make_shared<Child>(command->second);
    mine->version = mine->fingerprint = child->name();
    if (child->flushes()) mine->traits |= COLLET_TRAIT_FLUSHES_DENORMALS;
    kernel::TypeSet every;
    for (const collet_type_support& type : mine->types) every = every | kernel::TypeSet{type.type};
    for (const uint32_t op : ops_by_element()) {
      kernel::Kernel row{op, every, every, [child](kernel::Device&, const kernel::Op& one) { run(*child, one); }};
      row.takes = [child](const kernel::Op& one) { return takes(*child, one); };
      mine->kernels.push_back(row);
    }
  };
  return backend;
}

}  // namespace
}  // namespace collet::implementations

COLLET_KERNEL_BACKEND(collet::implementations::describe)
