// SPDX-License-Identifier: Apache-2.0
#include "conformance/bench/sweep.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>

#include "conformance/bench/measure.h"
#include "hlo/base/json.h"
#include "hlo/base/median.h"
#include "hlo/testing/inputs.h"

namespace collet::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kCallNs = 3000;        // time that a call may take whatever it does
constexpr int kMoreTimes = 4;           // how often a program with a finding is measured again
constexpr double kFreeBytes = 1 << 20;  // temporary memory that needs no reason
constexpr double kLeastMemory = 0.25;   // temporary memory by byte below which no jump counts

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Returns a line of /proc/self/status in bytes: "VmRSS:" is the memory in use, "VmHWM:" the most since clear_peak.
uint64_t process_bytes(const char* name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    uint64_t kib = 0;
    if (word == name && status >> kib) return kib << 10;
  }
  return 0;
}

void clear_peak() {
  std::ofstream("/proc/self/clear_refs") << 5;
}

// Makes matrices with a diagonal that dominates.
void make_definite(hlo::Literal& value) {
  const hlo::Shape& shape = value.shape();
  const int rank = shape.rank();
  if (rank < 2 || shape.dim(rank - 1) != shape.dim(rank - 2)) return;
  const int64_t n = shape.dim(rank - 1);
  for (int64_t at = 0; at < value.element_count(); at += n * n)
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        const double x = i == j ? static_cast<double>(n) : value.as_double(at + i * n + j) * 0.25;
        value.set_double(at + i * n + j, x);
        value.set_double(at + j * n + i, x);
      }
}

Expected<std::vector<hlo::Literal>> inputs_of(const SweepInputs& rule, const std::vector<hlo::Shape>& parameters) {
  COLLET_ASSIGN(std::vector<hlo::Literal> out, small_numbers(parameters));
  for (size_t i = 0; i < out.size(); ++i) {
    const bool is_int = hlo::is_integer(parameters[i].type());
    if (rule.modulo && is_int) {
      using Rule = hlo::testing::InputRule;
      const int bits = std::min(hlo::type_info(parameters[i].type()).bits - 1, 40);
      const Rule one = {.kind = Rule::Kind::Integer, .modulo = std::min(rule.modulo, int64_t{1} << bits)};
      out[i] = hlo::testing::input_by_rule(one, parameters[i], i);
    }
    if (rule.definite) make_definite(out[i]);
  }
  return out;
}

// What the process of a program reports to its parent.
struct Measured {
  uint32_t ran = 0, threads = 0;
  double ns = 0;
  uint64_t bytes = 0, temporary_bytes = 0;
  char error[480] = {};
};

Status measure_here(const SweepRequest& request, const SweepProgram& program, Measured& out) {
  COLLET_ASSIGN(const Client client, open_client(request.backend, request.no_fallback, request.options));
  Entry entry{.program = program.text};
  entry.inputs = [&](const std::vector<hlo::Shape>& parameters) { return inputs_of(program.inputs, parameters); };
  COLLET_ASSIGN(const std::unique_ptr<BenchProgram> made, BenchProgram::make(client.get(), entry, true));
  out.bytes = made->argument_bytes() + made->result_bytes();
  malloc_trim(0);
  clear_peak();
  const uint64_t before = process_bytes("VmRSS:") + made->result_bytes();
  COLLET_ASSIGN(const double first, made->run(1));
  const uint64_t peak = process_bytes("VmHWM:");
  out.temporary_bytes = std::max(peak > before ? peak - before : 0, made->facts().workspace_bytes);
  out.ns = first;
  constexpr double kSampleNs = 2e6;
  const Clock::time_point start = Clock::now();
  for (int i = 0; (i < 3 || seconds_since(start) < request.seconds) && seconds_since(start) < 1; ++i) {
    COLLET_ASSIGN(const double ns, made->run(static_cast<uint64_t>(std::clamp(kSampleNs / out.ns, 1.0, 1000.0))));
    out.ns = std::min(out.ns, ns);
  }
  out.ran = 1;
  return ok_status();
}

// Measures in a process of its own, so that no program disturbs another, and none can run for ever.
Measured measure_apart(const SweepRequest& request, const SweepProgram& program) {
  Measured out;
  const auto fail = [&](const std::string& message) {
    out = Measured{};
    std::snprintf(out.error, sizeof out.error, "%s", message.c_str());
    return out;
  };
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail(std::string("pipe: ") + std::strerror(errno));
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    return fail(std::string("fork: ") + std::strerror(errno));
  }
  if (child == 0) {
    std::ofstream("/proc/self/oom_score_adj") << 1000;  // where memory is short, this process ends, not its parent
    const Status status = measure_here(request, program, out);
    if (!status.ok()) fail(status.message().empty() ? "it failed" : status.message());
    const bool written = write(ends[1], &out, sizeof out) == static_cast<ssize_t>(sizeof out);
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  pollfd ready = {ends[0], POLLIN, 0};
  const Clock::time_point start = Clock::now();
  int got = 0;
  do {
    got = poll(&ready, 1, std::max(0, static_cast<int>((request.limit_s - seconds_since(start)) * 1000)));
  } while (got < 0 && errno == EINTR);
  const bool late = got == 0;
  if (late) kill(child, SIGKILL);
  const bool complete = !late && read(ends[0], &out, sizeof out) == static_cast<ssize_t>(sizeof out);
  close(ends[0]);
  int state = 0;
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  if (late) return fail("it took longer than " + std::to_string(static_cast<int>(request.limit_s)) + " s");
  if (!complete)
    return fail(WIFSIGNALED(state) ? std::string("it crashed: ") + strsignal(WTERMSIG(state))
                                   : "its process ended early");
  return out;
}

