// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/journal.h"

#include <cerrno>
#include <cstring>
#include <fstream>

namespace collet::conformance {

Expected<Journal> Journal::open(const std::string& path, const std::string& head) {
  Journal journal;
  if (path.empty()) return journal;
  std::ifstream in(path, std::ios::binary);
  std::string line;
  bool fresh = true;
  while (std::getline(in, line)) {
    if (in.eof()) break;  // a last line without a line break was cut off
    const bool is_head = fresh || find_field(decode_fields(line), "name").empty();
    if (is_head && line != head) return invalid_argument(path + " is of another run: it has '" + line + "'");
    // Journals of several shards may be concatenated.
    if (line != head) {
      Fields fields = decode_fields(line);
      std::string name(find_field(fields, "name"));
      journal.found_.insert_or_assign(std::move(name), std::move(fields));
    }
    fresh = false;
  }
  in.close();
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
