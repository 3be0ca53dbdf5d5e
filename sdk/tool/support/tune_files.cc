// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/tune_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <utility>

#include "hlo/base/files.h"
#include "sdk/tool/support/files.h"

namespace collet::tool {
namespace {

constexpr uint64_t kMostBytes = uint64_t{256} << 20;

// Calls `each` with each line of a text and its number.
template <typename Each>
void for_each_line(std::string_view text, const Each& each) {
  int number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    each(text.substr(at, end - at), ++number, end < text.size());
    at = end + 1;
  }
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

Expected<std::string> read_if_there(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::string();
  return read_file(path, kMostBytes);
}

}  // namespace

Status read_schedule_list(std::string_view text, ScheduleList& list) {
  ListedKernel* kernel = nullptr;
  Status status = ok_status();
  for_each_line(text, [&](std::string_view line, int number, bool) {
    if (!status.ok()) return;
    const bool is_schedule = line.starts_with("= ") || line == "=";
    if (is_schedule || line.starts_with("+ ")) {
      if (!kernel)
        return void(status = invalid_argument(fmt::format("schedules.txt: line {} is of no kernel", number)));
      const std::string actions(line.substr(std::min<size_t>(2, line.size())));
      if (is_schedule) {
        kernel->schedule = actions;
      } else {
        kernel->neighbours.push_back(actions);
      }
      return;
    }
    const size_t space = line.find(' ');
    if (space == line.npos || space == 0 || space + 1 == line.size())
      return void(status = invalid_argument(fmt::format("schedules.txt: line {} is no name and key", number)));
    const std::string name(line.substr(0, space));
    const std::string key(line.substr(space + 1));
    if (name == "target") return void(list.target = key);
    const auto same = [&](const ListedKernel& k) { return k.key == key; };
    auto found = std::find_if(list.kernels.begin(), list.kernels.end(), same);
    if (found == list.kernels.end()) found = list.kernels.insert(found, {key, {}, {}, {}});
    found->names.push_back(name);
    kernel = &*found;
  });
  return status;
}

Expected<TunedFile> TunedFile::read(const std::string& path, const std::string& target) {
  COLLET_ASSIGN(const std::string text, read_if_there(path));
  TunedFile out;
  out.target_ = target;
  bool is_ours = false;
  bool any = false;
  for_each_line(text, [&](std::string_view line, int, bool) {
    const std::string_view words = trimmed(line);
    if (words.starts_with("target ")) {
      any = true;
      is_ours = trimmed(words.substr(7)) == target;
    }
    if (!any) return;  // the head of the file
    if (!is_ours) return void(out.others_ += std::string(line) + "\n");
    const size_t hash = std::min(line.find('#'), line.size());
    const std::string_view entry = line.substr(0, hash);
    const size_t colon = entry.find(':');
    if (colon == entry.npos) return;
    const std::string note(trimmed(line.substr(std::min(hash + 1, line.size()))));
    out.lines_[std::string(trimmed(entry.substr(0, colon)))] = {std::string(trimmed(entry.substr(colon + 1))), note};
  });
  return out;
}

std::map<std::string, std::string> TunedFile::schedules() const {
  std::map<std::string, std::string> out;
  for (const auto& [key, line] : lines_) out[key] = line.schedule;
  return out;
}

void TunedFile::set(const std::string& key, const std::string& schedule, const std::string& note) {
  std::string plain = note;
  std::replace_if(plain.begin(), plain.end(), [](unsigned char c) { return c < ' ' || c > '~' || c == '#'; }, '?');
  lines_[key] = {schedule, plain};
}

Status TunedFile::write(const std::string& path) const {
  std::string text =
      "# Schedules that `collet tune` measured. A backend takes them with its option `tuning`.\n" + others_;
  if (!lines_.empty()) text += "target " + target_ + "\n";
  for (const auto& [key, line] : lines_)
    text += key + ": " + line.schedule + (line.note.empty() ? "" : "  # " + line.note) + "\n";
  return tool::write_file(path, text);
}

Journal::Journal(std::string path, int file, std::string target)
    : path_(std::move(path)), file_(file), target_(std::move(target)) {}

Journal::Journal(Journal&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      target_(std::move(other.target_)),
      measured_(std::move(other.measured_)) {}

Journal::~Journal() {
  if (file_ >= 0) ::close(file_);
}

Expected<Journal> Journal::open(const std::string& path, const std::string& target) {
  COLLET_ASSIGN(const std::string text, read_if_there(path));
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return system_error("'" + path + "'", errno);
  Journal out(path, file, target);
  bool is_ours = false;
  bool is_damaged = false;
  for_each_line(text, [&](std::string_view line, int, bool has_end) {
    is_damaged = !has_end;
    if (has_end) out.take(line, is_ours);
  });
  if (is_damaged) COLLET_TRY(out.append(""));
  COLLET_TRY(out.append("target " + target));
  return out;
}

// Lines are "begin KEY BASE SCHEDULE" and "end KEY BASE SCHEDULE RATIO", separated by tabs; RATIO may be "wrong".
void Journal::take(std::string_view line, bool& is_ours) {
  if (line.starts_with("target ")) is_ours = line.substr(7) == target_;
  if (!is_ours) return;
  if (line.starts_with("begin\t")) return void(++measured_[std::string(line.substr(6))].begun);
  const size_t tab = line.rfind('\t');
  if (!line.starts_with("end\t") || tab < 4) return;
  Measured& m = measured_[std::string(line.substr(4, tab - 4))];
  const std::string_view ratio = line.substr(tab + 1);
  m.begun = 0;
  m.wrong = ratio == "wrong";
  if (!m.wrong) std::from_chars(ratio.data(), ratio.data() + ratio.size(), m.ratio);
}

Measured Journal::find(const std::string& key, const std::string& base, const std::string& schedule) const {
  const auto found = measured_.find(key + "\t" + base + "\t" + schedule);
  return found == measured_.end() ? Measured{} : found->second;
}

Status Journal::append(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(file_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return system_error("'" + path_ + "'", errno);
  return ok_status();
}

Status Journal::begin(const std::string& key, const std::string& base, const std::string& schedule) {
  const std::string what = key + "\t" + base + "\t" + schedule;
  ++measured_[what].begun;
  return append("begin\t" + what);
}

Status Journal::end(const std::string& key, const std::string& base, const std::string& schedule, double ratio,
                    bool wrong) {
  const std::string what = key + "\t" + base + "\t" + schedule;
  measured_[what] = {0, ratio, wrong};
  return append("end\t" + what + "\t" + (wrong ? "wrong" : fmt::format("{:.4f}", ratio)));
}

}  // namespace collet::tool
