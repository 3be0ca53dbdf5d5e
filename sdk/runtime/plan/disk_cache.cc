// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/plan/disk_cache.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>

#include "hlo/base/cache_folder.h"
#include "sdk/runtime/backend/loader.h"

namespace collet::runtime {
namespace {

struct Head {
  char magic[8] = {'C', 'L', 'T', 'C', 'A', 'C', 'H', '3'};
  hlo::ContentId key, content;
  uint64_t size = 0;
  char signature[SecretKey::kBytes] = {};  // of the head with zeros here; zeros without a key
};

constexpr std::string_view kPurpose = "cache entry";

std::string_view bytes_of(const Head& head) {
  return {reinterpret_cast<const char*>(&head), sizeof head};
}

// Says once what each reason is for which the cache is not used, though one was asked for.
void warn(const Status& status) {
  if (status.code() != Code::PermissionDenied && status.code() != Code::InvalidArgument) return;
  static std::mutex mutex;
  static auto* told = new std::set<std::string>;
  {
    const std::lock_guard lock(mutex);
    if (!told->insert(status.message()).second) return;
  }
  log_message(COLLET_LOG_WARNING, "compiled programs are not kept on disk: " + status.message());
}

// A process lists the folder, to keep its limits, after its first entry, and then after every so many entries or bytes.
constexpr uint64_t kEntriesBetweenTrims = 64, kShareBetweenTrims = 16;

std::string name_of(const hlo::ContentId& key) {
  std::string name;
  for (const uint64_t word : key.words) {
    std::array<char, 17> digits{};
    std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(word));
    name += digits.data();
  }
  return name + ".bin";
}

}  // namespace

DiskCache::DiskCache() : folder_(CacheFolder::path_of_environment()) {
  if (!on()) return;
  Expected<SecretKey> key = SecretKey::of_environment();
  const Expected<uint64_t> limit = CacheFolder::limit_of_environment();
  if (key.ok() && limit.ok()) {
    key_ = *std::move(key);
    limit_ = *limit;
    return;
  }
  warn(key.ok() ? limit.status() : key.status());
  folder_.clear();
}

std::optional<std::string> DiskCache::find(const hlo::ContentId& key) const {
  if (!on()) return std::nullopt;
  const Expected<CacheFolder> folder = CacheFolder::open(folder_, false);
  if (!folder.ok()) {
    warn(folder.status());
    return std::nullopt;
  }
  std::optional<std::string> file = folder->read(name_of(key));
  Head head;
  const Head expected;
  if (!file || file->size() < sizeof head) return std::nullopt;
  std::memcpy(&head, file->data(), sizeof head);
  const std::string signature(head.signature, sizeof head.signature);
  std::memset(head.signature, 0, sizeof head.signature);
  file->erase(0, sizeof head);
  if (std::memcmp(head.magic, expected.magic, sizeof head.magic) != 0 || !(head.key == key) ||
      head.size != file->size() || !(hlo::content_id(*file) == head.content) ||
      !key_.accepts(kPurpose, bytes_of(head), signature))
    return std::nullopt;
  return file;
}

void DiskCache::keep(const hlo::ContentId& key, const std::string& bytes) const {
  if (!on()) return;
  static std::atomic<uint64_t> entries{0}, written{0};
  const uint64_t size = sizeof(Head) + bytes.size();
  if (size > limit_) return;
  const Expected<CacheFolder> folder = CacheFolder::open(folder_, true);
  if (!folder.ok()) return;
  Head head;
  head.key = key;
  head.content = hlo::content_id(bytes);
  head.size = bytes.size();
  if (key_) std::memcpy(head.signature, key_.sign(kPurpose, bytes_of(head)).data(), sizeof head.signature);
  std::string file(bytes_of(head));
  file += bytes;
  // What cannot be written is compiled again by the next process.
  if (!folder->write(name_of(key), file).ok()) return;
  const uint64_t before = written.fetch_add(size), part = limit_ / kShareBetweenTrims + 1;
  if (entries.fetch_add(1) % kEntriesBetweenTrims == 0 || before / part != (before + size) / part)
    static_cast<void>(folder->trim(limit_));
}

}  // namespace collet::runtime
