// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/cpu/open_options.h"

#include <collet/codegen/compile.h>
#include <collet/codegen/target.h>

#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <thread>

namespace collet::cpu {

using codegen::Status;

namespace {

constexpr int kMostThreads = 256;

/// Returns the number of processors that this process may use. hardware_concurrency() returns that of the machine, and
/// threads that share a processor wait for each other.
int usable_processors() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
  return static_cast<int>(std::thread::hardware_concurrency());
}

using ReadValue = Status (*)(const std::string& value, OpenOptions& out);

Status read_features(const std::string& value, OpenOptions& out) {
  out.features = value;
  return codegen::check_features(value);
}

Status read_threads(const std::string& value, OpenOptions& out) {
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, out.threads);
  const bool good = error == std::errc() && stop == end && out.threads >= 1 && out.threads <= kMostThreads;
  if (good) return {};
  return {COLLET_INVALID_ARGUMENT, "'" + value + "' is no number of threads from 1 to " + std::to_string(kMostThreads)};
}

Status read_fuse(const std::string& value, OpenOptions& out) {
  out.fuse = value == "1";
  return value == "0" || value == "1" ? Status{} : Status{COLLET_INVALID_ARGUMENT, "'" + value + "' is not 0 or 1"};
}

Status read_cpu(const std::string& value, OpenOptions& out) {
  codegen::Target target;
  // An unknown name is an invalid argument, as for every option.
  if (const Status s = codegen::named_target(value, target); !s.ok()) return {COLLET_INVALID_ARGUMENT, s.message()};
  out.cpu = value;
  return codegen::check_runs_here(target);
}

Status read_launch(const std::string& value, OpenOptions& out) {
  out.as_function = value == "function";
  return value == "function" || value == "steps"
             ? Status{}
             : Status{COLLET_INVALID_ARGUMENT, "'" + value + "' is not steps or function"};
}

Status read_verify(const std::string& value, OpenOptions& out) {
  out.verify = value == "1";
  return value == "0" || value == "1" ? Status{} : Status{COLLET_INVALID_ARGUMENT, "'" + value + "' is not 0 or 1"};
}

Status read_subnormals(const std::string& value, OpenOptions& out) {
  out.subnormals = value == "flush" ? Subnormals::kFlush : Subnormals::kKeep;
  return value == "flush" || value == "keep" ? Status{}
                                             : Status{COLLET_INVALID_ARGUMENT, "'" + value + "' is not keep or flush"};
}

Status read_schedules(const std::string& value, OpenOptions& out) {
  out.schedules = value;
  return {};
}

Status read_list_schedules(const std::string& value, OpenOptions& out) {
  out.list_schedules = value == "1";
  return value == "0" || value == "1" ? Status{} : Status{COLLET_INVALID_ARGUMENT, "'" + value + "' is not 0 or 1"};
}

Status read_tuning(const std::string& value, OpenOptions& out) {
  return codegen::read_tuning_file(value, out.tuning);
}

Status read_name(const std::string& value, OpenOptions& out) {
  out.ahead.name = value;
  return {};
}

Status read_weights(const std::string& value, OpenOptions& out) {
  out.ahead.embed = value == "embed";
  return value == "embed" || value == "pass" ? Status{}
                                             : Status{COLLET_INVALID_ARGUMENT, "'" + value + "' is not embed or pass"};
}

/// Reads option `rule.NAME`, which switches a rule of schedules on or off.
Status read_rule(const std::string& name, const std::string& value, OpenOptions& out) {
  std::string known;
  bool exists = false;
  for (uint32_t i = 0; const char* const rule = codegen::schedule_rule_name(i); ++i) {
    known += (known.empty() ? "" : ", ") + std::string(rule);
    exists = exists || name == rule;
  }
  if (!exists) return {COLLET_INVALID_ARGUMENT, "there is no rule '" + name + "'; there are " + known};
  if (value != "0" && value != "1") return {COLLET_INVALID_ARGUMENT, "'" + value + "' is not 0 or 1"};
  std::erase(out.rules_off, name);
  if (value == "0") out.rules_off.insert(std::upper_bound(out.rules_off.begin(), out.rules_off.end(), name), name);
  return {};
}

