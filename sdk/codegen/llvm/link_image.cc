// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/compile.h>

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>

#include <algorithm>
#include <optional>

namespace collet::codegen {
namespace {

namespace jitlink = llvm::jitlink;
using llvm::orc::ExecutorAddr;

constexpr uint64_t kSegmentAlignment = 64;

std::string text_of(llvm::Error error) {
  return llvm::toString(std::move(error));
}

/// Lays all segments of a graph into one block, which becomes the image.
class ImageMemory final : public jitlink::JITLinkMemoryManager {
 public:
  ImageMemory(CodeMemory& memory, CodeImage& image) : memory_(memory), image_(image) {}

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
      no_room_ = true;
      return done(llvm::make_error<llvm::StringError>("no room for code", llvm::inconvertibleErrorCode()));
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

  bool had_no_room() const { return no_room_; }

 private:
  /// The image is whole as soon as its addresses are patched: nothing is left to be done.
  class Finished final : public InFlightAlloc {
   public:
    void abandon(OnAbandonedFunction done) override { done(llvm::Error::success()); }
    void finalize(OnFinalizedFunction done) override { done(FinalizedAlloc(ExecutorAddr(1))); }
  };

  CodeMemory& memory_;
  CodeImage& image_;
  bool no_room_ = false;
};

/// One link. Everything happens inside of jitlink::link.
class Link final : public jitlink::JITLinkContext {
 public:
  Link(CodeMemory& memory, CodeImage& image, std::string& missing, std::optional<std::string>& problem, bool& no_room)
      : JITLinkContext(nullptr),
        devices_(memory),
        memory_(memory, image),
        image_(image),
        missing_(missing),
        problem_(problem),
        no_room_(no_room) {}

  jitlink::JITLinkMemoryManager& getMemoryManager() override { return memory_; }
  void notifyFailed(llvm::Error error) override {
    problem_ = text_of(std::move(error));
    no_room_ = memory_.had_no_room();
  }
  void lookup(const LookupMap& names, std::unique_ptr<jitlink::JITLinkAsyncLookupContinuation> then) override {
    jitlink::AsyncLookupResult found;
    for (const auto& [name, flags] : names) {
      const uint64_t address = devices_.find(name.str());
      if (address == 0 && missing_.empty()) missing_ = name.str();
      found[name] = {ExecutorAddr(address), llvm::JITSymbolFlags::Exported};
    }
    if (missing_.empty()) return then->run(std::move(found));
    then->run(llvm::make_error<llvm::StringError>("no function " + missing_, llvm::inconvertibleErrorCode()));
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
  CodeMemory& devices_;
  ImageMemory memory_;
  CodeImage& image_;
  std::string& missing_;
  std::optional<std::string>& problem_;
  bool& no_room_;
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
  std::string missing;
  std::optional<std::string> problem;
  bool no_room = false;
  jitlink::link(std::move(*graph), std::make_unique<Link>(memory, out, missing, problem, no_room));
  if (!missing.empty()) return {COLLET_NOT_FOUND, "code calls " + missing + ", which the device does not have"};
  if (no_room) return {COLLET_RESOURCE_EXHAUSTED, "the device has no room for code"};
  if (problem) return {COLLET_INTERNAL, "LLVM: " + *problem};
  return {};
}

}  // namespace collet::codegen
