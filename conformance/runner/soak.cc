// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner/soak.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "conformance/runner/random_case.h"
#include "hlo/eval/evaluator.h"
#include "hlo/testing/equivalence.h"
#include "hlo/text/parser.h"

namespace collet::conformance {
namespace {

using hlo::Literal;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kStart = "soak/rounds/seed_";
constexpr int kSteps = 60;            // of a round
constexpr size_t kMostPrograms = 12;  // that a round keeps at a time
constexpr size_t kMostBuffers = 24;
constexpr int64_t kMostElements = 1 << 18;  // of a buffer that is kept
// What may grow while caches fill: the first rounds do not count, and neither does this much in all later ones.
constexpr size_t kWarmUp = 4, kLeastRounds = 3 * kWarmUp;
constexpr double kMostGrowth = 16 << 20;  // bytes
// A backend also fails if memory grows by this much a round from the first to the second and from the second to the last
// third of the rounds that count.
constexpr double kSteadyGrowth = 48 << 10;  // bytes
constexpr double kLeastGrowth = 1 << 20;    // bytes of a third: few rounds on a slow machine may still fill caches

struct Sample {
  double bytes = 0;  // resident, without pages of files: code that runs for the first time is no growth
  size_t threads = 0, files = 0;
};

size_t entries_of(const char* folder) {
  std::error_code error;
  size_t count = 0;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) ++count;
  return count;
}

Sample sample() {
  ::malloc_trim(0);
  Sample out{.threads = entries_of("/proc/self/task"), .files = entries_of("/proc/self/fd")};
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/statm", "r"), std::fclose);
  unsigned long long total = 0, resident = 0, of_files = 0;
  if (file && std::fscanf(file.get(), "%llu %llu %llu", &total, &resident, &of_files) == 3)
    out.bytes = static_cast<double>(resident - of_files) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return out;
}

// A program that a round keeps, with its inputs and expected results.
struct Kept {
  std::string name;
  std::unique_ptr<Program> program, donating;
  std::vector<Literal> inputs, outputs;
};

// Returns the text with an argument whose memory a result takes over; empty if no shapes fit.
std::string with_donation(const std::string& text, const Program& program) {
  const auto& arguments = program.arguments();
  const auto& results = program.results();
  for (size_t i = 0; i < arguments.size(); ++i) {
    for (size_t r = 0; r < results.size(); ++r) {
      if (!arguments[i].is_array() || !arguments[i].same_without_layout(results[r])) continue;
      const std::string place = results.size() == 1 ? "" : std::to_string(r);
      const size_t end = text.find('\n');
      return fmt::format("{}, input_output_alias={{ {{{}}}: ({}, {{}}, may-alias) }}{}", text.substr(0, end), place, i,
                         text.substr(end));
    }
  }
  return {};
}

class Round {
 public:
  Round(const Session& session, std::mt19937_64& random) : session_(session), random_(random) {}

  // Returns what went wrong; empty if nothing did.
  std::string run() {
    for (int step = 0; step < kSteps; ++step) {
      const std::string wrong = do_step();
      if (!wrong.empty()) return fmt::format("{}, step {} of the round", wrong, step);
    }
    return {};
  }

 private:
  size_t below(size_t n) { return static_cast<size_t>(random_() % std::max<size_t>(n, 1)); }

  std::string do_step() {
    const size_t what = below(10);
    if (kept_.empty() || what == 0) return compile();
    if (what == 1) return drop_program();
    if (what == 2) return hold_buffer();
    if (what == 3) return drop_buffer();
    const Kept& kept = *kept_[below(kept_.size())];
    if (what == 4) return run_together(kept);
    if (what == 5 && kept.donating) return run_once(kept, *kept.donating);
    return run_once(kept, *kept.program);
  }

