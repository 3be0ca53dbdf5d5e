// SPDX-License-Identifier: Apache-2.0
#include "hlo/estimate/machine.h"

#include <boost/json.hpp>
#include <cmath>
#include <initializer_list>
#include <numeric>

namespace collet::hlo::estimate {
namespace {

namespace json = boost::json;

/// Reads fields and remembers the first error.
class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  const Status& status() const { return status_; }
  void fail(const std::string& message) {
    if (status_.ok()) status_ = invalid_argument(file_ + ": " + message);
  }

  // Refuses fields that are not in `names`: a misspelt one would otherwise count as zero.
  void only(const json::object& object, const std::string& where, std::initializer_list<std::string_view> names) {
    for (const auto& [key, value] : object) {
      bool known = false;
      for (const std::string_view name : names) known |= key == name;
      if (!known) fail("there is no field '" + std::string(key) + "' in " + where);
    }
  }

  double number(const json::object& object, const std::string& where, std::string_view name, double otherwise,
                bool may_be_zero = true) {
    const json::value* value = object.if_contains(name);
    if (!value) {
      if (!may_be_zero && otherwise == 0) fail(where + " has no '" + std::string(name) + "'");
      return otherwise;
    }
    if (!value->is_number()) return fail("'" + std::string(name) + "' of " + where + " is no number"), otherwise;
    const double out = value->to_number<double>();
    if (!std::isfinite(out) || out < 0 || (!may_be_zero && out == 0))
      fail("'" + std::string(name) + "' of " + where + " is " + std::to_string(out));
    return out;
  }

  int64_t devices(const json::object& object, const std::string& where) {
    const double out = number(object, where, "devices", 0);
    if (out <= static_cast<double>(kMostDevices) && out == std::floor(out)) return static_cast<int64_t>(out);
    return fail("'devices' of " + where + " is no whole number up to " + std::to_string(kMostDevices)), 0;
  }

  std::string text(const json::object& object, const std::string& where, std::string_view name) {
    const json::value* value = object.if_contains(name);
    if (!value) return "";
    if (!value->is_string()) return fail("'" + std::string(name) + "' of " + where + " is no string"), "";
    return std::string(value->as_string());
  }

  const json::object& object(const json::object& parent, const std::string& where, std::string_view name) {
    static const json::object kNone;
    const json::value* value = parent.if_contains(name);
    if (!value) return kNone;
    if (!value->is_object()) return fail("'" + std::string(name) + "' of " + where + " is no object"), kNone;
    return value->as_object();
  }

  // An efficiency is a part of the peak.
  double share(const json::object& object, const std::string& where, std::string_view name) {
    const double out = number(object, where, name, 1, false);
    if (out > 1) fail("'" + std::string(name) + "' of " + where + " is more than 1");
    return out;
  }

