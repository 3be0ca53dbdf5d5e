// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/program/block.h"
#include "hlo/program/write.h"
#include "sdk/runtime/client.h"
#include "sdk/runtime/dump.h"
#include "sdk/runtime/plan/disk_cache.h"
#include "sdk/runtime/plan/plan.h"

namespace collet::runtime {

/// Compiled programs as bytes that their backends wrote, by CompiledProgram::key.
using CompiledParts = std::unordered_map<hlo::ContentId, std::string_view, hlo::ContentIdHash>;

/// Replaces `key` by a hash of `key` and `text`.
void mix(hlo::ContentId& key, std::string_view text);

/// Compiles the programs of clusters. Each is searched for in this compilation, in the client, in `parts`, and on disk
/// before a backend compiles it.
class ProgramCompiler {
 public:
  ProgramCompiler(Client& client, const collet_compile_request& request, uint32_t optimization,
                  const CompiledParts* parts, Dump& dump)
      : client_(client), request_(request), optimization_(optimization), parts_(parts), dump_(dump) {}

  /// Compiles for the participants on `devices` together or, with `alone`, for the one on the first device. `content`
  /// is the hash of the program without names.
  Expected<std::shared_ptr<CompiledProgram>> compile(Side side, std::span<const uint32_t> devices, bool alone,
                                                     const hlo::ContentId& content, const hlo::Program& program);
  /// Returns the instructions that the backend named when it last refused a program.
  const std::vector<hlo::InstrId>& rejected() const { return rejected_; }
  /// True if a backend has compiled something.
  bool any_new() const { return any_new_; }

 private:
  /// True if what the caches have may be taken. What they keep has no artifacts, so a dump compiles anew.
  bool looks_up() const { return !request_.no_cache && !dump_.on(); }
  Expected<std::shared_ptr<CompiledProgram>> make(const std::shared_ptr<Backend>& backend, const hlo::ContentId& key,
                                                  const collet_compile_options& options, const hlo::Program& program);
  Expected<collet_backend_executable*> from_bytes(const hlo::ContentId& key, Backend& backend,
                                                  const hlo::Program& program, const collet_compile_options& options,
                                                  CompiledFacts& facts);

  Client& client_;
  const collet_compile_request& request_;
  uint32_t optimization_;
  const CompiledParts* parts_;
  Dump& dump_;
  DiskCache disk_;
  bool any_new_ = false;
  std::vector<hlo::InstrId> rejected_;
  std::unordered_map<hlo::ContentId, std::shared_ptr<CompiledProgram>, hlo::ContentIdHash> met_;
};

}  // namespace collet::runtime
