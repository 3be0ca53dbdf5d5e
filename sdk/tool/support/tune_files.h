// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/base/status.h"

/// \file
/// The files of `collet tune`: the list of schedules that a backend gives, the tuned schedules, and the journal of what was
/// measured. Schedules are texts that only the backend reads.

namespace collet::tool {

/// A kernel or a matrix product of a program.
struct ListedKernel {
  std::string key;
  std::vector<std::string> names;       ///< the functions of the program that have this key
  std::string schedule;                 ///< its present schedule
  std::vector<std::string> neighbours;  ///< schedules near it
};

/// The artifact schedules.txt of a backend, see codegen::CompileOptions::list_schedules.
struct ScheduleList {
  std::string target;  ///< the machine for which the schedules hold
  std::vector<ListedKernel> kernels;
};

/// Adds the kernels of an artifact to `list`. INVALID_ARGUMENT with the number of a line that is no line of such a list.
Status read_schedule_list(std::string_view text, ScheduleList& list);

/// A file of tuned schedules for several machines. Lines that belong to another machine than the present one stay as they are.
class TunedFile {
 public:
  /// Reads a file; none is there yet: it is empty.
  static Expected<TunedFile> read(const std::string& path, const std::string& target);

  /// The schedules of the present machine by key.
  std::map<std::string, std::string> schedules() const;
  /// Sets a schedule; `note` is written behind it as a comment.
  void set(const std::string& key, const std::string& schedule, const std::string& note);
  void erase(const std::string& key) { lines_.erase(key); }
  /// Writes the file, completely or not at all.
  Status write(const std::string& path) const;

 private:
  struct Line {
    std::string schedule, note;
  };
  std::string target_;
  std::string others_;  ///< the sections of other machines
  std::map<std::string, Line> lines_;
};

/// What is known of a schedule of a kernel.
struct Measured {
  int begun = 0;     ///< times that it was begun without an end: the process may have ended in it
  double ratio = 0;  ///< time of the schedule that it was compared with, divided by its own; 0: not measured
  bool wrong = false;
};

/// The journal of measurements: a text file to which lines are appended, so that what was measured survives the end of the process at
/// any time.
class Journal {
 public:
  /// Opens the journal, and reads what it has of `target`. A damaged last line is ignored.
  static Expected<Journal> open(const std::string& path, const std::string& target);
  Journal(Journal&& other) noexcept;
  Journal& operator=(Journal&&) = delete;
  ~Journal();

  /// Returns what is known of a schedule compared with the schedule `base`.
  Measured find(const std::string& key, const std::string& base, const std::string& schedule) const;
  /// Writes that a schedule will be tried, before anything can go wrong.
  Status begin(const std::string& key, const std::string& base, const std::string& schedule);
  Status end(const std::string& key, const std::string& base, const std::string& schedule, double ratio, bool wrong);

 private:
  Journal(std::string path, int file, std::string target);
  void take(std::string_view line, bool& is_ours);
  Status append(const std::string& line);

  std::string path_;
  int file_ = -1;
  std::string target_;
  std::map<std::string, Measured> measured_;  ///< by key, base and schedule, separated by tabs
};

}  // namespace collet::tool
