// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/tune_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "conformance/corpus/judge.h"
#include "hlo/base/median.h"
#include "sdk/tool/support/terminal.h"

namespace collet::tool {
namespace {

using Clock = std::chrono::steady_clock;
using hlo::Literal;

/// A schedule that is to be measured.
struct Candidate {
  std::string key, base, schedule;
};

class Search {
 public:
  Search(const TunedProgram& program, const std::vector<Literal>& inputs, const SearchOptions& options,
         Journal& journal, TunedFile& tuned, const SearchProgress& progress)
      : program_(program),
        inputs_(inputs),
        options_(options),
        journal_(journal),
        tuned_(tuned),
        progress_(progress),
        start_(Clock::now()),
        random_(options.seed) {}

  Expected<SearchResult> run() {
    COLLET_TRY(find_expected());
    chosen_ = tuned_.schedules();
    while (!is_over()) {
      COLLET_ASSIGN(const bool better, pass());
      if (better) continue;
      result_.is_exhausted = !is_over();
      break;
    }
    COLLET_TRY(check_whole());
    return std::move(result_);
  }

 private:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool is_over() const { return seconds() >= options_.seconds; }
  void tell(const std::string& note) { progress_(std::min(seconds() / options_.seconds, 1.0), note); }

  /// Computes the results of the program without schedules, with which all others must agree.
  Status find_expected() {
    tell("the program without schedules");
    ScheduleList list;
    COLLET_ASSIGN(std::unique_ptr<Variant> rules, Variant::compile(program_, {}, &list));
    COLLET_TRY(rules->upload(inputs_));
    COLLET_ASSIGN(const std::vector<Literal> by_rules, rules->outputs());
    rules.reset();
    KeyedSchedules none;
    for (const ListedKernel& kernel : list.kernels) none[kernel.key] = "";
    COLLET_ASSIGN(const std::unique_ptr<Variant> plain, Variant::compile(program_, none));
    COLLET_TRY(plain->upload(inputs_));
    COLLET_ASSIGN(expected_, plain->outputs());
    const conformance::Agreement agreement = conformance::agrees_with_index(expected_, by_rules);
    if (agreement.wrong.empty()) return ok_status();
    return internal_error("'" + program_.file +
                          "': the backend's own schedules differ from no schedules: " + agreement.wrong);
  }

  /// Compiles with the chosen schedules and others for some kernels.
  Expected<std::unique_ptr<Variant>> variant(const std::vector<Candidate>& candidates, ScheduleList* list = nullptr) {
    KeyedSchedules all = chosen_;
    for (const Candidate& c : candidates) all[c.key] = c.schedule;
    COLLET_ASSIGN(std::unique_ptr<Variant> out, Variant::compile(program_, all, list));
    COLLET_TRY(out->upload(inputs_));
    return out;
  }

  /// Measures all schedules near the chosen ones, and chooses those that are faster. Returns whether there are any.
  Expected<bool> pass() {
    ScheduleList list;
    COLLET_ASSIGN(base_, variant({}, &list));
    names_ = keys_by_name(list);
    COLLET_TRY(find_shares());
    std::vector<std::vector<Candidate>> queues;
    for (const ListedKernel& kernel : list.kernels) {
      if (auto queue = candidates_of(kernel); !queue.empty()) queues.push_back(std::move(queue));
    }
    COLLET_TRY(measure_queues(std::move(queues)));
    return choose_best(list);
  }

  /// Finds how much of the time each kernel takes. Without records of the device, all are taken alike.
  Status find_shares() {
    KernelTimes times;
    COLLET_TRY(base_->measure(1, times));
    times.clear();
    COLLET_TRY(base_->measure(5, times));
    const auto keys = times_by_key(times, names_);
    has_records_ = !keys.empty();
    double total = 0;  // with what has no schedules
    for (const auto& [name, values] : times) total += name.empty() ? 0 : median(values);
    share_.clear();
    for (const auto& [key, name] : first_of(names_)) {
      const auto found = keys.find(key);
      share_[key] = !has_records_ ? 1 : found == keys.end() ? 0 : median(found->second) / total;
    }
    return ok_status();
  }