// Returns the bytes per ns for data of this size.
double bandwidth(const Limits& limits, uint64_t bytes) {
  for (const Bandwidth& one : limits.bandwidth)
    if (one.bytes >= bytes) return one.bytes_per_ns;
  return limits.bandwidth.empty() ? 1 : limits.bandwidth.back().bytes_per_ns;
}

void measure_point(const SweepRequest& request, const Limits& limits, SweepPoint& point) {
  const Measured measured = measure_apart(request, point.program);
  if (!measured.ran) {
    if (point.ns == 0) point.error = measured.error;
    return;
  }
  point.error.clear();
  point.ns = point.ns > 0 ? std::min(point.ns, measured.ns) : measured.ns;
  point.temporary_bytes =
      point.bytes > 0 ? std::min(point.temporary_bytes, measured.temporary_bytes) : measured.temporary_bytes;
  point.bytes = measured.bytes;
  const double moving = (point.program.moved > 0 ? point.program.moved : static_cast<double>(point.bytes)) /
                        bandwidth(limits, point.bytes);
  point.least_ns = kCallNs + std::max(point.program.operations / limits.peak.flops_per_ns, moving);
}

// Makes the points of a family, without measuring them.
SweepSeries points_of(const SweepFamily& family, bool fixed) {
  SweepSeries out;
  out.family = family.name;
  const SweepChoice usual(family.parameters);
  if (auto program = family.make(usual)) out.points.push_back({"", "", *std::move(program)});
  for (size_t p = 0; p < family.parameters.size(); ++p) {
    const SweepParameter& parameter = family.parameters[p];
    if (parameter.values.size() < 2 || (fixed && !parameter.fixed)) continue;
    std::vector<size_t> order;
    for (size_t v = 0; v < parameter.values.size(); ++v) {
      if (v == parameter.usual) {
        order.push_back(0);
        continue;
      }
      SweepChoice choice = usual;
      choice.set(p, parameter.values[v]);
      auto program = family.make(choice);
      if (!program) continue;
      order.push_back(out.points.size());
      out.points.push_back({parameter.name, parameter.values[v], *std::move(program)});
    }
    out.parameters.emplace_back(parameter.name, std::move(order));
  }
  return out;
}

// The value of a parameter at a point.
std::string value_at(const SweepSeries& series, const std::string& parameter, size_t point) {
  if (point != 0) return series.points[point].value;
  for (const SweepFamily& family : sweep_families())
    if (family.name == series.family)
      for (const SweepParameter& one : family.parameters)
        if (one.name == parameter) return one.values[one.usual];
  return "usual";
}

Expected<std::vector<const SweepFamily*>> chosen(const SweepRequest& request) {
  std::vector<const SweepFamily*> out;
  for (const SweepFamily& family : sweep_families()) {
    const bool named =
        std::find(request.families.begin(), request.families.end(), family.name) != request.families.end();
    const bool any = !request.fixed || std::any_of(family.parameters.begin(), family.parameters.end(),
                                                   [](const SweepParameter& p) { return p.fixed; });
    if ((request.families.empty() && any) || named) out.push_back(&family);
  }
  for (const std::string& name : request.families)
    if (std::none_of(out.begin(), out.end(), [&](const SweepFamily* f) { return f->name == name; }))
      return invalid_argument("there is no family '" + name + "' to sweep; --list has their names");
  return out;
}

}  // namespace

double SweepPoint::memory() const {
  const double beyond = static_cast<double>(temporary_bytes) - kFreeBytes;
  return bytes > 0 && beyond > 0 ? beyond / (static_cast<double>(bytes) + kFreeBytes) : 0;
}

double SweepSeries::median_cost() const {
  std::vector<double> all;
  for (const SweepPoint& point : points)
    if (point.ran()) all.push_back(point.cost());
  return median(std::move(all));
}

double SweepSeries::median_memory() const {
  std::vector<double> all;
  for (const SweepPoint& point : points)
    if (point.ran()) all.push_back(point.memory());
  return median(std::move(all));
}

