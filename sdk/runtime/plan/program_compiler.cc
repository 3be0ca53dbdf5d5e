// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/plan/program_compiler.h"

#include <optional>
#include <string>

namespace collet::runtime {
namespace {

// Returns a key for the disk cache that includes the backend and the device, because code of other processes must be
// for exactly these.
hlo::ContentId file_key(hlo::ContentId key, const Backend& backend, const collet_compile_options& options) {
  mix(key, backend.name());
  mix(key, backend.version());
  mix(key, std::to_string(COLLET_ABI_MAJOR) + "." + std::to_string(COLLET_ABI_MINOR));
  for (uint32_t p = 0; p < options.participants; ++p) mix(key, backend.devices()[options.assignment[p]].fingerprint);
  return key;
}

}  // namespace

void mix(hlo::ContentId& key, std::string_view text) {
  std::string all(reinterpret_cast<const char*>(&key), sizeof key);
  all += text;
  key = hlo::content_id(all);
}

Expected<std::shared_ptr<CompiledProgram>> ProgramCompiler::compile(Side side, std::span<const uint32_t> devices,
                                                                    bool alone, const hlo::ContentId& content,
                                                                    const hlo::Program& program) {
  const std::shared_ptr<Backend>& backend = side == Side::Device ? client_.shared_backend() : client_.fallback();
  static const uint32_t kFallbackDevice = 0;
  collet_compile_options options{};
  options.struct_size = sizeof options;
  options.optimization = optimization_;
  options.participants = alone ? 1 : static_cast<uint32_t>(devices.size());
  options.assignment = side == Side::Fallback ? &kFallbackDevice : devices.data();
  options.intermediate_check = dump_.on();
  options.user = request_.user;
  options.progress = request_.progress;
  hlo::ContentId key = content;
  mix(key, side == Side::Device ? "device" : "fallback");
  const DeviceFacts& first = backend->devices()[options.assignment[0]];
  if (alone && first.has(COLLET_TRAIT_SHARED_CODE))
    mix(key, first.fingerprint);
  else
    mix(key, {reinterpret_cast<const char*>(options.assignment), options.participants * sizeof(uint32_t)});
  mix(key, std::to_string(options.optimization));
  if (const auto it = met_.find(key); it != met_.end()) return it->second;
  std::shared_ptr<CompiledProgram> compiled;
  if (looks_up()) compiled = client_.find_compiled(key);
  if (!compiled) {
    COLLET_ASSIGN(compiled, make(backend, key, options, program));
    if (!request_.no_cache) client_.keep_compiled(key, compiled);
  }
  if (dump_.on())
    for (const Backend::Artifact& a : backend->artifacts(compiled->handle())) dump_.text(a.name, a.contents);
  met_[key] = compiled;
  return compiled;
}

Expected<std::shared_ptr<CompiledProgram>> ProgramCompiler::make(const std::shared_ptr<Backend>& backend,
                                                                 const hlo::ContentId& key,
                                                                 const collet_compile_options& options,
                                                                 const hlo::Program& program) {
  CompiledFacts facts;
  const hlo::ContentId file = file_key(key, *backend, options);
  auto handle = from_bytes(file, *backend, program, options, facts);
  const bool found = handle.ok();
  if (!found) {
    std::vector<uint32_t> rejected;
    handle = backend->compile(program.get(), options, facts, rejected);
    rejected_.clear();
    for (uint32_t op : rejected)
      if (op < program.ops.size()) rejected_.push_back(program.ops[op]);
  }
  if (!handle.ok()) return handle.status();
  any_new_ |= !found;
  auto compiled = std::make_shared<CompiledProgram>(backend, *handle, std::move(facts), file);
  if (!found && !request_.no_cache && disk_.on())
    if (const std::string bytes = backend->serialize(*handle); !bytes.empty()) disk_.keep(file, bytes);
  const DeviceFacts& device = backend->devices()[options.assignment[0]];
  if (compiled->facts().workspace_alignment > device.spaces[device.default_space].alignment)
    return internal_error("backend '" + backend->name() +
                          "', compile: wants its workspace better aligned than its memory");
  return compiled;
}

Expected<collet_backend_executable*> ProgramCompiler::from_bytes(const hlo::ContentId& key, Backend& backend,
                                                                 const hlo::Program& program,
                                                                 const collet_compile_options& options,
                                                                 CompiledFacts& facts) {
  if (parts_) {
    const auto part = parts_->find(key);
    if (part != parts_->end())
      if (auto loaded = backend.load(part->second, program.get(), options, facts); loaded.ok()) return loaded;
  }
  if (!looks_up() || !disk_.on()) return not_found("no cache");
  const std::optional<std::string> bytes = disk_.find(key);
  if (!bytes) return not_found("not in the cache");
  return backend.load(*bytes, program.get(), options, facts);
}

}  // namespace collet::runtime