  static std::map<std::string, std::string> first_of(const std::map<std::string, std::string>& names) {
    std::map<std::string, std::string> out;
    for (const auto& [name, key] : names) out.try_emplace(key, name);
    return out;
  }

  /// Returns the schedules near that of a kernel which are not measured yet, in an order that depends on the seed.
  std::vector<Candidate> candidates_of(const ListedKernel& kernel) {
    std::vector<Candidate> out;
    if (share_[kernel.key] < options_.least_share) return out;
    for (const std::string& neighbour : kernel.neighbours) {
      const Measured known = journal_.find(kernel.key, kernel.schedule, neighbour);
      if (known.ratio == 0 && !known.wrong && known.begun < kMostBegun)
        out.push_back({kernel.key, kernel.schedule, neighbour});
      if (known.begun >= kMostBegun && crashed_.insert(kernel.key + neighbour).second) ++result_.crashed;
    }
    std::shuffle(out.begin(), out.end(), random_);
    return out;
  }

  Status measure_queues(std::vector<std::vector<Candidate>> queues) {
    size_t left = 0;
    for (const auto& queue : queues) left += queue.size();
    while (left > 0 && !is_over()) {
      std::vector<Candidate> round;
      for (auto& queue : queues) {
        if (queue.empty()) continue;
        const Candidate& next = queue.back();
        // What may have ended the process before is measured alone, and so is all if only whole runs are timed.
        const bool alone = !has_records_ || journal_.find(next.key, next.base, next.schedule).begun > 0;
        if (alone && !round.empty()) continue;
        round.push_back(next);
        queue.pop_back();
        if (alone) break;
      }
      left -= round.size();
      tell(fmt::format("{} schedules measured, {} left near the best", result_.measured, left));
      COLLET_TRY(measure(round));
    }
    return ok_status();
  }

  /// Measures candidates for different kernels, all in one program. If that does not work, each by itself.
  Status measure(const std::vector<Candidate>& round) {
    for (const Candidate& c : round) COLLET_TRY(journal_.begin(c.key, c.base, c.schedule));
    const auto made = variant(round);
    bool good = made.ok();
    if (good) {
      COLLET_ASSIGN(const std::vector<Literal> outputs, (*made)->outputs());
      good = conformance::agrees_with_index(expected_, outputs).wrong.empty();
    }
    if (!good && round.size() > 1) {
      for (const Candidate& c : round) COLLET_TRY(measure({c}));
      return ok_status();
    }
    if (!good) {
      ++(made.ok() ? result_.wrong : result_.refused);
      return journal_.end(round[0].key, round[0].base, round[0].schedule, 0, true);
    }
    COLLET_ASSIGN(const Comparison times, compare(*base_, **made, names_, options_.measure_seconds));
    for (const Candidate& c : round) {
      ++result_.measured;
      COLLET_TRY(journal_.end(c.key, c.base, c.schedule, ratio_of(times, c.key), false));
    }
    return ok_status();
  }

  double ratio_of(const Comparison& times, const std::string& key) const {
    if (!has_records_) return times.base_ns / times.other_ns;
    const auto found = times.keys.find(key);
    return found == times.keys.end() || found->second.second == 0 ? 1 : found->second.first / found->second.second;
  }

