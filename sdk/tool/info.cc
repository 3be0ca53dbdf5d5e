// SPDX-License-Identifier: Apache-2.0
#include <collet/backend.h>
#include <collet/collet.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "hlo/base/json.h"
#include "sdk/tool/support/files.h"
#include "sdk/tool/support/op_table.h"
#include "sdk/tool/support/read_module.h"
#include "sdk/tool/support/statistics.h"
#include "sdk/tool/support/terminal.h"
#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string file, format, backend, json;
  bool ops = false, backends = false;
};

struct CloseClient {
  void operator()(collet_client* client) const { collet_client_close(client); }
};
using Client = std::unique_ptr<collet_client, CloseClient>;

Expected<Client> open_client(const std::string& backend) {
  collet_client_options options{};
  options.struct_size = sizeof options;
  options.backend = backend.c_str();
  options.fallback = "none";
  collet_client* client = nullptr;
  collet_error error{};
  if (const collet_status code = collet_client_open(&options, &client, &error)) return from_c(code, error, "open");
  return Client(client);
}

std::vector<std::string> backend_folders() {
  std::vector<std::string> folders;
  if (const char* path = std::getenv("COLLET_BACKEND_PATH")) {
    for (std::string_view rest = path; !rest.empty();) {
      const size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) folders.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  Dl_info library{};
  if (dladdr(reinterpret_cast<const void*>(&collet_version), &library) != 0 && library.dli_fname != nullptr) {
    std::error_code error;
    const fs::path real = fs::canonical(library.dli_fname, error);
    if (!error) folders.push_back((real.parent_path() / "collet" / "backends").string());
  }
  return folders;
}

// Returns the paths of plugins. Of those with the same name, only the first one is listed, because that name finds it.
std::vector<std::string> found_backends() {
  std::vector<std::string> paths, names;
  for (const std::string& folder : backend_folders()) {
    std::vector<std::string> here;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("libcollet_backend_") && name.ends_with(".so")) here.push_back(entry.path().string());
    }
    std::sort(here.begin(), here.end());
    for (const std::string& path : here) {
      const std::string name = fs::path(path).filename().string();
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      names.push_back(name);
      paths.push_back(path);
    }
  }
  return paths;
}

std::vector<std::string_view> trait_names(uint32_t traits) {
  constexpr std::pair<uint32_t, std::string_view> kNames[] = {
      {COLLET_TRAIT_SERIAL, "serial"},
      {COLLET_TRAIT_SERIAL_COMPILE, "serial compile"},
      {COLLET_TRAIT_CONTROL_FLOW, "control flow"},
      {COLLET_TRAIT_COLLECTIVES, "collectives"},
      {COLLET_TRAIT_FLUSHES_DENORMALS, "flushes denormals"},
      {COLLET_TRAIT_VIRTUAL, "virtual"},
      {COLLET_TRAIT_SHARED_CODE, "shared code"},
      {COLLET_TRAIT_SCALARS, "scalars by value"},
      {COLLET_TRAIT_INLINE_CONSTANTS, "inline constants"},
      {COLLET_TRAIT_UNROLLED_LOOPS, "unrolled loops"},
  };
  std::vector<std::string_view> names;
  for (const auto& [bit, name] : kNames) {
    if (traits & bit) names.push_back(name);
  }
  return names;
}

struct Link {
  uint32_t to;
  collet_client_link facts;
};

struct Device {
  collet_client_device_info info{};
  std::vector<std::string> spaces;
  std::vector<Link> links;
};

struct Described {
  std::string path;
  Status status;
  Client client;
  collet_client_info info{};
  std::vector<Device> devices;
};

constexpr uint32_t kMostLinked = 64;  ///< most devices whose links are shown

Status describe_opened(Described& backend) {
  collet_error error{};
  backend.info.struct_size = sizeof backend.info;
  collet_client* client = backend.client.get();
  if (const collet_status code = collet_client_info_get(client, &backend.info, &error)) {
    return from_c(code, error, "client info");
  }
  for (uint32_t i = 0; i < backend.info.device_count; ++i) {
    Device device;
    device.info.struct_size = sizeof device.info;
    if (const collet_status code = collet_client_device_info_get(client, i, &device.info, &error)) {
      return from_c(code, error, "device info");
    }
    for (uint32_t s = 0; s < device.info.space_count; ++s) {
      const char* kind = collet_client_space_kind(client, i, s);
      device.spaces.emplace_back(kind == nullptr ? "?" : kind);
    }
    for (uint32_t to = 0; to < std::min(backend.info.device_count, kMostLinked); ++to) {
      Link link{to, {}};
      link.facts.struct_size = sizeof link.facts;
      if (to == i) continue;
      if (const collet_status code = collet_client_link_get(client, i, to, &link.facts, &error)) {
        return from_c(code, error, "link");
      }
      if (link.facts.hops > 0) device.links.push_back(link);
    }
    backend.devices.push_back(std::move(device));
  }
  return ok_status();
}

Described describe(const std::string& name) {
  Described backend;
  backend.path = name;
  Expected<Client> client = open_client(name);
  backend.status = client.status();
  if (!client.ok()) return backend;
  backend.client = *std::move(client);
  backend.status = describe_opened(backend);
  return backend;
}

