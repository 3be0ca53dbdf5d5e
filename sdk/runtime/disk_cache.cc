// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/disk_cache.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "hlo/base/files.h"

namespace collet::runtime {
namespace {

namespace fs = std::filesystem;

struct Head {
  char magic[8] = {'C', 'L', 'T', 'C', 'A', 'C', 'H', '2'};
  hlo::ContentId key, content;
  uint64_t size = 0;
};

}  // namespace

DiskCache::DiskCache() {
  if (const char* folder = std::getenv("COLLET_CACHE_DIR")) folder_ = folder;
}

std::string DiskCache::path(const hlo::ContentId& key) const {
  char name[48];
  std::snprintf(name, sizeof name, "%016llx%016llx.bin", static_cast<unsigned long long>(key.words[0]),
                static_cast<unsigned long long>(key.words[1]));
  return (fs::path(folder_) / name).string();
}

std::optional<std::string> DiskCache::find(const hlo::ContentId& key) const {
  if (!on()) return std::nullopt;
  const Expected<InputFile> file = InputFile::open(path(key));
  if (!file.ok()) return std::nullopt;
  Head head;
  const Head expected;
  const Expected<std::string> start = file->read(0, sizeof head);
  if (!start.ok()) return std::nullopt;
  std::memcpy(&head, start->data(), sizeof head);
  if (std::memcmp(head.magic, expected.magic, sizeof head.magic) != 0 || !(head.key == key) ||
      head.size != file->size() - sizeof head)
    return std::nullopt;
  Expected<std::string> bytes = file->read(sizeof head, head.size);
  if (!bytes.ok() || !(hlo::content_id(*bytes) == head.content)) return std::nullopt;
  return *std::move(bytes);
}

void DiskCache::keep(const hlo::ContentId& key, const std::string& bytes) const {
  if (!on()) return;
  static std::atomic<uint32_t> count{0};
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  const std::string target = path(key);
  const std::string half = target + "." + std::to_string(getpid()) + "." + std::to_string(count++);
  Head head;
  head.key = key;
  head.content = hlo::content_id(bytes);
  head.size = bytes.size();
  bool whole;
  {
    std::ofstream out(half, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&head), sizeof head);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    whole = !out.fail();
  }
  if (whole) fs::rename(half, target, ignored);
  if (!whole || ignored) fs::remove(half, ignored);
}

}  // namespace collet::runtime
