// SPDX-License-Identifier: Apache-2.0
#include "conformance/bench/measure.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>

#include "conformance/bench/bench_program.h"
#include "conformance/bench/programs.h"
#include "conformance/corpus/judge.h"

namespace collet::bench {
namespace {

constexpr double kSample_ns = 2e6;  // approximate duration of one sample

// One program of a case: its samples, or why it does not run.
struct Measurement {
  Timing* timing;
  std::unique_ptr<BenchProgram> program = nullptr;
  std::vector<double> samples = {};
  uint64_t times = 1;

  void fail(const Status& status) {
    timing->error = status.message();
    program.reset();
  }
};

void enter(Measurement& measurement, collet_client* client, const Case& which, bool fusion) {
  auto made = BenchProgram::make(client, which.entry, fusion);
  if (!made.ok()) return measurement.fail(made.status());
  measurement.program = *std::move(made);
  if (const auto first = measurement.program->run(1); !first.ok()) return measurement.fail(first.status());
}

// Compares the results of the first run, before anything is timed. Returns an empty text, or how they differ.
std::string difference(const std::vector<Measurement>& measurements) {
  std::vector<hlo::Literal> expected;
  bool have = false;
  for (const Measurement& measurement : measurements) {
    if (!measurement.program) continue;
    auto got = measurement.program->results();
    if (!got.ok()) return got.status().message();
    if (have) {
      const conformance::Agreement agreement = conformance::agrees_with_index(expected, *got);
      if (!agreement.wrong.empty()) return agreement.wrong;
    } else {
      expected = *std::move(got);
      have = true;
    }
  }
  return {};
}

// Chooses how often a sample repeats the program, from the fastest of a few tries. A try that other processes slow down
// would give a number of repetitions that is too small, and short samples are the ones most affected by such
// disturbances.
void choose_times(Measurement& measurement) {
  if (!measurement.program) return;
  constexpr int kRuns = 3, kTries = 8;
  constexpr double kEnough_ns = 50 * kSample_ns;
  double fastest = HUGE_VAL, spent = 0;
  for (int i = 0; i < kTries && spent < kEnough_ns; ++i) {
    const auto warm = measurement.program->run(kRuns);
    if (!warm.ok()) return measurement.fail(warm.status());
    fastest = std::min(fastest, *warm);
    spent += fastest * kRuns;
  }
  measurement.times = static_cast<uint64_t>(std::clamp(kSample_ns / std::max(fastest, 1.0), 1.0, 10000.0));
}

void summarise(Measurement& measurement) {
  if (!measurement.program || measurement.samples.empty()) return;
  std::vector<double>& s = measurement.samples;
  std::sort(s.begin(), s.end());
  measurement.timing->median_ns = s[s.size() / 2];
  measurement.timing->low_ns = s[s.size() / 4];
  measurement.timing->high_ns = s[s.size() * 3 / 4];
  const collet_executable_facts facts = measurement.program->facts();
  measurement.timing->device_ops = facts.device_ops;
  measurement.timing->fallback_ops = facts.fallback_ops;
  measurement.timing->kernels = facts.kernels;
  measurement.timing->traffic_bytes = facts.traffic_bytes;
  measurement.timing->estimated_ns = facts.estimated_ns;
  measurement.timing->energy_nj = facts.energy_nj;
  measurement.timing->cycles = facts.cycles;
  measurement.timing->compile_ns = facts.compile_ns;
}

void find_limit(Result& result, const Report& report) {
  const Request& request = report.request;
  const double moving = request.peak_bytes_per_ns > 0
                            ? static_cast<double>(result.read_bytes + result.written_bytes) / request.peak_bytes_per_ns
                            : measure_stream(result.read_bytes, result.written_bytes, report.peak.threads);
  const double computing = result.flops / report.peak.flops_per_ns;
  result.compute_bound = computing > moving;
  result.limit_ns = std::max(moving, computing);
}

// The programs of a comparison. The unfused one has its own client if the backend fuses by itself and has an option
// against it.
struct Clients {
  Client fused, unfused, other;
};

Result measure_case(const Case& which, const Clients& clients, const Report& report) {
  Result result;
  result.name = which.name;
  result.family = which.family;
  result.flops = which.flops;
  std::vector<Measurement> measurements(1);
  measurements[0].timing = &result.fused;
  enter(measurements[0], clients.fused.get(), which, true);
  if (report.request.unfused) {
    measurements.push_back({.timing = &result.unfused});
    enter(measurements.back(), (clients.unfused ? clients.unfused : clients.fused).get(), which, false);
  }
  if (clients.other) {
    measurements.push_back({.timing = &result.other});
    enter(measurements.back(), clients.other.get(), which, true);
  }
  result.differs = difference(measurements);
  for (Measurement& measurement : measurements) {
    choose_times(measurement);
    if (!measurement.program || result.limit_ns != 0) continue;
    if (result.flops < 0) result.flops = static_cast<double>(measurement.program->facts().flops);
    result.read_bytes = measurement.program->argument_bytes();
    result.written_bytes = measurement.program->result_bytes();
    find_limit(result, report);
  }
  for (uint32_t i = 0; i < report.request.repeat; ++i) {
    for (Measurement& measurement : measurements) {
      if (!measurement.program) continue;
      const auto sample = measurement.program->run(measurement.times);
      if (sample.ok()) {
        measurement.samples.push_back(*sample);
      } else {
        measurement.fail(sample.status());
      }
    }
  }
  for (Measurement& measurement : measurements) summarise(measurement);
  return result;
}

Expected<Clients> open_clients(const Request& request, Report& report) {
  Clients clients;
  COLLET_ASSIGN(clients.fused, open_client(request.backend, request.no_fallback, request.options));
  report.backend = backend_name(clients.fused.get());
  BackendOptions unfused = request.options;
  unfused.emplace_back("fuse", "0");
  if (!request.unfused) {
    report.told_not_to_fuse = true;
  } else if (Expected<Client> opened = open_client(request.backend, request.no_fallback, unfused); opened.ok()) {
    clients.unfused = *std::move(opened);
    report.told_not_to_fuse = true;
  }
  if (!request.against.empty()) {
    COLLET_ASSIGN(clients.other, open_client(request.against, request.no_fallback, {}));
    report.against = backend_name(clients.other.get());
  }
  return clients;
}

}  // namespace

uint32_t thread_count(const BackendOptions& options) {
  for (const auto& [key, value] : options) {
    uint32_t threads = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), threads);
    if (key == "threads" && error == std::errc() && end == value.data() + value.size() && threads > 0)
      return std::min(threads, available_threads());
  }
  return available_threads();
}

