// SPDX-License-Identifier: Apache-2.0
// Measures the speed of reading and printing a generated module: text_benchmark [MEGABYTES] [--metadata] [--write FILE]

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>

#include "hlo/text/parser.h"
#include "hlo/text/printer.h"

namespace collet::hlo {
namespace {

// Returns the processor time of this thread in seconds, so that other programs do not affect it.
double now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Generates a module of about `bytes` bytes: chains of elementwise ops, data movement, products and reductions, with
// some small constants.
std::string generate(size_t bytes, bool metadata, size_t& instructions) {
  constexpr int kSizes[] = {64, 128, 256, 512};
  std::string out =
      "HloModule generated\n\n%sum (a: f32[], b: f32[]) -> f32[] {\n"
      "  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n  ROOT %sum.0 = f32[] add(%a, %b)\n}\n\n"
      "ENTRY %main {\n  %zero = f32[] constant(0)\n";
  std::string last[4], before[4];
  for (int k = 0; k < 4; ++k) {
    last[k] = before[k] = "argument." + std::to_string(k);
    const std::string n = std::to_string(kSizes[k]);
    out += "  %" + last[k] + " = f32[" + n + "," + n + "]{1,0} parameter(" + std::to_string(k) + ")\n";
  }
  instructions = 8;
  for (size_t i = 0; out.size() < bytes; ++i) {
    const int k = static_cast<int>(i / 16 % 4);
    const std::string n = std::to_string(kSizes[k]), id = std::to_string(i);
    const std::string shape = "f32[" + n + "," + n + "]{1,0} ";
    std::string name, line;
    switch (i % 16) {
      case 3:
        name = "dot." + id;
        line = shape + "dot(%" + last[k] + ", %" + before[k] + "), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
        break;
      case 6:
        name = "transpose." + id;
        line = "f32[" + n + "," + n + "]{0,1} transpose(%" + last[k] + "), dimensions={1,0}";
        break;
      case 8:
        name = "reduce." + id;
        line = "f32[" + n + "]{0} reduce(%" + last[k] + ", %zero), dimensions={1}, to_apply=%sum";
        break;
      case 9:
        name = "broadcast." + id;
        line = shape + "broadcast(%reduce." + std::to_string(i - 1) + "), dimensions={0}";
        break;
      case 11:
        name = "constant." + id;
        line = "f32[4]{0} constant({0.25, -1.5, 3, 1e-05})";
        break;
      case 13:
        name = "slice." + id;
        line = "f32[" + n + ",32]{1,0} slice(%" + last[k] + "), slice={[0:" + n + "], [16:48]}";
        break;
      default: {
        constexpr std::string_view kOps[] = {"add", "multiply", "subtract", "maximum"};
        const std::string op(kOps[i % 4]);
        name = op + "." + id;
        line = shape + op + "(%" + last[k] + ", %" + before[k] + ")";
      }
    }
    if (metadata)
      line += ", metadata={op_name=\"jit(step)/jit(main)/layer_" + std::to_string(i / 512) + "/" + name +
              "\" stack_frame_id=" + std::to_string(i % 97 + 1) + "}";
    out += "  %" + name + " = " + line + "\n";
    const bool same_shape = i % 16 != 8 && i % 16 != 11 && i % 16 != 13;
    if (same_shape) {
      before[k] = last[k];
      last[k] = name;
    }
    ++instructions;
  }
  out += "  ROOT %result = (f32[64,64]{1,0}, f32[128,128]{1,0}) tuple(%" + last[0] + ", %" + last[1] + ")\n}\n";
  ++instructions;
  return out;
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

int run(int argc, char** argv) {
  double megabytes = 50;
  bool metadata = false;
  std::string file;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--metadata")
      metadata = true;
    else if (argument == "--write" && i + 1 < argc)
      file = argv[++i];
    else
      megabytes = std::atof(argv[i]);
  }
  size_t instructions = 0;
  const std::string text = generate(static_cast<size_t>(megabytes * 1e6), metadata, instructions);
  if (!file.empty()) std::ofstream(file, std::ios::binary) << text;
  const double size = static_cast<double>(text.size()) / 1e6;
  std::printf("%.1f MB, %zu instructions\n", size, instructions);
  const double peak_before = peak_megabytes();
  double best_read = 1e9, best_print = 1e9, peak = 0;
  for (int i = 0; i < 5; ++i) {
    double start = now();
    auto module = parse_module(text, "generated");
    best_read = std::min(best_read, now() - start);
    if (!module.ok()) {
      std::printf("%s\n", module.status().message().c_str());
      return 1;
    }
    if (i == 0) peak = peak_megabytes();
    start = now();
    const std::string printed = print_module(**module);
    best_print = std::min(best_print, now() - start);
  }
  std::printf("read  %.0f MB/s (%.0f ns per instruction), memory %.1f times the text\n", size / best_read,
              best_read * 1e9 / static_cast<double>(instructions), (peak - peak_before) / size);
  std::printf("print %.0f MB/s\n", size / best_print);
  return 0;
}

}  // namespace
}  // namespace collet::hlo

int main(int argc, char** argv) {
  return collet::hlo::run(argc, argv);
}
