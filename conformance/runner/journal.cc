// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/journal.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "hlo/base/files.h"

namespace collet::conformance {
namespace {

constexpr uint64_t kMostBytes = uint64_t{4} << 30;  // of a journal

}  // namespace

Expected<Journal> Journal::open(const std::string& path, const std::string& head) {
  Journal journal;
  if (path.empty()) return journal;
  std::string text;
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    COLLET_ASSIGN(text, read_file(path, kMostBytes));
  }
  bool fresh = true;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) break;  // a last line without a line break was cut off
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    const bool is_head = fresh || find_field(decode_fields(line), "name").empty();
    if (is_head && line != head) {
      constexpr size_t kMostShown = 200;
      return invalid_argument(fmt::format("{} is of another run: it has '{}'", path, line.substr(0, kMostShown)));
    }
    // Journals of several shards may be concatenated.
    if (line != head) {
      Fields fields = decode_fields(line);
      std::string name(find_field(fields, "name"));
      journal.found_.insert_or_assign(std::move(name), std::move(fields));
    }
    fresh = false;
  }
  // Rewrites the file without an incomplete last line.
  journal.file_.reset(std::fopen(path.c_str(), "wb"));
  if (!journal.file_) return Status(Code::Unavailable, path + " cannot be written: " + std::strerror(errno));
  journal.path_ = path;
  journal.write(head);
  for (const auto& [name, fields] : journal.found_) journal.write(encode_fields(fields));
  COLLET_TRY(journal.failure_);
  return journal;
}

const Fields* Journal::find(const std::string& name) const {
  const auto found = found_.find(name);
  return found == found_.end() ? nullptr : &found->second;
}

void Journal::note(const std::string& name, const Fields& fields) {
  if (!file_) return;
  Fields line = {{"name", name}};
  line.insert(line.end(), fields.begin(), fields.end());
  write(encode_fields(line));
}

void Journal::write(const std::string& line) {
  if (std::fprintf(file_.get(), "%s\n", line.c_str()) >= 0 && std::fflush(file_.get()) == 0) return;
  if (failure_.ok()) failure_ = resource_exhausted(path_ + " cannot be written: " + std::strerror(errno));
}

}  // namespace collet::conformance