 private:
  const std::string file_;
  Status status_;
};

void read_device(Reader& in, const json::object& device, Machine& out) {
  const std::string where = "'device'";
  in.only(device, where,
          {"memory_gigabytes", "memory_gigabytes_per_second", "launch_microseconds", "product_teraflops",
           "arithmetic_teraflops", "efficiency"});
  out.memory_bytes = in.number(device, where, "memory_gigabytes", 0) * 1e9;
  out.memory_bytes_per_ns = in.number(device, where, "memory_gigabytes_per_second", 0, false);
  out.launch_ns = in.number(device, where, "launch_microseconds", 0) * 1e3;
  const json::object& products = in.object(device, where, "product_teraflops");
  for (const auto& [key, value] : products) {
    const double flops = in.number(products, "'product_teraflops'", key, 0, false) * 1e3;
    const std::optional<Type> type = type_from_text(std::string(key));
    if (key == "other")
      out.other_product_flops_per_ns = flops;
    else if (type)
      out.product_flops_per_ns[*type] = flops;
    else
      in.fail("'" + std::string(key) + "' of 'product_teraflops' is no element type, nor 'other'");
  }
  if (out.other_product_flops_per_ns == 0)
    in.fail("'product_teraflops' has no 'other', for types that it does not list");
  out.arithmetic_per_ns = in.number(device, where, "arithmetic_teraflops", 0, false) * 1e3;
  const json::object& efficiency = in.object(device, where, "efficiency");
  in.only(efficiency, "'efficiency'", {"products", "memory", "network"});
  out.product_efficiency = in.share(efficiency, "'efficiency'", "products");
  out.memory_efficiency = in.share(efficiency, "'efficiency'", "memory");
  out.network_efficiency = in.share(efficiency, "'efficiency'", "network");
}

NetworkLevel read_level(Reader& in, const json::object& level, size_t number) {
  NetworkLevel out;
  out.name = in.text(level, "a level of 'network'", "name");
  if (out.name.empty()) out.name = "level " + std::to_string(number);
  const std::string where = "'" + out.name + "'";
  in.only(level, where,
          {"name", "devices", "topology", "torus", "gigabytes_per_second", "latency_microseconds", "oversubscription"});
  out.devices = in.devices(level, where);
  out.bytes_per_ns = in.number(level, where, "gigabytes_per_second", 0, false);
  out.latency_ns = in.number(level, where, "latency_microseconds", 0) * 1e3;
  out.oversubscription = in.number(level, where, "oversubscription", 1, false);
  if (out.oversubscription < 1) in.fail("'oversubscription' of " + where + " is less than 1");
  const std::string topology = in.text(level, where, "topology");
  if (topology == "ring")
    out.topology = Topology::Ring;
  else if (topology == "torus")
    out.topology = Topology::Torus;
  else if (!topology.empty() && topology != "switch" && topology != "fat-tree")
    in.fail("'topology' of " + where + " is '" + topology + "'; known are switch, fat-tree, ring, torus");
  if (const json::value* torus = level.if_contains("torus")) {
    if (!torus->is_array()) in.fail("'torus' of " + where + " is no list of sizes");
    for (const json::value& size : torus->is_array() ? torus->as_array() : json::array())
      out.torus.push_back(size.is_int64() && size.as_int64() > 0 ? size.as_int64() : 0);
    const int64_t all = std::accumulate(out.torus.begin(), out.torus.end(), int64_t{1}, device_product);
    if (out.devices == 0) out.devices = all;
    if (all <= 0 || all > kMostDevices || all != out.devices)
      in.fail("the sizes in 'torus' of " + where + " do not give its devices");
  }
  if ((out.topology == Topology::Torus) != !out.torus.empty())
    in.fail(where + " needs both \"topology\": \"torus\" and the sizes of its dimensions in 'torus'");
  return out;
}

}  // namespace

Expected<Machine> read_machine(std::string_view text, std::string_view file_name) {
  Reader in(file_name);
  boost::system::error_code code;
  const json::value whole = json::parse(json::string_view(text.data(), text.size()), code);
  if (code) return invalid_argument(std::string(file_name) + ": no JSON: " + code.message());
  if (!whole.is_object()) return invalid_argument(std::string(file_name) + ": a machine is an object");
  const json::object& top = whole.as_object();
  Machine out;
  in.only(top, "the machine", {"name", "device", "network", "calls"});
  out.name = in.text(top, "the machine", "name");
  if (!top.contains("device")) in.fail("the machine has no 'device'");
  read_device(in, in.object(top, "the machine", "device"), out);
  if (const json::value* network = top.if_contains("network")) {
    if (!network->is_array()) in.fail("'network' is no list of levels");
    for (const json::value& level : network->is_array() ? network->as_array() : json::array()) {
      if (!level.is_object()) {
        in.fail("a level of 'network' is no object");
        break;
      }
      out.network.push_back(read_level(in, level.as_object(), out.network.size()));
    }
  }
  for (size_t i = 0; i + 1 < out.network.size(); ++i)
    if (out.network[i].devices == 0)
      in.fail("'" + out.network[i].name + "' has no 'devices'; only the last level may lack them");
  for (const auto& [target, value] : in.object(top, "the machine", "calls")) {
    const std::string where = "call '" + std::string(target) + "'";
    if (!value.is_object()) {
      in.fail(where + " is no object");
      break;
    }
    in.only(value.as_object(), where, {"flops", "type"});
    CallCost& cost = out.calls[std::string(target)];
    cost.flops = in.number(value.as_object(), where, "flops", 0);
    if (const std::string type = in.text(value.as_object(), where, "type"); !type.empty()) {
      const std::optional<Type> known = type_from_text(type);
      if (!known) in.fail("'type' of " + where + " is no element type");
      cost.type = known.value_or(Type::F32);
    }
  }
  COLLET_TRY(in.status());
  return out;
}

}  // namespace collet::hlo::estimate
