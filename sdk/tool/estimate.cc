// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <vector>

#include "hlo/base/files.h"
#include "hlo/estimate/step.h"
#include "sdk/tool/support/estimate_report.h"
#include "sdk/tool/support/files.h"
#include "sdk/tool/support/option_types.h"
#include "sdk/tool/support/read_module.h"
#include "sdk/tool/support/task.h"
#include "sdk/tool/support/terminal.h"
#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

constexpr int64_t kMostDevices = hlo::estimate::kMostDevices;

struct Options {
  std::string file, machine, mesh, json, html;
  ElidedChoice elided{COLLET_ELIDED_COUNTER};
  hlo::estimate::StepOptions step;
  std::vector<int64_t> project;
  double measured_ms = 0;
  size_t most = 15;
};

// Reads "16x8".
Expected<std::vector<int64_t>> read_mesh(std::string_view text) {
  std::vector<int64_t> out;
  while (!text.empty()) {
    int64_t size = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), size);
    if (end.ec != std::errc() || size < 1 ||
        (end.ptr != text.data() + text.size() && (*end.ptr != 'x' || end.ptr + 1 == text.data() + text.size())))
      return invalid_argument("--mesh is written as 16x8");
    out.push_back(size);
    text.remove_prefix(std::min<size_t>(text.size(), static_cast<size_t>(end.ptr - text.data()) + 1));
  }
  return out;
}

int estimate(Options options) {
  Expected<std::vector<int64_t>> mesh = read_mesh(options.mesh);
  if (!mesh.ok()) return report(kUsage, mesh.status().message());
  options.step.mesh = *std::move(mesh);
  if (options.step.devices == 0 && options.step.partition)
    for (const int64_t size : options.step.mesh) {
      if (size > kMostDevices / std::max<int64_t>(options.step.devices, 1))
        return report(kUsage, fmt::format("--mesh: a mesh has at most {} devices", kMostDevices));
      options.step.devices = std::max<int64_t>(options.step.devices, 1) * size;
    }
  const Expected<std::string> text = read_file_or_pipe(options.machine, uint64_t{1} << 24);
  if (!text.ok()) return report(text.status());
  Estimate out;
  Expected<hlo::estimate::Machine> machine = hlo::estimate::read_machine(*text, options.machine);
  if (!machine.ok()) return report(kUsage, machine.status().message());
  out.machine = *std::move(machine);
  Expected<std::unique_ptr<hlo::Module>> module = read_module(options.file, options.elided);
  if (!module.ok()) return report(module.status());
  const hlo::ModuleHeader& header = (*module)->header();
  const int64_t replicas = std::max<int64_t>(header.replica_count, 1);
  if (options.step.devices > 0 && !options.step.partition &&
      options.step.devices != replicas * std::max<int64_t>(header.num_partitions, 1))
    return report(kUsage, fmt::format("the program is for {} devices; --partition divides one that is for whole arrays",
                                      replicas * std::max<int64_t>(header.num_partitions, 1)));
  if (options.step.devices % replicas != 0)
    return report(kUsage, fmt::format("{} devices cannot be divided into {} replicas", options.step.devices, replicas));
  begin_task("estimating '" + options.file + "'");
  Expected<hlo::estimate::Step> step = hlo::estimate::estimate_step(**module, out.machine, options.step);
  if (!step.ok()) return report(step.status());
  out.step = *std::move(step);
  out.measured_ns = options.measured_ms * 1e6;
  for (const int64_t devices : options.project) {
    if (devices < out.step.devices || devices % out.step.devices != 0)
      return report(kUsage,
                    fmt::format("--project {}: not a multiple of the step's {} devices", devices, out.step.devices));
    const hlo::estimate::NetworkLevel* last = out.machine.network.empty() ? nullptr : &out.machine.network.back();
    if (!last || last->devices > 0)
      return report(kUsage, "--project needs a last level of the network without a fixed number of 'devices'");
    out.projected.push_back(hlo::estimate::project(out.step, out.machine, devices / out.step.devices));
  }
  if (!options.json.empty())
    if (const Status status = write_file(options.json, estimate_json(out)); !status.ok()) return report(status);
  if (!options.html.empty())
    if (const Status status = write_file(options.html, estimate_page(out, options.most)); !status.ok())
      return report(status);
  if (options.json != "-") show("{}", estimate_text(out, options.most));
  const bool fits = out.machine.memory_bytes == 0 || out.step.memory.total() <= out.machine.memory_bytes;
  return fits ? kDone : kFailed;
}

constexpr char kFooter[] = R"(Exit code 1: a device has too little memory. docs/estimate.md has the fields of
a machine and the model; machines to begin with are in templates/machines.

Examples:
  collet estimate step.mlir --machine pod.json
  collet estimate step.mlir --machine pod.json --partition --mesh 16x8
  collet estimate step.hlo --machine pod.json --project 512,4096 --html s.html)";

}  // namespace

Action add_estimate(CLI::App& verb) {
  auto options = std::make_shared<Options>();
  verb.add_option("FILE", options->file, "The program; - is stdin")->required()->type_name("FILE");
  verb.add_option("--machine", options->machine, "The devices and their network, as JSON")
      ->required()
      ->type_name("FILE");
  add_number_option(verb, "--devices", options->step.devices, "Devices of the step; 0: as many as the program says",
                    int64_t{0}, kMostDevices);
  verb.add_option("--mesh", options->mesh,
                  "The mesh of the program, the outermost axis first: --project makes that axis longer")
      ->type_name("16x8");
  verb.add_flag("--partition", options->step.partition,
                "The program is for whole arrays: divide it over the devices by its shardings");
  verb.add_option("--project", options->project, "Also show the step on so many devices, each of which does the same")
      ->check(CLI::Validator(
          [](const std::string& text) {
            const uint64_t number = parse_whole_number(text).value_or(0);
            if (number >= 1 && number <= uint64_t{kMostDevices}) return std::string();
            return fmt::format("'{}' is no whole number from 1 to {}", text, kMostDevices);
          },
          ""))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("N,...");
  add_real_option(verb, "--trips", options->step.unknown_trips, "Iterations of loops whose number is not known", 0,
                  1e15, "N")
      ->default_str("1");
  add_real_option(verb, "--measured", options->measured_ms,
                  "A measured time of the step, to compare with, in milliseconds", 0, 1e12, "MS");
  add_number_option(verb, "--most", options->most, "Number of ops to list")->default_str("15");
  add_elided_option(verb, options->elided);
  verb.add_option("--json", options->json, "Write all figures as JSON to this file; - is stdout")->type_name("FILE");
  verb.add_option("--html", options->html, "Write a page with pictures to this file")->type_name("FILE");
  verb.footer(kFooter);
  return [options] { return estimate(*options); };
}

}  // namespace collet::tool
