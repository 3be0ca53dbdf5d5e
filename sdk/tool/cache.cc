// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hlo/base/cache_folder.h"
#include "hlo/base/json.h"
#include "sdk/tool/support/files.h"
#include "sdk/tool/support/option_types.h"
#include "sdk/tool/support/terminal.h"
#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

constexpr uint64_t kMostMib = uint64_t{1} << 40;
constexpr std::array<const char*, 4> kKinds = {"entry", "partial", "stale", "foreign"};

struct Options {
  std::string folder, json;
  bool clean = false, trim = false;
  uint64_t limit_mib = 0;
};

const char* kind_of(const CacheFile& file) {
  return kKinds[static_cast<size_t>(file.kind)];
}

struct Sum {
  size_t files = 0;
  uint64_t bytes = 0;
};

Sum sum_of(const std::vector<CacheFile>& files, std::optional<CacheFile::Kind> kind = {}) {
  Sum sum;
  for (const CacheFile& file : files) {
    if (kind && file.kind != *kind) continue;
    ++sum.files;
    sum.bytes += file.bytes;
  }
  return sum;
}

std::string text_of(const Sum& sum, const char* what) {
  return fmt::format("{} {}, {}\n", sum.files, what, human(static_cast<double>(sum.bytes), "B"));
}

std::string as_json(const std::string& path, uint64_t limit, const std::vector<CacheFile>& files,
                    const std::vector<CacheFile>& removed) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("folder", path).field("limit_bytes", limit);
  json.field("bytes", sum_of(files, CacheFile::Kind::Entry).bytes);
  json.key("removed").begin_array();
  for (const CacheFile& file : removed)
    json.begin_object().field("name", file.name).field("kind", kind_of(file)).field("bytes", file.bytes).end_object();
  json.end_array().key("files").begin_array();
  for (const CacheFile& file : files)
    json.begin_object()
        .field("name", file.name)
        .field("kind", kind_of(file))
        .field("bytes", file.bytes)
        .field("used", static_cast<int64_t>(file.used.tv_sec))
        .end_object();
  json.end_array().end_object();
  return out + "\n";
}

std::string as_text(const Options& options, uint64_t limit, const std::vector<CacheFile>& files,
                    const std::vector<CacheFile>& removed) {
  std::string out = options.folder + "\n";
  if (options.clean || options.trim) out += text_of(sum_of(removed), "files removed");
  const Sum entries = sum_of(files, CacheFile::Kind::Entry);
  out += fmt::format("{} entries, {} of at most {}\n", entries.files, human(static_cast<double>(entries.bytes), "B"),
                     human(static_cast<double>(limit), "B"));
  const std::pair<CacheFile::Kind, const char*> others[] = {
      {CacheFile::Kind::Partial, "files that are being written"},
      {CacheFile::Kind::Stale, "files that ended processes left; --trim removes them"},
      {CacheFile::Kind::Foreign, "files that another user owns or may write; they are not used"}};
  for (const auto& [kind, what] : others)
    if (const Sum sum = sum_of(files, kind); sum.files > 0)
      out += fmt::format("{}, {}: {}\n", sum.files, human(static_cast<double>(sum.bytes), "B"), what);
  return out;
}

int cache(Options options) {
  if (options.folder.empty()) options.folder = CacheFolder::path_of_environment();
  if (options.folder.empty())
    return report(kUsage, "cache: COLLET_CACHE_DIR names no folder; name one by --folder\nSee: collet cache --help");
  const Expected<uint64_t> limit_of_all = CacheFolder::limit_of_environment();
  if (!options.trim && !limit_of_all.ok()) return report(limit_of_all.status());
  const uint64_t limit = options.trim ? options.limit_mib << 20 : *limit_of_all;
  const Expected<CacheFolder> folder = CacheFolder::open(options.folder, false);
  if (!folder.ok()) return report(folder.status());
  std::vector<CacheFile> removed;
  if (options.trim || options.clean) {
    Expected<std::vector<CacheFile>> done = folder->trim(limit);
    if (!done.ok()) return report(done.status());
    removed = *std::move(done);
  }
  Expected<std::vector<CacheFile>> files = folder->list();
  if (!files.ok()) return report(files.status());
  if (options.clean) {
    std::vector<CacheFile> kept;
    for (CacheFile& file : *files) {
      const bool remove = file.kind == CacheFile::Kind::Entry || file.kind == CacheFile::Kind::Stale;
      if (remove) {
        if (const Status status = folder->remove(file.name); !status.ok()) return report(status);
      }
      (remove ? removed : kept).push_back(std::move(file));
    }
    *files = std::move(kept);
  }
  if (!options.json.empty()) {
    const Status status = write_file(options.json, as_json(options.folder, limit, *files, removed));
    if (!status.ok()) return report(status);
  }
  if (options.json != "-") show("{}", as_text(options, limit, *files, removed));
  return kDone;
}

constexpr char kFooter[] = R"(The folder is COLLET_CACHE_DIR. Its entries are of this user alone, and together
have at most COLLET_CACHE_MIB (4096 unless told); the least recently used go
first.

Examples:
  collet cache
  collet cache --trim 512
  collet cache --clean
  collet cache --folder ~/.cache/collet --json -)";

}  // namespace

Action add_cache(CLI::App& verb) {
  auto options = std::make_shared<Options>();
  verb.add_option("--folder", options->folder, "The folder; COLLET_CACHE_DIR unless told")->type_name("DIR");
  auto* clean = verb.add_flag("--clean", options->clean, "Remove all entries, and what ended processes left");
  add_number_option(verb, "--trim", options->limit_mib,
                    "Remove the least recently used entries above so many MiB, and what ended processes left",
                    uint64_t{0}, kMostMib)
      ->type_name("MIB")
      ->excludes(clean);
  verb.add_option("--json", options->json, "Write what is shown as JSON to this file; - is stdout")->type_name("FILE");
  verb.footer(kFooter);
  return [options, &verb] {
    options->trim = verb.count("--trim") > 0;
    return cache(*options);
  };
}

}  // namespace collet::tool
