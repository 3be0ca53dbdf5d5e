// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/llvm/versioned_text.h"

#include <collet/backend.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include <array>

namespace collet::codegen {
namespace {

/// The version in which memory(...) took the place of readnone and its like.
constexpr int kMemoryAttribute = 16;

/// An intrinsic that has come, or has got its name, in a version.
struct Newer {
  const char* name;
  int since;
};
constexpr std::array kNewer{Newer{"llvm.ldexp", 17}, Newer{"llvm.vector.interleave2", 17},
                            Newer{"llvm.vector.deinterleave2", 17}};

/// Returns why a version does not have a function that a module calls; empty if it has it.
std::string why_unknown(const llvm::Function& function, int version) {
  for (const Newer& one : kNewer)
    if (function.getName().starts_with(one.name) && version < one.since)
      return std::string(one.name) + " needs LLVM " + std::to_string(one.since);
  // The bfloat type of these intrinsics was one of integers.
  constexpr int kBfloatInVectors = 17;
  if (function.getName().starts_with("llvm.x86.avx512bf16.") && version < kBfloatInVectors)
    return "bf16_dot needs LLVM " + std::to_string(kBfloatInVectors);
  return {};
}

/// Gives an intrinsic of vectors the name that it had while it was experimental.
void rename(llvm::Function& function, int version) {
  constexpr int kVectors = 19;
  constexpr std::string_view kPrefix = "llvm.vector.";
  if (version >= kVectors) return;
  for (const std::string_view name : {"reverse", "interleave2", "deinterleave2"})
    if (function.getName().starts_with((std::string(kPrefix) + std::string(name) + ".")))
      return function.setName("llvm.experimental.vector." + function.getName().substr(kPrefix.size()));
}

/// Removes attributes of functions that only newer versions know. Those of an intrinsic are made anew by the reader.
void trim_attributes(llvm::Function& function, int version) {
  if (function.isIntrinsic()) {
    function.setAttributes({});
    return;
  }
  if (version < kMemoryAttribute) function.removeFnAttr(llvm::Attribute::Memory);
}

/// Removes flags of instructions that only newer versions know: what they promise is not needed.
void trim_flags(llvm::Instruction& instruction, int version) {
  constexpr int kPromisesOfValues = 18;  // zext nneg, uitofp nneg, or disjoint
  constexpr int kPromisesOfAddresses = 19;
  if (version < kPromisesOfValues) {
    if (auto* const extension = llvm::dyn_cast<llvm::PossiblyNonNegInst>(&instruction)) extension->setNonNeg(false);
    if (auto* const either = llvm::dyn_cast<llvm::PossiblyDisjointInst>(&instruction)) either->setIsDisjoint(false);
  }
  if (version < kPromisesOfAddresses) {
    if (auto* const truncation = llvm::dyn_cast<llvm::TruncInst>(&instruction)) {
      truncation->setHasNoUnsignedWrap(false);
      truncation->setHasNoSignedWrap(false);
    }
    if (auto* const address = llvm::dyn_cast<llvm::GetElementPtrInst>(&instruction))
      address->setNoWrapFlags(address->isInBounds() ? llvm::GEPNoWrapFlags::inBounds() : llvm::GEPNoWrapFlags::none());
  }
  auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  if (call && version < kMemoryAttribute) call->removeFnAttr(llvm::Attribute::Memory);
}

/// Returns a data layout as an older version states it for the same target.
std::string layout_for(std::string layout, int version) {
  constexpr int kAlignedWords = 18;  // x86 aligns integers of 128 bits since then
  constexpr const char* kWords = "-i128:128";
  if (const size_t at = layout.find(kWords); version < kAlignedWords && at != std::string::npos)
    layout.erase(at, std::char_traits<char>::length(kWords));
  return layout;
}

}  // namespace

Status print_for_version(llvm::Module& module, int version, std::string& out) {
  if (version < kFirstLlvmVersion || version > LLVM_VERSION_MAJOR)
    return {COLLET_UNIMPLEMENTED, "text is written for LLVM " + std::to_string(kFirstLlvmVersion) + " to " +
                                      std::to_string(LLVM_VERSION_MAJOR) + ", not " + std::to_string(version)};
  if (version < LLVM_VERSION_MAJOR) {
    for (llvm::Function& function : module) {
      if (const std::string why = why_unknown(function, version); !why.empty())
        return {COLLET_UNIMPLEMENTED, "text for LLVM " + std::to_string(version) + ": " + why};
      trim_attributes(function, version);
      rename(function, version);
      for (llvm::BasicBlock& block : function)
        for (llvm::Instruction& instruction : block) trim_flags(instruction, version);
    }
    module.setDataLayout(layout_for(module.getDataLayoutStr(), version));
  }
  out.clear();
  llvm::raw_string_ostream stream(out);
  module.print(stream, nullptr);
  return {};
}

}  // namespace collet::codegen