void show_backend(const Described& backend) {
  const Style style = stdout_style();
  if (!backend.status.ok()) {
    show("{}{}{}\n  {}\n", style.red, backend.path, style.reset, backend.status.to_string());
    return;
  }
  const collet_client_info& info = backend.info;
  show("{}{}{} {}  interface {}.{}, opset {}, {} functions of the core table\n  {}\n", style.bold, info.backend,
       style.reset, info.backend_version, info.abi_major, info.abi_minor, info.opset, info.functions,
       info.backend_path);
  std::string out;
  for (size_t i = 0; i < backend.devices.size(); ++i) {
    const Device& device = backend.devices[i];
    std::string traits, spaces;
    for (const auto name : trait_names(device.info.traits)) traits += fmt::format(", {}", name);
    for (const auto& space : device.spaces) spaces += (spaces.empty() ? "" : ", ") + space;
    out += fmt::format("  device {}: {}{}; memory: {}{}\n", i, device.info.kind, traits, spaces,
                       device.info.capacity > 0 ? ", " + human(static_cast<double>(device.info.capacity), "B") : "");
    out += fmt::format("    fingerprint {}\n", device.info.fingerprint);
    for (const Link& link : device.links) {
      out += fmt::format("    link to device {}: {} {}{}{}\n", link.to, link.facts.hops,
                         link.facts.hops == 1 ? "hop" : "hops",
                         link.facts.latency_ns > 0 ? fmt::format(", {} ns", link.facts.latency_ns) : "",
                         link.facts.bytes_per_ns > 0 ? fmt::format(", {} GB/s", link.facts.bytes_per_ns) : "");
    }
  }
  show("{}", out);
}

void json_of(const Described& backend, JsonWriter& json) {
  json.begin_object().field("path", backend.path);
  if (!backend.status.ok()) {
    json.field("error", backend.status.to_string()).end_object();
    return;
  }
  const collet_client_info& info = backend.info;
  json.field("name", info.backend).field("version", info.backend_version).field("library", info.backend_path);
  json.field("interface", fmt::format("{}.{}", info.abi_major, info.abi_minor));
  json.field("opset", info.opset).field("functions", info.functions).key("devices").begin_array();
  for (const Device& device : backend.devices) {
    json.begin_object().field("kind", device.info.kind).field("fingerprint", device.info.fingerprint);
    json.field("capacity", device.info.capacity).key("traits").begin_array();
    for (const auto name : trait_names(device.info.traits)) json.value(name);
    json.end_array().key("spaces").begin_array();
    for (const auto& space : device.spaces) json.value(space);
    json.end_array().key("links").begin_array();
    for (const Link& link : device.links) {
      json.begin_object().field("to", link.to).field("hops", link.facts.hops);
      json.field("latency_ns", link.facts.latency_ns).field("bytes_per_ns", link.facts.bytes_per_ns).end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().end_object();
}

int show_backends(const Options& options) {
  std::vector<Described> found;
  if (!options.backend.empty()) {
    found.push_back(describe(options.backend));
    if (!found.back().status.ok()) return report(found.back().status);
  } else {
    for (const std::string& path : found_backends()) found.push_back(describe(path));
  }
  if (!options.json.empty()) {
    std::string out;
    JsonWriter json(out);
    json.begin_object().key("backends").begin_array();
    for (const Described& backend : found) json_of(backend, json);
    json.end_array().end_object();
    if (const Status status = write_file(options.json, out + "\n"); !status.ok()) return report(status);
  }
  if (options.json == "-") return kDone;
  for (const Described& backend : found) show_backend(backend);
  if (found.empty()) {
    std::string where;
    for (const std::string& folder : backend_folders()) where += (where.empty() ? "" : ", ") + folder;
    show("no backend found in: {}\n", where);
  }
  return kDone;
}

int show_program(const Options& options) {
  Expected<std::unique_ptr<hlo::Module>> module = read_module(options.file, {COLLET_ELIDED_ZEROS});
  if (!module.ok()) return report(module.status());
  const Statistics statistics = collect_statistics(**module);
  if (!options.json.empty()) {
    std::string out;
    JsonWriter json(out);
    statistics_json(**module, statistics, json);
    if (const Status status = write_file(options.json, out + "\n"); !status.ok()) return report(status);
  }
  if (options.json != "-") show("{}", statistics_text(**module, statistics));
  return kDone;
}

int show_ops(const Options& options) {
  if (!options.json.empty()) {
    const Status status = write_file(options.json, op_table("json"));
    if (!status.ok()) return report(status);
    if (options.json == "-") return kDone;
  }
  show("{}", op_table(options.format));
  return kDone;
}

constexpr char kFooter[] = R"(Examples:
  collet info model.hlo
  collet info --backends
  collet info --backend ./libacme.so --json -
  collet info --ops --format md > ops.md)";

}  // namespace

Action add_info(CLI::App& verb) {
  auto options = std::make_shared<Options>();
  auto* file =
      verb.add_option("FILE", options->file, "A program: its size, ops, memory and work; - is stdin")->type_name("");
  auto* ops = verb.add_flag("--ops", options->ops, "The op table");
  auto* backends =
      verb.add_flag("--backends", options->backends, "The backends that are found by name, and their devices");
  auto* backend = verb.add_option("--backend", options->backend, "One backend, by name or path")->type_name("BACKEND");
  verb.add_option("--format", options->format, "Form of the op table: text, md, json or c")
      ->check(CLI::IsMember({"text", "md", "json", "c"}))
      ->needs(ops);
  verb.add_option("--json", options->json, "Write what is shown as JSON to this file; - is stdout")->type_name("FILE");
  file->excludes(ops)->excludes(backends)->excludes(backend);
  ops->excludes(backends)->excludes(backend);
  backends->excludes(backend);
  verb.footer(kFooter);
  return [options] {
    if (options->ops) return show_ops(*options);
    if (options->backends || !options->backend.empty()) return show_backends(*options);
    if (!options->file.empty()) return show_program(*options);
    return report(kUsage, "info: name a FILE, or one of --ops, --backends, --backend\nSee: collet info --help");
  };
}

}  // namespace collet::tool
