// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/base/status.h"
#include "hlo/ir/types.h"

/// \file
/// The description of devices and of the network between them, for estimates of machines that are not there.

namespace collet::hlo::estimate {

/// The most devices of a machine or of a program.
constexpr int64_t kMostDevices = int64_t{1} << 20;

/// Returns the product of two numbers that are not negative, or kMostDevices + 1 if it is above kMostDevices.
constexpr int64_t device_product(int64_t a, int64_t b) {
  return a != 0 && b > kMostDevices / a ? kMostDevices + 1 : a * b;
}

/// How the devices of one level of a network are connected.
enum class Topology : uint8_t {
  Switch,  ///< each reaches each with its full bandwidth: a switch, a fat tree without a bottleneck
  Ring,    ///< links to two neighbours
  Torus    ///< links to two neighbours in each dimension
};

/// One level of a network. Level 0 connects neighbouring device numbers; a device of the next level is all of this one.
struct NetworkLevel {
  std::string name;
  Topology topology = Topology::Switch;
  int64_t devices = 0;         ///< that it connects; 0: as many as there are
  std::vector<int64_t> torus;  ///< Torus: the sizes of its dimensions, whose product is `devices`
  /// Of one device into this level, in one direction; of a ring or torus that of one link.
  double bytes_per_ns = 0;
  double latency_ns = 0;        ///< of one message, with all that software needs to send it
  double oversubscription = 1;  ///< by which the bandwidth is divided when all devices send
};

/// What a custom call costs that the program does not describe.
struct CallCost {
  double flops = 0;  ///< of one call
  Type type = Type::F32;
};

/// A machine. Speeds are peaks; the efficiencies say which part of them real programs reach.
struct Machine {
  std::string name;
  double memory_bytes = 0;  ///< capacity of a device; 0: unknown
  double memory_bytes_per_ns = 0;
  double launch_ns = 0;                         ///< of one kernel
  std::map<Type, double> product_flops_per_ns;  ///< by the element type of the operands; a multiply-add counts as two
  double other_product_flops_per_ns = 0;        ///< for types that are not listed
  double arithmetic_per_ns = 0;                 ///< operations of elementwise ops and reductions
  double product_efficiency = 1, memory_efficiency = 1, network_efficiency = 1;
  std::vector<NetworkLevel> network;                   ///< from the inside out
  std::map<std::string, CallCost, std::less<>> calls;  ///< by custom_call_target

  /// Returns the peak of products of this type.
  double product_peak(Type type) const {
    const auto known = product_flops_per_ns.find(type);
    return known == product_flops_per_ns.end() ? other_product_flops_per_ns : known->second;
  }
};

/// Reads a description in JSON; docs/estimate.md has its fields. Errors name the field, and begin with `file_name`.
Expected<Machine> read_machine(std::string_view json, std::string_view file_name);

}  // namespace collet::hlo::estimate
