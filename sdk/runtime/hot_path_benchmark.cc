// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <collet/collet.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

// What the library itself takes for one execution: on the backend `idle`, whose calls return at once, all of it is ours.
//
//   COLLET_BACKEND_PATH=BUILD/lib/collet/test_backends:BUILD/lib/collet/backends sdk_hot_path_benchmark

namespace {

// `parameters` arguments, each with its own result.
std::string program(int64_t parameters) {
  std::string text = "HloModule m\nENTRY e {\n", types, names;
  for (int64_t i = 0; i < parameters; ++i) {
    const std::string n = std::to_string(i);
    text += "  x" + n + " = f32[4] parameter(" + n + ")\n  y" + n + " = f32[4] add(x" + n + ", x" + n + ")\n";
    types += (i ? ", " : "") + std::string("f32[4]");
    names += (i ? ", y" : "y") + n;
  }
  return text + "  ROOT t = (" + types + ") tuple(" + names + ")\n}\n";
}

template <typename T>
T must(collet::Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  std::exit(1);
}

void execute(benchmark::State& state, const char* backend) {
  const auto client = must(collet::Client::open(backend, "none"));
  const auto module = must(collet::Module::read(program(state.range(0))));
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

BENCHMARK_CAPTURE(execute, idle, "idle")->Arg(1)->Arg(2)->Arg(8)->Arg(32);
BENCHMARK_CAPTURE(execute, cpu, "cpu")->Arg(1)->Arg(2)->Arg(8)->Arg(32);

}  // namespace

BENCHMARK_MAIN();
