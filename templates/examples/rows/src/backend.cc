// SPDX-License-Identifier: Apache-2.0
#include <collet/kernel_backend.hpp>
#include <collet/kernel_match.hpp>
#include <collet/kernel_rows.hpp>
#include <cstring>
#include <new>

namespace rows {

namespace kernel = collet::kernel;
using kernel::bfloat16;
using kernel::half;
using kernel::Memory;
using kernel::Op;

namespace {

// Host memory. A kernel::Memory is an address, which only this file uses.
class Device final : public kernel::Device {
 public:
  Memory allocate(uint64_t bytes, uint64_t) override {
    return reinterpret_cast<Memory>(::operator new(bytes, std::align_val_t(kAlignment)));
  }
  void free(Memory memory) noexcept override { ::operator delete(at(memory), std::align_val_t(kAlignment)); }
  void write(Memory to, uint64_t offset, const void* from, uint64_t bytes) override {
    std::memcpy(at(to) + offset, from, bytes);
  }
  void read(Memory from, uint64_t offset, void* to, uint64_t bytes) override {
    std::memcpy(to, at(from) + offset, bytes);
  }
  void copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) override {
    std::memcpy(at(to) + to_offset, at(from) + from_offset, bytes);
  }
  static char* at(Memory memory) { return reinterpret_cast<char*>(memory); }
  static constexpr size_t kAlignment = 4096;  // largest alignment that is requested
};

void* address_of(kernel::Device&, const kernel::Array& array) {
  return array.bytes == 0 ? nullptr : Device::at(array.memory) + array.offset;
}
const float* floats(const kernel::Array& array) {
  return reinterpret_cast<const float*>(Device::at(array.memory) + array.offset);
}

// A fusion that computes x * y + z of f32 in one kernel, without storing the product, for any order of the operands in
// the program.
kernel::Kernel multiply_add() {
  kernel::Kernel row{COLLET_OP_FUSION, kernel::types_of<float>(), kernel::types_of<float>(), nullptr};
  row.takes = [](const Op& op) -> kernel::Verdict {
    return kernel::match_multiply_add(op) ? kernel::Verdict(true) : "only x * y + z";
  };
  row.prepare = [](kernel::Device&, const Op& op) -> std::any { return kernel::match_multiply_add(op); };
  row.run = [](kernel::Device&, const Op& op) {
    const auto& found = op.state<kernel::Matched>();
    const float *x = floats(op.operand(found.operand(0))), *y = floats(op.operand(found.operand(1))),
                *z = floats(op.operand(found.operand(2)));
    auto* out = reinterpret_cast<float*>(Device::at(op.result().memory) + op.result().offset);
    for (uint64_t i = 0; i < op.result().elements; ++i) {
      volatile const float product = x[i] * y[i];  // rounded before the addition, as the program requires
      out[i] = product + z[i];
    }
  };
  return row;
}

std::vector<kernel::Kernel> table() {
  constexpr kernel::TypeSet every = kernel::types_of<bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
                                                     uint32_t, uint64_t, bfloat16, half, float, double>();
  kernel::Rows rows(address_of);
  rows.add(multiply_add());
  rows.arithmetic<float>().arithmetic<double>().arithmetic<bfloat16>().arithmetic<half>();
  rows.arithmetic<int8_t>().arithmetic<int32_t>().arithmetic<int64_t>().arithmetic<uint8_t>().arithmetic<uint32_t>();
  rows.arithmetic<bool>();
  rows.functions<float>().functions<double>().functions<bfloat16>().functions<half>();
  rows.compare<float>().compare<double>().compare<bfloat16>().compare<half>();
  rows.compare<int8_t>().compare<int32_t>().compare<int64_t>().compare<uint8_t>().compare<uint32_t>().compare<bool>();
  rows.select(every).moves(every).gather(every);
  rows.bitcast(kernel::types_of<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, bfloat16,
                                half, float, double>());
  rows.convert<bool, int8_t, int32_t, int64_t, uint8_t, uint32_t, bfloat16, half, float, double>();
  rows.iota<float>().iota<bfloat16>().iota<int32_t>().iota<int64_t>().iota<uint32_t>();
  rows.product<float, float, double>().product<double, double, double>().product<bfloat16, bfloat16, double>();
  rows.product<bfloat16, float, double>().product<half, half, double>().product<half, float, double>();
  rows.product<int8_t, int32_t, int32_t>().product<int32_t, int32_t, int32_t>();
  rows.convolution<float, float, double>().convolution<bfloat16, bfloat16, double>();
  rows.convolution<bfloat16, float, double>().convolution<int8_t, int32_t, int32_t>();
  rows.reduce<float, double>().reduce<double>().reduce<bfloat16, double>().reduce<half, double>();
  rows.reduce<int8_t>().reduce<int32_t>().reduce<int64_t>().reduce<uint8_t>().reduce<uint32_t>().reduce<bool>();
  rows.scatter<float>().scatter<int32_t>().scatter<bfloat16>();
  rows.sort<float>(every).sort<int32_t>(every).sort<bfloat16>(every);
  return rows.take();
}

}  // namespace

kernel::Backend describe() {
  kernel::Backend backend;
  backend.name = "rows";
  backend.version = "0.1.0";
  backend.device_kind = "Rows, kernels of the SDK's headers";
  backend.fingerprint = "rows-0";
  for (uint32_t type = 0; type < COLLET_TYPE_LIMIT; ++type) {
    const bool known = collet_type_kind(type) < COLLET_KIND_COMPLEX;
    if (known) backend.types.push_back({type, COLLET_MAY_STORE | COLLET_MAY_MOVE | COLLET_MAY_COMPUTE});
  }
  backend.queues = true;
  backend.control_flow = true;
  backend.kernels = table();
  backend.open_device = [](uint32_t) { return std::make_unique<Device>(); };
  return backend;
}

}  // namespace rows

COLLET_KERNEL_BACKEND(rows::describe)
