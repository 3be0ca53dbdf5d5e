// SPDX-License-Identifier: Apache-2.0
#include "hlo/program/content_ids.h"

namespace collet::hlo {
namespace {

constexpr size_t kLarge = size_t{1} << 16;  // bytes of the smallest literal whose id is kept

}  // namespace

ContentId ContentIds::of(const Literal& literal) {
  const auto size = static_cast<size_t>(literal.byte_size());
  const auto* bytes = reinterpret_cast<const char*>(literal.bytes());
  if (size < kLarge) return content_id({bytes, size});
  const auto [it, fresh] = known_.try_emplace({bytes, size});
  if (fresh) it->second = {literal, content_id({bytes, size})};
  return it->second.id;
}

}  // namespace collet::hlo
