// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/kernel_device.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kernel_ir {

namespace codegen = collet::codegen;
namespace kernel = collet::kernel;

/// Makes the code of a program: here the text of its kernels, each with a line "== NAME" before it. A vendor's compiler would make machine
/// code. Throws kernel::Error with the name of a kernel that it does not take.
std::string compile(const codegen::KernelProgram& program);

/// A machine that runs kernel IR as it is, by the evaluator. It checks each access, so it tells what a kernel may read and write.
class Device : public codegen::KernelDevice {
 public:
  explicit Device(uint64_t memory_bytes) : memory_bytes_(memory_bytes) {}

  kernel::Memory allocate(uint64_t bytes, uint64_t alignment) override;
  void free(kernel::Memory memory) noexcept override;
  void write(kernel::Memory to, uint64_t offset, const void* from, uint64_t bytes) override;
  void read(kernel::Memory from, uint64_t offset, void* to, uint64_t bytes) override;
  void copy(kernel::Memory to, uint64_t to_offset, kernel::Memory from, uint64_t from_offset, uint64_t bytes) override;

  uint64_t load_code(const codegen::KernelProgram& program, const std::string& code) override;
  void free_code(uint64_t loaded) noexcept override;
  void launch(uint64_t loaded, uint32_t kernel, const std::vector<kernel::Piece>& buffers, uint64_t run_id) override;

 private:
  /// A piece of memory. Its bytes stay where they are until it is freed.
  struct Block {
    std::unique_ptr<std::byte[]> bytes;
    uint64_t size = 0;
  };
  struct Code {
    std::vector<std::string> names;
    std::vector<codegen::Kernel> kernels;
  };
  /// Returns the bytes of a piece of memory from an offset on.
  std::byte* at(kernel::Memory memory, uint64_t offset, uint64_t* rest = nullptr);

  const uint64_t memory_bytes_;
  std::mutex mutex_;  // guards the following members
  uint64_t used_ = 0, last_ = 0;
  std::map<uint64_t, Block> blocks_;
  std::map<uint64_t, std::shared_ptr<const Code>> code_;
};

}  // namespace kernel_ir