  std::string compile() {
    const uint64_t seed = random_() % 100000;
    const std::string text = random_case_text(seed);
    auto kept = std::make_unique<Kept>();
    kept->name = random_case_name(seed);
    const auto module = hlo::parse_module(text, kept->name);
    if (!module.ok()) return "the program is wrong: " + module.status().to_string();
    kept->inputs = hlo::testing::entry_inputs(**module);
    const Expected<Literal> result = hlo::Evaluator(**module).run(kept->inputs);
    if (!result.ok()) return "the evaluator fails: " + result.status().to_string();
    kept->outputs = hlo::flatten(*result);
    Expected<Program> program = session_.compile(text, {.file = kept->name, .ignore_costs = true});
    if (!program.ok()) return program.status().code() == Code::Unimplemented ? "" : program.status().to_string();
    kept->program = std::make_unique<Program>(*std::move(program));
    if (const std::string donating = with_donation(text, *kept->program); !donating.empty() && below(2) == 0) {
      Expected<Program> other = session_.compile(donating, {.file = kept->name, .ignore_costs = true});
      if (!other.ok()) return "with a donated argument: " + other.status().to_string();
      kept->donating = std::make_unique<Program>(*std::move(other));
    }
    if (kept_.size() == kMostPrograms) kept_.erase(kept_.begin() + static_cast<ptrdiff_t>(below(kept_.size())));
    kept_.push_back(std::move(kept));
    return {};
  }

  std::string drop_program() {
    kept_.erase(kept_.begin() + static_cast<ptrdiff_t>(below(kept_.size())));
    return {};
  }

  static std::string run_once(const Kept& kept, const Program& program) {
    const Expected<std::vector<Literal>> got = program.run(kept.inputs);
    if (!got.ok()) return kept.name + ": " + got.status().to_string();
    if (got->size() != kept.outputs.size()) return kept.name + ": another number of results";
    for (size_t i = 0; i < got->size(); ++i) {
      const std::string difference = hlo::testing::difference(kept.outputs[i], (*got)[i], kRandomTolerance);
      if (!difference.empty()) return fmt::format("{}: result {}: {}", kept.name, i, difference);
    }
    return {};
  }

  std::string run_together(const Kept& kept) {
    std::string other;
    std::thread second([&] { other = run_once(kept, *kept.program); });
    const std::string wrong = run_once(kept, *kept.program);
    second.join();
    return !wrong.empty() ? wrong + " (two runs at a time)" : !other.empty() ? other + " (two runs at a time)" : "";
  }

  // Copies an array to the device, and reads one that was copied before, which must be as it was.
  std::string hold_buffer() {
    Literal value = Literal::zeros(hlo::Shape::array(hlo::Type::S32, {1 + static_cast<int64_t>(below(kMostElements))}));
    const auto number = static_cast<int64_t>(below(1000));
    for (int64_t i = 0; i < value.element_count(); i += 97) value.set_int(i, number + i);
    Expected<BufferHandle> buffer = copy_to_device(session_.client(), value);
    if (!buffer.ok()) return "a copy to the device: " + buffer.status().to_string();
    if (buffers_.size() == kMostBuffers)
      buffers_.erase(buffers_.begin() + static_cast<ptrdiff_t>(below(buffers_.size())));
    buffers_.push_back({std::move(value), *std::move(buffer)});
    return {};
  }

  std::string drop_buffer() {
    if (buffers_.empty()) return {};
    const size_t which = below(buffers_.size());
    const Expected<Literal> got = fetch(buffers_[which].buffer.get());
    if (!got.ok()) return "a copy from the device: " + got.status().to_string();
    const bool same = *got == buffers_[which].value;
    buffers_.erase(buffers_.begin() + static_cast<ptrdiff_t>(which));
    return same ? "" : "an array that was kept on the device has changed";
  }