  /// Measures the best few schedules of each kernel again, longer, and chooses the first that is faster still.
  Expected<bool> choose_best(const ScheduleList& list) {
    constexpr size_t kTried = 3;
    constexpr double kLonger = 5;
    bool any = false;
    for (const ListedKernel& kernel : list.kernels) {
      std::vector<std::pair<double, std::string>> best;
      for (const std::string& neighbour : kernel.neighbours) {
        const Measured known = journal_.find(kernel.key, kernel.schedule, neighbour);
        // One that has ended the process when it was measured again is not tried for ever.
        if (known.ratio >= 1 + options_.least_gain && known.begun < kMostBegun)
          best.emplace_back(-known.ratio, neighbour);
      }
      std::sort(best.begin(), best.end());
      if (best.size() > kTried) best.resize(kTried);
      for (const auto& [ratio, schedule] : best) {
        tell(fmt::format("measuring what is {:.2f} times as fast again", -ratio));
        COLLET_TRY(journal_.begin(kernel.key, kernel.schedule, schedule));
        COLLET_ASSIGN(const auto made, variant({{kernel.key, kernel.schedule, schedule}}));
        COLLET_ASSIGN(const Comparison times, compare(*base_, *made, names_, kLonger * options_.measure_seconds));
        const double again = ratio_of(times, kernel.key);
        COLLET_TRY(journal_.end(kernel.key, kernel.schedule, schedule, again, false));
        if (again < 1 + options_.least_gain) continue;
        chosen_[kernel.key] = schedule;
        tuned_.set(kernel.key, schedule, program_.file + " " + kernel.names[0]);
        any = true;
        break;
      }
    }
    return any;
  }

  /// Measures the program with all that was found, and drops what is not faster there.
  Status check_whole() {
    constexpr double kLonger = 10;
    tell("measuring the whole program");
    for (int round = 0; round < 2; ++round) {
      COLLET_ASSIGN(const auto rules, Variant::compile(program_, {}));
      COLLET_TRY(rules->upload(inputs_));
      COLLET_ASSIGN(const auto found, variant({}));
      COLLET_ASSIGN(const std::vector<Literal> outputs, found->outputs());
      const conformance::Agreement agreement = conformance::agrees_with_index(expected_, outputs);
      if (!agreement.wrong.empty()) {
        for (const auto& [key, name] : first_of(names_)) tuned_.erase(key);
        return internal_error("the schedules are right one by one and wrong together: " + agreement.wrong);
      }
      COLLET_ASSIGN(const Comparison times, compare(*rules, *found, names_, kLonger * options_.measure_seconds));
      result_.before_ns = times.base_ns;
      result_.after_ns = times.other_ns;
      result_.kernels.clear();
      bool dropped = false;
      for (const auto& [key, name] : first_of(names_)) {
        const auto chosen = chosen_.find(key);
        if (chosen == chosen_.end()) continue;
        const double ratio = ratio_of(times, key);
        if (ratio < 1 + options_.least_gain / 2) {
          dropped = true;
          tuned_.erase(key);
          chosen_.erase(chosen);
          continue;
        }
        const auto pair = has_records_ ? times.keys.at(key) : std::pair{times.base_ns, times.other_ns};
        result_.kernels.push_back({key, name, chosen->second, pair.first, pair.second});
        tuned_.set(key, chosen->second,
                   fmt::format("{} {}: {:.2f} times as fast, {} before", program_.file, name, ratio,
                               human_seconds(pair.first * 1e-9)));
      }
      if (!dropped) break;
    }
    return ok_status();
  }

  static constexpr int kMostBegun =
      2;  ///< times that a schedule may have ended the process: the first may be another's fault

  const TunedProgram& program_;
  const std::vector<Literal>& inputs_;
  const SearchOptions& options_;
  Journal& journal_;
  TunedFile& tuned_;
  const SearchProgress& progress_;
  const Clock::time_point start_;
  std::mt19937_64 random_;
  std::vector<Literal> expected_;
  KeyedSchedules chosen_;
  std::unique_ptr<Variant> base_;
  std::map<std::string, std::string> names_;  ///< keys by the names of functions
  std::map<std::string, double> share_;       ///< of the time, by key
  std::set<std::string> crashed_;
  bool has_records_ = false;
  SearchResult result_;
};

}  // namespace

Expected<SearchResult> search_schedules(const TunedProgram& program, const std::vector<Literal>& inputs,
                                        const SearchOptions& options, Journal& journal, TunedFile& tuned,
                                        const SearchProgress& progress) {
  return Search(program, inputs, options, journal, tuned, progress).run();
}

}  // namespace collet::tool