std::vector<SweepFinding> find_jumps(const SweepSeries& series, double larger) {
  using Kind = SweepFinding::Kind;
  std::vector<SweepFinding> found;
  const auto note = [&](const SweepFinding& one) {
    for (SweepFinding& before : found) {
      if (before.kind != one.kind || before.point != one.point) continue;
      if (one.factor > before.factor) before = one;
      return;
    }
    found.push_back(one);
  };
  const double usual[] = {series.median_cost(), std::max(series.median_memory(), kLeastMemory)};
  const auto measure = [&](Kind kind, size_t point) {
    const SweepPoint& p = series.points[point];
    return kind == Kind::Cost ? p.cost() : std::max(p.memory(), kLeastMemory);
  };
  for (size_t i = 0; i < series.points.size(); ++i) {
    const SweepPoint& point = series.points[i];
    if (!point.ran()) {
      found.push_back({Kind::Failure, series.family, point.parameter, point.value, {}, 0, i});
      continue;
    }
    for (const Kind kind : {Kind::Cost, Kind::Memory}) {
      const double factor = measure(kind, i) / usual[static_cast<size_t>(kind)];
      if (factor > kMedianJump * larger) note({kind, series.family, point.parameter, point.value, {}, factor, i});
    }
  }
  for (const auto& [parameter, order] : series.parameters) {
    for (size_t k = 1; k < order.size(); ++k) {
      if (!series.points[order[k - 1]].ran() || !series.points[order[k]].ran()) continue;
      for (const Kind kind : {Kind::Cost, Kind::Memory}) {
        size_t low = order[k - 1], high = order[k];
        if (measure(kind, low) > measure(kind, high)) std::swap(low, high);
        const double factor = measure(kind, high) / measure(kind, low);
        if (factor > kNeighbourJump * larger)
          note({kind, series.family, parameter, value_at(series, parameter, high), value_at(series, parameter, low),
                factor, high});
      }
    }
  }
  return found;
}

Expected<SweepReport> sweep(const SweepRequest& request) {
  COLLET_ASSIGN(const std::vector<const SweepFamily*> families, chosen(request));
  const Clock::time_point start = Clock::now();
  SweepReport report;
  report.backend = request.backend;
  report.threads = thread_count(request.options);
  const Limits limits = measure_limits(report.threads);
  size_t done = 0, total = 0;
  const double larger = request.fixed ? kFixedJump : 1;
  for (const SweepFamily* family : families) {
    report.families.push_back(points_of(*family, request.fixed));
    total += report.families.back().points.size();
  }
  for (SweepSeries& series : report.families) {
    for (SweepPoint& point : series.points) {
      if (request.progress)
        request.progress(done, total,
                         series.family + (point.parameter.empty() ? "" : " " + point.parameter + "=" + point.value));
      measure_point(request, limits, point);
      ++done;
    }
    // Other work on the machine may have disturbed the slow one of a jump.
    for (int i = 0; i < kMoreTimes; ++i) {
      std::set<size_t> again;
      for (const SweepFinding& finding : find_jumps(series, larger)) again.insert(finding.point);
      for (const size_t point : again) measure_point(request, limits, series.points[point]);
    }
    for (SweepFinding& finding : find_jumps(series, larger)) report.findings.push_back(std::move(finding));
  }
  report.seconds = seconds_since(start);
  return report;
}

std::string to_string(const SweepFinding& finding) {
  std::string out = finding.family;
  if (!finding.parameter.empty()) out += " " + finding.parameter + "=" + finding.value;
  if (finding.kind == SweepFinding::Kind::Failure) return out + ": did not run";
  std::array<char, 32> factor{};
  std::snprintf(factor.data(), factor.size(), "%.1f", finding.factor);
  return out + ": " + factor.data() + " times the " +
         (finding.kind == SweepFinding::Kind::Cost ? "cost" : "temporary memory") + " of " +
         (finding.than.empty() ? "the family's median" : finding.parameter + "=" + finding.than);
}

std::string to_json(const SweepReport& report) {
  std::string text;
  JsonWriter out(text);
  out.begin_object().field("backend", report.backend).field("threads", report.threads);
  out.field("seconds", report.seconds).key("families").begin_array();
  for (const SweepSeries& series : report.families) {
    out.begin_object().field("family", series.family).field("median_cost", series.median_cost());
    out.field("median_memory", series.median_memory()).key("points").begin_array();
    for (const SweepPoint& point : series.points) {
      out.begin_object().field("parameter", point.parameter).field("value", point.value);
      if (!point.ran()) out.field("error", point.error);
      out.field("ns", point.ns).field("least_ns", point.least_ns).field("cost", point.cost());
      out.field("operations", point.program.operations).field("bytes", point.bytes);
      out.field("temporary_bytes", point.temporary_bytes).field("memory", point.memory());
      out.field("program", point.program.text).field("modulo", point.program.inputs.modulo);
      out.field("definite", point.program.inputs.definite).end_object();
    }
    out.end_array().end_object();
  }
  out.end_array().key("findings").begin_array();
  for (const SweepFinding& finding : report.findings) {
    static constexpr const char* kKinds[] = {"cost", "memory", "failure"};
    out.begin_object().field("kind", kKinds[static_cast<size_t>(finding.kind)]).field("family", finding.family);
    out.field("parameter", finding.parameter).field("value", finding.value).field("than", finding.than);
    out.field("factor", finding.factor).field("text", to_string(finding)).end_object();
  }
  out.end_array().end_object();
  text += '\n';
  return text;
}

}  // namespace collet::bench
