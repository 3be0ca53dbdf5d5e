// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <collet/codegen/kernel_evaluate.h>
#include <collet/codegen/kernel_text.h>
#include <collet/codegen/kernel_verify.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace kernel_ir {
namespace {

constexpr char kHead[] = "== ";

void throw_unless_ok(const codegen::Status& status, const std::string& what) {
  if (!status.ok()) throw kernel::Error(status.code(), what + ": " + status.message());
}

}  // namespace

std::string compile(const codegen::KernelProgram& program) {
  std::string out;
  for (const codegen::PlannedKernel& one : program.kernels) {
    throw_unless_ok(codegen::verify_kernel(one.kernel), "kernel '" + one.name + "' (" + one.ops + ")");
    out += kHead + one.name + "\n" + codegen::print_kernel(one.kernel);
  }
  return out;
}

kernel::Memory Device::allocate(uint64_t bytes, uint64_t) {
  const std::lock_guard lock(mutex_);
  if (bytes > memory_bytes_ - used_)
    throw kernel::Error(COLLET_RESOURCE_EXHAUSTED, "no memory for " + std::to_string(bytes) + " bytes");
  Block block{std::make_unique<std::byte[]>(bytes), bytes};
  used_ += bytes;
  blocks_.emplace(++last_, std::move(block));
  return last_;
}

void Device::free(kernel::Memory memory) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(memory);
  if (found == blocks_.end()) return;
  used_ -= found->second.size;
  blocks_.erase(found);
}

std::byte* Device::at(kernel::Memory memory, uint64_t offset, uint64_t* rest) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(memory);
  if (found == blocks_.end() || offset > found->second.size)
    throw kernel::Error(COLLET_INTERNAL, "memory that is not there");
  if (rest) *rest = found->second.size - offset;
  return found->second.bytes.get() + offset;
}

void Device::write(kernel::Memory to, uint64_t offset, const void* from, uint64_t bytes) {
  std::memcpy(at(to, offset), from, bytes);
}

void Device::read(kernel::Memory from, uint64_t offset, void* to, uint64_t bytes) {
  std::memcpy(to, at(from, offset), bytes);
}

void Device::copy(kernel::Memory to, uint64_t to_offset, kernel::Memory from, uint64_t from_offset, uint64_t bytes) {
  std::memmove(at(to, to_offset), at(from, from_offset), bytes);
}

uint64_t Device::load_code(const codegen::KernelProgram& program, const std::string& code) {
  auto loaded = std::make_shared<Code>();
  size_t begin = 0;
  for (const codegen::PlannedKernel& one : program.kernels) {
    const std::string head = kHead + one.name + "\n";
    if (code.compare(begin, head.size(), head) != 0)
      throw kernel::Error(COLLET_DATA_LOSS, "the code has no kernel '" + one.name + "'");
    begin += head.size();
    const size_t end = std::min(code.find(std::string("\n") + kHead, begin), code.size() - 1) + 1;
    codegen::Kernel kernel;
    throw_unless_ok(codegen::parse_kernel(std::string_view(code).substr(begin, end - begin), kernel),
                    "kernel '" + one.name + "'");
    loaded->names.push_back(one.name);
    loaded->kernels.push_back(std::move(kernel));
    begin = end;
  }
  const std::lock_guard lock(mutex_);
  code_[++last_] = std::move(loaded);
  return last_;
}

void Device::free_code(uint64_t loaded) noexcept {
  const std::lock_guard lock(mutex_);
  code_.erase(loaded);
}

void Device::launch(uint64_t loaded, uint32_t number, const std::vector<kernel::Piece>& buffers, uint64_t) {
  std::shared_ptr<const Code> code;
  {
    const std::lock_guard lock(mutex_);
    code = code_.at(loaded);
  }
  std::vector<std::span<std::byte>> arrays;
  for (const kernel::Piece& piece : buffers) {
    if (piece.memory == kernel::no_memory) {
      arrays.emplace_back();
      continue;
    }
    uint64_t rest = 0;
    std::byte* const bytes = at(piece.memory, piece.offset, &rest);
    arrays.emplace_back(bytes, rest);
  }
  throw_unless_ok(codegen::evaluate_kernel(code->kernels[number], arrays), "kernel '" + code->names[number] + "'");
}

}  // namespace kernel_ir
