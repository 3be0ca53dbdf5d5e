// SPDX-License-Identifier: Apache-2.0
#include "conformance/bench/measure.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "conformance/bench/contestant.h"
#include "conformance/bench/programs.h"

namespace collet::bench {
namespace {

constexpr double kSample_ns = 2e6;  // a sample runs for about so long

// Takes part in one case, or says why not.
struct Entrant {
  Timing* timing;
  std::unique_ptr<Contestant> contestant;
  std::vector<double> samples;
  uint64_t times = 1;

  void fail(const Status& status) {
    timing->error = status.message();
    contestant.reset();
  }
};

void enter(Entrant& entrant, collet_client* client, const Case& which, bool fusion) {
  auto made = Contestant::make(client, which.program, fusion);
  if (!made.ok()) return entrant.fail(made.status());
  entrant.contestant = *std::move(made);
  if (const auto first = entrant.contestant->run(1); !first.ok()) return entrant.fail(first.status());
}

// Results of the first run, compared before anything is timed.
bool agree(const std::vector<Entrant>& entrants) {
  std::vector<float> expected;
  bool have = false, good = true;
  for (const Entrant& entrant : entrants) {
    if (!entrant.contestant) continue;
    const auto got = entrant.contestant->results();
    if (!got.ok()) return false;
    if (!have) {
      expected = *got;
      have = true;
      continue;
    }
    float largest = 0, worst = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      largest = std::max(largest, std::fabs(expected[i]));
      worst = std::max(worst, std::fabs(expected[i] - (*got)[i]));
    }
    good &= worst <= 1e-3f * largest;
  }
  return good;
}

// By the fastest of a few tries: one disturbed try would make all samples short, and short ones are disturbed most.
void choose_times(Entrant& entrant) {
  if (!entrant.contestant) return;
  constexpr int kRuns = 3, kTries = 8;
  constexpr double kEnough_ns = 50 * kSample_ns;
  double fastest = HUGE_VAL, spent = 0;
  for (int i = 0; i < kTries && spent < kEnough_ns; ++i) {
    const auto warm = entrant.contestant->run(kRuns);
    if (!warm.ok()) return entrant.fail(warm.status());
    fastest = std::min(fastest, *warm);
    spent += fastest * kRuns;
  }
  entrant.times = static_cast<uint64_t>(std::clamp(kSample_ns / std::max(fastest, 1.0), 1.0, 10000.0));
}

void summarise(Entrant& entrant) {
  if (!entrant.contestant || entrant.samples.empty()) return;
  std::vector<double>& s = entrant.samples;
  std::sort(s.begin(), s.end());
  entrant.timing->median_ns = s[s.size() / 2];
  entrant.timing->low_ns = s[s.size() / 4];
  entrant.timing->high_ns = s[s.size() * 3 / 4];
  const collet_executable_facts facts = entrant.contestant->facts();
  entrant.timing->device_ops = facts.device_ops;
  entrant.timing->fallback_ops = facts.fallback_ops;
  entrant.timing->kernels = facts.kernels;
  entrant.timing->traffic_bytes = facts.traffic_bytes;
}

void find_limit(Result& result, const Peak& peak) {
  const double moving = measure_stream(result.read_bytes, result.written_bytes);
  const double computing = result.which->flops / peak.flops_per_ns;
  result.compute_bound = computing > moving;
  result.limit_ns = std::max(moving, computing);
}

// Those who take part. The unfused one has a client of its own where the backend fuses by itself and can be told not to.
struct Clients {
  Client fused, unfused, other;
};

Result measure_case(const Case& which, const Clients& clients, const Report& report) {
  Result result;
  result.which = &which;
  std::vector<Entrant> entrants(clients.other ? 3 : 2);
  entrants[0].timing = &result.fused;
  entrants[1].timing = &result.unfused;
  enter(entrants[0], clients.fused.get(), which, true);
  enter(entrants[1], (clients.unfused ? clients.unfused : clients.fused).get(), which, false);
  if (clients.other) {
    entrants[2].timing = &result.other;
    enter(entrants[2], clients.other.get(), which, true);
  }
  result.agrees = agree(entrants);
  for (Entrant& entrant : entrants) {
    choose_times(entrant);
    if (!entrant.contestant || result.limit_ns != 0) continue;
    result.read_bytes = entrant.contestant->argument_bytes();
    result.written_bytes = entrant.contestant->result_bytes();
    find_limit(result, report.peak);
  }
  for (uint32_t i = 0; i < report.request.repeat; ++i) {
    for (Entrant& entrant : entrants) {
      if (!entrant.contestant) continue;
      const auto sample = entrant.contestant->run(entrant.times);
      if (sample.ok()) {
        entrant.samples.push_back(*sample);
      } else {
        entrant.fail(sample.status());
      }
    }
  }
  for (Entrant& entrant : entrants) summarise(entrant);
  return result;
}

Expected<Clients> open_clients(const Request& request, Report& report) {
  Clients clients;
  COLLET_ASSIGN(clients.fused, open_client(request.backend, request.no_fallback, request.options));
  report.backend = backend_name(clients.fused.get());
  BackendOptions unfused = request.options;
  unfused.emplace_back("fuse", "0");
  if (Expected<Client> opened = open_client(request.backend, request.no_fallback, unfused); opened.ok()) {
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

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"reduce_sum_fma", "sum(x + y * z), 1024 x 1024", 3.0 * 1024 * 1024, programs::reduce_sum_fma},
      {"softmax", "rows of 1024 x 1024", 0, programs::softmax},
      {"softmax_relu_dense", "softmax(relu(x W + b)), 256 x 512 x 1024", 2.0 * 256 * 512 * 1024,
       programs::softmax_relu_dense},
      {"mnist_step", "one training step, batch 100", 2.0 * 2 * 100 * 784 * 10, programs::mnist_step},
      {"lstm", "32 steps, batch 32, 128 to 256", 2.0 * 32 * 32 * 384 * 1024, programs::lstm},
      {"attention", "8 heads, 256 tokens, 64 wide", 2.0 * 2 * 8 * 256 * 256 * 64, programs::attention},
  };
  return all;
}

Expected<Report> measure(const Request& request) {
  Report report;
  report.request = request;
  std::vector<const Case*> chosen;
  for (const Case& one : cases()) {
    if (std::string(one.name).find(request.filter) != std::string::npos) chosen.push_back(&one);
  }
  if (chosen.empty()) return invalid_argument("no case has '" + request.filter + "' in its name");
  COLLET_ASSIGN(const Clients clients, open_clients(request, report));
  const auto say = [&](size_t done, const std::string& what) {
    if (request.progress) request.progress(done, chosen.size() + 1, what);
  };
  say(0, "the machine's limits");
  report.peak = measure_peak();
  for (size_t i = 0; i < chosen.size(); ++i) {
    say(i + 1, chosen[i]->name);
    report.results.push_back(measure_case(*chosen[i], clients, report));
  }
  say(chosen.size() + 1, "");
  return report;
}

}  // namespace collet::bench
