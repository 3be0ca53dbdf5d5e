// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <collet/collet.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "sdk/runtime/testing/programs.h"
#include "sdk/runtime/testing/queued.h"

// Measures the time that the library itself takes for one execution. The calls of the backend `idle` return at once, so that
// all time is the library's.
//
//   COLLET_BACKEND_PATH=BUILD/lib/collet/test_backends:BUILD/lib/collet/backends sdk_hot_path_benchmark

namespace {

using collet::testing::program_of_many;

template <typename T>
T must(collet::Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  std::exit(1);
}

void execute(benchmark::State& state, const char* backend) {
  const auto client = must(collet::Client::open(backend, "none"));
  const auto module = must(collet::Module::read(program_of_many(state.range(0))));
  const auto executable = must(client.compile(module));
  const float data[4] = {1, 2, 3, 4};
  const auto n = static_cast<size_t>(state.range(0));
  std::vector<collet::Buffer> arguments;
  for (size_t i = 0; i < n; ++i) arguments.push_back(must(client.upload<float>({4}, data)));
  std::vector<collet_buffer*> in, out(n);
  for (const collet::Buffer& b : arguments) in.push_back(b.get());
  for (auto _ : state) {
    if (collet_execute(executable.get(), nullptr, in.data(), out.data(), nullptr) != COLLET_OK)
      state.SkipWithError("execute failed");
    for (collet_buffer* b : out) collet_buffer_release(b);
  }
}

// A device on which each piece of work takes 100 us. The counter "of_ideal" is the measured time of a loop divided by
// the time during which the device's busiest queue worked.
class Overlap {
 public:
  Overlap() : client_(open()), executable_(must(client_.compile(must(collet::Module::read(program_of_many(1)))))) {}

  void report(benchmark::State& state, std::chrono::steady_clock::time_point start, const int64_t (&before)[3]) const {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    int64_t busy = 0;
    for (int i = 0; i < 3; ++i) busy = std::max(busy, control_.busy_ns[i] - before[i]);
    state.SetIterationTime(seconds);
    state.counters["of_ideal"] = seconds / (static_cast<double>(busy) * 1e-9);
  }
  void busy(int64_t (&out)[3]) const {
    for (int i = 0; i < 3; ++i) out[i] = control_.busy_ns[i];
  }

  collet::testing::QueueControl control_;
  collet::Client client_;
  collet::Executable executable_;

 private:
  collet::Client open() {
    control_.duration_ns = 100000;
    const std::string address = std::to_string(reinterpret_cast<uintptr_t>(&control_));
    const char *const keys[] = {"control"}, *const values[] = {address.c_str()};
    collet_client_options out{};
    out.struct_size = sizeof out;
    out.backend = "queued";
    out.fallback = "none";
    out.keys = keys;
    out.values = values;
    out.pairs = 1;
    return must(collet::Client::open(out));
  }
};

// Runs a thousand small executions, each on the result of the one before.
void dependent_runs(benchmark::State& state) {
  Overlap device;
  const float data[4] = {1, 2, 3, 4};
  for (auto _ : state) {
    collet::Buffer x = must(device.client_.upload<float>({4}, data));
    (void)x.ready().wait();
    int64_t before[3];
    device.busy(before);
    const auto start = std::chrono::steady_clock::now();
    collet_buffer* last = x.get();
    collet_buffer_retain(last);
    for (int i = 0; i < 1000; ++i) {
      collet_buffer* next = nullptr;
      if (collet_execute(device.executable_.get(), nullptr, &last, &next, nullptr) != COLLET_OK)
        state.SkipWithError("execute failed");
      collet_buffer_release(last);
      last = next;
    }
    collet_event* ready = collet_buffer_ready(last);
    (void)collet_event_wait(ready, nullptr);
    device.report(state, start, before);
    collet_event_release(ready);
    collet_buffer_release(last);
  }
}

// Uploads, executes and downloads 300 arrays; the three kinds of work overlap.
void pipeline(benchmark::State& state) {
  constexpr int kArrays = 300;
  Overlap device;
  std::vector<std::array<float, 4>> in(kArrays), out(kArrays);
  for (auto _ : state) {
    int64_t before[3];
    device.busy(before);
    const auto start = std::chrono::steady_clock::now();
    std::vector<collet_event*> ends;
    for (int i = 0; i < kArrays; ++i) {
      collet::Buffer x = must(device.client_.upload<float>({4}, in[static_cast<size_t>(i)].data()));
      collet_buffer *argument = x.get(), *result = nullptr;
      collet_event* end = nullptr;
      if (collet_execute(device.executable_.get(), nullptr, &argument, &result, nullptr) != COLLET_OK ||
          collet_buffer_to_host(result, out[static_cast<size_t>(i)].data(), 16, &end, nullptr) != COLLET_OK)
        state.SkipWithError("it failed");
      collet_buffer_release(result);
      ends.push_back(end);
    }
    for (collet_event* end : ends) {
      (void)collet_event_wait(end, nullptr);
      collet_event_release(end);
    }
    device.report(state, start, before);
  }
}

BENCHMARK(dependent_runs)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(pipeline)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(execute, idle, "idle")->Arg(1)->Arg(2)->Arg(8)->Arg(32);
BENCHMARK_CAPTURE(execute, cpu, "cpu")->Arg(1)->Arg(2)->Arg(8)->Arg(32);

}  // namespace

BENCHMARK_MAIN();
