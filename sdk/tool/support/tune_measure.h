// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "conformance/runner/session.h"
#include "hlo/ir/literal.h"
#include "sdk/tool/support/tune_files.h"

/// \file
/// Programs that are compiled with given schedules, and how long their kernels take.

namespace collet::tool {

/// A program that is tuned.
struct TunedProgram {
  std::string file;
  std::string bytes;
  conformance::BackendChoice backend;
  conformance::ProgramOptions options;
  /// Called before a compilation, and every second while runs are measured: the process is at work.
  std::function<void()> alive = [] {};
};

/// Schedules by key, as the backend's option `schedules` takes them.
using KeyedSchedules = std::map<std::string, std::string>;

/// Times of runs in ns, by the name of a kernel; "" for the whole run.
using KernelTimes = std::map<std::string, std::vector<double>>;

/// A program compiled with some schedules, with its arguments on the device.
class Variant {
 public:
  /// Unless `list` is null, it gets the schedules of the program; UNIMPLEMENTED if the backend gives none.
  static Expected<std::unique_ptr<Variant>> compile(const TunedProgram& program, const KeyedSchedules& schedules,
                                                    ScheduleList* list = nullptr);

  const conformance::Program& program() const { return program_; }
  /// Must be called before the program is run.
  Status upload(const std::vector<hlo::Literal>& inputs);
  Expected<std::vector<hlo::Literal>> outputs() const;
  /// Runs the program `runs` times, and adds the times of each run to `times`.
  Status measure(int runs, KernelTimes& times) const;

 private:
  std::unique_ptr<conformance::Session> session_;
  conformance::Program program_;
  std::vector<conformance::BufferHandle> arguments_;
  std::function<void()> alive_;
};

/// The median times of two variants, measured in turn: of the whole runs, and by key.
struct Comparison {
  double base_ns = 0, other_ns = 0;
  std::map<std::string, std::pair<double, double>> keys;
};

/// Returns the kernels of a list by the names of records: a record of several functions, "kernel3+kernel4", is of all of them.
std::map<std::string, std::string> keys_by_name(const ScheduleList& list);

/// Adds the times of the records to the times of the keys, run by run.
std::map<std::string, std::vector<double>> times_by_key(const KernelTimes& times,
                                                        const std::map<std::string, std::string>& keys);

/// Runs two variants in turn for about `seconds`, at least five times each.
Expected<Comparison> compare(const Variant& base, const Variant& other, const std::map<std::string, std::string>& keys,
                             double seconds);

}  // namespace collet::tool
