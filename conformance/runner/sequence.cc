// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "conformance/runner/case_file.h"
#include "conformance/runner/workers.h"
#include "hlo/base/files.h"
#include "hlo/base/temporary_folder.h"

namespace collet::conformance {
namespace {

using Clock = std::chrono::steady_clock;
using Runs = std::vector<size_t>;

// Leaves out parts of a sequence, halves first and single runs last, as long as the failure stays (Zeller's ddmin).
Runs shortened(Runs runs, const FailsAfter& fails, Clock::time_point end) {
  size_t parts = 2;
  while (runs.size() > 1 && Clock::now() < end) {
    const size_t size = (runs.size() + parts - 1) / parts;
    bool smaller = false;
    for (size_t from = 0; from < runs.size() && Clock::now() < end; from += size) {
      Runs rest = runs;
      const auto first = rest.begin() + static_cast<std::ptrdiff_t>(from);
      rest.erase(first, first + static_cast<std::ptrdiff_t>(std::min(size, runs.size() - from)));
      if (rest.empty() || !fails(rest).value_or(false)) continue;
      runs = std::move(rest);
      smaller = true;
      break;
    }
    if (smaller) {
      parts = std::max<size_t>(parts - 1, 2);
    } else if (size == 1) {
      break;
    } else {
      parts = std::min(parts * 2, runs.size());
    }
  }
  return runs;
}

}  // namespace

std::optional<Dependence> find_dependence(size_t count, const FailsAfter& fails, double seconds) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const std::optional<bool> alone = fails({});
  if (!alone) return std::nullopt;
  Dependence out{.fails_alone = *alone};
  if (*alone || count == 0) return out;
  out.searched = true;
  // The last runs before it are the most likely ones: they are tried first, and more of them each time.
  for (size_t last = 1; Clock::now() < end; last = std::min(last * 2, count)) {
    Runs runs;
    for (size_t i = count - std::min(last, count); i < count; ++i) runs.push_back(i);
    if (fails(runs).value_or(false)) {
      out.before = shortened(std::move(runs), fails, end);
      break;
    }
    if (last >= count) break;
  }
  return out;
}

std::string dependence_text(const Dependence& found, const std::function<std::string(size_t)>& name_of) {
  if (found.fails_alone) return {};
  std::string text = "; wrong only after other ops ran: alone in a new process it is right";
  if (!found.searched) return text;
  if (found.before.empty()) return text + ", and no sequence of those before it was found after which it is wrong";
  text += ", and wrong after ";
  for (size_t i = 0; i < found.before.size(); ++i)
    text += fmt::format("{}{}",
                        i == 0                         ? ""
                        : i + 1 == found.before.size() ? " and then "
                                                       : ", ",
                        name_of(found.before[i]));
  return text;
}

std::optional<bool> last_fails(const std::vector<std::string>& arguments, std::vector<Case> cases, double seconds) {
  const TemporaryFolder folder;
  if (folder.path().empty() || cases.empty()) return std::nullopt;
  // A task is found by its name, and drawn inputs follow from it: only a name that occurs again is changed.
  std::set<std::string> names;
  for (size_t i = cases.size(); i-- > 0;)
    if (!names.insert(cases[i].name).second) cases[i].name += fmt::format("/{}", i);
  const std::string file = folder.path() + "/cases";
  if (!write_file(file, case_file_text(cases)).ok()) return std::nullopt;
  PoolOptions pool;
  pool.arguments = arguments;
  pool.arguments.insert(pool.arguments.end(), {"--case-file", file});
  pool.timeout = [&](size_t) { return seconds; };
  TaskResult last;
  const Status ran = run_tasks(
      cases.size(), pool, [&](size_t i) { return cases[i].name; },
      [&](size_t i, const TaskResult& task) {
        if (i + 1 == cases.size()) last = task;
      });
  if (!ran.ok() || last.kind != TaskResult::Kind::Replied || !find_field(last.reply, "error").empty())
    return std::nullopt;
  return find_field(last.reply, "status") == "fail";
}

}  // namespace collet::conformance