Limits measure_limits(uint32_t threads) {
  Limits limits{.peak = measure_peak(threads), .bandwidth = {}};
  constexpr uint64_t kLeast = uint64_t{1} << 14, kMost = uint64_t{1} << 28;
  for (uint64_t bytes = kLeast; bytes <= kMost; bytes *= 4)
    limits.bandwidth.push_back({bytes, static_cast<double>(bytes) / measure_stream(bytes / 2, bytes / 2, threads)});
  return limits;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"reduce_sum_fma", "reduction", "sum(x + y * z), 1024 x 1024", 3.0 * 1024 * 1024, {programs::reduce_sum_fma}},
      {"softmax", "softmax", "rows of 1024 x 1024", 0, {programs::softmax}},
      {"softmax_relu_dense",
       "dense",
       "softmax(relu(x W + b)), 256 x 512 x 1024",
       2.0 * 256 * 512 * 1024,
       {programs::softmax_relu_dense}},
      {"mnist_step", "training", "one training step, batch 100", 2.0 * 2 * 100 * 784 * 10, {programs::mnist_step}},
      {"lstm", "lstm", "32 steps, batch 32, 128 to 256", 2.0 * 32 * 32 * 384 * 1024, {programs::lstm}},
      {"attention", "attention", "8 heads, 256 tokens, 64 wide", 2.0 * 2 * 8 * 256 * 256 * 64, {programs::attention}},
  };
  return all;
}

std::vector<FamilySummary> Report::families() const {
  std::vector<FamilySummary> out;
  std::vector<size_t> compared;
  for (const Result& result : results) {
    auto row = std::find_if(out.begin(), out.end(), [&](const auto& f) { return f.family == result.family; });
    if (row == out.end()) {
      row = out.insert(out.end(), {.family = result.family});
      compared.push_back(0);
    }
    ++row->cases;
    if (!result.fused.ran() || result.of_limit() <= 0) continue;
    ++row->ran;
    row->of_limit += std::log(result.of_limit());
    if (result.other.median_ns <= 0) continue;
    ++compared[static_cast<size_t>(row - out.begin())];
    row->against += std::log(result.other.median_ns / result.fused.median_ns);
  }
  for (size_t i = 0; i < out.size(); ++i) {
    FamilySummary& row = out[i];
    row.of_limit = row.ran > 0 ? std::exp(row.of_limit / static_cast<double>(row.ran)) : 0;
    row.against = compared[i] > 0 ? std::exp(row.against / static_cast<double>(compared[i])) : 0;
  }
  return out;
}

Expected<Report> measure(const Request& request) {
  Report report;
  report.request = request;
  std::vector<const Case*> chosen;
  for (const Case& one : request.cases.empty() ? cases() : request.cases) {
    if (one.name.find(request.filter) != std::string::npos) chosen.push_back(&one);
  }
  if (chosen.empty()) return invalid_argument("no case has '" + request.filter + "' in its name");
  COLLET_ASSIGN(const Clients clients, open_clients(request, report));
  const auto say = [&](size_t done, const std::string& what) {
    if (request.progress) request.progress(done, chosen.size() + 1, what);
  };
  say(0, "the machine's limits");
  report.peak = measure_peak(thread_count(request.options));
  if (request.peak_flops_per_ns > 0) report.peak.flops_per_ns = request.peak_flops_per_ns;
  for (size_t i = 0; i < chosen.size(); ++i) {
    say(i + 1, chosen[i]->name);
    report.results.push_back(measure_case(*chosen[i], clients, report));
  }
  say(chosen.size() + 1, "");
  return report;
}

}  // namespace collet::bench
