// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/tune_measure.h"

#include <collet/collet.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <utility>

#include "hlo/base/files.h"
#include "hlo/base/median.h"
#include "hlo/base/temporary_folder.h"
#include "sdk/tool/support/files.h"

namespace collet::tool {
namespace {

using conformance::BufferHandle;
using conformance::Session;
using hlo::Literal;

constexpr uint64_t kMostBytes = uint64_t{256} << 20;

// Hears what a device recorded, and adds it up for each run and name.
class Records {
 public:
  Records() { collet_trace(listen, this); }
  ~Records() { stop(); }
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;

  // Ends the recording: the records of devices come with this call.
  void stop() { collet_trace(nullptr, nullptr); }
  const std::map<uint64_t, std::map<std::string, double>>& runs() const { return runs_; }

 private:
  static void listen(void* user, const collet_span* span) {
    if (span->kind != COLLET_SPAN_DEVICE) return;
    auto* self = static_cast<Records*>(user);
    const std::lock_guard lock(self->mutex_);
    self->runs_[span->run_id][span->name] += static_cast<double>(span->duration_ns);
  }

  std::mutex mutex_;
  std::map<uint64_t, std::map<std::string, double>> runs_;
};

Status read_lists(const std::string& folder, ScheduleList& list) {
  constexpr std::string_view kName = "schedules.txt";
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(kName)) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    COLLET_ASSIGN(const std::string text, read_file(file, kMostBytes));
    COLLET_TRY(read_schedule_list(text, list));
  }
  return ok_status();
}

}  // namespace

Expected<std::unique_ptr<Variant>> Variant::compile(const TunedProgram& program, const KeyedSchedules& schedules,
                                                    ScheduleList* list) {
  conformance::BackendChoice backend = program.backend;
  std::string text;
  for (const auto& [key, actions] : schedules) text += key + ": " + actions + "\n";
  backend.options.emplace_back("schedules", text);
  if (list) backend.options.emplace_back("list_schedules", "1");
  auto out = std::make_unique<Variant>();
  out->alive_ = program.alive;
  out->alive_();
  COLLET_ASSIGN(out->session_, Session::open(backend));
  conformance::ProgramOptions options = program.options;
  const auto folder = list ? std::make_unique<TemporaryFolder>() : nullptr;
  if (folder) options.dump_to = folder->path();
  COLLET_ASSIGN(out->program_, out->session_->compile(program.bytes, options));
  if (list) {
    COLLET_TRY(read_lists(folder->path(), *list));
    if (list->kernels.empty())
      return unimplemented("backend '" + backend.name + "' has no kernels with schedules in '" + program.file + "'");
  }
  return out;
}

Status Variant::upload(const std::vector<Literal>& inputs) {
  COLLET_ASSIGN(arguments_, program_.upload(inputs));
  return ok_status();
}

Expected<std::vector<Literal>> Variant::outputs() const {
  alive_();
  COLLET_ASSIGN(const std::vector<BufferHandle> results, program_.execute(arguments_));
  std::vector<Literal> out;
  for (const BufferHandle& result : results) {
    COLLET_ASSIGN(Literal value, conformance::fetch(result.get()));
    out.push_back(std::move(value));
  }
  return out;
}

Status Variant::measure(int runs, KernelTimes& times) const {
  Records records;
  alive_();
  auto said = std::chrono::steady_clock::now();
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (start - said > std::chrono::seconds(1)) {
      alive_();
      said = start;
    }
    COLLET_ASSIGN(const std::vector<BufferHandle> results, program_.execute(arguments_));
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    times[""].push_back(took.count());
  }
  records.stop();
  for (const auto& [run, names] : records.runs()) {
    for (const auto& [name, ns] : names) times[name].push_back(ns);
  }
  return ok_status();
}

std::map<std::string, std::string> keys_by_name(const ScheduleList& list) {
  std::map<std::string, std::string> out;
  for (const ListedKernel& kernel : list.kernels) {
    for (const std::string& name : kernel.names) out[name] = kernel.key;
  }
  return out;
}

std::map<std::string, std::vector<double>> times_by_key(const KernelTimes& times,
                                                        const std::map<std::string, std::string>& keys) {
  std::map<std::string, std::vector<double>> out;
  for (const auto& [name, values] : times) {
    std::vector<std::string> counted;
    for (size_t at = 0; at < name.size();) {
      const size_t end = std::min(name.find('+', at), name.size());
      const auto found = keys.find(name.substr(at, end - at));
      at = end + 1;
      if (found == keys.end() || std::find(counted.begin(), counted.end(), found->second) != counted.end()) continue;
      counted.push_back(found->second);
      std::vector<double>& sums = out[found->second];
      sums.resize(std::max(sums.size(), values.size()), 0);
      for (size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
    }
  }
  return out;
}

Expected<Comparison> compare(const Variant& base, const Variant& other, const std::map<std::string, std::string>& keys,
                             double seconds) {
  constexpr int kLeast = 5;
  constexpr double kTurnNs = 2e6;  // a turn is long beside the time until the threads of the other variant sleep
  KernelTimes times[2];
  COLLET_TRY(base.measure(1, times[0]));
  COLLET_TRY(other.measure(1, times[1]));
  const double once = std::max(times[0][""][0], times[1][""][0]);
  const int runs = std::clamp(static_cast<int>(kTurnNs / once), 1, 100);
  const auto start = std::chrono::steady_clock::now();
  times[0].clear();
  times[1].clear();
  for (int turn = 0; turn < kLeast || std::chrono::steady_clock::now() - start < std::chrono::duration<double>(seconds);
       ++turn) {
    const bool swapped = turn % 2 != 0;
    COLLET_TRY((swapped ? other : base).measure(runs, times[swapped ? 1 : 0]));
    COLLET_TRY((swapped ? base : other).measure(runs, times[swapped ? 0 : 1]));
  }
  Comparison out{median(times[0][""]), median(times[1][""]), {}};
  const auto of_base = times_by_key(times[0], keys);
  const auto of_other = times_by_key(times[1], keys);
  for (const auto& [key, values] : of_base) {
    const auto found = of_other.find(key);
    if (found != of_other.end()) out.keys[key] = {median(values), median(found->second)};
  }
  return out;
}

}  // namespace collet::tool