/// Reads option `tune.NAME`, a number of tuning.def.
Status read_tuned_number(const std::string& name, const std::string& value, OpenOptions& out) {
  int64_t number = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || stop != end) return {COLLET_INVALID_ARGUMENT, "'" + value + "' is no number"};
  const Status set = codegen::set_tuning(out.numbers, name, number);
  return set.ok() ? set : Status{COLLET_INVALID_ARGUMENT, set.message()};
}

/// True for the names of targets for which code can be compiled ahead of time.
bool is_architecture(const std::string& target) {
  const std::string name = target.substr(0, target.find(':'));
  return name == "x86_64" || name == "aarch64" || name == "riscv64" || name == "c";
}

/// An option of open, and the environment variable that sets it if the option is not given.
struct KnownOption {
  const char* key;
  const char* variable;
  ReadValue read;
};
constexpr KnownOption kOptions[] = {
    {"features", "COLLET_CPU_FEATURES", read_features},
    {"threads", "COLLET_CPU_THREADS", read_threads},
    {"fuse", "COLLET_CPU_FUSE", read_fuse},
    {"cpu", "COLLET_CPU_NAME", read_cpu},
    {"launch", "COLLET_CPU_LAUNCH", read_launch},
    {"verify", "COLLET_CPU_VERIFY", read_verify},
    {"subnormals", "COLLET_CPU_SUBNORMALS", read_subnormals},
    {"schedules", "COLLET_CPU_SCHEDULES", read_schedules},
    {"list_schedules", "COLLET_CPU_LIST_SCHEDULES", read_list_schedules},
    {"tuning", "COLLET_CPU_TUNING", read_tuning},
    {"name", "COLLET_CPU_ENTRY_NAME", read_name},
    {"weights", "COLLET_CPU_WEIGHTS", read_weights},
};

}  // namespace

OpenOptions::OpenOptions() : threads(std::clamp(usable_processors(), 1, kMostThreads)) {}

Status read_options(const collet_open_options* given, OpenOptions& out) {
  for (const KnownOption& option : kOptions) {
    const char* value = std::getenv(option.variable);
    if (!value || !*value) continue;
    const Status s = option.read(value, out);
    if (!s.ok()) return {s.code(), std::string("cpu: ") + option.variable + ": " + s.message()};
  }
  if (!given) return {};
  if (given->target && std::strcmp(given->target, "host") != 0) {
    codegen::Target target;
    out.is_ahead = is_architecture(given->target);
    out.is_source = out.is_ahead && given->target[0] == 'c';
    const Status s = out.is_source  ? codegen::source_target(given->target, target)
                     : out.is_ahead ? codegen::cross_target(given->target, target)
                                    : codegen::named_target(given->target, target);
    if (!s.ok()) return {s.code(), "cpu: target: " + s.message() + "; \"host\" is this machine's own"};
    out.cpu = given->target;
    out.is_virtual = true;
    if (out.is_ahead) out.threads = 1;  // default, which an option may change
  }
  for (uint32_t i = 0; i < given->pairs; ++i) {
    const std::string key = given->keys[i];
    const bool is_rule = key.starts_with("rule.");
    if (is_rule || key.starts_with("tune.")) {
      const Status s = (is_rule ? read_rule : read_tuned_number)(key.substr(5), given->values[i], out);
      if (!s.ok()) return {s.code(), "cpu: option '" + key + "': " + s.message()};
      continue;
    }
    const auto* known = std::find_if(std::begin(kOptions), std::end(kOptions),
                                     [&](const KnownOption& option) { return key == option.key; });
    if (known == std::end(kOptions)) {
      return {COLLET_INVALID_ARGUMENT,
              "cpu: no option '" + key +
                  "'; there are features, threads, fuse, cpu, launch, verify, subnormals, schedules, "
                  "list_schedules, tuning, name, weights, rule.NAME and tune.NAME"};
    }
    const Status s = known->read(given->values[i], out);
    if (!s.ok()) return {s.code(), "cpu: option '" + key + "': " + s.message()};
  }
  if (!out.cpu.empty() && !out.features.empty())
    return {COLLET_INVALID_ARGUMENT,
            "cpu: features are changed of this machine's own processor alone, not of '" + out.cpu + "'"};
  return {};
}

}  // namespace collet::cpu
