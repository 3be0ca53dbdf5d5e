// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/compile.h>

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>

#include <algorithm>
#include <memory>

namespace collet::codegen {
namespace {

namespace jitlink = llvm::jitlink;
using llvm::orc::ExecutorAddr;

constexpr uint64_t kSegmentAlignment = 64;

std::string text_of(llvm::Error error) {
  return llvm::toString(std::move(error));
}

llvm::Error failure(const std::string& text) {
  return llvm::make_error<llvm::StringError>(text, llvm::inconvertibleErrorCode());
}

/// Allocates all segments of a link graph in one block, which becomes the image.
class ImageMemory final : public jitlink::JITLinkMemoryManager {
 public:
  ImageMemory(CodeMemory& memory, CodeImage& image, Status& status) : memory_(memory), image_(image), status_(status) {}

  void allocate(const jitlink::JITLinkDylib*, jitlink::LinkGraph& graph, OnAllocatedFunction done) override {
    jitlink::BasicLayout layout(graph);
    uint64_t size = 0, alignment = kSegmentAlignment;
    for (auto& [group, segment] : layout.segments()) {
      const uint64_t own = std::max<uint64_t>(segment.Alignment.value(), kSegmentAlignment);
      alignment = std::max(alignment, own);
      size = llvm::alignTo(size, own) + segment.ContentSize + segment.ZeroFillSize;
    }
    image_.address = size == 0 ? 0 : memory_.allocate(size, alignment);
    if (size != 0 && image_.address == 0) {
      status_ = {COLLET_RESOURCE_EXHAUSTED, "the device cannot allocate " + std::to_string(size) + " bytes for code"};
      return done(failure(status_.message()));
    }
    image_.bytes.assign(size, '\0');
    uint64_t at = 0;
    for (auto& [group, segment] : layout.segments()) {
      at = llvm::alignTo(at, std::max<uint64_t>(segment.Alignment.value(), kSegmentAlignment));
      segment.WorkingMem = image_.bytes.data() + at;
      segment.Addr = ExecutorAddr(image_.address + at);
      at += segment.ContentSize + segment.ZeroFillSize;
    }
    if (auto error = layout.apply()) return done(std::move(error));
    done(std::make_unique<Finished>());
  }

  void deallocate(std::vector<FinalizedAlloc> all, OnDeallocatedFunction done) override {
    for (FinalizedAlloc& one : all) one.release();
    done(llvm::Error::success());
  }

 private:
  /// The handle of an allocation whose contents are final as soon as they are relocated, so that finalizing it does
  /// nothing.
  class Finished final : public InFlightAlloc {
   public:
    void abandon(OnAbandonedFunction done) override { done(llvm::Error::success()); }
    void finalize(OnFinalizedFunction done) override { done(FinalizedAlloc(ExecutorAddr(1))); }
  };

  CodeMemory& memory_;
  CodeImage& image_;
  Status& status_;
};

/// The context of one link. All calls happen inside of jitlink::link. `status` receives the first error.
class Link final : public jitlink::JITLinkContext {
 public:
  Link(CodeMemory& memory, CodeImage& image, Status& status)
      : JITLinkContext(nullptr), device_(memory), memory_(memory, image, status), image_(image), status_(status) {}

  jitlink::JITLinkMemoryManager& getMemoryManager() override { return memory_; }
  void notifyFailed(llvm::Error error) override {
    const std::string text = text_of(std::move(error));
    if (status_.ok()) status_ = {COLLET_INTERNAL, "LLVM: " + text};
  }
  void lookup(const LookupMap& names, std::unique_ptr<jitlink::JITLinkAsyncLookupContinuation> then) override {
    jitlink::AsyncLookupResult found;
    for (const auto& [name, flags] : names) {
      const uint64_t address = device_.find(name.str());
      if (address == 0) {
        status_ = {COLLET_NOT_FOUND, "code calls " + name.str() + ", which the device does not have"};
        return then->run(failure(status_.message()));
      }
      found[name] = {ExecutorAddr(address), llvm::JITSymbolFlags::Exported};
    }
    then->run(std::move(found));
  }
  llvm::Error notifyResolved(jitlink::LinkGraph& graph) override {
    for (const jitlink::Symbol* symbol : graph.defined_symbols()) {
      if (!symbol->hasName() || symbol->getScope() == jitlink::Scope::Local) continue;
      image_.symbols.emplace_back(symbol->getName().str(), symbol->getAddress().getValue());
    }
    return llvm::Error::success();
  }
  void notifyFinalized(jitlink::JITLinkMemoryManager::FinalizedAlloc all) override { all.release(); }

 private:
  CodeMemory& device_;
  ImageMemory memory_;
  CodeImage& image_;
  Status& status_;
};

}  // namespace

uint64_t CodeImage::find(const std::string& name) const {
  for (const auto& [own, at] : symbols) {
    if (own == name) return at;
  }
  return 0;
}

Status link_image(const std::string& object, CodeMemory& memory, CodeImage& out) {
  out = {};
  auto graph = jitlink::createLinkGraphFromObject(llvm::MemoryBufferRef(object, "object"));
  if (!graph) return {COLLET_INVALID_ARGUMENT, "LLVM: " + text_of(graph.takeError())};
  Status status;
  jitlink::link(std::move(*graph), std::make_unique<Link>(memory, out, status));
  return status;
}

}  // namespace collet::codegen
