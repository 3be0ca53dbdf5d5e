// SPDX-License-Identifier: Apache-2.0
#include "hlo/passes/passes.h"

namespace collet::hlo {
namespace {

constexpr PassInfo kPasses[] = {
#define COLLET_PASS(name, text, idempotent) {#name, text, idempotent, &name},
#include "hlo/passes/passes.def"
};

}  // namespace

std::span<const PassInfo> passes() {
  return kPasses;
}

const PassInfo* find_pass(std::string_view name) {
  for (const PassInfo& pass : kPasses)
    if (pass.name == name) return &pass;
  return nullptr;
}

}  // namespace collet::hlo