  struct Held {
    Literal value;
    BufferHandle buffer;
  };
  const Session& session_;
  std::mt19937_64& random_;
  std::vector<std::unique_ptr<Kept>> kept_;
  std::vector<Held> buffers_;
};

// Opens a client, does the steps of a round, and closes it. Returns what went wrong; empty if nothing did.
std::string run_round(const BackendChoice& backend, std::mt19937_64& random) {
  const Expected<std::unique_ptr<Session>> session = Session::open(backend);
  if (!session.ok()) return "the backend does not open again: " + session.status().to_string();
  return Round(**session, random).run();
}

// Returns what grows from round to round; empty if nothing does. `samples`: kLeastRounds or more.
std::string growth_of(const std::vector<Sample>& samples) {
  const size_t first = kWarmUp, half = first + (samples.size() - first) / 2;
  const auto least = [&](auto member, size_t from, size_t to) {
    auto value = samples[from].*member;
    for (size_t i = from; i < to; ++i) value = std::min(value, samples[i].*member);
    return value;
  };
  // The least value of the later half is compared with that of the earlier one: what comes and goes is no growth.
  const double grown = least(&Sample::bytes, half, samples.size()) - least(&Sample::bytes, first, half);
  const auto rounds = static_cast<double>(samples.size() - half);
  const size_t third = (samples.size() - first) / 3;
  const auto grown_in = [&](size_t k) {
    return least(&Sample::bytes, first + k * third, first + (k + 1) * third) -
           least(&Sample::bytes, first + (k - 1) * third, first + k * third);
  };
  const bool is_steady =
      std::min(grown_in(1), grown_in(2)) > std::max(kLeastGrowth, kSteadyGrowth * static_cast<double>(third));
  std::string out;
  if (grown > kMostGrowth || is_steady)
    out += fmt::format("memory grows, by {:.1f} MiB in {} rounds, {:.0f} KiB a round; ", grown / 1048576, rounds,
                       grown / 1024 / rounds);
  const size_t threads = least(&Sample::threads, half, samples.size()),
               threads_before = least(&Sample::threads, first, half);
  const size_t files = least(&Sample::files, half, samples.size()), files_before = least(&Sample::files, first, half);
  if (threads > threads_before)
    out += fmt::format("threads stay after a client was closed, {} and then {}; ", threads_before, threads);
  if (files > files_before)
    out += fmt::format("files stay open after a client was closed, {} and then {}; ", files_before, files);
  if (!out.empty()) out.resize(out.size() - 2);
  return out;
}

std::string table_of(const std::vector<Sample>& samples) {
  constexpr size_t kLines = 12;
  std::string out;
  for (size_t line = 0; line < std::min(kLines, samples.size()); ++line) {
    const size_t i = samples.size() <= kLines ? line : line * (samples.size() - 1) / (kLines - 1);
    out += fmt::format("after round {}: {:.1f} MiB, {} threads, {} files\n", i + 1, samples[i].bytes / 1048576,
                       samples[i].threads, samples[i].files);
  }
  return out;
}

}  // namespace

std::string soak_case_name(uint64_t seed) {
  return fmt::format("{}{}", kStart, seed);
}

std::optional<uint64_t> soak_case_seed(std::string_view name) {
  return seed_after(kStart, name);
}

Fields run_soak(uint64_t seed, const BackendChoice& backend, double seconds) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::mt19937_64 random(seed);
  std::vector<Sample> samples;
  std::string wrong;
  while (wrong.empty() && (Clock::now() < end || samples.size() < kLeastRounds)) {
    wrong = run_round(backend, random);
    if (!wrong.empty()) wrong += fmt::format(", round {}", samples.size() + 1);
    samples.push_back(sample());
  }
  if (wrong.empty()) wrong = growth_of(samples);
  const std::string count = fmt::format("{} rounds of {} steps", samples.size(), kSteps);
  Fields fields = {{"status", wrong.empty() ? "pass" : "fail"},
                   {"detail", wrong.empty() ? count : wrong + "; " + count}};
  fields.emplace_back("evidence", table_of(samples));
  return fields;
}

}  // namespace collet::conformance
