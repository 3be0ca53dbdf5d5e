// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <map>

#include "sdk/pjrt/call.h"
#include "sdk/pjrt/client.h"

namespace collet::pjrt {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

PJRT_Error* to_number(const std::string& name, const std::string& text, uint32_t& out) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  if (error != std::errc() || stop != end) return invalid_argument(name + " is not a number: '" + text + "'");
  return nullptr;
}

PJRT_Error* to_text(const PJRT_NamedValue& value, const std::string& name, std::string& out) {
  std::array<char, 32> number;
  switch (value.type) {
    case PJRT_NamedValue_kString:
      out.assign(value.string_value, value.value_size);
      return nullptr;
    case PJRT_NamedValue_kInt64:
      out = std::to_string(value.int64_value);
      return nullptr;
    case PJRT_NamedValue_kFloat:
      out.assign(number.data(), std::to_chars(number.data(), number.data() + number.size(), value.float_value).ptr);
      return nullptr;
    case PJRT_NamedValue_kBool:
      out = value.bool_value ? "1" : "0";
      return nullptr;
    case PJRT_NamedValue_kInt64List:
      for (size_t i = 0; i < value.value_size; ++i) out += (i ? "," : "") + std::to_string(value.int64_array_value[i]);
      return nullptr;
  }
  return invalid_argument("option '" + name + "' has a type that is not known");
}

PJRT_Error* to_host_calls(const std::string& name, const std::string& text, HostCalls& out) {
  if (text == "ready") {
    out = HostCalls::Ready;
  } else if (text == "wait") {
    out = HostCalls::Wait;
  } else if (text == "queue") {
    out = HostCalls::Queue;
  } else {
    return invalid_argument(name + " is ready, wait or queue, not '" + text + "'");
  }
  return nullptr;
}

// Reads pairs KEY=VALUE, separated by commas.
PJRT_Error* read_pairs(const std::string& text, std::map<std::string, std::string>& out) {
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    const std::string pair = text.substr(start, end - start);
    const size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos)
      return invalid_argument("COLLET_OPTIONS has KEY=VALUE, separated by commas, not '" + pair + "'");
    out[pair.substr(0, equals)] = pair.substr(equals + 1);
    start = end + 1;
  }
  return nullptr;
}

// True for an option that jax.distributed adds to every client and that says nothing to this plugin: it numbers the parts
// of a machine whose devices reach each other without the network.
bool is_of_the_frontend(const std::string& name) {
  return name == "partition_index";
}

}  // namespace

PJRT_Error* read_settings(const PJRT_NamedValue* options, size_t count, Settings& out) {
  if (std::string platform = environment("COLLET_PLATFORM_NAME"); !platform.empty()) out.platform = platform;
  out.backend = environment("COLLET_BACKEND");
  out.fallback = environment("COLLET_FALLBACK");
  std::string devices = environment("COLLET_DEVICES");
  std::string devices_name = "COLLET_DEVICES";
  std::string host_calls = environment("COLLET_HOST_CALLS");
  std::string host_calls_name = "COLLET_HOST_CALLS";
  for (size_t i = 0; i < count; ++i) {
    const PJRT_NamedValue option = copy_of(options[i]);
    const std::string name(option.name, option.name_size);
    std::string text;
    COLLET_PJRT_CHECK(to_text(option, name, text));
    if (name == "platform_name") {
      out.platform = text;
    } else if (name == "backend") {
      // The environment takes precedence, to choose among backends of one installation.
      if (out.backend.empty()) out.backend = text;
    } else if (name == "fallback") {
      if (out.fallback.empty()) out.fallback = text;
    } else if (name == "target") {
      out.target = text;
    } else if (name == "device_count") {
      if (devices.empty()) devices = text, devices_name = "option 'device_count'";
    } else if (name == "host_calls") {
      if (host_calls.empty()) host_calls = text, host_calls_name = "option 'host_calls'";
    } else if (name == "data_dependent_sizes") {
      if (text != "pad" && text != "real")
        return invalid_argument("option 'data_dependent_sizes' is pad or real, not '" + text + "'");
      out.real_sizes = text == "real";
    } else if (name == "node_id") {
      COLLET_PJRT_CHECK(to_number("option 'node_id'", text, out.process));
    } else if (name == "num_nodes") {
      COLLET_PJRT_CHECK(to_number("option 'num_nodes'", text, out.processes));
    } else if (!is_of_the_frontend(name)) {
      out.others[name] = text;
    }
  }
  COLLET_PJRT_CHECK(read_pairs(environment("COLLET_OPTIONS"), out.others));
  if (!host_calls.empty()) COLLET_PJRT_CHECK(to_host_calls(host_calls_name, host_calls, out.host_calls));
  if (!devices.empty()) COLLET_PJRT_CHECK(to_number(devices_name, devices, out.device_count));
  return nullptr;
}

}  // namespace collet::pjrt
