// SPDX-License-Identifier: Apache-2.0
#include "hlo/program/block.h"

#include "hlo/base/sha256.h"

namespace collet::hlo {

ContentId content_id(std::span<const char> bytes) {
  const Sha256::Digest digest = Sha256().add({bytes.data(), bytes.size()}).digest();
  ContentId id;
  static_assert(sizeof id == sizeof digest);
  std::memcpy(&id, digest.data(), sizeof id);
  return id;
}

}  // namespace collet::hlo
